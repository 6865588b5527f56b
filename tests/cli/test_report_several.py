"""`iolab report` on several sessions whose truth is known."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path

import pytest

from iolab.errors import UsageError
from iolab.model.run import Plan
from iolab.model.study import Study
from tests.cli.command_line import iolab
from tests.cli.compared import Target, make_target

INTERVAL = re.compile(r"\[[^\]]+\] n=\d")


@pytest.fixture
def pair(tmp_path: Path) -> tuple[Path, Path]:
    """A session, and one of a target that is a tenth slower, with other noise."""
    one = make_target(tmp_path / "A", Target(name="a"))
    other = Target(name="b", factor=0.9, noise=(0.02, 0.005, -0.04), day=1)
    return one, make_target(tmp_path / "B", other)


def deeper(plan: Plan) -> Plan:
    """The plan with other block sizes under the same names."""
    runs = tuple(
        replace(run, point=replace(run.point, job=replace(run.point.io, block_bytes=8192)))
        for run in plan.runs
    )
    return replace(plan, runs=runs)


def twice(study: Study) -> Study:
    return replace(study, method=replace(study.method, drop_caches=False))


def report(*words: str | Path) -> list[str]:
    """The files that it wrote."""
    done = iolab("report", *words, "--json")
    assert done.returncode == 0, done.stderr
    written = json.loads(done.stdout)["written"]
    return [written] if isinstance(written, str) else list(written)


def refused(*words: str | Path) -> str:
    done = iolab("report", *words)
    assert (done.returncode, done.stdout) == (UsageError.exit_code, "")
    return " ".join(done.stderr.split())


def test_sessions_stand_side_by_side_in_every_form(pair: tuple[Path, Path], tmp_path: Path) -> None:
    files = [tmp_path / name for name in ("r.html", "r.pdf", "r.md")]
    forms = ("--html", files[0], "--pdf", files[1], "--md", files[2])
    assert report(*pair, *forms) == [str(file) for file in files]
    text = files[2].read_text(encoding="utf-8")
    assert "What differs between the sessions" in text
    assert "Sessions: 2: A, B" in text
    assert str(tmp_path) not in text
    assert str(tmp_path) not in files[0].read_text(encoding="utf-8")
    assert files[1].read_bytes().startswith(b"%PDF")


def test_what_it_says_of_a_session_is_what_show_says(
    pair: tuple[Path, Path], tmp_path: Path
) -> None:
    report(*pair, "--md", tmp_path / "r.md")
    text = (tmp_path / "r.md").read_text(encoding="utf-8").replace("\\", "")
    alone = []
    for session in pair:
        report(session, "--md", tmp_path / "one.md")
        alone += INTERVAL.findall(
            (tmp_path / "one.md").read_text(encoding="utf-8").replace("\\", "")
        )
    assert alone
    assert sorted(set(INTERVAL.findall(text))) == sorted(set(alone))


def test_its_verdicts_are_those_of_compare(tmp_path: Path) -> None:
    fast = make_target(tmp_path / "A", Target(name="a"))
    other = Target(name="b", factor=0.8, noise=(0.006, 0.004, -0.006), day=1)
    slow = make_target(tmp_path / "B", other)
    report(slow, fast, "--md", tmp_path / "r.md")
    done = iolab("compare", slow, fast, "--json")
    assert json.loads(done.stdout)["verdicts"]["better"] == 4
    text = (tmp_path / "r.md").read_text(encoding="utf-8")
    assert "By IOPS over 2 points, Configuration only (A) is better in 2 against" in text
    assert "By p99 latency over 2 points, Configuration only (A) is better in 2 against" in text


def test_every_run_is_named_as_its_session_stores_it(
    pair: tuple[Path, Path], tmp_path: Path
) -> None:
    report(*pair, "--md", tmp_path / "r.md")
    text = (tmp_path / "r.md").read_text(encoding="utf-8")
    found = re.findall(r"\| (A|B) \| (points/\w+/run-\d+) \|", text)
    assert len(found) == len(set(found)) == 12
    for label, place in found:
        assert (tmp_path / label / place / "manifest.json").is_file()
    label, place = found[0]
    digest = place.split("/")[1]
    shown = iolab("show", tmp_path / label, "--run", digest[:9], "--details").stdout
    assert shown.count(f"points/{digest}/run-") == 3
    assert shown.count("points/") == 3


def test_a_point_that_a_session_has_not_is_named(pair: tuple[Path, Path]) -> None:
    done = iolab("show", pair[0], "--run", "zzz", "--run", "")
    assert (done.returncode, done.stdout) == (UsageError.exit_code, "")
    assert "No run is of a point 'zzz'." in done.stderr


def test_it_is_written_where_we_are_and_never_into_a_session(
    pair: tuple[Path, Path], tmp_path: Path
) -> None:
    (tmp_path / "here").mkdir()
    done = iolab("report", *pair, cwd=tmp_path / "here")
    assert done.stdout.split() == ["report.html"]
    assert (tmp_path / "here" / "report.html").is_file()
    done = iolab("report", *pair, cwd=pair[0])
    assert done.returncode == UsageError.exit_code
    assert "is not written into one of them" in done.stderr
    assert not (pair[0] / "report.html").exists()


def test_another_load_is_refused_with_all_that_forbids_and_may_be_allowed(
    pair: tuple[Path, Path], tmp_path: Path
) -> None:
    other = make_target(tmp_path / "C", Target(name="c", plan=deeper, study=twice))
    told = refused(*pair, other, "--md", tmp_path / "r.md")
    assert "were not all measured in the same way as the first one" in told
    assert "block bytes: 4 KiB against 8 KiB" in told
    assert "C: drop caches: yes against no" in told
    assert " B: " not in told
    assert "--allow-differences" in told
    assert not (tmp_path / "r.md").exists()
    report(*pair, other, "--md", tmp_path / "r.md", "--allow-differences")
    text = (tmp_path / "r.md").read_text(encoding="utf-8")
    assert "| ! drop caches | yes | same | no |" in text
    assert "stand side by side all the same, as was asked for" in text


def test_a_session_given_twice_is_refused(pair: tuple[Path, Path], tmp_path: Path) -> None:
    link = tmp_path / "again"
    link.symlink_to(pair[0])
    assert "A session is given more than once." in refused(pair[0], pair[1], link)


def test_folders_of_one_name_are_told_apart(tmp_path: Path) -> None:
    folders = []
    for place in ("x", "y"):
        (tmp_path / place).mkdir()
        folders.append(make_target(tmp_path / place / "run", Target(name=place)))
    report(*folders, "--md", tmp_path / "r.md")
    assert "Sessions: 2: run, run-2" in (tmp_path / "r.md").read_text(encoding="utf-8")
