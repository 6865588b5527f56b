"""How many points that were held out lie within the 90 % intervals of `iolab predict`.

Simulated: curves of six families, and of four that the method knows nothing of, with runs that
scatter, measured at loads from 1 to 8, held out between these and up to twice the largest.
Measured: curves of the sessions that are named, over `iodepth`, of which every second load is held
out, and then all in the upper half.
"""

from __future__ import annotations

import argparse
import math
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean, stdev

if __package__ in {None, ""}:
    sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import numpy as np

from iolab.analysis.points import summarise_points
from iolab.analysis.prediction import predict_curves
from iolab.analysis.stored_results import study_and_results_with_session_checks
from iolab.cli.output import open_session
from iolab.stats.scaling import COVERED, POINTS_MIN, REACH, MeasuredLoad, predict_rate

MEASURED = (1, 2, 4, 6, 8)
HELD_OUT = (3, 5, 7, 10, 12, 16)
SCATTER = 0.006
RUNS = 3
WHERE = {False: "between", True: "up to twice"}
OFF_MOST = 0.08
"""So far from 90 % a share may be."""
Curve = Callable[[float], float]


@dataclass(frozen=True)
class Outcome:
    """One held-out point: whether the interval held it, and how wide that was."""

    within: bool
    below: bool
    width: float
    error: float
    beyond: bool


def _usl(draw: np.random.Generator) -> Curve:
    sigma, kappa = draw.uniform(0.01, 0.15), 10 ** draw.uniform(-4, -2.7)
    return lambda n: n / (1 + sigma * (n - 1) + kappa * n * (n - 1))


def _soft(draw: np.random.Generator) -> Curve:
    knee, power = draw.uniform(3, 20), draw.uniform(1.5, 4)
    return lambda n: n / (1 + (n / knee) ** power) ** (1 / power)


def _retrograde(draw: np.random.Generator) -> Curve:
    knee, power, fall = draw.uniform(4, 14), draw.uniform(2, 4), draw.uniform(0.005, 0.03)
    return lambda n: (
        n / (1 + (n / knee) ** power) ** (1 / power) * float(np.exp(-fall * max(n - knee, 0)))
    )


def _hard_knee(draw: np.random.Generator) -> Curve:
    knee = draw.uniform(3, 20)
    return lambda n: min(n, knee)


def _cliff(draw: np.random.Generator) -> Curve:
    at, drop, sigma = draw.uniform(4, 20), draw.uniform(0.1, 0.3), draw.uniform(0.02, 0.1)
    return lambda n: n / (1 + sigma * (n - 1)) * (1 - drop if n > at else 1)


def _power(draw: np.random.Generator) -> Curve:
    power = draw.uniform(0.9, 1.0)
    return lambda n: n**power


def _queue(draw: np.random.Generator) -> Curve:
    """Clients that think, and one to eight servers: a birth-death chain in equilibrium."""
    servers, think = int(draw.integers(1, 9)), draw.uniform(0.1, 3)

    def rate(n: float) -> float:
        chances = [1.0]
        for j in range(1, round(n) + 1):
            chances.append(chances[-1] * (n - j + 1) / think / min(j, servers))
        busy = sum(chance * min(j, servers) for j, chance in enumerate(chances))
        return busy / sum(chances)

    return rate


def _hyperbola(draw: np.random.Generator) -> Curve:
    half = draw.uniform(1, 30)
    return lambda n: n / (n + half)


def _exponential(draw: np.random.Generator) -> Curve:
    scale = draw.uniform(2, 15)
    return lambda n: 1 - math.exp(-n / scale)


def _wavy(draw: np.random.Generator) -> Curve:
    knee, swing, phase = draw.uniform(3, 20), draw.uniform(0.02, 0.08), draw.uniform(0, 6)
    return lambda n: n / math.hypot(1, n / knee) * (1 + swing * math.sin(phase + 1.5 * math.log(n)))


FAMILIES = {
    "usl": (0.30, _usl),
    "soft": (0.35, _soft),
    "retrograde": (0.15, _retrograde),
    "power": (0.10, _power),
    "hard knee": (0.05, _hard_knee),
    "cliff": (0.05, _cliff),
}
"""Each with its weight in the whole: as the method's experiments weigh them, about."""

OTHERS = {
    "queue": _queue,
    "hyperbola": _hyperbola,
    "exponential": _exponential,
    "wavy": _wavy,
}
"""Families that no number of the method was chosen by."""


def simulated(curve: Curve, draw: np.random.Generator) -> Iterator[Outcome]:
    """One curve measured and held out, each load by so many runs."""

    def runs(n: int) -> list[float]:
        return [math.log(1000 * curve(n)) + float(draw.normal(0, SCATTER)) for _ in range(RUNS)]

    known = [
        MeasuredLoad(n, math.exp(fmean(found)), stdev(found), RUNS)
        for n, found in ((n, runs(n)) for n in MEASURED)
    ]
    for n in HELD_OUT:
        yield _outcome(known, n, math.exp(fmean(runs(n))))


def _outcome(known: Sequence[MeasuredLoad], at: float, truth: float) -> Outcome:
    said = predict_rate(known, at)
    return Outcome(
        within=said.low <= truth <= said.high,
        below=truth < said.low,
        width=(said.high - said.low) / said.rate,
        error=abs(said.rate / truth - 1),
        beyond=at > max(one.load for one in known),
    )


def measured(folder: Path) -> Iterator[Outcome]:
    """The curves of a session over `iodepth`, held out in two ways."""
    study, results = study_and_results_with_session_checks(open_session(folder))
    points = summarise_points(results, study)
    for curve in predict_curves(
        study, points, "iodepth", 1, lambda _: None, allow_any_distance=False
    ):
        known = curve.measured_loads
        half = len(known) // 2
        splits = [(known[::2], known[1::2]), (known[: half + 1], known[half + 1 :])]
        for kept, out in splits:
            if len(kept) < POINTS_MIN:
                continue
            for one in out:
                if one.load <= REACH * kept[-1].load:
                    yield _outcome(kept, one.load, one.rate)


def _print(name: str, found: Sequence[Outcome]) -> float:
    """Print a line; the share within."""
    share = sum(one.within for one in found) / max(len(found), 1)
    widths = np.median([one.width for one in found]) if found else float("nan")
    errors = np.median([one.error for one in found]) if found else float("nan")
    print(
        f"{name:<28} {share:6.1%} of {len(found):4} within, "
        f"interval {widths:5.1%} wide, off by {errors:5.1%} (medians)"
    )
    return share


def main() -> int:
    """All; ends with 1 where any of the shares is further from 90 % than they may be."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("sessions", nargs="*", type=Path)
    parser.add_argument("--curves", type=int, default=40, help="of each family")
    asked = parser.parse_args()
    draw = np.random.default_rng(7)
    shares: list[float] = []
    weighted = {False: 0.0, True: 0.0}
    for name, (weight, family) in FAMILIES.items():
        for beyond, share in _family(name, family, asked.curves, draw).items():
            weighted[beyond] += weight * share
    print(f"simulated, weighted: {weighted[False]:.1%} between, {weighted[True]:.1%} up to twice")
    others = [_family(name, family, asked.curves, draw) for name, family in OTHERS.items()]
    for beyond, share in weighted.items():
        shares += [share, fmean(one[beyond] for one in others)]
    if asked.sessions:
        found = [one for folder in asked.sessions for one in measured(folder)]
        for beyond in WHERE:
            # Too few to tell 90 % from all: only too small a share is a failure.
            share = _print(f"measured, {WHERE[beyond]}", _part(found, beyond=beyond))
            shares.append(min(share, COVERED))
    return 0 if all(abs(share - COVERED) <= OFF_MOST for share in shares) else 1


def _family(
    name: str, family: Callable[[np.random.Generator], Curve], count: int, draw: np.random.Generator
) -> dict[bool, float]:
    found = [one for _ in range(count) for one in simulated(family(draw), draw)]
    return {
        beyond: _print(f"{name}, {where}", _part(found, beyond=beyond))
        for beyond, where in WHERE.items()
    }


def _part(found: Sequence[Outcome], *, beyond: bool) -> list[Outcome]:
    return [one for one in found if one.beyond is beyond]


if __name__ == "__main__":
    sys.exit(main())
