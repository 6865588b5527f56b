"""What to take and why, or why none can be named, on the first page and at the end."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from msgspec.structs import replace

from iolab.analysis.findings import BestPointFinding
from iolab.core.configuration import Configuration, ProcurementCost
from iolab.core.host import HostSpec, HostTransport
from iolab.core.metric import VerdictLevel
from iolab.report.best import BestFigure
from iolab.report.blocks import Paragraph, blocks_in_reading_order, brief_blocks
from iolab.report.brief import Brief
from iolab.report.choice import choice_answer
from iolab.report.conclusion import conclusion_sentences
from iolab.report.matrix import workload_rows
from iolab.report.page import build_report_page
from iolab.report.value import cost_capacity_rows, merge_storage_alone_rows_into_notes
from tests.facts import tells
from tests.report import shared
from tests.report.priced import configuration, euros
from tests.report.test_answer import figure

BOTH = tuple(Configuration(name, name, ("h",), "/x") for name in ("one", "two"))


def brief_of(owners: Sequence[Configuration]) -> Brief:
    made = shared.brief("sweep")
    names = dict.fromkeys(name for owner in owners for name in owner.hosts)
    hosts = tuple(HostSpec(name, HostTransport.LOCAL) for name in names)
    return replace(
        made, study=replace(made.study, configurations=tuple(owners), hosts=hosts), facts={}
    )


def concluded(*figures: BestFigure, owners: Sequence[Configuration] = BOTH) -> str:
    brief = brief_of(owners)
    rows = workload_rows(figures)
    texts = (
        choice_answer(rows, {owner.id: owner.title for owner in owners}).text,
        conclusion_sentences(brief, rows, cost_capacity_rows(brief, figures)),
    )
    return " ".join(texts)


def pair(title: str, one: float, two: float, half: float | None = 0.01) -> tuple[BestFigure, ...]:
    n = 1 if half is None else 3
    return tuple(
        figure(owner, value, half, title=title, n=n)
        for owner, value in (("one", one), ("two", two))
    )


def best_point(found: BestFigure, repeats: int) -> BestPointFinding:
    """A best point of that figure, whose repeats give it to within a little."""
    value = found.value.value or 0.0
    return replace(
        shared.brief("sweep").best_points[0],
        configuration=found.configuration,
        value=found.value,
        values_by_repeat=tuple(
            ((0, number), value * (1 + 0.001 * number)) for number in range(repeats)
        ),
    )


def test_one_that_is_the_best_everywhere_is_to_be_taken() -> None:
    text = concluded(*pair("reads", 100.0, 200.0), *pair("writes", 100.0, 150.0))
    assert tells(text, "two is the best in both workloads", "reads (2.00×)", "writes (1.50×)")


def test_several_winners_have_their_workloads_and_the_rest_is_said() -> None:
    text = concluded(
        *pair("reads", 100.0, 200.0), *pair("writes", 150.0, 100.0), *pair("mix", 100.0, 100.1)
    )
    assert tells(text, "is the best in reads", "writes (1.50×)", "Not distinguishable in mix")


def test_where_none_can_be_named_the_reason_and_the_next_step_are() -> None:
    alike = concluded(*pair("reads", 100.0, 100.1), *pair("writes", 100.0, 100.1))
    assert tells(alike, "Take any", "2 workloads")
    single = concluded(*pair("reads", 100.0, 200.0, None), *pair("writes", 100.0, 150.0, None))
    assert tells(single, "two is ahead", "reads (2.00×)", "too few repeats", "three")


def test_figures_that_are_all_indicative_are_no_ground_to_decide_on() -> None:
    figures = tuple(
        replace(one, verdict_level=VerdictLevel.INDICATIVE) for one in pair("reads", 1.0, 2.0)
    )
    text = choice_answer(workload_rows(figures), {}).text
    assert tells(text, "two is the best", "All figures are indicative", "before you rely on them")


@pytest.mark.parametrize("half", [0.01, None])
def test_the_best_value_is_named_or_said_to_be_open(half: float | None) -> None:
    owners = (configuration("one", cost=euros(1000)), configuration("two", cost=euros(4000)))
    points = shared.brief("sweep").points
    brief = brief_of(owners)
    wanted = {("one", 100.0), ("two", 110.0)}
    bests = [
        best_point(figure(owner, value, half), 1 if half is None else 3)
        for owner, value in sorted(wanted)
    ]
    assert points
    priced = replace(brief)
    priced.__dict__["best_points"] = tuple(bests)
    figures = pair("reads", 100.0, 110.0)
    costs = cost_capacity_rows(priced, figures)
    text = conclusion_sentences(priced, workload_rows(figures), costs)
    assert tells(text, "Best value", "One, 3.64×")
    assert ("perhaps" in text) is ("too few repeats" in text) is (half is None)
    assert ("3.64× (" in text) is (half is not None)  # with the interval of the lead


def test_another_best_value_of_storage_alone_is_said() -> None:
    owners = (
        configuration("one", cost=ProcurementCost("EUR", 900.0, 10.0, 100.0)),
        configuration("two", cost=ProcurementCost("EUR", 100.0, 10.0, 800.0)),
    )
    figures = pair("reads", 100.0, 110.0)
    brief = brief_of(owners)
    brief.__dict__["best_points"] = tuple(best_point(found, 3) for found in figures)
    rows = cost_capacity_rows(brief, figures)
    text = conclusion_sentences(brief, workload_rows(figures), rows)
    # 110 of 910 against 100 of 1010; of storage alone 100 of 100 against 110 of 800.
    assert tells(text, "Best value: Two, 1.22×", "of storage alone One, 7.27×"), text
    alone = [row for row in rows if row.is_of_storage_alone]
    assert [figure.text for figure in alone[0].figures] == ["0.250 EUR", "2.00 EUR"]
    noted = [
        figure.note for row in merge_storage_alone_rows_into_notes(rows) for figure in row.figures
    ]
    assert [note for note in noted if note][:2] == [
        "storage alone 0.250 EUR",
        "storage alone 2.00 EUR",
    ]
    same = (replace(owners[0], cost=ProcurementCost("EUR", 0.0, 0.0, 100.0)),) * 2
    assert not any(row.is_of_storage_alone for row in cost_capacity_rows(brief_of(same), figures))


def test_a_buyer_is_told_where_no_price_is_stated() -> None:
    owners = tuple(configuration(name) for name in ("one", "two"))
    assert tells(concluded(*pair("reads", 1.0, 2.0), owners=owners), "no cost")
    assert "cost" not in concluded(*pair("reads", 1.0, 2.0))


def test_it_stands_on_the_first_page_alone() -> None:
    for name in ("two", "kpi"):
        brief = shared.brief(name)
        page = build_report_page(brief)
        text = page.answer.answer.sentence
        assert text
        blocks = list(blocks_in_reading_order(brief_blocks(brief, page)))
        places = [
            at
            for at, block in enumerate(blocks)
            if isinstance(block, Paragraph) and block.text == text
        ]
        assert len(places) == 1


def test_a_demonstration_names_the_best_and_gives_no_advice() -> None:
    figures = (*pair("reads", 100.0, 200.0), *pair("writes", 150.0, 100.0))
    rows = workload_rows(figures)
    text = choice_answer(rows, {}, is_advice=False).text
    assert tells(text, "two was the best in reads", "one in writes (1.50×); sure in both"), text
    alike = choice_answer(workload_rows(pair("reads", 100.0, 100.1)), {}, is_advice=False).text
    still_open = workload_rows(pair("reads", 100.0, 200.0, None))
    leading = choice_answer(still_open, {}, is_advice=False).text
    assert leading.startswith("two is ahead in reads")
    assert not any("Take" in said for said in (text, alike, leading))
