"""Inodes that a file system counted, held against the files that ranks claim."""

from __future__ import annotations

from msgspec.structs import replace

from iolab.core.metric import VerdictLevel
from tests.analysis.planted import FILES_MADE, METADATA, inodes
from tests.analysis.records import facts_of
from tests.facts import tells


def test_on_a_root_file_system_others_may_have_removed_what_is_lacking() -> None:
    record = replace(METADATA.record, counters=inodes(FILES_MADE, FILES_MADE // 2))
    on_root = {name: facts_of(name, mount_point="/") for name in METADATA.facts}
    checks = {check.code: check for check in METADATA.but(record, facts=on_root).verdict().checks}
    counted = checks["operations-counted"]
    assert counted.level is VerdictLevel.INDICATIVE
    assert tells(counted.message, "others")
