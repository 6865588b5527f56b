"""For every check a fault planted into a recorded session that is else in order.

Each is of one of the honest sessions below. What only one check may find is written so that all
other evidence stays as it was: counts still add up, devices still moved what is claimed.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

import numpy as np
from msgspec.structs import replace

from iolab.core.generator import VerifyTotals
from iolab.core.host import HostFacts, HostRole
from iolab.core.kubernetes import PodFacts
from iolab.core.metric import Verdict, VerdictLevel
from iolab.core.run import (
    CacheDropProof,
    DeviceDelta,
    DirectionTotals,
    EngineTotals,
    ExtentProof,
    MeterFault,
    MonitoredHost,
    NeighbourRun,
    PreRunActivity,
    RunRecord,
    RunStatus,
)
from iolab.core.samples import CounterTable
from iolab.core.scenario import (
    EventOutcome,
    IoLimit,
    PhaseEndReason,
    PhaseSpan,
    Readback,
    ScenarioOutcome,
    WitnessAnswer,
    WitnessExpectation,
)
from iolab.core.stopping import StoppingRuleSettings
from iolab.core.target_state import PurgeMethod, TargetState
from iolab.guests.guest import Accelerator, GuestCpuTime, GuestDiskKind, guest_fleet_of_run
from iolab.hosts.rates import CounterSeries
from iolab.loads.fileio.workload import AccessPattern, Job
from iolab.loads.keyvalue.workload import (
    BinnedLatency,
    KeyOperation,
    LatencyBin,
    ReportedStatistic,
    key_value_details_of_host,
    server_details_of_run,
)
from iolab.loads.metadata.workload import (
    MetadataOperation,
    ReportedRunRates,
    reported_rates_of_run,
)
from iolab.loads.objects.workload import ObjectOperationCount, ReadBackCounts
from iolab.record import Record
from iolab.registry import analysis_kinds
from tests.analysis.drives import written_on
from tests.analysis.meters import idling, meter_readings, metered
from tests.analysis.records import (
    BLOCK,
    DEVICE,
    GIB,
    GO_NS,
    JOB,
    SECOND,
    Burst,
    bursts_record,
    facts_of,
    series,
)
from tests.analysis.test_checks_files import looked
from tests.analysis.test_checks_libraries import NOT_SYNCING
from tests.analysis.test_checks_load_halts import held, stopped
from tests.analysis.test_checks_starved import group, used
from tests.analysis.test_checks_storage import THREE, node
from tests.analysis.traces import A_WINDOW, WINDOWS, trace, way_trace
from tests.guests import fleets
from tests.judging import verdict_of
from tests.loads.checkpoint import records as checkpoints
from tests.loads.fileio.test_checks_generator import NATIVE, generated, late, open_loop
from tests.loads.keyvalue import test_checks_stores as stores
from tests.loads.keyvalue.asking import counted, on_host, told
from tests.loads.keyvalue.records import BENCH, SHAPE, bench_record
from tests.loads.kvcache import records as replays
from tests.loads.metadata.records import JOB as METADATA_JOB
from tests.loads.metadata.records import Shape, made, mdtest_record, with_phase
from tests.loads.metadata.test_checks import FOUR
from tests.loads.objects import records as requests
from tests.loads.training import records as training

INDICATIVE, INVALID = VerdictLevel.INDICATIVE, VerdictLevel.INVALID
SECONDS: Final = 30
HOSTS: Final = ("c1", "c2")


class Session(Record):
    """What a run leaves: its record, what is known of its hosts, the telemetry of their cores."""

    record: RunRecord
    facts: dict[str, HostFacts]
    telemetry: tuple[CounterSeries, ...]

    def but(self, record: RunRecord | None = None, **changes: Any) -> Session:
        """The same with another record, or other facts or telemetry."""
        return replace(self, record=record or self.record, **changes)

    def verdict(self) -> Verdict:
        """What is said of it, the way a session's results are judged."""
        return verdict_of(analysis_kinds().build_view(self.record, self.facts, self.telemetry))


def calm(hosts: tuple[str, ...] = HOSTS, seconds: int = 80) -> tuple[CounterSeries, ...]:
    """Cores with little to do, which nothing took away or slowed."""
    return tuple(
        series(metric, [share] * seconds, host)
        for host in hosts
        for metric, share in (("busy_share", 0.3), ("steal_share", 0.0))
    )


def session(record: RunRecord) -> Session:
    hosts = tuple(host.host for host in record.hosts)
    return Session(record, {name: facts_of(name) for name in hosts}, calm(hosts))


def files(*hosts: list[Burst], job: Job = JOB, **changes: Any) -> RunRecord:
    """Two clients, each with 8 x 4 reads of 4 KiB in flight on a device of its own."""
    bursts = hosts or ([Burst()], [Burst()])
    return timed(bursts_record(*bursts, job=job, **changes))


def timed(record: RunRecord) -> RunRecord:
    """The same, of hosts whose clocks were read again at the end and had not moved."""
    still = (
        replace(host, clock_offset_after_ns=host.clock_offset_ns, clock_error_after_ns=0)
        for host in record.hosts
    )
    return replace(record, hosts=tuple(still))


def on(record: RunRecord, index: int = 1, **changes: Any) -> RunRecord:
    """The record of which one host is another."""
    return on_host(record, index, **changes)


def seconds(counts: list[int], **changes: Any) -> RunRecord:
    """One client that did so many I/Os each second, always with 32 in flight."""
    bursts = [
        Burst(start_s=float(at), spans=1, ios=ios, lat_ns=32 * SECOND // ios, first_seq=at)
        for at, ios in enumerate(counts)
    ]
    return files(bursts, runtime_s=float(len(counts)), **changes)


def noise(count: int, spread: float = 0.01) -> list[int]:
    draws = np.random.default_rng(1).normal(40_000, 40_000 * spread, count)
    return [round(max(draw, 400.0)) for draw in draws]


def totals(record: RunRecord, factor: float) -> RunRecord:
    """The engine of the second client, and the device below it, say so much more was read."""
    host = record.hosts[1]
    assert host.totals is not None
    assert host.totals.read is not None
    read: DirectionTotals = host.totals.read
    ios = round(read.ios * factor)
    more = replace(read, ios=ios, bytes=ios * BLOCK)
    device = DeviceDelta(DEVICE, ios * BLOCK, 0, ios, 0)
    return on(record, totals=replace(host.totals, read=more), devices=(device,))


def traced(record: RunRecord, **changes: Any) -> RunRecord:
    """The same with a sample of each device's bios, and with what the engine got of the cores."""
    seen = {"trace": trace(read=way_trace()), "processor": used(0.01, group()), "clock_step_ns": 0}
    return on(on(record, 0, **seen), 1, **{**seen, **changes})


def linked(facts: Mapping[str, HostFacts], link: str) -> dict[str, HostFacts]:
    """The same with drives on such a PCI Express link."""
    return {
        name: replace(own, disks=tuple(replace(disk, pcie_link=link) for disk in own.disks))
        for name, own in facts.items()
    }


def slower(share: float, slow_ns: int) -> list[list[int]]:
    """Windows in which that share of bios took so long on the device, the others 0.7 ms."""
    draw = np.random.default_rng(5)
    return [
        [slow_ns if draw.random() < share else 700_000 for _ in range(A_WINDOW)]
        for _ in range(WINDOWS)
    ]


FILES_MADE: Final = METADATA_JOB.ranks * METADATA_JOB.files_per_rank
"""By each client."""


def inodes(*rises: int) -> CounterTable:
    """Inodes in use on each client's file system: before a run, with its files, and after."""
    rows = [
        (host, at, GO_NS + at * 30 * SECOND, 5_000 + more)
        for host, rise in enumerate(rises)
        for at, more in enumerate((0, rise, 0))
    ]
    host, seq, real_ns, value = np.array(rows, dtype=np.int64).T
    scope, name, metric = (
        np.full(host.size, word, dtype=np.object_) for word in ("target", "", "used_inodes")
    )
    return CounterTable(host, seq, real_ns, scope, name, metric, value)


def ticking(record: RunRecord, *reads: int) -> RunRecord:
    """The same with RocksDB's own count of the keys that each client read."""
    for index, count in enumerate(reads * len(record.hosts) if len(reads) == 1 else reads):
        ticker = ReportedStatistic("rocksdb.number.keys.read", count, "")
        record = told(record, index, statistics=(ticker,))
    return record


def phased(counts: Sequence[int] = (), **changes: Any) -> RunRecord:
    """A load of 150 s that a disk was taken from after 90 s; it was whole again after 130 s.

    It did so many I/Os in each second, by default as many all the time.
    """

    def moment(second: float) -> int:
        return GO_NS + round(second * SECOND)

    spans = (("before", 0, 90), ("degraded", 90, 110), ("rebuild", 110, 130), ("after", 130, 150))
    phases = tuple(
        PhaseSpan(name, moment(first), moment(last), PhaseEndReason.TIME)
        for name, first, last in spans
    )
    lost = WitnessExpectation("redundant", state=False)
    event = EventOutcome(
        "lose",
        "c1",
        "stop the process in /run/disk.pid",
        "degraded",
        moment(90),
        start_real_ns=moment(90.01),
        end_real_ns=moment(90.02),
        expected=lost,
        within_s=5.0,
        unseen_real_ns=moment(90.5),
        seen_real_ns=moment(91.5),
        is_undone=True,
        undone_real_ns=moment(150),
    )
    answers = tuple(
        WitnessAnswer("redundant", moment(at), moment(at + 0.5), not 91 <= at < 130)
        for at in range(150)
    )
    readback = Readback("c1", checked_blocks=4096)
    scenario = ScenarioOutcome(phases, (event,), answers, (readback,))
    job = replace(JOB, access=AccessPattern.RANDRW)
    record = seconds([*(counts or noise(150))], job=job)
    return replace(record, scenario=replace(scenario, **changes), runtime_s=90.0)


def scaled(first: int, last: int, factor: float) -> list[int]:
    """The I/Os of each second of `phased`, of which some had so many times as many."""
    counts = noise(150)
    return [*counts[:first], *(round(factor * c) for c in counts[first:last]), *counts[last:]]


def said(s: Session, **changes: Any) -> Session:
    """The same whose witness said more while the disk was missing, as a count that grows."""
    assert s.record.scenario is not None
    answers = tuple(
        replace(answer, **{k: v if isinstance(v, str) else v * at for k, v in changes.items()})
        for at, answer in enumerate(s.record.scenario.answers)
    )
    return s.but(replace(s.record, scenario=replace(s.record.scenario, answers=answers)))


def happened(s: Session, **changes: Any) -> Session:
    """The same where something else came of the event."""
    assert s.record.scenario is not None
    event = replace(s.record.scenario.events[0], **changes)
    return s.but(replace(s.record, scenario=replace(s.record.scenario, events=(event,))))


def silent(s: Session, from_s: int) -> Session:
    """The same whose witness gave no usable answer from that second on."""
    unseen = happened(s, seen_real_ns=None)
    scenario = unseen.record.scenario
    assert scenario is not None
    answers = tuple(
        replace(answer, state=None) if at >= from_s else answer
        for at, answer in enumerate(scenario.answers)
    )
    return unseen.but(replace(unseen.record, scenario=replace(scenario, answers=answers)))


def blind(counts: Sequence[int] = ()) -> Session:
    """The same whose witness saw for seven seconds after the event that all is well."""
    seen = happened(
        session(phased(counts)),
        within_s=15.0,
        unseen_real_ns=GO_NS + 97 * SECOND,
        seen_real_ns=GO_NS + 98 * SECOND,
    )
    assert seen.record.scenario is not None
    answers = tuple(
        replace(answer, state=not 97 <= at < 130)
        for at, answer in enumerate(seen.record.scenario.answers)
    )
    return seen.but(replace(seen.record, scenario=replace(seen.record.scenario, answers=answers)))


def neighboured(read_iops: int = 200, after: int = 200, **changes: Any) -> Session:
    """A neighbour that reads from 90 s to 130 s, from 110 s on limited to 200 reads a second.

    It did so many before and `after` that, and `changes` are of its host.
    """
    lost = PHASED.record.scenario
    assert lost is not None
    start, limited, end = (GO_NS + at * SECOND for at in (90, 110, 130))
    began = EventOutcome(
        "noise", "c1", "load 'noise'", "degraded", start, start, start, is_undone=True,
        undone_real_ns=end, title="A noisy neighbour", neighbour="noise",
    )  # fmt: skip
    limit = EventOutcome(
        "limit", "c1", "limit of 'noise'", "rebuild", limited, limited, limited, is_undone=True,
        undone_real_ns=end, title="Limiting it to 200 IOPS", load_event="noise",
        io_limit=IoLimit(read_iops=200),
    )  # fmt: skip
    events = (*lost.events, began, limit)
    counts = [*[read_iops] * 20, *[after] * 20]
    bursts = [
        Burst(start_s=90.0 + at, spans=1, ios=ios, lat_ns=16 * SECOND // ios, first_seq=at)
        for at, ios in enumerate(counts)
        if ios
    ]
    own = files(bursts)
    host = replace(own.hosts[0], **changes)
    point = replace(own.run.point, workload="noise")
    record = replace(
        PHASED.record,
        scenario=replace(lost, events=events),
        neighbours=(NeighbourRun("noise", point, host, limited_disks=(DEVICE,)),),
        neighbour_intervals=own.intervals,
        neighbour_bins=own.bins,
    )
    return PHASED.but(record)


def spanned(s: Session, **changes: Any) -> Session:
    """The same whose third phase was another."""
    assert s.record.scenario is not None
    phases = list(s.record.scenario.phases)
    phases[2] = replace(phases[2], **changes)
    return s.but(replace(s.record, scenario=replace(s.record.scenario, phases=tuple(phases))))


FILES: Final = session(files())
METERED: Final = FILES.but(
    idling(FILES.record), telemetry=(*FILES.telemetry, *metered(FILES.record))
)
TRACED: Final = session(traced(files()))
BUFFERED: Final = session(files(job=replace(JOB, direct=False)))
STEADY: Final = session(seconds(noise(200)))
RULED: Final = session(
    seconds(
        noise(200),
        rule=StoppingRuleSettings(shortest_s=60, longest_s=200, step_s=10, retained_s=30),
    )
)
GENERATED: Final = session(
    generated(files(job=replace(NATIVE, verify=True)), verify=VerifyTotals(1000, 0, 0, 0, 0, ()))
)
OPEN: Final = session(open_loop(lateness=late(10_000)))
WATCHED: Final = session(
    replace(
        files([Burst()]),
        monitored_hosts=(node("s1", 0.5, 0.0), node("s2", 0.5, 0.0)),
        redundancy=THREE,
    )
)
GUESTS: Final = Session(timed(fleets.run()), fleets.facts(), calm(fleets.GUESTS))
PHASED: Final = session(phased())
ON_TWO_DEVICES: Final = PHASED.but(
    on(
        PHASED.record,
        0,
        devices=(*PHASED.record.hosts[0].devices, DeviceDelta("nvme1n1", 0, 0, 0, 0)),
    ),
    facts={"c1": facts_of("c1", devices=(DEVICE, "nvme1n1"))},
)
METADATA: Final = session(replace(made().record, counters=inodes(FILES_MADE, FILES_MADE)))
MDTEST: Final = session(mdtest_record(FOUR))
DB_BENCH: Final = session(ticking(bench_record(2), stores.READS))
CASSANDRA: Final = session(stores.served())
KV_CACHE: Final = session(replays.replayed())
CHECKPOINT: Final = session(checkpoints.saved_and_restored())
OBJECTS: Final = session(requests.objects_run())
PUTS: Final = 1000
"""A second, of each of the thirty."""
TRAINING: Final = session(training.trained())
BUFFERED_TRAINING: Final = session(
    training.trained(job=replace(training.JOB, direct=False, files=100_000_000))
)


class Planted(Record):
    """A fault: the check that finds it, how bad it is, what was done to which honest session."""

    code: str
    level: VerdictLevel
    fault: str
    honest: Session
    plant: Callable[[Session], Session]

    @property
    def found(self) -> dict[str, VerdictLevel | None]:
        """The objections that the fault draws, beyond those that the honest session has."""
        before = {one.code for one in self.honest.verdict().objections}
        after = self.plant(self.honest).verdict().objections
        return {one.code: one.level for one in after if one.code not in before}


SLOW_DOWN: Final = (("SlowDown", 30_000),)
STATE: Final = TargetState(
    "c1", "c1", PurgeMethod.DISCARD, 1, GIB, 2.0, 2 * GIB, 2 * GIB, 0, None, None
)


def _guest(session: Session, **changes: Any) -> Session:
    """One guest of the second node is another."""
    fleet = guest_fleet_of_run(session.record)
    assert fleet is not None
    guests = (*fleet.guests[:-1], replace(fleet.guests[-1], **changes))
    return session.but(replace(session.record, fleet=replace(fleet, guests=guests)))


def _settings(session: Session, **changes: Any) -> Session:
    fleet = guest_fleet_of_run(session.record)
    assert fleet is not None
    assert fleet.settings is not None
    settings = replace(fleet.settings, **changes)
    return session.but(replace(session.record, fleet=replace(fleet, settings=settings)))


def _server(session: Session, **changes: Any) -> Session:
    server = server_details_of_run(session.record)
    assert server is not None
    return session.but(replace(session.record, details=replace(server, **changes)))


def _target(session: Session, host: str, **changes: Any) -> Session:
    return session.but(facts=session.facts | {host: facts_of(host, **changes)})


def _halved(record: RunRecord) -> RunRecord:
    """The engine of the first client tells each I/O as two of half the size and half the time."""
    twice = files([Burst(ios=80_000, lat_ns=400_000)], [Burst()])
    table = twice.intervals
    mine = table.host == 0
    table = replace(table, bytes=np.where(mine, table.bytes // 2, table.bytes))
    host, told_by = twice.hosts[0], twice.hosts[0].totals
    assert told_by is not None
    assert told_by.read is not None
    read = replace(told_by.read, bytes=told_by.read.bytes // 2)
    first = replace(host, totals=replace(told_by, read=read), devices=record.hosts[0].devices)
    return replace(twice, intervals=table, hosts=(first, twice.hosts[1]))


def _extents(session: Session) -> ExtentProof:
    proof = session.record.hosts[1].extents
    assert proof is not None
    return proof


def _totals(session: Session) -> EngineTotals:
    found = session.record.hosts[1].totals
    assert found is not None
    return found


def _in_one_bin(record: RunRecord) -> RunRecord:
    """The second client's engine tells its reads in a single bin, from 1 to 2 µs."""
    reads = stores.READS
    low, high = 1_000, 2_000
    told_so = BinnedLatency(
        KeyOperation.READ, reads, 1.5e3, 1e2, low, high, 1_000, (LatencyBin(low, high, reads),)
    )
    return told(record, 1, latencies=(told_so,))


def _with_mean_latency(record: RunRecord, mean_ns: float) -> RunRecord:
    """The second client's engine tells another mean beside its bins."""
    run = key_value_details_of_host(record.hosts[1])
    assert run is not None
    (reads,) = run.latencies
    return told(record, 1, latencies=(replace(reads, mean_ns=mean_ns),))


def _beside(keys_per_s: int) -> RunRecord:
    """Readers beside a writer that is to write 2,000 keys a second, and wrote so many."""
    job = replace(BENCH, workload="readwhilewriting", write_bytes_per_s=2_000 * 1040)
    return bench_record(2, job, writer_per_s=keys_per_s)


def _pods_on_one_volume() -> dict[str, HostFacts]:
    """Both clients as pods of one node, each with a claim of its own."""
    return {
        name: replace(
            facts_of(name),
            pod=PodFacts(
                *("bench", name, "node1", "Burstable"),
                claim=f"data-{name}",
                volume_kind="csi.example",
                volume_id="volume-1",
            ),
        )
        for name in HOSTS
    }


PLANTED: Final = (
    Planted(
        "run-unfinished",
        INDICATIVE,
        "The run was interrupted after all of its I/O.",
        FILES,
        lambda s: s.but(replace(s.record, status=RunStatus.INTERRUPTED)),
    ),
    Planted(
        "hosts-left-out",
        INDICATIVE,
        "A third client did not answer and was left out.",
        FILES,
        lambda s: s.but(replace(s.record, excluded_hosts=("c3",))),
    ),
    Planted(
        "versions-differ",
        INDICATIVE,
        "One client has fio 3.36, the other 3.33.",
        FILES,
        lambda s: s.but(on(s.record, engine_version="fio-3.36")),
    ),
    Planted(
        "engine-errors",
        INVALID,
        "fio exited with code 1 although it printed all its figures.",
        FILES,
        lambda s: s.but(on(s.record, exit_code=1)),
    ),
    Planted(
        "verify-mismatch",
        INVALID,
        "One of 1,000 blocks read back was stale.",
        GENERATED,
        lambda s: s.but(
            generated(s.record, verify=VerifyTotals(1000, 0, 1, 0, 0, ("Block 7 is stale.",)))
        ),
    ),
    Planted(
        "totals-disagree",
        INVALID,
        "fio's totals say 5 % more I/Os than its intervals; the device moved those, too.",
        FILES,
        lambda s: s.but(totals(s.record, 1.05)),
    ),
    Planted(
        "no-common-window",
        INDICATIVE,
        "A client's clock is known to 2 s only.",
        FILES,
        lambda s: s.but(on(s.record, clock_error_ns=2 * SECOND, clock_error_after_ns=2 * SECOND)),
    ),
    Planted(
        "start-skew",
        INDICATIVE,
        "One client started 0.9 s after the other.",
        FILES,
        lambda s: s.but(files([Burst()], [Burst(start_s=0.9)])),
    ),
    Planted(
        "clock-drift",
        INDICATIVE,
        "A client's clock had moved by 0.4 s when the run ended.",
        FILES,
        lambda s: s.but(on(s.record, clock_offset_after_ns=400_000_000)),
    ),
    Planted(
        "clock-step",
        INVALID,
        "A client's clock was set four seconds forward during the run, and back again.",
        TRACED,
        lambda s: s.but(on(s.record, clock_step_ns=4 * SECOND)),
    ),
    Planted(
        "run-too-short",
        INDICATIVE,
        "Ten seconds were measured.",
        FILES,
        lambda s: s.but(files([Burst(spans=10)], [Burst(spans=10)], runtime_s=10.0)),
    ),
    Planted(
        "missing-seconds",
        INVALID,
        "Five of a client's 24 seconds are not in its record.",
        FILES,
        lambda s: s.but(
            files(
                [Burst(spans=24)],
                [Burst(spans=9), Burst(start_s=14, spans=10, first_seq=14)],
                runtime_s=24.0,
            )
        ),
    ),
    Planted(
        "percentile-support",
        INDICATIVE,
        "One I/O a second, always 32 in flight.",
        FILES,
        lambda s: s.but(files(*([Burst(ios=1, lat_ns=32 * SECOND)] for _ in HOSTS))),
    ),
    Planted(
        "startup-transient",
        INDICATIVE,
        "The rate falls by 1 % of its end every second for 200 s.",
        STEADY,
        lambda s: s.but(seconds([100_000 - 300 * at for at in range(200)])),
    ),
    Planted(
        "burst-credits",
        INDICATIVE,
        "The rate fell by a third after 10 of 25 seconds, and stayed there.",
        STEADY,
        lambda s: s.but(
            seconds([rate if at < 10 else rate * 2 // 3 for at, rate in enumerate(noise(25))])
        ),
    ),
    Planted(
        "periodic-rate",
        INDICATIVE,
        "The rate swings by 20 % with a period of 80 s; the run has 200 s.",
        STEADY,
        lambda s: s.but(
            seconds(
                [
                    round(rate * (1 + 0.2 * np.sin(2 * np.pi * at / 80)))
                    for at, rate in enumerate(noise(200))
                ]
            )
        ),
    ),
    Planted(
        "wide-interval",
        INDICATIVE,
        "Every second differs by 30 % from the next, and the mean was to be known to 2 %.",
        RULED,
        lambda s: s.but(seconds(noise(200, 0.3), rule=s.record.rule)),
    ),
    Planted(
        "emulated-guest",
        INDICATIVE,
        "One guest of four ran without KVM.",
        GUESTS,
        lambda s: _guest(s, accelerator=Accelerator.TCG),
    ),
    Planted(
        "modelled-disk",
        INDICATIVE,
        "The guests' disks are a model that takes 1 ms for every I/O.",
        GUESTS,
        lambda s: _settings(s, disk=GuestDiskKind.MODELLED, latency_ns=1_000_000),
    ),
    Planted(
        "limited-disk",
        INDICATIVE,
        "Each guest's disk was limited to the 1,000 IOPS that it then did.",
        GUESTS,
        lambda s: _settings(s, iops_limit=1000),
    ),
    Planted(
        "target-in-memory",
        INVALID,
        "One client's target is a tmpfs that is called a disk.",
        FILES,
        lambda s: _target(s, "c2", in_memory=True),
    ),
    Planted(
        "hidden-layer",
        INDICATIVE,
        "One client's target is an overlay whose upper directory no path leads to.",
        FILES,
        lambda s: _target(
            s,
            "c2",
            fs_type="overlay",
            layers=("overlay with the upper directory 'u'",),
            hidden=True,
        ),
    ),
    Planted(
        "buffered-io",
        INDICATIVE,
        "The job reads through the page cache, which was empty and never hit.",
        FILES,
        lambda s: s.but(files(job=replace(JOB, direct=False))),
    ),
    Planted(
        "cache-hits",
        INVALID,
        "A buffered job's files lay in memory at the start, and fit into it.",
        BUFFERED,
        lambda s: s.but(
            on(
                s.record,
                cache_drop=CacheDropProof(
                    requested=False,
                    resident_bytes_before=4 * GIB,
                    resident_bytes_after=4 * GIB,
                    methods=(),
                ),
            )
        ),
    ),
    Planted(
        "bytes-moved",
        INVALID,
        "The device of a client moved half of what fio says it read.",
        FILES,
        lambda s: s.but(on(s.record, devices=(DeviceDelta(DEVICE, 15 * 40_000 * BLOCK, 0, 1, 1),))),
    ),
    Planted(
        "block-size",
        INVALID,
        "fio tells twice the I/Os at half the latency, of bytes that are true.",
        FILES,
        lambda s: s.but(_halved(s.record)),
    ),
    Planted(
        "access-pattern",
        INVALID,
        "The device of a client was read in 1 MiB of its 4 GiB only.",
        TRACED,
        lambda s: s.but(
            traced(s.record, trace=trace(read=way_trace(sectors=tuple(range(0, 2048, 8)) * 16)))
        ),
    ),
    Planted(
        "latency-contradicted",
        INVALID,
        "fio says that no read took longer than 0.8 ms; the device took 20 ms for 5 in 10,000.",
        TRACED,
        lambda s: s.but(traced(s.record, trace=trace(read=way_trace(slower(0.0005, 20_000_000))))),
    ),
    Planted(
        "storage-bytes",
        INVALID,
        "The storage nodes' disks read a tenth of what the client read.",
        WATCHED,
        lambda s: s.but(
            replace(s.record, monitored_hosts=(node("s1", 0.05, 0.0), node("s2", 0.05, 0.0)))
        ),
    ),
    Planted(
        "guest-bytes",
        INVALID,
        "The nodes' SSDs read a tenth of what their guests read.",
        GUESTS,
        lambda s: s.but(
            replace(
                s.record,
                monitored_hosts=tuple(fleets.node(name, fleets.READ // 5) for name in fleets.NODES),
            )
        ),
    ),
    Planted(
        "unwritten-extents",
        INVALID,
        "Half of a client's files were never written.",
        FILES,
        lambda s: s.but(
            on(
                s.record,
                extents=replace(
                    _extents(s), written_bytes=2 * GIB, unwritten_bytes=GIB, hole_bytes=GIB
                ),
            )
        ),
    ),
    Planted(
        "unequal-state",
        INDICATIVE,
        "Ninety times the device's region was written since the sweep began.",
        FILES,
        lambda s: s.but(replace(s.record, states=(replace(STATE, written_bytes=90 * GIB),))),
    ),
    Planted(
        "depth-not-reached",
        INDICATIVE,
        "fio submitted three quarters of its I/Os at depth 1 where 8 were requested.",
        FILES,
        lambda s: s.but(
            on(s.record, totals=replace(_totals(s), depth_percent=(("1", 75.0), ("8", 25.0))))
        ),
    ),
    Planted(
        "littles-law",
        INDICATIVE,
        "Latencies are a third too small for the rate: 21 I/Os in flight where 32 were asked.",
        FILES,
        lambda s: s.but(files([Burst()], [Burst(lat_ns=536_000)])),
    ),
    Planted(
        "guest-bound",
        INVALID,
        "A guest's only processor was busy all the time, and kept half of its queue waiting.",
        GUESTS,
        lambda s: s.but(
            timed(
                fleets.run(
                    bursts={fleets.GUESTS[3]: [Burst(ios=fleets.IOPS, lat_ns=4_000_000)]},
                    fleet=fleets.fleet_of(
                        *map(fleets.guest, fleets.GUESTS[:3]),
                        fleets.guest(
                            fleets.GUESTS[3],
                            use=GuestCpuTime(
                                wall_s=32.0, vcpu_run_s=31.9, vcpu_wait_s=0.0, cpu_s=32.0
                            ),
                        ),
                    ),
                )
            )
        ),
    ),
    Planted(
        "coordinated-omission",
        INDICATIVE,
        "Arrivals at a rate that the target did not keep: 3 % less was done.",
        OPEN,
        lambda s: s.but(open_loop(ios=38_800, lateness=late(10_000))),
    ),
    Planted(
        "generator-late",
        INDICATIVE,
        "One I/O in a hundred was submitted 0.5 ms after it was due, of 1 ms in all.",
        OPEN,
        lambda s: s.but(open_loop(lateness=late(500_000))),
    ),
    Planted(
        "queue-grows",
        INVALID,
        "Of the requests of a trace two more were under way after each second.",
        KV_CACHE,
        lambda s: s.but(replays.replayed(backlog=tuple(range(0, 60, 2)))),
    ),
    Planted(
        "line-rate",
        INVALID,
        "The link of the drive carries a tenth of the bytes that the engine claims.",
        KV_CACHE,
        lambda s: s.but(facts=linked(s.facts, "0.2 GT/s x1")),
    ),
    Planted(
        "capacity-not-filled",
        INVALID,
        "The store held a tenth of its capacity, and nothing was dropped.",
        KV_CACHE,
        lambda s: s.but(replays.replayed(held_at_start=1000, held_at_end=1500, evictions=0)),
    ),
    Planted(
        "reuse-differs",
        INVALID,
        "Each request had blocks of its own: no block was a hit.",
        KV_CACHE,
        lambda s: s.but(replays.replayed(hits=0)),
    ),
    Planted(
        "object-requests-failed",
        INVALID,
        "The store refused a twentieth of the requests for its load.",
        OBJECTS,
        lambda s: s.but(
            requests.objects_run(
                counts=(ObjectOperationCount("object_get", 570_000, 30_000, 600_000, SLOW_DOWN),)
            )
        ),
    ),
    Planted(
        "connections-opened",
        INDICATIVE,
        "The server closed each connection after its answer.",
        OBJECTS,
        lambda s: s.but(requests.objects_run(opened=660_000, closed_by_server=660_000)),
    ),
    Planted(
        "delayed-acknowledgement",
        INDICATIVE,
        "Answers to HEAD waited for the client's acknowledgement.",
        OBJECTS,
        lambda s: s.but(requests.objects_run(head_ns=41_000_000)),
    ),
    Planted(
        "hot-object",
        INDICATIVE,
        "All reads were of three objects.",
        OBJECTS,
        lambda s: s.but(requests.objects_run(job=replace(requests.JOB, object_count=3))),
    ),
    Planted(
        "data-set-in-server-memory",
        INDICATIVE,
        "The only server was watched, and has ten times the memory of the objects.",
        OBJECTS,
        lambda s: s.but(
            replace(
                s.record, monitored_hosts=(MonitoredHost("n1", HostRole.STORAGE, None, (), 0, 0),)
            ),
            facts={**s.facts, "n1": facts_of("n1")},
        ),
    ),
    Planted(
        "puts-in-memory",
        INDICATIVE,
        "The disks of the only storage node wrote half of what was put.",
        OBJECTS,
        lambda s: s.but(
            replace(
                requests.objects_run(job=replace(requests.JOB, put=1), puts=PUTS),
                monitored_hosts=(requests.storing(PUTS * 30 * BLOCK // 2),),
            )
        ),
    ),
    Planted(
        "objects-lost",
        INVALID,
        "Of a thousand objects that were acknowledged the store has all but one.",
        OBJECTS,
        lambda s: s.but(
            requests.objects_run(
                job=replace(requests.JOB, put=1, read_back=True),
                counts=(*requests.RUN.counts, ObjectOperationCount("object_put", 1000, 0, 1000)),
                put_objects=1000,
                read_back=ReadBackCounts(1000, 999, 1, 0, 0),
            )
        ),
    ),
    Planted(
        "contents-not-compared",
        INDICATIVE,
        "Every fourth GET was to be compared, and every sixteenth was.",
        OBJECTS,
        lambda s: s.but(
            requests.objects_run(
                job=replace(requests.JOB, verify_every=4),
                verified_bytes=requests.GETS * requests.SECONDS * BLOCK // 16,
            )
        ),
    ),
    Planted(
        "server-clock",
        INDICATIVE,
        "The server's clock was ten minutes behind.",
        OBJECTS,
        lambda s: s.but(requests.objects_run(ahead_min_ms=-600_000.0)),
    ),
    Planted(
        "work-outside-window",
        INVALID,
        "A tenth of the reads ended after the run.",
        KV_CACHE,
        lambda s: s.but(
            replays.replayed(generator=replace(replays.GENERATOR, drained_ios=270_000))
        ),
    ),
    Planted(
        "ranks-missing",
        INVALID,
        "Of eight ranks of a checkpoint seven were heard of.",
        CHECKPOINT,
        lambda s: s.but(checkpoints.saved_and_restored(save=checkpoints.without_last_rank)),
    ),
    Planted(
        "slowest-rank",
        INDICATIVE,
        "One rank took three times as long as the others to save as much.",
        CHECKPOINT,
        lambda s: s.but(checkpoints.saved_and_restored(save=checkpoints.with_straggler)),
    ),
    Planted(
        "not-durable",
        INVALID,
        "Flushes did nothing: a fifth of the saved bytes was on the device at the end.",
        CHECKPOINT,
        lambda s: s.but(checkpoints.saved_and_restored(save=checkpoints.with_unflushed_bytes)),
    ),
    Planted(
        "restored-from-memory",
        INVALID,
        "Half of a checkpoint was restored from the page cache.",
        CHECKPOINT,
        lambda s: s.but(checkpoints.saved_and_restored(restore=checkpoints.with_cached_half)),
    ),
    Planted(
        "step-parts",
        INVALID,
        "The waits for the barrier were not counted.",
        TRAINING,
        lambda s: s.but(training.trained(parts={"barrier": 0})),
    ),
    Planted(
        "first-epoch",
        INVALID,
        "After the first epoch samples came from a cache, and accelerators were half as slow.",
        TRAINING,
        lambda s: s.but(
            training.trained(first_epoch=replace(training.EPOCH, step_ns=400 * training.STEP_NS))
        ),
    ),
    Planted(
        "files-fit-in-memory",
        INVALID,
        "The files were smaller than the memory through which they were read.",
        BUFFERED_TRAINING,
        lambda s: s.but(training.trained(job=replace(training.JOB, direct=False))),
    ),
    Planted(
        "uneven-fleet",
        INDICATIVE,
        "One client did 2.5 times the other's I/Os.",
        FILES,
        lambda s: s.but(files([Burst()], [Burst(ios=16_000, lat_ns=2_000_000)])),
    ),
    Planted(
        "generator-bound",
        INDICATIVE,
        "The engine's own limit on that client is 60,000 IOPS, and 40,000 were done.",
        FILES,
        lambda s: s.but(on(s.record, generator_limit_iops=60_000.0)),
    ),
    Planted(
        "cpu-bound-client",
        INDICATIVE,
        "All cores of a client were 97 % busy.",
        FILES,
        lambda s: s.but(
            telemetry=(*s.telemetry[:2], series("busy_share", [0.97] * 80, "c2"), s.telemetry[3])
        ),
    ),
    Planted(
        "files-changed",
        INVALID,
        "A file of a client was replaced by another in mid-run.",
        FILES,
        lambda s: s.but(on(s.record, files=looked(identity="b"))),
    ),
    Planted(
        "engine-stopped",
        INVALID,
        "A signal stopped a client's engine for four seconds.",
        TRACED,
        lambda s: s.but(on(s.record, processor=held(stopped(12, 16)))),
    ),
    Planted(
        "preloaded-library",
        INVALID,
        "A client's engine had a library that makes fsync return at once.",
        FILES,
        lambda s: s.but(on(s.record, libraries=NOT_SYNCING)),
    ),
    Planted(
        "client-throttled",
        INVALID,
        "A client had a quota of a tenth of a core, and used it up in 200 of 300 periods.",
        TRACED,
        lambda s: s.but(on(s.record, processor=used(0.01, group(200, 6.0)))),
    ),
    Planted(
        "client-starved",
        INDICATIVE,
        "The engine's threads waited 60 % of the time for a processor.",
        TRACED,
        lambda s: s.but(on(s.record, processor=used(0.6, group()))),
    ),
    Planted(
        "cpu-stolen",
        INDICATIVE,
        "The hypervisor took a tenth of a client's processors.",
        FILES,
        lambda s: s.but(telemetry=(*s.telemetry[:3], series("steal_share", [0.1] * 80, "c2"))),
    ),
    Planted(
        "guest-starved",
        INDICATIVE,
        "A guest's processors waited a third of the time for one of their node.",
        GUESTS,
        lambda s: _guest(
            s, use=GuestCpuTime(wall_s=32.0, vcpu_run_s=8.0, vcpu_wait_s=10.0, cpu_s=9.0)
        ),
    ),
    Planted(
        "thermal-throttling",
        INDICATIVE,
        "A client's processors were throttled for heat twelve times.",
        FILES,
        lambda s: s.but(
            telemetry=(
                *s.telemetry,
                series("throttle_events_per_s", [0.4] * 80, "c2", scope="thermal", name="0"),
            )
        ),
    ),
    Planted(
        "drive-counters",
        INDICATIVE,
        "A drive was switched off and on during the run.",
        FILES,
        lambda s: s.but(on(s.record, drives=(written_on(0, cycles=8)[1],))),
    ),
    Planted(
        "foreign-drive-writer",
        INDICATIVE,
        "A drive counted 460 GB as written, in a run that only read.",
        FILES,
        lambda s: s.but(on(s.record, drives=(written_on(0, units=900_000)[1],))),
    ),
    Planted(
        "drive-throttled",
        INDICATIVE,
        "Heat slowed a drive down for four seconds, by its own counter.",
        FILES,
        lambda s: s.but(on(s.record, drives=(written_on(0, throttled_s=4)[1],))),
    ),
    Planted(
        "drive-power-state",
        INDICATIVE,
        "A drive was in a power state that caps its power.",
        FILES,
        lambda s: s.but(on(s.record, drives=(written_on(0, power_state=1)[1],))),
    ),
    Planted(
        "meter-reading",
        INDICATIVE,
        "A client's meter showed the same watts before, during and after the load.",
        METERED,
        lambda s: s.but(
            telemetry=(
                *s.telemetry[:-1],
                meter_readings(s.record, "c2", idle_w=99.0, load_w=99.0, noise_w=0.0),
            )
        ),
    ),
    Planted(
        "meter-reading",
        INDICATIVE,
        "A client's BMC did not answer for three seconds of the run.",
        METERED,
        lambda s: s.but(
            replace(s.record, meter_faults=(MeterFault("c2", "node:bmc", "no answer", 3),))
        ),
    ),
    Planted(
        "meter-reading",
        INDICATIVE,
        "What should be a client's whole power is less than what its processors take.",
        METERED,
        lambda s: s.but(
            telemetry=(
                *s.telemetry,
                meter_readings(s.record, "c2", name="processors:package-0", idle_w=160, load_w=200),
            )
        ),
    ),
    Planted(
        "meter-reading",
        INDICATIVE,
        "A client's meter counted idle in watts, and the load in steps of five.",
        METERED,
        lambda s: s.but(
            telemetry=(
                *s.telemetry[:-1],
                meter_readings(
                    s.record, "c2", idle_w=1000, load_w=2000, noise_w=9, every_s=0.5, steps_w=(1, 5)
                ),
            )
        ),
    ),
    Planted(
        "meter-lag",
        INDICATIVE,
        "A client's meter showed the load ten seconds after it began.",
        METERED,
        lambda s: s.but(telemetry=(*s.telemetry[:-1], meter_readings(s.record, "c2", lag_s=10))),
    ),
    Planted(
        "idle-power",
        INDICATIVE,
        "A client took a fifth more after the load than before it.",
        METERED,
        lambda s: s.but(telemetry=(*s.telemetry[:-1], meter_readings(s.record, "c2", after_w=120))),
    ),
    Planted(
        "device-busy",
        INDICATIVE,
        "Others did 2,000 IOPS on a client's device just before the start.",
        FILES,
        lambda s: s.but(on(s.record, pre_run_activity=PreRunActivity(1.0, 2000.0 * BLOCK, 2000.0))),
    ),
    Planted(
        "shared-target",
        INDICATIVE,
        "Two pods have claims of their own, which are bound to one volume of a driver.",
        FILES,
        lambda s: s.but(facts=_pods_on_one_volume()),
    ),
    Planted(
        "monitored-node-lost",
        INDICATIVE,
        "A storage node could not be watched to the end; its disks are compared with nothing.",
        FILES,
        lambda s: s.but(
            replace(
                s.record,
                monitored_hosts=(MonitoredHost("h1", HostRole.HYPERVISOR, "Gone.", (), 0, 0),),
            )
        ),
    ),
    Planted(
        "operations-failed",
        INVALID,
        "One of 12,000 stats of a client failed.",
        METADATA,
        lambda s: s.but(
            with_phase(
                s.record, 1, MetadataOperation.FILE_STAT, requested=12_001, errors=(("ENOENT", 1),)
            )
        ),
    ),
    Planted(
        "phase-incomplete",
        INVALID,
        "A client was requested a thousand stats more than it did.",
        METADATA,
        lambda s: s.but(with_phase(s.record, 1, MetadataOperation.FILE_STAT, requested=13_000)),
    ),
    Planted(
        "operations-counted",
        INVALID,
        "A client's file system held half of the files that the client says it made.",
        METADATA,
        lambda s: s.but(replace(s.record, counters=inodes(FILES_MADE, FILES_MADE // 2))),
    ),
    Planted(
        "operations-counted",
        INVALID,
        "RocksDB counted half of the keys that a client's db_bench says it read.",
        DB_BENCH,
        lambda s: s.but(ticking(s.record, stores.READS, stores.READS // 2)),
    ),
    Planted(
        "operations-counted",
        INVALID,
        "Cassandra counted half of the reads that YCSB says it did.",
        CASSANDRA,
        lambda s: _server(s, statistics_after=stores.statistics(cpu_ns=9e9, client_reads=24_000)),
    ),
    Planted(
        "reported-rates",
        INDICATIVE,
        "mdtest's printed rates stand for 5 % fewer operations than were requested.",
        MDTEST,
        lambda s: s.but(
            replace(
                s.record,
                details=ReportedRunRates(
                    tuple(
                        replace(rate, ops_per_s=rate.ops_per_s * 0.95)
                        for rate in reported_rates_of_run(s.record)
                    )
                ),
            )
        ),
    ),
    Planted(
        "rank-skew",
        INDICATIVE,
        "One rank of eight began its stats 9 s after the others.",
        METADATA,
        lambda s: s.but(
            made(
                shapes={(1, MetadataOperation.FILE_STAT): Shape(starts_ns=(0, 0, 0, 9 * SECOND))}
            ).record
        ),
    ),
    Planted(
        "phase-too-short",
        INDICATIVE,
        "Each phase took 6 s.",
        METADATA,
        lambda s: s.but(made(job=replace(METADATA_JOB, files_per_rank=1500)).record),
    ),
    Planted(
        "client-answers",
        INDICATIVE,
        "Each client stats the files that it made itself.",
        METADATA,
        lambda s: s.but(made(job=replace(METADATA_JOB, rank_shift=0)).record),
    ),
    Planted(
        "ranks-preempted",
        INDICATIVE,
        "A client's ranks lost their processor 200 times in a phase.",
        METADATA,
        lambda s: s.but(with_phase(s.record, 1, MetadataOperation.FILE_STAT, preemptions=200)),
    ),
    Planted(
        "server-lost",
        INVALID,
        "The server counts less CPU time after the run than before: it was restarted.",
        CASSANDRA,
        lambda s: _server(s, statistics_after=stores.statistics(cpu_ns=1e8, client_reads=48_000)),
    ),
    Planted(
        "keys-absent",
        INVALID,
        "One key of 312,000 was not there.",
        DB_BENCH,
        lambda s: s.but(counted(s.record, absent=1)),
    ),
    Planted(
        "debug-build",
        INDICATIVE,
        "db_bench says that it was built with assertions.",
        DB_BENCH,
        lambda s: s.but(told(s.record, 1, build="assertions enabled")),
    ),
    Planted(
        "seed-shared",
        INVALID,
        "A thread of the second client draws the keys of a thread of the first.",
        DB_BENCH,
        lambda s: s.but(told(s.record, 1, seed=1000 + BENCH.threads - 1)),
    ),
    Planted(
        "littles-law",
        INVALID,
        "The engine told latencies that 16 threads cannot have had at that rate.",
        DB_BENCH,
        lambda s: s.but(_with_mean_latency(s.record, 4e6)),
    ),
    Planted(
        "wide-percentile-bins",
        INDICATIVE,
        "All reads of a client lie in the bin from 1 to 2 µs.",
        DB_BENCH,
        lambda s: s.but(_in_one_bin(s.record)),
    ),
    Planted(
        "store-start-state",
        INDICATIVE,
        "The store of a client was left as the run before had made it.",
        DB_BENCH,
        lambda s: s.but(told(s.record, 1, copied_by="")),
    ),
    Planted(
        "warm-caches",
        INDICATIVE,
        "A twentieth of the store was in the page cache at the start.",
        DB_BENCH,
        lambda s: s.but(
            on(
                s.record,
                cache_drop=CacheDropProof(
                    requested=True,
                    resident_bytes_before=GIB,
                    resident_bytes_after=20 << 20,
                    methods=(),
                ),
            )
        ),
    ),
    Planted(
        "store-shape-changed",
        INVALID,
        "The server counts 1,000 of the 100,000 rows that were loaded.",
        CASSANDRA,
        lambda s: _server(s, rows=1000),
    ),
    Planted(
        "compaction-debt",
        INDICATIVE,
        "A gigabyte was left to be compacted when the run began.",
        DB_BENCH,
        lambda s: s.but(told(s.record, 1, start=replace(SHAPE, pending_bytes=GIB))),
    ),
    Planted(
        "reads-from-memory",
        INVALID,
        "A client's device read 200 bytes for each key of 1 KiB.",
        DB_BENCH,
        lambda s: s.but(
            on(
                s.record,
                devices=(DeviceDelta(DEVICE, 200 * stores.READS, 0, stores.READS // 20, 0),),
            )
        ),
    ),
    Planted(
        "writer-rate",
        INDICATIVE,
        "The writer beside the readers was to keep 2,000 keys a second and wrote 1,500.",
        session(_beside(2000)),
        lambda s: s.but(_beside(1500)),
    ),
    Planted(
        "phase-unfinished",
        INDICATIVE,
        "The rebuild was not done when its limit came.",
        PHASED,
        lambda s: spanned(s, ended_by=PhaseEndReason.LIMIT),
    ),
    Planted(
        "baseline-unhealthy",
        INVALID,
        "The disk was missing for a second before it was taken away.",
        PHASED,
        lambda s: s.but(
            phased(
                answers=(
                    WitnessAnswer("redundant", GO_NS, GO_NS + SECOND, state=True),
                    WitnessAnswer("redundant", GO_NS + SECOND, GO_NS + 2 * SECOND, state=False),
                )
            )
        ),
    ),
    Planted(
        "baseline-unsteady",
        INDICATIVE,
        "The middle third of the first phase was five per cent slower than the others.",
        PHASED,
        lambda s: s.but(phased(scaled(30, 60, 0.95))),
    ),
    Planted(
        "change-unexplained",
        INDICATIVE,
        "Ten seconds into the last phase the rate fell by a tenth, and nothing had happened.",
        PHASED,
        lambda s: s.but(phased(scaled(140, 150, 0.9))),
    ),
    Planted(
        "witness-contradicted",
        INDICATIVE,
        "The last phase had 60 % of the rate, and the witness said that all is well.",
        PHASED,
        lambda s: s.but(phased(scaled(130, 150, 0.6))),
    ),
    Planted(
        "witness-contradicted",
        INDICATIVE,
        "The load stood for six seconds after the event, and the witness said that all is well.",
        blind(),
        lambda _: blind(scaled(91, 97, 0.02)),
    ),
    Planted(
        "rebuild-throttled",
        INDICATIVE,
        "The witness named the setting by which each copy waits for 0.1 s.",
        PHASED,
        lambda s: said(s, throttle="osd_recovery_sleep_hdd"),
    ),
    Planted(
        "rebuild-small",
        INDICATIVE,
        "Forty blocks were copied of a target of some TB on two devices.",
        ON_TWO_DEVICES,
        lambda s: said(s, rebuilt_bytes=4096),
    ),
    Planted(
        "neighbour-absent",
        INVALID,
        "The neighbour's engine did no I/O at all.",
        neighboured(500),
        lambda _: neighboured(0, 0),
    ),
    Planted(
        "neighbour-unlimited",
        INVALID,
        "The limit of 200 reads a second was written and did nothing.",
        neighboured(500),
        lambda _: neighboured(500, 500),
    ),
    Planted(
        "event-failed",
        INVALID,
        "The process of the disk was still stopped when the run had ended.",
        PHASED,
        lambda s: happened(s, is_undone=False, undone_real_ns=None),
    ),
    Planted(
        "event-failed",
        INVALID,
        "The run was stopped while the action went on.",
        PHASED,
        lambda s: happened(s, end_real_ns=None),
    ),
    Planted(
        "event-unwitnessed",
        INVALID,
        "The event ended well and did nothing: the witness never saw a disk missing.",
        PHASED,
        lambda s: happened(s, seen_real_ns=None),
    ),
    Planted(
        "event-unwitnessed",
        INDICATIVE,
        "The witness hung with the storage: whether the disk is missing is not known.",
        PHASED,
        lambda s: silent(s, from_s=91),
    ),
    Planted(
        "event-late",
        INDICATIVE,
        "The disk was taken away three seconds after it was due.",
        PHASED,
        lambda s: happened(s, due_real_ns=GO_NS + 87 * SECOND),
    ),
    Planted(
        "writes-lost",
        INVALID,
        "The target dropped one acknowledged write of 4,096.",
        PHASED,
        lambda s: s.but(
            phased(readbacks=(Readback("c1", 4096, 1, ("Block 7 is stale.",)),)),
        ),
    ),
    Planted(
        "writes-lost",
        INVALID,
        "Of 4,096 blocks 106 were wrong before anything happened.",
        PHASED,
        lambda s: s.but(
            phased(first_readbacks=(Readback("c1", 4096, 106, ("Block 7 is misplaced.",)),)),
        ),
    ),
)
