"""The first page: who is the best where, by intervals, and what may not be quoted."""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable
from typing import Any

from msgspec.structs import replace

from iolab.core.configuration import LOCAL_HOST, Configuration
from iolab.core.events import SessionStatus
from iolab.core.host import HostRole, HostSpec, HostTransport
from iolab.core.metric import CheckResult, Metric, RunResult, Verdict, VerdictLevel
from iolab.core.metric_spec import BetterDirection
from iolab.core.resources import Resource, ResourceUse, RunResources
from iolab.core.study import AnswerKind, Study
from iolab.report.answer import (
    CAVEATS_SHOWN,
    build_answer,
    gravest_caveats_except_other_load_sentence,
)
from iolab.report.best import (
    BestFigure,
    RunCounts,
    best_point_headlines,
    code_and_text_of_gravest_check,
)
from iolab.report.blocks import ChartBlock, Paragraph, brief_blocks, with_chart_numbers
from iolab.report.fast_facts import fast_facts
from iolab.report.matrix import (
    ALL_INDICATIVE_NOTE,
    CONFIGURATION_COLUMNS_MAX,
    INDICATIVE_NOTE,
    INDISTINGUISHABLE_MARK,
    RATIO_NOTE,
    matrix_marks_note,
    workload_rows,
)
from iolab.report.numbers import DASH, metric_value_text
from iolab.report.other_load import OTHER_LOAD_CODES, other_load_sentence, other_processor_load_text
from iolab.report.page import build_report_page
from iolab.report.phrases import Objection, merge_objections
from iolab.report.provenance import (
    override_texts,
    repeats_sentence,
    scale_sentence,
    scale_setting_texts,
    session_fact_rows,
    session_methods_table,
)
from iolab.report.session_answer import confidence_line, study_answer
from iolab.report.table import (
    Cell,
    Table,
    row_of_cells,
    table_with_constants_in_title,
    text_and_number_columns,
)
from iolab.report.value import ConfigurationFigure, ConfigurationFiguresRow
from tests.facts import tells
from tests.report import growing, shared
from tests.report.charts.outcomes import result

RUNS = RunCounts(total=6, valid=6, indicative=0, invalid=0, failed=0, interrupted=0)


def answer_text(*arguments: Any, **options: Any) -> str:
    return study_answer(*arguments, **options).text


def figure(
    owner: str,
    value: float,
    half: float | None = 0.02,
    *,
    title: str = "reads",
    n: int = 3,
    unit: str = "1/s",
    level: VerdictLevel = VerdictLevel.VALID,
    missing: int = 0,
) -> BestFigure:
    low, high = (None, None) if half is None else (value * (1 - half), value * (1 + half))
    reason = ("", "") if level is VerdictLevel.VALID else ("run-too-short", "It was short.")
    metric = Metric(value, unit, low, high, n)
    latencies = (("mean", "1 ms"),)
    better = BetterDirection.LOWER if unit == "ns" else BetterDirection.HIGHER
    place = (title, title, owner)
    return BestFigure(*place, metric, latencies, "", level, None, reason, ((),) * missing, better)


def study(*names: str) -> Study:
    made = shared.brief("sweep").study
    owners = tuple(Configuration(name, name.title(), ("h",), "/x") for name in names)
    return replace(made, configurations=owners, hosts=(HostSpec("h", HostTransport.LOCAL),))


def told(*found: BestFigure, names: tuple[str, ...] = ("one", "two")) -> list[tuple[Cell, ...]]:
    brief = replace(shared.brief("sweep"), study=study(*names), points=())
    return list(build_answer(brief, found, RUNS, (), None).best_table.rows)


def noted(*found: BestFigure) -> str:
    """What stands below the matrix, without of whom differences are."""
    return matrix_marks_note(workload_rows(found))


def test_latencies_of_another_span_than_the_rate_are_told() -> None:
    plain = figure("one", 1e3)
    assert "whole run" not in noted(plain)
    assert "whole run" in noted(replace(plain, has_whole_run_latency=True))


def test_bold_of_costs_and_latencies_alone_is_explained() -> None:
    rows = workload_rows((figure("one", 1e3), figure("two", 1.01e3)))
    costs = [
        ConfigurationFigure(name, name, amount) for name, amount in (("one", 1.0), ("two", 2.0))
    ]
    sure = ConfigurationFiguresRow("Cost per usable TB", tuple(costs), BetterDirection.LOWER)
    assert "Bold" not in matrix_marks_note(rows)
    assert "Bold" in matrix_marks_note(rows, [sure])
    assert "Bold" not in matrix_marks_note(rows, [replace(sure, is_undecided=True)])


def test_a_bar_is_drawn_only_where_longer_is_better() -> None:
    (row,) = told(figure("one", 1e3), figure("two", 2e3))
    assert all(cell.bar is not None for cell in row[1:])
    (row,) = told(figure("one", 1e6, unit="ns"), figure("two", 2e6, unit="ns"))
    assert all(cell.bar is None for cell in row[1:])
    (row,) = told(figure("one", 1e3), names=("one",))  # the only one would always be full
    assert all(cell.bar is None for cell in row[1:])


def test_figures_that_are_not_measurable_are_named() -> None:
    lost = [
        figure("one", 1e3, title=f"Metadata rates: file {name}", level=VerdictLevel.INVALID)
        for name in ("create", "stat")
    ]
    text = answer_text(study("one"), (figure("one", 1e3), *lost), RUNS, ())
    assert tells(text, "Not measurable: Metadata rates", "file create", "file stat"), text


def test_trust_says_which_latencies_are_surely_the_lowest() -> None:
    texts = build_report_page(shared.brief("two")).answer.trust_texts
    (lowest,) = [text for text in texts if "lowest" in text]
    assert re.search(r"has the lowest mean latency in|undecided in all", lowest), lowest
    assert "winner" not in lowest


def test_other_io_of_sessions_of_any_version_is_told_in_one_range() -> None:
    run = result(1, 1.0, VerdictLevel.INDICATIVE)
    runs = []
    for share, end in ((0.257, "26 % of the run's."), (78.7, "78.7 times the run's own.")):
        busy = CheckResult(
            "device-busy",
            VerdictLevel.INDICATIVE,
            f"Before the start sda did 5 IOPS for others: {end}",
            {"share_of_run": share},
        )
        runs.append(replace(run, verdict=Verdict(VerdictLevel.INDICATIVE, (busy,))))
    (objection,) = merge_objections(runs)
    assert objection.message.endswith("0.257 to 78.7 times the run's own.")
    told = other_load_sentence(shared.brief("two").study, runs)
    assert tells(told, "In all 2 runs", "before the start, up to 78.7 times"), told


def test_figures_below_a_thousand_keep_their_own_unit() -> None:
    low, high = figure("one", 901e6, unit="bytes/s"), figure("two", 1.8e9, unit="bytes/s")
    (row,) = told(low, high)
    assert [cell.text for cell in row[1:]] == ["901 MB/s", "1.80 GB/s"]


def test_one_reason_of_some_rows_stands_in_these_rows() -> None:
    one, two = (figure(owner, value, None, n=1) for owner, value in (("one", 1e3), ("two", 1.01e3)))
    sure = (figure("one", 1e3, title="writes"), figure("two", 2e3, title="writes"))
    open_row, sure_row = told(one, two, *sure)
    assert (open_row[0].note, sure_row[0].note) == ("too few repeats", "")


def test_the_surely_better_one_is_bold_and_alone() -> None:
    (row,) = told(figure("one", 1000.0), figure("two", 1200.0))
    assert [cell.is_bold for cell in row[1:]] == [False, True]
    assert [cell.text.startswith(INDISTINGUISHABLE_MARK) for cell in row[1:]] == [False, False]


def test_a_lead_that_is_sure_stays_so_however_wide_its_interval_is() -> None:
    (row,) = told(figure("one", 100.0, 0.2), figure("two", 1000.0, 0.2))
    assert [cell.is_bold for cell in row[1:]] == [False, True]


def test_one_that_cannot_be_told_from_the_best_is_marked() -> None:
    (row,) = told(figure("one", 1000.0, 0.05), figure("two", 1020.0, 0.05))
    assert row[1].text.startswith(INDISTINGUISHABLE_MARK)
    assert not any(cell.is_bold for cell in row)  # a tie has no winner


def test_the_answer_of_an_imported_run_does_not_repeat_what_the_title_says() -> None:
    title = "imported: reads"
    made = replace(study("one"), title=title)
    owners = (replace(made.configurations[0], title=title),)
    text = answer_text(replace(made, configurations=owners), (figure("one", 1000.0),), RUNS, ())
    assert tells(text, "1 k IOPS", "1 ms")
    assert "reads" not in text


def test_of_single_runs_none_is_the_best_and_how_far_they_differ_is_said() -> None:
    one, two = (figure(owner, value, None, n=1) for owner, value in (("one", 1e3), ("two", 1.01e3)))
    (row,) = told(one, two)
    assert not any(cell.is_bold or cell.text.startswith(INDISTINGUISHABLE_MARK) for cell in row)
    assert noted(one, two) == f"{RATIO_NOTE} No row has a winner: too few repeats."
    text = answer_text(study("one", "two"), (one, two), RUNS, ())
    assert tells(text, "Two is ahead in reads (1.01×)", "too few repeats"), text


def test_a_lead_over_one_whose_better_point_is_lost_is_none() -> None:
    one, two = figure("one", 1000.0, missing=1), figure("two", 1200.0)
    (row,) = told(one, two)
    assert not any(cell.is_bold for cell in row)
    assert "missing or invalid" in noted(one, two)
    text = answer_text(study("one", "two"), (one, two), RUNS, ())
    assert tells(text, "Two is ahead", "1.20×", "missing or invalid", "repeat those points")


def test_workloads_of_one_title_stand_apart() -> None:
    rows = told(figure("one", 1000.0), replace(figure("one", 900.0), workload="other"))
    assert len(rows) == 2


def test_less_latency_is_better() -> None:
    (row,) = told(figure("one", 1e5, unit="ns"), figure("two", 2e5, unit="ns"))
    assert [cell.is_bold for cell in row[1:]] == [True, False]


def test_an_invalid_figure_is_none_and_no_rival() -> None:
    bad = figure("two", 9e9, level=VerdictLevel.INVALID)
    (row,) = told(figure("one", 1000.0), bad)
    assert row[2].text == "not measurable"
    assert row[2].note == "It was short."
    assert not row[1].is_bold  # there is no other
    text = answer_text(study("one", "two"), (figure("one", 1.0), bad), RUNS, ())
    assert "at most one configuration has a usable figure" in text


def test_an_answer_without_a_result_says_what_to_do_first() -> None:
    bad = figure("one", 1.0, level=VerdictLevel.INVALID)
    caveats = [
        Objection("run-too-short", level, ("It was short.",), (), 6)
        for level in (VerdictLevel.INVALID, VerdictLevel.INDICATIVE)
    ]
    gravest, other = (study_answer(study("one"), (bad,), RUNS, [caveat]) for caveat in caveats)
    assert gravest.details == "What to do first: --runtime 30s, as published studies use."
    assert other.details == ""


def test_the_answer_says_which_to_take_for_what() -> None:
    found = [
        figure(owner, value, title=title)
        for title, values in (("a", (1, 2)), ("b", (1, 2)), ("c", (2, 1)), ("d", (1, 1)))
        for owner, value in zip(("one", "two"), values, strict=True)
    ]
    text = answer_text(study("one", "two"), found, RUNS, ())
    assert text.startswith(
        "Two is the best in 2 of 4 workloads, One in c; sure in a (2.00×), b (2.00×) and c (2.00×)."
    )
    assert "Not distinguishable in d." in text


def test_one_of_many_workloads_has_the_range_of_its_leads() -> None:
    found = [
        figure(owner, value, title=title)
        for title, lead in (("a", 2), ("b", 3), ("c", 4), ("d", 5))
        for owner, value in (("one", 1), ("two", lead))
    ]
    text = answer_text(study("one", "two"), found, RUNS, ())
    assert tells(text, "Two is the best in all 4 workloads; sure in all (2.00× to 5.00×)"), text


def test_an_id_keeps_its_case() -> None:
    named = replace(study("one", "two"), configurations=())
    text = answer_text(named, (figure("one", 1.0), figure("two", 2.0)), RUNS, ())
    assert text.startswith("two is the best in reads (2.00×), which is sure.")


def test_leads_that_are_open_for_several_reasons_are_told_together_once() -> None:
    found = (
        figure("one", 1000.0, title="a", missing=1),
        figure("two", 1200.0, title="a"),
        figure("one", 1000.0, None, n=2, title="b"),
        figure("two", 3000.0, None, n=2, title="b"),
    )
    text = answer_text(study("one", "two"), found, RUNS, ())
    assert tells(text, "Two is ahead in a (1.20×) and b (3.00×)"), text
    assert text.count("a point is missing or invalid and too few repeats") == 1


def test_what_weakens_the_leads_of_several_is_said_once() -> None:
    found = (
        figure("one", 3000.0, None, n=1, title="a"),
        figure("two", 1000.0, None, n=1, title="a"),
        figure("one", 1000.0, None, n=1, title="b"),
        figure("two", 2000.0, None, n=1, title="b"),
    )
    text = answer_text(study("one", "two"), found, RUNS, ())
    assert tells(text, "One is ahead in a (3.00×)", "Two is ahead in b (2.00×)")
    assert text.count("too few repeats") == 1
    sure = (figure("one", 3000.0, title="c"), figure("two", 1000.0, title="c"))
    text = answer_text(study("one", "two"), (*found, *sure), RUNS, ())
    assert text.startswith("One is the best in 2 of 3 workloads, Two in b; sure in c (3.00×).")
    assert text.count("too few repeats") == 1
    assert "none" not in text


def test_figures_of_memory_are_no_headline_beside_those_of_storage() -> None:
    cached = replace(figure("one", 9000.0, title="cached"), is_mostly_read_from_memory=True)
    stored = figure("one", 1000.0, title="stored")
    text = answer_text(study("one"), (cached, stored), RUNS, ())
    assert tells(text, "1 k IOPS (stored"), text
    assert "9 k IOPS" not in text
    alone = answer_text(study("one"), (cached,), RUNS, ())
    assert tells(alone, "9 k IOPS", "no storage result", "more data than memory"), alone
    assert "storage result" not in answer_text(study("one"), (stored,), RUNS, ())
    assert "from\N{NO-BREAK SPACE}memory" in told(cached)[0][1].note


def test_a_latency_of_too_few_ios_is_left_out_and_told_below() -> None:
    known, lacking = figure("one", 1000.0), figure("two", 2000.0)
    known = replace(known, latency_names_and_texts=(("mean", "1 ms"), ("p99", "2 ms")))
    lacking = replace(lacking, latency_names_and_texts=(("mean", "1 ms"), ("p99", DASH)))
    (row,) = told(known, lacking)
    assert "p99" in row[1].note
    assert "p99" not in row[2].note
    assert "No p99: too few I/Os for it." in noted(known, lacking)
    assert "too few I/Os" not in noted(known)


def test_the_largest_figure_is_told_with_what_weakens_it() -> None:
    large = figure("one", 9000.0, title="writes", level=VerdictLevel.INDICATIVE)
    text = answer_text(study("one"), (figure("one", 1000.0), large), RUNS, ())
    assert "9 k IOPS (writes at 1 ms mean, indicative)" in text
    assert "1 k IOPS" not in text


def test_reads_and_writes_are_told_apart() -> None:
    reads = replace(figure("one", 9000.0), operation="read")
    writes = replace(figure("one", 1000.0, title="writes"), operation="write")
    mixed = replace(figure("one", 7000.0, title="mixed"), operation="read/write")
    text = answer_text(study("one"), (reads, writes, mixed), RUNS, ())
    assert tells(text, "9 k IOPS (reads", "1 k IOPS (writes")
    assert "mixed" not in text
    assert "7 k IOPS" in answer_text(study("one"), (mixed,), RUNS, ())


def test_a_doubt_that_all_figures_share_is_said_once() -> None:
    doubted = [
        replace(figure("one", 9000.0, title=name, level=VerdictLevel.INDICATIVE), operation=name)
        for name in ("read", "write")
    ]
    text = answer_text(study("one"), doubted, RUNS, ())
    assert text.count("indicative") == 1


def test_what_is_titled_as_its_study_is_the_target() -> None:
    own = study("one")
    named = replace(own, title=own.configurations[0].title)
    assert answer_text(own, (figure("one", 1e3),), RUNS, ()).startswith("One reaches")
    assert answer_text(named, (figure("one", 1e3),), RUNS, ()).startswith("The target reaches")


def test_nothing_sound_is_said_to_be_nothing() -> None:
    bad = figure("one", 1000.0, level=VerdictLevel.INVALID)
    lost = replace(RUNS, valid=0, invalid=6)
    text = answer_text(study("one"), (bad,), lost, ())
    assert "all 6 runs are invalid" in text
    assert "IOPS" not in text
    assert confidence_line((bad,)) == "1 figure, not measurable."
    assert confidence_line((bad,), ()) == "1 figure, not measurable (run too short)."


def test_reads_and_writes_of_a_mix_have_their_own_latencies() -> None:
    page = shared.page("sweep").answer
    row = next(row for row in page.best_table.rows if "70/30" in row[0].text)
    best = next(
        one
        for one in best_point_headlines(shared.brief("sweep").study, shared.brief("sweep").points)
        if one.workload.id == "rand-70-30-4k"
    ).best
    assert best is not None
    for name, key in (("mean", "lat_ns_mean"), ("p99", "lat_ns_p99")):
        read, write = (metric_value_text(best.metrics[f"{way}_{key}"]) for way in ("read", "write"))
        assert f"{name} {read} read / {write} write" in row[1].note


def test_what_all_rows_have_in_common_stands_behind_the_title() -> None:
    table = Table(
        "Runs",
        text_and_number_columns(("Run",), ("IOPS", "n", "p99")),
        tuple(row_of_cells(name, rate, "3", DASH) for name, rate in (("a", "1 k"), ("b", "2 k"))),
    )
    compact = table_with_constants_in_title(table)
    assert [column.title for column in compact.columns] == ["Run", "IOPS"]
    assert compact.title == "Runs (all rows: n: 3)"
    assert (
        table_with_constants_in_title(replace(table, rows=table.rows[:1])).columns == table.columns
    )
    whole = table_with_constants_in_title(replace(table, keeps_constant_columns=True))
    assert [column.title for column in whole.columns] == ["Run", "IOPS", "n"]
    assert whole.title == "Runs"


def test_each_level_has_its_own_reasons() -> None:
    one = figure("one", 1e3, level=VerdictLevel.INDICATIVE)
    lost = replace(
        figure("one", 1e3, level=VerdictLevel.INVALID),
        objection_code_and_text=("bytes-moved", "It was not."),
    )
    parts = confidence_line((one, lost), ()).partition(".")[0].split(", ")
    assert ["run too short" in part for part in parts] == [True, False]
    assert ["bytes claimed and bytes moved" in part for part in parts] == [False, True]


def test_what_trust_quotes_stands_among_the_caveats_of_the_page() -> None:
    run = result(1, 1.0, VerdictLevel.INDICATIVE)
    brief = replace(shared.brief("sweep"), points=())
    caveats = [*map(_caveat_of(run), OTHER_LOAD_CODES), _caveat_of(run)("debug-build")]
    answer = build_answer(brief, [figure("one", 1e3)], RUNS, caveats, None)
    assert any("By debug-build." in text for text in answer.trust_texts)
    assert "debug-build" in [caveat.code for caveat in answer.caveats]
    assert len(answer.caveats) == CAVEATS_SHOWN - bool(answer.failed_runs_text)


def _caveat_of(run: RunResult) -> Callable[[str], Objection]:
    def caveat(code: str) -> Objection:
        return Objection(code, VerdictLevel.INDICATIVE, (f"By {code}.",), (run,), 1)

    return caveat


def test_other_load_is_of_the_resources_that_limits_are_told_by() -> None:
    run = result(1, 1.0)
    full = ResourceUse(Resource.PROCESSORS, "a", HostRole.CLIENT, "", 0.92, own_load_share=0.05)
    known = RunResources(
        (full,), None, memory_backed=False, is_storage_monitored=True, stolen_share=0.0
    )
    study = shared.brief("two").study
    assert other_load_sentence(study, [run]) == ""
    assert "87 % of the cores" in other_load_sentence(study, [run], {run.key: known})


def test_figures_are_doubted_for_the_reasons_that_caveats_tell() -> None:
    run = result(1, 1.0, VerdictLevel.INDICATIVE)
    caveat = Objection("device-busy", VerdictLevel.INDICATIVE, ("It was busy.",), (run,), 1)
    one = replace(figure("one", 1e3, level=VerdictLevel.INDICATIVE), run_key=run.key)
    assert "indicative (device busy before the start)" in confidence_line((one,), (caveat,))
    assert "device busy" not in confidence_line((one,))
    graver = replace(caveat, runs=(), less_affected_runs=(run,), verdict_level=VerdictLevel.INVALID)
    assert "indicative (device busy before the start)" in confidence_line((one,), (graver,))


def test_writes_far_above_the_same_reads_are_doubted() -> None:
    reads = replace(figure("one", 901e6, title="Read bandwidth", unit="bytes/s"), operation="read")
    writes = replace(
        figure("one", 1802e6, title="Write bandwidth", unit="bytes/s"), operation="write"
    )
    for factor, is_doubted in ((1.0, True), (0.6, False)):
        value = replace(writes.value, value=factor * 1802e6)
        figures = (reads, replace(writes, value=value))
        text = answer_text(study("one"), figures, RUNS, ())
        assert ("2.00× the reads" in text) is is_doubted, text
        answer = study_answer(study("one"), figures, RUNS, ())
        assert "the reads" not in answer.sentence
        assert "901 MB/s read and" in answer.sentence
    other = replace(writes, axis_values=(("iodepth", 8),))  # of another load
    assert "the reads" not in answer_text(study("one"), (reads, other), RUNS, ())


def test_an_invalid_point_has_the_reason_of_an_invalid_repeat() -> None:
    bad = CheckResult("bytes-moved", VerdictLevel.INVALID, "It was not.")
    mild = CheckResult("run-too-short", VerdictLevel.INDICATIVE, "It was short.")
    run = shared.brief("sweep").results[0]
    median = replace(run, verdict=Verdict(VerdictLevel.INDICATIVE, (mild,)))
    other = replace(run, verdict=Verdict(VerdictLevel.INVALID, (mild, bad)))
    assert code_and_text_of_gravest_check((median, other), VerdictLevel.INVALID) == (
        "bytes-moved",
        "It was not.",
    )
    assert (
        code_and_text_of_gravest_check((median, other), VerdictLevel.INDICATIVE)[0]
        == "run-too-short"
    )


def busy(share: float, code: str = "device-busy") -> Objection:
    """An objection to every run that others were so busy."""
    name = "share_of_run" if code == "device-busy" else "others_busy_share"
    check = CheckResult(code, VerdictLevel.INDICATIVE, code, {name: share})
    run = replace(
        shared.brief("sweep").results[0], verdict=Verdict(VerdictLevel.INDICATIVE, (check,))
    )
    return Objection(code, VerdictLevel.INDICATIVE, (code,), (run,), 1)


def test_others_as_busy_as_the_run_are_told_first() -> None:
    other = replace(busy(0.0), code="run-too-short", messages=("short",))
    for code in ("device-busy", "client-starved"):
        for share, first in ((0.9, code), (0.1, "run-too-short")):
            caveats = (other, busy(share, code))
            page = build_answer(shared.brief("sweep"), (figure("one", 1.0),), RUNS, caveats, None)
            assert page.caveats[0].code == first


def shared_machine(own: float, busy_share: float = 0.98) -> RunResources:
    use = ResourceUse(
        Resource.PROCESSORS, LOCAL_HOST, HostRole.CLIENT, "", busy_share, own_load_share=own
    )
    return RunResources(
        (use,), None, memory_backed=False, is_storage_monitored=True, stolen_share=0.0
    )


def test_trust_names_other_load_on_the_cores_and_no_limit_is_blamed_on_them_alone() -> None:
    brief = shared.brief("sweep")
    results = tuple(
        replace(result, resources=shared_machine(own))
        for result, own in zip(brief.results, itertools.cycle((0.02, 0.0)), strict=False)
    )
    crowded = replace(
        brief,
        results=results,
        run_resources={run.key: run.resources for run in results if run.resources is not None},
    )
    answer = build_answer(crowded, (figure("one", 1.0),), RUNS, (), None)
    (place,) = [at for at, text in enumerate(answer.trust_texts) if "Other programs" in text]
    assert place == 1  # after how many runs are valid
    assert tells(answer.trust_texts[place], "96 to 98 %", "cores", "all 17 runs")
    limits = " ".join((answer.conclusion, *answer.detail_texts))
    assert "likely other load on the processors" in limits
    # With its own jobs on them the processors are the load's limit.
    own = tuple(replace(result, resources=shared_machine(0.9)) for result in results)
    assert other_load_sentence(brief.study, own) == ""
    assert other_load_sentence(brief.study, brief.results) == ""
    # A latency is told beside others only where they were there in each of its runs.
    assert tells(other_processor_load_text(results), "96 to 98 %", "cores")
    assert other_processor_load_text((*results, own[0])) == ""


def test_io_of_others_before_the_start_is_named_with_its_runs() -> None:
    (run,) = busy(0.7).runs
    calm = replace(run, verdict=Verdict(VerdictLevel.VALID, ()))
    study = shared.brief("sweep").study
    text = other_load_sentence(study, [run, calm, calm])
    assert tells(text, "1 of 3 runs", "70 % of the load's")
    assert other_load_sentence(study, [calm, *busy(0.3).runs]) == ""
    # Every run that the caveat counts counts, also those in which others had less.
    every = other_load_sentence(study, [run, *busy(0.3).runs, calm])
    assert tells(every, "2 of 3 runs", "30 to 70 % of the load's")


def test_every_invalid_run_has_its_check_in_trust() -> None:
    first, second, third = shared.brief("sweep").results[:3]
    caveats = [
        Objection("start-skew", VerdictLevel.INVALID, ("Hosts began apart.",), (first, second), 6),
        Objection("engine-failed", VerdictLevel.INVALID, ("It failed.",), (second,), 6),
        Objection("guest-bound", VerdictLevel.INVALID, ("A guest was full.",), (second, third), 6),
        Objection("run-too-short", VerdictLevel.INDICATIVE, ("It was short.",), (first, third), 6),
    ]
    text = gravest_caveats_except_other_load_sentence(caveats)
    assert tells(text, "Hosts began apart. (2 of 6 runs)", "by their processors in 1 run")
    assert not any(caveat.code in text for caveat in caveats)
    assert "engine-failed" not in text
    assert "run-too-short" not in text


def test_another_check_that_objects_to_the_same_runs_is_named() -> None:
    runs = shared.brief("sweep").results[:2]
    caveats = [
        Objection("phase-too-short", VerdictLevel.INVALID, ("A phase was short.",), runs, 6),
        Objection("rank-skew", VerdictLevel.INVALID, ("Ranks worked apart.",), runs, 6),
    ]
    assert tells(
        gravest_caveats_except_other_load_sentence(caveats),
        "A phase was short.",
        "Also found: ranks that did not work at the same time",
    )


def test_repeats_that_are_invalid_are_in_no_mean() -> None:
    brief = shared.brief("sweep")
    method = replace(brief.study.method, repeats=2)
    done = replace(brief, study=replace(brief.study, method=method))
    text = repeats_sentence(replace(RUNS, valid=5, invalid=1), done)
    assert "1 run; the other repeat is invalid" in text
    doubled = tuple(replace(point, results=point.results * 2) for point in done.points[:1])
    two = replace(done, points=(*doubled, *done.points[1:]))
    text = repeats_sentence(replace(RUNS, valid=5, invalid=1), two)
    assert "geometric mean of its 2 repeats, invalid ones left out" in text


def test_repeats_that_disagree_are_told_as_a_range_and_make_no_single_factor() -> None:
    one = figure("one", 1000.0, 0.01)
    two = replace(figure("two", 2000.0, 0.8, n=3), repeats_range=(1500.0, 3000.0))
    rows = workload_rows((one, two))
    assert rows[0].lead_ratio_text == "1.50× to 3.00×"
    (row,) = told(one, two)
    assert tells(row[2].note.replace("\N{NO-BREAK SPACE}", " "), "repeats 1.50 to 3"), row[2].note
    assert workload_rows((one, figure("two", 2000.0)))[0].lead_ratio_text == "2.00×"


def test_many_configurations_are_rows() -> None:
    names = tuple(f"c{number}" for number in range(CONFIGURATION_COLUMNS_MAX + 1))
    rows = told(*(figure(name, 1000.0) for name in names), names=names)
    assert [row[0].text for row in rows] == [name.title() for name in names]
    assert not any(cell.note for row in rows for cell in row)
    doubted = [figure(name, 1000.0, level=VerdictLevel.INDICATIVE) for name in names]
    assert not any(cell.note for row in told(*doubted, names=names) for cell in row)
    assert ALL_INDICATIVE_NOTE in noted(*doubted)
    mixed = (figure(names[0], 1000.0), *doubted[1:])
    rows = told(*mixed, names=names)
    assert [row[1].note for row in rows] == ["", *(["indicative"] * len(doubted[1:]))]
    assert INDICATIVE_NOTE in noted(*mixed)


def test_how_far_intervals_reach_is_said() -> None:
    text = confidence_line((figure("one", 1e3, 0.01), figure("one", 1e3, 0.08, title="w")))
    assert "±1 % to ±8 %" in text
    assert "too few" not in text


def test_why_there_is_no_interval_depends_on_how_many_repeats_there_are() -> None:
    assert "too few repeats" in confidence_line((figure("one", 1e3, 0.4, n=2),)).lower()
    apart = confidence_line((figure("one", 1e3, 0.4, n=3),)).lower()
    assert "too few" not in apart
    assert "too far apart" in apart
    mixed = confidence_line(
        (figure("one", 1e3, 0.02), figure("one", 1e3, 0.4), figure("one", 1e3, None))
    )
    assert "1 of 3 have too few repeats" in mixed
    assert "1 of 3 have repeats too far apart for an interval" in mixed


def test_how_many_repeats_a_figure_has_is_said_only_where_all_are_done() -> None:
    brief = shared.brief("sweep")
    method = replace(brief.study.method, repeats=3)
    done = replace(brief, study=replace(brief.study, method=method))
    assert "mean of 3 repeats" in repeats_sentence(RUNS, done)
    begun = replace(done, session=replace(done.session, status=SessionStatus.INTERRUPTED))
    assert "mean of 3 repeats" not in repeats_sentence(RUNS, begun)


def test_a_question_for_machines_is_answered_with_their_number() -> None:
    wanted = replace(growing.STUDY, answer=AnswerKind.MACHINES)

    def answer(rates: dict[int, tuple[float, ...]]) -> str:
        points = growing.points(growing.runs(rates))
        return answer_text(wanted, (figure("default", 4e4),), RUNS, (), points)

    saturated = answer({1: (1e4,) * 3, 2: (2e4,) * 3, 4: (3.8e4,) * 3, 8: (4e4,) * 3})
    assert tells(saturated, "carries 4 hosts", "38.0 k IOPS"), saturated
    growing_on = answer({1: (1e4,) * 3, 2: (2e4,) * 3, 4: (4e4,) * 3})
    assert tells(growing_on, "at least 4 hosts"), growing_on
    too_few = answer({1: (1e4,) * 3, 2: (2e4,) * 3})
    assert tells(too_few, "not known", "40 k IOPS"), too_few
    sentence, _, rest = too_few.partition(". ")
    assert "IOPS" not in sentence
    assert rest.startswith("The target reaches")


def test_figures_of_one_title_have_their_subjects() -> None:
    blocks = brief_blocks(shared.brief("two"), shared.page("two"))
    first = next(block for block in blocks if isinstance(block, ChartBlock))
    alike = [replace(first.charts[0], subject=name, title="Ranks") for name in ("a", "b")]
    (group,) = with_chart_numbers([ChartBlock(tuple(alike))])
    assert isinstance(group, ChartBlock)
    assert [figure.title for figure in group.charts] == ["Fig 1a. a: Ranks", "Fig 1b. b: Ranks"]


def test_one_configuration_has_no_order() -> None:
    text = answer_text(
        replace(study("one"), answer=AnswerKind.ORDER), (figure("one", 1e3),), RUNS, ()
    )
    assert tells(text, "no order", "1 k IOPS"), text


def test_a_reduced_scale_says_what_it_sets() -> None:
    study = replace(
        shared.brief("sweep").study,
        scale="small",
        text='id = "s"\n[scale.small]\n"method.runtime" = "20s"\nworkload."*".filesize = "1g"\n',
    )
    assert scale_setting_texts(study) == ("runtime 20s", "filesize 1g")
    overrides = ("target.path=/mnt", "method.warmup=1s", "method.runtime=10s")
    assert scale_setting_texts(study, overrides) == ("filesize 1g",)
    assert override_texts(study, overrides) == ("runtime 10s (scale: 20s)", "warmup 1s")
    brief = shared.brief("sweep")
    several_sets = (*(f"workload.*.option{number}={number}" for number in range(9)), *overrides)
    brief = replace(brief, study=study, session=replace(brief.session, overrides=several_sets))
    (scale,) = (text for name, text in session_fact_rows(brief) if name == "Scale")
    assert scale == "small, runtime, option0, option1 and 8 more changed by the user"
    row = next(row for row in session_methods_table(brief).rows if row[0].text == "Scale")
    assert tells(row[1].text, "small: filesize 1g; changed by the user: runtime 10s", "option8 8")
    settings = ('"workload.a.numjobs" = 1', '"workload.b.numjobs" = 16', '"phase.*.seconds" = "5s"')
    several = "\n".join(("[scale.small]", *settings))
    texts = scale_setting_texts(replace(study, text=several))
    assert texts == ("a numjobs 1", "b numjobs 16", "seconds 5s")
    assert "small" in scale_sentence(study)
    assert not scale_sentence(replace(study, scale="full"))


def test_a_best_at_needless_load_has_the_latency_of_the_load_that_suffices() -> None:
    best = replace(
        figure("one", 2.58e3),
        axis_text="iodepth 32",
        axis_values=(("iodepth", 32),),
        least_sufficient_axis_values=(("iodepth", 4),),
        latency_names_and_texts=(("mean", "12.4 ms"), ("p99", "94.3 ms")),
        sufficient_latency_names_and_texts=(("mean", "1.55 ms"), ("p99", "40.8 ms")),
    )
    ((_, cell, _),) = told(best, figure("two", 2.00e3))
    note = cell.note.replace("\N{NO-BREAK SPACE}", " ")
    assert "iodepth 32 · iodepth 4 suffices" in note
    assert "at iodepth 4: mean 1.55 ms · p99 40.8 ms" in note
    assert "12.4" not in note
    ((_, cell, _),) = told(
        replace(best, least_sufficient_axis_values=best.axis_values), figure("two", 2.00e3)
    )
    assert "mean 12.4 ms · p99 94.3 ms" in cell.note.replace("\N{NO-BREAK SPACE}", " ")


def test_figures_of_a_brief_are_numbered_and_named_in_the_text() -> None:
    brief = shared.brief("two")
    blocks = list(brief_blocks(brief, shared.page("two")))
    titles = [
        figure.title for block in blocks if isinstance(block, ChartBlock) for figure in block.charts
    ]
    assert titles
    assert all(re.match(r"Fig \d+[a-z]?\. ", title) for title in titles)
    numbers = [title.split(".")[0] for title in titles]
    assert len(set(numbers)) == len(numbers)
    notes = " ".join(block.text for block in blocks if isinstance(block, Paragraph))
    assert "Fig 2: the rate" in notes


def test_repeats_that_are_left_out_stand_beside_their_own_figure() -> None:
    brief = shared.brief("pair")
    (row,) = workload_rows(brief.best_figures)
    cells = tuple(
        cell if cell is row.best else replace(cell, left_out_repeats_text="1 of 3 repeats invalid")
        for cell in row.figures
    )
    ahead = replace(
        row, figures=cells, undecided_reason="", indistinguishable=(), relative_lead=0.5
    )
    first = fast_facts(brief, (ahead,), ())[0]
    assert first.note.endswith("of One (1 of 3 repeats invalid)")


def test_what_a_kind_of_load_says_goes_on_a_demonstration_in_small_letters() -> None:
    made = study("one")
    prefix = "Demonstration, not drives: "

    def told(text: str) -> str:
        return study_answer(
            made, (figure("one", 1e3),), RUNS, (), (), text, demonstration_prefix=prefix
        ).sentence

    assert told("Serves 24 requests/s.").startswith(f"{prefix}serves 24")
    title = made.workloads[0].title
    assert told(f"{title}: serves 24.").startswith(f"{prefix}{title}: serves")
