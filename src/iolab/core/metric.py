"""What analysis says of a run: metrics with unit and interval, checks, and the verdict."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from enum import StrEnum
from typing import Final

from msgspec import field
from msgspec.structs import replace

from iolab.core.host_name import HostName
from iolab.core.power import PowerBoundary
from iolab.core.resources import RunResources
from iolab.core.run import RunKey, RunStatus
from iolab.core.stopping import Steadiness
from iolab.core.workload import Direction
from iolab.record import Record

Evidence = Mapping[str, int | float | str | bool | None]

NOT_APPLICABLE: Final = "n/a"
"""In place of a level's word, for a check that did not look."""

CAUSES: Final = ("event-unwitnessed",)
"""Checks whose findings make others object: the events that follow are left out, and phases last
until their limit."""

WIDEST_INTERVAL: Final = 0.5
"""The share of its value that an interval may span and still say where the value is."""

SYNC: Final = "sync"
"""How keys begin of what fsync and its kin take."""


class VerdictLevel(StrEnum):
    """How far a result can be trusted; as a check's level, how far the check lets it go."""

    VALID = "valid"
    INDICATIVE = "indicative"
    INVALID = "invalid"

    @property
    def rank(self) -> int:
        """0 for valid, 1 for indicative, 2 for invalid: the worst check decides."""
        return _RANKS[self]


_RANKS: Final = {level: rank for rank, level in enumerate(VerdictLevel)}


def worst_verdict_level(verdict_levels: Iterable[VerdictLevel]) -> VerdictLevel:
    """The worst of them; valid where there is none."""
    return max(verdict_levels, key=lambda level: level.rank, default=VerdictLevel.VALID)


class Metric(Record):
    """A number with its unit; low, high and n are None where no interval is known.

    A value with low and high but without n is read from a bin that reaches from low to high.
    """

    value: float | None
    unit: str
    low: float | None = None
    high: float | None = None
    n: int | None = None

    @property
    def has_bin_edge_interval(self) -> bool:
        """Whether low and high are the edges of a coarse bin, and no interval of chance."""
        is_complete = self.low is not None and self.high is not None and self.value is not None
        return is_complete and self.n is None

    @property
    def displayable_interval(self) -> tuple[float, float] | None:
        """Low and high as far as they are worth showing; None where they are too wide.

        Two runs alone give such a width; where many points pool their spread two may be enough. The
        edges of a bin always are, and `n` of 0 is a prediction, which has no runs.
        """
        if self.value is None or self.low is None or self.high is None:
            return None
        wide = self.n and self.high - self.low > WIDEST_INTERVAL * abs(self.value)
        return None if wide else (self.low, self.high)

    @property
    def relative_half_width(self) -> float | None:
        """Half of what the interval of chance spans, as a share of the value; None without one."""
        ends = self.displayable_interval
        if ends is None or self.has_bin_edge_interval or not self.value:
            return None
        return (ends[1] - ends[0]) / 2 / abs(self.value)

    @property
    def has_uninformative_interval(self) -> bool:
        """Whether there is an interval, and it is not worth showing."""
        has_ends = self.low is not None and self.high is not None
        return has_ends and self.value is not None and self.displayable_interval is None


def direction_keys_with_latency(metrics: Mapping[str, Metric]) -> tuple[str, ...]:
    """The directions of I/O of which a latency is known, as their keys begin: `read`, `write`.

    Beside writes there may be `sync`, what makes them durable.
    """
    names = (*(direction.key for direction in Direction), SYNC)
    means = ((name, metrics.get(f"{name}_lat_ns_mean")) for name in names)
    return tuple(name for name, mean in means if mean is not None and mean.value is not None)


class CheckResult(Record):
    """What one check says: its code, how far it lets the result go, a sentence, the evidence.

    `level` is None (n/a) where the check does not apply, or nothing here could tell it: then it
    neither supports the result nor weakens it.
    """

    code: str
    level: VerdictLevel | None
    message: str
    evidence: Evidence = field(default_factory=dict)

    @property
    def rank(self) -> int:
        """That of the level, and -1 for a check that did not look."""
        return -1 if self.level is None else self.level.rank

    @property
    def level_text(self) -> str:
        """The level's word, or n/a."""
        return NOT_APPLICABLE if self.level is None else self.level.value


class Verdict(Record):
    """The worst level of all checks that looked, with every check that was asked."""

    level: VerdictLevel
    checks: tuple[CheckResult, ...]

    def with_check(self, check: CheckResult) -> Verdict:
        """With one check more."""
        level = check.level or self.level
        return Verdict(worst_verdict_level((self.level, level)), (*self.checks, check))

    @property
    def objections(self) -> tuple[CheckResult, ...]:
        """The checks that lower the verdict, worst first, and causes of others before those."""
        levels = (VerdictLevel.INVALID, VerdictLevel.INDICATIVE)
        objections = [check for check in self.checks if check.level in levels]
        return tuple(sorted(objections, key=lambda check: (-check.rank, check.code not in CAUSES)))

    @property
    def passed_check_codes(self) -> tuple[str, ...]:
        """The codes of the checks that looked and do not object, by name."""
        return tuple(
            sorted(check.code for check in self.checks if check.level is VerdictLevel.VALID)
        )

    @property
    def judged_check_count(self) -> int:
        """How many of the checks looked; the others did not apply, or had nothing to look at."""
        return sum(check.level is not None for check in self.checks)

    @property
    def judged_check_count_text(self) -> str:
        """How many of its checks looked, as a sentence."""
        return f"{self.judged_check_count} of {len(self.checks)} checks apply; the others are n/a."


class HostResult(Record):
    """One host's share of a result."""

    name: HostName
    metrics: Mapping[str, Metric]


class LatencyLayer(StrEnum):
    """Where a latency was seen, from the generator down to the device."""

    ENGINE = "engine"
    """The generator in the guest, from submission to completion."""
    GUEST = "guest"
    """The guest's kernel, at its block device."""
    HYPERVISOR = "hypervisor"
    """The hypervisor, from the guest's request to its completion."""
    DEVICE = "device"
    """The devices of the node."""


class LayerLatency(Record):
    """The mean latency that one layer saw in one direction, over so many I/Os."""

    layer: LatencyLayer
    direction: Direction
    mean_ns: float
    ios: int


class Outlier(Record):
    """One device, core or port of a node that stands out among its like.

    `scope` is disk, cpu or nic; `value` and `median_value`, the median of all, are of the telemetry
    rate `metric`.
    """

    scope: str
    name: str
    metric: str
    value: float
    median_value: float


class BytesWrittenByLayer(Record):
    """Bytes written on their way down: by the guests, through the hypervisor, to the devices.

    `hypervisor` is None where none was ours, `devices` where no device is known. `factor` is how
    many bytes devices write for one of a guest, as the configuration declares; None if it does not.
    """

    guests: int
    hypervisor: int | None
    devices: int | None
    factor: float | None


class HypervisorResult(Record):
    """What the guests of one node did together, and what their node saw from inside.

    `metrics` are those of a result, over the guests of this node, merged exactly. `layers` go from
    the generator down; `bytes_written` is of this node alone. `hypervisor_latencies` are
    percentiles of latency as the hypervisor saw it in the whole run, by the same keys, with the
    edges of their bins.
    """

    name: HostName
    guests: tuple[HostName, ...]
    metrics: Mapping[str, Metric]
    layers: tuple[LayerLatency, ...] = ()
    outliers: tuple[Outlier, ...] = ()
    bytes_written: BytesWrittenByLayer | None = None
    hypervisor_latencies: Mapping[str, Metric] = field(default_factory=dict)


class MediaCounter(StrEnum):
    """Which of a drive's counters tells what its flash wrote."""

    OCP = "OCP extended SMART log (0xC0)"
    FDP = "FDP statistics (0x22)"
    VENDOR = "vendor's SMART log (0xCA)"
    ENDURANCE_GROUP = "endurance group log (0x09)"


class DrivePowerMeasurement(Record):
    """What a drive measured of its own power since somebody started that, which may be long ago.

    `error_percent` is None where the drive does not say how wrong it may be. `is_estimated` by the
    drive's model of itself, and `is_contiguous` without a pause.
    """

    average_w: float
    maximum_w: float
    samples: int
    error_percent: int | None
    is_estimated: bool
    is_contiguous: bool


class DriveWear(Record, kw_only=True):
    """What a run wrote on one drive, counted at each layer on the way down, in bytes.

    `application_bytes` are those of the load's operations and `engine_bytes` what an engine with a
    log and compaction wrote for them, None where nothing tells them or the host has several drives;
    `block_bytes` are those of the block layer (exact), `host_bytes` what the drive counted as
    written by hosts, `media_bytes` what its flash wrote, both with the interval that the steps of
    their counters leave. `write_amplification` is `media_bytes` over `block_bytes`; where it is
    None, `reason` says why. `endurance_share` is `media_bytes` over the drive's rated endurance.
    `throttled_s` are the seconds in which heat slowed the drive down. `power_measurement` is what
    the drive showed after the run, where it measures.
    """

    host: HostName
    device: str
    model: str
    is_emulated: bool
    block_bytes: int
    application_bytes: int | None = None
    engine_bytes: int | None = None
    host_bytes: Metric | None = None
    media_bytes: Metric | None = None
    media_counter: MediaCounter | None = None
    write_amplification: Metric | None = None
    reason: str = ""
    endurance_share: float | None = None
    throttled_s: int | None = None
    energy_wh: Metric | None = None
    power_measurement: DrivePowerMeasurement | None = None


class PowerUse(Record, kw_only=True):
    """What one meter of one host showed over the measured window of a run.

    `watts` is the mean, with an interval of chance and `step_w`, what the meter counts in; `idle_w`
    the mean before and after the load. `energy_j` is what the window took. `lag_s` is how much
    later than the load the meter rose, as far as idle tells. Where no mean can be told `reason`
    says why; `idle_reason` is why nothing can be told of the load less idle. `is_counted` where the
    watts of the machines at that boundary have it as a part.
    """

    host: HostName
    meter: str
    boundary: PowerBoundary
    watts: Metric | None = None
    idle_w: Metric | None = None
    energy_j: float | None = None
    period_s: float | None = None
    step_w: float | None = None
    lag_s: float | None = None
    reason: str = ""
    idle_reason: str = ""
    is_counted: bool = False


class HostEvenness(Record):
    """How evenly and how much at the same time the hosts of one run, or one phase of it, worked.

    All times are on the controller's clock. `start_skew_ns` is the latest first I/O less the
    earliest, `end_skew_ns` the same of the ends; `overlap` is the common part of the hosts' runs as
    a share of the time from the earliest start to the latest end, 0 to 1. `first_done_s` and
    `last_done_s` count from the earliest start. `slowest` and `fastest` name hosts by their rate in
    the common window, or each in its own where there is none; `jain` is Jain's index of these
    rates, (sum x)^2 / (n sum x^2), 1 for equal ones; `max_over_min` the fastest rate over the
    slowest, None when the slowest is 0. `drift_ns` is the largest change of a host's clock offset
    over the run with its sign, None when no clock was read twice.
    """

    start_skew_ns: int
    end_skew_ns: int
    overlap: float
    first_done_s: float
    last_done_s: float
    slowest: HostName
    fastest: HostName
    jain: float
    max_over_min: float | None
    drift_ns: int | None


class PhaseFigures(Record):
    """What one phase of a run was like; I/Os are of the second in which they were due.

    `iops` is the median of its seconds, `baseline_share` that as a share of the first phase's, and
    `served_share` the same of the mean, from which a short stall takes its part.
    `worst_second_ns_p99` is the largest p99 of any second, `longest_stall_s` the longest time in
    which a stream, a direction of a host, had I/Os waiting and none returned: it lies between what
    intervals without any show and the longest I/O. In `stalled_s` seconds all jobs of a stream
    together did less than a tenth of its rate in the first phase. The ratios are of the latencies
    to those of the first phase, at the same offered load: without one `unequal_load` says why there
    are none.
    """

    id: str
    start_s: float
    seconds: float
    ended_by: str
    iops: Metric
    baseline_share: Metric
    lat_ns_p50: Metric
    lat_ns_p99: Metric
    worst_second_ns_p99: Metric
    longest_io_ns: Metric
    stalled_s: int
    longest_stall_s: Metric = Metric(None, "s")
    lat_ns_mean: Metric = Metric(None, "ns")
    p50_ratio: Metric = Metric(None, "x")
    p99_ratio: Metric = Metric(None, "x")
    mean_ratio: Metric = Metric(None, "x")
    unequal_load: str = ""
    served_share: Metric = Metric(None, "share")


class NeighbourPhaseFigures(Record):
    """What a neighbour's load was like in the part of a phase in which it went on."""

    id: str
    seconds: float
    iops: Metric
    bw_bytes_per_s: Metric
    lat_ns_p50: Metric
    lat_ns_p99: Metric


class NeighbourFigures(Record):
    """The load that an event began, on all of its hosts; `workload` is its id.

    `rates` are its I/Os in each second since the first phase began. `silent_s` are the seconds in
    which it was to go on and did no I/O. `limit_figures` are of the events that limited it, its own
    among them, each with what it did a second meanwhile, and what all its disks together might.
    """

    event: str
    workload: str
    hosts: tuple[HostName, ...]
    phases: tuple[NeighbourPhaseFigures, ...]
    rates: tuple[float, ...]
    silent_s: int
    failed_ios: int
    limit_figures: tuple[NeighbourLimitFigures, ...] = ()


class NeighbourLimitFigures(Record):
    """What a limited neighbour did a second of one thing, and what it might: `read IOPS`."""

    event: str
    what: str
    rate: float
    limit: float


class EventFigures(Record):
    """When an event began, was done, was seen by its witness, and undone; None for never.

    In seconds since the first phase began.
    """

    id: str
    title: str
    host: HostName
    phase: str
    start_s: float | None
    end_s: float | None
    seen_s: float | None
    undone_s: float | None


class SeriesChange(Record):
    """A change of level that the seconds of a run show, by themselves.

    `at_s` is since the first phase began, with where it may as well lie; `ratio` the level after it
    to that before. `cause` is the event, phase or witness near it, "" where there is none.
    """

    at_s: Metric
    ratio: float
    cause: str


class ScenarioFigures(Record):
    """What a run with phases was like, with rate, p99 and p50 of each second since the first began.

    A second with too few I/Os has no percentile (None). `unhealthy_spans_s` are the times in which
    the witness of the first fault did not say that all is well, from one answer to another.
    `changes` are what the series `changed_metric`, the rate, or the p99 of a load with a fixed
    rate, shows by itself. Seconds to detection, redundancy and the baseline are counted from the
    event `fault`, the first action that a witness is to see, or else that began: until it did,
    until it said twice that all is well, until the series was back in the band of the first phase;
    with `low` alone for longer than the run, None where it is not known. `rebuild_bytes_per_s` is
    what was copied from the last event to redundancy. `stalled_at_s` are the seconds, from 0, in
    which a stream did less than a tenth of its rate in the first phase. `neighbours` are the loads
    that events began. `failed_ios` are errors that clients saw. Blocks are those that were read
    after the last phase, None where none could be. `is_new_mount` says whether all of
    them were read through a mount that was made since the load.
    """

    phases: tuple[PhaseFigures, ...]
    rates: tuple[float, ...]
    start_real_ns: int
    detection_s: Metric | None
    redundancy_s: Metric | None
    baseline_s: Metric | None
    failed_ios: int
    checked_blocks: int | None
    lost_blocks: int | None
    p99s_ns: tuple[float | None, ...] = ()
    p50s_ns: tuple[float | None, ...] = ()
    events: tuple[EventFigures, ...] = ()
    unhealthy_spans_s: tuple[tuple[float, float], ...] = ()
    changed_metric: str = "iops"
    changes: tuple[SeriesChange, ...] = ()
    rebuild_bytes_per_s: Metric | None = None
    stalled_at_s: tuple[int, ...] = ()
    neighbours: tuple[NeighbourFigures, ...] = ()
    fault: str = ""
    is_new_mount: bool | None = None

    @property
    def fault_event(self) -> EventFigures | None:
        """The event `fault`; None of a run without one."""
        return next((event for event in self.events if event.id == self.fault), None)


class RunResult(Record):
    """A judged run: never shown without its verdict.

    `spread` is known for runs of several hosts; of load whose operations follow each other,
    `operation_spreads` is, by the operation's key as in its metrics.

    `excluded_hosts` names hosts that were left out after they had failed: such a result stands
    apart from those of the whole fleet. `attempt` is how often it was tried, `segment` in which
    start of the session, from 1, it was measured, `order` its place among the session's runs, from
    1 (0 where it was stored without). `steadiness` is what its seconds say of it, None where they
    are too few or the load is not one that goes on alike; they are of whole operations where one
    has several I/Os. `nodes` are the hypervisors of guests, `load` says of what kind the run's job
    was (its `type_tag`). `resources` are what its telemetry shows of processors, devices and ports,
    None of a large fleet. `drives` are the NVMe drives below the targets whose log pages were read,
    `power` is what each power meter showed.
    `scenario` are the figures of a run with phases, whose other metrics are of the first of them.
    """

    configuration: str
    workload: str
    axis_values: tuple[tuple[str, int | str], ...] = field(name="axis")
    repeat: int
    digest: str
    status: RunStatus
    failure: str | None
    window_s: float
    metrics: Mapping[str, Metric]
    hosts: tuple[HostResult, ...]
    verdict: Verdict
    spread: HostEvenness | None = None
    excluded_hosts: tuple[str, ...] = ()
    attempt: int = 1
    segment: int = 1
    order: int = 0
    operation_spreads: Mapping[str, HostEvenness] = field(default_factory=dict)
    steadiness: Steadiness | None = None
    nodes: tuple[HypervisorResult, ...] = ()
    load: str = "io"
    resources: RunResources | None = None
    drives: tuple[DriveWear, ...] = ()
    power: tuple[PowerUse, ...] = ()
    scenario: ScenarioFigures | None = None
    failure_hint: str | None = None

    @property
    def key(self) -> RunKey:
        """Which run it is of."""
        return self.digest, self.repeat

    def with_session_check(self, check: CheckResult | None) -> RunResult:
        """With one check more, which the session as a whole makes; as it is where it has that."""
        if check is None or any(earlier.code == check.code for earlier in self.verdict.checks):
            return self
        return replace(self, verdict=self.verdict.with_check(check))
