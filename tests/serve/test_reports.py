"""Reports are made once for each state, one at a time, by a process that ends with the server."""

from __future__ import annotations

import asyncio
import shutil
from pathlib import Path

import pytest

from iolab.errors import ReportError
from iolab.serve.limits import REPORTS_WAITING_MAX
from iolab.serve.reports import ReportCache, TooManyReportsError
from iolab.serve.sessions import SessionFolder
from tests.serve.asking import WRITES, Site

FAILS = (
    'print(\'{"format":1,"error":{"exit_code":6,"message":"It broke.","hint":"Mend it."}}\');'
    "raise SystemExit(6)"
)
DIES = "import os; os.kill(os.getpid(), 9)"
HANGS = "import time; time.sleep(600)"


PIECES = (
    'import sys, time; print(\'{"error":{"message":"It broke.",\', flush=True);'
    'time.sleep(0.1); print(\'"hint":"Mend it."}}\'); sys.exit(6)'
)


def place(name: str) -> SessionFolder:
    return SessionFolder(name, name, Path("/nowhere") / name)


def reports(site: Site, wait_s: float = 30.0) -> ReportCache:
    return ReportCache(site.report_command, lambda page, _: page, wait_s=wait_s)


def test_a_state_is_made_once_and_the_next_anew(tmp_path: Path) -> None:
    log = tmp_path / "log"
    site = Site(tmp_path, script=f"open({str(log)!r}, 'a').write('x'); {WRITES}")

    async def every() -> None:
        made = reports(site)
        for digest in ("first", "first", "second", "second"):
            assert await made.report_page_or_start_making(place("one"), digest) is not None
        await asyncio.gather(
            *(made.report_page_or_start_making(place("two"), "same") for _ in range(5))
        )

    asyncio.run(every())
    assert log.read_text() == "xxx"


def test_what_failed_is_told_and_tried_again(tmp_path: Path) -> None:
    for script, message in ((FAILS, "It broke."), (PIECES, "It broke."), (DIES, "ended with -9")):
        site = Site(tmp_path, script=script)

        async def twice(site: Site = site, message: str = message) -> None:
            made = reports(site)
            for _ in range(2):
                with pytest.raises(ReportError, match=message):
                    await made.report_page_or_start_making(place("one"), "state")

        asyncio.run(twice())


def test_a_page_says_that_it_is_being_made_and_shows_it_later(
    session: Path, tmp_path: Path
) -> None:
    shutil.copytree(session, tmp_path / "root" / "one")
    gate = tmp_path / "gate"
    waits = f"import os, time\nwhile not os.path.exists({str(gate)!r}): time.sleep(0.01)\n"
    site = Site(tmp_path / "root", script=waits + WRITES, wait_s=0.05)

    async def later() -> None:
        made = reports(site, 0.05)
        assert await made.report_page_or_start_making(place("one"), "state") is None
        gate.touch()
        tries = [await made.report_page_or_start_making(place("one"), "state") for _ in range(600)]
        assert tries[-1] is not None

    first = site.get(f"/sessions/{site.id_of('one')}")
    assert first.status == 202
    assert "script-src" in first.headers["content-security-policy"]
    asyncio.run(later())


def test_so_many_wait_and_no_more(tmp_path: Path) -> None:
    site = Site(tmp_path, script=HANGS)

    async def crowd() -> None:
        made = reports(site, 0.001)
        for number in range(REPORTS_WAITING_MAX):
            assert await made.report_page_or_start_making(place(str(number)), "state") is None
        with pytest.raises(TooManyReportsError):
            await made.report_page_or_start_making(place("late"), "state")
        assert await made.report_page_or_start_making(place("0"), "state") is None
        await made.close()

    asyncio.run(crowd())


def test_failures_that_nobody_came_back_for_leave_room(tmp_path: Path) -> None:
    site = Site(tmp_path, script=f"import time; time.sleep(0.2); {FAILS}")

    async def left() -> None:
        made = reports(site, 0.001)
        for number in range(REPORTS_WAITING_MAX):
            assert await made.report_page_or_start_making(place(str(number)), "state") is None
        await made.wait_until_idle()
        assert await made.report_page_or_start_making(place("late"), "state") is None
        await made.close()

    asyncio.run(left())


def test_what_is_kept_has_a_bound(tmp_path: Path) -> None:
    large = "import sys, os; open(sys.argv[2], 'wb').write(os.urandom(100_000))"
    site = Site(tmp_path, script=large)

    async def several() -> int:
        made = ReportCache(site.report_command, lambda page, _: page, keep_bytes=250_000)
        for number in range(4):
            await made.report_page_or_start_making(place(str(number)), "state")
        return made.cached_bytes

    assert 200_000 <= asyncio.run(several()) <= 250_000
