"""From a study's host specs to hosts."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Final

from iolab.core.host import HostKind, HostSpec
from iolab.core.study import LINK_TIMEOUT_S
from iolab.hosts.connect import BootedHost, CommandHost, LocalHost, SlurmHost
from iolab.hosts.host import Host

if TYPE_CHECKING:
    from iolab.hosts.ssh_login import Logins

PUSHES_AT_ONCE: Final = 32
"""Hosts of commands that are being pushed to at a time. Each takes a process here, and a request to
what every user of a site shares: Slurm's controller, a cluster's API server."""


def hosts_of(
    specs: Iterable[HostSpec],
    agent: Path | None = None,
    logins: Logins | None = None,
    link_timeout_s: float = LINK_TIMEOUT_S,
) -> dict[str, Host]:
    """A host for each spec, by name, not connected yet.

    `agent` replaces the package's binary; hosts of one call share their `logins`.
    """
    wanted = tuple(specs)
    if logins is None and any(spec.kind is HostKind.SSH for spec in wanted):
        logins = _usual_logins(link_timeout_s)
    turns = asyncio.Semaphore(PUSHES_AT_ONCE)
    hosts = {spec.name: _host_of(spec, agent, logins, turns) for spec in wanted}
    for host in hosts.values():
        if host.spec.kind is not HostKind.VM:
            host.link_timeout_s = link_timeout_s
    return dict(hosts)


@asynccontextmanager
async def open_hosts(
    specs: Iterable[HostSpec],
    agent: Path | None = None,
    logins: Logins | None = None,
    link_timeout_s: float = LINK_TIMEOUT_S,
) -> AsyncIterator[dict[str, Host]]:
    """Hosts by name, not connected yet; every one is closed at the end, whatever happens."""
    hosts = hosts_of(specs, agent, logins, link_timeout_s)
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
            return BootedHost(spec)


# asyncssh and its ciphers take a quarter of a second to import; a local study does without.


def _usual_logins(link_timeout_s: float) -> Logins:
    from iolab.hosts.ssh import patient
    from iolab.hosts.ssh_login import Logins

    return Logins(patient(link_timeout_s))


def _ssh_host(spec: HostSpec, agent: Path | None, logins: Logins | None) -> Host:
    from iolab.hosts.ssh_host import SshHost

    return SshHost(spec, logins or _usual_logins(LINK_TIMEOUT_S), agent)
