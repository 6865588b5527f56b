"""The table of training-read load in a study file, with every default and limit."""

import math
from typing import Annotated, Any, ClassVar, Final

from pydantic import Field

from iolab.core.engine import EngineName
from iolab.core.workload import HOSTS_AXIS, AnyJob, Indicator
from iolab.loads.training.datasets import (
    ACCELERATORS,
    CUSTOM,
    PUBLISHED_STEPS,
    SAMPLE_SETS,
    SampleSet,
    TrainingStep,
)
from iolab.loads.training.workload import (
    BY_ACCELERATORS,
    BY_SAMPLES,
    BY_UTILISATION,
    FILE_ALIGNMENT,
    TRAINING_ENGINE,
    TrainingJob,
)
from iolab.study import values
from iolab.study.checks import FILES_PER_HOST_MAX
from iolab.study.file import Flag
from iolab.study.load_tables import Numbers, SearchTable, Sizes
from iolab.units import parse_size

ACCELERATORS_MAX: Final = 65_536
LOADERS_MAX: Final = 256
"""Threads of one accelerator."""

PREFETCH_MAX: Final = 64
BATCH_MAX: Final = 1 << 24
SAMPLE_BYTES_MAX: Final = 1 << 40
SAMPLES_PER_FILE_MAX: Final = 1 << 24

READ_BYTES_MAX: Final = 1 << 30
COMPUTE_S_MIN: Final = 0.0001
"""A timer that is late by what a machine is late has no meaning for shorter steps."""

COMPUTE_S_MAX: Final = 3600.0
SAMPLE_SHARE_MIN: Final = 0.0001

Count = Annotated[int, values.integer_value(1, ACCELERATORS_MAX)]
Loaders = Annotated[int, values.integer_value(1, LOADERS_MAX)]
SampleSize = Annotated[int | str, values.size_value(1, SAMPLE_BYTES_MAX, multiple=1)]
ReadSize = Annotated[
    int | str, values.size_value(FILE_ALIGNMENT, READ_BYTES_MAX, multiple=FILE_ALIGNMENT)
]

UNKNOWN_STEP: Final = TrainingStep(1, 1_000_000_000)
"""In place of one that neither study nor data set says."""

DERIVED: Final = (
    "accelerator",
    "sample_bytes",
    "sample_stdev",
    "sample_share",
    "samples_per_file",
    "batch",
    "compute",
    "files",
    "loaders",
)
"""Keys whose values are the data set's where nothing is written."""


class TrainingTable(SearchTable):
    """`[[workload]]` with `engine = "training-read"`."""

    job_type: ClassVar[type[AnyJob]] = TrainingJob
    rate_keys: ClassVar[tuple[str, ...]] = ("accelerators",)
    axes: ClassVar[tuple[str, ...]] = (
        "accelerators",
        "loaders",
        "prefetch",
        "read_size",
        HOSTS_AXIS,
    )

    engine: Annotated[EngineName, values.word_value((TRAINING_ENGINE,), "engines")]
    dataset: Annotated[str, values.word_value((*SAMPLE_SETS, CUSTOM), "data sets")]
    accelerator: Annotated[str, values.word_value(ACCELERATORS, "accelerators")] | None = None
    accelerators: Annotated[list[Count], Numbers]
    sample_bytes: SampleSize | None = None
    sample_stdev: SampleSize | None = None
    sample_share: Annotated[float, values.number_value(SAMPLE_SHARE_MIN, 1)] = 1.0
    samples_per_file: Annotated[int, values.integer_value(1, SAMPLES_PER_FILE_MAX)] | None = None
    batch: Annotated[int, values.integer_value(1, BATCH_MAX)] | None = None
    compute: Annotated[float | str, values.seconds_value(COMPUTE_S_MIN, COMPUTE_S_MAX)] | None = (
        None
    )
    files: Annotated[int, values.integer_value(1, FILES_PER_HOST_MAX)] | None = None
    loaders: Annotated[list[Loaders], Numbers] | None = None
    prefetch: Annotated[list[Annotated[int, values.integer_value(1, PREFETCH_MAX)]], Numbers] = (
        Field(default=[2])
    )
    read_size: Annotated[list[ReadSize], Sizes] = Field(default=["1m"])
    threshold: Annotated[float, values.share_value()] | None = None
    barrier: Flag = True
    direct: Flag = True
    indicator: (
        Annotated[
            Indicator,
            values.word_value((BY_ACCELERATORS, BY_UTILISATION, BY_SAMPLES), "indicators"),
        ]
        | None
    ) = None

    @property
    def published_sample_set(self) -> SampleSet | None:
        """The published data set; None for one of the study's own."""
        return SAMPLE_SETS.get(self.dataset)

    @property
    def step(self) -> TrainingStep | None:
        """The batch and the computation; None where neither study nor data set says them."""
        published = self._published_step()
        batch = self.batch or (published.batch if published else None)
        if batch is None or (self.compute is None and published is None):
            return None
        if self.compute is not None:
            return TrainingStep(batch, round(float(self.compute) * 1e9))
        return TrainingStep(batch, published.compute_ns) if published else None

    def _published_step(self) -> TrainingStep | None:
        if self.published_sample_set is None:
            return None
        name = self.accelerator or next(iter(self.published_sample_set.steps))
        return self.published_sample_set.steps.get(name)

    @property
    def mean_read_bytes_per_sample(self) -> int | None:
        """Of a sample as it is read, `sample_share` included; None where nothing says it."""
        published = self.published_sample_set.sample_bytes if self.published_sample_set else None
        written = published if self.sample_bytes is None else parse_size(self.sample_bytes)
        return None if written is None else max(round(written * self.sample_share), 1)

    def build_job(self) -> TrainingJob:
        """See `LoadTable`; what is not written is the data set's."""
        entries = {
            key: value for key, value in self.non_null_keys_and_values() if key not in DERIVED
        }
        # Of a table with faults other parts of a study ask as well, before it is refused.
        step, bytes_each = self.step or UNKNOWN_STEP, self.mean_read_bytes_per_sample or 1
        per_file = self.samples_per_file or (
            self.published_sample_set.samples_per_file if self.published_sample_set else 1
        )
        loaders = self.loaders[0] if self.loaders else None
        fields: dict[str, Any] = {
            "accelerator": self.accelerator or self._default_accelerator(),
            "batch": step.batch,
            "compute_ns": step.compute_ns,
            "sample_bytes": bytes_each,
            "samples_per_file": per_file,
            "files": self.files or self._file_count_for_published_steps(step, per_file),
            "loaders": loaders
            or (self.published_sample_set.loaders if self.published_sample_set else 4),
            **self._sample_size_deviation_fields(),
        }
        if self.published_sample_set:
            entries.setdefault("threshold", self.published_sample_set.threshold)
        return TrainingJob(**TrainingJob.fields_from_keys(entries.items()), **fields)

    def _default_accelerator(self) -> str:
        return next(iter(self.published_sample_set.steps)) if self.published_sample_set else ""

    def _file_count_for_published_steps(self, step: TrainingStep, samples_per_file: int) -> int:
        return math.ceil(PUBLISHED_STEPS * step.batch / samples_per_file) * max(self.accelerators)

    def _sample_size_deviation_fields(self) -> dict[str, int]:
        """The deviation of sizes and what they are multiples of; none where all are alike."""
        own = self.published_sample_set
        stdev = own.sample_stdev if own and self.sample_bytes is None else 0
        if self.sample_stdev is not None:
            stdev = parse_size(self.sample_stdev)
        if not stdev:
            return {}
        step = round((own.sample_step if own else FILE_ALIGNMENT) * self.sample_share)
        aligned = max(step // FILE_ALIGNMENT, 1) * FILE_ALIGNMENT
        return {"sample_stdev": round(stdev * self.sample_share), "sample_step": aligned}

    @property
    def headline_indicator(self) -> Indicator:
        """See `LoadTable`."""
        return self.indicator or BY_ACCELERATORS
