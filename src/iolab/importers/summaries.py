"""Runs of tools that print one row of figures for all that they did: one client stands for all."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

from iolab.core.limits import SETTING_CHARACTERS_MAX
from iolab.importers.files import NAME_CHARACTERS, ForeignFile, parse_number, short_distinct_name
from iolab.importers.foreign_run import (
    ForeignRun,
    ImportedClient,
    ImportedClientDetails,
    ImportedRunDetails,
    OperationFigures,
)
from iolab.text import excerpt

LOG_PREFIX: Final = re.compile(r"^\[[^\]]{1,40}\]:? +")
"""What logs of continuous integration put before each line."""


def truncated_names_and_values(values: Mapping[str, str]) -> tuple[tuple[str, str], ...]:
    """The figures as a file has them, cut to a bound."""
    return tuple(
        (excerpt(name, NAME_CHARACTERS), excerpt(value, NAME_CHARACTERS))
        for name, value in values.items()
    )


def parse_scaled_number(text: str | None, factor: float) -> float | None:
    """The number that a text is, times a factor; None for anything else."""
    number = parse_number(text) if text is not None else None
    return None if number is None else number * factor


def summary_row_run(
    details: ImportedRunDetails,
    name: str,
    file_and_line: tuple[ForeignFile, int],
    figures: tuple[OperationFigures, ...],
    settings: Mapping[str, str],
    *,
    ignored_setting_reasons: Mapping[str, str] | None = None,
    errors: tuple[str, ...] = (),
    in_flight: int | None = None,
    indicator: str = "bandwidth",
    client: str = "all clients",
    ended_real_ns: int | None = None,
) -> ForeignRun:
    """A run of the figures of one row, which stands at a line of a file."""
    file, line = file_and_line
    seconds = max((figure.seconds or 0.0 for figure in figures), default=0.0) or None
    host = ImportedClientDetails(f"{file.name}:{line}", figures, errors=errors)
    return ForeignRun(
        name=short_distinct_name(name),
        details=details,
        clients=(ImportedClient(client, host, runtime_s=seconds),),
        settings=tuple(
            (excerpt(key, NAME_CHARACTERS), excerpt(value, SETTING_CHARACTERS_MAX))
            for key, value in settings.items()
            if value
        ),
        ignored_setting_reasons=ignored_setting_reasons or {},
        in_flight=in_flight,
        indicator=indicator,
        ended_real_ns=ended_real_ns,
    )
