"""Whatever a hypervisor says, it is counted or refused; nothing else comes of it."""

from __future__ import annotations

import asyncio
import json
from contextlib import suppress
from typing import Any, Final

from hypothesis import given
from hypothesis import strategies as st

from iolab.core.limits import REPLY_BYTES_MAX
from iolab.errors import HostError
from iolab.guests.blocks import (
    BOUNDARIES_NS,
    GuestDiskCounts,
    block_counts_between,
    parse_block_stats,
)
from iolab.guests.qemu import QmpClient

PATIENCE_S: Final = 20.0

SCALAR = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8)
ANY_JSON = st.recursive(
    SCALAR,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner),
    max_leaves=12,
)
ODD_COUNT = st.integers(min_value=-5, max_value=2**65) | SCALAR
HISTOGRAM = ANY_JSON | st.fixed_dictionaries(
    {
        "boundaries": st.just(list(BOUNDARIES_NS)) | st.lists(ODD_COUNT, max_size=3),
        "bins": st.lists(ODD_COUNT, max_size=3) | st.just([1] * (len(BOUNDARIES_NS) + 1)),
    }
)
STATS = st.fixed_dictionaries(
    {
        f"{way}_{what}": ODD_COUNT
        for way in ("rd", "wr")
        for what in ("operations", "bytes", "total_time_ns")
    },
    optional={"rd_latency_histogram": HISTOGRAM, "wr_latency_histogram": HISTOGRAM},
)
DISK = st.fixed_dictionaries(
    {"qdev": st.just("data-disk") | SCALAR, "stats": STATS | ANY_JSON}, optional={"x": ANY_JSON}
)


@given(ANY_JSON | st.lists(DISK, max_size=3))
def test_counters_are_read_or_refused(answer: Any) -> None:
    with suppress(HostError):
        counts = parse_block_stats("g0", answer)
        assert all(
            0 <= number < 2**64
            for one in (counts.read, counts.write)
            for number in (one.ios, one.bytes, one.total_ns, *one.bins)
        )


COUNT = st.integers(min_value=0, max_value=2**40)
SIZE: Final = len(BOUNDARIES_NS) + 1


def counts_of(numbers: list[int], bins: dict[int, int]) -> GuestDiskCounts:
    names = ("operations", "bytes", "total_time_ns")
    stats: dict[str, object] = {}
    for way in ("rd", "wr"):
        stats |= {f"{way}_{name}": n for name, n in zip(names, numbers, strict=True)}
        filled = [bins.get(place, 0) for place in range(SIZE)]
        stats[f"{way}_latency_histogram"] = {"boundaries": list(BOUNDARIES_NS), "bins": filled}
    return parse_block_stats("g0", [{"qdev": "data-disk", "stats": stats}])


@given(
    st.lists(COUNT, min_size=3, max_size=3),
    st.lists(COUNT, min_size=3, max_size=3),
    st.dictionaries(st.integers(min_value=0, max_value=SIZE - 1), COUNT, max_size=9),
    st.dictionaries(st.integers(min_value=0, max_value=SIZE - 1), COUNT, max_size=9),
)
def test_what_was_added_is_what_lies_between(
    start: list[int], added: list[int], first: dict[int, int], more: dict[int, int]
) -> None:
    end = [one + other for one, other in zip(start, added, strict=True)]
    late = {place: first.get(place, 0) + more.get(place, 0) for place in {*first, *more}}
    for between in block_counts_between("g0", counts_of(start, first), counts_of(end, late)):
        assert [between.ios, between.bytes, between.total_time_ns] == added
        assert sum(count for *_, count in between.bins) == sum(more.values())
        assert len(between.bins) == sum(count > 0 for count in more.values())


class Sayer:
    """A QEMU that says what it is told to, whatever is asked."""

    def write(self, data: bytes, /) -> None:
        """It does not listen."""

    async def drain(self) -> None:
        """Nothing waits."""

    def close(self) -> None:
        """Nobody minds."""


LINE = st.binary(max_size=40) | ANY_JSON.map(lambda value: json.dumps(value).encode())
ANSWER = st.fixed_dictionaries({"id": st.integers(min_value=-1, max_value=3) | SCALAR}).flatmap(
    lambda said: st.fixed_dictionaries(
        {"id": st.just(said["id"])}, optional={"return": ANY_JSON, "error": ANY_JSON}
    ).map(lambda answer: json.dumps(answer).encode())
)


@given(st.lists(LINE | ANSWER, max_size=5))
def test_a_monitor_answers_or_is_lost(lines: list[bytes]) -> None:
    async def conversation() -> None:
        reader = asyncio.StreamReader(limit=REPLY_BYTES_MAX)
        reader.feed_data(b'{"QMP": {}}\n' + b"".join(line + b"\n" for line in lines))
        reader.feed_eof()
        with suppress(HostError):
            monitor = await QmpClient.open("g0", reader, Sayer())
            with suppress(HostError):
                await monitor.run_command("query-blockstats", deadline_s=PATIENCE_S)
            await monitor.close()
        assert asyncio.all_tasks() == {asyncio.current_task()}

    asyncio.run(conversation())
