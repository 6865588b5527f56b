"""What is asked of appends beside what is asked of all load."""

from __future__ import annotations

from typing import Final

import numpy as np

from iolab.analysis.check import CheckAnswer, check, invalid_answer, valid_answer
from iolab.analysis.kinds import CHECKS, LoadAnalysis
from iolab.analysis.view import RunView
from iolab.core.histogram import MIDDLE_NS
from iolab.core.metric import Metric
from iolab.core.workload import Direction
from iolab.units import format_ns
from tests.toy.kind import VARIATION

DURABLE_LEAST_NS: Final = 5000.0
"""The way to a device and back takes longer; memory alone is as fast."""


@check("append-not-durable", "Appends that no device can have kept")
def not_durable(view: RunView) -> CheckAnswer:
    """Whether an append took as long as a device needs for it."""
    hosts = list(range(len(view.hosts)))
    median_ns = view.load.histogram(hosts, [Direction.WRITE]).percentile_ns(50.0) or 0.0
    message = f"Half of all appends took {format_ns(median_ns)} at most"
    if median_ns < DURABLE_LEAST_NS:
        return invalid_answer(
            f"{message}: no device is so fast, nothing was kept.", median_ns=median_ns
        )
    return valid_answer(f"{message}, as a device may need.", median_ns=median_ns)


class AppendAnalysis(LoadAnalysis[RunView]):
    """Appends are writes."""

    directions = (Direction.WRITE,)
    checks = (*CHECKS, not_durable)

    def fleet_metrics(self, view: RunView) -> dict[str, Metric]:
        """With the variation of the latency."""
        return super().fleet_metrics(view) | _variation(view, list(range(len(view.hosts))))

    def host_metrics(self, view: RunView, index: int) -> dict[str, Metric]:
        """With the variation of the latency."""
        return super().host_metrics(view, index) | _variation(view, [index])


def _variation(view: RunView, hosts: list[int]) -> dict[str, Metric]:
    counts = view.load.histogram(hosts, [Direction.WRITE]).counts
    if not counts.any():
        return {VARIATION.key: Metric(None, VARIATION.unit)}
    mean = np.average(MIDDLE_NS, weights=counts)
    variance = np.average((MIDDLE_NS - mean) ** 2, weights=counts)
    return {VARIATION.key: Metric(float(np.sqrt(variance) / mean), VARIATION.unit)}
