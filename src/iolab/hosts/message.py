"""What an agent says: messages, refusals, and the loss of a host; untrusted text made printable."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Annotated, Any, Final, Protocol, Self

from msgspec import Meta

from iolab.core.run import Count
from iolab.errors import HostError
from iolab.record import Record
from iolab.text import excerpt

_OTHER_WORDS: Final = re.compile(r"\b(?:unknown (?:field|variant)|missing field|no verb)\b")
"""How an agent refuses a request of which it does not know a part, or knows a part more."""

_REINSTALL: Final = (
    "Run 'make setup' in a checkout, else install iolab again; if it stays, please report it."
)

_RIGHTS: Final = "Give the user who runs the agent there the right to do it."

_REMEDIES: Final = {
    "EACCES": _RIGHTS,
    "EPERM": _RIGHTS,
    "EROFS": "Mount the file system writable, or give another path.",
    "ENOENT": "See that it exists on that host, or give another path.",
    "ENOTDIR": "Give a path that is a directory.",
    "ENOSPC": "Make room on that host, or give another path.",
    "EDQUOT": "Raise the quota of the user who runs the agent there, or give another path.",
    "busy": "Wait for the session that holds it, or give another path.",
    "bug": "This is a fault of iolab; please report it with the command that led here.",
    "bad-request": "This is a fault of iolab; please report it with the command that led here.",
}


class Message(Record):
    """One message of an agent: what it is, its JSON header (untrusted) and its payload."""

    message_type: str
    header: Mapping[str, Any]
    payload: bytes = b""


class Hello(Record):
    """The agent's first words."""

    wire: int
    version: Annotated[str, Meta(max_length=100)]
    pid: Count = 0
    capabilities: Annotated[tuple[str, ...], Meta(max_length=100)] = ()
    runs_end_by: Annotated[str, Meta(max_length=40)] | None = None
    """What ends the processes of runs when all of the agent is killed at once: `pid-namespace`."""
    uid: int | None = None
    """The user whose rights the agent has, 0 for root; None where an earlier agent does not say."""


class AgentRefusalError(HostError):
    """A request that the agent answered with an error.

    `code` is the errno's name or a word, `reason` the agent's own sentence. An agent
    `is_of_other_iolab` where it knows less of such requests, or more.
    """

    def __init__(self, host_name: str, code: str, reason: str) -> None:
        self.code = code
        self.reason = reason
        name = excerpt(host_name)
        hint = _REMEDIES.get(code, "Correct it on that host and run again.")
        message = f"Host '{name}': {reason.rstrip('.')}."
        self.is_of_other_iolab = code == "bad-request" and bool(_OTHER_WORDS.search(reason))
        if self.is_of_other_iolab:
            message = f"The agent on host '{name}' is of another iolab: {reason.rstrip('.')}."
            hint = _REINSTALL
        super().__init__(message, hint)


class HostCommandError(HostError):
    """A program on a host cannot be started or fails: what to do depends on the way to the host."""


class HostLostError(HostError):
    """A host that can no longer be spoken to: it broke off, fell silent, or spoke nonsense."""


class ReplyStream(Protocol):
    """The messages of one request as they come, up to and with the final one.

    Iteration raises AgentRefusalError when the agent answers with an error, HostLostError when the
    host is lost. Closing it early is allowed: what still comes is dropped.
    """

    @property
    def id(self) -> int:
        """The request's id, by which other requests (`signal`, `unwatch`) name it."""

    def __aiter__(self) -> Self:
        """The stream itself."""

    async def __anext__(self) -> Message:
        """The next message; waits as long as it takes."""

    async def aclose(self) -> None:
        """Take no more of it."""
