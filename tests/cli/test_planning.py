"""A plan tells what the load works on: files in a directory, or a region of a device."""

from __future__ import annotations

import io

import pytest
from rich.console import Console

from iolab.cli.planning import plan_screen
from iolab.plan.load import LoadOptions, parse_study
from iolab.plan.schedule import make_plan

HEAD = 'format = 1\nid = "d"\n'
STUDY = """
[[workload]]
id = "w"
rw = "randwrite"
bs = "4k"
numjobs = 2
filesize = "1m"
"""


def told(options: LoadOptions, more: str = "") -> str:
    study = parse_study(HEAD + more + STUDY, "d.toml", options)
    written = io.StringIO()
    screen = Console(file=written, width=160, color_system=None)
    screen.print(*plan_screen(study, make_plan(study), None))
    return written.getvalue()


TWICE = "[precondition]\nfill = 2\n"


@pytest.mark.parametrize(("fill", "times"), [("", "once"), (TWICE, "2 times")])
def test_a_device_has_a_region_and_needs_no_room(fill: str, times: str) -> None:
    text = told(LoadOptions(device="/dev/x", serial="S"), fill)
    assert f"the first 2 MiB of each device, written over {times} by each fill" in text
    assert "free space" not in text
    assert "laid out" not in text
    assert "lay out" not in text


def test_a_directory_has_files_and_needs_room() -> None:
    text = told(LoadOptions(path="/mnt"))
    assert "2 MiB laid out on each host (2 x 1 MiB)" in text
    assert "needed on each host" in text
    assert "region" not in text
