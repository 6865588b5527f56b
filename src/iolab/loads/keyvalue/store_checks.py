"""Checks of the store behind keys: its start state, its shape, its server, and who answered."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, NamedTuple

from iolab.analysis.check import (
    CheckAnswer,
    EvidenceValues,
    check,
    indicative_answer,
    invalid_answer,
    not_applicable_answer,
    unchecked_answer,
    valid_answer,
    worst_answer,
)
from iolab.analysis.checks.bytes import (
    COLD_RESIDENT_SHARE,
    check_hidden_layer,
    check_target_in_memory,
    counted_device_deltas,
    device_byte_counts,
)
from iolab.analysis.checks.idle import others_io_before_run_answer
from iolab.core.host import HostFacts
from iolab.core.run import CacheDropProof, DeviceDelta, HostRun
from iolab.loads.keyvalue.db_bench.run import table_shape_faults
from iolab.loads.keyvalue.metrics import KeyValueView
from iolab.loads.keyvalue.workload import (
    DbBenchJob,
    KeyDistribution,
    KeyOperation,
    ServerRunDetails,
    StoreShape,
    key_value_details_of_host,
    server_details_of_run,
)
from iolab.record import Record
from iolab.text import percent_text
from iolab.units import format_bytes, format_count

UNIFORM_WORKLOADS: Final = ("readrandom", "readrandomwriterandom", "readwhilewriting")
"""db_bench's workloads whose reads are of all keys alike."""

EXPLAINED_GOOD: Final = 0.90
"""How much of what memory cannot have answered devices must have answered: keys drawn at random
fall a little more often on what is cached than the keys that it holds are of all."""

EXPLAINED_BAD: Final = 0.50
"""Below half of it something that is not accounted for answered the reads."""

FROM_DEVICE_GOOD: Final = 0.50
"""Share of the reads that may have gone to a device from which the rate is the device's, and not
that of memory."""

BELOW_GOOD: Final = 0.90
"""Share of a device's reads that must have come from the devices below it."""

ESTIMATE_GOOD: Final = 0.05
"""How far an estimated number of rows may be off: Cassandra estimates by sketches."""

DROPPED: Final = "dropped_messages"
GROWING_COUNTERS: Final = ("cpu_ns", "client_reads", "client_writes")
"""Counters of a server that only fall when it is started anew."""

PENDING_COMPACTIONS: Final = "compactions_pending"
"""Compactions that a server has still to make."""


@check("reads-from-memory", "Reads answered by memory")
def check_reads_from_memory(view: KeyValueView) -> CheckAnswer:
    """Whether the devices read what memory cannot have held, and most of what was read."""
    if is_external_store(view):
        return unchecked_answer("the devices of a server outside of the study are not watched")
    stores = store_reads_of_devices(view)
    if stores is None:
        return unchecked_answer("no block device below the store is counted")
    return worst_answer(
        (answer for store in stores for answer in _reads_from_devices_answers(view, store)),
        min_key="from_device",
    )


def _reads_from_devices_answers(view: KeyValueView, store: StoreReads) -> Iterator[CheckAnswer]:
    reads = sum(_found_key_count(view, index) for index in store.client_indexes)
    if not reads:
        yield not_applicable_answer("Nothing was read.", reads=0)
        return
    least = _min_device_bytes_per_uncached_read(view)
    each, ios = store.read_bytes / reads, store.read_ios / reads
    # A key that memory does not hold takes an I/O of its own. The page cache may hold a part of its
    # block, but of all blocks no more than it has room for.
    share = min(each / least, ios, 1.0)
    kept = 1.0 if store.memory_bytes is None else min(store.memory_bytes / store.data_bytes, 1.0)
    needed = 1 - kept if _has_uniform_keys(view) else 0.0
    evidence: EvidenceValues = {
        "device": store.device,
        "reads": reads,
        "device_read_bytes": store.read_bytes,
        "device_read_ios": store.read_ios,
        "bytes_per_read": each,
        "ios_per_read": ios,
        "block_bytes": least,
        "from_device": share,
        "least_from_device": needed,
        "data_bytes": store.data_bytes,
        "memory_bytes": store.memory_bytes,
        "memory_bounded": store.has_memory_limit,
        "below_read_bytes": store.read_bytes_below,
    }
    text = (
        f"For each of {format_count(reads)} reads {store.device} did {_ios_per_read_text(ios)} "
        "I/Os and "
        f"{format_bytes(round(each))}"
    )
    if share < EXPLAINED_GOOD * needed:
        verdict = invalid_answer if share < EXPLAINED_BAD * needed else indicative_answer
        yield verdict(
            f"{text}, where memory of {format_bytes(store.memory_bytes or 0)} beside "
            f"{format_bytes(store.data_bytes)} of data can hold no more than "
            f"{percent_text(kept)} of "
            "the keys: something else answered.",
            **evidence,
        )
    yield from _layer_between_devices_answers(store, evidence)
    if share < FROM_DEVICE_GOOD:
        yield indicative_answer(
            f"{text}: at least {percent_text(1 - share)} of what was read came from memory.",
            **evidence,
        )
    yield valid_answer(f"{text}.", **evidence)


def _ios_per_read_text(ios: float) -> str:
    """I/Os of one read for a sentence: most reads take less than one."""
    return format_count(ios) if ios >= 1 else f"{ios:.2g}"


def _layer_between_devices_answers(
    store: StoreReads, evidence: EvidenceValues
) -> Iterator[CheckAnswer]:
    if (
        store.read_bytes_below is not None
        and store.read_bytes_below < BELOW_GOOD * store.read_bytes
    ):
        yield invalid_answer(
            f"The devices below {store.device} read only {format_bytes(store.read_bytes_below)} "
            "of its "
            f"{format_bytes(store.read_bytes)}: a layer between answered from memory.",
            **evidence,
        )
    if store.is_layer_below_unknown:
        yield indicative_answer(
            f"Could not be checked below {store.device}: its backing device is not known.",
            **evidence,
        )


def _found_key_count(view: KeyValueView, host_index: int) -> int:
    """Keys that a client read in the whole run, and found."""
    reply = key_value_details_of_host(view.hosts[host_index])
    if reply is None:
        return 0
    return sum(
        max(count.completed - (count.absent or 0), 0)
        for count in reply.counts
        if count.operation in (KeyOperation.READ, KeyOperation.SCAN)
    )


def _min_device_bytes_per_uncached_read(view: KeyValueView) -> int:
    """What a device must read at the least for a key that memory does not hold."""
    job = view.key_value_job
    if isinstance(job, DbBenchJob):
        return max(job.loaded.block_bytes, job.loaded.entry_bytes)
    return job.record_bytes


def _has_uniform_keys(view: KeyValueView) -> bool:
    job = view.key_value_job
    if isinstance(job, DbBenchJob):
        return job.workload in UNIFORM_WORKLOADS
    return job.distribution is KeyDistribution.UNIFORM


@check("warm-caches", "Caches not empty at the start", needs_load=False)
def check_warm_caches(view: KeyValueView) -> CheckAnswer:
    """Whether the page cache held nothing of the store when the run began."""
    if is_external_store(view):
        return unchecked_answer("the caches of a server outside of the study cannot be dropped")
    clients = indexes_of_clients_with_store(view)
    if not clients:
        return unchecked_answer("the page cache of the server's host was not looked at")
    proofs = ((view.hosts[index].host, view.hosts[index].cache_drop) for index in clients)
    size = requested_bytes_per_store(view)
    return worst_answer(
        (_cache_drop_answer(host, proof, size) for host, proof in proofs), max_key="resident_bytes"
    )


def _cache_drop_answer(
    host_name: str, proof: CacheDropProof | None, data_bytes: int
) -> CheckAnswer:
    if proof is None:
        return unchecked_answer(
            f"whether the page cache of {host_name} was dropped is not known", host=host_name
        )
    evidence: EvidenceValues = {
        "host": host_name,
        "dropped": proof.requested,
        "resident_bytes": proof.resident_bytes_after,
        "data_bytes": data_bytes,
    }
    if not proof.requested:
        return indicative_answer(f"The page cache of {host_name} was not dropped.", **evidence)
    if proof.resident_bytes_after is None:
        return unchecked_answer(
            f"nothing verifies that the page cache of {host_name} was dropped", **evidence
        )
    if proof.resident_bytes_after > COLD_RESIDENT_SHARE * data_bytes:
        return indicative_answer(
            f"{format_bytes(proof.resident_bytes_after)} of the store were still in the page cache "
            f"of {host_name}.",
            **evidence,
        )
    return valid_answer("The page cache held nothing of the store.", **evidence)


@check("store-start-state", "Store not brought to its start state", needs_load=False)
def check_store_start_state(view: KeyValueView) -> CheckAnswer:
    """Whether each run began from the same database, whatever the runs before it wrote."""
    server = server_details_of_run(view.record)
    if server is not None:
        return _start_state_answer("the server", server.restored_by)
    if not view.hosts_with_details:
        return unchecked_answer("no engine told of its run")
    return worst_answer(
        _start_state_answer(host.host, reply.copied_by) for host, reply in view.hosts_with_details
    )


def _start_state_answer(store_owner_text: str, restored_by: str) -> CheckAnswer:
    evidence: EvidenceValues = {"store_of": store_owner_text, "restored_by": restored_by}
    if restored_by == "reflink":
        return valid_answer("The store was a clone of the one that was loaded.", **evidence)
    if restored_by == "copy":
        return valid_answer(
            "The store was a copy of the one that was loaded: the same files in other places of "
            "the device.",
            **evidence,
        )
    return indicative_answer(
        f"The store of {store_owner_text} was not brought back to its start state: it has what "
        "earlier runs "
        "wrote, and what they left in caches.",
        **evidence,
    )


@check("store-shape-changed", "Another store than was loaded", needs_load=False)
def check_store_shape_changed(view: KeyValueView) -> CheckAnswer:
    """Whether the store held the keys, in the blocks, that the workload is of."""
    return worst_answer(_store_shape_answers(view))


def _store_shape_answers(view: KeyValueView) -> Iterator[CheckAnswer]:
    job = view.key_value_job
    if not isinstance(job, DbBenchJob):
        yield _row_count_answer(server_details_of_run(view.record), job.records)
        return
    starts = [(host.host, reply.start) for host, reply in view.hosts_with_details]
    shaped = [(host, start) for host, start in starts if start and start.tables is not None]
    if len(shaped) < len(view.hosts):
        yield unchecked_answer("the tables of the database were not looked at before the run")
    for host, start in shaped:
        for fault in table_shape_faults(start.tables, job.loaded):
            yield invalid_answer(f"On {host} {fault.rstrip('.')}.", host=host, fault=fault)
    shapes = {tuple((level.level, level.files) for level in start.levels) for _, start in shaped}
    if len(shapes) > 1:
        yield indicative_answer(
            f"The hosts have databases of {len(shapes)} shapes: their levels differ.",
            shapes=len(shapes),
        )
    for host, start in shaped[:1]:
        yield valid_answer(
            "The database is the one that was to be loaded.", **_store_shape_evidence(host, start)
        )


def _store_shape_evidence(host_name: str, start_shape: StoreShape) -> EvidenceValues:
    tables = start_shape.tables
    return {
        "host": host_name,
        "levels": " ".join(
            f"L{level.level}:{level.files}" for level in start_shape.levels if level.files
        ),
        "entries": tables.entries if tables else None,
        "block_bytes_mean": tables.block_bytes_mean if tables else None,
    }


def _row_count_answer(server: ServerRunDetails | None, record_count: int) -> CheckAnswer:
    if server is None:
        return not_applicable_answer(
            "Each client has the store in its own process: no server counts its rows.",
            records=record_count,
        )
    if server.rows is None:
        return unchecked_answer("the server's rows were not counted", records=record_count)
    evidence: EvidenceValues = {"rows": server.rows, "records": record_count, "by": server.rows_by}
    deviation = abs(server.rows - record_count) / max(record_count, 1)
    counted = f"The server holds {server.rows:,} rows of {record_count:,} records"
    if server.rows_by == "estimate":
        verdict = indicative_answer if deviation > ESTIMATE_GOOD else valid_answer
        return verdict(f"{counted}, by its own estimate.", **evidence)
    # Inserts of earlier runs may be there; records that lack are reads that fail.
    verdict = invalid_answer if server.rows < record_count else valid_answer
    return verdict(f"{counted}.", **evidence)


@check("compaction-debt", "Compactions left to do at the start", needs_load=False)
def check_compaction_debt(view: KeyValueView) -> CheckAnswer:
    """Whether the store shared its devices with compactions of what was written before."""
    server = server_details_of_run(view.record)
    if server is not None:
        if PENDING_COMPACTIONS not in server.statistics_before_by_name:
            return unchecked_answer("the server did not tell its pending compactions")
        return _compactions_due_at_start_answer(
            "the server", pending_count=int(server.statistics_before_by_name[PENDING_COMPACTIONS])
        )
    if not view.hosts_with_details:
        return unchecked_answer("no engine told of its run")
    return worst_answer(
        _host_compactions_due_at_start_answer(host.host, reply.start)
        for host, reply in view.hosts_with_details
    )


def _host_compactions_due_at_start_answer(
    host_name: str, start_shape: StoreShape | None
) -> CheckAnswer:
    if start_shape is None or not start_shape.levels:
        return unchecked_answer(
            f"the levels of the database of {host_name} were not looked at before the run"
        )
    full = sum(1 for level in start_shape.levels if level.score is not None and level.score >= 1)
    fresh = sum(level.files for level in start_shape.levels if level.level == 0)
    return _compactions_due_at_start_answer(
        host_name,
        pending_count=full,
        level_0_files=fresh,
        pending_bytes=start_shape.pending_bytes or 0,
    )


def _compactions_due_at_start_answer(
    store_owner_text: str, *, pending_count: int, level_0_files: int = 0, pending_bytes: int = 0
) -> CheckAnswer:
    evidence: EvidenceValues = {
        "store_of": store_owner_text,
        "pending": pending_count,
        "files_on_level_0": level_0_files,
        "pending_bytes": pending_bytes,
    }
    if pending_count or level_0_files or pending_bytes:
        size = f" of {format_bytes(pending_bytes)}" if pending_bytes else ""
        return indicative_answer(
            f"The store of {store_owner_text} began with compactions{size} to do: its first "
            "seconds are theirs too.",
            **evidence,
        )
    return valid_answer("Nothing was left to be compacted at the start.", **evidence)


@check("server-lost", "Server that did not live through the run", needs_load=False)
def check_server_lost(view: KeyValueView) -> CheckAnswer:
    """Whether the server was the same process throughout and dropped nothing."""
    server = server_details_of_run(view.record)
    if server is None:
        return not_applicable_answer("No server: each client has the store in its own process.")
    evidence: EvidenceValues = {"product": server.product, "version": server.version}
    if server.error:
        return invalid_answer(f"The server failed: {server.error.rstrip('.')}.", **evidence)
    before, after = server.statistics_before_by_name, server.statistics_after_by_name
    fell = [name for name in GROWING_COUNTERS if after.get(name, 0.0) < before.get(name, 0.0)]
    if after and fell:
        return invalid_answer(
            f"The server was restarted in the run: its {fell[0]} fell.", **evidence, fell=fell[0]
        )
    dropped = after.get(DROPPED, 0.0) - before.get(DROPPED, 0.0)
    if dropped > 0:
        return indicative_answer(
            f"The server dropped {format_count(dropped)} messages: work that was not done.",
            **evidence,
            dropped=dropped,
        )
    if not after:
        return unchecked_answer("the server told nothing of itself after the run", **evidence)
    return valid_answer(
        "The server lived through the run and dropped nothing.", **evidence, dropped=0
    )


def check_key_value_device_busy(view: KeyValueView) -> CheckAnswer:
    """device-busy of load on a key-value store: on the devices that hold it."""
    clients = indexes_of_clients_with_store(view)
    if not clients:
        return unchecked_answer(
            "the devices of the server's store were not watched before the start"
        )
    return worst_answer(
        (
            others_io_before_run_answer(view, index, _client_window_seconds(view, index))
            for index in clients
        ),
        max_key="share_of_run",
    )


def _client_window_seconds(view: KeyValueView, host_index: int) -> float | None:
    """From a client's first interval to its last: devices are counted in its warm-up too."""
    window = view.load.measured_part.whole_run_windows[host_index]
    return None if window is None else window.seconds


def check_key_value_target_in_memory(view: KeyValueView) -> CheckAnswer:
    """target-in-memory of load on a key-value store: of the target that holds it."""
    if is_external_store(view):
        return unchecked_answer("the storage of a server outside of the study is not known")
    return check_target_in_memory.judge(view)


def check_key_value_hidden_layer(view: KeyValueView) -> CheckAnswer:
    """hidden-layer of load on a key-value store: of the target that holds it."""
    if is_external_store(view):
        return not_applicable_answer("The store lies on a server outside of the study.")
    return check_hidden_layer.judge(view)


class StoreReads(Record):
    """What one group of devices holds, and what they read in the whole run.

    `client_indexes` are the hosts, by their place in the run, whose operations it answered.
    `data_bytes` are the keys and values in it, `memory_bytes` the most that can be kept of them in
    memory, None where that is not known; `has_memory_limit` says whether it was bounded, or is all
    of the machine's. The devices read `read_bytes` in `read_ios`. `read_bytes_below` is what
    devices below read, None where these are the lowest; `is_layer_below_unknown` where nothing
    tells what lies below.
    """

    device: str
    client_indexes: tuple[int, ...]
    data_bytes: int
    memory_bytes: int | None
    has_memory_limit: bool
    read_bytes: int
    read_ios: int
    read_bytes_below: int | None
    is_layer_below_unknown: bool


def is_external_store(view: KeyValueView) -> bool:
    """Whether the store is one of the user's own, outside of the study."""
    server = server_details_of_run(view.record)
    return server is not None and not server.host


def indexes_of_clients_with_store(view: KeyValueView) -> tuple[int, ...]:
    """The clients, by their place, on whose own target a store lies; none for a server's."""
    server = server_details_of_run(view.record)
    names = [host.host for host in view.hosts]
    if server is None:
        return tuple(range(len(names)))
    return (names.index(server.host),) if server.host in names else ()


def requested_bytes_per_store(view: KeyValueView) -> int:
    """Keys and values in one store, as they were to be loaded."""
    job = view.key_value_job
    if isinstance(job, DbBenchJob):
        return job.loaded.keys * job.loaded.entry_bytes
    return job.records * job.record_bytes


def store_reads_of_devices(view: KeyValueView) -> tuple[StoreReads, ...] | None:
    """Every store with what its devices read; None where they were not counted."""
    server = server_details_of_run(view.record)
    if server is None:
        return _store_reads_by_device(view)
    if not server.host:
        return None
    everybody = tuple(range(len(view.hosts)))
    facts = view.facts.get(server.host)
    read = _server_device_deltas(view, server.host, facts)
    if read is None:
        return None
    device, deltas = read
    memory = server.memory_bytes or (facts.memory.total_bytes if facts else None)
    bounded = server.memory_bytes is not None
    size = requested_bytes_per_store(view)
    return (
        StoreReads(
            device=device,
            client_indexes=everybody,
            data_bytes=size,
            memory_bytes=memory,
            has_memory_limit=bounded,
            read_bytes=sum(delta.read_bytes for delta in deltas),
            read_ios=sum(delta.read_ios for delta in deltas),
            read_bytes_below=None,
            is_layer_below_unknown=False,
        ),
    )


def _store_reads_by_device(view: KeyValueView) -> tuple[StoreReads, ...] | None:
    groups = device_byte_counts(view)
    if groups is None:
        return None
    names = [host.host for host in view.hosts]
    stores = []
    for group in groups:
        clients = tuple(names.index(name) for name in group.host_names)
        facts = view.facts_of_host(view.hosts[clients[0]])
        bound = view.key_value_job.memory_bytes
        total = facts.memory.total_bytes if facts else None
        # Each client's engine has a bound of its own; clients of one kernel share its memory.
        memory = min(bound * len(clients), total or bound * len(clients)) if bound else total
        stores.append(
            StoreReads(
                device=group.device,
                client_indexes=clients,
                data_bytes=requested_bytes_per_store(view) * len(clients),
                memory_bytes=memory,
                has_memory_limit=bound is not None,
                read_bytes=group.read_bytes,
                read_ios=_device_read_ios(view, clients, group.device.split("+")),
                read_bytes_below=group.read_bytes_below,
                is_layer_below_unknown=group.is_layer_below_unknown,
            )
        )
    return tuple(stores)


def _device_read_ios(
    view: KeyValueView, client_indexes: tuple[int, ...], device_names: list[str]
) -> int:
    """As `device_byte_counts` has it of bytes: each client looked at its own moments."""
    return max(
        sum(delta.read_ios for delta in view.hosts[index].devices if delta.device in device_names)
        for index in client_indexes
    )


class _DeltasOfDevices(NamedTuple):
    """A device, or several as one, and what they moved in the run."""

    devices_text: str
    deltas: tuple[DeviceDelta, ...]


def _server_device_deltas(
    view: KeyValueView, server_host_name: str, facts: HostFacts | None
) -> _DeltasOfDevices | None:
    """What the devices of the server's target moved."""
    client = next((host for host in view.hosts if host.host == server_host_name), None)
    if client is not None:
        return _client_device_deltas(view, client)
    watched = next(
        (
            bystander
            for bystander in view.record.monitored_hosts
            if bystander.host == server_host_name
        ),
        None,
    )
    if watched is None or not watched.devices or watched.error:
        return None
    deltas = counted_device_deltas(facts, watched.devices) or watched.devices
    return _DeltasOfDevices("+".join(delta.device for delta in deltas), deltas)


def _client_device_deltas(view: KeyValueView, client: HostRun) -> _DeltasOfDevices | None:
    deltas = counted_device_deltas(view.facts_of_host(client), client.devices)
    if not deltas:
        return None
    return _DeltasOfDevices("+".join(delta.device for delta in deltas), deltas)
