"""Commands do work in proportion to points and runs: four times as many cost about four times."""

from __future__ import annotations

import sys
from collections import Counter
from pathlib import Path
from types import FrameType

import pytest
from bench.store import write_session
from bench.synthetic import Shape

from tests.cli.in_process import call

FEW, MANY = 20, 80

GROWTH_MOST = 8.0
"""A function that is called for each pair of points is called sixteen times as often."""

CALLS_LEAST = 2000
"""Functions that are called less often cost nothing."""


def calls_of(*words: str | Path) -> Counter[str]:
    """How often each function was called while a command ran."""
    calls: Counter[str] = Counter()

    def count(frame: FrameType, event: str, _: object) -> None:
        if event == "call":
            calls[f"{frame.f_code.co_filename}:{frame.f_code.co_qualname}"] += 1

    sys.setprofile(count)
    try:
        assert call(*words).returncode == 0
    finally:
        sys.setprofile(None)
    return calls


@pytest.fixture(scope="module")
def sessions(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """A session of few runs and one of many."""
    folder = tmp_path_factory.mktemp("growth")
    for points in (FEW, MANY):
        write_session(
            folder / str(points), Shape(points=points, seconds=2, cores=1, disks=1, nics=1)
        )
    return folder / str(FEW), folder / str(MANY)


@pytest.mark.parametrize("words", ["show", "show --summary", "plan", "plan --summary"])
def test_no_function_is_called_for_each_pair_of_points(
    sessions: tuple[Path, Path], words: str
) -> None:
    command, *options = words.split()
    call(command, sessions[0], *options)  # what is loaded once is loaded
    few, many = (calls_of(command, session, *options) for session in sessions)
    grown = {
        name: (few[name], number)
        for name, number in many.items()
        if number > CALLS_LEAST and number > GROWTH_MOST * max(few[name], 1)
    }
    assert not grown
