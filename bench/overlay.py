"""Both engines on one target whose limit is known: what they say of it must lie one upon the other.

Runs the small `ssd-cluster` study by each engine on a device that takes a set time for each I/O
(bench/paced.py), and prints point by point the ratios native / fio of IOPS, which are wanted within
2 %, and of the latency's median and 99th percentile, within 5 %. The brief of both is written too.

Needs root. BENCH_OUT keeps the sessions and the brief in a directory; else they are removed.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from contextlib import ExitStack
from pathlib import Path
from typing import Any, Final

from bench.paced import Speed, paced_folder

IOLAB: Final = Path(sys.executable).with_name("iolab")
DEVICE_BYTES: Final = 3 << 30
"""The small study lays out 2 GiB."""
ENGINES: Final = ("native", "fio")
WANTED: Final = {"iops": 0.02, "lat_ns_p50": 0.05, "lat_ns_p99": 0.05}

Point = tuple[str, str]
"""A workload, and the values of its axes."""


def main() -> None:
    """Run both, print every point, and what lies outside."""
    argparse.ArgumentParser(description=__doc__).parse_args()
    with ExitStack() as stack:
        folder = stack.enter_context(paced_folder(DEVICE_BYTES, Speed()))
        temporary = stack.enter_context(tempfile.TemporaryDirectory(prefix="iolab-bench-"))
        out = Path(os.environ.get("BENCH_OUT", temporary)).absolute()
        sessions = [out / engine for engine in ENGINES]
        for engine, session in zip(ENGINES, sessions, strict=True):
            _iolab(
                *("run", "ssd-cluster", "--scale", "small", "--quiet"),
                *("--engine", engine, "--path", str(folder), "--out", str(session)),
            )
        _iolab("report", *map(str, sessions), "--html", str(out / "overlay.html"))
        native, fio = (_points(session) for session in sessions)
    outside = sum(_show(point, native[point], fio[point]) for point in native)
    print(f"points: {len(native)}; figures outside: {outside}")


def _iolab(*arguments: str) -> str:
    done = subprocess.run([IOLAB, *arguments], check=True, capture_output=True, text=True)
    return done.stdout


def _points(session: Path) -> dict[Point, dict[str, Any]]:
    told = json.loads(_iolab("show", str(session), "--json"))
    return {
        (
            point["workload"],
            ", ".join(f"{name} {value}" for name, value in point["axis"].items()),
        ): point["metrics"]
        for point in told["points"]
    }


def _show(point: Point, native: dict[str, Any], fio: dict[str, Any]) -> int:
    """Print a point; how many of its figures are too far apart."""
    parts, outside = [], 0
    for key, wanted in WANTED.items():
        ours, theirs = native[key]["value"], fio[key]["value"]
        if ours is None or theirs is None:
            parts.append(f"{key} -")  # Too few I/Os for that percentile.
            continue
        is_within = abs(ours / theirs - 1) <= wanted
        outside += not is_within
        parts.append(f"{key} {ours / theirs:.3f}{'' if is_within else ' OUTSIDE'}")
    print(f"{' '.join(point):28} {'  '.join(parts)}", flush=True)
    return outside


if __name__ == "__main__":
    main()
