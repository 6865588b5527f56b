"""Whether hosts are still what a session began with: only then may its runs be mixed."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from iolab.errors import Fault
from iolab.model.host import HostFacts
from iolab.plan.guard import FIO
from iolab.plan.wording import shown


def changes(before: Mapping[str, HostFacts], now: Mapping[str, HostFacts]) -> tuple[Fault, ...]:
    """What differs on the hosts in ways that change results; empty when nothing does."""
    return tuple(
        Fault(
            f"The {what} of host {shown(name)} was {shown(was)}, it is {shown(found)}.",
            "Results before and after would not compare.",
        )
        for name, facts in before.items()
        if name in now
        for what, of in _MATTERS.items()
        if (was := of(facts)) != (found := of(now[name]))
    )


def _fio(facts: HostFacts) -> str:
    tool = facts.tool(FIO)
    return (tool.version or "") if tool is not None else ""


def _target(facts: HostFacts) -> str:
    """The file system and the device that carries it."""
    seen = facts.target
    if seen is None:
        return ""
    return f"{seen.fs_type} on {', '.join(seen.devices) or seen.mount_source}"


_MATTERS: Final[dict[str, Callable[[HostFacts], str]]] = {
    "kernel": lambda facts: facts.kernel.release,
    "processor": lambda facts: f"{facts.cpu.model}, {facts.cpu.threads} threads",
    "fio": _fio,
    "target": _target,
}
