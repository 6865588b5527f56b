"""From a study's host specs to hosts."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from iolab.model.host import HostKind, HostSpec
from iolab.run.hosts.base import Host
from iolab.run.hosts.command import CommandHost
from iolab.run.hosts.local import LocalHost


def hosts_of(specs: Iterable[HostSpec], agent: Path | None = None) -> dict[str, Host]:
    """A host for each spec, by name, not connected yet; `agent` replaces the package's binary."""
    return {spec.name: _host_of(spec, agent) for spec in specs}


def _host_of(spec: HostSpec, agent: Path | None) -> Host:
    match spec.kind:
        case HostKind.LOCAL:
            return LocalHost(spec, agent)
        case HostKind.COMMAND:
            return CommandHost(spec, agent)
