"""Files that changed under a load, and files that are what they were."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from iolab.analysis.checks.run import check_engine_errors
from iolab.core.metric import VerdictLevel
from iolab.core.run import ExtentProof, FileIdentityCheck, RunRecord
from iolab.loads.fileio.checks import check_files_changed
from tests.analysis.checks_on import INDICATIVE, INVALID, VALID, ask, level
from tests.analysis.records import GIB, healthy
from tests.facts import tells

BEFORE = ExtentProof("fiemap", 4, 4 * GIB, 4 * GIB, 0, 0, identity="a", places="p")


def looked(**changes: Any) -> FileIdentityCheck:
    """The files before a load, and after it with those changes."""
    return FileIdentityCheck(BEFORE, replace(BEFORE, **changes))


@pytest.mark.parametrize(
    ("files", "expected"),
    [
        (looked(), VALID),
        (looked(identity="b"), INVALID),
        (looked(size_bytes=3 * GIB, written_bytes=3 * GIB), INVALID),
        (looked(written_bytes=3 * GIB, hole_bytes=GIB), INVALID),
        (looked(places="q"), INDICATIVE),
        (looked(identity=None, places=None), VALID),
        (FileIdentityCheck(BEFORE, None, "ENOENT: no such file"), INVALID),
        (FileIdentityCheck(BEFORE, None), None),
        (None, None),
    ],
)
def test_files_are_held_against_what_they_were(
    files: FileIdentityCheck | None, expected: VerdictLevel | None
) -> None:
    assert level(check_files_changed, healthy(files=files)) is expected


def test_files_that_were_sparse_get_new_places_by_the_load_itself() -> None:
    sparse = replace(BEFORE, written_bytes=GIB, hole_bytes=3 * GIB)
    files = FileIdentityCheck(sparse, replace(BEFORE, places="q"))
    assert level(check_files_changed, healthy(files=files)) is VALID


@pytest.mark.parametrize(("share", "expected"), [(0.001, INDICATIVE), (0.99, INVALID)])
def test_short_ios_are_judged_by_their_part(share: float, expected: VerdictLevel) -> None:
    record = with_short(healthy(), share)
    answer = ask(check_engine_errors, record)
    assert answer.level is expected
    assert tells(answer.message, "short")


def with_short(record: RunRecord, share: float) -> RunRecord:
    host = record.hosts[0]
    assert host.totals is not None
    assert host.totals.read is not None
    read = replace(host.totals.read, short_ios=round(share * host.totals.read.ios))
    host = replace(host, totals=replace(host.totals, read=read))
    return replace(record, hosts=(host,))
