"""Which configuration to take, in a sentence: the answer of a report and of a screen."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from iolab.core.metric import VerdictLevel
from iolab.report.matrix import POINT_LOST, WorkloadRow
from iolab.report.numbers import MAYBE_CHANCE, NOT_DISTINGUISHABLE, ratio_text
from iolab.text import capitalised, counted_noun, list_text

TITLES_SHOWN: Final = 3
"""Workloads named for a configuration; others are counted."""

WINNERS_SHOWN: Final = 3
"""Configurations named in the answer; others are counted."""

TAKE_NONE: Final = "Take none yet: "
"""How the answer begins where no interval supports a lead."""

MEASURE_AGAIN: Final = "All figures are indicative: measure again before you rely on them."


def choice_sentence(
    rows: Sequence[WorkloadRow], configuration_titles: Mapping[str, str], *, is_advice: bool = True
) -> str:
    """`Take b for reads (1.29×) and a for streams (1.25×). For writes …`, or why none is named.

    `configuration_titles` are by the configurations' ids. Where it is no advice, as of a
    demonstration, it says who was the best instead of what to take.
    """
    by_winner = _rows_by_leader(row for row in rows if row.has_supported_winner)
    winners = sorted(by_winner.items(), key=lambda item: -len(item[1]))
    rest = [row for row in rows if not row.has_supported_winner]
    bests = [row.best for row in rows if row.best is not None]
    are_indicative = bool(bests) and all(best.level is VerdictLevel.INDICATIVE for best in bests)
    texts = [
        _winners_sentence(winners, configuration_titles, len(rows), is_advice=is_advice),
        _unsupported_lead_sentence(
            rest, configuration_titles, beginning="" if winners or not is_advice else TAKE_NONE
        ),
        _chance_leads_sentence(rest, configuration_titles),
        _indistinguishable_workloads_sentence(rest, len(rows), is_advice=is_advice),
        _single_candidate_sentence(rest, len(rows)),
        MEASURE_AGAIN if are_indicative else "",
    ]
    return " ".join(filter(None, texts))


def _rows_by_leader(rows: Iterable[WorkloadRow]) -> dict[str, list[WorkloadRow]]:
    """By the configuration with the best figure; rows without any are left out."""
    by_leader: dict[str, list[WorkloadRow]] = {}
    for row in rows:
        if row.best is not None:
            by_leader.setdefault(row.best.configuration, []).append(row)
    return by_leader


def _winners_sentence(
    winners: Sequence[tuple[str, Sequence[WorkloadRow]]],
    configuration_titles: Mapping[str, str],
    workload_count: int,
    *,
    is_advice: bool,
) -> str:
    if not winners:
        return ""
    verb, for_what = ("Take ", "for") if is_advice else ("", "was the best in")
    if len(winners) == 1 and len(winners[0][1]) == workload_count:
        ((owner, own),) = winners
        where = (
            f"all {workload_count} workloads ({_leads_range_text(own)})"
            if workload_count > TITLES_SHOWN
            else _workloads_and_leads_text(own)
        )
        link = ": the" if is_advice else " was the"
        return f"{verb}{configuration_titles.get(owner, owner)}{link} best in {where}."
    choices = [
        f"{configuration_titles.get(owner, owner)} {for_what} {_workloads_and_leads_text(own)}"
        for owner, own in winners[:WINNERS_SHOWN]
    ]
    others = sum(len(own) for _, own in winners[WINNERS_SHOWN:])
    more = [f"others {for_what} {counted_noun(others, 'workload')}"] if others else []
    return f"{verb}{list_text([*choices, *more])}."


def _workloads_and_leads_text(rows: Sequence[WorkloadRow]) -> str:
    if len(rows) > TITLES_SHOWN:
        return f"{len(rows)} workloads ({_leads_range_text(rows)})"
    return list_text([f"{row.title} ({row.lead_ratio_text})" for row in rows])


def _leads_range_text(rows: Sequence[WorkloadRow]) -> str:
    """From the least to the largest lead: `1.27× to 4.19×`, or the only one."""
    ratios = [row.next_best_ratio for row in rows]
    least, most = ratio_text(min(ratios)), ratio_text(max(ratios))
    return most if least == most else f"{least} to {most}"


def _unsupported_lead_sentence(
    rows: Sequence[WorkloadRow], configuration_titles: Mapping[str, str], *, beginning: str
) -> str:
    """Who is ahead where no interval supports it, and what would."""
    still_open = [row for row in rows if row.undecided_reason and row.best is not None]
    if not still_open:
        # Ties alone are told by their own sentence.
        return ""
    ahead = [
        f"{configuration_titles.get(name, name)} is ahead in {_workloads_and_leads_text(own)}"
        for name, own in _rows_by_leader(still_open).items()
    ]
    reasons = list_text(dict.fromkeys(row.undecided_reason for row in still_open))
    is_lost = any(row.undecided_reason == POINT_LOST for row in still_open)
    step = "repeat those points" if is_lost else "measure three repeats or more"
    return f"{beginning}{list_text(ahead)}; not certain ({reasons}; {step})."


def _indistinguishable_workloads_sentence(
    rows: Sequence[WorkloadRow], workload_count: int, *, is_advice: bool
) -> str:
    alike = [row.title for row in rows if row.tie_text == NOT_DISTINGUISHABLE]
    if not alike:
        return ""
    if len(alike) == workload_count:
        of = "the only workload" if workload_count == 1 else f"any of {workload_count} workloads"
        return f"{'Take any: not' if is_advice else 'Not'} distinguishable in {of}."
    return f"{capitalised(NOT_DISTINGUISHABLE)} in {list_text(alike, TITLES_SHOWN)}."


def _chance_leads_sentence(rows: Sequence[WorkloadRow], titles: Mapping[str, str]) -> str:
    """Whose lead has an interval without 1 that all comparisons together do not support.

    `The lead of C over B in reads (1.13× to 2.18×) may be chance.`
    """
    leads: dict[tuple[str, str], list[str]] = {}
    for row in rows:
        if row.best is not None and row.tie_text == MAYBE_CHANCE:
            other = row.indistinguishable[0]
            pair = row.best.configuration, other.configuration
            leads.setdefault(pair, []).append(f"{row.title} ({row.lead_interval_over_text(other)})")
    parts = [
        f"of {titles.get(leader, leader)} over {titles.get(other, other)} in "
        f"{list_text(texts, TITLES_SHOWN)}"
        for (leader, other), texts in leads.items()
    ]
    return f"The lead {list_text(parts)} {MAYBE_CHANCE}." if parts else ""


def _single_candidate_sentence(rows: Sequence[WorkloadRow], workload_count: int) -> str:
    lone = [row.title for row in rows if row.figure_count < 2]
    if not lone:
        return ""
    if len(lone) == workload_count:
        return "Nothing to choose by: at most one configuration has a usable figure."
    return f"At most one has a usable figure in {list_text(lone, TITLES_SHOWN)}."
