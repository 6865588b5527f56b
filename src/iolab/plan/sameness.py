"""Whether a session may go on: hosts, versions and study are still what it began with. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import fields
from typing import Any, Final

from iolab import __version__
from iolab.errors import Fault
from iolab.model.host import HostFacts
from iolab.model.study import Study
from iolab.plan.wording import shown

NOT_COMPARABLE: Final = "Results before and after would not compare."

VALUE_CHARACTERS: Final = 60
"""Of a value that changed: enough to tell which it is."""


def changes(before: Mapping[str, HostFacts], now: Mapping[str, HostFacts]) -> tuple[Fault, ...]:
    """What differs on the hosts in ways that change results; empty when nothing does."""
    return tuple(
        Fault(
            f"The {what} of host {shown(name)} was {shown(was)}, it is {shown(found)}.",
            NOT_COMPARABLE,
        )
        for name, facts in before.items()
        if name in now
        for what, was, found in _differences(facts, now[name])
        if was != found
    )


def version_changes(began: str, now: str = __version__) -> tuple[Fault, ...]:
    """The fault of an iolab that may measure otherwise than the one that the session began with.

    Releases that differ in the last number alone measure alike.
    """
    if began.split(".")[:2] == now.split(".")[:2]:
        return ()
    happened = f"The session began with iolab {shown(began)}, this is {shown(now)}."
    return (Fault(happened, NOT_COMPARABLE),)


def study_changes(before: Study, now: Study) -> tuple[Fault, ...]:
    """Each part of the study that is another than it was, by its table."""
    parts = ("method", "telemetry", "target")
    found = [
        (f"{part}.{key}", was, value)
        for part in parts
        for key, was, value in _fields(getattr(before, part), getattr(now, part))
    ]
    for part, key in (("workloads", "id"), ("configurations", "id"), ("hosts", "name")):
        was = {getattr(item, key): item for item in getattr(before, part)}
        is_ = {getattr(item, key): item for item in getattr(now, part)}
        for name in dict.fromkeys((*was, *is_)):
            if was.get(name) != is_.get(name):
                found += _item(f"{part.removesuffix('s')}.{name}", was.get(name), is_.get(name))
    if before.guests != now.guests:
        found += _item("vm", before.guests, now.guests)
    return tuple(
        Fault(f"{shown(what)} was {_value(was)}, it is {_value(value)}.", NOT_COMPARABLE)
        for what, was, value in found
    )


def _item(what: str, was: object, value: object) -> Iterable[tuple[str, object, object]]:
    if was is None or value is None:
        return [(what, "there" if was else "not there", "there" if value else "gone")]
    return [(f"{what}.{key}", old, new) for key, old, new in _fields(was, value)]


def _fields(before: Any, now: Any) -> Iterator[tuple[str, object, object]]:  # noqa: ANN401
    """The fields of two dataclasses of a kind that differ."""
    for field in fields(before):
        was, value = getattr(before, field.name), getattr(now, field.name)
        if was != value:
            yield field.name, was, value


def _value(value: object) -> str:
    text = str(value)
    return shown(text if len(text) <= VALUE_CHARACTERS else f"{text[:VALUE_CHARACTERS]}…")


def _differences(before: HostFacts, now: HostFacts) -> Iterator[tuple[str, str, str]]:
    """What matters of a host, as it was and as it is."""
    for what, of in _MATTERS.items():
        yield what, of(before), of(now)
    names = dict.fromkeys(tool.name for facts in (before, now) for tool in facts.tools)
    for name in names:
        yield name, _version(before, name), _version(now, name)


def _version(facts: HostFacts, name: str) -> str:
    tool = facts.tool(name)
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
    "target": _target,
}
