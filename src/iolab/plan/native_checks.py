"""Checks of workloads of I/O by their engine: what each of the two alone can do."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from iolab.model.engine import EngineName
from iolab.model.fio_options import FIO_OPTIONS, option_text, value_fits
from iolab.model.native_options import (
    METHODS,
    NATIVE_OPTIONS,
    WHOLE,
    is_native,
    microseconds,
    shares_of,
)
from iolab.model.workload import Arrivals, Contents
from iolab.plan.build import DEFAULT_READ_PERCENT
from iolab.plan.document import Document, Faults
from iolab.plan.guest_members import boots_guests
from iolab.plan.study_file import RATES, WorkloadTable
from iolab.plan.tables import Item, Tables, place, start
from iolab.plan.wording import shown
from iolab.units import format_bytes, parse_size

LAID_OUT_BYTES: Final = 1 << 20
FILLED_BYTES: Final = 128 << 10
"""What is written at once by layouts and fills: a block that holds parts of two is no block of one
write, so whoever verifies it would call it torn."""

LEDGER_BLOCKS_MAX: Final = 1 << 28
LEDGER_FILES_MAX: Final = 1 << 16
"""What the ledger of a verified data set holds on each host: 2 GiB of its memory."""

_USE_FIO: Final = "write engine = 'fio'"


def check_native(document: Document, tables: Tables, faults: Faults) -> None:
    """Add every fault of a workload that its engine cannot do as it is written."""
    for item, workload in tables.read("workload", WorkloadTable):
        if workload.engine is EngineName.NATIVE:
            _check_method(document, item, workload, faults)
            _check_options(document, item, workload, faults)
            filled = tables.precondition.fill > 0
            told = (*_apart(workload), *_unverifiable(workload, filled=filled))
            if workload.verify:
                told = (*told, *_unknowable(tables, workload))
        else:
            told = tuple(_by_fio(workload))
        for key, says, do in told:
            happened = f"{start(document, item.path)} has {says}."
            origin = document.where((*item.path, *key))
            faults.add_once(origin, says, happened, do)


def _check_method(document: Document, item: Item, workload: WorkloadTable, faults: Faults) -> None:
    if workload.ioengine in METHODS:
        return
    happened = (
        f"{start(document, item.path)} has ioengine = {shown(workload.ioengine)}, which the native "
        "engine has nothing like."
    )
    do = "Leave it out, and the engine takes the best it finds; or write engine = 'fio'."
    faults.add_once(document.where((*item.path, "ioengine")), "ioengine", happened, do)


def _check_options(document: Document, item: Item, workload: WorkloadTable, faults: Faults) -> None:
    for name, value in workload.fio.items():
        text = option_text(value)
        # What fio itself would not take is told where its options are looked at.
        if name not in FIO_OPTIONS or not value_fits(name, text) or is_native(name, text):
            continue
        what = f"fio option {name}"
        if name in NATIVE_OPTIONS:
            what += f" = {shown(value)}"
        happened = f"The native engine of {place(document, item.path)} cannot do {what}."
        do = "Leave it out, or write engine = 'fio'."
        faults.add_once(document.where((*item.path, "fio", name)), f"{name} native", happened, do)


_Told = Iterator[tuple[tuple[str, ...], str, str]]
"""The key at fault, what the workload has, and what to do."""


def _by_fio(workload: WorkloadTable) -> _Told:
    """What fio would not do."""
    if workload.verify:
        do = "Leave it out, or write engine = 'native'."
        yield ("verify",), "verify, which fio is not asked to do", do
    if workload.rw.trims and max(workload.iodepth) > 1:
        says = f"rw = {shown(workload.rw.value)} and iodepth = {max(workload.iodepth)}, but fio "
        says += "trims one at a time"
        do = "Write iodepth = 1 and raise numjobs, or write engine = 'native'."
        yield ("iodepth",), says, do
    yield from _fio_rates(workload)


def _fio_rates(workload: WorkloadTable) -> _Told:
    """Of fio, which reckons with the smallest block, or in bytes, where I/Os are meant."""
    poisson = workload.arrivals is Arrivals.POISSON
    poisson = poisson or workload.fio.get("rate_process") == "poisson"
    counted = workload.rate_iops is not None or workload.fleet_rate_iops is not None
    if "bssplit" in workload.fio and (counted or (poisson and workload.rate is not None)):
        key = next(key for key in RATES if getattr(workload, key) is not None)
        says = f"{key} and fio option bssplit, whose rate fio reckons from the smallest block"
        do = "Write rate without Poisson arrivals, or engine = 'native'."
        yield ("fio", "bssplit"), says, do
    elif workload.rate is not None and workload.rw.mixed:
        if "," in option_text(workload.fio.get("bssplit", "")):
            says = "rate and fio option bssplit with blocks of their own for reads and writes, "
            says += "of which fio would mix bytes where rwmixread means I/Os"
            do = "Write the same blocks for both, or leave rate out."
            yield ("fio", "bssplit"), says, do
        elif poisson:
            yield from _rare(workload, workload.rate)


def _rare(workload: WorkloadTable, rates: Sequence[int | str]) -> _Told:
    """Of Poisson arrivals fio divides by the whole I/Os of each direction in a second."""
    mixes = workload.rwmixread or [DEFAULT_READ_PERCENT]
    both = [(mix, "reads") for mix in mixes] + [(WHOLE - mix, "writes") for mix in mixes]
    percent, way = min(one for one in both if one[0])
    slow, block = min(rates, key=parse_size), max(map(parse_size, workload.bs))
    # Less than a block a second of both together is told of where rates are looked at.
    if block <= parse_size(slow) < block * WHOLE / percent:
        says = f"Poisson arrivals at rate = {shown(slow)}, of which fio makes {percent} % {way}: "
        says += f"less than one block of {format_bytes(block)} a second"
        least = math.ceil(block * WHOLE / percent)
        do = f"Give at least {least} bytes a second, smaller blocks, or engine = 'native'."
        yield ("rate",), says, do


def _options(workload: WorkloadTable) -> dict[str, str]:
    """What is written, but for values that are told of where options are looked at."""
    texts = {name: option_text(value) for name, value in workload.fio.items()}
    return {name: text for name, text in texts.items() if is_native(name, text)}


def _apart(workload: WorkloadTable) -> _Told:
    """Keys that each engine knows, and that mean another load together, or that only fio takes."""
    options = _options(workload)
    yield from _thinking(workload, options)
    yield from _drawing(workload, options)
    yield from _polling(workload, options)
    for name in ("buffer_compress_percentage", "dedupe_percentage"):
        if workload.contents is Contents.ZEROS and int(options.get(name, "0")):
            says = f"fio option {name} and contents = 'zeros'"
            yield ("fio", name), says, "Zeros are all alike: leave one of them out."


def _thinking(workload: WorkloadTable, options: Mapping[str, str]) -> _Told:
    key, depth = ("fio", "thinktime"), max(workload.iodepth)
    if not microseconds(options.get("thinktime", "0")):
        return
    if workload.arrivals is not None or options.get("rate_process") == "poisson":
        do = "Leave one of them out: what arrives does not think."
        yield key, "both arrivals and fio option thinktime", do
    if depth > 1:
        says = f"fio option thinktime and iodepth = {depth}, all of which fio waits for first"
        yield key, says, f"Write iodepth = 1, or {_USE_FIO}."


def _drawing(workload: WorkloadTable, options: Mapping[str, str]) -> _Told:
    split = options.get("bssplit")
    zoned = options.get("random_distribution", "").startswith("zoned")
    if workload.rw.random and options.get("norandommap") != "1":
        for name, is_there in (("bssplit", bool(split)), ("random_distribution", zoned)):
            if is_there:
                says = f"fio option {name} without norandommap, by which fio goes elsewhere"
                do = f"Add norandommap = true, which both engines do alike, or {_USE_FIO}."
                yield ("fio", name), says, do
    if split:
        largest = max(size for size, _ in shares_of(split))
        if largest > min(map(parse_size, workload.filesize)):
            says = f"fio option bssplit with blocks of {format_bytes(largest)}, more than a file"
            yield ("fio", "bssplit"), says, "Raise filesize, or leave those blocks out."


def _polling(workload: WorkloadTable, options: Mapping[str, str]) -> _Told:
    for name in ("hipri", "sqthread_poll"):
        if options.get(name) != "1":
            continue
        if "ioengine" in workload.model_fields_set and workload.ioengine != "io_uring":
            says = f"fio option {name} and ioengine = {shown(workload.ioengine)}"
            yield ("fio", name), says, "Only io_uring polls: leave one of them out."
    if options.get("hipri") == "1":
        if not workload.direct:
            do = "The page cache is not polled: leave one of them out."
            yield ("fio", "hipri"), "fio option hipri and direct = false", do
        if workload.rw.trims:
            do = "Trims are plain calls: leave it out."
            yield ("fio", "hipri"), f"fio option hipri and rw = {shown(workload.rw.value)}", do
        if workload.rw.writes and int(options.get("fsync", "0")):
            do = "A polled ring does not flush: leave one of them out."
            yield ("fio", "hipri"), "fio options hipri and fsync", do


def _unverifiable(workload: WorkloadTable, *, filled: bool) -> _Told:
    """What cannot be verified: blocks without a stamp of their own, or with several."""
    if not workload.verify:
        return
    options = _options(workload)
    do = "Leave one of them out."
    if workload.rw.trims:
        yield ("verify",), f"verify and rw = {shown(workload.rw.value)}, which leaves no stamps", do
    if workload.contents is Contents.ZEROS:
        yield ("verify",), "verify and contents = 'zeros', which bear no stamps", do
    if int(options.get("dedupe_percentage", "0")):
        yield ("verify",), "verify and fio option dedupe_percentage, whose copies are alike", do
    if "bssplit" in options:
        yield ("verify",), "verify and fio option bssplit, whose blocks overlap", do
    most = FILLED_BYTES if filled else LAID_OUT_BYTES
    for size in map(parse_size, workload.bs):
        if size > most or size & (size - 1):
            says = f"verify and bs = {format_bytes(size)}, which would hold parts of two writes"
            yield ("verify",), says, f"Give a power of two up to {format_bytes(most)}."


def _unknowable(tables: Tables, workload: WorkloadTable) -> _Told:
    """Of what blocks nobody could know what they must hold."""
    if boots_guests(tables):
        says = "verify, and the disks of booted guests are laid out without stamps"
        yield ("verify",), says, "Leave it out."
    files = max(workload.numjobs) * workload.files
    if files > LEDGER_FILES_MAX:
        says = f"verify and {files} files on a host, where a ledger takes {LEDGER_FILES_MAX}"
        yield ("verify",), says, "Use fewer files or numjobs."
    least = min(map(parse_size, workload.bs))
    blocks = files * max(map(parse_size, workload.filesize)) // least
    if blocks > LEDGER_BLOCKS_MAX:
        says = f"verify and {blocks} blocks on a host, where a ledger takes {LEDGER_BLOCKS_MAX}"
        yield ("verify",), says, "Raise bs, or use less filesize, files or numjobs."
