"""Every command in one table: what it runs, where the help has it, what it needs of the process.

The app, the help, the pager, the limits on memory, completion and the man page read it. It imports
next to nothing, as it is read before anything else: a command's module is imported when it runs.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum
from typing import Final, NamedTuple


class CommandGroup(Enum):
    """The headings of the help, in their order."""

    MEASURE = "Measure"
    READ = "Read results"
    HOSTS = "Hosts"
    OTHERS = "Results of others"


class CommandKind(Enum):
    """What a command does, which decides how it meets limits on memory."""

    READS = "reads"
    """It runs in a child process under a limit, and prints that it works when it is slow."""
    MAKES_LOAD = "makes load"
    """It makes load, whose processes must be children of the one that the user sees."""
    OTHER = "other"


class CliCommand(NamedTuple):
    """A command: `import_path` is `module:name`, `summary` the first line of its help.

    With `is_common` the short help explains it, which names the others; with `is_paged` its output
    may go through a pager.
    """

    name: str
    import_path: str
    summary: str
    group: CommandGroup
    kind: CommandKind = CommandKind.OTHER
    is_common: bool = False
    is_paged: bool = False


_TABLE: Final = (
    CliCommand(
        "init",
        "iolab.cli.plan:init",
        "Write a commented study to begin with.",
        CommandGroup.MEASURE,
        is_common=True,
    ),
    CliCommand(
        "check",
        "iolab.cli.plan:check",
        "Check a study file without hosts.",
        CommandGroup.MEASURE,
        CommandKind.READS,
        is_common=True,
    ),
    CliCommand(
        "plan",
        "iolab.cli.plan:plan",
        "Show what a study would run, write and need, and for how long.",
        CommandGroup.MEASURE,
        CommandKind.READS,
        is_common=True,
        is_paged=True,
    ),
    CliCommand(
        "run",
        "iolab.cli.run:run",
        "Measure a study into a session.",
        CommandGroup.MEASURE,
        CommandKind.MAKES_LOAD,
        is_common=True,
    ),
    CliCommand(
        "bench",
        "iolab.cli.bench:bench",
        "Compare directories under one load, without a study.",
        CommandGroup.MEASURE,
        CommandKind.MAKES_LOAD,
        is_common=True,
    ),
    CliCommand(
        "demo",
        "iolab.cli.run:demo",
        "Measure this directory for some minutes, as an example.",
        CommandGroup.MEASURE,
        CommandKind.MAKES_LOAD,
    ),
    CliCommand(
        "resume",
        "iolab.cli.run:resume",
        "Measure the missing and failed runs of a session.",
        CommandGroup.MEASURE,
        CommandKind.MAKES_LOAD,
    ),
    CliCommand(
        "studies",
        "iolab.cli.plan:studies",
        "List the bundled studies.",
        CommandGroup.MEASURE,
        CommandKind.READS,
    ),
    CliCommand(
        "ls",
        "iolab.cli.sessions:ls",
        "List the sessions below a directory, each with its answer.",
        CommandGroup.READ,
        is_common=True,
        is_paged=True,
    ),
    CliCommand(
        "show",
        "iolab.cli.show:show",
        "Show the results of a session, also of a running one.",
        CommandGroup.READ,
        CommandKind.READS,
        is_common=True,
        is_paged=True,
    ),
    CliCommand(
        "explain",
        "iolab.cli.explain:explain",
        "Explain a check, or a word of the results.",
        CommandGroup.READ,
        CommandKind.READS,
        is_paged=True,
    ),
    CliCommand(
        "report",
        "iolab.cli.report:report",
        "Write the report of sessions as HTML, PDF or Markdown.",
        CommandGroup.READ,
        CommandKind.READS,
        is_common=True,
    ),
    CliCommand(
        "compare",
        "iolab.cli.compare:compare",
        "Compare two sessions, or the configurations of one.",
        CommandGroup.READ,
        CommandKind.READS,
        is_common=True,
        is_paged=True,
    ),
    CliCommand(
        "history",
        "iolab.cli.compare:history",
        "Find where results changed over many sessions.",
        CommandGroup.READ,
        CommandKind.READS,
        is_paged=True,
    ),
    CliCommand(
        "predict",
        "iolab.cli.predict:predict",
        "Predict the rate at a load that was not measured.",
        CommandGroup.READ,
        CommandKind.READS,
    ),
    CliCommand(
        "choose",
        "iolab.cli.choose:choose",
        "Rank configurations against a need.",
        CommandGroup.READ,
        CommandKind.READS,
    ),
    CliCommand(
        "export",
        "iolab.cli.exchange:export",
        "Print or write the results for other programs.",
        CommandGroup.READ,
        CommandKind.READS,
    ),
    CliCommand(
        "serve",
        "iolab.cli.serve:serve",
        "Show sessions in a browser, also running ones.",
        CommandGroup.READ,
    ),
    CliCommand(
        "rm",
        "iolab.cli.sessions:rm",
        "Remove sessions: all that was measured in them.",
        CommandGroup.READ,
    ),
    CliCommand(
        "doctor",
        "iolab.cli.doctor.command:doctor",
        "Check whether this machine, or a fleet, is ready to measure.",
        CommandGroup.HOSTS,
        is_common=True,
        is_paged=True,
    ),
    CliCommand(
        "clean",
        "iolab.cli.clean:clean",
        "Remove what killed sessions left, after a question.",
        CommandGroup.HOSTS,
    ),
    CliCommand(
        "calibrate",
        "iolab.cli.calibrate:calibrate",
        "Compare the native engine with fio on a target.",
        CommandGroup.HOSTS,
        CommandKind.MAKES_LOAD,
    ),
    CliCommand(
        "import",
        "iolab.cli.exchange:import_",
        "Read results of other tools into a session, and judge them.",
        CommandGroup.OTHERS,
        CommandKind.READS,
        is_common=True,
    ),
    CliCommand(
        "reference",
        "iolab.cli.reference:reference",
        "Show the published results that come with iolab.",
        CommandGroup.OTHERS,
        CommandKind.READS,
        is_paged=True,
    ),
    CliCommand(
        "audit",
        "iolab.cli.reference:audit",
        "Check whether the figures of a set of results agree.",
        CommandGroup.OTHERS,
        CommandKind.READS,
        is_paged=True,
    ),
)

COMMANDS: Final = {command.name: command for command in _TABLE}
"""By name, in the order of the help."""


def command_from_argv(argv: Sequence[str]) -> CliCommand | None:
    """The command that a command line names first; None where it names none."""
    return COMMANDS.get(argv[0]) if argv else None
