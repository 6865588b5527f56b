"""Rounds of preconditioning: whatever went wrong in one ends them."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from iolab.hosts.answers import ExitedAnswer
from iolab.hosts.engine import ParsedEngineOutput
from iolab.hosts.remote_process import ProcessEnding
from iolab.loads.fileio.engine_facts import NATIVE_ENGINE
from iolab.targets.precondition import preconditioning_round_error
from tests.analysis.records import GENERATOR, engine_totals

EXITED = ExitedAnswer(code=0, signal=None, user_s=1, system_s=1, max_rss_bytes=0, real_ns=0)
TOTALS = replace(engine_totals(None, None), generator=GENERATOR)
FAILED = replace(TOTALS, error=5, generator=replace(GENERATOR, errors=(("read EIO", 3),)))


def fault(
    *, totals: Any = TOTALS, faults: tuple[str, ...] = (), stderr: str = "", **how: Any
) -> str | None:
    ending = ProcessEnding(replace(EXITED, **how), stderr, was_halted=False)
    reading = ParsedEngineOutput("native-0.1.0", 0, 1, (), totals, faults)
    found = preconditioning_round_error(NATIVE_ENGINE, "c1", 2, ending, reading)
    return found.message if found else None


def test_a_round_that_went_well() -> None:
    assert fault() is None


@pytest.mark.parametrize(
    ("how", "message"),
    [
        ({"totals": FAILED}, "native failed in round 2 on host 'c1': 3 x read EIO."),
        ({"code": 2, "totals": None, "faults": ("depth is 0",)}, "'c1': depth is 0."),
        ({"code": None, "signal": 9, "stderr": "Killed\n"}, "'c1': Killed."),
    ],
)
def test_whatever_went_wrong_ends_the_rounds(how: dict[str, Any], message: str) -> None:
    assert (fault(**how) or "").endswith(message)
