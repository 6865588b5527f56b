"""Checks of metadata load: time, ranks that work together, and who answered in truth."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import numpy as np

from iolab.analyse.checks.client import BUSY_CORES
from iolab.analyse.checks.operations import is_counted, phases_of
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
from iolab.analyse.metadata.phases import FILE_OPERATIONS, PhaseLoad
from iolab.analyse.percentiles import PERCENTILES, ios_needed, is_supported
from iolab.analyse.view import RunView
from iolab.analyse.window import EDGE_SLACK_NS
from iolab.model.metadata import Operation
from iolab.units import format_count, format_ns

PHASE_SHORT_S: Final = 10.0
"""Below this a phase sees fewer than two commits of a journal that commits every 5 s, as ext4 does:
what it leaves to be written is not in its rate."""

PHASE_USELESS_S: Final = 0.1
"""Below this the milliseconds by which ranks start and end apart are a tenth of the phase."""

TOGETHER_SHARE: Final = 0.5
"""Share of a phase in which all ranks must work: below it the stragglers are most of the phase, and
its rate over the window and that over the whole tell of different things."""

PREEMPTED_SHARE: Final = 0.01
"""Preemptions for each operation from which latencies from the 99th percentile on are waits for a
processor."""


@check("ranks-apart", "Ranks that did not work at the same time")
def ranks_apart(view: RunView) -> Said:
    """Whether all ranks of all hosts worked on the files together, so that rates may be added."""
    if not is_counted(view):
        return unchecked("mdtest does not tell when each rank worked; its rates are of the whole")
    phases = phases_of(view).file_phases
    if not phases:
        return invalid("No phase on files was run: there is no fleet number.")
    return worst((_together(view, phase) for phase in phases), least="together_share")


def _together(view: RunView, phase: PhaseLoad) -> Said:
    clock_error_ns = max((host.clock_error_ns for host in view.hosts), default=0)
    whole_s = 0.0 if phase.whole is None else phase.whole.seconds
    common_s = 0.0 if phase.common is None else phase.common.seconds
    share = common_s / whole_s if whole_s > 0 else 0.0
    word = phase.operation.word
    evidence: Numbers = {
        "phase": word,
        "common_s": common_s,
        "whole_s": whole_s,
        "together_share": share,
        "clock_error_s": clock_error_ns / 1e9,
    }
    if phase.common is None:
        return invalid(
            f"In {word} the ranks never worked all at the same time: there is no fleet rate.",
            **evidence,
        )
    said = f"In {word} all ranks worked together for {percent(share)} of the phase"
    if share < TOGETHER_SHARE:
        return indicative(f"{said}.", **evidence)
    if len(view.hosts) > 1 and clock_error_ns > EDGE_SLACK_NS:
        return indicative(
            f"A host's clock is known only to {clock_error_ns / 1e6:.0f} ms, so how far the hosts "
            "worked together is not certain.",
            **evidence,
        )
    return valid(f"{said}, the least of all phases on files.", **evidence)


@check("phase-too-short", "Phase too short")
def phase_too_short(view: RunView) -> Said:
    """Whether each phase on files took long enough to stand for more than itself."""
    seconds = dict(_phase_seconds(view))
    if not seconds:
        return unchecked("nothing tells how long the phases took")
    operation = min(seconds, key=lambda one: seconds[one])
    least = seconds[operation]
    said = f"{operation.word} took {format_ns(least * 1e9)}"
    evidence: Numbers = {"phase": operation.word, "seconds": least}
    if least < PHASE_USELESS_S:
        return invalid(f"Phase {said}; {PHASE_USELESS_S:g} s is the least.", **evidence)
    if least < PHASE_SHORT_S:
        return indicative(f"Phase {said}; a result needs {PHASE_SHORT_S:.0f} s.", **evidence)
    return valid(f"Phase {said}, the shortest on files.", **evidence)


def _phase_seconds(view: RunView) -> Iterator[tuple[Operation, float]]:
    """How long each phase on files took."""
    for phase in phases_of(view).file_phases:
        if phase.whole is not None:
            yield phase.operation, phase.whole.seconds
    for rate in view.record.reported:
        if rate.operation in FILE_OPERATIONS and rate.seconds is not None:
            yield rate.operation, rate.seconds


@check("client-answers", "Answers from the client's own cache", needs_load=False)
def client_answers(view: RunView) -> Said:
    """Whether hosts stat and read files that they made themselves and still have in memory."""
    job, hosts = view.metadata_job, len(view.hosts)
    total = job.ranks * hosts
    made_by = (np.arange(total, dtype=np.int64) + job.rank_shift) % max(total, 1)
    own = int((made_by // max(job.ranks, 1) == np.arange(total) // max(job.ranks, 1)).sum())
    share = own / max(total, 1)
    evidence: Numbers = {
        "hosts": hosts,
        "ranks_per_host": job.ranks,
        "rank_shift": job.rank_shift,
        "own_share": share,
        "caches_dropped": _dropped(view),
    }
    if own == 0:
        return valid("No host stats, reads or removes what it made itself.", **evidence)
    who = f"{percent(share)} of the ranks stat and read files that their own host made"
    if hosts == 1:
        who = "One host stats and reads what it made itself"
    if _dropped(view):
        return indicative(
            f"{who}; its caches were dropped before, but nothing verifies that.", **evidence
        )
    return indicative(f"{who}: its own cache may answer.", **evidence)


def _dropped(view: RunView) -> bool:
    """Whether every host says that it dropped its caches before it stat'ed and read."""
    caches = [host.cache for host in view.hosts]
    return bool(caches) and all(cache is not None and bool(cache.methods) for cache in caches)


@check("ranks-preempted", "Ranks that waited for a processor")
def ranks_preempted(view: RunView) -> Said:
    """Whether latencies are waits for a processor: ranks share the cores of their host."""
    if is_counted(view):
        answers = [
            _preempted(view, phase, index)
            for phase in phases_of(view).file_phases
            for index in range(len(view.hosts))
            if phase.runs[index] is not None
        ]
        return worst(answers, most="share") if answers else unchecked("no phase on files was run")
    return worst((_crowded(view, index) for index in range(len(view.hosts))), most="ranks_per_core")


def _preempted(view: RunView, phase: PhaseLoad, index: int) -> Said:
    host, run = view.hosts[index], phase.runs[index]
    done = 0 if run is None else run.done
    preemptions = 0 if run is None else run.preemptions
    share = preemptions / max(done, 1)
    evidence: Numbers = {
        "host": host.host,
        "phase": phase.operation.word,
        "preemptions": preemptions,
        "share": share,
        "ranks": view.metadata_job.ranks,
        "cores": _cores(view, index),
    }
    said = f"In {phase.operation.word}{view.on(host)} ranks lost their processor"
    if share > PREEMPTED_SHARE:
        return indicative(
            f"{said} {format_count(preemptions)} times in {format_count(done)} operations: the "
            "tail of the latencies is waits for a processor.",
            **evidence,
        )
    return valid(f"{said} {format_count(preemptions)} times, the most of all phases.", **evidence)


def _crowded(view: RunView, index: int) -> Said:
    """Without a count of preemptions: more ranks than cores."""
    host, cores, ranks = view.hosts[index], _cores(view, index), view.metadata_job.ranks
    if cores is None:
        return unchecked(f"the cores of {host.host} are not known")
    evidence: Numbers = {
        "host": host.host,
        "ranks": ranks,
        "cores": cores,
        "ranks_per_core": ranks / cores,
    }
    if ranks > cores:
        return indicative(
            f"{ranks} ranks share {cores} cores{view.on(host)}: the rates may be the client's.",
            **evidence,
        )
    return valid(f"Each rank{view.on(host)} had a core.", **evidence)


def _cores(view: RunView, index: int) -> int | None:
    facts = view.facts_of(view.hosts[index])
    return None if facts is None else max(facts.cpu.threads, 1)


def metadata_percentiles(view: RunView) -> Said:
    """percentile-support of metadata load: the operation on files of which there were fewest."""
    if not is_counted(view):
        return valid("Rates only: mdtest does not measure latencies, and none is shown.")
    phases = phases_of(view).file_phases
    if not phases:
        return unchecked("no phase on files was run")
    fewest = min(phases, key=lambda phase: phase.done)
    lacking = [(name, at) for name, at in PERCENTILES if not is_supported(fewest.done, at)]
    evidence: Numbers = {"phase": fewest.operation.word, "operations": fewest.done}
    count = f"{format_count(fewest.done)} operations of {fewest.operation.word}"
    if not lacking:
        return valid(f"{count}, the fewest, support every percentile.", **evidence)
    needs = ", ".join(f"p{at:g} ({format_count(ios_needed(at))})" for _, at in lacking)
    verdict = indicative if lacking[0][0] == PERCENTILES[0][0] else valid
    return verdict(f"{count} are too few for {needs}: not printed.", **evidence)


def metadata_cpu(view: RunView) -> Said:
    """cpu-bound-client of metadata load: each phase on files by itself."""
    windows = [(phase.operation, phase.whole) for phase in phases_of(view).file_phases]
    answers = [
        _busy(view, index, operation.word, view.mean_of(index, "cpu", "all", "busy_share", window))
        for index in range(len(view.hosts))
        for operation, window in windows
    ]
    whole = [
        _busy(view, index, "the run", view.mean_of(index, "cpu", "all", "busy_share"))
        for index in range(len(view.hosts))
    ]
    known = [said for said in answers if said.evidence["cores_busy_share"] is not None]
    return worst(known or whole, most="cores_busy_share")


def _busy(view: RunView, index: int, word: str, share: float | None) -> Said:
    host = view.hosts[index]
    evidence: Numbers = {"host": host.host, "phase": word, "cores_busy_share": share}
    if share is None:
        return unchecked(f"{host.host} has no telemetry of its cores", **evidence)
    said = f"All cores{view.on(host)} were {percent(share)} busy in {word}"
    if share >= BUSY_CORES:
        return indicative(f"{said}: the client may be the limit.", **evidence)
    return valid(f"{said}, the most of all phases.", **evidence)
