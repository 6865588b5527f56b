"""Real YCSB on databases inside of it, as a user runs it; needs Java, and Maven the first time.

The oracle of latencies is HdrHistogram's own Python port, on the logs as YCSB wrote them.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from iolab.model.key_value import KeyOperation
from iolab.model.run import RunRecord
from iolab.store.reader import SessionReader
from tests.e2e.hdr_oracle import assert_agrees
from tests.e2e.left import ours_on
from tests.e2e.sessions import iolab, result_of, shown, write_study
from tests.e2e.targets import xfs_on_loop

pytestmark = pytest.mark.e2e

READ, UPDATE = KeyOperation.READ, KeyOperation.UPDATE
WHOLE = KeyOperation.READ_MODIFY_WRITE

STUDY = """
format = 1
id = "embedded"
title = "YCSB without a server"
question = "Does YCSB run anywhere?"

[server]
kind = "embedded"

[[workload]]
id = "a"
engine = "ycsb"
mix = { read = 0.5, update = 0.5 }
records = 20000
threads = 4

[[workload]]
id = "f"
engine = "ycsb"
mix = { read = 0.5, read_modify_write = 0.5 }
records = 20000
threads = 4
rate = 400

[method]
warmup = "1s"
runtime = "3s"
settle = "0s"
"""


@pytest.fixture(scope="module")
def session(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Both workloads on an XFS, which is left as it was."""
    folder = tmp_path_factory.mktemp("ycsb")
    with xfs_on_loop(2 << 30) as target:
        out = folder / "session"
        iolab("run", write_study(folder, STUDY), "--path", target.path, "--out", out)
        assert ours_on(target.path) == []
        yield out


def record_of(session: Path, workload: str) -> RunRecord:
    reader = SessionReader(session)
    (digest,) = (result.digest for result in reader.results() if result.workload == workload)
    return reader.record(digest, 1)


@pytest.mark.parametrize(
    ("workload", "operations"), [("a", (READ, UPDATE)), ("f", (READ, UPDATE, WHOLE))]
)
def test_latencies_are_those_of_ycsb_own_logs(
    session: Path, workload: str, operations: tuple[KeyOperation, ...]
) -> None:
    record = record_of(session, workload)
    (host,) = record.hosts
    assert host.key_value is not None
    counts = {one.operation: one for one in host.key_value.counts}
    for operation in operations:
        assert assert_agrees(record, operation) == counts[operation].done
        assert counts[operation].failed == 0
    assert host.key_value.faults == ()
    assert host.key_value.copied_by == "reflink"
    assert host.key_value.start is not None
    assert host.key_value.start.pending_bytes == 0
    assert host.cache is not None
    assert host.cache.resident_bytes_after == 0


def test_a_rate_is_kept_and_response_times_stand_beside_service_times(session: Path) -> None:
    metrics = result_of(shown(session), "f")["metrics"]
    assert metrics["ops_per_s"]["value"] == pytest.approx(400, rel=0.1)
    served, intended = (
        metrics[f"{word}_lat_ns_p50"]["value"] for word in ("read", "intended_read")
    )
    assert 0 < served <= intended * 1.05


def test_a_read_modify_write_is_one_operation(session: Path) -> None:
    metrics = result_of(shown(session), "f")["metrics"]
    read, update, both = (
        metrics[f"{word}_ops_per_s"]["value"] for word in ("read", "update", "read_modify_write")
    )
    assert update == pytest.approx(both, rel=0.01)
    assert metrics["ops_per_s"]["value"] == pytest.approx(read + update - both, rel=0.01)


def test_the_window_is_as_long_as_asked_and_holds_no_start(session: Path) -> None:
    for workload in ("a", "f"):
        record = record_of(session, workload)
        (host,) = record.hosts
        assert host.start_real_ns is not None
        assert host.end_real_ns is not None
        assert host.end_real_ns - host.start_real_ns >= 4e9
        # Java needs longer to start than the first operation took to come.
        assert host.start_real_ns > record.started_real_ns
