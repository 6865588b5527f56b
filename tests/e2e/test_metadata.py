"""Metadata load of a whole session with a real agent: every operation counted, nothing left."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from iolab.core.run import RunStatus
from iolab.loads.metadata.workload import MetadataOperation, operation_runs_of_host
from iolab.store.reader import SessionReader
from tests.e2e.sessions import iolab, write_study
from tests.e2e.targets import xfs_on_loop

pytestmark = [pytest.mark.e2e, pytest.mark.long]

RANKS, FILES, BYTES = 3, 200, 3000
STUDY = f"""
format = 1
id = "files"

[[workload]]
id = "files"
engine = "metadata"
ranks = [1, {RANKS}]
files_per_rank = {FILES}
file_bytes = {BYTES}
iterations = 2

[method]
settle = "0s"
idle_watch = 0
"""


@pytest.fixture(scope="module")
def target() -> Iterator[Path]:
    with xfs_on_loop(512 << 20) as made:
        yield made.path


@pytest.fixture(scope="module")
def session(target: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("metadata")
    iolab("run", write_study(folder, STUDY), "--path", target, "--out", folder / "session")
    return folder / "session"


def test_every_operation_of_every_rank_is_counted(session: Path) -> None:
    reader = SessionReader(session)
    keys = sorted(reader.committed_folder_by_run())
    assert len(keys) == 4
    for key in keys:
        record = reader.record(*key)
        assert (record.status, record.failure) == (RunStatus.DONE, None)
        (host,) = record.hosts
        ranks = dict(record.run.point.axis_values)["ranks"]
        assert isinstance(ranks, int)
        assert [phase.operation for phase in operation_runs_of_host(host)] == list(
            MetadataOperation
        )
        for phase in operation_runs_of_host(host):
            trees = phase.operation in (
                MetadataOperation.TREE_CREATE,
                MetadataOperation.TREE_REMOVE,
            )
            asked = ranks * (1 if trees else FILES)
            assert (phase.completed, phase.errors, phase.skipped) == (asked, (), 0)
            rows = record.intervals.direction == phase.operation
            assert int(record.intervals.ios[rows].sum()) == asked
            assert int(record.bins.count[record.bins.direction == phase.operation].sum()) == asked
            moved = phase.operation in (MetadataOperation.FILE_CREATE, MetadataOperation.FILE_READ)
            assert int(record.intervals.bytes[rows].sum()) == (asked * BYTES if moved else 0)


def test_the_evidence_is_whole(session: Path) -> None:
    reader = SessionReader(session)
    (host,) = reader.record(*min(reader.committed_folder_by_run())).hosts
    assert host.cache_drop is not None
    assert host.cache_drop.methods == ("drop_caches",)
    assert host.engine_version.startswith("iolab-agent ")
    assert host.devices
    assert host.start_real_ns is not None
    assert host.end_real_ns is not None
    assert host.start_real_ns < host.end_real_ns


def test_nothing_is_left_on_the_target(session: Path, target: Path) -> None:
    assert session.exists()
    assert list(target.iterdir()) == []


def test_a_target_with_too_few_inodes_is_refused_before_anything_is_written(
    target: Path, tmp_path: Path
) -> None:
    study = write_study(tmp_path, STUDY)
    sets = ("--set", "workload.files.files_per_rank=1000000", "--set", "workload.files.ranks=100")
    done = iolab("run", study, "--path", target, "--out", tmp_path / "s", *sets, expect=3)
    assert "inodes free, files ranks=100 needs 100000101" in done.stderr
    assert list(target.iterdir()) == []
