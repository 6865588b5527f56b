"""Scratch folders on hosts, taken for this session with a lock."""

from __future__ import annotations

from typing import Final

from iolab.errors import HostError, Interrupted
from iolab.model.event import Notice
from iolab.run.crew import Crew
from iolab.run.hosts.answers import ScratchAnswer, read_answer
from iolab.run.hosts.base import Host, Message, Refusal
from iolab.units import format_bytes

OPEN_LIMIT_S: Final = 120.0
"""Taking a folder; what a dead session left there, perhaps terabytes, is removed first."""

CLOSE_LIMIT_S: Final = 120.0
"""Removing the session's own files: a file system frees extents at more than 10 GB/s."""

OWN_LOCK_PAUSE_S: Final = 1.0
OWN_LOCK_TRIES: Final = 90
"""How long an agent that this session lost may hold on to its folder: its lease, 60 s, and what it
takes to remove the files."""


async def take_folder(crew: Crew, host: Host, path: str, name: str, *, more_s: float = 0.0) -> str:
    """The folder `name` in `path`, which is the session's alone from now on; its full path.

    What an earlier session left there is removed and told; that may take `more_s` than usual.
    Raises HostError, a Refusal with the code busy while another session holds it, and Interrupted.
    """
    opened = await open_folder(crew, host, path, name, more_s=more_s)
    answer = read_answer(host.name, ScratchAnswer, opened)
    if answer.left_over_bytes:
        size = format_bytes(answer.left_over_bytes)
        crew.tell(Notice(f"An earlier session had left {size} in {answer.dir} on '{host.name}'."))
    return answer.dir


async def open_folder(
    crew: Crew, host: Host, path: str, name: str, *, more_s: float = 0.0
) -> Message:
    """The same without a word; an agent of this very session that is ending there is waited for."""
    owner = crew.owner
    for _ in range(OWN_LOCK_TRIES):
        try:
            return await host.ask(
                "scratch_open",
                deadline_s=OPEN_LIMIT_S + more_s,
                path=path,
                name=name,
                owner=owner,
            )
        except Refusal as refused:
            if refused.code != "busy" or not refused.says.endswith(f"held by {owner}"):
                raise
        await crew.stop.pause(OWN_LOCK_PAUSE_S)
        if crew.stop.requested:
            raise Interrupted("The session was stopped.", "Resume it to go on.")
    happened = f"{path} on host '{host.name}' is still held by an agent of {owner}."
    raise HostError(happened, "See what keeps it alive there, and resume the session.")
