"""Numbers as charts and pages hold them: as many digits as a reader sees, and no processor's own.

The last digits of a float depend on the processor and its libraries, so that the same session would
give other pages on another machine. What is stored and what `show --json` tells keeps all digits.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from datetime import UTC, datetime
from enum import Enum
from typing import Any, Final

from msgspec import Struct
from msgspec.structs import asdict

from iolab.core.metric import Metric, RunResult, VerdictLevel
from iolab.core.study import REPEATS_FOR_INTERVAL
from iolab.stats.comparison import Comparison, ComparisonVerdict
from iolab.text import counted_noun, number_text_with_noun, percent_text
from iolab.units import (
    format_bytes,
    format_count,
    format_ns,
    format_rate_bytes,
    parse_size,
    significant_digits_text,
)

DIGITS: Final = 6
"""Charts and tips print at most four; two more, so that what is rounded twice is printed right."""

_EXACT_INTEGER_MAX: Final = 2**53
"""Up to here every whole number is a float of its own."""

NOT_DISTINGUISHABLE: Final = "not distinguishable"
"""What figures are of which intervals leave open which is the better one."""

MAYBE_CHANCE: Final = "may be chance"
"""What a lead is whose own interval excludes 1 and that all comparisons together do not support."""

NOT_MEASURABLE: Final = "not measurable"
"""What stands for a figure that is invalid."""

DASH: Final = "–"
"""What stands where a number is not known or not supported by enough I/Os."""

WHOLE_MONEY_MIN: Final = 100.0
"""Amounts of money below have three digits."""

TOO_FEW_REPEATS: Final = "too few repeats"

REPEATS_TOO_FAR_APART: Final = "repeats too far apart"
"""What stands in place of an interval that would say nothing: of two runs, and of more."""

_LEVEL_MARKS: Final = {
    VerdictLevel.VALID: "●",
    VerdictLevel.INDICATIVE: "◆",
    VerdictLevel.INVALID: "✕",
}
_RATE_WORDS: Final = {"1/s": "IOPS", "ops/s": "ops/s"}
_UNIT_WORDS: Final = {"depth": "I/Os", "celsius": "°C", "waiting": "waiting"}
_SIZE_AXES: Final = frozenset({"bs", "filesize", "block_size"})
_JSON_SCALAR_TYPES: Final = frozenset({int, bool, str, type(None)})

_SMALL_QUOTIENT: Final = 1.0
"""Quotients below this keep three digits: rounded to hundredths they would be 0."""

_GAP_UNITS: Final = r"IOPS|ops/[sJ]|J/GB|W|[A-Z]{3}"
_UNIT_GAP: Final = re.compile(
    rf"(?<=\d) (?=(?:[kMGTP]|[num\u00b5]?s|min|h|(?:[kKMGTP]i?)?B(?:/s)?|{_GAP_UNITS})\b|%)"
    rf"|(?<=\d[ \u00a0][kMGTP]) (?=(?:{_GAP_UNITS})\b)"
)
"""Between a value and its unit, and between a unit's prefix and what it counts."""

_AXIS_DISPLAY_NAMES: Final = {
    "vms_per_node": "VMs per node",
    "block_size": "block size",
    "requests_per_s": "requests/s",
}


def comparison_tie_text(comparison: Comparison, claimed_verdict: ComparisonVerdict) -> str:
    """Why a comparison does not support that verdict: by its interval; empty where it does."""
    if comparison.verdict is claimed_verdict:
        return ""
    return MAYBE_CHANCE if comparison.is_significant_only_alone else NOT_DISTINGUISHABLE


def range_text(low: str, high: str) -> str:
    """`5.00 to 5.23 k ops/s`: two values, with the unit once where it is that of both."""
    number, _, low_unit = low.partition(" ")
    if low == high:
        return low
    return f"{number if low_unit == high.partition(' ')[2] else low} to {high}"


def money_text(amount: float) -> str:
    """Money: whole from 100 on, as are prices of servers; of volumes three digits count."""
    return f"{amount:,.0f}" if amount >= WHOLE_MONEY_MIN else f"{amount:.3g}"


def round_floats(value: Any) -> Any:  # noqa: ANN401 - JSON of any shape
    """JSON with its fractions cut to `DIGITS` significant digits; whole numbers stay whole."""
    if isinstance(value, float):
        return _round_to_significant_digits(value)
    if isinstance(value, dict):
        return {key: round_floats(part) for key, part in value.items()}
    return [round_floats(part) for part in value] if isinstance(value, list | tuple) else value


def _round_to_significant_digits(value: float) -> float | int:
    if 10**DIGITS <= abs(value) < _EXACT_INTEGER_MAX:
        return round(value)
    short = value if value.is_integer() else float(f"{value:.{DIGITS}g}")
    return int(short) if short.is_integer() and abs(short) < _EXACT_INTEGER_MAX else short


def finite_number_or_none(value: float | None) -> float | None:
    """JSON has no infinity and no nan; both are unknown."""
    return value if value is not None and math.isfinite(value) else None


def json_object_of_record(record: Struct) -> dict[str, Any]:
    """A flat record's fields by their names, made of JSON's own types only.

    That is for records whose names are those of a document; schemas allow no others there.
    """
    return {name: _json_value(value) for name, value in asdict(record).items()}


def _json_value(value: object) -> object:
    if type(value) in _JSON_SCALAR_TYPES:
        return value
    if isinstance(value, float):
        return finite_number_or_none(value)
    if isinstance(value, Enum):
        return value.value
    return list(value) if isinstance(value, tuple) else value


def verdict_mark(verdict_level: VerdictLevel) -> str:
    """The shape that stands for a verdict, for readers who do not see colours."""
    return _LEVEL_MARKS[verdict_level]


def metric_value_text(metric: Metric | None, *, is_rate_unit_omitted: bool = False) -> str:
    """A metric with its unit, "more than" where only that is known.

    `is_rate_unit_omitted` leaves "IOPS" or "ops/s" to the heading of a column.
    """
    if metric is None or (metric.value is None and metric.low is None):
        return DASH
    if metric.value is None:
        least = value_text(
            metric.low or 0.0, metric.unit, is_rate_unit_omitted=is_rate_unit_omitted
        )
        return f"> {least}"
    return value_text(metric.value, metric.unit, is_rate_unit_omitted=is_rate_unit_omitted)


def ratio_text(ratio: float) -> str:
    """How many times, with three digits, kept on one line: `1.27×`, `0.79×`, `12.4×`, `1,240×`."""
    digits = significant_digits_text(ratio) if ratio < 999.5 else f"{ratio:,.0f}"
    return f"{digits}×"


def text_with_no_break_units(text: str) -> str:
    """The text with values that no line's end parts from their unit: `1.42 k EUR`, `62.1 ms`."""
    return _UNIT_GAP.sub("\N{NO-BREAK SPACE}", text)


def missing_interval_reason(metric: Metric) -> str:
    """Why a metric without an interval to show has none."""
    enough = metric.has_uninformative_interval and (metric.n or 0) >= REPEATS_FOR_INTERVAL
    return REPEATS_TOO_FAR_APART if enough else TOO_FEW_REPEATS


def interval_and_runs_text(metric: Metric | None, *, is_rate_unit_omitted: bool = False) -> str:
    """A metric's 95 % interval and its runs: `[12.1 k, 12.5 k] n=3`; empty without any.

    Where the interval is not worth showing it says that: `too few repeats, n=2`.
    """
    if metric is None or metric.value is None or metric.n is None:
        return ""
    runs = f"n={metric.n}"
    if metric.displayable_interval is None:
        return (
            f"{missing_interval_reason(metric)}, {runs}"
            if metric.has_uninformative_interval
            else runs
        )
    ends = (
        value_text(end, metric.unit, is_rate_unit_omitted=is_rate_unit_omitted)
        for end in metric.displayable_interval
    )
    return f"[{', '.join(ends)}] {runs}"


def steadiness_text(result: RunResult) -> str:
    """What a run's own seconds say of its rate: `ok ±1.2 %`; empty for one too short to tell."""
    steadiness = result.steadiness
    if steadiness is None:
        return ""
    if not math.isfinite(steadiness.half_width):
        return steadiness.status.value
    return f"{steadiness.status.value} ±{percent_text(steadiness.half_width)}"


def value_text(value: float, unit: str, *, is_rate_unit_omitted: bool = False) -> str:
    """A value in a unit of metrics: 1/s, ops/s, bytes/s, ns, bytes, share, depth or celsius."""
    if unit in _RATE_WORDS:
        count = format_count(value)
        return count if is_rate_unit_omitted else f"{count} {_RATE_WORDS[unit]}"
    if unit == "bytes/s":
        return format_rate_bytes(value)
    if unit == "ns":
        return format_ns(value)
    if unit == "bytes":
        return format_bytes(value)
    if unit == "share":
        return percent_text(value)
    count, word = format_count(value), _UNIT_WORDS.get(unit, unit)
    return number_text_with_noun(count, word).strip()


def quotient_value_text(metric: Metric | None, *, is_rate_unit_omitted: bool = False) -> str:
    """A quotient with its unit; small ones keep their digits."""
    if metric is None or metric.value is None:
        return DASH
    if abs(metric.value) < _SMALL_QUOTIENT and metric.unit != "bytes/s":
        word = value_text(0.0, metric.unit, is_rate_unit_omitted=is_rate_unit_omitted).partition(
            " "
        )[2]
        return f"{metric.value:.3g} {word}".strip()
    return value_text(metric.value, metric.unit, is_rate_unit_omitted=is_rate_unit_omitted)


def quotient_interval_text(metric: Metric) -> str:
    """From where to where it may be, and over how many runs; what rounding leaves has no runs."""
    runs = f" n={metric.n}" if metric.n is not None else ""
    if metric.displayable_interval is None:
        why = f"{missing_interval_reason(metric)}," if metric.has_uninformative_interval else ""
        return f"{why}{runs}".strip() or DASH
    ends = [
        quotient_value_text(Metric(end, metric.unit), is_rate_unit_omitted=True)
        for end in metric.displayable_interval
    ]
    return f"[{', '.join(ends)}]{runs}"


def factor_with_interval_text(factor: Metric | None) -> str:
    """A factor with its interval: `1.29 (1.27 to 1.32)`."""
    if factor is None or factor.value is None:
        return DASH
    if factor.displayable_interval is None:
        return f"{factor.value:.3g}"
    low, high = factor.displayable_interval
    return f"{factor.value:.3g} ({low:.3g} to {high:.3g})"


def utc_minute_text(real_ns: int) -> str:
    """A stored moment (UTC, ns): `2025-06-15 15:06`."""
    return f"{utc_datetime(real_ns):%Y-%m-%d %H:%M}"


def utc_datetime(real_ns: int) -> datetime:
    """A stored moment (UTC, ns) as a date."""
    return datetime.fromtimestamp(real_ns / 1e9, tz=UTC)


def axis_values_text(axis_values: tuple[tuple[str, int | str], ...]) -> str:
    """A point's axis values for people: `iodepth 8, numjobs 4`; empty without an axis."""
    return ", ".join(
        _axis_name_and_value_text(axis_name_text(name), value) for name, value in axis_values
    )


def _axis_name_and_value_text(name: str, value: int | str) -> str:
    """`iodepth 8`; numbers with a unit have it behind: `1 VM per node`, `24 requests/s`."""
    if name == _AXIS_DISPLAY_NAMES["vms_per_node"] and isinstance(value, int):
        return f"{counted_noun(value, 'VM')} per node"
    return f"{value} {name}" if name == _AXIS_DISPLAY_NAMES["requests_per_s"] else f"{name} {value}"


def point_text(workload_id: str, axis_values: tuple[tuple[str, int | str], ...]) -> str:
    """A point for people: `rand-read-4k, iodepth 8`."""
    return f"{workload_id}, {axis_values_text(axis_values)}" if axis_values else workload_id


def axis_name_text(name: str) -> str:
    """An axis in a sentence or a heading: what a study file calls it, but for what reads badly."""
    return _AXIS_DISPLAY_NAMES.get(name, name)


def all_axis_names(results: Sequence[RunResult]) -> tuple[str, ...]:
    """The names of all axes, in the order in which they first appear."""
    return tuple(dict.fromkeys(name for result in results for name, _ in result.axis_values))


def axis_value_as_number(name: str, value: int | str) -> float | None:
    """An axis value as a number (bytes for sizes), None when it is not one."""
    if isinstance(value, int):
        return float(value)
    try:
        # Rates that are no number are in bytes, as study files have them.
        return float(parse_size(value)) if name in {*_SIZE_AXES, "rate"} else float(value)
    except ValueError:
        return None


def metric_value_and_interval_document(metric: Metric | None) -> dict[str, float | None] | None:
    """Value, low and high for other programs; None for no metric."""
    if metric is None:
        return None
    ends = (metric.value, metric.low, metric.high)
    return dict(zip(("value", "low", "high"), map(finite_number_or_none, ends), strict=True))
