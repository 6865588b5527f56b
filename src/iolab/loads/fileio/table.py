"""The table of I/O in a study file, with every default and limit."""

from typing import Annotated, Any, ClassVar, Final

from msgspec.structs import replace
from pydantic import ConfigDict, Field, model_validator

from iolab.core.engine import EngineName
from iolab.core.workload import (
    BY_BANDWIDTH,
    BY_IOPS,
    HOSTS_AXIS,
    VMS_PER_NODE_AXIS,
    AnyJob,
    Indicator,
)
from iolab.loads.fileio.engine_facts import FILE_ENGINES, FIO_ENGINE, LIBAIO
from iolab.loads.fileio.workload import (
    BANDWIDTH_BLOCK_BYTES,
    IOENGINES,
    SECTOR_BYTES,
    WHOLE_PERCENT,
    AccessPattern,
    IoArrivals,
    Job,
    WrittenContents,
)
from iolab.study import values
from iolab.study.file import Flag
from iolab.study.load_tables import Label, Numbers, NumJobs, SearchTable, Sizes
from iolab.units import parse_size

IO_ENGINES: Final = tuple(engine.name for engine in FILE_ENGINES.values())

BLOCK_BYTES_MAX: Final = 1 << 30
"""fio allocates iodepth x bs for each job; more than 1 GiB a block fits no client."""

FILE_BYTES_MAX: Final = 1 << 50
"""A pebibyte: larger than any file that a layout could finish."""

IODEPTH_MAX: Final = 65536
"""The largest queue that the kernel grants an io_uring or (by default) all of libaio."""

FILES_MAX: Final = 10_000
"""Files of one job; fio keeps them open."""

RATE_MAX: Final = 100_000_000
"""I/Os per second of one job; no job comes near."""

RATE_BYTES_MAX: Final = 1 << 40
"""The same in bytes: more than any host's memory moves."""

FLEET_RATE_MAX: Final = RATE_MAX * 1000
"""The same of all jobs of all hosts."""

PATH_CHARACTERS: Final = 1000

SPEED_MIN: Final = 0.001
SPEED_MAX: Final = 1000.0
"""How much faster than recorded a trace may be replayed."""

TRACE_IODEPTH: Final = 256
"""I/Os in flight of a replay that says nothing else: more than most recorded loads had."""

TRACE_BLOCK_BYTES: Final = 4096
"""What stands for the block of a trace that cannot be read, which is told elsewhere."""

_KEYS_OF_TRACE: Final = ("rw", "bs")
"""Keys without a default that are left out where a trace is named."""

DEFAULT_READ_PERCENT: Final = 50
"""fio's own rwmixread."""

BlockSize = Annotated[
    int | str, values.size_value(SECTOR_BYTES, BLOCK_BYTES_MAX, multiple=SECTOR_BYTES)
]
FileSize = Annotated[
    int | str, values.size_value(SECTOR_BYTES, FILE_BYTES_MAX, multiple=SECTOR_BYTES)
]
IoDepth = Annotated[int, values.integer_value(1, IODEPTH_MAX)]
Percent = Annotated[int, values.integer_value(0, 100)]
Rate = Annotated[int, values.integer_value(1, RATE_MAX)]
RateBytes = Annotated[int | str, values.size_value(1, RATE_BYTES_MAX, multiple=1)]
FleetRate = Annotated[int, values.integer_value(1, FLEET_RATE_MAX)]


def _add_pattern_or_trace_rule_to(schema: dict[str, Any]) -> None:
    """In the schema: what a trace decides is required only where there is none."""
    required = [key for key in schema["required"] if key not in _KEYS_OF_TRACE]
    schema["required"] = required
    schema["anyOf"] = [{"required": list(_KEYS_OF_TRACE)}, {"required": ["trace"]}]


class FileTable(SearchTable):
    """`[[workload]]` of I/O on files or a device."""

    model_config = ConfigDict(json_schema_extra=_add_pattern_or_trace_rule_to)

    job_type: ClassVar[type[AnyJob]] = Job
    rate_keys: ClassVar[tuple[str, ...]] = ("rate_iops", "rate", "fleet_rate_iops")
    axes: ClassVar[tuple[str, ...]] = (
        "bs",
        "iodepth",
        "numjobs",
        "rwmixread",
        "filesize",
        *rate_keys,
        VMS_PER_NODE_AXIS,
        HOSTS_AXIS,
    )

    engine: Annotated[EngineName, values.word_value(IO_ENGINES, "engines")] = FIO_ENGINE
    rw: Annotated[AccessPattern, values.choice_value(AccessPattern, "access patterns")]
    bs: Annotated[list[BlockSize], Sizes]
    iodepth: Annotated[list[IoDepth], Numbers] = Field(default=[1])
    numjobs: Annotated[list[NumJobs], Numbers] = Field(default=[1])
    filesize: Annotated[list[FileSize], Sizes]
    files: Annotated[int, values.integer_value(1, FILES_MAX)] = 1
    rwmixread: Annotated[list[Percent], Numbers] | None = None
    rate_iops: Annotated[list[Rate], Numbers] | None = None
    rate: Annotated[list[RateBytes], Sizes] | None = None
    fleet_rate_iops: Annotated[list[FleetRate], Numbers] | None = None
    arrivals: Annotated[IoArrivals, values.choice_value(IoArrivals, "arrivals")] | None = None
    shared_file: Flag = False
    direct: Flag = True
    ioengine: Annotated[str, values.word_value(IOENGINES, "I/O engines")] = LIBAIO
    contents: Annotated[WrittenContents, values.choice_value(WrittenContents, "contents")] = (
        WrittenContents.SCRAMBLED
    )
    verify: Flag = False
    trace: Annotated[str, values.text_value(PATH_CHARACTERS)] | None = None
    trace_speed: Annotated[float, values.number_value(SPEED_MIN, SPEED_MAX)] = 1.0
    fio: dict[str, Label] = Field(default_factory=dict)

    @model_validator(mode="before")
    @classmethod
    def _fill_in_defaults_from_trace(cls, user_table: object) -> object:
        """What a trace decides, where the table names one: access, block, a depth."""
        if not isinstance(user_table, dict) or not isinstance(user_table.get("trace"), str):
            return user_table
        return {
            **_settings_from_trace(user_table["trace"]),
            "iodepth": [TRACE_IODEPTH],
            **user_table,
        }

    def build_job(self) -> Job:
        """See `LoadTable`; where none is named an engine asks the kernel in its own way."""
        job = Job(**Job.fields_from_keys(self.non_null_keys_and_values()))
        mix = DEFAULT_READ_PERCENT if job.read_percent is None else job.read_percent
        named = "ioengine" in self.model_fields_set
        if self.trace is not None:
            job = _with_trace_digest_rate_and_sizes(job)
        return replace(
            job,
            read_percent=mix if self.rw.is_mixed else None,
            ioengine=self.ioengine if named else FILE_ENGINES[self.engine].default_ioengine,
        )

    @property
    def headline_indicator(self) -> Indicator:
        """As written; else bandwidth of large blocks, IOPS of small ones."""
        large = parse_size(self.bs[0]) >= BANDWIDTH_BLOCK_BYTES
        return self.indicator or (BY_BANDWIDTH if large else BY_IOPS)


def _settings_from_trace(path: str) -> dict[str, Any]:
    from iolab.loads.fileio.io_trace import IoTraceError, read_trace

    try:
        trace = read_trace(path)
    except IoTraceError:
        return {"rw": AccessPattern.READ.value, "bs": [TRACE_BLOCK_BYTES]}
    share, largest = trace.read_share, int(trace.io_sizes.max())
    keys: dict[str, Any] = {"bs": [1 << (largest - 1).bit_length()]}
    if share in (0.0, 1.0):
        return {**keys, "rw": (AccessPattern.RANDREAD if share else AccessPattern.RANDWRITE).value}
    percent = min(max(round(share * WHOLE_PERCENT), 1), WHOLE_PERCENT - 1)
    return {**keys, "rw": AccessPattern.RANDRW.value, "rwmixread": [percent]}


def _with_trace_digest_rate_and_sizes(job: Job) -> Job:
    from iolab.loads.fileio.io_trace import IoTraceError, read_trace

    try:
        trace = read_trace(job.trace)
    except IoTraceError:
        return job
    sizes = trace.io_sizes
    return replace(
        job,
        trace_digest=trace.digest,
        trace_iops=trace.io_count * 1e9 / trace.span_ns * job.trace_speed,
        trace_mean_bytes=float(sizes.mean()),
        trace_least_bytes=int(sizes.min()),
    )
