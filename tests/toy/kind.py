"""Durable appends to a log as a kind of load: all that a study, a session and a report need."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import TYPE_CHECKING, Annotated, ClassVar, Final

from iolab.core.engine import EngineName
from iolab.core.metric_spec import Better, Combine, MetricSpec
from iolab.core.workload import BY_IOPS, AnyJob, Indicator
from iolab.loads.kind import LoadKind
from iolab.study import values
from iolab.study.kinds import LoadStudy
from iolab.study.target_tables import IO_INDICATORS, LoadTable, Sizes
from iolab.units import parse_size

if TYPE_CHECKING:
    from iolab.session.kinds import LoadSession
    from tests.toy.analysis import AppendAnalysis

APPEND_ENGINE: Final = EngineName("append")
BLOCK_BYTES_MAX: Final = 1 << 20

Size = Annotated[int | str, values.size(1, BLOCK_BYTES_MAX, multiple=1)]


VARIATION: Final = MetricSpec(
    "lat_variation", "latency variation", "share", Better.LOWER, Combine.MEAN
)
"""Standard deviation of the latency over its mean."""


@dataclass(frozen=True, slots=True)
class AppendJob(AnyJob):
    """One client's load: blocks of that size, one after the other."""

    stored_as: ClassVar[str] = "append"

    engine: EngineName
    block_bytes: int

    def at(self, axis: Iterable[tuple[str, int | str]]) -> AppendJob:
        """The job with the axis values in place of its first ones."""
        block = dict(axis).get("block", self.block_bytes)
        return replace(self, block_bytes=parse_size(block))


class AppendTable(LoadTable):
    """`[[workload]]` with `engine = "append"`; `block` may be a list."""

    engine: Annotated[EngineName, values.word((APPEND_ENGINE,), "engines")]
    block: Annotated[list[Size], Sizes]
    indicator: Annotated[Indicator, values.word((*IO_INDICATORS, VARIATION.key), "indicators")] = (
        BY_IOPS
    )

    def job(self) -> AppendJob:
        """See `LoadTable`."""
        return AppendJob(self.engine, parse_size(self.block[0]))


class AppendStudy(LoadStudy):
    """Its part of studies and plans."""

    tables = MappingProxyType({AppendTable: (APPEND_ENGINE,)})
    axes = ("block",)
    examples = MappingProxyType({"block": '"4k"'})


def _session() -> LoadSession:
    from tests.toy.engine import SESSION

    return SESSION


def _analysis() -> AppendAnalysis:
    from tests.toy.analysis import AppendAnalysis

    return AppendAnalysis()


KIND: Final = LoadKind(
    "append", (AppendJob,), AppendStudy, _session, _analysis, metrics=(VARIATION,)
)
