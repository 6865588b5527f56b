"""diskspd's results: real outputs, others made of them, and hostile ones."""

from __future__ import annotations

import codecs
import re
from decimal import Decimal
from typing import Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from iolab.errors import EngineError
from iolab.importers.diskspd import OUTPUT_LIMIT_BYTES, TAGS_LIMIT, parse_diskspd_xml
from tests.recorded import recorded

BUCKET: Final = (
    '<Bucket SampleMillisecond="{end}" Read="{reads}" Write="{writes}" Total="0" '
    'ReadMinLatencyMilliseconds="0.000" ReadMaxLatencyMilliseconds="0.000"/>'
)


def golden(name: str) -> bytes:
    return recorded(f"diskspd/{name}.txt")


def changed(old: str, new: str, *, name: str = "random-write-2.3.0") -> bytes:
    """A real output in which one thing is another."""
    text = golden(name).decode()
    assert old in text
    return text.replace(old, new, 1).encode()


def faults_of(raw: bytes) -> list[str]:
    return [fault.message for fault in parse_diskspd_xml(raw).faults]


def test_threads_of_an_old_version_add_up() -> None:
    result = parse_diskspd_xml(golden("sequential-read-2.0.21a"))
    assert (result.version, result.computer) == ("2.0.21a", "pkb-044ffc87-0")
    assert (result.messages, result.faults) == ((), ())
    (asked,), (span,) = result.span_settings, result.spans
    (target,) = asked.targets
    assert (asked.duration_s, asked.warmup_s) == (30, 5)
    assert (target.block_bytes, target.write_percent, target.is_random) == (65536, 0, False)
    assert (target.queue_depth, target.threads) == (2, 4)
    assert (span.seconds, span.threads) == (30.02, 4)
    assert [work.thread_id for work in span.work] == [0, 1, 2, 3]
    reads = 22645 + 22623 + 22548 + 23154
    assert span.read_iops == reads / 30.02
    assert span.read_bytes_per_s == reads * 65536 / 30.02
    assert span.write_iops == span.write_bytes_per_s == 0.0
    assert span.latency is None


def test_percentiles_are_found_by_their_name() -> None:
    result = parse_diskspd_xml(golden("random-write-2.3.0"))
    (span,) = result.spans
    assert (result.version, result.faults) == ("2.3.0", ())
    assert result.span_settings[0].targets[0].is_random
    assert span.write_iops == 22114 / 1.01
    assert span.latency is not None
    # Rows are left out of this output: the row at place 10 is not that of 10 %.
    assert span.latency.rows[10].write_ms == 13.851
    rows = {row.percent: row for row in span.latency.rows}
    assert Decimal(10) not in rows
    p50, p9999 = rows[Decimal(50)], rows[Decimal("99.99")]
    assert (p50.read_ms, p50.write_ms) == (None, 0.038)
    assert p9999.write_ms == 1.951
    assert span.latency.mean_read_ms is None
    assert span.latency.mean_write_ms == 0.043


def test_a_target_that_could_not_be_opened_is_no_row_of_zeros() -> None:
    result = parse_diskspd_xml(golden("no-file-2.3.0"))
    assert result.spans == ()
    (fault,) = result.faults
    assert "test was interrupted" in fault.message
    assert "Error opening file: C:\\ProgramData\\" in fault.hint
    assert result.messages[-1] == "Error generating I/O requests"


@pytest.mark.parametrize("name", ["WriteCount", "BytesCount", "TestTimeSeconds", "ThreadCount"])
def test_a_number_that_is_missing_is_no_zero(name: str) -> None:
    text = golden("random-write-2.3.0").decode()
    body = text.index("</Profile>")
    raw = text[:body] + re.sub(rf"<{name}>.*?</{name}>", "", text[body:], count=1)
    result = parse_diskspd_xml(raw.encode())
    assert result.spans == ()
    assert any(f"does not tell {name}" in fault.message for fault in result.faults)


@pytest.mark.parametrize("said", ["-1", "1e3", "nan", "inf", "9" * 21, "", "٣", "0x10"])
def test_a_count_that_is_none_is_a_fault(said: str) -> None:
    raw = changed("<WriteCount>22114", f"<WriteCount>{said}")
    assert any(fault.startswith("diskspd tells WriteCount as") for fault in faults_of(raw))
    assert parse_diskspd_xml(raw).spans == ()


@pytest.mark.parametrize(
    ("old", "new", "fault"),
    [
        ("<TestTimeSeconds>1.01", "<TestTimeSeconds>0.00", "took no time"),
        ("<ThreadCount>1<", "<ThreadCount>2<", "had 2 threads in time span 1 but reports 1"),
        ("<BytesCount>90578944", "<BytesCount>90578945", "moved 90578945 bytes"),
        ("<Percentile>99.9<", "<Percentile>99<", "a row for percentile '99'"),
        ("<Percentile>0<", "<Percentile>-1<", "a row for percentile '-1'"),
        ("<Percentile>0<", "<Percentile>sNaN<", "a row for percentile 'sNaN'"),
        ("<WriteMilliseconds>0.034", "<WriteMilliseconds>-0.1", "WriteMilliseconds as '-0.1'"),
        ("</TimeSpan>\n    </TimeSpans>", "</TimeSpan><TimeSpan/></TimeSpans>", "profile has 2"),
    ],
)
def test_what_does_not_hold_together_is_a_fault(old: str, new: str, fault: str) -> None:
    assert any(fault in message for message in faults_of(changed(old, new)))


@pytest.mark.parametrize("encoding", ["utf-16", "utf-8-sig", "utf-8"])
def test_what_windows_powershell_redirects_is_read(encoding: str) -> None:
    raw = golden("random-write-2.3.0").decode().encode(encoding)
    assert parse_diskspd_xml(raw) == parse_diskspd_xml(golden("random-write-2.3.0"))


def refused(raw: bytes) -> str:
    with pytest.raises(EngineError) as caught:
        parse_diskspd_xml(raw)
    assert caught.value.message.endswith(".")
    assert caught.value.hint.endswith(".")
    return caught.value.message


@pytest.mark.parametrize("cut", [0.05, 0.3, 0.6, 0.99])
def test_results_that_break_off_are_refused(cut: float) -> None:
    raw = golden("random-write-2.3.0")
    assert "breaks off" in refused(raw[: int(len(raw) * cut)])


def test_output_without_results_says_what_diskspd_said() -> None:
    assert "holds no results" in refused(b"")
    text = b"\x1b[2JERROR: no directory specified\n"
    assert "'\\x1b[2JERROR: no directory specified'." in refused(text)


def test_nothing_is_declared_and_nothing_expands() -> None:
    bomb = '<!DOCTYPE r [<!ENTITY a "aaaaaaaaaa"><!ENTITY b "&a;&a;&a;&a;&a;">]>'
    for raw in (
        changed("<Results>", f"<Results>{bomb}"),
        changed("<ComputerName>", "<!-- --><ComputerName>"),
        changed("<ComputerName>", "<?php ?><ComputerName>"),
        codecs.BOM_UTF16_LE + changed("<System>", f"{bomb}<System>").decode().encode("utf-16-le"),
    ):
        assert "which diskspd does not print" in refused(raw)
    # Before the document it is text as any other, and is not read.
    outside = parse_diskspd_xml(bomb.encode() + changed("EQUIPO", "HOST"))
    assert outside.computer == "HOST"
    assert "no XML" in refused(changed("EQUIPO", "&a;"))


def test_sizes_are_bounded() -> None:
    assert "more than" in refused(b" " * (OUTPUT_LIMIT_BYTES + 1))
    assert "tags" in refused(changed("<System>", "<a>" * (TAGS_LIMIT + 1) + "<System>"))
    many = "<Thread><Id>0</Id></Thread>" * 1000
    faults = parse_diskspd_xml(changed("</Latency>", f"</Latency>{many}")).faults
    assert len(faults) < 20


@given(st.binary(max_size=300), st.integers(0, 5000), st.integers(0, 300))
def test_no_bytes_make_it_raise_anything_else(noise: bytes, at: int, drop: int) -> None:
    raw = golden("random-write-2.3.0")
    broken = raw[:at] + noise + raw[at + drop :]
    try:
        result = parse_diskspd_xml(broken)
    except EngineError:
        return
    assert all(span.seconds > 0 for span in result.spans)
