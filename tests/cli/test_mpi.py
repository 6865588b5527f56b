"""What `iolab doctor --hosts` says of MPI and mdtest: nothing, unless a client has mdtest."""

from __future__ import annotations

from iolab.cli.doctor.findings import FindingState
from iolab.core.host import ToolFacts
from iolab.session.discovery import InspectedHost
from tests.cli.test_doctor_fleet import findings, host

MPICH = (
    ToolFacts("mpiexec", "/usr/bin/mpiexec", "HYDRA build details:"),
    ToolFacts("mpichversion", "/usr/bin/mpichversion", "MPICH Version:    \t4.0.2"),
)
OPEN_MPI = (ToolFacts("mpiexec", "/usr/bin/mpiexec", "mpiexec (OpenRTE) 4.1.4"),)
MDTEST = ToolFacts("mdtest", "/usr/bin/mdtest", "Usage: mdtest")


def client(number: int, *tools: ToolFacts) -> InspectedHost:
    return host(f"c0{number}", kernel={"boot_id": str(number)}, facts={"tools": tools})


def mpi(*hosts: InspectedHost) -> list[tuple[FindingState, str]]:
    return [
        (item.finding.state, item.finding.message)
        for item in findings(*hosts)
        if item.finding.topic == "MPI"
    ]


def test_one_mpi_on_all_is_well() -> None:
    same = mpi(client(1, MDTEST, *MPICH), client(2, MDTEST, *MPICH))
    assert same == [(FindingState.OK, "MPICH 4.0.2 on all")]


def test_mpis_that_differ_are_named_with_their_hosts() -> None:
    hosts = (client(1, MDTEST, *MPICH), client(2, MDTEST, *OPEN_MPI), client(3, *MPICH), client(4))
    ((state, message),) = mpi(*hosts)
    assert state is FindingState.NOTE
    assert "MPICH 4.0.2 on c01" in message
    assert "mpiexec (OpenRTE) 4.1.4 on c02" in message
    assert "MPICH 4.0.2, no mdtest on c03" in message
    assert "no mpiexec, no mdtest on c04" in message
