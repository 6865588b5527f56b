"""A point in a terminal: a row for what is published of it, and one for each of its runs."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

from rich.text import Text

from iolab.analyse.points import PointSummary
from iolab.cli.screen import QUIET_STYLE, verdict
from iolab.model.metric import Metric, Result
from iolab.report.wording import axis_number, show_interval, show_steadiness


@dataclass(frozen=True, slots=True)
class PointRow:
    """What a row shows: of a point, or `of_run` of one of its runs, with a suffix like ` #2`."""

    suffix: str
    style: str
    metrics: Mapping[str, Metric]
    verdict: Text
    of_run: bool = False

    def interval(self, key: str) -> str:
        """A point's interval with its number of runs; one run's own without a number."""
        shown = show_interval(self.metrics.get(key), bare_rate=True)
        # What stands behind a run's own interval are batches of its seconds, not runs.
        return shown.rpartition(" n=")[0] if self.of_run else shown


def point_rows(
    point: PointSummary, notes: Callable[[Result], tuple[int, ...]]
) -> Iterator[PointRow]:
    """The point, then each run where there are several; of a single run its repeat is told.

    `notes` gives the numbers of the objections to a result.
    """
    runs = runs_of(point)
    behind = point.results or point.left_out
    numbers = sorted({number for run in behind for number in notes(run)})
    single = runs[0].repeat if len(runs) == 1 else 1
    suffix = f" #{single}" if single > 1 else ""
    told = verdict(point.level, numbers)
    if len(runs) == 1:
        told = _with_status(told, runs[0])
    yield PointRow(suffix, "", point.metrics, told)
    if len(runs) == 1:
        return
    for run in runs:
        # Where none counts, all of them make the point.
        left = ", left out" if point.results and run not in point.results else ""
        told = _with_status(verdict(run.verdict.level, notes(run)), run)
        yield PointRow(f" #{run.repeat}{left}", QUIET_STYLE, run.metrics, told, of_run=True)


def runs_of(point: PointSummary) -> list[Result]:
    """The runs of a point by repeat, those that did not enter too."""
    return sorted((*point.results, *point.left_out), key=lambda run: run.repeat)


def point_order(point: PointSummary) -> tuple[object, ...]:
    """Along the axes, numbers by size: a randomised plan still reads as a curve."""
    values = []
    for name, value in point.key.axis:
        number = axis_number(name, value)
        values.append((number is None, number or 0.0, str(value)))
    return tuple(values)


def _with_status(told: Text, run: Result) -> Text:
    """The verdict and, where the run's own seconds told something, what."""
    steady = show_steadiness(run)
    return told.append(f"  {steady}", style=QUIET_STYLE) if steady else told
