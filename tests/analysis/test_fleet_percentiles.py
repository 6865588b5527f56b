"""Percentiles of a fleet against brute force over every latency of every host and job."""

from __future__ import annotations

import numpy as np
import pytest
from msgspec.structs import replace

from iolab.analysis.sums import sum_measured_window
from iolab.core.histogram import UPPER_NS, bin_index_of_ns
from iolab.core.workload import Direction
from tests.analysis.records import GO_NS, SECOND, Spell, facts_of, spell_record
from tests.judging import judge

# Each host has a latency of its own kind, so that no mean of percentiles could come near.
HOSTS = {"fast": (11.0, 0.2), "slow": (14.5, 0.3), "wild": (12.0, 1.6)}
SECONDS = 6
IOS = 40_000


def latencies() -> list[list[tuple[int, ...]]]:
    """By host and second."""
    random = np.random.default_rng(20)
    return [
        [
            tuple(np.exp(random.normal(mean, width, IOS // (1 + host))).astype(np.int64).tolist())
            for _ in range(SECONDS)
        ]
        for host, (mean, width) in enumerate(HOSTS.values())
    ]


@pytest.mark.parametrize("key", ["p50", "p99", "p99_5", "p99_9"])
def test_merged_percentiles_are_those_of_all_latencies_to_the_bin(key: str) -> None:
    made = latencies()
    spells = [
        Spell(host, second, Direction.READ, GO_NS + second * SECOND, SECOND, values)
        for host, seconds in enumerate(made)
        for second, values in enumerate(seconds)
    ]
    record = spell_record(spells, len(made))
    every = np.sort(np.concatenate([np.array(v) for seconds in made for v in seconds]))
    assert int(sum_measured_window(record).bins.sum()) == every.size
    percent = float(key.removeprefix("p").replace("_", "."))
    exact = int(every[int(np.ceil(every.size * percent / 100)) - 1])
    facts = {host.host: facts_of(host.host) for host in record.hosts}
    result = judge(record, facts)
    found = result.metrics[f"read_lat_ns_{key}"].value
    assert found is not None
    assert int(bin_index_of_ns([int(found)])[0]) == int(bin_index_of_ns([exact])[0])
    assert found <= UPPER_NS[int(bin_index_of_ns([exact])[0])]
    own = [host.metrics[f"read_lat_ns_{key}"].value or 0.0 for host in result.hosts]
    mean = sum(own) / len(own)
    assert int(bin_index_of_ns([int(mean)])[0]) != int(bin_index_of_ns([exact])[0])


def test_an_extreme_that_one_host_does_not_tell_is_known_of_none() -> None:
    """Nor is a percentile cut at it: the untold one may lie beyond."""
    made = [Spell(host, 0, Direction.READ, GO_NS, SECOND, (1000 + host, 3000)) for host in range(2)]
    record = spell_record(made, 2)
    whole = sum_measured_window(record).histogram([0, 1], [0])
    assert (whole.min_ns, whole.max_ns) == (1000, 3000)
    for silent in range(2):
        hosts = [replace(h, totals=None) if i == silent else h for i, h in enumerate(record.hosts)]
        mute = sum_measured_window(replace(record, hosts=tuple(hosts)))
        found = mute.histogram([0, 1], [0])
        assert (found.min_ns, found.max_ns) == (None, None)
        assert mute.histogram([1 - silent], [0]).max_ns == 3000
