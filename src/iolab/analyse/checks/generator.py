"""Checks of the engine itself: its pace, its own limit, and the blocks that it looked at."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from iolab.analyse.checks.registry import (
    Numbers,
    Said,
    check,
    indicative,
    invalid,
    percent,
    unchecked,
    valid,
    worst,
)
from iolab.analyse.load import DIRECTIONS
from iolab.analyse.view import RunView
from iolab.model.generator import GeneratorTotals
from iolab.model.run import HostRun
from iolab.units import format_count, format_ns

LATE_SHARE: Final = 0.1
"""Lateness of the generator, as a share of the response time at the same percentile, from which a
tenth of what is called the target's is the generator's own."""

LATE_INTERVALS: Final = 1.0
"""The same in mean intervals between arrivals of the whole host: beyond one, arrivals come in
bunches that nobody asked for."""

BOUND_SHARE: Final = 0.5
"""Share of what the generator reaches on a target that does nothing: from half on, more of each
I/O's time is its own than the target's."""

_NS_PER_S: Final = 1e9


@check("generator-late", "Load generator behind its schedule")
def generator_late(view: RunView) -> Said:
    """Whether I/Os of an open loop were submitted when they were due."""
    return worst((_late(view, index) for index in range(len(view.hosts))), most="share")


def _late(view: RunView, index: int) -> Said:
    host, job = view.hosts[index], view.record.run.point.io_on(view.hosts[index].host)
    if view.service is None or job.asked_iops is None:
        return valid("No I/O was due at a set time, so none was late.", open_loop=False)
    generator = _generator(host)
    if generator is None or generator.lateness is None:
        return unchecked(f"the engine{view.on(host)} told no lateness", host=host.host)
    ways = [int(way) for way in DIRECTIONS]
    response_ns = view.load.histogram([index], ways).percentile_ns(99.0)
    late = generator.lateness
    interval_ns = _NS_PER_S / (job.asked_iops * job.numjobs)
    share = late.p99_ns / response_ns if response_ns else None
    evidence: Numbers = {
        "host": host.host,
        "open_loop": True,
        "late_ns_p50": late.p50_ns,
        "late_ns_p99": late.p99_ns,
        "late_ns_max": late.max_ns,
        "interval_ns": interval_ns,
        "share": share,
    }
    said = f"99 % of the I/Os{view.on(host)} were at most {format_ns(late.p99_ns)} late"
    if share is not None and share > LATE_SHARE:
        return indicative(
            f"{said}, {percent(share)} of the response time at that percentile: the tail is partly "
            "the generator's.",
            **evidence,
        )
    if late.p99_ns > LATE_INTERVALS * interval_ns:
        return indicative(
            f"{said}, where one was due every {format_ns(interval_ns)}: they came in bunches.",
            **evidence,
        )
    return valid(f"{said}.", **evidence)


@check("generator-bound", "Load generator at its own limit")
def generator_bound(view: RunView) -> Said:
    """Whether the generator could have made much more load than it did."""
    return worst((_bound(view, index) for index in range(len(view.hosts))), most="share")


def _bound(view: RunView, index: int) -> Said:
    """A run without a ceiling is no objection: what its jobs used of their cores is checked too.

    One whose ceiling should have been had, and was not, is.
    """
    host, seconds = view.hosts[index], float(view.load.seconds[index])
    engine = view.record.run.point.io_on(host.host).engine
    if host.ceiling_fault:
        why = f"{engine} did not make its load on a target that does nothing{view.on(host)}"
        return unchecked(f"{why} ({host.ceiling_fault})", host=host.host)
    if host.ceiling_iops is None or seconds <= 0:
        return valid(f"No ceiling of {engine} is known{view.on(host)}.", host=host.host)
    iops = float(view.load.ios[index].sum()) / seconds
    share = iops / host.ceiling_iops
    evidence: Numbers = {
        "host": host.host,
        "iops": iops,
        "ceiling_iops": host.ceiling_iops,
        "share": share,
    }
    said = (
        f"The load{view.on(host)} was {percent(share)} of the {format_count(host.ceiling_iops)} "
        f"IOPS that {engine} makes there on a target that does nothing"
    )
    if share >= BOUND_SHARE:
        return indicative(f"{said}: {engine} may be the limit.", **evidence)
    return valid(f"{said}.", **evidence)


@check("wrong-blocks", "Blocks that do not hold what was written", needs_load=False)
def wrong_blocks(view: RunView) -> Said:
    """Whether every block that was read and verified held what was last written there."""
    return worst((said for host in view.hosts for said in _verified(view, host)), most="wrong")


def _verified(view: RunView, host: HostRun) -> Iterator[Said]:
    generator = _generator(host)
    verify = generator.verify if generator else None
    if not view.job.verify:
        yield valid("What blocks hold was not asked for.", verified=False)
    elif verify is None or not verify.checked:
        if view.access.reads:
            yield unchecked(f"no block was verified{view.on(host)}", host=host.host)
        yield valid("Blocks were stamped; none was read.", verified=True)
    else:
        kinds = ("torn", "stale", "misplaced", "corrupt")
        evidence: Numbers = {
            "host": host.host,
            "verified": True,
            "checked": verify.checked,
            "wrong": verify.wrong,
            **{kind: getattr(verify, kind) for kind in kinds},
        }
        if not verify.wrong:
            yield valid(
                f"All {format_count(verify.checked)} blocks verified{view.on(host)} held what was "
                "written.",
                **evidence,
            )
            return
        counts = (f"{format_count(getattr(verify, kind))} {kind}" for kind in kinds)
        first = " ".join(verify.first)
        yield invalid(
            f"{format_count(verify.wrong)} of {format_count(verify.checked)} blocks{view.on(host)} "
            f"did not hold what was written ({', '.join(counts)}). {first}".strip(),
            **evidence,
        )


def _generator(host: HostRun) -> GeneratorTotals | None:
    return host.totals.generator if host.totals else None
