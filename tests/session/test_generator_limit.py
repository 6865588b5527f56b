"""What a session has its engine make of nothing, on fake hosts: how often, where, and if at all."""

from __future__ import annotations

import asyncio
from itertools import pairwise

import pytest

from iolab.core.events import Event, SessionEnded, SessionPhase, SessionPhaseStarted, SessionStatus
from iolab.core.metric import CheckResult, VerdictLevel
from iolab.core.run import RunRecord, RunStatus
from iolab.errors import HostError
from iolab.loads.fileio.engine_facts import FILE_ENGINES, FIO_ENGINE
from iolab.loads.fileio.engines.fio import NULL_FOLDER
from tests.fakes.fio import FakeLoad
from tests.fakes.host import FakeHost
from tests.fakes.script import FakeScript
from tests.judging import judge
from tests.session.stage import HOST, STUDY, Notes, Stage

GENERATOR_LIMIT = 50_000
SCRIPT = FakeScript(
    null=FakeLoad(iops=GENERATOR_LIMIT, lat_ns=1000), loads=(FakeLoad(iops=20_000),)
)


def looks(host: FakeHost) -> list[dict[str, object]]:
    return [request for request in host.asked("run") if request["cwd"] == NULL_FOLDER]


def check(record: RunRecord) -> CheckResult:
    (found,) = [one for one in judge(record, {}).verdict.checks if one.code == "generator-bound"]
    return found


def test_trims_announce_no_look() -> None:
    device = '[target]\ndevice = "/dev/nvme0n1"\nserial = "E0001"\n'
    text = STUDY.format(hosts="").replace('[target]\npath = "/mnt/bench"\n', device)
    text = text.replace('rw = "write"', 'rw = "trim"').replace("iodepth = 4\n", "")
    stage = Stage({"local": SCRIPT}, text=text).play()
    begun = [
        (one.phase, one.run.point.workload)
        for one in stage.notes.of(SessionPhaseStarted)
        if one.run
    ]
    assert (SessionPhase.GENERATOR_LIMIT, "rand-read") in begun
    assert (SessionPhase.MEASURE, "seq-write") in begun
    assert (SessionPhase.GENERATOR_LIMIT, "seq-write") not in begun


def test_each_kind_of_job_is_looked_at_once_and_every_run_knows_it() -> None:
    stage = Stage({"local": SCRIPT}, sets=("method.repeats=2",)).play()
    assert stage.status is SessionStatus.DONE, stage.fault
    assert len(stage.records) == 6
    assert len(looks(stage.hosts["local"])) == 3
    for record in stage.records:
        assert record.hosts[0].generator_limit_iops == pytest.approx(GENERATOR_LIMIT)
        found = check(record)
        assert found.level is VerdictLevel.VALID
        assert found.evidence["share"] == pytest.approx(0.4, rel=0.01)
        assert "40 % of the 50 k IOPS" in found.message
    stage.assert_left_clean()


def test_all_hosts_look_at_once() -> None:
    begun: list[tuple[SessionPhase, float]] = []

    def react(event: Event) -> None:
        if isinstance(event, SessionPhaseStarted):
            begun.append((event.phase, asyncio.get_running_loop().time()))

    stage = Stage({"c1": SCRIPT, "c2": SCRIPT}, notes=Notes(react)).play()
    lasted = [
        after_s - at_s
        for (phase, at_s), (_, after_s) in pairwise(begun)
        if phase is SessionPhase.GENERATOR_LIMIT
    ]
    assert len(lasted) == 3
    load_s = FILE_ENGINES[FIO_ENGINE].generator_limit_load_s
    assert all(load_s <= seconds < 1.5 * load_s for seconds in lasted), lasted
    for host in stage.hosts.values():
        assert len(looks(host)) == 3
    assert {host.generator_limit_iops for record in stage.records for host in record.hosts} == {
        GENERATOR_LIMIT
    }


def test_each_set_of_hosts_looks_for_itself() -> None:
    hosts = "".join(HOST.format(name=name) for name in ("c1", "c2"))
    sets = ("workload.rand-read.hosts=1,2", "method.repeats=2")
    scripts = {"c1": SCRIPT, "c2": SCRIPT}
    stage = Stage(scripts, text=STUDY.format(hosts=hosts), sets=sets).play()
    assert stage.status is SessionStatus.DONE, stage.fault
    # Two depths alone and two of both, and the writes of both.
    assert {name: len(looks(host)) for name, host in stage.hosts.items()} == {"c1": 5, "c2": 3}
    assert {host.generator_limit_iops for record in stage.records for host in record.hosts} == {
        GENERATOR_LIMIT
    }


def test_half_of_it_is_too_near() -> None:
    near = FakeScript(null=FakeLoad(iops=40_000, lat_ns=1000), loads=SCRIPT.loads)
    found = check(Stage({"local": near}).play().records[0])
    assert found.level is VerdictLevel.INDICATIVE
    assert "fio may be the limit" in found.message


def test_a_look_that_fails_leaves_the_run_and_says_why() -> None:
    broken = FakeLoad(prints=b"", exit_code=1, stderr=b"fio: /dev/null: Permission denied\n")
    stage = Stage({"local": FakeScript(null=broken)}).play()
    assert {record.status for record in stage.records} == {RunStatus.DONE}
    (host,) = stage.records[0].hosts
    assert host.generator_limit_iops is None
    assert "Permission denied" in host.generator_limit_fault
    found = check(stage.records[0])
    assert found.level is VerdictLevel.INDICATIVE
    assert "Could not be checked" in found.message
    assert "Permission denied" in found.message


def test_a_limit_that_is_not_asked_for_is_not_measured_and_no_result_is_valid() -> None:
    stage = Stage({"local": SCRIPT}, sets=("method.generator_limit=false",)).play()
    assert looks(stage.hosts["local"]) == []
    assert SessionPhase.GENERATOR_LIMIT not in {
        one.phase for one in stage.notes.of(SessionPhaseStarted)
    }
    found = check(stage.records[0])
    assert found.level is VerdictLevel.INDICATIVE
    assert "generator_limit" in found.message


def test_a_host_that_is_lost_meanwhile_fails_the_run() -> None:
    dies = FakeScript(null=FakeLoad(host_dies_at_s=0.1))
    stage = Stage({"local": dies}).play()
    assert isinstance(stage.fault, HostError)
    assert stage.ended.status is SessionStatus.FAILED
    assert [record.status for record in stage.records] == [RunStatus.FAILED]
    assert len(looks(stage.hosts["local"])) == 1
    # The look itself found it, and not whatever would have come next.
    later = {SessionPhase.PROVE, SessionPhase.DROP_CACHES, SessionPhase.IDLE, SessionPhase.MEASURE}
    assert not later & {one.phase for one in stage.notes.of(SessionPhaseStarted)}


def test_who_stops_is_not_kept_waiting() -> None:
    endless = FakeScript(null=FakeLoad(hangs=True))
    stage = Stage({"local": endless})
    asked_s: list[float] = []

    def ask() -> None:
        assert stage.stop is not None
        asked_s.append(asyncio.get_running_loop().time())
        stage.stop.request_stop()

    def react(event: Event) -> None:
        if isinstance(event, SessionPhaseStarted) and event.phase is SessionPhase.GENERATOR_LIMIT:
            asyncio.get_running_loop().call_later(0.1, ask)
        if isinstance(event, SessionEnded):
            asked_s.append(asyncio.get_running_loop().time())

    stage.notes = Notes(react)
    stage.play()
    assert stage.status is SessionStatus.INTERRUPTED
    begun_s, ended_s = asked_s
    assert ended_s - begun_s < FILE_ENGINES[FIO_ENGINE].generator_limit_load_s
    assert [one["signal"] for one in stage.hosts["local"].asked("signal")] == ["INT"]
    assert len(looks(stage.hosts["local"])) == 1
    stage.assert_left_clean()
