"""From the tables of phases, events, actions and witnesses to the course that a study wants."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Final

from iolab.core.course import (
    Action,
    ActionKind,
    CoursePlan,
    EventPlan,
    Expectation,
    PhasePlan,
    Witness,
)
from iolab.core.engine import EngineName
from iolab.core.study import MethodKind, OnFailure
from iolab.study.course_tables import (
    INVENTORY_ONLY,
    ActionTable,
    EventTable,
    PhaseTable,
    WitnessTable,
)
from iolab.study.document import StudyDocument
from iolab.study.file import HostTable
from iolab.study.load_tables import LoadTable
from iolab.study.tables import Problem, StudyTables, add_problems
from iolab.text import list_text, quote_value, suggestion
from iolab.units import parse_size

LIST_HINT: Final = "Write a list of an absolute program and its arguments, as ['/bin/true']."

ACTION_KEYS: Final = (
    "command",
    "stop",
    "kill",
    "detach",
    "offline",
    "cut_link",
    "limit",
    "file",
)
"""Of which an action has one: what it does."""

RATE_KEYS: Final = ("read_iops", "write_iops", "read_bytes", "write_bytes")
"""What a limit limits, in a second."""

ENGINES: Final = (EngineName("native"), EngineName("fio"))
"""Those of I/O on files; with the native one latency begins when an I/O is due."""


def refuse_inventory_tables(document: StudyDocument) -> None:
    """Add a fault for what only an inventory may say, and leave it out."""
    for section in INVENTORY_ONLY:
        if section in document.tree:
            message = f"A study has no [[{section}]]: it would say what is run on your hosts."
            hint = "Write it into the inventory that you give with --hosts."
            document.add_fault((section,), message, hint)
            document.tree.pop(section)


def add_phase_and_event_faults(
    document: StudyDocument, tables: StudyTables, *, required: bool
) -> None:
    """Add every fault of phases and events; with `required` also what an inventory lacks."""
    phases = tables.items_of_table("phase", PhaseTable)
    events = tables.items_of_table("event", EventTable)
    hosts = [table.name for _, table in tables.items_of_table("host", HostTable)]
    for item, action in tables.items_of_table("action", ActionTable):
        add_problems(document, item, _action_problems(action, hosts))
    for item, witness in tables.items_of_table("witness", WitnessTable):
        add_problems(document, item, _witness_problems(witness, hosts))
    lengths = {table.id: table.seconds or table.longest or 0.0 for _, table in phases}
    for item, phase in phases:
        add_problems(document, item, _phase_problems(phase))
    for item, event in events:
        add_problems(document, item, _event_problems(event, lengths))
    if required:
        _add_inventory_faults(document, tables)
    if phases:
        _add_method_faults(document, tables)
        first = phases[0][1]
        if first.seconds is None or any(event.phase == first.id for _, event in events):
            message = "The first phase is the baseline: it ends by time, and has no event."
            hint = "Give it seconds, and have events in the phases after it."
            document.add_fault(phases[0][0].path, message, hint)
    elif events:
        hint = "Write [[phase]] for each part of the run, the healthy one first."
        document.add_fault(events[0][0].path, "There are events, and no phase.", hint)


def _add_inventory_faults(document: StudyDocument, tables: StudyTables) -> None:
    """Add a fault for each action and witness that no inventory describes."""
    actions = {table.id: table for _, table in tables.items_of_table("action", ActionTable)}
    witnesses = {table.id: table for _, table in tables.items_of_table("witness", WitnessTable)}
    for item, phase in tables.items_of_table("phase", PhaseTable):
        if phase.until is not None:
            add_problems(document, item, _state_problems("until", phase.until, witnesses))
    for item, event in tables.items_of_table("event", EventTable):
        if event.expect is not None:
            add_problems(document, item, _state_problems("expect", event.expect, witnesses))
        if event.action not in actions:
            has = f"action = {quote_value(event.action)}, which no inventory describes"
            hint = suggestion(event.action, actions, "actions")
            if not actions:
                hint = f"Write [[action]] with id = '{event.action}' into the inventory of --hosts."
            add_problems(document, item, [Problem(("action",), has, hint)])


def _add_method_faults(document: StudyDocument, tables: StudyTables) -> None:
    method = tables.method
    if method.kind is not MethodKind.FIXED:
        message = f"method.kind is '{method.kind.value}', and phases say how long a run is."
        document.add_fault(("method", "kind"), message, "Set it to 'fixed', or leave it out.")
    if method.on_failure is OnFailure.RETRY:
        message = "on_failure is 'retry', and an event is never repeated by itself."
        document.add_fault(("method", "on_failure"), message, "Set it to 'stop' or 'skip-point'.")
    if "runtime" in method.model_fields_set:
        message = "method.runtime stands beside phases, which say how long a run is."
        document.add_fault(("method", "runtime"), message, "Leave it out.")
    for item, _ in tables.items_of_table("workload", LoadTable):
        engine = item.user_values.get("engine", "fio")
        if engine not in ENGINES:
            has = f"engine = {quote_value(engine)}, and the study has phases"
            hint = "Set engine = 'native' or 'fio'."
            add_problems(document, item, [Problem(("engine",), has, hint)])


def _phase_problems(phase: PhaseTable) -> Iterator[Problem]:
    if (phase.seconds is None) == (phase.until is None):
        has = "neither" if phase.seconds is None else "both"
        hint = "Give it seconds, or until with longest."
        yield Problem(("seconds",), f"{has} of seconds and until", hint)
    if (phase.until is None) != (phase.longest is None):
        has = "longest without until" if phase.until is None else "until without longest"
        hint = "A phase that ends by a witness needs longest, its limit; others do not."
        yield Problem(("longest",), has, hint)


def _event_problems(event: EventTable, lengths: Mapping[str, float]) -> Iterator[Problem]:
    if event.phase not in lengths:
        has = f"phase = {quote_value(event.phase)}, which is none"
        yield Problem(("phase",), has, suggestion(event.phase, lengths, "phases"))
    elif event.after >= lengths[event.phase] > 0:
        has = f"after = {event.after:g} s, and its phase lasts {lengths[event.phase]:g} s"
        yield Problem(("after",), has, "Give less, or name a later phase.")
    names = list(lengths)
    if event.undo_phase is not None and event.phase in names:
        later = names[names.index(event.phase) + 1 :]
        if event.undo_phase not in later:
            has = f"undo_phase = {quote_value(event.undo_phase)}, which is no later phase"
            yield Problem(("undo_phase",), has, suggestion(event.undo_phase, later, "later phases"))


def _state_problems(
    key: str, state: str, witnesses: Mapping[str, WitnessTable]
) -> Iterator[Problem]:
    name = Expectation.parse(state).witness
    if name not in witnesses:
        has = f"{key} = {quote_value(state)}, and no inventory describes that witness"
        hint = suggestion(name, witnesses, "witnesses")
        if not witnesses:
            hint = f"Write [[witness]] with id = '{name}' into the inventory of --hosts."
        yield Problem((key,), has, hint)


def _action_problems(action: ActionTable, hosts: Iterable[str]) -> Iterator[Problem]:
    kinds = [key for key in ACTION_KEYS if getattr(action, key) is not None]
    if len(kinds) != 1:
        every = list_text(ACTION_KEYS)
        has = f"none of {every}" if not kinds else " and ".join(kinds)
        yield Problem((), has, f"Give it one of {every}.")
    yield from _argv_problems("command", action.command)
    yield from _argv_problems("undo", action.undo)
    if action.undo is not None and "command" not in kinds:
        yield Problem(("undo",), "undo without command", "A file is undone by undo_text.")
    if (action.file is None) != (action.text is None):
        yield Problem(("text",), "only one of file and text", "Give both.")
    if action.undo_text is not None and action.file is None:
        yield Problem(("undo_text",), "undo_text without file", "A command is undone by undo.")
    yield from _limit_problems(action)
    if len(kinds) == 1 and not _build_action(action).has_undo:
        if action.undo_after is not None:
            yield Problem(("undo_after",), "undo_after, and nothing undoes it", "Give undo, too.")
    elif action.destructive:
        yield Problem(("destructive",), "destructive, and an undo", "Leave one of them out.")
    yield from _host_problems(action.host, hosts)


def _limit_problems(action: ActionTable) -> Iterator[Problem]:
    rates = [key for key in RATE_KEYS if getattr(action, key) is not None]
    if action.limit is None:
        for key in ("device", *rates):
            if getattr(action, key) is not None:
                yield Problem((key,), f"{key} without limit", "Give limit, a control group.")
    elif action.device is None or not rates:
        has = "limit without device" if action.device is None else "limit without a rate"
        yield Problem(("limit",), has, f"Give device, and one of {list_text(RATE_KEYS)}.")


def _witness_problems(witness: WitnessTable, hosts: Iterable[str]) -> Iterator[Problem]:
    if (witness.command is None) == (witness.file is None):
        has = "neither" if witness.command is None else "both"
        yield Problem((), f"{has} of command and file", "Give it one of them.")
    if (witness.file is None) != (witness.equals is None):
        yield Problem(("equals",), "only one of file and equals", "Give both.")
    if witness.field is not None and witness.command is None:
        yield Problem(("field",), "field without command", "Leave field out.")
    for key in ("rebuilt_field", "throttle_field"):
        if getattr(witness, key) is not None and witness.field is None:
            yield Problem((key,), f"{key} without field", "Give field, too: the state itself.")
    yield from _argv_problems("command", witness.command)
    yield from _host_problems(witness.host, hosts)


def _argv_problems(key: str, argv: list[str] | None) -> Iterator[Problem]:
    if argv is not None and not (argv and argv[0].startswith("/")):
        yield Problem((key,), f"{key} = {quote_value(argv)}", LIST_HINT)


def _host_problems(host: str, hosts: Iterable[str]) -> Iterator[Problem]:
    if host not in hosts:
        has = f"host = {quote_value(host)}, which is no host of the study"
        yield Problem(("host",), has, suggestion(host, tuple(hosts), "hosts"))


def build_course_plan(tables: StudyTables) -> CoursePlan | None:
    """The course of tables without faults; None where the study has no phases."""
    phases = tuple(
        _build_phase_plan(table) for _, table in tables.items_of_table("phase", PhaseTable)
    )
    if not phases:
        return None
    return CoursePlan(
        phases,
        tuple(_build_event_plan(table) for _, table in tables.items_of_table("event", EventTable)),
        tuple(_build_action(table) for _, table in tables.items_of_table("action", ActionTable)),
        tuple(_build_witness(table) for _, table in tables.items_of_table("witness", WitnessTable)),
    )


def _build_phase_plan(table: PhaseTable) -> PhasePlan:
    until = None if table.until is None else Expectation.parse(table.until)
    return PhasePlan(table.id, table.seconds, until, table.longest or 0.0)


def _build_event_plan(table: EventTable) -> EventPlan:
    expected = None if table.expect is None else Expectation.parse(table.expect)
    return EventPlan(
        table.id,
        table.action,
        table.phase,
        table.after,
        expected,
        table.within,
        table.undo_phase or "",
        table.title or "",
    )


def _build_action(table: ActionTable) -> Action:
    kinds = {
        ActionKind.COMMAND: table.command,
        ActionKind.STOP: table.stop,
        ActionKind.KILL: table.kill,
        ActionKind.SETTING: table.file,
        ActionKind.DETACH: table.detach,
        ActionKind.OFFLINE: table.offline,
        ActionKind.CUT_LINK: table.cut_link,
        ActionKind.LIMIT: table.limit,
    }
    process = table.stop or table.kill or ""
    is_path = process.startswith("/")
    rates = {key: getattr(table, key) for key in RATE_KEYS}
    return Action(
        table.id,
        table.host,
        next(kind for kind, value in kinds.items() if value is not None),
        argv=tuple(table.command or ()),
        undo_argv=tuple(table.undo or ()),
        pid_file=process if is_path else "",
        unit="" if is_path else process,
        device=table.detach or table.offline or table.device or "",
        interface=table.cut_link or "",
        group=table.limit or "",
        limits={key: parse_size(rate) for key, rate in rates.items() if rate is not None},
        undo_after_s=table.undo_after,
        destructive=table.destructive,
        path=table.file or "",
        text=table.text or "",
        undo_text=table.undo_text or "",
        timeout_s=table.timeout,
    )


def _build_witness(table: WitnessTable) -> Witness:
    return Witness(
        table.id,
        table.host,
        argv=tuple(table.command or ()),
        field=table.field or "",
        file=table.file or "",
        equals=table.equals or "",
        interval_s=table.every,
        timeout_s=table.timeout,
        rebuilt_field=table.rebuilt_field or "",
        throttle_field=table.throttle_field or "",
    )
