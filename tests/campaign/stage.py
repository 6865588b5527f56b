"""Where a session of a campaign runs: its hosts, its processes, and what it has left there."""

from __future__ import annotations

import ctypes
import hashlib
import json
import mmap
import os
import re
import shutil
import signal
import struct
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import NoReturn

from tools import fleet

from iolab.cli.app import run_command_line
from iolab.core.run import RunStatus
from iolab.store.reader import SessionReader
from tests.fleet.bed import Bed
from tests.processes import run_program

ROLES = ("controller", "keeper", "agent", "engine")
SSH_ROLES = (*ROLES, "ssh")
"""Where a host is reached over ssh: its sshd of that session, too."""

ASIDE_LIMIT_S = 120.0
"""Another command beside a session; a busy machine is waited for."""

GONE_LIMIT_S, GONE_AFTER_LINK_S = 20.0, 80.0
"""After the end of a controller; where a link was cut, until both ends of it have noticed."""

SILENCE_S = 20.0
"""An agent that hears nothing of its controller for 15 s ends what it started."""

SITTING_LIMIT_S = 600.0
"""A lost host is tried for two minutes, and that may be twice. One whose agent is slow on each new
connection is lost anew, half a minute each time: thrice while files are laid out, twice a run."""

ALLOWED_EXITS = {0, 1, 2, 3, 4, 5, 6, 130}
COPY = "campaign-copy"
"""A folder beside the scratch folder, in which a copy of it is put."""
LIBC = ctypes.CDLL(None, use_errno=True)
PR_SET_PDEATHSIG = 1
STUDY = """\
format = 1
id = "campaign"
[[workload]]
id = "w"
engine = "{engine}"
rw = "{rw}"
bs = "16k"
iodepth = {depths}
numjobs = 2
filesize = "2m"
{rate}
[method]
warmup = "0s"
runtime = "{runtime}"
settle = "0s"
idle_watch = 0
generator_limit = false
on_failure = "{policy}"
"""


class Trouble(AssertionError):
    """What a user would have been hurt by; the first word says of which sort."""


def run(*words: str) -> str:
    """What a command of root's prints; it must succeed."""
    return run_program(words, check=True, timeout=60).stdout


@dataclass
class Stage:
    """One session on hosts of the bed: on this side of the first, or over ssh to each."""

    bed: Bed
    hosts: list[str]
    where: str
    study: str
    pid: int = 0
    code: int = 0
    changed: bool = False
    aborted: set[int] = field(default_factory=set)
    before: list[set[str]] = field(default_factory=list)
    seen: set[int] = field(default_factory=set)
    unmounted: dict[int, str] = field(default_factory=dict)
    strays: list[Path] = field(default_factory=list)
    away: Path | None = None
    surroundings: Callable[[Stage], None] | None = None

    def __post_init__(self) -> None:
        self.local = self.where == "local"
        base = self.bed.base
        self.folder = (
            self._seen(0, base / "target" / "store")
            if self.local
            else base / "stores" / self.hosts[0]
        )
        self.clock = mmap.mmap(-1, 8)
        self.log = base / f"log-{self.hosts[0]}"

    # The session

    @property
    def session(self) -> Path:
        """Where it is kept, as this process sees it."""
        return self.folder / "session"

    def set_up(self) -> None:
        """Nothing of an earlier session, and what is there before this one."""
        for host in range(len(self.hosts)):
            self._sweep(host)
        shutil.rmtree(self.folder, ignore_errors=True)
        self.folder.mkdir(parents=True)
        (self.folder / "study.toml").write_text(self.study, encoding="utf-8")
        (self.folder / "hosts.toml").write_text(self._inventory(), encoding="utf-8")
        os.sync()  # A loss of power is not to take these.
        self.log.write_bytes(b"")
        self.before = [set(self._things(host)) for host in range(len(self.hosts))]

    def begin(self, *, another: bool = False) -> None:
        """Start the controller: a new session, or one to be resumed, or another beside it."""
        if self.local:
            (self.target(0) / "data").mkdir(exist_ok=True)
        words = self.run_words("another" if another else "session")
        if not another and (self.session / "session.json").exists():
            words = self.resume_words()
        self.step_clock(0)
        self.pid = self._start(words)

    def run_words(self, name: str) -> list[str]:
        """The command line of a session of that name."""
        words = ["run", str(self._inner / "study.toml"), "--out", str(self._inner / name)]
        return [*words, *self.host_words(self.bed.base / "target" / "data"), "--quiet"]

    def resume_words(self) -> list[str]:
        """The command line that goes on with it."""
        changes = ["--accept-changes"] * self.changed
        return ["resume", str(self._inner / "session"), *changes, "--quiet"]

    def host_words(self, path: Path) -> list[str]:
        """The options that name the hosts, and where a session is on this machine, its target."""
        return ["--path", str(path)] if self.local else ["--hosts", str(self._inner / "hosts.toml")]

    @property
    def _inner(self) -> Path:
        """The folder of the session as its controller sees it."""
        return self.bed.base / "target" / "store" if self.local else self.folder

    def aside(self, words: Sequence[str]) -> int:
        """What another command beside the session exits with; Trouble where it does not end."""
        pid = self._start(words)
        end = time.monotonic() + ASIDE_LIMIT_S
        while not (ended := os.waitpid(pid, os.WNOHANG))[0]:
            if time.monotonic() > end:
                os.kill(pid, signal.SIGKILL)
                os.waitpid(pid, 0)
                raise Trouble(f"hang: {words[0]} beside the session does not come to its end")
            time.sleep(0.03)
        return os.waitstatus_to_exitcode(ended[1])

    def _start(self, words: Sequence[str]) -> int:
        pid = os.fork()
        if not pid:
            self._be_controller(list(words))
        return pid

    def _be_controller(self, words: list[str]) -> NoReturn:
        """Never comes back. Modules are there already; to read them takes a second."""
        code = 70
        try:
            LIBC.prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
            os.setsid()
            os.environ |= {"HOME": "/nonexistent", "IOLAB_DEBUG": "1"}
            out = os.open(self.log, os.O_WRONLY | os.O_APPEND)
            for number, to in enumerate((os.open(os.devnull, os.O_RDONLY), out, out)):
                os.dup2(to, number)
            if self.local:
                listener = self.bed.listener(self.hosts[0])
                for kind in ("net", "uts", "mnt"):
                    space = os.open(f"/proc/{listener}/ns/{kind}", os.O_RDONLY)
                    if LIBC.setns(space, 0):
                        raise OSError(ctypes.get_errno(), "setns")
            if self.surroundings:
                self.surroundings(self)
                program = Path(sys.executable).with_name("iolab")
                os.execv(program, [str(program), *words])  # noqa: S606 - as a user starts it
            self._bend_clock()
            sys.stdout, sys.stderr = open(1, "w"), open(2, "w")  # noqa: SIM115
            sys.argv = ["iolab", *words]
            code = run_command_line(words)
            sys.stdout.flush()
        finally:
            os._exit(code)

    def _bend_clock(self) -> None:
        real, real_ns = time.time, time.time_ns

        def offset_ns() -> int:
            return int(struct.unpack("q", self.clock[:8])[0])

        time.time = lambda: real() + offset_ns() / 1e9
        time.time_ns = lambda: real_ns() + offset_ns()

    def step_clock(self, by_ns: int) -> None:
        """Set the controller's clock so far beside the machine's."""
        self.clock[:8] = struct.pack("q", by_ns)

    def ended(self) -> int | None:
        """The controller's exit code, negative for a signal, once it has ended."""
        if not self.pid:
            return self.code
        pid, status = os.waitpid(self.pid, os.WNOHANG)
        if not pid:
            return None
        self.pid, self.code = 0, os.waitstatus_to_exitcode(status)
        return self.code

    # Its processes

    def pids(self, host: int, roles: Sequence[str]) -> list[int]:
        """The processes of those roles on a host; the controller belongs to any."""
        found = [self.pid] if "controller" in roles and self.pid else []
        processes = self.processes(host)
        agents = {pid for pid in processes if "iolab-agent" in _link(pid, "exe")}
        for pid in processes:
            words = _words(pid)
            engine = words[1:2] == ["engine"] or Path(words[0] if words else "").name == "fio"
            if engine:
                role = "engine"
            elif words and words[0].startswith("sshd"):
                role = "ssh"
            elif pid in agents:
                # The keeper forks the agent, and that the guard, which no fault is drawn for.
                above = _parent(pid)
                role = "keeper"
                if above in agents:
                    role = "guard" if _parent(above) in agents else "agent"
            else:
                continue
            if role in roles:
                found.append(pid)
        return found

    def processes(self, host: int) -> dict[int, str]:
        """All on a host but for its sshd that listens, and the controller; by name."""
        found = self.bed.sessions(self.hosts[host])
        found.pop(self.pid, None)
        self.seen.update(found)
        return found

    def signal(self, host: int, roles: Sequence[str], number: int) -> int:
        """Send a signal to those processes at once; how many were there."""
        count = 0
        for pid in self.pids(host, roles):
            try:
                os.kill(pid, number)
            except ProcessLookupError:
                continue
            count += 1
        return count

    # Its hosts

    def _seen(self, host: int, path: Path) -> Path:
        """A path of the host as this process reaches it."""
        listener = self.bed.listener(self.hosts[host])
        return Path(f"/proc/{listener}/root") / path.relative_to("/")

    def target(self, host: int) -> Path:
        """The file system below test on a host."""
        return self._seen(host, self.bed.base / "target")

    def device(self, host: int) -> str:
        """The loop device below it."""
        number = self.target(host).stat().st_dev
        link = Path(f"/sys/dev/block/{os.major(number)}:{os.minor(number)}")
        return link.resolve().name

    def address(self, name: str) -> str:
        """A host's own."""
        spec = self.bed.specs[name]
        assert spec.ssh is not None
        return spec.ssh.address

    def port(self, name: str) -> str:
        """The port of the bridge that a host hangs at."""
        return f"fv{self.bed.fleet.tag}-{int(name[1:])}"

    def mount(self, host: int, options: str) -> bool:
        """Mount the target of a host with those options; whether it could be done."""
        words = [*self._inside(host), "mount", "-o", options, str(self.bed.base / "target")]
        return subprocess.run(words, capture_output=True, check=False).returncode == 0

    def unmount(self, host: int) -> None:
        """Take the target's file system out of the host's tree; who has it open keeps it."""
        self.unmounted[host] = f"/dev/{self.device(host)}"
        run(*self._inside(host), "umount", "--lazy", str(self.bed.base / "target"))

    def mount_again(self) -> None:
        """Repair each file system that was aborted, and mount what was unmounted."""
        while self.unmounted:
            host, device = self.unmounted.popitem()
            image = self.bed.fleet.folder(self.hosts[host]) / "xfs"
            target = str(self.bed.base / "target")
            if f"{device}:" not in run("losetup", "-j", str(image)):
                device = run("losetup", "--find", "--show", "--direct-io=on", str(image)).strip()
                self.changed = True
            run(*self._inside(host), "mount", "-o", "noatime", device, target)
            subprocess.run(["losetup", "--detach", device], capture_output=True, check=False)
        while self.aborted:
            host = self.aborted.pop()
            self.changed = True  # Its device may now have another name.
            image = self.bed.fleet.folder(self.hosts[host]) / "xfs"
            target = str(self.bed.base / "target")
            run(*self._inside(host), "umount", target)
            device = run("losetup", "--find", "--show", "--direct-io=on", str(image)).strip()
            run(*self._inside(host), "mount", "-o", "noatime", device, target)
            run("losetup", "--detach", device)
            # What was removed of it just before was not on the device yet.
            shutil.rmtree(self.target(host) / COPY, ignore_errors=True)

    def scratch(self, host: int) -> Path | None:
        """The scratch folder of the session on a host, where it has one."""
        found = self.target(host).glob("**/iolab-scratch*/")
        return next((path for path in found if "campaign" not in str(path)), None)

    def tidy(self) -> list[str]:
        """Put back the session, and remove what faults have moved; the names of what was there."""
        there = [path.name for path in self.strays if path.exists()]
        for path in self.strays:
            shutil.rmtree(path, ignore_errors=True)
        self.strays = []
        if self.away:
            shutil.rmtree(self.session, ignore_errors=True)
            self.away.rename(self.session)
            self.away = None
        return there

    def repair(self) -> None:
        """After a trouble: nothing runs on the hosts, and their file systems work."""
        for host in range(len(self.hosts)):
            fleet.wait_until(lambda host=host: not self._killed(host))  # type: ignore[misc]
        self.mount_again()

    def _inside(self, host: int) -> tuple[str, ...]:
        return ("nsenter", "-t", str(self.bed.listener(self.hosts[host])), "-m")

    def _inventory(self) -> str:
        head = self.bed.inventory.read_text("utf-8").partition("[[host]]")[0]
        return head + "".join(
            f'[[host]]\nname = "{name}"\naddress = "{self.address(name)}"\n' for name in self.hosts
        )

    # What it leaves

    def await_gone(self, limit_s: float) -> None:
        """Until no process of the session runs; Trouble names those that do after the limit."""
        end = time.monotonic() + limit_s
        for host in range(len(self.hosts)):
            while left := self.processes(host):
                if time.monotonic() > end:
                    raise Trouble(f"process left: {sorted(left.values())} (host {host})")
                time.sleep(0.1)

    def left(self) -> list[str]:
        """Files, mounts, loop devices and control groups that were not there before."""
        return [
            f"{thing} (host {host})"
            for host, before in enumerate(self.before)
            for thing in sorted(set(self._things(host)) - before)
        ]

    def _things(self, host: int) -> Iterator[str]:
        for folder in (self.target(host), self.bed.tmp(self.hosts[host])):
            for path in folder.rglob("*"):
                place = str(path.relative_to(folder))
                if path.is_dir() and path.name.startswith("iolab-scratch"):
                    yield f"folder {place}"
                if path.is_dir() or place.startswith(("store/", "iolab-agent-")):
                    continue
                yield f"file {place}"
        table = Path(f"/proc/{self.bed.listener(self.hosts[host])}/mountinfo").read_text("utf-8")
        for line in table.splitlines():
            yield f"mount {line.split()[4]}"
        own = str(self.bed.fleet.folder(self.hosts[host]))
        names = run("losetup", "-lnO", "BACK-FILE").splitlines()
        yield from (f"loop device of {name}" for name in names if name.startswith(own))
        for group in Path("/sys/fs/cgroup").rglob("iolab-*"):
            # Others' sessions have groups, too; the name has the process that made it.
            if self.seen.intersection(map(int, re.findall(r"\d+", group.name)[:1])):
                yield f"control group {group}"

    def _sweep(self, host: int) -> None:
        """Whatever the session before has left."""
        fleet.wait_until(lambda: not self._killed(host))
        self.mount(host, "remount,rw")
        for path in [*self.target(host).iterdir()]:
            shutil.rmtree(path) if path.is_dir() else path.unlink()

    def _killed(self, host: int) -> int:
        pids = list(self.processes(host))
        for pid in pids:
            for number in (signal.SIGKILL, signal.SIGCONT):
                try:
                    os.kill(pid, number)
                except ProcessLookupError:
                    continue
        return len(pids)


def committed(session: Path) -> dict[str, str]:
    """A digest of all files of each run that is done."""
    found = {}
    for path in session.glob("points/*/run-?/manifest.json"):
        if json.loads(path.read_bytes())["status"] != RunStatus.DONE:
            continue
        digest = hashlib.sha256()
        for file in sorted(path.parent.rglob("*")):
            if file.is_file():
                digest.update(file.name.encode() + file.read_bytes())
        found[str(path.parent.relative_to(session))] = digest.hexdigest()
    return found


def complete(session: Path) -> None:
    """Trouble where the session has not the runs of its plan, each once and whole."""
    reader = SessionReader(session)
    planned = sorted((one.point.digest, one.repeat) for one in reader.plan.runs)
    stored = sorted((one.digest, one.repeat) for one in reader.results())
    if stored != planned or reader.done_runs() != frozenset(planned):
        raise Trouble(f"incomplete: {stored} of {planned}, done {sorted(reader.done_runs())}")
    if left := list(session.glob("points/*/.*")):
        raise Trouble(f"draft left in the session: {left}")


def _words(pid: int) -> list[str]:
    try:
        return os.fsdecode(Path(f"/proc/{pid}/cmdline").read_bytes()).split("\0")
    except OSError:
        return []


def _link(pid: int, name: str) -> str:
    try:
        return str(Path(f"/proc/{pid}/{name}").readlink())
    except OSError:
        return ""


def _parent(pid: int) -> int:
    try:
        stat = Path(f"/proc/{pid}/stat").read_text("utf-8")
    except OSError:
        return 0
    return int(stat.rpartition(")")[2].split()[1])
