"""Checks of what the drives below the target counted themselves."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from iolab.analysis.check import (
    CheckAnswer,
    EvidenceValues,
    check,
    indicative_answer,
    not_applicable_answer,
    per_host,
    valid_answer,
)
from iolab.analysis.view import RunView
from iolab.analysis.wear import DriveCounterChange, drive_counter_changes
from iolab.text import counted_noun
from iolab.units import format_bytes

_NO_DRIVE: Final = not_applicable_answer("No log page of an NVMe drive was read.")
_NO_COUNTERS: Final = not_applicable_answer("No counters of an NVMe drive can be compared.")
_NO_POWER_STATE: Final = not_applicable_answer("No power state of an NVMe drive was read.")


@check("drive-counters", "Counters of the drive")
@per_host()
def check_drive_counters(view: RunView, host_index: int) -> Iterator[CheckAnswer]:
    """Whether the drive was on throughout and its counters went on."""
    for change in drive_counter_changes(view, host_index):
        evidence = _drive_evidence(change)
        if change.was_reset:
            yield indicative_answer(
                f"The drive {change.name} was switched off, or its counters fell, in the run.",
                **evidence,
            )
        elif change.has_stuck_counters:
            yield indicative_answer(
                f"The drive {change.name} counted nothing while "
                f"{format_bytes(change.block_layer_written_bytes)} were written on it.",
                **evidence,
            )
        elif change.fault:
            yield not_applicable_answer(f"The drive {change.name}: {change.fault}.", **evidence)
        else:
            yield valid_answer(f"The counters of the drive {change.name} went on.", **evidence)
    yield _NO_DRIVE


@check("foreign-drive-writer", "Something else wrote on the drive")
@per_host(max_key="foreign_bytes")
def check_foreign_drive_writer(view: RunView, host_index: int) -> Iterator[CheckAnswer]:
    """Whether the drive counted more bytes than this host's block layer wrote on it.

    Another namespace, another host or another guest shares the drive then: what it did cost the
    load some of the drive's time.
    """
    yield _NO_COUNTERS
    for change in _comparable_drive_changes(view, host_index):
        evidence = _drive_evidence(change) | {"foreign_bytes": change.foreign_written_bytes}
        if change.foreign_written_bytes:
            yield indicative_answer(
                f"The drive {change.name} counted {format_bytes(change.foreign_written_bytes)} "
                "more than this device wrote: another namespace, host or guest wrote on it.",
                **evidence,
            )
        else:
            yield valid_answer(
                f"The drive {change.name} counted what its block device wrote.", **evidence
            )


@check("drive-throttled", "Drive slowed down by heat")
@per_host(max_key="throttled_s")
def check_drive_throttled(view: RunView, host_index: int) -> Iterator[CheckAnswer]:
    """Whether the drive's own counters of thermal management rose."""
    yield _NO_COUNTERS
    for change in _comparable_drive_changes(view, host_index):
        seconds = change.throttled_s or 0
        evidence: EvidenceValues = {"drive": change.name, "throttled_s": seconds}
        if seconds:
            duration = counted_noun(seconds, "second")
            yield indicative_answer(
                f"Heat slowed the drive {change.name} down for {duration}.", **evidence
            )
        else:
            yield valid_answer(f"Heat did not slow the drive {change.name} down.", **evidence)


@check("drive-power-state", "Power state of the drive")
@per_host()
def check_drive_power_state(view: RunView, host_index: int) -> Iterator[CheckAnswer]:
    """Whether the drive was in its state of full power before and after the run."""
    yield _NO_POWER_STATE
    for change in drive_counter_changes(view, host_index):
        states = change.before.power_state, change.after.power_state if change.after else None
        if None in states:
            continue
        evidence: EvidenceValues = {
            "drive": change.name,
            "power_state_before": states[0],
            "power_state_after": states[1],
        }
        if any(states):
            yield indicative_answer(
                f"The drive {change.name} was in power state {max(map(int, filter(None, states)))} "
                "instead of 0: its power is capped.",
                **evidence,
            )
        else:
            yield valid_answer(
                f"The drive {change.name} was in its state of full power.", **evidence
            )


def _comparable_drive_changes(view: RunView, host_index: int) -> Iterator[DriveCounterChange]:
    for change in drive_counter_changes(view, host_index):
        if not change.fault and not change.was_reset:
            yield change


def _drive_evidence(change: DriveCounterChange) -> EvidenceValues:
    return {
        "drive": change.name,
        "block_bytes": change.block_layer_written_bytes,
        "data_units_written": change.written_data_units,
    }
