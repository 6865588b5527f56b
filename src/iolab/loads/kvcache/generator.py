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

from iolab.loads.kvcache.trace import BlockNumbers, Request, Trace
from iolab.record import Record

if TYPE_CHECKING:
    import numpy as np

CONVERSATION: Final = "conversation"
"""The trace that is built in."""

BLOCK_TOKENS: Final = 512

SESSIONS_PER_S: Final = 1.99
"""Sessions that begin."""

CLUSTERED: Final = 0.45
CLUSTER_GAP_S: Final = 2.0
"""The part of sessions that another one follows at once, and after how long in the mean."""

WAVE: Final = 0.12
WAVE_S: Final = 600.0
"""How far the rate of sessions goes up and down, and in what time."""

TREND: Final = 0.09
TREND_S: Final = 3537.0
"""How far it rises over the length of the real trace; after that it stays."""

EARLIER_S: Final = 3000.0
"""Sessions that began so long before the trace's begin go on in it."""

CONTINUES: Final = (0.335, 0.45, 0.53, 0.60, 0.62, 0.68, 0.72)
"""The part of requests that are followed by another of their session, by how many came before."""

KEPT: Final = 0.84
"""Follow-ups that keep all blocks of their parent but the last; others keep a part."""
KEPT_PART: Final = (0.03, 0.75)
CUT: Final = 0.08
"""Follow-ups whose context was cut, to a part of its length."""
CUT_PART: Final = (0.30, 0.90)

Quantiles = Sequence[tuple[float, float]]
"""Parts of all, each with the value that so many do not exceed."""

_LENGTH_PARTS: Final = (0.0, 0.05, 0.10, 0.25, 0.50, 0.75, 0.90, 0.95, 0.99, 1.0)

LAST_INPUT: Final = tuple(
    zip(
        _LENGTH_PARTS,
        (890, 896, 900, 1011, 4721, 12_104, 25_690, 40_327, 94_410, 126_195),
        strict=True,
    )
)
"""Tokens of first requests that are not followed by another."""

FIRST_INPUT: Final = tuple(
    zip(
        _LENGTH_PARTS,
        (900, 1131, 1298, 2888, 6893, 14_593, 25_409, 33_732, 73_427, 126_195),
        strict=True,
    )
)
"""Tokens of first requests that are."""

OUTPUT: Final = (
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

GAP_S: Final = (
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

NEW_TOKENS: Final = (
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


class _Draft(Record):
    """A request before its blocks are numbered; `parent` is that of its session, if any."""

    due_s: float
    input_tokens: int
    output_tokens: int
    keys: tuple[tuple[int, int], ...]


def draw_quantile(quantiles: Quantiles, part: float) -> float:
    """The value of a part of all, 0 to 1, log-linear between those that are known."""
    for (low, low_value), (high, value) in itertools.pairwise(quantiles):
        if part <= high:
            share = (part - low) / (high - low)
            return low_value * math.exp(share * math.log(value / low_value))
    return quantiles[-1][1]


@lru_cache(maxsize=8)
def generate_trace(seed: int, seconds: float) -> Trace:
    """The requests of that many seconds; a longer trace begins with a shorter one of its seed."""
    numbers = BlockNumbers()
    requests = tuple(
        Request(
            round(draft.due_s * 1e9),
            draft.input_tokens,
            draft.output_tokens,
            numbers.number_path(draft.keys),
        )
        for draft in _drafts_in_order(seed, seconds)
    )
    digest = hashlib.sha256(f"{CONVERSATION} 1 {seed}".encode()).hexdigest()
    return Trace(CONVERSATION, digest, BLOCK_TOKENS, 0, requests)


def _drafts_in_order(seed: int, seconds: float) -> list[_Draft]:
    import numpy as np

    random = np.random.default_rng(seed)
    drafts: list[tuple[float, int, _Draft]] = []
    ordinal = 0
    first_s = -EARLIER_S
    most_per_s = SESSIONS_PER_S * (1 - CLUSTERED) * (1 + WAVE + TREND)
    while True:
        first_s -= math.log(1.0 - random.random()) / most_per_s
        if first_s >= seconds:
            break
        if random.random() > _relative_rate(first_s) / (1 + WAVE + TREND):
            continue
        start_s = first_s
        while True:
            for draft in _session(random, start_s, ordinal):
                if 0 <= draft.due_s < seconds:
                    drafts.append((draft.due_s, ordinal, draft))
                ordinal += 1
            if random.random() >= CLUSTERED:
                break
            start_s -= math.log(1.0 - random.random()) * CLUSTER_GAP_S
    return [draft for _, _, draft in sorted(drafts, key=lambda item: item[:2])]


def _relative_rate(at_s: float) -> float:
    wave = WAVE * math.sin(2 * math.pi * at_s / WAVE_S)
    return 1 + wave + TREND * (min(max(at_s / TREND_S, 0.0), 1.0) - 0.5)


def _session(random: np.random.Generator, start_s: float, ordinal: int) -> list[_Draft]:
    """The requests of one session; each block is known by the request that first had it."""
    depth, due_s = 0, start_s
    follows = random.random() < CONTINUES[0]
    length = draw_quantile(FIRST_INPUT if follows else LAST_INPUT, random.random())
    output = round(draw_quantile(OUTPUT, random.random()))
    keys = _path((), round(length), ordinal)
    drafts = [_Draft(due_s, round(length), output, keys)]
    while follows:
        depth += 1
        parent = drafts[-1]
        due_s += draw_quantile(GAP_S, random.random())
        length = parent.input_tokens + parent.output_tokens
        length += draw_quantile(NEW_TOKENS, random.random())
        kept = len(parent.keys) - 1
        if random.random() >= KEPT:
            kept = round(kept * _between(KEPT_PART, random.random()))
        if random.random() < CUT:
            length *= _between(CUT_PART, random.random())
        tokens = max(min(round(length), INPUT_TOKENS_MAX), 1)
        output = round(draw_quantile(OUTPUT, random.random()))
        keys = _path(parent.keys[: max(kept, 1)], tokens, ordinal + depth)
        drafts.append(_Draft(due_s, tokens, output, keys))
        follows = random.random() < CONTINUES[min(depth, len(CONTINUES) - 1)]
    return drafts


SYSTEM_PROMPT: Final = (-1, 0)
"""The block with which every request begins."""


def _path(
    kept: Sequence[tuple[int, int]], tokens: int, ordinal: int
) -> tuple[tuple[int, int], ...]:
    count = -(-tokens // BLOCK_TOKENS)
    known = (tuple(kept) or (SYSTEM_PROMPT,))[:count]
    return (*known, *((ordinal, place) for place in range(len(known), count)))


def _between(limits: tuple[float, float], part: float) -> float:
    return limits[0] + part * (limits[1] - limits[0])
