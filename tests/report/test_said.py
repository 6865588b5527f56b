"""The story on the page: sentences with links to runs that are there."""

from __future__ import annotations

import re
from dataclasses import replace

from iolab.analyse.points import summarise
from iolab.report.brief import build_brief
from iolab.report.html import render_html
from iolab.report.said import FIRST, LINKS_MOST, said
from tests.report.studies import sweep

SOURCE = sweep(("alpha", "beta"), seconds=20)
PAGE = render_html(build_brief(SOURCE))


def section() -> str:
    found = re.search(r'<section id="said">(.*?)</section>', PAGE, re.S)
    assert found
    return found[1]


def test_every_sentence_leads_to_runs_of_the_page() -> None:
    sentences = re.findall(r"<li>(.*?)</li>", section(), re.S)
    assert len(sentences) > FIRST
    for one in sentences:
        anchors = re.findall(r'href="#([^"]+)"', one)
        assert len(anchors) <= LINKS_MOST
        assert anchors or "For capacity first" in one  # what was bought rests on no run
        assert all(f'id="{anchor}"' in PAGE for anchor in anchors)


def test_the_first_stand_open_and_the_others_are_folded() -> None:
    shown, _, folded = section().partition("<details>")
    assert shown.count("<li>") == FIRST
    assert folded.count("<li>") > 0
    assert f"{folded.count('<li>')} more</summary>" in folded


def test_runs_are_named_with_their_configuration_where_there_are_several() -> None:
    results = SOURCE.results()
    anchors = {(one.digest, one.repeat): "run-1" for one in results}
    points = summarise(results, SOURCE.study)
    first, *_ = said(SOURCE.study, points, results, anchors)
    assert first.links[0][1].endswith(" of Alpha")
    assert first.more == "and 20 more runs"
    alone = sweep(seconds=20)
    one = said(alone.study, summarise(alone.results(), alone.study), alone.results(), anchors)[0]
    assert all(" of " not in name for _, name in one.links)


def test_hostile_titles_stay_text_in_sentences() -> None:
    found = sweep(("alpha", "beta"), seconds=20)
    bad = "<script>alert(1)</script>\u202e"
    titled = tuple(replace(one, title=bad + one.title) for one in found.study.configurations)
    found.study = replace(found.study, configurations=titled)
    page = render_html(build_brief(found))
    assert "<script>alert" not in page  # the page has one script of its own
    assert "\u202e" not in page
    assert "&lt;script&gt;alert(1)&lt;/script&gt;\\u202eBeta is" in page
