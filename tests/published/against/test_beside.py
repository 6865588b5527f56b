"""A session's points beside published figures: pairs, bases, and intervals of ratios."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from iolab.analysis.points import AxisValues, PointSummary, summarise_points
from iolab.core.configuration import Capacity
from iolab.core.metric import Metric, VerdictLevel
from iolab.core.study import Study
from iolab.published.audit.document import RoundingInterval, exact_range
from iolab.published.recomputed import (
    FigureDivisorKind,
    PublishedAndMeasuredFigure,
    published_and_measured_figures,
)
from iolab.published.sets import PublishedFigure, PublishedSystem
from tests.report.studies import sweep

SOURCE = sweep(seconds=20)
POINTS = summarise_points(SOURCE.results(), SOURCE.study)
CLIENTS = len(SOURCE.study.configurations[0].hosts)


def printed(
    value: RoundingInterval,
    metric: str = "iops",
    unit: str = "1/s",
    axis: AxisValues = (),
    **owner: object,
) -> PublishedFigure:
    return PublishedFigure(
        PublishedSystem("other", **owner),  # type: ignore[arg-type]
        "rand-read-4k",
        metric,
        unit,
        value,
        axis,
    )


def pair(
    figure: PublishedFigure, study: Study = SOURCE.study, points: object = POINTS
) -> PublishedAndMeasuredFigure:
    (found,) = published_and_measured_figures(study, points, [figure])  # type: ignore[arg-type]
    return found


def reads() -> list[PointSummary]:
    return [one for one in POINTS if one.key.workload == "rand-read-4k"]


def test_the_best_of_all_depths_stands_beside_a_figure_without_a_place() -> None:
    best = max(reads(), key=lambda one: one.metrics["iops"].value or 0)
    found = pair(printed(exact_range(1e6)))
    assert found.axis_values == best.key.axis_values
    whole = found.ratio_by_divisor[FigureDivisorKind.WHOLE]
    assert whole.measured.value == best.metrics["iops"].value
    assert whole.ratio.value == pytest.approx((best.metrics["iops"].value or 0) / 1e6)


def test_the_lowest_latency_and_no_share_of_it() -> None:
    best = min(reads(), key=lambda one: one.metrics["lat_ns_mean"].value or 0)
    found = pair(printed(exact_range(1e5), "lat_ns_mean", "ns", client_count=12, node_count=6))
    assert found.axis_values == best.key.axis_values
    assert set(found.ratio_by_divisor) == {FigureDivisorKind.WHOLE}


def test_a_place_that_both_have_is_compared_there() -> None:
    assert pair(printed(exact_range(1e6), axis=(("iodepth", 4),))).axis_values == (("iodepth", 4),)


def test_other_block_sizes_are_never_set_beside_each_other() -> None:
    points = [
        replace(
            one, key=replace(one.key, axis_values=(*one.key.axis_values, ("block_size", "16k")))
        )
        for one in reads()
    ]
    figure = printed(exact_range(1e6), axis=(("block_size", "4k"),))
    assert published_and_measured_figures(SOURCE.study, points, [figure]) == ()
    assert (
        len(published_and_measured_figures(SOURCE.study, reads(), [figure])) == 1
    )  # not varied: told by the workload


def test_each_basis_that_both_sides_know() -> None:
    (own,) = SOURCE.study.configurations
    study = replace(
        SOURCE.study,
        configurations=(replace(own, nodes=3, capacity=Capacity(raw_tb=30.0)),),
    )
    figure = printed(
        exact_range(1.2e6),
        client_count=12,
        node_count=6,
        raw_tb=exact_range(60.0),
        usable_tb=exact_range(40.0),
    )
    found = pair(figure, study)
    here = found.ratio_by_divisor[FigureDivisorKind.WHOLE].measured.value or 0.0
    assert set(found.ratio_by_divisor) == {
        FigureDivisorKind.WHOLE,
        FigureDivisorKind.HOST,
        FigureDivisorKind.NODE,
        FigureDivisorKind.RAW_TB,
    }
    ratios = {basis: share.ratio.value for basis, share in found.ratio_by_divisor.items()}
    assert ratios[FigureDivisorKind.HOST] == pytest.approx((here / CLIENTS) / (1.2e6 / 12))
    assert ratios[FigureDivisorKind.NODE] == pytest.approx((here / 3) / (1.2e6 / 6))
    assert ratios[FigureDivisorKind.RAW_TB] == pytest.approx((here / 30) / (1.2e6 / 60))


def test_the_interval_holds_chance_here_and_rounding_there() -> None:
    told = Metric(100.0, "1/s", 90.0, 110.0, 3)
    points = [replace(reads()[0], metrics={"iops": told})]
    ratio = (
        pair(printed(RoundingInterval(45.0, 55.0)), points=points)
        .ratio_by_divisor[FigureDivisorKind.WHOLE]
        .ratio
    )
    assert [ratio.value, ratio.low, ratio.high] == pytest.approx([2.0, 90 / 55, 110 / 45])
    alone = [replace(reads()[0], metrics={"iops": Metric(100.0, "1/s", n=1)})]
    ratio = (
        pair(printed(RoundingInterval(45.0, 55.0)), points=alone)
        .ratio_by_divisor[FigureDivisorKind.WHOLE]
        .ratio
    )
    assert (ratio.low, ratio.high) == (None, None)


def test_points_that_no_run_supports_come_last_and_keep_their_verdict() -> None:
    first, *others = reads()
    large = replace(
        first,
        is_trusted=False,
        verdict_level=VerdictLevel.INVALID,
        metrics={"iops": Metric(1e9, "1/s")},
    )
    assert (
        pair(printed(exact_range(1)), points=[large, *others]).axis_values != large.key.axis_values
    )
    alone = pair(printed(exact_range(1)), points=[large])
    assert alone.verdict_level is VerdictLevel.INVALID


def test_a_fleet_that_lost_hosts_is_not_the_configuration() -> None:
    lost = [replace(one, key=replace(one.key, excluded_hosts=("client-2",))) for one in reads()]
    assert published_and_measured_figures(SOURCE.study, lost, [printed(exact_range(1))]) == ()
