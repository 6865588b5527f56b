"""Which configuration to take, in a sentence: the answer of a report and of a screen."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from iolab.analysis.findings import Recommendation
from iolab.core.metric import VerdictLevel
from iolab.record import Record
from iolab.report.matrix import POINT_LOST, WorkloadRow
from iolab.report.numbers import MAYBE_CHANCE, NOT_DISTINGUISHABLE, ratio_text
from iolab.text import capitalised, counted_noun, list_text

TITLES_SHOWN: Final = 3
"""Workloads named for a configuration; others are counted."""

WINNERS_SHOWN: Final = 3
"""Configurations named in the answer; others are counted."""

MEASURE_AGAIN: Final = "All figures are indicative: measure again before you rely on them."


class StudyAnswer(Record):
    """The answer to a study's question: one sentence, and what is to be known of it."""

    sentence: str
    details: str = ""

    @property
    def text(self) -> str:
        """Both, the sentence first."""
        return " ".join(filter(None, (self.sentence, self.details)))


def choice_answer(
    rows: Sequence[WorkloadRow],
    configuration_titles: Mapping[str, str],
    performance: Recommendation | None = None,
    *,
    is_advice: bool = True,
) -> StudyAnswer:
    """`b is the best in 3 of 4 workloads, a in writes; sure in 2: …`, or why none is.

    `configuration_titles` are by the configurations' ids, `performance` is which has the best rates
    over all workloads. Where it is no advice, as of a demonstration, it says who was the best.
    """
    bests = [row.best for row in rows if row.best is not None]
    are_indicative = bool(bests) and all(
        best.verdict_level is VerdictLevel.INDICATIVE for best in bests
    )
    texts = [
        _leaders_sentence(rows, configuration_titles, is_advice=is_advice),
        _lead_over_all_sentence(performance, configuration_titles, len(rows))
        if performance
        else "",
        _unsupported_leads_sentence(rows, configuration_titles),
        _chance_leads_sentence(rows, configuration_titles),
        _indistinguishable_workloads_sentence(rows, is_advice=is_advice),
        _single_candidate_sentence(rows),
        MEASURE_AGAIN if are_indicative else "",
    ]
    sentence, *details = filter(None, texts)
    return StudyAnswer(sentence, " ".join(details))


def _lead_over_all_sentence(
    performance: Recommendation, titles: Mapping[str, str], workload_count: int
) -> str:
    """Which leads by the mean rates of all workloads, and whether that is sure.

    Where another leads when each workload counts the same, both. Empty of one workload, and of
    single runs, whose leads stand beside each other already.
    """
    count = len(performance.workloads)
    if count < 2 or performance.has_single_runs:
        return ""
    best, second, other = (
        titles.get(name, name)
        for name in (
            performance.configuration,
            performance.runner_up,
            performance.leader_if_workloads_weigh_equally,
        )
    )
    beginning = f"Over {_all_text(count) if count == workload_count else count} workloads"
    lead = ratio_text(performance.lead_factor)
    if performance.leader_if_workloads_weigh_equally:
        kinds = kind_weights_text(performance.performance_kinds)
        return (
            f"{beginning} which leads depends on the weighing: {best} by {lead} ({kinds}), {other} "
            f"by {ratio_text(performance.lead_factor_if_workloads_weigh_equally)} "
            "where each counts the same."
        )
    sure = "which is sure" if performance.is_certain else "not decided"
    return f"{beginning} {best} has {lead} the rates of {second}, {sure}."


def kind_weights_text(kinds: Sequence[str]) -> str:
    """How much each kind of performance weighs in a mean: `IOPS and bandwidth half each`."""
    shares = {2: "half", 3: "a third"}
    return f"{list_text(kinds)} {shares.get(len(kinds), 'equal weight')} each"


def _rows_by_leading_configuration(rows: Iterable[WorkloadRow]) -> dict[str, list[WorkloadRow]]:
    """By the configuration with the best figure; rows without any are left out."""
    by_leader: dict[str, list[WorkloadRow]] = {}
    for row in rows:
        if row.best is not None:
            by_leader.setdefault(row.best.configuration, []).append(row)
    return by_leader


def _leaders_sentence(
    rows: Sequence[WorkloadRow], titles: Mapping[str, str], *, is_advice: bool
) -> str:
    """Who has the best figure in how many workloads, and in which of them that is sure.

    Empty where no workload has a lead, or none of the leads has an interval.
    """
    leading = [row for row in rows if row.figure_count > 1 and row.tie_text != NOT_DISTINGUISHABLE]
    sure = [row for row in leading if row.has_supported_winner]
    if not sure and all(row.undecided_reason for row in leading):
        return ""
    groups = sorted(_rows_by_leading_configuration(leading).items(), key=lambda item: -len(item[1]))
    are_named = len(groups) == len(leading) == len(sure) <= WINNERS_SHOWN
    parts = [
        f"{titles.get(name, name)}{'' if place else f' {_VERBS[is_advice]} the best'} in "
        f"{_workloads_and_leads_text(own) if are_named else _workload_share_text(own, len(rows))}"
        for place, (name, own) in enumerate(groups[:WINNERS_SHOWN])
    ]
    others = sum(len(own) for _, own in groups[WINNERS_SHOWN:])
    more = [f"others in {counted_noun(others, 'workload')}"] if others else []
    which = _all_text(len(sure)) if are_named else _sure_leads_text(sure, len(leading))
    end = ", which is sure" if len(leading) == len(sure) == 1 else f"; sure in {which}"
    return f"{', '.join([*parts, *more])}{end}."


_VERBS: Final = {True: "is", False: "was"}
"""Of a demonstration it is told who was the best."""


def _workload_share_text(rows: Sequence[WorkloadRow], workload_count: int) -> str:
    """`3 of 4 workloads`, or the only one."""
    if len(rows) == 1:
        return rows[0].title
    if len(rows) == workload_count:
        return f"{_all_text(workload_count)} workloads"
    return f"{len(rows)} of {workload_count} workloads"


def _all_text(count: int) -> str:
    return "both" if count == 2 else f"all {count}"


def _sure_leads_text(sure_rows: Sequence[WorkloadRow], lead_count: int) -> str:
    """`reads (1.83×)`, of many `5 (1.27× to 4.19×)`."""
    if not sure_rows:
        return "none"
    if len(sure_rows) <= TITLES_SHOWN:
        return _workloads_and_leads_text(sure_rows)
    which = "all" if len(sure_rows) == lead_count else f"{len(sure_rows)}"
    return f"{which} ({_leads_range_text(sure_rows)})"


def _workloads_and_leads_text(rows: Sequence[WorkloadRow]) -> str:
    if len(rows) > TITLES_SHOWN:
        return f"{len(rows)} workloads ({_leads_range_text(rows)})"
    return list_text([f"{row.title} ({row.lead_ratio_text})" for row in rows])


def _leads_range_text(rows: Sequence[WorkloadRow]) -> str:
    """From the least to the largest lead: `1.27× to 4.19×`, or the only one."""
    ratios = [row.next_best_ratio for row in rows]
    least, most = ratio_text(min(ratios)), ratio_text(max(ratios))
    return most if least == most else f"{least} to {most}"


def _unsupported_leads_sentence(rows: Sequence[WorkloadRow], titles: Mapping[str, str]) -> str:
    """Who is ahead where no interval supports it, and what would."""
    still_open = [row for row in rows if row.undecided_reason and row.best is not None]
    if not still_open:
        # Ties alone are told by their own sentence.
        return ""
    ahead = [
        f"{titles.get(name, name)} is ahead in {_workloads_and_leads_text(own)}"
        for name, own in _rows_by_leading_configuration(still_open).items()
    ]
    reasons = list_text(dict.fromkeys(row.undecided_reason for row in still_open))
    is_lost = any(row.undecided_reason == POINT_LOST for row in still_open)
    step = "repeat those points" if is_lost else "measure three repeats or more"
    return f"{list_text(ahead)}; not certain ({reasons}; {step})."


def _chance_leads_sentence(rows: Sequence[WorkloadRow], titles: Mapping[str, str]) -> str:
    """Which leads have an interval without 1 that all comparisons together do not support.

    `May be chance: reads over B (1.13× to 2.18×); writes over A (1.16× to 5.73×; surely over B,
    1.67×).` The latter where the runner-up is surely behind. Of several leaders each is named.
    """
    several = len(_rows_by_leading_configuration(row for row in rows if row.figure_count > 1)) > 1
    parts = []
    for row in rows:
        if row.best is None or row.tie_text != MAYBE_CHANCE:
            continue
        other, second = row.indistinguishable[0], row.next_best
        owners = (row.best, other, second or other)
        leader, behind, next_best = (
            titles.get(each.configuration, each.configuration) for each in owners
        )
        who = f", {leader}" if several else ""
        is_sure = second is not None and second not in row.indistinguishable
        sure = f"; surely over {next_best}, {ratio_text(row.next_best_ratio)}" if is_sure else ""
        lead = f"{row.lead_interval_over_text(other)}{sure}"
        parts.append(f"{row.title}{who} over {behind} ({lead})")
    if not parts:
        return ""
    more = f"; {len(parts) - TITLES_SHOWN} more" if len(parts) > TITLES_SHOWN else ""
    return f"{capitalised(MAYBE_CHANCE)}: {'; '.join(parts[:TITLES_SHOWN])}{more}."


def _indistinguishable_workloads_sentence(rows: Sequence[WorkloadRow], *, is_advice: bool) -> str:
    alike = [row.title for row in rows if row.tie_text == NOT_DISTINGUISHABLE]
    if not alike:
        return ""
    if len(alike) == len(rows):
        of = "the only workload" if len(rows) == 1 else f"any of {len(rows)} workloads"
        return f"{'Take any: not' if is_advice else 'Not'} distinguishable in {of}."
    return f"{capitalised(NOT_DISTINGUISHABLE)} in {list_text(alike, TITLES_SHOWN)}."


def _single_candidate_sentence(rows: Sequence[WorkloadRow]) -> str:
    lone = [row.title for row in rows if row.figure_count < 2]
    if not lone:
        return ""
    if len(lone) == len(rows):
        return "Nothing to choose by: at most one configuration has a usable figure."
    return f"At most one has a usable figure in {list_text(lone, TITLES_SHOWN)}."
