"""Checks of workloads of I/O by their engine: what each of the two alone can do."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Final

from iolab.core.configuration import Objective
from iolab.core.engine import EngineName
from iolab.core.scenario import EventPlan
from iolab.core.study import Study
from iolab.loads.fileio.engine_facts import FIO_ENGINE, NATIVE_ENGINE
from iolab.loads.fileio.options import (
    ADVICE,
    FIO_OPTIONS,
    METHODS,
    NATIVE_OPTIONS,
    bssplit_percent_total,
    is_option_supported_natively,
    parse_microseconds,
)
from iolab.loads.fileio.table import DEFAULT_READ_PERCENT, FLEET_RATE_MAX, RATE_MAX, FileTable
from iolab.loads.fileio.workload import (
    SYNC_IOENGINES,
    WHOLE_PERCENT,
    IoArrivals,
    Job,
    WrittenContents,
    bssplit_block_bytes_and_percents,
)
from iolab.study.checks import FILES_PER_HOST_MAX, tables_with_targets
from iolab.study.document import StudyDocument
from iolab.study.file import XFS
from iolab.study.schedule import expand_points
from iolab.study.tables import (
    ElementFault,
    StudyTables,
    add_element_faults,
    add_option_faults,
    table_name,
)
from iolab.study.targets import (
    load_host_names,
    load_host_names_of_point,
    neighbour_host_names,
    target_serial,
)
from iolab.study.values import program_option_text
from iolab.text import list_text, nearest_word, quote_value
from iolab.units import format_bytes, parse_size

IN_FLIGHT_MAX: Final = 1 << 20
"""I/Os in flight on one host: no kernel grants more requests, and no device takes as many."""

LAID_OUT_BYTES: Final = 1 << 20
FILLED_BYTES: Final = 128 << 10
"""What is written at once by layouts and fills: a block that holds parts of two is no block of one
write, so whoever verifies it would call it torn."""

LEDGER_BLOCKS_MAX: Final = 1 << 28
LEDGER_FILES_MAX: Final = 1 << 16
"""What the ledger of a verified data set holds on each host: 2 GiB of its memory."""

_USE_FIO: Final = "write engine = 'fio'"

_TRACE_CONFLICTS: Final = (
    *("rwmixread", "rate_iops", "rate", "fleet_rate_iops", "arrivals", "shared_file", "verify"),
    "fio",
)
"""Keys that say what a trace says."""


def add_file_io_faults(document: StudyDocument, tables: StudyTables) -> None:
    """Add every fault of workloads of I/O that no single key shows."""
    for item in tables.items_by_section["workload"]:
        add_option_faults(
            document, item, "fio", FileTable, FIO_OPTIONS, advice_for_name=_unknown_option_advice
        )
    for item, workload in tables.items_of_table("workload", FileTable):
        add_element_faults(document, item, _workload_element_faults(workload, tables))


def _workload_element_faults(workload: FileTable, tables: StudyTables) -> Iterator[ElementFault]:
    """Of any engine, then what its own cannot do as it is written."""
    yield from _access_pattern_element_faults(workload, tables)
    yield from _rate_and_arrival_element_faults(workload)
    yield from _queue_depth_element_faults(workload)
    yield from _file_layout_element_faults(workload)
    if workload.trace is not None:
        yield from _trace_element_faults(workload, tables)
    yield from _PROBLEMS_BY_ENGINE[workload.engine](workload, tables)


def _access_pattern_element_faults(
    workload: FileTable, tables: StudyTables
) -> Iterator[ElementFault]:
    access = f"rw = {quote_value(workload.rw.value)}"
    if workload.rwmixread is not None and not workload.rw.is_mixed:
        mixes = ", ".join(map(str, workload.rwmixread))
        has = f"rwmixread = {mixes} but {access} does not mix"
        yield ElementFault(
            ("rwmixread",), has, "Leave rwmixread out, or write rw = 'randrw' or 'rw'."
        )
    # fio has no trims of files, and those of guests stay in the guest.
    if not workload.rw.has_trims:
        return
    hint = "Give a block device as the target (device and serial), or another rw."
    if tables.makes_hosts:
        where = "the disks of booted guests do not pass on"
    elif tables.target.filesystem == XFS:
        where = "files on an XFS do not take"
    elif any(table.path for _, table in tables_with_targets(tables)):
        where = "files in a directory do not take"
    else:
        return
    yield ElementFault(("rw",), f"{access}, whose trims {where}", hint)


def _trace_element_faults(workload: FileTable, tables: StudyTables) -> Iterator[ElementFault]:
    """What a replay cannot do, and a trace that cannot be replayed."""
    from iolab.loads.fileio.io_trace import IoTraceError, read_trace

    path = workload.trace or ""
    try:
        trace = read_trace(path)
    except IoTraceError as fault:
        yield ElementFault(("trace",), f"a trace, {quote_value(path)}, that {fault}", fault.hint)
        return
    if workload.engine != NATIVE_ENGINE:
        hint = "Write engine = 'native', which replays it at the recorded times."
        yield ElementFault(("trace",), f"a trace and engine = {quote_value(workload.engine)}", hint)
    for key in _TRACE_CONFLICTS:
        if getattr(workload, key) and (key != "rwmixread" or len(workload.rwmixread or ()) > 1):
            yield ElementFault((key,), f"both trace and {key}", "Leave one of them out.")
    if max(workload.numjobs) > 1 or workload.files > 1:
        has = f"a trace with numjobs = {max(workload.numjobs)} and files = {workload.files}"
        yield ElementFault(
            ("trace",), has, "Leave numjobs and files out: one job replays it on a file."
        )
    if workload.objective is Objective.MAX_LOAD:
        has = "objective = 'max-load', which searches a rate, and a trace has its own"
        yield ElementFault(("objective",), has, "Leave it out, or replay it with trace_speed = 2.")
    largest = int(trace.io_sizes.max())
    if largest > min(map(parse_size, workload.filesize)):
        has = f"a trace with an I/O of {format_bytes(largest)}, more than filesize"
        yield ElementFault(("filesize",), has, "Raise filesize.")
    lasts_s = trace.span_ns / 1e9 / workload.trace_speed
    method = tables.method
    wanted_s = method.warmup + method.runtime
    if lasts_s < wanted_s:
        has = (
            f"a trace of {lasts_s:.3g} s at that speed, and warm-up and runtime are {wanted_s:g} s"
        )
        hint = f"Give method.warmup and method.runtime that come to at most {lasts_s:.3g} s."
        yield ElementFault(("trace",), has, hint)


def _queue_depth_element_faults(workload: FileTable) -> Iterator[ElementFault]:
    depth, jobs = max(workload.iodepth), max(workload.numjobs)
    if workload.ioengine in SYNC_IOENGINES and depth > 1:
        has = f"iodepth = {depth} but ioengine = {quote_value(workload.ioengine)} keeps one I/O "
        hint = "Write iodepth = 1 and raise numjobs, or use ioengine = 'libaio' or 'io_uring'."
        yield ElementFault(("ioengine",), f"{has}in flight", hint)
    if depth * jobs > IN_FLIGHT_MAX:
        has = f"numjobs = {jobs} with iodepth = {depth}: {depth * jobs:,} I/Os in flight on one "
        yield ElementFault(("iodepth",), f"{has}host", f"Keep at most {IN_FLIGHT_MAX:,} in flight.")


def _file_layout_element_faults(workload: FileTable) -> Iterator[ElementFault]:
    """Whole blocks only: a last part of a block would never be read or written."""
    for index, filesize in enumerate(workload.filesize):
        blocks = [bs for bs in workload.bs if parse_size(filesize) % parse_size(bs)]
        if blocks:
            has = f"filesize = {quote_value(filesize)}, which is not a multiple of "
            has += f"bs = {quote_value(blocks[0])}"
            hint = f"Give a multiple of {format_bytes(parse_size(blocks[0]))}."
            yield ElementFault(("filesize", index), has, hint)
    if workload.shared_file and workload.files > 1:
        hint = "Leave one of them out: all jobs share one file, or each has its own."
        yield ElementFault(("shared_file",), f"shared_file and files = {workload.files}", hint)
    files = max(workload.numjobs) * workload.files
    if files > FILES_PER_HOST_MAX:
        hint = f"Keep numjobs x files at most {FILES_PER_HOST_MAX}."
        yield ElementFault(("files",), f"{files} files on each host", hint)


def _unknown_option_advice(option_name: str) -> str | None:
    """What to do about an option that is none, None where the nearest that is one is named."""
    if option_name not in ADVICE and nearest_word(option_name, FIO_OPTIONS) is None:
        return "docs/reference/study/file-io.md lists the options."
    return ADVICE.get(option_name)


def _valid_fio_options(workload: FileTable) -> dict[str, str]:
    """Its options, but for those that are told of where they are looked at by themselves."""
    texts = {name: program_option_text(value) for name, value in workload.fio.items()}
    return {
        k: text
        for k, text in texts.items()
        if k in FIO_OPTIONS and FIO_OPTIONS[k].accepts_value(text)
    }


def _fio_element_faults(workload: FileTable, _: StudyTables) -> Iterator[ElementFault]:
    """What fio would not do."""
    written = _valid_fio_options(workload)
    for side in written.get("bssplit", "0/100").split(","):
        percent = bssplit_percent_total(side)
        if not 0 < percent <= WHOLE_PERCENT:
            message = f"fio option bssplit, whose shares come to {percent} % in {quote_value(side)}"
            yield ElementFault(("fio", "bssplit"), message, "Give shares of 1 to 100 %.")
    for name in written:
        ioengines = FIO_OPTIONS[name].ioengines
        if ioengines and workload.ioengine not in ioengines:
            message = f"fio option {name} and ioengine = {quote_value(workload.ioengine)}"
            yield ElementFault(("fio", name), message, f"It belongs to {list_text(ioengines)}.")
    if workload.verify:
        hint = "Leave it out, or write engine = 'native'."
        yield ElementFault(("verify",), "verify, which fio is not asked to do", hint)
    if workload.rw.has_trims and max(workload.iodepth) > 1:
        message = (
            f"rw = {quote_value(workload.rw.value)} and iodepth = {max(workload.iodepth)}, but fio "
        )
        message += "trims one at a time"
        hint = "Write iodepth = 1 and raise numjobs, or write engine = 'native'."
        yield ElementFault(("iodepth",), message, hint)
    yield from _fio_rate_element_faults(workload)


def _fio_rate_element_faults(workload: FileTable) -> Iterator[ElementFault]:
    """Of fio, which reckons with the smallest block, or in bytes, where I/Os are meant."""
    poisson = workload.arrivals is IoArrivals.POISSON
    poisson = poisson or workload.fio.get("rate_process") == "poisson"
    counted = workload.rate_iops is not None or workload.fleet_rate_iops is not None
    if "bssplit" in workload.fio and (counted or (poisson and workload.rate is not None)):
        key = next(key for key in FileTable.rate_keys if getattr(workload, key) is not None)
        message = f"{key} and fio option bssplit, whose rate fio reckons from the smallest block"
        hint = "Write rate without Poisson arrivals, or engine = 'native'."
        yield ElementFault(("fio", "bssplit"), message, hint)
    elif workload.rate is not None and workload.rw.is_mixed:
        if "," in program_option_text(workload.fio.get("bssplit", "")):
            message = "rate and fio option bssplit with blocks of their own for reads and writes, "
            message += "of which fio would mix bytes where rwmixread means I/Os"
            hint = "Write the same blocks for both, or leave rate out."
            yield ElementFault(("fio", "bssplit"), message, hint)
        elif poisson:
            yield from _slow_poisson_rate_faults(workload, workload.rate)


def _slow_poisson_rate_faults(
    workload: FileTable, rates: Sequence[int | str]
) -> Iterator[ElementFault]:
    """Of Poisson arrivals fio divides by the whole I/Os of each direction in a second."""
    mixes = workload.rwmixread or [DEFAULT_READ_PERCENT]
    both = [(mix, "reads") for mix in mixes] + [(WHOLE_PERCENT - mix, "writes") for mix in mixes]
    percent, way = min(share for share in both if share[0])
    slow, block = min(rates, key=parse_size), max(map(parse_size, workload.bs))
    # Less than a block a second of both together is told of where rates are looked at.
    if block <= parse_size(slow) < block * WHOLE_PERCENT / percent:
        message = (
            f"Poisson arrivals at rate = {quote_value(slow)}, of which fio "
            f"makes {percent} % {way}: "
        )
        message += f"less than one block of {format_bytes(block)} a second"
        least = math.ceil(block * WHOLE_PERCENT / percent)
        hint = f"Give at least {least} bytes a second, smaller blocks, or engine = 'native'."
        yield ElementFault(("rate",), message, hint)


def _native_engine_element_faults(
    workload: FileTable, tables: StudyTables
) -> Iterator[ElementFault]:
    """What the native engine cannot do."""
    if workload.ioengine not in METHODS:
        message = (
            f"ioengine = {quote_value(workload.ioengine)}, which the native engine has nothing like"
        )
        hint = "Leave it out, and the engine takes the best it finds; or write engine = 'fio'."
        yield ElementFault(("ioengine",), message, hint)
    for name, text in _valid_fio_options(workload).items():
        if not is_option_supported_natively(name, text):
            value = f" = {quote_value(workload.fio[name])}" if name in NATIVE_OPTIONS else ""
            message = f"fio option {name}{value}, which the native engine cannot do"
            yield ElementFault(("fio", name), message, "Leave it out, or write engine = 'fio'.")
    yield from _conflicting_option_element_faults(workload)
    if workload.verify:
        yield from _verify_element_faults(
            workload, is_target_filled_first=tables.precondition.fill > 0
        )
        yield from _verify_ledger_element_faults(tables, workload)


_PROBLEMS_BY_ENGINE: Final[
    Mapping[EngineName, Callable[[FileTable, StudyTables], Iterator[ElementFault]]]
] = {
    FIO_ENGINE: _fio_element_faults,
    NATIVE_ENGINE: _native_engine_element_faults,
}


def _fio_option_texts_native_engine_supports(workload: FileTable) -> dict[str, str]:
    """Those of them that it can do."""
    return {
        name: text
        for name, text in _valid_fio_options(workload).items()
        if is_option_supported_natively(name, text)
    }


def _conflicting_option_element_faults(workload: FileTable) -> Iterator[ElementFault]:
    """Keys that each engine knows, and that mean another load together, or that only fio takes."""
    options = _fio_option_texts_native_engine_supports(workload)
    yield from _thinktime_element_faults(workload, options)
    yield from _offset_element_faults(workload, options)
    yield from _polling_element_faults(workload, options)
    for name in ("buffer_compress_percentage", "dedupe_percentage"):
        if workload.contents is WrittenContents.ZEROS and int(options.get(name, "0")):
            message = f"fio option {name} and contents = 'zeros'"
            yield ElementFault(
                ("fio", name), message, "Zeros are all alike: leave one of them out."
            )


def _thinktime_element_faults(
    workload: FileTable, engine_options: Mapping[str, str]
) -> Iterator[ElementFault]:
    key, depth = ("fio", "thinktime"), max(workload.iodepth)
    if not parse_microseconds(engine_options.get("thinktime", "0")):
        return
    if workload.arrivals is not None or engine_options.get("rate_process") == "poisson":
        hint = "Leave one of them out: what arrives does not think."
        yield ElementFault(key, "both arrivals and fio option thinktime", hint)
    if depth > 1:
        message = f"fio option thinktime and iodepth = {depth}, all of which fio waits for first"
        yield ElementFault(key, message, f"Write iodepth = 1, or {_USE_FIO}.")


def _offset_element_faults(
    workload: FileTable, engine_options: Mapping[str, str]
) -> Iterator[ElementFault]:
    split = engine_options.get("bssplit")
    zoned = engine_options.get("random_distribution", "").startswith("zoned")
    if workload.rw.is_random and engine_options.get("norandommap") != "1":
        for name, is_there in (("bssplit", bool(split)), ("random_distribution", zoned)):
            if is_there:
                message = f"fio option {name} without norandommap, by which fio goes elsewhere"
                hint = f"Add norandommap = true, which both engines do alike, or {_USE_FIO}."
                yield ElementFault(("fio", name), message, hint)
    if split:
        largest = max(size for size, _ in bssplit_block_bytes_and_percents(split))
        if largest > min(map(parse_size, workload.filesize)):
            message = f"fio option bssplit with blocks of {format_bytes(largest)}, more than a file"
            yield ElementFault(
                ("fio", "bssplit"), message, "Raise filesize, or leave those blocks out."
            )


def _polling_element_faults(
    workload: FileTable, engine_options: Mapping[str, str]
) -> Iterator[ElementFault]:
    for name in ("hipri", "sqthread_poll"):
        if engine_options.get(name) != "1":
            continue
        if "ioengine" in workload.model_fields_set and workload.ioengine != "io_uring":
            message = f"fio option {name} and ioengine = {quote_value(workload.ioengine)}"
            yield ElementFault(
                ("fio", name), message, "Only io_uring polls: leave one of them out."
            )
    if engine_options.get("hipri") == "1":
        if not workload.direct:
            hint = "The page cache is not polled: leave one of them out."
            yield ElementFault(("fio", "hipri"), "fio option hipri and direct = false", hint)
        if workload.rw.has_trims:
            hint = "Trims are plain calls: leave it out."
            yield ElementFault(
                ("fio", "hipri"),
                f"fio option hipri and rw = {quote_value(workload.rw.value)}",
                hint,
            )
        if workload.rw.has_writes and int(engine_options.get("fsync", "0")):
            hint = "A polled ring does not flush: leave one of them out."
            yield ElementFault(("fio", "hipri"), "fio options hipri and fsync", hint)


def _verify_element_faults(
    workload: FileTable, *, is_target_filled_first: bool
) -> Iterator[ElementFault]:
    """What cannot be verified: blocks without a stamp of their own, or with several."""
    options = _fio_option_texts_native_engine_supports(workload)
    hint = "Leave one of them out."
    if workload.rw.has_trims:
        yield ElementFault(
            ("verify",),
            f"verify and rw = {quote_value(workload.rw.value)}, which leaves no stamps",
            hint,
        )
    if workload.contents is WrittenContents.ZEROS:
        yield ElementFault(("verify",), "verify and contents = 'zeros', which bear no stamps", hint)
    if int(options.get("dedupe_percentage", "0")):
        yield ElementFault(
            ("verify",), "verify and fio option dedupe_percentage, whose copies are alike", hint
        )
    if "bssplit" in options:
        yield ElementFault(("verify",), "verify and fio option bssplit, whose blocks overlap", hint)
    most = FILLED_BYTES if is_target_filled_first else LAID_OUT_BYTES
    for size in map(parse_size, workload.bs):
        if size > most or size & (size - 1):
            message = f"verify and bs = {format_bytes(size)}, which would hold parts of two writes"
            yield ElementFault(
                ("verify",), message, f"Give a power of two up to {format_bytes(most)}."
            )


def _verify_ledger_element_faults(
    tables: StudyTables, workload: FileTable
) -> Iterator[ElementFault]:
    """Of what blocks nobody could know what they must hold."""
    if tables.makes_hosts:
        message = "verify, and the disks of booted guests are laid out without stamps"
        yield ElementFault(("verify",), message, "Leave it out.")
    files = max(workload.numjobs) * workload.files
    if files > LEDGER_FILES_MAX:
        message = f"verify and {files} files on a host, where a ledger takes {LEDGER_FILES_MAX}"
        yield ElementFault(("verify",), message, "Use fewer files or numjobs.")
    least = min(map(parse_size, workload.bs))
    blocks = files * max(map(parse_size, workload.filesize)) // least
    if blocks > LEDGER_BLOCKS_MAX:
        message = f"verify and {blocks} blocks on a host, where a ledger takes {LEDGER_BLOCKS_MAX}"
        yield ElementFault(
            ("verify",), message, "Raise bs, or use less filesize, files or numjobs."
        )


def add_neighbour_verify_faults(document: StudyDocument, study: Study) -> None:
    """Add a fault where a load writes the blocks of a device that the other one verifies.

    On a file system each has files of its own.
    """
    events = study.scenario.events if study.scenario is not None else ()
    for index, event in enumerate(events):
        if not event.neighbour or study.scenario is None:
            continue
        neighbour = study.scenario.neighbour_workload(event.neighbour)
        for measured in study.workloads:
            serials = _serials_of_devices_shared_with_load(study, event)
            for verifying, writing in ((measured, neighbour), (neighbour, measured)):
                if not (serials and verifying.job.verify and writing.job.changes_data):
                    continue
                message = (
                    f"Event {quote_value(event.id)} begins load {quote_value(neighbour.id)} on the "
                    f"device with serial {quote_value(serials[0])} beside "
                    f"{quote_value(measured.id)}: {quote_value(writing.id)} writes the blocks that "
                    f"{quote_value(verifying.id)} verifies."
                )
                hint = f"Leave verify of {quote_value(verifying.id)} out, have the other only read "
                hint += "(rw), or use a directory, where each load has files of its own."
                document.add_fault(("event", index, "workload"), message, hint)


def _serials_of_devices_shared_with_load(study: Study, event: EventPlan) -> list[str]:
    """The devices on which an event's load and the measured one both work."""
    serials = []
    for configuration in study.configurations:
        own, others = (
            {target_serial(configuration, study.host(name)) for name in names} - {None}
            for names in (
                neighbour_host_names(study, configuration.id, event),
                load_host_names(study, configuration.id, 0),
            )
        )
        serials += sorted(serial for serial in own & others if serial)
    return serials


def _rate_and_arrival_element_faults(workload: FileTable) -> Iterator[ElementFault]:
    """Rates and arrivals among themselves."""
    written = [key for key in FileTable.rate_keys if getattr(workload, key) is not None]
    if len(written) > 1:
        yield ElementFault((written[1],), list_text(written), "Leave all but one of them out.")
    if workload.rate:
        # Less than a block a second is no rate: fio divides by whole I/Os a second.
        slow, most = min(workload.rate, key=parse_size), max(map(parse_size, workload.bs))
        if parse_size(slow) < most:
            has = (
                f"rate = {quote_value(slow)}, less than one block of {format_bytes(most)} a second"
            )
            hint = f"Give at least {format_bytes(most)}, or smaller blocks."
            yield ElementFault(("rate",), has, hint)
    if workload.arrivals is None:
        return
    if not written and workload.objective is not Objective.MAX_LOAD:
        hint = "Write rate_iops, the I/Os that arrive at a job in a second, or rate in bytes, or "
        hint += "fleet_rate_iops; or leave arrivals out."
        yield ElementFault(("arrivals",), "arrivals but no rate_iops", hint)
    option = "rate_process"
    if option in workload.fio:
        hint = "Leave one of them out: arrivals sets the option."
        yield ElementFault(("fio", option), f"both arrivals and fio option {option}", hint)


def add_fleet_rate_faults(document: StudyDocument, study: Study) -> None:
    """Add the faults of rates of the fleet that its jobs cannot share in whole I/Os a second."""
    places = {workload.id: index for index, workload in enumerate(study.workloads)}
    shares: dict[tuple[str, int], set[int]] = {}
    if not any(getattr(workload.job, "fleet_rate_iops", None) for workload in study.workloads):
        return
    for point in expand_points(study):
        fleet_rate = getattr(point.job, "fleet_rate_iops", None)
        if fleet_rate is not None:
            jobs = sum(
                Job.require_type(point.job_on_host(host)).numjobs
                for host in load_host_names_of_point(study, point)
            )
            shares.setdefault((point.workload, fleet_rate), set()).add(jobs)
    for (workload, fleet_rate), counts in shares.items():
        message = _why_rate_is_unshareable_text(fleet_rate, counts)
        if message:
            where = ("workload", places[workload])
            message = (
                f"fleet_rate_iops of {table_name(document, where)} is {fleet_rate}, {message}."
            )
            path = (*where, "fleet_rate_iops")
            document.add_fault(
                path,
                message,
                f"Give {_nearest_shareable_rates_text(fleet_rate, counts)}.",
                about=f"share {fleet_rate}",
            )


def _why_rate_is_unshareable_text(fleet_rate_iops: int, job_counts: Iterable[int]) -> str:
    """Why so many jobs cannot share it: not in whole I/Os a second, or more than one may have."""
    odd = sorted(jobs for jobs in job_counts if fleet_rate_iops % max(jobs, 1))
    if odd:
        return f"which {odd[0]} jobs of all hosts cannot share in whole I/Os a second"
    share = fleet_rate_iops // max(min(job_counts), 1)
    return f"{share} for each job, which may have {RATE_MAX}" if share > RATE_MAX else ""


def _nearest_shareable_rates_text(fleet_rate_iops: int, job_counts: Iterable[int]) -> str:
    """The nearest rates that all of those numbers of jobs can share."""
    unit, most = math.lcm(*job_counts), min(FLEET_RATE_MAX, RATE_MAX * min(job_counts))
    below = min(fleet_rate_iops, most) // unit * unit
    near = [str(rate) for rate in (below, below + unit) if 0 < rate <= most]
    return " or ".join(near) or "rate_iops, the rate of each job, instead"
