"""How a reader repeats a session: the command over the saved study, versions and seeds."""

from __future__ import annotations

from pathlib import PurePath
from shlex import join
from typing import Final

from iolab.report.brief import Brief
from iolab.report.table import Table, columns, row
from iolab.report.wording import NOTHING

WHOLE_SCALE: Final = "full"
"""The scale that need not be asked for."""

INVENTORY_FILE: Final = "hosts.toml"
"""What the inventory is called where the session had one; its text has addresses and logins, so the
report, which travels, leaves it out."""

_PATH: Final = "target.path="


def study_file(brief: Brief) -> str:
    """The name under which a reader saves the study."""
    return f"{brief.study.id}.toml"


def repeat_command(brief: Brief) -> tuple[str, ...]:
    """What to type beside the saved study: its hosts, its scale and all that was set over it."""
    scale = brief.session.scale
    words = ["iolab", "run", study_file(brief)]
    for override in brief.session.overrides:
        if override.startswith(_PATH):
            words += ["--path", override.removeprefix(_PATH)]
        else:
            words += ["--set", override]
    if brief.study.inventory:
        words += ["--hosts", INVENTORY_FILE]
    return (*words, *(("--scale", scale) if scale != WHOLE_SCALE else ()))


def versions_table(brief: Brief) -> Table:
    """Which command, programs and seeds made the numbers."""
    session = brief.session
    rows = [
        row("Command as it was", _as_it_was(session.command)),
        row("iolab", session.iolab_version),
        row("Agent", session.agent_version or NOTHING),
        row("Engine", ", ".join(brief.engine_versions) or NOTHING),
        row("Seed of the order", str(brief.study.method.seed)),
        row("Plan", brief.plan.digest),
    ]
    return Table("Versions", columns(("What", "Which")), tuple(rows))


def _as_it_was(command: tuple[str, ...]) -> str:
    """The command line, its program by name: where it was installed tells nothing."""
    if not command:
        return NOTHING
    return join((PurePath(command[0]).name, *command[1:]))
