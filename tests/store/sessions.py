"""Small sessions to test with, and what it means that two records are the same."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import numpy as np
from bench.synthetic import Shape, make_facts, make_plan, make_record, make_result, make_study
from msgspec.structs import replace

from iolab.core.run import RunRecord, RunStatus
from iolab.record import field_names
from iolab.store.writer import SessionWriter

SHAPE: Final = Shape(points=4, seconds=2, hosts=2, cores=2, disks=1, nics=1)
PLAN: Final = make_plan(SHAPE)
STUDY: Final = make_study(SHAPE)
COMMAND: Final = ("iolab", "run", "synthetic", "--out", "S")
NOON_NS: Final = 1_750_000_000_000_000_001


def record_of(order: int, status: RunStatus = RunStatus.DONE) -> RunRecord:
    """The record of the plan's run at `order`, with another status if asked."""
    record = make_record(PLAN.runs[order], SHAPE)
    return replace(record, status=status, failure=None if status is RunStatus.DONE else "Cut.")


def create(directory: Path) -> SessionWriter:
    """A new session whose hosts are known."""
    writer = SessionWriter.create(
        directory, STUDY, PLAN, "session-1", COMMAND, clock=lambda: NOON_NS
    )
    writer.record_host_facts_at_start(make_facts(SHAPE), "0.1.0")
    return writer


def commit(writer: SessionWriter, record: RunRecord) -> None:
    """Commit a record with the result that belongs to it."""
    writer.commit_run(record, make_result(record), analysis_version=7)


def assert_same(found: RunRecord, expected: RunRecord) -> None:
    """Every field is equal, every column equal bit for bit and of the same kind."""
    for field in field_names(RunRecord):
        mine, theirs = getattr(found, field), getattr(expected, field)
        if field not in {"intervals", "bins", "counters"}:
            assert mine == theirs, field
            continue
        for column in field_names(theirs):
            one, other = getattr(mine, column), getattr(theirs, column)
            assert type(one) is type(other) is np.ndarray, column
            assert one.dtype == other.dtype, column
            if one.dtype.kind == "O":
                assert one.tolist() == other.tolist(), column
            else:
                np.testing.assert_array_equal(one, other, err_msg=column)


def files_below(directory: Path) -> set[str]:
    """Every file and directory below, by its path relative to it."""
    return {str(path.relative_to(directory)) for path in directory.rglob("*")}
