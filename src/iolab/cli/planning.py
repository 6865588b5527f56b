"""A plan for the terminal and as JSON: what will run, write, take, need and destroy."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from msgspec import to_builtins
from rich.text import Text

from iolab.core.configuration import Objective
from iolab.core.power import meter_interval_s
from iolab.core.run import Plan, PlannedRun
from iolab.core.scenario import READBACK_PHASE, Action, EventPlan, ScenarioPlan
from iolab.core.study import AnswerKind, Study
from iolab.core.workload import AnyJob, Workload
from iolab.registry import study_kind_of_job, study_kinds_used_by
from iolab.report.numbers import axis_values_text
from iolab.report.phrases import load_search_criterion_text
from iolab.report.table import Column
from iolab.report.terminal import literal_text, name_value_grid, section_title, terminal_table
from iolab.study.cost import demand_duration_text, is_target_block_device
from iolab.study.forecast import forecast_verdicts
from iolab.study.repeats import repeats_advice
from iolab.study.schedule import searched_axes
from iolab.study.targets import Target, targets_of_study
from iolab.study.writes import WriteForecast, forecast_writes
from iolab.text import capitalised, counted_noun, list_text, one_line, quote_value
from iolab.units import format_bytes, format_duration_s

if TYPE_CHECKING:
    from rich.console import RenderableType

    from iolab.core.host import HostFacts, TargetFacts
    from iolab.core.metric import RunResult
    from iolab.errors import IolabError

HOSTS_SHOWN: Final = 4
"""Hosts that are named for a target; more are counted."""

SEARCHES_SHOWN: Final = 8
"""Workloads named with what is searched for in all of them; others are counted."""


def job_text(job: AnyJob) -> str:
    """What one client is asked to do."""
    return study_kind_of_job(job).job_text(job)


def plan_lines(
    study: Study,
    plan: Plan,
    facts_by_target: Mapping[str, HostFacts] | None,
    *,
    is_summary: bool = False,
    refusal: IolabError | None = None,
    results: Sequence[RunResult] = (),
    event_notes: Sequence[str] = (),
) -> Iterator[RenderableType]:
    """The runs in their order, then the cost with its reasons; facts when hosts were surveyed.

    `event_notes` are what hosts say of events. Bytes are forecast at the rates of `results`, which
    are of finished runs of the plan. A summary has a row for each workload. The first line is the
    cost as a whole, or why the plan cannot run; no verdict is forecast then.
    """
    plan = study_kinds_used_by(study).plan_with_demand_from_facts(study, plan, facts_by_target)
    writes = forecast_writes(study, plan, study_kinds_used_by(study), results)
    if refusal is None:
        yield literal_text(_plan_cost_sentence(plan, writes), "bold")
        for destroyed in (*plan.destroyed_device_texts, *_destructive_event_texts(study)):
            yield literal_text(f"Destroys {destroyed.rstrip('.')}.", "bold red")
    else:
        yield literal_text(_plan_refusal_sentence(refusal), "bold red")
    yield ""
    yield literal_text(study.title)
    if study.question:
        yield literal_text(study.question)
    yield ""
    yield _workload_table(study, plan) if is_summary else _planned_run_table(study, plan)
    yield ""
    is_refused = refusal is not None
    # Of a plan that is not refused the first line has the time.
    rows: list[tuple[str, Text | str]] = (
        [("time", demand_duration_text(plan.demand))] if is_refused else []
    )
    rows += list(_plan_summary_rows(study, plan, facts_by_target, writes, is_refused=is_refused))
    rows += [("note", Text(one_line(note), "yellow")) for note in event_notes]
    yield name_value_grid(rows)
    if is_summary:
        return
    yield ""
    yield section_title(f"Time: {demand_duration_text(plan.demand)}")
    seconds = [
        [Text(f"  {format_duration_s(part)}"), literal_text(why)]
        for why, part in plan.demand.time_items
    ]
    yield terminal_table([Column("", is_number=True), Column("", can_wrap=True)], seconds)


def _plan_cost_sentence(plan: Plan, write_forecast: WriteForecast) -> str:
    """Time, runs and bytes as a whole."""
    writes_text = write_forecast.forecast_sentence.partition(";")[0]
    duration = capitalised(demand_duration_text(plan.demand))
    return f"{duration}: {run_count_or_range_text(plan)}. Writes {writes_text}."


def _plan_refusal_sentence(refusal: IolabError) -> str:
    """That the plan is refused; the error at the end has the reasons, once."""
    reasons = len(refusal.faults)
    why = "the reason is" if reasons <= 1 else f"the {reasons} reasons are"
    return f"This plan cannot run here: {why} at the end."


def plan_document(
    study: Study,
    plan: Plan,
    facts_by_target: Mapping[str, HostFacts] | None,
    results: Sequence[RunResult] = (),
    event_notes: Sequence[str] = (),
) -> dict[str, Any]:
    """The plan as `iolab plan --json` prints it."""
    plan = study_kinds_used_by(study).plan_with_demand_from_facts(study, plan, facts_by_target)
    budget = plan.demand
    return {
        "format": 1,
        "study": {"id": study.id, "title": study.title, "scale": study.scale},
        "digest": plan.digest,
        "runs_more": plan.extra_run_count,
        "candidates": [point.digest for point in plan.candidate_points],
        "runs": [
            {
                "order": run.order,
                "repeat": run.repeat,
                "configuration": run.point.configuration,
                "workload": run.point.workload,
                "axis": dict(run.point.axis_values),
                "digest": run.point.digest,
                "data_set": run.point.data_set,
            }
            for run in plan.runs
        ],
        "data_sets": [
            {
                "id": item.id,
                "configuration": item.configuration,
                "file_count": item.numjobs * item.files_per_job,
                "file_bytes": item.file_bytes,
                "bytes_per_host": item.bytes_per_host,
            }
            for item in plan.data_sets
        ],
        "budget": {
            "seconds": budget.seconds,
            "least_seconds": budget.least_seconds,
            "reasons": [{"message": why, "seconds": part} for why, part in budget.time_items],
            "layout_bytes_per_host": budget.layout_bytes_per_host,
            "writes": forecast_writes(study, plan, study_kinds_used_by(study), results).document(),
            "free_bytes_needed_per_host": budget.free_bytes_needed_per_host,
        },
        "best_verdict": forecast_verdicts(
            study, plan, study_kinds_used_by(study), facts_by_target
        ).document(),
        "destroys": [*plan.destroyed_device_texts, *_destructive_event_texts(study)],
        **({} if study.scenario is None else {"scenario": to_builtins(study.scenario)}),
        "notes": [*plan_note_texts(study, plan, facts_by_target), *map(one_line, event_notes)],
        "targets": [
            {
                "host": target.host,
                "path": target.path,
                "configurations": list(target.configurations),
                "free_bytes": _free_bytes(facts_by_target, target.key),
            }
            for target in targets_of_study(study)
        ],
        "meters": [
            {
                "host": host.name,
                "name": meter.name,
                "kind": meter.kind.value,
                "boundary": meter.boundary.value,
                "interval_s": meter_interval_s(study.meters, meter),
            }
            for host in study.hosts
            for meter in host.meters
        ],
        "guests": study_kinds_used_by(study).hosts.booted_hosts_plan_document(
            study, facts_by_target
        ),
    }


def _workload_table(study: Study, plan: Plan) -> RenderableType:
    """How many points and runs each workload has in each configuration, and along which axes."""
    several = len(study.configurations) > 1
    is_swept = any(run.point.axis_values for run in plan.runs)
    grouped: dict[tuple[str, str], list[PlannedRun]] = {}
    for run in plan.runs:
        grouped.setdefault((run.point.workload, run.point.configuration), []).append(run)
    headings = [
        Column("workload", can_wrap=True),
        *([Column("configuration", can_wrap=True)] if several else []),
        Column("points", is_number=True),
        Column("runs", is_number=True),
        *([Column("along", can_wrap=True)] if is_swept else []),
    ]
    rows: list[list[Text | str]] = []
    workloads = [workload.id for workload in study.workloads]
    configurations = [item.id for item in study.configurations]
    ordered = sorted(
        grouped.items(),
        key=lambda item: (workloads.index(item[0][0]), configurations.index(item[0][1])),
    )
    for (workload, configuration), runs in ordered:
        values: dict[str, dict[str, None]] = {}
        for run in runs:
            for name, value in run.point.axis_values:
                values.setdefault(name, {})[str(value)] = None
        along = "; ".join(f"{name} {', '.join(numbers)}" for name, numbers in values.items())
        rows.append(
            [
                literal_text(workload),
                *([literal_text(configuration)] if several else []),
                str(len({run.point.digest for run in runs})),
                str(len(runs)),
                *([literal_text(along)] if is_swept else []),
            ]
        )
    return terminal_table(headings, rows)


def _planned_run_table(study: Study, plan: Plan) -> RenderableType:
    many = len(study.configurations) > 1
    swept = any(run.point.axis_values for run in plan.runs)
    repeated = any(run.repeat > 1 for run in plan.runs)
    headings = [
        Column("run", is_number=True),
        *([Column("configuration", can_wrap=True)] if many else []),
        Column("workload", can_wrap=True),
        *([Column("axis", can_wrap=True)] if swept else []),
        *([Column("repeat", is_number=True)] if repeated else []),
        Column("job on each host", can_wrap=True),
    ]
    rows = [
        [
            Text(str(run.order)),
            *([literal_text(run.point.configuration)] if many else []),
            literal_text(run.point.workload),
            *([literal_text(axis_values_text(run.point.axis_values))] if swept else []),
            *([Text(str(run.repeat))] if repeated else []),
            literal_text(job_text(run.point.job)),
        ]
        for run in plan.runs
    ]
    return terminal_table(headings, rows)


def run_count_or_range_text(plan: Plan) -> str:
    """How many runs there are: where results decide, at least and at most."""
    if not plan.extra_run_count:
        return counted_noun(len(plan.runs), "run")
    most = counted_noun(len(plan.runs) + plan.extra_run_count, "run")
    return f"at least {len(plan.runs)}, at most {most}"


def _plan_summary_rows(
    study: Study,
    plan: Plan,
    facts_by_target: Mapping[str, HostFacts] | None,
    write_forecast: WriteForecast,
    *,
    is_refused: bool,
) -> Iterator[tuple[str, Text | str]]:
    budget = plan.demand
    repeats = (
        f", {counted_noun(study.method.repeats, 'repeat')}" if study.method.repeats > 1 else ""
    )
    yield (
        "runs",
        f"{run_count_or_range_text(plan)} of {counted_noun(len(plan.points), 'point')}{repeats}, "
        f"order {study.method.order.value}",
    )
    sought: dict[str, list[str]] = {}
    for workload in study.workloads:
        if workload.search_goal.is_adaptive:
            sought.setdefault(_search_goal_text(workload), []).append(one_line(workload.id))
    for search, names in sought.items():
        yield "search", f"{list_text(names, SEARCHES_SHOWN)}: {search}"
    yield from (
        (heading, one_line(message))
        for heading, message in study_kinds_used_by(study).hosts.plan_lines(study)
    )
    yield from _phase_and_event_rows(study)
    yield from _data_set_rows(study, plan)
    yield "writes", write_forecast.forecast_sentence
    if destroyed := (*plan.destroyed_device_texts, *_destructive_event_texts(study)):
        yield "destroys", Text(", ".join(one_line(item) for item in destroyed), "bold red")
    else:
        kept = "stay there (keep_files)" if study.target.keep_files else "are removed at the end"
        stores = [configuration.object_store for configuration in study.configurations]
        where = "objects lie below a prefix" if all(stores) else "the files lie in a folder"
        yield "destroys", f"nothing; {where} of their own and {kept}"
    if budget.free_bytes_needed_per_host:
        needed = format_bytes(budget.free_bytes_needed_per_host)
        yield "free space", f"{needed} needed on each {'host' if study.guests is None else 'node'}"
    for message in _target_lines_with_hosts(study, facts_by_target):
        yield "target", message
    for message in _meter_lines_with_hosts(study):
        yield "meter", message
    forecast = forecast_verdicts(study, plan, study_kinds_used_by(study), facts_by_target)
    for message in () if is_refused else forecast.text_lines():
        yield "verdict", one_line(message)
    for message in plan_note_texts(study, plan, facts_by_target):
        yield "note", Text(message, "yellow")


def _phase_and_event_rows(study: Study) -> Iterator[tuple[str, Text | str]]:
    """The phases of each run, and what events do to which host."""
    scenario = study.scenario
    if scenario is None:
        return
    for phase in scenario.phases:
        length = format_duration_s(phase.max_duration_s)
        end = length if phase.until is None else f"until {phase.until}, {length} at most"
        yield "phase", one_line(f"{phase.id}: {end}")
    for event in scenario.events:
        if not event.action:
            yield "event", one_line(_neighbour_event_text(scenario, event))
            continue
        action = scenario.action(event.action)
        expected = f"; must show: {event.expected}" if event.expected else ""
        what = (
            f"{_action_event_text(event, action)}{_undo_action_and_time_suffix(event, action)}"
            f"{expected}"
        )
        yield "event", Text(one_line(what), "bold red")
    consents = [
        f"{option} {name}"
        for option, is_destructive in (("--event", False), ("--destroy", True))
        for name in scenario.event_consent_names(is_destructive=is_destructive)
    ]
    if consents:
        yield "consent", one_line(" ".join(consents))


def _action_event_text(event: EventPlan, action: Action) -> str:
    when = "after the last phase" if event.phase == READBACK_PHASE else ""
    when = when or _event_start_in_phase_text(event)
    return f"{event.id}@{action.host}, {when}: {action.summary_text}"


def _event_start_in_phase_text(event: EventPlan) -> str:
    """When it begins, by its phase."""
    phase = f"phase {quote_value(event.phase)}"
    return f"{event.after_s:g} s into {phase}" if event.after_s else f"as {phase} begins"


def _undo_action_and_time_suffix(event: EventPlan, action: Action) -> str:
    """What undoes it, and when."""
    undo = action.undo_summary_text
    if not undo:
        return f"; {'DESTRUCTIVE, ' if action.destructive else ''}nothing undoes it"
    when = f"when '{event.undo_phase}' begins" if event.undo_phase else "at the end of the run"
    return f"; undone {when}: {undo}"


def _destructive_event_texts(study: Study) -> Iterator[str]:
    """What events destroy, which nothing undoes."""
    scenario = study.scenario
    for event in () if scenario is None else scenario.events:
        action = scenario.action(event.action) if scenario and event.action else None
        if action is not None and action.destructive:
            yield f"event {event.id} on host {action.host}: {action.summary_text}"


def _neighbour_event_text(scenario: ScenarioPlan, event: EventPlan) -> str:
    """A load that begins, or is limited: nothing is done to a host but that."""
    phase = quote_value(event.undo_phase)
    end = f"until phase {phase} begins" if event.undo_phase else "until the end"
    where = f"{event.id}, {_event_start_in_phase_text(event)}, {end}: "
    limit = f"{event.io_limit.text} on each disk" if event.io_limit else ""
    if event.load_event:
        return f"{where}event {event.load_event} is limited to {limit}"
    hosts = f" on {list_text(event.hosts)} alone" if event.hosts else ""
    neighbour = scenario.neighbour_workload(event.neighbour)
    load = (
        f"{where}the load {quote_value(neighbour.title)} ({job_text(neighbour.job)}) begins{hosts}"
    )
    return f"{load}, limited to {limit}" if limit else load


def plan_note_texts(
    study: Study, plan: Plan, facts_by_target: Mapping[str, HostFacts] | None
) -> Iterator[str]:
    """What should be known before the plan runs, and is no reason against it."""
    yield from (
        one_line(message)
        for message in study_kinds_used_by(study).plan_notes(study, plan, facts_by_target)
    )
    if not study.method.idle_watch_s:
        without = "results are at most indicative"
        yield f"no device is watched before its runs (method.idle_watch = 0): {without}"
    if study.answer is AnswerKind.ORDER and len(study.configurations) == 1:
        yield "the question wants an order, and there is one configuration: add [[configuration]]"
    if (advice := repeats_advice(study, study_kinds_used_by(study))) is not None:
        yield advice.advice_text
    yield from _notes_on_core_limits(study, facts_by_target)


def _notes_on_core_limits(
    study: Study, facts_by_target: Mapping[str, HostFacts] | None
) -> Iterator[str]:
    """Clients that may use fewer cores than they have: the least first, one note for all."""
    facts_by_host = {
        target.host: _host_facts_of_target(facts_by_target, target.key)
        for target in targets_of_study(study)
    }
    limits = {
        name: (host_facts.cpu.usable_core_limit, host_facts.cpu.threads)
        for name, host_facts in facts_by_host.items()
        if host_facts
    }
    limited = sorted((limit, name, cores) for name, (limit, cores) in limits.items() if limit)
    if limited:
        least, name, cores = limited[0]
        more = f" (and {len(limited) - 1} more)" if len(limited) > 1 else ""
        yield one_line(
            f"client {name} may use {least:.3g} of {cores} cores, by a quota or its affinity{more}"
        )


def _search_goal_text(workload: Workload) -> str:
    """What results decide of a workload."""
    axes = list_text(searched_axes(workload))
    aim = workload.search_goal
    match aim.objective:
        case Objective.PEAK:
            return f"the best over {axes}; its corners and centre first"
        case Objective.MAX_LOAD:
            what = f"the highest of {axes}" if axes else "the highest load"
            return f"{what} with {load_search_criterion_text(workload)}"
        case _:
            return f"the curve over {axes}; the loads between are chosen by results, or predicted"


def _data_set_rows(study: Study, plan: Plan) -> Iterator[tuple[str, str]]:
    """What the jobs work on: files that are laid out, and regions of devices that are filled."""
    lines = [
        line for kind in study_kinds_used_by(study).loads for line in kind.plan_lines(study, plan)
    ]
    yield from ((heading, one_line(message)) for heading, message in lines)
    if study.target.make_xfs:
        image = study.target.image_bytes
        where = "on the device" if image is None else f"in an image file of {format_bytes(image)}"
        yield "file system", f"an XFS {where}, made on each client for this session"
    files: list[str] = []
    regions: list[int] = []
    for item in plan.data_sets:
        here = study.configuration(item.configuration)
        on_device = {is_target_block_device(study, here.id, host) for host in here.hosts}
        if True in on_device and study.guests is None:
            regions.append(max(item.with_jobs_of_host(host).bytes_per_host for host in here.hosts))
        if False in on_device:
            number = item.numjobs * item.files_per_job
            files.append(f"{number} x {format_bytes(item.file_bytes)}")
    if files:
        size = format_bytes(plan.demand.layout_bytes_per_host)
        yield "files", f"{size} laid out on each host ({'; '.join(files)})"
    elif not regions and study.guests is None and not lines:
        yield "files", "none laid out before the runs"
    if regions:
        message = f"the first {format_bytes(max(regions))} of each device"
        fill = study.precondition.fill
        times = "once" if fill == 1 else f"{fill:g} times"
        yield "region", f"{message}, written over {times} by each fill" if fill else message


def _target_lines_with_hosts(
    study: Study, facts_by_target: Mapping[str, HostFacts] | None
) -> Iterator[str]:
    """Where the load goes: hosts with the same path on the same kind of file system in one line."""
    for configuration in study.configurations:
        if (store := configuration.object_store) is not None:
            yield f"{store.url_text} from {list_text(configuration.hosts, HOSTS_SHOWN)}"
    alike: dict[tuple[str, str], list[Target]] = {}
    for target in _targets_existing_before_session(study):
        if target.holds_no_load_data:
            continue
        host = _host_facts_of_target(facts_by_target, target.key)
        below = (
            _filesystem_and_devices_suffix(host.target)
            if host is not None and host.target is not None
            else ""
        )
        alike.setdefault((target.path, below), []).append(target)
    for (path, below), targets in alike.items():
        names = list(dict.fromkeys(target.host for target in targets))
        free = [
            size
            for target in targets
            if (size := _free_bytes(facts_by_target, target.key)) is not None
        ]
        least = "at least " if len(set(free)) > 1 else ""
        room = f", {least}{format_bytes(min(free))} free" if free else ""
        yield f"{path or 'no path given'} on {list_text(names, HOSTS_SHOWN)}{below}{room}"


def _meter_lines_with_hosts(study: Study) -> Iterator[str]:
    """The meters beside hosts, those that are alike in one line."""
    alike: dict[str, list[str]] = {}
    for host in study.hosts:
        for meter in host.meters:
            interval_s = meter_interval_s(study.meters, meter)
            pace = f"every {format_duration_s(interval_s)}" if interval_s else "at its own pace"
            text = f"{meter.name}: power of the {meter.boundary.value} by {meter.kind.value}"
            alike.setdefault(f"{text}, read {pace}", []).append(host.name)
    for text, hosts in alike.items():
        yield one_line(f"{text}, of {list_text(hosts, HOSTS_SHOWN)}")


def _targets_existing_before_session(study: Study) -> tuple[Target, ...]:
    """The targets that exist before the session: of guests that it boots those of their nodes."""
    return study_kinds_used_by(study).hosts.node_targets(study) or targets_of_study(study)


def _filesystem_and_devices_suffix(target: TargetFacts) -> str:
    device = f" on {', '.join(target.devices)}" if target.devices else ""
    hidden = (
        f", what lies below {target.layers_or_fs_type_text} cannot be seen" if target.hidden else ""
    )
    return f": {target.fs_type}{device}{hidden}"


def _host_facts_of_target(
    facts_by_target: Mapping[str, HostFacts] | None, target_key: str
) -> HostFacts | None:
    return None if facts_by_target is None else facts_by_target.get(target_key)


def _free_bytes(facts_by_target: Mapping[str, HostFacts] | None, target_key: str) -> int | None:
    host = _host_facts_of_target(facts_by_target, target_key)
    return host.target.free_bytes if host is not None and host.target is not None else None
