"""Rules of rates and latencies: Little's law, mixes, and what copies of writes cost."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from itertools import pairwise
from typing import Any, Final, NamedTuple

from iolab.analysis.quotients import fleets_with_single_client
from iolab.published.audit.document import (
    MODULES,
    PublishedElement,
    PublishedSet,
    RoundingInterval,
    exact_range,
    flatten_table,
    peak_places,
    positive_integer_or_none,
    positive_printed_value_range,
)
from iolab.published.audit.relations import (
    Agreement,
    AuditOutcome,
    FigureComparison,
    FigureQuantity,
    agreement_of_ranges,
    agrees_or_doubtful_outcome,
    exact_relation_outcome,
    figure_outcome,
    nested_key_text,
    printed_number,
    range_text,
    table_quantities,
)
from iolab.published.recomputed import (
    PrintedClaim,
    claimed_capacities,
    claimed_gains,
    claimed_per_unit_figures,
    printed_best_values,
    published_configurations,
)
from iolab.text import percent_text

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
    method = published.table_at("method")
    for element in published.iterate_elements():
        figures = [q for q in table_quantities(element.table) if q.is_of_whole_table]
        rates = [q for q in figures if q.unit == "1/s" and q.value.low > 0]
        if len({q.direction for q in rates}) > 1:  # nobody says whether they ran together
            continue
        deepest = max((q.queue_depth or 0 for q in figures if q.unit == "s"), default=0)
        for rate in rates:
            for latency in figures:
                depth = latency.queue_depth or _queue_depth(element.table, latency.inner_key)
                same = latency.queue_depth is not None or latency.inner_key == rate.inner_key
                asked = _ios_in_flight(element.table, method, depth)
                same = same and latency.unit == "s"
                if not same or asked is None or latency.value.low <= 0:
                    continue
                if latency.statistic == "mean" and latency.direction == rate.direction:
                    lighter = latency.queue_depth is not None and latency.queue_depth < deepest
                    yield _littles_law_mean_outcome(
                        element, asked, rate, latency, is_smaller_depth=lighter
                    )
                elif (latency.percentile or 0) >= _HIGH and latency.queue_depth in (None, deepest):
                    yield _littles_law_percentile_outcome(element, asked, rate, latency)


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


def _queue_depth(table: Mapping[str, Any], workload_id: str) -> int:
    """The depth of a workload that a table has by name, or its own; 1 for none."""
    by_workload = {name: place for axis, name, place in peak_places(table) if axis == "iodepth"}
    return positive_integer_or_none(by_workload.get(workload_id, table.get("iodepth"))) or 1


def _littles_law_mean_outcome(
    element: PublishedElement,
    ios_in_flight: float,
    rate: FigureQuantity,
    latency: FigureQuantity,
    *,
    is_smaller_depth: bool,
) -> AuditOutcome:
    computed = rate.value * latency.highest
    fine = (
        agreement_of_ranges(exact_range(ios_in_flight), computed, LITTLE_SLACK) is Agreement.AGREES
    )
    if (
        is_smaller_depth
    ):  # the rate at this depth is asked / latency, and no higher than the largest
        fine = ios_in_flight <= computed.high * (1 + LITTLE_SLACK)
    so = f"{'is' if fine else 'is not'} {'within ' if is_smaller_depth else ''}what"
    message = (
        f"{ios_in_flight:,.0f} in flight {so} {nested_key_text(rate.name)} {rate.printed} x "
        f"{nested_key_text(latency.name)} "
        f"{latency.printed} give ({range_text(computed, 'I/Os')})."
    )
    return exact_relation_outcome("littles-law", element, message, is_met=fine)


def _littles_law_percentile_outcome(
    element: PublishedElement, ios_in_flight: float, rate: FigureQuantity, latency: FigureQuantity
) -> AuditOutcome:
    mean = exact_range(ios_in_flight) / rate.value
    fine = mean.low <= latency.highest.high
    message = (
        f"{ios_in_flight:,.0f} in flight at {rate.printed}/s wait "
        f"{range_text(mean * exact_range(1e3), 'ms')} on "
        f"average, {'below' if fine else 'above'} {nested_key_text(latency.name)} of "
        f"{latency.printed}."
    )
    return exact_relation_outcome("littles-law", element, message, is_met=fine)


def audit_mixed_rates(published: PublishedSet) -> Iterator[AuditOutcome]:
    """A mix takes the time of its reads and of its writes, one after the other: 1/m = r/R + w/W.

    Nothing forbids another rate, as reads and writes may help each other.
    """
    percent = {str(table.get("id")): table for table in published.tables_of_array("workload")}
    for element in published.iterate_elements():
        peaks = [
            q for q in table_quantities(element.table) if q.unit == "1/s" and q.inner_key in percent
        ]
        by_share: dict[tuple[object, float], FigureQuantity] = {}
        for q in peaks:
            percentage = percent[q.inner_key]
            ways = {
                "randread": 0.0,
                "randwrite": 100.0,
                "randrw": 100 - (printed_number(percentage.get("rwmixread")) or 50),
            }
            if str(percentage.get("rw")) in ways:
                by_share[str(percentage.get("bs")), ways[str(percentage.get("rw"))]] = q
        yield from _mixed_rate_outcomes(
            {(element.name, *key): (element, q) for key, q in by_share.items()}
        )
    rows = [element for element in published.iterate_elements() if element.table_key == "result"]
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
    yield from _mixed_rate_outcomes(by_axes)


def _mixed_rate_outcomes(
    rates_by_read_percent: Mapping[
        tuple[str, object, float], tuple[PublishedElement, FigureQuantity]
    ],
) -> Iterator[AuditOutcome]:
    for (name, other, share), (element, q) in rates_by_read_percent.items():
        ends = [rates_by_read_percent.get((name, other, end)) for end in (0.0, 100.0)]
        if not 0 < share < 100 or ends[0] is None or ends[1] is None:
            continue
        reads, writes = ends[0][1].value, ends[1][1].value
        if reads.low <= 0 or writes.low <= 0:
            continue
        time = exact_range(1 - share / 100) / reads + exact_range(share / 100) / writes
        computed = exact_range(1) / time
        fine = agreement_of_ranges(q.value, computed, MIX_SLACK) is Agreement.AGREES
        message = (
            f"{q.inner_key or nested_key_text(q.name)} at {share:g} % writes is {q.printed}; reads "
            "alone "
            f"({ends[0][1].printed}) and writes alone ({ends[1][1].printed}), one after the other, "
            f"make {range_text(computed, 'IOPS')}."
        )
        yield agrees_or_doubtful_outcome(
            "mix", element.name, message, is_met=fine, where=element.location
        )


def audit_client_scaling(published: PublishedSet) -> Iterator[AuditOutcome]:
    """Each client of a fleet does no more than one client alone on the same system."""
    for pair in fleets_with_single_client(
        published_configurations(published), printed_best_values(published)
    ):
        kept = pair.scaling_efficiency
        if kept is None or kept.value is None:
            continue
        fine = (kept.low if kept.low is not None else kept.value) <= 1
        name = pair.fleet.configuration
        message = (
            f"{pair.fleet.workload}: each of {pair.fleet.host_count} clients does "
            f"{percent_text(kept.value)} of one alone."
        )
        where = published.stated_source_location("example", {"id": name})
        yield agrees_or_doubtful_outcome("scaling", name, message, is_met=fine, where=where)


def audit_totals_in_texts(published: PublishedSet) -> Iterator[AuditOutcome]:
    """`8x 32GB (256GB)`, `7 cores (4 compute, 3 drives)`: the parts of a text and their total."""
    for element in published.iterate_elements():
        for name, text in element.table.items():
            for stated, parts, unit in _totals_and_parts(text) if isinstance(text, str) else ():
                computed = exact_range(sum(count * size for count, size in parts))
                how = " + ".join(
                    f"{n:g} x {size:g}" if n != 1 else f"{size:g}" for n, size in parts
                )
                subject, total = f"{element.name}, {nested_key_text(name)}", exact_range(stated)
                text_of = f"{stated:g} {unit}"
                yield figure_outcome(
                    FigureComparison(
                        "modules", subject, text_of, total, computed, unit, how, element.location
                    )
                )


class _TextTotal(NamedTuple):
    """A total that a text tells, the (count, size) of each of its parts, and their unit."""

    total: float
    counts_and_sizes: list[tuple[float, float]]
    unit: str


def _totals_and_parts(text: str) -> Iterator[_TextTotal]:
    """Each total of a text, with the counts and sizes of its parts."""
    match = MODULES.search(text)
    if match is not None and match[5] is not None:
        yield _TextTotal(float(match[5]), [(float(match[1]), float(match[3]))], "GB")
    for total, unit, parts in _PARTS.findall(text):
        sizes = [(1.0, float(part)) for part in re.findall(r"\d+", parts)]
        yield _TextTotal(float(total), sizes, unit)


def audit_raw_capacity(published: PublishedSet) -> Iterator[AuditOutcome]:
    """Nodes times drives times the size of one; what is usable is a part, once for each copy."""
    how = "nodes x drives x size"
    yield from _recomputed_outcomes(
        published, "raw-capacity", "configuration", claimed_capacities(published), how
    )
    method = published.table_at("method")
    copies = printed_number(method.get("replication")) or 1.0
    for element in published.iterate_elements():
        raw = positive_printed_value_range(element.table.get("raw_tb"))
        usable = positive_printed_value_range(element.table.get("usable_tb"))
        if raw is None or usable is None or copies < 1:
            continue
        fine = usable.low <= raw.high / copies
        message = (
            f"{usable.middle:g} TB are usable, of {raw.middle:g} TB raw"
            f"{f' in {copies:g} copies' if copies > 1 else ''}."
        )
        yield exact_relation_outcome("raw-capacity", element, message, is_met=fine)


def audit_figures_per_node_and_terabyte(published: PublishedSet) -> Iterator[AuditOutcome]:
    """Figures per node and per terabyte against what they were derived from."""
    how, figures = "the best over raw TB or nodes", claimed_per_unit_figures(published)
    yield from _recomputed_outcomes(published, "per-terabyte", "printed_derivation", figures, how)


def audit_claimed_gains(published: PublishedSet) -> Iterator[AuditOutcome]:
    """A claimed factor or percentage against the two figures that it is of."""
    yield from _recomputed_outcomes(
        published, "gains", "result", claimed_gains(published), "one over the other"
    )


def _recomputed_outcomes(
    published: PublishedSet,
    rule: str,
    table_key: str,
    claims: Iterable[PrintedClaim],
    method_text: str,
) -> Iterator[AuditOutcome]:
    """What our own functions make of bests and sizes, beside what was printed of them."""
    for figure in claims:
        if figure.computed_metric is None:
            continue
        where = published.stated_source_location(table_key, {"id": figure.subject})
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
        single = [q for q in rates if q.base_name.startswith("port_")]
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
    element: PublishedElement, rates: list[FigureQuantity], limit: RoundingInterval, ports_text: str
) -> AuditOutcome:
    most = max(rates, key=lambda q: q.value.low)
    fine = most.value.low <= limit.high
    message = (
        f"{nested_key_text(most.name)} {most.printed} is {most.value.middle / 1e9:.4g} GB/s, "
        f"{ports_text} carry "
        f"{limit.middle / 1e9:.4g} GB/s."
    )
    return exact_relation_outcome("line-rate", element, message, is_met=fine)


def _frame_size_outcome(
    element: PublishedElement, sent: FigureQuantity, frames: FigureQuantity
) -> AuditOutcome:
    size, (least, most) = sent.value / frames.value, FRAME_BYTES
    fine = size.high >= least and size.low <= most
    message = (
        f"{nested_key_text(sent.name)} {sent.printed} over {nested_key_text(frames.name)} "
        f"{frames.printed} is "
        f"{size.middle:.4g} bytes a frame; frames have {least} to {most:,}."
    )
    return exact_relation_outcome("line-rate", element, message, is_met=fine)


def audit_command_options(published: PublishedSet) -> Iterator[AuditOutcome]:
    """The numbers of a command line against the keys that describe its options."""
    for element in published.iterate_elements():
        words = str(element.table.get("command_shape", "")).split()
        described = dict(flatten_table(element.table))
        for option, number in pairwise(words):
            key = published.meaning.command_options.get(option, "")
            stated = printed_number(described.get(key))
            if stated is None or not number.isdecimal():
                continue
            agreement = agreement_of_ranges(exact_range(stated), exact_range(int(number)))
            message = f"The command has {option} {number}, {nested_key_text(key)} is {stated:g}."
            yield AuditOutcome(
                "command", element.name, agreement, message, f"{stated:g}", number, element.location
            )
