"""The bytes that the engine claims against the bytes that the target's devices moved."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from iolab.analysis.check import (
    CheckAnswer,
    EvidenceValues,
    check,
    indicative_answer,
    invalid_answer,
    not_applicable_answer,
    per_host,
    unchecked_answer,
    valid_answer,
    worst_answer,
)
from iolab.analysis.checks.storage_bytes import can_compare_with_storage_nodes
from iolab.analysis.storage_bytes import names_of_devices_on_no_other, nearest_device_names
from iolab.analysis.view import RunView
from iolab.core.host import HostFacts
from iolab.core.run import DeviceDelta, ExtentProof, HostRun
from iolab.core.scenario import ScenarioOutcome
from iolab.core.workload import Direction
from iolab.record import Record
from iolab.text import percent_text
from iolab.units import format_bytes

MISSING_GOOD: Final = 0.98
"""Share of the claimed bytes that a device must have moved: the snapshots stand a moment before
and after the engine, so nothing of an honest run is missing; 2 % covers odd accounting."""

MISSING_BAD: Final = 0.90
"""Below this share more than one byte in ten never reached the device: the rate is not its own."""

EXCESS_SHARE: Final = 0.10
"""Bytes beyond those claimed, over all claimed, that read-ahead, journals or others may add."""

BACKGROUND_BYTES_PER_S: Final = 1 << 20
"""What an idle system writes and reads by itself (logs, journals): excess below is not told."""

COLD_RESIDENT_SHARE: Final = 0.01
"""Share of the files that may be left in the page cache after a drop that counts as verified: a
reader's own directory and metadata pages, not contents."""

COLD_DEVICE_SHARE: Final = 0.98
"""Share of the bytes read that the device must have moved for buffered reads to count as cold; the
same two per cent as the bytes-moved check grants."""


class DeviceByteCounts(Record):
    """A device as one kernel counts it, and all loads of the run that used it there.

    It may be several that have each I/O once among them. `neighbour_indexes` are the places of
    those loads among the record's. `read_bytes_below` and `write_bytes_below` are what the leaves
    below moved, None where it is a leaf. `is_layer_below_unknown` is true where nothing tells what
    lies below (a loop device without known parents). `discard_bytes` is None where its kernel does
    not count what is trimmed. `probe_read_bytes` bytes may have been read there as well before the
    start, by engines that then claim none of them. `may_have_new_member` is true of several whose
    events may have replaced one.
    """

    device_names: tuple[str, ...]
    host_names: tuple[str, ...]
    claimed_read_bytes: int
    claimed_write_bytes: int
    probe_read_bytes: int
    read_bytes: int
    write_bytes: int
    read_bytes_below: int | None
    write_bytes_below: int | None
    is_layer_below_unknown: bool
    seconds: float
    claimed_trim_bytes: int = 0
    discard_bytes: int | None = None
    neighbour_indexes: tuple[int, ...] = ()
    may_have_new_member: bool = False

    @property
    def device(self) -> str:
        """The device for people; several are joined by `+`."""
        return "+".join(self.device_names)

    def claimed_bytes(self, direction: Direction) -> int:
        """Bytes that the engines claim of a direction."""
        by_direction = {
            Direction.READ: self.claimed_read_bytes,
            Direction.WRITE: self.claimed_write_bytes,
        }
        return by_direction.get(direction, self.claimed_trim_bytes)

    def moved_bytes(self, direction: Direction) -> int:
        """Bytes that the device moved; of trims 0 where they are not counted."""
        by_direction = {Direction.READ: self.read_bytes, Direction.WRITE: self.write_bytes}
        return by_direction.get(direction, self.discard_bytes or 0)

    def bytes_moved_by_probes(self, direction: Direction) -> int:
        """Bytes among them that engines moved to see how the target is best asked."""
        return self.probe_read_bytes if direction is Direction.READ else 0


def device_byte_counts(view: RunView) -> tuple[DeviceByteCounts, ...] | None:
    """What each device in use moved; None where a host's device is not known.

    Hosts of one kernel (network namespaces, containers) see the same counters, so their claims on
    one device are added before they are held against it.
    """
    groups: dict[tuple[str, tuple[str, ...]], list[int]] = {}
    for index, host in enumerate(view.hosts):
        facts = view.facts_of_host(host)
        names = () if facts is None else device_names_counting_each_io_once(facts, host.devices)
        if facts is None or not names:
            return None
        groups.setdefault((facts.kernel.boot_id_or_host(host.host), names), []).append(index)
    return tuple(
        _moved_and_claimed_bytes_of_devices(view, names, members)
        for (_, names), members in groups.items()
    )


def device_names_counting_each_io_once(
    facts: HostFacts, deltas: tuple[DeviceDelta, ...]
) -> tuple[str, ...]:
    """The devices that see each I/O of the target once; none unless all are counted.

    They are the nearest ones, several of a file system over several, or else the leaves.
    """
    target, counted = facts.target, {delta.device for delta in deltas}
    if target is None:
        return ()
    for names in (
        nearest_device_names(target.devices, facts),
        names_of_devices_on_no_other(target.devices, facts),
    ):
        if names and counted.issuperset(names):
            return names
    return ()


def counted_device_deltas(
    facts: HostFacts | None, deltas: tuple[DeviceDelta, ...]
) -> tuple[DeviceDelta, ...]:
    """What those devices moved; nothing where they are not known."""
    names = device_names_counting_each_io_once(facts, deltas) if facts is not None else ()
    return tuple(delta for delta in deltas if delta.device in names)


def _moved_and_claimed_bytes_of_devices(
    view: RunView, device_names: tuple[str, ...], host_indexes: list[int]
) -> DeviceByteCounts:
    facts = view.facts_of_host(view.hosts[host_indexes[0]])
    leaves = (
        names_of_devices_on_no_other(facts.target.devices, facts) if facts and facts.target else ()
    )
    # A part may be a leaf itself, and is then among what all of them stand on.
    lower = list(leaves) if set(leaves) - set(device_names) else []
    spans = [view.load.measured_part.whole_run_windows[index] for index in host_indexes]
    neighbours = tuple(
        place
        for place, neighbour in enumerate(view.record.neighbours)
        if _neighbour_uses_devices(view, neighbour.host, device_names, host_indexes)
    )

    def moved_bytes_of_widest_snapshot(devices: Sequence[str], direction: Direction) -> int:
        """Each host took its snapshots at its own moments; the widest saw all."""
        return max(
            _sum_moved_bytes(view.hosts[index].devices, devices, direction)
            for index in host_indexes
        )

    def claimed_bytes(direction: Direction) -> int:
        own = sum(view.claimed_run_bytes(index, direction) for index in host_indexes)
        return own + view.neighbour_run_ios_and_bytes(neighbours, direction)[1]

    return DeviceByteCounts(
        device_names=device_names,
        host_names=tuple(view.hosts[index].host for index in host_indexes),
        claimed_read_bytes=claimed_bytes(Direction.READ),
        claimed_write_bytes=claimed_bytes(Direction.WRITE),
        probe_read_bytes=sum(
            _probe_read_bytes(host) for host in host_runs_on_device(view, host_indexes, neighbours)
        ),
        read_bytes=moved_bytes_of_widest_snapshot(device_names, Direction.READ),
        write_bytes=moved_bytes_of_widest_snapshot(device_names, Direction.WRITE),
        read_bytes_below=moved_bytes_of_widest_snapshot(lower, Direction.READ) if lower else None,
        write_bytes_below=moved_bytes_of_widest_snapshot(lower, Direction.WRITE) if lower else None,
        is_layer_below_unknown=_has_loop_without_known_parents(
            facts, [name for name in device_names if not lower or name in leaves]
        ),
        seconds=max((span.seconds for span in spans if span is not None), default=0.0),
        claimed_trim_bytes=claimed_bytes(Direction.TRIM),
        discard_bytes=max(
            (
                discarded
                for index in host_indexes
                if (discarded := _sum_discarded_bytes(view.hosts[index], device_names)) is not None
            ),
            default=None,
        ),
        neighbour_indexes=neighbours,
        may_have_new_member=len(device_names) > 1
        and _may_target_devices_have_changed(view.record.scenario),
    )


def _may_target_devices_have_changed(scenario: ScenarioOutcome | None) -> bool:
    """Whether an event was done to a host, which may be that a device takes another's place."""
    events = scenario.events if scenario is not None else ()
    return any(event.is_action and event.start_real_ns is not None for event in events)


def host_runs_on_device(
    view: RunView, host_indexes: Iterable[int], neighbour_indexes: Iterable[int]
) -> Iterator[HostRun]:
    """What each load of a device did: of the run's hosts, then of the record's neighbours."""
    yield from (view.hosts[index] for index in host_indexes)
    yield from (view.record.neighbours[place].host for place in neighbour_indexes)


def _neighbour_uses_devices(
    view: RunView, neighbour: HostRun, device_names: tuple[str, ...], host_indexes: list[int]
) -> bool:
    """Whether the counters of those hosts' devices count a neighbour's I/Os as well.

    It is on one of the hosts, or on another one of their kernel and the same devices.
    """
    first = view.hosts[host_indexes[0]]
    if any(view.hosts[index].host == neighbour.host for index in host_indexes):
        return True
    facts, first_facts = view.facts_of_host(neighbour), view.facts_of_host(first)
    if facts is None or first_facts is None:
        return False
    kernels = {
        known.kernel.boot_id_or_host(host.host)
        for known, host in ((facts, neighbour), (first_facts, first))
    }
    return (
        len(kernels) == 1
        and device_names_counting_each_io_once(facts, first.devices) == device_names
    )


def _probe_read_bytes(host: HostRun) -> int:
    """Bytes that the engine read to see how the target is best asked."""
    generator = host.totals.generator if host.totals else None
    return generator.probe_read_bytes if generator else 0


def _has_loop_without_known_parents(facts: HostFacts | None, device_names: list[str]) -> bool:
    """A loop device without known parents, unless its blocks are known to be memory anyway."""
    in_memory = facts is not None and facts.target is not None and facts.target.memory_backed
    return not in_memory and any(name.startswith("loop") for name in device_names)


def _sum_moved_bytes(
    deltas: tuple[DeviceDelta, ...], names: Sequence[str], direction: Direction
) -> int:
    """Bytes that those devices moved that way."""
    return sum(delta.direction_delta(direction).bytes for delta in deltas if delta.device in names)


def _sum_discarded_bytes(host: HostRun, names: Sequence[str]) -> int | None:
    """Bytes that those devices were told to forget; None where one of them does not count it."""
    discarded = [delta.discard_bytes for delta in host.devices if delta.device in names]
    counted = [count for count in discarded if count is not None]
    return sum(counted) if len(counted) == len(discarded) else None


@check("bytes-moved", "Bytes claimed and bytes moved")
def check_bytes_moved(view: RunView) -> CheckAnswer:
    """Whether the target's devices moved what the engine claims, no less and no more."""
    groups = device_byte_counts(view)
    if groups is None:
        kinds = {target.fs_type for host in view.hosts if (target := view.target_of_host(host))}
        file_systems = ", ".join(sorted(kinds)) or "an unknown file system"
        if can_compare_with_storage_nodes(view):
            return not_applicable_answer(
                f"No block device below {file_systems} is counted on every client; the storage "
                "nodes' disks are compared with the clients instead."
            )
        targets = [target for host in view.hosts if (target := view.target_of_host(host))]
        hidden = next((target for target in targets if target.hidden), None)
        if hidden is not None:
            return unchecked_answer(
                f"what lies below {hidden.layers_or_fs_type_text} cannot be seen, so no "
                "device is counted"
            )
        return unchecked_answer(f"no block device of {file_systems} is counted on every host")
    return worst_answer(answer for group in groups for answer in _device_byte_answers(group))


def _device_byte_answers(byte_counts: DeviceByteCounts) -> Iterator[CheckAnswer]:
    """Everything there is to say of a device: what is missing, then what is too much."""
    evidence = _device_byte_evidence(byte_counts)
    for way, word in ((Direction.READ, "read"), (Direction.WRITE, "written")):
        claimed, moved = byte_counts.claimed_bytes(way), byte_counts.moved_bytes(way)
        if claimed > 0 and moved < MISSING_GOOD * claimed and byte_counts.may_have_new_member:
            yield unchecked_answer(
                f"{byte_counts.device} moved {percent_text(moved / claimed)} of the "
                f"{format_bytes(claimed)} {word}, and an event may have brought in a device that "
                "is not counted",
                **evidence,
            )
        elif claimed > 0 and moved < MISSING_GOOD * claimed:
            verdict = invalid_answer if moved < MISSING_BAD * claimed else indicative_answer
            where = (
                "came from memory, or was never read"
                if way is Direction.READ
                else "had not reached it"
            )
            yield verdict(
                f"{byte_counts.device} moved {percent_text(moved / claimed)} of the "
                f"{format_bytes(claimed)} {word}: the rest {where}.",
                **evidence,
            )
    yield from _trim_byte_answers(byte_counts)
    yield from _layer_below_answers(byte_counts)
    yield from _excess_byte_answers(byte_counts)
    claimed = (
        byte_counts.claimed_read_bytes
        + byte_counts.claimed_write_bytes
        + byte_counts.claimed_trim_bytes
    )
    yield valid_answer(
        f"{byte_counts.device} moved the {format_bytes(claimed)} that the engine claims.",
        **evidence,
    )


def _trim_byte_answers(byte_counts: DeviceByteCounts) -> Iterator[CheckAnswer]:
    """Trims that the device's kernel did not count, or not as many, were none of the device's."""
    claimed, counted = byte_counts.claimed_trim_bytes, byte_counts.discard_bytes
    if not claimed:
        return
    if counted is None:
        yield unchecked_answer(
            f"the kernel of {byte_counts.device} does not count discards",
            **_device_byte_evidence(byte_counts),
        )
    elif counted < MISSING_GOOD * claimed:
        verdict = invalid_answer if counted < MISSING_BAD * claimed else indicative_answer
        yield verdict(
            f"{byte_counts.device} discarded {percent_text(counted / claimed)} of the "
            f"{format_bytes(claimed)} trimmed: the rest had not reached it.",
            **_device_byte_evidence(byte_counts),
        )


def _layer_below_answers(byte_counts: DeviceByteCounts) -> Iterator[CheckAnswer]:
    """A layer below the nearest device (a loop's file, a thin pool) that answered by itself."""
    evidence = _device_byte_evidence(byte_counts)
    if byte_counts.is_layer_below_unknown:
        yield indicative_answer(
            f"Could not be checked below {byte_counts.device}: its backing device is not known.",
            **evidence,
        )
    if byte_counts.claimed_read_bytes and _did_layer_move_too_few_bytes(
        byte_counts.read_bytes_below, byte_counts.read_bytes
    ):
        yield invalid_answer(
            f"The devices below {byte_counts.device} read only "
            f"{format_bytes(byte_counts.read_bytes_below or 0)} of "
            f"its {format_bytes(byte_counts.read_bytes)}: a layer between answered from memory.",
            **evidence,
        )
    if byte_counts.claimed_write_bytes and _did_layer_move_too_few_bytes(
        byte_counts.write_bytes_below, byte_counts.write_bytes
    ):
        yield indicative_answer(
            f"The devices below {byte_counts.device} wrote only "
            f"{format_bytes(byte_counts.write_bytes_below or 0)} "
            f"of its {format_bytes(byte_counts.write_bytes)}: a layer between kept or shrank the "
            "rest.",
            **evidence,
        )


def _did_layer_move_too_few_bytes(below: int | None, above: int) -> bool:
    return below is not None and below < MISSING_BAD * above


def _excess_byte_answers(byte_counts: DeviceByteCounts) -> Iterator[CheckAnswer]:
    total = (
        byte_counts.claimed_read_bytes
        + byte_counts.claimed_write_bytes
        + byte_counts.claimed_trim_bytes
    )
    limit = max(EXCESS_SHARE * total, BACKGROUND_BYTES_PER_S * byte_counts.seconds)
    causes = {
        "read": "read-ahead or others' reads",
        "wrote": "amplification or others' writes",
        "discarded": "others' trims",
    }
    # Where nothing is trimmed, discards are a file system's own and no load.
    discarded = (byte_counts.discard_bytes or 0) if byte_counts.claimed_trim_bytes else 0
    for way, claimed, moved in (
        (
            "read",
            byte_counts.claimed_read_bytes,
            byte_counts.read_bytes - byte_counts.probe_read_bytes,
        ),
        ("wrote", byte_counts.claimed_write_bytes, byte_counts.write_bytes),
        ("discarded", byte_counts.claimed_trim_bytes, discarded),
    ):
        if moved - claimed > limit:
            yield indicative_answer(
                f"{byte_counts.device} {way} {format_bytes(moved)} where the engine claims "
                f"{format_bytes(claimed)}: {causes[way]}.",
                **_device_byte_evidence(byte_counts),
            )


def _device_byte_evidence(byte_counts: DeviceByteCounts) -> EvidenceValues:
    return {
        "device": byte_counts.device,
        "hosts": " ".join(byte_counts.host_names),
        "claimed_read_bytes": byte_counts.claimed_read_bytes,
        "device_read_bytes": byte_counts.read_bytes,
        "probed_bytes": byte_counts.probe_read_bytes,
        "claimed_write_bytes": byte_counts.claimed_write_bytes,
        "device_write_bytes": byte_counts.write_bytes,
        **(
            {
                "claimed_trim_bytes": byte_counts.claimed_trim_bytes,
                "device_discard_bytes": byte_counts.discard_bytes,
            }
            if byte_counts.claimed_trim_bytes
            else {}
        ),
        "below_read_bytes": byte_counts.read_bytes_below,
        "below_write_bytes": byte_counts.write_bytes_below,
    }


@check("buffered-io", "Buffered I/O", needs_load=False)
def check_buffered_io(view: RunView) -> CheckAnswer:
    """Whether the page cache stands between the engine and the storage."""
    if view.job.direct:
        return valid_answer(
            "O_DIRECT: no page cache between the engine and the storage.", direct=True
        )
    return indicative_answer(
        "Buffered I/O: reads may come from memory, and writes end in memory first.", direct=False
    )


@check("cache-hits", "Reads from the page cache")
def check_cache_hits(view: RunView) -> CheckAnswer:
    """Whether the reads can have been answered by the hosts' memory."""
    if Direction.READ not in view.job.data_directions:
        return not_applicable_answer("The workload reads nothing.", reads=False)
    if view.job.direct:
        return not_applicable_answer("O_DIRECT reads pass the page cache by.", direct=True)
    if _is_cache_proved_cold(view):
        return valid_answer(
            "The page cache was empty at the start and the device moved every byte read."
        )
    return worst_answer(_file_size_vs_memory_answer(view, host) for host in view.hosts)


def _is_cache_proved_cold(view: RunView) -> bool:
    """The drop was verified on every host, and the devices moved what was read."""
    for host in view.hosts:
        cache, size = host.cache_drop, _data_set_bytes_per_host(view)
        if cache is None or cache.resident_bytes_after is None:
            return False
        if cache.resident_bytes_after > COLD_RESIDENT_SHARE * size:
            return False
    groups = device_byte_counts(view)
    return groups is not None and all(
        group.read_bytes >= COLD_DEVICE_SHARE * group.claimed_read_bytes for group in groups
    )


def _data_set_bytes_per_host(view: RunView) -> int:
    files = view.job.data_set(view.record.run.point.configuration)
    return files.bytes_per_host if files else 0


def _file_size_vs_memory_answer(view: RunView, host: HostRun) -> CheckAnswer:
    """Buffered reads without proof: what matters is whether the files fit into memory."""
    size, facts = _data_set_bytes_per_host(view), view.facts_of_host(host)
    if facts is None:
        return unchecked_answer(f"the memory of {host.host} is not known", files_bytes=size)
    memory = facts.memory.usable_bytes
    evidence: EvidenceValues = {"host": host.host, "files_bytes": size, "memory_bytes": memory}
    if size <= memory:
        return invalid_answer(
            f"The files ({format_bytes(size)}) fit into the memory of {host.host} "
            f"({format_bytes(memory)}) and nothing proves that they were read from storage.",
            **evidence,
        )
    return indicative_answer(
        f"The files ({format_bytes(size)}) exceed the memory of {host.host} "
        f"({format_bytes(memory)}), but part of the reads may have come from it.",
        **evidence,
    )


@check("target-in-memory", "Target in memory", needs_load=False)
@per_host()
def check_target_in_memory(view: RunView, host_index: int) -> CheckAnswer:
    """Whether the target is storage at all."""
    host, target = view.hosts[host_index].host, view.target_of_host(view.hosts[host_index])
    if target is None:
        return unchecked_answer(f"the target of {host} is not known", host=host)
    evidence: EvidenceValues = {"host": host, "fs_type": target.fs_type, "device": target.device}
    if target.in_memory:
        return invalid_answer(
            f"The target is {target.layers_or_fs_type_text}, which lives in memory.", **evidence
        )
    if target.memory_backed:
        return indicative_answer(
            f"The blocks of {target.device} are memory of {host}: this measures a RAM disk "
            f"({target.layers_or_fs_type_text}).",
            **evidence,
        )
    return valid_answer(f"The target is {target.fs_type} on {target.mount_source}.", **evidence)


@check("hidden-layer", "Layers that hide the storage", needs_load=False)
@per_host()
def check_hidden_layer(view: RunView, host_index: int) -> CheckAnswer:
    """Whether the hosts see what their targets are on, down to a device or a server."""
    host, target = view.hosts[host_index].host, view.target_of_host(view.hosts[host_index])
    if target is None:
        return not_applicable_answer(f"The target of {host} is not known.", host=host)
    layers = target.layers_or_fs_type_text
    evidence: EvidenceValues = {"host": host, "fs_type": target.fs_type, "layers": layers}
    below = f"What lies below '{target.path}' ({layers}) cannot be seen from {host}"
    if target.hidden and can_compare_with_storage_nodes(view):
        return valid_answer(f"{below}; the storage nodes' disks are compared instead.", **evidence)
    if target.hidden and target.fs_type == "overlay":
        why = f"'{target.path}' on {host} is on a container's own layer (overlay), not on a volume"
        return indicative_answer(f"{why}; what lies below cannot be seen.", **evidence)
    if target.hidden:
        return indicative_answer(f"{below}: it may be memory.", **evidence)
    if target.network:
        return not_applicable_answer(f"{below}: it is on a server.", **evidence)
    return valid_answer(f"All layers of the target are seen: {layers}.", **evidence)


@check("unwritten-extents", "Reads of unwritten extents", needs_load=False)
@per_host()
def check_unwritten_extents(view: RunView, host_index: int) -> CheckAnswer:
    """Whether all that is read was written before."""
    if Direction.READ not in view.job.data_directions:
        return not_applicable_answer("The workload reads nothing.", reads=False)
    host = view.hosts[host_index]
    proof = host.extents
    if proof is None or proof.method == "none" or proof.file_count == 0:
        return unchecked_answer(
            f"nothing tells which extents of the files on {host.host} were written"
        )
    evidence = _extent_evidence(host.host, proof)
    missing = proof.hole_bytes + proof.unwritten_bytes
    if missing > 0:
        return invalid_answer(
            f"{format_bytes(missing)} of the {format_bytes(proof.size_bytes)} to be read on "
            f"{host.host} were never written: zeros come from memory.",
            **evidence,
        )
    if proof.method == "blocks":
        return indicative_answer(
            "Only the count of allocated blocks tells that the files were written; a file system "
            "that shares or compresses blocks can miscount.",
            **evidence,
        )
    return valid_answer(f"All {format_bytes(proof.written_bytes)} were written before.", **evidence)


def _extent_evidence(host_name: str, proof: ExtentProof) -> EvidenceValues:
    return {
        "host": host_name,
        "method": proof.method,
        "files": proof.file_count,
        "size_bytes": proof.size_bytes,
        "written_bytes": proof.written_bytes,
        "unwritten_bytes": proof.unwritten_bytes,
        "hole_bytes": proof.hole_bytes,
    }
