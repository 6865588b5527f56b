"""Only what shapes load reaches fio, and fio itself knows every option that is listed."""

from __future__ import annotations

import pytest

from iolab.loads.fileio.options import FIO_OPTIONS, FioOption
from iolab.loads.fileio.workload import IOENGINES
from iolab.study.values import program_option_text
from tests.processes import run_program

# What could run commands, name files, change the output or take over what iolab decides.
NEVER = """
exec_prerun exec_postrun filename directory filename_format opendir write_bw_log write_lat_log
write_iops_log write_hist_log read_iolog write_iolog replay_redirect merge_blktrace_file
ioengine output runtime time_based ramp_time size filesize nrfiles numjobs loops fill_device
unlink verify trim_percentage percentile_list group_reporting stonewall exitall randseed
randrepeat uid gid cgroup profile ioscheduler allow_mounted_write buffer_pattern steadystate
latency_target zonemode startdelay wait_for lockfile cpuload
"""


def test_fio_takes_every_example_and_refuses_what_it_does_not_know() -> None:
    """One process for all: each option in a job of its own."""
    jobs = [
        (option.name, (option.ioengines or ("libaio",))[0], option.example)
        for option in FIO_OPTIONS.values()
    ]
    assert _said(jobs) == ""
    assert "norandommp" in _said([jobs[0], ("norandommp", "libaio", "1"), *jobs[1:]])


@pytest.mark.parametrize("option", FIO_OPTIONS.values(), ids=lambda option: option.name)
def test_a_value_holds_nothing_that_could_start_another_line(option: FioOption) -> None:
    assert option.accepts_value(option.example)
    for tail in ("\n", "\nexec_prerun=x", " x", ";x", "#x", "\x00", "$(x)", "/../x", "٣"):
        assert not option.accepts_value(option.example + tail)
    assert not option.accepts_value("")
    assert set(option.ioengines) <= set(IOENGINES)
    assert option.meaning


@pytest.mark.parametrize("name", NEVER.split())
def test_options_with_other_effects_are_not_allowed(name: str) -> None:
    assert name not in FIO_OPTIONS


@pytest.mark.parametrize(
    ("name", "value", "fits"),
    [
        ("nice", "-20", True),
        ("nice", "19", True),
        ("nice", "20", False),
        ("nice", "-21", False),
        ("percentage_random", "100", True),
        ("percentage_random", "101", False),
        ("random_distribution", "zoned:50/5:30/15:20/80", True),
        ("random_distribution", "zipf", False),
        ("bssplit", "4k/50:64k/50,8k", True),
        ("bssplit", "4k/50:/etc/passwd", False),
        ("mem", "mmaphuge:/tmp/x", False),
        ("cpus_allowed", "0-3,8", True),
        ("thinktime", "100us", True),
    ],
)
def test_values_at_their_edges(name: str, value: str, fits: bool) -> None:  # noqa: FBT001
    assert FIO_OPTIONS[name].accepts_value(value) is fits


def test_truth_is_one_and_zero_in_a_job_file() -> None:
    assert [program_option_text(value) for value in (True, False, 8, 1.5, "x")] == [
        "1",
        "0",
        "8",
        "1.5",
        "x",
    ]


def _said(jobs: list[tuple[str, str, str]]) -> str:
    """What fio says against jobs with one option each; nothing when it takes them."""
    text = "".join(
        f"[{name}]\nioengine={engine}\nfilename=none\nsize=1m\nrw=randwrite\nbs=4k\niodepth=8\n"
        f"{name}={value}\n"
        for name, engine, value in jobs
    )
    told = run_program(["fio", "--parse-only", "-"], input=text, timeout=60)
    return told.stderr if told.returncode == 0 else f"{told.returncode}: {told.stderr}{told.stdout}"
