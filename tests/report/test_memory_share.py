from __future__ import annotations

import pytest
from msgspec.structs import replace

from iolab.core.metric import CheckResult, Verdict, VerdictLevel
from iolab.report.memory_share import is_mostly_read_from_memory
from tests.report import shared

MIB = 1 << 20


@pytest.mark.parametrize(
    ("code", "level", "evidence", "expected"),
    [
        ("reads-from-memory", VerdictLevel.INDICATIVE, {"from_device": 0.1}, True),
        ("reads-from-memory", VerdictLevel.INDICATIVE, {"from_device": 0.8}, False),
        ("restored-from-memory", VerdictLevel.INVALID, {"share": 0.2}, True),
        ("restored-from-memory", VerdictLevel.VALID, {"share": 1.3}, False),
        ("target-in-memory", VerdictLevel.INDICATIVE, {"fs_type": "xfs"}, True),
        ("target-in-memory", VerdictLevel.VALID, {"fs_type": "xfs"}, False),
        (
            "bytes-moved",
            VerdictLevel.INDICATIVE,
            {"claimed_read_bytes": 100 * MIB, "device_read_bytes": 100 * MIB},
            False,
        ),
        (
            "bytes-moved",
            VerdictLevel.INVALID,
            {"claimed_read_bytes": 100 * MIB, "device_read_bytes": 10 * MIB},
            True,
        ),
        (
            "bytes-moved",
            VerdictLevel.INVALID,
            {
                "claimed_read_bytes": 100 * MIB,
                "device_read_bytes": 100 * MIB,
                "below_read_bytes": 5 * MIB,
            },
            True,
        ),
        (
            "bytes-moved",
            VerdictLevel.VALID,
            {"claimed_read_bytes": 0, "device_read_bytes": 0, "below_read_bytes": None},
            False,
        ),
    ],
)
def test_evidence_of_any_load_tells_figures_of_memory(
    code: str, level: VerdictLevel, evidence: dict[str, int | float | str | None], *, expected: bool
) -> None:
    check = CheckResult(code, level, "It is said.", evidence)
    run = replace(shared.brief("sweep").results[0], verdict=Verdict(level, (check,)))
    assert is_mostly_read_from_memory(run) is expected
