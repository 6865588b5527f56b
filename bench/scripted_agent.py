"""A scripted agent: a program that speaks the wire for hosts that do not exist, in real time.

It is no agent and makes no load. `--listen SOCKET --hosts N` serves every connection as one more
host, all in one process, so that a thousand hosts take a tenth of the memory and none of the
switching of a thousand processes; without arguments it is one host over its standard input and
output, as any agent. What its fio says is in bench/full_script.py.
"""

from __future__ import annotations

import argparse
import asyncio
import sys
import time
from functools import partial
from pathlib import Path
from typing import Any

if __package__ in {None, ""}:
    sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from tests.fakes.agent import FakeAgent
from tests.fakes.script import FakeScript, loop_real_ns

from bench.full_script import VARIANTS, full_script

READ_BYTES = 1 << 16
BACKLOG = 4096


class ForgetfulAgent(FakeAgent):
    """Keeps no list of what it said: a thousand hosts would fill the memory with it."""

    def tell(self, request_id: int, message: dict[str, Any], payload: bytes = b"") -> None:
        super().tell(request_id, message, payload)
        self.said.clear()


async def serve(
    reader: asyncio.StreamReader, writer: asyncio.StreamWriter, script: FakeScript
) -> None:
    """One host from its hello to the end of its lease."""
    agent = ForgetfulAgent(script, writer.write, writer.close)
    agent.greet()
    while piece := await reader.read(READ_BYTES):
        agent.hear(piece)
    agent.lease_ends()
    writer.close()


async def listen(path: str, hosts: int) -> None:
    """Serve that many connections to the socket `path`, and end with the last of them."""
    script_of = [full_script(number, _ahead_ns()) for number in range(VARIANTS)]
    ended = asyncio.Event()
    state = {"begun": 0, "over": 0}

    async def one(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        number = state["begun"] % VARIANTS
        state["begun"] += 1
        try:
            await serve(reader, writer, script_of[number])
        except OSError:
            writer.close()
        finally:
            state["over"] += 1
            if state["over"] == hosts:
                ended.set()

    async with await asyncio.start_unix_server(one, path, backlog=BACKLOG):
        await ended.wait()


async def speak() -> None:
    """One host over standard input and output."""
    loop = asyncio.get_running_loop()
    reader = asyncio.StreamReader()
    await loop.connect_read_pipe(partial(asyncio.StreamReaderProtocol, reader), sys.stdin)
    transport, protocol = await loop.connect_write_pipe(
        asyncio.streams.FlowControlMixin, sys.stdout
    )
    writer = asyncio.StreamWriter(transport, protocol, None, loop)
    await serve(reader, writer, full_script(0, _ahead_ns()))


def _ahead_ns() -> int:
    """From the running loop's clock to this machine's."""
    return time.time_ns() - loop_real_ns()


def main() -> None:
    """Speak, or serve many."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--listen", metavar="SOCKET")
    parser.add_argument("--hosts", type=int, default=1)
    chosen = parser.parse_args()
    asyncio.run(listen(chosen.listen, chosen.hosts) if chosen.listen else speak())


if __name__ == "__main__":
    main()
