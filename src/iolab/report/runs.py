"""The runs of a report: all of them in a table, and each in detail, with checks and evidence."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Final, NamedTuple

from iolab.core.bins import PERCENTILE_LABELS
from iolab.core.metric import Evidence, HostEvenness, Metric, RunResult, Verdict, VerdictLevel
from iolab.core.metric_spec import column_metric_keys_and_labels
from iolab.core.run import HostRun
from iolab.core.study import Study
from iolab.core.workload import Workload
from iolab.record import Record
from iolab.report.brief import LoadReport
from iolab.report.numbers import DASH, all_axis_names, metric_value_text, steadiness_text
from iolab.report.phrases import result_run_name_text, title_by_configuration_if_several
from iolab.report.slow_ios import slow_ios_table
from iolab.report.table import Cell, Table, row_of_cells, text_and_number_columns, verdict_cell
from iolab.text import counted_noun, list_text, percent_text
from iolab.units import format_bytes, format_duration_s

if TYPE_CHECKING:
    from iolab.analysis.storage_bytes import ByteBalance, StorageNodeBytes
    from iolab.report.brief import Brief
    from iolab.report.charts.chart import Chart
    from iolab.report.charts.series import RunAnchors, RunChartData

SHOWN_METRICS: Final = (
    ("iops", "IOPS"),
    ("read_iops", "Read IOPS"),
    ("write_iops", "Write IOPS"),
    ("bw_bytes_per_s", "Bandwidth"),
    ("lat_ns_mean", "Latency mean"),
    *PERCENTILE_LABELS.items(),
    ("lat_ns_max", "Max"),
)
"""The metrics of the results table and their headings."""

SERVICE_METRICS: Final = (
    ("service_lat_ns_mean", "Service mean"),
    ("service_lat_ns_p50", "Service p50"),
    ("service_lat_ns_p99", "Service p99"),
)
"""Those beside them where latency counts from when I/Os were due."""


ROWS_MAX: Final = 2000
"""Runs with a row of their own: each takes half a KiB, and nobody reads more. The last row says how
many more there are, and what lists them."""

HOSTS_SHOWN: Final = 24
"""Rows of a fleet's table: a larger fleet shows the slowest and the fastest half of these."""

RUNS_SHOWN: Final = 500
"""Runs told in detail: each takes some KiB, and a page must open at once."""

NAMES_SHOWN: Final = 8
"""Hosts named over what they have alike; the others are counted."""


def runs_table(
    heading: str,
    study: Study,
    results: Sequence[RunResult],
    metric_headings: Sequence[tuple[str, str]],
    anchors: RunAnchors,
    *,
    max_rows: int = ROWS_MAX,
) -> Table:
    """Verdict, place and metrics of each run; `metric_headings` are the metrics' keys and headings.

    `anchors` lead to what the report tells of a run. Of more than `max_rows` runs those that are
    not valid come before others, and the last row tells of what is left out.
    """
    axes = all_axis_names(results)
    titles = title_by_configuration_if_several(study)
    steady = any(result.steadiness is not None for result in results)
    names = ("Workload", *(("Configuration",) if titles else ()))
    heads = text_and_number_columns(
        (*names, "Verdict", *(("Steady",) if steady else ())),
        (*axes, "Repeat", *(name for _, name in metric_headings), "Window"),
    )
    rows = tuple(
        row_of_cells(
            result.workload,
            *((titles.get(result.configuration, DASH),) if titles else ()),
            verdict_cell(result.verdict.level, anchors.get(result.key)),
            *((steadiness_text(result) or DASH,) if steady else ()),
            *(str(dict(result.axis_values).get(axis, DASH)) for axis in axes),
            str(result.repeat),
            *(
                metric_value_text(result.metrics.get(key), is_rate_unit_omitted=True)
                for key, _ in metric_headings
            ),
            format_duration_s(result.window_s) if result.window_s else DASH,
        )
        for result in _select_runs_for_rows(results, max_rows)
    )
    hidden = len(results) - len(rows)
    if hidden:
        note = f"{counted_noun(hidden, 'more run')}: iolab export lists them all"
        rows = (*rows, (Cell(note), *[Cell("")] * (len(heads) - 1)))
    return Table(heading, heads, rows)


def _select_runs_for_rows(results: Sequence[RunResult], max_rows: int) -> list[RunResult]:
    """As many as get a row, in their order; what is not valid is never left out for what is."""
    if len(results) <= max_rows:
        return list(results)
    ranked = sorted(results, key=lambda result: result.verdict.level is VerdictLevel.VALID)[
        :max_rows
    ]
    kept = {result.key for result in ranked}
    return [result for result in results if result.key in kept]


def io_metric_keys_and_headings(metrics: Sequence[Mapping[str, Metric]]) -> list[tuple[str, str]]:
    """Rates and latencies, reads and writes apart where any does both; then what is declared."""
    mixed = any(
        _metric_value_or_zero(metric, "read_iops") and _metric_value_or_zero(metric, "write_iops")
        for metric in metrics
    )
    shown = [
        (key, heading)
        for key, heading in SHOWN_METRICS
        if mixed or key not in {"read_iops", "write_iops"}
    ]
    if any(key in metric for metric in metrics for key, _ in SERVICE_METRICS):
        shown += SERVICE_METRICS
    return shown + column_metric_keys_and_labels(metrics)


def host_metrics_table(result: RunResult, metric_headings: Sequence[tuple[str, str]]) -> Table:
    """Each host's share of a run, in the order of its hosts.

    `metric_headings` as in `runs_table`.
    """
    rows = tuple(
        row_of_cells(
            host.name,
            *(
                metric_value_text(host.metrics.get(key), is_rate_unit_omitted=True)
                for key, _ in metric_headings
            ),
            result.verdict.level,
        )
        for host in result.hosts
    )
    heads = text_and_number_columns(
        ("Host",), tuple(heading for _, heading in metric_headings), ("Verdict",)
    )
    return Table("Each host's share", heads, rows)


def passed_checks_text(verdict: Verdict) -> str:
    """How many checks looked, and which of them do not object, in one line."""
    fine = (
        f" No objection by {', '.join(verdict.passed_check_codes)}."
        if verdict.passed_check_codes
        else ""
    )
    return f"{verdict.judged_check_count_text}{fine}"


def objections_table(result: RunResult) -> Table:
    """What objects to a run, worst first, with its evidence."""
    cells = tuple(
        row_of_cells(
            objection.level, objection.code, objection.message, evidence_text(objection.evidence)
        )
        for objection in result.verdict.objections
        if objection.level is not None
    )
    return Table(
        "Objections",
        text_and_number_columns(("Verdict", "Check", "What it says", "Evidence")),
        cells,
    )


def evidence_text(evidence: Evidence) -> str:
    """A check's evidence in one line: `name = value` with large numbers grouped."""
    return " · ".join(f"{name} = {_evidence_value_text(value)}" for name, value in evidence.items())


def _evidence_value_text(value: object) -> str:
    if value is None:
        return "unknown"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int):
        return f"{value:,}"
    if isinstance(value, float):
        return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.4g}"
    return str(value)


def run_storage_location_text(brief: Brief, result: RunResult) -> str:
    """Where a run is stored, in words: its session, its folder in that."""
    trace = brief.session_union.run_source(result.key)
    ids: Iterator[str] = (
        f"{member.label} ({member.session.id})"
        for member in brief.session_union.members
        if member.label == trace.label
    )
    return f"Session {next(ids, brief.session.id)}, {trace.run_folder}"


def slowest_and_fastest_hosts_table(
    load_report: LoadReport, result: RunResult, workload: Workload
) -> Table:
    """Each host's share of a run; of a large fleet the slowest and the fastest."""
    table = host_metrics_table(
        result, load_report.metric_keys_and_headings([host.metrics for host in result.hosts])
    )
    return table_without_middle_hosts(
        table, result, load_report.host_ranking_metric_key(result, workload)
    )


def table_without_middle_hosts(table: Table, result: RunResult, metric_key: str) -> Table:
    """The table, whose rows are the result's hosts in their order, without the middle of many."""
    if len(result.hosts) <= HOSTS_SHOWN:
        return table
    ordered = sorted(result.hosts, key=lambda host: _metric_value_or_zero(host.metrics, metric_key))
    half = HOSTS_SHOWN // 2
    rows = dict(zip((host.name for host in result.hosts), table.rows, strict=True))
    hidden = counted_noun(len(ordered) - 2 * half, "host")
    gap = row_of_cells(f"{hidden} between", *("" for _ in table.columns[1:]))
    kept = (
        *(rows[host.name] for host in ordered[:half]),
        gap,
        *(rows[host.name] for host in ordered[-half:]),
    )
    return Table(table.title, table.columns, kept)


def evenness_rows(evenness: HostEvenness) -> tuple[tuple[str, str], ...]:
    """The spread in words, one row a figure."""
    slowest, fastest, ratio, index, first_apart, last_apart, together = _evenness_texts(evenness)
    drift = DASH if evenness.drift_ns is None else f"{evenness.drift_ns / 1e6:+.2f} ms"
    return (
        ("slowest", slowest),
        ("fastest", fastest),
        ("fastest over slowest", ratio),
        ("Jain's index", index),
        ("first I/Os apart", first_apart),
        ("last I/Os apart", last_apart),
        ("all ran together", f"{together} of the time"),
        ("first done after", format_duration_s(evenness.first_done_s)),
        ("last done after", format_duration_s(evenness.last_done_s)),
        ("largest clock drift", drift),
    )


def evenness_table(evenness: HostEvenness) -> Table:
    """The same as a table."""
    return Table(
        "How alike and how much together",
        text_and_number_columns(("Of the fleet", "Value")),
        tuple(row_of_cells(*pair) for pair in evenness_rows(evenness)),
    )


def phase_evenness_table(
    evenness_by_phase: Mapping[str, HostEvenness], title_by_phase: Mapping[str, str]
) -> Table:
    """The same of parts of a run that follow each other, one row a part under its name."""
    numbers = ("Fastest over slowest", "Jain's index", "First apart", "Last apart")
    heads = text_and_number_columns(
        ("Operation", "Slowest", "Fastest"), (*numbers, "All worked together")
    )
    rows = tuple(
        row_of_cells(operation, *_evenness_texts(evenness_by_phase[key]))
        for key, operation in title_by_phase.items()
        if key in evenness_by_phase
    )
    return Table("How alike and how much together, phase by phase", heads, rows)


def evenness_tables(load_report: LoadReport, result: RunResult) -> tuple[Table, ...]:
    """The spread of a result's hosts as it is known: of the run, or of each of its phases."""
    tables = () if result.spread is None else (evenness_table(result.spread),)
    if not result.operation_spreads:
        return tables
    return (
        *tables,
        phase_evenness_table(result.operation_spreads, load_report.phase_names_by_spread_key),
    )


class _EvennessTexts(NamedTuple):
    """The spread of a run's hosts in words."""

    slowest: str
    fastest: str
    fastest_over_slowest: str
    jain_index: str
    first_ios_apart: str
    last_ios_apart: str
    share_together: str


def _evenness_texts(evenness: HostEvenness) -> _EvennessTexts:
    ratio = DASH if evenness.max_over_min is None else f"{evenness.max_over_min:.2f}"
    return _EvennessTexts(
        evenness.slowest,
        evenness.fastest,
        ratio,
        f"{evenness.jain:.3f}",
        f"{evenness.start_skew_ns / 1e6:.1f} ms",
        f"{evenness.end_skew_ns / 1e6:.1f} ms",
        percent_text(evenness.overlap),
    )


def byte_balance_table(balance: ByteBalance) -> Table:
    """What clients claim, what follows for the disks, and what disks and ports moved."""
    rows: list[tuple[str, float | None, float | None, float | None, float | None]] = [
        ("claimed by clients", balance.claimed_read_bytes, balance.claimed_write_bytes, None, None),
        (
            "expected of disks",
            balance.expected_read_bytes,
            balance.expected_write_bytes,
            None,
            None,
        ),
        ("moved by disks", balance.moved_read_bytes, balance.moved_write_bytes, None, None),
    ]
    for node in sorted(balance.node_bytes, key=_moved_bytes, reverse=True)[:HOSTS_SHOWN]:
        moved = (node.read_bytes, node.write_bytes, node.sent_bytes, node.received_bytes)
        rows.append((node.host, *moved))
    return Table(
        "Account of bytes",
        text_and_number_columns(("Of",), ("Read", "Written", "Ports out", "Ports in")),
        tuple(row_of_cells(name, *map(_size_text, amounts)) for name, *amounts in rows),
    )


def _metric_value_or_zero(metrics: Mapping[str, Metric], metric_key: str) -> float:
    metric = metrics.get(metric_key)
    return 0.0 if metric is None or metric.value is None else metric.value


def _moved_bytes(node: StorageNodeBytes) -> int:
    return (node.read_bytes or 0) + (node.write_bytes or 0)


def _size_text(size_bytes: float | None) -> str:
    return DASH if size_bytes is None else format_bytes(size_bytes)


class EngineCommand(Record):
    """How the engine ran on these hosts, which had it alike; `hosts_text` names them."""

    hosts_text: str
    argv: tuple[str, ...]
    job_file: str


class RunSection(Record):
    """One run's place in the report: charts for some, checks with evidence for all."""

    anchor: str
    result: RunResult
    summary_text: str
    storage_text: str
    charts: tuple[Chart, ...]
    hosts_table: Table | None
    fleet_tables: tuple[Table, ...]
    folded_tables: tuple[Table, ...]
    commands: tuple[EngineCommand, ...]


def sections_of_runs(brief: Brief, cited_anchors: Iterable[str] = ()) -> tuple[RunSection, ...]:
    """Every run, those with charts first; of very many those that `_select_detailed_runs` chooses.

    `cited_anchors` are the anchors that sentences lead to.
    """
    return tuple(
        _section_of_run(brief, result) for result in _select_detailed_runs(brief, cited_anchors)
    )


def _select_detailed_runs(brief: Brief, cited_anchors: Iterable[str]) -> list[RunResult]:
    """The runs with charts first, in the order in which they were chosen; then the others.

    Of more than `RUNS_SHOWN` those that sentences lead to, then the worst verdicts, then the first.
    """
    by_key = {result.key: result for result in brief.results}
    drawn = [
        key
        for key, chart_data in brief.chart_data_by_run.items()
        if chart_data.timeline is not None
    ]
    order = list(dict.fromkeys([*drawn, *by_key]))
    if len(order) > RUNS_SHOWN:
        keys = {anchor: key for key, anchor in brief.run_anchors.items()}
        worst = sorted(by_key, key=lambda key: -by_key[key].verdict.level.rank)
        wanted = [*drawn, *(keys[anchor] for anchor in cited_anchors if anchor in keys), *worst]
        kept = set(list(dict.fromkeys(wanted))[:RUNS_SHOWN])
        order = [key for key in order if key in kept]
    return [by_key[key] for key in order]


def _section_of_run(brief: Brief, result: RunResult) -> RunSection:
    from iolab.report.charts.run import heat_map_chart, host_rates_chart, timeline_chart

    run_key = result.key
    color = brief.series_styles[result.configuration].color
    kind, hosts = brief.kinds.report_of_result(result), brief.kinds.booted_hosts
    workload = brief.study.workload(result.workload)
    chart_data = brief.chart_data_by_run.get(run_key)
    charts: list[Chart] = []
    if chart_data is not None and chart_data.timeline is not None:
        name = result_run_name_text(result)
        charts.append(timeline_chart(name, chart_data.timeline, color, kind.operation_noun))
        if chart_data.heat_map is not None:
            charts.append(heat_map_chart(name, chart_data.heat_map, color))
        curves = kind.latency_distribution_chart(name, chart_data, color)
        charts += [curves] if curves else []
        if kind.is_single_rate:
            key = kind.host_ranking_metric_key(result, workload)
            strip = host_rates_chart(
                name, result, key, color, slowest_and_fastest_hosts_table(kind, result, workload)
            )
            charts += [strip] if strip else []
    checks = counted_noun(len(result.verdict.checks), "check")
    objected = len(result.verdict.objections)
    objections = f"{counted_noun(objected, 'objection')}" if objected else "no objection"
    return RunSection(
        anchor=brief.run_anchors[run_key],
        result=result,
        storage_text=run_storage_location_text(brief, result),
        summary_text=f"{kind.run_summary_text(result, workload)}, {checks}, {objections}",
        charts=tuple(charts),
        hosts_table=slowest_and_fastest_hosts_table(kind, result, workload)
        if len(result.hosts) > 1
        else None,
        fleet_tables=(
            *hosts.node_tables_of_run(result),
            *_evenness_and_byte_balance_tables(kind, result, chart_data),
            *kind.detail_tables_of_run(result),
        ),
        folded_tables=(
            *_slow_ios_tables(chart_data),
            *kind.engine_tables(brief, result),
            *hosts.guest_tables_of_run(brief, result),
        ),
        commands=_distinct_engine_commands(brief.host_runs.get(run_key, ())) if charts else (),
    )


def _evenness_and_byte_balance_tables(
    load_report: LoadReport, result: RunResult, chart_data: RunChartData | None
) -> tuple[Table, ...]:
    """How alike and how much together the hosts ran; the balance of bytes."""
    spread = evenness_tables(load_report, result)
    balance = chart_data.byte_balance if chart_data is not None else None
    return spread if balance is None else (*spread, byte_balance_table(balance))


def _slow_ios_tables(chart_data: RunChartData | None) -> tuple[Table, ...]:
    """The slowest I/Os, where they were requested."""
    if chart_data is None or not chart_data.slow_ios:
        return ()
    return (slow_ios_table("Slowest I/Os", chart_data.slow_ios),)


def _distinct_engine_commands(hosts: Sequence[HostRun]) -> tuple[EngineCommand, ...]:
    """The commands with their job files, those that hosts have alike once."""
    by_command: dict[tuple[tuple[str, ...], str], list[str]] = {}
    for host in hosts:
        by_command.setdefault((host.argv, host.job_file), []).append(host.host)
    return tuple(
        EngineCommand(list_text(names, NAMES_SHOWN), argv, job_file)
        for (argv, job_file), names in by_command.items()
    )


def run_charts_note(brief: Brief) -> str:
    """Which runs have charts."""
    drawn = sum(
        1 for chart_data in brief.chart_data_by_run.values() if chart_data.timeline is not None
    )
    if len(brief.results) > RUNS_SHOWN:
        return (
            f"{RUNS_SHOWN} of {counted_noun(len(brief.results), 'run')}: {drawn} headline runs "
            "and those "
            "with the worst verdicts with their charts; those that sentences lead to, other runs "
            "that are not valid, and the first of the others with their checks. Of each other run "
            "iolab show tells the same, and iolab export lists them all."
        )
    if drawn >= len(brief.results):
        return "Each run with its series, its latencies and its checks."
    return (
        f"The headline runs and those with the worst verdicts, {drawn} in all, with their charts; "
        "the others with their checks."
    )
