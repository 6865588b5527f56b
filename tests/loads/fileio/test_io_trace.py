"""Traces as fio and blkparse write them, read and mapped on a target."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import zstandard

from iolab.loads.fileio.io_trace import (
    CHUNK_RECORDS,
    READ,
    SYNC,
    WRITE,
    IoTrace,
    IoTraceError,
    chunks_of_trace,
    read_trace,
    trace_chunk_count,
)
from tests.cli.in_process import call

RECORD = np.dtype(
    [("due_ns", "<u8"), ("offset", "<u8"), ("bytes", "<u4"), ("kind", "u1"), ("zero", "u1", 3)]
)
BLKPARSE = """\
  8,0    3        1     0.100000000   697  Q   W 2048 + 8 [kworker]
  8,0    3        2     0.100001000   697  G   W 2048 + 8 [kworker]
  8,0    3        3     0.100002000   697  D   W 2048 + 8 [kworker]
  8,0    1        4     0.100500000   701  Q  RA 4096 + 256 [dd]
  8,16   1        5     0.101000000   701  Q FWS [fsync]
  8,16   1        6     0.102000000   701  Q  WS 0 + 16 [fio]
  8,16   1        7     0.103000000   701  Q   D 64 + 1024 [fstrim]
  8,0    1        8     0.104000000     0  C   W 2048 + 8 [0]
CPU0 (8,0):
 Reads Queued:           1,        4KiB\t Writes Queued:           2,       12KiB
"""


def trace_of(folder: Path, text: str) -> IoTrace:
    path = folder / "trace"
    path.write_text(text, encoding="utf-8")
    return read_trace(str(path))


def test_an_iolog_of_version_3_has_microseconds(tmp_path: Path) -> None:
    text = "fio version 3 iolog\n5 a add\n5 b add\n6 a open\n100 a read 4096 8192\n"
    text += "350 b write 0 512\n350 a datasync 0 0\n400 a trim 0 4096\n400 a close\n"
    trace = trace_of(tmp_path, text)
    assert trace.due_ns.tolist() == [0, 250_000, 250_000]
    assert trace.kinds.tolist() == [READ, WRITE, SYNC]
    # The second file begins at the next MiB.
    assert trace.offsets.tolist() == [4096, 1 << 20, 0]
    assert (trace.io_count, trace.trims, trace.read_share, trace.span_bytes) == (2, 1, 0.5, 2 << 20)


def test_an_iolog_of_version_2_has_waits(tmp_path: Path) -> None:
    text = "fio version 2 iolog\na add\na read 0 4096\na wait 20 0\na write 4096 4096\n"
    assert trace_of(tmp_path, text).due_ns.tolist() == [0, 20_000_000]


def test_queued_ios_of_blkparse_are_taken(tmp_path: Path) -> None:
    trace = trace_of(tmp_path, BLKPARSE)
    assert trace.due_ns.tolist() == [0, 500_000, 1_000_000, 2_000_000]
    assert trace.kinds.tolist() == [WRITE, READ, SYNC, WRITE]
    assert trace.sizes.tolist() == [4096, 131_072, 0, 8192]
    assert trace.trims == 1


def test_issued_ios_are_taken_where_none_was_queued(tmp_path: Path) -> None:
    lines = [line for line in BLKPARSE.splitlines() if "  Q" not in line and " Q " not in line]
    more = "  8,0    3        9     0.200000000   697  D   R 8 + 8 [x]"
    trace = trace_of(tmp_path, "\n".join([*lines[:2], more]) + "\n")
    assert trace.kinds.tolist() == [WRITE, READ]
    assert trace.due_ns.tolist() == [0, 99_998_000]
    trimmed = "  8,0    3       10     0.210000000   697  D   D 8 + 8 [x]"
    assert trace_of(tmp_path, "\n".join([*lines[:2], more, trimmed]) + "\n").trims == 1


def test_what_blkparse_prints_around_its_events_is_no_part_of_a_trace(tmp_path: Path) -> None:
    before = "Input file sda.blktrace.0 added\nInput file sda.blktrace.1 added\n"
    head, tail = BLKPARSE.split("CPU0")
    process = "fio (701, ...)\n Reads Queued:           1,        4KiB\n\n"
    plain = trace_of(tmp_path, BLKPARSE)
    trace = trace_of(tmp_path, f"{before}{head}{process}CPU0{tail}")
    assert trace.due_ns.tolist() == plain.due_ns.tolist()
    with pytest.raises(IoTraceError, match="line 9"):
        trace_of(tmp_path, f"{head}{before}CPU0{tail}")


def test_a_write_with_a_flush_is_a_sync_and_a_write(tmp_path: Path) -> None:
    lines = BLKPARSE.replace("  Q  RA 4096", "  Q FWFS 4096").replace("  Q  WS 0", "  Q WFS 0")
    trace = trace_of(tmp_path, lines)
    assert trace.kinds.tolist() == [WRITE, SYNC, WRITE, SYNC, WRITE]
    assert trace.sizes.tolist() == [4096, 0, 131_072, 0, 8192]
    assert trace.fua_writes == 2


@pytest.mark.parametrize(
    ("text", "part"),
    [
        ("", "empty"),
        ("junk\n", "line 1"),
        ("fio version 3 iolog\n1 f read 0 4096\n2 f read 0 40", "line 3 has no end"),
        ("fio version 3 iolog\n5 f read 0 4096\n2 f read 0 4096\n", "line 3"),
        ("fio version 3 iolog\n5 f zap 0 4096\n", "zap"),
        ("fio version 3 iolog\n5 f read 3 4096\n", "multiples of 512"),
        ("fio version 3 iolog\n5 f read 0 99999999999\n", "64 MiB"),
        ("fio version 3 iolog\nx f read 0 4096\n", "no time"),
        ("fio version 3 iolog\n5 f read 0 9999999999999999999\n", "where a number stands"),
        ("fio version 2 iolog\nf read 0 4096\nf read 0 4096\n", "no times"),
        ("fio version 3 iolog\n5 f sync 0 0\n", "no read and no write"),
        (BLKPARSE.splitlines()[7] + "\nCPU0 (8,0):\n", "queued (Q) or issued (D)"),
        (BLKPARSE.splitlines()[0].replace("  W ", " ZA ") + "\n", "ZA"),
        (BLKPARSE.splitlines()[5] + "\n" + BLKPARSE.splitlines()[0] + "\n", "back in time"),
    ],
)
def test_what_is_no_trace_is_refused_with_its_line(text: str, part: str, tmp_path: Path) -> None:
    with pytest.raises(IoTraceError) as caught:
        trace_of(tmp_path, text)
    assert part in str(caught.value)


def test_a_missing_file_and_a_folder_are_refused(tmp_path: Path) -> None:
    for path in (tmp_path, tmp_path / "gone", Path("\0")):
        with pytest.raises(IoTraceError):
            read_trace(str(path))


def test_offsets_are_mapped_on_the_target_and_times_are_scaled(tmp_path: Path) -> None:
    text = "fio version 3 iolog\n0 f read 0 4096\n1000 f read 1044480 8192\n"
    text += "2000 f write 5242880 4096\n"
    trace = trace_of(tmp_path, text)
    (part,) = chunks_of_trace(trace, 1 << 20, 2.0)
    records = np.frombuffer(part, RECORD)
    assert records["due_ns"].tolist() == [0, 500_000, 1_000_000]
    assert records["offset"].tolist() == [0, (1 << 20) - 8192, 0]
    assert records["kind"].tolist() == [READ, READ, WRITE]


def test_a_compressed_trace_is_read_as_it_is(tmp_path: Path) -> None:
    text = "fio version 3 iolog\n0 f read 0 4096\n9 f read 0 4096\n"
    path = tmp_path / "trace.zst"
    path.write_bytes(zstandard.compress(text.encode()))
    assert read_trace(str(path)).io_count == 2
    path.write_bytes(path.read_bytes()[:-5])
    with pytest.raises(IoTraceError, match="cut off"):
        read_trace(str(path))


def test_the_plan_names_what_is_not_replayed_as_it_was_recorded(tmp_path: Path) -> None:
    lines = "0 f read 0 4096\n5 f trim 0 4096\n9000000 f write 8388608 4096\n"
    trace, study = tmp_path / "log", tmp_path / "study.toml"
    trace.write_text(f"fio version 3 iolog\n{lines}", encoding="utf-8")
    text = f"""
        format = 1
        id = "replayed"

        [[workload]]
        id = "replay"
        engine = "native"
        trace = "{trace}"
        filesize = "4m"

        [method]
        warmup = 0
        runtime = 2
    """
    study.write_text(text, encoding="utf-8")
    told = call("plan", str(study), "--path", str(tmp_path))
    printed = told.stdout + told.stderr
    assert told.returncode == 0, printed
    assert "1 trim left out" in printed
    assert "recorded on 9 MiB, replayed on 4 MiB" in printed


def test_a_long_trace_is_sent_in_pieces_that_a_message_holds(tmp_path: Path) -> None:
    count = CHUNK_RECORDS + 1
    lines = "".join(f"{number} f read 0 4096\n" for number in range(count))
    trace = trace_of(tmp_path, f"fio version 3 iolog\n{lines}")
    parts = list(chunks_of_trace(trace, 1 << 20, 1.0))
    assert [len(part) // RECORD.itemsize for part in parts] == [CHUNK_RECORDS, 1]
    assert trace_chunk_count(trace) == 2
    assert len(parts[0]) <= 1 << 20
