"""The notebooks of the documentation, each cell, in a kernel; `iolab.run` beside its loop."""

from __future__ import annotations

from pathlib import Path

import nbformat
import pytest
from nbclient import NotebookClient

import iolab
from tests.cli.command_line import make_session
from tests.e2e.sessions import write_study

pytestmark = [pytest.mark.e2e, pytest.mark.long]

NOTEBOOKS = sorted((Path(__file__).parents[2] / "docs" / "notebooks").glob("*.ipynb"))
CELL_LIMIT_S = 120
STUDY = """
format = 1
id = "script"

[[workload]]
id = "rand-read"
rw = "randread"
bs = "4k"
filesize = "16m"

[method]
warmup = "0s"
runtime = "1s"
settle = "0s"
idle_watch = 0
generator_limit = false
"""


@pytest.mark.parametrize("notebook", NOTEBOOKS, ids=lambda path: path.stem)
def test_every_cell_runs(notebook: Path, tmp_path: Path) -> None:
    make_session(tmp_path / "S")
    book = nbformat.reads(notebook.read_text(encoding="utf-8"), as_version=4)
    resources = {"metadata": {"path": str(tmp_path)}}
    NotebookClient(book, timeout=CELL_LIMIT_S, kernel_name="python3", resources=resources).execute()
    shown = [cell for cell in book.cells if cell.cell_type == "code" and cell.outputs]
    assert shown


def test_a_script_measures_like_the_command(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    target = tmp_path / "target"
    target.mkdir()
    session = iolab.run(
        write_study(tmp_path, STUDY),
        path=target,
        out=tmp_path / "S",
        settings={"workload.rand-read.iodepth": [1, 2]},
    )
    assert session.status.value == "done"
    assert [dict(run.axis) for run in session.runs] == [{"iodepth": 1}, {"iodepth": 2}]
    rates = [run.metrics["iops"].value for run in session.runs]
    assert all(rate is not None and rate > 0 for rate in rates)
    assert not list(target.iterdir())
    assert capfd.readouterr() == ("", "")
    with pytest.raises(iolab.IolabError):
        iolab.run(tmp_path / "study.toml", path=target, out=tmp_path / "S")
