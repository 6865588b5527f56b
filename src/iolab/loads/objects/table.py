"""The table of load on objects in a study file, with every default and limit."""

import re
from typing import Annotated, Any, ClassVar, Final

from pydantic import Field

from iolab.core.engine import EngineName
from iolab.core.workload import BY_BANDWIDTH, HOSTS_AXIS, AnyJob, Indicator
from iolab.loads.objects.workload import (
    BY_FIRST_BYTE,
    BY_OPERATIONS,
    S3_ENGINE,
    LogNormalSizes,
    ObjectOrder,
    ObjectsJob,
    PutKeys,
    RequestArrivals,
    SizeShare,
)
from iolab.study import values
from iolab.study.file import Flag
from iolab.study.load_tables import Numbers, SearchTable, Sizes
from iolab.text import quote_value
from iolab.units import parse_size

SHARE_MAX: Final = 1000
OBJECT_BYTES_MAX: Final = 5 << 40
"""The largest object of S3."""

OBJECTS_MAX: Final = 1_000_000_000
PREFIXES_MAX: Final = 65_536
PART_BYTES_MIN: Final = 5 << 20
"""Servers refuse smaller parts, but for the last."""

PART_BYTES_MAX: Final = 5 << 30
SECTOR_BYTES: Final = 512
"""Contents are made in these: ranges and parts begin with one."""

PARTS_IN_FLIGHT_MAX: Final = 1024
LIST_PAGE_MAX: Final = 1000
CONCURRENCY_MAX: Final = 4096
RATE_MAX: Final = 10_000_000
VERIFY_MAX: Final = 1_000_000
RETRIES_MAX: Final = 100
TIMEOUT_S_MAX: Final = 3600.0
SIZES_MAX: Final = 64
SIGMA_MAX: Final = 5.0
THETA_MAX: Final = 5.0

_SIZE_SHARE: Final = re.compile(r"\s*([0-9]+[kmgt]?)\s*:\s*([0-9]+)\s*", re.IGNORECASE)

INDICATORS: Final = (BY_OPERATIONS, BY_BANDWIDTH, BY_FIRST_BYTE)
SMALL_BYTES: Final = 1 << 20
"""Objects from this size on are measured by bandwidth."""


def parse_size_share(text: str) -> SizeShare | None:
    """`64k:30` as a size with its share; None where it is none."""
    match = _SIZE_SHARE.fullmatch(text)
    if match is None:
        return None
    share = SizeShare(parse_size(match[1]), float(match[2]))
    return share if share.share > 0 and 0 < share.size_bytes <= OBJECT_BYTES_MAX else None


def _validate_size_share(value: object) -> str:
    if isinstance(value, str) and parse_size_share(value) is not None:
        return value
    hint = "Write a size and its share, as '64k:30'."
    raise values.value_error(f"is {quote_value(value)}", hint)


SizeShareText = Annotated[
    str,
    values.ValueReader(_validate_size_share, {"type": "string", "pattern": _SIZE_SHARE.pattern}),
]
Share = Annotated[int, values.integer_value(0, SHARE_MAX)]
ObjectSize = Annotated[int | str, values.size_value(0, OBJECT_BYTES_MAX, multiple=1)]
PartSize = Annotated[
    int | str, values.size_value(PART_BYTES_MIN, PART_BYTES_MAX, multiple=SECTOR_BYTES)
]
RangeSize = Annotated[
    int | str, values.size_value(SECTOR_BYTES, OBJECT_BYTES_MAX, multiple=SECTOR_BYTES)
]
Concurrency = Annotated[int, values.integer_value(1, CONCURRENCY_MAX)]
Rate = Annotated[int, values.integer_value(1, RATE_MAX)]
# The table has a key of the name `list`.
ObjectSizes = list[ObjectSize]
SizeShareTexts = list[SizeShareText]
Concurrencies = list[Concurrency]
Rates = list[Rate]


class ObjectsTable(SearchTable):
    """`[[workload]]` with `engine = "s3"`."""

    job_type: ClassVar[type[AnyJob]] = ObjectsJob
    rate_keys: ClassVar[tuple[str, ...]] = ("rate",)
    axes: ClassVar[tuple[str, ...]] = ("size", "concurrency", "rate", HOSTS_AXIS)

    engine: Annotated[EngineName, values.word_value((S3_ENGINE,), "engines")]
    objects: Annotated[int, values.integer_value(1, OBJECTS_MAX)]
    get: Share = 0
    get_range: Share = 0
    put: Share = 0
    head: Share = 0
    list: Share = 0
    delete: Share = 0
    size: Annotated[ObjectSizes, Sizes] | None = None
    sizes: Annotated[SizeShareTexts, values.ListValue()] | None = None
    size_median: ObjectSize | None = None
    size_sigma: Annotated[float, values.number_value(0, SIGMA_MAX)] = 1.0
    size_min: ObjectSize = "1k"
    size_max: ObjectSize = "16m"
    prefixes: Annotated[int, values.integer_value(1, PREFIXES_MAX)] = 16
    part: PartSize | None = None
    parts_in_flight: Annotated[int, values.integer_value(1, PARTS_IN_FLIGHT_MAX)] = 4
    range: RangeSize = "1m"
    list_page: Annotated[int, values.integer_value(1, LIST_PAGE_MAX)] = LIST_PAGE_MAX
    concurrency: Annotated[Concurrencies, Numbers] = Field(default=[16])
    rate: Annotated[Rates, Numbers] | None = None
    arrivals: Annotated[RequestArrivals, values.choice_value(RequestArrivals, "arrivals")] = (
        RequestArrivals.POISSON
    )
    order: Annotated[ObjectOrder, values.choice_value(ObjectOrder, "orders")] = ObjectOrder.UNIFORM
    zipf_theta: Annotated[float, values.number_value(0, THETA_MAX)] = 1.1
    put_keys: Annotated[PutKeys, values.choice_value(PutKeys, "kinds of keys")] = PutKeys.NEW
    keep_alive: Flag = True
    read_back: Flag = False
    verify: Annotated[int, values.integer_value(0, VERIFY_MAX)] = 0
    retries: Annotated[int, values.integer_value(0, RETRIES_MAX)] = 0
    timeout: Annotated[float | str, values.seconds_value(0.1, TIMEOUT_S_MAX)] = 30.0
    indicator: Annotated[Indicator, values.word_value(INDICATORS, "indicators")] | None = None

    def build_job(self) -> ObjectsJob:
        """See `LoadTable`."""
        derived = ("sizes", "size_median", "size_sigma", "size_min", "size_max")
        entries: dict[str, Any] = {
            key: value for key, value in self.non_null_keys_and_values() if key not in derived
        }
        job = ObjectsJob(**ObjectsJob.fields_from_keys(entries.items()))
        if self.sizes:
            shares = tuple(share for text in self.sizes if (share := parse_size_share(text)))
            return job.with_sizes(shares)
        if self.size_median is not None:
            return job.with_lognormal_sizes(
                LogNormalSizes(
                    parse_size(self.size_median),
                    self.size_sigma,
                    parse_size(self.size_min),
                    parse_size(self.size_max),
                )
            )
        return job

    @property
    def largest_object_bytes(self) -> int:
        """The size of its largest objects, at any point."""
        every = [parse_size(size) for size in self.size or ()]
        return max([*every, self.build_job().largest_object_bytes])

    @property
    def smallest_object_bytes(self) -> int:
        """The size of its smallest objects, at any point, of which ranges are read."""
        if self.size_median is not None:
            return parse_size(self.size_min)
        shares = [
            share.size_bytes for text in self.sizes or () if (share := parse_size_share(text))
        ]
        return min([*shares, *(parse_size(size) for size in self.size or ())], default=0)

    @property
    def headline_indicator(self) -> Indicator:
        """See `LoadTable`: by bandwidth where objects, or ranges of them, are large."""
        if self.indicator is not None:
            return self.indicator
        job = self.build_job()
        moved = job.range_bytes if job.get_range and not job.get else job.largest_object_bytes
        is_large = bool(job.data_directions) and moved >= SMALL_BYTES
        return BY_BANDWIDTH if is_large else BY_OPERATIONS
