"""The phases of a run as a table, and its answer as a sentence."""

from __future__ import annotations

from typing import Final

from iolab.core.metric import CourseFigures, Metric, PhaseFigures
from iolab.report.numbers import DASH
from iolab.report.table import Table, row_of_cells, text_and_number_columns
from iolab.text import counted_noun, percent_text
from iolab.units import format_duration_s, format_ns

PHASES_TITLE: Final = "Phases"
_TEXTS: Final = ("Phase", "Ended by")
_NUMBERS: Final = (
    *("Seconds", "I/O/s", "Of the baseline", "p50", "p99", "Worst second's p99", "Longest I/O"),
    "Unavailable",
)


def phases_table(figures: CourseFigures) -> Table:
    """A row for each phase, in their order."""
    rows = tuple(
        row_of_cells(
            phase.id,
            phase.ended_by,
            f"{phase.seconds:.1f}",
            DASH if phase.iops.value is None else f"{phase.iops.value:,.0f}",
            _baseline_share_text(phase.baseline_share),
            *(
                DASH if latency.value is None else format_ns(latency.value)
                for latency in (
                    phase.lat_ns_p50,
                    phase.lat_ns_p99,
                    phase.worst_second_ns_p99,
                    phase.longest_io_ns,
                )
            ),
            f"{phase.unavailable_s} s",
        )
        for phase in figures.phases
    )
    return Table(PHASES_TITLE, text_and_number_columns(_TEXTS, _NUMBERS), rows)


def fault_impact_sentence(figures: CourseFigures) -> str:
    """What the fault cost, for how long, and whether anything that was acknowledged is lost."""
    later = figures.phases[1:]
    parts = []
    known = [phase for phase in later if phase.baseline_share.value is not None]
    if known:
        worst = min(known, key=_baseline_share_or_zero)
        lost = percent_text(max(1.0 - _baseline_share_or_zero(worst), 0.0))
        parts.append(
            f"Phase '{worst.id}' cost {lost} of the I/Os a second for "
            f"{format_duration_s(worst.seconds)}."
        )
    longest = max((p.longest_io_ns.value or 0.0 for p in later), default=0.0)
    if longest:
        parts.append(f"The longest I/O took {format_ns(longest)}.")
    for metric, what in (
        (figures.redundancy_s, "Redundancy was back"),
        (figures.baseline_s, "The rate was back"),
    ):
        if metric is not None and metric.value is not None:
            parts.append(f"{what} {metric.value:.1f} s after the fault.")
    if figures.failed_ios:
        parts.append(f"Clients saw {counted_noun(figures.failed_ios, 'failed I/O')}.")
    parts.append(_lost_writes_text(figures))
    return " ".join(parts)


def _baseline_share_or_zero(phase: PhaseFigures) -> float:
    return phase.baseline_share.value or 0.0


def _lost_writes_text(figures: CourseFigures) -> str:
    if figures.lost_blocks is None:
        return "Whether anything acknowledged was lost is not known."
    if figures.lost_blocks:
        return f"{counted_noun(figures.lost_blocks, 'block')} lack what was acknowledged."
    return "Nothing acknowledged was lost."


def _baseline_share_text(share: Metric) -> str:
    if share.value is None:
        return DASH
    text = f"{100 * share.value:.1f} %"
    if share.low is None or share.high is None:
        return text
    return f"{text} ({100 * share.low:.1f} to {100 * share.high:.1f})"
