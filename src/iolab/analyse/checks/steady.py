"""Checks of whether a run had become steady, and of how well its mean is known."""

from __future__ import annotations

from typing import Final

from iolab.analyse.checks.registry import (
    Numbers,
    Said,
    check,
    indicative,
    invalid,
    percent,
    unchecked,
    valid,
)
from iolab.analyse.steady import EXCESS_TOLERABLE, Steady
from iolab.analyse.view import RunView
from iolab.model.rule import SeriesStatus

DRIFT_TOLERABLE: Final = 0.10
"""Difference of the halves from which a run that is not steady is no measure at all: what SNIA's
performance test specification allows within a steady state."""

TOO_SHORT: Final = "The run is too short to be judged."


@check("transient", "Not steady")
def transient(view: RunView) -> Said:
    """Whether the run's start had faded and its two halves agree."""
    steady = view.steady
    if steady is None:
        return _unseen(view)
    told, evidence = steady.steadiness, _evidence(steady)
    if told.status is SeriesStatus.TRANSIENT:
        return _not_steady(view, steady, evidence)
    if abs(steady.excess) > EXCESS_TOLERABLE:
        return indicative(
            f"Warm-up was too short: the result lies {percent(steady.excess)} off what the run "
            f"came to after {told.cut_s} s.",
            **evidence,
        )
    return valid(f"Steady after {told.cut_s} s of {told.seconds} s.", **evidence)


def _not_steady(view: RunView, steady: Steady, evidence: Numbers) -> Said:
    said = f"Not steady. {' '.join(steady.steadiness.reasons)}"
    if view.record.rule is not None and abs(steady.halves) > DRIFT_TOLERABLE:
        return invalid(f"{said} This is no steady state's number.", **evidence)
    return indicative(said, **evidence)


@check("cycle", "A cycle seen too few times")
def cycle(view: RunView) -> Said:
    """Whether enough whole cycles were seen where the rate swings."""
    steady = view.steady
    if steady is None:
        return _unseen(view)
    told = steady.steadiness
    evidence: Numbers = {"period_s": told.period_s, "cycles": told.cycles}
    if told.status is SeriesStatus.CYCLE:
        return indicative(f"Too few cycles. {' '.join(told.reasons)}", **evidence)
    if told.period_s is None:
        return valid("The rate does not swing.", **evidence)
    return valid(f"{told.cycles} whole cycles of {told.period_s} s were seen.", **evidence)


@check("imprecise", "Mean not known well enough")
def imprecise(view: RunView) -> Said:
    """Whether the rate's mean is known as well as the rule asks; without one, for information."""
    steady = view.steady
    if steady is None:
        return _unseen(view)
    told, rule = steady.steadiness, view.record.rule
    evidence: Numbers = {"half_width": told.half_width, "df": told.df, "stalls": steady.episodes}
    if rule is None:
        return valid(f"The run's own mean is known to ±{percent(told.half_width)}.", **evidence)
    evidence["precision"] = rule.precision
    said = f"The mean is known to ±{percent(told.half_width)}, asked was ±{percent(rule.precision)}"
    if told.half_width > rule.precision:
        stalls = f": it stalled {steady.episodes} times" if steady.episodes else ""
        return indicative(f"{said}{stalls}.", **evidence)
    return valid(f"{said}.", **evidence)


def _unseen(view: RunView) -> Said:
    if view.record.rule is None:
        return valid(TOO_SHORT, judged=False)
    return unchecked("the run ended before its rule could look at it", judged=False)


def _evidence(steady: Steady) -> Numbers:
    told = steady.steadiness
    return {
        "status": told.status.value,
        "cut_s": told.cut_s,
        "seconds": told.seconds,
        "halves": steady.halves,
        "tau_s": told.tau_s,
        "excess": steady.excess,
    }
