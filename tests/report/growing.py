"""Results of one load made by more and more hosts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from msgspec.structs import replace

from iolab.analysis.points import PointSummary, summarise_points
from iolab.analysis.scaling import host_scalings
from iolab.core.metric import RunResult, VerdictLevel
from iolab.core.study import Study
from iolab.core.workload import Axis
from iolab.report.charts.palette import SERIES
from iolab.report.charts.scaling import ScalingLine
from tests.report.charts.outcomes import WORKLOAD, result
from tests.report.studies import one_configuration
from tests.report.synthetic import study_of

HOSTS = tuple(f"client-{number}" for number in range(1, 9))
GROWN = replace(WORKLOAD, sweep=(Axis("hosts", (1, 2, 4, 8)),))
STUDY: Study = study_of("s", "S", "", one_configuration(*HOSTS), (GROWN,))


def runs(
    rates: Mapping[int, Sequence[float]],
    levels: Mapping[int, VerdictLevel] | None = None,
    depth: int | None = None,
) -> list[RunResult]:
    """For each number of hosts a run for each of its rates; with a depth this is an axis too."""
    more = () if depth is None else (("iodepth", depth),)
    return [
        replace(
            result(1, rate, (levels or {}).get(hosts, VerdictLevel.VALID), repeat=repeat),
            axis_values=(*more, ("hosts", hosts)),
            digest=f"{hosts:08x}{depth or 0:08x}",
        )
        for hosts, found in rates.items()
        for repeat, rate in enumerate(found, 1)
    ]


def points(found: Sequence[RunResult]) -> tuple[PointSummary, ...]:
    """Their published values."""
    return summarise_points(found, STUDY)


RATES = {
    1: (10_000.0, 10_100.0, 9_900.0),
    2: (19_000.0, 19_300.0, 18_800.0),
    4: (33_000.0, 32_700.0, 33_500.0),
    8: (40_000.0, 41_000.0, 39_500.0),
}
"""What saturates: 8 hosts give 4 times what one does."""


def drawn(rates: Mapping[int, Sequence[float]]) -> list[ScalingLine]:
    """The curve of such rates as its chart takes it."""
    found = host_scalings(STUDY, points(runs(rates)))
    return [ScalingLine("Default", SERIES[0], (), one) for one in found]
