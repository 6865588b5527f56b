"""What a report on several sessions tells of them: what each is, what differs, where runs lie."""

from __future__ import annotations

import re

import pytest
from msgspec.structs import replace

from iolab.core.events import SessionStatus
from iolab.core.samples import BinTable
from iolab.errors import StoreError
from iolab.loads.fileio.engine_facts import NATIVE_ENGINE
from iolab.report.blocks import (
    Heading,
    Paragraph,
    ParagraphStyle,
    SideBySideBlocks,
    brief_blocks,
)
from iolab.report.brief import Brief
from iolab.report.formats.markdown import render_appendix, render_markdown
from iolab.report.gather import StoredSessionReader
from iolab.report.merged import merge_sessions, session_union_of_source
from iolab.report.page import ReportPage, build_report_page
from iolab.store.verify import Damage
from tests.facts import tells
from tests.report import shared
from tests.report.made import build_brief
from tests.report.several import (
    briefed,
    newer_kernel,
    session,
    texts,
    with_facts,
    with_jobs,
    with_method,
)
from tests.report.synthetic import Source


@pytest.fixture(scope="module")
def brief(united: StoredSessionReader) -> Brief:
    return build_brief(united, None, session_union_of_source(united))


@pytest.fixture(scope="module")
def page(brief: Brief) -> ReportPage:
    return build_report_page(brief)


def test_what_differs_stands_beside_the_first_session() -> None:
    other = with_method(with_facts(session("two"), newer_kernel), runtime_s=99.0)
    rows = texts(build_report_page(briefed(("a", session("one")), ("b", other))).session_tables[1])
    assert any(row[0] == "kernel" and row[2] == "9.9" for row in rows)
    assert any(row[0] == "runtime s" and row[2] == "99" for row in rows)
    assert not any(row[0].startswith("!") for row in rows)
    assert (
        list(
            session_union_of_source(
                merge_sessions([("a", session("one")), ("b", other)])
            ).session_labels_and_forbidding_differences()
        )
        == []
    )


def test_nothing_differs_between_equal_sessions(page: ReportPage) -> None:
    assert texts(page.session_tables[1]) == [["Nothing", "same", "same"]]


def test_another_load_forbids_and_is_named_for_its_session() -> None:
    deeper = with_jobs(session("three"), direct=False)
    united = merge_sessions([("a", session("one")), ("b", session("two")), ("c", deeper)])
    found = list(session_union_of_source(united).session_labels_and_forbidding_differences())
    assert {label for label, _ in found} == {"c"}
    assert {one.setting for _, one in found} == {"direct"}
    page = build_report_page(build_brief(united, None, session_union_of_source(united)))
    (alert, *_) = (alert for alert in page.alerts if "same way" in alert)
    blocks = list(brief_blocks(build_brief(united, None, session_union_of_source(united)), page))
    banner = blocks[[isinstance(block, SideBySideBlocks) for block in blocks].index(True) - 1]
    assert isinstance(banner, Paragraph)
    assert banner.style is ParagraphStyle.ALERT
    assert alert in banner.text  # over the whole width, above the answer
    assert any(row[0].startswith("! ") for row in texts(page.session_tables[1]))
    titles = [row[0] for row in texts(page.job_tables[0])]
    assert {"Random read 4 KiB (a, b)", "Random read 4 KiB (c)"} <= {*titles}


def test_one_load_made_by_two_engines_stands_side_by_side() -> None:
    native = with_jobs(session("two"), engine=NATIVE_ENGINE, ioengine="auto")
    united = merge_sessions([("fio", session("one")), ("native", native)])
    assert list(session_union_of_source(united).session_labels_and_forbidding_differences()) == []
    page = build_report_page(build_brief(united, None, session_union_of_source(united)))
    rows = texts(page.session_tables[1])
    assert ["every workload: engine", "fio", "native"] in rows
    engines = {row[7] for row in texts(page.job_tables[0])}
    assert len(engines) == 2
    assert any("Default (native)" in one.text for one in page.findings)


def test_sessions_are_listed_with_what_each_is(page: ReportPage) -> None:
    rows = texts(page.session_tables[0])
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
    assert dict(page.fact_rows)["Sessions"] == "2: fast and slow"
    blocks = list(brief_blocks(shared.brief("pair"), page))
    assert (
        blocks.index(page.session_tables[0]) == blocks.index(Heading("Sessions", 1, "sessions")) + 1
    )


def test_the_worst_status_stands_for_all_and_names_its_session() -> None:
    broken = session("two")
    broken.session = replace(
        broken.session, status=SessionStatus.INTERRUPTED, reason="The power was lost."
    )
    broken.results_given = broken.results()[:-3]
    brief = briefed(("a", session("one")), ("b", broken))
    assert brief.session.status is SessionStatus.INTERRUPTED
    (alert,) = build_report_page(brief).alerts
    assert tells(alert, "b", "interrupted", "3 runs", "power was lost")
    assert texts(build_report_page(brief).session_tables[0])[1][5:7] == ["15 of 18", "interrupted"]


class Damaged(Source):
    """A session with a run that cannot be read, and another whose latencies cannot."""

    def damage_of_documents_and_manifests(self) -> tuple[Damage, ...]:
        return (Damage("points/abc/run-1", "It is no JSON."),)

    def bins(self, digest: str, repeat: int) -> BinTable:
        raise StoreError(
            f"'/srv/secret/points/{digest}/run-{repeat}/bins.parquet' is damaged.", "Restore it."
        )


def test_damage_is_told_by_session_and_real_place() -> None:
    sound = session("two")
    hurt = Damaged(
        sound.study, sound.plan, sound.facts, sound.session, sound.seconds, failed=sound.failed
    )
    brief = briefed(("a", session("one")), ("b", hurt))
    first = brief.damaged_runs[0]
    assert first == Damage("b: points/abc/run-1", "It is no JSON.")
    real = {run.point.digest for run in sound.plan.runs}
    told = [re.match(r"b: (\w+), repeat 1$", one.path) for one in brief.damaged_runs[1:]]
    assert told
    assert {match[1] for match in told if match} <= real
    assert None not in told


def test_every_run_of_the_report_says_where_it_is_stored(brief: Brief, page: ReportPage) -> None:
    for part in page.runs:
        trace = brief.session_union.run_source((part.result.digest, part.result.repeat))
        name = {"fast": "fast (id-one)", "slow": "slow (id-two)"}[trace.label]
        assert part.storage_text == f"Session {name}, points/{trace.digest}/run-{trace.repeat}"
    assert page.run_folders is not None
    assert len(page.run_folders.rows) == len(brief.results)
    alone = build_report_page(build_brief(session("one")))
    assert alone.run_folders is None
    result = alone.runs[0].result
    wanted = f"Session id-one, points/{result.digest}/run-{result.repeat}"
    assert alone.runs[0].storage_text == wanted


def test_each_session_says_how_to_repeat_it_and_not_where_it_lay(
    page: ReportPage, brief: Brief
) -> None:
    assert [one.label for one in page.reproduction_instructions] == ["fast", "slow"]
    assert all(one.study_file == "ssd-cluster.toml" for one in page.reproduction_instructions)
    text = f"{render_markdown(brief)}{render_appendix(brief)}"
    for document in (shared.drawn(shared.undrawn(brief)), text):
        assert "secret" not in document
        assert "iolab run ssd-cluster --out one" in document
        assert "id-two" in document


def test_studies_of_one_id_with_other_texts_have_files_of_their_own() -> None:
    other = session("two")
    other = replace(other, study=replace(other.study, text="# another"))
    page = build_report_page(briefed(("a", session("one")), ("b", other)))
    assert [one.study_file for one in page.reproduction_instructions] == [
        "ssd-cluster.toml",
        "ssd-cluster-b.toml",
    ]
    assert page.reproduction_instructions[1].study_text == "# another"


def test_methods_stand_side_by_side_where_they_differ(page: ReportPage) -> None:
    assert [column.title for column in page.method_table.columns] == [
        "What",
        "How, in each session",
    ]
    other = with_method(session("two"), repeats=7)
    found = build_report_page(briefed(("a", session("one")), ("b", other)))
    assert [column.title for column in found.method_table.columns] == ["What", "a", "b"]
    assert any("its other repeats" in text for text in found.answer.trust_texts)
