"""What a request of S3 costs the generator, against a server that answers at once.

The null server of the agent keeps nothing, so what is told is the generator's own ceiling. The load
runs in one thread; a figure is operations by seconds of processors, its own alone, so that it holds
on a machine that others use, too. Prints operations a second, a core-second, and microseconds.

BENCH_SECONDS says how long each load runs, BENCH_AGENT names the agent's program. Where s3dlio is
installed (`pip install s3dlio`), it reads the same objects from the same server, in turn with us:
64 at a time for operations a core-second, then one at a time for latencies.
"""

from __future__ import annotations

import importlib
import importlib.util
import itertools
import json
import os
import platform
import resource
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import numpy as np

from iolab.core.bins import BIN_COUNT
from iolab.core.histogram import Histogram
from iolab.hosts.push import AGENTS_FOLDER
from iolab.units import NS_PER_S

SECONDS: Final = float(os.environ.get("BENCH_SECONDS", "4"))
AGENT: Final = Path(
    os.environ.get("BENCH_AGENT") or AGENTS_FOLDER / platform.machine() / "iolab-agent"
)
KEYS: Final = ("bench-access", "bench-secret")
SMALL: Final = 4096
LARGE: Final = 4 << 20
OTHER_OBJECTS: Final = 20_000
ROUNDS: Final = 5
"""In each both clients read, one after the other."""

PERCENTS: Final = (50.0, 99.0)
SINGLE_GETS: Final = 1000


@dataclass(frozen=True, slots=True)
class Load:
    """A row of the table."""

    name: str
    kind: str
    object_bytes: int
    concurrency: int
    target: dict[str, str] = field(default_factory=dict)
    keys: dict[str, Any] = field(default_factory=dict)


LOADS: Final = (
    *(Load(f"GET 4 KiB, {count} connections", "get", SMALL, count) for count in (16, 64, 256)),
    Load("PUT 4 KiB, unsigned body", "put", SMALL, 64),
    Load("PUT 4 KiB, signed body", "put", SMALL, 64, {"payload": "signed"}),
    Load("PUT 4 KiB, signed chunks", "put", SMALL, 64, {"payload": "streaming"}),
    Load("HEAD", "head", SMALL, 64),
    Load("GET 4 KiB, 20,000/s", "get", SMALL, 64, keys={"rate": 20_000.0}),
    Load("GET 4 MiB", "get", LARGE, 8),
    Load("PUT 4 MiB, unsigned body", "put", LARGE, 8),
    Load("PUT 4 MiB, signed body", "put", LARGE, 8, {"payload": "signed"}),
    Load("PUT 4 MiB, signed chunks", "put", LARGE, 8, {"payload": "streaming"}),
)


@contextmanager
def null_server_process(object_bytes: int) -> Iterator[tuple[subprocess.Popen[bytes], str]]:
    """The server and its URL; it ends with its standard input."""
    command: list[str | Path] = [AGENT, "objects-null-server", str(object_bytes)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        yield process, f"http://127.0.0.1:{json.loads(process.stdout.readline())['port']}"
        process.communicate()


@contextmanager
def null_server(object_bytes: int) -> Iterator[str]:
    """The URL of such a server."""
    with null_server_process(object_bytes) as (_, url):
        yield url


def spec(load: Load, url: str) -> dict[str, Any]:
    """What the engine is told."""
    sizes = [{"bytes": load.object_bytes, "share": 1.0}]
    return {
        "format": 1,
        "task": "load",
        "target": {"endpoints": [url], "bucket": "bench", "region": "us-east-1", **load.target},
        "secret": {"access_key": KEYS[0], "secret_key": KEYS[1]},
        "objects": {"prefix": "iolab-bench/", "count": 100_000, "sizes": sizes, "seed": 1},
        "operations": [{"kind": load.kind, "share": 1.0}],
        "new_prefix": "iolab-new/",
        "concurrency": load.concurrency,
        "threads": 1,
        "runtime_s": SECONDS,
        **load.keys,
    }


def run_engine(load: Load, url: str) -> tuple[dict[str, Any], int, float]:
    """The end that the engine tells, its operations, and the seconds of processors they took."""
    done = subprocess.run(
        [AGENT, "objects"],
        input=json.dumps(spec(load, url)).encode(),
        capture_output=True,
        timeout=SECONDS + 60,
        check=True,
    )
    end = json.loads(done.stdout.splitlines()[-1])["end"]
    (kind,) = end["objects"]["kinds"].values()
    return end, kind["operations"], end["cpu"]["user_s"] + end["cpu"]["system_s"]


def measure(load: Load, url: str) -> str:
    """One row."""
    end, count, cpu_s = run_engine(load, url)
    text = row(load.name, count, end["measured_ns"] / NS_PER_S, cpu_s, load.object_bytes)
    late = end["lateness"]
    if not late:
        return text
    own = late["machine"]
    return (
        f"{text}, late p50 {late['p50_ns'] / 1000:.1f}, p99 {late['p99_ns'] / 1000:.0f} us, of "
        f"waits alone p99 {own['p99_ns'] / 1000:.0f} us"
    )


def row(name: str, count: int, seconds: float, cpu_s: float, object_bytes: int) -> str:
    """Operations a second and a core-second."""
    return (
        f"{name:<32} {count / seconds:>9,.0f}/s {count / cpu_s:>9,.0f} a core-second "
        f"{cpu_s / count * 1e6:>9,.2f} us {count * object_bytes / cpu_s / 1e9:>6.2f} GB/core-s"
    )


def compare_with_s3dlio(url: str) -> Iterator[str]:
    """The same GETs by the engine and by another client in turn, where that is installed."""
    if importlib.util.find_spec("s3dlio") is None:
        yield "s3dlio is not installed: pip install s3dlio"
        return
    os.environ.update(
        AWS_ENDPOINT_URL=url,
        AWS_REGION="us-east-1",
        AWS_ACCESS_KEY_ID=KEYS[0],
        AWS_SECRET_ACCESS_KEY=KEYS[1],
    )
    client = importlib.import_module("s3dlio")
    names = [f"s3://bench/iolab-bench/{number}" for number in range(OTHER_OBJECTS)]
    client.get_many(names[:64], 64)
    ratios: list[float] = []
    for _ in range(ROUNDS):
        load = Load("GET 4 KiB, 64 connections", "get", SMALL, 64)
        end, count, cpu_s = run_engine(load, url)
        yield row(load.name, count, end["measured_ns"] / NS_PER_S, cpu_s, SMALL)
        own = count / cpu_s
        before, began = process_cpu_s(), time.monotonic()
        client.get_many(names, 64)
        seconds, cpu_s = time.monotonic() - began, process_cpu_s() - before
        yield row("s3dlio, GET 4 KiB, 64 at a time", OTHER_OBJECTS, seconds, cpu_s, SMALL)
        ratios.append(own / (OTHER_OBJECTS / cpu_s))
    ratios.sort()
    yield (
        f"GETs a core-second over s3dlio's, {ROUNDS} rounds in turn: {ratios[ROUNDS // 2]:.1f} "
        f"({ratios[0]:.1f} to {ratios[-1]:.1f})"
    )


def compare_latencies(url: str) -> Iterator[str]:
    """GETs one at a time by both in turn: what a caller waits for each."""
    if importlib.util.find_spec("s3dlio") is None:
        return
    client = importlib.import_module("s3dlio")
    medians: list[float] = []
    for _ in range(ROUNDS):
        end, _, _ = run_engine(Load("", "get", SMALL, 1), url)
        counts = np.zeros(BIN_COUNT, dtype=np.int64)
        for place, count in end["object_get"]["bins"]:
            counts[place] += count
        own = [Histogram(counts).percentile_ns(percent) or 0.0 for percent in PERCENTS]
        took_ns: list[int] = []
        for number in range(SINGLE_GETS):
            began = time.perf_counter_ns()
            client.get(f"s3://bench/iolab-bench/{number}")
            took_ns.append(time.perf_counter_ns() - began)
        theirs = [float(ns) for ns in np.percentile(took_ns, PERCENTS)]
        medians.append(theirs[0] / own[0])
        texts = [f"p50 {p50 / 1000:,.0f}, p99 {p99 / 1000:,.0f} us" for p50, p99 in (own, theirs)]
        yield f"GET 4 KiB, one at a time: {texts[0]}; s3dlio {texts[1]}"
    medians.sort()
    yield (
        f"s3dlio's median over ours, {ROUNDS} rounds in turn: {medians[ROUNDS // 2]:.1f} "
        f"({medians[0]:.1f} to {medians[-1]:.1f})"
    )


def process_cpu_s() -> float:
    """What this process has used."""
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


def main() -> None:
    """Print the table."""
    for object_bytes in (SMALL, LARGE):
        with null_server(object_bytes) as url:
            for load in LOADS:
                if load.object_bytes == object_bytes:
                    print(measure(load, url), flush=True)
            if object_bytes == SMALL:
                for text in itertools.chain(compare_with_s3dlio(url), compare_latencies(url)):
                    print(text, flush=True)


if __name__ == "__main__":
    main()
