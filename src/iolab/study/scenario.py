"""From the tables of phases, events, actions and witnesses to the scenario that a study wants."""

from __future__ import annotations

import posixpath
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Final

from iolab.core.engine import EngineName
from iolab.core.host import HostRole
from iolab.core.scenario import (
    READBACK_PHASE,
    Action,
    ActionKind,
    EventPlan,
    IoLimit,
    PhasePlan,
    ScenarioPlan,
    Witness,
    WitnessExpectation,
)
from iolab.core.study import FailurePolicy, MethodKind
from iolab.core.workload import Workload
from iolab.study.document import StudyDocument
from iolab.study.file import HostTable
from iolab.study.load_tables import LoadTable
from iolab.study.scenario_tables import (
    INVENTORY_ONLY,
    ActionTable,
    EventTable,
    IoLimitTable,
    PhaseTable,
    WitnessTable,
)
from iolab.study.tables import ElementFault, StudyTables, TableItem, add_element_faults
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

TIMED_UNDO_KEYS: Final = frozenset({"cut_link", "stop"})
"""Kinds of actions that may cut the host itself off, whose undo then needs a time of its own."""

RATE_KEYS: Final = ("read_iops", "write_iops", "read_bw", "write_bw")
"""What a limit limits, in a second."""

KERNEL_FOLDERS: Final = ("/sys", "/proc/sys")
"""Below which an agent writes what a setting says."""

ENGINES: Final = (EngineName("native"), EngineName("fio"))
"""Those of I/O on files; with the native one latency begins when an I/O is due."""


def drop_inventory_tables_and_add_faults(document: StudyDocument) -> None:
    """Add a fault for what only an inventory may say, and leave it out."""
    for section in INVENTORY_ONLY:
        if section in document.tree:
            message = f"A study has no [[{section}]]: it would say what is run on your hosts."
            hint = "Write it into the inventory that you give with --hosts."
            document.add_fault((section,), message, hint)
            document.tree.pop(section)


def add_phase_and_event_faults(
    document: StudyDocument, tables: StudyTables, *, is_required: bool
) -> None:
    """Add every fault of phases and events; with `is_required` also what an inventory lacks."""
    phases = tables.items_of_table("phase", PhaseTable)
    events = tables.items_of_table("event", EventTable)
    hosts = [table.name for _, table in tables.items_of_table("host", HostTable)]
    for item, action in tables.items_of_table("action", ActionTable):
        add_element_faults(document, item, _action_element_faults(action, hosts))
    for item, witness in tables.items_of_table("witness", WitnessTable):
        add_element_faults(document, item, _witness_element_faults(witness, hosts))
    lengths = {table.id: table.seconds or table.longest or 0.0 for _, table in phases}
    for item, phase in phases:
        add_element_faults(document, item, _phase_element_faults(phase))
    loads = {event.id for _, event in events if event.workload is not None}
    is_verified = any(
        item.values_as_written.get("verify")
        for item, _ in tables.items_of_table("workload", LoadTable)
    )
    for item, event in events:
        if event.phase == READBACK_PHASE:
            problems = _readback_event_element_faults(event, is_verified=is_verified)
        else:
            problems = _event_time_element_faults(event, lengths)
        add_element_faults(document, item, problems)
        add_element_faults(document, item, _action_workload_or_limits_faults(event, loads))
    _add_limit_outside_load_faults(document, [phase.id for _, phase in phases], events)
    _add_neighbour_faults(document, tables)
    if is_required:
        _add_unknown_action_and_witness_faults(document, tables)
    if phases:
        _add_faults_of_method_with_phases(document, tables)
        first = phases[0][1]
        if first.seconds is None or any(event.phase == first.id for _, event in events):
            message = "The first phase is the baseline: it ends by time, and has no event."
            hint = "Give it seconds, and have events in the phases after it."
            document.add_fault(phases[0][0].key_path, message, hint)
    elif events:
        hint = "Write [[phase]] for each part of the run, the healthy one first."
        document.add_fault(events[0][0].key_path, "There are events, and no phase.", hint)


def _add_unknown_action_and_witness_faults(document: StudyDocument, tables: StudyTables) -> None:
    """Add a fault for each action and witness that no inventory describes."""
    actions = {table.id: table for _, table in tables.items_of_table("action", ActionTable)}
    witnesses = {table.id: table for _, table in tables.items_of_table("witness", WitnessTable)}
    for item, phase in tables.items_of_table("phase", PhaseTable):
        if phase.until is not None:
            add_element_faults(
                document, item, _witness_state_element_faults("until", phase.until, witnesses)
            )
    hosts = [table.name for _, table in tables.items_of_table("host", HostTable)]
    for item, event in tables.items_of_table("event", EventTable):
        for name in event.hosts or ():
            if name not in hosts:
                has = f"hosts = {quote_value(name)}, which is no host of the study"
                hint = suggestion(name, hosts, "hosts")
                add_element_faults(document, item, [ElementFault(("hosts",), has, hint)])
        if event.expect is not None:
            add_element_faults(
                document, item, _witness_state_element_faults("expect", event.expect, witnesses)
            )
        if event.action is not None and event.action not in actions:
            has = f"action = {quote_value(event.action)}, which no inventory describes"
            hint = _inventory_hint("action", event.action, actions)
            add_element_faults(document, item, [ElementFault(("action",), has, hint)])
        elif event.action is not None and event.phase == READBACK_PHASE:
            problems = _element_faults_of_action_in_readback_phase(
                event.action, _build_action(actions[event.action])
            )
            add_element_faults(document, item, problems)


def _inventory_hint(table: str, name: str, known_ids: Collection[str]) -> str:
    """What to write into the inventory, with what it has instead."""
    hint = f"Write [[{table}]] with id = '{name}' into the inventory of --hosts."
    return (
        f"{hint} It has {list_text([quote_value(other) for other in known_ids])}."
        if known_ids
        else hint
    )


def neighbour_workload_ids(tables: StudyTables) -> frozenset[str]:
    """The workloads that events begin, which are no points of their own."""
    events = tables.items_of_table("event", EventTable)
    return frozenset(event.workload for _, event in events if event.workload is not None)


def _add_neighbour_faults(document: StudyDocument, tables: StudyTables) -> None:
    """Add a fault for each workload of an event that cannot be a neighbour's, or is not there."""
    loads = {load.id: (item, load) for item, load in tables.items_of_table("workload", LoadTable)}
    names = neighbour_workload_ids(tables)
    for item, event in tables.items_of_table("event", EventTable):
        if event.workload is not None and event.workload not in loads:
            has = f"workload = {quote_value(event.workload)}, which is none"
            hint = suggestion(event.workload, loads, "workloads")
            add_element_faults(document, item, [ElementFault(("workload",), has, hint)])
    for name in sorted(names & loads.keys()):
        item, load = loads[name]
        for axis in load.sweep_axes(item.values_as_written):
            values = quote_value(list(axis.values))
            has = f"{axis.name} = {values}, and an event begins this load"
            add_element_faults(
                document, item, [ElementFault((axis.name,), has, "Give one value, no list.")]
            )
    if loads and names >= loads.keys():
        hint = "Write a further [[workload]], which no event names: it is the one that is measured."
        document.add_fault((), "Every workload is a neighbour's, begun by an event.", hint)
    _add_neighbour_host_faults(document, tables)


def _add_limit_outside_load_faults(
    document: StudyDocument,
    phase_ids: Sequence[str],
    events: Sequence[tuple[TableItem, EventTable]],
) -> None:
    """Add a fault for each limit that begins where its load does not run."""
    loads = {event.id: event for _, event in events if event.workload is not None}
    for item, event in events:
        load = loads.get(event.limits or "")
        if load is None or event.phase not in phase_ids or load.phase not in phase_ids:
            continue
        begins = (phase_ids.index(event.phase), event.after)
        if begins < (phase_ids.index(load.phase), load.after):
            has = f"a limit {event.after:g} s into phase '{event.phase}', before its load begins"
            hint = f"The load begins {load.after:g} s into phase '{load.phase}': limit it later."
            add_element_faults(document, item, [ElementFault(("phase",), has, hint)])
        elif (
            load.undo_phase in phase_ids
            and event.phase in phase_ids[phase_ids.index(load.undo_phase) :]
        ):
            has = f"a limit in phase '{event.phase}', when its load has ended"
            hint = f"The load ends when phase '{load.undo_phase}' begins: limit it before."
            add_element_faults(document, item, [ElementFault(("phase",), has, hint)])


def _add_neighbour_host_faults(document: StudyDocument, tables: StudyTables) -> None:
    """Add a fault where neighbours leave no client for the measured load."""
    events = tables.items_of_table("event", EventTable)
    alone = {name for _, event in events for name in event.hosts or ()}
    clients = {
        host.name
        for _, host in tables.items_of_table("host", HostTable)
        if host.role is HostRole.CLIENT
    }
    if alone and alone >= clients:
        item = next(item for item, event in events if event.hosts)
        has = f"hosts = {quote_value(sorted(alone))}, which leaves no client for the measured load"
        hint = "Name fewer; without hosts every client makes both loads."
        add_element_faults(document, item, [ElementFault(("hosts",), has, hint)])


def _add_faults_of_method_with_phases(document: StudyDocument, tables: StudyTables) -> None:
    method = tables.method
    if method.kind is not MethodKind.FIXED:
        message = f"method.kind is '{method.kind.value}', and phases say how long a run is."
        document.add_fault(("method", "kind"), message, "Set it to 'fixed', or leave it out.")
    if method.on_failure not in {FailurePolicy.STOP, FailurePolicy.SKIP_POINT}:
        message = (
            f"on_failure is '{method.on_failure.value}', which would repeat a run, and an event is "
            "never repeated by itself."
        )
        document.add_fault(("method", "on_failure"), message, "Set it to 'stop' or 'skip-point'.")
    if "runtime" in method.model_fields_set:
        message = "method.runtime stands beside phases, which say how long a run is."
        document.add_fault(("method", "runtime"), message, "Leave it out.")
    for item, _ in tables.items_of_table("workload", LoadTable):
        engine = item.values_as_written.get("engine", "fio")
        if engine not in ENGINES:
            has = f"engine = {quote_value(engine)}, and the study has phases"
            hint = "Set engine = 'native' or 'fio'."
            add_element_faults(document, item, [ElementFault(("engine",), has, hint)])


def _phase_element_faults(phase: PhaseTable) -> Iterator[ElementFault]:
    if phase.id == READBACK_PHASE:
        has = f"id = '{READBACK_PHASE}', which is what follows the last phase"
        yield ElementFault(("id",), has, "Give it another id.")
    if (phase.seconds is None) == (phase.until is None):
        has = "neither" if phase.seconds is None else "both"
        hint = "Give it seconds, or until with longest."
        yield ElementFault(("seconds",), f"{has} of seconds and until", hint)
    if (phase.until is None) != (phase.longest is None):
        has = "longest without until" if phase.until is None else "until without longest"
        hint = "A phase that ends by a witness needs longest, its limit; others do not."
        yield ElementFault(("longest",), has, hint)


def _event_time_element_faults(
    event: EventTable, length_s_by_phase: Mapping[str, float]
) -> Iterator[ElementFault]:
    if event.phase not in length_s_by_phase:
        has = f"phase = {quote_value(event.phase)}, which is none"
        yield ElementFault(("phase",), has, suggestion(event.phase, length_s_by_phase, "phases"))
    elif event.after >= length_s_by_phase[event.phase] > 0:
        has = f"after = {event.after:g} s, and its phase lasts {length_s_by_phase[event.phase]:g} s"
        yield ElementFault(("after",), has, "Give less, or name a later phase.")
    names = list(length_s_by_phase)
    if event.undo_phase is not None and event.phase in names:
        later = names[names.index(event.phase) + 1 :]
        if event.undo_phase not in later:
            has = f"undo_phase = {quote_value(event.undo_phase)}, which is no later phase"
            yield ElementFault(
                ("undo_phase",), has, suggestion(event.undo_phase, later, "later phases")
            )


def _readback_event_element_faults(
    event: EventTable, *, is_verified: bool
) -> Iterator[ElementFault]:
    """Problems of an event after the last phase, which is there to verify writes."""
    if not is_verified:
        has = f"phase = '{READBACK_PHASE}', and no workload has verify = true"
        yield ElementFault(("phase",), has, "Give the workload verify = true, or name a phase.")
    if event.action is None:
        yield ElementFault(
            ("phase",), f"phase = '{READBACK_PHASE}' without action", "Name a phase."
        )
    for key in ("after", "expect", "undo_phase"):
        if key in event.model_fields_set:
            has = f"{key} in phase '{READBACK_PHASE}'"
            yield ElementFault((key,), has, "Leave it out: the load has ended.")


def _element_faults_of_action_in_readback_phase(
    name: str, action: Action
) -> Iterator[ElementFault]:
    if action.has_undo:
        has = f"action = {quote_value(name)}, which has an undo, in phase '{READBACK_PHASE}'"
        yield ElementFault(("action",), has, "Do there what stays, as a new mount.")


def _action_workload_or_limits_faults(
    event: EventTable, loads: Collection[str]
) -> Iterator[ElementFault]:
    """Problems of what an event is: an action, a load, or the limit of a load."""
    kinds = [key for key in ("action", "workload", "limits") if getattr(event, key) is not None]
    if len(kinds) != 1:
        has = "none of action, workload and limits" if not kinds else " and ".join(kinds)
        yield ElementFault((), has, "Give it one of action, workload and limits.")
    if event.limits is not None and event.limits not in loads:
        has = f"limits = {quote_value(event.limits)}, which is no event with a workload"
        yield ElementFault(("limits",), has, suggestion(event.limits, loads, "such events"))
    limit = event.io_limit
    if "limits" in kinds and limit is None:
        yield ElementFault(("io_limit",), "limits without io_limit", "Give io_limit, too.")
    if limit is not None and "action" in kinds:
        yield ElementFault(("io_limit",), "io_limit beside action", "Leave io_limit out.")
    if limit is not None and not any(True for _ in limit.non_null_keys_and_values()):
        hint = "Give it read_iops, write_iops, read_bw or write_bw."
        yield ElementFault(("io_limit",), "an empty io_limit", hint)
    if event.hosts is not None and event.workload is None:
        yield ElementFault(("hosts",), "hosts without workload", "Leave hosts out.")
    if event.expect is not None and event.action is None:
        hint = "Leave expect out: the load tells itself whether it ran."
        yield ElementFault(("expect",), "expect without action", hint)


def _witness_state_element_faults(
    key: str, state: str, witness_by_id: Mapping[str, WitnessTable]
) -> Iterator[ElementFault]:
    name = WitnessExpectation.parse(state).witness
    if name not in witness_by_id:
        has = f"{key} = {quote_value(state)}, and no inventory describes that witness"
        yield ElementFault((key,), has, _inventory_hint("witness", name, witness_by_id))


def _action_element_faults(action: ActionTable, hosts: Iterable[str]) -> Iterator[ElementFault]:
    kinds = [key for key in ACTION_KEYS if getattr(action, key) is not None]
    if len(kinds) != 1:
        every = list_text(ACTION_KEYS)
        has = f"none of {every}" if not kinds else " and ".join(kinds)
        yield ElementFault((), has, f"Give it one of {every}.")
    yield from _argv_element_faults("command", action.command)
    yield from _argv_element_faults("undo", action.undo)
    if action.undo is not None and "command" not in kinds:
        yield ElementFault(("undo",), "undo without command", "A file is undone by undo_text.")
    if (action.file is None) != (action.text is None):
        yield ElementFault(("text",), "only one of file and text", "Give both.")
    if action.undo_text is not None and action.file is None:
        yield ElementFault(("undo_text",), "undo_text without file", "A command is undone by undo.")
    yield from _action_io_limit_element_faults(action)
    if action.file is not None and not is_kernel_file(action.file):
        trees = list_text(KERNEL_FOLDERS)
        has = f"file = {quote_value(action.file)}, which is below none of {trees}"
        yield ElementFault(("file",), has, "Change other files by a command.")
    if action.undo_after is not None and kinds and not set(kinds) <= TIMED_UNDO_KEYS:
        has = f"undo_after beside {kinds[0]}"
        hint = (
            "Leave it out: it is for cut_link and stop, which may keep the host from hearing of "
            "the end. An event's undo_phase says when it is undone."
        )
        yield ElementFault(("undo_after",), has, hint)
    if action.destructive and not (len(kinds) == 1 and not _build_action(action).has_undo):
        yield ElementFault(("destructive",), "destructive, and an undo", "Leave one of them out.")
    yield from _unknown_host_element_faults(action.host, hosts)


def _action_io_limit_element_faults(action: ActionTable) -> Iterator[ElementFault]:
    rates = [key for key in RATE_KEYS if getattr(action, key) is not None]
    if action.limit is None:
        for key in ("device", *rates):
            if getattr(action, key) is not None:
                yield ElementFault((key,), f"{key} without limit", "Give limit, a control group.")
    elif action.device is None or not rates:
        has = "limit without device" if action.device is None else "limit without a rate"
        yield ElementFault(("limit",), has, f"Give device, and one of {list_text(RATE_KEYS)}.")


def _witness_element_faults(witness: WitnessTable, hosts: Iterable[str]) -> Iterator[ElementFault]:
    if (witness.command is None) == (witness.file is None):
        has = "neither" if witness.command is None else "both"
        yield ElementFault((), f"{has} of command and file", "Give it one of them.")
    if (witness.file is None) != (witness.equals is None):
        yield ElementFault(("equals",), "only one of file and equals", "Give both.")
    if witness.field is not None and witness.command is None:
        yield ElementFault(("field",), "field without command", "Leave field out.")
    for key in ("rebuilt_field", "throttle_field"):
        if getattr(witness, key) is not None and witness.field is None:
            yield ElementFault((key,), f"{key} without field", "Give field, too: the state itself.")
    yield from _argv_element_faults("command", witness.command)
    yield from _unknown_host_element_faults(witness.host, hosts)


def _argv_element_faults(key: str, argv: list[str] | None) -> Iterator[ElementFault]:
    if argv is not None and not (argv and argv[0].startswith("/")):
        yield ElementFault((key,), f"{key} = {quote_value(argv)}", LIST_HINT)


def is_kernel_file(path: str) -> bool:
    """Whether a setting may write to the file: one of the kernel, by no way around."""
    return posixpath.normpath(path).startswith(tuple(f"{folder}/" for folder in KERNEL_FOLDERS))


def _unknown_host_element_faults(host_name: str, hosts: Iterable[str]) -> Iterator[ElementFault]:
    if host_name not in hosts:
        has = f"host = {quote_value(host_name)}, which is no host of the study"
        yield ElementFault(("host",), has, suggestion(host_name, tuple(hosts), "hosts"))


def build_scenario_plan(
    tables: StudyTables, neighbours: tuple[Workload, ...] = ()
) -> ScenarioPlan | None:
    """The scenario of tables without faults; None where the study has no phases.

    `neighbours` are the workloads of `neighbour_workload_ids`.
    """
    phases = tuple(
        _build_phase_plan(table) for _, table in tables.items_of_table("phase", PhaseTable)
    )
    if not phases:
        return None
    return ScenarioPlan(
        phases,
        tuple(_build_event_plan(table) for _, table in tables.items_of_table("event", EventTable)),
        tuple(_build_action(table) for _, table in tables.items_of_table("action", ActionTable)),
        tuple(_build_witness(table) for _, table in tables.items_of_table("witness", WitnessTable)),
        neighbours,
    )


def _build_phase_plan(table: PhaseTable) -> PhasePlan:
    until = None if table.until is None else WitnessExpectation.parse(table.until)
    return PhasePlan(table.id, table.seconds, until, table.longest or 0.0)


def _build_event_plan(table: EventTable) -> EventPlan:
    expected = None if table.expect is None else WitnessExpectation.parse(table.expect)
    return EventPlan(
        table.id,
        table.action or "",
        table.phase,
        table.after,
        expected,
        table.within,
        table.undo_phase or "",
        table.title or "",
        neighbour=table.workload or "",
        hosts=tuple(table.hosts or ()),
        load_event=table.limits or "",
        io_limit=None if table.io_limit is None else _build_io_limit(table.io_limit),
    )


def _build_io_limit(table: IoLimitTable | ActionTable) -> IoLimit:
    return IoLimit(
        table.read_iops,
        table.write_iops,
        None if table.read_bw is None else parse_size(table.read_bw),
        None if table.write_bw is None else parse_size(table.write_bw),
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
        io_limit=None if table.limit is None else _build_io_limit(table),
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
