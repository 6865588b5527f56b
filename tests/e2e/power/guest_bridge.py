"""The way of a session to a guest that runs already, and what happens to its drive on that way.

`python guest_bridge.py SOCKET PLAN PROGRAM...` runs a program here, as the command of a host does;
the agent alone is the guest's, behind SOCKET. PLAN (JSON) has a program that is put there first,
and lists of commands: before each reading of the drive's log pages those of the next one are run in
the guest, so that a test knows what the drive did.
"""

from __future__ import annotations

import base64
import json
import os
import socket
import struct
import sys
import threading
from pathlib import Path
from typing import Any, BinaryIO, Final

AGENT_FOLDER: Final = "/tmp/iolab-agent-"  # where an agent lies on a host
OWN_ID: Final = 1 << 40
"""No request of a session has it."""

Frame = tuple[dict[str, Any], bytes]


def read_frame(stream: BinaryIO) -> Frame | None:
    lengths = stream.read(8)
    if len(lengths) < 8:
        return None
    header, payload = struct.unpack("<II", lengths)
    return json.loads(stream.read(header)), stream.read(payload)


def write_frame(stream: BinaryIO, header: dict[str, Any], payload: bytes = b"") -> None:
    text = json.dumps(header).encode()
    stream.write(struct.pack("<II", len(text), len(payload)) + text + payload)
    stream.flush()


def bridge(path: str, plan: dict[str, Any]) -> None:
    with socket.socket(socket.AF_UNIX) as line:
        line.connect(path)
        to_guest, from_guest = line.makefile("wb"), line.makefile("rb")
        before: list[list[list[str]]] = plan["before"]
        ended = threading.Semaphore(0)

        def ask_guest(payload: bytes = b"", **request: object) -> None:
            write_frame(to_guest, {"id": OWN_ID, **request}, payload)
            ended.acquire()

        def pass_answers() -> None:
            while (frame := read_frame(from_guest)) is not None:
                header, payload = frame
                if header["id"] != OWN_ID:
                    write_frame(sys.stdout.buffer, header, payload)
                elif header["is"] in ("done", "exited", "error"):
                    if header.get("code"):
                        print(header, file=sys.stderr, flush=True)
                    ended.release()
            os._exit(0)

        threading.Thread(target=pass_answers, daemon=True).start()
        content = base64.b64decode(plan["content"])
        ask_guest(content, do="put", path=plan["path"], mode=0o700)
        while (frame := read_frame(sys.stdin.buffer)) is not None:
            header, payload = frame
            if header["do"] == "drive_logs" and before:
                for argv in before.pop(0):
                    ask_guest(do="run", argv=argv)
            write_frame(to_guest, header, payload)
        line.shutdown(socket.SHUT_WR)


def main() -> None:
    path, plan, *argv = sys.argv[1:]
    if argv[0].startswith(AGENT_FOLDER):
        bridge(path, json.loads(Path(plan).read_text(encoding="utf-8")))
    os.execvp(argv[0], argv)  # noqa: S606


if __name__ == "__main__":
    main()
