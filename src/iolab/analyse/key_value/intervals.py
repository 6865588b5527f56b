"""Intervals of a single run on a key-value store: of its rate, and of latencies by its seconds.

Such a run has a fixed length. Its rate has an interval where its seconds had become steady and the
rate that is shown is that of the steady part; then what rule D knows of one holds for the other.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from iolab.analyse.intervals import rate_interval, resampled, without_rare_stalls
from iolab.analyse.key_value.load import KeyValueLoad
from iolab.analyse.key_value.summary import (
    KEY_PERCENTILES,
    WHOLE_KEY,
    latency_key,
)
from iolab.analyse.steady import EXCESS_TOLERABLE, Steady
from iolab.model.key_value import KeyOperation
from iolab.model.metric import Metric
from iolab.model.rule import SeriesStatus
from iolab.model.run import RunRecord

_NEAR: Final = "p99"
"""What far percentiles of a run with a few stalls are told to be more than."""

_SETTLED: Final = (SeriesStatus.OK, SeriesStatus.IMPRECISE)


def with_key_value_intervals(
    metrics: Mapping[str, Metric], record: RunRecord, load: KeyValueLoad, steady: Steady | None
) -> dict[str, Metric]:
    """The fleet's metrics, with low, high and n where the run can tell them."""
    shown = [one for one in load.operations if latency_key(one, _NEAR) in metrics]
    found = without_rare_stalls(metrics, [f"{one.key}_" for one in shown], _NEAR, steady)
    if steady is not None and _tells(steady):
        found[WHOLE_KEY] = rate_interval(found[WHOLE_KEY], steady)
    for operation in shown:
        if load.histogram(operation, range(len(load.seconds))) is not None:
            found |= _resampled(found, record, load, operation)
    return found


def _tells(steady: Steady) -> bool:
    """Whether what the rule knows of the steady part's mean holds for the rate that is shown."""
    settled = steady.steadiness.status in _SETTLED
    return settled and abs(steady.excess) <= EXCESS_TOLERABLE


def _resampled(
    metrics: Mapping[str, Metric], record: RunRecord, load: KeyValueLoad, operation: KeyOperation
) -> dict[str, Metric]:
    prefix = f"{operation.key}_"
    return resampled(metrics, prefix, KEY_PERCENTILES, record, load.cut, [int(operation)])
