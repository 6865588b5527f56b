"""An allocation from its environment, and what srun is and is not told."""

from __future__ import annotations

import pytest

from iolab.core.host import HostSpec, HostTransport
from iolab.errors import HostError
from iolab.study.inventory import (
    SlurmAllocation,
    parse_inventory,
    read_slurm_allocation,
    slurm_inventory,
    srun_environment,
    srun_prefix,
)


def environment(nodes: str, job: str = "17") -> dict[str, str]:
    return {"SLURM_JOB_ID": job, "SLURM_JOB_NODELIST": nodes, "PATH": "/bin"}


def test_an_allocation_is_read() -> None:
    nodes = ("n08", "n09", "n10", "gpu1")
    assert read_slurm_allocation(environment("n[08-10],gpu1")) == SlurmAllocation("17", nodes)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({}, "There is no Slurm allocation here (SLURM_JOB_ID is"),
        ({"SLURM_JOB_ID": "17"}, "There is no Slurm allocation here (SLURM_JOB_NODELIST is"),
        (environment("n1", "-1"), "SLURM_JOB_ID is '-1', not a number."),
        (environment("n1", "17 --uid=0"), "SLURM_JOB_ID is '17 --uid=0', not a number."),
        (environment("n[1-"), "SLURM_JOB_NODELIST is 'n[1-'."),
        (environment("n[1-9999999]"), "SLURM_JOB_NODELIST is 'n[1-9999999]', more than 1000"),
        (environment("-oX"), "SLURM_JOB_NODELIST has '-oX'"),
        (environment("n1;id"), "SLURM_JOB_NODELIST has 'n1;id'"),
        (environment("n\x1b[1]"), r"SLURM_JOB_NODELIST has 'n\x1b1'"),
    ],
)
def test_what_is_no_allocation_is_refused(given: dict[str, str], message: str) -> None:
    with pytest.raises(HostError) as raised:
        read_slurm_allocation(given)
    assert raised.value.message.startswith(message)
    assert "salloc or sbatch" in raised.value.hint


def test_the_inventory_keeps_the_nodes_and_no_number_of_a_job() -> None:
    inventory = slurm_inventory(SlurmAllocation("17", ("n1", "n2")))
    found = parse_inventory(inventory.text, inventory.file_name)
    assert found == (HostSpec("n1", HostTransport.SLURM), HostSpec("n2", HostTransport.SLURM))
    written = [line for line in inventory.text.splitlines() if not line.startswith("#")]
    assert "17" not in "".join(written)


def test_a_step_takes_one_task_on_one_node_and_waits_for_nothing() -> None:
    words = srun_prefix("17", "n1")
    assert words[0] == "srun"
    needed = {"--jobid=17", "--nodelist=n1", "--nodes=1", "--ntasks=1", "--overlap", "--mem=0"}
    assert needed <= set(words)
    assert "--unbuffered" in words
    assert all(word.startswith("--") for word in words[1:])


def test_settings_of_the_job_are_kept_from_srun() -> None:
    given = {
        "PATH": "/bin",
        "HOME": "/",
        "SLURM_CONF": "/etc/slurm/slurm.conf",
        "SLURM_JWT": "token",
        "SLURM_WORKING_CLUSTER": "lab:192.0.2.1:6817:9728:109",
        "SLURM_NTASKS": "8",
        "SLURM_MEM_PER_CPU": "100",
        "SLURM_LABELIO": "1",
        "SLURM_EXPORT_ENV": "NONE",
        "SRUN_CPUS_PER_TASK": "4",
        "SBATCH_EXCLUSIVE": "1",
        "SALLOC_PARTITION": "x",
    }
    kept = {"PATH", "HOME", "SLURM_CONF", "SLURM_JWT", "SLURM_WORKING_CLUSTER"}
    assert set(srun_environment(given)) == kept


@pytest.mark.parametrize("key", ['command = ["x"]', 'user = "bench"', "port = 22", 'jump = "g"'])
def test_a_node_of_slurm_has_no_other_way_to_it(key: str) -> None:
    from iolab.errors import StudyError

    text = f'format = 1\n[[host]]\nname = "n[1-2]"\nkind = "slurm"\n{key}\n'
    with pytest.raises(StudyError, match="fault"):
        parse_inventory(text, "hosts.toml")
