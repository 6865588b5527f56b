"""Two studies with their sessions, as the report meets them."""

from __future__ import annotations

from msgspec.structs import replace

from iolab.analysis.points import summarise_points
from iolab.core.configuration import Capacity, Configuration
from iolab.core.metric import RunResult, VerdictLevel
from iolab.core.workload import BY_BANDWIDTH, BY_IOPS, BY_LATENCY, Workload
from iolab.loads.fileio.workload import AccessPattern
from iolab.report.brief import Brief
from tests.report.synthetic import Source, job, objecting, source_of, study_of, workload


def with_results(brief: Brief, results: tuple[RunResult, ...]) -> Brief:
    """The brief with other results, and their repeats together."""
    return replace(brief, results=results, points=summarise_points(results, brief.study))


def one_configuration(*hosts: str) -> tuple[Configuration, ...]:
    return (Configuration("default", "Default", hosts or ("local",), "/mnt/target"),)


def kpi() -> Source:
    """Six indicators on two hosts, each one point."""
    mib, kib4 = 1024 * 1024, 4096
    iops, bandwidth, latency = BY_IOPS, BY_BANDWIDTH, BY_LATENCY
    jobs = (
        ("read-bandwidth", "Read bandwidth", job(AccessPattern.READ, mib, numjobs=32), bandwidth),
        (
            "write-bandwidth",
            "Write bandwidth",
            job(AccessPattern.WRITE, mib, numjobs=32),
            bandwidth,
        ),
        ("read-iops", "Read IOPS", job(AccessPattern.RANDREAD, kib4, 8, 64), iops),
        ("write-iops", "Write IOPS", job(AccessPattern.RANDWRITE, kib4, 8, 64), iops),
        ("read-latency", "Read latency", job(AccessPattern.RANDREAD, kib4, 1, 1), latency),
        ("write-latency", "Write latency", job(AccessPattern.RANDWRITE, kib4, 1, 1), latency),
    )
    found = source_of(
        study_of(
            "cluster-kpi",
            "Key performance indicators of a cluster",
            "What can this cluster do: bandwidth, IOPS and latency, read and write?",
            one_configuration("client-1", "client-2"),
            tuple(workload(name, title, base, (), what) for name, title, base, what in jobs),
        ),
        seconds=30,
    )
    _object(
        found,
        "write-iops",
        "thermal",
        "The drive throttled for 4 of 30 s.",
        VerdictLevel.INDICATIVE,
    )
    return found


def sweep(configurations: tuple[str, ...] = ("default",), seconds: int = 60) -> Source:
    """Five workloads over four depths, with one indicative, one invalid and one failed run."""
    found = source_of(
        study_of(
            "ssd-cluster",
            "SSD configurations of a scale-out cluster",
            "Which SSD configuration serves which use, and how deep must the queues be?",
            tuple(_configuration(name, index) for index, name in enumerate(configurations)),
            _sweep_workloads((1, 4, 8, 16)),
        ),
        seconds=seconds,
    )
    _object(
        found,
        "rand-write-4k",
        "littles-law",
        "Throughput times latency is 12 % below the I/Os in flight: the client was the limit.",
        VerdictLevel.INDICATIVE,
        skip=3,
    )
    _object(
        found,
        "seq-read-128k",
        "device-bytes",
        "The engine claims 2.4 times the bytes that the target's devices moved: a cache answered.",
        VerdictLevel.INVALID,
        skip=2,
    )
    last = [run for run in found.plan.runs if run.point.workload == "seq-write-1m"][-1]
    found.failed[last.point.digest, 1] = "fio on client-1 ended with signal 9."
    found.verdicts[last.point.digest, 1] = objecting(
        VerdictLevel.INVALID, "engine", "The engine did not finish.", exit_signal=9
    )
    return found


def _configuration(name: str, index: int) -> Configuration:
    return Configuration(
        name,
        name.replace("-", " ").capitalize(),
        ("client-1",),
        "/mnt/target",
        nodes=6,
        capacity=Capacity(461.0, 304.0),
        hardware=(("SSD", f"Micron {index + 6}00 7.68TB"),),
    )


def _sweep_workloads(depths: tuple[int, ...]) -> tuple[Workload, ...]:
    iops, bandwidth = BY_IOPS, BY_BANDWIDTH
    return tuple(
        workload(name, title, base, values, what)
        for name, title, base, values, what in (
            ("rand-read-4k", "Random read 4 KiB", job(AccessPattern.RANDREAD, 4096), depths, iops),
            (
                "rand-write-4k",
                "Random write 4 KiB",
                job(AccessPattern.RANDWRITE, 4096),
                depths,
                iops,
            ),
            ("rand-70-30-4k", "Random 70/30 4 KiB", job(AccessPattern.RANDRW, 4096), depths, iops),
            (
                "seq-read-128k",
                "Sequential read 128 KiB",
                job(AccessPattern.READ, 131072),
                depths[:3],
                bandwidth,
            ),
            (
                "seq-write-1m",
                "Sequential write 1 MiB",
                job(AccessPattern.WRITE, 1 << 20),
                depths[:3],
                bandwidth,
            ),
        )
    )


def _object(
    found: Source, name: str, code: str, message: str, level: VerdictLevel, *, skip: int = 0
) -> None:
    runs = [run for run in found.plan.runs if run.point.workload == name][skip:]
    for run in runs[:1]:
        found.verdicts[run.point.digest, run.repeat] = objecting(level, code, message, rho=0.881)


def pair(names: tuple[str, ...] = ("one", "two"), seconds: int = 6) -> Source:
    """One workload over three depths on two configurations: small, with a point of each verdict."""
    found = source_of(
        study_of(
            "pair",
            "Two configurations of one cluster",
            "Which is the better?",
            tuple(_configuration(name, index) for index, name in enumerate(names)),
            _sweep_workloads((1, 4, 16))[:1],
        ),
        seconds=seconds,
    )
    message = "Throughput times latency is 12 % below the I/Os in flight."
    _object(found, "rand-read-4k", "littles-law", message, VerdictLevel.INDICATIVE, skip=1)
    _object(
        found, "rand-read-4k", "device-bytes", "A cache answered.", VerdictLevel.INVALID, skip=2
    )
    return found
