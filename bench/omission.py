"""What coordinated omission hides: one client against a server that stands still now and then.

The null server of the agent is stopped for STALL_S in every EVERY_S. The same GETs are made in a
closed loop, as fast as CONCURRENCY of them at a time can, and in an open loop at RATE; the figure
has latency by percentile of both. A closed loop waits with the server: of all that should have come
meanwhile it knows nothing. With a FILE, as docs/images/coordinated-omission.svg, it draws that.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import numpy as np

from bench.objects import SMALL, Load, null_server_process, run_engine
from iolab.core.bins import BIN_COUNT
from iolab.core.histogram import Histogram
from iolab.report.charts.chart import charts_filling_page_width
from iolab.report.charts.distribution import StyledLatencyCurve, build_latency_distribution_chart
from iolab.report.charts.palette import SERIES
from iolab.report.charts.run_series import latency_curve
from iolab.report.charts.svg import svg_document
from iolab.units import format_ns

STALL_S: Final = 0.2
EVERY_S: Final = 2.0
CONCURRENCY: Final = 16
RATE: Final = 2000.0
PERCENTILES: Final = (50.0, 90.0, 99.0, 99.9)


@contextmanager
def stalls(server: subprocess.Popen[bytes]) -> Iterator[None]:
    """The server stands still now and then, while what is inside lasts."""
    is_over = threading.Event()

    def stop_and_go() -> None:
        while not is_over.wait(EVERY_S - STALL_S):
            os.kill(server.pid, signal.SIGSTOP)
            is_over.wait(STALL_S)
            os.kill(server.pid, signal.SIGCONT)

    thread = threading.Thread(target=stop_and_go)
    thread.start()
    try:
        yield
    finally:
        is_over.set()
        thread.join()


def histogram(row: dict[str, Any]) -> Histogram:
    """The latencies of a row of the engine's end."""
    counts = np.zeros(BIN_COUNT, dtype=np.int64)
    for index, count in row["bins"]:
        counts[index] = count
    return Histogram(counts)


def main() -> None:
    """Measure, print a line for each load, and write the figure where one is wanted."""
    with null_server_process(SMALL) as (server, url):
        with stalls(server):
            closed, _, _ = run_engine(Load("closed", "get", SMALL, CONCURRENCY), url)
        with stalls(server):
            load = Load("open", "get", SMALL, CONCURRENCY, keys={"rate": RATE})
            opened, _, _ = run_engine(load, url)
    found = {
        "closed loop": histogram(closed["object_get"]),
        "from its send": histogram(opened["object_get"]["service"]),
        "from when due": histogram(opened["object_get"]),
    }
    styled: list[StyledLatencyCurve] = []
    for (name, latencies), token in zip(found.items(), SERIES, strict=False):
        quantiles = [latencies.percentile_ns(percent) or 0.0 for percent in PERCENTILES]
        print(f"{name:<24}", *(f"{format_ns(ns):>9}" for ns in quantiles), latencies.counts.sum())
        styled.append(StyledLatencyCurve(latency_curve(name, latencies), name, token))
    if not sys.argv[1:]:
        return
    figure = build_latency_distribution_chart(
        "A server that stands still", "Latency by percentile", styled, "GETs"
    )
    (wide,) = charts_filling_page_width([figure])
    Path(sys.argv[1]).write_text(svg_document(wide), encoding="utf-8")


if __name__ == "__main__":
    main()
