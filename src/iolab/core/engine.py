"""The makers of load that a study may name."""

from __future__ import annotations

from enum import StrEnum


class EngineName(StrEnum):
    """What makes the load."""

    FIO = "fio"
    NATIVE = "native"
    """I/O on files and devices by the agent's own engine."""
    METADATA = "metadata"
    """Metadata operations, built into the agent."""
    MDTEST = "mdtest"
    """Metadata operations by mdtest under MPI."""
    DB_BENCH = "db_bench"
    """Operations on a RocksDB database by RocksDB's own db_bench."""
    YCSB = "ycsb"
    """Operations on a key-value store, embedded or behind a server, by YCSB."""
