"""How long a user waits for an answer that needs no measuring: help, and a session of 500 points.

Run as `python -m bench.startup`. Each command is timed in turn with an interpreter that does
nothing, several times; the medians and their ratio are printed, since seconds alone say more of
the machine than of iolab.
"""

from __future__ import annotations

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

from bench.store import write_session
from bench.synthetic import Shape

ROUNDS: Final = 7
"""An odd number, so that the median is one of the times."""

SHAPE: Final = Shape(points=500, seconds=1, cores=1, disks=1, nics=1)
"""What `show` reads does not grow with a run's length."""


def seconds(argv: Sequence[str]) -> float:
    """How long a command takes from start to end."""
    start = time.perf_counter()
    subprocess.run(argv, check=True, stdout=subprocess.DEVNULL)
    return time.perf_counter() - start


def compare(name: str, argv: Sequence[str], limit_s: float) -> None:
    """Time a command against an empty interpreter, in turn."""
    empty = [sys.executable, "-c", "pass"]
    pairs = [(seconds(argv), seconds(empty)) for _ in range(ROUNDS)]
    taken = statistics.median(one for one, _ in pairs)
    bare = statistics.median(other for _, other in pairs)
    print(
        f"{name:<28} {taken:6.3f} s, {taken / bare:5.1f} times an empty interpreter "
        f"({bare:.3f} s); wanted below {limit_s} s"
    )


def main() -> None:
    """Print both."""
    iolab = [sys.executable, "-m", "iolab"]
    compare("iolab --help", [*iolab, "--help"], 0.4)
    with tempfile.TemporaryDirectory(prefix="iolab-bench-") as folder:
        session = Path(folder) / "session"
        write_session(session, SHAPE)
        compare("iolab show (500 points)", [*iolab, "show", str(session)], 1.5)
        compare("iolab show --json (500)", [*iolab, "show", str(session), "--json"], 1.5)


if __name__ == "__main__":
    main()
