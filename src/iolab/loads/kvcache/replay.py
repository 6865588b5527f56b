"""What of a trace is replayed: its requests by host, at a rate, as the agent is told them."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Sequence
from functools import cached_property, lru_cache
from typing import Final

from iolab.loads.kvcache.generator import CONVERSATION_TRACE_NAME, INPUT_TOKENS_MAX, generate_trace
from iolab.loads.kvcache.trace import (
    HitCounts,
    RequestTrace,
    RequestTraceError,
    TraceRequest,
    count_lru_hits,
    read_trace,
    repeat_trace,
    session_number_of_each_request,
    trace_with_block_tokens,
)
from iolab.loads.kvcache.workload import KvCacheJob, TraceArrivals
from iolab.record import Record

TRACE_SEED: Final = 1
"""The built-in trace is one trace: runs and hosts differ in nothing by it."""

GENERATED_STEP_S: Final = 600.0
"""The built-in trace is drawn in whole steps, so that runs of about one length share it."""

GENERATED_REQUESTS_PER_S: Final = 3.2
"""Requests of it in a second of its clock, a little less than it has."""

REQUESTS_OF_RUN_MAX: Final = 60_000
"""Requests of one host that fit into what the agent is told at once."""

CLOSED_REQUESTS_PER_S: Final = 400.0
"""Requests for each second of a run whose requests come as fast as they can."""


class ReplayPlan(Record, dict=True):
    """The requests of a run: `warm_request_count` before its start, and those that are replayed.

    Times are nanoseconds since the start. `host_index_of_each_request` is in their order.
    """

    trace: RequestTrace
    warm_request_count: int
    requests: tuple[TraceRequest, ...]
    host_index_of_each_request: tuple[int, ...]
    clock_factor: float

    def warm_and_replayed_requests(
        self, host_index: int
    ) -> tuple[tuple[TraceRequest, ...], tuple[TraceRequest, ...]]:
        """The warm and the replayed requests of one host."""
        warm, replayed = self._warm_and_replayed_requests_by_host
        return tuple(warm.get(host_index, ())), tuple(replayed.get(host_index, ()))

    @cached_property
    def _warm_and_replayed_requests_by_host(
        self,
    ) -> tuple[dict[int, list[TraceRequest]], dict[int, list[TraceRequest]]]:
        """The warm and the replayed requests by the place of their host."""
        warm: dict[int, list[TraceRequest]] = {}
        replayed: dict[int, list[TraceRequest]] = {}
        for number, (request, host) in enumerate(
            zip(self.requests, self.host_index_of_each_request, strict=True)
        ):
            (warm if number < self.warm_request_count else replayed).setdefault(host, []).append(
                request
            )
        return warm, replayed


def trace_digest_or_empty(name_or_path: str) -> str:
    """The checksum of a trace; "" where it cannot be read, which is told elsewhere."""
    try:
        return read_or_generate_trace(name_or_path, GENERATED_STEP_S).digest
    except RequestTraceError:
        return ""


def read_or_generate_trace(name_or_path: str, min_seconds: float) -> RequestTrace:
    """A trace by its name or path; the built-in one of at least that many seconds.

    RequestTraceError where there is none.
    """
    if name_or_path != CONVERSATION_TRACE_NAME:
        return read_trace(name_or_path)
    steps = max(math.ceil(min_seconds / GENERATED_STEP_S), 1)
    return generate_trace(TRACE_SEED, steps * GENERATED_STEP_S)


def largest_request_block_count(job: KvCacheJob) -> int:
    """The blocks of the largest request that the trace has or may have. RequestTraceError."""
    if job.trace == CONVERSATION_TRACE_NAME:
        return -(-INPUT_TOKENS_MAX // job.block_tokens)
    trace = trace_with_block_tokens(read_or_generate_trace(job.trace, 0.0), job.block_tokens)
    return max(len(request.blocks) for request in trace.requests)


def fleet_request_count(job: KvCacheJob, seconds: float) -> int:
    """How many requests a run of that length replays on the whole fleet."""
    rate = job.requests_per_s or CLOSED_REQUESTS_PER_S
    return max(math.ceil(rate * seconds), 2)


@lru_cache(maxsize=4)
def plan_replay(job: KvCacheJob, seconds: float, host_count: int, seed: int) -> ReplayPlan:
    """The requests of a run, so many that the asked rate is kept on average. RequestTraceError."""
    wanted = fleet_request_count(job, seconds)
    trace, requests, first = _trace_requests_and_first_replayed_index(job, wanted + 1)
    if len(requests) > REQUESTS_OF_RUN_MAX * host_count:
        raise RequestTraceError(
            f"the run replays {len(requests):,} requests, and {REQUESTS_OF_RUN_MAX:,} a host are "
            "the most"
        )
    spread = _arrival_times_ns(trace, requests, job.arrivals, seed)
    begin, end = spread[first], spread[first + wanted]
    factor = (end - begin) / (seconds * 1e9) if end > begin else 1.0
    chosen = requests[: first + wanted]
    sessions = session_number_of_each_request(chosen)
    return ReplayPlan(
        trace=trace,
        warm_request_count=first,
        requests=tuple(
            TraceRequest(
                round(max(at - begin, 0) / factor),
                request.input_tokens,
                request.output_tokens,
                request.blocks,
            )
            for at, request in zip(spread, chosen, strict=False)
        ),
        host_index_of_each_request=tuple(
            _host_index_of_session(session, host_count) for session in sessions
        ),
        clock_factor=factor,
    )


def _trace_requests_and_first_replayed_index(
    job: KvCacheJob, request_count: int
) -> tuple[RequestTrace, tuple[TraceRequest, ...], int]:
    """The trace, enough of its requests, and the first of them that is replayed."""
    start_ns = round(job.start_s * 1e9)
    if job.trace != CONVERSATION_TRACE_NAME:
        trace = trace_with_block_tokens(read_or_generate_trace(job.trace, 0.0), job.block_tokens)
        first = trace.first_request_index_due_from(start_ns)
        if first >= len(trace.requests):
            span = trace.span_ns / 1e9
            raise RequestTraceError(f"start = {job.start_s:g} s is after its end, at {span:g} s")
        step_ns = max(trace.clock_step_ns, round(1e9 / trace.requests_per_s))
        return (
            trace,
            repeat_trace(trace.requests, first + request_count, trace.span_ns + step_ns),
            first,
        )
    seconds = job.start_s + request_count / GENERATED_REQUESTS_PER_S
    while True:
        trace = trace_with_block_tokens(
            read_or_generate_trace(job.trace, seconds), job.block_tokens
        )
        first = trace.first_request_index_due_from(start_ns)
        if len(trace.requests) >= first + request_count:
            return trace, trace.requests[: first + request_count], first
        seconds += GENERATED_STEP_S


def _arrival_times_ns(
    trace: RequestTrace, requests: Sequence[TraceRequest], arrivals: TraceArrivals, seed: int
) -> list[int]:
    """When requests come on the trace's clock, in their order."""
    import numpy as np

    random = np.random.default_rng(seed)
    times = np.array([request.due_ns for request in requests], dtype=np.float64)
    if arrivals is TraceArrivals.SPREAD and trace.clock_step_ns:
        # Sorted within a step: who came first there is not known.
        times = np.sort(times + random.random(times.size) * trace.clock_step_ns)
    elif arrivals is TraceArrivals.POISSON:
        gaps = -np.log(1.0 - random.random(times.size))
        mean = (times[-1] - times[0]) / max(times.size - 1, 1)
        times = times[0] + np.cumsum(gaps) * mean
    return [round(value) for value in times.tolist()]


def _host_index_of_session(session_number: int, host_count: int) -> int:
    """The host of a session, by chance and always the same."""
    digest = hashlib.blake2b(session_number.to_bytes(8, "little"), digest_size=8).digest()
    return int.from_bytes(digest, "little") % host_count


def encode_requests(requests: Sequence[TraceRequest]) -> list[list[int]]:
    """Requests as the agent is told them.

    Of each the gap to the one before in microseconds, which earlier one has its first blocks
    (counted backwards, 0 for none), how many these are, and how many new ones follow.
    """
    last_user: dict[int, int] = {}
    encoded = []
    before_us = 0
    for number, request in enumerate(requests):
        shared = next(
            (n for n, block in enumerate(request.blocks) if block not in last_user),
            len(request.blocks),
        )
        parent = number - last_user[request.blocks[shared - 1]] if shared else 0
        at_us = request.due_ns // 1000
        encoded.append([at_us - before_us, parent, shared, len(request.blocks) - shared])
        before_us = at_us
        for block in request.blocks:
            last_user[block] = number
    return encoded


def ideal_lru_hit_counts(
    job: KvCacheJob, warm_requests: Sequence[TraceRequest], requests: Sequence[TraceRequest]
) -> HitCounts:
    """What an LRU list of the job's capacity would have held of these requests."""
    return count_lru_hits(requests, job.capacity_blocks_per_client, warm_requests)
