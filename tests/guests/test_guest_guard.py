"""What nodes must have before guests are booted there, and what guests cost."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from iolab.core.host import HostFacts, MemoryFacts, TargetProbe, ToolFacts
from iolab.guests.guest import KIT_BYTES, image_bytes_per_node
from iolab.guests.problems import (
    QEMU_BYTES,
    hypervisor_readiness_faults,
    node_targets,
    version_arguments_by_node_program,
)
from iolab.study.cost import with_free_space_margin
from tests.guests.guest_studies import FLEET, with_hosts
from tests.plans import make_plan
from tests.study.studies import SMALL, load
from tests.study.test_guard import FACTS, PROBE

GIB = 1 << 30
TOOLS = tuple(
    ToolFacts(name, f"/usr/bin/{name}", "1")
    for name in ("qemu-system-x86_64", "fio", "qemu-img", "qemu-nbd", "taskset")
)
NODE = replace(FACTS, tools=TOOLS, memory=MemoryFacts(8 * GIB, ()))
REPLICAS = FLEET.replace('"hypervisor"', '"hypervisor"\nstorage_address = "192.0.2.7"')


def machine(boot_id: str, facts: HostFacts = NODE) -> HostFacts:
    return replace(facts, kernel=replace(facts.kernel, boot_id=boot_id))


def both(facts: HostFacts = NODE) -> dict[str, HostFacts]:
    """Two nodes that are machines of their own."""
    return {"node-1": machine("a", facts), "node-2": machine("b", facts)}


def refused(
    facts: dict[str, HostFacts],
    *sets: str,
    text: str = FLEET,
    probes: dict[str, TargetProbe] | None = None,
) -> list[str]:
    study = load(text, *sets)
    return [
        str(fault) for fault in hypervisor_readiness_faults(study, make_plan(study), facts, probes)
    ]


def test_studies_that_boot_no_guests_ask_nothing_of_nodes() -> None:
    for study in (load(SMALL), with_hosts(FLEET)):
        assert version_arguments_by_node_program(study) == {}
        assert node_targets(study) == ()
        assert hypervisor_readiness_faults(study, make_plan(study), {}) == []


@pytest.mark.parametrize(
    ("text", "tools"),
    [
        (FLEET, ["qemu-system-x86_64", "fio"]),
        (FLEET + 'disk_kind = "modelled"\nlatency = "1ms"\n', ["qemu-system-x86_64"]),
        (FLEET + 'pin = "cores"\n', ["qemu-system-x86_64", "fio", "taskset"]),
        (REPLICAS + "replicas = 2\n", ["qemu-system-x86_64", "fio", "qemu-img", "qemu-nbd"]),
    ],
)
def test_nodes_are_asked_for_what_their_guests_need(text: str, tools: list[str]) -> None:
    study = load(text)
    assert list(version_arguments_by_node_program(study)) == tools
    assert [target.path for target in node_targets(study)] == ["/mnt/t", "/mnt/t"]
    for name in tools:
        lacking = replace(NODE, tools=tuple(tool for tool in TOOLS if tool.name != name))
        (fault,) = refused({**both(), "node-2": machine("b", lacking)}, text=text)
        assert f"no {name} on node 'node-2'" in fault


def test_a_node_that_told_nothing() -> None:
    (fault,) = refused({"node-1": NODE})
    assert fault.startswith("Node 'node-2' told nothing of itself.")


def test_nodes_of_another_architecture() -> None:
    arm = replace(NODE, kernel=replace(NODE.kernel, architecture="aarch64"))
    (fault, _) = refused(both(arm))
    assert fault.startswith("Node 'node-1' is of architecture 'aarch64'")


def test_memory_says_how_many_guests_fit() -> None:
    small = replace(NODE, memory=MemoryFacts(GIB, ()))
    for fault, node in zip(refused(both(small)), both(), strict=True):
        assert fault.startswith(f"Node '{node}' has 1 GiB")
        assert "take 1.31 GiB, and 2 would fit." in fault
    assert refused(both(small), "workload.*.vms_per_node=2") == []
    (fault, _) = refused(both(small), "vm.memory=8g")
    assert "and none would fit." in fault


def test_nodes_that_are_one_machine_share_its_memory() -> None:
    enough = replace(NODE, memory=MemoryFacts(2 * GIB, ()))
    assert refused(both(enough)) == []
    one = {name: machine("same", enough) for name in both()}
    (fault,) = refused(one)
    assert fault.startswith("Nodes 'node-1', 'node-2' are one machine")
    assert "take 2.62 GiB, and 2 would fit." in fault
    assert 2 * 2 * ((256 << 20) + QEMU_BYTES) < 0.9 * 2 * GIB


def with_free(free: int) -> HostFacts:
    assert NODE.target is not None
    return replace(NODE, target=replace(NODE.target, free_bytes=free))


def test_room_for_images_on_each_file_system() -> None:
    need = round((3 * (64 << 20) + KIT_BYTES) * 1.05) + (64 << 20) + 1
    assert refused(both(with_free(need))) == []
    (fault, _) = refused(both(with_free(need - 2)))
    assert fault.startswith("'/mnt/t' on node 'node-1' has 534 MiB")
    one = {name: machine("same", with_free(need)) for name in both()}
    (fault,) = refused(one)
    assert fault.startswith("'/mnt/t' on node 'node-1', which 'node-2' shares")


def test_copies_of_images_need_room_too_and_modelled_disks_none() -> None:
    study = load(REPLICAS + "replicas = 2\n")
    assert image_bytes_per_node(study, 3) == 2 * 3 * (64 << 20)
    assert len(refused(both(with_free(600 << 20)), text=REPLICAS + "replicas = 2\n")) == 2
    assert refused(both(with_free(600 << 20))) == []
    modelled = FLEET + 'disk_kind = "modelled"\nlatency = "1ms"\n'
    assert refused(both(with_free(400 << 20)), text=modelled) == []


def test_a_directory_that_is_missing_closed_or_in_memory() -> None:
    assert NODE.target is not None
    gone = replace(NODE, target=None)
    assert any("no directory '/mnt/t' on node" in f for f in refused(both(gone)))
    closed = replace(NODE, target=replace(NODE.target, writable=False))
    assert "written to '/mnt/t' on node 'node-1'" in refused(both(closed))[0]
    memory = replace(NODE, target=replace(NODE.target, in_memory=True, fs_type="tmpfs"))
    assert "'/mnt/t' on node 'node-1' is tmpfs" in refused(both(memory))[0]
    assert refused(both(memory), "target.allow_memory=true") == []


def test_what_trying_the_directory_told() -> None:
    busy = replace(PROBE, held_by="iolab session 7")
    probes = {"node-1": busy, "node-2": replace(PROBE, direct_error="EINVAL")}
    held, buffered = refused(both(), probes=probes)
    assert held.startswith("'/mnt/t' on node 'node-1' is held")
    assert "'iolab session 7'" in held
    assert buffered.startswith("'/mnt/t' on node 'node-2' takes no O_DIRECT: 'EINVAL'.")
    study = load(FLEET)
    owner = hypervisor_readiness_faults(
        study, make_plan(study), both(), {"node-1": busy}, owner="iolab session 7"
    )
    assert owner == []


def test_a_plan_whose_jobs_use_more_than_the_disks_have() -> None:
    wide = make_plan(load(FLEET, "vm.disk=80m", "workload.w.numjobs=5"))
    (fault,) = hypervisor_readiness_faults(load(FLEET), wide, both())
    assert {"64", "80"} <= {*fault.message.split()}


def test_the_budget_counts_kit_images_and_boots() -> None:
    study = load(FLEET)
    budget = make_plan(study).demand
    message = {" ".join(why.split()[:4]): seconds for why, seconds in budget.time_items}
    assert message["lay out 192 MiB"] == pytest.approx(3 * (64 << 20) / 200e6)
    assert message["boot 3 guests on"] == 6.0
    assert message["make what guests boot"] == 21.0
    assert message["6 runs: start in"] == 18.0
    reasons = make_plan(load(FLEET, "vm.accel=tcg", "vm.boots=3")).demand.time_items
    assert {seconds for why, seconds in reasons if "guests boot from" in why} == {15.0}
    assert {seconds for why, seconds in reasons if why.startswith("boot 3 guests")} == {3.0}
    assert "start" not in str(make_plan(load(FLEET, "vm.accel=kvm")).demand.time_items)
    assert budget.layout_bytes_per_host == 0
    assert budget.free_bytes_needed_per_host == with_free_space_margin(3 * (64 << 20) + KIT_BYTES)
    assert not any("fill" in reason for reason in message)


def test_only_guests_that_take_part_write_and_no_more_than_their_disks_do() -> None:
    def written(*sets: str) -> tuple[int, float]:
        cost = make_plan(load(FLEET, "method.warmup=0s", "method.runtime=10s", *sets)).demand
        return cost.write_bytes_estimate, cost.open_write_s

    images = 2 * 3 * (64 << 20)
    # Six points, 1, 2 and 3 guests on two nodes at both depths; three in ten I/Os are writes.
    limited, open_s = written("vm.iops=100")
    assert limited - images == pytest.approx(2 * (2 + 4 + 6) * 100 * 4096 * 0.3 * 10, rel=1e-6)
    assert open_s == 0
    # Without a limit a node writes as much however many guests it has.
    unlimited, open_s = written()
    assert unlimited == images
    assert open_s == pytest.approx(6 * 2 * 0.3 * 10)
