"""Kernel counters that agree with a synthetic load."""

from __future__ import annotations

import numpy as np

from iolab.core.samples import CounterTable, IntervalTable
from iolab.hosts.counter_names import CPU, NIC

CORES = 4


def counters(table: IntervalTable, hosts: int, go_ns: int, seconds: int) -> CounterTable:
    """One sample a second on each host: a disk, four cores, a busy port, pressure, temperature."""
    rows: list[tuple[int, int, int, str, str, str, int]] = []
    for host in range(hosts):
        moved = np.zeros((seconds, 4), dtype=np.int64)
        mine = table.host == host
        for way in (0, 1):
            chosen = mine & (table.direction == way)
            np.add.at(moved[:, 2 * way], table.seq[chosen], table.ios[chosen])
            np.add.at(moved[:, 2 * way + 1], table.seq[chosen], table.bytes[chosen])
        total = np.vstack([np.zeros((1, 4), dtype=np.int64), np.cumsum(moved, axis=0)])
        for seq in range(seconds + 1):
            at = go_ns + seq * 1_000_000_000
            for scope, name, metric, value in _sample(seq, total[seq]):
                rows.append((host, seq, at, scope, name, metric, int(value)))
    columns = list(zip(*rows, strict=True))
    ints = [np.array(column, dtype=np.int64) for column in (*columns[:3], columns[6])]
    names = [np.array(column, dtype=np.object_) for column in columns[3:6]]
    return CounterTable(ints[0], ints[1], ints[2], names[0], names[1], names[2], ints[3])


def _sample(seq: int, total: np.ndarray) -> list[tuple[str, str, str, float]]:
    second = 1_000_000_000
    disk = {
        "read_ios": total[0],
        "read_bytes": total[1],
        "read_time_ns": total[0] * 80_000,
        "write_ios": total[2],
        "write_bytes": total[3],
        "write_time_ns": total[2] * 90_000,
        "busy_time_ns": 0.93 * seq * second,
        "queue_time_ns": (total[0] + total[2]) * 80_000,
        "temperature_mc": 41_000 + 90 * seq,
    }
    found: list[tuple[str, str, str, float]] = [
        ("disk", "nvme1n1", name, float(value)) for name, value in disk.items()
    ]
    for core in range(CORES):
        busy = (0.2 + 0.15 * core) * seq * second
        spent = dict.fromkeys(CPU, 0.0)
        spent |= {"user_ns": busy * 0.4, "system_ns": busy * 0.6, "idle_ns": seq * second - busy}
        found += [("cpu", f"{core}@0", name, value) for name, value in spent.items()]
    port = dict.fromkeys(NIC, 0.0) | {"rx_bytes": total[1] * 1.03, "tx_bytes": total[3] * 1.03}
    found += [("nic", "ens1f0np0", name, float(value)) for name, value in port.items()]
    return [*found, ("pressure", "", "io_some_ns", 0.31 * seq * second)]
