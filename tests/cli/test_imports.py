"""What commands leave alone until they need it: a check computes nothing, results need no study."""

from __future__ import annotations

import sys
import tarfile
from pathlib import Path

import pytest

from tests.processes import run_program

STORED = Path(__file__).parents[1] / "golden" / "sessions"

CHECK = """import iolab.registry, iolab.study.parse, iolab.report.terminal
iolab.registry.study_kinds()"""
PLAN = """import iolab.registry, iolab.cli.planning, iolab.hosts.connect, iolab.session.discovery
iolab.registry.study_kinds()"""
RESULTS = """import iolab.registry, iolab.cli.results, iolab.store.reader
iolab.registry.report_kinds().booted_hosts"""


@pytest.mark.parametrize(
    ("imports", "unneeded"),
    [
        (CHECK, {"numpy", "duckdb", "asyncio"}),
        (PLAN, {"numpy", "duckdb", "iolab.loads.fileio.driver", "iolab.guests.hypervisor"}),
        (
            RESULTS,
            {
                "numpy",
                "duckdb",
                "jinja2",
                "iolab.study.file",
                "iolab.loads.keyvalue.db_bench.engine",
            },
        ),
    ],
)
def test_what_a_command_needs_not_is_not_imported(imports: str, unneeded: set[str]) -> None:
    asks = f"{imports}\nimport sys; print(*({unneeded} & set(sys.modules)))"
    done = run_program([sys.executable, "-c", asks], check=True)
    assert done.stdout.split() == []


@pytest.mark.parametrize("options", [(), ("--repeats",), ("--summary",), ("--json",)])
def test_results_of_a_stored_session_are_shown_without_numpy(
    session: Path, options: tuple[str, ...]
) -> None:
    imported = imported_to_show(session, *options)
    assert "iolab.store.reader" in imported
    assert not imported & {"numpy", "duckdb"}


@pytest.mark.parametrize("options", [(), ("--json",)])
def test_results_of_metadata_load_are_shown_without_numpy(
    tmp_path: Path, options: tuple[str, ...]
) -> None:
    with tarfile.open(STORED / "cluster-kpi.tar.xz") as packed:
        packed.extractall(tmp_path, filter="data")
    imported = imported_to_show(tmp_path / "cluster-kpi", *options)
    assert "iolab.loads.metadata.iterations" in imported
    assert not imported & {"numpy", "duckdb"}


def test_a_study_is_planned_on_its_target_without_numpy(tmp_path: Path) -> None:
    imported = imported_by("plan", "cluster-kpi", "--path", str(tmp_path), "--scale", "small")
    assert "iolab.session.discovery" in imported
    assert not imported & {"numpy", "duckdb"}


def imported_to_show(session: Path, *options: str) -> set[str]:
    return imported_by("show", str(session), *options)


def imported_by(*words: str) -> set[str]:
    argv = [sys.executable, "-X", "importtime", "-m", "iolab", *words]
    done = run_program(argv, check=True)
    return {line.rpartition("|")[2].strip() for line in done.stderr.splitlines()}


def test_a_page_is_made_without_what_draws_on_terminals(session: Path, tmp_path: Path) -> None:
    imported = imported_by("report", str(session), "--html", str(tmp_path / "report.html"))
    assert "jinja2" in imported
    assert not imported & {"rich", "markdown_it"}
