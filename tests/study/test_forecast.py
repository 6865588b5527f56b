"""The best verdict that is possible, told before anything runs."""

from __future__ import annotations

import pytest

from iolab.core.metric import Level
from iolab.registry import study_kinds
from iolab.study.forecast import VerdictForecast, forecast_verdicts
from iolab.study.parse import StudyOverrides
from tests.plans import make_plan, parse_study

HEAD = 'format = 1\nid = "s"\n[target]\npath = "/mnt/t"\n'
READS = '[[workload]]\nid = "r"\nrw = "randread"\nbs = "4k"\nfilesize = "1m"\niodepth = [1, 2]\n'
FILES = '[[workload]]\nid = "f"\nengine = "metadata"\nranks = 4\nfiles_per_rank = 9\n'
REPLAY = (
    '[[workload]]\nid = "k"\nengine = "kv-cache"\nkv_bytes_per_token = 8\ncapacity = "64m"\n'
    "requests_per_s = [4, 8]\n"
)
TWO = '[[host]]\nname = "a"\n[[host]]\nname = "b"\n'


def forecast_of(text: str, *sets: str) -> VerdictForecast:
    study = parse_study(HEAD + text, "s", StudyOverrides(sets=sets))
    return forecast_verdicts(study, make_plan(study), study_kinds())


@pytest.mark.parametrize(
    ("seconds", "level", "adds"),
    [
        (30, Level.VALID, ""),
        (20, Level.VALID, ""),
        (19.9, Level.INDICATIVE, "19.9 s < 20 s"),
        (18, Level.INDICATIVE, "18 s < 20 s"),
        (8, Level.INDICATIVE, "24 s"),
    ],
)
def test_a_run_that_is_too_short_is_told_with_what_it_lacks(
    seconds: float, level: Level, adds: str
) -> None:
    forecast = forecast_of(READS, f"method.runtime={seconds}s")
    assert forecast.best_levels == (level,)
    assert forecast.smoke_test_limit is None
    assert adds in " ".join(forecast.text_lines())


def test_short_runs_of_several_kinds_are_told_once() -> None:
    """Two of reads and two of a replay, each 5 s too short."""
    (limit,) = forecast_of(READS + REPLAY, "method.runtime=15s", "method.repeats=1").limits
    assert len(limit.points) == 4
    assert "adds 20 s" in limit.hint


def test_runs_that_can_only_be_invalid_are_a_smoke_test() -> None:
    forecast = forecast_of(READS, "method.runtime=2s")
    assert forecast.counts[Level.INVALID] == forecast.runs == 2
    assert forecast.smoke_test_limit is not None


def test_a_run_that_its_edges_may_make_invalid_is_told_so() -> None:
    (near,) = forecast_of(READS, "method.runtime=3s").limits
    (safe,) = forecast_of(READS, "method.runtime=6s").limits
    assert near.level is safe.level is Level.INDICATIVE
    assert "invalid" in near.reason
    assert "invalid" not in safe.reason


def test_what_the_stopping_rule_allows_counts_where_there_is_one() -> None:
    forecast = forecast_of(READS, "method.kind=adaptive", "method.runtime=2s")
    assert forecast.best_levels == (Level.VALID,)


def test_a_client_that_looks_its_own_files_up_is_told() -> None:
    assert forecast_of(FILES).best_levels == (Level.INDICATIVE,)
    assert forecast_of(FILES + TWO).best_levels == (Level.VALID,)
    assert forecast_of(FILES + TWO, "workload.f.rank_shift=1").best_levels == (Level.INDICATIVE,)
    short = forecast_of(FILES + TWO, "workload.f.phase_runtime=5s")
    assert short.best_levels == (Level.INDICATIVE,)
    assert "5 s" in short.limits[0].reason


def test_each_run_counts_once_by_its_worst_limit() -> None:
    forecast = forecast_of(READS + FILES, "method.runtime=2s")
    assert (forecast.counts[Level.INVALID], forecast.counts[Level.INDICATIVE]) == (2, 1)
    assert forecast.document()["runs"] == {"valid": 0, "indicative": 1, "invalid": 2}
