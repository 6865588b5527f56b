"""The search for sessions: bounded, and never through a link."""

from __future__ import annotations

from pathlib import Path

from iolab.serve.sessions import find_sessions
from iolab.store.search import DEPTH_MAX, SESSIONS_MAX


def session(folder: Path) -> Path:
    folder.mkdir(parents=True)
    (folder / "session.json").write_text("{}")
    return folder


def names(root: Path) -> list[str]:
    return [place.name for place in find_sessions(root).folders]


def test_sessions_are_found_by_name_at_several_levels(tmp_path: Path) -> None:
    for name in ("b", "a/x", "a/y/z"):
        session(tmp_path / name)
    (tmp_path / "empty").mkdir()
    assert names(tmp_path) == ["a/x", "a/y/z", "b"]


def test_the_directory_may_be_a_session_itself(tmp_path: Path) -> None:
    session(tmp_path / "one")
    assert names(tmp_path / "one") == ["."]


def test_nothing_is_looked_for_in_a_session(tmp_path: Path) -> None:
    session(tmp_path / "one")
    session(tmp_path / "one" / "points" / "other")
    assert names(tmp_path) == ["one"]


def test_no_link_is_followed(tmp_path: Path) -> None:
    outside = session(tmp_path / "outside")
    root = tmp_path / "root"
    session(root / "real")
    (root / "link").symlink_to(outside)
    (root / "loop").symlink_to(root)
    fake = root / "fake"
    fake.mkdir()
    (fake / "session.json").symlink_to(outside / "session.json")
    assert names(root) == ["real"]


def test_the_search_ends_at_a_depth(tmp_path: Path) -> None:
    session(tmp_path.joinpath(*["d"] * DEPTH_MAX))
    session(tmp_path.joinpath(*["e"] * (DEPTH_MAX + 1)))
    assert names(tmp_path) == ["/".join(["d"] * DEPTH_MAX)]


def test_the_search_ends_at_a_number_and_says_so(tmp_path: Path) -> None:
    for number in range(SESSIONS_MAX + 3):
        session(tmp_path / f"s{number}")
    found = find_sessions(tmp_path)
    assert len(found.folders) == SESSIONS_MAX
    assert "may be more" in found.notes[0]


def test_an_id_is_opaque_and_stays(tmp_path: Path) -> None:
    for root in ("one", "other"):
        session(tmp_path / root / "lab" / "secret-name")
    ids = {find_sessions(tmp_path / root).folders[0].id for root in ("one", "other")}
    assert len(ids) == 1
    assert ids.pop().isalnum()


def test_names_that_are_no_text_can_be_shown(tmp_path: Path) -> None:
    session(Path(f"{tmp_path}/bad\udcff"))
    assert names(tmp_path) == ["bad\\xff"]
