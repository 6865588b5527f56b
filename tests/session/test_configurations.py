"""Studies that compare configurations: folders taken on first need, each once, all left."""

from __future__ import annotations

import pytest

from iolab.core.events import SessionPhase, SessionPhaseStarted, SessionStarted, SessionStatus
from tests.fakes.script import FakeScript
from tests.session.stage import HOST, Stage

TWO = """
format = 1
id = "compare"
title = "Two configurations"
{hosts}
[[configuration]]
id = "a"
title = "A"
path = "{path_a}"
hosts = ["c1", "c2"]
[[configuration]]
id = "b"
title = "B"
path = "{path_b}"
hosts = ["c1"]
[[workload]]
id = "w"
title = "Random reads"
engine = "fio"
rw = "randread"
bs = "4k"
iodepth = [1, 2]
numjobs = 1
filesize = "16m"
[method]
warmup = "0s"
runtime = "2s"
repeats = 2
settle = "0s"
order = "{order}"
"""


def compare(path_a: str, path_b: str, order: str = "as-written") -> Stage:
    hosts = "\n".join(HOST.format(name=name) for name in ("c1", "c2"))
    text = TWO.format(hosts=hosts, path_a=path_a, path_b=path_b, order=order)
    return Stage({"c1": FakeScript(), "c2": FakeScript()}, text=text).play()


@pytest.mark.parametrize("order", ["as-written", "randomised"])
def test_each_configuration_has_its_own_folder_and_files(order: str) -> None:
    stage = compare("/mnt/a", "/mnt/b", order)
    assert stage.status is SessionStatus.DONE, stage.fault
    assert [record.run for record in stage.records] == list(stage.plan.runs)
    opened = [str(request["path"]) for request in stage.hosts["c1"].asked("scratch_open")]
    assert sorted(opened) == ["/mnt/a", "/mnt/b"]
    assert len(stage.hosts["c2"].asked("scratch_open")) == 1
    for record in stage.records:
        expected = ("c1", "c2") if record.run.point.configuration == "a" else ("c1",)
        assert record.host_names == expected
    layouts = [e for e in stage.notes.of(SessionPhaseStarted) if e.phase is SessionPhase.LAY_OUT]
    assert len(layouts) == len(stage.plan.data_sets)
    assert len(stage.hosts["c1"].asked("scratch_close")) == 2
    stage.assert_left_clean()


def test_one_directory_of_two_configurations_is_taken_once() -> None:
    stage = compare("/mnt/a", "/mnt/a")
    assert stage.status is SessionStatus.DONE, stage.fault
    assert len(stage.hosts["c1"].asked("scratch_open")) == 1
    assert len(stage.hosts["c1"].asked("scratch_close")) == 1
    stage.assert_left_clean()


def test_each_run_names_the_facts_of_the_directory_it_used() -> None:
    stage = compare("/mnt/a", "/mnt/b")
    (started,) = stage.notes.of(SessionStarted)
    paths = {key: facts.target.path for key, facts in started.facts if facts.target}
    used = {
        (record.run.point.configuration, host.host, paths[host.target_key])
        for record in stage.records
        for host in record.hosts
    }
    assert used == {("a", "c1", "/mnt/a"), ("a", "c2", "/mnt/a"), ("b", "c1", "/mnt/b")}
