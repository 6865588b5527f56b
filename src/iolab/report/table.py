"""A table of text cells, some with a verdict, and each of its forms: HTML, Markdown, CSV, typst.

That for terminals is in `terminal`. All foreign text is escaped, so that none of it is read as
markup, as HTML, or as a formula.
"""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple

from msgspec.structs import replace

from iolab.core.metric import VerdictLevel
from iolab.record import Record
from iolab.report.charts.palette import FAINT, ColorToken
from iolab.report.numbers import DASH, text_with_no_break_units, verdict_mark
from iolab.text import escape_invisible

NAMES_HEADING: Final = "What"
"""The heading of a first column that holds names of what stands beside them."""

STACKED_ROWS_MAX: Final = 40
"""Rows up to which a narrow screen shows cells one below the other; longer tables scroll."""

COMMON_ROWS_MIN: Final = 2
"""Rows from which on a column in which all are alike says nothing of any of them."""

HTML_ROWS_MAX: Final = 3000
"""Rows of a table on a page: browsers take seconds for more. What is left out is said there."""

_NUMBER_CLASS: Final = ' class="n"'

_MARKDOWN_SPECIAL: Final = re.compile(r"([\\`*_\[\]<>#|~&$]|:(?=//)|(?<=\bwww)\.)", re.IGNORECASE)
"""What begins markup, also that of GitHub, which makes links of bare addresses."""

_MARKDOWN_LINE_START: Final = re.compile(r"^(\d{0,9})([-+=.)])(?=[ =-]|$)")
"""What makes a list, a rule or a heading of the line that begins with it."""

_FORMULA_STARTS: Final = ("=", "+", "-", "@", "\t", "\r", "\n", "|", "%")
"""First characters by which spreadsheets take a text for a formula or a command."""


class Column(Record):
    """A heading; numbers stand right and are never broken.

    Where there is no room for all, a `can_wrap` column gives way first. An `is_optional` one is
    then left out rather than cut figures; a `is_stackable` one goes below the cell on its left. A
    `is_hidden_if_constant` one may be left out where all its cells are alike: what stands above
    says the same.
    """

    title: str
    is_number: bool = False
    can_wrap: bool = False
    is_optional: bool = False
    is_stackable: bool = False
    is_hidden_if_constant: bool = False


class CellBar(Record):
    """A bar below a figure: its length as a share of the longest, in a colour of its own."""

    share: float
    color: ColorToken


class Cell(Record):
    """A text; with `verdict_level` a verdict, with `anchor` it leads to a place in the report.

    `note` stands below it in small type, perhaps in several lines; `is_bold` is what stands out in
    its row. `html` is HTML of our own that stands for the text on a page. `difference` stands
    beside the text, `bar` below.
    """

    text: str
    verdict_level: VerdictLevel | None = None
    anchor: str | None = None
    note: str = ""
    is_bold: bool = False
    html: str = ""
    difference: str = ""
    bar: CellBar | None = None

    @property
    def one_line_text(self) -> str:
        """All of it in one line, for forms without small type."""
        note = "; ".join(filter(None, (self.difference, self.note.replace("\n", " · "))))
        return f"{self.text} ({note})" if note else self.text


class CellSpan(NamedTuple):
    """A cell with the columns that it covers, `width` of them from `column_index` on."""

    column_index: int
    width: int
    cell: Cell


class Table(Record):
    """Rows of cells under their columns, all of one length.

    `groups` are titles, each with the place of the row that it stands above. With `merges_equal`
    neighbouring cells of a row that are the same are shown as one, where a form can do that. With
    `has_bars` columns are equally wide, as the bars below their figures need. With
    `keeps_constant_columns` one whose rows are alike stays: that they are is what it tells.
    """

    title: str
    columns: tuple[Column, ...]
    rows: tuple[tuple[Cell, ...], ...]
    groups: tuple[tuple[int, str], ...] = ()
    merges_equal: bool = False
    has_bars: bool = False
    keeps_constant_columns: bool = False

    def cell_spans(self, cells: Sequence[Cell]) -> Iterator[CellSpan]:
        """The cells of a row; the first column stands alone."""
        if not self.merges_equal:
            return (CellSpan(place, 1, cell) for place, cell in enumerate(cells))
        return self._merged_equal_cells(cells)

    def _merged_equal_cells(self, cells: Sequence[Cell]) -> Iterator[CellSpan]:
        place = 0
        while place < len(cells):
            width = 1
            while 0 < place < len(cells) - width and cells[place + width] == cells[place]:
                width += 1
            yield CellSpan(place, width, cells[place])
            place += width


def text_and_number_columns(
    text_titles: Sequence[str],
    number_titles: Sequence[str] = (),
    trailing_text_titles: Sequence[str] = (),
) -> tuple[Column, ...]:
    """Columns of text, then columns of numbers, then of text again."""
    every = (*((text, False) for text in text_titles), *((text, True) for text in number_titles))
    return tuple(
        Column(*heading) for heading in (*every, *((text, False) for text in trailing_text_titles))
    )


def row_of_cells(*values: str | VerdictLevel | Cell) -> tuple[Cell, ...]:
    """A row of cells, some of them given as their text or their verdict."""
    return tuple(map(_cell_from_value, values))


def _cell_from_value(value: str | VerdictLevel | Cell) -> Cell:
    if isinstance(value, VerdictLevel):
        return verdict_cell(value)
    return Cell(value) if isinstance(value, str) else value


def untitled_text_table(headings: Sequence[str], rows: Iterable[Sequence[str]]) -> Table:
    """A table of plain texts without a title."""
    return Table(
        "", text_and_number_columns(tuple(headings)), tuple(row_of_cells(*texts) for texts in rows)
    )


def table_without_empty_columns(table: Table) -> Table:
    """The table without columns in which no row has anything."""
    kept = [
        place
        for place in range(len(table.columns))
        if any(cells[place].text != DASH for cells in table.rows)
    ]
    return select_columns(table, kept)


def table_with_constants_in_title(table: Table) -> Table:
    """The table without columns in which nothing stands, or the same in all of several rows.

    What all rows have in common stands behind the title. The first column stays, and so does a
    verdict that is not valid.
    """
    if table.keeps_constant_columns:
        return table_without_empty_columns(table)
    kept, common = [0], []
    for place, column in enumerate(table.columns[1:], 1):
        texts = {cells[place].one_line_text for cells in table.rows}
        is_warning = any(
            cells[place].verdict_level not in (None, VerdictLevel.VALID) for cells in table.rows
        )
        if len(table.rows) < COMMON_ROWS_MIN or len(texts) > 1 or is_warning:
            kept.append(place)
        elif texts != {DASH}:
            common.append(f"{column.title}: {texts.pop()}" if column.title else texts.pop())
    alike = "; ".join(filter(None, common))
    if alike:
        title = f"{table.title} (all rows: {alike})" if table.title else alike
    else:
        title = table.title
    return replace(select_columns(table, kept), title=title)


def split_table_at_group(table: Table, group_title: str) -> tuple[Table, Table | None]:
    """The rows before the group of that title, and those from it on where both have some."""
    start = next((at for at, title in table.groups if title == group_title), 0)
    if not start:
        return table, None
    before = tuple((at, title) for at, title in table.groups if at < start)
    after = tuple((at - start, title) for at, title in table.groups if at > start)
    return (
        replace(table, rows=table.rows[:start], groups=before),
        replace(table, title="", rows=table.rows[start:], groups=after),
    )


def select_columns(table: Table, indexes: Sequence[int]) -> Table:
    """The table with the columns at these places alone."""
    return replace(
        table,
        columns=tuple(table.columns[place] for place in indexes),
        rows=tuple(tuple(cells[place] for place in indexes) for cells in table.rows),
    )


def verdict_cell(verdict_level: VerdictLevel, anchor: str | None = None) -> Cell:
    """The cell that shows a verdict."""
    return Cell(verdict_level.value, verdict_level, anchor)


def table_html(
    table: Table, anchors: Collection[str] = (), *, has_caption: bool = False, label: str = ""
) -> str:
    """The table for a page; cells lead to those of their `anchors` that it has.

    Readers who do not see it hear its title, or else `label`. Cells of a table that is not long
    bear the names of their columns, so that a narrow screen can show them one below the other.
    """
    title = _escape_html(table.title or label)
    heads = "".join(
        "<th "
        f'scope="col"{_NUMBER_CLASS if column.is_number else ""}>{_escape_html(column.title)}</th>'
        for column in table.columns
    )
    is_wide = len(table.columns) > 2 or table.has_bars
    stacked = is_wide and len(table.rows) <= STACKED_ROWS_MAX
    classes = [
        *(["plain"] if table.columns[0].title == NAMES_HEADING else []),
        *(["matrix"] if table.has_bars else []),
        *(["stack"] if stacked else []),
    ]
    kinds = ["n" if column.is_number else "t" for column in table.columns]
    rows = [
        "".join(
            f"<td{_cell_attributes(table, place, width, cell if stacked else None)}>"
            f"{_cell_html(cell, anchors)}</td>"
            for place, width, cell in table.cell_spans(cells)
        )
        for cells in table.rows[:HTML_ROWS_MAX]
    ]
    hidden = len(table.rows) - len(rows)
    if hidden > 0:
        left_out = f"{hidden} more rows: the command line lists all"
        rows.append(f'<td class="t" colspan="{len(table.columns)}">{left_out}</td>')
    above_row = {
        at: f'</tbody><tbody><tr class="group"><th scope="rowgroup" colspan="{len(kinds)}">'
        f"{_escape_html(text)}</th></tr>\n"
        for at, text in table.groups
    }
    body = "".join(f"{above_row.get(at, '')}<tr>{row}</tr>\n" for at, row in enumerate(rows))
    above = f"<caption>{title}</caption>\n" if has_caption and table.title else ""
    return (
        f'<div class="scroll" tabindex="0" role="region" aria-label="{title}">\n'
        f'<table class="{" ".join(classes)}">\n{above}'
        f"<thead><tr>{heads}</tr></thead>\n<tbody>\n{body}</tbody></table></div>"
    )


def _cell_attributes(table: Table, column_index: int, width: int, stacked_cell: Cell | None) -> str:
    """Its class and width; of one that may be stacked the names of its columns, if it has any."""
    kind = "n" if table.columns[column_index].is_number else "t"
    attributes = f' class="{kind}"' + (f' colspan="{width}"' if width > 1 else "")
    if stacked_cell is None or stacked_cell.text in ("", DASH):
        return attributes
    covers_all = column_index == 0 or width == len(table.columns) - 1
    names = (
        []
        if covers_all
        else [column.title for column in table.columns[column_index : column_index + width]]
    )
    return f'{attributes} data-name="{_escape_html(", ".join(names))}"'


def verdict_badge_html(verdict_level: VerdictLevel, anchor: str | None = None) -> str:
    """A verdict for a page, by its shape, its word and its colour."""
    inside = f'<i aria-hidden="true">{verdict_mark(verdict_level)}</i>{verdict_level.value}'
    if anchor:
        return f'<a class="badge {verdict_level.value}" href="#{_escape_html(anchor)}">{inside}</a>'
    return f'<span class="badge {verdict_level.value}">{inside}</span>'


def _cell_html(cell: Cell, anchors: Collection[str]) -> str:
    anchor = cell.anchor if cell.anchor in anchors else None
    if cell.verdict_level is not None:
        text = verdict_badge_html(cell.verdict_level, anchor)
    else:
        text = cell.html or _escape_html(text_with_no_break_units(cell.text))
        text = f'<a href="#{_escape_html(anchor)}">{text}</a>' if anchor else text
        text = f"<b>{text}</b>" if cell.is_bold else text
    if cell.difference:
        text += f' <span class="difference">{_escape_html(cell.difference)}</span>'
    text += _bar_svg(cell.bar) if cell.bar else ""
    note = _escape_html(text_with_no_break_units(cell.note))
    return f"{text}<small>{note}</small>" if note else text


def _bar_svg(bar: CellBar) -> str:
    """A bar as wide as its share of the cell; what it says stands in the figure above."""
    return (
        '<svg class="bar" viewBox="0 0 100 6" preserveAspectRatio="none" aria-hidden="true">'
        f'<rect width="100" height="6" fill="{FAINT.css}"/>'
        f'<rect width="{100 * bar.share:.1f}" height="6" fill="{bar.color.css}"/></svg>'
    )


def _escape_html(text: str) -> str:
    from html import escape  # it reads the names of 2,000 characters, which no terminal needs

    return escape(escape_invisible(text))


def table_markdown(table: Table) -> str:
    """The table in Markdown, without its title; empty without a row."""
    return "\n".join(_markdown_lines(table)) if table.rows else ""


def _markdown_lines(table: Table) -> Iterator[str]:
    yield _markdown_line(escape_markdown(column.title) for column in table.columns)
    yield _markdown_line("---:" if column.is_number else "---" for column in table.columns)
    for cells in table.rows:
        yield _markdown_line(_markdown_cell(cell) for cell in cells)


def _markdown_line(cells: Iterable[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _markdown_cell(cell: Cell) -> str:
    text = (
        f"**{escape_markdown(cell.one_line_text)}**"
        if cell.is_bold
        else escape_markdown(cell.one_line_text)
    )
    return text if cell.verdict_level is None else f"{verdict_mark(cell.verdict_level)} {text}"


def escape_markdown(text: str) -> str:
    """A text on one line of Markdown, with nothing in it read as markup."""
    line = _MARKDOWN_SPECIAL.sub(r"\\\1", escape_invisible(" ".join(text.split())))
    return _MARKDOWN_LINE_START.sub(r"\1\\\2", line)


ExportValue = str | int | float | None
"""A field of CSV or of another export: None is unknown."""


def table_csv(table: Table) -> str:
    """The table as CSV under its headings."""
    rows = ([cell.one_line_text for cell in cells] for cells in table.rows)
    return rows_csv([column.title for column in table.columns], rows)


def rows_csv(headings: Sequence[str], rows: Iterable[Iterable[ExportValue]]) -> str:
    """RFC 4180; an unknown number is an empty field.

    Text that a spreadsheet would run as a formula gets an apostrophe before it.
    """
    out = io.StringIO(newline="")
    writer = csv.writer(out)
    writer.writerow([_csv_cell(name) for name in headings])
    writer.writerows([_csv_cell(value) for value in row] for row in rows)
    return out.getvalue()


def records_csv(records: Iterable[Mapping[str, object]]) -> str:
    """Records as CSV, a column for each key of any of them."""
    return rows_csv(*_names_and_rows_of_records(records))


def records_markdown(records: Iterable[Mapping[str, object]]) -> str:
    """The same in Markdown."""
    names, rows = _names_and_rows_of_records(records)
    texts = [["" if value is None else str(value) for value in row] for row in rows]
    return f"{table_markdown(untitled_text_table(names, texts))}\n"


def _names_and_rows_of_records(
    records: Iterable[Mapping[str, object]],
) -> tuple[list[str], list[list[ExportValue]]]:
    flat = [dict(_flat_items(record, "")) for record in records]
    names = list(dict.fromkeys(name for record in flat for name in record))
    return names, [[record.get(name) for name in names] for record in flat]


def _flat_items(record: Mapping[str, object], prefix: str) -> Iterator[tuple[str, ExportValue]]:
    """Scalars by their dotted names; a list of them is one text."""
    for key, value in record.items():
        if isinstance(value, Mapping):
            yield from _flat_items(value, f"{prefix}{key}.")
        elif isinstance(value, list | tuple):
            yield f"{prefix}{key}", "; ".join(map(str, value))
        else:
            yield (
                f"{prefix}{key}",
                value if isinstance(value, int | float | str | None) else str(value),
            )


def _csv_cell(value: ExportValue) -> str | int | float:
    if value is None:
        return ""
    if isinstance(value, str):
        text = escape_invisible(value)
        return f"'{text}" if text.startswith(_FORMULA_STARTS) else text
    return value


def table_typst_data(table: Table, title: str | None = None) -> dict[str, Any]:
    """The table as the typesetter's template takes it, under `title` or its own."""
    return {
        "title": table.title if title is None else title,
        "columns": [
            {"title": column.title, "number": column.is_number} for column in table.columns
        ],
        "rows": [
            [
                {**_cell_typst_data(cell), "width": width}
                for _, width, cell in table.cell_spans(cells)
            ]
            for cells in table.rows
        ],
        "groups": [{"row": place, "title": text} for place, text in table.groups],
    }


def verdict_typst_data(verdict_level: VerdictLevel) -> dict[str, str]:
    """A verdict for it."""
    return {"name": verdict_level.value, "mark": verdict_mark(verdict_level)}


def _cell_typst_data(cell: Cell) -> dict[str, Any]:
    if cell.verdict_level is not None:
        return {"level": verdict_typst_data(cell.verdict_level)}
    return {
        "text": cell.text,
        "under": cell.note,
        "strong": cell.is_bold,
        "difference": cell.difference,
        "bar": None if cell.bar is None else [round(cell.bar.share, 4), cell.bar.color.light],
    }
