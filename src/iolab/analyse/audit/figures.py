"""Rules that hold for any figures: orders, ranges, repetitions, the same thing said twice."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping
from decimal import Decimal
from typing import Any, Final

from iolab.analyse.audit.document import Path, Published, label, span, words
from iolab.analyse.audit.figure import Span, hull
from iolab.analyse.audit.outcome import Agreement, Outcome
from iolab.analyse.audit.relation import number

DIGITS_LEAST: Final = 4
"""Two independent measurements share so many digits once in ten thousand times."""

STANDS_OUT: Final = 5.0
"""A figure that is so many times the largest of its like deserves a second look."""

LIKE_LEAST: Final = 2
"""Others that a figure is held against."""


def ordered(published: Published) -> Iterator[Outcome]:
    """A mean below a high percentile, a range from low to high."""
    for path, table in _tables(published.tree, ()):
        mean, high = span(table.get("mean")), span(table.get("p99_5"))
        if mean is None or high is None:
            continue
        fine = mean.low <= high.high
        verdict = Agreement.AGREES if fine else Agreement.CONTRADICTS
        says = (
            f"The mean {table['mean']} lies {'below' if fine else 'above'} p99.5 {table['p99_5']}."
        )
        yield Outcome("order", _subject(published, path), verdict, says)
    for path, table in _tables(published.tree, ()):
        for name, value in table.items():
            if not _is_range(name, value):
                continue
            fine = value[0] <= value[1]
            verdict = Agreement.AGREES if fine else Agreement.CONTRADICTS
            says = f"{words(name)} goes from {value[0]} to {value[1]}."
            yield Outcome("order", _subject(published, path), verdict, says)


def _is_range(name: str, value: object) -> bool:
    """A latency or a rate from a lowest to a highest; lists of an axis are none."""
    pair = isinstance(value, list) and len(value) == 2 and all(number(v) is not None for v in value)
    return pair and (name.startswith("qd") or name.endswith("_iops"))


def repeated(published: Published) -> Iterator[Outcome]:
    """The same precise figure for two different subjects: one of them is probably a slip."""
    holders: dict[tuple[str, Decimal], list[Path]] = defaultdict(list)
    for path, value in published.figures():
        if _precise(value) and len(path) > 1 and path[0] in ("result", "example"):
            holders[_named(path), Decimal(value)].append(path[:2])
    for (name, value), paths in holders.items():
        places = dict.fromkeys(paths)
        if len(places) < 2:
            continue
        subjects = " and ".join(_subject(published, path) for path in places)
        each = "both" if len(places) == 2 else "each"
        says = f"{words(name)} is {value:,} for {each}: measured twice, or copied?"
        yield Outcome("repeated", subjects, Agreement.DOUBTFUL, says, f"{value}")


def _named(path: Path) -> str:
    """The last key on the way to a figure; a place in a list has no name of its own."""
    return next((part for part in reversed(path) if isinstance(part, str)), "")


def _precise(value: int | Decimal) -> bool:
    digits = "".join(str(digit) for digit in Decimal(value).as_tuple().digits)
    return len(digits.rstrip("0")) >= DIGITS_LEAST


def restated(published: Published) -> Iterator[Outcome]:
    """`NAME_max` and `NAME_in_..._text`: one quantity in a table and in words."""
    for path, table in _tables(published.tree, ()):
        for name, value in table.items():
            root, mark, _ = name.partition("_in_")
            twin = next((key for key in (f"{root}_max", root) if mark and key in table), None)
            if twin is None or number(value) is None or number(table[twin]) is None:
                continue
            same = value == table[twin]
            verdict = Agreement.AGREES if same else Agreement.CONTRADICTS
            says = f"{words(root)} is {table[twin]}; elsewhere in the text it is {value}."
            yield Outcome("restated", _subject(published, path), verdict, says)


def stands_out(published: Published) -> Iterator[Outcome]:
    """A highest latency that is many times that of every other mix."""
    groups: dict[str, list[tuple[str, Span]]] = defaultdict(list)
    for one in published.tables("result"):
        for name, value in one.items():
            if not isinstance(value, dict) or "latency" not in name:
                continue
            for part, figure in value.items():
                found = span(figure)
                if found is not None:
                    groups[f"{name} {part.removesuffix('_max')}"].append((label(one), found))
    for name, members in groups.items():
        top_label, top = max(members, key=lambda member: member[1].high)
        others = [one for who, one in members if who != top_label]
        if len(others) < LIKE_LEAST:
            continue
        next_one = hull(others).high
        far = top.high > STANDS_OUT * next_one
        verdict = Agreement.DOUBTFUL if far else Agreement.AGREES
        said = words(name)
        says = (
            f"Its {said} is {top.high / next_one:.2g} times that of any other mix."
            if far
            else f"No mix stands out in {said}."
        )
        yield Outcome("stands-out", top_label if far else said, verdict, says)


def depths(published: Published) -> Iterator[Outcome]:
    """The depth at which a best was reached is one of those that were measured."""
    method = published.table("method")
    sweeps = {
        "rand": method.get("random_iodepths"),
        "seq": method.get("sequential_iodepths"),
    }
    for table in published.tables("configuration"):
        best = table.get("peak_at_iodepth")
        for workload, depth in best.items() if isinstance(best, dict) else ():
            measured = sweeps.get(workload.partition("-")[0])
            if not isinstance(measured, list):
                continue
            fine = depth in measured
            verdict = Agreement.AGREES if fine else Agreement.CONTRADICTS
            listed = ", ".join(str(one) for one in measured)
            says = f"Depth {depth} is {'one' if fine else 'none'} of those measured ({listed})."
            yield Outcome("depths", f"{label(table)}, {workload}", verdict, says)


def _tables(value: object, path: Path) -> Iterator[tuple[Path, Mapping[str, Any]]]:
    if isinstance(value, dict):
        yield path, value
        for key, part in value.items():
            yield from _tables(part, (*path, key))
    elif isinstance(value, list):
        for place, part in enumerate(value):
            yield from _tables(part, (*path, place))


def _subject(published: Published, path: Path) -> str:
    """A place for people: the element's own name, then the keys below it."""
    if len(path) >= 2 and isinstance(path[1], int):
        element = label(published.table(*path[:2]))
        rest = [str(part) for part in path[2:]]
        return ", ".join(words(part) for part in (element, *rest) if part)
    return " ".join(words(str(part)) for part in path) or published.id
