"""`iolab reference`: the results that others published, shipped as data."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from iolab.cli.options import AsJson

if TYPE_CHECKING:
    from rich.console import RenderableType

    from iolab.published.audit.document import Published
    from iolab.report.table import Table

SECTION_ROWS_MAX: Final = 64
"""Published tables are short; the rest of a longer one stands in its file."""


def reference(
    name: Annotated[
        str | None,
        typer.Argument(metavar="[SET]", help="The id of a published set; all are listed without."),
    ] = None,
    *,
    toml: Annotated[bool, typer.Option("--toml", help="Print the set's file as it ships.")] = False,
    as_json: AsJson = False,
) -> None:
    """List the published results that come with iolab, or show one set of them."""
    from iolab.cli.output import raw_result, result_json, result_screen
    from iolab.cli.studies import find_published, open_published, published_ids
    from iolab.errors import UsageError

    if name is None:
        if toml:
            raise UsageError("--toml prints one set.", "Name it; 'iolab reference' lists them.")
        sets = [open_published(one) for one in published_ids()]
        if as_json:
            result_json({"format": 1, "sets": [_heading(one) for one in sets]})
        else:
            result_screen(*_list(sets))
        return
    published = open_published(name)
    if toml:
        raw_result(find_published(name).text)
    elif as_json:
        from iolab.published.report import computed_document

        told = {"content": _plain(published.tree), "computed": computed_document(published)}
        result_json({"format": 1, **_heading(published), **told})
    else:
        result_screen(*_set(published))


def _heading(published: Published) -> dict[str, Any]:
    figures = sum(1 for _ in published.figures())
    return {"id": published.id, "source": published.source, "figures": figures}


def _list(sets: list[Published]) -> Iterator[RenderableType]:
    from rich.text import Text

    from iolab.report.terminal import Heading, plain, table

    rows = [
        [plain(one.id, "bold"), Text(str(sum(1 for _ in one.figures()))), plain(one.source)]
        for one in sets
    ]
    headings = [Heading("set"), Heading("figures", number=True), Heading("source", main=True)]
    yield table(headings, rows)


def _set(published: Published) -> Iterator[RenderableType]:
    """The source, table after table of the file, then what our own functions make of it."""
    from iolab.published.report import computed_tables, sections
    from iolab.report.terminal import pairs, plain, title

    yield title(published.id)
    yield plain(published.source, "dim")
    for section in sections(published):
        yield ""
        yield title(section.title)
        if section.table is None:
            yield pairs([(name, text) for name, text in section.pairs])
            continue
        yield _table(section.table)
    for one in computed_tables(published):
        yield ""
        yield title(f"Computed: {one.title[0].lower()}{one.title[1:]}")
        yield _table(one)


def _table(one: Table) -> RenderableType:
    """The first rows; a verdict is a word as any other here."""
    from iolab.report.terminal import Heading, plain, table

    headings = [
        Heading(column.title, number=column.number, main=not column.number)
        for column in one.columns
    ]
    rows = one.rows[:SECTION_ROWS_MAX]
    return table(headings, [[plain(cell.text) for cell in row] for row in rows])


def _plain(value: Any) -> Any:  # noqa: ANN401 - JSON of any shape
    """The tree as JSON has it: decimals as floats, dates and times as text."""
    from datetime import date, time
    from decimal import Decimal

    if isinstance(value, dict):
        return {key: _plain(part) for key, part in value.items()}
    if isinstance(value, list):
        return [_plain(part) for part in value]
    if isinstance(value, date | time):
        return value.isoformat()
    return float(value) if isinstance(value, Decimal) else value
