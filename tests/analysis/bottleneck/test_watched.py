"""The laws against numbers worked out by hand."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from iolab.analysis.kinds import judge_run
from iolab.core.host import HostRole
from iolab.core.resources import IssueRule, Resource
from iolab.core.run import DeviceDelta, MonitoredHost, ProcessorUse
from iolab.registry import analysis_kinds
from tests.analysis.bottleneck.planted import PORT, QUIET, cores, disk, facts, port, record, watched
from tests.analysis.records import JOB, SECOND, Burst
from tests.analysis.records import disk as disk_facts


def test_littles_law_and_where_the_latency_arises() -> None:
    flight = watched(record(QUIET)).concurrency
    assert flight is not None
    # 40,000 a second x 800 us = 32 in flight = 4 jobs x depth 8.
    assert flight.in_flight == pytest.approx(32.0)
    assert flight.requested_depth == 32
    assert flight.reached_depth_share == pytest.approx(1.0)
    assert flight.rate == pytest.approx(40_000)
    # The device took 640 of the 800 us.
    assert flight.latency_ns == pytest.approx(800_000)
    assert flight.device_ns == pytest.approx(640_000)
    assert flight.device_latency_share == pytest.approx(0.8)
    assert (flight.issue_rule, flight.has_one_per_job) == (IssueRule.CLOSED, False)


def test_the_utilisation_of_each_resource() -> None:
    seen = watched(record({**disk(0.6), **cores(0.9, 0.45), **port(250e6, 25e6)}))
    device = seen.busiest_use(Resource.DEVICE)
    assert device is not None
    assert (device.host, device.rate) == ("c1", 40_000)
    assert device.share == pytest.approx(0.6)
    assert device.queue == pytest.approx(25.6)  # 40,000 a second x 640 us
    core, every = seen.busiest_use(Resource.CORE), seen.busiest_use(Resource.PROCESSORS)
    assert core is not None
    assert every is not None
    assert core.name == "0"
    assert core.share == pytest.approx(0.9)
    assert every.share == pytest.approx((0.9 + 0.45 + 6 * 0.05) / 8)
    link = seen.busiest_use(Resource.PORT)
    assert link is not None
    assert link.name == f"{PORT} in"
    assert link.share == pytest.approx(0.2)  # of 1.25 GB/s
    job = seen.busiest_use(Resource.JOB)
    assert job is not None
    assert job.share == pytest.approx(0.3)  # the engine's 10 % user and 20 % system


def test_a_result_keeps_what_its_run_shows_of_its_resources() -> None:
    seen = record({**disk(0.6), **cores(0.9, 0.45), **port(250e6, 25e6)})
    assert judge_run(seen, {"c1": facts()}, analysis_kinds()).resources == watched(seen)
    hosts = tuple(replace(seen.hosts[0], host=f"c{number}") for number in range(65))
    assert (
        judge_run(replace(seen, hosts=hosts), {"c1": facts()}, analysis_kinds()).resources is None
    )


def test_a_load_that_is_bound_is_judged_by_its_own_cores_in_fleets_of_any_size() -> None:
    seen = record(cores(0.05, 0.98))
    use = ProcessorUse(SECOND, SECOND, 0, 1, SECOND, (1,), ())
    hosts = [replace(seen.hosts[0], host=f"c{number}", processor=use) for number in range(65)]
    known = {host.host: facts(host.host) for host in hosts}
    for some in (hosts[:2], hosts):
        verdict = judge_run(replace(seen, hosts=tuple(some)), known, analysis_kinds()).verdict
        (bound,) = (check for check in verdict.checks if check.code == "cpu-bound-client")
        assert bound.evidence["cores_busy_share"] == pytest.approx(0.98)


def test_a_port_of_nominal_speed_is_never_full() -> None:
    seen = watched(record({**QUIET, **port(250e6)}), {"c1": facts(driver="veth")})
    assert seen.busiest_use(Resource.PORT) is None
    (link,) = [one for one in seen.uses if one.resource is Resource.PORT]
    assert link.share is None
    assert link.rate == pytest.approx(250e6)


def test_memory_is_no_device_and_buffered_io_has_no_latency_there() -> None:
    seen = watched(record(QUIET), {"c1": facts(memory_backed=True)})
    assert seen.memory_backed
    flight = watched(record(QUIET, job=replace(JOB, direct=False))).concurrency
    assert flight is not None
    assert flight.device_latency_share is None


def test_a_network_target_without_watched_nodes_shows_no_device() -> None:
    seen = watched(record(QUIET), {"c1": facts(device=None, devices=(), network=True)})
    assert not seen.is_storage_monitored
    assert seen.concurrency is not None
    assert seen.concurrency.device_ns is None


def test_devices_of_watched_storage_nodes_are_those_of_a_network_target() -> None:
    node = MonitoredHost("s1", HostRole.STORAGE, None, (DeviceDelta("sdb", 1, 0, 1, 0),), 0, 0)
    found = record(
        QUIET, {**disk(0.97, each_ns=400_000, name="sdb"), **cores(0.2)}, monitored_hosts=(node,)
    )
    known = {"c1": facts(device=None, devices=(), network=True), "s1": facts("s1")}
    seen = watched(found, known)
    device = seen.busiest_use(Resource.DEVICE)
    assert device is not None
    assert (device.host, device.role, device.name) == ("s1", HostRole.STORAGE, "sdb")
    assert seen.concurrency is not None
    assert seen.concurrency.device_latency_share == pytest.approx(0.5)


@pytest.mark.parametrize(
    ("below", "named"),
    [
        ((1.0, 25.0), "nvme0n1"),  # busy as the one above: it is what is slow
        ((0.3, 0.5), "md0"),  # has time to spare: the one above is slow by itself
        ((1.0, 2.0), "md0"),  # busy with others' I/Os, while these wait above
    ],
)
def test_of_a_stack_the_lowest_device_is_named_that_holds_the_queue(
    below: tuple[float, float], named: str
) -> None:
    busy, queue = below
    growth = {
        **QUIET,
        **disk(1.0, name="md0"),
        **disk(busy, each_ns=queue / 40_000 * 1e9, name="nvme0n1"),
    }
    stacked = facts(device="md0", devices=("md0", "nvme0n1"))
    stacked = replace(stacked, disks=(disk_facts("md0", "nvme0n1"), disk_facts("nvme0n1")))
    device = watched(record(growth), {"c1": stacked}).busiest_use(Resource.DEVICE)
    assert device is not None
    assert device.name == named


def test_members_of_a_stripe_share_the_queue() -> None:
    growth = {**QUIET, **disk(1.0, name="md0")}
    members = ("sda", "sdb", "sdc", "sdd")
    for member in members:
        growth = {**growth, **disk(1.0, each_ns=6.4 / 40_000 * 1e9, name=member)}
    stacked = facts(device="md0", devices=("md0", *members))
    disks = (disk_facts("md0", *members), *map(disk_facts, members))
    device = watched(record(growth), {"c1": replace(stacked, disks=disks)}).busiest_use(
        Resource.DEVICE
    )
    assert device is not None
    assert device.name in members


def test_the_busiest_of_several_hosts_is_named() -> None:
    found = record({**disk(0.4), **cores(0.2)}, {**disk(0.9), **cores(0.7)})
    seen = watched(found)
    for resource in (Resource.DEVICE, Resource.CORE):
        use = seen.busiest_use(resource)
        assert use is not None
        assert use.host == "c2"
    assert seen.concurrency is not None
    assert seen.concurrency.requested_depth == 64
    assert seen.concurrency.in_flight == pytest.approx(64.0)


def test_an_asked_rate_makes_an_open_loop() -> None:
    paced = replace(JOB, rate_iops=10_000)
    flight = watched(record(QUIET, job=paced)).concurrency
    assert flight is not None
    assert (flight.issue_rule, flight.target_rate) == (IssueRule.RATE, 40_000)


def test_a_polling_engine_uses_a_core_however_little_it_does() -> None:
    polling = replace(JOB, options=(("hipri", "1"),))
    assert watched(record(QUIET, job=polling)).busiest_use(Resource.JOB) is None


def test_nothing_was_watched_of_a_run_without_counters() -> None:
    found = record(QUIET)
    seen = watched(replace(found, counters=record({**cores()}).counters))
    assert seen.busiest_use(Resource.DEVICE) is None
    assert not seen.is_storage_monitored


def test_one_io_on_each_host() -> None:
    single = replace(JOB, iodepth=1, numjobs=1)
    flight = watched(record(QUIET, job=single, burst=Burst(ios=1250))).concurrency
    assert flight is not None
    assert flight.has_one_per_job
    assert flight.in_flight == pytest.approx(1.0)
