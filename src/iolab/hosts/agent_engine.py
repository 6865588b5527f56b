"""Engines that are built into the agent: how a process of one is begun."""

from __future__ import annotations

import json
import math
from typing import Final

from iolab.hosts.engine import Command

TIMED_INTERVAL_MS: Final = 1000
TIMED_END_LIMIT_S: Final = 60.0
"""From the end of submission: I/Os that hang are given up after ten seconds."""

TIMED_REPORT_LIMIT_BYTES: Final = 64 << 10
SPARE_REPORTS: Final = 64
"""A line an interval, of bins that are in use, and some more for the head and the end."""


def compact_ascii_json(document: object) -> str:
    """A document as engines of the agent are told it: ASCII, the same whenever it is made."""
    return json.dumps(document, separators=(",", ":"), sort_keys=True)


def timed_agent_engine_command(
    argv: tuple[str, ...], directory: str, spec: str, seconds: float, recorded_spec: str
) -> Command:
    """The process of an engine of the agent that makes load for a set time; `spec` says which.

    `recorded_spec` is what the run's record has of that.
    """
    limit_s = seconds + TIMED_END_LIMIT_S
    return Command(
        argv=argv,
        cwd=directory,
        stdin=spec.encode("ascii"),
        job_file=recorded_spec,
        wall_limit_s=limit_s,
        output_limit_bytes=(math.ceil(limit_s) + SPARE_REPORTS) * TIMED_REPORT_LIMIT_BYTES,
        waits_for_start=True,
    )
