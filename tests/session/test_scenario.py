"""Phases and events of a run: in their order, by their witness, and undone however it ends."""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import Callable, Mapping
from typing import Any

import pytest
from msgspec.json import decode, encode
from msgspec.structs import replace

from iolab.core.events import Event, Notice, SessionPhaseStarted
from iolab.core.host import TargetProbe
from iolab.core.metric import CheckResult, VerdictLevel
from iolab.core.run import RunRecord, RunStatus
from iolab.core.scenario import PhaseEndReason, ScenarioOutcome
from iolab.hosts.barrier import StopRequest
from tests.fakes.fio import FakeLoad
from tests.fakes.programs import FakeCall, FakeProgram
from tests.fakes.script import FakeScript, RefusedOnce
from tests.judging import judge
from tests.loads.fileio.fake_native import FakeNative
from tests.session.stage import Notes, Stage, do_nothing

STUDY = """
format = 1
id = "loss"

[[workload]]
id = "reads"
engine = "fio"
rw = "randread"
bs = "4k"
iodepth = 1
numjobs = 4
filesize = "16m"

[[phase]]
id = "before"
seconds = "20s"

[[phase]]
id = "degraded"
seconds = "15s"

[[phase]]
id = "rebuild"
until = "healthy"
longest = "30s"

[[phase]]
id = "after"
seconds = "10s"

[[event]]
id = "lose"
action = "break"
phase = "degraded"
after = "2s"
expect = "not healthy"
within = "5s"

[[event]]
id = "mend"
action = "mend"
phase = "rebuild"
after = "8s"

[method]
warmup = "3s"
settle = "0s"
"""

INVENTORY = """
format = 1

[[host]]
name = "a"
kind = "command"
command = ["reach", "a"]
path = "/mnt/bench"

[[action]]
id = "break"
host = "a"
file = "/sys/fake/state"
text = "broken"
undo_text = "ok"

[[action]]
id = "mend"
host = "a"
file = "/sys/fake/state"
text = "ok"

[[witness]]
id = "healthy"
host = "a"
file = "/sys/fake/state"
equals = "ok"
"""


def played(
    inventory: str = INVENTORY,
    sets: tuple[str, ...] = (),
    state: str = "ok",
    text: str = STUDY,
    stop: StopRequest | None = None,
    react: Callable[[Event], None] = do_nothing,
    files: Mapping[str, bytes] | None = None,
    **script: Any,
) -> Stage:
    """A session on one host whose setting says how it is."""
    contents = {"/sys/fake/state": state.encode(), **(files or {})}
    scripts = {"a": FakeScript(contents=contents, **script)}
    stage = Stage(scripts=scripts, text=text, inventory=inventory, sets=sets, stop=stop)
    stage.notes.react = react
    return stage.play()


def record_of(stage: Stage) -> tuple[RunRecord, ScenarioOutcome]:
    (record,) = stage.records
    assert record.scenario is not None
    return record, record.scenario


def objections(record: RunRecord) -> dict[str, CheckResult]:
    codes = {"phase-unfinished", "baseline-unhealthy", "event-failed", "event-unwitnessed"}
    found = judge(record, {}).verdict.checks
    asked = {check.code: check for check in found if check.code in {*codes, "event-late"}}
    assert {*codes, "event-late"} == set(asked)
    return {code: check for code, check in asked.items() if check.rank > VerdictLevel.VALID.rank}


def test_an_honest_run_goes_through_all_phases_and_objects_to_nothing() -> None:
    stage = played()
    record, scenario = record_of(stage)
    assert record.status is RunStatus.DONE
    assert [phase.id for phase in scenario.phases] == ["before", "degraded", "rebuild", "after"]
    assert [phase.ended_by for phase in scenario.phases] == [
        PhaseEndReason.TIME,
        PhaseEndReason.TIME,
        PhaseEndReason.WITNESS,
        PhaseEndReason.TIME,
    ]
    for before, after in zip(scenario.phases, scenario.phases[1:], strict=False):
        assert before.end_real_ns == after.start_real_ns
    event = scenario.events[0]
    assert event.start_real_ns is not None
    assert event.seen_real_ns is not None
    assert abs(event.start_real_ns - scenario.phases[1].start_real_ns - 2e9) < 0.5e9
    assert 0 < event.seen_real_ns - event.start_real_ns < 2e9
    assert event.is_undone
    assert stage.hosts["a"].agent.contents["/sys/fake/state"] == b"ok"
    assert record.runtime_s == pytest.approx(20)
    assert objections(record) == {}
    result = judge(record, {})
    assert result.scenario is not None
    assert [phase.id for phase in result.scenario.phases] == [phase.id for phase in scenario.phases]
    assert result.scenario.phases[1].baseline_share.value == pytest.approx(1, rel=0.02)
    assert result.scenario.detection_s is not None
    assert result.scenario.redundancy_s is not None
    assert result.scenario.redundancy_s.value == pytest.approx(21, abs=3)


def test_a_fault_came_after_the_last_question_that_was_answered_otherwise() -> None:
    """It cannot be told what was when the witness ended with neither of its codes."""
    codes = iter([*[0] * 28, 2, 2, 1, 1, *[0] * 200])

    async def state(_: FakeCall) -> int:
        await asyncio.sleep(0.2)
        return next(codes)

    file = 'file = "/sys/fake/state"\nequals = "ok"'
    inventory = INVENTORY.replace(file, 'command = ["/bin/state"]')
    _, scenario = record_of(played(inventory, programs={"state": state}))
    states = [answer.state for answer in scenario.answers]
    place = states.index(None)
    assert states[place - 1 : place + 3] == [True, None, None, False]
    event = scenario.events[0]
    assert event.unseen_real_ns == scenario.answers[place - 1].asked_real_ns
    assert event.seen_real_ns == scenario.answers[place + 2].real_ns
    faults = [answer.fault for answer in scenario.answers[place - 1 : place + 3]]
    assert [bool(fault) for fault in faults] == [False, True, True, False]
    assert "code 2" in faults[1]


def test_a_witness_that_is_asked_no_more_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("iolab.session.scenario.ANSWERS_MAX", 20)
    stage = played()
    _, scenario = record_of(stage)
    assert len(scenario.answers) == 20
    texts = [event.text for event in stage.notes.events if isinstance(event, Notice)]
    assert any("'healthy' is not asked any more" in text for text in texts)


def test_a_phase_that_undoes_is_ended_by_what_a_witness_says_after_that() -> None:
    """The witness says that all is well as the undo goes on, which takes six seconds."""
    text = STUDY.replace('expect = "not healthy"\nwithin = "5s"\n', "").replace(
        '[[event]]\nid = "mend"\naction = "mend"\nphase = "rebuild"\nafter = "8s"\n', ""
    )
    inventory = INVENTORY.replace('text = "broken"', 'text = "ok"', 1)
    sets = ("event.lose.undo_phase=rebuild",)
    _, scenario = record_of(played(inventory, sets, text=text, undo_s=6.0))
    (event,) = scenario.events
    phase = scenario.phases[2]
    assert phase.ended_by is PhaseEndReason.WITNESS
    undone_ns = event.undone_real_ns
    assert undone_ns is not None
    answers = [a for a in scenario.answers if undone_ns <= a.asked_real_ns < phase.end_real_ns]
    assert len(answers) >= 2


class RefusedTwice(RefusedOnce):
    """What a host refuses the first two times."""

    refused = 0

    def __getitem__(self, verb: str) -> tuple[str, str]:
        self.refused += 1
        return super().__getitem__(verb) if self.refused == 2 else self.setdefault(verb, ("", ""))


def test_an_event_that_needs_what_another_one_just_did_is_looked_at_again_when_it_is_due() -> None:
    """Two seconds before, as in the rehearsal, there was no process yet."""
    text = STUDY.replace(
        "[method]",
        '[[event]]\nid = "hang"\naction = "hang"\nphase = "degraded"\nafter = "3s"\n'
        'undo_phase = "after"\n\n[method]',
    )
    inventory = f'{INVENTORY}\n[[action]]\nid = "hang"\nhost = "a"\nstop = "/run/osd.pid"\n'
    refuses = RefusedTwice(resolve=("ENOENT", "there is no process"))
    stage = played(inventory, text=text, refuses=refuses)
    _, scenario = record_of(stage)
    hang = next(event for event in scenario.events if event.id == "hang")
    assert (hang.error, hang.is_undone) == ("", True)
    assert len(verbs_of(stage, "resolve")) == 3
    assert hang.start_real_ns is not None
    assert abs(hang.start_real_ns - hang.due_real_ns) < 0.5e9


def test_an_undo_is_written_down_before_its_event_and_struck_out_after_it() -> None:
    agent = played().hosts["a"].agent
    verbs = [verb for verb, _ in agent.asked if verb in ("undo_add", "step", "undo")]
    assert verbs == ["undo_add", "step", "step", "undo"]
    assert [step["text"] for step in agent.steps] == ["broken", "ok", "ok"]


def test_a_long_command_leaves_its_record_readable() -> None:
    setting = 'id = "mend"\nhost = "a"\nfile = "/sys/fake/state"\ntext = "ok"'
    words = f'"/bin/mend", "{"x" * 4000}", "{"y" * 4000}"'
    command = f'id = "mend"\nhost = "a"\ncommand = [{words}]'
    inventory = INVENTORY.replace(setting, command)
    assert inventory != INVENTORY
    _, scenario = record_of(played(inventory, files={"/bin/mend": b""}))
    assert scenario.events[1].action.startswith("/bin/mend xxx")
    assert decode(encode(scenario), type=ScenarioOutcome) == scenario


def test_a_load_that_ends_by_itself_leaves_its_phase_and_nothing_to_undo() -> None:
    load = FakeLoad(killed_at_s=30.0)
    stage = played(loads=(load,))
    record, scenario = record_of(stage)
    assert scenario.phases[-1].ended_by is PhaseEndReason.LOAD
    assert stage.hosts["a"].agent.contents["/sys/fake/state"] == b"ok"
    assert objections(record)["phase-unfinished"].level is VerdictLevel.INVALID


def test_a_phase_that_is_ended_by_its_limit_takes_no_time_of_the_last_one() -> None:
    inventory = INVENTORY.replace('text = "ok"\n\n[[witness]]', 'text = "bad"\n\n[[witness]]')
    # Between two looks at what the witness said.
    record, scenario = record_of(played(inventory, ("phase.rebuild.longest=12.05s",)))
    assert [phase.ended_by for phase in scenario.phases[2:]] == [
        PhaseEndReason.LIMIT,
        PhaseEndReason.TIME,
    ]
    assert [phase.seconds for phase in scenario.phases] == pytest.approx([20, 15, 12.05, 10])
    assert objections(record)["phase-unfinished"].level is VerdictLevel.INDICATIVE


def test_a_load_that_ends_a_moment_before_the_last_phase_went_through_all_of_it() -> None:
    # It begins with the warm-up of 3 s before the phases of 55 s.
    text = STUDY.replace('until = "healthy"\nlongest = "30s"', 'seconds = "10s"')
    for early_s, expected in ((0.05, PhaseEndReason.TIME), (1.0, PhaseEndReason.LOAD)):
        load = FakeLoad(killed_at_s=58.0 - early_s)
        _, scenario = record_of(played(loads=(load,), text=text))
        assert scenario.phases[-1].ended_by is expected


def test_an_event_that_does_nothing_is_found() -> None:
    inventory = INVENTORY.replace('text = "broken"', 'text = "ok"', 1)
    record, _ = record_of(played(inventory))
    assert objections(record)["event-unwitnessed"].level is VerdictLevel.INVALID


def test_an_event_that_is_refused_is_found() -> None:
    record, scenario = record_of(played(refuses={"step": ("EACCES", "it may not")}))
    assert "it may not" in scenario.events[0].error
    assert objections(record)["event-failed"].level is VerdictLevel.INVALID


@pytest.mark.parametrize(
    ("code", "reason", "words"),
    [
        ("refused", "/dev/sdz is not the study's", ("[[action]]",)),
        ("bad-request", 'there is no verb "resolve"', ("another iolab", "make setup")),
    ],
)
def test_a_refused_action_says_what_to_do(code: str, reason: str, words: tuple[str, ...]) -> None:
    """An agent of another version knows no such action: no correction of that helps."""
    setting = 'file = "/sys/fake/state"\ntext = "broken"\nundo_text = "ok"'
    inventory = INVENTORY.replace(setting, 'stop = "/run/osd.pid"')
    stage = played(inventory, ("event.lose.undo_phase=after",), refuses={"resolve": (code, reason)})
    assert stage.fault is not None
    (fault,) = stage.fault.faults
    assert "'break'" in fault.message
    text = f"{fault.message} {fault.hint}"
    assert all(word in text for word in words)
    assert ("[[action]]" in text) is (code == "refused")


def refusals(stage: Stage) -> list[str]:
    """Why a session did not begin, which then did nothing to its host."""
    assert stage.fault is not None
    assert stage.records == []
    assert stage.hosts["a"].agent.steps == []
    return [f"{fault.message} {fault.hint}" for fault in stage.fault.faults]


def test_a_fault_before_its_time_ends_a_session_before_anything_is_done() -> None:
    (refusal,) = refusals(played(state="broken"))
    for part in ("'healthy' on host 'a'", "'not healthy' already", "'lose'", "/sys/fake/state"):
        assert part in refusal


WITNESS_FILE = 'file = "/sys/fake/state"\nequals = "ok"'
COMMAND_WITNESS = 'command = ["/bin/state"]\nfield = "healthy"'


def printing(text: str, code: int = 0) -> FakeProgram:
    async def program(call: FakeCall) -> int:
        call.say(text.encode())
        return code

    return program


@pytest.mark.parametrize(
    ("program", "parts"),
    [
        (printing("not JSON"), ("'not JSON'", "no JSON object")),
        (printing('{"health": true}'), ("no key 'healthy'",)),
        (printing('{"healthy": "yes"}'), ('"yes"', "neither true nor false")),
        (printing("", 3), ("'/bin/state' ended with exit code 3",)),
        (None, ("/bin/state",)),
    ],
)
def test_a_witness_that_cannot_be_used_ends_a_session_before_anything_is_done(
    program: FakeProgram | None, parts: tuple[str, ...]
) -> None:
    inventory = INVENTORY.replace('file = "/sys/fake/state"\nequals = "ok"', COMMAND_WITNESS)
    assert inventory != INVENTORY
    programs = {"other": printing("")} if program is None else {"state": program}
    (refusal,) = refusals(played(inventory, programs=programs))
    for part in ("Witness 'healthy' on host 'a'", *parts, "[[witness]]"):
        assert part in refusal


def test_a_witness_that_is_silent_is_told_and_proves_nothing() -> None:
    """It may hang with a storage that is otherwise well: unknown is not what did not happen."""
    inventory = INVENTORY.replace('file = "/sys/fake/state"\nequals = "ok"', COMMAND_WITNESS)
    stage = played(inventory, programs={"state": printing('{"healthy": null}')})
    assert any("Witness 'healthy'" in notice.text for notice in stage.notes.of(Notice))
    record, scenario = record_of(stage)
    assert scenario.events[1].start_real_ns is not None
    found = objections(record)
    assert found["event-unwitnessed"].level is VerdictLevel.INDICATIVE
    assert "unknown" in found["event-unwitnessed"].message


def test_a_process_of_a_witness_that_outlives_its_kill_is_the_only_one() -> None:
    """More of them would take all places of the agent, and none would be left for an undo."""
    hung = asyncio.Event

    async def state(call: FakeCall) -> int:
        if call.files["/sys/fake/state"] == b"broken":
            with contextlib.suppress(asyncio.CancelledError):
                await hung().wait()
            await hung().wait()  # It was killed, and hangs on in the storage.
        return 0

    inventory = INVENTORY.replace(WITNESS_FILE, 'command = ["/bin/state"]')
    stage = played(inventory, programs={"state": state})
    _, scenario = record_of(stage)
    asked = [request for request in stage.hosts["a"].asked("run") if request["argv"] != ["fio"]]
    calls = [request for request in asked if request["argv"] == ["/bin/state"]]
    known = [answer for answer in scenario.answers if answer.state is not None]
    # One question before the session, those that were answered, and the one that hangs.
    assert len(calls) == 1 + len(known) + 1
    assert len(scenario.answers) > len(known) + 5
    assert scenario.events[0].is_undone


def test_a_file_of_a_witness_that_hangs_is_asked_for_once() -> None:
    stage = Stage(
        scripts={"a": FakeScript(contents={"/sys/fake/state": b"ok"})},
        text=STUDY,
        inventory=INVENTORY,
    )
    asked_before: list[int] = []

    def hang(event: Event) -> None:
        if isinstance(event, Notice) and "'degraded' begins" in event.text:
            agent = stage.hosts["a"].agent
            agent.script = replace(agent.script, silent=frozenset({"get"}))
            asked_before.append(len(stage.hosts["a"].asked("get")))

    stage.notes.react = hang
    _, scenario = record_of(stage.play())
    assert len(stage.hosts["a"].asked("get")) <= asked_before[0] + 1
    assert [answer.state for answer in scenario.answers[-3:]] == [None, None, None]


def test_a_witness_of_a_file_that_is_not_there_ends_a_session() -> None:
    inventory = INVENTORY.replace('file = "/sys/fake/state"\nequals', 'file = "/sys/no"\nequals')
    (refusal,) = refusals(played(inventory))
    assert "'/sys/no'" in refusal


def test_a_host_that_looks_at_an_action_has_the_time_of_its_programs() -> None:
    """A service manager that hangs is told by the agent, and loses no host."""
    setting = 'file = "/sys/fake/state"\ntext = "broken"\nundo_text = "ok"'
    inventory = INVENTORY.replace(setting, 'stop = "/run/osd.pid"\ntimeout = "40s"')
    stage = played(inventory, UNDONE_AFTER, resolve_s=35.0)
    assert stage.fault is None
    assert {request["timeout_s"] for request in stage.hosts["a"].asked("resolve")} == {40.0}


def test_what_another_session_holds_is_refused_of_any_action() -> None:
    """Also of the second one: no event of this session frees it."""
    mend = INVENTORY.replace('file = "/sys/fake/state"\ntext = "ok"', 'kill = "osd.service"')
    held = "process 77 is held by another session's event, trial-1 lose"
    (refusal,) = refusals(played(mend, refuses={"resolve": ("busy", held)}))
    assert "'mend'" in refusal
    assert held in refusal


@pytest.mark.parametrize(("undo_phase", "is_refused"), [("", True), ("rebuild", False)])
def test_an_event_on_what_an_earlier_one_holds_is_refused_beforehand(
    undo_phase: str, *, is_refused: bool
) -> None:
    inventory = INVENTORY.replace(
        'file = "/sys/fake/state"\ntext = "ok"\n\n[[witness]]',
        'file = "/sys/fake/state"\ntext = "ok"\nundo_text = "ok"\n\n[[witness]]',
    )
    sets = (f"event.lose.undo_phase={undo_phase}",) if undo_phase else ()
    stage = played(inventory, sets)
    if is_refused:
        (refusal,) = refusals(stage)
        for part in ("Event 'mend' changes /sys/fake/state on host 'a'", "'lose'", "'rebuild'"):
            assert part in refusal
    else:
        assert stage.fault is None


def test_what_an_action_lacks_ends_a_session_before_anything_is_done() -> None:
    lose = 'file = "/sys/fake/state"\ntext = "broken"\nundo_text = "ok"'
    inventory = INVENTORY.replace(lose, 'command = ["/bin/lose"]\nundo = ["/bin/find"]')
    (refusal,) = refusals(played(inventory, ("event.lose.undo_phase=after",)))
    assert all(part in refusal for part in ("'break'", "/bin/lose", "install"))
    inventory = INVENTORY.replace('file = "/sys/fake/state"\ntext', 'file = "/sys/no"\ntext', 1)
    (refusal,) = refusals(played(inventory))
    assert all(part in refusal for part in ("'break'", "/sys/no"))


@pytest.mark.parametrize(
    ("lines", "reason", "part", "other"),
    [
        ('cut_link = "eth9"', "there is no link 'eth9'", "another link", "devices"),
        ('offline = "/dev/sdz"', "the state of sdz is missing", "another disk", "link"),
        ('detach = "/dev/sdz"', "/dev/sdz is not the study's", "host's devices", "link"),
        ('detach = "/dev/sda"', "/dev/sda is the host's root disk", "another loop", "devices"),
        ('stop = "osd.service"', "no unit 'osd.service' runs", "unit of the", "devices"),
    ],
)
def test_a_refusal_has_the_remedy_of_its_kind(
    lines: str, reason: str, part: str, other: str
) -> None:
    setting = 'file = "/sys/fake/state"\ntext = "broken"\nundo_text = "ok"'
    inventory = INVENTORY.replace(setting, lines)
    stage = played(
        inventory,
        ("event.lose.undo_phase=after",),
        refuses={"resolve": ("bad-request", reason)},
    )
    (refusal,) = refusals(stage)
    assert reason in refusal
    assert part in refusal
    assert other not in refusal.partition(reason)[2]


def test_a_unit_that_is_not_there_is_refused_where_no_event_comes_before_it() -> None:
    """Of the second action an event before it may start the process."""
    stop = INVENTORY.replace(
        'file = "/sys/fake/state"\ntext = "broken"\nundo_text = "ok"', 'stop = "no.service"'
    )
    refuses = {"resolve": ("ESRCH", "no unit 'no.service' of systemd runs")}
    (refusal,) = refusals(played(stop, ("event.lose.undo_phase=after",), refuses=refuses))
    assert "'no.service'" in refusal
    mend = INVENTORY.replace('file = "/sys/fake/state"\ntext = "ok"', 'kill = "no.service"')
    assert mend != INVENTORY
    stage = played(mend, refuses=refuses)
    assert stage.fault is None
    assert any("'no.service'" in notice.text for notice in stage.notes.of(Notice))


def test_a_target_that_is_held_does_not_hide_an_action_that_is_refused() -> None:
    held = TargetProbe(direct_error=None, direct_align_bytes=512, held_by="session other")
    stage = played(state="broken", probe=held)
    messages = " ".join(refusals(stage))
    assert "session other" in messages
    assert "'not healthy' already" in messages


def test_what_an_earlier_event_may_bring_about_is_no_refusal() -> None:
    """The setting of the second action is not there yet: the first one may make it."""
    mend = 'id = "mend"\nhost = "a"\nfile = "/sys/later"'
    inventory = INVENTORY.replace('id = "mend"\nhost = "a"\nfile = "/sys/fake/state"', mend)
    stage = played(inventory)
    assert stage.fault is None
    notes = [notice.text for notice in stage.notes.of(Notice)]
    assert any("'mend' cannot be done yet" in note and "/sys/later" in note for note in notes)


def test_a_fault_during_the_baseline_leaves_out_what_would_add_to_it() -> None:
    """A second loss might be one too many."""
    stage = Stage(
        scripts={"a": FakeScript(contents={"/sys/fake/state": b"ok"})},
        text=STUDY,
        inventory=INVENTORY,
    )

    def break_in_baseline(event: Event) -> None:
        if isinstance(event, Notice) and "'before' begins" in event.text:
            stage.hosts["a"].agent.contents["/sys/fake/state"] = b"broken"

    stage.notes.react = break_in_baseline
    record, scenario = record_of(stage.play())
    lose, mend = scenario.events
    assert lose.start_real_ns is None
    assert "'not healthy'" in lose.error
    assert mend.start_real_ns is None
    assert stage.hosts["a"].agent.steps == []
    assert objections(record)["event-failed"].level is VerdictLevel.INVALID


def test_what_follows_an_event_that_failed_is_left_out() -> None:
    stage = played(refuses={"undo_add": ("EACCES", "it may not")})
    record, scenario = record_of(stage)
    lose, mend = scenario.events
    assert "it may not" in lose.error
    assert mend.start_real_ns is None
    assert "'lose'" in mend.error
    assert stage.hosts["a"].agent.steps == []
    assert objections(record)["event-failed"].level is VerdictLevel.INVALID


def test_what_follows_within_seconds_an_event_that_failed_is_left_out() -> None:
    """It was prepared before that failed; its undo is struck out."""
    text = STUDY.replace(
        "[method]",
        '[[event]]\nid = "more"\naction = "more"\nphase = "degraded"\nafter = "3s"\n\n[method]',
    )
    more = 'file = "/sys/fake/more"\ntext = "on"\nundo_text = "off"'
    inventory = f'{INVENTORY}\n[[action]]\nid = "more"\nhost = "a"\n{more}\n'
    files = {"/sys/fake/more": b"off"}
    stage = played(inventory, text=text, files=files, refuses=RefusedOnce(step=("EIO", "broken")))
    _, scenario = record_of(stage)
    errors = {event.id: event.error for event in scenario.events}
    assert "'lose'" in errors["more"]
    agent = stage.hosts["a"].agent
    assert agent.contents["/sys/fake/more"] == b"off"
    assert agent.undos == {}
    assert len(verbs_of(stage, "undo_add")) == 2


def test_what_follows_an_event_that_was_not_seen_is_left_out() -> None:
    inventory = INVENTORY.replace('text = "broken"', 'text = "ok"', 1)
    _, scenario = record_of(played(inventory))
    lose, mend = scenario.events
    assert (lose.error, lose.seen_real_ns) == ("", None)
    assert mend.start_real_ns is None
    assert "did not see event 'lose'" in mend.error


def test_a_rebuild_that_does_not_end_is_found() -> None:
    inventory = INVENTORY.replace('text = "ok"\n\n[[witness]]', 'text = "no"\n\n[[witness]]')
    record, scenario = record_of(played(inventory))
    assert scenario.phases[2].ended_by is PhaseEndReason.LIMIT
    assert objections(record)["phase-unfinished"].level is VerdictLevel.INDICATIVE


def test_a_signal_names_the_process_of_its_file_and_is_undone_at_the_end() -> None:
    stop = 'stop = "/run/osd.pid"'
    setting = 'file = "/sys/fake/state"\ntext = "broken"\nundo_text = "ok"'
    inventory = INVENTORY.replace(setting, stop)
    agent = played(inventory, ("event.lose.undo_phase=after",)).hosts["a"].agent
    steps = [step for step in agent.steps if step["step"] == "signal"]
    assert [step["signal"] for step in steps] == ["STOP", "CONT"]
    assert {(step["pid"], step["start_ticks"]) for step in steps} == {(4243, 77)}


def verbs_of(stage: Stage, *verbs: str) -> list[str]:
    """The requests of those verbs that the host was asked, in order."""
    return [verb for verb, _ in stage.hosts["a"].agent.asked if verb in verbs]


def test_no_two_repeats_have_undos_of_one_name() -> None:
    stage = played(sets=("method.repeats=2",))
    names = [request["name"] for request in stage.hosts["a"].asked("undo_add")]
    assert len(set(names)) == len(names) == 2
    assert [objections(record) for record in stage.records] == [{}, {}]


def test_an_undo_that_fails_ends_the_session_before_a_further_repeat() -> None:
    stage = played(sets=("method.repeats=2",), refuses={"undo": ("EIO", "it is broken")})
    assert stage.fault is not None
    assert "'lose' on host 'a' was not undone" in stage.fault.message
    assert "it is broken" in stage.fault.message
    record, scenario = record_of(stage)
    assert scenario.events[0].is_undone is False
    assert objections(record)["event-failed"].level is VerdictLevel.INVALID


PLAIN = """
format = 1
id = "plain"

[[workload]]
id = "reads"
engine = "fio"
rw = "randread"
bs = "4k"
filesize = "16m"
"""
OTHER_HOST = """
[[host]]
name = "b"
kind = "command"
command = ["reach", "b"]
path = "/mnt/bench"
"""


@pytest.mark.parametrize("text", [STUDY, PLAIN])
def test_no_session_with_events_begins_where_one_on_any_host_was_not_undone(text: str) -> None:
    """Whether or not its own events are of that host; one without events tells it."""
    left = {"path": "/tmp/iolab-undo-0/undo-1", "steps": ["trial-0 cut: ip link set dev eth1 up"]}
    inventory = INVENTORY if text == STUDY else INVENTORY.partition("[[action]]")[0]
    contents = {"/sys/fake/state": b"ok"}
    scripts = {
        "a": FakeScript(contents=contents),
        "b": FakeScript(contents=contents, abandoned_undos=(left,)),
    }
    stage = Stage(scripts=scripts, text=text, inventory=inventory + OTHER_HOST).play()
    if text == PLAIN:
        assert stage.fault is None
        notes = [notice.text for notice in stage.notes.of(Notice)]
        assert any("On host 'b'" in note and "trial-0 cut" in note for note in notes)
        return
    assert stage.fault is not None
    (fault,) = stage.fault.faults
    assert "On host 'b'" in fault.message
    assert "trial-0 cut" in fault.message
    assert stage.records == []


def test_no_session_begins_where_an_event_was_not_undone() -> None:
    left = {"path": "/tmp/iolab-undo-0/undo-1", "steps": ["trial-0 lose: write 'ok' to /sys/x"]}
    stage = played(abandoned_undos=(left,))
    assert stage.fault is not None
    (fault,) = stage.fault.faults
    assert "trial-0 lose" in fault.message
    assert "iolab clean" in fault.hint
    assert stage.records == []


def test_another_sessions_event_that_lasts_is_told() -> None:
    held = {"path": "/tmp/iolab-undo-0/undo-2", "steps": ["trial-1 lose: write 'ok' to /sys/y"]}
    stage = played(held_undos=(held,))
    assert stage.fault is None
    notes = [notice.text for notice in stage.notes.of(Notice)]
    assert any("another session's event" in note and "trial-1 lose" in note for note in notes)


UNDONE_AFTER = ("event.lose.undo_phase=after",)


def test_an_undo_that_fails_at_its_phase_ends_the_run_and_is_tried_again() -> None:
    stage = played(sets=UNDONE_AFTER, refuses=RefusedOnce(undo=("EIO", "it is broken")))
    record, scenario = record_of(stage)
    assert record.status is RunStatus.FAILED
    assert "'lose' was not undone" in (record.failure or "")
    assert verbs_of(stage, "undo") == ["undo", "undo"]
    assert scenario.events[0].is_undone
    assert stage.hosts["a"].agent.contents["/sys/fake/state"] == b"ok"


def test_events_are_undone_the_newest_first_at_the_beginning_of_a_phase() -> None:
    text = STUDY.replace(
        "[method]",
        '[[event]]\nid = "more"\naction = "more"\nphase = "degraded"\nafter = "4s"\n\n[method]',
    )
    more = 'file = "/sys/fake/more"\ntext = "on"\nundo_text = "off"'
    inventory = f'{INVENTORY}\n[[action]]\nid = "more"\nhost = "a"\n{more}\n'
    sets = (*UNDONE_AFTER, "event.more.undo_phase=after")
    stage = played(inventory, sets, text=text)
    texts = [step["text"] for step in stage.hosts["a"].agent.steps]
    assert texts == ["broken", "on", "ok", "off", "ok"]


def test_events_are_undone_the_newest_first_whichever_undo_was_stored_first() -> None:
    """The host looks for long at the first event, and stores its undo after the other's."""
    text = STUDY.replace(
        "[method]",
        '[[event]]\nid = "more"\naction = "more"\nphase = "degraded"\nafter = "2.5s"\n\n[method]',
    )
    setting = 'file = "/sys/fake/state"\ntext = "broken"\nundo_text = "ok"'
    more = 'file = "/sys/fake/more"\ntext = "on"\nundo_text = "off"'
    inventory = INVENTORY.replace(setting, 'stop = "/run/osd.pid"')
    inventory += f'\n[[action]]\nid = "more"\nhost = "a"\n{more}\n'
    sets = (*UNDONE_AFTER, "event.more.undo_phase=after")
    stage = played(inventory, sets, text=text, resolve_s=1.8)
    steps = [step.get("signal") or step["text"] for step in stage.hosts["a"].agent.steps]
    assert steps == ["STOP", "on", "off", "CONT"]


def test_an_undo_that_the_end_of_the_load_cuts_short_is_asked_for_again() -> None:
    """It begins with a phase at 38 s of the load, and lasts beyond its end."""
    undone_at_end = ("event.lose.undo_phase=rebuild",)
    stage = played(sets=undone_at_end, loads=(FakeLoad(killed_at_s=40.0),), undo_s=5.0)
    _, scenario = record_of(stage)
    assert len(verbs_of(stage, "undo")) > 1
    assert scenario.events[0].is_undone


def test_an_event_that_did_not_begin_is_not_undone() -> None:
    """The load ends between the moment when its undo is written down and that of the event."""
    stage = played(loads=(FakeLoad(killed_at_s=24.0),))
    record, scenario = record_of(stage)
    assert verbs_of(stage, "undo_add", "step", "undo_remove", "undo") == ["undo_add", "undo_remove"]
    assert stage.hosts["a"].agent.undos == {}
    (event,) = scenario.events
    assert (event.start_real_ns, event.is_undone, event.error) == (None, None, "")
    assert objections(record)["event-failed"].level is VerdictLevel.INVALID


def test_an_event_whose_undo_comes_before_it_is_left_out() -> None:
    """Its host has not written its undo down yet when it is to be undone: that would be all."""
    sets = ("event.lose.after=14s", "event.lose.undo_phase=rebuild")
    stage = played(sets=sets, undo_add_s=5.0)
    record, scenario = record_of(stage)
    agent = stage.hosts["a"].agent
    assert "broken" not in [step["text"] for step in agent.steps]
    assert agent.undos == {}
    lose = scenario.events[0]
    assert (lose.start_real_ns, lose.is_undone) == (None, None)
    assert "not begun when it was to be undone" in lose.error
    assert objections(record)["event-failed"].level is VerdictLevel.INVALID


@pytest.mark.parametrize("is_stopped", [False, True])
def test_what_hangs_the_engine_is_undone_before_that_is_waited_for(*, is_stopped: bool) -> None:
    """An engine whose I/O hangs hears no signal until the event is undone."""
    deaf = FakeLoad(heeds_int=False, hangs=True)
    stop = StopRequest()

    def react(event: Event) -> None:
        if is_stopped and isinstance(event, Notice) and "'degraded' begins" in event.text:
            asyncio.get_running_loop().call_later(5, stop.request_stop)

    stage = played(loads=(deaf,), stop=stop, react=react)
    asked = [
        f"{verb} {request['signal']}" if verb == "signal" else verb
        for verb, request in stage.hosts["a"].agent.asked
        if verb in {"signal", "undo"}
    ]
    assert asked.index("undo") < asked.index("signal KILL")
    _, scenario = record_of(stage)
    assert scenario.events[0].is_undone


def test_an_action_that_goes_on_when_the_run_is_stopped_is_ended_before_others_are_undone() -> None:
    """What it does after their undo, nobody would undo."""
    stop = StopRequest()

    def react(event: Event) -> None:
        if isinstance(event, Notice) and "'mend' on host" in event.text:
            asyncio.get_running_loop().call_later(2, stop.request_stop)

    _, scenario = record_of(played(stop=stop, react=react, step_s=10.0))
    lose, mend = scenario.events
    assert mend.error == ""
    assert mend.start_real_ns is not None
    assert mend.end_real_ns is not None
    assert mend.end_real_ns - mend.start_real_ns > 9e9
    assert lose.undone_real_ns is not None
    assert lose.undone_real_ns >= mend.end_real_ns


NOISE = """
[[workload]]
id = "noise"
engine = "fio"
rw = "randread"
bs = "4k"
filesize = "16m"

[[event]]
id = "begin"
workload = "noise"
phase = "rebuild"

[method]"""


def test_a_neighbour_that_hangs_is_waited_for_after_all_else_is_undone() -> None:
    """Its I/O hangs with what the event broke: it is killed 15 s later."""
    deaf = FakeLoad(heeds_int=False, hangs=True)
    stage = played(text=STUDY.replace("[method]", NOISE), loads=(FakeLoad(), deaf))
    _, scenario = record_of(stage)
    events = {event.id: event for event in scenario.events}
    end_ns = scenario.phases[-1].end_real_ns
    for name in ("lose", "begin"):
        undone_ns = events[name].undone_real_ns
        assert undone_ns is not None
        assert 0 <= undone_ns - end_ns < 1e9
    signals = [request["signal"] for request in stage.hosts["a"].asked("signal")]
    assert "KILL" in signals


def test_what_comes_after_a_neighbour_does_not_wait_for_its_engine() -> None:
    """It hangs when it is told to end, and is killed 15 s later."""
    text = STUDY.replace("[method]", NOISE.replace('"rebuild"', '"degraded"'))
    text = text.replace('workload = "noise"', 'workload = "noise"\nundo_phase = "rebuild"')
    deaf = FakeLoad(heeds_int=False, hangs=True)
    record, scenario = record_of(played(text=text, loads=(FakeLoad(), deaf)))
    mend = next(event for event in scenario.events if event.id == "mend")
    assert mend.start_real_ns is not None
    assert abs(mend.start_real_ns - scenario.phases[2].start_real_ns - 8e9) < 0.5e9
    assert "event-late" not in objections(record)


VERIFIED = """
format = 1
id = "verified"

[[workload]]
id = "writes"
engine = "native"
rw = "randwrite"
bs = "4k"
filesize = "16m"
verify = true

[[phase]]
id = "before"
seconds = "5s"

[[phase]]
id = "fault"
seconds = "5s"

[[event]]
id = "remount"
action = "mend"
phase = "read-back"

[method]
warmup = "1s"
settle = "0s"
"""
LAID_OUT = "/mnt/bench/iolab-scratch-a/s16mv4k"


@pytest.mark.parametrize(
    ("moment", "remounts", "readbacks", "status"),
    [
        (None, 1, 2, RunStatus.DONE),
        ("Phase 'fault' begins.", 0, 1, RunStatus.INTERRUPTED),
        ("every acknowledged write is read back", 1, 1, RunStatus.INTERRUPTED),
    ],
)
def test_a_wish_to_stop_leaves_out_or_ends_the_read_back(
    moment: str | None, remounts: int, readbacks: int, status: RunStatus
) -> None:
    """Blocks are read before the load and after it; a run that lacks the latter is not whole."""
    (plain,) = FakeNative().programs.values()
    runs: list[str] = []

    async def engine(call: FakeCall) -> int:
        spec = json.loads(call.stdin)
        has_runtime = spec["runtime_s"] is not None
        if moment and "load" in runs:
            await asyncio.sleep(1e4)  # So many blocks that nobody waits for their read-back.
        runs.append("load" if has_runtime else spec["jobs"][0]["rw"])
        stage.hosts["a"].agent.files[LAID_OUT] = 16 << 20
        return await plain(call)

    stop = StopRequest()

    def react(event: Event) -> None:
        told = event.text if isinstance(event, Notice) else ""
        if isinstance(event, SessionPhaseStarted):
            told = event.detail
        if told == moment and "load" in runs:
            asyncio.get_running_loop().call_later(1, stop.request_stop)

    script = FakeScript(contents={"/sys/fake/state": b"ok"}, programs={"iolab-agent": engine})
    sets = ("method.generator_limit=false",)
    stage = Stage({"a": script}, sets, VERIFIED, INVENTORY, notes=Notes(react), stop=stop)
    stage.play()
    record, scenario = record_of(stage)
    assert record.status is status
    assert len(stage.hosts["a"].agent.steps) == remounts
    assert runs.count("read") == readbacks
    assert record.ended_real_ns - record.started_real_ns < 1e12
    assert bool(scenario.readbacks) is (status is RunStatus.DONE)


@pytest.mark.parametrize("has_event", [True, False])
def test_blocks_are_read_through_the_same_mount_where_no_event_made_another(
    *, has_event: bool
) -> None:
    study = VERIFIED if has_event else VERIFIED.replace('phase = "read-back"', 'phase = "fault"')
    assert has_event or study != VERIFIED
    (plain,) = FakeNative().programs.values()

    async def engine(call: FakeCall) -> int:
        stage.hosts["a"].agent.files[LAID_OUT] = 16 << 20
        return await plain(call)

    script = FakeScript(contents={"/sys/fake/state": b"ok"}, programs={"iolab-agent": engine})
    stage = Stage({"a": script}, ("method.generator_limit=false",), study, INVENTORY)
    stage.play()
    _, scenario = record_of(stage)
    assert [readback.is_new_mount for readback in scenario.readbacks] == [False]


def test_a_read_back_that_fails_does_not_forget_what_was_lost_before() -> None:
    """Five blocks are lost in the first repeat; in the second one nothing can be read back."""
    whole = {"checked": 4096, "torn": 0, "stale": 0, "misplaced": 0, "corrupt": 0, "first": []}
    lossy = {**whole, "stale": 5}
    (plain,) = FakeNative(verified=iter([whole, lossy, None, lossy])).programs.values()

    async def engine(call: FakeCall) -> int:
        stage.hosts["a"].agent.files[LAID_OUT] = 16 << 20
        return await plain(call)

    script = FakeScript(contents={"/sys/fake/state": b"ok"}, programs={"iolab-agent": engine})
    sets = ("method.generator_limit=false", "method.repeats=3")
    stage = Stage({"a": script}, sets, VERIFIED, INVENTORY)
    stage.play()
    scenarios = [record.scenario for record in stage.records if record.scenario is not None]
    lost = [s.newly_lost_blocks(readback) for s in scenarios for readback in s.readbacks]
    assert lost == [5, None, None]
    assert [s.earlier_lost_blocks("a") for s in scenarios] == [0, 5, 5]
