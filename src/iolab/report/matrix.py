"""The matrix of a report: the best of each workload in each configuration, and what is best.

Every figure stands there once, with its interval, its latency and where it was reached. An invalid
one is no figure: it stands there as not measurable, with the reason.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Final

from msgspec.structs import replace

from iolab.analysis.quotients import improvement_factor
from iolab.core.metric import Metric, VerdictLevel
from iolab.core.metric_spec import BetterDirection
from iolab.record import Record
from iolab.report.best import BestFigure, is_replicated_comparison, winning_best_figure
from iolab.report.charts.palette import SERIES
from iolab.report.numbers import (
    DASH,
    MAYBE_CHANCE,
    NOT_DISTINGUISHABLE,
    NOT_MEASURABLE,
    TOO_FEW_REPEATS,
    axis_values_text,
    metric_value_text,
    missing_interval_reason,
    range_text,
    ratio_text,
    verdict_mark,
)
from iolab.report.table import Cell, CellBar, Column, Table
from iolab.stats.comparison import ComparisonVerdict
from iolab.text import capitalised, list_text, percent_text

if TYPE_CHECKING:
    from iolab.report.charts.chart import SeriesStyles
    from iolab.report.charts.series import RunAnchors
    from iolab.report.value import ConfigurationFigure, ConfigurationFiguresRow

CONFIGURATION_COLUMNS_MAX: Final = 4
"""Configurations that get a column each; more are rows, of figures alone."""

NEXT_BEST: Final = "next best"
"""What all ratios of the first page are held against: the figure that comes after the best."""


INDISTINGUISHABLE_MARK: Final = "≈ "
"""Before a figure whose ratio to the best of its row has an interval that holds 1."""

ALIKE_NOTE: Final = (
    f"≈: {NOT_DISTINGUISHABLE} from the best; the 95 % interval of their ratio includes 1."
)
"""What the mark says, and why lines of a chart may seem to say something else."""

BOLD_NOTE: Final = "Bold: the best of its row, by more than chance explains."

HALF_WIDTH_NOTE: Final = "±: half of the 95 % interval over repeats."

COMPARED_NOTE: Final = "Comparisons are by repeats in pairs."

INDICATIVE_NOTE: Final = (
    f"{verdict_mark(VerdictLevel.INDICATIVE)} indicative: shows the direction, not to be quoted."
)
ALL_INDICATIVE_NOTE: Final = (
    "All figures are indicative: they show the direction and are not to be quoted."
)
"""Of figures of which none is valid, in place of a mark at each."""

_INDICATIVE_NOTES: Final = {
    VerdictLevel.INDICATIVE.value,
    f"{verdict_mark(VerdictLevel.INDICATIVE)}\N{NO-BREAK SPACE}{VerdictLevel.INDICATIVE.value}",
}
"""What notes of cells say of one that is indicative."""

WHOLE_RUN_LATENCY_NOTE: Final = (
    "Latencies are of the whole run, which is all that the engine tells; rates are of the measured "
    "seconds. So rate × mean latency may be more than the threads."
)
"""Of engines without latencies of each second."""

MAYBE_CHANCE_NOTE: Final = (
    f"{capitalised(MAYBE_CHANCE)}: the interval excludes 1, but among so many comparisons one such "
    "lead is expected by chance."
)

NO_VALUE: Final = "no run has a value"

KEPT_CHARACTERS: Final = 16
"""What is this short is not parted by the end of a line."""

TITLE: Final = "The best of each workload"
ONLY_LOADS_TITLE: Final = "The figure of each workload"
"""Where no workload was measured at several loads, and there is no best of them."""

ONE_LOAD: Final = "one load measured"
"""Of a workload whose figure is the best of none, beside others."""

_BLOCK_TITLES: Final = {
    "1/s": "IOPS",
    "bytes/s": "Bandwidth",
    "ns": "Latency",
    "ops/s": "Operations per second",
}
"""What rows of one unit are called."""

POINT_LOST: Final = "a point is missing or invalid"
"""Why a lead is open where another's best point may be one that has no figure."""

RATIO_NOTE: Final = f"× {NEXT_BEST}: the best figure of the row over the second best."

PAIRS_NOTE: Final = (
    "In brackets behind it: the 95 % interval of the ratio over repeats in pairs, where the "
    "repeats of a side are too far apart for an interval."
)
"""Why a lead can be sure though neither figure has an interval."""

_OPERATION_WORDS: Final = {
    "read": re.compile(r"\breads?\b", re.IGNORECASE),
    "write": re.compile(r"\bwrites?\b", re.IGNORECASE),
}


DOUBTED_WRITE_RATIO: Final = 1.5
"""Writes over reads of the same load from which a cache is the likelier reason than the drive."""

WRITES_DOUBT: Final = "{} the reads of this load: a cache may have taken the writes"


class WorkloadRow(Record):
    """A workload's figures; `best` is that of the best among those that are not invalid.

    `indistinguishable` cannot be told from it by their intervals. `undecided_reason` says why a
    lead has no interval; `relative_lead` is how much the best is better than the next, as a share.
    `bottleneck_texts` are what limits the figures, by configuration.
    """

    title: str
    figures: tuple[BestFigure, ...]
    best: BestFigure | None = None
    indistinguishable: tuple[BestFigure, ...] = ()
    undecided_reason: str = ""
    relative_lead: float = 0.0
    bottleneck_texts: tuple[tuple[str, str], ...] = ()

    @property
    def next_best_ratio(self) -> float:
        """The best as so many times the figure that comes after it; 1 where there is none."""
        is_lower = self.best is not None and self.best.better is BetterDirection.LOWER
        return 1 / (1 + self.relative_lead) if is_lower else 1 + self.relative_lead

    @property
    def next_best(self) -> BestFigure | None:
        """The figure that comes after the best."""
        others = [cell for cell in self.figures if cell.is_quotable and cell is not self.best]
        return winning_best_figure(others) if self.best is not None and others else None

    @property
    def lead_interval_text(self) -> str:
        """`1.33× to 2.10×`: the interval of the lead by pairs of repeats, where these disagree."""
        best, second = self.best, self.next_best
        if best is None or second is None or best.repeats_range is second.repeats_range is None:
            return ""
        return (
            self.lead_interval_over_text(second)
            if is_replicated_comparison(best.comparison_with(second))
            else ""
        )

    def lead_interval_over_text(self, trailing_figure: BestFigure) -> str:
        """`1.13× to 2.18×`: the interval of the ratio of the best to another; empty for none."""
        interval = (
            None if self.best is None else _interval_of_ratio_to_other(self.best, trailing_figure)
        )
        if interval is None:
            return ""
        is_lower = trailing_figure.better is BetterDirection.LOWER
        ends = interval if is_lower else [1 / end for end in interval]
        return " to ".join(map(ratio_text, sorted(ends)))

    @property
    def lead_ratio_text(self) -> str:
        """The ratio to the next best, with its interval in brackets where repeats disagree.

        Where they were not measured in pairs, from the least to the most of it.
        """
        best, second = self.best, self.next_best
        if best is None or second is None or best.repeats_range is second.repeats_range is None:
            return ratio_text(self.next_best_ratio)
        if span := self.lead_interval_text:
            return f"{ratio_text(self.next_best_ratio)} ({span})"
        low, high = (
            ratio_text(first / other)
            for first, other in zip(
                best.repeats_low_and_high, second.repeats_low_and_high[::-1], strict=True
            )
        )
        return f"{low} to {high}" if low != high else low

    @property
    def tie_text(self) -> str:
        """What the best is of the others, where these are no worse for sure; empty for others."""
        if not self.indistinguishable:
            return ""
        are_apart = all(is_apart_from_best(self, figure) for figure in self.indistinguishable)
        return MAYBE_CHANCE if are_apart else NOT_DISTINGUISHABLE

    def tie_note(self, titles: Mapping[str, str]) -> str:
        """The same, with of whom that is where it is not the next best: `over A may be chance`."""
        if not self.tie_text or self.next_best in self.indistinguishable:
            return self.tie_text
        names = [titles.get(own.configuration, own.configuration) for own in self.indistinguishable]
        link = "over" if self.tie_text == MAYBE_CHANCE else "from"
        return f"{link} {list_text(names)} {self.tie_text}"

    @property
    def unit(self) -> str:
        """The unit of its figures; empty where none has any."""
        return next((cell.value.unit for cell in self.figures if cell.value.unit), "")

    @property
    def figure_count(self) -> int:
        """How many configurations have a figure."""
        return sum(cell.is_quotable for cell in self.figures)

    @property
    def has_supported_winner(self) -> bool:
        """Whether intervals support which configuration is the best."""
        return self.figure_count > 1 and not self.undecided_reason and not self.indistinguishable

    def figure_of_configuration(self, configuration_id: str) -> BestFigure | None:
        """The figure of that configuration."""
        return next((cell for cell in self.figures if cell.configuration == configuration_id), None)


def workload_rows(figures: Iterable[BestFigure]) -> list[WorkloadRow]:
    """The figures of each workload, and which is the best of them; rows of one unit together."""
    grouped: dict[str, list[BestFigure]] = {}
    for figure in _with_faster_write_doubts(figures):
        grouped.setdefault(figure.workload, []).append(figure)
    rows = [_build_workload_row(cells) for cells in grouped.values()]
    units = list(dict.fromkeys((*_BLOCK_TITLES, *(row.unit for row in rows))))
    return sorted(rows, key=lambda row: units.index(row.unit))


def _with_faster_write_doubts(figures: Iterable[BestFigure]) -> list[BestFigure]:
    """The figures, rates of writes far above those of the same reads with a doubt.

    Few drives are built to write faster than they read, and a cache that takes writes fills up.
    """
    every = list(figures)
    reads = {
        _read_write_match_key(figure): figure.value.value or 0.0
        for figure in every
        if figure.operation == "read" and figure.is_quotable
    }
    found = []
    for figure in every:
        rate = reads.get(_read_write_match_key(figure), 0.0) if figure.operation == "write" else 0.0
        is_rate = figure.is_quotable and figure.better is BetterDirection.HIGHER
        ratio = (figure.value.value or 0.0) / rate if rate and is_rate else 0.0
        doubt = WRITES_DOUBT.format(ratio_text(ratio)) if ratio >= DOUBTED_WRITE_RATIO else ""
        found.append(replace(figure, doubt_text=doubt) if doubt else figure)
    return found


def _read_write_match_key(figure: BestFigure) -> tuple[str, ...]:
    """What figures have in common that differ in reading or writing alone."""
    word = _OPERATION_WORDS.get(figure.operation)
    rest = "" if word is None else " ".join(word.sub("", figure.title).split()).casefold()
    place = axis_values_text(figure.axis_values)
    return figure.configuration, figure.value.unit, figure.load_text, place, rest


def _build_workload_row(best_figures: Sequence[BestFigure]) -> WorkloadRow:
    sound = [cell for cell in best_figures if cell.is_quotable]
    title = best_figures[0].title
    if not sound:
        return WorkloadRow(title, tuple(best_figures))
    best = winning_best_figure(sound)
    leads = [_lead_over_other(best, cell) for cell in sound if cell is not best]
    lead = min((own.factor for own in leads), default=1.0) - 1
    reason = next((own.undecided_reason for own in leads if own.undecided_reason), "")
    # What the best lost could only make its lead larger.
    if any(cell.unusable_axis_values_that_may_lead for cell in sound if cell is not best):
        reason = POINT_LOST
    if reason:
        return WorkloadRow(
            title, tuple(best_figures), best, undecided_reason=reason, relative_lead=lead
        )
    alike = tuple(own.other for own in leads if not own.is_supported)
    return WorkloadRow(title, tuple(best_figures), best, alike, relative_lead=lead)


class _LeadOverOther(Record):
    """How many times as good the best is as another, and whether intervals support that.

    `undecided_reason` says why there is no interval.
    """

    other: BestFigure
    factor: float
    is_supported: bool
    undecided_reason: str = ""


def _lead_over_other(best: BestFigure, trailing_figure: BestFigure) -> _LeadOverOther:
    """By their runs where both were measured at one place of the axes, else by both intervals."""
    compared = best.comparison_with(trailing_figure)
    if is_replicated_comparison(compared):
        factor = compared.ratio if best.better is BetterDirection.LOWER else 1 / compared.ratio
        is_supported = compared.verdict is ComparisonVerdict.WORSE
        return _LeadOverOther(trailing_figure, max(factor, 1.0), is_supported)
    times = improvement_factor(best.value, trailing_figure.value, best.better)
    factor = 1.0 if times is None else times.value or 1.0
    if times is None or times.low is None:
        bare = next(
            (
                cell.value
                for cell in (best, trailing_figure)
                if cell.value.displayable_interval is None
            ),
            None,
        )
        reason = TOO_FEW_REPEATS if bare is None else missing_interval_reason(bare)
        return _LeadOverOther(trailing_figure, factor, is_supported=False, undecided_reason=reason)
    return _LeadOverOther(trailing_figure, factor, is_supported=times.low > 1)


def next_best_text(ratio: float) -> str:
    """`1.27× next best`, of less `1.27× below next best`, which no line's end parts."""
    text = ratio_text(ratio) if ratio >= 1 else f"{ratio_text(1 / ratio)} below"
    return f"{text} {NEXT_BEST}".replace(" ", "\N{NO-BREAK SPACE}")


def matrix_table(
    rows: Sequence[WorkloadRow],
    configuration_titles: Mapping[str, str],
    anchors: RunAnchors,
    styles: SeriesStyles | None = None,
    cost_capacity_rows: Sequence[ConfigurationFiguresRow] = (),
) -> Table:
    """The figures: of several configurations in columns, of many in rows, of one by operation.

    `cost_capacity_rows` are what these cost and give for it.
    """
    measured = {cell.configuration for row in rows for cell in row.figures}
    owners = {name: title for name, title in configuration_titles.items() if name in measured}
    if len(owners) > CONFIGURATION_COLUMNS_MAX:
        table = _workload_columns_table(rows, owners, anchors, cost_capacity_rows)
    elif len(owners) > 1:
        table = _configuration_columns_table(
            rows, owners, anchors, styles or {}, cost_capacity_rows
        )
    else:
        table = _operation_columns_table(rows, anchors, cost_capacity_rows)
    return _table_without_indicative_notes(table) if _are_all_indicative(rows) else table


def _are_all_indicative(rows: Sequence[WorkloadRow]) -> bool:
    """Whether one sentence says of all figures, of which there are several, that they are."""
    levels = [cell.verdict_level for row in rows for cell in row.figures if cell.is_quotable]
    return len(levels) > 1 and set(levels) == {VerdictLevel.INDICATIVE}


def _table_without_indicative_notes(table: Table) -> Table:
    """The table without the word for indicative in the notes of its cells."""
    return replace(
        table,
        rows=tuple(
            tuple(replace(cell, note=_note_without_indicative(cell.note)) for cell in cells)
            for cells in table.rows
        ),
    )


def _note_without_indicative(note: str) -> str:
    lines = (
        " · ".join(part for part in line.split(" · ") if part not in _INDICATIVE_NOTES)
        for line in note.split("\n")
    )
    return "\n".join(filter(None, lines))


def matrix_marks_note(
    rows: Sequence[WorkloadRow], extra_rows: Sequence[ConfigurationFiguresRow] = ()
) -> str:
    """What the marks of the matrix say, what keeps all its leads open, and what is not known."""
    several = [row for row in rows if len(row.figures) > 1]
    notes = []
    has_bold = any(row.lead_ratio is not None and not row.is_undecided for row in extra_rows)
    if has_bold or any(row.has_supported_winner for row in several):
        notes.append(BOLD_NOTE)
    if any(figure.comparisons for row in several for figure in row.figures):
        notes.append(COMPARED_NOTE)
    if any(_has_lead_ratio(row) for row in several):
        notes.append(RATIO_NOTE)
    if any(row.lead_interval_text for row in several if _has_lead_ratio(row)):
        notes.append(PAIRS_NOTE)
    open_figures = [(row, figure) for row in rows for figure in row.indistinguishable]
    if any(not is_apart_from_best(*pair) for pair in open_figures):
        notes.append(ALIKE_NOTE)
    if any(is_apart_from_best(*pair) for pair in open_figures):
        notes.append(MAYBE_CHANCE_NOTE)
    if reason := _shared_undecided_reason(rows):
        notes.append(f"No row has a winner: {reason}.")
    unknown = [name for row in rows for cell in row.figures for name in cell.unknown_latency_names]
    unknown += ["p99"] * any(f"p99 {DASH}" in own.note for row in extra_rows for own in row.figures)
    if unknown:
        names = " or ".join(dict.fromkeys(unknown))
        notes.append(f"No {names}: too few I/Os for it.")
    if any(cell.has_whole_run_latency for row in rows for cell in row.figures):
        notes.append(WHOLE_RUN_LATENCY_NOTE)
    return " ".join((*notes, *_notes_on_marks(rows)))


def _notes_on_marks(rows: Sequence[WorkloadRow]) -> Iterator[str]:
    """What stands below figures, as far as any has it."""
    cells = [cell for row in rows for cell in row.figures if cell.is_quotable]
    if any(cell.value.relative_half_width is not None for cell in cells):
        yield HALF_WIDTH_NOTE
    if _are_all_indicative(rows):
        yield ALL_INDICATIVE_NOTE
    elif any(cell.verdict_level is VerdictLevel.INDICATIVE for cell in cells):
        yield INDICATIVE_NOTE


def _shared_undecided_reason(rows: Sequence[WorkloadRow]) -> str:
    """The reason that keeps all rows open, where it is the same for all of several."""
    reasons = {row.undecided_reason for row in rows if row.figure_count > 1}
    return reasons.pop() if len(reasons) == 1 else ""


def _has_lead_ratio(workload_row: WorkloadRow) -> bool:
    return workload_row.figure_count > 1 and not workload_row.indistinguishable


def _row_group_titles(
    rows: Sequence[WorkloadRow], cost_capacity_rows: Sequence[ConfigurationFiguresRow]
) -> tuple[tuple[int, str], ...]:
    """The titles of all blocks, those of rows that are not measured last."""
    groups = [row.group for row in cost_capacity_rows]
    return (
        *_unit_group_titles(rows),
        *(
            (len(rows) + place, group)
            for place, group in enumerate(groups)
            if place == 0 or groups[place - 1] != group
        ),
    )


def _unit_group_titles(rows: Sequence[WorkloadRow]) -> tuple[tuple[int, str], ...]:
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
    configuration_titles: Mapping[str, str],
    anchors: RunAnchors,
    styles: SeriesStyles,
    cost_capacity_rows: Sequence[ConfigurationFiguresRow],
) -> Table:
    """A row for each workload, a column for each configuration."""
    heads = (
        Column("Workload"),
        *(Column(title, is_number=True) for title in configuration_titles.values()),
    )
    shared = _shared_undecided_reason(rows)
    cells = [
        (
            _workload_cell(row, rows, _undecided_reason_note(row, shared, configuration_titles)),
            *(
                _cell_with_bar(
                    _best_cell_with_lead_ratio(_figure_cell(row, name, anchors), row, name),
                    row,
                    name,
                    styles,
                )
                for name in configuration_titles
            ),
        )
        for row in rows
    ]
    cells += [
        (
            _title_cell_with_scope_note(row),
            *(_cost_capacity_cell(row, name, styles) for name in configuration_titles),
        )
        for row in cost_capacity_rows
    ]
    return Table(
        _matrix_title(rows),
        heads,
        tuple(cells),
        _row_group_titles(rows, cost_capacity_rows),
        has_bars=True,
    )


def _matrix_title(rows: Sequence[WorkloadRow]) -> str:
    return ONLY_LOADS_TITLE if all(_is_measured_at_one_load(row) for row in rows) else TITLE


def _is_measured_at_one_load(workload_row: WorkloadRow) -> bool:
    return all(cell.is_only_load for cell in workload_row.figures)


def _workload_cell(workload_row: WorkloadRow, rows: Sequence[WorkloadRow], note: str = "") -> Cell:
    """The title of a row; beside others that are the best of several loads that it is of one."""
    is_odd = _is_measured_at_one_load(workload_row) and _matrix_title(rows) == TITLE
    return Cell(workload_row.title, note=" · ".join(filter(None, (note, ONE_LOAD * is_odd))))


def _undecided_reason_note(
    workload_row: WorkloadRow, shared_reason: str, configuration_titles: Mapping[str, str]
) -> str:
    """Why the row has no winner, unless one note says it of all, and which points it lacks."""
    reason = workload_row.undecided_reason
    other = "" if reason in (shared_reason, POINT_LOST) else reason
    lost = (
        _unusable_points_text(workload_row, configuration_titles)
        if workload_row.figure_count > 1
        else ""
    )
    return " · ".join(filter(None, (other, lost)))


def _unusable_points_text(workload_row: WorkloadRow, titles: Mapping[str, str]) -> str:
    """The places without a sound figure, with whose they are; empty for none."""
    owners: dict[str, list[str]] = {}
    for cell in workload_row.figures:
        for axis in cell.axis_values_of_unusable_points:
            owners.setdefault(axis_values_text(axis), []).append(cell.configuration)
    parts = [
        f"{place} ({list_text([titles.get(name, name) for name in own])})"
        if len(own) < len(workload_row.figures)
        else place
        for place, own in owners.items()
    ]
    return f"invalid or missing: {'; '.join(parts)}" if parts else ""


def _title_cell_with_scope_note(cost_capacity_row: ConfigurationFiguresRow) -> Cell:
    """The title of a row that is no best figure, with of what its figures are."""
    return Cell(
        cost_capacity_row.title,
        note=f"{cost_capacity_row.scope}; best = 1×"
        if cost_capacity_row.is_value_for_money
        else cost_capacity_row.scope,
    )


def _cost_capacity_cell(
    cost_capacity_row: ConfigurationFiguresRow, configuration_id: str, styles: SeriesStyles
) -> Cell:
    """A figure of the study file; with a bar where one of the row is the best."""
    figure, ratio = (
        cost_capacity_row.figure_of_configuration(configuration_id),
        cost_capacity_row.lead_ratio,
    )
    is_best = (
        ratio is not None
        and figure is cost_capacity_row.figures_best_first[0]
        and not cost_capacity_row.is_undecided
    )
    bar = None
    # Where less is better the longest bar would be the worst.
    is_more_better = cost_capacity_row.better is BetterDirection.HIGHER
    if is_more_better and figure.amount and len(cost_capacity_row.figures_best_first) > 1:
        color = styles[configuration_id].color if configuration_id in styles else SERIES[0]
        bar = CellBar(
            figure.amount / max(own.amount or 0.0 for own in cost_capacity_row.figures_best_first),
            color,
        )
    ties = {own.configuration: own.tie_text for own in cost_capacity_row.figures if own.tie_text}
    if cost_capacity_row.is_undecided and not ties:
        ties = {
            own.configuration: NOT_DISTINGUISHABLE
            for own in _second_best_figure_if_any(cost_capacity_row)
        }
    tie = ties.get(configuration_id, "")
    return Cell(
        f"{INDISTINGUISHABLE_MARK if tie == NOT_DISTINGUISHABLE else ''}{figure.text}",
        note="\n".join(filter(None, (figure.amount_note, figure.note))),
        is_bold=is_best,
        difference=next_best_text(ratio) if is_best and ratio is not None else "",
        bar=bar,
    )


def _second_best_figure_if_any(
    cost_capacity_row: ConfigurationFiguresRow,
) -> Sequence[ConfigurationFigure]:
    return cost_capacity_row.figures_best_first[1:2]


def _best_cell_with_lead_ratio(
    cell: Cell, workload_row: WorkloadRow, configuration_id: str
) -> Cell:
    """The cell, that of the best with its ratio to the next."""
    figure = workload_row.figure_of_configuration(configuration_id)
    if figure is None or figure is not workload_row.best or not _has_lead_ratio(workload_row):
        return cell
    if " to " not in workload_row.lead_ratio_text:
        return replace(cell, difference=next_best_text(workload_row.next_best_ratio))
    if span := workload_row.lead_interval_text:
        lead = f"{next_best_text(workload_row.next_best_ratio)} ({span})"
        return replace(cell, difference=lead)
    lead = f"{workload_row.lead_ratio_text} {NEXT_BEST}".replace(" ", "\N{NO-BREAK SPACE}")
    return replace(cell, difference=lead)


def _cell_with_bar(
    cell: Cell, workload_row: WorkloadRow, configuration_id: str, styles: SeriesStyles
) -> Cell:
    """The cell with its share of the largest figure of its row as a bar."""
    figure = workload_row.figure_of_configuration(configuration_id)
    most = max(
        (cell.value.value or 0.0 for cell in workload_row.figures if cell.is_quotable), default=0.0
    )
    if figure is None or not figure.is_quotable or not most or workload_row.figure_count < 2:
        return cell
    if figure.better is BetterDirection.LOWER:
        return cell  # the longest bar would be the worst
    color = styles[configuration_id].color if configuration_id in styles else SERIES[0]
    return replace(cell, bar=CellBar((figure.value.value or 0.0) / most, color))


def _workload_columns_table(
    rows: Sequence[WorkloadRow],
    configuration_titles: Mapping[str, str],
    anchors: RunAnchors,
    cost_capacity_rows: Sequence[ConfigurationFiguresRow],
) -> Table:
    """A row for each configuration, a column for each workload, and no more than the figures."""
    names = (*(row.title for row in rows), *(row.title for row in cost_capacity_rows))
    heads = (Column("Configuration"), *(Column(name, is_number=True) for name in names))
    cells = tuple(
        (
            Cell(title),
            *(_cell_with_bar(_figure_only_cell(row, name, anchors), row, name, {}) for row in rows),
            *(_cost_capacity_cell(row, name, {}) for row in cost_capacity_rows),
        )
        for name, title in configuration_titles.items()
    )
    return Table(_matrix_title(rows), heads, cells, has_bars=True)


def _figure_only_cell(
    workload_row: WorkloadRow, configuration_id: str, anchors: RunAnchors
) -> Cell:
    """A figure without what is known beside it, but for its verdict."""
    figure = workload_row.figure_of_configuration(configuration_id)
    cell = _figure_cell(workload_row, configuration_id, anchors)
    if figure is None or not figure.is_quotable:
        return replace(cell, note="")
    doubts = (
        figure.left_out_repeats_text,
        VerdictLevel.INDICATIVE.value if figure.verdict_level is VerdictLevel.INDICATIVE else "",
    )
    return replace(cell, note=" · ".join(filter(None, doubts)))


def _figure_cell(workload_row: WorkloadRow, configuration_id: str, anchors: RunAnchors) -> Cell:
    """A figure with its interval, its latency and where it was reached."""
    figure = workload_row.figure_of_configuration(configuration_id)
    if figure is None or figure.verdict_level is None:
        return Cell(NOT_MEASURABLE, note=NO_VALUE)
    anchor = anchors.get(figure.run_key) if figure.run_key else None
    if not figure.is_quotable:
        return Cell(NOT_MEASURABLE, anchor=anchor, note=figure.objection_code_and_text[1])
    mark = indistinguishable_mark_text(workload_row, figure)
    sufficient_load = _sufficient_load_text(figure)
    lines = (
        (
            *figure.load_text.split(" · "),
            axis_text_not_in_title(figure),
            f"{sufficient_load} suffices" if sufficient_load else "",
            half_width_share_text(figure.value),
            repeats_range_text(figure),
        ),
        tuple(_latency_texts(figure, sufficient_load)),
        (
            _ratio_interval_to_best_text(workload_row, figure),
            figure.left_out_repeats_text,
            "from memory" if figure.is_mostly_read_from_memory else "",
            figure.noise_text,
            figure.doubt_text,
            f"limit: {limit}"
            if (limit := dict(workload_row.bottleneck_texts).get(configuration_id))
            else "",
            _indicative_mark_text(figure),
        ),
    )
    texts = (" · ".join(map(_with_no_break_spaces, filter(None, line))) for line in lines)
    return Cell(
        f"{mark}{metric_value_text(figure.value)}",
        anchor=anchor,
        note="\n".join(filter(None, texts)),
        is_bold=workload_row.has_supported_winner and figure is workload_row.best,
    )


def repeats_range_text(figure: BestFigure) -> str:
    """`repeats 6.95 to 12.5 k IOPS` of a figure whose repeats disagree; empty for others."""
    if figure.repeats_range is None:
        return ""
    unit = figure.value.unit
    low, high = (metric_value_text(Metric(end, unit)) for end in figure.repeats_range)
    return f"repeats {range_text(low, high)}"


def _interval_of_ratio_to_best(
    workload_row: WorkloadRow, figure: BestFigure
) -> tuple[float, float] | None:
    """The interval of its ratio to the best, which is printed; None where there is none."""
    return _interval_of_ratio_to_other(workload_row.best, figure) if workload_row.best else None


def _interval_of_ratio_to_other(
    best: BestFigure, trailing_figure: BestFigure
) -> tuple[float, float] | None:
    """The interval of the other over the best by their runs at one place of the axes."""
    compared = best.comparison_with(trailing_figure)
    if compared is None or compared.low is None or compared.high is None:
        return None
    return compared.low, compared.high


def is_apart_from_best(workload_row: WorkloadRow, figure: BestFigure) -> bool:
    """Whether the interval of its ratio to the best leaves out 1."""
    interval = _interval_of_ratio_to_best(workload_row, figure)
    return interval is not None and not interval[0] <= 1 <= interval[1]


def indistinguishable_mark_text(workload_row: WorkloadRow, figure: BestFigure) -> str:
    """What stands before a figure: whether it is not distinguishable from the best."""
    is_alike = figure in workload_row.indistinguishable and not is_apart_from_best(
        workload_row, figure
    )
    return INDISTINGUISHABLE_MARK if is_alike else ""


def _ratio_interval_to_best_text(workload_row: WorkloadRow, figure: BestFigure) -> str:
    """`0.37× to 1.1× the best`, of one that is surely worse `0.32× the best`.

    Empty for the best, and where its cell has its ratio to the next best.
    """
    best = workload_row.best
    interval = _interval_of_ratio_to_best(workload_row, figure)
    if best is None or figure is best or _has_lead_ratio(workload_row):
        return ""
    if figure not in workload_row.indistinguishable:
        if not (best.value.value and figure.value.value):
            return ""
        return f"{ratio_text(figure.value.value / best.value.value)} the best"
    if interval is None:
        return ""
    doubt = f", {MAYBE_CHANCE}" if is_apart_from_best(workload_row, figure) else ""
    return f"{range_text(*map(ratio_text, interval))} the best{doubt}"


def axis_text_not_in_title(figure: BestFigure) -> str:
    """Its place of the axes, without what its title says."""
    return ", ".join(part for part in figure.axis_text.split(", ") if part not in figure.title)


def _latency_texts(figure: BestFigure, sufficient_load: str) -> Iterator[str]:
    """Its latencies, those of the load that suffices where that is less: more load only waits."""
    names_and_texts = figure.latency_names_and_texts
    place = ""
    if sufficient_load and figure.sufficient_latency_names_and_texts:
        names_and_texts = figure.sufficient_latency_names_and_texts
        place = f"at {sufficient_load}: "
    known = [(name, text) for name, text in names_and_texts if text != DASH]
    for number, (name, text) in enumerate(known):
        yield f"{'' if number else place}{name} {text}"


def _sufficient_load_text(figure: BestFigure) -> str:
    """The least load within the interval of the best, where that is less: `iodepth 8`."""
    texts = [
        text
        for place in figure.least_sufficient_axis_values
        if (text := axis_values_text((place,))) not in figure.axis_text.split(", ")
    ]
    return " ".join(texts)


def _with_no_break_spaces(text: str) -> str:
    """A short text that no line's end parts."""
    return text.replace(" ", " ") if len(text) <= KEPT_CHARACTERS else text


def _indicative_mark_text(figure: BestFigure) -> str:
    if figure.verdict_level is not VerdictLevel.INDICATIVE:
        return ""
    return f"{verdict_mark(VerdictLevel.INDICATIVE)} {VerdictLevel.INDICATIVE.value}"


def half_width_share_text(metric: Metric) -> str:
    """Half of the interval as a share of the value, kept on one line; empty for none."""
    half = metric.relative_half_width
    return "" if half is None else f"±{percent_text(half)}".replace(" ", "\N{NO-BREAK SPACE}")


class _ReadWriteGroup(Record):
    """Workloads that differ in reading or writing alone, or one that has no such counterpart."""

    title: str
    rows: tuple[WorkloadRow, ...]
    """That which reads and that which writes, or the only one."""


def _rows_grouped_by_read_and_write(rows: Sequence[WorkloadRow]) -> tuple[_ReadWriteGroup, ...]:
    """Workloads whose titles differ in `read` and `write` alone side by side, others alone."""
    pairs: dict[tuple[str, str], list[WorkloadRow]] = {}
    for place, row in enumerate(rows):
        word = _OPERATION_WORDS.get(row.figures[0].operation)
        rest = "" if word is None else " ".join(word.sub("", row.title).split())
        key = (row.unit, rest.casefold() if rest and rest != row.title else f"\0{place}")
        pairs.setdefault(key, []).append(row)
    return tuple(
        _ReadWriteGroup(
            _title_without_operation(members[0].title),
            tuple(sorted(members, key=_operation_sort_key)),
        )
        if _is_read_and_write_pair(members)
        else _ReadWriteGroup(row.title, (row,))
        for members in pairs.values()
        for row in (members[:1] if _is_read_and_write_pair(members) else members)
    )


def _is_read_and_write_pair(members: Sequence[WorkloadRow]) -> bool:
    return sorted(row.figures[0].operation for row in members) == ["read", "write"]


def _operation_sort_key(workload_row: WorkloadRow) -> str:
    return workload_row.figures[0].operation


def _title_without_operation(title: str) -> str:
    for word in _OPERATION_WORDS.values():
        title = word.sub("", title)
    return capitalised(" ".join(title.split()))


def _operation_columns_table(
    rows: Sequence[WorkloadRow],
    anchors: RunAnchors,
    cost_capacity_rows: Sequence[ConfigurationFiguresRow],
) -> Table:
    """Of one configuration: reading and writing beside each other, one that mixes over both."""
    pairs = _rows_grouped_by_read_and_write(rows)
    title = _matrix_title(rows)
    names: tuple[str, ...] = ("Best" if title == TITLE else "Figure",)
    if any(len(pair.rows) > 1 for pair in pairs):
        names = ("Read", "Write")
    most: dict[str, float] = {}
    counts: Counter[str] = Counter()
    for row in rows:
        values = [cell.value.value or 0.0 for cell in row.figures if cell.is_quotable]
        counts[row.unit] += len(values)
        most[row.unit] = max(most.get(row.unit, 0.0), *values, 0.0)
    # The bar of the only figure of a unit would always be full.
    most = {unit: value for unit, value in most.items() if counts[unit] > 1}
    lines: list[tuple[Cell, ...]] = []
    for pair in pairs:
        cells = [_operation_cell(row, most, anchors) for row in pair.rows]
        operation = pair.rows[0].figures[0].operation
        if len(cells) < len(names):
            is_mixed = operation not in _OPERATION_WORDS
            cells = [
                cells[0] if is_mixed or operation == name.lower() else Cell("") for name in names
            ]
        lines.append((_workload_cell(replace(pair.rows[0], title=pair.title), rows), *cells))
    heads = (Column("Workload"), *(Column(name, is_number=True) for name in names))
    groups = _row_group_titles(
        [replace(pair.rows[0], title=pair.title) for pair in pairs], cost_capacity_rows
    )
    for value_row in cost_capacity_rows:
        own = value_row.figures[0]
        lines.append(
            (
                _title_cell_with_scope_note(value_row),
                *(Cell(own.text, note=own.note) for _ in names),
            )
        )
    return Table(title, heads, tuple(lines), groups, merges_equal=True, has_bars=True)


def _operation_cell(
    workload_row: WorkloadRow, largest_by_unit: Mapping[str, float], anchors: RunAnchors
) -> Cell:
    figure = workload_row.figures[0]
    cell = _figure_cell(workload_row, figure.configuration, anchors)
    if (
        not figure.is_quotable
        or not largest_by_unit.get(workload_row.unit)
        or figure.better is BetterDirection.LOWER
    ):
        return cell
    return replace(
        cell,
        bar=CellBar((figure.value.value or 0.0) / largest_by_unit[workload_row.unit], SERIES[0]),
    )


def best_figures_by_unit_and_operation(best_figures: Sequence[BestFigure]) -> Iterator[BestFigure]:
    """The best figure of each unit and operation, in the order of the figures.

    Figures of mixed operations stand where no other has their unit, and so do those that can only
    be noise.
    """
    for unit in dict.fromkeys(figure.value.unit for figure in best_figures):
        every = [figure for figure in best_figures if figure.value.unit == unit]
        of_unit = [figure for figure in every if not figure.noise_text] or every
        plain = [figure for figure in of_unit if not figure.is_mixed] or of_unit
        for operation in dict.fromkeys(figure.operation for figure in plain):
            yield winning_best_figure([figure for figure in plain if figure.operation == operation])
