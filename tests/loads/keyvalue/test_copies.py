"""Golden folders and their copies through the real agent."""

from __future__ import annotations

from pathlib import Path

import pytest

from iolab.errors import EngineError
from iolab.hosts.host import Host
from iolab.loads.keyvalue.databases import (
    MARKER,
    copy_folder_by_reflink_if_possible,
    read_folder_marker,
    remove_folder,
    sync_and_mark_folder_complete,
)
from tests.e2e.targets import tmpfs, xfs_on_loop
from tests.loads.keyvalue.local import on_this_machine

pytestmark = [pytest.mark.e2e, pytest.mark.long]


def database(folder: Path) -> Path:
    """A folder with files, one of them behind a symbolic link."""
    folder.mkdir()
    (folder / "000001.sst").write_bytes(b"table" * 100_000)
    elsewhere = folder.parent / "elsewhere"
    elsewhere.write_bytes(b"log")
    (folder / "000002.log").symlink_to(elsewhere)
    return folder


def test_a_marker_is_told_again_and_what_has_none_is_not_golden(tmp_path: Path) -> None:
    async def work(host: Host) -> None:
        assert await read_folder_marker(host, str(tmp_path / "nowhere")) is None
        assert await read_folder_marker(host, str(tmp_path)) is None
        await sync_and_mark_folder_complete(host, str(tmp_path), {"keys": 5})
        assert await read_folder_marker(host, str(tmp_path)) == {"keys": 5}

    on_this_machine(work)


@pytest.mark.parametrize(
    "content",
    [b"", b'{"format": 1, "ke', b"[1]", b'{"format": 2}', b"{}", b"\xff\xfe", b"x" * (2 << 20)],
)
def test_a_marker_that_is_not_ours_or_not_whole_is_none(tmp_path: Path, content: bytes) -> None:
    (tmp_path / MARKER).write_bytes(content)
    assert on_this_machine(lambda host: read_folder_marker(host, str(tmp_path))) is None


def test_without_reflinks_everything_is_copied(tmp_path: Path) -> None:
    with tmpfs(64 << 20) as target:
        source, to = database(target / "golden"), target / "cell"
        to.mkdir()
        (to / "old").write_bytes(b"of the run before")
        assert (
            on_this_machine(
                lambda host: copy_folder_by_reflink_if_possible(host, str(source), str(to))
            )
            == "copy"
        )
        assert sorted(path.name for path in to.iterdir()) == ["000001.sst", "000002.log"]
        assert (to / "000001.sst").read_bytes() == (source / "000001.sst").read_bytes()


def test_nothing_of_the_source_is_reached_through_a_copy() -> None:
    with xfs_on_loop(512 << 20) as target:
        source, to = database(target.path / "golden"), target.path / "cell"
        link = target.path / "link"
        link.symlink_to(source)
        to.mkdir()
        (to / "old").write_bytes(b"of the run before")
        assert (
            on_this_machine(
                lambda host: copy_folder_by_reflink_if_possible(host, str(link), str(to))
            )
            == "reflink"
        )
        assert sorted(path.name for path in to.iterdir()) == ["000001.sst", "000002.log"]
        (to / "000002.log").write_bytes(b"changed")
        (to / "000001.sst").unlink()
        assert (source / "000002.log").read_bytes() == b"log"
        assert (source / "000001.sst").exists()


def test_a_copy_for_which_there_is_no_room_is_an_error_and_leaves_nothing() -> None:
    with tmpfs(1 << 20) as target:
        source, to = database(target / "golden"), target / "cell"
        (source / "000003.sst").write_bytes(b"x" * 400_000)
        with pytest.raises(EngineError, match=r"cp on host 'local' .*No space left") as caught:
            on_this_machine(
                lambda host: copy_folder_by_reflink_if_possible(host, str(source), str(to))
            )
        assert "Make room" in caught.value.hint
        assert not to.exists()


def test_a_folder_is_removed_with_all_in_it_and_need_not_be_there(tmp_path: Path) -> None:
    folder = database(tmp_path / "folder")
    on_this_machine(lambda host: remove_folder(host, str(folder)))
    assert not folder.exists()
    assert (tmp_path / "elsewhere").exists()
    on_this_machine(lambda host: remove_folder(host, str(folder)))


@pytest.mark.parametrize(
    "path", ["", "/", "/mnt", "mnt/folder", "/mnt/../etc", "/mnt/folder/", "//"]
)
def test_what_is_no_folder_of_a_session_is_never_removed(path: str) -> None:
    with pytest.raises(ValueError, match="not the path"):
        on_this_machine(lambda host: remove_folder(host, path))
