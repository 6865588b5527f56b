"""Libraries between a load and the kernel: those planted are found, honest programs have none."""

from __future__ import annotations

import asyncio
import os
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

import pytest

from iolab.analysis.checks.libraries import preload_answers
from iolab.core.host import HostSpec, HostTransport
from iolab.core.libraries import InterposerKind, LibrarySource, LibraryUse, interposer_kind
from iolab.core.metric import VerdictLevel
from iolab.hosts.connect import LocalHost
from iolab.hosts.engine import Command
from iolab.hosts.remote_process import run_process
from iolab.record import Record
from tests.needs import ROOT, require

pytestmark = pytest.mark.e2e

PROGRAM: Final = """
#define _GNU_SOURCE
#include <fcntl.h>
#include <unistd.h>
#include <time.h>
HELPER
int main(int argc, char **argv) {
    struct timespec pause = {0, 100000000};
    HELP
    if (argc > 1) unlink(argv[1]);
    for (int n = 0; n < 30; n++) {
        int fd = open("/proc/self/stat", O_RDONLY);
        close(fd);
        select_pause(&pause);
    }
    return 0;
}
"""
PAUSE: Final = """
#include <sys/select.h>
static void select_pause(struct timespec *p) { pselect(0, 0, 0, 0, p, 0); }
"""


class Shim(Record):
    """A library, the functions that it replaces, and how it is built and brought in."""

    name: str
    functions: tuple[str, ...]
    flags: tuple[str, ...] = ()
    way: str = "LD_PRELOAD"
    source: LibrarySource = LibrarySource.LD_PRELOAD
    body: str = ""


def shims() -> list[Shim]:
    """Twenty that replace one thing each, and some that hide."""
    plain = [
        ("fsync",),
        ("fdatasync",),
        ("sync_file_range",),
        ("msync",),
        ("posix_fadvise", "posix_fadvise64"),
        ("madvise",),
        ("open", "open64"),
        ("openat", "openat64"),
        ("fcntl", "fcntl64"),
        ("pread", "pread64"),
        ("pwrite", "pwrite64"),
        ("read", "write"),
        ("io_submit",),
        ("clock_gettime",),
        ("gettimeofday",),
        ("nanosleep", "clock_nanosleep"),
        ("fsync", "posix_fadvise", "clock_gettime"),
    ]
    mapped = LibrarySource.MAPPED
    return [
        *(Shim("lib" + "-".join(names) + ".so", names) for names in plain),
        Shim("libsysv.so", ("fsync",), ("-Wl,--hash-style=sysv",)),
        Shim("libstripped.so", ("fsync",), ("-s", "-Wl,--hash-style=gnu")),
        Shim("libc.so.6", ("fsync",), way="needed", source=mapped),
        Shim("libneeded.so", ("fdatasync",), way="needed", source=mapped),
        Shim("libwrapped.so", ("fsync",), way="script"),
        Shim("libgone.so", ("fsync",), way="unlinked"),
        Shim("no suffix".replace(" ", ""), ("fsync",)),
    ]


def compile_c(folder: Path, name: str, source: str, *flags: str) -> Path:
    made = folder / name
    code = folder / f"{name}.c"
    code.write_text(source, encoding="utf-8")
    subprocess.run(["cc", "-O1", "-w", str(code), "-o", str(made), *flags], check=True)
    return made


def compile_shim(folder: Path, shim: Shim) -> Path:
    bodies = "".join(f"long {name}() {{ return 0; }}\n" for name in shim.functions)
    if "open" in shim.functions or "openat" in shim.functions:
        bodies = "".join(f"long {name}() {{ return -1; }}\n" for name in shim.functions)
    if "read" in shim.functions:
        bodies = "#include <sys/syscall.h>\nlong syscall(long n, ...);\n" + "".join(
            f"long {name}(int f, void *b, unsigned long n)"
            f" {{ return syscall(SYS_{name}, f, b, n); }}\n"
            for name in shim.functions
        )
    bodies += "int helper_is_there(void) { return 1; }\n"
    return compile_c(
        folder, shim.name, bodies, "-shared", "-fPIC", "-fno-builtin", "-nostartfiles", *shim.flags
    )


def planted(folder: Path, shim: Shim) -> Load:
    """A load with that library."""
    folder.mkdir()
    library = compile_shim(folder, shim)
    source = PROGRAM.replace("HELPER", PAUSE).replace("HELP\n", "\n")
    if shim.way == "needed":
        source = PROGRAM.replace("HELPER", f"int helper_is_there(void);{PAUSE}")
        source = source.replace("HELP\n", "helper_is_there();\n")
        if shim.name == "libc.so.6":
            # A library with the name of the C library, in a folder that is not the system's.
            own = folder / "x" / "y"
            own.mkdir(parents=True)
            shutil.copy(library, own / "libc-shim.so")
            program = compile_c(folder, "load", source, str(own / "libc-shim.so"))
            nested = folder / "bin" / "deep"
            nested.mkdir(parents=True)
            shutil.move(program, nested / "load")
            return Load((str(nested / "load"),))
        program = compile_c(folder, "load", source, str(library))
        return Load((str(program),))
    program = compile_c(folder, "load", source)
    if shim.way == "script":
        script = folder / "wrapper"
        script.write_text(f"#!/bin/sh\nLD_PRELOAD={library} exec {program}\n", encoding="utf-8")
        script.chmod(0o755)
        return Load((str(script),))
    gone = (str(library),) if shim.way == "unlinked" else ()
    return Load((str(program), *gone), {"LD_PRELOAD": str(library)})


class Load(Record):
    """A command whose processes are looked at, with its environment beside that of the agent."""

    argv: tuple[str, ...]
    environment: Mapping[str, str] = {}


def library_uses(loads: Sequence[Load], limit_s: float = 60.0) -> list[LibraryUse]:
    """What an agent for each sees of the libraries of loads that run at the same time."""

    async def library_use(load: Load) -> LibraryUse:
        host = LocalHost(HostSpec("local", HostTransport.LOCAL))
        environment = tuple(load.environment.items())
        command = Command(load.argv, "/", b"", "", limit_s, 1 << 20, environment)
        try:
            await host.connect()
            ending = await run_process(
                host, command, asyncio.Event(), lambda _: None, does_watch_processor=True
            )
        finally:
            await host.close()
        assert ending.exited.libraries is not None, ending
        return ending.exited.libraries

    async def body() -> list[LibraryUse]:
        async with asyncio.timeout(2 * limit_s):
            return await asyncio.gather(*map(library_use, loads))

    return asyncio.run(body())


def shim_fault(shim: Shim, use: LibraryUse, folder: Path) -> str:
    """Why a planted library was not found as what it is; empty where it was."""
    found = [one for one in use.libraries if set(shim.functions) <= set(one.exports)]
    if not found:
        return f"{shim.name} was not found: {use}"
    library = found[0]
    levels = {answer.level for answer in preload_answers([library], "The load")}
    is_right = (
        library.source is shim.source
        and str(folder) in library.path
        and interposer_kind(library) is InterposerKind.REPLACES
        and levels == {VerdictLevel.INVALID}
    )
    return "" if is_right else f"{shim.name} was found as {library}"


def test_every_planted_shim_is_found_in_one_trial(tmp_path: Path) -> None:
    require("cc", ROOT)
    planted_shims = shims()
    assert len(planted_shims) >= 20
    loads = [planted(tmp_path / str(nth), shim) for nth, shim in enumerate(planted_shims)]
    uses = library_uses(loads)
    faults = [shim_fault(*one, tmp_path) for one in zip(planted_shims, uses, strict=True)]
    assert [fault for fault in faults if fault] == []


@pytest.mark.long
def test_an_audit_library_and_one_that_is_missing_are_named(tmp_path: Path) -> None:
    require("cc")
    source = PROGRAM.replace("HELPER", PAUSE).replace("HELP\n", "\n")
    program = compile_c(tmp_path, "load", source)
    audit = compile_c(
        tmp_path, "libaudit.so", "unsigned la_version(unsigned v) { return v; }", "-shared", "-fPIC"
    )
    env = {"LD_AUDIT": str(audit), "LD_PRELOAD": f"{tmp_path}/missing.so"}
    (use,) = library_uses([Load((str(program),), env)])
    by_source = {one.source: one for one in use.libraries}
    assert by_source[LibrarySource.LD_AUDIT].path == str(audit)
    assert interposer_kind(by_source[LibrarySource.LD_AUDIT]) is InterposerKind.UNKNOWN
    assert interposer_kind(by_source[LibrarySource.LD_PRELOAD]) is InterposerKind.NOT_LOADED


@pytest.mark.long
def test_an_allocator_is_known_by_its_functions(tmp_path: Path) -> None:
    require("cc")
    source = PROGRAM.replace("HELPER", PAUSE).replace("HELP\n", "\n")
    program = compile_c(tmp_path, "load", source)
    names = ("mallctl", "mallocx")
    library = compile_c(
        tmp_path,
        "libje.so",
        "".join(f"int {name}() {{ return 0; }}" for name in names),
        "-shared",
        "-fPIC",
    )
    (use,) = library_uses([Load((str(program),), {"LD_PRELOAD": str(library)})])
    (one,) = use.libraries
    assert interposer_kind(one) is InterposerKind.ALLOCATOR


@pytest.mark.long
def test_sanitizers_are_named_and_not_accused(tmp_path: Path) -> None:
    require("cc")
    source = PROGRAM.replace("HELPER", PAUSE).replace("HELP\n", "\n")
    loads = []
    for sanitizer in ("address", "thread", "undefined"):
        program = compile_c(tmp_path, sanitizer, source, f"-fsanitize={sanitizer}")
        loads.append(Load((str(program),), {"TSAN_OPTIONS": "report_bugs=0"}))
    for use in library_uses(loads):
        kinds = {interposer_kind(one) for one in use.libraries}
        assert kinds <= {InterposerKind.SANITIZER}, use


def test_honest_programs_have_nothing_to_tell(tmp_path: Path) -> None:
    require("fio", "java", "db_bench")
    fio = f"fio --name=a --rw=randread --size=1m --time_based --runtime=2 --directory={tmp_path}"
    database = f"db_bench --benchmarks=fillrandom,readrandom --num=50000 --db={tmp_path}/db"
    waiting = "import time, ssl, sqlite3, numpy; time.sleep(3)"
    loads = [
        Load(("sleep", "3")),
        Load((sys.executable, "-c", waiting)),
        *(
            Load((*fio.split(), f"--ioengine={engine}"))
            for engine in ("libaio", "io_uring", "psync")
        ),
        Load((*database.split(), "--duration=2")),
        Load(("java", "-Xshare:off", "-version")),
    ]
    for load, use in zip(loads, library_uses(loads), strict=True):
        assert use.libraries == (), (load, use)
        assert use.processes >= 1
        assert use.files >= 1


@pytest.mark.long
def test_a_file_that_only_looks_like_a_library_is_told_and_stops_nothing(tmp_path: Path) -> None:
    require("cc")
    source = PROGRAM.replace("HELPER", PAUSE + "#include <sys/mman.h>\n#include <stdlib.h>\n")
    source = source.replace(
        "HELP\n",
        'int m = open(getenv("MAPPED"), O_RDONLY);'
        " mmap(0, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE, m, 0);\n",
    )
    program = compile_c(tmp_path, "load", source)
    junk = tmp_path / "junk.so"
    junk.write_bytes(b"\x7fELF\x02\x01" + os.urandom(8186))
    (use,) = library_uses([Load((str(program),), {"MAPPED": str(junk)})])
    (one,) = use.libraries
    assert one.path == str(junk)
    assert one.fault
    assert interposer_kind(one) is InterposerKind.UNKNOWN
