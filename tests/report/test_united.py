"""Several sessions as one: names that tell apart, runs that lead back, differences, one brief."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

from iolab.analyse.gains import gains
from iolab.analyse.points import summarise
from iolab.errors import StoreError, UsageError
from iolab.model.configuration import Configuration
from iolab.model.engine import EngineName
from iolab.model.event import SessionStatus
from iolab.model.host import HostFacts
from iolab.model.metric import Result
from iolab.model.sample import BinTable
from iolab.model.study import Method
from iolab.report.brief import Brief, SessionSource, build_brief
from iolab.report.html import render_html
from iolab.report.markdown import render_markdown
from iolab.report.other_names import distinct
from iolab.report.page import Page, make_page
from iolab.report.sessions import Sessions
from iolab.report.table import Table
from iolab.report.united import SESSIONS_MAX, sessions_of, unite
from iolab.store.verify import Damage
from tests.report.studies import sweep
from tests.report.synthetic import Source


def session(name: str, factor: float = 1.0) -> Source:
    """A session of the sweep whose rates are so many times as high."""
    source = sweep(seconds=4)
    source.session = replace(
        source.session,
        id=f"id-{name}",
        command=("/opt/bin/iolab", "run", "ssd-cluster", "--out", f"/home/me/secret/{name}"),
    )
    source.results_given = tuple(faster(result, factor) for result in source.results())
    return source


def faster(result: Result, factor: float) -> Result:
    metrics = {
        name: replace(one, value=one.value and one.value * factor)
        for name, one in result.metrics.items()
    }
    return replace(result, metrics=metrics)


def with_facts(source: Source, change: Callable[[HostFacts], HostFacts]) -> Source:
    return replace(source, facts={name: change(facts) for name, facts in source.facts.items()})


def newer_kernel(facts: HostFacts) -> HostFacts:
    return replace(facts, kernel=replace(facts.kernel, release="9.9", boot_id="another"))


def used_and_rebooted(facts: HostFacts) -> HostFacts:
    target = facts.target and replace(facts.target, free_bytes=17)
    return replace(facts, target=target, kernel=replace(facts.kernel, boot_id="another"))


def with_method(source: Source, **settings: object) -> Source:
    method: Method = replace(source.study.method, **settings)  # type: ignore[arg-type]
    return replace(source, study=replace(source.study, method=method))


def with_jobs(source: Source, **parts: object) -> Source:
    """The session with that in every job, as asked for and as planned."""
    workloads = tuple(
        replace(one, job=replace(one.io, **parts))  # type: ignore[arg-type]
        for one in source.study.workloads
    )
    runs = tuple(
        replace(run, point=replace(run.point, job=replace(run.point.io, **parts)))  # type: ignore[arg-type]
        for run in source.plan.runs
    )
    study = replace(source.study, workloads=workloads)
    return replace(source, study=study, plan=replace(source.plan, runs=runs))


def briefed(*sources: tuple[str, SessionSource]) -> Brief:
    source = unite(sources)
    return build_brief(source, None, sessions_of(source))


def texts(table: Table) -> list[list[str]]:
    return [[cell.text for cell in cells] for cells in table.rows]


@pytest.fixture(scope="module")
def united() -> SessionSource:
    return unite([("fast", session("one", 2.0)), ("slow", session("two"))])


@pytest.fixture(scope="module")
def brief(united: SessionSource) -> Brief:
    return build_brief(united, None, sessions_of(united))


@pytest.fixture(scope="module")
def page(brief: Brief) -> Page:
    return make_page(brief)


def test_a_single_session_is_itself() -> None:
    source = session("one")
    assert unite([("one", source)]) is source
    assert sessions_of(source) == Sessions()
    assert make_page(build_brief(source)).sessions == ()


def test_configurations_that_clash_have_the_label_of_their_session(united: SessionSource) -> None:
    found = united.study.configurations
    assert [one.id for one in found] == ["fast", "slow"]
    assert [one.title for one in found] == ["Default (fast)", "Default (slow)"]
    assert {one.configuration for one in united.results()} == {one.id for one in found}


def test_configurations_that_are_told_apart_keep_their_names() -> None:
    other = sweep(("performance",), seconds=4)
    other.session = replace(other.session, id="other")
    found = unite([("a", session("one")), ("b", other)]).study.configurations
    assert [one.id for one in found] == ["default", "performance"]


def test_every_run_leads_back_to_its_own_session(united: SessionSource) -> None:
    sessions = sessions_of(united)
    own = {"fast": session("one", 2.0), "slow": session("two")}
    keys = [(one.digest, one.repeat) for one in united.results()]
    assert len(set(keys)) == len(keys) == 2 * len(own["fast"].results())
    for result in united.results():
        trace = sessions.trace((result.digest, result.repeat))
        (real,) = (
            one
            for one in own[trace.label].results()
            if (one.digest, one.repeat) == (trace.digest, trace.repeat)
        )
        assert (real.workload, real.axis, real.metrics) == (
            result.workload,
            result.axis,
            result.metrics,
        )
        assert result.configuration == trace.label


def test_a_run_s_tables_are_those_of_its_session() -> None:
    sources = {"fast": session("one"), "slow": sweep(("performance",), seconds=4)}
    sources["slow"].session = replace(sources["slow"].session, id="two")
    united = unite(list(sources.items()))
    sessions = sessions_of(united)
    for result in united.results()[::9]:
        key = (result.digest, result.repeat)
        trace = sessions.trace(key)
        mine = sources[trace.label].intervals(trace.digest, trace.repeat)
        assert np.array_equal(united.intervals(*key).ios, mine.ios)
        bins = sources[trace.label].bins(trace.digest, trace.repeat)
        assert np.array_equal(united.bins(*key).count, bins.count)
        assert len(united.counters(*key))
        manifest = united.manifest(*key)
        assert manifest.run.point.digest == result.digest
        assert manifest.run.point.configuration == result.configuration
        assert manifest.session == sources[trace.label].session.id


def test_a_point_of_no_session_is_an_error(united: SessionSource) -> None:
    with pytest.raises(StoreError, match="None of the sessions has a point 0000"):
        united.bins("0000", 1)


def test_hosts_whose_facts_are_the_same_are_one_host() -> None:
    other = with_facts(session("two"), used_and_rebooted)
    united = unite([("a", session("one")), ("b", other)])
    assert list(united.facts) == ["client-1"]
    assert {one.hosts for one in united.study.configurations} == {("client-1",)}


def test_hosts_of_one_name_that_differ_are_told_apart_wherever_they_are_named() -> None:
    sources = [
        ("a", session("one")),
        ("b", with_facts(session("two"), newer_kernel)),
        ("c", session("three")),
    ]
    united = unite(sources)
    assert sorted(united.facts) == ["client-1 (a, c)", "client-1 (b)"]
    assert united.facts["client-1 (b)"].kernel.release == "9.9"
    assert [one.hosts for one in united.study.configurations] == [
        ("client-1 (a, c)",),
        ("client-1 (b)",),
        ("client-1 (a, c)",),
    ]
    assert {spec.name for spec in united.study.hosts} == set(united.facts)
    for result in united.results():
        (host,) = united.study.configurations[result.sitting - 1].hosts
        assert [one.name for one in result.hosts] == [host]
        manifest = united.manifest(result.digest, result.repeat)
        assert [one.host for one in manifest.hosts] == [host]


def test_runs_of_two_sessions_are_no_pairs(united: SessionSource) -> None:
    points = summarise(united.results(), united.study)
    (found,) = gains(united.study, points)
    assert found.baseline == "fast"
    assert found.cells
    assert not any(cell.comparison.paired for cell in found.cells)


def test_what_differs_stands_beside_the_first_session() -> None:
    other = with_method(with_facts(session("two"), newer_kernel), runtime_s=99.0)
    rows = texts(make_page(briefed(("a", session("one")), ("b", other))).sessions[1])
    assert any(row[0] == "kernel" and row[2] == "9.9" for row in rows)
    assert any(row[0] == "runtime s" and row[2] == "99" for row in rows)
    assert not any(row[0].startswith("!") for row in rows)
    assert list(sessions_of(unite([("a", session("one")), ("b", other)])).forbidding()) == []


def test_nothing_differs_between_equal_sessions(page: Page) -> None:
    assert texts(page.sessions[1]) == [["Nothing", "same", "same"]]


def test_another_load_forbids_and_is_named_for_its_session() -> None:
    deeper = with_jobs(session("three"), direct=False)
    united = unite([("a", session("one")), ("b", session("two")), ("c", deeper)])
    found = list(sessions_of(united).forbidding())
    assert {label for label, _ in found} == {"c"}
    assert {one.what.rpartition(": ")[2] for _, one in found} == {"direct"}
    page = make_page(build_brief(united, None, sessions_of(united)))
    assert any("not measured in the same way" in alert for alert in page.alerts)
    assert any(row[0].startswith("! ") for row in texts(page.sessions[1]))
    titles = [row[0] for row in texts(page.jobs[0])]
    assert "Random read 4 KiB (a, b)" in titles
    assert "Random read 4 KiB (c)" in titles


def test_one_load_made_by_two_engines_stands_side_by_side() -> None:
    native = with_jobs(session("two"), engine=EngineName.NATIVE, ioengine="auto")
    united = unite([("fio", session("one")), ("native", native)])
    assert list(sessions_of(united).forbidding()) == []
    page = make_page(build_brief(united, None, sessions_of(united)))
    rows = texts(page.sessions[1])
    assert ["rand-read-4k: engine", "fio", "native"] in rows
    engines = {row[7] for row in texts(page.jobs[0])}
    assert len(engines) == 2
    assert any("Default (native)" in one.text for one in page.said)


def test_axes_of_all_sessions_are_told_together() -> None:
    source = session("two")
    first, *others = source.study.workloads
    (axis,) = first.sweep
    longer = replace(first, sweep=(replace(axis, values=(2, 16, 64)),))
    other = replace(source, study=replace(source.study, workloads=(longer, *others)))
    united = unite([("a", session("one")), ("b", other)])
    assert united.study.workloads[0].sweep[0].values == (1, 2, 4, 8, 16, 64)


def test_sessions_are_listed_with_what_each_is(page: Page) -> None:
    rows = texts(page.sessions[0])
    assert rows[0][0] == "fast"
    assert rows[0][2:] == [
        "ssd-cluster",
        "small",
        "Default (fast)",
        "18 of 18",
        "done",
        "0.1.0",
        "id-one",
    ]
    assert re.fullmatch(r"\d{4}-\d\d-\d\d \d\d:\d\d", rows[0][1])
    assert dict(page.facts)["Sessions"] == "2: fast, slow"
    assert ("sessions", "Sessions") in page.contents


def test_the_worst_status_stands_for_all_and_names_its_session() -> None:
    broken = session("two")
    broken.session = replace(
        broken.session, status=SessionStatus.INTERRUPTED, reason="The power was lost."
    )
    broken.results_given = broken.results()[:-3]
    brief = briefed(("a", session("one")), ("b", broken))
    assert brief.session.status is SessionStatus.INTERRUPTED
    assert make_page(brief).alerts == (
        "Session b was interrupted with 3 runs still to make. The power was lost.",
    )
    assert texts(make_page(brief).sessions[0])[1][5:7] == ["15 of 18", "interrupted"]


class Damaged(Source):
    """A session with a run that cannot be read, and another whose latencies cannot."""

    def damaged(self) -> tuple[Damage, ...]:
        return (Damage("points/abc/run-1", "It is no JSON."),)

    def bins(self, digest: str, repeat: int) -> BinTable:
        raise StoreError(
            f"'/home/me/two/points/{digest}/run-{repeat}/bins.parquet' is damaged.", "Restore it."
        )


def test_damage_is_told_by_session_and_real_place() -> None:
    sound = session("two")
    hurt = Damaged(
        sound.study, sound.plan, sound.facts, sound.session, sound.seconds, failed=sound.failed
    )
    brief = briefed(("a", session("one")), ("b", hurt))
    first = brief.damaged[0]
    assert first == Damage("b: points/abc/run-1", "It is no JSON.")
    real = {run.point.digest for run in sound.plan.runs}
    told = [re.match(r"b: (\w+), repeat 1$", one.path) for one in brief.damaged[1:]]
    assert told
    assert {match[1] for match in told if match} <= real
    assert None not in told


def test_every_run_of_the_report_says_where_it_is_stored(brief: Brief, page: Page) -> None:
    for part in page.runs:
        trace = brief.sessions.trace((part.result.digest, part.result.repeat))
        name = {"fast": "fast (id-one)", "slow": "slow (id-two)"}[trace.label]
        assert part.trace == f"Session {name}, points/{trace.digest}/run-{trace.repeat}"
    assert page.places is not None
    assert len(page.places.rows) == len(brief.results)
    alone = make_page(build_brief(session("one")))
    assert alone.places is None
    result = alone.runs[0].result
    wanted = f"Session id-one, points/{result.digest}/run-{result.repeat}"
    assert alone.runs[0].trace == wanted


def test_each_session_says_how_to_repeat_it_and_not_where_it_lay(page: Page, brief: Brief) -> None:
    assert [one.label for one in page.repeats] == ["fast", "slow"]
    assert all(one.study_file == "ssd-cluster.toml" for one in page.repeats)
    for document in (render_html(brief), render_markdown(brief)):
        assert "secret" not in document
        assert "iolab run ssd-cluster --out one" in document
        assert "id-two" in document


def test_studies_of_one_id_with_other_texts_have_files_of_their_own() -> None:
    other = session("two")
    other = replace(other, study=replace(other.study, text="# another"))
    page = make_page(briefed(("a", session("one")), ("b", other)))
    assert [one.study_file for one in page.repeats] == ["ssd-cluster.toml", "ssd-cluster-b.toml"]
    assert page.repeats[1].text == "# another"


def test_results_without_a_host_stand_apart_within_their_session() -> None:
    source = session("two")
    lost = [replace(one, without=("c3",)) for one in source.results()[:4]]
    source.results_given = (*lost, *source.results()[4:])
    brief = briefed(("a", session("one")), ("b", source))
    ids = [one.id for one in brief.study.configurations]
    assert ids == ["a", "b", "b without c3"]
    assert sum(one.configuration == ids[2] for one in brief.results) == 4


def test_methods_stand_side_by_side_where_they_differ(page: Page) -> None:
    assert [column.title for column in page.method.columns] == ["What", "How, in each session"]
    other = with_method(session("two"), repeats=7)
    found = make_page(briefed(("a", session("one")), ("b", other)))
    assert [column.title for column in found.method.columns] == ["What", "a", "b"]
    assert "mean of its repeats" in found.summary


def test_a_session_that_is_given_twice_is_refused() -> None:
    with pytest.raises(UsageError) as caught:
        unite([("a", session("one")), ("b", session("two")), ("copy", session("one"))])
    assert [fault.happened for fault in caught.value.faults] == ["a, copy are one session, id-one."]


def test_more_sessions_than_colours_are_refused() -> None:
    many = [(f"s{number}", session(f"{number}")) for number in range(SESSIONS_MAX + 1)]
    with pytest.raises(UsageError, match="17 sessions"):
        unite(many)


@pytest.mark.parametrize(
    ("names", "wanted"),
    [
        (["a", "b"], ["a", "b"]),
        (["a", "a", "a"], ["a", "a-2", "a-3"]),
        (["a", "a", "a-2"], ["a", "a-3", "a-2"]),
    ],
)
def test_labels_are_made_distinct(names: list[str], wanted: list[str]) -> None:
    assert distinct(names) == wanted


def test_sessions_of_several_configurations_stand_in_their_order() -> None:
    both = sweep(("one", "two"), seconds=4)
    both.session = replace(both.session, id="both")
    found = unite([("x", both), ("y", session("one"))]).study.configurations
    assert [(one.id, type(one)) for one in found] == [
        ("one", Configuration),
        ("two", Configuration),
        ("default", Configuration),
    ]
