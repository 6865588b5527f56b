"""Efficiency over hosts against ratios computed by hand."""

from __future__ import annotations

import math

import pytest
from msgspec.structs import replace

from iolab.analysis.scaling import host_scalings
from iolab.core.metric import VerdictLevel
from iolab.core.workload import BY_BANDWIDTH
from tests.report.growing import GROWN, RATES, STUDY, points, runs


def mean(values: tuple[float, ...]) -> float:
    return math.exp(math.fsum(map(math.log, values)) / len(values))


def test_efficiency_is_the_rate_of_each_host_beside_that_of_one() -> None:
    (found,) = host_scalings(STUDY, points(runs(RATES)))
    assert [step.host_count for step in found.steps] == [1, 2, 4, 8]
    for step in found.steps:
        wanted = mean(RATES[step.host_count]) / step.host_count / mean(RATES[1])
        assert step.efficiency.value == pytest.approx(wanted)
    assert found.first_step.efficiency.low is None
    last = found.steps[-1].efficiency
    assert last.low is not None
    assert last.high is not None
    assert last.low < 0.5 < last.high < 0.55


def test_the_ideal_is_as_many_times_what_each_of_the_fewest_gives() -> None:
    (found,) = host_scalings(STUDY, points(runs({hosts: RATES[hosts] for hosts in (2, 8)})))
    assert found.ideal_rate(8) == pytest.approx(4 * mean(RATES[2]))
    assert found.steps[-1].efficiency.value == pytest.approx(mean(RATES[8]) / 4 / mean(RATES[2]))


def test_other_axes_make_curves_of_their_own() -> None:
    deeper = {hosts: tuple(2 * rate for rate in rates) for hosts, rates in RATES.items()}
    found = host_scalings(STUDY, points([*runs(RATES, depth=1), *runs(deeper, depth=8)]))
    assert [one.fixed_axis_values for one in found] == [(("iodepth", 1),), (("iodepth", 8),)]
    assert [len(one.steps) for one in found] == [4, 4]


def test_one_number_of_hosts_is_no_curve() -> None:
    assert host_scalings(STUDY, points(runs({4: RATES[4]}))) == ()


def test_a_curve_that_no_law_describes_has_none() -> None:
    up_and_down = {1: (1e4, 1.001e4), 2: (5e4, 5.001e4), 4: (1.1e4, 1.101e4), 8: (9e4, 9.001e4)}
    (found,) = host_scalings(STUDY, points(runs(up_and_down)))
    assert found.usl_fit is None


def test_the_law_is_that_of_rates_made_by_it() -> None:
    def law(hosts: int) -> float:
        return 1e4 * hosts / (1 + 0.1 * (hosts - 1))

    rates = {hosts: (0.99 * law(hosts), law(hosts), 1.01 * law(hosts)) for hosts in (1, 2, 4, 8)}
    (found,) = host_scalings(STUDY, points(runs(rates)))
    assert found.usl_fit is not None
    assert found.usl_fit.sigma == pytest.approx(0.1, abs=0.01)


def test_what_is_hardly_known_has_no_law() -> None:
    rates = {hosts: (hosts * 0.5e4, hosts * 1e4) for hosts in (1, 2, 4, 8)}
    (found,) = host_scalings(STUDY, points(runs(rates)))
    assert found.usl_fit is None


def test_an_invalid_point_has_an_efficiency_without_an_interval() -> None:
    (found,) = host_scalings(STUDY, points(runs(RATES, {8: VerdictLevel.INVALID})))
    last = found.steps[-1]
    assert last.point.verdict_level is VerdictLevel.INVALID
    assert last.efficiency.value == pytest.approx(mean(RATES[8]) / 8 / mean(RATES[1]))
    assert last.efficiency.low is None


def test_bandwidth_is_held_where_it_is_the_headline() -> None:
    study = replace(STUDY, workloads=(replace(GROWN, indicator=BY_BANDWIDTH),))
    (found,) = host_scalings(study, points(runs(RATES)))
    assert found.metric == "bw_bytes_per_s"
    assert found.ideal_rate(8) == pytest.approx(8 * 4096 * mean(RATES[1]))
