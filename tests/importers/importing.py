"""Import recorded files the way the command does, and judge what comes of it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from iolab.core.metric import RunResult, VerdictLevel
from iolab.core.run import RunRecord
from iolab.importers.files import ImportOutcome, read_foreign_files
from iolab.importers.registry import IMPORTERS
from iolab.importers.session import build_imported_run_record, plan_imported_session
from tests.judging import judge
from tests.recorded import recorded

Edit = Callable[[str], str]

LEVELS = {VerdictLevel.INDICATIVE: "indicative", VerdictLevel.INVALID: "invalid"}


def lay_down(folder: Path, *names: str, edit: Edit | None = None) -> list[Path]:
    """Recorded files, `tool/file`, in a folder; the first of them edited."""
    paths: list[Path] = []
    for name in names:
        path = folder / Path(name).name
        content = recorded(name)
        if edit is not None and not paths:
            before = content.decode()
            after = edit(before)
            assert after != before
            content = after.encode()
        path.write_bytes(content)
        paths.append(path)
    return paths


def found_in(
    folder: Path, *names: str, edit: Edit | None = None, beside: Sequence[Path] = ()
) -> ImportOutcome:
    """What the importers find in such files, with others beside them."""
    return read_foreign_files([*lay_down(folder, *names, edit=edit), *beside], IMPORTERS)


def records(
    folder: Path, *names: str, edit: Edit | None = None, beside: Sequence[Path] = ()
) -> list[RunRecord]:
    """The runs in such files, which have no fault."""
    found = found_in(folder, *names, edit=edit, beside=beside)
    assert not found.faults
    session = plan_imported_session(found.runs, configuration_id="imported", title="imported")
    return [build_imported_run_record(one) for one in session.runs]


def results(
    folder: Path, *names: str, edit: Edit | None = None, beside: Sequence[Path] = ()
) -> Mapping[str, RunResult]:
    """Their results, by workload and point."""
    judged = [judge(one, {}) for one in records(folder, *names, edit=edit, beside=beside)]
    return {_label(one): one for one in judged}


def _label(result: RunResult) -> str:
    axis = " ".join(f"{name}={value}" for name, value in result.axis_values)
    repeat = f" #{result.repeat}" if result.repeat > 1 else ""
    return f"{result.workload} {axis}".strip() + repeat


def objections(result: RunResult) -> dict[str, str]:
    """The level of each check that objects, but for what is so of every import."""
    return {
        one.code: LEVELS[one.level]
        for one in result.verdict.objections
        if one.level is not None and one.code != "imported-evidence"
    }


def value(result: RunResult, key: str) -> float | None:
    """A metric's value."""
    metric = result.metrics.get(key)
    return None if metric is None else metric.value
