"""Runs with phases in sentences, tables and a picture: what a fault cost, and for how long."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from statistics import fmean, geometric_mean
from typing import TYPE_CHECKING, Final

from msgspec.structs import replace

from iolab.core.metric import (
    Metric,
    NeighbourPhaseFigures,
    PhaseFigures,
    RunResult,
    ScenarioFigures,
)
from iolab.core.metric_spec import phase_metric_key, scenario_metric_key
from iolab.core.scenario import MOUNT_TEXTS
from iolab.report.numbers import DASH, TOO_FEW_REPEATS, metric_value_text, ratio_text
from iolab.report.table import Column, Table, row_of_cells, text_and_number_columns
from iolab.study.forecast import RATED_PHASE_S_MIN
from iolab.text import (
    capitalised,
    counted_noun,
    list_text,
    percent_text,
    quote_value,
    uncapitalised,
)
from iolab.units import format_duration_s, format_ns, significant_digits_text

if TYPE_CHECKING:
    from iolab.analysis.points import PointSummary
    from iolab.core.study import Study
    from iolab.report.brief import Brief
    from iolab.report.charts.chart import ChartGroup, ReportSection

PHASES_TITLE: Final = "Phases"
NEIGHBOURS_TITLE: Final = "Neighbours and what they cost"
CHANGES_TITLE: Final = "Changes that the seconds show"
SECTION_TITLE: Final = "Before, during and after"
ANCHOR: Final = "scenario"

STOPPED_SHARE: Final = 0.005
"""What is left of a rate, rounded to a per cent, where nothing is."""

COST_MIN: Final = 0.05
"""A smaller loss of the rate, or rise of a latency, is none that a sentence tells."""

TIMES_MIN: Final = 2.0
"""A level so many times the one before is told as that, and not as 12,202 % of it."""

UNDONE_SHARE: Final = 0.2
"""What a limit leaves of a neighbour's cost where a sentence says that it undoes that."""

P99: Final = 99.0

INVALID_PHASES: Final = "Invalid: the phases are told as they were recorded, and are no result."

DISTURBED_BASELINE: Final = (
    "something else disturbed the first phase, which is no baseline for that"
)

NEAR_S: Final = 1.5
"""An event begins, and is undone, so near to the phase that it is of."""

REASONS_SHOWN: Final = 2
"""Of repeats whose ratios are missing for several reasons."""

_RATIOS: Final = ("p50", "p99")
_TEXTS: Final = ("Phase", "Ended by")
_NUMBERS: Final = (
    *(
        "Seconds",
        "IOPS",
        "Of the baseline",
        "I/Os served",
        "p50",
        "p99",
        "Worst second's p99",
        "Longest I/O",
    ),
    *("Longest stall", "Stood still"),
)
_OPTIONAL: Final = frozenset(
    ("Ended by", "I/Os served", "p50", "Worst second's p99", "Longest I/O", "Stood still")
)
_OPTIONAL_OF_NEIGHBOURS: Final = frozenset(("Its p99", "Rate kept", "Mean"))
"""What a narrow screen goes without, rather than cut figures."""

_LATENCIES: Final = ("lat_ns_p50", "lat_ns_p99", "worst_second_ns_p99", "longest_io_ns")
_INTRODUCTION: Final = (
    "One load went on through all phases. A rate is the median of a phase's seconds, its share is "
    "of the first phase's; the p99 of a second is of the I/Os that were due in it."
)
_CHANGES_NOTE: Final = (
    "Found in the series alone, by optimal partitioning, to check events and witnesses: seconds "
    "depend on each other, so that one without a cause may be chance."
)


def phases_table(scenarios: Sequence[ScenarioFigures], metrics: Mapping[str, Metric]) -> Table:
    """A row for each phase of runs of one point, whose metrics these are."""

    def phase_metric(phase: str, figure: str) -> Metric:
        return metrics.get(phase_metric_key(phase, figure), Metric(None, ""))

    rows = []
    for place, phase in enumerate(scenarios[0].phases):
        own = [scenario.phases[place] for scenario in scenarios if len(scenario.phases) > place]
        name = phase.id
        rows.append(
            row_of_cells(
                name,
                list_text(dict.fromkeys(phase_run.ended_by for phase_run in own)),
                _range_text([phase_run.seconds for phase_run in own]),
                metric_value_text(phase_metric(name, "iops"), is_rate_unit_omitted=True),
                _share_with_interval_text(phase_metric(name, "baseline_share")),
                _share_with_interval_text(phase_metric(name, "served_share")),
                *(metric_value_text(phase_metric(name, figure)) for figure in _LATENCIES),
                _stall_text(phase_metric(name, "longest_stall_s")),
                f"{max(phase_run.stalled_s for phase_run in own)} s",
            )
        )
    columns = _mark_optional_columns(text_and_number_columns(_TEXTS, _NUMBERS), _OPTIONAL)
    return Table(PHASES_TITLE, columns, tuple(rows), keeps_constant_columns=True)


def _mark_optional_columns(
    columns: tuple[Column, ...], optional_titles: frozenset[str]
) -> tuple[Column, ...]:
    return tuple(replace(column, is_optional=column.title in optional_titles) for column in columns)


def neighbours_table(
    scenarios: Sequence[ScenarioFigures], metrics: Mapping[str, Metric]
) -> Table | None:
    """What neighbours did in each phase, and how the measured load fared; None without any."""
    neighbours = [neighbour for scenario in scenarios for neighbour in scenario.neighbours]
    if not neighbours:
        return None
    rows = []
    for phase in scenarios[0].phases[1:]:
        own: dict[str, list[NeighbourPhaseFigures]] = {}
        for neighbour in neighbours:
            figures = [part for part in neighbour.phases if part.id == phase.id]
            if figures:
                own.setdefault(neighbour.event, []).extend(figures)
        workloads = {neighbour.event: neighbour.workload for neighbour in neighbours}
        names = [workloads[event] for event in own]
        texts = [
            metric_value_text(
                _mean_over_repeats([part.iops for part in parts]), is_rate_unit_omitted=True
            )
            for parts in own.values()
        ]
        p99s = [
            metric_value_text(_mean_over_repeats([part.lat_ns_p99 for part in parts]))
            for parts in own.values()
        ]
        ratios = (
            metrics.get(phase_metric_key(phase.id, f"{name}_ratio"), Metric(None, "x"))
            for name in ("p50", "p99", "mean")
        )
        rows.append(
            row_of_cells(
                phase.id,
                list_text(names) or DASH,
                list_text(texts) or DASH,
                list_text(p99s) or DASH,
                _share_value_text(metrics.get(phase_metric_key(phase.id, "baseline_share"))),
                *(_ratio_with_interval_text(ratio) for ratio in ratios),
            )
        )
    heads = text_and_number_columns(
        ("Phase", "Neighbour"), ("Its IOPS", "Its p99", "Rate kept", "p50", "p99", "Mean")
    )
    columns = _mark_optional_columns(heads, _OPTIONAL_OF_NEIGHBOURS)
    return Table(NEIGHBOURS_TITLE, columns, tuple(rows))


def _mean_over_repeats(metrics: Sequence[Metric]) -> Metric:
    """The geometric mean, as of other figures; of one that is zero the arithmetic one."""
    values = [metric.value for metric in metrics if metric.value is not None]
    if not values:
        return Metric(None, metrics[0].unit)
    mean = geometric_mean(values) if min(values) > 0 else fmean(values)
    return Metric(mean, metrics[0].unit)


def _ratio_with_interval_text(ratio: Metric) -> str:
    if ratio.value is None:
        return DASH
    text = ratio_text(ratio.value)
    if ratio.low is None or ratio.high is None:
        return text
    ends = (significant_digits_text(end) for end in (ratio.low, ratio.high))
    return f"{text} ({' to '.join(ends)})"


def neighbour_table_ratios_note(
    scenarios: Sequence[ScenarioFigures], metrics: Mapping[str, Metric]
) -> str:
    """What its ratios are of, and why some are missing; the metrics are those of the table."""
    note = "Rate and latencies of the measured load are multiples of those of its first phase."
    phases_of_reason: dict[tuple[str, str], list[str]] = {}
    for phase in scenarios[0].phases[1:]:
        own = [part for scenario in scenarios for part in scenario.phases if part.id == phase.id]
        reasons = [part.unequal_load for part in own if part.unequal_load]
        if reasons:
            is_of_all = len(reasons) == len(own)
            repeats = "" if is_of_all else f"in {len(reasons)} of {len(own)} repeats "
            reason = list_text(dict.fromkeys(reasons), REASONS_SHOWN)
            phases_of_reason.setdefault((repeats, reason), []).append(quote_value(phase.id))
    texts = [
        f"{repeats}none in {'phase' if len(names) == 1 else 'phases'} {list_text(names)}, "
        f"where {reason}"
        for (repeats, reason), names in phases_of_reason.items()
    ]
    for phase in scenarios[0].phases[1:]:
        ratios = {
            name: metrics.get(phase_metric_key(phase.id, f"{name}_ratio"), Metric(None, "x"))
            for name in ("p50", "p99", "mean")
        }
        shorter = [name for name, ratio in ratios.items() if ratio.high and ratio.high < 1]
        if shorter:
            texts.append(
                f"in phase '{phase.id}' the {list_text(shorter)} got shorter: {DISTURBED_BASELINE}"
            )
    return " ".join([note, *(f"{capitalised(text)}." for text in texts)])


def _range_text(values: Sequence[float], digits: int = 1) -> str:
    low, high = (f"{end:.{digits}f}" for end in (min(values), max(values)))
    return low if low == high else f"{low} to {high}"


def _stall_text(stall: Metric) -> str:
    if stall.value is None:
        return DASH
    return _seconds_text(stall.value)


def _seconds_text(seconds: float) -> str:
    return format_ns(seconds * 1e9) if seconds < 1 else format_duration_s(seconds)


def _share_with_interval_text(share: Metric | None) -> str:
    if share is None or share.value is None or share.low is None or share.high is None:
        return _share_value_text(share)
    return f"{_share_value_text(share)} ({percent_text(share.low)} to {percent_text(share.high)})"


def _share_value_text(share: Metric | None) -> str:
    """A share to a tenth of a per cent: it is of medians of seconds."""
    return DASH if share is None or share.value is None else percent_text(round(share.value, 3))


def run_fault_impact_sentence(result: RunResult) -> str:
    """The sentence of one run; empty without phases."""
    scenario = result.scenario
    return "" if scenario is None else fault_impact_sentence([scenario], result.metrics)


def fault_impact_sentence(
    scenarios: Sequence[ScenarioFigures], metrics: Mapping[str, Metric]
) -> str:
    """What fault and neighbours cost, for how long, and whether anything acknowledged is lost."""
    neighbours = _neighbour_impact_texts(scenarios[0], metrics)
    if neighbours and not _fault_title(scenarios[0]):
        if failed := sum(scenario.failed_ios for scenario in scenarios):
            neighbours.append(f"clients saw {counted_noun(failed, 'failed I/O')}")
        if any(scenario.lost_blocks is not None for scenario in scenarios):
            neighbours.append(_lost_writes_text(scenarios))
        return f"{'; '.join(neighbours)}."
    lost = _lost_writes_text(scenarios)
    parts = [
        *neighbours,
        _fault_cost_text(scenarios, metrics),
        *_recovery_time_texts(scenarios, metrics),
    ]
    stall = max((_longest_stall_after_fault_s(scenario) for scenario in scenarios), default=0.0)
    stopped_s = [
        second
        for phase in _phases_between_fault_and_repair(scenarios[0])
        if min(stalled := _stalled_seconds_of_repeats(scenarios, phase.id), default=0)
        for second in stalled
    ]
    # Seconds are whole ones: a stop and the longest stall differ by up to one at each end.
    if stall and abs(stall - max(stopped_s, default=-math.inf)) > 2:
        parts.append(f"the longest stall was {_seconds_text(stall)}")
    failed = sum(scenario.failed_ios for scenario in scenarios)
    if failed:
        parts.append(f"clients saw {counted_noun(failed, 'failed I/O')}")
    if any(scenario.lost_blocks for scenario in scenarios):
        return f"{capitalised(lost)}. {'; '.join(parts)}."
    writes = metrics.get("write_iops")
    if writes is None or writes.value is not None:  # of a load that only reads nothing can be lost
        parts.append(lost)
    return f"{'; '.join(parts)}."


def _fault_title(scenario: ScenarioFigures) -> str:
    return scenario.fault_event.title if scenario.fault_event else ""


def _phases_after_fault(scenario: ScenarioFigures) -> list[PhaseFigures]:
    """The phases after the first that end after the fault begins; all where there is none."""
    fault = scenario.fault_event
    begin_s = (fault.start_s or 0.0) if fault else 0.0
    return [phase for phase in scenario.phases[1:] if phase.start_s + phase.seconds > begin_s]


def _phases_between_fault_and_repair(scenario: ScenarioFigures) -> list[PhaseFigures]:
    """Those of them that begin before all is mended, and are long enough for figures."""
    phases, mended_s = _phases_after_fault(scenario), _repaired_at_s(scenario)
    return [
        phase
        for phase in phases
        if phase.seconds >= RATED_PHASE_S_MIN
        and (mended_s is None or phase.start_s + NEAR_S < mended_s)
    ]


def _repaired_at_s(scenario: ScenarioFigures) -> float | None:
    """When what the fault did was over, as its witness says, else its undo; None of neither."""
    fault, redundancy = scenario.fault_event, scenario.redundancy_s
    if fault is None or fault.start_s is None:
        return None
    if redundancy is not None:
        return None if redundancy.value is None else fault.start_s + redundancy.value
    return fault.undone_s


def _has_supported_p99(phase: PhaseFigures) -> bool:
    """Whether its p99 is of enough I/Os to be told in a sentence."""
    from iolab.analysis.metrics import is_percentile_supported  # brings numpy

    return is_percentile_supported(round((phase.iops.value or 0.0) * phase.seconds), P99)


def _neighbour_impact_texts(scenario: ScenarioFigures, metrics: Mapping[str, Metric]) -> list[str]:
    """`A neighbour of 16 readers makes the p50 7.8 times as long ...`, and what limits undo."""
    titles = {event.id: event.title for event in scenario.events}
    texts = []
    for neighbour in scenario.neighbours:
        limited = {
            limit.event: _phase_ids_within_event(scenario, limit.event)
            for limit in neighbour.limit_figures
            if limit.event != neighbour.event
        }
        all_limited = {phase for phases in limited.values() for phase in phases}
        active = [phase.id for phase in neighbour.phases]
        free = [
            phase for phase in scenario.phases if phase.id in active and phase.id not in all_limited
        ]
        longer: dict[str, Metric] = {}
        for phase in free[:1]:
            longer = _increased_latency_ratio_by_name(scenario, phase, metrics)
            texts.append(
                f"{titles[neighbour.event]} {_neighbour_cost_predicate(scenario, phase, metrics)}"
            )
        for event, phases in limited.items():
            for name in phases[:1]:
                title = uncapitalised(titles[event])
                texts.append(f"{title} {_io_limit_effect_predicate(name, metrics, longer)}")
    return texts


def _phase_ids_within_event(scenario: ScenarioFigures, event_id: str) -> list[str]:
    """The phases that lie in the time between an event and its undo, to a second."""
    event = next(event for event in scenario.events if event.id == event_id)
    end = scenario.phases[-1].start_s + scenario.phases[-1].seconds
    first, last = event.start_s, event.undone_s if event.undone_s is not None else end
    return [
        phase.id
        for phase in scenario.phases
        if first is not None
        and first - NEAR_S <= phase.start_s
        and phase.start_s + phase.seconds <= last + NEAR_S
    ]


def _neighbour_cost_predicate(
    scenario: ScenarioFigures, phase: PhaseFigures, metrics: Mapping[str, Metric]
) -> str:
    """`makes the p50 7.8 times (7.2 to 8.4) as long in phase 'noise' (10 s), at the same rate`."""
    where = f"in phase '{phase.id}' ({format_duration_s(phase.seconds)})"
    rate = metric_value_text(metrics.get(phase_metric_key(phase.id, "iops")))
    if longer := _increased_latency_ratio_by_name(scenario, phase, metrics):
        costs = [f"the {name} {_times_with_interval_text(ratio)}" for name, ratio in longer.items()]
        return f"makes {list_text(costs)} as long {where}, at the same {rate}"
    p50 = metrics.get(phase_metric_key(phase.id, "p50_ratio"))
    if p50 is not None and p50.high is not None and p50.high < 1:
        text = (
            f"goes with a p50 only {_times_with_interval_text(p50)} as long {where}, "
            f"at the same {rate}"
        )
        return f"{text}: {DISTURBED_BASELINE}"
    if p50 is not None and p50.value is not None:
        text = f"makes no latency longer {where}, at the same {rate}, beyond what may be chance"
        return f"{text} (the p50 is {_times_with_interval_text(p50)} the first phase's)"
    share = metrics.get(phase_metric_key(phase.id, "baseline_share"))
    if share is None or share.value is None:
        return f"has an effect that could not be measured {where}"
    effect = f"leaves {percent_text(share.value)} of the IOPS {where}"
    return f"{effect}; latencies have no ratio, since {phase.unequal_load}"


def _increased_latency_ratio_by_name(
    scenario: ScenarioFigures, phase: PhaseFigures, metrics: Mapping[str, Metric]
) -> dict[str, Metric]:
    """The ratios of a phase that are larger than 1 by more than may be chance.

    A p99 of few I/Os has none.
    """
    is_supported = all(map(_has_supported_p99, (scenario.phases[0], phase)))
    ratios = {
        name: metrics.get(phase_metric_key(phase.id, f"{name}_ratio"))
        for name in _RATIOS
        if is_supported or name != "p99"
    }
    return {
        name: ratio
        for name, ratio in ratios.items()
        if ratio and _lowest_plausible_ratio(ratio) > 1
    }


def _lowest_plausible_ratio(ratio: Metric) -> float:
    return (ratio.value or 0.0) / (1 + COST_MIN) if ratio.low is None else ratio.low


def _times_with_interval_text(ratio: Metric) -> str:
    return f"{significant_digits_text(ratio.value or 0.0)} times{_interval_suffix_of_ratio(ratio)}"


def _interval_suffix_of_ratio(ratio: Metric) -> str:
    if ratio.low is None or ratio.high is None:
        return ""
    return f" ({' to '.join(map(significant_digits_text, (ratio.low, ratio.high)))})"


def _io_limit_effect_predicate(
    phase_id: str, metrics: Mapping[str, Metric], increased_latency_ratios: Mapping[str, Metric]
) -> str:
    """`undoes that: the p50 is 1.1 times the first phase's in phase 'limited'`.

    `increased_latency_ratios` are the latencies that the neighbour makes longer without the limit.
    """
    name = next(iter(increased_latency_ratios), _RATIOS[0])
    ratio, unlimited = (
        metrics.get(phase_metric_key(phase_id, f"{name}_ratio")),
        increased_latency_ratios.get(name),
    )
    if ratio is None or ratio.value is None:
        return f"has no ratio of latencies to tell by in phase '{phase_id}'"
    text = (
        f"the {name} is {_times_with_interval_text(ratio)} the first phase's in phase '{phase_id}'"
    )
    if unlimited is None or unlimited.value is None:
        return f"has nothing to undo: {text}"
    left = (ratio.value - 1) / (unlimited.value - 1)
    word = (
        "undoes" if left < UNDONE_SHARE else "does not undo" if left > 1 - UNDONE_SHARE else "eases"
    )
    return f"{word} that: {text}"


def _longest_stall_after_fault_s(scenario: ScenarioFigures) -> float:
    phases = _phases_after_fault(scenario)
    return max((phase.longest_stall_s.value or 0.0 for phase in phases), default=0.0)


def _fault_cost_text(scenarios: Sequence[ScenarioFigures], metrics: Mapping[str, Metric]) -> str:
    """`Losing one of two disks costs 45 % of the IOPS in phase 'degraded' (10 s)`."""
    first = scenarios[0]
    subject = _fault_title(first)
    if not subject:
        return _phase_differences_text(first, metrics)
    effects = _fault_effect_predicates(scenarios, metrics)
    return f"{subject} {', and '.join(effects) or _no_fault_cost_predicate(first)}"


def _fault_effect_predicates(
    scenarios: Sequence[ScenarioFigures], metrics: Mapping[str, Metric]
) -> list[str]:
    """How long a fault stops the load, what it costs of the rate, then of latencies.

    Empty where nothing is seen of it. After a stall a pace makes up for what it missed, so that the
    phase as a whole may show none of it.
    """
    scenario = scenarios[0]
    stops = [
        f"{_range_text(stalled, digits=0)} s {_in_phase_phrase(phase)}"
        for phase in _phases_between_fault_and_repair(scenario)
        if min(stalled := _stalled_seconds_of_repeats(scenarios, phase.id), default=0)
    ]
    losses = [
        (phase, share)
        for phase, share in _phases_with_remaining_rate_shares(scenario, metrics)
        # A phase that is one stop is told by the seconds of that.
        if (share.value or 0.0) >= STOPPED_SHARE
        or min(_stalled_seconds_of_repeats(scenarios, phase.id)) + 2 < phase.seconds
    ]
    p99_rises = _phases_with_p99_rises(scenario, metrics)
    p99_phases = [phase.id for phase, _ in p99_rises]
    p50_rises = [
        rise for rise in _phases_with_p50_rises(scenario, metrics) if rise[0].id not in p99_phases
    ]
    # The rate is named once, in the first part.
    whats = [f" of the {_changed_rate_unit_text(scenario)}", *([""] * len(losses))]
    costs = [
        f"{percent_text(1.0 - (share.value or 0.0))}{what} "
        f"{_in_phase_phrase(phase, _why_rate_loss_is_unsure_suffix(share))}"
        for (phase, share), what in zip(losses, whats, strict=False)
    ]
    groups = [("stops reads or writes for", stops), ("costs", costs)]
    for name, rises in (("p99", p99_rises), ("p50", p50_rises)):
        longer = [
            f"{_times_with_interval_text(rise)} as long {_in_phase_phrase(phase)}"
            for phase, rise in rises
        ]
        groups.append((f"makes the {name}", longer))
    return [f"{verb} {list_text(texts)}" for verb, texts in groups if texts]


def _stalled_seconds_of_repeats(scenarios: Sequence[ScenarioFigures], phase_id: str) -> list[int]:
    phases = (phase for scenario in scenarios for phase in scenario.phases)
    return [phase.stalled_s for phase in phases if phase.id == phase_id]


def _no_fault_cost_predicate(scenario: ScenarioFigures) -> str:
    """What is said of a fault without a cost: of phases that tell little no more than that."""
    phases = _phases_between_fault_and_repair(scenario)
    if not phases:
        return (
            f"has a cost that was not measured: no phase of {RATED_PHASE_S_MIN:g} s lies between "
            "it and its end"
        )
    text = "changes nothing that this load shows"
    is_paced = scenario.changed_metric != "iops"
    if is_paced and not all(map(_has_supported_p99, (scenario.phases[0], *phases))):
        text += ", but for a p99 of too few I/Os to tell"
    return text


def _in_phase_phrase(phase: PhaseFigures, doubt: str = "") -> str:
    return f"in phase '{phase.id}' ({format_duration_s(phase.seconds)}{doubt})"


def _why_rate_loss_is_unsure_suffix(remaining_share: Metric) -> str:
    """Why what is lost of a rate is not sure; "" where it is."""
    if remaining_share.low is None or remaining_share.high is None:
        return ", uncertain: without an interval"
    if remaining_share.high < 1.0:
        return ""
    low, high = percent_text(remaining_share.low), percent_text(remaining_share.high)
    return f", uncertain: {low} to {high} are left"


def _changed_rate_unit_text(scenario: ScenarioFigures) -> str:
    """What a fault costs: of a load with a fixed rate some of the I/Os that were to be done."""
    return "IOPS" if scenario.changed_metric == "iops" else "I/Os"


def _phase_differences_text(scenario: ScenarioFigures, metrics: Mapping[str, Metric]) -> str:
    """`Phase 'degraded' has 45 % fewer IOPS than the first phase`, of a run without an event."""
    fewer = f"fewer {_changed_rate_unit_text(scenario)} than the first phase"
    differing = [
        f"phase '{phase.id}' has {percent_text(1.0 - (share.value or 0.0))} {fewer}"
        for phase, share in _phases_with_remaining_rate_shares(scenario, metrics)
        if share.high is None or share.high < 1.0
    ]
    differing += [
        f"phase '{phase.id}' has a p99 {_times_with_interval_text(rise)} that of the first phase"
        for phase, rise in _phases_with_p99_rises(scenario, metrics)
    ]
    if not differing:
        return "No phase differs from the first"
    return capitalised(list_text(differing))


def _phases_with_remaining_rate_shares(
    scenario: ScenarioFigures, metrics: Mapping[str, Metric]
) -> list[tuple[PhaseFigures, Metric]]:
    """Phases after the fault with fewer I/Os, and the share that is left, sure or not.

    Of a fixed rate a short stall takes a part and leaves the median second as it was.
    """
    figure = "baseline_share" if scenario.changed_metric == "iops" else "served_share"
    shares = (
        (phase, metrics.get(phase_metric_key(phase.id, figure)))
        for phase in _phases_between_fault_and_repair(scenario)
    )
    return [
        (phase, share)
        for phase, share in shares
        if share is not None and share.value is not None and share.value <= 1.0 - COST_MIN
    ]


def _phases_with_p99_rises(
    scenario: ScenarioFigures, metrics: Mapping[str, Metric]
) -> list[tuple[PhaseFigures, Metric]]:
    """Phases after the fault of a load with a fixed rate with a longer p99, and how much longer.

    Where the load was another one the quotient has no interval.
    """
    if scenario.changed_metric == "iops":
        return []

    def p99_ns(phase: str) -> float:
        return metrics.get(phase_metric_key(phase, "lat_ns_p99"), Metric(None, "ns")).value or 0.0

    usual = p99_ns(scenario.phases[0].id)
    if not usual or not _has_supported_p99(scenario.phases[0]):
        return []
    rises = []
    for phase in filter(_has_supported_p99, _phases_between_fault_and_repair(scenario)):
        ratio = metrics.get(phase_metric_key(phase.id, "p99_ratio"))
        rise = ratio if ratio and ratio.value else Metric(p99_ns(phase.id) / usual, "x")
        is_longer = (rise.value or 0.0) > 1 + COST_MIN
        if is_longer and (rise.low is None or rise.low > 1):
            rises.append((phase, rise))
    return rises


def _phases_with_p50_rises(
    scenario: ScenarioFigures, metrics: Mapping[str, Metric]
) -> list[tuple[PhaseFigures, Metric]]:
    """Phases after the fault of a load with a fixed rate with a surely longer p50.

    Without an interval none is: the p50 of two stretches of seconds always differs.
    """
    ratios = (
        (phase, metrics.get(phase_metric_key(phase.id, "p50_ratio")))
        for phase in _phases_between_fault_and_repair(scenario)
    )
    return [
        (phase, ratio)
        for phase, ratio in ratios
        if ratio is not None
        and (ratio.value or 0.0) > 1 + COST_MIN
        and ratio.low is not None
        and ratio.low > 1
    ]


def _recovery_time_texts(
    scenarios: Sequence[ScenarioFigures], metrics: Mapping[str, Metric]
) -> Iterator[str]:
    """When all was as before, as far as it came to that.

    A fault that changes nothing has no way back: what left the baseline later was something else.
    """
    figures = [("redundancy_s", "redundancy"), ("baseline_s", "the baseline")]
    first = scenarios[0]
    if (
        _fault_title(first)
        and _phases_between_fault_and_repair(first)
        and not _fault_effect_predicates(scenarios, metrics)
    ):
        figures.pop()
    for figure, what in figures:
        known = [
            value for scenario in scenarios if (value := getattr(scenario, figure)) is not None
        ]
        missing = sum(value.value is None for value in known)
        metric = metrics.get(scenario_metric_key(figure))
        if metric is not None and metric.value and len(known) == len(scenarios):
            yield f"{what} was back {format_duration_s(metric.value)} after the fault"
        elif figure == "redundancy_s" and missing:
            repeats = f"in {missing} of {len(scenarios)} repeats " if len(scenarios) > 1 else ""
            yield f"{repeats}redundancy was not back at the end"


def _lost_writes_text(scenarios: Sequence[ScenarioFigures]) -> str:
    if any(scenario.lost_blocks for scenario in scenarios):
        lost = sum(scenario.lost_blocks or 0 for scenario in scenarios)
        verb = "lacks" if lost == 1 else "lack"
        return f"{counted_noun(lost, 'block')} {verb} what was acknowledged"
    if any(scenario.lost_blocks is None for scenario in scenarios):
        return "whether anything acknowledged was lost is not known"
    mounts = {scenario.is_new_mount for scenario in scenarios}
    mount = MOUNT_TEXTS[mounts.pop()] if len(mounts) == 1 else ""
    return f"nothing acknowledged was lost{mount}"


def scenario_figures_of_runs(point: PointSummary) -> list[ScenarioFigures]:
    """Those of the runs behind a point's values, else of all of its runs."""
    runs = point.results or tuple(point.runs)
    return [run.scenario for run in runs if run.scenario is not None]


def point_or_single_run_metrics(point: PointSummary) -> Mapping[str, Metric]:
    """Those over the repeats; of a single run its own, with its intervals."""
    runs = point.results or tuple(point.runs)
    return runs[0].metrics if len(runs) == 1 else point.metrics


def scenario_answer_text(study: Study, points: Sequence[PointSummary]) -> str:
    """The sentence of each point that has phases; of one that cannot be trusted what it lost."""
    several = len(points) > 1
    texts = []
    for point in points:
        scenarios = scenario_figures_of_runs(point)
        if not scenarios or not (
            point.is_trusted or any(scenario.lost_blocks for scenario in scenarios)
        ):
            continue
        text = (
            fault_impact_sentence(scenarios, point_or_single_run_metrics(point))
            if point.is_trusted
            else f"{capitalised(_lost_writes_text(scenarios))}."
        )
        title = study.workload(point.key.workload).title
        texts.append(f"{title}: {text}" if several else text)
    return " ".join(texts)


def detected_changes_table(scenarios: Sequence[ScenarioFigures]) -> Table:
    """What the seconds of each run show by themselves, and what is near it."""
    rows = tuple(
        row_of_cells(
            str(number),
            change.cause or "unexplained",
            f"{change.at_s.value:.0f} s",
            f"{change.at_s.low:.0f} to {change.at_s.high:.0f} s",
            percent_text(change.ratio)
            if change.ratio < TIMES_MIN
            else f"{significant_digits_text(change.ratio)} times",
        )
        for number, scenario in enumerate(scenarios, 1)
        for change in scenario.changes
    )
    heads = text_and_number_columns(("Repeat", "Near"), ("At", "Between", "Of what was before"))
    return Table(CHANGES_TITLE, heads, rows)


def scenario_section(brief: Brief) -> ReportSection | None:
    """A picture and a table of each point that was run through phases; None without any."""
    from iolab.report.charts.chart import ReportSection

    groups = tuple(
        _chart_group_of_point(brief, point)
        for point in brief.points
        if scenario_figures_of_runs(point)
    )
    if not groups:
        return None
    return ReportSection(ANCHOR, SECTION_TITLE, _INTRODUCTION, groups, in_appendix=False)


def _chart_group_of_point(brief: Brief, point: PointSummary) -> ChartGroup:
    from iolab.report.charts.chart import ChartGroup
    from iolab.report.charts.scenario import scenario_chart

    scenarios, metrics = scenario_figures_of_runs(point), point_or_single_run_metrics(point)
    title = brief.study.workload(point.key.workload).title
    style = brief.series_styles[point.key.configuration]
    if len(brief.study.configurations) > 1:
        title = f"{title}, {style.title}"
    neighbours = neighbours_table(scenarios, metrics)
    sentence = fault_impact_sentence(scenarios, metrics) if point.is_trusted else INVALID_PHASES
    doubt = "" if point.is_trusted else f"{INVALID_PHASES} "
    chart = scenario_chart(title, scenarios, style.color, sentence)
    below = [(neighbours, neighbour_table_ratios_note(scenarios, metrics))] if neighbours else []
    return ChartGroup(
        title,
        (chart,),
        phases_table(scenarios, metrics),
        f"{doubt}{phases_note(scenarios, metrics)}".rstrip(),
        tables_below_with_notes=tuple(below),
        detail_tables_with_notes=((detected_changes_table(scenarios), _CHANGES_NOTE),),
    )


def phases_note(scenarios: Sequence[ScenarioFigures], metrics: Mapping[str, Metric]) -> str:
    """Why some shares have no interval, and what a p99 of few I/Os rests on; empty of none."""
    from iolab.analysis.metrics import ios_needed_for_percentile  # brings numpy
    from iolab.analysis.scenario import BLOCK_S, BLOCKS_MIN

    phases = scenarios[0].phases
    lacking = [
        quote_value(phase.id)
        for phase in phases
        if (share := metrics.get(phase_metric_key(phase.id, "baseline_share"))) is not None
        and share.value is not None
        and share.low is None
    ]
    sentences = []
    if lacking and len(scenarios) == 1:
        least_s = BLOCKS_MIN * BLOCK_S
        sentences.append(
            f"No interval in {list_text(lacking)}: it is from means of {BLOCK_S} s, of which each "
            f"phase needs {BLOCKS_MIN} above zero ({least_s} s)."
        )
    elif lacking:
        sentences.append(f"No interval in {list_text(lacking)}: {TOO_FEW_REPEATS}.")
    few = [
        quote_value(phase.id)
        for phase in phases
        if metrics.get(phase_metric_key(phase.id, "lat_ns_p99"), Metric(None, "ns")).value
        and not _has_supported_p99(phase)
    ]
    if few:
        where = "each phase" if len(few) == len(phases) else list_text(few)
        sentences.append(
            f"The p99 in {where} is of fewer than {ios_needed_for_percentile(P99):,} I/Os, from "
            "which on a p99 counts as a figure: its tail is a few I/Os."
        )
    return " ".join(sentences)
