"""What commands leave alone until they need it: a check computes nothing, results need no study."""

from __future__ import annotations

import re
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

KNOWN_OF_EVERY_KIND = {"kind", "metric_specs"}
"""Modules of a kind of load that its registration imports."""

PAGE_ONLY = {"answer", "fast_facts", "value", "low_load", "not_in_study", "narrative", "page"}


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


@pytest.mark.parametrize("options", [(), ("--repeats",), ("--json",)])
def test_other_kinds_of_load_are_not_imported_to_show_a_session(
    session: Path, options: tuple[str, ...]
) -> None:
    imported = imported_to_show(session, *options)
    assert "iolab.loads.fileio.workload" in imported
    assert {
        module
        for module in imported
        if module.startswith("iolab.loads.") and module.count(".") > 2
        if not module.startswith("iolab.loads.fileio.")
        if module.rpartition(".")[2] not in KNOWN_OF_EVERY_KIND
    } == set()
    assert "iolab.importers.foreign_run" not in imported


def test_a_session_is_shown_without_what_a_page_alone_has(session: Path) -> None:
    imported = imported_to_show(session)
    assert "iolab.report.session_answer" in imported
    assert not imported & {f"iolab.report.{name}" for name in PAGE_ONLY}


def test_help_reads_no_toml_where_there_are_no_settings(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    imported = imported_by("--help")
    assert "iolab.cli.settings" in imported
    assert "tomllib" not in imported


@pytest.mark.parametrize("words", [("check",), ("plan", "--offline", "--scale", "small")])
def test_other_kinds_of_load_are_not_imported_for_a_study(words: tuple[str, ...]) -> None:
    command, *options = words
    imported = imported_by(command, "cluster-kpi", *options)
    assert {"iolab.loads.fileio.table", "iolab.loads.metadata.table"} <= imported
    assert {name for name in imported if name.endswith(".table") and ".loads." in name} == {
        "iolab.loads.fileio.table",
        "iolab.loads.metadata.table",
    }


def test_a_study_is_planned_on_its_target_without_numpy(tmp_path: Path) -> None:
    imported = imported_by("plan", "cluster-kpi", "--path", str(tmp_path), "--scale", "small")
    assert "iolab.session.discovery" in imported
    assert not imported & {"numpy", "duckdb"}


def imported_to_show(session: Path, *options: str) -> set[str]:
    return imported_by("show", str(session), *options)


def imported_by(*words: str) -> set[str]:
    # `-X importtime` leaves out what `importlib.import_module` imports.
    done = run_program([sys.executable, "-v", "-m", "iolab", *words], check=True)
    return set(re.findall(r"^import '([^']+)'", done.stderr, re.MULTILINE))


def test_a_page_is_made_without_what_draws_on_terminals(session: Path, tmp_path: Path) -> None:
    imported = imported_by("report", str(session), "--html", str(tmp_path / "report.html"))
    assert "jinja2" in imported
    assert not imported & {"rich", "markdown_it"}
