"""Sentences made of findings: what they tell, and none that a finding does not support."""

from __future__ import annotations

import re

import pytest
from msgspec.structs import replace

from iolab.analysis.findings import BestPointFinding, Finding, LargestSpeedupFinding
from iolab.core.metric import Metric, VerdictLevel
from iolab.report.narrative import finding_sentence, sentences_for_findings
from iolab.report.phrases import ConfigurationNames
from tests.analysis.findings.cells import curve, found_in, sized
from tests.facts import tells
from tests.loads.keyvalue.studies import BASE, OTHER, STUDY

RISING = {4: 4000.0, 16: 14_000.0, 64: 20_000.0}


def told(found: tuple[Finding, ...]) -> list[str]:
    return [one.text for one in sentences_for_findings(STUDY, found)]


def test_the_story_of_two_configurations() -> None:
    study = sized(base=1000.0, other=2000.0)
    other = {4: 4400.0, 16: 14_000.0, 64: 16_000.0}
    found = found_in(
        curve(BASE, RISING, spread=1e-5), curve(OTHER, other, spread=1e-5), study=study
    )
    ours, theirs, point = "new-ssd", "old-ssd", "readrandom-4k"
    wanted = [
        ("capacity", theirs, "100 TB", "1000 EUR", "2.00×", ours),
        ("performance", theirs, "1.25×", ours, "1 workload"),
        ("performance", "cost", theirs, "1000 EUR", "2.50×", ours, "1 workload"),
        ("all-round", theirs, "1000 EUR", ours, "40 %"),
        (point, ours, "1.10×", "the operations", theirs, "threads 4", "3 points"),
        (point, ours, "9.1 % lower read mean latency than", theirs, "threads 4", "3 points"),
        (ours, theirs, "operations", "3 points", "better in 1", "worse in 1", "same in 1"),
        (ours, theirs, "read mean latency", "3 points", "better in 1", "worse in 1", "same in 1"),
        (point, ours, "threads 4", "10 %", theirs, "threads 64", "25 %"),
        (point, theirs, "20.0 k ops/s", "threads 64", "3 points"),
        (point, ours, "16.0 k ops/s", "threads 64", "3 points"),
        (point, theirs, "threads 16", "64", "rises", "43 %", "latency grows", "180 %"),
        (point, ours, "threads 16", "64", "rises", "14 %", "latency grows", "250 %"),
        (theirs, "1000 EUR", "100 TB", "2 configurations"),
        (point, theirs, "1000 EUR", "20.0 k ops/s", "2 configurations"),
        (point, theirs, "TB usable", "200 ops/s", "2 configurations"),
        (point, theirs, "node", "5.00 k ops/s", "2 configurations"),
    ]
    sentences = [
        re.sub(r" \([^)]*\)", "", one.text) for one in sentences_for_findings(study, found)
    ]
    assert [
        one for one, facts in zip(sentences, wanted, strict=True) if not tells(one, *facts)
    ] == []


def test_every_sentence_names_runs_or_counts_what_was_bought() -> None:
    found = found_in(curve(BASE, RISING), curve(OTHER, {4: 5000.0}), study=sized(1.0, 2.0))
    for one in sentences_for_findings(sized(1.0, 2.0), found):
        assert one.runs or "capacity" in one.text


def test_a_best_has_its_doubts_and_a_name_only_among_others() -> None:
    kept = curve(BASE, {4: 10.0}, level=VerdictLevel.INDICATIVE, repeats=1)
    (best,) = [one for one in found_in(kept) if isinstance(one, BestPointFinding)]
    alone, one = (
        finding_sentence(best, ConfigurationNames(names))
        for names in ({BASE: "A"}, {BASE: "A", OTHER: "B"})
    )
    assert tells(alone, "readrandom-4k", "10.0 ops/s", "one run", "indicative"), alone
    assert not tells(alone, "A")
    assert tells(one, "readrandom-4k", "A", "10.0 ops/s", "one run", "indicative"), one


def test_what_is_better_by_chance_is_not_said_to_be() -> None:
    near = found_in(curve(BASE, RISING, spread=0.3), curve(OTHER, RISING, spread=0.3))
    assert not [one for one in near if isinstance(one, LargestSpeedupFinding)]
    text = " ".join(told(near))
    assert "the most" not in text
    assert tells(text, "not distinguishable in 3")
    (bend,) = [one for one in told(found_in(curve(BASE, RISING, spread=0.3))) if "bends" in one]
    assert "low confidence" in bend


def test_a_lead_at_one_load_is_not_told_of_others() -> None:
    rates = {1: 1000.0, 4: 4000.0, 16: 14_000.0, 64: 20_000.0}
    base, other = curve(BASE, rates), curve(OTHER, {**rates, 4: 4400.0, 16: 12_000.0})
    (text,) = [one for one in told(found_in(base, other)) if "leads" in one]
    assert tells(text, "new-ssd", "at threads 4", "9.9 %", "old-ssd", "at threads 16", "16 %"), text


@pytest.mark.parametrize(
    ("metric", "share", "low", "high", "facts"),
    [
        ("iops", 0.5, 0.4, 0.6, ("New", "1.50×", "1.40×", "1.60×", "the IOPS", "Old")),
        ("iops", 1.5, 1.4, 1.62, ("New", "2.50×", "2.40×", "2.62×", "IOPS", "Old")),
        ("iops", 122.7, None, None, ("New", "124×", "IOPS", "Old")),
        (
            "lat_ns_p99",
            0.9996,
            0.999,
            0.99999,
            ("99.96 %", "99.9 to 99.999 %", "lower p99 latency than Old"),
        ),
    ],
)
def test_a_gain_has_its_interval_in_the_same_terms(
    metric: str, share: float, low: float | None, high: float | None, facts: tuple[str, ...]
) -> None:
    gain = LargestSpeedupFinding(
        "o", "n", "w", (), metric, share, low, high, 1.0, 1, VerdictLevel.VALID, ()
    )
    assert tells(finding_sentence(gain, ConfigurationNames({"o": "Old", "n": "New"})), *facts)
    mixed = ConfigurationNames({}, frozenset({"w"}))
    is_of_all = "reads and writes together" in finding_sentence(gain, mixed)
    assert is_of_all is metric.startswith("lat_ns_")
    assert "together" not in finding_sentence(gain, ConfigurationNames({}))
    assert "indicative" in finding_sentence(
        replace(gain, verdict_level=VerdictLevel.INDICATIVE), ConfigurationNames({})
    )


def test_something_else_is_no_finding() -> None:
    with pytest.raises(TypeError, match="Metric"):
        finding_sentence(Metric(1.0, "1/s"), ConfigurationNames({"a": "A"}))
