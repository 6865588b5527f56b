"""Checkpoints, KV caches and training reads in what all load is put into: comparisons, exports."""

from __future__ import annotations

import csv
import json
import math
from collections.abc import Callable
from io import StringIO
from pathlib import Path
from statistics import fmean

import pytest
from msgspec.structs import replace

import iolab
from iolab.analysis.kinds import ANALYSIS_VERSION, judge_run
from iolab.core.host import HostFacts, NicFacts
from iolab.core.metric import CheckResult, VerdictLevel
from iolab.core.run import PlannedRun, RunRecord
from iolab.loads.checkpoint.workload import CheckpointJob, PhaseRun
from iolab.loads.kvcache.workload import KvCacheJob
from iolab.loads.training.workload import TrainingJob
from iolab.registry import analysis_kinds
from iolab.store.writer import SessionWriter
from tests.analysis.records import facts_of
from tests.cli.in_process import call
from tests.loads.checkpoint import records as checkpoints
from tests.loads.kvcache import records as replays
from tests.loads.training import records as training
from tests.plans import make_plan
from tests.study.studies import load

HEAD = """
format = 1
id = "model-loads"

[[host]]
name = "c1"
address = "c1"
path = "/mnt/t"

[method]
repeats = 3

[[workload]]
id = "own"
"""

CHECKPOINT = 'engine = "checkpoint"\nmodel = "llama3-8b"\nshrink = 64\n'
REPLAY = """engine = "kv-cache"
kv_bytes_per_token = 8
capacity = 40960000
requests_per_s = [50, 100]
prefill_tokens_per_s = 1000000
"""
TRAINING = """engine = "training-read"
dataset = "custom"
accelerators = 2
sample_bytes = 4096
batch = 7
compute = "92ms"
files = 1400
"""

Recorder = Callable[[PlannedRun, float], RunRecord]
"""The record of a run that is so many times slower."""


def saved(run: PlannedRun, factor: float) -> RunRecord:
    CheckpointJob.require_type(run.point.job)

    def slower(phase: PhaseRun) -> PhaseRun:
        ranks = tuple(replace(rank, end_ns=round(rank.end_ns * factor)) for rank in phase.ranks)
        return replace(phase, ranks=ranks)

    return checkpoints.saved_and_restored(save=slower)


def replayed(run: PlannedRun, factor: float) -> RunRecord:
    job = KvCacheJob.require_type(run.point.job)
    return replays.replayed(
        job=job, prefix_ns=round(20_000_000 * factor), mib_ns=round(10_000_000 * factor)
    )


def trained(run: PlannedRun, factor: float) -> RunRecord:
    job = TrainingJob.require_type(run.point.job)
    if factor < 1.5:
        return training.trained(job=job)
    return training.trained(job=job, parts={"storage": 15}, step=110, steps=540)


KINDS = pytest.mark.parametrize(
    ("workload", "recorder", "metric", "quantity"),
    [
        (CHECKPOINT, saved, "save_ns", "restore_ns"),
        (REPLAY, replayed, "prefix_load_lat_ns_p99", "recompute_ns_mean"),
        (TRAINING, trained, "accelerator_utilisation", "storage_wait_share"),
    ],
)


def stored(directory: Path, workload: str, recorder: Recorder, factor: float = 1.0) -> Path:
    study = load(HEAD + workload)
    plan = make_plan(study)
    facts = {"c1": facts_of("c1")}
    writer = SessionWriter.create(directory, study, plan, directory.name, ("iolab", "run"))
    writer.record_host_facts_at_start(facts, "0.1.0")
    for run in plan.runs:
        # Repeats of a real machine differ by a little.
        record = replace(recorder(run, factor * (1 + 0.01 * run.repeat)), run=run)
        writer.commit_run(
            record, judge_run(record, facts, analysis_kinds()), analysis_version=ANALYSIS_VERSION
        )
    return directory


def test_times_of_checkpoints_have_an_interval_over_them(tmp_path: Path) -> None:
    (point,) = iolab.load(stored(tmp_path / "own", CHECKPOINT, saved)).points
    save = point.metrics["save_ns"]
    ran = [run.metrics["save_ns"].value or 0.0 for run in point.runs]
    assert save.value == pytest.approx(math.exp(fmean(map(math.log, ran))))
    assert save.low is not None
    assert save.high is not None
    assert save.low < min(ran) < max(ran) < save.high


@KINDS
def test_a_slower_session_is_compared(
    tmp_path: Path, workload: str, recorder: Recorder, metric: str, quantity: str
) -> None:
    sessions = [
        stored(tmp_path / name, workload, recorder, factor)
        for name, factor in (("fast", 1.0), ("slow", 2.0))
    ]
    done = call("compare", *sessions, "--metric", metric, "--json")
    assert done.returncode == 0, done.stderr
    rows = json.loads(done.stdout)["rows"]
    assert rows
    assert {row["metric"] for row in rows} == {metric}
    assert {row["verdict"] for row in rows} == {"worse"}, rows


@KINDS
def test_all_exports_and_the_python_interface_have_the_metrics(
    tmp_path: Path, workload: str, recorder: Recorder, metric: str, quantity: str
) -> None:
    session = stored(tmp_path / "own", workload, recorder)
    (first, *_) = iolab.load(session).points
    values = {key: first.metrics[key].value for key in (metric, quantity)}
    assert all(value is not None and value > 0 for value in values.values())
    table = call("export", session, "--format", "csv", "--points")
    row = next(csv.DictReader(StringIO(table.stdout)))
    for key, value in values.items():
        assert float(row[key]) == pytest.approx(value)
    told = call("export", session, "--format", "openmetrics").stdout
    assert metric.split("_lat_ns")[0] in told
    assert metric in call("export", session, "--format", "json").stdout
    assert call("export", session, "--format", "markdown").returncode == 0


NEEDS = pytest.mark.parametrize(
    ("workload", "recorder", "need", "kept_by"),
    [
        (CHECKPOINT, saved, "own save-time <= 9s", {"fast": "likely", "slow": "no"}),
        (CHECKPOINT, saved, "own save-time <= 1ms", {"fast": "no", "slow": "no"}),
        (REPLAY, replayed, "own prefix-load p99 <= 30ms", {"fast": "likely", "slow": "no"}),
        (REPLAY, replayed, "own requests >= 90", {"fast": "likely", "slow": "likely"}),
        (REPLAY, replayed, "own requests >= 500", {"fast": "no", "slow": "no"}),
        (TRAINING, trained, "own utilisation >= 90%", {"fast": "likely", "slow": "no"}),
        (TRAINING, trained, "own accelerators >= 2", {"fast": "likely", "slow": "no"}),
    ],
)


@NEEDS
def test_a_need_ranks_sessions(
    tmp_path: Path, workload: str, recorder: Recorder, need: str, kept_by: dict[str, str]
) -> None:
    sessions = [
        stored(tmp_path / name, workload, recorder, factor)
        for name, factor in (("slow", 2.0), ("fast", 1.0))
    ]
    done = call("choose", *sessions, "--need", need, "--json")
    assert done.returncode in {0, 1}, done.stderr
    fits = json.loads(done.stdout)["fits"]
    assert {Path(fit["source"]).name: fit["answer"] for fit in fits} == kept_by, fits
    if len(set(kept_by.values())) > 1:
        assert [Path(fit["source"]).name for fit in fits] == ["fast", "slow"]
    (part,) = fits[0]["parts"]
    assert part["margin"] > 0


@KINDS
def test_what_is_shown_and_reported_has_charts(
    tmp_path: Path, workload: str, recorder: Recorder, metric: str, quantity: str
) -> None:
    session = stored(tmp_path / "own", workload, recorder)
    shown = call("show", session, "--details")
    assert shown.returncode in {0, 1}, shown.stderr
    page = tmp_path / "page.html"
    assert call("report", session, "--html", page).returncode == 0
    assert "<svg" in page.read_text(encoding="utf-8")


@KINDS
def test_a_prediction_says_what_it_cannot(
    tmp_path: Path, workload: str, recorder: Recorder, metric: str, quantity: str
) -> None:
    session = stored(tmp_path / "own", workload, recorder)
    done = call("predict", session, "--hosts", "4")
    assert done.returncode == 2
    assert "hosts" in done.stderr


RECORDS = pytest.mark.parametrize(
    "record",
    [checkpoints.saved_and_restored(), replays.replayed(), training.trained()],
    ids=["checkpoint", "kv-cache", "training-read"],
)


def check_result(record: RunRecord, code: str, facts: HostFacts) -> CheckResult:
    result = judge_run(record, {host.host: facts for host in record.hosts}, analysis_kinds())
    return {check.code: check for check in result.verdict.checks}[code]


@RECORDS
def test_no_host_claims_more_than_its_line_carries(record: RunRecord) -> None:
    local = facts_of(record.hosts[0].host)
    for link, expected in (
        ("8.0 GT/s x4 (of 16.0 GT/s x4)", VerdictLevel.VALID),
        ("0.1 GT/s x1", VerdictLevel.INVALID),
        ("8..0 GT/s x4", None),
        ("0 GT/s x4", None),
        (None, None),
    ):
        disks = tuple(replace(disk, pcie_link=link) for disk in local.disks)
        own = replace(local, disks=disks)
        assert check_result(record, "line-rate", own).level is expected
    remote = replace(facts_of(local.kernel.hostname, network=True, device=None, devices=()))
    for nics, expected in (
        ([NicFacts("eth0", "mlx5_core", 100_000, 9000, up=True)], VerdictLevel.VALID),
        ([NicFacts("eth0", "igb", 100, 1500, up=True)], VerdictLevel.INDICATIVE),
        ([NicFacts("eth0", "virtio_net", 100, 1500, up=True)], None),
        ([], None),
    ):
        answer = check_result(record, "line-rate", replace(remote, nics=tuple(nics)))
        assert answer.level is expected, answer


@RECORDS
def test_a_device_that_reads_twice_what_is_wanted_is_told(record: RunRecord) -> None:
    """Read amplification: of honest runs the device read what the engine claims."""
    facts = facts_of(record.hosts[0].host)
    assert check_result(record, "bytes-moved", facts).level is VerdictLevel.VALID
    (host,) = record.hosts[:1]
    doubled = tuple(replace(delta, read_bytes=2 * delta.read_bytes) for delta in host.devices)
    amplified = replace(record, hosts=(replace(host, devices=doubled), *record.hosts[1:]))
    answer = check_result(amplified, "bytes-moved", facts)
    assert answer.level is VerdictLevel.INDICATIVE, answer
    assert " read " in answer.message
