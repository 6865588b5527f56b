"""Files that the command line writes by itself: new ones only, or replaced whole."""

from __future__ import annotations

import os
from pathlib import Path

from iolab.errors import IolabError, ReportError, UsageError


def write_new(path: Path, text: str) -> None:
    """Write a file that is not there yet; UsageError when it is, or cannot be written."""
    from iolab.plan.wording import shown

    try:
        with path.open("x", encoding="utf-8") as file:
            file.write(text)
    except FileExistsError as error:
        raise UsageError(
            f"{shown(str(path))} is already there.", "Give another name; nothing was changed."
        ) from error
    except OSError as error:
        raise _unwritable(UsageError, path, error) from error


def replace_whole(path: Path, content: str | bytes) -> None:
    """Write a file aside and rename it into place; ReportError when that cannot be done."""
    draft = path.with_name(f".{path.name}.tmp-{os.getpid()}")
    try:
        with draft.open("xb") as file:
            file.write(content.encode() if isinstance(content, str) else content)
        draft.replace(path)
    except OSError as error:
        raise _unwritable(ReportError, path, error) from error
    finally:
        _forget(draft)


def _forget(draft: Path) -> None:
    """Remove the draft of a file that could not be finished."""
    try:
        draft.unlink(missing_ok=True)
    except OSError:
        return


def _unwritable(kind: type[IolabError], path: Path, error: OSError) -> IolabError:
    from iolab.plan.wording import shown

    return kind(
        f"{shown(str(path))} cannot be written: {error.strerror}.",
        "Give a place that may be written to and has room.",
    )
