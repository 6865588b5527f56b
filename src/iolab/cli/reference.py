"""`iolab reference` and `iolab audit`: results that others published, and whether figures agree."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import date, time
from decimal import Decimal
from enum import StrEnum
from operator import attrgetter
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer
from msgspec import to_builtins
from msgspec.structs import replace

from iolab.cli.options import (
    OutputFormat,
    published_set_completions,
    session_or_set_completions,
    with_output_format,
)
from iolab.cli.output import (
    note_and_print_left_out_session,
    output_width,
    print_document,
    print_raw,
    print_renderables,
)
from iolab.cli.studies import published_set_ids, read_published_set, read_published_source
from iolab.errors import ExitCode, Fault, IolabError, UsageError
from iolab.record import Record
from iolab.text import counted_noun, uncapitalised

if TYPE_CHECKING:
    from rich.console import RenderableType
    from rich.text import Text

    from iolab.published.audit.document import PublishedSet
    from iolab.published.audit.relations import Agreement, AuditOutcome
    from iolab.report.table import Table


RECORDS_MAX: Final = 4
"""Rows of a table too wide for the terminal that are shown as a line for each column."""

SECTION_ROWS_MAX: Final = 64
"""Published tables are short; the rest of a longer one stands in its file."""

_STYLES: Final = {"agrees": "green", "doubtful": "yellow", "contradicts": "bold red"}
_NO_FIGURES: Final = "It has no figures that could be computed from others."


@with_output_format
def reference(
    name: Annotated[
        str | None,
        typer.Argument(
            metavar="SET",
            help="A published set; without, all are listed.",
            autocompletion=published_set_completions,
        ),
    ] = None,
    *,
    toml: Annotated[bool, typer.Option("--toml", help="Print the set's file.")] = False,
    output_format: OutputFormat,
) -> None:
    """Show the published results that come with iolab."""
    if name is None:
        if toml:
            raise UsageError("--toml prints one set.", "Name it; 'iolab reference' lists them.")
        sets = [read_published_set(set_id) for set_id in published_set_ids()]
        if output_format is not OutputFormat.TABLE:
            headings = [_published_set_heading_document(published_set) for published_set in sets]
            print_document(output_format, {"format": 1, "sets": headings}, headings)
        else:
            print_renderables(*_published_set_list_lines(sets))
        return
    published = read_published_set(name)
    if toml:
        print_raw(read_published_source(name).text)
    elif output_format is not OutputFormat.TABLE:
        from iolab.published.report import document_from_printed_figures

        parts = {
            "content": _json_value(published.tree),
            "computed": document_from_printed_figures(published),
        }
        document = {"format": 1, **_published_set_heading_document(published), **parts}
        print_document(output_format, document, _figure_documents(published))
    else:
        print_renderables(*_published_set_lines(published))


def _published_set_heading_document(published: PublishedSet) -> dict[str, Any]:
    figures = sum(1 for _ in published.figures_with_paths())
    return {"id": published.id, "source": published.source, "figures": figures}


def _figure_documents(published: PublishedSet) -> list[dict[str, object]]:
    """Every number of a set by its place in the file."""
    return [
        {"figure": ".".join(map(str, path)), "value": str(value)}
        for path, value in published.figures_with_paths()
    ]


def _published_set_list_lines(sets: list[PublishedSet]) -> Iterator[RenderableType]:
    from rich.text import Text

    from iolab.report.table import Column
    from iolab.report.terminal import literal_text, terminal_table

    rows = [
        [
            literal_text(published.id, "bold"),
            Text(str(sum(1 for _ in published.figures_with_paths()))),
            literal_text(published.source),
        ]
        for published in sets
    ]
    headings = [
        Column("set"),
        Column("figures", is_number=True),
        Column("source", can_wrap=True),
    ]
    yield terminal_table(headings, rows)


def _published_set_lines(published: PublishedSet) -> Iterator[RenderableType]:
    """The source, table after table of the file, then what our own functions make of it."""
    from iolab.published.report import published_file_sections, tables_from_printed_figures
    from iolab.report.terminal import literal_text, name_value_grid, section_title

    yield section_title(published.id)
    yield literal_text(published.source, "dim")
    for section in published_file_sections(published):
        yield ""
        yield section_title(section.title)
        if section.table is None:
            yield name_value_grid([(name, text) for name, text in section.pairs])
            continue
        yield _width_fitted_table(section.table)
    for table in tables_from_printed_figures(published):
        yield ""
        yield section_title(f"Computed: {uncapitalised(table.title)}")
        yield _width_fitted_table(table)


def _width_fitted_table(table: Table) -> RenderableType:
    """The first rows, in a form that fits: as columns, as records of a few, or in groups."""
    from iolab.report.table import Column, select_columns
    from iolab.report.terminal import (
        GAP,
        GroupedTable,
        literal_text,
        name_value_grid,
        report_table_for_terminal,
        section_title,
    )

    rows = table.rows[:SECTION_ROWS_MAX]
    kept = [
        at
        for at, _ in enumerate(table.columns)
        if any(row[at].verdict_level is None for row in rows)
    ]
    sizes = [max(len(table.columns[at].title), *(len(row[at].text) for row in rows)) for at in kept]
    headings = [
        Column(
            table.columns[at].title,
            is_number=table.columns[at].is_number,
            can_wrap=not table.columns[at].is_number,
        )
        for at in kept
    ]
    if sum(sizes) + GAP * (len(sizes) - 1) <= output_width():
        return report_table_for_terminal(select_columns(replace(table, rows=rows), kept))
    if len(rows) <= RECORDS_MAX:
        records = [
            (table.columns[at].title, ", ".join(dict.fromkeys(row[at].text for row in rows)))
            if len({row[at].text for row in rows}) == 1
            else (table.columns[at].title, " | ".join(row[at].text for row in rows))
            for at in kept
        ]
        return name_value_grid(records)
    groups: dict[str, list[list[Text | str]]] = {}
    for row in rows:
        groups.setdefault(row[kept[0]].text, []).append(
            [
                literal_text(f"  {row[kept[1]].text}"),
                *(literal_text(row[at].text) for at in kept[2:]),
            ]
        )
    heads = [replace(head, is_optional=place > 2) for place, head in enumerate(headings[1:])]
    return GroupedTable(heads, [(section_title(name), some) for name, some in groups.items()])


def _json_value(value: Any) -> Any:  # noqa: ANN401 - JSON of any shape
    """The tree as JSON has it: decimals as floats, dates and times as text."""
    if isinstance(value, dict):
        return {key: _json_value(part) for key, part in value.items()}
    if isinstance(value, list):
        return [_json_value(part) for part in value]
    if isinstance(value, date | time):
        return value.isoformat()
    return float(value) if isinstance(value, Decimal) else value


class FailOnOutcome(StrEnum):
    """Which outcome the exit code tells."""

    CONTRADICTS = "contradicts"
    DOUBTFUL = "doubtful"


class AuditedSet(Record):
    """One set with all that was looked at; `damage` are files that are not what was committed."""

    name: str
    source: str
    outcomes: tuple[AuditOutcome, ...]
    damage: tuple[str, ...] = ()


@with_output_format
def audit(
    sets: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="SET",
            help="A published set (see 'iolab reference'), a .toml file of the same form, or the "
            "directory of a session; all published sets if none is given.",
            autocompletion=session_or_set_completions,
            show_default=False,
        ),
    ] = None,
    *,
    details: Annotated[
        bool, typer.Option("--details", help="Also what agrees, with its numbers.")
    ] = False,
    fail_on: Annotated[
        FailOnOutcome | None,
        typer.Option(
            "--fail-on",
            help="Exit with 1 when an outcome is this bad or worse.",
            show_default=False,
        ),
    ] = None,
    output_format: OutputFormat,
) -> None:
    """Check whether the figures of a set of results agree."""
    from iolab.published.audit.relations import Agreement

    audits = _audit_sets(sets or published_set_ids())
    if output_format is not OutputFormat.TABLE:
        documents = [_audit_document(audited) for audited in audits]
        rows = [
            {"set": document["name"], **outcome}
            for document in documents
            for outcome in document["outcomes"]
        ]
        print_document(output_format, {"format": 1, "sets": documents}, rows)
    else:
        print_renderables(*_audit_lines(audits, has_details=details))
    worst = max(
        (_worst_agreement(audited) for audited in audits),
        key=attrgetter("severity"),
        default=Agreement.AGREES,
    )
    if fail_on is not None and worst.severity >= Agreement(fail_on.value).severity:
        raise typer.Exit(ExitCode.VERDICT)


def _audit_sets(names: Sequence[str]) -> list[AuditedSet]:
    """The audit of each; where any cannot be read one error that tells all of them."""
    audits: list[AuditedSet] = []
    errors: list[IolabError] = []
    for name in names:
        try:
            audits.append(_audit_named_set_or_session(name))
        except IolabError as error:
            errors.append(error)
    if len(errors) == 1:
        raise errors[0]
    if errors:
        raise type(errors[0])(
            f"{len(errors)} of {len(names)} sets cannot be audited.",
            "Leave these out, or mend them.",
            tuple(Fault(error.message, error.hint) for error in errors),
        )
    return audits


def _audit_named_set_or_session(set_or_session: str) -> AuditedSet:
    """The audit of what a command line names; UsageError or StoreError where it is nothing."""
    from iolab.published.audit.audit import audit_published_set as audit_set

    if Path(set_or_session).is_dir():
        return _audit_session_directory(set_or_session)
    published = read_published_set(set_or_session)
    return AuditedSet(published.id or set_or_session, published.source, audit_set(published))


def _audit_session_directory(directory: str) -> AuditedSet:
    import iolab.registry  # noqa: F401 - it may hold parts of every kind
    from iolab.published.audit.audit import audit_session
    from iolab.store import layout
    from iolab.store.reader import SessionReader

    reader = SessionReader(Path(directory))
    points = {point.digest: point for point in reader.plan.points}
    damage = reader.verify_all_files()
    for damaged in damage:
        if damaged.run_name or not damaged.path.startswith(layout.POINTS):  # no earlier attempt
            note_and_print_left_out_session(Path(directory), damaged)
    damage_texts = tuple(f"{damaged.path}: {damaged.message}" for damaged in damage)
    unsound = reader.damage_by_run()
    results = reader.results()
    sound = tuple(result for result in results if result.key not in unsound)
    return AuditedSet(directory, reader.study.title, audit_session(sound, points), damage_texts)


def _worst_agreement(audited_set: AuditedSet) -> Agreement:
    from iolab.published.audit.relations import Agreement

    if audited_set.damage:
        return Agreement.CONTRADICTS
    levels = (outcome.agreement for outcome in audited_set.outcomes)
    return max(levels, key=attrgetter("severity"), default=Agreement.AGREES)


def _audit_lines(audits: Sequence[AuditedSet], *, has_details: bool) -> Iterator[RenderableType]:
    """For each set what is wrong or doubtful, then how much agrees; with details that too."""
    from rich.text import Text

    from iolab.report.table import Column
    from iolab.report.terminal import literal_text, section_title, terminal_table

    for number, audited in enumerate(audits):
        if number:
            yield ""
        yield section_title(audited.name)
        yield literal_text(audited.source, "dim")
        shown = [
            outcome for outcome in audited.outcomes if has_details or outcome.agreement.severity
        ]
        rows = [
            [
                Text(outcome.agreement.value, _STYLES[outcome.agreement.value]),
                Text(outcome.rule),
                literal_text(f"{outcome.subject}: {outcome.message}{_location_suffix(outcome)}"),
            ]
            for outcome in sorted(shown, key=lambda outcome: -outcome.agreement.severity)
        ]
        rows += [
            [Text("contradicts", _STYLES["contradicts"]), Text("damage"), literal_text(text)]
            for text in audited.damage
        ]
        if rows:
            yield terminal_table([Column(""), Column(""), Column("", can_wrap=True)], rows)
        agreeing = sum(1 for outcome in audited.outcomes if not outcome.agreement.severity)
        relations = counted_noun(len(audited.outcomes), "relation")
        yield Text(f"{agreeing} of {relations} agree." if audited.outcomes else _NO_FIGURES)


def _location_suffix(outcome: AuditOutcome) -> str:
    return f" [{outcome.where}]" if outcome.where else ""


def _audit_document(audited_set: AuditedSet) -> dict[str, Any]:
    return {
        "name": audited_set.name,
        "source": audited_set.source,
        "damage": list(audited_set.damage),
        "outcomes": [to_builtins(outcome) for outcome in audited_set.outcomes],
    }
