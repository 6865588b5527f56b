"""The scripts of docs/how-to/ci.md, as the page has them, on a device whose speed is known."""

from __future__ import annotations

import os
import re
import sys
import xml.etree.ElementTree as ET
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.e2e.fresh import JOIN, Fading, FreshDevice, fresh_device
from tests.e2e.sessions import IOLAB, SESSION_LIMIT_S
from tests.processes import run_program

pytestmark = [pytest.mark.e2e, pytest.mark.long, pytest.mark.alone]

PAGE = (Path(__file__).parents[2] / "docs" / "how-to" / "ci.md").read_text(encoding="utf-8")
SHORTER = {'filesize = "4g"': 'filesize = "64m"', "5s": "0s", "30s": "4s"}
FULL = Fading(1000, above=0.0, tau_s=1.0)
A_TENTH_LESS = Fading(900, above=0.0, tau_s=1.0)


def example(language: str, number: int = 0) -> str:
    found: list[str] = re.findall(rf"^```{language}\n(.*?)^```$", PAGE, re.M | re.S)
    return found[number]


def github() -> dict[str, str]:
    """The script of each step by its name."""
    job = yaml.safe_load(example("yaml"))["jobs"]["compare"]
    return {step["name"]: step["run"] for step in job["steps"] if "run" in step}


def gitlab() -> str:
    return "\n".join(yaml.safe_load(example("yaml", 1))["storage"]["script"])


def run(script: str, folder: Path, device: FreshDevice) -> int:
    """A script as both services run one: bash that ends at the first fault, in the checkout."""
    join = [sys.executable, "-c", JOIN, str(device.group / "cgroup.procs")]
    path: Mapping[str, str] = {"PATH": f"{IOLAB.parent}:{os.environ['PATH']}"}
    names = {
        "TARGET": str(device.target.path),
        "BASELINE": str(folder.parent / "baseline"),
        "GITHUB_STEP_SUMMARY": str(folder / "summary.md"),
    }
    done = run_program(
        [*join, "/bin/bash", "-e", "-c", script],
        cwd=folder,
        env={**os.environ, **path, **names},
        timeout=SESSION_LIMIT_S,
    )
    assert done.returncode in {0, 1}, done.stderr
    return done.returncode


def checkout(folder: Path) -> Path:
    """A new folder with the page's study, made shorter."""
    text = example("toml")
    for there, short in SHORTER.items():
        text = text.replace(there, short)
    folder.mkdir()
    (folder / "ci.toml").write_text(text, encoding="utf-8")
    return folder


def failures(folder: Path) -> list[Any]:
    return list(ET.parse(folder / "compare.xml").iter("failure"))  # noqa: S314 - our own


def test_the_scripts_pass_what_is_the_same_and_fail_a_tenth_less(tmp_path: Path) -> None:
    before, same, slower = (checkout(tmp_path / name) for name in ("before", "same", "slower"))
    once = re.findall(r"^```\n(iolab run .*)\n```$", PAGE, re.M)[0]
    once = once.replace("/mnt/storage", '"$TARGET"').replace("/srv/iolab/baseline", '"$BASELINE"')
    with fresh_device(FULL) as device:
        assert run(once, before, device) == 0
        assert [run(script, same, device) for script in github().values()] == [0, 0]
    assert failures(same) == []
    assert "| rand-read-4k | IOPS |" in (same / "summary.md").read_text(encoding="utf-8")
    with fresh_device(A_TENTH_LESS) as device:
        assert run(gitlab(), slower, device) == 1
        assert any("IOPS" in one.attrib["message"] for one in failures(slower))
        assert run(github()["Compare"], slower, device) == 1
