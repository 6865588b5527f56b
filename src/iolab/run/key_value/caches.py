"""The page cache before a run on a key-value store: dropped and verified, or left and said so."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from iolab.model.event import Phase
from iolab.model.run import NOT_DROPPED, CacheProof, PlannedRun
from iolab.run.crew import Crew
from iolab.run.evidence import Evidence, on_each
from iolab.run.extents import evict
from iolab.run.key_value.copies import files_in
from iolab.run.site import Site


async def drop_caches_of(
    crew: Crew,
    run: PlannedRun,
    evidence: Sequence[Evidence],
    folder_of: Callable[[Site], str],
) -> None:
    """Drop the pages of every file in a folder of each host, where the method asks for it.

    The proof, also that nothing was asked for, stands in the evidence. Raises HostError or
    EngineError.
    """
    for mine in evidence:
        mine.cache = NOT_DROPPED
    if not crew.study.method.drop_caches:
        return
    crew.begin(Phase.DROP_CACHES, run, "pages of the databases")

    async def drop(mine: Evidence) -> None:
        mine.cache = await dropped(mine.site, folder_of(mine.site))

    await on_each(evidence, drop)


async def dropped(site: Site, folder: str) -> CacheProof:
    """No page of a file in the folder stays in memory; the proof. HostError or EngineError."""
    return await evict(site, sorted(await files_in(site.host, folder)))
