"""The fake host says only what the wire's schema allows: a test on it means something."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from jsonschema import Draft202012Validator

from tests.session.stage import Stage

SCHEMA = Path(__file__).parents[2] / "schema" / "wire.json"


class Overheard:
    """Every header that fake agents said."""

    def __init__(self) -> None:
        self.kinds: set[str] = set()
        self.faults: list[str] = []
        self._validator = Draft202012Validator(json.loads(SCHEMA.read_text(encoding="utf-8")))

    def hear(self, header: dict[str, Any]) -> None:
        self.kinds.add(header["is"])
        for fault in self._validator.iter_errors(header):
            self.faults.append(f"{header['is']}: {fault.message[:200]}")


def test_all_that_a_fake_says_fits_the_schema() -> None:
    stage = Stage().play()
    overheard = Overheard()
    for header in stage.hosts["local"].agent.said:
        overheard.hear(json.loads(json.dumps(header)))
    assert overheard.faults == []
    assert overheard.kinds >= {
        "hello",
        "clock",
        "facts",
        "sample",
        "started",
        "output",
        "exited",
        "probed",
        "scratch",
        "extents",
        "evicted",
        "error",
        "done",
    }
