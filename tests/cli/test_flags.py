"""Values that nobody means: each is refused or taken, with a promised exit code and a sentence."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cli.flags import VALUES, Parameter, Place, Tries, parameters, place_below

PARAMETERS = parameters()
COMMANDS = list(dict.fromkeys(one.command for one in PARAMETERS))


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    with place_below(tmp_path_factory.mktemp("place")) as made:
        yield made


@pytest.mark.parametrize("parameter", PARAMETERS, ids=str)
@pytest.mark.timeout(60)
def test_a_value_that_nobody_means_is_no_bug(
    parameter: Parameter, place: Place, tmp_path: Path
) -> None:
    tries = Tries(place, tmp_path)
    if not parameter.is_flag:
        for name, value in VALUES.items():
            tries.with_value(parameter, name, value)
    if not parameter.is_argument:
        tries.twice(parameter)
    assert not tries.wrong


@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.timeout(60)
def test_all_options_at_once_are_no_bug(command: str, place: Place, tmp_path: Path) -> None:
    tries = Tries(place, tmp_path)
    tries.together(*(one for one in PARAMETERS if one.command == command and not one.is_argument))
    assert not tries.wrong
