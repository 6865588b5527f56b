"""Tools that run a load in many virtual machines: HCIBench, and VMFleet's tables."""

from __future__ import annotations

import csv
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from iolab.importers.files import (
    SENTENCE_CHARACTERS,
    ForeignFile,
    ForeignFileError,
    ImportFileSet,
    broken_csv_error,
    parse_number,
)
from iolab.importers.foreign_run import MIXED, ForeignRun, ImportedRunDetails, OperationFigures
from iolab.importers.summaries import (
    parse_scaled_number,
    summary_row_run,
    truncated_names_and_values,
)
from iolab.text import excerpt
from iolab.units import MIB, NS_PER_MS

_VALUE: Final = re.compile(
    r"^(?P<name>[\w% ]{1,40}?)\s*= (?P<value>\S{1,60})(?: (?P<unit>\S{1,10}))?\s*$"
)
_NAME: Final = re.compile(
    r"^(?:JOB_NAME\s*= |Run Def:\s+|Datastore\s*[=:]\s*|Version:\s+)(?P<text>.*)$"
)
_EARLY: Final = re.compile(r"^(?:There are \d+ VMs finished|Testing is done, |Check the following)")
_KNOWN: Final = re.compile(r"^(?:=+|Resource Usage:|(?:CPU|RAM|vSAN PCPU) USAGE\s*=.*|\s*)$")
_HCI_LATENCIES: Final = {"R_LATENCY": "read", "W_LATENCY": "write"}

HCI_NOTES: Final = (
    "rates are sums over the VMs; MB are of 1,048,576 bytes",
    "latencies are plain means of the VMs' means",
    "95%tile is a mean of the VMs', or mean + 1.645 standard deviations: not read",
)

_FLEET_COLUMNS: Final = ("IOPS", "AverageReadIOPS", "AverageWriteIOPS", "AverageReadBW")

FLEET_ROWS_MAX: Final = 10_000
"""Rows of a table: a sweep has some hundred."""


class HciBenchImporter:
    """`NAME-res.txt`: each job or run definition is a run."""

    tool: Final = "HCIBench"

    def recognises(self, file: ForeignFile) -> bool:
        """By its names of rate and latency."""
        text = file.utf8_bytes
        return b"THROUGHPUT" in text and b"R_LATENCY" in text and b"VMs" in text

    def read(self, file: ForeignFile, file_set: ImportFileSet) -> Sequence[ForeignRun]:
        """Each block of figures."""
        del file_set
        runs = list(_read_hci_runs_and_mark_lines(file))
        if not runs:
            raise ForeignFileError("it has no block with rates.")
        return runs


def _read_hci_runs_and_mark_lines(file: ForeignFile) -> Iterator[ForeignRun]:
    names: dict[str, str] = {}
    values: dict[str, str] = {}
    line, early = (
        1,
        tuple(excerpt(text, SENTENCE_CHARACTERS) for text in file.lines if _EARLY.match(text)),
    )
    is_list = False
    for number, text in enumerate([*file.lines, "====="], start=1):
        is_list = is_list or bool(_EARLY.match(text))
        if name := _NAME.match(text):
            key = text.split("=")[0].split(":")[0].strip()
            if values:
                yield _hci_run(file, line, names, values, early)
                values = {}
            names[key], line, is_list = name["text"].strip(), number, False
            file.line_coverage.mark_read(number)
        elif text.startswith(("=", "Resource Usage")):
            if values:
                yield _hci_run(file, line, names, values, early)
                values = {}
            is_list = False
            file.line_coverage.mark_read(number)
        elif _KNOWN.match(text):
            file.line_coverage.mark_read(number)
        elif (value := _VALUE.match(text)) and not is_list:
            values[value["name"].strip()] = value["value"]
            file.line_coverage.mark_read(number)
        elif is_list:
            # Files of VMs that ended early.
            file.line_coverage.mark_read(number)


def _hci_run(
    file: ForeignFile,
    line_number: int,
    names: Mapping[str, str],
    values: Mapping[str, str],
    early_vm_lines: tuple[str, ...],
) -> ForeignRun:
    name = names.get("JOB_NAME") or names.get("Run Def") or "HCIBench"
    figures = [
        OperationFigures(
            operation=MIXED,
            rate_per_s=parse_number(values.get("IOPS", "")),
            bw_bytes_per_s=parse_scaled_number(values.get("THROUGHPUT"), MIB),
            lat_mean_ns=parse_scaled_number(values.get("LATENCY"), NS_PER_MS),
            printed=truncated_names_and_values(values),
        )
    ]
    for key, operation in _HCI_LATENCIES.items():
        latency = parse_scaled_number(values.get(key), NS_PER_MS)
        if latency:
            figures.append(OperationFigures(operation=operation, lat_mean_ns=latency, weight=0))
    details = ImportedRunDetails(
        tool="HCIBench",
        version=names.get("Version", ""),
        files=(file.name,),
        notes=HCI_NOTES,
    )
    settings = {"VMs": values.get("VMs", ""), "Datastore": names.get("Datastore", "")}
    if "Run Def" in names:
        settings["Run Def"] = names["Run Def"]
    return summary_row_run(
        details,
        f"HCIBench {name}",
        (file, line_number),
        tuple(figures),
        settings,
        ignored_setting_reasons={"Datastore": "where the disks lie is the target, not the load"},
        errors=early_vm_lines,
        indicator="iops",
        client="all VMs",
    )


class VmFleetImporter:
    """`result.tsv` of a sweep, and `result-vm-NAME.tsv` of one point: each row is a run."""

    tool: Final = "VMFleet"

    def recognises(self, file: ForeignFile) -> bool:
        """By the columns of its heading."""
        heading = file.lines[0] if file.lines else ""
        columns = [column.strip('"') for column in heading.split("\t")]
        return all(name in columns for name in _FLEET_COLUMNS)

    def read(self, file: ForeignFile, file_set: ImportFileSet) -> Sequence[ForeignRun]:
        """Each row."""
        del file_set
        try:
            rows = list(csv.reader(file.lines[: FLEET_ROWS_MAX + 1], delimiter="\t"))
        except csv.Error as error:
            raise broken_csv_error(error) from None
        columns = rows[0]
        runs = []
        file.line_coverage.mark_read(1)
        for number, row in enumerate(rows[1:], start=2):
            values = dict(zip(columns, row, strict=False))
            if len(row) != len(columns) or parse_number(values.get("IOPS", "")) is None:
                reason = "This row has no figures in all its columns."
                file.line_coverage.mark_left_out(number, number, reason)
                continue
            file.line_coverage.mark_read(number)
            runs.append(_vm_fleet_run(file, number, columns, values))
        if not runs:
            raise ForeignFileError("its table has no row.")
        return runs


def _vm_fleet_run(
    file: ForeignFile, line_number: int, columns: Sequence[str], values: Mapping[str, str]
) -> ForeignRun:
    """A row; columns to the left of `IOPS` are its load, all others figures."""
    is_one_vm = "Result" in columns
    figures = []
    for operation in ("read", "write"):
        word = operation.title()
        rate = parse_number(values[f"Average{word}IOPS"])
        if not rate:
            continue
        percentiles = [
            (float(at), parse_scaled_number(values.get(f"{word}Milliseconds{at}"), NS_PER_MS))
            for at in (50, 90, 99)
        ]
        figures.append(
            OperationFigures(
                operation=operation,
                rate_per_s=rate,
                bw_bytes_per_s=parse_number(values.get(f"Average{word}BW", "")),
                lat_mean_ns=parse_scaled_number(
                    values.get(f"Average{word}Milliseconds"), NS_PER_MS
                ),
                percentiles=tuple((at, value) for at, value in percentiles if value)
                if is_one_vm
                else (),
                printed=truncated_names_and_values(
                    {name: value for name, value in values.items() if word in name}
                ),
            )
        )
    notes: tuple[str, ...] = ("rates are sums over the VMs",)
    if not is_one_vm:
        notes += ("columns of percentiles are means of the VMs': not read",)
    settings = {
        name: values[name]
        for name in columns[: columns.index("IOPS")]
        if name not in ("RunLabel", "Result", "CutoffType")
    }
    cutoff = values.get("CutoffType", "No")
    if cutoff not in ("No", ""):
        notes += (f"VMFleet ended the search here: {excerpt(cutoff, 60)}",)
    return summary_row_run(
        ImportedRunDetails(tool="VMFleet", version="", files=(file.name,), notes=notes),
        values.get("RunLabel") or "VMFleet",
        (file, line_number),
        tuple(figures),
        settings,
        ignored_setting_reasons={"RunType": "why VMFleet ran it, not what it did"},
        indicator="iops",
        client=values.get("Result") or "all VMs",
    )
