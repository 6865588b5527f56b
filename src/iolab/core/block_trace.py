"""What was sampled of the block I/Os of one device while an engine ran."""

from __future__ import annotations

from iolab.core.workload import Direction
from iolab.record import Record


class BioLatencyBin(Record):
    """Sampled bios of one latency bin.

    `weight` is of how many bios of the device these are a sample. Of all bios in higher bins, by
    window of sampling: `tail_squares` sums the squares of their weight, `tail_products` their
    weight times that of their whole window; from both follows how far chance moves a share, also
    where slow ones come together.
    """

    bin: int
    bios: int
    weight: float
    tail_squares: float
    tail_products: float


class DirectionTrace(Record):
    """Bios of one direction that the engine's processes queued.

    `sizes` are (bytes, bios), 0 for those beyond the sizes told apart. `sequential` bios began
    where another of the same window had ended; `ends` sums over the bios how many such ends there
    were. `sectors` are starts in sectors of 512 B, a uniform part of them. Latencies are from
    queueing to completion, of the `timed` ones; `censored` ones have no recorded end.
    `weight` is the sum of the rows' and `weight_squares` that of the windows' squares.
    """

    bios: int
    windows: int
    sizes: tuple[tuple[int, int], ...]
    sequential: int
    ends: int
    sectors: tuple[int, ...]
    censored: int
    timed: int
    lat_max_ns: int
    lat_sum_ns: float
    weight: float
    weight_squares: float
    latencies: tuple[BioLatencyBin, ...]


class BlockTrace(Record):
    """A sample of the bios of one device during the engine's run, or the `reason` for none.

    `others` are sampled bios of other processes and of the kernel's own, `lost` records that found
    no room while they were taken.
    """

    device: str
    reason: str = ""
    read: DirectionTrace | None = None
    write: DirectionTrace | None = None
    others: int = 0
    lost: int = 0

    def direction_trace(self, direction: Direction) -> DirectionTrace | None:
        """The sample of a direction; None where there is none, as of trims."""
        return {Direction.READ: self.read, Direction.WRITE: self.write}.get(direction)
