"""Checks of training-read load: parts of steps, epochs, the emulator, and memory."""

from __future__ import annotations

import math
from typing import Final

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
from iolab.loads.training.datasets import MEMORY_FACTOR
from iolab.loads.training.metrics import TrainingView, epoch_utilisation
from iolab.loads.training.workload import TrainingOperation
from iolab.text import percent_text
from iolab.units import format_bytes, format_ns

PARTS_MAX: Final = 0.01
"""By which the parts of steps may differ from the steps, and steps from the time of the window."""

STEP_DIFFERENCE_MAX: Final = 1
"""Steps that accelerators may be apart which wait for each other, at the end of a run."""

EPOCH_GOOD: Final = 0.05
EPOCH_BAD: Final = 0.25
"""By which utilisation may rise after the first epoch: what was read once may be in a cache."""

LATE_GOOD: Final = 0.01
LATE_BAD: Final = 0.05
"""Of the time of steps, by which the emulator computes too long."""

_NO_DETAILS: Final = "did not tell what it did in its epochs"


@check("step-parts", "Steps that are more or less than their parts")
@per_host(max_key="difference")
def check_step_parts(view: TrainingView, host_index: int) -> CheckAnswer:
    """Whether all time of all accelerators is accounted for, once."""
    host, where = view.hosts[host_index], view.on_host_if_several(view.hosts[host_index])
    run, shares = view.details_of_host(host_index), view.step_shares(host_index)
    if run is None or shares is None:
        return unchecked_answer(f"{host.host} {_NO_DETAILS}")
    seconds = float(view.load.seconds[host_index])
    counted = (TrainingOperation.STEP, TrainingOperation.FIRST_STEP)
    spent_s = sum(
        view.operation_count_and_seconds(host_index, operation)[1] for operation in counted
    )
    steps = sum(view.operation_count_and_seconds(host_index, operation)[0] for operation in counted)
    # One step of each may be cut by the begin of the window, and one by its end.
    cut_s = 2 * run.accelerators * spent_s / max(steps, 1)
    missing_s = max(abs(run.accelerators * seconds - spent_s) - cut_s, 0.0)
    difference = abs(shares.total - 1)
    missing = missing_s / (run.accelerators * seconds)
    step_difference = run.steps_most - run.steps_least
    evidence: EvidenceValues = {
        "host": host.host,
        "difference": difference,
        "missing_share": missing,
        "computing_share": shares.computing,
        "storage_wait_share": shares.storage_wait,
        "barrier_wait_share": shares.barrier_wait,
        "lateness_share": shares.lateness,
        "step_difference": step_difference,
    }
    if difference > PARTS_MAX:
        return invalid_answer(
            f"Computing, waits and lateness{where} are {percent_text(shares.total)} of the steps: "
            "some time was counted twice, or not at all.",
            **evidence,
        )
    if missing > PARTS_MAX:
        return invalid_answer(
            f"The steps{where} differ from the accelerators' time by {percent_text(missing)}.",
            **evidence,
        )
    if view.training_job.barrier and step_difference > STEP_DIFFERENCE_MAX:
        return invalid_answer(
            f"An accelerator{where} made {step_difference} steps more than another: they did not "
            "wait for each other.",
            **evidence,
        )
    return valid_answer(
        f"Computing, waits and lateness{where} are {percent_text(shares.total)} of the steps.",
        **evidence,
    )


@check("first-epoch", "Later epochs that are faster")
@per_host(max_key="gain", valid_threshold=EPOCH_GOOD, invalid_threshold=EPOCH_BAD)
def check_first_epoch(view: TrainingView, host_index: int) -> HostAnswer:
    """Whether samples that were read before come faster: a cache holds them then."""
    host, where = view.hosts[host_index], view.on_host_if_several(view.hosts[host_index])
    run = view.details_of_host(host_index)
    if run is None:
        return unchecked_answer(f"{host.host} {_NO_DETAILS}")
    first = epoch_utilisation(view.training_job, run.first_epoch)
    later = epoch_utilisation(view.training_job, run.later_epochs)
    if first is None or later is None:
        return not_applicable_answer(
            "Fewer than two epochs: no sample was read twice.", host=host.host, epochs=run.epochs
        )
    return answer_to_grade(
        f"Accelerators{where} were {percent_text(first)} utilised in the first epoch and "
        f"{percent_text(later)} in later ones",
        host=host.host,
        first_epoch_utilisation=first,
        later_utilisation=later,
        gain=max(later - first, 0.0),
        epochs=run.epochs,
    )


@check_schedule_kept
@per_host(max_key="late_share")
def check_emulator_late(view: TrainingView, host_index: int) -> CheckAnswer:
    """Whether the emulator's timers kept to the computation that was asked for."""
    host, where = view.hosts[host_index], view.on_host_if_several(view.hosts[host_index])
    shares = view.step_shares(host_index)
    late = host.totals.generator.lateness if host.totals and host.totals.generator else None
    if shares is None or late is None:
        return unchecked_answer(f"the engine{where} told no lateness", host=host.host)
    evidence: EvidenceValues = {
        "host": host.host,
        "late_share": shares.lateness,
        "late_ns_p50": late.p50_ns,
        "late_ns_p99": late.p99_ns,
        "late_ns_max": late.max_ns,
    }
    text = (
        f"99 % of the computations{where} ended at most {format_ns(late.p99_ns)} late, "
        f"{percent_text(shares.lateness)} of the time of steps"
    )
    if shares.lateness > LATE_GOOD:
        verdict = invalid_answer if shares.lateness > LATE_BAD else indicative_answer
        return verdict(f"{text}: so much is missing in the utilisation.", **evidence)
    return valid_answer(f"{text}.", **evidence)


@check("files-fit-in-memory", "Files that memory may hold")
@per_host(max_key="hit_share")
def check_files_fit_in_memory(view: TrainingView, host_index: int) -> CheckAnswer:
    """Whether files that are read through memory are several times as large."""
    host, where = view.hosts[host_index], view.on_host_if_several(view.hosts[host_index])
    job, facts = view.training_job, view.facts_of_host(view.hosts[host_index])
    if job.direct:
        return not_applicable_answer("O_DIRECT reads pass the page cache by.", direct=True)
    if facts is None:
        return unchecked_answer(f"the memory of {host.host} is not known", host=host.host)
    size, memory = job.files * job.file_bytes, facts.memory.usable_bytes
    hits = lru_hit_share(memory / size)
    evidence: EvidenceValues = {
        "host": host.host,
        "files_bytes": size,
        "memory_bytes": memory,
        "hit_share": hits,
    }
    text = f"The files{where} ({format_bytes(size)}) are {size / memory:.2g} times the memory"
    if size >= MEMORY_FACTOR * memory:
        return valid_answer(f"{text}: at most {percent_text(hits)} of reads hit it.", **evidence)
    verdict = invalid_answer if size <= memory else indicative_answer
    return verdict(
        f"{text}: {percent_text(hits)} of the reads after the first epoch may hit it.", **evidence
    )


def lru_hit_share(capacity_share: float) -> float:
    """Reads of reshuffled epochs that hit an LRU memory which holds so large a part of the set."""
    if capacity_share >= 1:
        return 1.0
    return capacity_share + (1 - capacity_share) * math.log1p(-capacity_share)
