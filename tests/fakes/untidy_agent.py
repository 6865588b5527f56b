"""The real agent, whose last answer says that something stays: for tests of all that closes hosts.

`IOLAB_AGENT` names a program that `untidy_agent` writes. It imports nothing of iolab.
"""

from __future__ import annotations

import json
import struct
import subprocess
import sys
import threading
from pathlib import Path
from typing import IO, Any, Final

STAYS: Final = {"kind": "folder", "name": "/mnt/t/moved", "reason": "Operation not permitted"}


def untidy_agent(file: Path, agent: Path) -> Path:
    """The program that runs `agent` and adds that to its last answer."""
    checkout = Path(__file__).parents[2]
    file.write_text(
        f"#!{sys.executable}\nimport sys\nsys.path.insert(0, {str(checkout)!r})\n"
        f"from tests.fakes.untidy_agent import main\nmain({str(agent)!r}, sys.argv[1:])\n",
        encoding="utf-8",
    )
    file.chmod(0o755)
    return file


def main(agent: str, arguments: list[str]) -> None:
    """Pass on what the controller and the agent say."""
    if arguments:  # As an engine it is only a program.
        sys.exit(subprocess.run([agent, *arguments], check=False).returncode)
    process = subprocess.Popen([agent], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert process.stdin
    assert process.stdout
    byes: set[int] = set()
    threading.Thread(target=_to_agent, args=[process.stdin, byes], daemon=True).start()
    while frame := _read(process.stdout):
        header, payload = frame
        if header["id"] in byes and header["is"] == "done":
            header["left"] = [*header["left"], STAYS]
        _write(sys.stdout.buffer, header, payload)
    sys.exit(process.wait())


def _to_agent(agent: IO[bytes], byes: set[int]) -> None:
    while frame := _read(sys.stdin.buffer):
        if frame[0]["do"] == "bye":
            byes.add(frame[0]["id"])
        _write(agent, *frame)
    agent.close()


def _read(source: IO[bytes]) -> tuple[dict[str, Any], bytes] | None:
    lengths = source.read(8)
    if len(lengths) < 8:
        return None
    header, payload = struct.unpack("<II", lengths)
    return json.loads(source.read(header)), source.read(payload)


def _write(out: IO[bytes], header: dict[str, Any], payload: bytes) -> None:
    text = json.dumps(header).encode()
    out.write(struct.pack("<II", len(text), len(payload)) + text + payload)
    out.flush()
