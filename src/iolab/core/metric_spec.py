"""The registry of metrics: unit, which way is better, how hosts and runs make one value.

Operations have systematic keys: `read_lat_ns_p99` is a percentile of the latency of the operation
`read`, `file_create_ops_per_s` a rate of `file_create`, and without an operation it is of the whole
load. So have phases of a run (`phase.degraded.iops`) and its events (`scenario.redundancy_s`). Any
other metric is declared by the kind of load that has it (`LoadKind.metrics`).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from enum import StrEnum
from functools import lru_cache
from typing import Final

from iolab.record import Record

OPS_PER_S: Final = "ops_per_s"
"""The rate of all operations, each counted once."""

MEAN: Final = "mean"
"""The statistic of a mean latency."""

SERVICE_MEAN: Final = "service_lat_ns_mean"
"""A result has it if and only if its `lat_*` are response times."""

_KEY: Final = re.compile(
    r"(?:(?P<operation>[a-z_]+?)_)??"
    r"(?:(?P<rate>iops|bw_bytes_per_s|ops_per_s(?P<whole>_whole)?)"
    r"|lat_ns_(?P<statistic>mean|max|p[0-9_]+))"
)

_UNITS: Final = {"iops": "1/s", "bw_bytes_per_s": "bytes/s"}
_OPERATIONS_UNIT: Final = "ops/s"

_RATE_LABELS: Final = {
    "iops": "IOPS",
    "bw_bytes_per_s": "bandwidth",
    "ops_per_s": "operations a second",
}

_PHASE_KEY: Final = re.compile(
    r"phase\.(?P<phase>.+)\.(?P<figure>[a-z0-9_]+)|scenario\.(?P<own>\w+)"
)

_DECLARED: Final[dict[str, MetricSpec]] = {}


class BetterDirection(StrEnum):
    """Which way a metric has to go to get better."""

    HIGHER = "higher"
    LOWER = "lower"


class CombineRule(StrEnum):
    """How several hosts, or runs, make one value."""

    RATE = "rate"
    """Hosts are added within a window that they share."""
    MEAN = "mean"
    """Every operation weighs the same."""
    QUANTILE = "quantile"
    """Read from bins that were merged, and known no better than those."""
    EXTREME = "extreme"
    """The largest one that was seen."""


class MetricSpec(Record):
    """One metric; `label` is what tables and sentences call it.

    `unit` is one of `report.numbers.show_value`. `operation` is "" of the whole load. `statistic`
    is which one of the operation's latencies it is, "" for anything else. `is_over_window` is False
    for a rate over a whole phase, whatever its hosts have in common. Tables have those metrics of a
    kind of load that have a column; exports have all.
    """

    key: str
    label: str
    unit: str
    better: BetterDirection
    combine: CombineRule
    operation: str = ""
    statistic: str = ""
    is_over_window: bool = True
    has_column: bool = True


CPU_PER_GB: Final = MetricSpec(
    "cpu_s_per_gb", "CPU per GB", "s/GB", BetterDirection.LOWER, CombineRule.MEAN
)
"""Seconds of processors that an engine used for 10^9 bytes; kinds declare it whose engine is part
of the agent."""

_COMBINED: Final = {MEAN: CombineRule.MEAN, "max": CombineRule.EXTREME}


_PHASE_FIGURES: Final = {
    "iops": ("IOPS", "1/s", BetterDirection.HIGHER, CombineRule.RATE),
    "baseline_share": ("share of the baseline", "share", BetterDirection.HIGHER, CombineRule.MEAN),
    "lat_ns_p50": ("p50 latency", "ns", BetterDirection.LOWER, CombineRule.QUANTILE),
    "lat_ns_p99": ("p99 latency", "ns", BetterDirection.LOWER, CombineRule.QUANTILE),
    "worst_second_ns_p99": (
        "worst second's p99",
        "ns",
        BetterDirection.LOWER,
        CombineRule.QUANTILE,
    ),
    "longest_io_ns": ("longest I/O", "ns", BetterDirection.LOWER, CombineRule.EXTREME),
    "longest_stall_s": ("longest stall", "s", BetterDirection.LOWER, CombineRule.EXTREME),
    "lat_ns_mean": ("mean latency", "ns", BetterDirection.LOWER, CombineRule.MEAN),
    "p50_ratio": ("p50 over the baseline's", "x", BetterDirection.LOWER, CombineRule.MEAN),
    "p99_ratio": ("p99 over the baseline's", "x", BetterDirection.LOWER, CombineRule.MEAN),
    "mean_ratio": ("mean over the baseline's", "x", BetterDirection.LOWER, CombineRule.MEAN),
    "served_share": ("I/Os served", "share", BetterDirection.HIGHER, CombineRule.MEAN),
}
"""Of one phase: label, unit, which way is better, and how several make one."""

_SCENARIO_FIGURES: Final = {
    "detection_s": ("fault to detection", "s", BetterDirection.LOWER, CombineRule.MEAN),
    "redundancy_s": ("fault to redundancy", "s", BetterDirection.LOWER, CombineRule.MEAN),
    "baseline_s": ("fault to baseline", "s", BetterDirection.LOWER, CombineRule.MEAN),
    "rebuild_bytes_per_s": ("rebuild", "bytes/s", BetterDirection.HIGHER, CombineRule.RATE),
}
"""The same of the run's events."""


PHASE_SEPARATOR: Final = "."
"""What no key has that is not of a phase or of events."""


PHASE_RATE: Final = "iops"
"""The figure of a phase that tells its rate."""


def phase_of_rate_metric(metric_key: str) -> str | None:
    """The phase whose rate the metric is; None for any other."""
    match = _PHASE_KEY.fullmatch(metric_key)
    return match["phase"] if match is not None and match["figure"] == PHASE_RATE else None


def phase_metric_key(phase: str, figure: str) -> str:
    """The metric of a figure of `PhaseFigures`."""
    return f"phase.{phase}.{figure}"


def scenario_metric_key(figure: str) -> str:
    """The metric of a figure of `ScenarioFigures`."""
    return f"scenario.{figure}"


def compared_scenario_metric_keys(phases: Sequence[str]) -> list[str]:
    """What tells systems apart that were run through phases: of each but the first, and events."""
    figures = (PHASE_RATE, "lat_ns_p99", "p50_ratio", "longest_stall_s")
    keys = [phase_metric_key(phase, figure) for phase in phases[1:] for figure in figures]
    return keys + [scenario_metric_key(figure) for figure in _SCENARIO_FIGURES if phases]


def is_scenario_metric(metric_key: str) -> bool:
    """Whether a metric is of a phase or of the events of a run."""
    return _phase_metric_spec(metric_key) is not None


def _phase_metric_spec(metric_key: str) -> MetricSpec | None:
    """The metric of a phase or of events; None for any other key."""
    match = _PHASE_KEY.fullmatch(metric_key) if PHASE_SEPARATOR in metric_key else None
    if match is None:
        return None
    figures = _PHASE_FIGURES if match["phase"] else _SCENARIO_FIGURES
    known = figures.get(match["figure"] or match["own"])
    if known is None:
        return None
    label, unit, better, combine = known
    words = f"{label}, phase {match['phase']}" if match["phase"] else label
    return MetricSpec(metric_key, words, unit, better, combine)


def declare_metrics(specs: Iterable[MetricSpec]) -> None:
    """Make metrics known; ValueError for a key that was declared to be something else."""
    for spec in specs:
        if _DECLARED.setdefault(spec.key, spec) != spec:
            raise ValueError(f"two kinds of load declare the metric {spec.key!r} differently")


def metrics_declared_by_load_kinds() -> tuple[MetricSpec, ...]:
    """Those of all kinds of load besides rates and latencies of operations."""
    return tuple(_DECLARED.values())


def is_metric_declared_by_load_kind(metric_key: str) -> bool:
    """Whether a kind of load has the metric besides rates and latencies of operations."""
    return metric_key in _DECLARED


def column_metric_keys_and_labels(groups: Iterable[Iterable[str]]) -> list[tuple[str, str]]:
    """Key and label of those among the keys that have a column, in the order of appearance."""
    keys = dict.fromkeys(
        key for keys in groups for key in keys if is_metric_declared_by_load_kind(key)
    )
    return [(key, _DECLARED[key].label) for key in keys if _DECLARED[key].has_column]


def metric_spec(metric_key: str) -> MetricSpec:
    """The metric with that key, as declared or of operations; KeyError where there is none."""
    return (
        _DECLARED.get(metric_key)
        or _phase_metric_spec(metric_key)
        or operation_metric_spec(metric_key)
    )


def is_known_metric(metric_key: str) -> bool:
    """Whether `metric_spec` has it: a stored result may be of a kind that declared more."""
    known = is_metric_declared_by_load_kind(metric_key) or _KEY.fullmatch(metric_key) is not None
    return known or _phase_metric_spec(metric_key) is not None


def common_metric_label(keys: Iterable[str]) -> str:
    """What metrics measure, whatever operations they are of; "" where they measure several."""
    labels = {_spec_without_operation(metric_spec(key)).label for key in keys}
    return labels.pop() if len(labels) == 1 else ""


def _spec_without_operation(spec: MetricSpec) -> MetricSpec:
    key = spec.key.removeprefix(f"{spec.operation}_").removesuffix("_whole")
    return metric_spec(key) if spec.operation else spec


@lru_cache(maxsize=1024)
def operation_metric_spec(metric_key: str) -> MetricSpec:
    """The metric of operations with that systematic key; KeyError for any other key."""
    match = _KEY.fullmatch(metric_key)
    if match is None:
        raise KeyError(f"no kind of load declares the metric {metric_key!r} (LoadKind.metrics)")
    operation, rate, statistic = match["operation"] or "", match["rate"], match["statistic"]
    if rate is None:
        combine = _COMBINED.get(statistic, CombineRule.QUANTILE)
        words = f"{operation.replace('_', ' ')} {statistic.replace('_', '.')} latency"
        return MetricSpec(
            metric_key, words.lstrip(), "ns", BetterDirection.LOWER, combine, operation, statistic
        )
    return MetricSpec(
        metric_key,
        _RATE_LABELS.get(
            metric_key, metric_key.removesuffix("_whole").removesuffix("_per_s").replace("_", " ")
        ),
        _UNITS.get(rate, _OPERATIONS_UNIT),
        BetterDirection.HIGHER,
        CombineRule.RATE,
        operation,
        is_over_window=match["whole"] is None,
    )


def rate_key(operation: str) -> str:
    """The rate of one operation over the window that all hosts share."""
    return f"{operation}_{OPS_PER_S}"


def phase_rate_key(operation: str) -> str:
    """The rate of one operation over its whole phase."""
    return f"{operation}_{OPS_PER_S}_whole"


def operations_with_phase_rate(keys: Iterable[str]) -> tuple[str, ...]:
    """The operations that have a rate over a whole phase among those metrics, in their order."""
    specs = (metric_spec(key) for key in keys)
    return tuple(spec.operation for spec in specs if not spec.is_over_window)


def mean_latency_keys(keys: Iterable[str]) -> tuple[str, ...]:
    """The metrics that are mean latencies, in their order."""
    return tuple(key for key in keys if metric_spec(key).statistic == MEAN)
