"""Durable appends to a log as a kind of load: all that a study, a session and a report need."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Annotated, ClassVar, Final

from iolab.core.engine import EngineName
from iolab.core.metric_spec import BetterDirection, CombineRule, MetricSpec
from iolab.core.study import Study
from iolab.core.workload import BY_IOPS, AnyJob, Indicator
from iolab.loads.kind import LoadKind
from iolab.record import Record
from iolab.study import values
from iolab.study.kinds import LoadStudyKind, VersionArgvByProgram
from iolab.study.load_tables import IO_INDICATORS, LoadTable, Sizes

APPEND_ENGINE: Final = EngineName("append")
BLOCK_BYTES_MAX: Final = 1 << 20

Size = Annotated[int | str, values.size_value(1, BLOCK_BYTES_MAX, multiple=1)]


VARIATION: Final = MetricSpec(
    "lat_variation", "latency variation", "share", BetterDirection.LOWER, CombineRule.MEAN
)
"""Standard deviation of the latency over its mean."""


class AppendJob(AnyJob, Record, tag="append"):
    """One client's load: blocks of that size, one after the other."""

    field_by_study_key: ClassVar[Mapping[str, str]] = MappingProxyType({"block": "block_bytes"})

    engine: EngineName
    block_bytes: int


class AppendTable(LoadTable):
    """`[[workload]]` with `engine = "append"`; `block` may be a list."""

    job_type: ClassVar[type[AnyJob]] = AppendJob
    axes: ClassVar[tuple[str, ...]] = ("block",)

    engine: Annotated[EngineName, values.word_value((APPEND_ENGINE,), "engines")]
    block: Annotated[list[Size], Sizes]
    indicator: Annotated[
        Indicator, values.word_value((*IO_INDICATORS, VARIATION.key), "indicators")
    ] = BY_IOPS


class AppendStudy(LoadStudyKind):
    """Its part of studies and plans."""

    engines_by_table = MappingProxyType({AppendTable: (APPEND_ENGINE,)})
    example_by_key = MappingProxyType({"block": '"4k"'})

    def version_argv_by_probed_program(self, study: Study) -> VersionArgvByProgram:
        """For Python."""
        return {APPEND_ENGINE: ["python3", "--version"]}


KIND: Final = LoadKind(
    "append",
    {"append": f"{__name__}:AppendJob"},
    session_kind_path=f"{__package__}.engine:SESSION",
    study_kind_path=f"{__name__}:AppendStudy",
    analysis_path=f"{__package__}.analysis:AppendAnalysis",
    non_operation_metrics=(VARIATION,),
)
