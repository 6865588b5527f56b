"""Host files of MPICH, Intel MPI and Open MPI: their hosts, and all that is wrong with them."""

from __future__ import annotations

import pytest

from iolab.core.host import HostSpec, HostTransport, SshRoute
from iolab.errors import UsageError
from iolab.study.inventory import FAULTS_MAX, mpi_inventory, parse_inventory


def specs(text: str) -> tuple[HostSpec, ...]:
    inventory = mpi_inventory(text, "hosts")
    return parse_inventory(inventory.text, inventory.file_name)


def names(text: str) -> list[str]:
    return [host.name for host in specs(text)]


def faults(text: str) -> list[str]:
    with pytest.raises(UsageError) as raised:
        mpi_inventory(text, "hosts")
    assert all(fault.hint for fault in raised.value.faults)
    return [f"{fault.line}: {fault.message}" for fault in raised.value.faults]


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("a\nb\n", ["a", "b"]),
        ("# all\n\n  a  # first\r\nb:16\r\n", ["a", "b"]),
        ("a:4\nb:4\n", ["a", "b"]),
        ("a:4 binding=core ifname=ib0\nb:2:mlx5_0\n", ["a", "b"]),
        ("a slots=4 max_slots=8\nb slots = 4\nc cpus=2 max-slots=3\n", ["a", "b", "c"]),
        ("a SLOTS=4\n", ["a"]),
        ("a\nb\na\na slots=2\n", ["a", "b"]),
        ("192.0.2.7:2\nc-1.example.org slots=1\n", ["192.0.2.7", "c-1.example.org"]),
    ],
)
def test_hosts_are_found_each_once(text: str, found: list[str]) -> None:
    assert names(text) == found


@pytest.mark.parametrize(
    "line", ["bench@a:2", "a user=bench", "a slots=1 username = bench", "bench@a user=bench"]
)
def test_users_are_found(line: str) -> None:
    assert specs(line) == (HostSpec("a", HostTransport.SSH, ssh=SshRoute("a", user="bench")),)


def test_a_port_is_found() -> None:
    assert specs("a port=2222")[0].ssh == SshRoute("a", port=2222)


def test_slots_are_in_no_host() -> None:
    assert specs("a slots=64") == specs("a:2\na:7")


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("-oProxyCommand=x", "The line begins with '-oProxyCommand=x', not with a host."),
        ("-oX", "'-oX' is no name of a host."),
        ("a;id", "'a;id' is no name of a host."),
        ("$(id)", "'$(id)' is no name of a host."),
        ("a\x1b[1m", r"'a\x1b[1m' is no name of a host."),
        ("_a", "'_a' is no name of a host."),
        ("-x@a", "The user of 'a' is '-x'."),
        ("@a", "The user of 'a' is ''."),
        ("a:0", "The number behind 'a' is '0'."),
        ("a:many", "The number behind 'a' is 'many'."),
        ("a slots=-1", "The number behind 'slots' is '-1'."),
        ("a slots=", "'slots=' behind a host is not understood."),
        ("a 4", "'4' behind a host is not understood."),
        ("a sluts=4", "The host file's key 'sluts' is not known."),
        ("a port=99999", "The port of 'a' is '99999'."),
        ("x@a user=y", "Host 'a' has two users."),
        ("+n1", "'+n1' chooses among other hosts."),
        ("^a", "'^a' chooses among other hosts."),
        ("rank 0=a slot=1", "The line begins with 'rank', not with a host."),
        ("[2001:db8::1]:4", "'[2001:db8::1]:4' is no name of a host."),
        ("2001:db8::1", "'2001:db8::1' is no name of a host."),
    ],
)
def test_a_line_that_is_no_host_is_refused(line: str, message: str) -> None:
    assert faults(f"good\n{line}\n") == [f"2: {message}"]


def test_all_faults_are_told_at_once_each_with_its_line() -> None:
    found = faults("-a\nb\nc slots=x\nu@b\n")
    for fault, (line, value) in zip(found, [(1, "'-a'"), (3, "'x'"), (4, "'b'")], strict=True):
        assert fault.startswith(f"{line}: ")
        assert value in fault


def test_a_file_without_hosts_is_refused() -> None:
    assert "has no host" in faults("# nothing\n\n")[0]


def test_a_file_that_is_something_else_is_told_in_few_lines() -> None:
    assert len(faults("<html>\n" * 5000)) == FAULTS_MAX


def test_too_many_hosts_are_refused() -> None:
    text = "".join(f"n{number}\n" for number in range(1001))
    assert faults(text) == ["None: There are 1001 hosts."]
