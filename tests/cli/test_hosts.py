"""What `--hosts` names: files, launchers, and files that are called like launchers."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.in_process import call

INVENTORY = 'format = 1\n[[host]]\nname = "c[1-2]"\npath = "/mnt/target"\n'


@pytest.mark.parametrize("name", ["slurm", "mpi:a", "k8s:a"])
def test_a_file_that_is_called_like_a_launcher_is_meant_by_its_path(
    tmp_path: Path, name: str
) -> None:
    (tmp_path / name).write_text(INVENTORY, encoding="utf-8")
    done = call("check", "cluster-kpi", "--hosts", f"./{name}", "--json", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert '"hosts": 2' in done.stdout


def test_without_srun_an_allocation_is_of_no_use(tmp_path: Path) -> None:
    env = {"PATH": str(tmp_path), "SLURM_JOB_ID": "7", "SLURM_JOB_NODELIST": "n[1-2]"}
    done = call("check", "cluster-kpi", "--hosts", "slurm", env=env)
    assert done.returncode == 3
    assert "'srun'" in done.stderr


@pytest.mark.parametrize(
    ("name", "code", "message"),
    [
        ("slurm", 3, "Slurm allocation"),
        ("mpi:/no/such", 2, "'/no/such'"),
        ("mpi:", 2, "MPI host file"),
        ("k8s:bench", 2, "'bench'"),
        ("/no/such", 2, "/no/such"),
    ],
)
@pytest.mark.parametrize("command", [["check", "cluster-kpi"], ["doctor"]])
def test_what_names_no_hosts_is_told(
    command: list[str], name: str, code: int, message: str
) -> None:
    done = call(*command, "--hosts", name, env={"SLURM_JOB_ID": ""})
    assert done.returncode == code
    assert message in done.stderr
