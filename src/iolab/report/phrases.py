"""What sentences on findings are made of: names of configurations, places, shares, lists."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import field, replace
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final

from iolab.core.configuration import limit_name
from iolab.core.metric import CheckResult, Level, Metric, Result
from iolab.core.metric_spec import OPS_PER_S, is_known, spec_of
from iolab.core.run import Point
from iolab.core.study import Study
from iolab.dataclass import dataclass
from iolab.report.numbers import (
    axis_label,
    axis_word,
    count,
    fields_document,
    point_text,
    show,
    show_value,
)
from iolab.study.schedule import Search
from iolab.units import format_ns

if TYPE_CHECKING:
    from iolab.analysis.findings import LoadCurve, LoadFindings, LoadFound, PeakFound
    from iolab.stats.curve import CurvePoint, LoadEstimate

NAMES_SHOWN: Final = 3
"""Runs named with an objection; more are counted: the table of runs has them."""


@dataclass(frozen=True, slots=True)
class Objection:
    """One check's objection at one level, and the runs that it was made to.

    `says` is the sentence of the first run (`differs` if others have other numbers in it), and
    `also` are other checks that say the same of the same runs. Of several configurations `names`
    are those of all by id, and runs are named with theirs.
    """

    code: str
    level: Level
    says: str
    runs: tuple[Result, ...]
    total: int
    names: Mapping[str, str] = field(default_factory=dict)
    also: tuple[str, ...] = ()
    differs: bool = False

    @property
    def codes(self) -> str:
        """The checks that say it, as a list for people."""
        return ", ".join((self.code, *self.also))

    @property
    def whose_numbers(self) -> str:
        """What is added to the runs where the sentence has other numbers for each."""
        return "; numbers of the first" if self.differs else ""

    @property
    def everywhere(self) -> bool:
        """Whether every run of the session met it."""
        return len(self.runs) == self.total


def objections(
    results: Sequence[Result], titles: Mapping[str, str] = MappingProxyType({})
) -> tuple[Objection, ...]:
    """The objections over all runs: invalid before indicative, then the most frequent first.

    `titles` name configurations by id; where they do not, the id does.
    """
    grouped: dict[tuple[Level, str], list[tuple[Result, CheckResult]]] = {}
    for result in results:
        for check in result.verdict.objections:
            if check.level is not None:
                grouped.setdefault((check.level, check.code), []).append((result, check))
    owners = dict.fromkeys(result.configuration for result in results)
    names = {owner: titles.get(owner, owner) for owner in owners} if len(owners) > 1 else {}
    every = [
        Objection(
            code=code,
            level=level,
            says=hits[0][1].says,
            runs=tuple(result for result, _ in hits),
            total=len(results),
            names=names,
            differs=len({check.says for _, check in hits}) > 1,
        )
        for (level, code), hits in grouped.items()
    ]
    ordered = sorted(
        every, key=lambda objection: (-objection.level.rank, -len(objection.runs), objection.code)
    )
    same: dict[tuple[Level, str, tuple[tuple[str, int], ...]], Objection] = {}
    for objection in ordered:
        key = (objection.level, objection.says, tuple(run.key for run in objection.runs))
        first = same.get(key)
        same[key] = (
            objection if first is None else replace(first, also=(*first.also, objection.code))
        )
    return tuple(same.values())


def where(objection: Objection) -> str:
    """To which runs an objection was made, in words: their names where they are few."""
    return f"{_which_runs(objection)}{objection.whose_numbers}"


def _which_runs(objection: Objection) -> str:
    if objection.everywhere:
        return f"all {count(objection.total, 'run')}" if objection.total > 1 else "the only run"
    runs = f"{len(objection.runs)} of {count(objection.total, 'run')}"
    points: dict[tuple[str, str], list[Result]] = {}
    for run in objection.runs:
        points.setdefault((run.configuration, run.digest), []).append(run)
    if len(points) > NAMES_SHOWN:
        return runs
    return f"{runs}: {'; '.join(_point_words(own, objection.names) for own in points.values())}"


def _point_words(runs: Sequence[Result], names: Mapping[str, str]) -> str:
    """The only run of a point, or the point with how many of its repeats."""
    if len(runs) == 1:
        return whose_run(runs[0], names)
    return f"{whose_run(replace(runs[0], repeat=1), names)} ({count(len(runs), 'repeat')})"


def whose_run(result: Result, names: Mapping[str, str]) -> str:
    """A run's name, with its configuration where `names` has any: these are of several, by id."""
    name = names.get(result.configuration)
    return f"{run_name(result)} of {name}" if name else run_name(result)


def failure_words(result: Result, names: Mapping[str, str]) -> str:
    """That a run did not end well, with its reason where there is one."""
    return f"{whose_run(result, names)} failed or was interrupted. {result.failure or ''}".strip()


def names_among_several(study: Study) -> dict[str, str]:
    """The titles of configurations by id, empty where there is one and no need to tell."""
    return study.titles if len(study.configurations) > 1 else {}


def run_name(result: Result) -> str:
    """A run in text: `rand-read-4k, iodepth 8, repeat 2`, with the repeat from the second on."""
    return run_text(result.workload, result.axis, result.repeat)


def run_text(workload: str, axis: tuple[tuple[str, int | str], ...], repeat: int) -> str:
    """The same of a run that has no result yet."""
    name = point_text(workload, axis)
    return f"{name}, repeat {repeat}" if repeat > 1 else name


IOPS_UNIT: Final = "1/s"


def finding_lines(findings: LoadFindings) -> Iterator[str]:
    """A sentence or two for each curve, peak and highest load."""
    for curve in findings.curves:
        yield _curve_text(curve)
    for peak in findings.peaks:
        yield _peak_text(peak)
    for load in findings.loads:
        yield _load_text(load)


def findings_document(findings: LoadFindings) -> dict[str, Any]:
    """The findings as JSON has them."""
    return {
        "curves": [_curve_document(curve) for curve in findings.curves],
        "peaks": [_peak_document(peak) for peak in findings.peaks],
        "max_loads": [_load_document(load) for load in findings.loads],
    }


def _name(search: Search) -> str:
    fixed = axis_label(search.fixed)
    return f"{search.workload.id}{f' {fixed}' if fixed else ''} ({search.configuration})"


def _curve_text(curve: LoadCurve) -> str:
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


def place_words(place: LoadEstimate) -> str:
    """A load, and between which loads it may lie."""
    if place.low == place.high:
        return str(place.load)
    return f"{place.load} ({place.low} to {place.high})"


def _half(point: CurvePoint) -> float:
    return math.log(point.high / point.low) / 2


def _peak_text(peak_found: PeakFound) -> str:
    peak = peak_found.peak
    value = Metric(peak.rate, spec_of(peak_found.metric).unit, peak.low, peak.high)
    best = _point(peak_found, peak.point)
    text = f"{_name(peak_found.search)}: best is {axis_label(best.axis)} with {_interval(value)}"
    text += f", estimated from {peak.runs} runs of {len(peak_found.search.points)} points"
    if len(peak.alike) > 1:
        cheapest = axis_label(_point(peak_found, peak.alike[0]).axis)
        text += f"; {len(peak.alike)} points are within 1 % of it, the cheapest is {cheapest}"
    if peak.at_edge:
        text += "; it lies at the end of an axis, so more may lie beyond"
    return f"{text}."


def _point(peak_found: PeakFound, place: tuple[int, ...]) -> Point:
    return peak_found.search.points[place]


def _load_text(load: LoadFound) -> str:
    highest = load.highest
    limit = f"{limit_name(load.limit.metric)} <= {format_ns(load.limit.latency_ns)}"
    start = f"{_name(load.search)}: "
    if not highest.bounded:
        beyond = highest.load >= load.saturation / 2
        text = (
            f"{limit} holds up to the maximum without a rate"
            if beyond
            else f"{limit} is exceeded even at the lowest rate tried"
        )
    else:
        value = Metric(highest.load, IOPS_UNIT, highest.low, highest.high)
        text = f"{limit} up to {_interval(value)}, by {highest.runs} runs"
        text += "" if highest.settled else " (the search ended before it was settled)"
    if highest.verified is not None:
        text += f"; verified at {show(Metric(highest.verified, IOPS_UNIT))}"
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


def _curve_document(curve: LoadCurve) -> dict[str, Any]:
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
        "saturation": curve.saturation and fields_document(curve.saturation),
        "knee": fields_document(curve.knee),
        "bound_at": curve.bound_at,
        "usl": law and {name: getattr(law, name) for name in ("gamma", "sigma", "kappa", "worst")},
    }


def _peak_document(peak_found: PeakFound) -> dict[str, Any]:
    peak = peak_found.peak
    return {
        **_head(peak_found.search),
        "metric": peak_found.metric,
        "best": dict(_point(peak_found, peak.point).axis),
        "value": peak.rate,
        "low": peak.low,
        "high": peak.high,
        "alike": [dict(_point(peak_found, place).axis) for place in peak.alike],
        "at_edge": peak.at_edge,
        "runs": peak.runs,
    }


def _load_document(load: LoadFound) -> dict[str, Any]:
    highest = load.highest
    return {
        **_head(load.search),
        "metric": load.limit.metric,
        "limit_ns": load.limit.latency_ns,
        "iops": highest.load,
        "low": highest.low,
        "high": highest.high,
        "verified_iops": highest.verified,
        "saturation_iops": load.saturation,
        "bounded": highest.bounded,
        "settled": highest.settled,
        "runs": highest.runs,
    }


LEVELS: Final = {
    Level.VALID: "",
    Level.INDICATIVE: " This is indicative only.",
    Level.INVALID: " No run of it is valid.",
}
"""What a sentence ends with, by the worst verdict behind it."""


@dataclass(frozen=True, slots=True)
class Names:
    """Titles of configurations by id, and whether there are several, so that they must be named."""

    titles: Mapping[str, str]

    @property
    def several(self) -> bool:
        """Whether a sentence must say which configuration it speaks of."""
        return len(self.titles) > 1

    def of(self, configuration: str) -> str:
        """A configuration as sentences call it."""
        return self.titles.get(configuration, configuration)


def place(axis: Sequence[tuple[str, int | str]]) -> str:
    """A place on the axes, each named as in a sentence: `threads 4, block_size 16k`."""
    return axis_label(tuple((axis_word(name), value) for name, value in axis))


def percent(share: float) -> str:
    """A share with two digits, and no more than it has."""
    percent = 100 * share
    if 99 < percent < 100:
        return f"{100 - float(f'{100 - percent:.2g}'):.10g} %"  # all but so much, never all
    return f"{percent:.0f} %" if abs(percent) >= 9.95 else f"{percent:.2g} %"


def part(share: float) -> str:
    """A part of a whole that is there in full at 100 %, as of time or of a link's speed."""
    percent = min(100 * share, 100.0)
    return f"{percent:.0f} %" if percent >= 9.95 else f"{percent:.2g} %"


def terabytes(size: float) -> str:
    """A capacity with three digits, and no fewer than it has before the point."""
    return f"{size:,.0f} TB" if size >= 999.5 else f"{size:.3g} TB"


def times(factor: float) -> str:
    """How many times, with two digits, and no fewer than it has before the point."""
    return f"{factor:,.0f} times" if factor >= 9.95 else f"{factor:.2g} times"


def joined(parts: Sequence[str]) -> str:
    """Parts of a sentence: `one, two and three`."""
    return parts[0] if len(parts) == 1 else f"{', '.join(parts[:-1])} and {parts[-1]}"


def step_words(axis: str, load: int, further: int, gain: float) -> str:
    """What a step of load does to the rate: `from iodepth 8 to 16 the rate rises by 3 %`."""
    way = "rises" if gain >= 1 else "falls"
    return f"from {axis_word(axis)} {load} to {further} the rate {way} by {percent(abs(gain - 1))}"


def metric_word(key: str) -> str:
    """A metric as tables name it: `read p99` of an operation, else as in a sentence."""
    if key == OPS_PER_S:
        return "ops/s"
    spec = spec_of(key)
    if not spec.operation or not spec.statistic:
        return metric_words(key)
    return f"{spec.operation.replace('_', '-')} {spec.statistic.replace('_', '.')}"


def metric_words(key: str) -> str:
    """A metric in a sentence: `lat_ns_p99_9` as `p99.9 latency`; an undeclared one by its key."""
    return spec_of(key).label if is_known(key) else key
