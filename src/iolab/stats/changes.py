"""Where a series of run means changed its level, for `iolab history`; mostly it says: nowhere.

Only run means are fit for this, one or a few a campaign: seconds within a run depend on one
another, and any change-point test fed with them finds changes everywhere. The segment that differs
most from the rest is tested by permutation, so a series in which nothing changed is called changed
in at most the share `ALPHA` of cases, whatever the law of its values. Found changes split the
series, and the parts are searched in turn. Changes below 2 % are not reported.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Final

import numpy as np

from iolab.core.samples import Floats
from iolab.record import Record
from iolab.stats.repeats import logarithms
from iolab.text import counted_noun

ALPHA: Final = 0.01
"""False alarms in a series without change."""

MAGNITUDE_MIN: Final = 0.02
"""Run means of one thing differ by 1 % from day to day; a change of less than 2 % helps nobody."""

RUNS_MIN: Final = 11
"""Fewer runs have too few orders for a permutation test to reach ALPHA: of eleven, five and six
can be split in 462 ways."""

_SIDE_MIN: Final = 2
_PERMUTATIONS: Final = 1999
_BEYOND: Final = 4
"""Permutations per 1/alpha, so that a small alpha can be reached at all."""

_CHANGES_MAX: Final = 50
_RUNS_MAX: Final = 400
"""Only the latest are searched: time grows with the square of their number."""
_SECOND_EDGE_F: Final = 12.0
"""F from which a segment with two edges is preferred to a split: 3.5 standard deviations, since the
second edge is the best of many."""
_CHUNK: Final = 250
"""Permutations held in memory at once."""


class LevelChange(Record):
    """A change before run `run_index`: the ratio of the level after it to that before, and p."""

    run_index: int
    ratio: float
    p_value: float


class ChangeSearchResult(Record):
    """What a series of run means says: its changes, oldest first, or why none were looked for."""

    run_count: int
    changes: tuple[LevelChange, ...]
    has_enough_runs: bool
    needed_runs: int = RUNS_MIN

    @property
    def summary_text(self) -> str:
        """The same in words."""
        if not self.has_enough_runs:
            return (
                f"{self.run_count} runs are too few to tell a change; {self.needed_runs} are needed"
            )
        if not self.changes:
            return f"nothing changed over {counted_noun(self.run_count, 'run')}"
        count = len(self.changes)
        return f"{counted_noun(count, 'change')} over {self.run_count} runs"


def find_level_changes(
    run_means: Sequence[float], rng: np.random.Generator, *, alpha: float = ALPHA
) -> ChangeSearchResult:
    """The changes of level in run means (> 0), in the order in which they were measured.

    `alpha` is the share of series without change that may be called changed; who searches many
    series at once divides it among them. Raises ValueError for a mean that is not positive.
    """
    needed = fewest_runs_for_change(alpha)
    if len(run_means) < needed:
        return ChangeSearchResult(len(run_means), (), has_enough_runs=False, needed_runs=needed)
    logs = np.array(logarithms(run_means))
    first = max(len(logs) - _RUNS_MAX, 0)
    pending, splits = [(first, len(logs))], dict[int, float]()
    while pending and len(splits) < _CHANGES_MAX:
        start, end = pending.pop()
        split = _segment_edges_and_p(logs[start:end], rng, alpha)
        if split is not None:
            edges = [start, *(start + edge for edge in split[0]), end]
            splits |= dict.fromkeys(edges[1:-1], split[1])
            pending += list(pairwise(edges))
    return ChangeSearchResult(
        len(logs),
        tuple(_changes_above_magnitude(logs, splits)),
        has_enough_runs=True,
        needed_runs=needed,
    )


def fewest_runs_for_change(alpha: float) -> int:
    """The fewest runs of which a split in the middle is rarer than `alpha` among all their orders.

    Two tests are made, each of half of it.
    """
    runs = RUNS_MIN
    while math.comb(runs, runs // 2) * alpha < 2:
        runs += 1
    return runs


def _segment_edges_and_p(
    x: Floats, rng: np.random.Generator, alpha: float
) -> tuple[tuple[int, ...], float] | None:
    """Where the best segment of a stretch begins and ends, and p; None where chance does as well.

    One edge where the segment reaches an end of the stretch, else two.
    """
    if len(x) < RUNS_MIN or np.ptp(x) == 0:
        return None
    # Equal arrangements differ in the last digits: a tie counts as reached.
    limit = _highest_split_and_segment_scores(x[None, :])[0] * (1 - 1e-9)
    reached, done = np.zeros(2), 0
    wanted = max(_PERMUTATIONS, math.ceil(_BEYOND * 2 / alpha) - 1)
    # Where even the rest could not bring p down to alpha, it is not tried.
    while done < wanted and 2 * (1 + reached.min()) <= alpha * (1 + wanted):
        count = min(_CHUNK, wanted - done)
        shuffled = rng.permuted(np.tile(x, (count, 1)), axis=1)
        reached += (_highest_split_and_segment_scores(shuffled) >= limit).sum(axis=0)
        done += count
    # Two tests, one for changes that stayed and one for those that went: Bonferroni.
    p = min(2 * float(reached.min() + 1) / (1 + done), 1.0)
    return (_one_or_two_segment_edges(x), p) if done == wanted and p <= alpha else None


def _highest_split_and_segment_scores(x: Floats) -> Floats:
    """For each row the highest score of a split and of any segment; shape (rows, 2)."""
    highest = np.zeros((len(x), 2))
    for scores in _segment_scores(x):
        np.maximum(highest[:, 0], scores[:, -1], out=highest[:, 0])
        np.maximum(highest[:, 1], scores.max(axis=1), out=highest[:, 1])
    return highest


def _one_or_two_segment_edges(x: Floats) -> tuple[int, ...]:
    """The edges of the best segment: one, unless two are much better.

    A change that stayed has one edge; noise at the end of the stretch would often feign another.
    """
    one_edge, two_edges = (0.0, 0), (0.0, 0, 0)
    for length, scores in zip(range(_SIDE_MIN, len(x)), _segment_scores(x[None, :]), strict=False):
        row = scores[0]
        if row[-1] > one_edge[0]:
            one_edge = (float(row[-1]), len(x) - length)
        where = int(np.argmax(row))
        if row[where] > two_edges[0]:
            two_edges = (float(row[where]), where, where + length)
    left = max(1 - two_edges[0], 1e-12) / max(len(x) - 3, 1)
    if (two_edges[0] - one_edge[0]) / left < _SECOND_EDGE_F:
        return (one_edge[1],)
    return tuple(edge for edge in two_edges[1:] if 0 < edge < len(x))


def _segment_scores(x: Floats) -> Iterator[Floats]:
    """For each length of segment, and each row, the score of the segments by their start.

    The score is the sum of squares between segment and rest over the whole sum, a monotone function
    of their pooled t. At least two runs are on either side (circular binary segmentation: Olshen
    and others 2004). A segment that ends the row stands for the split where it begins.
    """
    count = x.shape[1]
    centred = x - x.mean(axis=1, keepdims=True)
    total = (centred**2).sum(axis=1, keepdims=True)
    sums = np.concatenate([np.zeros((len(x), 1)), np.cumsum(centred, axis=1)], axis=1)
    for length in range(_SIDE_MIN, count - _SIDE_MIN + 1):
        inside = sums[:, length:] - sums[:, :-length]
        yield inside**2 * count / (length * (count - length)) / total


def _changes_above_magnitude(
    logs: Floats, p_value_by_split_index: dict[int, float]
) -> list[LevelChange]:
    """Those splits between whose neighbouring levels there is a change worth the name."""
    kept = dict(p_value_by_split_index)
    while True:
        edges = [0, *sorted(kept), len(logs)]
        levels = [float(logs[start:end].mean()) for start, end in itertools.pairwise(edges)]
        steps = np.abs(np.diff(levels))
        if steps.size == 0 or steps.min() >= math.log1p(MAGNITUDE_MIN):
            ratios = np.exp(np.diff(levels))
            return [
                LevelChange(index, float(ratio), kept[index])
                for index, ratio in zip(edges[1:-1], ratios, strict=True)
            ]
        del kept[edges[1:-1][int(np.argmin(steps))]]
