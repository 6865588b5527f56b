"""Request traces: when requests come, how long they are, and which token blocks they share.

A block is so many tokens with all that precede them, so it is known by its parent and its own
contents: blocks form a tree, a request is a path from the root, and what two requests share is
always a prefix.
"""

from __future__ import annotations

import hashlib
import itertools
import json
from collections import OrderedDict
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any, Final

from iolab.record import Record
from iolab.text import excerpt, quote_value

NS_PER_MS: Final = 1_000_000

TRACE_BYTES_MAX: Final = 1 << 30
"""Of a trace file, which is held in memory; the published ones have 1 to 190 MB."""

REQUESTS_MAX: Final = 2_000_000
"""Of a trace; the published ones have 4,000 to 360,000."""

BLOCKS_MAX: Final = 1 << 16
"""Of one request: a million tokens are 2,048 blocks of 512, or 65,536 of 16."""

COMMON_SHARE: Final = 0.5
"""A prefix of more than this part of all requests is a system prompt, and joins no sessions."""

COMMON_BLOCKS_MAX: Final = 64
"""How far a system prompt is looked for: 32,768 tokens in blocks of 512."""

ROOT: Final = -1
"""The parent of first blocks."""

FIELDS: Final = ("timestamp", "input_length", "output_length", "hash_ids")
"""What both formats call a request's time, tokens and blocks."""

NUMBER_MAX: Final = 1 << 53


class RequestTraceError(ValueError):
    """A trace that cannot be replayed: the message is a sentence without its end."""


class TraceRequest(Record):
    """One request: when it comes after the trace's begin, its tokens, and its blocks in order."""

    due_ns: int
    input_tokens: int
    output_tokens: int
    blocks: tuple[int, ...]


class RequestTrace(Record):
    """Requests in the order in which they come, with blocks of `block_tokens` tokens.

    Blocks are numbered from 0 in the order in which they first appear; each has one parent.
    Requests that came together within `clock_step_ns` have the same time.
    """

    name: str
    digest: str
    block_tokens: int
    clock_step_ns: int
    requests: tuple[TraceRequest, ...]

    @property
    def span_ns(self) -> int:
        """From the first request to the last."""
        return self.requests[-1].due_ns - self.requests[0].due_ns

    @property
    def requests_per_s(self) -> float:
        """How many come in a second of its own clock."""
        return (len(self.requests) - 1) * 1e9 / self.span_ns if self.span_ns else 0.0

    def first_request_index_due_from(self, due_ns: int) -> int:
        """The number of the first request that comes at that time or later."""
        low, high = 0, len(self.requests)
        while low < high:
            middle = (low + high) // 2
            if self.requests[middle].due_ns < due_ns:
                low = middle + 1
            else:
                high = middle
        return low


class HitCounts(Record):
    """References of blocks by a series of requests, and those that a store of a capacity held."""

    references: int
    hits: int

    @property
    def hit_share(self) -> float:
        """The part that was held."""
        return self.hits / self.references if self.references else 0.0


class LruBlockCache:
    """A store that holds so many blocks and drops the least recently used one."""

    def __init__(self, capacity_blocks: int) -> None:
        self._capacity = capacity_blocks
        self._blocks: OrderedDict[int, None] = OrderedDict()

    def __len__(self) -> int:
        return len(self._blocks)

    def count_hits_and_insert(self, blocks: Sequence[int]) -> int:
        """How many blocks of a request are held, from its first one on; then all of them are.

        The last block is used first: of a prefix its tail is dropped before its head.
        """
        hits = next((n for n, block in enumerate(blocks) if block not in self._blocks), len(blocks))
        for block in reversed(blocks):
            self._blocks[block] = None
            self._blocks.move_to_end(block)
        while len(self._blocks) > self._capacity:
            self._blocks.popitem(last=False)
        return hits


def count_lru_hits(
    requests: Iterable[TraceRequest],
    capacity_blocks: int,
    warm_requests: Iterable[TraceRequest] = (),
) -> HitCounts:
    """What a store of that many blocks holds of the requests, after the `warm_requests` ones."""
    store = LruBlockCache(capacity_blocks)
    for request in warm_requests:
        store.count_hits_and_insert(request.blocks)
    references = hits = 0
    for request in requests:
        references += len(request.blocks)
        hits += store.count_hits_and_insert(request.blocks)
    return HitCounts(references, hits)


class BlockNumbering:
    """Numbers blocks in the order in which they first appear, each by its parent and its key."""

    def __init__(self) -> None:
        self._numbers: dict[tuple[int, object], int] = {}

    def assign_block_numbers(self, keys: Iterable[object]) -> tuple[int, ...]:
        """The numbers of a request's blocks."""
        path: list[int] = []
        for key in keys:
            parent = path[-1] if path else ROOT
            path.append(self._numbers.setdefault((parent, key), len(self._numbers)))
        return tuple(path)


def trace_with_block_tokens(trace: RequestTrace, block_tokens: int) -> RequestTrace:
    """The same requests in blocks of another size.

    RequestTraceError where sizes are no multiples.
    """
    own = trace.block_tokens
    if block_tokens == own:
        return trace
    if block_tokens % own and own % block_tokens:
        raise RequestTraceError(
            f"block_tokens = {block_tokens} is no multiple or part of the trace's {own} tokens"
        )
    numbers = BlockNumbering()
    requests = []
    for request in trace.requests:
        count = -(-request.input_tokens // block_tokens)
        if block_tokens > own:
            joined = block_tokens // own
            starts = range(0, len(request.blocks), joined)
            keys: list[object] = [request.blocks[start : start + joined] for start in starts]
        else:
            parts = own // block_tokens
            keys = [(block, part) for block in request.blocks for part in range(parts)]
        requests.append(
            TraceRequest(
                request.due_ns,
                request.input_tokens,
                request.output_tokens,
                numbers.assign_block_numbers(keys[: max(count, 1)]),
            )
        )
    return RequestTrace(
        trace.name, trace.digest, block_tokens, trace.clock_step_ns, tuple(requests)
    )


def session_number_of_each_request(requests: Sequence[TraceRequest]) -> list[int]:
    """A number for each request that all of a session share: the first block that is its own.

    Blocks that more than half of all requests begin with belong to no session.
    """
    common = _common_prefix_blocks(requests)
    return [
        next((block for block in request.blocks if block not in common), request.blocks[-1])
        for request in requests
    ]


def repeat_trace(
    requests: Sequence[TraceRequest], request_count: int, span_ns: int
) -> tuple[TraceRequest, ...]:
    """The first `request_count` requests of the trace told over and over, with new blocks.

    With the same ones all would be hits. What more than half of all requests begin with stays.
    """
    if request_count <= len(requests):
        return tuple(requests[:request_count])
    kept = _common_prefix_blocks(requests)
    blocks = 1 + max(block for request in requests for block in request.blocks)
    repeated = list(requests)
    while len(repeated) < request_count:
        turn, place = divmod(len(repeated), len(requests))
        request = requests[place]
        path = tuple(block if block in kept else block + turn * blocks for block in request.blocks)
        repeated.append(
            TraceRequest(
                request.due_ns + turn * span_ns, request.input_tokens, request.output_tokens, path
            )
        )
    return tuple(repeated)


def _common_prefix_blocks(requests: Sequence[TraceRequest]) -> frozenset[int]:
    uses: dict[int, int] = {}
    for request in requests:
        for block in request.blocks[:COMMON_BLOCKS_MAX]:
            uses[block] = uses.get(block, 0) + 1
    return frozenset(b for b, count in uses.items() if count > COMMON_SHARE * len(requests))


# Files


@lru_cache(maxsize=4)
def _read_trace_cached(path: str, mtime_and_size: tuple[int, int]) -> RequestTrace:  # noqa: ARG001 - the key
    content = Path(path).read_bytes()
    digest = hashlib.sha256(content).hexdigest()
    return parse_trace(Path(path).name, digest, content.decode("utf-8", "replace").splitlines())


def read_trace(path: str) -> RequestTrace:
    """The trace in a file; RequestTraceError where it cannot be replayed, with the line."""
    try:
        stat = Path(path).stat()
        if stat.st_size > TRACE_BYTES_MAX:
            raise RequestTraceError(
                f"{quote_value(path)} has {stat.st_size:,} bytes, 1 GiB is the most"
            )
        return _read_trace_cached(path, (stat.st_mtime_ns, stat.st_size))
    except OSError as error:
        raise RequestTraceError(f"{quote_value(path)} cannot be read: {error.strerror}") from None


class TraceFormat(Record):
    """How lines of a published format tell a request; only it has the `distinctive_fields`."""

    title: str
    distinctive_fields: tuple[str, ...]
    time_unit_ns: int
    block_tokens: int


FORMATS: Final = (
    TraceFormat("Bailian", ("chat_id",), 1_000_000_000, 16),
    TraceFormat("Mooncake", (), NS_PER_MS, 512),
)
"""The first whose distinctive fields a line has: Alibaba's Bailian traces, and Mooncake's, which
AIPerf and others write too."""


def parse_trace(name: str, digest: str, lines: Sequence[str]) -> RequestTrace:
    """A trace of one JSON object a line; RequestTraceError with the first line that is none."""
    numbers = BlockNumbering()
    requests: list[TraceRequest] = []
    form: TraceFormat | None = None
    for number, line in enumerate(lines, start=1):
        if not line.strip():
            continue
        try:
            fields = _parse_line_fields(line)
            form = form or _detect_trace_format(fields)
            requests.append(_parse_request(fields, form, numbers))
        except RequestTraceError as fault:
            raise RequestTraceError(f"line {number} of {quote_value(name)} {fault}") from None
        if len(requests) > 1 and requests[-1].due_ns < requests[-2].due_ns:
            raise RequestTraceError(
                f"line {number} of {quote_value(name)} is earlier than the line before it"
            )
        if len(requests) > REQUESTS_MAX:
            raise RequestTraceError(f"{quote_value(name)} has more than {REQUESTS_MAX:,} requests")
    if len(requests) < 2 or form is None:
        raise RequestTraceError(f"{quote_value(name)} has fewer than two requests")
    first_ns = requests[0].due_ns
    shifted = tuple(
        TraceRequest(r.due_ns - first_ns, r.input_tokens, r.output_tokens, r.blocks)
        for r in requests
    )
    if shifted[-1].due_ns == 0:
        raise RequestTraceError(f"{quote_value(name)} has the same time in all lines")
    return RequestTrace(name, digest, form.block_tokens, _timestamp_resolution_ns(shifted), shifted)


def _parse_line_fields(line: str) -> Mapping[str, Any]:
    try:
        fields = json.loads(line)
    except (ValueError, RecursionError):
        fields = None
    if isinstance(fields, dict):
        return fields
    if "," in line and "{" not in line:
        raise RequestTraceError(
            "is CSV: it has lengths but no blocks, so nothing tells what requests share"
        )
    raise RequestTraceError(f"is no JSON object: {excerpt(line, 40)}")


def _detect_trace_format(fields: Mapping[str, Any]) -> TraceFormat:
    return next(form for form in FORMATS if all(mark in fields for mark in form.distinctive_fields))


def _parse_request(
    fields: Mapping[str, Any], form: TraceFormat, block_numbering: BlockNumbering
) -> TraceRequest:
    time, tokens, output = (_parse_number_field(fields, key) for key in FIELDS[:3])
    ids = fields.get("hash_ids")
    if not isinstance(ids, list):
        raise RequestTraceError(
            "has no hash_ids" if ids is None else "has hash_ids that are no list"
        )
    if not 0 < len(ids) <= BLOCKS_MAX:
        raise RequestTraceError(f"has {len(ids)} hash_ids; 1 to {BLOCKS_MAX:,} are possible")
    if not all(isinstance(block, int | str) for block in ids):
        raise RequestTraceError("has hash_ids that are neither numbers nor words")
    return TraceRequest(
        round(time * form.time_unit_ns),
        int(tokens),
        int(output),
        block_numbering.assign_block_numbers(ids),
    )


def _parse_number_field(fields: Mapping[str, Any], key: str) -> float:
    value = fields.get(key)
    if value is None:
        raise RequestTraceError(f"has no {key}")
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise RequestTraceError(f"has {key} = {quote_value(value)}, which is no number")
    if not 0 <= value <= NUMBER_MAX:
        raise RequestTraceError(f"has {key} = {value:g}, which is none that can be")
    return value


def _timestamp_resolution_ns(requests: Sequence[TraceRequest]) -> int:
    """The least gap between two times, where requests share times; else 0."""
    times = sorted({request.due_ns for request in requests})
    if len(times) > len(requests) / 2:
        return 0
    return min(after - before for before, after in itertools.pairwise(times))
