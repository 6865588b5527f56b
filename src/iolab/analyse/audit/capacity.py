"""Rules of what hardware adds up to: modules, drives, nodes, and figures per terabyte."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import pairwise
from typing import Any

from iolab.analyse.against.given import given_capacities, given_quotients
from iolab.analyse.audit.document import MODULES, Published, label
from iolab.analyse.audit.figure import Span, exact
from iolab.analyse.audit.outcome import Outcome
from iolab.analyse.audit.relation import agreement, compared, number


def modules(published: Published) -> Iterator[Outcome]:
    """`8x 32GB (256GB)`: the modules and their total, and the same total stated elsewhere."""
    for table in (*published.tables("configuration"), published.table("hardware")):
        for name, text in table.items():
            found = MODULES.search(text) if isinstance(text, str) else None
            if found is None or found[5] is None:
                continue
            made = exact(int(found[1]) * float(found[3]))
            subject = ", ".join(part for part in (label(table), name) if part)
            yield compared("modules", subject, f"{found[5]} GB", exact(int(found[5])), made, "GB")
            yield from _said_again(subject, name, made, table)


def _said_again(subject: str, name: str, made: Span, table: Mapping[str, Any]) -> Iterator[Outcome]:
    """Another key that begins with the same word and tells a total alone."""
    for other, text in table.items():
        alone = isinstance(text, str) and text.removesuffix("GB").isdecimal()
        if other != name and other.startswith(f"{name}_") and alone:
            stated = exact(int(text.removesuffix("GB")))
            said = f"{text.removesuffix('GB')} GB ({other.replace('_', ' ')})"
            yield compared("modules", subject, said, stated, made, "GB")


def raw_capacity(published: Published) -> Iterator[Outcome]:
    """Nodes times drives times the size of one."""
    for one in given_capacities(published):
        yield compared("raw-capacity", one.subject, f"{one.said} TB", one.stated, one.bounds, "TB")


def per_terabyte(published: Published) -> Iterator[Outcome]:
    """Figures per node and per terabyte against what they were derived from."""
    for one in given_quotients(published):
        if one.computed is not None:
            said = f"{one.said} ({one.what})"
            yield compared("per-terabyte", one.subject, said, one.stated, one.bounds, one.unit)


def ranks(published: Published) -> Iterator[Outcome]:
    """The processes and files of a command line against the same in its description."""
    told = published.table("metadata")
    words = str(told.get("command_shape", "")).split()
    flags = {a: b for a, b in pairwise(words) if b.isdecimal()}
    options = told.get("options", {})
    pairs = (
        ("-np", told.get("ranks"), "processes"),
        ("-n", told.get("files_per_rank"), "files a process"),
        ("-N", options.get("rank_shift") if isinstance(options, dict) else None, "shifted by"),
    )
    for flag, stated, what in pairs:
        if flag in flags and (given := number(stated)) is not None:
            says = agreement(exact(given), exact(int(flags[flag])))
            sentence = f"The command has {flag} {flags[flag]}, the description {given:g} ({what})."
            yield Outcome("command", "metadata", says, sentence, f"{given:g}", flags[flag])
    count, clients = number(told.get("ranks")), number(told.get("clients"))
    if count and clients and "-N" in flags:
        made = exact(clients * int(flags["-N"]))
        yield compared("command", "metadata", f"{count:g} ranks", exact(count), made, "ranks")
