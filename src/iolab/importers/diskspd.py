"""Results of diskspd: every time span of its XML is a run; faults met on the way are kept."""

from __future__ import annotations

import codecs
import math
from collections.abc import Iterator, Sequence
from decimal import Decimal, InvalidOperation
from typing import Final
from xml.etree import ElementTree as ET

from iolab.core.limits import SETTING_CHARACTERS_MAX
from iolab.errors import EngineError, Fault
from iolab.importers.files import (
    NAME_CHARACTERS,
    SENTENCE_CHARACTERS,
    ForeignFile,
    ForeignFileError,
    ImportFolder,
    parse_time_as_utc_ns,
)
from iolab.importers.foreign_run import (
    Figures,
    ForeignRun,
    ImportedClient,
    ImportedHost,
    ImportedRun,
    headline_for_block_size,
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

OUTPUT_LIMIT_BYTES: Final = 32 << 20
"""What is read of an output: with `-D` a day of one target is 28 MB, and no run is that long."""

TAGS_LIMIT: Final = 1_000_000
"""Marks of the document's elements; 32 MiB of empty ones would be a gigabyte in memory."""

MESSAGE_LINES_LIMIT: Final = 8
"""Lines beside the document that are kept: one thread after the other says the same."""

_LISTS: Final = ("Targets", "Target")
"""Elements that all options of the only target stand in."""


class DiskspdImporter:
    """Every time span of diskspd's XML."""

    tool: Final = "diskspd"

    def recognises(self, file: ForeignFile) -> bool:
        """By its first element."""
        return b"<Results>" in file.first_bytes and b"<Tool>" in file.first_bytes

    def read(self, file: ForeignFile, folder: ImportFolder) -> Sequence[ForeignRun]:
        """The spans. ForeignFileError where there is no whole document."""
        del folder
        try:
            result = parse_diskspd_xml(file.utf8_bytes)
        except EngineError as error:
            raise ForeignFileError(error.message, error.hint) from None
        if not result.spans:
            if result.faults:
                first = result.faults[0]
                raise ForeignFileError(excerpt(first.message, SENTENCE_CHARACTERS), first.hint)
            raise ForeignFileError("there is no time span.")
        file.line_coverage.mark_all_read()
        return [
            _foreign_run_of_span(file, result, number, span)
            for number, span in enumerate(result.spans, 1)
        ]


def _foreign_run_of_span(
    file: ForeignFile, result: DiskspdResult, number: int, span: MeasuredSpan
) -> ForeignRun:
    asked = result.span_settings[number - 1] if number <= len(result.span_settings) else None
    target = asked.targets[0] if asked and asked.targets else None
    figures = tuple(
        figure
        for figure in (_direction_figures("read", span), _direction_figures("write", span))
        if figure.count or figure.bytes
    )
    flight = None
    if asked and asked.targets and all(target.queue_depth for target in asked.targets):
        flight = sum(
            (target.queue_depth or 0) * (target.threads or span.threads) for target in asked.targets
        )
    block = target.block_bytes if target else None
    pattern = "" if target is None else "random" if target.is_random else "sequential"
    settings = {
        "block": block,
        "writes %": target.write_percent if target else None,
        "threads": span.threads,
        "outstanding": target.queue_depth if target else None,
        "pattern": pattern,
    }
    options = result.options[number - 1] if number <= len(result.options) else ()
    caches = [value for name, value in options if name.endswith("DisableOSCache")]
    details = ImportedRun(
        tool="diskspd",
        version=excerpt(result.version, NAME_CHARACTERS),
        files=(file.name,),
        # Newer versions tell only that it is off: a target without a word has it, then.
        buffered="false" in caches or len(caches) < len(asked.targets)
        if asked and caches
        else None,
        paced=asked is not None
        and any(_is_limited_by_rate(target, span) for target in asked.targets),
        ramp_s=float(asked.warmup_s) if asked and asked.warmup_s else None,
        asked_s=float(asked.duration_s) if asked and asked.duration_s else None,
    )
    host = ImportedHost(
        f"{file.name}: span {number}",
        figures or (Figures("read", count=0),),
        errors=tuple(excerpt(fault.message, NAME_CHARACTERS) for fault in result.faults),
        time_step_ns=NS_PER_US,
    )
    return ForeignRun(
        name=" ".join(filter(None, ("diskspd", pattern, _direction_of_target(target)))),
        details=details,
        clients=(
            ImportedClient(
                excerpt(result.computer, NAME_CHARACTERS) or "client", host, runtime_s=span.seconds
            ),
        ),
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
        ignored=_IGNORED,
        in_flight=flight or None,
        timestamp_ns=_span_end_ns(result, number),
        headline=headline_for_block_size(block),
    )


def _direction_of_target(target: TargetSettings | None) -> str:
    percent = None if target is None else target.write_percent
    return {None: "", 0: "read", PERCENT: "write"}.get(percent, "mixed")


def _is_limited_by_rate(target: TargetSettings, span: MeasuredSpan) -> bool:
    """Whether the rate that each thread of a target may have is what it came to."""
    own = [work for work in span.work if work.path == target.path]
    threads = target.threads or span.threads
    most = None if target.rate_per_s is None else target.rate_per_s * threads
    if target.is_rate_in_iops:
        moved = sum(work.read_ios + work.write_ios for work in own)
    else:
        moved = sum(work.read_bytes + work.write_bytes for work in own)
    return is_limited_by_target_rate(most, moved / span.seconds)


def _span_end_ns(result: DiskspdResult, number: int) -> int | None:
    """When a span ended: diskspd tells when it began, and how long each span was to last."""
    began_ns = parse_time_as_utc_ns(result.start_time_text, _DATE)
    if began_ns is None:
        return None
    lasted = sum(
        (asked.warmup_s or 0) + (asked.duration_s or 0) for asked in result.span_settings[:number]
    )
    return began_ns + lasted * NS_PER_S


def _direction_figures(direction: str, span: MeasuredSpan) -> Figures:
    read = direction == "read"
    count = sum(work.read_ios if read else work.write_ios for work in span.work)
    moved = sum(work.read_bytes if read else work.write_bytes for work in span.work)
    latency = span.latency
    mean = None if latency is None else latency.mean_read_ms if read else latency.mean_write_ms
    rows = [
        (float(row.percent), value * NS_PER_MS)
        for row in (latency.rows if latency else ())
        if (value := row.read_ms if read else row.write_ms) is not None
    ]
    ends = dict(rows)
    return Figures(
        operation=direction,
        count=count,
        bytes=moved,
        seconds=span.seconds,
        rate_per_s=span.read_iops if read else span.write_iops,
        bw_bytes_per_s=span.read_bytes_per_s if read else span.write_bytes_per_s,
        lat_min_ns=ends.get(0.0),
        lat_mean_ns=None if mean is None else mean * NS_PER_MS,
        lat_max_ns=ends.get(float(PERCENT)),
        percentiles=tuple((at, value) for at, value in rows if 0 < at < PERCENT),
        printed=(("IOs", f"{count}"), ("bytes", f"{moved}"), ("mean (ms)", f"{mean}")),
    )


def quoted_text(text: str) -> str:
    """The words as an error shows them; the backslashes of a path stay single."""
    return f"'{_message_excerpt(text)}'"


def _message_excerpt(text: str) -> str:
    return excerpt(text, WORDS_LIMIT).rstrip(".")


def element_text(element: ET.Element | None, path: str) -> str:
    """What the element below says; "" where there is none."""
    return excerpt(element.findtext(path) or "", WORDS_LIMIT) if element is not None else ""


class DiskspdFieldReader:
    """A document while it is read: what its elements say, and all that is wrong with them."""

    def __init__(self) -> None:
        self._faults: dict[Fault, None] = {}

    @property
    def faults(self) -> tuple[Fault, ...]:
        """All faults so far, each once."""
        return tuple(self._faults)

    def add_fault(self, message: str, hint: str) -> None:
        """Something is wrong."""
        if len(self._faults) < FAULTS_LIMIT:
            self._faults[Fault(message, hint)] = None

    def optional_count(self, element: ET.Element, path: str) -> int | None:
        """A whole number of the element below, None where there is none."""
        text = element.findtext(path)
        if text is None:
            return None
        digits = text.strip()
        if digits.isascii() and digits.isdigit() and len(digits) <= COUNT_DIGITS_LIMIT:
            return int(digits)
        self._add_unreadable_fault(path, text)
        return None

    def required_count(self, element: ET.Element, path: str) -> int | None:
        """A whole number that must be there; None, and a fault, where it is not."""
        self._add_fault_if_missing(element, path)
        return self.optional_count(element, path)

    def optional_number(self, element: ET.Element, path: str) -> float | None:
        """A number from 0 on of the element below, None where there is none."""
        text = element.findtext(path)
        return None if text is None else self._parse_number(path, text)

    def required_number(self, element: ET.Element, path: str) -> float | None:
        """A number that must be there; None, and a fault, where it is not."""
        self._add_fault_if_missing(element, path)
        return self.optional_number(element, path)

    def _add_fault_if_missing(self, element: ET.Element, path: str) -> None:
        if element.find(path) is None:
            self._add_missing_fault(path, element.tag)

    def _parse_number(self, name: str, text: str) -> float | None:
        try:
            number = float(text)
        except ValueError:
            number = math.nan
        if math.isfinite(number) and number >= 0:
            return number
        self._add_unreadable_fault(name, text)
        return None

    def _add_missing_fault(self, name: str, within: str) -> None:
        self.add_fault(
            f"diskspd does not tell {name} in a {_message_excerpt(within)}.",
            "Keep all that diskspd prints.",
        )

    def _add_unreadable_fault(self, name: str, text: str) -> None:
        self.add_fault(
            f"diskspd tells {name} as {quoted_text(text)}.", "Keep what diskspd prints unchanged."
        )


class TargetSettings(Record):
    """A target as the profile wants it; None for what it does not say.

    `queue_depth` are requests in flight of each thread; `threads` are those of this target alone, 0
    where all targets share the span's. `is_random` of a target that is read in part in order, too.
    `rate_per_s` is the most that each thread may do, in bytes or in I/Os.
    """

    path: str
    block_bytes: int | None
    write_percent: int | None
    queue_depth: int | None
    threads: int | None
    is_random: bool
    rate_per_s: int | None
    is_rate_in_iops: bool


class SpanSettings(Record):
    """A time span as the profile wants it, in seconds."""

    duration_s: int | None
    warmup_s: int | None
    targets: tuple[TargetSettings, ...]


class ThreadTargetIo(Record):
    """What one thread did with one target while the time was taken."""

    thread_id: int
    path: str
    read_ios: int
    read_bytes: int
    write_ios: int
    write_bytes: int


class PercentileRow(Record):
    """A row of the table of latencies, in milliseconds; None in a direction without I/O."""

    percent: Decimal
    read_ms: float | None
    write_ms: float | None


class LatencyTable(Record):
    """Latencies of all threads and targets of a span together; rows in the document's order.

    A percentile of several machines cannot be had from the percentiles of each.
    """

    mean_read_ms: float | None
    mean_write_ms: float | None
    rows: tuple[PercentileRow, ...]


class MeasuredSpan(Record):
    """A time span as it went: `seconds` is the time taken, in hundredths, warm-up left out.

    `latency` is None without `-L`.
    """

    seconds: float
    threads: int
    work: tuple[ThreadTargetIo, ...]
    latency: LatencyTable | None

    @property
    def read_iops(self) -> float:
        """Reads a second of all threads and targets."""
        return sum(work.read_ios for work in self.work) / self.seconds

    @property
    def write_iops(self) -> float:
        """Writes a second of all threads and targets."""
        return sum(work.write_ios for work in self.work) / self.seconds

    @property
    def read_bytes_per_s(self) -> float:
        """Bytes read a second by all threads from all targets."""
        return sum(work.read_bytes for work in self.work) / self.seconds

    @property
    def write_bytes_per_s(self) -> float:
        """Bytes written a second by all threads to all targets."""
        return sum(work.write_bytes for work in self.work) / self.seconds


class DiskspdResult(Record):
    """All that an output tells. With any of the `faults` it is no measurement.

    `options` are all that the profile has of each span, by the path of the element. A span that
    could not be read whole is left out of `spans` and named among the faults.
    `messages` are its lines beside the document.
    """

    version: str
    computer: str
    start_time_text: str
    span_settings: tuple[SpanSettings, ...]
    options: tuple[tuple[tuple[str, str], ...], ...]
    spans: tuple[MeasuredSpan, ...]
    messages: tuple[str, ...]
    faults: tuple[Fault, ...]


def parse_diskspd_xml(raw: bytes) -> DiskspdResult:
    """Read the standard output of `diskspd -Rxml`, with or without its errors beside it.

    Raises EngineError where there is no whole document, or none that diskspd could have printed.
    """
    text = _decode_output(raw)
    document, messages = _split_document_and_messages(text)
    root = _parse_xml(document)
    draft = DiskspdFieldReader()
    system = root.find("System")
    asked = tuple(
        _span_settings(span, draft) for span in root.iterfind("Profile/TimeSpans/TimeSpan")
    )
    spans = list(_measured_spans(root, asked, messages, draft))
    return DiskspdResult(
        version=element_text(system, "Tool/Version"),
        computer=element_text(system, "ComputerName"),
        start_time_text=element_text(system, "RunTime"),
        span_settings=asked,
        options=tuple(
            tuple(_leaf_items(span, "")) for span in root.iterfind("Profile/TimeSpans/TimeSpan")
        ),
        spans=tuple(spans),
        messages=messages,
        faults=draft.faults,
    )


def _leaf_items(element: ET.Element, path: str) -> Iterator[tuple[str, str]]:
    """The words of every element below that has some, and those that are there without any."""
    counts: dict[str, int] = {}
    for child in element:
        counts[child.tag] = counts.get(child.tag, 0) + 1
        number = f" {counts[child.tag]}" if counts[child.tag] > 1 else ""
        name = f"{path}{child.tag}{number}"
        if len(child):
            yield from _leaf_items(child, "" if name.endswith(_LISTS) else f"{name}.")
        else:
            yield name, excerpt(child.text or "", WORDS_LIMIT) or "yes"


def _decode_output(raw: bytes) -> str:
    """Windows PowerShell writes what it redirects as UTF-16; a path may be in any code page."""
    if len(raw) > OUTPUT_LIMIT_BYTES:
        raise EngineError(
            f"diskspd printed {len(raw)} bytes, more than the {OUTPUT_LIMIT_BYTES} that are read.",
            "Run it for a shorter time, or without -D.",
        )
    if raw.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        return raw.decode("utf-16", "replace")
    return raw.decode("utf-8-sig", "replace")


def _split_document_and_messages(text: str) -> tuple[str, tuple[str, ...]]:
    """The one document in the text, and what is said around it."""
    begin, last = text.find("<Results>"), text.rfind("</Results>")
    if begin < 0:
        messages = _message_lines(text)
        message = "The output holds no results of diskspd."
        if messages:
            message = f"The output holds no results of diskspd, but: {quoted_text(messages[0])}."
        raise EngineError(message, "Run diskspd with -Rxml and keep all that it prints.")
    if last < begin or "<Results>" in text[begin + 1 :]:
        message = "holds several results" if last > begin else "breaks off within its results"
        raise EngineError(
            f"The output of diskspd {message}.", "Keep all that one run prints, each by itself."
        )
    end = last + len("</Results>")
    return text[begin:end], _message_lines(text[:begin] + "\n" + text[end:])


def _message_lines(text: str) -> tuple[str, ...]:
    lines = (excerpt(line, WORDS_LIMIT) for line in text.splitlines())
    return tuple(line for line in lines if line)[:MESSAGE_LINES_LIMIT]


def _parse_xml(document: str) -> ET.Element:
    """The document's elements. diskspd declares nothing: no type, no entity, no comment."""
    strange = next((mark for mark in ("<!", "<?") if mark in document), None)
    if strange or document.count("<") > TAGS_LIMIT:
        content = f"{strange!r}" if strange else f"more than {TAGS_LIMIT} tags"
        raise EngineError(
            f"The results hold {content}, which diskspd does not print.",
            "Keep what diskspd prints as it is; results of unknown origin are not read.",
        )
    try:
        return ET.fromstring(document)  # noqa: S314 - without declarations nothing can expand
    except (ET.ParseError, ValueError) as error:
        raise EngineError(
            f"The results of diskspd are no XML: {_message_excerpt(str(error))}.",
            "Keep them unchanged, and give targets paths without & and <: diskspd prints them raw.",
        ) from error


def _span_settings(span: ET.Element, reader: DiskspdFieldReader) -> SpanSettings:
    targets = tuple(
        TargetSettings(
            path=element_text(target, "Path"),
            block_bytes=reader.optional_count(target, "BlockSize"),
            write_percent=reader.optional_count(target, "WriteRatio"),
            queue_depth=reader.optional_count(target, "RequestCount"),
            threads=reader.optional_count(target, "ThreadsPerFile"),
            is_random=target.find("Random") is not None,
            rate_per_s=_target_rate_per_s(target, reader),
            is_rate_in_iops=_is_rate_in_iops(target),
        )
        for target in span.iterfind("Targets/Target")
    )
    return SpanSettings(
        reader.optional_count(span, "Duration"), reader.optional_count(span, "Warmup"), targets
    )


def _target_rate_per_s(target: ET.Element, reader: DiskspdFieldReader) -> int | None:
    rate = reader.optional_count(target, "Throughput")
    return rate * (1 if _is_rate_in_iops(target) else MS_PER_S) if rate else None


def _is_rate_in_iops(target: ET.Element) -> bool:
    """Without a unit it is of bytes in a millisecond."""
    rate = target.find("Throughput")
    return rate is not None and rate.get("unit", "").upper() == "IOPS"


def _measured_spans(
    root: ET.Element,
    requested: tuple[SpanSettings, ...],
    messages: tuple[str, ...],
    reader: DiskspdFieldReader,
) -> Iterator[MeasuredSpan]:
    elements = root.findall("TimeSpan")
    if len(elements) != len(requested) or not elements:
        reader.add_fault(
            f"diskspd reports {len(elements)} time spans, but its profile has {len(requested)}.",
            "Keep all that diskspd prints; a run that was ended early must be run again.",
        )
    for number, span in enumerate(elements, start=1):
        error = element_text(span, "Error")
        if error:
            reader.add_fault(
                f"diskspd measured nothing in time span {number}: {quoted_text(error)}.",
                f"It said: {quoted_text(messages[0])}."
                if messages
                else "Run it by hand to see why.",
            )
            continue
        before = len(reader.faults)
        wanted = requested[number - 1].targets if number <= len(requested) else ()
        read = _measured_span(span, number, wanted, reader)
        if read is not None and len(reader.faults) == before:
            yield read


def _measured_span(
    span: ET.Element, number: int, targets: tuple[TargetSettings, ...], reader: DiskspdFieldReader
) -> MeasuredSpan | None:
    seconds = reader.required_number(span, "TestTimeSeconds")
    threads = reader.required_count(span, "ThreadCount")
    work = tuple(_thread_target_ios(span, number, reader))
    done = {row.path for row in work}
    for path in dict.fromkeys(target.path for target in targets):
        if path not in done:
            reader.add_fault(
                f"diskspd tells nothing of target {quoted_text(path)} in time span {number}.",
                "See whether it could be opened; what is missing is not counted as nothing done.",
            )
    if not seconds or threads is None:
        if seconds == 0.0:
            reader.add_fault(
                f"diskspd took no time in time span {number}.", "Let it run for a second or more."
            )
        return None
    thread_count = len(span.findall("Thread"))
    if thread_count != threads:
        reader.add_fault(
            f"diskspd had {threads} threads in time span {number} but reports {thread_count}.",
            "Keep all that diskspd prints.",
        )
    return MeasuredSpan(
        seconds=seconds,
        threads=threads,
        work=work,
        latency=_latency_table(span.find("Latency"), reader),
    )


def _thread_target_ios(
    span: ET.Element, number: int, reader: DiskspdFieldReader
) -> Iterator[ThreadTargetIo]:
    for thread in span.iterfind("Thread"):
        identity = reader.required_count(thread, "Id")
        targets = thread.findall("Target")
        if not targets:
            reader.add_fault(
                f"Thread {identity} of time span {number} has no target.",
                "See whether its target could be opened; a thread without one did no work.",
            )
        for target in targets:
            names = ("ReadCount", "ReadBytes", "WriteCount", "WriteBytes")
            counts = [reader.required_count(target, name) for name in names]
            numbers = [count for count in counts if count is not None]
            if identity is None or len(numbers) < len(names):
                continue
            work = ThreadTargetIo(identity, element_text(target, "Path"), *numbers)
            total = reader.required_count(target, "BytesCount")
            if total is not None and total != work.read_bytes + work.write_bytes:
                reader.add_fault(
                    f"Thread {identity} of time span {number} moved {total} bytes, of which it "
                    f"read {work.read_bytes} and wrote {work.write_bytes}.",
                    "Keep what diskspd prints unchanged.",
                )
            yield work


def _latency_table(table: ET.Element | None, reader: DiskspdFieldReader) -> LatencyTable | None:
    if table is None:
        return None
    rows: dict[Decimal, PercentileRow] = {}
    for bucket in table.iterfind("Bucket"):
        named = element_text(bucket, "Percentile")
        try:
            percent = Decimal(named)
        except InvalidOperation:
            percent = Decimal("NaN")
        if percent.is_nan() or not 0 <= percent <= 100 or percent in rows:
            reader.add_fault(
                f"The table of latencies has a row for percentile {quoted_text(named)}.",
                "Keep what diskspd prints unchanged: every percentile has one row.",
            )
            continue
        rows[percent] = PercentileRow(
            percent,
            reader.optional_number(bucket, "ReadMilliseconds"),
            reader.optional_number(bucket, "WriteMilliseconds"),
        )
    return LatencyTable(
        mean_read_ms=reader.optional_number(table, "AverageReadMilliseconds"),
        mean_write_ms=reader.optional_number(table, "AverageWriteMilliseconds"),
        rows=tuple(rows.values()),
    )
