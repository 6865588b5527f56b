"""What `iolab compare --fail-on worse` finds and what it alarms about, on a device of known speed.

Really measured (root, cgroup v1): seven sessions of one loop device that the kernel holds at one
rate, compared with each other, must raise no alarm; one of the device at 90 % must be worse than
each of them. Simulated: sessions of equals whose runs scatter, and the share of them with an alarm.
"""

from __future__ import annotations

import argparse
import itertools
import sys
import tempfile
from pathlib import Path

if __package__ in {None, ""}:
    sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import numpy as np
from tests.cli.compared import Target, make_target
from tests.e2e.fresh import Fading, fresh_device

from iolab.analysis.comparison import compare_sides
from iolab.analysis.differences import ComparisonSide, read_comparison_side
from iolab.cli.output import open_session
from iolab.stats.comparison import ComparisonVerdict

STUDY = """
format = 1
id = "regression"

[[workload]]
id = "rand-read-4k"
rw = "randread"
bs = "4k"
iodepth = 8
filesize = "64m"

[method]
warmup = "0s"
runtime = "4s"
repeats = 3
settle = "0s"
"""
RATE = 1000
SESSIONS = 7
SCATTERS = (0.003, 0.01, 0.03)


def main() -> int:
    """Both parts; ends with 1 where a regression is missed or equals raise an alarm."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--simulated", type=int, default=200, help="comparisons for each scatter")
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="iolab-bench-") as name:
        simulated(Path(name), asked.simulated)
        return 0 if measured(Path(name)) else 1


def simulated(folder: Path, count: int) -> None:
    """Comparisons of equals with two points and two metrics each, three runs a side."""
    generator = np.random.default_rng(1)
    for scatter in SCATTERS:
        alarms = 0
        for number in range(count):
            sides = []
            for side in ("a", "b"):
                noise = tuple(generator.normal(0.0, scatter, 3).tolist())
                place = folder / f"{scatter}-{number}-{side}"
                sides.append(_side(make_target(place, Target(name=str(place), noise=noise))))
            alarms += _is_worse(*sides)
        print(f"simulated equals, runs scatter by {scatter:.1%}: {alarms} alarms in {count}")


def measured(folder: Path) -> bool:
    """Sessions of the device at its full rate and at 90 % of it."""
    study = folder / "study.toml"
    study.write_text(STUDY, encoding="utf-8")
    equals = []
    with fresh_device(Fading(RATE, above=0.0, tau_s=1.0)) as device:
        for number in range(SESSIONS):
            place = folder / f"equal-{number}"
            device.iolab("run", study, "--path", device.target.path, "--out", place, "--quiet")
            equals.append(_side(place))
    with fresh_device(Fading(RATE * 9 // 10, above=0.0, tau_s=1.0)) as device:
        place = folder / "slower"
        device.iolab("run", study, "--path", device.target.path, "--out", place, "--quiet")
        slower = _side(place)
    pairs = list(itertools.combinations(equals, 2))
    alarms = sum(_is_worse(one, other) for one, other in pairs)
    found = sum(_is_worse(one, slower) for one in equals)
    ratios = [compare_sides(one, slower).compared_metrics[0].comparison.ratio for one in equals]
    print(f"measured equals: {alarms} alarms in {len(pairs)} comparisons of {SESSIONS} sessions")
    print(
        f"measured at 90 % of the rate: worse in {found} of {len(equals)}; "
        f"ratios of IOPS {min(ratios):.3f} to {max(ratios):.3f}"
    )
    return not alarms and found == len(equals)


def _side(folder: Path) -> ComparisonSide:
    return read_comparison_side(folder.name, open_session(folder))


def _is_worse(baseline: ComparisonSide, candidate: ComparisonSide) -> bool:
    return bool(
        compare_sides(baseline, candidate).row_count_by_verdict.get(ComparisonVerdict.WORSE, 0)
    )


if __name__ == "__main__":
    sys.exit(main())
