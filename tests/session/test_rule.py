"""Runs that a rule ends: the real rule on fleets of scripted fio, in virtual time."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import pytest

from iolab.analysis.steady import FleetStoppingRule
from iolab.core.events import IntervalReported, StoppingRuleStatus
from iolab.core.metric import VerdictLevel
from iolab.core.run import PlannedRun, RunRecord, RunStatus
from iolab.core.stopping import SteadinessStatus, StoppingRuleSettings
from iolab.hosts.barrier import StopRequest
from iolab.session.context import StoppingRule
from tests.fakes.fio import FakeLoad
from tests.fakes.script import FakeScript
from tests.judging import judge
from tests.session.stage import Notes, Stage

RULE = StoppingRuleSettings(shortest_s=60, longest_s=120, step_s=5, retained_s=30)
SETS = (
    "method.kind=adaptive",
    "method.shortest=60s",
    "method.longest=120s",
    "method.step=5s",
    "method.retained=30s",
    "method.repeats=1",
    "workload.rand-read.iodepth=8",
)


def rule_for(run: PlannedRun, hosts: Sequence[str]) -> StoppingRule:
    return FleetStoppingRule(hosts, RULE)


def played(sets: tuple[str, ...] = SETS, **scripts: FakeScript) -> Stage:
    stage = Stage(scripts=scripts or {"local": FakeScript()}, sets=sets, rule_for=rule_for)
    return stage.play()


def first(stage: Stage) -> RunRecord:
    return stage.records[0]


def test_a_steady_load_ends_at_the_second_satisfied_look() -> None:
    record = first(played())
    assert record.status is RunStatus.DONE
    assert record.failure is None
    assert record.rule == RULE
    (host,) = record.hosts
    assert host.stopped_early
    assert host.error is None
    assert 65 <= record.intervals.span_ns.sum() / 1e9 < 67


def test_a_decay_is_waited_out_and_not_counted() -> None:
    fading = FakeScript(loads=(FakeLoad(iops=1000, fading=(1.0, 3.0)),))
    stage = played(local=fading)
    record = first(stage)
    seconds = record.intervals.span_ns.sum() / 1e9
    assert 70 < seconds < 119
    result = judge(record, {})
    assert result.steadiness is not None
    assert result.steadiness.status is SteadinessStatus.OK
    assert result.steadiness.cut_s > 12
    assert result.metrics["iops"].value == pytest.approx(1000, rel=0.01)


def test_a_decay_that_goes_on_at_the_longest_is_never_valid() -> None:
    fading = FakeScript(loads=(FakeLoad(iops=1000, fading=(2.0, 200.0)),))
    record = first(played(local=fading))
    assert record.status is RunStatus.DONE
    assert not record.hosts[0].stopped_early
    result = judge(record, {})
    assert result.steadiness is not None
    assert result.steadiness.status is SteadinessStatus.TRANSIENT
    assert result.verdict.level is VerdictLevel.INVALID
    assert "startup-transient" in {check.code for check in result.verdict.objections}


def test_all_hosts_end_at_once_whatever_their_clocks_say() -> None:
    stage = played(
        near=FakeScript(loads=(FakeLoad(fading=(0.5, 4.0)),)),
        far=FakeScript(offset_ns=7_000_000_000, delay_s=0.08, loads=(FakeLoad(iops=300),)),
    )
    record = first(stage)
    assert record.status is RunStatus.DONE
    assert [host.stopped_early for host in record.hosts] == [True, True]
    ends = [record.intervals.end_real_ns[record.intervals.host == i].max() for i in (0, 1)]
    apart_s = (int(ends[1]) - int(ends[0])) / 1e9 - 7
    assert abs(apart_s) < 0.5
    result = judge(record, {})
    assert result.metrics["iops"].value == pytest.approx(1300, rel=0.01)


def test_the_stored_series_is_decided_as_the_live_one_was() -> None:
    fading = FakeScript(loads=(FakeLoad(iops=1000, fading=(1.0, 3.0)),))
    stage = played(local=fading)
    result = judge(first(stage), {})
    assert result.steadiness is not None
    looks = [event.message for event in stage.notes.of(StoppingRuleStatus)]
    assert looks[0] == "first look at 60 s"
    assert "steady, 2 of 2 looks" in looks
    seconds = first(stage).intervals.span_ns.sum() / 1e9
    assert 0 <= seconds - result.steadiness.seconds < 2


@dataclass
class StopAt:
    """The user stops when so many intervals were seen."""

    count: int
    stop: StopRequest = field(default_factory=StopRequest)

    def __call__(self, event: object) -> None:
        if isinstance(event, IntervalReported):
            self.count -= 1
            if self.count == 0:
                self.stop.request_stop()


def test_the_users_stop_stays_an_interruption() -> None:
    stopping = StopAt(20)
    notes = Notes(react=stopping)
    stage = Stage(sets=SETS, rule_for=rule_for, notes=notes, stop=stopping.stop).play()
    assert first(stage).status is RunStatus.INTERRUPTED
