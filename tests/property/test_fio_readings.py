"""Whatever fio prints, the reader neither raises nor gives a negative or a lost count."""

from __future__ import annotations

from itertools import pairwise

from hypothesis import given, settings
from hypothesis import strategies as st

from iolab.hosts.engine import ParsedEngineOutput
from iolab.hosts.intervals import IntervalCollector
from iolab.loads.fileio.engines.fio_reader import FioOutputReader
from tests.loads.fileio.fixtures import BOTH, output, read

RAW = output("mixed-rate-3.42")
LIMITED = settings(max_examples=25)


def check(result: ParsedEngineOutput) -> None:
    for interval in result.intervals:
        assert interval.span_ns >= 0
        for part in interval.directions:
            assert part.ios >= 0
            assert part.bytes >= 0
            assert part.lat_sum_ns >= 0
            assert part.ios == part.counts.sum()
            assert (part.counts > 0).all()
    collector = IntervalCollector()
    collector.add(0, result.intervals)
    assert collector.build_interval_table().ios.sum() == collector.pop_bin_table().count.sum()


@LIMITED
@given(st.lists(st.integers(min_value=1, max_value=len(RAW)), max_size=8))
def test_any_cut_into_pieces_gives_the_same(cuts: list[int]) -> None:
    reader = FioOutputReader(BOTH, 2)
    edges = [0, *sorted(cuts), len(RAW)]
    for start, end in pairwise(edges):
        reader.feed(RAW[start:end])
    whole, result = read(RAW), reader.finish()
    assert result.totals == whole.totals
    assert [i.ios for i in result.intervals] == [i.ios for i in whole.intervals]


@LIMITED
@given(
    st.lists(
        st.tuples(st.integers(min_value=0, max_value=len(RAW) - 1), st.binary(max_size=3)),
        min_size=1,
        max_size=6,
    )
)
def test_damaged_output_is_read_as_far_as_it_goes(damage: list[tuple[int, bytes]]) -> None:
    raw = bytearray(RAW)
    for where, what in damage:
        raw[where : where + len(what)] = what
    check(read(bytes(raw)))


@LIMITED
@given(st.binary(max_size=2000))
def test_any_bytes_are_read_as_nothing(raw: bytes) -> None:
    result = read(raw)
    assert result.intervals == ()
    assert result.faults != ()


@LIMITED
@given(st.integers(min_value=0, max_value=len(RAW)))
def test_output_cut_anywhere_keeps_what_was_complete(end: int) -> None:
    result, whole = read(RAW[:end]), read(RAW)
    assert [i.ios for i in result.intervals] == [i.ios for i in whole.intervals][
        : len(result.intervals)
    ]
    check(result)
