"""How evenly, and how much at the same time, the hosts of one run, or of one phase of it, worked.

Starts and ends are the engine's own first and last I/O, brought to the controller's clock. Rates
are I/Os per second in the window that is measured. Jain's index of n rates x is
(sum x)^2 / (n sum x^2): 1 when all are equal, k/n when k of them share everything (Jain, Chiu,
Hawe 1984).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from iolab.analysis.sums import LoadSums
from iolab.analysis.window import MeasuredPart, Window
from iolab.core.metric import HostEvenness
from iolab.core.run import HostRun, RunRecord
from iolab.core.samples import Floats
from iolab.units import NS_PER_S


def host_evenness_of_run(record: RunRecord, load_sums: LoadSums) -> HostEvenness | None:
    """The spread of a run of several hosts that all did I/O, else None."""
    return host_evenness(
        record.hosts, host_io_windows(record, load_sums.measured_part), host_rates(load_sums)
    )


def host_evenness(
    hosts: Sequence[HostRun], io_windows: Sequence[Window | None], rates: Floats
) -> HostEvenness | None:
    """The spread of several hosts that all worked, by when and how fast each did; else None."""
    present = [span for span in io_windows if span is not None]
    if len(present) < 2 or len(present) < len(io_windows):
        return None
    starts = [span.start_ns for span in present]
    ends = [span.end_ns for span in present]
    whole_ns = max(ends) - min(starts)
    least, most = int(np.argmin(rates)), int(np.argmax(rates))
    return HostEvenness(
        start_skew_ns=max(starts) - min(starts),
        end_skew_ns=max(ends) - min(ends),
        overlap=max(min(ends) - max(starts), 0) / whole_ns if whole_ns > 0 else 0.0,
        first_done_s=(min(ends) - min(starts)) / NS_PER_S,
        last_done_s=whole_ns / NS_PER_S,
        slowest=hosts[least].host,
        fastest=hosts[most].host,
        jain=jain_index(rates),
        max_over_min=max_over_min(rates),
        drift_ns=largest_clock_drift_ns(hosts),
    )


def host_io_windows(record: RunRecord, measured_part: MeasuredPart) -> tuple[Window | None, ...]:
    """Each host's first to last I/O on the controller's clock, None where it did none.

    Where an engine does not tell these moments, the ends of its intervals stand for them.
    """
    return tuple(
        _host_io_window(host, counted)
        for host, counted in zip(record.hosts, measured_part.whole_run_windows, strict=True)
    )


def host_rates(load_sums: LoadSums) -> Floats:
    """Each host's I/Os per second in the measured window, 0 where it measured none."""
    ios = load_sums.ios.sum(axis=1).astype(np.float64)
    rates = np.divide(ios, load_sums.seconds, out=np.zeros_like(ios), where=load_sums.seconds > 0)
    return np.asarray(rates)


def jain_index(rates: Floats) -> float:
    """Jain's index of at least one rate; 1 where all of them are 0, which is equal."""
    squares = float(np.square(rates).sum())
    return float(rates.sum()) ** 2 / (len(rates) * squares) if squares > 0 else 1.0


def max_over_min(rates: Floats) -> float | None:
    """The largest rate over the smallest, None when that is 0."""
    least = float(rates.min())
    return float(rates.max()) / least if least > 0 else None


def host_clock_drift_ns(host: HostRun) -> int | None:
    """How far the host's clock moved against the controller's during the run; None if unknown."""
    after = host.clock_offset_after_ns
    return None if after is None else after - host.clock_offset_ns


def largest_clock_drift_ns(hosts: Sequence[HostRun]) -> int | None:
    """The drift that is furthest from none; None where no clock was read twice."""
    drifts = [drift for host in hosts if (drift := host_clock_drift_ns(host)) is not None]
    return max(drifts, key=abs, default=None)


def _host_io_window(host: HostRun, fallback_window: Window | None) -> Window | None:
    if host.start_real_ns is None or host.end_real_ns is None:
        return fallback_window
    if host.end_real_ns < host.start_real_ns:
        return fallback_window
    return Window(
        host.start_real_ns - host.clock_offset_ns, host.end_real_ns - host.clock_offset_ns
    )
