"""Where I/Os went, by a sample of the block layer."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from msgspec.structs import replace

from iolab.core.block_trace import BlockTrace
from iolab.core.metric import VerdictLevel
from iolab.core.run import RunRecord
from iolab.loads.fileio.sampled_checks import check_access_pattern
from iolab.loads.fileio.workload import AccessPattern, Job
from tests.analysis.checks_on import INDICATIVE, INVALID, VALID, ask, level
from tests.analysis.records import JOB, facts_of, healthy
from tests.analysis.traces import trace, way_trace

SMALL = replace(JOB, file_bytes=64 << 20)
"""Four jobs of 64 MiB: 65,536 blocks."""
BLOCKS = 4 * (64 << 20) // 4096


def run(job: Job = SMALL, **changes: Any) -> RunRecord:
    """The healthy run of that job with a sample of its reads."""
    record = healthy(trace=trace(read=way_trace(**changes)))
    point = replace(record.run.point, job=job)
    return replace(record, run=replace(record.run, point=point))


def drawn(blocks: int, count: int = 4096) -> tuple[int, ...]:
    return tuple(8 * int(place) for place in np.random.default_rng(2).integers(blocks, size=count))


def permuted(blocks: int, count: int = 4096) -> tuple[int, ...]:
    places = np.random.default_rng(3).choice(blocks, size=count, replace=False)
    return tuple(8 * int(place) for place in places)


def options(job: Job = SMALL, **told: str) -> Job:
    return replace(job, options=tuple(told.items()))


@pytest.mark.parametrize(
    ("sectors", "expected"),
    [
        (drawn(BLOCKS), VALID),
        (permuted(BLOCKS), VALID),
        (permuted(1 << 24), VALID),
        (drawn(BLOCKS * 6 // 10), INDICATIVE),
        (drawn(BLOCKS // 3), INVALID),
        (drawn(256), INVALID),
        (drawn(1), INVALID),
    ],
)
def test_random_io_goes_over_all_of_the_data_set(
    sectors: tuple[int, ...], expected: VerdictLevel
) -> None:
    assert level(check_access_pattern, run(sectors=sectors)) is expected


def test_a_part_of_the_data_set_is_named() -> None:
    answer = ask(check_access_pattern, run(sectors=drawn(256)))
    assert "256 MiB" in answer.message
    assert "MiB" in answer.message
    assert answer.evidence["covered_bytes"] == pytest.approx(256 * 4096, rel=0.1)
    assert answer.evidence["distinct_places"] == 256


@pytest.mark.parametrize(
    ("share", "expected"),
    [(0.0, VALID), (0.02, VALID), (0.3, INDICATIVE), (0.99, INVALID)],
)
def test_random_io_does_not_follow_itself(share: float, expected: VerdictLevel) -> None:
    assert level(
        check_access_pattern, run(sectors=drawn(BLOCKS), sequential=round(share * 50_000))
    ) is (expected)


def test_on_few_blocks_io_follows_itself_by_chance() -> None:
    tiny = replace(JOB, numjobs=1, file_bytes=4 << 20)
    record = run(tiny, sectors=drawn(1024), sequential=45_000)
    assert level(check_access_pattern, record) is VALID


def test_large_blocks_are_split_into_parts_that_follow() -> None:
    large = replace(SMALL, block_bytes=1 << 20)
    sectors = tuple(256 * place for place in drawn(1024, 4096))
    record = run(large, sectors=sectors, sequential=37_500, sizes=((256 << 10, 50_000),))
    assert level(check_access_pattern, record) is VALID


def test_zones_are_drawn_as_they_were_asked() -> None:
    zoned = options(random_distribution="zoned:90/1:10/99")
    hot, cold = BLOCKS // 100, BLOCKS * 99 // 100
    draw = np.random.default_rng(4)
    places = np.where(
        draw.random(4096) < 0.9, draw.integers(hot, size=4096), hot + draw.integers(cold, size=4096)
    )
    sectors = tuple(8 * int(place) for place in places)
    assert level(check_access_pattern, run(zoned, sectors=sectors)) is VALID
    assert level(check_access_pattern, run(sectors=sectors)) is INVALID
    assert level(check_access_pattern, run(zoned, sectors=drawn(64))) is INVALID


@pytest.mark.parametrize(
    "told",
    [
        {"random_distribution": "zipf:1.2"},
        {"random_distribution": "pareto:0.2"},
        {"random_distribution": "normal:50"},
        {"percentage_random": "30"},
    ],
)
def test_of_other_draws_nothing_is_known(told: dict[str, str]) -> None:
    record = run(options(SMALL, **told), sectors=drawn(16), sequential=40_000)
    assert level(check_access_pattern, record) is None


READS = replace(SMALL, access=AccessPattern.READ)


@pytest.mark.parametrize(
    ("job", "share", "expected"),
    [
        (READS, 0.99, VALID),
        (READS, 0.7, INDICATIVE),
        (READS, 0.01, INVALID),
        # One position for both directions.
        (replace(SMALL, access=AccessPattern.RW, read_percent=50), 0.5, VALID),
        (replace(SMALL, access=AccessPattern.RW, read_percent=50), 0.01, INVALID),
        # 32 files each: 128 streams in windows of 500.
        (replace(READS, files_per_job=32), 0.7, VALID),
        (replace(READS, files_per_job=32), 0.1, INVALID),
        (replace(READS, files_per_job=128), 0.0, None),
    ],
)
def test_sequential_io_follows_itself(
    job: Job, share: float, expected: VerdictLevel | None
) -> None:
    record = run(job, sequential=round(share * 50_000))
    if job.access is AccessPattern.RW:
        (host,) = record.hosts
        assert host.trace
        record = replace(
            record, hosts=(replace(host, trace=replace(host.trace, write=host.trace.read)),)
        )
    assert level(check_access_pattern, record) is expected


def test_without_a_sample_the_reason_is_told() -> None:
    record = healthy(trace=BlockTrace("nvme0n1", reason="no tracefs: EPERM"))
    answer = ask(check_access_pattern, record)
    assert answer.level is None
    assert "no tracefs: EPERM" in answer.message
    assert level(check_access_pattern, healthy()) is None
    assert level(check_access_pattern, run(bios=100)) is None
    assert level(check_access_pattern, run(replace(SMALL, direct=False))) is None


def test_passes_over_a_small_file_begin_at_its_start_again() -> None:
    small = replace(READS, file_bytes=4 << 20, block_bytes=1 << 20)
    assert level(check_access_pattern, run(small, sequential=round(0.72 * 50_000))) is VALID
    assert level(check_access_pattern, run(small, sequential=round(0.1 * 50_000))) is INVALID
    assert (
        level(check_access_pattern, run(replace(small, file_bytes=1 << 20), sequential=0)) is None
    )


@pytest.mark.parametrize("order", ["sequential", "random:4096"])
def test_files_that_are_served_one_after_the_other_are_not_looked_for_everywhere(
    order: str,
) -> None:
    many = options(replace(SMALL, files_per_job=50), file_service_type=order)
    assert level(check_access_pattern, run(many, sectors=drawn(1024))) is VALID
    assert level(check_access_pattern, run(many, sectors=drawn(1024), sequential=45_000)) is INVALID


def test_windows_without_ends_do_not_tell_streams_apart() -> None:
    missing = {"censored": 20_000, "timed": 30_000, "sequential": 0}
    assert level(check_access_pattern, run(READS, **missing)) is None


def test_what_a_flush_writes_is_not_the_job_s() -> None:
    writes = options(replace(SMALL, access=AccessPattern.RANDWRITE), fsync="1")
    record = run(writes)
    (host,) = record.hosts
    assert host.trace
    swapped = replace(host.trace, read=None, write=way_trace(sectors=drawn(16)))
    record = replace(record, hosts=(replace(host, trace=swapped),))
    assert level(check_access_pattern, record) is None


def test_file_systems_that_place_writes_themselves_are_not_judged() -> None:
    facts = {"c1": facts_of(fs_type="btrfs")}
    assert level(check_access_pattern, run(sectors=drawn(16)), facts) is None
    assert level(check_access_pattern, run(sectors=drawn(16))) is INVALID


@pytest.mark.parametrize(
    ("job", "reason"),
    [
        (options(replace(SMALL, access=AccessPattern.RANDWRITE), fsync="1"), "Flushed writes"),
        (replace(SMALL, access=AccessPattern.RANDTRIM), "Trims"),
        (options(percentage_random="50"), "50 %"),
        (options(random_distribution="zipf:1.2"), "zipf"),
    ],
    ids=["flushed", "trims", "percentage", "zipf"],
)
def test_without_an_answer_the_reason_is_the_job_s_own(job: Job, reason: str) -> None:
    answer = ask(check_access_pattern, run(job, sectors=drawn(BLOCKS)), {"c1": facts_of()})
    assert "sampled, which tell no pattern" not in answer.message
    if answer.level is None:
        assert reason in answer.message
