"""I/O on files in briefs and exports: its best points, charts, curves, runs and hosts."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar, Final

from iolab.analysis.curves import findings
from iolab.analysis.points import FIGURES, PointSummary, summarise
from iolab.analysis.steady import measured_window
from iolab.analysis.sums import DIRECTIONS, measure
from iolab.core.metric import Result
from iolab.core.run import RunRecord
from iolab.core.samples import Direction
from iolab.core.study import Study
from iolab.core.workload import Indicator, Job, Workload
from iolab.report.best import Headline, headlines_of, interval_of
from iolab.report.brief import Brief
from iolab.report.charts.chart import Figure
from iolab.report.charts.choose import (
    Look,
    axis_figures,
    run_distribution,
    workload_distribution,
)
from iolab.report.kinds import Anchors, Charts, HostsReport, Latencies, LoadReport, Looks
from iolab.report.numbers import NOTHING, show
from iolab.report.page_parts import Card, ChartGroup, Entry
from iolab.report.palette import Token
from iolab.report.points import point_table
from iolab.report.results import POINTS_NOTE, markdown_lines, markdown_row
from iolab.report.run_series import curve_of, load_panels
from iolab.report.series import DetailKey, Grid, Panel, RunDetail
from iolab.report.table import Table, axis_names
from iolab.report.tables import SHOWN_METRICS, hosts_table, results_table, workloads_table

_NO_FIGURE: Final = "not measured"


@dataclass(frozen=True, slots=True, eq=False)
class FileReport(LoadReport):
    """I/O on files, of which `hosts` tell what is swept over guests."""

    hosts: HostsReport

    has_one_figure: ClassVar[bool] = True
    lays_out_files: ClassVar[bool] = True

    def owns(self, result: Result) -> bool:
        """By its rate."""
        return "iops" in result.metrics

    def makes(self, workload: Workload) -> bool:
        """By its job."""
        return isinstance(workload.job, Job)

    def is_measured(self, result: Result) -> bool:
        """Whether it has a rate."""
        rate = result.metrics.get("iops")
        return rate is not None and rate.value is not None

    def figure(self, result: Result, workload: Workload) -> str:
        """The figure that its workload is run for."""
        figure = show(result.metrics.get(FIGURES[workload.indicator]))
        return f"{figure} mean" if workload.indicator is Indicator.LATENCY else figure

    def hosts_table(self, result: Result) -> Table:
        """Rates and latencies."""
        return hosts_table(result)

    def host_key(self, result: Result, workload: Workload) -> str:  # noqa: ARG002
        """The rate that its workload is run for."""
        return "bw_bytes_per_s" if workload.indicator is Indicator.BANDWIDTH else "iops"

    def latencies(self, record: RunRecord, name: str) -> Latencies:
        """Reads and writes apart."""
        load = measure(record, measured_window(record))
        hosts = list(range(len(record.hosts)))
        every = [int(direction) for direction in DIRECTIONS]
        busy = [way for way in every if load.bins[:, way].sum()]
        return Latencies(
            whole=curve_of(name, load.histogram(hosts, every)),
            curves=tuple(
                curve_of(Direction(way).name.lower(), load.histogram(hosts, [way])) for way in busy
            ),
            window=load.cut.common,
        )

    def panels(self, record: RunRecord, grid: Grid) -> list[Panel]:
        """See `load_panels`."""
        return load_panels(record, grid)

    def distribution(self, subject: str, detail: RunDetail, token: Token) -> Figure | None:
        """See `run_distribution`."""
        return run_distribution(subject, detail, token)

    def headlines(self, study: Study, points: Sequence[PointSummary]) -> tuple[Headline, ...]:
        """Every workload; of guests each mix is one by itself."""
        every = headlines_of(study, points)
        plain = (one for one in every if not self.hosts.are_swept(one.workload))
        return (*plain, *self.hosts.headlines(study, points))

    def cards(self, brief: Brief, looks: Looks, anchors: Anchors) -> tuple[Card, ...]:
        """A card for each workload."""
        several = len(brief.study.configurations) > 1
        found = self.headlines(brief.study, brief.points)
        return _cards(found, looks, anchors, several=several)

    def charts(self, brief: Brief, looks: Looks, anchors: Anchors) -> Charts:  # noqa: ARG002
        """Throughput and latency against the axis, and latency by percentile."""
        plain = (
            one
            for one in brief.study.workloads
            if self.makes(one) and not self.hosts.are_swept(one)
        )
        own = {one.id: list(_charts(brief, one, looks)) for one in plain}
        return {**own, **self.hosts.charts(brief, looks)}

    def result_table(self, study: Study, results: Sequence[Result], anchors: Anchors) -> Table:
        """See `results_table`."""
        return results_table(study, results, anchors)

    def job_tables(self, brief: Brief, study: Study) -> tuple[Table, ...]:  # noqa: ARG002
        """The jobs."""
        return (workloads_table(study),)

    def markdown(self, study: Study, results: Sequence[Result]) -> str:
        """The points where they have repeats, then the runs."""
        points, text = summarise(results, study), ""
        if len(points) < len(results):
            text = f"\n{markdown_lines(point_table(points))}\n\n{POINTS_NOTE}\n"
        return f"{text}\n{_runs_text(results)}"


def _charts(
    brief: Brief,
    workload: Workload,
    looks: Mapping[str, Look],
) -> Iterator[ChartGroup]:
    """Throughput and latency against the axis, and latency by percentile."""
    own = [point for point in brief.points if point.key.workload == workload.id]
    curves = findings(brief.study, brief.results).curves
    best = [one for one in headlines_of(brief.study, own) if one.workload is workload]
    figures = axis_figures(workload, own, looks, curves)
    results = [result for result in brief.results if result.workload == workload.id]
    by_percentile = workload_distribution(workload, best, results, brief.details, looks)
    figures += [by_percentile] if by_percentile is not None else []
    if figures:
        yield ChartGroup(workload.title, tuple(figures))


def _cards(
    found: Sequence[Headline],
    looks: Mapping[str, Look],
    anchors: Mapping[DetailKey, str],
    *,
    several: bool,
) -> tuple[Card, ...]:
    grouped: dict[str, list[Headline]] = {}
    for headline in found:
        grouped.setdefault(headline.workload.id, []).append(headline)
    return tuple(
        Card(
            group[0].workload.title,
            tuple(_entry(headline, looks, anchors, several=several) for headline in group),
        )
        for group in grouped.values()
    )


def _entry(
    headline: Headline,
    looks: Mapping[str, Look],
    anchors: Mapping[DetailKey, str],
    *,
    several: bool,
) -> Entry:
    token = looks[headline.configuration.id].token
    name = headline.configuration.title if several else ""
    best = headline.best
    if best is None:
        return Entry(name, token.css, _NO_FIGURE, "", None, None, ())
    number, _, unit = show(best.figure).rpartition(" ")
    rows = [("95 % interval", interval_of(best.figure))]
    if best.axis:
        of = f" (best of {headline.compared})" if headline.compared > 1 else ""
        rows.append((f"at{of}", best.axis))
    if best.host_count > 1 and headline.workload.indicator is not Indicator.LATENCY:
        word = "guest" if best.shown.nodes else "host"
        rows.append((f"mean per {word} ({best.host_count})", show(best.per_host)))
    if headline.workload.indicator is not Indicator.LATENCY:
        rows.append(("latency mean", show(best.lat_mean)))
    else:
        unit = f"{unit} mean"
    rows.append(("latency p99.5", show(best.lat_tail)))
    anchor = anchors.get((best.shown.digest, best.shown.repeat))
    return Entry(name, token.css, number, unit, best.level, anchor, tuple(rows))


def _runs_text(results: Sequence[Result]) -> str:
    axes = axis_names(results)
    heads = ["Configuration", "Workload", *axes, "Repeat"]
    heads += [heading for _, heading in SHOWN_METRICS] + ["Verdict"]
    rows = [
        [
            result.configuration,
            result.workload,
            *(str(dict(result.axis).get(axis, NOTHING)) for axis in axes),
            str(result.repeat),
            *(show(result.metrics.get(key), bare_rate=True) for key, _ in SHOWN_METRICS),
            result.verdict.level.value,
        ]
        for result in results
    ]
    rule = ["---"] * (3 + len(axes)) + ["---:"] * len(SHOWN_METRICS) + ["---"]
    lines = [markdown_row(heads), f"| {' | '.join(rule)} |", *map(markdown_row, rows)]
    return "\n".join(lines) + "\n"
