"""The sessions of a directory as pages ask for them: found, told in short, and opened.

All of it may block on the disk; pages call it in a thread of its own, one at a time.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from threading import Lock
from typing import Final

from iolab.analyse.apart import shown_of
from iolab.errors import IolabError
from iolab.model.event import SessionStatus
from iolab.model.metric import Result
from iolab.model.study import Study
from iolab.report.headline import Tally, tally
from iolab.serve.find import Found, Place, find_sessions
from iolab.serve.limits import FOUND_S, LISTING_S, READERS_MAX
from iolab.serve.state import Lookout, State
from iolab.store import layout
from iolab.store.documents import Session
from iolab.store.durable import told
from iolab.store.reader import SessionReader

Clock = Callable[[], float]
"""Seconds that only grow."""

_TOLD_MAX: Final = 2048
"""Sessions that are remembered in short; a list shows fewer."""


@dataclass(frozen=True, slots=True)
class InShort:
    """A session in a line: what it is, how it stands, its runs by verdict, how many are planned.

    `more` says that results may ask for runs beyond those planned.
    """

    session: Session
    tally: Tally
    planned: int
    more: bool
    state: State


@dataclass(frozen=True, slots=True)
class Line:
    """A session of the list: in short, or why it cannot be read, or neither where not read yet."""

    place: Place
    told: InShort | None
    fault: str


@dataclass(frozen=True, slots=True)
class Listing:
    """The sessions, newest first, and what is to be known of the list itself."""

    lines: tuple[Line, ...]
    notes: tuple[str, ...]
    whole: bool


@dataclass(frozen=True, slots=True)
class Opened:
    """A session read for a page: `results` and `study` as `iolab show` has them."""

    place: Place
    state: State
    reader: SessionReader
    session: Session
    study: Study
    results: tuple[Result, ...]


class Library:
    """The sessions below `root`, which must be absolute and without links in it."""

    def __init__(self, root: Path, clock: Clock) -> None:
        self.root = root
        self._clock = clock
        self._lock = Lock()
        self._lookout = Lookout()
        self._found: Found | None = None
        self._found_at = 0.0
        self._told: OrderedDict[str, tuple[str, InShort | str]] = OrderedDict()
        self._readers: OrderedDict[str, tuple[tuple[int, int], SessionReader]] = OrderedDict()

    def listing(self) -> Listing:
        """Every session; those that were not read yet are read for a while, the newest known."""
        with self._lock:
            found = self._search(anew=True)
            until = self._clock() + LISTING_S
            lines = [self._line(place, until) for place in found.places]
            whole = all(line.told or line.fault for line in lines)
            return Listing(tuple(sorted(lines, key=_newest)), found.notes, whole)

    def count(self) -> int:
        """How many sessions there are, none of them read."""
        with self._lock:
            return len(self._search(anew=True).places)

    def place(self, session_id: str) -> Place | None:
        """Where the session of that id lies; None where there is none."""
        with self._lock:
            return next((one for one in self._search().places if one.id == session_id), None)

    def state(self, place: Place) -> State:
        """How a session stands now; StoreError where it must not be read."""
        with self._lock:
            return self._lookout.state(place.folder)

    def open(self, place: Place) -> Opened:
        """A session with its results; StoreError where it cannot or must not be read."""
        with self._lock:
            return self._open(place)

    def _search(self, *, anew: bool = False) -> Found:
        now = self._clock()
        if anew or self._found is None or now - self._found_at > FOUND_S:
            self._found, self._found_at = find_sessions(self.root), now
        return self._found

    def _line(self, place: Place, until: float) -> Line:
        try:
            state = self._lookout.state(place.folder)
            known = self._told.get(place.id)
            if known is None or known[0] != state.digest:
                if self._clock() > until:
                    return Line(place, None, "")
                known = (state.digest, self._in_short(place))
                self._told[place.id] = known
                if len(self._told) > _TOLD_MAX:
                    self._told.popitem(last=False)
        except IolabError as error:
            return Line(place, None, self._below(error))
        short = known[1]
        return Line(place, None, short) if isinstance(short, str) else Line(place, short, "")

    def _in_short(self, place: Place) -> InShort | str:
        try:
            opened = self._open(place)
            plan = opened.reader.plan
            return InShort(
                session=opened.session,
                tally=tally(opened.results),
                planned=len(plan.runs),
                more=bool(plan.runs_more),
                state=opened.state,
            )
        except IolabError as error:
            return self._below(error)

    def _below(self, error: IolabError) -> str:
        """What an error says, of places below the directory and not of where that lies."""
        return str(error).replace(f"{self.root}/", "")

    def _open(self, place: Place) -> Opened:
        state = self._lookout.state(place.folder)
        reader = self._reader(place)
        study, results = shown_of(reader)
        return Opened(place, state, reader, reader.session, study, results)

    def _reader(self, place: Place) -> SessionReader:
        """The reader that knows the session's runs already, unless another took its place."""
        with told(place.folder / layout.PLAN, "read"):
            found = (place.folder / layout.PLAN).lstat()
        stamp = (found.st_ino, found.st_mtime_ns)
        known = self._readers.pop(place.id, None)
        if known is None or known[0] != stamp:
            known = (stamp, SessionReader(place.folder))
        self._readers[place.id] = known
        if len(self._readers) > READERS_MAX:
            self._readers.popitem(last=False)
        return known[1]


def _newest(line: Line) -> tuple[int, int, str]:
    """Running sessions first, then by age; what cannot be read comes last."""
    if line.told is None:
        return (2 if line.fault else 1, 0, line.place.name)
    running = line.told.session.status is SessionStatus.RUNNING
    return (-1 if running else 0, -line.told.session.created_real_ns, line.place.name)
