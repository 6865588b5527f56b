"""How late a replay is: ours and fio's `read_iolog` on the same trace, in turn.

A trace of reads of 4 KiB with exponential gaps lies on a file in the page cache, so that the target
takes no time; 10,000 and 100,000 I/Os a second. fio tells no lateness of its own, so what both are
held against is how much longer a replay took than was recorded, and ours tells its lateness too.

    python -m bench.replay [--seconds 10] [--pairs 3] [--rates 10000,100000]
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import tempfile
import time
from pathlib import Path
from typing import Any, Final

import numpy as np
from tests.e2e.native_engine import ended, spec, started

from iolab.loads.fileio.io_trace import IoTrace, chunks_of_trace, read_trace

FILE_BYTES: Final = 64 << 20


def write_trace(path: Path, rate: int, seconds: float) -> None:
    draw = np.random.default_rng(1)
    count = round(rate * seconds)
    times = np.cumsum(draw.exponential(1e6 / rate, count)).astype(int)
    offsets = draw.integers(0, FILE_BYTES // 4096, count) * 4096
    target = path.parent / "target"
    lines = [f"{at} {target} read {offset} 4096" for at, offset in zip(times, offsets, strict=True)]
    head = ["fio version 3 iolog", f"0 {target} add", f"0 {target} open"]
    path.write_text("\n".join([*head, *lines, f"{times[-1]} {target} close"]) + "\n", "utf-8")


def replay_ours(folder: Path, trace: IoTrace) -> dict[str, Any]:
    names = []
    for number, part in enumerate(chunks_of_trace(trace, FILE_BYTES, 1.0)):
        names.append(str(folder / f"trace.{number}"))
        Path(names[-1]).write_bytes(part)
    job = {
        "files": [{"path": str(folder / "target"), "bytes": FILE_BYTES}],
        "rw": "randread",
        "blocks": [{"bytes": 4096}],
        "depth": 256,
        "trace": {"parts": names, "ios": len(trace.due_ns)},
    }
    wanted = spec(job, runtime_s=600, direct=False, interval_ms=1000, threads=1)
    end = ended(started(wanted, wait_s=1.0)).end
    late = end["lateness"]
    return {
        "took_s": end["measured_ns"] / 1e9,
        "ios": end["read"]["ios"],
        "late_us_p50": late["p50_ns"] / 1e3,
        "late_us_p99": late["p99_ns"] / 1e3,
        "late_us_max": late["max_ns"] / 1e3,
    }


def replay_fio(log: Path) -> dict[str, Any]:
    argv = ["fio", "--name=replay", f"--read_iolog={log}", "--ioengine=io_uring", "--iodepth=256"]
    argv += ["--direct=0", "--output-format=json"]
    done = subprocess.run(argv, capture_output=True, text=True, check=True, timeout=1200)
    read = json.loads(done.stdout[done.stdout.index("{") :])["jobs"][0]["read"]
    return {"took_s": read["runtime"] / 1e3, "ios": read["total_ios"]}


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--seconds", type=float, default=10.0)
    options.add_argument("--pairs", type=int, default=3)
    options.add_argument("--rates", default="10000,100000")
    asked = options.parse_args()
    with tempfile.TemporaryDirectory(prefix="iolab-bench-") as name:
        folder = Path(name)
        (folder / "target").write_bytes(b"x" * FILE_BYTES)
        for rate in map(int, asked.rates.split(",")):
            log = folder / f"log-{rate}"
            write_trace(log, rate, asked.seconds)
            trace = read_trace(str(log))
            recorded_s = trace.span_ns / 1e9
            print(f"{rate:,} I/Os a second, {trace.io_count:,} I/Os in {recorded_s:.3f} s")
            rows: dict[str, list[float]] = {"ours": [], "fio": []}
            for _ in range(asked.pairs):
                time.sleep(0.5)
                ours = replay_ours(folder, trace)
                theirs = replay_fio(log)
                for tool, row in (("ours", ours), ("fio", theirs)):
                    error = row["took_s"] / recorded_s - 1
                    rows[tool].append(error)
                    print(f"  {tool}: {error:+.4%} of the time, {row}", flush=True)
            for tool, errors in rows.items():
                print(f"  {tool}: median {statistics.median(errors):+.4%}")


if __name__ == "__main__":
    main()
