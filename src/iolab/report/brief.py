"""Everything that a report says, gathered once: the session, its results, and the detail of some.

`build_brief` reads from whatever has the shape of a `SessionSource`; what comes after it is pure.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final, Protocol

from iolab.analyse.account import account_of, kernels_of
from iolab.analyse.against.printed import Against
from iolab.analyse.apart import shown_of
from iolab.analyse.iterations import is_metadata
from iolab.analyse.key_value.load import measure_key_value
from iolab.analyse.key_value.summary import is_key_value
from iolab.analyse.limits.telemetry import view_of
from iolab.analyse.limits.watched import Watched, watch
from iolab.analyse.load import DIRECTIONS, Load, measure
from iolab.analyse.metadata.phases import measure_metadata
from iolab.analyse.points import PointSummary, summarise
from iolab.analyse.steady import measured_window
from iolab.analyse.window import Window
from iolab.errors import StoreError
from iolab.model.guest import GuestFleet
from iolab.model.host import HostFacts
from iolab.model.key_value_run import ServerRun
from iolab.model.metric import Result
from iolab.model.run import HostRun, Plan, RunRecord
from iolab.model.sample import BinTable, CounterTable, Direction, IntervalTable, no_counters
from iolab.model.state import Ledger, RoundsSeries
from iolab.model.study import Study
from iolab.report.detail import Curve, RunDetail, RunKey, Timeline
from iolab.report.figures.choose import curve_name
from iolab.report.gather import binned_curve, curve_of, heat_of, timeline_of
from iolab.report.guests.groups import fleet_groups, inside_run, io_headlines, told_runs
from iolab.report.guests.inside import Inside, node_inside
from iolab.report.headline import Headline
from iolab.report.key_value.groups import key_headlines
from iolab.report.operations import NAMES
from iolab.report.published import PublishedTables
from iolab.report.selection import select
from iolab.report.sessions import ALONE, Sessions
from iolab.run.telemetry.rates import derive
from iolab.store.documents import HostsStart, Manifest, Session
from iolab.store.verify import Damage

KEY_RUNS_MAX: Final = 512
"""Runs on key-value stores whose manifests are read: each costs a few ms."""

LIMITED_RUNS_MAX: Final = 48
"""Runs whose telemetry is read for what limits them: each costs about 50 ms, and more in fleets."""


class SessionSource(Protocol):
    """A stored session as a report reads it; `iolab.store.reader.SessionReader` is one."""

    @property
    def session(self) -> Session:
        """What the session is and how it stands."""

    @property
    def study(self) -> Study:
        """The study as it was run, with its text."""

    @property
    def plan(self) -> Plan:
        """The plan that the session executes."""

    @property
    def facts(self) -> dict[str, HostFacts]:
        """The facts of each host by name."""

    @property
    def starts(self) -> tuple[HostsStart, ...]:
        """The hosts as each start of the session found them."""

    def results(self) -> tuple[Result, ...]:
        """The results of all committed runs in the plan's order."""

    def damaged(self) -> tuple[Damage, ...]:
        """The committed runs that cannot be read."""

    def ledger(self) -> Ledger:
        """What the session did to its targets."""

    def manifest(self, digest: str, repeat: int) -> Manifest:
        """A committed run's manifest."""

    def intervals(self, digest: str, repeat: int) -> IntervalTable:
        """The intervals of a committed run."""

    def bins(self, digest: str, repeat: int) -> BinTable:
        """The latency bins of a committed run."""

    def counters(self, digest: str, repeat: int) -> CounterTable:
        """The telemetry of a committed run."""


@dataclass(frozen=True, slots=True)
class Brief:
    """A report's whole content.

    `points` are the results' repeats together. `details` holds the runs that get charts;
    `host_runs` how each of them ran on each host, and every run on a key-value store, whose
    `servers` told of themselves. `published` is what others published of the same study. `fleets`
    are the guests of some runs, as their nodes told, and `inside` is one of these nodes over one
    run.
    """

    session: Session
    study: Study
    plan: Plan
    facts: Mapping[str, HostFacts]
    results: tuple[Result, ...]
    points: tuple[PointSummary, ...]
    details: Mapping[RunKey, RunDetail]
    host_runs: Mapping[RunKey, tuple[HostRun, ...]]
    damaged: tuple[Damage, ...]
    servers: Mapping[RunKey, ServerRun] = field(default_factory=dict)
    published: PublishedTables | None = None
    fleets: Mapping[RunKey, GuestFleet] = field(default_factory=dict)
    inside: Inside | None = None
    against: Against | None = None
    """What others published that the results are set beside."""
    begun: tuple[int, ...] = ()
    """When each sitting of the session began (UTC, ns), oldest first."""
    sessions: Sessions = ALONE
    """The sessions that it is made of, where there are several."""
    watched: Mapping[RunKey, Watched] = field(default_factory=dict)
    """What runs of the best points tell of the resources under their load."""
    rounds: tuple[RoundsSeries, ...] = ()
    """How targets came to their steady state before they were measured."""

    @property
    def engine_versions(self) -> tuple[str, ...]:
        """The engines that made the load, each version once."""
        runs = (run for hosts in self.host_runs.values() for run in hosts)
        return tuple(dict.fromkeys(run.engine_version for run in runs if run.engine_version))


def build_brief(
    source: SessionSource, published: PublishedTables | None = None, sessions: Sessions = ALONE
) -> Brief:
    """Everything a report needs; a run whose tables are damaged is told and keeps its result.

    `sessions` are those that `source` unites, where there are several.
    """
    study, results = shown_of(source)
    points = summarise(results, study)
    best = (*io_headlines(study, points), *key_headlines(study, results))
    chosen = select(results, best)
    reading = _Reading(source, list(source.damaged()), sessions)
    rounds = reading.rounds()
    host_runs, servers = reading.key_values(_key_runs(results))
    fleets = reading.fleets(told_runs(fleet_groups(study, points), results))
    by_key = {(result.digest, result.repeat): result for result in results}
    titles = {one.id: one.title for one in study.configurations}
    kernels = kernels_of(source.facts)
    details: dict[RunKey, RunDetail] = {}
    best_runs, watched = _best_runs(best), dict[RunKey, Watched]()
    for key in chosen.distributions:
        with_timeline = key in chosen.timelines
        record = reading.record(key, with_counters=with_timeline or key in best_runs)
        if record is None:
            continue
        host_runs[key] = record.hosts
        if record.fleet is not None:
            fleets[key] = record.fleet
        if key in best_runs:
            watched[key] = watch(view_of(record, source.facts))
        if len(record.intervals):
            result = by_key[key]
            name = curve_name(result, titles[result.configuration] if len(titles) > 1 else "")
            detail = _detail(
                result,
                record,
                name,
                kernels if with_timeline else None,
                with_heat=key in chosen.heat_maps,
            )
            details[key] = replace(detail, account=account_of(record, source.facts))
    return Brief(
        session=source.session,
        study=study,
        plan=source.plan,
        facts=source.facts,
        results=results,
        points=points,
        details=details,
        host_runs=host_runs,
        inside=reading.inside(inside_run(source.plan, points)),
        damaged=tuple(dict.fromkeys(reading.damaged)),
        servers=servers,
        published=published,
        fleets=fleets,
        begun=tuple(start.real_ns for start in source.starts),
        sessions=sessions,
        watched=watched,
        rounds=rounds,
    )


@dataclass(frozen=True, slots=True)
class _Reading:
    """Reads runs of a session; `damaged` grows by those that cannot be read."""

    source: SessionSource
    damaged: list[Damage]
    sessions: Sessions

    def manifest(self, key: RunKey) -> Manifest | None:
        """A run's manifest; None where it is damaged."""
        try:
            return self.source.manifest(*key)
        except StoreError as error:
            self._note(key, error)
            return None

    def record(self, key: RunKey, *, with_counters: bool) -> RunRecord | None:
        """A run's evidence without the engine's own output, which a report does not show."""
        try:
            return _record(self.source, key, with_counters=with_counters)
        except StoreError as error:
            self._note(key, error)
            return None

    def rounds(self) -> tuple[RoundsSeries, ...]:
        """The rounds in which targets were brought to their steady state; none where damaged."""
        try:
            return self.source.ledger().rounds
        except StoreError as error:
            says = _PLACE.sub(r"'\1'", error.happened)
            self.damaged.append(Damage("ledger.json", says))
            return ()

    def key_values(
        self, keys: Iterable[RunKey]
    ) -> tuple[dict[RunKey, tuple[HostRun, ...]], dict[RunKey, ServerRun]]:
        """How those runs went on their hosts, and what servers told."""
        hosts, servers = {}, {}
        for key in keys:
            manifest = self.manifest(key)
            if manifest is not None:
                hosts[key] = manifest.hosts
                if manifest.server is not None:
                    servers[key] = manifest.server
        return hosts, servers

    def fleets(self, keys: Iterable[RunKey]) -> dict[RunKey, GuestFleet]:
        """The guests of those runs, of those that had any."""
        manifests = {key: self.manifest(key) for key in keys}
        return {key: one.fleet for key, one in manifests.items() if one and one.fleet}

    def inside(self, result: Result | None) -> Inside | None:
        """A node from inside over that run."""
        if result is None:
            return None
        record = self.record((result.digest, result.repeat), with_counters=True)
        if record is None or not len(record.intervals):
            return None
        series = derive(record.counters, record.host_names)
        window = measure(record, measured_window(record)).cut.common
        return node_inside(record, result, series, self.source.facts, window)

    def _note(self, key: RunKey, error: StoreError) -> None:
        says = _PLACE.sub(r"'\1'", error.happened)
        trace = self.sessions.trace(key)
        run = f"{trace.digest}, repeat {trace.repeat}"
        self.damaged.append(Damage(f"{trace.label}: {run}" if trace.label else run, says))


_PLACE: Final = re.compile(r"'/.*/(points/[^']*|ledger\.json)'", re.DOTALL)
"""A file of a session; where that lies is nothing to whom a report is handed."""


def _best_runs(best: Sequence[Headline]) -> frozenset[RunKey]:
    """Of the best points the runs that are shown, the first of them."""
    found = (one.best.shown for one in best if one.best is not None)
    return frozenset([(run.digest, run.repeat) for run in found][:LIMITED_RUNS_MAX])


def _key_runs(results: Sequence[Result]) -> list[RunKey]:
    """Runs on key-value stores, of which the tables of databases and devices tell."""
    found = [(one.digest, one.repeat) for one in results if is_key_value(one)]
    return found[:KEY_RUNS_MAX]


def _record(source: SessionSource, key: RunKey, *, with_counters: bool) -> RunRecord:
    manifest = source.manifest(*key)
    return RunRecord(
        run=manifest.run,
        status=manifest.status,
        failure=manifest.failure,
        started_real_ns=manifest.started_real_ns,
        ended_real_ns=manifest.ended_real_ns,
        warmup_s=manifest.warmup_s,
        runtime_s=manifest.runtime_s,
        telemetry_interval_ms=manifest.telemetry_interval_ms,
        hosts=manifest.hosts,
        intervals=source.intervals(*key),
        bins=source.bins(*key),
        counters=source.counters(*key) if with_counters else no_counters(),
        outputs=(),
        bystanders=manifest.bystanders,
        redundancy=manifest.redundancy,
        rule=manifest.rule,
        fleet=manifest.fleet,
    )


Kernels = Mapping[str, str] | None
"""Hosts' boots for a run that is to be drawn over time, None for one that is not."""


def _detail(
    result: Result, record: RunRecord, name: str, kernels: Kernels, *, with_heat: bool
) -> RunDetail:
    """The run's latency curves, and its series if it is to be drawn over time."""
    if is_metadata(result):
        return _operations_detail(result, record, name, kernels)
    if is_key_value(result):
        return _keys_detail(result, record, name, kernels)
    load = measure(record, measured_window(record))
    hosts = list(range(len(record.hosts)))
    every = [int(direction) for direction in DIRECTIONS]
    busy = [way for way in every if _total(load, way)]
    return RunDetail(
        result=result,
        whole=curve_of(name, load.histogram(hosts, every)),
        curves=tuple(
            curve_of(Direction(way).name.lower(), load.histogram(hosts, [way])) for way in busy
        ),
        timeline=_timeline(record, load.cut.common, kernels),
        heat=heat_of(record, load.cut.common) if with_heat else None,
    )


def _operations_detail(result: Result, record: RunRecord, name: str, kernels: Kernels) -> RunDetail:
    """A curve for each operation, and the phases one after the other."""
    phases = measure_metadata(record)
    hosts = list(range(len(record.hosts)))
    return RunDetail(
        result=result,
        whole=Curve(name, 0, (), ()),
        curves=tuple(
            curve_of(NAMES[phase.operation], phase.histogram(hosts)) for phase in phases.file_phases
        ),
        timeline=_timeline(record, phases.span(), kernels),
    )


def _keys_detail(result: Result, record: RunRecord, name: str, kernels: Kernels) -> RunDetail:
    """A curve for each operation: of its latencies in the window, else of the engine's own bins."""
    load = measure_key_value(record, measured_window(record))
    hosts = list(range(len(record.hosts)))
    curves = []
    for operation in load.operations:
        windowed, told = load.histogram(operation, hosts), load.binned(operation, hosts)
        if windowed is not None:
            curves.append(curve_of(operation.word, windowed))
        elif told is not None:
            curves.append(binned_curve(told))
    return RunDetail(
        result=result,
        whole=Curve(name, 0, (), ()),
        curves=tuple(curves),
        timeline=_timeline(record, load.cut.common, kernels),
    )


def _timeline(record: RunRecord, window: Window | None, kernels: Kernels) -> Timeline | None:
    if kernels is None:
        return None
    series = derive(record.counters, record.host_names)
    return timeline_of(record, series, window, kernels)


def _total(load: Load, way: int) -> int:
    return int(load.bins[:, way].sum())
