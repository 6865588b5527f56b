"""A neighbour beside a load of a fixed rate: ratios of latencies, what limits undo, in words."""

from __future__ import annotations

from io import StringIO

import numpy as np
import pytest
from msgspec.structs import replace
from rich.console import Console

from iolab.analysis.pairs import default_metric_keys
from iolab.analysis.points import summarise_points
from iolab.core.metric import (
    CheckResult,
    Metric,
    PhaseFigures,
    RunResult,
    ScenarioFigures,
    VerdictLevel,
)
from iolab.core.metric_spec import phase_metric_key
from iolab.core.scenario import EventOutcome, IoLimit
from iolab.report.blocks import brief_blocks
from iolab.report.scenario import (
    NEIGHBOURS_TITLE,
    fault_impact_sentence,
    neighbour_table_ratios_note,
    neighbours_table,
    phases_table,
    run_fault_impact_sentence,
    scenario_section,
)
from iolab.report.table import Table, table_with_constants_in_title
from iolab.report.terminal import grouped_report_table
from tests.analysis.planted import Session, neighboured, timed
from tests.analysis.records import DEVICE, GO_NS, JOB, SECOND, Burst, bursts_record, facts_of
from tests.judging import judge
from tests.report import shared
from tests.report.growing import STUDY

ALONE_NS, BESIDE_NS, LIMITED_NS = 2_000_000, 15_000_000, 2_100_000
RATE = 1_000


def victim(
    beside_ns: int = BESIDE_NS, limited_ns: int = LIMITED_NS, beside_rate: int = RATE, *,
    paced: bool = True,
) -> Session:  # fmt: skip
    """A load of 1,000 I/Os a second beside a neighbour from 90 to 130 s, limited from 110 s on."""
    session = neighboured(500, 200)
    seconds = [(ALONE_NS, RATE)] * 90 + [(beside_ns, beside_rate)] * 20
    seconds += [(limited_ns, RATE)] * 20 + [(ALONE_NS, RATE)] * 20
    bursts = [
        Burst(start_s=float(at), spans=1, ios=ios, lat_ns=lat_ns, first_seq=at)
        for at, (lat_ns, ios) in enumerate(seconds)
    ]
    job = replace(JOB, rate_iops=RATE // JOB.numjobs) if paced else JOB
    own = timed(bursts_record(bursts, job=job, runtime_s=150.0))
    scenario = session.record.scenario
    assert scenario is not None
    # The neighbour's events alone.
    scenario = replace(scenario, events=scenario.events[1:], answers=(), readbacks=())
    kept = {name: getattr(session.record, name) for name in KEPT}
    return session.but(replace(own, scenario=scenario, runtime_s=90.0, **kept))


KEPT = ("neighbours", "neighbour_intervals", "neighbour_bins")


def judged(session: Session) -> RunResult:
    return judge(session.record, session.facts)


def scenario_of(result: RunResult) -> ScenarioFigures:
    assert result.scenario is not None
    return result.scenario


def phases(result: RunResult) -> dict[str, PhaseFigures]:
    return {phase.id: phase for phase in scenario_of(result).phases}


def test_ratios_are_those_that_were_made_within_their_intervals() -> None:
    found = phases(judged(victim()))
    for name, truth in (("degraded", 7.5), ("rebuild", 1.05)):
        for ratio in (found[name].p50_ratio, found[name].p99_ratio, found[name].mean_ratio):
            assert ratio.value == pytest.approx(truth, rel=0.03)
            assert ratio.low is not None
            assert ratio.high is not None
            assert ratio.low <= truth <= ratio.high
    assert found["before"].p50_ratio.value is None
    assert found["after"].p50_ratio.value == pytest.approx(1, rel=0.01)


def test_the_neighbours_own_rate_is_that_of_each_phase() -> None:
    (neighbour,) = scenario_of(judged(victim())).neighbours
    rates = {phase.id: phase.iops.value for phase in neighbour.phases}
    assert rates == {
        "degraded": pytest.approx(500, rel=0.05),
        "rebuild": pytest.approx(200, rel=0.05),
    }
    (limit,) = neighbour.limit_figures
    assert limit.limit == 200
    assert limit.rate == pytest.approx(200, rel=0.06)


@pytest.mark.parametrize(
    ("rate", "level"), [(200, VerdictLevel.VALID), (400, VerdictLevel.INVALID)]
)
def test_a_limit_of_a_partition_counts_once_for_all_layers(rate: int, level: VerdictLevel) -> None:
    """A load at twice its limit is found, though its target has two devices, one on the other."""
    session = neighboured(500, rate).but(facts={"c1": facts_of("c1", devices=("p1", DEVICE))})
    assert limit_check(judged(session)).level is level


def test_a_limit_holds_until_a_newer_one_of_the_same_rate_begins() -> None:
    """The load keeps 200 a second for 10 s, then the 500 that the newer limit grants it."""
    record = neighboured(500, 200).record
    scenario, table = record.scenario, record.neighbour_intervals
    assert scenario is not None
    assert table is not None
    *others, limit = scenario.events
    newer_ns = GO_NS + 120 * SECOND
    newer = replace(
        limit,
        id="more",
        due_real_ns=newer_ns,
        start_real_ns=newer_ns,
        end_real_ns=newer_ns,
        io_limit=IoLimit(read_iops=500),
    )
    ios = np.where(table.end_real_ns > newer_ns, 500, table.ios)
    for limits, level in (((limit, newer), VerdictLevel.VALID), ((limit,), VerdictLevel.INVALID)):
        changed = replace(
            record,
            scenario=replace(scenario, events=(*others, *limits)),
            neighbour_intervals=replace(table, ios=ios),
        )
        assert limit_check(judged(victim().but(changed))).level is level
    other_rate = replace(newer, io_limit=IoLimit(write_iops=500))
    events = (*others, limit, other_rate)
    changed = replace(changed, scenario=replace(scenario, events=events))
    assert limit_check(judged(victim().but(changed))).level is VerdictLevel.INVALID


def test_a_limit_of_two_disks_is_twice_that_of_one() -> None:
    record = neighboured(500, 400).record
    (run,) = record.neighbours
    for disks, level in (
        ((DEVICE, "sdb"), VerdictLevel.VALID),
        ((), VerdictLevel.INDICATIVE),  # The agent did not live to say.
    ):
        moved = replace(record, neighbours=(replace(run, limited_disks=disks),))
        assert limit_check(judged(victim().but(moved))).level is level


def limit_check(result: RunResult) -> CheckResult:
    (check,) = [c for c in result.verdict.checks if c.code == "neighbour-unlimited"]
    return check


def test_a_neighbours_own_limit_is_none_of_what_undoes_its_cost() -> None:
    session = victim()
    scenario = session.record.scenario
    assert scenario is not None
    begun, limit = scenario.events
    events = (replace(begun, io_limit=IoLimit(read_iops=500)), limit)
    limited = session.but(replace(session.record, scenario=replace(scenario, events=events)))
    result = judged(limited)
    assert run_fault_impact_sentence(result) == run_fault_impact_sentence(judged(session))
    (neighbour,) = scenario_of(result).neighbours
    assert [figures.event for figures in neighbour.limit_figures] == ["noise", "limit"]


@pytest.mark.parametrize(("lost_at_s", "is_blamed"), [(131, False), (90, True)])
def test_a_fault_costs_nothing_before_it_begins(lost_at_s: int, *, is_blamed: bool) -> None:
    """A disk is lost after a neighbour has ended, or when it begins."""
    session = victim()
    scenario = session.record.scenario
    assert scenario is not None
    moment_ns = GO_NS + lost_at_s * SECOND
    lost = EventOutcome(
        "lose", "c1", "detach", "after", moment_ns, moment_ns, moment_ns, title="Losing a disk"
    )
    events = (*scenario.events, lost)
    both = session.but(replace(session.record, scenario=replace(scenario, events=events)))
    result = judged(both)
    assert scenario_of(result).fault == "lose"
    text = run_fault_impact_sentence(result)
    cost = "Losing a disk makes the p99 7.48 times (7.33 to 7.63) as long in phase 'degraded'"
    assert (cost in text) is is_blamed
    assert ("Losing a disk changes nothing" in text) is not is_blamed
    assert text.startswith("A noisy neighbour makes the p50 7.48 times")


@pytest.mark.parametrize(
    ("session", "reason"),
    [
        (victim(paced=False), "no fixed rate"),
        (victim(beside_rate=800), "80 % of the first phase's"),
    ],
    ids=["closed-loop", "behind-its-rate"],
)
def test_latencies_of_other_loads_have_no_ratio_but_a_reason(session: Session, reason: str) -> None:
    result = judged(session)
    found = phases(result)["degraded"]
    assert [found.p50_ratio.value, found.p99_ratio.value, found.mean_ratio.value] == [None] * 3
    assert reason in found.unequal_load
    assert reason in neighbour_table_ratios_note([scenario_of(result)], result.metrics)
    assert reason in run_fault_impact_sentence(result)


def test_a_rate_within_5_percent_is_the_same_load() -> None:
    assert phases(judged(victim(beside_rate=960)))["degraded"].p50_ratio.value is not None


def test_the_sentence_tells_what_it_costs_and_that_the_limit_undoes_it() -> None:
    text = run_fault_impact_sentence(judged(victim()))
    assert text.startswith("A noisy neighbour makes the p50 7.48 times (7.33 to 7.63)")
    for part in ("at the same 1 k IOPS", "in phase 'degraded' (20 s)", "200 IOPS undoes that"):
        assert part in text


def test_a_limit_that_changes_nothing_is_not_praised() -> None:
    text = run_fault_impact_sentence(judged(victim(limited_ns=BESIDE_NS)))
    assert "does not undo that" in text
    assert "eases that" in run_fault_impact_sentence(judged(victim(limited_ns=8_000_000)))


def test_a_neighbour_that_costs_nothing_is_told_so() -> None:
    text = run_fault_impact_sentence(judged(victim(ALONE_NS, ALONE_NS)))
    assert "makes no latency longer" in text
    assert "has nothing to undo" in text


def test_a_ratio_that_may_be_chance_is_no_cost() -> None:
    """One whose interval holds 1 is none that a sentence tells as longer, shorter ones neither."""
    result = judged(victim())
    metrics = dict(result.metrics)
    key = phase_metric_key("degraded", "p50_ratio")
    metrics[key] = Metric(1.8, "x", 0.9, 3.6, 6)
    text = fault_impact_sentence([scenario_of(result)], metrics)
    assert text.startswith("A noisy neighbour makes the p99 7.48")
    assert "p50 1.80" not in text
    assert "undoes that: the p99 is 1.05 times" in text
    metrics[phase_metric_key("degraded", "p99_ratio")] = Metric(0.5, "x", 0.2, 0.8, 6)
    text = fault_impact_sentence([scenario_of(result)], metrics)
    assert "makes no latency longer" in text
    assert "the p50 is 1.80 times (0.900 to 3.60) the first phase's" in text


def test_the_table_has_both_loads_of_each_phase() -> None:
    result = judged(victim())
    table = neighbours_table([scenario_of(result)], result.metrics)
    assert table is not None
    rows = [[cell.text for cell in row] for row in table.rows]
    assert [row[0] for row in rows] == ["degraded", "rebuild", "after"]
    assert "noise" in " ".join(rows[0])
    assert "7.48" in " ".join(rows[0])
    assert "noise" not in " ".join(rows[2])


def test_the_table_has_the_neighbours_of_all_repeats() -> None:
    """The last one did not run in the first repeat."""
    result = judged(victim())
    scenario = scenario_of(result)
    (neighbour,) = scenario.neighbours
    repeats = [replace(scenario, neighbours=())]
    for iops, p99_ns in ((100.0, 2e6), (900.0, 18e6)):
        part = replace(
            neighbour.phases[0], iops=Metric(iops, "1/s"), lat_ns_p99=Metric(p99_ns, "ns")
        )
        repeats.append(replace(scenario, neighbours=(replace(neighbour, phases=(part,)),)))
    table = neighbours_table(repeats, result.metrics)
    assert table is not None
    assert [cell.text for cell in table.rows[0]][1:4] == ["noise", "300", "6.00 ms"]


def test_the_note_names_each_phase_without_ratios_and_how_many_repeats_lack_them() -> None:
    result = judged(victim(paced=False))
    scenario = scenario_of(result)
    assert "None in phases 'degraded', 'rebuild' and 'after', where the load has no" in (
        neighbour_table_ratios_note([scenario], result.metrics)
    )
    phases = [replace(phase, unequal_load="") for phase in scenario.phases]
    note = neighbour_table_ratios_note(
        [scenario, replace(scenario, phases=tuple(phases))], result.metrics
    )
    assert "In 1 of 2 repeats none in phases 'degraded', 'rebuild' and 'after', where" in note


def test_a_neighbour_is_held_to_its_rate_in_phases_without_its_limit() -> None:
    session = neighboured(500, 200)
    (run,) = session.record.neighbours
    job = replace(run.point.job, rate_iops=1000 // run.point.job.jobs_per_client)
    point = replace(run.point, job=job)
    result = judged(session.but(replace(session.record, neighbours=(replace(run, point=point),))))
    (check,) = [check for check in result.verdict.checks if check.code == "neighbour-absent"]
    assert check.level is VerdictLevel.INDICATIVE
    assert "in phase 'degraded'" in check.message
    assert "'rebuild'" not in check.message


def test_a_neighbour_without_a_disk_leaves_the_limit_of_another_one_known() -> None:
    session = neighboured(500, 400)
    (run,) = session.record.neighbours
    free = replace(run, event="free", limited_disks=())
    record = replace(session.record, neighbours=(run, free))
    check = limit_check(judged(session.but(record)))
    assert check.level is VerdictLevel.INVALID
    assert "did not hold it" in check.message


def test_a_report_has_the_table_of_neighbours_open_below_that_of_phases() -> None:
    brief = shared.brief("pair")
    (first, *_) = brief.results
    run = replace(first, scenario=scenario_of(judged(victim())))
    point = replace(summarise_points([first], brief.study)[0], results=(run,))
    section = scenario_section(replace(brief, points=(point,)))
    assert section is not None
    page = replace(shared.page("pair"), sections=(section,))
    tables = [block for block in brief_blocks(brief, page) if isinstance(block, Table)]
    place = [table.title for table in tables].index(NEIGHBOURS_TITLE)
    # The table of phases: its columns that are alike in all rows stand in its heading.
    assert tables[place - 1].columns[0].title == tables[place].columns[0].title == "Phase"
    assert len(tables[place - 1].rows) == len(tables[place].rows) + 1


def test_the_end_of_a_neighbour_is_that_of_its_seconds() -> None:
    """At 130 s it ends: nothing of it is in the last phase, and no second of it is silent."""
    (neighbour,) = scenario_of(judged(victim())).neighbours
    assert neighbour.silent_s == 0
    assert sum(phase.seconds for phase in neighbour.phases) == pytest.approx(40, abs=1)


def test_phases_that_are_alike_keep_their_columns() -> None:
    """That the rate is the same in all phases is what their table tells of a fixed rate."""
    result = judged(victim())
    table = phases_table([scenario_of(result)], result.metrics)
    alike = replace(table, rows=(table.rows[0], table.rows[0]))
    compact = table_with_constants_in_title(alike)
    assert compact.title == table.title
    assert "IOPS" in [column.title for column in compact.columns]


@pytest.mark.parametrize("width", [80, 130, 200])
def test_no_figure_is_cut_on_a_narrow_screen(width: int) -> None:
    """What there is no room for is named, and what is shown is whole."""
    result = judged(victim())
    table = neighbours_table([scenario_of(result)], result.metrics)
    assert table is not None
    for shown in (phases_table([scenario_of(result)], result.metrics), table):
        console = Console(width=width, record=True, file=StringIO())
        console.print(grouped_report_table(shown))
        text = console.export_text()
        assert max(map(len, text.splitlines())) <= width
        words = {word for column in shown.columns for word in column.title.split()}
        assert {word for word in words if word not in text} == set()
        for row in shown.rows:
            assert row[0].text in text
    assert text.count("7.48× (7.33 to 7.63)") >= 2


def test_an_interval_at_the_edge_of_a_limit_does_not_count() -> None:
    """Intervals of 1 s that begin between seconds have I/Os of before the limit, and of its end."""
    session = victim()
    record = session.record
    assert record.scenario is not None
    begun, limit = record.scenario.events
    late_ns = 400_000_000
    events = (
        replace(begun, undone_real_ns=(begun.undone_real_ns or 0) - late_ns),
        replace(limit, undone_real_ns=(limit.undone_real_ns or 0) - late_ns),
    )
    moved = replace(record, scenario=replace(record.scenario, events=events))
    (neighbour,) = scenario_of(judged(session.but(moved))).neighbours
    (found,) = neighbour.limit_figures
    assert found.rate == pytest.approx(200, rel=0.005)


def test_two_systems_are_compared_by_the_phases_after_the_first_in_their_order() -> None:
    """Stored metrics are by name, in which `after` is the first phase of all."""
    result = judged(victim())
    by_name = replace(result, metrics=dict(sorted(result.metrics.items())))
    (point,) = summarise_points([by_name], STUDY)
    keys = default_metric_keys(STUDY.workloads[0], (point, point))
    found = [key.removesuffix(".iops") for key in keys if key.endswith(".iops")]
    assert found == ["phase.degraded", "phase.rebuild", "phase.after"]
    assert "phase.degraded.p50_ratio" in keys
