"""Colours of a report: one token each with a light and a dark value.

A chart on a page refers to the tokens, so that one SVG serves light, dark and print. The series
colours are Okabe and Ito's, darkened on light paper until every line has a contrast of 3:1, and
lightened on dark paper.
"""

from __future__ import annotations

from typing import Final

from iolab.record import Record


class ColorToken(Record):
    """A CSS custom property, and its colour on either paper."""

    name: str
    light: str
    dark: str

    @property
    def css(self) -> str:
        """The value that refers to the token."""
        return f"var(--{self.name})"


PAPER: Final = ColorToken("paper", "#ffffff", "#101418")
RAISED: Final = ColorToken("raised", "#f6f7f9", "#181d23")
INK: Final = ColorToken("ink", "#171b21", "#e9ecef")
MUTED: Final = ColorToken("muted", "#545d69", "#a3adb9")
RULE: Final = ColorToken("rule", "#d9dee4", "#2d343d")
FAINT: Final = ColorToken("faint", "#e9ecf0", "#232930")
LINK: Final = ColorToken("link", "#0a5a9c", "#7cc0f2")
VALID: Final = ColorToken("valid", "#0b6b4b", "#4ccf9f")
VALID_PAPER: Final = ColorToken("valid-paper", "#e3f4ec", "#12322a")
INDICATIVE: Final = ColorToken("indicative", "#855700", "#f0c15c")
INDICATIVE_PAPER: Final = ColorToken("indicative-paper", "#fcf1da", "#382c10")
INVALID: Final = ColorToken("invalid", "#ab2316", "#ff9a8c")
INVALID_PAPER: Final = ColorToken("invalid-paper", "#fbe7e4", "#431d18")

SERIES: Final = (
    ColorToken("series-1", "#0072b2", "#56b4e9"),
    ColorToken("series-2", "#c94f00", "#ff9351"),
    ColorToken("series-3", "#007d5b", "#2fcb9e"),
    ColorToken("series-4", "#a8487f", "#e79cc8"),
    ColorToken("series-5", "#8a6200", "#e9bd4d"),
    ColorToken("series-6", "#5b4fc0", "#aaa3ff"),
    ColorToken("series-7", "#5a6470", "#b4bec9"),
)
"""Series colours in the order in which a study's configurations take them."""

TOKENS: Final = (
    PAPER,
    RAISED,
    INK,
    MUTED,
    RULE,
    FAINT,
    LINK,
    VALID,
    VALID_PAPER,
    INDICATIVE,
    INDICATIVE_PAPER,
    INVALID,
    INVALID_PAPER,
    *SERIES,
)

TEXT_PAIRS: Final = (
    (INK, PAPER),
    (MUTED, PAPER),
    (LINK, PAPER),
    (INK, RAISED),
    (MUTED, RAISED),
    (LINK, RAISED),
    (VALID, VALID_PAPER),
    (INDICATIVE, INDICATIVE_PAPER),
    (INVALID, INVALID_PAPER),
)
"""Every (text, paper) pair that a report sets; each keeps a contrast of 4.5:1 (WCAG 2.2 AA)."""


def series_color_token(index: int) -> ColorToken:
    """The token of the series at `index`; beyond the last the colours come again."""
    return SERIES[index % len(SERIES)]


def css_declarations(*, is_dark: bool) -> str:
    """The CSS declarations of all tokens for one paper."""
    return "".join(f"--{color.name}:{color.dark if is_dark else color.light};" for color in TOKENS)
