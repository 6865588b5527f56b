"""The agent's engine of checkpoints: what it is told of a host's ranks, and what it tells."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, Final

from iolab.core.run import EngineTotals
from iolab.errors import EngineError
from iolab.hosts.agent_engine import compact_ascii_json
from iolab.hosts.engine import Command
from iolab.hosts.engine_lines import (
    EngineLineReader,
    LineError,
    parse_operation_interval,
    require_count,
    require_object,
    require_operation_table,
)
from iolab.hosts.engine_totals import parse_engine_totals
from iolab.hosts.intervals import DirectionInterval
from iolab.loads.checkpoint.placement import RankFile, RankWork
from iolab.loads.checkpoint.workload import CheckpointJob, PhaseName, RankRun

FORMAT: Final = 1
ARGV: Final = ("iolab-agent", "checkpoint")
SPEC_BYTES_MAX: Final = 1 << 20
"""What one message to the agent holds."""

INTERVAL_MS: Final = 1000
LIMIT_S_MIN: Final = 600.0
SLOWEST_BYTES_PER_S: Final = 5e6
"""Of one host: a phase that is slower hangs."""

REPORT_LIMIT_BYTES: Final = 16 << 10
SPARE_BYTES: Final = 4 << 20
"""A line an interval, of bins that are in use, and some more for the head and the end."""

REMOVAL_LIMIT_S: Final = 600.0
REMOVAL_OUTPUT_BYTES: Final = 64 << 10


def phase_command(
    job: CheckpointJob,
    phase: PhaseName,
    rank_works: Sequence[RankWork],
    folder_by_client_index: Mapping[int, str],
    client_index: int,
    *,
    name_prefix: str,
    seed: int,
    sequence: int,
) -> Command:
    """The process of one client in a phase. EngineError where it has more ranks than fit.

    `folder_by_client_index` has the folders of the clients whose files it reads, and its own.
    """
    spec = {
        **_checkpoint_spec(job, rank_works, folder_by_client_index, client_index, name_prefix),
        "phase": phase.value,
        "verify": job.verifies_contents,
        "request_bytes": job.request_bytes(phase),
        "in_flight": job.requests_in_flight_per_rank(phase),
        "seed": seed,
        "sequence": sequence,
    }
    if any(read.part_count for work in rank_works for read in work.files):
        spec["items"] = [
            [item.count, item.size_bytes] for item in job.checkpoint_files.tensor_groups
        ]
    moved = sum(read.file.size_bytes for work in rank_works for read in work.files)
    limit_s = LIMIT_S_MIN + moved / SLOWEST_BYTES_PER_S
    return Command(
        argv=ARGV,
        cwd=folder_by_client_index[client_index],
        stdin=_encode_spec(spec),
        job_file=compact_ascii_json({**spec, "ranks": len(rank_works)}),
        wall_limit_s=limit_s,
        output_limit_bytes=math.ceil(limit_s) * REPORT_LIMIT_BYTES + SPARE_BYTES,
        waits_for_start=True,
    )


def removal_command(
    job: CheckpointJob,
    rank_works: Sequence[RankWork],
    folder_by_client_index: Mapping[int, str],
    client_index: int,
    *,
    name_prefix: str,
) -> Command:
    """The process that removes what a client saved, or began to save."""
    spec = {
        **_checkpoint_spec(job, rank_works, folder_by_client_index, client_index, name_prefix),
        "phase": "remove",
        "verify": False,
        "request_bytes": job.write_bytes,
        "in_flight": 1,
        "seed": 0,
        "sequence": 1,
    }
    text = _encode_spec(spec)
    return Command(
        ARGV, folder_by_client_index[client_index], text, "", REMOVAL_LIMIT_S, REMOVAL_OUTPUT_BYTES
    )


def checkpoint_file_path(
    rank_file: RankFile,
    folder_by_client_index: Mapping[int, str],
    client_index: int,
    name_prefix: str,
) -> str:
    """Where a client finds a file: by its name in its own folder, else by its path."""
    name = f"{name_prefix}{rank_file.file.name}"
    return (
        name
        if rank_file.owner_client_index == client_index
        else f"{folder_by_client_index[rank_file.owner_client_index]}/{name}"
    )


def _checkpoint_spec(
    job: CheckpointJob,
    rank_works: Sequence[RankWork],
    folder_by_client_index: Mapping[int, str],
    client_index: int,
    name_prefix: str,
) -> dict[str, Any]:
    return {
        "format": FORMAT,
        "durable": job.durable.value,
        "direct": job.direct,
        "interval_ms": INTERVAL_MS,
        "ranks": [
            {
                "rank": work.rank,
                "files": [
                    {
                        "path": checkpoint_file_path(
                            read, folder_by_client_index, client_index, name_prefix
                        ),
                        "number": read.file.number,
                        "bytes": read.file.size_bytes,
                        **(
                            {"slice": [read.first_part, read.end_part, read.part_count]}
                            if read.part_count
                            else {}
                        ),
                    }
                    for read in work.files
                ],
            }
            for work in rank_works
        ],
    }


def _encode_spec(spec: Mapping[str, Any]) -> bytes:
    text = compact_ascii_json(spec)
    if len(text) > SPEC_BYTES_MAX:
        message = f"A host's files take {len(text):,} bytes, a message to the agent holds 1 MiB."
        raise EngineError(message, "Give more hosts, or fewer ranks.")
    return text.encode("ascii")


class CheckpointLineReader(EngineLineReader):
    """Reads what the engine prints of one phase on one host; `ranks` when it has ended."""

    engine_title = "checkpoint"

    def __init__(self, phase: PhaseName, rank_numbers: range) -> None:
        super().__init__()
        self._direction = phase.direction
        self._rank_numbers = rank_numbers
        self.ranks: tuple[RankRun, ...] = ()

    def parse_interval_line(self, document: dict[str, Any]) -> tuple[DirectionInterval, ...]:
        """Writes of a save, reads of a restore."""
        part = require_operation_table(document, self._direction.key)
        return (parse_operation_interval(self._direction, part),)

    def keep_load_details(self, first_line: dict[str, Any], last_line: dict[str, Any]) -> None:  # noqa: ARG002
        """What each rank did."""
        self.ranks = tuple(_parse_rank_run(document) for document in _rank_documents(last_line))

    def parse_totals(self, first_line: dict[str, Any], last_line: dict[str, Any]) -> EngineTotals:
        """See `EngineLineReader`."""
        return parse_engine_totals(
            first_line, last_line, (self._direction,), max(len(self._rank_numbers), 1)
        )

    def add_incomplete_run_faults(self, totals: EngineTotals, last_line: dict[str, Any]) -> None:  # noqa: ARG002
        """Ranks that failed, and others than were asked for."""
        for document in _rank_documents(last_line):
            if document.get("error"):
                self.faults.add_fault(f"rank {document['rank']} failed with {document['error']}")
        if [rank.rank for rank in self.ranks] != list(self._rank_numbers):
            self.faults.add_fault(
                f"it told of {len(self.ranks)} ranks, and {len(self._rank_numbers)} were asked for"
            )


def _rank_documents(last_line: Mapping[str, Any]) -> list[dict[str, Any]]:
    documents = last_line.get("ranks")
    if not isinstance(documents, list):
        raise LineError("it told nothing of its ranks")
    return [require_object(document) for document in documents]


def _parse_rank_run(document: dict[str, Any]) -> RankRun:
    return RankRun(**{name: require_count(document, name) for name in RankRun.__struct_fields__})
