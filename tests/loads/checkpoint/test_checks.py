"""Checkpoints whose ranks are missing, whose bytes are in memory, or that one rank decides."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from iolab.analysis.kinds import judge_run
from iolab.core.metric import RunResult, VerdictLevel
from iolab.core.run import RunRecord
from iolab.loads.checkpoint.workload import PhaseRun, SaveDurability
from iolab.registry import analysis_kinds
from tests.analysis.records import facts_of
from tests.loads.checkpoint.records import (
    JOB,
    SECOND,
    devices,
    saved_and_restored,
    with_straggler,
    without_last_rank,
)

SIZE = JOB.checkpoint_files.total_bytes


def judged(record: RunRecord, **target: Any) -> RunResult:
    facts = {host.host: facts_of(host.host, **target) for host in record.hosts}
    return judge_run(record, facts, analysis_kinds())


def level(result: RunResult, code: str) -> VerdictLevel | None:
    return {check.code: check.level for check in result.verdict.checks}[code]


def moved(read: int = 0, written: int = 0, later: int = 0) -> Any:
    def change(run: PhaseRun) -> PhaseRun:
        later_devices = devices(written=later) if written else ()
        return replace(run, devices=devices(read, written), devices_later=later_devices)

    return change


def unseen(run: PhaseRun) -> PhaseRun:
    return replace(run, devices=(), devices_later=())


def quickly_flushed(run: PhaseRun) -> PhaseRun:
    return replace(run, ranks=tuple(replace(rank, sync_ns=20_000) for rank in run.ranks))


@pytest.mark.parametrize(
    ("code", "record", "expected"),
    [
        ("ranks-missing", saved_and_restored(), VerdictLevel.VALID),
        ("ranks-missing", saved_and_restored(save=without_last_rank), VerdictLevel.INVALID),
        ("ranks-missing", saved_and_restored(restore=without_last_rank), VerdictLevel.INVALID),
        ("slowest-rank", saved_and_restored(), VerdictLevel.VALID),
        ("slowest-rank", saved_and_restored(save=with_straggler), VerdictLevel.INDICATIVE),
        ("slowest-rank", saved_and_restored(restore=with_straggler), VerdictLevel.INDICATIVE),
        ("not-durable", saved_and_restored(), VerdictLevel.VALID),
        ("not-durable", saved_and_restored(save=moved(written=SIZE // 2)), VerdictLevel.INVALID),
        (
            "not-durable",
            saved_and_restored(replace(JOB, durable=SaveDurability.NONE)),
            VerdictLevel.INDICATIVE,
        ),
        ("not-durable", saved_and_restored(save=unseen), VerdictLevel.VALID),
        (
            "not-durable",
            saved_and_restored(
                replace(JOB, direct=False), save=lambda run: unseen(quickly_flushed(run))
            ),
            VerdictLevel.INVALID,
        ),
        ("work-outside-window", saved_and_restored(), VerdictLevel.VALID),
        (
            "work-outside-window",
            saved_and_restored(save=moved(written=SIZE, later=SIZE // 50)),
            VerdictLevel.INDICATIVE,
        ),
        (
            "work-outside-window",
            saved_and_restored(save=moved(written=SIZE, later=SIZE // 5)),
            VerdictLevel.INVALID,
        ),
        ("work-outside-window", saved_and_restored(replace(JOB, restore_ranks=0)), None),
        ("restored-from-memory", saved_and_restored(), VerdictLevel.VALID),
        (
            "restored-from-memory",
            saved_and_restored(restore=moved(read=SIZE // 2)),
            VerdictLevel.INVALID,
        ),
        ("restored-from-memory", saved_and_restored(replace(JOB, restore_ranks=0)), None),
    ],
)
def test_a_checkpoint_is_judged_by_what_its_ranks_and_devices_did(
    code: str, record: RunRecord, expected: VerdictLevel | None
) -> None:
    assert level(judged(record), code) is expected


@pytest.mark.parametrize(
    ("direct", "resident", "expected"),
    [
        # O_DIRECT alone proves nothing: a file system may read through its cache all the same.
        (True, None, VerdictLevel.INDICATIVE),
        (True, 0, VerdictLevel.VALID),
        (True, SIZE // 50, VerdictLevel.INVALID),
        (False, 0, VerdictLevel.VALID),
        (False, SIZE // 50, VerdictLevel.INVALID),
        (False, None, VerdictLevel.INDICATIVE),
    ],
)
def test_without_a_device_memory_decides_how_cold_a_restore_is(
    direct: bool,  # noqa: FBT001
    resident: int | None,
    expected: VerdictLevel,
) -> None:
    record = saved_and_restored(replace(JOB, direct=direct), save=unseen, restore=unseen)
    (host,) = record.hosts
    assert host.cache_drop is not None
    cache = replace(host.cache_drop, resident_bytes_after=resident)
    record = replace(record, hosts=(replace(host, cache_drop=cache),))
    assert level(judged(record, device=None, devices=()), "restored-from-memory") is expected


def test_times_are_those_of_the_slowest_rank_and_the_published_way_stands_beside() -> None:
    metrics = judged(saved_and_restored()).metrics
    assert metrics["save_ns"].value == 7.2 * SECOND
    assert metrics["restore_ns"].value == 7.2 * SECOND
    assert metrics["save_bytes_per_s"].value == pytest.approx(SIZE / 7.2)
    assert metrics["published_save_bytes_per_s"].value == pytest.approx(SIZE / 6.999)
    assert metrics["save_sync_share"].value == pytest.approx(0.7 / 7.199, rel=1e-4)
    assert metrics["save_rank_spread"].value == pytest.approx(7.2 / 7.045)
    assert metrics["restore_amplification"].value == pytest.approx(1.0)
