"""Checks of runs with phases: whether what was wanted happened, and when it was wanted."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from iolab.analysis.check import (
    CheckAnswer,
    EvidenceValues,
    check,
    indicative_answer,
    invalid_answer,
    not_applicable_answer,
    unchecked_answer,
    valid_answer,
    worst_answer,
)
from iolab.analysis.checks.neighbour import NEIGHBOUR_CHECKS
from iolab.analysis.rebuild import boot_id_and_device_pairs_of_target, copied_bytes_in_window
from iolab.analysis.scenario import (
    EVENT_DISTANCE_MAX_S,
    SILENT_S,
    fault_event,
    first_witnessed_event,
    rebuild_window,
)
from iolab.analysis.view import RunView
from iolab.analysis.window import to_controller_clock_ns
from iolab.core.generator import first_mismatch_of_each_kind_text
from iolab.core.metric import ScenarioFigures, SeriesChange
from iolab.core.scenario import MOUNT_TEXTS, EventOutcome, PhaseEndReason, ScenarioOutcome
from iolab.core.workload import Direction
from iolab.study.forecast import RATED_PHASE_S_MIN
from iolab.text import counted_noun, list_text, percent_text, quote_value
from iolab.units import NS_PER_S, format_bytes

LATE_S: Final = 1.0
"""A second later than wanted an event belongs to another second of the scenario."""

CONTRADICTED_S: Final = 3
"""Fewer seconds may lie between a fault and the next answer of its witness."""

RECOVERED_SHARE: Final = 0.8
"""A last phase with less of the baseline's rate is not as before, whatever the witness says."""

SMALL_SHARE: Final = 0.1
"""Of less of a member the time of a rebuild is that of its beginning and end."""

MEMBERS_MIN: Final = 2
"""Of a target on a single device the members are behind it, and not known."""

SETTINGS_SHOWN: Final = 3
"""Names of settings in a sentence: a witness may print another each time."""


def _require_scenario(view: RunView) -> ScenarioOutcome:
    if view.record.scenario is None:
        raise ValueError("a check of phases is asked of runs with phases")
    return view.record.scenario


@check("event-failed", "Events that failed or were not undone", needs_load=False, needs_phases=True)
def check_event_failed(view: RunView) -> CheckAnswer:
    """Whether each event was done, and undone where it can be."""
    answers = [valid_answer("Each event was done, and undone where it has an undo.")]
    for event in _require_scenario(view).events:
        name = quote_value(event.id)
        if event.error:
            came_to = "was not done" if event.start_real_ns is None else "failed"
            text = f"Event {name} {came_to}: {event.error.rstrip('.')}."
            answers.append(invalid_answer(text, event=event.id))
        elif event.start_real_ns is None:
            answers.append(invalid_answer(f"Event {name} did not begin.", event=event.id))
        elif event.end_real_ns is None:
            text = f"Event {name} began, and how it ended is not known."
            answers.append(invalid_answer(text, event=event.id))
        elif event.is_undone is False:
            reason = event.undo_error.rstrip(".") or "the run ended before"
            text = f"Event {name} {event.not_undone_predicate}: {reason}."
            answers.append(invalid_answer(text, event=event.id))
    return worst_answer(answers)


@check("event-unwitnessed", "A fault that no witness saw", needs_load=False, needs_phases=True)
def check_event_unwitnessed(view: RunView) -> CheckAnswer:
    """Whether the witness of each event saw what it did, in time."""
    events = [event for event in _require_scenario(view).events if event.expected is not None]
    if not events:
        return not_applicable_answer("No event names what a witness would see of it.")
    answers = [
        not_applicable_answer("What an event that failed did is not asked of its witness.")
        if any(event.error for event in events)
        else valid_answer("What each event did was seen by its witness.")
    ]
    for event in events:
        name, expected = quote_value(event.id), quote_value(str(event.expected))
        if event.error:
            continue  # What was not done no witness can see: `event-failed` says why.
        if event.start_real_ns is None:
            text = f"Event {name} was not begun."
            answers.append(invalid_answer(text, event=event.id))
            continue
        if event.seen_real_ns is None:
            answers.append(_unwitnessed_event_answer(_require_scenario(view), event))
            continue
        seen_s = (event.seen_real_ns - event.start_real_ns) / NS_PER_S
        if seen_s > event.within_s:
            text = (
                f"The witness said {expected} {seen_s:.1f} s after event {name}, "
                f"and not within {event.within_s:g} s."
            )
            answers.append(indicative_answer(text, event=event.id, seen_s=seen_s))
    return worst_answer(answers)


def _unwitnessed_event_answer(scenario: ScenarioOutcome, event: EventOutcome) -> CheckAnswer:
    """What is known of an event of which no answer shows anything."""
    answers = event.witness_answers_since_start(scenario.answers)
    known = [answer for answer in answers if answer.state is not None]
    name, state = quote_value(event.id), quote_value(str(event.expected))
    evidence: EvidenceValues = {"event": event.id, "answers": len(known), "asked": len(answers)}
    if not known:
        faults = [answer.fault.rstrip(".") for answer in answers if answer.fault]
        why = f" (the last time: {faults[-1]})" if faults else ""
        return unchecked_answer(
            f"whether event {name} happened is unknown, since its witness gave no usable answer to "
            f"{counted_noun(len(answers), 'question')} after it{why}",
            **evidence,
        )
    return invalid_answer(
        f"The witness never said {state} after event {name}, "
        f"in {counted_noun(len(known), 'answer')}.",
        **evidence,
    )


@check("event-late", "An event at the wrong second", needs_load=False, needs_phases=True)
def check_event_late(view: RunView) -> CheckAnswer:
    """Whether each event began when it was wanted."""
    answers = [valid_answer("Each event began when it was wanted.")]
    events = _require_scenario(view).events
    for event in events:
        if event.start_real_ns is None:
            continue
        late_s = (event.start_real_ns - event.due_real_ns) / NS_PER_S
        if abs(late_s) > LATE_S:
            text = f"Event {quote_value(event.id)} began {late_s:+.1f} s from when it was due."
            undone = [
                quote_value(other.id)
                for other in events
                if event.due_real_ns < (other.undone_real_ns or 0) <= event.start_real_ns
            ]
            if undone:
                text += (
                    f" It waited for the undo of {list_text(undone)}: give it an 'after' as long "
                    "as that takes."
                )
            answers.append(indicative_answer(text, event=event.id, late_s=late_s))
    return worst_answer(answers)


@check("baseline-unhealthy", "A fault before its time", needs_load=False, needs_phases=True)
def check_baseline_unhealthy(view: RunView) -> CheckAnswer:
    """Whether all was well until the first event."""
    scenario = _require_scenario(view)
    fault = first_witnessed_event(scenario)
    if fault is None or fault.expected is None:
        return not_applicable_answer("No event names a state that must not be there before it.")
    begin_ns = fault.start_real_ns or fault.due_real_ns
    before = [
        answer.state
        for answer in scenario.answers
        if answer.witness == fault.expected.witness and answer.real_ns <= begin_ns
    ]
    known = [state for state in before if state is not None]
    if not known:
        return unchecked_answer("the witness said nothing before the first event")
    if fault.expected.state in known:
        count = known.count(fault.expected.state)
        return invalid_answer(
            f"The witness said {quote_value(str(fault.expected))} in {count} of {len(known)} "
            f"answers before event {quote_value(fault.id)}.",
            answers=len(known),
            unhealthy=count,
        )
    return valid_answer(
        f"All {counted_noun(len(known), 'answer')} before the first event say that all is well.",
        answers=len(known),
    )


@check(
    "phase-unfinished", "Phases that did not come to their end", needs_load=False, needs_phases=True
)
def check_phase_unfinished(view: RunView) -> CheckAnswer:
    """Whether each phase ended as it should, and is long enough to be told of."""
    phases = _require_scenario(view).phases
    answers = [valid_answer(f"All {counted_noun(len(phases), 'phase')} came to their end.")]
    if not phases:
        answers.append(invalid_answer("No phase began."))
    for phase in phases:
        name = quote_value(phase.id)
        if phase.ended_by is PhaseEndReason.LOAD:
            text = f"The load ended {phase.seconds:.1f} s into phase {name}, before that did."
            answers.append(invalid_answer(text, phase=phase.id, seconds=phase.seconds))
        elif phase.ended_by is PhaseEndReason.LIMIT:
            text = f"Phase {name} was ended after its {phase.seconds:.0f} s: no witness ended it."
            answers.append(indicative_answer(text, phase=phase.id, seconds=phase.seconds))
        elif phase.seconds < RATED_PHASE_S_MIN:
            text = f"Phase {name} lasted {phase.seconds:.1f} s, too short for a rate."
            if phase.ended_by is PhaseEndReason.WITNESS:
                text += f" {_short_phase_reason(view, phase.id)}"
            answers.append(indicative_answer(text, phase=phase.id, seconds=phase.seconds))
    return worst_answer((*answers, *_hosts_without_io_at_end_answers(view)))


def _short_phase_reason(view: RunView, phase_id: str) -> str:
    """Why a witness ended a phase so soon: what was to be done in it was little, or was not."""
    events = [event for event in _require_scenario(view).events if event.phase == phase_id]
    if undone := [quote_value(event.id) for event in events if event.start_real_ns is None]:
        return f"What was to be done in it was not: {list_text(undone)}."
    return "There was little to be done in it."


def _hosts_without_io_at_end_answers(view: RunView) -> Iterator[CheckAnswer]:
    """Hosts without I/O at the end of the last phase, for storage or engine."""
    phases, table = _require_scenario(view).phases, view.record.intervals
    for index, host in enumerate(view.hosts if phases else ()):
        rows = view.interval_rows(index)
        busy = table.end_real_ns[rows[table.ios[rows] > 0]]
        ends = to_controller_clock_ns(busy, host.clock_offset_ns)
        last_ns = int(ends.max(initial=phases[0].start_real_ns))
        early_s = (phases[-1].end_real_ns - last_ns) / NS_PER_S
        if early_s > SILENT_S:
            text = (
                f"No I/O of {host.host} was completed in the last {early_s:.0f} s: the storage "
                "stood still until the end, or the load ended before."
            )
            yield indicative_answer(text, host=host.host, seconds=early_s)


@check("writes-lost", "Acknowledged writes that are lost", needs_load=False, needs_phases=True)
def check_writes_lost(view: RunView) -> CheckAnswer:
    """Whether all that was acknowledged could be read after the last phase."""
    scenario = _require_scenario(view)
    if Direction.WRITE not in view.job.data_directions:
        return not_applicable_answer("Nothing was written.")
    if not scenario.readbacks:
        return unchecked_answer("no block was read back, which takes verify = true")
    if (damaged := scenario.first_readback_damaged_before_events) is not None:
        first = first_mismatch_of_each_kind_text(damaged.first_loss_texts)
        return invalid_answer(
            f"{damaged.lost_blocks} of {damaged.checked_blocks} blocks of {damaged.host} were "
            "wrong before any event: the path to the storage damages contents, and what the "
            f"storage itself lost cannot be told. {first}".rstrip(),
            host=damaged.host,
            checked=damaged.checked_blocks,
            damaged=damaged.lost_blocks,
        )
    answers = []
    for readback in scenario.readbacks:
        evidence: EvidenceValues = {"host": readback.host, "checked": readback.checked_blocks}
        lost, earlier = readback.lost_blocks, scenario.earlier_lost_blocks(readback.host)
        if scenario.newly_lost_blocks(readback):
            first = first_mismatch_of_each_kind_text(readback.first_loss_texts)
            before = f", {earlier} of them or others since an earlier repeat" if earlier else ""
            text = (
                f"{lost} of {readback.checked_blocks} blocks of {readback.host} do not hold what "
                f"was acknowledged{before}. {first}".rstrip()
            )
            answers.append(invalid_answer(text, lost=lost, earlier=earlier, **evidence))
        elif lost:
            text = (
                f"{readback.host}: an earlier repeat lost {counted_noun(earlier, 'block')}, and "
                f"{lost} do not hold what was acknowledged: whether this repeat lost others cannot "
                "be told"
            )
            answers.append(unchecked_answer(text, lost=lost, earlier=earlier, **evidence))
        elif reason := readback.incomplete_reason.rstrip("."):
            answers.append(unchecked_answer(f"{readback.host}: {reason}", **evidence))
        else:
            text = f"All {readback.checked_blocks} blocks of {readback.host} hold what was written"
            answers.append(valid_answer(f"{text}{MOUNT_TEXTS[readback.is_new_mount]}.", **evidence))
    return worst_answer(answers)


@check("baseline-unsteady", "A baseline that changes", needs_load=False, needs_phases=True)
def check_baseline_unsteady(view: RunView) -> CheckAnswer:
    """Whether the first phase is one level, to which later ones can be compared."""
    figures = view.scenario_figures
    if figures is None:
        return not_applicable_answer("Nothing was measured.")
    for change in figures.changes:
        if not _is_too_early_for_first_event(figures, change):
            continue
        return indicative_answer(
            f"{change.at_s.value:.0f} s into the first phase the "
            f"{_rate_or_p99_word(figures)} came to {percent_text(change.ratio)} "
            "of what it was.",
            at_s=change.at_s.value,
            ratio=change.ratio,
        )
    return valid_answer(f"The {_rate_or_p99_word(figures)} of the first phase is one level.")


@check("change-unexplained", "A change without an event", needs_load=False, needs_phases=True)
def check_change_unexplained(view: RunView) -> CheckAnswer:
    """Whether each change after the first phase is near an event, or what a witness said."""
    figures = view.scenario_figures
    if figures is None:
        return not_applicable_answer("Nothing was measured.")
    for change in figures.changes:
        if not change.cause and not _is_too_early_for_first_event(figures, change):
            return indicative_answer(
                f"{change.at_s.value:.0f} s into the phases the "
                f"{_rate_or_p99_word(figures)} came to {percent_text(change.ratio)} "
                "of what it was, and no event is near.",
                at_s=change.at_s.value,
                ratio=change.ratio,
            )
    count = counted_noun(len(figures.changes), "change")
    return valid_answer(f"{count} of the {_rate_or_p99_word(figures)}, each near its cause.")


@check(
    "witness-contradicted",
    "A witness that the load contradicts",
    needs_load=False,
    needs_phases=True,
)
def check_witness_contradicted(view: RunView) -> CheckAnswer:
    """Whether the load was served while the witness said that all is well."""
    figures, fault = view.scenario_figures, fault_event(_require_scenario(view))
    if figures is None or fault is None or fault.expected is None:
        return not_applicable_answer("No event names a witness.")
    begin_s = ((fault.start_real_ns or 0) - figures.start_real_ns) / NS_PER_S
    stalled = [
        second
        for second in figures.stalled_at_s
        if second >= begin_s
        and not any(
            begin <= second + 1 and second <= end for begin, end in figures.unhealthy_spans_s
        )
    ]
    witness = quote_value(fault.expected.witness)
    if len(stalled) >= CONTRADICTED_S:
        return indicative_answer(
            f"In {len(stalled)} seconds (first: {stalled[0]}) at least one direction of a host did "
            f"under a tenth of its rate, while witness {witness} said that all is well.",
            seconds=len(stalled),
            first_s=stalled[0],
        )
    share = figures.phases[-1].baseline_share.value
    is_back = figures.redundancy_s is not None and figures.redundancy_s.value is not None
    at_baseline = figures.baseline_s is not None and figures.baseline_s.value is not None
    if is_back and not at_baseline and share is not None and share < RECOVERED_SHARE:
        return indicative_answer(
            f"Witness {witness} said that all is well, and the last phase has "
            f"{percent_text(share)} of the baseline's rate.",
            share=share,
        )
    return valid_answer(f"No second contradicts what witness {witness} said.")


@check(
    "rebuild-throttled", "A rebuild that a setting holds back", needs_load=False, needs_phases=True
)
def check_rebuild_throttled(view: RunView) -> CheckAnswer:
    """Whether the witness names a setting by which the rebuild is slower than it could be."""
    scenario, fault = _require_scenario(view), fault_event(_require_scenario(view))
    if fault is None or fault.expected is None or fault.start_real_ns is None:
        return not_applicable_answer("No event names a witness.")
    names = sorted(
        {
            answer.throttle
            for answer in scenario.answers
            if answer.witness == fault.expected.witness
            and answer.throttle
            and answer.real_ns >= fault.start_real_ns
        }
    )
    if names:
        held_by = list_text(names, SETTINGS_SHOWN)
        return indicative_answer(
            f"The rebuild was held back by {held_by}: its time is that of the setting.",
            settings=held_by,
        )
    return valid_answer("The witness names no setting that holds the rebuild back.")


@check("rebuild-small", "A rebuild of an almost empty volume", needs_load=False, needs_phases=True)
def check_rebuild_small(view: RunView) -> CheckAnswer:
    """Whether so much was copied that the time of a rebuild says something of a full one."""
    window, fault = (
        rebuild_window(_require_scenario(view)),
        fault_event(_require_scenario(view)),
    )
    if window is None or fault is None or fault.expected is None:
        return not_applicable_answer("No rebuild came to its end.")
    own = [a for a in _require_scenario(view).answers if a.witness == fault.expected.witness]
    copied = copied_bytes_in_window(own, window)
    targets = [target for host in view.hosts if (target := view.target_of_host(host)) is not None]
    total = max((target.total_bytes for target in targets), default=0)
    if copied is None or not total:
        return not_applicable_answer("The witness does not count what was copied.")
    members = len(boot_id_and_device_pairs_of_target(view))
    if members < MEMBERS_MIN:
        return not_applicable_answer("How many devices the target consists of is not known.")
    text = (
        f"The rebuild copied {format_bytes(copied)}, {percent_text(copied * members / total)} of "
        f"one of the target's {members} devices"
    )
    if copied * members < SMALL_SHARE * total:
        return indicative_answer(f"{text}: a full one takes longer.", bytes=copied, members=members)
    return valid_answer(f"{text}.", bytes=copied, members=members)


def _is_too_early_for_first_event(figures: ScenarioFigures, change: SeriesChange) -> bool:
    """Whether a change is too early for an effect of the first event.

    Where no event began it may also be just before the phase's end.
    """
    is_left_out = bool(figures.events) and all(event.start_s is None for event in figures.events)
    distance_s = 0.0 if is_left_out else EVENT_DISTANCE_MAX_S
    return (change.at_s.high or 0.0) + distance_s <= figures.phases[0].seconds


def _rate_or_p99_word(figures: ScenarioFigures) -> str:
    return "rate" if figures.changed_metric == "iops" else "p99"


SCENARIO_CHECKS: Final = (
    check_phase_unfinished,
    check_baseline_unhealthy,
    check_baseline_unsteady,
    check_change_unexplained,
    check_witness_contradicted,
    check_rebuild_throttled,
    check_rebuild_small,
    check_event_failed,
    check_event_unwitnessed,
    check_event_late,
    check_writes_lost,
    *NEIGHBOUR_CHECKS,
)
"""In the order shown."""
