"""How long `iolab show --summary` takes for a session of a hundred thousand runs.

Run as `python -m bench.many_runs`; prints CPU seconds and peak memory of the command. One run is
committed; the others are folders without files and lines of the index, for the command opens none
of a run's files.
"""

from __future__ import annotations

import argparse
import resource
import sys
import tempfile
from pathlib import Path
from typing import Final

if __package__ in {None, ""}:
    sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from bench.startup import seconds
from bench.store import write_session
from bench.synthetic import Shape
from bench.synthetic_study import digest_of
from iolab.store import index, layout

LIMIT_S: Final = 2.0
REPEATS: Final = 3


def make_session(directory: Path, runs: int) -> None:
    """A session of that many runs."""
    write_session(directory, Shape(points=1, seconds=2, cores=1, disks=1, nics=1))
    ((_, entry),) = index.read_index(directory).items()
    for number in range(runs - 1):
        key = (digest_of(str(number // REPEATS)), number % REPEATS + 1)
        layout.run_directory(directory, key).mkdir(parents=True)
        index.add_index_entry(
            directory, key, entry, index.IndexedManifest(2, digest_of("manifest"))
        )


def main() -> int:
    """Make one, show it, print; exit code 1 when the limit is missed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=100_000)
    chosen = parser.parse_args()
    with tempfile.TemporaryDirectory() as place:
        session = Path(place) / "session"
        make_session(session, chosen.runs)
        empty = seconds([sys.executable, "-c", ""])
        shown = seconds([sys.executable, "-m", "iolab", "show", "--summary", str(session)])
        peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss * 1024
    print(
        f"show --summary of {chosen.runs:,} runs: {shown:.2f} CPU s (limit {LIMIT_S:g} s), ", end=""
    )
    print(f"{shown / empty:.0f} times an empty interpreter, {peak / 2**20:.0f} MiB")
    return 0 if shown <= LIMIT_S else 1


if __name__ == "__main__":
    sys.exit(main())
