"""The best verdict that is possible, told before anything runs."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from iolab.core.metric import VerdictLevel
from iolab.registry import study_kinds
from iolab.study.forecast import VerdictForecast, forecast_verdicts
from iolab.study.parse import StudyOverrides
from iolab.study.targets import targets_of_study
from tests.plans import make_plan, parse_study
from tests.study.test_guard import FACTS, TARGET

HEAD = 'format = 1\nid = "s"\n[target]\npath = "/mnt/t"\n'
READS = '[[workload]]\nid = "r"\nrw = "randread"\nbs = "4k"\nfilesize = "1m"\niodepth = [1, 2]\n'
FILES = '[[workload]]\nid = "f"\nengine = "metadata"\nranks = 4\nfiles_per_rank = 9\n'
REPLAY = (
    '[[workload]]\nid = "k"\nengine = "kv-cache"\nkv_bytes_per_token = 8\ncapacity = "64m"\n'
    "requests_per_s = [4, 8]\n"
)
TWO = '[[host]]\nname = "a"\n[[host]]\nname = "b"\n'


def forecast_of(text: str, *sets: str) -> VerdictForecast:
    study = parse_study(HEAD + text, "s", StudyOverrides(set_arguments=sets))
    return forecast_verdicts(study, make_plan(study), study_kinds())


@pytest.mark.parametrize(
    ("seconds", "level", "adds"),
    [
        (30, VerdictLevel.VALID, ""),
        (20, VerdictLevel.VALID, ""),
        (19.9, VerdictLevel.INDICATIVE, "19.9 s < 20 s"),
        (18, VerdictLevel.INDICATIVE, "18 s < 20 s"),
        (8, VerdictLevel.INDICATIVE, "24 s"),
    ],
)
def test_a_run_that_is_too_short_is_told_with_what_it_lacks(
    seconds: float, level: VerdictLevel, adds: str
) -> None:
    forecast = forecast_of(READS, f"method.runtime={seconds}s")
    assert forecast.best_possible_verdict_levels == (level,)
    assert forecast.too_short_run_cap is None
    assert adds in " ".join(forecast.text_lines())


PHASES = """
[[phase]]
id = "before"
seconds = "{before}"
[[phase]]
id = "later"
seconds = "{later}"
"""


@pytest.mark.parametrize(
    ("before", "later", "level", "told"),
    [
        ("20s", "5s", VerdictLevel.VALID, ()),
        (
            "19s",
            "5s",
            VerdictLevel.INDICATIVE,
            ("phase before", "19 s < 20 s", "phase.before.seconds"),
        ),
        ("20s", "4s", VerdictLevel.INDICATIVE, ("phase later", "4 s < 5 s", "phase.later.seconds")),
        ("2s", "60s", VerdictLevel.INVALID, ("phase before",)),
    ],
)
def test_phases_are_as_long_as_checks_ask_for(
    before: str, later: str, level: VerdictLevel, told: tuple[str, ...]
) -> None:
    """The first one is judged as a run is, however long the others are."""
    forecast = forecast_of(READS + PHASES.format(before=before, later=later))
    assert forecast.best_possible_verdict_levels == (level,)
    text = " ".join(forecast.text_lines())
    assert all(part in text for part in told)


@pytest.mark.parametrize("role", ["client", "storage"])
@pytest.mark.parametrize("is_hidden", [True, False])
def test_a_target_that_hides_what_it_is_on_is_told_before_it_runs(
    role: str, *, is_hidden: bool
) -> None:
    hosts = f'[[host]]\nname = "a"\n[[host]]\nname = "b"\nrole = "{role}"\n'
    hosts += 'devices = ["sda"]\n' if role == "storage" else ""
    study = parse_study(HEAD + hosts + READS, "s", StudyOverrides())
    facts = replace(FACTS, target=replace(TARGET, fs_type="fuse.x", hidden=is_hidden))
    plan = make_plan(study)
    known = dict.fromkeys((target.key for target in targets_of_study(study)), facts)
    forecast = forecast_verdicts(study, plan, study_kinds(), known)
    is_told = is_hidden and role == "client"
    assert forecast.best_possible_verdict_levels == (
        VerdictLevel.INDICATIVE if is_told else VerdictLevel.VALID,
    )
    assert ("fuse.x" in " ".join(forecast.text_lines())) is is_told
    assert forecast_verdicts(study, plan, study_kinds()).best_possible_verdict_levels == (
        VerdictLevel.VALID,
    )


def test_short_runs_of_several_kinds_are_told_once() -> None:
    """Two of reads and two of a replay, each 5 s too short."""
    (limit,) = forecast_of(READS + REPLAY, "method.runtime=15s", "method.repeats=1").caps
    assert len(limit.point_digests) == 4
    assert "adds 20 s" in limit.hint


def test_runs_that_can_only_be_invalid_are_a_smoke_test() -> None:
    forecast = forecast_of(READS, "method.runtime=2s")
    assert forecast.run_counts_by_level[VerdictLevel.INVALID] == forecast.run_count == 2
    assert forecast.too_short_run_cap is not None


def test_a_run_that_its_edges_may_make_invalid_is_told_so() -> None:
    (near,) = forecast_of(READS, "method.runtime=3s").caps
    (safe,) = forecast_of(READS, "method.runtime=6s").caps
    assert near.verdict_level is safe.verdict_level is VerdictLevel.INDICATIVE
    assert "invalid" in near.reason
    assert "invalid" not in safe.reason


def test_what_the_stopping_rule_allows_counts_where_there_is_one() -> None:
    forecast = forecast_of(READS, "method.kind=adaptive", "method.runtime=2s")
    assert forecast.best_possible_verdict_levels == (VerdictLevel.VALID,)


def test_a_client_that_looks_its_own_files_up_is_told() -> None:
    assert forecast_of(FILES).best_possible_verdict_levels == (VerdictLevel.INDICATIVE,)
    assert forecast_of(FILES + TWO).best_possible_verdict_levels == (VerdictLevel.VALID,)
    assert forecast_of(FILES + TWO, "workload.f.rank_shift=1").best_possible_verdict_levels == (
        VerdictLevel.INDICATIVE,
    )
    short = forecast_of(FILES + TWO, "workload.f.phase_runtime=5s")
    assert short.best_possible_verdict_levels == (VerdictLevel.INDICATIVE,)
    assert "5 s" in short.caps[0].reason


def test_each_run_counts_once_by_its_worst_limit() -> None:
    forecast = forecast_of(READS + FILES, "method.runtime=2s")
    assert (
        forecast.run_counts_by_level[VerdictLevel.INVALID],
        forecast.run_counts_by_level[VerdictLevel.INDICATIVE],
    ) == (
        2,
        1,
    )
    assert forecast.document()["runs"] == {"valid": 0, "indicative": 1, "invalid": 2}
