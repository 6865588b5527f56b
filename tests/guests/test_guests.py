"""Studies of guests: which hosts they have, what their points are, and what is searched."""

from __future__ import annotations

import pytest

from iolab.core.host import HostRole, HostTransport, HypervisorHints
from iolab.errors import StudyError
from iolab.guests.guest import (
    GUEST_DISK,
    GUEST_SERIAL,
    Accelerator,
    GuestDiskKind,
    GuestSettings,
    Pinning,
)
from iolab.guests.hosts import image_directory, knee_guest_counts_per_node
from iolab.study.parse import StudyOverrides, overrides_for_resume
from iolab.study.schedule import adaptive_searches_of_points, expand_points, shared_data_sets
from iolab.study.targets import (
    hypervisors_of_study,
    load_host_names,
    monitored_host_specs,
    targets_of_study,
)
from tests.guests.guest_studies import FLEET, GUESTS, with_hosts
from tests.plans import make_plan, parse_study
from tests.study.studies import FILE, load

CURVE = FLEET.replace("[1, 2, 3]", '[1, 2, 3, 4, 6, 8, 12, 16, 24]\naxis = "adaptive"')


def test_guests_are_made_on_every_node_as_many_as_the_largest_point_wants() -> None:
    study = load(FLEET)
    guests = [spec for spec in study.hosts if spec.transport is HostTransport.VM]
    assert [spec.name for spec in guests] == [
        *("node-1-vm01", "node-1-vm02", "node-1-vm03"),
        *("node-2-vm01", "node-2-vm02", "node-2-vm03"),
    ]
    assert {spec.role for spec in guests} == {HostRole.CLIENT}
    assert {(spec.path, spec.serial) for spec in guests} == {(GUEST_DISK, GUEST_SERIAL)}
    assert [spec.hypervisor for spec in guests] == ["node-1"] * 3 + ["node-2"] * 3
    assert study.configurations[0].hosts == tuple(spec.name for spec in guests)
    assert [spec.name for spec in monitored_host_specs(study, "default")] == ["node-1", "node-2"]
    assert {node.name: image_directory(study, node) for node in hypervisors_of_study(study)} == {
        "node-1": "/mnt/t",
        "node-2": "/mnt/t",
    }


def test_all_keys_of_vm_are_read() -> None:
    more = (
        'disk_kind = "modelled"\nlatency = "10ms"\niops = 400\naccel = "tcg"\npin = "numa"\n'
        'boots = 3\nboot_limit = "1min"\nkernel = "/srv/linux-image.deb"\n'
    )
    assert load(FLEET).guests == GuestSettings(2, 256 << 20, 64 << 20)
    assert load(FLEET + more).guests == GuestSettings(
        vcpus=2,
        memory_bytes=256 << 20,
        disk_bytes=64 << 20,
        disk=GuestDiskKind.MODELLED,
        latency_ns=10_000_000,
        iops_limit=400,
        accelerator=Accelerator.TCG,
        pinning=Pinning.NUMA,
        boots_at_once=3,
        boot_limit_s=60.0,
        kernel="/srv/linux-image.deb",
    )


def test_points_say_how_many_guests_of_a_node_take_part() -> None:
    study = load(FLEET)
    points = expand_points(study)
    assert [(dict(point.axis_values)["iodepth"], point.per_node) for point in points] == [
        *((1, 1), (1, 2), (1, 3)),
        *((8, 1), (8, 2), (8, 3)),
    ]
    assert points[0].title_text == "w iodepth=1 vms_per_node=1"
    assert load_host_names(study, "default", 2) == (
        *("node-1-vm01", "node-1-vm02"),
        *("node-2-vm01", "node-2-vm02"),
    )
    assert len({point.digest for point in points}) == 6
    assert len(shared_data_sets(study, points)) == 1


def test_one_number_of_guests_is_an_axis_too_and_none_means_all() -> None:
    single = expand_points(load(FLEET, "workload.w.vms_per_node=2"))
    assert {(point.per_node, point.axis_values[-1]) for point in single} == {
        (2, ("vms_per_node", 2))
    }
    plain = load(FLEET.replace("vms_per_node = [1, 2, 3]\n", ""))
    assert {point.per_node for point in expand_points(plain)} == {0}
    assert [spec.name for spec in plain.hosts[2:]] == ["node-1-vm01", "node-2-vm01"]
    assert load(FLEET, "workload.*.vms_per_node=1,2").workloads[0].sweep[-1].values == (1, 2)


def test_a_point_is_the_same_whatever_larger_ones_there_are() -> None:
    few = expand_points(load(FLEET, "workload.w.vms_per_node=1"))
    assert few[0].digest == expand_points(load(FLEET))[0].digest
    other = expand_points(load(FLEET, "vm.vcpus=1"))
    assert other[0].digest != few[0].digest
    assert (
        expand_points(load(FLEET, "vm.kernel=/x.deb"))[0].digest
        == expand_points(load(FLEET))[0].digest
    )


def test_plans_differ_in_their_guests_and_where_these_lie() -> None:
    plans = [
        make_plan(load(FLEET)),
        make_plan(load(FLEET, "vm.iops=500")),
        make_plan(load(FLEET, path="/mnt/u")),
        make_plan(load(FLEET, "host.node-2.path=/mnt/u")),
    ]
    assert len({plan.digest for plan in plans}) == len(plans)
    assert {plan.destroyed_device_texts for plan in plans} == {()}


def test_configurations_name_nodes_and_measure_their_guests() -> None:
    two = (
        '[[configuration]]\nid = "one"\nhosts = ["node-[2-2]"]\npath = "/mnt/one"\n'
        '[[configuration]]\nid = "rest"\nhosts = ["node-1"]\npath = "/mnt/two"\n'
    )
    study = load(FLEET + two, path=None)
    assert [item.hosts[0] for item in study.configurations] == ["node-2-vm01", "node-1-vm01"]
    assert {node.name: image_directory(study, node) for node in hypervisors_of_study(study)} == {
        "node-2": "/mnt/one",
        "node-1": "/mnt/two",
    }


def test_nodes_of_no_configuration_boot_nothing() -> None:
    study = load(FLEET + '[[configuration]]\nid = "one"\nhosts = ["node-2"]\n')
    assert [node.name for node in hypervisors_of_study(study)] == ["node-2"]
    assert all(
        spec.hypervisor == "node-2" for spec in study.hosts if spec.transport is HostTransport.VM
    )


def test_a_node_may_have_a_path_of_its_own_and_needs_one_at_all() -> None:
    study = load(FLEET, "host.node-1.path=/fast")
    assert [image_directory(study, node) for node in hypervisors_of_study(study)] == [
        "/fast",
        "/mnt/t",
    ]


def test_guests_that_exist_take_the_place_of_those_to_boot() -> None:
    study = with_hosts(FLEET)
    assert study.guests is None
    assert study.configurations[0].hosts == (
        *("hv-1-g1", "hv-1-g2", "hv-1-g3"),
        *("hv-2-g1", "hv-2-g2", "hv-2-g3"),
    )
    assert {target.path for target in targets_of_study(study)} == {"/data"}
    assert [spec.hypervisor for spec in study.hosts[2:]] == ["hv-1"] * 3 + ["hv-2"] * 3
    assert load_host_names(study, "default", 1) == ("hv-1-g1", "hv-2-g1")


def test_configurations_may_name_the_nodes_of_guests_that_exist() -> None:
    two = '[[configuration]]\nid = "one"\nhosts = ["hv-2", "hv-1-g1"]\n'
    study = with_hosts(FLEET.replace("[1, 2, 3]", "1") + two)
    assert study.configurations[0].hosts == ("hv-2-g1", "hv-2-g2", "hv-2-g3", "hv-1-g1")


def test_an_inventory_tells_the_room_of_its_nodes_and_only_of_these() -> None:
    known = GUESTS.replace("[defaults]", "[defaults]\ncores = 64\nnuma_nodes = 8\nqueues = 128")
    study = with_hosts(FLEET, known)
    assert {node.hypervisor_hints for node in hypervisors_of_study(study)} == {
        HypervisorHints(64, 8, 128)
    }
    assert {spec.hypervisor_hints for spec in study.hosts if spec.hypervisor} == {HypervisorHints()}


def test_a_growing_fleet_is_the_axis_of_load_whatever_else_varies() -> None:
    study = load(CURVE)
    plan = make_plan(study)
    searches = adaptive_searches_of_points(study, plan.points)
    assert [(search.axis_names, search.fixed_axis_values) for search in searches] == [
        (("vms_per_node",), (("iodepth", 1),)),
        (("vms_per_node",), (("iodepth", 8),)),
    ]
    assert searches[0].axes == ((1, 2, 3, 4, 6, 8, 12, 16, 24),)
    assert [point.per_node for point in searches[0].initial_points] == [1, 2, 4, 8, 16, 24]
    assert len({spec.name for spec in study.hosts if spec.hypervisor == "node-1"}) == 24


def test_the_fleet_is_measured_where_the_load_of_its_nodes_may_turn() -> None:
    known = CURVE.replace('"hypervisor"', '"hypervisor"\ncores = 24\nnuma_nodes = 4', 1)
    study = load(known)
    assert study.workloads[0].search_goal.headline_loads == (3, 12)
    (search, _) = adaptive_searches_of_points(study, make_plan(study).points)
    assert [point.per_node for point in search.initial_points] == [1, 2, 3, 4, 8, 12, 16, 24]
    assert load(known, "workload.w.axis=listed").workloads[0].search_goal.headline_loads == ()


def test_forced_loads_are_the_first_listed_that_fill_what_is_known() -> None:
    loads = (1, 2, 4, 8, 16, 24)
    assert knee_guest_counts_per_node([HypervisorHints()], 4, loads) == ()
    assert knee_guest_counts_per_node([HypervisorHints(cores=64, numa_nodes=8)], 4, loads) == (
        2,
        16,
    )
    assert knee_guest_counts_per_node(
        [HypervisorHints(cores=64, numa_nodes=8, queues=20)], 4, loads
    ) == (
        2,
        8,
        16,
    )
    assert knee_guest_counts_per_node([HypervisorHints(cores=65)], 4, loads) == (24,)
    assert knee_guest_counts_per_node([HypervisorHints(cores=1000, queues=1)], 4, loads) == (1,)
    assert knee_guest_counts_per_node(
        [HypervisorHints(cores=8), HypervisorHints(cores=16)], 4, loads
    ) == (
        2,
        4,
    )


def test_a_session_finds_its_study_again() -> None:
    booted = load(FLEET, "vm.iops=100", "workload.*.vms_per_node=1,2")
    assert parse_study(booted.text, FILE, overrides_for_resume(booted)) == booted
    used = with_hosts(FLEET)
    assert parse_study(used.text, FILE, overrides_for_resume(used)) == used


def test_the_command_line_names_the_nodes_path_and_no_device() -> None:
    named = FLEET + '[target]\npath = "/file"\n'
    study = parse_study(named, FILE, StudyOverrides(path="/given"))
    assert {image_directory(study, node) for node in hypervisors_of_study(study)} == {"/given"}
    with pytest.raises(StudyError) as caught:
        parse_study(FLEET, FILE, StudyOverrides(device="/dev/sdz", serial="1"))
    (fault,) = caught.value.faults
    assert str(fault).startswith("--device: [target] has a device, but")
