"""The metrics of KV-cache load that are no rates and latencies of operations."""

from __future__ import annotations

from typing import Final

from iolab.core.metric_spec import CPU_PER_GB, BetterDirection, CombineRule, MetricSpec

REQUESTS: Final = MetricSpec(
    "requests_per_s", "requests", "requests/s", BetterDirection.HIGHER, CombineRule.RATE
)
"""Requests whose prefix was loaded, or who had none, over the window that all hosts share."""

HIT_SHARE: Final = MetricSpec(
    "hit_share", "hit share", "share", BetterDirection.HIGHER, CombineRule.MEAN
)
"""Blocks of the requests that the store held, of the whole run."""

IDEAL_HIT_SHARE: Final = MetricSpec(
    "ideal_hit_share", "ideal hit share", "share", BetterDirection.HIGHER, CombineRule.MEAN
)
"""The same of an LRU list of the same capacity."""

LOADED_TOKENS: Final = MetricSpec(
    "loaded_tokens_per_s", "loaded tokens", "tokens/s", BetterDirection.HIGHER, CombineRule.RATE
)
"""Tokens whose keys and values were read and need not be computed."""

PREFIX_RATE: Final = MetricSpec(
    "prefix_rate_bytes_per_s_p50",
    "prefix rate",
    "bytes/s",
    BetterDirection.HIGHER,
    CombineRule.QUANTILE,
)
"""How fast the median prefix arrives, from when its request was due."""

SLOW_PREFIX_RATE: Final = MetricSpec(
    "prefix_rate_bytes_per_s_p5",
    "slow prefix rate",
    "bytes/s",
    BetterDirection.HIGHER,
    CombineRule.QUANTILE,
)
"""The same of the slowest twentieth."""

BREAK_EVEN: Final = MetricSpec(
    "break_even_tokens_per_s",
    "break-even prefill",
    "tokens/s",
    BetterDirection.HIGHER,
    CombineRule.QUANTILE,
)
"""Tokens a second: instances that compute fewer are faster with the store, also where a prefix
comes as slowly as the slowest twentieth."""

BREAK_EVEN_RATE: Final = MetricSpec(
    "break_even_bytes_per_s", "break-even rate", "bytes/s", BetterDirection.LOWER, CombineRule.MEAN
)
"""How fast a prefix must arrive to be as fast as computing it anew, by `prefill_tokens_per_s`."""

RECOMPUTE: Final = MetricSpec(
    "recompute_ns_mean", "recompute time", "ns", BetterDirection.LOWER, CombineRule.MEAN
)
"""How long an instance of `prefill_tokens_per_s` computes the mean prefix that was loaded."""

TRACE_SPEED: Final = MetricSpec(
    "trace_speed", "trace speed", "x", BetterDirection.HIGHER, CombineRule.MEAN
)
"""How many times faster than its own clock the trace was replayed."""

BACKLOG_MAX: Final = MetricSpec(
    "backlog_max", "backlog", "requests", BetterDirection.LOWER, CombineRule.EXTREME
)
"""The most requests that were under way at the end of a second."""

METRICS: Final = (
    REQUESTS,
    HIT_SHARE,
    IDEAL_HIT_SHARE,
    LOADED_TOKENS,
    PREFIX_RATE,
    SLOW_PREFIX_RATE,
    BREAK_EVEN,
    BREAK_EVEN_RATE,
    RECOMPUTE,
    TRACE_SPEED,
    BACKLOG_MAX,
    CPU_PER_GB,
)
