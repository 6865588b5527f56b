"""Whether the ground moves under a study, told by the point that it measures again and again."""

from __future__ import annotations

import math
from collections.abc import Sequence
from enum import StrEnum
from typing import Final

from iolab.record import Record
from iolab.stats.repeats import logarithms

_JUMP_SDS: Final = 4.5
"""A difference of two runs has sqrt(2) standard deviations: 4.5 are 3.2 of those. Over 24 sentinels
3 % false alarms."""

_SLOPE_SDS: Final = 3.2
"""Looked at after each sentinel anew; over 24 of them 2 % false alarms."""

_SLOPE_MIN: Final = 0.01
"""A drift below 1 % in all harms no cell."""

_SLOPE_POINTS: Final = 3


class SentinelShiftForm(StrEnum):
    """What the sentinels say of the ground under a study."""

    STILL = "still"
    JUMPED = "jumped"
    DRIFTED = "drifted"


class SentinelVerdict(Record):
    """The verdict on the sentinels so far: what moved, and by how much (a log ratio)."""

    movement: SentinelShiftForm
    change: float


def judge_sentinel(run_means: Sequence[float], sd: float) -> SentinelVerdict:
    """Whether the latest sentinel gives alarm; `sd` is the moderated one of log run means.

    `run_means` are all since the state was last made anew: after an alarm the device is conditioned
    again, the block of cells repeated, and the list begins anew.
    """
    logs = logarithms(run_means)
    if len(logs) < 2:
        return SentinelVerdict(SentinelShiftForm.STILL, 0.0)
    jump = logs[-1] - logs[-2]
    if abs(jump) > _JUMP_SDS * sd:
        return SentinelVerdict(SentinelShiftForm.JUMPED, jump)
    t = [place - (len(logs) - 1) / 2 for place in range(len(logs))]
    norm = math.fsum(at * at for at in t)
    slope = math.fsum(at * log for at, log in zip(t, logs, strict=True)) / norm
    drift = slope * (len(logs) - 1)
    clear = len(logs) >= _SLOPE_POINTS and abs(slope) * math.sqrt(norm) > _SLOPE_SDS * sd
    if clear and abs(drift) > _SLOPE_MIN:
        return SentinelVerdict(SentinelShiftForm.DRIFTED, drift)
    return SentinelVerdict(SentinelShiftForm.STILL, drift)
