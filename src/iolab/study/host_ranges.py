"""Names written short: `client[01-12]`, `node[1-3,7]`, `a,b[1-2]`, as Slurm and pdsh write them."""

from __future__ import annotations

import itertools
import math
import re
from typing import Any, Final

from iolab.study.document import KeyPath, StudyDocument, ValueOrigin
from iolab.text import quote_value

HOSTS_MAX: Final = 1000
"""The largest fleet that one controller is made for; a larger number is a slip of a digit."""

TEXT_CHARACTERS: Final = 4096
"""A list of a few hundred irregular names fits."""

DIGITS_MAX: Final = 9
"""More digits than any numbering of hosts has."""

_PIECE: Final = re.compile(r"\[([^\[\]]*)\]|([^\[\]]+)")
_STEP: Final = re.compile(r"(\d+)(?:-(\d+))?")
_HINT: Final = "Write ranges as in client[01-12] or node[1-3,7]."

RANGED: Final = ("name", "address", "storage_address", "node")
"""Keys of a host that may hold ranges; the others are the same for all of them."""

SHARED: Final = ("node",)
"""Of those, what several hosts may have in common: as many in a row each."""

LISTS: Final = ("hosts", "storage")
"""Keys of a configuration that list hosts."""


class HostNamesError(ValueError):
    """Text that names no hosts: what is wrong with it, of a range after its key, and what to do."""

    def __init__(self, message: str, hint: str) -> None:
        super().__init__(f"{message}. {hint}")
        self.message = message
        self.hint = hint


def has_ranges(text: str) -> bool:
    """Whether the text may stand for more than one name."""
    return any(character in text for character in "[],")


def expand_names(text: str) -> tuple[str, ...]:
    """Every name that `text` stands for, in the order written. Raises HostNamesError.

    Zeros in front of a range's start are kept: `[01-12]` is 01, 02 ... 12. Several ranges in one
    name make a product, the first varies slowest.
    """
    if len(text) > TEXT_CHARACTERS:
        raise HostNamesError(f"has {len(text)} characters", f"Give at most {TEXT_CHARACTERS}.")
    names: list[str] = []
    for part in _split_at_commas(text):
        names += _names_from_ranges(text, part, HOSTS_MAX - len(names))
    return tuple(names)


def _split_at_commas(text: str) -> list[str]:
    """The parts between commas that stand outside of brackets."""
    parts, depth = [""], 0
    for character in text:
        depth += {"[": 1, "]": -1}.get(character, 0)
        if character == "," and depth == 0:
            parts.append("")
        else:
            parts[-1] += character
    return [part.strip() for part in parts]


def _names_from_ranges(text: str, name_with_range: str, max_name_count: int) -> list[str]:
    pieces = list(_PIECE.finditer(name_with_range))
    if not name_with_range or "".join(piece.group() for piece in pieces) != name_with_range:
        raise HostNamesError(f"is {quote_value(text)}", _HINT)
    choices = [
        [piece[2]] if piece[2] is not None else _range_numbers(text, piece[1], max_name_count)
        for piece in pieces
    ]
    count = math.prod(len(choice) for choice in choices)
    if count > max_name_count:
        raise _too_many_hosts_error(text)
    return ["".join(chosen) for chosen in itertools.product(*choices)]


def _range_numbers(text: str, ranges: str, max_name_count: int) -> list[str]:
    """The numbers of one pair of brackets."""
    numbers: list[str] = []
    for step in ranges.split(","):
        match = _STEP.fullmatch(step.strip())
        if match is None or max(len(match[1]), len(match[2] or "")) > DIGITS_MAX:
            raise HostNamesError(f"is {quote_value(text)}", _HINT)
        first, last = match[1], match[2] or match[1]
        if int(last) < int(first):
            hint = f"Write [{last}-{first}]." if len(first) == len(last) else _HINT
            raise HostNamesError(f"is {quote_value(text)}, whose range runs backwards", hint)
        if last[0] == "0" and len(last) != len(first):
            hint = "Write as many digits on both sides, as in [01-12]."
            raise HostNamesError(f"is {quote_value(text)}, whose zeros do not agree", hint)
        if int(last) - int(first) + 1 > max_name_count:
            raise _too_many_hosts_error(text)
        numbers += [str(n).zfill(len(first)) for n in range(int(first), int(last) + 1)]
    return numbers


def _too_many_hosts_error(text: str) -> HostNamesError:
    return HostNamesError(
        f"is {quote_value(text)}, more than {HOSTS_MAX} hosts", "Correct the range."
    )


def expand_host_ranges(document: StudyDocument) -> None:
    """Replace hosts and lists of hosts that hold ranges by what they stand for.

    Every host keeps the lines of what it was written as. What is no range at all is left for the
    tables to judge.
    """
    _expand_host_tables(document)
    configurations = document.tree.get("configuration")
    for index, element in enumerate(configurations if isinstance(configurations, list) else ()):
        for key in LISTS:
            if isinstance(element, dict) and isinstance(element.get(key), list):
                _expand_list_in_element(document, ("configuration", index, key), key, element)


def _expand_host_tables(document: StudyDocument) -> None:
    elements = document.tree.get("host")
    if not isinstance(elements, list) or not any(_has_range_keys(element) for element in elements):
        return
    hosts: list[object] = []
    origins: dict[KeyPath, ValueOrigin] = {("host",): document.origin_of(("host",))}
    for index, element in enumerate(elements):
        path: KeyPath = ("host", index)
        for copy in _host_tables_of_element(document, path, element):
            here: KeyPath = ("host", len(hosts))
            origins[here] = document.origin_of(path)
            for key in copy if isinstance(copy, dict) else ():
                origins[(*here, key)] = document.origin_of((*path, key))
            hosts.append(copy)
    if len(hosts) > HOSTS_MAX:
        message = f"There are {len(hosts)} hosts."
        document.add_fault(("host",), message, f"Give at most {HOSTS_MAX}.")
        del hosts[HOSTS_MAX:]
    document.tree["host"] = hosts
    document.overrides.update(origins)


def _has_range_keys(element: object) -> bool:
    return isinstance(element, dict) and any(
        isinstance(element.get(key), str) and has_ranges(element[key]) for key in RANGED
    )


def _host_tables_of_element(
    document: StudyDocument, key_path: KeyPath, element: object
) -> list[object]:
    """The hosts that one element stands for; none when its ranges have faults."""
    if not isinstance(element, dict) or not isinstance(element.get("name"), str):
        return [element]
    lists: dict[str, tuple[str, ...]] = {}
    for key in RANGED:
        if isinstance(element.get(key), str) and has_ranges(element[key]):
            if (
                values := _expanded_names_or_add_fault(document, (*key_path, key), element[key])
            ) is None:
                return []
            lists[key] = values
    names = lists.get("name", (element["name"],))
    others = {key: values for key, values in lists.items() if key != "name"}
    for key, values in others.items():
        fits = len(names) % len(values) == 0 if key in SHARED else len(names) == len(values)
        if not fits:
            _add_count_mismatch_fault(
                document, (*key_path, key), element[key], (len(names), len(values))
            )
            return []
    return [
        {
            **element,
            "name": name,
            **{key: values[at * len(values) // len(names)] for key, values in others.items()},
        }
        for at, name in enumerate(names)
    ]


def _add_count_mismatch_fault(
    document: StudyDocument, key_path: KeyPath, text: str, counts: tuple[int, int]
) -> None:
    """Add the fault of a key that stands for another number than the names of the hosts."""
    host, key = key_path[1], key_path[2]
    message = (
        f"name of host {host + 1 if isinstance(host, int) else ''} stands for {counts[0]} hosts, "
        f"its {key} {quote_value(text)} for {counts[1]}."
    )
    hint = "Give each host one address, or leave address out where names can be resolved."
    if key == "storage_address":
        hint = "Give each host one address."
    if key in SHARED:
        hint = "Give each node as many hosts."
    document.add_fault(key_path, message, hint)


def _expand_list_in_element(
    document: StudyDocument, key_path: KeyPath, key: str, element: dict[str, Any]
) -> None:
    """A configuration's list of hosts with the ranges in it expanded."""
    names: list[Any] = []
    origins: dict[KeyPath, ValueOrigin] = {}
    for index, name in enumerate(element[key]):
        ranged = isinstance(name, str) and has_ranges(name)
        copies = (
            _expanded_names_or_add_fault(document, (*key_path, index), name) if ranged else (name,)
        )
        for copy in copies or ():
            origins[(*key_path, len(names))] = document.origin_of((*key_path, index))
            names.append(copy)
    if names != element[key]:
        element[key] = names
        document.overrides.update({key_path: document.origin_of(key_path), **origins})


def _expanded_names_or_add_fault(
    document: StudyDocument, key_path: KeyPath, text: str
) -> tuple[str, ...] | None:
    try:
        return expand_names(text)
    except HostNamesError as fault:
        section, index, key = key_path[0], key_path[1], key_path[2]
        number = index + 1 if isinstance(index, int) else 0
        document.add_fault(key_path, f"{key} of {section} {number} {fault.message}.", fault.hint)
        return None
