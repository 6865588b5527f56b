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
    out: Annotated[
        Path | None,
        typer.Option("--out", "-o", metavar="FILE", help="Write here, not to standard output."),
    ] = None,
) -> None:
    """Print or write the results for other programs."""
    from iolab.cli.files import replace_whole
    from iolab.cli.talk import raw_result, result, say
    from iolab.errors import UsageError
    from iolab.store.reader import SessionReader

    if points and kind not in {Format.CSV, Format.PARQUET}:
        raise UsageError(
            f"--points chooses the rows of CSV and Parquet, not of {kind.value}.",
            "Leave it out: json and markdown have both.",
        )
    reader = SessionReader(session)
    if kind is Format.PARQUET:
        if out is None:
            raise UsageError(
                "Parquet is no text for a terminal or a pipe.", "Name a file by --out."
            )
        _write_parquet(reader, out, points=points)
    else:
        text = _text(reader, kind, points=points)
        if out is None:
            raw_result(text)
            return
        replace_whole(out, text)
    result(str(out))
    rows = "points" if points else "results"
    say(f"{_rows(reader, points=points)} {rows} written as {kind.value}.")


def _rows(reader: SessionReader, *, points: bool) -> int:
    from iolab.analyse.apart import shown_of
    from iolab.analyse.points import grouped

    results = shown_of(reader)[1]
    return len(grouped(results)) if points else len(results)


def _text(reader: SessionReader, kind: Format, *, points: bool) -> str:
    import json

    from iolab.analyse.apart import shown_of
    from iolab.analyse.points import summarise
    from iolab.report.export import csv_text, markdown_text, points_csv, session_document

    study, results = shown_of(reader)
    match kind:
        case Format.CSV if points:
            return points_csv(summarise(results, study))
        case Format.CSV:
            return csv_text(results)
        case Format.MARKDOWN:
            return markdown_text(study, results)
        case _:
            return json.dumps(session_document(study, results), indent=2) + "\n"


def _write_parquet(reader: SessionReader, out: Path, *, points: bool) -> None:
    from iolab.analyse.apart import shown_of
    from iolab.analyse.points import summarise
    from iolab.report.export import result_columns
    from iolab.report.points import point_columns
    from iolab.store.export import write_parquet

    study, results = shown_of(reader)
    found = point_columns(summarise(results, study)) if points else result_columns(results)
    write_parquet({name: _column(name, values) for name, values in found.items()}, out)


def _column(name: str, values: Sequence[str | float | None]) -> npt.NDArray[Any]:
    """One column, masked where a number is missing; its type is the same in every session."""
    import numpy as np

    from iolab.report.export import TEXT_COLUMNS

    known = [value for value in values if value is not None]
    if name in TEXT_COLUMNS or any(isinstance(value, str) for value in known):
        column = np.empty(len(values), dtype=np.object_)
        column[:] = [None if value is None else str(value) for value in values]
        return column
    whole = known and all(isinstance(value, int) for value in known)
    missing = [value is None for value in values]
    numbers = [value or 0 for value in values]
    return np.ma.masked_array(numbers, mask=missing, dtype=np.int64 if whole else np.float64)
