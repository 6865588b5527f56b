"""Runs that are told twice: Slurm's output beside tee's, a summary that somebody copied.

A run that is told again is no repeat: of two runs all that is told agrees, to the last digit of
every figure, only where one is a copy of the other.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from iolab.record import Record

if TYPE_CHECKING:
    from iolab.importers.files import ForeignFile, RunWithFiles
    from iolab.importers.foreign_run import ForeignRun


class DuplicateRuns(Record):
    """So many runs of a file that another one, or the same, tells before."""

    file: str
    original_file: str
    run_count: int

    @property
    def message(self) -> str:
        """What was found, and how it counts."""
        runs = "a run" if self.run_count == 1 else f"{self.run_count} runs"
        if self.file == self.original_file:
            return f"{self.file} has {runs} twice: counted once."
        return f"{self.file} has {runs} that {self.original_file} has, too: counted once."


def distinct_and_duplicate_runs(
    runs: Sequence[RunWithFiles],
) -> tuple[tuple[RunWithFiles, ...], tuple[DuplicateRuns, ...]]:
    """The runs, each once, in their order; and what else was a copy of which file."""
    originals: dict[object, str] = {}
    counts: dict[tuple[str, str], int] = {}
    kept: list[RunWithFiles] = []
    for files, run in runs:
        identity, label = _duplicate_run_key(files[0], run), files[0].printable_path
        original = originals.get(identity)
        if original is None:
            originals[identity] = label
            kept.append((files, run))
        else:
            counts[label, original] = counts.get((label, original), 0) + 1
    copies = (DuplicateRuns(file, original, count) for (file, original), count in counts.items())
    return tuple(kept), tuple(copies)


def _duplicate_run_key(file: ForeignFile, foreign_run: ForeignRun) -> object:
    """All that a run is told to be, but for where it is told; of a run without a load itself."""
    figures = [figure for client in foreign_run.clients for figure in client.details.figures]
    if not any(figure.rate_per_s or figure.bw_bytes_per_s or figure.count for figure in figures):
        return id(foreign_run)
    clients = tuple(
        (client.name, client.details.figures, client.details.errors, client.start_ns)
        for client in foreign_run.clients
    )
    # Some tools do not name what they ran: it has the name of its file then.
    name = foreign_run.name.removeprefix(file.path.stem)
    details = foreign_run.details
    claims = (details.tool, details.version, details.claimed_totals)
    return (
        claims,
        name,
        foreign_run.access_kind,
        foreign_run.settings,
        foreign_run.ended_real_ns,
        clients,
    )
