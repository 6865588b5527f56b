"""Pods that a session makes, before it measures: in a namespace where no pod ever comes."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli.command_line import environment

KUBECTL = """#!/bin/sh
echo "$*" >>{folder}/calls
case "$*" in
*dry-run* | *current-context*) ;;
*--filename=-*) echo '{{"metadata": {{"uid": "u-1"}}}}' ;;
*) echo '{{"items": []}}' ;;
esac
"""

STUDY = """\
format = 1
id = "classes"

[[workload]]
id = "rand-read"
rw = "randread"
bs = "4k"
filesize = "64m"
"""


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_signal_while_pods_are_awaited_removes_them(tmp_path: Path, number: int) -> None:
    program = tmp_path / "kubectl"
    program.write_text(KUBECTL.format(folder=tmp_path), encoding="utf-8")
    program.chmod(0o755)
    (tmp_path / "study.toml").write_text(STUDY, encoding="utf-8")
    words = ("--storage-class=fast", "--volume=1Gi", "--set=kubernetes.name=iolab-1")
    process = subprocess.Popen(
        [sys.executable, "-m", "iolab", "run", tmp_path / "study.toml", *words],
        env=environment({"PATH": f"{tmp_path}:/usr/bin:/bin"}),
        cwd=tmp_path,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stderr is not None
    lines = []
    for line in process.stderr:
        lines.append(line)
        if line.startswith("Waiting for 1 of 1 pods"):
            process.send_signal(number)
    assert process.wait(60) == 130, lines
    calls = (tmp_path / "calls").read_text("utf-8").splitlines()
    made = next(place for place, call in enumerate(calls) if call.endswith("create --filename=-"))
    removed = next(place for place, call in enumerate(calls) if "delete lease iolab-1" in call)
    assert made < removed
    assert [path.name for path in tmp_path.iterdir() if path.is_dir()] == []
