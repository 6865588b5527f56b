"""The user's settings: `~/.config/iolab/config.toml`, defaults of options and of the screen.

    scale = "small"        # of every command that has --scale
    [report]
    paper = "letter"       # of `iolab report` alone

Options that name a target, destroy data or answer a question are never settings.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any, Final

from iolab.core.regular_file import read_regular_file
from iolab.errors import Fault, UsageError
from iolab.text import quote_value

SETTINGS_FILE: Final = "iolab/config.toml"
SETTINGS_BYTES_MAX: Final = 64 << 10
"""A dozen lines are usual."""

KEYS: Final[dict[str, type]] = {
    "scale": str,
    "method": str,
    "engine": str,
    "runtime": str,
    "repeats": int,
    "hosts": str,
    "report": bool,
    "open": bool,
    "fail_on": str,
    "quiet": bool,
    "paper": str,
    "allow_differences": bool,
}
"""The options that may have a default here, with the types of their values."""

SCREEN_KEYS: Final[dict[str, type]] = {"color": bool, "pager": str}
"""Settings of the screen: whether it has colours, and the program that shows long output."""


_HINT: Final = "Correct or remove the file."


class UserSettings:
    """The content of the file; empty where there is none."""

    def __init__(self, path: Path, table: dict[str, Any]) -> None:
        self.path = path
        self.table = table

    def option_defaults(self, command: str) -> dict[str, Any]:
        """The defaults of one command's options, by the names of its parameters."""
        defaults = {key: value for key, value in self.table.items() if key in KEYS}
        defaults.update(self.table.get(command, {}))
        return defaults

    @property
    def has_color(self) -> bool:
        """Whether the screen may have colours."""
        return bool(self.table.get("color", True))

    @property
    def pager(self) -> str | None:
        """The pager's command line; None where none is set, empty for no pager."""
        pager: str | None = self.table.get("pager")
        return pager


def settings_path() -> Path:
    """Where the file is looked for, after the XDG base directory specification."""
    base = os.environ.get("XDG_CONFIG_HOME", "")
    return (Path(base) if base.startswith("/") else Path("~/.config").expanduser()) / SETTINGS_FILE


def read_settings(commands: tuple[str, ...]) -> UserSettings:
    """The settings; UsageError with every fault of the file."""
    try:
        path = settings_path()
        content = read_regular_file(path, SETTINGS_BYTES_MAX)
    except (FileNotFoundError, NotADirectoryError, RuntimeError):  # also: no home directory
        return UserSettings(Path(SETTINGS_FILE), {})
    except OSError as error:
        raise UsageError(f"'{path}' cannot be read: {error.strerror}.", _HINT) from error
    import tomllib  # which takes longer than all else here, and few have the file

    try:
        table = tomllib.loads(content.decode("utf-8-sig"))
    except ValueError as error:  # also of text that is not UTF-8
        raise UsageError(f"'{path}' is not TOML: {error}.", _HINT) from error
    if faults := tuple(_settings_faults(table, commands)):
        raise UsageError(f"'{path}' has settings that iolab does not have.", _HINT, faults)
    return UserSettings(path, table)


def _settings_faults(table: dict[str, Any], commands: tuple[str, ...]) -> list[Fault]:
    """One for each key that is unknown or has a value of another kind."""
    faults = []
    for key, value in table.items():
        if isinstance(value, dict):
            if key not in commands:
                faults.append(_unknown_setting_fault(key, f"commands: {', '.join(commands)}"))
                continue
            faults += [
                fault
                for name, inner in value.items()
                if (fault := _setting_type_fault(f"{key}.{name}", inner, KEYS.get(name)))
                is not None
            ]
        elif (fault := _setting_type_fault(key, value, (KEYS | SCREEN_KEYS).get(key))) is not None:
            faults.append(fault)
    return faults


def _setting_type_fault(name: str, value: object, expected_type: type | None) -> Fault | None:
    if expected_type is None:
        return _unknown_setting_fault(name, f"settings: {', '.join((*KEYS, *SCREEN_KEYS))}")
    if type(value) is not expected_type:
        wanted = {str: "text in quotes", int: "a whole number", bool: "true or false"}[
            expected_type
        ]
        return Fault(f"{quote_value(name)} is {quote_value(str(value))}.", f"Give {wanted}.")
    return None


def _unknown_setting_fault(name: str, known_names_text: str) -> Fault:
    return Fault(f"There is no setting {quote_value(name)}.", f"The {known_names_text}.")
