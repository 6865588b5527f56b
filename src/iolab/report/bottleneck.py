"""What limits a best point, as a sentence with the figures that it rests on."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Final

from msgspec.structs import replace

from iolab.analysis.bottleneck.decision import (
    ONE_RATE_SPREAD,
    WATCHED_RATE_LIMIT_CAUSES,
    BottleneckCause,
    LoadStep,
    RepeatsOfRate,
)
from iolab.analysis.busy import OWN_JOBS_MAJORITY
from iolab.analysis.findings import BottleneckFinding
from iolab.analysis.points import PointSummary, differs_only_in_higher_load
from iolab.core.configuration import LOCAL_HOST
from iolab.core.host import HostRole
from iolab.core.metric import VerdictLevel
from iolab.core.metric_spec import metric_spec
from iolab.core.resources import Resource, ResourceUse, RunResources
from iolab.core.run import RunKey
from iolab.core.study import Study
from iolab.report.best import code_and_text_of_gravest_check
from iolab.report.check_pages import check_phrase
from iolab.report.numbers import DASH, axis_name_text, metric_value_text, value_text
from iolab.report.phrases import (
    LEVEL_SENTENCES,
    ConfigurationNames,
    load_step_rate_change_text,
    point_place_phrase,
)
from iolab.report.short_names import short_configuration_names
from iolab.report.table import Cell, Table, row_of_cells, text_and_number_columns, verdict_cell
from iolab.text import capitalised, counted_noun, list_text, percent_text
from iolab.units import format_count

if TYPE_CHECKING:
    from iolab.report.brief import Brief
    from iolab.report.charts.chart import ReportSection
    from iolab.report.charts.series import RunAnchors
    from iolab.report.matrix import WorkloadRow

STOLEN_SHARE_SHOWN: Final = 0.02
"""Share of the processors' time that others had from which it is told beside."""

SERIAL_SHARE_SHOWN: Final = 0.01
"""Share of serial work from which it can be told from none."""

NEAR_LIMIT_SHARE: Final = 0.9
"""A resource that was used so much is near its limit, though not shown to be at it."""

BUSY_SHARE_SHOWN: Final = 0.05
"""A resource that was used less has no part in what limits."""

_ROLE_PREFIXES: Final = {
    HostRole.CLIENT: "",
    HostRole.STORAGE: "the storage node ",
    HostRole.HYPERVISOR: "the hypervisor ",
}

_RESOURCE_COLUMNS: Final = (
    (Resource.DEVICE, "Device", "device {name} {share} busy"),
    (Resource.PROCESSORS, "All cores", "processors {share} busy"),
    (Resource.CORE, "One core", "busiest core {share}"),
    (Resource.JOB, "Each job", "each job {share} of a core"),
    (Resource.PORT, "Port", "port {name} {share} full"),
    (Resource.IO_LIMIT, "I/O limit", "I/O limit of {name} {share} used"),
    (Resource.DISK_LIMIT, "Disk limit", "limit of a guest's disk {share} used"),
)
"""Resources in the order named, each with the head of its column and how its use is told."""

_SET_LIMITS: Final = (Resource.IO_LIMIT, Resource.DISK_LIMIT)
"""Limits that few hosts have."""

ANCHOR: Final = "limits"
TITLE: Final = "What limits it"

_LAWS_NOTE: Final = (
    "What kept the best points from more, by how busy each resource was (utilisation law), by "
    "where the I/Os in flight were (Little's law), and by whether more load still raised the rate."
)

_SHARES_NOTE: Final = (
    "Means over the measured window of one run of each best point: the share of the time that the "
    "busiest device, all cores and the busiest core were busy, the share of a core that each job "
    "used, of its speed that the fullest port carried, and of what control groups allow. A device "
    "that serves many I/Os at once may be busy all the time and still have more to give: it counts "
    "as the limit only where more load no longer raised the rate. Latency at the device is the "
    "share that its own I/Os took of the engine's."
)

NEXT_STEPS_TITLE: Final = "What to do next"

_EVIDENCE_NOTE: Final = (
    "Evidence is of the median run of each best point. Where that had another rate than the mean "
    "of repeats in the matrix, its figure stands beside it."
)

_NAMES_NOTE: Final = "Of several hosts the one with the busiest is named."

_CAUSES_WITH_DEVICE_NAME: Final = (
    BottleneckCause.DEVICE,
    BottleneckCause.DEVICE_OPEN,
    BottleneckCause.CORE,
    BottleneckCause.PORT,
    BottleneckCause.IO_LIMIT,
)
"""Limits of which there may be several on a host."""

_RATE_LIMIT_RESOURCES: Final = (Resource.IO_LIMIT, Resource.DISK_LIMIT, Resource.PORT)
"""Resources of which a rate is used."""

_SET_LIMIT_CAUSES: Final = (BottleneckCause.IO_LIMIT, BottleneckCause.DISK_LIMIT)
"""Limits on a rate that somebody set."""

SMALL_SHARE: Final = 1e-4
"""A share below this has no digits in a table: none of them is of use."""

_CAUSE_NAMES: Final[Mapping[BottleneckCause, str]] = {
    BottleneckCause.DEVICE: "device",
    BottleneckCause.DEVICE_OPEN: "load or device",
    BottleneckCause.PROCESSORS: "processors",
    BottleneckCause.CORE: "core",
    BottleneckCause.JOB: "a core for each job",
    BottleneckCause.PORT: "port",
    BottleneckCause.IO_LIMIT: "I/O limit of",
    BottleneckCause.DISK_LIMIT: "limit of each guest's disk",
    BottleneckCause.RATE: "requested rate",
    BottleneckCause.PACE: "pauses of the load",
    BottleneckCause.ONE_AT_A_TIME: "one I/O at a time",
    BottleneckCause.LOAD: "not saturated: go deeper",
    BottleneckCause.ENGINE: "engine",
    BottleneckCause.SOFTWARE: "software",
    BottleneckCause.UNWATCHED_RATE_LIMIT: "unidentified rate limit",
    BottleneckCause.BEYOND: "not watched",
    BottleneckCause.NONE: "not known",
}

SENTENCE_CHARACTERS_MAX: Final = 120
"""A longer list of workloads is counted instead."""

STEPS_SHOWN: Final = 2
"""Next steps in a row; the others help fewer of its workloads."""

USES_SHOWN: Final = 3
"""Most used resources that are named each with its workloads."""

LIMITS_IN_LINE: Final = 3
"""Limits that the line on a terminal names."""

_UNPROVEN_CAUSES: Final = (
    BottleneckCause.LOAD,
    BottleneckCause.NONE,
    BottleneckCause.DEVICE_OPEN,
    BottleneckCause.ONE_AT_A_TIME,
)
"""Limits that more load may show not to be any."""

_OTHER_LOAD_REMEDY: Final = (
    "Other processes (or the kernel for the load) held most of the busy cores: stop the others and "
    "measure again."
)
"""The rest of busy processors is of both: their counters do not tell whom the kernel works for."""

_NODE_PROCESSORS_REMEDY: Final = (
    "Give the node more cores, or stop what else it runs; guests without KVM need many times the "
    "cores."
)

_CAUSES_WITHOUT_RESOURCE: Final = (
    BottleneckCause.SOFTWARE,
    BottleneckCause.BEYOND,
    BottleneckCause.PACE,
)
"""Beside these stands what was used most."""

_CAUSE_RESOURCES: Final[Mapping[BottleneckCause, Resource]] = {
    BottleneckCause.DEVICE: Resource.DEVICE,
    BottleneckCause.DEVICE_OPEN: Resource.DEVICE,
    BottleneckCause.LOAD: Resource.DEVICE,
    BottleneckCause.PROCESSORS: Resource.PROCESSORS,
    BottleneckCause.UNWATCHED_RATE_LIMIT: Resource.PROCESSORS,
    BottleneckCause.CORE: Resource.CORE,
    BottleneckCause.JOB: Resource.JOB,
    BottleneckCause.PORT: Resource.PORT,
    BottleneckCause.IO_LIMIT: Resource.IO_LIMIT,
    BottleneckCause.DISK_LIMIT: Resource.DISK_LIMIT,
}
"""The resource that a limit names; of a load that may be raised the one nearest to its limit."""


def bottleneck_sentence(finding: BottleneckFinding, names: ConfigurationNames) -> str:
    """The sentence on what limits a point."""
    who = names.title(finding.configuration) if names.has_several else "the best"
    at = f" at {point_place_phrase(finding.axis_values)}" if finding.axis_values else ""
    text = _CAUSE_TEXTS[finding.decision.cause](finding)
    return (
        f"{finding.workload}: {who}{at} {text}{_load_step_doubt_clause(finding)}"
        f"{_other_saturated_resources_clause(finding)}.{LEVEL_SENTENCES[finding.verdict_level]}"
    )


def resource_and_host_text(resource_use: ResourceUse) -> str:
    """A resource with its host: `the device nvme0n1 of client-1`."""
    whose = host_label_text(resource_use)
    of = f" of {whose}" if whose else ""
    named = {
        Resource.DEVICE: f"the device {resource_use.name}{of}",
        Resource.PORT: f"the network port {resource_use.name.rpartition(' ')[0]}{of}",
        Resource.IO_LIMIT: f"the I/O limit of a control group{of}",
        Resource.DISK_LIMIT: f"the limit on the disk{of}",
        Resource.CORE: f"one core{of}",
        Resource.JOB: f"what one core gives each job{of}",
        Resource.PROCESSORS: f"the processors{of}",
    }
    return named[resource_use.resource]


def host_label_text(resource_use: ResourceUse) -> str:
    """A resource's host, empty for the machine that iolab ran on."""
    local = resource_use.role is HostRole.CLIENT and resource_use.host == LOCAL_HOST
    return "" if local else f"{_ROLE_PREFIXES[resource_use.role]}{resource_use.host}"


def busiest_resources_suffix(resources: RunResources) -> str:
    """The busiest resources in brackets: ` (device sda 40 % busy, busiest core 60 %)`."""
    parts = [*_busy_resource_texts(resources)]
    return f" ({', '.join(parts)})" if parts else ""


def _busy_resource_texts(resources: RunResources) -> Iterator[str]:
    for resource, _, text in _RESOURCE_COLUMNS:
        use = resources.busiest_use(resource)
        if use is not None and use.share is not None and use.share >= BUSY_SHARE_SHOWN:
            yield text.format(name=use.name, share=percent_text(use.share))


def _device_bottleneck_predicate(finding: BottleneckFinding) -> str:
    use = finding.decision.limiting_use
    if use is None or finding.decision.step is None:
        return "is limited by a device"
    busy = (
        f"which was busy {_use_share_text(use)} of the time{_device_latency_share_clause(finding)}"
    )
    return (
        f"{_verb_by_certainty(finding)} limited by {resource_and_host_text(use)}, {busy}: "
        f"{_load_step_rate_change_text(finding)}"
    )


def _load_step_rate_change_text(finding: BottleneckFinding) -> str:
    """What the step of load beyond the point did to the rate."""
    step = finding.decision.step
    return (
        load_step_rate_change_text(step.axis_name, step.load, step.next_load, step.rate_ratio)
        if step
        else "no more is given"
    )


def _unproven_device_bottleneck_predicate(finding: BottleneckFinding) -> str:
    use = finding.decision.limiting_use
    if use is None:
        return _no_bottleneck_predicate(finding)
    at_device = (
        finding.resources.concurrency.device_latency_share
        if finding.resources.concurrency
        else None
    )
    there = "" if at_device is None else f", with {percent_text(at_device)} of the latency there"
    return (
        f"keeps {resource_and_host_text(use)} busy {_use_share_text(use)} of the time{there}; "
        "whether more load would raise the rate was not measured"
    )


def _device_latency_share_clause(finding: BottleneckFinding) -> str:
    at_device = (
        finding.resources.concurrency.device_latency_share
        if finding.resources.concurrency
        else None
    )
    return "" if at_device is None else f" and took {percent_text(at_device)} of the latency"


def _processor_bottleneck_predicate(finding: BottleneckFinding) -> str:
    use = finding.decision.limiting_use
    share = _use_share_text(use) if use else ""
    where = resource_and_host_text(use) if use else "processors"
    if use is not None and not finding.decision.is_certain:
        where = f"other load on {where}"
    own = ""
    if use is not None and use.own_load_share is not None:
        own = f", {percent_text(use.own_load_share)} with the load's own jobs"
    return (
        f"{_verb_by_certainty(finding)} limited by {where}: all cores were {share} busy{own}"
        f"{_stolen_time_clause(finding)}"
    )


def _core_limit_predicate(finding: BottleneckFinding) -> str:
    use, every = finding.decision.limiting_use, finding.resources.busiest_use(Resource.PROCESSORS)
    if use is None:
        return _no_bottleneck_predicate(finding)
    mean = f", all of them {_use_share_text(every)}" if every else ""
    busy = f"core {use.name} was {_use_share_text(use)} busy{mean}"
    return f"is limited by {resource_and_host_text(use)}: {busy}"


def _job_processor_bottleneck_predicate(finding: BottleneckFinding) -> str:
    use, every = finding.decision.limiting_use, finding.resources.busiest_use(Resource.PROCESSORS)
    if use is None:
        return _no_bottleneck_predicate(finding)
    mean = f", while all cores were {_use_share_text(every)} busy" if every else ""
    of = f" of {host_label_text(use)}" if host_label_text(use) else ""
    return (
        f"is limited by the processors{of}: each job used {_use_share_text(use)} of a core{mean}"
        f"{_stolen_time_clause(finding)}"
    )


def _port_bottleneck_predicate(finding: BottleneckFinding) -> str:
    use = finding.decision.limiting_use
    if use is None or use.rate is None:
        return _no_bottleneck_predicate(finding)
    way = "received" if use.name.endswith(" in") else "sent"
    rate = value_text(use.rate, "bytes/s")
    return (
        f"{_verb_by_certainty(finding)} limited by {resource_and_host_text(use)}: it {way} {rate}, "
        f"{_use_share_text(use)} of its speed"
    )


def _cgroup_io_limit_predicate(finding: BottleneckFinding) -> str:
    use = finding.decision.limiting_use
    if use is None or use.rate is None or not use.share:
        return _no_bottleneck_predicate(finding)
    device, _, counted = use.name.partition(" ")
    allowed = use.rate / use.share
    noun, _, verb = counted.partition(" ")
    unit = "bytes/s" if verb else "1/s"
    what = f"to be {verb}" if verb else f"of {noun}"
    return (
        f"{_verb_by_certainty(finding)} limited by {resource_and_host_text(use)}, which allows "
        f"{value_text(allowed, unit)} {what} at {device}: {_use_share_text(use)} of that was used"
    )


def _study_set_disk_limit_predicate(finding: BottleneckFinding) -> str:
    use = finding.decision.limiting_use
    if use is None or use.rate is None or not use.share:
        return _no_bottleneck_predicate(finding)
    return (
        f"{_verb_by_certainty(finding)} limited by {resource_and_host_text(use)}, which the study "
        f"holds at {value_text(use.rate / use.share, '1/s')}: {_use_share_text(use)} of that "
        "was used"
    )


def _target_rate_bottleneck_predicate(finding: BottleneckFinding) -> str:
    flight = finding.resources.concurrency
    if flight is None or flight.target_rate is None:
        return "is limited by the requested rate"
    kept = percent_text(flight.rate / flight.target_rate)
    rate = value_text(flight.target_rate, "1/s")
    return f"is limited by the requested rate: {kept} of {rate} were kept"


def _think_time_bottleneck_predicate(finding: BottleneckFinding) -> str:
    return (
        "is limited by the pauses that its load makes between "
        f"I/Os{busiest_resources_suffix(finding.resources)}"
    )


def _queue_depth_one_bottleneck_predicate(finding: BottleneckFinding) -> str:
    flight = finding.resources.concurrency
    text = "is limited by its load of one I/O at a time"
    # Its latency is that of the point, not of the one run that was watched.
    if flight is not None and flight.device_latency_share is not None:
        text += f", with {percent_text(flight.device_latency_share)} of its latency at the device"
    return (
        text if finding.decision.step is None else f"{text}: {_load_step_rate_change_text(finding)}"
    )


def _unsaturated_load_predicate(finding: BottleneckFinding) -> str:
    use = finding.decision.limiting_use
    if finding.decision.step is None:
        return _no_bottleneck_predicate(finding)
    busy = (
        f", though {resource_and_host_text(use)} is busy {_use_share_text(use)} of the time"
        if use
        else ""
    )
    tried = f"{_load_step_rate_change_text(finding)}, and no more was tried{busy}"
    return f"{_verb_by_certainty(finding)} not saturated: {tried}"


def _engine_bottleneck_predicate(finding: BottleneckFinding) -> str:
    flight = finding.resources.concurrency
    if flight is None:
        return _no_bottleneck_predicate(finding)
    in_flight = format_count(flight.in_flight)
    kept = f"of {flight.requested_depth:,} I/Os requested, {in_flight} were in flight"
    return f"is limited by its engine: {kept}{busiest_resources_suffix(finding.resources)}"


def _software_bottleneck_predicate(finding: BottleneckFinding) -> str:
    kinds = "as by locks, serial work or a limit that it sets"
    return (
        f"is limited by software, {kinds}: {_load_step_without_busy_resource_text(finding)}"
        f"{_usl_contention_clause(finding)}"
    )


def _unwatched_bottleneck_predicate(finding: BottleneckFinding) -> str:
    repeats = finding.decision.repeats
    short = len(repeats.rates_below_limit) if repeats else 0
    whose = f"{repeats.count - short} of its {repeats.count}" if repeats and short else "its"
    return (
        f"seems held at a limit that was set and not watched: {whose} repeats have one rate "
        "although other load filled the processors"
    )


def repeats_below_limit_text(repeats: RepeatsOfRate | None, unit: str) -> str:
    """`1 of 4 repeats fell short: 1.29 k IOPS`, of a limit that holds the others; or empty."""
    if repeats is None or not repeats.rates_below_limit:
        return ""
    low, high = (value_text(end(repeats.rates_below_limit), unit) for end in (min, max))
    rates = high if low == high else f"{low} to {high}"
    return f"{len(repeats.rates_below_limit)} of {repeats.count} repeats fell short: {rates}"


def _unobserved_bottleneck_predicate(finding: BottleneckFinding) -> str:
    return f"has met a limit that was not watched: {_load_step_without_busy_resource_text(finding)}"


def _load_step_without_busy_resource_text(finding: BottleneckFinding) -> str:
    return (
        f"{_load_step_rate_change_text(finding)} with no resource watched at its "
        f"limit{busiest_resources_suffix(finding.resources)}"
    )


def _usl_contention_clause(finding: BottleneckFinding) -> str:
    """The law's contention where it is any."""
    law = finding.usl_fit
    if law is None or law.sigma < SERIAL_SHARE_SHOWN:
        return ""
    return f"; by the Universal Scalability Law {percent_text(law.sigma)} of the work is serial"


def _no_bottleneck_predicate(finding: BottleneckFinding) -> str:
    text = f"had no resource watched at its limit{busiest_resources_suffix(finding.resources)}"
    if finding.decision.step is None:
        return f"{text}; whether more load would raise the rate was not measured"
    return f"{text}: {_load_step_rate_change_text(finding)}"


_CAUSE_TEXTS: Final[Mapping[BottleneckCause, Callable[[BottleneckFinding], str]]] = {
    BottleneckCause.DEVICE: _device_bottleneck_predicate,
    BottleneckCause.DEVICE_OPEN: _unproven_device_bottleneck_predicate,
    BottleneckCause.PROCESSORS: _processor_bottleneck_predicate,
    BottleneckCause.CORE: _core_limit_predicate,
    BottleneckCause.JOB: _job_processor_bottleneck_predicate,
    BottleneckCause.PORT: _port_bottleneck_predicate,
    BottleneckCause.IO_LIMIT: _cgroup_io_limit_predicate,
    BottleneckCause.DISK_LIMIT: _study_set_disk_limit_predicate,
    BottleneckCause.RATE: _target_rate_bottleneck_predicate,
    BottleneckCause.PACE: _think_time_bottleneck_predicate,
    BottleneckCause.ONE_AT_A_TIME: _queue_depth_one_bottleneck_predicate,
    BottleneckCause.LOAD: _unsaturated_load_predicate,
    BottleneckCause.ENGINE: _engine_bottleneck_predicate,
    BottleneckCause.SOFTWARE: _software_bottleneck_predicate,
    BottleneckCause.UNWATCHED_RATE_LIMIT: _unwatched_bottleneck_predicate,
    BottleneckCause.BEYOND: _unobserved_bottleneck_predicate,
    BottleneckCause.NONE: _no_bottleneck_predicate,
}
"""What is said of each."""


def _use_share_text(resource_use: ResourceUse | None) -> str:
    return (
        percent_text(resource_use.share)
        if resource_use is not None and resource_use.share is not None
        else ""
    )


def _verb_by_certainty(finding: BottleneckFinding) -> str:
    return "is" if finding.decision.is_certain else "seems"


def _other_saturated_resources_clause(finding: BottleneckFinding) -> str:
    also = finding.decision.other_full_resources
    if not also:
        return ""
    several = len(also) > 1 or also[0].resource is Resource.PROCESSORS
    named = list_text([resource_and_host_text(use) for use in also])
    return f"; {named} {'were' if several else 'was'} also saturated"


def _stolen_time_clause(finding: BottleneckFinding) -> str:
    if finding.resources.stolen_share < STOLEN_SHARE_SHOWN:
        return ""
    return f", of which a hypervisor took {percent_text(finding.resources.stolen_share)} for others"


def _load_step_doubt_clause(finding: BottleneckFinding) -> str:
    """What keeps a statement on a step from being sure."""
    decision = finding.decision
    if decision.step is None or decision.is_certain:
        return ""
    return ", by single runs" if decision.step.has_single_runs else ", with low confidence"


def bottlenecks_section(brief: Brief) -> ReportSection | None:
    """The section; None where no run of a best point was watched."""
    # And numpy, which the line has no use for.
    from iolab.report.charts.chart import ChartGroup, ReportSection

    study, points, limits = brief.study, brief.points, brief.bottlenecks
    if not limits:
        return None
    note = f"{_LAWS_NOTE} {_SHARES_NOTE}"
    shares = (best_point_bottlenecks_table(study, limits, brief.run_anchors), note)
    names = (busiest_resources_table(study, limits), _NAMES_NOTE)
    repeats = any(len(best.run_keys) > 1 for best in brief.best_points)
    evidence_note = _EVIDENCE_NOTE if repeats else ""
    table = bottlenecks_table(study, limits, points)
    steps = (next_steps_table(study, limits, points), "")
    group = ChartGroup(
        "",
        (),
        table,
        evidence_note,
        detail_tables_with_notes=(shares, names),
        tables_below_with_notes=(steps,) if steps[0].rows else (),
    )
    return ReportSection(ANCHOR, TITLE, "", (group,), in_appendix=False)


def bottlenecks_table(
    study: Study, bottlenecks: Sequence[BottleneckFinding], points: Sequence[PointSummary]
) -> Table:
    """What limits the best points, with the evidence; of a single configuration what to do next.

    A row for each limit of each configuration; where nothing is known of any a last row says so
    once.
    """
    several = len(study.configurations) > 1
    known = [limit for limit in bottlenecks if limit.decision.cause is not BottleneckCause.NONE]
    unknown = [limit for limit in bottlenecks if limit.decision.cause is BottleneckCause.NONE]
    rates = _rate_text_by_run_unlike_point_mean(study, known, points)
    rows = (
        _configuration_bottleneck_rows(study, known, points)
        if several
        else [
            row_of_cells(
                capitalised(cause),
                _affected_workloads_text(study, alike, bottlenecks),
                _bottleneck_evidence_text(alike, rates),
                " ".join(_most_helpful_next_steps(alike, points)),
            )
            for cause, alike in _findings_by_name(known, _cause_and_device_text).items()
        ]
    )
    if unknown:
        affected = _affected_workloads_text(study, unknown, bottlenecks)
        name = capitalised(_CAUSE_NAMES[BottleneckCause.NONE])
        cells = (name, affected, _most_used_resources_text(study, unknown))
        rows.append(
            row_of_cells(DASH, *cells)
            if several
            else row_of_cells(*cells, " ".join(_most_helpful_next_steps(unknown, points)))
        )
    heads = ("Limited by", "Workloads", "Evidence")
    columns = text_and_number_columns(
        ("Configuration", *heads) if several else (*heads, NEXT_STEPS_TITLE)
    )
    return Table(TITLE, columns, tuple(rows))


def _configuration_bottleneck_rows(
    study: Study, bottlenecks: Sequence[BottleneckFinding], points: Sequence[PointSummary]
) -> list[tuple[Cell, ...]]:
    """A row for each kind of limit of each configuration, with the workloads that meet it."""
    titles, names = study.workload_titles, short_configuration_names(study.configurations)
    labels = dict(zip((owner.id for owner in study.configurations), names, strict=True))
    rates = _rate_text_by_run_unlike_point_mean(study, bottlenecks, points)
    rows = []
    for configuration, label in labels.items():
        of_configuration = [limit for limit in bottlenecks if limit.configuration == configuration]
        for kind, alike in _findings_by_name(of_configuration, _cause_without_device_text).items():
            by_cause = _findings_by_name(alike, _cause_and_device_text)
            workloads = [titles.get(limit.workload, limit.workload) for limit in alike]
            rows.append(
                row_of_cells(
                    label,
                    capitalised(next(iter(by_cause)) if len(by_cause) == 1 else kind),
                    ", ".join(workloads),
                    "; ".join(_bottleneck_evidence_text(each, rates) for each in by_cause.values()),
                )
            )
    return rows


def next_steps_table(
    study: Study, bottlenecks: Sequence[BottleneckFinding], points: Sequence[PointSummary]
) -> Table:
    """What to do about each limit of several configurations, a row an act.

    Without rows for a single configuration, whose table of limits has the acts.
    """
    alike_by_cause = _findings_by_name(bottlenecks, _cause_without_device_and_doubt_text)
    causes_by_step: dict[str, str] = {}
    for cause, alike in alike_by_cause.items() if len(study.configurations) > 1 else ():
        for step in _most_helpful_next_steps(alike, points):
            causes_by_step.setdefault(step, capitalised(cause))
    rows = tuple(row_of_cells(cause, step) for step, cause in causes_by_step.items())
    return Table(NEXT_STEPS_TITLE, text_and_number_columns(("Limit", "Act")), rows)


def _rate_text_by_run_unlike_point_mean(
    study: Study, bottlenecks: Sequence[BottleneckFinding], points: Sequence[PointSummary]
) -> dict[RunKey, str]:
    """The rates of the runs behind findings that tell others than the means of their points."""
    keys = {workload.id: workload.headline_or_rate_metric for workload in study.workloads}
    shown = {limit.run_keys[0] for limit in bottlenecks if limit.run_keys}
    texts = {}
    for point in points:
        key = keys.get(point.key.workload, "")
        for run in point.results:
            if run.key in shown and key in run.metrics and key in point.metrics:
                own, mean = (metric_value_text(of.metrics[key]) for of in (run, point))
                if own != mean:
                    texts[run.key] = own
    return texts


def _findings_by_name(
    bottlenecks: Sequence[BottleneckFinding], name_of: Callable[[BottleneckFinding], str]
) -> dict[str, list[BottleneckFinding]]:
    """The findings by a name, in the order of the names."""
    groups: dict[str, list[BottleneckFinding]] = {}
    for limit in bottlenecks:
        groups.setdefault(name_of(limit), []).append(limit)
    return groups


def _most_helpful_next_steps(
    findings: Sequence[BottleneckFinding], points: Sequence[PointSummary]
) -> list[str]:
    """The steps that help most of the findings, each once."""
    steps = Counter(_next_step_text(limit, points) for limit in findings)
    return [step for step, _ in steps.most_common(STEPS_SHOWN)]


def rows_with_bottleneck_texts(brief: Brief, rows: Sequence[WorkloadRow]) -> list[WorkloadRow]:
    """The rows, each figure with what limits it, unless one sentence tells it of all.

    Then only with repeats that fell short of it.
    """
    limits = brief.bottlenecks
    is_told_once = len({_cause_and_device_text(limit) for limit in limits}) < 2
    shown = [
        limit
        for limit in limits
        if limit.decision.cause is not BottleneckCause.NONE
        and (not is_told_once or _has_repeats_below_limit(limit))
    ]
    return [
        replace(
            row,
            bottleneck_texts=tuple(
                (limit.configuration, _bottleneck_of_best_figure_text(limit, row))
                for limit in shown
                if limit.workload == row.figures[0].workload
            ),
        )
        for row in rows
    ]


def _has_repeats_below_limit(finding: BottleneckFinding) -> bool:
    return finding.decision.repeats is not None and bool(finding.decision.repeats.rates_below_limit)


def _bottleneck_of_best_figure_text(finding: BottleneckFinding, workload_row: WorkloadRow) -> str:
    """What limits a figure, of a limit on its own rate how much that is.

    A figure beyond it is told, and an interval that reaches beyond: no mean of long runs can.
    """
    text = _cause_without_device_text(finding).removesuffix(" on the processors")
    use, figure = (
        finding.decision.limiting_use,
        workload_row.figure_of_configuration(finding.configuration),
    )
    unit = figure.value.unit if figure is not None else ""
    short = repeats_below_limit_text(finding.decision.repeats, unit)
    if (
        figure is None
        or figure.is_mixed
        or finding.decision.cause not in _SET_LIMIT_CAUSES
        or use is None
        or not use.rate
        or not use.share
        or unit != ("bytes/s" if "bytes" in use.name else "1/s")
    ):
        return f"{text} ({short})" if short else text
    allowed = use.rate / use.share
    allowed_text = value_text(allowed, unit)
    if short:
        return f"{text} of {allowed_text} ({short})"
    return f"{text} of {allowed_text}"


def bottlenecks_line(study: Study, bottlenecks: Sequence[BottleneckFinding]) -> str:
    """`processors (Read IOPS); device vda (all others)`: what limits the best points, in short."""
    return _causes_with_workloads_or_counts_text(study, bottlenecks, bottlenecks)


def _causes_with_workloads_text(
    study: Study,
    selected_bottlenecks: Sequence[BottleneckFinding],
    bottlenecks: Sequence[BottleneckFinding],
) -> str:
    groups = _findings_by_name(selected_bottlenecks, _cause_and_device_text)
    parts = [
        f"{cause} ({_affected_workloads_text(study, alike, bottlenecks)})"
        for cause, alike in groups.items()
    ]
    more = f" and {len(parts) - LIMITS_IN_LINE} more" if len(parts) > LIMITS_IN_LINE else ""
    return f"{'; '.join(parts[:LIMITS_IN_LINE])}{more}"


def bottlenecks_sentence(study: Study, bottlenecks: Sequence[BottleneckFinding]) -> str:
    """The same as a sentence; empty where no best point was watched."""
    rising = [limit for limit in bottlenecks if limit.decision.cause is BottleneckCause.LOAD]
    met = [
        limit
        for limit in bottlenecks
        if limit.decision.cause not in (BottleneckCause.LOAD, BottleneckCause.NONE)
    ]
    sentences = []
    if met:
        lost = [limit for limit in bottlenecks if limit.decision.cause is BottleneckCause.NONE]
        rest = f"; not known ({_affected_workloads_text(study, lost, bottlenecks)})" if lost else ""
        if lost and len(study.configurations) > 1:
            rest = f", not known in {len(lost)}"
        sentences.append(
            f"Limited by: {_causes_with_workloads_or_counts_text(study, met, bottlenecks)}{rest}."
        )
    if rising:
        several = counted_noun(len(bottlenecks), "best point")
        sentences.append(f"Not saturated, so more load may give more: {len(rising)} of {several}.")
    sentences += _shared_bottleneck_sentences(study, met)
    if sentences:
        return " ".join(sentences)
    unknown = "What limits the best points is not known: nothing watched was at its limit."
    return unknown if bottlenecks else ""


def _shared_bottleneck_sentences(
    study: Study, bottlenecks: Sequence[BottleneckFinding]
) -> Iterator[str]:
    """Configurations that a limit holds at one rate: what they have in common is no SSD's.

    `4 KiB random write: a and b are held at the same 1.50 k IOPS.`
    """
    titles, names = study.workload_titles, short_configuration_names(study.configurations)
    labels = dict(zip((owner.id for owner in study.configurations), names, strict=True))
    metric_keys = {each.id: each.headline_or_rate_metric for each in study.workloads}
    held: dict[str, list[tuple[float, str]]] = {}
    for finding in bottlenecks:
        repeats = finding.decision.repeats
        if repeats is not None and repeats.has_one_rate:
            label = labels.get(finding.configuration, finding.configuration)
            held.setdefault(finding.workload, []).append((repeats.highest, label))
    for workload, rates in held.items():
        highest = max(rate for rate, _ in rates)
        alike = [label for rate, label in rates if rate >= (1 - ONE_RATE_SPREAD) * highest]
        if len(alike) > 1:
            rate = value_text(highest, metric_spec(metric_keys[workload]).unit)
            yield (
                f"{titles.get(workload, workload)}: {list_text(alike)} are held at the same {rate}."
            )


def leads_of_set_limits_sentence(
    rows: Sequence[WorkloadRow], bottlenecks: Sequence[BottleneckFinding]
) -> str:
    """In which workloads a sure lead is between two limits that were set: it is no drive's."""
    held = {
        (finding.workload, finding.configuration)
        for finding in bottlenecks
        if finding.decision.is_certain and finding.decision.cause in _SET_LIMIT_CAUSES
    }
    titles = [
        row.title
        for row in rows
        if row.has_supported_winner
        and all(
            figure is not None and (figure.workload, figure.configuration) in held
            for figure in (row.best, row.next_best)
        )
    ]
    return (
        f"{list_text(titles)}: the lead is that of the I/O limits that were set." if titles else ""
    )


def _causes_with_workloads_or_counts_text(
    study: Study,
    selected_bottlenecks: Sequence[BottleneckFinding],
    bottlenecks: Sequence[BottleneckFinding],
) -> str:
    """Which limits which workloads; where that is long, how many of the best points."""
    line = _causes_with_workloads_text(study, selected_bottlenecks, bottlenecks)
    # Of several configurations the matrix has the limit of each.
    if len(line) <= SENTENCE_CHARACTERS_MAX or len(study.configurations) == 1:
        return line
    groups = sorted(
        _findings_by_name(selected_bottlenecks, _cause_without_device_and_doubt_text).items(),
        key=lambda item: -len(item[1]),
    )
    several = f" of {counted_noun(len(bottlenecks), 'best point')}"
    return ", ".join(
        f"{cause} in {len(alike)}{'' if place else several}{_likely_count_suffix(cause, alike)}"
        for place, (cause, alike) in enumerate(groups)
    )


def _likely_count_suffix(cause_text: str, findings: Sequence[BottleneckFinding]) -> str:
    """Of how many of one cause it is only likely, where its name does not say so."""
    likely = sum(not finding.decision.is_certain for finding in findings)
    is_told = (
        cause_text.startswith("likely ")
        or findings[0].decision.cause not in WATCHED_RATE_LIMIT_CAUSES
    )
    return f" (likely in {likely})" if likely and not is_told else ""


def _affected_workloads_text(
    study: Study, findings: Sequence[BottleneckFinding], all_findings: Sequence[BottleneckFinding]
) -> str:
    """Which of all best points these are: a workload alone where all its configurations are."""
    titles = study.configuration_titles
    names = study.workload_titles
    if len(findings) == len(all_findings) > 1:
        return "all"
    owners = {
        workload: [limit.configuration for limit in all_findings if limit.workload == workload]
        for workload in dict.fromkeys(limit.workload for limit in findings)
    }
    parts: dict[str, list[str]] = {}
    for workload, of in owners.items():
        here = [limit.configuration for limit in findings if limit.workload == workload]
        for whose in [""] if len(here) == len(of) else here:
            parts.setdefault(whose, []).append(names.get(workload, workload))
    return "; ".join(
        f"{titles.get(whose, whose)}: {', '.join(workloads)}" if whose else ", ".join(workloads)
        for whose, workloads in parts.items()
    )


def _next_step_text(finding: BottleneckFinding, points: Sequence[PointSummary]) -> str:
    """What would tell more: first to repeat a load that was tried and whose run is none."""
    own = [
        point
        for point in points
        if (point.key.workload, point.key.configuration)
        == (finding.workload, finding.configuration)
    ]
    if finding.decision.cause is BottleneckCause.RATE:
        return _next_step_after_kept_rate_text(finding, own)
    tried = [point.key.axis_values for point in own if not point.is_trusted]
    if tried and finding.decision.cause in _UNPROVEN_CAUSES:
        return f"Repeat {point_place_phrase(tried[-1]) or 'it'}: its run was invalid or failed."
    return recommended_step_text(finding)


def _next_step_after_kept_rate_text(
    finding: BottleneckFinding, points: Sequence[PointSummary]
) -> str:
    """What to do about a rate that was kept: where a higher one was not, the limit is between."""
    lost = [
        (point, invalid)
        for point in points
        if differs_only_in_higher_load(point.key.axis_values, finding.axis_values)
        and (invalid := [run for run in point.runs if run.verdict.level is VerdictLevel.INVALID])
    ]
    if not lost:
        return recommended_step_text(finding)
    point, runs = min(lost, key=lambda item: item[0].key.axis_values)
    code, _ = code_and_text_of_gravest_check(runs, VerdictLevel.INVALID)
    why = f" ({check_phrase(code)})" if code else ""
    return (
        f"{point_place_phrase(point.key.axis_values)} was tried and was not kept{why}: "
        "the limit lies between."
    )


def recommended_step_text(finding: BottleneckFinding) -> str:
    """What would raise the rate, or tell what limits it."""
    use, step = finding.decision.limiting_use, finding.decision.step
    name = use.name if use is not None else "the device"
    load = (
        "the load" if step is None else f"{axis_name_text(step.axis_name)} beyond {step.next_load}"
    )
    steps = {
        BottleneckCause.DEVICE: "Add devices, or take faster ones.",
        BottleneckCause.DEVICE_OPEN: f"Raise the load to see whether {name} has more to give.",
        BottleneckCause.PROCESSORS: _OTHER_LOAD_REMEDY
        if _is_cpu_mostly_busy_with_other_load(use)
        else _NODE_PROCESSORS_REMEDY
        if use is not None and use.role is HostRole.HYPERVISOR
        else "Add clients or processors.",
        BottleneckCause.CORE: "Spread the load over more jobs; move interrupts off that core.",
        BottleneckCause.JOB: "Raise numjobs: each job has one core and no more.",
        BottleneckCause.PORT: "Add clients, or a faster network port.",
        BottleneckCause.IO_LIMIT: "Raise the limit (io.max of the control group): until then "
        "it is the limit that is measured.",
        BottleneckCause.DISK_LIMIT: "Leave out iops in [vm] to measure storage, or find the number "
        "of guests at which they no longer reach their limit.",
        BottleneckCause.RATE: _try_higher_rate_text(finding),
        BottleneckCause.PACE: "Leave out the pauses (thinktime).",
        BottleneckCause.ONE_AT_A_TIME: "Nothing, where the latency of one I/O is asked for; for a "
        "higher rate raise iodepth or numjobs.",
        BottleneckCause.LOAD: f"Raise {load}.",
        BottleneckCause.ENGINE: "Check ioengine and direct: fewer I/Os are in flight than were "
        "asked for.",
        BottleneckCause.SOFTWARE: "Profile clients and servers for locks and limits.",
        BottleneckCause.UNWATCHED_RATE_LIMIT: "Look for a limit of the provider, the control "
        "group or the device, and stop the other load.",
        BottleneckCause.BEYOND: "Watch the storage nodes and the network too (add them as hosts).",
        BottleneckCause.NONE: f"Raise {load} to find the limit.",
    }
    return steps[finding.decision.cause]


def _try_higher_rate_text(finding: BottleneckFinding) -> str:
    """Which rate to try, where the requested one was kept and no higher one was tried.

    Phases are compared at the rate that the study fixes.
    """
    if finding.has_phases:
        return "The rate is fixed, so that phases compare: give a higher one to find the limit."
    rates = [
        (axis_name_text(name), rate) for name, rate in finding.axis_values if isinstance(rate, int)
    ]
    if len(rates) != 1:
        return "No higher rate was tried: raise it, or leave it out, to find the limit."
    ((name, rate),) = rates
    return f"No higher rate was tried: raise {name} beyond {rate} to find the limit."


def _is_cpu_mostly_busy_with_other_load(resource_use: ResourceUse | None) -> bool:
    """Whether the load's own jobs used less than half of what of the processors was busy."""
    if resource_use is None or resource_use.own_load_share is None or resource_use.share is None:
        return False
    return resource_use.own_load_share < OWN_JOBS_MAJORITY * resource_use.share


def _bottleneck_evidence_text(
    findings: Sequence[BottleneckFinding], rate_text_by_run_key: Mapping[RunKey, str]
) -> str:
    """The figures of what limits these points, which all have the same cause.

    Of several the range of each, without what more load did to each of them. Of a single one with
    the rate of the run that they are of, where `rate_text_by_run_key` has it.
    """
    cause = findings[0].decision.cause
    parts = [
        *_evidence_of_limiting_resource_use(findings),
        *_evidence_of_own_and_other_load(findings),
    ]
    if cause is BottleneckCause.UNWATCHED_RATE_LIMIT:
        parts.insert(0, _equal_rates_of_repeats_text(findings))
    if cause is BottleneckCause.ENGINE:
        parts += [f"{_in_flight_of_requested_text(limit)} I/Os in flight" for limit in findings[:1]]
    if cause in (
        BottleneckCause.DEVICE,
        BottleneckCause.DEVICE_OPEN,
        BottleneckCause.ONE_AT_A_TIME,
    ):
        parts += _evidence_of_device_latency_share(findings)
    if cause in _CAUSES_WITHOUT_RESOURCE:
        parts += [_most_used_resource_text(findings)]
    run = findings[0].run_keys[:1] if parts and len(findings) == 1 else ()
    if (
        run
        and run[0] in rate_text_by_run_key
        and not _is_rate_in_evidence_text(rate_text_by_run_key[run[0]], parts[0])
    ):
        parts[0] += f" (run of {rate_text_by_run_key[run[0]]})"
    parts += _evidence_of_load_steps(findings)
    return "; ".join(filter(None, parts)) or DASH


def _equal_rates_of_repeats_text(findings: Sequence[BottleneckFinding]) -> str:
    """How close repeats are which an unknown limit holds, and how many of them fell short."""
    repeats = [own for limit in findings if (own := limit.decision.repeats) is not None]
    short = sum(len(own.rates_below_limit) for own in repeats)
    whose = "repeats"
    if short:
        count = sum(own.count for own in repeats)
        whose = f"{count - short} of {counted_noun(count, 'repeat')}"
    return f"{whose} give one rate (within {percent_text(ONE_RATE_SPREAD)})"


def _is_rate_in_evidence_text(rate_text: str, evidence: str) -> bool:
    """Whether what is used of a limit is that rate."""
    return f": {rate_text.removesuffix(' IOPS')} of " in evidence


def _evidence_of_limiting_resource_use(findings: Sequence[BottleneckFinding]) -> list[str]:
    """How much of the resource was used that the limit names; nothing of other limits."""
    resource = _CAUSE_RESOURCES.get(findings[0].decision.cause)
    text = next(
        (text for column_resource, _, text in _RESOURCE_COLUMNS if column_resource is resource), ""
    )
    uses = [
        limit.decision.limiting_use or (limit.resources.busiest_use(resource) if resource else None)
        for limit in findings
    ]
    shares = [use.share for use in uses if use is not None and use.share is not None]
    names = {use.name for use in uses if use is not None}
    if not text or not shares:
        return []
    name = names.pop() if len(names) == 1 else ""
    if resource is Resource.PROCESSORS and {use.role for use in uses if use} == {
        HostRole.HYPERVISOR
    }:
        text = f"the node's {text}"
    of = _used_of_allowed_rate_suffix(uses[0]) if len(findings) == 1 else ""
    return [f"{text.format(name=name, share=_share_range_text(shares))}{of}".replace("  ", " ")]


def _used_of_allowed_rate_suffix(resource_use: ResourceUse | None) -> str:
    """`: 2.87 k of 3 k IOPS`, of which the share of a limit on a rate is made; else empty."""
    if (
        resource_use is None
        or resource_use.resource not in _RATE_LIMIT_RESOURCES
        or not resource_use.rate
        or not resource_use.share
    ):
        return ""
    is_of_bytes = resource_use.resource is Resource.PORT or " bytes " in resource_use.name
    unit = "bytes/s" if is_of_bytes else "1/s"
    used, allowed = resource_use.rate, resource_use.rate / resource_use.share
    return f": {value_text(used, unit, is_rate_unit_omitted=True)} of {value_text(allowed, unit)}"


def _evidence_of_device_latency_share(findings: Sequence[BottleneckFinding]) -> list[str]:
    shares = [
        limit.resources.concurrency.device_latency_share
        for limit in findings
        if limit.resources.concurrency
    ]
    measured = [share for share in shares if share is not None]
    if len(measured) < len(findings):
        return []
    return [f"{_share_range_text(measured)} of latency at the device"]


def _evidence_of_load_steps(findings: Sequence[BottleneckFinding]) -> list[str]:
    """What more load did to the only point, or how much the last step gave to several."""
    steps = [limit.decision.step for limit in findings if limit.decision.step is not None]
    if findings[0].decision.cause is BottleneckCause.LOAD and steps:
        return [_rising_rate_text(steps)]
    if len(findings) == 1:
        return [_load_step_rate_change_text(limit) for limit in findings if limit.decision.step]
    if len(steps) < len(findings):
        return []
    low, high = (
        percent_text(find(step.rate_ratio for step in steps) - 1, is_signed=True)
        for find in (min, max)
    )
    return [f"the last step of load: rate {low if low == high else f'{low} to {high}'}"]


def _rising_rate_text(steps: Sequence[LoadStep]) -> str:
    """`rate still rises by 15 to 34 % at iodepth 8 to 16`."""
    by = _share_range_text([step.rate_ratio - 1 for step in steps])
    loads = {(axis_name_text(step.axis_name), step.next_load) for step in steps}
    names = {name for name, _ in loads}
    depths = sorted(load for _, load in loads)
    if len(names) > 1:
        return f"rate still rises by {by} at the last step of load"
    span = f"{depths[0]}" if len(depths) == 1 else f"{depths[0]} to {depths[-1]}"
    return f"rate still rises by {by} at {names.pop()} {span}"


def _most_used_resources_text(study: Study, findings: Sequence[BottleneckFinding]) -> str:
    """The resource that each used most; of many how much these were used."""
    uses = [(limit, _most_used_resource_share_and_text(limit)) for limit in findings]
    highest = [(limit, *use) for limit, use in uses if use is not None]
    if not highest:
        return DASH
    shares = [share for _, share, _ in highest]
    texts: dict[str, list[BottleneckFinding]] = {}
    for limit, _, text in highest:
        texts.setdefault(text, []).append(limit)
    if len(texts) == 1:
        return _most_used_resource_text(findings[:1])
    if len(texts) > USES_SHOWN:
        used = f"the busiest resource of each {_share_range_text(shares)} used"
    else:
        used = "; ".join(
            f"{text} ({_affected_workloads_text(study, alike, findings)})"
            for text, alike in texts.items()
        )
    return f"{used}: none shown to be at its limit"


def _most_used_resource_share_and_text(finding: BottleneckFinding) -> tuple[float, str] | None:
    """Of all resources that were watched the most used one: its share, and what is said of it."""
    every = [
        (use.share, text.format(name=use.name, share=percent_text(use.share)))
        for resource, _, text in _RESOURCE_COLUMNS
        if (use := finding.resources.busiest_use(resource)) is not None and use.share is not None
    ]
    return max(every, default=None)


def _most_used_resource_text(findings: Sequence[BottleneckFinding]) -> str:
    """The resource that was used most of all that were watched."""
    share, text = max(
        filter(None, map(_most_used_resource_share_and_text, findings)), default=(0.0, "")
    )
    if not text:
        return DASH
    if share >= NEAR_LIMIT_SHARE:
        return f"{text}: near its limit, not shown to be at it"
    return f"no resource near its limit; the busiest: {text}"


def _evidence_of_own_and_other_load(findings: Sequence[BottleneckFinding]) -> list[str]:
    """What the load's own jobs and all else held of the processors, where these are the limit."""
    causes = (BottleneckCause.PROCESSORS, BottleneckCause.UNWATCHED_RATE_LIMIT)
    uses = [limit.decision.limiting_use for limit in findings if limit.decision.cause in causes]
    shares = [
        (use.own_load_share, max(use.share - use.own_load_share, 0.0))
        for use in uses
        if use is not None and use.own_load_share is not None and use.share is not None
    ]
    if not shares or len(shares) < len(findings):
        return []
    own, others = zip(*shares, strict=True)
    return [f"own jobs {_share_range_text(own)}, all else {_share_range_text(others)} of the cores"]


def _share_range_text(shares: Sequence[float]) -> str:
    """`88 to 99 %`, or the one share that all have."""
    low, high = percent_text(min(shares)), percent_text(max(shares))
    return high if low == high else f"{low.removesuffix(' %')} to {high}"


def best_point_bottlenecks_table(
    study: Study, bottlenecks: Sequence[BottleneckFinding], anchors: RunAnchors
) -> Table:
    """A row for each best point: its limit, then how much of each resource was used."""
    several = len(study.configurations) > 1
    columns = _resources_with_headings(bottlenecks)
    shares = tuple(name for _, name in columns)
    rows = tuple(
        (
            *_workload_cells(study, limit),
            Cell(point_place_phrase(limit.axis_values) or DASH),
            Cell(_cause_and_device_text(limit)),
            *(Cell(_resource_share_text(limit, resource)) for resource, _ in columns),
            Cell(_device_latency_share_cell_text(limit)),
            Cell(_in_flight_of_requested_text(limit)),
            verdict_cell(limit.verdict_level, anchors.get(limit.run_keys[0])),
        )
        for limit in bottlenecks
    )
    numbers = (*shares, "Latency at device", "In flight")
    heads = text_and_number_columns(
        (*_workload_headings(with_configuration=several), "At", "Limit"), numbers, ("Verdict",)
    )
    return Table("Bottleneck of each best point", heads, rows)


def _resources_with_headings(
    bottlenecks: Sequence[BottleneckFinding],
) -> tuple[tuple[Resource, str], ...]:
    """The resources of a table with their heads; limits that are set only where there are any."""
    return tuple(
        (resource, name)
        for resource, name, _ in _RESOURCE_COLUMNS
        if resource not in _SET_LIMITS
        or any(limit.resources.busiest_use(resource) for limit in bottlenecks)
    )


def busiest_resources_table(study: Study, bottlenecks: Sequence[BottleneckFinding]) -> Table:
    """The names behind the shares: the busiest of each resource, with its host."""
    kinds = (Resource.DEVICE, Resource.CORE, Resource.PORT)
    rows = tuple(
        (
            *_workload_cells(study, limit),
            *(Cell(_busiest_resource_with_host_text(limit, resource)) for resource in kinds),
        )
        for limit in bottlenecks
    )
    heads = _workload_headings(with_configuration=len(study.configurations) > 1)
    return Table(
        "The busiest of each resource",
        text_and_number_columns((*heads, "Device", "Core", "Port")),
        rows,
    )


def _workload_headings(*, with_configuration: bool) -> tuple[str, ...]:
    return ("Workload", "Configuration") if with_configuration else ("Workload",)


def _workload_cells(study: Study, finding: BottleneckFinding) -> tuple[Cell, ...]:
    titles = study.configuration_titles
    names = study.workload_titles
    workload = Cell(names.get(finding.workload, finding.workload))
    if len(titles) == 1:
        return (workload,)
    return (workload, Cell(titles.get(finding.configuration, finding.configuration)))


def _cause_and_device_text(finding: BottleneckFinding) -> str:
    """The cause with the name of what it is, and whether an interval speaks against it."""
    decision = finding.decision
    name = (
        decision.limiting_use.name
        if decision.cause in _CAUSES_WITH_DEVICE_NAME and decision.limiting_use
        else ""
    )
    # Their names say that they are open.
    is_open = decision.cause in (BottleneckCause.DEVICE_OPEN, BottleneckCause.NONE)
    is_sure = decision.is_certain or is_open
    is_rising = decision.cause is BottleneckCause.LOAD  # the evidence says by how much
    doubt = "" if is_sure or is_rising else "likely "
    # Processors are no sure limit where hardly any of what they did was the load.
    if decision.cause is BottleneckCause.PROCESSORS and not decision.is_certain:
        doubt += "other load on the "
    elif decision.cause is BottleneckCause.PROCESSORS and _is_cpu_mostly_busy_with_other_load(
        decision.limiting_use
    ):
        name = "that other load fills"
    return f"{doubt}{_CAUSE_NAMES[decision.cause]}{f' {name}' if name else ''}"


def _cause_without_device_and_doubt_text(finding: BottleneckFinding) -> str:
    """The same without how sure a limit on a rate is."""
    text = _cause_without_device_text(finding)
    is_rate = finding.decision.cause in WATCHED_RATE_LIMIT_CAUSES
    return text.removeprefix("likely ") if is_rate else text


def _cause_without_device_text(finding: BottleneckFinding) -> str:
    """The cause without the name of what it is: an I/O limit, whichever."""
    use = finding.decision.limiting_use
    name = (
        use.name if use is not None and finding.decision.cause in _CAUSES_WITH_DEVICE_NAME else ""
    )
    return _cause_and_device_text(finding).removesuffix(f" {name}").removesuffix(" of")


def _resource_share_text(finding: BottleneckFinding, resource: Resource) -> str:
    use = finding.resources.busiest_use(resource)
    return DASH if use is None or use.share is None else small_share_text(use.share)


def small_share_text(share: float) -> str:
    """A share in a table's cell: `< 0.01 %` for what is next to nothing."""
    return "< 0.01 %" if 0 < share < SMALL_SHARE else percent_text(share)


def _busiest_resource_with_host_text(finding: BottleneckFinding, resource: Resource) -> str:
    use = finding.resources.busiest_use(resource)
    if use is None:
        return DASH
    where = host_label_text(use)
    return f"{use.name} of {where}" if where else use.name


def _device_latency_share_cell_text(finding: BottleneckFinding) -> str:
    share = (
        finding.resources.concurrency.device_latency_share
        if finding.resources.concurrency
        else None
    )
    return DASH if share is None else small_share_text(share)


def _in_flight_of_requested_text(finding: BottleneckFinding) -> str:
    flight = finding.resources.concurrency
    return (
        DASH
        if flight is None
        else f"{format_count(flight.in_flight)} of {flight.requested_depth:,}"
    )
