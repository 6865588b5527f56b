"""Which ranks are on which client, and what each of them saves and restores."""

from __future__ import annotations

from collections.abc import Iterator

from iolab.loads.checkpoint.layouts import SavedFile
from iolab.loads.checkpoint.workload import CheckpointJob, PhaseName
from iolab.record import Record


class RankFile(Record):
    """A file that a rank saves or restores, and the client, by its place, in whose folder it lies.

    Of each item the parts from `first_part` up to below `end_part` of `part_count` are read; all of
    the file where these are 0.
    """

    file: SavedFile
    owner_client_index: int
    first_part: int = 0
    end_part: int = 0
    part_count: int = 0


class RankWork(Record):
    """A rank and its files, in the order in which it goes through them."""

    rank: int
    files: tuple[RankFile, ...]


def ranks_of_client(
    job: CheckpointJob, phase: PhaseName, client_count: int, client_index: int
) -> range:
    """The ranks of a client, which count over the clients in their order."""
    each = job.rank_count_of_phase(phase) // client_count
    return range(client_index * each, (client_index + 1) * each)


def rank_work_of_client(
    job: CheckpointJob, phase: PhaseName, client_count: int, client_index: int
) -> tuple[RankWork, ...]:
    """What each rank of a client does."""
    return tuple(
        RankWork(rank, tuple(_rank_files(job, phase, client_count, rank)))
        for rank in ranks_of_client(job, phase, client_count, client_index)
    )


def other_client_indexes_to_restore_from(
    job: CheckpointJob, client_count: int, client_index: int
) -> tuple[int, ...]:
    """The other clients, by their places, whose files a client restores."""
    if PhaseName.RESTORE not in job.phases:
        return ()
    works = rank_work_of_client(job, PhaseName.RESTORE, client_count, client_index)
    makers = {read.owner_client_index for work in works for read in work.files}
    return tuple(sorted(makers - {client_index}))


def _rank_files(
    job: CheckpointJob, phase: PhaseName, client_count: int, rank: int
) -> Iterator[RankFile]:
    saved, each = job.checkpoint_files.files_by_rank, job.ranks // client_count
    if phase is PhaseName.SAVE:
        yield from (RankFile(file, rank // each) for file in saved[rank])
        return
    if job.restore_ranks == job.ranks:
        saver = (rank + job.restore_rank_shift(client_count)) % job.ranks
        yield from (RankFile(file, saver // each) for file in saved[saver])
        return
    readers = job.restore_ranks
    # A shift of whole clients stays one of whole clients.
    rank = (rank + job.restore_rank_shift(client_count) * readers // job.ranks) % readers
    for saver, files in enumerate(saved):
        # Both in parts of 1 / (ranks x readers) of every tensor.
        first = max(rank * job.ranks - saver * readers, 0)
        last = min((rank + 1) * job.ranks - saver * readers, readers)
        if first < last:
            yield from (
                RankFile(file, saver // each, first, last, readers)
                for file in files
                if not file.name.startswith(".")
            )
