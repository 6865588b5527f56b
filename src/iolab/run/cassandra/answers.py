"""What iolab's own Java tools say of a Cassandra, parsed at the edge; see `_kits/ycsb`."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Annotated, Final, TypeVar

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from iolab.errors import EngineError
from iolab.model.key_value_run import Statistic
from iolab.run.hosts.text import printable

REPORT: Final = "This is a fault of iolab; please report it with the command that led here."

LINE_LIMIT_BYTES: Final = 1 << 20
"""An answer has a few hundred bytes; a table of a thousand columns has some ten thousand."""

Name = Annotated[str, Field(max_length=256)]
Counter = Annotated[str, Field(pattern="^[a-z0-9_]{1,60}$")]
Text = Annotated[str, Field(max_length=4096)]
Whole = Annotated[int, Field(ge=-(2**63), lt=2**63)]
Port = Annotated[int, Field(ge=1, le=65535)]
Told = TypeVar("Told", bound="_Told")


class _Told(BaseModel):
    model_config = ConfigDict(frozen=True, extra="ignore")


class SchemaTold(_Told):
    """YCSB's table as a cluster has it; None for what it has not.

    `replication` and `columns` are by name, `key` the columns of the primary key, `tables` how
    many the keyspace has, `comment` what stands beside the table.
    """

    version: Name
    nodes: Annotated[int, Field(ge=1)]
    replication: dict[Name, Name] | None
    tables: Annotated[int, Field(ge=0)]
    comment: Text | None
    columns: dict[Name, Name] | None
    key: tuple[Name, ...] | None


class RowsTold(_Told):
    """Rows in `sample` of `ranges` equal ranges of tokens."""

    rows: Annotated[int, Field(ge=0)]
    ranges: Annotated[int, Field(ge=1)]
    sample: Annotated[int, Field(ge=1)]


class PreflightTold(_Told):
    """A host before a node is started: why its port cannot be had, ports that can, the kernel's."""

    java: Name
    vendor: Name | None = None
    taken: Text | None
    storage_port: Port | None
    jmx_port: Port | None
    max_map_count: Whole | None
    swappiness: Whole | None


class CountersTold(_Told):
    """A node's counters at one moment of its host's CLOCK_REALTIME; None for one it has not."""

    real_ns: Annotated[int, Field(ge=0, lt=2**63)]
    counters: Annotated[dict[Counter, Whole | None], Field(max_length=200)]

    @property
    def known(self) -> Mapping[str, int]:
        """The counters that it has."""
        return {name: value for name, value in self.counters.items() if value is not None}

    @property
    def statistics(self) -> tuple[Statistic, ...]:
        """The same for a record."""
        return tuple(
            Statistic(name, float(value), _unit(name)) for name, value in self.known.items()
        )


def read_told(line: bytes, model: type[Told], where: str) -> Told:
    """A tool's answer. EngineError for its refusal, which is a sentence, and for nonsense."""
    try:
        document = json.loads(line[:LINE_LIMIT_BYTES])
    except ValueError:
        raise _nonsense(line, where) from None
    if isinstance(document, dict) and isinstance(document.get("refused"), str):
        says = printable(document["refused"]).rstrip(".")
        raise EngineError(f"{says} (asked on host '{where}').", _remedy(says))
    try:
        return model.model_validate(document)
    except ValidationError:
        raise _nonsense(line, where) from None


def _remedy(says: str) -> str:
    if "No Cassandra answers" in says or "No address" in says:
        return "Start the cluster, or correct server.addresses, and run again."
    return "Correct it in the cluster or in the study, and run again."


def _nonsense(line: bytes, where: str) -> EngineError:
    shown = printable(line[:200].decode("utf-8", "replace"), 100)
    return EngineError(
        f"A tool of iolab on host '{where}' said what cannot be read: {shown}.", REPORT
    )


def _unit(name: str) -> str:
    """The unit that a counter's name ends with; a count has none."""
    tail = name.rpartition("_")[2]
    return {"bytes": "B", "ns": "ns"}.get(tail, "")
