"""Rules that hold for any figures: orders, spreads, shares, repetitions, the same thing said twice.

They know figures by the names of their keys (`quantity`), in whatever table these stand.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Mapping
from decimal import Decimal
from itertools import combinations, product
from math import sqrt
from typing import Any, Final

from iolab.published.audit.document import (
    ELEMENT_KEYS,
    MODULES,
    RESTATED_KEY,
    Path,
    PublishedElement,
    PublishedSet,
    RoundingInterval,
    element_label,
    enclosing_range,
    exact_range,
    peak_places,
    printed_value_range,
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
    join_locations,
    nested_key_text,
    printed_figure_text,
    printed_number,
    range_text,
    table_quantities,
    value_in_unit,
)
from iolab.text import list_text

DIGITS_MIN: Final = 4
"""Two independent measurements share so many digits once in ten thousand times."""

STANDS_OUT: Final = 5.0
"""A figure that is so many times the largest of its like deserves a second look."""

LIKE_MIN: Final = 2
"""Others that a figure is held against."""

SPREAD_MIN: Final = 1e-5
"""Repeats of a rate that are closer than one in 100,000 are rarely measured apart."""

REPEATS_MAX: Final = 10_000
"""Repeats behind a spread; more are a slip of another kind."""

_HIGH: Final = 99.0
"""Lower percentiles may be below the mean of skewed latencies."""

_ENDS: Final = ("min", "mean", "max")
_PER: Final = re.compile(r"(.+)_per_(host|client|node|rank|vm|process)(?:_(max))?")
_PART: Final = re.compile(r"(.+?)(?:_printed)?_pct_of_(.+)")


def audit_statistics_order(published: PublishedSet) -> Iterator[AuditOutcome]:
    """Least, mean, percentiles and largest of one thing ascend, and so do the ends of a range.

    What has no statistic is one point of a sweep, which its largest is not below.
    """
    for element in published.iterate_elements():
        groups: dict[tuple[str, str, str, int | None], list[FigureQuantity]] = defaultdict(list)
        for quantity in table_quantities(element.table):
            if quantity.statistic != "std_dev":
                groups[
                    quantity.base_name, quantity.inner_key, quantity.unit, quantity.queue_depth
                ].append(quantity)
            if quantity.has_range and (quantity.queue_depth is not None or quantity.unit == "1/s"):
                fine = quantity.lowest.low <= quantity.highest.high
                message = f"{nested_key_text(quantity.name)} goes from {quantity.printed}."
                yield exact_relation_outcome("order", element, message, is_met=fine)
        for group in groups.values():
            yield from _statistic_order_outcomes(
                element, sorted(group, key=_percentile_to_order_by)
            )


def _statistic_order_outcomes(
    element: PublishedElement, group: list[FigureQuantity]
) -> Iterator[AuditOutcome]:
    """One outcome of figures by rank; those between which nothing is known are left out."""
    pairs = [(a, b) for a, b in combinations(group, 2) if _must_not_exceed(a, b)]
    if not pairs:
        return
    falls = [
        (a, b) for a, b in pairs if a.lowest.low > b.lowest.high or a.highest.low > b.highest.high
    ]
    if falls:
        (a, b) = falls[0]
        message = (
            f"{nested_key_text(a.name)} is {a.printed}, above {nested_key_text(b.name)} "
            f"with {b.printed}."
        )
    else:
        names = dict.fromkeys(q for pair in pairs for q in pair)
        ascends = ", ".join(
            f"{nested_key_text(q.name)} {q.printed}"
            for q in sorted(names, key=_percentile_to_order_by)
        )
        message = f"They ascend: {ascends}."
    yield exact_relation_outcome("order", element, message, is_met=not falls)


def _must_not_exceed(lower_ranked: FigureQuantity, higher_ranked: FigureQuantity) -> bool:
    """Whether the first, of the lower rank, is never above the second."""
    if lower_ranked.percentile is None and lower_ranked.statistic != "mean":  # one point of a sweep
        return higher_ranked.statistic == "max"
    return _percentile_to_order_by(lower_ranked) < _percentile_to_order_by(higher_ranked) and (
        lower_ranked.statistic != "mean" or _percentile_to_order_by(higher_ranked) >= _HIGH
    )


def _percentile_to_order_by(quantity: FigureQuantity) -> float:
    if quantity.percentile is not None:
        return quantity.percentile
    return 1.0 if quantity.statistic == "mean" else 0.5


def audit_standard_deviations(published: PublishedSet) -> Iterator[AuditOutcome]:
    """What a standard deviation can be: three repeats have but one, more have bounds.

    Of n values from a to b with a mean of m, the others all lie at one place at best, and at a or b
    at worst; the sum of squares is divided by n or by n - 1.
    """
    for element in published.iterate_elements():
        by_statistic = {
            (q.base_name, q.inner_key, q.unit, q.statistic): q
            for q in table_quantities(element.table)
        }
        repeats = element.table.get("iterations", element.table.get("repeats"))
        has_repeats = isinstance(repeats, int) and 2 <= repeats <= REPEATS_MAX
        for (of, part, unit, statistic), deviation in by_statistic.items():
            ends = [
                q for end in _ENDS if (q := by_statistic.get((of, part, unit, end))) is not None
            ]
            # That of latencies is over all I/Os, not over repeats.
            if statistic != "std_dev" or unit == "s" or len(ends) < 3 or not has_repeats:
                continue
            low, mean, high = (q.value for q in ends)
            possible = [
                _standard_deviation_range(low, mean, high, repeats, repeats - less)
                for less in (0, 1)
            ]
            text = f"A standard deviation of {deviation.printed}"
            low_end, middle, high_end = (end.printed for end in ends)
            how = f"of {repeats} values from {low_end} to {high_end}, mean {middle}"
            nearest = min(possible, key=deviation.value.relative_gap_to)
            stated = deviation.value
            yield figure_outcome(
                FigureComparison(
                    "spread", element.name, text, stated, nearest, "", how, element.location
                )
            )
            width = (high.high - low.low) / mean.middle if mean.low > 0 else 1.0
            message = f"{repeats} repeats lie within {width:.1g} of their mean {ends[1].printed}"
            fine = width >= SPREAD_MIN
            message += "." if fine else ": measured apart, or one figure told again?"
            yield agrees_or_doubtful_outcome(
                "spread", element.name, message, is_met=fine, where=element.location
            )


def _standard_deviation_range(
    low: RoundingInterval, mean: RoundingInterval, high: RoundingInterval, n: int, divisor: int
) -> RoundingInterval:
    """From the least to the most that it can be, whatever was rounded.

    `divisor` divides squares.
    """
    deviations = [0.0] if low.high >= high.low else []
    for a, m, b in product(
        *((figure.low, figure.middle, figure.high) for figure in (low, mean, high))
    ):
        if not a <= m <= b:
            continue
        ends, inner = (a - m) ** 2 + (b - m) ** 2, n - 2
        even = (n * m - a - b - inner * m) ** 2 / inner if inner else 0.0
        most = n * (m - a) * (b - m) if inner > 1 else ends + even
        deviations += [sqrt((ends + even) / divisor), sqrt(max(most, ends + even) / divisor)]
    return enclosing_range([exact_range(deviation) for deviation in deviations or [0.0]])


def audit_per_unit_totals(published: PublishedSet) -> Iterator[AuditOutcome]:
    """`A_per_B` times the B is the A: files of a rank and of all, the mean of a host and the sum.

    The number of B stands in the same table or in the method, the A in the same table; of the end
    of an axis (`_max`) it is what results were printed at.
    """
    for element in published.iterate_elements():
        for name, value in element.table.items():
            match, each = _PER.fullmatch(name), printed_value_range(value)
            if match is None or each is None or element.table_key == RESTATED_KEY:
                continue
            counted, over, end = match.groups()
            own, method = (
                element.table.get(f"{over}s"),
                published.table_at("method").get(f"{over}s"),
            )
            count = printed_number(own) or printed_number(method)
            all_of = [element] if end is None else published.iterate_elements()
            spans = [
                (at, q)
                for at in all_of
                if (q := printed_value_range(at.table.get(counted))) is not None
            ]
            if count is None or not spans:
                continue
            at, stated = max(spans, key=lambda pair: pair[1].high)
            total = printed_figure_text(at.table[counted])
            how = f"{count:g} x {printed_figure_text(value)}"
            text = f"{nested_key_text(counted)} {total}"
            computed = (exact_count_range(name, value) or each) * exact_range(count)
            yield figure_outcome(
                FigureComparison(
                    "shares", element.name, text, stated, computed, "", how, at.location
                )
            )


def exact_count_range(name: str, value: object) -> RoundingInterval | None:
    """A whole number without a unit, which was counted and not rounded."""
    if isinstance(value, bool) or not isinstance(value, int):
        return None
    return None if next(table_quantities({name: value})).unit else exact_range(value)


def audit_percent_bounds(published: PublishedSet) -> Iterator[AuditOutcome]:
    """A share in per cent lies between 0 and 100; a gain may be larger."""
    percents = [
        (element, q)
        for element in published.iterate_elements()
        for q in table_quantities(element.table)
        if q.unit == "%" and "gain" not in q.name
    ]
    wrong = [(element, q) for element, q in percents if q.value.low > 100 or q.value.high < 0]
    for element, q in wrong:
        yield exact_relation_outcome(
            "percentages", element, f"{nested_key_text(q.name)} is {q.printed} %.", is_met=False
        )
    if percents and not wrong:
        message = f"{len(percents)} shares lie between 0 and 100 %."
        yield AuditOutcome("percentages", published.id, Agreement.AGREES, message)


def audit_part_percents(published: PublishedSet) -> Iterator[AuditOutcome]:
    """`X_pct_of_Y`: X over Y, where Y is a capacity of the same unit, or the mean named Y.

    A mean is that of the results at the depth and the mix that the table itself has.
    """
    for element in published.iterate_elements():
        own = list(table_quantities(element.table))
        for name, value in element.table.items():
            match, stated = _PART.fullmatch(name), printed_value_range(value)
            if match is None or stated is None:
                continue
            part, total = match.groups()
            parts = [q for q in own if q.name.startswith(f"{part}_") and q.unit not in ("", "%")]
            for q in parts[:1]:
                for at, other in _whole_of_stated_share(published, element, q, total):
                    computed = q.value * exact_range(100) / other.value
                    how = f"{q.printed} of {nested_key_text(other.name)} {other.printed}"
                    where = join_locations(element.location, at.location)
                    text, subject = f"{value} %", f"{element.name}, {nested_key_text(q.name)}"
                    yield figure_outcome(
                        FigureComparison(
                            "part-of", subject, text, stated, computed, "%", how, where
                        )
                    )


def _whole_of_stated_share(
    published: PublishedSet,
    element: PublishedElement,
    part_quantity: FigureQuantity,
    total_name: str,
) -> Iterator[tuple[PublishedElement, FigureQuantity]]:
    first = part_quantity.name.partition("_")[0]
    for at in published.iterate_elements():
        if at.table is element.table or not is_same_element(element.table, at.table):
            continue
        for q in table_quantities(at.table):
            if q.unit != part_quantity.unit or q.value.low <= 0:
                continue
            limit = q.statistic == "max" or "gbit_s" in q.name or "capacity" in q.name
            capacity = total_name == "capacity" and limit and q.name.partition("_")[0] == first
            depth = printed_number(element.table.get("queue_depth"))
            mean = (
                q.statistic == "mean"
                and total_name.endswith(q.base_name)
                and q.queue_depth == depth
            )
            if capacity or (total_name != "capacity" and mean):
                yield at, q
                return


def is_same_element(table: Mapping[str, Any], other_table: Mapping[str, Any]) -> bool:
    """Whether two tables are of the same element: what names one is the same in both."""
    both = [key for key in ELEMENT_KEYS if key in table and key in other_table]
    return all(
        table[key] == other_table[key] for key in both if not isinstance(other_table[key], list)
    )


def audit_restated_figures(published: PublishedSet) -> Iterator[AuditOutcome]:
    """`[[also]]`: what is told again in another place, of the table that its `in` names."""
    for again in published.iterate_elements():
        kind = again.table.get("in")
        if again.table_key != RESTATED_KEY or not isinstance(kind, str):
            continue
        for element in published.iterate_elements():
            if element.table_key != kind or not is_same_element(again.table, element.table):
                continue
            for name, value in again.table.items():
                stated = exact_count_range(
                    name, element.table.get(name)
                ) or _printed_range_of_figure_or_memory(element.table.get(name))
                other = exact_count_range(name, value) or _printed_range_of_figure_or_memory(value)
                if (
                    name in ("in", "where", "over", *ELEMENT_KEYS)
                    or stated is None
                    or other is None
                ):
                    continue
                over = again.table.get("over") is True
                fine = agreement_of_ranges(other, stated) is Agreement.AGREES
                fine = fine or (over and other.low <= stated.high)
                message = (
                    f"{nested_key_text(name)} is {printed_figure_text(element.table[name])}; "
                    "elsewhere"
                    f"{f' ({again.location})' if again.location else ''} it is "
                    f"{'over ' if over else ''}{printed_figure_text(value)}."
                )
                yield exact_relation_outcome("restated", element, message, is_met=fine)


def _printed_range_of_figure_or_memory(value: object) -> RoundingInterval | None:
    """A figure; of memory in words the total."""
    if not isinstance(value, str):
        return None if isinstance(value, bool) else printed_value_range(value)
    match = MODULES.search(value)
    if match is not None:
        return exact_range(int(match[5]) if match[5] else int(match[1]) * float(match[3]))
    alone = value.removesuffix("GB")
    return exact_range(int(alone)) if alone.isdecimal() and alone != value else None


def audit_identical_figures(published: PublishedSet) -> Iterator[AuditOutcome]:
    """The same precise figure for two different subjects: one of them is probably a slip."""
    holders: dict[tuple[str, Decimal], list[Path]] = defaultdict(list)
    for path, value in published.figures_with_paths():
        if _has_enough_digits(value) and len(path) > 1 and path[0] in ("result", "example"):
            holders[_last_key(path), Decimal(value)].append(path[:2])
    for (name, value), paths in holders.items():
        places = dict.fromkeys(paths)
        if len(places) < 2:
            continue
        tables = [published.table_at(*path) for path in places]
        each = "both" if len(places) == 2 else "each"
        message = f"{nested_key_text(name)} is {value:,} for {each}: measured twice, or copied?"
        where = join_locations(
            *(
                published.stated_source_location(str(path[0]), published.table_at(*path))
                for path in places
            )
        )
        subject = list_text(element_label(table) for table in tables)
        yield AuditOutcome(
            "repeated", subject, Agreement.DOUBTFUL, message, f"{value}", where=where
        )


def _last_key(path: Path) -> str:
    """The last key on the way to a figure; a place in a list has no name of its own."""
    return next((part for part in reversed(path) if isinstance(part, str)), "")


def _has_enough_digits(value: int | Decimal) -> bool:
    digits = "".join(str(digit) for digit in Decimal(value).as_tuple().digits)
    return len(digits.rstrip("0")) >= DIGITS_MIN


def audit_outlier_latencies(published: PublishedSet) -> Iterator[AuditOutcome]:
    """A highest latency that is many times that of every other mix."""
    groups: dict[tuple[str, int | None], list[tuple[PublishedElement, FigureQuantity]]] = (
        defaultdict(list)
    )
    for element in published.iterate_elements():
        for quantity in table_quantities(element.table):
            if (
                element.table_key == "result"
                and quantity.unit == "s"
                and quantity.queue_depth is not None
            ):
                groups[quantity.statistic, quantity.queue_depth].append((element, quantity))
    for (statistic, depth), members in groups.items():
        top, quantity = max(members, key=lambda member: member[1].highest.high)
        others = [q.highest for element, q in members if element is not top]
        if len(others) < LIKE_MIN:
            continue
        like = enclosing_range(others)
        far = quantity.highest.high > STANDS_OUT * like.high
        name = f"{nested_key_text(statistic)} latency at depth {depth}"
        highest = range_text(value_in_unit("s", like, quantity.name), "")
        message = (
            f"Its {name}, {quantity.printed}, is {quantity.highest.high / like.high:.2g} times "
            f"that of any other mix ({highest})."
            if far
            else f"No mix stands out in {name}."
        )
        yield agrees_or_doubtful_outcome(
            "stands-out", top.name if far else name, message, is_met=not far, where=top.location
        )


def audit_peak_places(published: PublishedSet) -> Iterator[AuditOutcome]:
    """The place at which a best was reached is one of those that were measured.

    For an axis `iodepth` the method has `iodepths`, or `random_iodepths` for workloads as `rand-a`.
    """
    for element in published.iterate_elements():
        for axis, workload, place in peak_places(element.table):
            first_word = workload.partition("-")[0]
            for name, measured in published.table_at("method").items():
                start = name.removesuffix(f"{axis}s")
                is_of_workload = not start or start.startswith(first_word)
                if isinstance(measured, list) and name != start and is_of_workload:
                    fine = place in measured
                    listed = ", ".join(str(value) for value in measured)
                    so = "one" if fine else "none"
                    message = f"{workload}: {axis} {place} is {so} of those measured ({listed})."
                    yield exact_relation_outcome("depths", element, message, is_met=fine)
