"""Points, the plan that orders them, and the record that one run leaves behind."""

from __future__ import annotations

from collections.abc import Iterable
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, Any, Final

from msgspec import Meta, field

from iolab.core.block_trace import BlockTrace
from iolab.core.configuration import Redundancy
from iolab.core.drive import DriveReadingPair
from iolab.core.generator import GeneratorTotals
from iolab.core.host import HostRole
from iolab.core.host_name import HostName
from iolab.core.libraries import LibraryUse
from iolab.core.scenario import ScenarioOutcome
from iolab.core.stopping import StoppingRuleSettings
from iolab.core.tagged import TaggedRecord
from iolab.core.target_state import TargetState
from iolab.core.workload import AnyJob, DataSet, Direction
from iolab.record import Record, field_names

if TYPE_CHECKING:
    from iolab.core.compressed import CompressedBytes
    from iolab.core.samples import BinTable, CounterTable, IntervalTable

COUNT_MAX: Final = 2**63 - 1
"""What hosts count is kept in 64 signed bits."""

Count = Annotated[int, Meta(ge=0, le=COUNT_MAX)]

Digest = Annotated[str, Meta(max_length=64)]

Quota = Annotated[float, Meta(ge=0)]
"""Processors that a control group may use, as many as a fraction of one."""

CORES_MAX: Final = 65_536
"""No machine has more."""

IDLE_BYTES_PER_S: Final = 1 << 20
"""Traffic of an idle system's own logs and journals: below it a device counts as idle."""

IDLE_IOS_PER_S: Final = 50.0
"""The same in I/Os."""

LOAD_HALTS_MAX: Final = 256
"""The agent joins those next to each other where there are more."""


class Point(Record):
    """One combination of configuration, workload and axis values, filed by its `digest`.

    `data_set` is the id of the files that it works on, empty for a job that makes its own.
    `host_numjobs` are the clients that run another number of jobs than the job says. `per_node` is
    how many guests of each hypervisor take part, the first of each; `host_count` is how many hosts
    of the configuration do, the first of them. 0 stands for all there are.
    """

    digest: str
    configuration: str
    workload: str
    axis_values: tuple[tuple[str, int | str], ...] = field(name="axis")
    job: AnyJob
    data_set: str
    host_numjobs: tuple[tuple[HostName, int], ...] = ()
    per_node: int = 0
    host_count: int = 0

    def job_on_host(self, host_name: str) -> AnyJob:
        """The job as that client runs it."""
        return self.job.with_numjobs(dict(self.host_numjobs).get(host_name))

    @property
    def title_text(self) -> str:
        """The point for people: `rand-read-4k iodepth=8`."""
        values = " ".join(f"{name}={value}" for name, value in self.axis_values)
        return f"{self.workload} {values}".strip()


RunKey = tuple[str, int]
"""A run among all of a session: the digest of its point and its repeat."""


class PlannedRun(Record):
    """One execution that the plan asks for: the point again for each repeat, from 1.

    `attempt` counts from 1 and rises when a run that failed is tried again.
    """

    order: int
    repeat: int
    point: Point
    attempt: int = 1

    @property
    def key(self) -> RunKey:
        """Which run it is."""
        return self.point.digest, self.repeat


class NeighbourPlan(Record):
    """The load that an event begins on some hosts, as a point that is never measured alone."""

    event: str
    point: Point
    hosts: tuple[str, ...]


class PlanDemand(Record):
    """What a plan will cost at most: `time_items` say where the seconds go, each (what, seconds).

    `least_seconds` is the same where every run ends as early as it may; None where none can.
    `write_bytes_estimate` are bytes over all hosts whatever targets can do: layout,
    preconditioning, loads of a set size or rate. Beyond that each target is written for so many
    seconds at its speed: `open_write_s` at least and `open_write_most_s` at most, over all hosts.
    """

    seconds: float
    time_items: tuple[tuple[str, float], ...]
    layout_bytes_per_host: int
    write_bytes_estimate: int
    free_bytes_needed_per_host: int
    least_seconds: float | None = None
    open_write_s: float = 0.0
    open_write_most_s: float = 0.0


class Plan(Record):
    """A study expanded: data sets to lay out, runs in order, cost, and what would be destroyed.

    `runs` are those that are made in any case. Results may ask for up to `extra_run_count` beyond
    them, repeats of their points or runs of `candidate_points`, which are the other points of the
    study. `neighbours` are the loads that events begin beside each run.
    """

    study: str
    digest: str
    data_sets: tuple[DataSet, ...]
    runs: tuple[PlannedRun, ...]
    demand: PlanDemand
    destroyed_device_texts: tuple[str, ...]
    candidate_points: tuple[Point, ...] = ()
    extra_run_count: int = 0
    neighbours: tuple[NeighbourPlan, ...] = ()

    @property
    def points(self) -> tuple[Point, ...]:
        """Each point once, in the order of its first run, then the candidates."""
        by_digest: dict[str, Point] = {}
        for run in self.runs:
            by_digest.setdefault(run.point.digest, run.point)
        for point in self.candidate_points:
            by_digest.setdefault(point.digest, point)
        return tuple(by_digest.values())

    @property
    def points_and_neighbour_points(self) -> tuple[Point, ...]:
        """These, and the loads that events begin beside them."""
        return (*self.points, *(neighbour.point for neighbour in self.neighbours))

    def neighbours_of_run(self, run: PlannedRun) -> tuple[NeighbourPlan, ...]:
        """The loads that events begin beside a run."""
        here = run.point.configuration
        return tuple(item for item in self.neighbours if item.point.configuration == here)

    def missing_run_count(self, done_runs: Iterable[RunKey]) -> int:
        """How many of the certain runs, by (digest, repeat), are not among those made."""
        return len({run.key for run in self.runs} - set(done_runs))

    def data_set(self, data_set_id: str) -> DataSet:
        """The data set of that id; KeyError when the plan has none."""
        for data_set in self.data_sets:
            if data_set.id == data_set_id:
                return data_set
        raise KeyError(data_set_id)


class RunStatus(StrEnum):
    """How a run ended."""

    DONE = "done"
    FAILED = "failed"
    INTERRUPTED = "interrupted"


class DirectionTotals(Record):
    """What the engine itself says of one direction over the whole run.

    Latencies in ns from submission to completion; `percentiles` are the engine's own
    (percent, ns); `iops` and `bw_bytes_per_s` are the engine's own means.
    """

    ios: int
    bytes: int
    runtime_ms: int
    iops: float
    bw_bytes_per_s: float
    lat_min_ns: int
    lat_max_ns: int
    lat_mean_ns: float
    slat_mean_ns: float
    clat_mean_ns: float
    percentiles: tuple[tuple[float, int], ...]
    short_ios: int
    dropped_ios: int


class EngineTotals(Record):
    """What the engine itself says of the whole run on one host.

    `depth_percent` maps fio's depth levels ("1", "2", ... ">=64") to the share of I/Os submitted
    at that depth; `error` is the engine's errno, 0 for none; CPU figures are percent of one core
    for each job. `generator` is what the native engine tells besides.
    """

    read: DirectionTotals | None
    write: DirectionTotals | None
    depth_percent: tuple[tuple[str, float], ...]
    user_cpu_percent: float
    system_cpu_percent: float
    error: int
    jobs: int
    generator: GeneratorTotals | None = None
    trim: DirectionTotals | None = None


class DeviceDelta(Record):
    """What one block device moved around the engine's run; discards None where not counted.

    `*_merges` are I/Os that were joined to others and so are not among `*_ios`; `*_time_ns` is the
    time that the I/Os took, summed over them. None where that is not known.
    """

    device: str
    read_bytes: int
    write_bytes: int
    read_ios: int
    write_ios: int
    discard_bytes: int | None = None
    discard_ios: int | None = None
    read_merges: int | None = None
    write_merges: int | None = None
    read_time_ns: int | None = None
    write_time_ns: int | None = None

    def direction_delta(self, direction: Direction) -> DeviceDirectionDelta:
        """One direction of it; ValueError for trims, of which it tells less."""
        if direction is Direction.READ:
            return DeviceDirectionDelta(
                self.read_bytes, self.read_ios, self.read_merges, self.read_time_ns
            )
        if direction is Direction.WRITE:
            return DeviceDirectionDelta(
                self.write_bytes, self.write_ios, self.write_merges, self.write_time_ns
            )
        raise ValueError(f"{direction.name} is neither read nor written")


class DeviceDirectionDelta(Record):
    """One direction of a `DeviceDelta`."""

    bytes: int
    ios: int
    merges: int | None
    time_ns: int | None


class ExtentProof(Record):
    """Whether the files to be read were written: bytes by kind over all of them.

    `method` is fiemap, seek or blocks: how it was proved, or none when it could not be. `identity`
    and `places` are digests of which files they are and of where their bytes lie on the device;
    None where the file system promises neither to last.
    """

    method: Annotated[str, Meta(max_length=40)]
    file_count: Count
    size_bytes: Count
    written_bytes: Count
    unwritten_bytes: Count
    hole_bytes: Count
    identity: Digest | None = None
    places: Digest | None = None


class FileIdentityCheck(Record):
    """The job's files right before its load and right after it.

    `after` is None where they could not be looked at any more; `fault` says why.
    """

    before: ExtentProof
    after: ExtentProof | None
    fault: str = ""


class CacheDropProof(Record):
    """Page cache that held the data set's files before and after the drop; None if unknown."""

    requested: bool
    resident_bytes_before: int | None
    resident_bytes_after: int | None
    methods: tuple[str, ...]


CACHE_NOT_DROPPED: Final = CacheDropProof(
    requested=False, resident_bytes_before=None, resident_bytes_after=None, methods=()
)
"""Where nothing was asked to be dropped."""


class PreRunActivity(Record):
    """What the target's devices did just before the start, when nobody should use them."""

    watched_s: float
    bytes_per_s: float
    ios_per_s: float

    @property
    def is_quiet(self) -> bool:
        """Whether they did no more than those of an idle system do."""
        return self.bytes_per_s <= IDLE_BYTES_PER_S and self.ios_per_s <= IDLE_IOS_PER_S

    def combined_with(self, later: PreRunActivity) -> PreRunActivity:
        """What they did in this time and a later one together."""
        watched_s = self.watched_s + later.watched_s
        share = later.watched_s / watched_s
        return PreRunActivity(
            watched_s,
            self.bytes_per_s * (1 - share) + later.bytes_per_s * share,
            self.ios_per_s * (1 - share) + later.ios_per_s * share,
        )


class ProcessUse(Record):
    """CPU seconds and peak memory of the engine's processes, as the kernel counts them."""

    user_s: float
    system_s: float
    max_rss_bytes: int


class CgroupCpuUse(Record):
    """What a control group above the load had of the processors during the run.

    `quota_cores` is None without a limit; `periods` are those in which it wanted to run,
    `throttled` those in which its quota was used up, `throttled_ns` how long its processors then
    stood still, each counted for itself; `pressure_ns` how long any of its threads waited for one.
    """

    path: Annotated[str, Meta(max_length=4096)]
    quota_cores: Quota | None
    period_ns: Count
    periods: Count
    throttled: Count
    throttled_ns: Count
    pressure_ns: Count | None = None


class LoadHaltCause(StrEnum):
    """Why the processes of a load, or their host, were halted."""

    STOPPED = "stopped"
    TRACED = "traced"
    FROZEN = "frozen"
    SUSPENDED = "suspended"
    HOST_STOOD = "host-stood"


class LoadHalt(Record):
    """A time, by the host's clock, in which threads of the load were halted, not by its storage.

    `thread_ns` is how long they were halted in it, summed over them.
    """

    cause: LoadHaltCause
    from_real_ns: Count
    to_real_ns: Count
    thread_ns: Count


class ProcessorUse(Record):
    """What the threads that made the load got of the processors while they were watched.

    `wall_ns` is how long they lived, `run_ns` how long they ran, `wait_ns` how long they were ready
    to run without a processor: sums over `threads`. `cores` are those that they may use, `groups`
    their control group and all above it that the agent sees. `load_halts` is None where nobody
    looked, as in records of older versions.
    """

    watched_ns: Count
    threads: Count
    wall_ns: Count
    run_ns: Count
    wait_ns: Count
    cores: Annotated[tuple[Count, ...], Meta(max_length=CORES_MAX)]
    groups: Annotated[tuple[CgroupCpuUse, ...], Meta(max_length=64)]
    load_halts: Annotated[tuple[LoadHalt, ...], Meta(max_length=LOAD_HALTS_MAX)] | None = None


class HostLoadDetails(TaggedRecord):
    """What a kind of load tells of one host in one run, beside its intervals and bins."""

    __slots__ = ()


class RunLoadDetails(TaggedRecord):
    """What a kind of load tells of a run that is of no single client."""

    __slots__ = ()


class GuestFleetDetails(TaggedRecord):
    """The guests that made a run's load, as their kind of host tells of them."""

    __slots__ = ()


class HostRun(Record):
    """What happened on one host in one run.

    `error` is None or one sentence; times are the host's own CLOCK_REALTIME; `start_real_ns` and
    `end_real_ns` come from the engine's own data (first and last I/O). `target_key` names the facts
    of the directory that was used, among the session's facts: empty for those under the host's own
    name, which is so unless configurations use several directories of a host. The clock is read
    before the run and again after it (None when that failed): the difference is its drift.
    `details` are what the kind of load tells besides, None where it tells nothing.
    `read_from` is the host whose files this one read, empty for its own. `generator_limit_iops` is
    what the engine reached there with the same jobs on a target that does nothing, None if not
    measured; `generator_limit_fault` says why it could not be, where it should have been.
    `clock_step_ns` is the largest step of the host's CLOCK_REALTIME against its CLOCK_BOOTTIME
    around the run, 0 for none, None where it was not watched. `processor` is what the load got of
    the processors, None where nothing tells. `trace` is a sample of what the block layer did for
    the engine, None where none was requested. `files` is None of load that has none of its own, or
    that unmaps them. `libraries` are those that stand between the load and the kernel, None where
    nobody looked. `drives` are the log pages of the NVMe drives below the target, where the agent
    may read them.
    """

    host: HostName
    error: str | None
    argv: tuple[str, ...]
    job_file: str
    engine_version: str
    start_real_ns: int | None
    end_real_ns: int | None
    exit_code: int | None
    exit_signal: int | None
    stopped_early: bool
    totals: EngineTotals | None
    devices: tuple[DeviceDelta, ...]
    extents: ExtentProof | None
    cache_drop: CacheDropProof | None
    pre_run_activity: PreRunActivity | None
    process: ProcessUse | None
    clock_offset_ns: int
    clock_error_ns: int
    stderr_tail: str
    target_key: HostName = ""
    clock_offset_after_ns: int | None = None
    clock_error_after_ns: int | None = None
    read_from: HostName = ""
    details: HostLoadDetails | None = None
    generator_limit_iops: float | None = None
    generator_limit_fault: str = ""
    clock_step_ns: int | None = None
    processor: ProcessorUse | None = None
    trace: BlockTrace | None = None
    files: FileIdentityCheck | None = None
    libraries: LibraryUse | None = None
    drives: tuple[DriveReadingPair, ...] = ()

    @property
    def facts_key(self) -> str:
        """The name of its facts, with the directory that was used, among the session's facts."""
        return self.target_key or self.host


class NeighbourRun(Record):
    """What the load that an event began did on one host.

    `limited_disks` are those on which its I/O could be limited, as the host's agent found them; ()
    where the agent ended first.
    """

    event: str
    point: Point
    host: HostRun
    limited_disks: tuple[str, ...] = ()


class MonitoredHost(Record):
    """A host that made no load in a run and was watched during it: a storage node, a hypervisor.

    Its counters stand in the record's counter table, numbered after the hosts of the run. `devices`
    is what the disks that serve the target moved; `error` is None or why it could not be watched.
    """

    host: HostName
    role: HostRole
    error: str | None
    devices: tuple[DeviceDelta, ...]
    clock_offset_ns: int
    clock_error_ns: int


class MeterFault(Record):
    """A power meter that could not be read so often in a run, with the last reason."""

    host: HostName
    meter: str
    reason: str
    count: int


class IdleSpan(Record):
    """A time in which the machines of a run idled while their meters were read.

    On the controller's clock.
    """

    start_real_ns: int
    end_real_ns: int


class EngineOutput(Record):
    """One file of the engine's output exactly as it came, as far as it was kept."""

    host: str
    name: str
    content: CompressedBytes


class RunManifest(Record, kw_only=True):
    """What is known of one run beside its tables, before any judgement.

    `failure` is what ended a run that failed, `failure_hint` what to do about it.
    `hosts` made the load, `monitored_hosts` were watched. In `idle_spans` the machines idled before
    and after the load with their meters read, those of `meter_faults` not throughout. `details`
    are what the kind of load tells of the whole fleet, None where it tells nothing.
    `excluded_hosts` names the hosts of the configuration that were left out after they had
    failed. `redundancy` is what the configuration declares of its storage, `volume` the type of
    the target's cloud volume where the study names it, `fleet` are the guests that made the
    load, None where hosts are none. With a `rule` it ended the run, or was the limit that the
    run reached; nothing was warmed up then and `runtime_s` is the longest that it could be.
    `scenario` are the phases and events of a run that has some; `runtime_s` is then the length of
    the first, by which it is judged. `neighbours` are the loads that events began, each on each of
    its hosts.
    """

    run: PlannedRun
    status: RunStatus
    failure: str | None
    started_real_ns: int
    ended_real_ns: int
    warmup_s: float
    runtime_s: float
    telemetry_interval_ms: int
    hosts: tuple[HostRun, ...]
    monitored_hosts: tuple[MonitoredHost, ...] = ()
    meter_faults: tuple[MeterFault, ...] = ()
    idle_spans: tuple[IdleSpan, ...] = ()
    details: RunLoadDetails | None = None
    excluded_hosts: tuple[str, ...] = ()
    redundancy: Redundancy | None = None
    volume: str | None = None
    states: tuple[TargetState, ...] = ()
    rule: StoppingRuleSettings | None = None
    fleet: GuestFleetDetails | None = None
    scenario: ScenarioOutcome | None = None
    failure_hint: str | None = None
    neighbours: tuple[NeighbourRun, ...] = ()

    def manifest_fields(self) -> dict[str, Any]:
        """All of these by name, to make another description of the same run with."""
        return {name: getattr(self, name) for name in field_names(RunManifest)}

    @property
    def host_names(self) -> tuple[str, ...]:
        """The names that the tables' host columns index: the run's, then the monitored ones."""
        names = tuple(host.host for host in self.hosts)
        return names + tuple(host.host for host in self.monitored_hosts)


class RunRecord(RunManifest, kw_only=True):
    """All evidence of one run, before any judgement.

    In the tables of neighbours, None without any, a host is one of `neighbours`.
    """

    intervals: IntervalTable
    bins: BinTable
    counters: CounterTable
    outputs: tuple[EngineOutput, ...]
    neighbour_intervals: IntervalTable | None = None
    neighbour_bins: BinTable | None = None
