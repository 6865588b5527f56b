"""Reads and writes of GPU memory: NVIDIA's gdsio, and nixlbench of NIXL."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from iolab.importers.files import ForeignFile, ForeignFileError, ImportFileSet, parse_number
from iolab.importers.foreign_run import (
    ForeignRun,
    ImportedRunDetails,
    OperationFigures,
    indicator_for_block_size,
)
from iolab.importers.summaries import (
    LOG_PREFIX,
    parse_scaled_number,
    summary_row_run,
    truncated_names_and_values,
)
from iolab.units import GIB, NS_PER_US

KIB: Final = 1024

_GDSIO_ROW: Final = re.compile(
    r"IoType: (?P<type>\w+)\s+XferType: (?P<transfer>\w+)\s+Threads: (?P<threads>\d{1,7})\s+"
    r"(?:IoDepth: (?P<depth>\d{1,7})\s+)?"
    r"DataSetSize: (?P<moved>\d{1,18})(?:/(?P<size>\d{1,18}))?\(KiB\)\s+"
    r"IOSize: (?P<block>[\d-]{1,60})\(KiB\)\s+Throughput: (?P<rate>[\d.]{1,40}) GiB/sec,\s+"
    r"Avg_Latency: (?P<latency>[\d.]{1,40}) usecs\s+ops: (?P<count>\d{1,18})\s+"
    r"total_time (?P<seconds>[\d.]{1,40}) secs"
)
_GDSIO_COMMAND: Final = re.compile(r"(?:^|[\s/])gdsio(?:_verify)? +-")

TRANSFERS_BUFFERED: Final = {"CPU_CACHED_GPU": True, "GPUD": False, "GPUD_ASYNC": False}
"""Ways of a transfer of which gdsio tells whether the page cache is in them."""

_NIXL_OPTION: Final = re.compile(r"^[^:]*? \(--(?P<name>\w+)[=\])].*?: (?P<value>.*)$")
_NIXL_HEADING: Final = re.compile(r"^Block Size \(B\)\s+Batch Size\s")
_NIXL_ROW: Final = re.compile(r"^\d+(?:\s+[\d.e+-]+){3,20}\s*$")
_NIXL_KNOWN: Final = re.compile(
    r"^(?:[-*]{20,}|NIXLBench Configuration|ETCD Endpoint .*|\s*)$|^[^:]{1,80} : "
)

NIXL_IGNORED: Final = {
    "etcd_endpoints": "where workers meet is no load",
    "num_iter": "how long it lasts, not what it does",
    "warmup_iter": "how long it lasts, not what it does",
    "start_block_size": "each row has its own block size",
    "max_block_size": "each row has its own block size",
    "start_batch_size": "each row has its own batch size",
    "max_batch_size": "each row has its own batch size",
    "filepath": "where the files lie is the target, not the load",
}

_COLUMNS: Final = re.compile(
    r"Block Size \(B\)|Batch Size|Aggregate B/W \(GB/Sec\)|B/W \([GM]i?B/Sec\)|Network Util \(%\)|"
    r"(?:Avg|P99) (?:Lat\.|Prep|Post|Tx) \(us\)"
)


class GdsioImporter:
    """Each line of results is a run."""

    tool: Final = "gdsio"

    def recognises(self, file: ForeignFile) -> bool:
        """By a line of results."""
        return b"XferType: " in file.utf8_bytes and _GDSIO_ROW.search(file.text) is not None

    def read(self, file: ForeignFile, file_set: ImportFileSet) -> Sequence[ForeignRun]:
        """Each line; lines of commands hold no result."""
        del file_set
        runs = []
        for match in _GDSIO_ROW.finditer(file.text):
            first = file.line_number_at(match.start())
            runs.append(_gdsio_run(file, first, match))
            file.line_coverage.mark_read(first, file.line_number_at(match.end() - 1))
        for number, line in enumerate(file.lines, start=1):
            if _GDSIO_COMMAND.search(line):
                file.line_coverage.mark_read(number)
        return runs


def _gdsio_run(file: ForeignFile, line_number: int, match: re.Match[str]) -> ForeignRun:
    moved = int(match["moved"]) * KIB
    block = parse_number(match["block"])
    operation = "read" if match["type"].upper().endswith("READ") else "write"
    count, seconds = int(match["count"]), parse_number(match["seconds"])
    figures = OperationFigures(
        operation=operation,
        count=count,
        bytes=moved,
        seconds=seconds,
        rate_per_s=count / seconds if seconds else None,
        bw_bytes_per_s=parse_scaled_number(match["rate"], GIB),
        lat_mean_ns=parse_scaled_number(match["latency"], NS_PER_US),
        printed=truncated_names_and_values(
            {
                "Throughput (GiB/sec)": match["rate"],
                "Avg_Latency (usecs)": match["latency"],
                "ops": match["count"],
                "total_time (secs)": match["seconds"],
            }
        ),
    )
    details = ImportedRunDetails(
        tool="gdsio",
        version="",
        files=(file.name,),
        buffered=TRANSFERS_BUFFERED.get(match["transfer"]),
        notes=("rates are of all threads together; operations a second are ops over total_time",),
    )
    threads = int(match["threads"])
    settings = {
        "IoType": match["type"],
        "XferType": match["transfer"],
        "Threads": match["threads"],
        "IoDepth": match["depth"] or "",
        "IOSize (KiB)": match["block"],
        "DataSetSize (KiB)": match["size"] or "",
    }
    return summary_row_run(
        details,
        f"gdsio {match['type'].lower()}",
        (file, line_number),
        (figures,),
        settings,
        in_flight=threads if match["transfer"] in ("GPUD", "CPUONLY", "CPU_GPU") else None,
        indicator=indicator_for_block_size(None if block is None else block * KIB),
        client="all threads",
    )


class NixlbenchImporter:
    """Each row of its table is a run."""

    tool: Final = "nixlbench"

    def recognises(self, file: ForeignFile) -> bool:
        """By the heading of its table."""
        return b"Block Size (B)" in file.utf8_bytes and any(
            _NIXL_HEADING.match(LOG_PREFIX.sub("", line).strip()) for line in file.lines
        )

    def read(self, file: ForeignFile, file_set: ImportFileSet) -> Sequence[ForeignRun]:
        """Rows below each heading, with the configuration that stands before it."""
        del file_set
        runs = list(_read_nixl_runs_and_mark_lines(file))
        if not runs:
            raise ForeignFileError("its table has no row: it was cut short or failed.")
        return runs


def _read_nixl_runs_and_mark_lines(file: ForeignFile) -> Iterator[ForeignRun]:
    settings: dict[str, str] = {}
    columns: list[str] = []
    for number, raw in enumerate(file.lines, start=1):
        line = LOG_PREFIX.sub("", raw).strip()
        if _NIXL_HEADING.match(line):
            columns = re.split(r"\s{2,}", line)
            if "B/W (GB/Sec)" not in columns:
                # Columns are 15 characters wide, and a long name leaves one blank.
                columns = [column for column in _COLUMNS.findall(line) if column]
            file.line_coverage.mark_read(number)
        elif columns and _NIXL_ROW.match(line):
            words = line.split()
            if len(words) != len(columns):
                reason = "This row has not as many columns as its heading."
                file.line_coverage.mark_left_out(number, number, reason)
                continue
            file.line_coverage.mark_read(number)
            yield _nixl_run(file, number, dict(zip(columns, words, strict=True)), settings)
        elif option := _NIXL_OPTION.match(line):
            if columns:
                settings, columns = {}, []
            settings[option["name"]] = option["value"].strip()
            file.line_coverage.mark_read(number)
        elif _NIXL_KNOWN.match(line):
            file.line_coverage.mark_read(number)


def _nixl_run(
    file: ForeignFile, line_number: int, row: Mapping[str, str], settings: Mapping[str, str]
) -> ForeignRun:
    rate = row.get("Aggregate B/W (GB/Sec)", row.get("B/W (GB/Sec)"))
    block = parse_number(row["Block Size (B)"])
    bytes_per_s = parse_scaled_number(rate, 1e9)
    operation = settings.get("op_type", "").strip().lower()
    figures = OperationFigures(
        operation=operation if operation in ("read", "write") else "mixed",
        rate_per_s=bytes_per_s / block if bytes_per_s is not None and block else None,
        bw_bytes_per_s=bytes_per_s,
        lat_mean_ns=parse_scaled_number(row.get("Avg Lat. (us)"), NS_PER_US),
        printed=truncated_names_and_values(row),
    )
    details = ImportedRunDetails(
        tool="nixlbench",
        version="",
        files=(file.name,),
        notes=(
            "the mean latency is the time of all transfers over their number, transfers a second "
            "are bytes a second over a block; percentiles are of a batch's phases and not read",
        ),
    )
    own = {
        "block size": row["Block Size (B)"],
        "batch size": row.get("Batch Size", ""),
        **settings,
    }
    return summary_row_run(
        details,
        f"nixlbench {operation or 'transfers'}",
        (file, line_number),
        (figures,),
        own,
        ignored_setting_reasons=NIXL_IGNORED,
        indicator=indicator_for_block_size(block),
        client="all workers",
    )
