"""What killed sessions left, as users see it: shown, removed when asked for."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Final

import pytest
import typer

from iolab.cli.doctor.command import clean_command_line_text, print_readiness_or_exit
from iolab.cli.doctor.findings import (
    LEFTOVERS_TOPIC,
    OTHER_LOAD_TOPIC,
    Finding,
    FindingState,
    Readiness,
    readiness,
)
from iolab.errors import ExitCode
from iolab.hosts.push import AGENT_VARIABLE
from tests.cli.in_process import call

SCRIPT: Final = Path(__file__).parents[1] / "fakes" / "scripted_agent.py"


def scripted(folder: Path, mode: str) -> dict[str, str]:
    """The environment in which this machine's agent follows a script."""
    agent = folder / "agent"
    agent.write_text(f"#!/bin/sh\nexec {sys.executable} {SCRIPT} {mode}\n")
    agent.chmod(0o755)
    return {AGENT_VARIABLE: str(agent)}


def clean(folder: Path, mode: str) -> tuple[subprocess.CompletedProcess[str], list[object]]:
    """`iolab clean --yes` with a scripted agent, and what each look was asked to remove."""
    looks = folder / "looks"
    env = {**scripted(folder, mode), "IOLAB_LOOKS": str(looks)}
    done = call("clean", "--path", folder, "--yes", env=env)
    return done, [json.loads(line) for line in looks.read_text().splitlines()]


def test_only_what_was_shown_is_asked_to_be_removed(tmp_path: Path) -> None:
    done, asked = clean(tmp_path, "leftovers")
    assert done.returncode == 0, done.stderr
    assert asked == [None, ["/t/0"]]


def test_a_folder_of_another_host_is_named_and_stays(tmp_path: Path) -> None:
    done, asked = clean(tmp_path, "elsewhere")
    assert asked == [None]
    assert "/t/0" in done.stderr
    assert "\x1b" not in done.stderr


def test_folders_of_other_users_are_named_counted_and_no_fault(tmp_path: Path) -> None:
    done, asked = clean(tmp_path, "others")
    assert (done.returncode, asked) == (0, [None])
    assert "/t/b" in done.stderr
    assert "19999" in done.stderr
    assert "\x1b" not in done.stderr


@pytest.mark.parametrize("words", [("doctor",), ("plan", "cluster-kpi", "--scale", "small")])
def test_an_agent_that_does_not_know_a_request_is_of_another_build(
    words: tuple[str, ...], tmp_path: Path
) -> None:
    done = call(*words, "--path", tmp_path, env=scripted(tmp_path, "older"))
    assert done.returncode == ExitCode.HOST
    assert "'make setup'" in " ".join((done.stdout + done.stderr).split())


@pytest.mark.parametrize("command", ["clean", "doctor"])
def test_a_relative_directory_of_hosts_is_refused(command: str) -> None:
    done = call(command, "--hosts", "slurm", "--path", "here/there")
    assert done.returncode == ExitCode.STUDY
    assert "here/there" in done.stderr


def test_doctor_prints_the_command_that_cleans(capsys: pytest.CaptureFixture[str]) -> None:
    command = clean_command_line_text("/a b", None)
    print_readiness_or_exit(
        [Finding(LEFTOVERS_TOPIC, FindingState.NOTE, "1 scratch folder")], command
    )
    assert "iolab clean --path '/a b'" in capsys.readouterr().err
    print_readiness_or_exit([], command)
    assert "iolab clean" not in capsys.readouterr().err


def test_a_machine_that_others_load_is_fit_but_busy(capsys: pytest.CaptureFixture[str]) -> None:
    busy = Finding(OTHER_LOAD_TOPIC, FindingState.NOTE, "CPU 99 %")
    assert readiness([busy]) is Readiness.BUSY
    print_readiness_or_exit([busy], "")
    assert "busy" in capsys.readouterr().err
    fault = Finding("directory", FindingState.FAULT, "missing")
    assert readiness([busy, fault]) is Readiness.NOT_FIT
    with pytest.raises(typer.Exit) as ended:
        print_readiness_or_exit([busy, fault], "")
    assert ended.value.exit_code == ExitCode.HOST


def test_a_session_is_not_kept_in_a_fifo(tmp_path: Path) -> None:
    fifo = tmp_path / "fifo"
    os.mkfifo(fifo)
    done = call("run", "no-study", "--path", tmp_path, "--out", fifo)
    assert done.returncode == ExitCode.STUDY
    assert "a FIFO" in done.stderr
