"""Files and bytes of the published models and layouts, against figures worked out apart."""

from __future__ import annotations

from collections import Counter
from itertools import pairwise

import pytest

from iolab.core.engine import EngineName
from iolab.loads.checkpoint.layouts import CheckpointLayout, plan_checkpoint
from iolab.loads.checkpoint.models import MODELS
from iolab.loads.checkpoint.placement import (
    other_client_indexes_to_restore_from,
    rank_work_of_client,
)
from iolab.loads.checkpoint.workload import CHECKPOINT_ENGINE, CheckpointJob, PhaseName

GIB = 1 << 30
MIB = 1 << 20


@pytest.mark.parametrize(
    ("model", "ranks", "files", "parameters", "gib"),
    [
        ("llama3-8b", 8, 16, 8.030e9, 104.70452),
        ("llama3-70b", 64, 128, 69.883e9, 911.21213),
        ("llama3-405b", 512, 1544, 405.853e9, 5292.24872),
        ("llama3-1t", 1024, 2072, 1183.035e9, 15426.58926),
    ],
)
def test_a_published_checkpoint_has_the_published_files_and_bytes(
    model: str, ranks: int, files: int, parameters: float, gib: float
) -> None:
    shape = MODELS[model]
    checkpoint = plan_checkpoint(shape, CheckpointLayout(shape.layout), shape.ranks, 1)
    assert (shape.ranks, checkpoint.file_count) == (ranks, files)
    assert shape.parameter_count == pytest.approx(parameters, rel=1e-4)
    # What published rows call GB are GiB, told to seven digits.
    assert checkpoint.total_bytes / GIB == pytest.approx(gib, abs=5e-6)
    names = [file.name for own in checkpoint.files_by_rank for file in own]
    assert len(set(names)) == files
    numbers = [file.number for own in checkpoint.files_by_rank for file in own]
    assert numbers == list(range(files))


@pytest.mark.parametrize(
    ("model", "of_model", "of_optimizer"),
    [
        ("llama3-8b", 2_007_565_312, 12_045_637_632),
        ("llama3-70b", 2_184_120_320, 13_103_482_368),
    ],
)
def test_each_rank_of_zero3_has_two_files(model: str, of_model: int, of_optimizer: int) -> None:
    shape = MODELS[model]
    checkpoint = plan_checkpoint(shape, CheckpointLayout.ZERO3, shape.ranks, 1)
    sizes = {tuple(file.size_bytes for file in own) for own in checkpoint.files_by_rank}
    assert sizes == {(of_model, of_optimizer)}
    assert checkpoint.files_by_rank[0][0].name == "zero_pp_rank_0_mp_rank_0_model_states.pt"


@pytest.mark.parametrize(
    ("model", "layer", "embedding", "optimizer", "least", "most", "files"),
    [
        (
            "llama3-405b",
            796_983_296,
            525_336_576,
            9_513_171_840,
            2_390_949_888,
            3_713_269_760,
            {5: 16, 4: 240 - 8, 3: 8},
        ),
        (
            "llama3-1t",
            2_297_744_064,
            829_559_808,
            13_865_244_924,
            4_595_488_128,
            5_425_099_680,
            {3: 8, 2: 496, 4: 8},
        ),
    ],
)
def test_megatron_has_layers_of_the_first_copy_and_an_optimizer_file_a_rank(
    model: str,
    layer: int,
    embedding: int,
    optimizer: int,
    least: int,
    most: int,
    files: dict[int, int],
) -> None:
    shape = MODELS[model]
    checkpoint = plan_checkpoint(shape, CheckpointLayout.MEGATRON, shape.ranks, 1)
    first, others = (
        checkpoint.files_by_rank[: shape.ranks_per_model_copy],
        checkpoint.files_by_rank[shape.ranks_per_model_copy :],
    )
    assert {own[-1].size_bytes for own in checkpoint.files_by_rank} == {optimizer}
    assert {len(own) for own in others} == {1}
    assert first[0][0].size_bytes == embedding
    assert first[8][0].size_bytes == layer
    models = [sum(file.size_bytes for file in own[:-1]) for own in first]
    assert (min(models), max(models)) == (least, most)
    assert Counter(len(own) - 1 for own in first) == files


def test_tensors_of_a_layer_are_the_published_ones() -> None:
    of = {
        ("llama3-8b", 8): (1024, 6_291_456, 4_194_304, 1024, 29_360_128, 14_680_064),
        ("llama3-405b", 1): (32_768, 75_497_472, 67_108_864, 32_768, 436_207_616, 218_103_808),
        ("llama3-1t", 1): (51_744, 222_809_664, 167_340_096, 51_744, 1_271_660_544, 635_830_272),
    }
    for (model, shards), sizes in of.items():
        assert (
            tuple(2 * count for count in MODELS[model].layer_tensor_elements_per_rank(shards))
            == sizes
        )


def test_a_shrunk_checkpoint_keeps_its_files() -> None:
    checkpoint = plan_checkpoint(MODELS["llama3-8b"], CheckpointLayout.ZERO3, 8, 64)
    assert checkpoint.file_count == 16
    assert {checkpoint.bytes_of_rank(rank) for rank in range(8)} == {219_581_296}


@pytest.mark.parametrize("model", sorted(MODELS))
def test_dcp_has_a_file_a_rank_and_metadata(model: str) -> None:
    shape = MODELS[model]
    checkpoint = plan_checkpoint(shape, CheckpointLayout.DCP, shape.ranks, 1)
    assert checkpoint.file_count == shape.ranks + 1
    assert (
        sum(item.count * item.size_bytes for item in checkpoint.tensor_groups)
        == checkpoint.files_by_rank[1][0].size_bytes
    )
    published = plan_checkpoint(shape, CheckpointLayout(shape.layout), shape.ranks, 1)
    # Without the vectors that the published optimizer has besides.
    assert checkpoint.total_bytes == pytest.approx(published.total_bytes, rel=1e-4)


def job(**changes: object) -> CheckpointJob:
    values: dict[str, object] = {
        "engine": EngineName(CHECKPOINT_ENGINE),
        "model": "llama3-8b",
        "layout": CheckpointLayout.ZERO3,
        "ranks": 8,
        "restore_ranks": 8,
        "shrink": 1024,
    }
    return CheckpointJob(**{**values, **changes})  # type: ignore[arg-type]


@pytest.mark.parametrize("clients", [1, 2, 4, 8])
def test_each_file_is_restored_once_and_by_another_host(clients: int) -> None:
    restored = [
        (client, read)
        for client in range(clients)
        for work in rank_work_of_client(job(), PhaseName.RESTORE, clients, client)
        for read in work.files
    ]
    assert sorted(read.file.number for _, read in restored) == list(range(16))
    if clients > 1:
        assert all(client != read.owner_client_index for client, read in restored)
    else:
        assert other_client_indexes_to_restore_from(job(), 1, 0) == ()


@pytest.mark.parametrize(("readers", "clients"), [(4, 1), (4, 2), (3, 1), (12, 4), (1, 1), (64, 2)])
def test_other_ranks_restore_each_byte_once(readers: int, clients: int) -> None:
    asked = job(layout=CheckpointLayout.DCP, restore_ranks=readers)
    parts: dict[int, list[tuple[int, int]]] = {}
    for client in range(clients):
        for work in rank_work_of_client(asked, PhaseName.RESTORE, clients, client):
            for read in work.files:
                assert read.part_count == readers
                parts.setdefault(read.file.number, []).append((read.first_part, read.end_part))
    assert len(parts) == 8
    for covered in parts.values():
        covered.sort()
        assert (covered[0][0], covered[-1][1]) == (0, readers)
        assert all(one[1] == other[0] for one, other in pairwise(covered))


def test_memory_and_space_are_those_of_the_fullest_host() -> None:
    assert job(shrink=1).in_flight_bytes_max_per_client(1) == 8 * 4 * 128 * MIB
    assert job(shrink=1).largest_client_space_bytes(8) == 2_007_565_312 + 12_045_637_632
    large = job(
        model="llama3-405b",
        layout=CheckpointLayout.MEGATRON,
        ranks=512,
        restore_ranks=512,
        shrink=1,
    )
    # The hosts of the first copy have its layers besides.
    assert large.largest_client_space_bytes(64) > 1.2 * 8 * 9_513_171_840
