"""What sessions can make, and what hosts say before one begins: a plan asks for no more."""

from __future__ import annotations

import asyncio
from typing import Final

from iolab.cli.load_kinds import LOADS
from iolab.cli.study_kinds import STUDY_KINDS
from iolab.core.host import HostKind
from iolab.core.study import Study
from iolab.guests.fleet import GuestSession
from iolab.hosts.factory import hosts_of
from iolab.session.discovery import Discovery, discover
from iolab.session.kinds import SessionKinds
from iolab.study.targets import hosts_used

SESSION_KINDS: Final = SessionKinds(
    loads=tuple(kind.session() for kind in LOADS), hosts=GuestSession(), study=STUDY_KINDS
)
"""What sessions can make."""


async def discover_hosts(study: Study) -> Discovery:
    """Connect every host of the study, ask and try it, and let go; HostError with every fault.

    Of guests that a session would boot their nodes are asked.
    """
    there = [spec for spec in hosts_used(study) if spec.kind is not HostKind.VM]
    hosts = hosts_of(there)
    try:
        return await discover(study, hosts, SESSION_KINDS.questions(study))
    finally:
        await asyncio.gather(*(host.close() for host in hosts.values()), return_exceptions=True)
