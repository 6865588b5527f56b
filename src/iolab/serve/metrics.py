"""What a monitoring system is told of sessions that run: a page in the OpenMetrics format.

It is asked again and again, so that each run's tables are read once; what there is no time to read
is left to the next time, which a counter bears: it only grows later.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from functools import partial
from threading import Lock
from typing import Final

from iolab.analysis.points import summarise_points
from iolab.core.events import SessionStatus
from iolab.core.metric import RunResult
from iolab.core.study import Study
from iolab.errors import IolabError
from iolab.report.formats.openmetrics import (
    RunCounters,
    SessionCounters,
    cumulative_run_counters,
    openmetrics_document,
    openmetrics_samples,
)
from iolab.serve.sessions import LoadedSession, SessionFolder, SessionLibrary
from iolab.store.reader import SessionReader

NEWEST_S: Final = 3600.0
"""How long a session that ended is told of, so that its last values are seen by slow scrapes."""

MONITORED_MAX: Final = 16
"""Sessions that are told of, the newest first: a database takes as many series as it is given."""

READING_S: Final = 4.0
"""How long a scrape reads tables; it is given up by Prometheus after 10 s."""

_Key = tuple[str, str, int, int]
"""A run: the id of its session's place, its point's digest, its repeat and attempt."""

NO_COUNTERS: Final = RunCounters({}, ())
"""Of a run whose tables are damaged, or not read yet."""


class SessionLibraryMetrics:
    """The metrics of the sessions of a library, as they stand at each question."""

    def __init__(
        self,
        library: SessionLibrary,
        operation_name_of_run: Callable[[Study, RunResult, int], str],
        now_ns: Callable[[], int] = time.time_ns,
    ) -> None:
        self._library = library
        self._name = operation_name_of_run
        self._now_ns = now_ns
        self._known_counters: dict[_Key, RunCounters] = {}
        self._lock = Lock()

    def openmetrics_text(self) -> str:
        """The page as it is now."""
        with self._lock:
            until = time.monotonic() + READING_S
            current: dict[_Key, RunCounters] = {}
            samples = []
            for opened in self._loaded_sessions():
                runs = tuple(self._runs_and_counters(opened, until, current))
                points = summarise_points(opened.results, opened.study)
                planned = len(opened.reader.plan.runs)
                counts = SessionCounters(runs, has_timestamps=False)
                name = partial(self._name, opened.study)
                samples.append(openmetrics_samples(opened.session, planned, points, counts, name))
            self._known_counters = current
            return openmetrics_document(samples)

    def _loaded_sessions(self) -> Iterator[LoadedSession]:
        for place in list(self._running_and_recent_session_folders())[:MONITORED_MAX]:
            try:
                yield self._library.load_session(place)
            except IolabError:
                continue  # moved, or damaged just now: the list says so

    def _running_and_recent_session_folders(self) -> Iterator[SessionFolder]:
        """Of sessions that run, and of those to which a run was added lately."""
        since = self._now_ns() - int(NEWEST_S * 1e9)
        for line in self._library.list_sessions().lines:
            if line.summary is None:
                continue
            running = line.summary.session.status is SessionStatus.RUNNING
            if running or line.summary.stamp.newest_run_ns >= since:
                yield line.folder

    def _runs_and_counters(
        self,
        session: LoadedSession,
        deadline_s: float,
        current_counters_to_fill: dict[_Key, RunCounters],
    ) -> Iterator[tuple[RunResult, RunCounters]]:
        for result in session.results:
            key = (session.folder.id, result.digest, result.repeat, result.attempt)
            counts = self._known_counters.get(key)
            if counts is None and time.monotonic() < deadline_s:
                counts = read_run_counters(session.reader, result, with_timestamps=False)
            if counts is not None:
                current_counters_to_fill[key] = counts
            yield result, counts or NO_COUNTERS


def read_run_counters(
    reader: SessionReader, result: RunResult, *, with_timestamps: bool
) -> RunCounters | None:
    """A run's counters; None where its tables cannot be read."""
    run = result.key
    try:
        tables = (reader.intervals(*run), reader.bins(*run), reader.counters(*run))
        manifest = reader.manifest(*run)
        # The whole run of another tool is one interval where its file tells no others.
        has_series = manifest.run.point.job.is_measured_by_iolab or bool(tables[0].seq.any())
        return cumulative_run_counters(
            *tables,
            manifest.host_names,
            with_timestamps=with_timestamps,
            has_values_over_time=has_series,
        )
    except IolabError:
        return None
