"""Results of elbencho: its CSV file, and its JSON file with a document a phase."""

from __future__ import annotations

import csv
import io
import json
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any, Final

from msgspec.structs import replace

from iolab.analysis.metrics import is_percentile_supported
from iolab.core.limits import SETTING_CHARACTERS_MAX
from iolab.importers.commands import CommandSyntax, command_settings
from iolab.importers.files import (
    NAME_CHARACTERS,
    ForeignFile,
    ForeignFileError,
    ImportFileSet,
    broken_csv_error,
    dict_or_empty,
    parse_number,
)
from iolab.importers.foreign_run import (
    ForeignRun,
    ImportedClient,
    ImportedClientDetails,
    ImportedRunDetails,
    OperationFigures,
    indicator_for_block_size,
)
from iolab.importers.object_requests import SECRET_OPTIONS, indicator_for_object_size
from iolab.record import Record
from iolab.text import excerpt
from iolab.units import MIB, NS_PER_S, NS_PER_US

TIMED_MIN_S: Final = 0.1
"""elbencho tells whole milliseconds: a shorter phase's rate cannot be computed from them."""

WHOLE_MIN_MIB: Final = 100
"""The CSV file tells whole MiB: fewer cannot be held against a rate."""

BINS_PER_DOUBLING: Final = 4
RESOLUTION: Final = 2 ** (1 / BINS_PER_DOUBLING) - 1
"""Its latencies stand in bins whose ends are so far apart, as a share."""

_PERCENTS: Final = (1.0, 50.0, 75.0, 90.0, 95.0, 99.0, 99.5, 99.9, 99.99)
"""Percentiles that are read from its bins: those it prints, and those of a result."""

_ENTRIES: Final = {
    "MKDIRS": "dir_create",
    "RMDIRS": "dir_remove",
    "STAT": "file_stat",
    "RMFILES": "file_remove",
    "MKBUCKETS": "bucket_create",
    "RMBUCKETS": "bucket_delete",
    "HEADOBJ": "object_head",
    "RMOBJECTS": "object_delete",
    "MPUCOMPL": "object_upload_complete",
    "PUTOBJACL": "object_acl_put",
    "GETOBJACL": "object_acl_get",
    "PUTBACL": "bucket_acl_put",
    "GETBACL": "bucket_acl_get",
    "LISTOBJ": "object_list",
    "LISTOBJ_P": "object_list",
    "MULTIDEL": "object_delete_many",
}
"""elbencho's phases that are counted in files, directories, objects and buckets."""

_MANY_A_REQUEST: Final = {"LISTOBJ", "LISTOBJ_P", "MULTIDEL"}
"""Of these the objects are counted, and the latency is that of a request of many."""

_OBJECT_PATHS: Final = {"bucket", "object"}
"""Types of paths that are on S3."""

_REQUESTED_COLUMNS: Final = (
    "path type",
    "paths",
    "hosts",
    "threads",
    "dirs",
    "files",
    "file size",
    "block size",
    "direct IO",
    "random",
    "random aligned",
    "IO depth",
    "shared paths",
    "truncate",
)
"""Columns of the CSV file that tell what a phase was to do."""

_NO_OPTIONS: Final = (
    *("command", "version", "csvfile", "csvfile_path", "jsonfile", "jsonfile_path", "label"),
    *("benchmark_mode", "iso_date", "timestamp"),
)

_IGNORED: Final = {
    **dict.fromkeys(
        ("resfile", "livecsv", "livecsvex", "opslog", "res_file_path", "live_csv_file_path"),
        "a path of output",
    ),
    **dict.fromkeys(
        ("lat", "latpercent", "lathisto", "allelapsed", "cpu", "nolive", "live1", "live1n"),
        "what is printed of a phase",
    ),
    **dict.fromkeys(
        ("-w", "-r", "-d", "-F", "-D", "write", "read", "mkdirs", "deldirs", "delfiles", "stat"),
        "the phases that were made: each is a run of its own",
    ),
    **dict.fromkeys(
        ("s3endpoints", "s3credfile", "s3region"), "where objects lie is the target, not the load"
    ),
}

_NOTHING: Final = "This phase of elbencho has no rate of I/O, files, directories or objects."

_ENTRY_COLUMNS: Final = ("entries/s", "", "entries", "Ent lat us")
"""Columns of files, directories and objects: rate, bandwidth, amount and latency."""

_PART_OPERATIONS: Final = {"get": "object_get_range", "put": "object_part"}
"""What elbencho makes of an object that is larger than its block."""

_IO_COLUMNS: Final = ("IOPS", "MiB/s", "MiB", "IO lat us")
"""Columns of I/O; those of the reads of a mix begin with words of their own."""

_OPTIONS: Final = {
    "hosts": "hosts",
    "threads": "threads",
    "paths": "paths",
    "files": "files",
    "file_size": "file size",
    "block_size": "block size",
    "direct_io": "direct IO",
    "random_offsets": "random",
    "io_depth": "IO depth",
}
"""What the configuration of a document is called in the CSV file."""

_FLAGS: Final = {
    "threads": ("threads", "1"),
    "IO depth": ("iodepth", "1"),
    "block size": ("block", "1m"),
    "file size": ("size", ""),
}
"""Options of the command with their defaults, where a document has no configuration."""

_UNITS: Final = {"": 1, "k": 1 << 10, "m": 1 << 20, "g": 1 << 30, "t": 1 << 40}

_CONFIGURATION_FILE_OPTIONS: Final = frozenset({"-c", "configfile", "hosts", "hostsfile"})
"""Options that name a file with options, or hosts of another number of threads."""

_STYLE: Final = CommandSyntax(
    valueless_letters="wrdDF",
    value_letters="bcnNst",
    valueless_words=frozenset(
        [
            "allelapsed",
            "backward",
            "cpu",
            "cufile",
            "deldirs",
            "delfiles",
            "direct",
            "dirsharing",
            "dirstats",
            "dropcache",
            "dryrun",
            "foreground",
            "gds",
            "infloop",
            "lat",
            "lathisto",
            "latpercent",
            "live1",
            "live1n",
            "livecsvex",
            "mkdirs",
            "mmap",
            "netbench",
            "no0usecerr",
            "nocsvlabels",
            "nodelerr",
            "nodetach",
            "nodiocheck",
            "nofdsharing",
            "nolive",
            "nopathexp",
            "norandalign",
            "preallocfile",
            "quit",
            "rand",
            "randalign",
            "read",
            "readinline",
            "rotatehosts",
            "s3fastget",
            "s3ignoreerrors",
            "s3listobjpar",
            "s3listverify",
            "s3nompcheck",
            "s3randobj",
            "service",
            "stat",
            "statinline",
            "strided",
            "svcelapsed",
            "sync",
            "treerand",
            "trunc",
            "trunctosize",
            "verifydirect",
            "version",
            "write",
        ]
    ),
    path_options=frozenset(
        [
            "-c",
            "configfile",
            "csvfile",
            "hostsfile",
            "jsonfile",
            "livecsv",
            "livejson",
            "opslog",
            "resfile",
            "treefile",
            "treescan",
        ]
    ),
)
"""Of elbencho's words those without a value, so that the path behind one is no value of it."""

_SHORT: Final = {"-t": "threads", "-b": "block", "-s": "size", "-n": "dirs", "-N": "files"}

_COLUMNS: Final = {
    *("hosts", "threads", "dirs", "files", "size", "block", "direct", "rand", "iodepth"),
    *("label", "csvfile", "jsonfile", "arguments"),
}
"""Options of a command that stand in columns of their own, or tell nothing of the load."""


class _ElbenchoPhase(Record):
    """What both files tell of a phase, by the names of the CSV file's columns.

    `options` are what the phase was requested, `operations_with_latency` operations whose
    latencies were counted.
    """

    operation: str
    label: str
    version: str
    options: Mapping[str, str]
    figures: tuple[OperationFigures, ...]
    is_on_objects: bool
    seconds: float | None
    operations_with_latency: tuple[OperationFigures, ...] = ()
    ended_ns: int | None = None


class ElbenchoImporter:
    """Every phase is a run, by its figures until the last thread was done."""

    tool: Final = "elbencho"

    def recognises(self, file: ForeignFile) -> bool:
        """By its header, or by the first words of its first document."""
        return _is_elbencho_json_file(file) or (
            file.first_bytes.startswith(b"ISO date,") and b"time ms [last]" in file.first_bytes
        )

    def read(self, file: ForeignFile, file_set: ImportFileSet) -> Sequence[ForeignRun]:
        """Phases in which anything was read, written, made or removed.

        Of a CSV and a JSON file with one name and as many phases the JSON file is read: it has
        more, and its phases are no repeats of the others.
        """
        stem = re.escape(file.path.stem)
        for output in file_set.matching_files_in_same_folder(
            file, re.compile(rf"{stem}\.(?:out|live\.csv)")
        ):
            file_set.mark_used_and_read(output)
        phases = list(_read_numbered_phases_and_mark_lines(file))
        for twin in file_set.matching_files_in_same_folder(
            file, re.compile(rf"{stem}\.(?:json|csv)")
        ):
            if twin.path == file.path or not self.recognises(twin):
                continue
            if len(others := list(_read_numbered_phases_and_mark_lines(twin))) == len(phases):
                file_set.mark_used_and_read(twin)
                file, phases = (twin, others) if _is_elbencho_json_file(twin) else (file, phases)
        file.line_coverage.mark_all_read()
        if not phases:
            raise ForeignFileError("no phase reads, writes, makes or removes anything.")
        return [_foreign_run_of_phase(file, place, phase) for place, phase in phases]


def _is_elbencho_json_file(file: ForeignFile) -> bool:
    return re.match(rb'\s*\{\s*"phase_type"\s*:', file.first_bytes) is not None


def _read_numbered_phases_and_mark_lines(file: ForeignFile) -> Iterator[tuple[int, _ElbenchoPhase]]:
    """Each with the number of its line."""
    if _is_elbencho_json_file(file):
        for place, line in enumerate(file.lines, start=1):
            if not line.strip():
                continue
            if (phase := _phase_from_json(line)) is not None:
                yield place, phase
            else:
                file.line_coverage.mark_left_out(place, place, _NOTHING)
        return
    rows = csv.DictReader(io.StringIO(file.text))
    try:
        before = 1
        for row in rows:
            place, before = before + 1, rows.line_num
            if (phase := _phase_from_csv_row(row)) is not None:
                yield place, phase
            else:
                file.line_coverage.mark_left_out(place, before, _NOTHING)
    except csv.Error as error:
        raise broken_csv_error(error) from None


def _foreign_run_of_phase(file: ForeignFile, line_number: int, phase: _ElbenchoPhase) -> ForeignRun:
    def option_as_number(name: str) -> float | None:
        return parse_number(phase.options.get(name) or "")

    block = option_as_number("block size")
    counts = [option_as_number(name) or 1 for name in ("hosts", "threads", "IO depth")]
    depth_known = all(phase.options.get(name) for name in ("threads", "IO depth"))
    is_counted = phase.operation in _ENTRIES or phase.is_on_objects
    direct = phase.options.get("direct IO")
    notes = ["figures are of the time until the last thread was done"]
    if any(figure.percentiles for figure in phase.figures):
        notes.append("percentiles are upper ends of bins that are 19 % wide")
    details = ImportedRunDetails(
        tool="elbencho",
        version=excerpt(phase.version, NAME_CHARACTERS),
        files=(file.name,),
        claimed_totals=phase.operations_with_latency,
        buffered=None if direct in (None, "") else direct not in {"1", "true"},
        notes=tuple(notes),
    )
    host = ImportedClientDetails(
        f"{file.name}:{line_number}",
        phase.figures,
        latency_resolution=RESOLUTION,
        latency_step_ns=NS_PER_US,
    )
    return ForeignRun(
        name=f"{excerpt(phase.label, NAME_CHARACTERS) or 'elbencho'} "
        f"{excerpt(phase.operation, NAME_CHARACTERS).lower()}",
        details=details,
        clients=(ImportedClient("all threads", host, runtime_s=phase.seconds),),
        settings=tuple(
            (excerpt(name, NAME_CHARACTERS), excerpt(value, SETTING_CHARACTERS_MAX))
            for name, value in phase.options.items()
            if value and name not in _NO_OPTIONS and name not in SECRET_OPTIONS
        ),
        ignored_setting_reasons=_IGNORED,
        in_flight=None if is_counted or not depth_known else round(math.prod(counts)) or None,
        ended_real_ns=phase.ended_ns,
        indicator=_indicator_of_phase(phase, block),
    )


def _indicator_of_phase(phase: _ElbenchoPhase, block_bytes: float | None) -> str:
    if phase.operation in _ENTRIES:
        return "ops_per_s"
    if phase.is_on_objects:
        return indicator_for_object_size(parse_number(phase.options.get("file size") or ""))
    return indicator_for_block_size(block_bytes)


def _without_counts_if_too_short(operation_figures: OperationFigures) -> OperationFigures:
    """The figures, without counts where the time is too short to hold them against the rate.

    Percentiles then go with them that so many operations do not support.
    """
    if operation_figures.seconds is None or operation_figures.seconds >= TIMED_MIN_S:
        return operation_figures
    measured = tuple(
        (percent, ns)
        for percent, ns in operation_figures.percentiles
        if is_percentile_supported(operation_figures.count or 0, percent)
    )
    return replace(operation_figures, count=None, bytes=None, percentiles=measured)


def _phase_from_csv_row(row: Mapping[str, str | None]) -> _ElbenchoPhase | None:
    """A row of the CSV file; None where it tells of nothing that is measured."""

    def number_in_column(column: str) -> float | None:
        return parse_number(row.get(column) or "")

    operation, block = row.get("operation") or "", number_in_column("block size")
    figures: tuple[OperationFigures, ...]
    is_on_objects = row.get("path type") in _OBJECT_PATHS
    if operation in _ENTRIES:
        entries = _figures_from_csv_row(_ENTRIES[operation], row, None, *_ENTRY_COLUMNS)
        figures = _object_and_request_figures(operation, entries)
    elif is_on_objects and number_in_column("entries/s [last]") is not None:
        kind = "get" if operation.startswith("READ") else "put"
        figures = tuple(_object_figures_from_csv_row(kind, row, block, ""))
        if number_in_column("rwmix read entries/s [last]") is not None:
            figures = (*_object_figures_from_csv_row("get", row, block, "rwmix read "), *figures)
    elif number_in_column("IOPS [last]") is not None:
        way = "read" if operation.startswith("READ") else "write"
        figures = (_figures_from_csv_row(way, row, block, *_IO_COLUMNS),)
        if number_in_column("rwmix read IOPS [last]") is not None:
            read = (f"rwmix read {name}" for name in _IO_COLUMNS)
            figures = (_figures_from_csv_row("read", row, block, *read), *figures)
    else:
        return None
    return _ElbenchoPhase(
        operation=operation,
        label=row.get("label") or "",
        version=row.get("version") or "",
        options={
            **_command_options_absent_from_columns(row.get("command") or ""),
            **{name: value for name, value in row.items() if name in _REQUESTED_COLUMNS and value},
        },
        figures=figures,
        is_on_objects=is_on_objects,
        seconds=(number_in_column("time ms [last]") or 0.0) / 1000 or None,
        ended_ns=_phase_end_ns(row.get("ISO date"), number_in_column("time ms [last]")),
    )


def _object_figures_from_csv_row(
    get_or_put: str, row: Mapping[str, str | None], block_bytes: float | None, column_prefix: str
) -> Iterator[OperationFigures]:
    """Whole objects of a phase that reads or writes them, and their parts where they have some."""
    entries = _figures_from_csv_row(
        f"object_{get_or_put}",
        row,
        None,
        *(f"{column_prefix}{name}" if name else "" for name in _ENTRY_COLUMNS),
    )
    parts = _figures_from_csv_row(
        _PART_OPERATIONS[get_or_put],
        row,
        block_bytes,
        *(f"{column_prefix}{name}" for name in _IO_COLUMNS),
    )
    size = parse_number(row.get("file size") or "")
    yield from _object_and_part_figures(
        entries, parts, has_parts=bool(size and block_bytes and size > block_bytes)
    )


def _object_and_part_figures(
    object_figures: OperationFigures, part_figures: OperationFigures, *, has_parts: bool
) -> Iterator[OperationFigures]:
    """Whole objects with the bytes of their parts; parts have latencies, and move nothing more."""
    yield replace(
        object_figures, bytes=part_figures.bytes, bw_bytes_per_s=part_figures.bw_bytes_per_s
    )
    if has_parts:
        unrated = replace(
            part_figures, bytes=None, seconds=None, rate_per_s=None, bw_bytes_per_s=None
        )
        yield replace(unrated, weight=0)


def _object_and_request_figures(
    operation: str, figures: OperationFigures
) -> tuple[OperationFigures, ...]:
    """The figures, apart where a request is of many objects: rates count these, latencies those."""
    if operation not in _MANY_A_REQUEST:
        return (figures,)
    requests = OperationFigures(
        figures.operation,
        lat_min_ns=figures.lat_min_ns,
        lat_mean_ns=figures.lat_mean_ns,
        lat_max_ns=figures.lat_max_ns,
        percentiles=figures.percentiles,
        weight=0,
    )
    objects = replace(
        figures,
        operation=f"{figures.operation}_key",
        lat_min_ns=None,
        lat_mean_ns=None,
        lat_max_ns=None,
        percentiles=(),
    )
    return objects, requests


def _phase_end_ns(began: object, elapsed_ms: float | None) -> int | None:
    """When a phase ended; elbencho tells when it began, with its time zone."""
    try:
        moment = datetime.fromisoformat(str(began)).timestamp()
    except (ValueError, OverflowError):
        return None
    return round((moment + (elapsed_ms or 0.0) / 1000) * NS_PER_S)


def _figures_from_csv_row(
    operation: str,
    row: Mapping[str, str | None],
    block_bytes: float | None,
    rate_column: str,
    bandwidth_column: str,
    amount_column: str,
    latency_column: str,
) -> OperationFigures:
    def last_done_number_in_column(column: str) -> float | None:
        return parse_number(row.get(f"{column} [last]") or "")

    def latency_cell_in_ns(name: str) -> float | None:
        value = parse_number(row.get(f"{latency_column} [{name}]") or "")
        return None if value is None else value * NS_PER_US

    moved, speed = (
        last_done_number_in_column(amount_column),
        last_done_number_in_column(bandwidth_column) if bandwidth_column else None,
    )
    if block_bytes is not None and min(moved or 0, speed or 0) < WHOLE_MIN_MIB:
        moved = None
    size = None if moved is None or block_bytes is None else round(moved * MIB)
    count = moved if block_bytes is None else None if size is None else size / block_bytes
    return _without_counts_if_too_short(
        OperationFigures(
            operation=operation,
            count=None if count is None else round(count),
            bytes=size,
            seconds=(last_done_number_in_column("time ms") or 0.0) / 1000 or None,
            rate_per_s=last_done_number_in_column(rate_column),
            bw_bytes_per_s=None if speed is None else speed * MIB,
            lat_min_ns=latency_cell_in_ns("min"),
            lat_mean_ns=latency_cell_in_ns("avg"),
            lat_max_ns=latency_cell_in_ns("max"),
            printed=tuple(
                (excerpt(name, NAME_CHARACTERS), excerpt(value, NAME_CHARACTERS))
                for name, value in row.items()
                if value
                and name
                and name.startswith(
                    (rate_column, bandwidth_column or rate_column, latency_column, "time ms")
                )
            ),
        ),
    )


def _phase_from_json(line: str) -> _ElbenchoPhase | None:
    """A phase of the JSON file; None where it tells of nothing that is measured."""
    try:
        document = dict_or_empty(json.loads(line))
    except (ValueError, RecursionError):
        raise ForeignFileError("one of its lines is no JSON document.") from None
    operation = str(document.get("phase_type") or "")
    config, last = dict_or_empty(document.get("config")), dict_or_empty(document.get("last_done"))
    options = _phase_options(config, str(config.get("command") or document.get("command") or ""))
    latency = dict_or_empty(last.get("latency"))
    is_on_objects = str(config.get("path_type")) in _OBJECT_PATHS
    ms = _table_number(last, "elapsed_time_ms")
    seconds = None if not ms else ms / 1000
    entries = operation in _ENTRIES
    name = _ENTRIES.get(operation, "read" if operation.startswith("READ") else "write")
    lat = dict_or_empty(latency.get("entries" if entries else "IO"))
    block = _bytes_per_operation(options)
    rate = "entries/s" if entries else "iops"
    # What is read by other threads than those that write stands inside of what these did.
    parts = [(name, last, lat, dict_or_empty(lat.get("histogram")))]
    if read := dict_or_empty(last.get("rwmix_read")):
        bins = dict_or_empty(dict_or_empty(lat.get("histogram")).get("rwmix_read"))
        parts.insert(0, ("read", read, dict_or_empty(lat.get("rwmix_read")), bins))
    if _table_number(last, rate) is None:
        return None
    operations = [
        _figures_and_latency_counts_from_json(*part, rate, block, seconds) for part in parts
    ]
    figures = [own for own, _ in operations]
    if entries:
        figures = list(_object_and_request_figures(operation, figures[0]))
    elif is_on_objects and _table_number(last, "entries/s") is not None:
        figures = [
            each
            for part, own in zip(parts, figures, strict=True)
            for each in _object_figures_from_json(part[0], part[1], latency, own, options, seconds)
        ]
        operations = []
    return _ElbenchoPhase(
        operation=operation,
        label=str(document.get("label") or ""),
        version=str(config.get("version") or document.get("version") or ""),
        options=options,
        figures=tuple(figures),
        is_on_objects=is_on_objects,
        seconds=seconds,
        operations_with_latency=tuple(claimed for _, claimed in operations if claimed is not None),
        ended_ns=_phase_end_ns(document.get("iso_start_date"), ms),
    )


def _object_figures_from_json(
    operation: str,
    row: Mapping[str, Any],
    latency: Mapping[str, Any],
    part_figures: OperationFigures,
    elbencho_options: Mapping[str, str],
    seconds: float | None,
) -> Iterator[OperationFigures]:
    """The same of the JSON file; `operation` is that of the I/O that the parts are."""
    kind = "get" if operation == "read" else "put"
    lat = dict_or_empty(latency.get("entries"))
    if row.keys() & {"entries/s"} and "latency" not in row and kind == "get":
        lat = dict_or_empty(lat.get("rwmix_read"))
    entries, _ = _figures_and_latency_counts_from_json(
        f"object_{kind}",
        row,
        lat,
        dict_or_empty(lat.get("histogram")),
        "entries/s",
        None,
        seconds,
    )
    size, block = (
        parse_number(elbencho_options.get(name) or "") for name in ("file size", "block size")
    )
    named = replace(part_figures, operation=_PART_OPERATIONS[kind])
    yield from _object_and_part_figures(
        entries, named, has_parts=bool(size and block and size > block)
    )


def _figures_and_latency_counts_from_json(
    operation: str,
    row: Mapping[str, Any],
    latency: Mapping[str, Any],
    histogram: Mapping[str, Any],
    rate_key: str,
    block_bytes: float | None,
    seconds: float | None,
) -> tuple[OperationFigures, OperationFigures | None]:
    """One operation; and how many of its latencies were counted, where there are bins."""
    moved = _table_number(row, "bytes")
    count = _table_number(row, "entries") if rate_key == "entries/s" else None
    if count is None and moved is not None and block_bytes:
        count = moved / block_bytes
    bins = _bin_ends_us_and_counts(histogram)
    counted = sum(number for _, number in bins)
    own = _without_counts_if_too_short(
        OperationFigures(
            operation=operation,
            count=None if count is None else round(count),
            bytes=None if moved is None else round(moved),
            seconds=seconds,
            rate_per_s=_table_number(row, rate_key),
            bw_bytes_per_s=_table_number(row, "bytes/s"),
            lat_min_ns=_table_latency_ns(latency, "min_us"),
            lat_mean_ns=_table_latency_ns(latency, "avg_us"),
            lat_max_ns=_table_latency_ns(latency, "max_us"),
            percentiles=tuple(_percentiles_from_bins(bins, counted)),
            printed=tuple(
                (excerpt(str(name), NAME_CHARACTERS), excerpt(str(value), NAME_CHARACTERS))
                for name, value in (*row.items(), *latency.items())
                if not isinstance(value, dict)
            ),
        ),
    )
    return own, OperationFigures(
        operation, count=counted
    ) if bins and own.count is not None else None


def _table_number(table: Mapping[str, Any], name: str) -> float | None:
    """A number, which elbencho writes as a text."""
    return parse_number(str(table.get(name, "")))


def _table_latency_ns(table: Mapping[str, Any], name: str) -> float | None:
    value = _table_number(table, name)
    return None if value is None else value * NS_PER_US


def _bin_ends_us_and_counts(histogram: Mapping[str, Any]) -> list[tuple[float, int]]:
    """Each with its upper end in us, as told, and its count; none where they are not sound."""
    bins: list[tuple[float, int]] = []
    rows = histogram.get("buckets")
    for row in rows if isinstance(rows, list) else ():
        ends = re.fullmatch(r"([\d.]+)-([\d.]+)us", str(dict_or_empty(row).get("range")))
        count = _table_number(dict_or_empty(row), "count")
        high = parse_number(ends[2]) if ends else None
        if high is None or count is None or count < 0 or (bins and high <= bins[-1][0]):
            raise ForeignFileError("its latency bins are not those of elbencho.")
        bins.append((high, round(count)))
    return bins


def _percentiles_from_bins(
    bins: Sequence[tuple[float, int]], total: int
) -> Iterator[tuple[float, float]]:
    """As elbencho has them: the upper end of the bin in which each share is reached."""
    for percent in _PERCENTS if total else ():
        below = 0
        for high, count in bins:
            below += count
            if below / total >= percent / 100:
                yield percent, high * NS_PER_US
                break


def _phase_options(config: Mapping[str, Any], command: str) -> dict[str, str]:
    """The configuration; before 3.1 it is only in the command, if no file has part of it."""
    if config:
        return {
            _OPTIONS.get(name, name): str(value)
            for name, value in config.items()
            if value is not None and value != "" and not isinstance(value, dict)
        }
    settings = {
        _SHORT.get(name, name): str(value) for name, value in command_settings(command, _STYLE)
    }
    others = {name: value for name, value in settings.items() if name not in _COLUMNS}
    if not settings or _CONFIGURATION_FILE_OPTIONS & set(settings):
        return others
    options = {
        "direct IO": str(int("direct" in settings)),
        "random": str(int("rand" in settings)),
    }
    for name, (flag, default) in _FLAGS.items():
        options[name] = (
            _size_bytes_text(settings.get(flag, default)) or _size_bytes_text(default) or ""
        )
    return {**options, **others}


def _command_options_absent_from_columns(command: str) -> dict[str, str]:
    """The options that no column has, such as `--rwmixpct`; quotes of a CSV cell are its own."""
    settings = command_settings(re.sub(r'"+', '"', command), _STYLE)
    named = ((_SHORT.get(name, name), str(value)) for name, value in settings)
    return {name: value for name, value in named if name not in _COLUMNS}


def _size_bytes_text(text: str) -> str | None:
    match = re.fullmatch(r"(\d{1,15})([kmgt]?)(?:i?b)?", text.lower())
    return None if match is None else str(int(match[1]) * _UNITS[match[2]])


def _bytes_per_operation(elbencho_options: Mapping[str, str]) -> float | None:
    """The bytes of an operation: a file that is smaller than a block is moved as it is."""
    sizes = [parse_number(elbencho_options.get(name) or "") for name in ("block size", "file size")]
    return min((size for size in sizes if size), default=None)
