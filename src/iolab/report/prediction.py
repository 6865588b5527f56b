"""The section of a report on loads that were not measured: what the points measured say of them.

Nothing of it enters what was measured: it has its own chart, where every bar is hatched, and its
own table.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from iolab.analysis.bottleneck import ResourceUse, RunResources, view_of, watch
from iolab.analysis.kinds import Analyses
from iolab.analysis.points import PointSummary
from iolab.analysis.prediction import Predicted, Watch, predictions
from iolab.core.metric import Level, Metric
from iolab.errors import StoreError
from iolab.report.brief import Brief, SessionSource, record_of
from iolab.report.charts.chart import Figure
from iolab.report.charts.choose import ConfigurationStyle
from iolab.report.charts.series import DetailKey
from iolab.report.charts.value import Bar, BarGroup, lying_bars
from iolab.report.kinds import ChartGroup, ReportSection
from iolab.report.numbers import NOTHING, axis_label, axis_word, show_value
from iolab.report.table import Cell, Table, columns
from iolab.report.value import sentence

ANCHOR: Final = "predicted"

_LEDE: Final = (
    "Computed from measured points of the same workload and configuration, each curve by itself; "
    "measure before you rely on it. The interval holds nine of ten loads that were held out."
)
_NOTE: Final = "Hatched: predicted, not measured. Lines: the 90 % interval."


@dataclass(frozen=True, slots=True)
class AskedLoad:
    """A load to predict, on an axis by its name in studies; `extrapolate` allows any distance."""

    axis: str
    load: int
    extrapolate: bool

    def of(
        self, brief: Brief, points: Sequence[PointSummary], look: Watch
    ) -> tuple[Predicted, ...]:
        """What every curve over that axis says of it."""
        return predictions(
            brief.study, points, self.axis, self.load, look, extrapolate=self.extrapolate
        )


def predicted(
    asked: Sequence[AskedLoad],
    look: Watch,
    brief: Brief,
    points: Sequence[PointSummary],
    looks: Mapping[str, ConfigurationStyle],
    _anchors: Mapping[DetailKey, str],
) -> ReportSection | None:
    """None where no workload varies any of the axes."""
    groups = []
    for one in asked:
        found = one.of(brief, points, look)
        if found:
            title = f"{axis_word(one.axis)} {one.load}"
            table = _basis(title, one, found, brief, looks)
            figures = tuple(_figures(title, found, brief, looks))
            groups.append(ChartGroup(title, figures, table))
    if not groups:
        return None
    return ReportSection(ANCHOR, "Predicted, not measured", _LEDE, tuple(groups), in_appendix=False)


def watch_of(source: SessionSource, analyses: Analyses) -> Watch:
    """What the first run of a point tells of its resources; None where it is damaged."""

    def look(point: PointSummary) -> RunResources | None:
        key = (point.results[0].digest, point.results[0].repeat)
        try:
            record = record_of(source, key, source.manifest(*key), with_counters=True)
        except StoreError:
            return None
        return watch(view_of(record, source.facts, analyses))

    return look


def resource_name(use: ResourceUse) -> str:
    """A resource as the limit of a prediction: what it is, its name, and whose."""
    return " ".join(filter(None, (use.resource.value, use.name, "of", use.host)))


def caveat(one: Predicted, load: int) -> str:
    """What limits a prediction, how far it goes beyond what was measured, or why there is none."""
    told = one.prediction
    if told is None:
        return f"{one.reason}."
    said = []
    if told.limit is not None and one.limited_by is not None and told.high >= told.limit:
        said.append(
            f"at most {show_value(told.limit, one.unit)} by {resource_name(one.limited_by)}"
        )
    if load > (last := one.measured[-1].load):
        said.append(
            f"{load / last:.2g} times the largest measured load: a bend or fall there is not seen"
        )
    return "; ".join(said)


def _basis(
    title: str,
    asked: AskedLoad,
    found: Sequence[Predicted],
    brief: Brief,
    looks: Mapping[str, ConfigurationStyle],
) -> Table:
    """What each prediction is made of, and what to know of it."""
    heads = (
        *columns(("Workload", "Configuration", "Measured")),
        *columns((), ("Predicted", "90 % interval", "Runs a load")),
        *columns(("Law", "To know")),
    )
    rows = tuple(
        (
            Cell(_title(one, brief)),
            Cell(looks[one.configuration].title),
            Cell(
                f"{one.measured[0].load:g} to {one.measured[-1].load:g}"
                if one.measured
                else NOTHING
            ),
            *_rate(one),
            Cell(str(one.runs) if one.runs else NOTHING),
            Cell(one.prediction.law.value if one.prediction else NOTHING),
            Cell(caveat(one, asked.load)),
        )
        for one in found
    )
    return Table(f"What is predicted from, at {title}", heads, rows)


def _rate(one: Predicted) -> tuple[Cell, Cell]:
    told = one.prediction
    if told is None:
        return Cell(NOTHING), Cell(NOTHING)
    ends = f"[{show_value(told.low, one.unit)}, {show_value(told.high, one.unit)}]"
    return Cell(show_value(told.rate, one.unit)), Cell(ends)


def _rates(
    title: str, found: Sequence[Predicted], brief: Brief, looks: Mapping[str, ConfigurationStyle]
) -> Table:
    """The figures behind a chart's bars."""
    heads = (
        *columns(("Workload", "Configuration")),
        *columns((), ("Predicted", "90 % interval")),
    )
    rows = tuple(
        (Cell(_title(one, brief)), Cell(looks[one.configuration].title), *_rate(one))
        for one in found
    )
    return Table(f"Predicted at {title}", heads, rows)


def _title(one: Predicted, brief: Brief) -> str:
    workload = next(each for each in brief.study.workloads if each.id == one.workload)
    return ", ".join(filter(None, (workload.title, axis_label(one.fixed))))


def _figures(
    title: str,
    found: Sequence[Predicted],
    brief: Brief,
    looks: Mapping[str, ConfigurationStyle],
) -> Iterator[Figure]:
    """A chart for each unit; bars are hatched as those of points that are not valid."""
    known = [one for one in found if one.prediction is not None and one.configuration in looks]
    for unit in dict.fromkeys(one.unit for one in known):
        mine = [one for one in known if one.unit == unit]
        titles = list(dict.fromkeys(_title(one, brief) for one in mine))
        groups = [
            BarGroup(name, tuple(_bar(one, looks) for one in mine if _title(one, brief) == name))
            for name in titles
        ]
        figure = lying_bars(
            "Predicted",
            f"Predicted at {title}",
            groups,
            finding=sentence([_sentence(one, brief, looks) for one in mine]),
            table=_rates(title, mine, brief, looks),
            named=len(looks) > 1,
        )
        if figure is not None:
            yield replace(figure, note=_NOTE)


def _sentence(one: Predicted, brief: Brief, looks: Mapping[str, ConfigurationStyle]) -> str:
    told = one.prediction
    if told is None:
        return ""
    who = f" by {looks[one.configuration].title}" if len(looks) > 1 else ""
    ends = f"{show_value(told.low, one.unit)} to {show_value(told.high, one.unit)}"
    return f"{_title(one, brief)}: {show_value(told.rate, one.unit)}{who}, 90 % interval {ends}"


def _bar(one: Predicted, looks: Mapping[str, ConfigurationStyle]) -> Bar:
    look, told = looks[one.configuration], one.prediction
    value = (
        Metric(None, one.unit)
        if told is None
        else Metric(told.rate, one.unit, told.low, told.high, one.runs)
    )
    level = max(one.level, Level.INDICATIVE, key=lambda level: level.rank)
    return Bar(look.name, look.token, value, level, "predicted", look.title)
