"""What a process of YCSB printed, and why it was killed."""

from __future__ import annotations

import pytest

from iolab.hosts.answers import ExitedAnswer
from iolab.hosts.engine import Command
from iolab.hosts.remote_process import ProcessEnding
from iolab.loads.keyvalue.ycsb.clients import KEPT_BYTES, MEMORY_HINT, YcsbOutputCollector
from iolab.loads.keyvalue.ycsb.output import YcsbStatus
from iolab.session.process_driver import out_of_memory_error

STATUS = b"2026-11-21 02:08:30:710 7 sec: 12306 operations; 3958 current ops/sec;\n"


def ending(*, oom_kills: int | None, stderr_tail: str = "") -> ProcessEnding:
    exited = ExitedAnswer(
        code=None,
        signal=9,
        user_s=1,
        system_s=1,
        max_rss_bytes=1,
        real_ns=1,
        oom_kills=oom_kills,
    )
    return ProcessEnding(exited, stderr_tail, was_halted=False)


def command(memory_limit_bytes: int | None) -> Command:
    return Command(("java",), "/", b"", "", 1, 1, memory_limit_bytes=memory_limit_bytes)


def test_a_client_that_the_kernel_killed_for_its_memory_is_told_with_its_bound() -> None:
    fault = out_of_memory_error("YCSB", "c1", command(700 << 20), ending(oom_kills=1), MEMORY_HINT)
    assert fault is not None
    assert "'c1' needed more than its 700 MiB" in fault.message
    assert "workload.*.memory" in fault.hint


@pytest.mark.parametrize(("limit", "kills"), [(700 << 20, 0), (None, None)])
def test_one_that_ended_otherwise_is_not(limit: int | None, kills: int | None) -> None:
    killed = out_of_memory_error("YCSB", "c1", command(limit), ending(oom_kills=kills), MEMORY_HINT)
    assert killed is None


def test_both_streams_are_kept_up_to_a_limit_and_status_is_heard() -> None:
    heard: list[YcsbStatus] = []
    printed = YcsbOutputCollector(heard.append)
    printed.feed_stdout(b"[OVERALL]")
    printed.feed_stderr(STATUS + b"said\n")
    printed.feed_stderr(b"x" * (KEPT_BYTES + 1))
    assert [status.operations for status in heard] == [12306]
    assert printed.compressed_stdout_and_stderr[0].decompress() == b"[OVERALL]"
    assert len(printed.stderr) == KEPT_BYTES


def test_last_words_are_looked_for_beside_the_status_lines() -> None:
    printed = YcsbOutputCollector(lambda _: None)
    printed.feed_stderr(b"Error: no memory\n" + 100 * STATUS)
    found = printed.ending_without_status_lines(ending(oom_kills=None, stderr_tail="7 sec"))
    assert found.stderr_tail.strip() == "Error: no memory"
