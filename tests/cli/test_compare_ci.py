"""`iolab compare` for continuous integration: JUnit XML and Bencher's metric format."""

from __future__ import annotations

import json
import xml.etree.ElementTree as ET
from pathlib import Path

import numpy as np
import pytest
from msgspec.structs import replace

from iolab.core.metric import Metric, RunResult, Verdict, VerdictLevel
from tests.cli.compared import Target, make_target
from tests.cli.in_process import call

COUNTED = {"failures": "failure", "skipped": "skipped", "errors": "error"}


@pytest.fixture(scope="module")
def baseline(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_target(tmp_path_factory.mktemp("baseline") / "A", Target(name="a"))


def junit(baseline: Path, candidate: Path, *words: str) -> tuple[ET.Element, int]:
    """The one suite, which is as JUnit's readers expect it, and the exit code."""
    said = call("compare", baseline, candidate, "--format", "junit", *words)
    root = ET.fromstring(said.stdout)  # noqa: S314 - our own
    assert root.tag == "testsuites"
    (suite,) = root
    assert suite.tag == "testsuite"
    cases = list(suite)
    for owner in (root, suite):
        assert int(owner.attrib["tests"]) == len(cases)
        for name, tag in COUNTED.items():
            assert int(owner.attrib[name]) == sum(case.find(tag) is not None for case in cases)
    for case in cases:
        assert case.tag == "testcase"
        assert case.attrib["classname"]
        assert case.attrib["name"]
        assert len([part for part in case if part.tag in COUNTED.values()]) <= 1
    return suite, said.returncode


def test_what_is_worse_fails_and_nothing_else(tmp_path: Path, baseline: Path) -> None:
    slower = make_target(tmp_path / "B", Target(name="b", factor=0.9))
    suite, code = junit(baseline, slower)
    assert (suite.attrib["failures"], code) == ("4", 0)
    assert junit(baseline, slower, "--fail-on", "worse")[1] == 1
    failure = suite[0].find("failure")
    assert failure is not None
    assert "IOPS 0.900" in failure.attrib["message"]
    assert suite[0].attrib["classname"] == "synthetic.workload-1, iodepth 1, bs 4k"
    faster, code = junit(slower, baseline, "--fail-on", "worse")
    assert (faster.attrib["failures"], faster.attrib["skipped"], code) == ("0", "0", 0)


def test_what_says_neither_is_skipped_with_the_reason(tmp_path: Path, baseline: Path) -> None:
    def spoil(result: RunResult) -> RunResult:
        if dict(result.axis_values)["bs"] == "8k":
            return replace(result, verdict=Verdict(VerdictLevel.INVALID, ()))
        return replace(result, metrics={**result.metrics, "iops": Metric(0.0, "1/s")})

    other = make_target(tmp_path / "B", Target(name="b", result=spoil, noise=(0.3, -0.3, 0.0)))
    suite, _ = junit(baseline, other)
    skipped = {case.attrib["name"]: case.find("skipped") for case in suite}
    assert all(one is not None for one in skipped.values())
    assert {name: one.attrib["message"] for name, one in skipped.items() if one is not None}[
        "iops"
    ].startswith("a run of the candidate has the value 0, which has no ratio (")
    assert set(skipped) == {"iops", "lat_ns_p99", "not compared"}


def test_foreign_text_stays_text(tmp_path: Path, baseline: Path) -> None:
    name = 'B<&">\x01'
    other = make_target(tmp_path / name, Target(name="b"))
    suite, _ = junit(baseline, other)
    assert suite.attrib["name"].startswith(str(tmp_path / 'B<&">\ufffd'))


def test_bencher_gets_the_candidates_values_with_their_intervals(
    tmp_path: Path, baseline: Path
) -> None:
    slower = make_target(tmp_path / "B", Target(name="b", factor=0.9))
    found = json.loads(call("compare", baseline, slower, "--format", "bmf").stdout)
    rows = json.loads(call("compare", baseline, slower, "--json").stdout)["rows"]
    assert len(found) == 2
    for row in rows:
        point = f"workload-1, iodepth 1, bs {row['axis']['bs']}"
        known = row["candidate"]
        assert found[point][row["metric"]] == {
            "value": known["value"],
            "lower_value": known["low"],
            "upper_value": known["high"],
        }
    alone = make_target(tmp_path / "C", Target(name="c", repeats=1))
    single = json.loads(call("compare", alone, alone, "--format", "bmf").stdout)
    assert set(next(iter(single.values()))["iops"]) == {"value"}


def test_twenty_comparisons_of_equals_raise_no_alarm(tmp_path: Path) -> None:
    """Run means that scatter by 0.5 %, as those of a good device do."""
    generator = np.random.default_rng(20)
    sessions = [
        make_target(
            tmp_path / str(number),
            Target(name=str(number), noise=tuple(generator.normal(0.0, 0.005, 3).tolist())),
        )
        for number in range(7)
    ]
    codes = [
        call("compare", one, other, "--fail-on", "worse").returncode
        for number, one in enumerate(sessions)
        for other in sessions[number + 1 :]
    ]
    assert len(codes) == 21
    assert set(codes) == {0}
