"""The agents that come with iolab; brings one to a host and proves that it is the right file.

`HostFileOperations` says how files and programs of the host are reached: by plain programs of
coreutils or busybox behind an argument prefix (here), or by SFTP (`ssh_host`). No shell of ours is
ever involved, and nothing is left on the host but the agent in a private folder.
"""

from __future__ import annotations

import asyncio
import hashlib
import os
import platform
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final, Protocol

from iolab.errors import HostError
from iolab.hosts.message import HostCommandError
from iolab.hosts.process import cannot_start_error, exit_and_stderr_text, run_local_process
from iolab.record import Record
from iolab.text import excerpt, list_text

AGENT_VARIABLE: Final = "IOLAB_AGENT"
"""Environment variable that names another agent, for all hosts, than the package's own."""

AGENTS_FOLDER: Final = Path(__file__).parents[1] / "_agent"
"""A folder for each machine, as `uname -m` names it, with its agent."""

LINUX: Final = "Linux"

FOLDER: Final = "/tmp/iolab-agent-{user}"  # noqa: S108 - private and checked before use
"""Where agents are kept on a host: one folder a user, of mode 700, never followed as a link."""

HASH_SHOWN: Final = 16
"""Hex digits of the checksum in the file's name; the whole of it is compared."""

STEP_LIMIT_S: Final = 30.0
"""One small program on the host; a login over a slow link takes seconds."""

UPLOAD_LIMIT_S: Final = 120.0
"""The agent is about 2 MB: enough for 200 kbit/s."""

OUTPUT_LIMIT_BYTES: Final = 64 << 10
"""What a step may print; the longest expected answer is one line."""

PRIVATE: Final = re.compile(r"[0-7]?700:directory")
"""The mode and kind that the agents' folder must have, after its owner. The first digit opens it
to nobody: a folder below a setgid one, as a pod's volume with an fsGroup is, inherits that."""

PLAIN_WORD: Final = re.compile(r"[A-Za-z0-9_./=:@%+-]+")
"""Words that mean the same to every shell: a prefix like ssh hands them to one."""

_WRITABLE_TMP: Final = (
    "The agent needs a writable /tmp there; give a pod an emptyDir volume at /tmp."
)
_SILENT: Final = "See that a program started there prints nothing but its own output."


def agent_binary(
    machine: str = "", *, system: str = "", host_name: str = "", folder: Path = AGENTS_FOLDER
) -> Path:
    """The agent for a host whose `uname` says `system` and `machine`; this machine's by default.

    `IOLAB_AGENT` stands for all. HostError where there is none, with those that there are.
    """
    named = os.environ.get(AGENT_VARIABLE)
    if named:
        if not Path(named).is_file():
            raise HostError(f"There is no agent at {named}.", f"Correct {AGENT_VARIABLE}.")
        return Path(named)
    who = f"Host '{host_name}'" if host_name else "This machine"
    if (system or platform.system()) != LINUX:
        what = f"{who} runs {system or platform.system()}, and the agent needs {LINUX}."
        hint = "Leave it out." if host_name else "Name hosts that run it with --hosts."
        raise HostError(what, hint)
    machine = machine or platform.machine()
    agents = {path.parent.name: path for path in sorted(folder.glob("*/iolab-agent"))}
    if machine not in agents:
        if not agents:
            message = "No agent, the program that measures on a host, is built in this checkout."
            hint = "Build it with 'make setup' ('make agents' for all machines), or install "
            raise HostError(message, hint + "iolab from its wheel, which has them.")
        message = f"{who} is {machine}; this iolab has agents for {list_text(agents)} alone."
        hint = "Install iolab from its wheel; in a checkout 'make setup' builds this machine's, "
        raise HostError(message, hint + "'make agents' all.")
    return agents[machine]


def require_plain_words(words: Sequence[str]) -> Sequence[str]:
    """These words; ValueError for one that a shell might change."""
    for word in words:
        if not PLAIN_WORD.fullmatch(word):
            raise ValueError(f"'{word}' is not a plain word")
    return words


class RemoteExit(Record):
    """How a program on the host ended: its exit code (None if unknown) and what it said."""

    exit_code: int | None
    stdout: str = ""
    stderr: bytes = b""


class CommandRunner(Protocol):
    """Runs programs on a host."""

    @property
    def host(self) -> str:
        """The host's name in the study."""

    async def run(
        self,
        *words: str,
        stdin: bytes | None = None,
        limit_s: float = STEP_LIMIT_S,
        does_keep_output: bool = True,
    ) -> RemoteExit:
        """Run one program of plain words, `stdin` on its standard input. Raises HostError."""


class HostFileOperations(Protocol):
    """A host's files, as far as the agent needs them.

    All but `make_private_folder_or_reason` raise HostError.
    """

    @property
    def runner(self) -> CommandRunner:
        """The host's programs."""

    async def make_private_folder_or_reason(self, path: str) -> str:
        """Make a folder of mode 700, if nothing is there; why it could not, "" where it could."""

    async def read_owner_mode_and_kind(self, path: str) -> str:
        """Owner, mode and kind of what lies at a path, links not followed: `0:700:directory`."""

    async def write_new_program(self, path: str, content: bytes) -> None:
        """Write a new file of mode 700."""

    async def rename(self, old: str, new: str) -> None:
        """Put a file in place of another, at once."""

    async def remove(self, path: str) -> None:
        """Remove a file, if it is there."""


async def install_agent(host_files: HostFileOperations, agent: Path | None = None) -> str:
    """The agent's path on the host, put there if it is not there yet. Raises HostError.

    Without an `agent` it is the package's for that host's machine.
    """
    folder = await _make_private_agent_folder(host_files)
    chosen = agent or await _choose_agent_binary(host_files.runner)
    content = await asyncio.to_thread(chosen.read_bytes)
    checksum = hashlib.sha256(content).hexdigest()
    remote = f"{folder}/{checksum[:HASH_SHOWN]}"
    if await _compute_sha256(host_files.runner, remote) == checksum:
        return remote
    # Written aside and renamed: a broken upload or a second session never meets half a file.
    aside = f"{remote}.{os.getpid()}-{os.urandom(4).hex()}"
    try:
        await host_files.write_new_program(aside, content)
        await _require_checksum(host_files.runner, aside, checksum)
        await host_files.rename(aside, remote)
    except HostError:
        await host_files.remove(aside)
        raise
    return remote


async def run_step_and_get_output(
    runner: CommandRunner,
    *words: str,
    stdin: bytes | None = None,
    limit_s: float = STEP_LIMIT_S,
    does_keep_output: bool = True,
) -> str:
    """What a program on the host printed; HostCommandError when it fails."""
    ran = await runner.run(*words, stdin=stdin, limit_s=limit_s, does_keep_output=does_keep_output)
    if ran.exit_code != 0:
        reason = exit_and_stderr_text(ran.exit_code, ran.stderr)
        message = f"'{words[0]}' failed on host '{runner.host}' ({reason})."
        hint = (
            "See that the host's command reaches it without questions, and that the tool is there."
        )
        raise HostCommandError(message, hint)
    return ran.stdout


class CommandHostFileOperations(Record):
    """A host's files through its own `mkdir`, `stat`, `tee`, `chmod`, `mv` and `rm`."""

    runner: CommandRunner

    async def make_private_folder_or_reason(self, path: str) -> str:
        """`mkdir`, which also fails where the folder is there."""
        ran = await self.runner.run("mkdir", "-m", "700", path)
        return "" if ran.exit_code == 0 else exit_and_stderr_text(ran.exit_code, ran.stderr)

    async def read_owner_mode_and_kind(self, path: str) -> str:
        """`stat` without following links."""
        return (await run_step_and_get_output(self.runner, "stat", "-c", "%u:%a:%F", path)).strip()

    async def write_new_program(self, path: str, content: bytes) -> None:
        """`tee`, because it writes what it is given without a shell."""
        stdin, limit_s = content, UPLOAD_LIMIT_S
        await run_step_and_get_output(
            self.runner, "tee", path, stdin=stdin, limit_s=limit_s, does_keep_output=False
        )
        await run_step_and_get_output(self.runner, "chmod", "700", path)

    async def rename(self, old: str, new: str) -> None:
        """`mv` within one folder is a rename."""
        await run_step_and_get_output(self.runner, "mv", "-f", old, new)

    async def remove(self, path: str) -> None:
        """`rm`; a host that is lost keeps the file, which is a few MB in a private folder."""
        try:
            await self.runner.run("rm", "-f", path)
        except HostError:
            return


async def _make_private_agent_folder(host_files: HostFileOperations) -> str:
    """A folder on the host that is ours alone: somebody else's would let them swap the agent."""
    host = host_files.runner.host
    user = (await run_step_and_get_output(host_files.runner, "id", "-u")).strip()
    if not re.fullmatch(r"\d{1,10}", user):
        message = f"Host '{host}' answered 'id -u' with '{excerpt(user.encode(), 80)}'."
        raise HostError(message, _SILENT)
    folder = FOLDER.format(user=user)
    failure = await host_files.make_private_folder_or_reason(folder)
    try:
        described = await host_files.read_owner_mode_and_kind(folder)
    except HostError:
        if not failure:
            raise
        message = f"{folder} cannot be made on host '{host}' ({failure})."
        raise HostError(message, _WRITABLE_TMP) from None
    owner, _, mode = described.partition(":")
    if owner != user or not PRIVATE.fullmatch(mode):
        message = (
            f"{folder} on host '{host}' is not a private directory of user {user} "
            f"('{excerpt(described.encode(), 80)}')."
        )
        raise HostError(message, "Remove it there, and see who made it.")
    return folder


async def _choose_agent_binary(runner: CommandRunner) -> Path:
    """The agent that the host can run; HostError where there is none for its machine."""
    answer = (await run_step_and_get_output(runner, "uname", "-sm")).split()
    if len(answer) != 2:
        message = f"Host '{runner.host}' answered 'uname -sm' with"
        message += f" '{excerpt(' '.join(answer), 80)}'."
        raise HostError(message, _SILENT)
    system, machine = (excerpt(word, 80) for word in answer)
    return agent_binary(machine, system=system, host_name=runner.host)


async def _require_checksum(runner: CommandRunner, path: str, checksum: str) -> None:
    """HostError unless the file there has that checksum."""
    stored = await _compute_sha256(runner, path)
    if stored != checksum:
        message = f"The agent arrived on host '{runner.host}' with checksum {stored or 'unknown'}."
        raise HostError(message, "See that the way to that host passes bytes unchanged.")


async def _compute_sha256(runner: CommandRunner, path: str) -> str | None:
    """The file's sha256 in hex; None where there is no such file."""
    ran = await runner.run("sha256sum", path)
    match = re.match(r"\\?([0-9a-f]{64})\b", ran.stdout)
    return match.group(1) if ran.exit_code == 0 and match else None


class CommandPrefix(Record):
    """A host's name and the words that reach it, started in our environment if none is given."""

    host: str
    prefix_words: tuple[str, ...]
    environment: Mapping[str, str] | None = None

    def argv(self, *words: str) -> list[str]:
        """The prefix with further words; ValueError for a word that a shell might change."""
        return [*self.prefix_words, *require_plain_words(words)]

    async def run(
        self,
        *words: str,
        stdin: bytes | None = None,
        limit_s: float = STEP_LIMIT_S,
        does_keep_output: bool = True,
    ) -> RemoteExit:
        """Exit code, output and standard error of a program on the host, within a deadline."""
        argv = self.argv(*words)
        try:
            code, output, stderr = await run_local_process(
                argv,
                stdin=stdin,
                limit_s=limit_s,
                output_bytes=OUTPUT_LIMIT_BYTES if does_keep_output else 0,
                environment=self.environment,
            )
        except TimeoutError:
            message = f"'{words[0]}' did not end within {limit_s:g} s on host '{self.host}'."
            hint = "See that the host's command reaches it without questions."
            raise HostCommandError(message, hint) from None
        except OSError as error:
            raise cannot_start_error(self.host, argv, error) from None
        return RemoteExit(code, output.decode("utf-8", "replace"), stderr)
