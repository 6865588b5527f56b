"""How the help of a command reads: commands and options in groups, and no types of Python."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from typer.core import TyperArgument, TyperCommand, TyperGroup

from iolab.cli.commands import COMMANDS, Group

if TYPE_CHECKING:
    from typer._click import Context, HelpFormatter

OPTIONS: Final = "Options"
"""The heading of options that belong to no group."""

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
        """Write the groups, each under its heading."""
        names = self.list_commands(ctx)
        width = max(len(name) for name in names)
        limit = formatter.width - 6 - width
        for group in Group:
            rows = [
                (name.ljust(width), self.commands[name].get_short_help_str(limit))
                for name, command in COMMANDS.items()
                if name in names and command.group is group
            ]
            if rows:
                with formatter.section(group.value):
                    formatter.write_dl(rows)


class PlainCommand(TyperCommand):
    """A command's help: arguments by their names alone, options under the headings they have."""

    def collect_usage_pieces(self, ctx: Context) -> list[str]:
        """`[OPTIONS] STUDY`: what may be left out is in brackets."""
        pieces = ["[OPTIONS]"]
        for parameter in self.get_params(ctx):
            if isinstance(parameter, TyperArgument):
                name = parameter.display_name_raw
                more = "..." if parameter.nargs != 1 else ""
                pieces.append(f"{name}{more}" if parameter.required else f"[{name}]{more}")
        return pieces

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
                options.setdefault(heading, []).append((plain_option_usage(record[0]), record[1]))
        for heading, rows in (
            {"Arguments": arguments} | _groups_with_general_last(options)
        ).items():
            if rows:
                with formatter.section(heading):
                    formatter.write_dl(rows)


def plain_option_usage(option: str) -> str:
    """An option as `--depth N`, where typer would write `--depth <int range>`."""
    for python, plain in _PLAIN_TYPES.items():
        option = option.replace(python, plain)
    return option


def _groups_with_general_last(
    options: dict[str, list[tuple[str, str]]],
) -> dict[str, list[tuple[str, str]]]:
    """The groups with that of no heading of its own at the end."""
    general = options.pop(OPTIONS, [])
    return {**options, OPTIONS: general}
