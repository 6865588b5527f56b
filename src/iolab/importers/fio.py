"""fio's JSON and json+ of 2.1 to 3.42: groups, clients of servers, status intervals, logs beside.

Entries of one job and group ran side by side and are one client's. Jobs of one phase ran side by
side, too: each is a run, and so are all of them together. Phases ran one after the other. What fio
adds up over clients ("All clients") is kept as its claim: it adds phases, too.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import chain
from typing import Final

from msgspec.structs import replace

from iolab.importers import fio_logs
from iolab.importers.files import (
    NAME_CHARACTERS,
    ForeignFile,
    ForeignFileError,
    ImportFileSet,
    dict_or_empty,
    finite_number,
    printable_options,
    rounded_number,
    short_distinct_name,
)
from iolab.importers.fio_documents import (
    CLOCK_SLACK_S,
    TERSE_NOT_READ,
    TEXT_NOT_READ,
    UNREAD,
    FioEntryKey,
    FioReportDocument,
    JsonDict,
    find_fio_reports_and_mark_lines,
    fio_entry_key,
    group_reports_by_run,
)
from iolab.importers.fio_figures import DIRECTIONS, ConcurrentFioEntries, DirectionSums
from iolab.importers.fio_units import (
    KB_BASE,
    is_option_on,
    parse_fio_bytes,
    parse_fio_seconds,
    size_as_axis_value,
)
from iolab.importers.foreign_run import (
    ForeignRun,
    ImportedClient,
    ImportedClientDetails,
    ImportedInterval,
    ImportedRunDetails,
    OperationFigures,
    indicator_for_block_size,
)
from iolab.record import Record
from iolab.text import excerpt
from iolab.units import NS_PER_MS, NS_PER_S

ALL_CLIENTS: Final = "All clients"
"""How fio calls the sum over all clients of its servers."""

DONE_SHARE: Final = 0.99
"""Of the size of a job: its last blocks may not come out even."""

JOBS_NAMED: Final = 3
"""Jobs that ran side by side whose names are that of all together; of more only the number."""

IGNORED: Final = {
    "name": "it is the workload's",
    "description": "it is for people",
    "startdelay": "when a job began is no load",
    "stonewall": "what ran beside a job is a setting of its own",
    "wait_for_previous": "what ran beside a job is a setting of its own",
    "new_group": "what ran beside a job is a setting of its own",
    "group_reporting": "it only changes how figures are printed",
    "percentile_list": "it only changes which percentiles are printed",
    "significant_figures": "it only changes how figures are printed",
    "unit_base": "it only changes how figures are printed",
    "kb_base": "the sizes here are bytes",
    "disk_util": "it only changes what is printed",
    "bwavgtime": "it only changes how figures are printed",
    "iopsavgtime": "it only changes how figures are printed",
    "randseed": "another seed is another order of the same load",
    "allrandrepeat": "another seed is another order of the same load",
    "write_bw_log": "a path of output",
    "write_hist_log": "a path of output",
    "write_iolog": "a path of output",
    "write_iops_log": "a path of output",
    "write_lat_log": "a path of output",
    "log_avg_msec": "how a log is written",
    "log_compression": "how a log is written",
    "log_hist_coarseness": "how a log is written",
    "log_hist_msec": "how a log is written",
    "log_max_value": "how a log is written",
    "log_offset": "how a log is written",
    "log_store_compressed": "how a log is written",
    "log_unix_epoch": "how a log is written",
    "log_alternate_epoch": "how a log is written",
    "per_job_logs": "how a log is written",
}
"""Options that cannot matter to the load, each with the reason."""

_SYNC_ENGINES: Final = frozenset(
    [
        "cpuio",
        "dev-dax",
        "e4defrag",
        "exec",
        "falloc",
        "filecreate",
        "filestat",
        "filedelete",
        "dircreate",
        "dirstat",
        "dirdelete",
        "ftruncate",
        "gfapi",
        "http",
        "ime_psync",
        "ime_psyncv",
        "libcufile",
        "libhdfs",
        "libhipfile",
        "libiscsi",
        "libpmem",
        "libzbc",
        "mmap",
        "mtd",
        "netsplice",
        "net",
        "page_fault",
        "sg",
        "splice",
        "sync",
        "psync",
        "vsync",
        "pvsync",
        "pvsync2",
    ]
)
"""Engines that fio marks FIO_SYNCIO: one I/O at a time, whatever iodepth says."""

_PACED: Final = ("rate", "rate_iops", "thinktime", "flow")

_SIZES: Final = (
    "bs",
    "blocksize",
    "ba",
    "blockalign",
    "size",
    "filesize",
    "io_size",
    "io_limit",
    "offset",
    "offset_increment",
    "rate",
)
_TIMES: Final = ("runtime", "timeout", "ramp_time")


class FioImporter:
    """See the module."""

    tool: Final = "fio"

    def recognises(self, file: ForeignFile) -> bool:
        """Whether there is a report of fio's in it, be it one that cannot be read."""
        if b'"fio version"' in file.utf8_bytes:
            return b"{" in file.utf8_bytes
        return any(unread.search(file.utf8_bytes) for unread in UNREAD)

    def read(self, file: ForeignFile, file_set: ImportFileSet) -> Sequence[ForeignRun]:
        """Each job of each report that is no interval of a later one."""
        if '"fio version"' not in file.text:
            text = UNREAD[0].search(file.utf8_bytes) is not None
            raise ForeignFileError(
                TEXT_NOT_READ if text else TERSE_NOT_READ, "Run fio with --output-format=json+."
            )
        runs: list[ForeignRun] = []
        for reports in group_reports_by_run(find_fio_reports_and_mark_lines(file)):
            own = _FioRunReports(file, file_set, reports).foreign_runs()
            last = reports[-1]
            if not own:
                file.line_coverage.mark_left_out(
                    last.first_line, last.last_line, "This report of fio has no job."
                )
            runs += own
        if not runs:
            raise ForeignFileError("fio's report has no job.")
        return runs


class _FioJob(Record):
    """A job of one group, with the entries of each client."""

    name: str
    group: int
    entries_by_client: Mapping[str, tuple[JsonDict, ...]]
    options: Mapping[str, str]

    @property
    def entries(self) -> tuple[JsonDict, ...]:
        """Those of all clients."""
        return tuple(chain.from_iterable(self.entries_by_client.values()))

    @property
    def runtime_s(self) -> float:
        """How long it ran; 0 where that is not told."""
        return ConcurrentFioEntries(self.entries, self.options).runtime_s or 0.0

    @property
    def run_start_and_end_ms(self) -> tuple[int, int] | None:
        """When it ran; None where its fio, before 3.36, does not tell."""
        starts = [rounded_number(entry.get("job_start")) or 0 for entry in self.entries]
        runtime = ConcurrentFioEntries(self.entries, self.options).runtime_s
        if not starts or min(starts) <= 0 or runtime is None:
            return None
        return min(starts), max(starts) + round(1000 * runtime)

    @property
    def numjobs(self) -> int:
        """How many ran at once on one client."""
        jobs = max(
            (
                ConcurrentFioEntries(entries, self.options).job_count
                for entries in self.entries_by_client.values()
            ),
            default=1,
        )
        return jobs if jobs > 1 else rounded_number(_parse_float(self.options.get("numjobs"))) or 1

    @property
    def max_in_flight_per_client(self) -> int | None:
        """How many I/Os there may be at once on one client; None where that is not told.

        Without an engine it is psync, or windowsaio: a depth that is told then says neither.
        """
        options = self.options
        if not options or self.name == ALL_CLIENTS:
            return None
        depth = rounded_number(_parse_float(options.get("iodepth", "1"))) or 1
        if "ioengine" not in options and depth > 1:
            return None
        is_sync = options.get("ioengine", "psync").split(",")[0] in _SYNC_ENGINES
        return (1 if is_sync else depth) * self.numjobs

    @property
    def is_buffered(self) -> bool | None:
        """Whether I/O goes through the page cache; None where no option of its own is told."""
        if not self.options or self.name == ALL_CLIENTS:
            return None
        if "buffered" in self.options:
            return is_option_on(self.options["buffered"])
        return not (
            is_option_on(self.options.get("direct")) or is_option_on(self.options.get("atomic"))
        )

    @property
    def data_bytes_per_client(self) -> int | None:
        """What one client works on."""
        size = self.option_bytes("size", "filesize")
        return None if size is None else size * self.numjobs

    @property
    def block_bytes(self) -> int | None:
        """Bytes of one I/O; of several sizes, the first one's."""
        return self.option_bytes("bs", "blocksize", default="4k")

    def option_bytes(self, *names: str, default: str = "") -> int | None:
        """The first of these options that is told, in bytes."""
        text = next((self.options[name] for name in names if name in self.options), default)
        return parse_fio_bytes(text.split(",")[0], _bytes_per_kb(self.options))


class _FioRunReports(Record):
    """One run of fio: its last report, and those before that say how it went."""

    file: ForeignFile
    files: ImportFileSet
    reports: Sequence[FioReportDocument]

    def foreign_runs(self) -> list[ForeignRun]:
        """A run for each job, and one for those that ran side by side or are added up."""
        jobs, sums = self._jobs_and_all_client_entries()
        shared = dict_or_empty(self.reports[-1].json_document.get("global options"))
        phases = _group_jobs_by_phase(jobs)
        runs: list[ForeignRun] = []
        for phase in phases:
            runs += [
                self._foreign_run_of_jobs(
                    [job], concurrent_jobs=[other for other in phase if other is not job]
                )
                for job in phase
            ]
            if len(phase) > 1 and not sums:
                runs.append(self._foreign_run_of_jobs(phase, concurrent_jobs=[]))
        if not sums:
            return runs
        claimed = ConcurrentFioEntries(tuple(sums[:1]), {}).figures()
        if not runs:
            # Some keep only the sum of a report.
            entry = {name: part for name, part in sums[0].items() if name != "hostname"}
            return [
                self._foreign_run_of_jobs(
                    [_FioJob(ALL_CLIENTS, 0, {"": (entry,)}, _merged_options(shared, []))],
                    concurrent_jobs=[],
                )
            ]
        if len(runs) == 1:
            return [replace(runs[0], details=replace(runs[0].details, claimed_totals=claimed))]
        return [*runs, self._foreign_run_of_all_clients(sums[0], claimed, len(phases), runs[0])]

    def _jobs_and_all_client_entries(self) -> tuple[list[_FioJob], list[JsonDict]]:
        """The jobs of the last report, and fio's sums over them."""
        last = self.reports[-1]
        shared = dict_or_empty(last.json_document.get("global options"))
        groups: dict[tuple[str, int], dict[str, list[JsonDict]]] = {}
        sums: list[JsonDict] = []
        for entry in last.job_entries:
            name, group, client = fio_entry_key(entry)
            if name == ALL_CLIENTS:
                sums.append(entry)
            else:
                groups.setdefault((name, group), {}).setdefault(client, []).append(entry)
            self._mark_unread_priority_latencies(entry)
        jobs = [
            _FioJob(
                name,
                group,
                {client: tuple(entries) for client, entries in clients.items()},
                _merged_options(shared, list(chain.from_iterable(clients.values()))),
            )
            for (name, group), clients in groups.items()
        ]
        return jobs, sums

    def _mark_unread_priority_latencies(self, entry: JsonDict) -> None:
        """Parts of an entry that are not read."""
        parts = [way for way in DIRECTIONS if dict_or_empty(entry.get(way)).get("prios")]
        if parts:
            self.file.line_coverage.mark_left_out(
                self.reports[-1].first_line,
                self.reports[-1].last_line,
                "Latencies by priority of "
                f"{excerpt(str(entry.get('jobname', '')), NAME_CHARACTERS)} are not read.",
            )

    def _foreign_run_of_all_clients(
        self,
        entry: JsonDict,
        claimed_totals: tuple[OperationFigures, ...],
        phase_count: int,
        first_run: ForeignRun,
    ) -> ForeignRun:
        """What fio says of all jobs and groups of all clients together."""
        details = replace(
            first_run.details, claimed_totals=claimed_totals, summed_phase_count=phase_count
        )
        host = ImportedClientDetails(f"{self.file.name}: {ALL_CLIENTS}", claimed_totals)
        runtime_s = ConcurrentFioEntries((entry,), {}).runtime_s
        client = ImportedClient(ALL_CLIENTS, host, runtime_s=runtime_s)
        return replace(
            first_run,
            name=ALL_CLIENTS,
            details=details,
            clients=(client,),
            settings=(),
            in_flight=None,
        )

    def _foreign_run_of_jobs(
        self, jobs: Sequence[_FioJob], *, concurrent_jobs: Sequence[_FioJob]
    ) -> ForeignRun:
        """One job, or several together that ran side by side."""
        first, last = jobs[0], self.reports[-1]
        options = first.options
        names = list(dict.fromkeys(chain.from_iterable(job.entries_by_client for job in jobs)))
        clients = tuple(self._imported_client(name, jobs) for name in names)
        if len(clients) == 1 and len(jobs) == 1:
            alone = len({fio_entry_key(entry)[:2] for entry in last.job_entries}) == 1
            clients = (self._client_with_logs(clients[0], first, is_only_job=alone),)
        every = ConcurrentFioEntries(
            tuple(chain.from_iterable(job.entries for job in jobs)), options
        )
        buffered = {job.is_buffered for job in jobs}
        data = [job.data_bytes_per_client for job in jobs]
        flights = [job.max_in_flight_per_client for job in jobs]
        claim = every.all_directions_rate_figures
        details = ImportedRunDetails(
            tool="fio",
            version=excerpt(
                str(last.json_document.get("fio version", "")), NAME_CHARACTERS
            ).removeprefix("fio-"),
            files=(self.file.name,),
            claimed_totals=() if claim is None else (claim,),
            buffered=buffered.pop() if len(buffered) == 1 else True in buffered or None,
            data_bytes=None if None in data else sum(size or 0 for size in data),
            ramp_s=parse_fio_seconds(options.get("ramp_time", "")),
            requested_runtime_s=None
            if _did_reach_size_limit(first)
            else parse_fio_seconds(options.get("runtime", "")),
            paced=any(_has_rate_or_thinktime(job.options) for job in jobs),
            is_phase_of_group=any(is_option_on(job.options.get("group_reporting")) for job in jobs),
            missed_steady_state=next(
                filter(None, map(_missed_steady_state_criterion_text, every.entries)), ""
            ),
            notes=tuple(every.note_texts()),
        )
        kind = options.get("rw", options.get("readwrite", ""))
        return ForeignRun(
            name=_run_name(jobs) or self.file.name,
            details=details,
            clients=clients,
            settings=_load_settings(jobs, concurrent_jobs),
            ignored_setting_reasons=IGNORED,
            access_kind=kind if len(jobs) == 1 else "",
            in_flight=None if None in flights else sum(flight or 0 for flight in flights),
            ended_real_ns=last.written_ns,
            indicator=indicator_for_block_size(first.block_bytes),
        )

    def _imported_client(self, name: str, jobs: Sequence[_FioJob]) -> ImportedClient:
        """Entries that ran side by side on one client."""
        first = jobs[0]
        own = tuple(chain.from_iterable(job.entries_by_client.get(name, ()) for job in jobs))
        entries = ConcurrentFioEntries(own, first.options)
        places = {FioEntryKey(job.name, job.group, name) for job in jobs}
        title = excerpt(_run_name(jobs), NAME_CHARACTERS)
        host = ImportedClientDetails(
            source_location=f"{self.file.name}: {title}"
            + (f", {excerpt(name, NAME_CHARACTERS)}" if name else ""),
            figures=entries.figures(),
            phase_number=first.group,
            errors=tuple(
                f"error {code} of job {excerpt(str(entry.get('jobname', '')), NAME_CHARACTERS)}"
                for entry in own
                if (code := rounded_number(entry.get("error")))
            ),
        )
        starts = [rounded_number(entry.get("job_start")) or 0 for entry in own]
        ramp_ms = round((parse_fio_seconds(first.options.get("ramp_time", "")) or 0.0) * 1000)
        known = bool(starts) and min(starts) > 0
        return ImportedClient(
            name=name or "client",
            details=host,
            bins={
                way: bins
                for way in entries.operations_with_ios
                if (bins := entries.merged_latency_bins(way))
            },
            intervals=tuple(self._intervals_between_reports(places, entries)),
            start_ns=(min(starts) + ramp_ms) * NS_PER_MS if known else None,
            runtime_s=entries.runtime_s,
        )

    def _intervals_between_reports(
        self, entry_keys: set[FioEntryKey], final_entries: ConcurrentFioEntries
    ) -> Iterator[ImportedInterval]:
        """What was done between one report and the next."""
        rows = [
            (
                report.written_ns,
                ConcurrentFioEntries(
                    tuple(
                        entry for entry in report.job_entries if fio_entry_key(entry) in entry_keys
                    ),
                    final_entries.options,
                ),
            )
            for report in self.reports
        ]
        dated = [(at, entries) for at, entries in rows if at is not None and entries.entries]
        if len(dated) < 3:
            return
        begin = dated[0][0] - round((dated[0][1].runtime_s or 0.0) * NS_PER_S)
        for way in final_entries.directions_with_ios:
            before, ended = DirectionSums(0, 0, 0.0), begin
            for at, entries in dated:
                now = entries.direction_sums(way)
                if at > ended and now.operation_count > before.operation_count:
                    yield ImportedInterval(
                        way,
                        at - begin,
                        at - ended,
                        now.operation_count - before.operation_count,
                        max(now.bytes - before.bytes, 0),
                        max(now.lat_sum_ns - before.lat_sum_ns, 0.0),
                    )
                before, ended = now, max(at, ended)

    def _client_with_logs(
        self, client: ImportedClient, job: _FioJob, *, is_only_job: bool
    ) -> ImportedClient:
        """The client with what logs beside the report tell, where they are surely its own."""
        if client.intervals:
            return client
        logs = fio_logs.read_fio_logs_and_mark_used(
            self.file,
            self.files,
            job.name,
            job.options,
            is_only_job=is_only_job,
            lat_unit_ns=ConcurrentFioEntries(job.entries, job.options).latency_unit_ns,
        )
        # Some versions lose the last window of bins: such bins are of a part of the run.
        counts = {figure.operation: figure.count for figure in client.details.figures}
        complete = {
            way: bins for way, bins in logs.bins.items() if sum(bins.values()) == counts.get(way)
        }
        return replace(client, intervals=logs.intervals, bins=client.bins or complete)


def _group_jobs_by_phase(jobs: Sequence[_FioJob]) -> list[list[_FioJob]]:
    """The jobs that ran side by side, phase by phase.

    Those of one group did. A further group began when all before had ended where it has
    `stonewall`, at once where it only has `new_group`; but reports of bare options leave these out.
    Then its times say so, if they are told, or that fio did not run for as long as all groups took.
    """
    groups: dict[int, list[_FioJob]] = {}
    for job in jobs:
        groups.setdefault(job.group, []).append(job)
    phases: list[list[_FioJob]] = []
    for _, group in sorted(groups.items()):
        if phases and _did_group_run_in_last_phase(phases, group):
            phases[-1] += group
        else:
            phases.append(list(group))
    return phases


def _did_group_run_in_last_phase(
    phases: Sequence[Sequence[_FioJob]], group: Sequence[_FioJob]
) -> bool:
    before = phases[-1]
    spans = [job.run_start_and_end_ms for job in (*before, *group)]
    known = [span for span in spans if span is not None]
    if len(known) == len(spans):
        return min(span[0] for span in known[len(before) :]) < max(
            span[1] for span in known[: len(before)]
        )
    walls = ("stonewall", "wait_for_previous")
    if any(is_option_on(job.options.get(name)) for job in group for name in walls):
        return False
    if any(is_option_on(job.options.get("new_group")) for job in group):
        return True
    elapsed = max(
        finite_number(entry.get("elapsed")) or 0.0 for job in group for entry in job.entries
    )
    total_s = sum(max(job.runtime_s for job in phase) for phase in (*phases, group))
    return 0 < elapsed < total_s - CLOCK_SLACK_S


def _run_name(jobs: Sequence[_FioJob]) -> str:
    names = [short_distinct_name(job.name) for job in jobs]
    if len(names) <= JOBS_NAMED:
        return " + ".join(names)
    return f"{names[0]} + {len(names) - 1} more"


def _merged_options(global_options: JsonDict, entries: Sequence[JsonDict]) -> dict[str, str]:
    """The options of a job; where clients have others, all of theirs."""
    values: dict[str, dict[str, None]] = {}
    for entry in entries or [{}]:
        for name, text in printable_options(
            {**global_options, **dict_or_empty(entry.get("job options"))}
        ).items():
            values.setdefault(name, {})[text] = None
    return {name: " | ".join(texts) for name, texts in values.items()}


def _load_settings(
    jobs: Sequence[_FioJob], concurrent_jobs: Sequence[_FioJob]
) -> tuple[tuple[str, int | str], ...]:
    """All options of a job, sizes and times in one form, and what ran beside it.

    Of several jobs each option has the values of all of them that have it.
    """
    values: dict[str, dict[int | str, None]] = {}
    for job in jobs:
        for name, text in job.options.items():
            values.setdefault(name, {})[_normalized_setting(name, text, job.options)] = None
    settings: dict[str, int | str] = {
        name: next(iter(own)) if len(own) == 1 else " | ".join(map(str, own))
        for name, own in sorted(values.items())
    }
    if concurrent_jobs:
        settings["beside"] = ", ".join(
            sorted(excerpt(job.name, NAME_CHARACTERS) for job in concurrent_jobs)
        )
    return tuple(settings.items())


def _normalized_setting(name: str, text: str, fio_options: Mapping[str, str]) -> int | str:
    """An option's value in one form: `4096` and `4k` are the same, as are `60` and `1m` of time."""
    if name in _SIZES:
        size = parse_fio_bytes(text, _bytes_per_kb(fio_options))
        return text if size is None else size_as_axis_value(size)
    if name in _TIMES and (seconds := parse_fio_seconds(text)) is not None:
        return int(seconds) if seconds == int(seconds) else f"{seconds:g}"
    return text


def _bytes_per_kb(fio_options: Mapping[str, str]) -> int:
    return 1000 if fio_options.get("kb_base", "").strip() == "1000" else KB_BASE


def _did_reach_size_limit(job: _FioJob) -> bool:
    """Whether it did all that it was to do: its run time was only a limit."""
    done = ConcurrentFioEntries(job.entries, job.options).moved_bytes
    size = job.data_bytes_per_client
    return size is not None and done >= DONE_SHARE * size * len(job.entries_by_client)


def _has_rate_or_thinktime(fio_options: Mapping[str, str]) -> bool:
    """Whether a rate or a pause holds the load back; 0 is none."""
    return any(
        any(part.strip() not in ("", "0") for part in fio_options.get(name, "").split(","))
        for name in _PACED
    )


def _missed_steady_state_criterion_text(entry: JsonDict) -> str:
    """What fio says of a steady state that it did not come to; empty for none."""
    steady = dict_or_empty(entry.get("steadystate"))
    if not steady or rounded_number(steady.get("attained")) != 0:
        return ""
    wanted = excerpt(str(steady.get("ss", "")), NAME_CHARACTERS)
    seconds = rounded_number(steady.get("duration"))
    return f"{wanted} over {seconds} s" if seconds else wanted


def _parse_float(text: str | None) -> float | None:
    try:
        return None if text is None else finite_number(float(text))
    except ValueError:
        return None
