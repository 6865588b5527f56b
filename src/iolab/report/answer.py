"""The first page: what was found in a sentence, how sure that is, and the best of each workload.

A matrix of workloads and configurations holds every figure once. What is invalid is no figure: it
stands there as not measurable, with the reason.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from statistics import median
from typing import TYPE_CHECKING, Final

from iolab.analysis.points import PointSummary
from iolab.analysis.value import factor
from iolab.core.configuration import DEFAULT_CONFIGURATION
from iolab.core.metric import Level, Metric, Result
from iolab.core.metric_spec import Better
from iolab.core.run import RunStatus
from iolab.core.study import Study
from iolab.dataclass import dataclass
from iolab.report.best import BestFigure, VerdictCounts
from iolab.report.numbers import NOTHING, TOO_FEW, count, show, why_no_interval
from iolab.report.phrases import Objection, joined, names_among_several, percent, whose_run
from iolab.report.table import Cell, Column, Table, columns, filled, verdict_cell
from iolab.study.wording import capitalised

if TYPE_CHECKING:
    from iolab.core.run import RunKey
    from iolab.report.brief import Brief
    from iolab.report.charts.chart import Figure, ReportSection
    from iolab.report.charts.series import Anchors

CAVEATS: Final = 3
"""Caveats on the first page; the appendix has all."""

CODES: Final = 2
"""Checks named in the line on how sure figures are."""

AS_BUSY: Final = 0.5
"""Others' share, of the run's own I/O or of the processors, from which they are told first."""

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
_NO_VALUE: Final = "no run has a value"
_OPERATIONS: Final = ("1/s", "ops/s")
"""Units of rates that have their latency in the answer; of large blocks it says their size."""


@dataclass(frozen=True, slots=True)
class Answer:
    """The first page; `chart` is None where there are too few figures for one.

    `failed` is a sentence on runs that did not end well. `caveats` are those of the `of_caveats`
    that there are which touch a figure of the page, the gravest of them.
    """

    says: str
    sure: str
    matrix: Table
    note: str
    chart: Figure | None
    failed: str
    caveats: tuple[Objection, ...]
    of_caveats: int

    @property
    def more(self) -> int:
        """Caveats that the appendix alone has."""
        return self.of_caveats - len(self.caveats)


@dataclass(frozen=True, slots=True)
class _Row:
    """A workload's figures; `best` is that of the best among those that are not invalid.

    `alike` cannot be told from it by their intervals. `open` says why nobody can tell which is the
    best, and `lead` is then how much larger it is than the least.
    """

    title: str
    cells: tuple[BestFigure, ...]
    best: BestFigure | None = None
    alike: tuple[BestFigure, ...] = ()
    open: str = ""
    lead: float = 0.0

    @property
    def rivals(self) -> int:
        """How many configurations have a figure."""
        return sum(cell.is_sound for cell in self.cells)

    def of(self, owner: str) -> BestFigure | None:
        """The figure of that configuration."""
        return next((cell for cell in self.cells if cell.configuration == owner), None)


@dataclass(frozen=True, slots=True)
class AnswerSource:
    """What best figures are taken from: all that a `Brief` has, and a screen has too."""

    study: Study
    points: tuple[PointSummary, ...]
    results: tuple[Result, ...]


def answer(
    brief: Brief,
    figures: Sequence[BestFigure],
    counted: VerdictCounts,
    caveats: Sequence[Objection],
    bests: ReportSection | None,
) -> Answer:
    """The first page of a brief with these best figures; `bests` has charts of them."""
    from iolab.report.provenance import summary_of

    rows, anchors = _rows(figures), brief.anchors
    several = _several(figures)
    failed = _failed(brief)
    quoted = {figure.run for figure in figures}
    touching = sorted(
        caveats, key=lambda caveat: (not of_others(caveat), not _touches(caveat, quoted))
    )
    return Answer(
        says=answer_sentence(brief.study, figures, counted, caveats),
        sure=f"{summary_of(counted, brief)}{_intervals(figures)}",
        matrix=_matrix(rows, brief.study.titles, anchors) if several else _list(rows, anchors),
        note=_note(rows) if several else "",
        chart=_chart(figures, bests),
        failed=failed,
        caveats=tuple(touching[: CAVEATS - bool(failed)]),
        of_caveats=len(caveats),
    )


def answer_sentence(
    study: Study,
    figures: Sequence[BestFigure],
    counted: VerdictCounts,
    caveats: Sequence[Objection],
) -> str:
    """The answer in one sentence."""
    rows = _rows(figures)
    measured = [row for row in rows if row.best is not None]
    if not counted.runs:
        return "Nothing is measured yet."
    if not measured:
        why = next(
            (caveat for caveat in caveats if caveat.level is Level.INVALID and caveat.everywhere),
            None,
        )
        every = "the only run is" if counted.runs == 1 else f"all {counted.runs} runs are"
        lost = every if counted.invalid == counted.runs else "no workload has a figure that is not"
        return f"Nothing is measurable: {lost} invalid.{f' {why.says}' if why else ''}"
    if _several(figures):
        return _compared(rows, study.titles)
    owner = measured[0].cells[0].configuration
    title = study.titles.get(owner, owner)
    # An imported configuration has no name but the session's.
    name = "The target" if owner == DEFAULT_CONFIGURATION or title == study.title else title
    only = len(rows) == 1 and rows[0].title in study.title
    unknown = len(rows) - len(measured)
    lost = f" {count(unknown, 'figure')} {_NOT_MEASURABLE}." if unknown else ""
    # A rate that was asked for is no limit of the target.
    verb = (
        "serves"
        if all(row.best is not None and row.best.is_paced for row in measured)
        else "reaches"
    )
    return f"{name} {verb} {joined(list(_tops(measured, named=not only)))}.{lost}"


def how_sure(figures: Sequence[BestFigure]) -> str:
    """How sure the best figures are, in one line: verdict and reason, then their intervals."""
    if not figures:
        return "Nothing is measured yet."
    sound = [figure for figure in figures if figure.is_sound]
    groups = (
        (Level.VALID.value, [figure for figure in sound if figure.level is Level.VALID]),
        (Level.INDICATIVE.value, [figure for figure in sound if figure.level is Level.INDICATIVE]),
        (_NOT_MEASURABLE, [figure for figure in figures if not figure.is_sound]),
    )
    parts = [f"{len(figures)} {name}{_codes(figures)}" for name, figures in groups if figures]
    return f"{count(len(figures), 'figure')}: {', '.join(parts)}.{_intervals(figures)}"


def _codes(figures: Sequence[BestFigure]) -> str:
    """The checks behind figures of one level, the most frequent first."""
    codes = [
        code for code, _ in Counter(figure.reason[0] for figure in figures).most_common() if code
    ]
    more = f" and {len(codes) - CODES} more" if len(codes) > CODES else ""
    return f" ({', '.join(codes[:CODES])}{more})" if codes else ""


def _several(figures: Sequence[BestFigure]) -> bool:
    return len({figure.configuration for figure in figures}) > 1


def _failed(brief: Brief) -> str:
    bad = [result for result in brief.results if result.status is not RunStatus.DONE]
    if not bad:
        return ""
    name = whose_run(bad[0], names_among_several(brief.study))
    why = bad[0].failure or "It was interrupted."
    number = f"{len(bad)} of {count(len(brief.results), 'run')}"
    return (
        f"{number} failed or {'was' if len(bad) == 1 else 'were'} interrupted, first {name}. {why}"
    )


def of_others(objection: Objection) -> bool:
    """Whether others were about as busy as the load itself in every run: then nothing else matters.

    The evidence is what others did on the devices before the start, or had of the processors.
    """
    if not objection.everywhere or objection.code not in _OTHERS:
        return False
    shares = [_others_share(run, objection.code) for run in objection.runs]
    return median(shares) >= AS_BUSY


def _others_share(run: Result, code: str) -> float:
    """Others' part in one run; of processors it is evidence of the threads that waited for them."""
    source, name = _OTHERS[code]
    values = (check.evidence.get(name) for check in run.verdict.checks if check.code == source)
    share = next(values, None)
    return float(share) if isinstance(share, int | float) else 0.0


_STARVED: Final[tuple[str, str]] = ("client-starved", "others_busy_share")
_OTHERS: Final[Mapping[str, tuple[str, str]]] = {
    "device-busy": ("device-busy", "share_of_run"),
    "client-starved": _STARVED,
    "cpu-bound-client": _STARVED,
}
"""Checks that others may be the reason of: (check, evidence) that has their share."""


def _touches(objection: Objection, quoted: set[RunKey | None]) -> bool:
    return any(run.key in quoted for run in objection.runs)


def _rows(figures: Iterable[BestFigure]) -> list[_Row]:
    """The figures of each workload, and which is the best of them."""
    grouped: dict[str, list[BestFigure]] = {}
    for figure in figures:
        grouped.setdefault(figure.workload, []).append(figure)
    return [_row(cells) for cells in grouped.values()]


def _row(cells: Sequence[BestFigure]) -> _Row:
    sound = [cell for cell in cells if cell.is_sound]
    title = cells[0].title
    if not sound:
        return _Row(title, tuple(cells))
    best = _top(sound)
    others = [cell for cell in sound if cell is not best]
    ahead = [(cell, factor(best.value, cell.value, best.better)) for cell in others]
    lead = max((times.value or 1.0 for _, times in ahead if times is not None), default=1.0) - 1
    if others and any(cell.missing for cell in sound):
        return _Row(title, tuple(cells), best, open="a point is missing or invalid", lead=lead)
    if any(times is None or times.low is None for _, times in ahead):
        return _Row(title, tuple(cells), best, open=TOO_FEW, lead=lead)
    alike = tuple(cell for cell, times in ahead if times and (times.low or 0.0) <= 1)
    return _Row(title, tuple(cells), best, alike)


def _top(figures: Sequence[BestFigure]) -> BestFigure:
    """The best of figures of one metric."""
    pick = min if figures[0].better is Better.LOWER else max
    return pick(figures, key=lambda figure: figure.value.value or 0.0)


def _tops(rows: Sequence[_Row], *, named: bool) -> Iterator[str]:
    """Of each unit the highest figure with its workload, of operations with their latency too.

    An indicative one stands only where no other is. Without `named` the title of the study has the
    workload's.
    """
    best = [row.best for row in rows if row.best is not None]
    for unit in dict.fromkeys(figure.value.unit for figure in best):
        figures = [figure for figure in best if figure.value.unit == unit]
        top = _top([figure for figure in figures if figure.level is Level.VALID] or figures)
        texts = (
            [f"at {text} {name}" for name, text in top.latencies[:1]] if unit in _OPERATIONS else []
        )
        context = " ".join((*([top.title] if named else []), *texts))
        doubt = "indicative" if top.level is Level.INDICATIVE else ""
        paced = "paced: the load asks for no more" if top.is_paced else ""
        note = ", ".join(filter(None, (context, paced, doubt)))
        yield f"{show(top.value)} ({note})" if note else show(top.value)


def _compared(rows: Sequence[_Row], titles: Mapping[str, str]) -> str:
    """Who is the best in how many workloads, and why that cannot be told of others."""
    of = f" of {count(len(rows), 'workload')}"
    compared = [row for row in rows if row.rivals > 1]
    clear = [row for row in compared if not row.alike and not row.open]
    wins = Counter(row.best.configuration for row in clear if row.best is not None)
    parts = [
        f"{titles.get(name, name)} is the best in {number}{'' if place else of}"
        for place, (name, number) in enumerate(wins.most_common(WINNERS))
    ]
    others = sum(number for _, number in wins.most_common()[WINNERS:])
    parts += [f"others in {others}"] if others else []
    texts = [
        (sum(bool(row.alike) for row in compared), "the best cannot be told from others"),
        *(
            (sum(row.open == why for row in compared), _why(why, compared))
            for why in dict.fromkeys(row.open for row in compared if row.open)
        ),
        (len(rows) - len(compared), "there are no two figures to compare"),
    ]
    for number, text in texts:
        if number:
            parts.append(f"in {number}{'' if parts else of} {text}")
    if not clear and any(row.open for row in compared):
        return f"Which is the best cannot be told: {joined(parts)}."
    return f"{capitalised(joined(parts))}."


def _why(why: str, rows: Sequence[_Row]) -> str:
    """Why the best cannot be told, and by how much it leads at the most."""
    most = max(row.lead for row in rows if row.open == why)
    if why == TOO_FEW:
        why = f"there are {TOO_FEW}"
    return f"{why} (the largest lead is {percent(most)})"


def _intervals(figures: Sequence[BestFigure]) -> str:
    """How far the intervals of the figures reach."""
    sound = [figure.value for figure in figures if figure.is_sound]
    if not sound:
        return ""
    halves = [half for value in sound if (half := value.half_width) is not None]
    lacking = Counter(why_no_interval(value) for value in sound if value.half_width is None)
    if not halves:
        are_few = set(lacking) == {TOO_FEW}
        do = "measure at least three" if are_few else "measure more, or find what disturbs them"
        return f" {' or '.join(lacking).capitalize()} for an interval: {do}."
    least, most = min(halves), max(halves)
    reach = f"±{100 * most:.2g} %"
    if f"{100 * least:.2g}" != f"{100 * most:.2g}":
        reach = f"±{100 * least:.2g} % to {reach}"
    few = "".join(f"; {number} of {len(sound)} have {why}" for why, number in lacking.items())
    return f" 95 % intervals of the figures: {reach}{few}."


def _matrix(rows: Sequence[_Row], titles: Mapping[str, str], anchors: Anchors) -> Table:
    """A row for each workload, a column for each configuration."""
    measured = {cell.configuration for row in rows for cell in row.cells}
    owners = [name for name in titles if name in measured]
    if len(owners) > SIDE_BY_SIDE:
        return _wide(rows, {name: titles[name] for name in owners}, anchors)
    heads = (Column("Workload"), *(Column(titles[name], number=True) for name in owners))
    cells = tuple(
        (Cell(row.title, under=row.open), *(_cell(row, name, anchors) for name in owners))
        for row in rows
    )
    return Table("The best of each workload", heads, cells)


def _wide(rows: Sequence[_Row], titles: Mapping[str, str], anchors: Anchors) -> Table:
    """A row for each configuration, a column for each workload, and no more than the figures."""
    heads = (Column("Configuration"), *(Column(row.title, number=True) for row in rows))
    cells = tuple(
        (Cell(title), *(_short(row, name, anchors) for row in rows))
        for name, title in titles.items()
    )
    return Table("The best of each workload", heads, cells)


def _short(row: _Row, owner: str, anchors: Anchors) -> Cell:
    """A figure without what is known beside it, but for its verdict."""
    figure = row.of(owner)
    doubted = figure is not None and figure.level is Level.INDICATIVE
    return replace(_cell(row, owner, anchors), under="indicative" if doubted else "")


def _cell(row: _Row, owner: str, anchors: Anchors) -> Cell:
    """A figure with its interval, its latency and where it was reached."""
    figure = row.of(owner)
    if figure is None or figure.level is None:
        return Cell(_NOT_MEASURABLE, under=_NO_VALUE)
    anchor = anchors.get(figure.run) if figure.run else None
    if not figure.is_sound:
        return Cell(_NOT_MEASURABLE, anchor=anchor, under=figure.reason[1])
    is_best = figure is row.best and not row.open and row.rivals > 1
    under = [
        *(f"{name} {text}" for name, text in figure.latencies),
        figure.at,
        _spread(figure.value),
    ]
    under += ["indicative"] if figure.level is Level.INDICATIVE else []
    text = f"{ALIKE if figure in row.alike else ''}{show(figure.value)}"
    return Cell(text, anchor=anchor, under=" · ".join(filter(None, under)), strong=is_best)


def _spread(metric: Metric) -> str:
    half = metric.half_width
    return "" if half is None else f"±{100 * half:.2g}\N{NO-BREAK SPACE}%"


def _note(rows: Sequence[_Row]) -> str:
    """What the marks of the matrix say."""
    notes = []
    if any(row.rivals > 1 and not row.open for row in rows):
        notes.append("Bold: the best of its row.")
    if any(row.alike for row in rows):
        notes.append("≈: not distinguishable from it.")
    return " ".join(notes)


def _percentile(name: str) -> float:
    """By which latencies stand in order: the mean first, then `p99`, `p99.5`."""
    return float(name[1:]) if name.startswith("p") else 0.0


def _list(rows: Sequence[_Row], anchors: Anchors) -> Table:
    """Of one configuration: a row for each workload, what is known of it in columns."""
    cells = [(row.title, cell) for row in rows for cell in row.cells]
    codes = {figure.reason[0] for _, figure in cells if not figure.is_sound}
    sound = [figure for _, figure in cells if figure.is_sound]
    every = dict.fromkeys(name for figure in sound for name, _ in figure.latencies)
    names = sorted(list(every)[:LATENCIES], key=_percentile)
    heads = (
        *columns(("Workload",), ("Best",)),
        *columns(("Verdict", "At"), ("95 % interval", *(f"Latency {name}" for name in names))),
    )
    lines = []
    for title, best in cells:
        anchor = anchors.get(best.run) if best.run else None
        latencies = dict(best.latencies)
        nothing = [Cell(NOTHING)] * (2 + len(names))
        if best.level is None:
            lost = Cell(_NOT_MEASURABLE, under=_NO_VALUE)
            lines.append((Cell(title), lost, Cell(NOTHING), *nothing))
            continue
        figure = Cell(show(best.value), strong=True)
        rest = [
            Cell(best.at or NOTHING),
            Cell(_spread(best.value) or _few(best.value)),
            *(Cell(latencies.get(name, NOTHING)) for name in names),
        ]
        if not best.is_sound:
            figure = Cell(_NOT_MEASURABLE, under=best.reason[1] if len(codes) > 1 else "")
            rest = nothing
        lines.append((Cell(title), figure, verdict_cell(best.level, anchor), *rest))
    return filled(Table("The best of each workload", heads, tuple(lines)))


def _few(metric: Metric) -> str:
    return f"n={metric.n}" if metric.n is not None else NOTHING


def _chart(best_figures: Sequence[BestFigure], bests: ReportSection | None) -> Figure | None:
    """Of the charts of best figures, one for each unit, that of the most that are sound."""
    if bests is None or not bests.groups or not any(best.is_sound for best in best_figures):
        return None
    figures = [(_sound_rows(figure.table), figure) for figure in bests.groups[0].figures]
    most, chart = max(figures, key=lambda pair: pair[0], default=(0, None))
    return chart if most >= BARS_LEAST else None


def _sound_rows(table: Table) -> int:
    return sum(
        any(cell.level in (Level.VALID, Level.INDICATIVE) for cell in row) for row in table.rows
    )
