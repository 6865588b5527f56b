"""One program on an ssh host: its standard streams as asyncio has them, and how it ended."""

from __future__ import annotations

import asyncio
import errno
import math
import shlex
import socket
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Final, cast

import asyncssh
from msgspec import Struct
from msgspec.structs import replace

from iolab.errors import HostError
from iolab.hosts.process import LAST_WORDS_S, STDERR_TAIL_BYTES, exit_and_stderr_text
from iolab.hosts.push import (
    OUTPUT_LIMIT_BYTES,
    STEP_LIMIT_S,
    RemoteExit,
    require_plain_words,
)
from iolab.record import Record
from iolab.text import excerpt

JUMP_HOSTS_MAX: Final = 8
"""Jump hosts on one way, and so an end for a configuration in which they lead in a circle."""

CLOSE_LIMIT_S: Final = 2.0
"""How long a connection may take to say good-bye before it is cut."""


class SshLinkSettings(Record):
    """Limits of all ssh connections of a session, in seconds and counts.

    A host that says nothing is lost after `silence_s`: it is asked for a sign of life every
    `keepalive_s`, and `keepalives` of these may stay unanswered.
    """

    max_concurrent_logins: int = 32
    login_timeout_s: float = 20.0
    keepalive_s: float = 5.0
    keepalives: int = 3
    close_timeout_s: float = 10.0

    @property
    def silence_s(self) -> float:
        """From the last thing heard to the loss of the host."""
        return self.keepalive_s * (self.keepalives + 1)


DEFAULT_SSH_LINK_SETTINGS: Final = SshLinkSettings()
"""32 logins at once keep two cores busy with key exchange; more only make each wait longer. A
login takes below a second in a data centre, and several behind slow name servers. A client under
full load may starve its sshd for seconds, not for twenty; before that the silence of its agent is
told. An agent that is told to end kills its processes and removes its files within ten."""


def ssh_settings_for_timeout(link_timeout_s: float) -> SshLinkSettings:
    """Limits by which a silent host is lost through its agent's silence, and not before."""
    return replace(
        DEFAULT_SSH_LINK_SETTINGS,
        keepalives=max(
            DEFAULT_SSH_LINK_SETTINGS.keepalives,
            math.ceil(link_timeout_s / DEFAULT_SSH_LINK_SETTINGS.keepalive_s),
        ),
    )


class LoginAttempt(Struct):
    """One login: whom it is for, and how far it came."""

    description: str
    """`Host 'c1'`, or `Jump host 'gate' of host 'c1'`."""

    address: str
    port: int
    user: str
    known_hosts: str
    """The file that a new key belongs into."""

    jump: str | None = None
    """The jump host before it, None when it is reached directly."""

    has_answered: bool = False
    """Whether a TCP connection came about."""

    has_greeted: bool = False
    """Whether the other side said that it speaks ssh."""

    untrusted_key: asyncssh.SSHKey | None = None
    """The key that it showed and that is not trusted."""

    has_other_trusted_key: bool = False
    """Whether another key of it is trusted."""

    @property
    def address_and_port(self) -> str:
        """The address for people, as `10.0.0.1 port 22`."""
        return f"{self.address} port {self.port}"

    def to_error(self, message: str, hint: str) -> HostError:
        """A fault of this login: `message` continues the name."""
        return HostError(f"{self.description} {message}.", hint)


def login_error(attempt: LoginAttempt, fault: Exception, settings: SshLinkSettings) -> HostError:
    """The error for a login that failed; `fault` is what asyncssh or the kernel raised."""
    match fault:
        case asyncssh.HostKeyNotVerifiable():
            return _host_key_error(attempt, fault)
        case asyncssh.PermissionDenied():
            return attempt.to_error(
                f"({attempt.address_and_port}) takes none of your keys for user '{attempt.user}'",
                "Put your public key into that user's authorized_keys, load the key into "
                "ssh-agent, or name user and key in the inventory.",
            )
        case asyncssh.KeyExchangeFailed():
            return attempt.to_error(
                f"({attempt.address_and_port}) shares no method with us: "
                f"{_exception_message(fault)}",
                "See that its sshd has a host key of a kind that known_hosts lists.",
            )
        case asyncssh.ChannelOpenError():
            return attempt.to_error(
                f"cannot be reached at {attempt.address_and_port} from jump host '{attempt.jump}': "
                f"{_exception_message(fault)}",
                "See that its sshd runs, and that the jump host may forward connections to it.",
            )
        case TimeoutError():
            return _timeout_error(attempt, settings)
        case asyncssh.Error():
            return attempt.to_error(
                f"({attempt.address_and_port}) broke off while logging in: "
                f"{_exception_message(fault)}",
                "See that host's own logs of sshd; it may limit how many log in at once.",
            )
        case OSError():
            return _unreachable_error(attempt, fault)
    return attempt.to_error(
        f"cannot be logged in to: {_exception_message(fault)}", "Correct ~/.ssh/config."
    )


def connection_loss_reason(fault: Exception, settings: SshLinkSettings) -> str:
    """Why a connection that stood was lost, for people."""
    if isinstance(fault, asyncssh.ConnectionLost) and "keepalive" in fault.reason:
        return f"it gave no sign of life for {settings.silence_s:g} s"
    if isinstance(fault, asyncssh.ConnectionLost | ConnectionError):
        return "its sshd closed the connection"
    return _exception_message(fault)


def _host_key_error(attempt: LoginAttempt, fault: asyncssh.HostKeyNotVerifiable) -> HostError:
    key = attempt.untrusted_key
    if key is None:
        return attempt.to_error(
            f"({attempt.address_and_port}) shows a key or certificate that is not trusted: "
            f"{_exception_message(fault)}",
            f"Compare it on the host's own console, then correct {attempt.known_hosts}.",
        )
    kind = excerpt(key.algorithm.decode("ascii", "replace"), 60)
    shown = f"{kind} {key.get_fingerprint()}"
    check = (
        "compare the fingerprint with what 'ssh-keygen -lf' shows for that host's "
        "/etc/ssh/ssh_host_*_key.pub on its own console"
    )
    if attempt.has_other_trusted_key:
        return attempt.to_error(
            f"({attempt.address_and_port}) shows another key than the one you trust: {shown}",
            f"Somebody may be in between. If the host was set up again, {check}, and replace the "
            f"line in {attempt.known_hosts}.",
        )
    port = "" if attempt.port == asyncssh.DEFAULT_PORT else f"-p {attempt.port} "
    return attempt.to_error(
        f"({attempt.address_and_port}) shows a key that you have not accepted yet: {shown}",
        f"To accept it, {check}, and append the line of 'ssh-keyscan {port}{attempt.address}' "
        f"to {attempt.known_hosts}.",
    )


def _timeout_error(attempt: LoginAttempt, settings: SshLinkSettings) -> HostError:
    within = f"within {settings.login_timeout_s:g} s"
    if not attempt.has_answered:
        return attempt.to_error(
            f"does not answer at {attempt.address_and_port} {within}",
            "See that it is up, that the address is right and that no firewall is in between.",
        )
    if not attempt.has_greeted:
        return attempt.to_error(
            f"takes a connection at {attempt.address_and_port} but does not answer {within}",
            "See that it is not overloaded, and that sshd listens on that port.",
        )
    return attempt.to_error(
        f"({attempt.address_and_port}) did not let user '{attempt.user}' in {within}",
        "See that it is not overloaded, and that its sshd resolves names and users quickly.",
    )


def _unreachable_error(attempt: LoginAttempt, fault: OSError) -> HostError:
    if isinstance(fault, socket.gaierror):
        return attempt.to_error(
            f"has an address that is not known here: '{attempt.address}' "
            f"({_exception_message(fault)})",
            "Correct its name or address, or the resolver.",
        )
    if fault.errno == errno.ECONNREFUSED or isinstance(fault, ConnectionRefusedError):
        return attempt.to_error(
            f"refuses connections at {attempt.address_and_port}",
            "Start sshd there, or correct the port.",
        )
    if fault.errno in (errno.ENETUNREACH, errno.EHOSTUNREACH, errno.ETIMEDOUT):
        return attempt.to_error(
            f"cannot be reached at {attempt.address_and_port} ({_exception_message(fault)})",
            "See that it is up, that the address is right and that there is a route.",
        )
    if isinstance(fault, ConnectionResetError):
        return attempt.to_error(
            f"({attempt.address_and_port}) broke off while logging in",
            "See that host's own logs of sshd; it may limit how many log in at once.",
        )
    return attempt.to_error(
        f"cannot be logged in to at {attempt.address_and_port} ({_exception_message(fault)})",
        "Correct the address, or the files that ~/.ssh/config names.",
    )


def _exception_message(fault: Exception) -> str:
    text = (fault.strerror or str(fault)) if isinstance(fault, OSError) else str(fault)
    return excerpt(text or type(fault).__name__, 200).rstrip(".")


class SshRunner:
    """Runs programs over one connection."""

    def __init__(
        self, host_name: str, connection: asyncssh.SSHClientConnection, settings: SshLinkSettings
    ) -> None:
        self.host = host_name
        self.connection = connection
        self._settings = settings

    async def start(self, *words: str, limit_s: float = STEP_LIMIT_S) -> SshLink:
        """Start a program of plain words. Raises HostError."""
        line = quoted_command_line(*words)
        link = SshLink(self._settings)
        try:
            async with asyncio.timeout(limit_s):
                await self.connection.create_session(
                    lambda: link, line, encoding=None, request_pty=False
                )
        except TimeoutError:
            raise self._cannot_run_error(words[0], f"no answer within {limit_s:g} s") from None
        except (asyncssh.Error, OSError) as fault:
            raise self._cannot_run_error(words[0], excerpt(str(fault))) from None
        return link

    async def run(
        self,
        *words: str,
        stdin: bytes | None = None,
        limit_s: float = STEP_LIMIT_S,
        does_keep_output: bool = True,
    ) -> RemoteExit:
        """Exit code, output and standard error of a program, within a deadline."""
        link = await self.start(*words, limit_s=limit_s)
        kept = bytearray()

        async def write_stdin_and_close() -> None:
            if stdin:
                link.writer.write(stdin)
                await link.writer.drain()
            link.writer.close()

        async def drain_and_keep_output() -> None:
            while piece := await link.reader.read(OUTPUT_LIMIT_BYTES):
                room = OUTPUT_LIMIT_BYTES - len(kept) if does_keep_output else 0
                kept.extend(piece[:room])

        try:
            async with asyncio.timeout(limit_s):
                # At the same time: a program that prints what it reads (tee) stops reading where
                # nobody takes its output.
                await asyncio.gather(write_stdin_and_close(), drain_and_keep_output())
                await link.wait_closed()
        except TimeoutError:
            raise self._cannot_run_error(words[0], f"it did not end within {limit_s:g} s") from None
        except OSError as fault:
            raise self._cannot_run_error(words[0], excerpt(str(fault))) from None
        finally:
            link.abort()
        return RemoteExit(link.code, kept.decode("utf-8", "replace"), link.stderr)

    def _cannot_run_error(self, program: str, why: str) -> HostError:
        message = f"'{program}' cannot be run on host '{excerpt(self.host)}' ({why})."
        return HostError(message, "See that the user may run programs there over ssh.")


def quoted_command_line(*words: str) -> str:
    """Words as ssh sends them; the only place where words meet a shell, the user's login shell.

    ValueError for a word that any shell might change: quoting differs between them.
    """
    return shlex.join(require_plain_words(words))


class SshLink(asyncssh.SSHClientSession[bytes]):
    """A running program: implements `host.AgentLink`, its reader and writer as asyncio's own."""

    def __init__(self, settings: SshLinkSettings) -> None:
        self._settings = settings
        self.reader = asyncio.StreamReader()
        self._closed = asyncio.Event()
        self._room = asyncio.Event()
        self._room.set()
        self._channel: asyncssh.SSHClientChannel[bytes] | None = None
        self._killed_by: str | None = None
        self._loss: str | None = None
        self.code: int | None = None
        self.stderr = b""
        self.release_connection: Callable[[], Awaitable[None]] | None = None
        """What is to be let go of when the program has ended: its connection."""

    @property
    def writer(self) -> SshLink:
        """The program's standard input."""
        return self

    async def wait_closed(self) -> None:
        """Wait until the program has ended or its connection is lost."""
        await self._closed.wait()

    async def exit_reason(self) -> str:
        """Why the connection broke, or how the program ended and what it said on its way."""
        with suppress(TimeoutError):
            async with asyncio.timeout(LAST_WORDS_S):
                await self._closed.wait()
        if self._loss:
            return self._loss
        killed = f"killed by {self._killed_by}" if self._killed_by else ""
        return "; ".join(
            part for part in (killed, exit_and_stderr_text(self.code, self.stderr)) if part
        )

    async def wait_for_exit_or_kill(self) -> None:
        """Close its input, wait, then cut the channel and let the connection go."""
        self.close()
        with suppress(TimeoutError):
            async with asyncio.timeout(self._settings.close_timeout_s):
                await self._closed.wait()
        self.abort()
        if self.release_connection is not None:
            await self.release_connection()

    def abort(self) -> None:
        """Cut the channel; the other side closes the program's streams."""
        if self._channel is not None and not self._closed.is_set():
            self._channel.abort()

    # The writer: what `channel.Outgoing` asks for.

    def write(self, data: bytes) -> None:
        """Take bytes to send; OSError when there is nobody to send to."""
        if self._channel is None or self._closed.is_set():
            raise ConnectionResetError(self._loss or "the program has ended")
        self._channel.write(data)

    async def drain(self) -> None:
        """Wait until most of them have left; OSError when they cannot."""
        await self._room.wait()
        if self._closed.is_set():
            raise ConnectionResetError(self._loss or "the program has ended")

    def close(self) -> None:
        """End the program's standard input."""
        if self._channel is not None and not self._closed.is_set():
            with suppress(OSError):
                self._channel.write_eof()

    # What asyncssh tells.

    def connection_made(self, chan: asyncssh.SSHClientChannel[bytes]) -> None:
        """The channel is there; a full reader holds its sender back through it."""
        self._channel = chan
        # A reader calls nothing of its transport but the two methods of `_ReaderTransport`.
        self.reader.set_transport(cast(asyncio.Transport, _ReaderTransport(chan)))

    def data_received(self, data: bytes, datatype: asyncssh.DataType) -> None:
        """Standard output goes to the reader, the end of standard error is kept."""
        if datatype == asyncssh.EXTENDED_DATA_STDERR:
            self.stderr = (self.stderr + data)[-STDERR_TAIL_BYTES:]
        else:
            self.reader.feed_data(data)

    def eof_received(self) -> bool:
        """The program's output has ended; its input may stay open."""
        self.reader.feed_eof()
        return True

    def exit_status_received(self, status: int) -> None:
        """The program has exited."""
        self.code = status

    def exit_signal_received(
        self,
        signal: str,
        core_dumped: bool,  # noqa: ARG002, FBT001 - as asyncssh calls it
        msg: str,  # noqa: ARG002
        lang: str,  # noqa: ARG002
    ) -> None:
        """The program was killed."""
        self._killed_by = excerpt(f"signal {signal}", 40)

    def pause_writing(self) -> None:
        """The other side takes no more for now."""
        self._room.clear()

    def resume_writing(self) -> None:
        """It does again."""
        self._room.set()

    def connection_lost(self, exc: Exception | None) -> None:
        """The channel is closed: after the program's end, or with its connection."""
        if exc is not None:
            self._loss = connection_loss_reason(exc, self._settings)
        self._closed.set()
        self._room.set()
        self.reader.feed_eof()


class _ReaderTransport:
    """Holds the sender back while the reader is full."""

    def __init__(self, channel: asyncssh.SSHClientChannel[bytes]) -> None:
        self._channel = channel

    def pause_reading(self) -> None:
        """Deliver nothing more."""
        self._channel.pause_reading()

    def resume_reading(self) -> None:
        """Deliver again, but not from within this call: the reader is not waiting yet."""
        asyncio.get_running_loop().call_soon(self._channel.resume_reading)
