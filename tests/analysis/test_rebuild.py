"""The rate of a rebuild, by what the target's devices wrote beyond what loads did."""

from __future__ import annotations

import numpy as np
import pytest
from msgspec.structs import replace

from iolab.analysis.rebuild import rebuild_rate
from iolab.analysis.window import Window
from iolab.core.run import RunRecord
from iolab.core.samples import CounterTable
from iolab.core.workload import Direction
from tests.analysis.bottleneck.planted import disk
from tests.analysis.records import (
    BLOCK,
    DEVICE,
    GO_NS,
    JOB,
    SECOND,
    WRITES,
    Burst,
    healthy,
    view_of,
    with_neighbour,
)

COPIED = 50_000_000
"""Bytes a second that a rebuild writes in the last fifteen of thirty seconds."""

NOISE = Burst(start_s=15.0, spans=15, ios=10_000, direction=Direction.WRITE)


def written(record: RunRecord, before: int, rebuild: int) -> RunRecord:
    """The record whose device wrote so many bytes a second before and during a rebuild."""
    growth = np.array([0, *[before] * 15, *[rebuild] * 15], dtype=np.int64)
    metrics = [metric for _, _, metric in disk(0.0)]
    seq = np.tile(np.arange(31, dtype=np.int64), len(metrics))
    metric = np.repeat(np.array(metrics, dtype=np.object_), 31)
    value = np.where(metric == "write_bytes", np.tile(np.cumsum(growth), len(metrics)), 0)
    scope, name = (np.full(seq.size, word, dtype=np.object_) for word in ("disk", DEVICE))
    at = GO_NS + seq * SECOND
    return replace(record, counters=CounterTable(seq * 0, seq, at, scope, name, metric, value))


def rate(record: RunRecord) -> float | None:
    before = Window(GO_NS, GO_NS + 15 * SECOND)
    found = rebuild_rate(view_of(record), before, Window(before.end_ns, GO_NS + 30 * SECOND), "")
    return None if found is None else found.value


def test_what_a_neighbour_writes_is_no_rebuild() -> None:
    own, noise = 40_000 * BLOCK, 10_000 * BLOCK
    mirror = written(healthy(WRITES), 2 * own, 2 * (own + noise) + COPIED)
    assert rate(with_neighbour(mirror, NOISE, job=WRITES)) == pytest.approx(COPIED, rel=1e-6)
    assert rate(written(healthy(WRITES), 2 * own, 2 * own + COPIED)) == pytest.approx(COPIED)
    # Beside a load that writes nothing nobody knows how often devices write a neighbour's bytes.
    reads = written(healthy(JOB), 0, 2 * noise + COPIED)
    assert rate(with_neighbour(reads, NOISE, job=WRITES)) is None
    assert rate(written(healthy(JOB), 0, COPIED)) == pytest.approx(COPIED)
