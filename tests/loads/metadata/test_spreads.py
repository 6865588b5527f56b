"""How evenly and how much together hosts worked in each phase of metadata load."""

from __future__ import annotations

import pytest

from iolab.loads.metadata.analysis import host_evenness_by_operation
from iolab.loads.metadata.metrics import sum_metadata_phases
from iolab.loads.metadata.workload import MetadataOperation, operation_runs_of_host
from tests.analysis.records import SECOND
from tests.judging import judge
from tests.loads.metadata.records import Shape, made

HOUR_NS = 3600 * SECOND


def test_each_operation_names_its_own_slowest_and_fastest() -> None:
    record = made(
        3,
        shapes={
            (1, MetadataOperation.FILE_CREATE): Shape(lat_ns=8_000_000.0),
            (2, MetadataOperation.FILE_STAT): Shape(lat_ns=12_000_000.0),
        },
        offsets_ns=(0, HOUR_NS, -HOUR_NS),
    ).record
    found = host_evenness_by_operation(record, sum_metadata_phases(record))
    assert set(found) == {operation.key for operation in MetadataOperation}
    names = [host.host for host in record.hosts]
    assert found["file_create"].slowest == names[1]
    assert found["file_stat"].slowest == names[2]
    assert found["file_create"].max_over_min == pytest.approx(2.0, rel=0.1)
    assert found["file_stat"].max_over_min == pytest.approx(3.0, rel=0.1)
    assert found["file_read"].jain == pytest.approx(1.0, abs=0.01)


def test_starts_are_of_the_first_rank_and_ends_of_the_last_on_one_clock() -> None:
    late = 300_000_000
    record = made(
        2,
        shapes={(1, MetadataOperation.FILE_CREATE): Shape(starts_ns=(late, late, late, late + 1))},
        offsets_ns=(0, HOUR_NS),
    ).record
    spread = host_evenness_by_operation(record, sum_metadata_phases(record))["file_create"]
    assert spread.start_skew_ns == late
    ends = [
        run.last_end_real_ns - host.clock_offset_ns
        for host in record.hosts
        for run in operation_runs_of_host(host)
        if run.operation is MetadataOperation.FILE_CREATE and run.last_end_real_ns is not None
    ]
    assert spread.end_skew_ns == max(ends) - min(ends)
    assert 0.0 < spread.overlap < 1.0


def test_one_host_and_a_phase_that_a_host_missed_have_none() -> None:
    alone = made(1).record
    assert host_evenness_by_operation(alone, sum_metadata_phases(alone)) == {}
    result = judge(made(2).record, {})
    assert result.spread is None
    assert result.operation_spreads["file_remove"].overlap > 0.9
