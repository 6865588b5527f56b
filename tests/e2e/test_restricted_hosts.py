"""Hosts that allow less than root on a current kernel: what they lack is told, and they measure."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pydantic_core
import pytest
import zstandard

from iolab.store.reader import SessionReader
from tests.e2e import forbidden
from tests.e2e.forbidden import AFTER_LINUX_5_0, IO_URING_SETUP, PTRACE_X86
from tests.e2e.sessions import IOLAB, iolab, write_study
from tests.facts import tells
from tests.needs import ROOT, require
from tests.processes import run_program

pytestmark = pytest.mark.e2e

NOBODY = 65534
NONE_MISSING = 1 << 30
WITHIN = (sys.executable, forbidden.__file__)
HOSTS = {
    "linux-4.18": (*WITHIN, "", AFTER_LINUX_5_0),
    "container": (*WITHIN, f"{IO_URING_SETUP},{PTRACE_X86}", NONE_MISSING),
    "user": ("setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups"),
}
STUDY = """
format = 1
id = "restricted"

[[workload]]
id = "native"
engine = "native"
rw = "randrw"
bs = "4k"
iodepth = 4
numjobs = 1
filesize = "8m"

[[workload]]
id = "fio"
engine = "fio"
rw = "randrw"
bs = "4k"
iodepth = 4
numjobs = 1
filesize = "8m"

[method]
warmup = "0s"
runtime = "1s"
settle = "0s"
idle_watch = 0
generator_limit = false
"""


@pytest.fixture
def target() -> Iterator[Path]:
    """A folder of everybody's on disk; /tmp may be memory."""
    with tempfile.TemporaryDirectory(prefix="iolab-restricted-", dir="/var/tmp") as path:
        Path(path).chmod(0o777)
        yield Path(path)


def inventory(folder: Path, hosts: dict[str, tuple[Any, ...]], path: Path) -> Path:
    file = folder / "hosts.toml"
    tables = [
        f'[[host]]\nname = "{name}"\nkind = "command"\npath = "{path}"\n'
        f"command = {json.dumps([str(word) for word in words])}\n"
        for name, words in hosts.items()
    ]
    file.write_text("format = 1\n" + "".join(tables), encoding="utf-8")
    return file


@pytest.mark.long
def test_a_fleet_of_restricted_hosts_measures_and_tells_by_what(
    target: Path, tmp_path: Path
) -> None:
    require(ROOT, "setpriv")
    session = tmp_path / "session"
    hosts = inventory(tmp_path, HOSTS, target)
    iolab("run", write_study(tmp_path, STUDY), "--hosts", hosts, "--out", session)
    reader = SessionReader(session)
    results = reader.results()
    assert len(results) == 2
    for result in results:
        assert {host.name for host in result.hosts} == set(HOSTS)
    methods = {}
    for log in session.glob("points/*/run-1/engine/*.zst"):
        text = zstandard.ZstdDecompressor().stream_reader(log.read_bytes()).read()
        if text.startswith(b'{"clock"'):
            host = list(HOSTS)[int(log.stem)]
            hello = json.loads(text.splitlines()[0])
            methods[host] = hello["method"]
            assert host == "user" or any("io_uring" in note for note in hello["notes"])
    assert methods.keys() == HOSTS.keys()
    assert methods["linux-4.18"] == methods["container"] == "libaio"
    # What a host tells of itself does not depend on what it allows.
    first, *others = (facts.cpu for facts in reader.facts_found_at_last_start.values())
    assert others == [first, first]
    assert list(target.iterdir()) == []


def test_a_user_is_told_what_root_would_add(target: Path, tmp_path: Path) -> None:
    require(ROOT, "setpriv")
    hosts = inventory(tmp_path, {"user": HOSTS["user"]}, target)
    # Whether the machine is otherwise ready is not the matter here.
    done = subprocess.run([IOLAB, "doctor", "--hosts", hosts], capture_output=True, check=False)
    assert tells(done.stdout.decode(), "rights", "user", str(NOBODY))


def test_a_tmp_without_programs_is_told(target: Path, tmp_path: Path) -> None:
    require(ROOT, "unshare")
    script = f'mount --bind {target} /tmp && mount -o remount,bind,noexec /tmp && exec "$@"'
    words = ("unshare", "--mount", "sh", "-c", script, "sh")
    hosts = inventory(tmp_path, {"c1": words}, target)
    told = " ".join(iolab("doctor", "--hosts", hosts, expect=3).stdout.split())
    assert tells(told, "c1", "126", "/tmp", "noexec")


def test_an_installation_without_the_right_to_run_is_told() -> None:
    require(ROOT, "unshare")
    folder = Path(pydantic_core.__file__).parent
    script = f'mount --bind {folder} {folder} && mount -o remount,bind,noexec {folder} && exec "$@"'
    done = run_program(
        ["unshare", "--mount", "sh", "-c", script, "sh", IOLAB, "doctor", "--json"], timeout=60
    )
    assert done.returncode == 3
    assert tells(done.stderr, str(folder), "noexec")
    assert json.loads(done.stdout)["error"]["exit_code"] == 3


@pytest.mark.long
def test_a_home_that_is_read_only_is_not_written_to(target: Path, tmp_path: Path) -> None:
    require(ROOT, "unshare")
    study, session, home = write_study(tmp_path, STUDY), tmp_path / "session", tmp_path / "home"
    home.mkdir()
    script = f'mount -t tmpfs -o ro tmpfs {home} && HOME={home} exec "$@"'
    for words in (
        ("run", study, "--path", target, "--out", session, "--engine", "native"),
        ("show", session),
        ("report", session, "--html", tmp_path / "r.html", "--pdf", tmp_path / "r.pdf"),
    ):
        subprocess.run(
            ["unshare", "--mount", "sh", "-c", script, "sh", IOLAB, *words], check=True, timeout=180
        )
    assert (tmp_path / "r.html").stat().st_size > 0
    assert (tmp_path / "r.pdf").read_bytes().startswith(b"%PDF")
