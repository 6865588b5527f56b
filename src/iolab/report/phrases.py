"""What sentences on findings are made of: names of configurations, places, shares, lists."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from iolab.model.metric import Level
from iolab.report.wording import axis_label, axis_word

LEVELS: Final = {
    Level.VALID: "",
    Level.INDICATIVE: " This is indicative only.",
    Level.INVALID: " No run of it is valid.",
}
"""What a sentence ends with, by the worst verdict behind it."""


@dataclass(frozen=True, slots=True)
class Names:
    """Titles of configurations by id, and whether there are several, so that they must be named."""

    titles: Mapping[str, str]

    @property
    def several(self) -> bool:
        """Whether a sentence must say which configuration it speaks of."""
        return len(self.titles) > 1

    def of(self, configuration: str) -> str:
        """A configuration as sentences call it."""
        return self.titles.get(configuration, configuration)


def place(axis: Sequence[tuple[str, int | str]]) -> str:
    """A place on the axes, each named as in a sentence: `threads 4, block_size 16k`."""
    return axis_label(tuple((axis_word(name), value) for name, value in axis))


def percent(share: float) -> str:
    """A share with two digits, and no more than it has."""
    percent = 100 * share
    if 99 < percent < 100:
        return f"{100 - float(f'{100 - percent:.2g}'):.10g} %"  # all but so much, never all
    return f"{percent:.0f} %" if abs(percent) >= 9.95 else f"{percent:.2g} %"


def part(share: float) -> str:
    """A part of a whole that is there in full at 100 %, as of time or of a link's speed."""
    told = min(100 * share, 100.0)
    return f"{told:.0f} %" if told >= 9.95 else f"{told:.2g} %"


def terabytes(size: float) -> str:
    """A capacity with three digits, and no fewer than it has before the point."""
    return f"{size:,.0f} TB" if size >= 999.5 else f"{size:.3g} TB"


def times(factor: float) -> str:
    """How many times, with two digits, and no fewer than it has before the point."""
    return f"{factor:,.0f} times" if factor >= 9.95 else f"{factor:.2g} times"


def joined(parts: Sequence[str]) -> str:
    """Parts of a sentence: `one, two and three`."""
    return parts[0] if len(parts) == 1 else f"{', '.join(parts[:-1])} and {parts[-1]}"


def step_words(axis: str, load: int, further: int, gain: float) -> str:
    """What a step of load does to the rate: `from iodepth 8 to 16 the rate rises by 3 %`."""
    way = "rises" if gain >= 1 else "falls"
    return f"from {axis_word(axis)} {load} to {further} the rate {way} by {percent(abs(gain - 1))}"
