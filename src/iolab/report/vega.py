"""The only door to vl_convert: a Vega-Lite spec becomes SVG or PDF, and many at once in parallel.

The library draws one chart after the other in a process, whatever threads ask for. So many charts
are drawn by processes of their own, this very module, which read specs from their stdin and
end with it: a report that is killed leaves none of them.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections import deque
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import IO, Final

MANY: Final = 8
"""Charts for each process that are worth its start, which takes as long as ten of them."""

PROCESSES_MAX: Final = 4
"""Each takes 150 MB; more gain little beside what the report does itself."""


def svg_of(spec: str) -> str:
    """The raw SVG of a spec in JSON, which loads nothing from elsewhere. ValueError if it fails."""
    import vl_convert  # takes 30 ms, and only a report needs it

    return vl_convert.vegalite_to_svg(spec, allowed_base_urls=[])


def pdf_of(spec: str) -> bytes:
    """The same as a PDF of one page."""
    import vl_convert

    return vl_convert.vegalite_to_pdf(spec, allowed_base_urls=[])


def svgs_of(specs: Sequence[str], processes: int | None = None) -> dict[str, str]:
    """SVG by spec of those that could be drawn in parallel; the others are for `svg_of`.

    `processes` is how many (by default as many as this process has cores); with fewer than two, or
    few specs, none is drawn here.
    """
    wanted = deque(dict.fromkeys(specs))
    cores = len(os.sched_getaffinity(0)) if processes is None else processes
    count = min(cores, PROCESSES_MAX, len(wanted) // MANY)
    if count < 2:
        return {}
    found: dict[str, str] = {}
    with ThreadPoolExecutor(count) as threads:
        for _ in range(count):
            threads.submit(_draw, wanted, found)
    return found


def _draw(wanted: deque[str], found: dict[str, str]) -> None:
    """Let one process draw until nothing is wanted, or until it ends by itself."""
    with (
        suppress(OSError),
        subprocess.Popen(
            [sys.executable, "-m", "iolab.report.vega"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            encoding="utf-8",
        ) as process,
    ):
        assert process.stdin is not None  # noqa: S101 - both were asked for above
        assert process.stdout is not None  # noqa: S101
        try:
            while wanted:
                try:
                    spec = wanted.popleft()
                except IndexError:  # another took the last
                    return
                process.stdin.write(spec + "\n")
                process.stdin.flush()
                answer = process.stdout.readline()
                if not answer:
                    return
                if drawn := json.loads(answer):
                    found[spec] = drawn
        finally:
            process.kill()


def serve(specs: IO[str], drawn: IO[str]) -> None:
    """Draw a spec a line until there is none; a line of JSON for each, null for one that fails."""
    for line in specs:
        try:
            svg = svg_of(line)
        except ValueError:
            svg = None
        drawn.write(json.dumps(svg) + "\n")
        drawn.flush()


if __name__ == "__main__":
    serve(sys.stdin, sys.stdout)
