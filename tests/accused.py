"""Whether any session that a test stored has a run that `preloaded-library` accuses.

No end-to-end test puts a library between a load and the kernel, so all of them are a trial that the
check has no false alarm: each run is looked at when its test has ended.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import msgspec

from iolab.core.libraries import InterposerKind, LibraryUse, interposer_kind

MANIFEST: Final = "manifest.json"
ACCUSED_KINDS: Final = frozenset((InterposerKind.REPLACES, InterposerKind.UNKNOWN))


def accused_libraries(folder: Path) -> Iterator[str]:
    """The libraries that make a stored run below a folder indicative or invalid, with the run."""
    for path, _, files in os.walk(folder):
        if MANIFEST in files and Path(path).name.startswith("run-"):
            for host, use in _library_uses(Path(path) / MANIFEST):
                for library in use.libraries:
                    if interposer_kind(library) in ACCUSED_KINDS:
                        yield f"{path}, {host}: {library}"


def _library_uses(manifest: Path) -> Iterator[tuple[str, LibraryUse]]:
    try:
        document = json.loads(manifest.read_bytes())
    except (OSError, ValueError):
        return  # a test damaged it
    hosts = document.get("hosts") if isinstance(document, dict) else None
    for host in hosts if isinstance(hosts, list) else []:
        use = host.get("libraries") if isinstance(host, dict) else None
        if use:
            yield str(host.get("host")), msgspec.convert(use, LibraryUse)


class StoredRuns:
    """The folders of tests in a folder, each read once."""

    def __init__(self, base: Path) -> None:
        self._base = base
        self._read: set[str] = set()

    def new_accused_libraries(self) -> list[str]:
        """Of the folders that were not read before."""
        accused: list[str] = []
        for entry in os.scandir(self._base) if self._base.is_dir() else ():
            if entry.is_dir(follow_symlinks=False) and entry.name not in self._read:
                self._read.add(entry.name)
                accused += accused_libraries(Path(entry.path))
        return accused
