"""Sizes and times as fio reads them in options: `64KB` is 65,536 bytes, `64KiB` is 64,000."""

from __future__ import annotations

import re
from typing import Final

KB_BASE: Final = 1024
"""What a k is where `kb_base` does not say 1000."""

_NUMBER: Final = re.compile(r"(0x[0-9a-f]{1,16}|\d{1,20})([a-z]*)")
_POWERS: Final = {letter: power for power, letter in enumerate("kmgtp", start=1)}
_TIME: Final = re.compile(r"(\d{1,15}(?:\.\d{1,9})?)([a-z]*)")
_SECONDS: Final = {
    "us": 1e-6,
    "usec": 1e-6,
    "ms": 1e-3,
    "msec": 1e-3,
    "": 1.0,
    "s": 1.0,
    "m": 60.0,
    "h": 3600.0,
    "d": 86400.0,
}

_SIZES: Final = ((1 << 30, "g"), (1 << 20, "m"), (1 << 10, "k"))


def parse_fio_bytes(text: str, kb_base: int = KB_BASE) -> int | None:
    """The bytes that an option's value is; None for a share, a variable, arithmetic or a list.

    fio takes K, KB and Ki for its own base, which is 1024 unless `kb_base` says 1000, and KiB for
    the other one.
    """
    match = _NUMBER.fullmatch(text.strip().lower())
    if match is None:
        return None
    digits, unit = match.groups()
    number = int(digits, 16) if digits.startswith("0x") else int(digits)
    if not unit or unit == "b":
        return number
    power = _POWERS.get(unit[0])
    if power is None or unit[1:] not in ("", "b", "i", "ib"):
        return None
    other = 1000 if kb_base == KB_BASE else KB_BASE
    base = other if unit.endswith("ib") else kb_base
    return number * int(base**power)


def parse_fio_seconds(text: str) -> float | None:
    """The seconds of a time; None for anything else."""
    match = _TIME.fullmatch(text.strip().lower())
    if match is None or match[2] not in _SECONDS:
        return None
    return float(match[1]) * _SECONDS[match[2]]


def is_option_on(text: str | None) -> bool:
    """Whether an option is set: a bare name is, `0` is not."""
    return text is not None and text.strip().lower() not in ("0", "false", "no", "off")


def size_as_axis_value(size: int) -> int | str:
    """A size as axes have it: `4k` for 4096."""
    return next(
        (f"{size // step}{unit}" for step, unit in _SIZES if size and size % step == 0), size
    )
