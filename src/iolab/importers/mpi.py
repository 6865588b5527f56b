"""IOR's and mdtest's output, and the results of an IO500 run that is made of both.

IOR's and mdtest's rates are of all ranks together, so they are one client's here. mdtest's phases
never run at the same time: each operation is a run of its own.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Final

from iolab.errors import IolabError
from iolab.importers.files import SENTENCE, Folder, ForeignFault, ForeignFile, clean, parsed
from iolab.importers.model import Figures, ForeignRun, ImportedClient, ImportedHost, ImportedRun
from iolab.loads.metadata import mdtest_output
from iolab.units import GIB, MIB, parse_size

_IOR: Final = re.compile(r"^IOR-(\S+): MPI Coordinated Test of Parallel I/O", re.MULTILINE)
_OPTION: Final = re.compile(r"^([A-Za-z][\w /()]*?)\s*: (.*)$")
_ACTUAL: Final = re.compile(r"Using actual aggregate bytes moved\s*=\s*(\d+)")
_SAID: Final = re.compile(r"^(?:ior )?(?:ERROR|.*incorrect data).*", re.IGNORECASE)
_TESTED: Final = ("read", "write")
_SHOWN_OPTIONS: Final = ("api", "access", "nodes", "tasks", "segments", "xfersize", "blocksize")


class IorImporter:
    """Every row of the results is a run; iterations are repeats."""

    tool: Final = "ior"

    def recognises(self, file: ForeignFile) -> bool:
        """By its first line."""
        return b": MPI Coordinated Test of Parallel I/O" in file.head

    def read(self, file: ForeignFile, folder: Folder) -> Sequence[ForeignRun]:
        """The rows of every test in the file."""
        del folder
        starts = [match.start() for match in _IOR.finditer(file.text)]
        ends = [*starts[1:], len(file.text)]
        runs = [
            run
            for start, end in zip(starts, ends, strict=True)
            for run in _ior_runs(file, file.text[start:end])
        ]
        if not runs:
            raise ForeignFault("IOR printed no result: it was cut short or failed.")
        return runs


def _ior_runs(file: ForeignFile, text: str) -> Iterator[ForeignRun]:
    lines = text.splitlines()
    options: dict[str, str] = {}
    errors: list[str] = []
    columns: list[str] = []
    version = _IOR.match(text)
    for place, line in enumerate(lines, start=1):
        words = line.split()
        if option := _OPTION.match(line):
            options.setdefault(clean(option[1].strip()), clean(option[2].strip()))
        elif _SAID.match(line):
            errors.append(clean(line))
        elif words[:2] == ["access", "bw(MiB/s)"]:
            columns = words
        elif columns and words and words[0] in _TESTED and len(words) == len(columns):
            row = dict(zip(columns, words, strict=True))
            moved = _ACTUAL.findall("\n".join(lines[:place]))
            name = f"{file.name}:{place}"
            yield _ior_run(
                file, version[1] if version else "", row, options, tuple(errors), moved, name
            )


def _ior_run(
    file: ForeignFile,
    version: str,
    row: Mapping[str, str],
    options: Mapping[str, str],
    errors: tuple[str, ...],
    moved: Sequence[str],
    source: str,
) -> ForeignRun:
    rate = parsed(row["bw(MiB/s)"])
    size = _size(options.get("aggregate filesize", ""))
    stonewalled = "stonewallingTime" in options
    # A stonewalled phase moves what it has time for.
    done = int(moved[-1]) if moved else None if stonewalled else size
    command = options.get("Command line", "")
    tasks = parsed(options.get("tasks", options.get("clients", "")).split(" ")[0])
    block = _size(options.get("xfersize", ""))
    figures = Figures(
        operation=row["access"],
        bytes=done,
        seconds=parsed(row.get("total(s)", "")),
        rate_per_s=parsed(row.get("IOPS", "")),
        bw_bytes_per_s=None if rate is None else rate * MIB,
        printed=tuple((clean(name), clean(value)) for name, value in row.items()),
    )
    direct = "odirect" in command or re.search(r"\s-B\b", command) is not None
    details = ImportedRun(
        tool="ior",
        version=clean(version),
        files=(file.name,),
        buffered=None if not command else not direct,
        notes=("rates are of all tasks together, over open, transfer and close",),
    )
    host = ImportedHost(source, (figures,), errors=errors)
    settings = tuple((name, options[name]) for name in _SHOWN_OPTIONS if name in options)
    return ForeignRun(
        name=f"ior {row['access']}",
        details=details,
        clients=(ImportedClient("all tasks", host),),
        settings=(*settings, ("command", command)) if command else settings,
        in_flight=None if tasks is None else int(tasks),
        headline="iops" if block is not None and block < MIB >> 4 else "bandwidth",
    )


def _size(text: str) -> int | None:
    """A size as IOR prints it: `9.46 TiB`, `47008 bytes`."""
    match = re.fullmatch(r"([\d.]+) ?(bytes?|[KMGTP]i?B?)?", text.strip())
    if not match:
        return None
    number, unit = parsed(match[1]), (match[2] or "")[:1].lower()
    if number is None:
        return None
    return round(number * (1 if unit in ("", "b") else parse_size(f"1{unit}")))


_LAUNCHED: Final = re.compile(rb"mdtest-\S+ was launched with")
_TIME_ROW: Final = re.compile(r"^\s+(.+?)\s{2,}([\d.]+)\s+([\d.]+)\s+([\d.]+)\s+([\d.]+)\s*$")


class MdtestImporter:
    """Every operation of the summary is a run, with the mean over its iterations."""

    tool: Final = "mdtest"

    def recognises(self, file: ForeignFile) -> bool:
        """By the line that tells how many tasks were launched."""
        return _LAUNCHED.search(file.head) is not None

    def read(self, file: ForeignFile, folder: Folder) -> Sequence[ForeignRun]:
        """The rows of the summary. ForeignFault where there is none."""
        del folder
        output = mdtest_output.parse(file.content)
        errors = (*output.messages, *output.faults, *mdtest_output.contradictions(output))
        if not output.rows:
            reason = f": {clean(errors[0], SENTENCE)}" if errors else ""
            raise ForeignFault(f"mdtest printed no summary{reason}.")
        return [
            self._run(file, output, row, errors)
            for row in output.rows
            if row.maximum > 0 or output.rule is None
        ]

    def _run(
        self,
        file: ForeignFile,
        output: mdtest_output.MdtestOutput,
        row: mdtest_output.SummaryRow,
        errors: Sequence[str],
    ) -> ForeignRun:
        once = output.iterations == 1
        seconds = _seconds_of(file, row) if once else None
        counted = "stonewall" not in file.text and row.operation.key.startswith("file_")
        spread = (row.maximum, row.minimum, row.mean, row.std_dev)
        figures = Figures(
            operation=row.operation.key,
            count=output.files if once and counted else None,
            seconds=seconds,
            rate_per_s=row.mean,
            printed=tuple(
                zip(
                    ("Max", "Min", "Mean", "Std Dev"),
                    (f"{value:.3f}" for value in spread),
                    strict=True,
                )
            ),
        )
        details = ImportedRun(
            tool="mdtest",
            version=clean(output.version),
            files=(file.name,),
            notes=(f"the mean of {output.iterations} iterations, {output.rule}",),
        )
        host = ImportedHost(
            f"{file.name}: {row.operation.word}",
            (figures,),
            errors=tuple(clean(error, SENTENCE) for error in errors),
        )
        line = next((line for line in file.lines if line.startswith("Command line used:")), "")
        return ForeignRun(
            name=row.operation.word,
            details=details,
            clients=(ImportedClient("all tasks", host, runtime_s=seconds),),
            settings=(
                *((("command", clean(line.partition(":")[2].strip())),) if line else ()),
                *((("tasks", output.ranks),) if output.ranks is not None else ()),
            ),
            headline="ops_per_s",
            failure=None if output.finished else "mdtest did not come to its end.",
        )


def _seconds_of(file: ForeignFile, row: mdtest_output.SummaryRow) -> float | None:
    """The time of a phase, which versions from 3.3 print in a second table."""
    inside = False
    wanted = {"create": "creation", "remove": "removal"}
    kind, _, action = row.operation.key.partition("_")
    for line in file.lines:
        if line.startswith("SUMMARY"):
            inside = line.startswith("SUMMARY time")
        match = _TIME_ROW.match(line) if inside else None
        if match and match[1].lower() == f"{kind} {wanted.get(action, action)}":
            return parsed(match[4])
    return None


_SCORED: Final = re.compile(
    r"^\[RESULT\]\s+(\S+)\s+([\d.]+)\s+(GiB/s|kIOPS)\s*:\s*time\s+([\d.]+)\s+seconds(.*)$"
)


class Io500Importer:
    """The phases of an IO500 run by its summary, with IOR's and mdtest's own figures beside."""

    tool: Final = "io500"

    def recognises(self, file: ForeignFile) -> bool:
        """By lines of results."""
        return b"[RESULT]" in file.head and b"[SCORE" in file.content

    def read(self, file: ForeignFile, folder: Folder) -> Sequence[ForeignRun]:
        """Each line; files of the same folder belong to it."""
        beside = {
            neighbour.path.name: neighbour for neighbour in folder.beside(file, re.compile(r".*"))
        }
        runs = []
        for place, line in enumerate(file.lines, start=1):
            if match := _SCORED.match(line.strip()):
                own = beside.get(f"{match[1]}.txt")
                runs.append(_phase(file, place, match, own))
        for neighbour in beside.values():
            if re.fullmatch(
                r"(?:ior|mdtest|find|result|config).*\.(?:txt|csv|ini)", neighbour.path.name
            ):
                folder.use(neighbour)
        if not runs:
            raise ForeignFault("there is no line of a result.")
        return runs


def _phase(
    file: ForeignFile, place: int, match: re.Match[str], own: ForeignFile | None
) -> ForeignRun:
    name, printed, unit, seconds, rest = match.groups()
    number, io = parsed(printed) or 0.0, unit == "GiB/s"
    operation = "read" if name.endswith("read") else "write"
    if not io:
        operation = {"write": "file_create", "delete": "file_remove"}.get(
            name.rsplit("-", 1)[-1], f"file_{name.rsplit('-', 1)[-1]}"
        )
    figures = Figures(
        operation=operation,
        seconds=parsed(seconds),
        rate_per_s=None if io else number * 1000,
        bw_bytes_per_s=number * GIB if io else None,
        printed=((unit, printed), ("time (s)", seconds)),
    )
    details = ImportedRun(tool="io500", version=_version(file), files=(file.name,))
    invalid = ("IO500 calls this result invalid",) if "INVALID" in rest else ()
    host = ImportedHost(f"{file.name}:{place}", (figures,), errors=invalid)
    run = ForeignRun(
        name=name,
        details=details,
        clients=(ImportedClient("all tasks", host, runtime_s=parsed(seconds)),),
        headline="bandwidth" if io else "ops_per_s",
    )
    return run if own is None else _with_own(run, figures, own)


def _version(file: ForeignFile) -> str:
    match = re.search(r"^IO500 version (\S+)", file.text, re.MULTILINE)
    return clean(match[1]) if match else ""


def _with_own(run: ForeignRun, figures: Figures, own: ForeignFile) -> ForeignRun:
    """The phase with what IOR or mdtest printed, and the summary's figure as a claim."""
    importer = IorImporter() if "ior" in own.path.name else MdtestImporter()
    if not importer.recognises(own):
        return run
    try:
        read = importer.read(own, Folder(()))
    except (ForeignFault, IolabError):
        return run
    same = [other for other in read if other.operations == (figures.operation,)]
    if not same:
        return run
    details = replace(run.details, claimed=(figures,), files=(*run.details.files, own.name))
    host = run.clients[0].details
    clients = tuple(
        replace(
            client, details=replace(client.details, errors=(*host.errors, *client.details.errors))
        )
        for client in same[-1].clients
    )
    return replace(
        run,
        details=replace(details, buffered=same[-1].details.buffered),
        clients=clients,
        settings=same[-1].settings,
    )
