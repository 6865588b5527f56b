"""Where a session's events go: each run is judged, committed, and then shown."""

from __future__ import annotations

from iolab.analyse.judge import ANALYSIS_VERSION, judge
from iolab.cli.live import View
from iolab.model.event import (
    Event,
    RunFinished,
    SessionEnded,
    SessionStarted,
)
from iolab.model.host import HostFacts
from iolab.store.writer import SessionWriter


class SessionRecorder:
    """A recorder that keeps before it shows: what the user has seen is on the device."""

    def __init__(self, writer: SessionWriter, view: View) -> None:
        self._writer = writer
        self._view = view
        self._facts: dict[str, HostFacts] = {}

    def emit(self, event: Event) -> None:
        """Take one event; StoreError when it cannot be kept."""
        match event:
            case SessionStarted():
                self._facts = dict(event.facts)
                self._writer.started(event.facts, event.agent_version)
                self._view.see(event)
            case RunFinished():
                result = judge(event.record, self._facts)
                self._writer.commit(event.record, result, analysis_version=ANALYSIS_VERSION)
                self._view.see(event)
                self._view.judged(result)
            case SessionEnded():
                self._writer.ended(event.status, event.reason)
                self._view.see(event)
            case _:
                self._view.see(event)
