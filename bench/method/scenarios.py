"""Series of completed I/Os of each second whose long-run mean is known.

y = (1 + A exp(-t/tau)) and a sawtooth and AR(1) noise, times stalls or a plateau. A cell's
parameters are drawn from the ranges of docs/explanation/method.md by the first generator, what a
run has of chance by the second; runs of one cell are given equal first generators.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
SAW_RISE: Final = 0.85
"""Share of a cycle in which the sawtooth rises."""
SAW_JITTER: Final = 0.10
RATE: Final = 10_000.0
"""I/Os a second of a mean of 1, so that counts look like counts."""


@dataclass(frozen=True, slots=True)
class Series:
    """Counts of each second and the mean that a run of infinite length would have."""

    counts: Floats
    truth: float


Draw = Callable[[np.random.Generator, np.random.Generator, int], Series]


def read_only(cell: np.random.Generator, rng: np.random.Generator, seconds: int) -> Series:
    """S1: random reads; a small short transient, mild noise."""
    base = decay(seconds, cell.uniform(0, 0.05), cell.uniform(5, 30))
    return finish(base + ar1(rng, seconds, cell.uniform(0.005, 0.02), cell.uniform(0.2, 0.6)))


def mixed(cell: np.random.Generator, rng: np.random.Generator, seconds: int) -> Series:
    """S2: 70/30; a larger transient and a short sawtooth."""
    base = decay(seconds, cell.uniform(0.05, 0.20), cell.uniform(20, 60))
    base += sawtooth(rng, seconds, cell.uniform(0.03, 0.08), cell.uniform(20, 60))
    return finish(base + ar1(rng, seconds, cell.uniform(0.01, 0.03), cell.uniform(0.5, 0.8)))


def write(cell: np.random.Generator, rng: np.random.Generator, seconds: int) -> Series:
    """S3: writes; garbage collection swings over one to two minutes."""
    return _write(cell, rng, seconds, cell.uniform(60, 120))


def slow_cycle(cell: np.random.Generator, rng: np.random.Generator, seconds: int) -> Series:
    """S4: writes whose cycle takes four to eight minutes."""
    return _write(cell, rng, seconds, cell.uniform(240, 480))


def unprepared(cell: np.random.Generator, rng: np.random.Generator, seconds: int) -> Series:
    """S5: a device that was not preconditioned: twice as fast at first, for many minutes."""
    base = decay(seconds, cell.uniform(0.5, 1.0), cell.uniform(200, 600))
    return finish(base + ar1(rng, seconds, cell.uniform(0.01, 0.03), cell.uniform(0.5, 0.8)))


def cliff(cell: np.random.Generator, rng: np.random.Generator, seconds: int) -> Series:
    """S6: an SLC cache: two to four times as fast, level, until it is full."""
    base = np.ones(seconds)
    base[: int(cell.uniform(120, 900))] = cell.uniform(2, 4)
    return finish(base * (1 + ar1(rng, seconds, cell.uniform(0.01, 0.03), cell.uniform(0.3, 0.7))))


def stalling(cell: np.random.Generator, rng: np.random.Generator, seconds: int) -> Series:
    """S7: stalls of 2 to 6 s, about once a minute, 60 to 100 % deep."""
    base = decay(seconds, cell.uniform(0, 0.1), cell.uniform(10, 40))
    base += ar1(rng, seconds, cell.uniform(0.01, 0.03), cell.uniform(0.3, 0.7))
    low, high, rate = cell.uniform(2, 4), cell.uniform(4, 6), 1 / 60
    depth = cell.uniform(0.6, 1.0)
    lost = np.zeros(seconds)
    at = rng.exponential(1 / rate)
    covered = 0.0
    while at < seconds:
        end = at + rng.uniform(low, high)
        for second in range(int(at), min(int(end) + 1, seconds)):
            lost[second] += min(end, second + 1) - max(at, second)
        covered += end - at
        at = end + rng.exponential(1 / rate)
    length = (low + high) / 2
    share = length / (length + 1 / rate)
    return finish(base * (1 - depth * np.minimum(lost, 1)), 1 - depth * share)


def wandering(cell: np.random.Generator, rng: np.random.Generator, seconds: int) -> Series:
    """S8: a slow thermal wander."""
    base = decay(seconds, cell.uniform(0, 0.05), cell.uniform(5, 30))
    return finish(base + ar1(rng, seconds, cell.uniform(0.01, 0.02), 0.98))


def rising(cell: np.random.Generator, rng: np.random.Generator, seconds: int) -> Series:
    """S9, beyond the method's eight: a cache that warms, so that the rate comes from below."""
    base = decay(seconds, -cell.uniform(0.1, 0.5), cell.uniform(20, 60))
    return finish(base + ar1(rng, seconds, cell.uniform(0.005, 0.02), cell.uniform(0.2, 0.6)))


SCENARIOS: Final[dict[str, Draw]] = {
    "S1 read": read_only,
    "S2 70/30": mixed,
    "S3 write": write,
    "S4 slow cycle": slow_cycle,
    "S5 unprepared": unprepared,
    "S6 cliff": cliff,
    "S7 stalls": stalling,
    "S8 wander": wandering,
    "S9 warming": rising,
}


def finish(relative: Floats, truth: float = 1.0) -> Series:
    """Counts from a relative rate; a rate is never below zero."""
    return Series(np.maximum(relative, 0.0) * RATE, truth * RATE)


def decay(seconds: int, amplitude: float, tau: float) -> Floats:
    """1 + A exp(-t/tau) in the middle of each second."""
    curve: Floats = 1 + amplitude * np.exp(-(np.arange(seconds, dtype=np.float64) + 0.5) / tau)
    return curve


def ar1(rng: np.random.Generator, seconds: int, sd: float, phi: float) -> Floats:
    """Stationary AR(1) noise of that standard deviation, by a truncated moving average."""
    reach = min(seconds, int(np.ceil(np.log(1e-6) / np.log(phi))) + 1)
    shocks = rng.standard_normal(seconds + reach) * sd * np.sqrt(1 - phi * phi)
    kernel = phi ** np.arange(reach)
    noise: Floats = np.convolve(shocks, kernel, mode="full")[reach : reach + seconds]
    return noise


def sawtooth(rng: np.random.Generator, seconds: int, peak: float, period: float) -> Floats:
    """A sawtooth of mean zero, random phase, each period 10 % off; `peak` from top to bottom."""
    count = int(seconds / period * 1.6) + 4
    lengths = period * np.maximum(1 + SAW_JITTER * rng.standard_normal(count), 0.5)
    edges = np.concatenate([[0.0], np.cumsum(lengths)]) - rng.uniform(0, 1) * lengths[0]
    t = np.arange(seconds, dtype=np.float64) + 0.5
    which = np.searchsorted(edges, t, side="right") - 1
    phase = (t - edges[which]) / lengths[which]
    shape = np.where(phase < SAW_RISE, phase / SAW_RISE, (1 - phase) / (1 - SAW_RISE))
    wave: Floats = peak * (shape - 0.5)
    return wave


def _write(
    cell: np.random.Generator, rng: np.random.Generator, seconds: int, period: float
) -> Series:
    base = decay(seconds, cell.uniform(0.1, 0.3), cell.uniform(20, 90))
    base += sawtooth(rng, seconds, cell.uniform(0.1, 0.2), period)
    return finish(base + ar1(rng, seconds, cell.uniform(0.01, 0.03), cell.uniform(0.5, 0.8)))
