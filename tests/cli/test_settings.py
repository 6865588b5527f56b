"""The user's settings, the short options of a load, and where colours and pagers are used."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from iolab.cli.options import StudyOptions, load_study
from iolab.errors import ExitCode
from tests.cli.command_line import make_session
from tests.cli.in_process import call

STUDY = """format = 1
id = "two"
[[workload]]
id = "reads"
rw = "randread"
bs = "4k"
iodepth = [1, 8]
filesize = "64m"
[[workload]]
id = "names"
engine = "metadata"
ranks = 1
files_per_rank = 100
"""


def study_file(folder: Path) -> Path:
    path = folder / "two.toml"
    path.write_text(STUDY, encoding="utf-8")
    return path


def settings(folder: Path, text: str) -> dict[str, str]:
    """The environment of a user with these settings."""
    path = folder / "config" / "iolab" / "config.toml"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    return {"XDG_CONFIG_HOME": str(folder / "config")}


def test_short_options_set_the_load_of_every_workload_that_has_such_a_key(tmp_path: Path) -> None:
    file, path = str(study_file(tmp_path)), str(tmp_path)
    short = StudyOptions(file, path, iodepth="2,4", bs="8k", numjobs="3", runtime="7s", repeats=5)
    pairs = ["workload.*.iodepth=2,4", "workload.*.bs=8k", "workload.*.numjobs=3"]
    long = StudyOptions(file, path, sets=[*pairs, "method.runtime=7s", "method.repeats=5"])
    study, other = load_study(short), load_study(long)
    assert (study.method, study.workloads) == (other.method, other.workloads)
    assert (study.method.repeats, study.workloads[0].sweep[0].values) == (5, (2, 4))


def test_settings_give_options_their_defaults(tmp_path: Path) -> None:
    study = study_file(tmp_path)
    everywhere = settings(tmp_path, 'scale = "tiny"\n')
    refused = call("check", study, env=everywhere)
    assert refused.returncode == ExitCode.STUDY
    assert "'tiny'" in refused.stderr
    assert call("check", study, "--scale", "full", env=everywhere).returncode == 0
    one_command = settings(tmp_path, 'scale = "tiny"\n[check]\nscale = "full"\n')
    assert call("check", study, env=one_command).returncode == 0


@pytest.mark.parametrize(
    ("text", "fact"),
    [
        ('device = "/dev/sda"\n', "'device'"),
        ("yes = true\n", "'yes'"),
        ('repeats = "three"\n', "'three'"),
        ("[shwo]\nquiet = true\n", "'shwo'"),
        ("[show]\nquiet = 3\n", "'show.quiet'"),
        ("scale =\n", "TOML"),
    ],
)
def test_settings_that_do_not_exist_are_refused(tmp_path: Path, text: str, fact: str) -> None:
    done = call("studies", env=settings(tmp_path, text))
    assert (done.returncode, done.stdout) == (ExitCode.STUDY, "")
    assert fact in done.stderr


def test_every_fault_of_the_settings_is_named_at_once(tmp_path: Path) -> None:
    done = call("studies", env=settings(tmp_path, "a = 1\nb = 2\n"))
    assert "'a'" in done.stderr
    assert "'b'" in done.stderr


def test_no_color_may_stand_anywhere(tmp_path: Path) -> None:
    session = make_session(tmp_path / "s")
    shown = call("show", session).stdout
    assert call("--no-color", "show", session).stdout == shown
    assert call("show", session, "--no-color").stdout == shown
    assert json.loads(call("show", session, "--json", "--no-color").stdout)["format"]
