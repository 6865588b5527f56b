"""How a stated figure is held against a computed one, and the sentence on it."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from decimal import Decimal
from enum import StrEnum
from functools import lru_cache
from typing import Any, Final, NamedTuple

from iolab.published.audit.document import (
    PublishedElement,
    RoundingInterval,
    exact_range,
    flatten_table,
    key_text,
    printed_value_range,
)
from iolab.record import Record
from iolab.text import list_text

SLACK: Final = 0.01
"""No rounding on the way explains more than one per cent between figures that were printed."""

CACHED_NAMES_MAX: Final = 4096
"""Names whose parts are remembered, since every rule asks again; sets have some hundred."""

_UNITS: Final[Mapping[str, tuple[str, float]]] = {
    "gib_s": ("bytes/s", float(1 << 30)),
    "gb_s": ("bytes/s", 1e9),
    "mb_s": ("bytes/s", 1e6),
    "gbit_s": ("bytes/s", 1e9 / 8),
    "frames_s": ("frames/s", 1.0),
    "iops": ("1/s", 1.0),
    "ops_s": ("1/s", 1.0),
    "us": ("s", 1e-6),
    "ms": ("s", 1e-3),
    "tb": ("bytes", 1e12),
    "gib": ("bytes", float(1 << 30)),
    "pct": ("%", 1.0),
    "percent": ("%", 1.0),
}

_STATISTIC: Final = re.compile(r"(?<![a-z0-9])(min|mean|max|std_dev|p\d\d(?:_\d+)?)(?![a-z0-9])")
_UNIT: Final = re.compile(rf"(?<![a-z0-9])({'|'.join(_UNITS)})(?![a-z0-9])")
_DEPTH: Final = re.compile(r"(?<![a-z0-9])qd(\d{1,6})(?![a-z0-9])")
_ENDS: Final = {"min": 0.0, "max": 100.0}
_WORDS_OF_WHOLE: Final = {"", "bandwidth", "best", "latency", "peak", "read", "write"}


class Agreement(StrEnum):
    """How figures stand to each other."""

    AGREES = "agrees"
    CONTRADICTS = "contradicts"
    """Two figures cannot both be right, whatever their rounding hides."""
    DOUBTFUL = "doubtful"
    """Nothing that can be computed forbids it, but it is rarely so."""

    @property
    def severity(self) -> int:
        """0 for agreement, then as it gets worse."""
        return [Agreement.AGREES, Agreement.DOUBTFUL, Agreement.CONTRADICTS].index(self)


class AuditOutcome(Record):
    """One relation looked at: the rule, what it was looked at of, and a sentence with the numbers.

    `stated` is the figure as it was printed, `computed` what others of the set make of it, "" where
    one of them is no figure. `where` are the places of the document that they stand at.
    """

    rule: str
    subject: str
    agreement: Agreement
    message: str
    stated: str = ""
    computed: str = ""
    where: str = ""


class FigureComparison(Record):
    """A stated figure, as it is `printed`, and what its expression makes of others."""

    rule: str
    subject: str
    printed: str
    stated: RoundingInterval
    computed: RoundingInterval
    unit: str
    expression_with_figures_text: str = ""
    where: str = ""


def agreement_of_ranges(
    stated: RoundingInterval, computed: RoundingInterval, slack: float | None = None
) -> Agreement:
    """Whether both can be true at once, `slack` as a share of either apart.

    Without one it is what rounding leaves open of both, a second time: figures are rounded on the
    way from a measurement into a table, and again from there into a text.
    """
    allowed = (
        min(SLACK, stated.relative_half_width + computed.relative_half_width)
        if slack is None
        else slack
    )
    return (
        Agreement.AGREES if stated.relative_gap_to(computed) <= allowed else Agreement.CONTRADICTS
    )


def figure_outcome(figure: FigureComparison) -> AuditOutcome:
    """The outcome of one figure against what others make of it."""
    verdict = agreement_of_ranges(figure.stated, figure.computed)
    computed = range_text(figure.computed, figure.unit)
    how = (
        f"{figure.expression_with_figures_text} = {computed}"
        if figure.expression_with_figures_text
        else computed
    )
    if verdict is Agreement.AGREES:
        message = f"{figure.printed} is what the other figures give ({how})."
    else:
        off = figure.stated.middle / figure.computed.middle if figure.computed.middle else 0.0
        near = f"{off:.3g}" if 0.95 < off < 1.05 else f"{off:.2g}"  # never 1 times something else
        message = f"{figure.printed} is {near} times what the other figures give ({how})."
    return AuditOutcome(
        figure.rule, figure.subject, verdict, message, figure.printed, computed, figure.where
    )


def exact_relation_outcome(
    rule: str, element: PublishedElement, message: str, *, is_met: bool
) -> AuditOutcome:
    """The outcome of what is true or not of a table."""
    verdict = Agreement.AGREES if is_met else Agreement.CONTRADICTS
    return AuditOutcome(rule, element.name, verdict, message, where=element.location)


def agrees_or_doubtful_outcome(
    rule: str, subject: str, message: str, *, is_met: bool, where: str
) -> AuditOutcome:
    """The same of what nothing forbids."""
    verdict = Agreement.AGREES if is_met else Agreement.DOUBTFUL
    return AuditOutcome(rule, subject, verdict, message, where=where)


def join_locations(*places: str) -> str:
    """Where figures stand, each place once."""
    return list_text(dict.fromkeys(place for place in places if place))


def range_text(span: RoundingInterval, unit: str) -> str:
    """An interval for people: one number where its ends are the same to four digits."""
    low, high = _rounded_text(span.low), _rounded_text(span.high)
    return (f"{low} {unit}" if low == high else f"{low} to {high} {unit}").strip()


def printed_number(value: object) -> float | None:
    """A printed figure as it stands, None where it is none."""
    if isinstance(value, bool) or not isinstance(value, int | Decimal):
        return None
    return float(value)


def _rounded_text(value: float) -> str:
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.4g}"


class FigureQuantity(Record):
    """A figure by what its name says.

    `value` is in the unit without prefixes, `lowest` and `highest` are the ends of a printed range
    (else both are `value`). `base_name` is the name without statistic, unit and depth; `inner_key`
    is the key within an inner table, as a product or workload. `statistic` is that of one point, ""
    for none.
    """

    name: str
    statistic: str
    base_name: str
    inner_key: str
    unit: str
    queue_depth: int | None
    printed: str
    value: RoundingInterval
    lowest: RoundingInterval
    highest: RoundingInterval

    @property
    def has_range(self) -> bool:
        """Whether a lowest and a highest were printed."""
        return self.lowest != self.highest

    @property
    def direction(self) -> str:
        """`read` or `write`; "" for both together, or where it is not told."""
        return next((way for way in ("read", "write") if way in self.base_name.split("_")), "")

    @property
    def is_of_whole_table(self) -> bool:
        """Whether it is of all that a table tells, and no gain, share, drive or layer of it."""
        return set(self.base_name.split("_")) <= _WORDS_OF_WHOLE

    @property
    def percentile(self) -> float | None:
        """The per cent of a percentile, those of the least and the largest being 0 and 100."""
        if self.statistic in _ENDS:
            return _ENDS[self.statistic]
        if not self.statistic.startswith("p"):
            return None
        return float(self.statistic[1:].replace("_", "."))


def table_quantities(table: Mapping[str, Any]) -> Iterator[FigureQuantity]:
    """Every figure of a table, those of inner tables by both names."""
    for name, value in flatten_table(table):
        figure = printed_value_range(value)
        if figure is None:
            continue
        parsed = _parse_quantity_name(name)
        factor = _unit_and_factor(name)[1]
        ends = value if isinstance(value, list) else [value, value]
        low, high = printed_value_range(ends[0]) or figure, printed_value_range(ends[-1]) or figure
        yield FigureQuantity(
            name=name,
            statistic=parsed.statistic,
            base_name=parsed.base_name,
            inner_key=parsed.inner_key,
            unit=parsed.unit,
            queue_depth=parsed.queue_depth,
            printed=printed_figure_text(value),
            value=figure * exact_range(factor),
            lowest=low * exact_range(factor),
            highest=high * exact_range(factor),
        )


def value_in_unit(unit: str, value: RoundingInterval, figure_name: str) -> RoundingInterval:
    """The value in the prefix that its key has; `unit` is what `FigureQuantity.unit` says."""
    own, factor = _unit_and_factor(figure_name)
    return value / exact_range(factor) if own == unit else value


@lru_cache(CACHED_NAMES_MAX)
class _QuantityName(NamedTuple):
    """The parts of a figure's key; see `FigureQuantity`."""

    statistic: str
    base_name: str
    inner_key: str
    unit: str
    queue_depth: int | None


def _parse_quantity_name(name: str) -> _QuantityName:
    statistic, depth = _STATISTIC.search(name), _DEPTH.search(name)
    outer, _, part = name.partition(".")
    return _QuantityName(
        statistic=statistic[1] if statistic else "",
        base_name=_strip_qualifiers(outer),
        inner_key=_strip_qualifiers(part),
        unit=_unit_and_factor(name)[0],
        queue_depth=int(depth[1]) if depth else None,
    )


@lru_cache(CACHED_NAMES_MAX)
def _unit_and_factor(name: str) -> tuple[str, float]:
    units = _UNIT.findall(name)
    return _UNITS[units[-1]] if units else ("", 1.0)


def _strip_qualifiers(name: str) -> str:
    """The words of a name that are no statistic, unit or depth."""
    for pattern in (_STATISTIC, _UNIT, _DEPTH):
        name = pattern.sub("", name)
    return re.sub("_+", "_", name).strip("_")


def printed_figure_text(value: object) -> str:
    """A printed value for people: figures without powers of ten, ranges from and to."""
    if isinstance(value, list) and value:
        return f"{printed_figure_text(value[0])} to {printed_figure_text(value[-1])}"
    if isinstance(value, Decimal):
        return f"{value:,f}"
    return f"{value:,}" if isinstance(value, int) else str(value)


def nested_key_text(name: str) -> str:
    """A key for people, that of an inner table too."""
    return key_text(name.replace(".", " "))
