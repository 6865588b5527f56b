from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from msgspec.structs import asdict, replace

from iolab.analysis.sums import sum_measured_window
from iolab.core.events import SessionStatus
from iolab.core.run import RunRecord
from iolab.core.samples import (
    BinTable,
    CounterTable,
    IntervalTable,
    empty_bin_table,
    empty_counter_table,
)
from iolab.errors import StoreError
from iolab.hosts.rates import CounterSeries
from iolab.report.charts.distribution import latency_ns_at_percentile
from iolab.report.charts.run_series import build_timeline
from iolab.report.charts.series import CELLS_MAX, Timeline
from iolab.report.gather import TIMELINES_MAX, StoredSessionReader
from iolab.store.reader import SessionReader
from iolab.store.writer import SessionWriter
from tests.report import shared
from tests.report.made import build_brief
from tests.report.studies import kpi, sweep
from tests.report.synthetic import GO_NS, Source, record_of


@pytest.fixture(scope="module")
def source() -> Source:
    return sweep(seconds=12)


def panel(timeline: Timeline, title: str) -> dict[str, tuple[float | None, ...]]:
    found = next(panel for panel in timeline.panels if panel.title == title)
    return {trace.name: trace.values for trace in found.lines}


def shifted(record: RunRecord, offset_ns: int) -> RunRecord:
    """The same run as a second host with another clock would have told it."""
    table = record.intervals
    clock = np.where(table.host == 1, offset_ns, 0)
    hosts = (record.hosts[0], replace(record.hosts[1], clock_offset_ns=offset_ns))
    return replace(
        record, intervals=replace(table, end_real_ns=table.end_real_ns + clock), hosts=hosts
    )


def test_the_stores_reader_is_a_source() -> None:
    wanted = {name for name in vars(StoredSessionReader) if not name.startswith("_")}
    assert wanted <= set(dir(SessionReader))


def test_a_curve_and_its_result_tell_the_same_percentiles(source: Source) -> None:
    brief = build_brief(source)
    assert len(brief.chart_data_by_run) == len([r for r in brief.results if r.failure is None])
    for detail in brief.chart_data_by_run.values():
        metrics = detail.result.metrics
        for key, percent in (("p50", 50.0), ("p99", 99.0), ("p99_5", 99.5), ("p99_9", 99.9)):
            assert (
                latency_ns_at_percentile(detail.all_operations, percent)
                == metrics[f"lat_ns_{key}"].value
            )


def test_only_the_first_runs_have_timelines(source: Source) -> None:
    brief = build_brief(source)
    drawn = [detail for detail in brief.chart_data_by_run.values() if detail.timeline is not None]
    assert len(drawn) == min(TIMELINES_MAX, len(brief.chart_data_by_run))


def test_the_timeline_adds_up_to_the_intervals() -> None:
    source = kpi()
    record = record_of(source, source.plan.runs[2])
    timeline = build_timeline(record, (), sum_measured_window(record).measured_part.common_window)
    rates = panel(timeline, "Load")["read"]
    total = sum(rate * timeline.cell_s for rate in rates if rate is not None)
    assert total == pytest.approx(int(record.intervals.ios.sum()), rel=2e-3)


def test_hosts_are_laid_over_each_other_on_one_clock() -> None:
    source = kpi()
    record = record_of(source, source.plan.runs[2])
    same = build_timeline(record, (), sum_measured_window(record).measured_part.common_window)
    other = shifted(record, 5_000_000_000)
    assert build_timeline(other, (), sum_measured_window(other).measured_part.common_window) == same


def test_the_window_leaves_the_warm_up_out(source: Source) -> None:
    record = record_of(source, source.plan.runs[0])
    timeline = build_timeline(record, (), sum_measured_window(record).measured_part.common_window)
    assert (timeline.window_begin_s, timeline.window_end_s) == (5.0, 17.0)


def test_a_long_run_is_drawn_with_few_cells() -> None:
    long = sweep(seconds=700)
    record = record_of(long, long.plan.runs[0])
    timeline = build_timeline(record, (), sum_measured_window(record).measured_part.common_window)
    assert len(timeline.at_s) <= CELLS_MAX
    assert timeline.at_s[-1] + timeline.cell_s / 2 >= 705


def test_telemetry_stands_on_the_same_grid_as_the_load(source: Source) -> None:
    brief = build_brief(source)
    timeline = next(d.timeline for d in brief.chart_data_by_run.values() if d.timeline is not None)
    assert {len(t.values) for p in timeline.panels for t in p.lines} == {len(timeline.at_s)}
    busy = panel(timeline, "Device busy")["busy"]
    assert [v for v in busy if v is not None] == pytest.approx([0.93] * 17, abs=0.01)
    cores = panel(timeline, "Processors busy")
    assert set(cores) == {"all cores", "busiest"}
    assert cores["busiest"][5] == pytest.approx(0.65, abs=0.01)
    device, load = panel(timeline, "Device throughput")["read"], panel(timeline, "Load")["read"]
    moved = [a / b for a, b in zip(device, load, strict=True) if a is not None and b is not None]
    assert moved == pytest.approx([4096] * 17, rel=0.01)


class Damaged(Source):
    """A source whose first run lost its bins."""

    def bins(self, digest: str, repeat: int) -> BinTable:
        if digest == self.plan.runs[0].point.digest:
            raise StoreError("The bins of the run are damaged.", "Measure it again.")
        return super().bins(digest, repeat)


def test_a_damaged_run_keeps_its_result_and_is_told(source: Source) -> None:
    broken = Damaged(**asdict(source))
    brief = build_brief(broken)
    key = (broken.plan.runs[0].point.digest, 1)
    assert key not in brief.chart_data_by_run
    assert len(brief.results) == len(source.results())
    assert "damaged" in brief.damaged_runs[0].message


def test_a_stored_session_gives_the_same_brief_as_its_source(tmp_path: Path) -> None:
    source = kpi()
    directory = tmp_path / "session"
    with SessionWriter.create(
        directory, source.study, source.plan, "s", ("iolab", "run")
    ) as writer:
        writer.record_host_facts_at_start(source.facts, "0.1.0")
        for run, result in zip(source.plan.runs, source.results(), strict=True):
            writer.commit_run(record_of(source, run), result, analysis_version=1)
        writer.end_session_and_close(SessionStatus.DONE)
    brief, wanted = build_brief(SessionReader(directory)), build_brief(source)
    assert brief.chart_data_by_run == wanted.chart_data_by_run
    assert brief.results == wanted.results
    assert brief.facts == wanted.facts


class Stillborn(Source):
    """A source whose runs ended in their first second without an I/O."""

    def intervals(self, digest: str, repeat: int) -> IntervalTable:
        table = super().intervals(digest, repeat)
        none = np.zeros(1, dtype=np.int64)
        return replace(
            table,
            host=none,
            seq=none,
            end_real_ns=table.end_real_ns[:1],
            span_ns=table.span_ns[:1],
            direction=table.direction[:1],
            ios=none,
            bytes=none,
            lat_sum_ns=np.zeros(1),
        )

    def bins(self, digest: str, repeat: int) -> BinTable:
        return empty_bin_table()

    def counters(self, digest: str, repeat: int) -> CounterTable:
        return empty_counter_table()


def test_a_run_without_any_io_is_told_and_drawn_empty(source: Source) -> None:
    still = Stillborn(**asdict(source))
    brief = build_brief(still)
    timeline = next(d.timeline for d in brief.chart_data_by_run.values() if d.timeline is not None)
    assert panel(timeline, "Latency") == {"mean": (None,), "p99": (None,)}
    one = next(iter(brief.chart_data_by_run.items()))
    told = shared.drawn(replace(brief, chart_data_by_run=dict([one])))
    assert "nothing known" in told


def telemetry_of(at_s: list[float], values: list[float]) -> CounterSeries:
    """A disk's busy share as derived at those seconds after the start."""
    times = np.array([GO_NS + round(at * 1e9) for at in at_s], dtype=np.int64)
    spans = np.diff(times, prepend=GO_NS)
    return CounterSeries(
        "client-1", "disk", "nvme1n1", "busy_share", times, np.array(values), spans
    )


def busy_of(source: Source, series: CounterSeries, interval_ms: int) -> tuple[float | None, ...]:
    record = record_of(source, source.plan.runs[0])
    record = replace(record, telemetry_interval_ms=interval_ms)
    timeline = build_timeline(
        record, (series,), sum_measured_window(record).measured_part.common_window
    )
    return panel(timeline, "Device busy")["busy"][:6]


def test_a_slow_sample_covers_the_cells_since_the_one_before(source: Source) -> None:
    series = telemetry_of([3.0, 6.0], [0.25, 0.5])
    assert busy_of(source, series, 3000) == (0.25, 0.25, 0.25, 0.5, 0.5, 0.5)


def test_a_gap_in_the_telemetry_stays_a_gap(source: Source) -> None:
    series = telemetry_of([1.0, 2.0, 5.0, 6.0], [0.1, 0.2, 0.5, 0.6])
    assert busy_of(source, series, 1000) == (0.1, 0.2, None, None, 0.5, 0.6)
