"""The Python interface: what it gives is what the session holds, as objects and as frames."""

from __future__ import annotations

import json
import sys
import tarfile
from pathlib import Path

import nbformat
import numpy as np
import pytest

import iolab
from iolab.core import histogram
from iolab.errors import StoreError, StudyError
from iolab.store.reader import SessionReader
from tests.cli.command_line import RESULTS, SHAPE, make_session
from tests.cli.in_process import call
from tests.processes import run_program

GOLDEN = Path(__file__).parent / "golden" / "sessions"
NOTEBOOKS = sorted((Path(__file__).parents[1] / "docs" / "notebooks").glob("*.ipynb"))


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_session(tmp_path_factory.mktemp("api") / "S")


@pytest.fixture(scope="module")
def session(folder: Path) -> iolab.Session:
    return iolab.load(folder)


def test_importing_it_loads_nothing_else() -> None:
    program = "import sys; old = {*sys.modules}; import iolab; print(*{*sys.modules} - old)"
    done = run_program([sys.executable, "-c", program], check=True)
    foreign = {
        name
        for name in done.stdout.split()
        if name.partition(".")[0] not in sys.stdlib_module_names
    }
    assert foreign == {"iolab", "iolab.safe_path", "iolab.version"}
    for name in iolab.__all__:
        assert getattr(iolab, name) is not None
    assert set(iolab.__all__) <= set(dir(iolab))
    with pytest.raises(AttributeError):
        iolab.nothing  # type: ignore[attr-defined]  # noqa: B018


def test_points_and_runs_are_those_of_show(session: iolab.Session, folder: Path) -> None:
    document = json.loads(call("show", folder, "--json").stdout)
    assert [dict(point.axis) for point in session.points] == [
        point["axis"] for point in document["points"]
    ]
    for point, told in zip(session.points, document["points"], strict=True):
        assert point.verdict.value == told["level"]
        assert {key: metric.value for key, metric in point.metrics.items()} == {
            key: metric["value"] for key, metric in told["metrics"].items()
        }
        assert [run.repeat for run in point.runs] == told["repeats"]
    assert [run.digest for run in session.runs] == [result.digest for result in RESULTS]
    assert session.status.value == "done"
    assert session.damage == ()


def test_frames_have_a_row_each_and_equal_columns(session: iolab.Session) -> None:
    frame = session.points.pandas()
    assert len(frame) == session.points.arrow().num_rows == session.points.polars().height
    assert frame["iops"].tolist() == [point.metrics["iops"].value for point in session.points]
    assert frame["axis_bs"].tolist() == [point.axis["bs"] for point in session.points]
    assert session.points.polars().columns == frame.columns.tolist()
    assert len(session.runs.pandas()) == len(session.runs) == len(RESULTS)
    assert session.runs[:2] == (session.runs[0], session.runs[1])


def test_evidence_is_what_was_stored(session: iolab.Session, folder: Path) -> None:
    run = session.runs[0]
    record = SessionReader(folder).record(run.digest, run.repeat)
    assert len(run.intervals.pandas()) == SHAPE.seconds * SHAPE.hosts
    assert run.intervals.count.sum() == record.intervals.ios.sum()
    assert set(run.intervals.host) == set(SHAPE.host_names)
    assert set(run.intervals.operation) == {"read"}
    merged = histogram.Histogram(histogram.dense_counts(record.bins.bin, record.bins.count))
    for percent in (50.0, 99.0, 99.99):
        assert run.bins.percentile_ns(percent) == merged.percentile_ns(percent)
    assert run.bins.percentile_ns(99.0, "write") is None
    for percent in (-1.0, 100.1, float("nan")):
        with pytest.raises(ValueError, match="give 0 to 100"):
            run.bins.percentile_ns(percent)
    assert run.bins.polars()["count"].sum() == run.intervals.count.sum()
    busy = run.telemetry.pandas()
    assert {"cpu", "disk", "nic"} <= set(busy["scope"])
    assert np.isfinite(busy["value"]).all()
    assert run.telemetry.arrow().num_rows == len(busy)


@pytest.mark.parametrize(
    ("study", "expected"),
    [
        ("cluster-kpi", {"read", "write", "file_create", "tree_remove"}),
        ("rocksdb", {"all", "write"}),
        ("cassandra", {"read", "update"}),
        ("vm-fleet", {"read", "write"}),
    ],
)
def test_sessions_of_every_load_have_operations_by_name(
    study: str, expected: set[str], tmp_path: Path
) -> None:
    with tarfile.open(GOLDEN / f"{study}.tar.xz") as packed:
        packed.extractall(tmp_path, filter="data")
    session = iolab.load(tmp_path / study)
    found = {str(name) for run in session.runs for name in np.unique(run.intervals.operation)}
    assert expected <= found
    assert not any(name.isdigit() for name in found)
    assert len(session.points.pandas()) == len(session.points) > 0
    assert len(session.runs.polars()) == session.runs.arrow().num_rows == len(session.runs)


def test_what_is_damaged_is_left_out_with_a_warning(tmp_path: Path) -> None:
    folder = make_session(tmp_path / "S")
    next(folder.glob("points/*/run-1/manifest.json")).write_bytes(b"{}")
    with pytest.warns(UserWarning, match="damaged"):
        spoilt = iolab.load(folder)
    assert len(spoilt.runs) == len(RESULTS) - 1
    assert len(spoilt.damage) == 1


def test_faults_are_those_of_the_command(tmp_path: Path) -> None:
    with pytest.raises(StoreError):
        iolab.load(tmp_path)
    with pytest.raises(iolab.IolabError) as refused:
        iolab.run("no-such-study", path=tmp_path)
    assert refused.value.hint
    study = tmp_path / "study.toml"
    study.write_text('format = 1\nid = "x"\nnonsense = 1\n', encoding="utf-8")
    with pytest.raises(StudyError):
        iolab.run(study, path=tmp_path, out=tmp_path / "S")
    assert not (tmp_path / "S").exists()


@pytest.mark.parametrize("notebook", NOTEBOOKS, ids=lambda path: path.stem)
def test_notebooks_are_kept_without_outputs(notebook: Path) -> None:
    book = nbformat.reads(notebook.read_text(encoding="utf-8"), as_version=4)
    nbformat.validate(book)
    cells = [cell for cell in book.cells if cell.cell_type == "code"]
    assert all(cell.outputs == [] and cell.execution_count is None for cell in cells)
    assert len(NOTEBOOKS) == 3
