"""What `iolab serve` starts."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

from iolab.cli.serve import html_report_argv
from tests.cli.command_line import LIMIT_S


def test_a_report_imports_nothing_from_the_directory_that_is_served(tmp_path: Path) -> None:
    for name in ("typer.py", "iolab.py"):
        (tmp_path / name).write_text("raise SystemExit(99)")
    made = subprocess.run(
        html_report_argv(tmp_path / "none", tmp_path / "report.html"),
        cwd=tmp_path,
        capture_output=True,
        timeout=LIMIT_S,
        check=False,
    )
    assert made.returncode == 5
    assert "is not a session" in json.loads(made.stdout)["error"]["message"]
