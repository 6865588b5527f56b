"""The built-in conversation trace: drawn from tables of a published one, as long as it is needed.

The tables are statistics of Mooncake's conversation trace (FAST '25, Apache-2.0, 12,031 requests in
3,537 s): how sessions come and go on, how long requests are and what of their parents they keep.
`docs/reference/engines/kv-cache.md` has what the generator makes beside the real trace's figures.
"""

from __future__ import annotations

import hashlib
import itertools
import math
from collections.abc import Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Final

from iolab.loads.kvcache.trace import BlockNumbering, RequestTrace, TraceRequest
from iolab.record import Record

if TYPE_CHECKING:
    import numpy as np

CONVERSATION_TRACE_NAME: Final = "conversation"
"""The trace that is built in."""

BLOCK_TOKENS: Final = 512

SESSIONS_PER_S: Final = 1.99
"""Sessions that begin."""

CLUSTERED_SESSION_SHARE: Final = 0.45
CLUSTER_GAP_S: Final = 2.0
"""The part of sessions that another one follows at once, and after how long in the mean."""

RATE_WAVE_AMPLITUDE: Final = 0.12
RATE_WAVE_PERIOD_S: Final = 600.0
"""How far the rate of sessions goes up and down, and in what time."""

RATE_TREND_RISE: Final = 0.09
RATE_TREND_DURATION_S: Final = 3537.0
"""How far it rises over the length of the real trace; after that it stays."""

LEAD_IN_S: Final = 3000.0
"""Sessions that began so long before the trace's begin go on in it."""

FOLLOW_UP_SHARES: Final = (0.335, 0.45, 0.53, 0.60, 0.62, 0.68, 0.72)
"""The part of requests that are followed by another of their session, by how many came before."""

FULL_PREFIX_SHARE: Final = 0.84
"""Follow-ups that keep all blocks of their parent but the last; others keep a part."""
PARTIAL_PREFIX_RANGE: Final = (0.03, 0.75)
CONTEXT_CUT_SHARE: Final = 0.08
"""Follow-ups whose context was cut, to a part of its length."""
CONTEXT_CUT_RANGE: Final = (0.30, 0.90)

Quantiles = Sequence[tuple[float, float]]
"""Parts of all, each with the value that so many do not exceed."""

_INPUT_QUANTILE_LEVELS: Final = (0.0, 0.05, 0.10, 0.25, 0.50, 0.75, 0.90, 0.95, 0.99, 1.0)

SINGLE_REQUEST_INPUT_QUANTILES: Final = tuple(
    zip(
        _INPUT_QUANTILE_LEVELS,
        (890, 896, 900, 1011, 4721, 12_104, 25_690, 40_327, 94_410, 126_195),
        strict=True,
    )
)
"""Tokens of first requests that are not followed by another."""

FIRST_REQUEST_INPUT_QUANTILES: Final = tuple(
    zip(
        _INPUT_QUANTILE_LEVELS,
        (900, 1131, 1298, 2888, 6893, 14_593, 25_409, 33_732, 73_427, 126_195),
        strict=True,
    )
)
"""Tokens of first requests that are."""

OUTPUT_TOKENS_QUANTILES: Final = (
    (0.0, 1.0),
    (0.10, 24.0),
    (0.25, 156.0),
    (0.50, 350.0),
    (0.75, 472.0),
    (0.90, 597.0),
    (0.95, 698.0),
    (0.99, 1120.0),
    (1.0, 2000.0),
)
"""Generated tokens."""

REQUEST_GAP_QUANTILES_S: Final = (
    (0.0, 12.0),
    (0.10, 42.0),
    (0.25, 66.0),
    (0.50, 123.0),
    (0.75, 264.0),
    (0.90, 483.0),
    (0.95, 618.0),
    (0.99, 1482.0),
    (1.0, 3000.0),
)
"""Seconds from a request to the next of its session."""

NEW_TOKENS_QUANTILES: Final = (
    (0.0, 1.0),
    (0.25, 8.0),
    (0.50, 23.0),
    (0.75, 425.0),
    (0.90, 4267.0),
    (0.99, 17_091.0),
    (1.0, 60_000.0),
)
"""What a follow-up adds to its parent's input and output."""

INPUT_TOKENS_MAX: Final = 126_195

SYSTEM_PROMPT_BLOCK_KEY: Final = (-1, 0)
"""The block with which every request begins."""


class _DraftRequest(Record):
    """A request before its blocks are numbered."""

    due_s: float
    input_tokens: int
    output_tokens: int
    block_keys: tuple[tuple[int, int], ...]


def interpolated_quantile_value(quantiles: Quantiles, probability: float) -> float:
    """The value at a level from 0 to 1, log-linear between those that are known."""
    for (low, low_value), (high, value) in itertools.pairwise(quantiles):
        if probability <= high:
            share = (probability - low) / (high - low)
            return low_value * math.exp(share * math.log(value / low_value))
    return quantiles[-1][1]


@lru_cache(maxsize=8)
def generate_trace(seed: int, seconds: float) -> RequestTrace:
    """The requests of that many seconds; a longer trace begins with a shorter one of its seed."""
    numbers = BlockNumbering()
    requests = tuple(
        TraceRequest(
            round(draft.due_s * 1e9),
            draft.input_tokens,
            draft.output_tokens,
            numbers.assign_block_numbers(draft.block_keys),
        )
        for draft in _draft_requests_by_time(seed, seconds)
    )
    digest = hashlib.sha256(f"{CONVERSATION_TRACE_NAME} 1 {seed}".encode()).hexdigest()
    return RequestTrace(CONVERSATION_TRACE_NAME, digest, BLOCK_TOKENS, 0, requests)


def _draft_requests_by_time(seed: int, seconds: float) -> list[_DraftRequest]:
    import numpy as np

    random = np.random.default_rng(seed)
    drafts: list[tuple[float, int, _DraftRequest]] = []
    ordinal = 0
    cluster_start_s = -LEAD_IN_S
    peak_clusters_per_s = (
        SESSIONS_PER_S * (1 - CLUSTERED_SESSION_SHARE) * (1 + RATE_WAVE_AMPLITUDE + RATE_TREND_RISE)
    )
    while True:
        cluster_start_s -= math.log(1.0 - random.random()) / peak_clusters_per_s
        if cluster_start_s >= seconds:
            break
        if random.random() > _relative_session_rate(cluster_start_s) / (
            1 + RATE_WAVE_AMPLITUDE + RATE_TREND_RISE
        ):
            continue
        start_s = cluster_start_s
        while True:
            for draft in _session_draft_requests(random, start_s, ordinal):
                if 0 <= draft.due_s < seconds:
                    drafts.append((draft.due_s, ordinal, draft))
                ordinal += 1
            if random.random() >= CLUSTERED_SESSION_SHARE:
                break
            start_s -= math.log(1.0 - random.random()) * CLUSTER_GAP_S
    return [draft for _, _, draft in sorted(drafts, key=lambda item: item[:2])]


def _relative_session_rate(at_s: float) -> float:
    wave = RATE_WAVE_AMPLITUDE * math.sin(2 * math.pi * at_s / RATE_WAVE_PERIOD_S)
    return 1 + wave + RATE_TREND_RISE * (min(max(at_s / RATE_TREND_DURATION_S, 0.0), 1.0) - 0.5)


def _session_draft_requests(
    random: np.random.Generator, start_s: float, first_request_ordinal: int
) -> list[_DraftRequest]:
    """The requests of one session; each block is known by the request that first had it."""
    depth, due_s = 0, start_s
    follows = random.random() < FOLLOW_UP_SHARES[0]
    length = interpolated_quantile_value(
        FIRST_REQUEST_INPUT_QUANTILES if follows else SINGLE_REQUEST_INPUT_QUANTILES,
        random.random(),
    )
    output = round(interpolated_quantile_value(OUTPUT_TOKENS_QUANTILES, random.random()))
    block_keys = _block_keys((), round(length), first_request_ordinal)
    drafts = [_DraftRequest(due_s, round(length), output, block_keys)]
    while follows:
        depth += 1
        parent = drafts[-1]
        due_s += interpolated_quantile_value(REQUEST_GAP_QUANTILES_S, random.random())
        length = parent.input_tokens + parent.output_tokens
        length += interpolated_quantile_value(NEW_TOKENS_QUANTILES, random.random())
        kept = len(parent.block_keys) - 1
        if random.random() >= FULL_PREFIX_SHARE:
            kept = round(kept * _interpolate(PARTIAL_PREFIX_RANGE, random.random()))
        if random.random() < CONTEXT_CUT_SHARE:
            length *= _interpolate(CONTEXT_CUT_RANGE, random.random())
        tokens = max(min(round(length), INPUT_TOKENS_MAX), 1)
        output = round(interpolated_quantile_value(OUTPUT_TOKENS_QUANTILES, random.random()))
        block_keys = _block_keys(
            parent.block_keys[: max(kept, 1)], tokens, first_request_ordinal + depth
        )
        drafts.append(_DraftRequest(due_s, tokens, output, block_keys))
        follows = random.random() < FOLLOW_UP_SHARES[min(depth, len(FOLLOW_UP_SHARES) - 1)]
    return drafts


def _block_keys(
    prefix_keys: Sequence[tuple[int, int]], token_count: int, request_ordinal: int
) -> tuple[tuple[int, int], ...]:
    count = -(-token_count // BLOCK_TOKENS)
    known = (tuple(prefix_keys) or (SYSTEM_PROMPT_BLOCK_KEY,))[:count]
    return (*known, *((request_ordinal, place) for place in range(len(known), count)))


def _interpolate(bounds: tuple[float, float], fraction: float) -> float:
    return bounds[0] + fraction * (bounds[1] - bounds[0])
