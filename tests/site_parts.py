"""Parts of the documentation's site that are made of the code, so that nobody keeps them by hand.

A page has a short form of each between `<!-- site: NAME -->` and `<!-- end -->`; `make docs` puts
the part in its place. `python -m tests.site_parts FOLDER` writes them.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Final

import typer

from iolab.cli.app import create_app
from iolab.core.engine import EngineOption
from iolab.loads.fileio.options import FIO_OPTIONS, FioOption
from iolab.loads.keyvalue.table import DB_BENCH_OPTIONS, YCSB_OPTIONS

ROOT: Final = Path(__file__).resolve().parents[1]
CHECKS: Final = ROOT / "docs" / "reference" / "checks"
PLACE: Final = re.compile(r"^<!-- site: (\S+) -->\n(.*?)^<!-- end -->$", re.M | re.S)


def cell(text: str) -> str:
    """Text as it stands in a cell of a table."""
    return " ".join(text.split()).replace("|", r"\|").replace("<", "&lt;").replace(">", "&gt;")


def table(heads: Iterable[str], rows: Iterable[Iterable[str]]) -> str:
    """A table of Markdown."""
    heads = list(heads)
    lines = [heads, ["---"] * len(heads), *(list(row) for row in rows)]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


def commands() -> str:
    """Every command with its arguments and options, from its own help."""
    group = typer.main.get_group(create_app())
    overview = table(
        ("command", "does"),
        ([f"[`{name}`](#iolab-{name})", cell(one.get_short_help_str(200))] for name, one in
         group.commands.items()),
    )  # fmt: skip
    sections = [overview]
    for name, command in group.commands.items():
        context = typer.Context(command, info_name=f"iolab {name}", **group.context_settings)
        usage = " ".join(command.collect_usage_pieces(context)[1:])
        rows = [
            [f"`{record[0]}`", cell(record[1])]
            for parameter in command.get_params(context)
            if (record := parameter.get_help_record(context)) and "--help" not in record[0]
        ]
        about = "\n\n".join(" ".join(part.split()) for part in (command.help or "").split("\n\n"))
        sections.append(
            f"### iolab {name}\n\n`iolab {name} {usage}`\n\n{about}\n\n"
            + table(("option", "means"), rows)
        )
    return "\n".join(sections)


def checks() -> str:
    """Every check with its title, and the planted fault that it alone finds."""
    from tests.analysis.planted import PLANTED

    faults: dict[str, list[tuple[str, str]]] = {}
    for one in PLANTED:
        faults.setdefault(one.code, []).append((one.fault, one.level))
    return table(
        ("check", "title", "the planted fault", "verdict"),
        (
            [f"[{page.stem}](checks/{page.stem}.md)", title(page), cell(fault), level]
            for page in sorted(CHECKS.glob("*.md"))
            for fault, level in faults.get(page.stem, [("–", "–")])
        ),
    )


def title(page: Path) -> str:
    """The heading of a check's page."""
    return page.read_text(encoding="utf-8").partition("\n")[0].removeprefix("# ")


def options(known: Mapping[str, EngineOption]) -> str:
    """The options of an engine that a study may set."""

    def rows() -> Iterator[list[str]]:
        for option in known.values():
            only = ", ".join(option.ioengines) if isinstance(option, FioOption) else ""
            meaning = f"{option.meaning} (only {only})" if only else option.meaning
            yield [f"`{option.name}`", cell(meaning), f"`{option.example}`"]

    return table(("option", "meaning", "example"), rows())


def parts() -> dict[str, str]:
    """Every part by its name."""
    return {
        "commands": commands(),
        "checks": checks(),
        "options-fio": options(FIO_OPTIONS),
        "options-db_bench": options(DB_BENCH_OPTIONS),
        "options-ycsb": options(YCSB_OPTIONS),
    }


def main(folder: Path) -> None:
    """Write every part into the folder."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in parts().items():
        (folder / f"{name}.md").write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
