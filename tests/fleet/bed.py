"""A fleet for tests: its hosts' specs, what lives on them, and ways to break them."""

from __future__ import annotations

import asyncio
import itertools
import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from msgspec.structs import replace
from tools import fleet

from iolab.core.host import HostSpec, SshRoute
from iolab.core.study import LINK_TIMEOUT_S
from iolab.hosts.connect import open_hosts
from iolab.hosts.host import Host
from iolab.hosts.message import ReplyStream
from iolab.hosts.ssh import DEFAULT_SSH_LINK_SETTINGS, SshLinkSettings
from iolab.hosts.ssh_host import SshConnections
from iolab.study.inventory import parse_inventory
from tests.processes import run_program

T = TypeVar("T")
GONE_LIMIT_S = 20.0
VISIT_LIMIT_S = 60.0
_NUMBERS = itertools.count()
NO_CONFIG = Path("/dev/null")


@dataclass(frozen=True)
class Bed:
    """A fleet that stands."""

    fleet: fleet.Fleet

    @property
    def base(self) -> Path:
        return self.fleet.base

    @property
    def inventory(self) -> Path:
        return self.base / "inventory.toml"

    @property
    def specs(self) -> dict[str, HostSpec]:
        text = self.inventory.read_text("utf-8")
        return {spec.name: spec for spec in parse_inventory(text, "inventory.toml")}

    @property
    def gateway(self) -> str:
        """The controller's own address on the fleet's network."""
        subnet = json.loads((self.base / "fleet.json").read_text("utf-8"))["subnet"]
        return f"{fleet.NETWORK}.{subnet}.{fleet.BRIDGE_HOST}"

    def spec(self, name: str, **changes: Any) -> HostSpec:
        """A host's spec with another way to it."""
        spec = self.specs[name]
        return replace(spec, ssh=replace(route_of(spec), **changes))

    def tmp(self, name: str) -> Path:
        """What the host sees as /tmp."""
        return self.fleet.folder(name) / "tmp"

    def agents(self, name: str) -> list[Path]:
        """The files in the host's folder of agents."""
        return sorted(self.tmp(name).glob("iolab-agent-*/*"))

    def log(self, name: str) -> str:
        """What the host's sshd has logged."""
        return (self.fleet.folder(name) / "sshd.log").read_text("utf-8")

    def processes(self, name: str) -> dict[int, str]:
        """What runs on the host, by process id."""
        words = ["ip", "netns", "pids", self.fleet.namespace(name)]
        pids = run_program(words, check=True).stdout.split()
        found = {}
        for pid in pids:
            try:
                found[int(pid)] = Path(f"/proc/{pid}/comm").read_text("utf-8").strip()
            except (FileNotFoundError, ProcessLookupError):
                continue
        return found

    def listener(self, name: str) -> int:
        # A new sshd empties the file before it writes its number there.
        return int((self.fleet.folder(name) / "sshd.pid").read_text("utf-8") or 0)

    def sessions(self, name: str) -> dict[int, str]:
        """What runs on the host but for the sshd that listens."""
        return {
            pid: comm for pid, comm in self.processes(name).items() if pid != self.listener(name)
        }

    def wait_until_alone(self, name: str) -> None:
        """Until nothing of ours runs on the host; AssertionError names what is left."""
        deadline = time.monotonic() + GONE_LIMIT_S
        while left := self.sessions(name):
            assert time.monotonic() < deadline, f"still on {name}: {left}"
            time.sleep(0.05)

    def link(self, name: str, state: str) -> None:
        """Pull the host's network cable, or put it in again."""
        namespace = self.fleet.namespace(name)
        subprocess.run(["ip", "-n", namespace, "link", "set", "eth0", state], check=True)

    @contextmanager
    def unplugged(self, name: str) -> Iterator[None]:
        self.link(name, "down")
        try:
            yield
        finally:
            self.link(name, "up")

    @contextmanager
    def stopped(self, name: str, *, sessions: bool = False) -> Iterator[None]:
        """The host's sshd, or all that runs in its sessions, does nothing for a while."""
        pids = list(self.sessions(name)) if sessions else [self.listener(name)]
        for pid in pids:
            os.kill(pid, signal.SIGSTOP)
        try:
            yield
        finally:
            for pid in pids:
                try:
                    os.kill(pid, signal.SIGCONT)
                except ProcessLookupError:
                    continue

    def kill_sshd(self, name: str) -> None:
        """Every sshd of the host, listener and sessions, dies at once."""
        for pid, comm in self.processes(name).items():
            if comm == "sshd":
                os.kill(pid, signal.SIGKILL)

    def start_sshd(self, name: str) -> None:
        fleet.end_all(self.fleet.namespace(name))
        fleet.start(self.fleet, name)


@contextmanager
def bed(hosts: int, storage: str = "own") -> Iterator[Bed]:
    """A fleet of our own; what test runs that were killed have left is removed first."""
    tool = [sys.executable, str(Path(fleet.__file__))]
    for folder in fleet.BASES.glob("iolab-fleet-t*"):
        dead = re.fullmatch(r"iolab-fleet-(t(\d+)x\d+)", folder.name)
        if dead and not Path(f"/proc/{dead[2]}").exists():
            subprocess.run([*tool, "down", "--name", dead[1]], check=True, timeout=60)
    name = f"t{os.getpid()}x{next(_NUMBERS)}"
    words = ["up", "--name", name, "--hosts", str(hosts), "--storage", storage]
    subprocess.run([*tool, *words], check=True, timeout=120, stdout=subprocess.DEVNULL)
    try:
        yield Bed(fleet.Fleet(name))
    finally:
        subprocess.run([*tool, "down", "--name", name], check=True, timeout=60)


def visit(
    work: Callable[..., Awaitable[T]],
    *specs: HostSpec,
    agent: Path | None = None,
    limits: SshLinkSettings = DEFAULT_SSH_LINK_SETTINGS,
    config: Path = NO_CONFIG,
    link_timeout_s: float = LINK_TIMEOUT_S,
) -> T:
    """Open the hosts, connect them side by side, do the work with them, and close them."""

    async def body() -> T:
        logins = SshConnections(limits, config)
        async with open_hosts(specs, agent, logins, link_timeout_s) as hosts:
            await asyncio.gather(*(host.connect() for host in hosts.values()))
            return await work(*hosts.values())

    async def within() -> T:
        async with asyncio.timeout(VISIT_LIMIT_S):
            return await body()

    return asyncio.run(within())


async def nothing(*hosts: Host) -> None:
    """The work of a visit that is only to arrive."""


def run(host: Host, argv: list[str]) -> ReplyStream:
    """A program on the host, with its messages."""
    limits: dict[str, Any] = {"wall_limit_s": None, "output_limit_bytes": 1 << 20}
    return host.stream("run", argv=argv, env={}, cwd=None, start_at_real_ns=None, **limits)


async def sleeper(host: Host) -> None:
    """Start a process on the host that outlasts every test, and wait until it runs."""
    message = await anext(run(host, ["sleep", "1000"]))
    assert message.message_type == "started"


def route_of(spec: HostSpec) -> SshRoute:
    assert spec.ssh is not None
    return spec.ssh
