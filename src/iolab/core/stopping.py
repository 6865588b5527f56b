"""The stopping rule within a run: its constants, which kind of load uses which, what it says.

The values were chosen by the simulations of `bench/method`; docs/explanation/method.md says why.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from types import MappingProxyType
from typing import Final

from msgspec.structs import replace

from iolab.record import Record

BLOCKS_MIN: Final = 4
"""Blocks of which a series must consist: of fewer no transient could be told."""


class StoppingPresetName(StrEnum):
    """What sort of load a run makes, which decides how long it must be watched."""

    RAW_BLOCK = "raw-block"
    LSM = "lsm"
    CYCLIC = "cyclic"
    QUICK = "quick"


class SteadinessStatus(StrEnum):
    """What rule D says of a run; everything but OK is printed beside the number."""

    OK = "ok"
    TRANSIENT = "transient"
    """The load had not become steady: its start still shows, or its two halves differ."""
    CYCLE = "cycle"
    """A cycle is there of which too few whole ones were seen."""
    IMPRECISE = "imprecise"
    """Steady, but the mean is not known as well as asked."""
    CORRELATED = "correlated"
    """Too correlated for one run: its seconds are worth too few independent ones."""


class Steadiness(Record):
    """What rule D says of a run's per-second rate, for a result.

    `cut_s` is the start that does not count, `seconds` how long the run was; `mean` (1/s) and
    `half_width` (95 %, a share of the mean) are those of the seconds after the cut, with `df`
    degrees of freedom; it is infinite where there is no interval. `period_s` is a cycle's, `cycles`
    how many whole ones were used, `tau_s` the time constant of a clear transient. `reasons` are
    sentences on why the status is not ok.
    """

    status: SteadinessStatus
    cut_s: int
    seconds: int
    mean: float
    half_width: float
    df: int
    period_s: int | None
    cycles: int
    tau_s: float | None
    reasons: tuple[str, ...] = ()


class StoppingRuleSettings(Record):
    """All constants of rule D; times in seconds.

    `precision` is the relative half-width wanted of a run's mean. The rule looks at the run at
    `shortest_s` and every `step_s` until `longest_s`, and ends it after `consecutive` looks in a
    row that satisfied it. Of what is left after the cut, at least `retained_s` seconds must remain,
    cut into at least `batches_min` batches or `cycles_min` cycles. Its two halves must agree to
    `equivalence` times the precision. A fitted transient is cut where it has decayed to
    `bias_share` times the precision. The transient is sought in medians of blocks of `block_s`; the
    first `cut_least_s`, in which engines and queues ramp up, never count. Shorter ones than the
    usual are for demonstrations, which are over before any storage shows what it can hold.

    Raises ValueError, saying all faults at once, for settings that contradict one another.
    """

    precision: float = 0.02
    shortest_s: int = 180
    longest_s: int = 780
    step_s: int = 15
    consecutive: int = 2
    batches_min: int = 8
    cycles_min: int = 3
    retained_s: int = 120
    equivalence: float = 0.5
    bias_share: float = 1 / 8
    block_s: int = 5
    cut_least_s: int = 10

    def __post_init__(self) -> None:
        faults = [words for wrong, words in self._setting_checks() if wrong]
        if faults:
            raise ValueError("; ".join(faults))

    @property
    def shortest_run_s(self) -> int:
        """The shortest that a run can be: as many looks as must be satisfied in a row."""
        return min(self.shortest_s + (self.consecutive - 1) * self.step_s, self.longest_s)

    def _setting_checks(self) -> tuple[tuple[bool, str], ...]:
        return (
            (not 0 < self.precision < 1, f"precision {self.precision} is not between 0 and 1"),
            (self.step_s < 1, f"step_s {self.step_s} is less than a second"),
            (self.consecutive < 1, f"consecutive {self.consecutive} is less than one look"),
            (self.batches_min < 3, f"batches_min {self.batches_min} gives no spread"),
            (self.cycles_min < 2, f"cycles_min {self.cycles_min} gives no spread"),
            (self.equivalence <= 0, f"equivalence {self.equivalence} lets no run pass"),
            (not 0 < self.bias_share <= 1, f"bias_share {self.bias_share} is not in (0, 1]"),
            (
                not 2 * self.batches_min <= self.retained_s <= self.shortest_s,
                f"retained_s {self.retained_s} is not between two seconds a batch"
                f" and shortest_s {self.shortest_s}",
            ),
            (self.block_s < 1, f"block_s {self.block_s} is less than a second"),
            (
                self.shortest_s < BLOCKS_MIN * self.block_s,
                f"shortest_s {self.shortest_s} holds fewer than {BLOCKS_MIN} blocks of"
                f" {self.block_s} s",
            ),
            (
                not 0 <= self.cut_least_s <= self.shortest_s - self.retained_s,
                f"cut_least_s {self.cut_least_s} leaves less than retained_s {self.retained_s}"
                f" of shortest_s {self.shortest_s}",
            ),
            (
                self.longest_s < self.shortest_s,
                f"longest_s {self.longest_s} is below shortest_s {self.shortest_s}",
            ),
        )


RAW_BLOCK: Final = StoppingRuleSettings()
"""Block devices and fleets of VMs."""

LSM: Final = StoppingRuleSettings(
    precision=0.05,
    shortest_s=600,
    longest_s=1800,
    step_s=30,
    retained_s=480,
    bias_share=1 / 20,
)
"""Log-structured stores (RocksDB, Cassandra): stalls come about once a minute, and a rule that may
stop early would prefer the stretches without them."""

CYCLIC: Final = replace(RAW_BLOCK, shortest_s=300, longest_s=1800, retained_s=240)
"""Writes whose rate swings over minutes; a run that ended as CYCLE is repeated with these. Half of
a slow cycle can look steady: with looks from 180 s on, 6 % of the runs accepted of such a load (S4)
were off by more than 2 %, from 300 s on hardly any (simulated), for a tenth more time."""

QUICK: Final = replace(RAW_BLOCK, shortest_s=120, retained_s=60)
"""A quick scan: half the time, 0.03 points more bias."""

PRESETS: Final[Mapping[StoppingPresetName, StoppingRuleSettings]] = MappingProxyType(
    {
        StoppingPresetName.RAW_BLOCK: RAW_BLOCK,
        StoppingPresetName.LSM: LSM,
        StoppingPresetName.CYCLIC: CYCLIC,
        StoppingPresetName.QUICK: QUICK,
    }
)
"""The settings of each kind of load."""
