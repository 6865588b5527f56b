"""Asks kubectl for the pods that `--hosts k8s:…` selects."""

from __future__ import annotations

import asyncio
from typing import Final

from iolab.errors import HostError
from iolab.plan.pods import CONTEXT_CHARACTERS, Selection, listing_words
from iolab.run.broken_off import end_group
from iolab.run.hosts.process import ending

LOOK_UP_LIMIT_S: Final = 30.0
"""More than the 20 s that kubectl is told to wait for its cluster; a plugin that asks for a
password waits for ever."""

LISTING_BYTES: Final = 64 << 20
"""A pod is described in about 10 kB; of a thousand pods there is room for six times as much."""

STDERR_BYTES: Final = 4096

_DO: Final = "Try the same with 'kubectl get pods' by hand."


async def look_up_pods(
    selection: Selection, limit_s: float = LOOK_UP_LIMIT_S
) -> tuple[str | None, str]:
    """The name of kubectl's context (None inside a cluster, where there is none), and its pods.

    The second is the JSON for `pods_inventory`. HostError with kubectl's own words.
    """
    code, output, _ = await _answer(("kubectl", "config", "current-context"), limit_s)
    context = output.decode("utf-8", "replace").strip() if code == 0 else ""
    if not context.isprintable() or len(context) > CONTEXT_CHARACTERS:
        raise HostError("The name of kubectl's context cannot be written down.", "Rename it.")
    code, output, stderr = await _answer(listing_words(selection), limit_s)
    if code != 0:
        raise HostError(f"kubectl cannot list the pods ({ending(code, stderr)}).", _DO)
    if len(output) > LISTING_BYTES:
        raise HostError(f"kubectl's list has more than {LISTING_BYTES} bytes.", "Select fewer.")
    return context or None, output.decode("utf-8", "replace")


async def _answer(words: tuple[str, ...], limit_s: float) -> tuple[int | None, bytes, bytes]:
    """Exit code, output and errors of a command that is asked nothing."""
    pipe = asyncio.subprocess.PIPE
    try:
        process = await asyncio.create_subprocess_exec(
            *words,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=pipe,
            stderr=pipe,
            start_new_session=True,
        )
    except OSError as error:
        raise HostError(f"'{words[0]}' does not start ({error.strerror}).", _DO) from None
    try:
        async with asyncio.timeout(limit_s):
            output, stderr = await asyncio.gather(
                _read(process.stdout, LISTING_BYTES + 1), _read(process.stderr, STDERR_BYTES)
            )
            code = await process.wait()
    except TimeoutError:
        happened = f"'{words[0]} {words[1]}' did not answer within {limit_s:g} s."
        raise HostError(happened, _DO) from None
    finally:
        await end_group(process)
    return code, output, stderr


async def _read(stream: asyncio.StreamReader | None, limit_bytes: int) -> bytes:
    """The first `limit_bytes`; the rest is read and dropped, so that nobody waits for a pipe."""
    kept = bytearray()
    while stream and (piece := await stream.read(1 << 16)):
        kept += piece[: limit_bytes - len(kept)]
    return bytes(kept)
