"""A host reached by ssh: one connection, the agent pushed once, started, and let go."""

from __future__ import annotations

import asyncio
import logging
import stat
from collections.abc import AsyncIterator, Coroutine
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Final

import asyncssh

from iolab.core.host import HostSpec, SshRoute
from iolab.errors import HostError
from iolab.hosts.host import Host, Link
from iolab.hosts.message import printable
from iolab.hosts.push import STEP_LIMIT_S, UPLOAD_LIMIT_S, HostFiles, ProgramFiles, push
from iolab.hosts.ssh import SshRunner
from iolab.hosts.ssh_login import Logins

_DO: Final = "See that the user may write there, and that there is room."


@asynccontextmanager
async def host_files(runner: SshRunner) -> AsyncIterator[HostFiles]:
    """The best way to the host's files; its own program on the host ends with it."""
    try:
        async with asyncio.timeout(STEP_LIMIT_S):
            client = await runner.connection.start_sftp_client()
    except (asyncssh.Error, OSError):
        # Some sites switch SFTP off; whatever else is wrong, the first program will tell.
        yield ProgramFiles(runner)
        return
    try:
        yield SftpFiles(runner, client)
    finally:
        client.exit()


class SftpFiles:
    """A host's files through SFTP: implements `push.Landing`."""

    def __init__(self, runner: SshRunner, client: asyncssh.SFTPClient) -> None:
        self.runner = runner
        self._client = client

    async def make_folder(self, path: str) -> None:
        """A folder of mode 700, if nothing is there."""
        attributes = asyncssh.SFTPAttrs(permissions=0o700)
        try:
            async with asyncio.timeout(STEP_LIMIT_S):
                await self._client.mkdir(path, attributes)
        except (asyncssh.Error, OSError):
            return  # `describe` tells whether what is there will do

    async def describe(self, path: str) -> str:
        """Owner, mode and kind, links not followed."""
        found = await self._within(self._client.lstat(path), "look at", path)
        mode = found.permissions or 0
        kind = "directory" if stat.S_ISDIR(mode) else "no directory"
        return f"{found.uid}:{stat.S_IMODE(mode):o}:{kind}"

    async def put(self, path: str, content: bytes) -> None:
        """A new file, which must not be there yet."""
        await self._within(self._write(path, content), "write", path, UPLOAD_LIMIT_S)

    async def rename(self, old: str, new: str) -> None:
        """At once and over what is there, as OpenSSH's own extension does."""
        await self._within(self._client.posix_rename(old, new), "rename", old)

    async def remove(self, path: str) -> None:
        """Remove a file; a host that is lost keeps it, in a private folder."""
        try:
            async with asyncio.timeout(STEP_LIMIT_S):
                await self._client.remove(path)
        except (asyncssh.Error, OSError):
            return

    async def _write(self, path: str, content: bytes) -> None:
        async with self._client.open(path, "xb") as file:
            await file.write(content)
            await file.setstat(asyncssh.SFTPAttrs(permissions=0o700))

    async def _within(
        self, work: Coroutine[Any, Any, Any], verb: str, path: str, limit_s: float = STEP_LIMIT_S
    ) -> Any:  # noqa: ANN401 - whatever the work gives
        host = printable(self.runner.host)
        try:
            async with asyncio.timeout(limit_s):
                return await work
        except TimeoutError:
            happened = f"Host '{host}' did not {verb} {path} within {limit_s:g} s."
            raise HostError(happened, "See that it is not overloaded.") from None
        except (asyncssh.Error, OSError) as fault:
            why = printable(str(fault), 200).rstrip(".")
            raise HostError(f"Host '{host}' cannot {verb} {path}: {why}.", _DO) from None


# What asyncssh has to say is said by our errors; without a handler it would go to the terminal.
logging.getLogger("asyncssh").addHandler(logging.NullHandler())


class SshHost(Host):
    """The agent behind ssh. When the connection breaks, sshd ends the agent's input: its lease."""

    def __init__(self, spec: HostSpec, logins: Logins, agent: Path | None = None) -> None:
        super().__init__(spec)
        self._logins = logins
        self._agent = agent

    async def open_link(self) -> Link:
        """Log in, push the agent if need be, and start it."""
        entry = await self._logins.enter(self.name, self.spec.ssh or SshRoute(self.name))
        try:
            runner = SshRunner(self.name, entry.connection, self._logins.limits)
            async with host_files(runner) as landing:
                remote = await push(landing, self._agent)
            link = await runner.start(remote)
        except BaseException:
            await entry.leave()
            raise
        link.leave = entry.leave
        return link
