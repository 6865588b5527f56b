"""The test configuration: what each host is, as its kernel and firmware told it."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from msgspec.structs import replace

from iolab.core.configuration import Configuration
from iolab.core.host import (
    VIRTUAL,
    CpuFacts,
    DiskFacts,
    HostFacts,
    HostRole,
    MemoryFacts,
    NicFacts,
    is_emulator,
)
from iolab.core.study import Study
from iolab.report.numbers import DASH, money_text
from iolab.report.table import Cell, Table, row_of_cells, select_columns, text_and_number_columns
from iolab.study.targets import configuration_facts_by_host
from iolab.text import counted_noun, list_text
from iolab.units import format_bytes

DISKS_MAX: Final = 64
"""Disks listed for a host; a rack of disks would bury everything else."""

MACHINE: Final = "Machine"
"""The name of the line on processors and memory at the head of a page."""

COLUMNS_MAX: Final = 4
"""Configurations, or kinds of hosts, that get a column each."""

HOSTS_SHOWN: Final = 6
"""Hosts named over a column; a fleet's others are counted."""

MODELS_SHOWN: Final = 4
"""Models of disks named for a host; the appendix lists every disk."""

CLIENTS_MAX: Final = 16
"""Clients named for a configuration; a fleet's others are counted."""

_CONFIGURATION_FACT_NAMES: Final = ("Nodes", "Raw capacity", "Usable capacity", "Cost")

STATED_TITLE: Final = "Stated in the study"
FOUND_TITLE: Final = "Found on the hosts"
"""Above the rows of hardware: what an author wrote, and what the agent read."""

_DRIVE_NAMES: Final = frozenset({"ssd", "drive", "disk", "nvme"})
"""Rows of free text that name the model of the storage."""

MADE_NAMES: Final = ("loop", "ram", "zram")
"""How devices of a file or of memory are named."""

_MODEL_NUMBER: Final = re.compile(r"(?<![\d.,])[A-Z]*\d{3,}[A-Z0-9]*(?![\d.,]*\s?[TG]i?B)")
_CAPACITY: Final = re.compile(r"\d[\d.,]*(?=\s?[TG]i?B)")

_HOST_FACT_NAMES: Final = (
    "Machine",
    "Processor",
    "Memory",
    "Network",
    "System",
    "Virtual machine",
    "Pod",
    "Disks",
    "Target",
    "Volume",
    "I/O limits",
    "Node",
)


def group_identical_hosts(
    facts_by_host: Mapping[str, HostFacts],
) -> list[tuple[list[str], HostFacts]]:
    """Hosts that differ in serial numbers and free space alone share tables.

    (names, facts of the first).
    """
    groups: dict[str, tuple[list[str], HostFacts]] = {}
    for name, host in facts_by_host.items():
        same = _without_free_space(host)
        alike = repr(
            (host_table(same).rows[:-1], disks_table([name, name], same), nics_table(same))
        )
        groups.setdefault(alike, ([], host))[0].append(name)
    return list(groups.values())


def _without_free_space(host: HostFacts) -> HostFacts:
    """Guests' images and hosts' disks are never equally full."""
    if host.target is None:
        return host
    return replace(host, target=replace(host.target, free_bytes=0))


def host_table(facts: HostFacts) -> Table:
    """Processor, memory, system and target of a host; the last row is what could not be read."""
    kernel = facts.kernel
    settings = [
        f"transparent huge pages {kernel.transparent_hugepage}"
        if kernel.transparent_hugepage
        else "",
        f"governor {facts.cpu.governor}" if facts.cpu.governor else "",
        f"io_uring_disabled {kernel.io_uring_disabled}"
        if kernel.io_uring_disabled is not None
        else "",
    ]
    tools = [tool.version or f"{tool.name}: not found" for tool in facts.tools]
    title = facts.machine.vendor_and_product_text
    rows = [
        *([row_of_cells("Machine", title)] if title else []),
        *([row_of_cells("Cloud", facts.cloud.summary_text)] if facts.cloud else []),
        row_of_cells("Processor", _cpu_text(facts.cpu)),
        row_of_cells("NUMA", _numa_text(facts.cpu)),
        row_of_cells("Memory", _memory_text(facts.memory)),
        row_of_cells("System", f"{kernel.os}, Linux {kernel.release}, {kernel.architecture}"),
        row_of_cells("Virtual machine", kernel.hypervisor or "no"),
        row_of_cells("Settings", ", ".join(text for text in settings if text) or DASH),
        *([row_of_cells("Pod", facts.pod.pod_node_and_limits_text)] if facts.pod else []),
        row_of_cells("Target", _target_description(facts)),
        *([row_of_cells("Volume", facts.pod.volume_text)] if facts.pod else []),
        *([row_of_cells("I/O limits", limits)] if (limits := _io_limits_text(facts)) else []),
        row_of_cells("Tools", ", ".join(tools) or DASH),
        row_of_cells("Not read", " ".join(facts.faults) or "everything was read"),
    ]
    return Table("Host", text_and_number_columns(("What", "As found")), tuple(rows))


def _cpu_text(cpu: CpuFacts) -> str:
    speed = f", up to {cpu.max_mhz / 1000:.2f} GHz" if cpu.max_mhz else ""
    limit = (
        f"; a load may use {cpu.usable_core_limit:.3g} of them"
        if cpu.usable_core_limit is not None
        else ""
    )
    return (
        f"{counted_noun(cpu.sockets, 'socket')} of {cpu.model}: {counted_noun(cpu.cores, 'core')}, "
        f"{counted_noun(cpu.threads, 'thread')}{speed}{limit}"
    )


def _numa_text(cpu: CpuFacts) -> str:
    nodes = [f"{node.id}: CPUs {node.cpus}, {format_bytes(node.memory_bytes)}" for node in cpu.numa]
    return "; ".join(nodes) or DASH


def _memory_text(memory: MemoryFacts) -> str:
    kinds = Counter((module.size_bytes, module.type, module.speed_mts) for module in memory.modules)
    modules = [
        f"{n} × {format_bytes(size)} {kind}{f'-{speed}' if speed else ''}"
        for (size, kind, speed), n in kinds.items()
    ]
    limit = memory.usable_bytes
    bound = f"; a load may use {format_bytes(limit)} of it" if limit < memory.total_bytes else ""
    kinds_text = f" ({', '.join(modules)})" if modules else ""
    return f"{format_bytes(memory.total_bytes)}{kinds_text}{bound}"


def _io_limits_text(facts: HostFacts) -> str:
    """What control groups allow of the devices below the target."""
    return "; ".join(limit.device_and_io_limits_phrase for limit in facts.target_cgroup_io_limits)


def stacked_devices_text(facts: HostFacts) -> str:
    """The devices of the target in layers, nearest first: `loop0 + loop1 on vda`."""
    rest = list(facts.target.devices) if facts.target else []
    parents = {disk.name: disk.parents for disk in facts.disks if disk.name in rest}
    if not any(parents.values()):
        return " on ".join(rest)
    layers = []
    while rest:
        below = {parent for name in rest for parent in parents.get(name, ()) if parent != name}
        layer = [name for name in rest if name not in below] or rest
        layers.append(" + ".join(layer))
        rest = [name for name in rest if name not in layer]
    return " on ".join(layers)


def _target_description(facts: HostFacts) -> str:
    target = facts.target
    if target is None:
        return DASH
    devices = stacked_devices_text(facts) or target.mount_source
    return (
        f"{target.path}: {target.fs_type} ({target.mount_options}) on {devices}, "
        f"{format_bytes(target.total_bytes)}, {format_bytes(target.free_bytes)} free"
    )


def disks_table(host_names: list[str], facts: HostFacts) -> Table:
    """The block devices of the hosts, those below the target first; serials of a single host."""
    below = facts.target.devices if facts.target else ()
    ordered = sorted(facts.disks, key=lambda disk: (disk.name not in below, disk.name))
    rows = tuple(_disk_row(disk, below) for disk in ordered[:DISKS_MAX])
    texts = ("Disk", "Model", "Serial", "Firmware", "Size", "Kind", "Scheduler", "Blocks", "Link")
    hidden = len(ordered) - DISKS_MAX
    more = (row_of_cells(f"{hidden} more", *([DASH] * len(texts))),) if hidden > 0 else ()
    table = Table("Disks", text_and_number_columns((*texts, "On")), (*rows, *more))
    if len(host_names) == 1:
        return table
    return select_columns(
        table, [i for i, column in enumerate(table.columns) if column.title != "Serial"]
    )


def _disk_row(disk: DiskFacts, target_device_names: tuple[str, ...]) -> tuple[Cell, ...]:
    return row_of_cells(
        f"{disk.name} (target)" if disk.name in target_device_names else disk.name,
        disk.model or DASH,
        disk.serial or DASH,
        disk.firmware or DASH,
        format_bytes(disk.size_bytes),
        disk.medium_kind,
        disk.scheduler or DASH,
        f"{disk.logical_block_bytes} / {disk.physical_block_bytes} B",
        disk.pcie_link or DASH,
        disk.backing_file or ", ".join(disk.parents) or DASH,
    )


def nics_table(facts: HostFacts) -> Table:
    """The network ports of a host."""
    rows = tuple(_nic_row(nic) for nic in facts.nics)
    return Table(
        "Network ports", text_and_number_columns(("Port", "Driver", "Speed", "MTU", "State")), rows
    )


def _nic_row(nic: NicFacts) -> tuple[Cell, ...]:
    if nic.speed_mbit_s is None:
        speed = DASH
    elif nic.speed_mbit_s >= 1000:
        speed = f"{nic.speed_mbit_s / 1000:g} Gbit/s"
    else:
        speed = f"{nic.speed_mbit_s} Mbit/s"
    return row_of_cells(
        nic.name, nic.driver or DASH, speed, str(nic.mtu), "up" if nic.up else "down"
    )


def hardware_tables(study: Study, facts: Mapping[str, HostFacts]) -> tuple[Table, ...]:
    """What was measured: a column for each configuration, in which equal cells are merged.

    `facts` are by the keys of `targets_of_study`. Of many configurations each has a row, of what
    differs, after a table of what is the same in all of them.
    """
    owners = study.configurations
    extra = list(dict.fromkeys(name for owner in owners for name, _ in owner.hardware))
    stated = ("Clients", *_CONFIGURATION_FACT_NAMES, *extra)
    names = (*stated, *_HOST_FACT_NAMES)
    nodes = _facts_by_hypervisor(study, facts)
    node = (
        _distinct_texts_with_hosts(
            {name: _hypervisor_host_hardware_text(host) for name, host in nodes.items()}
        )
        or DASH
    )
    every = zip(
        names,
        *(
            (
                list_text(owner.hosts, CLIENTS_MAX),
                *_configuration_fact_texts(owner, extra),
                *_host_fact_texts_of_configuration(
                    owner, configuration_facts_by_host(study, facts, owner.id)
                ),
                node,
            )
            for owner in owners
        ),
        strict=True,
    )
    shown = [(name, texts) for name, *texts in every if any(text != DASH for text in texts)]
    if len(owners) <= COLUMNS_MAX:
        titles = [owner.title for owner in owners] if len(owners) > 1 else ["As stated and found"]
        heads = ("What", *titles)
        rows = tuple(row_of_cells(name, *texts) for name, texts in shown)
        found_at = sum(name in stated for name, _ in shown)
        # The names of clients alone need no title.
        has_both = 1 < found_at < len(rows)
        groups = ((0, STATED_TITLE), (found_at, FOUND_TITLE)) if has_both else ()
        return _tables_with_rows(
            Table("Hardware", text_and_number_columns(heads), rows, groups, merges_equal=True)
        )
    alike = [row_of_cells(name, texts[0]) for name, texts in shown if len(set(texts)) == 1]
    differ = [(name, texts) for name, texts in shown if len(set(texts)) > 1]
    heads = ("Configuration", *(name for name, _ in differ))
    rows = tuple(
        row_of_cells(owner.title, *(texts[number] for _, texts in differ))
        for number, owner in enumerate(owners)
    )
    return _tables_with_rows(
        Table("All configurations", text_and_number_columns(("What", "As found")), tuple(alike)),
        Table("Configurations", text_and_number_columns(heads), rows if differ else ()),
    )


def hardware_fact_rows(
    study: Study, facts: Mapping[str, HostFacts], configuration_labels: Mapping[str, str]
) -> tuple[tuple[str, str], ...]:
    """The machines and the storage of all configurations in a line each, for the head of a page.

    Drives are those that the study states, else those that were found. `configuration_labels`
    are what a page calls configurations, by their ids.
    """
    owners = study.configurations
    if len(owners) > COLUMNS_MAX:
        return ()
    own = [(owner, configuration_facts_by_host(study, facts, owner.id)) for owner in owners]
    stated = [_stated_drive_text(owner) for owner in owners]
    storage = (
        ("Storage, as stated", stated)
        if all(stated)
        else (
            "Storage",
            [
                owner.object_store.url_text
                if owner.object_store
                else _first_and_other_kinds_count_text(_disk_models_texts(hosts))
                for owner, hosts in own
            ],
        )
    )
    nodes = _facts_by_hypervisor(study, facts)
    # A box says what was measured in place of stated drives.
    are_others = any(
        _are_all_disks_virtual(_target_disks_without_loop_backing(hosts.values()))
        for _, hosts in own
    )
    rows = (
        (MACHINE, [_processor_and_memory_text(nodes or hosts) for _, hosts in own]),
        *(() if all(stated) and are_others else (storage,)),
    )
    names = [configuration_labels.get(owner.id, owner.title) for owner in owners]
    return tuple(
        (name, text)
        for name, texts in rows
        if (text := _shared_or_per_configuration_text(names, texts))
    )


def _shared_or_per_configuration_text(titles: Sequence[str], texts: Sequence[str]) -> str:
    """What all have alike once, else each after its owner; empty where one is not known."""
    if not all(texts):
        return ""
    if len(set(texts)) == 1:
        return texts[0]
    return "; ".join(f"{title}: {text}" for title, text in zip(titles, texts, strict=True))


def _processor_and_memory_text(facts_by_host: Mapping[str, HostFacts]) -> str:
    """Processor and memory of a host, of several kinds of hosts that of the first and how many."""
    lines = [
        f"{host.cpu.sockets} × {host.cpu.model}, {counted_noun(host.cpu.cores, 'core')}, "
        f"{format_bytes(host.memory.total_bytes)}"
        for host in facts_by_host.values()
    ]
    return _first_and_other_kinds_count_text(lines)


def _stated_drive_text(configuration: Configuration) -> str:
    """The drive that the study names for a configuration; empty for none."""
    names = ((name.casefold().removesuffix("s"), text) for name, text in configuration.hardware)
    return next((text for name, text in names if name in _DRIVE_NAMES), "")


def _disk_models_texts(facts_by_host: Mapping[str, HostFacts]) -> list[str]:
    return [_disk_models_text(host).replace(DASH, "") for host in facts_by_host.values()]


def _first_and_other_kinds_count_text(texts: Iterable[str]) -> str:
    kinds = list(dict.fromkeys(filter(None, texts)))
    more = f" and {counted_noun(len(kinds) - 1, 'other kind')}" if len(kinds) > 1 else ""
    return f"{kinds[0]}{more}" if kinds else ""


def demonstration_answer_prefix(study: Study, facts: Mapping[str, HostFacts]) -> str:
    """How an answer begins that tells nothing of drives; empty where drives were measured.

    Such is a target on devices of files or of memory, a virtual disk in place of a stated drive or
    at a reduced scale, and a load that emulated processors make: what takes the time is the
    emulator.
    """
    if any(is_emulator(host.kernel.hypervisor) for host in facts.values()):
        return "Demonstration on emulated processors: "
    if not any(
        _virtual_disks_in_place_of_drives(study, facts, owner) for owner in study.configurations
    ):
        return ""
    is_stated = any(_stated_drive_text(owner) for owner in study.configurations)
    return f"Demonstration, not {'the stated drives' if is_stated else 'drives'}: "


def _virtual_disks_in_place_of_drives(
    study: Study, facts: Mapping[str, HostFacts], configuration: Configuration
) -> list[DiskFacts]:
    """The disks that a configuration was measured on in place of drives."""
    disks = _target_disks_without_loop_backing(
        configuration_facts_by_host(study, facts, configuration.id).values()
    )
    if not _are_all_disks_virtual(disks):
        return []
    is_no_drive = bool(_stated_drive_text(configuration)) or study.has_reduced_scale
    return [disk for disk in disks if is_no_drive or disk.name.startswith(MADE_NAMES)]


def measured_storage_caveat(study: Study, facts: Mapping[str, HostFacts]) -> str:
    """What was measured where that is not the stated drive, lives in a file or has set limits.

    Empty where none of that is known.
    """
    stated: list[str] = []
    reported: list[str] = []
    virtual: list[DiskFacts] = []
    for owner in study.configurations:
        disks = _target_disks_without_loop_backing(
            configuration_facts_by_host(study, facts, owner.id).values()
        )
        drive = _stated_drive_text(owner)
        models = [disk.model for disk in disks if disk.model]
        if _are_all_disks_virtual(disks):
            virtual += _virtual_disks_in_place_of_drives(study, facts, owner)
        elif drive and models and not _is_model_among_disks(drive, models):
            stated.append(f"{drive} for {owner.title}")
            reported += models
    limits = [limit.device for host in facts.values() for limit in host.target_cgroup_io_limits]
    parts = []
    if virtual:
        is_stated = any(_stated_drive_text(owner) for owner in study.configurations)
        against = "not on the stated drives" if is_stated else "not on drives"
        has_limits = {disk.name for disk in virtual} & set(limits)
        limited = ", with I/O limits set," if has_limits else ","
        scale = f" at scale {study.scale}" if study.has_reduced_scale else ""
        parts.append(f"Measured on {_disk_names_text(virtual)}{scale}{limited} {against}.")
        limits = [name for name in limits if not has_limits]
    if stated:
        parts.append(
            f"The study states {list_text(stated, COLUMNS_MAX)}; the hosts report "
            f"{list_text(dict.fromkeys(reported), MODELS_SHOWN)} below the target. Check that both "
            "are the same."
        )
    if limits:
        names = list_text(dict.fromkeys(limits), MODELS_SHOWN)
        parts.append(f"I/O limits were set on {names}: figures may be the limits.")
    return " ".join(parts)


def _are_all_disks_virtual(disks: Sequence[DiskFacts]) -> bool:
    return bool(disks) and all(disk.medium_kind == VIRTUAL for disk in disks)


def _disk_names_text(disks: Iterable[DiskFacts]) -> str:
    """Disks by what they are: `loop1 and loop2 (700 MiB, virtual)`."""
    names: dict[str, list[str]] = {}
    for disk in disks:
        names.setdefault(f"{format_bytes(disk.size_bytes)}, {disk.medium_kind}", []).append(
            f"{disk.name} {disk.model}" if disk.model else disk.name
        )
    texts = (
        f"{list_text(dict.fromkeys(own), MODELS_SHOWN)} ({kind})" for kind, own in names.items()
    )
    return "; ".join(texts)


def _target_disks_without_loop_backing(hosts: Iterable[HostFacts]) -> tuple[DiskFacts, ...]:
    """The disks below the targets, without those that hold the file of a loop device."""
    found: list[DiskFacts] = []
    for host in hosts:
        below = host.target.devices if host.target is not None else ()
        own = [disk for disk in host.disks if disk.name in below]
        found += [disk for disk in own if disk.name.startswith(MADE_NAMES)] or own
    return tuple(found)


def _is_model_among_disks(stated: str, found_models: Iterable[str]) -> bool:
    """Whether a number of the stated model is in one that was found; True where it has none."""
    numbers = set(_MODEL_NUMBER.findall(stated)) - set(_CAPACITY.findall(stated))
    return not numbers or any(number in model for number in numbers for model in found_models)


def _configuration_fact_texts(
    configuration: Configuration, extra_hardware_names: Iterable[str]
) -> tuple[str, ...]:
    """The facts of a configuration, in the order of their names and `extra_hardware_names`."""
    hardware = dict(configuration.hardware)
    return (
        _integer_or_dash(configuration.nodes),
        _terabytes_or_dash(configuration.capacity.raw_tb),
        _terabytes_or_dash(configuration.capacity.usable_tb),
        _cost_text(configuration),
        *(hardware.get(name, DASH) for name in extra_hardware_names),
    )


def _facts_by_hypervisor(study: Study, facts: Mapping[str, HostFacts]) -> dict[str, HostFacts]:
    """The facts of the nodes that guests were booted on."""
    nodes = (host.name for host in study.hosts if host.role is HostRole.HYPERVISOR)
    return {name: facts[name] for name in nodes if name in facts}


def _hypervisor_host_hardware_text(host: HostFacts) -> str:
    """A node of guests in one cell: what they share."""
    kernel = host.kernel
    parts = (
        _cpu_text(host.cpu),
        f"{_memory_text(host.memory)} of memory",
        _disk_models_text(host),
        _target_filesystem_text(host),
        f"{kernel.os}, Linux {kernel.release}",
        f"itself a virtual machine ({kernel.hypervisor})" if kernel.hypervisor else "",
    )
    return "; ".join(part for part in parts if part not in ("", DASH))


def _fact_texts_of_hosts(facts_by_host: Mapping[str, HostFacts]) -> tuple[str, ...]:
    """What its hosts are, by `_HOST_FACT_NAMES`; where they differ each text with its hosts."""
    own_count = len(_HOST_FACT_NAMES) - 1  # that of nodes is not theirs
    if not facts_by_host:
        return (DASH,) * own_count
    by_host = {name: _one_host_fact_texts(host) for name, host in facts_by_host.items()}
    return tuple(
        _distinct_texts_with_hosts({name: texts[place] for name, texts in by_host.items()})
        for place in range(own_count)
    )


def _host_fact_texts_of_configuration(
    configuration: Configuration, facts: Mapping[str, HostFacts]
) -> tuple[str, ...]:
    """The same of a configuration, whose target may be no path of its hosts."""
    store = configuration.object_store
    texts = zip(_HOST_FACT_NAMES[:-1], _fact_texts_of_hosts(facts), strict=True)
    return tuple(store.url_text if store and name == "Target" else text for name, text in texts)


def _distinct_texts_with_hosts(texts_by_host: Mapping[str, str]) -> str:
    hosts: dict[str, list[str]] = {}
    for name, text in texts_by_host.items():
        hosts.setdefault(text, []).append(name)
    if len(hosts) < 2:
        return next(iter(hosts), "")
    parts = [f"{text} ({list_text(names, HOSTS_SHOWN)})" for text, names in hosts.items()]
    return "; ".join(parts)


def _tables_with_rows(*tables: Table) -> tuple[Table, ...]:
    return tuple(table for table in tables if table.rows)


def _integer_or_dash(value: int | None) -> str:
    return DASH if value is None else str(value)


def _terabytes_or_dash(value: float | None) -> str:
    return DASH if value is None else f"{value:,.6g} TB"


def _cost_text(configuration: Configuration) -> str:
    cost = configuration.cost
    if cost is None:
        return DASH
    return (
        f"{money_text(cost.total)} {cost.currency} (servers {money_text(cost.servers)}, "
        f"network {money_text(cost.network)}, storage {money_text(cost.storage)})"
    )


def _one_host_fact_texts(host: HostFacts) -> tuple[str, ...]:
    """What a machine and its target are, by `_HOST_FACT_NAMES`."""
    kernel = host.kernel
    return (
        host.machine.vendor_and_product_text or DASH,
        _cpu_text(host.cpu),
        _memory_text(host.memory),
        _network_ports_text(host),
        f"{kernel.os}, Linux {kernel.release}",
        kernel.hypervisor or DASH,
        (host.pod and host.pod.pod_node_and_limits_text) or DASH,
        _disk_models_text(host),
        _target_filesystem_text(host),
        (host.pod and host.pod.volume_text) or DASH,
        _io_limits_text(host) or DASH,
    )


def _disk_models_text(facts: HostFacts) -> str:
    """The disks below the target, or else all, counted by model and size."""
    below = facts.target.devices if facts.target else ()
    used = [disk for disk in facts.disks if disk.name in below] or list(facts.disks)
    models = Counter((disk.model or disk.name, disk.size_bytes, disk.medium_kind) for disk in used)
    names = [
        f"{f'{number} × ' if number > 1 else ''}{model}, {format_bytes(size)} {medium}".strip()
        for (model, size, medium), number in models.items()
    ]
    return list_text(names, MODELS_SHOWN) or DASH


def _network_ports_text(facts: HostFacts) -> str:
    """The ports of devices that are up and have a speed, counted by it."""
    ports = [nic for nic in facts.nics if nic.up and nic.has_hardware]
    speeds = Counter(nic.speed_mbit_s for nic in ports if nic.speed_mbit_s)
    return ", ".join(f"{n} × {speed / 1000:g} Gbit/s" for speed, n in speeds.items()) or DASH


def _target_filesystem_text(facts: HostFacts) -> str:
    target = facts.target
    if target is None:
        return DASH
    source = stacked_devices_text(facts) or target.mount_source
    return f"{target.path}: {target.fs_type} on {source}"
