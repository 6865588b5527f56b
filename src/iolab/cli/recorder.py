"""Where a session's events go: each run is judged, committed, and then shown."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress
from types import TracebackType
from typing import Self

from iolab.analyse.agenda.course import DecidingAgenda
from iolab.analyse.judge import ANALYSIS_VERSION, judge
from iolab.cli.live import View
from iolab.errors import StoreError
from iolab.model.event import (
    Event,
    FilesystemsMade,
    LedgerKept,
    RunFinished,
    SessionEnded,
    SessionStarted,
    SessionStatus,
)
from iolab.model.host import HostFacts
from iolab.store.writer import SessionWriter

OpenWriter = Callable[[Mapping[str, HostFacts]], SessionWriter]
"""Opens the session for writing when its hosts' facts are known; IolabError to refuse."""


class SessionRecorder:
    """A recorder that keeps before it shows: what the user has seen is on the device.

    What came of each run it tells the `agenda`, if results decide the next one.
    The session is opened at SessionStarted, so a session that was refused leaves no directory.
    """

    def __init__(
        self, open_writer: OpenWriter, view: View, agenda: DecidingAgenda | None = None
    ) -> None:
        self._open_writer = open_writer
        self._view = view
        self._agenda = agenda
        self._writer: SessionWriter | None = None
        self._facts: dict[str, HostFacts] = {}

    @property
    def begun(self) -> bool:
        """Whether there is a session on disk by now."""
        return self._writer is not None

    def emit(self, event: Event) -> None:
        """Take one event; StoreError when it cannot be kept."""
        match event:
            case SessionStarted():
                self._facts = dict(event.facts)
                self._writer = self._open_writer(self._facts)
                self._writer.started(self._facts, event.agent_version)
                self._view.see(event)
            case FilesystemsMade():
                self._facts |= dict(event.facts)
                if self._writer is not None:
                    self._writer.made(event.facts)
            case RunFinished():
                result = judge(event.record, self._facts)
                if self._writer is not None:
                    self._writer.commit(event.record, result, analysis_version=ANALYSIS_VERSION)
                if self._agenda is not None:
                    self._agenda.learn(result)
                self._view.see(event)
                self._view.judged(result)
            case LedgerKept():
                if self._writer is not None:
                    self._writer.keep_ledger(event.ledger)
            case SessionEnded():
                self._end(event.status, event.reason)
                self._view.see(event)
            case _:
                self._view.see(event)

    def give_up(self, reason: str) -> None:
        """Say in the session why it ended, if even that can be written."""
        with suppress(StoreError):
            self._end(SessionStatus.FAILED, reason)

    def _end(self, status: SessionStatus, reason: str | None) -> None:
        if self._writer is not None:
            self._writer.ended(status, reason)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Let go of the session, whatever happened."""
        if self._writer is not None:
            self._writer.close()
