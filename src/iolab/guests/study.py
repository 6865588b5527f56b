"""Booted guests in studies and plans: their table, their checks, what they cost."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from iolab.core.metric import Level
from iolab.core.run import Plan, PlannedRun
from iolab.core.study import Study
from iolab.guests.guest import (
    GuestSettings,
    booted_guest_settings,
    bytes_per_node,
    guest_cost_reasons,
    guests_per_node,
    image_bytes,
)
from iolab.guests.hosts import fleet_lines, forced_loads, guest_hosts, guest_notes, node_path
from iolab.guests.problems import check_guests, check_nodes, guest_tools, node_targets
from iolab.guests.vm_table import VmTable, settings_of, stand_in
from iolab.study.build import host_spec
from iolab.study.file import HostTable
from iolab.study.foretold import VerdictLimit, point_digests
from iolab.study.kinds import HostCost, KnownFacts
from iolab.study.load_tables import StudyTable
from iolab.study.tables import Tables
from iolab.study.targets import nodes_of


class VmSection:
    """`[vm]`: the guests that a session boots."""

    name: Final = "vm"
    table: type[StudyTable] = VmTable
    makes_hosts: Final = True
    setting: Final = "guests"
    stand_in = staticmethod(stand_in)

    def settings(self, tables: Tables) -> GuestSettings | None:
        """The guests that the session boots; None where it boots none."""
        table = tables.find(VmTable) if tables.makes_hosts else None
        return None if table is None else settings_of(table)


class GuestStudy:
    """The part of guests in studies and plans."""

    section: Final = VmSection()
    examples: Mapping[str, str] = {"vcpus": "4", "memory": '"8g"', "disk": '"32g"'}

    check = staticmethod(check_guests)
    check_nodes = staticmethod(check_nodes)
    hosts = staticmethod(guest_hosts)
    plan_lines = staticmethod(fleet_lines)
    targets = staticmethod(node_targets)
    required_programs = staticmethod(guest_tools)

    def knee_candidates(self, tables: Tables, loads: Sequence[int]) -> tuple[int, ...]:
        """Of these numbers of guests on a node those at which its load may turn."""
        guests = self.section.settings(tables)
        if guests is None:
            return ()
        rooms = (host_spec(host).room for _, host in tables.read("host", HostTable))
        return forced_loads(rooms, guests.vcpus, loads)

    def iops_limit(self, study: Study) -> int | None:
        """How many I/Os a second each guest's disk is held to."""
        return settings.iops_limit if (settings := booted_guest_settings(study)) else None

    def limits(self, study: Study, runs: tuple[PlannedRun, ...]) -> Iterator[VerdictLimit]:
        """Disks that are held to a rate, which is then what is measured."""
        held = self.iops_limit(study)
        if held is not None:
            why = (
                f"guests' disks are held to {held} IOPS each: a rate that reaches it is the limit's"
            )
            hint = "leave vm.iops out where guests are not emulated"
            yield VerdictLimit(
                Level.INDICATIVE, why, hint, point_digests(run.point for run in runs)
            )

    def cost(self, study: Study, runs: int, rate: float) -> HostCost:
        """Their images, their boots, and what a node needs space for."""
        return HostCost(
            reasons=tuple(guest_cost_reasons(study, runs, rate)),
            disk_bytes=image_bytes(study, guests_per_node(study)),
            space_bytes=bytes_per_node(study),
        )

    def plan_notes(self, study: Study, plan: Plan, facts: KnownFacts) -> Iterator[str]:
        """See `guest_notes`."""
        return guest_notes(study, plan.points, facts)

    def document(self, study: Study, facts: KnownFacts) -> dict[str, Any] | None:
        """The guests of a study by node; None where it has none."""
        nodes = nodes_of(study)
        if not nodes:
            return None
        return {
            "booted": _booted_guests_document(study),
            "nodes": [
                {
                    "node": node.name,
                    "path": node_path(study, node),
                    "guests": [spec.name for spec in study.hosts if spec.node == node.name],
                    "free_bytes": _free_bytes(facts, node.name),
                }
                for node in nodes
            ],
        }

    def plan_identity(self, study: Study) -> Mapping[str, object]:
        """The guests that are booted, and on which nodes, where any are."""
        settings = booted_guest_settings(study)
        if settings is None:
            return {}
        return {
            "guests": settings.measured_settings,
            "nodes": [
                [node.name, node_path(study, node) or "", node.storage_address]
                for node in nodes_of(study)
            ],
        }


def _booted_guests_document(study: Study) -> dict[str, Any] | None:
    """What guests that are booted have; None for those that exist already."""
    guests = booted_guest_settings(study)
    if guests is None:
        return None
    return {
        "vcpus": guests.vcpus,
        "memory_bytes": guests.memory_bytes,
        "disk_bytes": guests.disk_bytes,
        "disk_kind": guests.disk.value,
        "latency_ns": guests.latency_ns,
        "iops_limit": guests.iops_limit,
        "replicas": guests.replicas,
        "accel": guests.accelerator.value,
        "pin": guests.pinning.value,
    }


def _free_bytes(facts: KnownFacts, key: str) -> int | None:
    host_facts = None if facts is None else facts.get(key)
    return (
        host_facts.target.free_bytes
        if host_facts is not None and host_facts.target is not None
        else None
    )
