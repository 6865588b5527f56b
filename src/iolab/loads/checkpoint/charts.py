"""The chart of a checkpoint: when each rank ended, and which one was the last."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from iolab.core.run import HostRun
from iolab.loads.checkpoint.metrics import HostRankRun, PhaseRankTimes
from iolab.loads.checkpoint.workload import PhaseName, phase_run_of_host
from iolab.report.charts.chart import (
    BOTTOM,
    HEAD,
    Chart,
    LineEndLabel,
    LineSegments,
    Mark,
    Markers,
    MarkerStyle,
    MarkTooltip,
    Plot,
    TextMark,
)
from iolab.report.charts.palette import INK, MUTED, ColorToken
from iolab.report.charts.scale import integer_axis, linear_scale
from iolab.report.numbers import value_text
from iolab.report.table import Cell, Table, row_of_cells, text_and_number_columns
from iolab.text import capitalised
from iolab.units import format_bytes

HEIGHT: Final = 110
LABELS: Final = 8
"""Ranks named on the axis at most."""


def phase_rank_times_of_hosts(hosts: Sequence[HostRun]) -> tuple[PhaseRankTimes, ...]:
    """What the ranks of a run did, phase by phase."""
    phases = []
    for phase in PhaseName:
        ranks = tuple(
            HostRankRun(place, rank)
            for place, host in enumerate(hosts)
            if (run := phase_run_of_host(host, phase)) is not None
            for rank in run.ranks
        )
        phases += [PhaseRankTimes(phase, ranks)] if ranks else []
    return tuple(phases)


def rank_times_chart(subject: str, hosts: Sequence[HostRun], color: ColorToken) -> Chart | None:
    """When each rank ended its save, and its restore; None where none told."""
    phases = phase_rank_times_of_hosts(hosts)
    if not phases:
        return None
    plots = tuple(
        _rank_end_times_plot(times, hosts, color, place) for place, times in enumerate(phases)
    )
    return Chart(
        subject=subject,
        title="When each rank ended",
        finding=" ".join(_slowest_rank_sentence(times, hosts) for times in phases),
        note="From the common start to a rank's last flush, close or rename. Line: the median.",
        plots=plots,
        table=_ranks_table(phases, hosts),
        page_columns=6,
    )


def _rank_end_times_plot(
    rank_times: PhaseRankTimes, hosts: Sequence[HostRun], color: ColorToken, plot_index: int
) -> Plot:
    ranks = sorted(rank_times.ranks, key=lambda rank: rank.run.rank)
    scale = linear_scale("ns", [float(rank.run.end_ns) for rank in ranks])
    last = ranks[-1].run.rank
    step = max(-(-(last + 1) // LABELS), 1)
    places = [(float(rank.run.rank), scale.to_scale_unit(rank.run.end_ns)) for rank in ranks]
    slowest = rank_times.slowest_rank
    at = (float(slowest.run.rank), scale.to_scale_unit(slowest.run.end_ns))
    middle = scale.to_scale_unit(rank_times.median_rank_end_ns)
    is_left = slowest.run.rank <= last / 2
    marks: list[Mark] = [
        LineSegments(color=MUTED, segments=[(None, middle, None, middle)], width=1.2),
        Markers(
            color=color,
            places=places,
            marker_style=MarkerStyle.PLAIN,
            tip=MarkTooltip(texts=[f"rank {rank.run.rank}" for rank in ranks]),
        ),
        TextMark(
            color=INK,
            places=[(*at, f"rank {slowest.run.rank}, {hosts[slowest.host_index].host}")],
            align="start" if is_left else "end",
            dx=6 if is_left else -6,
            dy=-7,
            has_rim=True,
        ),
    ]
    axis = integer_axis(float(max(last, 1)), "rank", range(0, last + 1, step), low=0.0)
    ends = [LineEndLabel("median", middle, MUTED)]
    title = capitalised(rank_times.phase.value)
    return Plot(
        HEIGHT,
        marks,
        axis,
        scale,
        ends,
        title=title,
        top=HEAD + plot_index * (HEAD + HEIGHT + BOTTOM),
    )


def _slowest_rank_sentence(rank_times: PhaseRankTimes, hosts: Sequence[HostRun]) -> str:
    slowest = rank_times.slowest_rank
    return (
        f"The {rank_times.phase.value} ends with rank {slowest.run.rank} on "
        f"{hosts[slowest.host_index].host} after "
        f"{value_text(rank_times.start_to_last_rank_end_ns, 'ns')}, "
        f"{rank_times.slowest_to_median_time_ratio or 1:.2f} x the median."
    )


def _ranks_table(phases: Sequence[PhaseRankTimes], hosts: Sequence[HostRun]) -> Table:
    heads = text_and_number_columns(
        ("Phase", "Host"),
        ("Rank", "Bytes", "Began", "Ended", "Open", "Move", "Flush", "Close", "Rename"),
    )
    return Table("Ranks", heads, tuple(_rank_rows(phases, hosts)))


def _rank_rows(
    phases: Sequence[PhaseRankTimes], hosts: Sequence[HostRun]
) -> Iterator[tuple[Cell, ...]]:
    for times in phases:
        for rank in sorted(times.ranks, key=lambda rank: -rank.run.end_ns):
            run = rank.run
            spans = (
                run.begin_ns,
                run.end_ns,
                run.open_ns,
                run.transfer_ns,
                run.sync_ns,
                run.close_ns,
                run.rename_ns,
            )
            yield row_of_cells(
                times.phase.value,
                hosts[rank.host_index].host,
                str(run.rank),
                format_bytes(run.bytes),
                *(value_text(span, "ns") for span in spans),
            )
