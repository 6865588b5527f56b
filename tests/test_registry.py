"""Kinds of load: those of installed packages come by entry points, studies name theirs."""

from __future__ import annotations

import os
import sys
from inspect import get_annotations
from pathlib import Path

import pytest

from iolab.cli.studies import bundled_studies
from iolab.errors import StudyError
from iolab.registry import (
    ENTRY_POINTS,
    LOADS,
    read_study,
    study_kinds,
    study_kinds_named_in,
    study_kinds_used_by,
)
from iolab.study.load_tables import StudyTable
from iolab.study.parse import StudyOverrides, parse_study
from iolab.study.schedule import make_plan
from tests.processes import run_program

MODULE = """
from msgspec.structs import replace
from iolab.loads.metadata.kind import KIND as METADATA
KIND = replace(METADATA, name="foreign")
"""
ASKS = "from iolab.registry import LOADS; print(*(kind.name for kind in LOADS))"


def names(folder: Path) -> list[str]:
    """The kinds of load that iolab knows where that folder's packages are installed."""
    done = run_program(
        [sys.executable, "-c", ASKS], env={**os.environ, "PYTHONPATH": str(folder)}, check=True
    )
    return done.stdout.split()


def test_an_installed_package_adds_a_kind(tmp_path: Path) -> None:
    (tmp_path / "foreign.py").write_text(MODULE, encoding="utf-8")
    before = names(tmp_path)
    told = tmp_path / "foreign-1.0.dist-info"
    told.mkdir()
    (told / "METADATA").write_text("Metadata-Version: 2.1\nName: foreign\nVersion: 1.0\n")
    (told / "entry_points.txt").write_text(f"[{ENTRY_POINTS}]\nforeign = foreign:KIND\n")
    assert names(tmp_path) == [*before, "foreign"]


def test_the_words_of_a_kind_are_its_engines_and_its_table() -> None:
    for kind in LOADS:
        part = kind.make_study_kind()
        table = () if part.settings_section is None else (part.settings_section.name,)
        if kind.study_words:  # a kind without any reads every study
            assert sorted(kind.study_words) == sorted((*part.engines, *table)), kind.name
    assert sum(bool(kind.study_words) for kind in LOADS) == len(LOADS) - 2


@pytest.mark.parametrize("study", [study.id for study in bundled_studies()])
def test_the_kinds_that_a_study_names_read_it_as_all_do(study: str) -> None:
    text = next(bundled.path for bundled in bundled_studies() if bundled.id == study).read_text()
    overrides = StudyOverrides(requires_path=False)
    read = read_study(text, study, overrides)
    read_by_all = parse_study(text, study, overrides, study_kinds())
    assert len(study_kinds_named_in(text).loads) < len(study_kinds().loads)
    plans = (make_plan(read, study_kinds_used_by(read)), make_plan(read_by_all, study_kinds()))
    assert plans[0] == plans[1]


def test_the_engine_of_a_kind_that_a_study_does_not_name_is_suggested() -> None:
    text = """format = 1
id = "s"
[[workload]]
id = "w"
engine = "ycbs"
"""
    with pytest.raises(StudyError) as caught:
        read_study(text, "s.toml", StudyOverrides(requires_path=False))
    assert "'ycsb'" in " ".join(fault.hint for fault in caught.value.faults)


def test_tables_of_study_files_have_annotations_and_not_texts_of_them() -> None:
    """Pydantic compiles each text, of some hundred keys."""
    study_kinds()
    tables = [StudyTable]
    for table in tables:
        tables += table.__subclasses__()
        texts = [
            key for key, annotation in get_annotations(table).items() if isinstance(annotation, str)
        ]
        assert table.__module__.startswith("tests.") or texts == [], table
    assert len(tables) > 30
