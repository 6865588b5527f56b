"""Hosts of a record under other names: wherever one is named, and nowhere else."""

from __future__ import annotations

from typing import Any, get_args, get_type_hints

from msgspec.structs import replace

from iolab.core.host import HostSpec, HostTransport
from iolab.core.host_name import with_renamed_hosts
from iolab.core.metric import HostEvenness, HostResult, HypervisorResult, Metric, RunResult
from iolab.core.scenario import EventOutcome
from iolab.core.tagged import tagged_classes
from iolab.guests.guest import GuestFleet, GuestRun
from iolab.loads.keyvalue.workload import ServerRunDetails
from iolab.record import Record, field_names
from iolab.store.documents import Manifest
from tests.report.studies import sweep

NAMES = {"client-1": "client-1 (a)"}
NAMING_FIELDS = {
    *("host", "node", "guest", "slowest", "fastest"),
    *("hosts", "guests", "idle", "storage", "target_key", "read_from"),
}
STORED_OUTPUT = ("StoredOutput", "host")
"""Which names the file that it lies in."""


def records(kind: Any, found: set[type[Record]]) -> set[type[Record]]:
    """Every record that one of this type holds."""
    if isinstance(kind, type) and issubclass(kind, Record) and kind not in found:
        found.add(kind)
        hints = get_type_hints(kind, include_extras=True)
        for name in field_names(kind):
            records(hints[name], found)
    elif isinstance(kind, type) and kind.__name__ in (
        "RunLoadDetails",
        "GuestFleetDetails",
        "HostLoadDetails",
    ):
        for part in tagged_classes(kind):
            records(part, found)
    for argument in get_args(kind):
        records(argument, found)
    return found


def test_every_field_of_a_run_that_names_a_host_says_so() -> None:
    plain = {str, tuple[str, ...]}
    forgotten = {
        (kind.__name__, name)
        for kind in records(RunResult, records(Manifest, {HostSpec}))
        for name, hint in get_type_hints(kind, include_extras=True).items()
        if name in NAMING_FIELDS and hint in plain
    }
    assert forgotten == {STORED_OUTPUT}


def test_a_run_has_the_new_names() -> None:
    source = sweep(("one",), seconds=4)
    result = source.results()[0]
    manifest = source.manifest(result.digest, result.repeat)
    (host,) = with_renamed_hosts(manifest, NAMES).hosts
    assert host == replace(manifest.hosts[0], host="client-1 (a)")
    assert with_renamed_hosts(manifest, {"other": "x"}) == manifest
    metrics = {"iops": Metric(1.0, "1/s")}
    spread = HostEvenness(0, 0, 1.0, 0.0, 1.0, "client-1", "other", 1.0, None, None)
    named = replace(
        result,
        hosts=(HostResult("client-1", metrics),),
        nodes=(HypervisorResult("n", ("client-1", "g"), metrics),),
        operation_spreads={"read": spread},
        excluded_hosts=("client-1",),
    )
    now = with_renamed_hosts(named, NAMES)
    assert [one.name for one in now.hosts] == ["client-1 (a)"]
    assert now.nodes[0].guests == ("client-1 (a)", "g")
    assert now.operation_spreads["read"].slowest == "client-1 (a)"
    # A host that a run went without is no host of it.
    assert now.excluded_hosts == ("client-1",)
    assert (now.workload, now.metrics) == (named.workload, named.metrics)


def test_a_host_of_the_study_its_guests_and_its_server_have_the_new_names() -> None:
    spec = HostSpec("g", HostTransport.LOCAL, hypervisor="client-1", devices=("client-1",))
    assert with_renamed_hosts(spec, NAMES) == replace(spec, hypervisor="client-1 (a)")
    fleet = GuestFleet((GuestRun("client-1", "n"),), idle=("client-1", "g"))
    assert with_renamed_hosts(fleet, NAMES) == GuestFleet(
        (GuestRun("client-1 (a)", "n"),), idle=("client-1 (a)", "g")
    )
    server = ServerRunDetails("cassandra", "5", "client-1:9042", host="client-1")
    assert with_renamed_hosts(server, NAMES) == replace(server, host="client-1 (a)")


def test_hosts_that_one_text_lists_have_the_new_names() -> None:
    event = EventOutcome("noise", "client-1", "load 'noise'", "after", 0)
    for old, new in (
        ("client-1", "client-1 (a)"),
        ("client-1 and g", "client-1 (a) and g"),
        ("a, client-1 and g", "a, client-1 (a) and g"),
        ("g and client-10", "g and client-10"),
    ):
        assert with_renamed_hosts(replace(event, host=old), NAMES) == replace(event, host=new)
