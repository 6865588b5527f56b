"""What `iolab calibrate` refuses before it reaches any host, and its document of several hosts."""

from __future__ import annotations

from pathlib import Path

import pytest
from msgspec.structs import replace

from iolab.loads.fileio.calibration_model import Calibration, HostCalibration, Trial
from iolab.loads.fileio.calibration_report import calibration_document
from iolab.loads.fileio.engine_facts import FIO_ENGINE, NATIVE_ENGINE
from iolab.loads.fileio.workload import Access, Job
from tests.cli.in_process import call

INVENTORY = 'format = 1\n[[host]]\nname = "a"\n[[host]]\nname = "b"\npath = "/mnt/b"\n'
JOB = Job(FIO_ENGINE, Access.RANDREAD, 4096, 32, 1, 1 << 28)
TRIALS = tuple(
    Trial(engine, pair, 1000.0, 5000.0, 4000.0, 9000.0, 3000.0)
    for pair in (1, 2)
    for engine in (FIO_ENGINE, NATIVE_ENGINE)
)
HOST = HostCalibration(
    host="a",
    job=JOB,
    trials=TRIALS,
    ceilings={FIO_ENGINE: 4000.0, NATIVE_ENGINE: 9000.0},
    versions={FIO_ENGINE: "fio-3.33", NATIVE_ENGINE: "0.1.0"},
    methods={FIO_ENGINE: "libaio", NATIVE_ENGINE: "io_uring"},
)


def test_hosts_are_given_no_path_that_depends_on_where_somebody_stands(tmp_path: Path) -> None:
    inventory = tmp_path / "hosts.toml"
    inventory.write_text(INVENTORY, encoding="utf-8")
    done = call("calibrate", "--hosts", inventory, "--path", "scratch", cwd=tmp_path)
    assert done.returncode == 2
    assert "'scratch'" in done.stderr
    assert "has no path" not in done.stderr


@pytest.mark.parametrize(
    ("size", "say"),
    [("10k", "--size 8192 or 12288"), ("1k", "--size 4096")],
)
def test_a_size_that_is_no_multiple_is_told_with_the_nearest_that_are(
    tmp_path: Path, size: str, say: str
) -> None:
    done = call("calibrate", "--path", tmp_path, "--size", size)
    assert done.returncode == 2
    assert say in done.stderr


def test_what_differs_between_hosts_stands_with_each_of_them_alone() -> None:
    newer = {**HOST.versions, FIO_ENGINE: "fio-3.36"}
    other = replace(HOST, host="b", versions=newer, methods={**HOST.methods})
    document = calibration_document(Calibration(JOB, (HOST, other), TRIALS))
    fio, native = document["engines"]
    assert (fio["version"], fio["method"]) == (None, "libaio")
    assert (native["version"], native["method"]) == ("0.1.0", "io_uring")
    each = [host["engines"][0]["version"] for host in document["hosts"]]
    assert each == ["fio-3.33", "fio-3.36"]
    alone = calibration_document(Calibration(JOB, (HOST,), TRIALS))
    assert alone["engines"][0]["version"] == "fio-3.33"
