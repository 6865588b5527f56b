"""Libraries between a load and its kernel: what agents see of them, and what commands name."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterable, Mapping
from enum import StrEnum
from typing import Annotated, Final

from msgspec import Meta

from iolab.core import limits
from iolab.record import Record

_Name = Annotated[str, Meta(max_length=limits.WORD_CHARACTERS_MAX)]
_Path = Annotated[str, Meta(min_length=1, max_length=limits.PATH_CHARACTERS_MAX)]

_SANITIZERS: Final = {
    "__asan_init": "AddressSanitizer",
    "__hwasan_init": "HWAddressSanitizer",
    "__tsan_init": "ThreadSanitizer",
    "__msan_init": "MemorySanitizer",
    "__lsan_init": "LeakSanitizer",
    "__ubsan_handle_add_overflow": "UndefinedBehaviorSanitizer",
}
_ALLOCATORS: Final = {
    "mallctl": "jemalloc",
    "tc_malloc": "tcmalloc",
    "mi_malloc": "mimalloc",
    "rpmalloc": "rpmalloc",
}

_SYNC: Final = ("fsync", "fdatasync", "sync", "msync", "open", "open64")
_CLOCKS: Final = ("clock_gettime", "gettimeofday", "time", "nanosleep")
_KNOWN_BY_NAME: Final[tuple[tuple[str, tuple[str, ...]], ...]] = (
    (r"eatmydata", _SYNC),
    (r"faketime", _CLOCKS),
    (r"jemalloc", ("malloc", "mallctl")),
    (r"tcmalloc", ("malloc", "tc_malloc")),
    (r"mimalloc", ("malloc", "mi_malloc")),
    (r"(?:lib|\.)asan", ("__asan_init",)),
    (r"(?:lib|\.)tsan", ("__tsan_init",)),
    (r"(?:lib|\.)msan", ("__msan_init",)),
    (r"(?:lib|\.)lsan", ("__lsan_init",)),
    (r"(?:lib|\.)ubsan", ("__ubsan_handle_add_overflow",)),
    (r"f?data_?sync|f_?sync|no_?sync|sync_?(?:noop|stub|off)", ("fsync", "fdatasync")),
    (r"fadvise|fadv", ("posix_fadvise", "posix_fadvise64")),
    (r"o_?direct|no_?direct|openflags", ("open", "open64")),
    (r"clock_?gettime|gettimeofday|clockskew|slowclock|fastclock", _CLOCKS[:2]),
)
"""What libraries replace that nobody can look into, by what their files' names say."""

_ASSIGNMENT: Final = re.compile(
    r"(?<![A-Za-z0-9_])(LD_PRELOAD|LD_AUDIT)[\"']?\s*[=:,]\s*"
    r"(?:\"([^\"\n]{1,4096})\"|'([^'\n]{1,4096})'|([^\s\"';&|,}]{1,4096}))"
)
_WRAPPER: Final = re.compile(r"(?:^|[\s/;&|])(eatmydata|faketime)\s+(?:-\S+\s+)*[^\s-]")
_NAMES_MAX: Final = 32


class LibrarySource(StrEnum):
    """How a library came into a process."""

    LD_PRELOAD = "LD_PRELOAD"
    LD_AUDIT = "LD_AUDIT"
    PRELOAD_FILE = "/etc/ld.so.preload"
    MAPPED = "mapped"
    PROGRAM = "program"


class LoadedLibrary(Record):
    """A library that stands, or may stand, between a load and the kernel.

    `exports` are functions of the C library and of libaio and liburing that it defines itself, and
    those by which allocators and sanitizers are known. The loader leaves out what it cannot load:
    then `is_loaded` is false. `fault` says why its symbols could not be read.
    """

    path: _Path
    source: LibrarySource
    is_loaded: bool = True
    exports: Annotated[tuple[_Name, ...], Meta(max_length=limits.LIBRARY_EXPORTS_MAX)] = ()
    fault: _Name | None = None


class LibraryUse(Record):
    """What an agent saw of the libraries of a load's processes; `spent_ns` is what its looks took.

    `files` are the different files that the `processes` had mapped as code.
    """

    processes: Annotated[int, Meta(ge=0, le=limits.LISTED_MAX)]
    files: Annotated[int, Meta(ge=0, le=limits.LISTED_MAX)]
    spent_ns: Annotated[int, Meta(ge=0, le=limits.NUMBER_MAX)]
    libraries: Annotated[tuple[LoadedLibrary, ...], Meta(max_length=limits.LIBRARIES_MAX)] = ()


class InterposerKind(StrEnum):
    """What a library is, as far as the result depends on it."""

    REPLACES = "replaces"
    """It has functions of its own in the place of those that reach the storage or the clocks."""
    UNKNOWN = "unknown"
    """It was loaded before all others, and replaces none of these by its exported functions."""
    ALLOCATOR = "allocator"
    SANITIZER = "sanitizer"
    NOT_LOADED = "not loaded"


def _name_set(names_text: str) -> frozenset[str]:
    return frozenset(names_text.split())


FUNCTION_GROUPS: Final[Mapping[str, frozenset[str]]] = {
    "writing to stable storage": _name_set(
        "fsync fdatasync sync syncfs msync sync_file_range aio_fsync aio_fsync64 __fsync "
        "__fdatasync"
    ),
    "advice on the page cache": _name_set(
        "posix_fadvise posix_fadvise64 readahead madvise posix_madvise"
    ),
    "opening files (and their flags)": _name_set(
        "open open64 openat openat64 __open __open64 __open_2 __open64_2 __openat_2 __openat64_2 "
        "creat creat64 fopen fopen64 fcntl fcntl64"
    ),
    "reads and writes": _name_set(
        "read read64 pread pread64 readv preadv preadv64 preadv2 preadv64v2 __read_chk __pread_chk "
        "__pread64_chk write pwrite pwrite64 writev pwritev pwritev64 pwritev2 pwritev64v2 "
        "aio_read aio_read64 aio_write aio_write64 lio_listio lio_listio64 io_submit io_getevents "
        "io_pgetevents io_uring_enter io_uring_submit io_uring_submit_and_wait syscall"
    ),
    "allocating and cutting files": _name_set(
        "fallocate fallocate64 posix_fallocate posix_fallocate64 ftruncate ftruncate64"
    ),
    "clocks and waiting": _name_set(
        "clock_gettime __clock_gettime64 gettimeofday time nanosleep clock_nanosleep"
    ),
}
"""Functions whose replacement can make a result of a storage that was not measured."""


def interposer_kind(library: LoadedLibrary) -> InterposerKind:
    """What a library is by the functions that it exports."""
    if not library.is_loaded:
        return InterposerKind.NOT_LOADED
    exports = set(library.exports)
    if _SANITIZERS.keys() & exports:
        return InterposerKind.SANITIZER
    if any(functions & exports for functions in FUNCTION_GROUPS.values()):
        return InterposerKind.REPLACES
    if "malloc" in exports or _ALLOCATORS.keys() & exports:
        return InterposerKind.ALLOCATOR
    return InterposerKind.UNKNOWN


def replaced_functions_text(library: LoadedLibrary) -> str:
    """What it replaces, for people: the groups with the functions in them."""
    exports = set(library.exports)
    groups = [
        f"{group} ({', '.join(sorted(functions & exports))})"
        for group, functions in FUNCTION_GROUPS.items()
        if functions & exports
    ]
    return "; ".join(groups)


def known_library_name(library: LoadedLibrary) -> str:
    """The name of the allocator or sanitizer that it is; empty for another library."""
    names = {**_SANITIZERS, **_ALLOCATORS}
    return next((name for mark, name in names.items() if mark in library.exports), "")


def preloads_in_text(text: str) -> tuple[LoadedLibrary, ...]:
    """The libraries that a command line or an environment has loaded before all others.

    Reads `LD_PRELOAD=…` and `LD_AUDIT=…` however they are quoted (also as keys of JSON or YAML, or
    behind `mpirun -x`), and the wrappers `eatmydata` and `faketime`. Nobody can look into these
    files any more: `exports` are what their names say that they replace.
    """
    named: dict[tuple[str, LibrarySource], LoadedLibrary] = {}
    for match in _ASSIGNMENT.finditer(text):
        value = match[2] or match[3] or match[4]
        for name in re.split(r"[:\s]+", value):
            if name and not name.startswith("$"):
                _add_library_to(named, name, LibrarySource(match[1]))
    for match in _WRAPPER.finditer(text):
        _add_library_to(named, f"lib{match[1]}.so", LibrarySource.LD_PRELOAD)
    return tuple(named.values())


def preloads_in_texts(texts: Iterable[str]) -> tuple[LoadedLibrary, ...]:
    """The same of several texts, each library once."""
    found = [library for text in texts for library in preloads_in_text(text)]
    return tuple({(library.path, library.source): library for library in found}.values())


def _add_library_to(
    library_by_name_and_source: dict[tuple[str, LibrarySource], LoadedLibrary],
    name: str,
    source: LibrarySource,
) -> None:
    if len(library_by_name_and_source) < _NAMES_MAX:
        base = posixpath.basename(name).lower()
        exports = [
            function
            for pattern, functions in _KNOWN_BY_NAME
            if re.search(pattern, base)
            for function in functions
        ]
        library = LoadedLibrary(name, source, exports=tuple(dict.fromkeys(exports)))
        library_by_name_and_source[name, source] = library
