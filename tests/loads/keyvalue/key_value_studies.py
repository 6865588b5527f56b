"""Studies of key-value load for tests, each of one workload that begins at line 3."""

from __future__ import annotations


def db_bench(
    extra: str = "",
    *,
    benchmark: str = "readrandom",
    block_size: str = '"4k"',
    threads: str = "4",
    more: str = "",
) -> str:
    """A study of one db_bench workload; `extra` are lines of it, from line 10."""
    return (
        f'format = 1\nid = "s"\n[[workload]]\nid = "w"\nengine = "db_bench"\n'
        f'benchmark = "{benchmark}"\nkeys = 1000\nblock_size = {block_size}\n'
        f"threads = {threads}\n{extra}\n{more}\n"
    )


def ycsb(
    extra: str = "",
    *,
    mix: str = "{ read = 0.5, update = 0.5 }",
    threads: str = "8",
    more: str = "",
) -> str:
    """A study of one YCSB workload; `extra` are lines of it, from line 9."""
    return (
        f'format = 1\nid = "s"\n[[workload]]\nid = "w"\nengine = "ycsb"\nmix = {mix}\n'
        f"records = 1000\nthreads = {threads}\n{extra}\n{more}\n"
    )
