"""Checkpoint workloads that cannot be made are refused before anything is written."""

from __future__ import annotations

import pytest

from iolab.loads.checkpoint.layouts import Layout
from iolab.loads.checkpoint.workload import CheckpointJob
from tests.study.studies import faults, load

STUDY = """
format = 1
id = "saves"

[[workload]]
id = "saves"
engine = "checkpoint"
model = "llama3-70b"
"""


def test_what_is_left_out_is_the_published_run() -> None:
    (workload,) = load(STUDY + "saves = 10\n").workloads
    job = CheckpointJob.require_type(workload.job)
    assert (job.layout, job.ranks, job.restore_ranks) == (Layout.ZERO3, 64, 64)
    assert (job.write_bytes, job.read_bytes, workload.repeats) == (32 << 20, 128 << 20, 10)


@pytest.mark.parametrize(
    ("keys", "facts"),
    [
        ('layout = "zero3"\nmodel = "llama3-405b"', ("zero3", "32 pipeline stages")),
        ("ranks = 12", ("ranks = 12", "8 ranks hold one copy")),
        ("restore_ranks = 32", ("restore_ranks = 32", "zero3")),
        ("restore = false\nrank_shift = 8", ("rank_shift = 8", "restore = false")),
        ("rank_shift = 64", ("rank_shift = 64 of 64",)),
        ('model = "gpt-9"', ("gpt-9",)),
        ("ranks = 8192\nreads_in_flight = 4", ("reads_in_flight = 4", "32,768 threads")),
        ('write_size = "1000"', ("1000",)),
    ],
)
def test_what_cannot_be_saved_is_refused_with_its_value(keys: str, facts: tuple[str, ...]) -> None:
    text = STUDY + keys + "\n"
    if "model =" in keys:
        text = text.replace('model = "llama3-70b"\n', "", 1)
    found = [fault.message for fault in faults(text)]
    assert any(all(fact in message for fact in facts) for message in found), found


def test_all_faults_are_told_at_once() -> None:
    found = [fault.message for fault in faults(STUDY + "ranks = 12\nrank_shift = 12\n")]
    assert len(found) >= 2


def test_ranks_that_hosts_cannot_share_are_refused() -> None:
    hosts = "".join(f'\n[[host]]\nid = "h{n}"\nssh = "h{n}"\n' for n in range(3))
    configuration = 'id = "all"\npath = "/mnt"\nhosts = ["h0", "h1", "h2"]\n'
    text = f"{STUDY}[[configuration]]\n{configuration}{hosts}"
    found = [fault.message for fault in faults(text)]
    assert any("ranks = 64" in message and "3 hosts" in message for message in found), found
