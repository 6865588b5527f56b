"""Opens the sessions that commands show: damage is told once, and the exit code says so."""

from __future__ import annotations

import shlex
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from iolab.store.reader import SessionReader
    from iolab.store.verify import Damage

TOLD_MAX: Final = 50
"""Damaged runs that are named one by one: a lost disk may take all of a session's."""

_LEFT_OUT: Final[list[Path]] = []
"""The session of each damage that this command line met."""


def open_session(directory: Path) -> SessionReader:
    """A reader of the session, which tells what it leaves out; StoreError if it is none."""
    import iolab.cli.study_kinds  # noqa: F401 - it may hold parts of every kind
    from iolab.store.reader import SessionReader

    reader = SessionReader(directory, lambda damage: left_out(directory, damage))
    reader.damaged_documents()
    return reader


def left_out(directory: Path, damage: Damage) -> None:
    """Tell what is damaged, and what to do."""
    from iolab.cli.output import say
    from iolab.report.terminal import one_line
    from iolab.store.verify import AGAIN

    if damage.do == AGAIN:
        again = f"iolab resume {shlex.quote(str(directory))}"
        damage = replace(damage, do=AGAIN.replace("iolab resume", again))
    _LEFT_OUT.append(directory)
    if len(_LEFT_OUT) <= TOLD_MAX:
        say(one_line(f"{directory}: damaged, left out: {damage}"))


def begin() -> None:
    """Forget what an earlier command line of this process met."""
    _LEFT_OUT.clear()


def ended(code: int) -> int:
    """What to exit with in place of `code`: 5 where a good end left something out."""
    from iolab.cli.output import say
    from iolab.errors import ExitCode

    if not _LEFT_OUT or code not in (ExitCode.OK, ExitCode.VERDICT):
        return code
    if len(_LEFT_OUT) > TOLD_MAX:
        say(f"and {len(_LEFT_OUT) - TOLD_MAX} more that are damaged, left out.")
    return ExitCode.STORE
