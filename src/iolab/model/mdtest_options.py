"""Further options of mdtest and its MPI that a study may set, and nothing else.

What iolab itself decides (ranks, files, iterations, folders, the shift) is not listed, nor what
would run commands or write files. Programs may be named by their full path, for sites that keep
several MPIs; what such a path may end in is fixed, and no part of it may begin with a dash.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final


@dataclass(frozen=True, slots=True)
class MdtestOption:
    """One allowed option: the pattern that its value must match as a whole, and an example."""

    name: str
    pattern: re.Pattern[str]
    example: str
    meaning: str


def mdtest_value_fits(name: str, text: str) -> bool:
    """Whether `text` is a value that the allowed option `name` takes; KeyError if not allowed."""
    return MDTEST_OPTIONS[name].pattern.fullmatch(text) is not None


_FLAG: Final = "[01]"
_FOLDERS: Final = r"(?:(?:/[A-Za-z0-9_.+][A-Za-z0-9_.+-]{0,99}){1,20}/)?"

_ALL: Final = (
    ("mdtest", rf"{_FOLDERS}mdtest(?:[.-][A-Za-z0-9.-]{{1,20}})?", "/opt/ior/bin/mdtest"),
    ("mpiexec", rf"{_FOLDERS}mpiexec(?:\.(?:mpich|openmpi|hydra))?", "mpiexec.mpich"),
    ("allow_run_as_root", _FLAG, "1"),
    ("fsync", _FLAG, "1"),
    ("random_stat", _FLAG, "1"),
)
_MEANINGS: Final = (
    "mdtest itself; found on PATH when it has no slash",
    "what starts the ranks; found on PATH when it has no slash",
    "let Open MPI start ranks as root, which it refuses else",
    "sync each file after it was written (`-y`)",
    "stat the files in random order (`-R`)",
)

MDTEST_OPTIONS: Final[Mapping[str, MdtestOption]] = MappingProxyType(
    {
        name: MdtestOption(name, re.compile(pattern), example, meaning)
        for (name, pattern, example), meaning in zip(_ALL, _MEANINGS, strict=True)
    }
)
"""Every allowed option by its name."""
