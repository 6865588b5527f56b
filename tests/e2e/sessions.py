"""Sessions as a user makes them: the installed command in a process of its own."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import zstandard

from tests.processes import run_program

IOLAB = Path(sys.executable).with_name("iolab")
SESSION_LIMIT_S = 180

STUDY = """
format = 1
id = "proof"
title = "Proof on a file system of our own"
question = "Do iolab's numbers agree with fio's and with the kernel's?"

[[workload]]
id = "rand-read"
rw = "randread"
bs = "4k"
iodepth = 4
numjobs = 2
filesize = "64m"

[[workload]]
id = "rand-mix"
rw = "randrw"
rwmixread = 70
bs = "4k"
iodepth = 4
numjobs = 2
filesize = "64m"

[[workload]]
id = "seq-write"
rw = "write"
bs = "128k"
iodepth = 2
numjobs = 1
filesize = "64m"

[method]
warmup = "0s"
runtime = "2s"
settle = "0s"
idle_watch = 0
generator_limit = false
"""


def write_study(folder: Path, text: str = STUDY) -> Path:
    """The study as a file."""
    path = folder / "study.toml"
    path.write_text(text, encoding="utf-8")
    return path


def iolab(
    *words: str | Path, expect: int = 0, limit_s: float = SESSION_LIMIT_S
) -> subprocess.CompletedProcess[str]:
    """Run the command to its end; its exit code must be the expected one."""
    done = run_program([str(IOLAB), *map(str, words)], timeout=limit_s)
    assert done.returncode == expect, f"exit {done.returncode}\n{done.stdout}\n{done.stderr}"
    return done


def shown(session: Path) -> dict[str, Any]:
    """The session as `iolab show --json` tells it."""
    document: dict[str, Any] = json.loads(iolab("show", session, "--json").stdout)
    return document


def manifest_of(session: Path, workload: str) -> tuple[Path, dict[str, Any]]:
    """The first run's folder and manifest of a workload."""
    for path in sorted(session.glob("points/*/run-1/manifest.json")):
        manifest: dict[str, Any] = json.loads(path.read_bytes())
        if manifest["run"]["point"]["workload"] == workload:
            return path.parent, manifest
    raise LookupError(workload)


def fio_said(session: Path, workload: str) -> dict[str, Any]:
    """fio's own final document of that workload's first run."""
    folder, _ = manifest_of(session, workload)
    packed = next((folder / "engine").glob("*.zst")).read_bytes()
    with zstandard.ZstdDecompressor().stream_reader(packed, read_across_frames=True) as frames:
        text = frames.read().decode()
    last = text[text.rindex("\n{\n") :] if "\n{\n" in text else text
    document: dict[str, Any] = json.loads(last)
    return document


def result_of(document: dict[str, Any], workload: str) -> dict[str, Any]:
    """The first result of that workload."""
    found: dict[str, Any] = next(r for r in document["results"] if r["workload"] == workload)
    return found


def descendants(ancestor: int) -> dict[int, str]:
    """The program of every process below that one, by process id; zombies are left out."""
    table: dict[int, tuple[int, str]] = {}
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            stat = (folder / "stat").read_text(encoding="utf-8")
        except OSError:
            continue  # it has just ended
        program, _, rest = stat.partition("(")[2].rpartition(")")
        state, parent = rest.split()[:2]
        if state != "Z":
            table[int(folder.name)] = (int(parent), program)
    found: dict[int, str] = {}
    generation = {ancestor}
    while generation:
        generation = {pid for pid, (parent, _) in table.items() if parent in generation}
        found |= {pid: table[pid][1] for pid in generation}
    return found


def alive(pids: Iterable[int]) -> list[int]:
    """Those of the processes that have not ended."""
    running = []
    for pid in pids:
        try:
            stat = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8")
        except OSError:
            continue
        if stat.rpartition(")")[2].split()[0] != "Z":
            running.append(pid)
    return running
