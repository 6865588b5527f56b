"""Libraries between a load and the kernel, as agents see them and as stored commands name them."""

from __future__ import annotations

import pytest

from iolab.analysis.checks.libraries import check_preloaded_library
from iolab.core.libraries import (
    LibrarySource,
    LibraryUse,
    LoadedLibrary,
    preloads_in_text,
    preloads_in_texts,
)
from iolab.core.metric import VerdictLevel
from tests.analysis.checks_on import INDICATIVE, INVALID, VALID, ask, level
from tests.analysis.records import healthy
from tests.facts import tells

SHIM = LoadedLibrary("/tmp/libnosync.so", LibrarySource.LD_PRELOAD, exports=("fsync", "fdatasync"))
JEMALLOC = LoadedLibrary(
    "/usr/lib/x86_64-linux-gnu/libjemalloc.so.2",
    LibrarySource.LD_PRELOAD,
    exports=("malloc", "free", "calloc", "posix_memalign", "mallctl"),
)
ASAN = LoadedLibrary(
    "/usr/lib/x86_64-linux-gnu/libasan.so.8",
    LibrarySource.MAPPED,
    exports=("__asan_init", "malloc", "fopen", "pread", "clock_gettime"),
)
UNKNOWN = LoadedLibrary("/opt/x/libhelper.so", LibrarySource.PRELOAD_FILE)
NOT_LOADED = LoadedLibrary("/gone.so", LibrarySource.LD_PRELOAD, is_loaded=False)


def libraries(*found: LoadedLibrary) -> LibraryUse:
    return LibraryUse(processes=1, files=12, spent_ns=1_500_000, libraries=found)


NOT_SYNCING = libraries(SHIM)


@pytest.mark.parametrize(
    ("found", "expected"),
    [
        ((), VALID),
        ((SHIM,), INVALID),
        ((JEMALLOC,), VALID),
        ((ASAN,), VALID),
        ((JEMALLOC, UNKNOWN), INDICATIVE),
        ((NOT_LOADED,), VALID),
        ((UNKNOWN, SHIM, JEMALLOC), INVALID),
    ],
)
def test_a_library_is_judged_by_what_it_replaces(
    found: tuple[LoadedLibrary, ...], expected: VerdictLevel
) -> None:
    assert level(check_preloaded_library, healthy(libraries=libraries(*found))) is expected


def test_the_worst_library_is_named_with_its_functions() -> None:
    answer = ask(check_preloaded_library, healthy(libraries=libraries(JEMALLOC, SHIM)))
    assert tells(answer.message, "/tmp/libnosync.so", "LD_PRELOAD", "fdatasync, fsync")
    assert answer.evidence["functions"] == "fsync, fdatasync"


def test_an_allocator_is_named_and_not_accused() -> None:
    answer = ask(check_preloaded_library, healthy(libraries=libraries(JEMALLOC)))
    assert tells(answer.message, "libjemalloc.so.2", "jemalloc")


def test_a_record_without_libraries_is_not_judged() -> None:
    assert ask(check_preloaded_library, healthy()).level is None


@pytest.mark.parametrize(
    ("text", "paths"),
    [
        ("LD_PRELOAD=/x/libnofsync.so fio job.fio", ["/x/libnofsync.so"]),
        ("mpirun -x LD_PRELOAD=/a.so:/b.so -n 8 dlio_benchmark", ["/a.so", "/b.so"]),
        ('"env": {"LD_PRELOAD": "/opt/fadvise_noop.so"}', ["/opt/fadvise_noop.so"]),
        ("export LD_PRELOAD='/x/one.so /x/two.so'; fio", ["/x/one.so", "/x/two.so"]),
        ("LD_AUDIT=/x/audit.so fio", ["/x/audit.so"]),
        ("LD_PRELOAD=$PRELOAD fio", []),
        ("/usr/bin/eatmydata fio job.fio", ["libeatmydata.so"]),
        ("fio --name=eatmydata --rw=read", []),
        ("MY_LD_PRELOAD=/x.so fio", []),
        ("fio --name=a --filename=/mnt/LD_PRELOAD", []),
    ],
)
def test_commands_name_their_preloads(text: str, paths: list[str]) -> None:
    assert [library.path for library in preloads_in_text(text)] == paths


def test_a_name_says_what_a_library_replaces() -> None:
    text = "LD_PRELOAD=/x/libfadvise_noop.so:/x/libjemalloc.so.2:/x/plain.so fio"
    advice, allocator, plain = preloads_in_texts([text, text])
    assert advice.exports == ("posix_fadvise", "posix_fadvise64")
    assert "mallctl" in allocator.exports
    assert plain.exports == ()


def test_a_long_text_is_read_in_a_moment() -> None:
    assert len(preloads_in_text("LD_PRELOAD=/x.so " * 100_000)) == 1
    assert len(preloads_in_text("".join(f"LD_PRELOAD=/{n}.so " for n in range(10_000)))) == 32
