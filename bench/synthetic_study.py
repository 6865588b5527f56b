"""The study, plan and hosts of a session that never ran, of any size."""

from __future__ import annotations

import hashlib
import itertools
import math
from dataclasses import dataclass
from typing import Final

from iolab.core.configuration import Capacity, Configuration
from iolab.core.host import (
    CpuFacts,
    DiskFacts,
    HostFacts,
    HostSpec,
    HostTransport,
    KernelFacts,
    MemoryFacts,
    NicFacts,
    NumaNode,
    TargetFacts,
    ToolFacts,
)
from iolab.core.run import Plan, PlanDemand, PlannedRun, Point
from iolab.core.study import Method, MethodKind, RunOrder, Study, TargetSettings, TelemetrySettings
from iolab.core.workload import BY_IOPS, Axis, DataSet, Workload
from iolab.loads.fileio.engine_facts import FIO_ENGINE
from iolab.loads.fileio.workload import AccessPattern, Job

GIB: Final = 1 << 30
DEPTHS: Final = (1, 2, 4, 8, 16, 32, 64, 128, 256, 512)
BLOCKS: Final = (("4k", 4096), ("8k", 8192), ("16k", 16384), ("64k", 65536), ("128k", 131072))
ACCESSES: Final = (
    AccessPattern.RANDREAD,
    AccessPattern.RANDWRITE,
    AccessPattern.RANDRW,
    AccessPattern.READ,
    AccessPattern.WRITE,
)


@dataclass(frozen=True, slots=True)
class Shape:
    """How large the session is: points of each configuration, and each host's cores and devices."""

    points: int = 500
    seconds: int = 60
    numjobs: int = 4
    hosts: int = 1
    repeats: int = 1
    cores: int = 16
    disks: int = 4
    nics: int = 2
    configurations: int = 1

    @property
    def configuration_ids(self) -> tuple[str, ...]:
        if self.configurations == 1:
            return ("only",)
        return tuple(f"design-{number}" for number in range(1, self.configurations + 1))

    @property
    def host_names(self) -> tuple[str, ...]:
        return tuple(f"client-{number}" for number in range(1, self.hosts + 1))


def make_study(shape: Shape) -> Study:
    """A study whose expansion is `make_plan` of the same shape."""
    workloads = tuple(
        Workload(
            id=_workload_id(number),
            title=f"Workload {number}: {access.value}",
            job=_job(access, BLOCKS[0][1], DEPTHS[0], shape),
            sweep=(
                Axis("iodepth", DEPTHS),
                Axis("bs", tuple(name for name, _ in BLOCKS)),
            ),
            indicator=BY_IOPS,
        )
        for number, access in _workloads(shape)
    )
    return Study(
        id="synthetic",
        title="A synthetic study",
        question="How long does it take to keep and to show this much?",
        source="made from a seed",
        configurations=tuple(
            Configuration(
                id=one,
                title=f"Configuration {one}",
                hosts=shape.host_names,
                path="/srv/target",
                nodes=3,
                capacity=Capacity(raw_tb=46.08, usable_tb=15.36),
                hardware=(("Drives", "12 × 3.84 TB"),),
            )
            for one in shape.configuration_ids
        ),
        hosts=tuple(HostSpec(name, HostTransport.LOCAL) for name in shape.host_names),
        workloads=workloads,
        method=Method(
            kind=MethodKind.FIXED,
            warmup_s=0.0,
            runtime_s=float(shape.seconds),
            repeats=shape.repeats,
            settle_s=1.0,
            order=RunOrder.AS_WRITTEN,
            seed=1,
            drop_caches=True,
        ),
        telemetry=TelemetrySettings(1000),
        target=TargetSettings(keep_files=False, allow_memory=False),
        scale="full",
        text='# a synthetic study\r\nformat = 1\nid = "synthetic"\n',
        overrides=("method.settle=1s",),
    )


def make_plan(shape: Shape) -> Plan:
    """The plan of `shape.points` points, each `shape.repeats` times."""
    points = [
        _point(number, access, depth, block, shape, configuration)
        for configuration in shape.configuration_ids
        for number, access, depth, block in itertools.islice(
            (
                (number, access, depth, block)
                for number, access in _workloads(shape)
                for depth, block in itertools.product(DEPTHS, BLOCKS)
            ),
            shape.points,
        )
    ]
    planned = itertools.product(range(1, shape.repeats + 1), points)
    runs = tuple(PlannedRun(order, repeat, point) for order, (repeat, point) in enumerate(planned))
    seconds = float(len(runs) * shape.seconds)
    return Plan(
        study="synthetic",
        digest=digest_of(f"plan {shape}"),
        data_sets=tuple(
            DataSet("s1g", one, shape.numjobs, 1, GIB) for one in shape.configuration_ids
        ),
        runs=runs,
        demand=PlanDemand(
            seconds, (("measure", seconds),), shape.numjobs * GIB, 0, shape.numjobs * GIB
        ),
        destroyed_device_texts=(),
    )


def make_facts(shape: Shape) -> dict[str, HostFacts]:
    """The facts of each host by name."""
    return {name: _facts(name, shape) for name in shape.host_names}


def _facts(name: str, shape: Shape) -> HostFacts:
    """A server as one meets them."""
    disks = tuple(
        DiskFacts(
            name=f"nvme{number}n1",
            model="Model 3.84 TB",
            serial=f"S{number:06}",
            firmware="FW1",
            size_bytes=3_840_755_982_336,
            rotational=False,
            scheduler="none",
            logical_block_bytes=512,
            physical_block_bytes=4096,
            pcie_link="8.0 GT/s x4",
            parents=(),
            backing_file=None,
        )
        for number in range(shape.disks)
    )
    nodes = (NumaNode(0, f"0-{shape.cores - 1}", 64 * GIB),)
    return HostFacts(
        cpu=CpuFacts("A processor", 1, shape.cores // 2, shape.cores, "performance", 3500.0, nodes),
        memory=MemoryFacts(64 * GIB, ()),
        disks=disks,
        nics=tuple(
            NicFacts(f"eth{nic}", "mlx5_core", 100_000, 9000, up=True) for nic in range(shape.nics)
        ),
        kernel=KernelFacts(
            "6.1.0", "Debian GNU/Linux 12", "x86_64", name, f"boot-{name}", "madvise", 0, None
        ),
        target=TargetFacts(
            path="/srv/target",
            fs_type="xfs",
            mount_point="/srv",
            mount_source="/dev/nvme0n1",
            mount_options="rw,noatime",
            total_bytes=3_840_000_000_000,
            free_bytes=3_000_000_000_000,
            free_inodes=1_000_000,
            device="nvme0n1",
            devices=("nvme0n1",),
            in_memory=False,
            memory_backed=False,
            network=False,
            writable=True,
        ),
        tools=(ToolFacts("fio", "/usr/bin/fio", "fio-3.33"),),
        faults=(),
    )


def _workloads(shape: Shape) -> list[tuple[int, AccessPattern]]:
    """As many workloads as the points need, numbered from 1."""
    count = math.ceil(shape.points / (len(DEPTHS) * len(BLOCKS)))
    return [(number + 1, ACCESSES[number % len(ACCESSES)]) for number in range(count)]


def _point(
    number: int,
    access: AccessPattern,
    depth: int,
    block: tuple[str, int],
    shape: Shape,
    configuration: str,
) -> Point:
    """One point of a workload; that of the only configuration has the digest it always had."""
    text = f"{number} {access} {depth} {block} {shape.numjobs}"
    return Point(
        digest=digest_of(text if configuration == "only" else f"{configuration} {text}"),
        configuration=configuration,
        workload=_workload_id(number),
        axis_values=(("iodepth", depth), ("bs", block[0])),
        job=_job(access, block[1], depth, shape),
        data_set="s1g",
    )


def _job(access: AccessPattern, block_bytes: int, depth: int, shape: Shape) -> Job:
    """One client's job."""
    return Job(
        engine=FIO_ENGINE,
        access=access,
        block_bytes=block_bytes,
        iodepth=depth,
        numjobs=shape.numjobs,
        file_bytes=GIB,
        read_percent=70 if access.is_mixed else None,
    )


def _workload_id(number: int) -> str:
    return f"workload-{number}"


def digest_of(text: str) -> str:
    """Sixteen hex digits for a text."""
    return hashlib.sha256(text.encode()).hexdigest()[:16]
