"""Two sessions on key-value stores: what is compared and tracked, and what forbids comparing."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from msgspec.structs import replace

from iolab.analysis.adaptive import RunResultLog
from iolab.analysis.comparison import build_session_history, compare_sides
from iolab.analysis.differences import ComparisonSide, find_differences
from iolab.analysis.metrics import with_stall_percentiles_as_bounds
from iolab.analysis.points import pooled_log_bin_error, summarise_points
from iolab.analysis.steady import SteadinessView
from iolab.analysis.window import Window
from iolab.core.metric import Metric, RunResult
from iolab.core.metric_spec import BetterDirection
from iolab.core.run import Point
from iolab.core.stopping import Steadiness, SteadinessStatus
from iolab.core.workload import AnyJob
from iolab.loads.keyvalue.workload import EMBEDDED_SERVER, ServerKind, ServerSettings
from iolab.stats.comparison import ComparisonVerdict
from tests.loads.keyvalue.records import BENCH, LOADED, YCSB
from tests.loads.keyvalue.studies import BASE, STUDY, Values, rates, results

READS = "readrandom-4k"


def side(
    name: str,
    runs: Sequence[RunResult] = (),
    job: AnyJob = BENCH,
    server: ServerSettings | None = None,
    created_s: int = 0,
) -> ComparisonSide:
    study = replace(STUDY, server=server or EMBEDDED_SERVER)
    point = Point("ab", BASE, READS, (("threads", 4),), job, "")
    return ComparisonSide(
        name=name,
        session_id=name,
        created_real_ns=created_s * 10**9,
        versions={},
        study=study,
        configuration=STUDY.configurations[0],
        points={(READS, point.axis_values): point},
        facts={},
        results=tuple(runs),
    )


def repeats(*ops: float, mean: float = 5e5, p99: float = 2e6) -> list[Values]:
    return [
        {"ops_per_s": one, "read_lat_ns_mean": mean * one / ops[0], "read_lat_ns_p99": p99}
        for one in ops
    ]


def test_the_rate_and_the_first_operations_latency_are_compared() -> None:
    one = side("a", results(BASE, repeats(100.0, 101.0, 99.0)))
    other = side("b", results(BASE, repeats(150.0, 151.0, 149.0, mean=3e5)))
    rows = {row.metric: row for row in compare_sides(one, other).compared_metrics}
    assert list(rows) == ["ops_per_s", "read_lat_ns_mean", "read_lat_ns_p99"]
    assert rows["ops_per_s"].better is BetterDirection.HIGHER
    assert rows["read_lat_ns_mean"].better is BetterDirection.LOWER
    assert [row.comparison.verdict for row in rows.values()] == [
        ComparisonVerdict.BETTER,
        ComparisonVerdict.BETTER,
        ComparisonVerdict.SAME,
    ]


def test_a_tail_that_is_not_supported_is_not_compared() -> None:
    without = [{**one, "read_lat_ns_p99": Metric(None, "ns")} for one in repeats(100.0, 101.0)]
    found = compare_sides(side("a", results(BASE, without)), side("b", results(BASE, without)))
    assert [row.metric for row in found.compared_metrics] == ["ops_per_s", "read_lat_ns_mean"]


def test_the_rate_is_tracked_over_sessions() -> None:
    levels = [100.0] * 6 + [140.0] * 6
    sides = [
        side(f"s{number}", results(BASE, rates([level, level * 1.001])), created_s=number)
        for number, level in enumerate(levels)
    ]
    (series,) = build_session_history(sides).metric_histories
    assert series.metric == "ops_per_s"
    assert [change.run_index for change in series.change_search.changes] == [6]


@pytest.mark.parametrize(
    ("changes", "what", "forbids"),
    [
        ({"loaded": replace(LOADED, block_bytes=16_384)}, f"{READS}: block bytes", True),
        ({"loaded": replace(LOADED, keys=500_000)}, f"{READS}: keys", True),
        ({"memory_bytes": 1 << 30}, f"{READS}: memory bytes", True),
        ({"write_bytes_per_s": 1 << 20}, f"{READS}: write bytes per s", True),
        ({"database": "/mnt/other/db"}, f"{READS}: database", False),
    ],
)
def test_another_load_forbids_comparing_but_not_another_place(
    changes: dict[str, Any], what: str, *, forbids: bool
) -> None:
    (found,) = find_differences(side("a"), side("b", job=replace(BENCH, **changes)))
    assert (found.subject, found.forbids_comparison) == (what, forbids)


@pytest.mark.parametrize(
    ("changes", "what", "forbids"),
    [
        ({"kind": ServerKind.MANAGED}, "server: kind", True),
        ({"memory_bytes": 2 << 30}, "server: memory bytes", True),
        ({"heap_bytes": 2 << 30}, "server: heap bytes", True),
        ({"consistency": "QUORUM"}, "server: consistency", True),
        ({"replication": 3}, "server: replication", True),
        ({"version": "5.0.6"}, "server: version", False),
        ({"addresses": ("10.0.0.9",)}, "server: addresses", False),
    ],
)
def test_a_server_that_does_other_work_forbids_comparing(
    changes: dict[str, Any], what: str, *, forbids: bool
) -> None:
    other = ServerSettings(**changes)
    (found,) = find_differences(side("a", job=YCSB), side("b", job=YCSB, server=other))
    assert (found.setting, found.forbids_comparison) == (what, forbids)
    assert find_differences(side("a"), side("b", server=other)) == (), "db_bench has no server"


def test_bins_of_an_engine_are_in_published_intervals() -> None:
    key = "read_lat_ns_p99"
    known = Metric(1.5e6, "ns", 1.3e6, 1.9e6)
    several = results(BASE, [{key: known} for _ in range(3)])
    (point,) = summarise_points(several, STUDY)
    found = point.metrics[key]
    assert found.n == 3
    assert found.low is not None
    assert found.high is not None
    assert found.low < 1.3e6
    assert found.high > 1.9e6
    assert pooled_log_bin_error(key, several) > pooled_log_bin_error("ops_per_s", several) == 0.0
    (alone,) = summarise_points(several[:1], STUDY)
    assert alone.metrics[key] == known


def test_bins_that_begin_at_nothing_do_not_break_an_interval() -> None:
    first = Metric(900.0, "ns", 0.0, 1_000.0)
    (point,) = summarise_points(results(BASE, [{"read_lat_ns_p50": first}] * 2), STUDY)
    low = point.metrics["read_lat_ns_p50"].low
    assert low is not None
    assert 0 < low <= 1.0


def test_repeats_are_counted_by_the_headline_figure() -> None:
    assert STUDY.workloads[0].rate_metric == "ops_per_s"
    runs = results(BASE, rates([100.0, 102.0, 98.0]))
    widths = RunResultLog(STUDY, runs).relative_half_widths_by_point([runs[0].digest])
    assert 0 < widths[runs[0].digest] < 0.1


def test_workloads_spread_each_in_its_own_way() -> None:
    random = np.random.default_rng(11)
    calm, wild = STUDY.workloads
    study = replace(
        STUDY, workloads=(calm, replace(wild, job=replace(BENCH, workload="readwhilewriting")))
    )
    runs = [
        run
        for workload, sd in ((calm.id, 0.002), (wild.id, 0.2))
        for threads in range(1, 14)
        for run in results(
            BASE, rates((1e4 * random.lognormal(0, sd, 2)).tolist()), threads, workload
        )
    ]
    widths: dict[str, list[float]] = {}
    for point in summarise_points(runs, study):
        found = point.metrics["ops_per_s"]
        assert found.low is not None
        assert found.high is not None
        widths.setdefault(point.key.workload, []).append(np.log(found.high / found.low) / 2)
    assert max(widths[calm.id]) < 0.02
    assert min(widths[wild.id]) > 0.05


def test_where_few_stalls_decide_a_bins_lower_edge_is_what_is_known() -> None:
    metrics = {
        "read_lat_ns_p99": Metric(1.5e6, "ns", 1.3e6, 1.9e6),
        "read_lat_ns_p99_9": Metric(2.5e6, "ns", 1.9e6, 2.9e6),
        "read_lat_ns_p99_99": Metric(None, "ns"),
    }
    told = Steadiness(SteadinessStatus.OK, 10, 60, 2_000.0, 0.03, 9, None, 0, None)
    stalled = SteadinessView(told, Window(0, 1), 0.0, 3, 0.0)
    found = with_stall_percentiles_as_bounds(metrics, ["read_"], "p99", stalled)
    assert found["read_lat_ns_p99_9"] == Metric(None, "ns", low=1.3e6)
    assert found["read_lat_ns_p99_99"] == Metric(None, "ns")
    calm = with_stall_percentiles_as_bounds(
        metrics, ["read_"], "p99", replace(stalled, stall_count=0)
    )
    assert calm == metrics
