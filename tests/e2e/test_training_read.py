"""Training-read load of whole sessions with a real agent: bytes, epochs and steps are true."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from iolab.core.run import RunRecord, RunStatus
from iolab.loads.training.workload import TrainingHostDetails, training_details_of_host
from iolab.store.reader import SessionReader
from tests.e2e.sessions import iolab, write_study
from tests.e2e.targets import Target, device_bytes, xfs_on_loop

pytestmark = [pytest.mark.e2e, pytest.mark.long]

FILES, SAMPLE, BATCH, COMPUTE_MS = 96, 250_000, 4, 100
PADDED = -(-SAMPLE // 4096) * 4096
# What the file system itself reads: metadata.
METADATA_BYTES = 8 << 20

STUDY = f"""
format = 1
id = "training"

[[workload]]
id = "samples"
engine = "training-read"
dataset = "custom"
accelerators = 2
sample_bytes = {SAMPLE}
batch = {BATCH}
compute = "{COMPUTE_MS}ms"
files = {FILES}
KEYS

[method]
warmup = "1s"
runtime = "4s"
settle = "0s"
idle_watch = 0
generator_limit = false
"""


@pytest.fixture(scope="module")
def target() -> Iterator[Target]:
    with xfs_on_loop(512 << 20) as made:
        yield made


def run_study(folder: Path, target: Target, keys: str) -> tuple[RunRecord, TrainingHostDetails]:
    study, out = write_study(folder, STUDY.replace("KEYS", keys)), folder / "session"
    iolab("run", study, "--path", target.path, "--out", out)
    reader = SessionReader(out)
    (key,) = reader.committed_folder_by_run()
    record = reader.record(*key)
    assert (record.status, record.failure) == (RunStatus.DONE, None)
    run = training_details_of_host(record.hosts[0])
    assert run is not None
    return record, run


def test_each_epoch_reads_each_sample_once(target: Target, tmp_path: Path) -> None:
    before = device_bytes(target.device)
    record, run = run_study(tmp_path, target, "")
    after = device_bytes(target.device)
    assert (run.accelerators, run.samples) == (2, FILES)
    assert run.steps_per_epoch == FILES // 2 // BATCH
    # Whole samples of whole batches, each padded to what direct I/O takes.
    first = run.first_epoch
    assert first.batches == FILES // BATCH
    assert first.bytes == FILES * SAMPLE
    assert first.steps == 2 * (run.steps_per_epoch - 1)
    assert 0 <= run.steps_most - run.steps_least <= 1
    read = int(record.intervals.bytes[record.intervals.direction == 0].sum())
    assert read >= FILES * PADDED
    assert read <= after[0] - before[0] <= read + METADATA_BYTES + FILES * PADDED
    # Computing is the least that a step takes, and no epoch has fewer steps than there was time.
    assert first.step_ns >= first.steps * COMPUTE_MS * 1_000_000
    assert not list(target.path.glob("iolab*"))

    out = tmp_path / "session"
    iolab("report", out, "--html", tmp_path / "page.html", "--md", tmp_path / "brief.md")
    appendix = (tmp_path / "brief-appendix.md").read_text(encoding="utf-8")
    assert "Barrier wait" in appendix


def test_sizes_that_differ_fill_the_files(target: Target, tmp_path: Path) -> None:
    keys = 'sample_stdev = 100000\nbarrier = false\nread_size = "128k"'
    _, run = run_study(tmp_path, target, keys)
    # As many as fit, of the mean size.
    assert 0.8 * FILES <= run.samples <= 1.2 * FILES
    assert run.first_epoch.bytes <= FILES * PADDED
    assert run.later_epochs.steps > 0
