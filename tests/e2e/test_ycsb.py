"""The real YCSB with our bindings on a RocksDB of its own: loaded, settled, measured, read."""

from __future__ import annotations

import asyncio
import subprocess
from collections.abc import Sequence
from pathlib import Path

import pytest
from msgspec.structs import replace

from iolab.hosts.engine import Command
from iolab.loads.keyvalue.java import YCSB_VERSION, JavaKitName, create_java_kit_builder_of_user
from iolab.loads.keyvalue.workload import KeyDistribution, KeyOperation, ServerKind, YcsbJob
from iolab.loads.keyvalue.ycsb.clients import incomplete_database_faults, parse_rocksdb_contents
from iolab.loads.keyvalue.ycsb.engine import (
    JavaKit,
    YcsbStore,
    build_measurement_command,
    database_fill_command,
    java_kit_of_jars,
    latency_log_names,
    rocksdb_contents_command,
)
from iolab.loads.keyvalue.ycsb.hdr_log import HdrLog, parse_hdr_log
from iolab.loads.keyvalue.ycsb.output import (
    fill_faults,
    intervals_from_hdr_logs,
    parse_ycsb_output,
    ycsb_run_faults,
)
from tests.loads.keyvalue.ycsb.test_output import whole

pytestmark = [pytest.mark.e2e, pytest.mark.long]

READ, UPDATE, INSERT = KeyOperation.READ, KeyOperation.UPDATE, KeyOperation.INSERT
SCAN, RMW = KeyOperation.SCAN, KeyOperation.READ_MODIFY_WRITE
RECORDS = 3000
JOB = YcsbJob(((READ, 0.5), (UPDATE, 0.5)), records=RECORDS, threads=3)
SECONDS = 2


@pytest.fixture(scope="module")
def kit() -> JavaKit:
    folder = asyncio.run(
        create_java_kit_builder_of_user().get_or_build_kit(JavaKitName.YCSB, YCSB_VERSION, print)
    )
    return java_kit_of_jars("java", [str(jar) for jar in sorted(folder.glob("*.jar"))])


@pytest.fixture(scope="module")
def store(kit: JavaKit, tmp_path_factory: pytest.TempPathFactory) -> YcsbStore:
    """A database that two clients' shares were loaded into, one after the other."""
    folder = tmp_path_factory.mktemp("rocks")
    store = YcsbStore(ServerKind.EMBEDDED, database=str(folder / "db"))
    for first, count in ((0, 1000), (1000, RECORDS - 1000)):
        command = database_fill_command(
            JOB, store, kit, str(folder), first=first, count=count, thread_count=4, seconds=60
        )
        assert fill_faults(parse_ycsb_output(*ran(command)), count) == ()
    settled = parse_rocksdb_contents(
        ran(rocksdb_contents_command(JOB, store, kit, str(folder), does_compact_first=True))[0]
    )
    assert incomplete_database_faults(settled, RECORDS) == ()
    return store


def ran(command: Command) -> tuple[bytes, bytes]:
    done = subprocess.run(
        command.argv, cwd=command.cwd, capture_output=True, timeout=120, check=False
    )
    return done.stdout, done.stderr


def measured(
    job: YcsbJob, store: YcsbStore, kit: JavaKit, folder: Path
) -> tuple[tuple[str, ...], Sequence[HdrLog], int]:
    """The faults of a run, its logs, and its whole operations."""
    command = build_measurement_command(
        job, store, kit, str(folder), seconds=SECONDS, log_prefix="cell."
    )
    output = parse_ycsb_output(*ran(command))
    paths = [folder / name for name in latency_log_names(job, "cell.")]
    logs = [parse_hdr_log(path.read_bytes()) for path in paths if path.exists()]
    return ycsb_run_faults(output, job, logs, SECONDS), logs, whole(output.operation_counts)


@pytest.mark.parametrize(
    "job",
    [
        JOB,
        replace(JOB, mix=((READ, 0.5), (RMW, 0.5)), rate_ops_per_s=600),
        replace(
            JOB,
            mix=((READ, 0.6), (INSERT, 0.2), (SCAN, 0.2)),
            distribution=KeyDistribution.ZIPFIAN,
            options=(("maxscanlength", "5"), ("direct_reads", "true"), ("heap", "96m")),
        ),
    ],
    ids=["half-half", "rate", "scans-and-inserts"],
)
def test_every_operation_returns_ok_and_is_in_the_logs(
    job: YcsbJob, store: YcsbStore, kit: JavaKit, tmp_path: Path
) -> None:
    faults, logs, operations = measured(job, store, kit, tmp_path)
    assert faults == ()
    total = 0
    for interval in intervals_from_hdr_logs(logs):
        ios = {part.direction: part.ios for part in interval.directions}
        total += sum(ios.get(one, 0) for one in (READ, UPDATE, INSERT, SCAN)) - ios.get(RMW, 0)
    assert total == operations > 0


def test_nothing_is_unpacked_onto_the_target(
    store: YcsbStore, kit: JavaKit, tmp_path: Path
) -> None:
    """A library that were written there each time would be written back while others measure."""
    command = rocksdb_contents_command(JOB, store, kit, str(tmp_path), does_compact_first=False)
    nowhere = f"-Djava.io.tmpdir={tmp_path}/nowhere"
    argv = [nowhere if word.startswith("-Djava.io.tmpdir") else word for word in command.argv]
    done = subprocess.run(argv, capture_output=True, timeout=60, check=False)
    assert parse_rocksdb_contents(done.stdout) is not None, done.stderr


def test_records_that_are_not_there_are_a_fault(
    store: YcsbStore, kit: JavaKit, tmp_path: Path
) -> None:
    more = replace(JOB, mix=((READ, 1.0),), records=50 * RECORDS)
    faults, _, _ = measured(more, store, kit, tmp_path)
    assert [fault for fault in faults if "found no record" in fault]


def test_an_old_hdrhistogram_of_the_users_own_ycsb_does_no_harm(
    store: YcsbStore, kit: JavaKit, tmp_path: Path
) -> None:
    """Its folder comes after our jars, of which only YCSB's core is left out."""
    (tmp_path / "lib").mkdir()
    core = next(jar for jar in kit.classpath if Path(jar).name.startswith("core-"))
    (tmp_path / "lib" / "core.jar").symlink_to(core)
    own = java_kit_of_jars("java", kit.classpath, user_ycsb_folder=str(tmp_path))
    faults, logs, _ = measured(JOB, store, own, tmp_path)
    assert faults == ()
    assert [log.operation for log in logs] == [READ, UPDATE]
