"""Rates and latencies of phases against a recount of every operation."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from iolab.core.run import RunRecord
from iolab.loads.metadata.metrics import (
    METADATA_KEYS,
    metadata_host_metrics,
    metadata_metrics,
    sum_metadata_phases,
)
from iolab.loads.metadata.workload import (
    FILE_OPERATIONS,
    MetadataHostDetails,
    MetadataOperation,
    operation_runs_of_host,
)
from tests.analysis.records import GO_NS, SECOND
from tests.histograms import of_latencies
from tests.judging import judge
from tests.loads.metadata.records import JOB, TREES, Made, Shape, made, mdtest_record, with_phase


def value(record: RunRecord, key: str) -> float | None:
    return metadata_metrics(record, sum_metadata_phases(record))[key].value


def recount(run: Made, operation: MetadataOperation, hosts: int) -> float:
    """The fleet's rate from single operations: each host's intervals within the common window."""
    did = [run.done[host, operation] for host in range(hosts)]
    start = max(int(d.starts.max()) for d in did)
    end = min(int(d.first_ends.min()) for d in did)
    go = min(int(d.starts.min()) for d in did)  # the first rank of every host begins at GO
    slack = min(50_000_000, (end - start) // 20)
    total = 0.0
    for d in did:
        last = int(d.ends.max())
        edges = [*range(go, last, SECOND), last]
        spans = [
            (low, high)
            for low, high in pairwise(edges)
            if low >= start - slack and high <= end + slack
        ]
        inside = sum(int(((d.ends > low) & (d.ends <= high)).sum()) for low, high in spans)
        total += inside / (sum(high - low for low, high in spans) / 1e9)
    return total


@pytest.mark.parametrize("operation", FILE_OPERATIONS)
def test_a_fleets_rate_is_that_of_the_window_in_which_all_ranks_worked(
    operation: MetadataOperation,
) -> None:
    run = made(shapes={(1, operation): Shape(lat_ns=3_000_000)})
    found = value(run.record, operation.rate_key)
    assert found == pytest.approx(recount(run, operation, 2), rel=1e-9)


def test_a_whole_phases_rate_is_all_operations_over_all_time() -> None:
    run = made()
    for operation in MetadataOperation:
        did = [run.done[host, operation] for host in range(2)]
        seconds = (max(d.ends.max() for d in did) - min(d.starts.min() for d in did)) / 1e9
        count = sum(d.ends.size for d in did)
        assert value(run.record, operation.phase_rate_key) == pytest.approx(count / seconds)


def test_latencies_are_those_of_all_operations_of_all_hosts() -> None:
    run = made(3, replace(JOB, files_per_rank=1000))
    for operation in FILE_OPERATIONS:
        lats = np.concatenate([run.done[host, operation].lats for host in range(3)])
        exact = of_latencies(lats)
        for name, percent in (("p50", 50.0), ("p99", 99.0)):
            key = f"{operation.key}_lat_ns_{name}"
            assert value(run.record, key) == exact.percentile_ns(percent)
        assert value(run.record, f"{operation.key}_lat_ns_mean") == pytest.approx(lats.mean())
        assert value(run.record, f"{operation.key}_lat_ns_max") == lats.max()
        assert value(run.record, f"{operation.key}_lat_ns_p99_9") is None


def test_trees_have_no_rate_over_a_window() -> None:
    metrics = metadata_metrics(made().record, sum_metadata_phases(made().record))
    for tree in TREES:
        assert tree.rate_key not in metrics
        assert metrics[tree.phase_rate_key].value is not None


def test_clocks_of_hosts_are_corrected() -> None:
    true, off = made(), made(offsets_ns=(3_600 * SECOND, -7 * SECOND))
    for key in METADATA_KEYS:
        assert value(off.record, key) == pytest.approx(value(true.record, key))


def test_hosts_that_never_worked_at_once_have_no_rate_together() -> None:
    far = (60 * SECOND, 60 * SECOND, 60 * SECOND, 60 * SECOND)
    run = made(shapes={(1, MetadataOperation.FILE_STAT): Shape(starts_ns=far)})
    load = sum_metadata_phases(run.record)
    assert value(run.record, "file_stat_ops_per_s") is None
    own = metadata_host_metrics(load, 0)["file_stat_ops_per_s"].value
    assert own == pytest.approx(4 / 0.0043, rel=0.1)
    assert load.shortest_common_window_s == 0.0
    assert value(run.record, "file_create_ops_per_s") is not None


def test_a_phase_shorter_than_an_interval_has_the_rate_of_the_whole_only() -> None:
    run = made(job=replace(JOB, files_per_rank=20))
    assert value(run.record, "file_read_ops_per_s") is None
    assert value(run.record, "file_read_ops_per_s_whole") is not None


def test_a_host_that_did_not_come_to_a_phase_leaves_it_without_rates() -> None:
    record = made().record
    lost = replace(
        record.hosts[1], details=MetadataHostDetails(operation_runs_of_host(record.hosts[1])[:2])
    )
    record = replace(record, hosts=(record.hosts[0], lost))
    assert value(record, "file_create_ops_per_s") is not None
    assert value(record, "file_stat_ops_per_s") is None
    assert value(record, "file_stat_ops_per_s_whole") is None


def test_failed_operations_are_in_no_rate() -> None:
    record = made().record
    done = operation_runs_of_host(record.hosts[0])[1].completed
    fewer = with_phase(
        record, 0, MetadataOperation.FILE_CREATE, completed=done - 100, errors=(("EIO", 100),)
    )
    load = next(
        p for p in sum_metadata_phases(fewer).phases if p.operation is MetadataOperation.FILE_CREATE
    )
    assert load.failed_count == 100
    before, after = (value(r, "file_create_ops_per_s_whole") for r in (record, fewer))
    assert before is not None
    assert after == pytest.approx(before * (24_000 - 100) / 24_000)


def test_mdtest_gives_the_rates_that_it_prints_and_nothing_else() -> None:
    record = mdtest_record(
        {MetadataOperation.FILE_CREATE: 40784.448, MetadataOperation.TREE_REMOVE: 1.172}
    )
    result = judge(record, {})
    known = {key: m.value for key, m in result.metrics.items() if m.value is not None}
    assert known == {"file_create_ops_per_s_whole": 40784.448, "tree_remove_ops_per_s_whole": 1.172}
    assert all(m.value is None for host in result.hosts for m in host.metrics.values())
    assert [host.name for host in result.hosts] == ["c1", "c2"]
    assert result.window_s == 0.0


def test_a_run_that_left_nothing_is_judged_too() -> None:
    record = made().record
    empty = replace(
        record, hosts=tuple(replace(host, details=MetadataHostDetails(())) for host in record.hosts)
    )
    result = judge(empty, {})
    assert all(metric.value is None for metric in result.metrics.values())
    assert result.verdict.level.value == "invalid"


@given(
    st.integers(1, 3),
    st.integers(1, 5),
    st.integers(1, 400),
    st.integers(0, 1 << 30),
    st.sampled_from([SECOND // 10, SECOND // 3, SECOND]),
)
@settings(max_examples=25)
def test_no_rate_exceeds_what_was_done(
    hosts: int, ranks: int, files: int, seed: int, interval_ns: int
) -> None:
    job = replace(JOB, ranks=ranks, files_per_rank=files)
    run = made(hosts, job, seed=seed, interval_ns=interval_ns)
    metrics = metadata_metrics(run.record, sum_metadata_phases(run.record))
    for operation in FILE_OPERATIONS:
        lats = np.concatenate([run.done[host, operation].lats for host in range(hosts)])
        rate = metrics[operation.rate_key].value
        whole = metrics[operation.phase_rate_key].value
        assert whole is not None
        assert whole <= hosts * ranks / lats.mean() * 1e9 * (1 + 1e-9)
        if rate is not None:
            assert 0 <= rate <= hosts * ranks / lats.min() * 1e9 * (1 + 1e-9)
    assert run.record.started_real_ns == GO_NS
