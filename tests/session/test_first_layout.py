"""Two hosts of which only one must first lay its files out: they are measured together."""

from __future__ import annotations

from iolab.core.events import SessionPhase, SessionPhaseStarted, SessionStatus
from tests.fakes.script import FakeScript
from tests.judging import judge
from tests.session.stage import Stage


def test_a_host_that_must_lay_out_first_is_waited_for() -> None:
    # What c1 finds is laid out already: 2 files of 16 MiB, kept by an earlier session.
    kept = {"/mnt/bench/iolab-scratch-c1/s16m": 16 << 20}
    stage = Stage({"c1": FakeScript(shared=kept), "c2": FakeScript()}).play()
    assert stage.status is SessionStatus.DONE, stage.fault
    laid_out = [
        name
        for name, host in stage.hosts.items()
        if any(request["start_at_real_ns"] is None for request in host.runs)
    ]
    assert laid_out == ["c2"]
    phases = [event.phase for event in stage.notes.of(SessionPhaseStarted)]
    assert phases.index(SessionPhase.LAY_OUT) < phases.index(SessionPhase.MEASURE)
    for record in stage.records:
        starts = {host: stage.hosts[host].runs[-1]["start_at_real_ns"] for host in ("c1", "c2")}
        assert None not in starts.values()
        result = judge(record, {})
        assert result.spread is not None
        assert result.spread.overlap > 0.99
        assert result.spread.start_skew_ns < 10_000_000
        assert result.metrics["iops"].value is not None
