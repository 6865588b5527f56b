"""Metadata load on the terminal: the summary, the plan, and what is told while it runs."""

from __future__ import annotations

import io
import re
from collections.abc import Iterable
from dataclasses import replace

import pytest
from rich.console import Console, RenderableType

from iolab.cli.live import LinesView
from iolab.cli.panel import panel
from iolab.cli.planning import plan_document, plan_screen
from iolab.cli.progress import Progress
from iolab.cli.results import details_screen, results_screen
from iolab.model.event import IntervalSeen, Phase, PhaseStarted, RunStarted
from iolab.model.metric import Result
from iolab.model.run import RunStatus
from tests.report.metadata_session import JOB, MetadataSource, kpi_with_metadata


@pytest.fixture(scope="module")
def source() -> MetadataSource:
    return kpi_with_metadata()


def of_metadata(source: MetadataSource) -> list[Result]:
    return [result for result in source.results() if result.workload == "metadata"]


def drawn(parts: Iterable[RenderableType], width: int = 140) -> list[str]:
    out = io.StringIO()
    console = Console(file=out, width=width, markup=False, highlight=False, color_system=None)
    for part in parts:
        console.print(part)
    return [line.rstrip() for line in out.getvalue().splitlines()]


def test_each_operation_is_a_row_with_its_statistics_and_verdict(source: MetadataSource) -> None:
    lines = drawn(results_screen(source.study, source.results()))
    head = next(line for line in lines if line.startswith("operations/s"))
    names = ["max", "min", "mean", "std dev", "p50", "p99", "p99.9", "over", "verdict"]
    assert re.split(r" {2,}", head)[1:] == names
    assert "Metadata operations, 3 iterations" in lines
    stat = re.split(r" {2,}", next(line for line in lines if "File stat" in line).strip())
    assert stat[0] == "File stat"
    assert stat[8:10] == ["window", stat[9]]
    assert stat[9].startswith("indicative ")
    assert next(line for line in lines if "Tree create" in line).split()[-3] == "whole"
    assert any(line.startswith("Read IOPS") for line in lines)


def test_failed_iterations_are_said(source: MetadataSource) -> None:
    first, *others = of_metadata(source)
    failed = replace(first, status=RunStatus.FAILED, failure="The disk was full.")
    lines = drawn(results_screen(source.study, [failed, *others]))
    assert "Metadata operations, 2 iterations, 1 not done and left out" in lines
    assert any("The disk was full." in line for line in lines)


def test_a_session_in_which_nothing_was_done_has_no_table(source: MetadataSource) -> None:
    failed = [replace(r, status=RunStatus.FAILED, failure="No.") for r in of_metadata(source)]
    lines = drawn(results_screen(source.study, failed))
    assert not any(line.startswith("operations/s") for line in lines)
    assert sum("failed. No." in line for line in lines) == 3


def test_details_give_each_host_its_rates(source: MetadataSource) -> None:
    lines = drawn(details_screen(of_metadata(source)[:1]), width=200)
    assert any(
        "file_create_ops_per_s" in line and "file_remove_ops_per_s" in line for line in lines
    )
    assert any(line.startswith("client-2") and "ops/s" in line for line in lines)


def test_the_plan_tells_ranks_and_files(source: MetadataSource) -> None:
    lines = drawn(plan_screen(source.study, source.plan, None))
    told = [line for line in lines if "metadata: 4 ranks, 2,500 files each, rank shift 4" in line]
    assert len(told) == 3
    assert plan_document(source.study, source.plan, None)["runs"][1]["data_set"] == ""


def test_a_plan_without_files_to_lay_out_says_so() -> None:
    alone = kpi_with_metadata(replace(JOB, file_bytes=4096), io=False)
    bare = replace(alone.plan, data_sets=())
    lines = drawn(plan_screen(alone.study, bare, None))
    assert any("none laid out before the runs" in line for line in lines)
    assert any("2,500 files of 4 KiB each" in line for line in lines)


def measuring(source: MetadataSource) -> Progress:
    run = source.plan.runs[1]
    state = Progress("kpi", 4, 1, 1, 0.0, 10.0, 1.0, now_s=0.0).after(RunStarted(run), 0.0)
    state = state.after(PhaseStarted(Phase.MEASURE, run, "file-create", None), 1.0)
    seen = IntervalSeen("client-1", run, 1.0, 2500.0, 0.0, 1_600_000.0)
    return state.after(seen, 2.0).with_result(of_metadata(source)[0])


def test_the_panel_counts_operations(source: MetadataSource) -> None:
    console = Console(file=io.StringIO(), width=110, color_system=None, force_terminal=True)
    console.print(panel(measuring(source), console.options))
    text = console.file.getvalue()  # type: ignore[attr-defined]
    assert "IOPS" not in text
    assert "ops/s" in text
    assert "create 1.3 k, stat 7.06 k" in text


def test_lines_tell_operations(source: MetadataSource, capsys: pytest.CaptureFixture[str]) -> None:
    run = source.plan.runs[1]
    view = LinesView(Progress("kpi", 4, 1, 1, 0.0, 10.0, 1.0, now_s=0.0), clock=lambda: 0.0)
    view.see(RunStarted(run))
    view.see(IntervalSeen("client-1", run, 1.0, 2500.0, 0.0, 1_600_000.0))
    view.judged(of_metadata(source)[0])
    told = capsys.readouterr().err
    assert "2.5 k ops/s, mean 1.6 ms" in told
    assert "result metadata: create 1.3 k, stat 7.06 k, read 2.6 k" in told
    assert "IOPS" not in told


def test_a_load_that_moves_no_bytes_shows_no_bandwidth_and_no_warmup(
    source: MetadataSource,
) -> None:
    console = Console(file=io.StringIO(), width=110, color_system=None, force_terminal=True)
    state = replace(measuring(source), warmup_s=5.0)
    console.print(panel(state, console.options))
    text = console.file.getvalue()  # type: ignore[attr-defined]
    assert "bandwidth" not in text
    assert "warm-up" not in text
