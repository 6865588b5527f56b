"""The jobs of fio's job files and of its reports, read as fio's own parser reads them.

After fio's `init.c`, `parse.c` and `options.c`. Nothing is executed, expanded or included.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from fractions import Fraction
from typing import Any, Final, NamedTuple

from iolab.errors import UsageError
from iolab.importers.files import NAME_CHARACTERS, dict_or_empty
from iolab.importers.job_draft import (
    DEFAULT_BLOCK_BYTES,
    FILE_BYTES,
    NO_OPTION,
    VALUE_CHARACTERS,
    Duration,
    JobDraft,
    block_bytes_or_noted_default,
    noted_whole_block_size_text,
    size_with_unit_text,
    study_bssplit_text,
)
from iolab.loads.fileio.options import FIO_OPTIONS, LEFT_OUT, REFUSED, bssplit_percent_total
from iolab.loads.fileio.workload import IOENGINES, SYNC_IOENGINES, WHOLE_PERCENT, AccessPattern
from iolab.record import Record
from iolab.text import excerpt, list_text

Options = dict[str, str]

ALL_CLIENTS: Final = "All clients"
"""fio's sum over clients, which is no job."""

_ALIASES: Final = {
    "ba": "blockalign",
    "blocksize": "bs",
    "blocksize_range": "bsrange",
    "blocksize_unaligned": "bs_unaligned",
    "disable_bw_measurement": "disable_bw",
    "fileoffset": "offset",
    "fill_fs": "fill_device",
    "io_limit": "io_size",
    "iodepth_batch_submit": "iodepth_batch",
    "iodepth_batch_complete": "iodepth_batch_complete_min",
    "iomem": "mem",
    "nr_files": "nrfiles",
    "ratecycle": "rate_cycle",
    "ratemin": "rate_min",
    "readwrite": "rw",
    "start_delay": "startdelay",
    "timeout": "runtime",
    "wait_for_previous": "stonewall",
}
"""Other names that fio knows for an option."""

_OPPOSITES: Final = {"rwmixwrite": "rwmixread", "buffered": "direct"}
"""Options that set another one: what comes last holds."""

_EXPRESSION: Final = re.compile(r"\$\{|\$(?:ncpus|pagesize|mb_memory)|^\(")

_KEYS: Final = (
    *("bs", "bsrange", "buffered", "direct", "filename", "filesize", "iodepth", "nrfiles"),
    *("numjobs", "ramp_time", "rate", "rate_iops", "refill_buffers", "runtime", "rwmixread"),
    *("rwmixwrite", "size", "zero_buffers"),
)
"""Options that become keys of a workload; without its pattern and engine there is none."""

_LOGS: Final = re.compile(r"(?:write_\w+_log|log_\w+|per_job_logs|bwavgtime|iopsavgtime)")

_NO_EFFECT: Final = {
    "continue_on_error": ("none", "0"),
    "fdatasync": ("0",),
    "fsync": ("0",),
    "io_size": ("0",),
    "latency_target": ("0",),
    "loops": ("1",),
    "number_ios": ("0",),
    "offset": ("0",),
    "offset_increment": ("0",),
    "rate_process": ("linear",),
    "startdelay": ("0",),
    "thinktime": ("0",),
    "thinktime_spin": ("0",),
    "verify": ("0",),
    "write_barrier": ("0",),
    "zonemode": ("none",),
}
"""Values that switch an option off, as fio does by itself."""

_SIZES: Final = ("blockalign", "buffer_compress_chunk")
"""Options of a size, which is written as a study has it."""

_EQUIVALENT_ENGINES: Final = {
    "aio": "libaio",
    "guasi": "libaio",
    "io_uring_cmd": "io_uring",
    "libblkio": "io_uring",
    "mmap": "psync",
    "sg": "libaio",
    "solarisaio": "libaio",
    "splice": "psync",
    "syslet-rw": "libaio",
    "vsync": "psync",
    "windowsaio": "libaio",
    "xnvme": "io_uring",
}
"""Engines of fio that do I/O on files or devices, with what a study has for them."""

_TIME: Final = re.compile(r"(\d{1,15})(us|usec|ms|msec|s|m|h|d)?")

_SECONDS: Final = {
    "us": Fraction(1, 10**6),
    "ms": Fraction(1, 1000),
    "s": Fraction(1),
    "m": Fraction(60),
    "h": Fraction(3600),
    "d": Fraction(86400),
}

_NUMBER: Final = re.compile(r"(0x[0-9a-f]{1,15}|\d{1,18})(?:([kmgtp])(i?b)?|b)?", re.IGNORECASE)
_POWERS: Final = ("", "k", "m", "g", "t", "p")


def is_fio_job_file(text: str) -> bool:
    """Whether a text has a section and an option that makes a job: others have sections, too."""
    names = (*_KEYS, *_ALIASES, "rw", "ioengine")
    option = rf"^\s*(?:{'|'.join(names)})\s*(?:=|$)"
    return all(re.search(each, text, re.MULTILINE) for each in (r"^\s*\[[^\]]+\]", option))


def jobs_from_job_file(text: str) -> list[JobDraft]:
    """The sections of a job file as jobs, each with what of it is not read."""
    sections = job_file_sections(text)
    jobs = _job_drafts([(item.name, item.options) for item in sections])
    for job, item in zip(jobs, sections, strict=True):
        for words, reason in item.unread_words_and_reasons:
            job.add_note(words, reason)
    return jobs


class JobSection(Record):
    """A job of a job file: all options that hold for it, and words of it that are not read."""

    name: str
    options: Options
    unread_words_and_reasons: list[tuple[str, str]]


def job_file_sections(text: str) -> list[JobSection]:
    """The sections of a job file: `[global]` holds for all that come after it."""
    common = JobSection("", {}, [])
    section = common
    sections: list[JobSection] = []
    in_section = False
    for line in text.splitlines():
        words = re.split("[;#]", line, maxsplit=1)[0].strip()
        if words.startswith("["):
            in_section = True
            name = excerpt(words[1:].rstrip("]"), NAME_CHARACTERS)
            section = common
            if not name.startswith("global"):
                section = JobSection(
                    name, dict(common.options), list(common.unread_words_and_reasons)
                )
                sections.append(section)
        elif words.startswith("include"):
            reason = "refused: no other file is read; copy its options into this one"
            section.unread_words_and_reasons.append((words, reason))
        elif words and not in_section:
            reason = "refused: it stands before the first section, where fio stops"
            section.unread_words_and_reasons.append((words, reason))
        elif words:
            key, _, value = words.partition("=")
            _set_option(section.options, key.strip(), value.strip())
    return sections


def jobs_from_fio_reports(text: str) -> list[JobDraft]:
    """The options that reports of fio's repeat; jobs that are alike, as of clients, once."""
    jobs: dict[tuple[str, tuple[tuple[str, str], ...]], tuple[str, Options]] = {}
    silent: list[JobDraft] = []
    for document in _json_reports(text):
        entries = document.get("jobs", document.get("client_stats"))
        for entry in map(dict_or_empty, entries if isinstance(entries, list) else []):
            name = excerpt(str(entry.get("jobname", "")), NAME_CHARACTERS)
            options: Options = {}
            for table in (document.get("global options"), entry.get("job options")):
                for key, value in dict_or_empty(table).items():
                    _set_option(options, str(key), str(value))
            if options:
                jobs.setdefault((name, tuple(sorted(options.items()))), (name, options))
            elif name != ALL_CLIENTS:
                silent.append(JobDraft(name))
                silent[-1].refuse_job("job options", "the report does not have them")
    return [*_job_drafts(list(jobs.values())), *silent]


def _json_reports(text: str) -> Iterator[Mapping[str, Any]]:
    """Every report in a text, one after another."""
    decoder = json.JSONDecoder()
    position = 0
    while match := re.compile(r'\{(?=\s*"fio version")').search(text, position):
        try:
            document, position = decoder.raw_decode(text, match.start())
        except (ValueError, RecursionError) as error:
            raise UsageError("The report is no whole JSON document.", "Give it whole.") from error
        yield dict_or_empty(document)


def _set_option(fio_options: Options, key: str, value: str) -> None:
    """Set an option as fio does: the last one of a name, of an alias or of an opposite holds."""
    key = excerpt(key, VALUE_CHARACTERS)
    key = _ALIASES.get(key, key)
    for first, second in _OPPOSITES.items():
        if key in (first, second):
            fio_options.pop(first, None)
            fio_options.pop(second, None)
    fio_options[key] = excerpt(value or "1", VALUE_CHARACTERS)


def _job_drafts(sections: list[tuple[str, Options]]) -> list[JobDraft]:
    """A draft for every section, with a note where fio runs it beside others."""
    group = 0
    groups: list[object] = []
    for _, options in sections:
        group += _is_option_true(options.get("stonewall", "0"))
        groups.append(options.get("wait_for", group))
    drafts = []
    for (name, options), own in zip(sections, groups, strict=True):
        job = JobDraft(name)
        options.pop("stonewall", None)
        if groups.count(own) > 1:
            reason = "changed: fio runs these jobs side by side, here one after the other"
            job.add_note("stonewall", reason)
        _convert_options(job, options)
        drafts.append(job)
    return drafts


def _convert_options(job: JobDraft, remaining_options: Options) -> None:
    """Each option into the workload, or into a note."""
    for option in ("kb_base", "unit_base", "new_group"):
        if (value := remaining_options.get(option)) is not None:
            job.add_note(f"{option}={value}", "not needed: it changes nothing here")
    kb_base = int(kb) if (kb := remaining_options.pop("kb_base", "")) in ("1000", "1024") else 1024
    for option in ("unit_base", "new_group"):
        remaining_options.pop(option, None)
    if (name := remaining_options.pop("name", job.name)) != job.name:
        job.add_note(f"name={name}", "not needed: the section's name is the workload's")
    _drop_and_note_options_with_expressions(job, remaining_options)
    if not _try_convert_access_pattern(
        job, remaining_options
    ) or not _try_convert_ioengine_and_iodepth(job, remaining_options):
        return
    _convert_sizes(job, remaining_options, kb_base)
    _convert_cache_and_contents_options(job, remaining_options)
    _convert_rates(job, remaining_options, kb_base)
    job.runtime = _pop_duration_and_add_notes(job, remaining_options, "runtime")
    job.warmup = _pop_duration_and_add_notes(job, remaining_options, "ramp_time")
    if job.runtime is None:
        reason = "changed: fio ends after size bytes, here after the study's runtime"
        job.add_note("runtime", reason)
    elif not _is_option_true(remaining_options.get("time_based", "0")):
        job.add_note(
            "runtime", "changed: fio may end earlier, after size bytes; here runs take it all"
        )
    for option, value in remaining_options.items():
        _convert_remaining_option(job, option, value, kb_base)


def _drop_and_note_options_with_expressions(job: JobDraft, remaining_options: Options) -> None:
    """Drop what only a running fio knows of options that a workload has."""
    for option, value in list(remaining_options.items()):
        if option not in FIO_OPTIONS and option not in _KEYS:
            continue
        if _EXPRESSION.search(value) and (option != "filename" or "numjobs" in remaining_options):
            del remaining_options[option]
            reason = "refused: variables and expressions are not evaluated, so fio's default stands"
            job.add_note(f"{option}={value}", f"{reason}; write the value")


def _convert_remaining_option(job: JobDraft, option: str, value: str, kb_base: int) -> None:
    """Any further option: what shapes the load goes on to fio, all else is named."""
    shaping, engine = FIO_OPTIONS.get(option), str(job.workload_keys["ioengine"])
    text = value
    if option in _SIZES and (count := _parse_size(value, kb_base)) is not None:
        text = size_with_unit_text(count)
    if value in _NO_EFFECT.get(option, ()):
        reason = "not needed: it is off, as without it"
    elif option in LEFT_OUT:
        reason = f"not needed: {LEFT_OUT[option]}"
    elif _LOGS.fullmatch(option):
        reason = "not needed: every second is kept"
    elif shaping is None:
        reason = f"refused: {REFUSED[option]}" if option in REFUSED else NO_OPTION
    elif not shaping.accepts_value(text):
        reason = f"refused: a study has it like {option} = '{shaping.example}'"
    elif shaping.ioengines and engine not in shaping.ioengines:
        reason = f"refused: it is of {list_text(shaping.ioengines)}, not of {engine}"
    else:
        job.fio_options[option] = text
        return
    job.add_note(f"{option}={value}", reason)


def _try_convert_access_pattern(job: JobDraft, remaining_options: Options) -> bool:
    """Whether a study has that pattern; without it there is no workload."""
    access_word = remaining_options.pop("rw", "read").strip().lower()
    word, _, steps = access_word.partition(":")
    word = {"readwrite": "rw"}.get(word, word)
    if word not in set(AccessPattern):
        job.refuse_job(f"rw={access_word}", f"rw is {', '.join(AccessPattern)}")
        return False
    if steps:
        job.add_note(f"rw={access_word}", f"changed: {word}, without fio's steps between offsets")
    access = AccessPattern(word)
    job.workload_keys["rw"] = word
    for option in ("rwmixread", "rwmixwrite"):
        text = remaining_options.pop(option, None)
        if text is None:
            continue
        percent = _parse_whole_number(text)
        if not access.is_mixed:
            job.add_note(f"{option}={text}", f"not needed: {word} does not mix")
        elif percent is None or percent > 100:
            job.add_note(f"{option}={text}", "changed: 50, fio's default, as it is 0 to 100")
        else:
            job.workload_keys["rwmixread"] = percent if option == "rwmixread" else 100 - percent
    if access.is_mixed:
        job.workload_keys.setdefault("rwmixread", 50)
    return True


def _single_direction_index(job: JobDraft) -> int | None:
    """Which of fio's values for reads, writes and trims holds for the job; None for two of them."""
    access = AccessPattern(str(job.workload_keys["rw"]))
    return (
        None
        if access.is_mixed
        else (access.has_reads, access.has_writes, access.has_trims).index(True)
    )


def _convert_sizes(job: JobDraft, remaining_options: Options, kb_base: int) -> None:
    block = _pop_block_bytes_and_add_notes(job, remaining_options, kb_base)
    jobs = _pop_count_or_noted_one(job, remaining_options, "numjobs")
    count, parts = _pop_filename_and_add_notes(job, remaining_options, jobs)
    if count is None:
        count = _pop_count_or_noted_one(job, remaining_options, "nrfiles")
    elif (files := remaining_options.pop("nrfiles", None)) is not None:
        job.add_note(f"nrfiles={files}", "not needed: filename names them")
    written = {
        name: remaining_options[name] for name in ("filesize", "size") if name in remaining_options
    }
    each = _pop_option_bytes_and_add_notes(job, remaining_options, "filesize", kb_base)
    total = _pop_option_bytes_and_add_notes(job, remaining_options, "size", kb_base)
    if each is not None and total is not None and total != each * count:
        reason = f"changed: {each * count} bytes, as files are used whole"
        job.add_note(f"size={written['size']}", reason)
    name = "size" if each is None else "filesize"
    option = "=".join((name, written[name])) if name in written else name
    file_bytes = each if each is not None else None if total is None else total // count
    if file_bytes is None:
        reason = "changed: 1g, as a study needs a size in bytes; write the one you mean"
        job.add_note(name, reason)
        file_bytes = FILE_BYTES
    elif file_bytes < block * parts:
        job.add_note(option, "changed: 1g, as it is less than a block; write the one you mean")
        file_bytes = FILE_BYTES
    elif parts > 1:
        file_bytes //= parts
        job.add_note(option, f"changed: {file_bytes} bytes for each of {parts} parts of it")
    job.workload_keys |= {
        "bs": size_with_unit_text(block),
        "filesize": noted_whole_block_size_text(job, option, file_bytes, block),
    }
    if count > 1:
        job.workload_keys["files"] = count
    job.workload_keys["numjobs"] = jobs


def _pop_option_bytes_and_add_notes(
    job: JobDraft, remaining_options: Options, option: str, kb_base: int
) -> int | None:
    """The bytes of an option; None with a note where it is no size."""
    text = remaining_options.pop(option, None)
    if text is None:
        return None
    count = _parse_size(text, kb_base)
    if count is None or not count:
        job.add_note(
            f"{option}={text}", "refused: a study needs it in bytes; write the one you mean"
        )
        return None
    _note_decimal_unit(job, f"{option}={text}", text, count, kb_base)
    return count


def _note_decimal_unit(job: JobDraft, option: str, text: str, count: int, kb_base: int) -> None:
    """Tell where fio's `KiB` is no KiB."""
    if re.search("[kmgtp]ib", text.lower()) and kb_base == 1024:
        reason = f"kept: {count} bytes, as fio counts KiB by 1,000 unless kb_base=1000"
        job.add_note(option, f"{reason}; it counts k and KB by 1,024")


def _pop_block_bytes_and_add_notes(job: JobDraft, remaining_options: Options, kb_base: int) -> int:
    """The size of a block, of several the smallest, with `bssplit` in the options of fio."""
    text, ranges = remaining_options.pop("bs", None), remaining_options.pop("bsrange", None)
    split = remaining_options.pop("bssplit", None)
    if split is not None and (
        smallest := _convert_bssplit_and_get_smallest_block(job, split, kb_base)
    ):
        for option, value in (("bs", text), ("bsrange", ranges)):
            if value is not None:
                job.add_note(f"{option}={value}", "not needed: bssplit has the sizes")
        return smallest
    if ranges is not None:
        if text is not None:
            job.add_note(f"bs={text}", "not needed: bsrange has the sizes")
        return _smallest_bsrange_block_and_add_notes(job, ranges, kb_base)
    if text is None:
        return DEFAULT_BLOCK_BYTES
    values = [_parse_size(value or "4k", kb_base) for value in _read_write_trim_values(text, "4k")]
    direction = _single_direction_index(job)
    count = values[direction or 0]
    if direction is None and values[0] != values[1] and count is not None:
        reason = f"changed: {size_with_unit_text(count)}, one size for reads and writes"
        job.add_note(f"bs={text}", f"{reason}; or write them as fio's bssplit")
    block = block_bytes_or_noted_default(job, f"bs={text}", count)
    if block == count:
        _note_decimal_unit(job, f"bs={text}", text, count, kb_base)
    return block


def _convert_bssplit_and_get_smallest_block(job: JobDraft, split: str, kb_base: int) -> int | None:
    """The smallest block of a `bssplit` that a study can have; None with a note for any other."""
    sides = split.split(",")
    direction = _single_direction_index(job)
    if direction is not None:
        sides = [sides[min(direction, len(sides) - 1)]]
    texts = [study_bssplit_text(side, lambda size: _parse_size(size, kb_base)) for side in sides]
    text = ",".join(side for side in texts if side)
    shaping = FIO_OPTIONS["bssplit"]
    if None in texts or not shaping.accepts_value(text):
        reason = f"refused: a study has it like bssplit = '{shaping.example}'"
    elif not all(0 < bssplit_percent_total(side) <= WHOLE_PERCENT for side in text.split(",")):
        reason = "refused: its shares are not 1 to 100 % together"
    else:
        reason = ""
    if reason:
        job.add_note(f"bssplit={split}", reason)
        return None
    job.fio_options["bssplit"] = text
    sizes = [_parse_size(size, 1024) or 0 for size in re.findall(r"(\d+[km])", text)]
    return min(sizes)


def _smallest_bsrange_block_and_add_notes(job: JobDraft, bsrange: str, kb_base: int) -> int:
    values = [part.strip() for part in bsrange.split(",")]
    own = values[min(_single_direction_index(job) or 0, len(values) - 1)]
    ends = [_parse_size(end, kb_base) for end in re.split("[-:]", own)]
    sizes = [end for end in ends if end]
    block = block_bytes_or_noted_default(
        job, f"bsrange={bsrange}", min(sizes) if len(sizes) == 2 else None
    )
    if len(set(sizes)) > 1 or len(set(values)) > 1:
        kept = size_with_unit_text(block)
        reason = f"changed: {kept}, one size; or write bs as a list, or fio's bssplit"
        job.add_note(f"bsrange={bsrange}", reason)
    return block


class _FileAndPartCounts(NamedTuple):
    """How many files `filename` names, None without it, and how many parts fall to jobs here."""

    file_count: int | None
    part_count: int


def _pop_filename_and_add_notes(
    job: JobDraft, remaining_options: Options, job_count: int
) -> _FileAndPartCounts:
    """Where the job's data lies: how many files `filename` names, None without it.

    With the number of parts that it falls into here, one a job.
    """
    text = remaining_options.pop("filename", None)
    if text is None:
        return _FileAndPartCounts(None, 1)
    option = f"filename={text}"
    names = [name for name in re.split(r"(?<!\\):", text) if name]
    devices = [name for name in names if name.startswith("/dev/")]
    if devices and len(names) > 1:
        reason = f"changed: one of {len(names)} devices, as a study has one for each configuration"
        job.add_note(option, f"{reason}; write a [[configuration]] for each")
    if devices:
        way = "name the device by --device and --serial, and all on it is destroyed"
        job.add_note(option, f"not needed: {way}; else files below --path are measured")
    elif job_count == 1 or len(names) > 1:
        job.add_note(option, f"not needed: {LEFT_OUT['filename']}")
    else:
        job.workload_keys["shared_file"] = True
    if job_count > 1:
        reason = (
            f"changed: fio's {job_count} jobs all use the whole of it, here each has its own part"
        )
        job.add_note(option, reason)
    if devices:
        # Of several devices fio gives each its part of size.
        return _FileAndPartCounts(1, job_count * len(names))
    return _FileAndPartCounts(len(names), job_count)


def _try_convert_ioengine_and_iodepth(job: JobDraft, remaining_options: Options) -> bool:
    """Whether the engine does I/O on files or devices; of others no study measures anything."""
    text = remaining_options.pop("ioengine", "psync")
    engine = _EQUIVALENT_ENGINES.get(text, text)
    if engine not in IOENGINES:
        known = ", ".join(IOENGINES)
        job.refuse_job(f"ioengine={text}", f"a study measures files and devices by one of {known}")
        return False
    if engine != text:
        job.add_note(
            f"ioengine={text}", f"changed: {engine}, as a study has {', '.join(IOENGINES)}"
        )
    text = remaining_options.get("iodepth", "1")
    depth = _pop_count_or_noted_one(job, remaining_options, "iodepth")
    if depth > 1 and engine in SYNC_IOENGINES:
        job.add_note(f"iodepth={text}", f"changed: 1, as {engine} keeps one I/O in flight")
        depth = 1
    if depth > 1 and AccessPattern(str(job.workload_keys["rw"])).has_trims:
        job.add_note(f"iodepth={text}", "changed: 1, as fio trims one block at a time")
        depth = 1
    job.workload_keys |= {"ioengine": engine, "iodepth": depth}
    return True


def _convert_cache_and_contents_options(job: JobDraft, remaining_options: Options) -> None:
    """Whether the page cache is passed by, and what blocks hold."""
    direct = _pop_flag_noting_refused_value(job, remaining_options, "direct")
    if "buffered" in remaining_options:
        direct = not _pop_flag_noting_refused_value(job, remaining_options, "buffered")
    job.workload_keys["direct"] = direct
    if not direct:
        job.add_note("direct=0", "kept: this measures the page cache, and results will say so")
    if _pop_flag_noting_refused_value(job, remaining_options, "refill_buffers"):
        job.workload_keys["contents"] = "random"
    if _pop_flag_noting_refused_value(job, remaining_options, "zero_buffers"):
        job.workload_keys["contents"] = "zeros"


def _convert_rates(job: JobDraft, remaining_options: Options, kb_base: int) -> None:
    direction = _single_direction_index(job)
    for option in ("rate_iops", "rate"):
        text = remaining_options.pop(option, None)
        if text is None:
            continue
        values = [
            _parse_size(value or "0", kb_base) for value in _read_write_trim_values(text, "0")
        ]
        rate = values[direction or 0]
        if not any(values) and None not in values:
            job.add_note(f"{option}={text}", "not needed: 0 is no limit")
        elif direction is None:
            reason = "refused: fio has one for reads and one for writes, a study one for both"
            job.add_note(f"{option}={text}", reason)
        elif rate is None:
            job.add_note(f"{option}={text}", "refused: it is no number")
        elif rate == 0:
            job.add_note(f"{option}={text}", f"not needed: it limits no {job.workload_keys['rw']}")
        elif "rate_iops" in job.workload_keys:
            job.add_note(f"{option}={text}", "refused: a workload has one rate, here rate_iops")
        else:
            job.workload_keys[option] = rate
    process = remaining_options.get("rate_process")
    if process == "poisson":
        del remaining_options["rate_process"]
        if "rate" in job.workload_keys or "rate_iops" in job.workload_keys:
            job.workload_keys["arrivals"] = "poisson"
        else:
            job.add_note("rate_process=poisson", "not needed: there is no rate")


def _read_write_trim_values(text: str, default: str) -> tuple[str, str, str]:
    """A value for each of reads, writes and trims, of which fio takes the last for the rest.

    Without anything before or after a comma the default holds there.
    """
    parts = text.split(",") if "," in text else re.split("(?<!^)[:-]", text)
    parts = [part.strip() for part in parts[:3]]
    while len(parts) < 3:
        parts.append(parts[-1] or default)
    first, second, third = (part or default for part in parts)
    return first, second, third


def _pop_duration_and_add_notes(
    job: JobDraft, remaining_options: Options, option: str
) -> Duration | None:
    text = remaining_options.pop(option, None)
    if text is None:
        return None
    match = _TIME.fullmatch(text.strip().lower())
    if not match:
        job.add_note(f"{option}={text}", "refused: a study has it like 30s")
        return None
    if not int(match[1]):
        job.add_note(f"{option}={text}", "not needed: 0 is none")
        return None
    unit = (match[2] or "s").removesuffix("ec")
    return Duration(f"{int(match[1])}{unit}", int(match[1]) * _SECONDS[unit])


def _pop_count_or_noted_one(job: JobDraft, remaining_options: Options, option: str) -> int:
    """The number above 0 that an option gives, 1 with a note where it gives none."""
    text = remaining_options.pop(option, None)
    if text is None:
        return 1
    count = _parse_whole_number(text)
    if count:
        return count
    reason = "as fio reads an expression in brackets only, and here none is evaluated"
    job.add_note(f"{option}={text}", f"changed: 1, {reason if count is None else 'the least'}")
    return 1


def _pop_flag_noting_refused_value(job: JobDraft, remaining_options: Options, option: str) -> bool:
    """Whether an option is on."""
    text = remaining_options.pop(option, "0")
    if _parse_whole_number(text) is None and text not in ("true", "false"):
        job.add_note(f"{option}={text}", "refused: it is 0 or 1, and 0 stands here")
    return _is_option_true(text)


def _is_option_true(text: str) -> bool:
    return text == "true" or bool(_parse_whole_number(text))


def _parse_size(text: str, kb_base: int) -> int | None:
    """The bytes that fio reads in a text; None where it has more than a number and a unit.

    With `kb_base=1024`, its default, `KB` is 1,024 and `KiB` 1,000, and with 1000 as they read.
    """
    match = _NUMBER.fullmatch(text.strip())
    if not match:
        return None
    step = kb_base
    if (match[3] or "").lower() == "ib":
        step = 1000 if kb_base == 1024 else 1024
    factor: int = step ** _POWERS.index((match[2] or "").lower())
    return int(match[1], 16 if match[1].lower().startswith("0x") else 10) * factor


def _parse_whole_number(text: str) -> int | None:
    return _parse_size(text, 1024)
