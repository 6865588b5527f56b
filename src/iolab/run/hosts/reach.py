"""From a study's host specs to hosts."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from iolab.errors import HostError
from iolab.model.host import HostKind, HostSpec
from iolab.run.hosts.base import Host
from iolab.run.hosts.command import CommandHost
from iolab.run.hosts.local import LocalHost


def hosts_of(specs: Iterable[HostSpec], agent: Path | None = None) -> dict[str, Host]:
    """A host for each spec, by name, not connected yet; `agent` replaces the package's binary."""
    return {spec.name: _host_of(spec, agent) for spec in specs}


def _host_of(spec: HostSpec, agent: Path | None) -> Host:
    if spec.kind is HostKind.LOCAL:
        return LocalHost(spec, agent)
    if spec.kind is HostKind.COMMAND:
        return CommandHost(spec, agent)
    happened = f"Host '{spec.name}' is of kind '{spec.kind}', which cannot be reached yet."
    raise HostError(happened, "Give it a command that reaches it, as described in how-to/hosts.")
