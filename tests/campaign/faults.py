"""The faults that a campaign draws: what each does to a host, and how it is taken back."""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import resource
import shutil
import signal
import struct
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import combinations
from pathlib import Path
from random import Random

from msgspec.structs import replace

from iolab.record import Record
from tests.campaign.stage import COPY, ROLES, SSH_ROLES, Stage, run
from tests.fleet.test_busy_disk import throttled

XFS_ABORT, FREEZE, THAW = 0x8004587D, 0xC0045877, 0xC0045878
"""XFS_IOC_GOINGDOWN, FIFREEZE and FITHAW of linux/fs.h and xfs_fs.h."""

NO_LOG_FLUSH = 2
"""As a loss of power is: what was not flushed is gone."""

FILL = "fill-of-the-campaign"
HOLDS_S = (0.3, 1.0, 2.0, 4.0)
LONG_HOLDS_S = {"link": (6.0, 25.0), "stop": (17.0,)}
"""Rarely so long that a silent host or controller is told as lost."""

READ_ONLY_LIMIT_S = 3.0
WHENS = ("start", "engine", "commit")
"""A moment after the controller's start, an engine's, or a new run's commit."""


Do = Callable[["Stage", "Fault", contextlib.ExitStack], object]


class Fault(Record):
    """One fault: on which of the hosts, when, and for how long where it can be taken back."""

    kind: str
    roles: tuple[str, ...]
    host: int
    when: str
    delay_s: float
    hold_s: float

    @property
    def is_lasting(self) -> bool:
        """Whether it is there for a while, and then taken back."""
        return self.kind not in SIGNALS and self.kind not in MOMENTS

    def __str__(self) -> str:
        held = f", for {self.hold_s:.1f} s" if self.is_lasting else ""
        name = f"{self.kind} {'+'.join(self.roles)}".strip()
        return f"{name} on host {self.host}, {self.delay_s:.2f} s after {self.when}{held}"


def draw(dice: Random, where: str, hosts: int) -> Fault:
    """A fault that can be on such hosts."""
    kinds = [kind for kind in KINDS if where != "local" or not kind.startswith("link")]
    kind = dice.choices(kinds, [WEIGHTS.get(kind, 1) for kind in kinds])[0]
    some = ROLES if where == "local" else SSH_ROLES
    every = [roles for count in range(1, len(some) + 1) for roles in combinations(some, count)]
    when = dice.choice(WHENS)
    roles: tuple[str, ...] = ()
    if kind in OF_PROCESSES:
        roles = dice.choice(every)
    elif kind.startswith("limit"):
        roles = (dice.choice(ROLES),)
    return Fault(
        kind,
        roles,
        dice.randrange(hosts),
        when,
        dice.uniform(0, 3.0 if when == "start" else 0.8),
        dice.choice((*HOLDS_S, *LONG_HOLDS_S.get(kind.split()[0], ()))),
    )


def draw_lasting(dice: Random, fault: Fault, *, cut: bool) -> Fault:
    """What a run must not outlast: a controller that is killed, or one that is cut off."""
    kind = dice.choice(("link cut", "link half-open")) if cut else "kill"
    # Most of all without the engine: somebody else has to end it.
    chances = dict(zip(ROLES, (1.0, 0.8, 0.8, 0.3), strict=True))
    roles = tuple(role for role in ROLES if dice.random() < chances[role])
    # By then the engine that lays the files out has ended, and the one that outlasts all runs.
    delay_s = dice.uniform(3.0, 6.0)
    return replace(
        fault,
        kind=kind,
        roles=() if cut else roles,
        when="engine",
        delay_s=delay_s,
        hold_s=25.0,
    )


@contextmanager
def applied(fault: Fault, stage: Stage) -> Iterator[bool]:
    """Within, the fault holds; whether it could be done. A kill and a clock's step stay."""
    with contextlib.ExitStack() as undo:
        try:
            done = KINDS[fault.kind](stage, fault, undo)
        except OSError as error:
            # What it was to hit has just gone, or is of an aborted file system.
            if error.errno not in {errno.ESRCH, errno.ENOENT, errno.EIO}:
                raise
            done = False
        yield done is not False


def _signal(stage: Stage, fault: Fault, _: contextlib.ExitStack) -> bool:
    return stage.signal(fault.host, fault.roles, SIGNALS[fault.kind]) > 0


def _stop(stage: Stage, fault: Fault, undo: contextlib.ExitStack) -> bool:
    pids = stage.pids(fault.host, fault.roles)
    undo.callback(_send, pids, signal.SIGCONT)
    return _send(pids, signal.SIGSTOP) > 0


def _send(pids: list[int], number: int) -> int:
    return sum(stage_kill(pid, number) for pid in pids)


def stage_kill(pid: int, number: int) -> bool:
    """Whether the process was there to be told."""
    try:
        os.kill(pid, number)
    except ProcessLookupError:
        return False
    return True


def _cut(stage: Stage, fault: Fault, undo: contextlib.ExitStack) -> None:
    undo.enter_context(stage.bed.unplugged(stage.hosts[fault.host]))


def _half_open(stage: Stage, fault: Fault, undo: contextlib.ExitStack) -> None:
    """The host hears and is not heard, or the other way round."""
    name = stage.hosts[fault.host]
    if fault.hold_s * 10 % 20 < 10:
        words, to = ["ip", "-n", stage.bed.fleet.namespace(name)], stage.bed.gateway
    else:
        words, to = ["ip"], stage.address(name)
    run(*words, "route", "add", "blackhole", f"{to}/32")
    undo.callback(run, *words, "route", "del", "blackhole", f"{to}/32")


def _delayed(stage: Stage, fault: Fault, undo: contextlib.ExitStack) -> None:
    """A few kilobytes a second, each waiting for those before it."""
    port = stage.port(stage.hosts[fault.host])
    shape = ("tbf", "rate", "64kbit", "burst", "4kb", "latency", "3s")
    run("tc", "qdisc", "add", "dev", port, "root", *shape)
    undo.callback(run, "tc", "qdisc", "del", "dev", port, "root")


def _full(stage: Stage, fault: Fault, undo: contextlib.ExitStack) -> None:
    path = stage.target(fault.host) / FILL
    undo.callback(path.unlink, missing_ok=True)
    file = os.open(path, os.O_CREAT | os.O_WRONLY)
    try:
        at, step = 0, 64 << 20
        while step >= 4096:
            try:
                os.posix_fallocate(file, at, step)
                at += step
            except OSError as error:
                if error.errno != errno.ENOSPC:
                    raise
                step //= 4
    finally:
        os.close(file)


def _read_only(stage: Stage, fault: Fault, undo: contextlib.ExitStack) -> bool:
    """As soon as no file is open to be written."""
    end = time.monotonic() + READ_ONLY_LIMIT_S
    while not stage.mount(fault.host, "remount,ro"):
        if time.monotonic() > end:
            return False
        time.sleep(0.02)
    undo.callback(stage.mount, fault.host, "remount,rw")
    return True


def _abort(stage: Stage, fault: Fault, _: contextlib.ExitStack) -> None:
    """Every I/O fails from now on, until the stage mounts it again."""
    stage.aborted.add(fault.host)
    _tell(stage, fault.host, XFS_ABORT, struct.pack("I", NO_LOG_FLUSH))


def _freeze(stage: Stage, fault: Fault, undo: contextlib.ExitStack) -> None:
    _tell(stage, fault.host, FREEZE)
    undo.callback(_tell, stage, fault.host, THAW)


def _tell(stage: Stage, host: int, request: int, argument: bytes = b"\0\0\0\0") -> None:
    folder = os.open(stage.target(host), os.O_RDONLY)
    try:
        fcntl.ioctl(folder, request, argument)
    finally:
        os.close(folder)


def _slow(stage: Stage, fault: Fault, undo: contextlib.ExitStack) -> None:
    undo.enter_context(throttled(stage.device(fault.host)))


def _clock(stage: Stage, fault: Fault, _: contextlib.ExitStack) -> None:
    """The controller's clock, against those of the hosts; theirs are the machine's own."""
    sign = 1 if fault.delay_s * 1000 % 2 < 1 else -1
    stage.step_clock(sign * round(fault.hold_s * 60e9))


def _limited(resource_name: int, most: int) -> Do:
    """What `ulimit` allows a process, from now on; it may have more than that already."""

    def apply(stage: Stage, fault: Fault, undo: contextlib.ExitStack) -> bool:
        pids = stage.pids(fault.host, fault.roles)
        for pid in pids:
            before = resource.prlimit(pid, resource_name)
            resource.prlimit(pid, resource_name, (most, before[1]))
            undo.callback(_unlimited, pid, resource_name, before)
        return bool(pids)

    return apply


def _unlimited(pid: int, resource_name: int, before: tuple[int, int]) -> None:
    with contextlib.suppress(ProcessLookupError):
        resource.prlimit(pid, resource_name, before)


def _copied(stage: Stage, fault: Fault, undo: contextlib.ExitStack) -> bool:
    """As a backup does it; then the copy is cleaned as what a killed session has left."""
    scratch = stage.scratch(fault.host)
    if scratch is None:
        return False
    copy = stage.target(fault.host) / COPY
    undo.callback(shutil.rmtree, copy, ignore_errors=True)
    shutil.copytree(scratch, copy / scratch.name, ignore_dangling_symlinks=True)
    inner = stage.bed.base / "target" / COPY
    hosts = [] if stage.local else stage.host_words(inner)
    stage.aside(["clean", "--yes", "--path", str(inner), *hosts])
    return True


def _moved(stage: Stage, fault: Fault, _: contextlib.ExitStack) -> bool:
    scratch = stage.scratch(fault.host)
    if scratch is None:
        return False
    aside = stage.target(fault.host) / f"campaign-moved-{len(stage.strays)}"
    stage.strays.append(Path(scratch.rename(aside)))
    return True


def _replaced(stage: Stage, fault: Fault, undo: contextlib.ExitStack) -> bool:
    """Another folder of that name, as if it had been made there."""
    scratch = stage.scratch(fault.host)
    if scratch is None or not _moved(stage, fault, undo):
        return False
    scratch.mkdir(mode=0o700)
    stage.strays.append(scratch)
    return True


def _removed(stage: Stage, fault: Fault, _: contextlib.ExitStack) -> bool:
    scratch = stage.scratch(fault.host)
    if scratch is not None:
        shutil.rmtree(scratch, ignore_errors=True)
    return scratch is not None


def _unmounted(stage: Stage, fault: Fault, _: contextlib.ExitStack) -> None:
    stage.unmount(fault.host)


def _session_lost(stage: Stage, _: Fault, __: contextlib.ExitStack) -> bool:
    """Moved away, and found again before it is resumed."""
    if not (stage.session / "session.json").exists():
        return False
    stage.away = Path(stage.session.rename(stage.session.with_name("campaign-away")))
    return True


def _session_read_only(stage: Stage, _: Fault, undo: contextlib.ExitStack) -> bool:
    """Nothing can be made, changed or removed there, by root neither."""
    if not stage.session.exists():
        return False
    undo.callback(_chattr, "-i", stage.session)
    return _chattr("+i", stage.session)


def _chattr(how: str, path: Path) -> bool:
    words = ["chattr", "-f", "-R", how, str(path)]
    return subprocess.run(words, capture_output=True, check=False).returncode == 0


def _second_session(stage: Stage, _: Fault, undo: contextlib.ExitStack) -> None:
    undo.callback(shutil.rmtree, stage.folder / "second", ignore_errors=True)
    stage.aside(stage.run_words("second"))


def _second_resume(stage: Stage, _: Fault, __: contextlib.ExitStack) -> bool:
    if not (stage.session / "session.json").exists():
        return False
    stage.aside(stage.resume_words())
    return True


SIGNALS = {
    "kill": signal.SIGKILL,
    "interrupt": signal.SIGINT,
    "terminate": signal.SIGTERM,
    "hang up": signal.SIGHUP,
    "broken pipe": signal.SIGPIPE,
}
OF_PROCESSES = {*SIGNALS, "stop"}
ENDING = {*SIGNALS, "limit of files", "limit of memory", "limit of file size"}
"""What may end a process before it has removed its files."""

MOMENTS = {
    "clock step",
    "folder moved",
    "folder replaced",
    "folder removed",
    "session lost",
    "second session",
    "second resume",
    "folder copied",
    "unmounted",
}
"""What happens once, and stays until the session has ended."""

KINDS: dict[str, Do] = {
    **dict.fromkeys(SIGNALS, _signal),
    "stop": _stop,
    "limit of files": _limited(resource.RLIMIT_NOFILE, 3),
    "limit of memory": _limited(resource.RLIMIT_AS, 1 << 20),
    "limit of file size": _limited(resource.RLIMIT_FSIZE, 4096),
    "folder copied": _copied,
    "folder moved": _moved,
    "folder replaced": _replaced,
    "folder removed": _removed,
    "unmounted": _unmounted,
    "session lost": _session_lost,
    "session read-only": _session_read_only,
    "second session": _second_session,
    "second resume": _second_resume,
    "link cut": _cut,
    "link half-open": _half_open,
    "link delayed": _delayed,
    "file system full": _full,
    "file system read-only": _read_only,
    "file system aborted": _abort,
    "file system frozen": _freeze,
    "file system slow": _slow,
    "clock step": _clock,
}
WEIGHTS = {"kill": 6, "stop": 3}
"""There are fifteen combinations of processes, and one of most others."""
