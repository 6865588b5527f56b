"""Checks of metadata load: what each objects to, and that a healthy run meets none."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from iolab.core.host import HostFacts
from iolab.core.metric import CheckResult, VerdictLevel
from iolab.core.run import CacheDropProof, PreRunActivity, RunRecord, RunStatus
from iolab.hosts.rates import CounterSeries
from iolab.loads.metadata.workload import (
    MetadataHostDetails,
    MetadataOperation,
    ReportedRunRates,
    operation_runs_of_host,
    reported_rates_of_run,
)
from tests.analysis.records import SECOND, series
from tests.facts import tells
from tests.judging import METADATA_CHECKS, verdict_of
from tests.loads.metadata.records import JOB, Shape, made, mdtest_record, metadata_view, with_phase

VALID, INDICATIVE, INVALID = VerdictLevel
PUBLISHED = {MetadataOperation.FILE_CREATE: 2_000.0, MetadataOperation.FILE_STAT: 2_300.0}
FOUR = {**PUBLISHED, MetadataOperation.FILE_READ: 2_200.0, MetadataOperation.FILE_REMOVE: 1_900.0}
STAT = MetadataOperation.FILE_STAT
CALM = tuple(
    series(metric, [share] * 80, host)
    for host in ("c1", "c2")
    for metric, share in (("busy_share", 0.3), ("steal_share", 0.0))
)
"""Cores of both hosts that have little to do, for as long as a run takes."""


@pytest.fixture(scope="module")
def record() -> RunRecord:
    return made().record


def ask(
    code: str,
    record: RunRecord,
    facts: dict[str, HostFacts] | None = None,
    telemetry: tuple[CounterSeries, ...] = CALM,
) -> CheckResult:
    check = next(one for one in METADATA_CHECKS if one.code == code)
    result = check(metadata_view(record, facts, telemetry))
    assert result.message.endswith(".")
    assert all(isinstance(v, int | float | str | None) for v in result.evidence.values())
    return result


def level(code: str, record: RunRecord) -> VerdictLevel | None:
    return ask(code, record).level


def all_levels(record: RunRecord) -> dict[str, VerdictLevel | None]:
    found = verdict_of(metadata_view(record, telemetry=CALM)).checks
    return {check.code: check.level for check in found}


def test_a_healthy_run_meets_no_objection(record: RunRecord) -> None:
    found = all_levels(record)
    assert {code for code, one in found.items() if one not in {VALID, None}} == set()
    assert list(found) == [check.code for check in METADATA_CHECKS]


def test_one_failed_operation_is_too_many(record: RunRecord) -> None:
    failing = with_phase(record, 1, STAT, completed=11_999, errors=(("ENOENT", 1),))
    said = ask("operations-failed", failing)
    assert said.level is INVALID
    assert "ENOENT 1 times" in said.message
    assert said.evidence["failed_ENOENT"] == 1


def test_what_was_skipped_or_never_reached_is_invalid(record: RunRecord) -> None:
    skipped = with_phase(record, 0, STAT, completed=11_000, skipped=1_000)
    assert ask("phase-incomplete", skipped).evidence["skipped"] == 1_000
    lost = replace(
        record.hosts[1], details=MetadataHostDetails(operation_runs_of_host(record.hosts[1])[:3])
    )
    one_left = replace(record, hosts=(record.hosts[0], lost))
    assert tells(ask("phase-incomplete", one_left).message, "1 of 2 hosts", "file-read")
    none = replace(
        record, hosts=tuple(replace(h, details=MetadataHostDetails(())) for h in record.hosts)
    )
    assert level("phase-incomplete", none) is INVALID


def test_counts_that_differ_are_invalid(record: RunRecord) -> None:
    claims = with_phase(record, 1, STAT, completed=12_001)
    said = ask("totals-disagree", claims)
    assert (said.level, said.evidence["host"], said.evidence["difference"]) == (INVALID, "c2", 1)


def test_ranks_that_never_met_have_no_rate_together() -> None:
    far = (60 * SECOND,) * 4
    apart = made(shapes={(1, STAT): Shape(starts_ns=far)}).record
    said = ask("rank-skew", apart)
    assert (said.level, said.evidence["phase"]) == (INVALID, "file-stat")


def test_stragglers_and_vague_clocks_are_told(record: RunRecord) -> None:
    late = (0, 0, 0, 9 * SECOND)
    slow = made(shapes={(1, STAT): Shape(starts_ns=late)}).record
    said = ask("rank-skew", slow)
    assert said.level is INDICATIVE
    assert "together" in said.message
    hosts = tuple(replace(host, clock_error_ns=80_000_000) for host in record.hosts)
    vague = ask("rank-skew", replace(record, hosts=hosts))
    assert vague.level is INDICATIVE
    assert "80 ms" in vague.message


@pytest.mark.parametrize(("files", "wanted"), [(3000, VALID), (1500, INDICATIVE), (20, INVALID)])
def test_short_phases_tell_little(files: int, wanted: VerdictLevel) -> None:
    short = made(job=replace(JOB, files_per_rank=files)).record
    assert level("phase-too-short", short) is wanted


@pytest.mark.parametrize(
    ("hosts", "shift", "share"), [(2, 4, 0.0), (2, 0, 1.0), (2, 3, 0.25), (3, 12, 1.0), (1, 4, 1.0)]
)
def test_who_made_what_a_host_stats(hosts: int, shift: int, share: float) -> None:
    job = replace(JOB, files_per_rank=10, rank_shift=shift)
    said = ask("client-answers", made(hosts, job).record)
    assert said.evidence["own_share"] == share
    assert said.level is (VALID if share == 0 else INDICATIVE)


def test_a_drop_of_caches_is_told_and_not_believed() -> None:
    record = made(1, replace(JOB, files_per_rank=10)).record
    proof = CacheDropProof(
        requested=True,
        resident_bytes_before=None,
        resident_bytes_after=None,
        methods=("drop_caches",),
    )
    dropped = replace(record, hosts=(replace(record.hosts[0], cache_drop=proof),))
    said = ask("client-answers", dropped)
    assert (said.level, said.evidence["caches_dropped"]) == (INDICATIVE, True)


def test_preempted_ranks_waited_for_a_processor(record: RunRecord) -> None:
    assert level("ranks-preempted", with_phase(record, 0, STAT, preemptions=100)) is VALID
    said = ask("ranks-preempted", with_phase(record, 1, STAT, preemptions=200))
    assert (said.level, said.evidence["host"]) == (INDICATIVE, "c2")


def test_busy_cores_are_looked_for_in_each_phase_by_itself(record: RunRecord) -> None:
    stat = next(p for p in operation_runs_of_host(record.hosts[0]) if p.operation is STAT)
    begun = ((stat.first_start_real_ns or 0) - record.started_real_ns) // SECOND
    ended = ((stat.last_end_real_ns or 0) - record.started_real_ns) // SECOND
    shares = [1.0 if begun <= second <= ended else 0.2 for second in range(80)]
    busy = (series("busy_share", shares), *CALM[2:])
    said = ask("cpu-bound-client", record, telemetry=busy)
    assert said.level is INDICATIVE
    assert "file-stat" in said.message


def test_what_others_did_before_is_held_against_the_runs_own(record: RunRecord) -> None:
    idle = PreRunActivity(watched_s=1.0, bytes_per_s=5e6, ios_per_s=500.0)
    hosts = tuple(replace(host, pre_run_activity=idle) for host in record.hosts)
    assert level("device-busy", replace(record, hosts=hosts)) is INDICATIVE
    unwatched = tuple(replace(host, pre_run_activity=None) for host in record.hosts)
    assert level("device-busy", replace(record, hosts=unwatched)) is INDICATIVE


def test_an_engine_that_ended_badly_is_invalid(record: RunRecord) -> None:
    def with_host(**changes: Any) -> RunRecord:
        return replace(record, hosts=(replace(record.hosts[0], **changes), record.hosts[1]))

    for bad in (with_host(error="EIO."), with_host(exit_code=3), with_host(exit_signal=9)):
        assert level("engine-errors", bad) is INVALID
    assert level("engine-errors", with_host(exit_signal=9, stopped_early=True)) is VALID
    assert level("engine-errors", record) is VALID


def test_few_operations_lose_the_median() -> None:
    few = made(job=replace(JOB, files_per_rank=10)).record
    assert level("percentile-support", few) is INDICATIVE
    assert "p99.99" in ask("percentile-support", made().record).message


def test_mdtest_is_believed_as_far_as_it_tells() -> None:
    found = all_levels(mdtest_record(FOUR))
    unseen = {code for code, one in found.items() if one not in {VALID, None}}
    assert unseen == {"operations-failed", "rank-skew"}
    assert INVALID not in found.values()


def test_rates_that_mdtest_did_not_print_are_missed() -> None:
    said = ask("phase-incomplete", mdtest_record(PUBLISHED))
    assert said.level is INVALID
    assert "file-read, file-remove" in said.message


@pytest.mark.parametrize(("factor", "wanted"), [(1.0, VALID), (0.95, INDICATIVE), (0.5, INVALID)])
def test_a_printed_rate_must_stand_for_what_was_asked(factor: float, wanted: VerdictLevel) -> None:
    record = mdtest_record(FOUR)
    told = tuple(
        replace(rate, ops_per_s=rate.ops_per_s * factor) for rate in reported_rates_of_run(record)
    )
    assert level("reported-rates", replace(record, details=ReportedRunRates(told))) is wanted
    untimed = tuple(replace(rate, seconds=None) for rate in reported_rates_of_run(record))
    assert level("reported-rates", replace(record, details=ReportedRunRates(untimed))) is INDICATIVE


def test_a_failed_run_that_measured_nothing_is_judged_by_itself(record: RunRecord) -> None:
    hosts = tuple(
        replace(host, details=MetadataHostDetails(()), error="EMFILE.") for host in record.hosts
    )
    found = all_levels(replace(record, hosts=hosts, status=RunStatus.FAILED, failure="EMFILE."))
    assert found["run-unfinished"] is INVALID
    assert "rank-skew" not in found
