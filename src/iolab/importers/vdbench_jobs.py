"""The run definitions of vdbench's parameter files, read as vdbench 5.04's own scanner reads them.

After its `Vdb_scan.java`, `SD_entry.java`, `WD_entry.java` and `RD_entry.java`: a parameter may be
cut to any beginning of its name of two characters or more, what follows a blank is a comment, and
definitions take what the `default` of their kind has had so far. Nothing is executed or included.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from fractions import Fraction
from itertools import pairwise
from typing import Final

from msgspec import Struct, field

from iolab.importers.files import NAME_CHARACTERS
from iolab.importers.job_draft import (
    DEFAULT_BLOCK_BYTES,
    FILE_BYTES,
    NO_OPTION,
    VALUE_CHARACTERS,
    Duration,
    JobDraft,
    OptionNote,
    block_bytes_or_noted_default,
    noted_whole_block_size_text,
    size_with_unit_text,
    study_bssplit_text,
)
from iolab.loads.fileio.options import FIO_OPTIONS
from iolab.text import excerpt

VALUES_MAX: Final = 1000
"""Values of one loop; a study's axis is shorter."""

FILE: Final = "file"
"""Whom a note is about that is of no run definition."""

_LOOPS: Final = (
    "xfersize",
    "threads",
    "rdpct",
    "rhpct",
    "whpct",
    "seekpct",
    "hitarea",
    "compratio",
    "compression",
    "depth",
    "width",
    "files",
    "sizes",
    "totalsize",
    "workingsetsize",
)
"""Parameters of a run definition, with or without `for`, that give a run for each value."""

_WORDS: Final[Mapping[str, Sequence[str]]] = {
    "sd": (
        *("host", "lun", "count", "size", "threads", "hitarea", "offset", "align", "kstat"),
        *("instance", "replay", "journal", "resetlun", "resetbus", "openflags", "range"),
        *("dedup", "streams"),
    ),
    "wd": (
        *("skew", "xfersize", "readpct", "rdpct", "writepct", "wrpct", "range", "hotband"),
        *("seekpct", "stride", "priority", "iorate", "rhpct", "whpct", "host", "openflags"),
        *("user", "threads", "streams"),
    ),
    "rd": (
        *("iorate", "maxdata", "curve", "stopcurve", "elapsed", "interval", "warmup", "replay"),
        *("pause", *(f"for{loop}" for loop in _LOOPS), *_LOOPS, "distribution", "startcmd"),
        *("start_cmd", "endcmd", "end_cmd", "fwdrate", "operations", "format", "openflags"),
        "mount",
    ),
}
"""The parameters of each kind, in the order in which vdbench tries a short word."""

_INHERITED_KINDS: Final[Mapping[str, Sequence[str]]] = {
    "rd": (),
    "wd": ("rd",),
    "fwd": ("rd",),
    "sd": ("rd", "wd"),
    "fsd": ("rd", "fwd"),
    "hd": ("rd", "wd", "fwd", "sd", "fsd"),
}
"""What begins a definition, but in those where it is a parameter."""

_HARMLESS_PARAMETERS: Final[Mapping[str, str]] = {
    "auxreport": "it changes nothing",
    "create_anchors": "it changes nothing",
    "data_errors": "a run with errors is invalid",
    "formatsds": "files are laid out whole before the first run",
    "hd": "hosts are named by --hosts",
    "heartbeat_error": "it changes nothing",
    "histogram": "whole latencies are kept in bins",
    "host": "hosts are named by --hosts",
    "interval": "every second is kept",
    "lun": "where files lie is said by --path or --device",
    "messagescan": "it changes nothing",
    "monitor": "it changes nothing",
    "pause": "every run is prepared by itself",
    "port": "it changes nothing",
    "report": "it changes nothing",
    "report_run_totals": "it changes nothing",
}
"""Parameters that a study has no need of, with the reason."""

_REFUSED_PARAMETERS: Final[Mapping[str, str]] = {
    "include": "no other file is read; copy its lines into this one",
    "startcmd": "commands are never run",
    "start_cmd": "commands are never run",
    "endcmd": "commands are never run",
    "end_cmd": "commands are never run",
    "validate": "write verify = true and engine = 'native', which checks every block",
    "replay": "traces are not replayed",
}
"""Parameters that a study cannot have, with the reason."""

_DEFAULT_ELAPSED: Final = Duration("30s", Fraction(30))

SEEKS_RANDOM: Final = 50
"""From this share of seeks on, in percent, random offsets are nearer than sequential ones."""

_LOOP_OF_SIZES: Final = "forxfersize"
_TIME: Final = re.compile(r"(\d{1,15})([mh]?)", re.IGNORECASE)
_SECONDS: Final = {"": 1, "m": 60, "h": 3600}
_NUMBER: Final = re.compile(r"(\d{1,18}(?:\.\d{0,6})?|\.\d{1,6})([kmgt]?)b?", re.IGNORECASE)


class _VdbenchDefinition(Struct):
    """One `sd`, `wd`, `rd`, `fsd`, `fwd` or `hd` with its parameters by their full names."""

    kind: str
    name: str
    options: dict[str, str] = field(default_factory=dict)

    def __str__(self) -> str:
        return ",".join(
            (f"{self.kind}={self.name}", *(f"{k}={v}" for k, v in self.options.items()))
        )


def jobs_and_notes_of_parameter_file(text: str) -> tuple[list[JobDraft], list[OptionNote]]:
    """Every run definition, a workload for each `wd` in it, with the notes that are of no job."""
    notes: list[OptionNote] = []
    definitions = _parse_definitions(text, notes)
    used: set[str] = set()
    jobs: list[JobDraft] = []
    for definition in definitions:
        if definition.kind == "rd":
            jobs += _convert_run_definition(definition, definitions, used)
        elif definition.kind in ("fsd", "fwd"):
            job = JobDraft(definition.name)
            job.refuse_job(str(definition), "a study has no workload of many files like vdbench's")
            jobs.append(job)
        elif definition.kind == "hd":
            notes.append(
                OptionNote(FILE, str(definition), f"not needed: {_HARMLESS_PARAMETERS['hd']}")
            )
    notes += [
        OptionNote(FILE, str(definition), "not needed: no run definition uses it")
        for definition in definitions
        if definition.kind in ("sd", "wd") and f"{definition.kind}={definition.name}" not in used
    ]
    return jobs, notes


def _parse_definitions(text: str, notes_to_extend: list[OptionNote]) -> list[_VdbenchDefinition]:
    """The definitions but defaults, which those after them have taken."""
    defaults: dict[str, dict[str, str]] = {}
    definitions: list[_VdbenchDefinition] = []
    kind = ""
    options: dict[str, str] = {}
    for parameter in _split_parameters(text):
        key, equals, value = parameter.partition("=")
        key = key.lower()
        if key in _INHERITED_KINDS and kind not in _INHERITED_KINDS[key]:
            kind = key
            options = defaults.setdefault(kind, {})
            if value != "default":
                definition = _VdbenchDefinition(
                    kind, excerpt(value, NAME_CHARACTERS), dict(options)
                )
                options = definition.options
                definitions.append(definition)
        elif not kind or not equals or key == "include":
            notes_to_extend.append(
                OptionNote(
                    FILE,
                    excerpt(parameter, NAME_CHARACTERS),
                    _ignored_parameter_reason(key if equals else ""),
                )
            )
        else:
            name, value = _write_percent_as_read_percent(_full_parameter_name(kind, key), value)
            options[name] = value
    for kind, options in defaults.items():
        taken = {item.kind for item in definitions if item.options.items() >= options.items()}
        if options and kind not in taken:
            reason = "not needed: no definition comes after it"
            notes_to_extend.append(
                OptionNote(FILE, str(_VdbenchDefinition(kind, "default", options)), reason)
            )
    return definitions


def _write_percent_as_read_percent(name: str, value: str) -> tuple[str, str]:
    """The share of reads however it is named: what comes last of all of them holds."""
    if name in ("writepct", "wrpct") and value.isdigit():
        return "rdpct", str(100 - int(value))
    return ("rdpct" if name == "readpct" else name), value


def _split_parameters(text: str) -> Iterator[str]:
    """Parameter by parameter: a definition goes on over lines."""
    for line in text.splitlines():
        words = line.strip()
        if words.startswith("eof"):
            return
        if words and words[0] not in "/#*":
            words = excerpt(_text_before_unquoted_blank(words), VALUE_CHARACTERS)
            yield from re.findall(r"(?:\([^()]*(?:\([^()]*\)[^()]*)*\)|[^,(])+", words)


def _text_before_unquoted_blank(words: str) -> str:
    """A line up to its first blank outside quotes, without these."""
    parts = words.split('"')
    for index in range(0, len(parts), 2):
        before, blank, _ = parts[index].partition(" ")
        if blank:
            return "".join((*parts[:index], before))
    return "".join(parts)


def _full_parameter_name(definition_kind: str, key: str) -> str:
    if key in ("hd", "host"):
        return "host"
    if key in _INHERITED_KINDS or key.startswith("maxdata"):
        return key
    words = _WORDS.get(definition_kind, ())
    full = key if key in words else next((word for word in words if word.startswith(key)), key)
    loop = full.removeprefix("for")
    if definition_kind != "rd" or loop not in _LOOPS:
        return full
    # Of sizes alone a list is not the same in a workload, where it has their shares.
    return _LOOP_OF_SIZES if loop == "xfersize" else loop


def _ignored_parameter_reason(name: str) -> str:
    if name in _HARMLESS_PARAMETERS:
        return f"not needed: {_HARMLESS_PARAMETERS[name]}"
    return f"refused: {_REFUSED_PARAMETERS[name]}" if name in _REFUSED_PARAMETERS else NO_OPTION


def _convert_run_definition(
    run: _VdbenchDefinition, definitions: Sequence[_VdbenchDefinition], used_names: set[str]
) -> Iterator[JobDraft]:
    """A job for each workload definition that the run has at once."""
    by_kind = {kind: [item for item in definitions if item.kind == kind] for kind in ("sd", "wd")}
    if "fwd" in run.options or "fsd" in run.options:
        job = JobDraft(run.name)
        job.refuse_job(str(run), "a study has no workload of many files like vdbench's")
        yield job
        return
    remaining_options = dict(run.options)
    names = remaining_options.pop("wd", "")
    workloads = _matching_definitions(names, by_kind["wd"])
    if not names and "sd" in remaining_options:
        workloads = [_VdbenchDefinition("wd", "default")]
    if not workloads:
        job = JobDraft(run.name)
        job.refuse_job(str(run), f"there is no wd={names}" if names else "it has no wd=")
        yield job
        return
    for workload in workloads:
        used_names.add(f"wd={workload.name}")
        name = run.name if len(workloads) == 1 else f"{run.name}-{workload.name}"
        job = JobDraft(name)
        if len(workloads) > 1:
            reason = f"changed: vdbench runs {len(workloads)} workloads at once, here one after the"
            job.add_note(f"wd={names}", f"{reason} other")
        own = {**workload.options, **remaining_options}
        disks = own.pop("sd", "")
        storages = _matching_definitions(disks, by_kind["sd"])
        used_names |= {f"sd={storage.name}" for storage in storages}
        if not storages:
            job.refuse_job(str(run), f"there is no sd={disks}")
            yield job
            continue
        if len(storages) > 1:
            reason = f"changed: vdbench uses {len(storages)} storages at once, a study has one for"
            job.add_note(
                f"sd={disks}", f"{reason} each configuration; the options are those of one"
            )
        if "iorate" in workload.options:
            job.add_note(f"iorate={workload.options['iorate']}", "refused: a run has one rate here")
        if len(workloads) > 1 and remaining_options.get("iorate", "max") != "max":
            rate = own.pop("iorate")
            job.add_note(f"iorate={rate}", "refused: it is of all of these workloads together")
        _note_storage_differences(job, storages)
        _convert_parameters(job, {**storages[0].options, **own})
        yield job


def _note_storage_differences(job: JobDraft, storages: Sequence[_VdbenchDefinition]) -> None:
    """Tell where the storages of a workload are not alike."""
    for first, other in pairwise(storages):
        for option in sorted(set(first.options) | set(other.options)):
            values = [item.options.get(option, "none") for item in (first, other)]
            if option not in _HARMLESS_PARAMETERS and values[0] != values[1]:
                reason = f"changed: {storages[0].options.get(option, 'none')}, of the first storage"
                job.add_note(f"{other.name} {option}={values[1]}", reason)


def _matching_definitions(
    names: str, definitions: Sequence[_VdbenchDefinition]
) -> list[_VdbenchDefinition]:
    """Those that a list of names, beginnings with `*` and ranges `sd1-sd4` is about."""
    found: dict[str, _VdbenchDefinition] = {}
    for name in names.strip("()").split(","):
        numbers = re.fullmatch(r"(\D*)(\d{1,9})-\1(\d{1,9})", name)
        for item in definitions:
            if numbers and (own := re.fullmatch(rf"{re.escape(numbers[1])}(\d{{1,9}})", item.name)):
                fits = int(numbers[2]) <= int(own[1]) <= int(numbers[3])
            else:
                fits = item.name == name or (name.endswith("*") and item.name.startswith(name[:-1]))
            if fits:
                found[item.name] = item
    return list(found.values())


def _convert_parameters(job: JobDraft, remaining_options: dict[str, str]) -> None:
    """Each parameter into the workload, or into a note."""
    _convert_access_pattern(job, remaining_options)
    block = _convert_block_size_and_get_bytes(job, remaining_options)
    _convert_file_size(job, remaining_options, block)
    _convert_threads(job, remaining_options)
    _convert_open_flags(job, remaining_options)
    _convert_rate(job, remaining_options)
    job.runtime = _pop_duration_and_add_notes(job, remaining_options, "elapsed") or _DEFAULT_ELAPSED
    job.warmup = _pop_duration_and_add_notes(job, remaining_options, "warmup")
    for option, value in remaining_options.items():
        job.add_note(f"{option}={value}", _ignored_parameter_reason(option))


def _convert_access_pattern(job: JobDraft, remaining_options: dict[str, str]) -> None:
    seeks = _list_values(remaining_options.pop("seekpct", "100"))
    seek = _parse_seek_percent(seeks[0])
    is_random = seek is None or seek >= SEEKS_RANDOM
    pattern = "every offset is random" if is_random else "sequential"
    if len(seeks) > 1 or seek is None or 0 < seek < 100:
        reason = f"changed: {pattern}, as a workload has one pattern"
        job.add_note(f"seekpct={','.join(seeks)}", reason)
    elif seek < 0:
        job.add_note(f"seekpct={seeks[0]}", "changed: sequential, and on from the start at the end")
    percents: list[int] = [100]
    if (text := remaining_options.pop("rdpct", None)) is not None:
        values = _loop_values(text)
        if values and all(0 <= value <= 100 for value in values):
            percents = [int(value) for value in values]
        else:
            job.add_note(f"rdpct={text}", "changed: 100, vdbench's default, as it is no share")
    mixed = len(percents) > 1 or 0 < percents[0] < 100
    word = "rw" if mixed else "read" if percents[0] else "write"
    job.workload_keys["rw"] = f"rand{word}" if is_random else word
    if mixed:
        job.workload_keys["rwmixread"] = percents if len(percents) > 1 else percents[0]


def _parse_seek_percent(text: str) -> float | None:
    if text == "eof":
        return -1
    if "sequential".startswith(text) or text == "seqnz":
        return 0
    if "random".startswith(text):
        return 100
    values = _loop_values(text)
    return float(values[0]) if values and 0 <= values[0] <= 100 else None


def _convert_block_size_and_get_bytes(job: JobDraft, remaining_options: dict[str, str]) -> int:
    """The size of a block, of several what is a multiple of all: files have whole blocks."""
    text = remaining_options.pop("xfersize", None)
    loop = remaining_options.pop(_LOOP_OF_SIZES, None)
    if loop is not None:
        if text is not None:
            job.add_note(f"xfersize={text}", "not needed: forxfersize has the sizes")
        values = _loop_values(loop)
        if values:
            blocks = [
                block_bytes_or_noted_default(job, f"forxfersize={loop}", int(value))
                for value in values
            ]
            blocks = list(dict.fromkeys(blocks))
            texts = [size_with_unit_text(block) for block in blocks]
            job.workload_keys["bs"] = texts if len(texts) > 1 else texts[0]
            return math.lcm(*blocks)
        job.add_note(f"forxfersize={loop}", "changed: 4k; write bs as a list of its values")
        text = None
    job.workload_keys["bs"] = size_with_unit_text(DEFAULT_BLOCK_BYTES)
    if text is None:
        return DEFAULT_BLOCK_BYTES
    sizes = [_parse_bytes(part) for part in text.strip("()").split(",")]
    block: int | None = sizes[0]
    if len(sizes) == 3:
        job.add_note(
            f"xfersize={text}", "changed: the smallest, as a workload has one size of blocks"
        )
    elif len(sizes) > 1:
        block = _convert_size_shares_and_get_smallest(job, text)
    block = block_bytes_or_noted_default(job, f"xfersize={text}", block)
    job.workload_keys["bs"] = size_with_unit_text(block)
    return block


def _convert_size_shares_and_get_smallest(job: JobDraft, text: str) -> int | None:
    """Sizes with their shares as fio's `bssplit`; the smallest size, None where that is not so."""
    parts = text.strip("()").split(",")
    pairs = zip(parts[::2], parts[1::2], strict=False)
    split = study_bssplit_text(":".join(f"{size}/{share}" for size, share in pairs), _parse_bytes)
    if split is None or len(parts) % 2 or not FIO_OPTIONS["bssplit"].accepts_value(split):
        return None
    job.fio_options["bssplit"] = split
    return min(size for part in parts[::2] if (size := _parse_bytes(part)))


def _convert_file_size(job: JobDraft, remaining_options: dict[str, str], block: int) -> None:
    text = remaining_options.pop("size", None)
    size = None if text is None else _parse_bytes(text)
    if size is None or size < block:
        option = "size" if text is None else f"size={text}"
        job.add_note(
            option, "changed: 1g, as a study needs a size in bytes; write the one you mean"
        )
        size = FILE_BYTES
    job.workload_keys |= {
        "filesize": noted_whole_block_size_text(job, f"size={text}", size, block),
        "numjobs": 1,
    }


def _convert_threads(job: JobDraft, remaining_options: dict[str, str]) -> None:
    text = remaining_options.pop("threads", "8")
    depths = [int(value) for value in _loop_values(text) if value >= 1 and value == int(value)]
    if not depths or len(depths) != len(_loop_values(text)):
        job.add_note(f"threads={text}", "changed: 8, vdbench's default; write iodepth as a list")
        depths = [8]
    else:
        shown = ", ".join(map(str, depths))
        job.add_note(f"threads={text}", f"changed: iodepth {shown} of one job by libaio")
    job.workload_keys |= {"ioengine": "libaio", "iodepth": depths if len(depths) > 1 else depths[0]}


def _convert_open_flags(job: JobDraft, remaining_options: dict[str, str]) -> None:
    text = remaining_options.pop("openflags", None)
    flags = [] if text is None else text.strip("()").lower().split(",")
    direct = any(flag in ("o_direct", "directio", "direct") for flag in flags)
    job.workload_keys["direct"] = direct
    for flag in flags:
        if flag not in ("o_direct", "directio", "direct"):
            job.add_note(
                f"openflags={flag}", "refused: write fio = { sync = '1' } if it is for writes"
            )
    if not direct:
        job.add_note("openflags", "kept: this measures the page cache, and results will say so")


def _convert_rate(job: JobDraft, remaining_options: dict[str, str]) -> None:
    """The rate, and how I/Os arrive: without a word from vdbench's run, at random."""
    text = remaining_options.pop("iorate", None)
    spread = remaining_options.pop("distribution", None)
    values = [] if text is None else _loop_values(text)
    rates = [int(value) for value in values if value >= 1 and value == int(value)]
    if text is None:
        job.add_note("iorate", "changed: no limit, though vdbench needs one")
    elif rates and len(rates) == len(values):
        job.workload_keys["rate_iops"] = rates if len(rates) > 1 else rates[0]
        job.workload_keys["arrivals"] = "poisson"
    elif text.lower() != "max":
        job.add_note(
            f"iorate={text}", "refused: write objective = 'max-load', or rate_iops as a list"
        )
    if spread is None:
        return
    words = spread.strip("()").lower().split(",")
    if "rate_iops" not in job.workload_keys:
        job.add_note(f"distribution={spread}", "not needed: there is no rate")
    elif len(words) == 1 and "deterministic".startswith(words[0]):
        job.workload_keys["arrivals"] = "fixed"
    elif len(words) > 1 or not "exponential".startswith(words[0]):
        job.add_note(f"distribution={spread}", "changed: poisson, as arrivals are fixed or poisson")


def _pop_duration_and_add_notes(
    job: JobDraft, remaining_options: dict[str, str], option: str
) -> Duration | None:
    text = remaining_options.pop(option, None)
    if text is None:
        return None
    match = _TIME.fullmatch(text.strip())
    if not match or not int(match[1]):
        reason = "not needed: 0 is none" if match else "refused: a study has it like 30s"
        job.add_note(f"{option}={text}", reason)
        return None
    unit = match[2].lower()
    return Duration(f"{int(match[1])}{unit or 's'}", Fraction(int(match[1]) * _SECONDS[unit]))


def _list_values(text: str) -> list[str]:
    return [part.strip() for part in text.strip("()").split(",")] or [text]


def _loop_values(text: str) -> list[Fraction]:
    """The values of a loop, with its ranges `1-64,d` and `1-10,3`; none where one is no number."""
    values: list[Fraction] = []
    parts = re.findall(r"-|[^,-]+", text.strip("()"))
    position = 0
    while position < len(parts):
        part = parts[position]
        if part == "-":
            ranged = _values_to_range_end(values, parts[position + 1 : position + 3])
            position += 3
        else:
            number = _parse_number(part)
            ranged = None if number is None else [number]
            position += 1
        if ranged is None or len(values) + len(ranged) > VALUES_MAX:
            return []
        values += ranged
    return values


def _values_to_range_end(
    earlier_values: Sequence[Fraction], end_and_step_words: Sequence[str]
) -> list[Fraction] | None:
    """What comes after the last value, up to an end, doubled, halved or by a step."""
    last = _parse_number(end_and_step_words[0]) if len(end_and_step_words) == 2 else None
    step = (
        None
        if last is None or end_and_step_words[1] == "d"
        else _parse_number(end_and_step_words[1])
    )
    if (
        not earlier_values
        or last is None
        or earlier_values[-1] <= 0
        or (end_and_step_words[1] != "d" and not step)
    ):
        return None
    values = [earlier_values[-1]]
    while len(values) <= VALUES_MAX:
        if step:
            following = values[-1] + step
        else:
            following = values[-1] * 2 if earlier_values[-1] < last else values[-1] / 2
        if (
            (following > last)
            if step or earlier_values[-1] < last
            else (following < last or not last)
        ):
            break
        values.append(following)
    return values[1:]


def _parse_number(text: str) -> Fraction | None:
    """A number as vdbench has it: all of its units are binary."""
    match = _NUMBER.fullmatch(text.strip())
    if not match:
        return None
    factor: int = 1024 ** " kmgt".index(match[2].lower() or " ")
    return Fraction(match[1]) * factor


def _parse_bytes(text: str) -> int | None:
    number = _parse_number(text)
    return None if number is None else int(number)
