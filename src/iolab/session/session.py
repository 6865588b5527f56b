"""A session: one execution of a plan, from the first host reached to the last folder removed."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Final, NamedTuple

from msgspec import field

from iolab.core.events import (
    Notice,
    Recorder,
    SessionEnded,
    SessionPhase,
    SessionStarted,
    SessionStatus,
)
from iolab.core.host import HostRole, HostTransport
from iolab.core.leftover_texts import add_to_collected_leftover_texts
from iolab.core.run import Plan, PlannedRun, RunKey
from iolab.core.study import Study
from iolab.core.target_state import EMPTY_LEDGER, TargetLedger
from iolab.errors import HostError, Interrupted, IolabError, StoreError
from iolab.hosts.barrier import StopRequest, gather_hosts, run_with_background
from iolab.hosts.clock import SYSTEM_CLOCK, ControllerClock
from iolab.hosts.host import Host
from iolab.hosts.leftovers import close_hosts_and_report_leftovers, unreachable_folder_text
from iolab.hosts.meters import read_meters_and_get_faults
from iolab.record import Record
from iolab.session.context import SessionContext, StoppingRuleFactory
from iolab.session.discovery import (
    QUIET_WATCH_S,
    DiscoveredHosts,
    DiscoveryQueries,
    discover_hosts_and_targets,
    watch_activity,
)
from iolab.session.driver import SessionDrivers
from iolab.session.kinds import BootedHosts, SessionKinds, SessionResources
from iolab.session.loop import FixedQueue, RecoverySettings, RunLoop, RunQueue
from iolab.session.preflight import event_preflight
from iolab.session.reconnect import DEFAULT_RETRY_POLICY, HostFactory, RetryPolicy
from iolab.study.readiness import NOTHING_WRITTEN, refusal_headline, require_plan_ready
from iolab.study.targets import study_without_hosts, targets_of_study
from iolab.targets.work_directories import WorkDirectories, open_scratch_folder
from iolab.targets.work_directory import CLOSE_LIMIT_S
from iolab.text import capitalised, excerpt

SILENCE_SHOWN_AFTER_S: Final = 5.0
"""An agent speaks every three seconds: whoever waits should know of the first word that is late."""

LOOK_S: Final = 0.5

SWEEP_LIMIT_S: Final = 60.0
"""For a host that answers again: the end of the lost agent's lease, and the removal of its files.
A host that is gone should not be waited for longer by somebody who wants the results."""

NAMED_HOSTS: Final = 12
"""Hosts that are named where a session tells that it connects; more are counted."""


async def report_silent_hosts_until_cancelled(session: SessionContext) -> None:
    """Watch every host until cancelled; a notice when one falls silent, one when it is heard."""
    longest: dict[str, float] = {}
    while True:
        for name, host in session.all_hosts.items():
            silent_s = 0.0 if host.lost_reason else host.silent_s
            if silent_s >= SILENCE_SHOWN_AFTER_S:
                if name not in longest:
                    session.emit(Notice(f"Host '{name}': silent for {silent_s:.0f} s."))
                longest[name] = silent_s
            elif name in longest:
                after_s = longest.pop(name)
                if not host.lost_reason:
                    session.emit(Notice(f"Host '{name}' is heard again after {after_s:.0f} s."))
        await asyncio.sleep(LOOK_S)


async def remove_folders_of_lost_hosts(
    session: SessionContext, host_factory: HostFactory | None
) -> tuple[str, ...]:
    """Leave no folder on hosts that were lost; a sentence on each that is left."""
    lost = {
        name: folders
        for name, folders in session.held_folders_by_host.items()
        if _was_host_lost(session, name)
    }
    swept = await asyncio.gather(
        *(_remove_host_folders(session, host_factory, name, lost[name]) for name in lost)
    )
    return tuple(sentence for sentences in swept for sentence in sentences)


def _was_host_lost(session: SessionContext, name: str) -> bool:
    host = session.all_hosts.get(name)
    # A guest's disk goes with the guest.
    if host is None or host.spec.transport is HostTransport.VM:
        return False
    return bool(host.lost_reason) or name in session.reconnected_hosts


async def _remove_host_folders(
    session: SessionContext,
    host_factory: HostFactory | None,
    name: str,
    folders: set[tuple[str, str]],
) -> tuple[str, ...]:
    left = sorted(folders)
    host = session.all_hosts[name]
    fresh: Host | None = (
        host_factory(host.spec)
        if host.lost_reason and host_factory and not session.stop.is_immediate
        else None
    )
    try:
        async with asyncio.timeout(SWEEP_LIMIT_S):
            if fresh is not None:
                await host.close()
                await fresh.connect()
            there = fresh or host
            while left and not there.lost_reason:
                path, folder = left[0]
                opened = await open_scratch_folder(session, there, path, folder)
                where = str(opened.header.get("dir"))
                await there.request(
                    "scratch_close", deadline_s=CLOSE_LIMIT_S, dir=where, keep=False
                )
                left.pop(0)
    except (HostError, Interrupted, TimeoutError):
        pass
    finally:
        if host.lost_reason:
            host.open_folders.clear()  # What it held is looked for here.
        leftovers_at_close = (
            await close_hosts_and_report_leftovers([fresh]) if fresh is not None else ()
        )
    reported_paths = {f"{path.rstrip('/')}/{folder}" for path, folder in left}
    named = {leftover.name for leftover in fresh.leftovers_at_close} if fresh is not None else set()
    uncertain = (
        unreachable_folder_text(host.spec, folder) for folder in sorted(reported_paths - named)
    )
    return (*leftovers_at_close, *uncertain)


class CleanupTexts(NamedTuple):
    """Sentences on what could not be ended, and on what stays on hosts."""

    faults: tuple[str, ...]
    leftovers: tuple[str, ...]


async def end_session_and_close_hosts(
    resources: SessionResources, session: SessionContext, host_factory: HostFactory | None
) -> CleanupTexts:
    """End what the session holds, and close every host.

    What a lost agent left is removed by a new one. At a second stop request nothing is waited for:
    the end of their lease makes the agents kill and remove everything by themselves.
    """
    faults: tuple[str, ...] = ()
    stop, hosts = session.stop, session.all_hosts
    if not stop.is_immediate:
        try:
            faults = await stop.run_unless_immediate_stop(resources.clean_up_and_list_failures())
        except Interrupted:
            faults = ()
    try:
        swept = await stop.run_unless_immediate_stop(
            remove_folders_of_lost_hosts(session, host_factory)
        )
    except Interrupted:
        swept = await remove_folders_of_lost_hosts(session, None)
    add_to_collected_leftover_texts(swept)
    return CleanupTexts(faults, (*swept, *await close_hosts_and_report_leftovers(hosts.values())))


class EarlierSegments(Record):
    """What earlier segments of the session have left.

    `done_run_keys` are the runs, each (digest, repeat), that need not be measured again;
    `attempt_count_by_run` is how often each was tried; `excluded_hosts` are those that the
    session goes on without, `ledger` is what was done to its targets.
    """

    done_run_keys: frozenset[RunKey] = frozenset()
    attempt_count_by_run: Mapping[RunKey, int] = field(default_factory=dict)
    excluded_hosts: frozenset[str] = frozenset()
    ledger: TargetLedger = EMPTY_LEDGER


NO_EARLIER_SEGMENTS: Final = EarlierSegments()
"""A session that begins."""


async def run_session(
    study: Study,
    plan: Plan,
    hosts: Mapping[str, Host],
    recorder: Recorder,
    stop: StopRequest,
    *,
    session_id: str,
    kinds: SessionKinds,
    earlier_segments: EarlierSegments = NO_EARLIER_SEGMENTS,
    clock: ControllerClock = SYSTEM_CLOCK,
    host_factory: HostFactory | None = None,
    retry_policy: RetryPolicy = DEFAULT_RETRY_POLICY,
    rule_for: StoppingRuleFactory | None = None,
    queue: RunQueue | None = None,
) -> SessionStatus:
    """Execute the plan but for what was done `earlier_segments`, and tell the recorder.

    With an `queue` it is that which says what to run, and which knows of what was done earlier.

    A run that fails is recorded as failed; the study's method says how the session goes on, and
    `host_factory` makes hosts that were lost anew, `rule_for` the rule that ends a run when enough
    was seen of it. The session ends early, with an error raised after it is told, when a host stays
    lost, a target cannot be prepared, or the recorder raises; it ends early without one at a stop
    request. However it ends, no process and no folder of it is left on any host that answers, and
    all hosts are closed.
    """
    by_name = {engine.name: engine for engine in kinds.file_engines}
    watched = {spec.name for spec in study.hosts if spec.role is not HostRole.CLIENT}
    left = {
        name: host
        for name, host in hosts.items()
        if name not in earlier_segments.excluded_hosts | watched
    }
    beside = {name: host for name, host in hosts.items() if name in watched}
    session = SessionContext(
        study,
        plan,
        left,
        by_name,
        recorder,
        stop,
        clock,
        session_id,
        excluded_host_names=set(earlier_segments.excluded_hosts),
        monitored_hosts=beside,
        discovery_queries=DiscoveryQueries.for_study(study, kinds.study),
        stopping_rule_for=rule_for,
    )
    pending = [run for run in plan.runs if run.key not in earlier_segments.done_run_keys]
    # Whatever a queue may ask for needs its files.
    possible = [PlannedRun(0, 1, point) for point in plan.points] if queue else pending
    resources = SessionResources(
        WorkDirectories(session, possible),
        SessionDrivers(kinds.driver_factory_by_engine),
        kinds.hosts.create_booted_hosts(session),
    )
    status = SessionStatus.FAILED
    fault: IolabError | None = None
    try:
        work = _discover_and_measure(
            session,
            resources,
            queue or FixedQueue(pending),
            earlier_segments,
            host_factory,
            retry_policy,
            kinds,
        )
        status = await stop.run_unless_immediate_stop(
            run_with_background(work, report_silent_hosts_until_cancelled(session))
        )
    except Interrupted:
        status = SessionStatus.INTERRUPTED
    except StoreError:
        # The recorder cannot record: there is nobody left to tell.
        raise
    except IolabError as raised:
        fault = raised
    finally:
        cleanup = await end_session_and_close_hosts(resources, session, host_factory)
    for message in cleanup.faults:
        session.emit(Notice(message))
    named = [fault.message] if fault else []
    reasons = (*named, *_excluded_host_texts(session), *cleanup.faults, *cleanup.leftovers)
    session.emit(SessionEnded(status, " ".join(reasons) or None, cleanup.leftovers))
    if fault:
        raise fault
    return status


async def _discover_and_measure(
    session: SessionContext,
    resources: SessionResources,
    run_queue: RunQueue,
    earlier_segments: EarlierSegments,
    host_factory: HostFactory | None,
    retry_policy: RetryPolicy,
    kinds: SessionKinds,
) -> SessionStatus:
    """Connect, look, refuse or begin; then one run after the other, each committed when it ends."""
    first = run_queue.take_next_run()
    if first is None:
        return SessionStatus.DONE
    discovery = await _discover_all(session, resources.booted_hosts)
    study = study_without_hosts(session.study, session.excluded_host_names)
    present = await resources.workdirs.kept_layout_bytes_by_target()
    events = await event_preflight(study, session.all_hosts)
    require_plan_ready(
        study,
        session.plan,
        kinds.study,
        discovery.facts_by_target,
        discovery.probes_by_target,
        present,
        owner=session.folder_owner_text,
        devices=discovery.devices_by_target,
        more_faults=(*await read_meters_and_get_faults(study.hosts), *events.faults),
    )
    if faults := await kinds.preflight_faults(session):
        raise HostError(refusal_headline(faults), NOTHING_WRITTEN, faults)
    for note in events.notes:
        session.emit(Notice(f"{capitalised(note)}."))
    versions = ", ".join(sorted({hello.version for hello in discovery.hellos_by_host.values()}))
    session.emit(SessionStarted(session.plan, tuple(discovery.facts_by_target.items()), versions))
    _emit_other_users_notices(session, discovery)
    await _emit_interference_notices(session, discovery)
    again = resources.booted_hosts.set_and_wrap_reconnect_host_factory(host_factory)
    means = RecoverySettings(
        discovery.facts_by_target,
        earlier_segments.attempt_count_by_run,
        again,
        retry_policy,
        earlier_segments.ledger,
    )
    scenario = RunLoop(session, resources, means)
    status = await scenario.run_all(first, run_queue)
    if status is SessionStatus.DONE:
        session.begin_session_phase(SessionPhase.CLEAN_UP, None, "remove what the session made")
    return status


async def _discover_all(session: SessionContext, booted: BootedHosts) -> DiscoveredHosts:
    """Every host; those that are booted after the nodes on which they are."""
    names = ", ".join(session.all_hosts)
    many = len(session.all_hosts) > NAMED_HOSTS
    session.begin_session_phase(
        SessionPhase.CONNECT, None, f"{len(session.all_hosts)} hosts" if many else names
    )
    if not booted.has_guests_to_boot:
        discovery = await discover_hosts_and_targets(
            session.study, session.all_hosts, session.discovery_queries
        )
    else:
        nodes = await discover_hosts_and_targets(
            session.study, session.monitored_hosts, session.discovery_queries
        )
        await booted.set_up_nodes_for_boots(nodes)
        hosts = await discover_hosts_and_targets(
            session.study, session.hosts, session.discovery_queries
        )
        discovery = DiscoveredHosts.merged((nodes, hosts))
    booted.set_path_devices_from_facts(discovery.facts_by_target)
    return discovery


async def _emit_interference_notices(session: SessionContext, discovery: DiscoveredHosts) -> None:
    """Say which clients are busy with something else before anything runs there."""
    if not session.study.method.idle_watch_s:
        return
    session.begin_session_phase(SessionPhase.CONNECT, None, "is the machine quiet", QUIET_WATCH_S)

    async def _host_interference_reason(host: Host) -> str | None:
        return (
            await watch_activity(host, discovery.facts_by_target[host.name])
        ).interference_reason_or_none()

    outcomes = await gather_hosts(
        [host for host in session.hosts.values() if host.name in discovery.facts_by_target],
        _host_interference_reason,
    )
    busy = [f"'{name}': {others}" for name, others in outcomes.results_or_raise().items() if others]
    if busy:
        more = f" (and {len(busy) - 1} more hosts)" if len(busy) > 1 else ""
        session.emit(Notice(f"The machine is busy, which affects the results: {busy[0]}{more}."))


def _emit_other_users_notices(session: SessionContext, discovery: DiscoveredHosts) -> None:
    """Say where other users could move the session's files away, or have a session of their own."""
    keys = [target.key for target in targets_of_study(session.study)]
    probes = [
        (key, discovery.probes_by_target[key]) for key in keys if key in discovery.probes_by_target
    ]
    for what, found in (
        ("Others may move the files of this session", [(k, p.movable_by) for k, p in probes]),
        ("Another user's session holds a folder there", [(k, p.other_user) for k, p in probes]),
    ):
        reasons = [f"'{excerpt(key)}': {excerpt(who)}" for key, who in found if who]
        if reasons:
            more = f" (and {len(reasons) - 1} more targets)" if len(reasons) > 1 else ""
            session.emit(Notice(f"{what}: {reasons[0]}{more}."))


def _excluded_host_texts(session: SessionContext) -> tuple[str, ...]:
    if not session.excluded_host_names:
        return ()
    names = ", ".join(f"'{name}'" for name in sorted(session.excluded_host_names))
    return (f"It went on without {names}.",)
