"""MPI host files, as MPICH (Hydra), Intel MPI and Open MPI read them, as an inventory. Pure.

    client1                      # any
    client2:16 binding=core      # Hydra and Intel MPI
    bench@client3 slots=8 max_slots=16
    client1                      # again: more slots of the same host

Slots say how many ranks MPI starts; a study says how many jobs, so they are checked and left out.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

from iolab.errors import Fault, UsageError
from iolab.model.host import HostKind
from iolab.plan.hosts_text import inventory_text
from iolab.plan.inventory import Inventory
from iolab.plan.ranges import HOSTS_MAX
from iolab.plan.routes import PORT_MAX, is_address, is_user
from iolab.plan.values import is_identifier
from iolab.plan.wording import shown, suggestion

LINES_MAX: Final = 100_000
"""A line a rank, as some batch systems write it: a thousand hosts of a hundred ranks each."""

FAULTS_MAX: Final = 20
"""A file that is no host file at all has a fault on every line; nobody reads more of them."""


def mpi_inventory(text: str, file_name: str) -> Inventory:
    """The file's hosts, each once and reached by ssh. UsageError with every fault, each located."""
    found: dict[str, _Entry] = {}
    faults: list[Fault] = []
    for number, line in enumerate(text.splitlines()[: LINES_MAX + 1], 1):
        try:
            if (entry := _read_line(line)) is not None:
                _enter(found, entry, number)
        except _LineFault as fault:
            faults.append(Fault(fault.happened, fault.do, file_name, number))
    if len(found) > HOSTS_MAX:
        faults.append(Fault(f"There are {len(found)} hosts.", f"Give at most {HOSTS_MAX}."))
    if not found and not faults:
        faults.append(Fault("The host file has no host.", "Write one a line.", file_name, 1))
    if faults:
        count = "a fault" if len(faults) == 1 else f"{len(faults)} faults"
        do = "Correct it and run again."
        raise UsageError(f"The MPI host file has {count}.", do, faults[:FAULTS_MAX])
    hosts = [entry.table() for entry in found.values()]
    return Inventory(inventory_text(f"--hosts mpi:, {len(hosts)} hosts", hosts), file_name)


_SLOTS: Final = ("slots", "slot", "cpus", "cpu", "count", "max_slots", "max-slots", "slots_max")
_SLOTS_MORE: Final = ("slots-max", "max_cpus", "max-cpus", "cpus_max", "boards", "sockets", "cores")
_IGNORED: Final = ("binding", "ifname", "hca")
_USERS: Final = ("user", "username", "user_name", "user-name")
_KEYS: Final = frozenset((*_SLOTS, *_SLOTS_MORE, *_IGNORED, *_USERS, "port"))
_COUNTED: Final = frozenset((*_SLOTS, *_SLOTS_MORE))
_NUMBER: Final = re.compile(r"[1-9][0-9]{0,6}")
_HOST_DO: Final = "Write HOST, USER@HOST, HOST:SLOTS or HOST slots=N."


class _LineFault(ValueError):
    def __init__(self, happened: str, do: str) -> None:
        super().__init__(happened)
        self.happened = happened
        self.do = do


@dataclass(frozen=True, slots=True)
class _Entry:
    name: str
    user: str | None
    port: int | None

    def table(self) -> dict[str, str | int | list[str]]:
        written: dict[str, str | int | list[str]] = {
            "name": self.name,
            "kind": HostKind.SSH.value,
        }
        if self.user is not None:
            written["user"] = self.user
        if self.port is not None:
            written["port"] = self.port
        return written


def _enter(found: dict[str, _Entry], entry: _Entry, number: int) -> None:
    first = found.setdefault(entry.name, entry)
    if first != entry:
        happened = f"Host {shown(entry.name)} has another user or port than before."
        raise _LineFault(happened, f"Write the same in line {number} and above.")


def _read_line(line: str) -> _Entry | None:
    """The host of a line, None when there is none."""
    words = re.sub(r"\s*=\s*", "=", line.split("#", 1)[0]).split()
    if not words:
        return None
    first, *rest = words
    if "=" in first or (first == "rank" and rest):
        do = "A rank file says which rank runs where; give the host file instead."
        raise _LineFault(f"The line begins with {shown(first)}, not with a host.", do)
    values = dict(_read_word(word) for word in rest)
    users = [value for key, value in values.items() if key in _USERS]
    before, at, place = first.rpartition("@")
    users = [before, *users] if at else users
    name = _read_place(place)
    for user in users:
        if not is_user(user):
            raise _LineFault(f"The user of {shown(name)} is {shown(user)}.", "Give a login name.")
    if len(set(users)) > 1:
        raise _LineFault(f"Host {shown(name)} has two users.", "Leave one of them out.")
    port = values.get("port")
    if port is not None and not (_NUMBER.fullmatch(port) and int(port) <= PORT_MAX):
        happened = f"The port of {shown(name)} is {shown(port)}."
        raise _LineFault(happened, f"Give a number from 1 to {PORT_MAX}.")
    return _Entry(name, users[0] if users else None, int(port) if port else None)


def _read_place(place: str) -> str:
    """The name in `HOST[:SLOTS[:more]]`."""
    if place.startswith(("+", "^")):
        happened = f"{shown(place)} chooses among other hosts."
        raise _LineFault(happened, "Name the hosts themselves.")
    if place.startswith("[") or place.count(":") > 2:
        do = "Write an inventory, whose address may be one of IPv6."
        raise _LineFault(f"{shown(place)} is no name of a host.", do)
    name, colon, slots = place.partition(":")
    if not is_identifier(name) or not is_address(name):
        raise _LineFault(f"{shown(name)} is no name of a host.", _HOST_DO)
    if colon:
        _check_count(name, slots.split(":")[0])
    return name


def _read_word(word: str) -> tuple[str, str]:
    key, equals, value = word.partition("=")
    key = key.lower()
    if not equals or not value:
        raise _LineFault(f"{shown(word)} behind a host is not understood.", _HOST_DO)
    if key not in _KEYS:
        do = suggestion(key, sorted(_KEYS), "keys")
        raise _LineFault(f"The host file's key {shown(key)} is not known.", do)
    if key in _COUNTED:
        _check_count(key, value)
    return key, value


def _check_count(what: str, text: str) -> None:
    if not _NUMBER.fullmatch(text):
        happened = f"The number behind {shown(what)} is {shown(text)}."
        raise _LineFault(happened, "Give a whole number from 1.")
