"""What a reader looks for and the study lacks is told on the first page, and nothing else."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from iolab.core.workload import BY_IOPS
from iolab.loads.fileio.workload import AccessPattern
from iolab.report.not_in_study import not_in_study_sentence
from tests.facts import tells
from tests.report import shared
from tests.report.priced import euros
from tests.report.synthetic import job, source_of, study_of, workload


def _sentence(
    accesses: tuple[AccessPattern, ...], depth: int = 8, *, is_priced: bool = False
) -> str:
    made = shared.brief("sweep")
    workloads = [
        workload(f"w{place}", "", job(access, 4096, depth, numjobs=1), (), BY_IOPS)
        for place, access in enumerate(accesses)
    ]
    cost = euros(1000) if is_priced else None
    owners = tuple(replace(owner, cost=cost) for owner in made.study.configurations)
    told = study_of("made", "Made", "What?", owners, tuple(workloads))
    return not_in_study_sentence(replace(made, study=told, plan=source_of(told).plan, points=()))


READS = (AccessPattern.RANDREAD, AccessPattern.READ)
WRITES = (AccessPattern.RANDWRITE, AccessPattern.WRITE)
MIX = (AccessPattern.RANDRW,)
EVERY = (*READS, *WRITES, *MIX)


def test_a_study_with_all_of_it_says_nothing() -> None:
    assert not _sentence(EVERY, 1, is_priced=True)


@pytest.mark.parametrize(
    ("accesses", "depth", "is_priced", "lacking"),
    [
        (EVERY, 1, False, "prices"),
        (EVERY, 8, True, "latency at one request at a time"),
        ((*WRITES, *MIX), 1, True, "pure reads"),
        ((*READS, *MIX), 1, True, "pure writes"),
        ((*READS, *WRITES), 1, True, "mixed reads and writes"),
        ((*READS, WRITES[0], *MIX), 1, True, "sequential writes"),
        ((READS[0], *WRITES, *MIX), 1, True, "sequential reads"),
        ((READS[0], WRITES[0], *MIX), 1, False, "prices"),
        (MIX, 1, False, "pure reads, pure writes, prices"),
    ],
)
def test_what_a_study_lacks_is_named(
    accesses: tuple[AccessPattern, ...], depth: int, *, is_priced: bool, lacking: str
) -> None:
    assert _sentence(accesses, depth, is_priced=is_priced) == f"Not in this study: {lacking}."


def test_writes_of_large_blocks_alone_are_told() -> None:
    made = shared.brief("sweep")
    workloads = [
        workload("r", "", job(AccessPattern.RANDREAD, 4096, 1, numjobs=1), (), BY_IOPS),
        workload("m", "", job(AccessPattern.RANDRW, 4096, 1, numjobs=1), (), BY_IOPS),
        workload("w", "", job(AccessPattern.WRITE, 1 << 20, 1, numjobs=1), (), BY_IOPS),
    ]
    owners = tuple(replace(owner, cost=euros(1000)) for owner in made.study.configurations)
    told = study_of("made", "Made", "What?", owners, tuple(workloads))
    sentence = not_in_study_sentence(
        replace(made, study=told, plan=source_of(told).plan, points=())
    )
    assert tells(sentence, "Not in this study", "pure writes of small blocks", "1 MiB"), sentence
    assert "reads of small" not in sentence


def test_a_single_request_that_was_measured_in_vain_is_told() -> None:
    made = shared.brief("sweep")
    single = workload("r", "", job(AccessPattern.RANDREAD, 4096, 1, numjobs=1), (), BY_IOPS)
    told = study_of("made", "Made", "What?", made.study.configurations, (single,))
    plan = source_of(told).plan
    points = tuple(
        replace(
            made.points[0],
            key=replace(
                made.points[0].key,
                configuration=point.configuration,
                workload=point.workload,
                axis_values=point.axis_values,
            ),
        )
        for point in plan.points
    )
    brief = replace(made, study=told, plan=plan, points=points)
    assert "Measured, but invalid" not in not_in_study_sentence(brief)
    lost = tuple(replace(point, is_trusted=False) for point in points)
    sentence = not_in_study_sentence(replace(brief, points=lost))
    assert tells(sentence, "Measured, but invalid", "latency at one request at a time")


def test_operations_on_keys_are_taken_from_their_results() -> None:
    sentence = not_in_study_sentence(shared.brief("keys"))
    assert "pure reads" not in sentence
    assert "prices" in sentence


def test_metadata_is_not_told_by_reads_and_writes() -> None:
    made = shared.brief("files")
    only = tuple(own for own in made.study.workloads if not own.job.data_directions)
    assert only
    brief = replace(made, study=replace(made.study, workloads=only))
    assert not_in_study_sentence(brief) == "Not in this study: prices."


def test_a_cell_has_the_load_that_title_and_axes_leave_out() -> None:
    (row, *_) = shared.page("kpi").answer.best_table.rows
    assert tells(row[1].note.replace("\N{NO-BREAK SPACE}", " "), "4 KiB", "jobs", "iodepth")
    for swept in shared.page("sweep").answer.best_table.rows[:1]:
        assert swept[1].note.count("iodepth") <= 2  # where it is the best, and what suffices
