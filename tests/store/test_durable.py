"""What must be on the device is flushed before it is named, and faults are told by their path."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest

from iolab.errors import StoreError
from iolab.store.durable import (
    disk_errors_as_store_errors,
    os_error_in_text,
    replace_file,
    write_new_file,
)
from tests.store.flushes import flushes_and_names
from tests.store.sessions import PLAN, commit, create, record_of


def test_a_run_is_flushed_whole_before_it_is_named_and_its_name_after(tmp_path: Path) -> None:
    place = tmp_path / "S"
    with create(place) as writer:
        seen = flushes_and_names(lambda: commit(writer, record_of(0)))
    run = place / "points" / PLAN.runs[0].point.digest / "run-1"
    draft = run.with_name(f".run-1.tmp-{os.getpid()}")
    named = seen.index(("name", str(run)))
    content = {str(draft / path.relative_to(run)) for path in run.rglob("*")}
    assert {path for what, path in seen[:named] if what == "flush"} == {
        *content,
        str(draft),
        str(place / "points"),
    }
    directories = [seen.index(("flush", str(path))) for path in (draft / "engine", draft)]
    files = [seen.index(("flush", path)) for path in content - {str(draft / "engine")}]
    assert max(files) < directories[0] < directories[1] < named
    assert seen[named + 1 :] == [("flush", str(run.parent))]


def test_a_file_is_replaced_in_the_same_way(tmp_path: Path) -> None:
    path = tmp_path / "document.json"
    path.write_text("old")
    seen = flushes_and_names(lambda: replace_file(path, b"new"))
    assert seen == [
        ("flush", str(tmp_path / f".document.json.tmp-{os.getpid()}")),
        ("name", str(path)),
        ("flush", str(tmp_path)),
    ]
    assert path.read_bytes() == b"new"
    assert list(tmp_path.iterdir()) == [path]


def test_a_file_that_cannot_be_replaced_stays(tmp_path: Path) -> None:
    (tmp_path / "taken").mkdir()
    (tmp_path / "taken" / "file").write_text("mine")
    with pytest.raises(OSError, match="directory"):
        replace_file(tmp_path / "taken", b"new")
    assert [path.name for path in tmp_path.iterdir()] == ["taken"]


def test_a_new_file_never_replaces_another(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("mine")
    with pytest.raises(FileExistsError):
        write_new_file(tmp_path / "file", b"new")
    assert (tmp_path / "file").read_text() == "mine"


@pytest.mark.parametrize(
    "number", [errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EACCES, errno.EIO]
)
def test_every_fault_is_told_with_its_path_and_what_to_do(number: int) -> None:
    with pytest.raises(StoreError) as caught, disk_errors_as_store_errors(Path("S"), "write"):
        raise OSError(number, os.strerror(number), "S/plan.json")
    assert caught.value.message == f"Cannot write 'S/plan.json': {os.strerror(number)}."
    assert caught.value.hint


def test_a_fault_without_a_path_is_told_with_the_place_at_hand() -> None:
    with pytest.raises(StoreError) as caught, disk_errors_as_store_errors(Path("S"), "read"):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
    assert caught.value.message == f"Cannot read 'S': {os.strerror(errno.ENOSPC)}."


def test_a_library_text_that_tells_of_the_disk_is_understood() -> None:
    fault = os_error_in_text('IO Error: Could not write file "x": No space left on device')
    assert fault is not None
    assert fault.errno == errno.ENOSPC
    assert os_error_in_text("Invalid Input Error: no magic bytes") is None
