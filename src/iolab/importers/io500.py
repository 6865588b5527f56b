"""The results of an IO500 run, with what IOR and mdtest printed beside its summary."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from iolab.errors import IolabError
from iolab.importers.files import Folder, ForeignFault, ForeignFile, clean, parsed
from iolab.importers.ior import IorImporter
from iolab.importers.mdtest import MdtestImporter
from iolab.importers.model import Figures, ForeignRun, ImportedClient, ImportedHost, ImportedRun
from iolab.units import GIB

_RESULT: Final = re.compile(
    r"^\s*\[(?P<mark>RESULT[^\]]*|INVALID[^\]]*| +)\]\s+(?:(?:BW|IOPS)\s+phase\s+\d+\s+)?"
    r"(?P<phase>\S+)\s+(?P<value>[\d.]+)\s+(?P<unit>Gi?B/s|kIOPS)\s*:\s*time\s+"
    r"(?P<seconds>[\d.]+)\s+seconds(?P<rest>.*)$",
    re.IGNORECASE,
)
"""A phase as the C program prints it, and as the shell script before 2020 did.

`GB/s` of the script is GiB/s: it divided IOR's MiB/s by 1024.
"""

_MARKED: Final = re.compile(r"^\s*\[([A-Z][A-Za-z -]*| +)\]")
_OWN_FILES: Final = re.compile(r"config.*\.ini|timestamp(?:file)?|[\w-]+\.stonewall")
"""Files that IO500 writes beside its summary, and that hold no result."""

_NO_RESULT: Final = "IO500 keeps its options and marks in this file: it holds no result."
_SAME_RESULTS: Final = "It holds the results of {0} once more."
_NOT_COMPARED: Final = "The result of this phase is that of the summary; nothing else is read here."
_OWN_LINES: Final = re.compile(
    r"^(?:IO500 version|SCORE|\[(?:SCORE|Summary|Exec|Starting|Leaving)|; )"
)
_INVALID: Final = re.compile(r"phases? invalid|not valid for io-?500", re.IGNORECASE)
_OPERATIONS: Final = {"write": "file_create", "delete": "file_remove", "find": "file_find"}


class Io500Importer:
    """The phases of a run by its summary, with IOR's and mdtest's own figures beside."""

    tool: Final = "io500"

    def recognises(self, file: ForeignFile) -> bool:
        """By lines of results; comments of a configuration have only the words."""
        return b"[RESULT" in file.content and any(
            match["mark"].strip() for match in map(_RESULT.match, file.lines) if match
        )

    def read(self, file: ForeignFile, folder: Folder) -> Sequence[ForeignRun]:
        """Each phase; files of the same folder that bear its name belong to it."""
        # What belongs to one summary of a folder is no output of the next one.
        neighbours = {
            neighbour.path.name: neighbour
            for neighbour in folder.beside(file, re.compile(r".*"))
            if neighbour.path not in folder.used
        }
        runs = []
        for number, line in enumerate(file.lines, start=1):
            match = _RESULT.match(line)
            if match and (parsed(match["value"]) or match["mark"].strip()):
                runs.append(_phase(file, number, match, neighbours.get(f"{match['phase']}.txt")))
                file.account.read(number)
            else:
                _account_for(file, number, line)
        _account_for_neighbours(file, [run.details.files for run in runs], folder)
        if not runs:
            raise ForeignFault("there is no line of a result.")
        return runs


def _account_for_neighbours(
    file: ForeignFile, used: Sequence[Sequence[str]], folder: Folder
) -> None:
    """Mark what IO500 wrote beside its summary; all other files are read for themselves."""
    names = {name for files in used for name in files}
    phases, results = {f"{phase}.txt" for phase, *_ in _results(file)}, _rated(file)
    for other in folder.beside(file, re.compile(r".*")):
        if other.path == file.path or other.path in folder.used:
            continue
        if other.path.name in phases:
            if other.name in names:
                folder.use(other)
            else:
                folder.leave_out(other, _NOT_COMPARED)
        elif _OWN_FILES.fullmatch(other.path.name):
            folder.leave_out(other, _NO_RESULT)
        elif b"[RESULT" in other.content and _rated(other) == results:
            folder.leave_out(other, _SAME_RESULTS.format(clean(file.name)))


def _results(file: ForeignFile) -> list[tuple[str, float, str]]:
    """Every phase with its figure and its seconds."""
    matches = (match for match in map(_RESULT.match, file.lines) if match)
    return [(match["phase"], parsed(match["value"]) or 0.0, match["seconds"]) for match in matches]


def _rated(file: ForeignFile) -> list[tuple[str, float, str]]:
    return [result for result in _results(file) if result[1]]


def _account_for(file: ForeignFile, number: int, line: str) -> None:
    """Mark a line that is no result of a phase."""
    mark = _MARKED.match(line)
    if _INVALID.search(line) or (mark and "[INVALID]" in line.upper()):
        file.account.left_out(number, number, "IO500 calls the whole run invalid.")
    elif mark and mark[1].strip() in ("", "RESULT"):
        file.account.left_out(number, number, "This line of a phase has no rate.")
    elif mark or _OWN_LINES.match(line):
        file.account.read(number)


def _phase(
    file: ForeignFile, number: int, match: re.Match[str], own: ForeignFile | None
) -> ForeignRun:
    name, seconds = match["phase"], parsed(match["seconds"])
    value, is_io = parsed(match["value"]) or 0.0, match["unit"].lower().startswith("g")
    action = re.split(r"[-_]", name)[-1].lower()
    operation = (
        ("read" if action == "read" else "write")
        if is_io
        else _OPERATIONS.get(action, f"file_{action}")
    )
    figures = Figures(
        operation=operation,
        seconds=seconds,
        rate_per_s=None if is_io else value * 1000,
        bw_bytes_per_s=value * GIB if is_io else None,
        printed=((match["unit"], match["value"]), ("time (s)", match["seconds"])),
    )
    details = ImportedRun(tool="io500", version=_version(file), files=(file.name,))
    is_invalid = "invalid" in f"{match['mark']}{match['rest']}".lower()
    errors = ("IO500 calls this result invalid",) if is_invalid else ()
    host = ImportedHost(f"{file.name}:{number}", (figures,), errors=errors)
    run = ForeignRun(
        name=clean(name),
        details=details,
        clients=(ImportedClient("all tasks", host, runtime_s=seconds),),
        headline="bandwidth" if is_io else "ops_per_s",
    )
    return run if own is None else _with_tool_output(run, figures, own)


def _version(file: ForeignFile) -> str:
    match = re.search(r"^IO500 version (\S+)", file.text, re.MULTILINE)
    return clean(match[1]) if match else ""


def _with_tool_output(run: ForeignRun, figures: Figures, own: ForeignFile) -> ForeignRun:
    """The phase with what IOR or mdtest printed, and the summary's figure as a claim."""
    importer = IorImporter() if "ior" in own.path.name else MdtestImporter()
    try:
        if not importer.recognises(own):
            return run
        read = importer.read(own, Folder(()))
    except (ForeignFault, IolabError, OSError):
        return run
    same = [other for other in read if other.operations == (figures.operation,)]
    if not same:
        return run
    details = replace(run.details, claimed=(figures,), files=(*run.details.files, own.name))
    errors = run.clients[0].details.errors
    clients = tuple(
        replace(client, details=replace(client.details, errors=(*errors, *client.details.errors)))
        for client in same[-1].clients
    )
    return replace(
        run,
        details=replace(details, buffered=same[-1].details.buffered),
        clients=clients,
        settings=same[-1].settings,
        ignored=same[-1].ignored,
        at_ns=same[-1].at_ns,
    )
