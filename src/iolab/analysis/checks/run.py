"""Checks of how the run itself went: the engine, its operations and the end."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import numpy as np

from iolab.analysis.check import (
    CheckAnswer,
    EvidenceValues,
    check,
    indicative_answer,
    invalid_answer,
    lost_host_answer,
    not_applicable_answer,
    per_host,
    unchecked_answer,
    valid_answer,
    worst_answer,
)
from iolab.analysis.sums import engine_totals_by_direction
from iolab.analysis.view import RunView
from iolab.core.generator import first_mismatch_of_each_kind_text
from iolab.core.run import HostRun, RunStatus
from iolab.core.target_state import TargetState
from iolab.core.workload import Direction, ServiceTimeDirection
from iolab.text import percent_text
from iolab.units import format_bytes, format_count

RUNTIME_SHARE: Final = 0.95
"""Share of the asked seconds that an engine must have run unless it was told to stop."""


ERRORS_SHOWN: Final = 4
"""Kinds of errors that are named in a sentence, the most frequent first; a run has one or two."""

SHORT_BAD: Final = 0.01
"""Part of the I/Os that may move fewer bytes than they should: beyond it the bandwidth, and what an
I/O costs, are those of other blocks than the study's."""

DISAGREE_GOOD: Final = 0.001
"""Relative difference allowed between our sums and the engine's own totals: none is expected."""

DISAGREE_BAD: Final = 0.01
"""From one per cent on one of the two counts is simply wrong."""

VERSIONS_SHOWN: Final = 4
"""Versions named in the sentence; the facts of the session have them all."""

STATE_SHARE: Final = 0.10
"""Of the used region: writes of so much between two runs move a drive that was filled twice by less
than its own steady state varies (SNIA grants 10 % of slope)."""

ACHIEVED_MIN: Final = 0.99
"""Share of the asked rate below which the target set the pace and not the rate."""

FEWER_GOOD: Final = 0.98
"""Share of the claimed operations that the other must have counted."""

FEWER_BAD: Final = 0.90
"""Below this share more than one operation in ten was none."""


@check("run-unfinished", "Run not finished", needs_load=False)
def check_run_unfinished(view: RunView) -> CheckAnswer:
    """Whether the run came to its planned end."""
    record = view.record
    why = f" {record.failure}" if record.failure else ""
    if record.status is RunStatus.FAILED:
        return invalid_answer(f"The run failed.{why}", status=record.status.value)
    if record.status is RunStatus.INTERRUPTED:
        return indicative_answer(
            f"The run was interrupted: only what was measured is judged.{why}",
            status=record.status.value,
        )
    return valid_answer("The run came to its planned end.", status=record.status.value)


@check("engine-errors", "Errors of the engine", needs_load=False)
@per_host()
def check_engine_errors(view: RunView, host_index: int) -> Iterator[CheckAnswer]:
    """Whether the engine ran without error for as long as it was asked to."""
    host, where = view.hosts[host_index], view.on_host_if_several(view.hosts[host_index])
    totals = host.totals
    short = sum(way.short_ios + way.dropped_ios for way in engine_totals_by_direction(host) if way)
    window = view.load.measured_part.whole_run_windows[host_index]
    asked_s = view.record.warmup_s + view.record.runtime_s
    ran_s = 0.0 if window is None else window.seconds
    evidence: EvidenceValues = {
        "host": host.host,
        "exit_code": host.exit_code,
        "exit_signal": host.exit_signal,
        "engine_error": None if totals is None else totals.error,
        "short_or_dropped_ios": short,
        "ran_s": ran_s,
        "asked_s": asked_s,
        "stopped_early": host.stopped_early,
    }
    for fault in engine_process_faults(host):
        yield invalid_answer(f"The engine{where} {fault}.", **evidence)
    if window is not None and not view.measured_whole_operation_count(host_index):
        yield invalid_answer(
            f"The engine{where} completed no I/O in the measured window.", **evidence
        )
    # Of an engine that goes on after an error only its last word tells of errors.
    counts_them = view.record.run.point.job.reports_errors_at_end
    if totals is None and (counts_them or not _was_stopped_early(host)):
        yield unchecked_answer(f"the engine{where} left no totals", **evidence)
    if short:
        done = sum(way.ios for way in engine_totals_by_direction(host) if way)
        verdict = invalid_answer if short >= SHORT_BAD * max(done, 1) else indicative_answer
        yield verdict(f"{format_count(short)} I/Os{where} were cut short or dropped.", **evidence)
    if not host.stopped_early and ran_s < RUNTIME_SHARE * asked_s:
        yield indicative_answer(
            f"The engine{where} ran {ran_s:.1f} s of the {asked_s:.1f} s asked.", **evidence
        )
    yield valid_answer(f"The engine{where} ran {ran_s:.1f} s without error.", **evidence)


def engine_process_faults(host: HostRun) -> Iterator[str]:
    """What an engine can say or do wrong, the most telling first."""
    if host.error:
        yield f"failed: {host.error.rstrip('.')}"
    totals = host.totals
    if totals is not None and totals.generator and totals.generator.errors:
        errors = totals.generator.errors
        counts = ", ".join(
            f"{format_count(count)} x {name}" for name, count in errors[:ERRORS_SHOWN]
        )
        yield f"failed {format_count(totals.generator.failed_ios)} I/Os ({counts})"
    elif totals is not None and totals.error:
        yield f"reported error {totals.error}"
    if totals is not None and totals.generator and totals.generator.hung_ios:
        hung = format_count(totals.generator.hung_ios)
        yield f"gave up {hung} I/Os that hung: nothing ended for 10 s after submission had stopped"
    if _was_stopped_early(host):
        return
    if host.exit_signal is not None:
        yield f"was killed by signal {host.exit_signal}"
    elif host.exit_code is None:
        yield "has no exit code"
    elif host.exit_code != 0:
        yield f"exited with code {host.exit_code}"


def _was_stopped_early(host: HostRun) -> bool:
    """An engine that we stopped may exit as it likes."""
    return host.stopped_early


@check("totals-disagree", "Sums that disagree with the engine's")
def check_totals_disagree(view: RunView) -> CheckAnswer:
    """Whether the intervals and bins add up to what the engine says of the whole run."""
    counted, binned = np.zeros((2, len(view.hosts)), dtype=np.int64)
    table = view.record.intervals
    once = table.direction < ServiceTimeDirection.READ
    np.add.at(counted, table.host[once], table.ios[once])
    parts = view.load.measured_part.bin_groups
    first = parts.direction < ServiceTimeDirection.READ
    np.add.at(binned, parts.host[first], view.record.bins.io_count_by_group(parts)[first])
    return worst_answer(
        _engine_totals_answer(view, index, int(counted[index]), int(binned[index]))
        for index in range(len(view.hosts))
    )


def _engine_totals_answer(
    view: RunView, host_index: int, interval_ios: int, binned: int
) -> CheckAnswer:
    host = view.hosts[host_index]
    if host.error is not None:
        return lost_host_answer(host)
    if host.totals is None:
        return unchecked_answer(f"the engine{view.on_host_if_several(host)} left no totals")
    claimed = sum(way.ios for way in engine_totals_by_direction(host) if way is not None)
    difference = max(abs(interval_ios - claimed), abs(interval_ios - binned)) / max(claimed, 1)
    evidence: EvidenceValues = {
        "host": host.host,
        "interval_ios": interval_ios,
        "binned_ios": binned,
        "engine_ios": claimed,
    }
    if difference > DISAGREE_GOOD:
        verdict = invalid_answer if difference > DISAGREE_BAD else indicative_answer
        return verdict(
            f"Intervals{view.on_host_if_several(host)} hold {interval_ios} I/Os, their bins "
            f"{binned}, "
            "the engine "
            f"claims {claimed}.",
            **evidence,
        )
    return valid_answer(
        f"Intervals{view.on_host_if_several(host)} and bins add up to the engine's totals.",
        **evidence,
    )


@check("versions-differ", "Hosts with different versions of the engine", needs_load=False)
def check_versions_differ(view: RunView) -> CheckAnswer:
    """Whether every host that made load has the same version of the engine."""
    hosts: dict[str, list[str]] = {}
    for host in view.hosts:
        if version := _engine_version_of_host(view, host):
            hosts.setdefault(version, []).append(host.host)
    if len(hosts) < 2:
        return valid_answer("All hosts have one version of the engine.", versions=len(hosts))
    # The rarest first: it is the one to be replaced.
    rarest = sorted(hosts, key=lambda version: (len(hosts[version]), version))
    who = ", ".join(
        f"{version} on {_first_name_and_rest_count_text(hosts[version])}"
        for version in rarest[:VERSIONS_SHOWN]
    )
    return indicative_answer(
        f"Hosts have different versions of the engine: {who}.",
        versions=len(hosts),
        hosts_apart=len(hosts[rarest[0]]),
    )


def _first_name_and_rest_count_text(names: list[str]) -> str:
    return names[0] if len(names) == 1 else f"{names[0]} and {len(names) - 1} more"


def _engine_version_of_host(view: RunView, host: HostRun) -> str:
    """As the host's own program says it, else as its output does."""
    facts = view.facts_of_host(host)
    tool = facts.tool_facts(view.record.run.point.job.engine) if facts is not None else None
    return (tool.version if tool is not None else None) or host.engine_version


@check("unequal-state", "Unequal state", needs_load=False)
def check_unequal_state(view: RunView) -> CheckAnswer:
    """Whether the run began from the state from which the first of its sweep began."""
    states = view.record.states
    if not states:
        return not_applicable_answer(
            "The study asks for no start state, and none was kept.", states=0
        )
    return worst_answer((_start_state_answer(state) for state in states), max_key="moved_bytes")


def _start_state_answer(state: TargetState) -> CheckAnswer:
    moved = abs(state.written_bytes - state.compared_bytes)
    evidence: dict[str, int | float | str | bool | None] = {
        "host": state.host,
        "purged_by": state.purged_by.value,
        "filled": state.filled,
        "region_bytes": state.region_bytes,
        "written_bytes": state.written_bytes,
        "compared_bytes": state.compared_bytes,
        "moved_bytes": moved,
        "foreign_bytes": state.foreign_bytes,
        "steady": state.steady,
    }
    if state.unknown is not None:
        return indicative_answer(
            f"The state of {state.host} is unknown: {state.unknown}.", **evidence
        )
    if state.foreign_bytes:
        size = format_bytes(state.foreign_bytes)
        return indicative_answer(
            f"Somebody else wrote {size} to the target of {state.host}.", **evidence
        )
    if state.steady is False:
        return indicative_answer(
            f"{state.host} had not reached a steady state: NOT ACHIEVED.", **evidence
        )
    if state.steady:
        return valid_answer("The steady state of this workload was reached before.", **evidence)
    if moved > STATE_SHARE * state.region_bytes:
        return indicative_answer(
            f"{format_bytes(moved)} were written on {state.host} since the first run of this "
            f"sweep began: it was in another state.",
            **evidence,
        )
    return valid_answer("The state was that of the first run of this sweep.", **evidence)


check_operations_failed = check("operations-failed", "Operations that failed")
"""Whether every operation succeeded: one that fails is often faster than one that works."""

check_operations_counted = check("operations-counted", "Operations counted elsewhere")
"""Whether somebody else counted the operations that an engine claims."""

check_schedule_kept = check("generator-late", "Load generator behind its schedule")
"""Whether what was due at a set time was begun then."""

check_generator_bound = check("generator-bound", "Load generator at its own limit")
"""Whether the generator could have made much more load than it did."""

check_operations_in_flight = check("littles-law", "Little's law")
"""Whether rate times latency gives no more operations in flight than there can be."""

check_rate_kept = check("coordinated-omission", "Latency of a rate that was not kept")
"""Whether operations under a rate were begun when they were due, so that none waited unseen."""


def operation_count_text_and_evidence(
    counter_name: str, operation: str, claimed: int, counted: float
) -> tuple[str, EvidenceValues]:
    """Both counts as a sentence without its end, and as evidence."""
    text = (
        f"{counter_name} counted {format_count(counted)} operations of {operation}, the engine "
        f"claims {format_count(claimed)}"
    )
    return text, {
        "operation": operation,
        "claimed": claimed,
        "counted": counted,
        "counted_share": counted / claimed,
    }


def operation_count_answer(
    claimed: int, counted: float, text: str, evidence: EvidenceValues
) -> CheckAnswer:
    """Whether what was counted bears out what was claimed."""
    if counted < FEWER_GOOD * claimed:
        verdict = invalid_answer if counted < FEWER_BAD * claimed else indicative_answer
        part = percent_text(1 - counted / claimed)
        return verdict(f"{text}: {part} of them were not done.", **evidence)
    return valid_answer(f"{text}.", **evidence)


@check("verify-mismatch", "Blocks that do not hold what was written", needs_load=False)
@per_host(max_key="wrong")
def check_verify_mismatch(view: RunView, host_index: int) -> Iterator[CheckAnswer]:
    """Whether every block that was read and verified held what was last written there."""
    host = view.hosts[host_index]
    generator = host.totals.generator if host.totals else None
    verify = generator.verify if generator else None
    if not view.job.verify and verify is None:
        yield not_applicable_answer("What blocks hold was not asked for.", verified=False)
    elif verify is None or not verify.checked:
        if Direction.READ in view.job.data_directions:
            yield unchecked_answer(
                f"no block was verified{view.on_host_if_several(host)}", host=host.host
            )
        yield not_applicable_answer("Blocks were stamped; none was read.", verified=True)
    else:
        kinds = ("torn", "stale", "misplaced", "corrupt")
        evidence: EvidenceValues = {
            "host": host.host,
            "verified": True,
            "checked": verify.checked,
            "wrong": verify.mismatched_blocks,
            **{kind: getattr(verify, kind) for kind in kinds},
        }
        if not verify.mismatched_blocks:
            yield valid_answer(
                f"All {format_count(verify.checked)} blocks "
                f"verified{view.on_host_if_several(host)} held what was "
                "written.",
                **evidence,
            )
            return
        counts = (f"{format_count(getattr(verify, kind))} {kind}" for kind in kinds)
        first = first_mismatch_of_each_kind_text(verify.first_mismatch_texts)
        yield invalid_answer(
            f"{format_count(verify.mismatched_blocks)} of {format_count(verify.checked)} "
            f"blocks{view.on_host_if_several(host)} "
            f"did not hold what was written ({', '.join(counts)}). {first}".strip(),
            **evidence,
        )
