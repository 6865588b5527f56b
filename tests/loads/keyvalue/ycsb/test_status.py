"""Status lines of YCSB 0.17.0, in pieces of any size."""

from __future__ import annotations

import pytest

from iolab.core.limits import PROGRESS_LINE_BYTES_MAX
from iolab.loads.keyvalue.ycsb.output import YcsbStatus, YcsbStatusReader

LINES = (
    b"2026-11-21 02:08:23:710 0 sec: 0 operations; est completion in 0 second\n"
    b"2026-11-21 02:08:30:710 7 sec: 12306 operations; 3958 current ops/sec; est completion in "
    b"16 seconds [READ: Count=1961, Max=26831, Min=188, Avg=1937.83, 90=3911, 99=9247, "
    b"99.9=15775, 99.99=26831] [UPDATE: Count=39, Max=26831, Min=188, Avg=100, 90=3911] "
    b"[READ-MODIFY-WRITE: Count=39, Max=26831, Min=188, Avg=9999.5, 90=3911] \n"
    b"Starting test.\n"
    b"2026-11-21 02:08:31:710 8 sec: 12306 operations; 0 current ops/sec; [CLEANUP: Count=1, "
    b"Max=3, Min=3, Avg=3, 90=3]\n"
)
MEAN_NS = (1961 * 1_937_830 + 39 * 100_000) / 2000


@pytest.mark.parametrize("size", [1, 7, 1000])
def test_a_status_is_read_whatever_the_pieces(size: int) -> None:
    reader = YcsbStatusReader()
    pieces = [LINES[start : start + size] for start in range(0, len(LINES), size)]
    told = [status for piece in pieces for status in reader.feed(piece)]
    loaded, idle = told
    assert (loaded.elapsed_s, loaded.operations, loaded.ops_per_s) == (7, 12306, 3958.0)
    assert loaded.lat_ns_mean == pytest.approx(MEAN_NS)
    assert idle == YcsbStatus(8, 12306, 0.0, None)


def test_nonsense_without_an_end_is_not_kept() -> None:
    reader = YcsbStatusReader()
    assert reader.feed(b"x" * (3 * PROGRESS_LINE_BYTES_MAX)) == []
    assert reader.feed(b"\n" + LINES) != []


def test_numbers_that_are_none_are_passed_over() -> None:
    line = b"2026-11-21 02:08:30:710 7 sec: 1 operations; 3.9.5 current ops/sec;\n"
    assert YcsbStatusReader().feed(line) == []


@pytest.mark.parametrize("name", ["elapsed", "done", "rate", "count", "mean"])
def test_numbers_of_thousands_of_digits_are_none(name: str) -> None:
    fields = {"elapsed": b"7", "done": b"1", "rate": b"3.9", "count": b"1", "mean": b"2.5"}
    fields[name] = b"9" * 5000
    line = b"2026-11-21 02:08:30:710 %s sec: %s operations; %s current ops/sec; " % tuple(
        fields[key] for key in ("elapsed", "done", "rate")
    )
    line += b"[READ: Count=%s, Max=1, Min=1, Avg=%s]\n" % (fields["count"], fields["mean"])
    assert [status.lat_ns_mean for status in YcsbStatusReader().feed(line)] in ([], [None])
