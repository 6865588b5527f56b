"""A study that does what a job file of fio's, a report of fio's or a file of vdbench's says.

Nothing is read but that file, and nothing in it is executed or expanded. What a study cannot say is
named with the reason, and stands in the study as a comment.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import accumulate
from typing import Final

from iolab.errors import UsageError
from iolab.importers.files import SENTENCE, clean, table_of, texts_of
from iolab.loads.fileio.options import FIO_OPTIONS, LEFT_OUT, REFUSED
from iolab.loads.fileio.workload import IOENGINES, SYNC_IOENGINES, Access
from iolab.study.wording import shown
from iolab.units import parse_size

LINES_MOST: Final = 10_000
JOBS_MOST: Final = 500
"""More than any job file has that a person wrote."""

RUNTIME: Final = "30s"
"""What a job without a runtime gets: runs of a study end by the clock."""


@dataclass(frozen=True, slots=True)
class Note:
    """What became of one option of one job: refused, or changed, and why."""

    job: str
    option: str
    reason: str

    def __str__(self) -> str:
        return f"{self.job}: {self.option}: {self.reason}"


@dataclass(frozen=True, slots=True)
class StudyDraft:
    """A study's text, and what in the file it does not say."""

    text: str
    notes: tuple[Note, ...]


@dataclass(slots=True)
class _Job:
    """One workload as its keys are found, with the time that its job was to run."""

    name: str
    keys: dict[str, object] = field(default_factory=dict)
    fio: dict[str, str] = field(default_factory=dict)
    runtime: str | None = None
    warmup: str | None = None
    notes: list[Note] = field(default_factory=list)

    def note(self, option: str, reason: str) -> None:
        self.notes.append(Note(self.name, clean(option, SENTENCE), reason))


def draft_of(study_id: str, file_name: str, text: str) -> StudyDraft:
    """The study of a file. UsageError where it is none of those that are known."""
    if '"fio version"' in text:
        jobs = list(_fio_report(text))
    elif re.search(r"^\s*(?:sd|fsd|wd|rd)=", text, re.MULTILINE):
        jobs = _vdbench(text)
    elif re.search(r"^\s*\[[^\]]+\]", text, re.MULTILINE):
        jobs = list(_fio_jobs(text))
    else:
        raise UsageError(
            f"{shown(file_name)} is no job file of fio's or vdbench's, and no report of fio's.",
            "Give one of these.",
        )
    if not jobs:
        raise UsageError(f"{shown(file_name)} has no job.", "Give a file that has one.")
    if len(jobs) > JOBS_MOST:
        raise UsageError(
            f"{shown(file_name)} has {len(jobs)} jobs.", f"Give a file with at most {JOBS_MOST}."
        )
    return _drafted(study_id, file_name, jobs)


def _fio_jobs(text: str) -> Iterator[_Job]:
    """The sections of a job file: `[global]` holds for all that come after it."""
    everywhere: dict[str, str] = {}
    section = ""
    options: dict[str, str] = {}
    lost: list[str] = []
    found: list[tuple[str, dict[str, str], list[str]]] = []
    for line in text.splitlines()[:LINES_MOST]:
        words = re.sub(r"(?:^|\s)[#;].*", "", line).strip()
        if head := re.fullmatch(r"\[([^\]]+)\]", words):
            section = clean(head[1])
            options, lost = (everywhere, []) if section == "global" else (dict(everywhere), [])
            if section != "global":
                found.append((section, options, lost))
        elif words.startswith("include "):
            lost.append(words)
        elif words:
            key, _, value = words.partition("=")
            options[clean(key.strip())] = clean(value.strip() or "1", SENTENCE)
    groups = list(accumulate(int("stonewall" in own or "new_group" in own) for _, own, _ in found))
    for (name, own, left), group in zip(found, groups, strict=True):
        job = _fio_job(name, own, beside=groups.count(group) > 1)
        for words in left:
            job.note(words, "no other file is read; write its options into this one")
        yield job


def _fio_report(text: str) -> Iterator[_Job]:
    """The options that a report of fio's repeats, each job's name once."""
    decoder = json.JSONDecoder()
    try:
        document, _ = decoder.raw_decode(text, text.index("{"))
    except (ValueError, RecursionError) as error:
        raise UsageError("The report is no whole JSON document.", "Give it whole.") from error
    entries = table_of(document).get("jobs", table_of(document).get("client_stats"))
    told = [table_of(entry) for entry in entries] if isinstance(entries, list) else []
    seen: set[str] = set()
    for own in told:
        name = clean(str(own.get("jobname", "")))
        options = {
            **table_of(table_of(document).get("global options")),
            **table_of(own.get("job options")),
        }
        if name not in seen and options:
            seen.add(name)
            beside = {
                one.get("jobname") for one in told if one.get("groupid") == own.get("groupid")
            }
            yield _fio_job(name, texts_of(options), beside=len(beside - {"All clients"}) > 1)


_LOGS: Final = re.compile(r"(?:write_\w+_log|log_\w+|per_job_logs|bwavgtime|iopsavgtime)")
_WAYS: Final = {"readwrite": "rw", "randrw": "randrw"}
_ENGINES: Final = {"aio": "libaio", "vsync": "psync"}


def _fio_job(name: str, told: Mapping[str, str], *, beside: bool) -> _Job:
    job, options = _Job(name), dict(told)
    _take_access(job, options)
    _take_sizes(job, options)
    _take_engine(job, options)
    _take_rates(job, options)
    job.runtime = _time(job, options, "runtime")
    job.warmup = _time(job, options, "ramp_time")
    if job.runtime is None:
        job.note("runtime", f"fio ends when all is done; here a run takes {RUNTIME}")
    for name in ("stonewall", "new_group", "name"):
        options.pop(name, None)
    if beside:
        job.note("stonewall", "changed: fio runs this job beside others, here each runs by itself")
    for option, value in options.items():
        _take_other(job, option, value)
    return job


def _take_other(job: _Job, option: str, value: str) -> None:
    """Any further option: what shapes the load goes on to fio, all else is named."""
    if option in LEFT_OUT:
        job.note(f"{option}={value}", f"left out: {LEFT_OUT[option]}")
    elif _LOGS.fullmatch(option):
        job.note(f"{option}={value}", "left out: every second is kept anyway")
    elif option in REFUSED:
        job.note(f"{option}={value}", f"refused: {REFUSED[option]}")
    elif option not in FIO_OPTIONS:
        job.note(f"{option}={value}", "refused: not on the list of options that shape the load")
    elif not FIO_OPTIONS[option].fits(value):
        example = FIO_OPTIONS[option].example
        job.note(f"{option}={value}", f"refused: a study writes it like {example}")
    else:
        job.fio[option] = value


def _take_access(job: _Job, options: dict[str, str]) -> None:
    told = options.pop("rw", options.pop("readwrite", "read")).strip().lower()
    word, _, run = told.partition(":")
    word = _WAYS.get(word, word)
    if run:
        job.note(f"rw={told}", "changed: every offset is drawn again or follows the one before")
    if word not in set(Access):
        job.note(f"rw={told}", "refused: a study has no such pattern; randread stands in its place")
        word = Access.RANDREAD.value
    job.keys["rw"] = word
    mix = options.pop("rwmixread", None)
    write = options.pop("rwmixwrite", None)
    if mix is None and write is not None and write.isdigit():
        mix = str(100 - int(write))
    if Access(word).mixed:
        job.keys["rwmixread"] = int(mix) if mix and mix.isdigit() and int(mix) <= 100 else 50


def _take_sizes(job: _Job, options: dict[str, str]) -> None:
    block = _first(job, options, "bs", options.pop("blocksize", None)) or "4k"
    size = _bytes(block)
    if size is None or size < 512 or (size & (size - 1) and size % 512):
        job.note(f"bs={block}", "refused: no size of a block; 4k stands in its place")
        block, size = "4k", 4096
    files = options.pop("nrfiles", "1")
    count = int(files) if files.isdigit() and int(files) else 1
    whole, each = options.pop("size", None), options.pop("filesize", None)
    told = each or whole
    known = _bytes(told or "")
    if known is None or known < size:
        job.note(f"size={told or ''}", "changed: no size in bytes is told; files have 1g")
        known = 1 << 30
    elif each is None and count > 1:
        known //= count
    fitting = max(known // size, 1) * size
    if fitting != known:
        job.note(f"size={told}", f"changed: whole blocks only, {fitting} bytes")
    job.keys |= {"bs": block.lower(), "filesize": _size_text(fitting)}
    if count > 1:
        job.keys["files"] = count
    jobs = options.pop("numjobs", "1")
    job.keys["numjobs"] = int(jobs) if jobs.isdigit() and int(jobs) else 1
    if job.keys["numjobs"] != 1 and "filename" in options:
        job.note("filename", "changed: jobs of fio share the file, here each has its own part")
        job.keys["shared_file"] = True
        del options["filename"]


def _first(job: _Job, options: dict[str, str], name: str, other: str | None) -> str | None:
    told = options.pop(name, other)
    if told is None or "," not in told:
        return told
    parts = [part for part in told.split(",") if part]
    if len(set(parts)) > 1:
        job.note(f"{name}={told}", f"changed: one for reads and writes, {parts[0]}")
    return parts[0] if parts else None


def _take_engine(job: _Job, options: dict[str, str]) -> None:
    engine = options.pop("ioengine", "psync")
    engine = _ENGINES.get(engine, engine)
    if engine not in IOENGINES:
        job.note(f"ioengine={engine}", "refused: not one that a study knows; libaio in its place")
        engine = "libaio"
    told = options.pop("iodepth", "1")
    depth = int(told) if told.isdigit() and int(told) else 1
    if depth > 1 and engine in SYNC_IOENGINES:
        job.note(f"iodepth={told}", f"changed: {engine} keeps one I/O in flight")
        depth = 1
    if depth > 1 and Access(str(job.keys["rw"])).trims:
        job.note(f"iodepth={told}", "changed: fio trims one at a time")
        depth = 1
    job.keys |= {"ioengine": engine, "iodepth": depth}
    direct = options.pop("direct", "0") not in ("0", "false")
    if options.pop("buffered", "0") not in ("0", "false"):
        direct = False
    job.keys["direct"] = direct
    if not direct:
        job.note("direct=0", "kept: the page cache is measured, and judged so")
    if options.pop("refill_buffers", "0") not in ("0", "false"):
        job.keys["contents"] = "random"
    if options.pop("zero_buffers", "0") not in ("0", "false"):
        job.keys["contents"] = "zeros"


def _take_rates(job: _Job, options: dict[str, str]) -> None:
    mixed = Access(str(job.keys["rw"])).mixed
    for name in ("rate_iops", "rate"):
        told = options.pop(name, None)
        if told is None:
            continue
        parts = [_bytes(part) for part in told.split(",") if part]
        if mixed or not parts or None in parts or "rate_iops" in job.keys or len(set(parts)) > 1:
            job.note(
                f"{name}={told}", "refused: fio's rate is of each direction; write one of both"
            )
        else:
            job.keys[name] = parts[0]
    process = options.pop("rate_process", None)
    if process == "poisson" and ("rate" in job.keys or "rate_iops" in job.keys):
        job.keys["arrivals"] = "poisson"


_TIME: Final = re.compile(r"(\d+)(ms|s|m|h)?")


def _time(job: _Job, options: dict[str, str], name: str) -> str | None:
    told = options.pop(name, None)
    if told is None:
        return None
    found = _TIME.fullmatch(told.strip().lower())
    if not found or not int(found[1]):
        job.note(f"{name}={told}", "refused: a study writes it like 30s")
        return None
    return f"{int(found[1])}{found[2] or 's'}"


def _bytes(text: str) -> int | None:
    try:
        return parse_size(text.strip().lower().removesuffix("ib").removesuffix("b"))
    except ValueError:
        return None


def _size_text(size: int) -> str:
    for unit, step in (("g", 1 << 30), ("m", 1 << 20), ("k", 1 << 10)):
        if size % step == 0:
            return f"{size // step}{unit}"
    return str(size)


_FOR: Final = {"forxfersize": "bs", "forthreads": "iodepth", "forrdpct": "rwmixread"}


def _vdbench(text: str) -> list[_Job]:
    """Every run definition with its workload definition and the first storage of that."""
    storage: dict[str, dict[str, str]] = {}
    workloads: dict[str, dict[str, str]] = {}
    jobs: list[_Job] = []
    for line in text.splitlines()[:LINES_MOST]:
        words = re.sub(r"^[*#/].*", "", line).strip()
        pairs = re.findall(r"([\w-]+)=(\([^)]*\)|[^,\s]+)", words)
        if not pairs:
            continue
        (kind, name), *rest = pairs
        options = {clean(key): clean(value) for key, value in rest}
        if kind == "sd":
            storage[name] = {**storage.get("default", {}), **options}
        elif kind == "wd":
            workloads[name] = {**workloads.get("default", {}), **options}
        elif kind == "rd" and name != "default":
            own = workloads.get(options.pop("wd", "").rstrip("*"))
            own = own if own is not None else next(iter(workloads.values()), {})
            disk = storage.get(own.get("sd", "").rstrip("*"))
            disk = disk if disk is not None else next(iter(storage.values()), {})
            jobs.append(_vdbench_job(clean(name), {**disk, **own, **options}))
        elif kind in ("fsd", "fwd"):
            job = _Job(clean(name))
            job.note(f"{kind}={name}", "refused: workloads of file systems have no like here")
            jobs.append(job)
    return jobs


def _vdbench_job(name: str, options: dict[str, str]) -> _Job:
    job = _Job(name)
    _vdbench_access(job, options)
    block = options.pop("xfersize", "4k")
    if _bytes(block) is None:
        job.note(f"xfersize={block}", "changed: one size, 4k")
        block = "4k"
    size = _bytes(options.pop("size", ""))
    if size is None:
        job.note("size", "changed: no size in bytes is told; files have 1g")
        size = 1 << 30
    threads = options.pop("threads", "8")
    depth = int(threads) if threads.isdigit() and int(threads) else 8
    job.note(f"threads={threads}", "changed: so many I/Os in flight of one job, by libaio")
    flags = options.pop("openflags", "")
    job.keys |= {
        "bs": block.lower(),
        "filesize": _size_text(size - size % (_bytes(block) or 4096)),
        "numjobs": 1,
        "ioengine": "libaio",
        "iodepth": depth,
        "direct": "direct" in flags,
    }
    if "direct" not in flags:
        job.note("openflags", "kept: the page cache is measured, and judged so")
    rate = options.pop("iorate", "max")
    if rate.isdigit() and int(rate):
        job.keys["rate_iops"] = int(rate)
    elif rate != "max":
        job.note(f"iorate={rate}", "refused: a curve is had by objective = 'max-load'")
    job.runtime = _time(job, options, "elapsed")
    job.warmup = _time(job, options, "warmup")
    for option, key in _FOR.items():
        if option in options:
            _take_list(job, key, option, options.pop(option))
    for option, value in options.items():
        if option not in ("sd", "interval", "lun"):
            job.note(f"{option}={value}", "refused: a study has nothing like it")
    return job


def _vdbench_access(job: _Job, options: dict[str, str]) -> None:
    seek = options.pop("seekpct", "100")
    random = seek not in ("0", "seq", "eof", "seqnz")
    if random and seek not in ("100", "random"):
        job.note(f"seekpct={seek}", "changed: every offset is drawn")
    told = options.pop("rdpct", "100")
    read = int(told) if told.isdigit() and int(told) <= 100 else 100
    mixed = 0 < read < 100 or "forrdpct" in options
    word = "rw" if mixed else "read" if read else "write"
    job.keys |= {"rw": f"rand{word}" if random else word}
    if mixed:
        job.keys["rwmixread"] = read


def _take_list(job: _Job, key: str, option: str, text: str) -> None:
    values = [one.strip() for one in text.strip("()").split(",") if one.strip()]
    known = [one for one in values if re.fullmatch(r"\d+[kmg]?", one.lower())]
    if known != values or not known:
        job.note(f"{option}={text}", "refused: write the values one by one")
        return
    job.keys[key] = [one.lower() if key == "bs" else int(one) for one in known]


def _drafted(study_id: str, file_name: str, jobs: Sequence[_Job]) -> StudyDraft:
    notes = [note for job in jobs for note in job.notes]
    able = [job for job in jobs if job.keys]
    if not able:
        raise UsageError(
            f"No job of {shown(file_name)} can be a workload: {notes[0]}.", "Give other jobs."
        )
    runtimes = list(dict.fromkeys(job.runtime for job in able if job.runtime)) or [RUNTIME]
    warmups = list(dict.fromkeys(job.warmup for job in able if job.warmup)) or ["0s"]
    for what, values in (("runtime", runtimes), ("ramp_time", warmups)):
        if len(values) > 1:
            reason = f"changed: one for all workloads, {values[0]} of {', '.join(values)}"
            notes.append(Note("all jobs", what, reason))
    lines = [
        f"# What {clean(file_name)} does, as a study.",
        *(f"# {note}" for note in notes),
        "",
        "format = 1",
        f"id = {_text(study_id)}",
        f"title = {_text(f'As {clean(file_name)}')}",
        f"question = {_text(f'What does {clean(file_name)} come to here?')}",
        "",
        "[method]",
        f"warmup = {_text(warmups[0])}",
        f"runtime = {_text(runtimes[0])}",
        "repeats = 3",
    ]
    ids: set[str] = set()
    for job in able:
        lines += ["", "[[workload]]", f"id = {_text(_free(job.name, ids))}"]
        lines += [f"title = {_text(job.name or 'job')}"]
        lines += [f"{key} = {_value(value)}" for key, value in job.keys.items()]
        if job.fio:
            told = ", ".join(f"{name} = {_text(value)}" for name, value in job.fio.items())
            lines.append(f"fio = {{ {told} }}")
    return StudyDraft("\n".join(lines) + "\n", tuple(notes))


def _free(name: str, ids: set[str]) -> str:
    base = re.sub(r"[^A-Za-z0-9._-]+", "-", name).strip("-._") or "job"
    tries = (base, *(f"{base}-{count}" for count in range(2, JOBS_MOST + 2)))
    found = next(one for one in tries if one not in ids)
    ids.add(found)
    return found


def _text(value: str) -> str:
    """A TOML string."""
    return json.dumps(value, ensure_ascii=True)


def _value(value: object) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, list):
        return f"[{', '.join(_value(one) for one in value)}]"
    return str(value) if isinstance(value, int) else _text(str(value))
