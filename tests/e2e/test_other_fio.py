"""Two hosts of one fleet with different versions of fio: measured, and said."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.e2e.left import await_none_on
from tests.e2e.sessions import iolab, write_study

pytestmark = [pytest.mark.e2e, pytest.mark.long]

ROOT = Path(__file__).parents[2]
WRAPPER = """#!/bin/sh
[ "$1" = --version ] && {{ echo fio-3.99; exit 0; }}
exec {fio} "$@"
"""
STUDY = """
format = 1
id = "other-fio"
[[host]]
name = "usual"
command = ["env"]
[[host]]
name = "odd"
command = ["env", "PATH={folder}:/usr/bin:/bin"]
[[workload]]
id = "read"
rw = "randread"
bs = "4k"
filesize = "4m"
[method]
warmup = "0s"
runtime = "2s"
settle = "0s"
idle_watch = 0
generator_limit = false
"""


@pytest.fixture
def target() -> Iterator[Path]:
    path = ROOT / "scratch" / f"other-fio-{os.getpid()}"
    path.mkdir(parents=True)
    yield path
    await_none_on(path)
    path.rmdir()


def test_another_fio_on_one_host_is_named_in_the_verdict(target: Path, tmp_path: Path) -> None:
    fio = shutil.which("fio")
    assert fio is not None
    wrapper = tmp_path / "fio"
    wrapper.write_text(WRAPPER.format(fio=fio), encoding="utf-8")
    wrapper.chmod(0o755)
    study = write_study(tmp_path, STUDY.format(folder=tmp_path))
    session = tmp_path / "session"
    done = iolab("run", study, "--path", target, "--out", session, "--json")
    (result,) = json.loads(done.stdout)["results"]
    (check,) = [one for one in result["verdict"]["checks"] if one["code"] == "versions-differ"]
    assert check["level"] == "indicative"
    assert "fio-3.99 on odd" in check["message"]
    assert result["status"] == "done"
