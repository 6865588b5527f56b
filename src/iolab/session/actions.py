"""Actions of events: their steps on a host, and why a host refuses one."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from iolab.core.scenario import Action, ActionKind
from iolab.core.study import Study
from iolab.errors import Fault
from iolab.hosts.answers import ResolvedActionAnswer, read_answer
from iolab.hosts.host import Host
from iolab.hosts.message import AgentRefusalError
from iolab.study.targets import targets_of_study

AGENT_LIMIT_S: Final = 20.0
"""For the agent of a host under load to write down an undo, set a limit, or look at a device."""

LASTING_REFUSALS: Final = ("refused", "bad-request")
"""Codes of refusals that no other event changes."""

DEVICES_HINT: Final = (
    "Correct the [[action]]. A device on which no target stands is named in the host's devices."
)


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
        what=_named_action(action),
        targets=targets,
        members=list(host.spec.devices),
    )
    return read_answer(host.name, ResolvedActionAnswer, answer)


async def action_faults(study: Study, hosts: Mapping[str, Host]) -> tuple[Fault, ...]:
    """Why hosts refuse what events would do there now: what is not the study's, or is not there."""
    scenario = study.scenario
    if scenario is None:
        return ()
    used = {event.action for event in scenario.events}
    faults: list[Fault] = []
    for action in scenario.actions:
        host = hosts.get(action.host)
        if action.id in used and action.kind.is_resolved_by_agent and host is not None:
            try:
                await resolve_action(study, host, action)
            except AgentRefusalError as refusal:
                if refusal.code not in LASTING_REFUSALS:
                    continue  # an earlier event may start the process, or attach the device
                message = f"The action '{action.id}' is refused. {refusal.message}"
                hint = refusal.hint if refusal.is_of_other_iolab else DEVICES_HINT
                faults.append(Fault(message, hint))
    return tuple(faults)


def _named_action(action: Action) -> dict[str, object]:
    named: dict[str, object] = {"action": action.kind.value.replace("-", "_")}
    if action.kind in {ActionKind.STOP, ActionKind.KILL}:
        return {**named, "process": action.unit or action.pid_file}
    if action.kind is ActionKind.CUT_LINK:
        return {**named, "interface": action.interface, "undo_after_s": action.undo_after_s}
    if action.kind is ActionKind.LIMIT:
        named = {**named, "group": action.group, "limits": action.limits}
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
