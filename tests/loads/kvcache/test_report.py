"""The answer and the charts of a replay: how many requests, and whether reading is worth it."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from iolab.analysis.kinds import judge_run
from iolab.analysis.points import PointSummary, summarise_points
from iolab.core.metric import Metric, RunResult
from iolab.core.study import Study
from iolab.loads.kvcache.answer import highest_rate_sentences, read_beats_recompute_sentence
from iolab.loads.kvcache.charts import prefix_latency_and_rate_charts
from iolab.loads.kvcache.metric_specs import REQUESTS, SLOW_PREFIX_RATE
from iolab.loads.kvcache.workload import KvCacheJob
from iolab.registry import analysis_kinds
from iolab.report.charts.chart import Chart, series_styles
from tests.analysis.records import facts_of
from tests.loads.kvcache.records import JOB, replayed
from tests.study.studies import load

STUDY = """
format = 1
id = "kv"

[[workload]]
id = "chat"
engine = "kv-cache"
kv_bytes_per_token = 8
capacity = 40960000
requests_per_s = [50, 100]
KEYS
"""

PREFIX_NS = 20_000_000
"""Of every recorded prefix; each MiB of it takes `MIB_NS`."""
MIB_NS = 10_000_000


def study_of(keys: str = "") -> Study:
    return load(STUDY.replace("KEYS", keys))


def points_of(study: Study, prefill: int | None, *backlogs: tuple[int, ...]) -> list[PointSummary]:
    results: list[RunResult] = []
    for rate, backlog in zip((50, 100), backlogs, strict=True):
        job = replace(JOB, requests_per_s=rate, prefill_tokens_per_s=prefill)
        record = replayed(job=job, backlog=backlog, prefix_ns=PREFIX_NS, mib_ns=MIB_NS)
        facts = {host.host: facts_of(host.host) for host in record.hosts}
        result = judge_run(record, facts, analysis_kinds())
        axis = (("requests_per_s", rate),)
        results.append(replace(result, workload="chat", axis_values=axis, digest=f"{rate}"))
    return list(summarise_points(results, study))


KEPT = (2, 3, 1, 4, 2) * 6
RISING = tuple(range(0, 60, 2))


def test_the_answer_is_the_highest_rate_that_is_kept() -> None:
    study = study_of()
    for backlogs, speed in (((KEPT, KEPT), 2), ((KEPT, RISING), 1)):
        points = points_of(study, None, *backlogs)
        (best,) = {points[speed - 1].metric_value("requests_per_s")}
        text = highest_rate_sentences(study, points)
        assert f"Serves {best:.3g} requests/s of the conversation trace (15× its clock" in text
        assert "p99 prefix load 20" in text
        # A MiB in 10 ms, of tokens of 8 bytes.
        assert "fewer than 13.1 M tokens/s (8 B a token)" in text
    assert highest_rate_sentences(study, points_of(study, None, RISING, RISING)) == ""


@pytest.mark.parametrize(
    ("prefill", "facts"),
    [
        (1_000_000, ("Reading a prefix beats recomputing it, at every rate", "8 MB/s suffice")),
        (100_000_000, ("Recomputing a prefix beats reading it", "takes 800 MB/s")),
    ],
)
def test_beside_an_instance_the_answer_says_which_is_faster(
    prefill: int, facts: tuple[str, ...]
) -> None:
    study = study_of(f"prefill_tokens_per_s = {prefill}")
    text = highest_rate_sentences(study, points_of(study, prefill, KEPT, KEPT))
    assert all(fact in text for fact in facts), text


def test_the_slowest_twentieth_is_that_of_the_slowest_rate() -> None:
    study = study_of("prefill_tokens_per_s = 1_000_000")
    low, high = points_of(study, 1_000_000, KEPT, KEPT)
    slower = Metric(25e6, "bytes/s")
    low = replace(low, metrics={**low.metrics, SLOW_PREFIX_RATE.key: slower})
    text = highest_rate_sentences(study, [low, high])
    assert "the slowest twentieth arrives at 25 MB/s" in text, text
    short = replace(low, metrics={**low.metrics, SLOW_PREFIX_RATE.key: Metric(1e6, "bytes/s")})
    assert "beats recomputing it at that rate" in highest_rate_sentences(study, [short, high])


def test_more_than_the_mean_of_the_trace_is_told() -> None:
    study = study_of()
    low, high = points_of(study, None, KEPT, KEPT)
    more = replace(high, metrics={**high.metrics, REQUESTS.key: Metric(103.0, "requests/s")})
    assert "100 is the mean of the trace" in highest_rate_sentences(study, [low, more])
    kept = replace(high, metrics={**high.metrics, REQUESTS.key: Metric(100.0, "requests/s")})
    assert "mean of the trace" not in highest_rate_sentences(study, [low, kept])


def test_a_limit_that_no_rate_keeps_is_told() -> None:
    keys = 'objective = "max-load"\nlimit = "prefix-load p99 <= 5ms"'
    study = study_of(keys)
    text = highest_rate_sentences(study, points_of(study, None, KEPT, KEPT))
    assert text == "Keeps prefix-load p99 <= 5 ms at no rate that was tried."


def drawn(prefill: int | None) -> tuple[Chart, ...]:
    study = study_of("" if prefill is None else f"prefill_tokens_per_s = {prefill}")
    points = points_of(study, prefill, KEPT, KEPT)
    return prefix_latency_and_rate_charts(study.workloads[0], points, series_styles(study))


def test_prefixes_are_drawn_beside_their_break_even() -> None:
    latencies, rates = drawn(1_000_000)
    for figure, label in ((latencies, "recompute"), (rates, "break-even")):
        (plot,) = figure.plots
        labels = {end.text: end.value for end in plot.end_labels}
        assert label in labels
        assert plot.y is not None
        assert plot.y.low <= labels[label] <= plot.y.high
        assert "Dotted: " in figure.note
    assert "break-even" not in {end.text for end in drawn(None)[1].plots[0].end_labels}


def test_a_tail_is_drawn_that_the_prefixes_support() -> None:
    def labels(points: list[PointSummary]) -> list[str]:
        (plot,) = prefix_latency_and_rate_charts(study.workloads[0], points, series_styles(study))[
            0
        ].plots
        return [end.text for end in plot.end_labels]

    study = study_of()
    points = points_of(study, None, KEPT, KEPT)
    assert labels(points) == ["mean", "p99"]
    key = "prefix_load_lat_ns_p99"
    few = [replace(one, metrics={**one.metrics, key: Metric(None, "ns")}) for one in points]
    assert labels(few) == ["mean", "p95"]


def test_the_chart_says_up_to_which_rate_reading_is_faster() -> None:
    study = study_of()
    # Of 20,000 blocks of 512 tokens a second, by 400 prefixes.
    sooner, later = 1_000_000, 100_000_000
    assert "at every requests/s" in read_beats_recompute_sentence(
        points_of(study, sooner, KEPT, KEPT), "requests_per_s"
    )
    assert read_beats_recompute_sentence(
        points_of(study, later, KEPT, KEPT), "requests_per_s"
    ).startswith("Recomputing a prefix is faster")
    slow, quick = points_of(study, later, KEPT, KEPT), points_of(study, sooner, KEPT, KEPT)
    low = dict(quick[0].key.axis_values)["requests_per_s"]
    assert f"up to requests/s {low}" in read_beats_recompute_sentence(
        [quick[0], slow[1]], "requests_per_s"
    )
    # Where it is the other way round there is no such place.
    assert "at 1 of 2 values" in read_beats_recompute_sentence(
        [slow[0], quick[1]], "requests_per_s"
    )


def test_a_job_of_the_study_is_the_recorded_one() -> None:
    job = KvCacheJob.require_type(study_of().workloads[0].job)
    assert job.block_bytes == JOB.block_bytes
