"""A whole session from the command line over ssh: three hosts, one study, one inventory."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.fleet.bed import Bed
from tests.processes import run_program

pytestmark = pytest.mark.e2e

IOLAB = Path(sys.executable).with_name("iolab")
STUDY = """\
format = 1
id = "fleet"
[[workload]]
id = "read"
rw = "randread"
bs = "4k"
filesize = "8m"
[method]
warmup = "0s"
runtime = "2s"
settle = "0s"
idle_watch = 0
generator_limit = false
"""


def iolab(*words: str | Path, home: Path) -> subprocess.CompletedProcess[str]:
    argv = [str(IOLAB), *(str(word) for word in words)]
    environment = {"HOME": str(home), "PATH": "/usr/bin:/bin:/usr/sbin:/sbin"}
    return run_program(argv, timeout=120, env=environment)


def test_a_study_runs_on_a_fleet_with_nothing_but_an_inventory(fleet: Bed, tmp_path: Path) -> None:
    study, session = tmp_path / "fleet.toml", tmp_path / "session"
    study.write_text(STUDY, encoding="utf-8")
    done = iolab("run", study, "--hosts", fleet.inventory, "--out", session, home=tmp_path)
    assert done.returncode == 0, done.stderr
    shown = json.loads(iolab("show", session, "--json", home=tmp_path).stdout)
    assert [item["status"] for item in shown["results"]] == ["done"]
    manifest = json.loads(next(session.glob("points/*/run-1/manifest.json")).read_text("utf-8"))
    assert {"c01", "c02", "c03"} <= set(_names(manifest))
    for name in fleet.specs:
        fleet.wait_until_alone(name)
        assert list((fleet.fleet.folder(name) / "target").iterdir()) == []
    again = iolab("resume", session, home=tmp_path)
    assert again.returncode == 0, again.stderr
    assert "1 of 1 runs are done" in again.stderr


def _names(manifest: object) -> list[str]:
    """Every `host` that a manifest names."""
    if isinstance(manifest, dict):
        own = [manifest["host"]] if isinstance(manifest.get("host"), str) else []
        return own + [name for value in manifest.values() for name in _names(value)]
    if isinstance(manifest, list):
        return [name for value in manifest for name in _names(value)]
    return []


def test_faults_of_an_inventory_are_told_by_the_command_line(tmp_path: Path) -> None:
    study, inventory = tmp_path / "fleet.toml", tmp_path / "hosts.toml"
    study.write_text(STUDY, encoding="utf-8")
    inventory.write_text('format = 1\n[[host]]\nname = "-oProxyCommand=x"\n', encoding="utf-8")
    done = iolab("check", study, "--hosts", inventory, "--path", tmp_path, home=tmp_path)
    assert done.returncode == 2
    assert f"{inventory}:3: name of host" in done.stderr


def test_every_host_that_cannot_be_reached_is_named_at_once(fleet: Bed, tmp_path: Path) -> None:
    study, inventory = tmp_path / "fleet.toml", tmp_path / "hosts.toml"
    study.write_text(STUDY, encoding="utf-8")
    text = fleet.inventory.read_text("utf-8").replace('user = "root"', 'user = "root"\nport = 2')
    inventory.write_text(text, encoding="utf-8")
    done = iolab("plan", study, "--hosts", inventory, home=tmp_path)
    assert done.returncode == 3
    for name in fleet.specs:
        assert f"Host '{name}' refuses connections at " in done.stderr
