"""Checks of metadata load: whether every operation that was requested was done, and counted."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Final

import numpy as np

from iolab.analysis.busy import FULL_PROCESSORS
from iolab.analysis.check import (
    CheckAnswer,
    EvidenceValues,
    check,
    indicative_answer,
    invalid_answer,
    not_applicable_answer,
    per_host,
    unchecked_answer,
    valid_answer,
    worst_answer,
)
from iolab.analysis.checks.idle import others_io_before_run_answer
from iolab.analysis.checks.run import (
    check_operations_counted,
    check_operations_failed,
    operation_count_answer,
    operation_count_text_and_evidence,
)
from iolab.analysis.metrics import ios_needed_for_percentile, is_percentile_supported
from iolab.analysis.window import EDGE_SLACK_NS
from iolab.core.bins import PERCENTILES
from iolab.core.run import RunStatus
from iolab.core.samples import Ints
from iolab.hosts.counter_names import TARGET
from iolab.loads.metadata.metrics import MetadataPhaseSums, MetadataView
from iolab.loads.metadata.table import PHASE_SHORT_S
from iolab.loads.metadata.workload import (
    FILE_OPERATIONS,
    MDTEST_ENGINE,
    MetadataOperation,
    reported_rates_of_run,
)
from iolab.record import Record
from iolab.text import percent_text
from iolab.units import format_count, format_ns

REPORTED_GOOD: Final = 0.01
"""Relative difference between a printed rate times its seconds and the operations asked for: what
printed digits lose."""

REPORTED_BAD: Final = 0.10
"""From a tenth on the engine did not do what it was asked to."""

NAMED_ERRORS: Final = 4
"""Kinds of errors that are named; the manifest has them all."""

PHASE_USELESS_S: Final = 0.1
"""Below this the milliseconds by which ranks start and end apart are a tenth of the phase."""

TOGETHER_SHARE: Final = 0.5
"""Share of a phase in which all ranks must work: below it the stragglers are most of the phase, and
its rate over the window and that over the whole tell of different things."""

PREEMPTED_SHARE: Final = 0.01
"""Preemptions for each operation from which latencies from the 99th percentile on are waits for a
processor."""

SAMPLES_SURE: Final = 2
"""Telemetry intervals that files must be there for so that a sample falls into that time."""

IMMEDIATE_COUNT_FILE_SYSTEMS: Final = ("ext2", "ext3", "ext4", "xfs", "tmpfs")
"""File systems that count an inode when it is made and when it goes: others are late by seconds,
count blocks of inodes, or tell nothing."""


def does_engine_report_host_counts(view: MetadataView) -> bool:
    """Whether the engine tells what each host did; mdtest prints rates of the fleet and no more."""
    return view.metadata_job.engine != MDTEST_ENGINE


@check_operations_failed
def check_metadata_operations_failed(view: MetadataView) -> CheckAnswer:
    """Whether every operation succeeded: one that fails is often faster than one that works."""
    if not does_engine_report_host_counts(view):
        return unchecked_answer("mdtest does not count the operations that failed")
    errors: Counter[str] = Counter()
    worst_phase, most = "", 0
    for phase in view.metadata_sums.phases:
        for run in phase.operation_runs:
            errors.update(dict(run.errors) if run is not None else {})
        if phase.failed_count > most:
            worst_phase, most = phase.operation.display_name, phase.failed_count
    total = errors.total()
    if total == 0:
        return valid_answer("No operation failed.", failed=0)
    named = ", ".join(f"{name} {n:,} times" for name, n in errors.most_common(NAMED_ERRORS))
    return invalid_answer(
        f"{format_count(total)} operations failed ({named}), most in {worst_phase}.",
        failed=total,
        most_in=worst_phase,
        **{f"failed_{name}": n for name, n in errors.most_common(NAMED_ERRORS)},
    )


@check("phase-incomplete", "Phase not finished", needs_load=False)
def check_phase_incomplete(view: MetadataView) -> CheckAnswer:
    """Whether every phase was run to its end on every host."""
    if not does_engine_report_host_counts(view):
        reported = {rate.operation for rate in reported_rates_of_run(view.record)}
        missing = [
            operation.display_name for operation in FILE_OPERATIONS if operation not in reported
        ]
        if missing:
            return invalid_answer(
                f"The engine printed no rate of {', '.join(missing)}.", phases_missing=len(missing)
            )
        return valid_answer(
            "The engine printed a rate of every operation on files.", phases_missing=0
        )
    return worst_answer(
        (_phase_finished_answer(view, operation) for operation in MetadataOperation),
        max_key="skipped",
    )


def _phase_finished_answer(view: MetadataView, operation: MetadataOperation) -> CheckAnswer:
    phase = next((p for p in view.metadata_sums.phases if p.operation is operation), None)
    if phase is None:
        return invalid_answer(
            f"No host came to {operation.display_name}.", phase=operation.display_name
        )
    absent = [
        host.host for host, run in zip(view.hosts, phase.operation_runs, strict=True) if run is None
    ]
    if absent:
        return invalid_answer(
            f"{len(absent)} of {len(view.hosts)} hosts did not come to {operation.display_name}.",
            phase=operation.display_name,
            hosts_missing=len(absent),
        )
    asked = sum(run.requested for run in phase.operation_runs if run is not None)
    skipped = asked - phase.completed_count - phase.failed_count
    evidence: EvidenceValues = {"phase": operation.display_name, "asked": asked, "skipped": skipped}
    if skipped:
        return invalid_answer(
            f"{format_count(abs(skipped))} of the {format_count(asked)} operations of "
            f"{operation.display_name} were not done.",
            **evidence,
        )
    return valid_answer("Every phase came to its end on every host.", **evidence)


@check("reported-rates", "Rates as the engine prints them")
def check_reported_rates(view: MetadataView) -> CheckAnswer:
    """Whether rates that the engine itself computed fit what it was asked to do."""
    if does_engine_report_host_counts(view):
        return not_applicable_answer(
            "Operations were counted as they ended; no printed rate is used."
        )
    job = view.metadata_job
    asked = job.ranks * len(view.hosts) * job.files_per_rank
    timed = [
        (rate, rate.seconds)
        for rate in reported_rates_of_run(view.record)
        if rate.operation in FILE_OPERATIONS and rate.seconds is not None
    ]
    if not timed:
        return unchecked_answer(
            "the engine did not tell how many files or seconds its rates stand for"
        )
    return worst_answer(
        (
            _reported_rate_answer(rate.operation, rate.ops_per_s * seconds, asked, str(job.engine))
            for rate, seconds in timed
        ),
        max_key="difference_share",
    )


def _reported_rate_answer(
    operation: MetadataOperation, implied_count: float, requested_count: int, engine_name: str
) -> CheckAnswer:
    deviation = abs(implied_count - requested_count) / max(requested_count, 1)
    evidence: EvidenceValues = {
        "phase": operation.display_name,
        "implied_ops": implied_count,
        "asked_ops": requested_count,
        "difference_share": deviation,
    }
    if deviation <= REPORTED_GOOD:
        return valid_answer(
            f"The rates that {engine_name} prints fit the requested operations.", **evidence
        )
    verdict = invalid_answer if deviation > REPORTED_BAD else indicative_answer
    return verdict(
        f"The rate of {operation.display_name} that {engine_name} prints stands for "
        f"{format_count(implied_count)} "
        f"operations, asked were {format_count(requested_count)} "
        f"({percent_text(deviation)} apart).",
        **evidence,
    )


def check_metadata_totals_disagree(view: MetadataView) -> CheckAnswer:
    """totals-disagree of metadata load: intervals and bins against what each host says it did."""
    if not does_engine_report_host_counts(view):
        return not_applicable_answer(
            "mdtest gives no counts to add up; reported-rates judges what it prints."
        )
    return worst_answer(
        (_phase_totals_answer(view, phase) for phase in view.metadata_sums.phases),
        max_key="difference",
    )


def _phase_totals_answer(view: MetadataView, phase: MetadataPhaseSums) -> CheckAnswer:
    done = np.array(
        [0 if run is None else run.completed for run in phase.operation_runs], dtype=np.int64
    )
    binned = phase.bins.sum(axis=1)
    deviation = np.maximum(np.abs(phase.completed_by_host - done), np.abs(binned - done))
    index = int(np.argmax(deviation))
    evidence: EvidenceValues = {
        "phase": phase.operation.display_name,
        "host": view.hosts[index].host,
        "interval_ops": int(phase.completed_by_host[index]),
        "binned_ops": int(binned[index]),
        "host_ops": int(done[index]),
        "difference": int(deviation[index]),
    }
    if deviation[index]:
        return invalid_answer(
            f"Intervals of {phase.operation.display_name}"
            f"{view.on_host_if_several(view.hosts[index])} hold "
            f"{phase.completed_by_host[index]} operations, their bins {binned[index]}, the host "
            "claims "
            f"{done[index]}.",
            **evidence,
        )
    return valid_answer(
        "Intervals and bins of every phase add up to what the hosts did.", **evidence
    )


@per_host()
def check_metadata_engine_errors(view: MetadataView, host_index: int) -> Iterator[CheckAnswer]:
    """engine-errors of metadata load: what the engine said and how it ended on each host.

    An agent's ranks are no process of their own: they have no exit code.
    """
    host = view.hosts[host_index]
    where = view.on_host_if_several(host)
    evidence: EvidenceValues = {
        "host": host.host,
        "exit_code": host.exit_code,
        "exit_signal": host.exit_signal,
        "stopped_early": host.stopped_early,
    }
    if host.error:
        yield invalid_answer(f"The engine{where} failed: {host.error.rstrip('.')}.", **evidence)
    stopped = host.stopped_early or view.record.status is RunStatus.INTERRUPTED
    if not stopped and host.exit_signal is not None:
        yield invalid_answer(
            f"The engine{where} was killed by signal {host.exit_signal}.", **evidence
        )
    if not stopped and host.exit_code:
        yield invalid_answer(f"The engine{where} exited with code {host.exit_code}.", **evidence)
    yield valid_answer(f"The engine{where} ran without error.", **evidence)


@check("rank-skew", "Ranks that did not work at the same time")
def check_rank_skew(view: MetadataView) -> CheckAnswer:
    """Whether all ranks of all hosts worked on the files together, so that rates may be added."""
    if not does_engine_report_host_counts(view):
        return unchecked_answer(
            "mdtest does not tell when each rank worked; its rates are of the whole"
        )
    phases = view.metadata_sums.file_phases
    if not phases:
        return invalid_answer("No phase on files was run: there is no fleet number.")
    return worst_answer(
        (_rank_overlap_answer(view, phase) for phase in phases), min_key="together_share"
    )


def _rank_overlap_answer(view: MetadataView, phase: MetadataPhaseSums) -> CheckAnswer:
    clock_error_ns = max((host.clock_error_ns for host in view.hosts), default=0)
    whole_s = 0.0 if phase.span is None else phase.span.seconds
    common_s = 0.0 if phase.common_window is None else phase.common_window.seconds
    share = common_s / whole_s if whole_s > 0 else 0.0
    word = phase.operation.display_name
    evidence: EvidenceValues = {
        "phase": word,
        "common_s": common_s,
        "whole_s": whole_s,
        "together_share": share,
        "clock_error_s": clock_error_ns / 1e9,
    }
    if phase.common_window is None:
        return invalid_answer(
            f"In {word} the ranks never worked all at the same time: there is no fleet rate.",
            **evidence,
        )
    text = f"In {word} all ranks worked together for {percent_text(share)} of the phase"
    if share < TOGETHER_SHARE:
        return indicative_answer(f"{text}.", **evidence)
    if len(view.hosts) > 1 and clock_error_ns > EDGE_SLACK_NS:
        return indicative_answer(
            f"A host's clock is known only to {clock_error_ns / 1e6:.0f} ms, so how far the hosts "
            "worked together is not certain.",
            **evidence,
        )
    return valid_answer(f"{text}, the least of all phases on files.", **evidence)


@check("phase-too-short", "Phase too short")
def check_phase_too_short(view: MetadataView) -> CheckAnswer:
    """Whether each phase on files took long enough to stand for more than itself."""
    seconds = dict(_file_phase_seconds(view))
    if not seconds:
        return unchecked_answer("nothing tells how long the phases took")
    operation = min(seconds, key=lambda operation: seconds[operation])
    least = seconds[operation]
    text = f"{operation.display_name} took {format_ns(least * 1e9)}"
    evidence: EvidenceValues = {"phase": operation.display_name, "seconds": least}
    if least < PHASE_USELESS_S:
        return invalid_answer(f"Phase {text}; {PHASE_USELESS_S:g} s is the least.", **evidence)
    if least < PHASE_SHORT_S:
        return indicative_answer(f"Phase {text}; valid needs {PHASE_SHORT_S:.0f} s.", **evidence)
    return valid_answer(f"Phase {text}, the shortest on files.", **evidence)


def _file_phase_seconds(view: MetadataView) -> Iterator[tuple[MetadataOperation, float]]:
    """How long each phase on files took."""
    for phase in view.metadata_sums.file_phases:
        if phase.span is not None:
            yield phase.operation, phase.span.seconds
    for rate in reported_rates_of_run(view.record):
        if rate.operation in FILE_OPERATIONS and rate.seconds is not None:
            yield rate.operation, rate.seconds


@check("client-answers", "Answers from the client's own cache", needs_load=False)
def check_client_answers(view: MetadataView) -> CheckAnswer:
    """Whether hosts stat and read files that they made themselves and still have in memory."""
    job, hosts = view.metadata_job, len(view.hosts)
    total = job.ranks * hosts
    made_by = (np.arange(total, dtype=np.int64) + job.rank_shift) % max(total, 1)
    own = int((made_by // max(job.ranks, 1) == np.arange(total) // max(job.ranks, 1)).sum())
    share = own / max(total, 1)
    evidence: EvidenceValues = {
        "hosts": hosts,
        "ranks_per_host": job.ranks,
        "rank_shift": job.rank_shift,
        "own_share": share,
        "caches_dropped": _all_caches_dropped(view),
    }
    if own == 0:
        return valid_answer("No host stats, reads or removes what it made itself.", **evidence)
    subject = f"{percent_text(share)} of the ranks stat and read files that their own host made"
    if hosts == 1:
        subject = "One host stats and reads what it made itself"
    if _all_caches_dropped(view):
        return indicative_answer(
            f"{subject}; its caches were dropped before, but nothing verifies that.", **evidence
        )
    return indicative_answer(f"{subject}: its own cache may answer.", **evidence)


def _all_caches_dropped(view: MetadataView) -> bool:
    """Whether every host says that it dropped its caches before it stat'ed and read."""
    caches = [host.cache_drop for host in view.hosts]
    return bool(caches) and all(cache is not None and bool(cache.methods) for cache in caches)


@check("ranks-preempted", "Ranks that waited for a processor")
def check_ranks_preempted(view: MetadataView) -> CheckAnswer:
    """Whether latencies are waits for a processor: ranks share the cores of their host."""
    if does_engine_report_host_counts(view):
        answers = [
            _preemptions_answer(view, phase, index)
            for phase in view.metadata_sums.file_phases
            for index in range(len(view.hosts))
            if phase.operation_runs[index] is not None
        ]
        return (
            worst_answer(answers, max_key="share")
            if answers
            else unchecked_answer("no phase on files was run")
        )
    return worst_answer(
        (_ranks_per_core_answer(view, index) for index in range(len(view.hosts))),
        max_key="ranks_per_core",
    )


def _preemptions_answer(
    view: MetadataView, phase: MetadataPhaseSums, host_index: int
) -> CheckAnswer:
    host, run = view.hosts[host_index], phase.operation_runs[host_index]
    done = 0 if run is None else run.completed
    preemptions = 0 if run is None else run.preemptions
    share = preemptions / max(done, 1)
    evidence: EvidenceValues = {
        "host": host.host,
        "phase": phase.operation.display_name,
        "preemptions": preemptions,
        "share": share,
        "ranks": view.metadata_job.ranks,
        "cores": _core_count(view, host_index),
    }
    text = (
        f"In {phase.operation.display_name}{view.on_host_if_several(host)} ranks lost their "
        "processor"
    )
    if share > PREEMPTED_SHARE:
        return indicative_answer(
            f"{text} {format_count(preemptions)} times in {format_count(done)} operations: the "
            "tail of the latencies is waits for a processor.",
            **evidence,
        )
    return valid_answer(
        f"{text} {format_count(preemptions)} times, the most of all phases.", **evidence
    )


def _ranks_per_core_answer(view: MetadataView, host_index: int) -> CheckAnswer:
    """Without a count of preemptions: more ranks than cores."""
    host, cores, ranks = (
        view.hosts[host_index],
        _core_count(view, host_index),
        view.metadata_job.ranks,
    )
    if cores is None:
        return unchecked_answer(f"the cores of {host.host} are not known")
    evidence: EvidenceValues = {
        "host": host.host,
        "ranks": ranks,
        "cores": cores,
        "ranks_per_core": ranks / cores,
    }
    if ranks > cores:
        return indicative_answer(
            f"{ranks} ranks share {cores} cores{view.on_host_if_several(host)}: the rates may be "
            "the client's.",
            **evidence,
        )
    return valid_answer(f"Each rank{view.on_host_if_several(host)} had a core.", **evidence)


def _core_count(view: MetadataView, host_index: int) -> int | None:
    facts = view.facts_of_host(view.hosts[host_index])
    return None if facts is None else max(facts.cpu.threads, 1)


def check_metadata_percentile_support(view: MetadataView) -> CheckAnswer:
    """percentile-support of metadata load: the operation on files of which there were fewest."""
    if not does_engine_report_host_counts(view):
        return not_applicable_answer(
            "Rates only: mdtest does not measure latencies, and none is shown."
        )
    phases = view.metadata_sums.file_phases
    if not phases:
        return unchecked_answer("no phase on files was run")
    fewest = min(phases, key=lambda phase: phase.completed_count)
    lacking = [
        (name, at)
        for name, at in PERCENTILES
        if not is_percentile_supported(fewest.completed_count, at)
    ]
    evidence: EvidenceValues = {
        "phase": fewest.operation.display_name,
        "operations": fewest.completed_count,
    }
    count = f"{format_count(fewest.completed_count)} operations of {fewest.operation.display_name}"
    if not lacking:
        return valid_answer(f"{count}, the fewest, support every percentile.", **evidence)
    needs = ", ".join(
        f"p{at:g} ({format_count(ios_needed_for_percentile(at))})" for _, at in lacking
    )
    verdict = indicative_answer if lacking[0][0] == PERCENTILES[0][0] else valid_answer
    return verdict(f"{count} are too few for {needs}: not printed.", **evidence)


def check_metadata_cpu_bound_client(view: MetadataView) -> CheckAnswer:
    """cpu-bound-client of metadata load: each phase on files by itself."""
    windows = [(phase.operation, phase.span) for phase in view.metadata_sums.file_phases]
    answers = [
        _processor_use_answer(
            view,
            index,
            operation.display_name,
            view.mean_telemetry(index, "cpu", "all", "busy_share", window),
        )
        for index in range(len(view.hosts))
        for operation, window in windows
    ]
    run_answers = [
        _processor_use_answer(
            view, index, "the run", view.mean_telemetry(index, "cpu", "all", "busy_share")
        )
        for index in range(len(view.hosts))
    ]
    measured = [answer for answer in answers if answer.evidence["cores_busy_share"] is not None]
    return worst_answer(measured or run_answers, max_key="cores_busy_share")


def _processor_use_answer(
    view: MetadataView, host_index: int, phase_name: str, share: float | None
) -> CheckAnswer:
    host = view.hosts[host_index]
    evidence: EvidenceValues = {"host": host.host, "phase": phase_name, "cores_busy_share": share}
    if share is None:
        return unchecked_answer(f"{host.host} has no telemetry of its cores", **evidence)
    text = (
        f"All cores{view.on_host_if_several(host)} were {percent_text(share)} busy in {phase_name}"
    )
    if share >= FULL_PROCESSORS:
        return indicative_answer(f"{text}: the client may be the limit.", **evidence)
    return valid_answer(f"{text}, the most of all phases.", **evidence)


@check_operations_counted
def check_metadata_operations_counted(view: MetadataView) -> CheckAnswer:
    """operations-counted of metadata load: files that the target's file system counted.

    Others may make and remove files there as well, so it tells no more than too few.
    """
    systems: dict[tuple[str, str], list[int]] = {}
    for index, host in enumerate(view.hosts):
        facts, target = view.facts_of_host(host), view.target_of_host(host)
        if facts is None or target is None:
            return unchecked_answer(f"the file system of {host.host} is not known")
        if target.fs_type not in IMMEDIATE_COUNT_FILE_SYSTEMS:
            return not_applicable_answer(f"{target.fs_type} does not count files at once.")
        place = target.device or target.mount_point
        systems.setdefault((facts.kernel.boot_id_or_host(host.host), place), []).append(index)
    return worst_answer(
        (answer for members in systems.values() for answer in _file_count_answers(view, members)),
        min_key="counted_share",
    )


class _ClaimedFiles(Record):
    """Files that some hosts claim, for how long all of them were there, None if not known."""

    created: int
    removed: int
    lifetime_s: float | None


def _file_count_answers(view: MetadataView, host_indexes: list[int]) -> Iterator[CheckAnswer]:
    target = view.target_of_host(view.hosts[host_indexes[0]])
    if target is None or (target.in_memory and len(host_indexes) > 1):
        yield not_applicable_answer("Whether the hosts share a file system in memory is not known.")
        return
    used = max(
        (_used_inode_samples(view, index) for index in host_indexes), key=lambda each: each.size
    )
    if used.size < SAMPLES_SURE:
        yield not_applicable_answer(
            f"The target's file system was requested its inodes {used.size} times, too few to tell."
        )
        return
    files = _claimed_files_of_hosts(view, host_indexes)
    begun, most, ended = int(used[0]), int(used.max()), int(used[-1])
    for word, claimed, counted in (
        (MetadataOperation.FILE_CREATE.display_name, files.created, most - begun),
        (MetadataOperation.FILE_REMOVE.display_name, files.removed, most - ended),
    ):
        if not claimed:
            continue
        text, evidence = operation_count_text_and_evidence(
            f"The file system{_of_host_suffix_if_not_all_hosts(view, host_indexes)}",
            word,
            claimed,
            counted,
        )
        answer = operation_count_answer(
            claimed, counted, text, {"fs_type": target.fs_type, **evidence}
        )
        if answer.level is not None and answer.level.rank and _can_samples_miss_files(view, files):
            answer = not_applicable_answer(
                "The files were there for too short a time to be sampled.", kept_s=files.lifetime_s
            )
        elif target.mount_point == "/" and answer.level is not None and answer.level.rank:
            # A system's own file system is everybody's: what others removed then is lacking.
            message = f"{text}: on / others may have removed or made files meanwhile."
            answer = indicative_answer(message, **answer.evidence)
        yield answer
    if not files.created:
        yield not_applicable_answer("No file was made.")


def _of_host_suffix_if_not_all_hosts(view: MetadataView, host_indexes: list[int]) -> str:
    return "" if len(host_indexes) == len(view.hosts) else f" of {view.hosts[host_indexes[0]].host}"


def _can_samples_miss_files(view: MetadataView, claimed_files: _ClaimedFiles) -> bool:
    """Whether no sample need have seen all files."""
    interval_s = view.record.telemetry_interval_ms / 1000
    return claimed_files.lifetime_s is None or claimed_files.lifetime_s < SAMPLES_SURE * interval_s


def _used_inode_samples(view: MetadataView, host_index: int) -> Ints:
    """The inodes in use at each sample of a host, from before the first phase to after the last."""
    table = view.record.counters
    rows = np.flatnonzero(table.host == host_index)
    inode_rows = rows[
        (np.asarray(table.scope[rows]) == TARGET)
        & (np.asarray(table.metric[rows]) == "used_inodes")
    ]
    return np.asarray(table.value[inode_rows], dtype=np.int64)


def _claimed_files_of_hosts(view: MetadataView, host_indexes: list[int]) -> _ClaimedFiles:
    if not does_engine_report_host_counts(view):
        # mdtest tells of the fleet alone, whose clients all work on one file system.
        job = view.metadata_job
        asked = job.ranks * len(view.hosts) * job.files_per_rank
        between = [
            rate.seconds
            for rate in reported_rates_of_run(view.record)
            if rate.operation in (MetadataOperation.FILE_STAT, MetadataOperation.FILE_READ)
        ]
        timed = [seconds for seconds in between if seconds is not None]
        return _ClaimedFiles(asked, asked, sum(timed) if timed else None)
    phases = {phase.operation: phase for phase in view.metadata_sums.phases}

    def completed_operation_count(operation: MetadataOperation) -> int:
        runs = phases[operation].operation_runs if operation in phases else ()
        return sum(run.completed for index, run in enumerate(runs) if run and index in host_indexes)

    created, gone = (
        phases.get(MetadataOperation.FILE_CREATE),
        phases.get(MetadataOperation.FILE_REMOVE),
    )
    kept_s = None
    if created and gone and created.span and gone.span:
        kept_s = (gone.span.start_ns - created.span.end_ns) / 1e9
    return _ClaimedFiles(
        completed_operation_count(MetadataOperation.FILE_CREATE),
        completed_operation_count(MetadataOperation.FILE_REMOVE),
        kept_s,
    )


@per_host(max_key="share_of_run")
def check_metadata_device_busy(view: MetadataView, host_index: int) -> CheckAnswer:
    """device-busy of metadata load: against what the devices moved in the run."""
    window = view.measured_window(host_index)
    return others_io_before_run_answer(view, host_index, None if window is None else window.seconds)
