"""What an agent tells of a phase becomes intervals that add up, or is not believed."""

from __future__ import annotations

from typing import Any

import pytest

from iolab.core.histogram import MIDDLE_NS
from iolab.core.limits import WORD_CHARACTERS_MAX
from iolab.errors import HostError
from iolab.hosts.answers import MetadataIntervalAnswer, MetadataPhaseAnswer, read_answer
from iolab.hosts.message import Message
from iolab.loads.metadata.native import MetadataPhaseReader, ranks_by_host
from iolab.loads.metadata.workload import METADATA_ENGINE, MetadataJob, MetadataOperation

JOB = MetadataJob(METADATA_ENGINE, 2, 10, 0, file_bytes=100)
MEASURED: dict[str, Any] = {
    "phase": "file-create",
    "ops": 19,
    "errors": {"ENOSPC": 1},
    "skipped": 0,
    "bins": [[200, 12], [300, 7]],
    "latency_min_ns": 10,
    "latency_max_ns": 20,
    "latency_sum_ns": 1_000_000,
    "first_start_real_ns": 1,
    "last_start_real_ns": 2,
    "first_end_real_ns": 3,
    "last_end_real_ns": 4,
    "preemptions": 5,
    "cancelled": False,
    "timed_out": False,
}


def interval(bins: list[tuple[int, int]], ops: int | None = None) -> MetadataIntervalAnswer:
    count = sum(count for _, count in bins) if ops is None else ops
    return MetadataIntervalAnswer(from_real_ns=0, to_real_ns=10, ops=count, bins=tuple(bins))


def measured(**changes: Any) -> MetadataPhaseAnswer:
    message = Message("measured", {**MEASURED, **changes})
    return read_answer("c1", MetadataPhaseAnswer, message)


def reader() -> MetadataPhaseReader:
    (share,) = ranks_by_host(JOB, 1)
    made = MetadataPhaseReader(JOB, share, MetadataOperation.FILE_CREATE, first_seq=3)
    made.add_interval(interval([(200, 10)]))
    made.add_interval(interval([(200, 2), (300, 7)]))
    return made


def test_the_account_is_kept_and_latencies_sum_to_the_exact_total() -> None:
    read = reader()
    phase = read.build_operation_run(measured())
    assert (phase.requested, phase.completed, phase.errors, phase.skipped) == (
        20,
        19,
        (("ENOSPC", 1),),
        0,
    )
    assert (phase.lat_min_ns, phase.lat_max_ns, phase.preemptions) == (10, 20, 5)
    assert [one.seq for one in read.intervals] == [3, 4]
    parts = [one.directions[0] for one in read.intervals]
    assert [(part.ios, part.bytes) for part in parts] == [(10, 1000), (9, 900)]
    sums = [part.lat_sum_ns for part in parts]
    assert sum(sums) == pytest.approx(1_000_000)
    rough = [10 * MIDDLE_NS[200], 2 * MIDDLE_NS[200] + 7 * MIDDLE_NS[300]]
    assert sums[0] / sums[1] == pytest.approx(rough[0] / rough[1])


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"phase": "file-stat"}, "it is of phase 'file-stat'"),
        ({"ops": 18}, "18 done, 1 failed, 0 skipped are not the 20"),
        ({"errors": {}}, "19 done, 0 failed, 0 skipped are not the 20"),
        ({"errors": {}, "skipped": 2}, "are not the 20"),
        ({"bins": [[200, 12], [301, 7]]}, "its intervals hold other latencies"),
        ({"ops": 20, "errors": {}}, "its intervals hold 19 of 20 operations"),
    ],
)
def test_an_account_that_does_not_add_up_is_refused(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        reader().build_operation_run(measured(**changes))


def test_an_interval_that_contradicts_itself_is_refused() -> None:
    with pytest.raises(ValueError, match="its bins hold 3 of 4 operations"):
        reader().add_interval(interval([(200, 3)], ops=4))
    backwards = MetadataIntervalAnswer(from_real_ns=10, to_real_ns=9, ops=0, bins=())
    with pytest.raises(ValueError, match="ends before it begins"):
        reader().add_interval(backwards)


@pytest.mark.parametrize(
    "changes",
    [
        {"ops": -1},
        {"ops": 2**64},
        {"bins": [[1856, 1]]},
        {"bins": [[1, 1]] * 2000},
        {"bins": [[1]]},
        {"errors": {"E" * (WORD_CHARACTERS_MAX + 1): 1}},
        {"cancelled": None},
        {"phase": 3},
    ],
)
def test_nonsense_of_a_host_is_the_hosts_fault(changes: dict[str, Any]) -> None:
    with pytest.raises(HostError, match="'measured' that is malformed"):
        measured(**changes)
