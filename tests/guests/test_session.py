"""Sessions that boot guests: on all nodes, kept for all runs, gone in the end."""

from __future__ import annotations

from iolab.core.events import Notice, SessionStarted, SessionStatus
from iolab.core.run import RunStatus
from iolab.core.workload import Direction
from iolab.guests.guest import Accelerator, guest_fleet_of_run
from iolab.loads.fileio.engines.fio import NULL_FOLDER
from tests.fakes.script import FakeGuest, FakeScript
from tests.guests.fleet import NODES, boots_of, emulated, fleet


def test_guests_are_booted_once_and_as_many_take_part_as_the_point_says() -> None:
    stage = fleet().play()
    assert stage.status is SessionStatus.DONE, stage.fault
    one, two = stage.records
    assert [host.host for host in one.hosts] == ["node-1-vm01", "node-2-vm01"]
    assert len(two.hosts) == 4
    for node in NODES:
        names = [qemu.name for qemu in boots_of(stage, node)]
        assert sorted(names) == ["kvm-trial", f"{node}-vm01", f"{node}-vm02"]
    stage.assert_left_clean()
    (started,) = stage.notes.of(SessionStarted)
    assert set(dict(started.facts)) == {*NODES, *stage.vms}


def test_a_record_tells_what_each_node_served_its_guests() -> None:
    stage = fleet().play()
    record = stage.records[0]
    fleet_told = guest_fleet_of_run(record)
    assert fleet_told is not None
    assert fleet_told.per_node == 1
    assert fleet_told.idle == ("node-1-vm02", "node-2-vm02")
    assert fleet_told.settings == stage.study.guests
    for guest, host in zip(fleet_told.guests, record.hosts, strict=True):
        assert guest.guest == host.host
        assert guest.node == host.host.removesuffix("-vm01")
        assert guest.accelerator is Accelerator.KVM
        assert guest.booted_s is not None
        assert guest.booted_s >= 2
        reads, writes = guest.blocks
        assert reads.direction is Direction.READ
        assert reads.ios > 1000
        assert writes.bytes > 0
        assert guest.use is not None
        assert guest.use.vcpu_run_s > guest.use.vcpu_wait_s > 0


def test_guests_are_counted_at_every_interval_under_their_nodes() -> None:
    record = fleet().play().records[0]
    table = record.counters
    scope, names = table.scope.tolist(), table.name.tolist()
    of_guests = [index for index, word in enumerate(scope) if word == "guest"]
    assert {names[index] for index in of_guests} == {"node-1-vm01", "node-2-vm01"}
    hosts = {names[index]: record.host_names[table.host[index]] for index in of_guests}
    assert hosts == {"node-1-vm01": "node-1", "node-2-vm01": "node-2"}
    metric = table.metric.tolist()
    reads = [
        int(table.value[index])
        for index in of_guests
        if metric[index] == "read_ios" and names[index] == "node-1-vm01"
    ]
    assert len(reads) >= 5
    assert reads == sorted(reads)
    assert reads[-1] > reads[0]


def test_nodes_count_the_devices_below_their_path() -> None:
    for record in fleet().play().records:
        assert [item.host for item in record.monitored_hosts] == list(NODES)
        assert all(item.devices for item in record.monitored_hosts)


def test_where_kvm_does_not_boot_guests_are_emulated_and_it_is_said() -> None:
    stage = fleet(emulated, per_node="[1]").play()
    assert stage.status is SessionStatus.DONE, stage.fault
    (record,) = stage.records
    guest_fleet = guest_fleet_of_run(record)
    assert guest_fleet is not None
    assert {guest.accelerator for guest in guest_fleet.guests} == {Accelerator.TCG}
    told = [note.text for note in stage.notes.of(Notice) if "KVM" in note.text]
    for text, node in zip(told, NODES, strict=True):
        assert f"on node '{node}'" in text
        assert "emulated" in text
    argv = boots_of(stage, "node-1")[1].argv
    assert "-accel" in argv
    assert "tsc_early_khz=2300000 " in argv[argv.index("-append") + 1]


def test_where_kvm_is_slow_for_once_it_is_used_all_the_same() -> None:
    def slow(name: str, _: int) -> FakeGuest:
        return FakeGuest(boots_s=12.0 if name == "kvm-trial" else 2.0)

    (record,) = fleet(slow, per_node="[1]").play().records
    guest_fleet = guest_fleet_of_run(record)
    assert guest_fleet is not None
    assert {guest.accelerator for guest in guest_fleet.guests} == {Accelerator.KVM}


def test_images_are_laid_out_in_full_on_every_node_and_disks_not_written_again() -> None:
    stage = fleet().play()
    for node in NODES:
        host = stage.hosts[node]
        (layout,) = [run for run in host.asked("run") if "fio" in str(run["argv"])]
        assert str(layout["cwd"]).endswith(f"iolab-scratch-{node}")
        assert host.asked("scratch_close")
        for qemu in boots_of(stage, node):
            runs = [one for verb, one in qemu.agent.asked if verb == "run"]
            on_disks = [one for one in runs if one["cwd"] != NULL_FOLDER]
            assert len(on_disks) <= 2  # its measured runs alone


def test_modelled_disks_need_no_images() -> None:
    stage = fleet(vm='disk_kind = "modelled"\nlatency = "10ms"').play()
    assert stage.status is SessionStatus.DONE, stage.fault
    assert all(not stage.hosts[node].asked("extents") for node in NODES)


def test_a_study_that_wants_its_targets_filled_fills_the_disks_in_guests() -> None:
    text = fleet(per_node="[1]")
    text.text += "\n[precondition]\nfill = 2.0\n"
    stage = text.play()
    assert stage.status is SessionStatus.DONE, stage.fault
    (record,) = stage.records
    assert record.status is RunStatus.DONE
    assert [state.filled for state in record.states] == [2.0, 2.0]
    stage.assert_left_clean()


GUESTS = """
[[host]]
name = "guest-[1-4]"
kind = "command"
command = ["reach"]
node = "{node}"
"""


def test_guests_that_exist_are_used_and_their_places_told() -> None:
    stage = fleet(vm="")
    text = stage.text.replace("[target]", GUESTS.format(node="node-[1-2]") + "\n[target]")
    stage.text = text[: text.index("[vm]")] + text[text.index('[[host]]\nname = "node') :]
    stage.scripts = {name: FakeScript() for name in (*NODES, *(f"guest-{n}" for n in range(1, 5)))}
    stage.play()
    assert stage.status is SessionStatus.DONE, stage.fault
    one, two = (guest_fleet_of_run(record) for record in stage.records)
    assert one is not None
    assert two is not None
    assert one.settings is None
    assert one.per_node == 1
    assert {guest.node for guest in one.guests} == set(NODES)
    assert all(guest.accelerator is None and guest.blocks == () for guest in one.guests)
    assert len(one.idle) == 2
    assert len(two.guests) == 4
    assert stage.hosts["node-1"].asked("scratch_open") == []
    stage.assert_left_clean()
