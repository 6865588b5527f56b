"""A real Prometheus scrapes a real server, and is filled with an export; loopback only."""

from __future__ import annotations

import json
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlencode
from urllib.request import urlopen

import pytest

from iolab.store.reader import SessionReader
from tests.cli.command_line import RESULTS, make_session
from tests.cli.in_process import call
from tests.e2e.serving import Serving, serving
from tests.e2e.sessions import IOLAB, write_study
from tests.needs import require
from tests.report.test_openmetrics import queries

pytestmark = [pytest.mark.e2e, pytest.mark.long]

TOKEN = "correct-horse-battery"
LIMIT_S = 60.0
STUDY = """
format = 1
id = "watched"

[[workload]]
id = "rand-read"
rw = "randread"
bs = "4k"
iodepth = [1, 2, 4]
filesize = "16m"

[method]
warmup = "0s"
runtime = "3s"
settle = "0s"
idle_watch = 0
generator_limit = false
"""


@dataclass(frozen=True)
class Prometheus:
    """One that answers at a port of this machine."""

    port: int

    def ask(self, query: str, at_s: float | None = None) -> list[dict[str, Any]]:
        moment = {} if at_s is None else {"time": f"{at_s:.3f}"}
        asked = urlencode({"query": query, **moment})
        with urlopen(f"http://127.0.0.1:{self.port}/api/v1/query?{asked}") as answer:
            told = json.load(answer)
        assert told["status"] == "success", told
        found: list[dict[str, Any]] = told["data"]["result"]
        return found

    def value(self, query: str, at_s: float | None = None) -> float:
        (only,) = self.ask(query, at_s)
        return float(only["value"][1])

    def wait_for(self, query: str) -> list[dict[str, Any]]:
        """What a query gives once it gives anything."""
        give_up = time.monotonic() + LIMIT_S
        while time.monotonic() < give_up:
            try:
                if found := self.ask(query):
                    return found
            except OSError:
                pass  # it does not listen yet
            time.sleep(0.2)
        raise AssertionError(query)


@contextmanager
def prometheus(folder: Path, config: str) -> Iterator[Prometheus]:
    require("prometheus", "promtool")
    path = folder / "prometheus.yml"
    path.write_text(config, encoding="utf-8")
    port = _free_port()
    process = subprocess.Popen(
        [
            "prometheus",
            f"--config.file={path}",
            f"--storage.tsdb.path={folder / 'data'}",
            "--storage.tsdb.retention.time=100y",
            f"--web.listen-address=127.0.0.1:{port}",
        ],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        yield Prometheus(port)
    finally:
        process.terminate()
        process.wait(LIMIT_S)


def _free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port: int = listener.getsockname()[1]
        return port


def scraping(server: Serving, token: Path) -> str:
    """The configuration of the page on metrics, for two jobs of which one has no token."""
    target = f"""
    scrape_interval: 1s
    static_configs:
      - targets: ["127.0.0.1:{server.port}"]
"""
    return f"""
scrape_configs:
  - job_name: iolab
    authorization:
      credentials_file: {token}{target}
  - job_name: stranger{target}
"""


def test_every_query_of_the_dashboard_has_an_answer(tmp_path: Path) -> None:
    root, token = tmp_path / "sessions", tmp_path / "token"
    make_session(root / "S")
    token.write_text(TOKEN, encoding="utf-8")
    with (
        serving(root, "--token-file", token) as server,
        prometheus(tmp_path, scraping(server, token)) as watch,
    ):
        # On a busy machine a scrape may take longer than its second, and counts as none.
        watch.wait_for('sum_over_time(up{job="iolab"}[1m]) >= 3')
        watch.wait_for(f"iolab_session_planned_runs == {len(RESULTS)}")
        assert watch.value('max_over_time(up{job="stranger"}[1m])') == 0
        for query in queries():
            watch.wait_for(query.replace("$session", ".*").replace("$__rate_interval", "1m"))


def test_it_follows_a_session_that_runs(tmp_path: Path) -> None:
    root, target, token = tmp_path / "sessions", tmp_path / "target", tmp_path / "token"
    root.mkdir()
    target.mkdir()
    token.write_text(TOKEN, encoding="utf-8")
    study = write_study(tmp_path, STUDY)
    words = ["run", str(study), "--path", str(target), "--out", str(root / "S"), "--quiet"]
    with (
        serving(root, "--token-file", token) as server,
        prometheus(tmp_path, scraping(server, token)) as watch,
        subprocess.Popen([str(IOLAB), *words], stdout=subprocess.DEVNULL) as session,
    ):
        watch.wait_for('iolab_session_status{status="running"} == 1 and on () iolab_session_info')
        watch.wait_for("sum(iolab_session_runs_total) > 0 < 3")
        assert session.wait(LIMIT_S) == 0
        watch.wait_for('iolab_session_status{status="done"} == 1')
        assert watch.value("sum(iolab_session_runs_total)") == 3
        reader = SessionReader(root / "S")
        tables = [reader.intervals(one.digest, one.repeat) for one in reader.results()]
        done = sum(int(one.ios.sum()) for one in tables)
        assert watch.value("sum(iolab_operations_total)") == done


def test_an_export_fills_a_database(tmp_path: Path) -> None:
    require("prometheus", "promtool")
    folder = make_session(tmp_path / "S")
    text = tmp_path / "S.txt"
    assert call("export", folder, "--format", "openmetrics", "--out", text).returncode == 0
    data = tmp_path / "data"
    made = ["promtool", "tsdb", "create-blocks-from", "openmetrics", str(text), str(data)]
    subprocess.run(made, check=True, capture_output=True, timeout=LIMIT_S)
    last = RESULTS[-1]
    reader = SessionReader(folder)
    table = reader.intervals(last.digest, last.repeat)
    end_s = float(table.end_real_ns.max()) / 1e9
    with prometheus(tmp_path, "scrape_configs: []\n") as watch:
        watch.wait_for("vector(1)")
        point = ", ".join(f"{name} {value}" for name, value in last.axis_values)
        named = f'iolab_operations_total{{point="{point}"}}'
        assert watch.value(named, end_s) == float(table.ios.sum())
        every = watch.value("sum(iolab_operations_total)", end_s)
        assert every == sum(
            int(reader.intervals(one.digest, one.repeat).ios.sum()) for one in RESULTS
        )
