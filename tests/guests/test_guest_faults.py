"""What is refused of studies with guests: every fault with its line, all at once."""

from __future__ import annotations

from pathlib import Path

import pytest

from iolab.errors import StudyError
from iolab.guests.vm_table import NAME_BYTES, REQUESTS, RUNS
from iolab.hosts.channel import REQUESTS_MAX
from iolab.study.inventory import parse_inventory
from tests.guests.guest_studies import FLEET, GUESTS, LOADS, NODES, VM, with_hosts
from tests.study.studies import load, told, workload


def told_with(text: str, inventory: str, path: str | None = None) -> list[str]:
    """The faults of a study on the hosts of an inventory."""
    with pytest.raises(StudyError) as caught:
        with_hosts(text, inventory, path)
    return [str(fault) for fault in caught.value.faults]


@pytest.mark.parametrize(
    ("line", "fault"),
    [
        ("vcpus = 0", "vcpus of [vm] is 0."),
        ('memory = "64m"', "memory of [vm] is '64m'."),
        ("memory = 134217729", "is 134217729, which is not a multiple of 1048576."),
        ('disk = "1m"', "disk of [vm] is '1m'."),
        ("disk = 16777728", "disk of [vm] is 16777728, which is not a multiple of 4096."),
        ('disk_kind = "imag"', "disk_kind of [vm] is 'imag'. Did you mean 'image'?"),
        ('latency = "11s"', "latency of [vm] is '11s'."),
        ("iops = 0", "iops of [vm] is 0."),
        ("replicas = 17", "replicas of [vm] is 17."),
        ('accel = "hvf"', "accel of [vm] is 'hvf'."),
        ('pin = "core"', "pin of [vm] is 'core'. Did you mean 'cores'?"),
        ("boots = 0", "boots of [vm] is 0."),
        ('boot_limit = "1s"', "boot_limit of [vm] is '1s'."),
        ('kernel = "linux.deb"', "kernel of [vm] is 'linux.deb'."),
        ("cpus = 4", "Unknown key 'cpus' in [vm]. Did you mean 'vcpus'?"),
    ],
)
def test_keys_of_vm_have_limits(line: str, fault: str) -> None:
    key = line.split(" ", 1)[0]
    rest = "".join(one for one in VM.splitlines(keepends=True) if not one.startswith(f"{key} "))
    (found,) = told(f'format = 1\nid = "fleet"\n{LOADS}{NODES}{rest}{line}\n')
    assert found.startswith(("s.toml:20: ", "s.toml:21: "))
    assert fault in found


@pytest.mark.parametrize(
    ("lines", "fault"),
    [
        ('disk_kind = "modelled"', "s.toml:21: [vm] has disk_kind = 'modelled' but no latency."),
        ('latency = "1ms"', "s.toml:21: [vm] has a latency, but disk_kind = 'image'."),
        ("replicas = 3", "s.toml:21: [vm] has replicas = 3, but there are 2 nodes."),
        (
            "replicas = 2",
            "s.toml:11: Host 'node-1' has no storage_address, but [vm] has replicas = 2.",
        ),
        (
            'disk_kind = "modelled"\nlatency = "1ms"\nreplicas = 2',
            "s.toml:23: [vm] has replicas = 2, but a modelled disk holds nothing.",
        ),
        ('[[host]]\nname = "c"', "s.toml:21: Host 'c' is a client beside the guests"),
        (
            "[target]\nrotate = 1\nkeep_files = true",
            "s.toml:22: rotate of [target] does not go with [vm]",
        ),
        (
            "[target]\nrotate = 1\nkeep_files = true",
            "s.toml:23: keep_files of [target] does not go with [vm]",
        ),
        (
            '[target]\nfilesystem = "xfs"\nimage = "1g"',
            "s.toml:22: filesystem of [target] is 'xfs'",
        ),
        (
            '[[configuration]]\nid = "c"\ndevice = "/dev/sdz"\nserial = "1"',
            "s.toml:23: Configuration 'c' has a device",
        ),
        (
            '[precondition]\npurge = "recreate"',
            "s.toml:22: purge of [precondition] does not go with [vm]",
        ),
        (
            '[[workload]]\nid = "m"\nengine = "metadata"\nranks = 2\nfiles_per_rank = 9',
            "s.toml:21: Workload 'm' needs files",
        ),
        (
            '[[configuration]]\nid = "a"\npath = "/a"\n[[configuration]]\nid = "b"\npath = "/b"',
            "s.toml:24: Configuration 'b' and 'a'",
        ),
        (
            '[[host]]\nname = "hv"\nrole = "hypervisor"\ndevice = "/dev/sdz"\nserial = "1"',
            "s.toml:24: Host 'hv' has a device, but is a hypervisor.",
        ),
    ],
)
def test_what_does_not_go_with_guests_to_boot(lines: str, fault: str) -> None:
    path = None if 'path = "/a"' in lines else "/mnt/t"
    assert any(one.startswith(fault) for one in told(f"{FLEET}{lines}\n", path=path))


@pytest.mark.parametrize("key", ["vms_per_node", "hosts"])
def test_a_number_of_makers_that_is_none_is_a_fault_and_no_bug(key: str) -> None:
    axis = "vms_per_node = [1, 2, 3]"
    assert axis in FLEET
    found = told(FLEET.replace(axis, f'{key} = "many"'))
    assert any(f"{key} of workload" in fault and "'many'" in fault for fault in found)


def test_no_node_has_more_guests_than_its_agent_carries() -> None:
    assert load(FLEET.replace("[1, 2, 3]", "[1, 190]")).guests is not None
    (fault,) = told(FLEET.replace("[1, 2, 3]", "[1, 191]"))
    assert fault.startswith("s.toml:10: Workload 'w' has 191 guests")
    assert fault.endswith("Give at most 190.")
    (fault,) = told(f"{MIRRORED.replace('[1, 2, 3]', '[121]')}replicas = 2\n")
    assert "121 guests on each node" in fault
    assert fault.endswith("Give at most 120.")


MIRRORED = FLEET.replace('"hypervisor"', '"hypervisor"\nstorage_address = "192.0.2.7"')
HUNDRED = '[[host]]\nname = "node-[1-100]"\nrole = "hypervisor"\nstorage_address = "192.0.2.7"\n'
COPIES = FLEET.replace(NODES, HUNDRED).replace("[1, 2, 3]", "[6]")
ADAPTIVE = FLEET.replace("[1, 2, 3]", "[1, 2, 3, 4]\naxis = 'adaptive'")
REFUSED = {
    "replicas = 8, which are 4200 copies of 600": (f"{COPIES}replicas = 8\n",),
    "longer than 64 characters": (FLEET.replace("node-1", "n" * 60),),
    "replicas = 2, but there is 1 node.": (
        f'{MIRRORED}replicas = 2\n[[configuration]]\nid = "one"\nhosts = ["node-1"]\n',
    ),
    "s.toml:9: Workload 'w' uses 80 MiB of": (FLEET, "workload.*.numjobs=1,5"),
    "s.toml:11: [vm] boots guests, but": (FLEET.replace(NODES, ""),),
    "s.toml:8: Workload 'w' has vms_per_node, but": (workload("vms_per_node = [1, 2]"),),
    "1 value of vms_per_node. Give at least 4": (ADAPTIVE, "workload.*.vms_per_node=3"),
    "2 values of vms_per_node. Give at least 4": (ADAPTIVE, "workload.*.vms_per_node=1,2"),
    "7 nodes are 1001.": (FLEET.replace("node-1", "node-[3-8]"), "workload.*.vms_per_node=143"),
}


@pytest.mark.parametrize("message", REFUSED)
def test_guests_that_are_refused(message: str) -> None:
    (fault,) = told(*REFUSED[message])
    assert message in fault


@pytest.mark.parametrize("text", [f"{COPIES}replicas = 7\n", FLEET.replace("node-1", "n" * 59)])
def test_as_many_copies_and_as_long_names_as_there_can_be(text: str) -> None:
    assert load(text).guests is not None


def test_the_limits_are_those_of_agents_and_channels() -> None:
    agent = Path(__file__).parents[2] / "agent" / "src"
    assert f"MAX_RUNS: usize = {RUNS};" in (agent / "runs.rs").read_text()
    assert f"MAX_NAME_BYTES: usize = {NAME_BYTES};" in (agent / "guest.rs").read_text()
    assert REQUESTS_MAX == REQUESTS


@pytest.mark.parametrize(
    ("hosts", "fault"),
    [
        (
            '[[host]]\nname = "g"\nnode = "nod-1"\n',
            "s.toml:19: Host 'g' has node = 'nod-1', which is no host. Did you mean 'node-1'?",
        ),
        (
            '[[host]]\nname = "s"\nrole = "storage"\nnode = "node-1"\n',
            "s.toml:20: Host 's' has node = 'node-1', but the role 'storage'.",
        ),
        (
            '[[host]]\nname = "h"\nrole = "hypervisor"\nnode = "node-1"\n',
            "s.toml:20: Host 'h' has node = 'node-1', but the role 'hypervisor'.",
        ),
        (
            '[[host]]\nname = "s"\nrole = "storage"\n[[host]]\nname = "g"\nnode = "s"\n',
            "s.toml:22: Host 'g' has node = 's', which has the role 'storage'.",
        ),
        (
            '[[host]]\nname = "g"\nnode = "node-1"\ncores = 4\n',
            "s.toml:20: Host 'g' has cores, but the role 'client'.",
        ),
        (
            '[[host]]\nname = "h"\nrole = "hypervisor"\nstorage_address = "node-9"\n',
            "s.toml:20: storage_address of host 'h' is 'node-9'.",
        ),
    ],
)
def test_hosts_and_their_nodes(hosts: str, fault: str) -> None:
    assert any(one.startswith(fault) for one in told(FLEET.replace(VM, "") + hosts))


def test_an_inventory_by_itself_is_checked_for_nodes() -> None:
    with pytest.raises(StudyError) as caught:
        parse_inventory('format = 1\n[[host]]\nname = "g"\nnode = "n"\n', "fleet.toml")
    assert [fault.line for fault in caught.value.faults] == [4]


def test_more_guests_than_a_node_has() -> None:
    found = told_with(FLEET.replace("[1, 2, 3]", "[1, 4]"), GUESTS)
    for fault, node in zip(found, ("hv-1", "hv-2"), strict=True):
        assert fault.startswith("s.toml:10: ")
        assert f"vms_per_node = 4, but node '{node}' has 3 guests." in fault


def test_clients_of_no_node_beside_guests_that_exist() -> None:
    more = GUESTS + '[[host]]\nname = "c"\n'
    host, axis = told_with(FLEET, more)
    assert host.startswith("fleet.toml:10: Host 'c' is a client beside")
    assert axis.startswith("s.toml:10: Workload 'w' has vms_per_node = 3, but")


def test_ranges_of_nodes_divide_the_names() -> None:
    odd = GUESTS.replace("g[1-3]", "g1").replace('node = "hv-[1-2]"', 'node = "hv-[1-3]"')
    first = "fleet.toml:9: name of host 2 stands for 2 hosts, its node 'hv-[1-3]' for 3."
    assert told_with(FLEET, odd)[0].startswith(first)


def test_files_are_handed_on_in_the_smallest_fleet_too() -> None:
    assert with_hosts(f"{FLEET}[target]\nrotate = 1\n").target.rotate == 1
    (fault,) = told_with(f"{FLEET}[target]\nrotate = 2\n", GUESTS)
    assert fault.startswith("s.toml:22: rotate of [target] is 2, but")
    assert "Give from 1 to 1" in fault
