"""The one tree of errors: what happened (with the value), what to do, and an exit code each."""

from __future__ import annotations

from collections.abc import Sequence
from enum import IntEnum
from typing import Final

from iolab.record import Record


class ExitCode(IntEnum):
    """What the process exits with; a verdict is not an error."""

    OK = 0
    VERDICT = 1
    STUDY = 2
    HOST = 3
    ENGINE = 4
    STORE = 5
    REPORT = 6
    BUG = 70
    INTERRUPTED = 130


MAKE_ROOM: Final = "Make room, "
"""How hints begin where files do not fit; the command line adds a smaller scale to these."""


class Fault(Record):
    """One of several things that are wrong, told with all the others at once."""

    message: str
    hint: str
    file: str | None = None
    line: int | None = None

    def __str__(self) -> str:
        where = f"{self.file}:{self.line}: " if self.file and self.line else ""
        if self.file and not self.line:
            where = f"{self.file}: "
        return f"{where}{self.message} {self.hint}".strip()


class IolabError(Exception):
    """Any error that iolab raises on purpose: two sentences, an exit code, the faults.

    `hosts` names the hosts that are at fault, where a phase over several knows it.
    """

    exit_code: ExitCode = ExitCode.BUG

    def __init__(self, message: str, hint: str, faults: Sequence[Fault] = ()) -> None:
        super().__init__(f"{message} {hint}".strip())
        self.message = message
        self.hint = hint
        self.faults = tuple(faults)
        self.hosts: tuple[str, ...] = ()


class StudyError(IolabError):
    """A study, a value of it, or the command line is wrong (exit 2)."""

    exit_code = ExitCode.STUDY

    def __init__(self, faults: Sequence[Fault]) -> None:
        if not faults:
            raise ValueError("a StudyError needs at least one fault")
        count = "a fault" if len(faults) == 1 else f"{len(faults)} faults"
        super().__init__(f"The study has {count}.", "Correct it and run again.", faults)


class UsageError(IolabError):
    """The command line asks for something that does not exist (exit 2)."""

    exit_code = ExitCode.STUDY


class HostError(IolabError):
    """A host, its agent or its target cannot serve (exit 3)."""

    exit_code = ExitCode.HOST


class EngineError(IolabError):
    """An engine is missing, too old, failed, or said what cannot be read (exit 4)."""

    exit_code = ExitCode.ENGINE


class StoreError(IolabError):
    """A session directory cannot be read or written (exit 5)."""

    exit_code = ExitCode.STORE


class ReportError(IolabError):
    """A report cannot be made or written (exit 6)."""

    exit_code = ExitCode.REPORT


class Interrupted(IolabError):
    """The user asked to stop (exit 130)."""

    exit_code = ExitCode.INTERRUPTED
