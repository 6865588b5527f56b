"""A workload on a key-value store on the page: its cards, its charts, what was measured beside."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Final

from msgspec.structs import replace

from iolab.analysis.findings import CLOSE_RATIO, first_knee_load, outlying_repeat
from iolab.analysis.metrics import ios_needed_for_percentile
from iolab.analysis.pairs import (
    ComparedMetric,
    ConfigurationGains,
    LargestGain,
    compare_configurations,
)
from iolab.analysis.points import PointSummary
from iolab.core.metric import RunResult
from iolab.core.study import Study
from iolab.loads.keyvalue.evidence import (
    HostRunsAndFacts,
    device_io_table,
    rocksdb_statistics_table,
)
from iolab.loads.keyvalue.metrics import KEY_PERCENTILES, WHOLE_OPERATIONS_RATE_KEY
from iolab.loads.keyvalue.tables import (
    WORDS,
    PointGroupOfAllConfigurations,
    best_point_headlines_of_group,
    headline_latency_operation,
    intended_latency_table,
    known_latency_names_and_texts,
    metric_value,
    operations_by_point_table,
    operations_with_latency,
    operations_with_rate,
    percentile_bounds_table,
    plural_operation_text,
    published_or_highest_percentile_name,
    published_percentile_name,
)
from iolab.loads.keyvalue.workload import READ_RANDOM, DbBenchJob, KeyOperation
from iolab.record import Record
from iolab.report.best import BestFigure, PointFigures, build_best_figure, operation_latencies_text
from iolab.report.charts.chart import Chart, ChartGroup, SeriesStyles
from iolab.report.charts.lines import (
    ChartLine,
    ChartQuantity,
    latency_chart,
    lines_sentence,
    quantity_chart,
    rate_and_latency_chart,
    rate_quantity,
    remaining_lines_in_groups,
)
from iolab.report.charts.tradeoff import latency_tradeoff_chart
from iolab.report.numbers import (
    DASH,
    axis_values_text,
    json_object_of_record,
    metric_value_text,
    range_text,
    ratio_text,
    value_text,
)
from iolab.report.phrases import metric_column_name
from iolab.report.table import Cell, Table, row_of_cells, text_and_number_columns, verdict_cell
from iolab.text import counted_noun, percent_text

GAIN_NOTE: Final = (
    "A gain is more operations a second or less latency than the baseline has in the same cell: "
    "+40 % of a latency is 40 % less of it. Intervals are of 95 %."
)

LARGEST_NOTE: Final = (
    "The largest of several gains is large by chance too: its interval holds for all cells of its "
    "row at once, and is wider than that of its cell alone."
)

FASTER_THAN_ALONE_TEXT: Final = "{} the {} of reads at this load without a writer, {}"
"""Beside a rate of readers with a writer that is higher than without: how many times that rate."""

NOISE_TEXT: Final = "which cannot help: noise"
SINGLE_RUNS_NOISE_TEXT: Final = f"{NOISE_TEXT} of single runs"

_SERVICE_NOTE: Final = (
    "Service: from when an operation was sent. Since due: from when the rate wanted it sent, so "
    "that what had to wait counts."
)

_BOUNDS_NOTE: Final = (
    "db_bench counts latencies of the whole run, warm-up included, in bins of its own that are up "
    "to half as wide as they are high; nothing finer was recorded. A percentile elsewhere is read "
    "off a straight line through its bin, as db_bench prints it."
)

_DEVICE_NOTE: Final = (
    "Counted by the kernel over the whole run, warm-up included, for the target’s own device."
)

_STORE_NOTE: Final = (
    "Counted by RocksDB itself over the whole run, warm-up included; its percentiles are read off "
    "straight lines through wide bins. Writes of 80/20 and other mixed threads are among them."
)


def compare_configurations_in_groups(
    study: Study, groups: Sequence[PointGroupOfAllConfigurations]
) -> tuple[ConfigurationGains, ...]:
    """Each further configuration against the first, over all cells of all groups.

    Of each cell all operations, and of its main operation the mean, p99 and what is published.
    """
    points: list[PointSummary] = [point for group in groups for point in group.points]
    if len({point.key.configuration for point in points}) < 2:
        return ()
    main = headline_latency_operation([point.metrics for point in points])
    names = dict.fromkeys(
        ("mean", "p99", *(published_percentile_name(group.workload.job) for group in groups))
    )
    return compare_configurations(
        study, points, (WHOLE_OPERATIONS_RATE_KEY, *(main.latency_key(name) for name in names))
    )


def gains_of_group(
    gains: Sequence[ConfigurationGains], point_group: PointGroupOfAllConfigurations
) -> tuple[ConfigurationGains, ...]:
    """The cells of one group."""
    places = {(point.key.workload, point.key.axis_values) for point in point_group.points}
    return tuple(
        replace(
            pair,
            cells=tuple(cell for cell in pair.cells if (cell.workload, cell.axis_values) in places),
            skipped=tuple(
                skip for skip in pair.skipped if (skip.workload, skip.axis_values) in places
            ),
        )
        for pair in gains
    )


def percent_interval_text(low: float | None, high: float | None) -> str:
    """`[+21 %, +29 %]`; a dash where none is known."""
    if low is None or high is None:
        return DASH
    return f"[{percent_text(low, is_signed=True)}, {percent_text(high, is_signed=True)}]"


def gain_point_label(gain: ComparedMetric, point_group: PointGroupOfAllConfigurations) -> str:
    """The cell by what varies within its group."""
    own = tuple(pair for pair in gain.axis_values if pair not in point_group.fixed_axis_values)
    return axis_values_text(own) or DASH


def gains_table(
    gains: Sequence[ConfigurationGains],
    point_group: PointGroupOfAllConfigurations,
    styles: SeriesStyles,
) -> Table | None:
    """Every cell of a group with both values; None where nothing is compared."""
    several = len(gains) > 1
    rows = tuple(
        row_of_cells(
            *((styles[pair.candidate].title,) if several else ()),
            gain_point_label(cell, point_group),
            metric_column_name(cell.metric),
            metric_value_text(cell.baseline),
            metric_value_text(cell.candidate),
            percent_text(cell.relative_gain, is_signed=True),
            percent_interval_text(*(cell.relative_gain_interval or (None, None))),
            f"{cell.improvement_factor:.2f}",
            cell.comparison.verdict.value,
            cell.verdict_level,
        )
        for pair in gains
        for cell in pair.cells
    )
    if not rows:
        return None
    name = styles[gains[0].baseline].title
    other = "Candidate’s" if several else styles[gains[0].candidate].title
    texts = (*(("Candidate",) if several else ()), "Point", "Metric")
    numbers = (name, other, "Gain", "95 % interval", "Factor")
    heads = text_and_number_columns(texts, numbers, ("Says", "Verdict"))
    return Table(f"Gain over {name}, cell by cell", heads, rows)


def skipped_comparisons_sentence(gains: Sequence[ConfigurationGains]) -> str:
    """How many comparisons could not be made, and why the first one could not."""
    skipped = [skip for pair in gains for skip in pair.skipped]
    if not skipped:
        return ""
    return (
        f" Not compared: {counted_noun(len(skipped), 'value')}, the first since "
        f"{skipped[0].reason}."
    )


def largest_gain(
    gains: Sequence[ConfigurationGains], metric_key: str
) -> tuple[ConfigurationGains, LargestGain] | None:
    """The largest gain of a metric over all candidates, and whose it is."""
    best = [(pair, gain) for pair in gains if (gain := pair.largest_gain(metric_key)) is not None]
    return max(best, key=lambda pair: pair[1].cell.relative_gain, default=None)


def largest_gains_table(
    groups: Sequence[PointGroupOfAllConfigurations],
    gains: Sequence[ConfigurationGains],
    styles: SeriesStyles,
) -> Table | None:
    """For each group, candidate and metric the largest gain with its cell."""
    if not gains:
        return None
    several = len(gains) > 1
    rows = tuple(
        _largest_gain_row(largest, styles, has_candidate_column=several)
        for largest in largest_gains(groups, gains)
    )
    if not rows:
        return None
    texts = ("Workload", *(("Candidate",) if several else ()), "Of")
    numbers = ("Largest gain", "95 % interval", "Factor", "In its unit")
    heads = text_and_number_columns(texts, numbers, ("At", "Says", "Verdict"))
    baseline, candidate = styles[gains[0].baseline].title, styles[gains[0].candidate].title
    title = f"Largest gains over {baseline}" if several else f"{candidate} against {baseline}"
    return Table(title, heads, rows)


class GroupLargestGain(Record):
    """The largest gain of a candidate in a metric over a group of points.

    `largest_gain` is None where it has none; `point_label` names the point where it is.
    """

    point_group: PointGroupOfAllConfigurations
    candidate: str
    metric_name: str
    point_label: str
    largest_gain: LargestGain | None


def largest_gains(
    groups: Sequence[PointGroupOfAllConfigurations], gains: Sequence[ConfigurationGains]
) -> list[GroupLargestGain]:
    """The largest gain for each group, candidate and metric."""
    largest = []
    for group in groups:
        for pair in gains_of_group(gains, group):
            for metric in pair.metrics:
                best = pair.largest_gain(metric)
                at = DASH if best is None else gain_point_label(best.cell, group)
                largest.append(
                    GroupLargestGain(group, pair.candidate, metric_column_name(metric), at, best)
                )
    return largest


def _largest_gain_row(
    group_largest_gain: GroupLargestGain, styles: SeriesStyles, *, has_candidate_column: bool
) -> tuple[Cell, ...]:
    start = row_of_cells(
        group_largest_gain.point_group.title,
        *((styles[group_largest_gain.candidate].title,) if has_candidate_column else ()),
        group_largest_gain.metric_name,
    )
    best = group_largest_gain.largest_gain
    if best is None:
        rest = row_of_cells(*([DASH] * 5))
        return (*start, Cell("no gain in any cell"), *rest, Cell(DASH))
    gain = best.cell
    return (
        *start,
        *row_of_cells(
            percent_text(gain.relative_gain, is_signed=True),
            percent_interval_text(best.low, best.high),
            f"{gain.improvement_factor:.2f}",
        ),
        Cell(signed_difference_text(gain)),
        Cell(f"{group_largest_gain.point_label} (of {counted_noun(best.cell_count, 'cell')})"),
        Cell(gain.comparison.verdict.value),
        verdict_cell(gain.verdict_level),
    )


def signed_difference_text(gain: ComparedMetric) -> str:
    """The candidate's value less the baseline's, with its sign."""
    sign = "+" if gain.difference >= 0 else "−"
    return f"{sign}{metric_value_text(replace(gain.candidate, value=abs(gain.difference)))}"


def largest_rate_gain_sentence(
    gains: Sequence[ConfigurationGains],
    point_group: PointGroupOfAllConfigurations,
    styles: SeriesStyles,
) -> str:
    """The largest gain in operations a second with its cell and what it says; empty for none."""
    best = largest_gain(gains, WHOLE_OPERATIONS_RATE_KEY)
    if best is None:
        return ""
    pair, largest = best
    gain, low = largest.cell, largest.low
    interval = "" if low is None else f" {percent_interval_text(low, largest.high)}"
    names = f"{styles[pair.candidate].title} over {styles[pair.baseline].title}"
    return (
        f" Largest gain of {names}: "
        f"{percent_text(gain.relative_gain, is_signed=True)}{interval} at "
        f"{gain_point_label(gain, point_group)}, {gain.comparison.verdict.value}."
    )


def gains_document(gains: Sequence[ConfigurationGains]) -> list[dict[str, Any]]:
    """The gains as JSON has them."""
    return [
        {
            "baseline": pair.baseline,
            "candidate": pair.candidate,
            "cells": [_compared_metric_document(cell) for cell in pair.cells],
            "largest": [
                _largest_gain_document(best)
                for metric in pair.metrics
                if (best := pair.largest_gain(metric)) is not None
            ],
            "skipped": [
                {"workload": skip.workload, "axis": dict(skip.axis_values), "reason": skip.reason}
                for skip in pair.skipped
            ],
        }
        for pair in gains
    ]


def _compared_metric_document(compared_metric: ComparedMetric) -> dict[str, Any]:
    low, high = compared_metric.relative_gain_interval or (None, None)
    return {
        "workload": compared_metric.workload,
        "axis": dict(compared_metric.axis_values),
        "metric": compared_metric.metric,
        "baseline": json_object_of_record(compared_metric.baseline),
        "candidate": json_object_of_record(compared_metric.candidate),
        "gain": compared_metric.relative_gain,
        "low": low,
        "high": high,
        "message": compared_metric.comparison.verdict.value,
        "level": compared_metric.verdict_level.value,
    }


def _largest_gain_document(largest_gain: LargestGain) -> dict[str, Any]:
    cell = largest_gain.cell
    return {
        "workload": cell.workload,
        "axis": dict(cell.axis_values),
        "metric": cell.metric,
        "gain": cell.relative_gain,
        "low": largest_gain.low,
        "high": largest_gain.high,
        "cells": largest_gain.cell_count,
    }


def key_value_best_figures(
    groups: Sequence[PointGroupOfAllConfigurations], study: Study
) -> tuple[BestFigure, ...]:
    """The most operations a second of each group and configuration, with its main latencies.

    Readers beside a writer that are faster than the same readers alone are told as noise, unless
    one repeat of these is far from the others: then that is told.
    """
    alone = {
        (point.key.configuration, point.key.axis_values): point
        for group in groups
        if isinstance(group.workload.job, DbBenchJob) and group.workload.job.workload == READ_RANDOM
        for point in group.points
    }
    found = []
    for group in groups:
        job = group.workload.job
        has_writer = isinstance(job, DbBenchJob) and job.has_writer
        for headline in best_point_headlines_of_group(group, study):
            texts = (
                tuple(_mean_and_tail_names_and_texts(headline.best, group)) if headline.best else ()
            )
            figure = build_best_figure(headline, texts)
            reads = alone.get((figure.configuration, figure.axis_values)) if has_writer else None
            found.append(
                figure if reads is None else _with_doubt_if_faster_than_reads_alone(figure, reads)
            )
    return tuple(found)


def _with_doubt_if_faster_than_reads_alone(
    figure: BestFigure, reads_alone: PointSummary
) -> BestFigure:
    """A rate of readers beside a writer, with what speaks against it by that of the same alone."""
    value, rate = figure.value.value, reads_alone.metric_value(WHOLE_OPERATIONS_RATE_KEY)
    if not value or not rate or value <= CLOSE_RATIO * rate:
        return figure
    unit = figure.value.unit

    def text_with(reason: str) -> str:
        ratio = ratio_text(value / rate)
        return FASTER_THAN_ALONE_TEXT.format(ratio, value_text(rate, unit), reason)

    outlier = outlying_repeat(reads_alone.results, WHOLE_OPERATIONS_RATE_KEY)
    if outlier is not None and value <= CLOSE_RATIO * outlier.others_high:
        low, high = (value_text(end, unit) for end in (outlier.others_low, outlier.others_high))
        own = f"repeat {outlier.repeat} ({value_text(outlier.value, unit)})"
        others = range_text(low, high)
        return replace(
            figure, doubt_text=text_with(f"of which {own} is far from the others ({others})")
        )
    are_single = figure.value.n == 1 and len(reads_alone.results) == 1
    return replace(
        figure, noise_text=text_with(SINGLE_RUNS_NOISE_TEXT if are_single else NOISE_TEXT)
    )


def _mean_and_tail_names_and_texts(
    best_point: PointFigures, point_group: PointGroupOfAllConfigurations
) -> Iterator[tuple[str, str]]:
    """Mean and tail of the operations that are counted, beside each other where there are more."""
    main = headline_latency_operation([best_point.metrics])
    tail = published_or_highest_percentile_name(
        point_group.workload.job, [best_point.metrics], main
    )
    mixed = [
        operation
        for operation in operations_with_rate([best_point.metrics])
        if operation in operations_with_latency([best_point.metrics])
    ]
    if len(mixed) < 2:
        yield from known_latency_names_and_texts(best_point.metrics, main, ("mean", tail))
        return
    for name in ("mean", tail):
        per_operation = (
            list(known_latency_names_and_texts(best_point.metrics, operation, (name,)))
            for operation in mixed
        )
        parts = [
            (operation.display_name, latencies[0][1])
            for operation, latencies in zip(mixed, per_operation, strict=True)
            if latencies
        ]
        if parts:
            yield WORDS[name], operation_latencies_text(parts)


def key_value_charts(
    point_group: PointGroupOfAllConfigurations,
    study: Study,
    host_runs: HostRunsAndFacts,
    styles: SeriesStyles,
    gains: Sequence[ConfigurationGains],
) -> ChartGroup | None:
    """The group's charts, and under them what each operation took and what devices did."""
    if not any(
        metric_value(point.metrics, WHOLE_OPERATIONS_RATE_KEY) is not None
        for point in point_group.points
    ):
        return None
    own = gains_of_group(gains, point_group)
    lines = configuration_chart_lines(point_group, styles)
    figures = (
        tuple(_rate_and_latency_charts(point_group, lines, styles, own))
        if point_group.varied_axis_name
        else ()
    )
    further = (
        list(_tradeoff_and_other_operation_charts(point_group, lines))
        if point_group.varied_axis_name
        else []
    )
    for others in (
        remaining_lines_in_groups(lines, point_group.workload.rate_metric)
        if point_group.varied_axis_name
        else ()
    ):
        further += [
            *_rate_and_latency_charts(point_group, others, styles, own),
            *_tradeoff_and_other_operation_charts(point_group, others),
        ]
    tables = (
        *_gain_table_with_note(point_group, styles, own),
        *_detail_tables_with_notes(point_group, study, host_runs, styles),
    )
    return ChartGroup(
        point_group.title, figures, detail_tables_with_notes=tables, appendix_charts=tuple(further)
    )


def _gain_table_with_note(
    point_group: PointGroupOfAllConfigurations,
    styles: SeriesStyles,
    gains: Sequence[ConfigurationGains],
) -> Iterator[tuple[Table, str]]:
    table = gains_table(gains, point_group, styles)
    if table is not None:
        yield table, f"{GAIN_NOTE}{skipped_comparisons_sentence(gains)}"


def configuration_chart_lines(
    point_group: PointGroupOfAllConfigurations, styles: SeriesStyles
) -> list[ChartLine]:
    """One line a configuration, in the study's order."""
    measured = {point.key.configuration for point in point_group.points}
    by_configuration = {
        name: [point for point in point_group.points if point.key.configuration == name]
        for name in styles
        if name in measured
    }
    return [
        ChartLine(
            styles[name].label,
            styles[name].color,
            (),
            tuple(points),
            knee=first_knee_load(
                points,
                point_group.workload.job,
                point_group.varied_axis_name,
                point_group.workload.headline_metric or WHOLE_OPERATIONS_RATE_KEY,
            ),
            title=styles[name].title,
        )
        for name, points in by_configuration.items()
    ]


def _rate_and_latency_charts(
    point_group: PointGroupOfAllConfigurations,
    lines: Sequence[ChartLine],
    styles: SeriesStyles,
    gains: Sequence[ConfigurationGains],
) -> Iterator[Chart]:
    """Rate and latency over the load."""
    axis = point_group.varied_axis_name
    metrics = [point.metrics for point in point_group.points]
    rate, main = (
        rate_quantity(point_group.workload.rate_metric),
        headline_latency_operation(metrics),
    )
    if main not in operations_with_latency(metrics):
        yield quantity_chart(point_group.title, axis, lines, rate)
        return
    tail = published_or_highest_percentile_name(point_group.workload.job, metrics, main)
    figure = rate_and_latency_chart(
        point_group.title,
        axis,
        lines,
        rate,
        _latency_chart_quantity(main, "mean"),
        _latency_chart_quantity(main, tail),
    )
    yield replace(
        figure, finding=figure.finding + largest_rate_gain_sentence(gains, point_group, styles)
    )


def _tradeoff_and_other_operation_charts(
    point_group: PointGroupOfAllConfigurations, lines: Sequence[ChartLine]
) -> Iterator[Chart]:
    """Latency against the rate, and other operations."""
    axis = point_group.varied_axis_name
    metrics = [point.metrics for point in point_group.points]
    main = headline_latency_operation(metrics)
    operations = [
        operation for operation in operations_with_latency(metrics) if not operation.is_intended
    ]
    if main in operations:
        yield from _tradeoff_charts(point_group, lines, main)
    for operation in operations:
        if operation is not main:
            tail = published_or_highest_percentile_name(
                point_group.workload.job, metrics, operation
            )
            pair = (
                _latency_chart_quantity(operation, "mean"),
                _latency_chart_quantity(operation, tail),
            )
            yield latency_chart(point_group.title, axis, lines, *pair)
    due = main.intended_variant
    if due is not None and due in operations_with_latency(metrics):
        yield _intended_latency_chart(point_group, lines, main, due)


def _tradeoff_charts(
    point_group: PointGroupOfAllConfigurations,
    lines: Sequence[ChartLine],
    main_latency_operation: KeyOperation,
) -> Iterator[Chart]:
    """Latency against performance: both latencies in one chart, or of several lines one each."""
    metrics = [point.metrics for point in point_group.points]
    tail = published_or_highest_percentile_name(
        point_group.workload.job, metrics, main_latency_operation
    )
    pair = (
        _latency_chart_quantity(main_latency_operation, "mean"),
        _latency_chart_quantity(main_latency_operation, tail, is_only_quantity=len(lines) > 1),
    )
    rate, note = (
        rate_quantity(point_group.workload.rate_metric),
        _missing_published_percentile_note(point_group, main_latency_operation, tail),
    )
    for part in (pair,) if len(lines) == 1 else tuple((quantity,) for quantity in pair):
        yield latency_tradeoff_chart(
            point_group.title,
            point_group.varied_axis_name,
            lines,
            rate,
            part,
            note=note if pair[1] in part else "",
        )


def _missing_published_percentile_note(
    point_group: PointGroupOfAllConfigurations,
    main_latency_operation: KeyOperation,
    drawn_percentile: str,
) -> str:
    """Why the percentile that the field publishes is not drawn; empty where it is."""
    wanted = published_percentile_name(point_group.workload.job)
    if wanted == drawn_percentile:
        return ""
    key, total = main_latency_operation.latency_key(wanted), len(point_group.points)
    measured = sum(metric_value(point.metrics, key) is not None for point in point_group.points)
    needed = ios_needed_for_percentile(dict(KEY_PERCENTILES)[wanted])
    return (
        f"{WORDS[wanted]} is known of {measured} of {counted_noun(total, 'point')}: "
        f"it takes {needed:,} {plural_operation_text(main_latency_operation).lower()}."
    )


def _intended_latency_chart(
    point_group: PointGroupOfAllConfigurations,
    lines: Sequence[ChartLine],
    service_operation: KeyOperation,
    intended_operation: KeyOperation,
) -> Chart:
    """The published percentile of service, and that since an operation was due."""
    tail = published_or_highest_percentile_name(
        point_group.workload.job,
        [point.metrics for point in point_group.points],
        intended_operation,
    )
    word = f"{service_operation.display_name} {WORDS[tail]}"
    service = ChartQuantity(service_operation.latency_key(tail), f"{word} of service", "service")
    since = ChartQuantity(intended_operation.latency_key(tail), "since due", "since due")
    figure = latency_chart(point_group.title, point_group.varied_axis_name, lines, service, since)
    finding = lines_sentence(point_group.varied_axis_name, lines, since)
    return replace(figure, finding=f"Of service: {figure.finding} Since due: {finding}")


def _latency_chart_quantity(
    operation: KeyOperation, statistic: str, *, is_only_quantity: bool = False
) -> ChartQuantity:
    word = WORDS[statistic]
    title = f"{operation.display_name} {word}" if statistic == "mean" or is_only_quantity else word
    return ChartQuantity(operation.latency_key(statistic), title, word)


def _detail_tables_with_notes(
    point_group: PointGroupOfAllConfigurations,
    study: Study,
    host_runs_and_facts: HostRunsAndFacts,
    styles: SeriesStyles,
) -> Iterator[tuple[Table, str]]:
    """What stands under a group's charts, with a note each."""
    several = len(study.configurations) > 1
    points = point_group.points

    def point_name(point: PointSummary) -> str:
        own = tuple(
            pair for pair in point.key.axis_values if pair not in point_group.fixed_axis_values
        )
        title = styles[point.key.configuration].title if several else ""
        return ", ".join(part for part in (title, axis_values_text(own)) if part) or DASH

    yield operations_by_point_table(points, point_name), ""
    due = intended_latency_table(points, point_name)
    if due is not None:
        yield due, _SERVICE_NOTE
    bounds = percentile_bounds_table(points, point_name)
    if bounds is not None:
        yield bounds, _BOUNDS_NOTE
    named = [(point_name(point), _first_run_of_point(point)) for point in points]
    device = device_io_table(named, host_runs_and_facts)
    if device is not None:
        yield device, _DEVICE_NOTE
    table = rocksdb_statistics_table(named, host_runs_and_facts.runs)
    if table is not None:
        yield table, _STORE_NOTE


def _first_run_of_point(point: PointSummary) -> RunResult:
    """The run that stands for a point."""
    return (point.results or point.left_out_results)[0]
