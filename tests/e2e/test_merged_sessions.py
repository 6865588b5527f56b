"""Two configurations that differ for real, in one brief whose every run can be found again."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from iolab.report.numbers import value_text
from tests.e2e.devices import READ_LIMITS
from tests.e2e.sessions import iolab, shown, write_study
from tests.e2e.targets import Target, tmpfs, xfs_on_loop

pytestmark = [pytest.mark.e2e, pytest.mark.long]

READS_PER_S = 600
STUDY = """
format = 1
id = "two-targets"
title = "XFS on two targets"

[[workload]]
id = "rand-read"
rw = "randread"
bs = "4k"
iodepth = [1, 8]
filesize = "64m"

[method]
warmup = "0s"
runtime = "4s"
settle = "0s"
idle_watch = 0
generator_limit = false
repeats = 2
"""


@contextmanager
def limited(target: Target) -> Iterator[None]:
    """The block layer lets no more reads through to the target's device, whoever asks."""
    number = Path(f"/sys/block/{target.device}/dev").read_text(encoding="ascii").strip()
    READ_LIMITS.write_text(f"{number} {READS_PER_S}", encoding="ascii")
    try:
        yield
    finally:
        READ_LIMITS.write_text(f"{number} 0", encoding="ascii")


def measured(folder: Path, name: str, target: Target) -> Path:
    session = folder / name
    iolab("run", write_study(folder, STUDY), "--path", target.path, "--out", session, "--quiet")
    return session


@pytest.fixture(scope="module")
def sessions(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """One on a device that is held at a rate, one on a device in memory."""
    folder = tmp_path_factory.mktemp("two")
    # Both lie in memory, so that no other user of a disk is met.
    with tmpfs(512 << 20) as memory, xfs_on_loop(320 << 20, memory) as target:
        with limited(target):
            slow = measured(folder, "limited", target)
        fast = measured(folder, "memory", target)
    return slow, fast


def rates(session: Path) -> dict[str, float]:
    """The published IOPS of each point that is trusted: others are best of nothing.

    Beside other load a point may have no run that is not invalid.
    """
    points = [point for point in shown(session)["points"] if point["trusted"]]
    return {point["digest"]: point["metrics"]["iops"]["value"] for point in points}


def test_the_brief_says_what_each_did_best_and_where_every_run_is_stored(
    sessions: tuple[Path, Path], tmp_path: Path
) -> None:
    slow, fast = sessions
    files = {form: tmp_path / f"brief.{form}" for form in ("html", "pdf", "md")}
    iolab("report", slow, fast, *(word for form in files for word in (f"--{form}", files[form])))
    appendix = files["md"].with_stem("brief-appendix")
    text = "".join(one.read_text(encoding="utf-8") for one in (files["md"], appendix))
    trusted = [rates(session) for session in sessions]
    both = len(trusted[0].keys() & trusted[1].keys())
    tallied = re.search(r"memory compared with limited in IOPS at (\d) points?", text)
    assert (int(tallied[1]) <= both) if tallied else both < 2
    best = {
        name: max(known.values())
        for name, known in zip(("limited", "memory"), trusted, strict=True)
        if known
    }
    assert best.get("memory", math.inf) > 2 * best.get("limited", 0.0)
    for name, rate in best.items():
        # Repeats that lie far apart stand as a range.
        value = rf"(?:{re.escape(value_text(rate, '1/s'))}|.* to .*IOPS)"
        assert re.search(f"rand-read: {name} does its best with {value}", text)
    places = re.findall(r"\| (limited|memory) \| points/(\w+)/run-(\d) \|", text)
    assert len(places) == len(set(places)) == 8
    for label, digest, _ in places:
        told = iolab("show", slow.parent / label, "--run", digest, "--details").stdout
        assert told.count(f"points/{digest}/run-") == 2
    page = files["html"].read_text(encoding="utf-8")
    for label, digest, repeat in places:
        assert re.search(rf"Session {label} \([\w-]+\), points/{digest}/run-{repeat}<", page)
    assert files["pdf"].stat().st_size > 10_000
