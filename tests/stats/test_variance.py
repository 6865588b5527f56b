"""Moderated variances."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import optimize, special, stats

from iolab.stats.repeats import (
    CELLS_MIN,
    NO_PRIOR,
    Variance,
    fit_stratum_priors,
    fit_variance_prior,
    sample_variance,
)


def drawn(cells: int, df: float, prior_df: float, seed: int = 1) -> list[Variance]:
    rng = np.random.default_rng(seed)
    truths = prior_df / rng.chisquare(prior_df, cells)
    return [Variance(float(t * rng.chisquare(df) / df), df) for t in truths]


def test_the_prior_is_found_again() -> None:
    prior = fit_variance_prior(drawn(20_000, 4, 10))
    assert prior.df == pytest.approx(10, rel=0.1)
    assert prior.variance == pytest.approx(1, rel=0.03)


def test_it_solves_limmas_equations() -> None:
    spreads = drawn(40, 2, 5)
    prior = fit_variance_prior(spreads)
    z = np.log([spread.variance for spread in spreads])
    e = z - special.digamma(1) + math.log(1)

    def solved(seen: float) -> float:
        return float(
            optimize.brentq(
                lambda df: special.polygamma(1, df / 2) + special.polygamma(1, 1) - seen, 1e-3, 1e6
            )
        )

    df = solved(e.var(ddof=1))
    assert prior.variance == pytest.approx(
        math.exp(e.mean() + special.digamma(df / 2) - math.log(df / 2)), rel=1e-6
    )
    cautious = solved(e.var(ddof=1) * (1 + math.sqrt(2 / 39)))
    assert prior.df == pytest.approx(cautious, rel=1e-6)
    assert cautious < df


def test_an_f_law_describes_moderated_cells() -> None:
    spreads = drawn(4000, 3, 8, seed=3)
    prior = fit_variance_prior(spreads)
    ratios = [spread.variance / prior.variance for spread in spreads]
    assert stats.kstest(ratios, stats.f(3, prior.df).cdf).pvalue > 0.001


def test_cells_that_spread_alike_are_pooled() -> None:
    rng = np.random.default_rng(2)
    spreads = [Variance(1.0 + 0.01 * rng.standard_normal(), 2.0) for _ in range(20)]
    prior = fit_variance_prior(spreads)
    assert prior.df == math.inf
    assert prior.variance == pytest.approx(1.0, rel=0.01)
    assert prior.moderated_variance(Variance(9.0, 2.0)) == Variance(prior.variance, 40.0)


def test_a_cell_is_drawn_towards_its_stratum() -> None:
    prior = fit_variance_prior(drawn(200, 2, 6))
    own = Variance(prior.variance * 10, 2.0)
    moderated = prior.moderated_variance(own)
    assert prior.variance < moderated.variance < own.variance
    assert moderated.df > own.df
    borrowed = prior.moderated_variance(sample_variance([1.0]))
    assert borrowed.variance == prior.variance


def test_too_few_cells_or_no_spread_say_nothing() -> None:
    assert fit_variance_prior(drawn(CELLS_MIN - 1, 2, 6)) is NO_PRIOR
    assert fit_variance_prior([Variance(0.0, 2.0)] * 20) is NO_PRIOR
    assert fit_variance_prior([sample_variance([1.0])] * 20) is NO_PRIOR
    own = Variance(0.3, 2.0)
    assert NO_PRIOR.moderated_variance(own) is own


def test_a_single_zero_does_not_rule_the_fit() -> None:
    spreads = [*drawn(30, 2, 6), Variance(0.0, 2.0)]
    prior = fit_variance_prior(spreads)
    assert prior.df > 0
    assert math.isfinite(prior.variance)


def test_small_strata_join_their_siblings() -> None:
    cells = dict(enumerate(drawn(30, 2, 6)))
    strata = {cell: ("read", "below" if cell < 20 else "above") for cell in cells}
    fitted = fit_stratum_priors((strata[cell], spread) for cell, spread in cells.items())
    assert fitted.prior_of_finest_stratum(("read", "below")).cell_count == 20
    assert fitted.prior_of_finest_stratum(("read", "above")).cell_count == 30
    assert fitted.prior_of_finest_stratum(("write", "below")).cell_count == 30
    few = fit_stratum_priors((strata[cell], spread) for cell, spread in cells.items() if cell < 5)
    assert few.prior_of_finest_stratum(strata[0]) is NO_PRIOR
    assert fit_stratum_priors([]).prior_of_finest_stratum(()) is NO_PRIOR
