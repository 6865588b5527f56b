"""Real output of fio (tests/golden/fio, its README says which) and readers fed with it."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Final

from iolab.core.workload import Direction
from iolab.hosts.engine import ParsedEngineOutput
from iolab.loads.fileio.engines.fio_reader import FioOutputReader
from tests.recorded import recorded, recordings

CLEAN: Final = tuple(
    sorted(
        name
        for name in (Path(one).stem for one in recordings("fio", ".txt"))
        if not name.startswith(("groups", "layout-full", "run-full", "missing-file"))
    )
)
"""Runs that did what they were requested."""

BOTH: Final = (Direction.READ, Direction.WRITE)


def output(name: str) -> bytes:
    """The output as it came."""
    return recorded(f"fio/{name}.txt")


def directions(name: str) -> tuple[Direction, ...]:
    """What the run of that name was requested."""
    if name.startswith(("write", "layout", "run-full")):
        return (Direction.WRITE,)
    return BOTH if name.startswith(("randrw", "mixed")) else (Direction.READ,)


def reading(name: str, jobs: int = 2) -> ParsedEngineOutput:
    """What the reader makes of the whole output at once."""
    return read(output(name), directions(name), jobs)


def read(raw: bytes, asked: Sequence[Direction] = BOTH, jobs: int = 2) -> ParsedEngineOutput:
    """What the reader makes of these bytes."""
    reader = FioOutputReader(asked, jobs)
    reader.feed(raw)
    return reader.finish()
