"""What the native engine's slowest I/Os and recordings cost: with and without, in turn.

Random reads of 4 KiB at a depth of 32 from the page cache, the cheapest target there is, so that a
cost shows most. Processor time of the engine an I/O, user and system; each pair is a ratio.

    python -m bench.recording [--seconds 2] [--pairs 7]
"""

from __future__ import annotations

import argparse
import resource
import statistics
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from tests.e2e.native_engine import MIB, ended, job, spec, started

FILE_BYTES: Final = 64 * MIB
RECORDED_IOS: Final = 1_000_000


def processor_ns(target: Path, seconds: float, more: Mapping[str, Any]) -> float:
    """Processor time of an engine for each of its I/Os."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    load = job(target, FILE_BYTES, depth=32)
    end = ended(started(spec(load, direct=False, runtime_s=seconds, **more))).end
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    used = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    ios: int = end["read"]["ios"]
    return used / ios * 1e9


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=2.0)
    parser.add_argument("--pairs", type=int, default=7)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        target, log = Path(folder) / "target", Path(folder) / "log"
        target.write_bytes(b"x" * FILE_BYTES)
        ways: dict[str, dict[str, Any]] = {
            "slow_ios = 100": {"slow_ios": 100},
            f"recorded_ios = {RECORDED_IOS:,}": {"record": {"path": str(log), "ios": RECORDED_IOS}},
        }
        for name, more in ways.items():
            ratios, costs = [], []
            for _ in range(options.pairs):
                without = processor_ns(target, options.seconds, {})
                costs.append(processor_ns(target, options.seconds, more) - without)
                ratios.append(1 + costs[-1] / without)
            spread = f"{min(ratios):.3f} to {max(ratios):.3f}"
            print(
                f"{name}: {statistics.median(ratios):.3f} of the processor time without ({spread}),"
                f" {statistics.median(costs):+.1f} ns an I/O"
            )


if __name__ == "__main__":
    main()
