"""`iolab compare` and `iolab history`: whether two sessions differ, and where a level changed."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer

from iolab.cli.invocation import quoted_iolab_command
from iolab.cli.options import (
    AsJson,
    OutputFormat,
    Workloads,
    path_or_newest_session,
    unknown_name_faults,
    with_output_format,
)
from iolab.cli.output import (
    note_and_print_left_out_session,
    open_session,
    print_document,
    print_json,
    print_message,
    print_raw,
    print_renderables,
    wrap_for_terminal,
)
from iolab.errors import ExitCode, Fault, StoreError, UsageError
from iolab.text import capitalised, counted_noun, list_text, one_line, quote_value

if TYPE_CHECKING:
    from rich.console import RenderableType
    from rich.text import Text

    from iolab.analysis.comparison import ComparisonResult, MetricHistory, SessionHistory
    from iolab.analysis.differences import ComparisonSide, Difference
    from iolab.analysis.pairs import ComparedMetric
    from iolab.errors import Fault
    from iolab.stats.comparison import ComparisonVerdict

NAMED_MAX: Final = 6
"""Points named with what is said of all of them; the document of --json has all."""

SIDE_NAME_MAX: Final = 14
"""Characters of a side's name at the head of its column; longer ones are `baseline` and so on."""

SENTENCES_MAX: Final = 8
"""Points told in a sentence under the rows."""

_SIDE_HELP = (
    "a session's directory, DIR:CONFIGURATION where it has several configurations, or "
    "DIR:WORKLOAD to compare workloads."
)

CAUSES_MAX: Final = 6
"""Other changes named beside a change of level; the document of --json has all."""


def read_comparison_side_by_name(session_argument: str) -> ComparisonSide:
    """The side that a command line names; StoreError or UsageError where it is none."""
    from iolab.analysis.differences import read_comparison_side

    directory, configuration = split_session_and_configuration(session_argument)
    return read_comparison_side(session_argument, open_session(directory), configuration)


def split_session_and_configuration(session_argument: str) -> tuple[Path, str | None]:
    """The directory and the configuration; a directory whose name has a colon is taken whole."""
    directory, (front, colon, last) = Path(session_argument), session_argument.rpartition(":")
    if not colon or not front or directory.exists():
        return path_or_newest_session(session_argument), None
    return path_or_newest_session(front), last


def require_comparable(differences: Iterable[Difference], candidate_session: str) -> None:
    """UsageError with every difference given, which forbid comparing the candidate; else silent."""
    faults = _difference_faults(differences)
    if faults:
        raise UsageError(
            f"The session {quote_value(candidate_session)} was not measured in the same way.",
            "Measure both alike, or give --allow-differences to compare them all the same.",
            faults,
        )


def require_mergeable(labelled_differences: Iterable[tuple[str, Difference]]) -> None:
    """UsageError with every difference given that forbids one report on sessions, by their labels.

    Silent where there is none.
    """
    by_label: dict[str, list[Difference]] = {}
    for label, difference in labelled_differences:
        by_label.setdefault(label, []).append(difference)
    faults = tuple(
        fault
        for label, differences in by_label.items()
        for fault in _difference_faults(differences, f"{one_line(label)}: ")
    )
    if faults:
        raise UsageError(
            "The sessions were not all measured in the same way as the first one.",
            "Report on those that were, or give --allow-differences to set them side by side.",
            faults,
        )


def require_known_names(
    sides: Sequence[ComparisonSide], workloads: Sequence[str], metrics: Sequence[str]
) -> None:
    """UsageError for workloads and metrics that there are none of, all at once."""
    from iolab.registry import analysis_kinds

    ids = list(dict.fromkeys(workload.id for side in sides for workload in side.study.workloads))
    keys = list(analysis_kinds().metric_keys) if metrics else []
    faults = (
        *unknown_name_faults("workload", workloads, ids),
        *unknown_name_faults("metric", metrics, keys),
    )
    if faults:
        raise UsageError("A workload or metric does not exist.", "Correct it.", faults)


def _difference_faults(
    differences: Iterable[Difference], message_prefix: str = ""
) -> tuple[Fault, ...]:
    """A fault for each difference; those that several workloads have alike are one."""
    from iolab.report.comparison import differences_merged_over_workloads

    return tuple(
        Fault(f"{message_prefix}{one_line(str(difference))}.".replace("..", "."), "")
        for difference in differences_merged_over_workloads(differences)
    )


class FailOnComparison(StrEnum):
    """Which verdict the exit code tells."""

    WORSE = "worse"


class CompareFormat(StrEnum):
    """What it prints: the table, or what other programs read."""

    TABLE = "table"
    CSV = "csv"
    JSON = "json"
    MARKDOWN = "markdown"
    JUNIT = "junit"
    BMF = "bmf"


def compare(
    baseline: Annotated[
        str, typer.Argument(metavar="BASELINE", help=f"What to compare with: {_SIDE_HELP}")
    ],
    candidate: Annotated[
        str | None,
        typer.Argument(
            metavar="CANDIDATE",
            help=f"What is compared: {_SIDE_HELP} Default: the other configuration of "
            "BASELINE's session.",
            show_default=False,
        ),
    ] = None,
    *,
    workload: Workloads = None,
    metric: Annotated[
        list[str] | None,
        typer.Option(
            "--metric",
            "-m",
            metavar="KEY",
            help="This metric instead of the headline figure and p99; repeatable.",
        ),
    ] = None,
    allow_differences: Annotated[
        bool,
        typer.Option(
            "--allow-differences",
            help="Compare although load or method differ; the differences are listed.",
        ),
    ] = False,
    fail_on: Annotated[
        FailOnComparison | None,
        typer.Option("--fail-on", help="Exit with 1 when any row is 'worse'.", show_default=False),
    ] = None,
    kind: Annotated[
        CompareFormat,
        typer.Option(
            "--format", "-f", help="A table, or a format for other programs.", show_default=False
        ),
    ] = CompareFormat.TABLE,
    as_json: AsJson = False,
) -> None:
    """Compare two sessions, or the configurations of one."""
    from iolab.analysis.comparison import compare_sides
    from iolab.stats.comparison import ComparisonVerdict

    if candidate is None:
        baseline, candidate = _arguments_of_both_configurations(baseline)
    sides = (read_comparison_side_by_name(baseline), read_comparison_side_by_name(candidate))
    require_known_names(sides, workload or (), metric or ())
    compared = compare_sides(*sides, tuple(workload or ()), tuple(metric or ()))
    if not allow_differences:
        require_comparable(
            [difference for difference in compared.differences if difference.forbids_comparison],
            candidate,
        )
    _require_compared_metrics(compared)
    print_comparison(compared, CompareFormat.JSON if as_json else kind)
    worse = compared.row_count_by_verdict.get(ComparisonVerdict.WORSE, 0)
    raise typer.Exit(ExitCode.VERDICT if fail_on and worse else ExitCode.OK)


def _arguments_of_both_configurations(session_argument: str) -> tuple[str, str]:
    """Both configurations of a session; UsageError where it has not two."""
    directory, configuration = split_session_and_configuration(session_argument)
    ids = [item.id for item in open_session(directory).study.configurations]
    others = [item for item in ids if item != configuration]
    if len(ids) != 2 or len(others) != (2 if configuration is None else 1):
        baseline, *candidates = [configuration, *others] if len(others) < len(ids) else ids
        hint = "Name a baseline and a candidate."
        if candidates:
            pair = quoted_iolab_command(
                "compare", f"{directory}:{baseline}", f"{directory}:{candidates[0]}"
            )
            named = list_text(ids, NAMED_MAX)
            hint = f"Name a baseline and a candidate of {named}, for example: {pair}"
        raise UsageError(
            f"{quote_value(session_argument)} has {counted_noun(len(ids), 'configuration')}, "
            "and no candidate is named.",
            hint,
        )
    first = configuration or ids[0]
    return f"{directory}:{first}", f"{directory}:{next(item for item in ids if item != first)}"


def print_comparison(comparison: ComparisonResult, output_format: CompareFormat) -> None:
    """Print a comparison for people or for another program."""
    from iolab.report.comparison import (
        comparison_bmf_document,
        comparison_csv,
        comparison_document,
        comparison_junit_xml,
        comparison_markdown,
    )

    match output_format:
        case CompareFormat.JSON:
            print_json(comparison_document(comparison))
        case CompareFormat.CSV:
            print_raw(comparison_csv(comparison))
        case CompareFormat.MARKDOWN:
            print_raw(comparison_markdown(comparison))
        case CompareFormat.JUNIT:
            print_raw(comparison_junit_xml(comparison))
        case CompareFormat.BMF:
            print_json(comparison_bmf_document(comparison))
        case _:
            print_renderables(*comparison_lines(comparison))


def _require_compared_metrics(comparison: ComparisonResult) -> None:
    """UsageError when there is nothing to compare, with the reasons."""
    if comparison.compared_metrics:
        return
    faults = tuple(Fault(one_line(f"{text}."), "") for text in _skip_reason_texts(comparison))
    raise UsageError(
        "The two sessions have no point that both can be compared by.", "Compare others.", faults
    )


def comparison_lines(comparison: ComparisonResult) -> Iterator[RenderableType]:
    """What is compared, what differs, the rows, and all of them together."""
    from rich.text import Text

    from iolab.analysis.comparison import SAME_SESSION
    from iolab.report.comparison import (
        comparison_sentences,
        differences_table,
        geometric_mean_texts,
        ratio_with_interval_text,
    )
    from iolab.report.terminal import (
        QUIET_STYLE,
        literal_text,
        name_value_grid,
        report_table_for_terminal,
        section_title,
    )

    sides = (("baseline", comparison.baseline), ("candidate", comparison.candidate))
    yield name_value_grid(
        [(name, literal_text(_session_configuration_and_time_text(side))) for name, side in sides]
    )
    yield ""
    if comparison.is_same_measurement:
        yield literal_text(f"Note: {SAME_SESSION}.")
    elif not comparison.differences:
        yield literal_text("Nothing else differs: studies, hosts and versions are the same.")
    else:
        differences = differences_table(comparison.differences)
        yield section_title(differences.title)
        yield report_table_for_terminal(differences)
        if any(difference.forbids_comparison for difference in comparison.differences):
            yield literal_text("! makes them incomparable; --allow-differences was given.")
    yield ""
    yield _comparison_table(comparison)
    yield literal_text(_verdict_counts_text(comparison), QUIET_STYLE)
    yield from _inconclusive_reason_lines(comparison.compared_metrics)
    for summary in comparison.summaries:
        subject, overall = geometric_mean_texts(summary).subject, summary.geometric_mean
        ratio = ratio_with_interval_text(overall.ratio, overall.low, overall.high)
        yield Text(f"{capitalised(subject)}: {ratio}")
    yield from _skipped_point_lines(comparison)
    if not comparison.is_same_measurement:
        yield ""
        sentences = list(comparison_sentences(comparison))
        yield from (literal_text(text, "bold") for text in sentences[:SENTENCES_MAX])
        if len(sentences) > SENTENCES_MAX:
            yield literal_text(f"and {len(sentences) - SENTENCES_MAX} more, in the rows above")


def _session_configuration_and_time_text(side: ComparisonSide) -> str:
    from iolab.report.numbers import utc_minute_text
    from iolab.report.short_names import screen_name_by_configuration

    configuration = side.configuration.id
    if len(side.study.configurations) > 1:
        configuration = screen_name_by_configuration(side.study)[configuration]
    where = f"{side.name}  {side.study.id}, {one_line(configuration)}"
    where += f", scale {side.study.scale}" if side.study.scale else ""
    return f"{where}, {utc_minute_text(side.created_real_ns)} UTC"


def _comparison_table(comparison: ComparisonResult) -> RenderableType:
    """A row a metric, those of a point below its title."""
    from rich.text import Text

    from iolab.report.comparison import (
        compared_operations_suffix,
        comparison_row_texts,
        ratio_with_interval_text,
    )
    from iolab.report.numbers import point_text
    from iolab.report.phrases import metric_column_name
    from iolab.report.table import Column
    from iolab.report.terminal import GroupedTable, literal_text, section_title, styled_verdict
    from iolab.stats.comparison import ComparisonVerdict

    reasons = _footnote_numbers_by_reason(comparison.compared_metrics)
    levels = {row.verdict_level for row in comparison.compared_metrics}
    titles = comparison.candidate.study.workload_titles
    points: dict[str, list[list[Text | str]]] = {}
    for row in comparison.compared_metrics:
        texts = comparison_row_texts(row)
        note = reasons.get(row.comparison.reason, 0) if len(reasons) > 1 else 0
        is_open = row.comparison.verdict is ComparisonVerdict.INCONCLUSIVE
        # A number stands for the reason in a line below; with the word it would be the widest.
        word = texts.marked_verdict.split()[0] if is_open and note else texts.marked_verdict
        mark = Text(word, style=_verdict_style(row.comparison.verdict))
        mark.append(f" ({note})" if note else "", style="dim")
        of_operations = compared_operations_suffix(comparison, row)
        name = metric_column_name(row.metric)
        # "p99, all I/Os": a latency by its unit, where that keeps its row one line.
        metric = f"  {name.removesuffix(' latency') if of_operations else name}{of_operations}"
        point = point_text(titles.get(row.workload, row.workload), row.axis_values)
        points.setdefault(point, []).append(
            [
                literal_text(metric),
                literal_text(texts.baseline),
                literal_text(texts.candidate),
                ratio_with_interval_text(
                    row.comparison.ratio, row.comparison.low, row.comparison.high
                ),
                mark,
                *([styled_verdict(row.verdict_level)] if len(levels) > 1 else []),
            ]
        )
    names = _side_column_names(comparison)
    heads = [Column("", can_wrap=True)]
    heads += [Column(one_line(name), is_number=True) for name in names]
    heads += [Column("ratio (95 %)", is_number=True), Column("")]
    heads += [Column("trust", is_optional=True)] if len(levels) > 1 else []
    return GroupedTable(heads, [(section_title(point), rows) for point, rows in points.items()])


def _side_column_names(comparison: ComparisonResult) -> tuple[str, str]:
    """What the columns of the sides are called."""
    from iolab.report.comparison import short_side_names

    names = short_side_names(comparison)
    return names if max(map(len, names)) <= SIDE_NAME_MAX else ("baseline", "candidate")


def _inconclusive_reason_lines(
    compared_metrics: Sequence[ComparedMetric],
) -> Iterator[RenderableType]:
    """Why rows are inconclusive, by the numbers beside them, and what all of them are worth."""
    from iolab.report.terminal import QUIET_STYLE, literal_text

    reasons = _footnote_numbers_by_reason(compared_metrics)
    for reason, number in reasons.items():
        name = f"({number})" if len(reasons) > 1 else "Inconclusive:"
        yield literal_text(f"{name} {reason}", QUIET_STYLE)
    levels = {row.verdict_level for row in compared_metrics}
    if len(levels) == 1:
        yield literal_text(f"All of these runs are {levels.pop().value}.", QUIET_STYLE)


def _footnote_numbers_by_reason(compared_metrics: Sequence[ComparedMetric]) -> dict[str, int]:
    """Why rows are inconclusive, or the same for an odd reason: numbered, each once."""
    from iolab.analysis.comparison import SAME_SESSION
    from iolab.stats.comparison import ComparisonVerdict

    reasons = [
        row.comparison.reason
        for row in compared_metrics
        if row.comparison.verdict is ComparisonVerdict.INCONCLUSIVE
        or row.comparison.reason == SAME_SESSION
    ]
    return {reason: number for number, reason in enumerate(dict.fromkeys(reasons), start=1)}


def _skipped_point_lines(comparison: ComparisonResult) -> Iterator[RenderableType]:
    from rich.padding import Padding

    from iolab.report.terminal import literal_text, section_title

    if not comparison.skipped:
        return
    yield section_title("Not compared")
    for text in _skip_reason_texts(comparison):
        yield Padding(literal_text(text), (0, 0, 0, 2))


def _skip_reason_texts(comparison: ComparisonResult) -> Iterator[str]:
    """Each reason why points are not compared once, with those that it is of."""
    from iolab.report.numbers import point_text

    grouped: dict[str, list[str]] = {}
    for point in comparison.skipped:
        grouped.setdefault(point.reason, []).append(point_text(point.workload, point.axis_values))
    for reason, points in grouped.items():
        yield f"{list_text(points, NAMED_MAX)}: {reason}"


def _verdict_counts_text(comparison: ComparisonResult) -> str:
    """How many rows have which mark, which explains the marks."""
    from iolab.report.comparison import marked_verdict_text

    parts = [
        marked_verdict_text(verdict, str(number))
        for verdict, number in comparison.row_count_by_verdict.items()
        if number
    ]
    baseline, candidate = _side_column_names(comparison)
    total = counted_noun(len(comparison.compared_metrics), "comparison")
    return f"{candidate} against {baseline}: {', '.join(parts)}. Verdicts allow for {total}."


def _verdict_style(verdict: ComparisonVerdict) -> str:
    from iolab.stats.comparison import ComparisonVerdict

    return {
        ComparisonVerdict.BETTER: "green",
        ComparisonVerdict.WORSE: "bold red",
        ComparisonVerdict.SAME: "",
    }.get(verdict, "yellow")


@with_output_format
def history(
    directories: Annotated[
        list[str],
        typer.Argument(
            metavar="DIR",
            help="Sessions, or directories of sessions; DIR:CONFIGURATION where a session has "
            "several configurations.",
        ),
    ],
    *,
    workload: Workloads = None,
    metric: Annotated[
        list[str] | None,
        typer.Option(
            "--metric",
            "-m",
            metavar="KEY",
            help="This metric instead of the headline figure; repeatable.",
        ),
    ] = None,
    allow_differences: Annotated[
        bool,
        typer.Option(
            "--allow-differences",
            help="Include sessions whose load or method differ.",
        ),
    ] = False,
    details: Annotated[
        bool, typer.Option("--details", help="Also every session's value with its interval.")
    ] = False,
    output_format: OutputFormat,
) -> None:
    """Find where results changed over many sessions."""
    from iolab.analysis.comparison import build_session_history, forbidding_differences_by_session
    from iolab.report.comparison import history_document

    sides = _read_session_sides(directories)
    require_known_names(sides, workload or (), metric or ())
    if not allow_differences:
        _require_same_study(sides)
        for place, differences in forbidding_differences_by_session(sides).items():
            require_comparable(differences, sides[place].name)
    tracked = build_session_history(sides, tuple(workload or ()), tuple(metric or ()))
    if not tracked.metric_histories:
        raise UsageError(
            "No session has a value that could be tracked.", "Give other sessions or metrics."
        )
    if output_format is not OutputFormat.TABLE:
        document = history_document(tracked)
        rows = [
            {
                **{name: series[name] for name in ("workload", "axis", "metric", "unit")},
                **value,
                "session": document["sessions"][value["session"]]["name"],
            }
            for series in document["series"]
            for value in series["values"]
        ]
        print_document(output_format, document, rows)
    else:
        print_renderables(*history_lines(tracked, has_details=details))


def _require_same_study(sides: Sequence[ComparisonSide]) -> None:
    """UsageError where sessions are of several studies, with those of each."""
    names: dict[str, list[str]] = {}
    for side in sides:
        names.setdefault(side.study.id, []).append(side.name)
    if len(names) > 1:
        faults = tuple(
            Fault(f"{one_line(study)}: {one_line(list_text(own, NAMED_MAX))}.", "")
            for study, own in names.items()
        )
        raise UsageError(
            f"The sessions are of {len(names)} studies, and a history is of one.",
            "Give the sessions of one study.",
            faults,
        )


def _read_session_sides(names: Sequence[str]) -> list[ComparisonSide]:
    """Every session that the names stand for, oldest first; UsageError for one given twice."""
    sides = [
        side
        for directory, configuration in map(split_session_and_configuration, names)
        for session in _session_itself_or_sessions_inside(directory)
        if (
            side := _read_session_side_or_warn(
                session, configuration, is_named_by_user=session == directory
            )
        )
        is not None
    ]
    sides.sort(key=lambda side: (side.created_real_ns, side.session_id))
    faults = tuple(
        Fault(
            f"{quote_value(side.name)} is the same session as {quote_value(earlier.name)}.",
            "Give one of them.",
        )
        for number, side in enumerate(sides)
        for earlier in sides[:number]
        if side.is_same_measurement_as(earlier)
    )
    if faults:
        raise UsageError("A session is given twice.", "Its values would count twice.", faults)
    return sides


def _read_session_side_or_warn(
    session: Path, configuration_id: str | None, *, is_named_by_user: bool
) -> ComparisonSide | None:
    """The side of a session; None with a message where it cannot be read.

    Likewise for one of several configurations, unless the command line names that session itself.
    """
    from iolab.analysis.differences import read_comparison_side
    from iolab.store.verify import damage_from_error

    try:
        return read_comparison_side(str(session), open_session(session), configuration_id)
    except StoreError as error:
        note_and_print_left_out_session(session, damage_from_error(session, "the session", error))
        return None
    except UsageError as error:
        if is_named_by_user:
            raise
        print_message(wrap_for_terminal(one_line(f"Left out: {error}")))
        return None


def _session_itself_or_sessions_inside(directory: Path) -> list[Path]:
    """The directory itself if it is a session, else those in it; UsageError for neither."""
    from iolab.store.reader import is_session

    if is_session(directory):
        return [directory]
    inside = sorted(directory.iterdir()) if directory.is_dir() else []
    sessions = [path for path in inside if is_session(path)]
    if not sessions:
        raise UsageError(
            f"There is no session at {quote_value(str(directory))} nor in it.",
            "Give directories that `iolab run --out` wrote, or one that holds them.",
        )
    return sessions


def history_lines(history: SessionHistory, *, has_details: bool) -> Iterator[RenderableType]:
    """The sessions, the series and what each tells, and what else changed when one did."""
    from iolab.report.comparison import history_summary_sentence, metric_changes_text
    from iolab.report.numbers import metric_value_text, point_text, utc_minute_text
    from iolab.report.phrases import metric_column_name
    from iolab.report.table import Column
    from iolab.report.terminal import GroupedTable, literal_text, name_value_grid, section_title

    first, last = history.sessions[0], history.sessions[-1]
    span = f"{len(history.sessions)}, from {utc_minute_text(first.created_real_ns)} to "
    yield name_value_grid(
        [
            ("study", literal_text(f"{first.study.id}, scale {first.study.scale}")),
            ("configuration", literal_text(first.configuration.id)),
            ("sessions", literal_text(f"{span}{utc_minute_text(last.created_real_ns)} UTC")),
        ]
    )
    yield ""
    points: dict[str, list[list[Text | str]]] = {}
    for series in history.metric_histories:
        points.setdefault(point_text(series.workload, series.axis_values), []).append(
            [
                literal_text(f"  {metric_column_name(series.metric)}"),
                str(len(series.values)),
                metric_value_text(series.values[0].metric),
                metric_value_text(series.values[-1].metric),
                literal_text(
                    metric_changes_text(series),
                    "bold yellow" if series.change_search.changes else "",
                ),
            ]
        )
    heads = [Column("metric", can_wrap=True)]
    heads += [Column(name, is_number=True) for name in ("sessions", "first", "last")]
    groups = [(section_title(point), rows) for point, rows in points.items()]
    yield GroupedTable([*heads, Column("changes", can_wrap=True)], groups)
    yield ""
    for series in history.metric_histories:
        yield from _change_point_lines(history, series)
    if has_details:
        for series in history.metric_histories:
            yield section_title(
                f"{point_text(series.workload, series.axis_values)}: "
                f"{metric_column_name(series.metric)}"
            )
            yield _metric_history_table(history, series)
            yield ""
    yield section_title(history_summary_sentence(history))


def _change_point_lines(
    history: SessionHistory, metric_history: MetricHistory
) -> Iterator[RenderableType]:
    """Each change of a series with what the session has otherwise than the one before."""
    from iolab.report.comparison import ratio_with_percent_text
    from iolab.report.numbers import point_text, utc_minute_text
    from iolab.report.phrases import metric_column_name
    from iolab.report.terminal import QUIET_STYLE, literal_text, section_title

    for change in metric_history.change_search.changes:
        place = metric_history.values[change.run_index].session_index
        side = history.sessions[place]
        yield section_title(
            f"{point_text(metric_history.workload, metric_history.axis_values)}: "
            f"{metric_column_name(metric_history.metric)}"
        )
        yield literal_text(
            f"  {ratio_with_percent_text(change.ratio)} from {side.name} on, "
            f"{utc_minute_text(side.created_real_ns)} UTC (p = {change.p_value:.2g})"
        )
        causes = [str(difference) for difference in history.differences_by_session[place]]
        for text in causes[:CAUSES_MAX]:
            yield literal_text(f"  with it changed {text}", QUIET_STYLE)
        if not causes:
            yield literal_text(
                "  nothing that is recorded of hosts and versions changed", QUIET_STYLE
            )
        yield ""


def _metric_history_table(history: SessionHistory, metric_history: MetricHistory) -> RenderableType:
    from iolab.report.numbers import interval_and_runs_text, metric_value_text, utc_minute_text
    from iolab.report.table import Column
    from iolab.report.terminal import literal_text, styled_verdict, terminal_table

    before = {change.run_index for change in metric_history.change_search.changes}
    rows: list[list[Text | str]] = [
        [
            literal_text(utc_minute_text(history.sessions[value.session_index].created_real_ns)),
            literal_text(history.sessions[value.session_index].name),
            metric_value_text(value.metric),
            interval_and_runs_text(value.metric, is_rate_unit_omitted=True),
            styled_verdict(value.verdict_level),
            "changed" if number in before else "",
        ]
        for number, value in enumerate(metric_history.values)
    ]
    heads = [Column("UTC"), Column("session", can_wrap=True), Column("value", is_number=True)]
    return terminal_table([*heads, Column("interval"), Column("trust"), Column("")], rows)
