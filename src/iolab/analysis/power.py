"""What a run took of power, by each meter, and what it did with a joule.

Only means over the whole measured window count, of every machine that carries the target. Meters of
different boundaries are never added. Of several meters of one machine at a boundary one counts: the
first by name that the study describes, else the first that its kernel has. RAPL's packages are
added, because each is another processor, and meters that have the names of drives.

A meter shows a load some time after it began. The idle readings before the load tell by how much,
where the study lets machines idle (`[meters] idle`); the window is then shifted by that lag.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from typing import Final

import numpy as np
from msgspec.structs import replace

from iolab.analysis.storage_bytes import names_of_devices_on_no_other
from iolab.analysis.view import RunView
from iolab.analysis.window import Window, to_controller_clock_ns
from iolab.core.metric import Metric, PowerUse
from iolab.core.metric_spec import OPS_PER_S
from iolab.core.power import (
    MILLIWATTS_PER_WATT,
    NAME_SEPARATOR,
    REPORTED_BOUNDARIES,
    PowerBoundary,
    is_meter_summable,
    meters_to_sum_for_machine,
)
from iolab.core.run import IdleSpan
from iolab.core.samples import Floats, Ints
from iolab.hosts.counter_names import METERS
from iolab.record import Record
from iolab.stats.batches import batch_statistics_by_size, widest_variance_of_mean
from iolab.units import NS_PER_S, format_duration_s

BYTES_PER_GB: Final = 1e9

SAMPLES_MIN: Final = 10
"""Readings that a window must have: with fewer the meter is as slow as the run."""

BATCHES_MIN: Final = 8
"""Batches whose spread gives an interval of the mean."""

LEVELS_MIN: Final = 8
"""Different readings of which the closest two are a step of the meter apart."""

IDLE_SAMPLES_MIN: Final = 3
"""Readings before and after the load that a mean of idle must have."""

LAG_MARGIN: Final = 1.25
"""A meter falls about as late as it rises: readings of idle count only after so many lags. Chosen:
a lag of a few periods is known to a quarter, and two periods are waited beside."""

RISE_SPREADS: Final = 6.0
"""A load shows on a meter where it lies above idle by so many of idle's standard deviations: of
normal noise one reading in 10^9 does, and of any noise fewer than one in 36 (Chebyshev)."""

RISE_SHARE: Final = 0.01
"""And by more than this share of idle."""

NET_HALF_WIDTHS: Final = 3.0
"""The load less idle must be so many half-widths of 95 %: less is noise, and the net figures, which
are quotients by it, would have intervals of more than a third to both sides."""

IDLE_DRIFT_SHARE: Final = 0.02
"""By more than this idle may not differ before and after the load: heat, fans, a neighbour. A BMC
is accurate to 2 % at best, so that less is no more than it."""

DRIFT_ERRORS: Final = 3.0
"""And by more than so many standard errors."""

GAP_PERIODS: Final = 3.0
"""A meter that is silent for more than so many of its periods has no mean."""

STEP_READINGS: Final = 20
STEP_LEVELS_MIN: Final = 6
"""Different ones among so many readings in a row, of which a step is told."""

STEP_CHANGE: Final = 5.0
"""Steps so many times as large are another range of the meter: by chance six levels are all
multiples of it once in 5^6, which is fewer than one in ten thousand."""

STUCK_READINGS: Final = 20
"""So many readings that are all the same while the load came and went are of no live meter."""


class MeterSeries(Record, dict=True):
    """What one meter of a host showed: watts at moments of the controller's clock, in order."""

    host: str
    meter: str
    boundary: PowerBoundary
    at_ns: Ints
    watts: Floats
    load_begin_ns: int | None
    load_end_ns: int | None
    idle_spans: tuple[IdleSpan, ...]

    @cached_property
    def period_s(self) -> float | None:
        """The usual time between two readings; None of fewer than two."""
        return float(np.median(np.diff(self.at_ns))) / NS_PER_S if self.at_ns.size > 1 else None

    @property
    def step_w(self) -> float | None:
        """The least by which two readings differ; None of too few levels to tell."""
        levels = np.unique(self.watts)
        return float(np.diff(levels).min()) if levels.size >= LEVELS_MIN else None

    @property
    def smallest_and_largest_step_w(self) -> tuple[float, float] | None:
        """The least and the largest step in which the meter counted; None where it kept to one.

        A step is what all of some readings in a row are multiples of.
        """
        milliwatts = np.rint(self.watts * MILLIWATTS_PER_WATT).astype(np.int64)
        starts = range(0, milliwatts.size - STEP_READINGS + 1, STEP_READINGS)
        parts = (milliwatts[start : start + STEP_READINGS] for start in starts)
        levels = (np.unique(part) for part in parts)
        steps = [np.gcd.reduce(each) for each in levels if each.size >= STEP_LEVELS_MIN]
        if not steps or max(steps) < STEP_CHANGE * min(steps):
            return None
        return float(min(steps)) / MILLIWATTS_PER_WATT, float(max(steps)) / MILLIWATTS_PER_WATT

    @property
    def title(self) -> str:
        """The meter with its host."""
        return f"{self.meter} of {self.host}"

    @property
    def has_constant_readings(self) -> bool:
        """Whether it showed the same throughout, from before the load until after it.

        A meter that shows fractions never repeats itself so long; one of whole watts may, so that
        it counts only where it was read while the load began or ended.
        """
        begin, end, at = self.load_begin_ns, self.load_end_ns, self.at_ns
        if begin is None or end is None or at.size < STUCK_READINGS:
            return False
        around = bool((at < begin).any() or (at > end).any()) and bool(
            ((at > begin) & (at < end)).any()
        )
        return around and bool((self.watts == self.watts[0]).all())

    def idle_readings_before(self, lag_s: float = 0.0) -> Floats:
        """The readings of idle before the load, without those that show what came before it."""
        spans = [span for span in self.idle_spans if span.end_real_ns <= (self.load_begin_ns or 0)]
        return self._readings_of_first_span(spans[:1], lag_s)

    def idle_readings_after(self, lag_s: float) -> Floats:
        """The readings of idle after the load, once the meter shows that it has ended."""
        spans = [span for span in self.idle_spans if span.start_real_ns >= (self.load_end_ns or 0)]
        return self._readings_of_first_span(spans[-1:], lag_s)

    def _readings_of_first_span(self, spans: Sequence[IdleSpan], lag_s: float) -> Floats:
        late_s = LAG_MARGIN * lag_s + 2 * (self.period_s or 0.0)
        for span in spans:
            start_ns = span.start_real_ns + round(late_s * NS_PER_S)
            return self.watts[(self.at_ns >= start_ns) & (self.at_ns <= span.end_real_ns)]
        return self.watts[:0]

    def readings_in_window(self, window: Window, lag_s: float) -> Floats:
        """The readings of the window, which the meter shows so much later."""
        shift = round(lag_s * NS_PER_S)
        at = self.at_ns - shift
        return self.watts[(at >= window.start_ns) & (at <= window.end_ns)]

    @cached_property
    def lag_s(self) -> float | None:
        """How long after the load began the meter stood halfway to it; None where none can tell.

        Known to a period: the crossing lies between two readings.
        """
        before, begin, end = self.idle_readings_before(), self.load_begin_ns, self.load_end_ns
        if before.size < IDLE_SAMPLES_MIN or begin is None or end is None:
            return None
        loaded = self.watts[(self.at_ns > (begin + end) // 2) & (self.at_ns <= end)]
        if not loaded.size:
            return None
        idle, level = float(before.mean()), float(np.median(loaded))
        if level - idle <= max(RISE_SPREADS * float(before.std()), RISE_SHARE * idle):
            return None
        after = np.flatnonzero((self.at_ns >= begin) & (self.watts >= (idle + level) / 2))
        if not after.size:
            return None
        crossing = int(self.at_ns[after[0]])
        last_below = int(self.at_ns[after[0] - 1]) if after[0] else crossing
        return max((crossing + max(last_below, begin)) / 2 - begin, 0.0) / NS_PER_S


def meter_series(view: RunView) -> Iterator[MeterSeries]:
    """Every meter of the run's hosts and of those that were watched beside them."""
    offsets = {host.host: host.clock_offset_ns for host in view.hosts}
    offsets |= {host.host: host.clock_offset_ns for host in view.record.monitored_hosts}
    begin, end = _load_begin_and_end_ns(view)
    for name in offsets:
        for series in view.counter_series(name, METERS, "watts"):
            boundary, _, meter = series.name.partition(NAME_SEPARATOR)
            known = boundary in {each.value for each in PowerBoundary}
            at_ns = to_controller_clock_ns(series.real_ns - series.span_ns // 2, offsets[name])
            yield MeterSeries(
                name,
                meter or series.name,
                PowerBoundary(boundary) if known else PowerBoundary.PART,
                at_ns,
                series.value,
                begin,
                end,
                view.record.idle_spans,
            )


def _load_begin_and_end_ns(view: RunView) -> tuple[int | None, int | None]:
    """When the first host's load began and the last one's ended, on the controller's clock."""
    spans = [span for span in view.load.measured_part.whole_run_windows if span is not None]
    begin = min((span.start_ns for span in spans), default=None)
    return begin, max((span.end_ns for span in spans), default=None)


def power_use_of_each_meter(view: RunView) -> tuple[PowerUse, ...]:
    """What each meter showed in the run, in the order of hosts and names; which of them count."""
    window = view.load.measured_part.common_window
    uses = tuple(_power_use_of_meter(series, window) for series in meter_series(view))
    counted = [
        use
        for boundary in REPORTED_BOUNDARIES
        for use in _power_uses_to_sum_over_machines(view, uses, boundary)
    ]
    return tuple(replace(use, is_counted=True) if use in counted else use for use in uses)


def _power_use_of_meter(series: MeterSeries, window: Window | None) -> PowerUse:
    lag_s = series.lag_s
    use = PowerUse(
        host=series.host,
        meter=series.meter,
        boundary=series.boundary,
        period_s=series.period_s,
        step_w=series.step_w,
        lag_s=lag_s,
    )
    reason = missing_mean_power_reason(series, window)
    if window is None or reason:
        return replace(use, reason=reason)
    watts = _mean_watts(series.readings_in_window(window, lag_s or 0.0), series.step_w)
    use = replace(use, watts=watts, energy_j=(watts.value or 0.0) * window.seconds)
    before, after = (
        series.idle_readings_before(lag_s or 0.0),
        series.idle_readings_after(lag_s or 0.0),
    )
    if min(before.size, after.size) < IDLE_SAMPLES_MIN:
        return replace(use, idle_reason="idle was not measured before and after the load")
    idle_w = _mean_watts(np.concatenate((before, after)), series.step_w)
    use = replace(use, idle_w=idle_w)
    if idle_power_drift_w(series):
        reason = f"idle was {before.mean():.3g} W before the load and {after.mean():.3g} W after it"
        return replace(use, idle_reason=reason)
    return replace(use, idle_reason=_no_net_power_reason(watts, idle_w))


def missing_mean_power_reason(series: MeterSeries, window: Window | None) -> str:
    """Why a meter tells no mean over the measured window; "" where it does."""
    if window is None:
        return "the hosts have no window in common"
    period_s = series.period_s
    if series.has_constant_readings:
        return f"the meter showed {series.watts[0]:g} W throughout"
    readings = series.readings_in_window(window, series.lag_s or 0.0)
    if readings.size < SAMPLES_MIN or period_s is None:
        text = f"the meter showed {readings.size} readings in the measured window"
        if period_s is None:
            return text
        return f"{text}: a run of {format_duration_s(SAMPLES_MIN * period_s)} or more would do"
    lag_s = series.lag_s or 0.0
    at_ns = series.at_ns - round(lag_s * NS_PER_S)
    inside = at_ns[(at_ns >= window.start_ns) & (at_ns <= window.end_ns)]
    gaps_s = np.diff(inside, prepend=window.start_ns, append=window.end_ns) / NS_PER_S
    gaps_s[-1] -= lag_s  # where machines do not idle after the load, no meter is read then
    longest_s = float(gaps_s.max())
    if longest_s > GAP_PERIODS * period_s:
        silence = format_duration_s(longest_s)
        return f"the meter was silent for {silence} of {window.seconds:.0f} s"
    return ""


def _mean_watts(readings: Floats, step_w: float | None) -> Metric:
    """The mean with an interval of chance, widened by half a step of the meter."""
    mean = float(readings.mean())
    sizes = batch_statistics_by_size(readings, BATCHES_MIN)
    if not sizes:
        return Metric(mean, "W")
    reach = widest_variance_of_mean(sizes).half_width_95 + (step_w or 0.0) / 2
    return Metric(mean, "W", max(mean - reach, 0.0), mean + reach, int(readings.size))


def idle_power_drift_w(series: MeterSeries) -> float | None:
    """By how much idle differs before and after the load, 0 where it may be chance.

    None where it was not measured both times.
    """
    lag_s = series.lag_s or 0.0
    before, after = series.idle_readings_before(lag_s), series.idle_readings_after(lag_s)
    if min(before.size, after.size) < IDLE_SAMPLES_MIN:
        return None
    drift_w = abs(float(after.mean()) - float(before.mean()))
    error_w = float(np.sqrt(before.var() / before.size + after.var() / after.size))
    limit_w = max(IDLE_DRIFT_SHARE * float(before.mean()), DRIFT_ERRORS * error_w)
    return drift_w if drift_w > limit_w else 0.0


def _no_net_power_reason(watts: Metric, idle_w: Metric) -> str:
    """Why the load's power less idle's says nothing; "" where it does."""
    net = (watts.value or 0.0) - (idle_w.value or 0.0)
    reach = sum((each.high or 0.0) - (each.value or 0.0) for each in (watts, idle_w) if each.high)
    if net > NET_HALF_WIDTHS * reach:
        return ""
    if net < -NET_HALF_WIDTHS * reach:
        return f"the load took {-net:.3g} W less than idle"
    way = "less" if net < 0 else "more"
    return f"the load took {abs(net):.3g} W {way} than idle, which is no more than noise"


def power_metrics_of_all_boundaries(
    uses: Sequence[PowerUse], rate_metrics: Mapping[str, Metric]
) -> dict[str, Metric]:
    """The metrics of power beside those of a result; none of a boundary that not all have."""
    found: dict[str, Metric] = {}
    for boundary in REPORTED_BOUNDARIES:
        counted = [use for use in uses if use.boundary is boundary and use.is_counted]
        if counted:
            found |= _power_metrics_of_boundary(boundary, counted, rate_metrics)
    return found


def _power_uses_to_sum_over_machines(
    view: RunView, uses: Sequence[PowerUse], boundary: PowerBoundary
) -> list[PowerUse]:
    """The meters that count of each machine: storage nodes and hypervisors where one is metered.

    Empty where one of the machines has none, or one without a mean.
    """
    at_boundary: dict[str, list[PowerUse]] = {}
    for use in uses:
        if use.boundary is boundary:
            at_boundary.setdefault(use.host, []).append(use)
    counted = {
        host: _power_uses_to_sum_for_machine(boundary, of_host, _target_drives(view, host))
        for host, of_host in at_boundary.items()
    }
    monitored = [host.host for host in view.record.monitored_hosts]
    is_any_metered = any(counted.get(name) for name in monitored)
    names = monitored if is_any_metered else [host.host for host in view.hosts]
    if not all(counted.get(name) for name in names):
        return []
    return [use for name in names for use in counted[name]]


def _target_drives(view: RunView, host_name: str) -> frozenset[str]:
    """The devices at the bottom of a host's target; empty where they are not known."""
    facts = next((view.facts_of_host(each) for each in view.hosts if each.host == host_name), None)
    if facts is None or facts.target is None:
        return frozenset()
    return frozenset(names_of_devices_on_no_other(facts.target.devices, facts))


def _power_uses_to_sum_for_machine(
    boundary: PowerBoundary, uses: Sequence[PowerUse], target_drives: frozenset[str]
) -> list[PowerUse]:
    """Of one machine's meters at one boundary those that count; empty where none has a mean.

    One without a mean gives way to another, but a sum of packages or drives needs each of them: of
    drives those below the target.
    """
    named = {
        use.meter: use
        for use in uses
        if use.watts is not None or is_meter_summable(boundary, use.meter)
    }
    counted = [named[name] for name in meters_to_sum_for_machine(boundary, [*named])]
    if boundary is PowerBoundary.DRIVE and any(
        is_meter_summable(boundary, use.meter) for use in counted
    ):
        if not target_drives <= named.keys():
            return []
        counted = [use for use in counted if use.meter in target_drives or not target_drives]
    return counted if all(use.watts is not None for use in counted) else []


def _power_metrics_of_boundary(
    boundary: PowerBoundary, uses: Sequence[PowerUse], rate_metrics: Mapping[str, Metric]
) -> dict[str, Metric]:
    watts = _metric_sum([use.watts for use in uses])
    key = f"{boundary.value}_"
    found = {f"{key}power_w": watts}
    powers = {"": watts}
    if all(use.idle_w is not None and not use.idle_reason for use in uses):
        powers["net_"] = _net_watts(watts, _metric_sum([use.idle_w for use in uses]))
    for net, power in powers.items():
        rate = rate_metrics.get("iops") or rate_metrics.get(OPS_PER_S)
        moved = rate_metrics.get("bw_bytes_per_s")
        if rate is not None and rate.value:
            found[f"{key}{net}ops_per_j"] = _metric_quotient(rate, power, "ops/J")
        if moved is not None and moved.value:
            gb = Metric(
                moved.value / BYTES_PER_GB, "GB/s", *_scaled_interval_and_n(moved, 1 / BYTES_PER_GB)
            )
            found[f"{key}{net}j_per_gb"] = _metric_quotient(power, gb, "J/GB")
    return found


def _metric_sum(parts: Sequence[Metric | None]) -> Metric:
    """The sum of independent means; its interval where each has one."""
    known = [part for part in parts if part is not None]
    total = sum(part.value or 0.0 for part in known)
    if any(part.high is None for part in known):
        return Metric(total, "W")
    reach = float(np.hypot.reduce([(part.high or 0.0) - (part.value or 0.0) for part in known]))
    return Metric(total, "W", total - reach, total + reach, min(part.n or 0 for part in known))


def _net_watts(watts: Metric, idle_w: Metric) -> Metric:
    net = (watts.value or 0.0) - (idle_w.value or 0.0)
    if watts.high is None or idle_w.high is None:
        return Metric(net, "W")
    reach = float(np.hypot(watts.high - (watts.value or 0), idle_w.high - (idle_w.value or 0)))
    return Metric(net, "W", net - reach, net + reach, watts.n)


def _metric_quotient(numerator: Metric, denominator: Metric, unit: str) -> Metric:
    """A quotient of independent means, its relative half-widths added as squares (delta method).

    Its interval is known where both have one.
    """
    value = (numerator.value or 0.0) / (denominator.value or 1.0)
    upper_share, lower_share = _relative_half_width(numerator), _relative_half_width(denominator)
    if upper_share is None or lower_share is None:
        return Metric(value, unit)
    reach = value * float(np.hypot(upper_share, lower_share))
    return Metric(value, unit, max(value - reach, 0.0), value + reach, numerator.n or denominator.n)


def _relative_half_width(metric: Metric) -> float | None:
    if metric.low is None or metric.high is None or not metric.value:
        return None
    return (metric.high - metric.low) / 2 / abs(metric.value)


def _scaled_interval_and_n(
    metric: Metric, factor: float
) -> tuple[float | None, float | None, int | None]:
    if metric.low is None or metric.high is None:
        return None, None, None
    return metric.low * factor, metric.high * factor, metric.n
