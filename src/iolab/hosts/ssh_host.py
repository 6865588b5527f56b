"""A host reached by ssh: one connection, the agent pushed once, started, and let go.

There are so many logins at a time; jump hosts are logged in to once for all hosts, and host keys
always checked.
"""

from __future__ import annotations

import asyncio
import logging
import stat
from collections.abc import AsyncIterator, Coroutine
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Final

import asyncssh
from msgspec import Struct
from msgspec.structs import replace

from iolab.core.host import HostSpec, JumpHost, SshRoute
from iolab.errors import HostError
from iolab.hosts.host import AgentLink, Host
from iolab.hosts.push import (
    STEP_LIMIT_S,
    UPLOAD_LIMIT_S,
    CommandHostFileOperations,
    HostFileOperations,
    install_agent,
)
from iolab.hosts.ssh import (
    CLOSE_LIMIT_S,
    DEFAULT_SSH_LINK_SETTINGS,
    JUMP_HOSTS_MAX,
    LoginAttempt,
    SshLinkSettings,
    SshRunner,
    login_error,
)
from iolab.study.ssh_addresses import parse_jump_host
from iolab.text import excerpt, uncapitalised

KNOWN_HOSTS: Final = (
    "~/.ssh/known_hosts",
    "~/.ssh/known_hosts2",
    "/etc/ssh/ssh_known_hosts",
    "/etc/ssh/ssh_known_hosts2",
)
"""Where ssh keeps the host keys that it trusts; a new key belongs into the first."""

_HINT: Final = "See that the user may write there, and that there is room."


class SshSession(Struct):
    """A connection that stands, with the jump host that it holds open."""

    connection: asyncssh.SSHClientConnection
    connections: SshConnections
    last_jump_login: _SharedJumpLogin | None

    async def close_and_release_jump_login(self) -> None:
        """Close the connection, by force if need be, and let go of the jump host."""
        self.connection.close()
        try:
            async with asyncio.timeout(CLOSE_LIMIT_S):
                await self.connection.wait_closed()
        except (TimeoutError, OSError, asyncssh.Error):
            self.connection.abort()
        gate, self.last_jump_login = self.last_jump_login, None
        if gate is not None:
            await self.connections.release_jump_login(gate)


class _SharedJumpLogin(Struct):
    """A jump host that several hosts are reached through."""

    route: SshRoute
    login: asyncio.Task[SshSession]
    user_count: int = 0


class SshConnections:
    """All ssh logins of one session. `config` replaces ~/.ssh/config."""

    def __init__(
        self, settings: SshLinkSettings = DEFAULT_SSH_LINK_SETTINGS, config: Path | None = None
    ) -> None:
        self.settings = settings
        self._config = config
        self._slots = asyncio.Semaphore(settings.max_concurrent_logins)
        self._logins: dict[SshRoute, _SharedJumpLogin] = {}
        self._known: dict[tuple[str, ...], asyncssh.SSHKnownHosts] = {}

    async def log_in_over_ssh(self, host_name: str, route: SshRoute) -> SshSession:
        """Log in to a host, through its jump hosts if it has any. Raises HostError."""
        what = f"Host '{excerpt(host_name)}'"
        return await self._acquire_through_jump_hosts(
            what, host_name, replace(route, jump=await self._resolve_jump_hosts(what, route))
        )

    async def release_jump_login(self, login: _SharedJumpLogin) -> None:
        """One user less of a jump host; the last one closes it."""
        login.user_count -= 1
        failed = login.login.done() and (login.login.cancelled() or login.login.exception())
        if (login.user_count == 0 or failed) and self._logins.get(login.route) is login:
            del self._logins[login.route]
        if login.user_count == 0:
            outcome = (await asyncio.gather(login.login, return_exceptions=True))[0]
            if isinstance(outcome, SshSession):
                await outcome.close_and_release_jump_login()

    async def _resolve_jump_hosts(self, description: str, route: SshRoute) -> tuple[JumpHost, ...]:
        """Every jump host up to the route's address, as the inventory and ~/.ssh/config say.

        All are known before the first is logged in to, so that a circle is a fault and no wait.
        """
        hops = route.jump or (await self._prepare_login(description, route)).jump_hosts
        before = hops
        while before:
            if len(hops) > JUMP_HOSTS_MAX:
                message = f"{description} has more than {JUMP_HOSTS_MAX} jump hosts on the way."
                raise HostError(message, "See that ProxyJump in ~/.ssh/config forms no circle.")
            first = SshRoute(before[0].address, before[0].user, before[0].port)
            before = (await self._prepare_login(description, first)).jump_hosts
            hops = (*before, *hops)
        return hops

    async def _acquire_through_jump_hosts(
        self, description: str, host_name: str, route: SshRoute
    ) -> SshSession:
        """Log in by exactly the jump hosts that the route names."""
        prepared = await self._prepare_login(description, route)
        gate = await self._acquire_shared_jump_login(host_name, route) if route.jump else None
        prepared.attempt.jump = excerpt(str(route.jump[-1])) if gate else None
        try:
            tunnel = gate.login.result().connection if gate else None
            connection = await self._log_in(prepared, tunnel)
        except BaseException:
            if gate is not None:
                await self.release_jump_login(gate)
            raise
        return SshSession(connection, self, gate)

    async def _acquire_shared_jump_login(self, host_name: str, route: SshRoute) -> _SharedJumpLogin:
        """The last jump host of a route, logged in to; all hosts behind it share the connection."""
        *before, hop = route.jump
        way = SshRoute(hop.address, hop.user, hop.port, tuple(before), route.key, route.known_hosts)
        gate = self._logins.get(way)
        if gate is None:
            what = f"Jump host '{excerpt(str(hop))}' of host '{excerpt(host_name)}'"
            login = asyncio.create_task(
                self._acquire_through_jump_hosts(what, host_name, way), name=what
            )
            gate = self._logins[way] = _SharedJumpLogin(way, login)
        gate.user_count += 1
        try:
            # One host that gives up must not take the jump host from the others.
            await asyncio.shield(gate.login)
        except BaseException:
            await self.release_jump_login(gate)
            raise
        return gate

    async def _prepare_login(self, description: str, route: SshRoute) -> _PreparedLogin:
        """What ssh's configuration and ours make of the route, before anything is connected."""
        arguments = self._connect_arguments(description, route)
        try:
            options = await asyncssh.SSHClientConnectionOptions.construct(**arguments)
            files = _known_hosts_files(description, route, options.known_hosts)
            known = await asyncio.to_thread(self._cached_known_hosts, files)
            hops = _tunnel_jump_hosts(options.tunnel)
        except (OSError, ValueError, asyncssh.Error) as fault:
            message = (
                f"{description} cannot be logged in to: {excerpt(str(fault), 300).rstrip('.')}."
            )
            raise HostError(message, "Correct the inventory, or ~/.ssh/config.") from None
        if route.key and not options.client_keys and not _is_socket(options.agent_path):
            message = (
                f"The key {excerpt(route.key)} of {uncapitalised(description)} needs a passphrase."
            )
            hint = (
                "Load it into ssh-agent with ssh-add; its public half must lie beside it as .pub."
            )
            raise HostError(message, hint)
        first = route.known_hosts or (files[0] if files else KNOWN_HOSTS[0])
        user = excerpt(options.username, 100)
        attempt = LoginAttempt(description, excerpt(options.host, 260), options.port, user, first)
        return _PreparedLogin(arguments, attempt, known, options.host_key_alias, hops)

    def _connect_arguments(self, description: str, route: SshRoute) -> dict[str, Any]:
        """Arguments of asyncssh; what is left out comes from ~/.ssh/config or its defaults."""
        arguments: dict[str, Any] = {
            "host": route.address,
            "password_auth": False,  # nobody is there to type one
            "kbdint_auth": False,
            "agent_forwarding": False,
            "x11_forwarding": False,
            "command": None,
            "request_pty": False,
            "keepalive_interval": self.settings.keepalive_s,
            "keepalive_count_max": self.settings.keepalives,
            "login_timeout": self.settings.login_timeout_s,
            # To leave it out would read no file; the empty tuple stands for ~/.ssh/config.
            "config": () if self._config is None else [str(self._config)],
        }
        if route.user is not None:
            arguments["username"] = route.user
        if route.port is not None:
            arguments["port"] = route.port
        if route.key is not None:
            arguments |= _private_key_arguments(description, Path(route.key).expanduser())
        return arguments

    def _cached_known_hosts(self, files: tuple[str, ...]) -> asyncssh.SSHKnownHosts:
        """The keys of files that exist; what no file vouches for is not trusted."""
        if files not in self._known:
            texts = [
                path.read_text(encoding="utf-8", errors="replace")
                for name in files
                if (path := Path(name).expanduser()).is_file()
            ]
            self._known[files] = asyncssh.import_known_hosts("\n".join(texts))
        return self._known[files]

    async def _log_in(
        self, prepared: _PreparedLogin, tunnel: asyncssh.SSHClientConnection | None
    ) -> asyncssh.SSHClientConnection:
        attempt = prepared.attempt
        async with self._slots:
            try:
                async with asyncio.timeout(self.settings.login_timeout_s):
                    return await asyncssh.connect(
                        **prepared.arguments,
                        tunnel=tunnel,
                        known_hosts=prepared.known_hosts,
                        client_factory=lambda: _LoginObserver(prepared),
                    )
            except (OSError, ValueError, asyncssh.Error) as fault:
                raise login_error(attempt, fault, self.settings) from None


class _PreparedLogin(Struct):
    """A login made ready; `jump_hosts` are the jump hosts that ~/.ssh/config asks for."""

    arguments: dict[str, Any]
    attempt: LoginAttempt
    known_hosts: asyncssh.SSHKnownHosts
    host_key_alias: str | None
    jump_hosts: tuple[JumpHost, ...]


class _LoginObserver(asyncssh.SSHClient):
    """Sees how far a login comes, so that its failure can be told well. Trusts nobody."""

    def __init__(self, prepared: _PreparedLogin) -> None:
        self._prepared = prepared
        self._connection: asyncssh.SSHClientConnection | None = None

    def connection_made(self, conn: asyncssh.SSHClientConnection) -> None:
        """A TCP connection stands."""
        self._connection = conn
        self._prepared.attempt.has_answered = True

    def validate_host_public_key(
        self, host: str, addr: str, port: int, key: asyncssh.SSHKey
    ) -> bool:
        """A key that no file vouches for: noted, and refused."""
        named = self._prepared.host_key_alias or host
        asked_port = port if port != asyncssh.DEFAULT_PORT else None
        trusted = self._prepared.known_hosts.match(named, addr, asked_port)[0]
        self._prepared.attempt.untrusted_key = key
        self._prepared.attempt.has_other_trusted_key = bool(trusted)
        return False

    def auth_banner_received(self, msg: str, lang: str) -> None:
        """What a site tells everyone who logs in is nobody's to read here."""

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002 - as asyncssh calls it
        """Whether it spoke ssh is known by now."""
        if self._connection is not None:
            version = self._connection.get_extra_info("server_version")
            self._prepared.attempt.has_greeted = version is not None


def _private_key_arguments(description: str, key: Path) -> dict[str, Any]:
    """A key of our own choice: no other is offered, or sshd might stop listening before it."""
    if not key.is_file():
        message = f"There is no key {excerpt(str(key))} for {uncapitalised(description)}."
        raise HostError(message, "Correct the key in the inventory.")
    arguments: dict[str, Any] = {"client_keys": [str(key)], "ignore_encrypted": True}
    public = key.with_name(f"{key.name}.pub")
    if public.is_file():
        return {**arguments, "agent_identities": [str(public)]}
    return {**arguments, "agent_path": None}


def _known_hosts_files(description: str, route: SshRoute, configured: object) -> tuple[str, ...]:
    """The files whose keys are trusted; a configuration that switches the check off has none."""
    if route.known_hosts is not None:
        if not Path(route.known_hosts).expanduser().is_file():
            file = excerpt(route.known_hosts)
            message = f"There is no file {file} of host keys for {uncapitalised(description)}."
            raise HostError(message, "Correct known_hosts in the inventory.")
        return (route.known_hosts,)
    if configured is None:
        return ()
    files = tuple(str(name) for name in configured) if isinstance(configured, list) else ()
    return files or KNOWN_HOSTS


def _is_socket(path: str | None) -> bool:
    return bool(path) and Path(str(path)).is_socket()


def _tunnel_jump_hosts(tunnel: object) -> tuple[JumpHost, ...]:
    """The jump hosts of ~/.ssh/config; ValueError when they cannot be read."""
    if not isinstance(tunnel, str) or tunnel.lower() == "none":
        return ()
    hops = [parse_jump_host(text.strip()) for text in tunnel.split(",")]
    if any(hop is None for hop in hops):
        raise ValueError(f"ProxyJump {excerpt(tunnel, 100)} names no host")
    return tuple(hop for hop in hops if hop is not None)


@asynccontextmanager
async def open_host_file_operations(runner: SshRunner) -> AsyncIterator[HostFileOperations]:
    """The best way to the host's files; its own program on the host ends with it."""
    try:
        async with asyncio.timeout(STEP_LIMIT_S):
            client = await runner.connection.start_sftp_client()
    except (asyncssh.Error, OSError):
        # Some sites switch SFTP off; whatever else is wrong, the first program will tell.
        yield CommandHostFileOperations(runner)
        return
    try:
        yield SftpHostFileOperations(runner, client)
    finally:
        client.exit()


class SftpHostFileOperations:
    """A host's files through SFTP: implements `HostFileOperations`."""

    def __init__(self, runner: SshRunner, client: asyncssh.SFTPClient) -> None:
        self.runner = runner
        self._client = client

    async def make_private_folder_or_reason(self, path: str) -> str:
        """A folder of mode 700, if nothing is there; why it could not, "" where it could."""
        attributes = asyncssh.SFTPAttrs(permissions=0o700)
        try:
            async with asyncio.timeout(STEP_LIMIT_S):
                await self._client.mkdir(path, attributes)
        except (asyncssh.Error, OSError) as error:
            return excerpt(str(error) or type(error).__name__, 200)
        return ""

    async def read_owner_mode_and_kind(self, path: str) -> str:
        """Owner, mode and kind, links not followed."""
        attributes = await self._run_with_timeout(self._client.lstat(path), "look at", path)
        mode = attributes.permissions or 0
        kind = "directory" if stat.S_ISDIR(mode) else "no directory"
        return f"{attributes.uid}:{stat.S_IMODE(mode):o}:{kind}"

    async def write_new_program(self, path: str, content: bytes) -> None:
        """A new file, which must not be there yet."""
        await self._run_with_timeout(self._write(path, content), "write", path, UPLOAD_LIMIT_S)

    async def rename(self, old: str, new: str) -> None:
        """At once and over what is there, as OpenSSH's own extension does."""
        await self._run_with_timeout(self._client.posix_rename(old, new), "rename", old)

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

    async def _run_with_timeout(
        self, work: Coroutine[Any, Any, Any], verb: str, path: str, limit_s: float = STEP_LIMIT_S
    ) -> Any:  # noqa: ANN401 - whatever the work gives
        host = excerpt(self.runner.host)
        try:
            async with asyncio.timeout(limit_s):
                return await work
        except TimeoutError:
            message = f"Host '{host}' did not {verb} {path} within {limit_s:g} s."
            raise HostError(message, "See that it is not overloaded.") from None
        except (asyncssh.Error, OSError) as fault:
            why = excerpt(str(fault), 200).rstrip(".")
            raise HostError(f"Host '{host}' cannot {verb} {path}: {why}.", _HINT) from None


# What asyncssh has to say is said by our errors; without a handler it would go to the terminal.
logging.getLogger("asyncssh").addHandler(logging.NullHandler())


class SshHost(Host):
    """The agent behind ssh. When the connection breaks, sshd ends the agent's input: its lease."""

    def __init__(self, spec: HostSpec, logins: SshConnections, agent: Path | None = None) -> None:
        super().__init__(spec)
        self._logins = logins
        self._agent = agent

    async def start_agent(self) -> AgentLink:
        """Log in, push the agent if need be, and start it."""
        entry = await self._logins.log_in_over_ssh(self.name, self.spec.ssh or SshRoute(self.name))
        try:
            runner = SshRunner(self.name, entry.connection, self._logins.settings)
            async with open_host_file_operations(runner) as landing:
                remote = await install_agent(landing, self._agent)
            link = await runner.start(remote)
        except BaseException:
            await entry.close_and_release_jump_login()
            raise
        link.release_connection = entry.close_and_release_jump_login
        return link
