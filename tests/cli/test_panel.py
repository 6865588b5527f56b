"""The live panel: one line is one line at any width, and nothing foreign acts on the terminal."""

from __future__ import annotations

import io

import pytest
from msgspec.structs import replace
from rich.cells import cell_len
from rich.console import Console

from iolab.cli.live import live_panel_lines
from iolab.cli.progress import SessionProgress
from iolab.core.events import (
    CpuUseReported,
    IntervalReported,
    RunPreparing,
    ScenarioNotice,
    SessionPhase,
    SessionPhaseStarted,
)
from iolab.report.terminal import sparkline
from tests.cli.command_line import PLAN, RESULTS
from tests.facts import tells

NASTY = "[red]host[/red]\x1b[2J\r\n\u202ename"


def measuring(study: str = "study", host: str = "client-1") -> SessionProgress:
    run = PLAN.runs[2]
    state = SessionProgress(study, 6, 2, 1, 2.0, 10.0, 0.0, now_s=0.0)
    state = state.after_event(RunPreparing(run), 0.0)
    state = state.after_event(SessionPhaseStarted(SessionPhase.MEASURE, run, "", 10.0), 1.0)
    for second in range(1, 90):
        seen = IntervalReported(host, run, float(second), 1000.0 * second, 4e6, 143_000.0)
        state = state.after_event(seen, 5.0)
    state = state.after_event(CpuUseReported(host, 0.345), 5.0)
    for result in RESULTS[:2]:
        state = state.with_result(result)
    return state


def drawn(progress: SessionProgress, width: int) -> list[str]:
    console = Console(
        file=io.StringIO(), width=width, markup=False, force_terminal=True, color_system=None
    )
    console.print(live_panel_lines(progress, console.options))
    out = console.file
    assert isinstance(out, io.StringIO)
    return out.getvalue().splitlines()


def test_it_says_where_the_session_stands() -> None:
    text = "\n".join(drawn(measuring(), 80))
    for part in ("run 3/6", "workload-1, iodepth 1, bs 16k", "measure", "89 k", "4 MB/s", "143 µs"):
        assert part in text
    assert "34 %" in text
    assert tells(text.splitlines()[0], "study", "%", "left")
    assert text.count("valid") == 2


@pytest.mark.parametrize("width", [20, 80, 300])
def test_no_line_is_wider_than_the_terminal_and_none_wraps(width: int) -> None:
    states = (measuring(), measuring(study="s" * 200), SessionProgress("s", 1, 0, 1, 0, 1, 0, 0.0))
    for state, lines in zip(states, (12, 12, 2), strict=True):
        found = drawn(state, width)
        assert len(found) == lines
        assert max(cell_len(line) for line in found) <= width


def test_a_run_with_phases_shows_the_current_one_and_the_last_event() -> None:
    state = replace(
        measuring(), max_phase_s_by_id={"before": 10.0, "degraded": 60.0, "after": 10.0}
    )
    (line,) = (line for line in drawn(state, 80) if line.startswith("phases"))
    assert line.split("phases", 1)[1].strip() == "before › degraded › after"
    state = state.after_event(ScenarioNotice("Phase 'degraded' begins.", "degraded"), 20.0)
    state = state.after_event(ScenarioNotice("Event 'lose' begins."), 22.0).at_time(32.0)
    (line,) = (line for line in drawn(state, 80) if line.startswith("phases"))
    assert tells(line, "before › degraded 12 s › after", "Event 'lose' begins.")
    again = state.after_event(RunPreparing(PLAN.runs[3]), 40.0)
    (line,) = (line for line in drawn(again, 80) if line.startswith("phases"))
    assert "lose" not in line
    assert " s " not in line


def test_foreign_text_is_shown_and_not_obeyed() -> None:
    text = "\n".join(drawn(replace(measuring(host=NASTY), study=NASTY), 120))
    assert "\x1b" not in text
    assert "\u202e" not in text
    assert "[red]host[/red]\\x1b[2J" in text


def test_a_sparkline_stands_on_zero() -> None:
    assert sparkline([0.0, 50.0, 100.0], 10) == "▁▅█"
    assert sparkline([80.0, 100.0], 10) == "▇█"
    assert sparkline([0.0, 0.0], 10) == "▁▁"
    assert sparkline([1.0, None, 1.0], 10) == "█ █"
    assert sparkline([None, None], 10) == "  "
    assert sparkline([0.0, 1.0], 10, ascii_only=True).isascii()


def test_the_bar_on_top_counts_runs_and_the_part_of_the_current_one() -> None:
    run = PLAN.runs[2]
    started = SessionProgress("s", 4, 1, 1, 0.0, 10.0, 0.0, now_s=0.0, overhead_s=0.0)
    half = started.after_event(RunPreparing(run), 0.0).at_time(5.0)
    assert half.completed_share_of_runs == pytest.approx(1.5 / 4)
    assert half.at_time(1e6).completed_share_of_runs == pytest.approx(2 / 4)
    assert replace(started, ended_run_count=4).completed_share_of_runs == 1


def test_bars_of_phases_stand_below_each_other_and_say_when_they_take_longer() -> None:
    run = PLAN.runs[2]
    lines = []
    for phase, expected_s, now_s in (
        (SessionPhase.IDLE, 1.0, 0.5),
        (SessionPhase.GENERATOR_LIMIT, 1.0, 0.5),
        (SessionPhase.PRECONDITION, 6.0, 3.0),
        (SessionPhase.MEASURE, 6.0, 7.2),
    ):
        state = SessionProgress("study", 6, 0, 1, 0.0, 10.0, 0.0, now_s=0.0)
        state = state.after_event(RunPreparing(run), 0.0)
        detail = "fio's limit, on a null target"
        state = state.after_event(SessionPhaseStarted(phase, run, detail, expected_s), 0.0)
        lines.append(drawn(state.at_time(now_s), 80)[2])
    assert len({min(line.find(mark) for mark in "━─" if mark in line) for line in lines}) == 1
    assert all(line.rstrip().endswith("on a null target") for line in lines[:2])
    assert " 3 of 6 s" in lines[2]
    assert " 7 s (6 s planned)" in lines[3]
