"""Which jobs share a limit of their generator, and what it costs to look."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from iolab.loads.fileio.engine_facts import FILE_ENGINES, FIO_ENGINE, NATIVE_ENGINE
from iolab.loads.fileio.study import generator_limit_time_items, notes_on_disabled_generator_limit
from iolab.loads.fileio.workload import (
    AccessPattern,
    IoArrivals,
    Job,
    WrittenContents,
    job_for_generator_limit,
)
from tests.loads.metadata.test_metadata import metadata
from tests.plans import make_plan
from tests.study.studies import SMALL, load

READS = Job(FIO_ENGINE, AccessPattern.RANDREAD, 4096, 32, 4, 1 << 30)
WRITES = replace(READS, access=AccessPattern.RANDWRITE)
TRIMS = replace(READS, access=AccessPattern.RANDTRIM)


@pytest.mark.parametrize(
    "changes",
    [
        {"file_bytes": 1 << 20},
        {"files_per_job": 7},
        {"direct": False},
        {"rate_iops": 10, "arrivals": IoArrivals.POISSON},
        {"rate_bytes_per_s": 4096},
        {"options": (("fsync", "1"), ("thinktime", "1ms"), ("hipri", "1"))},
    ],
)
@pytest.mark.parametrize("job", [READS, WRITES])
def test_what_makes_a_job_wait_is_not_the_generators(job: Job, changes: dict[str, Any]) -> None:
    assert job_for_generator_limit(replace(job, **changes)) == job_for_generator_limit(job)


@pytest.mark.parametrize(
    "changes",
    [
        {"engine": NATIVE_ENGINE},
        {"access": AccessPattern.READ},
        {"iodepth": 1},
        {"numjobs": 1},
        {"ioengine": "io_uring"},
        {"options": (("iodepth_batch", "8"),)},
    ],
)
def test_how_ios_are_made_is(changes: dict[str, Any]) -> None:
    assert job_for_generator_limit(replace(READS, **changes)) != job_for_generator_limit(READS)


def test_only_blocks_that_are_filled_have_a_size() -> None:
    large: dict[str, Any] = {"block_bytes": 1 << 20, "contents": WrittenContents.RANDOM}
    assert job_for_generator_limit(replace(READS, **large)) == job_for_generator_limit(READS)
    assert job_for_generator_limit(replace(WRITES, **large)) != job_for_generator_limit(WRITES)
    alike = (("dedupe_percentage", "50"),)
    assert job_for_generator_limit(replace(READS, options=alike)) == job_for_generator_limit(READS)
    assert job_for_generator_limit(replace(WRITES, options=alike)) != job_for_generator_limit(
        WRITES
    )


def test_a_mix_is_as_costly_as_most_of_it() -> None:
    costly = replace(
        WRITES, contents=WrittenContents.RANDOM, options=(("buffer_compress_percentage", "50"),)
    )
    mixed = replace(costly, access=AccessPattern.RANDRW, read_percent=49)
    assert job_for_generator_limit(mixed) == job_for_generator_limit(costly)
    for percent in (50, 100):
        reads = job_for_generator_limit(replace(mixed, read_percent=percent))
        assert reads == job_for_generator_limit(READS)
        assert (reads.access, reads.contents) == (AccessPattern.RANDWRITE, WrittenContents.ZEROS)


def test_trims_stay_trims() -> None:
    assert job_for_generator_limit(TRIMS).access is AccessPattern.RANDTRIM


def test_each_kind_is_looked_at_once_for_each_set_of_hosts() -> None:
    study = load(SMALL, "method.repeats=3")
    ((message, seconds),) = generator_limit_time_items(study, make_plan(study).runs)
    assert (
        seconds == 2 * FILE_ENGINES[FIO_ENGINE].generator_limit_measurement_s
    )  # depths 1 and 8: the mix mostly reads
    assert message.startswith("2 kinds of job")
    two = SMALL.replace("iodepth = [1, 8]", "iodepth = 1\nhosts = [1, 2]")
    two += '[[host]]\nname = "a"\n[[host]]\nname = "b"\n'
    study = load(two)
    ((_, seconds),) = generator_limit_time_items(study, make_plan(study).runs)
    assert (
        seconds == 2 * FILE_ENGINES[FIO_ENGINE].generator_limit_measurement_s
    )  # of one host, and of both


def test_who_makes_no_io_has_no_generator_limit() -> None:
    study = load(metadata())
    assert generator_limit_time_items(study, make_plan(study).runs) == ()


def test_looks_that_are_left_out_cost_nothing_and_are_told() -> None:
    usual = load(SMALL)
    quick = load(SMALL, "method.idle_watch=0", "method.generator_limit=false")
    plan, shorter = make_plan(usual), make_plan(quick)
    assert generator_limit_time_items(quick, shorter.runs) == ()
    # The idle watch takes place while a run rests: only the first run, which does not, is shorter.
    looks = sum(seconds for _, seconds in generator_limit_time_items(usual, plan.runs))
    watched = usual.method.idle_watch_s
    assert plan.demand.seconds - shorter.demand.seconds == pytest.approx(looks + watched)
    assert plan.digest != shorter.digest
    assert list(notes_on_disabled_generator_limit(usual, plan.points)) == []
    (limit,) = notes_on_disabled_generator_limit(quick, shorter.points)
    assert "generator_limit" in limit
