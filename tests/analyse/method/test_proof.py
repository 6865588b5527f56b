"""The method's claims, in a quick mode of the simulator with wide tolerances and fixed seeds."""

from __future__ import annotations

import numpy as np
import pytest
from bench.method import stopping, whole_study
from bench.method.claims import (
    CHOSEN,
    PUBLISHED_HOURS,
    print_rows,
    print_studies,
    stopping_claims,
    study_claims,
    summed,
)
from bench.method.families import LOADS, SHARES, draw
from bench.method.rivals import fio_steadystate, one_published_run, published, snia
from bench.method.scenarios import RATE, SCENARIOS, ar1, sawtooth

REPLICATES = 20


@pytest.fixture(scope="module")
def rows() -> dict[tuple[str, str], stopping.Row]:
    found = stopping.table(REPLICATES, lambda tasks: map(stopping.play, tasks))
    return {(row.scenario, row.rule): row for row in found}


def test_steady_scenarios_are_measured_well(rows: dict[tuple[str, str], stopping.Row]) -> None:
    for scenario, rmse in (("S1 read", 0.4), ("S2 70/30", 0.9), ("S3 write", 0.8)):
        row = rows[scenario, "rule D"]
        assert row.accepted >= 0.9
        assert row.rmse < rmse
        assert row.coverage >= 0.8
        assert row.seconds < 780


def test_others_stop_in_the_transient(rows: dict[tuple[str, str], stopping.Row]) -> None:
    assert rows["S3 write", "fio ss 0.3%/60s"].bias > 5
    assert rows["S3 write", "SNIA 5 rounds"].bias > 1
    assert rows["S5 unprepared", stopping.PUBLISHED].bias > 15
    assert rows["S5 unprepared", stopping.PUBLISHED].coverage < 0.1


def test_single_runs_keep_their_claims(rows: dict[tuple[str, str], stopping.Row]) -> None:
    claims = stopping_claims(list(rows.values()))
    assert claims[0].holds, claims[0]
    assert rows["S4 slow cycle", "rule D"].accepted <= 0.25
    assert rows["S4 slow cycle", "rule D cyclic"].accepted >= 0.7
    assert rows["S7 stalls", "rule D lsm"].coverage >= 0.8


def test_a_whole_study_costs_a_quarter(capsys: pytest.CaptureFixture[str]) -> None:
    designs = summed([whole_study.play(whole_study.Setting(1))])
    hours, error, coverage = study_claims(designs)
    assert designs["published 3 x 13 min"].hours == pytest.approx(PUBLISHED_HOURS)
    assert designs[CHOSEN].hours < 36, hours
    ratio = (
        np.square(designs[CHOSEN].errors).mean()
        / np.square(designs["published 3 x 13 min"].errors).mean()
    )
    assert ratio < 1.4**2, error
    assert all(np.mean(hits) >= 0.85 for hits in designs[CHOSEN].hits.values()), coverage
    print_studies(designs)
    print_rows([])
    assert CHOSEN in capsys.readouterr().out


@pytest.mark.parametrize("scenario", SCENARIOS)
def test_scenarios_are_seeded_and_true(scenario: str) -> None:
    def played(run: int, seconds: int) -> np.typing.NDArray[np.float64]:
        return SCENARIOS[scenario](
            np.random.default_rng(1), np.random.default_rng(run), seconds
        ).counts

    assert (played(2, 600) == played(2, 600)).all()
    assert (played(2, 600) != played(3, 600)).any()
    long = SCENARIOS[scenario](np.random.default_rng(1), np.random.default_rng(2), 40_000)
    assert long.counts[20_000:].mean() == pytest.approx(long.truth, rel=0.01)


def test_noise_has_the_spread_and_correlation_asked_for() -> None:
    rng = np.random.default_rng(1)
    x = ar1(rng, 200_000, 0.02, 0.8)
    assert x.std() == pytest.approx(0.02, rel=0.03)
    assert np.corrcoef(x[:-1], x[1:])[0, 1] == pytest.approx(0.8, abs=0.01)
    wave = sawtooth(rng, 50_000, 0.1, 60)
    assert np.ptp(wave) == pytest.approx(0.1, rel=0.05)
    assert wave.mean() == pytest.approx(0, abs=0.002)


def test_rivals_on_a_level_series() -> None:
    level = np.full(1800, RATE)
    assert published([level] * 3).mean == RATE
    assert one_published_run(level).seconds == 780
    assert (snia(level).mean, snia(level).seconds) == (RATE, 300)
    assert (fio_steadystate(level).mean, fio_steadystate(level).seconds) == (RATE, 60)


def test_rivals_refuse_what_never_settles() -> None:
    falling = RATE * 0.5 ** (np.arange(1800) / 60)
    assert not snia(falling).accepted
    assert not fio_steadystate(falling).accepted


@pytest.mark.parametrize("family", SHARES)
def test_families_are_positive_curves(family: str) -> None:
    curve = draw(family, np.random.default_rng(1))
    assert curve.shape == (len(LOADS),)
    assert (curve > 0).all()
