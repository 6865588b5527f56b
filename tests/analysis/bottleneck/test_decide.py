"""Planted bottlenecks are named, and nothing else is."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from msgspec.structs import replace

from iolab.analysis.bottleneck.decision import (
    BottleneckCause,
    LoadStep,
    decide_bottleneck,
    repeats_of_rate,
)
from iolab.core.host import CgroupDeviceIoLimit
from iolab.core.resources import Resource
from tests.analysis.bottleneck.planted import (
    QUIET,
    Growth,
    cores,
    disk,
    facts,
    port,
    record,
    watched,
)
from tests.analysis.records import JOB, Burst, engine_totals, host_run

BENT = LoadStep(
    "iodepth", 4, 8, 1.02, is_worthwhile=False, is_certain=True, has_single_runs=False, run_keys=()
)
PAYING = LoadStep(
    "iodepth", 4, 8, 1.9, is_worthwhile=True, is_certain=True, has_single_runs=False, run_keys=()
)
FULL_DISK = {**QUIET, **disk(1.0)}


def test_a_device_that_is_always_busy_and_gives_no_more_is_the_limit() -> None:
    found = decide_bottleneck(watched(record(FULL_DISK)), BENT)
    assert (found.cause, found.is_certain) == (BottleneckCause.DEVICE, True)
    assert found.limiting_use is not None
    assert (found.limiting_use.host, found.limiting_use.name) == ("c1", "nvme0n1")


def test_a_device_that_is_always_busy_and_still_gives_more_is_none() -> None:
    found = decide_bottleneck(watched(record(FULL_DISK)), PAYING)
    assert (found.cause, found.is_certain) == (BottleneckCause.LOAD, True)
    assert found.limiting_use is not None  # told beside: it has been busy all the time


def test_a_busy_device_whose_rate_still_rises_is_no_limit_yet() -> None:
    """Doubled load gives 30 % more: a device that serves many at once may be busy all the time."""
    for is_certain in (True, False):
        rising = replace(BENT, rate_ratio=1.3, is_certain=is_certain)
        found = decide_bottleneck(watched(record(FULL_DISK)), rising)
        assert (found.cause, found.is_certain) == (BottleneckCause.LOAD, False)
    flat = replace(BENT, rate_ratio=1.05)
    assert decide_bottleneck(watched(record(FULL_DISK)), flat).cause is BottleneckCause.DEVICE


def test_a_rate_that_still_rises_has_met_no_limit_of_software() -> None:
    """Doubled load gives 30 % more: waiting grows, but deeper queues may give more yet."""
    quick = watched(record({**QUIET, **disk(0.4, each_ns=80_000)}))
    for gain, cause in ((1.3, BottleneckCause.LOAD), (1.05, BottleneckCause.SOFTWARE)):
        found = decide_bottleneck(quick, replace(BENT, rate_ratio=gain))
        assert found.cause is cause
        assert found.is_certain is (cause is BottleneckCause.SOFTWARE)


def test_of_a_device_that_is_always_busy_at_one_load_alone_nothing_is_claimed() -> None:
    found = decide_bottleneck(watched(record(FULL_DISK)), None)
    assert (found.cause, found.is_certain) == (BottleneckCause.DEVICE_OPEN, False)


def test_a_step_that_intervals_do_not_support_makes_nothing_sure() -> None:
    doubtful = replace(BENT, is_certain=False)
    assert not decide_bottleneck(watched(record(FULL_DISK)), doubtful).is_certain
    assert decide_bottleneck(watched(record(QUIET)), doubtful).cause is not BottleneckCause.SOFTWARE


def test_one_core_at_its_limit_is_seen_beneath_a_quiet_mean() -> None:
    growth = {**disk(0.3, each_ns=80_000), **cores(1.0, 0.1)}
    seen = watched(record(growth))
    every = seen.busiest_use(Resource.PROCESSORS)
    assert every is not None
    assert every.share == pytest.approx(0.175)
    found = decide_bottleneck(seen, BENT)
    assert (found.cause, found.limiting_use is not None and found.limiting_use.name) == (
        BottleneckCause.CORE,
        "0",
    )


def test_a_busy_core_is_no_limit_where_more_load_pays_or_the_device_takes_the_time() -> None:
    aside = watched(record({**disk(0.3, each_ns=80_000), **cores(1.0, 0.1)}))
    assert decide_bottleneck(aside, PAYING).cause is BottleneckCause.LOAD
    slow = watched(record({**disk(1.0, each_ns=780_000), **cores(1.0, 0.1)}))
    assert decide_bottleneck(slow, BENT).cause is BottleneckCause.DEVICE


def test_all_cores_at_their_limit() -> None:
    growth = {**disk(0.3, each_ns=80_000), **cores(*[0.97] * 8)}
    for step in (None, BENT):
        found = decide_bottleneck(watched(record(growth)), step)
        assert (found.cause, found.is_certain) == (BottleneckCause.PROCESSORS, True)
        assert found.other_full_resources == ()


def test_jobs_that_use_a_whole_core_each() -> None:
    busy = replace(engine_totals(None, None), user_cpu_percent=31.0, system_cpu_percent=68.0)
    base = record({**disk(0.3, each_ns=80_000), **cores(0.6, 0.6)})
    hosts = (replace(host_run("c1", [Burst()]), totals=busy),)
    found = decide_bottleneck(watched(replace(base, hosts=hosts)), None)
    assert (found.cause, found.limiting_use is not None and found.limiting_use.share) == (
        BottleneckCause.JOB,
        0.99,
    )


def test_processors_and_a_device_both_full_are_told_by_where_the_latency_is() -> None:
    at_device = {**disk(1.0, each_ns=780_000), **cores(*[0.97] * 8)}
    found = decide_bottleneck(watched(record(at_device)), BENT)
    assert found.cause is BottleneckCause.DEVICE
    assert [one.resource for one in found.other_full_resources] == [Resource.PROCESSORS]
    memory = watched(record(at_device), {"c1": facts(memory_backed=True)})
    assert (
        decide_bottleneck(memory, BENT).cause is BottleneckCause.PROCESSORS
    )  # its device is the processors' work


def test_processors_that_others_use_do_not_hide_where_the_ios_wait() -> None:
    aside = watched(record({**disk(0.9, each_ns=780_000), **cores(*[0.97] * 8)}))
    found = decide_bottleneck(aside, BENT)
    assert (found.cause, found.is_certain) == (
        BottleneckCause.DEVICE,
        False,
    )  # it was not busy all the time
    assert [one.resource for one in found.other_full_resources] == [Resource.PROCESSORS]
    assert decide_bottleneck(aside, PAYING).cause is BottleneckCause.LOAD
    assert decide_bottleneck(aside, None).cause is BottleneckCause.DEVICE_OPEN
    some = watched(record({**disk(0.9, each_ns=500_000), **cores(*[0.97] * 8)}))
    assert decide_bottleneck(some, BENT).cause is BottleneckCause.PROCESSORS


def test_a_job_that_has_no_core_left_is_the_limit_wherever_its_ios_are() -> None:
    busy = replace(engine_totals(None, None), user_cpu_percent=31.0, system_cpu_percent=68.0)
    base = record({**disk(1.0, each_ns=780_000), **cores(0.6, 0.6)})
    hosts = (replace(host_run("c1", [Burst()]), totals=busy),)
    assert decide_bottleneck(watched(replace(base, hosts=hosts)), BENT).cause is BottleneckCause.JOB


def test_a_port_at_98_per_cent_of_its_speed() -> None:
    growth: Growth = {**QUIET, **port(0.98 * 1.25e9)}
    burst = Burst(ios=300_000, lat_ns=106_667)  # 1.23 GB/s
    found = decide_bottleneck(watched(record(growth, burst=burst)), BENT)
    assert (found.cause, found.is_certain) == (BottleneckCause.PORT, True)
    assert found.limiting_use is not None
    assert found.limiting_use.name == "ens1 in"
    assert found.limiting_use.share == pytest.approx(0.98)
    both = watched(record({**growth, **cores(*[0.97] * 8)}, burst=burst))
    assert [one.resource for one in decide_bottleneck(both, BENT).other_full_resources] == [
        Resource.PROCESSORS
    ]


def test_a_port_that_others_fill_is_not_the_limit() -> None:
    growth: Growth = {**QUIET, **port(0.98 * 1.25e9)}
    assert (
        decide_bottleneck(watched(record(growth)), None).cause is BottleneckCause.NONE
    )  # of 0.16 GB/s


def test_one_io_at_a_time_is_its_own_limit() -> None:
    single = replace(JOB, iodepth=1, numjobs=1)
    found = record(FULL_DISK, job=single, burst=Burst(ios=1250))
    assert decide_bottleneck(watched(found), None).cause is BottleneckCause.ONE_AT_A_TIME
    assert decide_bottleneck(watched(found), PAYING).cause is BottleneckCause.ONE_AT_A_TIME
    assert (
        decide_bottleneck(watched(found), BENT).cause is BottleneckCause.DEVICE
    )  # a second one gave nothing


def test_an_engine_that_does_not_keep_its_queue_full() -> None:
    slack = record(QUIET, burst=Burst(lat_ns=400_000))
    assert decide_bottleneck(watched(slack), None).cause is BottleneckCause.ENGINE


def test_a_rate_that_was_kept_is_the_limit_and_one_that_was_not_is_none() -> None:
    kept = replace(JOB, rate_iops=10_000)
    assert decide_bottleneck(watched(record(QUIET, job=kept)), None).cause is BottleneckCause.RATE
    missed = replace(JOB, rate_iops=20_000)
    assert decide_bottleneck(watched(record(QUIET, job=missed)), None).cause is BottleneckCause.NONE
    paused = replace(JOB, options=(("thinktime", "100"),))
    assert decide_bottleneck(watched(record(QUIET, job=paused)), None).cause is BottleneckCause.PACE


def test_a_curve_that_bends_with_nothing_busy_is_software() -> None:
    quick = {**QUIET, **disk(0.4, each_ns=80_000)}
    assert decide_bottleneck(watched(record(quick)), BENT).cause is BottleneckCause.SOFTWARE
    remote = {"c1": facts(device=None, devices=(), network=True)}
    assert decide_bottleneck(watched(record(quick), remote), BENT).cause is BottleneckCause.BEYOND


def test_a_device_that_holds_the_latency_without_being_always_busy_is_not_sure() -> None:
    found = decide_bottleneck(watched(record(QUIET)), BENT)
    assert (found.cause, found.is_certain) == (BottleneckCause.DEVICE, False)


def test_where_nothing_is_at_its_limit_nothing_is_named() -> None:
    found = decide_bottleneck(watched(record(QUIET)), None)
    assert (found.cause, found.is_certain, found.limiting_use) == (
        BottleneckCause.NONE,
        False,
        None,
    )


def test_processors_that_are_full_of_what_is_hardly_the_loads_are_not_sure() -> None:
    """A throttled device takes no latency by itself, and its jobs sleep while others compute."""
    quick = disk(0.05, each_ns=80_000)
    full = {**quick, **cores(*[0.97] * 8)}

    def found_with(percent: float) -> tuple[BottleneckCause, bool, str]:
        totals = replace(
            engine_totals(None, None), user_cpu_percent=percent, system_cpu_percent=0.0
        )
        base = record(full)
        run = replace(base, hosts=(replace(host_run("c1", [Burst()]), totals=totals),))
        found = decide_bottleneck(watched(run), BENT)
        assert found.limiting_use is not None
        assert found.limiting_use.own_load_share is not None
        return found.cause, found.is_certain, f"{found.limiting_use.own_load_share:.3g}"

    # Four jobs on four processors: what each uses of a core is what all use of the host.
    assert found_with(2.0) == (BottleneckCause.PROCESSORS, False, "0.02")
    assert found_with(60.0) == (BottleneckCause.PROCESSORS, True, "0.6")


def test_a_busy_device_is_the_limit_where_nobody_knows_its_part_of_the_latency() -> None:
    buffered = record(FULL_DISK, job=replace(JOB, direct=False))
    found = decide_bottleneck(watched(buffered), BENT)
    assert (found.cause, found.is_certain) == (BottleneckCause.DEVICE, True)


@pytest.mark.parametrize(
    ("limit", "name", "share"),
    [
        (CgroupDeviceIoLimit("nvme0n1", read_iops=40_000), "nvme0n1 reads", 1.0),
        (CgroupDeviceIoLimit("nvme0n1", read_bytes_per_s=160_000_000), "nvme0n1 bytes read", 1.024),
        (CgroupDeviceIoLimit("nvme0n1", read_iops=42_000, write_iops=10), "nvme0n1 reads", 0.952),
    ],
)
def test_a_limit_of_a_control_group_that_is_used_up_is_the_limit(
    limit: CgroupDeviceIoLimit, name: str, share: float
) -> None:
    """The client reads 40,000 blocks of 4 KiB a second, whatever else its device would give."""
    known = {"c1": replace(facts(), io_limits=(limit,))}
    for growth in (QUIET, {**QUIET, **cores(1.0, 0.1)}):
        found = decide_bottleneck(watched(record(growth), known), None)
        assert (found.cause, found.is_certain) == (BottleneckCause.IO_LIMIT, True)
        assert found.limiting_use is not None
        assert found.limiting_use.name == name
        assert found.limiting_use.share == pytest.approx(share, rel=1e-3)


@pytest.mark.parametrize(
    "limit",
    [
        CgroupDeviceIoLimit("nvme0n1", read_iops=60_000, write_iops=1),
        CgroupDeviceIoLimit("nvme1n1", read_iops=40_000),
        CgroupDeviceIoLimit("nvme0n1"),
    ],
)
def test_a_limit_that_is_not_used_up_or_of_another_device_is_none(
    limit: CgroupDeviceIoLimit,
) -> None:
    known = {"c1": replace(facts(), io_limits=(limit,))}
    found = decide_bottleneck(watched(record(FULL_DISK), known), BENT)
    assert found.cause is BottleneckCause.DEVICE


@pytest.mark.parametrize(
    ("read_iops", "share", "is_named"),
    [(42_200, 0.948, True), (43_900, 0.911, True), (44_100, 0.907, False)],
)
def test_a_limit_of_which_hardly_more_is_left_seems_the_limit(
    read_iops: int, share: float, *, is_named: bool
) -> None:
    known = {
        "c1": replace(facts(), io_limits=(CgroupDeviceIoLimit("nvme0n1", read_iops=read_iops),))
    }
    seen = watched(record(QUIET), known)
    use = seen.busiest_use(Resource.IO_LIMIT)
    assert use is not None
    assert use.share == pytest.approx(share, rel=1e-3)
    for step in (None, BENT):
        found = decide_bottleneck(seen, step)
        assert (found.cause is BottleneckCause.IO_LIMIT) is is_named
        assert not (is_named and found.is_certain)
    # A rate that still rises has not met it.
    assert decide_bottleneck(seen, PAYING).cause is BottleneckCause.LOAD


@pytest.mark.parametrize(("read_iops", "is_named"), [(42_200, True), (60_000, False)])
def test_a_nearly_used_limit_explains_more_than_cores_that_others_fill(
    read_iops: int, *, is_named: bool
) -> None:
    """Their I/Os take little of the latency at the device, and all cores are busy."""
    known = {
        "c1": replace(facts(), io_limits=(CgroupDeviceIoLimit("nvme0n1", read_iops=read_iops),))
    }
    full = record({**disk(0.05, each_ns=80_000), **cores(*[0.97] * 8)})

    def found_with(percent: float) -> tuple[BottleneckCause, bool]:
        totals = replace(
            engine_totals(None, None), user_cpu_percent=percent, system_cpu_percent=0.0
        )
        run = replace(full, hosts=(replace(host_run("c1", [Burst()]), totals=totals),))
        found = decide_bottleneck(watched(run, known), BENT)
        return found.cause, found.is_certain

    cause = BottleneckCause.IO_LIMIT if is_named else BottleneckCause.PROCESSORS
    assert found_with(2.0) == (cause, False)
    # Cores that the load itself fills are the limit all the same.
    assert found_with(60.0) == (BottleneckCause.PROCESSORS, True)


def test_reads_that_a_cache_answers_use_no_limit() -> None:
    known = {"c1": replace(facts(), io_limits=(CgroupDeviceIoLimit("nvme0n1", read_iops=40_000),))}
    cached = watched(record({**QUIET, **disk(0.1, ios=400.0)}), known)
    use = cached.busiest_use(Resource.IO_LIMIT)
    assert use is not None
    assert use.share == pytest.approx(0.01)
    assert decide_bottleneck(cached, BENT).cause is not BottleneckCause.IO_LIMIT


@pytest.mark.parametrize(
    ("at_device", "is_direct", "share"),
    [
        (36_400.0, True, 0.976),
        (36_400.0, False, 0.888),
        (35_000.0, True, 0.854),
        (41_500.0, True, 0.976),
    ],
)
def test_samples_that_miss_a_part_of_the_window_hide_no_limit(
    at_device: float, *, is_direct: bool, share: float
) -> None:
    """Direct I/O reaches the device, whose counters are sampled: a cache would take more of it."""
    known = {"c1": replace(facts(), io_limits=(CgroupDeviceIoLimit("nvme0n1", read_iops=41_000),))}
    job = replace(JOB, direct=is_direct)
    seen = watched(record({**QUIET, **disk(0.4, ios=at_device)}, job=job), known)
    use = seen.busiest_use(Resource.IO_LIMIT)
    assert use is not None
    assert use.share == pytest.approx(share, rel=1e-3)


def test_a_constant_rate_beside_processors_that_others_fill_is_a_set_limit() -> None:
    full = record({**disk(0.05, each_ns=80_000), **cores(*[0.97] * 8)})

    def found_with(percent: float, rates: Sequence[float]) -> tuple[BottleneckCause, bool]:
        totals = replace(
            engine_totals(None, None), user_cpu_percent=percent, system_cpu_percent=0.0
        )
        run = replace(full, hosts=(replace(host_run("c1", [Burst()]), totals=totals),))
        found = decide_bottleneck(watched(run), BENT, rates)
        return found.cause, found.is_certain

    alike, spread = (1500.0, 1499.0, 1497.0), (1500.0, 1470.0, 1440.0)
    assert found_with(2.0, alike) == (BottleneckCause.UNWATCHED_RATE_LIMIT, False)
    assert found_with(2.0, spread) == (BottleneckCause.PROCESSORS, False)
    # One slow repeat hides no limit that holds three others; two alike of three are chance.
    assert found_with(2.0, (*alike, 1294.0)) == (BottleneckCause.UNWATCHED_RATE_LIMIT, False)
    assert found_with(2.0, (1500.0, 1499.0, 1294.0)) == (BottleneckCause.PROCESSORS, False)
    assert found_with(2.0, (*alike, 1294.0, 1290.0, 1280.0))[0] is BottleneckCause.PROCESSORS
    # Cores that the load itself fills give one rate, too.
    assert found_with(60.0, alike) == (BottleneckCause.PROCESSORS, True)


def test_repeats_that_fell_short_of_a_limit_are_told_where_they_are_few() -> None:
    alike = (1500.0, 1499.0, 1497.0)
    assert repeats_of_rate((*alike, 1470.0)).rates_below_limit == (1470.0,)
    assert repeats_of_rate(alike).rates_below_limit == ()
    watched_limit = repeats_of_rate((169.2, 169.9, 136.5))
    assert (watched_limit.has_one_rate, watched_limit.rates_below_limit) == (False, (136.5,))
    assert repeats_of_rate((169.9, 168.0, 165.0)).rates_below_limit == ()
    assert repeats_of_rate((219.0, 191.0, 198.0)).rates_below_limit == ()
    assert repeats_of_rate(()).count == 0
