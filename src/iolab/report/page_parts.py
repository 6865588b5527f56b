"""Parts of a report's page that several modules make."""

from __future__ import annotations

from dataclasses import dataclass

from iolab.model.metric import Level
from iolab.report.figures.frame import Figure
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
class WorkloadCharts:
    """The charts of one workload over its points; of metadata load with its table and its note.

    `more` are tables that stand under the charts, each with a note.
    """

    title: str
    figures: tuple[Figure, ...]
    table: Table | None = None
    note: str = ""
    more: tuple[tuple[Table, str], ...] = ()
