"""Gains over the baseline configuration: each matched cell, and the largest one with its cell."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from iolab.analyse.gains import Gain, Gains, LargestGain, gains
from iolab.analyse.key_value.summary import NAMED_OPERATIONS, WHOLE_KEY, latency_key
from iolab.analyse.points import PointSummary
from iolab.model.study import Study
from iolab.report.figures.bars import Named
from iolab.report.figures.choose import Look
from iolab.report.key_value.groups import Group
from iolab.report.key_value.measures import WORDS, main_operation, tail_name
from iolab.report.points import metric_document
from iolab.report.table import Cell, Column, Table, columns, row, verdict_cell
from iolab.report.wording import NOTHING, axis_label, axis_number, count, show

GAIN_NOTE: Final = (
    "A gain is more operations a second or less latency than the baseline has in the same cell: "
    "+40 % of a latency is 40 % less of it. Intervals are of 95 %."
)

LARGEST_NOTE: Final = (
    "The largest of several gains is large by chance too: its interval holds for all cells of its "
    "row at once, and is wider than that of its cell alone."
)

_METRIC_WORDS: Final = {
    WHOLE_KEY: "ops/s",
    **{
        latency_key(operation, name): f"{operation.word} {word}"
        for operation in NAMED_OPERATIONS
        for name, word in WORDS.items()
    },
}


def metric_word(key: str) -> str:
    """A metric for people: `read p99`."""
    return _METRIC_WORDS.get(key, key)


def key_gains(study: Study, groups: Sequence[Group]) -> tuple[Gains, ...]:
    """Each further configuration against the first, over all cells of all groups.

    Of each cell all operations, and of its main operation the mean, p99 and what is published.
    """
    points: list[PointSummary] = [point for group in groups for point in group.points]
    if len({point.key.configuration for point in points}) < 2:
        return ()
    main = main_operation([point.metrics for point in points])
    names = dict.fromkeys(("mean", "p99", *(tail_name(group.workload.job) for group in groups)))
    return gains(study, points, (WHOLE_KEY, *(latency_key(main, name) for name in names)))


def within(found: Sequence[Gains], group: Group) -> tuple[Gains, ...]:
    """The cells of one group."""
    places = {(point.key.workload, point.key.axis) for point in group.points}
    return tuple(
        replace(
            one,
            cells=tuple(cell for cell in one.cells if (cell.workload, cell.axis) in places),
            skipped=tuple(skip for skip in one.skipped if (skip.workload, skip.axis) in places),
        )
        for one in found
    )


def share_text(share: float) -> str:
    """`+25 %`, with a digit more where it is small."""
    return f"{100 * share:+.0f} %" if abs(share) >= 0.1 else f"{100 * share:+.1f} %"


def interval_text(low: float | None, high: float | None) -> str:
    """`[+21 %, +29 %]`; a dash where none is known."""
    if low is None or high is None:
        return NOTHING
    return f"[{share_text(low)}, {share_text(high)}]"


def cell_name(gain: Gain, group: Group) -> str:
    """The cell by what varies within its group."""
    own = tuple(pair for pair in gain.axis if pair not in group.others)
    return axis_label(own) or NOTHING


def gains_table(found: Sequence[Gains], group: Group, looks: Mapping[str, Look]) -> Table | None:
    """Every cell of a group with both values; None where nothing is compared."""
    several = len(found) > 1
    rows = tuple(
        (
            *((Cell(looks[one.candidate].title),) if several else ()),
            *row(cell_name(cell, group), metric_word(cell.metric)),
            *row(show(cell.baseline), show(cell.candidate), share_text(cell.share)),
            *row(interval_text(*(cell.interval or (None, None))), f"{cell.factor:.2f}"),
            Cell(cell.comparison.verdict.value),
            verdict_cell(cell.level),
        )
        for one in found
        for cell in one.cells
    )
    if not rows:
        return None
    name = looks[found[0].baseline].title
    other = "Candidate’s" if several else looks[found[0].candidate].title
    texts = (*(("Candidate",) if several else ()), "Point", "Metric")
    numbers = (name, other, "Gain", "95 % interval", "Factor")
    heads = (*columns(texts, numbers), Column("Says"), Column("Verdict"))
    return Table(f"Gain over {name}, cell by cell", heads, rows)


def skipped_note(found: Sequence[Gains]) -> str:
    """How many comparisons could not be made, and why the first one could not."""
    skipped = [skip for one in found for skip in one.skipped]
    if not skipped:
        return ""
    return f" Not compared: {count(len(skipped), 'value')}, the first since {skipped[0].reason}."


def largest_of(found: Sequence[Gains], metric: str) -> tuple[Gains, LargestGain] | None:
    """The largest gain of a metric over all candidates, and whose it is."""
    best = [(one, gain) for one in found if (gain := one.largest(metric)) is not None]
    return max(best, key=lambda pair: pair[1].gain.share, default=None)


def largest_table(
    groups: Sequence[Group], found: Sequence[Gains], looks: Mapping[str, Look]
) -> Table | None:
    """For each group, candidate and metric the largest gain with its cell."""
    if not found:
        return None
    several = len(found) > 1
    rows = tuple(_largest_row(one, looks, several=several) for one in largest_gains(groups, found))
    if not rows:
        return None
    texts = ("Workload", *(("Candidate",) if several else ()), "Of")
    numbers = ("Largest gain", "95 % interval", "Factor", "In its unit")
    heads = (*columns(texts, numbers), *columns(("At", "Says", "Verdict")))
    baseline, candidate = looks[found[0].baseline].title, looks[found[0].candidate].title
    title = f"Largest gains over {baseline}" if several else f"{candidate} against {baseline}"
    return Table(title, heads, rows)


@dataclass(frozen=True, slots=True)
class Largest:
    """The largest gain of a candidate in a metric over a group; `best` is None where it has none.

    `words` name the metric, `at` the cell.
    """

    group: Group
    candidate: str
    words: str
    at: str
    best: LargestGain | None


def largest_gains(groups: Sequence[Group], found: Sequence[Gains]) -> list[Largest]:
    """The largest gain for each group, candidate and metric."""
    made = []
    for group in groups:
        for one in within(found, group):
            for metric in one.metrics:
                best = one.largest(metric)
                at = NOTHING if best is None else cell_name(best.gain, group)
                made.append(Largest(group, one.candidate, metric_word(metric), at, best))
    return made


def _largest_row(one: Largest, looks: Mapping[str, Look], *, several: bool) -> tuple[Cell, ...]:
    start = (
        Cell(one.group.title),
        *((Cell(looks[one.candidate].title),) if several else ()),
        Cell(one.words),
    )
    best = one.best
    if best is None:
        rest = row(*([NOTHING] * 5))
        return (*start, Cell("no gain in any cell"), *rest, Cell(NOTHING))
    gain = best.gain
    return (
        *start,
        *row(share_text(gain.share), interval_text(best.low, best.high), f"{gain.factor:.2f}"),
        Cell(difference_text(gain)),
        Cell(f"{one.at} (of {count(best.cells, 'cell')})"),
        Cell(gain.comparison.verdict.value),
        verdict_cell(gain.level),
    )


def difference_text(gain: Gain) -> str:
    """The candidate's value less the baseline's, with its sign."""
    sign = "+" if gain.difference >= 0 else "−"
    return f"{sign}{show(replace(gain.candidate, value=abs(gain.difference)))}"


def named_bar(found: Sequence[Gains], group: Group, looks: Mapping[str, Look]) -> Named | None:
    """What is written over the bar of the largest gain in operations a second."""
    best = largest_of(found, WHOLE_KEY)
    if best is None:
        return None
    one, largest = best
    at = axis_number(group.axis, dict(largest.gain.axis)[group.axis])
    text = share_text(largest.gain.share)
    return None if at is None else Named(looks[one.candidate].title, at, text)


def gain_sentence(found: Sequence[Gains], group: Group, looks: Mapping[str, Look]) -> str:
    """The largest gain in operations a second with its cell and what it says; empty for none."""
    best = largest_of(found, WHOLE_KEY)
    if best is None:
        return ""
    one, largest = best
    gain, low = largest.gain, largest.low
    interval = "" if low is None else f" {interval_text(low, largest.high)}"
    names = f"{looks[one.candidate].title} over {looks[one.baseline].title}"
    return (
        f" Largest gain of {names}: {share_text(gain.share)}{interval} at "
        f"{cell_name(gain, group)}, {gain.comparison.verdict.value}."
    )


def gains_document(found: Sequence[Gains]) -> list[dict[str, Any]]:
    """The gains as JSON has them."""
    return [
        {
            "baseline": one.baseline,
            "candidate": one.candidate,
            "cells": [_cell_document(cell) for cell in one.cells],
            "largest": [
                _largest_document(best)
                for metric in one.metrics
                if (best := one.largest(metric)) is not None
            ],
            "skipped": [
                {"workload": skip.workload, "axis": dict(skip.axis), "reason": skip.reason}
                for skip in one.skipped
            ],
        }
        for one in found
    ]


def _cell_document(cell: Gain) -> dict[str, Any]:
    low, high = cell.interval or (None, None)
    return {
        "workload": cell.workload,
        "axis": dict(cell.axis),
        "metric": cell.metric,
        "baseline": metric_document(cell.baseline),
        "candidate": metric_document(cell.candidate),
        "gain": cell.share,
        "low": low,
        "high": high,
        "says": cell.comparison.verdict.value,
        "level": cell.level.value,
    }


def _largest_document(best: LargestGain) -> dict[str, Any]:
    cell = best.gain
    return {
        "workload": cell.workload,
        "axis": dict(cell.axis),
        "metric": cell.metric,
        "gain": cell.share,
        "low": best.low,
        "high": best.high,
        "cells": best.cells,
    }
