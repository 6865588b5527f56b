"""What a screen shows, as lines of plain text."""

from __future__ import annotations

import io
from collections.abc import Iterable

from rich.console import Console, RenderableType


def drawn(parts: Iterable[RenderableType], width: int = 1000) -> list[str]:
    """The lines of a terminal that wide, without colours and without blanks at their ends."""
    out = io.StringIO()
    console = Console(file=out, width=width, markup=False, highlight=False, color_system=None)
    for part in parts:
        console.print(part)
    return [line.rstrip() for line in out.getvalue().splitlines()]
