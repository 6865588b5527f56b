"""The answer and the chart of training reads: how many accelerators, and what they wait for."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from msgspec.structs import replace

from iolab.analysis.kinds import judge_run
from iolab.analysis.points import PointSummary, summarise_points
from iolab.loads.training.answer import accelerator_utilisation_sentences
from iolab.loads.training.charts import step_parts_chart
from iolab.registry import analysis_kinds
from iolab.report.charts.chart import LineSegments, Rectangles, series_styles
from tests.analysis.records import facts_of
from tests.loads.training.records import JOB, RUN, trained
from tests.study.studies import load

STUDY = load(
    """
format = 1
id = "training"

[[workload]]
id = "reads"
engine = "training-read"
dataset = "unet3d"
accelerators = [2, 4]
"""
)
WAITING = {"storage": 20, "barrier": 3, "lateness": 1}
"""Hundredths of a step of which 76 are left for computing."""


def points_of(storage: Sequence[bool], epochs: int = 3) -> list[PointSummary]:
    """Of two and four accelerators; those that wait for storage fall below nine tenths."""
    results = []
    for count, waits in zip((2, 4), storage, strict=True):
        parts = WAITING if waits else {}
        computing = 76 if waits else 92
        job = replace(JOB, accelerators=count, compute_ns=computing * 1_000_000)
        later = RUN.later_epochs
        if epochs == 1:
            later = replace(later, steps=0, step_ns=0)
        record = trained(job=job, parts=parts, later_epochs=later)
        facts = {host.host: facts_of(host.host) for host in record.hosts}
        result = judge_run(record, facts, analysis_kinds())
        axis = (("accelerators", count),)
        results.append(replace(result, workload="reads", axis_values=axis, digest=f"{count}"))
    return list(summarise_points(results, STUDY))


@pytest.mark.parametrize(
    ("storage", "facts"),
    [
        ((False, False), ("Keeps 4 emulated h100 accelerators of 3D U-Net", "most that were")),
        (
            (False, True),
            ("Keeps 2 emulated", "at 92 %", "4 fall to 76 %", "wait for storage 20 % of the time"),
        ),
        ((True, True), ("Does not keep 2 emulated", "at 90 %", "76 %", "storage 20 %")),
    ],
)
def test_the_answer_is_the_most_accelerators_and_what_more_wait_for(
    storage: tuple[bool, bool], facts: tuple[str, ...]
) -> None:
    text = accelerator_utilisation_sentences(STUDY, points_of(storage))
    assert all(fact in text for fact in facts), text


def test_only_several_epochs_are_compared() -> None:
    assert "no faster than in the first" in accelerator_utilisation_sentences(
        STUDY, points_of((False, False))
    )
    assert "epochs" not in accelerator_utilisation_sentences(
        STUDY, points_of((False, False), epochs=1)
    )


def test_the_chart_has_the_parts_of_all_time() -> None:
    chart = step_parts_chart(STUDY.workloads[0], points_of((False, True)), series_styles(STUDY))
    assert chart is not None
    assert "Up to 2 accelerators" in chart.finding
    bars = chart.plots[1]
    ends = [box[2] for mark in bars.marks if isinstance(mark, Rectangles) for box in mark.boxes]
    assert sum(end == pytest.approx(1.0) for end in ends) == 2
    (threshold,) = [mark for mark in bars.marks if isinstance(mark, LineSegments)]
    assert threshold.segments[0][0] == 0.9
    assert [row[3].text for row in chart.table.rows] == ["92 %", "76 %"]
