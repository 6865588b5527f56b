"""The charts of every workload over its points, of whatever load it is."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from iolab.analyse.curves import Findings, findings
from iolab.analyse.gains import Gains
from iolab.analyse.points import PointSummary
from iolab.model.metadata import MetadataJob
from iolab.model.workload import Workload
from iolab.report.brief import Brief
from iolab.report.detail import RunKey
from iolab.report.figures.choose import Look, axis_figures, workload_distribution
from iolab.report.guests.caveats import subtitle
from iolab.report.guests.charts import fleet_charts, inside_charts
from iolab.report.guests.groups import fleet_groups, of_guests
from iolab.report.headline import headlines_of
from iolab.report.key_value.charts import key_charts
from iolab.report.key_value.evidence import Hosts
from iolab.report.key_value.groups import Group
from iolab.report.key_value.measures import on_keys
from iolab.report.objections import run_name
from iolab.report.operation_charts import operation_charts
from iolab.report.page_parts import ChartGroup


def workload_charts(
    brief: Brief,
    points: Sequence[PointSummary],
    groups: Sequence[Group],
    gained: Sequence[Gains],
    looks: Mapping[str, Look],
    anchors: Mapping[RunKey, str],
) -> tuple[ChartGroup, ...]:
    """The charts of every workload that has more than one point, and of all metadata load.

    `groups` and `gained` are those of load on key-value stores. Fleets of guests end with one of
    their nodes from inside.
    """
    load = findings(brief.study, brief.results)
    charts: list[ChartGroup] = []
    for workload in brief.study.workloads:
        results = [result for result in brief.results if result.workload == workload.id]
        if isinstance(workload.job, MetadataJob):
            charts += operation_charts(brief, workload, results, looks, anchors)
        elif on_keys(workload.job):
            hosts = Hosts(brief.host_runs, brief.facts)
            own = [group for group in groups if group.workload is workload]
            made = [key_charts(one, brief.study, hosts, looks, gained) for one in own]
            charts += [one for one in made if one]
        elif of_guests(workload):
            charts += _of_guests(brief, workload, points, load, looks)
        else:
            charts += _of_io(brief, workload, points, load, looks)
    return (*charts, *_inside(brief))


def _of_io(
    brief: Brief,
    workload: Workload,
    points: Sequence[PointSummary],
    load: Findings,
    looks: Mapping[str, Look],
) -> Iterator[ChartGroup]:
    """Throughput and latency against the axis, and latency by percentile."""
    own = [point for point in points if point.key.workload == workload.id]
    best = [one for one in headlines_of(brief.study, own) if one.workload is workload]
    figures = axis_figures(workload, own, looks, load.curves)
    results = [result for result in brief.results if result.workload == workload.id]
    curves = workload_distribution(workload, best, results, brief.details, looks)
    figures += [curves] if curves is not None else []
    if figures:
        yield ChartGroup(workload.title, tuple(figures))


def _of_guests(
    brief: Brief,
    workload: Workload,
    points: Sequence[PointSummary],
    load: Findings,
    looks: Mapping[str, Look],
) -> Iterator[ChartGroup]:
    """The curves of each mix, with what is to be known of the guests before what they show."""
    caveat = subtitle(brief.fleets.values(), brief.facts)
    for group in fleet_groups(brief.study, points):
        if group.workload is workload:
            charts = fleet_charts(group, looks, load.curves, caveat)
            if charts is not None:
                yield charts


def _inside(brief: Brief) -> Iterator[ChartGroup]:
    if brief.inside is None:
        return
    name = run_name(brief.inside.result)
    charts = inside_charts(brief.inside, subtitle(brief.fleets.values(), brief.facts), name)
    if charts is not None:
        yield charts
