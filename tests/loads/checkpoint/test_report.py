"""The answer of a checkpoint session: times, cold or not, and what failures cost."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from iolab.analysis.kinds import judge_run
from iolab.analysis.points import summarise_points
from iolab.core.metric import RunResult
from iolab.core.run import RunRecord
from iolab.core.study import Study
from iolab.core.workload import Workload
from iolab.loads.checkpoint.answer import (
    lost_time_share,
    lost_time_table,
    optimal_checkpoint_interval_s,
    save_and_restore_sentences,
)
from iolab.loads.checkpoint.charts import rank_times_chart
from iolab.loads.checkpoint.workload import BY_SAVE_TIME, CheckpointJob
from iolab.registry import analysis_kinds
from iolab.report.charts.palette import series_color_token
from tests.analysis.records import facts_of
from tests.loads.checkpoint.records import JOB, saved_and_restored, with_cached_half, with_straggler
from tests.study.studies import load

STUDY = """
format = 1
id = "saves"

[[workload]]
id = "saves"
engine = "checkpoint"
shrink = 64
"""


def result_of(record: RunRecord) -> RunResult:
    facts = {host.host: facts_of(host.host) for host in record.hosts}
    return replace(judge_run(record, facts, analysis_kinds()), workload="saves")


def study_of(job: CheckpointJob) -> Study:
    study = load(STUDY)
    workload = Workload("saves", "Saves", job, (), BY_SAVE_TIME)
    return replace(study, workloads=(workload,))


def test_youngs_formula_gives_the_figures_that_were_worked_out_apart() -> None:
    """A save of 38 s, a restore of 41 s, one failure in three hours."""
    assert optimal_checkpoint_interval_s(38, 10_800) == pytest.approx(906, abs=1)
    assert lost_time_share(38, 41, 10_800) == pytest.approx(0.088, abs=0.0005)


def test_the_answer_tells_both_times_and_what_was_shrunk() -> None:
    study = study_of(JOB)
    points = summarise_points([result_of(saved_and_restored())], study)
    text = save_and_restore_sentences(study, points)
    for part in (
        "Llama 3 8B",
        "tensors / 64",
        "8 ranks",
        "1 host",
        "durably in 7.2",
        "cold in 7.2",
    ):
        assert part in text, text
    # What a small checkpoint costs is no figure of the model's.
    assert "failure" not in text
    assert lost_time_table(study, points) is None


def test_a_whole_checkpoint_has_its_cost() -> None:
    job = replace(JOB, shrink=1)
    study = study_of(job)
    points = summarise_points([result_of(saved_and_restored(job))], study)
    text = save_and_restore_sentences(study, points)
    assert "at one failure in 3 h" in text
    table = lost_time_table(study, points)
    assert table is not None
    assert len(table.rows) == 3


def test_what_memory_answered_is_not_told() -> None:
    study = study_of(JOB)
    record = saved_and_restored(restore=with_cached_half)
    assert save_and_restore_sentences(study, summarise_points([result_of(record)], study)) == ""


def test_the_chart_names_the_slowest_rank() -> None:
    record = saved_and_restored(save=with_straggler)
    chart = rank_times_chart("Saves", record.hosts, series_color_token(0))
    assert chart is not None
    assert "save ends with rank 7 on c1 after 21" in chart.finding
    assert "restore ends with rank 3" in chart.finding
    assert len(chart.plots) == 2
    assert len(chart.table.rows) == 16
