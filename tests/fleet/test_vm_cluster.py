"""Guests on a small cluster, each disk on two nodes: every byte is found again below."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from iolab.core.metric import LatencyLayer
from iolab.core.run import RunRecord, RunStatus
from iolab.core.workload import Direction
from iolab.guests.guest import guest_fleet_of_run
from tests.e2e.guest_sessions import Stored, iolab, left_on, study, workload
from tests.fleet.cluster_bed import ClusterBed, cluster, listing

pytestmark = [pytest.mark.e2e, pytest.mark.long]

NODES = ("n1", "n2")
SLACK_BYTES = 2 << 20
"""What the file systems of two SSDs write by themselves in a few seconds."""


@pytest.fixture(scope="module")
def made() -> Iterator[ClusterBed]:
    with cluster(nodes=2, size_bytes=512 << 20) as bed:
        yield bed


@pytest.fixture(scope="module")
def stored(made: ClusterBed, tmp_path_factory: pytest.TempPathFactory) -> Stored:
    """A session with a guest on each node, whose disks lie on both."""
    folder = tmp_path_factory.mktemp("cluster")
    file = study(
        folder,
        'disk = "32m"\nreplicas = 2\niops = 100',
        workload("write", "randwrite"),
        workload("mix", "randrw", more="rwmixread = 70\n"),
    )
    words = ("run", file, "--hosts", made.inventory, "--out", folder / "S", "--report")
    iolab(*words)
    return Stored.at(folder / "S")


def served(record: RunRecord, direction: Direction, node: str = "") -> int:
    """Bytes that the hypervisors served, of all guests or those of a node."""
    guest_fleet = guest_fleet_of_run(record)
    assert guest_fleet is not None
    guests = guest_fleet.guest_runs_on_node(node) if node else guest_fleet.guests
    return sum(
        block.bytes for guest in guests for block in guest.blocks if block.direction is direction
    )


def sent(record: RunRecord, node: str) -> int:
    """Bytes that a node's port sent between its first sample and its last."""
    table = record.counters
    index = record.host_names.index(node)
    rows = np.flatnonzero(
        (np.asarray(table.host) == index)
        & (np.asarray(table.scope) == "nic")
        & (np.asarray(table.name) == "eth0")
        & (np.asarray(table.metric) == "tx_bytes")
    )
    values = np.asarray(table.value[rows])
    return int(values.max() - values.min())


def test_writes_of_guests_are_half_of_those_of_the_ssds(stored: Stored) -> None:
    for run, record, result in stored.runs():
        assert result.status is RunStatus.DONE, result.failure
        writes = served(record, Direction.WRITE)
        assert writes > 0
        each = {
            node.host: sum(one.write_bytes for one in node.devices)
            for node in record.monitored_hosts
        }
        assert set(each) == set(NODES)
        for node, moved in each.items():
            # Each SSD takes the writes of all guests: of its own and of those that it mirrors.
            assert moved == pytest.approx(writes, abs=SLACK_BYTES, rel=0.02), (run.point, node)


def test_reads_stay_on_the_guest_s_own_node(stored: Stored) -> None:
    record = next(record for run, record, _ in stored.runs() if run.point.workload == "mix")
    for node in record.monitored_hosts:
        moved = sum(one.read_bytes for one in node.devices)
        wanted = served(record, Direction.READ, node.host)
        assert wanted > 0
        assert moved == pytest.approx(wanted, abs=SLACK_BYTES, rel=0.02)


def test_ports_carry_each_write_once(stored: Stored) -> None:
    record = next(record for run, record, _ in stored.runs() if run.point.workload == "write")
    for node in NODES:
        own = served(record, Direction.WRITE, node)
        # Samples begin after the first second; headers and replies come on top.
        assert 0.5 * own < sent(record, node) < 2 * own + SLACK_BYTES


def test_the_account_comes_out_even(stored: Stored) -> None:
    for _, record, result in stored.runs():
        assert not stored.level_of(result, "guest-bytes").startswith("invalid")
        guest_fleet = guest_fleet_of_run(record)
        assert guest_fleet is not None
        for host, guest in zip(record.hosts, guest_fleet.guests, strict=True):
            assert host.totals is not None
            assert host.totals.write is not None
            (below,) = (one for one in guest.blocks if one.direction is Direction.WRITE)
            assert below.ios >= host.totals.write.ios > 0
            assert below.bytes >= host.totals.write.bytes > 0
        writes = served(record, Direction.WRITE)
        for node in result.nodes:
            assert node.bytes_written is not None
            assert node.bytes_written.factor == 2
            assert node.bytes_written.hypervisor == served(record, Direction.WRITE, node.name)
            assert node.bytes_written.devices == pytest.approx(writes, abs=SLACK_BYTES, rel=0.02)
            layers = {one.layer for one in node.layers if one.direction is Direction.WRITE}
            # On a very busy machine guests may have no second in common, and so no latencies.
            if result.window_s:
                assert {LatencyLayer.ENGINE, LatencyLayer.HYPERVISOR, LatencyLayer.DEVICE} <= layers


def test_outliers_are_of_what_a_node_has(stored: Stored) -> None:
    for _, _, result in stored.runs():
        for node in result.nodes:
            assert {one.scope for one in node.outliers} <= {"disk", "cpu", "nic"}


def test_nothing_is_left_on_any_node(stored: Stored, made: ClusterBed) -> None:
    assert len(stored.reader.committed_folder_by_run()) == 2
    for node in NODES:
        place = made.cluster.mount_point(node, 1)
        assert left_on(place) == []
        assert {entry.name for entry in Path(place).iterdir()} <= {"lost+found"}
        assert listing("ip", "netns", "pids", made.cluster.namespace(node)) == ""
