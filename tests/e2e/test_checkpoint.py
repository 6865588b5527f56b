"""Checkpoints of whole sessions with a real agent: files, bytes and times held against truths."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from iolab.core.run import RunStatus
from iolab.loads.checkpoint.layouts import CheckpointLayout, plan_checkpoint
from iolab.loads.checkpoint.models import MODELS
from iolab.loads.checkpoint.workload import PhaseName, phase_run_of_host
from iolab.store.reader import SessionReader
from tests.e2e.sessions import iolab, write_study
from tests.e2e.targets import Target, device_bytes, xfs_on_loop

pytestmark = [pytest.mark.e2e, pytest.mark.long]

SHRINK = 1024
# What the file system itself reads and writes: metadata and log.
METADATA_BYTES = 16 << 20

STUDY = """
format = 1
id = "saves"

[[workload]]
id = "saves"
engine = "checkpoint"
model = "llama3-8b"
shrink = 1024
saves = 1
write_size = "1m"
read_size = "1m"
KEYS

[method]
settle = "0s"
idle_watch = 0
drop_caches = true
"""


@pytest.fixture(scope="module")
def target() -> Iterator[Target]:
    with xfs_on_loop(1 << 30) as made:
        yield made


@pytest.mark.parametrize(
    ("keys", "layout", "durable"),
    [
        ("", CheckpointLayout.ZERO3, "fsync"),
        (
            'durable = "publish"\ndirect = false\nwrites_in_flight = 2',
            CheckpointLayout.ZERO3,
            "publish",
        ),
        ('layout = "dcp"\nrestore_ranks = 3', CheckpointLayout.DCP, "fsync"),
        ('layout = "megatron"\nranks = 4\nrank_shift = 3', CheckpointLayout.MEGATRON, "fsync"),
    ],
)
def test_a_checkpoint_is_saved_whole_and_restored_from_the_device(
    target: Target, tmp_path: Path, keys: str, layout: CheckpointLayout, durable: str
) -> None:
    study, out = write_study(tmp_path, STUDY.replace("KEYS", keys)), tmp_path / "session"
    before = device_bytes(target.device)
    iolab("run", study, "--path", target.path, "--out", out)
    after = device_bytes(target.device)

    reader = SessionReader(out)
    (key,) = reader.committed_folder_by_run()
    record = reader.record(*key)
    assert (record.status, record.failure) == (RunStatus.DONE, None)
    (host,) = record.hosts
    ranks = 4 if layout is CheckpointLayout.MEGATRON else 8
    checkpoint = plan_checkpoint(MODELS["llama3-8b"], layout, ranks, SHRINK)

    save, restore = (phase_run_of_host(host, phase) for phase in PhaseName)
    assert save is not None
    assert restore is not None
    assert [rank.bytes for rank in save.ranks] == [
        checkpoint.bytes_of_rank(rank) for rank in range(ranks)
    ]
    assert sum(rank.files for rank in save.ranks) == checkpoint.file_count
    assert all(rank.sync_ns > 0 for rank in save.ranks)
    assert all((rank.rename_ns > 0) == (durable == "publish") for rank in save.ranks)
    wanted = checkpoint.total_bytes
    if layout is CheckpointLayout.DCP:
        assert len(restore.ranks) == 3
        wanted = 8 * sum(item.count * item.size_bytes for item in checkpoint.tensor_groups)
    assert sum(rank.bytes for rank in restore.ranks) == wanted
    # The device saw all that was saved and restored, and little beside.
    assert wanted <= after[0] - before[0] <= 1.05 * wanted + METADATA_BYTES
    assert checkpoint.total_bytes <= after[1] - before[1]
    assert after[1] - before[1] <= 1.05 * checkpoint.total_bytes + METADATA_BYTES
    # All that was read was held against what had been saved.
    verified = host.totals.generator.verify if host.totals and host.totals.generator else None
    assert verified is not None
    assert verified.checked > 0
    assert (verified.torn, verified.stale, verified.misplaced, verified.corrupt) == (0, 0, 0, 0)
    assert not list(target.path.glob("iolab*"))

    iolab("report", out, "--html", tmp_path / "page.html", "--md", tmp_path / "brief.md")
    appendix = (tmp_path / "brief-appendix.md").read_text(encoding="utf-8")
    assert "Restore rate" in appendix
