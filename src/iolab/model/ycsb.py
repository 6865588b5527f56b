"""Load on a key-value store in YCSB's terms: a client's job, and the server it works against."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from iolab.model.engine import EngineName
from iolab.model.key_value import KeyOperation

YCSB_OPERATIONS: Final = (
    KeyOperation.READ,
    KeyOperation.UPDATE,
    KeyOperation.INSERT,
    KeyOperation.SCAN,
    KeyOperation.READ_MODIFY_WRITE,
)
"""What a workload of YCSB is mixed of; a read-modify-write counts as a read and an update too."""


class Distribution(StrEnum):
    """How keys are drawn, in YCSB's words (`requestdistribution`)."""

    UNIFORM = "uniform"
    ZIPFIAN = "zipfian"
    LATEST = "latest"
    HOTSPOT = "hotspot"
    SEQUENTIAL = "sequential"
    EXPONENTIAL = "exponential"


@dataclass(frozen=True, slots=True)
class YcsbJob:
    """One client's load with every number settled.

    `mix` is each operation's share of all, which add up to 1. The store holds `records` of `fields`
    fields of `field_bytes` each, of which a read takes all and an update writes one.
    `rate_ops_per_s` is for all threads of the client, None for as fast as the store answers.
    `memory_bytes` bounds all memory of the client's process where the store is embedded in it, its
    page cache too. `options` are further options, allow-listed by the engine.
    """

    mix: tuple[tuple[KeyOperation, float], ...]
    records: int
    threads: int
    fields: int = 4
    field_bytes: int = 1024
    distribution: Distribution = Distribution.UNIFORM
    rate_ops_per_s: int | None = None
    memory_bytes: int | None = None
    options: tuple[tuple[str, str], ...] = ()

    @property
    def engine(self) -> EngineName:
        """What makes this load."""
        return EngineName.YCSB

    @property
    def record_bytes(self) -> int:
        """The values of a record."""
        return self.fields * self.field_bytes

    def share(self, operation: KeyOperation) -> float:
        """The operation's share of all; 0 for one that the mix has not."""
        return dict(self.mix).get(operation, 0.0)


class ServerKind(StrEnum):
    """Where the store of a YCSB workload runs."""

    EMBEDDED = "embedded"
    """RocksDB inside each client's own process, on the client's target: no server."""
    MANAGED = "managed"
    """One Apache Cassandra node that iolab starts, watches and stops on the target."""
    GIVEN = "given"
    """A cluster that the user has; iolab makes a keyspace in it and removes nothing else."""


@dataclass(frozen=True, slots=True)
class ServerSettings:
    """The store of a study's YCSB workloads.

    `addresses` are HOST[:PORT] of a given cluster. A managed node runs on `host`, a client or a
    storage node of the study ("" is the first client of each configuration), in `version`,
    listens on `listen`:`port` and nowhere else, has a heap of `heap_bytes` and, with
    `memory_bytes`, no more memory than that, its page cache too. `replication` and `consistency`
    are those of the keyspace and of every operation. `ycsb` is the folder of the user's own YCSB
    on every client, "" for the one that iolab brings; `java` the program, found on PATH when it
    has no slash.
    """

    kind: ServerKind = ServerKind.EMBEDDED
    addresses: tuple[str, ...] = ()
    host: str = ""
    version: str = "4.0.17"
    listen: str = "127.0.0.1"
    port: int = 9042
    heap_bytes: int = 1 << 30
    memory_bytes: int | None = None
    keyspace: str = "iolab"
    replication: int = 1
    consistency: str = "ONE"
    ycsb: str = ""
    java: str = "java"


EMBEDDED: Final = ServerSettings()
"""No server."""
