"""Four fast facts: the leads, the latency of a single I/O, and what the money buys."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from typing import TYPE_CHECKING, Final

from iolab.analysis.quotients import (
    DivisorKind,
    capacity_quotients,
    configurations_without_host_subsets,
)
from iolab.core.metric import VerdictLevel
from iolab.core.metric_spec import BetterDirection
from iolab.core.study import AnswerKind
from iolab.record import Record
from iolab.report.best import BestFigure, winning_best_figure
from iolab.report.low_load import (
    PointLatency,
    latency_tie_texts_by_configuration,
    low_load_rows,
    read_workload_sort_key,
    workloads_with_low_load_latency,
)
from iolab.report.matrix import (
    WorkloadRow,
    axis_text_not_in_title,
    best_figures_by_unit_and_operation,
    repeats_range_text,
)
from iolab.report.numbers import (
    axis_name_text,
    metric_value_text,
    quotient_value_text,
    ratio_text,
)
from iolab.report.other_load import other_processor_load_text
from iolab.report.phrases import point_place_phrase
from iolab.report.value import COST
from iolab.text import list_text

if TYPE_CHECKING:
    from iolab.core.workload import Workload
    from iolab.report.brief import Brief
    from iolab.report.value import ConfigurationFiguresRow

FACTS_SHOWN: Final = 4
LEADS_SHOWN: Final = 2
VALUES_SHOWN: Final = 4
"""Configurations named beside the best value; others are counted."""
LEAST_LEAD: Final = 0.01
"""A lead of less is no fact to remember."""

_LATENCY_NAMES: Final = {"p99": "p99 latency", "mean": "Mean latency"}
"""The latencies at one load, the most telling first."""


class FastFact(Record):
    """A figure to remember: the value, what it is, and of whom it is or against what."""

    value: str
    label: str
    note: str = ""

    @property
    def text(self) -> str:
        """All of it in one line."""
        return f"{self.label}: {self.value}{f' ({self.note})' if self.note else ''}"


def fast_facts(
    brief: Brief, rows: Sequence[WorkloadRow], cost_rows: Sequence[ConfigurationFiguresRow]
) -> tuple[FastFact, ...]:
    """The facts of a brief with these rows of its matrix, at most four.

    What the money buys comes before the second of the leads. Where latency is a workload's own
    figure, that and rates come before the latency at the least load.
    """
    titles = {name: style.label for name, style in brief.series_styles.items()}
    levels = {figure.verdict_level for row in rows for figure in row.figures if figure.is_quotable}
    # What is true of all figures is told by the answer, and by the note of the matrix.
    marks_indicative = levels != {VerdictLevel.INDICATIVE}
    value = [*_cost_capacity_facts(cost_rows, titles)] or [
        *_capacity_for_money_facts(brief, titles)
    ]
    has_latency_rows = any(row.unit == "ns" for row in rows)
    latencies = (
        ()
        if has_latency_rows
        else _low_load_latency_facts(brief, marks_indicative=marks_indicative)
    )
    last = [*latencies, *value]
    leads = islice(_largest_lead_fact_of_each_unit(rows, titles), max(FACTS_SHOWN - len(last), 1))
    first = [*_machine_count_facts(brief), *islice(leads, LEADS_SHOWN)]
    room = FACTS_SHOWN - len(first) - len(last)
    named = {fact.label for fact in first}
    bests = [
        fact
        for fact in _best_facts(rows, titles, marks_indicative=marks_indicative)
        if fact.label not in named
    ]
    return (*first, *bests[: max(room, 0)], *last)[:FACTS_SHOWN]


def _machine_count_facts(brief: Brief) -> Iterator[FastFact]:
    """How many machines are carried, where the study asks for that."""
    if brief.study.answer is not AnswerKind.MACHINES:
        return
    from iolab.report.machines import scaling_extents

    carried = scaling_extents(brief.study, brief.points)
    for owner in brief.study.configurations:
        rows = [row for row in carried if row.configuration == owner.id]
        if rows:
            fewest = min(rows, key=lambda row: (row.load, not row.did_rate_stop_growing))
            value = str(fewest.load) if fewest.did_rate_stop_growing else f"≥ {fewest.load}"
            yield FastFact(
                value, axis_name_text(fewest.axis_name), f"{fewest.title}, {fewest.rate_text}"
            )


def _largest_lead_fact_of_each_unit(
    rows: Sequence[WorkloadRow], titles: Mapping[str, str]
) -> Iterator[FastFact]:
    """Of each unit the largest lead that intervals support; the largest first."""
    largest = []
    for unit in dict.fromkeys(row.unit for row in rows):
        ahead = [
            row
            for row in rows
            if row.unit == unit and row.has_supported_winner and row.relative_lead >= LEAST_LEAD
        ]
        if ahead:
            largest.append(max(ahead, key=_relative_lead_of_row))
    return (
        _lead_fact(row, titles) for row in sorted(largest, key=_relative_lead_of_row, reverse=True)
    )


def _relative_lead_of_row(workload_row: WorkloadRow) -> float:
    return workload_row.relative_lead


def _lead_fact(workload_row: WorkloadRow, titles: Mapping[str, str]) -> FastFact:
    best = workload_row.best or workload_row.figures[0]
    second = winning_best_figure(
        [cell for cell in workload_row.figures if cell.is_quotable and cell is not best]
    )
    note = " against ".join(
        f"{metric_value_text(figure.value)} of "
        f"{titles.get(figure.configuration, figure.configuration)}"
        f"{f' ({figure.left_out_repeats_text})' if figure.left_out_repeats_text else ''}"
        for figure in (best, second)
    )
    return FastFact(workload_row.lead_ratio_text, workload_row.title, note)


def _best_facts(
    rows: Sequence[WorkloadRow], titles: Mapping[str, str], *, marks_indicative: bool
) -> Iterator[FastFact]:
    """The best figure of each unit and operation, then those of the other rows."""
    every = [row.best for row in rows if row.best is not None]
    bests = [best for best in every if not best.noise_text] or every
    for best in dict.fromkeys((*best_figures_by_unit_and_operation(bests), *bests)):
        value = metric_value_text(best.value)
        others = next(row for row in rows if best in row.figures)
        note = _rival_and_doubts_note(best, others, titles, marks_indicative=marks_indicative)
        yield FastFact(value, best.title, note)


def _rival_and_doubts_note(
    best: BestFigure,
    workload_row: WorkloadRow,
    titles: Mapping[str, str],
    *,
    marks_indicative: bool,
) -> str:
    """Whose it is, against what where there is another, and what speaks against it."""
    who = titles.get(best.configuration, "") if len(titles) > 1 else ""
    sound = [cell for cell in workload_row.figures if cell.is_quotable and cell is not best]
    if sound:
        second = winning_best_figure(sound)
        name = titles.get(second.configuration, second.configuration)
        who = f"{who} against {metric_value_text(second.value)} of {name}"
    notes = (
        who,
        "" if sound else axis_text_not_in_title(best),
        workload_row.tie_note(titles)
        or (workload_row.undecided_reason and f"not certain: {workload_row.undecided_reason}"),
        repeats_range_text(best),
        best.left_out_repeats_text,
        "from memory" if best.is_mostly_read_from_memory else "",
        best.doubt_text,
        "" if sound else _indicative_text(best.verdict_level, marks_indicative=marks_indicative),
    )
    return ", ".join(filter(None, notes))


def _indicative_text(verdict_level: VerdictLevel | None, *, marks_indicative: bool) -> str:
    is_marked = marks_indicative and verdict_level is VerdictLevel.INDICATIVE
    return VerdictLevel.INDICATIVE.value if is_marked else ""


def _low_load_latency_facts(brief: Brief, *, marks_indicative: bool) -> Iterator[FastFact]:
    """The lowest latency at the load to compare at, of workloads that read before others.

    It is one of the rows of the matrix, where that has any. The mean where of the p99 which is the
    lowest is not known, and of the mean it is.
    """
    shown = {row.title for row in low_load_rows(brief)}
    found = []
    for name, text in _LATENCY_NAMES.items():
        curves = [
            curve
            for curve in workloads_with_low_load_latency(brief, f"lat_ns_{name}")
            if not shown or curve[0].title in shown
        ]
        if curves:
            workload, ranked = min(
                curves,
                key=lambda curve: (*read_workload_sort_key(curve[0]), curve[1][0].latency_ns),
            )
            has_tie = bool(latency_tie_texts_by_configuration(brief, ranked))
            found.append((has_tie, workload, text, ranked))
    if found:
        # The first of those without a tie, else the first.
        _, workload, text, ranked = min(found, key=lambda item: item[0])
        yield _latency_fact(brief, workload, text, ranked, marks_indicative=marks_indicative)


def _latency_fact(
    brief: Brief,
    workload: Workload,
    latency_label: str,
    latencies_lowest_first: Sequence[PointLatency],
    *,
    marks_indicative: bool,
) -> FastFact:
    titles = {owner: style.label for owner, style in brief.series_styles.items()}
    best, *others = latencies_lowest_first
    at = point_place_phrase(best.point.key.axis_values)
    who = [
        f"{metric_value_text(other.metric)} of {titles.get(other.point.key.configuration, '')}"
        for other in others[:1]
    ]
    owner = titles.get(best.point.key.configuration, "") if len(titles) > 1 else ""
    label = f"{latency_label} at {at}" if at else latency_label
    doubt = _indicative_text(best.point.verdict_level, marks_indicative=marks_indicative)
    against = " against ".join(filter(None, (owner, *who)))
    ties = latency_tie_texts_by_configuration(brief, latencies_lowest_first)
    names = [titles.get(configuration, configuration) for configuration in ties]
    is_next = bool(others) and others[0].point.key.configuration in ties
    overlap = next(iter(ties.values()), "")
    overlap = overlap if is_next or not ties else f"against {list_text(names)} {overlap}"
    left_out = best.point.left_out_repeats_text
    together = best.operation_text(workload.job).removesuffix(" together")
    # A latency at one load is read as a drive's own, which it is not beside others.
    beside = other_processor_load_text(best.point.results)
    notes = (workload.title, together, against, best.repeats_text, overlap, left_out, beside, doubt)
    note = ", ".join(filter(None, notes))
    return FastFact(metric_value_text(best.metric), label, note)


def _cost_capacity_facts(
    cost_rows: Sequence[ConfigurationFiguresRow], titles: Mapping[str, str]
) -> Iterator[FastFact]:
    """The best value for money, and the lowest cost of capacity, each with what others have."""
    titles_of_cost = (row.title for row in cost_rows if row.title.startswith(f"{COST} of "))
    contents = "".join(title.lower() for title in titles_of_cost)
    for row in cost_rows:
        ratio = row.lead_ratio
        # What intervals leave open is told by the answer, not by a card.
        if ratio is None or row.is_undecided or row.is_of_storage_alone:
            continue
        best, *others = row.figures_best_first
        is_money = row.better is BetterDirection.LOWER
        value = best.text if is_money else ratio_text(ratio)
        name = titles.get(best.configuration, best.configuration)
        beside = [f"{other.text} of {titles.get(other.configuration, '')}" for other in others]
        second = titles.get(others[0].configuration, others[0].configuration)
        note = (
            f"{name}, against {list_text(beside, VALUES_SHOWN)}"
            if is_money
            else f"{name} against {second}; {contents or row.scope}"
        )
        yield FastFact(value, row.title, note)


def _capacity_for_money_facts(brief: Brief, titles: Mapping[str, str]) -> Iterator[FastFact]:
    """The most usable capacity, or else raw, that an amount of money buys."""
    owners = configurations_without_host_subsets(brief.study.configurations)
    every = capacity_quotients(owners, (DivisorKind.COST,))
    for metric, kind in (("usable_tb", "usable"), ("raw_tb", "raw")):
        own = [quotient for quotient in every if quotient.dividend.metric == metric]
        if not own:
            continue
        ranked = sorted(own, key=lambda quotient: -(quotient.value.value or 0.0))
        best, *others = ranked
        names = [
            titles.get(quotient.dividend.configuration, "")
            + f" {quotient_value_text(quotient.value)}"
            for quotient in others[:1]
        ]
        owner = titles.get(best.dividend.configuration, "") if names else ""
        note = " against ".join(filter(None, (owner, *names)))
        yield FastFact(
            quotient_value_text(best.value), f"{kind} for {best.divisor.unit_text}", note
        )
        return
