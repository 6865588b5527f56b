"""Programs that a test runs to their end."""

from __future__ import annotations

import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any


def run_program(
    words: Sequence[str | Path], *, check: bool = False, **options: Any
) -> subprocess.CompletedProcess[str]:
    """What the program printed, as text, and its exit code; `options` are of `subprocess.run`."""
    return subprocess.run(words, capture_output=True, text=True, check=check, **options)
