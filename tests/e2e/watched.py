"""A session in this process, each of whose events a test can act upon before the next one comes."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path

from iolab.cli.live import LiveView
from iolab.cli.options import StudyOptions, load_study
from iolab.cli.session import SessionRequest, run_session_with_view
from iolab.core.events import Event, SessionStatus
from iolab.session.session import NO_EARLIER_SEGMENTS
from iolab.store.writer import SessionWriter
from tests.e2e.devices import Spare
from tests.plans import make_plan

Act = Callable[[Event], None]


class ActingView(LiveView):
    """Sees nothing but what the test sees."""

    def __init__(self, act: Act) -> None:
        self._act = act

    def on_event(self, event: Event) -> None:
        """Take one event of the session."""
        self._act(event)


def run_watched(
    study: Path, session: Path, act: Act, *, path: Path | None = None, spare: Spare | None = None
) -> SessionStatus:
    """`iolab run` on a directory or on a device, with `act` called at each event."""
    device, serial = (spare.path, spare.serial) if spare else (None, None)
    options = StudyOptions(str(study), None if path is None else str(path), device, serial)
    read = load_study(options)
    plan = make_plan(read)
    request = SessionRequest(
        study=read,
        plan=plan,
        session_id=session.name,
        earlier_segments=NO_EARLIER_SEGMENTS,
        open_writer=lambda _: SessionWriter.create(session, read, plan, session.name, ["iolab"]),
    )
    return asyncio.run(run_session_with_view(request, ActingView(act)))
