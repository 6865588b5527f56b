"""Four fast facts: the leads, the latency of a single I/O, and what the money buys."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from typing import TYPE_CHECKING, Final

from iolab.analysis.value import SizeMeasure, capacity_quotients, without_host_subsets
from iolab.core.metric import Level
from iolab.record import Record
from iolab.report.best import BestFigure
from iolab.report.matrix import (
    WorkloadRow,
    best_figures_by_operation,
    best_of_metric,
    difference_text,
)
from iolab.report.numbers import axis_values_text, metric_text, quotient_text
from iolab.text import uncapitalised

if TYPE_CHECKING:
    from iolab.analysis.points import PointSummary
    from iolab.core.workload import Workload
    from iolab.report.brief import Brief

FACTS_SHOWN: Final = 4
LEAST_LEAD: Final = 0.01
"""A lead of less is no fact to remember."""

_LATENCY_NAMES: Final = {"lat_ns_p99": "p99 latency", "lat_ns_mean": "Mean latency"}
"""The latencies of the least load, the most telling first."""


class FastFact(Record):
    """A figure to remember: the value, what it is, and of whom it is or against what."""

    value: str
    label: str
    note: str = ""

    @property
    def text(self) -> str:
        """All of it in one line."""
        return f"{self.label}: {self.value}{f' ({self.note})' if self.note else ''}"


def fast_facts(brief: Brief, rows: Sequence[WorkloadRow]) -> tuple[FastFact, ...]:
    """The facts of a brief with these rows of its matrix, at most four."""
    titles = {name: style.label for name, style in brief.series_styles.items()}
    leads = list(islice(_lead_facts(rows, titles), 2))
    others = [*_least_load_latency_facts(brief, titles), *_capacity_facts(brief, titles)]
    bests = list(_best_facts(rows, titles))
    room = FACTS_SHOWN - len(leads) - len(others)
    return (*leads, *bests[: max(room, 0)], *others)[:FACTS_SHOWN]


def _lead_facts(rows: Sequence[WorkloadRow], titles: Mapping[str, str]) -> Iterator[FastFact]:
    """Of each unit the largest lead of a best over the next; decided ones before open ones."""
    for unit in dict.fromkeys(row.unit for row in rows):
        ahead = [
            row
            for row in rows
            if row.unit == unit
            and row.figure_count > 1
            and not row.indistinguishable
            and row.lead >= LEAST_LEAD
        ]
        if ahead:
            row = max(ahead, key=lambda one: (one.is_decided, one.lead))
            yield _lead_fact(row, titles)


def _lead_fact(row: WorkloadRow, titles: Mapping[str, str]) -> FastFact:
    best = row.best or row.cells[0]
    second = best_of_metric([cell for cell in row.cells if cell.is_sound and cell is not best])
    note = (
        f"{titles.get(best.configuration, best.configuration)} {metric_text(best.value)}, "
        f"{titles.get(second.configuration, second.configuration)} {metric_text(second.value)}"
    )
    doubt = f" ({row.open_reason})" if row.open_reason else ""
    return FastFact(difference_text(best.value, second.value), row.title, f"{note}{doubt}")


def _best_facts(rows: Sequence[WorkloadRow], titles: Mapping[str, str]) -> Iterator[FastFact]:
    """The best figure of each unit and operation."""
    bests = [row.best for row in rows if row.best is not None]
    for best in best_figures_by_operation(bests):
        yield FastFact(metric_text(best.value), best.title, _best_note(best, titles))


def _best_note(best: BestFigure, titles: Mapping[str, str]) -> str:
    who = titles.get(best.configuration, "") if len(titles) > 1 else ""
    doubt = Level.INDICATIVE.value if best.level is Level.INDICATIVE else ""
    return ", ".join(filter(None, (who, best.axis_text, doubt)))


def _least_load_latency_facts(brief: Brief, titles: Mapping[str, str]) -> Iterator[FastFact]:
    """The best latency where the load is the least, of the first workload that has one."""
    for workload in brief.study.workloads:
        points = [
            point
            for point in brief.points
            if point.key.workload == workload.id and point.trusted and _is_least_load(point, brief)
        ]
        for key, name in _LATENCY_NAMES.items():
            values = {
                point.key.configuration: point
                for point in points
                if point.metric_value(key) is not None
            }
            if values:
                yield _latency_fact(workload, name, key, list(values.values()), titles)
                return


def _latency_fact(
    workload: Workload,
    name: str,
    key: str,
    points: Sequence[PointSummary],
    titles: Mapping[str, str],
) -> FastFact:
    ranked = sorted(points, key=lambda point: point.metric_value(key) or 0.0)
    best = ranked[0]
    at = axis_values_text(best.key.axis)
    who = [
        f"{titles.get(point.key.configuration, '')} {metric_text(point.metrics[key])}"
        for point in ranked[1:2]
    ]
    owner = titles.get(best.key.configuration, "") if who else ""
    label = f"{name} at {at}" if at else name
    note = ", ".join(filter(None, (uncapitalised(workload.title), owner, *who)))
    return FastFact(metric_text(best.metrics[key]), label, note)


def _is_least_load(point: PointSummary, brief: Brief) -> bool:
    """Whether no point of its workload has less load on any axis of numbers."""
    return all(
        not isinstance(value, int)
        or value
        <= min(
            int(other)
            for one in brief.points
            if one.key.workload == point.key.workload
            for at, other in one.key.axis
            if at == name
        )
        for name, value in point.key.axis
    )


def _capacity_facts(brief: Brief, titles: Mapping[str, str]) -> Iterator[FastFact]:
    """The most usable capacity, or else raw, that an amount of money buys."""
    owners = without_host_subsets(brief.study.configurations)
    every = capacity_quotients(owners, (SizeMeasure.COST,))
    for metric, kind in (("usable_tb", "usable"), ("raw_tb", "raw")):
        own = [quotient for quotient in every if quotient.maximum.metric == metric]
        if not own:
            continue
        ranked = sorted(own, key=lambda quotient: -(quotient.value.value or 0.0))
        best, *others = ranked
        names = [
            f"{titles.get(one.maximum.configuration, '')} {quotient_text(one.value)}"
            for one in others[:1]
        ]
        owner = titles.get(best.maximum.configuration, "") if names else ""
        note = ", ".join(filter(None, (owner, *names)))
        yield FastFact(quotient_text(best.value), f"{kind} for {best.size.unit_text}", note)
        return
