"""The pages: what they show, and what they do not."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path

import pytest
from bench.synthetic import make_facts, make_record, make_result
from msgspec.structs import replace

from iolab.core.metric import Metric
from iolab.core.run import Plan
from iolab.core.study import Study
from iolab.loads.fileio.workload import Job
from iolab.store.writer import SessionWriter
from iolab.units import significant_digits_text
from tests.cli.command_line import PLAN, SHAPE, STUDY, make_session
from tests.cli.compared import Target, make_target
from tests.cli.in_process import call
from tests.report.hostile import EVERY
from tests.serve.asking import Site


@pytest.fixture(scope="module")
def root(session: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("results")
    shutil.copytree(session, folder / "lab" / "whole")
    make_session(folder / "lab" / "stopped", 2)
    make_target(folder / "slow", Target(name="slow"))
    make_target(folder / "fast", Target(name="fast", factor=1.2, day=1))
    (folder / "broken").mkdir()
    (folder / "broken" / "session.json").write_text("{")
    return folder


@pytest.fixture
def site(root: Path) -> Site:
    return Site(root)


def test_the_list_has_every_session_with_its_status_and_verdicts(site: Site) -> None:
    page = site.get("/")
    assert page.status == 200
    for name in ("lab/whole", "lab/stopped", "slow", "fast"):
        assert f'href="/sessions/{site.id_of(name)}"' in page.text
    assert "5 sessions in" in page.text
    assert "2 of 6 runs" in page.text
    assert "6 valid" in page.text
    assert "interrupted" in page.text
    assert "unreadable" in page.text
    assert str(site.root) not in page.text


@pytest.mark.parametrize(
    ("query", "names"),
    [
        ("filter=SLOW", {"slow"}),
        ("filter=interrupted", {"lab/stopped"}),
        ("filter=lab+done", {"lab/whole"}),
        ("filter=%3Cb%3Enothing", set()),
    ],
)
def test_the_list_is_filtered_by_words(site: Site, query: str, names: set[str]) -> None:
    page = site.get(f"/?{query}")
    assert page.status == 200
    for name in ("lab/whole", "lab/stopped", "slow", "fast"):
        assert (f'href="/sessions/{site.id_of(name)}' in page.text) == (name in names)
    assert f"{len(names)} of 5 sessions in" in page.text
    assert "<b>" not in page.text


@pytest.mark.parametrize(
    ("name", "old", "new"),
    [
        ("session.json", '"created_real_ns": ', '"created_real_ns": 9' + "0" * 30),
        ("session.json", '"created_real_ns": ', '"created_real_ns": -'),
        ("session.json", "{", '{"x": ' + "[" * 100_000),
        ("plan.json", "{", "[" * 100_000),
    ],
)
def test_a_session_that_is_damaged_hides_no_other(
    session: Path, folder: Path, tmp_path: Path, name: str, old: str, new: str
) -> None:
    shutil.copytree(session, tmp_path / "good")
    file = folder / name
    content = file.read_text()
    assert old in content
    file.write_text(content.replace(old, new, 1))
    page = Site(tmp_path).get("/")
    assert page.status == 200
    assert "6 valid" in page.text
    assert "is damaged" in page.text


def test_a_report_is_shown_with_the_way_back_and_saved_without(site: Site, root: Path) -> None:
    session = site.id_of("slow")
    page, saved, packed = [
        *site.ask([f"/sessions/{session}", f"/sessions/{session}/report.html"]),
        site.get(f"/sessions/{session}", {"accept-encoding": "gzip, br"}),
    ]
    assert f"<h1>of {root.resolve() / 'slow'}</h1>" in page.text
    assert '<a href="/">' in page.text
    assert '<a href="/">' not in saved.text
    assert "attachment" in saved.headers["content-disposition"]
    assert packed.headers["content-encoding"] == "gzip"
    assert packed.text == page.text
    assert "frame-ancestors 'none'" in page.headers["content-security-policy"]


def test_the_document_is_that_of_show(site: Site, root: Path) -> None:
    answer = site.get(f"/sessions/{site.id_of('slow')}/show.json")
    assert answer.headers["content-type"] == "application/json"
    assert answer.text == call("show", root / "slow", "--json").stdout


def test_a_session_is_watched_as_it_runs(tmp_path: Path) -> None:
    site = Site(tmp_path)
    with SessionWriter.create(tmp_path / "now", STUDY, PLAN, "s", ("iolab",)) as writer:
        writer.record_host_facts_at_start(make_facts(SHAPE), "0.1.0")
        session = site.id_of("now")
        assert f'href="/sessions/{session}/live"' in site.get("/").text
        first = site.get(f"/sessions/{session}/live")
        assert "No run is committed yet" in first.text
        record = make_record(PLAN.runs[0], SHAPE)
        writer.commit_run(record, make_result(record), analysis_version=1)
        second = site.get(f"/sessions/{session}/live")
    ended = site.get(f"/sessions/{session}/live")
    assert '<progress max="6" value="1"' in second.text
    assert "workload-1, iodepth 1, bs 4k</td>" in second.text
    assert "workload-1, iodepth 1, bs 8k</b>" in second.text
    assert "script-src 'sha256-" in second.headers["content-security-policy"]
    assert '<noscript><meta http-equiv="refresh"' in second.text
    assert "<script>" not in ended.text
    assert "script-src" not in ended.headers["content-security-policy"]


def test_two_sessions_are_compared_as_on_the_command_line(site: Site, root: Path) -> None:
    slow, fast = site.id_of("slow"), site.id_of("fast")
    page = site.get(f"/compare?baseline={slow}&candidate={fast}")
    told = json.loads(call("compare", root / "slow", root / "fast", "--json").stdout)
    for row in told["rows"]:
        low, high = (significant_digits_text(row[end]) for end in ("low", "high"))
        assert significant_digits_text(row["ratio"]) in page.text
        assert f"[{low}, {high}]" in page.text
    assert f"{told['verdicts']['better']} better" in page.text


def test_what_forbids_a_comparison_is_shown_before_any_row(tmp_path: Path) -> None:
    def deeper(plan: Plan) -> Plan:
        jobs = (replace(Job.require_type(run.point.job), iodepth=7) for run in plan.runs)
        points = (replace(run.point, job=job) for run, job in zip(plan.runs, jobs, strict=True))
        runs = (replace(run, point=point) for run, point in zip(plan.runs, points, strict=True))
        return replace(plan, runs=tuple(runs))

    make_target(tmp_path / "one", Target(name="one"))
    make_target(tmp_path / "two", Target(name="two", plan=deeper))
    site = Site(tmp_path)
    address = f"/compare?baseline={site.id_of('one')}&candidate={site.id_of('two')}"
    page = site.get(address)
    assert "Point by point" not in page.text
    again = re.search(r'href="(/compare[^"]+)"', page.text)
    assert again is not None
    assert "Point by point" in site.get(again[1].replace("&amp;", "&")).text


def test_of_several_configurations_one_is_chosen(tmp_path: Path) -> None:
    make_target(tmp_path / "one", Target(name="one"))

    def several(study: Study) -> Study:
        other = replace(study.configurations[0], id="other", title="Another one")
        return replace(study, configurations=(*study.configurations, other))

    make_target(tmp_path / "two", Target(name="two", study=several))
    site = Site(tmp_path)
    address = f"/compare?baseline={site.id_of('one')}&candidate={site.id_of('two')}"
    page = site.get(address)
    assert "Point by point" not in page.text
    assert "Another one" in page.text
    first = (
        site.library.load_session(site.library.list_sessions().lines[0].folder)
        .study.configurations[0]
        .id
    )
    chosen = site.get(f"{address}&candidate-configuration={first}")
    assert "Point by point" in chosen.text
    assert site.get(f"{address}&candidate-configuration=nope").status == 400


@pytest.mark.parametrize(
    "path",
    [
        *("/nope", "/static", "/sessions", "/sessions/", "/favicon.ico", "//", "/sessions/x/live"),
        *("/sessions/..", "/sessions/../../etc/passwd", "/sessions/%2e%2e/live"),
        *("/sessions/lab/whole", "/sessions/lab%2fwhole", "/sessions/slow", "/sessions/."),
        *("/sessions/0000000000000000", "/sessions/\x00", "/sessions//etc/passwd/show.json"),
    ],
)
def test_no_other_address_shows_anything(site: Site, path: str) -> None:
    answer = site.get(path)
    assert answer.status in {308, 404}
    assert "root:" not in answer.text
    assert "A synthetic study" not in answer.text


@pytest.mark.parametrize("query", ["", "?baseline=..", "?baseline=x&candidate=../../etc", "?x=1"])
def test_a_comparison_takes_ids_alone(site: Site, query: str) -> None:
    assert site.get(f"/compare{query}").status in {400, 404}


def test_a_session_with_a_link_in_it_shows_nothing(session: Path, tmp_path: Path) -> None:
    folder = Path(shutil.copytree(session, tmp_path / "root" / "one"))
    (tmp_path / "secret").write_text("the secret")
    (folder / "study.toml").unlink()
    (folder / "study.toml").symlink_to(tmp_path / "secret")
    site = Site(tmp_path / "root")
    one = site.id_of("one")
    paths = [f"/sessions/{one}{end}" for end in ("", "/live", "/show.json", "/report.html")]
    for answer in site.ask([*paths, f"/compare?baseline={one}&candidate={one}"]):
        assert answer.status == 500
        assert "is a link" in answer.text
        assert "the secret" not in answer.text
    assert "unreadable" in site.get("/").text


def test_a_broken_session_is_told_without_where_the_directory_lies(site: Site) -> None:
    answer = site.get(f"/sessions/{site.id_of('broken')}/live")
    assert answer.status == 500
    assert "broken/" in answer.text
    assert str(site.root) not in answer.text


def test_hostile_names_stay_text(tmp_path: Path) -> None:
    name = EVERY.replace("/", "").replace("\x00", "")[:200]
    hostile = Target(
        name=EVERY,
        study=lambda study: replace(
            study,
            title=EVERY,
            configurations=tuple(replace(one, title=EVERY) for one in study.configurations),
        ),
        result=lambda result: replace(result, failure=EVERY),
    )
    make_target(tmp_path / name, hostile)
    make_target(tmp_path / "other", hostile)
    site = Site(tmp_path)
    one, other = (line.folder.id for line in site.library.list_sessions().lines)
    paths = ["/", f"/sessions/{one}/live", f"/compare?baseline={one}&candidate={other}"]
    for answer in site.ask(paths):
        assert answer.status == 200
        assert "&lt;script&gt;" in answer.text
        assert "<script>window" not in answer.text
        assert "<img src=x" not in answer.text
        assert "\u202e" not in answer.text


def test_nothing_in_a_page_leads_elsewhere(site: Site) -> None:
    slow, fast = site.id_of("slow"), site.id_of("fast")
    paths = ["/", f"/sessions/{slow}/live", f"/compare?baseline={slow}&candidate={fast}", "/x"]
    for answer in site.ask(paths):
        assert re.findall(r"(?:src|href|action)=\"(?!/|#|data:,)", answer.text) == []
        assert "http://" not in answer.text
        assert "https://" not in answer.text
        assert " style=" not in answer.text
        assert re.findall(r" on\w+=", answer.text) == []


def test_a_metric_that_no_kind_declares_is_shown_by_its_key_or_left_out(tmp_path: Path) -> None:
    folder = tmp_path / "one"
    with SessionWriter.create(folder, STUDY, PLAN, "session-1", ("iolab", "run")) as writer:
        writer.record_host_facts_at_start(make_facts(SHAPE), "0.1.0")
        record = make_record(PLAN.runs[0], SHAPE)
        result = make_result(record)
        metrics = {"frames": Metric(3.0, "1/s"), **result.metrics}
        writer.commit_run(record, replace(result, metrics=metrics), analysis_version=1)
    site = Site(tmp_path)
    page = site.get(f"/sessions/{site.id_of('one')}/live")
    assert page.status == 200
    assert "IOPS" in page.text
    assert call("export", folder, "-f", "openmetrics").returncode == 0
    assert "frames" in call("show", folder, "--details").stdout
