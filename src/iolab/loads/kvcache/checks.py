"""Checks of KV-cache load: its schedule, its queue, its store, and the end of the run."""

from __future__ import annotations

from collections.abc import Sequence
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
from iolab.analysis.checks.run import check_schedule_kept
from iolab.analysis.service_time import host_concurrency
from iolab.core.samples import Floats
from iolab.loads.kvcache.metrics import KvCacheView
from iolab.loads.kvcache.workload import KvCacheOperation, WritePolicy
from iolab.stats.special import student_quantile
from iolab.text import percent_text
from iolab.units import format_count, format_ns

LATE_NS: Final = 1_000_000.0
"""Lateness of the schedule at p99 that no load of a prefix notices: a network file system answers a
single read in as much."""

LATE_SHARE: Final = 0.1
"""The same as a share of the response time: beyond it the tail is partly the generator's."""

GROWTH_PARTS: Final = 8
"""Parts of a run whose mean backlogs are held against each other: seconds next to each other are
alike, parts of several are not."""

GROWTH_MIN: Final = 4.0
"""Requests by which a backlog must have grown over the run: fewer come and go with the arrivals."""

GROWTH_SHARE: Final = 0.5
"""The same as a share of the mean backlog."""

UNWRITTEN_GOOD: Final = 0.01
UNWRITTEN_BAD: Final = 0.10
"""Blocks that were dropped again before their write began, of those that were taken in: so much
less was written than a store of that capacity writes."""

FILLED: Final = 0.99
"""Part of the capacity that counts as all of it: the last block may not fit."""

DIFFERENCE_MAX: Final = 0.001
"""Of all blocks, by which hits may differ from those of an LRU list."""

DRAINED_GOOD: Final = 0.01
DRAINED_BAD: Final = 0.05
"""Reads and writes that ended after the run, or never began, of all: they are in no rate, but so
much of what was asked for is missing in the latencies."""

_NO_DETAILS: Final = "did not tell what it did with its requests"


@check_schedule_kept
@per_host(max_key="late_ns_p99")
def check_requests_late(view: KvCacheView, host_index: int) -> CheckAnswer:
    """Whether requests were handed out when they were due."""
    host, where = view.hosts[host_index], view.on_host_if_several(view.hosts[host_index])
    if view.kv_job.requests_per_s is None:
        return not_applicable_answer("No request was due at a set time.", open_loop=False)
    late = host.totals.generator.lateness if host.totals and host.totals.generator else None
    if late is None:
        return unchecked_answer(f"the engine{where} told no lateness", host=host.host)
    response_ns = view.operation_histogram(
        [host_index], KvCacheOperation.PREFIX_LOAD
    ).percentile_ns(99.0)
    evidence: EvidenceValues = {
        "host": host.host,
        "late_ns_p50": late.p50_ns,
        "late_ns_p99": late.p99_ns,
        "late_ns_max": late.max_ns,
        "machine_late_ns_p99": late.machine_p99_ns,
        "share": late.p99_ns / response_ns if response_ns else None,
    }
    text = f"99 % of the requests{where} were at most {format_ns(late.p99_ns)} late"
    if late.machine_p99_ns is not None:
        text += f" (the machine alone: {format_ns(late.machine_p99_ns)})"
    if late.p99_ns > max(LATE_NS, LATE_SHARE * (response_ns or 0.0)):
        return indicative_answer(f"{text}: the tail is partly the generator's.", **evidence)
    return valid_answer(f"{text}.", **evidence)


@check("queue-grows", "Requests wait ever longer")
@per_host(max_key="growth")
def check_queue_grows(view: KvCacheView, host_index: int) -> CheckAnswer:
    """Whether the store keeps up with its requests: else a latency says how long the run was."""
    host, where = view.hosts[host_index], view.on_host_if_several(view.hosts[host_index])
    run = view.details_of_host(host_index)
    if run is None:
        return unchecked_answer(f"{host.host} {_NO_DETAILS}")
    if view.kv_job.requests_per_s is None:
        return not_applicable_answer("Requests came when there was room.", open_loop=False)
    generator = host.totals.generator if host.totals else None
    unreached = generator is not None and generator.unreached
    unwritten = run.blocks_dropped_unwritten / run.blocks_admitted if run.blocks_admitted else 0.0
    growth = significant_backlog_growth(
        _backlog_of_measured_intervals(view, host_index, run.backlog)
    )
    write_growth = significant_backlog_growth(
        _backlog_of_measured_intervals(view, host_index, run.write_backlog)
    )
    evidence: EvidenceValues = {
        "host": host.host,
        "growth": growth,
        "write_growth": write_growth,
        "backlog_max": max(run.backlog, default=0),
        "unreached": unreached,
        "unwritten_share": unwritten,
    }
    if growth > 0:
        return invalid_answer(
            f"The requests under way{where} grew by {growth:.3g} over the run: the store does not "
            "keep up, and latencies say how long the run was.",
            **evidence,
        )
    if unreached:
        return invalid_answer(
            f"The last requests{where} began ever later than they were due: their rate was not "
            "kept, and latencies say how long the run was.",
            **evidence,
        )
    if write_growth > 0:
        return invalid_answer(
            f"The objects that waited to be written{where} grew by {write_growth:.3g} over the "
            "run: the store does not keep up with its writes.",
            **evidence,
        )
    text = f"The requests under way{where} did not grow"
    if unwritten > UNWRITTEN_GOOD:
        verdict = invalid_answer if unwritten > UNWRITTEN_BAD else indicative_answer
        return verdict(
            f"{text}, but {percent_text(unwritten)} of the new blocks were dropped again before "
            "their write began: the store does not keep up with its writes.",
            **evidence,
        )
    return valid_answer(f"{text}.", **evidence)


def _backlog_of_measured_intervals(
    view: KvCacheView, host_index: int, backlog_by_interval: Sequence[int]
) -> Floats:
    """The backlogs of the intervals that count."""
    table = view.record.intervals
    rows = view.load.measured_part.interval_mask & (table.host == host_index)
    places = np.unique(table.seq[rows])
    return np.array(
        [backlog_by_interval[at] for at in places if at < len(backlog_by_interval)],
        dtype=np.float64,
    )


def significant_backlog_growth(backlog_by_interval: Floats) -> float:
    """By how much a backlog grows over its time; 0 where that is not certain at 95 %.

    The means of parts of the run are compared with a straight line: its slope must be above zero by
    what Student's t allows, and lift the backlog by more than comes and goes.
    """
    if backlog_by_interval.size < 2 * GROWTH_PARTS:
        return 0.0
    means = np.array([part.mean() for part in np.array_split(backlog_by_interval, GROWTH_PARTS)])
    at = np.arange(GROWTH_PARTS) - (GROWTH_PARTS - 1) / 2
    slope = float(at @ means / (at @ at))
    rest = means - means.mean() - slope * at
    error = float(np.sqrt(rest @ rest / (GROWTH_PARTS - 2) / (at @ at)))
    growth = slope * (GROWTH_PARTS - 1)
    certain = slope > student_quantile(0.975, GROWTH_PARTS - 2) * error
    enough = growth > max(GROWTH_MIN, GROWTH_SHARE * float(means.mean()))
    return growth if certain and enough else 0.0


@check("capacity-not-filled", "The store never held what it may")
@per_host(min_key="held_share")
def check_capacity_not_filled(view: KvCacheView, host_index: int) -> CheckAnswer:
    """Whether the store was full: else its hits are those of a larger one."""
    host, where = view.hosts[host_index], view.on_host_if_several(view.hosts[host_index])
    run = view.details_of_host(host_index)
    if run is None:
        return unchecked_answer(f"{host.host} {_NO_DETAILS}")
    before, after = (
        held / max(run.capacity_blocks, 1) for held in (run.held_at_start, run.held_at_end)
    )
    evidence: EvidenceValues = {
        "host": host.host,
        "held_share": before,
        "held_share_at_end": after,
        "evictions": run.evictions,
    }
    text = f"The store{where} held {percent_text(before)} of its capacity at the start"
    if before >= FILLED:
        return valid_answer(f"{text}.", **evidence)
    if after < FILLED:
        return invalid_answer(
            f"{text} and {percent_text(after)} at the end: nothing had to be dropped, so the hits "
            "are those of any larger store.",
            **evidence,
        )
    return indicative_answer(f"{text}, and was full only later.", **evidence)


@check("reuse-differs", "Hits that an LRU list of that capacity has not")
@per_host(max_key="difference", invalid_threshold=DIFFERENCE_MAX)
def check_reuse_differs(view: KvCacheView, host_index: int) -> HostAnswer:
    """Whether the engine hit what the trace lets a store of that capacity hit."""
    host, where = view.hosts[host_index], view.on_host_if_several(view.hosts[host_index])
    run = view.details_of_host(host_index)
    if run is None or not run.blocks:
        return unchecked_answer(f"{host.host} {_NO_DETAILS}")
    if view.kv_job.write is not WritePolicy.MISS:
        return not_applicable_answer(
            f"A store that writes {view.kv_job.write} has no LRU list of all blocks beside it."
        )
    hits, ideal = run.hits / run.blocks, run.ideal_hits / run.blocks
    return answer_to_grade(
        f"{percent_text(hits)} of the blocks{where} were hits, {percent_text(ideal)} are those of "
        "an LRU list",
        host=host.host,
        hit_share=hits,
        ideal_hit_share=ideal,
        difference=abs(hits - ideal),
    )


@check("work-outside-window", "Work that ended after the run")
@per_host(max_key="outside_share")
def check_work_outside_window(view: KvCacheView, host_index: int) -> CheckAnswer:
    """Whether what was asked for was also done in the run's time."""
    host, where = view.hosts[host_index], view.on_host_if_several(view.hosts[host_index])
    generator = host.totals.generator if host.totals else None
    if generator is None:
        return unchecked_answer(f"the engine{where} left no totals", host=host.host)
    done = sum(view.claimed_run_ios(host_index, way) for way in view.kv_job.data_directions)
    outside = generator.drained_ios + generator.unsubmitted
    flying = host_concurrency(
        view.load, host_index, view.kv_job.iodepth_per_client, view.service_times
    )
    # So many were under way when the run began, too, and count in it.
    usual = flying.in_flight if flying else 0.0
    share = max(outside - usual, 0.0) / max(done + generator.unsubmitted, 1)
    longest_ns = view.operation_histogram([host_index], KvCacheOperation.PREFIX_LOAD).percentile_ns(
        100.0
    )
    evidence: EvidenceValues = {
        "host": host.host,
        "outside_share": share,
        "drained": generator.drained_ios,
        "unsubmitted": generator.unsubmitted,
        "longest_ns": longest_ns,
        "measured_ns": generator.measured_ns,
    }
    text = f"{format_count(outside)} reads and writes{where} were left at the end"
    if longest_ns and longest_ns > generator.measured_ns:
        return invalid_answer(
            f"A prefix{where} took {format_ns(longest_ns)}, longer than the run.", **evidence
        )
    if share > DRAINED_GOOD:
        verdict = invalid_answer if share > DRAINED_BAD else indicative_answer
        return verdict(
            f"{text}, {percent_text(share)} of all: they are in no rate, and missing in the "
            "latencies.",
            **evidence,
        )
    return valid_answer(f"{text}, {percent_text(share)} of all.", **evidence)
