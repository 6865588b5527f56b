"""Checks of whether the client's processors, not the storage, set the number."""

from __future__ import annotations

from typing import Final

from iolab.analysis.bottleneck.resource_use import engine_share_of_host_cpus
from iolab.analysis.busy import OWN_JOBS_MAJORITY, is_resource_full, job_share_of_its_core
from iolab.analysis.check import (
    CheckAnswer,
    EvidenceValues,
    HostAnswer,
    answer_to_grade,
    check,
    indicative_answer,
    invalid_answer,
    not_applicable_answer,
    per_host,
    unchecked_answer,
    valid_answer,
)
from iolab.analysis.view import RunView
from iolab.core.host import HostFacts
from iolab.core.metric import VerdictLevel
from iolab.core.resources import Resource
from iolab.core.run import CgroupCpuUse, HostRun, ProcessorUse
from iolab.text import percent_text
from iolab.units import format_count

STOLEN: Final = 0.02
"""Share of the processors' time that the hypervisor gave to others; from about 2 % on latencies of
the tail are theirs."""

THROTTLED_GOOD: Final = 0.01
"""Share of its periods in which a quota may be used up: beyond it the slowest hundredth of the
latencies, which p99 is made of, holds pauses of the quota."""

THROTTLED_BAD: Final = 0.50
"""The same from which the quota ended the work in the usual period: the rate is the quota's."""

STOOD_BAD: Final = 0.25
"""Share of the time for which the processors of the group stood still from which the result is not
of the storage: a rate that could be a third higher."""

STARVED_GOOD: Final = 0.20
"""Share of their time that the load's threads may wait for a processor. To wake an idle core takes
1 to 5 us of each I/O, up to a seventh of the time of the fastest devices, and a core that others
share at times some more; what is beyond is the client's want of processors."""

STARVED_ON_BUSY: Final = 0.05
"""The same where all cores that they may use were full (`is_resource_full`): none was woken there,
and what a thread waits for is the end of another's turn."""

STARVED_BAD: Final = 0.90
"""The same from which all else, storage and engine together, had less than a tenth of the time: the
result is not of the storage at all. Below it a busy client makes it less certain."""


@check("cpu-bound-client", "Client bound by its processors")
@per_host(max_key="cores_busy_share")
def check_cpu_bound_client(view: RunView, host_index: int) -> CheckAnswer:
    """Whether the client could have submitted more."""
    host = view.hosts[host_index]
    cores, job = busy_share_of_allowed_cores(view, host_index), job_share_of_its_core(host)
    evidence: EvidenceValues = {
        "host": host.host,
        "cores_busy_share": cores,
        "job_cpu_percent": None if job is None else 100 * job,
        "agent_cpu_share": view.mean_telemetry(host_index, "agent", None, "cpu_share"),
    }
    where = view.on_host_if_several(host)
    is_pinned = is_pinned_to_some_cores(host, view.facts_of_host(host))
    if cores is not None and is_pinned:
        where += " that the load may use"
    if host.host in view.hosts_that_were_own_bottleneck:
        return not_applicable_answer(
            f"The guest {host.host} was its own limit, as is said beside.", **evidence
        )
    if cores is not None and is_resource_full(Resource.PROCESSORS, cores):
        own = None if is_pinned else engine_share_of_host_cpus(view, host)
        why = "the client may be the limit"
        if own is not None and own < OWN_JOBS_MAJORITY * cores:
            why = (
                f"the load's own jobs used {percent_text(own)} of them, so other work (or the "
                "kernel for the load) may be the limit"
            )
        return indicative_answer(
            f"All cores{where} were {percent_text(cores)} busy: {why}.", **evidence
        )
    if job is not None and is_resource_full(Resource.JOB, job):
        return indicative_answer(
            f"Each job{view.on_host_if_several(host)} used {percent_text(job)} of a core: the "
            "jobs may be the limit.",
            **evidence,
        )
    if cores is None or job is None:
        missing = "no telemetry of its cores" if cores is None else "no CPU use of its jobs"
        return unchecked_answer(f"{host.host} has {missing}", **evidence)
    return valid_answer(
        f"All cores{where} were {percent_text(cores)} busy, each job used "
        f"{percent_text(job)} of a core.",
        **evidence,
    )


def is_pinned_to_some_cores(host: HostRun, facts: HostFacts | None) -> bool:
    """Whether the load may use only some of its host's cores, which are known."""
    cores = host.processor.cores if host.processor else ()
    return facts is not None and 0 < len(cores) < facts.cpu.threads


def busy_share_of_allowed_cores(view: RunView, host_index: int) -> float | None:
    """The busy share of the cores that the load may use: of all where it is not bound to some."""
    host = view.hosts[host_index]
    if host.processor is None or not is_pinned_to_some_cores(host, view.facts_of_host(host)):
        return view.mean_telemetry(host_index, "cpu", "all", "busy_share")
    names, window = {str(core) for core in host.processor.cores}, view.measured_window(host_index)
    shares = (
        view.mean_telemetry_of_named_host(host.host, "cpu", series.name, "busy_share", window)
        for series in view.counter_series(host.host, "cpu", "busy_share")
        if series.name.partition("@")[0] in names
    )
    measured = [share for share in shares if share is not None]
    return sum(measured) / len(measured) if measured else None


@check("cpu-stolen", "Processor time stolen by the hypervisor")
@per_host(max_key="steal_share", valid_threshold=STOLEN)
def check_cpu_stolen(view: RunView, host_index: int) -> HostAnswer:
    """Whether other guests took the client's processors."""
    host = view.hosts[host_index]
    share = view.mean_telemetry(host_index, "cpu", "all", "steal_share")
    if host.host in view.hosts_with_externally_counted_cpu_use:
        return not_applicable_answer(
            f"What {host.host} had of its node's processors was counted there.",
            host=host.host,
            steal_share=share,
        )
    if share is None:
        return unchecked_answer(f"{host.host} has no telemetry of its cores")
    text = (
        f"The hypervisor took {percent_text(share)} of the processors' "
        f"time{view.on_host_if_several(host)}"
    )
    return answer_to_grade(text, host=host.host, steal_share=share)


@check("thermal-throttling", "Thermal throttling")
@per_host(max_key="throttle_events")
def check_thermal_throttling(view: RunView, host_index: int) -> CheckAnswer:
    """Whether processors were slowed down to cool.

    Kernels without the counter (most guests) are no objection: there is nothing to see.
    """
    host, window = view.hosts[host_index], view.measured_window(host_index)
    rate = view.mean_telemetry(host_index, "thermal", None, "throttle_events_per_s")
    if rate is None or window is None:
        facts = view.facts_of_host(host)
        in_guest = facts is not None and facts.kernel.hypervisor
        usual = ", as is usual in a virtual machine" if in_guest else ""
        return not_applicable_answer(
            f"No throttling for heat is counted on {host.host}{usual}.",
            host=host.host,
            throttle_events=None,
        )
    events = rate * window.seconds
    evidence: EvidenceValues = {"host": host.host, "throttle_events": events}
    if events > 0:
        return indicative_answer(
            f"Processors{view.on_host_if_several(host)} were throttled for heat "
            f"{format_count(max(round(events), 1))} times.",
            **evidence,
        )
    return valid_answer(
        f"No processor{view.on_host_if_several(host)} was throttled for heat.", **evidence
    )


def _quota_throttling_answer(view: RunView, host_index: int) -> CheckAnswer:
    """Whether a control group's quota stopped the load's processes."""
    host = view.hosts[host_index]
    use = host.processor
    if use is None or use.watched_ns <= 0:
        return not_applicable_answer(f"The control groups of {host.host} were not watched.")
    if not use.groups:
        return not_applicable_answer(
            f"{host.host} shows no control group that could limit its load."
        )
    limited = [group for group in use.groups if group.quota_cores is not None and group.period_ns]
    if not limited:
        return valid_answer(
            f"No quota of processor time is above the load{view.on_host_if_several(host)}."
        )
    group = max(
        limited,
        key=lambda group: (
            _max_throttled_time_share(group, use),
            _throttled_period_share(group, use),
        ),
    )
    periods, stood, waited = (
        _throttled_period_share(group, use),
        _max_throttled_time_share(group, use),
        _processor_wait_share(use),
    )
    evidence: EvidenceValues = {
        "host": host.host,
        "group": group.path,
        "quota_cores": group.quota_cores,
        "periods": group.periods,
        "throttled_periods": group.throttled,
        "throttled_share": periods,
        "stood_share": stood,
        "wait_share": waited,
    }
    text = (
        f"The quota of {group.quota_cores:.3g} cores of control group {group.path}"
        f"{view.on_host_if_several(host)} "
        f"was used up in {percent_text(periods)} of its periods"
    )
    if periods < THROTTLED_GOOD:
        return valid_answer(f"{text}.", **evidence)
    cost = f", and its processors stood still for {percent_text(stood)} of the time"
    if waited is not None:
        cost += f"; the engine's threads waited {percent_text(waited)} of the time for a processor"
    if periods >= THROTTLED_BAD or stood >= STOOD_BAD:
        return invalid_answer(
            f"{text}{cost}: rates and latencies are those of the quota.", **evidence
        )
    return indicative_answer(f"{text}{cost}.", **evidence)


check_client_throttled = check("client-throttled", "CPU quota throttling")(
    per_host(max_key="stood_share")(_quota_throttling_answer)
)


def _throttled_period_share(group: CgroupCpuUse, use: ProcessorUse) -> float:
    """The share of the periods that passed in which the quota was used up."""
    return min(group.throttled * group.period_ns / use.watched_ns, 1.0)


def _max_throttled_time_share(group: CgroupCpuUse, use: ProcessorUse) -> float:
    """At most so much of the time the group stood still: several processors may do so at once."""
    return min(group.throttled_ns / use.watched_ns, _throttled_period_share(group, use))


@check("client-starved", "Client CPU starvation")
@per_host(max_key="wait_share")
def check_client_starved(view: RunView, host_index: int) -> CheckAnswer:
    """Whether the load's threads waited for a processor instead of for the storage."""
    host = view.hosts[host_index]
    use = host.processor
    waited = None if use is None else _processor_wait_share(use)
    if use is None or waited is None:
        return not_applicable_answer(
            f"Nothing tells how long the load of {host.host} waited to run."
        )
    quota = _quota_throttling_answer(view, host_index)
    by_quota = 0.0
    if quota.level not in {None, VerdictLevel.VALID}:
        by_quota = float(quota.evidence.get("stood_share") or 0.0)
    cores, busy = _hardware_thread_count(view, host), busy_share_of_allowed_cores(view, host_index)
    others = None
    if busy is not None and use.cores and use.watched_ns > 0:
        others = max(busy - use.run_ns / use.watched_ns / len(use.cores), 0.0)
    evidence: EvidenceValues = {
        "host": host.host,
        "wait_share": waited,
        "wait_share_by_quota": by_quota,
        "run_share": use.run_ns / use.wall_ns,
        "threads": use.threads,
        "allowed_cores": len(use.cores) or None,
        "cores": cores,
        "cores_busy_share": busy,
        "others_busy_share": others,
    }
    text = (
        f"The engine's threads{view.on_host_if_several(host)} waited {percent_text(waited)} of "
        "the time for "
        "a processor"
    )
    rest = waited - by_quota
    limit = STARVED_ON_BUSY if is_resource_full(Resource.PROCESSORS, busy) else STARVED_GOOD
    if rest < limit:
        why = ", for the most part by a quota" if by_quota and waited >= limit else ""
        return valid_answer(f"{text}{why}.", **evidence)
    if is_pinned_to_some_cores(host, view.facts_of_host(host)):
        which = ", ".join(str(core) for core in use.cores[:4]) + (", …" * (len(use.cores) > 4))
        text += f", bound to {len(use.cores)} of {cores} cores ({which})"
    if others is not None:
        text += f"; other work took {percent_text(others)} of the cores that they may use"
    if rest >= STARVED_BAD:
        return invalid_answer(f"{text}: most of each latency is that wait.", **evidence)
    return indicative_answer(
        f"{text}: latencies are too high by that wait, and rates too low.", **evidence
    )


def _processor_wait_share(use: ProcessorUse) -> float | None:
    """None where no thread was seen twice, as of a load that was over at once."""
    return use.wait_ns / use.wall_ns if use.wall_ns > 0 else None


def _hardware_thread_count(view: RunView, host: HostRun) -> int | None:
    facts = view.facts_of_host(host)
    return None if facts is None else facts.cpu.threads
