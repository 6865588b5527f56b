"""Ledgers of verified devices: begun with a fill, gone on with by runs, given up when unsound."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import pytest

from iolab.core.events import LedgerChanged, SessionPhase, SessionPhaseStarted, SessionStatus
from iolab.session.session import NO_EARLIER_SEGMENTS, EarlierSegments
from iolab.study.cost import start_state_preparation_count
from tests.fakes.host import FakeHost
from tests.fakes.programs import FakeCall
from tests.fakes.script import FakeScript
from tests.loads.fileio.fake_native import FakeNative
from tests.session.stage import Stage

VERIFIED = """
[[workload]]
id = "{id}"
engine = "native"
rw = "{rw}"
bs = "{bs}"
filesize = "16m"
verify = true
"""
PLAIN = """
[[workload]]
id = "plain"
engine = "native"
rw = "randwrite"
bs = "4k"
filesize = "16m"
"""
WRITE = VERIFIED.format(id="write", rw="randwrite", bs="4k")
READ = VERIFIED.format(id="read", rw="randread", bs="4k")
LARGE = VERIFIED.format(id="large", rw="randread", bs="64k")
HEAD = """
format = 1
id = "verified"
[target]
device = "/dev/nvme0n1"
serial = "E0001"
[method]
warmup = "1s"
runtime = "4s"
repeats = 1
order = "as-written"
"""


@dataclass
class Told:
    """What the native engine was told, in order; what is done on nothing is left out."""

    specs: list[dict[str, Any]]

    def script(self) -> FakeScript:
        (plain,) = FakeNative().programs.values()

        async def engine(call: FakeCall) -> int:
            spec = json.loads(call.stdin)
            if spec["jobs"][0]["files"][0]["path"] != "/dev/null":
                self.specs.append(spec)
            return await plain(call)

        return FakeScript(programs={"iolab-agent": engine})

    @property
    def ledgers(self) -> list[tuple[str, str | None]]:
        """What each engine did, and in which ledger."""
        does = (
            "fill" if spec["runtime_s"] is None else spec["jobs"][0]["rw"] for spec in self.specs
        )
        return list(zip(does, (spec.get("ledger") for spec in self.specs), strict=True))


def play(
    *workloads: str, earlier: EarlierSegments = NO_EARLIER_SEGMENTS, more: str = ""
) -> tuple[Stage, Told]:
    told = Told([])
    text = HEAD + "".join(workloads) + more
    stage = Stage({"local": told.script()}, text=text, earlier=earlier).play()
    assert stage.status is SessionStatus.DONE, stage.fault
    return stage, told


def opened(host: FakeHost) -> Sequence[object]:
    return [request["name"] for request in host.asked("ledger_open")]


def test_a_fill_begins_the_ledger_that_later_runs_go_on_with() -> None:
    stage, told = play(WRITE, READ)
    does, ledgers = zip(*told.ledgers, strict=True)
    assert does == ("fill", "randwrite", "randread")
    assert len({*ledgers}) == 1
    assert ledgers[0].startswith("/proc/")
    assert {spec["ledger_block"] for spec in told.specs} == {4096}
    assert opened(stage.hosts["local"]) == ["local nvme0n1"]
    stage.assert_left_clean()


def test_the_smallest_verified_block_is_what_a_ledger_counts_in() -> None:
    _, told = play(LARGE, READ)
    assert [does for does, _ in told.ledgers] == ["fill", "randread", "randread"]
    assert {spec["ledger_block"] for spec in told.specs} == {4096}


def test_who_writes_without_stamps_spoils_the_ledger() -> None:
    stage, told = play(WRITE, PLAIN, READ)
    assert [does for does, _ in told.ledgers] == [
        "fill",
        "randwrite",
        "randwrite",
        "fill",
        "randread",
    ]
    ledgers = [ledger for _, ledger in told.ledgers]
    assert ledgers[0] == ledgers[1]
    assert ledgers[2] is None
    assert ledgers[3] == ledgers[4] != ledgers[0]
    assert len(stage.hosts["local"].asked("ledger_close")) == 1


def test_a_state_that_is_made_again_begins_a_ledger_anew() -> None:
    _, told = play(WRITE, READ, more='[precondition]\nrestore = "each-point"\n')
    assert [does for does, _ in told.ledgers] == ["fill", "randwrite", "fill", "randread"]
    ledgers = [ledger for _, ledger in told.ledgers]
    assert ledgers[0] == ledgers[1] != ledgers[2] == ledgers[3]


EACH_WORKLOAD = '[precondition]\nrestore = "each-workload"\n'


@pytest.mark.parametrize(
    ("workloads", "more", "fills"),
    [
        ((WRITE, READ), "", 1),
        ((PLAIN,), "", 1),
        # What was filled for one that verifies nothing has no ledger.
        ((PLAIN, READ), "", 2),
        ((WRITE, PLAIN, READ), "", 2),
        ((PLAIN, WRITE, READ), EACH_WORKLOAD, 3),
    ],
)
def test_the_plan_counts_every_fill(workloads: tuple[str, ...], more: str, fills: int) -> None:
    stage, told = play(*workloads, more=more)
    assert [does for does, _ in told.ledgers].count("fill") == fills
    assert start_state_preparation_count(stage.study, stage.plan.runs) == fills


def test_workloads_that_verify_nothing_have_no_ledger() -> None:
    stage, told = play(PLAIN)
    assert {ledger for _, ledger in told.ledgers} == {None}
    assert opened(stage.hosts["local"]) == []


def test_a_device_that_is_not_filled_has_no_ledger() -> None:
    _, told = play(WRITE, more='[precondition]\npurge = "discard"\nfill = 0\n')
    assert told.ledgers == [("randwrite", None)]


def test_a_later_segment_fills_a_device_anew_as_nobody_knows_its_blocks() -> None:
    first, _ = play(WRITE, READ)
    left = first.notes.of(LedgerChanged)[-1].ledger
    done = frozenset((run.point.digest, 1) for run in first.plan.runs[:1])
    again, told = play(WRITE, READ, earlier=EarlierSegments(done_run_keys=done, ledger=left))
    assert [does for does, _ in told.ledgers] == ["fill", "randread"]
    assert told.ledgers[0][1] == told.ledgers[1][1] is not None
    phases = [event.phase for event in again.notes.of(SessionPhaseStarted)]
    assert SessionPhase.PRECONDITION in phases


PHASED = """
[[phase]]
id = "before"
seconds = "5s"
[[phase]]
id = "after"
seconds = "5s"
"""


def test_a_resumed_session_reads_all_blocks_before_its_first_load_again() -> None:
    """Else damage of before any event would be the store's loss in the repeats that are left."""

    def play_phases(earlier: EarlierSegments) -> tuple[Stage, list[str]]:
        told = Told([])
        head = HEAD.replace('runtime = "4s"\n', "").replace("repeats = 1", "repeats = 2")
        text = head + WRITE + PHASED
        stage = Stage({"local": told.script()}, text=text, earlier=earlier).play()
        assert stage.status is SessionStatus.DONE, stage.fault
        return stage, [spec["jobs"][0]["rw"] for spec in told.specs]

    stage, does = play_phases(NO_EARLIER_SEGMENTS)
    # Before the first load, and after each of two.
    assert [rw for rw in does if rw != "write"] == ["read", *["randwrite", "read"] * 2]
    (before, after) = (record.scenario for record in stage.records)
    assert before is not None
    assert after is not None
    assert (before.earlier_readbacks, after.earlier_readbacks) == ((), before.readbacks)
    assert [readback.data_set_blocks for readback in before.readbacks] == [(16 << 20) // 4096]
    first = stage.plan.runs[0]
    done = frozenset({(first.point.digest, first.repeat)})
    again, does = play_phases(EarlierSegments(done_run_keys=done))
    assert [rw for rw in does if rw != "write"] == ["read", "randwrite", "read"]
    (record,) = again.records
    assert record.scenario is not None
    assert len(record.scenario.first_readbacks) == 1
