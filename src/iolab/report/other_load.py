"""What else than the load used the machines meanwhile: told before what limits the load itself."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from statistics import median
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

from msgspec.structs import replace

from iolab.core.metric import RunResult
from iolab.core.resources import Resource
from iolab.core.run import RunStatus
from iolab.core.study import Study
from iolab.report.phrases import Objection
from iolab.text import counted_noun, percent_text
from iolab.units import significant_digits_text

if TYPE_CHECKING:
    from iolab.core.resources import RunResources
    from iolab.core.run import RunKey

DOMINANT_OTHER_SHARE: Final = 0.5
"""Others' share, of the run's own I/O or of the processors, from which they are told first."""

TOLD_AS_TIMES: Final = 2.0
"""A larger share is told as so many times the whole."""

_STARVED_EVIDENCE: Final[tuple[str, str]] = ("client-starved", "others_busy_share")
_DEVICE_EVIDENCE: Final[tuple[str, str]] = ("device-busy", "share_of_run")

_OTHER_LOAD_EVIDENCE: Final[Mapping[str, tuple[str, str]]] = {
    "device-busy": _DEVICE_EVIDENCE,
    "client-starved": _STARVED_EVIDENCE,
    "cpu-bound-client": _STARVED_EVIDENCE,
}
"""Checks that others may be the reason of: (check, evidence) that has their share."""

OTHER_LOAD_CODES: Final = frozenset(_OTHER_LOAD_EVIDENCE)
"""Their codes."""


def is_explained_by_other_load(objection: Objection) -> bool:
    """Whether others were about as busy as the load itself in every run: then nothing else matters.

    The evidence is what others did on the devices before the start, or had of the processors.
    """
    runs = objection.runs_of_any_level
    if len(runs) < objection.session_run_count or objection.code not in _OTHER_LOAD_EVIDENCE:
        return False
    evidence = _OTHER_LOAD_EVIDENCE[objection.code]
    return median(_other_load_ratio(run, evidence) for run in runs) >= DOMINANT_OTHER_SHARE


def other_load_sentence(
    study: Study,
    results: Sequence[RunResult],
    run_resources: Mapping[RunKey, RunResources] = MappingProxyType({}),
) -> str:
    """What all else used of processors and devices, where it was most of them; empty for nothing.

    `Other programs used 96 to 98 % of the cores in all 12 runs.` A server that answers a load
    may use its machine's cores for it: of these nothing is known. `run_resources` are those of the
    runs behind the limits, which are told beside it.
    """
    done = [
        replace(result, resources=run_resources.get(result.key, result.resources))
        for result in results
        if result.status is RunStatus.DONE
    ]
    served = {workload.id for workload in study.workloads if workload.job.is_answered_by_server}
    own = [result for result in done if result.workload not in served]
    parts = [
        *_other_load_ratio_texts(
            own, _other_processor_share, "Other programs used {span} the cores in {where}"
        ),
        *_other_load_ratio_texts(
            done,
            _other_io_ratio_if_objected,
            "In {where} there was other I/O on the devices before the start, {span} the load's",
            min_ratio=0.0,
        ),
    ]
    return " ".join(f"{part}." for part in parts)


def other_processor_load_text(results: Sequence[RunResult]) -> str:
    """`other load on 92 to 97 % of the cores`, where it was most in each run of a figure."""
    shares = [_other_processor_share(result) for result in results]
    if min(shares, default=0.0) < DOMINANT_OTHER_SHARE:
        return ""
    return f"other load on {_ratio_range_text(min(shares), max(shares))} the cores"


def _other_load_ratio_texts(
    results: Sequence[RunResult],
    ratio_of_run: Callable[[RunResult], float],
    ratio_template: str,
    *,
    min_ratio: float = DOMINANT_OTHER_SHARE,
) -> list[str]:
    """The range of shares in the runs, and of how many, where others had most in any of them.

    Runs with less than `min_ratio` are left out.
    """
    shares = [share for run in results if (share := ratio_of_run(run)) > 0 and share >= min_ratio]
    if max(shares, default=0.0) < DOMINANT_OTHER_SHARE:
        return []
    span = _ratio_range_text(min(shares), max(shares))
    runs = counted_noun(len(results), "run")
    where = f"all {runs}" if len(shares) == len(results) else f"{len(shares)} of {runs}"
    if len(results) == 1:
        where = "the only run"
    return [ratio_template.format(span=span, where=where)]


def _ratio_range_text(min_ratio: float, max_ratio: float) -> str:
    """`79 to 98 % of`; where the most is many times the whole, that alone: `up to 78.7 times`."""
    if max_ratio >= TOLD_AS_TIMES:
        is_range = significant_digits_text(min_ratio) != significant_digits_text(max_ratio)
        return f"{'up to ' * is_range}{significant_digits_text(max_ratio)} times"
    low, high = percent_text(min_ratio), percent_text(max_ratio)
    span = high if low == high else f"{low.removesuffix(' %')} to {high}"
    return f"{span} of"


def _other_io_ratio_if_objected(result: RunResult) -> float:
    """What others did on the devices, in runs that the check objects to: as caveats count them."""
    code, _ = _DEVICE_EVIDENCE
    is_told = any(objection.code == code for objection in result.verdict.objections)
    return _other_load_ratio(result, _DEVICE_EVIDENCE) if is_told else 0.0


def _other_processor_share(result: RunResult) -> float:
    """What all else used of a client's processors: by counters, else by what a check found."""
    use = result.resources.busiest_use(Resource.PROCESSORS) if result.resources else None
    if use is not None and use.share is not None and use.own_load_share is not None:
        return max(use.share - use.own_load_share, 0.0)
    return _other_load_ratio(result, _STARVED_EVIDENCE)


def _other_load_ratio(result: RunResult, check_code_and_evidence_key: tuple[str, str]) -> float:
    """Others' part in one run; of processors it is evidence of the threads that waited for them."""
    source, name = check_code_and_evidence_key
    values = (check.evidence.get(name) for check in result.verdict.checks if check.code == source)
    share = next(values, None)
    return float(share) if isinstance(share, int | float) else 0.0
