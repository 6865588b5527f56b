"""How workloads grow with the hosts that make their load, where a study varies these."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from iolab.analysis.curves import Scaling, scalings
from iolab.analysis.points import PointSummary
from iolab.report.brief import Brief
from iolab.report.charts.choose import DASHES, Look
from iolab.report.charts.scaling import Drawn, efficiency_figure, growth_figure
from iolab.report.numbers import axis_label
from iolab.report.page_parts import ChartGroup, Section
from iolab.report.series import DetailKey

_LEDE: Final = (
    "The same load, made by more of the hosts of a configuration. Where the rate stays below the "
    "ideal, hosts share something that is used up: the target, or what lies between."
)


def scaling(
    brief: Brief,
    points: Sequence[PointSummary],
    looks: Mapping[str, Look],
    _anchors: Mapping[DetailKey, str],
) -> Section | None:
    """None where no workload was made by several numbers of hosts."""
    found = scalings(brief.study, points)
    if not found:
        return None
    groups = []
    for workload in brief.study.workloads:
        own = [one for one in found if one.workload is workload]
        if own:
            drawn = _drawn(own, looks)
            figures = (
                growth_figure(workload.title, drawn),
                efficiency_figure(workload.title, drawn),
            )
            groups.append(ChartGroup(workload.title, figures))
    return Section("scaling", "Scaling with hosts", _LEDE, tuple(groups))


def _drawn(found: Sequence[Scaling], looks: Mapping[str, Look]) -> list[Drawn]:
    """Each curve in its configuration's colour; other axes tell them apart by name and dash."""
    fixed = list(dict.fromkeys(one.fixed for one in found))
    several = len({one.configuration for one in found}) > 1
    drawn = []
    for one in found:
        look = looks[one.configuration]
        dash = DASHES[fixed.index(one.fixed) % len(DASHES)]
        parts = [look.name] if several or not one.fixed else []
        parts += [axis_label(one.fixed)] if one.fixed else []
        drawn.append(Drawn(" ".join(parts), look.token, dash, one))
    return drawn
