"""Blocks of counters are the same whatever the order of the rows."""

from __future__ import annotations

import numpy as np
from msgspec.structs import replace

from iolab.core.samples import CounterTable
from iolab.hosts.counters import CounterBlock, counter_blocks
from iolab.hosts.rates import derive_counter_series
from tests.hosts.samples import sample, table


def at(second: int) -> dict[str, object]:
    core = {"user_ns": second * 10, "idle_ns": second * 90}
    return sample(
        second,
        float(second),
        cpu={(0, 0): core, (1, 1): {**core, "system_ns": second * second}},
        disks={"sdb": {"read_ios": second}, "sda": {"write_ios": 2 * second}},
        memory={"free_bytes": 1000 - second},
    )


def shuffled(counters: CounterTable, seed: int) -> CounterTable:
    order = np.random.default_rng(seed).permutation(len(counters))
    return CounterTable(
        host=counters.host[order],
        seq=counters.seq[order],
        real_ns=counters.real_ns[order],
        scope=np.asarray(counters.scope)[order],
        name=np.asarray(counters.name)[order],
        metric=np.asarray(counters.metric)[order],
        value=counters.value[order],
    )


def told(block: CounterBlock) -> object:
    cells = {
        metric: (cells.values.tolist(), cells.is_present.tolist())
        for metric, cells in block.metrics.items()
    }
    head = (block.host_index, block.scope, block.names, block.real_ns.tolist(), block.seq.tolist())
    return head, cells


def test_rows_in_any_order_give_the_same_blocks() -> None:
    counters = table(*map(at, range(5)))
    expected = [told(block) for block in counter_blocks(counters)]
    assert [block.scope for block in counter_blocks(counters)] == ["cpu", "disk", "memory"]
    for seed in range(3):
        assert [told(block) for block in counter_blocks(shuffled(counters, seed))] == expected


def test_a_device_that_comes_late_is_unseen_before() -> None:
    counters = table(sample(0, 0.0, disks={"sda": {}}), at(1), at(2))
    disk = next(block for block in counter_blocks(counters, {"disk"}))
    assert disk.names == ("sda", "sdb")
    assert disk.metrics["read_ios"].is_present.tolist() == [[True] * 3, [False, True, True]]
    assert disk.metrics["read_ios"].values.tolist() == [[0, 0, 0], [0, 1, 2]]


def test_only_the_wanted_scopes_are_looked_at() -> None:
    counters = table(*map(at, range(3)))
    assert [block.scope for block in counter_blocks(counters, {"memory", "cpu"})] == [
        "cpu",
        "memory",
    ]
    other = replace(counters, seq=counters.seq[::-1].copy())
    assert [block.scope for block in counter_blocks(other, {"memory"})] == ["memory"]


def test_all_cores_alone_are_what_they_are_among_the_others() -> None:
    counters = table(*map(at, range(5)))
    every = [
        one
        for one in derive_counter_series(counters, ("h",))
        if (one.scope, one.name) == ("cpu", "all")
    ]
    alone = derive_counter_series(counters, ("h",), {"cpu": "all"})
    assert [one.metric for one in alone] == [one.metric for one in every]
    assert len(alone) == 5
    for one, other in zip(alone, every, strict=True):
        assert one.value.tolist() == other.value.tolist()
        assert one.real_ns.tolist() == other.real_ns.tolist()
