"""What a session has its engine make of nothing, on fake hosts: how often, where, and if at all."""

from __future__ import annotations

import pytest

from iolab.analyse.judge import judge
from iolab.errors import HostError
from iolab.model.event import Event, Phase, PhaseStarted, SessionStatus
from iolab.model.metric import CheckResult, Level
from iolab.model.run import RunRecord, RunStatus
from iolab.run.engines.fio_null import NULL_FOLDER
from iolab.run.hosts.fake import FakeHost
from iolab.run.hosts.fake_fio import FakeLoad
from iolab.run.hosts.fake_script import FakeScript
from tests.run.session.stage import Notes, Stage

CEILING = 50_000
SCRIPT = FakeScript(null=FakeLoad(iops=CEILING, lat_ns=1000), loads=(FakeLoad(iops=20_000),))


def looks(host: FakeHost) -> list[dict[str, object]]:
    return [request for request in host.asked("run") if request["cwd"] == NULL_FOLDER]


def check(record: RunRecord) -> CheckResult:
    (found,) = [one for one in judge(record, {}).verdict.checks if one.code == "generator-bound"]
    return found


def test_each_kind_of_job_is_looked_at_once_and_every_run_knows_it() -> None:
    stage = Stage({"local": SCRIPT}, sets=("method.repeats=2",)).play()
    assert stage.status is SessionStatus.DONE, stage.fault
    assert len(stage.records) == 6
    assert len(looks(stage.hosts["local"])) == 3
    for record in stage.records:
        assert record.hosts[0].ceiling_iops == pytest.approx(CEILING)
        found = check(record)
        assert found.level is Level.VALID
        assert found.evidence["share"] == pytest.approx(0.4, rel=0.01)
        assert "40 % of the 50 k IOPS that fio makes there" in found.says
    stage.assert_left_clean()


def test_all_hosts_look_at_once() -> None:
    stage = Stage({"c1": SCRIPT, "c2": SCRIPT}).play()
    phases = [one for one in stage.notes.of(PhaseStarted) if one.phase is Phase.CEILING]
    assert len(phases) == 3
    for host in stage.hosts.values():
        assert len(looks(host)) == 3
    assert {host.ceiling_iops for record in stage.records for host in record.hosts} == {CEILING}


def test_half_of_it_is_too_near() -> None:
    near = FakeScript(null=FakeLoad(iops=40_000, lat_ns=1000), loads=SCRIPT.loads)
    found = check(Stage({"local": near}).play().records[0])
    assert found.level is Level.INDICATIVE
    assert "fio may be the limit" in found.says


def test_a_look_that_fails_leaves_the_run_and_says_why() -> None:
    broken = FakeLoad(prints=b"", exit_code=1, stderr=b"fio: /dev/null: Permission denied\n")
    stage = Stage({"local": FakeScript(null=broken)}).play()
    assert {record.status for record in stage.records} == {RunStatus.DONE}
    (host,) = stage.records[0].hosts
    assert host.ceiling_iops is None
    assert "Permission denied" in host.ceiling_fault
    found = check(stage.records[0])
    assert found.level is Level.INDICATIVE
    assert "Could not be checked" in found.says
    assert "Permission denied" in found.says


def test_a_host_that_is_lost_meanwhile_fails_the_run() -> None:
    dies = FakeScript(null=FakeLoad(host_dies_at_s=0.1))
    stage = Stage({"local": dies}).play()
    assert isinstance(stage.fault, HostError) or stage.records[0].status is RunStatus.FAILED


def test_who_stops_is_not_kept_waiting() -> None:
    stage = Stage({"local": SCRIPT})

    def react(event: Event) -> None:
        if isinstance(event, PhaseStarted) and event.phase is Phase.CEILING:
            assert stage.stop is not None
            stage.stop.request()

    stage.notes = Notes(react)
    stage.play()
    assert stage.status is SessionStatus.INTERRUPTED
    stage.assert_left_clean()
