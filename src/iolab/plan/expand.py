"""Ranges in a study's hosts, expanded: `name = "client[01-12]"` becomes twelve hosts."""

from __future__ import annotations

from typing import Any, Final

from iolab.plan.document import Document, Faults, Origin
from iolab.plan.locate import Path
from iolab.plan.ranges import HOSTS_MAX, RangeFault, expand, has_ranges
from iolab.plan.wording import shown

RANGED: Final = ("name", "address", "storage_address", "node")
"""Keys of a host that may hold ranges; the others are the same for all of them."""

SHARED: Final = ("node",)
"""Of those, what several hosts may have in common: as many in a row each."""

LISTS: Final = ("hosts", "storage")
"""Keys of a configuration that list hosts."""


def expand_hosts(document: Document, faults: Faults) -> None:
    """Replace hosts and lists of hosts that hold ranges by what they stand for.

    Every host keeps the lines of what it was written as. What is no range at all is left for the
    tables to judge.
    """
    _expand_elements(document, faults)
    configurations = document.tree.get("configuration")
    for index, element in enumerate(configurations if isinstance(configurations, list) else ()):
        for key in LISTS:
            if isinstance(element, dict) and isinstance(element.get(key), list):
                _expand_list(document, ("configuration", index, key), key, element, faults)


def _expand_elements(document: Document, faults: Faults) -> None:
    written = document.tree.get("host")
    if not isinstance(written, list) or not any(_is_ranged(element) for element in written):
        return
    hosts: list[object] = []
    origins: dict[Path, Origin] = {("host",): document.where(("host",))}
    for index, element in enumerate(written):
        path: Path = ("host", index)
        for copy in _copies(document, path, element, faults):
            here: Path = ("host", len(hosts))
            origins[here] = document.where(path)
            for key in copy if isinstance(copy, dict) else ():
                origins[(*here, key)] = document.where((*path, key))
            hosts.append(copy)
    if len(hosts) > HOSTS_MAX:
        happened = f"There are {len(hosts)} hosts."
        faults.add(document.where(("host",)), happened, f"Give at most {HOSTS_MAX}.")
        del hosts[HOSTS_MAX:]
    document.tree["host"] = hosts
    document.overrides.update(origins)


def _is_ranged(element: object) -> bool:
    return isinstance(element, dict) and any(
        isinstance(element.get(key), str) and has_ranges(element[key]) for key in RANGED
    )


def _copies(document: Document, path: Path, element: object, faults: Faults) -> list[object]:
    """The hosts that one element stands for; none when its ranges have faults."""
    if not isinstance(element, dict) or not isinstance(element.get("name"), str):
        return [element]
    lists: dict[str, tuple[str, ...]] = {}
    for key in RANGED:
        if isinstance(element.get(key), str) and has_ranges(element[key]):
            if (found := _expanded(document, (*path, key), element[key], faults)) is None:
                return []
            lists[key] = found
    names = lists.get("name", (element["name"],))
    others = {key: found for key, found in lists.items() if key != "name"}
    for key, found in others.items():
        fits = len(names) % len(found) == 0 if key in SHARED else len(names) == len(found)
        if not fits:
            _tell_misfit(document, (*path, key), element[key], (len(names), len(found)), faults)
            return []
    return [
        {
            **element,
            "name": name,
            **{key: found[at * len(found) // len(names)] for key, found in others.items()},
        }
        for at, name in enumerate(names)
    ]


def _tell_misfit(
    document: Document, path: Path, text: str, counts: tuple[int, int], faults: Faults
) -> None:
    """Add the fault of a key that stands for another number than the names of the hosts."""
    host, key = path[1], path[2]
    happened = (
        f"name of host {host + 1 if isinstance(host, int) else ''} stands for {counts[0]} hosts, "
        f"its {key} {shown(text)} for {counts[1]}."
    )
    do = "Give each host one address, or leave address out where names can be resolved."
    if key == "storage_address":
        do = "Give each host one address."
    if key in SHARED:
        do = "Give each node as many hosts."
    faults.add(document.where(path), happened, do)


def _expand_list(
    document: Document, path: Path, key: str, element: dict[str, Any], faults: Faults
) -> None:
    """A configuration's list of hosts with the ranges in it expanded."""
    names: list[Any] = []
    origins: dict[Path, Origin] = {}
    for index, name in enumerate(element[key]):
        ranged = isinstance(name, str) and has_ranges(name)
        found = _expanded(document, (*path, index), name, faults) if ranged else (name,)
        for one in found or ():
            origins[(*path, len(names))] = document.where((*path, index))
            names.append(one)
    if names != element[key]:
        element[key] = names
        document.overrides.update({path: document.where(path), **origins})


def _expanded(document: Document, path: Path, text: str, faults: Faults) -> tuple[str, ...] | None:
    try:
        return expand(text)
    except RangeFault as fault:
        section, index, key = path[0], path[1], path[2]
        number = index + 1 if isinstance(index, int) else 0
        faults.add(document.where(path), f"{key} of {section} {number} {fault.happened}.", fault.do)
        return None
