"""Which Apache Cassandra iolab can run, and on which Java."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

from iolab.errors import EngineError
from iolab.run.hosts.text import printable
from iolab.run.key_value.java import INSTALL, Java

OLDEST_JAVA: Final = 11
STARTS_ON: Final = frozenset({11, 17})
"""Releases of Java on which every version below was seen to start, with the options of `node`. Java
18 and later refuse the security manager that Cassandra sets."""

_SUPPORTED: Final = {
    (4, 0): frozenset({8, 11}),
    (4, 1): frozenset({8, 11}),
    (5, 0): frozenset({11, 17}),
}
"""What each series' own documentation supports ("Prerequisites" of its installation chapter)."""

_VERSION: Final = re.compile(r"(\d{1,3})\.(\d{1,3})\.(\d{1,3})")


@dataclass(frozen=True, slots=True)
class Version:
    """A release of Apache Cassandra that iolab can run."""

    text: str
    series: tuple[int, int]

    @property
    def has_units(self) -> bool:
        """Whether its settings have their unit in the value, not in the name (from 4.1 on)."""
        return self.series >= (4, 1)

    def supports(self, java: Java) -> bool:
        """Whether its own documentation names that release of Java."""
        return java.release in _SUPPORTED[self.series]


def version_of(text: str) -> Version:
    """The version that a study names. EngineError for one that iolab does not know how to run."""
    found = _VERSION.fullmatch(text)
    series = (int(found[1]), int(found[2])) if found else (0, 0)
    if series not in _SUPPORTED:
        known = ", ".join(f"{major}.{minor}.x" for major, minor in _SUPPORTED)
        raise EngineError(
            f"This iolab cannot run Apache Cassandra '{printable(text, 40)}'.",
            f"Set server.version to one of {known}.",
        )
    return Version(text, series)


def require_java(java: Java, version: Version, host: str) -> None:
    """EngineError for a Java on which Cassandra dies at its start."""
    if java.release not in STARTS_ON:
        raise EngineError(
            f"Java {printable(java.version, 40)} on host '{host}' cannot run Apache Cassandra "
            f"{version.text}, which starts on Java 11 and 17 alone.",
            INSTALL,
        )


def java_told(java: Java, version: Version) -> str:
    """The Java for records; it says so where Cassandra's own documentation does not name it."""
    told = printable(java.version, 60)
    if version.supports(java):
        return told
    major, minor = version.series
    return f"{told} (not officially supported by Cassandra {major}.{minor})"
