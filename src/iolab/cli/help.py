"""How the help of a command reads: commands and options in groups, and no types of Python."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Final

from typer.core import TyperArgument, TyperCommand, TyperGroup

if TYPE_CHECKING:
    from typer._click import Context, HelpFormatter

OPTIONS: Final = "Options"
"""The heading of options that belong to no group."""

GROUPS: Final[Mapping[str, Sequence[str]]] = {
    "Measure": ("init", "check", "plan", "run", "bench", "demo", "resume", "studies"),
    "Read results": (
        *("ls", "show", "explain", "report", "compare", "history", "predict", "choose"),
        *("export", "serve", "rm"),
    ),
    "Hosts": ("doctor", "clean", "calibrate"),
    "Results of others": ("import", "reference", "audit"),
}
"""Every command below the heading that the help has it under, in their order."""

_PLAIN_TYPES: Final = {
    "<str>": "TEXT",
    "<int>": "N",
    "<int range>": "N",
    "<float>": "X",
    "<float range>": "X",
}


class GroupedCommands(TyperGroup):
    """The app's help: each group of commands under its heading."""

    def format_commands(self, ctx: Context, formatter: HelpFormatter) -> None:
        """Write the groups; a command that is in none is a bug, which a test finds."""
        names = self.list_commands(ctx)
        width = max(len(name) for name in names)
        limit = formatter.width - 6 - width
        for heading, members in GROUPS.items():
            rows = [
                (name.ljust(width), self.commands[name].get_short_help_str(limit))
                for name in members
                if name in names
            ]
            if rows:
                with formatter.section(heading):
                    formatter.write_dl(rows)


class PlainCommand(TyperCommand):
    """A command's help: arguments by their names alone, options under the headings they have."""

    def format_options(self, ctx: Context, formatter: HelpFormatter) -> None:
        """Write the arguments, then each group of options."""
        arguments: list[tuple[str, str]] = []
        options: dict[str, list[tuple[str, str]]] = {}
        for parameter in self.get_params(ctx):
            record = parameter.get_help_record(ctx)
            if record is None:
                continue
            if isinstance(parameter, TyperArgument):
                arguments.append((parameter.display_name_raw, record[1]))
            else:
                heading = getattr(parameter, "rich_help_panel", None) or OPTIONS
                options.setdefault(heading, []).append((_plain_types(record[0]), record[1]))
        for heading, rows in ({"Arguments": arguments} | _general_last(options)).items():
            if rows:
                with formatter.section(heading):
                    formatter.write_dl(rows)


def _plain_types(option: str) -> str:
    """An option as `--depth N`, where typer would write `--depth <int range>`."""
    for python, plain in _PLAIN_TYPES.items():
        option = option.replace(python, plain)
    return option


def _general_last(
    options: dict[str, list[tuple[str, str]]],
) -> dict[str, list[tuple[str, str]]]:
    """The groups with that of no heading of its own at the end."""
    general = options.pop(OPTIONS, [])
    return {**options, OPTIONS: general}
