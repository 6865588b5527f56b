"""Numbers of charts and pages: another processor's last digits change nothing."""

from __future__ import annotations

import pytest

from iolab.report.numbers import round_floats


@pytest.mark.parametrize(
    ("value", "written"),
    [
        (9.948898388286894, 9.9489),
        (9.948898387765828, 9.9489),
        (-1234.5678, -1234.57),
        (1e-9 / 3, 3.33333e-10),
        (0.30000000000000004, 0.3),
    ],
)
def test_fractions_have_six_significant_digits(value: float, written: float) -> None:
    assert round_floats({"values": [{"y": value}]}) == {"values": [{"y": written}]}


@pytest.mark.parametrize(
    "value", [0, 1048576.0, 16526081, 1_760_000_000.0, 3.0000004, 12345678.000000002]
)
def test_whole_numbers_are_whole_however_long(value: float) -> None:
    found = round_floats(value)
    assert found == pytest.approx(value, abs=1e-6)
    assert isinstance(found, int)


def test_what_is_no_number_stays() -> None:
    assert round_floats(["1.23456789", True, None, (1, "x")]) == [
        "1.23456789",
        True,
        None,
        [1, "x"],
    ]
