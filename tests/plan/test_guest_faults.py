"""What is refused of studies with guests: every fault with its line, all at once."""

from __future__ import annotations

from pathlib import Path

import pytest

from iolab.errors import StudyError
from iolab.plan.guest_limits import NAME_BYTES, REQUESTS, RUNS
from iolab.plan.inventory import parse_inventory
from iolab.run.hosts.channel import MAX_REQUESTS
from tests.plan.guest_studies import FLEET, GUESTS, LOADS, NODES, VM, with_hosts
from tests.plan.studies import load, told, workload


def told_with(text: str, inventory: str, path: str | None = None) -> list[str]:
    """The faults of a study on the hosts of an inventory."""
    with pytest.raises(StudyError) as caught:
        with_hosts(text, inventory, path)
    return [str(fault) for fault in caught.value.faults]


def test_the_study_itself_has_none() -> None:
    assert load(FLEET).guests is not None


@pytest.mark.parametrize(
    ("line", "fault"),
    [
        ("vcpus = 0", "vcpus of [vm] is 0. Give a whole number from 1 to 255."),
        ('memory = "64m"', "memory of [vm] is '64m'. Give from 134217728 to 17592186044416"),
        ("memory = 134217729", "is 134217729, which is not a multiple of 1048576."),
        ('disk = "1m"', "disk of [vm] is '1m'. Give from 16777216 to"),
        ("disk = 16777728", "disk of [vm] is 16777728, which is not a multiple of 4096."),
        ('disk_kind = "imag"', "disk_kind of [vm] is 'imag'. Did you mean 'image'?"),
        ('latency = "11s"', "latency of [vm] is '11s'. Give at least 1e-06 and at most 10"),
        ("iops = 0", "iops of [vm] is 0."),
        ("replicas = 17", "replicas of [vm] is 17. Give a whole number from 1 to 16."),
        ('accel = "hvf"', "accel of [vm] is 'hvf'."),
        ('pin = "core"', "pin of [vm] is 'core'. Did you mean 'cores'?"),
        ("boots = 0", "boots of [vm] is 0."),
        ('boot_limit = "1s"', "boot_limit of [vm] is '1s'. Give at least 5"),
        ('kernel = "linux.deb"', "kernel of [vm] is 'linux.deb'. Give an absolute path"),
        ("cpus = 4", "Unknown key 'cpus' in [vm]. Did you mean 'vcpus'?"),
    ],
)
def test_keys_of_vm_have_limits(line: str, fault: str) -> None:
    key = line.split(" ", 1)[0]
    rest = "".join(one for one in VM.splitlines(keepends=True) if not one.startswith(f"{key} "))
    (found,) = told(f'format = 1\nid = "fleet"\n{LOADS}{NODES}{rest}{line}\n')
    assert found.startswith(("s.toml:20: ", "s.toml:21: "))
    assert fault in found


def test_vm_needs_its_sizes_and_brings_no_other_faults() -> None:
    assert sorted(told(FLEET.replace(VM, "[vm]\n"))) == [
        's.toml:17: [vm] has no disk. Write for example disk = "32g".',
        's.toml:17: [vm] has no memory. Write for example memory = "8g".',
        "s.toml:17: [vm] has no vcpus. Write for example vcpus = 4.",
    ]


@pytest.mark.parametrize(
    ("lines", "fault"),
    [
        (
            'disk_kind = "modelled"',
            "s.toml:21: [vm] has disk_kind = 'modelled' but no latency. Write what an I/O takes "
            "there, as latency = '10ms'.",
        ),
        (
            'latency = "1ms"',
            "s.toml:21: [vm] has a latency, but disk_kind = 'image'. Write disk_kind = 'modelled', "
            "or leave latency out: it is what would be measured.",
        ),
        (
            "replicas = 3",
            "s.toml:21: [vm] has replicas = 3, but there are 2 nodes. Give at most 2: each "
            "replica lies on a node of its own.",
        ),
        (
            "replicas = 2",
            "s.toml:11: Host 'node-1' has no storage_address, but [vm] has replicas = 2. Give the "
            "IP address at which the other nodes reach its disks.",
        ),
        (
            'disk_kind = "modelled"\nlatency = "1ms"\nreplicas = 2',
            "s.toml:23: [vm] has replicas = 2, but a modelled disk holds nothing. Leave replicas "
            "out.",
        ),
        (
            '[[host]]\nname = "c"',
            "s.toml:21: Host 'c' is a client beside the guests of [vm]. Write role = 'hypervisor' "
            "to boot guests there, or node = 'NAME' if it is a guest that exists already.",
        ),
        (
            "[target]\nrotate = 1\nkeep_files = true",
            "s.toml:22: rotate of [target] does not go with [vm]: guests' disks are made for the "
            "session. Leave rotate out.",
        ),
        (
            "[target]\nrotate = 1\nkeep_files = true",
            "s.toml:23: keep_files of [target] does not go with [vm]: guests' disks are made for "
            "the session. Leave keep_files out.",
        ),
        (
            '[target]\nfilesystem = "xfs"\nimage = "1g"',
            "s.toml:22: filesystem of [target] is 'xfs', but the guests of [vm] have bare disks. "
            "Leave filesystem out.",
        ),
        (
            '[[configuration]]\nid = "c"\ndevice = "/dev/sdz"\nserial = "1"',
            "s.toml:23: Configuration 'c' has a device, but nodes keep the disks of [vm] in a "
            "directory. Give a directory as the path.",
        ),
        (
            '[precondition]\npurge = "recreate"',
            "s.toml:22: purge of [precondition] does not go with [vm]: guests' disks are made "
            "anew. Leave purge out.",
        ),
        (
            '[[workload]]\nid = "m"\nengine = "metadata"\nranks = 2\nfiles_per_rank = 9',
            "s.toml:21: Workload 'm' needs files, but the guests of [vm] have bare disks. Leave "
            "it out, or measure it on guests that exist already.",
        ),
        (
            '[[configuration]]\nid = "a"\npath = "/a"\n[[configuration]]\nid = "b"\npath = "/b"',
            "s.toml:24: Configuration 'b' and 'a' keep the guests' disks of 'node-1' at two paths. "
            "Give both the same path, or each nodes of its own.",
        ),
        (
            '[[host]]\nname = "hv"\nrole = "hypervisor"\ndevice = "/dev/sdz"\nserial = "1"',
            "s.toml:24: Host 'hv' is a hypervisor and has a device. Give a directory as its path: "
            "guests' disks are files there.",
        ),
    ],
)
def test_what_does_not_go_with_guests_to_boot(lines: str, fault: str) -> None:
    path = None if 'path = "/a"' in lines else "/mnt/t"
    assert fault in told(f"{FLEET}{lines}\n", path=path)


def test_no_node_has_more_guests_than_its_agent_carries() -> None:
    assert load(FLEET.replace("[1, 2, 3]", "[1, 190]")).guests is not None
    assert told(FLEET.replace("[1, 2, 3]", "[1, 191]")) == [
        "s.toml:10: Workload 'w' has 191 guests on each node, more than one agent carries. Give "
        "at most 190."
    ]
    mirrored = FLEET.replace('"hypervisor"', '"hypervisor"\nstorage_address = "192.0.2.7"')
    (fault,) = told(f"{mirrored.replace('[1, 2, 3]', '[121]')}replicas = 2\n")
    assert "121 guests on each node, more than one agent carries with replicas = 2." in fault
    assert fault.endswith("Give at most 120.")


def test_a_session_has_no_more_copies_than_there_are_ports() -> None:
    node = '[[host]]\nname = "node-[1-100]"\nrole = "hypervisor"\nstorage_address = "192.0.2.7"\n'
    text = FLEET.replace(NODES, node).replace("[1, 2, 3]", "[6]")
    assert load(f"{text}replicas = 7\n").guests is not None
    (fault,) = told(f"{text}replicas = 8\n")
    assert "[vm] has replicas = 8, which are 4200 copies of 600 guests' disks." in fault


def test_guests_of_a_node_have_names_that_their_kernel_takes() -> None:
    assert load(FLEET.replace("node-1", "n" * 59)).guests is not None
    (fault,) = told(FLEET.replace("node-1", "n" * 60))
    assert "has guests whose names are longer than 64 characters." in fault


def test_the_limits_are_those_of_agents_and_channels() -> None:
    agent = Path(__file__).parents[2] / "agent" / "src"
    assert f"MAX_RUNS: usize = {RUNS};" in (agent / "runs.rs").read_text()
    assert f"MAX_NAME_BYTES: usize = {NAME_BYTES};" in (agent / "guest/settings.rs").read_text()
    assert MAX_REQUESTS == REQUESTS


def test_replicas_are_counted_in_each_configuration() -> None:
    one = '[[configuration]]\nid = "one"\nhosts = ["node-1"]\n'
    addresses = FLEET.replace('"hypervisor"', '"hypervisor"\nstorage_address = "192.0.2.7"')
    (fault,) = told(f"{addresses}replicas = 2\n{one}")
    assert "[vm] has replicas = 2, but there is 1 node." in fault


def test_a_disk_holds_the_files_of_its_jobs() -> None:
    assert told(FLEET, "workload.*.numjobs=1,5") == [
        "s.toml:9: Workload 'w' uses 80 MiB of each guest's disk, which has 64 MiB. Set a smaller "
        "filesize or numjobs, or a larger disk under [vm]."
    ]


def test_vm_without_a_hypervisor() -> None:
    assert told(FLEET.replace(NODES, "")) == [
        "s.toml:11: [vm] boots guests, but there is no hypervisor among the hosts. Write role = "
        "'hypervisor' and a name for each machine that guests live on."
    ]


def test_the_axis_without_guests() -> None:
    assert told(workload("vms_per_node = [1, 2]")) == [
        "s.toml:8: Workload 'w' has vms_per_node, but the study has no guests. Describe them under "
        "[vm], or give each guest of the inventory its node."
    ]


def test_hypervisors_without_guests_are_no_clients() -> None:
    found = told(FLEET.replace(VM, ""))
    assert any("Workload 'w' has vms_per_node, but the study has no guests." in f for f in found)
    assert any("Configuration 'default' has no client among its hosts." in f for f in found)


def test_nobody_writes_the_kind_of_guests_that_are_booted() -> None:
    text = workload('[[host]]\nname = "g"\nkind = "vm"')
    (fault,) = told(text)
    assert fault.startswith("s.toml:10: kind of host 'g' is 'vm'. ")
    with pytest.raises(StudyError):
        parse_inventory('format = 1\n[[host]]\nname = "g"\nkind = "vm"\n', "fleet.toml")


@pytest.mark.parametrize(
    ("hosts", "fault"),
    [
        (
            '[[host]]\nname = "g"\nnode = "nod-1"\n',
            "s.toml:19: Host 'g' has node = 'nod-1', which is no host. Did you mean 'node-1'?",
        ),
        (
            '[[host]]\nname = "s"\nrole = "storage"\nnode = "node-1"\n',
            "s.toml:20: Host 's' has node = 'node-1', but the role 'storage'. Leave node out: it "
            "says where a guest that makes load lives.",
        ),
        (
            '[[host]]\nname = "h"\nrole = "hypervisor"\nnode = "node-1"\n',
            "s.toml:20: Host 'h' has node = 'node-1', but the role 'hypervisor'. Leave node out: "
            "it says where a guest that makes load lives.",
        ),
        (
            '[[host]]\nname = "s"\nrole = "storage"\n[[host]]\nname = "g"\nnode = "s"\n',
            "s.toml:22: Host 'g' has node = 's', which has the role 'storage'. Name a hypervisor, "
            "or write role = 'hypervisor' for that host.",
        ),
        (
            '[[host]]\nname = "g"\nnode = "node-1"\ncores = 4\n',
            "s.toml:20: Host 'g' has cores, but the role 'client'. Leave cores out, or write role "
            "= 'hypervisor'.",
        ),
        (
            '[[host]]\nname = "h"\nrole = "hypervisor"\nstorage_address = "node-9"\n',
            "s.toml:20: storage_address of host 'h' is 'node-9'. Give an IP address, as "
            "'192.0.2.7'.",
        ),
    ],
)
def test_hosts_and_their_nodes(hosts: str, fault: str) -> None:
    assert fault in told(FLEET.replace(VM, "") + hosts)


def test_a_guest_of_no_hypervisor_at_all_is_told_what_is_missing() -> None:
    (fault,) = told(workload('[[host]]\nname = "g"\nnode = "n"'))
    assert fault == (
        "s.toml:10: Host 'g' has node = 'n', which is no host. Write role = 'hypervisor' and a "
        "name for each machine that guests live on."
    )


def test_an_inventory_by_itself_is_checked_for_nodes() -> None:
    with pytest.raises(StudyError) as caught:
        parse_inventory('format = 1\n[[host]]\nname = "g"\nnode = "n"\n', "fleet.toml")
    assert [fault.line for fault in caught.value.faults] == [4]


def test_a_misspelt_role_is_one_fault() -> None:
    (fault,) = told(FLEET + '[[host]]\nname = "c"\nrole = "hypervizor"\n')
    assert "Did you mean 'hypervisor'?" in fault


@pytest.mark.parametrize(("sizes", "said"), [("3", "1 value"), ("1,2", "2 values")])
def test_an_adaptive_fleet_of_few_sizes_is_told_of_its_sizes(sizes: str, said: str) -> None:
    adaptive = FLEET.replace("[1, 2, 3]", "[1, 2, 3, 4]\naxis = 'adaptive'")
    (fault,) = told(adaptive, f"workload.*.vms_per_node={sizes}")
    assert f"has axis = 'adaptive' but {said} of vms_per_node. Give at least 4, or write" in fault


def test_sizes_of_a_fleet_that_are_wrong_bring_no_fault_of_its_axis() -> None:
    adaptive = FLEET.replace("[1, 2, 3]", "[1, 1, 3]\naxis = 'adaptive'")
    (fault,) = told(adaptive)
    assert fault.endswith("has 1 twice. Give each value once.")


def test_more_guests_than_a_node_has() -> None:
    assert told_with(FLEET.replace("[1, 2, 3]", "[1, 4]"), GUESTS) == [
        "s.toml:10: Workload 'w' has vms_per_node = 4, but node 'hv-1' has 3 guests. Give at most "
        "3, or add guests.",
        "s.toml:10: Workload 'w' has vms_per_node = 4, but node 'hv-2' has 3 guests. Give at most "
        "3, or add guests.",
    ]


def test_clients_of_no_node_beside_guests_that_exist() -> None:
    more = GUESTS + '[[host]]\nname = "c"\n'
    assert told_with(FLEET, more) == [
        "fleet.toml:10: Host 'c' is a client beside the guests of [vm]. Write role = 'hypervisor' "
        "to boot guests there, or node = 'NAME' if it is a guest that exists already.",
        "s.toml:10: Workload 'w' has vms_per_node = 3, but some of its clients are guests of no "
        "node. Give each client its node, or leave those out that are no guests.",
    ]


def test_ranges_of_nodes_divide_the_names() -> None:
    odd = GUESTS.replace("g[1-3]", "g1").replace('node = "hv-[1-2]"', 'node = "hv-[1-3]"')
    assert told_with(FLEET, odd)[0] == (
        "fleet.toml:9: name of host 2 stands for 2 hosts, its node 'hv-[1-3]' for 3. Give each "
        "node as many hosts."
    )


def test_too_many_guests_are_refused_before_any_is_made() -> None:
    text = FLEET.replace('"node-1"', '"node-[3-8]"')
    (fault,) = told(text, "workload.*.vms_per_node=143")
    assert "143 guests on each of 7 nodes are 1001. Keep them at most 1000 in all." in fault


def test_nodes_of_guests_need_a_path() -> None:
    assert told(FLEET, path=None) == [
        "s.toml: There is no target path. Give --path DIR, or path = 'DIR' under [target]."
    ]


def test_a_node_with_two_paths() -> None:
    one = '[[configuration]]\nid = "c"\npath = "/a"\n'
    (fault,) = told(FLEET + one, "host.node-1.path=/b", path=None)
    assert (
        "Host 'node-1' of configuration 'c' has two target paths, '/a' and its own '/b'." in fault
    )


def test_all_faults_come_at_once() -> None:
    text = FLEET.replace("vcpus = 2", "vcpus = 0") + 'latency = "1ms"\n[target]\nrotate = 1\n'
    assert [line.split(" ", 1)[0] for line in told(text)] == [
        "s.toml:18:",
        "s.toml:21:",
        "s.toml:23:",
    ]


def test_an_adaptive_axis_of_guests_has_values_to_choose_from() -> None:
    few = FLEET.replace("[1, 2, 3]", '[1, 2, 3]\naxis = "adaptive"')
    assert "but 3 values of vms_per_node." in told(few)[0]


def test_files_are_handed_on_in_the_smallest_fleet_too() -> None:
    assert with_hosts(f"{FLEET}[target]\nrotate = 1\n").target.rotate == 1
    assert told_with(f"{FLEET}[target]\nrotate = 2\n", GUESTS) == [
        "s.toml:22: rotate of [target] is 2, but configuration 'default' has 2 clients in its "
        "smallest fleet. Give from 1 to 1: so far can a client's files be handed on."
    ]
