"""What the page of a comparison shows: the same as `iolab compare`, with the intervals drawn. Pure.

An interval is drawn on one scale for all rows of the page, the logarithm of the ratio, with the
ratio of 1 in the middle.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final

from iolab.analyse.comparison import SAME_SESSION, Compared, Row
from iolab.analyse.differences import Difference
from iolab.analyse.method.ratio import Verdict
from iolab.analyse.side import Side
from iolab.model.metric import Level
from iolab.report.comparison import (
    interval_text,
    point_text,
    ratio_text,
    row_texts,
    summary_texts,
)
from iolab.report.key_value.gains import metric_word
from iolab.report.wording import count

SPAN_LEAST: Final = math.log(1.1)
"""A scale of at least ±10 %, so that noise does not look like news."""

SPAN_MOST: Final = math.log(10)
"""A scale of at most a factor of ten either way; what is beyond ends at the edge."""

WIDTH: Final = 100.0
"""The width of a drawing in its own units."""

SKIPPED_MAX: Final = 40
"""Points not compared that are named; the document of `iolab compare --json` has all."""

_SHAPES: Final = {
    Verdict.BETTER: "▲",
    Verdict.WORSE: "▼",
    Verdict.SAME: "=",
    Verdict.INCONCLUSIVE: "?",
}


@dataclass(frozen=True, slots=True)
class Mark:
    """A ratio drawn: where it and the ends of its interval lie from 0 to WIDTH."""

    low: float
    ratio: float
    high: float
    known: bool


@dataclass(frozen=True, slots=True)
class Line:
    """A metric of a point: its texts as the headings name them, and its interval drawn."""

    metric: str
    baseline: str
    candidate: str
    ratio: str
    interval: str
    runs: str
    verdict: Verdict
    shape: str
    reason: str
    level: Level
    mark: Mark


@dataclass(frozen=True, slots=True)
class Group:
    """The lines of one point."""

    title: str
    lines: tuple[Line, ...]


@dataclass(frozen=True, slots=True)
class ComparePage:
    """Everything on the page; without `shown` what forbids the comparison alone."""

    title: str
    sides: tuple[tuple[str, tuple[tuple[str, str], ...]], ...]
    differences: tuple[Difference, ...]
    note: str
    forbidden: bool
    shown: bool
    groups: tuple[Group, ...]
    scale: str
    counts: tuple[tuple[Verdict, str, int], ...]
    means: tuple[tuple[str, str, str], ...]
    skipped: tuple[str, ...]
    more_skipped: int


def compare_page(compared: Compared, *, allow_differences: bool) -> ComparePage:
    """The page of a comparison; what forbids it withholds the rows unless they are asked for."""
    forbidden = any(one.forbids for one in compared.differences)
    span = _span(compared.rows)
    skipped = [f"{point_text(one.workload, one.axis)}: {one.reason}" for one in compared.skipped]
    return ComparePage(
        title=f"{_called(compared.candidate)} against {_called(compared.baseline)}",
        sides=(
            ("Baseline", _side(compared.baseline)),
            ("Candidate", _side(compared.candidate)),
        ),
        differences=compared.differences,
        note=_note(compared),
        forbidden=forbidden,
        shown=allow_differences or not forbidden,
        groups=_groups(compared.rows, span),
        scale=f"from {math.exp(-span):.3g} to {math.exp(span):.3g}",
        counts=tuple((one, _SHAPES[one], compared.verdicts.get(one, 0)) for one in Verdict),
        means=tuple(summary_texts(one) for one in compared.summaries),
        skipped=tuple(skipped[:SKIPPED_MAX]),
        more_skipped=max(0, len(skipped) - SKIPPED_MAX),
    )


def _note(compared: Compared) -> str:
    if compared.same_session:
        return f"{SAME_SESSION[0].upper()}{SAME_SESSION[1:]}."
    if not compared.differences:
        return "Nothing else differs: studies, hosts and versions are the same."
    return ""


def _called(side: Side) -> str:
    """A side by its place, and its configuration where the session has several."""
    several = len(side.study.configurations) > 1
    return f"{side.name} ({side.configuration.title})" if several else side.name


def _side(side: Side) -> tuple[tuple[str, str], ...]:
    made = datetime.fromtimestamp(side.created_real_ns / 1e9, tz=UTC)
    return (
        ("Session", side.session),
        ("Place", side.name),
        ("Study", f"{side.study.title} ({side.study.id}, scale {side.study.scale})"),
        ("Configuration", side.configuration.title),
        ("Measured", f"{made:%Y-%m-%d %H:%M} UTC, {count(len(side.results), 'run')}"),
    )


def _span(rows: Sequence[Row]) -> float:
    """How far the scale reaches either way: the farthest end of any interval."""
    ends = [
        abs(math.log(end))
        for row in rows
        for end in (row.comparison.low, row.comparison.ratio, row.comparison.high)
        if end is not None and math.isfinite(end) and end > 0
    ]
    return min(max([SPAN_LEAST, *ends]), SPAN_MOST)


def _groups(rows: Sequence[Row], span: float) -> tuple[Group, ...]:
    points: dict[str, list[Line]] = {}
    for row in rows:
        points.setdefault(point_text(row.workload, row.axis), []).append(_line(row, span))
    return tuple(Group(point, tuple(lines)) for point, lines in points.items())


def _line(row: Row, span: float) -> Line:
    found = row.comparison
    _, metric, baseline, candidate, *_ = row_texts(row)
    told = found.verdict is Verdict.INCONCLUSIVE or found.reason == SAME_SESSION
    return Line(
        metric=metric_word(metric),
        baseline=baseline,
        candidate=candidate,
        ratio=ratio_text(found.ratio),
        interval=interval_text(found.low, found.high),
        runs=" / ".join(map(str, found.runs)),
        verdict=found.verdict,
        shape=_SHAPES[found.verdict],
        reason=found.reason if told else "",
        level=row.level,
        mark=_mark(found.low, found.ratio, found.high, span),
    )


def _mark(low: float | None, ratio: float, high: float | None, span: float) -> Mark:
    if low is None or high is None:
        return Mark(0.0, _place(ratio, span), 0.0, known=False)
    return Mark(_place(low, span), _place(ratio, span), _place(high, span), known=True)


def _place(ratio: float, span: float) -> float:
    """Where a ratio lies on the drawing."""
    if not ratio > 0:
        return 0.0
    at = math.log(ratio) if math.isfinite(ratio) else math.inf
    return round(WIDTH / 2 * (1 + max(-1.0, min(1.0, at / span))), 2)
