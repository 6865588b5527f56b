"""What stays on hosts when agents have ended: asked of each in its last answer, told in one place.

Whatever closes hosts does it by `close_hosts_and_report_leftovers`, which makes the sentences and
reports them.
"""

from __future__ import annotations

import asyncio
import posixpath
import shlex
from collections.abc import Iterable
from typing import Final

from iolab.core.host import HostSpec, HostTransport
from iolab.core.leftover_texts import add_to_collected_leftover_texts
from iolab.hosts.answers import Leftover, LeftoverKind
from iolab.hosts.host import Host
from iolab.text import excerpt

TEXT_CHARACTERS: Final = 1000
"""Of a path or a reason in a sentence: most paths are needed whole to be removed."""

_WORDS: Final = {
    LeftoverKind.FOLDER: (
        "the scratch folder",
        "Remove what keeps it there, then run '{clean}'.",
    ),
    LeftoverKind.PROCESS: (
        "the process",
        "See what it waits for; once that is gone, 'iolab clean' ends it.",
    ),
    LeftoverKind.GROUP: ("the control group", "End its processes, then run 'iolab clean'."),
    LeftoverKind.FILE: ("the file", "Remove it by hand."),
    LeftoverKind.MOUNT: (
        "the file system",
        "End the processes that use it; the kernel then ends it and its loop device.",
    ),
    LeftoverKind.DEVICE: (
        "the session's file system on",
        "End what uses the device, then wipe it with wipefs if nobody needs it.",
    ),
}


async def close_hosts_and_report_leftovers(hosts: Iterable[Host]) -> tuple[str, ...]:
    """Close them all at once; a sentence on each thing that stays there, which is reported too."""
    every = tuple(hosts)
    endings = await asyncio.gather(*(host.close() for host in every), return_exceptions=True)
    sentences = []
    for host, ending in zip(every, endings, strict=True):
        sentences += _leftover_texts_of_host(host)
        if isinstance(ending, BaseException):
            sentences.append(f"Host '{host.name}' could not be closed: {ending!r}.")
    add_to_collected_leftover_texts(sentences)
    return tuple(sentences)


def _leftover_texts_of_host(host: Host) -> list[str]:
    if host.spec.transport is HostTransport.VM:
        return []  # A guest's disk goes with the guest, and its node says what stays of that.
    leftover_texts = [
        leftover_reason_and_hint_text(host.spec, leftover) for leftover in host.leftovers_at_close
    ]
    return leftover_texts + [
        unreachable_folder_text(host.spec, folder) for folder in sorted(host.open_folders)
    ]


def leftover_reason_and_hint_text(spec: HostSpec, leftover: Leftover) -> str:
    """What stays, why, and what to do."""
    kind, hint = _WORDS[leftover.kind]
    name, reason = (
        excerpt(leftover.name, TEXT_CHARACTERS),
        excerpt(leftover.reason, TEXT_CHARACTERS).rstrip("."),
    )
    clean = iolab_clean_command_text(spec, posixpath.dirname(leftover.name))
    return f"Host '{spec.name}' still has {kind} {name}: {reason}. {hint.format(clean=clean)}"


def unreachable_folder_text(spec: HostSpec, folder: str) -> str:
    """What to do about a folder on a host that could not be asked any more."""
    clean = iolab_clean_command_text(spec, posixpath.dirname(folder))
    folder = excerpt(folder, TEXT_CHARACTERS)
    return f"Host '{spec.name}' may still have {folder}: '{clean}' removes it once it answers."


def iolab_clean_command_text(spec: HostSpec, path: str) -> str:
    """The command line that removes what lies in that directory of the host."""
    hosts = "" if spec.transport is HostTransport.LOCAL else " --hosts HOSTS"
    return f"iolab clean{hosts} --path {shlex.quote(excerpt(path, TEXT_CHARACTERS))}"
