"""Whether the load's last step paid, by hand."""

from __future__ import annotations

import math
from collections.abc import Mapping

import pytest

from iolab.analysis.bottleneck.decision import load_step_of_best, usl_fit_of_curve
from iolab.analysis.points import PointSummary
from tests.analysis.findings.cells import REPEATS, curve
from tests.loads.keyvalue.studies import BASE, summarised

KEY = "ops_per_s"


def points(rates: Mapping[int, float], spread: float = 0.001) -> list[PointSummary]:
    return list(summarised(curve(BASE, rates, spread=spread)))


def test_a_last_step_that_gives_more_than_the_root_of_the_load_pays() -> None:
    found = points({4: 1000.0, 16: 3000.0})
    step = load_step_of_best(found, found[-1], "threads", KEY)
    assert step is not None
    assert (step.axis_name, step.load, step.next_load) == ("threads", 4, 16)
    assert (step.is_worthwhile, step.is_certain, step.has_single_runs) == (True, True, False)
    assert step.rate_ratio == pytest.approx(3.0, rel=0.01)  # the root of four is two
    assert len(step.run_keys) == 2 * REPEATS


def test_a_last_step_that_gives_less_has_met_a_limit() -> None:
    found = points({4: 1000.0, 16: 1500.0})
    step = load_step_of_best(found, found[-1], "threads", KEY)
    assert step is not None
    assert (step.is_worthwhile, step.is_certain) == (False, True)


def test_where_the_best_is_not_last_the_step_from_it_tells() -> None:
    found = points({4: 1000.0, 16: 3000.0, 64: 2900.0})
    step = load_step_of_best(found, found[1], "threads", KEY)
    assert step is not None
    assert (step.load, step.next_load, step.is_worthwhile) == (16, 64, False)


def test_a_step_within_the_intervals_is_not_sure() -> None:
    found = points({4: 1000.0, 16: 2050.0}, spread=0.3)
    step = load_step_of_best(found, found[-1], "threads", KEY)
    assert step is not None
    assert not step.is_certain


def test_a_single_point_has_no_step() -> None:
    found = points({4: 1000.0})
    assert load_step_of_best(found, found[0], "threads", KEY) is None


def test_the_law_gives_back_the_contention_that_was_planted() -> None:
    sigma = 0.08
    loads = (1, 2, 4, 8, 16, 32)
    found = points({n: 1000.0 * n / (1 + sigma * (n - 1)) for n in loads}, spread=0.002)
    law = usl_fit_of_curve(found, "threads", KEY)
    assert law is not None
    assert law.sigma == pytest.approx(sigma, rel=0.1)
    assert law.kappa < 1e-4
    hard = points({n: 1000.0 * min(n, 6) for n in loads}, spread=1e-4)
    assert usl_fit_of_curve(hard, "threads", KEY) is None
    assert usl_fit_of_curve(found[:3], "threads", KEY) is None
    assert math.isfinite(law.predicted_rate(32))
