"""Sessions over ssh in which one of three hosts fails at a stated moment, and goes on by policy."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import pytest

from iolab.core.events import (
    Event,
    IntervalReported,
    Notice,
    RunFinished,
    SessionPhase,
    SessionPhaseStarted,
    SessionStatus,
)
from iolab.core.host import HostSpec
from iolab.core.run import RunStatus
from iolab.hosts.barrier import StopRequest
from iolab.hosts.connect import create_hosts
from iolab.hosts.host import Host
from iolab.hosts.ssh import SshLinkSettings
from iolab.hosts.ssh_host import SshConnections
from iolab.registry import session_kinds
from iolab.session.reconnect import RetryPolicy
from iolab.session.session import run_session
from iolab.study.inventory import Inventory
from iolab.study.parse import StudyOverrides
from tests.fleet.bed import NO_CONFIG, Bed
from tests.plans import make_plan, parse_study
from tests.session.stage import Notes

pytestmark = pytest.mark.e2e

QUICK = SshLinkSettings(login_timeout_s=5.0, keepalive_s=0.3, keepalives=2, close_timeout_s=1.0)
STUDY = """\
format = 1
id = "faults"
[[workload]]
id = "read"
rw = "randread"
bs = "4k"
iodepth = 4
filesize = "8m"
[method]
warmup = "0s"
runtime = "2s"
settle = "0s"
idle_watch = 0
generator_limit = false
"""
PLANNED = 1


def begins(phase: SessionPhase) -> Callable[[Event], bool]:
    return lambda event: isinstance(event, SessionPhaseStarted) and event.phase is phase


def measures(event: Event) -> bool:
    return isinstance(event, IntervalReported)


def ends(event: Event) -> bool:
    """The last interval: what comes now is the engine's own summary."""
    return isinstance(event, IntervalReported) and event.elapsed_s > 1.5


@dataclass
class Accident:
    """Happens once, at the first event that `when` is true of."""

    when: Callable[[Event], bool]
    what: Callable[[], object]
    message: bool = False

    def __call__(self, event: Event) -> None:
        if not self.message and self.when(event):
            self.message = True
            self.what()


def play(fleet: Bed, policy: str, accident: Accident, *sets: str) -> tuple[SessionStatus, Notes]:
    """One session on the fleet, with the accident in it."""
    inventory = Inventory(fleet.inventory.read_text("utf-8"), "inventory.toml")
    options = StudyOverrides(
        set_arguments=(f"method.on_failure={policy}", *sets), inventory=inventory
    )
    study = parse_study(STUDY, "faults.toml", options)

    def reach(spec: HostSpec) -> Host:
        return create_hosts([spec], None, SshConnections(QUICK, NO_CONFIG))[spec.name]

    notes = Notes(accident)
    hosts = create_hosts(study.hosts, None, SshConnections(QUICK, NO_CONFIG))
    session = f"faults-{time.monotonic_ns()}"
    status = asyncio.run(
        run_session(
            study,
            make_plan(study),
            hosts,
            notes,
            StopRequest(),
            session_id=session,
            kinds=session_kinds(),
            host_factory=reach,
            retry_policy=RetryPolicy(limit_s=30.0, pause_s=0.5),
        )
    )
    assert accident.message
    return status, notes


def left_clean(fleet: Bed) -> None:
    for name in fleet.specs:
        fleet.wait_until_alone(name)
        assert list((fleet.fleet.folder(name) / "target").iterdir()) == []


@contextmanager
def restored(fleet: Bed, name: str) -> Iterator[None]:
    """Whatever happens, the host is reachable afterwards."""
    try:
        yield
    finally:
        fleet.link(name, "up")
        if "sshd" not in fleet.processes(name).values():
            fleet.start_sshd(name)


@pytest.mark.long
@pytest.mark.parametrize(
    ("when", "failed", "sets"),
    [
        (begins(SessionPhase.LAY_OUT), 0, ()),
        # The last phase before GO, which the other cases save themselves.
        (begins(SessionPhase.IDLE), 1, ("method.idle_watch=1s",)),
        (measures, 1, ()),
        (ends, 1, ()),
    ],
    ids=["layout", "before-go", "mid-run", "sending-results"],
)
def test_a_host_whose_sshd_dies_is_reached_again_and_the_run_tried_again(
    fleet: Bed, when: Callable[[Event], bool], failed: int, sets: tuple[str, ...]
) -> None:
    def restart() -> None:
        fleet.kill_sshd("c02")
        fleet.start_sshd("c02")

    with restored(fleet, "c02"):
        status, notes = play(fleet, "retry", Accident(when, restart), *sets)
    assert status is SessionStatus.DONE
    records = [event.record for event in finished(notes)]
    assert [record.status for record in records].count(RunStatus.DONE) == PLANNED
    assert [record.status for record in records].count(RunStatus.FAILED) == failed
    assert {record.excluded_hosts for record in records} == {()}
    assert {len(record.hosts) for record in records} == {3}
    assert any("'c02' is reached again" in notice.text for notice in notes.of(Notice))
    left_clean(fleet)


@pytest.mark.long
def test_a_host_whose_cable_is_pulled_is_gone_on_without(fleet: Bed) -> None:
    accident = Accident(measures, lambda: fleet.link("c03", "down"))
    with restored(fleet, "c03"):
        status, notes = play(fleet, "without-host", accident)
    assert status is SessionStatus.DONE
    records = [event.record for event in finished(notes)]
    assert [(record.status, record.excluded_hosts) for record in records] == [
        (RunStatus.FAILED, ()),
        (RunStatus.DONE, ("c03",)),
    ]
    assert len(records[0].intervals) > 0
    assert {host.host for host in records[-1].hosts} == {"c01", "c02"}
    left_clean(fleet)


def finished(notes: Notes) -> list[RunFinished]:
    return notes.of(RunFinished)
