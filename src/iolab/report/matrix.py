"""The matrix of a report: the best of each workload in each configuration, and what is best.

Every figure stands there once, with its interval, its latency and where it was reached. An invalid
one is no figure: it stands there as not measurable, with the reason.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Final

from msgspec.structs import replace

from iolab.analysis.quotients import improvement_factor
from iolab.core.metric import Level, Metric
from iolab.core.metric_spec import Better
from iolab.record import Record
from iolab.report.best import BestFigure
from iolab.report.charts.palette import SERIES
from iolab.report.numbers import TOO_FEW_REPEATS, metric_value_text, verdict_mark
from iolab.report.table import Cell, CellBar, Column, Table
from iolab.text import capitalised, percent_text

if TYPE_CHECKING:
    from iolab.report.charts.chart import SeriesStyles
    from iolab.report.charts.series import RunAnchors

CONFIGURATION_COLUMNS_MAX: Final = 4
"""Configurations that get a column each; more are rows, of figures alone."""

FACTOR_LEAST: Final = 2.0
"""From this ratio on a difference is told as a factor: `3.2x` says more than `+220 %`."""

FACTOR_WHOLE: Final = 10.0
PERCENT_WHOLE: Final = 9.95
"""From these on digits behind the point say nothing."""

INDISTINGUISHABLE_MARK: Final = "≈ "
"""Before a figure that cannot be told from the best of its row."""

NOT_MEASURABLE: Final = "not measurable"
NO_VALUE: Final = "no run has a value"

KEPT_CHARACTERS: Final = 16
"""What is this short is not parted by the end of a line."""

TITLE: Final = "The best of each workload"

_BLOCK_TITLES: Final = {
    "1/s": "IOPS",
    "bytes/s": "Bandwidth",
    "ns": "Latency",
    "ops/s": "Operations per second",
}
"""What rows of one unit are called."""

_OPERATION_WORDS: Final = {
    "read": re.compile(r"\breads?\b", re.IGNORECASE),
    "write": re.compile(r"\bwrites?\b", re.IGNORECASE),
}


class WorkloadRow(Record):
    """A workload's figures; `best` is that of the best among those that are not invalid.

    `indistinguishable` cannot be told from it by their intervals. `open_reason` says why a lead has
    no interval; `lead` is how much the best is better than the next, as a share.
    """

    title: str
    cells: tuple[BestFigure, ...]
    best: BestFigure | None = None
    indistinguishable: tuple[BestFigure, ...] = ()
    open_reason: str = ""
    lead: float = 0.0

    @property
    def unit(self) -> str:
        """The unit of its figures; empty where none has any."""
        return next((cell.value.unit for cell in self.cells if cell.value.unit), "")

    @property
    def figure_count(self) -> int:
        """How many configurations have a figure."""
        return sum(cell.is_sound for cell in self.cells)

    @property
    def is_decided(self) -> bool:
        """Whether intervals support which configuration is the best."""
        return self.figure_count > 1 and not self.open_reason and not self.indistinguishable

    def figure_of_configuration(self, configuration: str) -> BestFigure | None:
        """The figure of that configuration."""
        return next((cell for cell in self.cells if cell.configuration == configuration), None)


def workload_rows(figures: Iterable[BestFigure]) -> list[WorkloadRow]:
    """The figures of each workload, and which is the best of them; rows of one unit together."""
    grouped: dict[str, list[BestFigure]] = {}
    for figure in figures:
        grouped.setdefault(figure.workload, []).append(figure)
    rows = [_build_workload_row(cells) for cells in grouped.values()]
    units = list(dict.fromkeys((*_BLOCK_TITLES, *(row.unit for row in rows))))
    return sorted(rows, key=lambda row: units.index(row.unit))


def _build_workload_row(figures: Sequence[BestFigure]) -> WorkloadRow:
    sound = [cell for cell in figures if cell.is_sound]
    title = figures[0].title
    if not sound:
        return WorkloadRow(title, tuple(figures))
    best = best_of_metric(sound)
    others = [cell for cell in sound if cell is not best]
    ahead = [(cell, improvement_factor(best.value, cell.value, best.better)) for cell in others]
    lead = min((times.value or 1.0 for _, times in ahead if times is not None), default=1.0) - 1
    if others and any(cell.unsound_point_count for cell in sound):
        return WorkloadRow(
            title,
            tuple(figures),
            best,
            open_reason="a point is missing or invalid",
            lead=lead,
        )
    if any(times is None or times.low is None for _, times in ahead):
        return WorkloadRow(title, tuple(figures), best, open_reason=TOO_FEW_REPEATS, lead=lead)
    alike = tuple(cell for cell, times in ahead if times and (times.low or 0.0) <= 1)
    return WorkloadRow(title, tuple(figures), best, alike, lead=lead)


def best_of_metric(figures: Sequence[BestFigure]) -> BestFigure:
    """The best of figures of one metric."""
    pick = min if figures[0].better is Better.LOWER else max
    return pick(figures, key=lambda figure: figure.value.value or 0.0)


def difference_text(value: Metric, base: Metric) -> str:
    """A value against another: `+27 %`, `3.2x`, `-12 %`; empty where either is not known."""
    if not value.value or not base.value:
        return ""
    ratio = value.value / base.value
    if ratio >= FACTOR_LEAST:
        return f"{ratio:.1f}×" if ratio < FACTOR_WHOLE else f"{ratio:,.0f}×"
    percent = 100 * (ratio - 1)
    text = f"{percent:+.0f} %" if abs(percent) >= PERCENT_WHOLE else f"{percent:+.1f} %"
    return text.replace("-", "−").replace(" ", " ")


def matrix_table(
    rows: Sequence[WorkloadRow],
    titles: Mapping[str, str],
    anchors: RunAnchors,
    styles: SeriesStyles | None = None,
) -> Table:
    """The figures: of several configurations in columns, of many in rows, of one by operation."""
    measured = {cell.configuration for row in rows for cell in row.cells}
    owners = {name: title for name, title in titles.items() if name in measured}
    if len(owners) > CONFIGURATION_COLUMNS_MAX:
        return _workload_columns_table(rows, owners, anchors)
    if len(owners) > 1:
        return _configuration_columns_table(rows, owners, anchors, styles or {})
    return _operation_columns_table(rows, anchors)


def marks_note(rows: Sequence[WorkloadRow], titles: Mapping[str, str]) -> str:
    """What the marks of the matrix say, and what keeps all its leads open."""
    several = [row for row in rows if len(row.cells) > 1]
    if not several:
        return ""
    notes = []
    base = titles.get(several[0].cells[0].configuration, "")
    if base and any(row.figure_count > 1 for row in several):
        notes.append(f"Differences are against {base}.")
    if any(row.is_decided for row in several):
        notes.append("Bold: the best of its row.")
    if any(row.indistinguishable for row in rows):
        notes.append("≈: not distinguishable from the best.")
    if reason := _shared_open_reason(rows):
        notes.append(f"No row has a winner: {reason}.")
    return " ".join(notes)


def _shared_open_reason(rows: Sequence[WorkloadRow]) -> str:
    """The reason that keeps all rows open, where it is the same for all of several."""
    reasons = {row.open_reason for row in rows if row.figure_count > 1}
    return reasons.pop() if len(reasons) == 1 else ""


def _unit_groups(rows: Sequence[WorkloadRow]) -> tuple[tuple[int, str], ...]:
    """The titles of the blocks of rows of one unit, where several rows share one of several."""
    units = [row.unit for row in rows]
    if len(set(units)) in {1, len(units)}:
        return ()
    titles = {unit: _BLOCK_TITLES.get(unit, unit) for unit in units}
    return tuple(
        (place, titles[unit])
        for place, unit in enumerate(units)
        if (place == 0 or units[place - 1] != unit)
        and (units.count(unit) > 1 or rows[place].title != titles[unit])
    )


def _configuration_columns_table(
    rows: Sequence[WorkloadRow],
    titles: Mapping[str, str],
    anchors: RunAnchors,
    styles: SeriesStyles,
) -> Table:
    """A row for each workload, a column for each configuration."""
    heads = (Column("Workload"), *(Column(title, is_number=True) for title in titles.values()))
    shared = _shared_open_reason(rows)
    base = next(iter(titles))
    cells = tuple(
        (
            Cell(row.title, note="" if row.open_reason == shared else row.open_reason),
            *(
                _with_bar(
                    _with_difference(_figure_cell(row, name, anchors), row, name, base),
                    row,
                    name,
                    styles,
                )
                for name in titles
            ),
        )
        for row in rows
    )
    return Table(TITLE, heads, cells, _unit_groups(rows), has_bars=True)


def _with_difference(cell: Cell, row: WorkloadRow, name: str, base: str) -> Cell:
    """The cell with its difference from the first configuration."""
    figure, first = row.figure_of_configuration(name), row.figure_of_configuration(base)
    if name == base or figure is None or first is None:
        return cell
    if not figure.is_sound or not first.is_sound:
        return cell
    return replace(cell, difference=difference_text(figure.value, first.value))


def _with_bar(cell: Cell, row: WorkloadRow, name: str, styles: SeriesStyles) -> Cell:
    """The cell with its share of the largest figure of its row as a bar."""
    figure = row.figure_of_configuration(name)
    most = max((cell.value.value or 0.0 for cell in row.cells if cell.is_sound), default=0.0)
    if figure is None or not figure.is_sound or not most or row.figure_count < 2:
        return cell
    token = styles[name].token if name in styles else SERIES[0]
    return replace(cell, bar=CellBar((figure.value.value or 0.0) / most, token))


def _workload_columns_table(
    rows: Sequence[WorkloadRow], titles: Mapping[str, str], anchors: RunAnchors
) -> Table:
    """A row for each configuration, a column for each workload, and no more than the figures."""
    heads = (Column("Configuration"), *(Column(row.title, is_number=True) for row in rows))
    cells = tuple(
        (
            Cell(title),
            *(_with_bar(_figure_only_cell(row, name, anchors), row, name, {}) for row in rows),
        )
        for name, title in titles.items()
    )
    return Table(TITLE, heads, cells, has_bars=True)


def _figure_only_cell(row: WorkloadRow, configuration: str, anchors: RunAnchors) -> Cell:
    """A figure without what is known beside it, but for its verdict."""
    figure = row.figure_of_configuration(configuration)
    is_doubted = figure is not None and figure.level is Level.INDICATIVE
    cell = _figure_cell(row, configuration, anchors)
    return replace(cell, note=Level.INDICATIVE.value if is_doubted else "")


def _figure_cell(row: WorkloadRow, configuration: str, anchors: RunAnchors) -> Cell:
    """A figure with its interval, its latency and where it was reached."""
    figure = row.figure_of_configuration(configuration)
    if figure is None or figure.level is None:
        return Cell(NOT_MEASURABLE, note=NO_VALUE)
    anchor = anchors.get(figure.run) if figure.run else None
    if not figure.is_sound:
        return Cell(NOT_MEASURABLE, anchor=anchor, note=figure.objection[1])
    mark = INDISTINGUISHABLE_MARK if figure in row.indistinguishable else ""
    under = [
        *(f"{name} {text}" for name, text in figure.latencies),
        figure.axis_text,
        half_width_text(figure.value),
        _doubt_text(figure),
    ]
    return Cell(
        f"{mark}{metric_value_text(figure.value)}",
        anchor=anchor,
        note=" · ".join(map(_kept_together, filter(None, under))),
        is_bold=row.is_decided and figure is row.best,
    )


def _kept_together(text: str) -> str:
    """A short text that no line's end parts."""
    return text.replace(" ", " ") if len(text) <= KEPT_CHARACTERS else text


def _doubt_text(figure: BestFigure) -> str:
    if figure.level is not Level.INDICATIVE:
        return ""
    return f"{verdict_mark(Level.INDICATIVE)} {Level.INDICATIVE.value}"


def half_width_text(metric: Metric) -> str:
    """Half of the interval as a share of the value, kept on one line; empty for none."""
    half = metric.half_width
    return "" if half is None else f"±{percent_text(half)}".replace(" ", "\N{NO-BREAK SPACE}")


class _OperationPair(Record):
    """Workloads that differ in reading or writing alone, or one that has no such counterpart."""

    title: str
    rows: tuple[WorkloadRow, ...]
    """That which reads and that which writes, or the only one."""


def _operation_pairs(rows: Sequence[WorkloadRow]) -> tuple[_OperationPair, ...]:
    """Workloads whose titles differ in `read` and `write` alone side by side, others alone."""
    pairs: dict[tuple[str, str], list[WorkloadRow]] = {}
    for place, row in enumerate(rows):
        word = _OPERATION_WORDS.get(row.cells[0].operation)
        rest = "" if word is None else " ".join(word.sub("", row.title).split())
        key = (row.unit, rest.casefold() if rest and rest != row.title else f"\0{place}")
        pairs.setdefault(key, []).append(row)
    return tuple(
        _OperationPair(
            _title_without_operation(members[0].title), tuple(sorted(members, key=_operation_order))
        )
        if _is_pair(members)
        else _OperationPair(row.title, (row,))
        for members in pairs.values()
        for row in (members[:1] if _is_pair(members) else members)
    )


def _is_pair(members: Sequence[WorkloadRow]) -> bool:
    return sorted(row.cells[0].operation for row in members) == ["read", "write"]


def _operation_order(row: WorkloadRow) -> str:
    return row.cells[0].operation


def _title_without_operation(title: str) -> str:
    for word in _OPERATION_WORDS.values():
        title = word.sub("", title)
    return capitalised(" ".join(title.split()))


def _operation_columns_table(rows: Sequence[WorkloadRow], anchors: RunAnchors) -> Table:
    """Of one configuration: reading and writing beside each other, one that mixes over both."""
    pairs = _operation_pairs(rows)
    names = ("Read", "Write") if any(len(pair.rows) > 1 for pair in pairs) else ("Best",)
    most: dict[str, float] = {}
    for row in rows:
        values = (cell.value.value or 0.0 for cell in row.cells if cell.is_sound)
        most[row.unit] = max(most.get(row.unit, 0.0), *values, 0.0)
    lines = []
    for pair in pairs:
        cells = [_operation_cell(row, most, anchors) for row in pair.rows]
        operation = pair.rows[0].cells[0].operation
        if len(cells) < len(names):
            is_mixed = operation not in _OPERATION_WORDS
            cells = [
                cells[0] if is_mixed or operation == name.lower() else Cell("") for name in names
            ]
        lines.append((Cell(pair.title), *cells))
    heads = (Column("Workload"), *(Column(name, is_number=True) for name in names))
    groups = _unit_groups([replace(pair.rows[0], title=pair.title) for pair in pairs])
    return Table(TITLE, heads, tuple(lines), groups, merges_equal=True, has_bars=True)


def _operation_cell(row: WorkloadRow, most: Mapping[str, float], anchors: RunAnchors) -> Cell:
    figure = row.cells[0]
    cell = _figure_cell(row, figure.configuration, anchors)
    if not figure.is_sound or not most.get(row.unit) or figure.better is Better.LOWER:
        return cell
    return replace(cell, bar=CellBar((figure.value.value or 0.0) / most[row.unit], SERIES[0]))


def best_figures_by_operation(figures: Sequence[BestFigure]) -> Iterator[BestFigure]:
    """The best figure of each unit and operation, in the order of the figures.

    Figures of mixed operations stand where no other has their unit.
    """
    for unit in dict.fromkeys(figure.value.unit for figure in figures):
        of_unit = [figure for figure in figures if figure.value.unit == unit]
        plain = [figure for figure in of_unit if not figure.is_mixed] or of_unit
        for operation in dict.fromkeys(figure.operation for figure in plain):
            yield best_of_metric([figure for figure in plain if figure.operation == operation])
