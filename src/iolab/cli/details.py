"""Every run of a session on the terminal: its metrics, hosts and checks; what is equal once."""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import pairwise
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

from rich.text import Text

from iolab.cli.results import WHY_NOT_VALID
from iolab.core.metric import (
    CheckResult,
    Evidence,
    Metric,
    RunResult,
    VerdictLevel,
    direction_keys_with_latency,
)
from iolab.core.metric_spec import is_scenario_metric
from iolab.core.run import RunStatus
from iolab.core.workload import Direction
from iolab.record import Record
from iolab.registry import report_kinds
from iolab.report.numbers import metric_value_text
from iolab.report.phrases import merge_objections, metric_phrase
from iolab.report.runs import evenness_rows, evidence_text, phase_evenness_table
from iolab.report.scenario import (
    INVALID_PHASES,
    neighbour_table_ratios_note,
    neighbours_table,
    phases_note,
    phases_table,
    run_fault_impact_sentence,
)
from iolab.report.slow_ios import slow_ios_table
from iolab.report.table import Column
from iolab.report.terminal import (
    QUIET_STYLE,
    VERDICT_STYLES,
    grouped_report_table,
    literal_text,
    name_value_grid,
    report_table_for_terminal,
    run_label,
    section_title,
    sparkline,
    styled_verdict,
    terminal_table,
)
from iolab.text import counted_noun, one_line
from iolab.units import format_ns

if TYPE_CHECKING:
    from rich.console import RenderableType

    from iolab.analysis.slow_ios import SlowIoContext
    from iolab.report.charts.series import LatencyCurve

_MARKS: Final = {
    "lat_ns_": "",
    "ops_per_s_whole": "over the whole phase ",
    "ops_per_s": "",
    "bw_bytes_per_s": "",
    "iops": "",
}
"""What a metric's key says of a subject, and the words before its value beside the unit."""

HISTOGRAM_BLOCKS: Final = 40
"""Blocks of a latency histogram, which then fits a line of 80 columns."""

BLOCK_LOG_MIN: Final = 0.04
"""How wide a block is at least, as a logarithm: two bins of the stored latencies."""

TAIL_MIN: Final = 99.9
"""A histogram that ends below p99 would leave out what it is looked at for."""

MIXED_DIRECTIONS: Final = 2
"""Directions of I/O from which on each has figures that are not those of all."""

SLOW_IOS_SHOWN: Final = 20
"""Slow I/Os on a screen; a report has all that were told."""

_DIRECTION_PREFIXES: Final = tuple(f"{direction.key}_" for direction in Direction)


def titled_session_details(
    results: Sequence[RunResult],
    latency_curve_reader: Callable[[RunResult], Sequence[LatencyCurve]] = lambda _: (),
    slow_io_reader: Callable[[RunResult], Sequence[SlowIoContext]] = lambda _: (),
    configuration_names: Mapping[str, str] = MappingProxyType({}),
) -> Iterator[tuple[str, list[RenderableType]]]:
    """What checks found in all runs, then every run: all metrics, each host, what objects to it.

    Each part after its title; runs of one workload and configuration are a part. What a valid check
    says and rests on is in the report's appendix and in `show --json`. What checks have in common
    in several runs stands before them, and not in each again. `latency_curve_reader` gives the
    latencies of a run by operation, which are drawn as a histogram, `slow_io_reader` its slowest
    I/Os where they were requested. Configurations without a name are called by their ids.
    """
    shared = _shared_check_texts(results)
    if len(results) > 1 and (lines := list(_check_lines_of_all_runs(results, shared))):
        yield WHY_NOT_VALID, lines
    by_workload: dict[tuple[str, str], list[RunResult]] = {}
    for result in results:
        by_workload.setdefault((result.configuration, result.workload), []).append(result)
    has_several = len({result.configuration for result in results}) > 1
    for (configuration, workload), runs in by_workload.items():
        name = configuration_names.get(configuration, configuration) if has_several else ""
        title = f"{name}: {workload}" if name else workload
        parts = [
            part
            for run in runs
            for part in (
                *_detail_lines_of_run(
                    run,
                    shared,
                    latency_curve_reader(run),
                    configuration_name=name,
                    is_only_run=len(results) == 1,
                ),
                *_slow_io_lines(slow_io_reader(run)),
            )
        ]
        yield f"{title}, {counted_noun(len(runs), 'run')}", parts


def detail_lines_of_runs(
    results: Sequence[RunResult],
    latency_curve_reader: Callable[[RunResult], Sequence[LatencyCurve]] = lambda _: (),
) -> Iterator[RenderableType]:
    """All parts of `titled_session_details` one after the other."""
    for _, parts in titled_session_details(results, latency_curve_reader):
        yield from parts


def _slow_io_lines(slow_ios: Sequence[SlowIoContext]) -> Iterator[RenderableType]:
    """The slowest I/Os of a run; nothing where none were requested."""
    if slow_ios:
        yield section_title("Slowest I/Os")
        table = slow_ios_table("Slowest I/Os", slow_ios[:SLOW_IOS_SHOWN])
        yield report_table_for_terminal(table)


def _detail_lines_of_run(
    result: RunResult,
    shared_texts: SharedCheckTexts,
    curves: Sequence[LatencyCurve],
    *,
    configuration_name: str,
    is_only_run: bool,
) -> Iterator[RenderableType]:
    """One run, after its configuration if that has a name; `is_only_run` of its session."""
    yield ""
    name = run_label(result.workload, result.axis_values, result.repeat)
    heading = section_title(f"{configuration_name}: {name}" if configuration_name else name)
    if result.status is not RunStatus.DONE:
        heading.append(f"  {result.status.value}", style=QUIET_STYLE)
    yield heading.append("  ").append_text(styled_verdict(result.verdict.level))
    place = f"points/{result.digest}/run-{result.repeat}"
    yield literal_text(f"{place}: {result.verdict.judged_check_count_text}", QUIET_STYLE)
    histograms = [(curve.name, text) for curve in curves if (text := latency_histogram_text(curve))]
    yield name_value_grid([*_measured_metric_rows(result.metrics), *histograms])
    if result.scenario is not None:
        if result.verdict.level is VerdictLevel.INVALID:
            yield literal_text(INVALID_PHASES, VERDICT_STYLES[VerdictLevel.INVALID])
        elif not is_only_run:  # of the only run it is the session's answer
            yield literal_text(run_fault_impact_sentence(result))
        yield grouped_report_table(phases_table([result.scenario], result.metrics))
        if note := phases_note([result.scenario], result.metrics):
            yield literal_text(note, QUIET_STYLE)
        if (neighbours := neighbours_table([result.scenario], result.metrics)) is not None:
            yield grouped_report_table(neighbours)
            yield literal_text(
                neighbour_table_ratios_note([result.scenario], result.metrics), QUIET_STYLE
            )
    if len(result.hosts) > 1:
        yield from _host_metric_lines(result)
    yield from report_kinds().booted_hosts.nodes_terminal_screen_of_run(result)
    yield from _check_lines_of_run(result, shared_texts)


def latency_histogram_text(curve: LatencyCurve) -> str:
    """Latencies on a logarithmic scale up to the last percentile that the I/Os support.

    As `35.0 µs ▁▂▇█▄▂▁▁ p99.9 4.00 ms`; empty where that is no tail.
    """
    if (
        not curve.inverse_tail_fractions
        or curve.inverse_tail_fractions[-1] < TAIL_MIN
        or not 0 < curve.lat_ns[0] < curve.lat_ns[-1]
    ):
        return ""
    shares = [1 - 1 / tail for tail in curve.inverse_tail_fractions]
    logs = [math.log(latency) for latency in curve.lat_ns]
    count = min(max(int((logs[-1] - logs[0]) / BLOCK_LOG_MIN), 1), HISTOGRAM_BLOCKS)
    width = (logs[-1] - logs[0]) / count
    below = [_io_share_below_latency(logs[0] + width * at, logs, shares) for at in range(count + 1)]
    blocks = sparkline([high - low or None for low, high in pairwise(below)], count)
    last = f"p{100 * shares[-1]:.6g} {format_ns(curve.lat_ns[-1])}"
    return f"{format_ns(curve.lat_ns[0])} {blocks} {last}"


def _io_share_below_latency(
    log_latency: float, known_log_latencies: Sequence[float], known_shares: Sequence[float]
) -> float:
    """Which share of the I/Os is below a latency, by the line through the nearest known ones."""
    after = bisect_right(known_log_latencies, log_latency)
    if after in (0, len(known_log_latencies)):
        return known_shares[min(after, len(known_log_latencies) - 1)]
    before = after - 1
    part = (log_latency - known_log_latencies[before]) / (
        known_log_latencies[after] - known_log_latencies[before]
    )
    return known_shares[before] + part * (known_shares[after] - known_shares[before])


class SharedCheckTexts(Record):
    """What need not be said of each run: checks that object to none, by code what all have.

    `message_by_code` is a sentence that is the same in all, or its end after a colon.
    """

    passed_codes: frozenset[str]
    message_by_code: Mapping[str, str]
    evidence_by_code: Mapping[str, Evidence]


def _shared_check_texts(results: Sequence[RunResult]) -> SharedCheckTexts:
    """What several runs have in common; of a single run nothing is said but there."""
    if len(results) < 2:
        return SharedCheckTexts(frozenset(), {}, {})
    found: dict[str, list[CheckResult]] = {}
    for result in results:
        for check in result.verdict.objections:
            found.setdefault(check.code, []).append(check)
    satisfied = {code for result in results for code in result.verdict.passed_check_codes}
    repeated = {code: checks for code, checks in found.items() if len(checks) > 1}
    return SharedCheckTexts(
        passed_codes=frozenset(satisfied - found.keys()),
        message_by_code={
            code: _shared_sentence_or_ending([check.message for check in checks])
            for code, checks in repeated.items()
        },
        evidence_by_code={
            code: {
                name: value
                for name, value in checks[0].evidence.items()
                if all(name in check.evidence and check.evidence[name] == value for check in checks)
            }
            for code, checks in repeated.items()
        },
    )


def _shared_sentence_or_ending(sentences: Sequence[str]) -> str:
    """The sentence that all are, else what all end in after their last colon, else nothing."""
    if len(set(sentences)) == 1:
        return sentences[0]
    ends = {sentence.rpartition(": ")[2] for sentence in sentences}
    end = ends.pop()
    return "" if ends else end


def _check_lines_of_all_runs(
    results: Sequence[RunResult], shared_texts: SharedCheckTexts
) -> Iterator[RenderableType]:
    """What objects, the gravest first, to how many runs, and what is equal; what is fine."""
    rows: list[list[Text | str]] = []
    for objection in merge_objections(results):
        whose = f"{len(objection.runs)} of {objection.session_run_count} runs"
        for code in (objection.code, *objection.equivalent_codes):
            message = shared_texts.message_by_code.get(code)
            rest = f"{whose}: {one_line(message)}" if message else f"{whose}."
            text = literal_text(code, "bold").append(f", {rest}", style="not bold")
            if evidence := _evidence_text_without_unknown(
                shared_texts.evidence_by_code.get(code, {})
            ):
                text.append_text(literal_text(f" In each: {evidence}", f"{QUIET_STYLE} not bold"))
            rows.append([styled_verdict(objection.verdict_level), text])
    if shared_texts.passed_codes:
        codes = literal_text(", ".join(sorted(shared_texts.passed_codes)), QUIET_STYLE)
        rows.append(
            [
                styled_verdict(VerdictLevel.VALID),
                literal_text("passed in all runs where they apply: ").append_text(codes),
            ]
        )
    if rows:
        yield ""
        yield section_title(WHY_NOT_VALID)
        yield terminal_table([Column(""), Column("", can_wrap=True)], rows)


def _measured_metric_rows(metrics: Mapping[str, Metric]) -> list[tuple[str, Text | str]]:
    """Every metric that has a value, with its interval, a line for each of what was measured.

    Of one direction alone that is no news. Phases have a table of their own.
    """
    measured = {
        key: metric
        for key, metric in metrics.items()
        if metric.value is not None and not is_scenario_metric(key)
    }
    alone = len(direction_keys_with_latency(metrics)) < MIXED_DIRECTIONS
    lines: dict[str, list[str]] = {}
    for key, metric in sorted(measured.items(), key=_metric_sort_key):
        if (
            alone
            and key.startswith(_DIRECTION_PREFIXES)
            and measured.get(key.partition("_")[2]) == metric
        ):
            continue
        mark = next((mark for mark in _MARKS if mark in key), key)
        subject, _, suffix = key.partition(mark)
        words = _MARKS[mark] if mark in _MARKS else metric_phrase(key)
        name = f"{words}{suffix.replace('_', '.')}".strip()
        text = f"{name} {_metric_with_interval_text(metric)}".strip()
        lines.setdefault(subject.strip("_").replace("_", " ") or "all", []).append(text)
    return [(subject, ", ".join(parts)) for subject, parts in lines.items()]


def _metric_sort_key(key_and_metric: tuple[str, Metric]) -> tuple[bool, bool, bool]:
    """Rates stand first, then latencies: the mean, percentiles, the extremes."""
    key, _ = key_and_metric
    return "lat_ns" in key, key.endswith(("_min", "_max")), not key.endswith("_mean")


def _host_metric_lines(result: RunResult) -> Iterator[RenderableType]:
    """Each host's share."""
    keys = report_kinds().report_of_result(result).compared_host_metric_keys(result)
    rows: list[list[Text | str]] = [
        [literal_text(host.name), *(metric_value_text(host.metrics.get(key)) for key in keys)]
        for host in result.hosts
    ]
    headings = [Column(metric_phrase(key), is_number=True) for key in keys]
    yield terminal_table([Column("host", can_wrap=True), *headings], rows)
    if result.spread is not None:
        yield name_value_grid(
            [(name, literal_text(value)) for name, value in evenness_rows(result.spread)]
        )
    if result.operation_spreads:
        names = report_kinds().report_of_result(result).phase_names_by_spread_key
        yield report_table_for_terminal(phase_evenness_table(result.operation_spreads, names))


def _check_lines_of_run(
    result: RunResult, shared_texts: SharedCheckTexts
) -> Iterator[RenderableType]:
    """What objects, the gravest first, with its evidence; the codes of what found nothing.

    Without what is said of all runs.
    """
    rows: list[list[Text | str]] = []
    for check in result.verdict.objections:
        text = literal_text(check.code, "bold")
        if message := check.message.removesuffix(shared_texts.message_by_code.get(check.code, "")):
            own_words = one_line(message).removesuffix(": ")
            text.append(f": {own_words}{'' if own_words.endswith('.') else '.'}", "not bold")
        rows.append([styled_verdict(check.level or VerdictLevel.INVALID), text])
        known = shared_texts.evidence_by_code.get(check.code, {})
        own = {name: value for name, value in check.evidence.items() if name not in known}
        if evidence := _evidence_text_without_unknown(own):
            rows.append(["", literal_text(evidence, QUIET_STYLE)])
    fine = [
        code for code in result.verdict.passed_check_codes if code not in shared_texts.passed_codes
    ]
    if fine:
        rows.append(
            [styled_verdict(VerdictLevel.VALID), literal_text(", ".join(fine), QUIET_STYLE)]
        )
    if rows:
        yield terminal_table([Column(""), Column("", can_wrap=True)], rows)


def _evidence_text_without_unknown(evidence: Evidence) -> str:
    return evidence_text({name: value for name, value in evidence.items() if value is not None})


def _metric_with_interval_text(metric: Metric) -> str:
    text = metric_value_text(metric)
    if metric.low is not None and metric.high is not None:
        low, high = Metric(metric.low, metric.unit), Metric(metric.high, metric.unit)
        count = "" if metric.n is None else f", n = {metric.n}"
        text += f" ({metric_value_text(low)} to {metric_value_text(high)}{count})"
    return text
