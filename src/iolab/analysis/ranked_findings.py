"""All findings of a session, what decides first: needs, gains, crossings, bests, limits, bends."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from types import MappingProxyType

from iolab.analysis.bottleneck import Watched
from iolab.analysis.findings import (
    LOADS,
    Crossed,
    Finding,
    Gained,
    RunKey,
    Tallied,
    bends,
    bests,
    limited,
    prices,
    runs_of,
)
from iolab.analysis.gains import Gain, Gains, share_of
from iolab.analysis.needs import suited
from iolab.analysis.points import Axis, PointSummary
from iolab.core.study import Study
from iolab.stats.comparison import Verdict

Cell = tuple[str, Axis]


def gained(found: Sequence[Gains], points: Sequence[PointSummary]) -> Iterator[Gained]:
    """For each candidate and metric the largest gain of all that are supported.

    A gain is supported where the verdict over all cells is better; the largest of all would often
    be the noisiest.
    """
    runs = _runs(points)
    for one in found:
        for metric in one.metrics:
            largest = one.largest_supported(metric)
            if largest is None:
                continue
            cell = largest.gain
            yield Gained(
                baseline=one.baseline,
                candidate=one.candidate,
                workload=cell.workload,
                axis=cell.axis,
                metric=metric,
                share=cell.share,
                low=largest.low,
                high=largest.high,
                factor=cell.factor,
                cells=largest.cells,
                level=cell.level,
                runs=_both(one, cell, runs),
            )


def tallied(found: Sequence[Gains], points: Sequence[PointSummary]) -> Iterator[Tallied]:
    """For each candidate and metric how many cells are better, worse, the same, or neither."""
    runs = _runs(points)
    for one in found:
        told = {(cell.workload, cell.metric) for cell in one.cells}
        silent = {out.workload for out in one.skipped} - {name for name, _ in told}
        for metric in one.metrics:
            cells = one.of(metric)
            about = silent | {name for name, known in told if known == metric}
            counts = Counter(cell.comparison.verdict for cell in cells)
            yield Tallied(
                baseline=one.baseline,
                candidate=one.candidate,
                metric=metric,
                verdicts=tuple((verdict, counts[verdict]) for verdict in Verdict),
                skipped=sum(
                    1
                    for out in one.skipped
                    if out.workload in about and _speaks_of(out.reason, metric)
                ),
                runs=tuple(key for cell in cells for key in _both(one, cell, runs)),
            )


def crossed(
    study: Study, found: Sequence[Gains], points: Sequence[PointSummary]
) -> Iterator[Crossed]:
    """Where one configuration leads at small loads and the other at large ones, both supported."""
    runs = _runs(points)
    for one in found:
        for workload in study.workloads:
            names = [axis.name for axis in workload.sweep if axis.name in LOADS]
            if len(names) != 1:
                continue
            for metric in one.metrics[:1]:
                for fixed, cells in _along(one.of(metric, workload.id), names[0]):
                    yield from _crossing(one, cells, names[0], fixed, runs)


def _crossing(
    one: Gains,
    cells: Sequence[Gain],
    name: str,
    fixed: Axis,
    runs: dict[tuple[str, str, Axis], tuple[RunKey, ...]],
) -> Iterator[Crossed]:
    """One crossing of two curves: all supported cells of the one lie below those of the other."""
    leads = [cell for cell in cells if cell.comparison.verdict is Verdict.BETTER]
    trails = [cell for cell in cells if cell.comparison.verdict is Verdict.WORSE]
    if not leads or not trails:
        return
    first = _load_of_gain(leads[0], name) < _load_of_gain(trails[0], name)
    low, high = (leads, trails) if first else (trails, leads)
    last, start = _load_of_gain(low[-1], name), _load_of_gain(high[0], name)
    if last >= start:
        return
    pair = (one.candidate, one.baseline)
    below, above = pair if first else pair[::-1]
    yield Crossed(
        below=below,
        above=above,
        workload=low[-1].workload,
        metric=low[-1].metric,
        axis=name,
        fixed=fixed,
        last=last,
        first=start,
        share_below=_lead(low[-1]),
        share_above=_lead(high[0]),
        up_to=all(cell in low for cell in cells if _load_of_gain(cell, name) <= last),
        on=all(cell in high for cell in cells if _load_of_gain(cell, name) >= start),
        level=max(low[-1].level, high[0].level, key=lambda level: level.rank),
        runs=(*_both(one, low[-1], runs), *_both(one, high[0], runs)),
    )


def _lead(cell: Gain) -> float:
    """What the better of the two is better by, as a share of the other's."""
    if cell.share >= 0:
        return cell.share
    return share_of(1 / cell.comparison.ratio, cell.better)


def _speaks_of(reason: str, metric: str) -> bool:
    """Whether a reason is of a whole cell or of this metric of it, by which it then begins."""
    name, colon, _ = reason.partition(": ")
    return not colon or name == metric


def _along(cells: Iterable[Gain], name: str) -> Iterator[tuple[Axis, list[Gain]]]:
    """Cells by their other axes, each ascending in the load."""
    found: dict[Axis, list[Gain]] = {}
    for cell in cells:
        fixed = tuple(pair for pair in cell.axis if pair[0] != name)
        found.setdefault(fixed, []).append(cell)
    for fixed, members in found.items():
        yield fixed, sorted(members, key=lambda cell: _load_of_gain(cell, name))


def _load_of_gain(cell: Gain, name: str) -> int:
    return int(dict(cell.axis)[name])


def _runs(points: Sequence[PointSummary]) -> dict[tuple[str, str, Axis], tuple[RunKey, ...]]:
    return {
        (one.key.configuration, one.key.workload, one.key.axis): runs_of([one]) for one in points
    }


def _both(
    one: Gains, cell: Gain, runs: dict[tuple[str, str, Axis], tuple[RunKey, ...]]
) -> tuple[RunKey, ...]:
    """The runs of both sides of a cell."""
    place = (cell.workload, cell.axis)
    return (*runs.get((one.baseline, *place), ()), *runs.get((one.candidate, *place), ()))


def findings(
    study: Study,
    points: Sequence[PointSummary],
    compared: Sequence[Gains],
    watched: Mapping[RunKey, Watched] = MappingProxyType({}),
) -> tuple[Finding, ...]:
    """Every finding of a study's results.

    `compared` are the other configurations against the first, if any, and `watched` what some runs
    tell of their resources. Within a kind the order is the study's, but for gains and prices: the
    largest first.
    """
    best = tuple(bests(study, points))
    needs = tuple(suited(study, best))
    dear = sorted(prices(study, best), key=lambda one: (one.workload, one.per, one.rank))
    return (
        *(one for one in needs if one.sure),
        *sorted(gained(compared, points), key=lambda one: -one.share),
        *tallied(compared, points),
        *crossed(study, compared, points),
        *(one for one in needs if not one.sure),
        *best,
        *limited(study, points, best, watched),
        *bends(study, points),
        *dear,
    )
