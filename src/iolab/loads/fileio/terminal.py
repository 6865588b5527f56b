"""I/O on files on the terminal: a line a point."""

from __future__ import annotations

from collections.abc import Sequence

from rich.text import Text

from iolab.analysis.points import FIGURES, PointSummary
from iolab.core.study import Study
from iolab.report.numbers import axis_label, show
from iolab.report.terminal import (
    Grouped,
    Heading,
    PointRow,
    plain,
    point_order,
    point_rows,
    runs_of,
    title,
)


def points_screen(study: Study, points: Sequence[PointSummary], *, repeats: bool) -> Grouped:
    """A row a point, under a line for workload and configuration where it has several."""
    titles = {workload.id: workload.title for workload in study.workloads}
    keys = {one.id: FIGURES[one.indicator] for one in study.workloads if one.indicator in FIGURES}
    many = len(study.configurations) > 1
    repeated = any(len(runs_of(point)) > 1 for point in points)
    headings = [Heading("point", main=True), Heading("IOPS", number=True)]
    headings += [Heading("bandwidth", number=True, spare=True)]
    headings += [Heading("95 %", number=True)] if repeated else []
    headings += [Heading(name, number=True) for name in ("mean", "p99")]
    headings += [Heading("p99.9", number=True, spare=True)]
    grouped: dict[tuple[str, str], list[PointSummary]] = {}
    for point in points:
        grouped.setdefault((point.key.configuration, point.key.workload), []).append(point)
    groups: list[tuple[Text | None, list[list[Text | str]]]] = []
    for (configuration, workload), group in grouped.items():
        name = f"{configuration}: {titles[workload]}" if many else titles[workload]
        plain_ones = not any(point.key.axis for point in group)
        key = keys[workload]
        rows = [
            _point_row(
                row,
                name if plain_ones else f"  {axis_label(point.key.axis)}",
                key,
                repeated=repeated,
            )
            for point in sorted(group, key=point_order)
            for row in point_rows(point, repeats=repeats)
        ]
        groups.append((None if plain_ones else title(name), rows))
    return Grouped([*headings, Heading("verdict", main=True)], groups)


def _point_row(row: PointRow, name: str, key: str, *, repeated: bool) -> list[Text | str]:
    """The row's cells; the figure by `key`, which its workload is run for, stands out."""
    metrics = row.metrics

    def cell(metric: str, *, bare: bool = False) -> Text:
        text = show(metrics.get(metric), bare_rate=bare)
        return _figure(text, main=metric == key and not row.style)

    return [
        plain(f"{name}{row.suffix}", row.style),
        cell("iops", bare=True),
        cell("bw_bytes_per_s"),
        *([row.spread(key)] if repeated else []),
        cell("lat_ns_mean"),
        cell("lat_ns_p99"),
        cell("lat_ns_p99_9"),
        row.verdict,
    ]


def _figure(text: str, *, main: bool) -> Text:
    """A figure; the workload's own headline stands out."""
    return Text(text, style="bold" if main else "")
