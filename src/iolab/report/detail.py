"""What the charts of one run are drawn from: its time series on one grid, its latency curves."""

from __future__ import annotations

from dataclasses import dataclass

from iolab.analyse.account import ByteAccount
from iolab.model.metric import Result
from iolab.report.palette import Token

RunKey = tuple[str, int]
"""A run: the digest of its point, and the repeat."""


@dataclass(frozen=True, slots=True)
class Trace:
    """One line of a panel, one value for each time of the detail's grid; None where unknown.

    `token` is its colour where it has one of its own, as an operation has.
    """

    name: str
    values: tuple[float | None, ...]
    token: Token | None = None


@dataclass(frozen=True, slots=True)
class Panel:
    """Lines of one unit over time: of `show_value`."""

    title: str
    unit: str
    traces: tuple[Trace, ...]
    log: bool = False


@dataclass(frozen=True, slots=True)
class Curve:
    """Latency by percentile: `lat_ns[i]` is exceeded by one I/O in `tail[i]` (1/(1-q), from 1).

    It ends at the highest percentile that `total` I/Os support.
    """

    name: str
    total: int
    tail: tuple[float, ...]
    lat_ns: tuple[float, ...]


@dataclass(frozen=True, slots=True)
class Timeline:
    """A run's series on one grid of times, seconds since the first I/O; the middle of each cell.

    Seconds before `warmup_s` and after `end_s` are not part of the result.
    """

    at_s: tuple[float, ...]
    cell_s: float
    warmup_s: float
    end_s: float
    panels: tuple[Panel, ...]


@dataclass(frozen=True, slots=True)
class HeatMap:
    """A run's I/Os by moment and latency: `counts[i][j]` completed in moment i within band j.

    Moment i lasts from `edges_s[i]` to `edges_s[i + 1]`, seconds since the first I/O; band j holds
    latencies from `edges_ns[j]` to `edges_ns[j + 1]`, and all bands have one ratio. The percentiles
    are those of each moment's I/Os, None where these are too few. What is before `begin_s` and
    after `end_s` is not part of the result; `middle_ns` is where half of the I/Os in between lie.
    """

    edges_s: tuple[float, ...]
    edges_ns: tuple[float, ...]
    counts: tuple[tuple[int, ...], ...]
    p50_ns: tuple[float | None, ...]
    p99_ns: tuple[float | None, ...]
    begin_s: float
    end_s: float
    middle_ns: tuple[float, float] | None


@dataclass(frozen=True, slots=True)
class RunDetail:
    """The charts' side of a run.

    `whole` is the latency of all its I/Os, `curves` that of each direction; of metadata load there
    is no whole, and a curve for each operation. `timeline` is None for runs shown by their
    distribution alone. `account` is the account of bytes where storage nodes were watched, `heat`
    the latency over time of some runs of I/O on files.
    """

    result: Result
    whole: Curve
    curves: tuple[Curve, ...]
    timeline: Timeline | None
    account: ByteAccount | None = None
    heat: HeatMap | None = None

    @property
    def key(self) -> RunKey:
        """The run that this is the detail of."""
        return (self.result.digest, self.result.repeat)
