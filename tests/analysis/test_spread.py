"""How evenly and how much together hosts worked, against the plainest of sums."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from iolab.analysis.evenness import host_evenness_of_run, jain_index, max_over_min
from iolab.analysis.sums import sum_measured_window
from iolab.core.metric import HostEvenness
from iolab.core.run import HostRun, RunRecord
from tests.analysis.records import GO_NS, SECOND, Burst, bursts_record, healthy

MS = 1_000_000


def timed(host: HostRun, start_s: float, end_s: float, offset_ns: int = 0) -> HostRun:
    """A host whose engine tells these moments of the controller's clock, on its own clock."""
    return replace(
        host,
        start_real_ns=GO_NS + round(start_s * SECOND) + offset_ns,
        end_real_ns=GO_NS + round(end_s * SECOND) + offset_ns,
        clock_offset_ns=offset_ns,
    )


def record(spans: Sequence[tuple[float, float]], rates: Sequence[int] | None = None) -> RunRecord:
    """Hosts with these spans, each with a clock of its own, and these IOPS."""
    rates = rates or [1000] * len(spans)
    bursts = [[Burst(ios=rate, offset_ns=i * 3600 * SECOND)] for i, rate in enumerate(rates)]
    made = bursts_record(*bursts)
    hosts = tuple(
        timed(host, *span, offset_ns=i * 3600 * SECOND)
        for i, (host, span) in enumerate(zip(made.hosts, spans, strict=True))
    )
    return replace(made, hosts=hosts)


def found(made: RunRecord) -> HostEvenness:
    spread = host_evenness_of_run(made, sum_measured_window(made))
    assert spread is not None
    return spread


def test_starts_and_ends_are_the_engines_own_on_one_clock() -> None:
    spread = found(record([(0.0, 30.0), (0.2, 31.0), (0.05, 29.5)]))
    assert spread.start_skew_ns == 200 * MS
    assert spread.end_skew_ns == 1500 * MS
    assert spread.overlap == pytest.approx((29.5 - 0.2) / 31.0)
    assert spread.first_done_s == pytest.approx(29.5)
    assert spread.last_done_s == pytest.approx(31.0)


def test_the_slowest_and_the_fastest_are_named() -> None:
    spread = found(record([(0.0, 30.0)] * 3, rates=[1000, 4000, 500]))
    assert (spread.slowest, spread.fastest) == ("c3", "c2")
    assert spread.max_over_min == pytest.approx(8.0)
    assert spread.jain == pytest.approx(5500**2 / (3 * (1000**2 + 4000**2 + 500**2)))


def test_hosts_that_never_met_have_no_overlap() -> None:
    spread = found(record([(0.0, 10.0), (20.0, 30.0)]))
    assert spread.overlap == 0.0
    assert spread.start_skew_ns == 20 * SECOND


def test_intervals_stand_for_an_engine_that_tells_no_moments() -> None:
    made = bursts_record([Burst()], [Burst(start_s=0.5)])
    silent = tuple(replace(host, start_real_ns=None, end_real_ns=None) for host in made.hosts)
    spread = found(replace(made, hosts=silent))
    assert spread.start_skew_ns == 500 * MS
    assert spread.last_done_s == pytest.approx(30.5)


def test_drift_is_the_largest_with_its_sign() -> None:
    made = record([(0.0, 30.0)] * 3)
    assert found(made).drift_ns is None
    moved = [2 * MS, -5 * MS, None]
    hosts = tuple(
        replace(host, clock_offset_after_ns=None if by is None else host.clock_offset_ns + by)
        for host, by in zip(made.hosts, moved, strict=True)
    )
    assert found(replace(made, hosts=hosts)).drift_ns == -5 * MS


def test_one_host_and_a_host_without_load_have_no_spread() -> None:
    assert host_evenness_of_run(healthy(), sum_measured_window(healthy())) is None
    made = bursts_record([Burst()], [])
    without = replace(made.hosts[1], start_real_ns=None, end_real_ns=None)
    made = replace(made, hosts=(made.hosts[0], without))
    assert host_evenness_of_run(made, sum_measured_window(made)) is None


@settings(max_examples=30)
@given(st.lists(st.integers(min_value=0, max_value=10**9), min_size=1, max_size=40))
def test_the_indices_are_their_formulas(rates: list[int]) -> None:
    values = np.array(rates, dtype=np.float64)
    squares = sum(rate * rate for rate in rates)
    brute = sum(rates) ** 2 / (len(rates) * squares) if squares else 1.0
    assert jain_index(values) == pytest.approx(brute)
    assert 1 / len(rates) - 1e-9 <= jain_index(values) <= 1 + 1e-9
    if min(rates) == 0:
        assert max_over_min(values) is None
    else:
        assert max_over_min(values) == pytest.approx(max(rates) / min(rates))
