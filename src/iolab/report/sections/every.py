"""The sections that follow the charts of the workloads, in their order."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Final

from iolab.analyse.points import PointSummary
from iolab.report.brief import Brief
from iolab.report.detail import RunKey
from iolab.report.figures.choose import Look
from iolab.report.page_parts import Section
from iolab.report.sections.against import against
from iolab.report.sections.ground import ground
from iolab.report.sections.limits import limits
from iolab.report.sections.maxima import maxima
from iolab.report.sections.scaling import scaling
from iolab.report.sections.value import value

Maker = Callable[
    [Brief, Sequence[PointSummary], Mapping[str, Look], Mapping[RunKey, str]], Section | None
]
"""Makes a section of a brief, its points, its configurations' looks and its runs' anchors."""

MAKERS: Final[tuple[Maker, ...]] = (maxima, scaling, value, limits, ground, against)


def sections(
    brief: Brief,
    points: Sequence[PointSummary],
    looks: Mapping[str, Look],
    anchors: Mapping[RunKey, str],
) -> tuple[Section, ...]:
    """Those that the results have something for."""
    made = (maker(brief, points, looks, anchors) for maker in MAKERS)
    return tuple(section for section in made if section is not None)
