"""Targets beside each other: which hosts are on one file system, and which surely are not."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from iolab.core.host import HostFacts, TargetFacts
from iolab.core.study import Study
from iolab.record import Record
from iolab.study.targets import Target, targets_of_study

ONE_HOST_ONLY: Final = ("btrfs", "ext2", "ext3", "ext4", "f2fs", "overlay", "tmpfs", "xfs", "zfs")
"""File systems that one kernel at a time may mount, or has in its memory."""


class HostTarget(Record):
    """A target with what its host told of it."""

    target: Target
    host_facts: HostFacts
    target_facts: TargetFacts


def host_targets_with_facts(
    study: Study, facts_by_target: Mapping[str, HostFacts]
) -> list[HostTarget]:
    """The targets of all hosts that told of theirs."""
    return [
        HostTarget(target, facts_by_target[target.key], target_facts)
        for target in targets_of_study(study)
        if target.key in facts_by_target
        and (target_facts := facts_by_target[target.key].target) is not None
    ]


def is_surely_other_directory(host_target: HostTarget, other: HostTarget) -> bool:
    """Whether two hosts' directories are surely not the same one."""
    if host_target.target_facts.network and other.target_facts.network:
        return False
    if not {host_target.target_facts.fs_type, other.target_facts.fs_type} & set(ONE_HOST_ONLY):
        return False
    if host_target.host_facts.kernel.boot_id != other.host_facts.kernel.boot_id:
        return True
    first, second = host_target.target_facts, other.target_facts
    alike = (first.fs_type, first.mount_source) == (second.fs_type, second.mount_source)
    moved = first.mount_point == second.mount_point and host_target.target.path != other.target.path
    return not alike or moved


def group_by_file_system(host_targets: Sequence[HostTarget]) -> list[list[HostTarget]]:
    """Known to be one where the network or one kernel tells so."""
    groups: dict[tuple[str, ...], list[HostTarget]] = {}
    for place in host_targets:
        # A device's name is one device on one machine only; a server's export is one everywhere.
        machine = "" if place.target_facts.network else place.host_facts.kernel.boot_id
        key = (place.target_facts.fs_type, place.target_facts.mount_source, machine)
        groups.setdefault(key, []).append(place)
    return list(groups.values())
