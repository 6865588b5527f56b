"""Checkpoint workloads that cannot be made are refused before anything is written."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from iolab.core.host import HostFacts
from iolab.core.study import Study
from iolab.loads.checkpoint.layouts import CheckpointLayout
from iolab.loads.checkpoint.study import CheckpointStudyKind
from iolab.loads.checkpoint.workload import CheckpointJob
from iolab.units import format_bytes
from tests.analysis.records import facts_of
from tests.plans import make_plan
from tests.study.studies import faults, load

STUDY = """
format = 1
id = "saves"

[[workload]]
id = "saves"
engine = "checkpoint"
model = "llama3-70b"
"""

SHAPE = "hidden = 4096\nffn = 14336\nheads = 32\nkv_heads = 8\nlayers = 32\n"


def test_a_custom_model_of_a_published_shape_has_the_published_bytes() -> None:
    text = STUDY.replace("llama3-70b", "custom") + SHAPE
    for keys, ranks in (("ranks = 8", 8), ("tensor_parallel = 2\npipeline_parallel = 2", 4)):
        (workload,) = load(text + keys).workloads
        job = CheckpointJob.require_type(workload.job)
        (published,) = load(STUDY.replace("70b", "8b") + "ranks = 8\n").workloads
        size = CheckpointJob.require_type(published.job).checkpoint_files.total_bytes
        assert (job.ranks, job.model_shape.parameter_count) == (ranks, 8_030_261_248)
        assert job.checkpoint_files.total_bytes == pytest.approx(size, rel=1e-4)
        assert job.layout is (CheckpointLayout.ZERO3 if ranks == 8 else CheckpointLayout.MEGATRON)


def test_what_is_left_out_is_the_published_run() -> None:
    (workload,) = load(STUDY + "saves = 10\n").workloads
    job = CheckpointJob.require_type(workload.job)
    assert (job.layout, job.ranks, job.restore_ranks) == (CheckpointLayout.ZERO3, 64, 64)
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
        ("hidden = 4096", ("hidden = 4096", "llama3-70b")),
        ('model = "custom"\nhidden = 4096', ("custom", "no layers")),
        (f'model = "custom"\n{SHAPE}'.replace("heads = 32", "heads = 33"), ("33", "4096")),
        (f'model = "custom"\n{SHAPE}'.replace("kv_heads = 8", "kv_heads = 64"), ("64", "32")),
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


def study_on_hosts(count: int, keys: str = "") -> Study:
    hosts = "".join(
        f'\n[[host]]\nname = "h{number}"\naddress = "h{number}"\npath = "/mnt/t"\n'
        for number in range(count)
    )
    return load(f"{STUDY}{keys}\n{hosts}")


def messages_on(study: Study, facts: dict[str, HostFacts]) -> list[str]:
    found = CheckpointStudyKind().readiness_faults(study, make_plan(study), facts, {})
    return [fault.message for fault in found]


def large(facts: HostFacts) -> HostFacts:
    """With memory for the requests of all its ranks."""
    return replace(facts, memory=replace(facts.memory, total_bytes=1 << 40))


SHARED = {"fs_type": "nfs4", "mount_source": "server:/export", "network": True}


def test_a_shared_file_system_needs_room_for_all_hosts_and_once() -> None:
    """One checkpoint has 978 GB: eight hosts save an eighth of it each."""
    study = study_on_hosts(8)
    names = study.configurations[0].hosts
    checkpoint = 978_400_000_000
    for share, free, expected in (
        (SHARED, 2 * checkpoint, []),
        (SHARED, checkpoint // 2, ["shared by 8 hosts", "64 ranks"]),
    ):
        facts = {name: large(facts_of(name, free_bytes=free, **share)) for name in names}
        found = messages_on(study, facts)
        assert len(found) == bool(expected)
        assert all(text in found[0] for text in (*expected, format_bytes(free)) if expected), found


def test_hosts_with_file_systems_of_their_own_need_room_for_their_ranks() -> None:
    study = study_on_hosts(2, "rank_shift = 0")
    names = study.configurations[0].hosts
    facts = {name: large(facts_of(name, free_bytes=600_000_000_000)) for name in names}
    assert messages_on(study, facts) == []
    facts[names[1]] = large(facts_of(names[1], free_bytes=400_000_000_000))
    (message,) = messages_on(study, facts)
    assert all(text in message for text in ("'h1'", "373 GiB free", "32 ranks")), message


def test_a_restore_by_other_hosts_needs_a_shared_target() -> None:
    for keys, refused in (("", True), ("rank_shift = 0", False), ("restore = false", False)):
        study = study_on_hosts(2, keys)
        facts = {name: large(facts_of(name)) for name in study.configurations[0].hosts}
        facts = {
            name: replace(one, target=replace(one.target, free_bytes=1 << 50))
            for name, one in facts.items()
            if one.target is not None
        }
        found = messages_on(study, facts)
        assert len(found) == refused
        assert all("'/mnt/t' on 'h1'" in message for message in found), found
