"""Where each key of a TOML text stands, since tomllib reads values but tells no lines.

The text must already have been read by tomllib without a fault: this scanner walks over valid TOML
and checks nothing.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass, field

Path = tuple[str | int, ...]
"""Keys and array indices from the root, as one would subscript the parsed document."""


def locate(text: str) -> dict[Path, int]:
    """The line (from 1) of every table, key and array element of valid TOML `text`.

    A table's line is its header's, or that of its first key when it has no header; an element of an
    array of tables is found under its index.
    """
    return _Scanner(text).scan()


_BLANK = re.compile(r"(?:[ \t\r\n]|#[^\n]*)*")
_SPACE = re.compile(r"[ \t]*")
_BARE_KEY = re.compile(r"[A-Za-z0-9_-]+")
_STRING = re.compile(
    r'"""(?:\\.|[^\\])*?"{3,5}' r"|'''.*?'{3,5}" r'|"(?:\\.|[^"\\])*"' r"|'[^']*'",
    re.DOTALL,
)
_SCALAR = re.compile(r"[^,\]}#\r\n]+")


@dataclass(slots=True)
class _Scanner:
    """One pass over the text; `at` is the position of the next character to look at."""

    text: str
    at: int = 0
    lines: dict[Path, int] = field(default_factory=dict)
    tables: dict[Path, int] = field(default_factory=dict)
    _counted_to: int = 0
    _line: int = 1

    def scan(self) -> dict[Path, int]:
        table: Path = ()
        self._skip(_BLANK)
        while self.at < len(self.text):
            if self.text[self.at] == "[":
                table = self._header()
            else:
                self._pair(table)
            self._skip(_BLANK)
        return self.lines

    def _header(self) -> Path:
        line = self._line_here()
        is_array = self.text.startswith("[[", self.at)
        self.at += 2 if is_array else 1
        keys = list(self._keys())
        self.at += 2 if is_array else 1
        path: Path = ()
        for key in keys[:-1]:
            path = self._current((*path, key), line)
        path = (*path, keys[-1])
        if is_array:
            self.tables[path] = self.tables.get(path, -1) + 1
            self.lines.setdefault(path, line)
            path = (*path, self.tables[path])
        self.lines[path] = line  # also over the line of `[a.b]`, which may stand before `[a]`
        return path

    def _current(self, path: Path, line: int) -> Path:
        """The table that a header's inner key names: in an array of tables, its last element."""
        self.lines.setdefault(path, line)
        return (*path, self.tables[path]) if path in self.tables else path

    def _pair(self, table: Path) -> None:
        line = self._line_here()
        path = table
        for key in self._keys():
            path = (*path, key)
            self.lines.setdefault(path, line)
        self.at += 1  # the equals sign
        self._skip(_SPACE)
        self._value(path)

    def _keys(self) -> Iterator[str]:
        """The parts of a dotted key; stands at the character after it and its blanks when done."""
        while True:
            self._skip(_SPACE)
            match = _STRING.match(self.text, self.at) or _BARE_KEY.match(self.text, self.at)
            if match is None:
                return
            self.at = match.end()
            yield _unquoted(match.group())
            self._skip(_SPACE)
            if not self.text.startswith(".", self.at):
                return
            self.at += 1

    def _value(self, path: Path) -> None:
        first = self.text[self.at]
        if first == "[":
            self._array(path)
        elif first == "{":
            self._inline_table(path)
        else:
            match = _STRING.match(self.text, self.at) or _SCALAR.match(self.text, self.at)
            self.at = match.end() if match else self.at + 1

    def _array(self, path: Path) -> None:
        self.at += 1
        index = 0
        self._skip(_BLANK)
        while not self.text.startswith("]", self.at):
            self.lines[(*path, index)] = self._line_here()
            self._value((*path, index))
            index += 1
            self._skip(_BLANK)
            if self.text.startswith(",", self.at):
                self.at += 1
                self._skip(_BLANK)
        self.at += 1

    def _inline_table(self, path: Path) -> None:
        self.at += 1
        self._skip(_BLANK)
        while not self.text.startswith("}", self.at):
            self._pair(path)
            self._skip(_BLANK)
            if self.text.startswith(",", self.at):
                self.at += 1
                self._skip(_BLANK)
        self.at += 1

    def _skip(self, pattern: re.Pattern[str]) -> None:
        match = pattern.match(self.text, self.at)
        self.at = match.end() if match else self.at

    def _line_here(self) -> int:
        """The line of the position; counted on from the last time, so a scan stays linear."""
        self._line += self.text.count("\n", self._counted_to, self.at)
        self._counted_to = self.at
        return self._line


def _unquoted(key: str) -> str:
    if key[0] not in "\"'":
        return key
    return str(tomllib.loads(f"key = {key}")["key"])
