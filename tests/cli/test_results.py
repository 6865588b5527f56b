"""A session's results on the screen: every number with its verdict, every verdict with its why."""

from __future__ import annotations

import io
import re
from collections.abc import Iterator, Sequence

import pytest
from msgspec.structs import replace
from rich.console import Console, RenderableType

from iolab.analysis.points import summarise_points
from iolab.cli.details import detail_lines_of_runs, latency_histogram_text, titled_session_details
from iolab.cli.results import (
    OBJECTIONS_MAX,
    WHY_NOT_VALID,
    closing_lines,
    objection_lines,
    result_lines,
)
from iolab.cli.session_screen import DetailSection, SessionScreen, session_summary_lines
from iolab.core.host import HostRole
from iolab.core.metric import CheckResult, Metric, RunResult, Verdict, VerdictLevel
from iolab.core.resources import Resource, ResourceUse, RunResources
from iolab.core.run import RunStatus
from iolab.core.workload import BY_BANDWIDTH, Indicator
from iolab.registry import report_kinds
from iolab.report.charts.series import LatencyCurve
from iolab.report.numbers import metric_value_text
from iolab.report.phrases import merge_objections
from iolab.report.session_answer import session_answer
from iolab.report.table import Column
from iolab.report.terminal import GroupedTable
from tests.cli.command_line import RESULTS, STUDY
from tests.cli.screens import drawn
from tests.facts import tells
from tests.report import shared, studies
from tests.report.synthetic import Source

CACHED = CheckResult(
    "buffered-io", VerdictLevel.INVALID, "The page cache answered.", {"share": 0.5}
)
SHORT = CheckResult("run-length", VerdictLevel.INDICATIVE, "The run lasted 2 s.", {"seconds": 2})
FINE = CheckResult("extents", VerdictLevel.VALID, "No holes.")


def ending(
    results: Sequence[RunResult], directory: str, *, unfinished: bool = False
) -> Iterator[RenderableType]:
    """The last lines that `show` prints of results."""
    points = summarise_points(results, STUDY)
    answer = session_answer(report_kinds(), STUDY, points, results, {})
    return closing_lines(answer, STUDY, points, results, directory, is_unfinished=unfinished)


def judged(result: RunResult, *checks: CheckResult) -> RunResult:
    verdict = Verdict(VerdictLevel.VALID, ())
    for check in checks:
        verdict = verdict.with_check(check)
    return replace(result, verdict=verdict)


def single(result: RunResult, indicator: Indicator) -> list[str]:
    """The screen of a study with one workload that is not varied."""
    workload = replace(STUDY.workloads[0], title="Some reads", sweep=(), indicator=indicator)
    study = replace(STUDY, workloads=(workload,))
    return drawn(result_lines(study, [replace(result, axis_values=(), workload=workload.id)]))


def test_a_workload_without_an_axis_is_one_line() -> None:
    result = replace(
        RESULTS[0],
        metrics={
            **RESULTS[0].metrics,
            "bw_bytes_per_s": Metric(3e9, "bytes/s"),
            "lat_ns_mean": Metric(143_000.0, "ns"),
        },
        hosts=tuple(
            replace(host, metrics={"bw_bytes_per_s": Metric(value, "bytes/s")})
            for host, value in zip(RESULTS[0].hosts, (1e9, 2e9), strict=True)
        ),
    )
    lines = single(judged(result, SHORT), BY_BANDWIDTH)
    assert lines[0].split()[:3] == ["point", "IOPS", "bandwidth"]
    row = re.split(r" {2,}", lines[1])
    assert (row[0], row[2], row[3]) == ("Some reads", "3 GB/s", "143 µs")
    assert row[-1] == "indicative"


def test_a_sweep_has_a_line_a_point_in_the_order_of_the_axis() -> None:
    lines = drawn(result_lines(STUDY, list(reversed(RESULTS))))
    blocks = [line.split("bs ")[1].split()[0] for line in lines if "bs " in line]
    assert blocks == sorted(blocks[:5], key=lambda text: int(text[:-1])) + blocks[5:]
    assert sum(line.endswith("valid") for line in lines) == len(RESULTS)
    assert lines[0].split() == ["point", "IOPS", "bandwidth", "mean", "p99", "p99.9", "verdict"]


def test_reads_and_writes_of_a_mix_have_lines_of_their_own_with_every_figure_in_detail() -> None:
    source = shared.brief("sweep")
    mixed = [run for run in source.results if run.workload == "rand-70-30-4k"]
    lines = drawn(result_lines(source.study, mixed))
    for way in ("read", "write"):
        own = [line.split() for line in lines if line.strip().startswith(f"{way}s ")]
        means = [metric_value_text(run.metrics[f"{way}_lat_ns_mean"]) for run in mixed]
        assert len(own) == len(mixed)
        assert all(mean in " ".join(line) for mean, line in zip(means, own, strict=True))
        largest = metric_value_text(mixed[0].metrics[f"{way}_lat_ns_max"])
        found = [line for line in drawn(detail_lines_of_runs(mixed[:1])) if line.startswith(way)]
        assert f"max {largest}" in found[0]


def test_a_number_without_support_is_a_dash() -> None:
    result = replace(RESULTS[0], metrics={**RESULTS[0].metrics, "lat_ns_p99_9": Metric(None, "ns")})
    row = next(line for line in drawn(result_lines(STUDY, [result])) if "bs " in line)
    assert row.split()[-2:] == ["–", "valid"]


def test_repeats_are_one_line_and_have_lines_of_their_own_on_request() -> None:
    results = [again(repeat, rate) for repeat, rate in enumerate((1000.0, 1010.0, 990.0), 1)]
    lines = drawn(result_lines(STUDY, results))
    assert re.split(r" {2,}", lines[0])[:4] == ["point", "IOPS", "bandwidth", "95 %"]
    (row,) = [line for line in lines if "bs " in line]
    (point,) = summarise_points(results, STUDY)
    half = point.metrics["iops"].relative_half_width
    assert half is not None
    assert f"±{100 * half:.2g} %" in row
    every = drawn(result_lines(STUDY, results, with_run_rows=True))
    rows = [line for line in every if "bs " in line]
    assert [row.partition("#")[2][:1] for row in rows] == ["", "1", "2", "3"]
    assert not any("±" in row for row in rows[1:])


def test_a_repeat_that_is_invalid_is_left_out_and_says_so() -> None:
    results = [again(1, 1000.0), judged(again(2, 5000.0), CACHED), judged(again(3, 1000.0), SHORT)]
    shown = drawn(result_lines(STUDY, results, with_run_rows=True))
    rows = [line for line in shown if "bs " in line]
    assert "±" in rows[0]
    assert rows[0].endswith("indicative")
    assert "#2, left out" in rows[2]
    assert rows[2].endswith("invalid")


def test_a_part_of_a_session_shows_the_intervals_of_the_whole() -> None:
    results = [again(1, 1000.0), again(2, 1010.0)]
    (point,) = summarise_points(results, STUDY)
    metric = replace(point.metrics["iops"], low=900.0, high=1100.0, n=3)
    whole = replace(point, metrics={**point.metrics, "iops": metric})
    rows = [line for line in drawn(result_lines(STUDY, results, [whole])) if "bs " in line]
    assert "±9" in rows[0] or "±10" in rows[0]


def again(repeat: int, rate: float) -> RunResult:
    """The first result, measured again with another rate."""
    metrics = {**RESULTS[0].metrics, "iops": Metric(rate, "1/s")}
    return replace(RESULTS[0], repeat=repeat, metrics=metrics)


def test_objections_stand_worst_first_and_all_of_them_on_request() -> None:
    results = [
        judged(RESULTS[0], SHORT, FINE),
        judged(RESULTS[1], SHORT, CACHED),
        judged(RESULTS[2], FINE),
    ]
    lines = drawn(objection_lines(merge_objections(results)))
    below = lines[lines.index(WHY_NOT_VALID) :]
    assert below[1].split()[:2] == ["invalid", "buffered-io,"]
    assert "1 of 3 runs" in below[1]
    assert "The page cache answered." in below[1]
    assert below[2].split()[:2] == ["indicative", "run-length,"]
    many = [
        replace(SHORT, code=f"check-{number}", message=f"It is {number}.")
        for number in range(OBJECTIONS_MAX + 2)
    ]
    told = drawn(objection_lines(merge_objections([judged(RESULTS[0], *many)])))
    assert told[-1].strip() == "2 more: --details"
    every = drawn(detail_lines_of_runs([judged(RESULTS[0], *many)]))
    assert sum("check-" in line for line in every) == len(many)


def test_the_end_is_how_sure_the_answer_is_and_the_next_command() -> None:
    results = [judged(one, SHORT) for one in RESULTS]
    screen = ending(results, "a session")
    text = [line for line in drawn(screen, 80) if line]
    assert text[0].startswith("Sure    ")
    assert "indicative" in text[0]
    assert "run-length" in "".join(text)
    assert text[-1] == "Next    iolab report 'a session'; iolab explain run-length"
    left = ending(results, "a session" * 2, unfinished=True)
    assert [line.removeprefix("Next").strip() for line in drawn(left, 80)[-3:]] == [
        "iolab resume 'a sessiona session'",
        "iolab report 'a sessiona session'",
        "iolab explain run-length",
    ]


def screen_lines(
    source: Source, height: int | None, *, repeats: bool = False, details: bool = False
) -> list[str]:
    """What `show` prints of a source on a terminal of that height."""
    study, results = source.study, source.results()
    points = summarise_points(results, study)
    answer = session_answer(report_kinds(), study, points, results, {})
    screen = SessionScreen(
        study,
        results,
        points,
        answer,
        "S",
        is_unfinished=False,
        has_repeats=repeats,
        has_details=details,
    )
    parts = titled_session_details(results) if details else ()
    more = [DetailSection(title, lines) for title, lines in parts]
    return session_summary_lines(screen, ["heading", ""], more, height)


@pytest.mark.parametrize("configurations", [("one",), ("one", "two", "three"), tuple("abcdef")])
def test_any_session_fits_one_screen_with_its_answer_and_the_best_of_each_workload(
    configurations: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    source = studies.sweep(configurations)
    lines = screen_lines(source, 23)
    assert len(lines) <= 23
    assert max(map(len, lines)) <= 80
    points = len(summarise_points(source.results(), source.study))
    hidden = re.search(r"(\d+) more points \(--details\)", " ".join(lines))
    assert hidden is not None
    assert 0 < int(hidden[1]) < points
    text = " ".join(lines)
    for workload in source.study.workloads if len(configurations) < 4 else ():
        assert workload.title in text


def test_workloads_without_room_for_a_line_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    source = studies.sweep(("one", "two"))
    titles = [workload.title for workload in source.study.workloads]
    lines = screen_lines(source, 16)
    text = " ".join(lines)
    hidden = re.search(r"and (\d+) more workloads? \(", text)
    assert hidden is not None
    shown = [title for title in titles if any(line.startswith(f"{title}  ") for line in lines)]
    assert len(shown) + int(hidden[1]) == len(titles)


def test_the_answer_is_repeated_only_where_the_screen_has_scrolled() -> None:
    source = studies.pair()
    whole = screen_lines(source, 60)
    answer = whole[2]
    assert [line for line in whole if line == answer] == [answer]
    assert not any("(--details)" in line for line in whole)
    long = screen_lines(source, 23, details=True)
    assert [place for place, line in enumerate(long) if line == answer] == [2, len(long) - 1]


def test_details_begin_with_the_line_of_each_part() -> None:
    lines = screen_lines(studies.sweep(("one", "two")), None, details=True)
    first = lines.index("Contents") + 1
    contents = [line.removeprefix("line ").split(maxsplit=1) for line in lines[first:]]
    listed = {title: int(at) for at, title in contents[: lines[first:].index("")]}
    assert list(listed)[:2] == ["Results", WHY_NOT_VALID]
    assert lines[listed[WHY_NOT_VALID]] == WHY_NOT_VALID
    assert len(listed) == 2 + 2 * 5
    for title, at in list(listed.items())[2:]:
        assert lines[at].startswith(title.rpartition(", ")[0])


def test_the_end_names_what_limits_the_best_points() -> None:
    busy = ResourceUse(Resource.PROCESSORS, "client-1", HostRole.CLIENT, "", 0.98)
    full = RunResources(
        (busy,), None, memory_backed=False, is_storage_monitored=True, stolen_share=0.0
    )
    results = [replace(result, resources=full) for result in RESULTS]
    screens = [drawn(ending(each, "S")) for each in (results, RESULTS)]
    limits = [[line for line in lines if line.startswith("Limit")] for lines in screens]
    assert [len(lines) for lines in limits] == [1, 0]
    assert tells(limits[0][0], "processors", STUDY.workloads[0].title)


def test_a_run_that_did_not_end_well_says_why() -> None:
    failed = replace(
        RESULTS[0], status=RunStatus.FAILED, failure="fio was killed.", failure_hint="See dmesg."
    )
    lines = drawn(result_lines(STUDY, [failed, RESULTS[1]]))
    assert f"  workload-1, iodepth 1, bs 4k: failed. {failed.failure} See dmesg." in lines


def test_details_list_checks_that_are_valid_in_all_runs_once() -> None:
    other = replace(FINE, code="zz-other")
    runs = [judged(RESULTS[0], FINE, other), judged(RESULTS[1], FINE, SHORT)]
    text = "\n".join(drawn(detail_lines_of_runs(runs)))
    assert text.count(FINE.code) == text.count("zz-other") == 1
    assert text.index(FINE.code) < text.index(SHORT.message) < len(text)


def test_details_say_once_what_a_check_says_of_several_runs() -> None:
    def late(number: int) -> CheckResult:
        message = f"Host c{number} began late: its clock is off."
        evidence = {"limit_s": 0.5, "late_s": float(number)}
        return replace(SHORT, code="late", message=message, evidence=evidence)

    runs = [
        judged(RESULTS[0], late(1), SHORT),
        judged(RESULTS[1], late(2), SHORT),
        judged(RESULTS[2], replace(FINE, code="late")),
    ]
    lines = drawn(detail_lines_of_runs(runs))
    text = "\n".join(lines)
    for part in ("its clock is off.", "limit_s = 0.5", SHORT.message, "late, 2 of 3 runs: "):
        assert text.count(part) == 1, part
    for part in ("late: Host c1 began late.", "late: Host c2 began late.", "late_s = 2"):
        assert text.count(part) == 1, part
    # Where it does not object although it does elsewhere is told of the run.
    assert lines[-1].split() == ["valid", "late"]


def test_details_show_every_metric_host_and_check_that_looked() -> None:
    not_asked = replace(FINE, code="verify-mismatch", level=None)
    lines = drawn(detail_lines_of_runs([judged(RESULTS[0], FINE, SHORT, not_asked)]))
    text = "\n".join(lines)
    assert ", p99 " in text
    assert "lat_ns" not in text
    for part in ("client-1  ", "client-2  ", "run-length: The run lasted 2 s.", "seconds = 2"):
        assert part in text
    assert "No holes." not in text
    assert text.index("run-length") < text.index("extents")
    assert "verify-mismatch" not in text
    assert "2 of 3 checks apply" in text


@pytest.mark.parametrize("width", [80, 120])
def test_tables_fit_a_terminal(width: int) -> None:
    results = [judged(result, SHORT, CACHED) for result in RESULTS]
    assert max(len(line) for line in drawn(result_lines(STUDY, results), width)) <= width


def test_foreign_text_is_shown_and_not_obeyed() -> None:
    nasty = "[red]x[/red]\x1b[2J\nline"
    study = replace(STUDY, workloads=(replace(STUDY.workloads[0], title=nasty),))
    result = replace(RESULTS[0], status=RunStatus.FAILED, failure=nasty)
    result = judged(result, replace(SHORT, message=nasty, evidence={"host": nasty}))
    text = "\n".join(drawn((*result_lines(study, [result]), *detail_lines_of_runs([result]))))
    assert "\x1b" not in text
    assert text.count("[red]x[/red]\\x1b[2J line") >= 4


def test_figures_are_left_out_rather_than_cut_on_a_narrow_terminal() -> None:
    results = [again(1, 1000.0), again(2, 1010.0)]
    written = io.StringIO()
    screen = Console(file=written, width=60, color_system=None)
    screen.print(*result_lines(STUDY, results))
    text = written.getvalue()
    assert "the terminal is too narrow: " in text
    (heading,) = [line for line in text.splitlines() if line.startswith("point")]
    assert "p99.9" not in heading
    assert "95 %" in heading
    assert "±" in text


def test_a_name_over_two_lines_is_indented_below_its_first() -> None:
    grouped = GroupedTable(
        (Column("point", can_wrap=True), Column("IOPS", is_number=True)), [(None, [ROW])]
    )
    lines = drawn([grouped], 24)
    assert [len(line) - len(line.lstrip()) for line in lines[1:]] == [2, 4]


ROW = ("  iodepth 8, clients 12", "1,000")


@pytest.mark.parametrize("width", [30, 50])
def test_where_no_table_fits_each_row_is_told_in_lines_and_nothing_is_cut(width: int) -> None:
    results = [again(1, 1000.0), again(2, 1010.0)]
    (point,) = summarise_points(results, STUDY)
    lines = drawn(result_lines(STUDY, results), width)
    assert max(map(len, lines)) <= width
    text = " ".join(line.strip() for line in lines)
    for key in ("iops", "lat_ns_mean", "lat_ns_p99"):
        assert metric_value_text(point.metrics[key], is_rate_unit_omitted=True) in text
    assert f"verdict {point.verdict_level.value}" in text


def test_a_latency_histogram_has_its_peak_where_most_are_and_ends_at_its_percentile() -> None:
    tail = tuple(10 ** (step / 10) for step in range(31))
    # Nine of ten I/Os take 100 to 110 us, the others up to 10 ms.
    curve = LatencyCurve(
        "read",
        10**6,
        tail,
        tuple(
            1e5 + 1e3 * step if step <= 10 else 1.1e5 * 10 ** ((step - 10) / 10.2)
            for step in range(31)
        ),
    )
    text = latency_histogram_text(curve)
    first, blocks, *last = text.split(" ")[0], text.split()[2], *text.split()[3:]
    assert first == "100"
    assert blocks.index("█") < len(blocks) / 10
    assert last[0] == "p99.9"
    assert latency_histogram_text(curve.truncated_at_one_in(10)) == ""


def test_checks_are_counted_in_a_line() -> None:
    results = [judged(RESULTS[0], SHORT, FINE), judged(RESULTS[1], FINE)]
    (line,) = [line for line in drawn(ending(results, "S"), 80) if line.startswith("Checks")]
    counts = line.removeprefix("Checks").strip()
    assert counts == f"1 passed, 0 not applicable, 1 failed: {SHORT.code}"
