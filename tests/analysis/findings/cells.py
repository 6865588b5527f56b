"""Curves of two configurations over threads, made by hand, as findings see them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import numpy as np
from msgspec.structs import replace

from iolab.analysis.findings import Finding
from iolab.analysis.pairs import compare_configurations
from iolab.analysis.ranked_findings import all_findings
from iolab.core.configuration import Capacity, ProcurementCost
from iolab.core.metric import RunResult, VerdictLevel
from iolab.core.study import Study
from tests.loads.keyvalue.studies import BASE, OTHER, STUDY, results, summarised

LATENCY: Final = "read_lat_ns_mean"
REPEATS: Final = 4


def curve(
    configuration: str,
    rates: Mapping[int, float],
    *,
    workload: str = "readrandom-4k",
    spread: float = 0.001,
    repeats: int = REPEATS,
    level: VerdictLevel = VerdictLevel.VALID,
) -> list[RunResult]:
    """A closed loop's curve: rate by threads, latency as Little's law has it, a little spread."""
    found: list[RunResult] = []
    for threads, rate in rates.items():
        random = np.random.default_rng([threads, *configuration.encode()])
        factors = random.lognormal(0, spread, repeats)
        values = [
            {"ops_per_s": rate * one, LATENCY: threads / (rate * one) * 1e9}
            for one in factors.tolist()
        ]
        found += results(configuration, values, threads, workload, level)
    return found


def found_in(*curves: list[RunResult], study: Study = STUDY) -> tuple[Finding, ...]:
    points = summarised(*curves)
    return all_findings(study, points, compare_configurations(study, points))


def sized(base: float, other: float) -> Study:
    """The study with what its two configurations cost, each with 100 TB usable and 4 nodes."""
    costs = {BASE: base, OTHER: other}
    return replace(
        STUDY,
        configurations=tuple(
            replace(
                one,
                nodes=4,
                capacity=Capacity(None, 100.0),
                cost=ProcurementCost("EUR", costs[one.id], 0.0, 0.0),
            )
            for one in STUDY.configurations
        ),
    )
