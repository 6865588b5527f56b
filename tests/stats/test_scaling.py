"""Predictions on curves whose truth is known."""

from __future__ import annotations

import math

import numpy as np
import pytest
from bench.predict import FAMILIES, Outcome, simulated

from iolab.stats.scaling import MeasuredLoad, PredictionLaw, predict_rate

LOADS = (1, 2, 4, 8, 12)


def usl(load: float) -> float:
    return 1000 * load / (1 + 0.03 * (load - 1) + 0.0005 * load * (load - 1))


def known(load: float, rate: float, log_rate_sd: float = 0.006) -> MeasuredLoad:
    return MeasuredLoad(load, rate, log_rate_sd, run_count=3)


def knee(load: float) -> float:
    return 1000 * min(load, 5.0)


def test_a_curve_of_the_law_is_followed_by_it() -> None:
    found = predict_rate([known(load, usl(load)) for load in LOADS], 24)
    assert found.law is PredictionLaw.USL
    assert found.rate == pytest.approx(usl(24), rel=0.02)
    assert found.low < usl(24) < found.high


def test_a_hard_knee_is_no_curve_of_the_law_and_stays_at_its_top() -> None:
    found = predict_rate([known(load, knee(load)) for load in LOADS], 24)
    assert found.law is PredictionLaw.SATURATION
    assert found.low < 5000 < found.high
    assert found.rate == pytest.approx(5000, rel=0.1)


def test_a_limit_caps_the_rate_and_its_interval() -> None:
    points = [known(load, 1000.0 * load) for load in LOADS]
    free, held = predict_rate(points, 24), predict_rate(points, 24, bottleneck_rate=15_000.0)
    assert free.rate > 20_000
    assert (held.rate, held.high) == (15_000.0, 15_000.0)
    assert held.low < free.low <= free.rate


def test_further_away_less_is_known() -> None:
    points = [known(load, usl(load)) for load in LOADS]
    widths = [
        (found.high - found.low) / found.rate
        for found in (predict_rate(points, n) for n in (14, 18, 24))
    ]
    assert widths == sorted(widths)


def test_three_loads_are_too_few() -> None:
    with pytest.raises(ValueError, match="3 loads"):
        predict_rate([known(load, usl(load)) for load in LOADS[:3]], 5)


def test_about_nine_of_ten_held_out_points_lie_within() -> None:
    """A part of what bench/predict.py counts."""
    draw = np.random.default_rng(11)
    shares: dict[bool, float] = {False: 0.0, True: 0.0}
    for weight, family in FAMILIES.values():
        found: list[Outcome] = [one for _ in range(4) for one in simulated(family(draw), draw)]
        for beyond in shares:
            part = [one.within for one in found if one.beyond is beyond]
            shares[beyond] += weight * sum(part) / len(part)
    assert all(abs(share - 0.9) <= 0.06 for share in shares.values())


def test_points_that_no_curve_goes_through_make_it_wide() -> None:
    smooth = [known(load, usl(load)) for load in LOADS]
    ragged = [known(load, usl(load) * (1.2 if load in {2, 8} else 1)) for load in LOADS]
    even, odd = predict_rate(smooth, 6), predict_rate(ragged, 6)
    assert math.log(odd.high / odd.low) > 5 * math.log(even.high / even.low)


def test_repeats_that_scatter_make_it_wide_in_proportion() -> None:
    widths = [
        math.log(found.high / found.low)
        for found in (predict_rate([known(n, usl(n), s) for n in LOADS], 6) for s in (0.01, 0.04))
    ]
    assert widths[1] == pytest.approx(4 * widths[0], rel=0.5)


def test_loads_that_were_measured_once_each_are_refused() -> None:
    with pytest.raises(ValueError, match="twice"):
        predict_rate([MeasuredLoad(load, usl(load), 0.0, run_count=1) for load in LOADS], 6)
