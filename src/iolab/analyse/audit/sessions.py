"""The same question of a session of ours: whether the numbers that it stores agree.

Nothing is measured or judged again. Evidence and verdicts are made elsewhere; here it is seen that
what was written down, by whichever version, adds up.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from itertools import pairwise
from typing import Final

from iolab.analyse.audit.figure import Span, exact
from iolab.analyse.audit.outcome import Agreement, Outcome
from iolab.analyse.audit.relation import agreement, shown
from iolab.analyse.percentiles import PERCENTILES
from iolab.model.metric import Level, Metric, Result
from iolab.model.run import Point
from iolab.model.workload import Job

EXACT: Final = 1e-6
"""Sums of the same counters differ by how floats round alone."""

IN_FLIGHT_MOST: Final = 1.05
"""More in flight than was asked for cannot be; the edges of a window make up for a few per cent."""

_RATES: Final = ("iops", "bw_bytes_per_s")
_WAYS: Final = ("", "read_", "write_", "trim_")


def audit_session(results: tuple[Result, ...], points: Mapping[str, Point]) -> tuple[Outcome, ...]:
    """Every relation of every result of I/O on files; `points` are the plan's, by digest."""
    return tuple(
        outcome
        for result in results
        for rule in _RULES
        if (point := points.get(result.digest)) is not None and isinstance(point.job, Job)
        for outcome in rule(result, point)
    )


def _sums(result: Result, point: Point) -> Iterator[Outcome]:
    """The hosts' rates add up to the fleet's, and so do the nodes'."""
    del point
    parts = (
        ("hosts", [host.metrics for host in result.hosts]),
        ("nodes", [node.metrics for node in result.nodes]),
    )
    for name, members in parts:
        for key in _RATES:
            whole = _value(result.metrics, key)
            each = [_value(metrics, key) for metrics in members]
            if whole is None or not each or None in each:
                continue
            total = sum(value for value in each if value is not None)
            yield _close(f"sum-of-{name}", result, f"{key} of {len(each)} {name}", whole, total)


def _products(result: Result, point: Point) -> Iterator[Outcome]:
    """IOPS times the block size is the bandwidth, where every I/O has that size."""
    job = point.io
    if any(name.startswith("bs") for name, _ in job.options):
        return
    for way in _WAYS:
        iops = _value(result.metrics, f"{way}iops")
        bandwidth = _value(result.metrics, f"{way}bw_bytes_per_s")
        if iops is None or bandwidth is None:
            continue
        said = f"{way.replace('_', ' ')}bytes/s"
        yield _close("rate-times-size", result, said, bandwidth, iops * job.block_bytes)


def _in_flight(result: Result, point: Point) -> Iterator[Outcome]:
    """IOPS times the mean latency is never more than the jobs could hold in flight."""
    iops, mean = _value(result.metrics, "iops"), _value(result.metrics, "lat_ns_mean")
    if iops is None or mean is None or not result.hosts:
        return
    asked = sum(point.io_on(host.name).depth_total for host in result.hosts)
    found = iops * mean / 1e9
    verdict = Agreement.AGREES if found <= asked * IN_FLIGHT_MOST else Agreement.CONTRADICTS
    says = f"On average {found:.4g} I/Os were in flight, at most {asked} can have been."
    yield Outcome("littles-law", _name(result), verdict, says, f"{asked}", f"{found:.4g}")


def _order(result: Result, point: Point) -> Iterator[Outcome]:
    """Percentiles ascend, the largest latency is above them, and each lies in its interval."""
    del point
    for way in _WAYS:
        keys = [f"{way}lat_ns_{name}" for name, _ in sorted(PERCENTILES, key=lambda one: one[1])]
        told = [
            (key, value)
            for key in [*keys, f"{way}lat_ns_max"]
            if (value := _value(result.metrics, key)) is not None
        ]
        falls = [(a, b) for a, b in pairwise(told) if a[1] > b[1]]
        if not told:
            continue
        if falls:
            (low, a), (high, b) = falls[0]
            says = f"{low} is {a:.6g}, above {high} with {b:.6g}."
            yield Outcome("order", _name(result), Agreement.CONTRADICTS, says)
        else:
            says = f"{len(told)} latencies ascend from {told[0][0]} to {told[-1][0]}."
            yield Outcome("order", _name(result), Agreement.AGREES, says)


def _intervals(result: Result, point: Point) -> Iterator[Outcome]:
    """Every value lies within its own interval."""
    del point
    outside = [key for key, metric in result.metrics.items() if not _inside(metric)]
    known = [metric for metric in result.metrics.values() if metric.low is not None]
    if outside:
        says = f"{', '.join(outside)} lies outside of its own interval."
        yield Outcome("intervals", _name(result), Agreement.CONTRADICTS, says)
    elif known:
        says = f"{len(known)} values lie within their intervals."
        yield Outcome("intervals", _name(result), Agreement.AGREES, says)


def _verdict(result: Result, point: Point) -> Iterator[Outcome]:
    """The verdict is that of the worst check."""
    del point
    worst = max((check.level for check in result.verdict.checks), key=_rank, default=Level.VALID)
    same = worst is result.verdict.level
    verdict = Agreement.AGREES if same else Agreement.CONTRADICTS
    says = f"The verdict is {result.verdict.level}, the worst of its checks says {worst}."
    yield Outcome("verdict", _name(result), verdict, says)


_RULES: Final[tuple[Callable[[Result, Point], Iterator[Outcome]], ...]] = (
    _sums,
    _products,
    _in_flight,
    _order,
    _intervals,
    _verdict,
)


def _rank(level: Level) -> int:
    return level.rank


def _close(rule: str, result: Result, said: str, stated: float, computed: float) -> Outcome:
    verdict = agreement(exact(stated), exact(computed), EXACT)
    made = shown(Span(computed, computed), "")
    so = "is" if verdict is Agreement.AGREES else "is not"
    says = f"{said} {so} what its parts give: {stated:,.6g} against {computed:,.6g}."
    return Outcome(rule, _name(result), verdict, says, f"{stated:.6g}", made.strip())


def _value(metrics: Mapping[str, Metric], key: str) -> float | None:
    metric = metrics.get(key)
    return None if metric is None else metric.value


def _inside(metric: Metric) -> bool:
    if metric.value is None or metric.low is None or metric.high is None:
        return True
    slack = EXACT * abs(metric.value)
    return metric.low - slack <= metric.value <= metric.high + slack


def _name(result: Result) -> str:
    axis = " ".join(f"{name}={value}" for name, value in result.axis)
    many = f" #{result.repeat}" if result.repeat > 1 else ""
    return f"{result.workload} {axis}".strip() + many
