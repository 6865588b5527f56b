"""How soon pages of a large session come: the report once it is made, the list, the progress.

Run as `python -m bench.serve`; prints milliseconds over a loopback connection. The session is
synthetic (see bench/synthetic.py): 5,000 points, or those of a directory given with `--session`.
Making it takes minutes, mostly of flushing.
"""

from __future__ import annotations

import argparse
import gzip
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.client import HTTPConnection
from pathlib import Path
from statistics import median
from typing import Final
from urllib.parse import urlsplit

if __package__ in {None, ""}:
    sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from bench.store import write_session
from bench.synthetic import Shape

LIMIT_MS: Final = 300
"""A session page of 5,000 points, once made."""

TRIES: Final = 9
PATIENCE_S: Final = 300
SHAPE: Final = Shape(points=5000, seconds=2, cores=1, disks=1, nics=1)


@contextmanager
def serving(root: Path) -> Iterator[HTTPConnection]:
    process = subprocess.Popen(
        [sys.executable, "-m", "iolab", "serve", str(root)],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    try:
        assert process.stdout is not None
        port = urlsplit(process.stdout.readline().strip()).port
        yield HTTPConnection("127.0.0.1", port or 0, timeout=PATIENCE_S)
    finally:
        process.terminate()
        process.wait()


def ask(connection: HTTPConnection, path: str) -> tuple[int, bytes, float]:
    """Status, content and milliseconds of one answer."""
    start = time.perf_counter()
    connection.request("GET", path, headers={"Accept-Encoding": "gzip"})
    answer = connection.getresponse()
    body = answer.read()
    taken = 1000 * (time.perf_counter() - start)
    packed = answer.headers.get("Content-Encoding") == "gzip"
    return answer.status, gzip.decompress(body) if packed else body, taken


def settled(connection: HTTPConnection, path: str) -> float:
    """Ask until the page is there; the seconds until then."""
    start = time.perf_counter()
    while time.perf_counter() - start < PATIENCE_S:
        status, body, _ = ask(connection, path)
        if status == 200 and b"Not read yet." not in body:
            return time.perf_counter() - start
        time.sleep(1)
    raise TimeoutError(path)


def measure(root: Path) -> bool:
    """Print how long each page takes; whether the session's page is quick enough."""
    with serving(root) as connection:
        first = settled(connection, "/")
        listing = ask(connection, "/")[1].decode()
        session = listing.split('href="/sessions/')[1].split('"')[0].partition("/")[0]
        made = settled(connection, f"/sessions/{session}")
        print(f"first list {first:7.2f} s, report made {made:7.2f} s")
        quick = True
        for name, path in (
            ("report", f"/sessions/{session}"),
            ("list", "/"),
            ("progress", f"/sessions/{session}/live"),
            ("document", f"/sessions/{session}/show.json"),
        ):
            answers = [ask(connection, path) for _ in range(TRIES)]
            taken = median(one[2] for one in answers)
            print(f"{name:9} {taken:7.1f} ms, {len(answers[0][1]) / 1e6:6.2f} MB")
            quick = quick and (name != "report" or taken < LIMIT_MS)
        return quick


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--session", type=Path, help="a directory of sessions made before")
    chosen: Path | None = parser.parse_args().session
    if chosen is not None:
        return 0 if measure(chosen) else 1
    with tempfile.TemporaryDirectory() as folder:
        write_session(Path(folder) / "large", SHAPE)
        return 0 if measure(Path(folder)) else 1


if __name__ == "__main__":
    sys.exit(main())
