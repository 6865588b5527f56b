"""The documentation has every command and option, and shows none that does not exist."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
import typer

from iolab.cli.app import create_app
from iolab.cli.explain import glossary_entries
from tests.site_parts import CHECKS, commands

GROUP = typer.main.get_group(create_app())
ROOT = typer.main.get_command(create_app())
COMMANDS = sorted(GROUP.commands)
PART = commands()
LANGUAGES = ("", "sh", "console", "yaml")
REPOSITORY = Path(__file__).resolve().parents[2]


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


def documented_calls() -> Iterator[tuple[str, list[str]]]:
    """Page and words of every `iolab COMMAND …` in code of the documentation."""
    for page in [REPOSITORY / "README.md", *sorted((REPOSITORY / "docs").rglob("*.md"))]:
        text = page.read_text(encoding="utf-8").replace("\\\n", " ")
        fences = re.findall(r"^ *```(\w*)\n(.*?)^ *```", text, re.M | re.S)
        code = "\n".join(body for language, body in fences if language in LANGUAGES)
        lines = [re.sub(r"(^|\s)#.*", "", line) for line in code.splitlines()]
        prose = re.sub(r"^ *```.*?^ *```", "", text, flags=re.M | re.S)
        spans = [" ".join(span.split()) for span in re.findall(r"`([^`]+)`", prose)]
        for line in (*lines, *(span for span in spans if span.startswith("iolab "))):
            for found in re.finditer(r"(?:^|[\s/;|&])iolab ([a-z]+)( [^|;&>#()]*)?", line):
                yield page.name, [found[1], *(found[2] or "").split()]


def test_the_pages_show_commands_and_options_that_exist() -> None:
    calls = list(documented_calls())
    assert len(calls) > 100
    unknown = [
        f"{page}: iolab {' '.join(words)}"
        for page, words in calls
        if words[0] not in GROUP.commands
        or {word.partition("=")[0] for word in words if re.match(r"--?[a-z]", word)}
        - options(GROUP.commands[words[0]])
        - {"-h", "--help", "--no-color"}
    ]
    assert unknown == []


def test_the_pages_explain_checks_and_words_that_exist() -> None:
    codes = {page.stem for page in CHECKS.glob("*.md")} | set(glossary_entries())
    named = {
        word
        for _, words in documented_calls()
        if words[0] == "explain"
        for word in words[1:]
        if word.islower()
    }
    assert named
    assert named <= codes
