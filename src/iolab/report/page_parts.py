"""Parts of a report's page that several modules make."""

from __future__ import annotations

from dataclasses import dataclass

from iolab.core.metric import Level, Metric
from iolab.core.metric_spec import Better
from iolab.report.charts.chart import Figure
from iolab.report.charts.series import DetailKey
from iolab.report.table import Table


@dataclass(frozen=True, slots=True)
class BestFigure:
    """The best that a configuration did of a workload; `title` is that of the workload.

    `workload` tells workloads of one title apart. `missing` are its points without a sound figure,
    any of which may have been better.

    `value` has none and `level` is None where nothing was measured. `latencies` are its own, each
    with a name, `at` is the place of the axes where it was reached, `run` the one that stands for
    it, and `reason` the check that says most against it, and what that says.
    """

    workload: str
    title: str
    configuration: str
    value: Metric
    latencies: tuple[tuple[str, str], ...] = ()
    at: str = ""
    level: Level | None = None
    run: DetailKey | None = None
    reason: tuple[str, str] = ("", "")
    missing: int = 0
    better: Better = Better.HIGHER

    @property
    def is_sound(self) -> bool:
        """Whether it may be quoted at all."""
        return self.value.value is not None and self.level in (Level.VALID, Level.INDICATIVE)


@dataclass(frozen=True, slots=True)
class ChartGroup:
    """Charts that belong together, as those of one workload, with their table and its note.

    `more` are tables, each with a note, and `further` figures that go to the appendix.
    """

    title: str
    figures: tuple[Figure, ...]
    table: Table | None = None
    note: str = ""
    more: tuple[tuple[Table, str], ...] = ()
    further: tuple[Figure, ...] = ()


@dataclass(frozen=True, slots=True)
class ReportSection:
    """A part of the report under a heading of its own; `lede` says what it is about.

    What only backs the answer stands in the appendix.
    """

    anchor: str
    title: str
    lede: str
    groups: tuple[ChartGroup, ...]
    in_appendix: bool = True


@dataclass(frozen=True, slots=True)
class PublishedTables:
    """What was published: where, on what, and a table of its figures.

    `inside` are those of one node from inside, None where none were.
    """

    source: str
    notes: tuple[tuple[str, str], ...]
    results: Table
    inside: Table | None = None
