"""How long a session takes to be kept: write it, read all of it back, list its results, report.

Run as `python -m bench.store`; prints seconds. The session is synthetic (see bench/synthetic.py)
and made beforehand, run by run, so that only iolab is timed. Most of writing is waiting for the
device: ten files and folders a run are flushed. Results are listed in turn with and without holding
what is read against its digests, as `iolab show` does and does not.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from iolab.core.run import RunKey

if __package__ in {None, ""}:
    sys.path.insert(0, str(Path(__file__).resolve().parents[1]))


from bench.synthetic import Shape, make_facts, make_plan, make_record, make_result, make_study
from iolab.core.events import SessionStatus
from iolab.core.regular_file import read_regular_file
from iolab.registry import report_kinds
from iolab.report.formats.html import render_html
from iolab.report.gather import build_brief
from iolab.store import layout
from iolab.store.codec import parse_document
from iolab.store.documents import ManifestHead
from iolab.store.reader import SessionReader
from iolab.store.verify import Damage
from iolab.store.writer import SessionWriter

ROUNDS: Final = 7
"""An odd number, so that the median is one of the times."""


@dataclass(frozen=True, slots=True)
class Seconds:
    """Wall time of each part, and the bytes on disk."""

    write: float
    read: float
    results: float
    unverified: float
    report: float
    bytes: int

    @property
    def whole(self) -> float:
        """What is wanted to be short: written, read back, and reported."""
        return self.write + self.read + self.report


def write_session(directory: Path, shape: Shape) -> float:
    """Make and write a session; the seconds that the store took of it."""
    taken = 0.0
    plan = make_plan(shape)
    with SessionWriter.create(
        directory, make_study(shape), plan, "synthetic", ("iolab", "run", "synthetic")
    ) as writer:
        writer.record_host_facts_at_start(make_facts(shape), "0.1.0")
        for run in plan.runs:
            record = make_record(run, shape)
            result = make_result(record)
            start = time.perf_counter()
            writer.commit_run(record, result, analysis_version=1)
            taken += time.perf_counter() - start
        writer.end_session_and_close(SessionStatus.DONE)
    return taken


def read_session(directory: Path) -> float:
    """Read every record of a session; the seconds it took."""
    start = time.perf_counter()
    reader = SessionReader(directory)
    for digest, repeat in reader.committed_folder_by_run():
        reader.record(digest, repeat)
    return time.perf_counter() - start


class Unverified(SessionReader):
    """A reader that takes every manifest for what it says."""

    def damage_of_documents_except_plan(self) -> tuple[Damage, ...]:
        return ()

    def _read_manifest_heads(self) -> dict[RunKey, ManifestHead]:
        runs = layout.committed_folder_by_run(self.directory)
        paths = {key: run / layout.MANIFEST for key, run in runs.items()}
        return {
            key: parse_document(ManifestHead, read_regular_file(path), path)
            for key, path in paths.items()
        }


def list_session(directory: Path, reading: type[SessionReader] = SessionReader) -> float:
    """Read the results alone, as `iolab show` does; the seconds it took."""
    start = time.perf_counter()
    reader = reading(directory)
    reader.damage_of_documents_except_plan()
    reader.results()
    return time.perf_counter() - start


def list_in_turn(directory: Path) -> tuple[float, float]:
    """Medians of the seconds that results take, verified and not."""
    pairs = [(list_session(directory), list_session(directory, Unverified)) for _ in range(ROUNDS)]
    return statistics.median(one for one, _ in pairs), statistics.median(one for _, one in pairs)


def report_session(directory: Path) -> float:
    """Build the report from the store and write it, as `iolab report` does; the seconds it took."""
    start = time.perf_counter()
    page = render_html(build_brief(report_kinds(), SessionReader(directory)))
    (directory / "report.html").write_text(page, encoding="utf-8")
    return time.perf_counter() - start


def measure(directory: Path, shape: Shape) -> Seconds:
    """Write, read and report a session in a new directory."""
    write = write_session(directory, shape)
    results, unverified = list_in_turn(directory)
    read = read_session(directory)
    size = sum(path.stat().st_size for path in directory.rglob("*") if path.is_file())
    report = report_session(directory)
    return Seconds(write, read, results, unverified, report, size)


def main() -> None:
    """Measure with the size that the command line asks for, and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--points", type=int, default=500)
    parser.add_argument("--seconds", type=int, default=60)
    parser.add_argument("--hosts", type=int, default=1)
    parser.add_argument("--directory", type=Path, help="where (default: a temporary directory)")
    chosen = parser.parse_args()
    shape = Shape(points=chosen.points, seconds=chosen.seconds, hosts=chosen.hosts)
    with tempfile.TemporaryDirectory(dir=chosen.directory) as place:
        found = measure(Path(place) / "session", shape)
    print(
        f"{shape.points} points x {shape.seconds} s x {shape.numjobs} jobs, {shape.hosts} host(s)"
    )
    print(f"write    {found.write:6.2f} s  ({found.bytes / 1e6:.0f} MB)")
    print(f"read     {found.read:6.2f} s")
    print(
        f"results  {found.results:6.3f} s, {found.results / found.unverified:.2f} times as long as "
        f"unverified ({found.unverified:.3f} s)"
    )
    print(f"report   {found.report:6.2f} s")
    print(f"write + read + report: {found.whole:.2f} s")


if __name__ == "__main__":
    main()
