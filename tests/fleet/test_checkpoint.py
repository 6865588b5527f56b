"""Checkpoints over ssh: hosts of a shared folder restore each other's files, or are refused."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from iolab.core.metric import VerdictLevel
from iolab.core.run import RunStatus
from iolab.loads.checkpoint.layouts import CheckpointLayout, plan_checkpoint
from iolab.loads.checkpoint.models import MODELS
from iolab.loads.checkpoint.workload import PhaseName, phase_run_of_host
from iolab.store.reader import SessionReader
from tests.fleet.bed import Bed, bed
from tests.processes import run_program

pytestmark = [pytest.mark.e2e, pytest.mark.long]

IOLAB = Path(sys.executable).with_name("iolab")
SHRINK = 4096
STUDY = f"""\
format = 1
id = "fleet"

[[workload]]
id = "zero3"
engine = "checkpoint"
shrink = {SHRINK}
saves = 1
write_size = "1m"
read_size = "1m"
ranks = 12
KEYS

[method]
settle = "0s"
idle_watch = 0
drop_caches = true
"""
RESHARDED = 'layout = "dcp"\nrestore_ranks = 6'


@pytest.fixture(scope="module")
def sharing() -> Iterator[Bed]:
    """Three hosts whose target is one folder."""
    with bed(3, storage="shared") as made:
        yield made


def iolab(made: Bed, folder: Path, keys: str = "", *words: str) -> subprocess.CompletedProcess[str]:
    study = folder / "fleet.toml"
    study.write_text(STUDY.replace("KEYS", keys), encoding="utf-8")
    argv = [IOLAB, "run", study, "--hosts", made.inventory, "--out", folder / "session", *words]
    environment = {"HOME": str(folder), "PATH": "/usr/bin:/bin:/usr/sbin:/sbin"}
    return run_program(list(map(str, argv)), timeout=120, env=environment)


@pytest.mark.parametrize(
    ("keys", "layout"), [("", CheckpointLayout.ZERO3), (RESHARDED, CheckpointLayout.DCP)]
)
def test_every_host_restores_what_another_one_saved(
    sharing: Bed, tmp_path: Path, keys: str, layout: CheckpointLayout
) -> None:
    done = iolab(sharing, tmp_path, keys)
    assert done.returncode == 0, done.stderr
    reader = SessionReader(tmp_path / "session")
    (key,) = reader.committed_folder_by_run()
    record = reader.record(*key)
    assert (record.status, record.failure) == (RunStatus.DONE, None)
    checkpoint = plan_checkpoint(MODELS["llama3-8b"], layout, 12, SHRINK)
    saved = []
    for place, host in enumerate(record.hosts):
        save, restore = (phase_run_of_host(host, phase) for phase in PhaseName)
        assert save is not None
        assert restore is not None
        assert [rank.rank for rank in save.ranks] == list(range(4 * place, 4 * place + 4))
        readers = 2 if layout is CheckpointLayout.DCP else 4
        assert [rank.rank for rank in restore.ranks] == list(
            range(readers * place, readers * place + readers)
        )
        assert sum(rank.bytes for rank in restore.ranks) > 0
        # Nothing but what the other host saved in this run passes for it.
        verified = host.totals.generator.verify if host.totals and host.totals.generator else None
        assert verified is not None
        assert verified.checked > 0
        assert (verified.stale, verified.misplaced, verified.corrupt) == (0, 0, 0)
        saved.append(sum(rank.bytes for rank in save.ranks))
    assert sum(saved) == checkpoint.total_bytes
    (result,) = reader.results()
    levels = {check.code: check.level for check in result.verdict.checks}
    for code in ("ranks-missing", "engine-errors", "verify-mismatch", "totals-disagree"):
        assert levels[code] is VerdictLevel.VALID, code
    assert list((sharing.base / "shared").iterdir()) == []
    for name in sharing.specs:
        sharing.wait_until_alone(name)


def test_hosts_with_targets_of_their_own_restore_what_they_saved(
    fleet: Bed, tmp_path: Path
) -> None:
    refused = iolab(fleet, tmp_path)
    assert refused.returncode != 0
    assert "does not see the files of 'c02'" in refused.stderr
    (tmp_path / "own").mkdir()
    done = iolab(fleet, tmp_path / "own", "rank_shift = 0")
    assert done.returncode == 0, done.stderr


def test_ranks_that_do_not_fit_the_hosts_are_refused(sharing: Bed, tmp_path: Path) -> None:
    refused = iolab(sharing, tmp_path, "", "--set", "workload.zero3.ranks=8")
    assert refused.returncode == 2
    assert "ranks = 8" in refused.stderr
    assert "3 hosts" in refused.stderr
    assert list((sharing.base / "shared").iterdir()) == []
