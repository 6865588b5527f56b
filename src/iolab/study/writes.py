"""The bytes that a plan writes: a known part, and a part that depends on the speed of targets."""

from __future__ import annotations

from collections.abc import Iterable
from statistics import fmean
from typing import TYPE_CHECKING, Any, Final

from iolab.core.metric import RunResult
from iolab.core.run import Plan, Point, RunStatus
from iolab.core.study import Study
from iolab.record import Record
from iolab.units import format_bytes, format_duration_s, format_rate_bytes

if TYPE_CHECKING:
    from iolab.study.kinds import StudyKinds

GB: Final = 10**9

WRITE_RATE: Final = "write_bw_bytes_per_s"
"""The metric of finished runs that forecasts use."""


class RunWrites(Record):
    """What one run writes, on all hosts.

    `bytes` is written by loads of a fixed size, `limited_bytes_per_s` by loads of a fixed rate.
    Loads without either write as fast as a target takes it: `host_share_at_target_speed` is their
    share of writes, summed over hosts (or over the nodes that guests share). `seconds_range` is the
    shortest and the longest time that the load lasts.
    """

    bytes: int = 0
    limited_bytes_per_s: float = 0.0
    host_share_at_target_speed: float = 0.0
    seconds_range: tuple[float, float] = (0.0, 0.0)

    @property
    def min_known_bytes(self) -> float:
        """The least number of bytes that is known without the speed of a target."""
        return self.bytes + self.limited_bytes_per_s * self.seconds_range[0]

    @property
    def seconds_range_at_target_speed(self) -> tuple[float, float]:
        """Seconds of writing at the speed of one target, the least and the most."""
        least, most = self.seconds_range
        return self.host_share_at_target_speed * least, self.host_share_at_target_speed * most


class WriteForecast(Record):
    """The bytes that the certain runs of a plan write, over all hosts.

    `known_bytes` does not depend on the speed of targets; `measured_bytes` is forecast from the
    rates of `measured_runs` finished runs. The rest is written for `seconds_range_at_target_speed`
    (least and most, summed over hosts), which is not known. Up to `extra_run_count` runs may
    follow.
    """

    known_bytes: int
    seconds_range_at_target_speed: tuple[float, float]
    extra_run_count: int = 0
    measured_bytes: int = 0
    measured_runs: int = 0
    writer: str = "host"

    @property
    def depends_on_target_speed(self) -> bool:
        """Whether a part depends on an unknown speed of targets."""
        return self.seconds_range_at_target_speed[1] > 0

    @property
    def least_bytes(self) -> int:
        """The bytes that are written at least."""
        return self.known_bytes + self.measured_bytes

    @property
    def forecast_sentence(self) -> str:
        """A sentence for people, with what it assumes."""
        least = "at least " if self.depends_on_target_speed or self.extra_run_count else "about "
        parts = [f"{least}{format_bytes(self.least_bytes)} in all"]
        if self.measured_runs:
            noun = "run" if self.measured_runs == 1 else "runs"
            parts.append(f", estimated from {self.measured_runs} finished {noun}")
        if self.depends_on_target_speed:
            first, last = self.seconds_range_at_target_speed
            size, time = _decimal_size_text(first), format_duration_s(first)
            if last > first:
                size = f"{size} to {_decimal_size_text(last)}"
                time = f"{time} to {format_duration_s(last)}"
            parts.append(f", and what each {self.writer} writes in {time} (at 1 GB/s: {size})")
        if self.extra_run_count:
            parts.append(f"; up to {self.extra_run_count} more runs are not counted")
        return "".join(parts)

    def document(self) -> dict[str, Any]:
        """As JSON."""
        return {
            "least_bytes": self.least_bytes,
            "known_bytes": self.known_bytes,
            "measured_bytes": self.measured_bytes,
            "measured_runs": self.measured_runs,
            "bytes_per_gb_per_s": [
                round(seconds * GB) for seconds in self.seconds_range_at_target_speed
            ],
            "runs_more": self.extra_run_count,
            "text": self.forecast_sentence,
        }


def _decimal_size_text(gigabytes: float) -> str:
    """The size in decimal units, as rates have them."""
    return format_rate_bytes(gigabytes * GB).removesuffix("/s")


def forecast_writes(
    study: Study, plan: Plan, kinds: StudyKinds, results: Iterable[RunResult] = ()
) -> WriteForecast:
    """The bytes that the plan writes, by the rates of its finished runs where there are any.

    A run takes the rate of its own point, else the mean of points of its configuration with the
    same operation and block size.
    """
    budget = plan.demand
    least, most = budget.open_write_s, budget.open_write_most_s
    rates = _WriteRates(plan, results)
    measured = 0.0
    for run in plan.runs if rates.runs else ():
        writes = kinds.writes_of_run(study, run.point)
        rate = (
            rates.write_bytes_per_s_of_point(run.point)
            if writes.host_share_at_target_speed
            else None
        )
        if rate is not None:
            first, last = writes.seconds_range_at_target_speed
            least, most = least - first, most - last
            measured += rate * writes.seconds_range[0]
    return WriteForecast(
        known_bytes=budget.write_bytes_estimate,
        # Below a millisecond the rest of a sum of floats is a rounding error.
        seconds_range_at_target_speed=(round(max(least, 0.0), 3), round(max(most, 0.0), 3)),
        extra_run_count=plan.extra_run_count,
        measured_bytes=round(measured),
        measured_runs=rates.runs,
        writer="host" if study.guests is None else "node",
    )


class _WriteRates:
    """The write rates of finished runs over all hosts, by point and by likeness."""

    def __init__(self, plan: Plan, results: Iterable[RunResult]) -> None:
        points = {point.digest: point for point in plan.points}
        by_point: dict[str, list[float]] = {}
        by_likeness: dict[object, list[float]] = {}
        self.runs = 0
        for result in results:
            point = points.get(result.digest)
            rate = _write_bytes_per_s(result)
            if point is None or rate is None:
                continue
            self.runs += 1
            by_point.setdefault(point.digest, []).append(rate)
            by_likeness.setdefault(_similar_write_rate_key(point), []).append(rate)
        self._by_point = {key: fmean(rates) for key, rates in by_point.items()}
        self._by_likeness = {key: fmean(rates) for key, rates in by_likeness.items()}

    def write_bytes_per_s_of_point(self, point: Point) -> float | None:
        """The write rate of a point; None where no finished run is like it."""
        rate = self._by_point.get(point.digest)
        return rate if rate is not None else self._by_likeness.get(_similar_write_rate_key(point))


def _write_bytes_per_s(result: RunResult) -> float | None:
    if result.status is not RunStatus.DONE:
        return None
    metric = result.metrics.get(WRITE_RATE)
    return (metric.value or None) if metric is not None else None


def _similar_write_rate_key(point: Point) -> object:
    """A key that is equal for points that differ only in depth and jobs."""
    return point.configuration, point.per_node, point.host_count, point.job.similar_write_rate_key


class WriteForecaster:
    """Forecasts of the writes of a running session, from its finished runs."""

    def __init__(
        self, study: Study, plan: Plan, kinds: StudyKinds, results: Iterable[RunResult] = ()
    ) -> None:
        self._study, self._plan, self._kinds = study, plan, kinds
        self._results: list[RunResult] = []
        self._points = {point.digest: point for point in plan.points}
        self._known: set[object] = set()
        for result in results:
            self._add_and_tell_if_new_group(result)
        self._last = self.forecast()

    def forecast(self) -> WriteForecast:
        """The forecast by the runs so far."""
        return forecast_writes(self._study, self._plan, self._kinds, self._results)

    def add_result(self, result: RunResult) -> WriteForecast | None:
        """Add a finished run; returns the new forecast where nothing of it is open any more."""
        if not self._add_and_tell_if_new_group(result) or not self._last.depends_on_target_speed:
            return None
        self._last = self.forecast()
        is_over = len(self._results) >= len(self._plan.runs) + self._plan.extra_run_count
        return None if is_over or self._last.depends_on_target_speed else self._last

    def _add_and_tell_if_new_group(self, result: RunResult) -> bool:
        """Add the result; returns whether it is the first of points like its own."""
        point = self._points.get(result.digest)
        if point is None or _write_bytes_per_s(result) is None:
            return False
        self._results.append(result)
        likeness = _similar_write_rate_key(point)
        is_first = likeness not in self._known
        self._known.add(likeness)
        return is_first
