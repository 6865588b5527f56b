"""What a newcomer types first."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.e2e.sessions import shown
from tests.processes import run_program
from tests.test_repository import ROOT

pytestmark = [pytest.mark.e2e, pytest.mark.long]

DEMO_LIMIT_S = 900


@pytest.mark.timeout(DEMO_LIMIT_S)
def test_make_demo_measures_a_folder_and_prints_where_the_report_is(tmp_path: Path) -> None:
    target, session = tmp_path / "target", tmp_path / "session"
    done = run_program(
        ["make", "--no-print-directory", "demo", f"DEMO_PATH={target}", f"DEMO_OUT={session}"],
        cwd=ROOT,
        timeout=DEMO_LIMIT_S,
    )
    assert done.returncode == 0, done.stderr
    report = re.search(r"Report: (\S+\.html)", done.stderr + done.stdout)
    assert report is not None, done.stderr
    page = Path(report[1]).read_text(encoding="utf-8")
    results = shown(session)["results"]
    workloads = {result["workload"] for result in results}
    assert workloads == {
        *("read-bandwidth", "write-bandwidth", "read-iops", "write-iops"),
        *("read-latency", "write-latency", "metadata"),
    }
    assert all(workload in page for workload in workloads)
    assert {result["status"] for result in results} == {"done"}
    for result in results:
        values = [metric["value"] for metric in result["metrics"].values()]
        assert any(isinstance(one, int | float) for one in values), result["workload"]
    assert list(target.iterdir()) == []
