"""The metrics of checkpoint load that are no latencies of requests."""

from __future__ import annotations

from typing import Final

from iolab.core.metric_spec import BetterDirection, CombineRule, MetricSpec

SAVE: Final = MetricSpec("save_ns", "save time", "ns", BetterDirection.LOWER, CombineRule.MEAN)
"""From the common start to the slowest rank's last flush, close or rename."""

RESTORE: Final = MetricSpec(
    "restore_ns", "restore time", "ns", BetterDirection.LOWER, CombineRule.MEAN
)
"""From the common start to the slowest rank's last close."""

SAVE_RATE: Final = MetricSpec(
    "save_bytes_per_s", "save rate", "bytes/s", BetterDirection.HIGHER, CombineRule.RATE
)
"""Bytes of the checkpoint over the save time."""

RESTORE_RATE: Final = MetricSpec(
    "restore_bytes_per_s", "restore rate", "bytes/s", BetterDirection.HIGHER, CombineRule.RATE
)
"""Bytes that the ranks want over the restore time."""

SAVE_SYNC_SHARE: Final = MetricSpec(
    "save_sync_share", "flush share", "share", BetterDirection.LOWER, CombineRule.MEAN
)
"""Part of the slowest rank's time that it flushed, closed and renamed."""

SAVE_SPREAD: Final = MetricSpec(
    "save_rank_spread", "save rank spread", "x", BetterDirection.LOWER, CombineRule.EXTREME
)
"""The slowest rank's time over the median one's."""

RESTORE_SPREAD: Final = MetricSpec(
    "restore_rank_spread", "restore rank spread", "x", BetterDirection.LOWER, CombineRule.EXTREME
)
"""The same of the restore."""

AMPLIFICATION: Final = MetricSpec(
    "restore_amplification", "restore amplification", "x", BetterDirection.LOWER, CombineRule.MEAN
)
"""Bytes that the devices read for each that the ranks want."""

PUBLISHED_SAVE: Final = MetricSpec(
    "published_save_bytes_per_s",
    "published save rate",
    "bytes/s",
    BetterDirection.HIGHER,
    CombineRule.RATE,
)
"""As the published benchmark computes it: all bytes over the first rank's own time."""

PUBLISHED_RESTORE: Final = MetricSpec(
    "published_restore_bytes_per_s",
    "published restore rate",
    "bytes/s",
    BetterDirection.HIGHER,
    CombineRule.RATE,
)
"""The same of the restore."""

METRICS: Final = (
    SAVE,
    RESTORE,
    SAVE_RATE,
    RESTORE_RATE,
    SAVE_SYNC_SHARE,
    SAVE_SPREAD,
    RESTORE_SPREAD,
    AMPLIFICATION,
    PUBLISHED_SAVE,
    PUBLISHED_RESTORE,
)
