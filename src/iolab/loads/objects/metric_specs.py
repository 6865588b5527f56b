"""What load on objects comes to beside rates and latencies of its operations."""

from __future__ import annotations

from typing import Final

from iolab.core.metric_spec import BetterDirection, CombineRule, MetricSpec

OPERATIONS: Final = MetricSpec(
    "object_ops_per_s", "object operations", "ops/s", BetterDirection.HIGHER, CombineRule.RATE
)
"""Operations on objects that were done, of all kinds: a multipart PUT is one."""

FAILED_SHARE: Final = MetricSpec(
    "failed_operation_share", "failed operations", "share", BetterDirection.LOWER, CombineRule.MEAN
)
"""Operations that failed in the end, of all; of the whole run."""

THROTTLED_SHARE: Final = MetricSpec(
    "throttled_attempt_share",
    "throttled requests",
    "share",
    BetterDirection.LOWER,
    CombineRule.MEAN,
)
"""Requests that the server refused for its load, of all requests of the whole run."""

ATTEMPTS: Final = MetricSpec(
    "attempts_per_operation",
    "attempts per operation",
    "requests",
    BetterDirection.LOWER,
    CombineRule.MEAN,
)
"""Requests that an operation took, with those that failed; of the whole run."""

CONNECTIONS_OPENED: Final = MetricSpec(
    "connections_opened",
    "connections opened",
    "connections",
    BetterDirection.LOWER,
    CombineRule.EXTREME,
)
"""Connections that a host opened during the run: kept ones need none."""

GENERATOR_LIMIT: Final = MetricSpec(
    "generator_limit_ops_per_s",
    "generator's limit",
    "ops/s",
    BetterDirection.HIGHER,
    CombineRule.RATE,
)
"""Operations that the generator makes of the same load on a null target."""

OPERATIONS_PER_CORE: Final = MetricSpec(
    "operations_per_core_s",
    "operations per core-second",
    "ops/s",
    BetterDirection.HIGHER,
    CombineRule.MEAN,
)
"""Operations for each second of processor time of the clients; of the whole run."""

TLS_SHARE: Final = MetricSpec(
    "tls_cpu_share",
    "encryption's part of processors",
    "share",
    BetterDirection.LOWER,
    CombineRule.MEAN,
)
"""The part of the clients' processor time that went to encryption."""

VERIFIED_SHARE: Final = MetricSpec(
    "verified_share", "verified contents", "share", BetterDirection.HIGHER, CombineRule.MEAN
)
"""The part of the bytes that were read and compared with what was put."""

METRICS: Final = (
    OPERATIONS,
    FAILED_SHARE,
    THROTTLED_SHARE,
    ATTEMPTS,
    CONNECTIONS_OPENED,
    GENERATOR_LIMIT,
    OPERATIONS_PER_CORE,
    TLS_SHARE,
    VERIFIED_SHARE,
)
