"""What terminals show of results: tables without frames, verdicts in colour, harmless text."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Final

from rich.console import Console, ConsoleOptions, RenderableType, RenderResult
from rich.padding import Padding
from rich.segment import Segment
from rich.table import Table
from rich.text import Text

from iolab.core.metric import Level, Metric, Result, directions_in
from iolab.core.metric_spec import declared_among
from iolab.core.stopping import SeriesStatus
from iolab.core.study import Study
from iolab.dataclass import dataclass
from iolab.report.numbers import (
    NOTHING,
    axis_label,
    axis_number,
    clean,
    point_text,
    show,
    show_steadiness,
)
from iolab.report.table import Table as ReportTable

if TYPE_CHECKING:
    from iolab.analysis.points import PointSummary

Screen = Iterator[RenderableType]
"""What is printed, part by part."""

VERDICT_STYLES: Final = {
    Level.VALID: "green",
    Level.INDICATIVE: "yellow",
    Level.INVALID: "bold red",
}
"""The word always stands there too: colour alone tells nothing to a file or to many readers."""

QUIET_STYLE: Final = "dim"

GAP: Final = 2
"""Blanks between columns."""

NARROWEST: Final = 12
"""A column that gives way keeps so many characters: less can no longer be read."""


@dataclass(frozen=True, slots=True)
class Heading:
    """A column: numbers stand right and are never broken; a `main` column gives way first.

    A `spare` one is left out where a terminal is too narrow for all, rather than cut figures; an
    `under` one then goes below the cell on its left instead.
    """

    title: str
    number: bool = False
    main: bool = False
    spare: bool = False
    under: bool = False


def one_line(text: str) -> str:
    r"""The text on one line with everything unseen written out, as `\u001b`."""
    return clean(" ".join(text.splitlines()).replace("\t", " "))


def plain(text: str, style: str = "") -> Text:
    """Foreign or own text for a screen, never read as markup."""
    return Text(one_line(text), style=style)


def verdict(level: Level) -> Text:
    """A verdict in its word and colour."""
    return Text(level.value, style=VERDICT_STYLES[level])


def run_label(workload: str, axis: tuple[tuple[str, int | str], ...], repeat: int = 1) -> str:
    """A run in little room: `rand-read-4k, iodepth 8 #2`, with the repeat from the second on."""
    name = point_text(workload, axis)
    return one_line(name if repeat == 1 else f"{name} #{repeat}")


Row = Sequence[Text | str]
"""Cells of a table; plain strings are our own or cleaned already."""

NARROWEST_TEXT: Final = 10
"""A verdict; what else is said of a run goes on below."""


def table(headings: Sequence[Heading], rows: Sequence[Row], widths: Sequence[int] = ()) -> Table:
    """A table without frames, its columns as wide as they need to be, or as `widths` says."""
    grid = Table(box=None, pad_edge=False, padding=(0, GAP, 0, 0), header_style="bold")
    grid.show_header = any(heading.title for heading in headings)
    for number, heading in enumerate(headings):
        grid.add_column(
            heading.title,
            justify="right" if heading.number else "left",
            no_wrap=not heading.main,
            overflow="fold",
            width=widths[number] if widths else None,
        )
    for row in rows:
        grid.add_row(*(_text(cell) for cell in row))
    return grid


def of_table(report_table: ReportTable) -> Table:
    """A table of a report for a screen, without its title; all texts give way but verdicts."""
    return table(*_screened(report_table))


def fitted(report_table: ReportTable) -> Grouped:
    """The same, whose numbers are never cut: a terminal too narrow has lines in its place."""
    headings, rows = _screened(report_table)
    return Grouped(headings, ((None, rows),))


def _screened(report_table: ReportTable) -> tuple[list[Heading], list[Row]]:
    judged = [
        any(cells[at].level for cells in report_table.rows)
        for at in range(len(report_table.columns))
    ]
    headings = [
        Heading(column.title, number=column.number, main=not (column.number or has_verdict))
        for column, has_verdict in zip(report_table.columns, judged, strict=True)
    ]
    rows: list[Row] = [
        [verdict(cell.level) if cell.level else plain(cell.line) for cell in cells]
        for cells in report_table.rows
    ]
    return headings, rows


@dataclass(frozen=True, slots=True)
class Grouped:
    """One table in groups, each under a title that may be wider than any column, or under none.

    Where the terminal is too narrow the last column gives way if it may be broken, then the first,
    then others that may be broken between words, then spare columns are left out, in all groups
    alike. Where even that is too wide, each row is a name and what is known of it.
    """

    headings: Sequence[Heading]
    groups: Sequence[tuple[Text | None, Sequence[Row]]]

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """The heading, then title and rows of each group."""
        natural = self._natural()
        shown = self._fitting(natural, options.max_width)
        widths = self._widths(natural, shown, options.max_width)
        if sum(widths) + GAP * (len(widths) - 1) > options.max_width:
            yield from self._stacked()
            return
        headings = [self.headings[column] for column in shown]
        yield table(headings, [], widths)
        bare = [Heading("", heading.number, heading.main) for heading in headings]
        for name, rows in self.groups:
            if name is not None:
                yield name
            for row in rows:
                cells = [self._cell(row, column, shown) for column in shown]
                blanks = [width - cell.cell_len for cell, width in zip(cells, widths, strict=True)]
                if min(blanks) >= 0 and all(_is_line(cell) for cell in cells):
                    yield from _line(console, headings, cells, blanks)
                else:
                    cells[0] = _hanging(console, cells[0], widths[0])
                    yield table(bare, [cells], widths)
        lost = [
            heading.title
            for at, heading in enumerate(self.headings)
            if at not in shown and not heading.under
        ]
        if lost:
            names = " and ".join(lost)
            yield Text(f"Left out, as the terminal is too narrow: {names}.", style=QUIET_STYLE)

    def _is_below(self, column: int, shown: Sequence[int]) -> bool:
        """Whether its cells stand below those on their left, for want of room beside them."""
        return column < len(self.headings) and column not in shown and self.headings[column].under

    def _cell(self, row: Row, column: int, shown: Sequence[int]) -> Text:
        """A cell, with that of the next column on a line below it if that found no room beside."""
        cell = _text(row[column])
        if not self._is_below(column + 1, shown):
            return cell
        return Text("\n").join((cell, _text(row[column + 1])))

    def _stacked(self) -> RenderResult:
        """The name of each row, and below it its other cells, each after its heading."""
        for name, rows in self.groups:
            if name is not None:
                yield name
            for first, *cells in rows:
                yield _text(first)
                parts = [
                    Text(f"{heading.title} ", style=QUIET_STYLE).append_text(_text(cell))
                    for heading, cell in zip(self.headings[1:], cells, strict=True)
                    if _text(cell).plain.strip() not in {"", NOTHING}
                ]
                yield Padding(Text(", ").join(parts), (0, 0, 0, 4))

    def _natural(self) -> list[int]:
        """How wide each column is where nothing gives way."""
        every = [row for _, rows in self.groups for row in rows]
        return [
            max(len(heading.title), *(_text(row[at]).cell_len for row in every))
            for at, heading in enumerate(self.headings)
        ]

    def _fitting(self, natural: Sequence[int], room: int) -> list[int]:
        """The columns that there is room for."""
        shown = list(range(len(self.headings)))
        for column in [at for at in reversed(shown) if self.headings[at].spare]:
            if sum(self._widths(natural, shown, room)) + GAP * (len(shown) - 1) > room:
                shown.remove(column)
        return shown

    def _widths(self, natural: Sequence[int], shown: Sequence[int], room: int) -> list[int]:
        widths = [
            max(natural[at], natural[at + 1] if self._is_below(at + 1, shown) else 0)
            for at in shown
        ]
        last = len(widths) - 1
        for column in (last, 0) if self.headings[shown[last]].main else (0,):
            over = sum(widths) + GAP * last - room
            narrowest = NARROWEST_TEXT if column == last else NARROWEST
            widths[column] = max(widths[column] - max(over, 0), min(widths[column], narrowest))
        for column in (at for at in range(1, last) if self.headings[shown[at]].main):
            over = sum(widths) + GAP * last - room
            if over <= 0:
                break
            every = [row for _, rows in self.groups for row in rows]
            texts = [self.headings[shown[column]].title]
            texts += [_text(row[shown[column]]).plain for row in every]
            longest = max(len(word) for text in texts for word in text.split() or [""])
            widths[column] = max(widths[column] - max(over, 0), longest)
        return widths


def _line(
    console: Console, headings: Sequence[Heading], cells: Sequence[Text], blanks: Sequence[int]
) -> Iterator[Segment]:
    """A row of which no cell is broken, as `table` draws it in twenty times the time.

    `blanks` fill each cell up to its column's width.
    """
    unstyled = ""  # what follows one another without a style is one segment: rich works on each
    for heading, cell, missing in zip(headings, cells, blanks, strict=True):
        before, after = (missing, 0) if heading.number else (0, missing)
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


@dataclass(frozen=True, slots=True)
class Unbroken:
    """A line that stays whole however narrow the terminal is: a command to be copied."""

    text: Text

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """The text as one line."""
        yield from self.text.render(console, end="\n")


def _text(cell: Text | str) -> Text:
    return cell if isinstance(cell, Text) else Text(cell)


def _is_line(cell: Text) -> bool:
    return "\n" not in cell.plain


def _hanging(console: Console, name: Text, width: int) -> Text:
    """A name that is wider than its column: what follows its first line is indented more."""
    indent = len(name.plain) - len(name.plain.lstrip(" "))
    further = indent + 2
    if name.cell_len <= width or width - further < NARROWEST_TEXT:
        return name
    first, *rest = name[indent:].wrap(console, width - further)
    return Text("\n").join(
        (
            Text(" " * indent).append_text(first),
            *(Text(" " * further).append_text(line) for line in rest),
        )
    )


def title(text: str) -> Text:
    """A heading of a section."""
    return plain(text, "bold")


def pairs(rows: Sequence[tuple[str, Text | str]]) -> Table:
    """Names and what they are, the names in one quiet column."""
    grid = Table.grid(padding=(0, 2, 0, 0))
    grid.add_column(style=QUIET_STYLE, no_wrap=True)
    grid.add_column(overflow="fold")
    for name, text in rows:
        grid.add_row(Text(name), text if isinstance(text, Text) else plain(text))
    return grid


@dataclass(frozen=True, slots=True)
class PointRow:
    """What a row shows: of a point, or `of_run` of one of its runs, with a suffix like ` #2`."""

    suffix: str
    style: str
    metrics: Mapping[str, Metric]
    verdict: Text
    of_run: bool = False

    def spread(self, key: str) -> str:
        """How far a point's interval reaches, as `±1.2 %`, else how many runs there are."""
        metric = self.metrics.get(key)
        if metric is None or metric.n is None or self.of_run:
            return ""
        half = metric.half_width
        return f"n={metric.n}" if half is None else f"±{100 * half:.2g} %"


def point_rows(point: PointSummary, *, repeats: bool) -> Iterator[PointRow]:
    """The point; with `repeats` each of its runs too, where there are several."""
    runs = point.runs
    single = runs[0].repeat if len(runs) == 1 else 1
    text = verdict(point.level)
    if len(runs) == 1:
        text = _with_status(text, runs[0])
    yield PointRow(f" #{single}" if single > 1 else "", "", point.metrics, text)
    if len(runs) == 1 or not repeats:
        return
    for run in runs:
        # Where none counts, all of them make the point.
        left = ", left out" if point.results and run not in point.results else ""
        text = _with_status(verdict(run.verdict.level), run)
        yield PointRow(f" #{run.repeat}{left}", QUIET_STYLE, run.metrics, text, of_run=True)


def point_order(point: PointSummary) -> tuple[object, ...]:
    """Along the axes, numbers by size: a randomised plan still reads as a curve."""
    values = []
    for name, value in point.key.axis:
        number = axis_number(name, value)
        values.append((number is None, number or 0.0, str(value)))
    return tuple(values)


STEADY_SHOWN: Final = 0.0005
"""A smaller half-width of an interval is no more than rounding."""


def _with_status(text: Text, run: Result) -> Text:
    """The verdict and, where the run's own seconds told something, what."""
    steady = show_steadiness(run)
    if run.steadiness is not None and run.steadiness.status is SeriesStatus.OK:
        # No heading says what is ok; a rate that is the same in every second has no interval.
        half = run.steadiness.half_width
        steady = "steady" if half < STEADY_SHOWN else f"steady ±{100 * half:.2g} %"
    return text.append(f"  {steady}", style=QUIET_STYLE) if steady else text


def points_screen(study: Study, points: Sequence[PointSummary], *, repeats: bool) -> Grouped:
    """A row a point, under a line for workload and configuration where it has several.

    Of a mix of reads and writes a row for each of them follows.
    """
    titles = study.workload_titles
    keys = {workload.id: workload.figure for workload in study.workloads}
    many = len(study.configurations) > 1
    repeated = any(len(point.runs) > 1 for point in points)
    headings = [Heading("point", main=True), Heading("IOPS", number=True)]
    headings += [Heading("bandwidth", number=True, spare=True)]
    headings += [Heading("95 %", number=True)] if repeated else []
    headings += [Heading(name, number=True) for name in ("mean", "p99")]
    headings += [Heading("p99.9", number=True, spare=True)]
    own = declared_among(point.metrics for point in points)
    headings += [Heading(name, number=True) for _, name in own]
    grouped: dict[tuple[str, str], list[PointSummary]] = {}
    for point in points:
        grouped.setdefault((point.key.configuration, point.key.workload), []).append(point)
    groups: list[tuple[Text | None, list[list[Text | str]]]] = []
    for (configuration, workload), group in grouped.items():
        name = f"{configuration}: {titles[workload]}" if many else titles[workload]
        plain_ones = not any(point.key.axis for point in group)
        rows = []
        for point in sorted(group, key=point_order):
            place = name if plain_ones else f"  {axis_label(point.key.axis)}"
            for row in point_rows(point, repeats=repeats):
                spread = [row.spread(keys[workload])] if repeated else []
                first = plain(f"{place}{row.suffix}", row.style)
                main = "" if row.style else keys[workload]
                figures = _figures(row.metrics, "", spread, main)
                extra = [show(row.metrics.get(metric)) for metric, _ in own]
                rows.append([first, *figures, *extra, row.verdict])
                ways = directions_in(row.metrics)
                for way in ways if len(ways) > 1 and not row.of_run else ():
                    figures = _figures(row.metrics, f"{way}_", [""] * repeated, "")
                    rows.append([f"    {way}s", *figures, *[""] * len(own), ""])
        groups.append((None if plain_ones else title(name), rows))
    return Grouped([*headings, Heading("verdict", main=True)], groups)


def _figures(
    metrics: Mapping[str, Metric], prefix: str, spread: Sequence[str], main: str
) -> list[Text | str]:
    """Rates and latencies of all I/O, or of one direction; the one by `main` stands out."""

    def cell(key: str, *, bare: bool = False) -> Text:
        text = show(metrics.get(prefix + key), bare_rate=bare)
        return Text(text, style="bold" if key == main else "")

    return [
        cell("iops", bare=True),
        cell("bw_bytes_per_s"),
        *spread,
        *(cell(f"lat_ns_{name}") for name in ("mean", "p99", "p99_9")),
    ]
