"""Brings a run's targets into the state in which the study wants it to begin, and keeps the ledger.

Nothing happens on directories of a study that asks for nothing: their layout is all.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from iolab.errors import HostError, Interrupted
from iolab.model.event import LedgerKept, Notice, Phase
from iolab.model.host import HostFacts
from iolab.model.run import DataSet, PlannedRun, RunRecord
from iolab.model.state import Ledger, LedgerTarget, Purge, TargetState
from iolab.model.workload import Job
from iolab.plan.state_cost import turn_of
from iolab.plan.targets import Target, data_sets_at, region_bytes, targets_of
from iolab.run.barrier import together
from iolab.run.books import PREPARING, UNSEEN, Books, begun, ended, states_of, workload_key
from iolab.run.crew import Crew
from iolab.run.fill import discard, erase, run_rounds, trim, write_over
from iolab.run.prepare import snapshot
from iolab.run.site import Site
from iolab.run.sites import Sites
from iolab.units import format_bytes


class Preconditioner:
    """Makes start states. `ready` before each run, `account` after it."""

    def __init__(
        self, crew: Crew, sites: Sites, facts: Mapping[str, HostFacts], earlier: Ledger
    ) -> None:
        self._crew = crew
        self._sites = sites
        self._facts = facts
        self._wish = crew.study.precondition
        self._books = Books(earlier, lambda ledger: crew.tell(LedgerKept(ledger)))
        self._targets = {target.key: target for target in targets_of(crew.study)}
        self._states: tuple[TargetState, ...] = ()

    async def ready(self, run: PlannedRun, sites: Sequence[Site]) -> tuple[Site, ...]:
        """The sites with their targets in the start state, and with what is known to be written.

        Raises HostError, EngineError, and Interrupted when the user wanted to stop.
        """
        self._states = ()
        if not self._concerns(run, sites):
            return tuple(sites)
        await self._look(sites)
        due = (self._is_due(self._books.of(site), run) for site in sites)
        if any(due) or self._is_unverifiable(run, sites):
            await self._restore(run, sites)
        if not run.point.io.verify and _changes(run):
            await self._forget_blocks(run, sites)
        if self._wish.steady and run.point.io.access.writes:
            await self._make_steady(run, sites)
        before = {site.key: self._books.of(site) for site in sites}
        accounts = {key: begun(account, run) for key, account in before.items()}
        self._books.keep(*accounts.values())
        found = {
            key: replace(accounts[key], filled=one.filled, steady=one.steady)
            for key, one in before.items()
        }
        self._states = states_of(found, sites, run)
        return tuple(_with_filled(site, before[site.key]) for site in sites)

    async def account(self, record: RunRecord, sites: Sequence[Site]) -> RunRecord:
        """The record with the states in which it began; what it wrote is in the ledger."""
        if not self._states:
            return record
        by_name = {host.host: host for host in record.hosts}
        self._books.keep(
            *(ended(self._books.of(site), record, by_name[site.name]) for site in sites)
        )
        for site in sites:
            if site.host.lost:
                continue
            try:
                self._books.seen(site, await snapshot(site))
            except HostError:
                # The record comes first. What the counter moved by is ours when it is seen again.
                self._books.keep(replace(self._books.of(site), under_way=UNSEEN))
        return replace(record, states=self._states)

    def _concerns(self, run: PlannedRun, sites: Sequence[Site]) -> bool:
        wanted = self._wish.is_asked or any(site.raw for site in sites)
        return wanted and isinstance(run.point.job, Job)

    async def _look(self, sites: Sequence[Site]) -> None:
        looks = (await together(sites, snapshot)).complete()
        for site in sites:
            target = self._targets[site.key]
            before = self._books.of(site) if self._books.knows(site) else None
            region = self._region(site, target)
            facts = self._sites.facts_of(site, self._facts)
            self._books.open(site, target, facts, looks[site.name], region)
            after = self._books.of(site)
            if before is not None and after.foreign_bytes > before.foreign_bytes:
                size = format_bytes(after.foreign_bytes - before.foreign_bytes)
                text = f"Somebody else wrote {size} to {target.path} on '{site.name}' meanwhile."
                self._crew.tell(Notice(text))
            if after.unknown and (before is None or after.unknown != before.unknown):
                text = f"The state of {target.path} on '{site.name}' is unknown: {after.unknown}."
                self._crew.tell(Notice(text))

    def _region(self, site: Site, target: Target) -> int:
        if site.device:
            return region_bytes(self._crew.plan, target)
        return sum(item.bytes_per_host for item in data_sets_at(self._crew.plan, target))

    def _is_due(self, account: LedgerTarget, run: PlannedRun) -> bool:
        """Whether the start state is to be made, as there is none any more or the study wishes."""
        spoilt = account.under_way == PREPARING or account.unknown is not None
        turn = turn_of(self._wish.restore, run)
        return spoilt or account.foreign_bytes > 0 or account.restored_for != turn

    def _is_unverifiable(self, run: PlannedRun, sites: Sequence[Site]) -> bool:
        """Whether a device holds blocks of which nobody knows any more what they must hold."""
        if not run.point.io.verify or self._wish.fill < 1:
            return False
        data_set = self._crew.plan.data_set(run.point.data_set)
        return any(site.raw and not self._crew.ledgers.know(site, data_set) for site in sites)

    async def _forget_blocks(self, run: PlannedRun, sites: Sequence[Site]) -> None:
        """Devices are written to by whoever bears no stamps: what they must hold is not known."""
        data_set = self._crew.plan.data_set(run.point.data_set)

        async def forget(site: Site) -> None:
            if site.raw:
                await self._crew.ledgers.forget(site, data_set)

        (await together(sites, forget)).complete()

    async def _begin_blocks(self, run: PlannedRun, sites: Sequence[Site]) -> None:
        """The ledgers of devices that are about to be written over; those of files go with these.

        Workloads with other blocks may verify the same device: the smallest counts.
        """
        data_set = self._crew.plan.data_set(run.point.data_set)
        points = (point for point in self._crew.plan.points if isinstance(point.job, Job))
        least = min(point.io.block_bytes for point in points if point.io.verify)

        async def begin(site: Site) -> None:
            if site.raw:
                await self._crew.ledgers.begin(site, data_set, least)

        (await together(sites, begin)).complete()

    async def _restore(self, run: PlannedRun, sites: Sequence[Site]) -> None:
        self._mark(sites)
        # Where nothing is filled, no write tells how large a ledger must be.
        if run.point.io.verify and self._wish.fill >= 1:
            await self._begin_blocks(run, sites)
        else:
            await self._forget_blocks(run, sites)
        purge = self._wish.purge
        if purge is not Purge.NONE:
            where = ", ".join(self._targets[site.key].path for site in sites[:1])
            self._crew.begin(Phase.PURGE, run, f"{purge.value}: {where} on {len(sites)} hosts")
            (await together(sites, self._purge)).complete()
            now_ns = self._crew.clock.real_ns()
            self._books.keep(
                *(
                    replace(_fresh(self._books.of(site)), purged_by=purge, purged_real_ns=now_ns)
                    for site in sites
                )
            )
        else:
            self._books.keep(*(_without_doubt(self._books.of(site)) for site in sites))
        if purge in (Purge.FSTRIM, Purge.RECREATE):
            await self._sites.lay_out_again(run)
        await self._fill(run, sites)
        await self._settle_books(sites, turn_of(self._wish.restore, run))

    async def _purge(self, site: Site) -> None:
        purge, path = self._wish.purge, self._targets[site.key].path
        if self._crew.stop.requested:
            raise Interrupted("The purge was stopped.", "Resume the session to go on.")
        if purge is Purge.DISCARD:
            await discard(site, path)
        elif purge.of_device:
            await erase(self._crew, site, purge)
        else:
            await self._sites.remove_files(site, path)
            if purge is Purge.FSTRIM:
                await trim(site, site.dir if site.scratch else path)

    async def _fill(self, run: PlannedRun, sites: Sequence[Site]) -> None:
        """Devices are written over `fill` times; of files and images the layout was the first."""
        laid_out = 0 if sites[0].raw else 1
        passes = self._wish.fill - laid_out
        written = {site.name: 0 for site in sites}
        if passes > 0:
            for data_set in self._filled_sets(run, sites):
                job = self._writer_of(data_set, run, sites)
                new = await write_over(self._crew, sites, data_set, passes, job)
                written = {name: written[name] + new[name] for name in written}
                if passes >= 1:
                    for site in sites:
                        self._crew.ledgers.written(site, data_set)
        accounts = []
        for site in sites:
            old = self._books.of(site)
            total = old.written_bytes + written[site.name] + laid_out * old.region_bytes
            accounts.append(replace(old, filled=self._wish.fill, written_bytes=total))
        self._books.keep(*accounts)

    def _filled_sets(self, run: PlannedRun, sites: Sequence[Site]) -> tuple[DataSet, ...]:
        """Every data set of the configuration; of a device the largest, which covers the others."""
        target = self._targets[sites[0].key]
        here = run.point.configuration
        sets = [item for item in self._crew.plan.data_sets if item.configuration == here]
        if not sites[0].device:
            return tuple(sets)
        every = [
            item
            for item in self._crew.plan.data_sets
            if item.configuration in target.configurations
        ]
        return (max(every, key=lambda item: item.bytes_per_host),)

    def _writer_of(self, data_set: DataSet, run: PlannedRun, sites: Sequence[Site]) -> Job:
        """Who writes as a fill does: on files their own jobs, as only these may stamp them."""
        if sites[0].device:
            return run.point.io
        return next(p.io for p in self._crew.plan.points if p.data_set == data_set.id)

    async def _make_steady(self, run: PlannedRun, sites: Sequence[Site]) -> None:
        key = workload_key(run)
        if all(key in dict(self._books.of(site).steady[-1:]) for site in sites):
            return
        turn = self._books.of(sites[0]).restored_for
        self._mark(sites)
        series, written = await run_rounds(self._crew, sites, run)
        self._books.add(series)
        if not series.achieved:
            text = f"{run.point.label} was not steady after {len(series.iops)} rounds."
            self._crew.tell(Notice(text))
        accounts = []
        for site in sites:
            old = self._books.of(site)
            total = old.written_bytes + written[site.name]
            # Another mix of writes has been at work since: only the newest is still steady.
            accounts.append(replace(old, written_bytes=total, steady=((key, series.achieved),)))
        self._books.keep(*accounts)
        await self._settle_books(sites, turn)

    def _mark(self, sites: Sequence[Site]) -> None:
        accounts = (self._books.of(site) for site in sites)
        self._books.keep(*(replace(account, under_way=PREPARING) for account in accounts))

    async def _settle_books(self, sites: Sequence[Site], turn: str | None) -> None:
        """What was under way is done, and the counters agree with the account."""
        looks = (await together(sites, snapshot)).complete()
        for site in sites:
            account = replace(self._books.of(site), under_way="", restored_for=turn)
            self._books.keep(account)
            self._books.seen(site, looks[site.name])


def _changes(run: PlannedRun) -> bool:
    """Whether a run does anything but read."""
    access = run.point.io.access
    return access.writes or access.trims


def _fresh(account: LedgerTarget) -> LedgerTarget:
    """The account of a target that was just purged."""
    return replace(account, filled=0.0, written_bytes=0, foreign_bytes=0, unknown=None, steady=())


def _without_doubt(account: LedgerTarget) -> LedgerTarget:
    """The account of a target that is written over whole: what was there before matters no more.

    Bytes are counted from here on where they were not known.
    """
    written = 0 if account.unknown else account.written_bytes
    return replace(account, written_bytes=written, foreign_bytes=0, unknown=None, steady=())


def _with_filled(site: Site, account: LedgerTarget) -> Site:
    if not site.raw:
        return site
    return replace(site, filled_bytes=account.region_bytes if account.filled >= 1 else 0)
