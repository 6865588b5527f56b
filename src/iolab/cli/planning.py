"""A plan for the terminal and as JSON: what will run, write, take, need and destroy."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, Final

from rich.text import Text

from iolab.cli.jobs import job_text, server_text, store_text
from iolab.cli.screen import Heading, one_line, pairs, plain, table, title
from iolab.model.objective import Objective
from iolab.model.run import Budget, Plan
from iolab.model.study import Study
from iolab.model.workload import Workload
from iolab.model.ycsb import YcsbJob
from iolab.plan.aim_tables import limit_name
from iolab.plan.budget import ASSUMED_WRITE_BYTES_PER_S
from iolab.plan.guest_guard import node_targets
from iolab.plan.guest_notes import fleet_lines, guest_notes
from iolab.plan.guests import boots_guests, node_path, nodes_of
from iolab.plan.key_value_budget import stores_of
from iolab.plan.key_value_copies import Reflinks, copy_notes, with_copies
from iolab.plan.key_value_cost import KeyJob, store_bytes
from iolab.plan.key_value_notes import memory_notes
from iolab.plan.searches import searched_axes
from iolab.plan.state_cost import is_on_device
from iolab.plan.targets import Target, targets_of
from iolab.report.wording import axis_label, count, listing
from iolab.units import format_bytes, format_duration_s, format_ns

if TYPE_CHECKING:
    from rich.console import RenderableType

    from iolab.model.host import HostFacts, TargetFacts

SHARING: Final = ("xfs", "btrfs", "ocfs2", "bcachefs")
"""File systems whose files may share extents."""

HOSTS_SHOWN: Final = 4
"""Hosts that are named for a target; more are counted."""


def plan_screen(
    study: Study, plan: Plan, facts: Mapping[str, HostFacts] | None
) -> Iterator[RenderableType]:
    """The runs in their order, then the cost with its reasons; `facts` when hosts were surveyed."""
    plan = with_copies(study, plan, _reflinks(study, facts), ASSUMED_WRITE_BYTES_PER_S)
    yield plain(study.title, "bold")
    if study.question:
        yield plain(study.question)
    yield ""
    yield _runs(study, plan)
    yield ""
    yield pairs(list(_costs(study, plan, facts)))
    yield ""
    yield title(f"Time: {_time(plan.budget)}")
    seconds = [
        [Text(f"  {format_duration_s(part)}"), plain(why)] for why, part in plan.budget.reasons
    ]
    yield table([Heading("", number=True), Heading("", main=True)], seconds)


def plan_document(
    study: Study, plan: Plan, facts: Mapping[str, HostFacts] | None
) -> dict[str, Any]:
    """The plan as `iolab plan --json` prints it."""
    plan = with_copies(study, plan, _reflinks(study, facts), ASSUMED_WRITE_BYTES_PER_S)
    budget = plan.budget
    return {
        "format": 1,
        "study": {"id": study.id, "title": study.title, "scale": study.scale},
        "digest": plan.digest,
        "runs_more": plan.runs_more,
        "candidates": [point.digest for point in plan.candidates],
        "runs": [
            {
                "order": run.order,
                "repeat": run.repeat,
                "configuration": run.point.configuration,
                "workload": run.point.workload,
                "axis": dict(run.point.axis),
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
            "reasons": [{"says": why, "seconds": part} for why, part in budget.reasons],
            "layout_bytes_per_host": budget.layout_bytes_per_host,
            "write_bytes_estimate": budget.write_bytes_estimate,
            "free_bytes_needed_per_host": budget.free_bytes_needed_per_host,
        },
        "destroys": list(plan.destroys),
        "notes": list(notes_of(study, plan, facts)),
        "targets": [
            {
                "host": target.host,
                "path": target.path,
                "configurations": list(target.configurations),
                "free_bytes": _free_bytes(facts, target.key),
            }
            for target in targets_of(study)
        ],
        "guests": _guests(study, facts),
    }


def _guests(study: Study, facts: Mapping[str, HostFacts] | None) -> dict[str, Any] | None:
    """The guests of a study by node; None where it has none."""
    nodes = nodes_of(study)
    if not nodes:
        return None
    return {
        "booted": _booted(study),
        "nodes": [
            {
                "node": node.name,
                "path": node_path(study, node),
                "guests": [spec.name for spec in study.hosts if spec.node == node.name],
                "free_bytes": _free_bytes(facts, node.name),
            }
            for node in nodes
        ],
    }


def _booted(study: Study) -> dict[str, Any] | None:
    """What guests that are booted have; None for those that exist already."""
    guests = study.guests
    if guests is None:
        return None
    return {
        "vcpus": guests.vcpus,
        "memory_bytes": guests.memory_bytes,
        "disk_bytes": guests.disk_bytes,
        "disk_kind": guests.disk.value,
        "latency_ns": guests.latency_ns,
        "iops_limit": guests.iops_limit,
        "replicas": guests.replicas,
        "accel": guests.accelerator.value,
        "pin": guests.pinning.value,
    }


def _time(budget: Budget) -> str:
    """How long it takes, from the least to the most where runs end when they may."""
    most = format_duration_s(budget.seconds)
    if budget.least_seconds is None:
        return f"about {most}"
    return f"{format_duration_s(budget.least_seconds)} to {most}"


def _runs(study: Study, plan: Plan) -> RenderableType:
    many = len(study.configurations) > 1
    swept = any(run.point.axis for run in plan.runs)
    repeated = any(run.repeat > 1 for run in plan.runs)
    headings = [
        Heading("run", number=True),
        *([Heading("configuration", main=True)] if many else []),
        Heading("workload", main=True),
        *([Heading("axis", main=True)] if swept else []),
        *([Heading("repeat", number=True)] if repeated else []),
        Heading("job on each host", main=True),
    ]
    rows = [
        [
            Text(str(run.order)),
            *([plain(run.point.configuration)] if many else []),
            plain(run.point.workload),
            *([plain(axis_label(run.point.axis))] if swept else []),
            *([Text(str(run.repeat))] if repeated else []),
            plain(job_text(run.point.job)),
        ]
        for run in plan.runs
    ]
    return table(headings, rows)


def _run_count(plan: Plan) -> str:
    """How many runs there are: where results decide, at least and at most."""
    if not plan.runs_more:
        return count(len(plan.runs), "run")
    most = count(len(plan.runs) + plan.runs_more, "run")
    return f"at least {len(plan.runs)}, at most {most}"


def _costs(
    study: Study, plan: Plan, facts: Mapping[str, HostFacts] | None
) -> Iterator[tuple[str, Text | str]]:
    budget = plan.budget
    repeats = f", {count(study.method.repeats, 'repeat')}" if study.method.repeats > 1 else ""
    yield (
        "runs",
        f"{_run_count(plan)} of {count(len(plan.points), 'point')}{repeats}, "
        f"order {study.method.order.value}",
    )
    for workload in study.workloads:
        if workload.aim.searches:
            yield "search", f"{one_line(workload.id)}: {_sought(workload)}"
    yield from ((heading, one_line(says)) for heading, says in fleet_lines(study))
    yield from _ground(study, plan)
    yield "writes", f"about {format_bytes(budget.write_bytes_estimate)} over all hosts and runs"
    if plan.destroys:
        yield "destroys", Text(", ".join(one_line(item) for item in plan.destroys), "bold red")
    else:
        kept = "stay there (keep_files)" if study.target.keep_files else "are removed at the end"
        yield "destroys", f"nothing; the files lie in a folder of their own and {kept}"
    if budget.free_bytes_needed_per_host:
        needed = format_bytes(budget.free_bytes_needed_per_host)
        yield "free space", f"{needed} needed on each {'node' if boots_guests(study) else 'host'}"
    for says in _targets(study, facts):
        yield "target", says
    for says in notes_of(study, plan, facts):
        yield "note", Text(says, "yellow")


def notes_of(study: Study, plan: Plan, facts: Mapping[str, HostFacts] | None) -> Iterator[str]:
    """What should be known before the plan runs, and is no reason against it."""
    yield from memory_notes(study, plan.points)
    reflinks = _reflinks(study, facts)
    yield from copy_notes(study, plan.runs, reflinks, ASSUMED_WRITE_BYTES_PER_S)
    yield from (one_line(says) for says in guest_notes(study, plan.points, facts))


def _reflinks(study: Study, facts: Mapping[str, HostFacts] | None) -> Reflinks:
    found: dict[tuple[str, str], bool] = {}
    for target in targets_of(study):
        seen = _target_facts(facts, target.key)
        if seen is not None and seen.target is not None:
            shares = seen.target.fs_type in SHARING
            found |= {(here, target.host): shares for here in target.configurations}
    return found


def _sought(workload: Workload) -> str:
    """What results decide of a workload."""
    axes = " and ".join(searched_axes(workload))
    aim = workload.aim
    match aim.objective:
        case Objective.PEAK:
            return f"the best over {axes}; its corners and centre first"
        case Objective.MAX_LOAD if aim.limit is not None:
            name = limit_name(aim.limit.metric)
            return f"the highest load with {name} <= {format_ns(aim.limit.latency_ns)}"
        case _:
            return f"the curve over {axes}; the loads between are chosen by results, or predicted"


def _ground(study: Study, plan: Plan) -> Iterator[tuple[str, str]]:
    """What the jobs work on: files that are laid out, and regions of devices that are filled."""
    yield from _stores(study, plan)
    files: list[str] = []
    regions: list[int] = []
    for item in plan.data_sets:
        (here,) = (one for one in study.configurations if one.id == item.configuration)
        on_device = {is_on_device(study, here.id, host) for host in here.hosts}
        if True in on_device and not boots_guests(study):
            regions.append(max(item.on(host).bytes_per_host for host in here.hosts))
        if False in on_device:
            number = item.numjobs * item.files_per_job
            files.append(f"{number} x {format_bytes(item.file_bytes)}")
    if files:
        size = format_bytes(plan.budget.layout_bytes_per_host)
        yield "files", f"{size} laid out on each host ({'; '.join(files)})"
    elif (
        not regions
        and not boots_guests(study)
        and not any(isinstance(point.job, KeyJob) for point in plan.points)
    ):
        yield "files", "none laid out before the runs"
    if regions:
        says = f"the first {format_bytes(max(regions))} of each device"
        fill = study.precondition.fill
        times = "once" if fill == 1 else f"{fill:g} times"
        yield "region", f"{says}, written over {times} by each fill" if fill else says


def _stores(study: Study, plan: Plan) -> Iterator[tuple[str, str]]:
    """The databases that key-value load works on, the server of them, and where they lie."""
    stores = stores_of(plan.points)
    if stores:
        sizes = [f"{format_bytes(store_bytes(job))} ({store_text(job)})" for job in stores]
        yield "databases", f"{count(len(stores), 'database')}: {'; '.join(sizes)}"
    if any(isinstance(job, YcsbJob) for job in stores):
        yield "server", server_text(study.server)
    if study.target.make_xfs:
        image = study.target.image_bytes
        where = "on the device" if image is None else f"in an image file of {format_bytes(image)}"
        yield "file system", f"an XFS {where}, made on each client for this session"


def _targets(study: Study, facts: Mapping[str, HostFacts] | None) -> Iterator[str]:
    """Where the load goes: hosts with the same path on the same kind of file system in one line."""
    alike: dict[tuple[str, str], list[Target]] = {}
    for target in _grounds(study):
        found = _target_facts(facts, target.key)
        below = _below(found.target) if found is not None and found.target is not None else ""
        alike.setdefault((target.path, below), []).append(target)
    for (path, below), targets in alike.items():
        names = list(dict.fromkeys(target.host for target in targets))
        free = [size for target in targets if (size := _free_bytes(facts, target.key)) is not None]
        least = "at least " if len(set(free)) > 1 else ""
        room = f", {least}{format_bytes(min(free))} free" if free else ""
        yield f"{path or 'no path given'} on {listing(names, HOSTS_SHOWN)}{below}{room}"


def _grounds(study: Study) -> tuple[Target, ...]:
    """The targets that exist before the session: of guests that it boots those of their nodes."""
    return node_targets(study) or targets_of(study)


def _below(seen: TargetFacts) -> str:
    device = f" on {', '.join(seen.devices)}" if seen.devices else ""
    return f": {seen.fs_type}{device}"


def _target_facts(facts: Mapping[str, HostFacts] | None, key: str) -> HostFacts | None:
    return None if facts is None else facts.get(key)


def _free_bytes(facts: Mapping[str, HostFacts] | None, key: str) -> int | None:
    found = _target_facts(facts, key)
    return found.target.free_bytes if found is not None and found.target is not None else None
