"""An fio that lies: the real one, with its job or its reports changed on the way.

Only the measured job is changed; files are laid out as asked. It is a program `fio` in a folder
that stands first in PATH.
"""

from __future__ import annotations

import json
import os
import re
import stat
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, BinaryIO, Final

import numpy as np

from iolab.core.histogram import MIDDLE_NS, Histogram, bin_index_of_ns, dense_counts
from iolab.loads.fileio.engines.fio_output import JsonDocumentSplitter

REAL: Final = "/usr/bin/fio"
CHECKOUT: Final = Path(__file__).parents[2]
PIECE_BYTES: Final = 1 << 16
WAYS: Final = ("read", "write")

Json = dict[str, Any]


def plant(folder: Path, lie: str) -> dict[str, str]:
    """An environment whose fio tells that lie."""
    folder.mkdir()
    program = folder / "fio"
    program.write_text(
        f"#!{sys.executable}\nimport sys\nsys.path.insert(0, {str(CHECKOUT)!r})\n"
        f"from tests.e2e.lying_fio import main\nsys.exit(main({lie!r}))\n",
        encoding="utf-8",
    )
    program.chmod(program.stat().st_mode | stat.S_IXUSR)
    return {**os.environ, "PATH": f"{folder}:{os.environ['PATH']}"}


def _scaled_bins(block: Json, times: Callable[[int], float], counts: float) -> None:
    """Change the latencies of a direction, and how many there are."""
    lat = block["lat_ns"]
    found: dict[int, int] = {}
    for key, count in lat.get("bins", {}).items():
        middle = int(MIDDLE_NS[int(bin_index_of_ns(round(times(int(key)))))])
        found[middle] = found.get(middle, 0) + round(count * counts)
    lat["bins"] = {str(key): count for key, count in sorted(found.items()) if count}
    total = sum(found.values())
    values = np.array(list(found), dtype=float)
    weights = np.array(list(found.values()), dtype=float)
    if total:
        lat["mean"] = float((values * weights).sum() / total)
        lat["min"], lat["max"] = min(found), max(key for key, count in found.items() if count)
        shares = lat.get("percentile", {})
        whole = Histogram(dense_counts(bin_index_of_ns(list(found)), list(found.values())))
        lat["percentile"] = {key: round(whole.percentile_ns(float(key)) or 0) for key in shares}


def _each_way(document: Json) -> list[Json]:
    return [job[way] for job in document["jobs"] for way in WAYS if job[way]["total_ios"]]


def _count_twice(document: Json) -> None:
    """Twice the I/Os at half the latency, with true bytes."""
    for block in _each_way(document):
        _scaled_bins(block, lambda ns: ns / 2, 2)
        block["total_ios"] *= 2
        block["iops"] *= 2


def _count_twice_with_bytes(document: Json) -> None:
    """The same with bytes that fit, of which the device moved half."""
    _count_twice(document)
    for block in _each_way(document):
        block["io_bytes"] *= 2
        block["bw_bytes"] *= 2


def _count_an_eighth(document: Json) -> None:
    """Eight real I/Os told as one."""
    for block in _each_way(document):
        _scaled_bins(block, lambda ns: ns * 8, 1 / 8)
        block["total_ios"] = sum(block["lat_ns"]["bins"].values())
        block["io_bytes"] = block["total_ios"] * 4096
        block["iops"] /= 8


def _quicken(document: Json) -> None:
    """Latencies of two thirds, with true counts."""
    for block in _each_way(document):
        _scaled_bins(block, lambda ns: ns * 0.67, 1)


_caps: Final[dict[int, int]] = {}


def _cap(document: Json) -> None:
    """No latency above what was the ninetieth percentile of the first report."""
    for place, block in enumerate(_each_way(document)):
        bins = sorted((int(key), count) for key, count in block["lat_ns"]["bins"].items())
        total, seen, cap = sum(count for _, count in bins), 0, 0
        for key, count in bins:
            seen += count
            cap = key
            if seen >= 0.9 * total:
                break
        kept = _caps.setdefault(place, cap)
        _scaled_bins(block, lambda ns, kept=kept: min(ns, kept), 1)  # type: ignore[misc]


def _same(document: Json) -> None:
    del document


def _job(pattern: str, put: str) -> Callable[[str], str]:
    return lambda text: re.sub(pattern, put, text, flags=re.MULTILINE)


Lie = tuple[Callable[[str], str], Callable[[Json], None]]

LIES: Final[dict[str, Lie]] = {
    "nothing": (str, _same),
    "counts-twice": (str, _count_twice),
    "counts-twice-with-bytes": (str, _count_twice_with_bytes),
    "small": (_job(r"^bs=4096$", "bs=512"), _same),
    "small-hidden": (_job(r"^bs=4096$", "bs=512"), _count_an_eighth),
    "narrow": (_job(r"^(size|filesize)=\d+$", r"\1=1m"), _same),
    "sequential": (_job(r"^rw=rand", "rw="), _same),
    "random": (_job(r"^rw=(read|write)$", r"rw=rand\1"), _same),
    "quick": (str, _quicken),
    "capped": (str, _cap),
}
"""By name: what becomes of the job, and of each report."""


def main(lie: str) -> int:
    """Be that fio."""
    arguments = sys.argv[1:]
    if arguments[-1:] != ["-"]:
        os.execv(REAL, [REAL, *arguments])  # noqa: S606 - no shell is wanted
    text = sys.stdin.read()
    change_job, change = LIES[lie]
    lies = text.startswith("[measure]")
    if lies:
        text = change_job(text)
    fio = subprocess.Popen([REAL, *arguments], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert fio.stdin is not None
    assert fio.stdout is not None
    fio.stdin.write(text.encode())
    fio.stdin.close()
    cutter = JsonDocumentSplitter()
    with os.fdopen(fio.stdout.fileno(), "rb", buffering=0, closefd=False) as output:
        while piece := output.read(PIECE_BYTES):
            _pass_on(cutter.feed(piece), change if lies else _same, sys.stdout.buffer)
        _pass_on(cutter.finish(), change if lies else _same, sys.stdout.buffer)
    return fio.wait()


def _pass_on(documents: list[bytes], change: Callable[[Json], None], output: BinaryIO) -> None:
    for one in documents:
        document = json.loads(one)
        change(document)
        output.write((json.dumps(document, indent=2) + "\n").encode())
    output.flush()
