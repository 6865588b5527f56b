"""Every command in one table: what it runs, where the help has it, what it needs of the process.

The app, the help, the pager, the limits on memory, completion and the man page read it. It imports
next to nothing, as it is read before anything else.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum
from typing import Final, NamedTuple


class Group(Enum):
    """The headings of the help, in their order."""

    MEASURE = "Measure"
    READ = "Read results"
    HOSTS = "Hosts"
    OTHERS = "Results of others"


class Work(Enum):
    """What a command does, which decides how it meets limits on memory."""

    READS = "reads"
    """It runs in a child process under a limit, and prints that it works when it is slow."""
    LOADS = "loads"
    """It makes load, whose processes must be children of the one that the user sees."""
    OTHER = "other"


class Command(NamedTuple):
    """A command: `function` is `module:name`; with `is_paged` its output may go through a pager."""

    name: str
    function: str
    group: Group
    work: Work = Work.OTHER
    is_paged: bool = False


_TABLE: Final = (
    Command("init", "iolab.cli.plan:init", Group.MEASURE),
    Command("check", "iolab.cli.plan:check", Group.MEASURE, Work.READS),
    Command("plan", "iolab.cli.plan:plan", Group.MEASURE, Work.READS, is_paged=True),
    Command("run", "iolab.cli.run:run", Group.MEASURE, Work.LOADS),
    Command("bench", "iolab.cli.bench:bench", Group.MEASURE, Work.LOADS),
    Command("demo", "iolab.cli.run:demo", Group.MEASURE, Work.LOADS),
    Command("resume", "iolab.cli.run:resume", Group.MEASURE, Work.LOADS),
    Command("studies", "iolab.cli.plan:studies", Group.MEASURE, Work.READS),
    Command("ls", "iolab.cli.sessions:ls", Group.READ, is_paged=True),
    Command("show", "iolab.cli.show:show", Group.READ, Work.READS, is_paged=True),
    Command("explain", "iolab.cli.show:explain", Group.READ, Work.READS, is_paged=True),
    Command("report", "iolab.cli.report:report", Group.READ, Work.READS),
    Command("compare", "iolab.cli.compare:compare", Group.READ, Work.READS, is_paged=True),
    Command("history", "iolab.cli.compare:history", Group.READ, Work.READS, is_paged=True),
    Command("predict", "iolab.cli.predict:predict", Group.READ, Work.READS),
    Command("choose", "iolab.cli.choose:choose", Group.READ, Work.READS),
    Command("export", "iolab.cli.exchange:export", Group.READ, Work.READS),
    Command("serve", "iolab.cli.serve:serve", Group.READ),
    Command("rm", "iolab.cli.sessions:rm", Group.READ),
    Command("doctor", "iolab.cli.doctor.command:doctor", Group.HOSTS, is_paged=True),
    Command("clean", "iolab.cli.clean:clean", Group.HOSTS),
    Command("calibrate", "iolab.cli.calibrate:calibrate", Group.HOSTS, Work.LOADS),
    Command("import", "iolab.cli.exchange:import_", Group.OTHERS, Work.READS),
    Command("reference", "iolab.cli.reference:reference", Group.OTHERS, Work.READS, is_paged=True),
    Command("audit", "iolab.cli.reference:audit", Group.OTHERS, Work.READS, is_paged=True),
)

COMMANDS: Final = {command.name: command for command in _TABLE}
"""By name, in the order of the help."""


def command_of(argv: Sequence[str]) -> Command | None:
    """The command that a command line names first; None where it names none."""
    return COMMANDS.get(argv[0]) if argv else None
