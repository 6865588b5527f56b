"""What stands below the answer: the best value, or what would raise figures of one."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Final

from iolab.analysis.bottleneck.decision import BottleneckCause
from iolab.core.study import AnswerKind
from iolab.report.bottleneck import bottlenecks_sentence, recommended_step_text
from iolab.report.hardware import demonstration_answer_prefix
from iolab.report.matrix import WorkloadRow
from iolab.report.numbers import axis_name_text, ratio_text
from iolab.report.value import COST

if TYPE_CHECKING:
    from iolab.report.brief import Brief
    from iolab.report.value import ConfigurationFiguresRow


DEMONSTRATED_VALUE: Final = "Best value, by these figures alone: "
"""How the best value begins where the stated drives were not measured."""


def conclusion_sentences(
    brief: Brief,
    rows: Sequence[WorkloadRow],
    costs: Sequence[ConfigurationFiguresRow],
) -> str:
    """Which configuration is the best value; of a single one what would raise its figures.

    A demonstration on other than the drives that were paid for answers for what was measured.
    """
    measured = [row for row in rows if row.best is not None]
    if not measured:
        return ""
    compared = [row for row in measured if len(row.figures) > 1]
    if compared:
        value = _best_value_for_money_sentence(brief, costs)
        if demonstration_answer_prefix(brief.study, brief.facts):
            return value.replace("Best value: ", DEMONSTRATED_VALUE, 1) if costs else ""
        return value
    return _machine_count_sentence(brief) or _bottlenecks_and_first_step_text(brief)


def _best_value_for_money_sentence(brief: Brief, costs: Sequence[ConfigurationFiguresRow]) -> str:
    """Who is the best value; that no price is stated, where a buyer would ask for one."""
    titles = {name: style.label for name, style in brief.series_styles.items()}
    rows = [row for row in costs if row.is_value_for_money]
    value = next(iter(rows), None)
    if value is None or value.lead_ratio is None:
        configurations = brief.study.configurations
        is_buyers = any(item.hardware or item.capacity.usable_tb for item in configurations)
        has_costs = any(item.cost is not None for item in configurations)
        return "" if has_costs or not is_buyers else "Best value: open, the study states no cost."
    best = value.figures_best_first[0].configuration
    name = titles.get(best, best)
    what = f"{value.title[0].lower()}{value.title[1:]}"
    ends = "" if value.lead_interval is None else " to ".join(map(ratio_text, value.lead_interval))
    interval = f" ({ends})" if ends else ""
    lead = f"{ratio_text(value.lead_ratio)}{interval} the next best {what}"
    parts = next((row.title for row in costs if row.title.startswith(f"{COST} of ")), "")
    turned = "".join(_best_value_of_storage_alone_suffix(row, best, titles) for row in rows[1:])
    if value.is_undecided:
        why = (
            "another leads where each workload counts the same"
            if value.depends_on_weighing
            else "not decided"
            if ends
            else "too few repeats to decide"
        )
        return f"Best value: perhaps {name}, {lead}; {why}{turned}."
    # Of two that differ by what is paid for, neither is the answer without that.
    of_what = parts.removeprefix(COST) if turned else ""
    return f"Best value: {name}, {lead}{of_what}{turned}."


def _best_value_of_storage_alone_suffix(
    cost_capacity_row: ConfigurationFiguresRow, best: str, titles: Mapping[str, str]
) -> str:
    """Who is the best value for the money of storage alone, where that is another."""
    other = cost_capacity_row.figures_best_first[0].configuration
    if other == best or cost_capacity_row.lead_ratio is None:
        return ""
    sure = "perhaps " if cost_capacity_row.is_undecided else ""
    name = titles.get(other, other)
    return f"; of storage alone {sure}{name}, {ratio_text(cost_capacity_row.lead_ratio)}"


def _machine_count_sentence(brief: Brief) -> str:
    """How many machines to plan for, where the study asks for that."""
    if brief.study.answer is not AnswerKind.MACHINES:
        return ""
    from iolab.report.machines import scaling_extents

    carried = list(scaling_extents(brief.study, brief.points))
    if not carried:
        return ""  # the answer says so
    fewest = min(carried, key=lambda row: (row.load, not row.did_rate_stop_growing))
    what = f"{axis_name_text(fewest.axis_name)} {fewest.load}"
    if fewest.did_rate_stop_growing:
        return f"Plan for {what} at most: beyond, more of them add little throughput."
    return f"Plan for {what} at least; measure more of them to find the limit."


def _bottlenecks_and_first_step_text(brief: Brief) -> str:
    """What keeps the only configuration from more, and what to do about it first."""
    limits = brief.bottlenecks
    if not limits:
        return "What limits it was not watched."
    known = [limit for limit in limits if limit.decision.cause is not BottleneckCause.NONE]
    steps = Counter(recommended_step_text(limit) for limit in known or limits)
    ((step, _),) = steps.most_common(1)
    return f"{bottlenecks_sentence(brief.study, limits)} {step}"
