"""Sessions in a process of their own, on whose engine or files something acts in mid-run."""

from __future__ import annotations

import os
import subprocess
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

from tests.e2e.sessions import IOLAB, SESSION_LIMIT_S, shown, write_study

START_LIMIT_S = 60.0
RUNTIME_S = 6

STUDY = f"""
format = 1
id = "acted-on"

[[workload]]
id = "work"
rw = "{{rw}}"
bs = "4k"
iodepth = 4
numjobs = 2
filesize = "16m"

[method]
warmup = "0s"
runtime = "{RUNTIME_S}s"
settle = "0s"
idle_watch = 0
generator_limit = false
"""


class Running:
    """A session in a process of its own, with what it started."""

    def __init__(self, target: Path, folder: Path, engine: str, rw: str = "randwrite") -> None:
        self.session = folder / "session"
        study = write_study(folder, STUDY.format(rw=rw))
        argv = [IOLAB, "run", study, "--engine", engine]
        argv += ["--path", target, "--out", self.session]
        self.process = subprocess.Popen(list(map(str, argv)), stderr=subprocess.PIPE)

    def engine(self) -> list[int]:
        """The processes of the load, as soon as it runs."""
        deadline = time.monotonic() + START_LIMIT_S
        while time.monotonic() < deadline and self.process.poll() is None:
            below = [pid for pid in descendants(self.process.pid) if is_engine(pid)]
            if below:
                return below
            time.sleep(0.05)
        raise AssertionError(f"no engine ran: {self.process.communicate()}")

    def started(self, after_s: float = 2.0) -> list[int]:
        """The same a while later: the engine was told to wait for its start, and has started."""
        self.engine()
        time.sleep(after_s)
        return self.engine()

    def end(self) -> tuple[int, str]:
        """What it exits with, and what it says on standard error."""
        _, stderr = self.process.communicate(timeout=SESSION_LIMIT_S)
        return self.process.returncode, stderr.decode()

    def checks(self) -> dict[str, dict[str, Any]]:
        """What each check says of its run, which ended well."""
        code, stderr = self.end()
        assert code == 0, stderr
        return self.stored_checks()

    def stored_checks(self) -> dict[str, dict[str, Any]]:
        """What each check says of the run of a session that has ended."""
        (result,) = shown(self.session)["results"]
        return {one["code"]: one for one in result["verdict"]["checks"]}


def descendants(pid: int) -> list[int]:
    found = [pid]
    for parent in found:
        with suppress(OSError):
            for children in Path(f"/proc/{parent}/task").glob("*/children"):
                found += map(int, children.read_text().split())
    return found[1:]


def is_engine(pid: int) -> bool:
    with suppress(OSError):
        argv = Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
        is_native = argv[1:2] == [b"engine"]
        is_fio = Path(os.fsdecode(argv[0])).name == "fio" and b"-" in argv
        return is_native or is_fio
    return False
