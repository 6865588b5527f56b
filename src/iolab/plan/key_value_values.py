"""Kinds of value that only the tables of key-value load and its server hold."""

from __future__ import annotations

import ipaddress
import math
import re
from typing import Final

from iolab.plan import routes, values
from iolab.plan.wording import shown, suggestion

BENCHMARKS: Final = (
    "readrandom",
    "readrandomwriterandom",
    "readwhilewriting",
    "readrandomfast",
    "readrandomsmall",
    "readrandomcoroutine",
    "readrandomentity",
    "multireadrandom",
    "multireadrandomcoroutine",
    "multireadentity",
    "multireadwhilewriting",
    "multiscan",
    "multiscanrandom",
    "seekrandom",
    "seekrandomwhilewriting",
    "newiterator",
    "newiteratorwhilewriting",
    "approximatesizerandom",
    "overwrite",
    "updaterandom",
    "xorupdaterandom",
    "appendrandom",
    "mixgraph",
    "randomwithverify",
)
"""What db_bench can do for a time with a database that was loaded, by its own names.

Others end by themselves whatever time they are given, make a database of their own, or need a
merge operator, which the loaded one has not.
"""

WRITERS_BESIDE: Final = ("whilewriting",)
"""What the names of benchmarks end in that have a writer of their own beside the readers."""

VERSIONS: Final = {"4.0": "4.0.17", "4.1": "4.1.10", "5.0": "5.0.6"}
"""The lines of Cassandra that a managed node may be of, each with the version that was tried."""

CONSISTENCIES: Final = (
    "ANY",
    "ONE",
    "TWO",
    "THREE",
    "QUORUM",
    "ALL",
    "LOCAL_ONE",
    "LOCAL_QUORUM",
    "EACH_QUORUM",
)
"""Cassandra's consistency levels of reads and writes."""

KEYSPACE_CHARACTERS: Final = 48
"""As long as Cassandra takes."""

_VERSION: Final = re.compile(r"(?:4\.0|4\.1|5\.0)(?:\.[0-9]{1,3})?")
_KEYSPACE: Final = re.compile(rf"[a-z][a-z0-9_]{{0,{KEYSPACE_CHARACTERS - 1}}}")
_ENDPOINT: Final = re.compile(
    r"(?:\[(?P<six>[^\]]{1,60})\]|(?P<name>[^:\[\]]{1,253}))(?::(?P<port>[0-9]{1,5}))?"
)
_PROGRAM: Final = re.compile(
    r"(?:/[A-Za-z0-9_.+][A-Za-z0-9_.+-]{0,99}){1,20}|[A-Za-z0-9_.+-]{1,99}"
)


def portion() -> values.Read:
    """A part of a whole: a number from 0 to 1, both of them too."""

    def read(value: object) -> float:
        if isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value <= 1:
            return float(value)
        raise values.fault(f"is {shown(value)}", "Give a share from 0 to 1, as 0.95.")

    return values.Read(read, {"type": "number", "minimum": 0, "maximum": 1})


def version() -> values.Read:
    """A version of Cassandra; one without a third part is the one that was tried of its line."""

    def read(value: object) -> str:
        if isinstance(value, str) and _VERSION.fullmatch(value):
            return VERSIONS.get(value, value)
        lines = ", ".join(VERSIONS)
        do = f"Give a version of {lines} in quotes, as '{VERSIONS['4.0']}' or '4.0'."
        raise values.fault(f"is {shown(value)}", do)

    return values.Read(read, {"type": "string", "pattern": f"^(?:{_VERSION.pattern})$"})


def keyspace() -> values.Read:
    """The name of a keyspace, which is never quoted."""

    def read(value: object) -> str:
        if isinstance(value, str) and _KEYSPACE.fullmatch(value):
            return value
        do = "Use small letters, digits and '_', a letter first, "
        raise values.fault(f"is {shown(value)}", f"{do}at most {KEYSPACE_CHARACTERS} characters.")

    return values.Read(read, {"type": "string", "pattern": f"^{_KEYSPACE.pattern}$"})


def endpoint() -> values.Read:
    """Where a server listens, `HOST[:PORT]`, an IPv6 address in brackets."""

    def read(value: object) -> str:
        if isinstance(value, str) and is_endpoint(value):
            return value
        do = "Write HOST[:PORT], as in 'db-1.example.org:9042'."
        raise values.fault(f"has {shown(value)}", do)

    return values.Read(read, {"type": "string"})


def is_endpoint(text: str) -> bool:
    """Whether `text` is HOST[:PORT] of a name or an IP address."""
    match = _ENDPOINT.fullmatch(text)
    if match is None:
        return False
    if match["port"] and not 1 <= int(match["port"]) <= routes.PORT_MAX:
        return False
    return routes.is_address(match["name"] or match["six"])


def listen_address() -> values.Read:
    """The IP address that a server of ours listens on."""

    def read(value: object) -> str:
        # On all ports at once nobody could say who reaches it, and Cassandra refuses it.
        if isinstance(value, str) and routes.is_ip(value) and not _is_every(value):
            return value
        do = "Give the IP address of one of the host's own ports, as '127.0.0.1' or '192.0.2.7'."
        raise values.fault(f"is {shown(value)}", do)

    return values.Read(read, {"type": "string"})


def _is_every(address: str) -> bool:
    return ipaddress.ip_address(address).is_unspecified


def program() -> values.Read:
    """A program by its full path, or by a name that is found on PATH; nothing else of a path."""

    def read(value: object) -> str:
        if isinstance(value, str) and _PROGRAM.fullmatch(value) and not value.startswith("-"):
            return value
        do = "Give a full path, as '/opt/jdk-17/bin/java', or a name without a slash."
        raise values.fault(f"is {shown(value)}", do)

    return values.Read(read, {"type": "string", "pattern": f"^(?:{_PROGRAM.pattern})$"})


def benchmark() -> values.Read:
    """What db_bench does, by its own name."""

    def read(value: object) -> str:
        if isinstance(value, str) and value in BENCHMARKS:
            return value
        spelling = value if isinstance(value, str) else ""
        raise values.fault(f"is {shown(value)}", suggestion(spelling, BENCHMARKS, "benchmarks"))

    return values.Read(read, {"enum": list(BENCHMARKS)})


def adds_up(shares: list[float]) -> bool:
    """Whether shares are a whole, but for what decimal fractions lose in binary."""
    return math.isclose(sum(shares), 1, abs_tol=1e-9)


def ycsb_text(value: float | str) -> str:
    """The value of an option as YCSB reads it: `true` and `false`, numbers and text as they are."""
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value)
