"""A workload on a key-value store on the page: its cards, its charts, what was measured beside."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import islice
from typing import Any, Final

from iolab.analysis.findings import knee_of
from iolab.analysis.metrics import ios_needed
from iolab.analysis.pairs import ComparedMetric, Gains, LargestGain, gains
from iolab.analysis.points import PointSummary
from iolab.core.metric import Result
from iolab.core.study import Study
from iolab.dataclass import dataclass
from iolab.loads.keyvalue.evidence import Hosts, device_table, store_table
from iolab.loads.keyvalue.metrics import KEY_PERCENTILES, WHOLE_KEY
from iolab.loads.keyvalue.tables import (
    WORDS,
    PointGroup,
    apart_table,
    bounds_table,
    counted,
    drawn_tail,
    due_table,
    group_headlines,
    known_latencies,
    main_operation,
    plural,
    tail_name,
    timed,
    value_of,
)
from iolab.loads.keyvalue.workload import KeyOperation
from iolab.report.best import BestFigure, PointFigures, best_figure, operation_latencies_text
from iolab.report.charts.chart import ChartGroup, Figure, SeriesStyles
from iolab.report.charts.lines import (
    ChartLine,
    ChartQuantity,
    latency_chart,
    lines_sentence,
    quantity_chart,
    rate_and_latency_chart,
    rate_quantity,
    remaining_line_groups,
)
from iolab.report.charts.tradeoff import latency_tradeoff_chart
from iolab.report.numbers import (
    DASH,
    axis_values_text,
    counted_noun,
    flat_record_document,
    metric_text,
)
from iolab.report.phrases import metric_column_name
from iolab.report.table import Cell, Table, columns_of, row_of, verdict_cell

GAIN_NOTE: Final = (
    "A gain is more operations a second or less latency than the baseline has in the same cell: "
    "+40 % of a latency is 40 % less of it. Intervals are of 95 %."
)

LARGEST_NOTE: Final = (
    "The largest of several gains is large by chance too: its interval holds for all cells of its "
    "row at once, and is wider than that of its cell alone."
)


def key_gains(study: Study, groups: Sequence[PointGroup]) -> tuple[Gains, ...]:
    """Each further configuration against the first, over all cells of all groups.

    Of each cell all operations, and of its main operation the mean, p99 and what is published.
    """
    points: list[PointSummary] = [point for group in groups for point in group.points]
    if len({point.key.configuration for point in points}) < 2:
        return ()
    main = main_operation([point.metrics for point in points])
    names = dict.fromkeys(("mean", "p99", *(tail_name(group.workload.job) for group in groups)))
    return gains(study, points, (WHOLE_KEY, *(main.latency_key(name) for name in names)))


def within(gained: Sequence[Gains], group: PointGroup) -> tuple[Gains, ...]:
    """The cells of one group."""
    places = {(point.key.workload, point.key.axis) for point in group.points}
    return tuple(
        replace(
            pair,
            cells=tuple(cell for cell in pair.cells if (cell.workload, cell.axis) in places),
            skipped=tuple(skip for skip in pair.skipped if (skip.workload, skip.axis) in places),
        )
        for pair in gained
    )


def share_text(share: float) -> str:
    """`+25 %`, with a digit more where it is small."""
    return f"{100 * share:+.0f} %" if abs(share) >= 0.1 else f"{100 * share:+.1f} %"


def interval_text(low: float | None, high: float | None) -> str:
    """`[+21 %, +29 %]`; a dash where none is known."""
    if low is None or high is None:
        return DASH
    return f"[{share_text(low)}, {share_text(high)}]"


def cell_name(gain: ComparedMetric, group: PointGroup) -> str:
    """The cell by what varies within its group."""
    own = tuple(pair for pair in gain.axis if pair not in group.others)
    return axis_values_text(own) or DASH


def gains_table(gained: Sequence[Gains], group: PointGroup, looks: SeriesStyles) -> Table | None:
    """Every cell of a group with both values; None where nothing is compared."""
    several = len(gained) > 1
    rows = tuple(
        row_of(
            *((looks[pair.candidate].title,) if several else ()),
            cell_name(cell, group),
            metric_column_name(cell.metric),
            metric_text(cell.baseline),
            metric_text(cell.candidate),
            share_text(cell.share),
            interval_text(*(cell.interval or (None, None))),
            f"{cell.factor:.2f}",
            cell.comparison.verdict.value,
            cell.level,
        )
        for pair in gained
        for cell in pair.cells
    )
    if not rows:
        return None
    name = looks[gained[0].baseline].title
    other = "Candidate’s" if several else looks[gained[0].candidate].title
    texts = (*(("Candidate",) if several else ()), "Point", "Metric")
    numbers = (name, other, "Gain", "95 % interval", "Factor")
    heads = columns_of(texts, numbers, ("Says", "Verdict"))
    return Table(f"Gain over {name}, cell by cell", heads, rows)


def skipped_note(gained: Sequence[Gains]) -> str:
    """How many comparisons could not be made, and why the first one could not."""
    skipped = [skip for pair in gained for skip in pair.skipped]
    if not skipped:
        return ""
    return (
        f" Not compared: {counted_noun(len(skipped), 'value')}, the first since "
        f"{skipped[0].reason}."
    )


def largest_of(gained: Sequence[Gains], metric: str) -> tuple[Gains, LargestGain] | None:
    """The largest gain of a metric over all candidates, and whose it is."""
    best = [(pair, gain) for pair in gained if (gain := pair.largest(metric)) is not None]
    return max(best, key=lambda pair: pair[1].gain.share, default=None)


def largest_table(
    groups: Sequence[PointGroup], gained: Sequence[Gains], looks: SeriesStyles
) -> Table | None:
    """For each group, candidate and metric the largest gain with its cell."""
    if not gained:
        return None
    several = len(gained) > 1
    rows = tuple(
        _largest_row(largest, looks, several=several) for largest in largest_gains(groups, gained)
    )
    if not rows:
        return None
    texts = ("Workload", *(("Candidate",) if several else ()), "Of")
    numbers = ("Largest gain", "95 % interval", "Factor", "In its unit")
    heads = columns_of(texts, numbers, ("At", "Says", "Verdict"))
    baseline, candidate = looks[gained[0].baseline].title, looks[gained[0].candidate].title
    title = f"Largest gains over {baseline}" if several else f"{candidate} against {baseline}"
    return Table(title, heads, rows)


@dataclass(frozen=True, slots=True)
class Largest:
    """The largest gain of a candidate in a metric over a group; `best` is None where it has none.

    `words` name the metric, `at` the cell.
    """

    group: PointGroup
    candidate: str
    words: str
    at: str
    best: LargestGain | None


def largest_gains(groups: Sequence[PointGroup], gained: Sequence[Gains]) -> list[Largest]:
    """The largest gain for each group, candidate and metric."""
    largest = []
    for group in groups:
        for pair in within(gained, group):
            for metric in pair.metrics:
                best = pair.largest(metric)
                at = DASH if best is None else cell_name(best.gain, group)
                largest.append(Largest(group, pair.candidate, metric_column_name(metric), at, best))
    return largest


def _largest_row(largest: Largest, looks: SeriesStyles, *, several: bool) -> tuple[Cell, ...]:
    start = row_of(
        largest.group.title, *((looks[largest.candidate].title,) if several else ()), largest.words
    )
    best = largest.best
    if best is None:
        rest = row_of(*([DASH] * 5))
        return (*start, Cell("no gain in any cell"), *rest, Cell(DASH))
    gain = best.gain
    return (
        *start,
        *row_of(share_text(gain.share), interval_text(best.low, best.high), f"{gain.factor:.2f}"),
        Cell(difference_text(gain)),
        Cell(f"{largest.at} (of {counted_noun(best.cells, 'cell')})"),
        Cell(gain.comparison.verdict.value),
        verdict_cell(gain.level),
    )


def difference_text(gain: ComparedMetric) -> str:
    """The candidate's value less the baseline's, with its sign."""
    sign = "+" if gain.difference >= 0 else "−"
    return f"{sign}{metric_text(replace(gain.candidate, value=abs(gain.difference)))}"


def gain_sentence(gained: Sequence[Gains], group: PointGroup, looks: SeriesStyles) -> str:
    """The largest gain in operations a second with its cell and what it says; empty for none."""
    best = largest_of(gained, WHOLE_KEY)
    if best is None:
        return ""
    pair, largest = best
    gain, low = largest.gain, largest.low
    interval = "" if low is None else f" {interval_text(low, largest.high)}"
    names = f"{looks[pair.candidate].title} over {looks[pair.baseline].title}"
    return (
        f" Largest gain of {names}: {share_text(gain.share)}{interval} at "
        f"{cell_name(gain, group)}, {gain.comparison.verdict.value}."
    )


def gains_document(gained: Sequence[Gains]) -> list[dict[str, Any]]:
    """The gains as JSON has them."""
    return [
        {
            "baseline": pair.baseline,
            "candidate": pair.candidate,
            "cells": [_cell_document(cell) for cell in pair.cells],
            "largest": [
                _largest_document(best)
                for metric in pair.metrics
                if (best := pair.largest(metric)) is not None
            ],
            "skipped": [
                {"workload": skip.workload, "axis": dict(skip.axis), "reason": skip.reason}
                for skip in pair.skipped
            ],
        }
        for pair in gained
    ]


def _cell_document(cell: ComparedMetric) -> dict[str, Any]:
    low, high = cell.interval or (None, None)
    return {
        "workload": cell.workload,
        "axis": dict(cell.axis),
        "metric": cell.metric,
        "baseline": flat_record_document(cell.baseline),
        "candidate": flat_record_document(cell.candidate),
        "gain": cell.share,
        "low": low,
        "high": high,
        "says": cell.comparison.verdict.value,
        "level": cell.level.value,
    }


def _largest_document(best: LargestGain) -> dict[str, Any]:
    cell = best.gain
    return {
        "workload": cell.workload,
        "axis": dict(cell.axis),
        "metric": cell.metric,
        "gain": cell.share,
        "low": best.low,
        "high": best.high,
        "cells": best.cells,
    }


UNIT: Final = "ops/s"

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


def key_figures(groups: Sequence[PointGroup], study: Study) -> tuple[BestFigure, ...]:
    """The most operations a second of each group and configuration, with its main latencies."""
    return tuple(
        best_figure(headline, tuple(_latencies(headline.best, group)) if headline.best else ())
        for group in groups
        for headline in group_headlines(group, study)
    )


def _latencies(best: PointFigures, group: PointGroup) -> Iterator[tuple[str, str]]:
    """Mean and tail of the operations that are counted, beside each other where there are more."""
    main = main_operation([best.metrics])
    tail = drawn_tail(group.workload.job, [best.metrics], main)
    mixed = [
        operation for operation in counted([best.metrics]) if operation in timed([best.metrics])
    ]
    if len(mixed) < 2:
        yield from known_latencies(best.metrics, main, ("mean", tail))
        return
    for name in ("mean", tail):
        per_operation = (
            list(known_latencies(best.metrics, operation, (name,))) for operation in mixed
        )
        parts = [
            (operation.word, latencies[0][1])
            for operation, latencies in zip(mixed, per_operation, strict=True)
            if latencies
        ]
        if parts:
            yield WORDS[name], operation_latencies_text(parts)


def key_charts(
    group: PointGroup,
    study: Study,
    host_runs: Hosts,
    looks: SeriesStyles,
    gained: Sequence[Gains],
) -> ChartGroup | None:
    """The group's charts, and under them what each operation took and what devices did."""
    if not any(value_of(point.metrics, WHOLE_KEY) is not None for point in group.points):
        return None
    own = within(gained, group)
    lines = lines_of(group, looks)
    figures = tuple(_figures(group, lines, looks, own)) if group.axis else ()
    further = list(_further(group, lines)) if group.axis else []
    for others in remaining_line_groups(lines, group.workload.rate) if group.axis else ():
        further += [*_figures(group, others, looks, own), *_further(group, others)]
    tables = (*_gains(group, looks, own), *_tables(group, study, host_runs, looks))
    return ChartGroup(group.title, figures, detail_tables=tables, appendix_figures=tuple(further))


def _gains(
    group: PointGroup, looks: SeriesStyles, gained: Sequence[Gains]
) -> Iterator[tuple[Table, str]]:
    table = gains_table(gained, group, looks)
    if table is not None:
        yield table, f"{GAIN_NOTE}{skipped_note(gained)}"


def lines_of(group: PointGroup, looks: SeriesStyles) -> list[ChartLine]:
    """One line a configuration, in the order in which they were measured."""
    by_configuration: dict[str, list[PointSummary]] = {}
    for point in group.points:
        by_configuration.setdefault(point.key.configuration, []).append(point)
    return [
        ChartLine(
            looks[name].label,
            looks[name].token,
            (),
            tuple(points),
            knee=knee_of(
                points, group.workload.job, group.axis, group.workload.metric or WHOLE_KEY
            ),
            title=looks[name].title,
        )
        for name, points in by_configuration.items()
    ]


def _figures(
    group: PointGroup,
    lines: Sequence[ChartLine],
    looks: SeriesStyles,
    gained: Sequence[Gains],
) -> Iterator[Figure]:
    """Rate and latency over the load, and one against the other."""
    axis = group.axis
    metrics = [point.metrics for point in group.points]
    rate, main = rate_quantity(group.workload.rate), main_operation(metrics)
    if main not in timed(metrics):
        yield quantity_chart(group.title, axis, lines, rate, UNIT)
        return
    tail = drawn_tail(group.workload.job, metrics, main)
    figure = rate_and_latency_chart(
        group.title, axis, lines, rate, _latency(main, "mean"), _latency(main, tail)
    )
    yield replace(figure, finding=figure.finding + gain_sentence(gained, group, looks))
    yield next(_tradeoffs(group, lines, main))


def _further(group: PointGroup, lines: Sequence[ChartLine]) -> Iterator[Figure]:
    """The tail against the rate where it has a chart of its own, and other operations."""
    axis = group.axis
    metrics = [point.metrics for point in group.points]
    main = main_operation(metrics)
    operations = [operation for operation in timed(metrics) if not operation.is_intended]
    if main in operations:
        yield from islice(_tradeoffs(group, lines, main), 1, None)
    for operation in operations:
        if operation is not main:
            tail = drawn_tail(group.workload.job, metrics, operation)
            pair = (_latency(operation, "mean"), _latency(operation, tail))
            yield latency_chart(group.title, axis, lines, *pair)
    due = main.intended
    if due is not None and due in timed(metrics):
        yield _due_figure(group, lines, main, due)


def _tradeoffs(
    group: PointGroup, lines: Sequence[ChartLine], main: KeyOperation
) -> Iterator[Figure]:
    """Latency against performance: both latencies in one chart, or of several lines one each."""
    metrics = [point.metrics for point in group.points]
    tail = drawn_tail(group.workload.job, metrics, main)
    pair = (_latency(main, "mean"), _latency(main, tail, alone=len(lines) > 1))
    rate, note = rate_quantity(group.workload.rate), _wanted(group, main, tail)
    for part in (pair,) if len(lines) == 1 else tuple((quantity,) for quantity in pair):
        yield latency_tradeoff_chart(
            group.title,
            group.axis,
            lines,
            rate,
            UNIT,
            part,
            note=note if pair[1] in part else "",
        )


def _wanted(group: PointGroup, main: KeyOperation, tail: str) -> str:
    """Why the percentile that the field publishes is not drawn; empty where it is."""
    wanted = tail_name(group.workload.job)
    if wanted == tail:
        return ""
    key, total = main.latency_key(wanted), len(group.points)
    measured = sum(value_of(point.metrics, key) is not None for point in group.points)
    needed = ios_needed(dict(KEY_PERCENTILES)[wanted])
    return (
        f"{WORDS[wanted]} is known of {measured} of {counted_noun(total, 'point')}: "
        f"it takes {needed:,} {plural(main).lower()}."
    )


def _due_figure(
    group: PointGroup, lines: Sequence[ChartLine], main: KeyOperation, due: KeyOperation
) -> Figure:
    """The published percentile of service, and that since an operation was due."""
    tail = drawn_tail(group.workload.job, [point.metrics for point in group.points], due)
    word = f"{main.word} {WORDS[tail]}"
    service = ChartQuantity(main.latency_key(tail), f"{word} of service", "service")
    since = ChartQuantity(due.latency_key(tail), "since due", "since due")
    figure = latency_chart(group.title, group.axis, lines, service, since)
    finding = lines_sentence(group.axis, lines, since)
    return replace(figure, finding=f"Of service: {figure.finding} Since due: {finding}")


def _latency(operation: KeyOperation, name: str, *, alone: bool = False) -> ChartQuantity:
    word = WORDS[name]
    title = f"{operation.word} {word}" if name == "mean" or alone else word
    return ChartQuantity(operation.latency_key(name), title, word)


def _tables(
    group: PointGroup, study: Study, hosts: Hosts, looks: SeriesStyles
) -> Iterator[tuple[Table, str]]:
    """What stands under a group's charts, with a note each."""
    several = len(study.configurations) > 1
    points = group.points

    def name(point: PointSummary) -> str:
        own = tuple(pair for pair in point.key.axis if pair not in group.others)
        title = looks[point.key.configuration].title if several else ""
        return ", ".join(part for part in (title, axis_values_text(own)) if part) or DASH

    yield apart_table(points, name), ""
    due = due_table(points, name)
    if due is not None:
        yield due, _SERVICE_NOTE
    bounds = bounds_table(points, name)
    if bounds is not None:
        yield bounds, _BOUNDS_NOTE
    named = [(name(point), _shown(point)) for point in points]
    device = device_table(named, hosts)
    if device is not None:
        yield device, _DEVICE_NOTE
    table = store_table(named, hosts.runs)
    if table is not None:
        yield table, _STORE_NOTE


def _shown(point: PointSummary) -> Result:
    """The run that stands for a point."""
    return (point.results or point.left_out)[0]
