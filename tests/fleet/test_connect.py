"""Real ssh hosts: the agent pushed once and verified, facts, commands, jump hosts, settings."""

from __future__ import annotations

import asyncio
import os
import shutil
import subprocess
from pathlib import Path

import pytest

from iolab.core.host import HostSpec, HostTransport, JumpHost, SshRoute
from iolab.errors import HostError
from iolab.hosts.answers import read_facts
from iolab.hosts.host import Host
from iolab.hosts.push import CommandHostFileOperations, agent_binary, install_agent
from iolab.hosts.ssh import SshRunner, quoted_command_line
from iolab.hosts.ssh_host import SshConnections
from tests.fleet.bed import NO_CONFIG, Bed, nothing, route_of, run, visit

pytestmark = pytest.mark.e2e


def test_every_host_says_hello_and_tells_its_own_facts(fleet: Bed) -> None:
    async def names(*hosts: Host) -> list[str]:
        found = []
        for host in hosts:
            message = await host.request("facts", deadline_s=20, path=host.spec.path, tools={})
            facts = read_facts(host.name, message)
            assert facts.target is not None
            assert facts.target.writable
            found.append(facts.kernel.hostname)
        return found

    assert visit(names, *fleet.specs.values()) == ["c01", "c02", "c03"]


def test_a_command_runs_on_the_host_it_is_asked_of(fleet: Bed) -> None:
    async def said(*hosts: Host) -> list[bytes]:
        return [await output(host, ["uname", "-n"]) for host in hosts]

    assert visit(said, *fleet.specs.values()) == [b"c01\n", b"c02\n", b"c03\n"]


async def output(host: Host, argv: list[str]) -> bytes:
    stream = run(host, argv)
    return b"".join([message.payload async for message in stream])


def test_a_payload_of_the_largest_frame_arrives_as_it_was_sent(fleet: Bed) -> None:
    """The wire's largest payload, more than any window of ssh's flow control takes at once."""
    content = os.urandom(1 << 20)

    async def there_and_back(host: Host) -> bytes:
        path = f"{host.spec.path}/blob"
        for _ in range(3):
            await host.request("put", content, deadline_s=30, path=path, mode=0o600)
        stream = host.stream("get", path=path, max_bytes=1 << 21)
        return b"".join([message.payload async for message in stream])

    assert visit(there_and_back, fleet.specs["c01"]) == content
    (fleet.fleet.folder("c01") / "target" / "blob").unlink()


@pytest.fixture
def agent(tmp_path: Path) -> Path:
    """The agent with bytes of its own behind it, so that its push is this test's to judge."""
    path = tmp_path / "agent"
    path.write_bytes(agent_binary().read_bytes() + os.urandom(8))
    return path


@pytest.fixture
def bare(fleet: Bed) -> Bed:
    """The fleet as nobody has met it yet: no agent on any host."""
    for name in fleet.specs:
        for folder in fleet.tmp(name).iterdir():
            shutil.rmtree(folder)
    return fleet


def test_the_agent_is_pushed_once_and_nothing_else_is_left(bare: Bed, agent: Path) -> None:
    visit(nothing, bare.specs["c01"], agent=agent)
    (pushed,) = bare.agents("c01")
    assert pushed.read_bytes() == agent.read_bytes()
    assert pushed.stat().st_mode & 0o777 == 0o700
    assert pushed.parent.stat().st_mode & 0o777 == 0o700
    first = pushed.stat().st_ino
    visit(nothing, bare.specs["c01"], agent=agent)
    assert [path.stat().st_ino for path in bare.agents("c01")] == [first]
    assert list(bare.tmp("c01").iterdir()) == [pushed.parent]
    assert list((bare.fleet.folder("c01") / "home").iterdir()) == []
    assert bare.agents("c02") == []


def test_a_pushed_agent_that_was_changed_is_replaced(bare: Bed, agent: Path) -> None:
    visit(nothing, bare.specs["c01"], agent=agent)
    (pushed,) = bare.agents("c01")
    pushed.write_bytes(b"#!/bin/false\n")
    visit(nothing, bare.specs["c01"], agent=agent)
    assert [path.read_bytes() for path in bare.agents("c01")] == [agent.read_bytes()]


def test_two_sessions_that_push_at_once_both_work(bare: Bed, agent: Path) -> None:
    spec = bare.specs["c01"]
    twin = HostSpec("twin", HostTransport.SSH, ssh=spec.ssh)
    visit(nothing, spec, twin, agent=agent)
    assert [path.read_bytes() for path in bare.agents("c01")] == [agent.read_bytes()]


@pytest.mark.parametrize("kind", ["open", "link"])
def test_a_folder_that_somebody_else_could_write_is_refused(
    bare: Bed, agent: Path, kind: str
) -> None:
    folder = bare.tmp("c01") / f"iolab-agent-{os.getuid()}"
    elsewhere = bare.tmp("c01") / "elsewhere"
    elsewhere.mkdir(mode=0o700)
    if kind == "open":
        folder.mkdir()
        folder.chmod(0o777)
    else:
        folder.symlink_to("elsewhere")
    try:
        with pytest.raises(HostError, match="is not a private directory of user 0"):
            visit(nothing, bare.specs["c01"], agent=agent)
        assert list(elsewhere.iterdir()) == []
    finally:
        folder.unlink() if kind == "link" else folder.rmdir()


def test_a_host_without_sftp_gets_its_agent_by_plain_programs(bare: Bed, agent: Path) -> None:
    async def body() -> str:
        logins = SshConnections(config=NO_CONFIG)
        entry = await logins.log_in_over_ssh("c01", route_of(bare.specs["c01"]))
        try:
            runner = SshRunner("c01", entry.connection, logins.settings)
            return await install_agent(CommandHostFileOperations(runner), agent)
        finally:
            await entry.close_and_release_jump_login()

    remote = asyncio.run(body())
    (pushed,) = bare.agents("c01")
    assert pushed.read_bytes() == agent.read_bytes()
    assert pushed.stat().st_mode & 0o777 == 0o700
    assert remote.endswith(pushed.name)


@pytest.mark.parametrize("word", ["a b", "$HOME", "x;y", "`id`", "", "a'b", "*", "~", "a\nb"])
def test_a_word_that_a_shell_might_change_is_never_sent(word: str) -> None:
    with pytest.raises(ValueError, match="is not a plain word"):
        quoted_command_line("stat", word)


def test_hosts_behind_one_jump_host_share_its_connection(fleet: Bed) -> None:
    address = {name: route_of(spec).address for name, spec in fleet.specs.items()}
    before = fleet.log("c01").count("Accepted publickey")
    jump = (JumpHost(address["c01"], "root"),)
    visit(nothing, fleet.spec("c02", jump=jump), fleet.spec("c03", jump=jump))
    assert fleet.log("c01").count("Accepted publickey") == before + 1
    for name in ("c02", "c03"):
        last = [line for line in fleet.log(name).splitlines() if "Accepted publickey" in line][-1]
        assert f"from {address['c01']} port" in last


def test_two_jump_hosts_are_passed_in_their_order(fleet: Bed) -> None:
    address = {name: route_of(spec).address for name, spec in fleet.specs.items()}
    jump = (JumpHost(address["c01"], "root", 22), JumpHost(address["c02"], "root"))
    visit(nothing, fleet.spec("c03", jump=jump))
    last = [line for line in fleet.log("c03").splitlines() if "Accepted publickey" in line][-1]
    assert f"from {address['c02']} port" in last


def config_of(fleet: Bed, tmp_path: Path, more: str = "") -> Path:
    """A ~/.ssh/config that knows everything of the fleet, and a host by another name."""
    path = tmp_path / "config"
    route = route_of(fleet.specs["c02"])
    text = (
        f"Host storage-7\n  HostName {route.address}\n{more}\n"
        f"Host *\n  User root\n  IdentityFile {route.key}\n  IdentitiesOnly yes\n"
        f"  UserKnownHostsFile {route.known_hosts}\n  RequestTTY force\n"
        "  RemoteCommand /bin/false\n  ForwardAgent yes\n"
    )
    path.write_text(text, encoding="utf-8")
    return path


def named(name: str) -> HostSpec:
    return HostSpec(name, HostTransport.SSH, ssh=SshRoute(name))


def test_the_users_ssh_config_is_honoured(fleet: Bed, tmp_path: Path) -> None:
    async def name(host: Host) -> bytes:
        return await output(host, ["uname", "-n"])

    assert visit(name, named("storage-7"), config=config_of(fleet, tmp_path)) == b"c02\n"


def test_a_jump_host_of_the_users_ssh_config_is_taken(fleet: Bed, tmp_path: Path) -> None:
    gate = route_of(fleet.specs["c01"]).address
    config = config_of(fleet, tmp_path, f"  ProxyJump {gate}")
    visit(nothing, named("storage-7"), config=config)
    last = [line for line in fleet.log("c02").splitlines() if "Accepted publickey" in line][-1]
    assert f"from {gate} port" in last


def test_jump_hosts_that_lead_in_a_circle_are_told(fleet: Bed, tmp_path: Path) -> None:
    config = config_of(fleet, tmp_path, "  ProxyJump storage-7")
    with pytest.raises(HostError, match=r"more than 8 jump hosts on the way"):
        visit(nothing, named("storage-7"), config=config)


@pytest.fixture
def locked(fleet: Bed, tmp_path: Path) -> Path:
    """The fleet's key under a passphrase, its public half beside it."""
    key = tmp_path / "locked"
    source = Path(str(route_of(fleet.specs["c01"]).key))
    shutil.copy(source, key)
    shutil.copy(source.with_name(f"{source.name}.pub"), tmp_path / "locked.pub")
    words = ["ssh-keygen", "-q", "-p", "-P", "", "-N", "open sesame", "-f", str(key)]
    subprocess.run(words, check=True, timeout=10)
    return key


def test_a_key_with_a_passphrase_is_told_to_belong_into_ssh_agent(
    fleet: Bed, locked: Path, tmp_path: Path
) -> None:
    config = tmp_path / "config"
    config.write_text("IdentityAgent none\n", encoding="utf-8")
    with pytest.raises(HostError, match=r"needs a passphrase\. Load it into ssh-agent"):
        visit(nothing, fleet.spec("c01", key=str(locked)), config=config)


def test_a_key_in_ssh_agent_logs_in(fleet: Bed, locked: Path, tmp_path: Path) -> None:
    socket = tmp_path / "agent.sock"
    agent = subprocess.Popen(["ssh-agent", "-D", "-a", socket], stdout=subprocess.DEVNULL)
    try:
        plain = route_of(fleet.specs["c01"]).key
        while not socket.exists():
            assert agent.poll() is None
        environment = {**os.environ, "SSH_AUTH_SOCK": str(socket)}
        subprocess.run(["ssh-add", "-q", str(plain)], check=True, env=environment, timeout=10)
        config = tmp_path / "config"
        config.write_text(f"IdentityAgent {socket}\n", encoding="utf-8")
        visit(nothing, fleet.spec("c01", key=str(locked)), config=config)
    finally:
        agent.terminate()
        agent.wait(10)
