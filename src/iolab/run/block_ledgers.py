"""Which write of every block was last acknowledged: the ledgers of verified data sets.

Each host's agent keeps those of its own targets, in its memory: they cost the target no I/O,
outlive an engine that is killed, and go with the agent, as do the folders in which data sets lie.
What lies on a device outlives an agent; without its ledger it is written anew before it is
verified.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from iolab.model.run import DataSet
from iolab.run.engines.base import BlockLedger
from iolab.run.hosts.answers import LedgerAnswer, read_answer
from iolab.run.hosts.base import Host
from iolab.run.site import Site

OPEN_LIMIT_S: Final = 20.0
"""Making a file in memory; a host under full load may be slow to answer."""

_Place = tuple[str, str]
"""A site's key, and what lies there."""


@dataclass(slots=True)
class _Kept:
    """A ledger, who keeps it, and whether it knows of every block."""

    ledger: BlockLedger
    host: Host
    whole: bool = False


class BlockLedgers:
    """The ledgers that a session's hosts keep; a host that was lost keeps none any more."""

    def __init__(self) -> None:
        self._kept: dict[_Place, _Kept] = {}

    async def begin(self, site: Site, data_set: DataSet, block_bytes: int) -> BlockLedger:
        """A new ledger in the place of any other, before all of the data set is written.

        `block_bytes` is the smallest block that will be verified. HostError when the host has none.
        """
        place = _place(site, data_set)
        self._kept.pop(place, None)
        told = await site.host.ask("ledger_open", deadline_s=OPEN_LIMIT_S, name=" ".join(place))
        path = read_answer(site.name, LedgerAnswer, told).path
        ledger = BlockLedger(path, block_bytes)
        self._kept[place] = _Kept(ledger, site.host)
        return ledger

    def written(self, site: Site, data_set: DataSet) -> None:
        """All of the data set was written: its ledger, if there is one, knows of every block."""
        kept = self._kept.get(_place(site, data_set))
        if kept:
            kept.whole = True

    def of(self, site: Site, data_set: DataSet) -> BlockLedger | None:
        """The ledger that a run on the data set is held against, and goes on with."""
        kept = self._found(site, data_set)
        return kept.ledger if kept else None

    def know(self, site: Site, data_set: DataSet) -> bool:
        """Whether the last write of every block of the data set is known."""
        kept = self._found(site, data_set)
        return kept is not None and kept.whole

    async def forget(self, site: Site, data_set: DataSet) -> None:
        """What lies there is written by somebody who keeps no ledger. HostError when lost."""
        place = _place(site, data_set)
        kept = self._kept.pop(place, None)
        if kept and kept.host is site.host:
            await site.host.ask("ledger_close", deadline_s=OPEN_LIMIT_S, name=" ".join(place))

    def _found(self, site: Site, data_set: DataSet) -> _Kept | None:
        """An agent that was lost took its ledgers along; nor does a host know of another's."""
        kept = self._kept.get(_place(site, data_set))
        return kept if kept and kept.host is site.host and not site.read_from else None


def _place(site: Site, data_set: DataSet) -> _Place:
    """On a device all data sets lie over each other: they are one."""
    return site.key, site.device or data_set.id
