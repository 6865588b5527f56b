"""Checks of load on a key-value store: whether every operation asked for was done, and counted."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations
from typing import Final

import numpy as np

from iolab.analyse.checks.engine import RUNTIME_SHARE, process_faults
from iolab.analyse.checks.registry import (
    Numbers,
    Said,
    check,
    indicative,
    invalid,
    percent,
    unchecked,
    valid,
    worst,
)
from iolab.analyse.key_value.load import WHOLE
from iolab.analyse.view import RunView
from iolab.model.key_value import KeyOperation, KeyValueJob
from iolab.model.key_value_run import KeyValueRun, OperationCount
from iolab.model.run import HostRun
from iolab.run.engines.db_bench import LOAD_STREAMS, Seeds
from iolab.units import format_count

UNEXPLAINED_GOOD: Final = 0.01
"""Share of the engine's operations that may be in no interval beside those of seconds that no
interval covers: the seconds at which a thread tells how far it is are not those of its start."""

UNEXPLAINED_BAD: Final = 0.10
"""From a tenth on one of the two counts is simply wrong."""

ABSENT_ASKED: Final = "readmissing"
"""db_bench's workload that reads absent keys on purpose."""


def key_value_errors(view: RunView) -> Said:
    """engine-errors of load on a key-value store: also what the engine was found not to have done.

    db_bench and YCSB end with 0 when no key was found, or no server answered.
    """
    return worst(
        answer for index in range(len(view.hosts)) for answer in _engine_answers(view, index)
    )


def _engine_answers(view: RunView, index: int) -> Iterator[Said]:
    host, where = view.hosts[index], view.on(view.hosts[index])
    told = host.key_value
    window = view.load.cut.hosts[index]
    asked_s = view.record.warmup_s + view.record.runtime_s
    ran_s = 0.0 if window is None else window.seconds
    evidence: Numbers = {
        "host": host.host,
        "exit_code": host.exit_code,
        "exit_signal": host.exit_signal,
        "faults": 0 if told is None else len(told.faults),
        "ran_s": ran_s,
        "asked_s": asked_s,
        "stopped_early": host.stopped_early,
    }
    for fault in process_faults(host):
        yield invalid(f"The engine{where} {fault}.", **evidence)
    if told is None:
        yield unchecked(f"the engine{where} told nothing of its run", **evidence)
    elif told.faults:
        more = f" ({len(told.faults) - 1} more faults)" if len(told.faults) > 1 else ""
        yield invalid(
            f"Not the run that was asked for{where}: {told.faults[0].rstrip('.')}{more}.",
            **evidence,
        )
    if window is not None and not view.key_value_load.whole[index]:
        yield invalid(
            f"The engine{where} completed no operation in the measured window.", **evidence
        )
    if not host.stopped_early and ran_s < RUNTIME_SHARE * asked_s:
        yield indicative(
            f"The engine{where} ran {ran_s:.1f} s of the {asked_s:.1f} s asked.", **evidence
        )
    yield valid(f"The engine{where} ran {ran_s:.1f} s without error.", **evidence)


def key_operations_failed(view: RunView) -> Said:
    """operations-failed of load on a key-value store: whatever was not the store's plain yes."""
    counts = [(host, one) for host, told in _told(view) for one in told.counts]
    if not counts:
        return unchecked("the engine did not count its operations")
    failed = sum(one.failed for _, one in counts)
    if not failed:
        return valid("No operation failed.", failed=0)
    host, most = max(counts, key=lambda each: each[1].failed)
    done = sum(one.done for _, one in counts)
    return invalid(
        f"{format_count(failed)} of {format_count(done + failed)} operations were not OK, most of "
        f"them {most.operation.word}{view.on(host)}: engines count them as throughput.",
        failed=failed,
        most_in=most.operation.word,
        host=host.host,
    )


@check("keys-absent", "Reads of keys that are not there")
def keys_absent(view: RunView) -> Said:
    """Whether every key that was read was there: looking for an absent one costs hardly anything.

    YCSB counts such a read as failed.
    """
    job = view.key_value_job
    if isinstance(job, KeyValueJob) and job.workload == ABSENT_ASKED:
        return valid("The workload reads absent keys on purpose.", asked=True)
    reads = [one for _, told in _told(view) for one in told.counts if _reads(one)]
    if not reads:
        return valid("No key was read.", reads=0)
    known = [one.absent for one in reads if one.absent is not None]
    done, absent = sum(one.done for one in reads), sum(known)
    if absent:
        return invalid(
            f"{format_count(absent)} of {format_count(done)} reads were of keys that are not "
            "there, which are cheaper.",
            reads=done,
            absent=absent,
        )
    if len(known) < len(reads) and isinstance(job, KeyValueJob):
        return unchecked("the engine did not tell how many keys were found")
    return valid("Every key that was read was there.", reads=done, absent=0)


def _reads(one: OperationCount) -> bool:
    return one.operation is KeyOperation.READ


@check("debug-build", "Engine not built for release", needs_load=False)
def debug_build(view: RunView) -> Said:
    """Whether the engine is one that its makers would publish numbers of."""
    builds = {told.build: host.host for host, told in _told(view) if told.build}
    if not builds:
        return valid("No engine remarks on its build.", build="")
    said = ", ".join(sorted(builds))
    return indicative(
        f"The engine was built with {said}: a release build may be faster."
        if "assert" in said
        else f"The engine says of its build: {said}.",
        build=said,
        host=next(iter(builds.values())),
    )


@check("seed-shared", "Keys drawn in the same order twice", needs_load=False)
def seed_shared(view: RunView) -> Said:
    """Whether any thread draws the keys of another one, or those of the load in their order.

    Thread n of db_bench draws from the stream seed + n; keys drawn before are in a cache.
    """
    job = view.key_value_job
    if not isinstance(job, KeyValueJob):
        return valid("YCSB draws its keys from a random source of its own.", hosts=len(view.hosts))
    seeds = [(host.host, told, Seeds(told.seed, job.streams)) for host, told in _told(view)]
    for host, told, cell in seeds:
        if told.load_seed is None:
            continue
        if Seeds(told.load_seed, LOAD_STREAMS).meets(cell):
            return invalid(
                f"The streams of {host} from seed {told.seed} on hold the load's, "
                f"{told.load_seed}: a thread replays the order in which the keys were written.",
                host=host,
                seed=told.seed,
                load_seed=told.load_seed,
            )
    for (one, _, mine), (other, _, theirs) in combinations(seeds, 2):
        if mine.meets(theirs):
            return invalid(
                f"The streams of {one} from seed {mine.first} on and of {other} from "
                f"{theirs.first} on meet: they read the same keys in the same order.",
                host=one,
                other=other,
                seed=mine.first,
                other_seed=theirs.first,
            )
    unknown = [host for host, told, _ in seeds if told.load_seed is None]
    if unknown or not seeds:
        return unchecked("with which seed the database was loaded is not known")
    return valid("No two threads and no load share a random stream.", hosts=len(seeds))


def key_value_sums(view: RunView) -> Said:
    """totals-disagree of load on a key-value store: intervals against the engine's own count.

    What is in no interval is explained by the time that no interval covers.
    """
    return worst((_sums(view, index) for index in range(len(view.hosts))), most="unexplained")


def _sums(view: RunView, index: int) -> Said:
    host = view.hosts[index]
    told = host.key_value
    if told is None or not told.counts:
        return unchecked(f"the engine{view.on(host)} did not count its operations")
    claimed = sum(WHOLE.get(one.operation, 0) * one.done for one in told.counts)
    job = view.key_value_job
    if isinstance(job, KeyValueJob):
        # The writer beside readers is not in db_bench's own total.
        beside = KeyOperation.WRITE if job.has_writer else None
        claimed = sum(one.done for one in told.counts if one.operation is not beside)
    counted, busiest, covered_s = _counted(view, index)
    uncovered_s = max((told.reported_s or covered_s) - covered_s, 0.0)
    lacking = max(claimed - counted - busiest * uncovered_s, 0.0)
    unexplained = max(lacking, counted - claimed) / max(claimed, 1)
    ours = float(view.key_value_load.rates[index])
    evidence: Numbers = {
        "host": host.host,
        "interval_operations": counted,
        "engine_operations": claimed,
        "uncovered_s": uncovered_s,
        "unexplained": unexplained,
        "window_ops_per_s": ours,
        "engine_ops_per_s": told.reported_ops_per_s,
    }
    if unexplained > UNEXPLAINED_GOOD:
        verdict = invalid if unexplained > UNEXPLAINED_BAD else indicative
        return verdict(
            f"Intervals{view.on(host)} hold {format_count(counted)} operations, the engine claims "
            f"{format_count(claimed)}: {percent(unexplained)} are not explained by time that no "
            "interval covers.",
            **evidence,
        )
    if told.reported_ops_per_s is None:
        return valid(f"Intervals{view.on(host)} add up to the engine's own count.", **evidence)
    return valid(
        f"Intervals{view.on(host)} add up to the engine's own count; it says "
        f"{format_count(told.reported_ops_per_s)} ops/s of its whole run, the window has "
        f"{format_count(ours)}.",
        **evidence,
    )


def _counted(view: RunView, index: int) -> tuple[int, float, float]:
    """Whole operations in all intervals of a host, the most in a second, the time they cover."""
    table = view.record.intervals
    mine = table.host == index
    total, busiest = 0, 0.0
    for operation, weight in WHOLE.items():
        rows = np.flatnonzero(mine & (table.direction == int(operation)))
        total += weight * int(table.ios[rows].sum())
        if weight > 0 and rows.size:
            busiest += float((table.ios[rows] / np.maximum(table.span_ns[rows] / 1e9, 0.1)).max())
    whole = view.load.cut.hosts[index]
    return total, busiest, 0.0 if whole is None else whole.seconds


def _told(view: RunView) -> list[tuple[HostRun, KeyValueRun]]:
    return [(host, host.key_value) for host in view.hosts if host.key_value is not None]
