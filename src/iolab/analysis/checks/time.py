"""Checks of time: long enough, without gaps, shared by all hosts, with I/Os enough."""

from __future__ import annotations

import math
from typing import Final

import numpy as np

from iolab.analysis.check import (
    CheckAnswer,
    EvidenceValues,
    HostAnswer,
    answer_to_grade,
    check,
    indicative_answer,
    invalid_answer,
    not_applicable_answer,
    per_host,
    unchecked_answer,
    valid_answer,
)
from iolab.analysis.checks.load_halts import has_load_halts
from iolab.analysis.metrics import ios_needed_for_percentile, is_percentile_supported
from iolab.analysis.scenario import baseline_window, record_cut_to_window
from iolab.analysis.steady import EXCESS_TOLERABLE, SteadinessView, fleet_rate_series
from iolab.analysis.view import RunView
from iolab.analysis.window import EDGE_SLACK_NS
from iolab.core.bins import PERCENTILES
from iolab.core.metric import VerdictLevel
from iolab.core.stopping import SteadinessStatus
from iolab.core.volume import REACHED_TOLERANCE, provisioned_limit
from iolab.stats.quantiles import has_few_stalls
from iolab.stats.steady_state import SECONDS_MIN, find_fall_to_plateau
from iolab.study.forecast import (
    RUN_CUT_TEXT,
    RUN_ENOUGH_S,
    RUN_USELESS_S,
    best_verdict_level_for_run_length,
)
from iolab.text import list_text, percent_text
from iolab.units import format_count

COVERED_GOOD: Final = 0.98
"""Share of the window that intervals must cover."""

COVERED_BAD: Final = 0.90
"""Below this share nobody knows what happened in a tenth of the time."""

HEADLINE: Final = ("p50",)
"""Percentiles without which a throughput result is not sound: fewer I/Os than the median needs
(200) are too few for a mean as well."""

LATENCY_HEADLINE: Final = ("p50", "p99", "p99_5")
"""The same where each client has one I/O in flight: such a workload is run for its latency, and its
headline in the published studies is the 99.5th percentile."""

DRIFT_TOLERABLE: Final = 0.10
"""Difference of the halves from which a run that is not steady is no measure at all: what SNIA's
performance test specification allows within a steady state."""

TOO_SHORT: Final = "Too few whole seconds were measured to judge by them."
ENGINE_STOPPED: Final = "The engine stood still, which shows in its seconds like a change of rate."


@check("hosts-left-out", "Measured without hosts that failed", needs_load=False)
def check_hosts_left_out(view: RunView) -> CheckAnswer:
    """Whether every host of the configuration took part."""
    left_out = view.record.excluded_hosts
    if not left_out:
        return valid_answer("Every host of the configuration took part.", hosts_left_out=0)
    return indicative_answer(
        f"Measured without {', '.join(left_out)}: not comparable with results of the whole fleet.",
        hosts_left_out=len(left_out),
    )


@check("no-common-window", "No window common to all hosts", needs_load=False)
def check_no_common_window(view: RunView) -> CheckAnswer:
    """Whether all hosts ran at the same time, so that their rates may be added."""
    windows = [window for window in view.load.measured_part.whole_run_windows if window is not None]
    missing = len(view.hosts) - len(windows)
    if missing:
        return invalid_answer(
            f"{missing} of {len(view.hosts)} hosts measured nothing: there is no fleet number.",
            hosts=len(view.hosts),
            hosts_without_load=missing,
        )
    starts = [window.start_ns for window in windows]
    ends = [window.end_ns for window in windows]
    skew_s = (max(starts) - min(starts)) / 1e9
    common = view.load.measured_part.common_window
    clock_error_ns = max(host.clock_error_ns for host in view.hosts)
    evidence: EvidenceValues = {
        "hosts": len(view.hosts),
        "start_skew_s": skew_s,
        "end_skew_s": (max(ends) - min(ends)) / 1e9,
        "common_s": 0.0 if common is None else common.seconds,
        "clock_error_s": clock_error_ns / 1e9,
    }
    if common is None:
        return _no_common_window_answer(view, evidence)
    if len(view.hosts) == 1:
        return not_applicable_answer("One host: its window is the window.", **evidence)
    if clock_error_ns > EDGE_SLACK_NS:
        return indicative_answer(
            f"A host's clock is known only to {clock_error_ns / 1e6:.0f} ms, so how far the hosts "
            "ran together is not certain.",
            **evidence,
        )
    return valid_answer(f"All hosts ran together for {common.seconds:.1f} s.", **evidence)


def _no_common_window_answer(view: RunView, evidence: EvidenceValues) -> CheckAnswer:
    if len(view.hosts) == 1:
        return invalid_answer("Not one whole interval lies after the warm-up.", **evidence)
    return invalid_answer(
        "The hosts had no whole interval in common after the warm-up: there is no fleet number.",
        **evidence,
    )


@check("run-too-short", "Run too short")
def check_run_too_short(view: RunView) -> CheckAnswer:
    """Whether the measured time is long enough to stand for more than itself."""
    seconds, asked_s = float(view.load.seconds.min()), view.record.runtime_s
    # Cut and not rounded: 2.97 s are not the 3.0 s that would do.
    text = f"{math.floor(10 * seconds) / 10:.1f} s were measured"
    level = best_verdict_level_for_run_length(asked_s, seconds)
    if level is VerdictLevel.INVALID:
        return invalid_answer(f"Only {text}; {RUN_USELESS_S:.0f} s are the least.", seconds=seconds)
    if level is VerdictLevel.INDICATIVE:
        if asked_s < RUN_ENOUGH_S:
            planned = f"The run was planned for {asked_s:.0f} s"
            needs = f"valid needs {RUN_ENOUGH_S:.0f} s"
            return indicative_answer(f"{planned} ({text}); {needs}.", seconds=seconds)
        return indicative_answer(f"Only {text}; {RUN_CUT_TEXT}.", seconds=seconds)
    return valid_answer(f"{text}.", seconds=seconds)


@check("missing-seconds", "Seconds missing from the record")
@per_host(min_key="covered_share", valid_threshold=COVERED_GOOD, invalid_threshold=COVERED_BAD)
def check_missing_seconds(view: RunView, host_index: int) -> HostAnswer:
    """Whether the intervals cover the window, but for one that each of its edges may cut."""
    table, host = view.record.intervals, view.hosts[host_index]
    own = view.interval_rows(host_index)
    rows = own[view.load.measured_part.interval_mask[own]]
    if not rows.size:
        return unchecked_answer(f"no interval was measured on {host.host}")
    ends = table.end_real_ns[rows]
    between_s = float(ends.max() - (ends - table.span_ns[rows]).min()) / 1e9
    window = view.measured_window(host_index)
    edges_s = 2 * float(np.median(table.span_ns[own])) / 1e9
    whole_s = max(between_s, (window.seconds if window else 0.0) - edges_s)
    share = float(view.load.seconds[host_index]) / whole_s if whole_s > 0 else 0.0
    text = (
        f"The intervals{view.on_host_if_several(host)} cover {percent_text(share)} of "
        f"{whole_s:.1f} s"
    )
    return answer_to_grade(text, host=host.host, covered_share=share, seconds=whole_s)


@check("percentile-support", "Too few I/Os for a percentile")
def check_percentile_support(view: RunView) -> CheckAnswer:
    """Whether enough I/Os were measured for each percentile; the others are not printed."""
    total = sum(map(view.measured_whole_operation_count, range(len(view.hosts))))
    lacking = [(name, at) for name, at in PERCENTILES if not is_percentile_supported(total, at)]
    evidence: EvidenceValues = {"ios": total}
    stalls = view.steadiness_view.stall_count if view.steadiness_view else 0
    if not lacking and has_few_stalls(stalls):
        return valid_answer(
            f"{stalls} stalls decide the percentiles from p99.9 on: told as more than p99.5.",
            **evidence,
            stalls=stalls,
        )
    if not lacking:
        return valid_answer(f"{format_count(total)} I/Os support every percentile.", **evidence)
    needs = ", ".join(
        f"{_median_or_percentile_word(at)} ({format_count(ios_needed_for_percentile(at))})"
        for _, at in lacking
    )
    evidence |= {f"{name}_needs": ios_needed_for_percentile(at) for name, at in lacking}
    text = f"{format_count(total)} I/Os are too few for {needs}: not printed."
    headline = LATENCY_HEADLINE if view.has_one_io_in_flight_per_client else HEADLINE
    verdict = indicative_answer if any(name in headline for name, _ in lacking) else valid_answer
    return verdict(text, **evidence)


def _median_or_percentile_word(percent: float) -> str:
    return "the median" if percent == 50.0 else f"p{percent:g}"


@check("startup-transient", "Not steady")
def check_startup_transient(view: RunView) -> CheckAnswer:
    """Whether the run's start had faded and its two halves agree."""
    if has_load_halts(view):
        return not_applicable_answer(ENGINE_STOPPED)
    steady = view.steadiness_view
    if steady is None:
        return _unjudged_steadiness_answer(view)
    steadiness, evidence = steady.steadiness, _steadiness_evidence(steady)
    if steadiness.status is SteadinessStatus.TRANSIENT:
        return _not_steady_answer(view, steady, evidence)
    if abs(steady.planned_window_relative_mean_excess) > EXCESS_TOLERABLE:
        excess = percent_text(steady.planned_window_relative_mean_excess)
        return indicative_answer(
            f"Warm-up was too short: the result lies {excess} off what the run came to after "
            f"{steadiness.cut_s} s.",
            **evidence,
        )
    return valid_answer(f"Steady after {steadiness.cut_s} s of {steadiness.seconds} s.", **evidence)


def _not_steady_answer(
    view: RunView, steady: SteadinessView, evidence: EvidenceValues
) -> CheckAnswer:
    text = f"Not steady. {' '.join(steady.steadiness.reasons)}"
    if view.record.rule is not None and abs(steady.relative_halves_difference) > DRIFT_TOLERABLE:
        return invalid_answer(f"{text} This is no steady state's number.", **evidence)
    return indicative_answer(text, **evidence)


@check("burst-credits", "The rate fell to a plateau")
def check_burst_credits(view: RunView) -> CheckAnswer:
    """Whether the measured time holds two levels of service: a burst and what follows it."""
    if has_load_halts(view):
        return not_applicable_answer(ENGINE_STOPPED)
    baseline = baseline_window(view.record)  # of a run with phases: what a fault does is no credit
    record = view.record if baseline is None else record_cut_to_window(view.record, baseline)
    series = fleet_rate_series(record)
    if series is None:
        return not_applicable_answer(TOO_SHORT, seconds=0)
    if view.steadiness_view is not None and view.record.rule is not None:
        first, last = view.steadiness_view.steadiness.cut_s, view.steadiness_view.steadiness.seconds
    else:
        first = 0 if baseline is not None else round(view.record.warmup_s)
        last = len(series.counts)
    counted = series.counts[first:last]
    if len(counted) < SECONDS_MIN:
        return not_applicable_answer(TOO_SHORT, seconds=len(counted))
    fall = find_fall_to_plateau(counted)
    if fall is None:
        return valid_answer("The rate does not fall to a plateau.", seconds=len(counted))
    evidence: EvidenceValues = {
        "fell_after_s": first + fall.second,
        "before": fall.rate_before,
        "plateau": fall.plateau_rate,
        "spread": fall.plateau_relative_spread,
    }
    text = (
        f"After {first + fall.second} s the rate fell from {format_count(fall.rate_before)} to "
        f"{format_count(fall.plateau_rate)} IOPS and stayed there within "
        f"{percent_text(fall.plateau_relative_spread)}"
    )
    provisioned = _provisioned_fleet_iops_and_volume_types(view)
    if provisioned is None:
        return indicative_answer(
            f"{text}, as of a volume whose burst credits are used up: the mean is of neither.",
            **evidence,
        )
    limit, types = provisioned
    share = fall.plateau_rate / limit
    evidence |= {"provisioned": limit, "of_provisioned": share}
    why = (
        f"{percent_text(share)} of the {format_count(limit)} IOPS of {types} at this size of I/O: "
    )
    if abs(share - 1) <= REACHED_TOLERANCE:
        why += "its burst credits are used up"
    elif share < 1:
        why += "another limit, as that of the instance, is the lower one"
    else:
        why += "it still bursts, or is provisioned for more"
    return indicative_answer(f"{text}, {why}; the mean is of neither.", **evidence)


def _provisioned_fleet_iops_and_volume_types(view: RunView) -> tuple[float, str] | None:
    """What the hosts' volumes are provisioned for together, in IOPS at the run's size of I/O.

    None where the volume of any host is not known.
    """
    table = view.record.intervals
    ios = int(table.ios.sum())
    if not ios or not view.hosts:
        return None
    io_bytes = int(table.bytes.sum()) / ios
    limits: list[tuple[float, str]] = []
    for host in view.hosts:
        facts = view.facts_of_host(host)
        limit = provisioned_limit(facts, view.record.volume) if facts else None
        iops = limit.iops_at(io_bytes) if limit else None
        if limit is None or iops is None:
            return None
        limits.append((iops, limit.type))
    types = dict.fromkeys(name for _, name in limits)
    return sum(iops for iops, _ in limits), list_text(types)


@check("periodic-rate", "A cycle seen too few times")
def check_periodic_rate(view: RunView) -> CheckAnswer:
    """Whether enough whole cycles were seen where the rate swings."""
    if has_load_halts(view):
        return not_applicable_answer(ENGINE_STOPPED)
    steady = view.steadiness_view
    if steady is None:
        return _unjudged_steadiness_answer(view)
    steadiness = steady.steadiness
    evidence: EvidenceValues = {"period_s": steadiness.period_s, "cycles": steadiness.cycles}
    if steadiness.status is SteadinessStatus.CYCLE:
        return indicative_answer(f"Too few cycles. {' '.join(steadiness.reasons)}", **evidence)
    if steadiness.period_s is None:
        return valid_answer("The rate does not swing.", **evidence)
    return valid_answer(
        f"{steadiness.cycles} whole cycles of {steadiness.period_s} s were seen.", **evidence
    )


@check("wide-interval", "Mean not known well enough")
def check_wide_interval(view: RunView) -> CheckAnswer:
    """Whether the rate's mean is known as well as the rule asks; without one, for information."""
    steady = view.steadiness_view
    if steady is None:
        return _unjudged_steadiness_answer(view)
    steadiness, rule = steady.steadiness, view.record.rule
    bounded = math.isfinite(steadiness.half_width)
    evidence: EvidenceValues = {
        "half_width": steadiness.half_width if bounded else None,
        "df": steadiness.df,
        "stalls": steady.stall_count,
    }
    if not bounded:
        return _missing_confidence_interval_answer(view, steady, evidence)
    if rule is None:
        return valid_answer(
            f"The run's own mean is known to ±{percent_text(steadiness.half_width)}.", **evidence
        )
    evidence["precision"] = rule.precision
    width, asked = percent_text(steadiness.half_width), percent_text(rule.precision)
    text = f"The mean is known to ±{width}, asked was ±{asked}"
    if steadiness.half_width > rule.precision:
        stalls = f": it stalled {steady.stall_count} times" if steady.stall_count else ""
        return indicative_answer(f"{text}{stalls}.", **evidence)
    return valid_answer(f"{text}.", **evidence)


def _missing_confidence_interval_answer(
    view: RunView, steady: SteadinessView, evidence: EvidenceValues
) -> CheckAnswer:
    steadiness, rule = steady.steadiness, view.record.rule
    correlated = steadiness.status is SteadinessStatus.CORRELATED
    text = " ".join(steadiness.reasons) if correlated else "The run's own mean has no interval."
    if rule is None:
        return valid_answer(text, **evidence)
    return indicative_answer(text, **evidence, precision=rule.precision)


def _unjudged_steadiness_answer(view: RunView) -> CheckAnswer:
    if view.record.rule is None:
        return not_applicable_answer(TOO_SHORT, judged=False)
    return unchecked_answer("the run ended before its rule could look at it", judged=False)


def _steadiness_evidence(steady: SteadinessView) -> EvidenceValues:
    steadiness = steady.steadiness
    return {
        "status": steadiness.status.value,
        "cut_s": steadiness.cut_s,
        "seconds": steadiness.seconds,
        "halves": steady.relative_halves_difference,
        "tau_s": steadiness.tau_s,
        "excess": steady.planned_window_relative_mean_excess,
    }
