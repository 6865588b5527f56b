"""Checks of load on a key-value store: what latencies stand for, and whether clients held it up."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import numpy as np

from iolab.analyse.checks.arrivals import ACHIEVED_LEAST
from iolab.analyse.checks.client import BUSY_CORES
from iolab.analyse.checks.fleet import unevenness
from iolab.analyse.checks.registry import (
    Numbers,
    Said,
    check,
    indicative,
    percent,
    unchecked,
    valid,
    worst,
)
from iolab.analyse.key_value.load import KeyValueLoad
from iolab.analyse.key_value.summary import KEY_PERCENTILES
from iolab.analyse.method.quantiles import decides
from iolab.analyse.percentiles import ios_needed, is_supported
from iolab.analyse.view import RunView
from iolab.model.key_value import KeyOperation, KeyValueJob
from iolab.model.sample import Floats
from iolab.units import format_count, format_ns, format_rate_bytes

WIDE_BIN: Final = 0.70
"""How much wider than its lower edge a bin may be: db_bench's are up to 67 %, but for those of one
and two microseconds, within which everything that a cache answers may lie."""

APART: Final = 2.0
"""Intended over service latency at p99 from which waits that the service time does not show are
more than all that it shows."""

APART_AT: Final = 99.0

WRITER_LEAST: Final = 0.90
"""Share of its rate that a writer beside readers must have kept, for the readers of all
configurations to have had the same beside them; db_bench itself keeps a low rate to a few per cent
only."""


def key_percentiles(view: RunView) -> Said:
    """percentile-support of load on a key-value store: the operation of which there were fewest."""
    load = view.key_value_load
    hosts = range(len(view.hosts))
    shown = [one for one in load.operations if one is not KeyOperation.ALL]
    counts = {one: known for one in shown if (known := load.samples(one, hosts))}
    if not counts:
        return indicative("No latency is known: rates only.", operations=0)
    fewest = min(counts, key=lambda one: counts[one])
    total = counts[fewest]
    source = "in the window" if load.histogram(fewest, hosts) else "of the whole run, warm-up too"
    evidence: Numbers = {"operation": fewest.word, "operations": total, "source": source}
    count = f"{format_count(total)} latencies of {fewest.word} ({source})"
    lacking = [(name, at) for name, at in KEY_PERCENTILES if not is_supported(total, at)]
    stalls = view.steady.episodes if view.steady else 0
    if not lacking and decides(stalls):
        return valid(
            f"{stalls} stalls decide the percentiles from p99.9 on: told as more than p99.",
            **evidence,
            stalls=stalls,
        )
    if not lacking:
        return valid(f"{count}, the fewest, support every percentile.", **evidence)
    needs = ", ".join(f"p{at:g} ({format_count(ios_needed(at))})" for _, at in lacking)
    verdict = indicative if lacking[0][0] == KEY_PERCENTILES[0][0] else valid
    return verdict(f"{count} are too few for {needs}: not printed.", **evidence)


@check("wide-bins", "Percentiles known to wide bins only")
def wide_bins(view: RunView) -> Said:
    """Whether the engine's own bins tell where a percentile lies."""
    widths = list(_widths(view.key_value_load))
    if not widths:
        return valid("Latencies are in bins of at most 1.6 %.", width=1 / 64)
    return worst(widths, most="width")


def _widths(load: KeyValueLoad) -> Iterator[Said]:
    """The widest bin of a percentile that is printed, of each operation that has wide bins."""
    hosts = range(len(load.seconds))
    for operation in load.operations:
        if load.histogram(operation, hosts) is not None:
            continue
        told = load.binned(operation, hosts)
        if told is None:
            continue
        printed = [at for _, at in KEY_PERCENTILES if is_supported(told.count, at)]
        for at in printed:
            low, high = told.bounds_ns(at / 100)
            width = told.relative_width(at / 100)
            evidence: Numbers = {
                "operation": operation.word,
                "percentile": at,
                "low_ns": low,
                "high_ns": high,
                "width": width if np.isfinite(width) else None,
                "resolution_ns": told.resolution_ns,
            }
            said = (
                f"p{at:g} of {operation.word} lies between {format_ns(low)} and {format_ns(high)}"
            )
            verdict = indicative if width > WIDE_BIN else valid
            yield verdict(f"The engine's own bins tell no more than that {said}.", **evidence)


def key_value_omission(view: RunView) -> Said:
    """coordinated-omission of load on a key-value store: service against intended latency."""
    job = view.key_value_job
    rate = None if isinstance(job, KeyValueJob) else job.rate_ops_per_s
    if rate is None:
        return valid(
            f"Closed loop of {job.threads} threads a client: latencies are service times at that "
            "concurrency.",
            open_loop=False,
            threads=job.threads,
        )
    kept = [_kept(view, index, rate) for index in range(len(view.hosts))]
    return worst([*kept, *_apart(view.key_value_load)], least="achieved")


def _kept(view: RunView, index: int, rate: int) -> Said:
    host, load = view.hosts[index], view.key_value_load
    if load.seconds[index] <= 0:
        return unchecked(f"no operation was measured on {host.host}")
    achieved = float(load.rates[index]) / rate
    evidence: Numbers = {
        "host": host.host,
        "open_loop": True,
        "target_ops_per_s": rate,
        "achieved": achieved,
    }
    said = f"{percent(achieved)} of {format_count(rate)} ops/s were kept{view.on(host)}"
    if achieved < ACHIEVED_LEAST:
        return indicative(
            f"{said}: intended latencies grow as long as the run is, and service times are those "
            "of a closed loop.",
            **evidence,
        )
    return valid(f"{said}.", **evidence)


def _apart(load: KeyValueLoad) -> Iterator[Said]:
    """Each operation's intended latency against its service time."""
    hosts = range(len(load.seconds))
    for operation in load.operations:
        if operation.is_intended or operation.intended is None:
            continue
        service = load.histogram(operation, hosts)
        intended = load.histogram(operation.intended, hosts)
        if service is None or not is_supported(service.total, APART_AT):
            continue
        if intended is None:
            yield indicative(
                f"Only service times of {operation.word} are known: waits are not in them.",
                operation=operation.word,
            )
            continue
        short = service.percentile_ns(APART_AT) or 1.0
        long = intended.percentile_ns(APART_AT) or 0.0
        evidence: Numbers = {
            "operation": operation.word,
            "service_p99_ns": short,
            "intended_p99_ns": long,
            "ratio": long / short,
        }
        said = (
            f"The p99 of {operation.word} is {format_ns(short)} from its start and "
            f"{format_ns(long)} from when it was due"
        )
        if long > APART * short:
            yield indicative(f"{said}: only the latter is latency at that rate.", **evidence)
        else:
            yield valid(f"{said}.", **evidence)


@check("writer-rate", "Writer beside readers without its rate")
def writer_rate(view: RunView) -> Said:
    """Whether the readers of every configuration have the same writes beside them."""
    job = view.key_value_job
    if not isinstance(job, KeyValueJob) or not job.has_writer:
        return valid("No writer beside readers.", writer=False)
    asked = job.write_bytes_per_s
    written = view.key_value_load.rates_of(KeyOperation.WRITE) * job.loaded.entry_bytes
    if asked is None:
        return indicative(
            "The writer beside the readers has no limit: a faster device has another load.",
            writer=True,
            written_bytes_per_s=float(written.sum()),
        )
    return worst(_written(view, i, float(written[i]), asked) for i in range(len(view.hosts)))


def _written(view: RunView, index: int, written: float, asked: int) -> Said:
    host = view.hosts[index]
    evidence: Numbers = {
        "host": host.host,
        "written_bytes_per_s": written,
        "asked_bytes_per_s": asked,
        "achieved": written / asked,
    }
    if not written:
        return unchecked(f"what the writer{view.on(host)} did in the window is not known")
    said = (
        f"The writer{view.on(host)} wrote {format_rate_bytes(written)} of "
        f"{format_rate_bytes(asked)}"
    )
    if written < WRITER_LEAST * asked:
        return indicative(f"{said}: the readers had fewer writes beside them.", **evidence)
    return valid(f"{said}.", **evidence)


def key_value_cpu(view: RunView) -> Said:
    """cpu-bound-client of load on a key-value store."""
    return worst((_busy(view, index) for index in range(len(view.hosts))), most="cores_busy_share")


def _busy(view: RunView, index: int) -> Said:
    host = view.hosts[index]
    share = view.mean_of(index, "cpu", "all", "busy_share")
    facts = view.facts_of(host)
    evidence: Numbers = {
        "host": host.host,
        "cores_busy_share": share,
        "threads": view.key_value_job.threads,
        "cores": facts.cpu.threads if facts else None,
    }
    if share is None:
        return unchecked(f"{host.host} has no telemetry of its cores", **evidence)
    said = f"All cores{view.on(host)} were {percent(share)} busy"
    if share >= BUSY_CORES:
        return indicative(f"{said}: the client may be the limit.", **evidence)
    return valid(f"{said}.", **evidence)


def key_value_uneven(view: RunView) -> Said:
    """uneven-fleet of load on a key-value store: whole operations a second of each client."""
    rates: Floats = view.key_value_load.rates
    return unevenness(view, rates, rates, "ops_per_s")
