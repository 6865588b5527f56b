"""The command as a process of its own, and sessions to show."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from bench.synthetic import Shape, make_facts, make_plan, make_record, make_result, make_study
from msgspec.structs import replace

from iolab.core.events import SessionStatus
from iolab.core.study import Study
from iolab.store.writer import SessionWriter
from tests.processes import run_program

LIMIT_S: Final = 240
"""What takes a second takes a minute beside enough others; pytest ends a test after 300 s."""

SHAPE: Final = Shape(points=6, seconds=2, hosts=2, cores=2, disks=1, nics=1)
STUDY: Final = make_study(SHAPE)
_PLAN: Final = make_plan(SHAPE)
PLAN: Final = replace(_PLAN, runs=tuple(replace(run, order=run.order + 1) for run in _PLAN.runs))
RESULTS: Final = tuple(make_result(make_record(run, SHAPE)) for run in PLAN.runs)


def iolab(
    *arguments: str | Path, cwd: Path | None = None, env: Mapping[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    """Run `iolab` off a terminal and wait for its end."""
    return run_program(
        command(*arguments), cwd=cwd, env=environment(env), encoding="utf-8", timeout=LIMIT_S
    )


def unprivileged(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
    """The same where root may not write everywhere: what permissions say then holds."""
    as_root = ("setpriv", "--bounding-set=-dac_override,-dac_read_search,-fowner")
    return run_program(
        [*(as_root if os.geteuid() == 0 else ()), *command(*arguments)],
        env=environment(),
        encoding="utf-8",
        timeout=LIMIT_S,
    )


def command(*arguments: str | Path) -> list[str]:
    """The argument list that starts `iolab` as it lies in this checkout."""
    return [sys.executable, "-m", "iolab", *(str(word) for word in arguments)]


def environment(more: Mapping[str, str] | None = None) -> dict[str, str]:
    """Ours without what changes the shape of output, and without the user's settings."""
    kept = {
        name: value
        for name, value in os.environ.items()
        if name not in {"COLUMNS", "NO_COLOR", "FORCE_COLOR", "IOLAB_DEBUG", "PAGER"}
    }
    return {**kept, "XDG_CONFIG_HOME": "/nonexistent", **(more or {})}


def make_session(directory: Path, committed: int = len(PLAN.runs), study: Study = STUDY) -> Path:
    """A session of synthetic runs, ended when all of them are committed."""
    with SessionWriter.create(directory, study, PLAN, "session-1", ("iolab", "run")) as writer:
        writer.record_host_facts_at_start(make_facts(SHAPE), "0.1.0")
        for run in PLAN.runs[:committed]:
            record = make_record(run, SHAPE)
            writer.commit_run(record, make_result(record), analysis_version=1)
        if committed == len(PLAN.runs):
            writer.end_session_and_close(SessionStatus.DONE)
    return directory
