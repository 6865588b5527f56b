"""`iolab export`: a session's results for other programs."""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from iolab.cli.options import SessionDirectory

if TYPE_CHECKING:
    import numpy.typing as npt

    from iolab.store.reader import SessionReader


class Format(StrEnum):
    """What other programs read."""

    CSV = "csv"
    JSON = "json"
    PARQUET = "parquet"
    MARKDOWN = "markdown"


class Rows(StrEnum):
    """What a row of a table is."""

    RESULTS = "results"
    POINTS = "points"
    NODES = "nodes of results"


def export(
    session: SessionDirectory,
    *,
    kind: Annotated[
        Format, typer.Option("--format", "-f", help="The format to write.", show_default=False)
    ],
    points: Annotated[
        bool,
        typer.Option(
            "--points",
            help="One row a point with all its repeats together, not one a run (csv, parquet).",
        ),
    ] = False,
    nodes: Annotated[
        bool,
        typer.Option(
            "--nodes",
            help="One row for each run and node of its guests, not one a run (csv, parquet).",
        ),
    ] = False,
    out: Annotated[
        Path | None,
        typer.Option("--out", "-o", metavar="FILE", help="Write here, not to standard output."),
    ] = None,
) -> None:
    """Print or write the results for other programs."""
    from iolab.cli.output import open_session, raw_result, refuse_output, replace_whole, result, say
    from iolab.errors import UsageError

    if out is not None:
        refuse_output(out)
    rows = _chosen(kind, points=points, nodes=nodes)
    reader = open_session(session)
    if kind is Format.PARQUET:
        if out is None:
            raise UsageError(
                "Parquet is no text for a terminal or a pipe.", "Name a file by --out."
            )
        _write_parquet(reader, out, rows)
    else:
        text = _text(reader, kind, rows)
        if out is None:
            raw_result(text)
            return
        replace_whole(out, text)
    result(str(out))
    say(f"{_count(reader, rows)} {rows.value} written as {kind.value}.")


def _chosen(kind: Format, *, points: bool, nodes: bool) -> Rows:
    """The rows that the options ask for; UsageError where they do not go together."""
    from iolab.errors import UsageError

    if points and nodes:
        raise UsageError(
            "--points and --nodes ask for different rows.", "Take one of the two at a time."
        )
    if (points or nodes) and kind not in {Format.CSV, Format.PARQUET}:
        raise UsageError(
            f"--{'points' if points else 'nodes'} chooses the rows of CSV and Parquet, not of "
            f"{kind.value}.",
            "Leave it out: json has all of them, and markdown points and runs.",
        )
    if nodes:
        return Rows.NODES
    return Rows.POINTS if points else Rows.RESULTS


def _count(reader: SessionReader, rows: Rows) -> int:
    from iolab.analysis.points import grouped
    from iolab.analysis.resume_marks import shown_of

    results = shown_of(reader)[1]
    if rows is Rows.NODES:
        return sum(len(result.nodes) for result in results)
    return len(grouped(results)) if rows is Rows.POINTS else len(results)


def _text(reader: SessionReader, kind: Format, rows: Rows) -> str:
    import json

    from iolab.analysis.points import summarise
    from iolab.analysis.resume_marks import shown_of
    from iolab.cli.kinds import REPORTED
    from iolab.report.results import (
        csv_text,
        markdown_text,
        nodes_csv,
        points_csv,
        session_document,
    )

    study, results = shown_of(reader)
    match kind:
        case Format.CSV if rows is Rows.POINTS:
            return points_csv(summarise(results, study))
        case Format.CSV if rows is Rows.NODES:
            return nodes_csv(results)
        case Format.CSV:
            return csv_text(results)
        case Format.MARKDOWN:
            return markdown_text(REPORTED, study, results)
        case _:
            return (
                json.dumps(
                    session_document(REPORTED, study, results, damaged=reader.damaged()), indent=2
                )
                + "\n"
            )


def _write_parquet(reader: SessionReader, out: Path, rows: Rows) -> None:
    from iolab.analysis.points import summarise
    from iolab.analysis.resume_marks import shown_of
    from iolab.report.nodes import node_columns
    from iolab.report.points import point_columns
    from iolab.report.results import result_columns
    from iolab.store.export import write_parquet

    study, results = shown_of(reader)
    match rows:
        case Rows.POINTS:
            found = point_columns(summarise(results, study))
        case Rows.NODES:
            found = node_columns(results)
        case _:
            found = result_columns(results)
    write_parquet({name: _column(name, values) for name, values in found.items()}, out)


def _column(name: str, values: Sequence[str | float | None]) -> npt.NDArray[Any]:
    """One column, masked where a number is missing; its type is the same in every session."""
    import numpy as np

    from iolab.report.results import TEXT_COLUMNS

    known = [value for value in values if value is not None]
    if name in TEXT_COLUMNS or any(isinstance(value, str) for value in known):
        column = np.empty(len(values), dtype=np.object_)
        column[:] = [None if value is None else str(value) for value in values]
        return column
    whole = known and all(isinstance(value, int) for value in known)
    missing = [value is None for value in values]
    numbers = [value or 0 for value in values]
    return np.ma.masked_array(numbers, mask=missing, dtype=np.int64 if whole else np.float64)
