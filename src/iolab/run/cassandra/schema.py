"""YCSB's table in a cluster: whether it is as a workload needs it, and whose it is."""

from __future__ import annotations

from typing import Final

from iolab.errors import EngineError
from iolab.model.ycsb import ServerSettings
from iolab.run.cassandra.answers import SchemaTold
from iolab.run.cassandra.records import Records
from iolab.run.cassandra.tools import TABLE
from iolab.run.hosts.text import printable

MADE_BY: Final = "made by iolab"
"""How the comment of a table begins that iolab made and may drop."""

KEY: Final = ("y_id",)

SHOWN: Final = 5
"""Columns that a sentence names at most."""


def mark_of(records: Records) -> str:
    """The comment of a table that iolab made and filled: so it is found again."""
    return f"{MADE_BY}, holds {records}"


def is_ours(found: SchemaTold) -> bool:
    """Whether the table was made by iolab, in this session or another."""
    return found.comment is not None and found.comment.startswith(MADE_BY)


def holds(found: SchemaTold, records: Records) -> bool:
    """Whether the table was made by iolab and filled with these records."""
    return found.comment == mark_of(records)


def require_room(found: SchemaTold, settings: ServerSettings) -> None:
    """EngineError when a keyspace as stated cannot be, or is there with another replication."""
    if settings.replication > found.nodes:
        raise EngineError(
            f"{settings.replication} replicas need as many nodes, and the cluster's number of them "
            f"is {found.nodes}.",
            "Set server.replication to the number of nodes or less.",
        )
    if found.replication is None:
        return
    factors = sorted({int(text) for text in found.replication.values() if text.isdecimal()})
    if factors != [settings.replication]:
        told = ", ".join(f"{name} {value}" for name, value in sorted(found.replication.items()))
        raise EngineError(
            f"The keyspace '{settings.keyspace}' exists with another replication ({told}) than "
            f"{settings.replication}.",
            "Set server.replication to what it has, or name another server.keyspace.",
        )


def require_columns(found: SchemaTold, records: Records, settings: ServerSettings) -> None:
    """EngineError when the table has other columns than the workload's; every difference named."""
    has, wants = dict(found.columns or {}), records.columns
    differs = []
    if missing := sorted(wants.keys() - has.keys()):
        differs.append(f"without {_named(missing)}")
    if other := sorted(has.keys() - wants.keys()):
        differs.append(f"with {_named(other)}")
    for name in sorted(wants.keys() & has.keys()):
        # CQL has two names for one type.
        kind = "text" if has[name] == "varchar" else has[name]
        if kind != wants[name]:
            differs.append(f"{printable(name, 60)} is {printable(kind, 60)}, not {wants[name]}")
    if found.key != KEY:
        differs.append(f"its key is {_named(found.key or ())}, not {', '.join(KEY)}")
    if differs:
        raise EngineError(
            f"The table {settings.keyspace}.{TABLE} exists with other columns: "
            f"{'; '.join(differs)}.",
            "Name another server.keyspace; iolab drops nothing that it has not made.",
        )


def _named(names: tuple[str, ...] | list[str]) -> str:
    more = f" and {len(names) - SHOWN} more" if len(names) > SHOWN else ""
    return ", ".join(printable(name, 60) for name in names[:SHOWN]) + more
