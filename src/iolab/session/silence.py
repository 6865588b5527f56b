"""Tells of hosts that are silent while they are still waited for."""

from __future__ import annotations

import asyncio
from typing import Final

from iolab.core.events import Notice
from iolab.session.context import SessionContext

TOLD_AFTER_S: Final = 5.0
"""An agent speaks every three seconds: whoever waits should know of the first word that is late."""

LOOK_S: Final = 0.5


async def tell_of_silence(session: SessionContext) -> None:
    """Watch every host until cancelled; a notice when one falls silent, one when it is heard."""
    longest: dict[str, float] = {}
    while True:
        for name, host in session.everyone.items():
            silent_s = 0.0 if host.lost else host.silent_s
            if silent_s >= TOLD_AFTER_S:
                if name not in longest:
                    session.tell(Notice(f"Host '{name}': silent for {silent_s:.0f} s."))
                longest[name] = silent_s
            elif name in longest:
                after_s = longest.pop(name)
                if not host.lost:
                    session.tell(Notice(f"Host '{name}' is heard again after {after_s:.0f} s."))
        await asyncio.sleep(LOOK_S)
