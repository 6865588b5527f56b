"""The page cache before a run on a key-value store: dropped and verified, or left and said so."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

from iolab.model.event import Phase
from iolab.model.run import CacheProof, PlannedRun
from iolab.run.crew import Crew
from iolab.run.evidence import Evidence, on_each
from iolab.run.extents import evict
from iolab.run.key_value.copies import files_in

NOT_ASKED: Final = CacheProof(
    asked=False, resident_bytes_before=None, resident_bytes_after=None, methods=()
)


async def drop_caches_of(
    crew: Crew,
    run: PlannedRun,
    evidence: Sequence[Evidence],
    folder_of: Callable[[Evidence], str],
) -> None:
    """Drop the pages of every file in a folder of each host, where the method asks for it.

    The proof, also that nothing was asked for, stands in the evidence. Raises HostError or
    EngineError.
    """
    for mine in evidence:
        mine.cache = NOT_ASKED
    if not crew.study.method.drop_caches:
        return
    crew.begin(Phase.DROP_CACHES, run, "pages of the databases")

    async def drop(mine: Evidence) -> None:
        mine.cache = await evict(mine.site, sorted(await files_in(mine.site.host, folder_of(mine))))

    await on_each(evidence, drop)
