"""The command as a process: two streams, exit codes, pipes that close, completion, terminals."""

from __future__ import annotations

import fcntl
import json
import os
import pty
import re
import struct
import subprocess
import termios
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from iolab.cli.catalogue import bundled
from tests.cli.command_line import LIMIT_S, command, environment, iolab, make_session, unprivileged


@pytest.fixture(scope="module")
def session(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_session(tmp_path_factory.mktemp("sessions") / "S")


def test_results_go_to_stdout_and_errors_to_stderr(session: Path) -> None:
    good = iolab("show", session)
    assert (good.returncode, good.stderr) == (0, "")
    assert "workload-1" not in good.stderr
    bad = iolab("show", session.parent)
    assert (bad.returncode, bad.stdout) == (5, "")
    assert "is not a session" in bad.stderr


def test_with_json_stdout_always_holds_one_document(session: Path) -> None:
    for arguments, code in (
        (("show", session, "--json"), 0),
        (("show", session.parent, "--json"), 5),
        (("show", "--json"), 2),
        (("check", "nothing", "--json"), 2),
    ):
        done = iolab(*arguments)
        assert done.returncode == code
        document = json.loads(done.stdout)
        assert ("error" in document) == (code != 0)
        if code:
            assert document["error"]["exit_code"] == code


def test_a_pipe_that_closes_early_is_no_fault(session: Path) -> None:
    reader, writer = os.pipe()
    process = subprocess.Popen(
        command("export", session, "--format", "json"),
        stdout=writer,
        stderr=subprocess.PIPE,
        env=environment(),
    )
    os.close(writer)
    os.close(reader)
    _, err = process.communicate(timeout=LIMIT_S)
    assert (process.returncode, err) == (0, b"")


@pytest.mark.parametrize(
    "arguments", [("--help",), ("studies",), ("studies", "--json")], ids=" ".join
)
def test_a_full_disk_under_stdout_is_told(arguments: tuple[str, ...]) -> None:
    with Path("/dev/full").open("wb") as full:
        done = subprocess.run(
            command(*arguments),
            stdout=full,
            stderr=subprocess.PIPE,
            env=environment(),
            timeout=LIMIT_S,
            check=False,
        )
    assert done.returncode == 6
    assert b"Standard output cannot be written: No space left" in done.stderr
    assert b"Traceback" not in done.stderr
    assert b"bug" not in done.stderr


def test_characters_that_stdout_cannot_show_end_nothing(session: Path) -> None:
    done = iolab("show", session, env={"PYTHONIOENCODING": "ascii"})
    assert done.returncode == 0
    assert "\\xb5s" in done.stdout


def test_off_a_terminal_nothing_is_coloured_or_wrapped(session: Path) -> None:
    assert "\x1b" not in iolab("show", session, "--details").stdout
    listed = iolab("studies").stdout.splitlines()
    assert len(listed) == 1 + len(bundled())
    assert max(len(line) for line in listed) > 100


@contextmanager
def terminal(columns: int) -> Iterator[tuple[int, int]]:
    controller, end = pty.openpty()
    fcntl.ioctl(end, termios.TIOCSWINSZ, struct.pack("HHHH", 40, columns, 0, 0))
    try:
        yield controller, end
    finally:
        os.close(controller)


def on_terminal(session: Path, columns: int, **env: str) -> str:
    with terminal(columns) as (controller, end):
        process = subprocess.Popen(
            command("show", session), stdin=end, stdout=end, stderr=end, env=environment(env)
        )
        os.close(end)
        shown = b""
        while piece := _read(controller):
            shown += piece
        assert process.wait(LIMIT_S) == 0
    return shown.decode()


def _read(descriptor: int) -> bytes:
    try:
        return os.read(descriptor, 1 << 16)
    except OSError:  # how Linux says that the other end of a terminal has closed
        return b""


def test_on_a_terminal_verdicts_are_coloured_and_lines_fit(session: Path) -> None:
    shown = on_terminal(session, 80, TERM="xterm")
    assert "\x1b[32mvalid" in shown
    bare = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", shown)
    assert max(len(line) for line in bare.splitlines()) <= 80
    plain = on_terminal(session, 80, TERM="xterm", NO_COLOR="1")
    assert re.search(r"\x1b\[[0-9;]*3[0-7]m", plain) is None
    assert "valid" in plain


def test_completion_is_shown_for_the_shell() -> None:
    # The shell is found among the parents of the process, so one stands there.
    script = " ".join([*command("--show-completion"), "; true"])
    done = subprocess.run(
        ["bash", "-c", script],
        env=environment(),
        capture_output=True,
        text=True,
        timeout=LIMIT_S,
        check=False,
    )
    assert done.returncode == 0
    assert "complete" in done.stdout


def test_completion_completes_commands_options_and_studies() -> None:
    def complete(words: str, last: int) -> list[str]:
        env = {"_IOLAB_COMPLETE": "complete_bash", "COMP_WORDS": words, "COMP_CWORD": str(last)}
        return iolab(env=env).stdout.split()

    assert complete("iolab s", 1) == ["show", "serve", "studies"]
    assert complete("iolab run clu", 2) == ["cluster-kpi"]
    assert "--scale" in complete("iolab run cluster-kpi --", 3)
    assert complete("iolab export S --format par", 4) == ["parquet"]


def test_a_place_that_is_closed_is_told(session: Path, tmp_path: Path) -> None:
    closed = tmp_path / "closed"
    closed.mkdir(mode=0o555)
    done = unprivileged("export", session, "--format", "csv", "--out", closed / "results.csv")
    assert (done.returncode, done.stdout) == (6, "")
    assert "cannot be written: Permission denied." in done.stderr
    done = unprivileged("init", closed / "study.toml")
    assert done.returncode == 2
    assert list(closed.iterdir()) == []
