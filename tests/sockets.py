"""What a process can be spoken to at over a network, as the kernel's tables of sockets tell it."""

from __future__ import annotations

import contextlib
from ipaddress import IPv4Address
from pathlib import Path

LISTENING = "0A"
"""How the tables of TCP say so."""


def listening(pid: int | None) -> list[IPv4Address]:
    """The addresses at which a process listens by TCP, each port's."""
    return _held(pid, ("tcp", "tcp6"), LISTENING)


def bound(pid: int | None) -> list[IPv4Address]:
    """The addresses of its UDP sockets that have a port, each port's."""
    return _held(pid, ("udp", "udp6"), "")


def family(pid: int) -> list[int]:
    """The process and all that descend from it."""
    children: dict[int, list[int]] = {}
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            # The name before it stands in brackets, and may hold anything.
            parent = int((entry / "stat").read_text().rpartition(")")[2].split()[1])
        except OSError:
            continue  # it has just ended
        children.setdefault(parent, []).append(int(entry.name))
    found = [pid]
    for one in found:
        found += children.get(one, [])
    return found


def _held(pid: int | None, tables: tuple[str, ...], state: str) -> list[IPv4Address]:
    """Those of the tables' sockets that the process has open, in any state if none is given."""
    held = set()
    for entry in Path(f"/proc/{pid}/fd").iterdir():
        with contextlib.suppress(FileNotFoundError):  # it has just been closed
            held.add(str(entry.readlink()))
    found = []
    for table in tables:
        for line in Path(f"/proc/{pid}/net/{table}").read_text().splitlines()[1:]:
            local, is_, inode = (line.split()[column] for column in (1, 3, 9))
            if state in ("", is_) and f"socket:[{inode}]" in held:
                # An address of version 6 is one of 4 in its last word, or of every interface.
                found.append(
                    IPv4Address(int(local.partition(":")[0][-8:], 16).to_bytes(4, "little"))
                )
    return found
