"""How long the report of a large session takes to make, and how soon a browser shows one.

Run as `python -m bench.report`; prints seconds, of the clock and of processors. The large session
is synthetic (see bench/synthetic.py): 5,000 points on 3 configurations, or that of a directory
given with `--session`. What a browser shows is a report of five workloads on two configurations,
and the large one: milliseconds until the first paint, as Chromium itself tells them.
"""

from __future__ import annotations

import argparse
import os
import resource
import sys
import tempfile
import time
from pathlib import Path
from statistics import median
from typing import Final

if __package__ in {None, ""}:
    sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from playwright.sync_api import Browser, sync_playwright
from tests.report.studies import sweep

from bench.store import write_session
from bench.synthetic import Shape
from iolab.registry import report_kinds
from iolab.report.brief import Brief
from iolab.report.formats.html import render_html
from iolab.report.gather import build_brief
from iolab.store.reader import SessionReader

LIMIT_S: Final = 15
"""A report of 5,000 points and 3 configurations on two cores."""

LIMIT_PAINT_MS: Final = 1000
TRIES: Final = 5
CHROMIUM: Final = "/usr/bin/chromium"
CONFIGURATIONS: Final = 3
PAINT: Final = """() => new Promise(done => new PerformanceObserver(seen =>
  done(seen.getEntries().find(one => one.name === 'first-contentful-paint').startTime))
  .observe({type: 'paint', buffered: true}))"""


def processors_s() -> float:
    """The time on processors of this process and of those that it has waited for."""
    used = (resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return sum(one.ru_utime + one.ru_stime for one in used)


def make_report(session: Path) -> tuple[str, float]:
    """Read and render a session, as `iolab report` does; the page and its seconds."""
    start, used = time.perf_counter(), processors_s()
    brief: Brief = build_brief(report_kinds(), SessionReader(session))
    read, read_used = time.perf_counter() - start, processors_s() - used
    page = render_html(brief)
    taken, taken_used = time.perf_counter() - start, processors_s() - used
    charts = page.count('<svg class="chart"')
    print(f"{len(brief.results):,} runs, {charts} charts, {len(page) / 1e6:.1f} MB")
    print(f"read and judged  {read:6.1f} s ({read_used:.1f} s of processors)")
    print(f"whole report     {taken:6.1f} s ({taken_used:.1f} s of processors)")
    load = os.getloadavg()[0]
    print(f"on {len(os.sched_getaffinity(0))} cores, of which others and this want {load:.1f}")
    return page, taken


def first_paint_ms(browser: Browser, page: Path) -> float:
    """The median of some visits, each in a new context."""
    found = []
    for _ in range(TRIES):
        context = browser.new_context(viewport={"width": 1280, "height": 900})
        tab = context.new_page()
        tab.goto(page.as_uri(), wait_until="commit")
        found.append(float(tab.evaluate(PAINT)))
        context.close()
    return median(found)


def measure(session: Path, folder: Path) -> bool:
    """Print all of it; whether the limits are kept."""
    large, taken = make_report(session)
    small = render_html(build_brief(report_kinds(), sweep(("one", "two"))))
    quick = taken < LIMIT_S
    with sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        for name, text in (("five workloads", small), ("the large one", large)):
            page = folder / "report.html"
            page.write_text(text, encoding="utf-8")
            paint = first_paint_ms(browser, page)
            print(f"first paint, {name:15} {paint:6.0f} ms ({len(text) / 1e6:.1f} MB)")
            quick = quick and (text is large or paint < LIMIT_PAINT_MS)
        browser.close()
    return quick


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--session", type=Path, help="a session made before")
    parser.add_argument("--points", type=int, default=5000, help="of all configurations together")
    chosen = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        session: Path = chosen.session or Path(folder) / "session"
        if chosen.session is None:
            each = -(-chosen.points // CONFIGURATIONS)
            shape = Shape(
                points=each, seconds=2, cores=1, disks=1, nics=1, configurations=CONFIGURATIONS
            )
            write_session(session, shape)
        return 0 if measure(session, Path(folder)) else 1


if __name__ == "__main__":
    sys.exit(main())
