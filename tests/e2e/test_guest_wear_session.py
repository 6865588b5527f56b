"""A session whose target is a real (emulated) NVMe drive with flash behind it."""

from __future__ import annotations

import base64
import csv
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import pytest

from iolab.core.drive import DriveReading
from iolab.guests.kit.build import GuestKit
from iolab.guests.machine import agent_socket_file_name
from tests.e2e.guest_sessions import Stored, iolab
from tests.e2e.power import guest_bridge
from tests.e2e.test_guest_agent import PATIENCE_S, guest_argv
from tests.e2e.test_guest_wear import (
    CLOSE_PROGRAM,
    DRIVE,
    FDP_STATISTICS,
    OCP_SMART,
    SERIAL,
    close_program,
    counter,
    flash_devices,
    kit,
    qemu,
)
from tests.needs import require

__all__ = ("kit", "qemu")

pytestmark = [pytest.mark.e2e, pytest.mark.long]

DEVICE: Final = "nvme0n1"
UNIT_BYTES: Final = 512 << 20
BLOCK_BYTES: Final = 32 << 10
RUNTIME_S: Final = 12
RATES: Final = {"low": 352, "high": 261, "shared": 352}
PLANTED: Final = {"low": 3.88, "high": 5.23}
"""A whole unit over what a run of that rate writes of it."""

STUDY: Final = """
format = 1
id = "wear"

[[host]]
name = "guest"
kind = "command"
command = {command}

[target]
device = "{drive}"
serial = "{serial}"
{workloads}
[method]
warmup = 0
runtime = {runtime}
settle = 0
idle_watch = 0
generator_limit = false
"""
WORKLOAD: Final = """
[[workload]]
id = "{id}"
engine = "native"
rw = "write"
bs = {bs}
iodepth = 32
rate_iops = {rate}
arrivals = "fixed"
filesize = "64m"
indicator = "iops"
"""
CLOSE: Final = [CLOSE_PROGRAM, DRIVE]
FOREIGN: Final = [
    *("fio", "--name=f", "--direct=1", "--rw=write", "--bs=32k", "--size=48m"),
    "--filename=/dev/nvme0n2",
]


@contextmanager
def running_guest(folder: Path, kit: GuestKit, qemu: tuple[str, ...]) -> Iterator[Path]:
    """A guest with the drive until the end; the socket of its agent."""
    argv = guest_argv(folder, kit, devices=flash_devices(folder, UNIT_BYTES), qemu=qemu)
    with (folder / "console").open("wb") as console:
        process = subprocess.Popen(
            argv, cwd=folder, stdin=subprocess.DEVNULL, stdout=console, stderr=console
        )
    try:
        path, deadline = folder / agent_socket_file_name("vm01"), time.monotonic() + PATIENCE_S
        while not path.exists():
            assert process.poll() is None, (folder / "console").read_text("utf-8", "replace")
            assert time.monotonic() < deadline
            time.sleep(0.1)
        yield path
    finally:
        process.kill()
        process.wait()


def study(folder: Path, socket_path: Path) -> Path:
    """Before each reading the unit is closed; before the last one another namespace is written."""
    plan = [[CLOSE]] * 2 * len(RATES)
    plan[-1] = [FOREIGN, CLOSE]
    content = base64.b64encode(close_program(folder)).decode()
    document = {"path": CLOSE_PROGRAM, "content": content, "before": plan}
    (folder / "plan").write_text(json.dumps(document), encoding="utf-8")
    command = [sys.executable, guest_bridge.__file__, str(socket_path), str(folder / "plan")]
    workloads = "".join(
        WORKLOAD.format(id=name, bs=BLOCK_BYTES, rate=rate) for name, rate in RATES.items()
    )
    text = STUDY.format(
        command=json.dumps(command),
        drive=DRIVE,
        serial=SERIAL,
        workloads=workloads,
        runtime=RUNTIME_S,
    )
    path = folder / "study.toml"
    path.write_text(text, encoding="utf-8")
    return path


def grown(before: DriveReading, after: DriveReading, page: int, start: int) -> int:
    return counter(after, page, start) - counter(before, page, start)


def test_a_session_finds_what_the_flash_wrote_and_who_else_did(
    kit: GuestKit, qemu: tuple[str, ...], tmp_path: Path
) -> None:
    require("cc")
    session, page = tmp_path / "S", tmp_path / "report.html"
    with tempfile.TemporaryDirectory(prefix="iolab-guest-", dir="/var/tmp") as path:
        folder = Path(path)
        with running_guest(folder, kit, qemu) as socket_path:
            iolab("run", study(folder, socket_path), "--out", session)
    stored, amplifications = Stored.at(session), {}
    for run, record, result in stored.runs():
        name = run.point.workload
        (wear,) = result.drives
        (readings,) = record.hosts[0].drives
        assert readings.after is not None
        before, after = readings.before, readings.after
        # By the drive's own log pages, decoded here.
        written = grown(before, after, FDP_STATISTICS, 0)
        media = grown(before, after, FDP_STATISTICS, 16)
        assert grown(before, after, OCP_SMART, 0) == written
        assert wear.is_emulated
        if name not in PLANTED:
            assert written > wear.block_bytes
            assert wear.write_amplification is None
            assert "something else wrote" in wear.reason
            level = stored.level_of(result, "foreign-drive-writer")
            assert level.startswith("indicative: The drive nvme0n1 of guest counted "), level
            continue
        assert wear.application_bytes == wear.block_bytes == written
        assert wear.media_bytes is not None
        assert wear.media_bytes.value == media == UNIT_BYTES
        found = wear.write_amplification
        assert found is not None, wear.reason
        amplifications[name] = found.value
        assert (found.low or 0) <= media / written <= (found.high or 0)
        # A machine that is busy loses some of the load.
        assert found.value == pytest.approx(PLANTED[name], rel=0.1)
        assert stored.level_of(result, "foreign-drive-writer").startswith("valid")
        assert stored.level_of(result, "drive-counters").startswith("valid")
        for key in ("media_write_amplification", "write_amplification"):
            metric = result.metrics[key]
            assert (metric.low or 0) <= media / written <= (metric.high or 0)
        assert result.metrics["block_write_amplification"].value == 1
    rows = list(csv.DictReader(iolab("export", "-f", "csv", session).stdout.splitlines()))
    exported = {row["workload"]: row["media_write_amplification"] for row in rows}
    assert {name: text and float(text) for name, text in exported.items()} == {
        **amplifications,
        "shared": "",
    }
    shown = iolab("show", session, "--details").stdout
    for name, value in amplifications.items():
        (line,) = (line for line in shown.splitlines() if line.startswith(name) and DEVICE in line)
        assert f" {value:.3g} (" in line, line
    iolab("report", session, "--html", page)
    text = page.read_text(encoding="utf-8")
    assert "From the application to the flash" in text
    assert "The flash of nvme0n1 wrote 512 MiB for " in text
