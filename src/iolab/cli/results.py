"""The results of a session on the terminal: its heading, its answer, its tables, its details."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Final

from msgspec.structs import replace
from rich.padding import Padding
from rich.text import Text

from iolab.analysis.bottleneck.decision import RESOURCES_ANALYSIS_VERSION
from iolab.analysis.curves import session_load_findings
from iolab.analysis.findings import BottleneckFinding, best_point_findings, bottleneck_findings
from iolab.analysis.points import PointSummary, summarise_points
from iolab.cli.invocation import quoted_iolab_command
from iolab.core.events import SessionStatus
from iolab.core.metric import RunResult, VerdictLevel
from iolab.core.run import RunStatus
from iolab.core.study import Study
from iolab.errors import StoreError
from iolab.registry import report_kinds
from iolab.report.bottleneck import bottlenecks_line
from iolab.report.numbers import utc_minute_text
from iolab.report.phrases import Objection, sentences_of_load_findings
from iolab.report.session_answer import SessionAnswer
from iolab.report.table import Column
from iolab.report.terminal import (
    QUIET_STYLE,
    VERDICT_STYLES,
    UnwrappedLine,
    literal_text,
    name_value_grid,
    run_label,
    section_title,
    styled_verdict,
    terminal_table,
)
from iolab.text import counted_noun, list_text, one_line

if TYPE_CHECKING:
    from rich.console import RenderableType

    from iolab.core.resources import RunResources
    from iolab.core.run import Plan, RunKey
    from iolab.store.reader import SessionReader

STATUS_STYLES: Final = {
    SessionStatus.RUNNING: "cyan",
    SessionStatus.DONE: "",
    SessionStatus.INTERRUPTED: "yellow",
    SessionStatus.FAILED: "bold red",
}

FAILURES_MAX: Final = 10
"""Failed runs told one by one; a session that fails throughout says the same each time."""

_WITHOUT_REASON: Final = {
    RunStatus.INTERRUPTED: "The session was stopped while it ran.",
    RunStatus.FAILED: "No reason was recorded.",
}
"""What is said of a run that ended without a reason of its own."""

OBJECTIONS_MAX: Final = 2
"""Objections under the results, the gravest first; --details has all."""

WHY_NOT_VALID: Final = "Why runs are not valid"

CODES_SHOWN: Final = 4
"""Checks named in the line that counts them, as far as it has room; others are counted."""

_CODES_WIDTH: Final = 68
"""Columns of the counts and names of checks."""

_NEXT_LABEL: Final = "Next    "

_TOGETHER_MAX: Final = 80
"""Columns of a line with all commands."""


def session_heading_lines(
    reader: SessionReader, results: Sequence[RunResult], *, with_resume_hint: bool
) -> Iterator[RenderableType]:
    """The study, the session's status, its runs by verdict, and how to continue it if wanted.

    What makes figures of guests no figures of storage comes before all of them.
    """
    session = reader.session
    yield literal_text(session.title, "bold")
    scale = f"scale {one_line(session.scale)}, " if session.scale else ""
    line = Text(f"{one_line(session.study)}, {scale}")
    line.append(f"{utc_minute_text(session.created_real_ns)} UTC, ")
    line.append(session.status.value, style=STATUS_STYLES[session.status])
    line.append(f" — {_run_count_text(results, reader.plan)}")
    line.append_text(_verdict_counts_text(results))
    for status in (RunStatus.FAILED, RunStatus.INTERRUPTED):
        if again := sum(1 for result in results if result.status is status):
            line.append(
                f"; {again} of them {status.value}", style=STATUS_STYLES[SessionStatus.INTERRUPTED]
            )
    if damaged := sum(1 for damage in reader.damage_seen_so_far() if damage.run_name):
        line.append(f", {damaged} damaged", style=STATUS_STYLES[SessionStatus.FAILED])
    yield line
    yield from _run_counts_by_segment_lines(reader, results)
    if session.reason:
        yield literal_text(session.reason, STATUS_STYLES[session.status])
    if with_resume_hint and is_unfinished(reader):
        advice = f"Continue it: {resume_command(str(reader.directory))}"
        yield UnwrappedLine(literal_text(advice, QUIET_STYLE))
    for text in report_kinds().booted_hosts.study_caveat_texts(reader.study, results):
        yield literal_text(text, VERDICT_STYLES[VerdictLevel.INDICATIVE])
    yield ""


def is_unfinished(reader: SessionReader) -> bool:
    """Whether the session ended before its plan did."""
    return reader.session.status in (SessionStatus.INTERRUPTED, SessionStatus.FAILED)


def resume_command(directory: str) -> str:
    """The command that continues a session."""
    return quoted_iolab_command("resume", directory)


def _run_counts_by_segment_lines(
    reader: SessionReader, results: Sequence[RunResult]
) -> Iterator[RenderableType]:
    """Which of the results were measured after a resume."""
    counts = Counter(result.segment for result in results)
    if len(counts) < 2:
        return
    begun = reader.segment_starts_ns()
    parts = [
        f"{counted_noun(number, 'run')} "
        f"{'since the start on' if segment == 1 else 'after a resume on'} "
        f"{utc_minute_text(begun[segment - 1])} UTC"
        for segment, number in sorted(counts.items())
        if segment <= len(begun)
    ]
    yield literal_text(f"Measured over {len(counts)} starts of the session: {', '.join(parts)}.")


def _run_count_text(results: Sequence[RunResult], plan: Plan) -> str:
    planned = len(plan.runs)
    if len(results) == planned or plan.extra_run_count:
        return counted_noun(len(results), "run")
    return f"{len(results)} of {counted_noun(planned, 'run')}"


def _verdict_counts_text(results: Sequence[RunResult]) -> Text:
    """How many results have which verdict."""
    text = Text()
    levels = [result.verdict.level for result in results]
    for level in VerdictLevel:
        if level in levels:
            text.append(": " if not text else ", ")
            text.append(f"{levels.count(level)} {level.value}", style=VERDICT_STYLES[level])
    return text


def lines_of_load_findings(study: Study, results: Sequence[RunResult]) -> Iterator[RenderableType]:
    """A section of a few sentences; nothing where there is neither a curve nor a search."""
    lines = list(sentences_of_load_findings(session_load_findings(study, results)))
    if not lines:
        return
    yield ""
    yield section_title("Load")
    for line in lines:
        yield Padding(literal_text(line), (0, 0, 0, 2))


def result_lines(
    study: Study,
    results: Sequence[RunResult],
    points: Sequence[PointSummary] | None = None,
    *,
    with_run_rows: bool = False,
) -> Iterator[RenderableType]:
    """The tables of all results, and the failures.

    `points` are those of the results, where the whole session has more than these; with
    `with_run_rows` each run has a row.
    """
    summaries = summarise_points(results, study) if points is None else points
    shown = 0
    for kind, own in report_kinds().results_by_report(results).items():
        if own:
            yield from [""] if shown else []
            own_points = [
                point
                for point in summaries
                if report_kinds().report_of_result(point.runs[0]) is kind
            ]
            yield from kind.terminal_screen(study, own, own_points, with_run_rows=with_run_rows)
            shown += 1
    yield from _failed_run_lines(results)


def _failed_run_lines(results: Sequence[RunResult]) -> Iterator[RenderableType]:
    bad = [result for result in results if result.status is not RunStatus.DONE]
    if not bad:
        return
    yield ""
    yield section_title("Failed or interrupted runs")
    for result in bad[:FAILURES_MAX]:
        reason = result.failure or _WITHOUT_REASON[result.status]
        why = one_line(f"{reason} {result.failure_hint or ''}".strip())
        name = run_label(result.workload, result.axis_values, result.repeat)
        yield literal_text(f"  {name}: {result.status.value}. {why}")
    if len(bad) > FAILURES_MAX:
        yield literal_text(f"  and {len(bad) - FAILURES_MAX} more")


def objection_lines(objections: Sequence[Objection]) -> Iterator[RenderableType]:
    """What keeps results from being valid, each check once, with the ranges of its numbers."""
    if not objections:
        return
    yield ""
    yield section_title(WHY_NOT_VALID)
    shown = objections[:OBJECTIONS_MAX]
    rows: list[list[Text | str]] = []
    for objection in shown:
        whose = (
            "all runs"
            if objection.concerns_every_run
            else f"{len(objection.runs)} of {counted_noun(objection.session_run_count, 'run')}"
        )
        whose += objection.differing_messages_suffix
        if objection.less_affected_runs:
            whose += f", to a lesser degree {len(objection.less_affected_runs)} more"
        text = literal_text(objection.codes_text, "bold").append(f", {whose}: ", style=QUIET_STYLE)
        rows.append(
            [
                Text("  ").append_text(styled_verdict(objection.verdict_level)),
                text.append_text(literal_text(objection.message)),
            ]
        )
    yield terminal_table([Column(""), Column("", can_wrap=True)], rows)
    if len(objections) > len(shown):
        yield literal_text(f"  {len(objections) - len(shown)} more: --details", QUIET_STYLE)


def closing_lines(
    answer: SessionAnswer,
    study: Study,
    points: Sequence[PointSummary],
    results: Sequence[RunResult],
    directory: str,
    *,
    is_unfinished: bool = False,
) -> Iterator[RenderableType]:
    """How sure the answer is, what limits it, and the next command.

    Of an `is_unfinished` session that is to continue it.
    """
    rows: list[tuple[str, Text | str]] = [
        ("Sure", literal_text(answer.confidence_text)),
        ("Checks", _check_counts_text(results, answer.objections)),
    ]
    limits = _best_point_bottlenecks(study, points, results)
    if limits:
        rows.append(("Limit", literal_text(bottlenecks_line(study, limits))))
    yield name_value_grid(rows)
    against = answer.objections
    explain = [quoted_iolab_command("explain", against[0].code)] if against else []
    resume = [resume_command(directory)] if is_unfinished else []
    commands = [*resume, quoted_iolab_command("report", directory), *explain]
    together = "; ".join(commands)
    if len(_NEXT_LABEL) + len(together) <= _TOGETHER_MAX:
        commands = [together]
    for number, command in enumerate(commands):
        name = " " * len(_NEXT_LABEL) if number else _NEXT_LABEL
        yield UnwrappedLine(Text(name, style=QUIET_STYLE).append_text(literal_text(command)))


def _check_counts_text(results: Sequence[RunResult], objections: Sequence[Objection]) -> Text:
    """How many checks passed, did not apply or failed, as `31 passed, …, 1 failed: CODE`."""
    codes = {check.code for result in results for check in result.verdict.checks}
    objecting = [
        code for objection in objections for code in (objection.code, *objection.equivalent_codes)
    ]
    failed = dict.fromkeys(objecting)
    passed = {
        check.code
        for result in results
        for check in result.verdict.checks
        if check.level is VerdictLevel.VALID
    } - failed.keys()
    text = Text(f"{len(passed)} passed", style="green")
    text.append(f", {len(codes - passed - failed.keys())} not applicable", style=QUIET_STYLE)
    text.append(f", {len(failed)} failed", style="bold red" if failed else QUIET_STYLE)
    if failed:
        lists = [list_text(list(failed), count) for count in range(CODES_SHOWN, 0, -1)]
        named = next((each for each in lists if len(text) + len(each) <= _CODES_WIDTH), lists[-1])
        text.append(f": {one_line(named)}", style="not bold default")
    return text


def results_with_recomputed_resources(
    reader: SessionReader,
    study: Study,
    points: Sequence[PointSummary],
    results: Sequence[RunResult],
) -> tuple[RunResult, ...]:
    """The results, those behind the limits with their resources as this version makes them."""
    outdated = {
        key
        for key, version in reader.analysis_version_by_run().items()
        if version < RESOURCES_ANALYSIS_VERSION
    }
    if not outdated:
        return tuple(results)
    shown = outdated & _best_point_median_run_keys(study, points)
    return tuple(
        replace(result, resources=_recomputed_or_stored_resources(reader, result))
        if result.resources is not None and result.key in shown
        else result
        for result in results
    )


def _recomputed_or_stored_resources(
    reader: SessionReader, result: RunResult
) -> RunResources | None:
    """What this version makes of the run's record; what was stored where that is damaged."""
    # And numpy, which results of this version do not need.
    from iolab.analysis.bottleneck.resource_use import (
        run_resources,
        view_with_all_resource_telemetry,
    )
    from iolab.registry import analysis_kinds

    try:
        record = reader.record(*result.key)
    except StoreError:
        return result.resources
    return run_resources(view_with_all_resource_telemetry(record, reader.facts, analysis_kinds()))


def _best_point_median_run_keys(study: Study, points: Sequence[PointSummary]) -> set[RunKey]:
    """The runs that stand for the best points."""
    headlines = report_kinds().best_point_headlines(study, points)
    return {headline.best.median_run.key for headline in headlines if headline.best is not None}


def _best_point_bottlenecks(
    study: Study, points: Sequence[PointSummary], results: Sequence[RunResult]
) -> tuple[BottleneckFinding, ...]:
    """What limits the best points, by the runs that the report shows of these too."""
    shown = _best_point_median_run_keys(study, points)
    watched = {
        result.key: result.resources
        for result in results
        if result.resources is not None and result.key in shown
    }
    return tuple(
        bottleneck_findings(study, points, tuple(best_point_findings(study, points)), watched)
    )
