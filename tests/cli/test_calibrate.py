"""What `iolab calibrate` refuses before it reaches any host, and what it says of a session."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from bench.synthetic import Shape, make_facts, make_plan, make_record, make_result, make_study
from msgspec.structs import replace

from iolab.cli.calibrate import ENGINES, print_calibration
from iolab.cli.options import OutputFormat
from iolab.core.events import SessionStatus
from iolab.core.metric import Verdict, VerdictLevel
from iolab.core.run import PlannedRun
from iolab.errors import ExitCode
from iolab.store.writer import SessionWriter
from tests.cli.in_process import call

INVENTORY = 'format = 1\n[[host]]\nname = "a"\n[[host]]\nname = "b"\npath = "/mnt/b"\n'


def test_hosts_are_given_no_path_that_depends_on_where_somebody_stands(tmp_path: Path) -> None:
    inventory = tmp_path / "hosts.toml"
    inventory.write_text(INVENTORY, encoding="utf-8")
    done = call("calibrate", "--hosts", inventory, "--path", "scratch", cwd=tmp_path)
    assert done.returncode == 2
    assert "'scratch'" in done.stderr
    assert "has no path" not in done.stderr


def test_hosts_without_a_path_are_all_named(tmp_path: Path) -> None:
    inventory = tmp_path / "hosts.toml"
    inventory.write_text('format = 1\n[[host]]\nname = "a"\n[[host]]\nname = "b"\n', "utf-8")
    done = call("calibrate", "--hosts", inventory, cwd=tmp_path)
    assert done.returncode == 2
    assert "a" in done.stderr
    assert "b" in done.stderr


def test_a_size_that_is_no_multiple_is_refused(tmp_path: Path) -> None:
    done = call("calibrate", "--path", tmp_path, "--size", "10k", cwd=tmp_path)
    assert done.returncode == 2
    assert "'10k'" in done.stderr


def test_what_cannot_be_asked_for_is_refused_all_at_once(tmp_path: Path) -> None:
    words = ("--rw", "sideways", "--bs", "4x", "--size", "0", "--ioengine", "rbd")
    done = call("calibrate", "--path", tmp_path, *words, cwd=tmp_path)
    assert done.returncode == 2
    for wrong in ("'sideways'", "'4x'", "'0'", "'rbd'"):
        assert wrong in done.stderr


def test_one_io_at_a_time_is_no_depth(tmp_path: Path) -> None:
    done = call("calibrate", "--path", tmp_path, "--ioengine", "psync", cwd=tmp_path)
    assert done.returncode == 2
    assert "'psync'" in done.stderr


def test_without_a_target_it_says_what_to_give(tmp_path: Path) -> None:
    done = call("calibrate", cwd=tmp_path)
    assert done.returncode == 2
    assert "--path" in done.stderr


SHAPE = Shape(points=1, seconds=1, hosts=1, repeats=3, cores=1, disks=1, nics=1)
FASTER = {"fio": 1.0, "native": 1.25}


def calibrated(directory: Path, level: VerdictLevel = VerdictLevel.VALID) -> Path:
    """A session whose native engine makes a quarter more I/Os, with that verdict on each run."""

    def of_engine(run: PlannedRun, engine: str) -> PlannedRun:
        return replace(run, point=replace(run.point, digest=engine.ljust(16, "0"), workload=engine))

    study, plan = make_study(SHAPE), make_plan(SHAPE)
    (workload,) = study.workloads
    study = replace(study, workloads=tuple(replace(workload, id=engine) for engine in ENGINES))
    runs = [of_engine(run, engine) for run in plan.runs for engine in ENGINES]
    plan = replace(plan, runs=tuple(replace(run, order=n) for n, run in enumerate(runs)))
    with SessionWriter.create(directory, study, plan, "both", ("iolab", "calibrate")) as writer:
        writer.record_host_facts_at_start(make_facts(SHAPE), "0.1.0")
        for run in plan.runs:
            record = make_record(run, SHAPE)
            first = make_result(make_record(of_engine(plan.runs[0], "fio"), SHAPE))
            rate = first.metrics["iops"]
            value = (rate.value or 0) * FASTER[run.point.workload] * (1 + run.repeat / 1000)
            result = replace(
                make_result(record),
                metrics={**first.metrics, "iops": replace(rate, value=value)},
                verdict=Verdict(level, first.verdict.checks),
            )
            writer.commit_run(record, result, analysis_version=1)
        writer.end_session_and_close(SessionStatus.DONE)
    return directory


def test_the_engines_of_a_session_are_compared_and_their_costs_told(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    session = calibrated(tmp_path / "session")
    assert print_calibration(session, OutputFormat.JSON) is ExitCode.OK
    document = json.loads(capfd.readouterr().out)
    ratios = {row["metric"]: row["ratio"] for row in document["rows"]}
    assert ratios["iops"] == pytest.approx(1.25)
    assert [cost["engine"] for cost in document["engines"]] == ["fio", "native"]
    assert all(cost["cpu_ns_per_io"] > 0 for cost in document["engines"])
    assert print_calibration(session, OutputFormat.TABLE) is ExitCode.OK
    assert "of CPU an I/O" in capfd.readouterr().out


def test_runs_that_are_not_worth_it_are_not_compared(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    session = calibrated(tmp_path / "session", VerdictLevel.INVALID)
    assert print_calibration(session, OutputFormat.JSON) is ExitCode.VERDICT
    assert json.loads(capfd.readouterr().out)["rows"] == []
