"""Whatever a study of key-value load says, within its limits, is what its plan does."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from iolab.errors import StudyError
from iolab.loads.keyvalue.table import BENCHMARKS, WRITERS_BESIDE
from iolab.loads.keyvalue.workload import DbBenchJob, KeyDistribution, ServerKind, YcsbJob
from iolab.study.parse import StudyOverrides, overrides_for_resume
from tests.loads.keyvalue.key_value_studies import db_bench, ycsb
from tests.plans import make_plan, parse_study

THREADS = st.lists(st.integers(1, 4096), min_size=1, max_size=3, unique=True)


@given(
    st.sampled_from(BENCHMARKS),
    st.lists(st.integers(256, 64 << 20), min_size=1, max_size=3, unique=True),
    THREADS,
    st.integers(0, 100),
)
def test_every_valid_study_of_db_bench_is_planned_as_written(
    name: str, blocks: list[int], threads: list[int], bits: int
) -> None:
    rate = "write_rate = 5\n" if name.endswith(WRITERS_BESIDE) else ""
    text = db_bench(
        f"{rate}bloom_bits = {bits}",
        benchmark=name,
        block_size=str(blocks),
        threads=str(threads),
    )
    study = parse_study(text, "s.toml", StudyOverrides("/mnt/t"))
    plan = make_plan(study)
    jobs = [point.job for point in plan.points if isinstance(point.job, DbBenchJob)]
    assert [(job.loaded.block_bytes, job.threads) for job in jobs] == [
        (block, count) for block in blocks for count in threads
    ]
    assert {(job.workload, job.loaded.bloom_bits) for job in jobs} == {(name, bits)}
    assert len({point.digest for point in plan.points}) == len(jobs)
    assert plan.demand.seconds > 0
    again = parse_study(study.text, "s.toml", overrides_for_resume(study))
    assert (again, make_plan(again)) == (study, plan)


@given(
    st.integers(0, 100),
    THREADS,
    st.sampled_from(list(KeyDistribution)),
    st.sampled_from(ServerKind),
)
def test_every_valid_study_of_ycsb_is_planned_as_written(
    percent: int, threads: list[int], distribution: KeyDistribution, kind: ServerKind
) -> None:
    shares = f"{{ read = {percent / 100}, update = {(100 - percent) / 100} }}"
    text = ycsb(f'distribution = "{distribution}"', mix=shares, threads=str(threads))
    sets = (f"server.kind={kind}", "server.addresses=db-1")
    study = parse_study(text, "s.toml", StudyOverrides("/mnt/t", set_arguments=sets))
    plan = make_plan(study)
    jobs = [point.job for point in plan.points if isinstance(point.job, YcsbJob)]
    assert [job.threads for job in jobs] == threads
    assert all(abs(sum(share for _, share in job.mix) - 1) < 1e-9 for job in jobs)
    assert {job.distribution for job in jobs} == {distribution}
    again = parse_study(study.text, "s.toml", overrides_for_resume(study))
    assert (again, make_plan(again)) == (study, plan)


def refusal(assignment: str) -> list[str]:
    """What is said against that value; nothing when it is taken."""
    try:
        parse_study(ycsb(), "s.toml", StudyOverrides("/mnt/t", set_arguments=(assignment,)))
    except StudyError as error:
        return [str(fault) for fault in error.faults]
    return []


@given(st.text(max_size=60), st.text(max_size=60))
def test_any_value_is_taken_or_refused_in_printable_words(name: str, value: str) -> None:
    for place in (f"server.{name}", "server.addresses", "workload.w.mix.read", "workload.w.ycsb.x"):
        assert all(fault.isprintable() for fault in refusal(f"{place}={value}"))
