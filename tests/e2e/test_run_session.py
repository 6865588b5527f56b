"""A session from the command line to its report, with real fio and a real agent."""

from __future__ import annotations

import csv
import io
import json
import os
import signal
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import IO, Any

import jsonschema
import pytest

from tests.cli.command_line import command, environment, iolab, unprivileged
from tests.e2e.left import await_engine_on, await_none_on, engines_on, kill_engines, ours_on
from tests.e2e.targets import tmpfs, xfs_on_loop
from tests.e2e.terminal import CTRL_C, on_terminal

pytestmark = pytest.mark.e2e

LONG_S = 8
"""A run's seconds that outlast whatever a test does meanwhile, on a machine with other work."""
SCHEMA = Path(__file__).parents[2] / "schema" / "show.json"
STUDY = """
format = 1
id = "small"
title = "A small study"
question = "Does it all work?"

[method]
warmup = "0s"
runtime = "3s"
settle = "0s"
idle_watch = 0
generator_limit = false

[[workload]]
id = "reads"
title = "Random reads"
rw = "randread"
bs = "4k"
iodepth = [1, 4]
numjobs = 1
filesize = "32m"

[[workload]]
id = "writes"
title = "Large writes"
rw = "write"
bs = "1m"
iodepth = 2
numjobs = 1
filesize = "32m"
"""


@pytest.fixture(scope="module")
def target() -> Iterator[Path]:
    with xfs_on_loop(512 << 20) as made:
        yield made.path


@pytest.fixture
def study(tmp_path: Path) -> Path:
    file = tmp_path / "small.toml"
    file.write_text(STUDY, encoding="utf-8")
    return file


@pytest.fixture(scope="module")
def finished(target: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A session that ran to its end."""
    place = tmp_path_factory.mktemp("finished")
    (place / "small.toml").write_text(STUDY, encoding="utf-8")
    done = iolab("run", "small.toml", "--path", target, "--out", "S", "--report", cwd=place)
    assert done.returncode == 0, done.stdout + done.stderr
    (place / "stdout").write_text(done.stdout, encoding="utf-8")
    (place / "stderr").write_text(done.stderr, encoding="utf-8")
    return place / "S"


def shown(session: Path) -> dict[str, Any]:
    done = iolab("show", session, "--json")
    assert done.returncode == 0, done.stderr
    document: dict[str, Any] = json.loads(done.stdout)
    return document


@pytest.fixture(scope="module")
def document(finished: Path) -> dict[str, Any]:
    """That session as `iolab show --json` tells it."""
    return shown(finished)


def running(
    target: Path, study: Path, session: Path, reached: Callable[[str], bool], *words: str
) -> tuple[subprocess.Popen[str], IO[str]]:
    """A session that has just said the line to wait for, and the rest of what it says."""
    process = subprocess.Popen(
        command("run", study, "--path", target, "--out", session, *words),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        env=environment(),
    )
    assert process.stderr is not None
    for line in process.stderr:
        if reached(line):
            break
    return process, process.stderr


def test_run_prints_the_summary_alone_and_talks_on_stderr(finished: Path) -> None:
    out = (finished.parent / "stdout").read_text(encoding="utf-8")
    err = (finished.parent / "stderr").read_text(encoding="utf-8")
    assert "done — 3 runs" in out
    assert "Large writes" in out
    assert "iodepth 4" in out
    assert "run 1/3 reads, iodepth 1: measure" in err
    assert "IOPS" in err
    assert "Session: S" in err
    assert "run 1/3" not in out
    assert "Session:" not in out


def test_run_leaves_nothing_on_the_target(document: dict[str, Any], target: Path) -> None:
    assert document["results"]
    assert ours_on(target) == []
    assert engines_on(target) == []


def test_show_agrees_with_what_run_printed(finished: Path) -> None:
    printed = iolab("show", finished.name, cwd=finished.parent)
    assert printed.stdout == (finished.parent / "stdout").read_text(encoding="utf-8")


def test_every_result_has_numbers_and_a_verdict(document: dict[str, Any]) -> None:
    jsonschema.validate(document, json.loads(SCHEMA.read_text(encoding="utf-8")))
    results = document["results"]
    assert [(one["workload"], one["axis"]) for one in results] == [
        ("reads", {"iodepth": 1}),
        ("reads", {"iodepth": 4}),
        ("writes", {}),
    ]
    for one in results:
        assert one["status"] == "done"
        assert one["metrics"]["iops"]["value"] > 0
        assert one["verdict"]["level"] in {"valid", "indicative", "invalid"}
        assert len(one["verdict"]["checks"]) > 5


def test_the_report_was_written(finished: Path) -> None:
    page = (finished / "report.html").read_text(encoding="utf-8")
    assert "A small study" in page
    assert iolab("report", finished).stdout == f"{finished / 'report.html'}\n"


def test_exports_hold_the_same_numbers(finished: Path, document: dict[str, Any]) -> None:
    values = [one["metrics"]["iops"]["value"] for one in document["results"]]
    rows = csv.DictReader(io.StringIO(iolab("export", finished, "-f", "csv").stdout))
    assert [float(row["iops"]) for row in rows] == values


@pytest.mark.long
def test_run_with_json_prints_the_document_alone(target: Path, study: Path) -> None:
    done = iolab(
        *("run", study, "--path", target, "--set", "workload.reads.iodepth=1", "--quiet"),
        *("--out", study.parent / "S", "--json", "--fail-on", "invalid"),
    )
    assert done.stderr == ""
    assert len(json.loads(done.stdout)["results"]) == 2
    assert done.returncode in {0, 1}


def test_a_finished_session_has_nothing_to_resume(finished: Path) -> None:
    done = iolab("resume", finished)
    assert done.returncode == 0, done.stderr
    assert "3 of 3 runs are done, 0 are left." in done.stderr


def test_ctrl_c_once_keeps_what_is_measured_and_resume_goes_on(target: Path, study: Path) -> None:
    session = study.parent / "S"
    # So long that no run has come to its end by itself when the key is heard.
    sets = ["--set", f"method.runtime={LONG_S}s", "--set", "workload.reads.iodepth=1"]
    argv = command("run", study, "--path", target, "--out", session, *sets)
    with on_terminal(argv, environment({"TERM": "xterm"})) as terminal:
        terminal.wait_for(r"run 2/2[^\0]*latency +[0-9]")
        terminal.press(CTRL_C)
        terminal.wait_for("press Ctrl-C again to stop at once")
        assert terminal.wait() == 130
        assert f"iolab resume {session}" in terminal.text
    await_none_on(target)
    results = shown(session)["results"]
    assert [one["status"] for one in results] == ["done", "interrupted"]
    assert all(one["metrics"]["iops"]["value"] > 0 for one in results)
    first = (session / "points" / results[0]["digest"] / "run-1" / "manifest.json").stat()

    done = iolab("resume", session)
    assert done.returncode == 0, done.stderr
    assert "1 of 2 runs are done" in done.stderr
    assert "run 1/2" not in done.stderr
    assert [one["status"] for one in shown(session)["results"]] == ["done"] * 2
    manifests = {path.stat().st_ino for path in (session / "points").glob("*/run-1/manifest.json")}
    assert first.st_ino in manifests
    await_none_on(target)


@pytest.mark.long
def test_others_are_kept_out_and_ctrl_c_twice_leaves_nothing(target: Path, study: Path) -> None:
    session = study.parent / "S"
    sets = ["--set", "method.runtime=10min"]
    argv = command("run", study, "--path", target, "--out", session, *sets)
    with on_terminal(argv, environment({"TERM": "xterm"})) as terminal:
        terminal.wait_for(r"run 1/3[^\0]*latency +[0-9]")
        second = iolab("run", study, "--path", target, "--out", study.parent / "second")
        assert second.returncode == 3
        assert "held" in second.stderr
        assert not (study.parent / "second").exists()
        terminal.press(CTRL_C)
        terminal.press(CTRL_C)
        assert terminal.wait(30) == 130
    await_none_on(target)
    assert "interrupted" in iolab("show", session).stdout


@pytest.mark.long
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_a_signal_to_end_is_a_clean_stop(number: int, target: Path, study: Path) -> None:
    session = study.parent / "S"
    process = subprocess.Popen(
        command("run", study, "--path", target, "--out", session, "--set", "method.runtime=10min"),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=environment(),
    )
    assert process.stderr is not None
    for line in process.stderr:
        if " IOPS, " in line:
            break
    process.send_signal(number)
    out, err = process.communicate(timeout=60)
    assert process.returncode == 130
    assert "Stopping after what is measured" in err
    assert "reads" in out or "Random reads" in out
    await_none_on(target)
    assert [one["status"] for one in shown(session)["results"]] == ["interrupted"]


@pytest.mark.long
def test_a_session_can_be_shown_while_it_runs(target: Path, study: Path) -> None:
    session = study.parent / "S"
    # It stands still meanwhile, so that no machine is too slow to meet it. The next run is so long
    # that it cannot end before that.
    sets = ("--set", f"method.runtime={LONG_S}s")
    process, talk = running(target, study, session, lambda line: line.startswith("result "), *sets)
    process.send_signal(signal.SIGSTOP)
    try:
        during = iolab("show", session)
        assert during.returncode == 0
        assert "running — 1 of 3 runs" in during.stdout
        # The heading and one run.
        assert iolab("export", session, "-f", "csv").stdout.count("\n") == 2
        resumed = iolab("resume", session)
        assert resumed.returncode == 5
        assert "Another iolab" in resumed.stderr
    finally:
        process.kill()
        talk.read()
        process.wait(60)
    await_none_on(target)


def test_plan_tells_what_the_hosts_said_and_writes_nothing(target: Path, study: Path) -> None:
    done = iolab("plan", study, "--path", target)
    assert done.returncode == 0, done.stderr
    assert "xfs on loop" in done.stdout
    assert list(target.iterdir()) == []


@pytest.mark.long
def test_memory_is_refused_and_never_valid(study: Path) -> None:
    sets = ["--set", "workload.reads.iodepth=1", "--set", "workload.*.direct=false"]
    session = study.parent / "S"
    with tmpfs(256 << 20) as memory:
        refused = iolab("run", study, "--path", memory, *sets, "--out", session)
        assert refused.returncode == 3
        assert "memory" in refused.stderr
        assert not session.exists()
        sets += ["--set", "target.allow_memory=true", "--fail-on", "invalid"]
        done = iolab("run", study, "--path", memory, *sets, "--out", session)
        assert done.returncode == 1, done.stderr
        assert ours_on(memory) == []
    for one in shown(session)["results"]:
        levels = {check["code"]: check["level"] for check in one["verdict"]["checks"]}
        assert levels["target-in-memory"] == "invalid"
        assert one["verdict"]["level"] == "invalid"


def test_an_overlay_in_memory_is_refused_with_its_layers(study: Path) -> None:
    with tmpfs(64 << 20) as memory, tempfile.TemporaryDirectory(prefix="iolab-test-") as merged:
        for name in ("lower", "upper", "work"):
            (memory / name).mkdir()
        options = "lowerdir=lower,upperdir=upper,workdir=work"
        argv = ["mount", "-t", "overlay", "overlay", "-o", options, merged]
        subprocess.run(argv, cwd=memory, check=True)
        try:
            refused = iolab("run", study, "--path", merged, "--out", study.parent / "S")
            seen = iolab("doctor", "--path", merged)
        finally:
            subprocess.run(["umount", merged], check=True)
    assert refused.returncode == 3
    for output in (refused.stderr, seen.stdout):
        text = " ".join(output.split())
        assert "overlay with the upper directory 'upper' on tmpfs" in text


def test_what_cannot_run_is_refused_with_every_reason(tmp_path: Path, study: Path) -> None:
    missing = iolab("run", study, "--path", tmp_path / "none", "--out", tmp_path / "S")
    assert missing.returncode == 3
    assert "There is no directory" in missing.stderr
    without = iolab(
        *("run", study, "--path", tmp_path, "--out", tmp_path / "S"), env={"PATH": str(tmp_path)}
    )
    assert without.returncode == 4
    assert "fio" in without.stderr
    assert not (tmp_path / "S").exists()


def test_a_target_that_may_not_be_written_to_is_refused(target: Path, study: Path) -> None:
    closed = target / "closed"
    closed.mkdir(mode=0o555)
    try:
        if os.geteuid() == 0:
            os.chown(closed, 65534, 65534)
        done = unprivileged("run", study, "--path", closed, "--out", study.parent / "S")
        assert done.returncode == 3
        assert "Nothing may be written" in done.stderr
    finally:
        closed.rmdir()


@pytest.mark.long
def test_an_output_directory_that_cannot_be_written_costs_no_measuring(
    target: Path, study: Path
) -> None:
    taken = study.parent / "taken"
    taken.mkdir()
    (taken / "mine").write_text("mine", encoding="utf-8")
    done = iolab("run", study, "--path", target, "--out", taken)
    assert done.returncode == 5
    assert "lay out" not in done.stderr
    assert [path.name for path in taken.iterdir()] == ["mine"]
    closed = study.parent / "closed"
    closed.mkdir(mode=0o555)
    done = unprivileged("run", study, "--path", target, "--out", closed / "S")
    assert done.returncode == 5
    assert "lay out" not in done.stderr
    await_none_on(target)


@pytest.mark.long
def test_a_disk_that_fills_up_under_the_session_ends_it_cleanly(target: Path, study: Path) -> None:
    with tmpfs(64 << 10) as small:
        done = iolab("run", study, "--path", target, "--out", small / "S")
        assert done.returncode == 5, done.stderr
        assert "Traceback" not in done.stderr
        assert "bug" not in done.stderr
    await_none_on(target)


@pytest.mark.long
def test_an_engine_that_is_killed_fails_its_run_and_not_the_session(
    target: Path, study: Path
) -> None:
    session = study.parent / "S"
    process, talk = running(target, study, session, lambda line: "1: measure" in line)
    await_engine_on(target)
    kill_engines(target)
    rest = talk.read()
    assert process.wait(60) == 4
    assert "failed" in rest
    assert [one["status"] for one in shown(session)["results"]] == ["failed", "done", "done"]
    await_none_on(target)
    assert iolab("resume", session).returncode == 0
    assert [one["status"] for one in shown(session)["results"]] == ["done"] * 3
