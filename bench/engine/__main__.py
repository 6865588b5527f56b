"""The native engine against fio: prints each ratio, what it should be, and whether it is.

Every round runs each engine once on the same file, on one pinned core, in an order that turns with
the round, since machines drift. A ratio is taken round by round: I/Os for a second of processor
time, user and system, ours over theirs; the median over BENCH_PAIRS rounds is what counts, with
the smallest and the largest beside it. Latency bins are on in both. It says of each row which fio
it is: as people run it, or with every option that was found to help. Metadata operations are held
against mdtest -F -u, by the wall, one thread each.

Needs root and zram. BENCH_PAIRS (7), BENCH_RUNTIME_S (2), BENCH_CORE (the last one), BENCH_PATH
(/var/tmp, for the real disk), BENCH_T_IO_URING (fio's t/io_uring, where there is one); MDTEST and
MPIEXEC, an mdtest and what starts it.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from bench.engine.sides import (
    FIO_BEST,
    FIO_IO_URING,
    FIO_LIBAIO,
    FIO_PSYNC,
    RUNTIME_S,
    Did,
    Load,
    Side,
    native,
    native_end,
    native_untimed,
    spec_of,
    t_io_uring,
)
from bench.engine.targets import FILE_BYTES, on_disk, on_zram
from bench.metadata import loads, programs, shown
from bench.metadata import measure as measure_metadata
from iolab.loads.metadata.workload import MetadataOperation

PAIRS: Final = int(os.environ.get("BENCH_PAIRS", "7"))
T_IO_URING: Final = os.environ.get("BENCH_T_IO_URING", "")
OPEN_LOOP_PER_S: Final = 200_000.0
METADATA_FILES: Final = 20_000
METADATA_WANTED: Final = {
    MetadataOperation.FILE_STAT: 1.45,
    MetadataOperation.FILE_READ: 1.25,
    MetadataOperation.FILE_CREATE: 1.1,
    MetadataOperation.FILE_REMOVE: 1.05,
}
MIDDLE_DEPTH: Final = 32
UNTIMED: Final = "native without stamps"
"""The same loop that looks at no clock for an I/O and fills no bins."""
UNTIMED_WANTED: Final = 0.98


@dataclass(frozen=True, slots=True)
class Case:
    """A load and, by opponent, the ratio that is wanted."""

    name: str
    load: Load
    wanted: Mapping[str, float]
    by_wall: bool = False


OPPONENTS: Final[dict[str, Side]] = {
    "fio, best options": FIO_BEST,
    "fio, io_uring as it comes": FIO_IO_URING,
    "fio, libaio as it comes": FIO_LIBAIO,
    "fio, psync as it comes": FIO_PSYNC,
    UNTIMED: native_untimed,
}
if T_IO_URING:
    OPPONENTS["t/io_uring"] = t_io_uring(T_IO_URING)


def main() -> None:
    """Print every row, also those that fall short."""
    argparse.ArgumentParser(description=__doc__).parse_args()
    print(f"native / theirs, {PAIRS} rounds of {RUNTIME_S:g} s each, median [smallest-largest]")
    with on_zram() as file:
        for case in (*_reads(file), _write(file)):
            _show(case, *measure(case))
        _open_loop(file)
        _metadata(file.parent)
    for case in _null():
        _show(case, *measure(case))
    with on_disk() as file:
        case = _disk(file)
        _show(case, *measure(case))


def _reads(file: Path) -> list[Case]:
    best, uring, libaio = list(OPPONENTS)[:3]
    cases = []
    for depth in (1, 8, 32, 128):
        goals = (1.20, 1.5, 1.75) if depth == 1 else (1.20, 1.9, 2.2)
        wanted = dict(zip((best, uring, libaio), goals, strict=True))
        if T_IO_URING:
            wanted["t/io_uring"] = 1.0
        if depth == MIDDLE_DEPTH:
            wanted[UNTIMED] = UNTIMED_WANTED
        load = Load(file, "randread", depth, FILE_BYTES)
        cases.append(Case(f"XFS on zram, random reads, depth {depth}", load, wanted))
    return cases


def _write(file: Path) -> Case:
    best, uring, _ = list(OPPONENTS)[:3]
    load = Load(file, "randwrite", 32, FILE_BYTES)
    return Case("XFS on zram, random writes of zeros, depth 32", load, {best: 1.15, uring: 1.65})


def _null() -> list[Case]:
    best, uring, _ = list(OPPONENTS)[:3]
    return [
        Case(
            f"/dev/null, random writes, depth {depth}",
            Load(Path("/dev/null"), "randwrite", depth, 1 << 30, direct=False),
            {best: 2.0, uring: 4.3} | ({UNTIMED: UNTIMED_WANTED} if depth == MIDDLE_DEPTH else {}),
        )
        for depth in (8, 32, 128)
    ]


def _disk(file: Path) -> Case:
    wanted = dict.fromkeys(list(OPPONENTS)[:3], 0.97)
    load = Load(file, "randread", 32, FILE_BYTES)
    return Case("the disk, random reads, depth 32, IOPS by the wall", load, wanted, by_wall=True)


def measure(case: Case) -> tuple[dict[str, list[float]], list[float]]:
    """The ratios of each opponent, round by round, and what our own code took for an I/O, in ns."""
    sides: dict[str, Side] = {"native": native, **{name: OPPONENTS[name] for name in case.wanted}}
    for side in sides.values():
        side(case.load)
    ratios: dict[str, list[float]] = {name: [] for name in case.wanted}
    user_ns = []
    for turn in range(PAIRS):
        names = list(sides) if turn % 2 == 0 else list(reversed(sides))
        did = {name: sides[name](case.load) for name in names}
        ours = _figure(did["native"], case)
        user_ns.append(did["native"].user_ns)
        for name, found in ratios.items():
            found.append(ours / _figure(did[name], case))
    return ratios, user_ns


def _figure(did: Did, case: Case) -> float:
    return did.iops if case.by_wall else did.per_core_s


def _show(case: Case, ratios: Mapping[str, Sequence[float]], user_ns: Sequence[float]) -> None:
    print(f"{case.name}; our own code takes {statistics.median(user_ns):.0f} ns an I/O")
    for name, found in ratios.items():
        middle, wanted = statistics.median(found), case.wanted[name]
        spread = f"[{min(found):.2f}-{max(found):.2f}]"
        said = _verdict(is_met=middle >= wanted)
        print(f"  {name:26} {middle:5.2f} {spread:13} wanted {wanted:.2f}: {said}", flush=True)


def _verdict(*, is_met: bool) -> str:
    return "yes" if is_met else "FALLS SHORT"


def _open_loop(file: Path) -> None:
    """How near the rate asked for, and how late its own starts."""
    load = Load(file, "randread", 128, FILE_BYTES)
    rate = {"iops": OPEN_LOOP_PER_S}
    print(f"open loop at {OPEN_LOOP_PER_S:,.0f}/s")
    for arrivals in ("fixed", "poisson"):
        errors, late, machine = [], [], []
        for _ in range(PAIRS):
            end = native_end(spec_of(load, rate=rate, arrivals=arrivals))
            # Those that completed after the end were due before it.
            per_s = end["read"]["ios"] / (end["measured_ns"] / 1e9)
            errors.append(abs(per_s / OPEN_LOOP_PER_S - 1))
            late.append(end["lateness"]["p99_ns"] / 1e3)
            machine.append(end["lateness"]["machine"]["p99_ns"] / 1e3)
        error, lateness, waits = (statistics.median(each) for each in (errors, late, machine))
        # As many arrivals as a Poisson process has differ by themselves.
        chance = (OPEN_LOOP_PER_S * RUNTIME_S) ** -0.5 if arrivals == "poisson" else 0.0
        print(
            f"  {arrivals}: rate error {error:.3%}, wanted 0.20 %: "
            f"{_verdict(is_met=error <= 0.002)} (chance alone {chance:.2%})"
        )
        print(
            f"  lateness p99 {lateness:.1f} µs, wanted 5 µs: {_verdict(is_met=lateness <= 5)}; of "
            f"those before which it only waited {waits:.1f} µs"
        )


def _metadata(folder: Path) -> None:
    """One thread's operations on files against those of mdtest's one process."""
    found = programs()
    if found is None:
        print("metadata: no mdtest here to compare with; MDTEST=/path/to/mdtest names one")
        return
    for load in loads(1, METADATA_FILES):
        version, ratios = asyncio.run(measure_metadata(found, str(folder), load))
        print(f"metadata on XFS on zram, ours / {version}; {load}")
        for operation, seen in ratios.items():
            wanted = METADATA_WANTED[operation]
            said = _verdict(is_met=statistics.median(seen) >= wanted)
            print(f"{shown(operation, seen)} wanted {wanted:.2f}: {said}", flush=True)


if __name__ == "__main__":
    main()
