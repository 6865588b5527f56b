"""What a buyer asks of checkpoints: how long a save and a restore take, and what that costs."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Final

from iolab.analysis.points import PointSummary
from iolab.core.metric import Metric, RunResult, VerdictLevel
from iolab.core.study import Study
from iolab.loads.checkpoint.metric_specs import RESTORE, SAVE
from iolab.loads.checkpoint.workload import CheckpointJob, SaveDurability
from iolab.report.numbers import DASH, metric_value_text, value_text
from iolab.report.table import Table, row_of_cells, text_and_number_columns
from iolab.text import counted_noun, percent_text
from iolab.units import NS_PER_S, format_bytes, format_duration_s

FAILURE_INTERVALS_S: Final = (3 * 3600.0, 3600.0, 1800.0)
"""Times between two failures of a whole cluster: of a few thousand accelerators, and of more."""


def optimal_checkpoint_interval_s(save_s: float, failure_interval_s: float) -> float:
    """How often to save so that saves and lost work cost least together: Young's formula."""
    return math.sqrt(2 * save_s * failure_interval_s)


def lost_time_share(save_s: float, restore_s: float, failure_interval_s: float) -> float:
    """The part of the time that saves, work done again and restores take at that interval."""
    interval_s = optimal_checkpoint_interval_s(save_s, failure_interval_s)
    return save_s / interval_s + (interval_s / 2 + restore_s) / failure_interval_s


def save_and_restore_sentences(study: Study, points: Sequence[PointSummary]) -> str:
    """Each checkpoint that was measured without being invalid; empty where none was."""
    return " ".join(
        _checkpoint_point_sentence(study, point)
        for point in _usable_points_with_save_time(study, points)
    )


def lost_time_table(study: Study, points: Sequence[PointSummary]) -> Table | None:
    """What each checkpoint costs, by how often the cluster fails; None without a whole one."""
    rows = tuple(
        row_of_cells(
            study.workload(point.key.workload).title,
            study.configuration_titles.get(point.key.configuration, point.key.configuration),
            format_duration_s(failures_s),
            format_duration_s(optimal_checkpoint_interval_s(save_s, failures_s)),
            percent_text(lost_time_share(save_s, restore_s, failures_s)),
        )
        for point in _usable_points_with_save_time(study, points)
        if _checkpoint_job(study, point).shrink == 1
        and (times := _save_and_restore_seconds(point)) is not None
        for save_s, restore_s in [times]
        for failures_s in FAILURE_INTERVALS_S
    )
    heads = text_and_number_columns(
        ("Workload", "Configuration"), ("One failure in", "Save every", "Lost time")
    )
    return Table("What checkpoints and failures cost", heads, rows) if rows else None


def _usable_points_with_save_time(
    study: Study, points: Sequence[PointSummary]
) -> Iterator[PointSummary]:
    for point in points:
        is_own = isinstance(study.workload(point.key.workload).job, CheckpointJob)
        if (
            is_own
            and point.verdict_level is not VerdictLevel.INVALID
            and point.metric_value(SAVE.key)
        ):
            yield point


def _checkpoint_job(study: Study, point: PointSummary) -> CheckpointJob:
    return CheckpointJob.require_type(study.workload(point.key.workload).job)


def _save_and_restore_seconds(point: PointSummary) -> tuple[float, float] | None:
    save_ns, restore_ns = point.metric_value(SAVE.key), point.metric_value(RESTORE.key)
    if not save_ns or not restore_ns:
        return None
    return save_ns / NS_PER_S, restore_ns / NS_PER_S


def _checkpoint_point_sentence(study: Study, point: PointSummary) -> str:
    """`Saves a Llama 3 70B checkpoint (978 GB, 64 ranks, 8 hosts) durably in 38 s [36, 40], …`."""
    job = _checkpoint_job(study, point)
    hosts = len(point.results[0].hosts) if point.results else 1
    facts = [
        format_bytes(job.checkpoint_files.total_bytes),
        *([f"tensors / {job.shrink}"] if job.shrink > 1 else []),
        str(job.layout),
        counted_noun(job.ranks, "rank"),
        counted_noun(hosts, "host"),
    ]
    durably = " durably" if job.durable is not SaveDurability.NONE else ""
    text = (
        f"Saves a {job.model_shape.title} checkpoint ({', '.join(facts)}){durably} in "
        f"{_metric_with_interval_text(point.metrics[SAVE.key])}"
    )
    restore = point.metrics.get(RESTORE.key)
    if restore is not None and restore.value is not None:
        by = ""
        if job.restore_ranks != job.ranks:
            by = f" by {counted_noun(job.restore_ranks, 'rank')}"
        cold = " cold" if all(map(_was_restored_cold, point.results)) else ""
        text += f", restores it{cold}{by} in {_metric_with_interval_text(restore)}"
    times = _save_and_restore_seconds(point)
    if times is not None and job.shrink == 1:
        failures_s = FAILURE_INTERVALS_S[0]
        interval = format_duration_s(optimal_checkpoint_interval_s(times[0], failures_s))
        share = percent_text(lost_time_share(*times, failures_s))
        text += (
            f"; at one failure in {format_duration_s(failures_s)}, saving every {interval} costs "
            f"{share} of the time"
        )
    doubt = " (indicative)" if point.verdict_level is VerdictLevel.INDICATIVE else ""
    return f"{text}{doubt}."


def _was_restored_cold(result: RunResult) -> bool:
    return any(
        check.code == "restored-from-memory" and check.level is VerdictLevel.VALID
        for check in result.verdict.checks
    )


def _metric_with_interval_text(metric: Metric) -> str:
    text = metric_value_text(metric)
    ends = metric.displayable_interval
    if text == DASH or ends is None:
        return text
    low, high = (value_text(end, metric.unit) for end in ends)
    return f"{text} [{low}, {high}]"
