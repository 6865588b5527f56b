"""The account of bytes between clients and storage nodes."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from iolab.analysis.checks.bytes import check_bytes_moved
from iolab.analysis.checks.storage_bytes import check_storage_bytes
from iolab.analysis.storage_bytes import storage_byte_balance
from iolab.core.configuration import Redundancy
from iolab.core.host import HostFacts, HostRole
from iolab.core.metric import VerdictLevel
from iolab.core.run import DeviceDelta, MonitoredHost, RunRecord
from iolab.hosts.telemetry import CounterCollector
from iolab.loads.fileio.workload import Job
from tests.analysis.checks_on import INDICATIVE, INVALID, VALID, ask, level
from tests.analysis.records import GO_NS, JOB, MIXED, SECOND, WRITES, disk, facts_of, healthy

CLAIMED = 30 * 40_000 * 4096
THREE = Redundancy(3.0, 1.0)


def node(name: str, read: float, write: float, *, error: str | None = None) -> MonitoredHost:
    """A node whose disks `sda` and `sdb` moved these shares of the claimed bytes together."""
    half = [round(share * CLAIMED / 2) for share in (read, write)]
    disks = tuple(DeviceDelta(disk, half[0], half[1], 1, 1) for disk in ("sda", "sdb"))
    return MonitoredHost(name, HostRole.STORAGE, error, () if error else disks, 0, 0)


def run(*nodes: MonitoredHost, job: Job = JOB, redundancy: Redundancy | None = THREE) -> RunRecord:
    return replace(healthy(job), monitored_hosts=nodes, redundancy=redundancy)


@pytest.mark.parametrize(
    ("job", "read", "write", "expected"),
    [
        (JOB, 1.0, 0.0, VALID),
        (JOB, 0.91, 0.0, VALID),
        (JOB, 0.89, 0.0, INDICATIVE),
        (JOB, 0.51, 0.0, INDICATIVE),
        (JOB, 0.49, 0.0, INVALID),
        (JOB, 1.24, 0.0, VALID),
        (JOB, 1.27, 0.0, INDICATIVE),
        (JOB, 1.0, 0.5, INDICATIVE),
        (WRITES, 0.0, 3.0, VALID),
        (WRITES, 0.0, 2.69, INDICATIVE),
        (WRITES, 0.0, 0.1, INDICATIVE),
        (WRITES, 0.0, 3.8, INDICATIVE),
        (MIXED, 0.5, 1.5, VALID),
        (MIXED, 0.2, 1.5, INVALID),
    ],
)
def test_disks_move_the_claimed_bytes_times_the_factors(
    job: Job, read: float, write: float, expected: VerdictLevel
) -> None:
    record = run(node("s1", read / 2, write / 2), node("s2", read / 2, write / 2), job=job)
    answer = ask(check_storage_bytes, record)
    assert answer.level is expected, answer.message
    assert answer.evidence["disks_read_bytes"] == pytest.approx(read * CLAIMED, abs=8)
    assert answer.evidence["disks_write_bytes"] == pytest.approx(write * CLAIMED, abs=8)


def test_without_a_declaration_bytes_are_only_shown() -> None:
    answer = ask(check_storage_bytes, run(node("s1", 0.1, 9.0), redundancy=None))
    assert answer.level is None
    assert answer.evidence["disks_write_bytes"] == pytest.approx(9 * CLAIMED, abs=8)
    assert answer.evidence["expected_write_bytes"] is None


def test_a_node_that_was_not_counted_leaves_it_open() -> None:
    record = run(node("s1", 1.0, 0.0), node("s2", 0.0, 0.0, error="It broke off."))
    answer = ask(check_storage_bytes, record)
    assert answer.level is INDICATIVE
    assert "s2 were not counted" in answer.message


def test_without_nodes_and_with_a_hypervisor_there_is_nothing_to_hold() -> None:
    assert level(check_storage_bytes, healthy()) is None
    watching = replace(node("hv", 0.0, 0.0), role=HostRole.HYPERVISOR)
    assert storage_byte_balance(run(watching), {}) is None
    assert level(check_storage_bytes, run(watching)) is None


def test_disks_that_nodes_of_one_kernel_share_count_once() -> None:
    record = run(node("s1", 1.0, 0.0), node("s2", 1.0, 0.0))
    kernel = facts_of("s1").kernel
    facts = {name: replace(facts_of(name), kernel=kernel) for name in ("s1", "s2")}
    account = storage_byte_balance(record, facts)
    assert account is not None
    assert account.moved_read_bytes == pytest.approx(CLAIMED, abs=8)
    apart = storage_byte_balance(record, {name: facts_of(name) for name in ("s1", "s2")})
    assert apart is not None
    assert apart.moved_read_bytes == pytest.approx(2 * CLAIMED, abs=8)


def test_a_stack_of_a_node_counts_once() -> None:
    bare = node("s1", 1.0, 0.0)
    below = DeviceDelta("sdc", CLAIMED, 0, 1, 0)
    stack = replace(bare, devices=(*bare.devices, below))
    disks = (disk("sda", "sdc"), disk("sdb", "sdc"), disk("sdc"))
    for facts, level_ in (({}, INDICATIVE), ({"s1": replace(facts_of("s1"), disks=disks)}, VALID)):
        known = {"c1": facts_of("c1"), **facts}
        assert level(check_storage_bytes, run(stack), known) is level_


def test_ports_are_summed_from_first_to_last_sample_without_the_loopback() -> None:
    collector = CounterCollector()
    for at in range(5):
        ports = [
            ["eth0", at * 100, 0, 0, at * 7, 0, 0],
            ["eth1", at * 10, 0, 0, at, 0, 0],
            ["lo", at * 10**9, 0, 0, at * 10**9, 0, 0],
        ]
        sample = {"seq": at, "real_ns": GO_NS + at * SECOND, "nics": ports}
        collector.add(0, sample)
        collector.add(1, sample)
    record = replace(run(node("s1", 1.0, 0.0)), counters=collector.pop_table())
    account = storage_byte_balance(record, {})
    assert account is not None
    assert (account.node_bytes[0].received_bytes, account.node_bytes[0].sent_bytes) == (440, 32)


def network() -> dict[str, HostFacts]:
    return {"c1": facts_of("c1", device=None, devices=(), network=True, fs_type="nfs4")}


def test_storage_nodes_answer_for_clients_without_disks() -> None:
    record = run(node("s1", 1.0, 0.0))
    record = replace(record, hosts=(replace(record.hosts[0], devices=()),))
    assert level(check_bytes_moved, record, network()) is None
    assert level(check_bytes_moved, replace(record, redundancy=None), network()) is INDICATIVE
    assert level(check_bytes_moved, replace(record, monitored_hosts=()), network()) is INDICATIVE
