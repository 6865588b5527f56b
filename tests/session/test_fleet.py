"""A fleet of scripted hosts with full histograms: committed totals are the script's own truth."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import pytest
from bench.fleet_scale import study_of
from bench.full_script import VARIANTS, full_script, variant

from iolab.analysis.kinds import ANALYSIS_VERSION
from iolab.core.bins import BIN_COUNT
from iolab.core.events import Event, RunFinished, SessionStarted
from iolab.core.histogram import MIDDLE_NS, dense_counts
from iolab.core.host import HostFacts
from iolab.core.metric import RunResult
from iolab.core.run import RunRecord
from iolab.core.samples import Ints
from iolab.hosts.barrier import StopRequest
from iolab.hosts.host import Host
from iolab.registry import session_kinds
from iolab.session.session import run_session
from iolab.store.reader import SessionReader
from iolab.store.writer import SessionWriter
from tests.fakes.host import FakeHost
from tests.fakes.script import LoopClock
from tests.fakes.virtual_time import run_virtually
from tests.judging import judge
from tests.plans import make_plan

HOSTS = 24
SECONDS = 3
BLOCK_BYTES = 4096


@dataclass
class Keeper:
    """Judges and commits, as the command's own recorder does."""

    writer: SessionWriter
    facts: dict[str, HostFacts]
    results: list[RunResult]

    def emit(self, event: Event) -> None:
        if isinstance(event, SessionStarted):
            self.facts.update(event.facts)
        if isinstance(event, RunFinished):
            result = judge(event.record, self.facts)
            self.writer.commit_run(event.record, result, analysis_version=ANALYSIS_VERSION)
            self.results.append(result)


@dataclass(frozen=True)
class Committed:
    record: RunRecord
    result: RunResult
    truth: Ints
    """I/Os of (host, second, way, bin), as the scripts have them."""


@pytest.fixture(scope="module")
def committed(tmp_path_factory: pytest.TempPathFactory) -> Committed:
    study = study_of(HOSTS, SECONDS)
    plan = make_plan(study)
    hosts: dict[str, Host] = {
        spec.name: FakeHost(spec.name, full_script(number % VARIANTS))
        for number, spec in enumerate(study.hosts)
    }
    place = tmp_path_factory.mktemp("fleet") / "S"
    with SessionWriter.create(place, study, plan, "fleet", ()) as writer:
        keeper = Keeper(writer, {}, [])
        run_virtually(
            run_session(
                study,
                plan,
                hosts,
                keeper,
                StopRequest(),
                session_id="fleet",
                kinds=session_kinds(),
                clock=LoopClock(),
            )
        )
    record = SessionReader(place).record(plan.runs[0].point.digest, 1)
    kinds = [variant(number, SECONDS, BLOCK_BYTES).seconds for number in range(VARIANTS)]
    truth = np.stack([kinds[number % VARIANTS] for number in range(HOSTS)])
    return Committed(record, keeper.results[0], truth)


def test_every_io_of_every_second_is_kept(committed: Committed) -> None:
    table, bins = committed.record.intervals, committed.record.bins
    found = np.zeros(committed.truth.shape[:3], dtype=np.int64)
    np.add.at(found, (table.host, table.seq, table.direction), table.ios)
    np.testing.assert_array_equal(found, committed.truth.sum(axis=3))
    dense = np.zeros(committed.truth.shape, dtype=np.int64)
    np.add.at(dense, (bins.host, bins.seq, bins.direction, bins.bin), bins.count)
    np.testing.assert_array_equal(dense, committed.truth)
    assert int(table.bytes.sum()) == int(committed.truth.sum()) * BLOCK_BYTES


def test_the_fleets_rates_are_the_sum(committed: Committed) -> None:
    iops = committed.result.metrics["iops"].value
    assert iops == pytest.approx(committed.truth.sum() / SECONDS, rel=1e-9)
    moved = committed.result.metrics["bw_bytes_per_s"].value
    assert moved == pytest.approx(committed.truth.sum() * BLOCK_BYTES / SECONDS, rel=1e-9)


@pytest.mark.parametrize(
    ("key", "ways", "percent"),
    [
        ("lat_ns_p50", (0, 1), 50.0),
        ("lat_ns_p99", (0, 1), 99.0),
        ("read_lat_ns_p99_9", (0,), 99.9),
        ("write_lat_ns_p99_5", (1,), 99.5),
    ],
)
def test_percentiles_equal_brute_force(
    committed: Committed, key: str, ways: tuple[int, ...], percent: float
) -> None:
    """Every single latency of all hosts in one sorted list."""
    counts = committed.truth[:, :, list(ways), :].sum(axis=(0, 1, 2))
    assert counts.shape == (BIN_COUNT,)
    latencies = np.repeat(MIDDLE_NS, counts)
    rank = math.ceil(percent * latencies.size / 100 - 1e-6)
    assert committed.result.metrics[key].value == float(latencies[rank - 1])


def test_each_host_has_its_own_telemetry_and_output(committed: Committed) -> None:
    record = committed.record
    assert np.unique(record.counters.host).tolist() == list(range(HOSTS))
    assert len(record.outputs) == HOSTS
    assert not any(output.content.truncated for output in record.outputs)
    assert record.outputs[-1].content.decompress().count(b'"fio version"') == SECONDS
    assert dense_counts(record.bins.bin, record.bins.count).sum() == committed.truth.sum()
