"""What is needed, as it is written."""

from __future__ import annotations

import pytest

from iolab.published.choose import LatencyNeed, Needs, RateNeed, named, parse_need


@pytest.mark.parametrize(
    ("text", "need"),
    [
        ("w >= 1M", RateNeed("w", "1/s", 1e6)),
        ("w>=250k", RateNeed("w", "1/s", 250e3)),
        ("w >= 1.5e6 IOPS", RateNeed("w", "1/s", 1.5e6)),
        ("w >= 20 ops/s", RateNeed("w", "1/s", 20.0)),
        ("w >= 50GB/s", RateNeed("w", "bytes/s", 50e9)),
        ("w >= 50 GiB/s", RateNeed("w", "bytes/s", 50 * 2.0**30)),
        ("w >= 900MB/s", RateNeed("w", "bytes/s", 900e6)),
        ("w p99 <= 2ms", LatencyNeed("w", "lat_ns_p99", 2e6)),
        ("w read p99.9 <= 500us", LatencyNeed("w", "read_lat_ns_p99_9", 500e3)),
        ("w mean <= 1s", LatencyNeed("w", "lat_ns_mean", 1e9)),
    ],
)
def test_needs_are_read(text: str, need: RateNeed | LatencyNeed) -> None:
    assert parse_need(text) == need


@pytest.mark.parametrize(
    "text", ["", "w", "w >= ", "w >= x", "w >= 0", "w <= 5", "w p98 <= 2ms", "w >= 5 GB", "w > 5"]
)
def test_what_is_no_need_is_told_with_its_words(text: str) -> None:
    with pytest.raises(ValueError, match="is no need; write"):
        parse_need(text)


def test_a_latency_is_named_as_it_is_written() -> None:
    need = parse_need("w read p99.99 <= 2ms")
    assert isinstance(need, LatencyNeed)
    assert named(need) == "read p99.99"
    assert Needs(latencies=(need,)).limits_of("w") == (need,)
    assert Needs(latencies=(need,)).limits_of("v") == ()
