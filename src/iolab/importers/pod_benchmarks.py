"""Programs that run fio once in a pod and print a summary: kubestr, kbench and dbench.

What they print was read in their sources. kubestr's default job file has four jobs without
`stonewall`: they share the volume, and none has the rate that it has alone. kbench prints the means
of fio's samples, a job after the other; dbench cuts its figures out of fio's text.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

from msgspec.structs import replace

from iolab.core.limits import SETTING_CHARACTERS_MAX
from iolab.importers.files import (
    NAME_CHARACTERS,
    ForeignFile,
    ForeignFileError,
    ImportFileSet,
    dict_or_empty,
    parse_number,
    short_distinct_name,
)
from iolab.importers.fio import IGNORED, FioImporter
from iolab.importers.fio_jobs import job_file_sections
from iolab.importers.fio_units import is_option_on, parse_fio_bytes, parse_fio_seconds
from iolab.importers.foreign_run import (
    ForeignRun,
    ImportedClient,
    ImportedClientDetails,
    ImportedRunDetails,
    OperationFigures,
    indicator_for_block_size,
)
from iolab.importers.sections import OutputSection, split_into_sections
from iolab.text import excerpt
from iolab.units import NS_PER_MS, NS_PER_US

KIB: Final = 1 << 10

CLASS: Final = "storage class"
"""The setting that names what was measured."""

SIDE_BY_SIDE: Final = "its job file has no stonewall: all jobs ran at the same time"

_TERMINAL_COLOUR: Final = re.compile(r"\x1b\[[0-9;]*m")

_KUBESTR_TEXT: Final = re.compile(rb"^\s*FIO version - fio-", re.MULTILINE)
_KUBESTR_PROGRESS: Final = re.compile(
    r"\s*(?:(?:PVC|Pod) created .*|Running FIO test .*|Elapsed time- .*|FIO test results:?"
    r"|\s*-\s*(?:OK|Error|Warning)|Disk stats \(read/write\):|\S+: ios=\d+/\d+ .*)\s*"
)
_KUBESTR_TEST: Final = re.compile(
    r"Running FIO test \((?P<test>[^)]*)\) on StorageClass \((?P<class>[^)]*)\)"
)
_KUBESTR_DEFAULT_JOBS: Final = ("read_iops", "write_iops", "read_bw", "write_bw")
_KUBESTR_OPTION_NAMES: Final = {"blocksize": "bs", "filesize": "size"}

_KBENCH: Final = re.compile(r"^FIO Benchmark (?:Comparsion |Comparison )?Summary", re.MULTILINE)
_KBENCH_PROGRESS: Final = re.compile(
    r"(?:TEST_FILE|TEST_OUTPUT_PREFIX|TEST_SIZE|MODE|QUICK_MODE): .*|Benchmarking \S+ into \S+"
    r"|WARN: QUICK_MODE.*|=+|fio: .*|\S+: Laying out IO file.*"
)
_KBENCH_TABLES: Final[Mapping[str, tuple[str, Mapping[str, str]]]] = {
    "IOPS": ("iops", {"bs": "4K", "iodepth": "64"}),
    "Bandwidth in KiB/sec": ("bw", {"bs": "128k", "iodepth": "64"}),
    "Latency in ns": ("lat", {"bs": "4k", "iodepth": "1"}),
}
"""The tables by their headings: the end of their jobs' names, and what these do."""

_KBENCH_RATES: Final = r"([\d,]*) / ([\d,]*)"
_KBENCH_ROW: Final = re.compile(
    rf"\s*(Random|Sequential):\s+{_KBENCH_RATES}(?:\s+vs\s+{_KBENCH_RATES}\s+:.*)?\s*"
)
_KBENCH_COMMON: Final = {"direct": "1", "ioengine": "libaio", "time_based": "1"}
_KBENCH_SETTING: Final = re.compile(r"(?i)(SIZE|Mode|QUICK MODE): *(\S+)")

_DBENCH: Final = re.compile(rb"^= Dbench Summary =|^Testing Read IOPS\.\.\.", re.MULTILINE)
_DBENCH_TEST: Final = re.compile(r"^Testing (?P<test>[A-Z][A-Za-z/ ]+)\.\.\.|^All tests complete\.")
_DBENCH_PROGRESS: Final = re.compile(r"Working dir: .*|All tests complete\.|=+|= Dbench Summary =")
_DBENCH_SUMMARY: Final = re.compile(
    r"(?P<name>Random Read/Write IOPS|Average Latency \(usec\) Read/Write|Sequential Read/Write"
    r"|Mixed Random Read/Write IOPS): (?P<read>[^ /]*(?:/s)?) ?/ ?(?P<write>[^ /]*?(?:/s)?)"
    r"(?:\. BW: (?P<read_bw>\S*) / (?P<write_bw>\S*))?"
)
_DBENCH_TESTS: Final[Mapping[str, tuple[str, Mapping[str, str]]]] = {
    "Read IOPS": ("read_iops", {"rw": "randread", "bs": "4K", "iodepth": "64"}),
    "Write IOPS": ("write_iops", {"rw": "randwrite", "bs": "4K", "iodepth": "64"}),
    "Read Bandwidth": ("read_bw", {"rw": "randread", "bs": "128K", "iodepth": "64"}),
    "Write Bandwidth": ("write_bw", {"rw": "randwrite", "bs": "128K", "iodepth": "64"}),
    "Read Latency": ("read_latency", {"rw": "randread", "bs": "4K", "iodepth": "4"}),
    "Write Latency": ("write_latency", {"rw": "randwrite", "bs": "4K", "iodepth": "4"}),
    "Read Sequential Speed": (
        "read_seq",
        {"rw": "read", "bs": "1M", "iodepth": "16", "numjobs": "4"},
    ),
    "Write Sequential Speed": (
        "write_seq",
        {"rw": "write", "bs": "1M", "iodepth": "16", "numjobs": "4"},
    ),
    "Read/Write Mixed": (
        "rw_mix",
        {"rw": "randrw", "rwmixread": "75", "bs": "4k", "iodepth": "64"},
    ),
}

_DBENCH_COMMON: Final = {
    "direct": "1",
    "ioengine": "libaio",
    "ramp_time": "2",
    "runtime": "15",
    "time_based": "1",
}
_FIO_TEXT_ROW: Final = re.compile(r"^ +(read|write) ?: (.*)$")
_FIO_TEXT_BYTES: Final = re.compile(r"\(([\d.]+[A-Za-z]*)/(\d+)msec\)")
_FIO_TEXT_COUNT: Final = re.compile(
    r"^ +issued *(?:rwts)?: total=(?:r=)?(\d+)[^,/]*[,/](?:w=)?(\d+)"
)
_FIO_TEXT_LATENCY: Final = re.compile(
    r"^ +lat \(([num]?sec)\) ?: min= *([\d.]+k?), max= *([\d.]+k?), avg= *([\d.]+)"
)
_FIO_TEXT_PERCENTILE: Final = re.compile(r"^ +(?:\||clat percentiles)")
_LATENCY_UNITS: Final[Mapping[str, float]] = {
    "nsec": 1.0,
    "usec": float(NS_PER_US),
    "msec": float(NS_PER_MS),
}


class KubestrImporter:
    """kubestr: a job is a run, in its JSON (`-o json`) and in its text."""

    tool: Final = "kubestr"

    def recognises(self, file: ForeignFile) -> bool:
        """By the job file in its JSON, or by its heading of a result."""
        data = file.utf8_bytes
        if b'"fio version"' in data:
            return b'"fioConfig"' in data and b'"TestName"' in data
        return _KUBESTR_TEXT.search(data) is not None

    def read(self, file: ForeignFile, file_set: ImportFileSet) -> Sequence[ForeignRun]:
        """The jobs of every result."""
        file_set.mark_used_and_read(file)
        if b'"fioConfig"' in file.utf8_bytes:
            return _read_kubestr_json_runs_and_mark_lines(file, file_set)
        return _kubestr_text_runs(file)


def _read_kubestr_json_runs_and_mark_lines(
    file: ForeignFile, file_set: ImportFileSet
) -> list[ForeignRun]:
    runs = list(FioImporter().read(file, file_set))
    document, first, last = _first_json_value_and_lines(file)
    file.line_coverage.mark_read(first, last)
    _mark_progress_lines(file, _KUBESTR_PROGRESS)
    results = [dict_or_empty(item).get("Raw") for item in _wrap_in_list_unless_list(document)]
    raw = next((dict_or_empty(item) for item in results if dict_or_empty(item)), {})
    storage_class = dict_or_empty(raw.get("storageClass"))
    name = dict_or_empty(storage_class.get("metadata")).get("name")
    sections = job_file_sections(str(raw.get("fioConfig", "")))
    job_file = {item.options.get("name", item.name): item.options for item in sections}
    served_by = [
        str(storage_class.get("provisioner") or ""),
        *(
            f"{key}={value}"
            for key, value in dict_or_empty(storage_class.get("parameters")).items()
        ),
    ]
    notes = (
        [excerpt(f"of the class' {' '.join(filter(None, served_by))}")] if any(served_by) else []
    )
    return [_with_job_file_options(run, job_file, name, notes) for run in runs]


def _first_json_value_and_lines(file: ForeignFile) -> tuple[object, int, int]:
    """The first document of a file with its first and last line."""
    opening = re.search(r"^\s*[\[{]", file.text, re.MULTILINE)
    if opening is None:
        raise ForeignFileError("kubestr's result is cut off, or is no JSON.")
    begin = opening.end() - 1
    try:
        document, end = json.JSONDecoder().raw_decode(file.text, begin)
    except (ValueError, RecursionError):
        raise ForeignFileError("kubestr's result is cut off, or is no JSON.") from None
    return document, file.line_number_at(begin), file.line_number_at(end - 1)


def _wrap_in_list_unless_list(document: object) -> list[Any]:
    return document if isinstance(document, list) else [document]


def _with_job_file_options(
    foreign_run: ForeignRun,
    job_file_options: Mapping[str, Mapping[str, str]],
    storage_class: object,
    notes: Iterable[str],
) -> ForeignRun:
    """The run with the options that kubestr leaves out of fio's report."""
    reported = dict(foreign_run.settings)
    options = job_file_options.get(foreign_run.name, {})
    lacking = {key: value for key, value in options.items() if key not in reported}
    jobs = int(parse_number(lacking.get("numjobs", "1")) or 1)
    paced = any(key in lacking for key in ("rate", "rate_iops", "thinktime"))
    walls = any(is_option_on(job.get("stonewall", "0")) for job in job_file_options.values())
    own_notes = [*notes, *([SIDE_BY_SIDE] if len(job_file_options) > 1 and not walls else [])]
    return replace(
        foreign_run,
        settings=(
            *foreign_run.settings,
            *lacking.items(),
            *([(CLASS, excerpt(str(storage_class), NAME_CHARACTERS))] if storage_class else []),
        ),
        in_flight=None if foreign_run.in_flight is None else foreign_run.in_flight * jobs,
        details=replace(
            foreign_run.details,
            tool="kubestr",
            paced=foreign_run.details.paced or paced,
            notes=(*foreign_run.details.notes, *own_notes),
        ),
    )


def _kubestr_text_runs(file: ForeignFile) -> list[ForeignRun]:
    _mark_progress_lines(file, _KUBESTR_PROGRESS)
    runs: list[ForeignRun] = []
    before = 1
    for section in split_into_sections(file, re.compile(r"^\s*FIO version - ")):
        heading = "\n".join(file.lines[before - 1 : section.first_line - 1])
        runs += _read_kubestr_section_and_mark_lines(section, _last_match(_KUBESTR_TEST, heading))
        before = section.first_line + 1
    if not runs:
        raise ForeignFileError("kubestr printed no result: it was cut short or failed.")
    return runs


def _last_match(pattern: re.Pattern[str], text: str) -> re.Match[str] | None:
    every = list(pattern.finditer(text))
    return every[-1] if every else None


def _read_kubestr_section_and_mark_lines(
    section: OutputSection, test: re.Match[str] | None
) -> list[ForeignRun]:
    account = section.file.line_coverage
    version, shared = "", {}
    jobs: list[_KubestrTextJob] = []
    for number, line in section.numbered_lines:
        words = _options_in_line(line)
        plain = _TERMINAL_COLOUR.sub("", line).strip()
        if plain.startswith("FIO version - "):
            version = plain.removeprefix("FIO version - fio-")
        elif plain.startswith("Global options - "):
            shared = words
        elif plain.startswith("JobName:"):
            # kubestr names jobs by fio's option `name`, which few job files have.
            name = plain.removeprefix("JobName:").strip()
            jobs.append(_KubestrTextJob(name or f"job {len(jobs) + 1}", number))
        elif jobs and plain.startswith("blocksize="):
            jobs[-1].options.update(
                {_KUBESTR_OPTION_NAMES.get(key, key): value for key, value in words.items()}
            )
        elif jobs and plain in ("read:", "write:"):
            jobs[-1].rows[plain[:-1]] = {}
        elif jobs and jobs[-1].rows and re.match(r"(?:IOPS=|iops: |bw\(KiB/s\): )", plain):
            row = next(reversed(jobs[-1].rows.values()))
            row.update({f"{plain.partition(':')[0]} {key}": value for key, value in words.items()})
        else:
            continue
        account.mark_read(number)
    done = [job for job in jobs if job.rows]
    for job in jobs:
        if not job.rows:
            account.mark_left_out(job.line, job.line, "kubestr prints no figure of this job.")
    names = [job.name for job in done]
    is_default = test["test"] == "default-fio" if test else set(names) == set(_KUBESTR_DEFAULT_JOBS)
    storage_class = {CLASS: excerpt(test["class"], NAME_CHARACTERS)} if test else {}
    return [
        _kubestr_text_run(section, job, {**shared, **job.options, **storage_class}, version)
        if not is_default
        else _kubestr_text_run(
            section,
            job,
            {
                **shared,
                **job.options,
                **storage_class,
                "beside": ", ".join(sorted(name for name in names if name != job.name)),
            },
            version,
        )
        for job in done
    ]


def _options_in_line(line: str) -> dict[str, str]:
    """What is told as `key=value`; of an empty value nothing is told."""
    pairs = (word.partition("=") for word in line.split())
    return {key: value for key, _, value in pairs if key and value}


class _KubestrTextJob:
    """A job of kubestr's text, as far as it was read."""

    def __init__(self, name: str, line_number: int) -> None:
        self.name = short_distinct_name(name)
        self.line = line_number
        self.options: dict[str, str] = {}
        self.rows: dict[str, dict[str, str]] = {}


def _kubestr_text_run(
    section: OutputSection, job: _KubestrTextJob, settings: Mapping[str, str], version: str
) -> ForeignRun:
    figures = []
    for way, row in job.rows.items():
        rate = next((row[key] for key in row if key.endswith(" IOPS")), "")
        speed = next((row[key] for key in row if key.endswith(" BW(KiB/s)")), "")
        figures.append(
            _operation_figures(
                way, parse_number(rate), _multiply_if_known(parse_number(speed), KIB), row
            )
        )
    beside = "beside" in settings
    return _summary_run(
        "kubestr",
        job.name,
        section.file,
        job.line,
        tuple(figures),
        settings,
        version=version,
        notes=(SIDE_BY_SIDE,) if beside else (),
    )


class KbenchImporter:
    """kbench's summary of a volume, or of two: a run for each figure."""

    tool: Final = "kbench"

    def recognises(self, file: ForeignFile) -> bool:
        """By the heading of its summary."""
        return _KBENCH.search(file.text) is not None

    def read(self, file: ForeignFile, file_set: ImportFileSet) -> Sequence[ForeignRun]:
        """The figures of every summary."""
        del file_set
        runs: list[ForeignRun] = []
        _mark_progress_lines(file, _KBENCH_PROGRESS)
        for section in split_into_sections(file, _KBENCH):
            runs += _read_kbench_runs_and_mark_lines(section)
        if not runs:
            raise ForeignFileError("kbench printed no figure: it was cut short or failed.")
        return runs


def _read_kbench_runs_and_mark_lines(section: OutputSection) -> list[ForeignRun]:
    account = section.file.line_coverage
    volumes: Sequence[str] = ("",)
    settings: dict[str, str] = {}
    table = None
    runs: list[ForeignRun] = []
    for number, line in section.numbered_lines:
        plain = line.strip()
        heading = plain.partition(" (Read/Write)")[0]
        if plain.startswith("For: "):
            volumes = plain.removeprefix("For: ").split(" vs ")
        elif setting := _KBENCH_SETTING.fullmatch(plain):
            settings["size" if setting[1].lower() == "size" else "mode"] = setting[2].lower()
        elif heading in _KBENCH_TABLES:
            table = _KBENCH_TABLES[heading]
        elif table and (row := _KBENCH_ROW.fullmatch(line)):
            rates = [row[group] for group in range(2, 6) if row[group]]
            for place, printed in enumerate(rates):
                volume = volumes[min(place // 2, len(volumes) - 1)]
                way = ("read", "write")[place % 2]
                runs.append(
                    _kbench_run(section, number, row[1], way, printed, table, settings, volume)
                )
        elif plain.startswith("CPU Idleness:") and table:
            account.mark_left_out(number, number, "How idle the processors were is not read.")
            continue
        elif not (
            _KBENCH.match(plain)
            or plain.startswith("CPU Idleness Profiling:")
            or plain.endswith("Change")
            or _KBENCH_PROGRESS.fullmatch(plain)
        ):
            continue
        account.mark_read(number)
    return runs


def _kbench_run(
    section: OutputSection,
    line_number: int,
    access_order: str,
    direction: str,
    printed: str,
    metric_suffix_and_job: tuple[str, Mapping[str, str]],
    settings: Mapping[str, str],
    volume: str,
) -> ForeignRun:
    ending, job = metric_suffix_and_job
    value = parse_number(printed)
    row = {f"{access_order} {direction} {ending}": printed}
    figures = _operation_figures(
        direction,
        value if ending == "iops" else None,
        _multiply_if_known(value, KIB) if ending == "bw" else None,
        row,
    )
    if ending == "lat":
        figures = replace(figures, lat_mean_ns=value)
    access = {"Random": "rand", "Sequential": "seq"}[access_order]
    pattern = f"{'rand' if access_order == 'Random' else ''}{direction}"
    run = _summary_run(
        "kbench",
        f"{access}-{direction}-{ending}",
        section.file,
        line_number,
        (figures,),
        {
            **_KBENCH_COMMON,
            **job,
            "rw": pattern,
            **settings,
            **({"volume": excerpt(volume, NAME_CHARACTERS)} if volume else {}),
        },
        notes=("the mean of fio's samples, not the count over the time",),
    )
    return run if ending != "lat" else replace(run, indicator="latency")


class DbenchImporter:
    """dbench's log: a run for each of its tests, of fio's text where that is there."""

    tool: Final = "dbench"

    def recognises(self, file: ForeignFile) -> bool:
        """By the heading of its summary, or by that of its first test."""
        return _DBENCH.search(file.utf8_bytes) is not None

    def read(self, file: ForeignFile, file_set: ImportFileSet) -> Sequence[ForeignRun]:
        """The tests of every log, or the figures of its summary where it holds no more."""
        file_set.mark_used_and_read(file)
        _mark_progress_lines(file, _DBENCH_PROGRESS)
        sections = split_into_sections(file, _DBENCH_TEST)
        runs = [
            run for section in sections for run in _read_dbench_test_runs_and_mark_lines(section)
        ]
        is_whole = bool(runs)
        for number, line in enumerate(file.lines, start=1):
            if summary := _DBENCH_SUMMARY.fullmatch(line.strip()):
                file.line_coverage.mark_read(number)
                runs += (
                    [] if is_whole else _read_dbench_summary_and_mark_lines(file, number, summary)
                )
        if not runs:
            raise ForeignFileError("dbench printed no figure: it was cut short or failed.")
        return runs


class _FioTextDirectionSums:
    """What fio's text tells of one direction, over the jobs of a test."""

    def __init__(self) -> None:
        self.rate = self.speed = 0.0
        self.bytes = 0
        self.seconds = 0.0
        self.count = 0
        self.latency: tuple[float, float, float] | None = None
        self.printed: dict[str, str] = {}

    def add_row(self, text: str) -> None:
        """A line of one job: `IOPS=2345, BW=9.2MiB/s (9.6MB/s)(138MiB/15024msec)`."""
        words = {
            key.lower(): value.strip()
            for key, value in re.findall(r"(?<!\w)(\w+)= *([^,()]+)", text)
        }
        is_old = "runt" in words
        self.rate += _parse_fio_count(words.get("iops", "")) or 0.0
        self.speed += (
            _parse_fio_size(words.get("bw", "").removesuffix("/s"), has_binary_kb=is_old) or 0.0
        )
        if moved := _FIO_TEXT_BYTES.search(text):
            self.bytes += round(_parse_fio_size(moved[1], has_binary_kb=False) or 0.0)
            self.seconds = max(self.seconds, int(moved[2]) / 1000)
        elif is_old:
            self.bytes += round(_parse_fio_size(words.get("io", ""), has_binary_kb=True) or 0.0)
            runtime = parse_number(words["runt"].removesuffix("msec"))
            self.seconds = max(self.seconds, (runtime or 0.0) / 1000)
        self.printed.update(words)


class _FioTextParser:
    """What the text of one fio tells."""

    def __init__(self) -> None:
        self.sums: dict[str, _FioTextDirectionSums] = {}
        self.version = ""
        self.percentile_lines: list[int] = []
        self._way = ""

    def take_line(self, line_number: int, line: str) -> None:
        """Take the figures of a line, if it has any."""
        if row := _FIO_TEXT_ROW.match(line):
            self._way = row[1]
            self.sums.setdefault(row[1], _FioTextDirectionSums()).add_row(row[2])
        elif count := _FIO_TEXT_COUNT.match(line):
            for place, way in enumerate(("read", "write"), start=1):
                if way in self.sums:
                    self.sums[way].count += int(count[place])
        elif self._way and (latency := _FIO_TEXT_LATENCY.match(line)):
            unit = _LATENCY_UNITS.get(latency[1], 1.0)
            low, high, mean = (
                (_parse_fio_count(latency[place]) or 0.0) * unit for place in (2, 3, 4)
            )
            self.sums[self._way].latency = (low, mean, high)
        elif line.startswith("fio-"):
            self.version = line.removeprefix("fio-").strip()
        elif _FIO_TEXT_PERCENTILE.match(line):
            self.percentile_lines.append(line_number)


def _read_dbench_test_runs_and_mark_lines(section: OutputSection) -> Iterator[ForeignRun]:
    """The run of a test, of the text of fio in it."""
    account = section.file.line_coverage
    head = _DBENCH_TEST.match(section.numbered_lines[0][1])
    test = _DBENCH_TESTS.get((head and head["test"]) or "")
    if test is None:
        return
    text = _FioTextParser()
    for number, line in section.numbered_lines:
        text.take_line(number, line)
    section.mark_read()
    if not text.sums:
        reason = "fio printed no figure of this test of dbench."
        account.mark_left_out(section.first_line, section.last_line, reason)
        return
    if lines := text.percentile_lines:
        account.mark_left_out(lines[0], lines[-1], "Percentiles of fio's text are not read.")
    name, options = test
    figures = tuple(_dbench_figures(way, sums) for way, sums in text.sums.items())
    settings = {**_DBENCH_COMMON, **options}
    yield _summary_run(
        "dbench", name, section.file, section.first_line, figures, settings, version=text.version
    )


def _dbench_figures(direction: str, sums: _FioTextDirectionSums) -> OperationFigures:
    low, mean, high = sums.latency or (None, None, None)
    return replace(
        _operation_figures(direction, sums.rate or None, sums.speed or None, sums.printed),
        count=sums.count or None,
        bytes=sums.bytes or None,
        seconds=sums.seconds or None,
        lat_min_ns=low,
        lat_mean_ns=mean,
        lat_max_ns=high,
    )


def _read_dbench_summary_and_mark_lines(
    file: ForeignFile, line_number: int, summary: re.Match[str]
) -> Iterator[ForeignRun]:
    name = summary["name"]
    if name.startswith("Average Latency"):
        # dbench cuts the number out of a line of fio's, whose unit is nsec, usec or msec.
        reason = "dbench calls the latency usec whatever unit fio printed it in."
        file.line_coverage.mark_left_out(line_number, line_number, reason)
        return
    if name.startswith("Mixed"):
        figures = [
            _operation_figures(way, _parse_fio_count(summary[way]), None, {way: summary[way]})
            for way in ("read", "write")
            if summary[way]
        ]
        yield _dbench_summary_run(file, line_number, "Read/Write Mixed", figures)
        return
    rates = {"Random Read/Write IOPS": "IOPS", "Sequential Read/Write": "Sequential Speed"}
    for way in ("read", "write"):
        if name.startswith("Sequential"):
            speed = _parse_fio_size(summary[way].removesuffix("/s"), has_binary_kb=False)
            figures = [_operation_figures(way, None, speed, {way: summary[way]})]
        else:
            figures = [
                _operation_figures(way, _parse_fio_count(summary[way]), None, {way: summary[way]})
            ]
        yield _dbench_summary_run(file, line_number, f"{way.title()} {rates[name]}", figures)
        if text := summary[f"{way}_bw"]:
            speed = _parse_fio_size(text.removesuffix("/s"), has_binary_kb=False)
            figures = [_operation_figures(way, None, speed, {way: text})]
            yield _dbench_summary_run(file, line_number, f"{way.title()} Bandwidth", figures)


def _dbench_summary_run(
    file: ForeignFile, line_number: int, test: str, figures: Sequence[OperationFigures]
) -> ForeignRun:
    name, options = _DBENCH_TESTS[test]
    settings = {**_DBENCH_COMMON, **options}
    return _summary_run("dbench", name, file, line_number, tuple(figures), settings)


def _parse_fio_count(text: str) -> float | None:
    """A number as fio prints it to people: `982`, `75.7k`, `1.2M`."""
    match = re.fullmatch(r"([\d.]+)([kKM]?)", text.strip())
    number = parse_number(match[1]) if match else None
    if match is None or number is None:
        return None
    return number * {"": 1, "k": 1e3, "K": 1e3, "M": 1e6}[match[2]]


def _parse_fio_size(text: str, *, has_binary_kb: bool) -> float | None:
    """Bytes as fio prints them; before 2.17 its KB were of 1,024 bytes."""
    match = re.fullmatch(r"([\d.]+)([kKMGT]?)(i?)B?", text.strip())
    number = parse_number(match[1]) if match else None
    if match is None or number is None:
        return None
    base = 1024 if match[3] or has_binary_kb else 1000
    return number * float(base ** " kMGT".index(match[2].replace("K", "k") or " "))


def _operation_figures(
    operation: str, rate_per_s: float | None, bandwidth: float | None, printed: Mapping[str, str]
) -> OperationFigures:
    return OperationFigures(
        operation=operation,
        rate_per_s=rate_per_s,
        bw_bytes_per_s=bandwidth,
        printed=tuple(
            (excerpt(key.strip(), NAME_CHARACTERS), excerpt(value, NAME_CHARACTERS))
            for key, value in printed.items()
        ),
    )


def _multiply_if_known(value: float | None, factor: float) -> float | None:
    return None if value is None else value * factor


def _summary_run(
    tool: str,
    name: str,
    file: ForeignFile,
    line_number: int,
    figures: tuple[OperationFigures, ...],
    settings: Mapping[str, str],
    *,
    version: str = "",
    notes: tuple[str, ...] = (),
) -> ForeignRun:
    """A run of one pod, by its options in fio's words."""
    depth = int(parse_number(settings.get("iodepth", "")) or 0)
    jobs = int(parse_number(settings.get("numjobs", "1")) or 1)
    size = parse_fio_bytes(settings.get("size", ""))
    host = ImportedClientDetails(f"{file.name}:{line_number}", figures)
    seconds = max((figure.seconds or 0.0 for figure in figures), default=0.0) or None
    return ForeignRun(
        name=short_distinct_name(name),
        details=ImportedRunDetails(
            tool=tool,
            version=excerpt(version, NAME_CHARACTERS),
            files=(file.name,),
            buffered=None if "direct" not in settings else not is_option_on(settings["direct"]),
            data_bytes=None if size is None else size * jobs,
            ramp_s=parse_fio_seconds(settings.get("ramp_time", "")),
            requested_runtime_s=parse_fio_seconds(settings.get("runtime", "")),
            notes=notes,
        ),
        clients=(ImportedClient("pod", host, runtime_s=seconds),),
        settings=tuple(
            (excerpt(key, NAME_CHARACTERS), excerpt(value, SETTING_CHARACTERS_MAX))
            for key, value in settings.items()
        ),
        ignored_setting_reasons=IGNORED,
        access_kind=settings.get("rw", ""),
        in_flight=depth * jobs or None,
        indicator=indicator_for_block_size(parse_fio_bytes(settings.get("bs", "4k"))),
    )


def _mark_progress_lines(file: ForeignFile, pattern: re.Pattern[str]) -> None:
    """Lines in which a program says how far it is, and which hold no result."""
    for number, line in enumerate(file.lines, start=1):
        if pattern.fullmatch(_TERMINAL_COLOUR.sub("", line)):
            file.line_coverage.mark_read(number)
