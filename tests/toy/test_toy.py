"""The toy's own check finds a target that keeps nothing, and its reader what its program prints."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from iolab.analysis.kinds import AnalysisKinds, judge_run
from iolab.core.metric import VerdictLevel
from iolab.core.run import RunRecord
from iolab.core.tagged import type_tag_of
from iolab.core.workload import Direction
from tests.analysis.records import Burst, bursts_record, facts_of
from tests.toy.analysis import AppendAnalysis
from tests.toy.engine import AppendReader
from tests.toy.kind import APPEND_ENGINE, AppendJob

JOB = AppendJob(APPEND_ENGINE, 4096)
KINDS = AnalysisKinds({type_tag_of(AppendJob): AppendAnalysis})


def record(lat_ns: int) -> RunRecord:
    made = bursts_record([Burst(direction=Direction.WRITE, lat_ns=lat_ns)])
    return replace(made, run=replace(made.run, point=replace(made.run.point, job=JOB)))


@pytest.mark.parametrize(
    ("lat_ns", "level"), [(900, VerdictLevel.INVALID), (80_000, VerdictLevel.VALID)]
)
def test_appends_that_nothing_kept_are_found(lat_ns: int, level: VerdictLevel) -> None:
    result = judge_run(record(lat_ns), {"c1": facts_of("c1")}, KINDS)
    codes = {check.code: check.level for check in result.verdict.checks}
    assert codes["append-not-durable"] is level
    assert result.metrics["iops"].value == result.metrics["write_iops"].value == 40_000


def test_lines_are_read_in_pieces_of_any_size() -> None:
    text = b"[2000000000, 1000000000, [1000, 3000]]\n[2, 4000, 1000, 3000, 0.1, 0.2]\n"
    reader = AppendReader(JOB)
    for number in range(len(text)):
        reader.feed(text[number : number + 1])
    reading = reader.finish()
    assert [one.ios for one in reading.intervals] == [2]
    assert reading.totals is not None
    assert reading.totals.write is not None
    assert reading.totals.write.bytes == 2 * 4096
    assert reading.start_real_ns == 1_000_000_000
    assert not reading.faults


@pytest.mark.parametrize(
    "text", [b"[20000", b"oh\n", b"{}\n", b"[1, [2]]\n", b"[0, 0, 0, 0, 0, 0]\n"]
)
def test_what_makes_no_sense_is_a_fault(text: bytes) -> None:
    reader = AppendReader(JOB)
    reader.feed(text)
    assert reader.finish().faults
