"""What a run used of its resources, and what keeps the best point of a load from more."""

from __future__ import annotations

import math
from collections.abc import Sequence
from enum import StrEnum
from typing import TYPE_CHECKING, Final

from msgspec.structs import replace

from iolab.analysis.busy import NEAR_LIMIT, is_rate_limiting_resource_near_full, is_resource_full
from iolab.analysis.points import REPLICATED, PointSummary
from iolab.core.resources import IoConcurrency, IssueRule, Resource, ResourceUse, RunResources
from iolab.core.run import RunKey
from iolab.core.study import REPEATS_FOR_INTERVAL
from iolab.record import Record

if TYPE_CHECKING:
    from iolab.stats.curve import UslFit

RESOURCES_ANALYSIS_VERSION: Final = 48
"""The version of the analysis since which the same record gives the same `run_resources`: what an
older one stored is made anew. Rises to that of the analysis when these change."""

WORTHWHILE_GAIN_SHARE: Final = 0.5
"""A load that is doubled should give more than the square root of two; less is waiting."""

STILL_RISING_GAIN: Final = 1.1
"""Rate after the last step of the load over that before it, from which no limit was met yet."""

USL_POINTS_MIN: Final = 4
"""The law has three parameters: any three points lie on one."""

REACHED_RATE_SHARE: Final = 0.99
"""Share of the rate asked for from which it was kept: the load was what was asked."""

LOAD_PART_MIN: Final = 0.1
"""Of full processors the part that the load's own jobs must use to be surely why they are full: the
kernel's threads may do as much again for them, hardly nine times as much."""

MOST_OF_LATENCY: Final = 0.5
"""Share of the latency from which a device is where the I/Os are, by Little's law."""

NEARLY_ALL_LATENCY: Final = 0.8
"""The same where processors are full, too: what is left of the latency may wait for these."""

ONE_RATE_SPREAD: Final = 0.003
"""Share of the highest rate of repeats within which others have the same rate. Three or more are
held by a set limit where other load fills the processors: what waits for these varies by per cents.
"""

QUEUE_KEPT: Final = 0.8
"""Share of the I/Os asked for that must be in flight: with fewer the engine does not keep up."""

_LIMITS_OUTSIDE: Final = (Resource.PORT, Resource.IO_LIMIT, Resource.DISK_LIMIT)
"""Limits beside which full processors are told: they may be full for another reason."""


class LoadStep(Record):
    """The step of one axis of load at the best point: to it from below, or from it to the next.

    `rate_ratio` is the ratio of the rates. `is_worthwhile` where it is at least the square
    root of the ratio of the loads; `is_certain` where that holds at the worse ends of both
    intervals, `has_single_runs` where either side rests on one run.
    """

    axis_name: str
    load: int
    next_load: int
    rate_ratio: float
    is_worthwhile: bool
    is_certain: bool
    has_single_runs: bool
    run_keys: tuple[RunKey, ...]


def load_step_of_best(
    curve: Sequence[PointSummary], best: PointSummary, axis_name: str, metric_key: str
) -> LoadStep | None:
    """The step that tells whether `best` has met a limit; None where the curve has one point.

    `curve` ascends in the load and holds `best`; `metric_key` is the metric that is best there.
    """
    index = next((at for at, point in enumerate(curve) if point is best), None)
    if index is None or len(curve) < 2:
        return None
    last = index == len(curve) - 1
    low, high = (curve[-2], curve[-1]) if last else (curve[index], curve[index + 1])
    before, after = low.metrics.get(metric_key), high.metrics.get(metric_key)
    if before is None or after is None or not before.value or not after.value:
        return None
    enough = WORTHWHILE_GAIN_SHARE * math.log(
        high.load_on_axis(axis_name) / low.load_on_axis(axis_name)
    )
    gain = after.value / before.value
    pays = math.log(gain) >= enough
    sure = False
    if before.low and before.high and after.low and after.high:
        worse = after.low / before.high if pays else after.high / before.low
        sure = (math.log(worse) >= enough) is pays
    return LoadStep(
        axis_name=axis_name,
        load=low.load_on_axis(axis_name),
        next_load=high.load_on_axis(axis_name),
        rate_ratio=gain,
        is_worthwhile=pays,
        is_certain=sure,
        has_single_runs=min(len(low.results), len(high.results)) < REPLICATED,
        run_keys=tuple(run.key for point in (low, high) for run in point.results),
    )


def usl_fit_of_curve(
    curve: Sequence[PointSummary], axis_name: str, metric_key: str
) -> UslFit | None:
    """The Universal Scalability Law of the curve; None unless every point lies on it."""
    measured = [
        (point.load_on_axis(axis_name), point.metrics[metric_key])
        for point in curve
        if metric_key in point.metrics
    ]
    bounded = [
        (load, metric.value, (metric.high - metric.low) / (2 * metric.value))
        for load, metric in measured
        if metric.value and metric.low is not None and metric.high is not None
    ]
    if len(bounded) < USL_POINTS_MIN or len(bounded) < len(curve):
        return None
    from iolab.stats.curve import fit_usl  # and numpy, which few results need for this alone

    loads, rates, widths = zip(*bounded, strict=True)
    law = fit_usl(loads, rates, widths)
    return law if law.fits_well else None


class BottleneckCause(StrEnum):
    """What a result is limited by."""

    DEVICE = "device"
    """Busy all the time, and more load no longer raises the rate."""
    DEVICE_OPEN = "device-or-depth"
    """Busy all the time, and nobody tried whether more load raises the rate."""
    PROCESSORS = "processors"
    CORE = "core"
    JOB = "job"
    PORT = "port"
    IO_LIMIT = "io-limit"
    """What control groups allow of the device."""
    DISK_LIMIT = "disk-limit"
    """What a hypervisor allows each guest's disk."""
    RATE = "rate"
    """The rate that was requested, and was kept."""
    PACE = "pace"
    """Time to think between I/Os."""
    ONE_AT_A_TIME = "one-at-a-time"
    """One I/O in flight on each host: the rate is one over the latency."""
    LOAD = "load"
    """The largest load that was requested still raised the rate: surely where by as much as
    doubled load should, else by `STILL_RISING_GAIN`."""
    ENGINE = "engine"
    """The engine kept fewer I/Os in flight than asked, with time to spare on every core."""
    SOFTWARE = "software"
    """More load no longer raises the rate, and nothing that it passes through is busy."""
    UNWATCHED_RATE_LIMIT = "unwatched-rate-limit"
    """Others filled the processors, and still the rate did not vary: a limit that was set."""
    BEYOND = "beyond"
    """The same where the storage itself was not watched."""
    NONE = "none"
    """Nothing watched was at its limit; nobody tried more load, or it told nothing for sure."""


WATCHED_RATE_LIMIT_CAUSES: Final = (
    BottleneckCause.IO_LIMIT,
    BottleneckCause.DISK_LIMIT,
    BottleneckCause.PORT,
)
"""Limits on a rate of which is known how much was used."""

RATE_LIMIT_CAUSES: Final = (*WATCHED_RATE_LIMIT_CAUSES, BottleneckCause.UNWATCHED_RATE_LIMIT)
"""Limits that hold repeats at one rate."""


class RepeatsOfRate(Record):
    """The rates of a point's repeats: how many there are, and those below a limit on the rate.

    `highest` is 0 of none. `has_one_rate` is whether most of them, and at least three, give the
    highest to within `ONE_RATE_SPREAD`.
    """

    count: int
    highest: float
    has_one_rate: bool
    rates_below_limit: tuple[float, ...]


def repeats_of_rate(rates: Sequence[float]) -> RepeatsOfRate:
    """What repeats tell of a limit: the highest of them are held by it, others fell short.

    Where less than half are at one rate, or near it, none is said to have fallen short.
    """
    highest = max(rates, default=0.0)
    below_one_rate, below_limit = (
        tuple(rate for rate in rates if rate < share * highest)
        for share in (1 - ONE_RATE_SPREAD, NEAR_LIMIT)
    )
    at_one_rate = len(rates) - len(below_one_rate)
    has_one_rate = at_one_rate >= REPEATS_FOR_INTERVAL and at_one_rate > len(below_one_rate)
    short = below_one_rate if has_one_rate else below_limit
    is_told = 2 * len(short) < len(rates)
    return RepeatsOfRate(len(rates), highest, has_one_rate, short if is_told else ())


class BottleneckDecision(Record):
    """What limits one point: `limiting_use` is the resource at its limit, `step` what load tells.

    `is_certain` where no interval speaks against it. `other_full_resources` are further resources
    at their limits. Of `repeats` some may have fallen short of a limit on the rate; None where the
    cause is no such limit.
    """

    cause: BottleneckCause
    is_certain: bool
    limiting_use: ResourceUse | None = None
    step: LoadStep | None = None
    other_full_resources: tuple[ResourceUse, ...] = ()
    repeats: RepeatsOfRate | None = None


def decide_bottleneck(
    resources: RunResources, step: LoadStep | None, repeat_rates: Sequence[float] = ()
) -> BottleneckDecision:
    """What the evidence supports; `step` is None where no other load was measured.

    `repeat_rates` are those of the point's repeats, whose median run `resources` are of; empty of
    what is no rate.
    """
    repeats = repeats_of_rate(repeat_rates)
    decision = _decide_by_run(resources, step, is_at_one_rate=repeats.has_one_rate)
    is_rate_limit = decision.cause in RATE_LIMIT_CAUSES
    return replace(decision, repeats=repeats) if is_rate_limit and repeats.count else decision


def _decide_by_run(
    resources: RunResources, step: LoadStep | None, *, is_at_one_rate: bool
) -> BottleneckDecision:
    """By what one run used; `is_at_one_rate` is whether most repeats gave one rate."""
    flight = resources.concurrency
    if flight is not None and flight.issue_rule is not IssueRule.CLOSED:
        paced = _rate_or_pace_cause(flight)
        if paced is not None:
            return BottleneckDecision(paced, is_certain=True)
    limiting, excused = _limiting_resources_and_excused_processors(resources, step)
    device = _saturated_device(resources)
    near = _most_used_rate_limit_if_near_full(resources)
    if limiting and near is not None and _is_processor_use_mostly_of_others(limiting[0]):
        # Processors that others fill explain less than a limit of which hardly any is left.
        limiting, excused = (), limiting
    if limiting:
        # A core that is full with all others is nothing more; beside a port or a limit they are.
        is_outside = limiting[0].resource in _LIMITS_OUTSIDE
        also = (*limiting[1:], *excused)[:1] if is_outside else ()
        sure = not _is_processor_use_mostly_of_others(limiting[0])
        if not sure and is_at_one_rate:
            return BottleneckDecision(
                BottleneckCause.UNWATCHED_RATE_LIMIT, is_certain=False, limiting_use=limiting[0]
            )
        return BottleneckDecision(
            _CAUSES[limiting[0].resource],
            is_certain=sure,
            limiting_use=limiting[0],
            other_full_resources=also,
        )
    if near is not None and not _is_rate_still_rising(step):
        return BottleneckDecision(
            _CAUSES[near.resource],
            is_certain=False,
            limiting_use=near,
            step=step,
            other_full_resources=excused[:1],
        )
    alone = step is None and flight is not None and flight.has_one_per_job
    if (
        device is not None
        and not alone
        and not _is_rate_still_rising(step)
        and _can_devices_explain_latency(resources)
    ):
        return _decide_device_bottleneck(device, step, excused)
    return _decide_without_full_resource(resources, step, device, excused)


def _decide_device_bottleneck(
    device: ResourceUse | None, step: LoadStep | None, other_full_resources: tuple[ResourceUse, ...]
) -> BottleneckDecision:
    if step is None:
        return BottleneckDecision(
            BottleneckCause.DEVICE_OPEN,
            is_certain=False,
            limiting_use=device,
            other_full_resources=other_full_resources,
        )
    return BottleneckDecision(
        BottleneckCause.DEVICE,
        is_certain=step.is_certain,
        limiting_use=device,
        step=step,
        other_full_resources=other_full_resources,
    )


def _decide_without_full_resource(
    resources: RunResources,
    step: LoadStep | None,
    device: ResourceUse | None,
    full_processors: tuple[ResourceUse, ...],
) -> BottleneckDecision:
    """Where no resource is at its limit: the load that was requested, or what cannot be seen."""
    flight, nearest = resources.concurrency, resources.busiest_use(Resource.DEVICE)
    if flight is not None and flight.issue_rule is IssueRule.CLOSED:
        if flight.reached_depth_share < QUEUE_KEPT and full_processors:
            return BottleneckDecision(
                BottleneckCause.PROCESSORS, is_certain=True, limiting_use=full_processors[0]
            )
        if flight.reached_depth_share < QUEUE_KEPT:
            return BottleneckDecision(BottleneckCause.ENGINE, is_certain=True, step=step)
        if flight.has_one_per_job and (step is None or step.is_worthwhile):
            return BottleneckDecision(
                BottleneckCause.ONE_AT_A_TIME,
                is_certain=True,
                limiting_use=device,
                step=step,
                other_full_resources=full_processors,
            )
    if step is None and full_processors:
        return _decide_device_bottleneck(nearest, None, full_processors)
    if step is None:
        return BottleneckDecision(BottleneckCause.NONE, is_certain=False, limiting_use=device)
    are_ios_at_device = nearest is not None and _do_devices_take_latency_share(resources)
    # Waiting grows, but so does the rate: a limit that nobody has seen is none.
    is_known_rise = step.is_worthwhile or step.is_certain or are_ios_at_device
    if is_known_rise and _is_rate_still_rising(step):
        return BottleneckDecision(
            BottleneckCause.LOAD,
            is_certain=step.is_worthwhile and step.is_certain,
            limiting_use=device,
            step=step,
            other_full_resources=full_processors,
        )
    if are_ios_at_device:
        # I/Os are at a device that was not busy all the time, as one that is slowed down in turns.
        return BottleneckDecision(
            BottleneckCause.DEVICE,
            is_certain=False,
            limiting_use=nearest,
            step=step,
            other_full_resources=full_processors,
        )
    if not step.is_certain:
        return BottleneckDecision(BottleneckCause.NONE, is_certain=False, step=step)
    return BottleneckDecision(
        BottleneckCause.SOFTWARE if resources.is_storage_monitored else BottleneckCause.BEYOND,
        is_certain=True,
        step=step,
    )


def _is_processor_use_mostly_of_others(resource_use: ResourceUse) -> bool:
    """Whether processors are full of what is hardly the load's: it may wait for these, or not."""
    known = (
        resource_use.resource is Resource.PROCESSORS
        and resource_use.own_load_share is not None
        and resource_use.share is not None
    )
    return known and (resource_use.own_load_share or 0.0) < LOAD_PART_MIN * (
        resource_use.share or 0.0
    )


def _rate_or_pace_cause(concurrency: IoConcurrency) -> BottleneckCause | None:
    """The pace where that was kept; a rate that was not kept met another limit."""
    if concurrency.target_rate is None:
        # A rate of requests that are made of I/Os: checks tell whether it was kept.
        is_rate = concurrency.issue_rule is IssueRule.RATE
        return BottleneckCause.RATE if is_rate else BottleneckCause.PACE
    return (
        BottleneckCause.RATE
        if concurrency.rate >= REACHED_RATE_SHARE * concurrency.target_rate
        else None
    )


def _limiting_resources_and_excused_processors(
    resources: RunResources, step: LoadStep | None
) -> tuple[tuple[ResourceUse, ...], tuple[ResourceUse, ...]]:
    """Resources whose limit is a hard one, the strongest evidence first; and full processors aside.

    Others may use the processors, too: while nearly all of the latency is spent at devices, the
    load does not wait for them. A job that uses a whole core does.
    """
    limiting, excused = [], []
    for resource in _CAUSES:
        use = resources.busiest_use(resource)
        if use is None or not is_resource_full(resource, use.share):
            continue
        if resource is Resource.PROCESSORS and _do_devices_take_latency_share(
            resources, NEARLY_ALL_LATENCY
        ):
            excused.append(use)
        elif resource is not Resource.CORE or not (
            _is_worthwhile_step(step) or _do_devices_take_latency_share(resources)
        ):
            limiting.append(use)
    return tuple(limiting), tuple(excused)


def _most_used_rate_limit_if_near_full(resources: RunResources) -> ResourceUse | None:
    """The limit on a rate that was used most, where hardly more was left of it."""
    uses = [use for use in map(resources.busiest_use, _CAUSES) if use is not None]
    near = [use for use in uses if is_rate_limiting_resource_near_full(use.resource, use.share)]
    return max(near, key=lambda use: use.share or 0.0, default=None)


_CAUSES: Final = {
    Resource.DISK_LIMIT: BottleneckCause.DISK_LIMIT,
    Resource.IO_LIMIT: BottleneckCause.IO_LIMIT,
    Resource.PORT: BottleneckCause.PORT,
    Resource.JOB: BottleneckCause.JOB,
    Resource.PROCESSORS: BottleneckCause.PROCESSORS,
    Resource.CORE: BottleneckCause.CORE,
}
"""Of resources whose limit is a hard one, the strongest evidence first."""


def _saturated_device(resources: RunResources) -> ResourceUse | None:
    """The busiest device where it is always busy; memory is none, its work is the processors'."""
    use = None if resources.memory_backed else resources.busiest_use(Resource.DEVICE)
    return use if use is not None and is_resource_full(Resource.DEVICE, use.share) else None


def _do_devices_take_latency_share(
    resources: RunResources, min_share: float = MOST_OF_LATENCY
) -> bool:
    """Whether devices take that share of the latency by themselves, and not by the processors."""
    at_device = (
        None if resources.concurrency is None else resources.concurrency.device_latency_share
    )
    return at_device is not None and at_device >= min_share and not resources.memory_backed


def _can_devices_explain_latency(resources: RunResources) -> bool:
    """Whether nothing says that the I/Os wait elsewhere than at the devices."""
    at_device = (
        None if resources.concurrency is None else resources.concurrency.device_latency_share
    )
    return at_device is None or at_device >= MOST_OF_LATENCY


def _is_rate_still_rising(step: LoadStep | None) -> bool:
    return step is not None and (step.is_worthwhile or step.rate_ratio >= STILL_RISING_GAIN)


def _is_worthwhile_step(step: LoadStep | None) -> bool:
    return step is not None and step.is_worthwhile
