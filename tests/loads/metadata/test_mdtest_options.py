"""What a study may tell mdtest and its MPI, and what is refused with its line."""

from __future__ import annotations

import pytest

from iolab.errors import StudyError
from iolab.loads.metadata.workload import MetadataJob
from iolab.study.parse import StudyOverrides
from tests.plans import make_plan, parse_study

STUDY = """
format = 1
id = "meta"
[target]
path = "/mnt/bench"
[[workload]]
id = "tree"
engine = "mdtest"
ranks = 2
files_per_rank = 10
[workload.mdtest]
{option}
"""


def options_of(option: str) -> dict[str, str]:
    plan = make_plan(parse_study(STUDY.format(option=option), "meta.toml", StudyOverrides()))
    (point,) = plan.points
    assert isinstance(point.job, MetadataJob)
    return dict(point.job.options)


@pytest.mark.parametrize(
    ("option", "text"),
    [
        ("fsync = true", "1"),
        ("fsync = 0", "0"),
        ('mdtest = "/opt/ior/bin/mdtest"', "/opt/ior/bin/mdtest"),
        ('mpiexec = "mpiexec.openmpi"', "mpiexec.openmpi"),
    ],
)
def test_an_allowed_option_reaches_the_job(option: str, text: str) -> None:
    assert options_of(option) == {option.split()[0]: text}


@pytest.mark.parametrize(
    ("option", "message"),
    [
        ("fsnc = true", "mdtest option 'fsnc' of"),
        ('prologue = "rm"', "is not allowed"),
        ('mdtest = "/bin/sh"', "mdtest option mdtest of"),
        ('mpiexec = "mpiexec -x"', "mdtest option mpiexec of"),
    ],
)
def test_any_other_is_a_fault_with_its_line(option: str, message: str) -> None:
    with pytest.raises(StudyError) as caught:
        options_of(option)
    (fault,) = caught.value.faults
    assert message in fault.message
    assert (fault.file, fault.line) == ("meta.toml", 12)
