"""Whatever counters do, rates are finite, never negative, and add up to what was counted."""

from __future__ import annotations

from itertools import accumulate

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.hosts.samples import SECOND, START, sample, series

COUNT = st.integers(min_value=0, max_value=2**62)
ROUND = st.tuples(
    st.floats(min_value=-10, max_value=1e5),
    st.none() | st.tuples(COUNT, COUNT, COUNT, COUNT),
)


@given(st.lists(ROUND, max_size=8))
def test_no_rate_is_negative_or_beyond_what_was_counted(
    rounds: list[tuple[float, tuple[int, int, int, int] | None]],
) -> None:
    names = ("read_ios", "read_time_ns", "busy_time_ns", "queue_time_ns")
    samples = [
        sample(seq, at_s, disks={"d": dict(zip(names, row, strict=True))} if row else {})
        for seq, (at_s, row) in enumerate(rounds)
    ]
    for (_, _, metric), one in series(*samples).items():
        values = one.value[~np.isnan(one.value)] if metric.endswith("lat_ns") else one.value
        assert np.isfinite(values).all()
        assert (values >= 0).all()
        if metric == "busy_share":
            assert (values <= 1).all()


@given(
    st.lists(
        st.tuples(
            st.floats(min_value=0.5, max_value=2.0), st.integers(min_value=0, max_value=10**9)
        ),
        min_size=1,
        max_size=20,
    )
)
def test_rates_times_spans_are_what_was_counted(steps: list[tuple[float, int]]) -> None:
    moments = list(accumulate((span for span, _ in steps), initial=0.0))
    counts = list(accumulate((grown for _, grown in steps), initial=5))
    found = series(
        *(
            sample(seq, at_s, disks={"d": {"read_ios": count}})
            for seq, (at_s, count) in enumerate(zip(moments, counts, strict=True))
        )
    )
    one = found["disk", "d", "read_iops"]
    spans = np.diff(np.concatenate([[START], one.real_ns])) / SECOND
    assert float((one.value * spans).sum()) == pytest.approx(counts[-1] - 5, rel=1e-9, abs=1e-6)


CORE = st.tuples(*[st.integers(min_value=0, max_value=10**12)] * 8)


@given(st.lists(st.tuples(CORE, CORE), min_size=1, max_size=8))
def test_all_cores_lie_between_the_least_and_the_most_busy(
    cores: list[tuple[tuple[int, ...], tuple[int, ...]]],
) -> None:
    names = (
        *("user_ns", "nice_ns", "system_ns", "idle_ns"),
        *("iowait_ns", "irq_ns", "softirq_ns", "steal_ns"),
    )
    first = {(i, i % 2): dict(zip(names, row, strict=True)) for i, (row, _) in enumerate(cores)}
    later = {
        (i, i % 2): {name: a + b for name, a, b in zip(names, row, grown, strict=True)}
        for i, (row, grown) in enumerate(cores)
    }
    found = series(sample(0, 0.0, cpu=first), sample(1, 1.0, cpu=later))
    each = [
        one.value[0]
        for (_, name, metric), one in found.items()
        if metric == "busy_share" and "@" in name
    ]
    if each:
        together = found["cpu", "all", "busy_share"].value[0]
        assert min(each) - 1e-12 <= together <= max(each) + 1e-12
