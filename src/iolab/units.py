"""Sizes, durations and rates: read from text at the edge, shown with a unit everywhere else.

Sizes follow fio: a bare suffix and the IEC suffix are binary (`4k` = `4kib` = 4096 bytes), the SI
suffix is decimal only when spelt with B after it (`1GB` = 10^9 bytes). Durations are seconds unless
a unit says otherwise.
"""

from __future__ import annotations

import math
import re
from fractions import Fraction
from typing import Final

NS_PER_US: Final = 1_000
NS_PER_MS: Final = 1_000_000
NS_PER_S: Final = 1_000_000_000

MIB: Final = 1 << 20
GIB: Final = 1 << 30

_NUMBER: Final = r"([0-9]{1,20}(?:\.[0-9]{1,20})?)"
_SIZE: Final = re.compile(rf"^\s*{_NUMBER}\s*([kmgtp]?)(i?b)?\s*$", re.IGNORECASE)
_DURATION: Final = re.compile(rf"^\s*{_NUMBER}\s*(ns|us|ms|s|min|m|h|d)?\s*$", re.IGNORECASE)
_POWERS: Final = {"": 0, "k": 1, "m": 2, "g": 3, "t": 4, "p": 5}
_SECONDS: Final = {
    "ns": Fraction(1, 10**9),
    "us": Fraction(1, 10**6),
    "ms": Fraction(1, 10**3),
    "s": Fraction(1),
    "m": Fraction(60),
    "min": Fraction(60),
    "h": Fraction(3600),
    "d": Fraction(86400),
}

_BINARY: Final = tuple((1024.0**power, f"{unit}iB") for power, unit in enumerate("KMGTP", 1))
_DECIMAL: Final = ((1e3, "k"), (1e6, "M"), (1e9, "G"))
_DECIMAL_RATES: Final = ((1e3, "kB/s"), (1e6, "MB/s"), (1e9, "GB/s"), (1e12, "TB/s"))
_LATENCIES: Final = ((1e3, "µs"), (1e6, "ms"), (1e9, "s"))


def parse_size(text: str | int) -> int:
    """Bytes named by `text`, exactly; ValueError with a sentence when it names none."""
    if isinstance(text, int) and not isinstance(text, bool):
        return text
    match = _SIZE.match(str(text))
    if not match:
        raise ValueError(f"{text!r} is not a size; write for example 4k, 128k, 1m, 2g or 4096")
    number, prefix, unit = match.groups()
    base = 1000 if (unit or "").lower() == "b" and prefix else 1024
    size = Fraction(number) * base ** _POWERS[prefix.lower()]
    if size.denominator != 1:
        raise ValueError(f"{text!r} is not a whole number of bytes")
    return int(size)


def parse_duration_s(text: str | float) -> float:
    """Seconds named by `text`; ValueError with a sentence when it names none."""
    if isinstance(text, int | float) and not isinstance(text, bool):
        return float(text)
    match = _DURATION.match(str(text))
    if not match:
        raise ValueError(f"{text!r} is not a duration; write for example 500ms, 30s, 10min or 2h")
    number, unit = match.groups()
    return float(Fraction(number) * _SECONDS[(unit or "s").lower()])


def parse_finite(text: str) -> float | None:
    """The number that a program printed; None for what is none, and for `inf` and `nan`."""
    try:
        number = float(text)
    except ValueError:
        return None
    return number if math.isfinite(number) else None


def format_bytes(count: float) -> str:
    """A byte count in binary units, three digits or more: `4 KiB`, `1.5 GiB`, `1000 KiB`."""
    return _value_with_prefix_text(count, _BINARY, "B", is_trimmed=True)


def format_rate_bytes(bytes_per_s: float) -> str:
    """A throughput in decimal units, as SSD vendors print it: `1.25 GB/s`, `2.00 GB/s`."""
    return _value_with_prefix_text(bytes_per_s, _DECIMAL_RATES, "B/s")


def format_count(count: float) -> str:
    """A count or rate with an SI suffix: `5.20 M`, `393 k`, `87`."""
    return _value_with_prefix_text(count, _DECIMAL, "")


def format_ns(nanoseconds: float) -> str:
    """A latency in the unit that reads best: `143 µs`, `1.40 ms`, `2.50 s`."""
    return _value_with_prefix_text(nanoseconds, _LATENCIES, "ns")


def format_duration_s(seconds: float) -> str:
    """A span of time for people: `0.5 s`, `45 s`, `12 min`, `2 h 5 min`."""
    if abs(seconds) < 10:
        return f"{_without_trailing_zeros(_three_digits_text(round(seconds, 1)))} s"
    whole = round(seconds)
    if whole < 120:
        return f"{whole} s"
    minutes = round(seconds / 60)
    if minutes < 120:
        return f"{minutes} min"
    hours, rest = divmod(minutes, 60)
    return f"{hours} h {rest} min" if rest else f"{hours} h"


def _value_with_prefix_text(
    number: float,
    scales: tuple[tuple[float, str], ...],
    unit: str,
    *,
    is_trimmed: bool = False,
) -> str:
    """The number in the largest unit of `scales` (ascending) that it fills once it is rounded.

    It has three significant digits, so that numbers of a column have as many; whole numbers, and
    `is_trimmed` ones, have no zeros behind the point.
    """
    if not math.isfinite(number):
        return "n/a"
    divisor = 1.0
    magnitude = abs(number)
    for scale, name in scales:
        if 2 * magnitude < scale:
            break
        if round(magnitude / divisor) * divisor >= scale:
            divisor, unit = scale, name
    text = _three_digits_text(number / divisor)
    if is_trimmed or float(text) == 0 or float(number / divisor).is_integer():
        text = _without_trailing_zeros(text)
    return f"{text} {unit}".rstrip()


def _three_digits_text(number: float) -> str:
    """Three significant digits, or all digits of a larger whole part, without an exponent."""
    magnitude = abs(number)
    digits = 2 if magnitude < 9.995 else 1 if magnitude < 99.95 else 0
    return f"{number:.{digits}f}"


def significant_digits_text(number: float) -> str:
    """Three significant digits, of small numbers too: `0.0123`, `0.980`, `11.0`, `104`."""
    magnitude = abs(number)
    if magnitude >= 0.9995 or not magnitude:
        return _three_digits_text(number)
    return f"{number:.{2 - math.floor(math.log10(magnitude * 1.0005))}f}"


def _without_trailing_zeros(text: str) -> str:
    """The digits without zeros behind the point."""
    text = text.rstrip("0").rstrip(".") if "." in text else text
    return "0" if text == "-0" else text
