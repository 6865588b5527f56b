"""Whatever a study says, within its limits, is what its plan does."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from iolab.errors import StudyError
from iolab.loads.fileio.workload import AccessPattern, Job
from iolab.study.parse import StudyOverrides, overrides_for_resume
from iolab.study.schedule import expand_points
from tests.plans import make_plan, parse_study
from tests.study.studies import SMALL

UNITS = {"k": 10, "m": 20, "g": 30}
SIZES = st.tuples(st.integers(1, 64), st.sampled_from(sorted(UNITS)))


@st.composite
def tables(draw: st.DrawFn) -> dict[str, object]:
    """The numbers of one workload, every one of them valid."""
    # Trims want a device, and these studies have a directory.
    access = draw(st.sampled_from([access for access in AccessPattern if not access.has_trims]))
    block = draw(st.integers(1, 64)) * 512
    return {
        "rw": access.value,
        "bs": block,
        "filesize": block * draw(st.integers(1, 10_000)),
        "iodepth": draw(st.lists(st.integers(1, 256), min_size=1, max_size=4, unique=True)),
        "numjobs": draw(
            st.one_of(
                st.integers(1, 4096),
                st.lists(st.integers(1, 4096), min_size=1, max_size=3, unique=True),
            )
        ),
        **({"rwmixread": draw(st.integers(0, 100))} if access.is_mixed else {}),
        **({"rate_iops": draw(st.integers(1, 10**8))} if draw(st.booleans()) else {}),
    }


def study_text(workloads: list[dict[str, object]]) -> str:
    text = 'format = 1\nid = "made-up"\n'
    for index, table in enumerate(workloads):
        text += f'[[workload]]\nid = "w{index}"\n'
        for key, value in table.items():
            text += f"{key} = {chr(34) + value + chr(34) if isinstance(value, str) else value}\n"
    return text


def count(value: object) -> int:
    return len(value) if isinstance(value, list) else 1


@given(st.lists(tables(), min_size=1, max_size=3), st.integers(1, 3), st.integers(0, 2**32 - 1))
def test_every_valid_study_is_planned_as_written(
    workloads: list[dict[str, object]], repeats: int, seed: int
) -> None:
    sets = (f"method.repeats={repeats}", f"method.seed={seed}", "method.order=randomised")
    study = parse_study(
        study_text(workloads), "s.toml", StudyOverrides("/mnt/t", set_arguments=sets)
    )
    points = expand_points(study)
    assert len(points) == sum(count(t["iodepth"]) * count(t["numjobs"]) for t in workloads)
    assert len({point.digest for point in points}) == len(points)
    for point in points:
        table = workloads[int(point.workload[1:])]
        assert Job.require_type(point.job).block_bytes == table["bs"]
        assert Job.require_type(point.job).file_bytes == table["filesize"]
        assert Job.require_type(point.job).read_percent == table.get("rwmixread")
        assert Job.require_type(point.job).rate_iops == table.get("rate_iops")
        assert dict(point.axis_values)["iodepth"] == Job.require_type(point.job).iodepth
    plan = make_plan(study)
    assert sorted(run.point.digest for run in plan.runs) == sorted(
        point.digest for point in points for _ in range(repeats)
    )
    for point in points:
        data_set = plan.data_set(point.data_set)
        assert data_set.file_bytes == Job.require_type(point.job).file_bytes
        assert data_set.numjobs >= Job.require_type(point.job).numjobs
    again = parse_study(study.text, "s.toml", overrides_for_resume(study))
    assert (again, make_plan(again)) == (study, plan)


@given(SIZES, st.integers(1, 65536))
def test_setting_a_value_is_as_good_as_writing_it(size: tuple[int, str], depth: int) -> None:
    filesize = f"{size[0] * 4}{size[1]}"
    written = SMALL.replace('"1m"', f'"{filesize}"').replace("[1, 8]", f"[{depth}]")
    by_file = parse_study(written, "s", StudyOverrides("/mnt/t"))
    sets = (f"workload.*.filesize={filesize}", f"workload.rand-read.iodepth={depth}")
    by_set = parse_study(SMALL, "s", StudyOverrides("/mnt/t", set_arguments=sets))
    assert expand_points(by_set) == expand_points(by_file)
    assert Job.require_type(by_set.workloads[0].job).file_bytes == size[0] * 4 << UNITS[size[1]]


@given(
    st.permutations(
        [
            "method.runtime=1",
            "method.repeats=2",
            "workload.*.bs=8k",
            "workload.mix.iodepth=2,4",
            "telemetry.interval=2s",
        ]
    )
)
def test_assignments_to_different_keys_have_no_order(sets: list[str]) -> None:
    study = parse_study(SMALL, "s", StudyOverrides("/mnt/t", set_arguments=tuple(sets)))
    other = parse_study(SMALL, "s", StudyOverrides("/mnt/t", set_arguments=tuple(sorted(sets))))
    assert make_plan(study) == make_plan(other)


def refusal(text: str, *sets: str) -> list[str] | None:
    """What is said against a study; None when it is planned."""
    try:
        make_plan(parse_study(text, "s.toml", StudyOverrides("/mnt/t", set_arguments=sets)))
    except StudyError as error:
        return [str(fault) for fault in error.faults]
    return None


@given(st.text(max_size=60), st.text(max_size=60))
def test_any_assignment_is_taken_or_refused_in_printable_words(name: str, value: str) -> None:
    for place in (name, f"workload.mix.{name}", "method.runtime", "workload.*.fio.thinktime"):
        said = refusal(SMALL, f"{place}={value}")
        assert said is None or (said and all(fault.isprintable() for fault in said))


@given(st.text(max_size=200), st.integers(0, len(SMALL)))
def test_any_text_is_a_study_or_refused_in_printable_words(text: str, at: int) -> None:
    for candidate in (text, SMALL[:at] + text + SMALL[at:], SMALL[:at]):
        said = refusal(candidate)
        assert said is None or (said and all(fault.isprintable() for fault in said))
