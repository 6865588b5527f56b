"""Small sessions to test with, and what it means that two records are the same."""

from __future__ import annotations

import dataclasses
from dataclasses import replace
from pathlib import Path
from typing import Final

import numpy as np
from bench.synthetic import Shape, make_facts, make_plan, make_record, make_result, make_study

from iolab.core.run import RunRecord, RunStatus
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
    writer.record_start(make_facts(SHAPE), "0.1.0")
    return writer


def commit(writer: SessionWriter, record: RunRecord) -> None:
    """Commit a record with the result that belongs to it."""
    writer.commit_run(record, make_result(record), analysis_version=7)


def assert_same(found: RunRecord, expected: RunRecord) -> None:
    """Every field is equal, every column equal bit for bit and of the same kind."""
    for field in dataclasses.fields(RunRecord):
        mine, theirs = getattr(found, field.name), getattr(expected, field.name)
        if field.name not in {"intervals", "bins", "counters"}:
            assert mine == theirs, field.name
            continue
        for column in dataclasses.fields(theirs):
            one, other = getattr(mine, column.name), getattr(theirs, column.name)
            assert type(one) is type(other) is np.ndarray, column.name
            assert one.dtype == other.dtype, column.name
            if one.dtype.kind == "O":
                assert one.tolist() == other.tolist(), column.name
            else:
                np.testing.assert_array_equal(one, other, err_msg=column.name)


def files_below(directory: Path) -> set[str]:
    """Every file and directory below, by its path relative to it."""
    return {str(path.relative_to(directory)) for path in directory.rglob("*")}
