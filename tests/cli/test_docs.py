"""docs/reference/cli.md names every command and option, and no other."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import typer

from iolab.cli.app import app

PAGE = (Path(__file__).parents[2] / "docs" / "reference" / "cli.md").read_text(encoding="utf-8")
GROUP = typer.main.get_group(app)
ROOT = typer.main.get_command(app)
COMMANDS = sorted(GROUP.commands)


def section(heading: str) -> str:
    found = re.search(rf"^## {re.escape(heading)}\n(.*?)(?=^## |\Z)", PAGE, re.M | re.S)
    assert found, heading
    return found[1]


def documented(text: str) -> set[str]:
    """The options in the first column of a section's tables."""
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


def test_the_page_names_every_command() -> None:
    assert sorted(re.findall(r"^## iolab (\w+)$", PAGE, re.M)) == COMMANDS


def test_the_overview_lists_every_command() -> None:
    assert sorted(re.findall(r"^\| \[`(\w+)`\]\(#iolab-\1\)", PAGE, re.M)) == COMMANDS


@pytest.mark.parametrize("name", COMMANDS)
def test_the_page_names_every_option(name: str) -> None:
    expected = options(GROUP.commands[name]) - {"-h", "--help"}
    assert documented(section(f"iolab {name}")) == expected
    assert len(expected) >= 1


def test_the_page_names_the_options_of_all_commands() -> None:
    assert documented(section("iolab")) == options(ROOT)


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
