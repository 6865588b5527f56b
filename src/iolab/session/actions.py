"""Actions of events: the steps on a host that each becomes, and those that undo it."""

from __future__ import annotations

from typing import Any, Final

from iolab.core.scenario import Action, ActionKind
from iolab.core.study import Study
from iolab.hosts.answers import ResolvedActionAnswer, read_answer
from iolab.hosts.host import Host
from iolab.study.targets import targets_of_study

AGENT_LIMIT_S: Final = 20.0
"""For the agent of a host under load to write down an undo, set a limit, or look at a device."""


async def resolve_action_to_steps(study: Study, host: Host, action: Action) -> ResolvedActionAnswer:
    """What the agent is to do, and what undoes it. AgentRefusalError where it refuses that."""
    if action.kind is ActionKind.COMMAND:
        return _single_step_answer(
            _command_step(action.argv, action), _command_step(action.undo_argv, action)
        )
    if action.kind is ActionKind.SETTING:
        write = {"step": "write", "path": action.path}
        undo = {**write, "text": action.undo_text} if action.undo_text else None
        return _single_step_answer({**write, "text": action.text}, undo)
    targets = [target.path for target in targets_of_study(study) if target.host == host.name]
    answer = await host.request(
        "resolve",
        deadline_s=AGENT_LIMIT_S + action.timeout_s,
        what=_action_request(action),
        targets=targets,
        members=list(host.spec.devices),
        timeout_s=action.timeout_s,
    )
    return read_answer(host.name, ResolvedActionAnswer, answer)


def _action_request(action: Action) -> dict[str, object]:
    named: dict[str, object] = {"action": action.kind.value.replace("-", "_")}
    if action.kind in {ActionKind.STOP, ActionKind.KILL}:
        return {**named, "process": action.unit or action.pid_file}
    if action.kind is ActionKind.CUT_LINK:
        return {**named, "interface": action.interface, "undo_after_s": action.undo_after_s}
    if action.kind is ActionKind.LIMIT:
        rates = action.io_limit.limited_rates_by_name if action.io_limit else {}
        named = {**named, "group": action.group, "rates": rates}
    return {**named, "device": action.device}


def _command_step(argv: tuple[str, ...], action: Action) -> dict[str, Any] | None:
    if not argv:
        return None
    return {"step": "command", "argv": list(argv), "timeout_s": action.timeout_s}


def _single_step_answer(
    step: dict[str, Any] | None, undo: dict[str, Any] | None
) -> ResolvedActionAnswer:
    return ResolvedActionAnswer(
        steps=() if step is None else (step,), undo=() if undo is None else (undo,)
    )
