"""What the documentation shows is what the commands print; `make samples` writes it."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.samples import ROOT, pages, prepare, sampled


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("samples")
    prepare(made)
    return made


def test_the_readme_and_the_tutorial_have_samples() -> None:
    names = {page.relative_to(ROOT).as_posix() for page in pages()}
    assert names >= {"README.md", "docs/tutorial/first-study.md"}


@pytest.mark.parametrize("page", pages(), ids=lambda page: page.stem)
def test_samples_are_what_commands_print(page: Path, folder: Path) -> None:
    assert sampled(page, folder) == page.read_text(encoding="utf-8")
