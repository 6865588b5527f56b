"""Experiment 1: what each stopping rule says of series whose truth is known.

For each scenario and rule: bias, RMSE, the coverage of its 95 % interval, the seconds it took, and
the share of runs that it accepted (rule D and SNIA flag the others).
"""

from __future__ import annotations

import math
import zlib
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from bench.method.rivals import (
    CAP_S,
    REPEATS,
    RUN_S,
    WARMUP_S,
    Estimate,
    fio_steadystate,
    one_published_run,
    published,
    snia,
)
from bench.method.scenarios import SCENARIOS, Floats
from iolab.core.stopping import CYCLIC, LSM, RAW_BLOCK, StoppingRuleSettings
from iolab.stats.stopping import StoppingStatus, replay_stopping_rule

RuleOfOne = Callable[[Floats], Estimate]
Error = tuple[float, float, float, bool]
Played = dict[str, list[Error]]


@dataclass(frozen=True, slots=True)
class Row:
    """A rule on a scenario: percents of the truth, a share, seconds, a share."""

    scenario: str
    rule: str
    bias: float
    rmse: float
    coverage: float
    seconds: float
    accepted: float
    accepted_rmse: float


@dataclass(frozen=True, slots=True)
class Task:
    """Replicates of one scenario, from `first` on."""

    scenario: str
    first: int
    count: int


def rule_d(settings: StoppingRuleSettings) -> RuleOfOne:
    """Rule D as a rule of one run."""

    def estimate(counts: Floats) -> Estimate:
        seen = replay_stopping_rule(counts[: settings.longest_s], settings)
        return Estimate(seen.mean, seen.half_width, seen.seconds, seen.status is StoppingStatus.OK)

    return estimate


RULES: Final[dict[str, RuleOfOne]] = {
    "one published run": one_published_run,
    "SNIA 5 rounds": snia,
    "fio ss 0.3%/60s": fio_steadystate,
    "rule D": rule_d(RAW_BLOCK),
}
SPECIAL: Final[dict[str, dict[str, RuleOfOne]]] = {
    "S4 slow cycle": {"rule D cyclic": rule_d(CYCLIC)},
    "S7 stalls": {"rule D lsm": rule_d(LSM)},
}
PUBLISHED: Final = "published 3 x 13 min"


def tasks(replicates: int, chunk: int = 50) -> list[Task]:
    """All replicates of all scenarios, in chunks that processes can share."""
    return [
        Task(name, first, min(chunk, replicates - first))
        for name in SCENARIOS
        for first in range(0, replicates, chunk)
    ]


def play(task: Task) -> Played:
    """Every rule's (error, half-width, seconds, accepted) on each replicate; errors in percent."""
    draw = SCENARIOS[task.scenario]
    rules = RULES | SPECIAL.get(task.scenario, {})
    found: Played = {name: [] for name in (PUBLISHED, *rules)}
    for replicate in range(task.first, task.first + task.count):
        seed = [zlib.crc32(task.scenario.encode()), replicate]
        rng = np.random.default_rng([*seed, 1])
        one = draw(np.random.default_rng(seed), rng, CAP_S)
        others = [
            draw(np.random.default_rng(seed), rng, WARMUP_S + RUN_S) for _ in range(REPEATS - 1)
        ]
        runs = [run.counts / run.truth for run in (one, *others)]
        found[PUBLISHED].append(_error(published(runs), 1.0))
        for name, rule in rules.items():
            found[name].append(_error(rule(one.counts), one.truth))
    return found


def table(
    replicates: int,
    mapped: Callable[[Iterable[Task]], Iterable[Played]],
) -> list[Row]:
    """The rows of all scenarios and rules; `mapped` plays tasks, in processes if it likes."""
    wanted = tasks(replicates)
    found: dict[tuple[str, str], list[Error]] = {}
    for task, results in zip(wanted, mapped(wanted), strict=True):
        for rule, errors in results.items():
            found.setdefault((task.scenario, rule), []).extend(errors)
    return [_row(*key, errors) for key, errors in found.items()]


def _error(estimate: Estimate, truth: float) -> Error:
    error = 100 * (estimate.mean / truth - 1)
    width = 100 * estimate.half_width / truth
    return error, width, float(estimate.seconds), estimate.accepted


def _row(scenario: str, rule: str, errors: Sequence[Error]) -> Row:
    error, width, seconds, accepted = np.array(errors, dtype=np.float64).T
    covered = math.nan if np.isnan(width).all() else float((np.abs(error) <= width).mean())
    kept = error[accepted > 0]
    return Row(
        scenario,
        rule,
        float(error.mean()),
        float(np.sqrt((error**2).mean())),
        covered,
        float(seconds.mean()),
        float(accepted.mean()),
        float(np.sqrt((kept**2).mean())) if kept.size else math.nan,
    )
