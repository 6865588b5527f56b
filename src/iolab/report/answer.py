"""The first page: what was found in a sentence, how sure that is, and the best of each workload.

A matrix of workloads and configurations holds every figure once. What is invalid is no figure: it
stands there as not measurable, with the reason.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from iolab.analysis.points import PointSummary
from iolab.analysis.value import factor
from iolab.core.metric import RUNS_FOR_INTERVAL, Level, Metric, Result
from iolab.core.study import Study
from iolab.report.best import Tally
from iolab.report.brief import Brief
from iolab.report.caveats import Objection
from iolab.report.charts.chart import Figure
from iolab.report.header import summary_of
from iolab.report.numbers import NOTHING, TOO_FEW, count, show
from iolab.report.page_parts import BestFigure, Section
from iolab.report.phrases import joined
from iolab.report.series import DetailKey
from iolab.report.table import Cell, Column, Table, columns, filled, verdict_cell
from iolab.study.load import DEFAULT_CONFIGURATION

CAVEATS: Final = 3
"""Caveats on the first page; the appendix has all."""

CODES: Final = 2
"""Checks named in the line on how sure figures are."""

WINNERS: Final = 2
"""Configurations named in the answer; others are counted."""

SIDE_BY_SIDE: Final = 4
"""Configurations that get a column each; more are rows, of figures alone."""

BARS_LEAST: Final = 2
"""A chart of one bar says no more than its number."""

LATENCIES: Final = 4
"""Columns of latencies; workloads of one engine have the same two."""

ALIKE: Final = "≈ "
"""Before a figure that cannot be told from the best of its row."""

_NOT_MEASURABLE: Final = "not measurable"
_NO_FIGURE: Final = "not measured"
_MORE: Final = {"1/s": "IOPS", "bytes/s": "bandwidth", "ops/s": "operations a second"}


@dataclass(frozen=True, slots=True)
class Answer:
    """The first page; `chart` is None where there are too few figures for one.

    `caveats` are the gravest of the `of_caveats` that there are.
    """

    says: str
    sure: str
    matrix: Table
    note: str
    chart: Figure | None
    caveats: tuple[Objection, ...]
    of_caveats: int


@dataclass(frozen=True, slots=True)
class _Row:
    """A workload's figures; `best` is that of the best among those that are not invalid.

    `alike` cannot be told from it by their intervals; `open` where these are not known.
    """

    title: str
    cells: tuple[BestFigure, ...]
    best: BestFigure | None
    alike: tuple[BestFigure, ...]
    is_open: bool


@dataclass(frozen=True, slots=True)
class Told:
    """What best figures are taken from: all that a `Brief` has, and a screen has too."""

    study: Study
    points: tuple[PointSummary, ...]
    results: tuple[Result, ...]


def answer(
    brief: Brief,
    found: Sequence[BestFigure],
    counted: Tally,
    caveats: Sequence[Objection],
    anchors: Mapping[DetailKey, str],
    bests: Section | None,
) -> Answer:
    """The first page of a brief whose best figures are `found`; `bests` has charts of them."""
    rows = [_row(title, cells) for title, cells in _by_workload(found)]
    several = _several(found)
    return Answer(
        says=says(brief.study, found, counted, caveats),
        sure=f"{summary_of(counted, brief)}{_intervals(found)}",
        matrix=_matrix(rows, _titles(brief.study), anchors) if several else _list(rows, anchors),
        note=_note(rows) if several else "",
        chart=_chart(found, bests),
        caveats=tuple(caveats[:CAVEATS]),
        of_caveats=len(caveats),
    )


def how_sure(found: Sequence[BestFigure], caveats: Sequence[Objection]) -> str:
    """How sure the best figures are, in one line: verdict and reason, then their intervals."""
    sound = [one.level for one in found if one.is_sound]
    if not found:
        return "Nothing is measured yet."
    levels = ((level.value, sound.count(level)) for level in (Level.VALID, Level.INDICATIVE))
    counted = (*levels, (_NOT_MEASURABLE, len(found) - len(sound)))
    parts = [f"{number} {name}" for name, number in counted if number]
    codes = list(dict.fromkeys(one.code for one in caveats))
    more = f" and {len(codes) - CODES} more" if len(codes) > CODES else ""
    why = f" ({', '.join(codes[:CODES])}{more})" if codes else ""
    return f"{count(len(found), 'figure')}: {', '.join(parts)}{why}.{_intervals(found)}"


def _several(found: Sequence[BestFigure]) -> bool:
    return len({one.configuration for one in found}) > 1


def _titles(study: Study) -> dict[str, str]:
    return {one.id: one.title for one in study.configurations}


def _by_workload(found: Iterable[BestFigure]) -> list[tuple[str, list[BestFigure]]]:
    rows: dict[str, list[BestFigure]] = {}
    for one in found:
        rows.setdefault(one.title, []).append(one)
    return list(rows.items())


def _row(title: str, cells: Sequence[BestFigure]) -> _Row:
    sound = [one for one in cells if one.is_sound]
    if not sound:
        return _Row(title, tuple(cells), None, (), is_open=False)
    less = sound[0].value.unit == "ns"
    best = (min if less else max)(sound, key=lambda one: one.value.value or 0.0)
    ahead = [(one, _at_least(best.value, one.value)) for one in sound if one is not best]
    is_open = any(times is None for _, times in ahead)
    alike = tuple(one for one, times in ahead if times is not None and times <= 1)
    return _Row(title, tuple(cells), best, alike, is_open)


def _at_least(best: Metric, other: Metric) -> float | None:
    """How many times as good the best is at least; None where the runs are too few to say."""
    times = factor(best, other)
    if times is None or times.low is None:
        return None
    return times.low if times.n is None or times.n >= RUNS_FOR_INTERVAL else None


def says(
    study: Study, found: Sequence[BestFigure], counted: Tally, caveats: Sequence[Objection]
) -> str:
    """The answer in one sentence."""
    rows = [_row(title, cells) for title, cells in _by_workload(found)]
    titles = _titles(study)
    known = [row for row in rows if row.best is not None]
    if not counted.runs:
        return "Nothing is measured yet."
    if not known:
        why = f" {caveats[0].says}" if caveats and caveats[0].level is Level.INVALID else ""
        return f"No figure can be quoted: {_every(counted)} invalid.{why}"
    if _several(found):
        return _compared(known, titles)
    owner = known[0].cells[0].configuration
    name = "The target" if owner == DEFAULT_CONFIGURATION else titles.get(owner, owner)
    return f"{name} reaches {joined(list(_tops(known)))}."


def _every(counted: Tally) -> str:
    return "the only run is" if counted.runs == 1 else f"all {counted.runs} runs are"


def _tops(rows: Sequence[_Row]) -> Iterator[str]:
    """Of each unit the highest figure with its workload, of IOPS with their latency too.

    An indicative one stands only where no other is.
    """
    best = [row.best for row in rows if row.best is not None]
    for unit in dict.fromkeys(one.value.unit for one in best):
        mine = [one for one in best if one.value.unit == unit]
        mine = [one for one in mine if one.level is Level.VALID] or mine
        top = (min if unit == "ns" else max)(mine, key=lambda one: one.value.value or 0.0)
        told = [f"at {text} {name}" for name, text in top.latencies[:1]] if unit == "1/s" else []
        doubt = ", indicative" if top.level is Level.INDICATIVE else ""
        yield f"{show(top.value)} ({' '.join((top.title, *told))}{doubt})"


def _compared(rows: Sequence[_Row], titles: Mapping[str, str]) -> str:
    """Who leads in how many workloads, and where nothing can be told."""
    compared = [row for row in rows if sum(one.is_sound for one in row.cells) > 1]
    if not compared:
        return "No workload has two configurations that can be compared."
    clear = [row for row in compared if not row.alike and not row.is_open]
    wins = Counter(row.best.configuration for row in clear if row.best is not None)
    of = f" of {count(len(compared), 'workload')}"
    parts = []
    for name, number in wins.most_common(WINNERS):
        parts.append(f"{titles.get(name, name)} is the best in {number}{of}")
        of = ""
    others = sum(number for _, number in wins.most_common()[WINNERS:])
    parts += [f"others in {others}"] if others else []
    even = sum(bool(row.alike) for row in compared)
    if even:
        parts.append(f"in {even}{of} the best cannot be told apart")
        of = ""
    unsure = Counter(
        row.best.configuration
        for row in compared
        if row.is_open and not row.alike and row.best is not None
    )
    for name, number in unsure.most_common(WINNERS):
        parts.append(f"{titles.get(name, name)} is ahead in {number}{of}")
        of = ""
    others = sum(number for _, number in unsure.most_common()[WINNERS:])
    parts += [f"others in {others}"] if others else []
    doubt = f" ({TOO_FEW} to be sure)" if unsure else ""
    text = f"{joined(parts)}{doubt}."
    return text[0].upper() + text[1:]


def _intervals(found: Sequence[BestFigure]) -> str:
    """How far the intervals of the figures reach."""
    sound = [one.value for one in found if one.is_sound]
    if not sound:
        return ""
    halves = [half for one in sound if (half := one.half_width) is not None]
    lacking = len(sound) - len(halves)
    if not halves:
        return f" {TOO_FEW.capitalize()} for an interval: measure at least three."
    least, most = min(halves), max(halves)
    reach = f"±{100 * most:.2g} %"
    if f"{100 * least:.2g}" != f"{100 * most:.2g}":
        reach = f"±{100 * least:.2g} % to {reach}"
    few = f"; {lacking} of {len(sound)} have {TOO_FEW}" if lacking else ""
    return f" 95 % intervals of the figures: {reach}{few}."


def _matrix(
    rows: Sequence[_Row], titles: Mapping[str, str], anchors: Mapping[DetailKey, str]
) -> Table:
    """A row for each workload, a column for each configuration."""
    known = {one.configuration for row in rows for one in row.cells}
    owners = [name for name in titles if name in known]
    if len(owners) > SIDE_BY_SIDE:
        return _wide(rows, {name: titles[name] for name in owners}, anchors)
    heads = (Column("Workload"), *(Column(titles[name], number=True) for name in owners))
    cells = tuple(
        (Cell(row.title), *(_cell(row, name, anchors) for name in owners)) for row in rows
    )
    return Table("The best of each workload", heads, cells)


def _wide(
    rows: Sequence[_Row], titles: Mapping[str, str], anchors: Mapping[DetailKey, str]
) -> Table:
    """A row for each configuration, a column for each workload, and no more than the figures."""
    heads = (Column("Configuration"), *(Column(row.title, number=True) for row in rows))
    cells = tuple(
        (Cell(title), *(replace(_cell(row, name, anchors), under="") for row in rows))
        for name, title in titles.items()
    )
    return Table("The best of each workload", heads, cells)


def _cell(row: _Row, owner: str, anchors: Mapping[DetailKey, str]) -> Cell:
    """A figure with its interval, its latency and where it was reached."""
    one = next((cell for cell in row.cells if cell.configuration == owner), None)
    if one is None or one.level is None:
        return Cell(_NO_FIGURE)
    anchor = anchors.get(one.run) if one.run else None
    if not one.is_sound:
        return Cell(_NOT_MEASURABLE, anchor=anchor, under=one.reason[1])
    is_best = one is row.best and not row.is_open
    under = [*(f"{text} {name}" for name, text in one.latencies), one.at, _spread(one.value)]
    under += ["indicative"] if one.level is Level.INDICATIVE else []
    text = f"{ALIKE if one in row.alike else ''}{show(one.value)}"
    return Cell(text, anchor=anchor, under=" · ".join(filter(None, under)), strong=is_best)


def _spread(metric: Metric) -> str:
    half = metric.half_width
    return "" if half is None else f"±{100 * half:.2g} %"


def _note(rows: Sequence[_Row]) -> str:
    """What the marks of the matrix say."""
    notes = []
    if any(row.best is not None and not row.is_open for row in rows):
        notes.append("Bold: the best of its row.")
    if any(row.alike for row in rows):
        notes.append("≈: not distinguishable from it.")
    if any(row.is_open for row in rows):
        notes.append("No mark: too few repeats to say which is the best.")
    return " ".join(notes)


def _list(rows: Sequence[_Row], anchors: Mapping[DetailKey, str]) -> Table:
    """Of one configuration: a row for each workload, what is known of it in columns."""
    cells = [(row.title, one) for row in rows for one in row.cells]
    codes = {one.reason[0] for _, one in cells if not one.is_sound}
    sound = [one for _, one in cells if one.is_sound]
    names = list(dict.fromkeys(name for one in sound for name, _ in one.latencies))[:LATENCIES]
    heads = (
        *columns(("Workload",), ("Best",)),
        *columns(("Verdict", "At"), ("95 % interval", *(f"Latency {name}" for name in names))),
    )
    made = []
    for title, one in cells:
        anchor = anchors.get(one.run) if one.run else None
        latencies = dict(one.latencies)
        nothing = [Cell(NOTHING)] * (2 + len(names))
        if one.level is None:
            made.append((Cell(title), Cell(_NO_FIGURE), Cell(NOTHING), *nothing))
            continue
        figure = Cell(show(one.value), strong=True)
        rest = [
            Cell(one.at or NOTHING),
            Cell(_spread(one.value) or _few(one.value)),
            *(Cell(latencies.get(name, NOTHING)) for name in names),
        ]
        if not one.is_sound:
            figure = Cell(_NOT_MEASURABLE, under=one.reason[1] if len(codes) > 1 else "")
            rest = nothing
        made.append((Cell(title), figure, verdict_cell(one.level, anchor), *rest))
    return filled(Table("The best of each workload", heads, tuple(made)))


def _few(metric: Metric) -> str:
    return f"n={metric.n}" if metric.n is not None else NOTHING


def _chart(found: Sequence[BestFigure], bests: Section | None) -> Figure | None:
    """Of the charts of best figures, one for each unit, that of the most that are sound."""
    sound = Counter(one.value.unit for one in found if one.is_sound)
    if bests is None or not bests.groups or max(sound.values(), default=0) < BARS_LEAST:
        return None
    figures = [one for one in bests.groups[0].figures if len(one.table.rows) >= BARS_LEAST]
    return max(figures, key=lambda one: len(one.table.rows), default=None)
