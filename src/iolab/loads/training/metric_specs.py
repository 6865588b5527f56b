"""The metrics of training-read load that are no rates and latencies of operations."""

from __future__ import annotations

from typing import Final

from iolab.core.metric_spec import CPU_PER_GB, BetterDirection, CombineRule, MetricSpec

UTILISATION: Final = MetricSpec(
    "accelerator_utilisation", "utilisation", "share", BetterDirection.HIGHER, CombineRule.MEAN
)
"""Computing, of all the time of steps, without the first of each epoch; of several hosts that of
the lowest, for all of a training go as fast as its slowest."""

STORAGE_WAIT: Final = MetricSpec(
    "storage_wait_share", "storage wait", "share", BetterDirection.LOWER, CombineRule.MEAN
)
"""Waiting for a batch that was not read yet, of the same time and host."""

BARRIER_WAIT: Final = MetricSpec(
    "barrier_wait_share", "barrier wait", "share", BetterDirection.LOWER, CombineRule.MEAN
)
"""Waiting for other accelerators to end their step."""

LATENESS: Final = MetricSpec(
    "emulator_lateness_share", "emulator lateness", "share", BetterDirection.LOWER, CombineRule.MEAN
)
"""By how much the emulator ended computing too late. The four add up to 1."""

PUBLISHED_UTILISATION: Final = MetricSpec(
    "published_utilisation", "published formula", "share", BetterDirection.HIGHER, CombineRule.MEAN
)
"""Computing over the time of steps as the published benchmark has it: of the whole run, mean of
hosts and epochs."""

FIRST_EPOCH_UTILISATION: Final = MetricSpec(
    "first_epoch_utilisation", "first epoch", "share", BetterDirection.HIGHER, CombineRule.MEAN
)
"""The same of the first epoch alone, when nothing can be in a cache."""

ACCELERATORS_FED: Final = MetricSpec(
    "accelerators_fed", "accelerators", "accelerators", BetterDirection.HIGHER, CombineRule.MEAN
)
"""Accelerators that are kept at the data set's threshold of utilisation: those that were emulated,
or where these fall below it as many fewer as they fall below it."""

SAMPLES: Final = MetricSpec(
    "samples_per_s", "samples", "samples/s", BetterDirection.HIGHER, CombineRule.RATE
)
"""Samples of steps that ended, over the window that all hosts share."""

METRICS: Final = (
    ACCELERATORS_FED,
    UTILISATION,
    STORAGE_WAIT,
    BARRIER_WAIT,
    LATENESS,
    PUBLISHED_UTILISATION,
    FIRST_EPOCH_UTILISATION,
    SAMPLES,
    CPU_PER_GB,
)
