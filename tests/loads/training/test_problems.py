"""Training-read workloads that cannot be made are refused before anything is written."""

from __future__ import annotations

import pytest

from iolab.loads.training.datasets import SAMPLE_SETS
from iolab.loads.training.workload import TrainingJob
from tests.study.studies import faults, load

STUDY = """
format = 1
id = "training"

[[workload]]
id = "reads"
engine = "training-read"
dataset = "unet3d"
accelerators = [2, 4]
"""

OWN = STUDY.replace('"unet3d"', '"custom"')


def job_of(text: str) -> TrainingJob:
    (workload,) = load(text).workloads
    return TrainingJob.require_type(workload.job)


@pytest.mark.parametrize("name", SAMPLE_SETS)
def test_published_sets_have_their_values(name: str) -> None:
    own = SAMPLE_SETS[name]
    for accelerator, step in own.steps.items():
        job = job_of(f'{STUDY.replace("unet3d", name)}accelerator = "{accelerator}"\n')
        assert (job.batch, job.compute_ns) == (step.batch, step.compute_ns)
        assert (job.sample_bytes, job.samples_per_file) == (own.sample_bytes, own.samples_per_file)
        # 500 steps for the most accelerators.
        assert job.steps_of_epoch_on_host(4) >= 500
        assert job.files * job.samples_per_file >= 500 * 4 * step.batch


def test_demand_of_an_accelerator_is_as_published() -> None:
    demands = {"unet3d": 3.18e9, "resnet50": 205e6, "cosmoflow": 808e6, "retinanet": 163e6}
    for name, demand in demands.items():
        job = job_of(STUDY.replace("unet3d", name))
        assert job.bytes_per_s_of_accelerator == pytest.approx(demand, rel=0.01)


def test_accelerators_are_shared_out_evenly() -> None:
    job = job_of(STUDY.replace("[2, 4]", "8"))
    assert [job.accelerator_count_of_host(place, 3) for place in range(3)] == [3, 3, 2]


def test_a_set_of_ones_own_needs_its_values() -> None:
    keys = 'sample_bytes = "1m"\nbatch = 8\ncompute = "50ms"\nsamples_per_file = 100\n'
    job = job_of(OWN + keys)
    assert (job.sample_bytes, job.compute_ns, job.files) == (1 << 20, 50_000_000, 160)
    messages = " ".join(fault.message for fault in faults(OWN))
    assert all(key in messages for key in ("sample_bytes", "batch", "compute"))


@pytest.mark.parametrize(
    ("addition", "facts"),
    [
        ('accelerator = "mi355"', ("mi355", "unet3d")),
        ("files = 20", ("files = 20", "Give at least 28")),
        ("samples_per_file = 4", ("sample_stdev",)),
        ("sample_bytes = 4096\nbatch = 100000", ("200,000,000",)),
        ("loaders = 256\nfiles = 100000", ("16842752 threads",)),
        ("accelerator = 'gpu'", ("gpu",)),
        ("compute = '10us'", ("10us",)),
        ("sample_share = 2", ("sample_share",)),
    ],
)
def test_what_cannot_be_made_is_refused_with_its_value(
    addition: str, facts: tuple[str, ...]
) -> None:
    text = STUDY + addition + "\n"
    if "loaders" in addition:
        text = text.replace("[2, 4]", "65536")
    found = [f"{fault.message} {fault.hint}" for fault in faults(text)]
    assert any(all(fact in message for fact in facts) for message in found), found
