"""A study file as a tree of values that know where they come from."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator, Mapping
from typing import Any, Final

from msgspec import Struct, field

from iolab.core.toml import PARTS_MAX, DeepKeyError, parse_toml
from iolab.errors import Fault
from iolab.record import Record
from iolab.text import quote_value

KeyPath = tuple[str | int, ...]
"""Keys and array indices from the root, as one would subscript the parsed document."""

_BLANK = re.compile(r"(?:[ \t\r\n]|#[^\n]*)*")
_SPACE = re.compile(r"[ \t]*")
_BARE_KEY = re.compile(r"[A-Za-z0-9_-]+")

_STRING = re.compile(
    r'"""(?:\\.|[^\\])*?"{3,5}' r"|'''.*?'{3,5}" r'|"(?:\\.|[^"\\])*"' r"|'[^']*'",
    re.DOTALL,
)

_SCALAR = re.compile(r"[^,\]}#\r\n]+")

TEXT_CHARACTERS_MAX: Final = 1 << 20
"""A study of a thousand workloads fits ten times; a gigabyte by mistake is refused unread."""

FAULTS_MAX: Final = 100
"""Nobody reads more; the rest is counted."""

_SYNTAX_AT: Final = re.compile(r" \(at (?:line (\d+), column (\d+)|end of document)\)$")

_GIVEN_TWICE: Final = ("Cannot overwrite", "Cannot declare", "Duplicate inline table key")
"""How the reader of TOML begins to tell of a key or table that was there before."""


def line_number_by_key_path(text: str) -> dict[KeyPath, int]:
    """The line (from 1) of every table, key and array element of valid TOML `text`.

    A table's line is its header's, or that of its first key when it has no header; an element of an
    array of tables is found under its index.
    """
    return _TomlLineScanner(text).scan_line_number_by_key_path()


class _TomlLineScanner(Struct):
    """One pass over the text; `position` is the position of the next character to look at."""

    text: str
    position: int = 0
    lines: dict[KeyPath, int] = field(default_factory=dict)
    tables: dict[KeyPath, int] = field(default_factory=dict)
    _counted_to: int = 0
    _line: int = 1

    def scan_line_number_by_key_path(self) -> dict[KeyPath, int]:
        table: KeyPath = ()
        self._skip_match(_BLANK)
        while self.position < len(self.text):
            if self.text[self.position] == "[":
                table = self._scan_header()
            else:
                self._scan_key_value_pair(table)
            self._skip_match(_BLANK)
        return self.lines

    def _scan_header(self) -> KeyPath:
        line = self._count_lines_to_position()
        is_array = self.text.startswith("[[", self.position)
        self.position += 2 if is_array else 1
        keys = list(self._scan_dotted_key())
        self.position += 2 if is_array else 1
        path: KeyPath = ()
        for key in keys[:-1]:
            path = self._record_line_and_get_table_key_path((*path, key), line)
        path = (*path, keys[-1])
        if is_array:
            self.tables[path] = self.tables.get(path, -1) + 1
            self.lines.setdefault(path, line)
            path = (*path, self.tables[path])
        self.lines[path] = line  # also over the line of `[a.b]`, which may stand before `[a]`
        return path

    def _record_line_and_get_table_key_path(self, key_path: KeyPath, line_number: int) -> KeyPath:
        """The table that a header's inner key names: in an array of tables, its last element."""
        self.lines.setdefault(key_path, line_number)
        return (*key_path, self.tables[key_path]) if key_path in self.tables else key_path

    def _scan_key_value_pair(self, table: KeyPath) -> None:
        line = self._count_lines_to_position()
        path = table
        for key in self._scan_dotted_key():
            path = (*path, key)
            self.lines.setdefault(path, line)
        self.position += 1  # the equals sign
        self._skip_match(_SPACE)
        self._scan_value(path)

    def _scan_dotted_key(self) -> Iterator[str]:
        """The parts of a dotted key; stands at the character after it and its blanks when done."""
        while True:
            self._skip_match(_SPACE)
            match = _STRING.match(self.text, self.position) or _BARE_KEY.match(
                self.text, self.position
            )
            if match is None:
                return
            self.position = match.end()
            yield _unquote_key(match.group())
            self._skip_match(_SPACE)
            if not self.text.startswith(".", self.position):
                return
            self.position += 1

    def _scan_value(self, key_path: KeyPath) -> None:
        first = self.text[self.position]
        if first == "[":
            self._scan_array(key_path)
        elif first == "{":
            self._scan_inline_table(key_path)
        else:
            match = _STRING.match(self.text, self.position) or _SCALAR.match(
                self.text, self.position
            )
            self.position = match.end() if match else self.position + 1

    def _scan_array(self, key_path: KeyPath) -> None:
        self.position += 1
        index = 0
        self._skip_match(_BLANK)
        while not self.text.startswith("]", self.position):
            self.lines[(*key_path, index)] = self._count_lines_to_position()
            self._scan_value((*key_path, index))
            index += 1
            self._skip_match(_BLANK)
            if self.text.startswith(",", self.position):
                self.position += 1
                self._skip_match(_BLANK)
        self.position += 1

    def _scan_inline_table(self, key_path: KeyPath) -> None:
        self.position += 1
        self._skip_match(_BLANK)
        while not self.text.startswith("}", self.position):
            self._scan_key_value_pair(key_path)
            self._skip_match(_BLANK)
            if self.text.startswith(",", self.position):
                self.position += 1
                self._skip_match(_BLANK)
        self.position += 1

    def _skip_match(self, pattern: re.Pattern[str]) -> None:
        match = pattern.match(self.text, self.position)
        self.position = match.end() if match else self.position

    def _count_lines_to_position(self) -> int:
        """The line of the position; counted on from the last time, so a scan stays linear."""
        self._line += self.text.count("\n", self._counted_to, self.position)
        self._counted_to = self.position
        return self._line


def _unquote_key(key: str) -> str:
    if key[0] not in "\"'":
        return key
    return str(tomllib.loads(f"key = {key}")["key"])


class ValueOrigin(Record):
    """Where a value was written: a file and its line, or the option that set it (no line)."""

    file: str
    line: int | None = None


class FaultCollector:
    """The faults found so far, each once; beyond a limit they are only counted."""

    def __init__(self) -> None:
        self._found: dict[Fault, None] = {}
        self._more = 0
        self._set_once: set[tuple[ValueOrigin, str]] = set()

    def add(self, origin: ValueOrigin, message: str, hint: str) -> None:
        """Keep one more fault, told in two sentences."""
        fault = Fault(message, hint, origin.file, origin.line)
        if fault in self._found:
            return
        if len(self._found) < FAULTS_MAX:
            self._found[fault] = None
        else:
            self._more += 1

    def add_once(self, origin: ValueOrigin, about: str, message: str, hint: str) -> None:
        """As `add`, but once for what one option or line set on many elements at a time."""
        if (origin, about) not in self._set_once:
            self._set_once.add((origin, about))
            self.add(origin, message, hint)

    @property
    def all_faults(self) -> tuple[Fault, ...]:
        """Every fault in the order of the file; a last one counts those that were not kept."""
        ordered = sorted(self._found, key=lambda fault: (fault.line is None, fault.line or 0))
        if not self._more:
            return tuple(ordered)
        return (*ordered, Fault(f"There are {self._more} more faults.", "Correct these first."))


class StudyDocument(Struct):
    """The tree of a study: values of the file with values set over them, and its faults so far."""

    file: str
    tree: dict[str, Any]
    lines: Mapping[KeyPath, int]
    faults: FaultCollector
    overrides: dict[KeyPath, ValueOrigin] = field(default_factory=dict)

    def add_fault(self, key_path: KeyPath, message: str, hint: str, *, about: str = "") -> None:
        """Add a fault of the value at `key_path`, told in two sentences.

        With `about` it is told once of what one option or line set on many elements at a time.
        """
        if about:
            self.faults.add_once(self.origin_of(key_path), about, message, hint)
        else:
            self.faults.add(self.origin_of(key_path), message, hint)

    def origin_of(self, key_path: KeyPath) -> ValueOrigin:
        """The origin of the value at `key_path`, else of the nearest table around it."""
        for length in range(len(key_path), 0, -1):
            part = key_path[:length]
            if part in self.overrides:
                return self.overrides[part]
            if part in self.lines and not self._is_inside_overridden_table(part):
                return ValueOrigin(self.file, self.lines[part])
        return ValueOrigin(self.file)

    def assign(self, key_path: KeyPath, value: object, origin: ValueOrigin) -> None:
        """Set the value at `key_path`; tables around it are made where there are none."""
        table: Any = self.tree
        for length, key in enumerate(key_path[:-1], start=1):
            if isinstance(table, dict) and key not in table:
                table[str(key)] = {}
                self.overrides[key_path[:length]] = origin
            table = table[key]
        table[str(key_path[-1])] = value
        self.overrides[key_path] = origin

    def _is_inside_overridden_table(self, key_path: KeyPath) -> bool:
        """Whether a table or list around `key_path` was replaced as a whole."""
        return any(key_path[:length] in self.overrides for length in range(1, len(key_path)))


def read_document(text: str, file_name: str, faults: FaultCollector) -> StudyDocument | None:
    """The tree of `text`; None, with the fault, when it is not TOML or out of all proportion."""
    if len(text) > TEXT_CHARACTERS_MAX:
        message = f"The study has {len(text)} characters."
        faults.add(ValueOrigin(file_name), message, f"Give at most {TEXT_CHARACTERS_MAX}.")
        return None
    try:
        tree = parse_toml(text)
        lines = line_number_by_key_path(text)
    except tomllib.TOMLDecodeError as error:
        faults.add(*_syntax_fault(str(error), text, file_name))
        return None
    except DeepKeyError as error:
        message = f"A key has more than {PARTS_MAX} parts."
        faults.add(ValueOrigin(file_name, error.line), message, "Write plain tables and lists.")
        return None
    except ValueError:
        hint = "Give whole numbers of at most 18 digits."
        faults.add(ValueOrigin(file_name), "A number has thousands of digits.", hint)
        return None
    except RecursionError:
        hint = "Write plain tables and lists."
        faults.add(ValueOrigin(file_name), "The file nests values too deeply.", hint)
        return None
    return StudyDocument(file_name, tree, lines, faults)


def _syntax_fault(detail: str, text: str, file_name: str) -> tuple[ValueOrigin, str, str]:
    match = _SYNTAX_AT.search(detail)
    reason = detail[: match.start()] if match else detail
    if match and match.group(1):
        line = int(match.group(1))
        line_text = text.splitlines()[line - 1] if line <= len(text.splitlines()) else ""
        message = f"This is not TOML: {reason} in {quote_value(line_text.strip())}."
    else:
        line = text.rstrip("\n").count("\n") + 1
        message = f"This is not TOML: {reason} at the end of the file."
    hint = "Quote text, and close every quote and bracket."
    if reason.startswith(_GIVEN_TWICE):
        hint = "It was given before: leave one of them out."
    return ValueOrigin(file_name, line), message, hint
