"""What the record of a run says of a run that failed."""

from __future__ import annotations

from iolab.core.compressed import Packed
from iolab.errors import HostError
from iolab.hosts.barrier import joined
from iolab.session.driver import HostShare
from iolab.session.loop import FAULTS_SHOWN, outputs_of, sentence
from iolab.targets.work_directory import WorkDirectory
from tests.fakes.host import FakeHost
from tests.session.stage import Stage


def lost(count: int) -> HostError:
    fault = joined({f"h{n}": HostError(f"Host {n} broke off.", "Go on.") for n in range(count)})
    assert isinstance(fault, HostError)
    return fault


def test_of_a_thousand_faults_some_are_told_and_the_others_counted() -> None:
    told = sentence(lost(1000))
    assert told.count("broke off") == FAULTS_SHOWN
    assert told.endswith(f"And {1000 - FAULTS_SHOWN} more.")


def test_output_and_files_of_an_engine_are_kept_by_name_but_for_empty_ones() -> None:
    run = Stage().plan.runs[0]
    first, second = (
        HostShare(WorkDirectory(FakeHost(name), "/scratch", None, name)) for name in "ab"
    )
    first.output = Packed.of(b"printed")
    first.files = {"READ.hdr": Packed.of(b"lines"), "empty.hdr": Packed.of(b"")}
    second.files = {"READ.hdr": Packed.of(b"others")}
    kept = [
        (one.host, one.name, one.content.unpacked()) for one in outputs_of(run, [first, second])
    ]
    assert kept == [
        ("a", "fio.stdout", b"printed"),
        ("a", "READ.hdr", b"lines"),
        ("b", "READ.hdr", b"others"),
    ]
