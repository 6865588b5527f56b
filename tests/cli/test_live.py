"""Watching a session off a terminal, quietly, and on a terminal that goes away."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from bench.synthetic import make_record
from msgspec.structs import replace

from iolab.cli.live import LinesView, LivePanelView, LiveView, choose_live_view
from iolab.cli.progress import SessionProgress
from iolab.core.events import (
    IntervalReported,
    Notice,
    RunFinished,
    RunPreparing,
    SessionPhase,
    SessionPhaseStarted,
)
from iolab.core.run import RunStatus
from tests.cli.command_line import PLAN, RESULTS, SHAPE

RUN = PLAN.runs[0]
NAME = "only: workload-1, iodepth 1, bs 4k"
RATES = "95.2 k IOPS, 390 MB/s, mean 143 µs"


def progress(hosts: int = 1) -> SessionProgress:
    return SessionProgress("study", 6, 0, hosts, 2.0, 10.0, 0.0, now_s=0.0)


def seen(second: float, host: str = "a") -> IntervalReported:
    return IntervalReported(host, RUN, second, 95_200.0, 390e6, 143_000.0)


def test_the_limit_of_a_run_that_ends_when_it_may_is_no_estimate(
    capsys: pytest.CaptureFixture[str],
) -> None:
    state = replace(progress(), can_end_early=True)
    view = LinesView(state, clock=lambda: 0.0)
    view.open()
    view.on_event(SessionPhaseStarted(SessionPhase.LAY_OUT, None, "s256m, 1 GiB", 5.0))
    view.on_event(RunPreparing(RUN))
    view.on_event(SessionPhaseStarted(SessionPhase.MEASURE, RUN, "", 10.0))
    view.on_event(seen(1.0))
    lines = capsys.readouterr().err.splitlines()
    assert "(about 5 s)" in lines[0]
    assert "(at most 10 s)" in lines[1]
    assert "ETA at most " in lines[2]
    view.on_event(RunFinished(make_record(RUN, SHAPE)))
    view.on_event(RunPreparing(RUN))
    view.on_event(seen(1.0))
    # As long as the run that was timed.
    assert "at most" not in capsys.readouterr().err
    view.close()


def test_each_phase_second_and_result_is_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    view = LinesView(progress(), clock=lambda: 0.0)
    view.open()
    view.on_event(SessionPhaseStarted(SessionPhase.LAY_OUT, None, "s256m, 1 GiB", 5.0))
    view.on_event(RunPreparing(RUN))
    view.on_event(SessionPhaseStarted(SessionPhase.MEASURE, RUN, "", 10.0))
    view.on_event(seen(1.0))
    view.on_event(seen(2.0))
    view.on_event(RunFinished(make_record(RUN, SHAPE)))
    view.on_result(RESULTS[0])
    view.close()
    out, err = capsys.readouterr()
    assert out == ""
    assert isinstance(choose_live_view(progress(), is_quiet=False), LinesView)
    lines = err.splitlines()
    assert lines[0] == "lay out: s256m, 1 GiB (about 5 s)"
    assert lines[1] == f"run 1/6 {NAME}: measure (about 10 s)"
    assert lines[2] == f"run 1/6 {NAME}: 1 s, {RATES}, ETA 69 s"
    assert lines[3].startswith(f"run 1/6 {NAME}: 2 s, ")
    assert lines[4].endswith(": valid")
    assert len(lines) == 5


def test_a_failed_run_says_why(capsys: pytest.CaptureFixture[str]) -> None:
    view = LinesView(progress(), clock=lambda: 0.0)
    failed = replace(
        make_record(RUN, SHAPE),
        status=RunStatus.FAILED,
        failure="fio\x1b[31m said no.",
        failure_hint="Ask\x1b[31m it.",
    )
    view.on_event(RunFinished(failed))
    err = capsys.readouterr().err
    assert "failed: fio\\x1b[31m said no. Ask\\x1b[31m it." in err


def test_notices_are_told_and_their_text_is_harmless(capsys: pytest.CaptureFixture[str]) -> None:
    LinesView(progress()).on_event(Notice("host [bold]x\r\x07 is slow"))
    assert capsys.readouterr().err == "host [bold]x \\x07 is slow\n"


def test_quiet_is_silent(capsys: pytest.CaptureFixture[str]) -> None:
    view = choose_live_view(progress(), is_quiet=True)
    assert type(view) is LiveView
    view.open()
    view.on_event(Notice("hello"))
    view.on_result(RESULTS[0])
    view.show_message("hello")
    view.close()
    assert capsys.readouterr() == ("", "")


@contextmanager
def terminal() -> Iterator[int]:
    """Standard error is a terminal; its other end."""
    controller, end = os.openpty()
    before = sys.stderr
    with os.fdopen(end, "w", encoding="utf-8") as stream:
        sys.stderr = stream
        try:
            yield controller
        finally:
            sys.stderr = before
            os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


def test_a_terminal_that_goes_away_ends_nothing() -> None:
    with terminal() as controller:
        view = choose_live_view(progress(), is_quiet=False)
        assert isinstance(view, LivePanelView)
        view.open()
        view.on_event(RunPreparing(RUN))
        os.close(controller)
        view.on_event(Notice("nobody reads this"))
        view.on_event(seen(1.0))
        view.on_result(RESULTS[0])
        view.close()
        view.close()


def read_some(descriptor: int) -> bytes:
    try:
        return os.read(descriptor, 1 << 16)
    except BlockingIOError:
        return b""


def test_the_panel_shows_and_leaves_the_screen_as_it_was() -> None:
    with terminal() as controller:
        view = LivePanelView(progress(), clock=lambda: 3.0)
        view.open()
        view.on_event(RunPreparing(RUN))
        view.show_message("a word above")
        view.close()
        os.set_blocking(controller, False)
        shown = b"".join(iter(lambda: read_some(controller), b"")).decode()
    os.close(controller)
    assert NAME in shown
    assert "a word above" in shown
    # The cursor is hidden while the panel is redrawn, and shown again when it is gone.
    assert shown.rindex("\x1b[?25h") > shown.rindex("\x1b[?25l")
