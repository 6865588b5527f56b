"""Removes a session, and no file that iolab did not write."""

from __future__ import annotations

import re
import shutil
from pathlib import Path
from typing import Final

from iolab.errors import StoreError, UsageError
from iolab.store import layout
from iolab.store.durable import disk_errors_as_store_errors, is_locked
from iolab.text import list_text

_REPORT: Final = re.compile(r"report[^/]*\.(html|pdf|md|docx)")
"""Reports that `iolab report` writes into a session by default."""

FOREIGN_SHOWN_MAX: Final = 3


def require_removable(session_directory: Path) -> None:
    """UsageError or StoreError where it is no session, is being written, or holds other files."""
    if session_directory.is_symlink() or not (session_directory / layout.SESSION).is_file():
        raise UsageError(
            f"'{session_directory}' is not a session.", "'iolab ls' lists the sessions."
        )
    if is_locked(session_directory):
        raise StoreError(f"Another iolab measures in '{session_directory}'.", "End it first.")
    with disk_errors_as_store_errors(session_directory, "read"):
        names = sorted(entry.name for entry in session_directory.iterdir())
        foreign = [name for name in names if not _is_written_by_iolab(name)]
        foreign += [
            str(path.relative_to(session_directory))
            for path in layout.foreign_point_entries(session_directory)
        ]
    if foreign:
        raise UsageError(
            f"'{session_directory}' also holds {list_text(foreign, FOREIGN_SHOWN_MAX)}.",
            "Move the files that iolab did not write to another place first.",
        )


def remove_session(session_directory: Path) -> None:
    """Remove every file of a session, `session.json` last: until then it can be removed again.

    OSError where one cannot be removed.
    """
    for entry in sorted(
        session_directory.iterdir(), key=lambda entry: entry.name == layout.SESSION
    ):
        if entry.is_dir() and not entry.is_symlink():
            shutil.rmtree(entry)
        else:
            entry.unlink()
    session_directory.rmdir()


def _is_written_by_iolab(name: str) -> bool:
    return layout.is_session_entry_name(name) or _REPORT.fullmatch(name) is not None
