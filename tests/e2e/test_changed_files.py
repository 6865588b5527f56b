"""Files that are cut, punched, replaced or removed under a load are found; its own writes pass."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.e2e.acted_on import Running
from tests.e2e.targets import Target, command, xfs_on_loop
from tests.needs import require

pytestmark = [pytest.mark.e2e, pytest.mark.long]


@pytest.fixture(scope="module")
def target() -> Iterator[Target]:
    with xfs_on_loop(512 << 20) as made:
        yield made


def data_file(target: Target) -> Path:
    """The largest file of the scratch folder: one of the load's."""
    files = [path for path in target.path.rglob("*") if path.is_file()]
    return max(files, key=lambda path: path.stat().st_size)


def cut(file: Path) -> None:
    os.truncate(file, 0)


def punch(file: Path) -> None:
    command("fallocate", "--punch-hole", "--offset", "0", "--length", str(8 << 20), file)


def replace(file: Path) -> None:
    other = file.with_name("other")
    shutil.copyfile(file, other)
    other.rename(file)


def remove(file: Path) -> None:
    file.unlink()


@pytest.mark.parametrize("engine", ["native", "fio"])
@pytest.mark.parametrize("change", [cut, punch, replace, remove])
def test_a_file_of_a_write_load_that_changes_is_told(
    engine: str, change: Callable[[Path], None], target: Target, tmp_path: Path
) -> None:
    require(engine if engine == "fio" else "fallocate")
    running = Running(target.path, tmp_path, engine)
    running.started()
    change(data_file(target))
    if (engine, change) == ("fio", remove):
        # Where it opens the file again it misses it, and fails by itself.
        code, stderr = running.end()
        assert code in {0, 4}, stderr
        if code == 4:
            return
        check = running.stored_checks()["files-changed"]
    else:
        check = running.checks()["files-changed"]
    expected = {"invalid"} if change in {replace, remove} else {"invalid", "indicative"}
    assert check["level"] in expected, check


@pytest.mark.parametrize("engine", ["native", "fio"])
@pytest.mark.parametrize("rw", ["randwrite", "write", "randrw"])
def test_the_writes_of_a_load_change_no_file(
    engine: str, rw: str, target: Target, tmp_path: Path
) -> None:
    require(engine if engine == "fio" else "fallocate")
    check = Running(target.path, tmp_path, engine, rw).checks()["files-changed"]
    assert check["level"] == "valid", check


def test_a_native_load_whose_every_io_fails_ends_early_as_failed(
    target: Target, tmp_path: Path
) -> None:
    running = Running(target.path, tmp_path, "native", "randread")
    running.started()
    for path in target.path.rglob("*"):
        if path.is_file() and path.stat().st_size >= 1 << 20:
            os.truncate(path, 0)
    code, stderr = running.end()
    assert code == 4
    assert "every I/O failed" in stderr
