"""Clients that read what others wrote, jobs of a host's own, and clocks read twice."""

from __future__ import annotations

import pytest

from iolab.core.events import SessionStatus
from iolab.loads.fileio.workload import AccessPattern, Job
from tests.fakes.script import FakeScript
from tests.session.stage import HOST, STUDY, Stage

NAMES = ("c1", "c2", "c3")
FOLDERS = {name: f"/mnt/bench/iolab-scratch-{name}" for name in NAMES}


def play(scripts: dict[str, FakeScript], *sets: str, tables: str = "") -> Stage:
    hosts = tables or "".join(HOST.format(name=name) for name in scripts)
    return Stage(scripts, text=STUDY.format(hosts=hosts), sets=sets).play()


def one_file_system(**scripts: FakeScript) -> dict[str, FakeScript]:
    shared: dict[str, int] = {}
    return {name: scripts.get(name, FakeScript(shared=shared)) for name in NAMES}


@pytest.mark.parametrize("rotate", [1, 2])
def test_each_client_reads_what_another_wrote(rotate: int) -> None:
    stage = play(one_file_system(), f"target.rotate={rotate}")
    assert stage.status is SessionStatus.DONE, stage.fault
    for place, name in enumerate(NAMES):
        owner = NAMES[(place + rotate) % len(NAMES)]
        runs = stage.hosts[name].runs
        # Two layouts of its own would be one data set here; then two reads, then the writes.
        assert [request["cwd"] for request in runs] == [
            FOLDERS[name],
            FOLDERS[owner],
            FOLDERS[owner],
            FOLDERS[name],
        ]
        evicted = [path for ask in stage.hosts[name].asked("evict") for path in _paths(ask)]
        assert evicted
        assert all(path.startswith(f"{FOLDERS[owner]}/") for path in evicted)
        for record in stage.records:
            mine = next(host for host in record.hosts if host.host == name)
            reads = Job.require_type(record.run.point.job).access is AccessPattern.RANDREAD
            assert mine.read_from == (owner if reads else "")
    stage.assert_left_clean()


def _paths(request: dict[str, object]) -> list[str]:
    paths = request["paths"]
    assert isinstance(paths, list)
    return [str(path) for path in paths]


def test_clients_that_see_another_file_system_are_named() -> None:
    stage = play(one_file_system(c2=FakeScript(), c3=FakeScript()), "target.rotate=1")
    assert stage.status is None
    assert stage.fault is not None
    assert "files of 'c3' in /mnt/bench/" in str(stage.fault)
    assert "goes for 'c3'." in str(stage.fault)
    assert "leave target.rotate out" in str(stage.fault)
    assert stage.records == []
    stage.assert_left_clean()


def test_a_client_runs_its_own_number_of_jobs_on_as_many_files() -> None:
    tables = HOST.format(name="c1") + HOST.format(name="c2") + "numjobs = 5\n"
    stage = play({"c1": FakeScript(), "c2": FakeScript()}, tables=tables)
    assert stage.status is SessionStatus.DONE, stage.fault
    asked = {
        name: [len(_paths(ask)) for ask in host.asked("evict")]
        for name, host in stage.hosts.items()
    }
    assert asked == {"c1": [2, 2], "c2": [5, 5]}
    record = stage.records[0]
    assert ["numjobs=2" in host.job_file for host in record.hosts] == [True, False]
    assert "numjobs=5" in record.hosts[1].job_file
    assert [host.totals.jobs for host in record.hosts if host.totals] == [2, 5]


def test_the_clock_is_read_again_after_every_run() -> None:
    stage = play({"c1": FakeScript(), "c2": FakeScript(offset_ns=5_000_000)})
    for record in stage.records:
        for host in record.hosts:
            assert host.clock_offset_after_ns is not None
            assert host.clock_error_after_ns is not None
            drift = host.clock_offset_after_ns - host.clock_offset_ns
            assert abs(drift) <= host.clock_error_ns + host.clock_error_after_ns
