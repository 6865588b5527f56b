"""Checks of guests at each level, and that no two of them say the same of one cause."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from iolab.analysis.bottleneck.decision import BottleneckCause, decide_bottleneck
from iolab.analysis.bottleneck.resource_use import run_resources
from iolab.analysis.check import Check
from iolab.analysis.checks.client import check_cpu_bound_client, check_cpu_stolen
from iolab.analysis.view import RunView
from iolab.core.host import HostFacts
from iolab.core.metric import CheckResult, VerdictLevel
from iolab.core.run import RunRecord
from iolab.core.samples import empty_counter_table
from iolab.guests.analysis import (
    check_emulated_guest,
    check_guest_bound,
    check_guest_starved,
    check_limited_disk,
    check_modelled_disk,
)
from iolab.guests.guest import Accelerator, GuestCpuTime, GuestDiskKind, GuestRun
from iolab.hosts.telemetry import CounterCollector
from iolab.loads.fileio.checks import check_littles_law
from tests.analysis.checks_on import INDICATIVE, INVALID, VALID
from tests.analysis.records import BLOCK, SECOND, Burst
from tests.guests.fleets import (
    GUESTS,
    IDLE,
    IOPS,
    PLACES,
    READS,
    SETTINGS,
    blocks,
    counted,
    facts,
    fleet_of,
    given,
    guest,
    run,
    samples,
    view,
)
from tests.judging import KEY_VALUE_CHECKS, METADATA_CHECKS, judge

OF_GUESTS = (
    check_emulated_guest,
    check_modelled_disk,
    check_limited_disk,
    check_guest_starved,
    check_guest_bound,
)
USED = GuestCpuTime(wall_s=32.0, vcpu_run_s=30.0, vcpu_wait_s=1.0, cpu_s=31.0)


def ask(
    check: Check[RunView], record: RunRecord, known: dict[str, HostFacts] | None = None
) -> CheckResult:
    answer = check(view(record, known))
    assert answer.message.endswith(".")
    assert answer.message[0].isupper()
    return answer


def level(
    check: Check[RunView], record: RunRecord, known: dict[str, HostFacts] | None = None
) -> VerdictLevel | None:
    return ask(check, record, known).level


def one_odd(**changes: Any) -> tuple[GuestRun, ...]:
    """All guests in order but for one of the second node."""
    return (*map(guest, GUESTS[:3]), guest(GUESTS[3], **changes))


def slow(lat_ms: float, ios: int = IOPS) -> dict[str, list[Burst]]:
    """One guest of the second node with another latency, and perhaps another rate."""
    return {GUESTS[3]: [Burst(ios=ios, lat_ns=round(lat_ms * 1e6))]}


@pytest.mark.parametrize("check", OF_GUESTS, ids=lambda check: str(check.code))
def test_guests_in_order_are_valid(check: Check[RunView]) -> None:
    assert ask(check, counted(run())).rank <= VerdictLevel.VALID.rank


def test_other_load_of_guests_is_asked_what_runs_it() -> None:
    for checks in (METADATA_CHECKS, KEY_VALUE_CHECKS):
        assert {check_emulated_guest, check_modelled_disk, check_guest_starved} <= set(checks)


def test_one_emulated_guest_makes_the_run_indicative() -> None:
    answer = ask(check_emulated_guest, run(fleet=fleet_of(*one_odd(accelerator=Accelerator.TCG))))
    assert answer.level is INDICATIVE
    assert GUESTS[3] in answer.message
    every = fleet_of(*(guest(name, accelerator=Accelerator.TCG) for name in GUESTS))
    assert "4 of 4 clients" in ask(check_emulated_guest, run(fleet=every)).message


@pytest.mark.parametrize(
    ("told", "expected"),
    [("TCGTCGTCGTCG", INDICATIVE), ("KVMKVMKVM", VALID), ("Microsoft Hv", VALID), (None, VALID)],
)
def test_guests_of_somebody_else_tell_what_runs_them(
    told: str | None, expected: VerdictLevel
) -> None:
    known = facts()
    kernel = replace(known[GUESTS[0]].kernel, hypervisor=told)
    known[GUESTS[0]] = replace(known[GUESTS[0]], kernel=kernel)
    record = run(fleet=fleet_of(*map(given, GUESTS), settings=None))
    assert level(check_emulated_guest, record, known) is expected
    # Also of clients that nobody calls guests.
    assert level(check_emulated_guest, replace(record, fleet=None), known) is expected


def test_a_modelled_disk_is_no_storage() -> None:
    modelled = replace(SETTINGS, disk=GuestDiskKind.MODELLED, latency_ns=10_000_000)
    answer = ask(check_modelled_disk, run(fleet=fleet_of(*map(guest, GUESTS), settings=modelled)))
    assert answer.level is INDICATIVE
    assert "10 ms" in answer.message
    assert (
        level(check_modelled_disk, run(fleet=fleet_of(*map(given, GUESTS), settings=None))) is None
    )


@pytest.mark.parametrize(
    ("limit", "expected", "at_limit"),
    [
        (None, None, 0),
        (2000, VALID, 0),
        (1110, VALID, 0),
        (1060, INDICATIVE, 0),
        (1050, INDICATIVE, 4),
    ],
)
def test_a_limit_that_is_reached_shapes_the_result(
    limit: int | None, expected: VerdictLevel | None, at_limit: int
) -> None:
    settings = replace(SETTINGS, iops_limit=limit)
    answer = ask(check_limited_disk, run(fleet=fleet_of(*map(guest, GUESTS), settings=settings)))
    assert answer.level is expected
    if expected is INDICATIVE:
        assert answer.evidence["guests_at_limit"] == at_limit
        assert answer.evidence["guests_near_limit"] == 4
        assert ("near the limit" in answer.message) is (at_limit == 0)


@pytest.mark.parametrize(("limit", "is_certain"), [(1000, True), (1060, False)])
def test_the_limit_of_a_guests_disk_is_what_limits_it(limit: int, *, is_certain: bool) -> None:
    settings = replace(SETTINGS, iops_limit=limit)
    record = run(fleet=fleet_of(*map(guest, GUESTS), settings=settings))
    found = decide_bottleneck(run_resources(view(record)), None)
    assert (found.cause, found.is_certain) == (BottleneckCause.DISK_LIMIT, is_certain)
    free = replace(SETTINGS, iops_limit=None)
    record = run(fleet=fleet_of(*map(guest, GUESTS), settings=free))
    assert decide_bottleneck(run_resources(view(record)), None).cause is not found.cause


def test_one_guest_at_its_limit_is_enough() -> None:
    settings = replace(SETTINGS, iops_limit=2000)
    record = run(fleet=fleet_of(*map(guest, GUESTS), settings=settings), bursts=slow(4, 2000))
    answer = ask(check_limited_disk, record)
    assert (answer.level, answer.evidence["guest"]) == (INDICATIVE, GUESTS[3])
    assert "1 of 4 guests" in answer.message


@pytest.mark.parametrize(("waited_s", "expected"), [(0.3, VALID), (0.7, INDICATIVE)])
def test_processors_that_wait_for_the_nodes_are_told(
    waited_s: float, expected: VerdictLevel
) -> None:
    use = replace(IDLE, vcpu_wait_s=waited_s)
    answer = ask(check_guest_starved, run(fleet=fleet_of(*one_odd(use=use))))
    assert answer.level is expected
    assert answer.evidence["wait_share"] == pytest.approx(waited_s / 32)


def test_the_nodes_samples_in_the_window_go_before_the_whole_run() -> None:
    use = {"vcpu_run_ns": SECOND // 2, "vcpu_wait_ns": SECOND // 4}
    served = dict.fromkeys(GUESTS[:2], use)
    answer = ask(check_guest_starved, counted(run(), guests=served))
    assert answer.level is INDICATIVE
    assert answer.evidence["wait_share"] == pytest.approx(0.25)
    # Of two processors each waits half as much.
    two = replace(SETTINGS, vcpus=2)
    record = counted(run(fleet=fleet_of(*map(guest, GUESTS), settings=two)), guests=served)
    assert ask(check_guest_starved, record).evidence["wait_share"] == pytest.approx(0.125)


def test_what_is_stolen_from_a_node_is_missing_in_its_guests() -> None:
    stolen = {"0@0": {"idle_ns": SECOND * 9 // 10, "steal_ns": SECOND // 10}}
    answer = ask(check_guest_starved, counted(run(), cpu=stolen))
    assert answer.level is INDICATIVE
    assert answer.evidence["node"] == "n1"


def stealing(record: RunRecord) -> RunRecord:
    """The run with guests that tell of a tenth of their time as stolen."""
    made = counted(record)
    value = made.counters.value.copy()
    steals = [
        place
        for place, (host, metric) in enumerate(
            zip(made.counters.host.tolist(), made.counters.metric.tolist(), strict=True)
        )
        if metric == "steal_ns" and host < len(GUESTS)
    ]
    value[steals] = made.counters.seq[steals].astype("int64") * SECOND // 9
    return replace(made, counters=replace(made.counters, value=value))


def test_stolen_time_is_told_once() -> None:
    ours = stealing(run())
    assert level(check_cpu_stolen, ours) is None
    theirs = stealing(run(fleet=fleet_of(*map(given, GUESTS), settings=None)))
    # Their node counts nothing of them.
    rows = theirs.counters.scope.tolist()
    keep = [place for place, scope in enumerate(rows) if scope != "guest"]
    columns = ("host", "seq", "real_ns", "scope", "name", "metric", "value")
    counters = replace(
        theirs.counters, **{one: getattr(theirs.counters, one)[keep] for one in columns}
    )
    theirs = replace(theirs, counters=counters)
    answer = ask(check_cpu_stolen, theirs)
    assert answer.level is INDICATIVE
    assert answer.evidence["steal_share"] == pytest.approx(0.1)
    assert level(check_guest_starved, theirs) is None


@pytest.mark.parametrize(
    ("lat_ms", "ios", "expected"),
    [
        (8.0, IOPS, VALID),
        (8.0, 850, VALID),
        (8.0, 801, VALID),
        (8.0, 795, INVALID),
        (1.0, IOPS, INVALID),
    ],
)
def test_a_loop_that_runs_empty_is_the_guests(
    lat_ms: float, ios: int, expected: VerdictLevel
) -> None:
    record = run(bursts=slow(lat_ms, ios))
    answer = ask(check_guest_bound, record)
    assert answer.level is expected, answer.message
    if expected is INVALID:
        assert answer.evidence["guest"] == GUESTS[3]
        # One cause, one objection.
        assert level(check_littles_law, record) is VALID
        assert level(check_cpu_bound_client, counted(record)) is VALID


def test_a_loop_that_is_a_little_empty_is_for_littles_law_to_tell() -> None:
    record = run(bursts=slow(8.0, 850))
    assert level(check_littles_law, record) is INDICATIVE
    alone = replace(run(bursts=slow(1.0)), fleet=None)
    assert level(check_littles_law, alone) is INVALID


def test_what_the_windows_edges_hide_is_granted() -> None:
    # 100 ms each over 1 s: a tenth of the I/Os may be cut off.
    def short(ios: int) -> RunRecord:
        every = {name: [Burst(ios=ios, lat_ns=100_000_000, spans=1)] for name in GUESTS}
        return run(bursts=every, fleet=fleet_of(*map(given, GUESTS)))

    assert level(check_guest_bound, short(60)) is VALID
    assert level(check_guest_bound, short(50)) is INVALID


@pytest.mark.parametrize(
    ("below_ms", "use", "expected"),
    [
        (4.1, USED, VALID),
        (3.9, USED, INVALID),
        (3.9, IDLE, INDICATIVE),
        (3.9, None, INDICATIVE),
        (0.5, replace(IDLE, vcpu_wait_s=21.0), INVALID),
    ],
)
def test_latency_that_the_hypervisor_knows_nothing_of(
    below_ms: float, use: GuestCpuTime | None, expected: VerdictLevel
) -> None:
    odd = one_odd(blocks=(blocks(lat_ms=below_ms),), use=use)
    answer = ask(check_guest_bound, run(fleet=fleet_of(*odd)))
    assert answer.level is expected, answer.message
    if expected is not VALID:
        assert answer.evidence["guest"] == GUESTS[3]
        assert answer.evidence["times"] == pytest.approx(8 / below_ms)


@pytest.mark.parametrize(
    ("accelerator", "expected"), [(Accelerator.KVM, INDICATIVE), (Accelerator.TCG, INVALID)]
)
def test_polling_for_an_idle_guest_on_kvm_is_no_work_of_the_guest(
    accelerator: Accelerator, expected: VerdictLevel
) -> None:
    odd = one_odd(blocks=(blocks(lat_ms=3.9),), use=USED, accelerator=accelerator)
    collector = CounterCollector()
    for place in range(len(GUESTS)):
        samples(collector, place, {"cpu": {"0@0": {"idle_ns": SECOND}}})
    record = replace(run(fleet=fleet_of(*odd)), counters=collector.pop_table())
    assert ask(check_guest_bound, record).level is expected


def test_what_entering_a_guest_costs_on_fast_disks_is_not_told() -> None:
    # 8 in flight of 60 us: 133,333 a second, of which the hypervisor sees 20 us.
    fast = {name: [Burst(ios=133_333, lat_ns=60_000)] for name in GUESTS}
    served = tuple(guest(name, blocks=(blocks(lat_ms=0.02),), use=USED) for name in GUESTS)
    assert level(check_guest_bound, run(bursts=fast, fleet=fleet_of(*served))) is VALID


def test_a_disk_at_its_limit_lets_both_wait() -> None:
    # 32 in flight at 200 a second: 160 ms each, and the window is 6 s.
    job = replace(READS, numjobs=4)
    held = {name: [Burst(ios=200, lat_ns=160_000_000, spans=6)] for name in GUESTS}
    served = tuple(
        guest(name, blocks=(blocks(1200 * BLOCK, lat_ms=158),), use=USED) for name in GUESTS
    )
    settings = replace(SETTINGS, iops_limit=200)
    record = run(job=job, bursts=held, fleet=fleet_of(*served, settings=settings))
    assert level(check_guest_bound, record) is VALID
    assert level(check_limited_disk, record) is INDICATIVE


def test_few_ios_say_nothing_of_latency() -> None:
    rare = {name: [Burst(ios=1, lat_ns=8_000_000_000)] for name in GUESTS}
    served = tuple(guest(name, blocks=(blocks(30 * BLOCK, lat_ms=1),), use=USED) for name in GUESTS)
    assert level(check_guest_bound, run(bursts=rare, fleet=fleet_of(*served))) is VALID


def test_a_paced_guest_of_somebody_else_cannot_be_judged() -> None:
    paced = replace(READS, rate_iops=IOPS)
    theirs = run(job=paced, fleet=fleet_of(*map(given, GUESTS), settings=None))
    assert level(check_guest_bound, theirs) is INDICATIVE
    assert level(check_guest_bound, run(job=paced)) is VALID
    closed = run(fleet=fleet_of(*map(given, GUESTS), settings=None))
    assert level(check_guest_bound, closed) is VALID


def test_guests_that_are_not_the_runs_hosts_are_nobodys() -> None:
    strangers = tuple(GuestRun(f"x{name}", PLACES[name]) for name in GUESTS)
    record = replace(run(), fleet=fleet_of(*strangers), counters=empty_counter_table())
    assert level(check_guest_bound, record) is None
    assert judge(record, facts()).nodes == ()
