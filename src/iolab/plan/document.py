"""A study file as a tree of values that know where they come from."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from iolab.errors import Fault
from iolab.plan.locate import Path, locate
from iolab.plan.wording import shown

TEXT_CHARACTERS_MAX: Final = 1 << 20
"""A study of a thousand workloads fits ten times; a gigabyte by mistake is refused unread."""

FAULTS_MAX: Final = 100
"""Nobody reads more; the rest is counted."""


@dataclass(frozen=True, slots=True)
class Origin:
    """Where a value was written: a file and its line, or the option that set it (no line)."""

    file: str
    line: int | None = None


@dataclass(slots=True)
class Document:
    """The tree of a study: values of the file with values set over them."""

    file: str
    tree: dict[str, Any]
    lines: Mapping[Path, int]
    overrides: dict[Path, Origin] = field(default_factory=dict)

    def where(self, path: Path) -> Origin:
        """The origin of the value at `path`, else of the nearest table around it."""
        for length in range(len(path), 0, -1):
            part = path[:length]
            if part in self.overrides:
                return self.overrides[part]
            if part in self.lines and not self._overridden(part):
                return Origin(self.file, self.lines[part])
        return Origin(self.file)

    def assign(self, path: Path, value: object, origin: Origin) -> None:
        """Set the value at `path`; tables around it are made where there are none."""
        table: Any = self.tree
        for length, key in enumerate(path[:-1], start=1):
            if isinstance(table, dict) and key not in table:
                table[str(key)] = {}
                self.overrides[path[:length]] = origin
            table = table[key]
        table[str(path[-1])] = value
        self.overrides[path] = origin

    def _overridden(self, path: Path) -> bool:
        """Whether a table or list around `path` was replaced as a whole."""
        return any(path[:length] in self.overrides for length in range(1, len(path)))


class Faults:
    """The faults found so far, each once; beyond a limit they are only counted."""

    def __init__(self) -> None:
        self._found: dict[Fault, None] = {}
        self._more = 0
        self._set_once: set[tuple[Origin, str]] = set()

    def add(self, origin: Origin, happened: str, do: str) -> None:
        """Keep one more fault, told in two sentences."""
        fault = Fault(happened, do, origin.file, origin.line)
        if fault in self._found:
            return
        if len(self._found) < FAULTS_MAX:
            self._found[fault] = None
        else:
            self._more += 1

    def add_once(self, origin: Origin, about: str, happened: str, do: str) -> None:
        """As `add`, but once for what one option or line set on many elements at a time."""
        if (origin, about) not in self._set_once:
            self._set_once.add((origin, about))
            self.add(origin, happened, do)

    @property
    def all(self) -> tuple[Fault, ...]:
        """Every fault in the order of the file; a last one counts those that were not kept."""
        ordered = sorted(self._found, key=lambda fault: (fault.line is None, fault.line or 0))
        if not self._more:
            return tuple(ordered)
        return (*ordered, Fault(f"There are {self._more} more faults.", "Correct these first."))


def read_document(text: str, file_name: str, faults: Faults) -> Document | None:
    """The tree of `text`; None, with the fault, when it is not TOML or out of all proportion."""
    if len(text) > TEXT_CHARACTERS_MAX:
        happened = f"The study has {len(text)} characters."
        faults.add(Origin(file_name), happened, f"Give at most {TEXT_CHARACTERS_MAX}.")
        return None
    try:
        tree = tomllib.loads(text)
        lines = locate(text)
    except tomllib.TOMLDecodeError as error:
        faults.add(*_syntax(str(error), text, file_name))
        return None
    except ValueError:
        do = "Give whole numbers of at most 18 digits."
        faults.add(Origin(file_name), "A number has thousands of digits.", do)
        return None
    except RecursionError:
        do = "Write plain tables and lists."
        faults.add(Origin(file_name), "The file nests values too deeply.", do)
        return None
    return Document(file_name, tree, lines)


_SYNTAX_AT: Final = re.compile(r" \(at (?:line (\d+), column (\d+)|end of document)\)$")


def _syntax(message: str, text: str, file_name: str) -> tuple[Origin, str, str]:
    match = _SYNTAX_AT.search(message)
    reason = message[: match.start()] if match else message
    if match and match.group(1):
        line = int(match.group(1))
        written = text.splitlines()[line - 1] if line <= len(text.splitlines()) else ""
        happened = f"This is not TOML: {reason} in {shown(written.strip())}."
    else:
        line = text.rstrip("\n").count("\n") + 1
        happened = f"This is not TOML: {reason} at the end of the file."
    return Origin(file_name, line), happened, "Quote text, and close every quote and bracket."
