"""A client's share of training-read load, and what one client tells of its epochs."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import ClassVar, Final

from iolab.core.engine import EngineName
from iolab.core.run import HostLoadDetails, HostRun
from iolab.core.workload import AnyJob, DataSet, Direction, Indicator, OperationEnum
from iolab.loads.training.metric_specs import ACCELERATORS_FED, SAMPLES, UTILISATION
from iolab.record import Record
from iolab.text import percent_text

TRAINING_ENGINE: Final = EngineName("training-read")
"""Built into the agent."""

LAYOUT_ENGINE: Final = EngineName("native")
"""What lays the files out: it is built into the agent, too."""

BY_ACCELERATORS: Final = Indicator("accelerators")
BY_UTILISATION: Final = Indicator("utilisation")
BY_SAMPLES: Final = Indicator("samples")

FILE_ALIGNMENT: Final = 4096
"""Files are padded to multiples of this, as direct I/O wants them."""


class TrainingOperation(OperationEnum):
    """Operations made of reads, which are counted as such already, and the parts of steps."""

    FILE_READ = 144
    """What a batch wants of a file, from its opening to the last byte."""
    BATCH_LOAD = 145
    """From when a loader could begin a batch to its last byte."""
    STEP = 146
    """From the end of the step before for all to its own, without the first of each epoch."""
    FIRST_STEP = 147
    """The first step of each epoch, before which nothing is read ahead."""
    STORAGE_WAIT = 148
    """Of steps: until the batch was read."""
    BARRIER_WAIT = 149
    """Of steps: until all accelerators of the host had ended theirs."""
    COMPUTE_LATENESS = 150
    """Of steps: by how much the emulator ended the computation too late."""


class TrainingJob(AnyJob, Record, tag="training-read"):
    """The accelerators of a fleet, and one client's files, with every number settled.

    The `accelerators` of all hosts take `batch` samples each, compute for `compute_ns`, and with
    `barrier` wait for all others of their host. Each has `loaders`, of which each is `prefetch`
    batches ahead and reads `read_bytes` at a time. A client has `files` with `samples_per_file`
    samples each, of `sample_bytes` on average. With `threshold` or more of the time computing,
    training counts as well fed.
    """

    load_axes: ClassVar[tuple[str, ...]] = ("accelerators",)
    max_load_search_axis: ClassVar[str] = "accelerators"
    size_keys: ClassVar[tuple[str, ...]] = ("files",)
    indicators: ClassVar[Mapping[str, str | None]] = MappingProxyType(
        {
            BY_ACCELERATORS: ACCELERATORS_FED.key,
            BY_UTILISATION: UTILISATION.key,
            BY_SAMPLES: SAMPLES.key,
        }
    )
    field_by_study_key: ClassVar[Mapping[str, str]] = MappingProxyType({"read_size": "read_bytes"})

    engine: EngineName
    dataset: str
    accelerator: str
    accelerators: int
    batch: int
    compute_ns: int
    sample_bytes: int
    files: int
    samples_per_file: int = 1
    sample_stdev: int = 0
    sample_step: int = 1
    threshold: float = 0.9
    loaders: int = 4
    prefetch: int = 2
    read_bytes: int = 1 << 20
    barrier: bool = True
    direct: bool = True

    @property
    def file_bytes(self) -> int:
        """Of each file; where sizes differ, that of the mean sample."""
        exact = self.samples_per_file * self.sample_bytes
        return -(-exact // FILE_ALIGNMENT) * FILE_ALIGNMENT

    @property
    def samples_per_client(self) -> int:
        """Of one client; where sizes differ, about so many."""
        return self.files * self.samples_per_file

    @property
    def bytes_per_s_of_accelerator(self) -> float:
        """What an accelerator reads that never waits."""
        return self.batch * self.sample_bytes * 1e9 / self.compute_ns

    def accelerator_count_of_host(self, host_index: int, host_count: int) -> int:
        """How many the host at that place has: as many as the others, or one more."""
        return self.accelerators // host_count + (host_index < self.accelerators % host_count)

    def steps_of_epoch_on_host(self, accelerator_count: int) -> int:
        """Steps of an epoch on a host with so many accelerators: whole batches of each."""
        groups = self.samples_per_client // self.samples_per_file // accelerator_count
        return groups * self.samples_per_file // self.batch

    @property
    def layout_engine(self) -> EngineName:
        """See `AnyJob`."""
        return LAYOUT_ENGINE

    @property
    def ioengine(self) -> str:
        """How the layout asks the kernel."""
        return "auto"

    def data_set(self, configuration_id: str) -> DataSet:
        """See `AnyJob`."""
        return DataSet(
            id=f"tr{self.files}x{self.file_bytes}",
            configuration=configuration_id,
            numjobs=1,
            files_per_job=self.files,
            file_bytes=self.file_bytes,
        )

    @property
    def data_directions(self) -> tuple[Direction, ...]:
        """See `AnyJob`."""
        return (Direction.READ,)

    @property
    def io_alignment_bytes(self) -> int:
        """See `AnyJob`."""
        return FILE_ALIGNMENT

    @property
    def iodepth_per_client(self) -> int:
        """See `AnyJob`; of one client at most."""
        return self.accelerators * self.loaders

    @property
    def search_criterion_text(self) -> str:
        """See `AnyJob`."""
        return f"utilisation >= {percent_text(self.threshold)}"

    def meets_search_criterion(self, values: Mapping[str, float | None]) -> bool:
        """See `AnyJob`."""
        return (values.get(UTILISATION.key) or 0.0) >= self.threshold

    @property
    def is_paced(self) -> bool:
        """See `AnyJob`: accelerators compute between their batches."""
        return True


class EpochTotals(Record):
    """What a host did in its first epoch, or in all later ones.

    Of `steps` without the first of an epoch, `step_ns` in all and waits for storage in it.
    `batches` of `bytes` took loaders `load_ns`.
    """

    steps: int
    step_ns: int
    storage_wait_ns: int
    first_step_ns: int
    batches: int
    load_ns: int
    bytes: int


class TrainingHostDetails(HostLoadDetails, Record, tag="training-read"):
    """What one host did in the whole run, the warm-up included.

    `steps_least` and `steps_most` are those of the accelerator with the fewest and with the most.
    """

    accelerators: int
    samples: int
    steps_per_epoch: int
    epochs: int
    steps_least: int
    steps_most: int
    first_epoch: EpochTotals
    later_epochs: EpochTotals


def training_details_of_host(host: HostRun) -> TrainingHostDetails | None:
    """What a host did in its epochs; None where it did not tell."""
    return host.details if isinstance(host.details, TrainingHostDetails) else None
