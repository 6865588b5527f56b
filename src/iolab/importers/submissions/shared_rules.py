"""Rules for every benchmark of the suite: counters, line rate, preloads, gaps, files left out."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final

from iolab.core.libraries import (
    InterposerKind,
    LoadedLibrary,
    interposer_kind,
    known_library_name,
    preloads_in_text,
    replaced_functions_text,
)
from iolab.importers.foreign_run import EvidenceKind, FileEvidence
from iolab.importers.submissions.result_folder import ResultFolder, parse_finite_number
from iolab.importers.submissions.row import SubmittedRow
from iolab.text import counted_noun, excerpt, list_text, percent_text
from iolab.units import format_bytes, format_rate_bytes

SUPPORTS: Final = EvidenceKind.SUPPORTS
QUESTIONS: Final = EvidenceKind.QUESTIONS
CONTRADICTS: Final = EvidenceKind.CONTRADICTS
EXPLAINS: Final = EvidenceKind.EXPLAINS

COUNTED_SHARE: Final = (0.95, 1.10)
"""Counters see protocols' headers, and not what a cache gave: between these they agree."""

SECTOR_BYTES: Final = 512
_VIRTUAL_INTERFACE: Final = re.compile(
    r"lo|(?:docker|veth|br-|virbr|bond|team|tun|tap|cali|flannel|cni|dummy|kube|vxlan|ovs).*|.*[.:@].*"
)
_WHOLE_DISK: Final = re.compile(r"nvme\d+n\d+|sd[a-z]+|vd[a-z]+|xvd[a-z]+")

_MOUNT_OPTION: Final = re.compile(r"\b(nobarrier|barrier=0|data=writeback)\b")

SHOWN_NAMES: Final = 3


def evidence_from_host_counters(
    row: SubmittedRow, folder: ResultFolder, claimed_bytes: float | None, operation: str
) -> Iterator[FileEvidence]:
    """Bytes that interfaces and disks of the hosts counted, beside those that were claimed."""
    counted = counter_source_and_bytes(folder.metadata, operation)
    if not claimed_bytes or counted is None:
        return
    source, count = counted
    share = count / claimed_bytes
    text = (
        f"{source} of the hosts counted {format_bytes(count)} while {format_bytes(claimed_bytes)} "
        f"are claimed ({percent_text(share)})"
    )
    place = (folder.metadata_file_name, f"cluster snapshots: {source}")
    low, high = COUNTED_SHARE
    if share >= low:
        kind = SUPPORTS if share <= high else EXPLAINS
        yield row.file_evidence("counters", kind, f"{text}.", folder, place)
    else:
        yield row.file_evidence(
            "counters",
            QUESTIONS if share > 1 - low else EXPLAINS,
            f"{text}; traffic of RDMA is in no such counter.",
            folder,
            place,
        )


def counter_source_and_bytes(
    metadata: Mapping[str, Any], operation: str
) -> tuple[str, float] | None:
    """What network interfaces or disks counted from start to end, whichever is more."""
    pair = next((each for each in metadata.values() if _is_snapshot_pair(each)), None)
    if pair is None:
        return None
    network, disk = ("rx_bytes", "sectors_read")
    if operation == "write":
        network, disk = ("tx_bytes", "sectors_written")
    sums = {
        "network interfaces": _counter_growth(
            pair, "network", "interface_name", network, is_virtual_interface
        ),
        "disks": SECTOR_BYTES
        * _counter_growth(
            pair, "disks", "device_name", disk, lambda name: not _WHOLE_DISK.fullmatch(name)
        ),
    }
    source = max(sums, key=lambda each: sums[each])
    return source, sums[source]


def is_virtual_interface(name: str) -> bool:
    """Whether an interface counts what another counts too, or what never leaves the host."""
    return _VIRTUAL_INTERFACE.fullmatch(name) is not None


def _is_snapshot_pair(value: object) -> bool:
    return isinstance(value, dict) and all(
        isinstance(value.get(end), dict) and isinstance(value[end].get("hosts"), list)
        for end in ("start", "end")
    )


def _counter_growth(
    pair: Mapping[str, Any],
    group: str,
    name_key: str,
    counter: str,
    is_left_out: Callable[[str], bool],
) -> float:
    before, after = (
        {
            (str(host.get("hostname")), str(entry.get(name_key))): parse_finite_number(
                entry.get(counter)
            )
            for host in pair[end]["hosts"]
            if isinstance(host, dict) and isinstance(host.get(group), list)
            for entry in host[group]
            if isinstance(entry, dict)
        }
        for end in ("start", "end")
    )
    return sum(
        max(value - first, 0.0)
        for key, value in after.items()
        if value is not None and (first := before.get(key)) is not None and not is_left_out(key[1])
    )


def evidence_on_line_rate(row: SubmittedRow) -> Iterator[FileEvidence]:
    """The rate beside the sum of the clients' network interfaces in the system's description."""
    name, values = row.system_file_and_values
    interfaces: dict[str, dict[str, float]] = {}
    for path, text in values.items():
        match = re.fullmatch(r"(.*clients\.\d+)\.networking\.(\d+)\.(speed|unit_count)", path)
        if match and (number := parse_finite_number(text)) is not None:
            interfaces.setdefault(f"{match[1]} {match[2]}", {})[match[3]] = number
    clients = {key.split(" ")[0] for key in interfaces}
    if not clients or not row.published_rates:
        return
    bits_per_s = sum(
        each.get("speed", 0.0)
        * each.get("unit_count", 1.0)
        * (parse_finite_number(values.get(f"{key.split(' ')[0]}.quantity")) or 1.0)
        for key, each in interfaces.items()
    )
    line_bytes_per_s = bits_per_s * 1e9 / 8
    fastest = max(row.published_rates, key=lambda rate: rate.bytes_per_s)
    if line_bytes_per_s <= 0:
        return
    text = (
        f"{format_rate_bytes(fastest.bytes_per_s)} are claimed; the network interfaces of the "
        f"clients have {format_rate_bytes(line_bytes_per_s)} in all"
    )
    has_drives = any(re.search(r"clients\.\d+\.drives\.", path) for path in values)
    evidence = FileEvidence("line-rate", EXPLAINS, f"{text}.", name, "clients.networking")
    if fastest.bytes_per_s > line_bytes_per_s:
        kind = QUESTIONS if has_drives else CONTRADICTS
        suffix = "; the clients have drives of their own" if has_drives else ""
        evidence = FileEvidence("line-rate", kind, f"{text}{suffix}.", name, "clients.networking")
    yield evidence


def evidence_of_preloads_and_writeback(row: SubmittedRow) -> Iterator[FileEvidence]:
    """Libraries that stored commands load before the program's own, and settings of writeback."""
    texts = [
        (folder, (folder.metadata_file_name, key), text)
        for folder in row.folders
        for key, text in [
            *(("executed_command", each) for each in folder.commands),
            *_environment_keys_and_assignments(folder.metadata),
        ]
    ]
    name, values = row.system_file_and_values
    described = [(row.folders[0], (name, path), text) for path, text in values.items()]
    reported: set[str] = set()
    for folder, place, text in [*texts, *described]:
        for library in preloads_in_text(text):
            if library.path not in reported:
                reported.add(library.path)
                yield _evidence_of_preloaded_library(row, folder, place, library)
    for folder, place, text in texts:
        for option in set(_MOUNT_OPTION.findall(text)) - reported:
            reported.add(option)
            message = f"A stored command has the mount option {option}."
            yield row.file_evidence("preload", QUESTIONS, message, folder, place)
    raised = [
        f"{text} = {values.get(path.removesuffix('name') + 'value', '?')}"
        for path, text in values.items()
        if path.endswith(".name") and text.startswith("vm.dirty_") and "sysctl" in path
    ]
    if raised:
        shown = list_text(list(dict.fromkeys(raised))[:SHOWN_NAMES])
        message = f"The clients' writeback is set: {shown}."
        yield FileEvidence("preload", EXPLAINS, message, name, "clients.sysctl")


def _environment_keys_and_assignments(metadata: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    for key, value in metadata.items():
        if "env" in key and isinstance(value, dict):
            for name, text in value.items():
                yield f"{key}.{name}", f"{name}={text}"


def _evidence_of_preloaded_library(
    row: SubmittedRow, folder: ResultFolder, file_and_key: tuple[str, str], library: LoadedLibrary
) -> FileEvidence:
    text = f"{excerpt(library.path, 200)} is loaded before the program's own libraries"
    match interposer_kind(library):
        case InterposerKind.REPLACES:
            message = f"{text}: by its name it replaces {replaced_functions_text(library)}."
            return row.file_evidence("preload", CONTRADICTS, message, folder, file_and_key)
        case InterposerKind.ALLOCATOR | InterposerKind.SANITIZER:
            message = f"{text}: {known_library_name(library) or 'an allocator'}."
            return row.file_evidence("preload", EXPLAINS, message, folder, file_and_key)
        case _:
            message = f"{text}: what it changes is not in the tree."
            return row.file_evidence("preload", QUESTIONS, message, folder, file_and_key)


def evidence_of_pruned_files(row: SubmittedRow) -> Iterator[FileEvidence]:
    """Files whose content was taken out, and files that cannot be read."""
    for folder in row.folders:
        pruned = folder.pruned_files
        needed = [name for name in pruned if name in folder.unreadable_files]
        if needed:
            message = f"Not known: {counted_noun(len(needed), 'file')} taken out of what is read."
            yield row.file_evidence("pruned-files", QUESTIONS, message, folder, (needed[0], ""))
        elif pruned:
            message = f"{counted_noun(len(pruned), 'log or output')} taken out before publication."
            yield row.file_evidence("pruned-files", EXPLAINS, message, folder, (pruned[0], ""))
        damaged = [name for name in folder.unreadable_files if name not in pruned]
        if damaged:
            message = f"Not known: {counted_noun(len(damaged), 'file')} cannot be read."
            yield row.file_evidence("pruned-files", QUESTIONS, message, folder, (damaged[0], ""))


def evidence_on_program_in_tree(row: SubmittedRow) -> Iterator[FileEvidence]:
    """Whether the program that a run names is in the tree."""
    pool = row.tree / row.organization if row.tree is not None else None
    if pool is None or not pool.is_dir():
        return
    reported: set[str] = set()
    for folder in row.folders:
        digest = folder.read_text_or_note_unreadable(".mlps-code-image").strip().rpartition(":")[2]
        if not re.fullmatch(r"[0-9a-f]{8,64}", digest) or digest in reported:
            continue
        reported.add(digest)
        is_there = (pool / f"code-{digest[:8]}").is_dir()
        text = f"The program of this run has the digest {digest[:8]}, "
        yield row.file_evidence(
            "code-image",
            EXPLAINS if is_there else QUESTIONS,
            text + ("which is in the tree." if is_there else "which is not in the tree."),
            folder,
            (".mlps-code-image", ""),
        )


def evidence_of_command_overrides(
    row: SubmittedRow, folder: ResultFolder
) -> Iterator[FileEvidence]:
    """Parameters that a command sets otherwise than they are stored."""
    parameters = folder.metadata.get("parameters")
    differing = []
    for path, value in folder.command_parameters.items():
        stored: Any = parameters
        for key in path.split("."):
            stored = stored.get(key) if isinstance(stored, dict) else None
        if stored is not None and not _is_same_value(value, stored):
            differing.append(f"{path} = {excerpt(value, 40)} (stored: {excerpt(str(stored), 40)})")
    yield from evidence_of_differing_overrides(row, folder, differing)


def evidence_of_differing_overrides(
    row: SubmittedRow, folder: ResultFolder, overridden_options: Sequence[str]
) -> Iterator[FileEvidence]:
    """A sentence of them all."""
    if overridden_options:
        shown = list_text(list(overridden_options)[:SHOWN_NAMES])
        yield row.file_evidence(
            "command-overrides",
            EXPLAINS,
            f"The command was run with {shown}: its values are taken.",
            folder,
            (folder.metadata_file_name, "executed_command"),
        )


def _is_same_value(text: str, stored: object) -> bool:
    if str(stored).casefold() == text.casefold():
        return True
    number = parse_finite_number(text)
    return number is not None and number == parse_finite_number(stored)


def first_file_name_and_count_text(folder: ResultFolder, names: Sequence[str]) -> tuple[str, str]:
    """The place of several files: the first one's name and how many there are."""
    return (names[0] if names else folder.configuration_file_name, counted_noun(len(names), "file"))
