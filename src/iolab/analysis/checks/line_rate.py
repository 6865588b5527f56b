"""The bytes a second that the engine claims against what the ports and links of a host carry."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

from iolab.analysis.bottleneck.resource_use import bytes_per_s_by_port
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
)
from iolab.analysis.view import RunView
from iolab.core.host import HostFacts
from iolab.text import list_text
from iolab.units import format_rate_bytes

PCIE_LINK: Final = re.compile(r"([0-9]{1,4}(?:\.[0-9]{1,3})?) GT/s x([0-9]{1,3})\b")
"""As a disk's facts tell its link: transfers a second of each lane, a bit each, and lanes."""


@check("line-rate", "More bytes than the line carries")
@per_host(max_key="line_share")
def check_line_rate(view: RunView, host_index: int) -> CheckAnswer:
    """Whether what is claimed fits through the ports or the links to the target."""
    host = view.hosts[host_index]
    facts, where = view.facts_of_host(host), view.on_host_if_several(host)
    rates = view.claimed_bytes_per_s_by_direction(host_index)
    if facts is None or facts.target is None or not rates:
        return unchecked_answer(f"the target or the rates of {host.host} are not known")
    is_network = facts.target.network
    lines = (
        _bytes_per_s_by_port_if_all_known(facts)
        if is_network
        else _pcie_bytes_per_s_by_device_if_all_known(facts)
    )
    if not lines:
        kind = "port" if is_network else "PCI Express link"
        return not_applicable_answer(
            f"Not every {kind} of {host.host} tells its speed.", host=host.host
        )
    line = sum(lines.values())
    way, fastest = max(rates.items(), key=lambda pair: pair[1])
    evidence: EvidenceValues = {
        "host": host.host,
        "direction": way.key,
        "claimed_bytes_per_s_by_direction": fastest,
        "line_bytes_per_s": line,
        "line_share": fastest / line,
        "lines": " ".join(lines),
    }
    text = (
        f"The engine{where} claims {way.key}s of {format_rate_bytes(fastest)}, where the line to "
        f"the target ({list_text(lines)}) carries {format_rate_bytes(line)}"
    )
    if fastest <= line:
        return valid_answer(f"{text}.", **evidence)
    if is_network:
        return indicative_answer(
            f"{text}: the rest was memory's, or a server's on the host itself.", **evidence
        )
    return invalid_answer(f"{text}: the rest was memory's.", **evidence)


def _bytes_per_s_by_port_if_all_known(facts: HostFacts) -> Mapping[str, float]:
    """What all ports together carry, in bytes a second; empty if one that is up tells nothing."""
    speeds = bytes_per_s_by_port(facts)
    ports = [nic.name for nic in facts.nics if nic.up and nic.has_hardware]
    return {} if set(ports) - set(speeds) else {name: speeds[name] for name in ports}


def _pcie_bytes_per_s_by_device_if_all_known(facts: HostFacts) -> Mapping[str, float]:
    """What the links of the target's drives carry, in bytes a second; empty if any is unknown."""
    used = set(facts.target.devices if facts.target else ())
    disks = [disk for disk in facts.disks if disk.name in used]
    found = {disk.name: PCIE_LINK.match(disk.pcie_link or "") for disk in disks if not disk.parents}
    speeds = {name: float(link[1]) * 1e9 * int(link[2]) / 8 for name, link in found.items() if link}
    is_known = len(disks) == len(used) and len(speeds) == len(found) and all(speeds.values())
    return speeds if is_known else {}
