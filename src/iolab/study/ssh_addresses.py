"""How ssh reaches a host, as it is written: addresses, users, jump hosts, files of the controller.

Each value ends up in an ssh connection, a resolver or a message. What could be taken there for an
option, for shell syntax or for a terminal's control sequence is refused here.
"""

from __future__ import annotations

import ipaddress
import re
from typing import Final

from iolab.core.host import JumpHost
from iolab.study.values import ValueReader, matching_text_value, require_printable_path, value_error
from iolab.text import quote_value

PORT_MAX: Final = 65535
ADDRESS_CHARACTERS: Final = 253
"""The longest name that DNS can hold."""

USER_CHARACTERS: Final = 64
FILE_CHARACTERS: Final = 1024

_LABEL: Final = r"[A-Za-z0-9_](?:[A-Za-z0-9_-]{0,61}[A-Za-z0-9_])?"
_NAME: Final = re.compile(rf"{_LABEL}(?:\.{_LABEL})*\.?")
_USER: Final = re.compile(rf"[A-Za-z0-9_][A-Za-z0-9_.@+-]{{0,{USER_CHARACTERS - 1}}}")
_JUMP_HOST: Final = re.compile(
    r"(?:(?P<user>[^@]*(?:@[^@]*)?)@)?"
    r"(?:\[(?P<six>[^\]]*)\]|(?P<name>[^:@\[\]]*))"
    r"(?::(?P<port>\d{1,5}))?"
)


def ssh_host_value() -> ValueReader:
    """What ssh connects to: a name of DNS or of ~/.ssh/config, or an IP address.

    In a file it may hold ranges as the host's name does; they are expanded before it is read.
    """
    hint = "Give a name or an IP address, as in 'client-1.example.org' or '192.0.2.7'."
    return matching_text_value(
        is_valid_ssh_host, hint, {"pattern": r"^[A-Za-z0-9_:\[][A-Za-z0-9_.:%,\[\]-]*$"}
    )


def ssh_user_value() -> ValueReader:
    """The name to log in with."""
    hint = "Give a login name: letters, digits, '_', '.', '@', '+' and '-', not '-' first."
    return matching_text_value(is_valid_user_name, hint, {"pattern": f"^{_USER.pattern}$"})


def jump_host_value() -> ValueReader:
    """A jump host, `[USER@]ADDRESS[:PORT]`, an IPv6 address in brackets."""
    hint = "Write [USER@]HOST[:PORT], as in 'jump@gate.example.org:2222'."
    return matching_text_value(parse_jump_host, hint, {}, "has")


def controller_file_value() -> ValueReader:
    """A file of the controller: an absolute path, or one below the home directory."""

    def read_controller_file(value: object) -> str:
        if not isinstance(value, str) or not value.startswith(("/", "~/")):
            raise value_error(
                f"is {quote_value(value)}", "Give an absolute path, or one that begins with '~/'."
            )
        return require_printable_path(value, FILE_CHARACTERS)

    return ValueReader(
        read_controller_file, {"type": "string", "pattern": "^~?/", "maxLength": FILE_CHARACTERS}
    )


def parse_jump_host(text: str) -> JumpHost | None:
    """The jump host that `text` names; None when it names none."""
    match = _JUMP_HOST.fullmatch(text)
    if match is None:
        return None
    host = match["name"] if match["six"] is None else match["six"]
    port = int(match["port"]) if match["port"] else None
    if match["user"] is not None and not _USER.fullmatch(match["user"]):
        return None
    if not is_valid_ssh_host(host) or (port is not None and not 1 <= port <= PORT_MAX):
        return None
    return JumpHost(host, match["user"], port)


def ip_address_value() -> ValueReader:
    """An IP address by itself, which needs nobody to resolve it."""
    hint = "Give an IP address, as '192.0.2.7'."
    return matching_text_value(is_ip_address, hint, {"pattern": r"^[0-9A-Fa-f:.,\[\]-]+$"})


def is_valid_user_name(text: str) -> bool:
    """Whether one can log in by that name."""
    return _USER.fullmatch(text) is not None


def is_valid_ssh_host(text: str) -> bool:
    """Whether ssh can connect to it as it stands: a plain name, or an IP address."""
    return bool(len(text) <= ADDRESS_CHARACTERS and _NAME.fullmatch(text)) or is_ip_address(text)


def is_ip_address(text: str) -> bool:
    """Whether it is an IP address without a zone."""
    try:
        return "%" not in text and ipaddress.ip_address(text) is not None
    except ValueError:
        return False
