"""Which numbers tell a run on a key-value store: rates of its operations, and their latencies."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final

from iolab.analyse.key_value.summary import (
    KEY_PERCENTILES,
    LATENCY_NAMES,
    WHOLE_KEY,
    latency_key,
)
from iolab.model.key_value import KeyOperation, KeyValueJob
from iolab.model.metric import Metric, Result
from iolab.model.study import Study
from iolab.model.workload import AnyJob, Workload
from iolab.model.ycsb import YcsbJob
from iolab.report.wording import axis_label, show

PERCENTILES: Final = tuple((name, f"p{percent:g}") for name, percent in KEY_PERCENTILES)
"""Latency percentiles: (name in a metric's key, for people)."""

WORDS: Final = {"mean": "mean", **dict(PERCENTILES), "max": "max"}
"""Every latency by its name in a metric's key."""

_UNKNOWN: Final = Metric(None, "")

_WHAT: Final = {
    KeyOperation.READ: "Reads",
    KeyOperation.WRITE: "Writes",
    KeyOperation.UPDATE: "Updates",
    KeyOperation.INSERT: "Inserts",
    KeyOperation.SCAN: "Scans",
    KeyOperation.READ_MODIFY_WRITE: "Read-modify-writes",
    KeyOperation.DELETE: "Deletes",
    KeyOperation.SEEK: "Seeks",
    KeyOperation.MERGE: "Merges",
}


def on_keys(job: AnyJob) -> bool:
    """Whether a job makes load on a key-value store."""
    return isinstance(job, KeyValueJob | YcsbJob)


def key_workloads(study: Study) -> tuple[Workload, ...]:
    """The study's workloads on key-value stores."""
    return tuple(workload for workload in study.workloads if on_keys(workload.job))


def plural(operation: KeyOperation) -> str:
    """The operations for people: `Reads`."""
    return _WHAT.get(operation, operation.word.capitalize())


def value_of(metrics: Mapping[str, Metric], key: str) -> float | None:
    """The value of a metric, None where there is no such metric."""
    return metrics.get(key, _UNKNOWN).value


def timed(metrics: Iterable[Mapping[str, Metric]]) -> tuple[KeyOperation, ...]:
    """The operations of which any latency is known, those timed from when they were due too."""
    return _having(metrics, [f"lat_ns_{name}" for name in LATENCY_NAMES])


def counted(metrics: Iterable[Mapping[str, Metric]]) -> tuple[KeyOperation, ...]:
    """The operations that have a rate of their own."""
    found = _having(metrics, [WHOLE_KEY])
    return tuple(one for one in found if not one.is_intended and one is not KeyOperation.ALL)


def _having(metrics: Iterable[Mapping[str, Metric]], parts: list[str]) -> tuple[KeyOperation, ...]:
    found = list(metrics)
    return tuple(
        operation
        for operation in KeyOperation
        if any(
            value_of(one, f"{operation.key}_{part}") is not None for one in found for part in parts
        )
    )


def main_operation(metrics: Sequence[Mapping[str, Metric]]) -> KeyOperation:
    """The operation whose latency is told first: reads, else the first that has any."""
    found = [one for one in timed(metrics) if not one.is_intended]
    return KeyOperation.READ if KeyOperation.READ in found or not found else found[0]


def tail_name(job: AnyJob) -> str:
    """The percentile that the field publishes with this engine.

    That of db_bench is p99, whose bins tell nothing finer; that of YCSB is p99.99.
    """
    return "p99_99" if isinstance(job, YcsbJob) else "p99"


def drawn_tail(job: AnyJob, metrics: Sequence[Mapping[str, Metric]], one: KeyOperation) -> str:
    """The published percentile, where all points have it; else the highest that they all have."""
    return highest_known(metrics, one, tail_name(job))


def highest_known(
    metrics: Sequence[Mapping[str, Metric]], one: KeyOperation, most: str = "p99_99"
) -> str:
    """The highest percentile up to `most` that all have who have any latency; p50 where none."""
    names = [name for name, _ in PERCENTILES]
    wanted = names[: names.index(most) + 1]
    known = [found for found in metrics if value_of(found, latency_key(one, "mean")) is not None]
    for name in reversed(wanted):
        if all(value_of(found, latency_key(one, name)) is not None for found in known):
            return name
    return wanted[0]


def known_latencies(
    metrics: Mapping[str, Metric], operation: KeyOperation, names: Iterable[str]
) -> Iterator[tuple[str, str]]:
    """(`read p99`, `1.2 ms`) of each latency that is known."""
    for name in names:
        metric = metrics.get(latency_key(operation, name), _UNKNOWN)
        if metric.value is not None or metric.low is not None:
            yield f"{operation.word} {WORDS[name]}", show(metric)


def brief_operations(result: Result) -> str:
    """A run in a line: `12.3 k ops/s, read mean 299 µs, read p99 4.28 ms`."""
    metrics = result.metrics
    main = main_operation([metrics])
    latencies = known_latencies(metrics, main, ("mean", highest_known([metrics], main, "p99")))
    return ", ".join(
        [show(metrics.get(WHOLE_KEY)), *(f"{name} {text}" for name, text in latencies)]
    )


def group_name(workload: Workload, others: tuple[tuple[str, int | str], ...]) -> str:
    """A workload with what of its axes is held: `Random reads, block_size 4k`."""
    return ", ".join(part for part in (workload.title, axis_label(others)) if part)
