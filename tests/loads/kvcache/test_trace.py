"""Traces are read as they are published, refused with their line, and counted as a store would."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from iolab.loads.kvcache.generator import generate_trace
from iolab.loads.kvcache.trace import (
    RequestTrace,
    RequestTraceError,
    TraceRequest,
    count_lru_hits,
    parse_trace,
    read_trace,
    repeat_trace,
    session_number_of_each_request,
    trace_with_block_tokens,
)

REAL_SECONDS = 3537.0


def mooncake(*requests: tuple[int, list[int]]) -> list[str]:
    return [
        json.dumps(
            {
                "timestamp": ms,
                "input_length": 512 * len(ids),
                "output_length": 10,
                "hash_ids": ids,
            }
        )
        for ms, ids in requests
    ]


def parse(lines: list[str]) -> RequestTrace:
    return parse_trace("t.jsonl", "", lines)


def test_blocks_are_known_by_all_that_precedes_them() -> None:
    """The same id behind another prefix is another block: its keys and values differ."""
    trace = parse(mooncake((5000, [0, 1, 2]), (5000, [0, 1, 3]), (8000, [9, 1])))
    assert [request.blocks for request in trace.requests] == [(0, 1, 2), (0, 1, 3), (4, 5)]
    assert [request.due_ns for request in trace.requests] == [0, 0, 3_000_000_000]
    assert trace.block_tokens == 512


def test_a_bailian_trace_has_seconds_and_blocks_of_16_tokens() -> None:
    fields = {"chat_id": 1, "parent_chat_id": -1, "turn": 1, "type": "text", "input_length": 30}
    lines = [
        json.dumps(fields | {"timestamp": at, "output_length": 5, "hash_ids": [7, 8]})
        for at in (1.5, 2.0)
    ]
    trace = parse(lines)
    assert (trace.block_tokens, trace.requests[1].due_ns) == (16, 500_000_000)


@pytest.mark.parametrize(
    ("lines", "facts"),
    [
        (mooncake((0, [1]), (9, [1]), (8, [1])), ("line 3", "earlier")),
        (mooncake((0, [1]), (9, [])), ("line 2", "hash_ids")),
        ([*mooncake((0, [1])), '{"timestamp": 5}'], ("line 2", "input_length")),
        ([*mooncake((0, [1])), '{"timestamp": "x"}'], ("line 2", "x")),
        ([*mooncake((0, [1])), "oh"], ("line 2", "oh")),
        (["TIMESTAMP,ContextTokens,GeneratedTokens", "1,2,3"], ("line 1", "CSV", "share")),
        (mooncake((0, [1])), ("t.jsonl", "two")),
        (mooncake((7, [1]), (7, [2])), ("same time",)),
    ],
)
def test_what_cannot_be_replayed_is_refused_with_its_line(
    lines: list[str], facts: tuple[str, ...]
) -> None:
    with pytest.raises(RequestTraceError) as refused:
        parse(lines)
    assert all(fact in str(refused.value) for fact in facts)


def test_a_file_that_is_not_there_is_told(tmp_path: Path) -> None:
    with pytest.raises(RequestTraceError, match="No such file"):
        read_trace(str(tmp_path / "none.jsonl"))


@pytest.mark.parametrize(("tokens", "counts"), [(1024, [2, 1]), (256, [6, 4])])
def test_blocks_of_another_size_share_the_same_prefixes(tokens: int, counts: list[int]) -> None:
    trace = trace_with_block_tokens(parse(mooncake((0, [0, 1, 2]), (9, [0, 1]))), tokens)
    first, second = (request.blocks for request in trace.requests)
    assert [len(first), len(second)] == counts
    assert second == first[: len(second)]
    with pytest.raises(RequestTraceError, match="1000"):
        trace_with_block_tokens(trace, 1000)


def brute_force_hits(requests: tuple[TraceRequest, ...], capacity: int) -> int:
    """The leading blocks that a list in the order of use holds."""
    held: list[int] = []
    hits = 0
    for request in requests:
        for block in request.blocks:
            if block not in held:
                break
            hits += 1
        for block in reversed(request.blocks):
            if block in held:
                held.remove(block)
            held.insert(0, block)
        del held[capacity:]
    return hits


def test_hits_are_those_of_a_list_in_the_order_of_use() -> None:
    requests = generate_trace(1, 120.0).requests
    for capacity in (50, 500, 2000):
        assert count_lru_hits(requests, capacity).hits == brute_force_hits(requests, capacity)


def test_a_trace_that_is_told_again_has_new_blocks_but_one_system_prompt() -> None:
    requests = parse(mooncake((0, [0, 1]), (9, [0, 2]), (10, [0, 3]))).requests
    again = repeat_trace(requests, 5, 12_000_000)
    assert [request.blocks for request in again[3:]] == [(0, 5), (0, 6)]
    assert again[3].due_ns == 12_000_000
    assert len(set(session_number_of_each_request(requests))) == 3


@pytest.mark.parametrize("seed", [1, 2])
def test_the_generator_makes_what_the_published_trace_has(seed: int) -> None:
    """Figures of Mooncake's conversation trace, within what seeds differ by."""
    requests = generate_trace(seed, REAL_SECONDS).requests
    tokens = [request.input_tokens for request in requests]
    assert len(requests) == pytest.approx(12_031, rel=0.05)
    assert np.mean(tokens) == pytest.approx(12_035, rel=0.05)
    for percent, published in ((50, 6909), (75, 15_368), (90, 27_367), (99, 85_401)):
        assert np.percentile(tokens, percent) == pytest.approx(published, rel=0.09)
    assert np.mean([request.output_tokens for request in requests]) == pytest.approx(343, rel=0.04)
    for capacity, published_share in (
        (1000, 0.0445),
        (3000, 0.065),
        (10_000, 0.211),
        (20_000, 0.288),
        (30_000, 0.326),
        (50_000, 0.355),
        (10**9, 0.366),
    ):
        assert count_lru_hits(requests, capacity).hit_share == pytest.approx(
            published_share, abs=0.035
        )
    due_s = [request.due_ns / 1e9 for request in requests]
    for seconds, least, most in ((10, 1.2, 2.5), (60, 1.8, 4.5)):
        counts, _ = np.histogram(due_s, bins=np.arange(0, REAL_SECONDS, seconds))
        assert least < counts.var(ddof=1) / counts.mean() < most


def test_a_longer_trace_begins_with_a_shorter_one() -> None:
    short, longer = generate_trace(4, 200.0).requests, generate_trace(4, 300.0).requests
    assert longer[: len(short)] == short
    assert generate_trace(5, 200.0).requests != short
