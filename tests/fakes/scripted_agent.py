"""A stand-alone agent that follows a script: it speaks the wire over stdin and stdout.

`scripted_agent.py MODE`, or the environment's IOLAB_SCRIPT, says how it misbehaves. It imports
nothing of iolab, so that both sides of the wire are written twice.
"""

from __future__ import annotations

import json
import os
import struct
import sys
import time
from pathlib import Path
from typing import Any, BinaryIO

MODE = sys.argv[1] if len(sys.argv) > 1 else os.environ.get("IOLAB_SCRIPT", "good")
LOOKS = os.environ.get("IOLAB_LOOKS", os.devnull)


def say(output: BinaryIO, header: dict[str, Any], payload: bytes = b"") -> None:
    text = json.dumps(header).encode()
    output.write(struct.pack("<II", len(text), len(payload)) + text + payload)
    output.flush()


def hear(source: BinaryIO) -> tuple[dict[str, Any], bytes] | None:
    lengths = source.read(8)
    if len(lengths) < 8:
        return None
    header, payload = struct.unpack("<II", lengths)
    return json.loads(source.read(header)), source.read(payload)


def hello() -> dict[str, Any]:
    return {
        "id": 0,
        "is": "hello",
        "wire": {"older-wire": 0, "newer-wire": 99}.get(MODE, 2),
        "version": "0.0.0-scripted",
        "pid": os.getpid(),
        "capabilities": ["clock"],
    }


def begin(output: BinaryIO) -> None:
    if MODE == "banner":
        output.write(b"Welcome to Example OS 12\nLast login: today\n")
        output.flush()
    if MODE == "dies":
        sys.stderr.write("cannot start: no such thing\n")
        sys.exit(7)
    say(output, hello())
    if MODE == "huge-frame":
        output.write(struct.pack("<II", 2**31, 0))
        output.flush()
    if MODE == "garbage":
        output.write(struct.pack("<II", 4, 0) + b"\xff\xfe\x00\x01")
        output.flush()
    if MODE == "list-header":
        output.write(struct.pack("<II", 2, 0) + b"[]")
        output.flush()
    if MODE == "half-frame":
        output.write(struct.pack("<II", 100, 0) + b'{"id"')
        output.flush()
        sys.exit(0)
    if MODE == "unasked":
        say(output, {"id": 4711, "is": "sample"})


def answer(output: BinaryIO, header: dict[str, Any], payload: bytes) -> bool:
    """Whether the agent goes on."""
    request_id, verb = header["id"], header["do"]
    if verb == "bye":
        if MODE == "no-bye":
            time.sleep(600)
        say(output, {"id": request_id, "is": "done"})
        return False
    if MODE == "silent":
        return True
    if MODE == "dies-when-asked":
        sys.stderr.write("out of \x1b[31mcheese\n")
        sys.stderr.flush()
        os._exit(9)
    if verb == "clock":
        say(output, {"id": request_id, "is": "clock", "mono_ns": 5, "real_ns": time.time_ns()})
    elif verb == "leftovers":
        say(output, {"id": request_id, "is": "leftovers", **left(header["remove"])})
    elif verb == "put":
        say(output, {"id": request_id, "is": "done", "size": len(payload), "sha256": "0"})
    elif verb == "run":
        for number in range(header["count"]):
            say(output, {"id": request_id, "is": "output", "number": number}, b"x" * 1000)
        say(output, {"id": request_id, "is": "exited", "code": 0})
    else:
        message = {
            "older": ("bad-request", "facts: unknown field `cloud`, expected `path` or `tools`"),
        }.get(MODE, ("ENOENT", "no \x1b[31msuch\nverb" + "!" * 5000))
        say(output, {"id": request_id, "is": "error", "code": message[0], "message": message[1]})
    return True


KINDS = ("processes", "groups", "loops", "agents", "faults", "folders", "elsewhere")


def left(remove: list[str] | None) -> dict[str, Any]:
    """What a look finds, one folder more each time; what it was asked is kept in LOOKS."""
    looks = Path(LOOKS)
    with looks.open("a", encoding="utf-8") as file:
        file.write(json.dumps(remove) + "\n")
    number = len(looks.read_text(encoding="utf-8").splitlines())
    if MODE == "others":
        foreign_folders = {"foreign_folders": ["/t/b\x1b"], "foreign_folder_count": 20_000}
        return {kind: [] for kind in KINDS} | foreign_folders
    foreign = MODE == "elsewhere"
    folders = [
        {"dir": f"/t/{n}", "owner": "s", "bytes": 1, "host": "node\x1b7" if foreign else ""}
        for n in range(number)
    ]
    found: dict[str, Any] = {kind: [] for kind in KINDS}
    return found | {"elsewhere" if foreign else "folders": folders}


def main() -> None:
    begin(sys.stdout.buffer)
    while request := hear(sys.stdin.buffer):
        if not answer(sys.stdout.buffer, *request):
            return
    if MODE == "outlives-its-lease":
        time.sleep(600)


if __name__ == "__main__":
    main()
