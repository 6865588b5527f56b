"""Which points of a search are measured before any is chosen, and how many runs it may make."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from typing import Final

GridPoint = tuple[int, ...]
"""A point by its values on the searched axes."""

PEAK_RUNS_MAX: Final = 24
LOAD_RUNS_MAX: Final = 12
"""Runs that a search makes before it must answer; see docs/explanation/method.md."""


def initial_loads(loads: Sequence[int]) -> tuple[int, ...]:
    """The smallest, the largest, and those nearest to doublings of the smallest."""
    axis = sorted(set(loads))
    wanted = {axis[0], axis[-1]}
    load = axis[0]
    while load < axis[-1]:
        wanted.add(min(axis, key=lambda candidate: abs(candidate - load)))
        load *= 2
    return tuple(sorted(wanted))


def initial_peak_points(axes: Sequence[Sequence[int]]) -> tuple[GridPoint, ...]:
    """The corners and the centre; of one axis also the quarters."""
    middle = tuple(axis[len(axis) // 2] for axis in axes)
    seeds = [middle, *product(*((axis[0], axis[-1]) for axis in axes))]
    if len(axes) == 1:
        axis = axes[0]
        seeds += [(axis[len(axis) // 4],), (axis[3 * len(axis) // 4],)]
    return tuple(dict.fromkeys(seeds))
