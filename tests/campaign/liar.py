"""An agent that lies on its way to the controller: the real one, its output changed.

`IOLAB_AGENT` names a program that `plant` writes. It imports nothing of iolab, and lies once so
many frames have come through.
"""

from __future__ import annotations

import json
import os
import struct
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, BinaryIO, Final

FLOOD_BYTES: Final = 64 << 20
SLOW_S: Final = 0.02
"""Between two bytes: so slow that a frame takes longer than its deadline."""

Frame = tuple[dict[str, Any], bytes]


def plant(file: Path, agent: Path, lie: str, after: int) -> Path:
    """The program that tells that lie after so many frames."""
    checkout = Path(__file__).parents[2]
    file.write_text(
        f"#!{sys.executable}\nimport sys\nsys.path.insert(0, {str(checkout)!r})\n"
        f"from tests.campaign.liar import main\nmain({str(agent)!r}, {lie!r}, {after})\n",
        encoding="utf-8",
    )
    file.chmod(0o755)
    return file


def packed(header: dict[str, Any], payload: bytes = b"") -> bytes:
    """A frame as the wire has it."""
    text = json.dumps(header).encode()
    return struct.pack("<II", len(text), len(payload)) + text + payload


def _garbage(out: BinaryIO, _: Frame) -> None:
    out.write(os.urandom(4096))


def _half_frame(out: BinaryIO, frame: Frame) -> None:
    whole = packed(*frame)
    out.write(whole[: len(whole) // 2])
    out.flush()
    out.close()


def _byte_by_byte(out: BinaryIO, frame: Frame) -> None:
    for byte in packed(*frame):
        out.write(bytes([byte]))
        out.flush()
        time.sleep(SLOW_S)


def _absurd_numbers(out: BinaryIO, frame: Frame) -> None:
    def absurd(value: object) -> object:
        if isinstance(value, dict):
            return {key: absurd(one) for key, one in value.items()}
        if isinstance(value, list):
            return [absurd(one) for one in value]
        return 10**18 if isinstance(value, int) and not isinstance(value, bool) else value

    header = {key: one if key == "id" else absurd(one) for key, one in frame[0].items()}
    out.write(packed(header, frame[1]))


def _long_text(out: BinaryIO, frame: Frame) -> None:
    header = {
        key: one * 100_000 if isinstance(one, str) and key != "is" else one
        for key, one in frame[0].items()
    }
    out.write(packed(header, frame[1]))


def _other_version(out: BinaryIO, frame: Frame) -> None:
    out.write(packed(frame[0] | {"wire": 99, "version": "99.0", "is": "hello"}, frame[1]))


def _flood(out: BinaryIO, frame: Frame) -> None:
    def spill() -> None:
        for _ in range(FLOOD_BYTES >> 16):
            os.write(2, b"\x1b[31mthe host says something\n" * 2340)

    threading.Thread(target=spill, daemon=True).start()
    out.write(packed(*frame))


def _silence(_: BinaryIO, __: Frame) -> None:
    """All that follows is lost."""


LIES: Final[dict[str, Callable[[BinaryIO, Frame], None]]] = {
    "garbage": _garbage,
    "half a frame": _half_frame,
    "a byte at a time": _byte_by_byte,
    "absurd numbers": _absurd_numbers,
    "endless text": _long_text,
    "another version": _other_version,
    "a flood on stderr": _flood,
    "nothing": _silence,
}
ONCE: Final = {"garbage", "half a frame", "another version", "a flood on stderr", "endless text"}
"""Told of one frame; the others of all that follow."""


def main(agent: str, lie: str, after: int) -> None:
    """Be that agent; arguments and standard input are its own."""
    process = subprocess.Popen([agent, *sys.argv[1:]], stdout=subprocess.PIPE)
    source, out = process.stdout, sys.stdout.buffer
    assert source is not None
    count = 0
    try:
        while len(lengths := source.read(8)) == 8:
            header, payload = struct.unpack("<II", lengths)
            text, body = source.read(header), source.read(payload)
            count += 1
            if count == after or (count > after and lie not in ONCE):
                LIES[lie](out, (json.loads(text), body))
            else:
                out.write(lengths + text + body)
            out.flush()
    except (OSError, ValueError):
        source.close()  # the agent ends when nobody hears it
    sys.exit(process.wait())
