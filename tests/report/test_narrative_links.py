"""The story on the page: sentences with links to runs that are there."""

from __future__ import annotations

import re

from msgspec.structs import replace

from iolab.report.narrative import (
    LINKS_MAX,
    SENTENCES_SHOWN,
    LinkedSentence,
    factor_out_common_doubt,
    linked_finding_sentences,
)
from tests.report import shared
from tests.report.made import build_brief
from tests.report.studies import pair, sweep

SOURCE = sweep(("alpha", "beta"), seconds=6)


def section(anchor: str = "findings") -> str:
    found = re.search(rf'<section id="{anchor}">(.*?)</section>', shared.html("two"), re.S)
    assert found
    return found[1]


def test_every_sentence_leads_to_runs_of_the_page() -> None:
    sentences = re.findall(r"<li>(.*?)</li>", section() + section("more-findings"), re.S)
    assert len(sentences) > SENTENCES_SHOWN
    for one in sentences:
        anchors = re.findall(r'href="#([^"]+)"', one)
        assert len(anchors) <= LINKS_MAX
        assert anchors or "For capacity" in one  # what was bought rests on no run
        assert all(f'id="{anchor}"' in shared.html("two") for anchor in anchors)


def test_the_bottom_line_stands_open_and_the_other_findings_in_the_appendix() -> None:
    brief, _, appendix = shared.html("two").partition('<details class="appendix"')
    assert 'id="findings"' in brief
    assert "<details" not in section()
    assert section().count("<li>") == SENTENCES_SHOWN
    assert 'id="more-findings"' in appendix


def test_runs_are_named_with_their_configuration_where_there_are_several() -> None:
    first, *_ = linked_finding_sentences(replace(build_brief(SOURCE), run_resources={}))
    assert first.links[0][1].endswith(" of Alpha")
    assert first.hidden_links_text == "and 20 more runs"
    one = linked_finding_sentences(build_brief(sweep(seconds=6)))[0]
    assert all(" of " not in name for _, name in one.links)


def test_a_doubt_of_all_findings_is_told_once_and_one_of_some_with_each() -> None:
    doubtful = LinkedSentence("a: The best is 1. This is indicative only.", (), "")
    sure = LinkedSentence("b: The best is 2.", (), "")
    shorter, note = factor_out_common_doubt(
        (doubtful, replace(doubtful, text=f"b{doubtful.text[1:]}"))
    )
    assert [item.text for item in shorter] == ["a: The best is 1.", "b: The best is 1."]
    assert "indicative" in note
    for some in ((doubtful, sure), (doubtful,), ()):
        assert factor_out_common_doubt(some) == (some, "")


def test_hostile_titles_stay_text_in_sentences() -> None:
    found = pair()
    bad = "<script>alert(1)</script>\u202e"
    titled = tuple(replace(one, title=bad + one.title) for one in found.study.configurations)
    found.study = replace(found.study, configurations=titled)
    page = shared.drawn(shared.undrawn(build_brief(found)))
    assert "<script>alert" not in page  # the page has one script of its own
    assert "\u202e" not in page
    assert "&lt;script&gt;alert(1)&lt;/script&gt;\\u202eTwo" in page


def test_the_runs_that_are_led_to_are_of_as_many_points_as_have_room() -> None:
    brief = replace(build_brief(SOURCE), run_resources={})
    digests = {anchor: key[0] for key, anchor in brief.run_anchors.items()}
    for sentence in linked_finding_sentences(brief):
        anchors = [anchor for anchor, _ in sentence.links]
        of = {digests[anchor] for anchor in anchors}
        assert len(of) == len(anchors) or len(anchors) < LINKS_MAX or len(of) > 1
    first, *_ = linked_finding_sentences(brief)
    assert len({digests[anchor] for anchor, _ in first.links}) == LINKS_MAX
