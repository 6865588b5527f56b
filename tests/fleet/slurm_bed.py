"""A Slurm cluster for tests: a real slurmctld and two real slurmd, from the system's packages.

    python -m tests.fleet.slurm_bed daemons BASE    what `cluster` starts in a process name space
    python -m tests.fleet.slurm_bed node BASE NAME  one node, in name spaces for mounts and its name

Each node has its own host name, /tmp and target; they share this machine's network and clock. When
the first process of the name space ends, the kernel ends everything in it: daemons, steps, agents.
That is also what happens when the tests themselves are killed.
"""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from tests.processes import run_program

BASES = Path("/var/tmp")  # not below /tmp: every node has its own
NODES = ("n1", "n2")
REPOSITORY = Path(__file__).parents[2]
THIS_MODULE = (sys.executable, "-S", "-m", "tests.fleet.slurm_bed")
READY_LIMIT_S = 30.0
COMMAND_LIMIT_S = 60.0

CONFIG = """\
ClusterName=iolab
SlurmctldHost={controller}(127.0.0.1)
SlurmUser=root
SlurmdUser=root
AuthType=auth/none
CredType=cred/none
SlurmctldPort={ports[0]}
SlurmctldPidFile={base}/slurmctld.pid
SlurmctldLogFile={base}/slurmctld.log
StateSaveLocation={base}/state
SlurmdPidFile={base}/%n.pid
SlurmdLogFile={base}/%n.log
SlurmdSpoolDir={base}/spool/%n
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core_Memory
SchedulerType=sched/builtin
MpiDefault=none
SwitchType=switch/none
MailProg=/bin/true
ReturnToService=2
KillWait=5
NodeName=n1 NodeAddr=127.0.0.1 Port={ports[1]} CPUs=1 RealMemory=1000 State=UNKNOWN
NodeName=n2 NodeAddr=127.0.0.1 Port={ports[2]} CPUs=1 RealMemory=1000 State=UNKNOWN
PartitionName=all Nodes=n[1-2] Default=YES MaxTime=INFINITE State=UP
"""


@dataclass(frozen=True)
class Cluster:
    """A cluster that stands. `init` is the first process of its name space, as seen from here."""

    base: Path
    init: int

    @property
    def environment(self) -> dict[str, str]:
        """What a program needs to find the cluster's controller."""
        path = f"{Path(sys.executable).parent}:/usr/bin:/bin:/usr/sbin:/sbin"
        return {"HOME": str(self.base), "PATH": path, "SLURM_CONF": str(self.base / "slurm.conf")}

    @property
    def target(self) -> Path:
        """The target directory's path, the same on both nodes."""
        return self.base / "target"

    def on(self, node: str, part: str) -> Path:
        """What the node sees as its `target` or its `tmp`."""
        return self.base / "nodes" / node / part

    def slurm(self, *words: str) -> str:
        """What a command of Slurm's printed."""
        done = self.run(*words)
        assert done.returncode == 0, (words, done.stderr)
        return done.stdout

    def run(self, *words: str, **more: str) -> subprocess.CompletedProcess[str]:
        """Any command, with the cluster in its environment."""
        return run_program(
            ["setpriv", "--pdeathsig", "KILL", *words],
            env={**self.environment, **more},
            timeout=COMMAND_LIMIT_S,
        )

    @contextmanager
    def allocation(self, *options: str) -> Iterator[dict[str, str]]:
        """An allocation without a process in it; what a program inside of it would see."""
        said = self.run("salloc", "--no-shell", *options).stderr
        job = next(word for word in said.split() if word.isdecimal())
        nodes = self.slurm("squeue", "-h", "-j", job, "-o", "%N").strip()
        try:
            yield {"SLURM_JOB_ID": job, "SLURM_JOB_NODELIST": nodes}
        finally:
            self.run("scancel", job)
            wait_until(lambda: not self.slurm("squeue", "-h").strip())

    def programs(self) -> list[str]:
        """The names of all that runs on the nodes, the daemons left out."""
        from tests.e2e.sessions import descendants  # the daemons run this file by its path

        # An agent's runs are in a process name space below the nodes' own, so this goes by parents.
        daemons = ("slurm", "python")
        found = descendants(self.init).values()
        return sorted(name for name in found if not name.startswith(daemons))

    def wait_until_alone(self) -> None:
        """Until nothing but the daemons runs on the nodes."""
        wait_until(lambda: not self.programs() and not self.slurm("squeue", "-h", "-s").strip())


@contextmanager
def cluster() -> Iterator[Cluster]:
    """A cluster of our own, whose nodes are idle; it is gone afterwards, with all it ran."""
    for left in BASES.glob("iolab-slurm-*"):
        # Of tests that were killed; the kernel has ended all that ran there.
        if not Path(f"/proc/{left.name.split('-')[2]}").exists():
            shutil.rmtree(left)
    base = Path(tempfile.mkdtemp(prefix=f"iolab-slurm-{os.getpid()}-", dir=BASES))
    base.chmod(0o755)
    for folder in ("state", "target", *(f"spool/{node}" for node in NODES)):
        (base / folder).mkdir(parents=True)
    for node in NODES:
        (base / "nodes" / node / "target").mkdir(parents=True)
        (base / "nodes" / node / "tmp").mkdir()
        (base / "nodes" / node / "tmp").chmod(0o1777)
    text = CONFIG.format(base=base, controller=socket.gethostname(), ports=free_ports(3))
    (base / "slurm.conf").write_text(text, encoding="utf-8")
    words = ["setpriv", "--pdeathsig", "KILL", "unshare", "--pid", "--fork", "--kill-child=KILL"]
    words += ["--mount-proc", *THIS_MODULE, "daemons", str(base)]
    with (base / "daemons.log").open("wb") as log:
        outer = subprocess.Popen(
            words, stdin=subprocess.DEVNULL, stdout=log, stderr=log, cwd=REPOSITORY
        )
    try:
        yield _ready(base, outer.pid)
    finally:
        outer.kill()
        outer.wait(timeout=COMMAND_LIMIT_S)
        wait_until(lambda: not _users(base))
        shutil.rmtree(base)


def wait_until(condition: object) -> None:
    """Try until it holds; AssertionError after a limit."""
    assert callable(condition)
    deadline = time.monotonic() + READY_LIMIT_S
    while not condition():
        assert time.monotonic() < deadline, "the cluster did not come so far"
        time.sleep(0.05)


def free_ports(count: int) -> list[int]:
    """Ports that nobody listens at; all held at once, so that they differ."""
    held = [socket.create_server(("127.0.0.1", 0)) for _ in range(count)]
    ports = [one.getsockname()[1] for one in held]
    for one in held:
        one.close()
    return ports


def daemons(base: Path) -> None:
    """The first process of the name space: start all three, and reap until it is killed."""
    config = str(base / "slurm.conf")
    subprocess.Popen(["slurmctld", "-D", "-f", config])
    for node in NODES:
        words = ["unshare", "--mount", "--uts", "--propagation", "private"]
        subprocess.Popen([*words, *THIS_MODULE, "node", str(base), node])
    while True:
        try:
            os.wait()
        except ChildProcessError:
            signal.pause()


def become_node(base: Path, node: str) -> None:
    """Inside its name spaces: give the node its name, /tmp and target, then its slurmd."""
    folder = base / "nodes" / node
    socket.sethostname(node)
    binds: Mapping[Path, str] = {folder / "target": str(base / "target"), folder / "tmp": "/tmp"}
    for source, place in binds.items():
        subprocess.run(["mount", "--bind", source, place], check=True, timeout=COMMAND_LIMIT_S)
    os.chdir("/")
    words = ["slurmd", "-D", "-N", node, "-f", str(base / "slurm.conf")]
    os.execvp(words[0], words)  # noqa: S606 - this process is to be slurmd


def _ready(base: Path, outer: int) -> Cluster:
    """The cluster as soon as both nodes are idle."""
    children = Path(f"/proc/{outer}/task/{outer}/children")
    wait_until(lambda: children.read_text("utf-8").split())
    made = Cluster(base, int(children.read_text("utf-8").split()[0]))

    def idle() -> bool:
        states = made.run("sinfo", "-h", "-N", "-o", "%T").stdout.split()
        return states == ["idle"] * len(NODES)

    try:
        wait_until(idle)
    except AssertionError:
        said = (base / "daemons.log").read_text("utf-8", "replace")
        raise AssertionError(f"Slurm does not come up:\n{said[-4000:]}") from None
    return made


def _users(base: Path) -> list[str]:
    """Processes that have the cluster's folder in their words or their mounts."""
    found = []
    for process in Path("/proc").iterdir():
        if process.name.isdecimal() and int(process.name) != os.getpid():
            try:
                mounts = (process / "mounts").read_text("utf-8", "replace")
            except OSError:
                continue
            if str(base) in mounts:
                found.append(process.name)
    return found


if __name__ == "__main__":
    if sys.argv[1] == "daemons":
        daemons(Path(sys.argv[2]))
    become_node(Path(sys.argv[2]), sys.argv[3])
