"""Sessions that vary how many hosts make the load."""

from __future__ import annotations

import pytest

from iolab.core.events import SessionStatus
from tests.fakes.fio import FakeLoad
from tests.fakes.script import FakeScript
from tests.session.stage import HOST, STUDY, Stage

NAMES = ("c1", "c2", "c3")


@pytest.fixture(scope="module")
def grown() -> Stage:
    scripts = {name: FakeScript(loads=(FakeLoad(iops=1000),)) for name in NAMES}
    hosts = "".join(HOST.format(name=name) for name in NAMES)
    sets = ("workload.*.hosts=1,3",)
    return Stage(scripts, text=STUDY.format(hosts=hosts), sets=sets).play()


def test_a_points_load_is_made_by_the_first_hosts_alone(grown: Stage) -> None:
    assert grown.status is SessionStatus.DONE, grown.fault
    made = {(dict(r.run.point.axis_values)["hosts"], r.host_names) for r in grown.records}
    assert made == {(1, NAMES[:1]), (3, NAMES)}
    for record in grown.records:
        assert record.excluded_hosts == ()
        assert set(record.intervals.host.tolist()) == set(range(len(record.host_names)))
        assert len(record.host_names) == dict(record.run.point.axis_values)["hosts"]


def test_hosts_that_idle_are_held_and_left_clean(grown: Stage) -> None:
    runs = {name: len(host.runs) for name, host in grown.hosts.items()}
    assert runs["c2"] == runs["c3"]
    alone = sum(1 for record in grown.records if len(record.host_names) == 1)
    assert runs["c1"] == runs["c2"] + alone
    grown.assert_left_clean()
