"""Rates against values worked out by hand, and every way in which counters misbehave."""

from __future__ import annotations

import numpy as np
import pytest
from msgspec.structs import replace

from iolab.core.samples import CounterTable
from iolab.hosts.rates import CounterSeries, derive_counter_series
from iolab.hosts.telemetry import CounterCollector
from iolab.record import field_names
from tests.hosts.samples import SECOND, START, Counts, sample, series, table


def values(one: CounterSeries) -> list[float]:
    return [float(value) for value in one.value]


def times_s(one: CounterSeries) -> list[float]:
    return [int(at - START) / SECOND for at in one.real_ns]


DISK_0 = {
    "read_ios": 1_000,
    "read_bytes": 4_096_000,
    "read_time_ns": 5_000_000_000,
    "write_ios": 10,
    "write_bytes": 100,
    "write_time_ns": 7,
    "busy_time_ns": 1_000_000_000,
    "queue_time_ns": 9_000_000_000,
    "temperature_mc": 40_500,
}
DISK_1 = {
    "read_ios": 1_400,
    "read_bytes": 4_096_000 + 400 * 4096,
    "read_time_ns": 5_200_000_000,
    "write_ios": 10,
    "write_bytes": 100,
    "write_time_ns": 7,
    "busy_time_ns": 2_000_000_000,
    "queue_time_ns": 17_000_000_000,
    "temperature_mc": 41_000,
}


def test_a_disk_over_two_seconds() -> None:
    found = series(sample(0, 0.0, disks={"d": DISK_0}), sample(1, 2.0, disks={"d": DISK_1}))
    one = {metric: values(s) for (scope, _, metric), s in found.items() if scope == "disk"}
    assert np.isnan(one.pop("write_lat_ns")).all()
    assert one == {
        "read_iops": [200.0],
        "read_bytes_per_s": [200 * 4096.0],
        "read_lat_ns": [500_000.0],
        "write_iops": [0.0],
        "write_bytes_per_s": [0.0],
        "queue_depth": [4.0],
        "busy_share": [0.5],
        "temperature_c": [40.5, 41.0],
    }
    assert times_s(found["disk", "d", "read_iops"]) == [2.0]
    assert times_s(found["disk", "d", "temperature_c"]) == [0.0, 2.0]


def test_busy_never_exceeds_the_time_there_was() -> None:
    busy = {**DISK_0, "busy_time_ns": DISK_0["busy_time_ns"] + 1_004_000_000}
    found = series(sample(0, 0.0, disks={"d": DISK_0}), sample(1, 1.0, disks={"d": busy}))
    assert values(found["disk", "d", "busy_share"]) == [1.0]


def core(user: int, system: int, idle: int, iowait: int = 0, steal: int = 0) -> Counts:
    return {
        "user_ns": user,
        "nice_ns": 0,
        "system_ns": system,
        "idle_ns": idle,
        "iowait_ns": iowait,
        "irq_ns": 0,
        "softirq_ns": 0,
        "steal_ns": steal,
    }


def test_cores_nodes_and_all_cores() -> None:
    none = core(0, 0, 0)
    found = series(
        sample(0, 0.0, cpu={(0, 0): none, (1, 0): none, (2, 1): none}),
        sample(
            1,
            1.0,
            cpu={
                (0, 0): core(50, 30, 10, 5, 5),
                (1, 0): core(0, 0, 100),
                (2, 1): core(100, 0, 0),
            },
        ),
    )
    assert values(found["cpu", "0@0", "user_share"]) == [0.5]
    assert values(found["cpu", "0@0", "system_share"]) == [0.3]
    assert values(found["cpu", "0@0", "iowait_share"]) == [0.05]
    assert values(found["cpu", "0@0", "steal_share"]) == [0.05]
    assert values(found["cpu", "0@0", "busy_share"]) == [0.85]
    assert values(found["cpu", "node0", "busy_share"]) == [85 / 200]
    assert values(found["cpu", "node1", "busy_share"]) == [1.0]
    assert values(found["cpu", "all", "busy_share"]) == [185 / 300]
    assert values(found["cpu", "all", "user_share"]) == [150 / 300]
    assert {name for scope, name, _ in found} == {"0@0", "1@0", "2@1", "node0", "node1", "all"}


def test_interrupts_are_system_time_and_nice_is_user_time() -> None:
    zero = dict.fromkeys(core(0, 0, 0), 0)
    later = {**zero, "nice_ns": 10, "irq_ns": 20, "softirq_ns": 30, "idle_ns": 40}
    found = series(sample(0, 0.0, cpu={(0, 0): zero}), sample(1, 1.0, cpu={(0, 0): later}))
    assert values(found["cpu", "0@0", "user_share"]) == [0.1]
    assert values(found["cpu", "0@0", "system_share"]) == [0.5]


def test_a_core_that_was_not_accounted_gives_no_share() -> None:
    none = core(0, 0, 0)
    found = series(sample(0, 0.0, cpu={(0, 0): none}), sample(1, 1.0, cpu={(0, 0): none}))
    assert found == {}


def test_idle_time_that_the_kernel_takes_back_is_no_reset() -> None:
    found = series(
        sample(0, 0.0, cpu={(0, 0): core(0, 0, 1_000, 500)}),
        sample(1, 1.0, cpu={(0, 0): core(90, 0, 1_010, 490)}),
    )
    assert values(found["cpu", "0@0", "user_share"]) == [0.9]
    assert values(found["cpu", "0@0", "iowait_share"]) == [0.0]


def test_a_core_that_goes_offline_leaves_the_others() -> None:
    pair = {(0, 0): core(0, 0, 0), (1, 0): core(0, 0, 0)}
    found = series(
        sample(0, 0.0, cpu=pair),
        sample(1, 1.0, cpu={(0, 0): core(100, 0, 0)}),
        sample(2, 2.0, cpu={(0, 0): core(150, 0, 50), (1, 0): core(0, 0, 100)}),
    )
    assert values(found["cpu", "all", "busy_share"]) == [1.0, 0.5]
    assert ("cpu", "1@0", "busy_share") not in found


def test_a_port() -> None:
    first = {"rx_bytes": 100, "tx_bytes": 5_000, "rx_frames": 1, "tx_frames": 2, "rx_drops": 0}
    later = {"rx_bytes": 350, "tx_bytes": 5_000, "rx_frames": 6, "tx_frames": 4, "rx_drops": 1}
    found = series(sample(0, 0.0, nics={"e": first}), sample(1, 0.5, nics={"e": later}))
    one = {metric: values(s) for (_, _, metric), s in found.items()}
    assert one == {
        "rx_bytes_per_s": [500.0],
        "tx_bytes_per_s": [0.0],
        "rx_frames_per_s": [10.0],
        "tx_frames_per_s": [4.0],
        "rx_drops_per_s": [2.0],
        "tx_drops_per_s": [0.0],
    }


def test_what_belongs_to_the_whole_host() -> None:
    found = series(
        sample(
            0,
            0.0,
            memory={"dirty_bytes": 7},
            pressure={"io_some_ns": 0, "cpu_some_ns": 0},
            thermal={"throttle_events": 4},
            agent={"cpu_ns": 0, "rss_bytes": 9},
        ),
        sample(
            1,
            2.0,
            memory={"dirty_bytes": 5},
            pressure={"io_some_ns": SECOND, "cpu_some_ns": 3 * SECOND},
            thermal={"throttle_events": 6},
            agent={"cpu_ns": SECOND // 50, "rss_bytes": 8},
        ),
    )
    assert {key[0]: values(s) for key, s in found.items() if key[0] in ("memory", "thermal")} == {
        "memory": [7.0, 5.0],
        "thermal": [1.0],
    }
    assert values(found["pressure", "", "io_some_share"]) == [0.5]
    assert values(found["pressure", "", "cpu_some_share"]) == [1.0]
    assert values(found["agent", "", "cpu_share"]) == [0.01]
    assert values(found["agent", "", "rss_bytes"]) == [9.0, 8.0]


def reads(*points: tuple[int, float, int | None]) -> list[dict[str, object]]:
    """Samples (seq, second, reads so far) of one disk; None: it is not there."""
    return [
        sample(
            seq,
            at_s,
            disks={} if ios is None else {"d": {"read_ios": ios}},
            agent={"rss_bytes": 1},
        )
        for seq, at_s, ios in points
    ]


def read_iops(*points: tuple[int, float, int | None]) -> tuple[list[float], list[float]]:
    one = series(*reads(*points)).get(("disk", "d", "read_iops"))
    return (times_s(one), values(one)) if one else ([], [])


@pytest.mark.parametrize(
    ("points", "ends", "iops"),
    [  # missed, late, fallen back, gone and come, seen once, alone, clock set back and ahead, twice
        ([(0, 0, 0), (1, 1, 100), (3, 3, 300), (4, 4, 500)], [1, 3, 4], [100, 100, 200]),
        ([(0, 0, 0), (1, 1, 100), (2, 2.5, 250), (3, 3, 300)], [1, 2.5, 3], [100, 100, 100]),
        ([(0, 0, 2**32 - 100), (1, 1, 2**32 - 50), (2, 2, 99), (3, 3, 109)], [1, 3], [50, 10]),
        ([(0, 0, 0), (1, 1, 10), (2, 2, None), (3, 3, 70), (4, 4, 90)], [1, 4], [10, 20]),
        ([(0, 0, None), (1, 1, 5), (2, 2, None)], [], []),
        ([(0, 0, 5)], [], []),
        ([(0, 0, 0), (1, 1, 10), (2, -3600, 20), (3, -3599, 30)], [1, -3599], [10, 10]),
        ([(0, 0, 0), (1, 1, 10), (2, 3602, 20), (3, 3603, 30)], [1, 3603], [10, 10]),
        ([(0, 0, 0), (1, 1, 10), (2, 1, 20), (3, 2, 30)], [1, 2], [10, 10]),
    ],
)
def test_a_rate_is_over_the_time_that_passed_or_is_none(
    points: list[tuple[int, float, int | None]], ends: list[float], iops: list[float]
) -> None:
    assert read_iops(*points) == (ends, iops)


def test_a_reset_voids_the_step_of_the_whole_device() -> None:
    found = series(
        sample(0, 0.0, disks={"d": {"read_ios": 5, "write_ios": 5}}),
        sample(1, 1.0, disks={"d": {"read_ios": 3, "write_ios": 900}}),
        sample(2, 2.0, disks={"d": {"read_ios": 4, "write_ios": 901}}),
    )
    assert values(found["disk", "d", "write_iops"]) == [1.0]


def test_a_value_that_is_sometimes_unknown_leaves_the_others() -> None:
    hot = {"read_ios": 1, "temperature_mc": 30_000}
    found = series(
        sample(0, 0.0, disks={"d": hot}),
        sample(1, 1.0, disks={"d": {"read_ios": 2, "temperature_mc": None}}),
    )
    assert values(found["disk", "d", "read_iops"]) == [1.0]
    assert values(found["disk", "d", "temperature_c"]) == [30.0]


def test_hosts_keep_their_own_clocks_and_names() -> None:
    collector = CounterCollector()
    for host, offset_s in ((1, 50.0), (0, 0.0)):
        for seq in range(3):
            ios = {"read_ios": seq * 10 * (host + 1)}
            collector.add(host, sample(seq, offset_s + seq, disks={"d": ios}))
    found = [
        s
        for s in derive_counter_series(collector.pop_table(), ("a", "b"))
        if s.metric == "read_iops"
    ]
    assert [(s.host, times_s(s), values(s)) for s in found] == [
        ("a", [1.0, 2.0], [10.0, 10.0]),
        ("b", [51.0, 52.0], [20.0, 20.0]),
    ]


def test_a_host_that_is_watched_twice_within_a_run_has_all_its_steps() -> None:
    """As each half of a checkpoint is: both begin with sample 0."""
    moments = [(0, 0.0), (1, 1.0), (2, 1.5), (0, 4.0), (1, 5.0), (2, 5.5)]
    found = series(
        *(sample(seq, at, disks={"d": {"read_ios": round(at * 10)}}) for seq, at in moments)
    )
    assert times_s(found["disk", "d", "read_iops"]) == [1.0, 1.5, 4.0, 5.0, 5.5]
    assert values(found["disk", "d", "read_iops"]) == [10.0] * 5


def test_series_are_ordered_by_host_scope_name_and_metric() -> None:
    disks = {"b": DISK_0, "a": DISK_0}
    found = derive_counter_series(
        table(
            sample(0, 0.0, disks=disks, agent={"cpu_ns": 1}),
            sample(1, 1.0, disks=disks, agent={"cpu_ns": 2}),
        ),
        ("h",),
    )
    keys = [(s.host, s.scope, s.name, s.metric) for s in found]
    assert keys == sorted(keys)
    assert len(set(keys)) == len(keys)


def test_rows_in_any_order_give_the_same() -> None:
    counters = table(*reads((0, 0, 0), (1, 1, 100), (2, 2, 300)))
    order = np.random.default_rng(3).permutation(len(counters))
    shuffled = CounterTable(*(getattr(counters, name)[order] for name in field_names(CounterTable)))
    one, other = derive_counter_series(counters, ("h",)), derive_counter_series(shuffled, ("h",))
    assert [s.value.tolist() for s in one if s.metric == "read_iops"] == [[100.0, 200.0]]
    assert [s.metric for s in one] == [s.metric for s in other]
    for mine, theirs in zip(one, other, strict=True):
        np.testing.assert_array_equal(mine.value, theirs.value)


def test_a_scope_that_is_not_known_is_left_out() -> None:
    counters = table(sample(0, 0.0, agent={"cpu_ns": 1}), sample(1, 1.0, agent={"cpu_ns": 2}))
    scope = np.full(len(counters), "weather", dtype=np.object_)
    assert derive_counter_series(replace(counters, scope=scope), ("h",)) == ()


def meters(seq: int, at_s: float, *rows: list[object]) -> dict[str, object]:
    """A message with readings of power meters alone, as it is made of those beside a host."""
    return {"seq": seq, "real_ns": START + round(at_s * SECOND), "power": list(rows)}


def test_watts_of_energy_also_once_around() -> None:
    package = "processors:package-0"
    energies = [90_000_000, 95_000_000, 3_000_000, 13_000_000]
    found = series(
        *(
            meters(seq, 0.5 * seq, [package, None, energy, 100_000_000])
            for seq, energy in enumerate(energies)
        )
    )
    one = found["power", package, "watts"]
    assert values(one) == [10.0, 16.0, 20.0]
    assert times_s(one) == [0.5, 1.0, 1.5]


def test_energy_that_was_reset_gives_no_watts() -> None:
    package = "processors:package-0"
    energies = (90_000_000_000, 0, 150_000_000)
    found = series(
        *(
            meters(seq, seq, [package, None, energy, 262_143_328_850])
            for seq, energy in enumerate(energies)
        )
    )
    assert values(found["power", package, "watts"]) == [150.0]


def test_energy_that_falls_without_a_range_gives_no_watts() -> None:
    energies = (5_000_000, 1_000_000, 2_000_000)
    found = series(
        *(meters(seq, seq, ["part:x", None, energy, None]) for seq, energy in enumerate(energies))
    )
    assert values(found["power", "part:x", "watts"]) == [1.0]


def test_watts_as_told_in_the_order_of_time_each_moment_once() -> None:
    told = [(1, 2.0, 7_500), (2, 1.0, 5_000), (3, 2.0, 7_500), (0, 3.0, 0)]
    found = series(*(meters(seq, at, ["node:bmc", mw, None, None]) for seq, at, mw in told))
    one = found["power", "node:bmc", "watts"]
    assert values(one) == [5.0, 7.5, 0.0]
    assert times_s(one) == [1.0, 2.0, 3.0]


def test_meters_of_their_own_moments_leave_other_rates_alone() -> None:
    found = series(
        {**sample(0, 0.0, disks={"d": DISK_0}), "power": [["node:a", 1_000, None, None]]},
        meters(1, 0.3, ["node:b", 2_000, None, None]),
        {**sample(1, 2.0, disks={"d": DISK_1}), "power": [["node:a", 3_000, None, None]]},
    )
    assert values(found["disk", "d", "read_iops"]) == [200.0]
    assert values(found["power", "node:a", "watts"]) == [1.0, 3.0]
    assert values(found["power", "node:b", "watts"]) == [2.0]
