"""Experiment 3: how often the interval of one run holds its truth, or is refused.

Of each process: runs of fixed length as they are judged, and runs that rule D ended itself. `given`
is the share of runs that have an interval, `held` how many of those intervals hold the truth,
`wrong` the share of all runs whose interval does not. Of the runs that the rule called done the
same, with the median of the seconds that all took. The same for percentiles of latencies whose
scale wanders from second to second.
"""

from __future__ import annotations

import math
import zlib
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from statistics import NormalDist
from typing import Final

import numpy as np
from msgspec.structs import replace

from bench.method.processes import PROCESSES, RHOS, correlated
from bench.method.scenarios import RATE, Floats
from iolab.core.histogram import MIDDLE_NS
from iolab.core.stopping import RAW_BLOCK, StoppingRuleSettings
from iolab.stats.quantiles import latency_quantile_estimates
from iolab.stats.stopping import (
    StoppingDecision,
    StoppingStatus,
    judge_series,
    replay_stopping_rule,
)

LENGTHS: Final = (120, 300, 780)
DONE: Final = 0
"""Stands for the length of runs that the rule called done."""

QUANTILES: Final = (0.5, 0.99)
LATENCY_LENGTHS: Final = (120, 300, 780)
LATENCY_SPREADS: Final = (0.1, 0.3)
_LATENCY_SD: Final = 0.5
_LATENCY_NS: Final = 1e6
_IOS: Final = 300

Outcome = tuple[bool, bool, float]
"""Whether there is an interval, whether it holds, and how many seconds that took."""


@dataclass(frozen=True, slots=True)
class Coverage:
    """What became of the intervals of one process and length (DONE: the rule's own)."""

    process: str
    length: int
    given: float
    held: float
    wrong: float
    seconds: float


@dataclass(frozen=True, slots=True)
class Task:
    """Replicates of one process, from `first` on."""

    process: str
    first: int
    count: int


Judge = Callable[[Floats, StoppingRuleSettings], StoppingDecision]


def tasks(replicates: int, chunk: int = 50) -> list[Task]:
    """All replicates of all processes, in chunks that processes can share."""
    return [
        Task(name, first, min(chunk, replicates - first))
        for name in PROCESSES
        for first in range(0, replicates, chunk)
    ]


def play(
    task: Task, judged: Judge = judge_series, decided: Judge = replay_stopping_rule
) -> dict[int, list[Outcome]]:
    """The outcomes of replicates of one process, by length."""
    found: dict[int, list[Outcome]] = {length: [] for length in (*LENGTHS, DONE)}
    for replicate in range(task.first, task.first + task.count):
        rng = np.random.default_rng([zlib.crc32(task.process.encode()), replicate])
        series = RATE * np.maximum(PROCESSES[task.process](rng, RAW_BLOCK.longest_s), 0.0)
        for length in LENGTHS:
            found[length].append(_outcome(judged(series[:length], _fixed(length))))
        seen = decided(series, RAW_BLOCK)
        given, held, seconds = _outcome(seen)
        found[DONE].append((given and seen.status.value == StoppingStatus.OK.value, held, seconds))
    return found


def table(
    replicates: int,
    mapped: Callable[[Iterable[Task]], Iterable[dict[int, list[Outcome]]]],
) -> list[Coverage]:
    """The rows of all processes; `mapped` plays tasks, in processes if it likes."""
    wanted = tasks(replicates)
    found: dict[tuple[str, int], list[Outcome]] = {}
    for task, results in zip(wanted, mapped(wanted), strict=True):
        for length, outcomes in results.items():
            found.setdefault((task.process, length), []).extend(outcomes)
    return [row(*key, outcomes) for key, outcomes in found.items()]


def row(process: str, length: int, outcomes: Sequence[Outcome]) -> Coverage:
    """The shares of outcomes."""
    given, held, seconds = np.array(outcomes, dtype=np.float64).T
    has = given > 0
    return Coverage(
        process,
        length,
        float(has.mean()),
        float(held[has].mean()) if has.any() else math.nan,
        float((has & (held == 0)).mean()),
        float(np.median(seconds)),
    )


@dataclass(frozen=True, slots=True)
class LatencyTask:
    """Runs of that length whose latencies' scale is AR(1) with that spread of its logarithm."""

    rho: float
    spread: float
    seconds: int
    replicates: int


def latency_tasks(replicates: int) -> list[LatencyTask]:
    """Every correlation, spread and length."""
    return [
        LatencyTask(rho, spread, seconds, replicates)
        for seconds in LATENCY_LENGTHS
        for rho in RHOS
        for spread in LATENCY_SPREADS
    ]


def play_latency(task: LatencyTask) -> list[Coverage]:
    """A row for each quantile."""
    bins, law = _Bins(), NormalDist(0.0, math.hypot(_LATENCY_SD, task.spread))
    found: dict[float, list[Outcome]] = {q: [] for q in QUANTILES}
    draw = correlated(task.rho, task.spread)
    for replicate in range(task.replicates):
        seed = [round(100 * task.rho), round(100 * task.spread), task.seconds, replicate]
        rng = np.random.default_rng(seed)
        counts = bins.counts(rng, draw(rng, task.seconds) - 1)
        for q, one in zip(
            QUANTILES, latency_quantile_estimates(counts, MIDDLE_NS, QUANTILES, rng), strict=True
        ):
            truth = _LATENCY_NS * math.exp(law.inv_cdf(q))
            low, high = one.low_ns, one.high_ns
            holds = low is not None and high is not None and low <= truth <= high
            found[q].append((low is not None, holds, float(task.seconds)))
    name = f"rho {task.rho:g}, spread {task.spread:g}"
    return [row(f"p{100 * q:g}, {name}", task.seconds, found[q]) for q in QUANTILES]


def _outcome(seen: StoppingDecision) -> Outcome:
    given = math.isfinite(seen.half_width)
    return given, abs(seen.mean - RATE) <= seen.half_width, float(seen.seconds)


def _fixed(seconds: int) -> StoppingRuleSettings:
    """As a run of fixed length is judged."""
    retained = min(RAW_BLOCK.retained_s, seconds // 3)
    return replace(RAW_BLOCK, shortest_s=seconds, longest_s=seconds, retained_s=retained)


class _Bins:
    """Log-normal latencies in the bins of histograms, without drawing each."""

    def __init__(self) -> None:
        middle = np.log(np.maximum(MIDDLE_NS.astype(np.float64), 1.0) / _LATENCY_NS)
        self._used = np.flatnonzero(np.abs(middle) < 6 * _LATENCY_SD)
        self._edges = (middle[self._used][1:] + middle[self._used][:-1]) / 2

    def counts(self, rng: np.random.Generator, scale: Floats) -> np.typing.NDArray[np.int64]:
        """Counts by second and bin, for the logarithms of the seconds' scales."""
        at = (self._edges[None, :] - scale[:, None]) / _LATENCY_SD
        below = 0.5 * (1 + np.vectorize(math.erf)(at / math.sqrt(2)))
        shares = np.diff(below, axis=1, prepend=0.0, append=1.0)
        counts = np.zeros((len(scale), len(MIDDLE_NS)), dtype=np.int64)
        counts[:, self._used] = rng.multinomial(_IOS, np.maximum(shares, 0.0))
        return counts
