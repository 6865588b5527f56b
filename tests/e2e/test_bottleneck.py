"""What limits, of a bottleneck that is there: a known limit of I/Os a second."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.e2e.devices import slow_loop
from tests.e2e.sessions import iolab, shown, write_study
from tests.e2e.targets import Target, xfs_on_device

pytestmark = [pytest.mark.e2e, pytest.mark.alone]

STUDY = """
format = 1
id = "limits"
title = "What limits"

[[workload]]
id = "rand-read"
rw = "randread"
bs = "4k"
iodepth = {depths}
filesize = "64m"

[method]
warmup = "1s"
runtime = "4s"
repeats = 2
settle = "0s"
idle_watch = 0
generator_limit = false
"""

READS_PER_S = 1000


def told(target: Target, folder: Path, depths: str) -> tuple[list[str], Path]:
    """The sentences of a session's report on limits."""
    session, report = folder / "session", folder / "report.md"
    study = write_study(folder, STUDY.format(depths=depths))
    iolab("run", study, "--path", target.path, "--out", session, "--quiet")
    iolab("report", session, "--md", report)
    appendix = report.with_stem("report-appendix")
    texts = [path.read_text(encoding="utf-8") for path in (report, appendix)]
    lines = "\n".join(texts).splitlines()
    return [line for line in lines if " limited by " in line or "at its limit" in line], session


def test_a_known_io_limit_is_named_with_what_it_allows(tmp_path: Path) -> None:
    with slow_loop(READS_PER_S) as device, xfs_on_device(device) as target:
        sentences, session = told(target, tmp_path, "[1, 8, 32]")
    (sentence,) = sentences
    # The device is slow as a control group holds its reads back, which is the limit to name.
    assert "limited by the I/O limit of a control group, which allows 1 k IOPS of reads" in sentence
    rates = [one["metrics"]["iops"]["value"] for one in shown(session)["results"]]
    assert max(rates) < 1.1 * READS_PER_S  # less on a machine whose processors others use
