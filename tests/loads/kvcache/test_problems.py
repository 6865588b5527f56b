"""KV-cache workloads that cannot be replayed are refused before anything is written."""

from __future__ import annotations

from pathlib import Path

import pytest

from iolab.loads.kvcache.metrics import PREFIX_PERCENTILES
from iolab.loads.kvcache.study import KvCacheStudyKind
from iolab.loads.kvcache.workload import KvCacheJob
from tests.plans import make_plan
from tests.study.studies import faults, load

STUDY = """
format = 1
id = "kv"

[[workload]]
id = "chat"
engine = "kv-cache"
kv_bytes_per_token = 512
capacity = "1g"
requests_per_s = 8
"""


def test_a_replay_without_faults_is_accepted() -> None:
    (workload,) = load(STUDY).workloads
    assert workload.job.study_values_by_key["capacity"] == 1 << 30


@pytest.mark.parametrize(
    ("old", "new", "facts"),
    [
        ('"1g"', '"16m"', ("247", "256 KiB")),
        ("requests_per_s = 8", "", ("requests_per_s",)),
        (
            "requests_per_s = 8",
            'requests_per_s = 8\nobjective = "max-load"\nlimit = "p99 <= 9ms"',
            ("max-load", "requests_per_s"),
        ),
        (
            "requests_per_s = 8",
            'requests_per_s = [4, 8]\nobjective = "max-load"\nlimit = "step p99 <= 9ms"',
            ("step",),
        ),
        (
            "requests_per_s = 8",
            'requests_per_s = [4, 8]\nobjective = "max-load"\nlimit = "prefix-load p99.99 <= 1s"',
            ("p99.99", "p99.9"),
        ),
        ("requests_per_s = 8", "requests_per_s = 8\nblock_tokens = 700", ("700", "512")),
        ('"1g"', '"1g"\ntrace = "/nowhere/trace.jsonl"', ("/nowhere/trace.jsonl",)),
        ('"1g"', '"1t"\nobjects = "files"', ("files",)),
    ],
)
def test_what_cannot_be_replayed_is_refused_with_its_value(
    old: str, new: str, facts: tuple[str, ...]
) -> None:
    found = [fault.message for fault in faults(STUDY.replace(old, new))]
    assert any(all(fact in message for fact in facts) for message in found), found


def test_a_start_after_the_end_of_a_trace_is_refused(tmp_path: Path) -> None:
    line = '{"timestamp": %d, "input_length": 9, "output_length": 1, "hash_ids": [%d]}'
    trace = tmp_path / "t.jsonl"
    trace.write_text("\n".join(line % (1000 * at, at) for at in range(5)), encoding="utf-8")
    found = faults(STUDY.replace('"1g"', f'"1g"\ntrace = "{trace}"\nstart = "9s"'))
    assert any("9 s" in fault.message and "4 s" in fault.message for fault in found)


def test_more_requests_than_a_host_can_be_told_of_are_refused_in_the_plan() -> None:
    study = load(STUDY.replace("requests_per_s = 8", "requests_per_s = [8, 2000]"))
    (fault,) = KvCacheStudyKind().readiness_faults(study, make_plan(study), {}, {})
    assert all(fact in fault.message for fact in ("2000", "60,000")), fault.message


def test_a_limit_may_be_set_to_every_latency_that_a_run_tells_of_prefixes() -> None:
    told = {name.replace("_", ".") for name, _ in PREFIX_PERCENTILES}
    (limited,) = KvCacheJob.operations_for_latency_limit.values()
    assert {*limited} == {"mean", *told}
