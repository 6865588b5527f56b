"""Files that an engine left on a host, brought here whole."""

from __future__ import annotations

import asyncio
import hashlib
from typing import Final

from iolab.run.hosts.answers import FileAnswer, read_answer
from iolab.run.hosts.base import Host, Message, Refusal

FETCH_LIMIT_S: Final = 300.0
"""For a file of some MiB over a slow line that others use too."""


async def fetched(host: Host, path: str, max_bytes: int) -> bytes | None:
    """The content of a file; None when there is none.

    It is held against the digest that the agent made while it read. Refusal for a file that is
    larger or cannot be read, HostError when the host fails.
    """
    content = bytearray()
    last: Message | None = None
    stream = host.stream("get", path=path, max_bytes=max_bytes)
    try:
        async with asyncio.timeout(FETCH_LIMIT_S):
            async for last in stream:
                content += last.payload
    except TimeoutError:
        raise host.give_up(f"did not hand over {path} within {FETCH_LIMIT_S:g} s") from None
    except Refusal as refused:
        if refused.code == "ENOENT":
            return None
        raise
    finally:
        await stream.aclose()
    if last is None:
        raise host.give_up("handed over a file without a word")
    if read_answer(host.name, FileAnswer, last).sha256 != hashlib.sha256(content).hexdigest():
        raise host.give_up(f"handed over {path} with another digest than it named")
    return bytes(content)
