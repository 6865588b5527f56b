"""Memory in place of storage: each check fires, keeps still, and at its limits."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from iolab.analysis.checks.bytes import (
    COLD_RESIDENT_SHARE,
    check_buffered_io,
    check_bytes_moved,
    check_cache_hits,
    check_target_in_memory,
    check_unwritten_extents,
)
from iolab.core.run import CacheDropProof, DeviceDelta, ExtentProof
from tests.analysis.checks_on import INDICATIVE, INVALID, VALID, ask, level
from tests.analysis.records import DEVICE, GIB, JOB, WRITES, facts_of, healthy

BUFFERED = replace(JOB, direct=False)
READ_BYTES = 30 * 40_000 * 4096


def cold(resident: int | None, moved: int = READ_BYTES) -> dict[str, object]:
    return {
        "cache_drop": CacheDropProof(True, GIB, resident, ()),  # noqa: FBT003
        "devices": (DeviceDelta(DEVICE, moved, 0, 1, 1),),
    }


def test_a_further_directory_of_a_host_is_judged_by_its_own_facts() -> None:
    """Two configurations on one host: a disk under its name, memory under name and path."""
    facts = {
        "c1": facts_of("c1"),
        "c1 /mnt/m": facts_of("c1", in_memory=True, fs_type="tmpfs", device=None, devices=()),
    }
    assert level(check_target_in_memory, healthy(), facts) is VALID
    assert level(check_target_in_memory, healthy(target_key="c1"), facts) is VALID
    assert level(check_target_in_memory, healthy(target_key="c1 /mnt/m"), facts) is INVALID
    assert level(check_bytes_moved, healthy(), facts) is VALID
    assert level(check_bytes_moved, healthy(target_key="c1 /mnt/m"), facts) is INDICATIVE


def test_buffered_io_is_told() -> None:
    assert level(check_buffered_io, healthy(BUFFERED)) is INDICATIVE
    assert level(check_buffered_io, healthy()) is VALID


def test_direct_reads_and_writes_need_no_proof() -> None:
    assert level(check_cache_hits, healthy()) is None
    assert level(check_cache_hits, healthy(replace(WRITES, direct=False))) is None


@pytest.mark.parametrize(
    ("proof", "expected"),
    [
        (cold(0), VALID),
        (cold(int(COLD_RESIDENT_SHARE * 4 * GIB)), VALID),
        (cold(int(COLD_RESIDENT_SHARE * 4 * GIB) + 1), INVALID),
        (cold(None), INVALID),
        ({"cache_drop": None}, INVALID),
        (cold(0, moved=int(0.97 * READ_BYTES)), INVALID),
    ],
)
def test_buffered_reads_of_small_files_need_proof(
    proof: dict[str, object], expected: object
) -> None:
    assert level(check_cache_hits, healthy(BUFFERED, **proof)) is expected


@pytest.mark.parametrize(("gib", "expected"), [(4, INVALID), (5, INDICATIVE)])
def test_files_larger_than_memory_are_read_in_part_from_it(gib: int, expected: object) -> None:
    job = replace(BUFFERED, file_bytes=gib * GIB)  # four jobs against 16 GiB of memory
    assert level(check_cache_hits, healthy(job, cache_drop=None)) is expected


def test_unknown_memory_is_not_assumed() -> None:
    answer = ask(check_cache_hits, healthy(BUFFERED, cache_drop=None), facts={})
    assert answer.level is INDICATIVE
    assert answer.message.startswith("Could not be checked")


def test_a_target_in_memory_is_no_storage() -> None:
    assert level(check_target_in_memory, healthy()) is VALID
    tmpfs = facts_of(in_memory=True, fs_type="tmpfs", device=None, devices=())
    assert level(check_target_in_memory, healthy(), {"c1": tmpfs}) is INVALID
    ram_disk = facts_of(device="loop0", devices=("loop0",), memory_backed=True)
    assert level(check_target_in_memory, healthy(), {"c1": ram_disk}) is INDICATIVE
    assert level(check_target_in_memory, healthy(), {}) is INDICATIVE


@pytest.mark.parametrize(
    ("proof", "expected"),
    [
        (ExtentProof("fiemap", 4, 4 * GIB, 4 * GIB, 0, 0), VALID),
        (ExtentProof("seek", 4, 4 * GIB, 4 * GIB, 0, 0), VALID),
        (ExtentProof("fiemap", 4, 4 * GIB, 4 * GIB - 4096, 0, 4096), INVALID),
        (ExtentProof("fiemap", 4, 4 * GIB, 4 * GIB - 4096, 4096, 0), INVALID),
        (ExtentProof("blocks", 4, 4 * GIB, 4 * GIB, 0, 0), INDICATIVE),
        (ExtentProof("none", 4, 4 * GIB, 0, 0, 0), INDICATIVE),
        (ExtentProof("fiemap", 0, 0, 0, 0, 0), INDICATIVE),
        (None, INDICATIVE),
    ],
)
def test_what_is_read_was_written(proof: ExtentProof | None, expected: object) -> None:
    assert level(check_unwritten_extents, healthy(extents=proof)) is expected


def test_writes_may_fill_holes() -> None:
    assert level(check_unwritten_extents, healthy(WRITES, extents=None)) is None
