"""What killed sessions left, as users see it: shown, removed when asked for."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from pathlib import Path

import pytest

from iolab.cli import doctor
from iolab.cli.doctor import LEFT, Finding, FindingState
from iolab.core.host import HostSpec
from iolab.errors import ExitCode
from iolab.hosts.answers import Leftovers
from iolab.session import leftovers
from iolab.session.leftovers import Looked
from tests.cli.in_process import call


def of(*folders: str, host: str = "") -> Leftovers:
    listed = [{"dir": folder, "owner": "s", "bytes": 1, "host": host} for folder in folders]
    return Leftovers.model_validate(
        {
            "processes": [],
            "groups": [],
            "folders": [] if host else listed,
            "elsewhere": listed if host else [],
            "loops": [],
            "agents": [],
            "faults": [],
        }
    )


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[Mapping[str, Leftovers]]:
    """What each look was asked to remove; every look sees one folder more."""
    looks: list[Mapping[str, Leftovers]] = []

    async def look(
        specs: Iterable[HostSpec],
        path: str | None,
        *,
        remove: Mapping[str, Leftovers] | None = None,
    ) -> Looked:
        assert path is not None
        looks.append(remove or {})
        return Looked(
            {spec.name: of(*(f"/t/{n}" for n in range(len(looks)))) for spec in specs}, {}
        )

    monkeypatch.setattr(leftovers, "look_for_leftovers", look)
    return looks


def test_only_what_was_shown_is_asked_to_be_removed(
    asked: list[Mapping[str, Leftovers]], tmp_path: Path
) -> None:
    done = call("clean", "--path", tmp_path, "--yes")
    assert done.returncode == 0, done.stderr
    assert [left.names for look in asked for left in look.values()] == [{"/t/0"}]


def test_a_folder_of_another_host_is_named_and_stays(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    async def look(*_: object, remove: object = None) -> Looked:
        assert not remove
        return Looked({"local": of("/t/iolab-scratch-x", host="node\x1b7")}, {})

    monkeypatch.setattr(leftovers, "look_for_leftovers", look)
    done = call("clean", "--path", tmp_path, "--yes")
    assert "/t/iolab-scratch-x" in done.stderr
    assert "\x1b" not in done.stderr


@pytest.mark.parametrize("command", ["clean", "doctor"])
def test_a_relative_directory_of_hosts_is_refused(command: str) -> None:
    done = call(command, "--hosts", "slurm", "--path", "here/there")
    assert done.returncode == ExitCode.STUDY
    assert "here/there" in done.stderr


def test_doctor_prints_the_command_that_cleans(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    found = [Finding(LEFT, FindingState.NOTE, "1 scratch folder")]
    monkeypatch.setattr(doctor, "_this_machine", lambda *_, **__: found)
    assert "iolab clean --path '/a b'" in call("doctor", "--path", "/a b").stderr
    found.clear()
    assert "iolab clean" not in call("doctor").stderr


def test_a_session_is_not_kept_in_a_fifo(tmp_path: Path) -> None:
    fifo = tmp_path / "fifo"
    os.mkfifo(fifo)
    done = call("run", "no-study", "--path", tmp_path, "--out", fifo)
    assert done.returncode == ExitCode.STUDY
    assert "a FIFO" in done.stderr
