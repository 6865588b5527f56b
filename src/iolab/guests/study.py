"""Booted guests in studies and plans: their table, their checks, what they cost."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from iolab.core.metric import VerdictLevel
from iolab.core.run import Plan, PlannedRun
from iolab.core.study import Study
from iolab.guests.guest import (
    GuestSettings,
    booted_guest_settings,
    guest_plan_steps_and_seconds,
    guest_space_bytes_per_node,
    image_bytes_per_node,
    max_booted_guests_per_node,
)
from iolab.guests.hosts import (
    guest_plan_headings_and_texts,
    guest_plan_notes,
    guest_specs_of_study,
    image_directory,
    knee_guest_counts_per_node,
)
from iolab.guests.problems import (
    add_guest_faults,
    node_targets,
    require_capable_nodes,
    version_arguments_by_node_program,
)
from iolab.guests.vm_table import VmTable, guest_settings_from_table, vm_table_with_valid_keys
from iolab.study.build import build_host_spec
from iolab.study.file import HostTable
from iolab.study.forecast import VerdictCap, point_digests
from iolab.study.kinds import BootedHostDemand, KnownFacts
from iolab.study.load_tables import StudyTable
from iolab.study.tables import StudyTables
from iolab.study.targets import hypervisors_of_study


class VmSection:
    """`[vm]`: the guests that a session boots."""

    name: Final = "vm"
    table: type[StudyTable] = VmTable
    makes_hosts: Final = True
    study_field: Final = "guests"
    fallback_table = staticmethod(vm_table_with_valid_keys)

    def settings(self, tables: StudyTables) -> GuestSettings | None:
        """The guests that the session boots; None where it boots none."""
        table = tables.find_single_table(VmTable) if tables.makes_hosts else None
        return None if table is None else guest_settings_from_table(table)


class GuestStudyKind:
    """The part of guests in studies and plans."""

    settings_section: Final = VmSection()
    example_by_key: Mapping[str, str] = {"vcpus": "4", "memory": '"8g"', "disk": '"32g"'}

    add_host_faults = staticmethod(add_guest_faults)
    require_capable_nodes = staticmethod(require_capable_nodes)
    booted_host_specs = staticmethod(guest_specs_of_study)
    plan_lines = staticmethod(guest_plan_headings_and_texts)
    node_targets = staticmethod(node_targets)
    version_argv_by_probed_program = staticmethod(version_arguments_by_node_program)

    def knee_load_candidates_per_node(
        self, tables: StudyTables, loads_per_node: Sequence[int]
    ) -> tuple[int, ...]:
        """Of these numbers of guests on a node those at which its load may turn."""
        guests = self.settings_section.settings(tables)
        if guests is None:
            return ()
        rooms = (
            build_host_spec(host).hypervisor_hints
            for _, host in tables.items_of_table("host", HostTable)
        )
        return knee_guest_counts_per_node(rooms, guests.vcpus, loads_per_node)

    def iops_limit_per_guest_disk(self, study: Study) -> int | None:
        """How many I/Os a second each guest's disk is held to."""
        return settings.iops_limit if (settings := booted_guest_settings(study)) else None

    def verdict_caps(self, study: Study, runs: tuple[PlannedRun, ...]) -> Iterator[VerdictCap]:
        """Disks that are held to a rate, which is then what is measured."""
        held = self.iops_limit_per_guest_disk(study)
        if held is not None:
            why = (
                f"guests' disks are held to {held} IOPS each: a rate that reaches it is the limit's"
            )
            hint = "leave vm.iops out where guests are not emulated"
            yield VerdictCap(
                VerdictLevel.INDICATIVE, why, hint, point_digests(run.point for run in runs)
            )

    def booted_host_demand(
        self, study: Study, run_count: int, node_write_bytes_per_s: float
    ) -> BootedHostDemand:
        """Their images, their boots, and what a node needs space for."""
        return BootedHostDemand(
            time_items=tuple(
                guest_plan_steps_and_seconds(study, run_count, node_write_bytes_per_s)
            ),
            image_bytes_per_node=image_bytes_per_node(study, max_booted_guests_per_node(study)),
            space_bytes_per_node=guest_space_bytes_per_node(study),
        )

    def plan_notes(self, study: Study, plan: Plan, facts_by_target: KnownFacts) -> Iterator[str]:
        """See `guest_plan_notes`."""
        return guest_plan_notes(study, plan.points, facts_by_target)

    def booted_hosts_plan_document(
        self, study: Study, facts_by_target: KnownFacts
    ) -> dict[str, Any] | None:
        """The guests of a study by node; None where it has none."""
        nodes = hypervisors_of_study(study)
        if not nodes:
            return None
        return {
            "booted": _booted_guests_document(study),
            "nodes": [
                {
                    "node": node.name,
                    "path": image_directory(study, node),
                    "guests": [spec.name for spec in study.hosts if spec.hypervisor == node.name],
                    "free_bytes": _free_bytes(facts_by_target, node.name),
                }
                for node in nodes
            ],
        }

    def plan_digest_content(self, study: Study) -> Mapping[str, object]:
        """The guests that are booted, and on which nodes, where any are."""
        settings = booted_guest_settings(study)
        if settings is None:
            return {}
        return {
            "guests": settings.settings_that_change_results,
            "nodes": [
                [node.name, image_directory(study, node) or "", node.storage_address]
                for node in hypervisors_of_study(study)
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


def _free_bytes(facts: KnownFacts, target_key: str) -> int | None:
    host_facts = None if facts is None else facts.get(target_key)
    return (
        host_facts.target.free_bytes
        if host_facts is not None and host_facts.target is not None
        else None
    )
