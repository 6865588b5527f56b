"""Checks of I/O on files: its depth, its rate, its latencies, its generator, its blocks."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import numpy as np

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
from iolab.analysis.checks.run import (
    ACHIEVED_MIN,
    check_generator_bound,
    check_operations_in_flight,
    check_rate_kept,
    check_schedule_kept,
)
from iolab.analysis.service_time import (
    host_concurrency,
    max_indicative_relative_concurrency_deviation,
    max_valid_relative_concurrency_deviation,
)
from iolab.analysis.sums import DIRECTIONS
from iolab.analysis.view import RunView
from iolab.core.generator import GeneratorTotals
from iolab.core.run import HostRun
from iolab.loads.fileio.sampled_checks import is_latency_contradicted_by_device
from iolab.loads.fileio.workload import Job
from iolab.text import percent_text
from iolab.units import NS_PER_S, format_bytes, format_count, format_ns

IN_FLIGHT_MAX: Final = 0.9
"""Share of the depth that may be in flight on average: beyond it, I/Os had to wait to be issued."""

FULL_DEPTH_TOLERABLE: Final = 0.01
"""Share of the seconds in which that many were in flight: beyond it, waits that nobody counted are
more than the hundredth part that a p99 leaves out. A stall hides from the average."""

LOST_MAX: Final = 0.001
"""Share of the I/Os that were due whose response times may be missing at the end: as many as a
p99.9 leaves out. A target that stalls there keeps its slowest I/Os out of every percentile."""

DEPTH_SHARE_GOOD: Final = 0.90
"""Share of I/Os submitted at the asked depth level: filling and draining the queue, and batches of
completions, take a few per cent; a tenth below the level is another load."""

DEPTH_SHARE_BAD: Final = 0.10
"""Below this share the depth in the point's label is not what ran at all, as with a synchronous
engine."""

RHO_BAD_LOW: Final = 0.5
"""With less than half of the asked I/Os in flight the point belongs at another depth."""

_TOP_LEVEL: Final = 64

LATE_SHARE: Final = 0.1
"""Lateness of the generator, as a share of the response time at the same percentile, from which a
tenth of what is called the target's is the generator's own."""

LATE_INTERVALS: Final = 1.0
"""The same in mean intervals between arrivals of the whole host: beyond one, arrivals come in
bunches that nobody asked for."""

GENERATOR_LIMIT_SHARE: Final = 0.5
"""Share of what the generator reaches on a null target: from half on, more of each
I/O's time is its own than the target's."""


@check_rate_kept
@per_host(min_key="achieved")
def check_coordinated_omission(view: RunView, host_index: int) -> CheckAnswer:
    """Whether I/Os under a rate were issued when they were due, so that none waited unseen."""
    if view.job.target_iops_per_job is None:
        loop = "Closed loop" if view.job.is_closed_loop else "Paced by think time"
        return not_applicable_answer(
            f"{loop}: latencies are service times at the load's concurrency.", open_loop=False
        )
    host = view.hosts[host_index]
    job = Job.require_type(view.record.run.point.job_on_host(host.host))
    if view.service_times is not None:
        return _target_rate_reached_answer(view, host_index, job)
    measured = host_concurrency(view.load, host_index, job.iodepth_per_client)
    seconds = float(view.load.seconds[host_index])
    if measured is None or seconds <= 0 or job.target_iops_per_job is None:
        return unchecked_answer(f"no I/O was measured on {host.host}")
    target = job.target_iops_per_job * job.numjobs
    achieved = float(view.load.ios[host_index].sum()) / seconds / target
    evidence: EvidenceValues = {
        "host": host.host,
        "open_loop": True,
        "target_iops_per_job": target,
        "achieved": achieved,
        "in_flight": measured.in_flight,
        "depth": job.iodepth_per_client,
    }
    full = _share_of_intervals_at_full_depth(view, host_index, job.iodepth_per_client)
    evidence["full_seconds"] = full
    text = (
        f"{percent_text(achieved)} of {format_count(target)} IOPS were "
        f"kept{view.on_host_if_several(host)} with "
        f"{measured.in_flight:.3g} of {job.iodepth_per_client} I/Os in flight"
    )
    if achieved < ACHIEVED_MIN or measured.in_flight >= IN_FLIGHT_MAX * job.iodepth_per_client:
        return indicative_answer(
            f"{text}: the latencies are service time at concurrency {measured.in_flight:.3g}, not "
            "latency at that rate.",
            **evidence,
        )
    if full > FULL_DEPTH_TOLERABLE:
        return indicative_answer(
            f"{text}, but in {percent_text(full)} of the seconds all that the depth allows: "
            "I/Os then "
            "waited unseen, and the far percentiles are too small.",
            **evidence,
        )
    return valid_answer(f"{text}: the latencies are those at that rate.", **evidence)


def _target_rate_reached_answer(view: RunView, host_index: int, job: Job) -> CheckAnswer:
    """Of latencies from when I/Os were due: nothing waits unseen, but a rate may be too high.

    What is due then waits ever longer, and a latency says how long the run was.
    """
    host, seconds = view.hosts[host_index], float(view.load.seconds[host_index])
    if seconds <= 0 or job.target_iops_per_job is None:
        return unchecked_answer(f"no I/O was measured on {host.host}")
    target = job.target_iops_per_job * job.numjobs
    achieved = float(view.load.ios[host_index].sum()) / seconds / target
    generator = host.totals.generator if host.totals else None
    unreached = generator is not None and generator.unreached
    unsubmitted = generator.unsubmitted if generator else 0
    drained = generator.drained_ios if generator else 0
    evidence: EvidenceValues = {
        "host": host.host,
        "open_loop": True,
        "target_iops_per_job": target,
        "achieved": achieved,
        "unreached": unreached,
        "unsubmitted": unsubmitted,
        "drained": drained,
    }
    text = (
        f"{percent_text(achieved)} of {format_count(target)} IOPS were "
        f"kept{view.on_host_if_several(host)}"
    )
    # A trace has its own rate in every part of it.
    if unreached or (achieved < ACHIEVED_MIN and not job.trace):
        return indicative_answer(
            f"{text}: what was due waited ever longer, so the latencies say how long the run was, "
            f"not what that rate costs{_unsubmitted_ios_clause(generator)}.",
            **evidence,
        )
    lost = drained + unsubmitted
    share, usual = _unfinished_share_and_mean_in_flight(view, host_index, lost, job)
    evidence |= {"lost": share, "in_flight": usual}
    if share > LOST_MAX:
        return indicative_answer(
            f"{text}, but {format_count(lost)} I/Os that were due were still under way or not "
            f"begun at the end, where {usual:.3g} were on average: their response times are "
            "missing, and the far percentiles are too small.",
            **evidence,
        )
    return valid_answer(f"{text}, and latencies count from when each I/O was due.", **evidence)


def _unfinished_share_and_mean_in_flight(
    view: RunView, host_index: int, unfinished_count: int, job: Job
) -> tuple[float, float]:
    """The share of the I/Os that had not ended at the end, and how many were in flight on average.

    So many had not ended when the window began either, and count in it: they stand for as many at
    its end, and only what is beyond them makes the share.
    """
    measured = host_concurrency(view.load, host_index, job.iodepth_per_client)
    usual = measured.in_flight if measured else 0.0
    due = int(view.load.ios[host_index].sum()) + unfinished_count
    return max(unfinished_count - usual, 0.0) / max(due, 1), usual


def _unsubmitted_ios_clause(generator: GeneratorTotals | None) -> str:
    """What the latencies lack of I/Os that were due and never begun."""
    if generator is None:
        return ""
    if generator.hung_ios:
        return "; I/Os hung, and how many more were due and never begun is not known"
    if not generator.unsubmitted:
        return ""
    return (
        f"; {format_count(generator.unsubmitted)} more I/Os were due and never begun, the oldest "
        f"for {format_ns(generator.oldest_unsubmitted_ns)}: their response times are missing"
    )


def _share_of_intervals_at_full_depth(view: RunView, host_index: int, depth: int) -> float:
    """Share of the host's measured intervals in which the depth was all but used up."""
    table = view.record.intervals
    rows = view.load.measured_part.interval_mask & (table.host == host_index)
    _, first, at = np.unique(table.seq[rows], return_index=True, return_inverse=True)
    waited_ns = np.bincount(at, weights=table.lat_sum_ns[rows])
    in_flight = waited_ns / np.maximum(table.span_ns[rows][first], 1)
    return float(np.mean(in_flight >= IN_FLIGHT_MAX * depth)) if len(first) else 0.0


@check("depth-not-reached", "Queue depth not reached")
@per_host(min_key="share", valid_threshold=DEPTH_SHARE_GOOD, invalid_threshold=DEPTH_SHARE_BAD)
def check_depth_not_reached(view: RunView, host_index: int) -> HostAnswer:
    """Whether the engine submitted its I/Os at the depth that was requested."""
    if not view.job.is_closed_loop:
        return not_applicable_answer(
            "The load is paced, so the queue is not meant to be full.", paced=True
        )
    host = view.hosts[host_index]
    job, where = Job.require_type(view.job), view.on_host_if_several(host)
    if host.totals and host.totals.generator and host.totals.generator.depth_asked:
        return _granted_depth_answer(host.totals.generator, host.host, where)
    shares: Mapping[str, float] = dict(host.totals.depth_percent) if host.totals else {}
    if not shares:
        return unchecked_answer(f"the engine told no depths{where}")
    level = fio_depth_level_key(job.iodepth)
    share = shares.get(level, 0.0) / 100
    evidence: EvidenceValues = {
        "host": host.host,
        "iodepth": job.iodepth,
        "level": level,
        "share": share,
    }
    text = (
        f"{percent_text(share)} of the I/Os{where} were submitted at depth level {level} "
        f"(asked: {job.iodepth})"
    )
    return answer_to_grade(
        text, ": the queue often ran short", ": the load is not what its label says", **evidence
    )


def fio_depth_level_key(iodepth: int) -> str:
    """The level under which fio counts a depth: the power of two at or below it, to `>=64`."""
    if iodepth >= _TOP_LEVEL:
        return f">={_TOP_LEVEL}"
    return str(1 << (max(iodepth, 1).bit_length() - 1))


def _granted_depth_answer(
    generator: GeneratorTotals, host_name: str, host_suffix: str
) -> CheckAnswer:
    """Of an engine that submits whenever it has room: how much room the kernel granted it."""
    asked, used = generator.depth_asked, generator.depth_used
    evidence: EvidenceValues = {
        "host": host_name,
        "iodepth": asked,
        "room": used,
        "share": used / asked,
    }
    text = f"The engine{host_suffix} had room for {used} of {asked} I/Os in flight"
    if used < DEPTH_SHARE_BAD * asked:
        return invalid_answer(f"{text}: the load is not what its label says.", **evidence)
    if used < asked:
        return indicative_answer(f"{text}: the queue could not be as deep as asked.", **evidence)
    return valid_answer(f"{text}.", **evidence)


@check_operations_in_flight
@per_host(max_key="off", needs_complete_host_run=True)
def check_littles_law(view: RunView, host_index: int) -> CheckAnswer:
    """Whether throughput times latency gives the I/Os that should have been in flight."""
    host = view.hosts[host_index]
    job = Job.require_type(view.record.run.point.job_on_host(host.host))
    measured = host_concurrency(view.load, host_index, job.iodepth_per_client, view.service_times)
    if measured is None:
        return unchecked_answer(f"no latency was measured on {host.host}")
    evidence: EvidenceValues = {
        "host": host.host,
        "rho": measured.reached_depth_share,
        "off": abs(measured.reached_depth_share - 1),
        "in_flight": measured.in_flight,
        "asked": measured.requested_depth,
        "edge": measured.window_edge_tolerance_share,
    }
    mean = f"{measured.in_flight:.3g} I/Os were in flight{view.on_host_if_several(host)}"
    if not job.is_closed_loop:
        return not_applicable_answer(f"The load is paced: on average {mean}.", **evidence)
    text = (
        f"On average {mean}, asked were {measured.requested_depth} (ratio "
        f"{measured.reached_depth_share:.3f})"
    )
    if host.host in view.hosts_that_were_own_bottleneck and measured.reached_depth_share < 1:
        return not_applicable_answer(
            f"{text}: what kept the guest from more is said beside.", **evidence
        )
    deviation = measured.reached_depth_share - 1
    too_few = (
        deviation
        < -max_valid_relative_concurrency_deviation(job.iodepth)
        - measured.window_edge_tolerance_share
    )
    if too_few and is_latency_contradicted_by_device(
        view, host_index, view.run_bin_counts(host_index)
    ):
        # The queue may have been full: what is wrong are the times.
        verdict = invalid_answer if deviation < RHO_BAD_LOW - 1 else indicative_answer
        return verdict(
            f"{text}: the latencies told are shorter than the device's, so this tells nothing of "
            "the queue.",
            **{**evidence, "latency_contradicted": True},
        )
    return _littles_law_answer(
        text, deviation, measured.window_edge_tolerance_share, job.iodepth, evidence
    )


def _littles_law_answer(
    text: str, deviation: float, tolerance: float, iodepth: int, evidence: EvidenceValues
) -> CheckAnswer:
    """More in flight than there can be contradicts itself; fewer is a lighter load."""
    if abs(deviation) <= max_valid_relative_concurrency_deviation(iodepth) + tolerance:
        return valid_answer(f"{text}.", **evidence)
    if deviation > max_indicative_relative_concurrency_deviation(iodepth) + tolerance:
        return invalid_answer(
            f"{text}: more than can be, so the counts or times are wrong.", **evidence
        )
    if deviation < RHO_BAD_LOW - 1:
        return invalid_answer(f"{text}: the load is not what its label says.", **evidence)
    if deviation > 0:
        return indicative_answer(f"{text}: slightly more than can be.", **evidence)
    if deviation < -max_indicative_relative_concurrency_deviation(iodepth) - tolerance:
        return indicative_answer(
            f"{text}: the client did not keep the queue full, or its latencies are too short.",
            **evidence,
        )
    return indicative_answer(f"{text}: the engine lost time between I/Os.", **evidence)


@check_schedule_kept
@per_host(max_key="share")
def check_generator_late(view: RunView, host_index: int) -> CheckAnswer:
    """Whether I/Os of an open loop were submitted when they were due."""
    host, job = (
        view.hosts[host_index],
        Job.require_type(view.record.run.point.job_on_host(view.hosts[host_index].host)),
    )
    if job.target_iops_per_job is None:
        return not_applicable_answer(
            "No I/O was due at a set time, so none was late.", open_loop=False
        )
    if view.service_times is None:
        return not_applicable_answer(
            f"When I/Os were due is not recorded by {job.engine}, so none is known to be late.",
            open_loop=False,
        )
    generator = _generator_totals(host)
    if generator is None or generator.lateness is None:
        return unchecked_answer(
            f"the engine{view.on_host_if_several(host)} told no lateness", host=host.host
        )
    ways = [int(way) for way in DIRECTIONS]
    response_ns = view.load.histogram([host_index], ways).percentile_ns(99.0)
    late = generator.lateness
    interval_ns = NS_PER_S / (job.target_iops_per_job * job.numjobs)
    share = late.p99_ns / response_ns if response_ns else None
    evidence: EvidenceValues = {
        "host": host.host,
        "open_loop": True,
        "late_ns_p50": late.p50_ns,
        "late_ns_p99": late.p99_ns,
        "late_ns_max": late.max_ns,
        "machine_late_ns_p99": late.machine_p99_ns,
        "interval_ns": interval_ns,
        "share": share,
    }
    text = (
        f"99 % of the I/Os{view.on_host_if_several(host)} were at most {format_ns(late.p99_ns)} "
        "late"
    )
    if late.machine_p99_ns is not None:
        text += f" (the machine alone: {format_ns(late.machine_p99_ns)})"
    if share is not None and share > LATE_SHARE:
        return indicative_answer(
            f"{text}, {percent_text(share)} of the response time at that percentile: the tail "
            "is partly "
            "the generator's.",
            **evidence,
        )
    if late.p99_ns > LATE_INTERVALS * interval_ns:
        return indicative_answer(
            f"{text}, where one was due every {format_ns(interval_ns)}: they came in bunches.",
            **evidence,
        )
    return valid_answer(f"{text}.", **evidence)


@check_generator_bound
@per_host(max_key="share", valid_threshold=GENERATOR_LIMIT_SHARE)
def check_near_generator_limit(view: RunView, host_index: int) -> HostAnswer:
    """Whether the generator could have made much more load than it did.

    A run without a limit is no objection: what its jobs used of their cores is checked too.

    One whose limit should have been had, and was not, is.
    """
    host, seconds = view.hosts[host_index], float(view.load.seconds[host_index])
    engine = Job.require_type(view.record.run.point.job_on_host(host.host)).engine
    if host.generator_limit_fault:
        why = f"{engine} did not make its load on the null target{view.on_host_if_several(host)}"
        return unchecked_answer(f"{why} ({host.generator_limit_fault})", host=host.host)
    if host.generator_limit_iops is None:
        return not_applicable_answer(
            f"No limit of {engine} is known{view.on_host_if_several(host)}.", host=host.host
        )
    if seconds <= 0:
        return not_applicable_answer(
            f"No whole interval was measured on {host.host}.", host=host.host
        )
    iops = float(view.load.ios[host_index].sum()) / seconds
    share = iops / host.generator_limit_iops
    return answer_to_grade(
        f"The load{view.on_host_if_several(host)} was {percent_text(share)} of the "
        f"{format_count(host.generator_limit_iops)} IOPS that {engine} makes there on a null "
        "target",
        f": {engine} may be the limit",
        host=host.host,
        iops=iops,
        generator_limit_iops=host.generator_limit_iops,
        share=share,
    )


def _generator_totals(host: HostRun) -> GeneratorTotals | None:
    return host.totals.generator if host.totals else None


@check("files-changed", "Files changed under the load", needs_load=False)
@per_host()
def check_files_changed(view: RunView, host_index: int) -> CheckAnswer:
    """Whether the files on which the load worked were the same, and as large, at its end."""
    host = view.hosts[host_index]
    files, where = host.files, view.on_host_if_several(host)
    if files is None:
        return not_applicable_answer(
            f"The files of {host.host} are not compared: none, or trimmed."
        )
    before, after = files.before, files.after
    evidence: EvidenceValues = {
        "host": host.host,
        "files": before.file_count,
        "size_bytes_before": before.size_bytes,
        "size_bytes_after": None if after is None else after.size_bytes,
        "written_bytes_before": before.written_bytes,
        "written_bytes_after": None if after is None else after.written_bytes,
    }
    if after is None and not files.fault:
        return not_applicable_answer(
            f"The load of {host.host} did not come to its end.", **evidence
        )
    if after is None:
        why = files.fault.rstrip(".")
        return invalid_answer(f"The files{where} are not there any more: {why}.", **evidence)
    if _are_known_and_different(before.identity, after.identity):
        return invalid_answer(f"Files{where} were replaced by others during the load.", **evidence)
    if after.size_bytes != before.size_bytes:
        sizes = f"{format_bytes(before.size_bytes)} to {format_bytes(after.size_bytes)}"
        return invalid_answer(f"The files{where} went from {sizes} during the load.", **evidence)
    if before.method == after.method and after.written_bytes < before.written_bytes:
        lost = format_bytes(before.written_bytes - after.written_bytes)
        return invalid_answer(
            f"{lost} of the files{where} were unmapped during the load.", **evidence
        )
    if before.hole_bytes == 0 and _are_known_and_different(before.places, after.places):
        return indicative_answer(
            f"Blocks of the files{where} were given back and allocated again during the load: "
            "files "
            "were truncated, punched or moved.",
            **evidence,
        )
    return valid_answer(f"The files{where} were the same before and after the load.", **evidence)


def _are_known_and_different(before: str | None, after: str | None) -> bool:
    return before is not None and after is not None and before != after
