"""fio's JSON and json+: groups, clients of servers, status intervals, and the logs beside them.

Entries of one job and group ran side by side and are one client's; other groups ran before or
after, and are runs of their own. What fio adds up over clients ("All clients") is kept as its
claim: it adds groups that ran one after the other, too.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

from iolab.core.histogram import Histogram, bin_of_midpoint, of_sparse
from iolab.dataclass import dataclass
from iolab.importers import fio_logs
from iolab.importers.files import (
    Folder,
    ForeignFault,
    ForeignFile,
    clean,
    number,
    table_of,
    texts_of,
    whole_number,
)
from iolab.importers.model import (
    Figures,
    ForeignRun,
    ImportedClient,
    ImportedHost,
    ImportedRun,
    ImportedSecond,
    headline_of,
)
from iolab.loads.fileio.workload import SYNC_IOENGINES
from iolab.units import NS_PER_MS, parse_size

DOCUMENTS_MOST: Final = 100_000
"""A report every second for a day."""


WAYS: Final = ("read", "write", "trim")

ALL_CLIENTS: Final = "All clients"
"""How fio calls the sum over all clients of its servers."""

_AXES: Final = ("bs", "iodepth", "numjobs", "rwmixread", "size", "rate_iops", "ioengine")
"""Options that tell runs of one job's name apart."""

IGNORED: Final = {
    "startdelay": "when a job began is no load",
}
"""Options that cannot matter to the load, each with the reason."""

_PACED: Final = ("rate", "thinktime", "flow")

_NO_NUMBER: Final = re.compile(r":\s*[-+]?(?:nan|inf)\b", re.IGNORECASE)
_OPEN: Final = re.compile(r"^\{", re.MULTILINE)
_TEXT_OUTPUT: Final = re.compile(rb"^\S.*: \(groupid=\d+, jobs=\d+\): err=", re.MULTILINE)
_RANK: Final = re.compile(r"\d{1,3}\.\d+")

Block = Mapping[str, Any]


class FioImporter:
    """See the module."""

    tool: Final = "fio"

    def recognises(self, file: ForeignFile) -> bool:
        """Whether there is a report of fio's in it, be it one that cannot be read."""
        return (b'"fio version"' in file.head and b"{" in file.head) or bool(
            _TEXT_OUTPUT.search(file.head)
        )

    def read(self, file: ForeignFile, folder: Folder) -> Sequence[ForeignRun]:
        """Each group of each report that is no interval of a later one."""
        if '"fio version"' not in file.text:
            raise ForeignFault(
                "fio's text output is not read.", "Run fio with --output-format=json+."
            )
        runs: list[ForeignRun] = []
        for reports in _runs(_documents(file.text)):
            runs += _Report(file, folder, reports).runs()
        if not runs:
            raise ForeignFault("fio's report tells of no job.")
        return runs


def _documents(text: str) -> list[Block]:
    """Every JSON document that begins a line, whatever text stands between."""
    text = _NO_NUMBER.sub(": null", text)
    decoder, at = json.JSONDecoder(parse_constant=lambda _: None), 0
    documents: list[Block] = []
    while (opened := _OPEN.search(text, at)) and len(documents) < DOCUMENTS_MOST:
        try:
            document, at = decoder.raw_decode(text, opened.start())
        except (ValueError, RecursionError):
            at = opened.end()
            continue
        if isinstance(document, dict) and "fio version" in document:
            documents.append(document)
    if not documents:
        raise ForeignFault("fio's report is cut off, or is no JSON.")
    return documents


def _entries(document: Block) -> list[Block]:
    """The jobs of a report, of fio alone or of clients of its servers."""
    every = document.get("client_stats", document.get("jobs"))
    return [entry for entry in every if isinstance(entry, dict)] if isinstance(every, list) else []


def _place(entry: Block) -> tuple[str, int, str]:
    """What tells an entry from others of its report: job, group and client."""
    client = f"{entry.get('hostname', '')}:{entry.get('port', '')}".strip(":")
    return str(entry.get("jobname", "")), whole_number(entry.get("groupid")) or 0, client


def _done(document: Block) -> dict[tuple[str, int, str], float]:
    done: dict[tuple[str, int, str], float] = {}
    for entry in _entries(document):
        ios = sum(number(table_of(entry.get(way)).get("total_ios")) or 0.0 for way in WAYS)
        done[_place(entry)] = done.get(_place(entry), 0.0) + ios
    return done


def _runs(documents: Sequence[Block]) -> Iterator[list[Block]]:
    """Reports of one run, each of which counts on from the one before."""
    run: list[Block] = []
    for document in documents:
        if run:
            before, now = _done(run[-1]), _done(document)
            if any(now.get(place, -1) < ios for place, ios in before.items()):
                yield run
                run = []
        run.append(document)
    if run:
        yield run


@dataclass(frozen=True)
class _Report:
    """One run of fio: its last report, and those before that say how it went."""

    file: ForeignFile
    folder: Folder
    reports: Sequence[Block]

    def runs(self) -> list[ForeignRun]:
        """A run for each job and group, and one for a sum over several of them."""
        last = self.reports[-1]
        groups: dict[tuple[str, int], dict[str, list[Block]]] = {}
        sums: list[Block] = []
        for entry in _entries(last):
            job, group, client = _place(entry)
            if job == ALL_CLIENTS:
                sums.append(entry)
            else:
                groups.setdefault((job, group), {}).setdefault(client, []).append(entry)
        runs = [
            self._run(job, group, clients, alone=len(groups) == 1)
            for (job, group), clients in groups.items()
        ]
        if not sums:
            return runs
        claimed = tuple(_figures(way, [sums[0]]) for way in _used(sums))
        if len(runs) == 1:
            return [replace(runs[0], details=replace(runs[0].details, claimed=claimed))]
        phases = len({group for _, group in groups})
        return [*runs, self._sum(sums[0], claimed, phases, runs[0])]

    def _sum(
        self, entry: Block, claimed: tuple[Figures, ...], phases: int, like: ForeignRun
    ) -> ForeignRun:
        """What fio says of all jobs and groups of all clients together."""
        details = replace(like.details, claimed=claimed, phases=phases)
        host = ImportedHost(f"{self.file.name}: {ALL_CLIENTS}", claimed)
        client = ImportedClient(ALL_CLIENTS, host, runtime_s=_runtime_s([entry]))
        return replace(
            like, name=ALL_CLIENTS, details=details, clients=(client,), settings=(), in_flight=None
        )

    def _run(
        self, job: str, group: int, clients: Mapping[str, list[Block]], *, alone: bool
    ) -> ForeignRun:
        first = next(iter(clients.values()))[0]
        last = self.reports[-1]
        options = texts_of(
            {**table_of(last.get("global options")), **table_of(first.get("job options"))}
        )
        figures = tuple(
            self._client(name, job, group, entries, options) for name, entries in clients.items()
        )
        jobs = max(len(entries) for entries in clients.values())
        if jobs == 1:
            jobs = whole_number(_plain(options.get("numjobs"))) or 1
        if len(figures) == 1:
            figures = (self._with_logs(figures[0], job, options, alone=alone),)
        block = _size(options.get("bs", options.get("blocksize", "4k")).split(",")[0])
        size = _size(options.get("size", options.get("filesize", "")))
        grouped = "group_reporting" in options and options["group_reporting"] != "0"
        details = ImportedRun(
            tool="fio",
            version=clean(str(last.get("fio version", ""))).removeprefix("fio-"),
            files=(self.file.name,),
            buffered=_buffered(options),
            data_bytes=None if size is None else size * jobs,
            ramp_s=_seconds(options.get("ramp_time")),
            asked_s=_seconds(options.get("runtime")),
            paced=any(name.startswith(_PACED) for name in options),
            grouped=grouped,
            notes=(f"latencies are {_kind(first)}",),
        )
        return ForeignRun(
            name=clean(job) or self.file.name,
            details=details,
            clients=figures,
            settings=tuple((name, _axis_value(value)) for name, value in sorted(options.items())),
            ignored=IGNORED,
            kind=options.get("rw", options.get("readwrite", "")),
            in_flight=_in_flight(options, jobs),
            at_ns=_moment(last),
            headline=headline_of(block),
        )

    def _client(
        self, name: str, job: str, group: int, entries: Sequence[Block], options: Mapping[str, str]
    ) -> ImportedClient:
        """Entries that ran side by side on one client."""
        ways = _used(entries)
        host = ImportedHost(
            source=f"{self.file.name}: {clean(job)}" + (f", {clean(name)}" if name else ""),
            figures=tuple(_figures(way, entries) for way in ways),
            group=group,
            errors=tuple(
                f"error {code} of job {clean(job)}"
                for entry in entries
                if (code := whole_number(entry.get("error")))
            ),
        )
        starts = [whole_number(entry.get("job_start")) or 0 for entry in entries]
        ramp_ms = round((_seconds(options.get("ramp_time")) or 0.0) * 1000)
        return ImportedClient(
            name=name or "client",
            details=host,
            bins={way: bins for way in ways if (bins := _bins(way, entries))},
            seconds=tuple(self._seconds(job, group, name, ways)),
            start_ns=(min(starts) + ramp_ms) * NS_PER_MS if min(starts) > 0 else None,
            runtime_s=_runtime_s(entries),
        )

    def _seconds(
        self, job: str, group: int, client: str, ways: Sequence[str]
    ) -> Iterator[ImportedSecond]:
        """What was done between one report and the next."""
        rows = [
            (_moment(report), [e for e in _entries(report) if _place(e) == (job, group, client)])
            for report in self.reports
        ]
        dated = [(at, entries) for at, entries in rows if at is not None and entries]
        if len(dated) < 3:
            return
        begin = dated[0][0] - round((_runtime_s(dated[0][1]) or 0.0) * 1e9)
        for way in ways:
            before, ended = (0, 0, 0.0), begin
            for at, entries in dated:
                blocks = [table_of(entry.get(way)) for entry in entries]
                now = (
                    sum(whole_number(block.get("total_ios")) or 0 for block in blocks),
                    sum(whole_number(block.get("io_bytes")) or 0 for block in blocks),
                    sum(
                        (number(table_of(block.get("lat_ns")).get("mean")) or 0.0)
                        * (number(block.get("total_ios")) or 0.0)
                        for block in blocks
                    ),
                )
                if at > ended and now[0] > before[0]:
                    yield ImportedSecond(
                        way,
                        at - begin,
                        at - ended,
                        now[0] - before[0],
                        max(now[1] - before[1], 0),
                        max(now[2] - before[2], 0.0),
                    )
                before, ended = now, max(at, ended)

    def _with_logs(
        self, client: ImportedClient, job: str, options: Mapping[str, str], *, alone: bool
    ) -> ImportedClient:
        """The client with what logs beside the report tell, where they are surely its own."""
        if client.seconds:
            return client
        logs = fio_logs.read(self.file, self.folder, job, options, alone=alone)
        # Some versions lose the last window of bins: such bins are of a part of the run.
        counts = {figure.operation: figure.count for figure in client.details.figures}
        complete = {
            way: bins for way, bins in logs.bins.items() if sum(bins.values()) == counts.get(way)
        }
        return replace(client, seconds=logs.seconds, bins=client.bins or complete)


def _used(entries: Sequence[Block]) -> list[str]:
    """The ways in which anything was done; reads where nothing was."""
    ways = [
        way
        for way in WAYS
        if any(number(table_of(entry.get(way)).get("total_ios")) for entry in entries)
    ]
    return ways or ["read"]


def _kind(entry: Block) -> str:
    """Which of fio's latencies has percentiles: `lat` where it was asked for, else `clat`."""
    for way in WAYS:
        block = table_of(entry.get(way))
        for kind in ("lat_ns", "clat_ns"):
            if table_of(block.get(kind)).get("percentile"):
                return kind.removesuffix("_ns")
    return "clat"


def _figures(way: str, entries: Sequence[Block]) -> Figures:
    """One direction as fio prints it; of several entries rates and counts are added."""
    blocks = [table_of(entry.get(way)) for entry in entries]
    kind = f"{_kind(entries[0])}_ns"
    latencies = [table_of(block.get(kind)) for block in blocks]
    counts = [whole_number(block.get("total_ios")) or 0 for block in blocks]
    runtimes = [number(block.get("runtime")) or 0.0 for block in blocks]
    used = [latency for latency, count in zip(latencies, counts, strict=True) if count] or latencies
    lows = [value for latency in used if (value := number(latency.get("min"))) is not None]
    highs = [value for latency in used if (value := number(latency.get("max"))) is not None]
    total = sum(counts)
    # Some versions count no latency of a run that ended soon after its ramp, and print zeros.
    timed = bool(total) and any(number(latency.get("N", 1)) for latency in latencies)
    waited = sum(
        (number(latency.get("mean")) or 0.0) * count
        for latency, count in zip(latencies, counts, strict=True)
    )
    failed = sum(whole_number(entry.get("total_err")) or 0 for entry in entries)
    single = len(blocks) == 1
    return Figures(
        operation=way,
        count=total,
        bytes=sum(whole_number(block.get("io_bytes")) or 0 for block in blocks),
        seconds=max(runtimes) / 1000 or None,
        rate_per_s=sum(number(block.get("iops")) or 0.0 for block in blocks),
        bw_bytes_per_s=sum(_bandwidth(block) for block in blocks),
        lat_min_ns=min(lows) if lows and timed else None,
        lat_mean_ns=number(latencies[0].get("mean"))
        if single and timed
        else waited / total
        if timed
        else None,
        lat_max_ns=max(highs) if highs and timed else None,
        percentiles=_percentiles(latencies, way, entries),
        failed=failed if way == _used(entries)[0] else 0,
        printed=_printed(blocks[0], kind) if single else (),
    )


def _bandwidth(block: Block) -> float:
    """Bytes a second: exact where fio prints them, else its KiB."""
    exact = number(block.get("bw_bytes"))
    return exact if exact is not None else (number(block.get("bw")) or 0.0) * 1024


def _percentiles(
    latencies: Sequence[Block], way: str, entries: Sequence[Block]
) -> tuple[tuple[float, float], ...]:
    """Fio's own of one entry; of several those of their bins together, none where one has none."""
    own = [_ranked(table_of(latency.get("percentile"))) for latency in latencies]
    if len(own) == 1:
        return tuple(sorted(own[0].items()))
    bins = _bins(way, entries)
    if not bins:
        return ()
    merged = Histogram(of_sparse(list(bins), list(bins.values())))
    ranks = sorted({rank for percentiles in own for rank in percentiles})
    values = ((rank, merged.percentile_ns(rank)) for rank in ranks)
    return tuple((rank, value) for rank, value in values if value is not None)


def _ranked(percentile: Block) -> dict[float, float]:
    return {
        float(key): value
        for key, text in percentile.items()
        if _RANK.fullmatch(key) and (value := number(text)) is not None
    }


def _bins(way: str, entries: Sequence[Block]) -> dict[int, int]:
    """The latency bins of json+ by our numbers; empty where an entry has none."""
    kind = f"{_kind(entries[0])}_ns"
    merged: dict[int, int] = {}
    for entry in entries:
        block = table_of(entry.get(way))
        bins = table_of(table_of(block.get(kind)).get("bins"))
        if not bins and number(block.get("total_ios")):
            return {}
        for text, count in bins.items():
            try:
                place = bin_of_midpoint(int(text))
            except (KeyError, ValueError):
                raise ForeignFault(f"there is no latency bin {clean(str(text))} in fio.") from None
            merged[place] = merged.get(place, 0) + max(whole_number(count) or 0, 0)
    return merged


def _printed(block: Block, kind: str) -> tuple[tuple[str, str], ...]:
    """The figures as they stand in the file."""
    latency = table_of(block.get(kind))
    every = {
        **{key: block.get(key) for key in ("iops", "bw_bytes", "total_ios", "runtime")},
        **{f"{kind} {key}": latency.get(key) for key in ("min", "mean", "max")},
        **{f"{kind} p{key}": value for key, value in table_of(latency.get("percentile")).items()},
    }
    return tuple((clean(name), clean(str(value))) for name, value in every.items() if value)


def _runtime_s(entries: Sequence[Block]) -> float | None:
    blocks = [table_of(entry.get(way)) for entry in entries for way in WAYS]
    return (
        max((number(block.get("runtime")) or 0.0 for block in blocks), default=0.0) / 1000 or None
    )


def _moment(document: Block) -> int | None:
    """When a report was made, in ns since 1970."""
    exact = whole_number(document.get("timestamp_ms"))
    if exact is not None:
        return exact * NS_PER_MS
    seconds = whole_number(document.get("timestamp"))
    return None if seconds is None else seconds * 1_000_000_000


def _plain(text: str | None) -> float | None:
    try:
        return None if text is None else number(float(text))
    except ValueError:
        return None


_UNITS_OF_BYTES: Final = ((1 << 30, "g"), (1 << 20, "m"), (1 << 10, "k"))


def _axis_value(text: str) -> int | str:
    """An option's value as axes have it: `4096` and `4k` are the same."""
    size = _size(text)
    if size is None:
        return text
    return next(
        (f"{size // step}{unit}" for step, unit in _UNITS_OF_BYTES if size and size % step == 0),
        size,
    )


def _size(text: str) -> int | None:
    try:
        return parse_size(text.strip().lower())
    except ValueError:
        return None


_SECONDS: Final = re.compile(r"(\d+(?:\.\d+)?)(us|ms|s|m|h|d)?")
_UNITS: Final = {"us": 1e-6, "ms": 1e-3, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}


def _seconds(text: str | None) -> float | None:
    """A time as fio takes it: seconds, or with a unit."""
    match = _SECONDS.fullmatch((text or "").strip().lower())
    return float(match[1]) * _UNITS[match[2] or "s"] if match else None


def _buffered(options: Mapping[str, str]) -> bool | None:
    """Whether I/O goes through the page cache; None where no option is told at all."""
    if not options:
        return None
    if options.get("buffered", "").strip() in ("0", "1"):
        return options["buffered"].strip() == "1"
    return options.get("direct", "0").strip() in ("0", "false")


def _in_flight(options: Mapping[str, str], jobs: int) -> int | None:
    """How many I/Os there may be at once; None where no option is told at all."""
    if not options:
        return None
    engine = options.get("ioengine", "psync")
    depth = (
        1 if engine in SYNC_IOENGINES else whole_number(_plain(options.get("iodepth", "1"))) or 1
    )
    return depth * jobs
