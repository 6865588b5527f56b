"""Golden folders, loaded once and kept, and the copies that runs work on.

A golden folder is whole only with its marker, which is written last: what a load that died has
left has none. The marker says what the folder holds, in its engine's own words.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Final

from iolab.errors import EngineError, HostError
from iolab.run.hosts.base import Host, Refusal
from iolab.run.key_value.processes import told

MARKER: Final = "iolab.json"
MARKER_FORMAT: Final = 1
MARKER_LIMIT_BYTES: Final = 1 << 20
MARKER_MODE: Final = 0o644
MARKER_LIMIT_S: Final = 60.0

SYNC_LIMIT_S: Final = 600.0
"""Writing back what a load has left dirty, perhaps all of memory, to a slow disk."""

COPY_LIMIT_S: Final = 4 * 3600.0
"""A plain copy of a terabyte at 100 MB/s; a reflink of it takes seconds."""

REMOVE_LIMIT_S: Final = 600.0
"""A file system frees extents at more than 10 GB/s."""

LISTED_LIMIT_BYTES: Final = 16 << 20
"""The paths of a hundred thousand files."""

REFLINK: Final = "reflink"
COPY: Final = "copy"


async def commit_golden(host: Host, folder: str, marker: Mapping[str, Any]) -> None:
    """Say that a folder is whole: everything is written back, then the marker is put into it."""
    content = json.dumps({**marker, "format": MARKER_FORMAT}, indent=1, sort_keys=True).encode()
    if len(content) > MARKER_LIMIT_BYTES:
        raise ValueError(f"a marker of {len(content)} bytes could not be read again")
    await host.ask("sync", deadline_s=SYNC_LIMIT_S)
    await host.ask(
        "put", content, deadline_s=MARKER_LIMIT_S, path=_marker_of(folder), mode=MARKER_MODE
    )


async def golden(host: Host, folder: str) -> dict[str, Any] | None:
    """The marker of a folder; None for one that is not there, not whole, or of another format."""
    content = b""
    stream = host.stream("get", path=_marker_of(folder), max_bytes=MARKER_LIMIT_BYTES)
    try:
        async for message in stream:
            content += message.payload
    except Refusal:
        return None
    finally:
        await stream.aclose()
    try:
        marker = json.loads(content)
    except ValueError:
        return None
    if not isinstance(marker, dict) or marker.pop("format", None) != MARKER_FORMAT:
        return None
    return marker


async def clone(host: Host, source: str, to: str) -> str:
    """Copy a folder to a new place; how it was done: `reflink` or `copy`.

    A reflink shares all extents until they are changed, which takes no time and leaves the source
    alone; where the file system has none, or `source` lies on another, everything is copied and
    written back. Symbolic links are followed, so that nothing of the source can be changed through
    the copy. What is at `to` is removed first. EngineError, also when the target runs full.
    """
    await remove(host, to)
    try:
        await told(host, _copy(source, to, "always"), limit_s=COPY_LIMIT_S)
    except EngineError:
        # It ends at the first file that cannot be shared, and leaves what it had made.
        await remove(host, to)
    else:
        return REFLINK
    try:
        await told(host, _copy(source, to, "never"), limit_s=COPY_LIMIT_S)
    except EngineError as fault:
        await remove(host, to)
        do = "Make room there: runs need the database and a copy of it."
        raise EngineError(fault.happened, do) from None
    await host.ask("sync", deadline_s=SYNC_LIMIT_S)
    return COPY


async def files_in(host: Host, folder: str) -> dict[str, int]:
    """The path and size of every file in a folder and below it. HostError or EngineError."""
    words = ("find", folder, "-type", "f", "-printf", r"%s %p\0")
    listed = await told(host, words, output_limit_bytes=LISTED_LIMIT_BYTES)
    rows = (row.partition(b" ") for row in listed.split(b"\0") if row)
    return {path.decode("utf-8", "replace"): int(size) for size, _, path in rows}


async def remove(host: Host, folder: str) -> None:
    """Remove a folder with all that is in it; it need not be there.

    Other file systems that are mounted in it are left alone. ValueError for a path that is not
    plainly one of a folder below another.
    """
    parts = folder.split("/")
    if not folder.startswith("/") or len(parts) < 3 or set(parts[1:]) & {"", ".", ".."}:
        raise ValueError(f"{folder!r} is not the path of a folder to remove")
    words = ("rm", "-rf", "--one-file-system", "--", folder)
    try:
        await told(host, words, limit_s=REMOVE_LIMIT_S)
    except EngineError as fault:
        raise HostError(fault.happened, "Remove that folder by hand, and run again.") from None


def _marker_of(folder: str) -> str:
    return f"{folder}/{MARKER}"


def _copy(source: str, to: str, reflink: str) -> tuple[str, ...]:
    return ("cp", "-r", "-L", f"--reflink={reflink}", "--", source, to)
