"""The five bundled studies, each run as a user types it, but shorter; their numbers against truths.

What `iolab show --json` tells is held against the engine's own last words in the session, which a
few lines here read and not iolab's readers, and against what the kernel counted on the device
meanwhile. Every study has a file system of its own, so nobody else's load is counted.
"""

from __future__ import annotations

import json
import re
import statistics
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import zstandard

from iolab.loads.keyvalue.workload import KeyOperation
from tests.e2e.hdr_oracle import merged
from tests.e2e.sessions import iolab, shown
from tests.e2e.targets import device_bytes, xfs_on_loop

pytestmark = [pytest.mark.e2e, pytest.mark.long]

MIB = 1 << 20
SHORT = (
    "method.warmup=0s",
    "method.settle=0s",
    "method.idle_watch=0",
    "method.generator_limit=false",
)
# What the file system itself reads and writes: metadata and log, and a look at a new device.
METADATA_BYTES = 24 * MIB
# fio's rate ends with the last job to stop, which on a busy machine is some tenths of a second.
FIO_RATE = 0.25
KEYS, KEY_BYTES = 20_000, 1040
RECORDS = 3000
# How often a store may write what changed: to its log, to a table, and when it compacts tables.
REWRITTEN = 6
YCSB_LINE = re.compile(r"^\[([A-Z-]+)\], ([^,]+), ([\d.]+)$", re.MULTILINE)

Json = dict[str, Any]


@dataclass(frozen=True)
class Measured:
    """A session, its document, and the bytes that its device moved from its start to its end."""

    folder: Path
    document: Json
    read_bytes: int
    written_bytes: int
    device: str

    @property
    def results(self) -> list[Json]:
        found: list[Json] = self.document["results"]
        return found

    def run_of(self, result: Json) -> Path:
        """The folder of a run."""
        return Path(self.folder, "points", result["digest"], f"run-{result['repeat']}")

    def manifest(self, result: Json) -> Json:
        """All that is stored of a run, but for its tables and its engines' output."""
        content: Json = json.loads((self.run_of(result) / "manifest.json").read_bytes())
        return content

    def moved(self, result: Json) -> Json:
        """What the target's device moved around a run, made by one host."""
        (host,) = self.manifest(result)["hosts"]
        (found,) = (one for one in host["devices"] if one["device"] == self.device)
        return dict(found)

    def said(self, result: Json) -> list[tuple[str, str, bytes]]:
        """(host, file, content) of all that the engines of a run printed or wrote."""
        return [
            (output["host"], output["name"], unpacked(self.run_of(result) / f"engine/{number}.zst"))
            for number, output in enumerate(self.manifest(result)["outputs"])
        ]

    def printed(self, result: Json, name: str) -> list[str]:
        """That file of every host, as text."""
        return [content.decode() for _, file, content in self.said(result) if file == name]


def unpacked(path: Path) -> bytes:
    reader = zstandard.ZstdDecompressor().stream_reader(path.read_bytes(), read_across_frames=True)
    with reader as frames:
        return frames.read()


def value(result: Json, metric: str) -> float:
    """A number of a result; 0 where there is none."""
    return float(result["metrics"][metric]["value"] or 0)


def measured(study: str, folder: Path, *sets: str, size: int = 1 << 30) -> Measured:
    """The bundled study at its small scale and shorter still, on an XFS of its own."""
    words = [word for one in (*SHORT, *sets) for word in ("--set", one)]
    session = folder / "session"
    with xfs_on_loop(size) as target:
        before = device_bytes(target.device)
        where = ("--path", target.path, "--out", session, "--quiet")
        iolab("run", study, "--scale", "small", *where, *words)
        after = device_bytes(target.device)
        assert list(target.path.iterdir()) == []
    moved = (after[0] - before[0], after[1] - before[1])
    return Measured(session, shown(session), *moved, target.device)


@pytest.fixture(scope="module")
def cluster_kpi(tmp_path_factory: pytest.TempPathFactory) -> Measured:
    sets = (
        "method.runtime=2s",
        "workload.*.filesize=32m",
        "workload.metadata.files_per_rank=100",
        "workload.metadata.iterations=2",
    )
    return measured("cluster-kpi", tmp_path_factory.mktemp("kpi"), *sets)


@pytest.fixture(scope="module")
def ssd_cluster(tmp_path_factory: pytest.TempPathFactory) -> Measured:
    sets = ("method.runtime=2s", "workload.*.filesize=16m", "workload.*.iodepth=1,8")
    return measured("ssd-cluster", tmp_path_factory.mktemp("ssd"), *sets)


@pytest.fixture(scope="module")
def rocksdb(tmp_path_factory: pytest.TempPathFactory) -> Measured:
    sets = (
        "method.runtime=2s",
        "target.image=400m",
        f"workload.*.keys={KEYS}",
        "workload.*.threads=4",
        "workload.*.memory=256m",
    )
    return measured("rocksdb", tmp_path_factory.mktemp("rocks"), *sets)


@pytest.fixture(scope="module")
def cassandra(tmp_path_factory: pytest.TempPathFactory) -> Measured:
    sets = ("method.runtime=2s", f"workload.*.records={RECORDS}", "workload.*.threads=8")
    return measured("cassandra", tmp_path_factory.mktemp("keys"), *sets)


@pytest.fixture(scope="module")
def vm_fleet(tmp_path_factory: pytest.TempPathFactory) -> Measured:
    sets = (
        "workload.*.engine=fio",  # whose own figures these are held against
        "method.runtime=3s",
        "vm.disk=32m",
        "workload.*.filesize=4m",
        "workload.*.iodepth=1",
        "workload.*.vms_per_node=1",
        "workload.write-30.vms_per_node=1,2",
    )
    return measured("vm-fleet", tmp_path_factory.mktemp("fleet"), *sets)


def last_of_fio(printed: str) -> Json:
    """The job of fio's last report; those before it are of the seconds until then."""
    last = printed[printed.rindex("\n{\n") :] if "\n{\n" in printed else printed
    (job,) = json.loads(last)["jobs"]
    return dict(job)


def fio_jobs(session: Measured, result: Json) -> list[Json]:
    """fio's own figures of every host."""
    return [last_of_fio(text) for text in session.printed(result, "fio.stdout")]


def assert_as_fio_said(result: Json, job: Json) -> None:
    """All of one host's run: every I/O, every byte, the mean, and the rate."""
    seconds = result["window_s"]
    moved = 0
    for way in ("read", "write"):
        said = job[way]
        moved += said["io_bytes"]
        assert value(result, f"{way}_iops") * seconds == pytest.approx(said["total_ios"], abs=0.5)
        if said["total_ios"]:
            mean = said["lat_ns"]["mean"]
            assert value(result, f"{way}_lat_ns_mean") == pytest.approx(mean, rel=1e-6)
            assert value(result, f"{way}_iops") == pytest.approx(said["iops"], rel=FIO_RATE)
    assert value(result, "bw_bytes_per_s") * seconds == pytest.approx(moved, rel=1e-9)
    assert moved > 0


def bytes_of_fio(session: Measured, way: str) -> int:
    """What fio claims of all runs and hosts."""
    jobs = [job for result in session.results for job in fio_jobs(session, result)]
    return sum(job[way]["io_bytes"] for job in jobs)


def assert_the_device_moved(session: Measured, laid_out: int) -> None:
    """What fio claims, and the files that were laid out for it."""
    read, written = bytes_of_fio(session, "read"), bytes_of_fio(session, "write")
    assert session.read_bytes == pytest.approx(read, abs=METADATA_BYTES)
    assert session.written_bytes == pytest.approx(written + laid_out, abs=METADATA_BYTES)


def assert_done(session: Measured, points: int) -> None:
    assert [one["status"] for one in session.results] == ["done"] * points
    # Nobody watched the devices, so nobody may call a result valid.
    assert all(one["verdict"]["level"] != "valid" for one in session.results)


def test_cluster_kpi_agrees_with_fio(cluster_kpi: Measured) -> None:
    assert_done(cluster_kpi, 8)
    for result in cluster_kpi.results[:6]:
        (job,) = fio_jobs(cluster_kpi, result)
        assert_as_fio_said(result, job)


def test_cluster_kpi_makes_and_removes_every_file(cluster_kpi: Measured) -> None:
    for result in cluster_kpi.results[6:]:
        (host,) = cluster_kpi.manifest(result)["hosts"]
        done = [phase["completed"] for phase in host["details"]["phases"]]
        assert done[1:5] == [4 * 100] * 4
        for operation in ("create", "stat", "read", "remove"):
            assert value(result, f"file_{operation}_ops_per_s_whole") > 0


def test_cluster_kpi_agrees_with_the_device(cluster_kpi: Measured) -> None:
    assert_the_device_moved(cluster_kpi, 4 * 32 * MIB)


def test_ssd_cluster_agrees_with_fio(ssd_cluster: Measured) -> None:
    assert_done(ssd_cluster, 18)
    for result in ssd_cluster.results:
        (job,) = fio_jobs(ssd_cluster, result)
        assert_as_fio_said(result, job)


def test_ssd_cluster_agrees_with_the_device(ssd_cluster: Measured) -> None:
    assert_the_device_moved(ssd_cluster, 4 * 16 * MIB)


def test_the_best_of_ssd_cluster_is_the_best_that_fio_told(ssd_cluster: Measured) -> None:
    told: dict[str, list[float]] = {}
    for result in ssd_cluster.results:
        (job,) = fio_jobs(ssd_cluster, result)
        told.setdefault(result["workload"], []).append(job["read"]["iops"] + job["write"]["iops"])
    ours: dict[str, list[float]] = {}
    for point in ssd_cluster.document["points"]:
        ours.setdefault(point["workload"], []).append(point["metrics"]["iops"]["value"])
    assert {name: max(rates) for name, rates in ours.items()} == {
        name: pytest.approx(max(rates), rel=FIO_RATE) for name, rates in told.items()
    }


def counts_of(session: Measured, result: Json) -> dict[int, int]:
    """How often each operation of a run, made by one host, is stored to have been done."""
    (host,) = session.manifest(result)["hosts"]
    return {one["operation"]: one["completed"] for one in host["details"]["counts"]}


def ticker(printed: str, name: str) -> int:
    """A number of RocksDB's own statistics."""
    found = re.search(rf"rocksdb\.{re.escape(name)} COUNT : (\d+)", printed)
    assert found is not None
    return int(found[1])


def test_rocksdb_agrees_with_db_bench(rocksdb: Measured) -> None:
    assert_done(rocksdb, 6)
    for result in rocksdb.results:
        (printed,) = rocksdb.printed(result, "db_bench.stdout")
        (report,) = rocksdb.printed(result, "db_bench.report.csv")
        # It tells the operations of each second, of which some in a row are the run's window. What
        # is written beside reads is not among ours, since nobody waits for it.
        seconds = [float(line.partition(",")[2]) for line in report.split()[1:]]
        length = round(result["window_s"])
        windows = [
            statistics.mean(seconds[i : i + length]) for i in range(len(seconds) - length + 1)
        ]
        beside = result["workload"] == "readwhilewriting"
        ours = value(result, "ops_per_s") + (value(result, "write_ops_per_s") if beside else 0)
        assert any(ours == pytest.approx(window, abs=1) for window in windows), (ours, seconds)
        mean_us = re.search(r"per read:\s+Count: \d+ Average: ([\d.]+)", printed)
        assert mean_us is not None
        mean_ns = 1000 * float(mean_us[1])
        assert value(result, "read_lat_ns_mean") == pytest.approx(mean_ns, rel=1e-3)
        # What is stored of the whole run are its own counts, to the last operation; its seconds
        # are no more, and may be without its last moments.
        total = re.search(r"([\d.]+) seconds (\d+) operations", printed)
        assert total is not None
        counts = counts_of(rocksdb, result)
        read, written = counts[KeyOperation.READ], counts.get(KeyOperation.WRITE, 0)
        assert read == ticker(printed, "number.keys.read") > 0
        assert written == ticker(printed, "number.keys.written")
        assert int(total[2]) == (read if beside else read + written)
        assert 0 < ours <= sum(seconds) <= read + written


def test_rocksdb_is_read_from_the_device(rocksdb: Measured) -> None:
    """Every run finds its caches empty: what RocksDB read first came from the device."""
    database = KEYS * KEY_BYTES
    updated = 0
    for result in rocksdb.results:
        (printed,) = rocksdb.printed(result, "db_bench.stdout")
        (host,) = rocksdb.manifest(result)["hosts"]
        assert host["cache_drop"]["requested"]
        assert host["cache_drop"]["resident_bytes_after"] == 0
        levels = ("non.last.level.read.bytes", "last.level.read.bytes")
        asked = sum(ticker(printed, level) for level in levels)
        assert asked > 0
        # What was read once stays in the page cache until whoever else measures here empties it:
        # then it is read again, each block with the rest of its first and last page.
        moved = rocksdb.moved(result)["read_bytes"]
        assert 0.5 * min(asked, database) <= moved <= 3 * asked + METADATA_BYTES
        updated += ticker(printed, "bytes.written")
    # Two databases, each written once and compacted once at most, and what runs wrote.
    least = 2 * database
    most = 3 * least + REWRITTEN * updated + 2 * METADATA_BYTES
    assert least <= rocksdb.written_bytes <= most


def hdr_lines(log: str) -> list[tuple[int, float]]:
    """(operations, sum of their us) of each line of a latency log, by HdrHistogram's own port."""
    found = []
    for line in log.splitlines():
        if line[:1].isdigit():
            histogram = merged([line.encode("ascii")])
            count = histogram.get_total_count()
            found.append((count, count * histogram.get_mean_value()))
    return found


def test_cassandra_agrees_with_ycsb(cassandra: Measured) -> None:
    assert_done(cassandra, 4)
    for result in cassandra.results:
        (printed,) = cassandra.printed(result, "ycsb.stdout")
        said = {(kind, what): float(number) for kind, what, number in YCSB_LINE.findall(printed)}
        (log,) = cassandra.printed(result, "latency.READ.hdr")
        lines = hdr_lines(log)
        assert sum(count for count, _ in lines) == said["READ", "Operations"]
        # Ours are those of the seconds that count: lines of the log that follow one another.
        ours = round(value(result, "read_ops_per_s") * result["window_s"])
        parts = [
            lines[first:end]
            for first in range(len(lines))
            for end in range(first + 1, len(lines) + 1)
            if sum(count for count, _ in lines[first:end]) == ours
        ]
        means = [1000 * sum(us for _, us in part) / ours for part in parts]
        assert any(
            value(result, "read_lat_ns_mean") == pytest.approx(mean, rel=0.02, abs=600)
            for mean in means
        ), (ours, lines)


def test_cassandra_moves_its_records_on_the_device(cassandra: Measured) -> None:
    record = 4 * 1024
    records = RECORDS * record
    updated = 0
    for result in cassandra.results:
        counts = counts_of(cassandra, result)
        # It begins cold: what it asks for first comes from the device, and again when whoever else
        # measures here empties the page cache.
        asked = counts[KeyOperation.READ] * record
        moved = cassandra.moved(result)["read_bytes"]
        changed = counts.get(KeyOperation.UPDATE, 0) * record
        most = 2 * max(asked, records) + REWRITTEN * changed + METADATA_BYTES
        assert 0.5 * min(asked, records) <= moved <= most
        updated += changed
    # Each record is written when it is loaded, to the log and to a table.
    most = 4 * records + REWRITTEN * updated + 2 * METADATA_BYTES
    assert records <= cassandra.written_bytes <= most


def test_vm_fleet_agrees_with_fio_in_its_guests(vm_fleet: Measured) -> None:
    assert_done(vm_fleet, 5)
    compared = 0
    for result in vm_fleet.results:
        manifest = vm_fleet.manifest(result)
        jobs = {
            host: last_of_fio(content.decode())
            for host, name, content in vm_fleet.said(result)
            if name == "fio.stdout"
        }
        assert len(jobs) == 2 * result["axis"]["vms_per_node"]
        # Every guest has its own totals, to the last I/O, whether or not they shared a second.
        assert {host["host"] for host in manifest["hosts"]} == set(jobs)
        for host in manifest["hosts"]:
            for way in ("read", "write"):
                totals = host["totals"][way] or {"ios": 0, "bytes": 0}
                said = jobs[host["host"]][way]
                assert (totals["ios"], totals["bytes"]) == (said["total_ios"], said["io_bytes"])
            assert sum(jobs[host["host"]][way]["total_ios"] for way in ("read", "write")) > 0
        if not result["window_s"]:
            continue  # on a very busy machine guests may have no second in common, and it says so
        assert {guest["name"] for guest in result["hosts"]} == set(jobs)
        for way in ("read", "write"):
            rates = {one["name"]: one[f"{way}_iops"]["value"] or 0 for one in result["hosts"]}
            for guest, rate in rates.items():
                # The window that all had in common may be a small part of the run, in which an
                # emulated guest did more or less than on average, but no more than it did in all.
                assert 0 <= rate * result["window_s"] <= jobs[guest][way]["total_ios"] + 0.5
            # No guest is missing from the sum.
            fleet = value(result, f"{way}_iops")
            assert fleet == pytest.approx(sum(rates.values()), rel=1e-9)
        compared += 1
    assert compared


def test_vm_fleet_agrees_with_the_device_of_its_nodes(vm_fleet: Measured) -> None:
    assert_the_device_moved(vm_fleet, 4 * 32 * MIB)
