"""Lists of hosts as launchers write them stand for exactly the hosts that they were made of."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from iolab.core.host import HostTransport
from iolab.study.inventory import (
    mpi_inventory,
    parse_inventory,
    read_slurm_allocation,
    slurm_inventory,
)

PREFIXES = st.from_regex(r"[a-z][a-z0-9]{0,6}-", fullmatch=True)
NUMBERS = st.lists(st.integers(0, 9999), min_size=1, max_size=60, unique=True)
NAMES = st.lists(st.from_regex(r"[a-z][a-z0-9-]{0,8}[a-z0-9]", fullmatch=True), min_size=1)


def folded(prefix: str, numbers: list[int], width: int) -> str:
    """The list that Slurm writes for these numbers: runs of neighbours, all of one width."""
    runs: list[list[int]] = []
    for number in sorted(numbers):
        if runs and number == runs[-1][-1] + 1:
            runs[-1].append(number)
        else:
            runs.append([number])
    shown = [
        f"{run[0]:0{width}}" + (f"-{run[-1]:0{width}}" if len(run) > 1 else "") for run in runs
    ]
    return f"{prefix}[{','.join(shown)}]"


@given(PREFIXES, NUMBERS, st.integers(4, 6))
def test_a_list_of_nodes_is_read_as_it_was_written(
    prefix: str, numbers: list[int], width: int
) -> None:
    nodes = folded(prefix, numbers, width)
    allocation = read_slurm_allocation({"SLURM_JOB_ID": "1", "SLURM_JOB_NODELIST": nodes})
    names = [f"{prefix}{number:0{width}}" for number in sorted(numbers)]
    assert list(allocation.nodes) == names
    inventory = slurm_inventory(allocation)
    found = parse_inventory(inventory.text, inventory.file_name)
    assert [(host.name, host.transport) for host in found] == [
        (name, HostTransport.SLURM) for name in names
    ]


@given(NAMES, st.randoms(use_true_random=False))
def test_a_host_file_is_its_hosts_however_they_are_written(
    names: list[str], random: object
) -> None:
    forms = ("{}", "{}:3", "  {} slots=2", "{} slots = 2 max_slots=4 # more", "{}:1 binding=core")
    choice = random.choice  # type: ignore[attr-defined]
    text = "".join(choice(forms).format(name) + choice(("\n", "\r\n", "\n\n")) for name in names)
    inventory = mpi_inventory(text, "hosts")
    found = parse_inventory(inventory.text, inventory.file_name)
    assert [host.name for host in found] == list(dict.fromkeys(names))
