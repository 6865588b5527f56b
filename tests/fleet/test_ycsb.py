"""Two clients of YCSB in two network namespaces: what is published is of both as of one.

Each has a database of its own on its own target. Percentiles of the record are held against the
logs of both, merged by HdrHistogram's own Python port.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from iolab.core.run import RunRecord
from iolab.loads.keyvalue.metrics import sum_key_value_operations
from iolab.loads.keyvalue.workload import KeyOperation, key_value_details_of_host
from iolab.store.reader import SessionReader
from tests.e2e.hdr_oracle import assert_agrees
from tests.e2e.sessions import iolab, write_study
from tests.fleet.bed import Bed, bed

pytestmark = [pytest.mark.e2e, pytest.mark.long]

STUDY = """
format = 1
id = "pair"
title = "Two clients"
question = "Are two clients one fleet?"

[[workload]]
id = "a"
engine = "ycsb"
mix = { read = 0.5, update = 0.5 }
records = 5000
threads = 2

[method]
warmup = "1s"
runtime = "3s"
settle = "0s"
idle_watch = 0
"""


@pytest.fixture(scope="module")
def pair() -> Iterator[Bed]:
    with bed(2) as made:
        yield made


@pytest.fixture(scope="module")
def record(pair: Bed, tmp_path_factory: pytest.TempPathFactory) -> RunRecord:
    folder = tmp_path_factory.mktemp("pair")
    session = folder / "session"
    iolab("run", write_study(folder, STUDY), "--hosts", pair.inventory, "--out", session)
    for name in pair.specs:
        pair.wait_until_alone(name)
        assert list((pair.fleet.folder(name) / "target").iterdir()) == []
    reader = SessionReader(session)
    (result,) = reader.results()
    return reader.record(result.digest, 1)


def test_merged_percentiles_are_those_of_all_operations(record: RunRecord) -> None:
    assert [host.host for host in record.hosts] == ["c01", "c02"]
    for operation in (KeyOperation.READ, KeyOperation.UPDATE):
        merged = assert_agrees(record, operation)
        counts = [
            one.completed
            for host in record.hosts
            if (told := key_value_details_of_host(host)) is not None
            for one in told.counts
            if one.operation is operation
        ]
        assert merged == sum(counts)
        assert all(counts)


def test_the_clients_had_all_of_the_runtime_in_common(record: RunRecord) -> None:
    load = sum_key_value_operations(record)
    assert load.measured_part.common_window is not None
    # A client's first and last operation lie within its runtime, by milliseconds.
    assert load.measured_part.common_window.seconds >= 2.9
    assert all(seconds >= 2.5 for seconds in load.seconds)
