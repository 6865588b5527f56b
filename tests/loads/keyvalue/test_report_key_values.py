"""Load on key-value stores on the page."""

from __future__ import annotations

import numpy as np
import pytest
from msgspec.structs import replace

from iolab.analysis.points import summarise_points
from iolab.core.metric import Metric, RunResult, VerdictLevel
from iolab.core.samples import CounterTable
from iolab.loads.keyvalue.charts import key_value_best_figures
from iolab.loads.keyvalue.kind import KIND
from iolab.loads.keyvalue.tables import (
    key_value_point_groups,
    percentile_bounds_table,
    published_or_highest_percentile_name,
    rate_and_latency_line,
)
from iolab.registry import report_kinds
from iolab.report.best import BestFigure
from iolab.report.brief import Brief
from iolab.report.matrix import best_figures_by_unit_and_operation
from iolab.report.narrative import linked_finding_sentences
from iolab.report.numbers import metric_value_text
from iolab.report.page import ReportPage, build_report_page
from tests.facts import tells
from tests.loads.keyvalue.key_value_records import READ
from tests.loads.keyvalue.key_value_session import KeySource, cassandra, rocksdb
from tests.report import shared
from tests.report.made import build_brief
from tests.report.studies import with_results
from tests.report.synthetic import objecting


@pytest.fixture(scope="module")
def rocks() -> KeySource:
    return shared.keys()


@pytest.fixture(scope="module")
def brief() -> Brief:
    return shared.brief("keys")


@pytest.fixture(scope="module")
def page() -> ReportPage:
    return shared.page("keys")


@pytest.fixture(scope="module")
def paced() -> KeySource:
    return shared.paced()


def titles(page: ReportPage) -> dict[str, list[str]]:
    return {
        item.title: [figure.title for figure in item.charts] for item in page.charts_by_workload
    }


def test_every_block_size_has_charts_and_a_row_of_its_own(page: ReportPage, brief: Brief) -> None:
    found = titles(page)
    best = brief.kinds.best_figures(brief)
    (latency_at, _) = page.answer.best_table.groups[-1]
    assert len(found) == len(best) == latency_at == 6
    assert found["Random reads, block size 4k"] == ["Random reads, block size 4k"]
    mixed = {
        item.title: [one.title for one in item.appendix_charts] for item in page.charts_by_workload
    }
    (against,) = mixed["Random reads, block size 4k"]
    assert tells(against, "Read mean", "p99", "operations")
    assert tells(mixed["80 % reads, 20 % writes, block size 16k"][-1], "Write mean", "p95")
    assert (best[0].value.unit, best[0].axis_text) == ("ops/s", "block size 4k, threads 64")
    assert [name for name, _ in best[0].latency_names_and_texts] == ["read mean", "read p99"]


def test_writes_stand_apart_from_reads(page: ReportPage) -> None:
    (item,) = [
        w for w in page.charts_by_workload if w.title == "80 % reads, 20 % writes, block size 4k"
    ]
    apart = next(
        table
        for table, _ in item.detail_tables_with_notes
        if table.title == "Each operation by itself"
    )
    assert [cells[0].text for cells in apart.rows] == ["read", "write"] * 4


def test_wide_bins_are_told_with_both_their_ends(rocks: KeySource) -> None:
    (point,) = summarise_points(rocks.results()[:1], rocks.study)
    table = percentile_bounds_table([point], lambda _: "here")
    assert table is not None
    heads = [column.title for column in table.columns]
    told = dict(zip(heads, (cell.text for cell in table.rows[0]), strict=True))
    metric = rocks.results()[0].metrics["read_lat_ns_p99"]
    assert metric.has_bin_edge_interval
    assert told["p99"] == "380 µs to 580 µs"
    assert metric.low == 380_000
    assert metric.high == 580_000


def test_fine_bins_need_no_bounds(paced: KeySource) -> None:
    points = summarise_points(paced.results(), paced.study)
    assert percentile_bounds_table(points, lambda _: "here") is None


def test_devices_stand_beside_the_operations(page: ReportPage) -> None:
    (device,) = [
        table
        for table, _ in page.charts_by_workload[0].detail_tables_with_notes
        if table.title == "Device I/O beside the operations"
    ]
    heads = [column.title for column in device.columns]
    assert len(device.rows) == 4
    assert device.rows[0][heads.index("Reads an operation")].text == "0.80"
    assert device.rows[0][heads.index("A read")].text == "6.35 KiB"
    assert all(cells[-1].verdict_level is VerdictLevel.VALID for cells in device.rows)


def test_build_databases_and_statistics_are_told(page: ReportPage, brief: Brief) -> None:
    (engine,) = (text for name, text in page.fact_rows if name == "Engine")
    assert tells(engine, "db_bench 7.8.3, assertions enabled", "of keys and values", "of memory")
    tables = {table.title: table for table in page.job_tables}
    shape = tables["Databases as the runs began on them"]
    assert [cells[-1].text for cells in shape.rows] == ["12", "12"]
    assert shape.rows[0][1].text == "L1: 3 files, 200 MiB; L2: 4 files, 212 MiB"
    assert shape.rows[0][0].text == "400,000 keys in blocks of 4 KiB"
    assert [cells[1].text for cells in tables["Workloads of db_bench"].rows] == [
        "readrandom",
        "readrandomwriterandom",
        "readwhilewriting",
    ]
    assert [table.title for table in page.runs[0].fleet_tables] == ["Each operation"]
    assert [table.title for table in page.runs[0].folded_tables] == ["The engine's own statistics"]
    assert len(brief.host_runs) == 24


def test_what_rocksdb_counts_of_writes_and_compaction_stands_beside(page: ReportPage) -> None:
    (told,) = [
        table
        for table, _ in page.charts_by_workload[-1].detail_tables_with_notes
        if table.title == "Writes, compaction and stalls"
    ]
    heads = [column.title for column in told.columns]
    first = dict(zip(heads, (cell.text for cell in told.rows[0]), strict=True))
    assert first["Writes"] == "11,898"
    assert first["Write p99"] == "107 µs"
    assert first["Compaction wrote"] == "12 MiB"
    assert first["Stalled"] == "200 ms"


def test_latencies_of_wide_bins_say_so(page: ReportPage) -> None:
    curves = next(f for f in page.runs[0].charts if f.title == "Latency by percentile")
    assert "half as wide" in curves.note
    assert "operations" in curves.finding
    fine = shared.page("paced").runs[0].charts
    assert "half as wide" not in next(f for f in fine if f.title == curves.title).note


def test_several_configurations_stand_side_by_side() -> None:
    page = shared.page("two keys")
    load, *others = (
        *page.charts_by_workload[0].charts,
        *page.charts_by_workload[0].appendix_charts,
    )
    assert [figure.title.split(" against")[0] for figure in others] == ["Read mean", "Read p99"]
    assert "New: from" in load.finding
    assert len(load.table.rows) == 8 * 3
    assert len(page.answer.best_table.columns) == 1 + 2


def test_service_and_intended_latency_stand_side_by_side() -> None:
    page = shared.page("paced")
    due = page.charts_by_workload[0].appendix_charts[-1]
    assert tells(due.title, "service", "since due", "rate")
    assert "Since due: " in due.finding
    assert any(
        "was due" in table.title for table, _ in page.charts_by_workload[0].detail_tables_with_notes
    )


def test_the_store_behind_ycsb_is_told() -> None:
    page = shared.page("paced")
    store = {cells[0].text: cells[1].text for cells in page.job_tables[-1].rows}
    assert store["Product"] == "Apache Cassandra 4.0.17"
    assert store["Java"] == "17.0.13"
    assert store["Consistency"] == "ONE"
    assert "The server's own statistics" in [table.title for table in page.runs[0].folded_tables]


def test_a_percentile_is_drawn_only_where_every_point_has_it(paced: KeySource) -> None:
    job = paced.study.workloads[0].job
    known = {f"read_lat_ns_{name}": Metric(1.0, "ns") for name in ("mean", "p50", "p99", "p99_99")}
    assert published_or_highest_percentile_name(job, [known], READ) == "p99_99"
    fewer = {**known, "read_lat_ns_p99_99": Metric(None, "ns")}
    assert published_or_highest_percentile_name(job, [known, fewer], READ) == "p99"


def test_a_chart_says_why_the_published_percentile_is_missing() -> None:
    note = shared.page("paced").charts_by_workload[0].appendix_charts[0].note
    assert tells(note, "p99.99", "0 of 2 points", "1,000,000 reads"), note


def test_a_run_shows_its_operations_over_time(paced: KeySource, brief: Brief) -> None:
    detail = next(d for d in build_brief(paced).chart_data_by_run.values() if d.timeline)
    assert detail.timeline is not None
    panels = {panel.title: panel for panel in detail.timeline.panels}
    assert [one.name for one in panels["Operations"].lines] == ["read", "update"]
    names = [one.name for one in panels["Latency p99"].lines]
    assert names == ["read", "update", "due read", "due update"]
    assert "Device throughput" in panels
    beside = next(
        d
        for d in brief.chart_data_by_run.values()
        if d.timeline and d.result.workload == "read-while-writing"
    )
    assert beside.timeline is not None
    assert [one.name for one in beside.timeline.panels[0].lines] == ["all", "writer"]


def test_what_a_server_counts_stands_below_the_operations(paced: KeySource) -> None:
    source = replace(paced, kept={})
    key = (source.plan.runs[0].point.digest, 1)
    record = paced.record(*key)
    with_server = replace(record, counters=with_node(record.counters))
    brief = build_brief(replace(source, kept={**paced.kept, key: with_server}))
    timeline = brief.chart_data_by_run[key].timeline
    assert timeline is not None
    panels = {panel.title: panel for panel in timeline.panels}
    requests = panels["Server requests"]
    assert [one.name for one in requests.lines] == ["read", "write"]
    assert requests.lines[0].values[4] == pytest.approx(500.0)
    assert panels["Server latency"].lines[0].values[4] == pytest.approx(2e6)
    assert panels["Server queues"].lines[0].name == "compactions"
    assert "Server garbage collection" in panels


def with_node(counters: CounterTable) -> CounterTable:
    """The counters with those of a Cassandra node, asked a third of a second after its host."""
    each = {
        "client_reads": 500,
        "client_read_time_ns": 1_000_000_000,
        "client_writes": 400,
        "client_write_time_ns": 200_000_000,
        "compacted_bytes": 1_000_000,
        "collection_time_ns": 10_000_000,
    }
    samples = np.unique(counters.seq)
    rows = [(seq, name, int(seq) * grows) for seq in samples for name, grows in each.items()]
    rows += [(seq, "compactions_pending", 2) for seq in samples]
    start = int(counters.real_ns.min()) + 300_000_000
    whole = [np.array([row[0] for row in rows]), np.array([row[2] for row in rows])]
    names = np.array([row[1] for row in rows], dtype=np.object_)
    scope = np.full(len(rows), "cassandra", dtype=np.object_)
    return CounterTable(
        host=np.concatenate([counters.host, np.zeros(len(rows), dtype=np.int64)]),
        seq=np.concatenate([counters.seq, whole[0]]),
        real_ns=np.concatenate([counters.real_ns, start + whole[0] * 1_000_000_000]),
        scope=np.concatenate([counters.scope, scope]),
        name=np.concatenate([counters.name, np.full(len(rows), "", dtype=np.object_)]),
        metric=np.concatenate([counters.metric, names]),
        value=np.concatenate([counters.value, whole[1]]),
    )


def test_configurations_at_one_load_alone_are_drawn_too() -> None:
    source = rocksdb(("old", "new"), seconds=2, workload_count=1)
    once = tuple(one for one in source.results() if dict(one.axis_values)["threads"] == 16)
    page = build_report_page(build_brief(replace(source, results_given=once)))
    charts = page.charts_by_workload[0]
    heads = [column.title for column in charts.charts[0].table.columns]
    assert tells(" ".join(heads), "block size", "Operations", "read mean")
    assert tells(charts.appendix_charts[0].title, "Read mean", "operations")
    few = tuple(one for one in once if dict(one.axis_values)["block_size"] == "4k")
    page = build_report_page(build_brief(replace(source, results_given=few)))
    assert page.charts_by_workload[0].title == "Random reads, block size 4k"
    assert page.charts_by_workload[0].charts[0].table.title.endswith("against threads")


def test_several_clients_have_their_shares() -> None:
    source = cassandra(rates=(1000,), clients=("client-1", "client-2"), seconds=2)
    page = build_report_page(build_brief(source))
    shares = page.runs[0].hosts_table
    assert shares is not None
    assert [cells[0].text for cells in shares.rows] == ["client-1", "client-2"]
    assert shares.columns[1].title == "Operations/s"
    assert page.runs[0].charts[-1].title.startswith("Each host's rate")


def test_the_page_is_drawn_whole() -> None:
    text = shared.html("keys")
    assert "Every run on a key-value store" in text
    written, *_ = text.rpartition("<script>")
    assert "undefined" not in written.lower()


def test_a_failed_run_has_a_row_and_no_number(rocks: KeySource) -> None:
    first, *others = rocks.results()
    gone = replace(
        first,
        failure="db_bench was killed.",
        metrics={key: Metric(None, one.unit) for key, one in first.metrics.items()},
        verdict=objecting(VerdictLevel.INVALID, "engine", "It was killed."),
    )
    table = KIND.make_report(report_kinds().booted_hosts).result_table(
        rocks.study, [gone, *others], {}
    )
    heads = [column.title for column in table.columns]
    assert table.rows[0][heads.index("Operations/s")].text == "–"
    groups = key_value_point_groups(rocks.study, summarise_points([gone], rocks.study))
    assert len(groups) == 1
    page = build_report_page(build_brief(replace(rocks, results_given=(gone,))))
    assert page.charts_by_workload == ()
    assert page.answer.best_table.rows[0][1].text == "not measurable"


def test_a_short_run_is_told_by_the_percentile_that_it_has(paced: KeySource) -> None:
    assert ", read p90 " in rate_and_latency_line(paced.results()[0])


def test_each_operation_of_a_mix_has_its_latency_beside_the_best_figure(paced: KeySource) -> None:
    found = key_value_best_figures(
        key_value_point_groups(paced.study, summarise_points(paced.results(), paced.study)),
        paced.study,
    )
    mixed = next(one for one in found if "update" in str(one.latency_names_and_texts))
    assert mixed.latency_names_and_texts[0][0] == "mean"
    words = mixed.latency_names_and_texts[0][1].replace(" /", "").split()
    assert words[2::3] == ["read", "update"]


def test_readers_that_a_writer_seems_to_help_are_noise(rocks: KeySource) -> None:
    runs = {(run.workload, run.axis_values): run for run in rocks.results()}
    axis = next(axis for workload, axis in runs if workload == "read-random")
    alone, beside = (runs[workload, axis] for workload in ("read-random", "read-while-writing"))
    rate = alone.metrics["ops_per_s"]
    for factor, is_noise in ((2.0, True), (0.9, False)):
        faster = replace(rate, value=factor * (rate.value or 0.0), low=None, high=None)
        run = replace(beside, metrics={**beside.metrics, "ops_per_s": faster})
        groups = key_value_point_groups(rocks.study, summarise_points([alone, run], rocks.study))
        reads, written = key_value_best_figures(groups, rocks.study)
        assert (reads.noise_text, bool(written.noise_text)) == ("", is_noise)
        if is_noise:
            assert tells(written.noise_text, "2.00×", metric_value_text(rate), "noise")
            (best,) = best_figures_by_unit_and_operation((reads, written))
            assert best is reads


def test_a_repeat_of_the_readers_alone_that_is_far_from_the_others_is_named(
    rocks: KeySource,
) -> None:
    """A writer seems to help only by that repeat: what the others agree on is as fast."""
    runs = {(run.workload, run.axis_values): run for run in rocks.results()}
    axis = next(axis for workload, axis in runs if workload == "read-random")
    alone, beside = (runs[workload, axis] for workload in ("read-random", "read-while-writing"))

    def run_of(run: RunResult, repeat: int, per_s: float) -> RunResult:
        rate = replace(run.metrics["ops_per_s"], value=per_s, low=None, high=None)
        return replace(run, repeat=repeat, metrics={**run.metrics, "ops_per_s": rate})

    def written(*alone_per_s: float) -> BestFigure:
        repeats = [run_of(alone, number, rate) for number, rate in enumerate(alone_per_s, 1)]
        points = summarise_points([*repeats, run_of(beside, 1, 38_600.0)], rocks.study)
        return key_value_best_figures(key_value_point_groups(rocks.study, points), rocks.study)[1]

    figure = written(38_100.0, 15_100.0, 38_200.0)
    assert tells(figure.doubt_text, "repeat 2 (15.1 k ops/s)", "38.1 to 38.2 k ops/s")
    assert not figure.noise_text
    # Repeats that agree leave noise alone, as do others that disagree and faster ones than these.
    for rates in ((19_000.0, 19_100.0, 19_200.0), (15_000.0, 21_000.0, 30_000.0)):
        assert "noise" in written(*rates).noise_text
        assert not written(*rates).doubt_text
    assert "single runs" in written(19_000.0).noise_text


def test_readers_that_a_writer_seems_to_help_are_no_best_in_the_bottom_line(
    rocks: KeySource,
) -> None:
    runs = rocks.results()
    axis = max((run.axis_values for run in runs), key=str)
    alone = next(run for run in runs if (run.workload, run.axis_values) == ("read-random", axis))
    rate = alone.metrics["ops_per_s"]
    faster = replace(rate, value=9.0 * (rate.value or 0.0), low=None, high=None)
    spoilt = tuple(
        replace(run, metrics={**run.metrics, "ops_per_s": faster})
        if (run.workload, run.axis_values) == ("read-while-writing", axis)
        else run
        for run in runs
    )
    brief = with_results(build_brief(rocks), spoilt)
    (text,) = [
        sentence.text for sentence in linked_finding_sentences(brief) if "noise" in sentence.text
    ]
    assert tells(text, "is no best", "9.00×")
    assert "The best is" not in text
    noise = {figure.run_key for figure in brief.best_figures if figure.noise_text}
    assert noise & brief.run_resources.keys()
    assert not any(noise & {*limit.run_keys} for limit in brief.bottlenecks)  # it limits nothing


def test_a_study_on_keys_alone_lays_out_no_files(page: ReportPage) -> None:
    assert "works on" not in str(page.method_table.rows)
    assert "works on" in str(shared.page("kpi").method_table.rows)


def test_a_run_in_a_line(rocks: KeySource) -> None:
    line = rate_and_latency_line(rocks.results()[0])
    assert line.startswith("27.")
    assert " k ops/s, read mean 17" in line
    assert ", read p99 " in line


def test_io_alone_has_no_table_of_operations() -> None:
    assert [table.title for table in shared.page("kpi").result_tables] == ["Every run"]
