"""Kits are made whole, stay while they are used, and the oldest go."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from pathlib import Path

import pytest

from iolab.errors import EngineError
from iolab.hosts.kit_cache import KITS_KEPT, TOKEN, KitCache, KitRecipe
from tests.needs import require

NOBODY = 65534

HOLDER = """
import asyncio, pathlib, sys
from iolab.hosts.kit_cache import KitCache, KitRecipe

async def make(aside):
    raise SystemExit("it is there")

shelf = KitCache(pathlib.Path(sys.argv[1]))
asyncio.run(shelf.get_or_build_kit(KitRecipe(sys.argv[2], "", make), print))
print("taken", flush=True)
sys.stdin.read()
"""


def plan(name: str) -> KitRecipe:
    async def make(aside: Path) -> Path:
        made = aside / "made"
        made.mkdir()
        (made / "content").write_text(name)
        return made

    return KitRecipe(name, f"making {name}", make)


def kit_name(number: int, family: str = "guest") -> str:
    return f"{family}-6.1-{number:016x}"


def made_elsewhere(folder: Path, name: str, used_at: int) -> None:
    """As another session left it."""
    (folder / name).mkdir(parents=True)
    (folder / name / TOKEN).write_text("random")
    os.utime(folder / name / TOKEN, (used_at, used_at))


def written_to_a_full_device(aside: Path) -> Path:
    Path("/dev/full").write_bytes(b"x")
    return aside


def kits(folder: Path) -> set[str]:
    return {path.name for path in folder.iterdir() if path.is_dir()}


def test_only_the_kits_used_last_stay(tmp_path: Path) -> None:
    for number in range(KITS_KEPT + 2):
        made_elsewhere(tmp_path, kit_name(number), used_at=1000 + number)
    made_elsewhere(tmp_path, kit_name(99, "other"), used_at=1)
    (tmp_path / "guest-notes").mkdir()
    asyncio.run(KitCache(tmp_path).get_or_build_kit(plan(kit_name(50)), print))
    newest = {kit_name(number) for number in range(3, KITS_KEPT + 2)}
    assert kits(tmp_path) == newest | {kit_name(50), kit_name(99, "other"), "guest-notes"}


def test_a_kit_in_use_by_another_session_stays(tmp_path: Path) -> None:
    for number in range(KITS_KEPT):
        made_elsewhere(tmp_path, kit_name(number), used_at=1000 + number)
    with subprocess.Popen(
        [sys.executable, "-c", HOLDER, str(tmp_path), kit_name(0)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    ) as holder:
        assert holder.stdout
        assert holder.stdout.readline() == b"taken\n"
        for number in range(KITS_KEPT):
            os.utime(tmp_path / kit_name(number) / TOKEN, (1000 + number, 1000 + number))
        asyncio.run(KitCache(tmp_path).get_or_build_kit(plan(kit_name(50)), print))
        assert kit_name(0) in kits(tmp_path)
        holder.kill()
    for number in range(KITS_KEPT):
        made_elsewhere(tmp_path, kit_name(60 + number), used_at=5000 + number)
    asyncio.run(KitCache(tmp_path).get_or_build_kit(plan(kit_name(51)), print))
    assert kit_name(0) not in kits(tmp_path)


def test_a_kit_that_this_session_uses_stays(tmp_path: Path) -> None:
    shelf = KitCache(tmp_path)
    mine = asyncio.run(shelf.get_or_build_kit(plan(kit_name(70)), print))
    os.utime(mine / TOKEN, (1, 1))
    for number in range(KITS_KEPT):
        made_elsewhere(tmp_path, kit_name(number), used_at=1000 + number)
    asyncio.run(shelf.get_or_build_kit(plan(kit_name(71)), print))
    assert mine.is_dir()


def test_a_kit_removed_by_hand_is_made_anew(tmp_path: Path) -> None:
    shelf = KitCache(tmp_path)
    first = asyncio.run(shelf.get_or_build_kit(plan(kit_name(1)), print))
    (first / TOKEN).unlink()
    said: list[str] = []
    assert asyncio.run(shelf.get_or_build_kit(plan(kit_name(1)), said.append)) == first
    assert said == [f"making {kit_name(1)}"]
    assert (first / "content").read_text() == kit_name(1)


def test_a_full_disk_is_told_with_what_to_do(tmp_path: Path) -> None:
    async def make(aside: Path) -> Path:
        return written_to_a_full_device(aside)

    with pytest.raises(EngineError, match="No space left") as caught:
        asyncio.run(KitCache(tmp_path).get_or_build_kit(KitRecipe(kit_name(1), "", make), print))
    assert "XDG_CACHE_HOME" in caught.value.hint
    assert kits(tmp_path) == set()


def test_a_kit_that_cannot_be_written_is_told(tmp_path: Path) -> None:
    async def make(aside: Path) -> Path:
        return aside / "missing"

    with pytest.raises(EngineError, match="cannot be written in"):
        asyncio.run(KitCache(tmp_path).get_or_build_kit(KitRecipe(kit_name(1), "", make), print))


def test_a_link_in_the_place_of_a_kit_is_not_followed(tmp_path: Path) -> None:
    """Neither used nor emptied; nor a link in the place of what a killed build left."""
    cache, elsewhere, name = tmp_path / "cache", tmp_path / "elsewhere", kit_name(1)
    cache.mkdir()
    made_elsewhere(elsewhere, name, 1)
    (elsewhere / name / "content").write_text("not ours")
    (cache / name).symlink_to(elsewhere / name)
    (cache / f".{name}.dead").symlink_to(elsewhere)
    get_or_build_kit = asyncio.run(KitCache(cache).get_or_build_kit(plan(name), print))
    assert (get_or_build_kit.is_symlink(), (get_or_build_kit / "content").read_text()) == (
        False,
        name,
    )
    assert (elsewhere / name / "content").read_text() == "not ours"


def test_a_cache_that_others_made_or_may_write_to_is_refused(tmp_path: Path) -> None:
    cache = tmp_path / "cache"
    made_elsewhere(cache, kit_name(1), 1)
    cache.chmod(0o777)
    with pytest.raises(EngineError, match="everybody"):
        asyncio.run(KitCache(cache).get_or_build_kit(plan(kit_name(1)), print))
    cache.chmod(0o700)
    require("root")
    os.chown(cache, NOBODY, -1)
    with pytest.raises(EngineError, match=str(NOBODY)):
        asyncio.run(KitCache(cache).get_or_build_kit(plan(kit_name(1)), print))


def test_a_kit_of_another_user_is_neither_used_nor_removed(tmp_path: Path) -> None:
    require("root")
    for number in range(KITS_KEPT + 2):
        made_elsewhere(tmp_path, kit_name(number), number + 1)
    os.chown(tmp_path / kit_name(0), NOBODY, -1)
    tmp_path.chmod(0o700)
    asyncio.run(KitCache(tmp_path).get_or_build_kit(plan(kit_name(99)), print))
    assert (tmp_path / kit_name(0)).exists()
    assert not (tmp_path / kit_name(1)).exists()
    with pytest.raises(EngineError):
        asyncio.run(KitCache(tmp_path).get_or_build_kit(plan(kit_name(0)), print))
