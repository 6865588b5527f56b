"""An inventory written from hosts that a launcher named, so that a session can keep it as text."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping

from iolab.plan.study_file import FORMAT


def inventory_text(origin: str, hosts: Iterable[Mapping[str, str | int | list[str]]]) -> str:
    """The TOML of an inventory with these `[[host]]` tables; `origin`, one line, heads it.

    The values must be printable: what JSON escapes in such text, TOML reads the same way.
    """
    lines = [f"# {origin}", f"format = {FORMAT}"]
    for host in hosts:
        lines += ["", "[[host]]"]
        lines += [f"{key} = {json.dumps(value, ensure_ascii=False)}" for key, value in host.items()]
    return "\n".join((*lines, ""))
