"""Reaches a host again that was lost, within a limit, and sees that it is still what it was."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from iolab.core.events import Notice
from iolab.core.host import HostFacts, HostSpec
from iolab.errors import HostError, Interrupted
from iolab.hosts.host import Host
from iolab.record import Record
from iolab.session.context import SessionContext
from iolab.session.discovery import discover_hosts_and_targets
from iolab.study.readiness import host_change_faults

HostFactory = Callable[[HostSpec], Host]
"""A new host of that spec, not connected yet."""

RESUME: Final = "Bring it back and resume the session; committed runs are kept."


class RetryPolicy(Record):
    """How long a lost host is tried for, and the pause between two tries, in seconds."""

    limit_s: float
    pause_s: float


DEFAULT_RETRY_POLICY: Final = RetryPolicy(limit_s=120.0, pause_s=5.0)
"""An sshd that restarts takes seconds, a cable that is put in again a minute; a machine that boots
takes longer than a session should wait without anybody knowing."""


class HostChangedError(HostError):
    """A host that came back as another: trying it longer mends nothing."""


async def reconnect_lost(
    session: SessionContext,
    host_factory: HostFactory | None,
    facts: Mapping[str, HostFacts],
    retry_policy: RetryPolicy,
) -> tuple[str, ...]:
    """Replace every lost host of the session by one that answers; the names of those.

    Raises HostError when one cannot be reached in time, or is not what `facts` (by `Target.key`)
    say it was, and Interrupted when the user wants to stop meanwhile.
    """
    lost = reason_by_lost_host(session)
    for name, why in lost.items():
        await _reconnect_host(session, name, why, host_factory, retry_policy)
        session.reconnected_hosts.add(name)
    if lost:
        await _require_unchanged_hosts(session, tuple(lost), facts)
    return tuple(lost)


def reason_by_lost_host(session: SessionContext) -> dict[str, str]:
    """Why each host that takes part can no longer be spoken to, by name."""
    return {
        name: host.lost_reason
        for name, host in session.hosts.items()
        if host.lost_reason and name not in session.excluded_host_names
    }


def require_no_lost_hosts(session: SessionContext) -> None:
    """HostError that tells of every host that is lost."""
    lost = reason_by_lost_host(session)
    if lost:
        raise HostError(" ".join(lost.values()), RESUME)


async def _reconnect_host(
    session: SessionContext,
    name: str,
    why: str,
    host_factory: HostFactory | None,
    retry_policy: RetryPolicy,
) -> None:
    host = session.hosts[name]
    if host_factory is None:
        raise HostError(why, RESUME)
    session.emit(Notice(f"{why} It is tried again for up to {retry_policy.limit_s:g} s."))
    deadline_ns = session.clock.mono_ns() + round(retry_policy.limit_s * 1e9)
    while True:
        await host.close()
        host = session.hosts[name] = host_factory(host.spec)
        try:
            await host.connect()
        except HostChangedError:
            raise
        except HostError:
            if session.clock.mono_ns() >= deadline_ns:
                message = f"{why} It could not be reached again within {retry_policy.limit_s:g} s."
                raise HostError(message, RESUME) from None
        else:
            session.emit(Notice(f"Host '{name}' is reached again."))
            return
        await session.stop.sleep(retry_policy.pause_s)
        if session.stop.is_requested:
            raise Interrupted("The session was stopped.", "Resume it to go on.")


async def _require_unchanged_hosts(
    session: SessionContext, names: tuple[str, ...], facts: Mapping[str, HostFacts]
) -> None:
    """HostError when a host came back as another."""
    again = {name: session.hosts[name] for name in names}
    discovery = await discover_hosts_and_targets(session.study, again, session.discovery_queries)
    faults = host_change_faults(
        {key: facts[key] for key in discovery.facts_by_target if key in facts},
        discovery.facts_by_target,
    )
    if faults:
        for name in names:
            session.held_folders_by_host.pop(name, None)  # What lies there may not be ours.
        message = "A host that was lost came back as another."
        raise HostChangedError(message, "Put it back as it was, and resume the session.", faults)
