"""Curves, peaks and highest loads, in words and as JSON. Predicted loads are always told apart."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any, Final

from iolab.analysis.curves import Curve, Findings, LoadFound, PeakFound
from iolab.core.metric import Metric
from iolab.core.metric_spec import spec_of
from iolab.core.run import Point
from iolab.report.numbers import axis_label, show, show_value
from iolab.stats.curve import CurvePoint, Place
from iolab.study.file import limit_name
from iolab.study.schedule import Search
from iolab.units import format_ns

IOPS_UNIT: Final = "1/s"


def finding_lines(found: Findings) -> Iterator[str]:
    """A sentence or two for each curve, peak and highest load."""
    for curve in found.curves:
        yield _curve_text(curve)
    for peak in found.peaks:
        yield _peak_text(peak)
    for load in found.loads:
        yield _load_text(load)


def findings_document(found: Findings) -> dict[str, Any]:
    """The findings as JSON has them."""
    return {
        "curves": [_curve_document(curve) for curve in found.curves],
        "peaks": [_peak_document(peak) for peak in found.peaks],
        "max_loads": [_load_document(load) for load in found.loads],
    }


def _name(search: Search) -> str:
    fixed = axis_label(search.fixed)
    return f"{search.workload.id}{f' {fixed}' if fixed else ''} ({search.configuration})"


def _curve_text(curve: Curve) -> str:
    measured = sum(point.measured for point in curve.points)
    guessed = len(curve.points) - measured
    parts = [f"{_name(curve.search)}: {measured} values of {curve.axis} measured"]
    if guessed:
        widest = max(_half(point) for point in curve.points if not point.measured)
        parts.append(f"{guessed} predicted to within {100 * widest:.1f} %")
    place = curve.saturation
    parts.append(
        f"saturated from {place_words(place)} on" if place else "not seen to saturate on this axis"
    )
    parts.append(f"knee at {place_words(curve.knee)}")
    if curve.bound_at is not None:
        parts.append(f"bounds by Little's law meet at {curve.axis} {curve.bound_at:.3g}")
    if curve.law is not None:
        parts.append(f"USL: contention {curve.law.sigma:.3g}, coherency {curve.law.kappa:.2g}")
    return f"{'; '.join(parts)}."


def place_words(place: Place) -> str:
    """A load, and between which loads it may lie."""
    if place.low == place.high:
        return str(place.load)
    return f"{place.load} ({place.low} to {place.high})"


def _half(point: CurvePoint) -> float:
    return math.log(point.high / point.low) / 2


def _peak_text(found: PeakFound) -> str:
    peak = found.peak
    value = Metric(peak.rate, spec_of(found.metric).unit, peak.low, peak.high)
    best = _point(found, peak.point)
    text = f"{_name(found.search)}: best is {axis_label(best.axis)} with {_interval(value)}"
    text += f", estimated from {peak.runs} runs of {len(found.search.points)} points"
    if len(peak.alike) > 1:
        cheapest = axis_label(_point(found, peak.alike[0]).axis)
        text += f"; {len(peak.alike)} points are within 1 % of it, the cheapest is {cheapest}"
    if peak.at_edge:
        text += "; it lies at the end of an axis, so more may lie beyond"
    return f"{text}."


def _point(found: PeakFound, place: tuple[int, ...]) -> Point:
    return found.search.points[place]


def _load_text(load: LoadFound) -> str:
    found = load.found
    limit = f"{limit_name(load.limit.metric)} <= {format_ns(load.limit.latency_ns)}"
    start = f"{_name(load.search)}: "
    if not found.bounded:
        beyond = found.load >= load.saturation / 2
        text = (
            f"{limit} holds up to the maximum without a rate"
            if beyond
            else f"{limit} is exceeded even at the lowest rate tried"
        )
    else:
        value = Metric(found.load, IOPS_UNIT, found.low, found.high)
        text = f"{limit} up to {_interval(value)}, by {found.runs} runs"
        text += "" if found.settled else " (the search ended before it was settled)"
    if found.verified is not None:
        text += f"; verified at {show(Metric(found.verified, IOPS_UNIT))}"
    return f"{start}{text}; without a rate {show(Metric(load.saturation, IOPS_UNIT))}."


def _interval(metric: Metric) -> str:
    """The value and its interval; how many runs are behind it is told beside it."""
    if metric.low is None or metric.high is None:
        return show(metric)
    ends = (show_value(end, metric.unit) for end in (metric.low, metric.high))
    return f"{show(metric)} [{', '.join(ends)}]"


def _head(search: Search) -> dict[str, Any]:
    return {
        "configuration": search.configuration,
        "workload": search.workload.id,
        "axis": dict(search.fixed),
    }


def _curve_document(curve: Curve) -> dict[str, Any]:
    law = curve.law
    return {
        **_head(curve.search),
        "along": curve.axis,
        "metric": curve.metric,
        "points": [
            {
                "load": point.load,
                "value": point.rate,
                "low": point.low,
                "high": point.high,
                "measured": point.measured,
            }
            for point in curve.points
        ],
        "saturation": _place_document(curve.saturation),
        "knee": _place_document(curve.knee),
        "bound_at": curve.bound_at,
        "usl": None
        if law is None
        else {"gamma": law.gamma, "sigma": law.sigma, "kappa": law.kappa, "worst": law.worst},
    }


def _place_document(place: Place | None) -> dict[str, int] | None:
    return None if place is None else {"load": place.load, "low": place.low, "high": place.high}


def _peak_document(found: PeakFound) -> dict[str, Any]:
    peak = found.peak
    return {
        **_head(found.search),
        "metric": found.metric,
        "best": dict(_point(found, peak.point).axis),
        "value": peak.rate,
        "low": peak.low,
        "high": peak.high,
        "alike": [dict(_point(found, place).axis) for place in peak.alike],
        "at_edge": peak.at_edge,
        "runs": peak.runs,
    }


def _load_document(load: LoadFound) -> dict[str, Any]:
    found = load.found
    return {
        **_head(load.search),
        "metric": load.limit.metric,
        "limit_ns": load.limit.latency_ns,
        "iops": found.load,
        "low": found.low,
        "high": found.high,
        "verified_iops": found.verified,
        "saturation_iops": load.saturation,
        "bounded": found.bounded,
        "settled": found.settled,
        "runs": found.runs,
    }
