"""Names written short: `client[01-12]`, `node[1-3,7]`, `a,b[1-2]`, as Slurm and pdsh write them."""

from __future__ import annotations

import itertools
import math
import re
from typing import Final

from iolab.plan.wording import shown

HOSTS_MAX: Final = 1000
"""The largest fleet that one controller is made for; a larger number is a slip of a digit."""

TEXT_CHARACTERS: Final = 4096
"""A list of a few hundred irregular names fits."""

DIGITS_MAX: Final = 9
"""More digits than any numbering of hosts has."""


class RangeFault(ValueError):
    """A range that makes no sense: what is wrong, said after the key's name, and what to do."""

    def __init__(self, happened: str, do: str) -> None:
        super().__init__(f"{happened}. {do}")
        self.happened = happened
        self.do = do


def has_ranges(text: str) -> bool:
    """Whether the text may stand for more than one name."""
    return any(character in text for character in "[],")


def expand(text: str) -> tuple[str, ...]:
    """Every name that `text` stands for, in the order written. Raises RangeFault.

    Zeros in front of a range's start are kept: `[01-12]` is 01, 02 ... 12. Several ranges in one
    name make a product, the first varies slowest.
    """
    if len(text) > TEXT_CHARACTERS:
        raise RangeFault(f"has {len(text)} characters", f"Give at most {TEXT_CHARACTERS}.")
    names: list[str] = []
    for part in _split(text):
        names += _expand_one(text, part, HOSTS_MAX - len(names))
    return tuple(names)


_PIECE: Final = re.compile(r"\[([^\[\]]*)\]|([^\[\]]+)")
_STEP: Final = re.compile(r"(\d+)(?:-(\d+))?")
_DO: Final = "Write ranges as in client[01-12] or node[1-3,7]."


def _split(text: str) -> list[str]:
    """The parts between commas that stand outside of brackets."""
    parts, depth = [""], 0
    for character in text:
        depth += {"[": 1, "]": -1}.get(character, 0)
        if character == "," and depth == 0:
            parts.append("")
        else:
            parts[-1] += character
    return [part.strip() for part in parts]


def _expand_one(text: str, part: str, room: int) -> list[str]:
    pieces = list(_PIECE.finditer(part))
    if not part or "".join(piece.group() for piece in pieces) != part:
        raise RangeFault(f"is {shown(text)}", _DO)
    choices = [
        [piece[2]] if piece[2] is not None else _numbers(text, piece[1], room) for piece in pieces
    ]
    count = math.prod(len(choice) for choice in choices)
    if count > room:
        raise _too_many(text)
    return ["".join(chosen) for chosen in itertools.product(*choices)]


def _numbers(text: str, ranges: str, room: int) -> list[str]:
    """The numbers of one pair of brackets."""
    numbers: list[str] = []
    for step in ranges.split(","):
        match = _STEP.fullmatch(step.strip())
        if match is None or max(len(match[1]), len(match[2] or "")) > DIGITS_MAX:
            raise RangeFault(f"is {shown(text)}", _DO)
        first, last = match[1], match[2] or match[1]
        if int(last) < int(first):
            do = f"Write [{last}-{first}]." if len(first) == len(last) else _DO
            raise RangeFault(f"is {shown(text)}, whose range runs backwards", do)
        if last[0] == "0" and len(last) != len(first):
            do = "Write as many digits on both sides, as in [01-12]."
            raise RangeFault(f"is {shown(text)}, whose zeros do not agree", do)
        if int(last) - int(first) + 1 > room:
            raise _too_many(text)
        numbers += [str(n).zfill(len(first)) for n in range(int(first), int(last) + 1)]
    return numbers


def _too_many(text: str) -> RangeFault:
    return RangeFault(f"is {shown(text)}, more than {HOSTS_MAX} hosts", "Correct the range.")
