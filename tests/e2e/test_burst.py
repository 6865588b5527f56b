"""A real device that gives a burst and then its provisioned rate, as a cloud volume does.

See `fresh` for the device: the block layer's limit is lowered once, and nobody is told.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.fresh import Fading, fresh_device
from tests.e2e.sessions import write_study

pytestmark = [pytest.mark.e2e, pytest.mark.long, pytest.mark.alone]

PROVISIONED, BURST, CREDITS_S = 500, 1500, 6.0
STUDY = """
format = 1
id = "burst"

[[workload]]
id = "rand-read"
rw = "randread"
bs = "4k"
iodepth = 8
filesize = "64m"

[method]
warmup = "0s"
runtime = "20s"
settle = "0s"
idle_watch = 0
generator_limit = false
drop_caches = false
"""


@dataclass(frozen=True)
class Credits(Fading):
    """More until the credits are used up, which is after `tau_s`; then at once the steady rate."""

    def at(self, since_s: float) -> int:
        return round(self.steady * (1 + self.above)) if since_s < self.tau_s else self.steady


def found(limits: Fading, folder: Path) -> dict[str, Any]:
    """What the check says of a run on that device."""
    folder.mkdir()
    session = folder / "session"
    with fresh_device(limits) as device:
        study = write_study(folder, STUDY)
        device.iolab("run", study, "--path", device.target.path, "--out", session, "--quiet")
    (manifest,) = session.glob("points/*/run-1/manifest.json")
    checks = json.loads(manifest.read_bytes())["analysis"]["result"]["verdict"]["checks"]
    (check,) = [one for one in checks if one["code"] == "burst-credits"]
    said: dict[str, Any] = check
    return said


def test_the_plateau_is_found_and_an_even_rate_is_none(tmp_path: Path) -> None:
    above = BURST / PROVISIONED - 1
    fell = found(Credits(PROVISIONED, above, CREDITS_S), tmp_path / "burst")
    assert fell["level"] == "indicative", fell
    assert fell["evidence"]["plateau"] == pytest.approx(PROVISIONED, rel=0.1)
    assert fell["evidence"]["before"] == pytest.approx(BURST, rel=0.1)
    assert abs(fell["evidence"]["fell_after_s"] - CREDITS_S) <= 3
    even = found(Fading(PROVISIONED, above=0.0, tau_s=1.0), tmp_path / "even")
    assert even["level"] == "valid", even
