"""A neighbour's load as an event of a session: begun, limited, ended and kept, on fake hosts."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from iolab.core.events import Event, RunFinished
from iolab.core.metric import VerdictLevel
from iolab.core.run import RunRecord, RunStatus
from iolab.core.scenario import PhaseEndReason, ScenarioOutcome
from tests.fakes.fio import FakeLoad
from tests.fakes.script import FakeScript, RefusedOnce
from tests.judging import judge
from tests.session.stage import Stage

HOST = (
    '[[host]]\nname = "{name}"\nkind = "command"\ncommand = ["reach", "{name}"]\npath = "/mnt/t"\n'
)
STUDY = """
format = 1
id = "noise"

[[workload]]
id = "victim"
engine = "fio"
rw = "randread"
bs = "4k"
iodepth = 4
rate_iops = 500
filesize = "16m"

[[workload]]
id = "noise"
engine = "fio"
rw = "randread"
bs = "4k"
numjobs = 2
filesize = "16m"

[[phase]]
id = "alone"
seconds = "20s"
[[phase]]
id = "neighbour"
seconds = "20s"
[[phase]]
id = "limited"
seconds = "20s"
[[phase]]
id = "again"
seconds = "20s"

[[event]]
id = "begin"
title = "A neighbour"
workload = "noise"
phase = "neighbour"
undo_phase = "again"

[[event]]
id = "limit"
limits = "begin"
io_limit = { read_iops = 300 }
phase = "limited"
undo_phase = "again"

[method]
warmup = "3s"
settle = "0s"
"""

UNTIL_THE_END = STUDY.replace('phase = "neighbour"\nundo_phase = "again"', 'phase = "neighbour"')
VICTIM, NOISE = FakeLoad(iops=500), FakeLoad(iops=300)


def played(
    *names: str, text: str = STUDY, sets: tuple[str, ...] = (), inventory: str = "", **script: Any
) -> Stage:
    """The session on hosts of those names; each has its loads in their order."""
    return prepared(*names, text=text, sets=sets, inventory=inventory, **script).play()


def prepared(
    *names: str, text: str = STUDY, sets: tuple[str, ...] = (), inventory: str = "", **script: Any
) -> Stage:
    """The same before it is played."""
    loads = {"loads": (VICTIM, NOISE)}
    scripts = {name: FakeScript(**{**loads, **script}) for name in names or "a"}
    hosts = f"format = 1\n{inventory}\n" + "".join(HOST.format(name=name) for name in scripts)
    return Stage(scripts=scripts, text=text, inventory=hosts, sets=sets)


def record_of(stage: Stage) -> tuple[RunRecord, ScenarioOutcome]:
    (record,) = stage.records
    assert record.scenario is not None
    return record, record.scenario


def level_of(record: RunRecord, code: str) -> VerdictLevel | None:
    return {check.code: check.level for check in judge(record, {}).verdict.checks}[code]


def test_a_neighbour_begins_and_ends_with_its_phases_and_is_kept_apart() -> None:
    stage = played()
    record, scenario = record_of(stage)
    assert record.status is RunStatus.DONE
    begun, limited = scenario.events
    spans = {span.id: span for span in scenario.phases}
    assert begun.start_real_ns is not None
    assert abs(begun.start_real_ns - spans["neighbour"].start_real_ns) < 0.1e9
    assert limited.start_real_ns is not None
    assert abs(limited.start_real_ns - spans["limited"].start_real_ns) < 0.1e9
    for event in (begun, limited):
        assert event.error == ""
        assert event.undone_real_ns is not None
        assert 0 <= event.undone_real_ns - spans["again"].start_real_ns < 2e9
    (run,) = record.neighbours
    assert (run.event, run.point.workload, run.host.host) == ("begin", "noise", "a")
    assert run.host.error is None
    assert record.neighbour_intervals is not None
    assert 300 * 38 <= record.neighbour_intervals.ios.sum() <= 300 * 42
    assert 500 * 80 <= record.intervals.ios.sum() <= 500 * 85
    assert [output.name for output in record.outputs] == ["fio.stdout", "begin.fio.stdout"]
    assert level_of(record, "neighbour-absent") is VerdictLevel.VALID
    assert stage.hosts["a"].left_behind == []


def rates_of(stage: Stage, host: str = "a") -> list[dict[str, Any]]:
    """What the load was limited to after it had begun."""
    rates = [request["rates"] for request in stage.hosts[host].asked("io_limit")]
    return [rate for rate in rates if isinstance(rate, dict)]


def test_a_limit_is_set_on_the_disks_that_the_agent_finds_and_tells() -> None:
    stage = played()
    assert rates_of(stage) == [{"read_iops": 300}, {}]
    (*_, begun) = stage.hosts["a"].asked("run")
    limit = begun["io_limit"]
    assert isinstance(limit, dict)
    assert limit["rates"] == {}
    record, _ = record_of(stage)
    assert record.neighbours[0].limited_disks == tuple(limit["devices"][-1:]) != ()


def test_a_named_host_makes_the_neighbours_load_alone() -> None:
    text = STUDY.replace('workload = "noise"', 'workload = "noise"\nhosts = ["b"]')
    stage = played("a", "b", text=text, loads=(NOISE,))
    record, _ = record_of(stage)
    assert [host.host for host in record.hosts] == ["a"]
    assert [run.host.host for run in record.neighbours] == ["b"]
    assert [len(rates_of(stage, name)) for name in "ab"] == [0, 2]
    assert [stage.hosts[name].left_behind for name in "ab"] == [[], []]


def test_without_hosts_every_client_makes_both_loads() -> None:
    record, _ = record_of(played("a", "b"))
    assert [run.host.host for run in record.neighbours] == ["a", "b"]
    assert [host.host for host in record.hosts] == ["a", "b"]


def test_a_neighbour_that_ends_by_itself_leaves_the_measured_load_alone() -> None:
    stage = played(loads=(VICTIM, FakeLoad(iops=300, killed_at_s=5.0)))
    record, scenario = record_of(stage)
    assert record.status is RunStatus.DONE
    assert "killed" in scenario.events[0].error
    assert level_of(record, "neighbour-absent") is VerdictLevel.INVALID
    assert 500 * 80 <= record.intervals.ios.sum() <= 500 * 85
    assert stage.hosts["a"].left_behind == []


def test_a_limit_that_its_host_refuses_is_an_event_that_failed() -> None:
    stage = played(refuses={"io_limit": ("unsupported", "no io controller")})
    record, scenario = record_of(stage)
    assert "no io controller" in scenario.events[1].error
    assert level_of(record, "event-failed") is VerdictLevel.INVALID
    assert record.neighbours[0].host.error is None


def test_a_neighbour_with_its_own_limit_begins_under_it() -> None:
    limited = 'workload = "noise"\nio_limit = { read_iops = 90 }'
    text = UNTIL_THE_END.replace('workload = "noise"', limited)
    stage = played(text=text)
    wanted = [run.get("io_limit") for run in stage.hosts["a"].asked("run")]
    assert [limit["rates"]["read_iops"] for limit in wanted if isinstance(limit, dict)] == [90]
    # Lifting the later limit leaves that one.
    assert [rates.get("read_iops") for rates in rates_of(stage)] == [300, 90]
    _, scenario = record_of(stage)
    assert [event.load_event for event in scenario.events] == ["", "begin"]


def test_a_neighbour_is_undone_when_it_is_told_to_end_and_not_when_its_engine_has_ended() -> None:
    """This engine is killed 15 s later; its last I/Os are those of before."""
    stage = played(loads=(VICTIM, FakeLoad(iops=300, heeds_int=False)))
    _, scenario = record_of(stage)
    begun, _ = scenario.events
    assert begun.undone_real_ns is not None
    assert 0 <= begun.undone_real_ns - scenario.phases[-1].start_real_ns < 0.1e9


def test_a_load_that_was_told_to_end_was_so_when_it_was_told_first() -> None:
    """The measured load ends while this engine is waited for, and so does that."""
    deaf = FakeLoad(iops=300, heeds_int=False)
    _, scenario = record_of(played(loads=(FakeLoad(iops=500, killed_at_s=68.0), deaf)))
    begun, _ = scenario.events
    again = scenario.phases[-1]
    assert again.ended_by is PhaseEndReason.LOAD
    assert begun.undone_real_ns is not None
    assert 0 <= begun.undone_real_ns - again.start_real_ns < 0.1e9


def test_a_limit_whose_lifting_is_cut_short_was_lifted_from_the_first_try_on() -> None:
    """The load does what it can from then on; its host answers half a second later."""
    text = STUDY.replace('phase = "neighbour"\nundo_phase = "again"', 'phase = "neighbour"')
    _, scenario = record_of(
        played(text=text, delay_s=0.3, loads=(FakeLoad(iops=500, killed_at_s=61.8), NOISE))
    )
    _, limit = scenario.events
    again = scenario.phases[-1]
    assert (again.id, again.ended_by) == ("again", PhaseEndReason.LOAD)
    assert again.seconds > 0.2
    assert limit.undone_real_ns is not None
    assert 0 <= limit.undone_real_ns - again.start_real_ns < 0.1e9


def test_a_load_whose_beginning_is_cut_short_leaves_no_task() -> None:
    """The measured load ends a second before the neighbour's would begin."""
    stage = prepared(loads=(FakeLoad(iops=500, killed_at_s=22.0), NOISE))
    left: list[str] = []

    def react(event: Event) -> None:
        if isinstance(event, RunFinished):
            names = (getattr(task.get_coro(), "__name__", "") for task in asyncio.all_tasks())
            left.extend(names)

    stage.notes.react = react
    stage.play()
    assert left
    assert "sleep" not in left


def test_of_limits_on_a_load_the_newest_holds_and_each_is_lifted_alone() -> None:
    second = """
[[event]]
id = "second"
limits = "begin"
io_limit = { read_iops = 90, read_bw = "8m" }
phase = "limited"
after = "5s"

[method]"""
    stage = played(text=UNTIL_THE_END.replace("[method]", second))
    limits = [(rates.get("read_iops"), rates.get("read_bytes_per_s")) for rates in rates_of(stage)]
    assert limits == [(300, None), (90, 8 << 20), (90, 8 << 20), (None, None)]


WITNESS = '[[witness]]\nid = "healthy"\nhost = "a"\nfile = "/sys/fake/state"\nequals = "ok"\n'
WITNESSED: dict[str, Any] = {"contents": {"/sys/fake/state": b"ok"}, "inventory": WITNESS}


def test_a_phase_that_a_witness_ends_waits_for_the_load_that_begins_in_it() -> None:
    """All is well long before; the load that the phase before had set up begins all the same."""
    text = UNTIL_THE_END.replace('seconds = "20s"', 'until = "healthy"\nlongest = "30s"', 2)
    text = text.replace('until = "healthy"\nlongest = "30s"', 'seconds = "20s"', 1)
    later = 'phase = "neighbour"\nafter = "8s"\nundo_phase = "limited"'
    text = text.partition('[[event]]\nid = "limit"')[0].replace('phase = "neighbour"', later)
    text += '[method]\nwarmup = "3s"\nsettle = "0s"\n'
    record, scenario = record_of(played(text=text, **WITNESSED))
    (begun,) = scenario.events
    until = scenario.phases[1]
    assert begun.error == ""
    assert begun.start_real_ns is not None
    assert until.start_real_ns + 7.9e9 < begun.start_real_ns < until.end_real_ns
    assert until.ended_by is PhaseEndReason.WITNESS
    assert record.neighbour_intervals is not None
    assert record.neighbour_intervals.ios.sum() <= 300 * 5


@pytest.mark.parametrize("is_listed_first", [False, True])
def test_a_limit_that_begins_with_its_load_waits_for_it(*, is_listed_first: bool) -> None:
    """After a phase that a witness ended a load begins late: its processes are set up then."""
    text = STUDY.replace('id = "alone"\nseconds = "20s"', 'id = "alone"\nseconds = "10s"')
    text = text.replace(
        '[[phase]]\nid = "neighbour"\nseconds = "20s"',
        '[[phase]]\nid = "well"\nuntil = "healthy"\nlongest = "30s"\n'
        '[[phase]]\nid = "neighbour"\nseconds = "20s"',
    ).replace('phase = "limited"', 'phase = "neighbour"')
    head, begin, rest = text.partition('[[event]]\nid = "begin"')
    begin_body, limit, tail = rest.partition('[[event]]\nid = "limit"')
    limit_body, method, end = tail.partition("[method]")
    if is_listed_first:
        text = head + limit + limit_body + begin + begin_body + method + end
    stage = played(text=text, **WITNESSED)
    record, scenario = record_of(stage)
    events = {event.id: event for event in scenario.events}
    assert events["limit"].error == ""
    start_ns = events["begin"].start_real_ns
    limit_ns = events["limit"].start_real_ns
    assert start_ns is not None
    assert limit_ns is not None
    assert scenario.phases[2].start_real_ns < start_ns <= limit_ns < start_ns + 1e9
    assert rates_of(stage)[0] == {"read_iops": 300}
    assert level_of(record, "event-failed") is VerdictLevel.VALID


def test_a_limit_that_its_host_refuses_is_no_part_of_a_later_one() -> None:
    second = """
[[event]]
id = "second"
limits = "begin"
io_limit = { read_bw = "8m" }
phase = "limited"
after = "5s"

[method]"""
    refused = RefusedOnce(io_limit=("unsupported", "no io controller"))
    stage = played(text=UNTIL_THE_END.replace("[method]", second), refuses=refused)
    _, scenario = record_of(stage)
    assert [bool(event.error) for event in scenario.events] == [False, True, False]
    assert rates_of(stage) == [{"read_iops": 300}, {}, {"read_bytes_per_s": 8 << 20}, {}]


def test_a_load_that_ends_early_ends_its_neighbour() -> None:
    stage = played(loads=(FakeLoad(iops=500, killed_at_s=30.0), NOISE))
    _, scenario = record_of(stage)
    assert scenario.events[0].undone_real_ns is not None
    assert stage.hosts["a"].left_behind == []
