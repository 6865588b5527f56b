"""How the help of a command reads: commands and options in groups, and no types of Python."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Iterator, MutableMapping, Sequence
from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

from typer import Typer
from typer._click import HelpFormatter
from typer._click.shell_completion import CompletionItem
from typer.core import TyperArgument, TyperCommand, TyperGroup
from typer.main import get_command

from iolab.cli.commands import COMMANDS, CliCommand, CommandGroup

if TYPE_CHECKING:
    from typer._click import Command as ClickCommand
    from typer._click import Context

OPTIONS: Final = "Options"
"""The heading of options that belong to no group."""

_NAME_WIDTH: Final = max(len(name) for name in COMMANDS)

_PLAIN_TYPES: Final = {
    "<str>": "TEXT",
    "<int>": "N",
    "<int range>": "N",
    "<float>": "X",
    "<float range>": "X",
}


class CommandsByName(MutableMapping[str, "ClickCommand"]):
    """The commands of the table; the module of one is imported when it is looked up."""

    def __init__(self) -> None:
        self._imported: dict[str, ClickCommand] = {}

    def __getitem__(self, name: str) -> ClickCommand:
        """A command with its options."""
        if name not in self._imported:
            module, function = COMMANDS[name].import_path.split(":")
            app = Typer(add_completion=False, rich_markup_mode=None)
            app.command(name, cls=PlainHelpCommand)(getattr(import_module(module), function))
            self._imported[name] = get_command(app)
        return self._imported[name]

    def __setitem__(self, name: str, command: ClickCommand) -> None:
        """Put another command in place of the table's."""
        self._imported[name] = command

    def __delitem__(self, name: str) -> None:
        """Forget what was imported."""
        self._imported.pop(name, None)

    def __iter__(self) -> Iterator[str]:
        """The names, in the order of the help."""
        return iter(COMMANDS)

    def __len__(self) -> int:
        """How many commands there are."""
        return len(COMMANDS)


class GroupedCommands(TyperGroup):
    """The app's help: each group of commands under its heading, of one screen.

    Names and summaries are those of the table, so that neither help nor completion imports a
    command.
    """

    def __init__(self, **attrs: Any) -> None:  # noqa: ANN401 - as TyperGroup has it
        super().__init__(**attrs)
        self.commands = CommandsByName()

    def format_help(self, ctx: Context, formatter: HelpFormatter) -> None:
        """Write the usual commands with their summaries, the names of the others, the options."""
        self.format_usage(ctx, formatter)
        self.format_help_text(ctx, formatter)
        formatter.write_paragraph()
        for group, commands in commands_by_group().items():
            usual = [command for command in commands if command.is_common]
            others = [command.name for command in commands if not command.is_common]
            _write_group(formatter, group, usual, others)
        formatter.write_heading(OPTIONS)
        # Those of the help come in an order that differs from process to process.
        names = ", ".join(max(parameter.opts, key=len) for parameter in self.get_params(ctx))
        for line in textwrap.wrap(names, formatter.width - 2, break_on_hyphens=False):
            formatter.write(f"  {line}\n")
        self.format_epilog(ctx, formatter)

    def shell_complete(self, ctx: Context, incomplete: str) -> list[CompletionItem]:
        """What the shell offers for the name of a command, or for an option before it."""
        if incomplete.startswith("-"):
            return super().shell_complete(ctx, incomplete)
        return [
            CompletionItem(name, help=command.summary)
            for name, command in COMMANDS.items()
            if name.startswith(incomplete)
        ]


def commands_by_group() -> dict[CommandGroup, list[CliCommand]]:
    """Every command of the table under its heading, in the order of the help."""
    return {
        group: [command for command in COMMANDS.values() if command.group is group]
        for group in CommandGroup
    }


def command_list_text() -> str:
    """Every command with its summary, in groups."""
    formatter = HelpFormatter()
    for group, commands in commands_by_group().items():
        _write_group(formatter, group, commands)
    return formatter.getvalue().rstrip()


def _write_group(
    formatter: HelpFormatter,
    group: CommandGroup,
    commands: Iterable[CliCommand],
    other_names: Sequence[str] = (),
) -> None:
    """Write a heading, the commands with their summaries, and a line of other names."""
    formatter.write_heading(group.value)
    with formatter.indentation():
        # Names are as wide in every group.
        formatter.write_dl(
            [(command.name.ljust(_NAME_WIDTH), command.summary) for command in commands]
        )
        if other_names:
            formatter.write_text(f"Also: {', '.join(other_names)}")


class PlainHelpCommand(TyperCommand):
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
                options.setdefault(heading, []).append(
                    (usage_with_plain_types(record[0]), record[1])
                )
        for heading, rows in ({"Arguments": arguments} | _move_unnamed_group_last(options)).items():
            if rows:
                with formatter.section(heading):
                    formatter.write_dl(rows)


def usage_with_plain_types(option_usage: str) -> str:
    """An option as `--depth N`, where typer would write `--depth <int range>`."""
    for python, plain in _PLAIN_TYPES.items():
        option_usage = option_usage.replace(python, plain)
    return option_usage


def _move_unnamed_group_last(
    options_by_group: dict[str, list[tuple[str, str]]],
) -> dict[str, list[tuple[str, str]]]:
    """The groups with that of no heading of its own at the end."""
    general = options_by_group.pop(OPTIONS, [])
    return {**options_by_group, OPTIONS: general}
