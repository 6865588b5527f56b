"""What `iolab doctor --hosts` makes of the facts of several hosts."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from iolab.cli.doctor.findings import FindingState
from iolab.cli.doctor.fleet import CLOCK_OFF_NS, FleetFinding, fleet_document, fleet_findings
from iolab.core.host import (
    CloudFacts,
    CloudVolume,
    HostFacts,
    HostRole,
    HostSpec,
    HostTransport,
    MachineFacts,
    NicFacts,
    TargetProbe,
    ToolFacts,
)
from iolab.core.kubernetes import NO_VOLUME, PodFacts
from iolab.core.power import ExternalMeterKind, MeterSpec, PowerBoundary
from iolab.core.run import PreRunActivity
from iolab.errors import Fault, HostError, IolabError
from iolab.hosts.barrier import HostOutcomes
from iolab.hosts.clock import ClockOffset
from iolab.hosts.message import Hello
from iolab.hosts.meters import MeterReading, MeterReadingOrFault
from iolab.session.discovery import HostActivity, InspectedHost
from tests.analysis.drives import reading
from tests.facts import tells
from tests.fakes.machine import machine_facts

HELLO = Hello(1, "0.1.0", 7, runs_end_by="pid-namespace", uid=0)
PATH = "/mnt/target"
FREE = TargetProbe(direct_error=None, direct_align_bytes=512, held_by=None)
HOUR_NS = 3600 * 10**9
QUIET = HostActivity(PreRunActivity(1.0, 0.0, 0.0), device_busy_share=0.0, cpu_busy_share=0.01)


def facts_of(boot: str, **parts: dict[str, Any]) -> HostFacts:
    """An example machine on a shared file system, with changes to parts of its facts."""
    facts = machine_facts(PATH)
    kernel = replace(facts.kernel, **{"boot_id": boot, **parts.get("kernel", {})})
    assert facts.target is not None
    shared = {"network": True, "fs_type": "nfs4", "mount_source": "filer:/export"}
    target = replace(facts.target, **{**shared, **parts.get("target", {})})
    cpu = replace(facts.cpu, **parts.get("cpu", {}))
    return replace(facts, kernel=kernel, target=target, cpu=cpu, **parts.get("facts", {}))


def host(
    name: str,
    *,
    role: HostRole = HostRole.CLIENT,
    offset_ns: int = 0,
    error_ns: int = 100_000,
    quiet: HostActivity = QUIET,
    **parts: dict[str, Any],
) -> InspectedHost:
    spec = HostSpec(name, HostTransport.LOCAL, role, path=PATH)
    offset = ClockOffset(offset_ns, error_ns, 2 * error_ns)
    return InspectedHost(spec, PATH, facts_of(name, **parts), FREE, quiet, offset, HELLO, None)


def findings(*hosts: InspectedHost, **failed: IolabError) -> tuple[FleetFinding, ...]:
    found = fleet_findings(HostOutcomes({host.spec.name: host for host in hosts}, failed))
    assert all(item.finding.hint for item in found if item.finding.state is not FindingState.OK)
    return found


def only(what: str, *hosts: InspectedHost) -> FleetFinding:
    """The one finding about that, among findings of which all others are well."""
    found = findings(*hosts)
    assert {item.finding.topic for item in found if item.finding.state is not FindingState.OK} <= {
        what
    }
    (item,) = [item for item in found if item.finding.topic == what]
    return item


def test_hosts_that_are_alike_give_nothing_to_do() -> None:
    found = findings(host("a"), host("b"), host("c"))
    assert {item.finding.state for item in found} == {FindingState.OK}
    assert {item.finding.topic for item in found} == {
        "clock", "other load", "fio", "file system", "kernel", "processor", "link", "MTU",
        "governor",
    }  # fmt: skip


LOCAL = {"network": False, "fs_type": "ext4", "mount_source": "/dev/sda1"}


def with_port(speed: int, mtu: int) -> dict[str, Any]:
    return {"facts": {"nics": (NicFacts("eth0", None, speed, mtu, up=True),)}}


@pytest.mark.parametrize(
    ("what", "parts", "message"),
    [
        ("fio", {"facts": {"tools": (ToolFacts("fio", "/f", "fio-3.36"),)}}, "fio-3.36 on c"),
        ("kernel", {"kernel": {"release": "6.9"}}, "6.1.0 on a and b; 6.9 on c"),
        ("processor", {"kernel": {"architecture": "aarch64"}}, "(aarch64) on c"),
        ("link", with_port(1000, 9000), "25G on a and b; 1G on c"),
        ("MTU", with_port(25000, 1500), "9000 on a and b; 1500 on c"),
        ("governor", {"cpu": {"governor": "powersave"}}, "powersave on c"),
        ("file system", {"target": LOCAL}, "filer:/export on a and b; ext4 from /dev/sda1 on c"),
    ],
)
def test_the_host_that_differs_is_named(what: str, parts: dict[str, Any], message: str) -> None:
    item = only(what, host("a"), host("b"), host("c", **parts))
    assert item.finding.state is FindingState.NOTE
    assert message in item.finding.message


def on_machine(product: str) -> dict[str, Any]:
    return {"facts": {"machine": MachineFacts("Amazon EC2", product, None)}}


def test_another_instance_type_is_named() -> None:
    large, small = on_machine("i4i.2xlarge"), on_machine("i4i.xlarge")
    found = only("machine", host("a", **large), host("b", **small)).finding
    assert (found.state, "Amazon EC2 i4i.xlarge on b" in found.message) == (
        FindingState.NOTE,
        True,
    )
    hosts = [host("a", **large), host("b")]
    seen = HostOutcomes({one.spec.name: one for one in hosts}, {})
    told = fleet_document(tuple(one.spec for one in hosts), seen)["hosts"]
    assert [one["machine"] for one in told] == ["Amazon EC2 i4i.2xlarge", None]


def in_cloud(kind: str, name: str = "data") -> dict[str, Any]:
    volume = CloudVolume(name, kind, 1024)
    return {"facts": {"cloud": CloudFacts("Azure", "D8s", "westeurope", (volume,))}}


def test_what_clouds_tell_is_compared_but_for_the_names_of_volumes() -> None:
    first = host("a", **in_cloud("Premium_LRS"))
    hosts = (first, host("b", **in_cloud("Premium_LRS", "other")))
    alike = next(one.finding for one in findings(*hosts) if one.finding.topic == "cloud")
    assert alike.state is FindingState.OK
    other = only("cloud", first, host("b", **in_cloud("StandardSSD_LRS"))).finding
    assert other.state is FindingState.NOTE
    seen = HostOutcomes({one.spec.name: one for one in hosts}, {})
    told = fleet_document(tuple(one.spec for one in hosts), seen)["hosts"]
    assert all("Premium_LRS 1024 GiB" in one["cloud"] for one in told)


def test_what_a_host_does_not_tell_is_noted() -> None:
    closed: dict[str, Any] = {"facts": {"faults": ("The cloud did not answer.",)}}
    item = only("facts", host("a", **closed), host("b"), host("c", **closed))
    assert (item.hosts, item.finding.message) == (("a", "c"), "The cloud did not answer.")


def test_a_governor_that_is_slow_on_all_is_noted() -> None:
    slow = {"governor": "powersave"}
    assert (
        only("governor", host("a", cpu=slow), host("b", cpu=slow)).finding.state
        is FindingState.NOTE
    )


def test_a_meter_that_cannot_be_read_is_a_fault_of_its_host() -> None:
    fault = Fault("The meter 'bmc' of host 'b' cannot be read: no answer.", "Try it by hand.")
    bmc = MeterSpec(name="bmc", kind=ExternalMeterKind.DCMI)
    found = only(
        "power", host("a"), replace(host("b"), meters=(MeterReadingOrFault(bmc, fault=fault),))
    )
    assert found.hosts == ("b",)
    assert found.finding.state is FindingState.FAULT
    assert tells(found.finding.message, "'bmc'")


def test_a_meter_that_can_be_read_is_told_with_its_watts() -> None:
    pdu = MeterSpec(name="pdu", kind=ExternalMeterKind.SNMP, boundary=PowerBoundary.DRIVE)
    shown = MeterReadingOrFault(pdu, MeterReading(0, 12.5))
    found = only("power", host("a"), replace(host("b"), meters=(shown,)))
    assert (found.hosts, found.finding.state) == (("b",), FindingState.OK)
    assert found.finding.message == "meter 'pdu' (drive): 12.5 W"


def test_drives_that_only_root_may_read_are_told_once() -> None:
    hidden = reading(fault="its log pages need CAP_SYS_ADMIN")
    both = [replace(host(name), drives=(hidden,)) for name in ("a", "b")]
    found = only("drive counters", *both)
    assert found.hosts == ("a", "b")
    assert found.finding.state is FindingState.NOTE


def test_what_no_host_tells_is_not_called_alike() -> None:
    untold = {"governor": None}
    told = only("governor", host("a", cpu=untold), host("b", cpu=untold)).finding
    assert (told.state, told.message) == (FindingState.NOTE, "unknown: no host tells it")
    half = only("governor", host("a"), host("b", cpu=untold)).finding
    assert half.message.split("; ") == ["differs: performance on a", "unknown on b"]


def test_a_file_system_of_each_host_is_not_a_shared_one_though_it_is_called_the_same() -> None:
    own = {"network": False, "fs_type": "xfs", "mount_source": "/dev/sda1"}
    item = only("file system", host("a", target=own), host("b", target=own))
    assert item.finding.state is FindingState.NOTE
    assert "none is shared" in item.finding.message


@pytest.mark.parametrize("layer", [{"hidden": True}, {"mount_point": "/"}])
def test_a_pod_without_its_volume_is_noted(layer: dict[str, object]) -> None:
    layer = {"network": False, "fs_type": "overlay", "mount_source": "overlay", **layer}
    volume = {"network": False, "fs_type": "xfs", "mount_source": "/dev/sda1"}
    found = findings(host("a", target=layer), host("b", target=volume))
    (item,) = [item for item in found if "no volume is mounted" in item.finding.message]
    assert item.hosts == ("a",)
    assert item.finding.state is FindingState.NOTE


def test_root_in_a_container_is_not_advised_to_be_root() -> None:
    container = replace(host("a"), hello=replace(HELLO, runs_end_by=None))
    item = only("processes", container)
    assert "CAP_SYS_ADMIN" in item.finding.message
    assert "Run it as root" not in item.finding.hint


@pytest.mark.parametrize("sign", [1, -1])
def test_a_clock_beyond_the_limit_is_noted_with_its_error(sign: int) -> None:
    assert only("clock", host("a", offset_ns=sign * CLOCK_OFF_NS)).finding.state is FindingState.OK
    item = only("clock", host("a"), host("b", offset_ns=sign * (CLOCK_OFF_NS + 10**6)))
    assert (item.hosts, item.finding.state) == (("b",), FindingState.NOTE)
    way = "ahead of" if sign > 0 else "behind"
    assert item.finding.message == f"101 ms ± 100 µs {way} this machine's"


def test_a_clock_that_cannot_be_told_is_noted() -> None:
    item = only("clock", host("a", error_ns=CLOCK_OFF_NS + 1))
    assert "± 100 ms only" in item.finding.message


@pytest.mark.parametrize(
    ("quiet", "message"),
    [
        (replace(QUIET, cpu_busy_share=0.5), "processors 50 % busy"),
        (replace(QUIET, device_busy_share=0.4), "a device below the directory 40 % busy"),
        (
            replace(QUIET, pre_run_activity=PreRunActivity(1.0, 5e7, 900.0)),
            "others move 50 MB/s, 900 I/Os/s there",
        ),
    ],
)
def test_others_who_are_busy_there_are_noted(quiet: HostActivity, message: str) -> None:
    item = only("other load", host("a"), host("b", quiet=quiet))
    assert (item.hosts, item.finding.message) == (("b",), message)


def test_hosts_that_are_one_machine_are_noted() -> None:
    same = {"boot_id": "one"}
    item = only("machine", host("a", kernel=same), host("b"), host("c", kernel=same))
    assert item.hosts == ("a", "c")


def test_a_host_that_cannot_be_reached_stands_first_and_the_others_are_compared() -> None:
    found = findings(host("a"), host("b"), c=HostError("Host 'c' is silent.", "Look at it."))
    assert (found[0].hosts, found[0].finding.state) == (("c",), FindingState.FAULT)
    assert (found[0].finding.message, found[0].finding.hint) == (
        "Host 'c' is silent.",
        "Look at it.",
    )
    assert {item.hosts for item in found[1:]} == {("a", "b")}


def test_the_same_fault_of_several_hosts_is_told_once() -> None:
    bare: dict[str, Any] = {"tools": (ToolFacts("fio", None, None),)}
    found = findings(host("a", facts=bare), host("b"), host("c", facts=bare))
    assert (found[0].hosts, found[0].finding.topic) == (("a", "c"), "fio")
    assert found[0].finding.is_engine_fault
    full = findings(host("a", target={"free_bytes": 1}), host("b"))
    assert (full[0].hosts, full[0].finding.topic) == (("a",), "free space")


def test_storage_nodes_are_compared_among_themselves_and_need_no_fio() -> None:
    bare: dict[str, Any] = {"tools": (ToolFacts("fio", None, None),)}
    nodes = [
        host(name, role=HostRole.STORAGE, kernel={"release": release}, facts=bare)
        for name, release in (("s1", "5.14"), ("s2", "5.15"))
    ]
    item = only("kernel, storage", host("a"), *nodes)
    assert item.hosts == ("s1", "s2")


def test_the_document_has_every_host_in_the_order_of_the_inventory() -> None:
    there = host("b", offset_ns=7)
    specs = (HostSpec("a", HostTransport.LOCAL), there.spec)
    seen = HostOutcomes({"b": there}, {"a": HostError("Gone.", "Look.")})
    made = fleet_document(specs, seen)
    assert made["hosts"][0] == {"name": "a", "role": "client", "reached": False}
    assert made["hosts"][1]["clock_offset_ns"] == 7
    assert made["findings"][0]["hosts"] == ["a"]


def pod(name: str, volume: str) -> InspectedHost:
    """A pod with a claim of its own, bound to that volume of a driver."""
    facts = PodFacts(
        *("bench", name, "node1", "Burstable"),
        claim=f"data-{name}",
        storage_class="fast",
        volume_kind="csi.example",
        volume_id=volume,
    )
    return host(name, facts={"pod": facts})


def test_pods_on_one_volume_are_noted() -> None:
    found = only("shared target", pod("a", "v1"), pod("b", "v1"))
    assert found.hosts == ("a", "b")
    assert "v1" in found.finding.message
    assert all(
        item.finding.topic != "shared target" for item in findings(pod("a", "v1"), pod("b", "v2"))
    )


def test_what_pods_are_and_have_is_shown() -> None:
    by_topic = {item.finding.topic: item.finding for item in findings(pod("a", "v1"))}
    assert "node1" in by_topic["pods"].message
    assert "class fast" in by_topic["volumes"].message


def test_a_pod_without_a_class_is_noted_beside_one_that_has_it() -> None:
    forbidden = PodFacts("bench", "b", "node1", "Burstable", claim="data-b")
    missing = replace(forbidden, claim="", volume_kind=NO_VOLUME)
    for facts, hint in ((forbidden, "rights"), (missing, "Mount a claim")):
        item = only("volumes", pod("a", "v1"), host("b", facts={"pod": facts}))
        assert item.finding.state is FindingState.NOTE
        assert tells(item.finding.message, "a: class fast", f"b: {facts.volume_text}")
        assert hint in item.finding.hint
