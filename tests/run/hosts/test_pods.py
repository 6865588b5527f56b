"""kubectl asked for pods: its silence, its words, and a context that is none."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

ASK = """\
import asyncio, json, sys
from iolab.errors import HostError
from iolab.plan.pods import Selection
from iolab.run.hosts.pods import look_up_pods
try:
    print(json.dumps(asyncio.run(look_up_pods(Selection("bench", "app=load"), float(sys.argv[1])))))
except HostError as error:
    print(json.dumps([error.happened, error.do]))
"""


def ask(folder: Path, script: str, limit_s: float = 30) -> list[str | None]:
    """What a look-up gives, or its error's two sentences, with this script as kubectl."""
    program = folder / "kubectl"
    program.write_text(f"#!/bin/sh\n{script}\n", encoding="utf-8")
    program.chmod(0o755)
    done = subprocess.run(
        [sys.executable, "-c", ASK, str(limit_s)],
        env={"PATH": f"{folder}:/usr/bin:/bin"},
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    found: list[str | None] = json.loads(done.stdout)
    return found


@pytest.mark.parametrize(
    ("context", "found"), [("echo lab", "lab"), ("exit 1", None), ("echo", None)]
)
def test_the_context_and_the_listing_are_found(
    tmp_path: Path, context: str, found: str | None
) -> None:
    script = f'[ "$1" = config ] && {{ {context}; exit; }}\necho \'{{"items": []}}\''
    assert ask(tmp_path, script) == [found, '{"items": []}\n']


def test_a_kubectl_that_asks_or_waits_is_given_up(tmp_path: Path) -> None:
    happened, do = ask(tmp_path, "sleep 100", limit_s=0.3)
    assert happened == "'kubectl config' did not answer within 0.3 s."
    assert do == "Try the same with 'kubectl get pods' by hand."


def test_kubectl_s_own_words_are_told_without_escapes(tmp_path: Path) -> None:
    script = "[ $1 = config ] && exit 1\nprintf 'Unable to connect \\033[1m\\n' >&2\nexit 1"
    happened, _ = ask(tmp_path, script)
    assert happened == r"kubectl cannot list the pods (exit code 1; Unable to connect \x1b[1m)."


def test_a_context_with_escapes_is_not_written_down(tmp_path: Path) -> None:
    happened, _ = ask(tmp_path, "printf 'a\\033[1mb\\n'")
    assert happened == "The name of kubectl's context cannot be written down."
