"""What cannot be removed at the end of a session is told, with what to do, and has an exit code."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.e2e.acted_on import Running
from tests.e2e.targets import command, xfs_on_loop
from tests.needs import require

pytestmark = [pytest.mark.e2e, pytest.mark.long]


def test_a_file_that_cannot_be_removed_is_told(tmp_path: Path) -> None:
    require("chattr")
    with xfs_on_loop(512 << 20) as target:
        running = Running(target.path, tmp_path, "native")
        running.started()
        stays = next(target.path.iterdir()) / "stays"
        stays.touch()
        command("chattr", "+i", stays)
        try:
            code, stderr = running.end()
        finally:
            command("chattr", "-i", stays)
    assert code == 3
    assert "Left behind" in stderr
    assert str(stays.parent) in stderr
    assert "iolab clean" in stderr
