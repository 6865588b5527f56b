"""What iolab costs the load: fio under iolab against the same fio job alone, in turn.

Prints the ratio of IOPS pair by pair and their median, which is wanted at 0.99 or above. Both read
the same files, and the order within a pair is swapped each time, since machines drift. Run as root
for a target on zram, which has no device limit and so shows the whole cost; else it measures under
the directory that BENCH_PATH names. BENCH_PAIRS and BENCH_RUNTIME_S say how often and how long.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

PAIRS = int(os.environ.get("BENCH_PAIRS", "7"))
RUNTIME_S = int(os.environ.get("BENCH_RUNTIME_S", "8"))
IOLAB = Path(sys.executable).with_name("iolab")
FILE_MIB = 256
JOBS = ((1, 1), (1, 32), (4, 8))
RESET_TRIES = 50
RESET_RETRY_S = 0.1

STUDY = """
format = 1
id = "overhead"
title = "One fio job under iolab"
question = "What does iolab cost the load?"

[target]
keep_files = true

[[workload]]
id = "rand-read-4k"
rw = "randread"
bs = "4k"
iodepth = {iodepth}
numjobs = {numjobs}
filesize = "{file_mib}m"

[method]
warmup = "0s"
runtime = "{runtime_s}s"
repeats = 1
settle = "0s"

[telemetry]
interval = "1s"
"""


@contextmanager
def target() -> Iterator[Path]:
    """An ext4 on zram as root, else a directory."""
    if os.geteuid() != 0 or not Path("/sys/class/zram-control").exists():
        base = Path(os.environ.get("BENCH_PATH", "scratch"))
        base.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=base) as folder:
            yield Path(folder)
        return
    number = Path("/sys/class/zram-control/hot_add").read_text(encoding="ascii").strip()
    Path(f"/sys/block/zram{number}/disksize").write_text("4G", encoding="ascii")
    device = f"/dev/zram{number}"
    subprocess.run(["mkfs.ext4", "-q", device], check=True)
    try:
        with tempfile.TemporaryDirectory() as folder:
            subprocess.run(["mount", device, folder], check=True)
            try:
                yield Path(folder)
            finally:
                subprocess.run(["umount", folder], check=True)
    finally:
        remove_zram(number)


def remove_zram(number: str) -> None:
    """Give the memory back; udev may still look at the device for a moment."""
    for attempt in range(1, RESET_TRIES + 1):
        try:
            Path(f"/sys/block/zram{number}/reset").write_text("1", encoding="ascii")
            Path("/sys/class/zram-control/hot_remove").write_text(number, encoding="ascii")
        except OSError:
            if attempt == RESET_TRIES:
                raise
            time.sleep(RESET_RETRY_S)
        else:
            return


def under_iolab(path: Path, iodepth: int, numjobs: int) -> tuple[float, list[str], str]:
    """IOPS that fio itself reports under iolab, with its argument list and job file."""
    with tempfile.TemporaryDirectory() as folder:
        study = Path(folder) / "study.toml"
        study.write_text(
            STUDY.format(iodepth=iodepth, numjobs=numjobs, file_mib=FILE_MIB, runtime_s=RUNTIME_S),
            encoding="utf-8",
        )
        session = Path(folder) / "session"
        command = [IOLAB, "run", study, "--path", path, "--out", session, "--quiet"]
        subprocess.run([str(word) for word in command], check=True, stdout=subprocess.DEVNULL)
        manifest = json.loads(next(session.glob("points/*/run-1/manifest.json")).read_bytes())
        host = manifest["hosts"][0]
        return host["totals"]["read"]["iops"], host["argv"], host["job_file"]


def alone(path: Path, job_file: str) -> float:
    """IOPS that the same fio job on the same files reports when nothing watches it."""
    done = subprocess.run(
        ["fio", "--output-format=json+", "--eta=never", "-"],
        check=True,
        capture_output=True,
        text=True,
        cwd=path / "iolab-scratch-local",
        input=job_file,
        # As the agent starts it: the kernel shares processors out by session (autogroup).
        start_new_session=True,
    )
    return float(json.loads(done.stdout[done.stdout.index("{") :])["jobs"][0]["read"]["iops"])


def main() -> None:
    """Print one row for each job shape."""
    argparse.ArgumentParser(description=__doc__).parse_args()
    print(f"fio under iolab / fio alone, IOPS, {PAIRS} pairs of {RUNTIME_S} s each")
    with target() as path:
        for numjobs, iodepth in JOBS:
            ratios = []
            _, _, job_file = under_iolab(path, iodepth, numjobs)
            alone(path, job_file)
            for pair in range(PAIRS):
                if pair % 2:
                    ours, theirs = under_iolab(path, iodepth, numjobs)[0], alone(path, job_file)
                else:
                    theirs, ours = alone(path, job_file), under_iolab(path, iodepth, numjobs)[0]
                ratios.append(ours / theirs)
            shown = " ".join(f"{ratio:.3f}" for ratio in ratios)
            print(
                f"numjobs={numjobs} iodepth={iodepth}: median {statistics.median(ratios):.3f}"
                f" [{min(ratios):.3f}-{max(ratios):.3f}]   {shown}"
            )


if __name__ == "__main__":
    main()
