"""`iolab history` over sessions whose levels are known."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import jsonschema
import numpy as np
import pytest
from msgspec.structs import replace

from iolab.core.host import HostFacts
from iolab.core.metric import RunResult, Verdict, VerdictLevel
from iolab.core.run import Plan
from iolab.core.study import Study
from iolab.errors import UsageError
from iolab.loads.fileio.workload import Job
from tests.cli.compared import Target, make_target
from tests.cli.in_process import call

SCHEMA = json.loads(
    (Path(__file__).parents[2] / "schema" / "history.json").read_text(encoding="utf-8")
)
RNG = np.random.default_rng(3)
DAYS = np.exp(RNG.normal(0, 0.005, 16))


def tracked(*words: str | Path) -> dict[str, Any]:
    told = call("history", *words, "--json")
    assert told.returncode == 0, told.stderr
    document: dict[str, Any] = json.loads(told.stdout)
    jsonschema.validate(document, SCHEMA, jsonschema.Draft202012Validator)
    return document


def refused(*words: str | Path) -> str:
    told = call("history", *words)
    assert (told.returncode, told.stdout) == (UsageError.exit_code, "")
    return told.stderr


@pytest.fixture(scope="module")
def steady(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One session a day, the newest first by name, so that names and times run apart."""
    directory = tmp_path_factory.mktemp("steady")
    for day in range(14):
        target = Target(name=f"s{day}", day=day, factor=float(DAYS[day]), repeats=2, points=1)
        make_target(directory / f"{14 - day:02}", target)
    return directory


def test_where_nothing_changed_it_says_so(steady: Path) -> None:
    document = tracked(steady)
    assert (document["changes"], len(document["sessions"])) == (0, 14)
    assert "over 14 sessions in 1 series" in document["message"]
    lines = call("history", steady).stdout.splitlines()
    assert lines[-1] == document["message"]


def test_a_change_is_found_where_it_was_with_what_else_changed(
    steady: Path, tmp_path: Path
) -> None:
    old = [steady / f"{14 - day:02}" for day in range(7)]
    new = tmp_path / "new"
    new.mkdir()
    for day in range(7, 14):
        factor = 0.95 * float(DAYS[day])
        target = Target(name=f"s{day}", day=day, factor=factor, repeats=2, points=1, facts=upgraded)
        make_target(new / str(day), target)
    document = tracked(new, *old)
    (series,) = document["series"]
    assert [seen["session"] for seen in series["values"]] == list(range(14))
    (change,) = series["changes"]
    assert (change["session"], document["changes"]) == (7, 1)
    assert change["ratio"] == pytest.approx(0.95, abs=0.01)
    assert [one["what"] for one in document["sessions"][7]["changed"]] == ["kernel"]
    text = call("history", new, *old, "--details").stdout
    assert "kernel: 6.1.0 against 6.12.0" in text
    assert text.splitlines()[-1].startswith("1 change over 14 sessions")


def test_few_sessions_are_told_to_be_few(steady: Path) -> None:
    document = tracked(steady / "01", steady / "02")
    assert document["message"].startswith("2 sessions")
    assert "11 are needed" in document["message"]
    assert [one["enough"] for one in document["series"]] == [False]


def test_invalid_sessions_leave_a_gap(steady: Path, tmp_path: Path) -> None:
    def spoil(result: RunResult) -> RunResult:
        return replace(result, verdict=Verdict(VerdictLevel.INVALID, ()))

    bad = make_target(
        tmp_path / "bad", Target(name="bad", day=3, factor=9.0, repeats=2, points=1, result=spoil)
    )
    (series,) = tracked(steady, bad)["series"]
    assert len(series["values"]) == 14


def test_another_load_or_study_is_refused(steady: Path, tmp_path: Path) -> None:
    def deeper(plan: Plan) -> Plan:
        runs = (
            replace(
                run,
                point=replace(run.point, job=replace(Job.require_type(run.point.job), iodepth=9)),
            )
            for run in plan.runs
        )
        return replace(plan, runs=tuple(runs))

    def renamed(study: Study) -> Study:
        return replace(study, id="another")

    other = make_target(tmp_path / "B", Target(name="b", day=20, points=1, plan=deeper))
    assert "iodepth: 1 against 9" in refused(steady, other)
    another = make_target(tmp_path / "C", Target(name="c", day=20, points=1, study=renamed))
    told = refused(steady, another)
    assert "of 2 studies" in told
    assert f"another: {another}" in told
    assert "--allow-differences" not in told, "a history of both would tell of no series"
    assert len(tracked(steady, other, "--allow-differences")["sessions"]) == 15


def test_a_session_given_twice_is_refused(steady: Path) -> None:
    assert "twice" in refused(steady, steady / "01")


def test_a_directory_without_sessions_is_refused(tmp_path: Path) -> None:
    assert "no session" in refused(tmp_path)


def test_another_metric_can_be_tracked(steady: Path) -> None:
    (series,) = tracked(steady, "-m", "lat_ns_p99", "-w", "workload-1")["series"]
    assert (series["metric"], series["unit"]) == ("lat_ns_p99", "ns")
    assert "'iosp'" in refused(steady, "-m", "iosp")


def upgraded(facts: Mapping[str, HostFacts]) -> Mapping[str, HostFacts]:
    return {
        name: replace(one, kernel=replace(one.kernel, release="6.12.0"))
        for name, one in facts.items()
    }


def test_a_session_of_several_configurations_in_a_directory_is_left_out_aloud(
    tmp_path: Path,
) -> None:
    def two(study: Study) -> Study:
        other = replace(study.configurations[0], id="other")
        return replace(study, configurations=(*study.configurations, other))

    make_target(tmp_path / "plain", Target(name="plain"))
    both = make_target(tmp_path / "both", Target(name="both", day=1, study=two))
    done = call("history", ".", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "both" in done.stderr
    assert "2 configurations" in done.stderr
    assert "2 configurations" in refused(both)
