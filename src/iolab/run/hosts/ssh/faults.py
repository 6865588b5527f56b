"""What went wrong with an ssh connection, in two sentences: what happened, what to do."""

from __future__ import annotations

import errno
import socket
from dataclasses import dataclass

import asyncssh

from iolab.errors import HostError
from iolab.run.hosts.ssh.limits import SshLimits
from iolab.run.hosts.text import printable


@dataclass(slots=True)
class Attempt:
    """One login: whom it is for, and how far it came."""

    what: str
    """`Host 'c1'`, or `Jump host 'gate' of host 'c1'`."""

    address: str
    port: int
    user: str
    known_hosts: str
    """The file that a new key belongs into."""

    jump: str | None = None
    """The jump host before it, None when it is reached directly."""

    answered: bool = False
    """Whether a TCP connection came about."""

    greeted: bool = False
    """Whether the other side said that it speaks ssh."""

    offered: asyncssh.SSHKey | None = None
    """The key that it showed and that is not trusted."""

    other_key_known: bool = False
    """Whether another key of it is trusted."""

    @property
    def place(self) -> str:
        """The address for people, as `10.0.0.1 port 22`."""
        return f"{self.address} port {self.port}"

    def error(self, happened: str, do: str) -> HostError:
        """A fault of this login: `happened` continues the name."""
        return HostError(f"{self.what} {happened}.", do)


def login_fault(attempt: Attempt, fault: Exception, limits: SshLimits) -> HostError:
    """The error for a login that failed; `fault` is what asyncssh or the kernel raised."""
    match fault:
        case asyncssh.HostKeyNotVerifiable():
            return _untrusted(attempt, fault)
        case asyncssh.PermissionDenied():
            return attempt.error(
                f"({attempt.place}) takes none of your keys for user '{attempt.user}'",
                "Put your public key into that user's authorized_keys, load the key into "
                "ssh-agent, or name user and key in the inventory.",
            )
        case asyncssh.KeyExchangeFailed():
            return attempt.error(
                f"({attempt.place}) shares no method with us: {_said(fault)}",
                "See that its sshd has a host key of a kind that known_hosts lists.",
            )
        case asyncssh.ChannelOpenError():
            return attempt.error(
                f"cannot be reached at {attempt.place} from jump host '{attempt.jump}': "
                f"{_said(fault)}",
                "See that its sshd runs, and that the jump host may forward connections to it.",
            )
        case TimeoutError():
            return _late(attempt, limits)
        case asyncssh.Error():
            return attempt.error(
                f"({attempt.place}) broke off while logging in: {_said(fault)}",
                "See that host's own logs of sshd; it may limit how many log in at once.",
            )
        case OSError():
            return _unreachable(attempt, fault)
    return attempt.error(f"cannot be logged in to: {_said(fault)}", "Correct ~/.ssh/config.")


def loss_of(fault: Exception, limits: SshLimits) -> str:
    """Why a connection that stood was lost, for people."""
    if isinstance(fault, asyncssh.ConnectionLost) and "keepalive" in fault.reason:
        return f"it gave no sign of life for {limits.silence_s:g} s"
    if isinstance(fault, asyncssh.ConnectionLost | ConnectionError):
        return "its sshd closed the connection"
    return _said(fault)


def _untrusted(attempt: Attempt, fault: asyncssh.HostKeyNotVerifiable) -> HostError:
    key = attempt.offered
    if key is None:
        return attempt.error(
            f"({attempt.place}) shows a key or certificate that is not trusted: {_said(fault)}",
            f"Compare it on the host's own console, then correct {attempt.known_hosts}.",
        )
    kind = printable(key.algorithm.decode("ascii", "replace"), 60)
    shown = f"{kind} {key.get_fingerprint()}"
    check = (
        "compare the fingerprint with what 'ssh-keygen -lf' shows for that host's "
        "/etc/ssh/ssh_host_*_key.pub on its own console"
    )
    if attempt.other_key_known:
        return attempt.error(
            f"({attempt.place}) shows another key than the one you trust: {shown}",
            f"Somebody may be in between. If the host was set up anew, {check}, and replace the "
            f"line in {attempt.known_hosts}.",
        )
    port = "" if attempt.port == asyncssh.DEFAULT_PORT else f"-p {attempt.port} "
    return attempt.error(
        f"({attempt.place}) shows a key that you have not accepted yet: {shown}",
        f"To accept it, {check}, and append the line of 'ssh-keyscan {port}{attempt.address}' "
        f"to {attempt.known_hosts}.",
    )


def _late(attempt: Attempt, limits: SshLimits) -> HostError:
    within = f"within {limits.login_s:g} s"
    if not attempt.answered:
        return attempt.error(
            f"does not answer at {attempt.place} {within}",
            "See that it is up, that the address is right and that no firewall is in between.",
        )
    if not attempt.greeted:
        return attempt.error(
            f"takes a connection at {attempt.place} but says nothing {within}",
            "See that it is not overloaded, and that sshd listens on that port.",
        )
    return attempt.error(
        f"({attempt.place}) did not let user '{attempt.user}' in {within}",
        "See that it is not overloaded, and that its sshd resolves names and users quickly.",
    )


def _unreachable(attempt: Attempt, fault: OSError) -> HostError:
    if isinstance(fault, socket.gaierror):
        return attempt.error(
            f"has an address that is not known here: '{attempt.address}' ({_said(fault)})",
            "Correct its name or address, or the resolver.",
        )
    if fault.errno == errno.ECONNREFUSED or isinstance(fault, ConnectionRefusedError):
        return attempt.error(
            f"refuses connections at {attempt.place}", "Start sshd there, or correct the port."
        )
    if fault.errno in (errno.ENETUNREACH, errno.EHOSTUNREACH, errno.ETIMEDOUT):
        return attempt.error(
            f"cannot be reached at {attempt.place} ({_said(fault)})",
            "See that it is up, that the address is right and that there is a route.",
        )
    if isinstance(fault, ConnectionResetError):
        return attempt.error(
            f"({attempt.place}) broke off while logging in",
            "See that host's own logs of sshd; it may limit how many log in at once.",
        )
    return attempt.error(
        f"cannot be logged in to at {attempt.place} ({_said(fault)})",
        "Correct the address, or the files that ~/.ssh/config names.",
    )


def _said(fault: Exception) -> str:
    text = (fault.strerror or str(fault)) if isinstance(fault, OSError) else str(fault)
    return printable(text or type(fault).__name__, 200).rstrip(".")
