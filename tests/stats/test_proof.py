"""Rule D on the simulated storage of `bench/method`, with wide tolerances and fixed seeds."""

from __future__ import annotations

import zlib

import numpy as np
import pytest
from bench.method.rivals import CAP_S
from bench.method.scenarios import SCENARIOS
from bench.method.stopping import RULES, SPECIAL

REPLICATES = 12


def played(scenario: str, rule: str = "rule D") -> tuple[float, float, float, float]:
    """The share accepted, the error in percent, the share covered, the mean of seconds."""
    estimate = {**RULES, **SPECIAL.get(scenario, {})}[rule]
    rows = []
    for replicate in range(REPLICATES):
        seed = [zlib.crc32(scenario.encode()), replicate]
        run = SCENARIOS[scenario](
            np.random.default_rng(seed), np.random.default_rng([*seed, 1]), CAP_S
        )
        found = estimate(run.counts)
        error = abs(found.mean - run.truth)
        rows.append(
            (found.accepted, error / run.truth, error <= found.half_width, float(found.seconds))
        )
    accepted, errors, covered, seconds = np.array(rows, dtype=np.float64).T
    rms = 100 * float(np.sqrt(np.square(errors).mean()))
    return float(accepted.mean()), rms, float(covered.mean()), float(seconds.mean())


@pytest.mark.parametrize(
    ("scenario", "rmse"), [("S1 read", 0.4), ("S2 70/30", 0.9), ("S3 write", 0.8)]
)
def test_steady_scenarios_are_measured_well(scenario: str, rmse: float) -> None:
    accepted, error, covered, seconds = played(scenario)
    assert accepted >= 0.9
    assert error < rmse
    assert covered >= 0.8
    assert seconds < 780


def test_a_slow_cycle_is_accepted_only_by_the_rule_for_cycles() -> None:
    assert played("S4 slow cycle")[0] <= 0.25
    assert played("S4 slow cycle", "rule D cyclic")[0] >= 0.7


def test_stalls_are_covered_by_the_rule_for_stores() -> None:
    assert played("S7 stalls", "rule D lsm")[2] >= 0.8
