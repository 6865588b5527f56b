"""What stays on hosts when agents have ended: asked of each in its last answer, told in one place.

Whatever closes hosts does it by `close_hosts`, which makes the sentences and reports them.
"""

from __future__ import annotations

import asyncio
import posixpath
import shlex
from collections.abc import Iterable
from typing import Final

from iolab.core.host import HostSpec, HostTransport
from iolab.core.leftover_texts import report_leftover_texts
from iolab.hosts.answers import Remnant, RemnantKind
from iolab.hosts.host import Host
from iolab.text import excerpt

TEXT_CHARACTERS: Final = 1000
"""Of a path or a reason in a sentence: most paths are needed whole to be removed."""

_WORDS: Final = {
    RemnantKind.FOLDER: (
        "the scratch folder",
        "Remove what keeps it there, then run '{clean}'.",
    ),
    RemnantKind.PROCESS: (
        "the process",
        "See what it waits for; once that is gone, 'iolab clean' ends it.",
    ),
    RemnantKind.GROUP: ("the control group", "End its processes, then run 'iolab clean'."),
    RemnantKind.FILE: ("the file", "Remove it by hand."),
    RemnantKind.MOUNT: (
        "the file system",
        "End the processes that use it; the kernel then ends it and its loop device.",
    ),
    RemnantKind.DEVICE: (
        "the session's file system on",
        "End what uses the device, then wipe it with wipefs if nobody needs it.",
    ),
}


async def close_hosts(hosts: Iterable[Host]) -> tuple[str, ...]:
    """Close them all at once; a sentence on each thing that stays there, which is reported too."""
    every = tuple(hosts)
    endings = await asyncio.gather(*(host.close() for host in every), return_exceptions=True)
    sentences = []
    for host, ending in zip(every, endings, strict=True):
        sentences += _leftover_texts_of_host(host)
        if isinstance(ending, BaseException):
            sentences.append(f"Host '{host.name}' could not be closed: {ending!r}.")
    report_leftover_texts(sentences)
    return tuple(sentences)


def _leftover_texts_of_host(host: Host) -> list[str]:
    if host.spec.kind is HostTransport.VM:
        return []  # A guest's disk goes with the guest, and its node says what stays of that.
    remnant_texts = [remnant_text(host.spec, remnant) for remnant in host.remnants]
    return remnant_texts + [
        unreachable_folder_text(host.spec, folder) for folder in sorted(host.open_folders)
    ]


def remnant_text(spec: HostSpec, remnant: Remnant) -> str:
    """What stays, why, and what to do."""
    kind, hint = _WORDS[remnant.kind]
    name, reason = (
        excerpt(remnant.name, TEXT_CHARACTERS),
        excerpt(remnant.reason, TEXT_CHARACTERS).rstrip("."),
    )
    clean = clean_command_line(spec, posixpath.dirname(remnant.name))
    return f"Host '{spec.name}' still has {kind} {name}: {reason}. {hint.format(clean=clean)}"


def unreachable_folder_text(spec: HostSpec, folder: str) -> str:
    """What to do about a folder on a host that could not be asked any more."""
    clean = clean_command_line(spec, posixpath.dirname(folder))
    folder = excerpt(folder, TEXT_CHARACTERS)
    return f"Host '{spec.name}' may still have {folder}: '{clean}' removes it once it answers."


def clean_command_line(spec: HostSpec, path: str) -> str:
    """The command line that removes what lies in that directory of the host."""
    hosts = "" if spec.kind is HostTransport.LOCAL else " --hosts HOSTS"
    return f"iolab clean{hosts} --path {shlex.quote(excerpt(path, TEXT_CHARACTERS))}"
