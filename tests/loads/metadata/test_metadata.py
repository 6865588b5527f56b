"""Workloads of metadata operations: their keys, points, cost, and what refuses them."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from iolab.core.host import HostFacts
from iolab.core.workload import Axis
from iolab.errors import HostError
from iolab.loads.fileio.workload import Job
from iolab.loads.metadata.workload import (
    BY_OPERATIONS,
    MDTEST_ENGINE,
    METADATA_ENGINE,
    MetadataJob,
    MetadataOperation,
    expected_iteration_seconds,
    expected_phase_seconds,
    operation_count_per_client,
    space_bytes_per_client,
)
from iolab.study.schedule import expand_points
from tests.plans import check_ready, make_plan
from tests.study.studies import SMALL, load, told
from tests.study.test_guard import FACTS, PROBE, TARGET

BOTH = SMALL + '[[workload]]\nid = "meta"\nengine = "metadata"\nranks = 4\nfiles_per_rank = 10\n'
HOSTS = '[[host]]\nname = "a"\n[[host]]\nname = "b"\n'


def metadata(extra: str = "", *, ranks: str = "4", engine: str = "metadata") -> str:
    """A study of one metadata workload; `extra` are lines of it, from line 8."""
    return (
        f'format = 1\nid = "s"\n[[workload]]\nid = "w"\nengine = "{engine}"\n'
        f"ranks = {ranks}\nfiles_per_rank = 10\n{extra}\n"
    )


def jobs(text: str, *sets: str) -> list[MetadataJob]:
    """The metadata jobs of the study's points."""
    return [p.job for p in expand_points(load(text, *sets)) if isinstance(p.job, MetadataJob)]


def test_the_defaults_are_empty_files_of_the_next_client() -> None:
    (workload,) = load(metadata()).workloads
    assert workload.job == MetadataJob(METADATA_ENGINE, 4, 10, rank_shift=4)
    assert (workload.indicator, workload.repeats) == (BY_OPERATIONS, None)
    assert (workload.headline_metric, workload.rate_metric) == (None, "iops")


def test_every_key_reaches_the_job() -> None:
    extra = 'rank_shift = 0\nfile_bytes = "4k"\niterations = 3\nmdtest = { fsync = true }'
    (workload,) = load(metadata(extra, engine="mdtest")).workloads
    assert workload.job == MetadataJob(MDTEST_ENGINE, 4, 10, 0, 4096, (("fsync", "1"),))
    assert workload.repeats == 3


def test_lists_are_axes_and_the_shift_follows_the_ranks() -> None:
    text = metadata(ranks="[2, 8]").replace("files_per_rank = 10", "files_per_rank = [10, 20]")
    assert load(text).workloads[0].sweep == (
        Axis("ranks", (2, 8)),
        Axis("files_per_rank", (10, 20)),
    )
    found = [(job.ranks, job.files_per_rank, job.rank_shift) for job in jobs(text)]
    assert found == [(2, 10, 2), (2, 20, 2), (8, 10, 8), (8, 20, 8)]
    own = metadata("rank_shift = 0", ranks="[2, 8]")
    assert [job.rank_shift for job in jobs(own)] == [0, 0]
    assert [job.rank_shift for job in jobs(metadata("rank_shift = 3", ranks="[2]"))] == [3]


def test_points_have_no_data_set_and_leave_those_of_others_alone() -> None:
    alone, both = make_plan(load(SMALL)), make_plan(load(BOTH))
    assert [p.digest for p in both.points][:-1] == [p.digest for p in alone.points]
    assert both.points[-1].data_set == ""
    assert both.data_sets == alone.data_sets


def test_iterations_are_runs_and_others_repeat_as_the_method_says() -> None:
    text = BOTH.replace("files_per_rank = 10\n", "files_per_rank = 10\niterations = 3\n")
    runs = [(run.point.workload, run.repeat) for run in make_plan(load(text)).runs]
    assert runs == [
        ("rand-read", 1),
        ("rand-read", 1),
        ("mix", 1),
        ("meta", 1),
        ("meta", 2),
        ("meta", 3),
    ]
    repeated = make_plan(load(text, "method.repeats=4")).runs
    assert sum(run.point.workload == "meta" for run in repeated) == 3
    assert sum(run.point.workload == "mix" for run in repeated) == 4


def test_a_star_sets_only_what_can_have_the_key() -> None:
    study = load(BOTH, "workload.*.numjobs=4", "workload.*.ranks=2", "workload.*.title=x")
    assert [Job.require_type(workload.job).numjobs for workload in study.workloads[:2]] == [4, 4]
    job = study.workloads[2].job
    assert isinstance(job, MetadataJob)
    assert (job.ranks, job.rank_shift) == (2, 2)
    assert [workload.title for workload in study.workloads] == ["x", "x", "x"]


@pytest.mark.parametrize(
    ("text", "assignment", "message"),
    [
        (
            metadata(),
            "workload.*.numjobs=4",
            "--set workload.*.numjobs=4: No workload of the study can have 'numjobs'.",
        ),
        (
            SMALL,
            "workload.*.ranks=4",
            "--set workload.*.ranks=4: No workload of the study can have 'ranks'.",
        ),
        (
            BOTH,
            "workload.meta.bs=4k",
            "--set workload.meta.bs=4k: bs does not go with the engine of workload 'meta'.",
        ),
        (
            BOTH,
            "workload.*.rnaks=4",
            "--set workload.*.rnaks=4: Unknown key 'rnaks'. Did you mean 'ranks'?",
        ),
    ],
)
def test_what_no_workload_can_have_is_a_fault(text: str, assignment: str, message: str) -> None:
    assert any(one.startswith(message) for one in told(text, assignment))


@pytest.mark.parametrize(
    ("line", "message"),
    [
        (
            'bs = "4k"',
            "s.toml:8: bs of workload 'w' does not go with its engine.",
        ),
        ("file_per_rank = 1", "Unknown key 'file_per_rank' in workload 'w'. Did you mean"),
        ("rank_shift = -1", "rank_shift of workload 'w' is -1."),
        ('file_bytes = "2m"', "file_bytes of workload 'w' is '2m'."),
        ("iterations = 0", "iterations of workload 'w' is 0."),
        (
            'indicator = "iops"',
            "indicator of workload 'w' is 'iops'.",
        ),
        (
            "mdtest = { fsync = true }",
            "Workload 'w' has mdtest, which does not go with engine = 'metadata'.",
        ),
    ],
)
def test_a_wrong_value_of_a_metadata_workload(line: str, message: str) -> None:
    (fault,) = told(metadata(line))
    assert message in fault


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (metadata(ranks="4097"), "ranks of workload 'w' is 4097."),
        (metadata("rank_shift = 2", ranks="[2, 4]"), "has rank_shift = 2 for several ranks"),
        (
            metadata('file_bytes = "1m"', ranks="2048"),
            "Workload 'w' has file_bytes = '1m', which takes 2 GiB of memory for 2048 ranks.",
        ),
        (
            metadata(ranks="4096") + '[[host]]\nname = "c[001-300]"\n',
            "Workload 'w' has ranks = 4096, which makes 1228800 on 300 clients.",
        ),
        (
            metadata(engine="metadta"),
            "engine of workload 'w' is 'metadta'. Did you mean 'metadata'?",
        ),
        (
            SMALL.replace('rw = "randread"', 'rw = "randread"\nengine = "orion"'),
            "engine of workload 'rand-read' is 'orion'.",
        ),
        (
            SMALL.replace('bs = "4k"\niodepth', 'ranks = 4\nbs = "4k"\niodepth'),
            "ranks of workload 'rand-read' does not go with its engine.",
        ),
    ],
)
def test_what_does_not_fit_together(text: str, message: str) -> None:
    (fault,) = told(text)
    assert message in fault


def test_the_budget_counts_files_and_no_runtime() -> None:
    job = MetadataJob(METADATA_ENGINE, 10, 1000, 0, file_bytes=5000)
    assert operation_count_per_client(job, MetadataOperation.FILE_STAT) == 10_000
    assert operation_count_per_client(job, MetadataOperation.TREE_REMOVE) == 10
    assert job.inodes_per_client == 10_011
    assert space_bytes_per_client(job) == (10_000 * 2 + 11) * 4096
    # 10,000 files at 5000, 50000, 20000 and 5000 a second, twice 10 folders at 1000, six phases.
    assert expected_iteration_seconds(job) == pytest.approx(2 + 0.2 + 0.5 + 2 + 0.02 + 6 * 0.5)
    text = metadata("file_bytes = 5000\niterations = 2\n", ranks="10").replace("= 10\n", "= 1000\n")
    text = text.replace("ranks = 1000", "ranks = 10") + HOSTS
    budget = make_plan(load(text)).demand
    assert budget.layout_bytes_per_host == 0
    assert budget.write_bytes_estimate == 2 * 2 * 10_000 * 5000
    assert budget.free_bytes_needed_per_host > space_bytes_per_client(job)
    (seconds,) = [part for why, part in budget.time_items if "files on each host" in why]
    assert seconds == pytest.approx(2 * expected_iteration_seconds(job))
    assert not any("warm-up" in why or "lay out" in why for why, _ in budget.time_items)


def test_creation_by_the_clock_is_reckoned_until_its_least_files_are_there() -> None:
    # 40,000 files at the 5000 a second that are assumed, within six times the phase's time.
    for phase_s, expected in [(10.0, 10.0), (5.0, 8.0), (1.0, 6.0)]:
        job = MetadataJob(METADATA_ENGINE, 4, 100_000, 0, phase_s=phase_s)
        assert expected_phase_seconds(job, MetadataOperation.FILE_CREATE) == pytest.approx(expected)


def refusal(text: str, facts: dict[str, HostFacts]) -> list[str] | None:
    """Why the plan may not run on those hosts; None when it may."""
    study = load(text)
    try:
        check_ready(study, make_plan(study), facts, dict.fromkeys(facts, PROBE))
    except HostError as error:
        return [fault.message for fault in error.faults]
    return None


def with_inodes(count: int, *, network: bool = False, boot_id: str = "b") -> HostFacts:
    """A host whose target has so many inodes free."""
    target = replace(TARGET, free_inodes=count, network=network)
    return replace(FACTS, target=target, kernel=replace(FACTS.kernel, boot_id=boot_id))


def test_a_target_needs_an_inode_for_each_file_and_folder() -> None:
    assert refusal(metadata(), {"local": with_inodes(45)}) is None
    (fault,) = refusal(metadata(), {"local": with_inodes(44)}) or []
    assert "44 inodes free, w needs 45." in fault
    assert refusal(metadata(), {"local": with_inodes(0)}) is None


def test_clients_of_one_file_system_need_room_for_all_of_them() -> None:
    apart = {"a": with_inodes(45, boot_id="1"), "b": with_inodes(45, boot_id="2")}
    assert refusal(metadata("rank_shift = 0\n") + HOSTS, apart) is None
    said = ["'/mnt/t' on host 'a', shared by 2 hosts, has 45 inodes free, w needs 90."]
    one_kernel = {"a": with_inodes(45), "b": with_inodes(45)}
    assert refusal(metadata() + HOSTS, one_kernel) == said
    network = {
        "a": with_inodes(45, network=True, boot_id="1"),
        "b": with_inodes(45, network=True, boot_id="2"),
    }
    assert refusal(metadata() + HOSTS, network) == said


def test_clients_that_cannot_see_each_others_files_are_refused_before_the_start() -> None:
    def at(source: str = "/dev/sda1", boot_id: str = "b") -> HostFacts:
        host = with_inodes(500, boot_id=boot_id)
        assert host.target is not None
        return replace(host, target=replace(host.target, fs_type="ext4", mount_source=source))

    text = metadata() + HOSTS
    assert refusal(text, {"a": at(), "b": at()}) is None
    for other in (at(boot_id="c"), at("/dev/sdb1")):
        (said,) = refusal(text, {"a": at(), "b": other}) or []
        assert "'a'" in said
        assert "'b'" in said
        assert refusal(metadata("rank_shift = 0\n") + HOSTS, {"a": at(), "b": other}) is None
    (said,) = refusal(metadata(engine="mdtest") + HOSTS, {"a": at(), "b": at(boot_id="c")}) or []
    assert "'/mnt/t'" in said


def test_contents_need_whole_blocks() -> None:
    small = replace(FACTS, target=replace(TARGET, free_bytes=65 << 20))
    assert refusal(metadata(), {"local": small}) is None
    (said,) = refusal(metadata('file_bytes = "64k"'), {"local": small}) or []
    assert "has 65 MiB free, w needs" in said


def test_metadata_load_needs_neither_fio_nor_o_direct() -> None:
    study = load(metadata())
    probe = replace(PROBE, direct_error="EINVAL")
    check_ready(study, make_plan(study), {"local": replace(FACTS, tools=())}, {"local": probe})
