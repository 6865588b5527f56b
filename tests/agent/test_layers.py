"""What lies below a target, through real overlays, bind mounts and loop devices."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.agent.speaker import Agent
from tests.e2e.targets import command, tmpfs
from tests.needs import ROOT, require

SIZE_BYTES = 48 << 20


def facts_of(agent: Agent, path: Path) -> dict[str, Any]:
    """The facts of a target."""
    target = agent.ask("facts", path=str(path))["facts"]["target"]
    assert isinstance(target, dict)
    return target


@contextmanager
def overlay(
    folder: Path, at: Path, names: tuple[str, ...] = ("l", "u", "w"), *, absolute: bool = False
) -> Iterator[Path]:
    """An overlay of these three folders of `folder`, mounted on a new folder, as its user says."""
    require(ROOT, "mount")
    for name in names:
        (folder / name).mkdir(parents=True, exist_ok=True)
    at.mkdir(exist_ok=True)
    words = [f"{folder}/{name}" if absolute else name for name in names]
    words = [word.replace("\\", "\\\\").replace(",", "\\,").replace(":", "\\:") for word in words]
    options = ",".join(
        f"{key}={word}"
        for key, word in zip(("lowerdir", "upperdir", "workdir"), words, strict=True)
    )
    argv = ["mount", "-t", "overlay", "overlay", "-o", options, str(at)]
    subprocess.run(argv, cwd=folder, check=True)
    try:
        yield at
    finally:
        subprocess.run(["umount", at], check=True)


@contextmanager
def ext4_on_loop(image: Path, at: Path) -> Iterator[Path]:
    """An ext4 on a loop device over that file."""
    with image.open("wb") as file:
        os.truncate(file.fileno(), SIZE_BYTES)
    command("mkfs.ext4", "-q", "-F", image)
    device = command("losetup", "--find", "--show", image)
    at.mkdir(exist_ok=True)
    try:
        command("mount", device, at)
        try:
            yield at
        finally:
            command("umount", at)
    finally:
        command("losetup", "--detach", device)


@pytest.fixture
def memory() -> Iterator[Path]:
    """A tmpfs with room for an image."""
    with tmpfs(2 * SIZE_BYTES) as folder:
        yield folder


@pytest.mark.parametrize("absolute", [True, False])
def test_an_overlay_in_memory_is_memory_however_its_folder_was_named(
    agent: Agent, memory: Path, tmp_path: Path, *, absolute: bool
) -> None:
    (memory / "deep").mkdir()
    with overlay(memory / "deep", tmp_path / "m", absolute=absolute) as merged:
        target = facts_of(agent, merged)
    assert (target["in_memory"], target["hidden"]) == (True, False)
    upper = f"{memory}/deep/u" if absolute else "u"
    assert target["layers"] == [f"overlay with the upper directory '{upper}'", "tmpfs"]


def test_names_with_commas_colons_spaces_and_backslashes(
    agent: Agent, memory: Path, tmp_path: Path
) -> None:
    names = ("l", "u,1:2 3\\4", "w")
    with overlay(memory, tmp_path / "m", names, absolute=True) as merged:
        assert facts_of(agent, merged)["in_memory"] is True


@pytest.mark.parametrize("absolute", [True, False])
def test_an_overlay_on_a_disk_is_storage_however_its_folder_was_named(
    agent: Agent, tmp_path: Path, *, absolute: bool
) -> None:
    below = facts_of(agent, tmp_path)
    with overlay(tmp_path, tmp_path / "m", absolute=absolute) as merged:
        target = facts_of(agent, merged)
    same = ("devices", "in_memory", "memory_backed", "hidden")
    assert [target[key] for key in same] == [below[key] for key in same]
    assert target["layers"][1:] == below["layers"]


def test_overlays_of_others_on_the_same_disk_leave_no_doubt(agent: Agent, tmp_path: Path) -> None:
    mine, other = tmp_path / "mine", tmp_path / "other"
    mine.mkdir()
    other.mkdir()
    below = facts_of(agent, tmp_path)
    with overlay(other, tmp_path / "o"), overlay(mine, tmp_path / "m", absolute=False) as merged:
        target = facts_of(agent, merged)
    assert target["devices"] == below["devices"]


def test_an_overlay_on_an_overlay_in_memory(agent: Agent, memory: Path, tmp_path: Path) -> None:
    with ExitStack() as stack:
        # An upper directory must take overlayfs's own attributes, which another overlay refuses
        # unless it is bound through a loop device.
        first = stack.enter_context(overlay(memory, tmp_path / "m1"))
        image = stack.enter_context(ext4_on_loop(first / "image", tmp_path / "m2"))
        second = stack.enter_context(overlay(image, tmp_path / "m3"))
        for path in (image, second):
            target = facts_of(agent, path)
            assert (target["memory_backed"], target["hidden"]) == (True, False)
            assert target["layers"][-1] == "tmpfs"
            assert f"the file '{first}/image'" in target["layers"]


def test_a_bind_mount_and_a_link_into_memory(agent: Agent, memory: Path, tmp_path: Path) -> None:
    (memory / "sub").mkdir()
    (tmp_path / "bound").mkdir()
    command("mount", "--bind", memory / "sub", tmp_path / "bound")
    try:
        with overlay(tmp_path / "bound", tmp_path / "m", absolute=True) as merged:
            assert facts_of(agent, tmp_path / "bound")["in_memory"] is True
            assert facts_of(agent, merged)["in_memory"] is True
    finally:
        command("umount", tmp_path / "bound")


def test_an_upper_directory_whose_mount_is_gone_is_hidden(
    agent: Agent, memory: Path, tmp_path: Path
) -> None:
    gone = tmp_path / "gone"
    gone.mkdir()
    command("mount", "-t", "tmpfs", "-o", "size=3m", "tmpfs", gone)
    with overlay(gone, tmp_path / "m", absolute=True) as merged:
        command("umount", "--lazy", gone)
        # What is now below that name is of another size.
        (gone / "u").mkdir()
        answer = agent.ask("facts", path=str(merged))["facts"]
    target = answer["target"]
    assert (target["in_memory"], target["hidden"], target["devices"]) == (False, True, [])
    assert any(str(merged) in fault and "cannot be seen" in fault for fault in answer["faults"])


def test_a_loop_device_keeps_its_file_where_the_name_is_gone(
    agent: Agent, memory: Path, tmp_path: Path
) -> None:
    image = memory / "image"
    with ext4_on_loop(image, tmp_path / "m") as mounted:
        image.unlink()
        target = facts_of(agent, mounted)
        assert (target["memory_backed"], target["layers"][-1]) == (True, "tmpfs")
        # Another mount covers the whole path.
        command("mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", memory)
        try:
            assert facts_of(agent, mounted)["memory_backed"] is True
        finally:
            command("umount", memory)


def test_a_mount_that_is_covered_is_not_the_one_below(agent: Agent, tmp_path: Path) -> None:
    outer, cover = tmp_path / "outer", tmp_path / "cover"
    for folder in (outer, cover):
        (folder / "inner").mkdir(parents=True)
    command("mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", outer / "inner")
    try:
        command("mount", "--bind", cover, outer)
        try:
            # By its name this is on the tmpfs, which the folder covers.
            assert facts_of(agent, outer / "inner")["in_memory"] is False
        finally:
            command("umount", outer)
    finally:
        command("umount", outer / "inner")
