"""`iolab import`: a session of what other tools wrote, and what it is worth."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from iolab.cli.options import AsJson

UNKNOWN_SHOWN = 20
"""Files that no format knows are named up to so many, then counted."""


def import_(
    files: Annotated[
        list[Path],
        typer.Argument(
            metavar="FILE...",
            help="What another tool wrote, or a folder of it: fio JSON or json+, mdtest, IOR, "
            "IO500, elbencho CSV, db_bench, YCSB, vdbench, diskspd XML.",
            show_default=False,
        ),
    ],
    *,
    out: Annotated[
        Path,
        typer.Option("--out", metavar="DIR", help="The new session directory."),
    ],
    configuration: Annotated[
        str,
        typer.Option(
            "--configuration",
            metavar="ID",
            help="The configuration that the results are of.",
        ),
    ] = "imported",
    as_json: AsJson = False,
) -> None:
    """Read results of other tools into a session, and judge them."""
    from iolab.analysis.kinds import judge
    from iolab.cli.kinds import analyses
    from iolab.cli.output import open_session, result_json, say
    from iolab.cli.show import print_session
    from iolab.core.host import HostFacts
    from iolab.errors import Fault, UsageError
    from iolab.importers.files import read_all
    from iolab.importers.registry import IMPORTERS
    from iolab.importers.session import arrange, write

    found = read_all(files, IMPORTERS)
    faults = list(found.faults)
    if not found.runs and not faults:
        faults.append(Fault("No file there is in a format that is known.", "Name others."))
    if faults:
        raise UsageError(
            "These files cannot be imported, and nothing was written.",
            "Name only files that can.",
            tuple(faults),
        )
    for fault in found.left_out:
        say(f"Not read: {fault.happened}")
    for file in found.unknown[:UNKNOWN_SHOWN]:
        say(f"Not read, in no format that is known: {file.name}")
    if len(found.unknown) > UNKNOWN_SHOWN:
        say(f"and {len(found.unknown) - UNKNOWN_SHOWN} more.")
    session = arrange(found.runs, configuration=configuration, title=configuration)
    facts: dict[str, HostFacts] = {}
    write(session, out, sys.argv, lambda record: judge(record, facts, analyses()))
    if as_json:
        result_json(
            {
                "format": 1,
                "session": str(out),
                "runs": len(session.runs),
                "unknown": [file.name for file in found.unknown],
            }
        )
        return
    reader = open_session(out)
    print_session(reader, reader.study, reader.results())
