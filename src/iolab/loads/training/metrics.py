"""What emulated training comes to: utilisation and its parts, samples, and how batches load."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar, Final

from iolab.analysis.metrics import cpu_s_per_gb
from iolab.analysis.named_operations import OperationsView
from iolab.core.metric_spec import CPU_PER_GB
from iolab.core.workload import OperationEnum
from iolab.loads.training.metric_specs import (
    ACCELERATORS_FED,
    BARRIER_WAIT,
    FIRST_EPOCH_UTILISATION,
    LATENESS,
    PUBLISHED_UTILISATION,
    SAMPLES,
    STORAGE_WAIT,
    UTILISATION,
)
from iolab.loads.training.workload import (
    EpochTotals,
    TrainingHostDetails,
    TrainingJob,
    TrainingOperation,
    training_details_of_host,
)
from iolab.record import Record
from iolab.units import NS_PER_S

PERCENTILES: Final = (("p50", 50.0), ("p95", 95.0), ("p99", 99.0))
"""Of files, batches and steps: hundreds in a run, so that higher ones would have no value."""

NAMES: Final = ("mean", *(name for name, _ in PERCENTILES), "max")
TIMED: Final = (
    TrainingOperation.FILE_READ,
    TrainingOperation.BATCH_LOAD,
    TrainingOperation.STEP,
)
"""Operations whose latencies are told."""

LATENCY_KEYS: Final = tuple(operation.latency_key(name) for operation in TIMED for name in NAMES)


class StepShares(Record):
    """What the time of a host's steps consists of, as parts of it; steps in seconds."""

    step_s: float
    computing: float
    storage_wait: float
    barrier_wait: float
    lateness: float

    @property
    def total(self) -> float:
        """1 where every part was counted, and once."""
        return self.computing + self.storage_wait + self.barrier_wait + self.lateness


class TrainingView(OperationsView, Record, dict=True):
    """A run with what its steps consist of."""

    operations_in_sums: ClassVar[tuple[OperationEnum, ...]] = tuple(TrainingOperation)

    @property
    def training_job(self) -> TrainingJob:
        """What the hosts were asked to do."""
        return TrainingJob.require_type(self.job)

    def details_of_host(self, host_index: int) -> TrainingHostDetails | None:
        """What a host did in the whole run."""
        return training_details_of_host(self.hosts[host_index])

    def operation_count_and_seconds(
        self, host_index: int, operation: TrainingOperation
    ) -> tuple[int, float]:
        """How many of an operation a host did in the window, and their time together."""
        seconds = self.operation_latency_sum_ns([host_index], operation) / NS_PER_S
        return self.operation_count([host_index], operation), seconds

    def step_shares(self, host_index: int) -> StepShares | None:
        """The parts of a host's steps in the window; None where it ended none."""
        count, step_s = self.operation_count_and_seconds(host_index, TrainingOperation.STEP)
        if not count or step_s <= 0:
            return None
        waits = [
            self.operation_count_and_seconds(host_index, operation)[1] / step_s
            for operation in (
                TrainingOperation.STORAGE_WAIT,
                TrainingOperation.BARRIER_WAIT,
                TrainingOperation.COMPUTE_LATENESS,
            )
        ]
        return StepShares(step_s, count * self.training_job.compute_ns / 1e9 / step_s, *waits)


def epoch_utilisation(job: TrainingJob, totals: EpochTotals) -> float | None:
    """Computing over the time of steps in an epoch or several; None without steps."""
    return totals.steps * job.compute_ns / totals.step_ns if totals.step_ns else None


def training_metric_values(
    view: TrainingView, host_indexes: Sequence[int]
) -> dict[str, float | None]:
    """The values of those hosts together."""
    latencies = (
        view.latency_mean_percentiles_and_max(host_indexes, operation, PERCENTILES)
        for operation in TIMED
    )
    return {
        **{key: value for values in latencies for key, value in values.items()},
        **_lowest_utilisation_host_values(view, host_indexes),
        **_whole_run_metric_values(view, host_indexes),
        SAMPLES.key: _samples_per_s(view, host_indexes),
    }


def _lowest_utilisation_host_values(
    view: TrainingView, host_indexes: Sequence[int]
) -> dict[str, float | None]:
    """Those of the host with the lowest utilisation."""
    shares = [found for index in host_indexes if (found := view.step_shares(index)) is not None]
    if len(shares) < len(host_indexes):
        return {}
    lowest = min(shares, key=lambda found: found.computing)
    job = view.training_job
    fed = job.accelerators * min(lowest.computing / job.threshold, 1.0)
    return {
        ACCELERATORS_FED.key: fed if len(host_indexes) == len(view.hosts) else None,
        UTILISATION.key: lowest.computing,
        STORAGE_WAIT.key: lowest.storage_wait,
        BARRIER_WAIT.key: lowest.barrier_wait,
        LATENESS.key: lowest.lateness,
    }


def _samples_per_s(view: TrainingView, host_indexes: Sequence[int]) -> float:
    steps = (TrainingOperation.STEP, TrainingOperation.FIRST_STEP)
    rate = sum(view.operation_rate_per_s(host_indexes, operation) for operation in steps)
    return rate * view.training_job.batch


def _whole_run_metric_values(
    view: TrainingView, host_indexes: Sequence[int]
) -> dict[str, float | None]:
    job, runs = view.training_job, [view.details_of_host(index) for index in host_indexes]
    published = [_mean_utilisation_over_epochs(job, run) for run in runs if run is not None]
    first = [epoch_utilisation(job, run.first_epoch) for run in runs if run is not None]
    return {
        PUBLISHED_UTILISATION.key: _mean_if_all_known(published),
        FIRST_EPOCH_UTILISATION.key: _mean_if_all_known(first),
        CPU_PER_GB.key: cpu_s_per_gb([view.hosts[index] for index in host_indexes]),
    }


def _mean_utilisation_over_epochs(job: TrainingJob, run: TrainingHostDetails) -> float | None:
    """The mean of epochs; of those after the first only their sum is known."""
    first = epoch_utilisation(job, run.first_epoch)
    later = epoch_utilisation(job, run.later_epochs)
    if first is None or later is None:
        return first
    return (first + (run.epochs - 1) * later) / run.epochs


def _mean_if_all_known(values: Sequence[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return sum(known) / len(known) if known and len(known) == len(values) else None
