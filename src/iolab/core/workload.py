"""A workload is described behaviour; a job is that behaviour on one client with its numbers."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from enum import IntEnum
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, ClassVar, Final, NewType, Self

from msgspec.structs import asdict, replace

from iolab.core.configuration import GRID_OBJECTIVE, WorkloadObjective
from iolab.core.engine import EngineName
from iolab.core.metric_spec import (
    CombineRule,
    metric_spec,
    phase_rate_key,
    rate_key,
)
from iolab.core.tagged import TaggedRecord
from iolab.record import Record

VMS_PER_NODE_AXIS: Final = "vms_per_node"
"""The axis of a growing fleet: how many guests of each hypervisor make load."""

HOSTS_AXIS: Final = "hosts"
"""The axis of a growing number of clients: the first of each configuration make load."""

COMPOSITES_FROM: Final = 128
"""From this number on operations are made of others, which are counted already: a prefix of blocks,
a request of several reads."""


class DataSet(Record):
    """Files laid out once on each client and shared by the points that fit them.

    File names are `<id>.<job number>.<file number>`; all have `file_bytes`. `host_numjobs` are the
    clients that have files for another number of jobs than `numjobs`. On a block `device`, named as
    it is in its folder, or in a `shared_file`, each job has its own region, one after the other.
    """

    id: str
    configuration: str
    numjobs: int
    files_per_job: int
    file_bytes: int
    host_numjobs: tuple[tuple[str, int], ...] = ()
    device: str = ""
    shared_file: bool = False

    @property
    def bytes_per_job(self) -> int:
        """What one job works on."""
        return self.files_per_job * self.file_bytes

    @property
    def shared_region_name(self) -> str:
        """The name of what all jobs have regions of; empty where each has files of its own."""
        return self.device or (self.file_names()[0] if self.shared_file else "")

    @property
    def bytes_per_host(self) -> int:
        """What the layout writes on each client that has no number of jobs of its own."""
        return self.numjobs * self.files_per_job * self.file_bytes

    def with_jobs_of_host(self, host_name: str) -> DataSet:
        """The files as that client has them."""
        numjobs = dict(self.host_numjobs).get(host_name, self.numjobs)
        return replace(self, numjobs=numjobs, host_numjobs=())

    def file_names(self, numjobs: int | None = None) -> tuple[str, ...]:
        """The names of the files that the first `numjobs` jobs use (all by default)."""
        jobs = 1 if self.shared_file else self.numjobs if numjobs is None else numjobs
        files = range(self.files_per_job)
        return tuple(f"{self.id}.{job}.{file}" for job in range(jobs) for file in files)


class OperationEnum(IntEnum):
    """A row of the table of operations; the number stands in files, those of all kinds in one."""

    @property
    def display_name(self) -> str:
        """The name on the wire and for people: `file-create`."""
        return self.name.lower().replace("_", "-")

    @property
    def key(self) -> str:
        """The name in metric keys: `file_create`."""
        return self.name.lower()

    @property
    def rate_key(self) -> str:
        """The metric of its rate, over the window that all hosts share."""
        return rate_key(self.key)

    @property
    def phase_rate_key(self) -> str:
        """The metric of its rate over its whole phase."""
        return phase_rate_key(self.key)

    def latency_key(self, statistic: str) -> str:
        """The metric of a latency: `mean`, `p50` … `p99_99`, or `max`."""
        return f"{self.key}_lat_ns_{statistic}"


class Direction(OperationEnum):
    """Which way an I/O goes."""

    READ = 0
    WRITE = 1
    TRIM = 2


class ServiceTimeDirection(OperationEnum):
    """The same I/Os from their submission, those of `Direction` being from when they were due.

    Only an open loop has both, and an engine that tells them.
    """

    READ = 8
    WRITE = 9
    TRIM = 10

    @property
    def direction(self) -> Direction:
        """The direction whose I/Os they are."""
        return Direction(self - ServiceTimeDirection.READ)

    @property
    def display_name(self) -> str:
        """`read from submission`."""
        return f"{self.direction.display_name} from submission"


Indicator = NewType("Indicator", str)
"""Which figure of a workload is its headline: one of its job's `indicators`, or a metric's key."""

BY_IOPS: Final = Indicator("iops")
BY_BANDWIDTH: Final = Indicator("bandwidth")
BY_LATENCY: Final = Indicator("latency")


class AnyJob(TaggedRecord):
    """What one client is asked to do, of whatever kind its load is.

    `has_warmup` is whether the first seconds of its load do not count, `reports_live_latency`
    whether its engine tells latencies while it runs, `fills_data_store` whether a store is filled
    for its runs. `can_end_by_rule` is whether it goes on alike for as long as the method says,
    which a stopping rule may decide. `load_axes` are those along which it rises. `indicators` are
    words for its headline, each with the key of the metric that it is, None where no single one is.
    A search for the highest load under a limit chooses among the listed values of
    `max_load_search_axis`; without one it chooses rates of I/Os. `operations_for_latency_limit` are
    operations beside reads and writes whose latency it may limit, each with the names of the
    latencies it has.
    `is_measured_by_iolab` is whether sessions measure it: what another tool measured cannot go on.

    `size_keys` are the keys of a study that make its files smaller.

    Of settings and options `path_options` are those that say where something lies: they may differ
    where results are compared, and are shown. `engine_settings` say what makes its I/Os, and how
    that asks the kernel for them: they may differ where engines are compared.
    """

    __slots__ = ()

    has_warmup: ClassVar[bool] = True
    reports_live_latency: ClassVar[bool] = True
    fills_data_store: ClassVar[bool] = False
    is_measured_by_iolab: ClassVar[bool] = True
    can_end_by_rule: ClassVar[bool] = False
    load_axes: ClassVar[tuple[str, ...]] = ()
    max_load_search_axis: ClassVar[str] = ""
    operations_for_latency_limit: ClassVar[Mapping[OperationEnum, tuple[str, ...]]] = (
        MappingProxyType({})
    )
    size_keys: ClassVar[tuple[str, ...]] = ("filesize", "numjobs")
    path_options: ClassVar[tuple[str, ...]] = ()
    engine_settings: ClassVar[tuple[str, ...]] = ("engine",)
    indicators: ClassVar[Mapping[str, str | None]] = MappingProxyType(
        {BY_IOPS: "iops", BY_BANDWIDTH: "bw_bytes_per_s", BY_LATENCY: "lat_ns_mean"}
    )

    if TYPE_CHECKING:

        @property
        def engine(self) -> EngineName:
            """What makes this load."""

    def with_axis_values(self, axis_values: Iterable[tuple[str, int | str]]) -> Self:
        """The job with the axis values in place of its first ones."""
        return replace(self, **self.fields_from_keys(axis_values))

    def adapted_to_separate_targets(self) -> Self:
        """The job as clients can do it that each have a target of their own."""
        return self

    @property
    def layout_engine(self) -> EngineName:
        """What lays its files out."""
        return self.engine

    @property
    def options(self) -> tuple[tuple[str, str], ...]:
        """Further options of the engine, which it allows."""
        return ()

    @property
    def options_text(self) -> str:
        """The same for people: `a=1 b=2`; empty for none."""
        return " ".join(f"{name}={value}" for name, value in self.options)

    @property
    def study_values_by_key(self) -> Mapping[str, object]:
        """What it is, by the keys of a study file."""
        names = {field: key for key, field in self.field_by_study_key.items()}
        return {names.get(field, field): value for field, value in asdict(self).items()}

    @property
    def inodes_per_client(self) -> int:
        """Inodes that one client's share needs, where its load makes files of its own."""
        return 0

    @property
    def memory_bytes(self) -> int | None:
        """The bound of memory that its processes are held to; None for none."""
        return None

    @property
    def may_use_server_table(self) -> bool:
        """Whether it may work against the study's server."""
        return False

    @property
    def is_answered_by_server(self) -> bool:
        """Whether a server answers it, which may use the processors of the same machine."""
        return self.may_use_server_table

    @property
    def has_busy_polling(self) -> bool:
        """Whether its engine asks again and again, with a whole core, instead of sleeping."""
        return False

    @property
    def reports_errors_at_end(self) -> bool:
        """Whether its engine goes on after errors, which only its last word tells of."""
        return False

    def server_part_of_digest(self, server: Any) -> Mapping[str, object]:  # noqa: ANN401, ARG002 - a kind's own
        """What of the study's server makes a point another one."""
        return {}

    def data_set(self, configuration_id: str) -> DataSet | None:  # noqa: ARG002
        """The files of a configuration that are laid out for it; None where it makes its own."""
        return None

    @property
    def data_directions(self) -> tuple[Direction, ...]:
        """What the job does to files that are laid out for it."""
        return ()

    @property
    def similar_write_rate_key(self) -> object:
        """What jobs have in common that write at about the same rate."""
        return self

    @property
    def changes_data(self) -> bool:
        """Whether the job changes its files: it writes or trims."""
        return any(way is not Direction.READ for way in self.data_directions)

    @property
    def io_alignment_bytes(self) -> int:
        """Each I/O on the job's files is a multiple of so many bytes; 0 without such files."""
        return 0

    @property
    def iodepth_per_client(self) -> int:
        """I/Os that one client may have in flight; 0 where that is not known."""
        return 0

    @property
    def direct(self) -> bool:
        """Whether the job's I/Os bypass the page cache (O_DIRECT)."""
        return False

    @property
    def verify(self) -> bool:
        """Whether what it reads is compared with what was last written there."""
        return False

    @property
    def jobs_per_client(self) -> int:
        """How many equal jobs one client runs at once (fio's numjobs); its host may set that."""
        return 1

    def with_numjobs(self, job_count: int | None) -> Self:  # noqa: ARG002
        """The job on a client that runs so many at once; None for the usual number."""
        return self

    @property
    def target_iops_per_job(self) -> float | None:
        """I/Os a second that each of these jobs is to make, None for as many as it can."""
        return None

    @property
    def is_closed_loop(self) -> bool:
        """Whether it is meant to keep `iodepth_per_client` I/Os in flight all the time."""
        return False

    @property
    def is_paced(self) -> bool:
        """Whether it asks for no more than a rate, so that what it comes to is no maximum."""
        return self.target_iops_per_job is not None

    @property
    def search_criterion_text(self) -> str:
        """What a search keeps to without a limit on a latency; empty for nothing."""
        return ""

    def meets_search_criterion(self, values: Mapping[str, float | None]) -> bool:  # noqa: ARG002
        """Whether a run with these metrics keeps to it."""
        return True

    def with_share_of_fleet_rate(self, job_count: int) -> Self:  # noqa: ARG002
        """The job where all clients together run so many, which share what the fleet is asked."""
        return self

    def with_default_poisson_arrivals(self) -> Self:
        """The job with I/Os that arrive as independent users make them, if it says nothing else."""
        return self

    def load_kind_and_mix(
        self,
        axis_values: Mapping[str, int | str],  # noqa: ARG002
    ) -> tuple[str, str] | None:
        """The kind of load, and its mix of operations at those values of a point's axes.

        Points with one mix spread alike over runs. None where nothing is known of that.
        """
        return None


class Axis(Record):
    """One parameter varied: its name as in the study file and the values in their order."""

    name: str
    values: tuple[int | str, ...]


class Workload(Record):
    """A described behaviour: the job at its first values, and the axes that vary it.

    `repeats` is how often each of its points is measured, None for as often as the method says.
    `search_goal` is what its axes are measured for.
    """

    id: str
    title: str
    job: AnyJob
    sweep: tuple[Axis, ...]
    indicator: Indicator
    repeats: int | None = None
    search_goal: WorkloadObjective = GRID_OBJECTIVE

    @property
    def headline_metric(self) -> str | None:
        """The key of the metric that is its headline; None where no single one is."""
        return self.job.indicators.get(self.indicator, self.indicator)

    @property
    def rate_metric(self) -> str:
        """The key of the rate of its load, whatever its headline is."""
        key = self.headline_metric
        return key if key and metric_spec(key).combine is CombineRule.RATE else "iops"

    @property
    def axis_values_texts(self) -> dict[str, str]:
        """The values of its axes as they are written, by the axis."""
        return {axis.name: ", ".join(map(str, axis.values)) for axis in self.sweep}

    @property
    def headline_or_rate_metric(self) -> str:
        """The key of its headline, or of its rate where no single metric is."""
        return self.headline_metric or self.rate_metric
