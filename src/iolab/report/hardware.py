"""The test configuration: what each host is, as its kernel and firmware told it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import replace
from itertools import islice
from typing import Final

from iolab.core.configuration import Configuration
from iolab.core.host import CpuFacts, DiskFacts, HostFacts, MemoryFacts, NicFacts, TargetFacts
from iolab.report.numbers import NOTHING, count, listing
from iolab.report.table import Cell, Column, Table, columns, row, with_columns
from iolab.units import format_bytes

MAX_DISKS: Final = 64
"""Disks listed for a host; a rack of disks would bury everything else."""

SIDE_BY_SIDE: Final = 4
"""Configurations, or kinds of hosts, that get a column each."""

HOSTS_NAMED: Final = 6
"""Hosts named over a column; a fleet's others are counted."""

MODELS_SHOWN: Final = 4
"""Models of disks named for a host; the appendix lists every disk."""

CLIENTS_MAX: Final = 16
"""Clients named for a configuration; a fleet's others are counted."""


def same_hosts(facts: Mapping[str, HostFacts]) -> list[tuple[list[str], HostFacts]]:
    """Hosts that differ in serial numbers and free space alone share tables.

    (names, facts of the first).
    """
    groups: dict[str, tuple[list[str], HostFacts]] = {}
    for name, host in facts.items():
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
    title = facts.machine.title
    rows = [
        *([row("Machine", title)] if title else []),
        *([row("Cloud", facts.cloud.title)] if facts.cloud else []),
        row("Processor", _cpu(facts.cpu)),
        row("NUMA", _numa(facts.cpu)),
        row("Memory", _memory(facts.memory)),
        row("System", f"{kernel.os}, Linux {kernel.release}, {kernel.architecture}"),
        row("Virtual machine", kernel.hypervisor or "no"),
        row("Settings", ", ".join(text for text in settings if text) or NOTHING),
        row("Target", _target(facts.target)),
        row("Tools", ", ".join(tools) or NOTHING),
        row("Not read", " ".join(facts.faults) or "everything asked for was read"),
    ]
    return Table("Host", columns(("What", "As found")), tuple(rows))


def _cpu(cpu: CpuFacts) -> str:
    speed = f", up to {cpu.max_mhz / 1000:.2f} GHz" if cpu.max_mhz else ""
    limit = f"; a load may use {cpu.limit:.3g} of them" if cpu.limit is not None else ""
    return (
        f"{count(cpu.sockets, 'socket')} of {cpu.model}: {count(cpu.cores, 'core')}, "
        f"{count(cpu.threads, 'thread')}{speed}{limit}"
    )


def _numa(cpu: CpuFacts) -> str:
    nodes = [f"{node.id}: CPUs {node.cpus}, {format_bytes(node.memory_bytes)}" for node in cpu.numa]
    return "; ".join(nodes) or NOTHING


def _memory(memory: MemoryFacts) -> str:
    kinds = Counter((module.size_bytes, module.type, module.speed_mts) for module in memory.modules)
    modules = [
        f"{n} × {format_bytes(size)} {kind}{f'-{speed}' if speed else ''}"
        for (size, kind, speed), n in kinds.items()
    ]
    return format_bytes(memory.total_bytes) + (f" ({', '.join(modules)})" if modules else "")


def _target(target: TargetFacts | None) -> str:
    if target is None:
        return NOTHING
    devices = " on ".join(target.devices) or target.mount_source
    return (
        f"{target.path}: {target.fs_type} ({target.mount_options}) on {devices}, "
        f"{format_bytes(target.total_bytes)}, {format_bytes(target.free_bytes)} free"
    )


def disks_table(names: list[str], facts: HostFacts) -> Table:
    """The block devices of the hosts, those below the target first; serials of a single host."""
    below = facts.target.devices if facts.target else ()
    ordered = sorted(facts.disks, key=lambda disk: (disk.name not in below, disk.name))
    rows = tuple(_disk_row(disk, below) for disk in ordered[:MAX_DISKS])
    texts = ("Disk", "Model", "Serial", "Firmware", "Size", "Kind", "Scheduler", "Blocks", "Link")
    hidden = len(ordered) - MAX_DISKS
    more = (row(f"{hidden} more", *([NOTHING] * len(texts))),) if hidden > 0 else ()
    table = Table("Disks", columns((*texts, "On")), (*rows, *more))
    if len(names) == 1:
        return table
    return with_columns(
        table, [i for i, column in enumerate(table.columns) if column.title != "Serial"]
    )


def _disk_row(disk: DiskFacts, below: tuple[str, ...]) -> tuple[Cell, ...]:
    return row(
        f"{disk.name} (target)" if disk.name in below else disk.name,
        disk.model or NOTHING,
        disk.serial or NOTHING,
        disk.firmware or NOTHING,
        format_bytes(disk.size_bytes),
        disk.medium,
        disk.scheduler or NOTHING,
        f"{disk.logical_block_bytes} / {disk.physical_block_bytes} B",
        disk.pcie_link or NOTHING,
        disk.backing_file or ", ".join(disk.parents) or NOTHING,
    )


def nics_table(facts: HostFacts) -> Table:
    """The network ports of a host."""
    rows = tuple(_nic_row(nic) for nic in facts.nics)
    return Table("Network ports", columns(("Port", "Driver", "Speed", "MTU", "State")), rows)


def _nic_row(nic: NicFacts) -> tuple[Cell, ...]:
    if nic.speed_mbit_s is None:
        speed = NOTHING
    elif nic.speed_mbit_s >= 1000:
        speed = f"{nic.speed_mbit_s / 1000:g} Gbit/s"
    else:
        speed = f"{nic.speed_mbit_s} Mbit/s"
    return row(nic.name, nic.driver or NOTHING, speed, str(nic.mtu), "up" if nic.up else "down")


def configuration_tables(configurations: tuple[Configuration, ...]) -> tuple[Table, ...]:
    """What the study compares, side by side: a column for each configuration.

    Many have a row each, of what differs, after a table of what is the same in all of them.
    """
    extra = list(
        dict.fromkeys(
            name for configuration in configurations for name, _ in configuration.hardware
        )
    )
    every = zip(
        (*_OFFERS, *extra),
        *(_offer(configuration, extra) for configuration in configurations),
        strict=True,
    )
    named = islice(every, _OF_HOSTS if len(configurations) == 1 else 0, None)
    shown = [(name, texts) for name, *texts in named if any(text != NOTHING for text in texts)]
    if len(configurations) <= SIDE_BY_SIDE:
        heads = (Column("What"), *(Column(configuration.title) for configuration in configurations))
        return _filled(Table("Configurations", heads, tuple(row(n, *texts) for n, texts in shown)))
    alike = [row(name, texts[0]) for name, texts in shown if len(set(texts)) == 1]
    differ = [(name, texts) for name, texts in shown if len(set(texts)) > 1]
    heads = columns(("Configuration", *(name for name, _ in differ)))
    rows = tuple(
        row(configuration.title, *(texts[number] for _, texts in differ))
        for number, configuration in enumerate(configurations)
    )
    return _filled(
        Table("All configurations", columns(("What", "How")), tuple(alike)),
        Table("Configurations", heads, rows if differ else ()),
    )


_OFFERS: Final = ("Clients", "Path", "Nodes", "Raw capacity", "Usable capacity", "Cost")
_OF_HOSTS: Final = 2
"""The first so many are told of the hosts of a single configuration."""


def _offer(configuration: Configuration, extra: Iterable[str]) -> tuple[str, ...]:
    """What is told of a configuration, by the names in `_OFFERS` and those of `extra` hardware."""
    hardware = dict(configuration.hardware)
    return (
        listing(list(configuration.hosts), CLIENTS_MAX),
        configuration.path or NOTHING,
        _or_nothing(configuration.nodes),
        _terabytes(configuration.capacity.raw_tb),
        _terabytes(configuration.capacity.usable_tb),
        _cost(configuration),
        *(hardware.get(name, NOTHING) for name in extra),
    )


def _filled(*tables: Table) -> tuple[Table, ...]:
    return tuple(table for table in tables if table.rows)


def _or_nothing(value: int | None) -> str:
    return NOTHING if value is None else str(value)


def _terabytes(value: float | None) -> str:
    return NOTHING if value is None else f"{value:g} TB"


def _cost(configuration: Configuration) -> str:
    cost = configuration.cost
    if cost is None:
        return NOTHING
    return (
        f"{cost.total:,.0f} {cost.currency} (servers {cost.servers:,.0f}, "
        f"network {cost.network:,.0f}, storage {cost.storage:,.0f})"
    )


def hardware_table(facts: Mapping[str, HostFacts]) -> Table:
    """What the hosts are; those of which the same is told stand together, whatever their targets.

    Up to `SIDE_BY_SIDE` of them have a column each, more a row.
    """
    groups: dict[tuple[str, ...], tuple[list[str], list[str]]] = {}
    for name, host in facts.items():
        names, targets = groups.setdefault(_machine(host), ([], []))
        names.append(name)
        targets.append(_where(host.target))
    parts = [
        (listing(names, HOSTS_NAMED), *machine, "; ".join(dict.fromkeys(targets)))
        for machine, (names, targets) in groups.items()
    ]
    heads = ("Hosts", *_FACTS_SHOWN, "Target")
    if len(parts) > SIDE_BY_SIDE:
        return Table("Hosts", columns(heads), tuple(row(*part) for part in parts))
    heading, *rows = (
        row(head, *(part[place] for part in parts)) for place, head in enumerate(heads)
    )
    shown = tuple(cells for cells in rows if any(cell.text != NOTHING for cell in cells[1:]))
    return Table("Hosts", tuple(Column(cell.text) for cell in heading), shown)


_FACTS_SHOWN: Final = (
    "Machine",
    "Processor",
    "Memory",
    "Network",
    "Disks",
    "System",
    "Virtual machine",
)


def _machine(host: HostFacts) -> tuple[str, ...]:
    """What is told of a machine, by the names in `_FACTS_SHOWN`."""
    kernel = host.kernel
    return (
        host.machine.title or NOTHING,
        _cpu(host.cpu),
        _memory(host.memory),
        _ports(host),
        _models(host),
        f"{kernel.os}, Linux {kernel.release}",
        kernel.hypervisor or "no",
    )


def _models(facts: HostFacts) -> str:
    """The disks below the target, or else all, counted by model and size."""
    below = facts.target.devices if facts.target else ()
    used = [disk for disk in facts.disks if disk.name in below] or list(facts.disks)
    models = Counter((disk.model or disk.name, disk.size_bytes, disk.medium) for disk in used)
    names = [
        f"{f'{number} × ' if number > 1 else ''}{model}, {format_bytes(size)} {medium}".strip()
        for (model, size, medium), number in models.items()
    ]
    return listing(names, MODELS_SHOWN) or NOTHING


def _ports(facts: HostFacts) -> str:
    """The ports of devices that are up and have a speed, counted by it."""
    ports = [nic for nic in facts.nics if nic.up and nic.has_device]
    speeds = Counter(nic.speed_mbit_s for nic in ports if nic.speed_mbit_s)
    return ", ".join(f"{n} × {speed / 1000:g} Gbit/s" for speed, n in speeds.items()) or NOTHING


def _where(target: TargetFacts | None) -> str:
    if target is None:
        return NOTHING
    source = " on ".join(target.devices) or target.mount_source
    return f"{target.path}: {target.fs_type} on {source}"
