"""Checks of whether the client's processors, not the storage, set the number."""

from __future__ import annotations

from collections.abc import Container
from typing import Final

from iolab.analyse.checks.registry import (
    Numbers,
    Said,
    check,
    indicative,
    percent,
    unchecked,
    valid,
    worst,
)
from iolab.analyse.guests.bound import counted_guests, limited_guests
from iolab.analyse.view import RunView
from iolab.model.run import EngineTotals
from iolab.units import format_count

BUSY_CORES: Final = 0.90
"""Busy share of all cores above which the client has no processor left: interrupts and the kernel's
own work take what remains before 100 %."""

BUSY_JOB_PERCENT: Final = 95.0
"""User and system time of a job in percent of one core from which the job itself is the limit; a
job that waits for storage at all sleeps more than a twentieth of its time."""

STOLEN: Final = 0.02
"""Share of the processors' time that the hypervisor gave to others; from about 2 % on latencies of
the tail are theirs."""


@check("cpu-bound-client", "Client bound by its processors")
def cpu_bound_client(view: RunView) -> Said:
    """Whether the client could have submitted more."""
    limited, hosts = limited_guests(view), range(len(view.hosts))
    return worst((_busy(view, index, limited) for index in hosts), most="cores_busy_share")


def _busy(view: RunView, index: int, limited: Container[str]) -> Said:
    host = view.hosts[index]
    cores = view.mean_of(index, "cpu", "all", "busy_share")
    job = None
    if host.totals is not None:
        job = host.totals.user_cpu_percent + host.totals.system_cpu_percent
        job *= _jobs_a_core(host.totals)
    evidence: Numbers = {
        "host": host.host,
        "cores_busy_share": cores,
        "job_cpu_percent": job,
        "agent_cpu_share": view.mean_of(index, "agent", None, "cpu_share"),
    }
    where = view.on(host)
    if host.host in limited:
        return valid(f"The guest {host.host} was its own limit, as is said beside.", **evidence)
    if cores is not None and cores >= BUSY_CORES:
        return indicative(
            f"All cores{where} were {percent(cores)} busy: the client may be the limit.", **evidence
        )
    if job is not None and job >= BUSY_JOB_PERCENT:
        return indicative(
            f"Each job{where} used {job:.0f} % of a core: the jobs may be the limit.", **evidence
        )
    if cores is None or job is None:
        what = "no telemetry of its cores" if cores is None else "no CPU use of its jobs"
        return unchecked(f"{host.host} has {what}", **evidence)
    return valid(
        f"All cores{where} were {percent(cores)} busy, each job used {job:.0f} % of a core.",
        **evidence,
    )


def _jobs_a_core(totals: EngineTotals) -> float:
    """How many jobs share a thread: all of them together are then what one core can do."""
    threads = totals.generator.threads if totals.generator else 0
    return totals.jobs / threads if 0 < threads < totals.jobs else 1.0


@check("cpu-stolen", "Processor time stolen by the hypervisor")
def cpu_stolen(view: RunView) -> Said:
    """Whether other guests took the client's processors."""
    counted, hosts = counted_guests(view), range(len(view.hosts))
    return worst((_stolen(view, index, counted) for index in hosts), most="steal_share")


def _stolen(view: RunView, index: int, counted: Container[str]) -> Said:
    host = view.hosts[index]
    share = view.mean_of(index, "cpu", "all", "steal_share")
    if host.host in counted:
        return valid(
            f"What {host.host} had of its node's processors was counted there.",
            host=host.host,
            steal_share=share,
        )
    if share is None:
        return unchecked(f"{host.host} has no telemetry of its cores")
    said = f"The hypervisor took {percent(share)} of the processors' time{view.on(host)}"
    verdict = indicative if share >= STOLEN else valid
    return verdict(f"{said}.", host=host.host, steal_share=share)


@check("thermal-throttling", "Thermal throttling")
def thermal_throttling(view: RunView) -> Said:
    """Whether processors were slowed down to cool."""
    return worst(
        (_throttled(view, index) for index in range(len(view.hosts))), most="throttle_events"
    )


def _throttled(view: RunView, index: int) -> Said:
    """Kernels without the counter (most guests) are no objection: there is nothing to see."""
    host, window = view.hosts[index], view.measured(index)
    rate = view.mean_of(index, "thermal", None, "throttle_events_per_s")
    if rate is None or window is None:
        return valid(
            f"{host.host} counts no throttling, as is usual in a virtual machine.",
            host=host.host,
            throttle_events=None,
        )
    events = rate * window.seconds
    evidence: Numbers = {"host": host.host, "throttle_events": events}
    if events > 0:
        return indicative(
            f"Processors{view.on(host)} were throttled for heat "
            f"{format_count(max(round(events), 1))} times.",
            **evidence,
        )
    return valid(f"No processor{view.on(host)} was throttled for heat.", **evidence)
