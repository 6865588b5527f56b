"""Units of charts: those of tables of their own, and any that a kind of load brings."""

from __future__ import annotations

import pytest

from iolab.report.charts.scale import unit_divisor_and_name


@pytest.mark.parametrize(
    ("unit", "largest", "expected"),
    [
        ("requests/s", 54.0, (1.0, "requests/s")),
        ("requests/s", 54_000.0, (1e3, "k requests/s")),
        ("tokens/s", 5e6, (1e6, "M tokens/s")),
        ("bytes/s", 5e6, (1e6, "MB/s")),
    ],
)
def test_a_unit_without_a_table_has_the_prefixes_of_all(
    unit: str, largest: float, expected: tuple[float, str]
) -> None:
    assert unit_divisor_and_name(unit, largest) == expected
