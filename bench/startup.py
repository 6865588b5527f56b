"""How long a user waits for an answer that needs no measuring: a check, a plan, results, a report.

Run as `python -m bench.startup`. Each command is timed in turn with an interpreter that does
nothing, several times: the medians, their ratio, and which share of the command is spent on
imports, since seconds alone say more of the machine than of iolab. Modules are compiled beforehand,
as `make setup` leaves them. Seconds are of processors.
"""

from __future__ import annotations

import argparse
import compileall
import os
import re
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Final

if __package__ in {None, ""}:
    sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import iolab
from bench.store import write_session
from bench.synthetic import Shape

ROUNDS: Final = 7
"""An odd number, so that the median is one of the times."""

SMALL: Final = {"seconds": 30, "cores": 1, "disks": 1, "nics": 1}
POINTS: Final = (9, 30, 500)
"""What `show` reads does not grow with a run's length; a report does."""

KEEP_NOTHING: Final = "PYTHONDONTWRITEBYTECODE"
"""With it in the environment a report compiles its templates each time."""

_SELF: Final = re.compile(r"^import time:\s+(\d+) \|", re.MULTILINE)


def seconds(argv: Sequence[str]) -> float:
    """The processor time of a command from start to end, which others that run do not lengthen."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(argv, check=True, stdout=subprocess.DEVNULL)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def import_share(arguments: Sequence[str]) -> float:
    """Which part of a command is imports, told by the interpreter; it slows both down alike."""
    start = time.perf_counter()
    argv = [sys.executable, "-X", "importtime", "-m", "iolab", *arguments]
    done = subprocess.run(argv, check=True, capture_output=True, text=True)
    whole = time.perf_counter() - start
    return sum(int(one) for one in _SELF.findall(done.stderr)) / 1e6 / whole


def compare(name: str, arguments: Sequence[str], limit_s: float) -> None:
    """Time a command against an empty interpreter, in turn."""
    argv = [sys.executable, "-m", "iolab", *arguments]
    # A page's templates are compiled by the first that draws one.
    keeping = {name: value for name, value in os.environ.items() if name != KEEP_NOTHING}
    subprocess.run(argv, check=True, stdout=subprocess.DEVNULL, env=keeping)
    empty = [sys.executable, "-c", "pass"]
    pairs = [(seconds(argv), seconds(empty)) for _ in range(ROUNDS)]
    taken = statistics.median(one for one, _ in pairs)
    bare = statistics.median(other for _, other in pairs)
    print(
        f"{name:<24} {taken:6.3f} s, {taken / bare:5.1f} times an empty interpreter "
        f"({bare:.3f} s), {import_share(arguments):4.0%} imports; wanted below {limit_s} s",
        flush=True,
    )


def main() -> None:
    """Print all of them, or those whose names hold a word."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", default="", help="commands whose names hold this")
    chosen = parser.parse_args()
    compileall.compile_dir(Path(iolab.__file__).parent, quiet=1)
    with tempfile.TemporaryDirectory(prefix="iolab-bench-") as folder:
        place = Path(folder)
        for points in POINTS:
            shape = Shape(points=points, **(SMALL | ({"seconds": 1} if points > 100 else {})))
            write_session(place / f"{points}", shape)
        target = ["--path", folder, "--scale", "small"]
        nine, thirty, many = (str(place / f"{points}") for points in POINTS)
        cases: tuple[tuple[str, list[str], float], ...] = (
            ("--help", ["--help"], 0.3),
            ("check", ["check", "cluster-kpi"], 0.4),
            ("plan", ["plan", "cluster-kpi", *target], 0.5),
            ("show, 9 runs", ["show", nine], 0.4),
            ("show, 500 points", ["show", many], 0.6),
            ("show --json, 500 points", ["show", many, "--json"], 0.8),
            ("report, 9 runs", ["report", nine], 1.0),
            ("report, 30 runs", ["report", thirty], 1.5),
            ("report --pdf, 9 runs", ["report", nine, "--pdf", str(place / "report.pdf")], 2.5),
        )
        for name, arguments, limit_s in cases:
            if chosen.only in name:
                compare(name, arguments, limit_s)


if __name__ == "__main__":
    main()
