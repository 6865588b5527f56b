"""What a file of another tool tells: figures as they are printed, by client and operation."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from enum import StrEnum
from typing import ClassVar, Final, Self

from msgspec import field

from iolab.core.engine import EngineName
from iolab.core.metric import SYNC
from iolab.core.run import HostLoadDetails, RunLoadDetails
from iolab.core.workload import AnyJob, Direction
from iolab.loads.fileio.workload import BANDWIDTH_BLOCK_BYTES
from iolab.record import Record

IO_OPERATIONS: Final[Mapping[str, int]] = {way.key: int(way) for way in Direction}
"""Operations of I/O, each by its number in the tables of a run."""

MIXED: Final = "mixed"
"""I/O of which the file does not tell how much was read."""

_WHOLE_NUMBER: Final = re.compile(r"(-?\d{1,18})(?:\.0{1,9})?")

FIRST_OTHER_OPERATION: Final = 16
"""The number of the first operation that is no I/O: those of the tables' own words lie below."""

REACHED_SHARE: Final = 0.95
"""A load that reaches less of its rate than this was held back by the target, not by the rate."""

CLIENT_COUNT: Final = "client count"
"""The setting that we add; no tool has one of this name."""


class ImportedJob(AnyJob, Record, tag="imported"):
    """What a tool says that one of its jobs was to do; `settings` are its options as it tells them.

    `operations` are those that any run of it tells of, `in_flight` how many there may be at once
    on one client, None where that is not told. `paced` is whether a rate holds it back.
    """

    load_axes: ClassVar[tuple[str, ...]] = ("iodepth", "numjobs", "threads")
    reports_live_latency: ClassVar[bool] = False
    is_measured_by_iolab: ClassVar[bool] = False
    path_options: ClassVar[tuple[str, ...]] = (
        "directory",
        "filename",
        "path",
        "paths",
        "filename_format",
        "write_bw_log",
        "write_hist_log",
        "write_iops_log",
        "write_lat_log",
    )

    engine: EngineName
    operations: tuple[str, ...]
    settings: tuple[tuple[str, str], ...] = ()
    in_flight: int | None = None
    paced: bool = False

    @property
    def is_paced(self) -> bool:
        """See `AnyJob`."""
        return self.paced

    @property
    def options(self) -> tuple[tuple[str, str], ...]:
        """See `AnyJob`."""
        return self.settings

    def with_axis_values(self, axis_values: Iterable[tuple[str, int | str]]) -> Self:
        """The job itself: its points differ in what their files tell."""
        del axis_values
        return self

    @property
    def is_io(self) -> bool:
        """Whether all that it does are reads, writes and trims, and what makes these durable."""
        return all(name in (*IO_OPERATIONS, MIXED, SYNC) for name in self.operations)

    def operation_code(self, operation: str) -> int:
        """The number by which an operation stands in the tables of a run."""
        own = IO_OPERATIONS.get(operation)
        return FIRST_OTHER_OPERATION + self.operations.index(operation) if own is None else own

    def operation_name(self, code: int) -> str:
        """The operation that stands there by that number."""
        return next(each for each in self.operations if self.operation_code(each) == code)


class OperationFigures(Record):
    """What a tool prints of one operation; None is what it does not tell.

    Rates are of operations and bytes a second, latencies in ns, `percentiles` (percent, ns).
    `seconds` is the time that the rates are of, `rate_weighted_s` its mean over unlike parts; with
    `count_is_derived` the count is made of rate and time. A mean from submission on is
    `in_flight_mean_ns` where it is another than the latency's. In totals each counts `weight`
    times: -1 for what is made of two others that are told beside it, 0 for what moves nothing.
    `count` holds those that `failed` too where `failed_in_count`. `printed` are the figures as the
    file has them.
    """

    operation: str
    count: int | None = None
    count_is_derived: bool = False
    bytes: int | None = None
    seconds: float | None = None
    rate_weighted_s: float | None = None
    rate_per_s: float | None = None
    bw_bytes_per_s: float | None = None
    lat_min_ns: float | None = None
    lat_mean_ns: float | None = None
    lat_max_ns: float | None = None
    in_flight_mean_ns: float | None = None
    percentiles: tuple[tuple[float, float], ...] = ()
    failed: int = 0
    failed_in_count: bool = False
    weight: int = 1
    printed: tuple[tuple[str, str], ...] = ()


class EvidenceKind(StrEnum):
    """What a file says of a figure that was published beside it."""

    SUPPORTS = "supports"
    QUESTIONS = "questions"
    CONTRADICTS = "contradicts"
    EXPLAINS = "explains"


class FileEvidence(Record):
    """What one file beside a published figure says of it: the rule, a sentence, file and key."""

    rule: str
    kind: EvidenceKind
    message: str
    file: str
    key: str


class ImportedClientDetails(HostLoadDetails, Record, tag="imported"):
    """One client in a run; `source_location` is `file:line`, or the file and a job.

    `phase_number` is the number of the phase that it says it was of, None where it says none.
    Latencies are told apart by `latency_resolution`, a share, and no finer than `latency_step_ns`.
    """

    source_location: str
    figures: tuple[OperationFigures, ...]
    phase_number: int | None = None
    errors: tuple[str, ...] = ()
    latency_resolution: float = 1 / 64
    latency_step_ns: float = 1.0


class ImportedRunDetails(RunLoadDetails, Record, tag="imported"):
    """A run that another tool made.

    `claimed_totals` is what the tool says of all clients together, `summed_phase_count` of how many
    phases that ran after each other this is the sum, 1 for none. `memory_bytes` and `data_bytes`
    are of one client, `buffered` whether I/O went through its page cache; None is not told.
    `is_phase_of_group` figures may be of more jobs than those whose options are told. `notes` say
    what was made of the file, `evidence` what files beside a published figure say of it.
    """

    tool: str
    version: str
    files: tuple[str, ...]
    claimed_totals: tuple[OperationFigures, ...] = ()
    summed_phase_count: int = 1
    buffered: bool | None = None
    data_bytes: int | None = None
    memory_bytes: int | None = None
    ramp_s: float | None = None
    requested_runtime_s: float | None = None
    paced: bool = False
    missed_steady_state: str = ""
    is_phase_of_group: bool = False
    dated_by: str = ""
    notes: tuple[str, ...] = ()
    evidence: tuple[FileEvidence, ...] = ()


Bins = Mapping[int, int]
"""How many operations fell into each latency bin of `core.histogram`."""


class ImportedInterval(Record):
    """What one operation completed in one interval: its end since the client's start, in ns."""

    operation: str
    end_ns: int
    span_ns: int
    count: int
    bytes: int
    lat_sum_ns: float = 0.0


class ImportedClient(Record):
    """One client of a run as its file tells of it.

    `bins` are those of the whole run by operation. `start_ns` is when its first operation began, by
    a clock that all clients of the run share; None where the file does not tell. `file_index` is
    the place of its file among those of the run.
    """

    name: str
    details: ImportedClientDetails
    bins: Mapping[str, Bins] = field(default_factory=dict)
    intervals: tuple[ImportedInterval, ...] = ()
    start_ns: int | None = None
    runtime_s: float | None = None
    file_index: int = 0


Settings = tuple[tuple[str, int | str], ...]
"""Settings of a load, each by its name."""


def is_limited_by_target_rate(target_per_s: float | None, reached_per_s: float | None) -> bool:
    """Whether a rate that was set is why a load was no faster."""
    if not target_per_s:
        return False
    return reached_per_s is None or reached_per_s >= REACHED_SHARE * target_per_s


def indicator_for_block_size(block_bytes: float | None) -> str:
    """The metric that I/O in blocks of so many bytes is for; IOPS where the size is not told."""
    return (
        "bandwidth" if block_bytes is not None and block_bytes >= BANDWIDTH_BLOCK_BYTES else "iops"
    )


class ForeignRun(Record):
    """One run that a file tells of, before it is part of a session.

    `name` is the job's own, `access_kind` what of it makes another workload (its access pattern).
    `settings` are all that the file tells of the load, whole numbers as such or as text;
    `ignored_setting_reasons` are those that cannot matter. Two runs are repeats of one point
    only where all others agree, and each that differs is an axis. `ended_real_ns` is when it
    ended, since 1970, None where the file does not tell. `indicator` is the metric that it is for.
    """

    name: str
    details: ImportedRunDetails
    clients: tuple[ImportedClient, ...]
    settings: Settings = ()
    ignored_setting_reasons: Mapping[str, str] = field(default_factory=dict)
    in_flight: int | None = None
    ended_real_ns: int | None = None
    indicator: str = "iops"
    failure: str | None = None
    access_kind: str = ""

    @property
    def load_settings(self) -> dict[str, int | str]:
        """The settings that matter, and how many clients there were; numbers are numbers."""
        settings = {
            name: int(whole[1])
            if isinstance(value, str) and (whole := _WHOLE_NUMBER.fullmatch(value))
            else value
            for name, value in self.settings
            if name not in self.ignored_setting_reasons
        }
        return {**settings, CLIENT_COUNT: len(self.clients)}

    @property
    def operation_names(self) -> tuple[str, ...]:
        """All that any of its clients did, in the order told."""
        every = (figure.operation for client in self.clients for figure in client.details.figures)
        return tuple(dict.fromkeys(every))
