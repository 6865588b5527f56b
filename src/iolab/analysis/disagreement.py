"""Whether the repeats of a point tell of one thing, so that their mean says what each did. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from iolab.analysis.points import REPLICATED, enters, grouped, value_of
from iolab.core.metric import CheckResult, Level, Result
from iolab.core.study import Study

CODE: Final = "repeats-disagree"
"""The check's code; docs/reference/checks/repeats-disagree.md says what it means."""

RANGE_GOOD: Final = 0.20
"""(max - min) / mean of the repeats, as SNIA's PTS allows it to the rounds of one steady state.
Runs that scatter by 3.7 %, the most between instances of public clouds (arXiv 2504.11826), stay
within it 999 times in 1000: three of them are less than 5.06 standard deviations apart then."""

RATIO_BAD: Final = 2.0
"""The largest over the least from which on the mean is a value that no run came near. Of runs that
scatter by 10 %, below which three in four configurations stay (Cao and others, FAST'17), five
reach 1.7 once in 1000."""


def mark_disagreeing(results: Sequence[Result], study: Study) -> tuple[Result, ...]:
    """The results; those whose repeats do not agree in their headline figure say so.

    Metadata load has no single figure, and its tables show least, most and deviation.
    """
    figures = {item.id: item.metric for item in study.workloads if item.metric}
    checks: dict[tuple[str, int, int], CheckResult] = {}
    for key, runs in grouped(results).items():
        if key.workload not in figures:
            continue
        check = _compared(runs, figures[key.workload])
        if check is not None:
            checks |= dict.fromkeys((_place(run) for run in runs if enters(run)), check)
    return tuple(result.judged(checks.get(_place(result))) for result in results)


def _place(run: Result) -> tuple[str, int, int]:
    return run.digest, run.repeat, run.attempt


def _compared(runs: Sequence[Result], figure: str) -> CheckResult | None:
    """The objection to runs that stand behind one point's value; None where there is none."""
    values = [
        value for run in runs if enters(run) and (value := value_of(run, figure)) and value > 0
    ]
    if len(values) < REPLICATED:
        return None
    least, most, mean = min(values), max(values), sum(values) / len(values)
    spread, ratio = (most - least) / mean, most / least
    evidence: dict[str, int | float | str | bool | None] = {
        "runs": len(values),
        "metric": figure,
        "least": least,
        "most": most,
        "range_share": spread,
    }
    said = f"{len(values)} repeats differ by {100 * spread:.0f} % of their mean"
    if ratio >= RATIO_BAD:
        says = f"{said}, the most is {ratio:.3g} times the least: no value stands for all of them."
        return CheckResult(CODE, Level.INVALID, says, evidence)
    if spread > RANGE_GOOD:
        says = f"{said}; {100 * RANGE_GOOD:.0f} % are allowed."
        return CheckResult(CODE, Level.INDICATIVE, says, evidence)
    return None
