"""Real output of tools by the name that it had; `tests/golden/TOOL/README.md` says what made it.

Each file is kept compressed: `zstd -dc NAME.zst` prints it, `zstd -19` makes one.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Final

import zstandard

_GOLDEN: Final = Path(__file__).parent / "golden"


@cache
def recorded(name: str) -> bytes:
    """The content of `tool/file`, as it came."""
    return zstandard.decompress(_file(name).read_bytes())


def is_recorded(name: str) -> bool:
    """Whether there is such a file; some tools leave one less."""
    return _file(name).exists()


def recordings(tool: str, suffix: str) -> list[str]:
    """The names, `tool/file`, of all files of that tool with that suffix."""
    found = (_GOLDEN / tool).glob(f"*{suffix}.zst")
    return sorted(f"{tool}/{path.name.removesuffix('.zst')}" for path in found)


def unpack(tool: str, folder: Path) -> Path:
    """All files of that tool in a new folder, for programs that read them."""
    folder.mkdir()
    for name in recordings(tool, ""):
        (folder / Path(name).name).write_bytes(recorded(name))
    return folder


def _file(name: str) -> Path:
    return _GOLDEN / f"{name}.zst"
