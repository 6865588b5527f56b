"""The kinds of statements that results make; each names the runs that it rests on."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from iolab.analyse.limits.decide import Decision
from iolab.analyse.limits.watched import Watched
from iolab.analyse.method.ratio import Verdict
from iolab.analyse.method.usl import Usl
from iolab.analyse.points import Axis
from iolab.model.metric import Level, Metric

RunKey = tuple[str, int]
"""A run: its point's digest and its repeat."""


@dataclass(frozen=True, slots=True)
class Best:
    """A configuration's best figure of a workload over all places of its axes.

    `level` is the worst verdict behind it. `alike` are other places whose interval reaches into
    that of the best: they may be as good. `places` is of how many it is the best, `invalid` how
    many more have a value that nothing may be said of.
    """

    configuration: str
    workload: str
    metric: str
    axis: Axis
    value: Metric
    level: Level
    alike: tuple[Axis, ...]
    places: int
    runs: tuple[RunKey, ...]
    invalid: int = 0


@dataclass(frozen=True, slots=True)
class Gained:
    """The largest gain of a candidate over the baseline that its interval supports.

    `share` is what a rate is higher by, or a latency lower by, as a share of the baseline's, with
    `low` and `high` of an interval that holds for all `cells` at once. `factor` is how many times
    as good the candidate is there, `level` the worst verdict behind it.
    """

    baseline: str
    candidate: str
    workload: str
    axis: Axis
    metric: str
    share: float
    low: float | None
    high: float | None
    factor: float
    cells: int
    level: Level
    runs: tuple[RunKey, ...]


@dataclass(frozen=True, slots=True)
class Tallied:
    """How a candidate's cells of one metric compare with the baseline's: how many of each verdict.

    `skipped` could not be compared.
    """

    baseline: str
    candidate: str
    metric: str
    verdicts: tuple[tuple[Verdict, int], ...]
    skipped: int
    runs: tuple[RunKey, ...]


@dataclass(frozen=True, slots=True)
class Crossed:
    """Two configurations each of which leads, by its interval, on a part of one axis of load.

    `below` leads at the load `last`, and `up_to` it where it does so at every lower one that was
    compared; `above` leads at the load `first`, and from it on where `on`. The shares are what each
    is better by at these loads, as shares of the other's; `level` is the worst verdict at the two.
    """

    below: str
    above: str
    workload: str
    metric: str
    axis: str
    fixed: Axis
    last: int
    first: int
    share_below: float
    share_above: float
    up_to: bool
    on: bool
    level: Level
    runs: tuple[RunKey, ...]


@dataclass(frozen=True, slots=True)
class Bent:
    """Where more load stops paying: from one load to the next the rate gains less than it costs.

    `rate` and `latency` are the ratios from `load` to `further`, of rates and of mean latencies;
    `single` where either rests on one run, `sure` where it holds at the worst ends of all four
    intervals; `level` is the worst verdict behind it.
    """

    configuration: str
    workload: str
    axis: str
    fixed: Axis
    load: int
    further: int
    rate: float
    latency: float
    single: bool
    sure: bool
    level: Level
    runs: tuple[RunKey, ...]


@dataclass(frozen=True, slots=True)
class Priced:
    """What a configuration gives for what: a best figure, or capacity, over its cost or its size.

    `per` is `1000 EUR`, `TB raw`, `TB usable` or `node`; `value` in the figure's unit for one of
    these. `rank` is its place among all configurations, from 1, of `of` that have both. `sure`
    where its interval lies above those of all that are ranked behind it. `level` is the worst
    verdict behind these, None of capacity.
    """

    configuration: str
    workload: str
    metric: str
    per: str
    value: float
    unit: str
    rank: int
    of: int
    sure: bool
    level: Level | None
    runs: tuple[RunKey, ...]


@dataclass(frozen=True, slots=True)
class Limited:
    """What limits a configuration's best of a workload, at the place `axis` of its axes.

    `seen` is what one run of it tells of its resources, `decision` what follows from that and from
    the load's last step. `law` describes the curve where nothing busy explains that it bends.
    """

    configuration: str
    workload: str
    axis: Axis
    decision: Decision
    seen: Watched
    law: Usl | None
    level: Level
    runs: tuple[RunKey, ...]


class Need(StrEnum):
    """What somebody may look for first."""

    CAPACITY = "capacity"
    BALANCE = "balance"
    PERFORMANCE = "performance"
    VALUE = "value"
    """Performance for its cost."""


@dataclass(frozen=True, slots=True)
class Side:
    """One side of a need, and how much of the best configuration's figure this one has.

    `name` is capacity, IOPS, bandwidth or operations; `share` is 1 for the best.
    """

    name: str
    share: float


@dataclass(frozen=True, slots=True)
class Suits:
    """The configuration that serves a need best, of `of` that could be held against each other.

    `lead` is how many times as good it is as `runner_up` by the need's measure: capacity, the
    geometric mean over `workloads`, or the least of its `sides`. `per` is what figures are for:
    `1000 EUR`, empty where no cost is given. Of capacity, `terabytes` is the figure and `metric`
    `usable_tb` or `raw_tb`. `sure` where its interval lies above those of all others, `single`
    where one of them rests on one run. `level` is the worst verdict behind it, None of capacity.
    """

    need: Need
    configuration: str
    runner_up: str
    lead: float
    per: str
    of: int
    sure: bool
    single: bool
    sides: tuple[Side, ...]
    workloads: tuple[str, ...]
    terabytes: float | None
    metric: str
    level: Level | None
    runs: tuple[RunKey, ...]


Finding = Best | Gained | Tallied | Crossed | Bent | Priced | Limited | Suits
