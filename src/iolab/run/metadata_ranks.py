"""Which ranks of a metadata job are whose, and whose files a host works on: pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from iolab.model.metadata import MetadataJob, Operation

SHIFTED = frozenset({Operation.FILE_STAT, Operation.FILE_READ, Operation.FILE_REMOVE})
"""Operations on files that may be another rank's; the others are on the rank's own."""


@dataclass(frozen=True, slots=True)
class Share:
    """One host's ranks among those of the fleet.

    `makers` are the hosts, by index, that made the files on which it works: its own index among
    them where it works on files of its own.
    """

    index: int
    first_rank: int
    ranks: int
    total_ranks: int
    makers: tuple[int, ...]

    @property
    def others(self) -> tuple[int, ...]:
        """The makers that are not this host."""
        return tuple(maker for maker in self.makers if maker != self.index)


def shares(job: MetadataJob, hosts: int) -> tuple[Share, ...]:
    """The hosts' shares: ranks count over the hosts in their order."""
    total = job.ranks * hosts
    return tuple(_share(job, index, total) for index in range(hosts))


def request_of(
    job: MetadataJob,
    share: Share,
    dirs: Mapping[int, str],
    operation: Operation,
    *,
    iteration: int,
    shifted: bool = True,
) -> dict[str, object]:
    """The arguments of a `metadata` request.

    `dirs` are the scratch folders of the host and of its `others`, by index, as that host sees
    them. Without `shifted` the ranks work on their own files, whatever the job says.
    """
    asked: dict[str, object] = {
        "dir": dirs[share.index],
        "phase": operation.word,
        "first_rank": share.first_rank,
        "ranks": share.ranks,
        "total_ranks": share.total_ranks,
        "files_per_rank": job.files_per_rank,
        "file_bytes": job.file_bytes,
        "iteration": iteration,
    }
    if shifted and operation in SHIFTED and job.rank_shift % share.total_ranks:
        asked["shift"] = job.rank_shift % share.total_ranks
        asked["others"] = [
            {"dir": dirs[maker], "first_rank": maker * job.ranks, "ranks": job.ranks}
            for maker in share.others
        ]
    return asked


def _share(job: MetadataJob, index: int, total: int) -> Share:
    first = index * job.ranks
    # As many ranks as a host has, one after the other: they are of two hosts at most.
    begin = (first + job.rank_shift) % total
    end = (begin + job.ranks - 1) % total
    makers = dict.fromkeys((begin // job.ranks, end // job.ranks))
    return Share(index, first, job.ranks, total, tuple(makers))
