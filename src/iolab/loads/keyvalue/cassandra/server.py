"""A server of a key-value store as its driver sees it, whoever runs it."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, nullcontext
from typing import Any, Final

from msgspec.structs import asdict, replace

from iolab.core.run import CacheDropProof, PlannedRun
from iolab.errors import EngineError
from iolab.hosts.telemetry import CounterCollector
from iolab.loads.keyvalue.cassandra.tools import TABLE, KitJavaToolRunner, RowsReply, SchemaReply
from iolab.loads.keyvalue.workload import ServerRunDetails, ServerSettings, YcsbJob
from iolab.record import Record
from iolab.session.context import SessionContext
from iolab.targets.work_directory import WorkDirectory
from iolab.text import excerpt, list_text

PRODUCT: Final = "Apache Cassandra"

RecordInserter = Callable[[], Awaitable[None]]
"""Writes all records into the store, by way of its `addresses`, which answer by then."""

COUNT_ALL_MAX: Final = 250_000
"""Rows up to which all are counted: a gibibyte of YCSB's usual records is read in seconds."""

COUNTED_RANGES: Final = 64
"""Ranges in which all rows are counted: each query stays well below Cassandra's own time limit."""

SAMPLED_ROWS: Final = 100_000
"""Rows that a sample should hold: it tells the number to within two percent then."""

RANGES: Final = 1 << 16
"""Ranges that a sample is taken from; tokens are spread evenly over them by their hash."""

SIGMAS: Final = 6.0
"""Counts of hashed keys in ranges vary as a Poisson process does: six of its standard deviations
are not met by chance."""

COUNT: Final = "count"
ESTIMATE: Final = "estimate"

COMMENT_PREFIX: Final = "made by iolab"
"""How the comment of a table begins that iolab made and may drop."""

KEY_COLUMNS: Final = ("y_id",)

SHOWN: Final = 5
"""Columns that a sentence names at most."""


class KeyValueServer(ABC):
    """A store that lives as long as its session and is brought to one state before each run.

    For a run, `prepare_run`, `sample_counters` around the load, and `record_final_statistics` are
    called in this order; `stop_and_list_leftovers` once. What any of them raises is a HostError or
    an EngineError.
    """

    server_run: ServerRunDetails
    """What is to be recorded of it for the last run."""

    @property
    @abstractmethod
    def addresses(self) -> tuple[str, ...]:
        """Where clients find it: HOST:PORT of each node that is known."""

    @property
    def host(self) -> str:
        """The host of the study on which it runs; "" for one outside of it."""
        return ""

    @property
    def cache_proof(self) -> CacheDropProof | None:
        """What was dropped of its files on `host` before it was started; None if nothing was."""
        return None

    @abstractmethod
    async def prepare_run(
        self,
        session: SessionContext,
        run: PlannedRun,
        workdirs: Sequence[WorkDirectory],
        record_inserter: RecordInserter,
    ) -> None:
        """Everything up to a server that answers in the start state of the run.

        `workdirs` are those of the run's clients. `record_inserter` is called when the records are
        not there yet. Returns early at a request to stop: nothing is to be measured then.
        """

    def sample_counters(
        self,
        session: SessionContext,  # noqa: ARG002 - of one whose counters can be had, as below
        run: PlannedRun,  # noqa: ARG002
        counters: CounterCollector,  # noqa: ARG002
        host_index_by_name: Mapping[str, int],  # noqa: ARG002
    ) -> AbstractAsyncContextManager[None]:
        """Its own counters are collected while what is done within lasts.

        `host_index_by_name` is how counters number the hosts of the run, monitored ones too. A
        server that stops telling them ends nothing.
        """
        return nullcontext()

    async def record_final_statistics(self, session: SessionContext, run: PlannedRun) -> None:  # noqa: B027
        """The load is over, well or not: take the last statistics. Never raises."""

    def failure_text(self) -> str | None:
        """A sentence once it has died since it was ready; None while it lives, or is not ours."""
        return None

    @abstractmethod
    async def stop_and_list_leftovers(self) -> tuple[str, ...]:
        """Stop what iolab started and drop what iolab made there; what could not be ended."""

    def update_server_run_details(self, **more: Any) -> None:  # noqa: ANN401 - the record's own fields
        """Add to what is recorded of the present run."""
        self.server_run = replace(self.server_run, **more)


class RecordSet(Record):
    """The records of a workload: how many, of how many fields, of how many bytes each."""

    records: int
    fields: int
    field_bytes: int

    def __str__(self) -> str:
        return f"{self.records:,} records of {self.fields} x {self.field_bytes} bytes"

    @property
    def file_name_part(self) -> str:
        """The same as part of a file's name."""
        return f"{self.records}x{self.fields}x{self.field_bytes}"

    @property
    def marker_document(self) -> Mapping[str, Any]:
        """The same for a marker."""
        return asdict(self)

    @property
    def column_type_by_name(self) -> Mapping[str, str]:
        """The columns of YCSB's table for them, and their types."""
        fields = {f"field{number}": "text" for number in range(self.fields)}
        return {"y_id": "text", **fields}


def record_set_of_run(run: PlannedRun) -> RecordSet:
    """What the run's job wants; TypeError for a job that is none of YCSB's."""
    job = YcsbJob.require_type(run.point.job)
    return RecordSet(job.records, job.fields, job.field_bytes)


SampleCounter = Callable[[int, int], Awaitable[RowsReply]]
"""Counts rows in a sample of ranges: (ranges, sample)."""


class RowCount(Record):
    """How many rows there are, how that is known, and how far it may be off."""

    rows: int
    method: str
    max_error: int = 0

    @property
    def count_text(self) -> str:
        """The number for people."""
        return f"{self.rows:,}" if self.method == COUNT else f"about {self.rows:,}"

    def is_compatible_with(self, record_count: int) -> bool:
        """Whether there may be so many, for all that was counted."""
        return abs(self.rows - record_count) <= self.max_error


async def count_rows_adaptively(count_sample: SampleCounter, record_count: int) -> RowCount:
    """The rows of a table that should hold so many records."""
    if record_count <= COUNT_ALL_MAX:
        answer = await count_sample(COUNTED_RANGES, COUNTED_RANGES)
        return RowCount(answer.rows, COUNT)
    answer = await count_sample(RANGES, sampled_range_count(record_count))
    scale = answer.ranges / answer.sample
    error = SIGMAS * scale * math.sqrt(max(answer.rows, 1))
    return RowCount(round(answer.rows * scale), ESTIMATE, math.ceil(error))


async def count_table_rows(
    tools: KitJavaToolRunner, addresses: tuple[str, ...], record_count: int
) -> RowCount:
    """The rows of the cluster's table."""
    return await count_rows_adaptively(
        lambda ranges, sample: tools.count_rows(addresses, ranges, sample), record_count
    )


def sampled_range_count(record_count: int) -> int:
    """How many of `RANGES` hold `SAMPLED_ROWS`: a power of two, so that they lie evenly."""
    wanted = RANGES * SAMPLED_ROWS / record_count
    return min(RANGES, 1 << max(0, math.ceil(math.log2(wanted))))


def require_rows(row_count: RowCount, record_count: int, table: str, hint: str) -> None:
    """EngineError unless the rows are as many as the records; `hint` is what to do then."""
    if not row_count.is_compatible_with(record_count):
        held = row_count.count_text
        message = f"The table {table} holds {held} rows, and should hold {record_count:,}."
        raise EngineError(message, hint)


async def create_table(
    tools: KitJavaToolRunner, addresses: tuple[str, ...], record_set: RecordSet
) -> None:
    """A table of iolab's own for those records, in a keyspace as the settings have it."""
    await tools.run_schema_action(
        addresses,
        "create",
        replication=tools.settings.replication,
        fields=record_set.fields,
        comment=COMMENT_PREFIX,
    )


def table_comment(record_set: RecordSet) -> str:
    """The comment of a table that iolab made and filled: so it is found again."""
    return f"{COMMENT_PREFIX}, holds {record_set}"


def is_created_by_iolab(schema: SchemaReply) -> bool:
    """Whether the table was made by iolab, in this session or another."""
    return schema.comment is not None and schema.comment.startswith(COMMENT_PREFIX)


def is_filled_by_iolab(schema: SchemaReply, record_set: RecordSet) -> bool:
    """Whether the table was made by iolab and filled with these records."""
    return schema.comment == table_comment(record_set)


def require_keyspace_replication(schema: SchemaReply, settings: ServerSettings) -> None:
    """EngineError when a keyspace as stated cannot be, or is there with another replication."""
    if settings.replication > schema.nodes:
        raise EngineError(
            f"{settings.replication} replicas need as many nodes, and the cluster's number of them "
            f"is {schema.nodes}.",
            "Set server.replication to the number of nodes or less.",
        )
    if schema.replication is None:
        return
    factors = sorted({int(text) for text in schema.replication.values() if text.isdecimal()})
    if factors != [settings.replication]:
        replication = ", ".join(
            f"{name} {value}" for name, value in sorted(schema.replication.items())
        )
        raise EngineError(
            f"The keyspace '{settings.keyspace}' exists with another replication ({replication}) "
            f"than {settings.replication}.",
            "Set server.replication to what it has, or name another server.keyspace.",
        )


def require_columns(schema: SchemaReply, record_set: RecordSet, settings: ServerSettings) -> None:
    """EngineError when the table has other columns than the workload's; every difference named."""
    has, wants = dict(schema.columns or {}), record_set.column_type_by_name
    differs = []
    if missing := sorted(wants.keys() - has.keys()):
        differs.append(f"without {_first_names_text(missing)}")
    if other := sorted(has.keys() - wants.keys()):
        differs.append(f"with {_first_names_text(other)}")
    for name in sorted(wants.keys() & has.keys()):
        # CQL has two names for one type.
        kind = "text" if has[name] == "varchar" else has[name]
        if kind != wants[name]:
            differs.append(f"{excerpt(name, 60)} is {excerpt(kind, 60)}, not {wants[name]}")
    if schema.key != KEY_COLUMNS:
        differs.append(
            f"its key is {_first_names_text(schema.key or ())}, not {', '.join(KEY_COLUMNS)}"
        )
    if differs:
        raise EngineError(
            f"The table {settings.keyspace}.{TABLE} exists with other columns: "
            f"{'; '.join(differs)}.",
            "Name another server.keyspace; iolab drops nothing that it has not made.",
        )


def _first_names_text(names: tuple[str, ...] | list[str]) -> str:
    return list_text((excerpt(name, 60) for name in names), SHOWN)
