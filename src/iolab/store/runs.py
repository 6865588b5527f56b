"""One run's directory: written aside file by file, read back as the record it was."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Final, TypeVar

from msgspec.structs import asdict

from iolab.core.compressed import CompressedBytes
from iolab.core.regular_file import read_regular_file
from iolab.core.run import EngineOutput, RunRecord
from iolab.core.samples import BinTable, CounterTable, IntervalTable
from iolab.record import field_names
from iolab.store import layout
from iolab.store.codec import damaged_file_error, encode
from iolab.store.documents import (
    Manifest,
    RunOrigin,
    StoredAnalysis,
    StoredFile,
    StoredOutput,
)
from iolab.store.durable import disk_errors_as_store_errors, sync_to_disk, write_new_file
from iolab.store.parquet import read_parquet_columns, write_parquet
from iolab.store.verify import describe_stored_file, read_manifest, require_unchanged_file

T = TypeVar("T", IntervalTable, BinTable, CounterTable)
Table = IntervalTable | BinTable | CounterTable

WRITTEN_AT_ONCE: Final = 32
"""Files of a run that are written and flushed side by side: packing and hashing use every core, and
a file system writes one journal entry for all that wait for it, so a thousand hosts' files cost
little more than some of them one after the other."""


def write_run(
    directory: Path, record: RunRecord, analysis: StoredAnalysis, origin: RunOrigin
) -> None:
    """Write every file of a run into `directory`, which must not exist, and flush all of it."""
    from concurrent.futures import ThreadPoolExecutor  # readers, which are many, need none

    (directory / layout.ENGINE).mkdir(parents=True)
    tables: list[tuple[str, Table]] = [
        (layout.INTERVALS, record.intervals),
        (layout.BINS, record.bins),
        (layout.COUNTERS, record.counters),
    ]
    if record.neighbour_intervals is not None and record.neighbour_bins is not None:
        tables.append((layout.NEIGHBOUR_INTERVALS, record.neighbour_intervals))
        tables.append((layout.NEIGHBOUR_BINS, record.neighbour_bins))
    with ThreadPoolExecutor(WRITTEN_AT_ONCE) as pool:
        written = [pool.submit(_write_table, directory, *table) for table in tables]
        written += [
            pool.submit(_write_output, directory, layout.output_file_name(index), output)
            for index, output in enumerate(record.outputs)
        ]
        files = tuple(task.result() for task in written)
    manifest = Manifest(
        **record.manifest_fields(),
        format=layout.FORMAT,
        session=origin.session,
        iolab_version=origin.iolab_version,
        agent_version=origin.agent_version,
        outputs=tuple(
            StoredOutput(
                output.host, output.name, output.content.size_bytes, output.content.truncated
            )
            for output in record.outputs
        ),
        files=files,
        analysis=analysis,
    )
    content = encode(manifest)
    write_new_file(directory / layout.MANIFEST, content)
    digest = hashlib.sha256(content).hexdigest()
    write_new_file(directory / layout.MANIFEST_SUM, f"{digest}  {layout.MANIFEST}\n".encode())
    sync_to_disk(directory / layout.ENGINE)
    sync_to_disk(directory)


def read_run(directory: Path) -> RunRecord:
    """The record as it was committed; StoreError if a file is missing or damaged."""
    manifest = read_manifest(Manifest, directory)
    for file in manifest.files:
        require_unchanged_file(directory, manifest.files, file.name)
    return RunRecord(
        **manifest.manifest_fields(),
        intervals=read_table(directory / layout.INTERVALS, IntervalTable),
        bins=read_table(directory / layout.BINS, BinTable),
        counters=read_table(directory / layout.COUNTERS, CounterTable),
        outputs=_read_outputs(directory, manifest),
        neighbour_intervals=read_table(directory / layout.NEIGHBOUR_INTERVALS, IntervalTable)
        if manifest.neighbours
        else None,
        neighbour_bins=read_table(directory / layout.NEIGHBOUR_BINS, BinTable)
        if manifest.neighbours
        else None,
    )


def read_table(path: Path, shape: type[T]) -> T:
    """One table of a run."""
    return shape(**read_parquet_columns(path, field_names(shape)))


def _write_table(directory: Path, name: str, table: Table) -> StoredFile:
    """Write and flush one table."""
    write_parquet(asdict(table), directory / name)
    sync_to_disk(directory / name)
    return describe_stored_file(directory, name)


def _write_output(directory: Path, name: str, output: EngineOutput) -> StoredFile:
    """Write and flush one engine's output as it was packed."""
    content = output.content.frames
    write_new_file(directory / name, content)
    return StoredFile(name, len(content), hashlib.sha256(content).hexdigest())


def _read_outputs(directory: Path, manifest: Manifest) -> tuple[EngineOutput, ...]:
    """The engine's output as it came."""
    return tuple(
        EngineOutput(
            stored.host,
            stored.name,
            _read_compressed(directory / layout.output_file_name(index), stored),
        )
        for index, stored in enumerate(manifest.outputs)
    )


def _read_compressed(path: Path, stored: StoredOutput) -> CompressedBytes:
    """The content of a packed file, which must have the size that the manifest says."""
    with disk_errors_as_store_errors(path, "read"):
        packed = CompressedBytes(read_regular_file(path), stored.size_bytes, stored.truncated)
    try:
        packed.require_intact()
    except ValueError as error:
        raise damaged_file_error(path, str(error)) from error
    return packed
