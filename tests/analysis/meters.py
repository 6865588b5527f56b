"""Courses of power meters around the load of a record of the tests: idle, the load, idle."""

from __future__ import annotations

from typing import Any, Final

import numpy as np
from msgspec.structs import replace

from iolab.core.run import IdleSpan, RunRecord
from iolab.hosts.rates import CounterSeries
from tests.analysis.records import SECOND, view_of

IDLE_S: Final = 20


def load_times_ns(record: RunRecord) -> tuple[int, int]:
    """When the first host's load began and the last one's ended, on the controller's clock."""
    spans = [
        span for span in view_of(record).load.measured_part.whole_run_windows if span is not None
    ]
    return min(span.start_ns for span in spans), max(span.end_ns for span in spans)


def idling(record: RunRecord, after_s: int = IDLE_S) -> RunRecord:
    """The record of machines that idled before and after the load."""
    begin, end = load_times_ns(record)
    before = IdleSpan(begin - IDLE_S * SECOND, begin - SECOND)
    return replace(record, idle_spans=(before, IdleSpan(end, end + after_s * SECOND)))


def meter_readings(
    record: RunRecord,
    host: str = "c1",
    *,
    name: str = "node:bmc",
    idle_w: float = 100.0,
    load_w: float = 150.0,
    after_w: float | None = None,
    lag_s: float = 0.0,
    every_s: float = 1.0,
    noise_w: float = 0.5,
    steps_w: tuple[float, float] | None = None,
) -> CounterSeries:
    """What a meter shows that is read so often, of a load that takes `load_w` from begin to end.

    It shows all `lag_s` later; `after_w` is idle after the load, `idle_w` unless given. `steps_w`
    are those in which it counts idle before the load, and all after.
    """
    begin, end = load_times_ns(record)
    step = round(every_s * SECOND)
    at = np.arange(begin - IDLE_S * SECOND, end + (IDLE_S + 2 * round(lag_s)) * SECOND, step)
    shown = at - round(lag_s * SECOND)
    watts = np.where(shown < begin, idle_w, load_w).astype(np.float64)
    watts[shown > end] = idle_w if after_w is None else after_w
    watts += noise_w * np.random.default_rng(1).standard_normal(at.size)
    if steps_w is not None:
        step_w = np.where(shown < begin, *steps_w)
        watts = np.rint(watts / step_w) * step_w
    return CounterSeries(host, "power", name, "watts", at, watts, np.zeros_like(at))


def metered(record: RunRecord, **changes: Any) -> tuple[CounterSeries, ...]:
    """A meter of each of the record's hosts."""
    return tuple(meter_readings(record, host.host, **changes) for host in record.hosts)
