"""What a buyer asks of training reads: how many accelerators are kept busy, and why not more."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from iolab.analysis.points import AxisValues, PointSummary
from iolab.core.metric import VerdictLevel
from iolab.core.study import Study
from iolab.core.workload import Workload
from iolab.loads.training.datasets import CUSTOM, SAMPLE_SETS
from iolab.loads.training.metric_specs import (
    BARRIER_WAIT,
    LATENESS,
    STORAGE_WAIT,
    UTILISATION,
)
from iolab.loads.training.workload import TrainingJob
from iolab.report.numbers import axis_values_text, metric_value_text
from iolab.text import counted_noun, percent_text

AXIS: Final = "accelerators"

CAUSES: Final = (
    (STORAGE_WAIT, "they wait for storage {} of the time"),
    (BARRIER_WAIT, "they wait for each other {} of the time"),
    (LATENESS, "the emulator is late for {} of the time"),
)
"""What keeps accelerators from computing; the greatest is named."""


def accelerator_utilisation_sentences(study: Study, points: Sequence[PointSummary]) -> str:
    """Each workload that was measured without being invalid; empty where none was."""
    return " ".join(
        _workload_sentence(study.workload(workload), others, own)
        for (workload, _, others), own in _usable_points_by_axes_without_accelerators(
            study, points
        ).items()
    )


def accelerator_count_of_point(workload: Workload, point: PointSummary) -> int:
    """How many the point has, on its axis or by its job."""
    job = TrainingJob.require_type(workload.job)
    return int(dict(point.key.axis_values).get(AXIS, job.accelerators))


def _usable_points_by_axes_without_accelerators(
    study: Study, points: Sequence[PointSummary]
) -> Mapping[tuple[str, str, AxisValues], list[PointSummary]]:
    """Those that are not invalid, by workload, configuration and all axes but accelerators."""
    grouped: dict[tuple[str, str, AxisValues], list[PointSummary]] = {}
    for point in points:
        is_own = isinstance(study.workload(point.key.workload).job, TrainingJob)
        if (
            is_own
            and point.verdict_level is not VerdictLevel.INVALID
            and point.metric_value(UTILISATION.key)
        ):
            others = tuple(pair for pair in point.key.axis_values if pair[0] != AXIS)
            key = (point.key.workload, point.key.configuration, others)
            grouped.setdefault(key, []).append(point)
    return grouped


def _workload_sentence(
    workload: Workload, other_axis_values: AxisValues, points: Sequence[PointSummary]
) -> str:
    """`Keeps 24 emulated h100 accelerators of 3D U-Net at 92 %; 32 fall to 83 %, for …`."""
    job = TrainingJob.require_type(workload.job)
    ordered = sorted(points, key=lambda point: accelerator_count_of_point(workload, point))
    fed = [
        point for point in ordered if (point.metric_value(UTILISATION.key) or 0.0) >= job.threshold
    ]
    own = workload.title if job.dataset == CUSTOM else SAMPLE_SETS[job.dataset].title
    name = f"{own}, {axis_values_text(other_axis_values)}" if other_axis_values else own
    if not fed:
        least = ordered[0]
        emulated = _emulated_accelerators_text(job, accelerator_count_of_point(workload, least))
        text = (
            f"Does not keep {emulated} of {name} at {percent_text(job.threshold)}: "
            f"{_utilisation_text(least)}{_largest_wait_cause_suffix(least)}"
        )
        return f"{text}{_indicative_suffix(least)}."
    best = fed[-1]
    count = accelerator_count_of_point(workload, best)
    text = f"Keeps {_emulated_accelerators_text(job, count)} of {name} at {_utilisation_text(best)}"
    beyond = next((p for p in ordered if accelerator_count_of_point(workload, p) > count), None)
    if beyond is None:
        text += ", the most that were tried"
    else:
        more = accelerator_count_of_point(workload, beyond)
        text += f"; {more} fall to {_utilisation_text(beyond)}{_largest_wait_cause_suffix(beyond)}"
    return f"{text}; {_read_rate_and_epoch_trend_text(best)}{_indicative_suffix(best)}."


def _emulated_accelerators_text(job: TrainingJob, count: int) -> str:
    return counted_noun(count, f"emulated {job.accelerator} accelerator".replace("  ", " "))


def _utilisation_text(point: PointSummary) -> str:
    return f"{metric_value_text(point.metrics[UTILISATION.key])} utilisation"


def _largest_wait_cause_suffix(point: PointSummary) -> str:
    share, text = max(
        ((point.metric_value(spec.key) or 0.0, text) for spec, text in CAUSES),
        key=lambda cause: cause[0],
    )
    return f", for {text.format(percent_text(share))}"


def _read_rate_and_epoch_trend_text(point: PointSummary) -> str:
    rate = f"{metric_value_text(point.metrics.get('read_bw_bytes_per_s'))} are read"
    later = {
        check.level
        for result in point.results
        for check in result.verdict.checks
        if check.code == "first-epoch"
    }
    if later != {VerdictLevel.VALID}:
        return rate
    return f"{rate}, in later epochs no faster than in the first"


def _indicative_suffix(point: PointSummary) -> str:
    return " (indicative)" if point.verdict_level is VerdictLevel.INDICATIVE else ""
