"""A controller that is no Linux: everything but load of its own."""

from __future__ import annotations

import tarfile
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cli.command_line import iolab
from tests.e2e.sessions import write_study
from tests.facts import tells

pytestmark = pytest.mark.e2e

TESTS = Path(__file__).parents[1]
DARWIN = {"PYTHONPATH": str(TESTS / "fakes" / "darwin")}
STUDY = """
format = 1
id = "mac"

[[workload]]
id = "read"
engine = "native"
rw = "randread"
bs = "4k"
iodepth = 1
filesize = "4m"

[method]
warmup = "0s"
runtime = "1s"
settle = "0s"
idle_watch = 0
generator_limit = false
"""
HOSTS = """format = 1
[[host]]
name = "linux"
kind = "command"
command = ["env", "--unset=PYTHONPATH"]
path = "{path}"
"""


@pytest.fixture(scope="module")
def session(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("stored")
    with tarfile.open(TESTS / "golden" / "sessions" / "rocksdb.tar.xz") as packed:
        packed.extractall(folder, filter="data")
    return folder / "rocksdb"


@pytest.fixture
def target() -> Iterator[Path]:
    """On disk; /tmp may be memory."""
    with tempfile.TemporaryDirectory(prefix="iolab-mac-", dir="/var/tmp") as path:
        yield Path(path)


def on_mac(*words: str | Path, expect: int = 0) -> str:
    """What the command says there; its exit code must be the expected one."""
    done = iolab(*words, env=DARWIN)
    assert done.returncode == expect, done.stdout + done.stderr
    return done.stdout + done.stderr


def test_its_commands_need_nothing_of_linux(session: Path, tmp_path: Path) -> None:
    study, report = write_study(tmp_path, STUDY), tmp_path / "report.html"
    assert "cluster-kpi" in on_mac("studies")
    assert "Usage" in on_mac("--help")
    on_mac("check", study)
    assert "rocksdb" in on_mac("show", session)
    on_mac("report", session, "--html", report)
    assert report.stat().st_size > 0
    on_mac("export", session, "--format", "csv")


@pytest.mark.parametrize("command", ["plan", "run"])
def test_load_of_its_own_is_refused(command: str, target: Path, tmp_path: Path) -> None:
    study = write_study(tmp_path, STUDY)
    out = ("--out", tmp_path / "session") if command == "run" else ()
    told = on_mac(command, study, "--path", target, *out, expect=3)
    assert tells(told, "Darwin", "Linux", "--hosts")


@pytest.mark.long
def test_hosts_that_run_linux_are_measured_from_it(target: Path, tmp_path: Path) -> None:
    hosts, session = tmp_path / "hosts.toml", tmp_path / "session"
    hosts.write_text(HOSTS.format(path=target), encoding="utf-8")
    study = write_study(tmp_path, STUDY)
    done = iolab("doctor", "--hosts", hosts, env=DARWIN)
    assert done.returncode == 0, done.stdout + done.stderr
    assert tells(done.stdout + done.stderr, "linux")
    on_mac("run", study, "--hosts", hosts, "--out", session)
    assert "1 run" in on_mac("show", session)
    assert list(target.iterdir()) == []
