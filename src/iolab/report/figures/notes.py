"""What the bars through markers are, in words: one place for all charts that have them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from iolab.model.metric import Metric

OVER_RUNS: Final = "Bars: 95 % interval over the runs, which are the small marks."
OF_BINS: Final = "Bars of percentiles: the engine’s own bin that holds it."


def bar_notes(metrics: Iterable[Metric], intervals: str = OVER_RUNS) -> list[str]:
    """A sentence for intervals of chance, one for edges of bins, as far as any is drawn."""
    drawn = [one for one in metrics if one.low is not None and one.high is not None]
    notes = [intervals] if any(not one.bounded for one in drawn) else []
    return [*notes, *([OF_BINS] if any(one.bounded for one in drawn) else [])]
