"""Sessions that boot guests: their studies, what they store, and what they may leave behind."""

from __future__ import annotations

import asyncio
import os
import shutil
import subprocess
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Final

from iolab.core.metric import RunResult
from iolab.core.run import PlannedRun, RunRecord
from iolab.errors import EngineError
from iolab.guests.kit.build import GuestKit, build_guest_kit
from iolab.store.reader import SessionReader
from tests.cli.command_line import command, environment
from tests.needs import do_without
from tests.processes import run_program

QEMU: Final = "qemu-system-x86_64"
SESSION_LIMIT_S: Final = 170
GONE_LIMIT_S: Final = 10.0

NODES: Final = """
[[host]]
name = "node-1"
role = "hypervisor"
path = "{path}"
devices = "{device}"

[[host]]
name = "node-2"
role = "hypervisor"
path = "{path}"
devices = "{device}"
"""
STUDY: Final = """
format = 1
id = "guests"
title = "A few guests"
question = "Do guests boot, and does what they tell agree with their nodes?"
{hosts}
[vm]
vcpus = 1
memory = "192m"
{vm}

[[configuration]]
id = "cluster"
{workloads}
[method]
warmup = "0s"
runtime = "{runtime}"
settle = "0s"
idle_watch = 0
generator_limit = false
"""
WORKLOAD: Final = """
[[workload]]
id = "{id}"
rw = "{rw}"
bs = "4k"
iodepth = 1
numjobs = {numjobs}
filesize = "4m"
vms_per_node = {vms}
"""


def users_kit() -> GuestKit:
    """The user's own, as sessions have it: `make guest-kit` has made it."""
    try:
        return asyncio.run(build_guest_kit(print))
    except EngineError as fault:
        do_without(str(fault))


def workload(
    name: str, rw: str, *, numjobs: int = 4, vms: Iterable[int] = (1,), more: str = ""
) -> str:
    """A workload of a study, `more` are further lines."""
    return WORKLOAD.format(id=name, rw=rw, numjobs=numjobs, vms=list(vms)) + more


def study(
    folder: Path, vm: str, *workloads: str, hosts: str = "", runtime: str = "3s", name: str = "S"
) -> Path:
    """A study's file, whose guests are as the lines `vm` say."""
    path = folder / f"{name}.toml"
    text = STUDY.format(hosts=hosts, vm=vm, workloads="\n".join(workloads), runtime=runtime)
    path.write_text(text, encoding="utf-8")
    return path


def iolab(
    *words: str | Path, expect: int = 0, env: Mapping[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    """Run the command to its end; its exit code must be the expected one."""
    done = run_program(command(*words), env=environment(env), timeout=SESSION_LIMIT_S)
    assert done.returncode == expect, f"exit {done.returncode}\n{done.stdout}\n{done.stderr}"
    return done


@dataclass(frozen=True)
class Stored:
    """A session as it lies on disk."""

    reader: SessionReader

    @classmethod
    def at(cls, folder: Path) -> Stored:
        return cls(SessionReader(folder))

    def runs(self) -> Iterator[tuple[PlannedRun, RunRecord, RunResult]]:
        """Every planned run with its record and its result, in the plan's order."""
        results = {(one.digest, one.repeat): one for one in self.reader.results()}
        for run in self.reader.plan.runs:
            key = (run.point.digest, run.repeat)
            yield run, self.reader.record(*key), results[key]

    def level_of(self, result: RunResult, code: str) -> str:
        """What a check says of a result, with its sentence for a failed test."""
        (found,) = (check for check in result.verdict.checks if check.code == code)
        return f"{found.level}: {found.message}"


@dataclass
class Running:
    """A session that goes on in the background, and what it has said so far."""

    process: subprocess.Popen[str]
    stream: IO[str]
    said: str = ""

    def wait_for(self, words: str) -> str:
        """Until it says so; the line. AssertionError when it ends before."""
        for line in self.stream:
            self.said += line
            if words in line:
                return line
        raise AssertionError(f"it ended with {self.process.wait()}, having said:\n{self.said}")

    def end(self) -> int:
        """Its exit code once it has said all."""
        self.said += self.stream.read()
        return self.process.wait(timeout=SESSION_LIMIT_S)


@contextmanager
def running(*words: str | Path, env: Mapping[str, str] | None = None) -> Iterator[Running]:
    """A session in the background; killed if it still goes on at the end."""
    process = subprocess.Popen(
        command(*words),
        env=environment(env),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stderr is not None
    with process:
        try:
            yield Running(process, process.stderr)
        finally:
            process.kill()


def processes_on(folder: Path) -> dict[int, str]:
    """Programs that sit in the folder or name it, but for ourselves and our parents."""
    found = {}
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            words = os.fsdecode((entry / "cmdline").read_bytes()).split("\0")
            place = (entry / "cwd").readlink()
        except OSError:
            continue  # it has just ended, or is the kernel's
        inside = place.is_relative_to(folder) or str(folder) in " ".join(words)
        program = Path(words[0]).name
        if inside and program in (QEMU, "fio", "qemu-nbd", "iolab-agent", "taskset"):
            found[int(entry.name)] = program
    return found


def guests_on(folder: Path) -> list[int]:
    """The QEMU processes of guests whose files lie in the folder."""
    return [pid for pid, program in processes_on(folder).items() if program == QEMU]


def left_on(folder: Path) -> list[str]:
    """What a session has left: programs, and entries of the folder."""
    entries = [entry.name for entry in folder.iterdir() if entry.name.startswith("iolab")]
    return [*processes_on(folder).values(), *entries]


def await_nothing_on(folder: Path, limit_s: float = GONE_LIMIT_S) -> None:
    """Return when nothing is left there; AssertionError when that takes too long."""
    deadline = time.monotonic() + limit_s
    while left := left_on(folder):
        assert time.monotonic() < deadline, f"left on {folder}: {left}"
        time.sleep(0.1)


def path_without(folder: Path, *missing: str) -> dict[str, str]:
    """An environment whose PATH has every program of ours but some."""
    folder.mkdir()
    for place in ("/usr/local/bin", "/usr/bin", "/bin", "/usr/sbin", "/sbin"):
        for program in Path(place).iterdir():
            link = folder / program.name
            if program.name not in missing and not link.is_symlink():
                link.symlink_to(program)
    assert all(shutil.which(name) for name in missing), "it is not here in any case"
    return {"PATH": str(folder)}
