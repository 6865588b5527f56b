"""`iolab compare` on sessions whose truth is known."""

from __future__ import annotations

import csv
import io
import json
import re
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from msgspec.structs import replace

from iolab.analysis.differences import Difference, DifferenceArea
from iolab.core.configuration import Configuration
from iolab.core.metric import Metric, RunResult, Verdict, VerdictLevel
from iolab.core.run import Plan
from iolab.core.study import Study
from iolab.errors import UsageError
from iolab.loads.fileio.workload import Job
from iolab.report.comparison import differences_table, ratio_with_interval_text
from tests.cli.compared import NOISE, Target, make_target
from tests.cli.in_process import call
from tests.facts import tells

SCHEMA = json.loads(
    (Path(__file__).parents[2] / "schema" / "compare.json").read_text(encoding="utf-8")
)


def compared(*words: str | Path) -> dict[str, Any]:
    """The document of a comparison that is not refused."""
    told = call("compare", *words, "--json")
    document: dict[str, Any] = json.loads(told.stdout)
    assert told.returncode == 0, told.stderr
    jsonschema.validate(document, SCHEMA, jsonschema.Draft202012Validator)
    return document


def refused(*words: str | Path) -> str:
    told = call("compare", *words)
    assert (told.returncode, told.stdout) == (UsageError.exit_code, "")
    return told.stderr


@pytest.fixture(scope="module")
def baseline(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_target(tmp_path_factory.mktemp("baseline") / "A", Target(name="a"))


@pytest.fixture(scope="module")
def slower(tmp_path_factory: pytest.TempPathFactory) -> Path:
    other = Target(name="b", factor=0.9, noise=(0.002, 0.005, -0.004))
    return make_target(tmp_path_factory.mktemp("slower") / "B", other)


def test_a_tenth_less_is_worse_and_the_interval_holds_it(slower: Path, baseline: Path) -> None:
    document = compared(baseline, slower)
    rates = [row for row in document["rows"] if row["metric"] == "iops"]
    tails = [row for row in document["rows"] if row["metric"] == "lat_ns_p99"]
    assert len(rates) == len(tails) == 2
    assert all(row["low"] < 0.9 < row["high"] for row in rates)
    assert all(row["low"] < 1 / 0.9 < row["high"] for row in tails)
    assert document["verdicts"] == {"better": 0, "worse": 4, "same": 0, "inconclusive": 0}
    assert document["differences"] == []
    assert [one["metric"] for one in document["summaries"]] == ["iops", "lat_ns_p99"]
    assert document["summaries"][0]["low"] < 0.9 < document["summaries"][0]["high"]


def test_the_exit_code_tells_worse_and_only_when_asked(slower: Path, baseline: Path) -> None:
    codes = [
        call("compare", *words).returncode
        for words in (
            (baseline, slower),
            (baseline, slower, "--fail-on", "worse"),
            (slower, baseline, "--fail-on", "worse"),
        )
    ]
    assert codes == [0, 1, 0]


def test_the_same_target_measured_again_is_the_same(tmp_path: Path, baseline: Path) -> None:
    again = make_target(tmp_path / "B", Target(name="b", noise=(-0.002, 0.001, 0.002)))
    rows = compared(baseline, again, "--metric", "iops")["rows"]
    assert {row["verdict"] for row in rows} == {"same"}
    assert all(row["ratio"] != 1 and row["low"] < 1 < row["high"] for row in rows)


def test_a_session_with_itself_is_exactly_the_same_and_says_why(
    baseline: Path, tmp_path: Path
) -> None:
    document = compared(baseline, baseline)
    assert document["same_session"]
    assert {(row["ratio"], row["low"], row["high"]) for row in document["rows"]} == {(1, 1, 1)}
    assert {row["verdict"] for row in document["rows"]} == {"same"}
    assert "same session" in call("compare", baseline, baseline).stdout
    # A directory may have a colon in its name, which otherwise divides it from a configuration.
    copy = shutil.copytree(baseline, tmp_path / "a:b")
    assert compared(baseline, copy)["same_session"]


def test_one_repeat_each_is_inconclusive_and_says_why(tmp_path: Path) -> None:
    one = make_target(tmp_path / "A", Target(name="a", repeats=1))
    other = make_target(tmp_path / "B", Target(name="b", repeats=1, factor=0.5))
    rows = compared(one, other)["rows"]
    assert {row["verdict"] for row in rows} == {"inconclusive"}
    assert all("single run" in row["reason"] for row in rows)
    assert {(row["low"], row["high"]) for row in rows} == {(None, None)}


def test_a_narrow_terminal_cuts_no_cell(tmp_path: Path) -> None:
    one = make_target(tmp_path / "A", Target(name="a", repeats=1))
    other = make_target(tmp_path / "B", Target(name="b", repeats=1, plan=deeper))
    done = call("compare", one, other, "--allow-differences", env={"COLUMNS": "76"})
    lines = done.stdout.splitlines()
    assert len([line for line in lines if line.endswith("? inconclusive")]) == 4
    assert max(map(len, lines)) <= 76
    assert any(line.startswith("Inconclusive: a single run") for line in lines)
    assert any(line.startswith("! workload-1: iodepth") for line in lines)


def test_two_runs_that_scatter_claim_nothing(tmp_path: Path) -> None:
    one = make_target(tmp_path / "A", Target(name="a", repeats=2, noise=(0.1, -0.1)))
    other = make_target(tmp_path / "B", Target(name="b", repeats=2, noise=(-0.1, 0.1), factor=0.9))
    assert compared(one, other)["verdicts"]["inconclusive"] == 4


def test_another_load_is_refused_unless_allowed_and_then_named(
    tmp_path: Path, baseline: Path
) -> None:
    other = make_target(tmp_path / "B", Target(name="b", plan=deeper))
    told = refused(baseline, other)
    assert "iodepth: 1 against 7" in told
    assert "file bytes: 1 GiB against 2 GiB" in told
    document = compared(baseline, other, "--allow-differences")
    forbidden = [one["what"] for one in document["differences"] if one["forbids"]]
    assert forbidden == ["workload-1: iodepth", "workload-1: file bytes"]
    assert "! workload-1: iodepth" in call("compare", baseline, other, "--allow-differences").stdout


def test_hosts_and_versions_that_differ_are_shown_first_and_forbid_nothing(
    tmp_path: Path, baseline: Path
) -> None:
    def newer(facts: Any) -> Any:
        return {
            name: replace(one, kernel=replace(one.kernel, release="6.12.0"))
            for name, one in facts.items()
        }

    other = make_target(tmp_path / "B", Target(name="b", facts=newer, study=in_a_hurry))
    document = compared(baseline, other)
    assert [tuple(one.values()) for one in document["differences"]] == [
        ("method", "runtime s", "1", "20", False),
        ("hosts", "kernel", "6.1.0", "6.12.0", False),
    ]
    text = call("compare", baseline, other).stdout
    assert text.index("6.12.0") < text.index("IOPS")


def test_invalid_runs_are_not_compared(tmp_path: Path, baseline: Path) -> None:
    def spoil(result: RunResult) -> RunResult:
        if dict(result.axis_values)["bs"] == "8k":
            return replace(result, verdict=Verdict(VerdictLevel.INVALID, ()))
        return replace(result, metrics={**result.metrics, "lat_ns_p99": Metric(None, "ns")})

    other = make_target(tmp_path / "B", Target(name="b", result=spoil))
    document = compared(baseline, other)
    assert [(row["axis"]["bs"], row["metric"]) for row in document["rows"]] == [("4k", "iops")]
    (skipped,) = document["skipped"]
    assert skipped["axis"] == {"iodepth": 1, "bs": "8k"}
    assert "candidate" in skipped["reason"]


def test_a_value_of_zero_has_no_ratio(tmp_path: Path, baseline: Path) -> None:
    def stuck(result: RunResult) -> RunResult:
        return replace(result, metrics={**result.metrics, "iops": Metric(0.0, "1/s")})

    other = make_target(tmp_path / "B", Target(name="b", result=stuck))
    document = compared(baseline, other)
    assert all(one["reason"].startswith("iops") for one in document["skipped"])
    assert (len(document["skipped"]), len(document["rows"])) == (2, 2)


def test_what_differs_alike_in_several_workloads_is_one_row() -> None:
    found = [
        Difference(
            DifferenceArea.WORKLOAD,
            "file bytes",
            "1 GiB",
            "2 GiB",
            forbids_comparison=True,
            workload="reads",
        ),
        Difference(
            DifferenceArea.WORKLOAD,
            "file bytes",
            "1 GiB",
            "2 GiB",
            forbids_comparison=True,
            workload="writes",
        ),
        Difference(
            DifferenceArea.WORKLOAD,
            "file bytes",
            "1 GiB",
            "4 GiB",
            forbids_comparison=True,
            workload="mixed",
        ),
        Difference(DifferenceArea.HOSTS, "kernel", "6.1", "6.12"),
    ]
    rows = differences_table(found).rows
    assert [row[0].text for row in rows] == [
        "! reads and writes: file bytes",
        "! mixed: file bytes",
        "kernel",
    ]


def test_points_that_one_side_lacks_are_named(tmp_path: Path, baseline: Path) -> None:
    more = make_target(tmp_path / "B", Target(name="b", points=3))
    (skipped,) = compared(baseline, more)["skipped"]
    assert skipped["axis"]["bs"] == "16k"
    assert "baseline" in skipped["reason"]
    nothing = make_target(tmp_path / "C", Target(name="c", plan=renamed, study=renamed_study))
    told = refused(baseline, nothing)
    assert "no point" in told
    assert len(told.strip().splitlines()) == 3, "each side's points are named after one reason"


def test_configurations_of_one_session_are_paired_by_repeat(tmp_path: Path) -> None:
    # What both share in a repeat is far larger than the difference between them.
    shared = (0.2, -0.1, -0.15)
    one = Target(name="a", noise=shared, study=doubled, plan=doubled_plan, result=tenth_more)
    both = make_target(tmp_path / "A", one)
    assert "has 2 configurations" in refused(both, both)
    assert f"{both}:only {both}:other" in refused(f"{both}:none")
    document = compared(f"{both}:only", f"{both}:other", "--metric", "iops")
    assert [row["paired"] for row in document["rows"]] == [True, True]
    assert {row["verdict"] for row in document["rows"]} == {"better"}
    assert all(row["low"] < 1.1 < row["high"] for row in document["rows"])
    told = refused(f"{both}:othr", f"{both}:only")
    assert tells(told, "'othr'", "configurations are only", "other")
    told = call("compare", f"{both}:only", f"{both}:other").stdout
    assert re.search(r"^\S+ against \S+: ✓ \d better", told, re.MULTILINE)
    example = refused(f"{both}:none").strip()
    assert example.endswith(f"{both}:other"), "what is copied has no full stop"
    # Where there are two, neither needs to be named.
    assert compared(both, "--metric", "iops")["rows"] == document["rows"]


def with_efficiency(boundary: str, *, has_tail: bool = True) -> Callable[[RunResult], RunResult]:
    """Of results the same with operations a joule by a meter there, and with a p99 or a bound."""

    def changed(result: RunResult) -> RunResult:
        rate = result.metrics["iops"].value or 0.0
        metrics = {**result.metrics, f"{boundary}_ops_per_j": Metric(rate / 200, "ops/J")}
        if not has_tail:
            metrics["lat_ns_p99"] = Metric(None, "ns", 2e9)
        return replace(result, metrics=metrics)

    return changed


def test_operations_a_joule_stand_beside_the_rate_and_unlike_meters_are_said(
    tmp_path: Path,
) -> None:
    one, other, unlike = (
        make_target(tmp_path / name, Target(name=name, result=result))
        for name, result in (
            ("a", with_efficiency("node")),
            ("b", with_efficiency("node", has_tail=False)),
            ("c", with_efficiency("drive")),
        )
    )
    rows = compared(one, other)["rows"]
    assert {row["metric"] for row in rows} == {"iops", "node_ops_per_j"}
    told = " ".join(call("compare", one, other).stdout.split())
    assert "ops/J, node" in told
    assert "of the candidate's p99 latency only 'more than 2" in told
    told = " ".join(call("compare", one, unlike).stdout.split())
    assert "of the baseline its node, of the candidate its drive: unlike boundaries" in told


def test_one_configuration_needs_a_candidate(baseline: Path) -> None:
    assert "1 configuration" in refused(baseline)


def test_unknown_workloads_and_metrics_are_told_together(baseline: Path) -> None:
    told = refused(baseline, baseline, "-w", "workload-2", "-m", "iops_", "-m", "iops")
    assert "'workload-2'" in told
    assert "'iops'" in told


def test_it_is_printed_for_other_programs(slower: Path, baseline: Path) -> None:
    told = call("compare", baseline, slower, "--format", "csv").stdout
    rows = list(csv.DictReader(io.StringIO(told)))
    assert [row["verdict"] for row in rows] == ["worse"] * 4
    assert float(rows[0]["ratio"]) == pytest.approx(0.9, rel=0.01)
    lines = call("compare", baseline, slower, "--format", "markdown").stdout.splitlines()
    assert lines[4].startswith("| workload-1, iodepth 1, bs 4k | IOPS |")


def deeper(plan: Plan) -> Plan:
    runs = tuple(
        replace(
            run,
            point=replace(
                run.point,
                job=replace(
                    Job.require_type(run.point.job),
                    iodepth=7,
                    file_bytes=2 * Job.require_type(run.point.job).file_bytes,
                ),
            ),
        )
        for run in plan.runs
    )
    return replace(plan, runs=runs)


def in_a_hurry(study: Study) -> Study:
    return replace(study, method=replace(study.method, runtime_s=20.0))


def renamed(plan: Plan) -> Plan:
    runs = (replace(run, point=replace(run.point, workload="else")) for run in plan.runs)
    return replace(plan, runs=tuple(runs))


def renamed_study(study: Study) -> Study:
    return replace(study, workloads=(replace(study.workloads[0], id="else"),))


def doubled(study: Study) -> Study:
    other: Configuration = replace(study.configurations[0], id="other")
    return replace(study, configurations=(*study.configurations, other))


def doubled_plan(plan: Plan) -> Plan:
    runs = [
        replace(
            run,
            point=replace(run.point, configuration=name, digest=f"{number}{run.point.digest[1:]}"),
        )
        for run in plan.runs
        for number, name in enumerate(("only", "other"))
    ]
    numbered = (replace(run, order=order) for order, run in enumerate(runs))
    return replace(plan, runs=tuple(numbered))


def tenth_more(result: RunResult) -> RunResult:
    """The other configuration is faster by 10 %, give or take a little."""
    if result.configuration == "only":
        return result
    speed = 1.1 * (1 + NOISE[result.repeat - 1] / 2)
    rate = result.metrics["iops"]
    assert rate.value is not None
    return replace(
        result, metrics={**result.metrics, "iops": replace(rate, value=rate.value * speed)}
    )


@pytest.mark.parametrize("columns", ["80", "200"])
def test_however_narrow_a_terminal_is_a_row_is_one_line_with_its_interval(
    slower: Path, baseline: Path, columns: str
) -> None:
    rows = compared(baseline, slower)["rows"]
    changes = {
        f"{ratio_with_interval_text(row['ratio'], row['low'], row['high'])}  ✗ worse"
        for row in rows
    }
    text = call("compare", baseline, slower, env={"COLUMNS": columns}).stdout
    assert [change for change in changes if change not in text] == []
