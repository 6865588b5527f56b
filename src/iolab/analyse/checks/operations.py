"""Checks of metadata load: whether every operation that was asked for was done, and counted."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Final

import numpy as np

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
from iolab.analyse.metadata.phases import FILE_OPERATIONS, MetadataLoad, PhaseLoad
from iolab.analyse.view import RunView
from iolab.model.engine import EngineName
from iolab.model.metadata import Operation
from iolab.model.run import HostRun, RunStatus
from iolab.units import format_count

REPORTED_GOOD: Final = 0.01
"""Relative difference between a printed rate times its seconds and the operations asked for: what
printed digits lose."""

REPORTED_BAD: Final = 0.10
"""From a tenth on the engine did not do what it was asked to."""

NAMED_ERRORS: Final = 4
"""Kinds of errors that are named; the manifest has them all."""


def phases_of(view: RunView) -> MetadataLoad:
    """What the phases did; nothing where the job is none of metadata load."""
    return view.metadata or MetadataLoad(())


def is_counted(view: RunView) -> bool:
    """Whether the engine tells what each host did; mdtest prints rates of the fleet and no more."""
    return view.metadata_job.engine is not EngineName.MDTEST


@check("operations-failed", "Operations that failed")
def operations_failed(view: RunView) -> Said:
    """Whether every operation succeeded: one that fails is often faster than one that works."""
    if not is_counted(view):
        return unchecked("mdtest does not count the operations that failed")
    errors: Counter[str] = Counter()
    worst_phase, most = "", 0
    for phase in phases_of(view).phases:
        for run in phase.runs:
            errors.update(dict(run.errors) if run is not None else {})
        if phase.failed > most:
            worst_phase, most = phase.operation.word, phase.failed
    total = errors.total()
    if total == 0:
        return valid("No operation failed.", failed=0)
    named = ", ".join(f"{name} {n:,} times" for name, n in errors.most_common(NAMED_ERRORS))
    return invalid(
        f"{format_count(total)} operations failed ({named}), most in {worst_phase}.",
        failed=total,
        most_in=worst_phase,
        **{f"failed_{name}": n for name, n in errors.most_common(NAMED_ERRORS)},
    )


@check("phase-incomplete", "Phase not finished", needs_load=False)
def phase_incomplete(view: RunView) -> Said:
    """Whether every phase was run to its end on every host."""
    if not is_counted(view):
        told = {rate.operation for rate in view.record.reported}
        missing = [operation.word for operation in FILE_OPERATIONS if operation not in told]
        if missing:
            return invalid(
                f"The engine printed no rate of {', '.join(missing)}.", phases_missing=len(missing)
            )
        return valid("The engine printed a rate of every operation on files.", phases_missing=0)
    return worst((_finished(view, operation) for operation in Operation), most="skipped")


def _finished(view: RunView, operation: Operation) -> Said:
    phase = next((p for p in phases_of(view).phases if p.operation is operation), None)
    if phase is None:
        return invalid(f"No host came to {operation.word}.", phase=operation.word)
    absent = [host.host for host, run in zip(view.hosts, phase.runs, strict=True) if run is None]
    if absent:
        return invalid(
            f"{len(absent)} of {len(view.hosts)} hosts did not come to {operation.word}.",
            phase=operation.word,
            hosts_missing=len(absent),
        )
    asked = sum(run.asked for run in phase.runs if run is not None)
    skipped = asked - phase.done - phase.failed
    evidence: Numbers = {"phase": operation.word, "asked": asked, "skipped": skipped}
    if skipped:
        return invalid(
            f"{format_count(abs(skipped))} of the {format_count(asked)} operations of "
            f"{operation.word} were not done.",
            **evidence,
        )
    return valid("Every phase came to its end on every host.", **evidence)


@check("reported-rates", "Rates as the engine prints them")
def reported_rates(view: RunView) -> Said:
    """Whether rates that the engine itself computed fit what it was asked to do."""
    if is_counted(view):
        return valid("Operations were counted as they ended; no printed rate is used.")
    job = view.metadata_job
    asked = job.ranks * len(view.hosts) * job.files_per_rank
    timed = [
        (rate, rate.seconds)
        for rate in view.record.reported
        if rate.operation in FILE_OPERATIONS and rate.seconds is not None
    ]
    if not timed:
        return unchecked("the engine did not tell how many files or seconds its rates stand for")
    return worst(
        (
            _fits(rate.operation, rate.ops_per_s * seconds, asked, str(job.engine))
            for rate, seconds in timed
        ),
        most="difference_share",
    )


def _fits(operation: Operation, implied: float, asked: int, engine: str) -> Said:
    off = abs(implied - asked) / max(asked, 1)
    evidence: Numbers = {
        "phase": operation.word,
        "implied_ops": implied,
        "asked_ops": asked,
        "difference_share": off,
    }
    if off <= REPORTED_GOOD:
        return valid(f"The rates that {engine} prints fit the operations asked for.", **evidence)
    verdict = invalid if off > REPORTED_BAD else indicative
    return verdict(
        f"The rate of {operation.word} that {engine} prints stands for {format_count(implied)} "
        f"operations, asked were {format_count(asked)} ({percent(off)} apart).",
        **evidence,
    )


def metadata_sums(view: RunView) -> Said:
    """totals-disagree of metadata load: intervals and bins against what each host says it did."""
    if not is_counted(view):
        return valid("mdtest gives no counts to add up; reported-rates judges what it prints.")
    return worst((_summed(view, phase) for phase in phases_of(view).phases), most="difference")


def _summed(view: RunView, phase: PhaseLoad) -> Said:
    done = np.array([0 if run is None else run.done for run in phase.runs], dtype=np.int64)
    binned = phase.bins.sum(axis=1)
    off = np.maximum(np.abs(phase.ops - done), np.abs(binned - done))
    index = int(np.argmax(off))
    evidence: Numbers = {
        "phase": phase.operation.word,
        "host": view.hosts[index].host,
        "interval_ops": int(phase.ops[index]),
        "binned_ops": int(binned[index]),
        "host_ops": int(done[index]),
        "difference": int(off[index]),
    }
    if off[index]:
        return invalid(
            f"Intervals of {phase.operation.word}{view.on(view.hosts[index])} hold "
            f"{phase.ops[index]} operations, their bins {binned[index]}, the host claims "
            f"{done[index]}.",
            **evidence,
        )
    return valid("Intervals and bins of every phase add up to what the hosts did.", **evidence)


def metadata_engine(view: RunView) -> Said:
    """engine-errors of metadata load: what the engine said and how it ended on each host."""
    return worst(answer for host in view.hosts for answer in _ended(view, host))


def _ended(view: RunView, host: HostRun) -> Iterator[Said]:
    """An agent's ranks are no process of their own: they have no exit code."""
    where = view.on(host)
    evidence: Numbers = {
        "host": host.host,
        "exit_code": host.exit_code,
        "exit_signal": host.exit_signal,
        "stopped_early": host.stopped_early,
    }
    if host.error:
        yield invalid(f"The engine{where} failed: {host.error.rstrip('.')}.", **evidence)
    stopped = host.stopped_early or view.record.status is RunStatus.INTERRUPTED
    if not stopped and host.exit_signal is not None:
        yield invalid(f"The engine{where} was killed by signal {host.exit_signal}.", **evidence)
    if not stopped and host.exit_code:
        yield invalid(f"The engine{where} exited with code {host.exit_code}.", **evidence)
    yield valid(f"The engine{where} ran without error.", **evidence)
