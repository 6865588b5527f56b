"""Hosts behind an argument prefix: the push, its proof, and prefixes that feed a shell."""

from __future__ import annotations

import asyncio
import hashlib
import os
import platform
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from iolab.core.host import HostSpec, HostTransport
from iolab.errors import HostError
from iolab.hosts.connect import CommandHost
from iolab.hosts.process import exit_and_stderr_text
from iolab.hosts.push import FOLDER, CommandPrefix
from tests.facts import tells
from tests.needs import ROOT, require
from tests.processes import run_program

SCRIPT = Path(__file__).parents[1] / "fakes" / "scripted_agent.py"
REMOTE_FOLDER = Path(FOLDER.format(user=os.getuid()))


@pytest.fixture
def agent(tmp_path: Path) -> Iterator[Path]:
    """A scripted agent with bytes of its own, so that its pushed copy is ours to judge."""
    path = tmp_path / "agent"
    note = f"# {os.urandom(8).hex()}\n"
    path.write_text(f"#!{sys.executable} -S\n{SCRIPT.read_text('utf-8')}{note}", "utf-8")
    yield path
    remote_of(path).unlink(missing_ok=True)


@pytest.fixture
def ssh(tmp_path: Path) -> Path:
    """A stand-in for ssh: it joins its words after the host with spaces for a shell, as ssh does.

    Every command is noted beside it.
    """
    path = tmp_path / "ssh"
    path.write_text(
        f'#!/bin/sh\nshift\necho "$*" >> {tmp_path}/commands\nexec sh -c "$*"\n', encoding="utf-8"
    )
    path.chmod(0o755)
    return path


def remote_of(agent: Path) -> Path:
    return REMOTE_FOLDER / hashlib.sha256(agent.read_bytes()).hexdigest()[:16]


def host_of(agent: Path, *prefix: str | Path) -> CommandHost:
    words = tuple(str(word) for word in prefix)
    return CommandHost(HostSpec("c1", HostTransport.COMMAND, command_prefix=words), agent)


def visit(host: CommandHost) -> str:
    """The agent's version, by a whole visit."""

    async def body() -> str:
        try:
            async with asyncio.timeout(60):
                hello = await host.connect()
                assert (await host.request("clock", deadline_s=10)).message_type == "clock"
                return hello.version
        finally:
            await host.close()

    return asyncio.run(body())


def test_the_agent_is_pushed_verified_and_started(agent: Path) -> None:
    assert not agent.stat().st_mode & 0o111
    assert visit(host_of(agent, "env")) == "0.0.0-scripted"
    remote = remote_of(agent)
    assert remote.read_bytes() == agent.read_bytes()
    assert remote.stat().st_mode & 0o777 == 0o700
    assert REMOTE_FOLDER.stat().st_mode & 0o777 == 0o700
    assert list(REMOTE_FOLDER.glob(f"{remote.name}.*")) == []


def test_a_prefix_that_joins_words_for_a_shell_works_and_pushes_once(
    agent: Path, ssh: Path
) -> None:
    assert visit(host_of(agent, ssh, "storage-1")) == "0.0.0-scripted"
    first = ssh.with_name("commands").read_text("utf-8").splitlines()
    assert [line.split()[0] for line in first[:5]] == ["id", "mkdir", "stat", "sha256sum", "tee"]
    assert visit(host_of(agent, ssh, "storage-1")) == "0.0.0-scripted"
    second = ssh.with_name("commands").read_text("utf-8").splitlines()[len(first) :]
    assert [line.split()[0] for line in second[:4]] == ["id", "mkdir", "stat", "sha256sum"]
    assert second[4:] == [str(remote_of(agent))]


def test_only_so_many_hosts_are_pushed_to_at_a_time(agent: Path, tmp_path: Path) -> None:
    prefix, log = tmp_path / "prefix", tmp_path / "log"
    prefix.write_text(
        f'#!/bin/sh\n[ "$1" = id ] || exec "$@"\n'
        f'echo + >> {log}; sleep 0.1; "$@"; echo - >> {log}\n',
        encoding="utf-8",
    )
    prefix.chmod(0o755)

    async def body() -> None:
        turns = asyncio.Semaphore(2)
        specs = [
            HostSpec(f"c{n}", HostTransport.COMMAND, command_prefix=(str(prefix),))
            for n in range(5)
        ]
        hosts = [CommandHost(spec, agent, turns) for spec in specs]
        try:
            async with asyncio.timeout(60):
                await asyncio.gather(*(host.connect() for host in hosts))
        finally:
            await asyncio.gather(*(host.close() for host in hosts))

    asyncio.run(body())
    marks = log.read_text("utf-8").split()
    under_way = [marks[:end].count("+") - marks[:end].count("-") for end in range(len(marks))]
    assert marks.count("+") == 5
    assert max(under_way) == 2


def test_a_network_namespace_is_a_host(agent: Path) -> None:
    require(ROOT, "ip")
    name = f"iolab-{os.getpid()}"
    subprocess.run(["ip", "netns", "add", name], check=True, timeout=10)
    try:
        assert visit(host_of(agent, "ip", "netns", "exec", name)) == "0.0.0-scripted"
    finally:
        subprocess.run(["ip", "netns", "delete", name], check=True, timeout=10)


def test_a_host_of_a_machine_without_an_agent_is_told_of(tmp_path: Path) -> None:
    prefix = tmp_path / "prefix"
    prefix.write_text('#!/bin/sh\n[ "$1" = uname ] || exec "$@"\necho Linux riscv64\n', "utf-8")
    prefix.chmod(0o755)
    host = CommandHost(HostSpec("c1", HostTransport.COMMAND, command_prefix=(str(prefix),)))
    with pytest.raises(HostError) as refused:
        visit(host)
    assert tells(refused.value.message, "c1", "riscv64", platform.machine())


def test_a_host_that_may_not_run_what_lies_in_tmp_is_told_of(agent: Path, tmp_path: Path) -> None:
    prefix = tmp_path / "prefix"
    prefix.write_text(
        '#!/bin/sh\ncase "$1" in /tmp/*) exit 126;; esac\nexec "$@"\n', encoding="utf-8"
    )
    prefix.chmod(0o755)
    with pytest.raises(HostError) as refused:
        visit(host_of(agent, prefix))
    assert tells(refused.value.message, "c1", "126")
    assert tells(refused.value.hint, "/tmp", "noexec")


def test_a_file_that_was_tampered_with_is_replaced(agent: Path) -> None:
    visit(host_of(agent, "env"))
    remote_of(agent).write_bytes(b"#!/bin/false\n")
    assert visit(host_of(agent, "env")) == "0.0.0-scripted"
    assert remote_of(agent).read_bytes() == agent.read_bytes()


def test_a_folder_of_somebody_else_is_refused(agent: Path, tmp_path: Path) -> None:
    """A host whose `stat` tells that the folder is open to others: it could be swapped there."""
    prefix = tmp_path / "prefix"
    prefix.write_text(
        '#!/bin/sh\n[ "$1" = stat ] && { echo "1001:777:directory"; exit; }\nexec "$@"\n', "utf-8"
    )
    prefix.chmod(0o755)
    with pytest.raises(HostError, match="not a private directory"):
        visit(host_of(agent, prefix))
    assert not remote_of(agent).exists()


def test_a_private_folder_that_inherits_setgid_is_taken(agent: Path, tmp_path: Path) -> None:
    """A pod's volume with an fsGroup is setgid, and so is every folder made in it."""
    prefix = tmp_path / "prefix"
    prefix.write_text(
        f'#!/bin/sh\n[ "$1" = stat ] && {{ echo "{os.getuid()}:2700:directory"; exit; }}\n'
        'exec "$@"\n',
        "utf-8",
    )
    prefix.chmod(0o755)
    assert visit(host_of(agent, prefix)) == "0.0.0-scripted"


def test_a_host_whose_tmp_cannot_be_written_gives_that_reason(agent: Path, tmp_path: Path) -> None:
    prefix = tmp_path / "prefix"
    prefix.write_text(
        '#!/bin/sh\ncase "$1" in\n'
        'mkdir) echo "mkdir: cannot create directory: Read-only file system" >&2; exit 1;;\n'
        'stat) echo "stat: No such file or directory" >&2; exit 1;;\nesac\nexec "$@"\n',
        "utf-8",
    )
    prefix.chmod(0o755)
    with pytest.raises(HostError) as refused:
        visit(host_of(agent, prefix))
    assert tells(refused.value.message, "cannot be made", "c1", "Read-only file system")
    assert tells(refused.value.hint, "/tmp", "emptyDir")


def test_the_reason_of_a_lost_command_is_its_last_line_and_not_its_log() -> None:
    log = (
        b'E1128 11:19:13.167757    3095 v2.go:150] "Unhandled Error" err="next reader: websocket"\n'
    )
    stderr = log * 5 + b"error: Internal error occurred: connection reset\n"
    assert (
        exit_and_stderr_text(1, stderr)
        == "exit code 1; error: Internal error occurred: connection reset"
    )
    assert exit_and_stderr_text(1, log * 5).startswith("exit code 1; E1128 11:19:13")
    assert exit_and_stderr_text(1, b"first " * 60 + b"\nlast line\n") == "exit code 1; last line"


def test_an_upload_that_arrives_damaged_is_never_started(agent: Path, tmp_path: Path) -> None:
    prefix = tmp_path / "prefix"
    prefix.write_text(
        '#!/bin/sh\n[ "$1" = tee ] && { head -c 100 > "$2"; exit; }\nexec "$@"\n', encoding="utf-8"
    )
    prefix.chmod(0o755)
    with pytest.raises(HostError, match=r"arrived on host 'c1' with checksum [0-9a-f]{64}"):
        visit(host_of(agent, prefix))
    assert list(REMOTE_FOLDER.glob(f"{remote_of(agent).name}*")) == []


def test_a_prefix_that_does_not_exist_is_named(agent: Path) -> None:
    with pytest.raises(HostError, match="'/no/such/ssh' does not start"):
        visit(host_of(agent, "/no/such/ssh", "storage-1"))


def test_a_prefix_that_fails_is_told_with_its_own_words(agent: Path, tmp_path: Path) -> None:
    prefix = tmp_path / "prefix"
    prefix.write_text("#!/bin/sh\necho 'Permission denied (publickey).' >&2\nexit 255\n", "utf-8")
    prefix.chmod(0o755)
    with pytest.raises(HostError, match=r"'id' failed on host 'c1' \(exit code 255; Permission"):
        visit(host_of(agent, prefix))


def test_a_prefix_that_prints_of_its_own_is_named(agent: Path, tmp_path: Path) -> None:
    prefix = tmp_path / "prefix"
    prefix.write_text('#!/bin/sh\necho "Welcome to \x1b[1mus"\nexec "$@"\n', encoding="utf-8")
    prefix.chmod(0o755)
    with pytest.raises(HostError, match=r"answered 'id -u' with 'Welcome to \\x1b\[1mus"):
        visit(host_of(agent, prefix))


@pytest.mark.parametrize(
    "word", ["a b", "$HOME", "x;y", "`id`", "", "a'b", "x>y", "*", "~", "a\nb"]
)
def test_a_word_that_a_shell_might_change_is_never_passed(word: str) -> None:
    with pytest.raises(ValueError, match="is not a plain word"):
        CommandPrefix("c1", ("ssh", "storage-1")).argv("stat", word)


def test_the_stand_in_for_ssh_would_have_shown_a_shell_at_work(ssh: Path) -> None:
    """The test above means something only if this ssh does hand words to a shell."""
    done = run_program([ssh, "h", "echo", "$((6*7))"], check=True, timeout=10)
    assert done.stdout == "42\n"
    assert shutil.which("sh")
