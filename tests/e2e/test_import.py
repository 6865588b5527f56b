"""`iolab import` of a folder that several tools wrote, with the installed command."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.e2e.sessions import iolab, shown
from tests.recorded import recorded

pytestmark = pytest.mark.e2e

FILES = (
    "import/fio/together-3.42.json",
    "import/fio/two-groups-3.33.json",
    "import/fio/apart-3.42.json",
    "import/io500/ior-easy-write.txt",
    "import/elbencho/block-3.1-9.json",
    "import/elbencho/block-3.1-9.csv",
    "import/vdbench/flatfile.html",
    "mdtest/one-4.0.0.txt",
    "db_bench/readrandom-4096.txt",
    "db_bench/readrandom-4096.err",
    "db_bench/readrandom-4096.csv",
    "ycsb/a.txt",
    "ycsb/a.err",
    "ycsb/a_READ.hdr",
    "ycsb/a_UPDATE.hdr",
    "diskspd/random-write-2.3.0.txt",
)
TOOLS = {"fio", "ior", "elbencho", "vdbench", "mdtest", "db_bench", "ycsb", "diskspd"}


def objections(result: dict[str, Any]) -> set[str]:
    checks = result["verdict"]["checks"]
    return {one["code"] for one in checks if one["level"] in {"indicative", "invalid"}}


def tool_of(result: dict[str, Any]) -> str:
    (check,) = [one for one in result["verdict"]["checks"] if one["code"] == "imported-evidence"]
    return str(check["evidence"]["tool"])


def test_a_folder_of_many_tools_is_one_judged_session(tmp_path: Path) -> None:
    folder, session = tmp_path / "results", tmp_path / "S"
    (folder / "more").mkdir(parents=True)
    for number, name in enumerate(FILES):
        place = folder / "more" if number < 3 else folder
        (place / Path(name).name).write_bytes(recorded(name))
    (folder / "notes.md").write_text("what we did", encoding="utf-8")
    (folder / "run.sh").write_text("touch executed\n", encoding="utf-8")
    done = iolab("import", folder, "--out", session)
    assert "notes.md" in done.stderr
    assert "run.sh" in done.stderr
    assert not list(tmp_path.rglob("executed"))
    results = shown(session)["results"]
    assert {tool_of(one) for one in results} == TOOLS
    assert {one["verdict"]["level"] for one in results} <= {"indicative", "invalid"}
    assert all("imported-evidence" in objections(one) for one in results)
    apart = [one for one in results if "phases-added" in objections(one)]
    assert apart
    assert any("no-common-window" in objections(one) for one in results)
    iolab("report", session)
    assert (session / "report.html").stat().st_size > 0
