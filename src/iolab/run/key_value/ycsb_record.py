"""What clients of YCSB left, read into their evidence, and what speaks against the run."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from iolab.errors import EngineError
from iolab.model.key_value_run import KeyValueRun
from iolab.model.study import Method
from iolab.model.ycsb import YcsbJob
from iolab.run.engines.hdr_log import HdrLog, read_hdr_log
from iolab.run.engines.log import IntervalLog
from iolab.run.engines.ycsb_intervals import intervals_of
from iolab.run.engines.ycsb_output import parse, ycsb_faults
from iolab.run.evidence import Evidence
from iolab.run.hosts.text import printable
from iolab.run.key_value.embedded import DatabaseStart
from iolab.run.key_value.ycsb_process import Printed
from iolab.run.start import NS_PER_S, offset_of

NO_SEED: Final = 0
"""YCSB 0.17.0 draws its keys from random streams that cannot be given a seed."""

LEAST_SHARE: Final = 0.5
"""Of the runtime: clients that met for less were never one fleet."""

SEE_OUTPUT: Final = "See what YCSB printed in the session's folder, and run again."


@dataclass(frozen=True, slots=True)
class Client:
    """What is known of one client's part: its job, its logs' names, its database at the start."""

    job: YcsbJob
    seconds: int
    logs: tuple[str, ...]
    start: DatabaseStart | None
    printed: Printed


def read_back(mine: Evidence, client: Client) -> tuple[str, ...]:
    """Fill in what a client's output and latency logs tell; why it is not what was asked for.

    A client that was halted is not held against its job: it has no summary, and its logs end early.
    """
    output = parse(bytes(client.printed.stdout), bytes(client.printed.stderr))
    logs = [_log(mine, name) for name in client.logs if name in mine.files]
    intervals = intervals_of(logs)
    mine.intervals = IntervalLog.of(intervals)
    if intervals:
        first, last = intervals[0], intervals[-1]
        mine.span = (first.end_real_ns - first.span_ns, last.end_real_ns)
    halted = mine.ending is None or mine.ending.halted
    faults = () if halted else ycsb_faults(output, client.job, logs, client.seconds)
    mine.key_value = KeyValueRun(
        counts=output.counts,
        seed=NO_SEED,
        copied_by=client.start.copied_by if client.start else "",
        start=client.start.shape if client.start else None,
        statistics=output.statistics,
        reported_ops_per_s=output.reported_ops_per_s,
        reported_s=output.reported_s,
        faults=faults,
    )
    return faults


def fault_of(mine: Evidence, faults: Sequence[str]) -> EngineError:
    """What speaks against a client's part of the run, as an error."""
    said = printable("; ".join(faults)).rstrip(".")
    return EngineError(f"YCSB on host '{mine.name}': {said}.", SEE_OUTPUT)


def require_in_common(evidence: Sequence[Evidence], method: Method) -> None:
    """EngineError unless all clients had the warm-up and half the runtime in common, by their logs.

    Clients get time enough for all of it; what lacks beyond that is for the checks to judge.
    """
    spans = [
        (mine.span[0] - offset_of(mine).offset_ns, mine.span[1] - offset_of(mine).offset_ns)
        for mine in evidence
        if mine.span
    ]
    common_s = 0.0
    if len(spans) == len(evidence):
        common_ns = min(end for _, end in spans) - max(start for start, _ in spans)
        common_s = max(common_ns, 0) / NS_PER_S
    if common_s < method.warmup_s + LEAST_SHARE * method.runtime_s:
        wanted_s = method.warmup_s + method.runtime_s
        raise EngineError(
            f"All clients together measured for {common_s:.1f} s, and {wanted_s:g} s of warm-up "
            "and runtime were asked for: one of them came to its start too late.",
            "See that no client is busy with anything else, and run again.",
        )


def _log(mine: Evidence, name: str) -> HdrLog:
    return read_hdr_log(mine.files[name].unpacked())
