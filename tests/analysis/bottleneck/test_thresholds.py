"""Where what is busy becomes what limits: evidence planted on either side of each threshold."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from iolab.analysis.bottleneck.decision import (
    BottleneckCause,
    BottleneckDecision,
    decide_bottleneck,
    load_step_of_best,
)
from iolab.core.resources import Resource
from tests.analysis.bottleneck.planted import (
    PORT,
    QUIET,
    Growth,
    cores,
    disk,
    facts,
    port,
    record,
    watched,
)
from tests.analysis.bottleneck.test_decide import BENT
from tests.analysis.findings.cells import curve
from tests.analysis.records import JOB, Burst, engine_totals
from tests.analysis.records import disk as disk_facts
from tests.loads.keyvalue.studies import BASE, summarised

ELSEWHERE = disk(0.3, each_ns=80_000)
"""A device with time to spare, that takes a tenth of the latency."""

LINK = 1.25e9
"""Bytes a second of the planted port."""


def limit_of(
    growth: Growth, burst: Burst | None = None, user_percent: float = 30.0
) -> BottleneckDecision:
    """What limits a run of that, where a doubled load gave nothing more."""
    totals = replace(engine_totals(None, None), user_cpu_percent=user_percent)
    planted = record({**QUIET, **ELSEWHERE, **growth}, burst=burst)
    hosts = (replace(planted.hosts[0], totals=replace(totals, system_cpu_percent=0.0)),)
    return decide_bottleneck(watched(replace(planted, hosts=hosts)), BENT)


@pytest.mark.parametrize(
    ("share", "cause", "is_certain"),
    [
        (0.90, BottleneckCause.SOFTWARE, True),
        (0.93, BottleneckCause.PORT, False),
        (0.97, BottleneckCause.PORT, True),
    ],
)
def test_a_port_is_full_from_95_per_cent_and_seems_the_limit_from_91(
    share: float, cause: BottleneckCause, *, is_certain: bool
) -> None:
    own = Burst(ios=300_000, lat_ns=106_667)  # nearly all that passes there is the load's
    growth = {**port(share * LINK), **disk(0.3, each_ns=10_000)}
    found = limit_of(growth, own)
    assert (found.cause, found.is_certain) == (cause, is_certain)


@pytest.mark.parametrize(
    ("share", "cause"), [(0.88, BottleneckCause.SOFTWARE), (0.92, BottleneckCause.PROCESSORS)]
)
def test_processors_are_full_from_90_per_cent(share: float, cause: BottleneckCause) -> None:
    assert limit_of(cores(*[share] * 8)).cause is cause


@pytest.mark.parametrize(
    ("share", "cause"), [(0.93, BottleneckCause.SOFTWARE), (0.97, BottleneckCause.CORE)]
)
def test_a_core_is_full_from_95_per_cent(share: float, cause: BottleneckCause) -> None:
    assert limit_of(cores(share)).cause is cause


@pytest.mark.parametrize(
    ("percent", "cause"), [(93.0, BottleneckCause.SOFTWARE), (97.0, BottleneckCause.JOB)]
)
def test_jobs_use_a_whole_core_from_95_per_cent(percent: float, cause: BottleneckCause) -> None:
    assert limit_of(cores(0.5), user_percent=percent).cause is cause


@pytest.mark.parametrize(("percent", "sure"), [(8.0, False), (12.0, True)])
def test_full_processors_are_the_loads_from_a_tenth_of_their_use(
    percent: float, *, sure: bool
) -> None:
    # Four jobs on four processors: what each uses of a core is what all use of the host.
    found = limit_of(cores(*[1.0] * 8), user_percent=percent)
    assert (found.cause, found.is_certain) == (BottleneckCause.PROCESSORS, sure)


@pytest.mark.parametrize(("busy", "sure"), [(0.93, False), (0.97, True)])
def test_a_device_is_always_busy_from_95_per_cent(busy: float, *, sure: bool) -> None:
    found = limit_of(disk(busy))
    assert (found.cause, found.is_certain) == (BottleneckCause.DEVICE, sure)


@pytest.mark.parametrize(
    ("each_ns", "cause"),
    [(376_000.0, BottleneckCause.SOFTWARE), (424_000.0, BottleneckCause.DEVICE)],
)
def test_ios_are_at_a_device_that_takes_half_of_their_latency(
    each_ns: float, cause: BottleneckCause
) -> None:
    for busy in (0.6, 1.0):  # be it busy in turns, or all the time with what is little
        assert limit_of(disk(busy, each_ns=each_ns)).cause is cause


@pytest.mark.parametrize(
    ("each_ns", "cause"),
    [(616_000.0, BottleneckCause.PROCESSORS), (664_000.0, BottleneckCause.DEVICE)],
)
def test_full_processors_are_aside_where_a_device_takes_four_fifths(
    each_ns: float, cause: BottleneckCause
) -> None:
    assert limit_of({**disk(1.0, each_ns=each_ns), **cores(*[0.97] * 8)}).cause is cause


@pytest.mark.parametrize(
    ("lat_ns", "cause"), [(616_000, BottleneckCause.ENGINE), (664_000, BottleneckCause.SOFTWARE)]
)
def test_an_engine_keeps_up_with_four_fifths_of_its_queue(
    lat_ns: int, cause: BottleneckCause
) -> None:
    assert limit_of({}, Burst(lat_ns=lat_ns)).cause is cause


@pytest.mark.parametrize(
    ("ios", "cause"), [(39_200, BottleneckCause.NONE), (39_800, BottleneckCause.RATE)]
)
def test_a_rate_is_kept_from_99_per_cent_of_what_was_asked(
    ios: int, cause: BottleneckCause
) -> None:
    asked = replace(JOB, rate_iops=10_000)  # by each of four jobs
    assert (
        decide_bottleneck(watched(record(QUIET, job=asked, burst=Burst(ios=ios))), None).cause
        is cause
    )


@pytest.mark.parametrize(("share", "seen"), [(0.45, False), (0.55, True)])
def test_a_port_counts_from_half_of_it_being_the_load(share: float, *, seen: bool) -> None:
    carried = 40_000 * 4096 / share
    link = watched(record({**QUIET, **port(carried)})).busiest_use(Resource.PORT)
    assert link is not None  # what it sends is little, and not others'
    assert (link.name == f"{PORT} in") is seen


@pytest.mark.parametrize(("rate", "seen"), [(0.8e6, False), (1.2e6, True)])
def test_a_port_of_unknown_speed_counts_from_a_megabyte_a_second(
    rate: float, *, seen: bool
) -> None:
    little = Burst(ios=200, lat_ns=160_000_000)
    planted = record({**QUIET, **port(rate)}, burst=little)
    uses = watched(planted, {"c1": facts(driver="veth")}).uses
    assert any(one.resource is Resource.PORT for one in uses) is seen


@pytest.mark.parametrize(("queue", "named"), [(11.5, "md0"), (14.0, "nvme0n1")])
def test_a_lower_device_is_waited_for_from_half_of_the_queue(queue: float, named: str) -> None:
    above, below = disk(1.0, name="md0"), disk(1.0, each_ns=queue / 40_000 * 1e9, name="nvme0n1")
    stacked = facts(device="md0", devices=("md0", "nvme0n1"))  # 25.6 are in flight at md0
    stacked = replace(stacked, disks=(disk_facts("md0", "nvme0n1"), disk_facts("nvme0n1")))
    device = watched(record({**QUIET, **above, **below}), {"c1": stacked}).busiest_use(
        Resource.DEVICE
    )
    assert device is not None
    assert device.name == named


@pytest.mark.parametrize(("gain", "pays"), [(1.36, False), (1.46, True)])
def test_a_doubled_load_pays_from_the_root_of_two(gain: float, *, pays: bool) -> None:
    points = list(summarised(curve(BASE, {4: 1000.0, 8: 1000.0 * gain}, spread=0.001)))
    step = load_step_of_best(points, points[-1], "threads", "ops_per_s")
    assert step is not None
    assert step.is_worthwhile is pays
