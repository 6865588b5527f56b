"""What to take and why, or why none can be named: the end of a report, and of its first page."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Final

from iolab.analysis.bottleneck.decision import BottleneckCause
from iolab.core.metric import Level
from iolab.core.study import AnswerKind
from iolab.report.bottleneck import bottlenecks_sentence, recommended_step_text
from iolab.report.matrix import POINT_LOST, WorkloadRow
from iolab.report.numbers import axis_name_text, ratio_text
from iolab.text import list_text

if TYPE_CHECKING:
    from iolab.report.brief import Brief
    from iolab.report.phrases import Objection
    from iolab.report.value import CostCapacityRow

TITLES_SHOWN: Final = 3
"""Workloads named for a configuration; others are counted."""

REASONS_SHOWN: Final = 2
"""Checks named as why figures are indicative."""


def conclusion_sentences(
    brief: Brief,
    rows: Sequence[WorkloadRow],
    costs: Sequence[CostCapacityRow],
    caveats: Sequence[Objection],
) -> str:
    """Which configuration to take and why; of a single one what would raise its figures."""
    measured = [row for row in rows if row.best is not None]
    if not measured:
        return ""
    compared = [row for row in measured if len(row.cells) > 1]
    if compared:
        texts = [
            _choice_sentence(brief, compared),
            _best_value_sentence(brief, costs),
            _all_indicative_sentence(compared, caveats, "before you decide"),
        ]
    else:
        texts = [
            _machine_count_sentence(brief) or _bottleneck_sentences(brief),
            _all_indicative_sentence(measured, caveats, "before you quote them"),
        ]
    return " ".join(filter(None, texts))


def _choice_sentence(brief: Brief, rows: Sequence[WorkloadRow]) -> str:
    """`Take b for reads (1.29×) and a for streams (1.25×). For writes either: …`."""
    titles = {name: style.label for name, style in brief.series_styles.items()}
    decided: dict[str, list[WorkloadRow]] = {}
    for row in rows:
        if row.has_supported_winner and row.best is not None:
            decided.setdefault(row.best.configuration, []).append(row)
    rest = [row for row in rows if not row.has_supported_winner]
    if not decided:
        return _no_choice_sentence(rest, titles)
    winners = sorted(decided.items(), key=lambda item: -len(item[1]))
    if len(winners) == 1 and not rest:
        ((owner, own),) = winners
        where = (
            _titles_with_leads_text(own)
            if len(own) <= TITLES_SHOWN
            else f"all {len(own)} workloads"
        )
        return f"Take {titles.get(owner, owner)}: it is the best in {where}."
    choices = [
        f"{titles.get(owner, owner)} for {_titles_with_leads_text(own)}" for owner, own in winners
    ]
    text = f"Take {list_text(choices)}."
    return f"{text} {_undecided_sentences(rest)}" if rest else text


def _titles_with_leads_text(rows: Sequence[WorkloadRow]) -> str:
    names = [f"{row.title} ({ratio_text(row.next_best_ratio)})" for row in rows]
    return list_text(names, TITLES_SHOWN)


def _undecided_sentences(rows: Sequence[WorkloadRow]) -> str:
    """What the rows without a winner leave to say."""
    alike = [row.title for row in rows if row.indistinguishable]
    still_open = [row for row in rows if not row.indistinguishable]
    parts = []
    if alike:
        names = list_text(alike, TITLES_SHOWN)
        parts.append(f"For {names} intervals do not tell them apart.")
    if still_open:
        names = list_text([row.title for row in still_open], TITLES_SHOWN)
        parts.append(f"For {names} none can be named: {_open_reasons_text(still_open)}.")
    return " ".join(parts)


def _open_reasons_text(rows: Sequence[WorkloadRow]) -> str:
    reasons = [row.open_reason or "only one has a usable figure" for row in rows]
    return list_text(dict.fromkeys(reasons))


def _no_choice_sentence(rows: Sequence[WorkloadRow], titles: Mapping[str, str]) -> str:
    """Why no configuration can be named, who is ahead all the same, and what would tell."""
    alike = [row for row in rows if row.indistinguishable]
    if len(alike) == len(rows):
        of = "the only workload" if len(rows) == 1 else f"any of {len(rows)} workloads"
        return f"None can be named: intervals do not tell the configurations apart in {of}."
    still_open = [row for row in rows if not row.indistinguishable]
    parts = [
        f"None can be named: {_open_reasons_text(still_open)}{_leaders_text(still_open, titles)}"
    ]
    if alike:
        names = list_text([row.title for row in alike], TITLES_SHOWN)
        parts.append(f"for {names} intervals do not tell them apart")
    is_lost = any(row.open_reason == POINT_LOST for row in still_open)
    step = "Repeat those points." if is_lost else "Measure three repeats or more."
    return f"{'; '.join(parts)}. {step}"


def _leaders_text(rows: Sequence[WorkloadRow], titles: Mapping[str, str]) -> str:
    """Who has the best figures of rows that are open: ` for reads and writes (best: b)`."""
    by_leader: dict[str, list[str]] = {}
    for row in rows:
        if row.best is not None and row.figure_count > 1:
            by_leader.setdefault(row.best.configuration, []).append(row.title)
    texts = [
        f"{list_text(own, TITLES_SHOWN)} (ahead: {titles.get(name, name)})"
        for name, own in by_leader.items()
    ]
    return f" for {list_text(texts)}" if texts else ""


def _best_value_sentence(brief: Brief, costs: Sequence[CostCapacityRow]) -> str:
    """Who is the best value; that no price is stated, where a buyer would ask for one."""
    titles = {name: style.label for name, style in brief.series_styles.items()}
    value = next((row for row in costs if row.is_value_for_money), None)
    if value is None or value.lead_ratio is None:
        configurations = brief.study.configurations
        is_buyers = any(item.hardware or item.capacity.usable_tb for item in configurations)
        has_costs = any(item.cost is not None for item in configurations)
        return "" if has_costs or not is_buyers else "Best value: open, the study states no cost."
    best = value.figures_best_first[0].configuration
    name = titles.get(best, best)
    what = f"{value.title[0].lower()}{value.title[1:]}"
    lead = f"{ratio_text(value.lead_ratio)} the next best {what}"
    if value.is_open:
        return f"Best value: perhaps {name}, {lead}; the intervals do not decide it."
    return f"Best value: {name}, {lead}."


def _machine_count_sentence(brief: Brief) -> str:
    """How many machines to plan for, where the study asks for that."""
    if brief.study.answer is not AnswerKind.MACHINES:
        return ""
    from iolab.report.machines import TOO_FEW_COUNTS, scaling_limits

    carried = list(scaling_limits(brief.study, brief.points))
    if not carried:
        return f"No number of machines can be named: {TOO_FEW_COUNTS}."
    fewest = min(carried, key=lambda row: (row.load, not row.is_limit))
    what = f"{axis_name_text(fewest.axis)} {fewest.load}"
    if fewest.is_limit:
        return f"Plan for {what} at most: beyond, more of them add little throughput."
    return f"Plan for {what} at least; measure more of them to find the limit."


def _bottleneck_sentences(brief: Brief) -> str:
    """What keeps the only configuration from more, and what to do about it first."""
    limits = brief.bottlenecks
    if not limits:
        return "What limits it was not watched."
    known = [limit for limit in limits if limit.decision.cause is not BottleneckCause.NONE]
    steps = Counter(recommended_step_text(limit) for limit in known or limits)
    ((step, _),) = steps.most_common(1)
    return f"{bottlenecks_sentence(brief.study, limits)} {step}"


def _all_indicative_sentence(
    rows: Sequence[WorkloadRow], caveats: Sequence[Objection], purpose: str
) -> str:
    """That no figure is more than indicative, and why."""
    bests = [row.best for row in rows if row.best is not None]
    if any(best.level is not Level.INDICATIVE for best in bests):
        return ""
    codes = [caveat.code for caveat in caveats if caveat.level is Level.INDICATIVE]
    why = f" ({list_text(codes, REASONS_SHOWN)})" if codes else ""
    return f"All figures are indicative{why}: measure again {purpose}."
