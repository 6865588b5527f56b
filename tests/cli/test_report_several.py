"""`iolab report` on several sessions whose truth is known."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from msgspec.structs import replace

from iolab.cli.report import appendix_path
from iolab.core.run import Plan
from iolab.core.study import Study
from iolab.errors import UsageError
from iolab.loads.fileio.workload import Job
from tests.cli.compared import Target, make_target
from tests.cli.in_process import call
from tests.facts import tells

INTERVAL = re.compile(r"\[[^\]]+\] n=\d")


@pytest.fixture(scope="module")
def pair(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """A session, and one of a target that is a fifth slower, with other noise."""
    folder = tmp_path_factory.mktemp("pair")
    one = make_target(folder / "A", Target(name="a"))
    other = Target(name="b", factor=0.8, noise=(0.006, 0.004, -0.006), day=1)
    return one, make_target(folder / "B", other)


@pytest.fixture(scope="module")
def text(pair: tuple[Path, Path], tmp_path_factory: pytest.TempPathFactory) -> str:
    """The report on both as Markdown."""
    file = tmp_path_factory.mktemp("report") / "r.md"
    assert report(*reversed(pair), "--md", file) == [str(file), str(appendix_path(file))]
    text = whole(file)
    assert "Sessions: 2: B and A" in text
    assert str(pair[0].parent) not in text
    return text


def whole(file: Path) -> str:
    """A brief with its appendix."""
    return "".join(one.read_text(encoding="utf-8") for one in (file, appendix_path(file)))


def deeper(plan: Plan) -> Plan:
    """The plan with other block sizes under the same names."""
    runs = tuple(
        replace(
            run,
            point=replace(
                run.point, job=replace(Job.require_type(run.point.job), block_bytes=8192)
            ),
        )
        for run in plan.runs
    )
    return replace(plan, runs=runs)


def twice(study: Study) -> Study:
    return replace(study, method=replace(study.method, drop_caches=False))


def report(*words: str | Path) -> list[str]:
    """The files that it wrote."""
    done = call("report", *words, "--json")
    assert done.returncode == 0, done.stderr
    written = json.loads(done.stdout)["written"]
    return [written] if isinstance(written, str) else list(written)


def refused(*words: str | Path) -> str:
    done = call("report", *words)
    assert (done.returncode, done.stdout) == (UsageError.exit_code, "")
    return " ".join(done.stderr.split())


def test_what_it_says_of_a_session_is_what_it_says_of_it_alone(
    pair: tuple[Path, Path], text: str, tmp_path: Path
) -> None:
    alone = []
    for session in pair:
        report(session, "--md", tmp_path / "one.md")
        told = whole(tmp_path / "one.md")
        alone += INTERVAL.findall(told.replace("\\", ""))
    assert alone
    assert sorted(set(INTERVAL.findall(text.replace("\\", "")))) == sorted(set(alone))


def test_its_verdicts_are_those_of_compare(pair: tuple[Path, Path], text: str) -> None:
    fast, slow = pair
    document = json.loads(call("compare", slow, fast, "--json").stdout)
    assert document["verdicts"]["better"] == 4
    for name in ("IOPS", "p99 latency"):
        assert f"(A) compared with (B) in {name} at 2 points: better in 2." in text


def test_every_run_is_named_as_its_session_stores_it(pair: tuple[Path, Path], text: str) -> None:
    found = re.findall(r"\| (A|B) \| (points/\w+/run-\d+) \|", text)
    assert len(found) == len(set(found)) == 12
    for label, place in found:
        assert (pair[0].parent / label / place / "manifest.json").is_file()
    label, place = found[0]
    digest = place.split("/")[1]
    shown = call("show", pair[0].parent / label, "--run", digest[:9], "--details").stdout
    assert shown.count(f"points/{digest}/run-") == shown.count("points/") == 3


def test_it_is_written_where_we_are_and_never_into_a_session(
    pair: tuple[Path, Path], tmp_path: Path
) -> None:
    (tmp_path / "here").mkdir()
    done = call("report", *pair, cwd=tmp_path / "here")
    assert done.stdout.split() == ["report.html"]
    page = (tmp_path / "here" / "report.html").read_text(encoding="utf-8")
    assert str(pair[0].parent) not in page
    done = call("report", *pair, cwd=pair[0])
    assert done.returncode == UsageError.exit_code
    assert done.stdout == ""
    assert not (pair[0] / "report.html").exists()


def test_another_load_is_refused_with_all_that_forbids_and_may_be_allowed(
    pair: tuple[Path, Path], tmp_path: Path
) -> None:
    other = make_target(tmp_path / "C", Target(name="c", plan=deeper, study=twice))
    told = refused(*pair, other, "--md", tmp_path / "r.md")
    assert "block bytes: 4 KiB against 8 KiB" in told
    assert tells(told, "C", "drop caches", "yes", "no")
    assert " B: " not in told
    assert "--allow-differences" in told
    assert not (tmp_path / "r.md").exists()
    report(*pair, other, "--md", tmp_path / "r.md", "--allow-differences")
    text = (tmp_path / "r.md").read_text(encoding="utf-8")
    assert "| ! drop caches | yes | same | no |" in text


def test_a_session_given_twice_is_refused(pair: tuple[Path, Path], tmp_path: Path) -> None:
    link = tmp_path / "again"
    link.symlink_to(pair[0])
    assert "more than once" in refused(pair[0], pair[1], link)


def test_folders_of_one_name_are_told_apart(tmp_path: Path) -> None:
    folders = []
    for place in ("x", "y"):
        (tmp_path / place).mkdir()
        folders.append(make_target(tmp_path / place / "run", Target(name=place)))
    report(*folders, "--md", tmp_path / "r.md")
    assert "Sessions: 2: run and run-2" in (tmp_path / "r.md").read_text(encoding="utf-8")
