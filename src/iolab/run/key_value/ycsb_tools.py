"""Java and YCSB on every client: found or brought there once for each connection to it."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final
from weakref import WeakKeyDictionary

from iolab.errors import EngineError
from iolab.model.ycsb import ServerSettings
from iolab.run.engines.ycsb import Kit, kit_of
from iolab.run.hosts.base import Host
from iolab.run.hosts.text import printable
from iolab.run.key_value.java import Java, java_on
from iolab.run.key_value.processes import told
from iolab.run.kits import YCSB_VERSION, KitName, Kits, kit_on
from iolab.run.site import Site

OLDEST_JAVA: Final = 8
"""What YCSB 0.17.0 and iolab's bindings for it are compiled for."""

WORK: Final = "ycsb.run"
"""The folder in which a run's processes work and leave their logs, below the session's folder."""

_CORE: Final = re.compile(r"^core-(\d[\w.-]*)\.jar$", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Tools:
    """What starts YCSB on a host, and which version of it that is."""

    kit: Kit
    java: Java
    version: str

    @property
    def told(self) -> str:
        """Both versions, as a record has them."""
        return f"YCSB {self.version}, Java {self.java.version}"


class YcsbTools:
    """The tools of each host that was asked about, as long as its connection holds."""

    def __init__(self, kits: Kits = kit_on) -> None:
        self._kits = kits
        self._found: WeakKeyDictionary[Host, Tools] = WeakKeyDictionary()

    def of(self, site: Site) -> Tools:
        """The tools of a host that was asked before; KeyError for another."""
        return self._found[site.host]

    async def on(self, site: Site, settings: ServerSettings, say: Callable[[str], None]) -> Tools:
        """The tools on a site's host. EngineError when they cannot be had, HostError of a host."""
        found = self._found.get(site.host)
        if found is None:
            found = self._found[site.host] = await self._look(site, settings, say)
        return found

    async def _look(
        self, site: Site, settings: ServerSettings, say: Callable[[str], None]
    ) -> Tools:
        java = await java_on(site.host, settings.java, oldest=OLDEST_JAVA)
        version = await _version_of(site.host, settings.ycsb) if settings.ycsb else YCSB_VERSION
        jars = await self._kits(site.host, KitName.YCSB, YCSB_VERSION, site.dir, say)
        return Tools(kit_of(settings.java, jars, ycsb=settings.ycsb), java, version)


def work_folder(site: Site) -> str:
    """Where a run's processes work on that client."""
    return f"{site.dir}/{WORK}"


async def _version_of(host: Host, folder: str) -> str:
    """The version of the user's own YCSB, by the name of its core. EngineError without one."""
    do = "Give the folder of an unpacked YCSB as server.ycsb; without it iolab brings its own."
    try:
        listed = await told(host, ("ls", "--", f"{folder.rstrip('/')}/lib"))
    except EngineError as fault:
        raise EngineError(fault.happened, do) from None
    found = _CORE.search(listed.decode("utf-8", "replace"))
    if found is None:
        where = printable(f"{folder.rstrip('/')}/lib")
        raise EngineError(f"There is no core of YCSB in {where} on host '{host.name}'.", do)
    return found[1]
