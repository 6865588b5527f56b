"""Rules of rates and latencies: Little's law, gains, shares of a link and of a latency."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any, Final

from iolab.analyse.audit.document import Published, label, positive, span
from iolab.analyse.audit.figure import Span, exact, product
from iolab.analyse.audit.outcome import Agreement, Outcome
from iolab.analyse.audit.relation import agreement, compared, number, shown
from iolab.units import parse_size

_US_PER_S: Final = 1e6
_MB_PER_GBIT: Final = 1000 / 8

LITTLE_SLACK: Final = 0.05
"""A mean read off a chart, of a rate read off another: closer is chance."""


def littles_law(published: Published) -> Iterator[Outcome]:
    """Machines x threads x depth are in flight; so is rate x mean latency at full load.

    The highest latency at a depth belongs to the largest load, as does the highest rate: a closed
    loop holds as many I/Os in flight as it was told to. Source: Little 1961.
    """
    threads = number(published.table("method").get("threads_per_vm"))
    if threads is None:
        return
    for one in published.tables("result"):
        machines, rate = number(one.get("vms")), span(one.get("max_iops"))
        deepest = _deepest(one.get("mean_latency_us"))
        if machines is None or rate is None or deepest is None:
            continue
        depth, latency_us = deepest
        asked = exact(machines * threads * depth)
        made = rate * latency_us / exact(_US_PER_S)
        verdict = agreement(asked, made, LITTLE_SLACK)
        so = "is" if verdict is Agreement.AGREES else "is not"
        says = (
            f"{machines:g} machines x {threads:g} threads x depth {depth} are {asked.low:,.0f} in "
            f"flight, which {so} what rate x latency gives ({shown(made, 'I/Os')})."
        )
        yield Outcome("littles-law", label(one), verdict, says, f"{asked.low:g}", shown(made, ""))


def _deepest(latencies: object) -> tuple[int, Span] | None:
    """The largest depth with a latency, and the highest latency there."""
    found: list[tuple[int, Span]] = []
    for name, value in latencies.items() if isinstance(latencies, dict) else ():
        depth = name.removeprefix("qd").removesuffix("_max")
        latency = span(value)
        if depth.isdecimal() and latency is not None:
            top = span(value[-1]) if isinstance(value, list) else latency
            found.append((int(depth), top or latency))
    return max(found, key=lambda one: one[0], default=None)


def gains(published: Published) -> Iterator[Outcome]:
    """A claimed factor against the two figures that it is of, where both were printed."""
    for one in published.tables("result"):
        for name, key, rises in (("ops_s", "gain_ops", 1), ("p99_99_read_ms", "gain_latency", 0)):
            both = one.get(name)
            claimed = span(one.get(key))
            if claimed is None or not isinstance(both, dict):
                continue
            mine, other = positive(both.get("measured")), positive(both.get("competitor"))
            if mine is None or other is None:
                continue
            made = mine / other if rises else other / mine
            subject = f"{label(one)}, {key.replace('_', ' ')}"
            yield compared("gains", subject, f"a factor of {one[key]}", claimed, made, "")


def link_share(published: Published) -> Iterator[Outcome]:
    """Printed percentages of a port's capacity, by bytes and by frames."""
    node, hardware = published.table("single_node"), published.table("hardware")
    port, frames = (
        positive(hardware.get("port_gbit_s")),
        positive(hardware.get("port_max_frames_s")),
    )
    pairs = (
        ("port_tx_mb_s", "port_tx_printed_pct_of_capacity", _megabytes(port)),
        ("port_frames_s", "port_frames_printed_pct_of_capacity", frames),
    )
    for name, share, capacity in pairs:
        used, stated = span(node.get(name)), span(node.get(share))
        if used is None or stated is None or capacity is None:
            continue
        made = product([used, exact(100)]) / capacity
        subject = f"a port's {'bytes' if 'mb_s' in name else 'frames'}"
        yield compared("link-share", subject, f"{node[share]} %", stated, made, "%")


def _megabytes(gigabits: Span | None) -> Span | None:
    return None if gigabits is None else exact(gigabits.middle * _MB_PER_GBIT)


def latency_share(published: Published) -> Iterator[Outcome]:
    """How much of a machine's latency its drives take: the printed share against both figures."""
    node = published.table("single_node")
    drive = span(node.get("ssd_write_latency_us"))
    stated = span(node.get("ssd_write_latency_printed_pct_of_vm_latency"))
    whole = [
        found[1]
        for one in published.tables("result")
        if _is_mix_of(one, published) and (found := _deepest(one.get("mean_latency_us")))
    ]
    if drive is None or stated is None or not whole or whole[0].low <= 0:
        return
    made = product([drive, exact(100)]) / whole[0]
    said = f"{node['ssd_write_latency_printed_pct_of_vm_latency']} %"
    yield compared("latency-share", "a drive's write latency", said, stated, made, "%")


def replication(published: Published) -> Iterator[Outcome]:
    """What the drives of one node did against what its machines asked, each write many times.

    Machines' I/Os are spread evenly over the nodes; reads are served once.
    """
    method, node = published.table("method"), published.table("single_node")
    nodes, copies = number(method.get("nodes")), number(method.get("replication"))
    stated = span(node.get("node_iops"))
    mixes = [one for one in published.tables("result") if _is_mix_of(one, published)]
    if None in (nodes, copies, stated) or not mixes or stated is None:
        return
    rate, writes = span(mixes[0].get("max_iops")), number(mixes[0].get("write_percent"))
    if rate is None or writes is None or not nodes or copies is None:
        return
    factor = 1 - writes / 100 + copies * writes / 100
    made = product([rate, exact(factor / nodes)])
    said = f"{stated.middle:,.0f} IOPS"
    yield compared("replication", f"one node at {writes:g} % writes", said, stated, made, "IOPS")


def drives_of_node(published: Published) -> Iterator[Outcome]:
    """The rate of a node's drives, one by one, against the rate of the node."""
    node = published.table("single_node")
    each, whole = span(node.get("ssd_iops")), span(node.get("node_iops"))
    count = _drives(str(published.table("hardware").get("node", "")))
    if each is None or whole is None or count is None:
        return
    made = product([each, exact(count)])
    said = f"{whole.middle:,.0f} IOPS"
    yield compared("drives", f"a node of {count} drives", said, whole, made, "IOPS")


def _drives(text: str) -> int | None:
    """`8x Micron 7300 PRO 3.84TB` in a list of parts: how many."""
    for part in text.split(","):
        count, times, rest = part.strip().partition("x ")
        if times and count.isdecimal() and rest.rstrip(") ").endswith("TB"):
            return int(count)
    return None


def network(published: Published) -> Iterator[Outcome]:
    """What a node must send so that its writes lie on other nodes too, against what a port sent.

    The copies of a node's writes leave it by its ports; reads stay where they are. Nobody says that
    ports share evenly, so a difference is a doubt.
    """
    method, node = published.table("method"), published.table("single_node")
    nodes, copies = number(method.get("nodes")), number(method.get("replication"))
    sent, block = span(node.get("port_tx_mb_s")), parse_block(method.get("block_size"))
    ports = _ports(str(published.table("hardware").get("node", "")))
    mixes = [one for one in published.tables("result") if _is_mix_of(one, published)]
    if sent is None or not (nodes and copies and block and ports and mixes):
        return
    rate, writes = span(mixes[0].get("max_iops")), number(mixes[0].get("write_percent"))
    if rate is None or writes is None:
        return
    bytes_each = writes / 100 * (copies - 1) * block / nodes / ports
    made = product([rate, exact(bytes_each / 1e6)])
    fine = agreement(sent, made) is Agreement.AGREES
    says = (
        f"A port sent {sent.middle:g} MB/s; the copies of a node's writes are "
        f"{shown(made, 'MB/s')} on each of {ports} ports"
    )
    says += "." if fine else ": ports are not shared evenly, or more than copies is sent."
    verdict = Agreement.AGREES if fine else Agreement.DOUBTFUL
    yield Outcome(
        "network", "a port's bytes", verdict, says, f"{sent.middle:g} MB/s", shown(made, "")
    )


def closed_loop(published: Published) -> Iterator[Outcome]:
    """Of threads that wait for answers, threads over rate is the mean latency, below p99.99."""
    for one in published.tables("result"):
        threads, rates = number(one.get("threads")), one.get("ops_s")
        latencies = one.get("p99_99_read_ms")
        if threads is None or not isinstance(rates, dict) or not isinstance(latencies, dict):
            continue
        for side in rates:
            rate, high = positive(rates[side]), span(latencies.get(side))
            if rate is None or high is None:
                continue
            mean = exact(threads * 1000) / rate
            fine = mean.low <= high.high
            verdict = Agreement.AGREES if fine else Agreement.CONTRADICTS
            says = (
                f"{threads:g} threads at that rate wait {shown(mean, 'ms')} on average, "
                f"{'below' if fine else 'above'} the printed p99.99 of {latencies[side]} ms."
            )
            yield Outcome("closed-loop", f"{label(one)}, {side}", verdict, says)


def gain_pairs(published: Published) -> Iterator[Outcome]:
    """The largest gain in rate and in latency: of a closed loop's mean they are one and the same.

    With as many threads, a rate that is 25 % higher is a mean latency 25 % higher for the other,
    or 20 % lower for oneself. Another number is of another latency than the mean.
    """
    for one in published.tables("result"):
        rate, latency = span(one.get("max_gain_ops_pct")), span(one.get("max_gain_latency_pct"))
        if rate is None or latency is None:
            continue
        higher = rate
        lower = Span(100 - 1e4 / (100 + rate.low), 100 - 1e4 / (100 + rate.high))
        fine = any(agreement(latency, made) is Agreement.AGREES for made in (higher, lower))
        verdict = Agreement.AGREES if fine else Agreement.DOUBTFUL
        says = (
            f"A rate {one['max_gain_ops_pct']} % higher makes the mean latency {shown(lower, '%')} "
            f"lower, or the other's {shown(higher, '%')} higher; printed is a gain of "
            f"{one['max_gain_latency_pct']} %"
        )
        says += "." if fine else ": of another latency than the mean, or at another load."
        yield Outcome("gain-pairs", label(one), verdict, says)


def _ports(text: str) -> int | None:
    """`2x four-port 25GbE`: eight."""
    found = _PORTS.search(text)
    return int(found[1]) * _WORDS.index(found[2]) if found else None


_WORDS: Final = ("none", "one", "two", "three", "four")
_PORTS: Final = re.compile(r"(\d+)x (one|two|three|four)-port")


def parse_block(value: object) -> int | None:
    """A block size such as `4k` in bytes, None where it is none."""
    try:
        return parse_size(value) if isinstance(value, str | int) else None
    except ValueError:
        return None


def _is_mix_of(one: Mapping[str, Any], published: Published) -> bool:
    """Whether a result is of the mix at which one node was watched, as the set's method says it."""
    told = _MIX.search(str(published.table("method").get("reported_node", "")))
    return told is not None and number(one.get("write_percent")) == float(told[2])


_MIX: Final = re.compile(r"\b(\d{1,3})/(\d{1,3})\b")
"""`70/30`: reads and writes."""
