"""Checks of loads that events begin beside the measured one: whether they ran, as they should."""

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
from iolab.analysis.view import RunView
from iolab.core.metric import NeighbourFigures
from iolab.core.run import Point
from iolab.core.scenario import ScenarioOutcome
from iolab.text import counted_noun, percent_text, quote_value
from iolab.units import NS_PER_S, significant_digits_text

SILENT_S_MAX: Final = 3
"""So many seconds without I/O may be of a storage that stands still, or of a load that does."""

RATE_KEPT: Final = 0.95
"""A neighbour with less of its rate is another one than the study's."""

LIMIT_KEPT: Final = 1.1
"""Beyond its limit by more than this a load is not limited: a kernel lets bursts pass."""

LIMIT_USED: Final = 0.8
"""With less of its limit a load is held back by something else."""

UNDO_NS: Final = NS_PER_S // 2
"""A limit that is lifted so soon after a phase began, as it begins, is none of that phase."""

NO_NEIGHBOUR: Final = "No event begins a load."


def _neighbour_figures(view: RunView) -> tuple[NeighbourFigures, ...]:
    return view.scenario_figures.neighbours if view.scenario_figures else ()


@check("neighbour-absent", "A neighbour that does not run", needs_load=False, needs_phases=True)
def check_neighbour_absent(view: RunView) -> CheckAnswer:
    """Whether each load that an event began did I/O for as long as it was to, without errors."""
    if not view.record.neighbours:
        return not_applicable_answer(NO_NEIGHBOUR)
    answers = [valid_answer("Each neighbour's load went on for as long as it was to.")]
    for run in view.record.neighbours:
        if run.host.error:
            text = f"The load of event {quote_value(run.event)} failed: {run.host.error}"
            answers.append(invalid_answer(text, event=run.event, host=run.host.host))
    points = {run.event: run.point for run in view.record.neighbours}
    for neighbour in _neighbour_figures(view):
        answers += _neighbour_activity_answers(neighbour)
        answers += _neighbour_rate_answers(view, neighbour, points[neighbour.event])
    return worst_answer(answers)


def _neighbour_activity_answers(neighbour: NeighbourFigures) -> Iterator[CheckAnswer]:
    """Whether it did I/O in each second, without errors."""
    event, seconds = neighbour.event, sum(phase.seconds for phase in neighbour.phases)
    name = quote_value(event)
    if not any(phase.iops.value for phase in neighbour.phases):
        yield invalid_answer(f"The load of event {name} did no I/O.", event=event)
    elif neighbour.silent_s > SILENT_S_MAX:
        text = f"The load of event {name} did no I/O in {neighbour.silent_s} of {seconds:.0f} s."
        yield indicative_answer(text, event=event, silent_s=neighbour.silent_s)
    if neighbour.failed_ios:
        text = f"{counted_noun(neighbour.failed_ios, 'I/O')} of the load of event {name} failed."
        yield indicative_answer(text, event=event, failed=neighbour.failed_ios)


def _neighbour_rate_answers(
    view: RunView, neighbour: NeighbourFigures, point: Point
) -> Iterator[CheckAnswer]:
    """Whether it came to the rate that its workload asks for, in phases where nothing limits it."""
    each = point.job.target_iops_per_job
    if each is None:
        return
    limited = _ids_of_phases_with_io_limit(view.record.scenario, neighbour.event)
    wanted = sum(each * point.job_on_host(host).jobs_per_client for host in neighbour.hosts)
    for phase in neighbour.phases:
        rate = phase.iops.value or 0.0
        if phase.id not in limited and 0 < rate < RATE_KEPT * wanted:
            text = (
                f"The load of event {quote_value(neighbour.event)} did "
                f"{significant_digits_text(rate)} of its {significant_digits_text(wanted)} IOPS "
                f"in phase {quote_value(phase.id)}."
            )
            yield indicative_answer(text, event=neighbour.event, rate=rate)


def _ids_of_phases_with_io_limit(scenario: ScenarioOutcome | None, load_event: str) -> set[str]:
    """The phases in which a limit of that load was in force for longer than its undo takes."""
    if scenario is None:
        return set()
    limits = [
        (event.start_real_ns, event.undone_real_ns)
        for event in scenario.events
        if event.io_limit is not None and load_event in {event.load_event, event.id}
    ]
    return {
        span.id
        for span in scenario.phases
        for start_ns, undone_ns in limits
        if start_ns is not None
        and start_ns < span.end_real_ns
        and (undone_ns is None or undone_ns > span.start_real_ns + UNDO_NS)
    }


@check(
    "neighbour-unlimited", "A neighbour limit without effect", needs_load=False, needs_phases=True
)
def check_neighbour_unlimited(view: RunView) -> CheckAnswer:
    """Whether each limited neighbour kept its limit, and would have done more without it."""
    # One that did nothing is what `neighbour-absent` is about.
    limits = [
        (item, limit)
        for item in _neighbour_figures(view)
        for limit in item.limit_figures
        if limit.rate
    ]
    scenario = view.record.scenario
    limited = {e.load_event or e.id for e in scenario.events if e.io_limit} if scenario else set()
    if not all(run.limited_disks for run in view.record.neighbours if run.event in limited):
        return unchecked_answer("which disks were limited is not known: an agent ended before")
    if not limits:
        return not_applicable_answer("No event limits a load.")
    answers = []
    for neighbour, limit in limits:
        did = significant_digits_text(limit.rate)
        text = (
            f"Under event {quote_value(limit.event)} the load of {quote_value(neighbour.event)} "
            f"did {did} of {significant_digits_text(limit.limit)} {limit.what}"
        )
        values: EvidenceValues = {"event": limit.event, "rate": limit.rate, "limit": limit.limit}
        if limit.rate > LIMIT_KEPT * limit.limit:
            answers.append(invalid_answer(f"{text}: the limit did not hold it.", **values))
        elif limit.rate < LIMIT_USED * limit.limit and len(neighbour.limit_figures) == 1:
            share = percent_text(limit.rate / limit.limit)
            answers.append(
                indicative_answer(f"{text} ({share}): something else held it back.", **values)
            )
        else:
            answers.append(valid_answer(f"{text}.", **values))
    return worst_answer(answers)


NEIGHBOUR_CHECKS: Final = (check_neighbour_absent, check_neighbour_unlimited)
"""In the order shown."""
