"""A study that does what a job file of fio's, a report of fio's or a file of vdbench's says.

Nothing is read but that file, and nothing in it is executed or expanded. What a study cannot say is
named with the reason, and stands in the study as a comment.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import field
from itertools import accumulate
from typing import Final

from iolab.dataclass import dataclass
from iolab.errors import UsageError
from iolab.importers.files import SENTENCE, clean, table_of, texts_of
from iolab.loads.fileio.options import FIO_OPTIONS, LEFT_OUT, REFUSED
from iolab.loads.fileio.workload import IOENGINES, SECTOR_BYTES, SYNC_IOENGINES, Access
from iolab.study.wording import shown
from iolab.units import parse_size

LINES_MOST: Final = 10_000
JOBS_MOST: Final = 500
"""More than any job file has that a person wrote."""

RUNTIME: Final = "30s"
"""What a job without a runtime gets: runs of a study end by the clock."""


@dataclass(frozen=True, slots=True)
class Note:
    """What became of one option of one job: refused, changed or not needed, and why."""

    job: str
    option: str
    reason: str

    def __str__(self) -> str:
        return f"[{self.job}] {self.option}: {self.reason}"


@dataclass(frozen=True, slots=True)
class StudyDraft:
    """A study's text, and what in the file it does not say; the same of many jobs is told once."""

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
    lost_everywhere: list[str] = []
    options, lost = everywhere, lost_everywhere
    sections: list[tuple[str, dict[str, str], list[str]]] = []
    for line in text.splitlines()[:LINES_MOST]:
        words = re.sub(r"(?:^|\s)[#;].*", "", line).strip()
        if head := re.fullmatch(r"\[([^\]]+)\]", words):
            section = clean(head[1])
            options, lost = everywhere, lost_everywhere
            if section != "global":
                options, lost = dict(everywhere), list(lost_everywhere)
                sections.append((section, options, lost))
        elif words.startswith("include "):
            lost.append(words)
        elif words:
            key, _, value = words.partition("=")
            options[clean(key.strip())] = clean(value.strip() or "1", SENTENCE)
    groups = list(
        accumulate(int("stonewall" in own or "new_group" in own) for _, own, _ in sections)
    )
    for (name, own, left), group in zip(sections, groups, strict=True):
        job = _fio_job(name, own, beside=groups.count(group) > 1)
        for words in left:
            job.note(words, "refused: no other file is read; copy its options into this one")
        yield job


def _fio_report(text: str) -> Iterator[_Job]:
    """The options that a report of fio's repeats, each job's name once."""
    decoder = json.JSONDecoder()
    try:
        document, _ = decoder.raw_decode(text, text.index("{"))
    except (ValueError, RecursionError) as error:
        raise UsageError("The report is no whole JSON document.", "Give it whole.") from error
    entries = table_of(document).get("jobs", table_of(document).get("client_stats"))
    tables = [table_of(entry) for entry in entries] if isinstance(entries, list) else []
    names: set[str] = set()
    for own in tables:
        name = clean(str(own.get("jobname", "")))
        options = {
            **table_of(table_of(document).get("global options")),
            **table_of(own.get("job options")),
        }
        if name not in names and options:
            names.add(name)
            beside = {
                table.get("jobname")
                for table in tables
                if table.get("groupid") == own.get("groupid")
            }
            yield _fio_job(name, texts_of(options), beside=len(beside - {"All clients"}) > 1)


_LOGS: Final = re.compile(r"(?:write_\w+_log|log_\w+|per_job_logs|bwavgtime|iopsavgtime)")
_WAYS: Final = {"readwrite": "rw", "randrw": "randrw"}
_ENGINES: Final = {"aio": "libaio", "vsync": "psync"}


_ALIASES: Final = {
    "ba": "blockalign",
    "blocksize": "bs",
    "io_limit": "io_size",
    "nr_files": "nrfiles",
    "readwrite": "rw",
    "timeout": "runtime",
}
"""Other names that fio knows for an option."""


def _fio_job(name: str, settings: Mapping[str, str], *, beside: bool) -> _Job:
    job = _Job(name)
    options = {_ALIASES.get(option, option): value for option, value in settings.items()}
    if not _take_access(job, options):
        return job
    _take_sizes(job, options)
    _take_engine(job, options)
    _take_rates(job, options)
    job.runtime = _time(job, options, "runtime")
    job.warmup = _time(job, options, "ramp_time")
    if job.runtime is None:
        job.note("runtime", f"changed: fio ends after size bytes, here a run takes {RUNTIME}")
    elif "time_based" not in options:
        job.note("runtime", "changed: fio may end earlier, after size bytes; here runs take it all")
    for name in ("stonewall", "new_group", "name"):
        options.pop(name, None)
    if beside:
        job.note("stonewall", "changed: fio runs these jobs side by side, here one after the other")
    for option, value in options.items():
        _take_other(job, option, value)
    return job


def _take_other(job: _Job, option: str, value: str) -> None:
    """Any further option: what shapes the load goes on to fio, all else is named."""
    shaping, engine = FIO_OPTIONS.get(option), str(job.keys["ioengine"])
    if "${" in value:
        reason = "refused: variables are not expanded; write the value"
    elif option in LEFT_OUT:
        reason = f"not needed: {LEFT_OUT[option]}"
    elif _LOGS.fullmatch(option):
        reason = "not needed: every second is kept"
    elif option in REFUSED:
        reason = f"refused: {REFUSED[option]}"
    elif shaping is None:
        reason = "refused: studies do not have this option"
    elif not shaping.fits(value):
        reason = f"refused: a study has it like {option} = '{shaping.example}'"
    elif shaping.ioengines and engine not in shaping.ioengines:
        reason = f"refused: it is of {' and '.join(shaping.ioengines)}, not of {engine}"
    else:
        job.fio[option] = value
        return
    job.note(f"{option}={value}", reason)


def _take_access(job: _Job, options: dict[str, str]) -> bool:
    """Whether a study has that pattern; without it there is no workload."""
    access_word = options.pop("rw", "read").strip().lower()
    word, _, run = access_word.partition(":")
    word = _WAYS.get(word, word)
    if word not in set(Access):
        job.note(
            f"rw={access_word}", f"refused, and the whole job with it: rw is {', '.join(Access)}"
        )
        return False
    if run:
        job.note(f"rw={access_word}", f"changed: {word}, without fio's steps between offsets")
    job.keys["rw"] = word
    mix = options.pop("rwmixread", None)
    write = options.pop("rwmixwrite", None)
    if mix is None and write is not None and write.isdigit():
        mix = str(100 - int(write))
    if Access(word).mixed:
        job.keys["rwmixread"] = int(mix) if mix and mix.isdigit() and int(mix) <= 100 else 50
    return True


def _take_sizes(job: _Job, options: dict[str, str]) -> None:
    block = _first(job, options, "bs") or "4k"
    size = _bytes(block)
    if size is None or size < SECTOR_BYTES or size % SECTOR_BYTES:
        job.note(f"bs={block}", "changed: 4k, as a block is a multiple of 512 bytes")
        block, size = "4k", 4096
    count = _count(options.pop("nrfiles", ""), 1)
    total, each = options.pop("size", None), options.pop("filesize", None)
    text = each or total
    file_bytes = _bytes(text or "")
    jobs = _count(options.pop("numjobs", ""), 1)
    parts = _take_place(job, options, jobs) if count == 1 else 1
    if file_bytes is None or file_bytes < size:
        option = "size" if text is None else f"size={text}"
        job.note(option, "changed: 1g, as a study needs a size in bytes; write the one you mean")
        file_bytes = 1 << 30
    else:
        file_bytes //= parts if each is not None else count * parts
    fitting = max(file_bytes // size, 1) * size
    if fitting != file_bytes:
        job.note(f"size={text}", f"changed: whole blocks only, {fitting} bytes")
    job.keys |= {"bs": block.lower(), "filesize": _size_text(fitting)}
    if count > 1:
        job.keys["files"] = count
    job.keys["numjobs"] = jobs


def _take_place(job: _Job, options: dict[str, str], jobs: int) -> int:
    """Where the job's data lies; the number of parts that it falls into here, one a job."""
    text = options.pop("filename", None)
    if text is None:
        return 1
    if text.startswith("/dev/"):
        way = "name the device by --device and --serial, and all on it is destroyed"
        job.note(f"filename={text}", f"not needed: {way}; else files below --path are measured")
    elif jobs == 1:
        job.note(f"filename={text}", f"not needed: {LEFT_OUT['filename']}")
    else:
        job.keys["shared_file"] = True
    if jobs > 1:
        reason = f"changed: fio's {jobs} jobs all use the whole of it, here each has its own part"
        job.note(f"filename={text}", reason)
    return jobs


def _first(job: _Job, options: dict[str, str], name: str) -> str | None:
    text = options.pop(name, None)
    if text is None or "," not in text:
        return text
    parts = [part for part in text.split(",") if part]
    if len(set(parts)) > 1:
        job.note(f"{name}={text}", f"changed: {parts[0]}, one size for reads and writes")
    return parts[0] if parts else None


def _take_engine(job: _Job, options: dict[str, str]) -> None:
    engine = options.pop("ioengine", "psync")
    engine = _ENGINES.get(engine, engine)
    if engine not in IOENGINES:
        job.note(f"ioengine={engine}", f"changed: libaio, as a study has {', '.join(IOENGINES)}")
        engine = "libaio"
    text = options.pop("iodepth", "1")
    depth = _count(text, 1)
    if depth > 1 and engine in SYNC_IOENGINES:
        job.note(f"iodepth={text}", f"changed: 1, as {engine} keeps one I/O in flight")
        depth = 1
    if depth > 1 and Access(str(job.keys["rw"])).trims:
        job.note(f"iodepth={text}", "changed: 1, as fio trims one block at a time")
        depth = 1
    job.keys |= {"ioengine": engine, "iodepth": depth}
    direct = options.pop("direct", "0") not in ("0", "false")
    if options.pop("buffered", "0") not in ("0", "false"):
        direct = False
    job.keys["direct"] = direct
    if not direct:
        job.note("direct=0", "kept: this measures the page cache, and results will say so")
    if options.pop("refill_buffers", "0") not in ("0", "false"):
        job.keys["contents"] = "random"
    if options.pop("zero_buffers", "0") not in ("0", "false"):
        job.keys["contents"] = "zeros"


def _take_rates(job: _Job, options: dict[str, str]) -> None:
    mixed = Access(str(job.keys["rw"])).mixed
    for name in ("rate_iops", "rate"):
        text = options.pop(name, None)
        if text is None:
            continue
        parts = [_bytes(part) for part in text.split(",") if part]
        if mixed or not parts or None in parts or len(set(parts)) > 1:
            reason = "refused: fio has one for reads and one for writes, a study one for both"
            job.note(f"{name}={text}", reason)
        elif "rate_iops" in job.keys:
            job.note(f"{name}={text}", "refused: a workload has one rate, here rate_iops")
        else:
            job.keys[name] = parts[0]
    process = options.pop("rate_process", None)
    if process == "poisson" and ("rate" in job.keys or "rate_iops" in job.keys):
        job.keys["arrivals"] = "poisson"


_TIME: Final = re.compile(r"(\d+)(ms|s|m|h)?")


def _time(job: _Job, options: dict[str, str], name: str) -> str | None:
    text = options.pop(name, None)
    if text is None:
        return None
    match = _TIME.fullmatch(text.strip().lower())
    if not match or not int(match[1]):
        job.note(f"{name}={text}", "refused: a study has it like 30s")
        return None
    return f"{int(match[1])}{match[2] or 's'}"


def _count(text: str, usual: int) -> int:
    """The number above 0 that an option gives; the usual one where it gives none."""
    return int(text) if text.isdigit() and int(text) else usual


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
            reason = "refused: a study has no workload of many files like vdbench's"
            job.note(f"{kind}={name}", reason)
            jobs.append(job)
    return jobs


def _vdbench_job(name: str, options: dict[str, str]) -> _Job:
    job = _Job(name)
    _vdbench_access(job, options)
    block = options.pop("xfersize", "4k")
    if _bytes(block) is None:
        job.note(f"xfersize={block}", "changed: 4k, as a workload has one size of blocks")
        block = "4k"
    size = _bytes(options.pop("size", ""))
    if size is None:
        job.note("size", "changed: 1g, as a study needs a size in bytes; write the one you mean")
        size = 1 << 30
    threads = options.pop("threads", "8")
    depth = _count(threads, 8)
    job.note(f"threads={threads}", f"changed: iodepth {depth} of one job by libaio")
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
        job.note("openflags", "kept: this measures the page cache, and results will say so")
    rate = options.pop("iorate", "max")
    if rate.isdigit() and int(rate):
        job.keys["rate_iops"] = int(rate)
    elif rate != "max":
        job.note(f"iorate={rate}", "refused: write objective = 'max-load', or rate_iops as a list")
    job.runtime = _time(job, options, "elapsed")
    job.warmup = _time(job, options, "warmup")
    for option, key in _FOR.items():
        if option in options:
            _take_list(job, key, option, options.pop(option))
    for option, value in options.items():
        if option not in ("sd", "interval", "lun"):
            job.note(f"{option}={value}", "refused: studies do not have this option")
    return job


def _vdbench_access(job: _Job, options: dict[str, str]) -> None:
    seek = options.pop("seekpct", "100")
    random = seek not in ("0", "seq", "eof", "seqnz")
    if random and seek not in ("100", "random"):
        job.note(f"seekpct={seek}", "changed: every offset is random")
    text = options.pop("rdpct", "100")
    read = int(text) if text.isdigit() and int(text) <= 100 else 100
    mixed = 0 < read < 100 or "forrdpct" in options
    word = "rw" if mixed else "read" if read else "write"
    job.keys |= {"rw": f"rand{word}" if random else word}
    if mixed:
        job.keys["rwmixread"] = read


def _take_list(job: _Job, key: str, option: str, text: str) -> None:
    values = [part.strip() for part in text.strip("()").split(",") if part.strip()]
    accepted = [value for value in values if re.fullmatch(r"\d+[kmg]?", value.lower())]
    if accepted != values or not accepted:
        job.note(f"{option}={text}", f"refused: write {key} as a list of its values")
        return
    job.keys[key] = [value.lower() if key == "bs" else int(value) for value in accepted]


def _drafted(study_id: str, file_name: str, jobs: Sequence[_Job]) -> StudyDraft:
    notes = list(_merged(jobs))
    able = [job for job in jobs if job.keys]
    if not able:
        raise UsageError(
            f"No job of {shown(file_name)} can be a workload: {notes[0]}.", "Give other jobs."
        )
    runtimes = list(dict.fromkeys(job.runtime for job in able if job.runtime)) or [RUNTIME]
    warmups = list(dict.fromkeys(job.warmup for job in able if job.warmup)) or ["0s"]
    for option, values in (("runtime", runtimes), ("ramp_time", warmups)):
        if len(values) > 1:
            reason = f"changed: {values[0]} for all, of {', '.join(values)}"
            notes.append(Note(ALL_JOBS, option, reason))
    notes.sort(key=lambda note: _ORDER.index(note.reason.split(":")[0].split(",")[0]))
    lines = [
        f"# A study that does what {clean(file_name)} does, as far as a study can.",
        *_comment(notes),
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
            settings = ", ".join(f"{name} = {_text(value)}" for name, value in job.fio.items())
            lines.append(f"fio = {{ {settings} }}")
    return StudyDraft("\n".join(lines) + "\n", tuple(notes))


ALL_JOBS: Final = "all jobs"
"""Whom a note is about that each job has."""

JOBS_NAMED: Final = 3
"""Jobs that a note names; of more it tells how many there are."""

_ORDER: Final = ("refused", "changed", "kept", "not needed")
"""What matters most comes first."""


def _merged(jobs: Sequence[_Job]) -> Iterator[Note]:
    """Every note once, with all jobs that it is about."""
    about: dict[tuple[str, str], list[str]] = {}
    for job in jobs:
        for note in job.notes:
            about.setdefault((note.option, note.reason), []).append(job.name)
    for (option, reason), names in about.items():
        name = ", ".join(names)
        if len(names) == len(jobs) > 1:
            name = ALL_JOBS
        elif len(names) > JOBS_NAMED:
            name = f"{len(names)} jobs, the first {names[0]}"
        yield Note(name, option, reason)


def _comment(notes: Sequence[Note]) -> Iterator[str]:
    """The notes by what became of the options, each line by line."""
    if notes:
        yield "# Options that are not as they were, and why:"
        yield "#"
    for note in notes:
        yield f"#   {note}"


def _free(name: str, ids: set[str]) -> str:
    base = re.sub(r"[^A-Za-z0-9._-]+", "-", name).strip("-._") or "job"
    tries = (base, *(f"{base}-{count}" for count in range(2, JOBS_MOST + 2)))
    free = next(attempt for attempt in tries if attempt not in ids)
    ids.add(free)
    return free


def _text(value: str) -> str:
    """A TOML string."""
    return json.dumps(value, ensure_ascii=True)


def _value(value: object) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, list):
        return f"[{', '.join(_value(part) for part in value)}]"
    return str(value) if isinstance(value, int) else _text(str(value))
