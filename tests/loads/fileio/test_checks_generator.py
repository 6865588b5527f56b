"""The native engine's own pace, limit and verification, and what its open loops may be called."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from iolab.analysis.busy import is_resource_full
from iolab.analysis.checks.client import check_cpu_bound_client
from iolab.analysis.checks.run import (
    check_engine_errors,
    check_totals_disagree,
    check_verify_mismatch,
)
from iolab.core.generator import SubmissionLateness, VerifyTotals
from iolab.core.metric import VerdictLevel
from iolab.core.resources import Resource
from iolab.core.run import RunRecord
from iolab.core.workload import ServiceTimeDirection
from iolab.loads.fileio.checks import (
    check_coordinated_omission,
    check_depth_not_reached,
    check_generator_late,
    check_littles_law,
    check_near_generator_limit,
)
from iolab.loads.fileio.engine_facts import NATIVE_ENGINE
from iolab.loads.fileio.workload import IoArrivals, Job
from tests.analysis.bottleneck.planted import watched
from tests.analysis.checks_on import INDICATIVE, INVALID, VALID, ask, level
from tests.analysis.records import (
    GENERATOR,
    JOB,
    WRITES,
    Burst,
    bursts_record,
    engine_totals,
    healthy,
)
from tests.facts import tells

NATIVE = replace(JOB, engine=NATIVE_ENGINE)
OPEN = replace(NATIVE, rate_iops=10_000, arrivals=IoArrivals.POISSON)


def generated(record: RunRecord, **changes: Any) -> RunRecord:
    """The record of hosts whose engine told that of itself."""
    hosts = []
    for host in record.hosts:
        totals = host.totals or engine_totals(None, None)
        hosts.append(replace(host, totals=replace(totals, generator=replace(GENERATOR, **changes))))
    return replace(record, hosts=tuple(hosts))


def open_loop(
    *, ios: int = 40_000, response_ns: int = 1_000_000, job: Job = OPEN, **changes: Any
) -> RunRecord:
    """Thirty seconds of four jobs' arrivals, each I/O served in a tenth of a millisecond."""
    whole = Burst(ios=ios, lat_ns=response_ns)
    service = Burst(ios=ios, lat_ns=100_000, direction=ServiceTimeDirection.READ)
    return generated(bursts_record([whole, service], job=job), **changes)


def late(p99_ns: int) -> SubmissionLateness:
    return SubmissionLateness(count=1000, p50_ns=p99_ns // 10, p99_ns=p99_ns, max_ns=2 * p99_ns)


@pytest.mark.parametrize(
    ("p99_ns", "response_ns", "expected"),
    [
        (25_000, 1_000_000, VALID),
        # An interval of four jobs at 10,000 IOPS is 25 microseconds.
        (25_001, 1_000_000, INDICATIVE),
        (10_000, 102_400, VALID),
        (11_000, 102_400, INDICATIVE),
    ],
)
def test_lateness_is_held_to_the_response_time_and_the_arrivals(
    p99_ns: int, response_ns: int, expected: VerdictLevel
) -> None:
    record = open_loop(response_ns=response_ns, lateness=late(p99_ns))
    assert level(check_generator_late, record) is expected


def test_only_what_is_due_can_be_late() -> None:
    assert level(check_generator_late, healthy(NATIVE)) is None
    assert level(check_generator_late, healthy()) is None
    assert level(check_generator_late, open_loop()) is INDICATIVE  # the engine told no lateness


@pytest.mark.parametrize(
    ("limit", "expected"),
    [(80_001.0, VALID), (80_000.0, INDICATIVE), (40_000.0, INDICATIVE), (None, None)],
)
def test_half_of_the_rate_on_a_null_target_is_the_limit(
    limit: float | None, expected: VerdictLevel | None
) -> None:
    assert (
        level(check_near_generator_limit, healthy(NATIVE, generator_limit_iops=limit)) is expected
    )


def verified(**kinds: int) -> RunRecord:
    counts = {"torn": 0, "stale": 0, "misplaced": 0, "corrupt": 0, **kinds}
    found = VerifyTotals(
        checked=1000, first_mismatch_texts=("Block 7 of s1g.0.0 is stale.",), **counts
    )
    return generated(healthy(replace(NATIVE, verify=True)), verify=found)


@pytest.mark.parametrize("kind", ["torn", "stale", "misplaced", "corrupt"])
def test_one_wrong_block_is_enough(kind: str) -> None:
    answer = ask(check_verify_mismatch, verified(**{kind: 1}))
    assert answer.level is INVALID
    assert f"1 {kind}" in answer.message
    assert "Block 7 of s1g.0.0 is stale." in answer.message
    assert (answer.evidence["wrong"], answer.evidence[kind]) == (1, 1)


def test_the_first_wrong_block_of_each_kind_is_named_without_numbers_of_writes() -> None:
    record = verified(stale=2, torn=1, corrupt=1)
    host = record.hosts[0]
    assert host.totals is not None
    assert host.totals.generator is not None
    assert host.totals.generator.verify is not None
    verify = replace(
        host.totals.generator.verify,
        first_mismatch_texts=(
            "The block at 0 of s.0.0 is stale: it holds the write 0, and 179 was acknowledged.",
            "The block at 4096 of s.0.0 is stale: it holds the write 3, and 7 was acknowledged.",
            "The block at 8192 of s.0.0 is torn: it holds sectors of the writes 3 and 179.",
            "The block at 9216 of s.0.0 is corrupt: the sector at 0 does not match its checksum.",
        ),
    )
    answer = ask(check_verify_mismatch, generated(record, verify=verify))
    assert answer.message.endswith(
        "The block at 0 of s.0.0 is stale (zeros). The block at 8192 of s.0.0 is torn. "
        "The block at 9216 of s.0.0 is corrupt: the sector at 0 does not match its checksum."
    )


def test_blocks_that_are_right_or_nobody_looked_at() -> None:
    assert level(check_verify_mismatch, verified()) is VALID
    assert level(check_verify_mismatch, healthy()) is None
    asked = replace(NATIVE, verify=True)
    assert level(check_verify_mismatch, generated(healthy(asked))) is INDICATIVE
    only_writes = replace(WRITES, engine=NATIVE_ENGINE, verify=True)
    assert level(check_verify_mismatch, generated(healthy(only_writes))) is None


def test_a_rate_that_was_kept_has_latencies_from_when_ios_were_due() -> None:
    # All that the depth allows in flight: what waited was counted.
    answer = ask(check_coordinated_omission, open_loop(response_ns=10_000_000))
    assert answer.level is VALID
    assert "was due" in answer.message


@pytest.mark.parametrize(("ios", "unreached"), [(39_000, False), (40_000, True)])
def test_a_rate_that_was_not_kept_says_how_long_the_run_was(*, ios: int, unreached: bool) -> None:
    answer = ask(check_coordinated_omission, open_loop(ios=ios, unreached=unreached))
    assert answer.level is INDICATIVE
    assert "how long the run was" in answer.message
    assert "never begun" not in answer.message


def test_response_times_that_are_missing_are_told() -> None:
    left: dict[str, Any] = {"unsubmitted": 12_345, "oldest_unsubmitted_ns": 3_000_000_000}
    answer = ask(check_coordinated_omission, open_loop(ios=30_000, unreached=True, **left))
    assert answer.level is INDICATIVE
    assert tells(answer.message, "12.3 k more I/Os", "the oldest for 3 s")
    assert answer.evidence["unsubmitted"] == 12_345


@pytest.mark.parametrize("how", ["drained_ios", "unsubmitted"])
@pytest.mark.parametrize(
    ("lost", "response_ns", "expected"),
    [
        # Of 1.2 million I/Os 0.002 %, 0.1 % beyond the 40 that are always under way, and 0.4 %.
        (24, 1_000_000, VALID),
        (1_241, 1_000_000, VALID),
        (1_242, 1_000_000, INDICATIVE),
        (4_800, 1_000_000, INDICATIVE),
        # Where 4000 are always under way, a few more at the end are no stall.
        (4_800, 100_000_000, VALID),
    ],
)
def test_a_target_that_stalls_at_the_end_hides_its_slowest_ios(
    how: str, lost: int, response_ns: int, expected: VerdictLevel
) -> None:
    left: dict[str, Any] = {how: lost}
    answer = ask(check_coordinated_omission, open_loop(response_ns=response_ns, **left))
    assert answer.level is expected
    drained = lost if how == "drained_ios" else 0
    assert (answer.evidence["drained"], answer.evidence["unsubmitted"]) == (drained, lost - drained)
    missing = "still under way or not begun at the end, where 40 were on average"
    assert (missing in answer.message) is (expected is INDICATIVE)


def test_what_was_due_while_ios_hung_is_not_known() -> None:
    answer = ask(check_coordinated_omission, open_loop(ios=30_000, unreached=True, hung_ios=8))
    assert "is not known" in answer.message


def test_ios_that_hung_void_a_run_also_one_that_was_stopped() -> None:
    for stopped in (False, True):
        record = generated(healthy(), hung_ios=3)
        hosts = tuple(replace(host, stopped_early=stopped) for host in record.hosts)
        answer = ask(check_engine_errors, replace(record, hosts=hosts))
        assert answer.level is INVALID
        assert "gave up 3 I/Os that hung" in answer.message


def test_an_io_that_is_timed_twice_is_one() -> None:
    assert level(check_totals_disagree, open_loop()) is VALID


def test_what_waits_to_be_submitted_is_not_in_flight() -> None:
    # 40,000 I/Os a second of 0.1 ms each, which had waited for nine times that before.
    found = ask(check_littles_law, open_loop())
    assert found.level is None
    assert found.evidence["in_flight"] == pytest.approx(4.0)


def test_who_was_stopped_before_its_last_word_may_have_met_errors() -> None:
    stopped: dict[str, Any] = {"totals": None, "stopped_early": True}
    assert level(check_engine_errors, healthy(NATIVE, **stopped)) is INDICATIVE
    assert level(check_engine_errors, healthy(**stopped)) is VALID


def test_failed_ios_are_named_by_direction_and_errno() -> None:
    record = generated(healthy(NATIVE), errors=(("read EIO", 3), ("write ENOSPC", 1)))
    answer = ask(check_engine_errors, record)
    assert answer.level is INVALID
    assert tells(answer.message, "4 I/Os", "3 x read EIO", "1 x write ENOSPC")


@pytest.mark.parametrize(("used", "expected"), [(32, VALID), (31, INDICATIVE), (3, INVALID)])
def test_the_kernel_may_grant_less_room_than_asked(used: int, expected: VerdictLevel) -> None:
    record = generated(healthy(NATIVE), depth_asked=32, depth_used=used)
    assert level(check_depth_not_reached, record) is expected


def test_jobs_of_one_thread_share_a_core() -> None:
    # Four jobs of 30 % each: more than the one thread's core when they share it.
    assert level(check_cpu_bound_client, generated(healthy(NATIVE), threads=4)) is VALID
    assert level(check_cpu_bound_client, generated(healthy(NATIVE), threads=1)) is INDICATIVE


def test_the_bottleneck_knows_jobs_that_share_a_thread_too() -> None:
    for threads, full in ((4, False), (1, True)):
        job = watched(generated(healthy(NATIVE), threads=threads)).busiest_use(Resource.JOB)
        assert job is not None
        assert is_resource_full(Resource.JOB, job.share) is full


def test_a_rate_without_recorded_due_times_is_not_said_to_have_none() -> None:
    paced = ask(check_generator_late, healthy(replace(JOB, rate_iops=10_000)))
    assert paced.level is None
    assert tells(paced.message, "due", "fio")
    assert ask(check_generator_late, healthy()).message.startswith("No I/O was due")
