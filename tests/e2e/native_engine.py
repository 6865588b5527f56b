"""The native engine driven by itself: jobs on its standard input, lines of JSON from it."""

from __future__ import annotations

import json
import os
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from iolab.hosts.push import agent_binary

PROGRAM = agent_binary().absolute()
LONGEST_S = 60
START = "IOLAB_START_REAL_NS"
KIB, MIB = 1 << 10, 1 << 20

Spec = dict[str, Any]


@dataclass(frozen=True)
class Outcome:
    """What an engine said and how it ended."""

    code: int
    lines: tuple[Mapping[str, Any], ...]
    errors: str

    @property
    def faults(self) -> str:
        """What speaks against the jobs, a sentence a line; the engine must have refused them."""
        assert self.code == 2, (self.code, self.lines, self.errors)
        (line,) = self.lines
        return "\n".join(line["fault"])

    @property
    def hello(self) -> Mapping[str, Any]:
        """What it said before the start; it must have come to its end."""
        assert self.code == 0, (self.code, self.lines, self.errors)
        return self.lines[0]

    @property
    def end(self) -> Mapping[str, Any]:
        """The whole of it; it must have come to its end."""
        assert self.code == 0, (self.code, self.lines, self.errors)
        end: Mapping[str, Any] = self.lines[-1]["end"]
        return end

    def count(self, way: str) -> int:
        """How many I/Os of that direction succeeded."""
        ios: int = self.end[way]["ios"]
        assert ios == sum(count for _, count in self.end[way]["bins"])
        assert ios == sum(line[way]["ios"] for line in self.lines if "seq" in line)
        return ios

    def failures(self, way: str) -> Mapping[str, int]:
        """How many failed, by errno."""
        failures: Mapping[str, int] = self.end["errors"].get(way, {})
        return failures


def job(path: str | Path, size_bytes: int, rw: str = "randread", **more: Any) -> Spec:
    """A job on one file or device: 4 KiB at a depth of 8 unless said otherwise."""
    common = {"blocks": [{"bytes": 4096, "share": 100}], "depth": 8, "seed": 1}
    return {"files": [{"path": str(path), "bytes": size_bytes}], "rw": rw, **common, **more}


def spec(*jobs: Spec, **more: Any) -> Spec:
    """Those jobs for half a second, past the page cache, unless said otherwise."""
    return {"format": 1, "jobs": list(jobs), "runtime_s": 0.5, "interval_ms": 100, **more}


def started(
    asked: Spec,
    *,
    before: Sequence[str] = (),
    prepare: Callable[[], None] | None = None,
    wait_s: float = 0.0,
) -> subprocess.Popen[str]:
    """An engine that is told its jobs, under a command such as prlimit; it begins so much later."""
    start = str(time.time_ns() + int(wait_s * 1e9))
    engine = subprocess.Popen(
        [*before, str(PROGRAM), "engine"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=prepare,
        env=os.environ | {START: start},
    )
    assert engine.stdin is not None
    engine.stdin.write(json.dumps(asked))
    engine.stdin.close()
    engine.stdin = None
    return engine


def ended(engine: subprocess.Popen[str], *said: str) -> Outcome:
    """All that it said, with lines that were read before; it is killed when its end stays away."""
    try:
        output, errors = engine.communicate(timeout=LONGEST_S)
    except subprocess.TimeoutExpired:
        engine.kill()
        engine.communicate()
        raise
    return Outcome(engine.returncode, tuple(map(json.loads, [*said, *output.splitlines()])), errors)


def lines_of(engine: subprocess.Popen[str], count: int) -> list[str]:
    """The next lines of an engine that runs; empty ones where it has ended.

    Not a byte more is read: `ended` would not see it.
    """
    return [_line_of(engine) for _ in range(count)]


def _line_of(engine: subprocess.Popen[str]) -> str:
    assert engine.stdout is not None
    line = b""
    while not line.endswith(b"\n") and (more := os.read(engine.stdout.fileno(), 1)):
        line += more
    return line.decode("utf-8")


def run(asked: Spec, *, before: Sequence[str] = ()) -> Outcome:
    """The whole of it."""
    return ended(started(asked, before=before))


def quantile_ns(bins: Sequence[Sequence[int]], part: float) -> int:
    """The upper edge of fio's bin that reaches that part of all counts."""
    wanted, seen = part * sum(count for _, count in bins), 0
    for number, count in bins:
        seen += count
        if seen >= wanted:
            octave = max(0, (number >> 6) - 1)
            lower = number if octave == 0 else (64 + (number & 63)) << octave
            return lower + (1 << octave) - 1
    raise ValueError("There are no counts.")
