"""How rows are counted, and when a count is not what was loaded."""

from __future__ import annotations

import asyncio
import math

import pytest

from iolab.errors import EngineError
from iolab.loads.keyvalue.cassandra.server import (
    COUNT_ALL_MAX,
    COUNTED_RANGES,
    RANGES,
    SAMPLED_ROWS,
    RowCount,
    count_rows_adaptively,
    require_rows,
)
from iolab.loads.keyvalue.cassandra.tools import RowsReply


def counted(records: int, found: int) -> tuple[RowCount, tuple[int, int]]:
    """The count of a table with `found` rows, and which sample was requested."""
    asked: list[tuple[int, int]] = []

    async def ask(ranges: int, sample: int) -> RowsReply:
        asked.append((ranges, sample))
        mean = found * sample / ranges
        # Two standard deviations too many: as chance may have it.
        rows = found if ranges == sample else round(mean + 2 * math.sqrt(mean))
        return RowsReply(rows=rows, ranges=ranges, sample=sample)

    result = asyncio.run(count_rows_adaptively(ask, records))
    (only,) = asked
    return result, only


def test_few_rows_are_all_counted() -> None:
    found, asked = counted(COUNT_ALL_MAX, COUNT_ALL_MAX - 1)
    assert found == RowCount(COUNT_ALL_MAX - 1, "count")
    assert asked == (COUNTED_RANGES, COUNTED_RANGES)
    assert not found.is_compatible_with(COUNT_ALL_MAX)


@pytest.mark.parametrize("records", [COUNT_ALL_MAX + 1, 10**7, 10**9, 10**12])
def test_many_rows_are_told_by_a_sample(records: int) -> None:
    found, (ranges, sample) = counted(records, records)
    assert found.method == "estimate"
    assert found.is_compatible_with(records)
    assert found.max_error < 0.03 * records
    assert ranges == RANGES
    assert ranges % sample == 0
    # Enough to tell, and no more than twice that but for a single range.
    assert records * sample / ranges >= SAMPLED_ROWS
    assert sample == 1 or records * sample / ranges <= 2 * SAMPLED_ROWS
    short, _ = counted(records, round(records * 0.95))
    assert not short.is_compatible_with(records)


def test_a_wrong_count_is_an_error_that_says_how_it_is_known() -> None:
    with pytest.raises(EngineError, match=r"about 900 rows, .* 2,000"):
        require_rows(RowCount(900, "estimate", 100), 2000, "t", "Do.")
    require_rows(RowCount(900, "estimate", 100), 1000, "t", "Do.")
