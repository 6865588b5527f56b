"""db_bench and sst_dump on every client: there, and able to start."""

from __future__ import annotations

from typing import Final
from weakref import WeakKeyDictionary

from iolab.model.db_bench_options import PROGRAMS
from iolab.model.key_value import KeyValueJob
from iolab.run.engines.db_bench import INSTALL, VERSION_LIMIT_S, version_command, version_of
from iolab.run.hosts.base import Host
from iolab.run.key_value.processes import told
from iolab.run.site import Site

_ANSWERS: Final = frozenset({0, 1})
"""Old versions do not know the question; that they answer shows that they run."""


class RocksdbPrograms:
    """What was found on each host, as long as its connection holds."""

    def __init__(self) -> None:
        self._found: WeakKeyDictionary[Host, dict[tuple[str, ...], str]] = WeakKeyDictionary()

    async def version_on(self, site: Site, job: KeyValueJob) -> str:
        """db_bench's version on a site's host, "" for one that tells none.

        EngineError when a program is missing or cannot run, HostError when the host fails.
        """
        commands = [version_command(job.options, site.dir, name) for name in PROGRAMS]
        known = self._found.setdefault(site.host, {})
        key = tuple(command.argv[0] for command in commands)
        if key not in known:
            words = [
                await told(
                    site.host,
                    command.argv,
                    cwd=command.cwd,
                    limit_s=VERSION_LIMIT_S,
                    codes=_ANSWERS,
                    install=INSTALL,
                )
                for command in commands
            ]
            known[key] = version_of(words[PROGRAMS.index("db_bench")])
        return known[key]
