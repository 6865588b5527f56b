"""`iolab import` and `iolab export`: results of other tools in, and for other programs out."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from enum import StrEnum
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from msgspec import to_builtins

from iolab.cli.options import AsJson, SessionDirectory
from iolab.cli.output import (
    WRITABLE_PLACE_HINT,
    json_text,
    open_session,
    print_json,
    print_message,
    print_raw,
    print_result,
    replace_files_atomically,
    require_valid_output_path,
)
from iolab.core.generator import RECORDED_FILE
from iolab.errors import ReportError, StoreError, UsageError
from iolab.text import file_name_slug, list_text, quote_value

if TYPE_CHECKING:
    import numpy.typing as npt

    from iolab.core.compressed import CompressedBytes
    from iolab.core.metric import RunResult
    from iolab.core.study import Study
    from iolab.importers.submissions.rows import JudgedRow
    from iolab.report.table import ExportValue
    from iolab.store.reader import SessionReader


SENTENCES_PRINTED_MAX = 20
"""Of files that are not read, of what is left out and the like so many are named, then counted."""


def import_(
    files: Annotated[
        list[Path],
        typer.Argument(
            metavar="FILE",
            help="What another tool wrote, or a folder of it: fio JSON or json+, mdtest, IOR, "
            "IO500, elbencho CSV or JSON, db_bench, YCSB, vdbench, diskspd XML, gdsio, nixlbench, "
            "rados bench, HCIBench, VMFleet, AIPerf; or a tree of "
            "submissions to the AI storage suite.",
            show_default=False,
        ),
    ],
    *,
    out: Annotated[
        Path,
        typer.Option("--out", "-o", metavar="DIR", help="The new session directory."),
    ],
    configuration: Annotated[
        str,
        typer.Option(
            "--configuration",
            metavar="ID",
            help="Name of the measured configuration.",
        ),
    ] = "imported",
    clients: Annotated[
        bool,
        typer.Option(
            "--clients",
            help="Files with the same load are clients of one run, not repeats.",
        ),
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Read results of other tools into a session, and judge them."""
    from iolab.analysis.kinds import judge_run
    from iolab.analysis.stored_results import study_and_results_with_session_checks
    from iolab.cli.show import print_session
    from iolab.core.host import HostFacts
    from iolab.importers.clients import find_assumed_repeats, join_clients_of_same_load
    from iolab.importers.files import ForeignFileError, read_foreign_files
    from iolab.importers.line_coverage import left_out_line_messages
    from iolab.importers.registry import IMPORTERS
    from iolab.importers.session import plan_imported_session, write_imported_session
    from iolab.importers.submissions.rows import (
        judged_rows_text,
        read_submission_tree,
        row_status_counts_text,
    )
    from iolab.registry import analysis_kinds, report_kinds
    from iolab.report.results import session_document

    try:
        trees = {path: read_submission_tree(path) for path in files if path.is_dir()}
    except ForeignFileError as error:
        raise UsageError(str(error), error.hint) from error
    rows = [row for tree in trees.values() for row in tree or []]
    others = [path for path in files if not trees.get(path)]
    files_read = read_foreign_files(others, IMPORTERS)
    if files_read.faults:
        raise UsageError(
            "Not all of this can be imported, and nothing was written.",
            "Name files of the formats in 'iolab import --help', or folders with some.",
            files_read.faults,
        )
    _print_first_sentences(
        [f"Not read: {fault.message} {fault.hint}" for fault in files_read.skipped_file_faults]
    )
    _print_first_sentences(
        [f"Not read, in no format that is known: {file.name}" for file in files_read.unknown_files]
    )
    _print_first_sentences(
        [f"Left out: {message}" for message in left_out_line_messages(files_read.left_out_lines)]
    )
    _print_first_sentences([copy.message for copy in files_read.duplicate_runs])
    runs = join_clients_of_same_load(files_read.runs) if clients else files_read.runs
    runs = (*(run for row in rows for run in row.runs), *runs)
    session = plan_imported_session(runs, configuration_id=configuration, title=configuration)
    if not clients:
        _print_first_sentences([assumed.message for assumed in find_assumed_repeats(session.runs)])
    facts: dict[str, HostFacts] = {}
    write_imported_session(
        session, out, sys.argv, lambda record: judge_run(record, facts, analysis_kinds())
    )
    # The verdicts are those of `show`: some checks look at all runs together.
    reader = open_session(out)
    study, results = study_and_results_with_session_checks(reader)
    if as_json:
        document = session_document(report_kinds(), study, results)
        print_json(
            {
                "format": 1,
                "session": str(out),
                "runs": len(session.runs),
                "unknown": [file.name for file in files_read.unknown_files],
                "left_out": [to_builtins(entry) for entry in files_read.left_out_lines],
                "copies": [to_builtins(copy) for copy in files_read.duplicate_runs],
                "rows": [_judged_row_document(row) for row in rows],
                "summary": row_status_counts_text(rows) if rows else None,
                "results": document["results"],
            }
        )
        return
    if rows:
        print_raw(judged_rows_text(rows))
    if not rows or files_read.runs:
        print_session(reader, study, results)


def _judged_row_document(row: JudgedRow) -> dict[str, object]:
    """A row of a tree of submissions for programs."""
    return {
        "name": row.name,
        "figure": row.figure_text,
        "status": row.status.value,
        "evidence": [to_builtins(each) for each in row.evidence],
    }


def _print_first_sentences(sentences: Sequence[str]) -> None:
    """Say the first of them, and how many more there are."""
    for sentence in sentences[:SENTENCES_PRINTED_MAX]:
        print_message(sentence)
    if len(sentences) > SENTENCES_PRINTED_MAX:
        print_message(f"and {len(sentences) - SENTENCES_PRINTED_MAX} more.")


class ExportFormat(StrEnum):
    """What other programs read."""

    CSV = "csv"
    JSON = "json"
    PARQUET = "parquet"
    MARKDOWN = "markdown"
    OPENMETRICS = "openmetrics"
    IOLOG = "iolog"


class RowKind(StrEnum):
    """What a row of a table is."""

    RESULTS = "results"
    POINTS = "points"
    NODES = "nodes of results"
    SECONDS = "intervals"
    SLOW_IOS = "slow I/Os"


def export(
    session: SessionDirectory,
    *,
    kind: Annotated[
        ExportFormat,
        typer.Option(
            "--format", "-f", help="The format; json is that of show --json.", show_default=False
        ),
    ],
    points: Annotated[
        bool,
        typer.Option(
            "--points",
            help="A row per point with intervals over its repeats (csv, parquet).",
        ),
    ] = False,
    nodes: Annotated[
        bool,
        typer.Option(
            "--nodes",
            help="A row per run and node of guests (csv, parquet).",
        ),
    ] = False,
    seconds: Annotated[
        bool,
        typer.Option(
            "--seconds",
            help="A row per second, host and operation (csv, parquet).",
        ),
    ] = False,
    slow_ios: Annotated[
        bool,
        typer.Option(
            "--slow-ios",
            help="A row per slow I/O, with what its host did then (csv, parquet).",
        ),
    ] = False,
    out: Annotated[
        Path | None,
        typer.Option(
            "--out", "-o", metavar="FILE", help="Write to this file; required for parquet."
        ),
    ] = None,
) -> None:
    """Print or write the results for other programs."""
    from iolab.report.results import columns_csv
    from iolab.store.parquet import replace_parquet

    if out is not None:
        require_valid_output_path(out)
    rows = _export_row_kind(
        kind,
        has_points_option=points,
        has_nodes_option=nodes,
        has_seconds_option=seconds,
        has_slow_ios_option=slow_ios,
    )
    written = rows.value
    reader = open_session(session)
    if kind is ExportFormat.PARQUET and out is None:
        raise UsageError("Parquet is no text for a terminal or a pipe.", "Name a file by --out.")
    if kind in {ExportFormat.CSV, ExportFormat.PARQUET}:
        columns = _export_columns(reader, rows)
        number = len(next(iter(columns.values()), ()))
        if kind is ExportFormat.PARQUET and out is not None:
            table = {name: _column_array(name, values) for name, values in columns.items()}
            try:
                replace_parquet(table, out)
            except StoreError as error:  # the file is no part of the session
                raise ReportError(error.message, WRITABLE_PLACE_HINT) from error
        else:
            _print_or_write_export(columns_csv(columns), out)
    elif kind is ExportFormat.IOLOG:
        recordings = _io_recordings_by_file_name(reader)
        if out is not None and out.is_dir():
            replace_files_atomically(
                {out / name: _iolog_text(held) for name, held in recordings.items()}
            )
            number, written = len(recordings), "recordings"
        else:
            if len(recordings) > 1:
                print_message(
                    f"The first of {len(recordings)} recordings; for a file each name a directory "
                    "by --out."
                )
            text = _iolog_text(next(iter(recordings.values())))
            number, written = text.count("\n"), "lines"
            _print_or_write_export(text, out)
    else:
        number = len(reader.results())
        _print_or_write_export(_export_text_of_session(reader, kind), out)
    if out is not None:
        print_result(str(out))
        print_message(f"{number} {written} written as {kind.value}.")


def _io_recordings_by_file_name(reader: SessionReader) -> dict[str, CompressedBytes]:
    """What each host recorded in each run, by the name of a file; UsageError where none did."""
    recordings = [
        (result, output)
        for result in reader.results()
        for output in reader.record(*result.key).outputs
        if output.name == RECORDED_FILE
    ]
    if not recordings:
        raise UsageError(
            f"{quote_value(str(reader.directory))} has no recorded I/Os.",
            "Run a study of the native engine with --set telemetry.recorded_ios=1000000.",
        )
    named = {}
    for number, (result, output) in enumerate(recordings, 1):
        run = f"{result.workload} {result.digest} {result.repeat} {output.host}"
        named[f"{number:02d}-{file_name_slug(run)}.iolog"] = output.content
    return named


def _iolog_text(recording: CompressedBytes) -> str:
    return recording.decompress().decode("ascii", "replace")


def _print_or_write_export(text: str, out: Path | None) -> None:
    if out is None:
        print_raw(text)
    else:
        replace_files_atomically({out: text})


def _export_row_kind(
    export_format: ExportFormat,
    *,
    has_points_option: bool,
    has_nodes_option: bool,
    has_seconds_option: bool,
    has_slow_ios_option: bool,
) -> RowKind:
    """The rows that the options ask for; UsageError where they do not go together."""
    asked = {
        "--points": has_points_option,
        "--nodes": has_nodes_option,
        "--seconds": has_seconds_option,
        "--slow-ios": has_slow_ios_option,
    }
    options = [name for name, wanted in asked.items() if wanted]
    if len(options) > 1:
        raise UsageError(
            f"{list_text(options)} ask for different rows.", "Take one of them at a time."
        )
    if options and export_format not in {ExportFormat.CSV, ExportFormat.PARQUET}:
        raise UsageError(
            f"{options[0]} chooses the rows of CSV and Parquet, not of {export_format.value}.",
            "Leave it out: json has points, runs and nodes, and markdown points and runs.",
        )
    if has_slow_ios_option:
        return RowKind.SLOW_IOS
    if has_seconds_option:
        return RowKind.SECONDS
    if has_nodes_option:
        return RowKind.NODES
    return RowKind.POINTS if has_points_option else RowKind.RESULTS


def _export_columns(reader: SessionReader, rows: RowKind) -> Mapping[str, Sequence[ExportValue]]:
    """The table that was requested."""
    from iolab.analysis.points import summarise_points
    from iolab.analysis.stored_results import study_and_results_with_session_checks
    from iolab.registry import report_kinds
    from iolab.report.gather import read_slow_ios
    from iolab.report.results import (
        hypervisor_result_columns,
        interval_columns,
        point_columns,
        result_columns,
    )
    from iolab.report.slow_ios import slow_io_columns

    study, results = study_and_results_with_session_checks(reader)
    match rows:
        case RowKind.POINTS:
            return point_columns(summarise_points(results, study))
        case RowKind.NODES:
            return hypervisor_result_columns(results)
        case RowKind.SECONDS:
            return interval_columns(
                report_kinds(),
                study,
                results,
                reader.intervals,
                lambda digest, repeat: [
                    host.host for host in reader.manifest(digest, repeat).hosts
                ],
            )
        case RowKind.SLOW_IOS:
            return slow_io_columns(
                (result, read_slow_ios(reader, result.key)) for result in results
            )
        case RowKind.RESULTS:
            return result_columns(results)


def _export_text_of_session(reader: SessionReader, export_format: ExportFormat) -> str:
    """The document for programs, or the table of an issue or a wiki."""
    from iolab.analysis.stored_results import study_and_results_with_session_checks
    from iolab.registry import report_kinds
    from iolab.report.results import session_document, session_markdown

    study, results = study_and_results_with_session_checks(reader)
    if export_format is ExportFormat.MARKDOWN:
        return session_markdown(report_kinds(), study, results)
    if export_format is ExportFormat.OPENMETRICS:
        return _openmetrics_text(reader, study, results)
    document = session_document(
        report_kinds(), study, results, damaged_runs=reader.damage_of_documents_and_manifests()
    )
    return json_text(document)


def _openmetrics_text(reader: SessionReader, study: Study, results: Sequence[RunResult]) -> str:
    """Every run with its times, to fill a database with."""
    from iolab.analysis.points import summarise_points
    from iolab.registry import report_kinds
    from iolab.report.formats.openmetrics import (
        SessionCounters,
        openmetrics_document,
        openmetrics_samples,
    )
    from iolab.serve.metrics import NO_COUNTERS, read_run_counters

    runs = [
        (run, read_run_counters(reader, run, with_timestamps=True) or NO_COUNTERS)
        for run in results
    ]
    points = summarise_points(results, study)
    counts = SessionCounters(runs, has_timestamps=True)
    planned = len(reader.plan.runs)
    name = partial(report_kinds().operation_json_key, study)
    session = openmetrics_samples(reader.session, planned, points, counts, name)
    return openmetrics_document([session])


def _column_array(column_name: str, values: Sequence[str | float | None]) -> npt.NDArray[Any]:
    """One column, masked where a number is missing; its type is the same in every session."""
    import numpy as np

    from iolab.report.results import TEXT_COLUMNS

    present = [value for value in values if value is not None]
    if column_name in TEXT_COLUMNS or any(isinstance(value, str) for value in present):
        column = np.empty(len(values), dtype=np.object_)
        column[:] = [None if value is None else str(value) for value in values]
        return column
    integers = present and all(isinstance(value, int) for value in present)
    missing = [value is None for value in values]
    numbers = [value or 0 for value in values]
    return np.ma.masked_array(numbers, mask=missing, dtype=np.int64 if integers else np.float64)
