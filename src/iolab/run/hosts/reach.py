"""From a study's host specs to hosts."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Final

from iolab.model.host import HostKind, HostSpec
from iolab.run.hosts.base import Host
from iolab.run.hosts.command import CommandHost
from iolab.run.hosts.local import LocalHost
from iolab.run.hosts.slurm import SlurmHost
from iolab.run.hosts.vm import VmHost

if TYPE_CHECKING:
    from iolab.run.hosts.ssh.login import Logins

PUSHES_AT_ONCE: Final = 32
"""Hosts of commands that are being pushed to at a time. Each takes a process here, and a request to
what every user of a site shares: Slurm's controller, a cluster's API server."""


def hosts_of(
    specs: Iterable[HostSpec], agent: Path | None = None, logins: Logins | None = None
) -> dict[str, Host]:
    """A host for each spec, by name, not connected yet.

    `agent` replaces the package's binary; hosts of one call share their `logins`.
    """
    wanted = tuple(specs)
    if logins is None and any(spec.kind is HostKind.SSH for spec in wanted):
        logins = _usual_logins()
    turns = asyncio.Semaphore(PUSHES_AT_ONCE)
    return {spec.name: _host_of(spec, agent, logins, turns) for spec in wanted}


@asynccontextmanager
async def open_hosts(
    specs: Iterable[HostSpec], agent: Path | None = None, logins: Logins | None = None
) -> AsyncIterator[dict[str, Host]]:
    """Hosts by name, not connected yet; every one is closed at the end, whatever happens."""
    hosts = hosts_of(specs, agent, logins)
    try:
        yield hosts
    finally:
        await asyncio.gather(*(host.close() for host in hosts.values()), return_exceptions=True)


def _host_of(
    spec: HostSpec, agent: Path | None, logins: Logins | None, turns: asyncio.Semaphore
) -> Host:
    match spec.kind:
        case HostKind.LOCAL:
            return LocalHost(spec, agent)
        case HostKind.COMMAND:
            return CommandHost(spec, agent, turns)
        case HostKind.SSH:
            return _ssh_host(spec, agent, logins)
        case HostKind.SLURM:
            return SlurmHost(spec, turns, agent)
        case HostKind.VM:
            return VmHost(spec)


# asyncssh and its ciphers take a quarter of a second to import; a local study does without.


def _usual_logins() -> Logins:
    from iolab.run.hosts.ssh.login import Logins

    return Logins()


def _ssh_host(spec: HostSpec, agent: Path | None, logins: Logins | None) -> Host:
    from iolab.run.hosts.ssh.host import SshHost

    return SshHost(spec, logins or _usual_logins(), agent)
