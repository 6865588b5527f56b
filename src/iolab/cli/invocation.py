"""How the user calls this program again."""

from __future__ import annotations

import shlex
import shutil
import sys
from pathlib import Path
from typing import Final

PROGRAM: Final = "iolab"


def quoted_iolab_command(*words: str) -> str:
    """A command of this program as a line for the shell, quoted.

    It begins with `iolab` where that is on the path, else as this process was called: by the path
    of the program, as `.venv/bin/iolab` of a checkout, or as a module of Python.
    """
    return " ".join((_program_command_text(), *map(shlex.quote, words)))


def _program_command_text() -> str:
    if shutil.which(PROGRAM):
        return PROGRAM
    called = Path(sys.argv[0])
    if called.parts[-2:] == (PROGRAM, "__main__.py"):
        return f"{shlex.quote(sys.executable)} -m {PROGRAM}"
    if called.name != PROGRAM:
        return PROGRAM
    return shlex.quote(sys.argv[0])
