"""`iolab doctor --hosts`: all hosts of an inventory asked at once, one row each, and what to do."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from rich.text import Text

from iolab.cli.alike import FleetFinding, fastest_port, fio_of, fleet_findings, link_speed
from iolab.cli.conduct import ENGINES
from iolab.cli.examine import State
from iolab.cli.hosts import find_hosts
from iolab.cli.mpi import TOOLS
from iolab.cli.screen import QUIET_STYLE, Heading, plain, table
from iolab.errors import StudyError, UsageError
from iolab.plan.inventory import parse_inventory
from iolab.report.wording import count, listing
from iolab.run.clock import SYSTEM_CLOCK, ClockOffset
from iolab.run.hosts.reach import open_hosts
from iolab.run.inspection import Inspected, Inspection, inspect_hosts
from iolab.run.survey import tools_of
from iolab.units import format_bytes

if TYPE_CHECKING:
    from rich.console import RenderableType

    from iolab.model.host import HostSpec

HOSTS_SHOWN: Final = 4
"""Names in a cell; a finding about more hosts counts the rest."""

NONE: Final = "–"
STYLES: Final = {State.OK: "green", State.NOTE: "yellow", State.FAULT: "bold red"}


def read_hosts(name: str) -> tuple[HostSpec, ...]:
    """The hosts that `--hosts` names; UsageError with every fault of it."""
    inventory = find_hosts(name)
    try:
        return parse_inventory(inventory.text, inventory.file_name)
    except StudyError as error:
        happened = f"The inventory has {count(len(error.faults), 'fault')}."
        raise UsageError(happened, error.do, error.faults) from None


async def inspect_fleet(specs: tuple[HostSpec, ...], path: str | None) -> Inspection:
    """Reach every host, ask and watch them all at once, and let go.

    `path` is absolute, for hosts that name none of their own.
    """
    tools = tools_of(ENGINES)
    tools |= {name: list(words) for name, words in TOOLS.items()}
    async with open_hosts(specs) as hosts:
        return await inspect_hosts(hosts, path, tools, SYSTEM_CLOCK)


def fleet_screen(specs: tuple[HostSpec, ...], seen: Inspection) -> tuple[RenderableType, ...]:
    """A row a host, then the findings with what to do."""
    headings = (
        Heading("host"),
        Heading("clock, ms", number=True),
        Heading("fio", main=True),
        Heading("kernel", main=True),
        Heading("on", main=True),
        Heading("free", number=True),
        Heading("link", number=True),
        Heading("MTU", number=True),
        Heading("governor"),
        Heading("CPU", number=True),
        Heading("disk", number=True),
    )
    rows: list[list[Text | str]] = []
    for spec in specs:
        host = seen.reached.get(spec.name)
        rest = _cells(host) if host else [plain("no answer", STYLES[State.FAULT]), *[NONE] * 9]
        rows.append([plain(spec.name), *rest])
    return table(headings, rows), "", _findings_table(fleet_findings(seen))


def fleet_document(specs: tuple[HostSpec, ...], seen: Inspection) -> dict[str, Any]:
    """The same for programs: times in ns, shares from 0 to 1, null where nothing is known.

    Of a host that was not reached there is its name and role alone; a finding says why.
    """
    hosts = []
    for spec in specs:
        host = seen.reached.get(spec.name)
        known = {"name": spec.name, "role": spec.role.value, "reached": host is not None}
        hosts.append({**known, **(_facts(host) if host else {})})
    findings = [
        {
            "what": item.finding.what,
            "state": item.finding.state.value,
            "hosts": list(item.hosts),
            "says": item.finding.says,
            "do": item.finding.do,
        }
        for item in fleet_findings(seen)
    ]
    return {"format": 1, "hosts": hosts, "findings": findings}


def _cells(host: Inspected) -> list[Text | str]:
    facts, target, port = host.facts, host.facts.target, fastest_port(host.facts)
    return [
        _offset(host.offset),
        plain(fio_of(facts).removeprefix("fio-")),
        plain(facts.kernel.release),
        plain(target.fs_type) if target else NONE,
        format_bytes(target.free_bytes) if target else NONE,
        link_speed(port),
        str(port.mtu) if port else NONE,
        plain(facts.cpu.governor or NONE),
        _share(host.quiet.cpu_busy),
        _share(host.quiet.device_busy),
    ]


def _offset(offset: ClockOffset) -> str:
    return f"{offset.offset_ns / 1e6:+,.1f} ± {offset.error_ns / 1e6:,.1f}"


def _share(share: float | None) -> str:
    return NONE if share is None else f"{share:.0%}"


def _facts(host: Inspected) -> dict[str, Any]:
    facts, target, port = host.facts, host.facts.target, fastest_port(host.facts)
    return {
        "clock_offset_ns": host.offset.offset_ns,
        "clock_error_ns": host.offset.error_ns,
        "fio": fio_of(facts),
        "kernel": facts.kernel.release,
        "path": host.path,
        "fs_type": target.fs_type if target else None,
        "mount_source": target.mount_source if target else None,
        "free_bytes": target.free_bytes if target else None,
        "port": port.name if port else None,
        "link_mbit_s": port.speed_mbit_s if port else None,
        "mtu": port.mtu if port else None,
        "governor": facts.cpu.governor,
        "cpu_busy": host.quiet.cpu_busy,
        "device_busy": host.quiet.device_busy,
    }


def _findings_table(found: tuple[FleetFinding, ...]) -> RenderableType:
    rows: list[list[Text | str]] = []
    for item in found:
        finding = item.finding
        names = listing(list(item.hosts), HOSTS_SHOWN)
        state = plain(finding.state, STYLES[finding.state])
        rows.append([plain(finding.what), state, plain(names), plain(finding.says)])
        if finding.do:
            rows.append(["", "", "", plain(finding.do, QUIET_STYLE)])
    headings = (
        Heading(""),
        Heading("state"),
        Heading("hosts", main=True),
        Heading("found, and what to do", main=True),
    )
    return table(headings, rows)
