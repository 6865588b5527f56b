"""What speaks against the events of a study on its hosts, asked before anything is destroyed."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

from iolab.core.scenario import Action, ActionKind, EventPlan, ScenarioPlan, Witness
from iolab.core.study import Study
from iolab.errors import Fault, HostError
from iolab.hosts.answers import HostLeftovers, ResolvedActionAnswer, read_answer
from iolab.hosts.barrier import gather_hosts
from iolab.hosts.host import Host
from iolab.hosts.message import AgentRefusalError
from iolab.hosts.remote_process import fetch_file
from iolab.record import Record
from iolab.session.actions import AGENT_LIMIT_S, resolve_action_to_steps
from iolab.session.witness import WitnessReader, WitnessReading
from iolab.text import quote_value, uncapitalised

MISSING_PROGRAM: Final = "no-program"

LASTING_REFUSALS: Final = ("refused", "bad-request", "busy", MISSING_PROGRAM)
"""Codes of refusals that no other event changes: what is busy another session holds."""

DEVICES_HINT: Final = (
    "Correct the [[action]]. A device on which no target stands is named in the host's devices."
)

_KIND_HINTS: Final[Mapping[ActionKind, str]] = {
    ActionKind.COMMAND: "Correct the command of the [[action]], or install it on that host.",
    ActionKind.STOP: "Correct the pid file or unit of the [[action]], or start it.",
    ActionKind.KILL: "Correct the pid file or unit of the [[action]], or start it.",
    ActionKind.SETTING: "Correct the file of the [[action]].",
    ActionKind.DETACH: "Name another loop device in the [[action]].",
    ActionKind.OFFLINE: "Name another disk in the [[action]], or bring it back first.",
    ActionKind.CUT_LINK: "Name another link in the [[action]], or give it undo_after.",
    ActionKind.LIMIT: "Correct the control group or the device of the [[action]].",
}

NOT_OF_STUDY: Final = "is not the study's"
"""How an agent says that no target of the study stands on a device."""

NOT_UNDONE_HINT: Final = "Have it undone: iolab clean, with the same hosts."

WITNESS_HINT: Final = "Correct the [[witness]] in the inventory, and try its command on that host."


class EventPreflight(Record):
    """What speaks against the events of a plan on its hosts, and what should be known of them."""

    faults: tuple[Fault, ...] = ()
    notes: tuple[str, ...] = ()


async def event_preflight(study: Study, hosts: Mapping[str, Host]) -> EventPreflight:
    """What hosts refuse of the events now, and what witnesses say, before anything is destroyed."""
    parts = [await _pending_undo_preflight(hosts, is_fault=study.scenario is not None)]
    if study.scenario is not None:
        parts.append(await _action_preflight(study, study.scenario, hosts))
        parts.append(await _witness_preflight(study.scenario, hosts))
    return EventPreflight(
        tuple(fault for part in parts for fault in part.faults),
        tuple(note for part in parts for note in part.notes),
    )


async def _pending_undo_preflight(hosts: Mapping[str, Host], *, is_fault: bool) -> EventPreflight:
    """Earlier events that nobody has undone, on any host: their state is no baseline.

    A session without events is told of them. Those of another session that goes on are notes: they
    may be of another storage.
    """
    asked = await gather_hosts(hosts.values(), _read_host_leftovers)
    leftovers = sorted(asked.results_or_raise().items())
    faults = tuple(
        Fault(f"On host '{name}' an event was not undone: {step}.", NOT_UNDONE_HINT)
        for name, left in leftovers
        for undo in left.undos
        for step in undo.steps
    )
    notes = tuple(
        f"on host '{name}' another session's event lasts, which is undone by: {step}"
        for name, left in leftovers
        for undo in left.held_undos
        for step in undo.steps
    )
    if is_fault:
        return EventPreflight(faults, notes)
    warnings = tuple(f"{uncapitalised(f.message).rstrip('.')}: see iolab clean" for f in faults)
    return EventPreflight((), (*warnings, *notes))


async def _action_preflight(
    study: Study, scenario: ScenarioPlan, hosts: Mapping[str, Host]
) -> EventPreflight:
    """Actions that are not the study's, or that cannot be done there.

    What an earlier event may change (it starts a process, makes a file) is a note.
    """
    faults: list[Fault] = []
    notes: list[str] = []
    undos: dict[str, tuple[dict[str, Any], ...]] = {}
    names = dict.fromkeys(event.action for event in scenario.ordered_events if event.action)
    for place, name in enumerate(names):
        action = scenario.action(name)
        host = hosts.get(action.host)
        if host is None:
            continue
        try:
            undos[name] = (await _require_action_possible(study, host, action)).undo
        except AgentRefusalError as refusal:
            if refusal.code in LASTING_REFUSALS or place == 0:
                faults.append(_refused_action_fault(action, refusal))
            else:
                notes.append(
                    f"the action '{action.id}' cannot be done yet: {refusal.message.rstrip('.')}; "
                    "it fails unless an event before it has changed that when it is due"
                )
    return EventPreflight((*faults, *_object_still_held_faults(scenario, undos)), tuple(notes))


def _object_still_held_faults(
    scenario: ScenarioPlan, undo_steps_by_action: Mapping[str, Iterable[Mapping[str, Any]]]
) -> Iterator[Fault]:
    """Events on what an earlier one changed that is not undone by then: their host refuses them.

    `undo_steps_by_action` are the steps that undo each action.
    """
    places = {phase.id: place for place, phase in enumerate(scenario.phases)}
    end = len(places)
    holders: dict[tuple[str, str], EventPlan] = {}
    for event in scenario.ordered_events:
        host = scenario.action(event.action).host if event.action else ""
        for step in undo_steps_by_action.get(event.action, ()):
            changed = _object_held_by_step(step)
            holder = holders.get((host, changed))
            if holder is not None and places.get(event.phase, end) < places.get(
                holder.undo_phase, end
            ):
                yield Fault(
                    f"Event {quote_value(event.id)} changes {changed} on host "
                    f"{quote_value(host)}, which event {quote_value(holder.id)} holds until it is "
                    "undone.",
                    f"Give event {quote_value(holder.id)} an undo_phase that is not after phase "
                    f"{quote_value(event.phase)}, or leave one of them out.",
                )
                break
            if changed:
                holders[host, changed] = event


def _object_held_by_step(step: Mapping[str, Any]) -> str:
    """What an agent lets one event hold at a time; "" of commands: their order is the user's."""
    match step["step"]:
        case "signal":
            return f"process {step['pid']}"
        case "write":
            number = str(step["text"]).partition(" ")[0]  # of a limit of a control group
            return f"{step['path']} for {number}" if ":" in number else str(step["path"])
        case "loop_limit":
            return str(step["device"])
    return ""


async def _require_action_possible(
    study: Study, host: Host, action: Action
) -> ResolvedActionAnswer:
    """AgentRefusalError where the host refuses the action, or lacks what it is done with."""
    resolved = await resolve_action_to_steps(study, host, action)
    for program in filter(None, (action.argv[:1], action.undo_argv[:1])):
        await _require_file(host, program[0], "program", MISSING_PROGRAM)
    if action.path:
        await _require_file(host, action.path, "file", "ENOENT")
    return resolved


async def _require_file(host: Host, path: str, file_noun: str, refusal_code: str) -> None:
    """AgentRefusalError where the host has no such file; what it holds does not matter."""
    try:
        content = await fetch_file(host, path, 0)
    except AgentRefusalError:
        return  # it is larger, or may not be read
    if content is None:
        raise AgentRefusalError(host.name, refusal_code, f"there is no {file_noun} {path}")


def _refused_action_fault(action: Action, refusal: AgentRefusalError) -> Fault:
    message = f"The action '{action.id}' is refused. {refusal.message}"
    if refusal.is_of_other_iolab:
        return Fault(message, refusal.hint)
    hint = DEVICES_HINT if NOT_OF_STUDY in refusal.reason else _KIND_HINTS[action.kind]
    return Fault(message, hint)


async def _read_host_leftovers(host: Host) -> HostLeftovers:
    answer = await host.request("leftovers", deadline_s=AGENT_LIMIT_S, path=None, remove=None)
    return read_answer(host.name, HostLeftovers, answer)


async def _witness_preflight(scenario: ScenarioPlan, hosts: Mapping[str, Host]) -> EventPreflight:
    """Ask each witness that phases and events need once, before anything is destroyed.

    A fault is one that cannot be asked, or that shows what an event is yet to bring about; a note
    is that one is silent.
    """
    faults: list[Fault] = []
    notes: list[str] = []
    names = scenario.expected_witnesses
    for witness in scenario.witnesses:
        host = hosts.get(witness.host)
        if witness.id not in names or host is None:
            continue
        who = f"Witness {quote_value(witness.id)} on host {quote_value(witness.host)}"
        reading = await _read_reachable_witness(host, witness)
        if reading.fault:
            faults.append(Fault(f"{who} cannot be used. {reading.fault}", WITNESS_HINT))
        elif reading.state is None:
            notes.append(
                f"{who} gave no answer when it was tried: whether events happen may stay unknown"
            )
        else:
            faults += _already_expected_state_faults(
                scenario, who, witness, is_condition_true=reading.state
            )
    return EventPreflight(tuple(faults), tuple(notes))


async def _read_reachable_witness(host: Host, witness: Witness) -> WitnessReading:
    """The reading; HostError where the host was lost meanwhile, which is no fault of a witness."""
    reading = await WitnessReader(host, witness).read()
    if host.lost_reason:
        raise HostError(f"Host '{host.name}' was lost: {host.lost_reason}.", "Run again.")
    return reading


def _already_expected_state_faults(
    scenario: ScenarioPlan, witness_text: str, witness: Witness, *, is_condition_true: bool
) -> Iterator[Fault]:
    event = _first_event_of_witness(scenario, witness.id)
    if (
        event is not None
        and event.expected is not None
        and event.expected.state is is_condition_true
    ):
        yield Fault(
            f"{witness_text} says {quote_value(str(event.expected))} already, which event "
            f"{quote_value(event.id)} is to bring about.",
            f"See what is wrong with the storage first; else correct 'expect', or the [[witness]] "
            f"({_witness_source_text(witness)}).",
        )


def _first_event_of_witness(scenario: ScenarioPlan, witness_id: str) -> EventPlan | None:
    """The first event that a witness is to see."""
    return next(
        (
            event
            for event in scenario.ordered_events
            if event.expected is not None and event.expected.witness == witness_id
        ),
        None,
    )


def _witness_source_text(witness: Witness) -> str:
    return f"file {witness.file}" if witness.file else " ".join(witness.argv)
