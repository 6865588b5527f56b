"""Keys of an object store: from the environment, AWS's profile files or a command.

They are asked for when they are used, kept in memory only, and go to agents in the standard input
of a process, over the channel of the agent's lease. No record holds them.
"""

from __future__ import annotations

import configparser
import json
import os
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from iolab.core.object_store import ObjectStore
from iolab.errors import HostError
from iolab.text import excerpt, quote_value

COMMAND_LIMIT_S: Final = 30.0
"""A command that asks a vault, or a person's second factor."""

COMMAND_BYTES_MAX: Final = 64 << 10
FILE_BYTES_MAX: Final = 1 << 20
DEFAULT_PROFILE: Final = "default"

_SOURCES: Final = (
    "Set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or give a profile or a credentials_command "
    "under [target]."
)

_SECRET_NAME: Final = "AWS_SECRET_ACCESS_KEY"  # noqa: S105 - the name of a variable


class Credentials:
    """An access key with its secret; printing it shows neither."""

    __slots__ = ("_access_key", "_secret_key", "_session_token")

    def __init__(self, access_key: str, secret_key: str, session_token: str | None = None) -> None:
        self._access_key = access_key
        self._secret_key = secret_key
        self._session_token = session_token

    def __repr__(self) -> str:
        return "Credentials(...)"

    def secret_document(self) -> dict[str, str | None]:
        """What an agent is told, and nobody else."""
        return {
            "access_key": self._access_key,
            "secret_key": self._secret_key,
            "session_token": self._session_token,
        }


def load_credentials(
    store: ObjectStore, environment: Mapping[str, str] | None = None
) -> Credentials:
    """The keys of a store. HostError with what was looked at where there are none."""
    environment = os.environ if environment is None else environment
    if store.credentials_command:
        return _credentials_from_command(store.credentials_command)
    if store.profile is not None:
        return _credentials_from_profile(store.profile, environment)
    key, secret = (environment.get(name, "") for name in ("AWS_ACCESS_KEY_ID", _SECRET_NAME))
    if key and secret:
        return Credentials(key, secret, environment.get("AWS_SESSION_TOKEN") or None)
    if key or secret:
        missing = _SECRET_NAME if key else "AWS_ACCESS_KEY_ID"
        raise HostError(f"The environment has no {missing}, but the other of both.", _SOURCES)
    return _credentials_from_profile(environment.get("AWS_PROFILE") or DEFAULT_PROFILE, environment)


def _credentials_from_profile(profile_name: str, environment: Mapping[str, str]) -> Credentials:
    home = environment.get("HOME") or str(Path.home())
    files = (
        environment.get("AWS_SHARED_CREDENTIALS_FILE") or f"{home}/.aws/credentials",
        environment.get("AWS_CONFIG_FILE") or f"{home}/.aws/config",
    )
    keys: dict[str, str] = {}
    for file, section in zip(
        files, (profile_name, _config_section_name(profile_name)), strict=True
    ):
        for key, value in _read_section(Path(file), section).items():
            keys.setdefault(key, value)
    access, secret = keys.get("aws_access_key_id"), keys.get("aws_secret_access_key")
    if not access or not secret:
        message = (
            f"There are no keys of profile {quote_value(profile_name)} in {' or '.join(files)}."
        )
        raise HostError(message, _SOURCES)
    return Credentials(access, secret, keys.get("aws_session_token"))


def _config_section_name(profile_name: str) -> str:
    return profile_name if profile_name == DEFAULT_PROFILE else f"profile {profile_name}"


def _read_section(path: Path, section: str) -> dict[str, str]:
    """The keys of a section; none where there is no such file. Its content is in no message."""
    try:
        with path.open("rb") as file:
            text = file.read(FILE_BYTES_MAX).decode("utf-8", "replace")
    except FileNotFoundError:
        return {}
    except OSError as error:
        message = f"{path} cannot be read: {error.strerror or error}."
        raise HostError(message, _SOURCES) from None
    parser = configparser.RawConfigParser(default_section="\0", strict=False)
    try:
        parser.read_string(text)
    except configparser.Error:
        message = f"{path} is no file of profiles."
        raise HostError(message, "Write [NAME] and lines as 'aws_access_key_id = KEY'.") from None
    return dict(parser.items(section)) if parser.has_section(section) else {}


def _credentials_from_command(argv: tuple[str, ...]) -> Credentials:
    """What `credential_process` of AWS's tools prints: a JSON object with the keys."""
    name = excerpt(argv[0], 60)
    hint = (
        "Let it print a JSON object with AccessKeyId and SecretAccessKey; see "
        "target.credentials_command."
    )
    try:
        done = subprocess.run(
            argv,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            timeout=COMMAND_LIMIT_S,
            check=False,
        )
    except OSError as error:
        raise HostError(f"{name} cannot be run: {error.strerror or error}.", hint) from None
    except subprocess.TimeoutExpired:
        message = f"{name} did not end within {COMMAND_LIMIT_S:g} s."
        raise HostError(message, hint) from None
    if done.returncode:
        raise HostError(f"{name} ended with exit code {done.returncode}.", hint)
    try:
        document = json.loads(done.stdout[:COMMAND_BYTES_MAX])
        key, secret = document["AccessKeyId"], document["SecretAccessKey"]
        token = document.get("SessionToken")
    except (ValueError, KeyError, TypeError, RecursionError):
        raise HostError(f"{name} printed no keys.", hint) from None
    if not isinstance(key, str) or not isinstance(secret, str) or not key or not secret:
        raise HostError(f"{name} printed no keys.", hint)
    return Credentials(key, secret, token if isinstance(token, str) else None)
