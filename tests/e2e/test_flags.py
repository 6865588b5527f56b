"""The same as of tests/cli/test_flags.py with more values, and each two options of a command."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.flags import MORE_VALUES, Parameter, Tries, pairs, parameters, place_below

pytestmark = [pytest.mark.e2e, pytest.mark.long]
PARAMETERS = [one for one in parameters() if not one.is_flag]
COMMANDS = list(dict.fromkeys(one.command for one in parameters()))


@pytest.mark.parametrize("parameter", PARAMETERS, ids=str)
def test_a_value_that_nobody_means_is_no_bug(parameter: Parameter, tmp_path: Path) -> None:
    (tmp_path / "cwd").mkdir()
    with place_below(tmp_path) as place:
        tries = Tries(place, tmp_path / "cwd")
        for name, value in MORE_VALUES.items():
            tries.with_value(parameter, name, value)
    assert not tries.wrong


@pytest.mark.parametrize("command", COMMANDS)
def test_two_options_that_may_contradict_each_other_are_no_bug(
    command: str, tmp_path: Path
) -> None:
    (tmp_path / "cwd").mkdir()
    with place_below(tmp_path) as place:
        tries = Tries(place, tmp_path / "cwd")
        for two in pairs(command):
            tries.together(*two)
    assert not tries.wrong
