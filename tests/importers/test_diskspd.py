"""diskspd's results: real outputs, others made of them, and hostile ones."""

from __future__ import annotations

import re
from typing import Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from iolab.importers.diskspd import OUTPUT_CHARACTERS_MAX, TAGS_LIMIT, parse_diskspd_xml
from iolab.importers.files import ForeignFileError
from tests.recorded import recorded

BUCKET: Final = (
    '<Bucket SampleMillisecond="{end}" Read="{reads}" Write="{writes}" Total="0" '
    'ReadMinLatencyMilliseconds="0.000" ReadMaxLatencyMilliseconds="0.000"/>'
)


def golden(name: str) -> str:
    return recorded(f"diskspd/{name}.txt").decode()


def changed(old: str, new: str, *, name: str = "random-write-2.3.0") -> str:
    """A real output in which one thing is another."""
    text = golden(name)
    assert old in text
    return text.replace(old, new, 1)


def faults_of(text: str) -> list[str]:
    return [fault.message for fault in parse_diskspd_xml(text).faults]


def test_threads_of_an_old_version_add_up() -> None:
    result = parse_diskspd_xml(golden("sequential-read-2.0.21a"))
    assert (result.version, result.computer) == ("2.0.21a", "pkb-044ffc87-0")
    assert (result.messages, result.faults) == ((), ())
    (span,) = result.spans
    asked, (reads, writes) = span.settings, span.figures
    (target,) = asked.targets
    assert (asked.duration_s, asked.warmup_s) == (30, 5)
    assert (target.block_bytes, target.write_percent, target.is_random) == (65536, 0, False)
    assert (target.queue_depth, target.own_thread_count) == (2, 4)
    assert (span.seconds, span.thread_count) == (30.02, 4)
    assert reads.count == 22645 + 22623 + 22548 + 23154
    assert reads.rate_per_s == reads.count / 30.02
    assert reads.bw_bytes_per_s == reads.count * 65536 / 30.02
    assert (writes.count, writes.rate_per_s, writes.bw_bytes_per_s) == (0, 0.0, 0.0)
    assert (reads.lat_mean_ns, reads.percentiles) == (None, ())


def test_percentiles_are_found_by_their_name() -> None:
    result = parse_diskspd_xml(golden("random-write-2.3.0"))
    (span,) = result.spans
    assert (result.version, result.faults) == ("2.3.0", ())
    assert span.settings.targets[0].is_random
    reads, writes = span.figures
    assert writes.rate_per_s == 22114 / 1.01
    # Rows are left out of this output: the row at place 10 is not that of 10 %.
    percentiles = dict(writes.percentiles)
    assert 10 not in percentiles
    assert (percentiles[50], percentiles[99.99]) == (38_000, 1_951_000)
    assert 13_851_000 in percentiles.values()
    assert (writes.lat_mean_ns, writes.lat_min_ns) == (43_000, 34_000)
    assert (reads.lat_mean_ns, reads.percentiles) == (None, ())


def test_a_target_that_could_not_be_opened_is_no_row_of_zeros() -> None:
    result = parse_diskspd_xml(golden("no-file-2.3.0"))
    assert result.spans == ()
    (fault,) = result.faults
    assert "test was interrupted" in fault.message
    assert "Error opening file: C:\\ProgramData\\" in fault.hint
    assert result.messages[-1] == "Error generating I/O requests"


@pytest.mark.parametrize("name", ["WriteCount", "BytesCount", "TestTimeSeconds", "ThreadCount"])
def test_a_number_that_is_missing_is_no_zero(name: str) -> None:
    text = golden("random-write-2.3.0")
    body = text.index("</Profile>")
    raw = text[:body] + re.sub(rf"<{name}>.*?</{name}>", "", text[body:], count=1)
    result = parse_diskspd_xml(raw)
    assert result.spans == ()
    assert any(f"does not tell {name}" in fault.message for fault in result.faults)


@pytest.mark.parametrize("said", ["-1", "1e3", "nan", "inf", "9" * 21, "", "٣", "0x10"])
def test_a_count_that_is_none_is_a_fault(said: str) -> None:
    text = changed("<WriteCount>22114", f"<WriteCount>{said}")
    assert any(fault.startswith("diskspd tells WriteCount as") for fault in faults_of(text))
    assert parse_diskspd_xml(text).spans == ()


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
        (
            "</TimeSpan>\n    </TimeSpans>",
            "</TimeSpan><TimeSpan/></TimeSpans>",
            "profile has 2",
        ),
    ],
)
def test_what_does_not_hold_together_is_a_fault(old: str, new: str, fault: str) -> None:
    assert any(fault in message for message in faults_of(changed(old, new)))


def refused(text: str) -> str:
    with pytest.raises(ForeignFileError) as caught:
        parse_diskspd_xml(text)
    assert str(caught.value).endswith(".")
    assert caught.value.hint.endswith(".")
    return str(caught.value)


@pytest.mark.parametrize("cut", [0.05, 0.3, 0.6, 0.99])
def test_results_that_break_off_are_refused(cut: float) -> None:
    text = golden("random-write-2.3.0")
    assert "breaks off" in refused(text[: int(len(text) * cut)])


def test_output_without_results_says_what_diskspd_said() -> None:
    assert "holds no results" in refused("")
    text = "\x1b[2JERROR: no directory specified\n"
    assert "'\\x1b[2JERROR: no directory specified'." in refused(text)


def test_nothing_is_declared_and_nothing_expands() -> None:
    bomb = '<!DOCTYPE r [<!ENTITY a "aaaaaaaaaa"><!ENTITY b "&a;&a;&a;&a;&a;">]>'
    for text in (
        changed("<Results>", f"<Results>{bomb}"),
        changed("<ComputerName>", "<!-- --><ComputerName>"),
        changed("<ComputerName>", "<?php ?><ComputerName>"),
        changed("<System>", f"{bomb}<System>"),
    ):
        assert "which diskspd does not print" in refused(text)
    # Before the document it is text as any other, and is not read.
    outside = parse_diskspd_xml(bomb + changed("EQUIPO", "HOST"))
    assert outside.computer == "HOST"
    assert "no XML" in refused(changed("EQUIPO", "&a;"))


def test_sizes_are_bounded() -> None:
    assert "more than" in refused(" " * (OUTPUT_CHARACTERS_MAX + 1))
    assert "tags" in refused(changed("<System>", "<a>" * (TAGS_LIMIT + 1) + "<System>"))
    many = "<Thread><Id>0</Id></Thread>" * 1000
    faults = parse_diskspd_xml(changed("</Latency>", f"</Latency>{many}")).faults
    assert len(faults) < 20


@given(st.text(max_size=300), st.integers(0, 5000), st.integers(0, 300))
def test_no_bytes_make_it_raise_anything_else(noise: str, at: int, drop: int) -> None:
    text = golden("random-write-2.3.0")
    broken = text[:at] + noise + text[at + drop :]
    try:
        result = parse_diskspd_xml(broken)
    except ForeignFileError:
        return
    assert all(span.seconds > 0 for span in result.spans)


def test_a_span_keeps_its_own_settings_where_the_one_before_cannot_be_read() -> None:
    text = golden("random-write-2.3.0")
    asked = re.search(r"(?s)<TimeSpans>\s*(<TimeSpan>.*</TimeSpan>)\s*</TimeSpans>", text)
    assert asked is not None
    profile = asked[1]
    done = text[text.rindex("<TimeSpan>") : text.rindex("</Results>")]
    other = profile.replace("<BlockSize>4096<", "<BlockSize>8192<")
    assert other != profile
    broken = done.replace("<WriteCount>", "<WriteCount>x", 1)
    text = text.replace(profile, profile + other).replace(done, broken + done)
    result = parse_diskspd_xml(text)
    (span,) = result.spans
    assert (span.span_number, span.settings.targets[0].block_bytes) == (2, 8192)
