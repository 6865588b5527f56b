"""Results of diskspd: every time span of its XML is a run; faults met on the way are kept."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from decimal import Decimal, InvalidOperation
from typing import Final
from xml.etree import ElementTree as ET

from iolab.core.limits import SETTING_CHARACTERS_MAX
from iolab.errors import Fault
from iolab.importers.files import (
    NAME_CHARACTERS,
    SENTENCE_CHARACTERS,
    ForeignFile,
    ForeignFileError,
    ImportFileSet,
    parse_time_as_utc_ns,
)
from iolab.importers.foreign_run import (
    ForeignRun,
    ImportedClient,
    ImportedClientDetails,
    ImportedRunDetails,
    OperationFigures,
    indicator_for_block_size,
    is_limited_by_target_rate,
)
from iolab.record import Record
from iolab.text import excerpt
from iolab.units import NS_PER_MS, NS_PER_S, NS_PER_US

PERCENT: Final = 100
MS_PER_S: Final = 1000

WORDS_LIMIT: Final = 300
"""Characters kept of anything that diskspd says; a path of Windows has 260."""

FAULTS_LIMIT: Final = 50
"""Faults kept: a document that is wrong throughout is wrong in the same way."""

COUNT_DIGITS_LIMIT: Final = 20
"""Digits of the largest number of 64 bits."""


_IGNORED: Final = {
    "RandSeed": "a seed",
    "IoBucketDuration": "how often a rate is printed",
    "MeasureLatency": "whether latencies are printed",
    "CalculateIopsStdDev": "whether a deviation is printed",
}
_SHOWN: Final = ("BlockSize", "WriteRatio", "RequestCount")
"""Elements whose words stand in settings of a name that is easier to read."""

_DATE: Final = "%Y/%m/%d %H:%M:%S UTC"

OUTPUT_CHARACTERS_MAX: Final = 32 << 20
"""What is read of an output: with `-D` a day of one target is 28 MB, and no run is that long."""

TAGS_LIMIT: Final = 1_000_000
"""Marks of the document's elements; 32 MiB of empty ones would be a gigabyte in memory."""

MESSAGE_LINES_LIMIT: Final = 8
"""Lines beside the document that are kept: one thread after the other says the same."""

_LISTS: Final = ("Targets", "Target")
"""Elements that all options of the only target stand in."""

_COUNTS: Final = ("ReadCount", "ReadBytes", "WriteCount", "WriteBytes")
"""What each thread did with each target."""


class DiskspdImporter:
    """Every time span of diskspd's XML."""

    tool: Final = "diskspd"

    def recognises(self, file: ForeignFile) -> bool:
        """By its first element."""
        return b"<Results>" in file.first_bytes and b"<Tool>" in file.first_bytes

    def read(self, file: ForeignFile, file_set: ImportFileSet) -> Sequence[ForeignRun]:
        """The spans. ForeignFileError where there is no whole document."""
        del file_set
        output = parse_diskspd_xml(file.text)
        if not output.spans:
            if output.faults:
                first = output.faults[0]
                raise ForeignFileError(excerpt(first.message, SENTENCE_CHARACTERS), first.hint)
            raise ForeignFileError("there is no time span.")
        file.line_coverage.mark_all_read()
        return [_foreign_run_of_span(file, output, span) for span in output.spans]


def _foreign_run_of_span(
    file: ForeignFile, output: DiskspdOutput, span: DiskspdTimeSpan
) -> ForeignRun:
    targets = span.settings.targets
    target = targets[0] if targets else None
    flight = None
    if targets and all(target.queue_depth for target in targets):
        flight = sum(
            (target.queue_depth or 0) * (target.own_thread_count or span.thread_count)
            for target in targets
        )
    block = target.block_bytes if target else None
    pattern = "" if target is None else "random" if target.is_random else "sequential"
    settings = {
        "block": block,
        "writes %": target.write_percent if target else None,
        "threads": span.thread_count,
        "outstanding": target.queue_depth if target else None,
        "pattern": pattern,
    }
    options = span.settings.options
    caches = [value for name, value in options if name.endswith("DisableOSCache")]
    details = ImportedRunDetails(
        tool="diskspd",
        version=excerpt(output.version, NAME_CHARACTERS),
        files=(file.name,),
        # Newer versions tell only that it is off: a target without a word has it, then.
        buffered="false" in caches or len(caches) < len(targets) if caches else None,
        paced=span.is_limited_by_rate,
        ramp_s=span.settings.warmup_s or None,
        requested_runtime_s=span.settings.duration_s or None,
    )
    host = ImportedClientDetails(
        f"{file.name}: span {span.span_number}",
        tuple(figure for figure in span.figures if figure.count or figure.bytes)
        or (OperationFigures("read", count=0),),
        errors=tuple(excerpt(fault.message, NAME_CHARACTERS) for fault in output.faults),
        latency_step_ns=NS_PER_US,
    )
    client = excerpt(output.computer, NAME_CHARACTERS) or "client"
    return ForeignRun(
        name=" ".join(filter(None, ("diskspd", pattern, _read_write_or_mixed_word(target)))),
        details=details,
        clients=(ImportedClient(client, host, runtime_s=span.seconds),),
        settings=(
            *(
                (name, excerpt(str(value), NAME_CHARACTERS))
                for name, value in settings.items()
                if value
            ),
            *(
                (excerpt(name, NAME_CHARACTERS), excerpt(value, SETTING_CHARACTERS_MAX))
                for name, value in options
                if name not in _SHOWN
            ),
        ),
        ignored_setting_reasons=_IGNORED,
        in_flight=flight or None,
        ended_real_ns=span.end_ns,
        indicator=indicator_for_block_size(block),
    )


def _read_write_or_mixed_word(target: DiskspdTargetSettings | None) -> str:
    percent = None if target is None else target.write_percent
    return {None: "", 0: "read", PERCENT: "write"}.get(percent, "mixed")


def quoted_excerpt(text: str) -> str:
    """The words as an error shows them; the backslashes of a path stay single."""
    return f"'{_short_excerpt(text)}'"


def _short_excerpt(text: str) -> str:
    return excerpt(text, WORDS_LIMIT).rstrip(".")


def element_text_or_empty(element: ET.Element | None, path: str) -> str:
    """What the element below says; "" where there is none."""
    return excerpt(element.findtext(path) or "", WORDS_LIMIT) if element is not None else ""


class DiskspdFieldReader:
    """A document while it is read: what its elements say, and all that is wrong with them."""

    def __init__(self) -> None:
        self._faults: dict[Fault, None] = {}
        self.fault_count = 0

    @property
    def faults(self) -> tuple[Fault, ...]:
        """All faults so far, each once."""
        return tuple(self._faults)

    def add_fault(self, message: str, hint: str) -> None:
        """Something is wrong."""
        self.fault_count += 1
        if len(self._faults) < FAULTS_LIMIT:
            self._faults[Fault(message, hint)] = None

    def optional_count_or_add_fault(self, element: ET.Element, path: str) -> int | None:
        """A whole number of the element below, None where there is none."""
        text = element.findtext(path)
        if text is None:
            return None
        digits = text.strip()
        if digits.isascii() and digits.isdigit() and len(digits) <= COUNT_DIGITS_LIMIT:
            return int(digits)
        self._add_unreadable_fault(path, text)
        return None

    def optional_number_or_add_fault(self, element: ET.Element, path: str) -> float | None:
        """A number from 0 on of the element below, None where there is none."""
        text = element.findtext(path)
        if text is None:
            return None
        try:
            number = float(text)
        except ValueError:
            number = math.nan
        if math.isfinite(number) and number >= 0:
            return number
        self._add_unreadable_fault(path, text)
        return None

    def require_element_or_add_fault(self, element: ET.Element, path: str) -> None:
        """A fault where there is no such element below."""
        if element.find(path) is None:
            self.add_fault(
                f"diskspd does not tell {path} in a {_short_excerpt(element.tag)}.",
                "Keep all that diskspd prints.",
            )

    def required_count_or_add_fault(self, element: ET.Element, path: str) -> int | None:
        """A whole number that must be there; None, and a fault, where it is not."""
        self.require_element_or_add_fault(element, path)
        return self.optional_count_or_add_fault(element, path)

    def _add_unreadable_fault(self, name: str, text: str) -> None:
        self.add_fault(
            f"diskspd tells {name} as {quoted_excerpt(text)}.",
            "Keep what diskspd prints unchanged.",
        )


class DiskspdTargetSettings(Record):
    """A target as the profile wants it; None for what it does not say.

    `queue_depth` are requests in flight of each thread; `own_thread_count` are those of this target
    alone, 0 where all targets share the span's. `is_random` of a target that is read in part in
    order, too. `rate_per_thread_per_s` is the most that each thread may do, in bytes or in I/Os.
    """

    path: str
    block_bytes: int | None
    write_percent: int | None
    queue_depth: int | None
    own_thread_count: int | None
    is_random: bool
    rate_per_thread_per_s: int | None
    is_rate_in_iops: bool


class DiskspdSpanSettings(Record):
    """A time span as the profile wants it, in seconds.

    `options` are all that the profile has of it, by the path of the element.
    """

    duration_s: int | None = None
    warmup_s: int | None = None
    targets: tuple[DiskspdTargetSettings, ...] = ()
    options: tuple[tuple[str, str], ...] = ()


class DiskspdTimeSpan(Record):
    """A time span as it went: `seconds` is the time taken, in hundredths, warm-up left out.

    `figures` are of reads and of writes; without `-L` they have no latencies.
    """

    span_number: int
    settings: DiskspdSpanSettings
    seconds: float
    thread_count: int
    figures: tuple[OperationFigures, OperationFigures]
    is_limited_by_rate: bool
    end_ns: int | None


class DiskspdOutput(Record):
    """All that an output tells. With any of the `faults` it is no measurement.

    A span that could not be read whole is left out of `spans` and named among the faults.
    `messages` are its lines beside the document.
    """

    version: str
    computer: str
    spans: tuple[DiskspdTimeSpan, ...]
    messages: tuple[str, ...]
    faults: tuple[Fault, ...]


def parse_diskspd_xml(text: str) -> DiskspdOutput:
    """Read the standard output of `diskspd -Rxml`, with or without its errors beside it.

    Raises ForeignFileError where there is no whole document, or none that diskspd could print.
    """
    if len(text) > OUTPUT_CHARACTERS_MAX:
        raise ForeignFileError(
            f"diskspd printed {len(text)} characters, more than the {OUTPUT_CHARACTERS_MAX} that "
            "are read.",
            "Run it for a shorter time, or without -D.",
        )
    document, messages = _split_document_and_messages(text)
    root = _parse_xml(document)
    reader = DiskspdFieldReader()
    system = root.find("System")
    spans = tuple(_measured_spans_or_add_faults(root, messages, reader))
    return DiskspdOutput(
        version=element_text_or_empty(system, "Tool/Version"),
        computer=element_text_or_empty(system, "ComputerName"),
        spans=spans,
        messages=messages,
        faults=reader.faults,
    )


def _leaf_paths_and_texts(element: ET.Element, path: str) -> Iterator[tuple[str, str]]:
    """The words of every element below that has some, and those that are there without any."""
    counts: dict[str, int] = {}
    for child in element:
        counts[child.tag] = counts.get(child.tag, 0) + 1
        number = f" {counts[child.tag]}" if counts[child.tag] > 1 else ""
        name = f"{path}{child.tag}{number}"
        if len(child):
            yield from _leaf_paths_and_texts(child, "" if name.endswith(_LISTS) else f"{name}.")
        else:
            yield name, excerpt(child.text or "", WORDS_LIMIT) or "yes"


def _split_document_and_messages(text: str) -> tuple[str, tuple[str, ...]]:
    """The one document in the text, and what is said around it."""
    begin, last = text.find("<Results>"), text.rfind("</Results>")
    if begin < 0:
        messages = _nonempty_lines_of_message(text)
        message = "The output holds no results of diskspd."
        if messages:
            message = f"The output holds no results of diskspd, but: {quoted_excerpt(messages[0])}."
        raise ForeignFileError(message, "Run diskspd with -Rxml and keep all that it prints.")
    if last < begin or "<Results>" in text[begin + 1 :]:
        message = "holds several results" if last > begin else "breaks off within its results"
        raise ForeignFileError(
            f"The output of diskspd {message}.", "Keep all that one run prints, each by itself."
        )
    end = last + len("</Results>")
    return text[begin:end], _nonempty_lines_of_message(text[:begin] + "\n" + text[end:])


def _nonempty_lines_of_message(text: str) -> tuple[str, ...]:
    lines = (excerpt(line, WORDS_LIMIT) for line in text.splitlines())
    return tuple(line for line in lines if line)[:MESSAGE_LINES_LIMIT]


def _parse_xml(document: str) -> ET.Element:
    """The document's elements. diskspd declares nothing: no type, no entity, no comment."""
    strange = next((mark for mark in ("<!", "<?") if mark in document), None)
    if strange or document.count("<") > TAGS_LIMIT:
        content = f"{strange!r}" if strange else f"more than {TAGS_LIMIT} tags"
        raise ForeignFileError(
            f"The results hold {content}, which diskspd does not print.",
            "Keep what diskspd prints as it is; results of unknown origin are not read.",
        )
    try:
        return ET.fromstring(document)  # noqa: S314 - without declarations nothing can expand
    except (ET.ParseError, ValueError) as error:
        raise ForeignFileError(
            f"The results of diskspd are no XML: {_short_excerpt(str(error))}.",
            "Keep them unchanged, and give targets paths without & and <: diskspd prints them raw.",
        ) from error


def _span_settings(span: ET.Element, reader: DiskspdFieldReader) -> DiskspdSpanSettings:
    targets = tuple(
        DiskspdTargetSettings(
            path=element_text_or_empty(target, "Path"),
            block_bytes=reader.optional_count_or_add_fault(target, "BlockSize"),
            write_percent=reader.optional_count_or_add_fault(target, "WriteRatio"),
            queue_depth=reader.optional_count_or_add_fault(target, "RequestCount"),
            own_thread_count=reader.optional_count_or_add_fault(target, "ThreadsPerFile"),
            is_random=target.find("Random") is not None,
            rate_per_thread_per_s=_target_rate_per_thread_per_s(target, reader),
            is_rate_in_iops=_is_rate_in_iops(target),
        )
        for target in span.iterfind("Targets/Target")
    )
    return DiskspdSpanSettings(
        reader.optional_count_or_add_fault(span, "Duration"),
        reader.optional_count_or_add_fault(span, "Warmup"),
        targets,
        tuple(_leaf_paths_and_texts(span, "")),
    )


def _target_rate_per_thread_per_s(target: ET.Element, reader: DiskspdFieldReader) -> int | None:
    rate = reader.optional_count_or_add_fault(target, "Throughput")
    return rate * (1 if _is_rate_in_iops(target) else MS_PER_S) if rate else None


def _is_rate_in_iops(target: ET.Element) -> bool:
    """Without a unit it is of bytes in a millisecond."""
    rate = target.find("Throughput")
    return rate is not None and rate.get("unit", "").upper() == "IOPS"


def _measured_spans_or_add_faults(
    root: ET.Element, messages: tuple[str, ...], reader: DiskspdFieldReader
) -> Iterator[DiskspdTimeSpan]:
    requested = [_span_settings(s, reader) for s in root.iterfind("Profile/TimeSpans/TimeSpan")]
    elements = root.findall("TimeSpan")
    if len(elements) != len(requested) or not elements:
        reader.add_fault(
            f"diskspd reports {len(elements)} time spans, but its profile has {len(requested)}.",
            "Keep all that diskspd prints; a run that was ended early must be run again.",
        )
    # It tells when it began, and how long each span was to last.
    end_ns = parse_time_as_utc_ns(element_text_or_empty(root.find("System"), "RunTime"), _DATE)
    for index, span in enumerate(elements):
        settings = requested[index] if index < len(requested) else DiskspdSpanSettings()
        if end_ns is not None:
            end_ns += ((settings.warmup_s or 0) + (settings.duration_s or 0)) * NS_PER_S
        error = element_text_or_empty(span, "Error")
        if error:
            reader.add_fault(
                f"diskspd measured nothing in time span {index + 1}: {quoted_excerpt(error)}.",
                f"It said: {quoted_excerpt(messages[0])}."
                if messages
                else "Run it by hand to see why.",
            )
            continue
        before = reader.fault_count
        read = _measured_span_or_add_faults(span, index + 1, settings, end_ns, reader)
        if read is not None and reader.fault_count == before:
            yield read


def _measured_span_or_add_faults(
    span: ET.Element,
    span_number: int,
    settings: DiskspdSpanSettings,
    end_ns: int | None,
    reader: DiskspdFieldReader,
) -> DiskspdTimeSpan | None:
    reader.require_element_or_add_fault(span, "TestTimeSeconds")
    seconds = reader.optional_number_or_add_fault(span, "TestTimeSeconds")
    threads = reader.required_count_or_add_fault(span, "ThreadCount")
    moved = _target_io_counts_and_bytes_or_add_faults(span, span_number, reader)
    for path in dict.fromkeys(target.path for target in settings.targets):
        if path not in moved:
            reader.add_fault(
                f"diskspd tells nothing of target {quoted_excerpt(path)} in time span "
                f"{span_number}.",
                "See whether it could be opened; what is missing is not counted as nothing done.",
            )
    if not seconds or threads is None:
        if seconds == 0.0:
            reader.add_fault(
                f"diskspd took no time in time span {span_number}.",
                "Let it run for a second or more.",
            )
        return None
    thread_count = len(span.findall("Thread"))
    if thread_count != threads:
        reader.add_fault(
            f"diskspd had {threads} threads in time span {span_number} but reports {thread_count}.",
            "Keep all that diskspd prints.",
        )
    total: Counter[str] = sum(moved.values(), Counter())
    table = span.find("Latency")
    rows = {} if table is None else _latency_rows_by_percentile_or_add_faults(table, reader)
    return DiskspdTimeSpan(
        span_number=span_number,
        settings=settings,
        seconds=seconds,
        thread_count=threads,
        figures=(
            _direction_figures("Read", total, seconds, table, rows, reader),
            _direction_figures("Write", total, seconds, table, rows, reader),
        ),
        is_limited_by_rate=any(
            _is_limited_by_rate(target, moved.get(target.path, Counter()), seconds, threads)
            for target in settings.targets
        ),
        end_ns=end_ns,
    )


def _target_io_counts_and_bytes_or_add_faults(
    span: ET.Element, span_number: int, reader: DiskspdFieldReader
) -> dict[str, Counter[str]]:
    """What all threads did with each target while the time was taken."""
    moved: dict[str, Counter[str]] = {}
    for thread in span.iterfind("Thread"):
        identity = reader.required_count_or_add_fault(thread, "Id")
        targets = thread.findall("Target")
        if not targets:
            reader.add_fault(
                f"Thread {identity} of time span {span_number} has no target.",
                "See whether its target could be opened; a thread without one did no work.",
            )
        for target in targets:
            printed = {name: reader.required_count_or_add_fault(target, name) for name in _COUNTS}
            counts = Counter({name: count for name, count in printed.items() if count is not None})
            if len(counts) < len(_COUNTS):
                continue
            moved.setdefault(element_text_or_empty(target, "Path"), Counter()).update(counts)
            total = reader.required_count_or_add_fault(target, "BytesCount")
            if total is not None and total != counts["ReadBytes"] + counts["WriteBytes"]:
                reader.add_fault(
                    f"Thread {identity} of time span {span_number} moved {total} bytes, of "
                    f"which it read {counts['ReadBytes']} and wrote {counts['WriteBytes']}.",
                    "Keep what diskspd prints unchanged.",
                )
    return moved


def _is_limited_by_rate(
    target: DiskspdTargetSettings, counts_and_bytes: Counter[str], seconds: float, thread_count: int
) -> bool:
    """Whether the rate that each thread of a target may have is what it came to."""
    most = (
        None
        if target.rate_per_thread_per_s is None
        else target.rate_per_thread_per_s * (target.own_thread_count or thread_count)
    )
    unit = "Count" if target.is_rate_in_iops else "Bytes"
    return is_limited_by_target_rate(
        most, (counts_and_bytes[f"Read{unit}"] + counts_and_bytes[f"Write{unit}"]) / seconds
    )


def _latency_rows_by_percentile_or_add_faults(
    table: ET.Element, reader: DiskspdFieldReader
) -> dict[Decimal, ET.Element]:
    """The latencies of all threads and targets of a span together, each percentile once."""
    rows: dict[Decimal, ET.Element] = {}
    for bucket in table.iterfind("Bucket"):
        named = element_text_or_empty(bucket, "Percentile")
        try:
            percent = Decimal(named)
        except InvalidOperation:
            percent = Decimal("NaN")
        if percent.is_nan() or not 0 <= percent <= PERCENT or percent in rows:
            reader.add_fault(
                f"The table of latencies has a row for percentile {quoted_excerpt(named)}.",
                "Keep what diskspd prints unchanged: every percentile has one row.",
            )
            continue
        rows[percent] = bucket
    return rows


def _direction_figures(
    direction: str,
    counts_and_bytes: Mapping[str, int],
    seconds: float,
    table: ET.Element | None,
    rows: Mapping[Decimal, ET.Element],
    reader: DiskspdFieldReader,
) -> OperationFigures:
    count, size = counts_and_bytes[f"{direction}Count"], counts_and_bytes[f"{direction}Bytes"]
    name = f"{direction}Milliseconds"
    mean = None if table is None else reader.optional_number_or_add_fault(table, f"Average{name}")
    found = {
        float(percent): reader.optional_number_or_add_fault(row, name)
        for percent, row in rows.items()
    }
    latencies = {at: value * NS_PER_MS for at, value in found.items() if value is not None}
    return OperationFigures(
        operation=direction.lower(),
        count=count,
        bytes=size,
        seconds=seconds,
        rate_per_s=count / seconds,
        bw_bytes_per_s=size / seconds,
        lat_min_ns=latencies.get(0.0),
        lat_mean_ns=None if mean is None else mean * NS_PER_MS,
        lat_max_ns=latencies.get(float(PERCENT)),
        percentiles=tuple((at, value) for at, value in latencies.items() if 0 < at < PERCENT),
        printed=(("IOs", f"{count}"), ("bytes", f"{size}"), ("mean (ms)", f"{mean}")),
    )
