"""Checks of what others did on the target's devices just before the start."""

from __future__ import annotations

from typing import Final

import numpy as np

from iolab.analysis.check import (
    CheckAnswer,
    EvidenceValues,
    check,
    indicative_answer,
    per_host,
    unchecked_answer,
    valid_answer,
)
from iolab.analysis.sums import DIRECTIONS
from iolab.analysis.view import RunView
from iolab.core.run import IDLE_BYTES_PER_S, IDLE_IOS_PER_S, HostRun
from iolab.units import format_count, format_rate_bytes

DEVICES_NAMED: Final = 4
"""Devices below a target that are named; the facts have them all."""

OTHERS_SHARE: Final = 0.02
"""Share of the run's own rate that others may have had just before it started."""

TIMES_MAX: Final = 1000
"""Above it the run itself did next to nothing, and how many times that is says no more."""


@check("device-busy", "Device busy before the start")
@per_host(max_key="share_of_run")
def check_device_busy(view: RunView, host_index: int) -> CheckAnswer:
    """Whether others used the target's devices just before the start.

    Against the I/O that the engine did in the window.
    """
    load = view.load
    ios = float(load.ios[host_index, : len(DIRECTIONS)].sum())
    moved = float(load.bytes[host_index].sum())
    return _others_io_before_run_answer(
        view, host_index, moved, ios, float(load.seconds[host_index])
    )


def others_io_before_run_answer(
    view: RunView, host_index: int, run_seconds: float | None
) -> CheckAnswer:
    """Whether others used a host's devices just before, against what they moved in the run.

    `run_seconds` are those in which they moved it; None where nobody knows.
    """
    devices = view.hosts[host_index].devices
    moved = max((device.read_bytes + device.write_bytes for device in devices), default=0)
    ios = max((device.read_ios + device.write_ios for device in devices), default=0)
    return _others_io_before_run_answer(view, host_index, moved, ios, run_seconds)


def _others_io_before_run_answer(
    view: RunView, host_index: int, run_bytes: float, run_ios: float, run_seconds: float | None
) -> CheckAnswer:
    """What others did before, against the bytes and I/Os of the run itself in its seconds."""
    host = view.hosts[host_index]
    proof = host.pre_run_activity
    if proof is None or run_seconds is None:
        return unchecked_answer(f"the devices of {host.host} were not watched before the start")
    run_seconds = max(run_seconds, 1e-9)
    share = max(
        _other_rate_ratio(proof.bytes_per_s, IDLE_BYTES_PER_S, run_bytes / run_seconds),
        _other_rate_ratio(proof.ios_per_s, IDLE_IOS_PER_S, run_ios / run_seconds),
    )
    text = (
        f"Before the start {_busiest_watched_device_text(view, host)} did "
        f"{format_count(proof.ios_per_s)} IOPS "
        f"and {format_rate_bytes(proof.bytes_per_s)} for others"
    )
    evidence: EvidenceValues = {
        "host": host.host,
        "watched_s": proof.watched_s,
        "bytes_per_s": proof.bytes_per_s,
        "ios_per_s": proof.ios_per_s,
        "share_of_run": share,
    }
    if share <= OTHERS_SHARE:
        return valid_answer(f"{text}.", **evidence)
    times = f"over {TIMES_MAX:,}" if share >= TIMES_MAX else f"{share:.3g}"
    return indicative_answer(f"{text}: {times} times the run's own.", **evidence)


def _busiest_watched_device_text(view: RunView, host: HostRun) -> str:
    """The devices that were watched, by their names where they are known; the busiest counts."""
    target = view.target_of_host(host)
    names = target.devices if target else ()
    if len(names) == 1:
        return f"{names[0]}{view.on_host_if_several(host)}"
    more = f" and {len(names) - DEVICES_NAMED} more" if len(names) > DEVICES_NAMED else ""
    named = f" of {', '.join(names[:DEVICES_NAMED])}{more}" if names else ""
    return f"the busiest device{view.on_host_if_several(host)}{named}"


def _other_rate_ratio(other_rate: float, min_other_rate: float, run_rate: float) -> float:
    """Others' rate over the run's own; nothing where others stayed below the floor."""
    if other_rate <= min_other_rate or not np.isfinite(other_rate):
        return 0.0
    return other_rate / max(run_rate, 1e-9)
