"""Types of value that the tables of several kinds of workload share."""

from __future__ import annotations

from typing import Annotated, Final

from iolab.plan import values
from iolab.units import parse_size

TITLE_CHARACTERS: Final = 200
PROSE_CHARACTERS: Final = 4000

Title = Annotated[str, values.text(TITLE_CHARACTERS)]
Prose = Annotated[str, values.text(PROSE_CHARACTERS, lines=True)]
Id = Annotated[str, values.identifier()]
Label = Annotated[str | int | float | bool, values.scalar()]
Sizes = values.Listed(lone=True, same=parse_size)
Numbers = values.Listed(lone=True)
