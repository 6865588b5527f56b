"""What killed agents left on hosts, looked for on all of them at once."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final

from iolab.core.host import HostSpec
from iolab.errors import IolabError
from iolab.hosts.answers import Leftovers, read_answer
from iolab.hosts.barrier import together
from iolab.hosts.factory import open_hosts
from iolab.hosts.host import Host
from iolab.targets.work_directories import CLOSE_LIMIT_S

LOOK_LIMIT_S: Final = 60.0
"""A look at every process and control group; counting the files of a folder takes longest."""

LEFTOVERS: Final = "leftovers"


@dataclass(frozen=True, slots=True)
class Looked:
    """Every host by name, in exactly one of the two."""

    found: Mapping[str, Leftovers]
    failed: Mapping[str, IolabError]


async def look_for_leftovers(
    specs: Iterable[HostSpec],
    path: str | None,
    *,
    remove: Mapping[str, Leftovers] = MappingProxyType({}),
) -> Looked:
    """Reach every host, look, and let go; `path` is for hosts that name none of their own.

    With `remove`, what an earlier look found on hosts by name, that and nothing else is removed.
    """

    async def look(host: Host) -> Leftovers:
        await host.connect()
        return await leftovers_on(host, path, remove=remove.get(host.name))

    async with open_hosts(specs) as hosts:
        looked = await together(hosts.values(), look)
    return Looked(looked.done, looked.failed)


async def leftovers_on(
    host: Host, path: str | None, *, remove: Leftovers | None = None
) -> Leftovers:
    """What was left on a connected host; with `remove` that is gone, but for the `faults`."""
    asked = None if host.spec.serial else host.spec.path or path
    limit_s = CLOSE_LIMIT_S if remove else LOOK_LIMIT_S
    names = None if remove is None else sorted(remove.names)
    answer = await host.ask(LEFTOVERS, deadline_s=limit_s, path=asked, remove=names)
    return read_answer(host.name, Leftovers, answer)
