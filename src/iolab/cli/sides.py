"""Sessions named on the command line to be compared: `DIR` or `DIR:CONFIGURATION`."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from iolab.analyse.differences import Difference
    from iolab.analyse.side import Side
    from iolab.errors import Fault


def open_side(name: str) -> Side:
    """The side that a command line names; StoreError or UsageError where it is none."""
    from iolab.analyse.side import read_side
    from iolab.store.reader import SessionReader

    directory, configuration = split_name(name)
    return read_side(name, SessionReader(directory), configuration)


def split_name(name: str) -> tuple[Path, str | None]:
    """The directory and the configuration; a directory whose name has a colon is taken whole."""
    whole, (front, colon, last) = Path(name), name.rpartition(":")
    if not colon or not front or whole.exists():
        return whole, None
    return Path(front), last


def refuse_unlike(found: Iterable[Difference], candidate: str) -> None:
    """UsageError with every difference given, which forbid comparing the candidate; else silent."""
    from iolab.errors import UsageError
    from iolab.plan.wording import shown

    faults = tuple(map(_fault, found))
    if faults:
        raise UsageError(
            f"The session {shown(candidate)} was not measured in the same way.",
            "Measure both alike, or give --allow-differences to compare them all the same.",
            faults,
        )


def refuse_apart(found: Iterable[tuple[str, Difference]]) -> None:
    """UsageError with every difference given that forbids one report on sessions, by their labels.

    Silent where there is none.
    """
    from iolab.cli.screen import one_line
    from iolab.errors import UsageError

    faults = tuple(_fault(one, f"{one_line(label)}: ") for label, one in found)
    if faults:
        raise UsageError(
            "The sessions were not all measured in the same way as the first one.",
            "Report on those that were, or give --allow-differences to set them side by side.",
            faults,
        )


def check_names(sides: Sequence[Side], workloads: Sequence[str], metrics: Sequence[str]) -> None:
    """UsageError for workloads and metrics that there are none of, all at once."""
    from iolab.analyse.key_value.summary import KEY_VALUE_UNITS
    from iolab.analyse.metadata.summary import METADATA_UNITS
    from iolab.analyse.service import SERVICE_TRIM_UNITS, SERVICE_UNITS
    from iolab.analyse.summary import METRIC_UNITS, TRIM_UNITS
    from iolab.errors import Fault, UsageError
    from iolab.plan.wording import shown, suggestion

    ids = list(dict.fromkeys(one.id for side in sides for one in side.study.workloads))
    keys = [*METRIC_UNITS, *TRIM_UNITS, *SERVICE_UNITS, *SERVICE_TRIM_UNITS]
    keys += [*METADATA_UNITS, *KEY_VALUE_UNITS]
    wanted = [("workload", name, ids) for name in workloads]
    wanted += [("metric", name, keys) for name in metrics]
    faults = tuple(
        Fault(f"There is no {what} {shown(name)}.", suggestion(name, known, f"{what}s"))
        for what, name, known in wanted
        if name not in known
    )
    if faults:
        raise UsageError("Not everything that was asked for is there.", "Correct it.", faults)


def _fault(one: Difference, whose: str = "") -> Fault:
    from iolab.cli.screen import one_line
    from iolab.errors import Fault

    return Fault(f"{whose}{one_line(str(one))}.".replace("..", "."), "They must be the same.")
