"""Figures of a run with phases: shares, dates, stalls, and what was copied."""

from __future__ import annotations

import math
import tracemalloc
from collections.abc import Sequence
from typing import Any, TypeVar

import numpy as np
import pytest
from msgspec.structs import replace

from iolab.analysis.points import summarise_points
from iolab.analysis.scenario import PerSecondHistograms, rebuild_window
from iolab.core.histogram import UPPER_NS, bin_index_of_ns
from iolab.core.metric import CheckResult, Metric, RunResult, ScenarioFigures, VerdictLevel
from iolab.core.samples import BinTable, IntervalTable
from iolab.core.scenario import (
    UNDO_BY_KEEPER,
    EventOutcome,
    PhaseEndReason,
    Readback,
    WitnessAnswer,
)
from iolab.core.workload import Direction
from iolab.loads.fileio.workload import AccessPattern, Job
from iolab.record import field_names
from iolab.report.best import code_and_text_of_gravest_check
from iolab.report.phrases import merge_objections
from iolab.report.scenario import (
    detected_changes_table,
    fault_impact_sentence,
    run_fault_impact_sentence,
)
from iolab.text import percent_text
from tests.analysis.planted import (
    PHASED,
    Session,
    files,
    neighboured,
    on,
    phased,
    said,
    scaled,
)
from tests.analysis.records import GO_NS, JOB, SECOND, Burst, Spell, facts_of, tables
from tests.judging import judge
from tests.report.growing import STUDY

FAR_NS = 1 << 62
THROTTLED = "rebuild-throttled"


STALL_S = 17
PACE = 260


def paced_with_stall(left: int) -> Session:
    """A pace of which so much was left for 17 s from the fault at 90 s on, as of a hung OSD.

    A job that waits submits nothing, so that the p99 of these seconds is as ever.
    """
    counts = [PACE] * 90 + [left] * STALL_S + [PACE] * (60 - STALL_S)
    bursts = [
        Burst(start_s=float(at), spans=1, ios=ios, lat_ns=8_000_000, first_seq=at)
        for at, ios in enumerate(counts)
        if ios
    ]
    job = replace(JOB, access=AccessPattern.RANDRW, rate_iops=PACE // JOB.numjobs)
    record = replace(files(bursts, job=job), scenario=phased().scenario, runtime_s=90.0)
    return PHASED.but(record)


@pytest.mark.parametrize(("left", "standing_s"), [(0, STALL_S), (87, 0)])
def test_a_stall_under_a_pace_counts_until_the_baseline_is_back(left: int, standing_s: int) -> None:
    result = judged(paced_with_stall(left))
    scenario = result.scenario
    assert scenario is not None
    assert scenario.changed_metric == "lat_ns_p99"
    assert scenario.baseline_s is not None
    assert scenario.baseline_s.value == pytest.approx(STALL_S, abs=1)
    assert scenario.phases[1].stalled_s == standing_s
    served = (STALL_S * left / PACE + 20 - STALL_S) / 20
    share = result.metrics["phase.degraded.served_share"]
    assert share.value == pytest.approx(served, abs=0.01)
    text = run_fault_impact_sentence(result)
    assert f"costs {percent_text(1 - served)} of the I/Os in phase 'degraded'" in text
    assert ("stops reads or writes for 17 s in phase 'degraded' (20 s)" in text) is bool(standing_s)
    assert "the baseline was back 17 s after the fault" in text
    eventless = replace(scenario, events=())
    text = fault_impact_sentence([eventless], result.metrics)
    assert "fewer I/Os than the first phase" in text


def test_a_stall_that_a_pace_makes_up_for_is_told() -> None:
    """The rate of the phase, its median second and its p99 are as ever."""
    session = paced_with_stall(0)
    scale = np.where(session.record.bins.seq == 90 + STALL_S, 1 + STALL_S, 1)
    bins = replace(session.record.bins, count=session.record.bins.count * scale)
    text = run_fault_impact_sentence(judged(session.but(replace(session.record, bins=bins))))
    assert f"stops reads or writes for {STALL_S - 1} s in phase 'degraded' (20 s)" in text
    assert "changes nothing" not in text


def test_a_pace_that_is_kept_costs_nothing() -> None:
    result = judged(paced_with_stall(PACE))
    assert result.scenario is not None
    assert result.scenario.baseline_s == Metric(0.0, "s", 0.0, 1.0)
    assert "nothing that this load shows" in run_fault_impact_sentence(result)


def test_a_pace_that_never_comes_back_has_no_date() -> None:
    session = paced_with_stall(PACE)
    table = session.record.intervals
    late = table.seq >= 90
    record = replace(
        session.record, intervals=replace(table, ios=np.where(late, PACE // 3, table.ios))
    )
    bins = record.bins
    counts = np.where(bins.seq >= 90, PACE // 3, bins.count)
    scenario = judged(session.but(replace(record, bins=replace(bins, count=counts)))).scenario
    assert scenario is not None
    assert scenario.baseline_s is not None
    assert scenario.baseline_s.value is None
    assert scenario.baseline_s.low == pytest.approx(60, abs=1)


def paced_at(rate: int, *latencies: tuple[int, int], until_s: Sequence[float] = ()) -> Session:
    """A load of a fixed rate of which stretches of seconds have those latencies, of all I/Os.

    The phases after the first end at other seconds, where such are named.
    """
    lats = [lat_ns for seconds, lat_ns in latencies for _ in range(seconds)]
    bursts = [
        Burst(start_s=float(at), spans=1, ios=rate, lat_ns=lat_ns, first_seq=at)
        for at, lat_ns in enumerate(lats)
    ]
    job = replace(JOB, rate_iops=rate // JOB.numjobs)
    scenario = phased().scenario
    assert scenario is not None
    first, *others = scenario.phases
    ends = [GO_NS + round(at * SECOND) for at in until_s] or [p.end_real_ns for p in others]
    starts = [first.end_real_ns, *ends]
    phases = (
        replace(phase, start_real_ns=start, end_real_ns=end)
        for phase, start, end in zip(others, starts, ends, strict=False)
    )
    scenario = replace(scenario, phases=(first, *phases))
    return PHASED.but(replace(files(bursts, job=job), scenario=scenario, runtime_s=90.0))


USUAL_NS, LONG_NS = 2_000_000, 15_000_000


def test_a_loss_costs_what_its_own_phases_show_with_an_interval() -> None:
    slow = paced_at(1_000, (90, USUAL_NS), (40, LONG_NS), (20, USUAL_NS))
    text = run_fault_impact_sentence(judged(slow))
    assert "makes the p99 7.48 times (7.33 to 7.63) as long in phase 'degraded' (20 s)" in text
    assert "in phase 'rebuild' (20 s)" in text


def test_a_phase_after_the_mending_is_no_cost_of_the_loss() -> None:
    text = run_fault_impact_sentence(judged(paced_at(1_000, (130, USUAL_NS), (20, LONG_NS))))
    assert "changes nothing that this load shows;" in text
    assert "'after'" not in text


def test_a_p99_of_few_ios_blames_nothing() -> None:
    text = run_fault_impact_sentence(judged(paced_at(PACE, (90, USUAL_NS), (60, USUAL_NS))))
    assert "makes the p" not in text
    assert "but for a p99 of too few I/Os to tell" in text


def test_a_longer_p50_is_told_where_the_p99_is_of_few_ios() -> None:
    few = paced_at(PACE, (90, USUAL_NS), (20, LONG_NS), (40, USUAL_NS))
    text = run_fault_impact_sentence(judged(few))
    assert "makes the p50 7.48 times (7.33 to 7.63) as long in phase 'degraded' (20 s)" in text
    assert "p99" not in text
    assert "'rebuild'" not in text


@pytest.mark.parametrize("held_s", [0.3, 0.95, 15.5])
def test_ios_that_a_fault_holds_up_are_none_of_the_second_before_it(held_s: float) -> None:
    """By the interval in which they ended they may have been due before it."""
    session = paced_at(PACE, (90, USUAL_NS), (60, USUAL_NS))
    bins, usual = session.record.bins, bin_index_of_ns(USUAL_NS)
    held = [bin_index_of_ns(round((held_s - 0.002 * at) * SECOND)) for at in range(12)]
    places = np.flatnonzero((bins.seq == 90 + int(held_s)) & (bins.bin == usual))[:1]
    more = np.repeat(places, len(held))
    columns = [
        np.concatenate([getattr(bins, n), getattr(bins, n)[more]]) for n in field_names(BinTable)
    ]
    mixed = BinTable(*columns)
    mixed.bin[len(bins) :] = held
    mixed.count[len(bins) :] = 1
    mixed.count[places] -= len(held)
    scenario = judged(session.but(replace(session.record, bins=mixed))).scenario
    assert scenario is not None
    before, degraded = scenario.phases[:2]
    assert (before.longest_io_ns.value or 0) < 2 * USUAL_NS
    assert (before.worst_second_ns_p99.value or 0) < 2 * USUAL_NS
    assert (degraded.worst_second_ns_p99.value or 0) > 2e8


def test_ios_of_a_long_stall_count_in_the_seconds_in_which_they_were_due() -> None:
    """A pace of writes hung from 90 s to 118 s, longer than the last bin begins; reads went on."""
    spells = []
    for second in range(150):
        for direction in (Direction.READ, Direction.WRITE):
            hung = direction is Direction.WRITE and 90 <= second <= 117
            waited = [round((118.5 - due) * SECOND) for due in np.arange(90, 118, 0.01)]
            own = () if hung else (USUAL_NS,) * 100
            if direction is Direction.WRITE and second == 118:
                own = (*own, *waited)
            start_ns = GO_NS + second * SECOND
            spells.append(Spell(0, second, direction, start_ns, SECOND, own))
    intervals, bins = tables(spells)
    job = replace(JOB, access=AccessPattern.RANDRW, rate_iops=200 // JOB.numjobs)
    record = files([Burst()], job=job)
    (host,) = record.hosts
    assert host.totals is not None
    assert host.totals.read is not None
    writes_total = replace(host.totals.read, lat_max_ns=round(28.5 * SECOND))
    totals = replace(host.totals, write=writes_total)
    record = replace(
        record,
        intervals=intervals,
        bins=bins,
        hosts=(replace(host, totals=totals),),
        scenario=phased().scenario,
        runtime_s=90.0,
    )
    scenario = record.scenario
    assert scenario is not None
    seconds = PerSecondHistograms(record, scenario)
    begin = 90 - round((scenario.phases[0].start_real_ns - GO_NS) / SECOND)
    writes = seconds.streams[0, int(Direction.WRITE)][begin : begin + 28]
    assert writes == pytest.approx(np.full(28, 100.0), rel=0.5)


def test_a_fault_without_an_effect_has_no_date_of_the_baseline() -> None:
    """What left the baseline later, when all was mended, was something else."""
    result = judged(paced_at(1_000, (130, USUAL_NS), (12, LONG_NS), (8, USUAL_NS)))
    assert result.scenario is not None
    assert result.scenario.baseline_s is not None
    assert result.scenario.baseline_s.value == pytest.approx(52, abs=1)
    text = run_fault_impact_sentence(result)
    assert "changes nothing that this load shows; redundancy was back" in text
    assert "baseline" not in text


def test_phases_too_short_for_figures_blame_nothing() -> None:
    latencies = ((90, USUAL_NS), (40, LONG_NS), (20, USUAL_NS))
    text = run_fault_impact_sentence(judged(paced_at(9_000, *latencies, until_s=(92, 94, 150))))
    assert "as long in phase 'after' (56 s)" in text  # It begins before all is mended.
    assert "'rebuild'" not in text
    short = judged(paced_at(9_000, *latencies, until_s=(92, 94, 97)))
    assert "has a cost that was not measured" in run_fault_impact_sentence(short)


def test_a_last_phase_that_is_surely_slower_is_not_the_baseline() -> None:
    """Where the p99 of seconds scatters so much that it tells no change."""
    pair = ((1, USUAL_NS), (1, 40 * USUAL_NS))
    session = paced_at(400, *pair * 65, (20, 10 * USUAL_NS))
    # One I/O in fifty is slow in each second one: the p99 is, and the mean is not.
    bins, usual = session.record.bins, bin_index_of_ns(USUAL_NS)
    is_slow = (bins.seq < 130) & (bins.seq % 2 == 1)
    columns = [
        np.concatenate([getattr(bins, name), getattr(bins, name)[is_slow]])
        for name in field_names(BinTable)
    ]
    mixed = BinTable(*columns)
    mixed.count[: len(bins)][is_slow] = 8
    mixed.count[len(bins) :] = 392
    mixed.bin[len(bins) :] = usual
    scenario = judged(session.but(replace(session.record, bins=mixed))).scenario
    assert scenario is not None
    assert (scenario.phases[-1].mean_ratio.low or 0.0) > 4
    assert scenario.baseline_s is not None
    assert scenario.baseline_s.value is None
    assert scenario.baseline_s.low == pytest.approx(60, abs=1)


Table = TypeVar("Table", IntervalTable, BinTable)


def judged(session: Session) -> RunResult:
    return judge(session.record, session.facts)


def dipped() -> Session:
    """Nearly half of the rate was lost from the fault at 90 s on until 130 s."""
    return PHASED.but(phased(scaled(90, 130, 0.556)))


def test_shares_and_dates_are_those_that_were_made() -> None:
    result = judged(dipped())
    scenario = result.scenario
    assert scenario is not None
    share = scenario.phases[1].baseline_share
    assert share.low is not None
    assert share.high is not None
    assert share.low <= 0.556 <= share.high
    assert [(change.at_s.value, bool(change.cause)) for change in scenario.changes] == [
        (90.0, True),
        (130.0, True),
    ]
    assert scenario.baseline_s is not None
    assert scenario.baseline_s.value == pytest.approx(40, abs=0.1)
    assert scenario.unhealthy_spans_s == ((91.0, 130.5),)
    assert result.metrics["phase.degraded.baseline_share"] == share
    assert result.metrics["scenario.baseline_s"] == scenario.baseline_s


def test_a_rate_that_never_comes_back_has_no_date() -> None:
    scenario = judged(PHASED.but(phased(scaled(90, 150, 0.5)))).scenario
    assert scenario is not None
    assert scenario.baseline_s is not None
    assert scenario.baseline_s.value is None
    assert scenario.baseline_s.low == pytest.approx(60, abs=0.1)


def test_a_load_without_an_effect_says_so() -> None:
    result = judged(PHASED)
    assert result.scenario is not None
    assert result.scenario.changes == ()
    assert "nothing that this load shows" in run_fault_impact_sentence(result)


def test_a_witness_that_counts_tells_the_rate_of_the_rebuild() -> None:
    scenario = judged(said(dipped(), rebuilt_bytes=1_000_000)).scenario
    assert scenario is not None
    assert scenario.rebuild_bytes_per_s is not None
    # One MB more with each answer, a second apart, each known to half a second.
    rate = scenario.rebuild_bytes_per_s
    assert rate.value == pytest.approx(1e6, rel=1e-6)
    assert rate.low is not None
    assert rate.high is not None
    assert rate.low < 1e6 < rate.high


def test_seconds_without_a_stream_are_unavailable_and_a_stall() -> None:
    counts = scaled(0, 0, 1.0)
    result = judged(PHASED.but(phased([*counts[:95], *[40] * 6, *counts[101:]])))
    scenario = result.scenario
    assert scenario is not None
    assert set(scenario.stalled_at_s) >= set(range(96, 100))
    assert scenario.phases[1].stalled_s >= 4
    longest = scenario.phases[1].longest_stall_s
    assert longest.value is not None
    assert longest.value == pytest.approx(32 / 40, rel=0.05)


def test_the_sentence_tells_cost_dates_and_loss() -> None:
    result = judged(dipped())
    assert result.scenario is not None
    text = run_fault_impact_sentence(result)
    for part in ("44 % of the IOPS", "'degraded'", "redundancy was back 40 s", "40 s after"):
        assert part in text
    lost = replace(result.scenario, lost_blocks=2)
    assert fault_impact_sentence([lost], result.metrics).startswith("2 blocks lack")
    unknown = replace(result.scenario, lost_blocks=None)
    assert "not known" in fault_impact_sentence([result.scenario, unknown], result.metrics)


@pytest.mark.parametrize(
    ("is_new_mount", "words"),
    [(True, "through a new mount"), (False, "through the same mount"), (None, "was written.")],
)
def test_the_verdict_of_lost_writes_tells_how_they_were_read(
    *, is_new_mount: bool | None, words: str
) -> None:
    record = phased()
    assert record.scenario is not None
    readbacks = (Readback("c1", 4096, is_new_mount=is_new_mount),)
    scenario = replace(record.scenario, readbacks=readbacks)
    check = check_of(judged(PHASED.but(replace(record, scenario=scenario))), "writes-lost")
    assert check.level is VerdictLevel.VALID
    assert words in check.message


def with_readbacks(*readbacks: Readback, **changes: Any) -> Session:
    return PHASED.but(phased(readbacks=readbacks, **changes))


@pytest.mark.parametrize(
    ("readback", "words"),
    [
        (Readback("c1", 0, data_set_blocks=4096), "no block was read"),
        (Readback("c1", 4000, data_set_blocks=4096), "only 4000 of 4096 blocks"),
        (Readback("c1", 4096, data_set_blocks=4096), ""),
    ],
)
def test_that_nothing_is_lost_takes_every_block(readback: Readback, words: str) -> None:
    result = judged(with_readbacks(readback))
    check = check_of(result, "writes-lost")
    assert check.level is (VerdictLevel.INDICATIVE if words else VerdictLevel.VALID)
    assert words in check.message
    assert result.scenario is not None
    known = (None, None) if words else (4096, 0)
    assert (result.scenario.checked_blocks, result.scenario.lost_blocks) == known
    assert ("nothing acknowledged was lost" in run_fault_impact_sentence(result)) is not bool(words)


@pytest.mark.parametrize(
    ("mounts", "is_new", "words"),
    [
        ((True, True), True, "was lost, read back through a new mount."),
        ((True, False), False, "was lost, read back through the same mount."),
        ((True, None), None, "was lost."),
    ],
)
def test_the_sentence_says_through_which_mount_blocks_were_read(
    mounts: tuple[bool | None, ...], *, is_new: bool | None, words: str
) -> None:
    readbacks = tuple(
        Readback("c1", 4096, is_new_mount=mount, data_set_blocks=4096) for mount in mounts
    )
    session = with_readbacks(readbacks[0])
    assert session.record.scenario is not None
    scenario = replace(session.record.scenario, readbacks=readbacks)
    result = judged(session.but(replace(session.record, scenario=scenario)))
    assert result.scenario is not None
    assert result.scenario.is_new_mount is is_new
    assert run_fault_impact_sentence(result).endswith(words)


def test_a_block_that_is_lost_is_counted_in_its_first_repeat_alone() -> None:
    lost = [Readback("c1", 4096, count, ("Block 7 is stale.",)) for count in (2, 2, 3, 0)]
    earlier = [(), *((readback,) for readback in lost)]
    results = [
        judged(with_readbacks(readback, earlier_readbacks=before))
        for readback, before in zip(lost, earlier, strict=False)
    ]
    checks = [check_of(result, "writes-lost").level for result in results]
    assert checks == [
        VerdictLevel.INVALID,
        VerdictLevel.INDICATIVE,
        VerdictLevel.INVALID,
        VerdictLevel.VALID,
    ]
    scenarios = [result.scenario for result in results if result.scenario]
    assert [scenario.lost_blocks for scenario in scenarios] == [2, None, 1, 0]
    text = fault_impact_sentence(scenarios, results[0].metrics)
    assert text.startswith("3 blocks lack what was acknowledged")


def test_an_answer_that_is_unknown_does_not_tell_when_redundancy_was_back() -> None:
    """Asked at 127 s it was not redundant; the next two answers could not be read."""
    session = dipped()
    scenario = session.record.scenario
    assert scenario is not None
    answers = tuple(
        replace(answer, state=None) if at in {128, 129} else answer
        for at, answer in enumerate(scenario.answers)
    )
    record = replace(session.record, scenario=replace(scenario, answers=answers))
    for given, low in ((session, 129 - 90.01), (session.but(record), 127 - 90.01)):
        figures = judged(given).scenario
        assert figures is not None
        assert figures.redundancy_s is not None
        assert figures.redundancy_s.low == pytest.approx(low)
        assert figures.redundancy_s.value == pytest.approx(130.5 - 90.01)


def test_what_is_measured_is_counted_from_the_event_that_a_witness_is_to_see() -> None:
    """One before it, which nobody is to see, has no cost of its own."""
    session = dipped()
    scenario = session.record.scenario
    assert scenario is not None
    (lost,) = scenario.events
    tuned = replace(
        lost, id="tune", title="Tuning", expected=None, start_real_ns=GO_NS + 50 * SECOND
    )
    lost = replace(lost, title="Losing a disk")
    found = []
    for events in ((tuned, lost), (tuned,)):
        changed = replace(session.record, scenario=replace(scenario, events=events))
        result = judged(session.but(changed))
        assert result.scenario is not None
        assert result.scenario.baseline_s is not None
        found.append((result.scenario.fault, result.scenario.baseline_s.value))
        title = "Losing a disk" if lost in events else "Tuning"
        assert run_fault_impact_sentence(result).startswith(f"{title} costs 44 %")
    assert [fault for fault, _ in found] == ["lose", "tune"]
    assert [seconds for _, seconds in found] == pytest.approx([40, 80], abs=1)


def test_a_neighbour_that_begins_does_not_cut_the_time_of_a_rebuild() -> None:
    session = said(neighboured(), rebuilt_bytes=1_000_000)
    scenario = session.record.scenario
    assert scenario is not None
    window = rebuild_window(scenario)
    assert window is not None
    assert window.start_ns == scenario.events[0].start_real_ns
    replaced = replace(scenario.events[0], id="replace", start_real_ns=GO_NS + 110 * SECOND)
    window = rebuild_window(replace(scenario, events=(*scenario.events, replaced)))
    assert window is not None
    assert window.start_ns == GO_NS + 110 * SECOND


def test_a_rebuild_begins_with_the_undo_that_starts_it() -> None:
    """As of a process that was stopped, and goes on when that is undone."""
    scenario = phased().scenario
    assert scenario is not None
    undone_ns = GO_NS + 120 * SECOND
    (fault, *later) = scenario.events
    undone = replace(fault, is_undone=True, undone_real_ns=undone_ns)
    window = rebuild_window(replace(scenario, events=(undone, *later)))
    assert window is not None
    assert window.start_ns == undone_ns


def test_a_witness_that_hangs_with_the_storage_does_not_say_that_all_is_well() -> None:
    """It was asked as the load stood still, and gave no answer within seven seconds."""
    session = PHASED.but(phased(scaled(91, 97, 0.02)))
    scenario = session.record.scenario
    assert scenario is not None
    asked_ns = GO_NS + 91 * SECOND
    answers = [
        answer for answer in scenario.answers
        if not asked_ns <= answer.real_ns < asked_ns + 7 * SECOND
    ]  # fmt: skip
    silent = WitnessAnswer("redundant", asked_ns, asked_ns + 7 * SECOND, None)
    in_order = tuple(sorted((*answers, silent), key=lambda answer: answer.asked_real_ns))
    record = replace(session.record, scenario=replace(scenario, answers=in_order))
    result = judged(session.but(record))
    assert result.scenario is not None
    assert result.scenario.unhealthy_spans_s[0][0] == pytest.approx(91, abs=0.6)
    assert check_of(result, "witness-contradicted").level is VerdictLevel.VALID


def test_why_a_witness_gave_no_answer_is_told() -> None:
    scenario = PHASED.record.scenario
    assert scenario is not None
    fault = replace(scenario.events[0], seen_real_ns=None)
    answers = tuple(
        replace(answer, state=None, fault="It prints no key 'redundant'.")
        for answer in scenario.answers
    )
    scenario = replace(scenario, events=(fault, *scenario.events[1:]), answers=answers)
    result = judged(PHASED.but(replace(PHASED.record, scenario=scenario)))
    check = check_of(result, "event-unwitnessed")
    assert check.message.rstrip(".").endswith("(the last time: It prints no key 'redundant')")


def check_of(result: RunResult, code: str) -> CheckResult:
    (check,) = [check for check in result.verdict.checks if check.code == code]
    return check


def answered(session: Session, *unhealthy: tuple[float, float]) -> Session:
    """The same whose witness said that a disk is missing in those seconds alone."""
    scenario = session.record.scenario
    assert scenario is not None
    answers = []
    for answer in scenario.answers:
        at = (answer.asked_real_ns - scenario.phases[0].start_real_ns) / SECOND
        is_missing = any(begin <= at < end for begin, end in unhealthy)
        answers.append(replace(answer, state=not is_missing))
    return session.but(replace(session.record, scenario=replace(scenario, answers=tuple(answers))))


def test_storage_that_stands_still_until_the_end_is_no_invalid_run() -> None:
    counts = scaled(0, 0, 1.0)
    record = phased(counts[:140])
    result = judged(PHASED.but(record))
    check = check_of(result, "phase-unfinished")
    assert check.level is VerdictLevel.INDICATIVE
    assert check.evidence["seconds"] == pytest.approx(10, abs=1)
    assert result.scenario is not None
    stall = result.scenario.phases[-1].longest_stall_s
    assert stall.value == pytest.approx(10, abs=1)
    assert result.scenario.phases[0].longest_stall_s.value < 1  # type: ignore[operator]


def left_out_mend(**lost: Any) -> Session:
    """A disk that was to be lost and to be replaced, which was left out in a phase of 2 s."""
    session = paced_at(1_000, (150, USUAL_NS), until_s=(110, 112, 150))
    scenario = session.record.scenario
    assert scenario is not None
    lose = replace(scenario.events[0], **lost)
    mend = EventOutcome(
        "mend", "c1", "replace it", "rebuild", GO_NS + 110 * SECOND, expected=lose.expected,
        error="the witness did not see event 'lose' before it",
    )  # fmt: skip
    phases = list(scenario.phases)
    phases[2] = replace(phases[2], ended_by=PhaseEndReason.WITNESS)
    scenario = replace(scenario, events=(lose, mend), phases=tuple(phases), answers=ALL_WELL)
    return session.but(replace(session.record, scenario=scenario))


ALL_WELL = tuple(
    WitnessAnswer("redundant", GO_NS + at * SECOND, GO_NS + at * SECOND + 1, state=True)
    for at in range(1, 150)
)


def test_a_disk_that_is_lost_before_its_event_is_told_though_that_was_left_out() -> None:
    """It stops 4 s before the event that was to stop it, which is left out for that."""
    record = phased(scaled(86, 150, 0.1))
    assert record.scenario is not None
    lose = replace(
        record.scenario.events[0], start_real_ns=None, end_real_ns=None, seen_real_ns=None,
        unseen_real_ns=None, is_undone=None, undone_real_ns=None, error="it is lost already",
    )  # fmt: skip
    scenario = replace(record.scenario, events=(lose,))
    session = PHASED.but(replace(record, scenario=scenario))
    result = judged(answered(session, (86, 150)))
    check = check_of(result, "baseline-unhealthy")
    assert check.level is VerdictLevel.INVALID
    assert check.evidence["unhealthy"] == 4
    assert check_of(result, "baseline-unsteady").level is VerdictLevel.INDICATIVE
    assert result.scenario is not None
    assert [change.cause for change in result.scenario.changes] == ["while not redundant"]
    assert result.scenario.unhealthy_spans_s == ((86.0, 150.0),)
    well = judged(answered(PHASED.but(phased(events=(lose,)))))
    for code in ("baseline-unhealthy", "baseline-unsteady"):
        assert check_of(well, code).level is VerdictLevel.VALID


def test_the_event_that_no_witness_saw_is_told_before_what_follows() -> None:
    result = judged(left_out_mend(seen_real_ns=None))
    invalid = [check for check in result.verdict.objections if check.level is VerdictLevel.INVALID]
    assert invalid[0].code == "event-unwitnessed"
    assert invalid[0].message.startswith(
        "The witness never said 'not redundant' after event 'lose'"
    )
    assert "event-failed" in {check.code for check in invalid}
    (first, *_) = merge_objections([result])
    assert first.code == "event-unwitnessed"
    assert code_and_text_of_gravest_check([result], VerdictLevel.INVALID)[0] == "event-unwitnessed"


@pytest.mark.parametrize(
    ("undo_error", "words"),
    [(UNDO_BY_KEEPER, "is not confirmed to be undone: the host"), ("EIO", "was not undone: EIO.")],
)
def test_an_undo_that_a_keeper_does_is_not_confirmed(undo_error: str, words: str) -> None:
    record = phased()
    assert record.scenario is not None
    event = replace(
        record.scenario.events[0], is_undone=False, undone_real_ns=None, undo_error=undo_error
    )
    result = judged(PHASED.but(phased(events=(event,))))
    assert f"Event 'lose' {words}" in check_of(result, "event-failed").message


def test_an_event_that_failed_is_not_asked_of_its_witness() -> None:
    failed = left_out_mend(start_real_ns=None, seen_real_ns=None, error="it may not")
    result = judged(failed)
    assert check_of(result, "event-unwitnessed").level is None
    assert check_of(result, "event-failed").level is VerdictLevel.INVALID


def test_a_short_phase_says_what_was_not_done_in_it() -> None:
    check = check_of(judged(left_out_mend()), "phase-unfinished")
    assert check.message.endswith("What was to be done in it was not: 'mend'.")
    assert check.evidence["phase"] == "rebuild"
    done = left_out_mend()
    scenario = done.record.scenario
    assert scenario is not None
    events = (scenario.events[0],)
    done = done.but(replace(done.record, scenario=replace(scenario, events=events)))
    assert (
        "There was little to be done in it." in check_of(judged(done), "phase-unfinished").message
    )


def test_redundancy_that_is_never_back_takes_longer_than_the_run() -> None:
    scenario = judged(answered(dipped(), (91, 150))).scenario
    assert scenario is not None
    assert scenario.redundancy_s is not None
    assert scenario.redundancy_s.value is None
    assert scenario.redundancy_s.low == pytest.approx(59, abs=0.1)


def test_a_point_with_a_repeat_that_never_recovers_is_more_than_its_bound() -> None:
    recovered = judged(dipped())
    never = replace(judged(answered(dipped(), (91, 150))), repeat=2)
    (point,) = summarise_points([recovered, never], STUDY)
    metric = point.metrics["scenario.redundancy_s"]
    assert metric.value is None
    assert metric.low is not None
    assert metric.low > 40
    scenarios = [result.scenario for result in (recovered, never, never) if result.scenario]
    text = fault_impact_sentence(scenarios, {"scenario.redundancy_s": metric})
    assert "in 2 of 3 repeats redundancy was not back at the end" in text


def test_a_hang_is_told_once() -> None:
    result = judged(PHASED.but(phased(scaled(90, 110, 0.01))))
    figures = result.scenario
    assert figures is not None
    before, hang, *later = figures.phases
    metrics = {**result.metrics, "phase.degraded.baseline_share": Metric(0.0, "share", 0.0, 0.0)}

    def text_of_stop(stalled_s: int, figures: ScenarioFigures = figures) -> str:
        phase = replace(hang, stalled_s=stalled_s, longest_stall_s=Metric(19.4, "s"))
        scenario = replace(figures, phases=(before, phase, *later))
        return fault_impact_sentence([scenario], metrics)

    text = text_of_stop(20)
    assert "stops reads or writes for 20 s in phase 'degraded' (20 s)" in text
    assert "100 %" not in text
    assert "longest stall" not in text
    assert "the longest stall was 19" in text_of_stop(5)
    assert "costs 100 % of the IOPS" in text_of_stop(5)


@pytest.mark.parametrize(
    ("share", "words"),
    [
        (Metric(0.47, "share", 0.4, 0.6), "and 53 % in phase 'rebuild' (20 s);"),
        (Metric(0.47, "share", 0.19, 1.12), "(20 s, uncertain: 19 % to 112 % are left);"),
        (Metric(0.47, "share"), "(20 s, uncertain: without an interval);"),
    ],
)
def test_a_loss_that_is_not_sure_is_told_as_uncertain(share: Metric, words: str) -> None:
    result = judged(PHASED.but(phased(scaled(90, 130, 0.5))))
    assert result.scenario is not None
    metrics = {**result.metrics, "phase.rebuild.baseline_share": share}
    text = fault_impact_sentence([result.scenario], metrics)
    assert "'degraded' (20 s) and 53 % in phase 'rebuild'" in text
    assert words in text


def test_a_run_without_an_event_tells_how_its_phases_differ() -> None:
    result = judged(dipped())
    assert result.scenario is not None
    eventless = replace(result.scenario, events=())
    text = fault_impact_sentence([eventless], result.metrics)
    assert text.startswith("Phase 'degraded' has 44 % fewer IOPS than the first phase")
    same = judged(PHASED)
    assert same.scenario is not None
    text = fault_impact_sentence([replace(same.scenario, events=())], same.metrics)
    assert text.startswith("No phase differs from the first")


def test_answers_after_the_last_phase_are_no_unhealthy_span() -> None:
    record = phased()
    assert record.scenario is not None
    end_ns = record.scenario.phases[-1].end_real_ns
    late = WitnessAnswer("redundant", end_ns, end_ns + SECOND // 5, state=False)
    scenario = replace(record.scenario, answers=(*record.scenario.answers, late))
    figures = judged(PHASED.but(replace(record, scenario=scenario))).scenario
    assert figures is not None
    assert figures.unhealthy_spans_s == ((91.0, 130.5),)


def test_a_stall_is_whole_in_its_first_phase_and_cut_to_later_ones() -> None:
    counts = scaled(0, 0, 1.0)
    record = phased([*counts[:107], 8, *counts[108:]])
    table = record.intervals
    assert record.scenario is not None
    start_ns = record.scenario.phases[0].start_real_ns
    ends_s = (table.end_real_ns - record.hosts[0].clock_offset_ns - start_ns) / SECOND
    ios = np.where((ends_s > 108.5) & (ends_s < 112.5), 0, table.ios)
    record = replace(record, intervals=replace(table, ios=ios))
    scenario = judged(PHASED.but(record)).scenario
    assert scenario is not None
    assert scenario.phases[1].longest_stall_s.value == pytest.approx(4, abs=0.1)
    assert scenario.phases[2].longest_stall_s.value == pytest.approx(2, abs=0.6)
    assert scenario.phases[3].longest_stall_s.value < 1  # type: ignore[operator]


STALL_OF_WRITES_S = 4.6


def stalled_writes(job: Job, *waited_s: float) -> Session:
    """Reads go on while no write returns from 95.7 s to 100.3 s; those that waited end then."""
    bursts = [
        Burst(start_s=float(at), spans=1, ios=400, lat_ns=4_000_000, first_seq=at)
        for at in range(150)
    ]
    writes = [
        replace(burst, direction=Direction.WRITE)
        for burst in bursts
        if not 96 <= burst.start_s < 101
    ]
    record = files([*bursts, *writes], job=job)
    latencies = tuple(round(waited * SECOND) for waited in waited_s)
    late = Spell(0, 100, Direction.WRITE, GO_NS + 100 * SECOND, SECOND, latencies)
    intervals, bins = tables([late])
    record = replace(
        record,
        intervals=in_order(record.intervals, intervals),
        bins=in_order(record.bins, bins),
        scenario=phased().scenario,
        runtime_s=90.0,
    )
    return PHASED.but(record)


def in_order(table: Table, more: Table) -> Table:
    """The rows of both, in the order of their intervals."""
    order = np.argsort(np.concatenate([table.seq, more.seq]), kind="stable")
    columns = {
        name: np.concatenate([getattr(table, name), getattr(more, name)])[order]
        for name in field_names(type(table))
    }
    return type(table)(**columns)


@pytest.mark.parametrize("is_paced", [False, True])
def test_a_stall_of_a_deep_queue_is_known_within_half_a_second(*, is_paced: bool) -> None:
    """Intervals of a second alone say 4 s of these."""
    closed = [STALL_OF_WRITES_S + wait for wait in (0.0, 0.01, 0.02, 0.03, 0.3)]
    going_on = [STALL_OF_WRITES_S - wait for wait in (0.0, 0.5, 1.0, 2.0, 4.0)]
    rate = 200 if is_paced else None
    job = replace(JOB, access=AccessPattern.RANDRW, rate_iops=rate)
    session = stalled_writes(job, *(going_on if is_paced else closed))
    scenario = judged(session).scenario
    assert scenario is not None
    stall = scenario.phases[1].longest_stall_s
    assert stall.value == pytest.approx(STALL_OF_WRITES_S, abs=0.1)
    assert stall.low is not None
    assert stall.high is not None
    assert stall.low <= STALL_OF_WRITES_S <= stall.high
    assert (scenario.phases[0].longest_stall_s.value or 0) < 0.1


def test_a_slow_io_among_others_is_no_stall_of_a_deep_queue() -> None:
    record = phased()
    bins = record.bins
    slow = np.where(np.arange(bins.bin.size) == 95, bin_index_of_ns([9 * SECOND])[0], bins.bin)
    scenario = judged(PHASED.but(replace(record, bins=replace(bins, bin=slow)))).scenario
    assert scenario is not None
    longest = [phase.longest_stall_s.value or 0.0 for phase in scenario.phases]
    assert max(longest) <= 2.0


def test_the_longest_io_of_a_run_is_known_better_than_by_its_bin() -> None:
    job = replace(JOB, access=AccessPattern.RANDRW, iodepth=1)
    session = stalled_writes(job, 26.3)
    host = session.record.hosts[0]
    assert host.totals is not None
    exact_ns = round(26.3 * SECOND)
    assert exact_ns > UPPER_NS[-1]
    assert host.totals.read is not None
    write = replace(host.totals.read, lat_max_ns=exact_ns)
    record = on(session.record, 0, totals=replace(host.totals, write=write))
    scenario = judged(session.but(record)).scenario
    assert scenario is not None
    before = scenario.phases[0]  # It was submitted 74 s after the beginning.
    assert before.longest_stall_s.value == pytest.approx(26.3)
    assert before.longest_io_ns.value == pytest.approx(exact_ns)


def test_a_slow_stream_does_not_stand_still_by_chance() -> None:
    record = phased()
    assert record.scenario is not None
    seconds = PerSecondHistograms(record, record.scenario)
    rng = np.random.default_rng(1)
    for rate, stood in ((5.0, 0), (25.0, 10)):
        series = rng.poisson(rate, seconds.seconds).astype(np.float64)
        series[100:110] = 0.0
        seconds.streams = {(0, 0): series}
        assert seconds.stalled_flags_by_second(slice(0, 90)).sum() == stood


def test_a_day_of_seconds_takes_as_much_memory_as_its_ios() -> None:
    record = phased()
    assert record.scenario is not None
    last = record.scenario.phases[-1]
    day = replace(last, end_real_ns=last.start_real_ns + 86_400 * SECOND)
    scenario = replace(record.scenario, phases=(*record.scenario.phases[:-1], day))
    tracemalloc.start()
    try:
        seconds = PerSecondHistograms(record, scenario)
        assert np.isfinite(seconds.p99s_ns[:150]).all()
        assert tracemalloc.get_traced_memory()[1] < 50 << 20
    finally:
        tracemalloc.stop()
    assert seconds.ios_by_second.sum() == pytest.approx(record.intervals.ios.sum(), rel=0.01)


def test_seconds_that_depend_on_each_other_are_no_change() -> None:
    """Of AR(1) with rho = 0.8 nearly every series had one when seconds counted as independent."""
    rng, level, counts = np.random.default_rng(2), 0.0, []
    for shock in rng.standard_normal(150):
        level = 0.8 * level + 0.05 * float(shock)
        counts.append(round(40_000 * math.exp(level)))
    result = judged(PHASED.but(phased(counts)))
    for code in ("baseline-unsteady", "change-unexplained"):
        assert check_of(result, code).level is VerdictLevel.VALID


def test_only_the_witness_of_the_fault_tells_what_holds_the_rebuild_back() -> None:
    session = dipped()
    original = session.record.scenario
    assert original is not None
    other = WitnessAnswer("other", FAR_NS, FAR_NS, state=True, throttle="scrub_speed_max")
    own = [
        replace(answer, throttle=f"limit_{place}") for place, answer in enumerate(original.answers)
    ]

    def judge_answers(answers: list[WitnessAnswer]) -> CheckResult:
        scenario = replace(original, answers=tuple(answers))
        return check_of(judged(session.but(replace(session.record, scenario=scenario))), THROTTLED)

    assert judge_answers([*original.answers, other]).level is VerdictLevel.VALID
    check = judge_answers(own)
    assert check.level is VerdictLevel.INDICATIVE
    assert len(check.message) < 200


def test_a_rebuild_is_small_by_one_of_the_devices() -> None:
    """Each of 12 devices has a twelfth of the target: to copy that is no small rebuild."""
    names = tuple(f"nvme{number}n1" for number in range(12))
    for total_bytes, devices, level in (
        (40 * 12 * 1_000_000, names, VerdictLevel.VALID),
        (40 * 12 * 100_000_000, names, VerdictLevel.INDICATIVE),
        (40 * 12 * 100_000_000, names[:1], None),
    ):
        session = said(dipped(), rebuilt_bytes=1_000_000)
        facts = facts_of("c1", devices=devices, total_bytes=total_bytes)
        result = judged(session.but(facts={"c1": facts}))
        assert check_of(result, "rebuild-small").level is level


@pytest.mark.parametrize(("undone_s", "is_cause"), [(89, True), (86, False), (130, False)])
def test_an_event_that_waited_for_an_undo_says_so(undone_s: int, *, is_cause: bool) -> None:
    record = phased()
    assert record.scenario is not None
    (event,) = record.scenario.events
    late = replace(event, due_real_ns=GO_NS + 87 * SECOND)
    other = replace(
        event,
        id="mark-out",
        due_real_ns=GO_NS + 80 * SECOND,
        start_real_ns=GO_NS + 80 * SECOND,
        undone_real_ns=GO_NS + undone_s * SECOND,
    )
    scenario = replace(record.scenario, events=(late, other))
    check = check_of(judged(PHASED.but(replace(record, scenario=scenario))), "event-late")
    assert check.level is VerdictLevel.INDICATIVE
    assert ("waited for the undo of 'mark-out'" in check.message) is is_cause


@pytest.mark.parametrize(("factor", "words"), [(20, "20 times"), (0.05, "5 %"), (1.5, "150 %")])
def test_a_change_of_level_is_told_as_times_or_as_a_share(factor: float, words: str) -> None:
    result = judged(paced_at(1_000, (90, USUAL_NS), (60, round(factor * USUAL_NS))))
    assert result.scenario is not None
    (row,) = detected_changes_table([result.scenario]).rows
    number, unit = words.split()
    said, said_unit = row[-1].text.split()
    assert said_unit == unit
    assert float(said) == pytest.approx(float(number), rel=0.02)
