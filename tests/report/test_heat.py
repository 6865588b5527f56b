from __future__ import annotations

import itertools

import numpy as np
import pytest
from msgspec.structs import astuple, replace

from iolab.analysis.metrics import is_percentile_supported
from iolab.core.histogram import LOWER_NS, MIDDLE_NS, UPPER_NS, Histogram, dense_counts
from iolab.core.run import RunRecord
from iolab.core.samples import BinTable, IntervalTable, empty_bin_table
from iolab.core.workload import ServiceTimeDirection
from iolab.report.charts.run_series import build_heat_map
from iolab.report.charts.series import BANDS_MAX, MOMENTS_MAX, HeatMap
from iolab.report.gather import HEAT_MAPS_MAX
from tests.report import shared
from tests.report.studies import kpi, sweep
from tests.report.synthetic import record_of


def made(record: RunRecord) -> HeatMap:
    found = build_heat_map(record, None)
    assert found is not None
    return found


@pytest.fixture(scope="module")
def record() -> RunRecord:
    source = kpi()
    return record_of(source, source.plan.runs[2])


def bins_of(record: RunRecord, heat: HeatMap) -> list[dict[int, int]]:
    """Each moment's counts by bin, by going through the rows one after the other."""
    table, found = record.intervals, [dict[int, int]() for _ in heat.counts]
    first = min(int(end - span) for end, span in zip(table.end_real_ns, table.span_ns, strict=True))
    middles = {
        (int(host), int(seq)): (int(end) - first - int(span) / 2) / 1e9
        for host, seq, end, span in zip(
            table.host, table.seq, table.end_real_ns, table.span_ns, strict=True
        )
    }
    bins = record.bins
    for host, seq, index, count in zip(bins.host, bins.seq, bins.bin, bins.count, strict=True):
        at = middles[int(host), int(seq)]
        moment = max(i for i, edge in enumerate(heat.moment_edges_s[:-1]) if edge <= at)
        own = found[moment]
        own[int(index)] = own.get(int(index), 0) + int(count)
    return found


def test_service_times_are_no_part_of_the_latencies(record: RunRecord) -> None:
    rows, bins = record.intervals, record.bins
    twice = replace(
        record,
        intervals=IntervalTable(*(np.concatenate([column] * 2) for column in astuple(rows))),
        bins=BinTable(*(np.concatenate([column] * 2) for column in astuple(bins))),
    )
    for table in (twice.intervals, twice.bins):
        table.direction[len(table) // 2 :] += ServiceTimeDirection.READ
    assert made(twice).counts == made(record).counts


def test_cells_are_those_that_the_raw_bins_give(record: RunRecord) -> None:
    heat = made(record)
    for row, bins in zip(heat.counts, bins_of(record, heat), strict=True):
        wanted = [0] * len(row)
        for index, count in bins.items():
            middle = float(MIDDLE_NS[index])
            below = [j for j, edge in enumerate(heat.latency_edges_ns[:-1]) if edge <= middle]
            wanted[max(below, default=0)] += count
        assert list(row) == wanted


def test_percentiles_are_those_of_the_moments_raw_bins(record: RunRecord) -> None:
    heat = made(record)
    for moment, bins in enumerate(bins_of(record, heat)):
        whole = Histogram(dense_counts(list(bins), list(bins.values())))
        assert heat.p50_ns[moment] == whole.percentile_ns(50.0)
        tail = whole.percentile_ns(99.0) if is_percentile_supported(whole.total, 99.0) else None
        assert heat.p99_ns[moment] == tail


def test_the_middle_half_is_that_of_the_window_alone(record: RunRecord) -> None:
    heat = made(record)
    inside: dict[int, int] = {}
    edges = itertools.pairwise(heat.moment_edges_s)
    for bins, (start, end) in zip(bins_of(record, heat), edges, strict=True):
        if heat.window_begin_s <= (start + end) / 2 <= heat.window_end_s:
            inside = {i: inside.get(i, 0) + bins.get(i, 0) for i in {*inside, *bins}}
    whole = Histogram(dense_counts(list(inside), list(inside.values())))
    assert heat.interquartile_ns == (whole.percentile_ns(25.0), whole.percentile_ns(75.0))
    assert 0 < heat.window_begin_s < heat.moment_edges_s[-1]


def test_bands_have_one_ratio_and_hold_all_latencies(record: RunRecord) -> None:
    heat = made(record)
    ratios = [b / a for a, b in itertools.pairwise(heat.latency_edges_ns)]
    assert ratios == pytest.approx([ratios[0]] * len(ratios), rel=1e-4)
    assert len(ratios) <= BANDS_MAX
    used = record.bins.bin.astype(np.int64)
    assert heat.latency_edges_ns[0] == pytest.approx(float(LOWER_NS[used.min()]))
    assert heat.latency_edges_ns[-1] == pytest.approx(float(UPPER_NS[used.max()]) + 1)


def test_a_long_run_has_as_many_moments_as_fit_and_loses_no_io() -> None:
    source = sweep(seconds=300)
    record = record_of(source, source.plan.runs[0])
    heat = made(record)
    assert MOMENTS_MAX / 2 < len(heat.counts) <= MOMENTS_MAX
    assert sum(map(sum, heat.counts)) == int(record.bins.count.sum())
    assert heat.moment_edges_s[-1] == pytest.approx(305.0, abs=0.1)


def test_latencies_of_one_bin_make_one_band(record: RunRecord) -> None:
    bins = replace(record.bins, bin=np.full_like(record.bins.bin, 700))
    heat = made(replace(record, bins=bins))
    assert len(heat.latency_edges_ns) == 2
    assert heat.p50_ns[0] == float(MIDDLE_NS[700])


def test_there_is_no_map_of_no_bins_or_of_a_moment(record: RunRecord) -> None:
    assert build_heat_map(replace(record, bins=empty_bin_table()), None) is None
    early = record.intervals.seq < 2
    columns = ("host", "seq", "end_real_ns", "span_ns", "direction", "ios", "bytes", "lat_sum_ns")
    table = replace(
        record.intervals, **{name: getattr(record.intervals, name)[early] for name in columns}
    )
    assert build_heat_map(replace(record, intervals=table), None) is None


def test_only_the_first_runs_of_io_have_maps() -> None:
    brief = shared.brief("sweep")
    drawn = [detail for detail in brief.chart_data_by_run.values() if detail.heat_map is not None]
    assert len(drawn) == min(HEAT_MAPS_MAX, len(brief.chart_data_by_run))
    assert all(detail.timeline is not None for detail in drawn)


def test_operations_on_files_have_no_map() -> None:
    brief = shared.brief("files")
    kinds = {
        detail.result.workload: detail.heat_map is None
        for detail in brief.chart_data_by_run.values()
    }
    assert set(kinds.values()) == {True, False}
    assert all(
        without == any("file_" in name for name in detail.result.metrics)
        for detail in brief.chart_data_by_run.values()
        for without in [detail.heat_map is None]
    )
