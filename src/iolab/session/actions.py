"""Actions of events: their steps on a host, and why a host refuses one."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from iolab.core.scenario import Action, ActionKind, ScenarioPlan
from iolab.core.study import Study
from iolab.errors import Fault
from iolab.hosts.answers import HostLeftovers, ResolvedActionAnswer, read_answer
from iolab.hosts.barrier import gather_hosts
from iolab.hosts.host import Host
from iolab.hosts.message import AgentRefusalError
from iolab.hosts.remote_process import fetch_file
from iolab.session.witness import EventPreflight, witness_preflight
from iolab.study.targets import targets_of_study

AGENT_LIMIT_S: Final = 20.0
"""For the agent of a host under load to write down an undo, set a limit, or look at a device."""

MISSING_PROGRAM: Final = "no-program"

LASTING_REFUSALS: Final = ("refused", "bad-request", MISSING_PROGRAM)
"""Codes of refusals that no other event changes."""

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


async def resolve_action(study: Study, host: Host, action: Action) -> ResolvedActionAnswer:
    """What the agent is to do, and what undoes it. AgentRefusalError where it refuses that."""
    if action.kind is ActionKind.COMMAND:
        return _resolved_action_answer(
            _command_step(action.argv, action), _command_step(action.undo_argv, action)
        )
    if action.kind is ActionKind.SETTING:
        write = {"step": "write", "path": action.path}
        undo = {**write, "text": action.undo_text} if action.undo_text else None
        return _resolved_action_answer({**write, "text": action.text}, undo)
    targets = [target.path for target in targets_of_study(study) if target.host == host.name]
    answer = await host.request(
        "resolve",
        deadline_s=AGENT_LIMIT_S,
        what=_action_request(action),
        targets=targets,
        members=list(host.spec.devices),
    )
    return read_answer(host.name, ResolvedActionAnswer, answer)


async def event_preflight(study: Study, hosts: Mapping[str, Host]) -> EventPreflight:
    """What hosts refuse of the events now, and what witnesses say, before anything is destroyed."""
    if study.scenario is None:
        return EventPreflight()
    undone = await _undo_preflight(study.scenario, hosts)
    actions = await _action_preflight(study, study.scenario, hosts)
    witnesses = await witness_preflight(study, hosts)
    parts = (undone, actions, witnesses)
    return EventPreflight(
        tuple(fault for part in parts for fault in part.faults),
        tuple(note for part in parts for note in part.notes),
    )


async def _undo_preflight(scenario: ScenarioPlan, hosts: Mapping[str, Host]) -> EventPreflight:
    """Earlier events that nobody has undone: their state is no baseline.

    Those of another session that goes on are notes: they may be of another storage.
    """
    names = {scenario.action(event.action).host for event in scenario.events if event.action}
    asked = await gather_hosts([hosts[name] for name in names & hosts.keys()], _host_leftovers)
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
    return EventPreflight(faults, notes)


async def _action_preflight(
    study: Study, scenario: ScenarioPlan, hosts: Mapping[str, Host]
) -> EventPreflight:
    """Actions that are not the study's, or that cannot be done there.

    What an earlier event may change (it starts a process, makes a file) is a note.
    """
    faults: list[Fault] = []
    notes: list[str] = []
    names = dict.fromkeys(event.action for event in scenario.ordered_events if event.action)
    for place, name in enumerate(names):
        action = scenario.action(name)
        host = hosts.get(action.host)
        if host is None:
            continue
        try:
            await _require_action_possible(study, host, action)
        except AgentRefusalError as refusal:
            if refusal.code in LASTING_REFUSALS or place == 0:
                faults.append(_refused_action_fault(action, refusal))
            else:
                notes.append(
                    f"the action '{action.id}' cannot be done yet: {refusal.message.rstrip('.')}; "
                    "it fails unless an event before it changes that"
                )
    return EventPreflight(tuple(faults), tuple(notes))


async def _require_action_possible(study: Study, host: Host, action: Action) -> None:
    """AgentRefusalError where the host refuses the action, or lacks what it is done with."""
    await resolve_action(study, host, action)
    for program in filter(None, (action.argv[:1], action.undo_argv[:1])):
        await _require_file(host, program[0], "program", MISSING_PROGRAM)
    if action.path:
        await _require_file(host, action.path, "file", "ENOENT")


async def _require_file(host: Host, path: str, noun: str, code: str) -> None:
    """AgentRefusalError where the host has no such file; what it holds does not matter."""
    try:
        content = await fetch_file(host, path, 0)
    except AgentRefusalError:
        return  # it is larger, or may not be read
    if content is None:
        raise AgentRefusalError(host.name, code, f"there is no {noun} {path}")


def _refused_action_fault(action: Action, refusal: AgentRefusalError) -> Fault:
    message = f"The action '{action.id}' is refused. {refusal.message}"
    if refusal.is_of_other_iolab:
        return Fault(message, refusal.hint)
    hint = DEVICES_HINT if NOT_OF_STUDY in refusal.reason else _KIND_HINTS[action.kind]
    return Fault(message, hint)


async def _host_leftovers(host: Host) -> HostLeftovers:
    answer = await host.request("leftovers", deadline_s=AGENT_LIMIT_S, path=None, remove=None)
    return read_answer(host.name, HostLeftovers, answer)


def _action_request(action: Action) -> dict[str, object]:
    named: dict[str, object] = {"action": action.kind.value.replace("-", "_")}
    if action.kind in {ActionKind.STOP, ActionKind.KILL}:
        return {**named, "process": action.unit or action.pid_file}
    if action.kind is ActionKind.CUT_LINK:
        return {**named, "interface": action.interface, "undo_after_s": action.undo_after_s}
    if action.kind is ActionKind.LIMIT:
        rates = action.io_limit.set_rates_by_name if action.io_limit else {}
        named = {**named, "group": action.group, "rates": rates}
    return {**named, "device": action.device}


def _command_step(argv: tuple[str, ...], action: Action) -> dict[str, Any] | None:
    if not argv:
        return None
    return {"step": "command", "argv": list(argv), "timeout_s": action.timeout_s}


def _resolved_action_answer(
    step: dict[str, Any] | None, undo: dict[str, Any] | None
) -> ResolvedActionAnswer:
    return ResolvedActionAnswer(
        steps=() if step is None else (step,), undo=() if undo is None else (undo,)
    )
