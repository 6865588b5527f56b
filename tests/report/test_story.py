"""Sentences made of findings: golden ones, and none that a finding does not support."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest

from iolab.analyse.findings.finding import Best, Finding, Gained
from iolab.model.metric import Level, Metric
from iolab.report.phrases import Names
from iolab.report.story import metric_words, say, story
from tests.analyse.findings.cells import curve, found_in, sized
from tests.analyse.key_value.studies import BASE, OTHER, STUDY

RISING = {4: 4000.0, 16: 14_000.0, 64: 20_000.0}


def told(found: tuple[Finding, ...]) -> list[str]:
    return [one.text for one in story(STUDY, found)]


def test_the_story_of_two_configurations() -> None:
    study = sized(base=1000.0, other=2000.0)
    other = {4: 4400.0, 16: 14_000.0, 64: 16_000.0}
    found = found_in(
        curve(BASE, RISING, spread=1e-5), curve(OTHER, other, spread=1e-5), study=study
    )
    sentences = [re.sub(r" \([^)]*\)", "", one.text) for one in story(study, found)]
    assert sentences == [
        "For capacity first: old-ssd, with 100 TB usable for each 1000 EUR, 2 times that of "
        "new-ssd.",
        "For performance: old-ssd, 25 % faster than new-ssd by best rates over 1 workload.",
        "For performance at its cost: old-ssd, with best rates for each 1000 EUR 2.5 times those "
        "of new-ssd over 1 workload.",
        "For balance: old-ssd, the best in capacity and operations for each 1000 EUR, where "
        "new-ssd has 40 % at its weakest.",
        "readrandom-4k: new-ssd has 10 % more operations a second than old-ssd at threads 4, its "
        "largest supported gain of 3 points.",
        "readrandom-4k: new-ssd has 9.1 % less read mean latency than old-ssd at threads 4, its "
        "largest supported gain of 3 points.",
        "By operations a second over 3 points, new-ssd is better in 1, worse in 1 and the same in "
        "1 against old-ssd.",
        "By read mean latency over 3 points, new-ssd is better in 1, worse in 1 and the same in 1 "
        "against old-ssd.",
        "readrandom-4k: new-ssd leads up to threads 4, by 10 % there, and old-ssd from threads 64 "
        "on, by 25 % there.",
        "readrandom-4k: old-ssd does its best with 20 k ops/s at threads 64, the highest of 3 "
        "points measured.",
        "readrandom-4k: new-ssd does its best with 16 k ops/s at threads 64, the highest of 3 "
        "points measured.",
        "readrandom-4k: the latency of old-ssd bends at threads 16. From there to 64 the rate "
        "rises by 43 % and the mean latency grows by 180 %.",
        "readrandom-4k: the latency of new-ssd bends at threads 16. From there to 64 the rate "
        "rises by 14 % and the mean latency grows by 250 %.",
        "old-ssd gives the most for each 1000 EUR, 100 TB of usable capacity, of 2 configurations.",
        "readrandom-4k: old-ssd gives the most for each 1000 EUR, 20 k ops/s, of 2 configurations.",
        "readrandom-4k: old-ssd gives the most for each TB usable, 200 ops/s, of 2 configurations.",
        "readrandom-4k: old-ssd gives the most for each node, 5 k ops/s, of 2 configurations.",
    ]


def test_every_sentence_names_runs_or_counts_what_was_bought() -> None:
    found = found_in(curve(BASE, RISING), curve(OTHER, {4: 5000.0}), study=sized(1.0, 2.0))
    for one in story(sized(1.0, 2.0), found):
        assert one.runs or "capacity" in one.text


def test_a_single_configuration_is_not_named() -> None:
    (best,) = [one for one in found_in(curve(BASE, {4: 10.0})) if isinstance(one, Best)]
    assert say(best, Names({BASE: "Old"})).startswith("readrandom-4k: The best is 10 ops/s (")
    assert say(best, Names({BASE: "Old", OTHER: "New"})).startswith(
        "readrandom-4k: Old does its best with 10 ops/s ("
    )


def test_a_best_that_is_not_valid_says_so() -> None:
    (best,) = [
        one
        for one in found_in(curve(BASE, {4: 10.0}, level=Level.INDICATIVE))
        if isinstance(one, Best)
    ]
    assert say(best, Names({BASE: "Old"})).endswith("This is indicative only.")


def test_one_run_is_said_to_be_one() -> None:
    (best,) = [one for one in found_in(curve(BASE, {4: 10.0}, repeats=1)) if isinstance(one, Best)]
    assert "(one run)" in say(best, Names({BASE: "Old"}))


def test_what_is_better_by_chance_is_not_said_to_be() -> None:
    text = " ".join(
        told(found_in(curve(BASE, RISING, spread=0.3), curve(OTHER, RISING, spread=0.3)))
    )
    assert "largest supported gain" not in text
    assert "gives the most" not in text
    assert "neither better nor worse for sure in 3" in text


def test_a_lead_at_one_load_is_not_told_of_others() -> None:
    rates = {1: 1000.0, 4: 4000.0, 16: 14_000.0, 64: 20_000.0}
    base, other = curve(BASE, rates), curve(OTHER, {**rates, 4: 4400.0, 16: 12_000.0})
    (text,) = [one for one in told(found_in(base, other)) if "leads" in one]
    assert "new-ssd leads at threads 4, by 9.9 % there, and old-ssd at threads 16, by 16 %" in text


def test_a_bend_that_may_be_chance_says_so() -> None:
    (text,) = [one for one in told(found_in(curve(BASE, RISING, spread=0.3))) if "bends" in one]
    assert text.endswith(", though not for sure.")


@pytest.mark.parametrize(
    ("metric", "share", "low", "high", "says"),
    [
        ("iops", 0.5, 0.4, 0.6, "New has 50 % more IOPS (40 % to 60 %) than Old."),
        ("iops", 1.5, 1.4, 1.62, "New has 2.5 times (2.4 to 2.6) the IOPS of Old."),
        ("iops", 122.7, None, None, "New has 124 times the IOPS of Old."),
        ("lat_ns_p99", 0.9996, 0.999, 0.99999, "99.96 % less p99 latency (99.9 % to 99.999 %)"),
    ],
)
def test_a_gain_has_its_interval_in_the_same_terms(
    metric: str, share: float, low: float | None, high: float | None, says: str
) -> None:
    gain = Gained("o", "n", "w", (), metric, share, low, high, 1.0, 1, Level.VALID, ())
    assert says in say(gain, Names({"o": "Old", "n": "New"}))
    gain = replace(gain, level=Level.INDICATIVE)
    assert say(gain, Names({})).endswith("This is indicative only.")


@pytest.mark.parametrize(
    ("metric", "words"),
    [
        ("iops", "IOPS"),
        ("bw_bytes_per_s", "bandwidth"),
        ("lat_ns_p99_9", "p99.9 latency"),
        ("read_lat_ns_mean", "read mean latency"),
        ("write_lat_ns_max", "write max latency"),
        ("file_creation_ops_per_s", "file creation ops"),
    ],
)
def test_metrics_in_words(metric: str, words: str) -> None:
    assert metric_words(metric) == words


def test_something_else_is_no_finding() -> None:
    with pytest.raises(TypeError, match="Metric is no finding"):
        say(Metric(1.0, "1/s"), Names({"a": "A"}))
