"""The tables of what hosts are."""

from __future__ import annotations

from msgspec.structs import replace

from iolab.core.host import CgroupDeviceIoLimit, MachineFacts
from iolab.core.kubernetes import PodFacts
from iolab.report.hardware import (
    demonstration_answer_prefix,
    group_identical_hosts,
    hardware_fact_rows,
    hardware_tables,
    host_table,
    measured_storage_caveat,
    stacked_devices_text,
)
from tests.facts import tells
from tests.report.machines import facts_of
from tests.report.studies import one_configuration
from tests.report.synthetic import study_of

EC2 = MachineFacts("Amazon EC2", "i4i.2xlarge", "i-1")


def test_the_machine_stands_in_a_hosts_table_where_it_is_told() -> None:
    untold = facts_of("a")
    told = replace(untold, machine=EC2)
    rows = {cells[0].text: cells[1].text for cells in host_table(told).rows}
    assert rows["Machine"] == "Amazon EC2 i4i.2xlarge"
    assert "Machine" not in {cells[0].text for cells in host_table(untold).rows}


def test_instances_of_two_types_stand_side_by_side() -> None:
    small = replace(EC2, product="i4i.xlarge")
    facts = {
        name: replace(facts_of(name), machine=machine)
        for name, machine in (("a", EC2), ("b", EC2), ("c", small))
    }
    study = study_of("s", "S", "?", one_configuration(*facts), ())
    (table,) = hardware_tables(study, facts)
    (row,) = (cells for cells in table.rows if cells[0].text == "Machine")
    assert row[1].text == "Amazon EC2 i4i.2xlarge (a and b); Amazon EC2 i4i.xlarge (c)"
    assert [names for names, _ in group_identical_hosts(facts)] == [["a", "b"], ["c"]]


def test_a_pod_tells_its_node_volume_and_limits() -> None:
    plain = facts_of("a")
    assert plain.target is not None
    pod = PodFacts(
        *("bench", "fast-0", "node1", "Guaranteed"),
        cpu_limit="2",
        memory_limit="1Gi",
        storage_class="fast",
        provisioner="csi.example",
        parameters=(("type", "ssd"),),
        volume_kind="csi.example",
        volume_id="vol-1",
        pods_on_node=3,
    )
    facts = replace(
        plain,
        pod=pod,
        memory=replace(plain.memory, limit_bytes=1 << 30),
        io_limits=(
            CgroupDeviceIoLimit(plain.target.devices[-1], read_iops=2000),
            CgroupDeviceIoLimit("another", read_iops=1),
        ),
    )
    rows = {cells[0].text: cells[1].text for cells in host_table(facts).rows}
    for part in ("node1", "Guaranteed", "CPU limit 2", "memory limit 1Gi", "3 other pods"):
        assert part in rows["Pod"]
    for part in ("class fast", "csi.example", "type=ssd", "vol-1"):
        assert part in rows["Volume"]
    assert "1 GiB" in rows["Memory"]
    assert rows["I/O limits"].startswith(plain.target.devices[-1])
    assert "another" not in rows["I/O limits"]
    names = {cells[0].text for cells in host_table(plain).rows}
    assert not names & {"Pod", "Volume", "I/O limits"}


def test_a_stated_drive_that_is_not_below_the_target_is_a_caveat() -> None:
    host = facts_of("a")  # its target is on a Micron 7450
    (owner,) = one_configuration("a")

    def caveat(stated: str) -> str:
        rows = (("SSD", stated), ("SSDs", "8 for each node"))
        study = study_of("s", "S", "?", (replace(owner, hardware=rows),), ())
        return measured_storage_caveat(study, {"a": host})

    assert tells(caveat("Micron 9400 PRO 7.68TB"), "9400", "7450", "Check")
    assert not caveat("Micron 7450 PRO 7.68TB")
    assert not caveat("two NVMe drives of 7.68 TB")  # no model to compare


def test_what_lives_in_a_file_and_has_limits_is_told_first() -> None:
    host = facts_of("a")
    assert host.target is not None
    drive = host.disks[0]
    loop = replace(drive, name="loop1", model=None, size_bytes=700 << 20, parents=(drive.name,))
    target = replace(host.target, devices=("loop1", drive.name))
    on_loop = replace(host, target=target, disks=(loop, drive))
    limited = replace(on_loop, io_limits=(CgroupDeviceIoLimit("loop1", read_iops=3000),))
    (owner,) = one_configuration("a")
    plain = replace(study_of("s", "S", "?", (owner,), ()), scale="full")
    named = replace(owner, hardware=(("SSD", "A capacity 7.68 TB"),))
    stated = replace(plain, configurations=(named,))

    assert not measured_storage_caveat(plain, {"a": host})
    told = measured_storage_caveat(plain, {"a": on_loop})
    assert tells(told, "loop1 (700 MiB, virtual)", "not on drives")
    assert "limits" not in told
    assert drive.name not in told
    assert tells(measured_storage_caveat(plain, {"a": limited}), "loop1", "with I/O limits set")
    assert not demonstration_answer_prefix(plain, {"a": host})
    assert demonstration_answer_prefix(plain, {"a": on_loop}).startswith(
        "Demonstration, not drives"
    )
    assert tells(demonstration_answer_prefix(stated, {"a": on_loop}), "not the stated drives")
    vda = replace(drive, name="vda", model=None, parents=())
    rented = replace(host, target=replace(host.target, devices=("vda",)), disks=(vda,))
    assert not demonstration_answer_prefix(plain, {"a": rented})
    assert not measured_storage_caveat(plain, {"a": rented})
    small = replace(plain, scale="small")
    assert tells(demonstration_answer_prefix(small, {"a": rented}), "not drives")
    assert tells(measured_storage_caveat(small, {"a": rented}), "vda", "scale small", "not on")
    assert not demonstration_answer_prefix(small, {"a": host})  # a drive, for a shorter time
    assert tells(demonstration_answer_prefix(stated, {"a": rented}), "not the stated drives")
    emulated = replace(host, kernel=replace(host.kernel, hypervisor="TCG"))
    assert "emulated processors" in demonstration_answer_prefix(plain, {"a": emulated})
    assert tells(
        measured_storage_caveat(stated, {"a": on_loop}), "loop1", "not on the stated drives"
    )
    assert "Storage, as stated" in dict(hardware_fact_rows(stated, {"a": host}, {}))
    assert "Storage, as stated" not in dict(hardware_fact_rows(stated, {"a": on_loop}, {}))
    only_limited = replace(
        host, io_limits=(CgroupDeviceIoLimit(host.target.devices[-1], read_iops=3000),)
    )
    assert tells(measured_storage_caveat(plain, {"a": only_limited}), "I/O limits were set on")
    assert not measured_storage_caveat(stated, {"a": host})  # no number to compare


def test_devices_are_named_in_layers() -> None:
    host = facts_of("a")
    assert host.target is not None
    for parents, expected in (
        ({"loop0": ("vda",), "vda": (), "loop1": ("vda",)}, "loop0 + loop1 on vda"),
        ({"md0": ("sda1", "sdb1"), "sda1": ("sda",), "sda": (), "sdb1": ("sdb",), "sdb": ()},
         "md0 on sda1 + sdb1 on sda + sdb"),
        ({"nvme0n1": ()}, "nvme0n1"),
    ):  # fmt: skip
        disks = tuple(
            replace(host.disks[0], name=name, parents=below) for name, below in parents.items()
        )
        target = replace(host.target, devices=tuple(parents))
        assert stacked_devices_text(replace(host, target=target, disks=disks)) == expected
