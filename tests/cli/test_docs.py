"""The site's list of commands has every command and option, each with an explanation."""

from __future__ import annotations

import re

import pytest
import typer

from iolab.cli.app import create_app
from tests.site_parts import commands

GROUP = typer.main.get_group(create_app())
ROOT = typer.main.get_command(create_app())
COMMANDS = sorted(GROUP.commands)
PART = commands()


def section(name: str) -> str:
    found = re.search(rf"^### iolab {name}\n(.*?)(?=^### |\Z)", PART, re.M | re.S)
    assert found, name
    return found[1]


def documented(text: str) -> set[str]:
    """The options in the first column of a section's table."""
    cells = [line.split("|")[1] for line in text.splitlines() if line.startswith("| `-")]
    return {option for cell in cells for option in re.findall(r"(?<![\w-])--?[a-z][a-z-]*", cell)}


def options(command: object) -> set[str]:
    context = typer.Context(command, **GROUP.context_settings)  # type: ignore[arg-type]
    parameters = command.get_params(context)  # type: ignore[attr-defined]
    return {
        option
        for parameter in parameters
        for option in (*parameter.opts, *parameter.secondary_opts)
        if option.startswith("-")
    }


def test_the_list_has_every_command() -> None:
    assert sorted(re.findall(r"^### iolab (\w+)$", PART, re.M)) == COMMANDS
    assert sorted(re.findall(r"^\| \[`(\w+)`\]\(#iolab-\1\)", PART, re.M)) == COMMANDS


@pytest.mark.parametrize("name", COMMANDS)
def test_it_has_every_option(name: str) -> None:
    expected = options(GROUP.commands[name]) - {"-h", "--help"}
    assert documented(section(name)) == expected
    assert len(expected) >= 1


@pytest.mark.parametrize("name", COMMANDS)
def test_every_option_and_argument_explains_itself(name: str) -> None:
    command = GROUP.commands[name]
    assert command.help
    context = typer.Context(command)
    silent = [
        parameter.name
        for parameter in command.get_params(context)
        if not getattr(parameter, "help", None)
    ]
    assert not silent
