from __future__ import annotations

import base64
import hashlib
import json
import re
from html.parser import HTMLParser

import pytest
from msgspec.structs import replace

from iolab.core.events import SessionStatus
from iolab.core.metric import VerdictLevel
from iolab.report.blocks import Heading, Paragraph, ParagraphStyle, SideBySideBlocks
from iolab.report.brief import Brief
from iolab.report.formats.html import (
    content_security_policy,
    page_script,
    page_sections,
    render_html,
    style_sheet,
)
from iolab.report.page import build_report_page
from tests.facts import tells
from tests.report import shared
from tests.report.hostile import EVERY, TURNED
from tests.report.studies import with_results
from tests.report.synthetic import objecting

FORBIDDEN = {"iframe", "object", "embed", "form", "base", "img", "audio", "video"}


class Elements(HTMLParser):
    """Every element of a page with its attributes, and the page's text."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.found: list[tuple[str, dict[str, str | None]]] = []
        self.text = ""
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, dict(attrs)))

    def handle_data(self, data: str) -> None:
        self.text += data


@pytest.fixture(scope="module")
def brief() -> Brief:
    return shared.brief("sweep")


@pytest.fixture(scope="module")
def page() -> str:
    return shared.html("sweep")


@pytest.fixture(scope="module")
def hostile_page() -> str:
    return shared.html("hostile")


def test_the_same_brief_gives_the_same_page() -> None:
    assert render_html(shared.brief("pair")) == shared.html("pair")


def test_the_policy_names_the_one_style_sheet_and_the_one_script(page: str) -> None:
    for kind, found in (
        ("style", re.findall(r"<style>(.*?)</style>", page, re.S)),
        ("script", re.findall(r"<script>(.*?)</script>", page, re.S)),
    ):
        assert len(found) == 1
        digest = base64.b64encode(hashlib.sha256(found[0].encode()).digest()).decode()
        assert f"{kind}-src &#39;sha256-{digest}&#39;" in page
    assert "default-src &#39;none&#39;" in page
    assert content_security_policy(style_sheet(), page_script()).count("unsafe") == 0


def test_a_chart_with_its_table_takes_some_kilobytes(page: str) -> None:
    assert len(page.encode()) < 20_000 * page.count('<svg class="chart"')


def test_the_script_makes_no_code_and_no_markup_of_text() -> None:
    words = r"eval|Function\(|innerHTML|outerHTML|insertAdjacent|document\.write|fetch\(|XMLHttp"
    assert re.findall(words, page_script()) == []
    assert len(page_script()) < 40_000


@pytest.mark.parametrize("name", ["page", "hostile_page"])
def test_beside_the_script_stand_only_blocks_of_data(
    name: str, request: pytest.FixtureRequest
) -> None:
    page = request.getfixturevalue(name)
    kinds = [attrs for tag, attrs in Elements(page).found if tag == "script"]
    assert kinds.count({}) == 1
    assert [one for one in kinds if one not in ({}, {"type": "application/json"})] == []
    blocks = re.findall(r'<script type="application/json">(.*?)</script>', page, re.S)
    assert len(blocks) > 10
    assert all(json.loads(block)["marks"] for block in blocks)
    assert [block for block in blocks if set(block) & set("<>&")] == []


@pytest.mark.parametrize("name", ["page", "hostile_page"])
def test_no_page_holds_anything_that_could_act(name: str, request: pytest.FixtureRequest) -> None:
    found = Elements(request.getfixturevalue(name)).found
    assert {tag for tag, _ in found} & FORBIDDEN == set()
    attributes = [(tag, key) for tag, attrs in found for key in attrs]
    assert [pair for pair in attributes if pair[1].startswith("on") or pair[1] == "style"] == []
    links = [attrs["href"] or "" for _, attrs in found if "href" in attrs]
    assert [link for link in links if not link.startswith(("#", "data:,"))] == []


def test_hostile_text_is_shown_as_text(hostile_page: str) -> None:
    text = Elements(hostile_page).text
    shown = EVERY.replace("\u202e", r"\u202e").replace("\u202c", r"\u202c")
    shown = shown.replace("\x1b", r"\x1b").replace("\x00", r"\x00")
    assert shown in text
    assert "{{7*7}}" in text
    assert not [char for char in TURNED if not char.isprintable() and char in hostile_page]


def test_ids_are_unique_and_every_anchor_leads_somewhere(page: str) -> None:
    found = Elements(page).found
    ids = [attrs["id"] for _, attrs in found if "id" in attrs]
    assert len(ids) == len(set(ids))
    anchors = {str(attrs["href"])[1:] for tag, attrs in found if tag == "a"}
    assert anchors <= set(ids)


def test_every_chart_has_words_and_a_table(page: str) -> None:
    figures = re.findall(r"<figure .*?</figure>", page, re.S)
    assert len(figures) > 20
    assert all(len(re.findall(r'aria-label="[^"]{20,}"', figure)) >= 1 for figure in figures)
    appendix = page[page.index('id="appendix"') :]
    backing = re.findall(r"<figure .*?</figure>", appendix, re.S)
    assert all(figure.count("<table") == 1 for figure in backing)
    charts = page[page.index('id="charts"') : page.index('id="configuration"')]
    groups = re.findall(r'<div class="charts">.*?</details>', charts, re.S)
    assert groups
    assert all("<table" in group for group in groups)


def test_every_result_stands_beside_its_verdict(brief: Brief, page: str) -> None:
    table = page[page.index('id="results"') : page.index('id="runs"')]
    rows = re.findall(r"<tr>(.*?)</tr>", table, re.S)[1:]
    assert len(rows) == len(brief.results)
    for row, result in zip(rows, brief.results, strict=True):
        assert f'class="badge {result.verdict.level.value}"' in row


def test_checks_that_object_are_told_with_their_evidence_and_all_by_their_code(
    brief: Brief, page: str
) -> None:
    objections = [check for result in brief.results for check in result.verdict.objections]
    assert objections
    tables = re.findall(r'<div class="checks">.*?</table>', page, re.S)
    assert sum(table.count("<tr><td") for table in tables) == len(objections)
    assert page.count("littles-law") >= len(brief.results) - 1


def test_a_best_point_stands_with_its_depth_and_leads_to_its_run(page: str) -> None:
    matrix = page[page.index('id="matrix"') : page.index('id="charts"')]
    assert "iodepth\N{NO-BREAK SPACE}16" in matrix
    assert matrix.count('class="bar"') >= 3
    assert re.search(r'href="#run-\d+"', matrix)


def test_an_invalid_figure_is_no_figure_on_the_first_page(brief: Brief) -> None:
    spoilt = tuple(
        replace(one, verdict=objecting(VerdictLevel.INVALID, "run-too-short", "It was short."))
        for one in brief.results
    )
    page = build_report_page(with_results(replace(brief, chart_data_by_run={}), spoilt))
    shown = [cell.text for row in page.answer.best_table.rows for cell in row[1:] if cell.text]
    measured = [text for text in shown if not text.endswith(("TB", "EUR", "×"))]
    assert set(measured) == {"not measurable"}
    assert not [text for text in shown if text.endswith(("IOPS", "B/s"))]
    assert "It was short." in page.answer.answer.sentence
    assert page.answer.charts == ()


def test_the_first_page_charts_every_unit() -> None:
    charts = shared.page("two").answer.charts
    units = [plot.x.title for chart in charts for plot in chart.plots if plot.x is not None]
    assert units == ["k IOPS", "MB/s"]


def test_titles_that_tables_shorten_stand_in_the_masthead() -> None:
    brief = shared.brief("pair")
    long = (
        replace(owner, title=f"{owner.title} (Micron {owner.id} 7.68 TB)")
        for owner in brief.study.configurations
    )
    titled = replace(
        brief, study=replace(brief.study, configurations=tuple(long)), chart_data_by_run={}
    )
    page = build_report_page(titled)
    heads = [column.title for column in page.answer.best_table.columns]
    assert heads == ["Workload", "One", "Two"]
    assert tells(dict(page.fact_rows)["Configurations"], "Micron one 7.68 TB", "Micron two 7.68 TB")


def test_the_masthead_has_no_session_and_an_alert_stands_once(brief: Brief) -> None:
    session = replace(brief.session, status=SessionStatus.FAILED, reason="The disk is full.")
    page = shared.drawn(replace(brief, session=session, chart_data_by_run={}))
    assert brief.session.id not in page[: page.index("<main>")]
    assert page.count("The disk is full.") == 1


def test_what_is_wrong_is_told_worst_first(page: str) -> None:
    told = page[page.index('id="know"') : page.index('id="results"')]
    failed, invalid, indicative = (
        told.index(text) for text in ("ended with signal 9", "a cache answered", "12 % below")
    )
    assert failed < invalid < indicative


def test_how_to_repeat_it_is_complete(brief: Brief, page: str) -> None:
    told = page[page.index('id="repeat"') :]
    for text in (
        '<pre tabindex="0">iolab run ssd-cluster.toml --set method.runtime=60s --scale small</pre>',
        "iolab run ssd-cluster --path /mnt/target --scale small",
        "fio-3.33",
        brief.plan.digest,
    ):
        assert text in told


def test_a_fleet_is_repeated_with_its_inventory_whose_text_is_not_told(brief: Brief) -> None:
    fleet = replace(brief.study, inventory='[[host]]\nkey = "/keys/bench"\n')
    page = shared.drawn(with_results(replace(brief, study=fleet, chart_data_by_run={}), ()))
    assert "--hosts hosts.toml" in page
    assert "/keys/bench" not in page


@pytest.mark.parametrize(
    ("status", "told"),
    [
        (SessionStatus.RUNNING, ("running",)),
        (SessionStatus.INTERRUPTED, ("interrupted", "3 runs")),
        (SessionStatus.FAILED, ("failed", "3 runs", "The disk is full.")),
    ],
)
def test_an_unfinished_session_says_so(
    brief: Brief, status: SessionStatus, told: tuple[str, ...]
) -> None:
    session = replace(brief.session, status=status, reason="The disk is full.")
    part = with_results(replace(brief, session=session, chart_data_by_run={}), brief.results[:-3])
    (alert, *_) = build_report_page(part).alerts
    assert [text for text in told if text not in alert] == []


def test_a_session_without_any_run_is_a_page(brief: Brief) -> None:
    session = replace(brief.session, status=SessionStatus.FAILED, reason="The disk is full.")
    nothing = with_results(replace(brief, chart_data_by_run={}, manifests={}, facts={}), ())
    page = shared.drawn(replace(nothing, session=session))
    assert "No run is committed yet." in page
    assert "The disk is full." in page
    assert "No host was reached yet." in page


def test_limits_and_caveats_stand_open_on_a_phone_and_the_method_folds() -> None:
    page = shared.drawn(shared.brief("two"))

    def is_folded(anchor: str) -> bool:
        return '<details class="part"' in page.partition(f'<section id="{anchor}">')[2][:80]

    assert '<section id="limits">' in page
    assert not is_folded("limits")
    assert not is_folded("caveats")  # as what they cast doubt on
    assert is_folded("method")


def test_what_was_measured_stands_above_the_answer_in_its_section() -> None:
    warning = Paragraph("Measured on loop1.", ParagraphStyle.ALERT)
    answer = SideBySideBlocks((Heading("Answer", 1, "answer"),), (Heading("Trust", 1, "trust"),))
    (first,) = page_sections((warning, answer))
    assert first.blocks == (warning, answer)
    told, _ = page_sections((Paragraph("Own words."), answer))
    assert told.blocks == (Paragraph("Own words."),)
