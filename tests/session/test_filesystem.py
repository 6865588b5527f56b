"""Sessions on a file system of their own: opened before the files, told, closed, made again."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from iolab.core.events import FilesystemsCreated, Notice, RunFinished, RunPreparing, SessionStarted
from iolab.core.host import TargetProbe
from iolab.errors import HostError
from tests.fakes.fio import FakeLoad
from tests.fakes.script import FakeScript
from tests.session.stage import Stage

XFS = ("target.filesystem=xfs", "target.image=1g")
FOLDER = "/mnt/bench/iolab-scratch-local"
FREE = TargetProbe(direct_error=None, direct_align_bytes=512, held_by=None)


def test_files_lie_in_it_and_its_facts_are_told_before_the_first_run() -> None:
    stage = Stage(sets=XFS).play()
    stage.assert_left_clean()
    host = stage.hosts["local"]
    (asked,) = host.asked("filesystem_open")
    assert (asked["dir"], asked["image_bytes"], asked["serial"]) == (FOLDER, 1 << 30, None)
    places = {request["cwd"] for request in host.runs}
    assert places == {f"{FOLDER}/fs"}
    (closed,) = host.asked("scratch_close")
    assert (closed["dir"], closed["keep"]) == (FOLDER, False)
    (made,) = stage.notes.of(FilesystemsCreated)
    kinds = [type(event) for event in stage.notes.events]
    assert kinds.index(SessionStarted) < kinds.index(FilesystemsCreated) < kinds.index(RunPreparing)
    ((key, facts),) = made.facts
    assert key == "local"
    assert facts.target is not None
    assert facts.target.mount_point == f"{FOLDER}/fs"
    assert facts.target.devices == ("loop7", "nvme0n1")
    assert [disk.name for disk in facts.disks] == ["nvme0n1", "loop7"]
    before = dict(stage.notes.of(SessionStarted)[0].facts)["local"]
    assert before.target is not None
    assert before.target.devices == ("nvme0n1",)
    assert facts.tools == before.tools
    for finished in stage.notes.of(RunFinished):
        (ran,) = finished.record.hosts
        assert ran.target_key == "local"
        assert [delta.device for delta in ran.devices] == ["loop7", "nvme0n1"]


def test_without_the_wish_nothing_is_made() -> None:
    stage = Stage().play()
    assert stage.hosts["local"].asked("filesystem_open") == []
    assert stage.hosts["local"].asked("probe")[0]["rights"] is False
    assert stage.notes.of(FilesystemsCreated) == []


def test_an_image_is_kept_with_the_files() -> None:
    stage = Stage(sets=(*XFS, "target.keep_files=true")).play()
    (closed,) = stage.hosts["local"].asked("scratch_close")
    assert (closed["dir"], closed["keep"]) == (FOLDER, True)
    assert stage.hosts["local"].asked("filesystem_close") == []


def test_what_is_odd_about_it_is_told() -> None:
    script = FakeScript(kept_image=True, direct_image=False)
    stage = Stage({"local": script}, sets=XFS).play()
    said = [notice.text for notice in stage.notes.of(Notice)]
    assert any("is mounted again" in text for text in said)
    assert any("takes no direct I/O" in text for text in said)
    assert Stage(sets=XFS).play().notes.of(Notice) == []


def test_one_that_cannot_be_made_ends_the_session_and_lets_the_folder_go() -> None:
    refusing = FakeScript(refuses={"filesystem_open": ("ENOSPC", "cannot make the image")})
    stage = Stage({"local": refusing}, sets=XFS).play()
    assert isinstance(stage.fault, HostError)
    assert "cannot make the image" in stage.fault.message
    assert stage.notes.of(RunPreparing) == []
    assert [asked["dir"] for asked in stage.hosts["local"].asked("scratch_close")] == [FOLDER]
    stage.assert_left_clean()


@pytest.mark.parametrize(
    ("probe", "sets", "message"),
    [
        (replace(FREE, mount_error="EPERM"), (), "file system of its own"),
        (replace(FREE, memory_error="ENOTSUP"), (), ""),
        (FREE, ("workload.rand-read.filesize=600m",), "1.19 GiB"),
        (FREE, ("target.image=2t",), "the image needs"),
    ],
)
def test_what_stands_against_it_is_told_before_anything_is_made(
    probe: TargetProbe, sets: tuple[str, ...], message: str
) -> None:
    stage = Stage({"local": FakeScript(probe=probe)}, sets=(*XFS, *sets)).play()
    faults = [] if stage.fault is None else [str(fault) for fault in stage.fault.faults]
    assert [message in fault for fault in faults] == ([True] if message else [])
    assert bool(stage.hosts["local"].asked("scratch_open")) == (not message)
    stage.assert_left_clean()


def test_it_is_made_anew_on_a_host_that_was_lost_and_reached_again() -> None:
    dying = FakeScript(loads=(FakeLoad(host_dies_at_s=2.0),))
    sets = (*XFS, "method.on_failure=retry", "method.retries=1")
    stage = Stage({"local": dying}, sets=sets, again={"local": [FakeScript()]}).play()
    assert stage.fault is None
    assert len(stage.notes.of(FilesystemsCreated)) == 2
    (again,) = stage.reached
    assert len(again.asked("filesystem_open")) == 1
    stage.assert_left_clean(swept_on=("local",))


def test_a_start_state_by_new_files_is_a_new_file_system() -> None:
    sets = (*XFS, "precondition.purge=recreate", "precondition.restore=each-workload")
    stage = Stage(sets=sets).play()
    assert stage.fault is None
    host = stage.hosts["local"]
    assert len(host.asked("filesystem_close")) == 2
    assert len(host.asked("filesystem_open")) == 3
    assert len(host.asked("scratch_open")) == 1
    stage.assert_left_clean()
