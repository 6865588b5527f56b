"""What terminals show of results: tables without frames, verdicts in colour, harmless text."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Final

from msgspec.structs import replace
from rich.console import (
    Console,
    ConsoleOptions,
    JustifyMethod,
    OverflowMethod,
    RenderableType,
    RenderResult,
)
from rich.containers import Lines
from rich.padding import Padding
from rich.segment import Segment
from rich.table import Table
from rich.text import Text

from iolab.core.metric import Metric, RunResult, VerdictLevel, direction_keys_with_latency
from iolab.core.metric_spec import column_metric_keys_and_labels
from iolab.core.stopping import SteadinessStatus
from iolab.core.study import Study
from iolab.record import Record
from iolab.report.numbers import (
    DASH,
    axis_value_as_number,
    axis_values_text,
    metric_value_text,
    point_text,
    steadiness_text,
    text_with_no_break_units,
)
from iolab.report.short_names import screen_name_by_configuration
from iolab.report.table import Column
from iolab.report.table import Table as ReportTable
from iolab.text import list_text, one_line, percent_text

if TYPE_CHECKING:
    from iolab.analysis.points import PointSummary

Screen = Iterator[RenderableType]
"""What is printed, part by part."""

VERDICT_STYLES: Final = {
    VerdictLevel.VALID: "green",
    VerdictLevel.INDICATIVE: "yellow",
    VerdictLevel.INVALID: "bold red",
}
"""The word always stands there too: colour alone tells nothing to a file or to many readers."""

QUIET_STYLE: Final = "dim"

_NO_BREAK_MARK: Final = "\N{BRAILLE PATTERN BLANK}"
"""As wide as a blank, and none to rich, which breaks lines at no-break spaces too."""

GAP: Final = 2
"""Blanks between columns."""

COLUMN_WIDTH_MIN: Final = 12
"""A column that gives way keeps so many characters: less can no longer be read."""

VERDICT_WIDTH_MIN: Final = 10
"""A verdict; what else is said of a run goes on below."""

_BARS: Final = "▁▂▃▄▅▆▇█"
_ASCII_BARS: Final = "_.:-=+*#"

SUMMARY_WIDTH_MAX: Final = 110
"""Columns of a summary that goes into a file or pipe."""

HALF_WIDTH_SHOWN_MIN: Final = 0.0005
"""A smaller half-width of an interval is no more than rounding."""


def sparkline(values: Sequence[float | None], width: int, *, ascii_only: bool = False) -> str:
    """The last `width` values as bars from zero to their greatest; a gap where one is unknown."""
    bars = _ASCII_BARS if ascii_only else _BARS
    last = list(values)[-width:] if width > 0 else []
    top = max((value for value in last if value is not None), default=0.0)
    return "".join(
        " "
        if value is None
        else bars[min(int(value / top * len(bars)), len(bars) - 1) if top > 0 else 0]
        for value in last
    )


class UnbrokenUnitsText(Text):
    """A text of which no line ends between a value and its unit: `95 %`, `1 MiB`."""

    def wrap(
        self,
        console: Console,
        width: int,
        *,
        justify: JustifyMethod | None = None,
        overflow: OverflowMethod | None = None,
        tab_size: int = 8,
        no_wrap: bool | None = None,
    ) -> Lines:
        """Its lines, which rich would end at any white space."""
        held = self.copy()
        unbroken = text_with_no_break_units(self.plain)
        held.plain = unbroken.replace("\N{NO-BREAK SPACE}", _NO_BREAK_MARK)
        lines = held.wrap(
            console,
            width,
            justify=justify,
            overflow=overflow,
            tab_size=tab_size,
            no_wrap=no_wrap,
        )
        for line in lines:
            line.plain = line.plain.replace(_NO_BREAK_MARK, " ")
        return lines


def literal_text(text: str, style: str = "") -> Text:
    """Foreign or own text for a screen, never read as markup."""
    return UnbrokenUnitsText(one_line(text), style=style)


def styled_verdict(verdict_level: VerdictLevel) -> Text:
    """A verdict in its word and colour."""
    return Text(verdict_level.value, style=VERDICT_STYLES[verdict_level])


def run_label(
    workload_id: str, axis_values: tuple[tuple[str, int | str], ...], repeat: int = 1
) -> str:
    """A run in little room: `rand-read-4k, iodepth 8 #2`, with the repeat from the second on."""
    name = point_text(workload_id, axis_values)
    return one_line(name if repeat == 1 else f"{name} #{repeat}")


TerminalCell = Text | str
Row = Sequence[TerminalCell]
"""Cells of a table; plain strings are our own or cleaned already."""


def terminal_table(
    headings: Sequence[Column], rows: Sequence[Row], widths: Sequence[int] = ()
) -> Table:
    """A table without frames, its columns as wide as they need to be, or as `widths` says."""
    grid = Table(box=None, pad_edge=False, padding=(0, GAP, 0, 0), header_style="bold")
    grid.show_header = any(heading.title for heading in headings)
    for number, heading in enumerate(headings):
        grid.add_column(
            heading.title,
            justify="right" if heading.is_number else "left",
            no_wrap=not heading.can_wrap,
            overflow="fold",
            width=widths[number] if widths else None,
        )
    for row in rows:
        grid.add_row(*(_as_text(cell) for cell in row))
    return grid


def report_table_for_terminal(report_table: ReportTable) -> Table:
    """A table of a report for a screen, without its title; all texts give way but verdicts."""
    return terminal_table(*_headings_and_rows(report_table))


def grouped_report_table(report_table: ReportTable) -> GroupedTable:
    """The same in its groups, whose numbers are never cut: see `GroupedTable`."""
    headings, rows = _headings_and_rows(report_table)
    starts = [at for at, _ in report_table.groups]
    titles = [section_title(title) for _, title in report_table.groups]
    parts = zip([None, *titles], pairwise([0, *starts, len(rows)]), strict=True)
    groups = [(title, rows[first:end]) for title, (first, end) in parts if end > first]
    return GroupedTable(headings, groups)


def _headings_and_rows(report_table: ReportTable) -> tuple[list[Column], list[Row]]:
    judged = [
        any(cells[at].verdict_level for cells in report_table.rows)
        for at in range(len(report_table.columns))
    ]
    headings = [
        replace(column, can_wrap=column.can_wrap or not (column.is_number or has_verdict))
        for column, has_verdict in zip(report_table.columns, judged, strict=True)
    ]
    rows: list[Row] = [
        [
            styled_verdict(cell.verdict_level)
            if cell.verdict_level
            else literal_text(cell.one_line_text, "bold" if cell.is_bold else "")
            for cell in cells
        ]
        for cells in report_table.rows
    ]
    return headings, rows


class GroupedTable(Record):
    """One table in groups, each under a title that may be wider than any column, or under none.

    Where the terminal is too narrow the last column gives way if it may be broken, then the first,
    then others that may be broken between words, then spare columns are left out, in all groups
    alike. Where even that is too wide, each row is a name and what is known of it.

    A `is_summary` leaves out common and spare columns before it breaks a name, without a word: what
    stands below it says where all of them are.
    """

    headings: Sequence[Column]
    groups: Sequence[tuple[Text | None, Sequence[Row]]]
    is_summary: bool = False

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """The heading, then title and rows of each group."""
        natural = self._natural_widths()
        if self.is_summary:
            width = min(options.max_width, SUMMARY_WIDTH_MAX)
            shown = self._informative_column_indexes(natural, width)
        else:
            shown = self._fitting_column_indexes(natural, options.max_width)
        widths = self._column_widths(natural, shown, options.max_width)
        if sum(widths) + GAP * (len(widths) - 1) > options.max_width:
            yield from self._stacked_lines()
            return
        headings = [self.headings[column] for column in shown]
        yield terminal_table(headings, [], widths)
        bare = [replace(heading, title="") for heading in headings]
        for name, rows in self.groups:
            if name is not None:
                yield name
            for row in rows:
                cells = [self._cell_text(row, column, shown) for column in shown]
                blanks = [width - cell.cell_len for cell, width in zip(cells, widths, strict=True)]
                if min(blanks) >= 0 and all(_is_single_line(cell) for cell in cells):
                    yield from _row_segments(console, headings, cells, blanks)
                else:
                    cells[0] = _wrap_with_hanging_indent(console, cells[0], widths[0])
                    yield terminal_table(bare, [cells], widths)
        lost = [
            heading.title
            for at, heading in enumerate(self.headings)
            if at not in shown and not heading.is_stackable
        ]
        if lost and not self.is_summary:
            names = list_text(lost)
            yield Text(f"Left out, as the terminal is too narrow: {names}.", style=QUIET_STYLE)

    def _is_stacked_below(self, column: int, shown_columns: Sequence[int]) -> bool:
        """Whether its cells stand below those on their left, for want of room beside them."""
        return (
            column < len(self.headings)
            and column not in shown_columns
            and self.headings[column].is_stackable
        )

    def _cell_text(self, row: Row, column: int, shown_columns: Sequence[int]) -> Text:
        """A cell, with that of the next column on a line below it if that found no room beside."""
        cell = _as_text(row[column])
        if not self._is_stacked_below(column + 1, shown_columns):
            return cell
        return Text("\n").join((cell, _as_text(row[column + 1])))

    def _stacked_lines(self) -> RenderResult:
        """The name of each row, and below it its other cells, each after its heading."""
        for name, rows in self.groups:
            if name is not None:
                yield name
            for first, *cells in rows:
                yield _as_text(first)
                parts = [
                    Text(f"{heading.title} ", style=QUIET_STYLE).append_text(_as_text(cell))
                    for heading, cell in zip(self.headings[1:], cells, strict=True)
                    if _as_text(cell).plain.strip() not in {"", DASH}
                ]
                yield Padding(Text(", ").join(parts), (0, 0, 0, 4))

    def _natural_widths(self) -> list[int]:
        """How wide each column is where nothing gives way."""
        every = [row for _, rows in self.groups for row in rows]
        return [
            max([len(heading.title), *(_as_text(row[at]).cell_len for row in every)])
            for at, heading in enumerate(self.headings)
        ]

    def _fitting_column_indexes(
        self, natural_widths: Sequence[int], available_width: int
    ) -> list[int]:
        """The columns that there is room for."""
        shown = list(range(len(self.headings)))
        for column in [at for at in reversed(shown) if self.headings[at].is_optional]:
            if (
                sum(self._column_widths(natural_widths, shown, available_width))
                + GAP * (len(shown) - 1)
                > available_width
            ):
                shown.remove(column)
        return shown

    def _informative_column_indexes(
        self, natural_widths: Sequence[int], available_width: int
    ) -> list[int]:
        """The columns that say something and fit without breaking a name."""
        rows = [row for _, rows in self.groups for row in rows]
        texts = [{_as_text(row[at]).plain for row in rows} for at in range(len(self.headings))]
        shown = [
            at
            for at, heading in enumerate(self.headings)
            if at == 0
            or not (
                texts[at] <= {"", DASH}
                or (heading.is_hidden_if_constant and len(rows) > 1 == len(texts[at]))
            )
        ]
        for column in [at for at in reversed(shown) if self.headings[at].is_optional]:
            if sum(natural_widths[at] for at in shown) + GAP * (len(shown) - 1) > available_width:
                shown.remove(column)
        return shown

    def _column_widths(
        self, natural_widths: Sequence[int], shown_columns: Sequence[int], available_width: int
    ) -> list[int]:
        widths = [
            max(
                natural_widths[at],
                natural_widths[at + 1] if self._is_stacked_below(at + 1, shown_columns) else 0,
            )
            for at in shown_columns
        ]
        last = len(widths) - 1
        for column in (last, 0) if self.headings[shown_columns[last]].can_wrap else (0,):
            over = sum(widths) + GAP * last - available_width
            narrowest = VERDICT_WIDTH_MIN if column == last else COLUMN_WIDTH_MIN
            widths[column] = max(widths[column] - max(over, 0), min(widths[column], narrowest))
        for column in (at for at in range(1, last) if self.headings[shown_columns[at]].can_wrap):
            over = sum(widths) + GAP * last - available_width
            if over <= 0:
                break
            every = [row for _, rows in self.groups for row in rows]
            texts = [self.headings[shown_columns[column]].title]
            texts += [_as_text(row[shown_columns[column]]).plain for row in every]
            longest = max(len(word) for text in texts for word in text.split() or [""])
            widths[column] = max(widths[column] - max(over, 0), longest)
        return widths


def _row_segments(
    console: Console,
    headings: Sequence[Column],
    cells: Sequence[Text],
    padding_widths: Sequence[int],
) -> Iterator[Segment]:
    """A row of which no cell is broken, as `terminal_table` draws it in twenty times the time.

    `padding_widths` fill each cell up to its column's width.
    """
    unstyled = ""  # what follows one another without a style is one segment: rich works on each
    for heading, cell, missing in zip(headings, cells, padding_widths, strict=True):
        before, after = (missing, 0) if heading.is_number else (0, missing)
        unstyled += " " * before
        if cell.style or cell.spans:
            yield Segment(unstyled)
            yield from Segment.apply_style(cell.render(console), console.get_style(cell.style))
            unstyled = ""
        else:
            unstyled += cell.plain
        unstyled += " " * (after + GAP)
    yield Segment(unstyled)
    yield Segment.line()


class UnwrappedLine(Record):
    """A line that stays whole however narrow the terminal is: a command to be copied."""

    text: Text

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """The text as one line."""
        yield from self.text.render(console, end="\n")


def _as_text(cell: Text | str) -> Text:
    return cell if isinstance(cell, Text) else Text(cell)


def _is_single_line(cell: Text) -> bool:
    return "\n" not in cell.plain


def _wrap_with_hanging_indent(console: Console, text: Text, width: int) -> Text:
    """A name that is wider than its column: what follows its first line is indented more."""
    indent = len(text.plain) - len(text.plain.lstrip(" "))
    further = indent + 2
    if text.cell_len <= width or width - further < VERDICT_WIDTH_MIN:
        return text
    first, *rest = text[indent:].wrap(console, width - further)
    return Text("\n").join(
        (
            Text(" " * indent).append_text(first),
            *(Text(" " * further).append_text(line) for line in rest),
        )
    )


def section_title(text: str) -> Text:
    """A heading of a section."""
    return literal_text(text, "bold")


def name_value_grid(rows: Sequence[tuple[str, Text | str]]) -> Table:
    """Names and what they are, the names in one quiet column."""
    grid = Table.grid(padding=(0, 2, 0, 0))
    grid.add_column(style=QUIET_STYLE, no_wrap=True)
    grid.add_column(overflow="fold")
    for name, text in rows:
        grid.add_row(Text(name), text if isinstance(text, Text) else literal_text(text))
    return grid


class PointRow(Record):
    """A row of a point, or of one of its runs (`is_single_run`) with a suffix like ` #2`."""

    run_suffix: str
    style: str
    metrics: Mapping[str, Metric]
    verdict: Text
    is_single_run: bool = False

    def half_width_or_run_count_text(self, metric_key: str) -> str:
        """How far a point's interval reaches, as `±1.2 %`, else how many runs there are."""
        metric = self.metrics.get(metric_key)
        if metric is None or metric.n is None or self.is_single_run:
            return ""
        half = metric.relative_half_width
        return f"n={metric.n}" if half is None else f"±{percent_text(half)}"


def point_rows(point: PointSummary, *, with_run_rows: bool) -> Iterator[PointRow]:
    """The point; with `with_run_rows` each of its runs too, where there are several."""
    runs = point.runs
    single = runs[0].repeat if len(runs) == 1 else 1
    text = styled_verdict(point.verdict_level)
    if len(runs) == 1:
        text = _verdict_with_steadiness(text, runs[0])
    yield PointRow(f" #{single}" if single > 1 else "", "", point.metrics, text)
    if len(runs) == 1 or not with_run_rows:
        return
    for run in runs:
        # Where none counts, all of them make the point.
        left = ", left out" if point.results and run not in point.results else ""
        text = _verdict_with_steadiness(styled_verdict(run.verdict.level), run)
        yield PointRow(f" #{run.repeat}{left}", QUIET_STYLE, run.metrics, text, is_single_run=True)


def point_sort_key(point: PointSummary) -> tuple[object, ...]:
    """Along the axes, numbers by size: a randomised plan still reads as a curve."""
    values = []
    for name, value in point.key.axis_values:
        number = axis_value_as_number(name, value)
        values.append((number is None, number or 0.0, str(value)))
    return tuple(values)


def _verdict_with_steadiness(text: Text, result: RunResult) -> Text:
    """The verdict and, where the run's own seconds told something, what."""
    steady = steadiness_text(result)
    if result.steadiness is not None and result.steadiness.status is SteadinessStatus.OK:
        # No heading says what is ok; a rate that is the same in every second has no interval.
        half = result.steadiness.half_width
        steady = "steady" if half < HALF_WIDTH_SHOWN_MIN else f"steady ±{percent_text(half)}"
    return text.append(f"  {steady}", style=QUIET_STYLE) if steady else text


def points_terminal_table(
    study: Study, points: Sequence[PointSummary], *, with_run_rows: bool
) -> GroupedTable:
    """A row a point, under a line for workload and configuration where it has several.

    Of a mix of reads and writes a row for each of them follows.
    """
    titles = study.workload_titles
    keys = {workload.id: workload.headline_or_rate_metric for workload in study.workloads}
    owners = screen_name_by_configuration(study)
    many = len(owners) > 1
    repeated = any(len(point.runs) > 1 for point in points)
    headings = [Column("point", can_wrap=True), Column("IOPS", is_number=True)]
    headings += [Column("bandwidth", is_number=True, is_optional=True)]
    headings += [Column("95 %", is_number=True)] if repeated else []
    headings += [Column(name, is_number=True) for name in ("mean", "p99")]
    headings += [Column("p99.9", is_number=True, is_optional=True)]
    own = column_metric_keys_and_labels(point.metrics for point in points)
    headings += [Column(name, is_number=True, is_optional=True) for _, name in own]
    grouped: dict[tuple[str, str], list[PointSummary]] = {}
    for point in points:
        grouped.setdefault((point.key.configuration, point.key.workload), []).append(point)
    groups: list[tuple[Text | None, list[list[Text | str]]]] = []
    for (configuration, workload), group in grouped.items():
        name = f"{owners[configuration]}: {titles[workload]}" if many else titles[workload]
        plain_ones = not any(point.key.axis_values for point in group)
        rows = []
        for point in sorted(group, key=point_sort_key):
            place = name if plain_ones else f"  {axis_values_text(point.key.axis_values)}"
            for row in point_rows(point, with_run_rows=with_run_rows):
                spread = [row.half_width_or_run_count_text(keys[workload])] if repeated else []
                first = literal_text(f"{place}{row.run_suffix}", row.style)
                main = "" if row.style else keys[workload]
                figures = _rate_and_latency_cells(row.metrics, "", spread, main)
                extra = [metric_value_text(row.metrics.get(metric)) for metric, _ in own]
                rows.append([first, *figures, *extra, row.verdict])
                ways = direction_keys_with_latency(row.metrics)
                for way in ways if len(ways) > 1 and not row.is_single_run else ():
                    figures = _rate_and_latency_cells(row.metrics, f"{way}_", [""] * repeated, "")
                    rows.append([f"    {way}s", *figures, *[""] * len(own), ""])
        groups.append((None if plain_ones else section_title(name), rows))
    verdict = Column("verdict", can_wrap=True, is_hidden_if_constant=True)
    return GroupedTable([*headings, verdict], groups)


def _rate_and_latency_cells(
    metrics: Mapping[str, Metric],
    direction_prefix: str,
    spread_cells: Sequence[str],
    bold_metric_key: str,
) -> list[Text | str]:
    """Rates and latencies of all I/O, or of one direction; that of `bold_metric_key` is bold."""

    def metric_cell(metric_key: str, *, is_rate_unit_omitted: bool = False) -> Text:
        text = metric_value_text(
            metrics.get(direction_prefix + metric_key), is_rate_unit_omitted=is_rate_unit_omitted
        )
        return Text(text, style="bold" if metric_key == bold_metric_key else "")

    iops = metrics.get("iops")
    # Operations that move no contents have a rate of their own alone.
    is_without_ios = not direction_prefix and (iops is None or iops.value is None)
    rate = bold_metric_key if is_without_ios and bold_metric_key in metrics else "iops"
    return [
        metric_cell(rate, is_rate_unit_omitted=True),
        metric_cell("bw_bytes_per_s"),
        *spread_cells,
        *(metric_cell(f"lat_ns_{name}") for name in ("mean", "p99", "p99_9")),
    ]
