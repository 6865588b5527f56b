"""Experiment 2: a study of 4 mixes x 24 loads x 2 queue depths, by the published method and ours.

A run's mean is the curve's truth, times what this run differs by (log-normal, of a spread drawn for
each cell), times what the stopping rule leaves. Errors are over all 192 cells, measured or not.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Final

import numpy as np

from bench.method.families import LOADS, any_family
from bench.method.rivals import REPEATS, RUN_S, WARMUP_S, published_run
from bench.method.scenarios import SCENARIOS, Floats
from iolab.core.stopping import CYCLIC, RAW_BLOCK, StoppingRuleSettings
from iolab.stats.curve import AdaptiveCurve
from iolab.stats.repeats import (
    VariancePrior,
    estimate_published_value,
    fit_variance_prior,
    sample_variance,
)
from iolab.stats.stopping import replay_stopping_rule

MIXES: Final[dict[str, dict[str, float]]] = {
    "100R": {"S1 read": 0.9, "S8 wander": 0.1},
    "70/30": {"S2 70/30": 0.9, "S8 wander": 0.1},
    "50/50": {"S2 70/30": 0.45, "S3 write": 0.45, "S8 wander": 0.1},
    "100W": {"S3 write": 0.7, "S4 slow cycle": 0.2, "S8 wander": 0.1},
}
"""The scenarios of each mix and how often they occur."""

DEPTHS: Final = 2
OVERHEAD_S: Final = 20
"""Start, stop and settle of a run; not counted for the published method."""
RUNS_MOST: Final = 4
SPREAD_LOG_SD: Final = 0.4
"""Cells differ in how much their runs differ."""


@dataclass(frozen=True, slots=True)
class Setting:
    """A study to play: its seed, the median spread between runs, the settings for writes."""

    seed: int
    between: float = 0.005
    writes: StoppingRuleSettings = CYCLIC


@dataclass(frozen=True, slots=True)
class Design:
    """What a design gave in one study: hours, cells measured, relative errors, interval hits."""

    hours: float
    cells: int
    errors: Floats
    hits: dict[str, list[bool]] = field(default_factory=dict)
    widths: dict[str, list[float]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class _Cells:
    """All runs that a study could make: log means (relative to truth) and seconds."""

    truth: Floats
    logs: Floats
    seconds: Floats
    published: Floats


def play(setting: Setting) -> dict[str, Design]:
    """Every design on the same cells and the same runs."""
    rng = np.random.default_rng([20, setting.seed])
    cells = {mix: _mix_cells(mix, setting, rng) for mix in MIXES}
    designs = {"published 3 x 13 min": _published(cells)}
    for runs in (2, 3, 4):
        designs[f"rule D, R={runs}, all cells"] = _all_cells(cells, runs)
        designs[f"rule D, R={runs}, chosen loads"] = _chosen(cells, runs, rng)
    return designs


def _mix_cells(mix: str, setting: Setting, rng: np.random.Generator) -> _Cells:
    shape = (DEPTHS, len(LOADS))
    truth = np.array([any_family(rng) for _ in range(DEPTHS)])
    logs, seconds = np.empty((*shape, RUNS_MOST)), np.empty((*shape, RUNS_MOST))
    published = np.empty((*shape, REPEATS))
    names, shares = list(MIXES[mix]), list(MIXES[mix].values())
    settings = setting.writes if mix == "100W" else RAW_BLOCK
    for cell in np.ndindex(*shape):
        draw = SCENARIOS[names[int(rng.choice(len(names), p=shares))]]
        parameters = int(rng.integers(2**62))
        spread = setting.between * math.exp(SPREAD_LOG_SD * rng.standard_normal())
        for run in range(RUNS_MOST):
            series = draw(np.random.default_rng(parameters), rng, settings.longest_s)
            seen = replay_stopping_rule(series.counts, settings)
            logs[cell][run] = math.log(seen.mean / series.truth) + spread * rng.standard_normal()
            seconds[cell][run] = seen.seconds + OVERHEAD_S
        for run in range(REPEATS):
            series = draw(np.random.default_rng(parameters), rng, WARMUP_S + RUN_S)
            mean = published_run(series.counts) / series.truth
            published[cell][run] = mean * math.exp(spread * rng.standard_normal())
    return _Cells(truth, logs, seconds, published)


def _published(cells: dict[str, _Cells]) -> Design:
    errors = [mix.published.mean(axis=2).ravel() - 1 for mix in cells.values()]
    hits, widths = {}, {}
    for name, mix in cells.items():
        runs = mix.published.reshape(-1, REPEATS)
        reach = 4.302653 * runs.std(axis=1, ddof=1) / math.sqrt(REPEATS)
        hits[name] = list(np.abs(runs.mean(axis=1) - 1) <= reach)
        widths[name] = list(reach)
    count = sum(error.size for error in errors)
    hours = count * REPEATS * (WARMUP_S + RUN_S) / 3600
    return Design(hours, count, np.concatenate(errors), hits, widths)


def _all_cells(cells: dict[str, _Cells], runs: int) -> Design:
    hours, errors = 0.0, []
    hits: dict[str, list[bool]] = {}
    widths: dict[str, list[float]] = {}
    for name, mix in cells.items():
        logs = mix.logs[..., :runs].reshape(-1, runs)
        prior = fit_variance_prior([sample_variance(row) for row in logs.tolist()])
        hours += float(mix.seconds[..., :runs].sum()) / 3600
        errors.append(np.expm1(logs.mean(axis=1)))
        found = [estimate_published_value(np.exp(row).tolist(), prior) for row in logs]
        hits[name] = [(one.low or 0) <= 1 <= (one.high or math.inf) for one in found]
        widths[name] = [one.relative_half_width for one in found]
    joined = np.concatenate(errors)
    return Design(hours, joined.size, joined, hits, widths)


def _chosen(cells: dict[str, _Cells], runs: int, rng: np.random.Generator) -> Design:
    """The loads of each curve as the adaptive axis wants them."""
    hours, count, errors = 0.0, 0, []
    hits: dict[str, list[bool]] = {}
    widths: dict[str, list[float]] = {}
    for name, mix in cells.items():
        axes = [AdaptiveCurve(LOADS, rng) for _ in range(DEPTHS)]
        prior = _seeded_prior(axes[0], mix, runs)
        for depth, axis in enumerate(axes):
            while (load := axis.next_load()) is not None:
                logs = mix.logs[depth, load - 1, :runs]
                spread = prior.moderated_variance(sample_variance(logs.tolist()))
                rate = mix.truth[depth, load - 1] * math.exp(float(logs.mean()))
                axis.add_measurement(load, rate, spread.sd / math.sqrt(runs))
                hours += float(mix.seconds[depth, load - 1, :runs].sum()) / 3600
                count += 1
            for point, true in zip(axis.curve_points(), mix.truth[depth], strict=True):
                low, high = point.low, point.high
                if point.is_measured:
                    logs = mix.logs[depth, point.load - 1, :runs]
                    own = estimate_published_value((true * np.exp(logs)).tolist(), prior)
                    low, high = own.low or 0.0, own.high or math.inf
                errors.append(np.array([point.rate / true - 1]))
                hits.setdefault(name, []).append(low <= true <= high)
                widths.setdefault(name, []).append(math.log(high / low) / 2)
    return Design(hours, count, np.concatenate(errors), hits, widths)


def _seeded_prior(axis: AdaptiveCurve, mix: _Cells, runs: int) -> VariancePrior:
    """The prior that the first loads of all of a mix' curves give."""
    places = [load - 1 for load in axis.first_loads]
    logs = mix.logs[:, places, :runs].reshape(-1, runs)
    return fit_variance_prior([sample_variance(row) for row in logs.tolist()])
