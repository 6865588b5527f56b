"""Several sessions as one: names that tell apart, and runs that lead back to their own."""

from __future__ import annotations

import numpy as np
import pytest
from msgspec.structs import replace

from iolab.analysis.pairs import compare_configurations
from iolab.analysis.points import summarise_points
from iolab.analysis.resume_checks import merged_session_index
from iolab.core.configuration import Configuration
from iolab.errors import StoreError, UsageError
from iolab.report.brief import SessionUnion
from iolab.report.gather import StoredSessionReader
from iolab.report.merged import (
    SESSIONS_MAX,
    merge_sessions,
    names_with_duplicates_numbered,
    session_union_of_source,
)
from iolab.report.page import build_report_page
from tests.report.made import build_brief
from tests.report.several import (
    briefed,
    newer_kernel,
    scattered,
    session,
    used_and_rebooted,
    with_facts,
)
from tests.report.studies import sweep


def test_a_single_session_is_itself() -> None:
    source = session("one")
    assert merge_sessions([("one", source)]) is source
    assert session_union_of_source(source) == SessionUnion()
    assert build_report_page(build_brief(source)).session_tables == ()


def test_configurations_that_clash_have_the_label_of_their_session(
    united: StoredSessionReader,
) -> None:
    found = united.study.configurations
    assert [one.id for one in found] == ["fast", "slow"]
    assert [one.title for one in found] == ["Default (fast)", "Default (slow)"]
    assert {one.configuration for one in united.results()} == {one.id for one in found}


def test_configurations_that_are_told_apart_keep_their_names() -> None:
    other = sweep(("performance",), seconds=4)
    other.session = replace(other.session, id="other")
    found = merge_sessions([("a", session("one")), ("b", other)]).study.configurations
    assert [one.id for one in found] == ["default", "performance"]


def test_every_run_leads_back_to_its_own_session(united: StoredSessionReader) -> None:
    sessions = session_union_of_source(united)
    own = {"fast": session("one", 2.0), "slow": session("two")}
    keys = [(one.digest, one.repeat) for one in united.results()]
    assert len(set(keys)) == len(keys) == 2 * len(own["fast"].results())
    for result in united.results():
        trace = sessions.run_source((result.digest, result.repeat))
        (real,) = (
            one
            for one in own[trace.label].results()
            if (one.digest, one.repeat) == (trace.digest, trace.repeat)
        )
        assert (real.workload, real.axis_values, real.metrics) == (
            result.workload,
            result.axis_values,
            result.metrics,
        )
        assert result.configuration == trace.label


def test_a_run_s_tables_are_those_of_its_session() -> None:
    sources = {"fast": session("one"), "slow": sweep(("performance",), seconds=4)}
    sources["slow"].session = replace(sources["slow"].session, id="two")
    united = merge_sessions(list(sources.items()))
    sessions = session_union_of_source(united)
    for result in united.results()[::9]:
        key = (result.digest, result.repeat)
        trace = sessions.run_source(key)
        mine = sources[trace.label].intervals(trace.digest, trace.repeat)
        assert np.array_equal(united.intervals(*key).ios, mine.ios)
        bins = sources[trace.label].bins(trace.digest, trace.repeat)
        assert np.array_equal(united.bins(*key).count, bins.count)
        assert len(united.counters(*key))
        manifest = united.manifest(*key)
        assert manifest.run.point.digest == result.digest
        assert manifest.run.point.configuration == result.configuration
        assert manifest.session == sources[trace.label].session.id


def test_a_point_of_no_session_is_an_error(united: StoredSessionReader) -> None:
    with pytest.raises(StoreError, match="point 0000"):
        united.bins("0000", 1)


def test_hosts_whose_facts_are_the_same_are_one_host() -> None:
    other = with_facts(session("two"), used_and_rebooted)
    united = merge_sessions([("a", session("one")), ("b", other)])
    assert list(united.facts) == ["client-1"]
    assert {one.hosts for one in united.study.configurations} == {("client-1",)}


def test_hosts_of_one_name_that_differ_are_told_apart_wherever_they_are_named() -> None:
    sources = [
        ("a", session("one")),
        ("b", with_facts(session("two"), newer_kernel)),
        ("c", session("three")),
    ]
    united = merge_sessions(sources)
    assert sorted(united.facts) == ["client-1 (a, c)", "client-1 (b)"]
    assert united.facts["client-1 (b)"].kernel.release == "9.9"
    assert [one.hosts for one in united.study.configurations] == [
        ("client-1 (a, c)",),
        ("client-1 (b)",),
        ("client-1 (a, c)",),
    ]
    assert {spec.name for spec in united.study.hosts} == set(united.facts)
    for result in united.results():
        (host,) = united.study.configurations[merged_session_index(result) - 1].hosts
        assert [one.name for one in result.hosts] == [host]
        manifest = united.manifest(result.digest, result.repeat)
        assert [one.host for one in manifest.hosts] == [host]


def test_runs_of_two_sessions_are_no_pairs(united: StoredSessionReader) -> None:
    points = summarise_points(united.results(), united.study)
    (found,) = compare_configurations(united.study, points)
    assert found.baseline == "fast"
    assert found.cells
    assert not any(cell.comparison.is_paired for cell in found.cells)


def test_axes_of_all_sessions_are_told_together() -> None:
    source = session("two")
    first, *others = source.study.workloads
    (axis,) = first.sweep
    longer = replace(first, sweep=(replace(axis, values=(2, 16, 64)),))
    other = replace(source, study=replace(source.study, workloads=(longer, *others)))
    united = merge_sessions([("a", session("one")), ("b", other)])
    assert united.study.workloads[0].sweep[0].values == (1, 2, 4, 8, 16, 64)


def test_results_without_a_host_stand_apart_within_their_session() -> None:
    source = session("two")
    lost = [replace(one, excluded_hosts=("c3",)) for one in source.results()[:4]]
    source.results_given = (*lost, *source.results()[4:])
    brief = briefed(("a", session("one")), ("b", source))
    ids = [one.id for one in brief.study.configurations]
    assert ids == ["a", "b", "b without c3"]
    assert sum(one.configuration == ids[2] for one in brief.results) == 4


def test_a_session_that_is_given_twice_is_refused() -> None:
    with pytest.raises(UsageError) as caught:
        merge_sessions([("a", session("one")), ("b", session("two")), ("copy", session("one"))])
    (fault,) = caught.value.faults
    assert fault.message == "a and copy are one session, id-one."


def test_more_sessions_than_colours_are_refused() -> None:
    many = [(f"s{number}", session(f"{number}")) for number in range(SESSIONS_MAX + 1)]
    with pytest.raises(UsageError, match="17 sessions"):
        merge_sessions(many)


@pytest.mark.parametrize(
    ("names", "wanted"),
    [
        (["a", "b"], ["a", "b"]),
        (["a", "a", "a"], ["a", "a-2", "a-3"]),
        (["a", "a", "a-2"], ["a", "a-3", "a-2"]),
    ],
)
def test_labels_are_made_distinct(names: list[str], wanted: list[str]) -> None:
    assert names_with_duplicates_numbered(names) == wanted


def test_sessions_of_several_configurations_stand_in_their_order() -> None:
    both = sweep(("one", "two"), seconds=4)
    both.session = replace(both.session, id="both")
    found = merge_sessions([("x", both), ("y", session("one"))]).study.configurations
    assert [(one.id, type(one)) for one in found] == [
        ("one", Configuration),
        ("two", Configuration),
        ("default", Configuration),
    ]


def test_each_point_has_the_interval_that_its_own_session_gives_it() -> None:
    sources = [("a", scattered("one", 0.2)), ("b", scattered("two", 0.002))]
    together = summarise_points(merge_sessions(sources).results(), merge_sessions(sources).study)
    alone = zip(
        *(summarise_points(source.results(), source.study) for _, source in sources), strict=True
    )
    assert [point.metrics for point in together] == [
        point.metrics for pair in alone for point in pair
    ]
    assert any(point.metrics["iops"].low is not None for point in together)
