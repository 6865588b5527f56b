"""A point as two configurations have it: which metrics of it compare, and how. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from iolab.analyse.key_value.summary import (
    NAMED_OPERATIONS,
    WHOLE_KEY,
    latency_key,
)
from iolab.analyse.metadata.phases import FILE_OPERATIONS
from iolab.analyse.metadata.summary import rate_key, whole_key
from iolab.analyse.method.ratio import (
    RATIO_ALLOWANCE,
    Better,
    Comparison,
    compare,
    compare_paired,
)
from iolab.analyse.method.variance import Prior
from iolab.analyse.points import FIGURES, Axis, PointSummary, bin_error, value_of
from iolab.analyse.service import SERVICE_MEAN
from iolab.analyse.sittings import session_of
from iolab.model.metadata import MetadataJob, Operation
from iolab.model.workload import Job, Workload

TAIL: Final = "lat_ns_p99"
"""Compared beside the headline figure: a gain in throughput is often paid for in the tail."""

Pair = tuple[PointSummary, PointSummary]
"""The baseline's and the candidate's."""


@dataclass(frozen=True, slots=True)
class Skipped:
    """A point, or a metric of it, that could not be compared, and why."""

    workload: str
    axis: Axis
    reason: str


def better_of(unit: str) -> Better:
    """Of latencies less is better, of rates more."""
    return Better.LOWER if unit == "ns" else Better.HIGHER


def default_metrics(workload: Workload, pair: Pair) -> list[str]:
    """What is compared where nobody names it: of each kind of load what both sides know.

    The headline figure, which stands even where it is not known, and the p99 latency; of metadata
    load the rate of each operation; of load on keys the whole rate, and mean and p99 of the first
    operation that has latencies, which is that of reads wherever anything is read.
    """
    if isinstance(workload.job, Job):
        keys = dict.fromkeys((FIGURES[workload.indicator], TAIL))
        # A tail that too few I/Os support is no news: it is compared where it is known.
        return [key for key in keys if key != TAIL or _known(pair, key)]
    if isinstance(workload.job, MetadataJob):
        rates = (
            rate_key(operation)
            if operation in FILE_OPERATIONS and _known(pair, rate_key(operation))
            else whole_key(operation)
            for operation in Operation
        )
        return [key for key in rates if _known(pair, key)]
    timed = (one for one in NAMED_OPERATIONS if _known(pair, latency_key(one, "mean")))
    tails = (latency_key(one, name) for one in list(timed)[:1] for name in ("mean", "p99"))
    return [WHOLE_KEY, *(key for key in tails if _known(pair, key))]


def _known(pair: Pair, metric: str) -> bool:
    found = [side.metrics.get(metric) for side in pair]
    return all(one is not None and one.value is not None for one in found)


def objection(pair: Pair, metric: str) -> str:
    """Why the metric cannot be compared at this point; empty when it can."""
    if metric.startswith(_LATENCIES) and len({_is_response(side) for side in pair}) > 1:
        return "one side counts from when I/Os were due, the other from their submission"
    for name, side in zip(("baseline", "candidate"), pair, strict=True):
        values = [value_of(run, metric) for run in side.results]
        if None in values:
            return f"not every run of the {name} has a value"
        if any(value is not None and value <= 0 for value in values):
            return f"a run of the {name} has the value 0, which has no ratio"
    return ""


_LATENCIES: Final = ("lat_ns_", "read_lat_ns_", "write_lat_ns_", "trim_lat_ns_")


def _is_response(side: PointSummary) -> bool:
    """Whether its latencies are response times: then service times stand beside them."""
    return any(SERVICE_MEAN in run.metrics for run in side.results)


def compare_pair(pair: Pair, metric: str, prior: Prior, *, one_session: bool) -> Comparison:
    """The candidate against the baseline by run means; `objection` must have none.

    Runs of one session are paired by repeat, since a repeat is a block in which both were measured.
    """
    better = better_of(pair[0].metrics[metric].unit)
    allowance = RATIO_ALLOWANCE + pair_bin_error(pair, metric)
    mine, theirs = (
        {run.repeat: value for run in side.results if (value := value_of(run, metric)) is not None}
        for side in pair
    )
    runs = (*pair[0].results, *pair[1].results)
    both = sorted(mine.keys() & theirs.keys())
    if one_session and len(both) > 1 and len({session_of(run) for run in runs}) == 1:
        return compare_paired(
            _of(mine, both), _of(theirs, both), better, prior, allowance=allowance
        )
    values = (list(mine.values()), list(theirs.values()))
    return compare(*values, better, prior, allowance=allowance)


def pair_bin_error(pair: Pair, metric: str) -> float:
    """How far a ratio may be off for bins, a log ratio: both values are known to theirs only."""
    return sum(bin_error(metric, side.results) for side in pair)


def _of(values: dict[int, float], repeats: Sequence[int]) -> list[float]:
    return [values[repeat] for repeat in repeats]
