"""The check of whether all runs of a sweep began from the same state of their targets."""

from __future__ import annotations

from typing import Final

from iolab.analyse.checks.registry import Said, check, indicative, valid, worst
from iolab.analyse.view import RunView
from iolab.model.state import TargetState
from iolab.units import format_bytes

STATE_SHARE: Final = 0.10
"""Of the used region: writes of so much between two runs move a drive that was filled twice by less
than its own steady state varies (SNIA grants 10 % of slope)."""


@check("unequal-state", "Unequal state", needs_load=False)
def unequal_state(view: RunView) -> Said:
    """Whether the run began from the state from which the first of its sweep began."""
    states = view.record.states
    if not states:
        return valid("The study asks for no start state, and none was kept.", states=0)
    return worst((_judged(state) for state in states), most="moved_bytes")


def _judged(state: TargetState) -> Said:
    moved = abs(state.written_bytes - state.compared_bytes)
    evidence: dict[str, int | float | str | bool | None] = {
        "host": state.host,
        "purged_by": state.purged_by.value,
        "filled": state.filled,
        "region_bytes": state.region_bytes,
        "written_bytes": state.written_bytes,
        "compared_bytes": state.compared_bytes,
        "moved_bytes": moved,
        "foreign_bytes": state.foreign_bytes,
        "steady": state.steady,
    }
    if state.unknown is not None:
        return indicative(f"The state of {state.host} is unknown: {state.unknown}.", **evidence)
    if state.foreign_bytes:
        size = format_bytes(state.foreign_bytes)
        return indicative(f"Somebody else wrote {size} to the target of {state.host}.", **evidence)
    if state.steady is False:
        return indicative(f"{state.host} had not reached a steady state: NOT ACHIEVED.", **evidence)
    if state.steady:
        return valid("The steady state of this workload was reached before.", **evidence)
    if moved > STATE_SHARE * state.region_bytes:
        return indicative(
            f"{format_bytes(moved)} were written on {state.host} since the first run of this "
            f"sweep began: it was in another state.",
            **evidence,
        )
    return valid("The state was that of the first run of this sweep.", **evidence)
