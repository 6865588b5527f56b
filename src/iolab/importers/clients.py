"""Files of several clients of the same moment, taken as one run of all of them.

Nothing in such files says so: one by one they look like repeats of one load.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import chain
from typing import Final

from msgspec.structs import replace

from iolab.importers.files import RunWithFiles
from iolab.importers.foreign_run import CLIENT_COUNT, ForeignRun, ImportedClient, ImportedJob
from iolab.importers.session import PlannedImport, client_runtime_ns
from iolab.record import Record

FILES_SHOWN: Final = 3
"""Files that a sentence names; more are counted."""


def join_clients_of_same_load(runs: Sequence[RunWithFiles]) -> tuple[RunWithFiles, ...]:
    """The runs of one load in several files as one run of the clients of all of these files.

    Where all files tell when they ran, and some ran at the same time, those that did are a run each
    time. Else all are one: whether they can have been is for the checks to say.
    """
    groups: dict[object, list[RunWithFiles]] = {}
    for files, run in runs:
        load = tuple(sorted(_settings_shared_by_clients(run).items()))
        groups.setdefault((run.details.tool, run.name, run.access_kind, load), []).append(
            (files, run)
        )
    return tuple(
        _join_clients(members)
        for group in groups.values()
        for members in _group_simultaneous_runs_or_all(group)
    )


def _settings_shared_by_clients(foreign_run: ForeignRun) -> dict[str, str]:
    """The settings that clients of one load share; each has its own folder or device."""
    own = (*ImportedJob.path_options, CLIENT_COUNT)
    return {
        name: str(value) for name, value in foreign_run.load_settings.items() if name not in own
    }


class AssumedRepeats(Record):
    """Runs of one point taken as its repeats: of these files, in so many sources.

    `has_overlap` is whether some of them ran at the same time.
    """

    files: tuple[str, ...]
    run_count: int
    has_overlap: bool

    @property
    def message(self) -> str:
        """What was assumed, and how to have it otherwise."""
        more = len(self.files) - FILES_SHOWN
        names = ", ".join(self.files[:FILES_SHOWN]) + (f" and {more} more" if more > 0 else "")
        if len(self.files) == 1:
            return f"{self.run_count} runs in {names} are of one load: taken as repeats."
        if self.has_overlap:
            return (
                f"Taken as repeats, but they ran at the same time: {names}. Import with --clients."
            )
        return f"Taken as repeats of one load: {names}. If they are of several clients: --clients."


def find_assumed_repeats(runs: Sequence[PlannedImport]) -> Iterator[AssumedRepeats]:
    """Every set of files of which that was assumed, once."""
    points: dict[str, list[PlannedImport]] = {}
    for placed in runs:
        points.setdefault(placed.planned_run.point.digest, []).append(placed)
    found: dict[tuple[str, ...], AssumedRepeats] = {}
    for members in points.values():
        if len(members) > 1:
            group = [(placed.files, placed.foreign_run) for placed in members]
            files = tuple(dict.fromkeys(file.printable_path for own, _ in group for file in own))
            overlap = any(len(moment) > 1 for moment in _group_overlapping_runs(group))
            before = found.get(files, AssumedRepeats(files, 0, has_overlap=False))
            found[files] = AssumedRepeats(
                files, max(before.run_count, len(members)), before.has_overlap or overlap
            )
    yield from found.values()


def _group_simultaneous_runs_or_all(group: Sequence[RunWithFiles]) -> list[list[RunWithFiles]]:
    """The runs that were made at the same time, as far as their files tell."""
    if any(_run_start_and_end_ns(run) is None for _, run in group):
        return [list(group)]
    moments = _group_overlapping_runs(group)
    return moments if len(moments) < len(group) else [list(group)]


def _group_overlapping_runs(group: Sequence[RunWithFiles]) -> list[list[RunWithFiles]]:
    """The runs in order of their start, those together that overlap; nothing of unknown times."""
    spans = [(span, sourced) for sourced in group if (span := _run_start_and_end_ns(sourced[1]))]
    moments: list[list[RunWithFiles]] = []
    until = 0
    for (begin, end), sourced in sorted(spans, key=lambda pair: pair[0]):
        if moments and begin < until:
            moments[-1].append(sourced)
        else:
            moments.append([sourced])
        until = max(until, end)
    return moments


def _run_start_and_end_ns(foreign_run: ForeignRun) -> tuple[int, int] | None:
    """From the first client's start to the last one's end, in ns; None where that is not told."""
    starts = [client.start_ns for client in foreign_run.clients]
    known_starts = [start for start in starts if start is not None]
    if not known_starts or len(known_starts) < len(starts):
        return None
    ends = [
        start + client_runtime_ns(client)
        for start, client in zip(known_starts, foreign_run.clients, strict=True)
    ]
    return min(known_starts), max(ends)


def _join_clients(members: Sequence[RunWithFiles]) -> RunWithFiles:
    if len(members) == 1:
        return members[0]
    files = tuple(chain.from_iterable(own for own, _ in members))
    first = members[0][1]
    moments = [run.ended_real_ns for _, run in members if run.ended_real_ns is not None]
    details = replace(
        first.details,
        files=tuple(file.name for file in files),
        claimed_totals=(),
        summed_phase_count=max(run.details.summed_phase_count for _, run in members),
        notes=(*first.details.notes, f"{len(members)} files taken as clients of the same moment"),
    )
    return files, replace(
        first,
        details=details,
        clients=tuple(_clients_named_by_file(members)),
        ended_real_ns=max(moments, default=None),
        failure=next((run.failure for _, run in members if run.failure), None),
    )


def _clients_named_by_file(members: Sequence[RunWithFiles]) -> Iterator[ImportedClient]:
    """All clients, each by the name of its file, or of its folder too where files are called alike.

    A file that tells of several clients has names for them.
    """
    paths = [files[0].path for files, _ in members]
    alike = len({path.stem for path in paths}) < len(paths)
    for place, (path, (_, run)) in enumerate(zip(paths, members, strict=True)):
        label = f"{path.absolute().parent.name}-{path.stem}" if alike else path.stem
        for client in run.clients:
            several = len(run.clients) > 1
            name = f"{label}-{client.name}" if several else label
            yield replace(client, name=name, file_index=place)
