"""kubectl asked for pods: its silence, its words, and a context that is none."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from iolab.errors import HostError
from iolab.hosts.connect import look_up_pods
from iolab.study.inventory import PodSelection


@pytest.fixture
def kubectl(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where the program lies that is found as kubectl."""
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    return tmp_path / "kubectl"


def ask(program: Path, script: str, limit_s: float = 30) -> tuple[str | None, str]:
    """What a look-up gives with this script as kubectl."""
    program.write_text(f"#!/bin/sh\n{script}\n", encoding="utf-8")
    program.chmod(0o755)
    return asyncio.run(look_up_pods(PodSelection("bench", "app=load"), limit_s))


@pytest.mark.parametrize(
    ("context", "found"), [("echo lab", "lab"), ("exit 1", None), ("echo", None)]
)
def test_the_context_and_the_listing_are_found(
    kubectl: Path, context: str, found: str | None
) -> None:
    script = f'[ "$1" = config ] && {{ {context}; exit; }}\necho \'{{"items": []}}\''
    assert ask(kubectl, script) == (found, '{"items": []}\n')


@pytest.mark.parametrize(
    ("script", "says"),
    [
        ("exec sleep 100", "did not answer within 0.3 s"),
        (
            "[ $1 = config ] && exit 1\nprintf 'Unable to connect \\033[1m\\n' >&2\nexit 1",
            r"(exit code 1; Unable to connect \x1b[1m)",
        ),
        ("printf 'a\\033[1mb\\n'", "name of kubectl's context"),
    ],
)
def test_what_kubectl_cannot_tell_is_an_error_without_escapes(
    kubectl: Path, script: str, says: str
) -> None:
    with pytest.raises(HostError) as raised:
        ask(kubectl, script, 0.3 if "sleep" in script else 30)
    assert says in raised.value.happened
    assert raised.value.happened.isprintable()
