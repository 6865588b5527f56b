"""What others did just before."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from iolab.analysis.checks.idle import check_device_busy
from iolab.core.metric import VerdictLevel
from iolab.core.run import PreRunActivity
from tests.analysis.checks_on import INDICATIVE, VALID, level
from tests.analysis.records import Burst, bursts_record, healthy


@pytest.mark.parametrize(
    ("proof", "expected"),
    [
        (PreRunActivity(1.0, 0.0, 0.0), VALID),
        (PreRunActivity(1.0, float(1 << 20), 50.0), VALID),
        (PreRunActivity(1.0, 0.02 * 40_000 * 4096, 0.0), VALID),
        (PreRunActivity(1.0, 0.03 * 40_000 * 4096, 0.0), INDICATIVE),
        (PreRunActivity(1.0, 0.0, 0.02 * 40_000), VALID),
        (PreRunActivity(1.0, 0.0, 0.03 * 40_000), INDICATIVE),
        (None, INDICATIVE),
    ],
)
def test_others_before_the_start(proof: PreRunActivity | None, expected: VerdictLevel) -> None:
    assert level(check_device_busy, healthy(pre_run_activity=proof)) is expected


def test_little_load_is_disturbed_by_little() -> None:
    record = bursts_record([Burst(ios=100)])
    busy = replace(record.hosts[0], pre_run_activity=PreRunActivity(1.0, 2e6, 60.0))
    assert level(check_device_busy, replace(record, hosts=(busy,))) is INDICATIVE
