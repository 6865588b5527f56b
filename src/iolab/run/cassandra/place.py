"""The host and the folder of a managed node: a client's own, or one taken for the node alone."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from iolab.errors import HostError
from iolab.model.run import PlannedRun
from iolab.model.ycsb import ServerSettings
from iolab.plan.targets import target_path
from iolab.run.crew import Crew
from iolab.run.folders import CLOSE_LIMIT_S, OPEN_LIMIT_S
from iolab.run.hosts.answers import ScratchAnswer, read_answer
from iolab.run.hosts.base import Host
from iolab.run.site import Site, scratch_name

SUFFIX: Final = "-server"
"""Sets the folder apart from the one that a session may hold on the same host as on a client."""


@dataclass(frozen=True, slots=True)
class Place:
    """Where a node lies; `taken` when its folder is held for it alone, `keep` what is to stay."""

    site: Site
    taken: bool = False
    keep: bool = False

    @property
    def name(self) -> str:
        """The host's name."""
        return self.site.name

    async def leave(self) -> None:
        """Give back a folder that was taken for the node. Raises HostError."""
        if self.taken and not self.site.host.lost:
            await self.site.host.ask(
                "scratch_close", deadline_s=CLOSE_LIMIT_S, dir=self.site.dir, keep=self.keep
            )


async def place_of(
    crew: Crew,
    run: PlannedRun,
    sites: Sequence[Site],
    settings: ServerSettings,
    before: Place | None,
) -> Place:
    """Where the node of a run lies; the same as before where nothing has changed.

    HostError when the host is not of the session, or is lost.
    """
    name = settings.host or sites[0].name
    for site in sites:
        if site.name == name:
            return Place(site)
    host = crew.everyone.get(name)
    if host is None:
        raise HostError(
            f"The host '{name}' that is to run Cassandra is none of the session.",
            "Name a client or a storage node of the study as server.host.",
        )
    if host.lost:
        raise HostError(host.lost, "Reach it again, and resume the session.")
    if before is not None and before.site.host is host:
        return before
    return await _taken(crew, run, host)


async def _taken(crew: Crew, run: PlannedRun, host: Host) -> Place:
    """A folder on the host for the node alone, where the clients have their target."""
    wanted = run.point.configuration
    configuration = next(item for item in crew.study.configurations if item.id == wanted)
    message = await host.ask(
        "scratch_open",
        deadline_s=OPEN_LIMIT_S,
        path=target_path(configuration, host.spec),
        name=scratch_name(host.name) + SUFFIX,
        owner=crew.owner,
    )
    folder = read_answer(host.name, ScratchAnswer, message).dir
    return Place(Site(host, folder, None, host.name), taken=True, keep=crew.study.target.keep_files)
