"""Metadata load over ssh: clients of a shared folder work on each other's files, or are refused."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from iolab.core.run import RunRecord, RunStatus
from iolab.loads.metadata.workload import MetadataOperation, operation_runs_of_host
from iolab.store.reader import SessionReader
from tests.fleet.bed import Bed, bed
from tests.processes import run_program

pytestmark = [pytest.mark.e2e, pytest.mark.long]

IOLAB = Path(sys.executable).with_name("iolab")
RANKS = 3
FILES = 40
STUDY = f"""\
format = 1
id = "fleet"
[[workload]]
id = "files"
engine = "metadata"
ranks = {RANKS}
files_per_rank = {FILES}
file_bytes = "1k"
iterations = 2
[method]
settle = "0s"
idle_watch = 0
"""


@pytest.fixture(scope="module")
def sharing() -> Iterator[Bed]:
    """Three hosts whose target is one folder."""
    with bed(3, storage="shared") as made:
        yield made


@pytest.fixture(scope="module")
def shared_session(sharing: Bed, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A session of the study on that fleet."""
    return measured(sharing, tmp_path_factory.mktemp("shared"))


def measured(made: Bed, folder: Path, *words: str) -> Path:
    """A session of the study on that fleet; all must go well."""
    folder.mkdir(exist_ok=True)
    study, session = folder / "fleet.toml", folder / "session"
    study.write_text(STUDY, encoding="utf-8")
    done = iolab("run", study, "--hosts", made.inventory, "--out", session, *words, home=folder)
    assert done.returncode == 0, done.stderr
    return session


def iolab(*words: str | Path, home: Path) -> subprocess.CompletedProcess[str]:
    argv = [str(IOLAB), *(str(word) for word in words)]
    environment = {"HOME": str(home), "PATH": "/usr/bin:/bin:/usr/sbin:/sbin"}
    return run_program(argv, timeout=120, env=environment)


def records(session: Path) -> list[RunRecord]:
    reader = SessionReader(session)
    return [reader.record(*key) for key in sorted(reader.committed_folder_by_run())]


def test_every_client_works_on_what_the_next_one_made(sharing: Bed, shared_session: Path) -> None:
    first, again = records(shared_session)
    for record in (first, again):
        assert record.failure is None
        assert record.host_names == ("c01", "c02", "c03")
        for index, host in enumerate(record.hosts):
            told = json.loads(host.job_file)
            following = record.host_names[(index + 1) % 3]
            assert (told["first_rank"], told["total_ranks"]) == (RANKS * index, 3 * RANKS)
            assert told["shift"] == RANKS
            assert [one["dir"].rpartition("-")[2] for one in told["others"]] == [following]
            for phase in operation_runs_of_host(host):
                trees = phase.operation in (
                    MetadataOperation.TREE_CREATE,
                    MetadataOperation.TREE_REMOVE,
                )
                assert phase.completed == phase.requested == RANKS * (1 if trees else FILES)
                assert (phase.errors, phase.skipped) == ((), 0)
            assert host.cache_drop is not None
            assert "drop_caches" in host.cache_drop.methods
    assert list((sharing.base / "shared").iterdir()) == []
    for name in sharing.specs:
        sharing.wait_until_alone(name)


def test_operations_are_barriers_over_the_fleet(shared_session: Path) -> None:
    (record, _) = records(shared_session)
    ended = 0
    for operation in MetadataOperation:
        phases = [
            one
            for host in record.hosts
            for one in operation_runs_of_host(host)
            if one.operation is operation
        ]
        # All hosts of the bed are one machine: their clocks are the same.
        assert min(one.first_start_real_ns or 0 for one in phases) > ended
        ended = max(one.last_end_real_ns or 0 for one in phases)
        rows = record.intervals.direction == operation
        assert int(record.intervals.ios[rows].sum()) == sum(one.completed for one in phases)
        assert int(record.bins.count[record.bins.direction == operation].sum()) == sum(
            one.completed for one in phases
        )


def test_clients_that_share_nothing_are_refused(fleet: Bed, tmp_path: Path) -> None:
    study, session = tmp_path / "fleet.toml", tmp_path / "session"
    study.write_text(STUDY, encoding="utf-8")
    iolab("run", study, "--hosts", fleet.inventory, "--out", session, home=tmp_path)
    record = records(session)[0]
    assert record.status is RunStatus.FAILED
    assert record.failure is not None
    assert "Host 'c01' does not see the files of 'c02' in" in record.failure
    assert "the target is not shared" in record.failure
    assert [operation_runs_of_host(host) for host in record.hosts] == [(), (), ()]
    own = measured(fleet, tmp_path / "own", "--set", "workload.files.rank_shift=0")
    for record in records(own):
        assert record.failure is None
        for host in record.hosts:
            assert [one.completed for one in operation_runs_of_host(host)][1:5] == [
                RANKS * FILES
            ] * 4
            assert "shift" not in json.loads(host.job_file)
