"""The base of a study file's tables, and what all those of `[[workload]]` have in common.

Modules of tables are without `from __future__ import annotations`: pydantic would compile the text
of each annotation, which took a twentieth of `iolab check`.
"""

import re
from collections.abc import Iterator, Mapping
from typing import Annotated, Any, ClassVar, Final

from pydantic import BaseModel, ConfigDict, Field

from iolab.core.configuration import (
    GRID_OBJECTIVE,
    LATENCY_METRIC_KEYS,
    AxisSampling,
    LatencyLimit,
    Objective,
    WorkloadObjective,
)
from iolab.core.workload import (
    BY_BANDWIDTH,
    BY_IOPS,
    BY_LATENCY,
    HOSTS_AXIS,
    VMS_PER_NODE_AXIS,
    AnyJob,
    Axis,
    Indicator,
)
from iolab.study import values
from iolab.study.host_ranges import HOSTS_MAX
from iolab.text import quote_value
from iolab.units import parse_size

TITLE_CHARACTERS: Final = 200
PROSE_CHARACTERS: Final = 4000

Title = Annotated[str, values.text_value(TITLE_CHARACTERS)]
Prose = Annotated[str, values.text_value(PROSE_CHARACTERS, allows_line_breaks=True)]
Id = Annotated[str, values.identifier_value()]
Label = Annotated[str | int | float | bool, values.scalar_value()]
Sizes = values.ListValue(allow_scalar=True, equality_key=parse_size)
Numbers = values.ListValue(allow_scalar=True)


NUMJOBS_MAX: Final = 4096
"""As many jobs as one fio takes (REAL_MAX_JOBS in fio's os headers)."""

NumJobs = Annotated[int, values.integer_value(1, NUMJOBS_MAX)]

IO_INDICATORS: Final = (BY_IOPS, BY_BANDWIDTH, BY_LATENCY)

HEADLINE_MAX: Final = 65536
"""As deep as a queue may be."""

_UNITS_NS: Final = {"ns": 1.0, "us": 1e3, "µs": 1e3, "ms": 1e6, "s": 1e9}

_LIMIT: Final = re.compile(
    r"\s*(?:(?P<operation>[a-z]+(?:-[a-z]+)*)\s+)?(?P<name>mean|p[0-9.]+)\s*<=\s*"
    r"(?P<number>[0-9]+(?:\.[0-9]+)?)\s*(?P<unit>ns|us|µs|ms|s)\s*"
)


class StudyTable(BaseModel):
    """A table of the file: unknown keys are faults."""

    model_config = ConfigDict(
        extra="forbid", frozen=True, arbitrary_types_allowed=True, defer_build=True
    )

    part_of: ClassVar["type[StudyTable] | None"] = None
    """The table that this one is a part of, for what else could have been written there."""

    def non_null_keys_and_values(self) -> Iterator[tuple[str, Any]]:
        """Its keys with their values, without those that say nothing."""
        for key in type(self).model_fields:
            value = getattr(self, key)
            if value is not None:
                yield key, tuple(value) if isinstance(value, list) else value


class LoadTable(StudyTable):
    """`[[workload]]` of a kind of load: the keys that its own table need not repeat.

    `job_type` is what it asks of clients, whose fields its keys are. `axes` are its keys that may
    be lists; several lists make a product, of which the first varies slowest.
    """

    job_type: ClassVar[type[AnyJob]]
    axes: ClassVar[tuple[str, ...]] = ()

    id: Id
    title: Title | None = None
    indicator: Annotated[Indicator, values.word_value(IO_INDICATORS, "indicators")] | None = None

    def build_job(self) -> AnyJob:
        """What the table, which has no faults, asks a client for; of an axis its first value."""
        return self.job_type(**self.job_type.fields_from_keys(self.non_null_keys_and_values()))

    def non_null_keys_and_values(self) -> Iterator[tuple[str, Any]]:
        """See `StudyTable`; of an axis its first value, and options as they are told."""
        for key, value in super().non_null_keys_and_values():
            if isinstance(value, dict):
                yield (
                    key,
                    tuple(
                        (name, self.program_option_text(option)) for name, option in value.items()
                    ),
                )
            else:
                yield key, value[0] if key in self.axes else value

    program_option_text = staticmethod(values.program_option_text)
    """How options of a tool are told to it."""

    def sweep_axes(self, values_as_written: Mapping[str, Any]) -> tuple[Axis, ...]:
        """Its axes: lists among `values_as_written`, except keys with faults, which have none.

        Who makes the load is told of every point that says so.
        """
        return tuple(
            Axis(name, tuple(listed))
            for name in self.axes
            if isinstance(values_as_written.get(name), list)
            or (name in (VMS_PER_NODE_AXIS, HOSTS_AXIS) and name in values_as_written)
            if (listed := getattr(self, name)) is not None
        )

    @property
    def headline_indicator(self) -> Indicator:
        """Its headline."""
        return self.indicator or BY_IOPS

    @property
    def workload_objective(self) -> WorkloadObjective:
        """What its axes are measured for."""
        return GRID_OBJECTIVE

    @property
    def repeats(self) -> int | None:
        """How often each of its points is measured, None for as often as the method says."""
        return None


def parse_latency_limit(text: str) -> LatencyLimit | None:
    """`p99 <= 2ms` as a limit; None where it is none."""
    match = _LIMIT.fullmatch(text)
    if match is None or match["name"] not in LATENCY_METRIC_KEYS or float(match["number"]) <= 0:
        return None
    operation = f"{match['operation'].replace('-', '_')}_" if match["operation"] else ""
    return LatencyLimit(
        f"{operation}{LATENCY_METRIC_KEYS[match['name']]}",
        float(match["number"]) * _UNITS_NS[match["unit"]],
    )


def _validate_latency_limit_text(value: object) -> str:
    if isinstance(value, str) and parse_latency_limit(value) is not None:
        return value
    hint = (
        "Write a latency and what it must not exceed, as 'p99 <= 2ms' or 'read p99.9 <= 500us'; "
        f"known are {', '.join(LATENCY_METRIC_KEYS)}."
    )
    raise values.value_error(f"is {quote_value(value)}", hint)


LimitText = Annotated[str, values.ValueReader(_validate_latency_limit_text, {"type": "string"})]
PerNode = Annotated[int, values.integer_value(1, HOSTS_MAX)]


class SearchTable(LoadTable):
    """That of load which can be searched, and made by growing numbers of hosts.

    `rate_keys` are its keys that say how fast it goes.
    """

    rate_keys: ClassVar[tuple[str, ...]] = ()

    objective: Annotated[Objective, values.choice_value(Objective, "objectives")] = Objective.GRID
    axis: Annotated[AxisSampling, values.choice_value(AxisSampling, "kinds of axis")] = (
        AxisSampling.LISTED
    )
    headline: Annotated[
        list[Annotated[int, values.integer_value(1, HEADLINE_MAX)]],
        values.ListValue(allow_scalar=True),
    ] = Field(default=[])
    limit: LimitText | None = None
    vms_per_node: Annotated[list[PerNode], Numbers] | None = None
    hosts: Annotated[list[PerNode], Numbers] | None = None

    @property
    def workload_objective(self) -> WorkloadObjective:
        """See `LoadTable`."""
        return WorkloadObjective(
            objective=self.objective,
            axis_sampling=self.axis,
            headline_loads=tuple(sorted(self.headline)),
            latency_limit=None if self.limit is None else parse_latency_limit(self.limit),
        )
