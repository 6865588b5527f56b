"""`iolab init`: write a commented study to begin with."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from iolab.cli.options import AsJson


def init(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="The study file to write.")] = Path(
        "study.toml"
    ),
    *,
    as_json: AsJson = False,
) -> None:
    """Write a commented study to begin with."""
    from iolab.cli.files import write_new
    from iolab.cli.talk import result, result_json, say
    from iolab.errors import UsageError
    from iolab.plan.template import study_template
    from iolab.plan.wording import shown

    if file.suffix != ".toml":
        raise UsageError(
            f"{shown(str(file))} does not end in .toml, as a study's file does.",
            f"Write {shown(str(file) + '.toml')}.",
        )
    write_new(file, study_template(file.stem))
    if as_json:
        result_json({"format": 1, "written": str(file)})
        return
    result(str(file))
    say(f"Next: change it, then 'iolab check {file}' and 'iolab plan {file} --path DIR'.")
