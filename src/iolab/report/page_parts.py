"""Parts of a report's page that several modules make."""

from __future__ import annotations

from dataclasses import dataclass

from iolab.core.metric import Level
from iolab.report.charts.chart import Figure
from iolab.report.table import Table


@dataclass(frozen=True, slots=True)
class Entry:
    """One configuration's headline in a card; `configuration` is empty if there is only one."""

    configuration: str
    colour: str
    number: str
    unit: str
    level: Level | None
    anchor: str | None
    rows: tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class Card:
    """One workload's headline figures."""

    title: str
    entries: tuple[Entry, ...]


@dataclass(frozen=True, slots=True)
class ChartGroup:
    """Charts that belong together, as those of one workload, with their table and its note.

    `more` are tables that stand folded under the charts, each with a note.
    """

    title: str
    figures: tuple[Figure, ...]
    table: Table | None = None
    note: str = ""
    more: tuple[tuple[Table, str], ...] = ()


@dataclass(frozen=True, slots=True)
class Section:
    """A part of the report under a heading of its own; `lede` says what it is about."""

    anchor: str
    title: str
    lede: str
    groups: tuple[ChartGroup, ...]


@dataclass(frozen=True, slots=True)
class PublishedTables:
    """What was published: where, on what, and a table of its figures.

    `inside` are those of one node from inside, None where none were.
    """

    source: str
    notes: tuple[tuple[str, str], ...]
    results: Table
    inside: Table | None = None
