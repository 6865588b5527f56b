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

from iolab.core.metric import Level, Metric, Result
from iolab.units import format_bytes, format_count, format_ns, format_rate_bytes, parse_size

DIGITS: Final = 6
"""Charts and tips print at most four; two more, so that what is rounded twice is printed right."""

_EXACT: Final = 2**53
"""Up to here every whole number is a float of its own."""


def few_digits(value: Any) -> Any:  # noqa: ANN401 - JSON of any shape
    """JSON with its fractions cut to `DIGITS` significant digits; whole numbers stay whole."""
    if isinstance(value, float):
        return _short(value)
    if isinstance(value, dict):
        return {key: few_digits(part) for key, part in value.items()}
    return [few_digits(part) for part in value] if isinstance(value, list | tuple) else value


def _short(value: float) -> float | int:
    if 10**DIGITS <= abs(value) < _EXACT:
        return round(value)
    short = value if value.is_integer() else float(f"{value:.{DIGITS}g}")
    return int(short) if short.is_integer() and abs(short) < _EXACT else short


NOTHING: Final = "–"
"""What stands where a number is not known or not supported by enough I/Os."""

TOO_FEW: Final = "too few repeats"
TOO_UNLIKE: Final = "repeats too far apart"
"""What stands in place of an interval that would say nothing: of two runs, and of more."""

_REPEATS_ENOUGH: Final = 3
"""Fewer have so wide an interval whatever they are; that of more tells of the target."""

_UNSEEN: Final = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\uffff"
    "\ud800-\udfff]"
)
"""Controls, joiners and direction overrides: what changes a page without being seen on it."""

_MARK: Final = {Level.VALID: "●", Level.INDICATIVE: "◆", Level.INVALID: "✕"}
_WORDS: Final = {"depth": "I/Os", "celsius": "°C", "waiting": "waiting"}
_SIZE_AXES: Final = frozenset({"bs", "filesize", "block_size"})


def clean(text: str) -> str:
    r"""The text with every unseen character written out (`\u202e`); new lines and tabs stay."""
    return _UNSEEN.sub(lambda match: f"\\u{ord(match[0]):04x}", text)


def short(text: str, limit: int) -> str:
    """The text on one line of at most `limit` characters, cleaned; an ellipsis says it was cut."""
    line = clean(" ".join(text.split()))
    return line if len(line) <= limit else line[: limit - 1].rstrip() + "…"


def finite(value: float | None) -> float | None:
    """JSON has no infinity and no nan; both are unknown."""
    return value if value is not None and math.isfinite(value) else None


def fields_document(record: Any) -> dict[str, Any]:  # noqa: ANN401 - any flat dataclass
    """A flat record's fields by their names, made of JSON's own types only.

    That is for records whose names are those of a document; schemas allow no others there.
    """
    # `fields` makes a tuple of them each time, and a document of 500 runs asks 40,000 times.
    return {name: _plain(getattr(record, name)) for name in record.__dataclass_fields__}


_OF_JSON: Final = frozenset({int, bool, str, type(None)})


def _plain(value: object) -> object:
    if type(value) in _OF_JSON:
        return value
    if isinstance(value, float):
        return finite(value)
    if isinstance(value, Enum):
        return value.value
    return list(value) if isinstance(value, tuple) else value


def mark(level: Level) -> str:
    """The shape that stands for a verdict, for readers who do not see colours."""
    return _MARK[level]


def show(metric: Metric | None, *, bare_rate: bool = False) -> str:
    """A metric with its unit, "more than" where only that is known.

    `bare_rate` leaves "IOPS" or "ops/s" to the heading of a column.
    """
    if metric is None or (metric.value is None and metric.low is None):
        return NOTHING
    if metric.value is None:
        return f"> {show_value(metric.low or 0.0, metric.unit, bare_rate=bare_rate)}"
    return show_value(metric.value, metric.unit, bare_rate=bare_rate)


def why_no_interval(metric: Metric) -> str:
    """Why a metric without an interval to show has none."""
    enough = metric.lacks_repeats and (metric.n or 0) >= _REPEATS_ENOUGH
    return TOO_UNLIKE if enough else TOO_FEW


def show_interval(metric: Metric | None, *, bare_rate: bool = False) -> str:
    """A metric's 95 % interval and its runs: `[12.1 k, 12.5 k] n=3`; empty without any.

    Where the interval is not worth showing it says that: `too few repeats, n=2`.
    """
    if metric is None or metric.value is None or metric.n is None:
        return ""
    runs = f"n={metric.n}"
    if metric.interval is None:
        return f"{why_no_interval(metric)}, {runs}" if metric.lacks_repeats else runs
    ends = (show_value(end, metric.unit, bare_rate=bare_rate) for end in metric.interval)
    return f"[{', '.join(ends)}] {runs}"


def show_steadiness(result: Result) -> str:
    """What a run's own seconds say of its rate: `ok ±1.2 %`; empty for one too short to tell."""
    steadiness = result.steadiness
    if steadiness is None:
        return ""
    if not math.isfinite(steadiness.half_width):
        return steadiness.status.value
    return f"{steadiness.status.value} ±{100 * steadiness.half_width:.2g} %"


def show_value(value: float, unit: str, *, bare_rate: bool = False) -> str:
    """A value in a unit of metrics: 1/s, ops/s, bytes/s, ns, bytes, share, depth or celsius."""
    if unit == "1/s":
        return format_count(value) if bare_rate else f"{format_count(value)} IOPS"
    if unit == "ops/s":
        return format_count(value) if bare_rate else f"{format_count(value)} ops/s"
    if unit == "bytes/s":
        return format_rate_bytes(value)
    if unit == "ns":
        return format_ns(value)
    if unit == "bytes":
        return format_bytes(value)
    if unit == "share":
        return f"{100 * value:.0f} %"
    return f"{format_count(value)} {_WORDS.get(unit, unit)}".strip()


_SMALL: Final = 1.0
"""Quotients below this keep three digits: rounded to hundredths they would be 0."""


def show_quotient(metric: Metric | None, *, bare_rate: bool = False) -> str:
    """A quotient with its unit; small ones keep their digits."""
    if metric is None or metric.value is None:
        return NOTHING
    if abs(metric.value) < _SMALL and metric.unit != "bytes/s":
        word = show_value(0.0, metric.unit, bare_rate=bare_rate).partition(" ")[2]
        return f"{metric.value:.3g} {word}".strip()
    return show_value(metric.value, metric.unit, bare_rate=bare_rate)


def show_quotient_interval(metric: Metric) -> str:
    """From where to where it may be, and over how many runs; what rounding leaves has no runs."""
    runs = f" n={metric.n}" if metric.n is not None else ""
    if metric.interval is None:
        why = f"{why_no_interval(metric)}," if metric.lacks_repeats else ""
        return f"{why}{runs}".strip() or NOTHING
    ends = [show_quotient(Metric(end, metric.unit), bare_rate=True) for end in metric.interval]
    return f"[{', '.join(ends)}]{runs}"


def show_factor(times: Metric | None) -> str:
    """A factor with its interval: `1.29 (1.27 to 1.32)`."""
    if times is None or times.value is None:
        return NOTHING
    if times.interval is None:
        return f"{times.value:.3g}"
    low, high = times.interval
    return f"{times.value:.3g} ({low:.3g} to {high:.3g})"


def show_moment(real_ns: int) -> str:
    """A stored moment (UTC, ns): `2025-06-15 15:06`."""
    return f"{moment(real_ns):%Y-%m-%d %H:%M}"


def moment(real_ns: int) -> datetime:
    """A stored moment (UTC, ns) as a date."""
    return datetime.fromtimestamp(real_ns / 1e9, tz=UTC)


def count(number: int, singular: str, plural: str | None = None) -> str:
    """A counted noun: `3 runs`, `1 run`."""
    return f"{number:,} {singular if number == 1 else plural or singular + 's'}"


def axis_label(axis: tuple[tuple[str, int | str], ...]) -> str:
    """A point's axis values for people: `iodepth 8, numjobs 4`; empty without an axis."""
    return ", ".join(f"{name} {value}" for name, value in axis)


def point_text(workload: str, axis: tuple[tuple[str, int | str], ...]) -> str:
    """A point for people: `rand-read-4k, iodepth 8`."""
    return f"{workload}, {axis_label(axis)}" if axis else workload


def axis_word(name: str) -> str:
    """An axis in a sentence or a heading: what a study file calls it, but for what reads badly."""
    return _AXIS_WORDS.get(name, name)


_AXIS_WORDS: Final = {"vms_per_node": "VMs per node"}


def axis_names(results: Sequence[Result]) -> tuple[str, ...]:
    """The names of all axes, in the order in which they first appear."""
    return tuple(dict.fromkeys(name for result in results for name, _ in result.axis))


def axis_number(name: str, value: int | str) -> float | None:
    """An axis value as a number (bytes for sizes), None when it is not one."""
    if isinstance(value, int):
        return float(value)
    try:
        # Rates that are no number are in bytes, as study files have them.
        return float(parse_size(value)) if name in {*_SIZE_AXES, "rate"} else float(value)
    except ValueError:
        return None


def listing(names: list[str], limit: int) -> str:
    """Names in a sentence, at most `limit` of them, the rest counted; names may hold commas."""
    between = "; " if any("," in name for name in names[:limit]) else ", "
    if len(names) <= limit:
        return between.join(names)
    return f"{between.join(names[:limit])} and {len(names) - limit} more"
