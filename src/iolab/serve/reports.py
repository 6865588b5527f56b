"""Reports as pages: made once for each state of a session, one at a time, and kept for a while.

A report is made by a process of its own, the same `iolab report` that a user would run, so that
drawing hundreds of charts neither holds up other pages nor outlives the server.
"""

from __future__ import annotations

import asyncio
import gzip
import json
import tempfile
from collections import OrderedDict
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final

from iolab.errors import ExitCode, IolabError, ReportError
from iolab.hosts.process import run_local_process
from iolab.record import Record
from iolab.serve.limits import (
    CACHE_BYTES_MAX,
    REPORT_BYTES_MAX,
    REPORT_S,
    REPORT_WAIT_S,
    REPORTS_WAITING_MAX,
)
from iolab.serve.sessions import SessionFolder

Command = Callable[[Path, Path], Sequence[str]]
"""The argument list that writes the report of a session (first path) to a file (second one)."""

FinishPage = Callable[[bytes, SessionFolder], bytes]
"""What is put around a report on its page."""

_NICENESS: Final = 10
"""A report gives way to whatever else the machine does: it may be the one that measures."""

_OUTPUT_BYTES_MAX: Final = 64 << 10
"""Of what a report's process says, so much is read; an error has two sentences."""

_LEVEL: Final = 1
"""How hard a page is compressed: charts shrink tenfold at once, and little more with patience."""


class CompressedPage(Record):
    """A page, compressed with gzip."""

    gzip_bytes: bytes

    def decompress(self) -> bytes:
        """The page as it was made."""
        return gzip.decompress(self.gzip_bytes)


class TooManyReportsError(Exception):
    """So many reports wait to be made that another must come later."""


class ReportCache:
    """The reports of a server's sessions; `wait_s` is how long one request waits for one.

    Pages that were made are kept up to `keep_bytes` together.
    """

    def __init__(
        self,
        command: Command,
        finish_page: FinishPage,
        *,
        wait_s: float = REPORT_WAIT_S,
        keep_bytes: int = CACHE_BYTES_MAX,
    ) -> None:
        self._command = command
        self._finish_page = finish_page
        self._wait_s = wait_s
        self._keep_bytes = keep_bytes
        self._pages: OrderedDict[tuple[str, str], CompressedPage] = OrderedDict()
        self._making: dict[tuple[str, str], asyncio.Task[CompressedPage]] = {}
        self._making_lock = asyncio.Semaphore(1)

    async def report_page_or_start_making(
        self, session_folder: SessionFolder, stamp_digest: str
    ) -> CompressedPage | None:
        """The report of that state of a session; None while it is being made.

        Busy where too many wait; IolabError where it cannot be made, and then it is tried again
        when asked for again.
        """
        key = (session_folder.id, stamp_digest)
        if key in self._pages:
            self._pages.move_to_end(key)
            return self._pages[key]
        task = self._making.get(key)
        if task is None:
            self._drop_failed_tasks()
            if len(self._making) >= REPORTS_WAITING_MAX:
                raise TooManyReportsError
            task = asyncio.create_task(self._create_page(key, session_folder))
            self._making[key] = task
        done, _ = await asyncio.wait({task}, timeout=self._wait_s)
        if not done:
            return None
        self._making.pop(key, None)
        return task.result()

    @property
    def cached_bytes(self) -> int:
        """The memory that pages take."""
        return sum(len(page.gzip_bytes) for page in self._pages.values())

    async def wait_until_idle(self) -> None:
        """Wait until nothing is being made."""
        await asyncio.gather(*self._making.values(), return_exceptions=True)

    async def close(self) -> None:
        """End what is being made."""
        for task in self._making.values():
            task.cancel()
        await self.wait_until_idle()

    def _drop_failed_tasks(self) -> None:
        """Let go of what failed and nobody came back for."""
        for key in [key for key, task in self._making.items() if task.done()]:
            task = self._making.pop(key)
            if not task.cancelled():
                task.exception()

    async def _create_page(
        self, key: tuple[str, str], session_folder: SessionFolder
    ) -> CompressedPage:
        async with self._making_lock:
            with tempfile.TemporaryDirectory(prefix="iolab-serve-") as scratch:
                path = Path(scratch) / "report.html"
                await _run_report_command(self._command(session_folder.path, path))
                page = await asyncio.to_thread(
                    _compress_report, path, self._finish_page, session_folder
                )
        self._cache_page(key, page)
        return page

    def _cache_page(self, key: tuple[str, str], page: CompressedPage) -> None:
        """Keep it in place of the session's older states, and of those unused for longest."""
        for old in [other for other in self._pages if other[0] == key[0]]:
            del self._pages[old]
        self._pages[key] = page
        while self.cached_bytes > self._keep_bytes:
            self._pages.popitem(last=False)
        self._making.pop(key, None)


def _compress_report(
    path: Path, finish_page: FinishPage, session_folder: SessionFolder
) -> CompressedPage:
    size = path.stat().st_size
    if size > REPORT_BYTES_MAX:
        raise ReportError(
            f"The report has {size} bytes, more than a browser shows well.",
            "Write it with `iolab report`, or export the results with `iolab export`.",
        )
    return CompressedPage(
        gzip.compress(finish_page(path.read_bytes(), session_folder), _LEVEL, mtime=0)
    )


async def _run_report_command(argv: Sequence[str]) -> None:
    """Run the command to its end, or end it with us; ReportError with what it said of a failure.

    A report that leaves damaged runs out is one too, and says so.
    """
    try:
        code, output, _ = await run_local_process(
            ("nice", "-n", str(_NICENESS), *argv), limit_s=REPORT_S, output_bytes=_OUTPUT_BYTES_MAX
        )
    except TimeoutError as error:
        raise ReportError(
            f"The report was not made within {REPORT_S:.0f} s.", "Write it with `iolab report`."
        ) from error
    if code != ExitCode.OK and not (code == ExitCode.STORE and _is_report_output(output)):
        raise _error_of_report_command(output, code)


def _is_report_output(output: bytes) -> bool:
    """Whether `iolab report --json` tells of a report, not of an error."""
    try:
        return "written" in json.loads(output)
    except (ValueError, TypeError):
        return False


def _error_of_report_command(output: bytes, code: int) -> IolabError:
    """The error that `iolab report --json` told, as far as it can be read."""
    try:
        error = json.loads(output)["error"]
        return ReportError(str(error["message"]), str(error["hint"]))
    except (ValueError, KeyError, TypeError):
        return ReportError(
            f"The report's process ended with {code}.", "Run `iolab report` to see why."
        )
