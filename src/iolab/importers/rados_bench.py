"""Ceph's `rados bench`: what it prints, and what CBT (the Ceph benchmarking tool) keeps of it."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, Final

import msgspec

from iolab.importers.files import ForeignFile, ForeignFileError, ImportFileSet, parse_number
from iolab.importers.foreign_run import (
    ForeignRun,
    ImportedRunDetails,
    OperationFigures,
    indicator_for_block_size,
)
from iolab.importers.sections import split_into_sections
from iolab.importers.summaries import (
    parse_scaled_number,
    summary_row_run,
    truncated_names_and_values,
)
from iolab.record import DECODE_ERRORS
from iolab.units import MIB, NS_PER_S

_BEGIN: Final = re.compile(r"^\s*(?:Maintaining \d+ concurrent|hints = \d|Total time run: )")
_FIGURE: Final = re.compile(r"^([A-Z][\w ]{2,40}(?:\([A-Za-z/]+\))?):?\s{1,40}([\d.e+-]{1,40})\s*$")
_CONCURRENT: Final = re.compile(
    r"Maintaining (\d{1,9}) concurrent (\w+) of (\d{1,18}) bytes to objects of size (\d{1,18})"
)
_KNOWN: Final = re.compile(
    r"^(?:hints = \d+|Maintaining .*|Object prefix: .*|\s+sec Cur ops .*|.*\bmin lat: .*|"
    r"\s*\d+(?:\s+(?:[\d.e+-]+|-)){5,7}\s*|Cleaning up .*|Removed \d+ objects|"
    r"Clean up completed .*|(?:\$ *)?rados .*bench .*)$"
)
_DATED: Final = re.compile(r"^\d{4}-\d\d-\d\d[ T][\d:.+]+ ")
_JSON_NAMES: Final = {
    "total_time_run": "Total time run",
    "total_writes_made": "Total writes made",
    "total_reads_made": "Total reads made",
    "write_size": "Write size",
    "read_size": "Read size",
    "object_size": "Object size",
    "bandwidth": "Bandwidth (MB/sec)",
    "stddev_bandwidth": "Stddev Bandwidth",
    "max_bandwidth": "Max bandwidth (MB/sec)",
    "min_bandwidth": "Min bandwidth (MB/sec)",
    "average_iops": "Average IOPS",
    "stddev_iops": "Stddev IOPS",
    "max_iops": "Max IOPS",
    "min_iops": "Min IOPS",
    "average_latency": "Average Latency(s)",
    "stddev_latency": "Stddev Latency(s)",
    "max_latency": "Max latency(s)",
    "min_latency": "Min latency(s)",
}
"""What `--format json` calls the figures of the text."""

_LEFT_OUT: Final = "These are the results of {0} once more."


class RadosBenchImporter:
    """Each block of totals is a run."""

    tool: Final = "rados bench"

    def recognises(self, file: ForeignFile) -> bool:
        """By the line of its time, and one of its operations."""
        head = file.utf8_bytes
        return _has_time_and_count(
            head, b"Total time run", (b"Total writes made", b"Total reads made")
        ) or (
            _has_time_and_count(
                head, b'"total_time_run"', (b'"total_writes_made"', b'"total_reads_made"')
            )
        )

    def read(self, file: ForeignFile, file_set: ImportFileSet) -> Sequence[ForeignRun]:
        """The totals of a text, or those that CBT made a JSON object of."""
        if file.first_bytes.lstrip().startswith(b"{"):
            return _read_json_runs_and_mark_lines(file, file_set)
        runs = []
        _mark_progress_lines(file)
        for section in split_into_sections(file, _BEGIN):
            totals, line = {}, section.first_line
            for number, raw in section.numbered_lines:
                text = _DATED.sub("", raw)
                figure = _FIGURE.match(text.strip())
                if figure:
                    if figure[1] == "Total time run":
                        line = number
                    totals[figure[1]] = figure[2]
                    file.line_coverage.mark_read(number)
            # What stands before the totals of this section is in the one before it.
            concurrent = _CONCURRENT.search(_output_of_same_run_before(file, line))
            if "Total time run" in totals:
                runs.append(_run_of_totals(file, line, totals, concurrent[1] if concurrent else ""))
        if not runs:
            raise ForeignFileError("rados bench printed no totals: it was cut short.")
        return runs


def _mark_progress_lines(file: ForeignFile) -> None:
    """Count what stands between the totals as read."""
    for number, raw in enumerate(file.lines, start=1):
        if _KNOWN.match(_DATED.sub("", raw)):
            file.line_coverage.mark_read(number)


def _has_time_and_count(content: bytes, time_key: bytes, count_keys: Sequence[bytes]) -> bool:
    return time_key in content and any(count in content for count in count_keys)


def _output_of_same_run_before(file: ForeignFile, line_number: int) -> str:
    """The lines of the same invocation before its totals."""
    lines = file.lines[: line_number - 1]
    start = next(
        (
            place + 1
            for place in range(len(lines) - 1, -1, -1)
            if lines[place].lstrip().startswith(("Min latency", "Total time run"))
        ),
        0,
    )
    return "\n".join(lines[start:])


def _read_json_runs_and_mark_lines(
    file: ForeignFile, file_set: ImportFileSet
) -> Sequence[ForeignRun]:
    """What `--format json` prints, or CBT's `json_output.N.HOST`.

    Beside that lies `output.N.HOST`, which tells more.
    """
    name = file.path.name
    for other in file_set.files:
        if other.path.parent == file.path.parent and f"json_{other.path.name}" == name:
            file.line_coverage.mark_all_left_out(_LEFT_OUT.format(other.name))
            return []
    try:
        document: Any = msgspec.json.decode(file.utf8_bytes)
    except DECODE_ERRORS as error:
        raise ForeignFileError("it is no JSON object.") from error
    totals = {
        _JSON_NAMES.get(key, key): str(value)
        for key, value in document.items()
        if not isinstance(value, list | dict)
    }
    file.line_coverage.mark_all_read()
    return [_run_of_totals(file, 1, totals, totals.get("concurrent_ios", ""))]


def _run_of_totals(
    file: ForeignFile, line_number: int, totals: Mapping[str, str], concurrent_ios: str
) -> ForeignRun:
    operation = "write" if "Total writes made" in totals else "read"
    count = parse_number(totals.get(f"Total {operation}s made", ""))
    size = parse_number(totals.get(f"{operation.title()} size", ""))
    moved = None if count is None or size is None else round(count * size)
    seconds = parse_number(totals.get("Total time run", ""))
    figures = OperationFigures(
        operation=operation,
        count=None if count is None else round(count),
        bytes=moved,
        seconds=seconds,
        rate_per_s=count / seconds if count is not None and seconds else None,
        bw_bytes_per_s=parse_scaled_number(totals.get("Bandwidth (MB/sec)"), MIB),
        lat_min_ns=_latency_ns(totals, "min"),
        lat_mean_ns=_latency_ns(totals, "average"),
        lat_max_ns=_latency_ns(totals, "max"),
        printed=truncated_names_and_values(totals),
    )
    details = ImportedRunDetails(
        tool="rados bench",
        version="",
        files=(file.name,),
        notes=(
            "MB are of 1,048,576 bytes; operations a second are their number over the time, since "
            "Average IOPS is cut to a whole number",
        ),
    )
    in_flight = parse_number(concurrent_ios)
    settings = {
        "op size": totals.get(f"{operation.title()} size", ""),
        "object size": totals.get("Object size", ""),
        "concurrent ops": concurrent_ios,
    }
    return summary_row_run(
        details,
        f"rados bench {operation}",
        (file, line_number),
        (figures,),
        settings,
        in_flight=None if in_flight is None else round(in_flight),
        indicator=indicator_for_block_size(size),
        client="all operations",
    )


def _latency_ns(totals: Mapping[str, str], statistic: str) -> float | None:
    """`Average Latency(s)`, or of older versions `Average Latency`."""
    for key, value in totals.items():
        if re.fullmatch(rf"{statistic} latency ?(?:\(s\))?", key, re.IGNORECASE):
            return parse_scaled_number(value, NS_PER_S)
    return None
