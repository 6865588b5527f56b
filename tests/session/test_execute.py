"""What the record of a run says of a run that failed."""

from __future__ import annotations

from iolab.core.compressed import CompressedBytes
from iolab.errors import HostError
from iolab.hosts.barrier import combined_error
from iolab.session.driver import HostRunInProgress
from iolab.session.loop import FAULTS_SHOWN, engine_outputs, failure_text
from iolab.targets.work_directory import WorkDirectory
from tests.fakes.host import FakeHost
from tests.session.stage import Stage


def lost(count: int) -> HostError:
    fault = combined_error(
        {f"h{n}": HostError(f"Host {n} broke off.", "Go on.") for n in range(count)}
    )
    assert isinstance(fault, HostError)
    return fault


def test_of_a_thousand_faults_some_are_told_and_the_others_counted() -> None:
    told = failure_text(lost(1000))
    assert told.count("broke off") == FAULTS_SHOWN
    assert told.endswith(f"And {1000 - FAULTS_SHOWN} more.")


def test_output_and_files_of_an_engine_are_kept_by_name_but_for_empty_ones() -> None:
    run = Stage().plan.runs[0]
    first, second = (
        HostRunInProgress(WorkDirectory(FakeHost(name), "/scratch", None, name)) for name in "ab"
    )
    first.output = CompressedBytes.compress(b"printed")
    first.files = {
        "READ.hdr": CompressedBytes.compress(b"lines"),
        "empty.hdr": CompressedBytes.compress(b""),
    }
    second.files = {"READ.hdr": CompressedBytes.compress(b"others")}
    kept = [
        (one.host, one.name, one.content.decompress())
        for one in engine_outputs(run, [first, second])
    ]
    assert kept == [
        ("a", "fio.stdout", b"printed"),
        ("a", "READ.hdr", b"lines"),
        ("b", "READ.hdr", b"others"),
    ]
