"""KV-cache load of whole sessions with a real agent: hits, bytes and blocks held against truths."""

from __future__ import annotations

import json
from collections import OrderedDict
from collections.abc import Iterator
from pathlib import Path

import pytest

from iolab.core.run import RunStatus
from iolab.loads.kvcache.workload import kv_cache_details_of_host
from iolab.store.reader import SessionReader
from tests.e2e.sessions import iolab, write_study
from tests.e2e.targets import Target, device_bytes, xfs_on_loop

pytestmark = [pytest.mark.e2e, pytest.mark.long]

TOKENS, TOKEN_BYTES = 512, 256
BLOCK = TOKENS * TOKEN_BYTES
STORE_BLOCKS = 200
USERS, TURNS = 60, 12
WARM, REPLAYED = 60, 360
"""Requests before `start`, and those of six seconds."""
# What the file system itself reads and writes: metadata and log.
METADATA_BYTES = 8 << 20

STUDY = f"""
format = 1
id = "replay"

[[workload]]
id = "replay"
engine = "kv-cache"
trace = "TRACE"
kv_bytes_per_token = {TOKEN_BYTES}
capacity = {STORE_BLOCKS * BLOCK}
start = {WARM}
requests_per_s = 60
objects = "OBJECTS"

[method]
warmup = "1s"
runtime = "5s"
settle = "0s"
idle_watch = 0
generator_limit = false
"""


def conversations() -> list[list[int]]:
    """The blocks of each request: users in turn, each with one block more than the time before."""
    return [
        [user * 1000 + block for block in range(turn + 1)]
        for turn in range(TURNS)
        for user in range(USERS)
        if (user + turn) % 3
    ]


def write_trace(folder: Path) -> None:
    lines = [
        {
            "timestamp": 1000 * number,
            "input_length": TOKENS * len(blocks),
            "output_length": 1,
            "hash_ids": blocks,
        }
        for number, blocks in enumerate(conversations())
    ]
    text = "".join(f"{json.dumps(line)}\n" for line in lines)
    (folder / "trace.jsonl").write_text(text, encoding="utf-8")


def lru_hits(requests: list[list[int]], first: int) -> tuple[int, int]:
    """Blocks and hits of the requests from `first` on: an LRU list that a child can follow."""
    held: OrderedDict[int, None] = OrderedDict()
    blocks = hits = 0
    for number, request in enumerate(requests):
        found = 0
        for block in request:
            if block not in held:
                break
            found += 1
        for block in reversed(request):
            held[block] = None
            held.move_to_end(block)
            if len(held) > STORE_BLOCKS:
                held.popitem(last=False)
        if number >= first:
            blocks, hits = blocks + len(request), hits + found
    return blocks, hits


@pytest.fixture(scope="module")
def target() -> Iterator[Target]:
    with xfs_on_loop(512 << 20) as made:
        yield made


def write_replay(folder: Path, objects: str) -> Path:
    text = STUDY.replace("TRACE", str(folder / "trace.jsonl")).replace("OBJECTS", objects)
    return write_study(folder, text)


@pytest.mark.parametrize("objects", ["slab", "files"])
def test_a_trace_is_replayed_with_the_hits_of_its_capacity(
    target: Target, tmp_path: Path, objects: str
) -> None:
    write_trace(tmp_path)
    study, out = write_replay(tmp_path, objects), tmp_path / "session"
    before = device_bytes(target.device)
    iolab("run", study, "--path", target.path, "--out", out)
    after = device_bytes(target.device)

    reader = SessionReader(out)
    (key,) = reader.committed_folder_by_run()
    record = reader.record(*key)
    assert (record.status, record.failure) == (RunStatus.DONE, None)
    (host,) = record.hosts
    run = kv_cache_details_of_host(host)
    assert run is not None
    blocks, hits = lru_hits(conversations()[: WARM + REPLAYED], WARM)
    assert (run.requests, run.blocks, run.ideal_hits) == (REPLAYED, blocks, hits)
    assert abs(run.hits - hits) <= 0.001 * blocks
    assert (run.capacity_blocks, run.unfinished_requests) == (STORE_BLOCKS, 0)
    # The engine reads each hit once; the device saw that, and little beside.
    read = int(record.intervals.bytes[record.intervals.direction == 0].sum())
    assert read == (run.hits - run.memory_hits) * BLOCK
    assert read <= after[0] - before[0] <= read + METADATA_BYTES + STORE_BLOCKS * BLOCK
    assert not list(target.path.glob("iolab*"))

    iolab("report", out, "--html", tmp_path / "page.html", "--md", tmp_path / "brief.md")
    appendix = (tmp_path / "brief-appendix.md").read_text(encoding="utf-8")
    # Of some hundred prefixes no tail is supported.
    assert "Prefix mean" in appendix
    assert "Prefix p95" not in appendix


def test_bad_traces_are_refused_with_their_line(target: Target, tmp_path: Path) -> None:
    write_trace(tmp_path)
    trace, study = tmp_path / "trace.jsonl", write_replay(tmp_path, "slab")
    lines = trace.read_text(encoding="utf-8").splitlines()
    faults = {
        2: lines[1].replace('"hash_ids"', '"hashes"'),
        3: lines[2].replace('"timestamp": 2000', '"timestamp": 100'),
        4: "{",
    }
    for number, line in faults.items():
        trace.write_text("\n".join([*lines[: number - 1], line, *lines[number:]]), encoding="utf-8")
        done = iolab("plan", study, "--path", target.path, expect=2)
        assert f"line {number}" in done.stderr, done.stderr
