"""Logins that must not come about, or cannot: each told with its place and what to do."""

from __future__ import annotations

import asyncio
import subprocess
from pathlib import Path

import pytest

from iolab.core.host import HostSpec, JumpHost
from iolab.errors import HostError
from iolab.hosts.ssh import SshLinkSettings
from tests.fleet.bed import NO_CONFIG, Bed, nothing, route_of, visit
from tests.processes import run_program

pytestmark = pytest.mark.e2e

QUICK = SshLinkSettings(login_timeout_s=1.5)


def fault(spec: HostSpec, limits: SshLinkSettings = QUICK, config: Path = NO_CONFIG) -> HostError:
    with pytest.raises(HostError) as caught:
        visit(nothing, spec, limits=limits, config=config)
    assert str(caught.value).isprintable()
    return caught.value


def fingerprint(fleet: Bed, name: str) -> str:
    words = ["ssh-keygen", "-l", "-f", str(fleet.fleet.folder(name) / "host_key.pub")]
    return run_program(words, check=True).stdout.split()[1]


@pytest.fixture
def stranger(tmp_path: Path) -> Path:
    """A key that no host has heard of."""
    key = tmp_path / "stranger"
    words = ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(key)]
    subprocess.run(words, check=True, timeout=10)
    return key


def test_an_unknown_host_key_is_refused_with_how_to_accept_it(fleet: Bed, tmp_path: Path) -> None:
    empty = tmp_path / "known_hosts"
    empty.touch()
    spec = fleet.spec("c01", known_hosts=str(empty))
    told = fault(spec)
    assert "shows a key that you have not accepted yet: ssh-ed25519" in told.message
    assert fingerprint(fleet, "c01") in told.message
    assert f"'ssh-keyscan {route_of(spec).address}' to {empty}" in told.hint
    assert "compare the fingerprint" in told.hint
    assert empty.read_text("utf-8") == ""
    assert "Accepted publickey" not in fleet.log("c01").splitlines()[-1]


def test_another_host_key_than_the_known_one_is_refused_more_loudly(
    fleet: Bed, stranger: Path, tmp_path: Path
) -> None:
    known = tmp_path / "known_hosts"
    public = " ".join(stranger.with_name("stranger.pub").read_text("utf-8").split()[:2])
    address = route_of(fleet.specs["c01"]).address
    known.write_text(f"{address} {public}\n", encoding="utf-8")
    told = fault(fleet.spec("c01", known_hosts=str(known)))
    assert "shows another key than the one you trust" in told.message
    assert fingerprint(fleet, "c01") in told.message
    assert "Somebody may be in between" in told.hint


@pytest.mark.parametrize(
    "lines",
    [
        "StrictHostKeyChecking no\nUserKnownHostsFile none\n",
        "StrictHostKeyChecking no\nUserKnownHostsFile /dev/null\n",
        "UserKnownHostsFile none\nCanonicalizeHostname always\nMatch final\n  User root\n",
    ],
)
def test_no_configuration_switches_the_check_of_host_keys_off(
    fleet: Bed, tmp_path: Path, lines: str
) -> None:
    config = tmp_path / "config"
    config.write_text(lines, encoding="utf-8")
    told = fault(fleet.spec("c01", known_hosts=None), config=config)
    assert "shows a key that you have not accepted yet" in told.message


def test_a_jump_hosts_key_is_checked_too(fleet: Bed, tmp_path: Path) -> None:
    target = route_of(fleet.specs["c02"])
    lines = Path(str(target.known_hosts)).read_text("utf-8").splitlines()
    known = tmp_path / "known_hosts"
    known.write_text("\n".join(line for line in lines if not line.startswith("c01")), "utf-8")
    gate = route_of(fleet.specs["c01"]).address
    spec = fleet.spec("c02", known_hosts=str(known), jump=(JumpHost(gate, "root"),))
    told = fault(spec)
    assert told.message.startswith(f"Jump host 'root@{gate}' of host 'c02'")
    assert "have not accepted yet" in told.message


def test_a_key_that_the_host_does_not_take_is_told(fleet: Bed, stranger: Path) -> None:
    told = fault(fleet.spec("c01", key=str(stranger)))
    assert "takes none of your keys for user 'root'" in told.message
    assert "authorized_keys" in told.hint


def test_a_user_that_the_host_does_not_have_is_told(fleet: Bed) -> None:
    assert "for user 'nosuchuser'" in fault(fleet.spec("c01", user="nosuchuser")).message


def test_files_that_are_not_there_are_named(fleet: Bed) -> None:
    told = fault(fleet.spec("c01", key="/no/key"))
    assert told.message == "There is no key /no/key for host 'c01'."
    told = fault(fleet.spec("c01", known_hosts="/no/file"))
    assert "There is no file /no/file of host keys for host 'c01'" in told.message


def test_a_port_where_nobody_listens_is_told(fleet: Bed) -> None:
    told = fault(fleet.spec("c01", port=2))
    assert told.message == (
        f"Host 'c01' refuses connections at {route_of(fleet.specs['c01']).address} port 2."
    )


def test_an_address_that_nobody_has_is_told(fleet: Bed) -> None:
    nobody = f"{fleet.gateway.rsplit('.', 1)[0]}.200"
    assert (
        f"does not answer at {nobody} port 22 within 1.5 s"
        in fault(fleet.spec("c01", address=nobody)).message
    )


def test_a_host_that_accepts_and_says_nothing_is_told(fleet: Bed) -> None:
    with fleet.stopped("c01"):
        told = fault(fleet.specs["c01"])
    assert "takes a connection" in told.message
    assert "does not answer within 1.5 s" in told.message


def test_a_server_that_is_not_ssh_is_told(fleet: Bed) -> None:
    async def body() -> None:
        async def answer(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            writer.write(b"HTTP/1.1 400 \x1b[31mBad Request\r\n\r\n" * 10)
            await writer.drain()
            writer.close()

        server = await asyncio.start_server(answer, fleet.gateway, 0)
        port = server.sockets[0].getsockname()[1]
        async with server:
            spec = fleet.spec("c01", address=fleet.gateway, port=port)
            told = await asyncio.to_thread(fault, spec)
        assert f"({fleet.gateway} port {port}) broke off while logging in" in told.message

    asyncio.run(body())


def test_a_host_behind_a_jump_host_that_is_not_there_is_told(fleet: Bed) -> None:
    gate = route_of(fleet.specs["c01"]).address
    told = fault(fleet.spec("c02", port=2, jump=(JumpHost(gate, "root"),)))
    assert f"port 2 from jump host 'root@{gate}'" in told.message
    refused = fault(fleet.spec("c02", jump=(JumpHost(gate, "root", 2),)))
    assert refused.message.startswith(f"Jump host 'root@{gate}:2' of host 'c02' refuses")
