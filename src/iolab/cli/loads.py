"""What results say of load, for the terminal: curves, peaks, highest loads under a limit."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from rich.padding import Padding

from iolab.analyse.curves import findings
from iolab.cli.screen import plain, title
from iolab.model.metric import Result
from iolab.model.study import Study
from iolab.report.curves import finding_lines

if TYPE_CHECKING:
    from rich.console import RenderableType


def load_screen(study: Study, results: Sequence[Result]) -> Iterator[RenderableType]:
    """A section of a few sentences; nothing where there is neither a curve nor a search."""
    lines = list(finding_lines(findings(study, results)))
    if not lines:
        return
    yield ""
    yield title("Load")
    for line in lines:
        yield Padding(plain(line), (0, 0, 0, 2))
