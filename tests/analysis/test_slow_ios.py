"""What a host did while its slowest I/Os were under way."""

from __future__ import annotations

import numpy as np
import pytest
from msgspec.structs import replace

from iolab.analysis.slow_ios import has_slow_ios, slow_ios_of_run
from iolab.core.generator import SlowIo
from iolab.core.run import RunRecord
from iolab.core.samples import CounterTable
from tests.analysis.records import DEVICE, GO_NS, SECOND, facts_of, healthy
from tests.loads.fileio.test_checks_generator import generated

FACTS = {"c1": facts_of("c1")}
SLOW = SlowIo(
    at_ns=10 * SECOND,
    latency_ns=SECOND // 2,
    service_ns=SECOND // 2,
    operation="read",
    path="f",
    offset=4096,
    bytes=4096,
)


def counters(scope: str, name: str, values: dict[str, list[int]]) -> CounterTable:
    """Counters of the host, one sample a second from the start of the load on."""
    rows = [
        (0, seq, GO_NS + seq * SECOND, scope, name, metric, value)
        for metric, each in values.items()
        for seq, value in enumerate(each)
    ]
    columns = list(zip(*rows, strict=True))
    ints = [np.array(columns[at], dtype=np.int64) for at in (0, 1, 2, 6)]
    names = [np.array(columns[at], dtype=np.object_) for at in (3, 4, 5)]
    return CounterTable(
        ints[0].astype(np.int32),
        ints[1].astype(np.int32),
        ints[2],
        names[0],
        names[1],
        names[2],
        ints[3],
    )


def record(*slow: SlowIo, telemetry: CounterTable | None = None) -> RunRecord:
    made = generated(healthy(start_real_ns=GO_NS), slow_ios=slow)
    return made if telemetry is None else replace(made, counters=telemetry)


def meanwhile(telemetry: CounterTable, slow: SlowIo = SLOW) -> tuple[str, ...]:
    (one,) = slow_ios_of_run(record(slow, telemetry=telemetry), FACTS)
    return one.unusual_event_texts


def test_the_slowest_of_all_hosts_come_first() -> None:
    faster = replace(SLOW, latency_ns=1000, at_ns=3)
    found = slow_ios_of_run(record(faster, SLOW), FACTS)
    assert [one.io for one in found] == [SLOW, faster]
    assert (found[0].host, found[0].at_s) == ("c1", 10.0)
    assert slow_ios_of_run(record(faster, SLOW), FACTS, max_count=1)[0].io == SLOW


def test_a_run_without_any_has_none() -> None:
    assert slow_ios_of_run(healthy(), FACTS) == ()
    assert not has_slow_ios(healthy().hosts)
    assert has_slow_ios(record(SLOW).hosts)


@pytest.mark.parametrize(("second", "count"), [(10, 1), (11, 1), (20, 0)])
def test_writeback_is_told_of_the_seconds_in_question(second: int, count: int) -> None:
    values = [0] * 30
    values[second] = 64 << 20
    told = meanwhile(counters("memory", "", {"writeback_bytes": values}))
    assert sum("writeback of 64 MiB" in one for one in told) == count


def test_other_writes_on_the_targets_device_are_told() -> None:
    written = [min(max(seq - 9, 0), 3) * (100 << 20) for seq in range(30)]
    times = ("read_time_ns", "write_time_ns", "busy_time_ns", "queue_time_ns")
    still = dict.fromkeys(("read_bytes", "read_ios", "write_ios", *times), [0] * 30)
    disk = {**still, "write_bytes": written}
    told = meanwhile(counters("disk", DEVICE, disk))
    assert any("other writes" in one and DEVICE in one for one in told)
    late = replace(SLOW, at_ns=20 * SECOND)
    assert not meanwhile(counters("disk", DEVICE, disk), late)


def test_cores_that_slow_themselves_down_are_told() -> None:
    events = [0] * 10 + [7] * 20
    assert meanwhile(counters("thermal", "", {"throttle_events": events})) == (
        "cores throttled by heat",
    )
