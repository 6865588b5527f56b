"""The check of programs: hosts of one run do the same work only by the same version."""

from __future__ import annotations

from typing import Final

from iolab.analyse.checks.registry import Said, check, indicative, valid
from iolab.analyse.view import RunView
from iolab.model.run import HostRun

VERSIONS_SHOWN: Final = 4
"""Versions named in the sentence; the facts of the session have them all."""


@check("versions-differ", "Hosts with different versions of the engine", needs_load=False)
def versions_differ(view: RunView) -> Said:
    """Whether every host that made load has the same version of the engine."""
    hosts: dict[str, list[str]] = {}
    for host in view.hosts:
        if version := _version(view, host):
            hosts.setdefault(version, []).append(host.host)
    if len(hosts) < 2:
        return valid("All hosts have one version of the engine.", versions=len(hosts))
    # The rarest first: it is the one to be replaced.
    rarest = sorted(hosts, key=lambda version: (len(hosts[version]), version))
    who = ", ".join(f"{version} on {_some(hosts[version])}" for version in rarest[:VERSIONS_SHOWN])
    return indicative(
        f"Hosts have different versions of the engine: {who}.",
        versions=len(hosts),
        hosts_apart=len(hosts[rarest[0]]),
    )


def _some(names: list[str]) -> str:
    return names[0] if len(names) == 1 else f"{names[0]} and {len(names) - 1} more"


def _version(view: RunView, host: HostRun) -> str:
    """As the host's own program says it, else as its output does."""
    facts = view.facts_of(host)
    tool = facts.tool(view.record.run.point.job.engine.value) if facts is not None else None
    return (tool.version if tool is not None else None) or host.engine_version
