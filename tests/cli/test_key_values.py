"""Load on key-value stores on the screen: its tables, its gains, its lines and its panel."""

from __future__ import annotations

import io
from collections.abc import Sequence
from dataclasses import replace

import pytest
from rich.console import Console

from iolab.cli.live import LinesView
from iolab.cli.panel import panel
from iolab.cli.progress import Progress
from iolab.cli.results import details_screen, results_screen
from iolab.model.event import IntervalSeen, Phase, PhaseStarted, RunStarted
from iolab.model.metric import Result
from tests.report.key_value_session import KeySource, cassandra, rocksdb


@pytest.fixture(scope="module")
def rocks() -> KeySource:
    return rocksdb(seconds=3)


@pytest.fixture(scope="module")
def compared() -> KeySource:
    return rocksdb(("old", "new"), repeats=2, seconds=2, workload_count=1)


def screen(source: KeySource, results: Sequence[Result], width: int = 80) -> str:
    console = Console(file=io.StringIO(), width=width, color_system=None, markup=False)
    for item in results_screen(source.study, results):
        console.print(item)
    return console.file.getvalue()  # type: ignore[attr-defined,no-any-return]


def test_each_block_size_stands_under_a_line_of_its_own(rocks: KeySource) -> None:
    text = screen(rocks, rocks.results())
    lines = text.splitlines()
    assert lines[0].split() == ["point", "ops/s", "read", "mean", "p99", "p99.9", "verdict"] or (
        lines[0].split()[:5] == ["point", "ops/s", "read", "mean", "p99"]
    )
    at = lines.index("Random reads, block_size 4k")
    assert [line.split()[:2] for line in lines[at + 1 : at + 5]] == [
        ["threads", value] for value in ("4", "16", "32", "64")
    ]
    assert "IOPS" not in text
    assert max(map(len, lines)) <= 80


def test_the_published_percentile_has_a_column_even_without_values() -> None:
    source = cassandra(rates=(1000,), seconds=2)
    text = screen(source, source.results())
    assert "p99.99" in text.splitlines()[0]
    assert "due mean" in text.splitlines()[0]
    assert "due: since the rate wanted the operation sent" in text


def test_repeats_stand_below_their_point_with_an_interval(compared: KeySource) -> None:
    text = screen(compared, compared.results())
    assert "95 % interval" in text.splitlines()[0]
    assert " n=2" in text
    assert "\n    #1 " in text
    assert "old: Random reads, block_size 4k" in text
    assert "new: Random reads, block_size 16k" in text


@pytest.mark.parametrize("width", [80, 120])
def test_the_largest_gain_of_each_group_names_its_cell(compared: KeySource, width: int) -> None:
    lines = screen(compared, compared.results(), width).splitlines()
    at = lines.index("New against Old")
    told = lines[at + 3].split()
    assert told[0] == "ops/s"
    assert told[1].startswith("+2")
    assert "threads" in told
    assert told[-2:] == ["better", "valid"]
    assert max(map(len, lines)) <= width


def test_of_several_candidates_the_baseline_is_named_as_it_is_called() -> None:
    source = rocksdb(("old", "new", "newer"), repeats=1, seconds=2, workload_count=1)
    first, *others = source.study.configurations
    study = replace(source.study, configurations=(replace(first, title="an SSD A"), *others))
    console = Console(file=io.StringIO(), width=120, color_system=None, markup=False)
    console.print(*results_screen(study, source.results()), sep="\n")
    assert "\nAgainst an SSD A\n" in console.file.getvalue()  # type: ignore[attr-defined]


def test_one_configuration_has_no_gains(rocks: KeySource) -> None:
    assert "against" not in screen(rocks, rocks.results())


def test_details_tell_every_operation(rocks: KeySource) -> None:
    console = Console(file=io.StringIO(), width=120, color_system=None, markup=False)
    for item in details_screen(rocks.results()[8:9]):
        console.print(item)
    text = console.file.getvalue()  # type: ignore[attr-defined]
    assert "write_lat_ns_p50" in text
    assert "read_lat_ns_mean" in text


def measuring(source: KeySource) -> Progress:
    run = source.plan.runs[1]
    state = Progress("rocksdb", 24, 1, 1, 2.0, 10.0, 0.0, now_s=0.0)
    state = state.after(RunStarted(run), 0.0)
    state = state.after(PhaseStarted(Phase.MEASURE, run, "", 10.0), 1.0)
    state = state.after(IntervalSeen("client-1", run, 1.0, 25_000.0, 0.0, None), 2.0)
    return state.with_result(source.results()[0])


def test_the_panel_counts_operations(rocks: KeySource) -> None:
    console = Console(file=io.StringIO(), width=110, color_system=None, force_terminal=True)
    console.print(panel(measuring(rocks), console.options))
    text = console.file.getvalue()  # type: ignore[attr-defined]
    assert "IOPS" not in text
    assert "bandwidth" not in text
    assert "latency" not in text
    assert "25 k" in text
    assert "warm-up, not counted" in text
    assert " k ops/s, read mean 17" in text


def test_lines_tell_operations(rocks: KeySource, capsys: pytest.CaptureFixture[str]) -> None:
    run = rocks.plan.runs[1]
    view = LinesView(Progress("rocksdb", 24, 1, 1, 0.0, 10.0, 1.0, now_s=0.0), clock=lambda: 0.0)
    view.see(RunStarted(run))
    view.see(IntervalSeen("client-1", run, 1.0, 25_000.0, 0.0, None))
    view.judged(replace(rocks.results()[0]))
    told = capsys.readouterr().err
    assert "1 s, 25 k ops/s, ETA" in told
    assert "result read-random, block_size 4k, threads 4: 27." in told
    assert "IOPS" not in told
