"""Ranks over hosts: everybody's files are worked on once, by whom the shift says."""

from __future__ import annotations

import pytest

from iolab.loads.metadata.native import SHIFTED, phase_request, ranks_by_host
from iolab.loads.metadata.workload import METADATA_ENGINE, MetadataJob, MetadataOperation


def job(ranks: int, shift: int) -> MetadataJob:
    return MetadataJob(METADATA_ENGINE, ranks, 10, shift)


@pytest.mark.parametrize("hosts", [1, 2, 3, 7])
@pytest.mark.parametrize("ranks", [1, 4, 5])
@pytest.mark.parametrize("shift", [0, 1, 4, 5, 6, 13, 1000])
def test_the_makers_are_those_whose_ranks_the_shift_leads_to(
    hosts: int, ranks: int, shift: int
) -> None:
    total = ranks * hosts
    for share in ranks_by_host(job(ranks, shift), hosts):
        mine = range(share.first_rank, share.first_rank + share.ranks)
        expected = {(rank + shift) % total // ranks for rank in mine}
        assert set(share.file_creator_host_indexes) == expected
        assert set(share.other_file_creator_indexes) == expected - {share.host_index}
        assert share.total_ranks == total


def test_ranks_count_over_the_hosts_in_their_order() -> None:
    assert [share.first_rank for share in ranks_by_host(job(4, 0), 3)] == [0, 4, 8]


def test_only_operations_on_files_that_are_there_are_shifted() -> None:
    (first, _) = ranks_by_host(job(4, 4), 2)
    dirs = {0: "/t/a", 1: "/t/b"}
    for operation in MetadataOperation:
        asked = phase_request(job(4, 4), first, dirs, operation, iteration=7)
        assert ("shift" in asked) == ("others" in asked) == (operation in SHIFTED)
        assert asked["phase"] == operation.display_name
        own = phase_request(job(4, 4), first, dirs, operation, iteration=7, is_cleanup=True)
        assert "shift" not in own


def test_a_shift_over_all_ranks_is_none() -> None:
    (only,) = ranks_by_host(job(4, 8), 1)
    asked = phase_request(job(4, 8), only, {0: "/t/a"}, MetadataOperation.FILE_STAT, iteration=1)
    assert "shift" not in asked
    assert asked["dir"] == "/t/a"


def test_where_ranks_made_unlike_numbers_of_files_each_is_told_what_it_finds() -> None:
    timed = MetadataJob(METADATA_ENGINE, 2, 10, 1, phase_s=3.0)
    (first, _) = ranks_by_host(timed, 2)
    dirs, made = {0: "/t/a", 1: "/t/b"}, {0: (4, 5), 1: (6, 7)}
    seen = phase_request(
        timed, first, dirs, MetadataOperation.FILE_STAT, iteration=1, created_file_counts=made
    )
    assert (seen["files"], seen["runtime_s"]) == ([5, 6], 3.0)
    own = phase_request(
        timed,
        first,
        dirs,
        MetadataOperation.FILE_REMOVE,
        iteration=1,
        created_file_counts=made,
        is_cleanup=True,
    )
    assert own["files"] == [4, 5]
    assert "runtime_s" not in own
    tree = phase_request(timed, first, dirs, MetadataOperation.TREE_CREATE, iteration=1)
    assert not {"files", "runtime_s"} & set(tree)


def test_a_client_is_asked_for_forty_thousand_files_whatever_its_time() -> None:
    timed = MetadataJob(METADATA_ENGINE, 4, 100_000, 4, phase_s=5.0)
    (only,) = ranks_by_host(timed, 1)
    create = phase_request(timed, only, {0: "/t/a"}, MetadataOperation.FILE_CREATE, iteration=1)
    assert (create["files_least"], create["runtime_s"]) == (10_000, 5.0)
    others = (phase_request(timed, only, {0: "/t/a"}, it, iteration=1) for it in SHIFTED)
    assert not any("files_least" in asked for asked in others)
    few = MetadataJob(METADATA_ENGINE, 3, 10, 0, phase_s=5.0)
    assert few.min_files_per_rank == 10
