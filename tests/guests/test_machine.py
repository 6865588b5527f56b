"""QEMU's command line: what a machine becomes."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Any, Final

import pytest
from msgspec.structs import replace

from iolab.errors import HostError
from iolab.guests.guest import Accelerator, GuestDiskKind, GuestSettings
from iolab.guests.machine import (
    QemuAio,
    QemuMachine,
    Replica,
    measure_tsc_khz_of_node,
    monitor_socket_file_name,
    qemu_argv,
)
from iolab.hosts.message import Message
from tests.fakes.host import FakeHost
from tests.fakes.script import FakeScript
from tests.fakes.virtual_time import run_virtually

SETTINGS: Final = GuestSettings(vcpus=2, memory_bytes=192 << 20, disk_bytes=64 << 20)
FOLDER: Final = "/mnt/a, b/=c"
EMULATED: Final = QemuMachine(
    guest="node-1-vm01",
    settings=SETTINGS,
    accelerator=Accelerator.TCG,
    kernel=f"{FOLDER}/vmlinux",
    initrd=f"{FOLDER}/initrd",
    tools=f"{FOLDER}/tools.img",
    image=f"{FOLDER}/vm01.img",
    tsc_khz=2_596_096,
    real_ns=1_795_000_000_123_456_789,
)
KVM: Final = replace(EMULATED, accelerator=Accelerator.KVM, tsc_khz=None)
MODELLED: Final = replace(
    EMULATED,
    image=None,
    settings=replace(SETTINGS, disk=GuestDiskKind.MODELLED, latency_ns=10_000_000),
)


def values(machine: QemuMachine, option: str) -> list[str]:
    """What follows each such option."""
    return list(_after(qemu_argv(machine, "qemu"), option))


def _after(argv: Sequence[str], option: str) -> Iterator[str]:
    for word, value in pairwise(argv):
        if word == option:
            yield value


def told(machine: QemuMachine, option: str) -> list[dict[str, Any]]:
    """Those that are JSON."""
    return [json.loads(value) for value in values(machine, option) if value.startswith("{")]


def data_node(machine: QemuMachine) -> dict[str, Any]:
    (node,) = (node for node in told(machine, "-blockdev") if node["node-name"] == "data")
    return node


def test_the_whole_command_of_an_emulated_guest() -> None:
    listen = "server=on,wait=off"
    assert qemu_argv(replace(EMULATED, cpus=(1, 3)), "/usr/bin/qemu") == (
        *("taskset", "-c", "1,3", "/usr/bin/qemu"),
        *("-name", "guest=node-1-vm01,debug-threads=on"),
        *("-machine", "microvm,memory-backend=memory"),
        *("-accel", "tcg,thread=multi,tb-size=256", "-cpu", "max", "-smp", "2"),
        *("-object", '{"qom-type":"memory-backend-ram","id":"memory","size":201326592}'),
        *("-m", "201326592B"),
        *("-nodefaults", "-no-user-config", "-no-reboot", "-display", "none"),
        *("-chardev", "stdio,id=console,signal=off", "-serial", "chardev:console"),
        *("-chardev", f"socket,id=agent,path=node-1-vm01.agent,{listen}"),
        *("-device", "virtio-serial-device"),
        *("-device", "virtserialport,chardev=agent,name=agent"),
        *("-chardev", f"socket,id=monitor,path=node-1-vm01.qmp,{listen}"),
        *("-mon", "chardev=monitor,mode=control"),
        "-blockdev",
        '{"driver":"raw","node-name":"tools","read-only":true,'
        '"file":{"driver":"file","filename":"/mnt/a, b/=c/tools.img"}}',
        *("-device", '{"driver":"virtio-blk-device","drive":"tools","serial":"tools"}'),
        "-blockdev",
        '{"node-name":"data","driver":"file","filename":"/mnt/a, b/=c/vm01.img",'
        '"aio":"native","cache":{"direct":true}}',
        "-device",
        '{"driver":"virtio-blk-device","id":"data-disk","drive":"data","serial":"data",'
        '"num-queues":2,"discard":false,"write-zeroes":false,'
        '"rerror":"report","werror":"report"}',
        *("-kernel", "/mnt/a, b/=c/vmlinux", "-initrd", "/mnt/a, b/=c/initrd"),
        "-append",
        "quiet console=ttyS0 panic=-1 reboot=t cryptomgr.notests "
        "sysctl.vm.overcommit_memory=1 "
        "iolab.real_ns=1795000000123456789 iolab.name=node-1-vm01 "
        "tsc_early_khz=2596096 tsc=reliable lpj=10384384",
    )


def test_kvm_needs_no_words_about_the_clock() -> None:
    argv = qemu_argv(KVM, "qemu")
    assert values(KVM, "-accel") == ["kvm"]
    assert values(KVM, "-cpu") == ["host"]
    assert "tsc" not in argv[-1]
    assert argv[0] == "qemu"


def test_memory_of_a_numa_node() -> None:
    (memory,) = told(replace(EMULATED, memory_numa_node=1), "-object")
    assert (memory["host-nodes"], memory["policy"]) == ([1], "bind")


@pytest.mark.parametrize("aio", QemuAio)
def test_the_way_of_io_is_as_told_and_never_through_the_page_cache(aio: QemuAio) -> None:
    node = data_node(replace(EMULATED, aio=aio))
    assert (node["aio"], node["cache"]) == (aio.value, {"direct": True})


def test_a_modelled_disk() -> None:
    assert data_node(MODELLED) == {
        "node-name": "data",
        "driver": "null-co",
        "size": 64 << 20,
        "latency-ns": 10_000_000,
        "read-zeroes": True,
    }


def test_a_bound_of_iops_is_above_what_lies_below() -> None:
    bounded = replace(MODELLED, settings=replace(MODELLED.settings, iops_limit=400))
    (group,) = (item for item in told(bounded, "-object") if item["id"] == "bound")
    assert group == {"qom-type": "throttle-group", "id": "bound", "limits": {"iops-total": 400}}
    node = data_node(bounded)
    assert (node["driver"], node["throttle-group"]) == ("throttle", "bound")
    assert node["file"]["driver"] == "null-co"


def test_replicas_are_a_quorum_that_reads_here_and_waits_for_all() -> None:
    replicas = (Replica("192.0.2.2", 10810, "vm01-copy1"), Replica("fe80::1", 10811, "vm01-copy2"))
    machine = replace(EMULATED, settings=replace(SETTINGS, replicas=3), replicas=replicas)
    node = data_node(machine)
    assert (node["driver"], node["read-pattern"], node["vote-threshold"]) == ("quorum", "fifo", 3)
    local, first, second = node["children"]
    assert local["filename"] == f"{FOLDER}/vm01.img"
    assert first == {
        "driver": "nbd",
        "server": {"type": "inet", "host": "192.0.2.2", "port": "10810"},
        "export": "vm01-copy1",
    }
    assert (second["server"]["host"], second["server"]["port"]) == ("fe80::1", "10811")


@pytest.mark.parametrize(
    "name", ["", "a,b", "a/b", "a b", ".a", "-a", "a\n", "a=b,path=/x", "ä", "a" * 74]
)
def test_a_name_that_would_be_more_than_a_name_is_refused(name: str) -> None:
    with pytest.raises(ValueError, match="a guest cannot be called"):
        replace(EMULATED, guest=name)


def test_the_longest_name_has_sockets_that_the_agent_takes() -> None:
    assert len(monitor_socket_file_name(replace(EMULATED, guest="a" * 73).guest)) <= 80
    assert len(f"{'a' * 73}.agent") <= 80


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"accelerator": Accelerator.AUTO}, "not decided"),
        ({"tsc_khz": None}, "time stamp counter"),
        ({"image": None}, "an image is for"),
        ({"settings": MODELLED.settings}, "an image is for"),
        ({"settings": replace(SETTINGS, replicas=2)}, "as many replicas"),
        ({"replicas": (Replica("192.0.2.2", 10810, "x"),)}, "as many replicas"),
    ],
)
def test_what_does_not_fit_together_is_refused(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        replace(EMULATED, **changes)


class Telling(FakeHost):
    """A node that answers with these."""

    def __init__(self, *answers: Mapping[str, int]) -> None:
        super().__init__("node-1", FakeScript())
        self._answers = iter(answers)

    async def request(
        self, verb: str, payload: bytes = b"", *, deadline_s: float, **arguments: object
    ) -> Message:
        assert (verb, payload, arguments) == ("clock", b"", {})
        assert deadline_s > 0
        return Message(verb, {"real_ns": 1, **next(self._answers)})


def rate_of(*answers: dict[str, Any]) -> int:
    return run_virtually(measure_tsc_khz_of_node(Telling(*answers)))


def test_it_is_what_was_counted_by_what_has_passed_on_the_node() -> None:
    first = {"mono_ns": 7_000_000_000, "tsc": 10**15}
    later = {"mono_ns": 7_500_004_000, "tsc": 10**15 + 1_298_058_384}
    assert rate_of(first, later) == 2_596_096


@pytest.mark.parametrize(
    ("first", "later"),
    [
        ({"mono_ns": 0}, {"mono_ns": 500_000_000}),
        ({"mono_ns": 0, "tsc": 5}, {"mono_ns": 500_000_000}),
        ({"mono_ns": 9, "tsc": 5}, {"mono_ns": 9, "tsc": 5}),
        ({"mono_ns": 0, "tsc": 10**10}, {"mono_ns": 500_000_000, "tsc": 0}),
        ({"mono_ns": 0, "tsc": 0}, {"mono_ns": 500_000_000, "tsc": 2**62}),
    ],
)
def test_a_node_that_does_not_tell_is_refused(first: dict[str, Any], later: dict[str, Any]) -> None:
    with pytest.raises(HostError, match="'node-1' does not tell"):
        rate_of(first, later)
