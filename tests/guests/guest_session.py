"""Sessions of a fleet of guests, as the report and the command line meet them.

Two or more nodes with the same number of guests; load follows a saturating curve over all guests,
the layers under a guest are shares of what it sees, nodes' counters agree with the load.
"""

from __future__ import annotations

import hashlib
import itertools

import numpy as np
from msgspec import field
from msgspec.structs import replace

from iolab.analysis.metrics import fleet_metrics, host_metrics
from iolab.analysis.sums import sum_measured_window
from iolab.core.configuration import Configuration
from iolab.core.host import HostRole, HostSpec, HostTransport
from iolab.core.metric import (
    BytesWrittenByLayer,
    HostResult,
    HypervisorResult,
    LatencyLayer,
    LayerLatency,
    Outlier,
    RunResult,
)
from iolab.core.run import (
    DeviceDelta,
    MonitoredHost,
    Plan,
    PlanDemand,
    PlannedRun,
    Point,
    RunRecord,
)
from iolab.core.samples import CounterTable
from iolab.core.study import Study
from iolab.core.workload import BY_IOPS, Axis, Direction, Workload
from iolab.guests.guest import (
    Accelerator,
    GuestCpuTime,
    GuestFleet,
    GuestRun,
    GuestSettings,
    guest_fleet_of_run,
)
from iolab.guests.hosts import guest_specs
from iolab.hosts.counter_names import CPU, NIC
from iolab.loads.fileio.workload import AccessPattern, Job
from iolab.store.documents import Manifest
from iolab.study.targets import load_host_names
from tests.report.machines import GIB, facts_of
from tests.report.synthetic import (
    GO_NS,
    VALID,
    WARMUP_S,
    Source,
    job,
    record_of,
    source_of,
    study_of,
)
from tests.results import result_of_run

MIB = 1 << 20
SETTINGS = GuestSettings(
    vcpus=4, memory_bytes=8 * GIB, disk_bytes=32 * GIB, accelerator=Accelerator.AUTO
)
EMULATED = replace(SETTINGS, vcpus=1, memory_bytes=192 * MIB, disk_bytes=64 * MIB, iops_limit=400)
MIXES = (
    ("read", "Random reads", AccessPattern.RANDREAD, None),
    ("mixed-70", "70 % reads, 30 % writes", AccessPattern.RANDRW, 70),
)
SHARES = {
    LatencyLayer.ENGINE: 1.0,
    LatencyLayer.GUEST: 0.86,
    LatencyLayer.HYPERVISOR: 0.7,
    LatencyLayer.DEVICE: 0.09,
}
"""How much of a guest's latency each layer sees."""

DISKS = ("nvme0n1", "nvme1n1")
PORTS = ("ens1f0np0", "ens1f1np1")
SLOW = Outlier("disk", "nvme1n1", "write_lat_ns", 412_000.0, 88_000.0)


class GuestSource(Source):
    """A session source whose load is made by guests of watched nodes."""

    nodes: tuple[str, ...] = ()
    settings: GuestSettings = SETTINGS
    accelerator: Accelerator = Accelerator.KVM
    disks: tuple[str, ...] = DISKS
    kept: dict[tuple[str, int], RunRecord] = field(default_factory=dict)

    def record(self, digest: str, repeat: int) -> RunRecord:
        if (digest, repeat) not in self.kept:
            runs = self.plan.runs
            run = next(r for r in runs if (r.point.digest, r.repeat) == (digest, repeat))
            self.kept[digest, repeat] = _record(self, run)
        return self.kept[digest, repeat]

    def manifest(self, digest: str, repeat: int) -> Manifest:
        record = self.record(digest, repeat)
        plain = super().manifest(digest, repeat)
        return replace(
            plain, fleet=guest_fleet_of_run(record), monitored_hosts=record.monitored_hosts
        )

    def _result(self, run: PlannedRun) -> RunResult:
        record = self.record(run.point.digest, run.repeat)
        plain = _plain_result(self, record)
        failure = self.failed.get((run.point.digest, run.repeat))
        if failure:
            return replace(plain, failure=failure, nodes=())
        return plain


def fleet(
    nodes: tuple[str, ...] = ("node-1", "node-2"),
    counts: tuple[int, ...] = (1, 2, 3),
    depths: tuple[int, ...] = (1, 8),
    repeats: int = 1,
    seconds: int = 6,
    settings: GuestSettings = SETTINGS,
    accelerator: Accelerator = Accelerator.KVM,
    mixes: tuple[tuple[str, str, AccessPattern, int | None], ...] = MIXES,
) -> GuestSource:
    """Guests of as many a node as `counts` has values, over two depths, in a workload a mix."""
    guests = tuple(guest_specs(nodes, max(counts)))
    configuration = Configuration(
        "default", "Default", tuple(one.name for one in guests), "/mnt/target", nodes=len(nodes)
    )
    sweep = (Axis("vms_per_node", counts), Axis("iodepth", depths))
    workloads = tuple(
        Workload(name, title, _job(access, percent), sweep, BY_IOPS)
        for name, title, access, percent in mixes
    )
    title, question = "A fleet of virtual machines", "How many machines can this cluster carry?"
    study = study_of("vm-fleet", title, question, (configuration,), workloads, repeats)
    specs = tuple(
        HostSpec(node, HostTransport.LOCAL, HostRole.HYPERVISOR, path="/mnt/target")
        for node in nodes
    )
    study = replace(study, hosts=(*guests, *specs), guests=settings)
    return _source(study, nodes, settings, accelerator, seconds)


def _job(access: AccessPattern, percent: int | None) -> Job:
    made = job(access, 4096)
    return made if percent is None else replace(made, read_percent=percent)


def _source(
    study: Study,
    nodes: tuple[str, ...],
    settings: GuestSettings,
    accelerator: Accelerator,
    seconds: int,
) -> GuestSource:
    plain = source_of(replace(study, workloads=()), seconds)
    points = [
        _point(workload, values)
        for workload in study.workloads
        for values in itertools.product(*(axis.values for axis in workload.sweep))
    ]
    asked = list(itertools.product(points, range(1, study.method.repeats + 1)))
    runs = tuple(PlannedRun(order, r, point) for order, (point, r) in enumerate(asked, 1))
    plan = Plan(study.id, "0f3ac1d2e4b59687", (), runs, PlanDemand(1.0, (), 1, 1, 1), ())
    facts = {spec.name: facts_of(spec.name) for spec in study.hosts}
    session = replace(plain.session, study=study.id, title=study.title)
    return GuestSource(
        study, plan, facts, session, seconds, nodes=nodes, settings=settings,
        accelerator=accelerator,
    )  # fmt: skip


def _point(workload: Workload, values: tuple[int | str, ...]) -> Point:
    axis = tuple(zip((one.name for one in workload.sweep), values, strict=True))
    told = dict(axis)
    depth, per_node = int(told.get("iodepth", 1)), int(told.get("vms_per_node", 0))
    made = replace(Job.require_type(workload.job), iodepth=depth)
    digest = hashlib.sha256(f"{workload.id}/{axis}".encode()).hexdigest()[:16]
    return Point(digest, "default", workload.id, axis, made, "s256m", per_node=per_node)


def _record(source: GuestSource, run: PlannedRun) -> RunRecord:
    """The record of plain load by these guests, with their nodes beside them."""
    hosts = load_host_names(source.study, "default", run.point.per_node)
    own = replace(source.study.configurations[0], hosts=hosts)
    plain = record_of(replace(source, study=replace(source.study, configurations=(own,))), run)
    bystanders = tuple(
        MonitoredHost(
            node,
            HostRole.HYPERVISOR,
            None,
            tuple(DeviceDelta(disk, 1 << 20, 1 << 20, 256, 256) for disk in source.disks),
            clock_offset_ns=0,
            clock_error_ns=100_000,
        )
        for node in source.nodes
    )
    guests = tuple(
        GuestRun(
            guest,
            source.study.host(guest).hypervisor,
            source.accelerator,
            use=GuestCpuTime(30.0, 20.0 + number, 0.4 + 0.1 * number, 31.5),
            booted_s=1.6 + 0.2 * number,
        )
        for number, guest in enumerate(hosts)
    )
    fleet_told = GuestFleet(guests, source.settings, run.point.per_node)
    seconds = source.seconds + int(WARMUP_S)
    return replace(
        plain,
        monitored_hosts=bystanders,
        fleet=fleet_told,
        counters=_node_counters(source, len(hosts), seconds),
    )


def _node_counters(source: GuestSource, clients: int, seconds: int) -> CounterTable:
    """Each node's disks, cores on two NUMA nodes, and ports, one sample a second."""
    rows: list[tuple[int, int, int, str, str, str, int]] = []
    for index, _ in enumerate(source.nodes):
        for seq in range(seconds + 1):
            at = GO_NS + seq * 1_000_000_000
            for scope, name, metric, value in _sample(source, index, seq):
                rows.append((clients + index, seq, at, scope, name, metric, int(value)))
    columns = list(zip(*rows, strict=True))
    ints = [np.array(column, dtype=np.int64) for column in (*columns[:3], columns[6])]
    names = [np.array(column, dtype=np.object_) for column in columns[3:6]]
    return CounterTable(ints[0], ints[1], ints[2], names[0], names[1], names[2], ints[3])


def _sample(source: GuestSource, index: int, seq: int) -> list[tuple[str, str, str, float]]:
    found: list[tuple[str, str, str, float]] = []
    for number, disk in enumerate(source.disks):
        ios = seq * (50_000 + 1_500 * number + 700 * (seq % 3))
        lat_ns = 412_000 if disk == SLOW.name else 88_000 + 1_000 * number
        counts = {
            "read_ios": 0.7 * ios,
            "read_bytes": 0.7 * ios * 4096,
            "read_time_ns": 0.7 * ios * 80_000,
            "write_ios": 0.3 * ios,
            "write_bytes": 0.3 * ios * 4096,
            "write_time_ns": 0.3 * ios * lat_ns,
            "busy_time_ns": 0.4 * seq * 1e9,
            "queue_time_ns": ios * 80_000,
            "temperature_mc": 41_000,
        }
        found += [("disk", disk, name, float(value)) for name, value in counts.items()]
    for core in range(4):
        busy = (0.15 + 0.1 * (core // 2) + 0.02 * index) * seq * 1e9
        spent = dict.fromkeys(CPU, 0.0)
        spent |= {"user_ns": busy * 0.4, "system_ns": busy * 0.6, "idle_ns": seq * 1e9 - busy}
        found += [("cpu", f"{core}@{core // 2}", name, value) for name, value in spent.items()]
    for number, port in enumerate(PORTS):
        sent = seq * 186e6 * (1 - 0.02 * number)
        port_counts = dict.fromkeys(NIC, 0.0)
        port_counts |= {"tx_bytes": sent, "rx_bytes": sent, "tx_frames": sent / 1460}
        found += [("nic", port, name, float(value)) for name, value in port_counts.items()]
    return found


def _plain_result(source: GuestSource, record: RunRecord) -> RunResult:
    load = sum_measured_window(record)
    run, access = record.run, Job.require_type(record.run.point.job).access
    metrics = fleet_metrics(load, access.directions)
    nodes = []
    for number, node in enumerate(source.nodes):
        guests = (
            tuple(one.guest for one in lived.guest_runs_on_node(node))
            if (lived := guest_fleet_of_run(record))
            else ()
        )
        share = 1 / len(source.nodes)
        own = {
            key: replace(one, value=one.value * share)
            if one.value is not None and one.unit in {"1/s", "bytes/s"}
            else one
            for key, one in metrics.items()
        }
        nodes.append(
            HypervisorResult(
                node,
                guests,
                own,
                layers=_layers(record),
                outliers=(SLOW,) if number == 0 else (),
                bytes_written=BytesWrittenByLayer(1 << 30, (1 << 30) + 4096, 3 << 30, 3.0)
                if access.has_writes
                else None,
            )
        )
    return result_of_run(
        run,
        metrics,
        status=record.status,
        window_s=load.measured_part.common_window.seconds
        if load.measured_part.common_window
        else 0.0,
        hosts=tuple(
            HostResult(host.host, host_metrics(load, index, access.directions))
            for index, host in enumerate(record.hosts)
        ),
        verdict=source.verdicts.get((run.point.digest, run.repeat), VALID),
        nodes=tuple(nodes),
    )


def _layers(record: RunRecord) -> tuple[LayerLatency, ...]:
    """What each layer saw, as shares of what the generator saw."""
    table = record.intervals
    found = []
    for layer, share in SHARES.items():
        for direction in (Direction.READ, Direction.WRITE):
            mine = table.direction == direction
            ios = int(table.ios[mine].sum())
            if ios:
                mean = float(table.lat_sum_ns[mine].sum()) / ios
                found.append(LayerLatency(layer, direction, share * mean, ios))
    return tuple(found)
