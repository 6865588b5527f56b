"""`iolab show`: what a session measured."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, Final

import typer

from iolab.cli.options import (
    OutputFormat,
    SessionDirectory,
    Workloads,
    unknown_name_faults,
    with_output_format,
)
from iolab.cli.output import (
    open_session,
    print_json,
    print_lines,
    print_raw,
    print_renderables,
    print_result,
    result_lines_max,
)
from iolab.errors import ExitCode, Fault, StoreError, UsageError
from iolab.text import counted_noun, list_text, one_line, percent_text, quote_value

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from iolab.analysis.points import PointSummary
    from iolab.analysis.slow_ios import SlowIoContext
    from iolab.cli.session_screen import DetailSection
    from iolab.core.metric import RunResult, VerdictLevel
    from iolab.core.study import Study
    from iolab.errors import ExitCode
    from iolab.report.charts.series import LatencyCurve
    from iolab.store.reader import SessionReader

HISTOGRAM_RUNS_MAX: Final = 200
"""Runs whose latencies are drawn by --details: to read one takes a hundredth of a second."""


class FailOnLevel(StrEnum):
    """From which verdict on the exit code says so."""

    INDICATIVE = "indicative"
    INVALID = "invalid"


FailOnOption = Annotated[
    FailOnLevel | None,
    typer.Option(
        "--fail-on",
        help="Exit with 1 when a result is this bad or worse.",
        show_default=False,
    ),
]


@with_output_format
def show(
    session: SessionDirectory,
    *,
    workload: Workloads = None,
    run: Annotated[
        list[str] | None,
        typer.Option(
            "--run",
            metavar="DIGEST",
            help="Only the point of this digest or prefix; repeatable.",
        ),
    ] = None,
    details: Annotated[
        bool, typer.Option("--details", help="Every metric, host and check with its evidence.")
    ] = False,
    repeats: Annotated[
        bool, typer.Option("--repeats", help="Also a row for each run of a point.")
    ] = False,
    time: Annotated[
        bool, typer.Option("--time", help="Only how long each phase of the session took.")
    ] = False,
    summary: Annotated[
        bool,
        typer.Option("--summary", help="Only the number of runs by verdict, for each workload."),
    ] = False,
    fail_on: FailOnOption = None,
    output_format: OutputFormat,
) -> None:
    """Show the results of a session, also of a running one."""
    from iolab.analysis.points import summarise_points
    from iolab.analysis.stored_results import study_and_results_with_session_checks

    is_document = output_format is not OutputFormat.TABLE
    views = {"--time": time, "--summary": summary, f"--format {output_format.value}": is_document}
    if len(chosen := [name for name, is_chosen in views.items() if is_chosen]) > 1:
        raise UsageError(
            f"{list_text(chosen)} print different things.", "Give one of them at a time."
        )
    reader = open_session(session)
    if time:
        reader.missing_runs_damage()  # the times themselves stand in a document that was verified
        print_phase_times(reader)
        raise typer.Exit(exit_code_of_results((), None))
    if summary:
        raise typer.Exit(
            exit_code_of_verdict_levels(print_summary_and_get_verdict_levels(reader), fail_on)
        )
    study, every = study_and_results_with_session_checks(reader)
    results = _results_by_digest_prefix(_results_of_workloads(study, every, workload), run)
    printed = {(result.workload, result.digest) for result in results}
    # An interval rests on the whole session, also where only a part of it is shown.
    points = [
        point
        for point in summarise_points(every, study)
        if (point.key.workload, point.digest) in printed
    ]
    if is_document:
        print_results_in_format(output_format, reader, study, results, points)
    else:
        print_session(
            reader, study, results, with_details=details, with_run_rows=repeats, points=points
        )
    raise typer.Exit(exit_code_of_results(results, fail_on))


def print_results_in_format(
    output_format: OutputFormat,
    reader: SessionReader,
    study: Study,
    results: Sequence[RunResult],
    points: Sequence[PointSummary] | None = None,
) -> None:
    """Print results for other programs, in the tables that `iolab export` has."""
    from iolab.registry import report_kinds
    from iolab.report.results import (
        columns_csv,
        result_columns,
        session_document,
        session_markdown,
    )

    match output_format:
        case OutputFormat.CSV:
            print_raw(columns_csv(result_columns(results)))
        case OutputFormat.MARKDOWN:
            print_raw(session_markdown(report_kinds(), study, results))
        case _:
            damaged = reader.damage_of_documents_and_manifests()
            print_json(session_document(report_kinds(), study, results, points, damaged))


def print_session(
    reader: SessionReader,
    study: Study,
    results: Sequence[RunResult],
    *,
    with_details: bool = False,
    with_run_rows: bool = False,
    with_resume_hint: bool = True,
    points: Sequence[PointSummary] | None = None,
) -> None:
    """Print what a session is, its results, and in detail every check if asked.

    `with_resume_hint` says how to continue a session that did not come to its end.
    """
    from iolab.analysis.points import summarise_points
    from iolab.cli.results import (
        is_unfinished,
        results_with_recomputed_resources,
        session_heading_lines,
    )
    from iolab.cli.session_screen import SessionScreen, session_summary_lines
    from iolab.registry import report_kinds
    from iolab.report.session_answer import session_answer

    summaries = summarise_points(results, study) if points is None else points
    answer = session_answer(report_kinds(), study, summaries, results, reader.facts)
    screen = SessionScreen(
        study,
        results_with_recomputed_resources(reader, study, summaries, results),
        summaries,
        answer,
        directory=str(reader.directory),
        is_unfinished=is_unfinished(reader),
        has_repeats=with_run_rows,
        has_details=with_details,
    )
    heading = session_heading_lines(reader, results, with_resume_hint=with_resume_hint)
    parts = _detail_sections(reader, results) if with_details else ()
    print_lines(session_summary_lines(screen, heading, parts, result_lines_max()))


def _detail_sections(
    reader: SessionReader, results: Sequence[RunResult]
) -> Iterator[DetailSection]:
    """What --details adds; it reads runs, for which much more is imported."""
    from iolab.cli.details import titled_session_details
    from iolab.cli.session_screen import DetailSection
    from iolab.report.short_names import screen_name_by_configuration

    parts = titled_session_details(
        results,
        _create_latency_curves_reader(reader, results),
        _create_slow_ios_reader(reader, results),
        screen_name_by_configuration(reader.study),
    )
    return (DetailSection(title, renderables) for title, renderables in parts)


def _create_latency_curves_reader(
    reader: SessionReader, results: Sequence[RunResult]
) -> Callable[[RunResult], Sequence[LatencyCurve]]:
    """Reads the latencies of a run by operation; of none where there are very many runs."""
    from iolab.registry import report_kinds
    from iolab.report.gather import read_run_record

    def read_latency_curves(result: RunResult) -> Sequence[LatencyCurve]:
        if len(results) > HISTOGRAM_RUNS_MAX:
            return ()
        try:
            manifest = reader.manifest(*result.key)
            record = read_run_record(reader, result.key, manifest, with_counters=False)
        except StoreError:  # the reader has reported the damage
            return ()
        return report_kinds().report_of_result(result).latency_curves(record, "").per_operation

    return read_latency_curves


def _create_slow_ios_reader(
    reader: SessionReader, results: Sequence[RunResult]
) -> Callable[[RunResult], Sequence[SlowIoContext]]:
    """Reads the slowest I/Os of a run; of none where there are very many runs."""
    from iolab.report.gather import read_slow_ios

    def read_run_slow_ios(result: RunResult) -> Sequence[SlowIoContext]:
        if len(results) > HISTOGRAM_RUNS_MAX:
            return ()
        try:
            return read_slow_ios(reader, result.key)
        except StoreError:  # the reader has reported the damage
            return ()

    return read_run_slow_ios


def print_phase_times(reader: SessionReader) -> None:
    """Print the seconds of each phase, the longest first, and what was load."""
    from iolab.report.table import Column
    from iolab.report.terminal import terminal_table
    from iolab.session.times import LOAD

    phases = sorted(reader.session.times, key=lambda phase: -phase.seconds)
    all_s = sum(phase.seconds for phase in phases)
    if not all_s:
        print_result("The session kept no times: it has not ended, or an older iolab made it.")
        return
    rows = [
        [
            phase.phase,
            f"{phase.times}",
            f"{phase.seconds:.1f} s",
            percent_text(phase.seconds / all_s),
        ]
        for phase in phases
    ]
    headings = [
        Column("phase"),
        *(Column(name, is_number=True) for name in ("times", "", "share")),
    ]
    load_s = sum(phase.seconds for phase in phases if phase.phase == LOAD)
    print_renderables(terminal_table(headings, rows))
    print_result(f"{all_s:.1f} s in all, {all_s - load_s:.1f} s beside the load.")


def print_summary_and_get_verdict_levels(reader: SessionReader) -> set[VerdictLevel]:
    """Print how many runs ended how, by configuration and workload, from the index; the levels."""
    from iolab.core.metric import VerdictLevel
    from iolab.core.run import RunStatus
    from iolab.report.table import Column
    from iolab.report.terminal import literal_text, terminal_table

    session, runs = reader.session, reader.index_entry_by_run()
    sentence = (
        f"{one_line(session.title)}: {session.status.value}, "
        f"{counted_noun(len(runs), 'run')} committed"
    )
    ended: dict[tuple[str, str], Counter[str]] = {}
    for entry in runs.values():
        kind = entry.verdict_level if entry.status is RunStatus.DONE else entry.status
        ended.setdefault((entry.configuration, entry.workload), Counter())[kind.value] += 1
    every = [*VerdictLevel, *(status for status in RunStatus if status is not RunStatus.DONE)]
    kinds = [kind.value for kind in every if any(kind.value in counts for counts in ended.values())]
    headings = [
        Column("configuration"),
        Column("workload", can_wrap=True),
        Column("runs", is_number=True),
    ]
    headings += [Column(kind, is_number=True) for kind in kinds]
    rows = [
        [
            literal_text(text)
            for text in (*place, f"{counts.total()}", *(f"{counts[kind]}" for kind in kinds))
        ]
        for place, counts in sorted(ended.items())
    ]
    print_result(f"{sentence}.")
    if rows:
        print_renderables(terminal_table(headings, rows))
    return {entry.verdict_level for entry in runs.values()}


def exit_code_of_results(results: Sequence[RunResult], fail_on: FailOnLevel | None) -> ExitCode:
    """1 when a result is at the level asked for or worse, else 0."""
    return exit_code_of_verdict_levels((result.verdict.level for result in results), fail_on)


def exit_code_of_verdict_levels(
    verdict_levels: Iterable[VerdictLevel], fail_on: FailOnLevel | None
) -> ExitCode:
    """The same of the results' levels."""
    from iolab.core.metric import VerdictLevel

    if fail_on is None:
        return ExitCode.OK
    limit = VerdictLevel(fail_on.value).rank
    worst = max((level.rank for level in verdict_levels), default=0)
    return ExitCode.VERDICT if worst >= limit else ExitCode.OK


def _results_of_workloads(
    study: Study, results: Sequence[RunResult], workloads: list[str] | None
) -> tuple[RunResult, ...]:
    """The results of the workloads asked for; UsageError for one that the study has not."""
    if not workloads:
        return tuple(results)
    names = [workload.id for workload in study.workloads]
    if faults := unknown_name_faults("workload", workloads, names):
        raise UsageError("A workload is unknown.", "Name one of the study's.", faults)
    return tuple(result for result in results if result.workload in workloads)


def _results_by_digest_prefix(
    results: Sequence[RunResult], digest_prefixes: list[str] | None
) -> tuple[RunResult, ...]:
    """The results of the points asked for; UsageError for a digest that none of them has."""
    if not digest_prefixes:
        return tuple(results)
    faults = tuple(
        Fault(f"No run is of a point {quote_value(start)}.", "Name it as the report does.")
        for start in digest_prefixes
        if not any(result.digest.startswith(start) for result in results)
    )
    if faults:
        raise UsageError("A point is unknown.", "List all of them without --run.", faults)
    return tuple(result for result in results if result.digest.startswith(tuple(digest_prefixes)))
