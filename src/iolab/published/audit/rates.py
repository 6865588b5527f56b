"""Rules of rates and latencies: Little's law, mixes, and what copies of writes cost."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from itertools import pairwise
from typing import Any, Final

from iolab.analysis.quotients import fleets_with_single_client
from iolab.published.audit.document import (
    MODULES,
    FigureRange,
    PublishedElement,
    PublishedSet,
    element_label,
    exact_range,
    positive_range_or_none,
    printed_range,
)
from iolab.published.audit.figures import is_same_element
from iolab.published.audit.relations import (
    Agreement,
    AuditOutcome,
    FigureComparison,
    FigureQuantity,
    agreement_of_ranges,
    exact_relation_outcome,
    figure_outcome,
    inner_key_text,
    plausibility_outcome,
    printed_figure_text,
    printed_number,
    range_text,
    table_quantities,
)
from iolab.published.recomputed import (
    PrintedClaim,
    claimed_capacities,
    claimed_gains,
    claimed_quotients,
    published_configurations,
    published_maxima,
)
from iolab.text import percent_text
from iolab.units import parse_size

LITTLE_SLACK: Final = 0.05
"""A mean read off a chart, of a rate read off another: closer is chance."""

MIX_SLACK: Final = 0.1
"""Reads and writes that get in each other's way, or help each other, by so much are usual."""

_HIGH: Final = 99.0
"""Percentiles from here on lie above the mean of any latency that storage has."""

_AXES: Final = ("configuration", "vms", "threads", "block_size", "queue_depth")

FRAME_BYTES: Final = (64, 9216)
"""From the least that Ethernet has to the most that switches take."""

_PART: Final = r"\d{1,6} \w{1,30}"
_PARTS: Final = re.compile(rf"(\d{{1,6}}) (\w{{1,30}}) \(({_PART}(?:, {_PART}){{1,20}})\)")
_NIC: Final = re.compile(r"(\d{1,3})x [^\n]{0,40}?(\d{1,4}) ?Gb/s")


def audit_littles_law(published: PublishedSet) -> Iterator[AuditOutcome]:
    """Hosts x jobs x depth are in flight; so is rate x mean latency at full load.

    The highest latency at a depth belongs to the largest load, as does the highest rate: a closed
    loop holds as many I/Os in flight as it was told to. At a smaller depth the rate that follows is
    no higher than the largest, and the mean that follows lies below a high percentile. Source:
    Little 1961.
    """
    method = published.table("method")
    for element in published.iterate_elements():
        figures = [
            q
            for q in table_quantities(element.table)
            if "gain" not in q.name and "_per_" not in q.name
        ]
        rates = [
            q for q in figures if q.unit == "1/s" and q.value.low > 0 and _is_total_quantity(q)
        ]
        if (
            len({_quantity_direction(q) for q in rates}) > 1
        ):  # nobody says whether reads and writes ran together
            continue
        deepest = max((q.depth or 0 for q in figures if q.unit == "s"), default=0)
        for rate in rates:
            for latency in figures:
                depth = latency.depth or _queue_depth(element.table, latency.part_of)
                same = latency.depth is not None or latency.part_of == rate.part_of
                asked = _ios_in_flight(element.table, method, depth)
                same = same and latency.unit == "s" and _is_total_quantity(latency)
                if not same or asked is None or latency.value.low <= 0:
                    continue
                if latency.statistic == "mean" and _quantity_direction(
                    latency
                ) == _quantity_direction(rate):
                    lighter = latency.depth is not None and latency.depth < deepest
                    yield _mean_latency_outcome(element, asked, rate, latency, lighter=lighter)
                elif (latency.percentile or 0) >= _HIGH and latency.depth in (None, deepest):
                    yield _percentile_outcome(element, asked, rate, latency)
    yield from _unloaded_latency_outcomes(published)


def _quantity_direction(quantity: FigureQuantity) -> str:
    return next((way for way in ("read", "write") if way in quantity.total_of.split("_")), "")


def _is_total_quantity(quantity: FigureQuantity) -> bool:
    """Whether it is of all that a table tells, and not of its drives or of one layer."""
    return set(quantity.total_of.split("_")) <= {"", "best", "latency", "peak", "read", "write"}


def _ios_in_flight(table: Mapping[str, Any], method: Mapping[str, Any], depth: int) -> float | None:
    """What all clients, guests or threads of a table keep in flight; None where it is not told."""
    for load in ("vm", "client", "host"):
        count = printed_number(table.get(f"{load}s", method.get(f"{load}s")))
        for kind in ("threads", "jobs"):
            each = printed_number(table.get(f"{kind}_per_{load}", method.get(f"{kind}_per_{load}")))
            if count and each:
                return count * each * depth
    own = printed_number(table.get("threads", table.get("numjobs")))
    return own * depth if own else None


def _queue_depth(table: Mapping[str, Any], part: str) -> int:
    """The depth of a workload that a table has by name, or its own; 1 for none."""
    by_name = table.get("peak_at_iodepth")
    depth = by_name.get(part) if isinstance(by_name, dict) else table.get("iodepth")
    return depth if isinstance(depth, int) and depth > 0 else 1


def _mean_latency_outcome(
    element: PublishedElement,
    ios_in_flight: float,
    rate: FigureQuantity,
    latency: FigureQuantity,
    *,
    lighter: bool,
) -> AuditOutcome:
    computed = rate.value * latency.highest
    fine = (
        agreement_of_ranges(exact_range(ios_in_flight), computed, LITTLE_SLACK) is Agreement.AGREES
    )
    if lighter:  # the rate at this depth is asked / latency, and no higher than the largest
        fine = ios_in_flight <= computed.high * (1 + LITTLE_SLACK)
    so = f"{'is' if fine else 'is not'} {'within ' if lighter else ''}what"
    message = (
        f"{ios_in_flight:,.0f} in flight {so} {inner_key_text(rate.name)} {rate.printed} x "
        f"{inner_key_text(latency.name)} "
        f"{latency.printed} give ({range_text(computed, 'I/Os')})."
    )
    return exact_relation_outcome("littles-law", element, message, fine=fine)


def _percentile_outcome(
    element: PublishedElement, ios_in_flight: float, rate: FigureQuantity, latency: FigureQuantity
) -> AuditOutcome:
    mean = exact_range(ios_in_flight) / rate.value
    fine = mean.low <= latency.highest.high
    message = (
        f"{ios_in_flight:,.0f} in flight at {rate.printed}/s wait "
        f"{range_text(mean * exact_range(1e3), 'ms')} on "
        f"average, {'below' if fine else 'above'} {inner_key_text(latency.name)} of "
        f"{latency.printed}."
    )
    return exact_relation_outcome("littles-law", element, message, fine=fine)


def _unloaded_latency_outcomes(published: PublishedSet) -> Iterator[AuditOutcome]:
    """A rate x the latency of one I/O at a time is at most what was in flight: load adds latency.

    Of indicators whose job is told under the same name; bytes are I/Os of its block size.
    """
    for element in published.iterate_elements():
        hosts = printed_number(element.table.get("hosts"))
        by_indicator = {
            q.name.partition(".")[0]: q
            for q in table_quantities(element.table)
            if q.statistic in ("", "mean")
        }
        for job in published.array_tables("job"):
            way, _, indicator = str(job.get("id", "")).partition("-")
            alone = by_indicator.get(f"{way}_latency_us")
            named = [q for name, q in by_indicator.items() if name.startswith(f"{way}_{indicator}")]
            named = [q for q in named if "_per_" not in q.name and q.unit in ("1/s", "bytes/s")]
            jobs, depth, block = (
                printed_number(job.get("numjobs")),
                printed_number(job.get("iodepth")),
                _parse_block_bytes(job.get("bs")),
            )
            if alone is None or not (hosts and jobs and depth and block and named):
                continue
            if min(jobs, depth, block) <= 0:
                continue
            rate = named[0].value
            in_flight = (
                rate if named[0].unit == "1/s" else rate / exact_range(block)
            ) * alone.value
            asked = hosts * jobs * depth
            fine = in_flight.low <= asked
            message = (
                f"{inner_key_text(named[0].name)} {named[0].printed} x {alone.printed} us of "
                "one I/O "
                "at a "
                f"time are {range_text(in_flight, 'I/Os')} in flight, of {asked:,.0f} "
                f"({hosts:g} hosts x {jobs:g} jobs x {depth:g})."
            )
            yield exact_relation_outcome("littles-law", element, message, fine=fine)


def audit_mixes(published: PublishedSet) -> Iterator[AuditOutcome]:
    """A mix takes the time of its reads and of its writes, one after the other: 1/m = r/R + w/W.

    Nothing forbids another rate, as reads and writes may help each other.
    """
    percent = {str(table.get("id")): table for table in published.array_tables("workload")}
    for element in published.iterate_elements():
        peaks = [
            q for q in table_quantities(element.table) if q.unit == "1/s" and q.part_of in percent
        ]
        by_share: dict[tuple[object, float], FigureQuantity] = {}
        for q in peaks:
            percentage = percent[q.part_of]
            ways = {
                "randread": 0.0,
                "randwrite": 100.0,
                "randrw": 100 - (printed_number(percentage.get("rwmixread")) or 50),
            }
            if str(percentage.get("rw")) in ways:
                by_share[str(percentage.get("bs")), ways[str(percentage.get("rw"))]] = q
        yield from _mix_outcomes(
            {(element.name, *key): (element, q) for key, q in by_share.items()}
        )
    rows = [element for element in published.iterate_elements() if element.kind == "result"]
    by_axes: dict[tuple[str, object, float], tuple[PublishedElement, FigureQuantity]] = {}
    for row in rows:
        share = printed_number(row.table.get("write_percent"))
        for q in table_quantities(row.table):
            if (
                share is not None
                and q.unit == "1/s"
                and q.statistic == "max"
                and "gain" not in q.name
            ):
                axes = str([row.table.get(axis) for axis in _AXES])
                by_axes["", axes, share] = (row, q)
    yield from _mix_outcomes(by_axes)


def _mix_outcomes(
    by_share: Mapping[tuple[str, object, float], tuple[PublishedElement, FigureQuantity]],
) -> Iterator[AuditOutcome]:
    for (name, other, share), (element, q) in by_share.items():
        ends = [by_share.get((name, other, end)) for end in (0.0, 100.0)]
        if not 0 < share < 100 or ends[0] is None or ends[1] is None:
            continue
        reads, writes = ends[0][1].value, ends[1][1].value
        if reads.low <= 0 or writes.low <= 0:
            continue
        time = exact_range(1 - share / 100) / reads + exact_range(share / 100) / writes
        computed = exact_range(1) / time
        fine = agreement_of_ranges(q.value, computed, MIX_SLACK) is Agreement.AGREES
        message = (
            f"{q.part_of or inner_key_text(q.name)} at {share:g} % writes is {q.printed}; reads "
            "alone "
            f"({ends[0][1].printed}) and writes alone ({ends[1][1].printed}), one after the other, "
            f"make {range_text(computed, 'IOPS')}."
        )
        yield plausibility_outcome("mix", element.name, message, fine=fine, where=element.location)


def audit_client_scaling(published: PublishedSet) -> Iterator[AuditOutcome]:
    """Each client of a fleet does no more than one client alone on the same system."""
    for pair in fleets_with_single_client(
        published_configurations(published), published_maxima(published)
    ):
        kept = pair.scaling_efficiency
        if kept is None or kept.value is None:
            continue
        fine = (kept.low if kept.low is not None else kept.value) <= 1
        name = pair.fleet.configuration
        message = (
            f"{pair.fleet.workload}: each of {pair.fleet.hosts} clients does "
            f"{percent_text(kept.value)} of one alone."
        )
        where = published.element_location_text("example", {"id": name})
        yield plausibility_outcome("scaling", name, message, fine=fine, where=where)


def audit_replication(published: PublishedSet) -> Iterator[AuditOutcome]:
    """What the drives of one node did against what its machines asked, each write many times.

    Machines' I/Os are spread evenly over the nodes; reads are served once.
    """
    method = published.table("method")
    nodes, copies = printed_number(method.get("nodes")), printed_number(method.get("replication"))
    for node, rate, writes in _monitored_nodes_with_load(published):
        stated = printed_range(node.table.get("node_iops"))
        if stated is None or not nodes or copies is None:
            continue
        factor = 1 - writes / 100 + copies * writes / 100
        computed = rate * exact_range(factor / nodes)
        how = f"{rate.middle:,.0f} / {nodes:g} nodes x {factor:g}, each write on {copies:g}"
        text, subject = f"{stated.middle:,.0f} IOPS", f"one node at {writes:g} % writes"
        yield figure_outcome(
            FigureComparison(
                "replication", subject, text, stated, computed, "IOPS", how, node.location
            )
        )


def audit_node_drive_rates(published: PublishedSet) -> Iterator[AuditOutcome]:
    """The rate of a node's drives, one by one, against the rate of the node."""
    drives = [
        int(match[1])
        for element in published.iterate_elements()
        for text in element.table.values()
        for match in (MODULES.finditer(text) if isinstance(text, str) else ())
        if match[4] == "T"
    ]
    for element in published.iterate_elements():
        each, total = (
            printed_range(element.table.get("ssd_iops")),
            printed_range(element.table.get("node_iops")),
        )
        if each is not None and total is not None and len(drives) == 1:
            how = f"{drives[0]} drives x {printed_figure_text(element.table['ssd_iops'])}"
            text = f"{printed_figure_text(element.table['node_iops'])} IOPS"
            computed = each * exact_range(drives[0])
            yield figure_outcome(
                FigureComparison(
                    "drives", element.name, text, total, computed, "IOPS", how, element.location
                )
            )


def audit_network(published: PublishedSet) -> Iterator[AuditOutcome]:
    """What a node must send so that its writes lie on other nodes too, against what a port sent.

    The copies of a node's writes leave it by the ports that lead to other nodes; reads stay where
    they are. Nobody says that ports share evenly, so a difference is a doubt.
    """
    method = published.table("method")
    nodes, copies = printed_number(method.get("nodes")), printed_number(method.get("replication"))
    ports = printed_number(published.table("hardware").get("ports_between_nodes"))
    block = _parse_block_bytes(method.get("block_size"))
    for node, rate, writes in _monitored_nodes_with_load(published):
        sent = printed_range(node.table.get("port_tx_mb_s"))
        if sent is None or not (nodes and copies and block and ports):
            continue
        computed = rate * exact_range(writes / 100 * (copies - 1) * block / nodes / ports / 1e6)
        fine = agreement_of_ranges(sent, computed) is Agreement.AGREES
        text = range_text(computed, "MB/s")
        message = (
            f"A port sent {sent.middle:g} MB/s; the copies of a node's writes are "
            f"{computed.middle:.4g} MB/s ({text}) on each of {ports:g} ports between nodes"
        )
        message += "." if fine else ": ports are not shared evenly, or more than copies is sent."
        yield plausibility_outcome(
            "network", "a port's bytes", message, fine=fine, where=node.location
        )


def _monitored_nodes_with_load(
    published: PublishedSet,
) -> Iterator[tuple[PublishedElement, FigureRange, float]]:
    """A node that was watched, with the rate and the share of writes of all nodes meanwhile."""
    for element in published.iterate_elements():
        if "node_iops" not in element.table and "port_tx_mb_s" not in element.table:
            continue
        for other in published.array_tables("result"):
            rate, writes = (
                positive_range_or_none(other.get("max_iops")),
                printed_number(other.get("write_percent")),
            )
            alike = "write_percent" in element.table and is_same_element(element.table, other)
            if alike and rate is not None and writes is not None:
                yield element, rate, writes
                break


def audit_gain_pairs(published: PublishedSet) -> Iterator[AuditOutcome]:
    """The largest gain in rate and in latency: of a closed loop's mean they are one and the same.

    With as many threads, a rate that is 25 % higher is a mean latency 25 % higher for the other,
    or 20 % lower for oneself. Another number is of another latency than the mean.
    """
    for table in published.array_tables("result"):
        rate, latency = (
            printed_range(table.get("max_gain_ops_pct")),
            printed_range(table.get("max_gain_latency_pct")),
        )
        if rate is None or latency is None:
            continue
        higher = rate
        lower = FigureRange(100 - 1e4 / (100 + rate.low), 100 - 1e4 / (100 + rate.high))
        fine = any(
            agreement_of_ranges(latency, gain) is Agreement.AGREES for gain in (higher, lower)
        )
        message = (
            f"A rate {table['max_gain_ops_pct']} % higher makes the mean latency "
            f"{range_text(lower, '%')} lower, or the other's {range_text(higher, '%')} higher; "
            f"printed is a gain of {table['max_gain_latency_pct']} %"
        )
        message += "." if fine else ": of another latency than the mean, or at another load."
        where = published.element_location_text("result", table)
        yield plausibility_outcome(
            "gain-pairs", element_label(table), message, fine=fine, where=where
        )


def _parse_block_bytes(value: object) -> int | None:
    """A block size such as `4k` in bytes, None where it is none."""
    try:
        return parse_size(value) if isinstance(value, str | int) else None
    except ValueError:
        return None


def audit_module_totals(published: PublishedSet) -> Iterator[AuditOutcome]:
    """`8x 32GB (256GB)`, `7 cores (4 compute, 3 drives)`: the parts of a text and their total."""
    for element in published.iterate_elements():
        for name, text in element.table.items():
            for stated, parts, unit in _totals_and_parts(text) if isinstance(text, str) else ():
                computed = exact_range(sum(count * size for count, size in parts))
                how = " + ".join(
                    f"{n:g} x {size:g}" if n != 1 else f"{size:g}" for n, size in parts
                )
                subject, total = f"{element.name}, {inner_key_text(name)}", exact_range(stated)
                text_of = f"{stated:g} {unit}"
                yield figure_outcome(
                    FigureComparison(
                        "modules", subject, text_of, total, computed, unit, how, element.location
                    )
                )


def _totals_and_parts(text: str) -> Iterator[tuple[float, list[tuple[float, float]], str]]:
    """Each total of a text, with the counts and sizes of its parts."""
    match = MODULES.search(text)
    if match is not None and match[5] is not None:
        yield float(match[5]), [(float(match[1]), float(match[3]))], "GB"
    for total, unit, parts in _PARTS.findall(text):
        yield float(total), [(1.0, float(part)) for part in re.findall(r"\d+", parts)], unit


def audit_raw_capacity(published: PublishedSet) -> Iterator[AuditOutcome]:
    """Nodes times drives times the size of one; what is usable is a part, once for each copy."""
    how = "nodes x drives x size"
    yield from _recomputed_outcomes(
        published, "raw-capacity", "configuration", claimed_capacities(published), how
    )
    method = published.table("method")
    copies = printed_number(method.get("replication")) or 1.0
    for element in published.iterate_elements():
        raw = positive_range_or_none(
            element.table.get("raw_tb", element.table.get("cluster_raw_tb"))
        )
        usable, nodes = element.table.get("usable_tb"), 1.0
        if usable is None and element.kind == "hardware":
            usable, nodes = (
                method.get("volume_tb_per_node"),
                printed_number(method.get("nodes")) or 1.0,
            )
        stated = positive_range_or_none(usable)
        if raw is None or stated is None or copies < 1:
            continue
        fine = stated.low * nodes <= raw.high / copies
        message = (
            f"{stated.middle * nodes:g} TB are usable, of {raw.middle:g} TB raw"
            f"{f' in {copies:g} copies' if copies > 1 else ''}."
        )
        yield exact_relation_outcome("raw-capacity", element, message, fine=fine)


def audit_per_terabyte(published: PublishedSet) -> Iterator[AuditOutcome]:
    """Figures per node and per terabyte against what they were derived from."""
    how, figures = "the best over raw TB or nodes", claimed_quotients(published)
    yield from _recomputed_outcomes(published, "per-terabyte", "printed_derivation", figures, how)


def audit_claimed_gains(published: PublishedSet) -> Iterator[AuditOutcome]:
    """A claimed factor or percentage against the two figures that it is of."""
    yield from _recomputed_outcomes(
        published, "gains", "result", claimed_gains(published), "one over the other"
    )


def _recomputed_outcomes(
    published: PublishedSet, rule: str, kind: str, figures: Iterable[PrintedClaim], method_text: str
) -> Iterator[AuditOutcome]:
    """What our own functions make of bests and sizes, beside what was printed of them."""
    for figure in figures:
        if figure.computed_range is None:
            continue
        where = published.element_location_text(kind, {"id": figure.subject})
        text = f"{figure.printed} {figure.unit} ({figure.quantity})"
        stated, computed = figure.stated_range, figure.computed_bounds
        yield figure_outcome(
            FigureComparison(
                rule, figure.subject, text, stated, computed, figure.unit, method_text, where
            )
        )


def audit_line_rate(published: PublishedSet) -> Iterator[AuditOutcome]:
    """No more bytes than the ports of all nodes or hosts carry, in frames of a possible size.

    Of a table with a `nic` its largest figure is held against these; `port_` figures against one.
    """
    speeds = [
        q
        for element in published.iterate_elements()
        for q in _bandwidth_quantities(element)
        if q.name == "port_gbit_s"
    ]
    for element in published.iterate_elements():
        rates = [
            q for q in _bandwidth_quantities(element) if "_per_" not in q.name and q not in speeds
        ]
        single = [q for q in rates if q.total_of.startswith("port_")]
        others = [q for q in rates if q not in single]
        if single and speeds:
            yield _line_rate_outcome(
                element, single, speeds[0].value, speeds[0].printed + " Gbit/s"
            )
        nic = _NIC.search(str(element.table.get("nic", "")))
        count = printed_number(element.table.get("nodes", element.table.get("hosts")))
        if others and nic and count:
            how = f"{count:g} x {nic[1]} x {nic[2]} Gbit/s"
            limit = exact_range(count * int(nic[1]) * float(nic[2]) * 1e9 / 8)
            yield _line_rate_outcome(element, others, limit, how)
        for frames in table_quantities(element.table):
            if frames.unit == "frames/s" and not frames.statistic and frames.value.low > 0:
                yield from (_frame_size_outcome(element, sent, frames) for sent in single)


def _bandwidth_quantities(element: PublishedElement) -> list[FigureQuantity]:
    return [q for q in table_quantities(element.table) if q.unit == "bytes/s"]


def _line_rate_outcome(
    element: PublishedElement, rates: list[FigureQuantity], limit: FigureRange, method_text: str
) -> AuditOutcome:
    most = max(rates, key=lambda q: q.value.low)
    fine = most.value.low <= limit.high
    message = (
        f"{inner_key_text(most.name)} {most.printed} is {most.value.middle / 1e9:.4g} GB/s, "
        f"{method_text} carry "
        f"{limit.middle / 1e9:.4g} GB/s."
    )
    return exact_relation_outcome("line-rate", element, message, fine=fine)


def _frame_size_outcome(
    element: PublishedElement, sent: FigureQuantity, frames: FigureQuantity
) -> AuditOutcome:
    size, (least, most) = sent.value / frames.value, FRAME_BYTES
    fine = size.high >= least and size.low <= most
    message = (
        f"{inner_key_text(sent.name)} {sent.printed} over {inner_key_text(frames.name)} "
        f"{frames.printed} is "
        f"{size.middle:.4g} bytes a frame; frames have {least} to {most:,}."
    )
    return exact_relation_outcome("line-rate", element, message, fine=fine)


def audit_command_options(published: PublishedSet) -> Iterator[AuditOutcome]:
    """The processes and files of a command line against the same in its description."""
    table = published.table("metadata")
    flags = {
        a: b for a, b in pairwise(str(table.get("command_shape", "")).split()) if b.isdecimal()
    }
    options = table.get("options", {})
    inner = options if isinstance(options, dict) else {}
    pairs = (
        ("-np", table.get("ranks"), "processes"),
        ("-n", table.get("files_per_rank"), "files a process"),
        ("-N", inner.get("rank_shift"), "shifted by"),
        ("-i", inner.get("iterations"), "iterations"),
    )
    where = published.element_location_text("metadata")
    for flag, stated, meaning in pairs:
        if flag in flags and (described := printed_number(stated)) is not None:
            message = agreement_of_ranges(exact_range(described), exact_range(int(flags[flag])))
            text = (
                f"The command has {flag} {flags[flag]}, the description {described:g} ({meaning})."
            )
            yield AuditOutcome(
                "command", "metadata", message, text, f"{described:g}", flags[flag], where
            )
