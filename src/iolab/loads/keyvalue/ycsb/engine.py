"""YCSB as an engine: its command, which tells it everything that has a default. Pure.

See docs/reference/engines/ycsb.md for what is run and which of YCSB's ways are guarded against.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Final

from iolab.core.engine import validate_options
from iolab.core.limits import STREAM_BYTES_MAX
from iolab.errors import EngineError
from iolab.hosts.engine import Command
from iolab.loads.keyvalue.table import BINDING, HEAP, YCSB_OPTIONS
from iolab.loads.keyvalue.workload import (
    YCSB_OPERATIONS,
    KeyDistribution,
    KeyOperation,
    ServerKind,
    YcsbJob,
)
from iolab.loads.keyvalue.ycsb.hdr_log import YCSB_NAMES
from iolab.record import Record

START_LIMIT_S: Final = 180.0
"""For Java to start on a busy host, to connect or open the database, and to close it again."""

TABLE: Final = "usertable"
"""The table's name, which YCSB has by default; in the keyspace of the study."""

OPERATIONS_MAX: Final = (1 << 31) - 1
"""YCSB counts operations in 32 bits; without a number it would start no thread at all."""

FASTEST_OPS_PER_S: Final = 200_000
"""With a zipfian mix of inserts YCSB draws from as many further keys as operations are asked for,
and throws away those that are not there yet; so no more are asked for than any client can do."""

HEAP_BYTES: Final = 512 << 20
"""What a client of 128 threads needs several times over."""

HEAP_SHARE: Final = 4
"""Of bounded memory a quarter is the heap: the rest is for the store, its cache and Java itself."""

HEAP_BYTES_MIN: Final = 64 << 20

PERCENTILES: Final = "50,90,95,99,99.9,99.99"
"""What YCSB itself prints, for comparison alone."""

SHARE_DIGITS: Final = 9
"""Digits of a share behind the point: 0.333333333 thrice is 1 to YCSB."""

SLOWEST_SETTLING_BYTES_PER_S: Final = 5_000_000.0
"""A database that is read and written once more slowly than this is taken for hung."""

_BINDING_CLASSES: Final = {
    ServerKind.EMBEDDED: "iolab.ycsb.RocksBinding",
    ServerKind.MANAGED: "iolab.ycsb.CqlBinding",
    ServerKind.EXTERNAL: "iolab.ycsb.CqlBinding",
}

_PROPORTIONS: Final = {
    KeyOperation.READ: "readproportion",
    KeyOperation.UPDATE: "updateproportion",
    KeyOperation.INSERT: "insertproportion",
    KeyOperation.SCAN: "scanproportion",
    KeyOperation.READ_MODIFY_WRITE: "readmodifywriteproportion",
}


class YcsbStore(Record):
    """The store that a client works on.

    `addresses` are HOST:PORT of Cassandra's nodes; `database` is the folder of an embedded RocksDB,
    "" for a server.
    """

    kind: ServerKind
    addresses: tuple[str, ...] = ()
    keyspace: str = ""
    replication: int = 1
    consistency: str = "ONE"
    database: str = ""


class JavaKit(Record):
    """What runs YCSB on a host: its Java, and the jars (or folders as `/opt/ycsb/lib/*`)."""

    java: str
    classpath: tuple[str, ...]


def java_kit_of_jars(java: str, jars: Sequence[str], *, user_ycsb_folder: str = "") -> JavaKit:
    """The kit of these jars; with `user_ycsb_folder` the user's own YCSB, with our bindings.

    Ours then come first but for YCSB's core itself, so that the latency logs are written by an
    HdrHistogram that can do so on any Java.
    """
    if not user_ycsb_folder:
        return JavaKit(java, tuple(jars))
    ours = tuple(jar for jar in jars if not jar.rpartition("/")[2].startswith("core-"))
    return JavaKit(java, (*ours, f"{user_ycsb_folder.rstrip('/')}/lib/*"))


def java_argv(
    kit: JavaKit, directory: str, program: str, *, heap_bytes: int = HEAP_BYTES
) -> tuple[str, ...]:
    """Start a class of the kit; its temporary files stay in `directory`."""
    return (
        kit.java,
        f"-Xms{heap_bytes}",
        f"-Xmx{heap_bytes}",
        "-XX:+UseG1GC",
        # Else a thread would end alone, and the others would go on with less load.
        "-XX:+ExitOnOutOfMemoryError",
        # Both would leave files in /tmp when the process is killed.
        "-XX:-UsePerfData",
        f"-Djava.io.tmpdir={directory}",
        *_library_path_options(kit),
        "-Duser.timezone=UTC",
        "-Duser.language=en",
        *("-cp", ":".join(kit.classpath), program),
    )


def database_fill_command(
    job: YcsbJob,
    store: YcsbStore,
    kit: JavaKit,
    directory: str,
    *,
    first: int,
    count: int,
    thread_count: int,
    seconds: float,
) -> Command:
    """Insert `count` of the job's records from number `first` on, as one of several clients may.

    It is hung when it takes longer than `seconds`, beside the time to start and to end.
    EngineError for an option that is not allowed and for numbers that do not fit the job.
    """
    if not 0 <= first <= first + count <= job.records or count < 1:
        message = f"Records {first} to {first + count} are not among the job's {job.records}."
        raise EngineError(message, "Share out the job's records among its clients.")
    properties = {
        **_common_properties(job, store),
        "insertstart": str(first),
        "insertcount": str(count),
        "status.interval": "1",
    }
    if store.kind is ServerKind.EMBEDDED:
        properties["iolab.create"] = "true"
    # More threads than records would be more than YCSB starts.
    words = ["-load", "-s", "-threads", str(min(thread_count, count))]
    return _java_command(
        job, kit, directory, words, properties, wall_limit_s=START_LIMIT_S + seconds
    )


def build_measurement_command(
    job: YcsbJob, store: YcsbStore, kit: JavaKit, directory: str, *, seconds: int, log_prefix: str
) -> Command:
    """Make the job's load for so many seconds.

    The latency logs are `latency_log_names` in `directory`.

    EngineError for an option that is not allowed and a mix that YCSB cannot be told.
    """
    properties = {
        **_common_properties(job, store),
        **_operation_proportions(job),
        "requestdistribution": str(job.distribution),
        "operationcount": str(_max_operation_count(job, seconds)),
        "maxexecutiontime": str(seconds),
        "status.interval": "1",
        "measurementtype": "hdrhistogram",
        "hdrhistogram.fileoutput": "true",
        "hdrhistogram.output.path": f"{directory}/{log_prefix}",
        "hdrhistogram.percentiles": PERCENTILES,
        # Without a rate nothing is due at any time.
        "measurement.interval": "both" if job.rate_ops_per_s else "op",
    }
    words = ["-t", "-s", "-threads", str(job.threads)]
    if job.rate_ops_per_s:
        words += ["-target", str(job.rate_ops_per_s)]
    return _java_command(
        job,
        kit,
        directory,
        words,
        properties,
        wall_limit_s=START_LIMIT_S + 2 * seconds,
        memory_limit_bytes=job.memory_bytes,
    )


def latency_log_names(job: YcsbJob, prefix: str) -> tuple[str, ...]:
    """The latency logs that a run of the job leaves in its directory, one an operation."""
    names = {operation: name for name, operation in YCSB_NAMES.items()}
    operations = timed_operations_of_job(job)
    intended = (
        [operation.intended_variant for operation in operations] if job.rate_ops_per_s else []
    )
    return tuple(
        f"{prefix}{names[operation]}.hdr" for operation in (*operations, *intended) if operation
    )


def timed_operations_of_job(job: YcsbJob) -> tuple[KeyOperation, ...]:
    """What a run of the job times: a read-modify-write's read and update are timed as such too."""
    wanted = {operation for operation in YCSB_OPERATIONS if job.operation_share(operation) > 0}
    if KeyOperation.READ_MODIFY_WRITE in wanted:
        wanted |= {KeyOperation.READ, KeyOperation.UPDATE}
    return tuple(operation for operation in YCSB_OPERATIONS if operation in wanted)


def rocksdb_contents_command(
    job: YcsbJob, store: YcsbStore, kit: JavaKit, directory: str, *, does_compact_first: bool
) -> Command:
    """Count what an embedded database holds; with `does_compact_first` flush and compact it before.

    Its output is for `parse_rocksdb_contents`.
    """
    properties = {
        **_embedded_properties(store),
        **_binding_options(_validated_options(job.options)),
    }
    argv = (
        *java_argv(kit, directory, "iolab.ycsb.RocksTool"),
        *(["settle"] if does_compact_first else []),
        *(f"{name}={text}" for name, text in sorted(properties.items())),
    )
    size = job.records * job.record_bytes
    limit_s = START_LIMIT_S + size / SLOWEST_SETTLING_BYTES_PER_S
    return Command(argv, directory, b"", " ".join(argv), limit_s, STREAM_BYTES_MAX)


def _common_properties(job: YcsbJob, store: YcsbStore) -> dict[str, str]:
    """What loading and measuring are both told: above all the records, which must be the same."""
    options = _validated_options(job.options)
    own = {name: text for name, text in options.items() if not YCSB_OPTIONS[name].property_prefix}
    return {
        "db": _BINDING_CLASSES[store.kind],
        "workload": "site.ycsb.workloads.CoreWorkload",
        "table": TABLE,
        "recordcount": str(job.records),
        "fieldcount": str(job.fields),
        "fieldlength": str(job.field_bytes),
        "fieldlengthdistribution": "constant",
        "readallfields": "true",
        "writeallfields": "false",
        "insertorder": "hashed",
        **(
            _embedded_properties(store)
            if store.kind is ServerKind.EMBEDDED
            else _server_properties(store)
        ),
        **_binding_options(options),
        **own,
    }


def _embedded_properties(store: YcsbStore) -> dict[str, str]:
    return {"iolab.database": store.database}


def _server_properties(store: YcsbStore) -> dict[str, str]:
    if not store.addresses:
        raise EngineError("There is no address of a Cassandra node.", "Name one as HOST:PORT.")
    return {
        "iolab.hosts": ",".join(store.addresses),
        "iolab.keyspace": store.keyspace,
        "iolab.consistency": store.consistency,
    }


def _binding_options(ycsb_options: dict[str, str]) -> dict[str, str]:
    return {
        f"{BINDING}{name}": text
        for name, text in ycsb_options.items()
        if YCSB_OPTIONS[name].property_prefix == BINDING
    }


def _operation_proportions(job: YcsbJob) -> dict[str, str]:
    """Every proportion, also those of nothing: YCSB's own defaults are 0.95 reads and updates."""
    unknown = [operation.display_name for operation, _ in job.mix if operation not in _PROPORTIONS]
    if unknown:
        possible = ", ".join(operation.display_name for operation in _PROPORTIONS)
        raise EngineError(f"YCSB makes no {unknown[0]}.", f"Mix these: {possible}.")
    total = sum(share for _, share in job.mix)
    if not math.isclose(total, 1, abs_tol=1e-6) or any(share < 0 for _, share in job.mix):
        raise EngineError(
            f"The shares of the mix add up to {total:g}.", "Give each operation its share of 1."
        )
    return {
        name: f"{job.operation_share(operation):.{SHARE_DIGITS}f}"
        for operation, name in _PROPORTIONS.items()
    }


def _max_operation_count(job: YcsbJob, seconds: int) -> int:
    if job.distribution is KeyDistribution.ZIPFIAN and job.operation_share(KeyOperation.INSERT) > 0:
        rate = min(job.rate_ops_per_s or FASTEST_OPS_PER_S, FASTEST_OPS_PER_S)
        return min(2 * rate * seconds, OPERATIONS_MAX)
    return OPERATIONS_MAX


def _validated_options(options: tuple[tuple[str, str], ...]) -> dict[str, str]:
    return validate_options("YCSB", options, YCSB_OPTIONS)


def _java_heap_bytes(job: YcsbJob) -> int:
    stated = _validated_options(job.options).get(HEAP)
    if stated:
        return int(stated[:-1]) << (20 if stated.endswith("m") else 30)
    if job.memory_bytes is None:
        return HEAP_BYTES
    return min(HEAP_BYTES, max(job.memory_bytes // HEAP_SHARE, HEAP_BYTES_MIN))


def _java_command(
    job: YcsbJob,
    kit: JavaKit,
    directory: str,
    arguments: list[str],
    properties: dict[str, str],
    *,
    wall_limit_s: float,
    memory_limit_bytes: int | None = None,
) -> Command:
    java = java_argv(kit, directory, "site.ycsb.Client", heap_bytes=_java_heap_bytes(job))
    argv = (*java, *arguments, *_property_arguments(properties))
    return Command(
        argv=argv,
        cwd=directory,
        stdin=b"",
        job_file="".join(f"{name}={text}\n" for name, text in sorted(properties.items())),
        wall_limit_s=wall_limit_s,
        output_limit_bytes=STREAM_BYTES_MAX,
        memory_limit_bytes=memory_limit_bytes,
    )


def _library_path_options(kit: JavaKit) -> Iterator[str]:
    """Where RocksDB's library lies: beside its jar. Java would unpack it anew for each run else."""
    for jar in kit.classpath:
        folder, _, name = jar.rpartition("/")
        if name.startswith("rocksdbjni-"):
            yield f"-Djava.library.path={folder}"


def _property_arguments(properties: dict[str, str]) -> Iterator[str]:
    for name, text in sorted(properties.items()):
        yield from ("-p", f"{name}={text}")
