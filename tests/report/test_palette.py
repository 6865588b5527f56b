"""Text keeps 4.5:1 and lines 3:1 against their paper, in light and in dark (WCAG 2.2, AA)."""

from __future__ import annotations

import pytest

from iolab.report.charts.palette import (
    PAPER,
    RAISED,
    SERIES,
    TEXT_PAIRS,
    TOKENS,
    ColorToken,
    css_declarations,
)


def luminance(colour: str) -> float:
    channels = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in channels]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(one: str, other: str) -> float:
    high, low = sorted((luminance(one), luminance(other)), reverse=True)
    return (high + 0.05) / (low + 0.05)


def test_the_formula_knows_black_on_white() -> None:
    assert contrast("#000000", "#ffffff") == pytest.approx(21)


@pytest.mark.parametrize(("text", "paper"), TEXT_PAIRS, ids=lambda color: color.name)
def test_text_can_be_read(text: ColorToken, paper: ColorToken) -> None:
    assert contrast(text.light, paper.light) >= 4.5
    assert contrast(text.dark, paper.dark) >= 4.5


@pytest.mark.parametrize("color", SERIES, ids=lambda color: color.name)
@pytest.mark.parametrize("paper", [PAPER, RAISED], ids=lambda color: color.name)
def test_series_labels_can_be_read_on_paper_and_lines_in_shade(
    color: ColorToken, paper: ColorToken
) -> None:
    needed = 4.5 if paper is PAPER else 3.0
    assert contrast(color.light, paper.light) >= needed
    assert contrast(color.dark, paper.dark) >= needed


def test_every_token_has_a_property_of_its_own() -> None:
    assert len({color.name for color in TOKENS}) == len(TOKENS)
    assert all(
        f"--{color.name}:{color.dark};" in css_declarations(is_dark=True) for color in TOKENS
    )
