"""The command as a process: exit codes, pipes that close, signals, completion, terminals.

And that a call in the test's own process, which most other tests make, says the same and leaves
nothing behind.
"""

from __future__ import annotations

import fcntl
import gc
import json
import logging
import os
import pty
import re
import signal
import struct
import subprocess
import sys
import termios
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.cli.command_line import LIMIT_S, command, environment, iolab, unprivileged
from tests.cli.in_process import call
from tests.processes import run_program

MINE = """
import os, signal, sys
from iolab.__main__ import main
from iolab.cli.commands import COMMANDS, CliCommand as Command, CommandGroup
divide = lambda: 1 / 0
interrupt = lambda: os.kill(os.getpid(), signal.SIGINT)
fill = lambda: bytearray(1 << 30)
thread = lambda: __import__("threading").Thread(target=int).start()
add = lambda name: COMMANDS.update({name: Command(name, f"__main__:{name}", "", CommandGroup.READ)})
def finalize():
    import time, weakref
    class Held: pass
    held = Held()
    dropped = weakref.ref(held, lambda _: interrupt() or time.sleep(0))
    del held
    time.sleep(60)
for name in ("divide", "interrupt", "fill", "thread", "finalize"):
    add(name)
main()
"""
"""The command with more: a bug, one that Ctrl-C stops, one that takes a GiB, one with a thread."""


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (("show", "S", "--json"), 0),
        (("show", ".", "--json"), 5),
        (("check", "nothing", "--json"), 2),
        (("export", "S", "-f", "csv"), 0),
        ((), 2),
    ],
)
def test_a_process_and_a_call_say_the_same(
    session: Path, arguments: tuple[str, ...], code: int
) -> None:
    process = iolab(*arguments, cwd=session.parent)
    called = call(*arguments, cwd=session.parent)
    assert (process.returncode, process.stdout) == (code, called.stdout)
    assert process.stderr.splitlines() == called.stderr.splitlines()
    assert called.returncode == code
    if "--json" in arguments:
        document = json.loads(process.stdout)
        assert document.get("error", {}).get("exit_code", 0) == code
    assert bool(process.stderr) == (code != 0)


def test_a_call_leaves_the_process_as_it_was(session: Path, tmp_path: Path) -> None:
    def state() -> tuple[object, ...]:
        mask = os.umask(0o22)
        os.umask(mask)
        signals = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGPIPE)
        return (
            *(Path.cwd(), dict(os.environ), list(sys.argv), mask, gc.get_threshold()),
            *(sys.stdout, sys.stderr, os.fstat(1).st_ino, os.fstat(2).st_ino),
            *(threading.active_count(), logging.root.handlers[:], logging.root.level),
            *(signal.getsignal(number) for number in signals),
            len(list(Path("/proc/self/fd").iterdir())),
        )

    call("show", session)  # what is loaded once stays
    before = state()
    for arguments in (("show", str(session)), ("show", "x"), ("--help",), ("show",), ("studies",)):
        call(*arguments, cwd=tmp_path, env={"COLUMNS": "40", "IOLAB_DEBUG": "1"})
        assert state() == before
    assert call("show", session).stdout == call("show", session).stdout


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


def test_streams_that_are_closed_are_no_fault(session: Path, tmp_path: Path) -> None:
    out = tmp_path / "points.csv"
    arguments = ("export", str(session), "--format", "csv", "--out", str(out))
    closed = ["sh", "-c", 'exec "$@" <&- >&-', "sh", *command(*arguments)]
    done = subprocess.run(closed, capture_output=True, env=environment(), timeout=LIMIT_S)
    assert (done.returncode, b"Traceback" in done.stderr) == (0, False)
    assert out.read_text("utf-8") == iolab("export", session, "--format", "csv").stdout


def test_a_width_of_nothing_is_no_width(session: Path) -> None:
    assert call("show", session, env={"COLUMNS": "0"}).stdout == call("show", session).stdout


def test_a_lack_of_memory_is_told_with_its_limit() -> None:
    limited = "import resource; resource.setrlimit(resource.RLIMIT_AS, (1 << 30, 1 << 30))\n" + MINE
    done = run_program([sys.executable, "-c", limited, "fill"], env=environment(), timeout=LIMIT_S)
    assert done.returncode == 3
    assert "1 GiB" in done.stderr
    assert "bug" not in done.stderr


@pytest.mark.parametrize("limit_kib", [300_000, 1_000_000])
def test_load_is_not_begun_in_too_little_address_space(tmp_path: Path, limit_kib: int) -> None:
    words = command("bench", "--runtime", "1s", "--size", "1m", "--out", "s", ".")
    done = run_program(
        ["sh", "-c", f'ulimit -v {limit_kib}; exec "$@"', "sh", *words],
        cwd=tmp_path,
        env=environment(),
        timeout=LIMIT_S,
    )
    assert done.returncode == 3
    assert "ulimit -v" in done.stderr
    assert list(tmp_path.iterdir()) == []


ENDED = """
import os, resource, signal, sys
from iolab.cli.memory_limit import run_command_in_child_if_memory_limited
resource.setrlimit(resource.RLIMIT_AS, (1 << 40, 1 << 40))
ends = {
    "abort": lambda argv: os.abort(),
    "fault": lambda argv: os.kill(os.getpid(), signal.SIGSEGV),
    "leave": lambda argv: os._exit(1),
    "verdict": lambda argv: 1,
    "term": lambda argv: os.kill(os.getpid(), signal.SIGTERM),
}
resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
sys.exit(run_command_in_child_if_memory_limited(ends[sys.argv[1]], ["show"]))
"""
"""A command under a limit that ends as libraries do for want of memory, or otherwise."""


@pytest.mark.parametrize(
    ("end", "code", "is_told"),
    [
        ("abort", 3, True),
        ("fault", 3, True),
        ("leave", 3, True),
        ("verdict", 1, False),
        ("term", -signal.SIGTERM, False),
    ],
)
def test_a_library_that_ends_the_process_for_want_of_memory_is_told(
    end: str, code: int, *, is_told: bool
) -> None:
    done = run_program([sys.executable, "-c", ENDED, end], env=environment(), timeout=LIMIT_S)
    assert done.returncode == code, done.stderr
    assert ("Memory ran out within the limit of 1 TiB" in done.stderr) is is_told


PANIC = """
import resource, sys, typst
from iolab.cli.memory_limit import run_command_in_child_if_memory_limited
resource.setrlimit(resource.RLIMIT_AS, (1 << 40, 1 << 40))
resource.setrlimit(resource.RLIMIT_CORE, (0, 0))

def compile_without_memory(argv):
    used_bytes = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (used_bytes + (3 << 20),) * 2)
    typst.compile(b"text")

sys.exit(run_command_in_child_if_memory_limited(compile_without_memory, ["show"]))
"""
"""A command in which a Rust library panics, since it gets no memory for its threads."""


def test_a_rust_panic_for_want_of_memory_prints_no_backtrace() -> None:
    """Printing one, the library waited for itself for ever in some 4 of 100 tries."""
    done = run_program(
        [sys.executable, "-c", PANIC],
        env=environment({"RUST_BACKTRACE": "1", "RUST_LIB_BACKTRACE": "1"}),
        timeout=LIMIT_S,
    )
    assert done.returncode == 3, done.stderr
    assert "panicked" in done.stderr
    assert "stack backtrace" not in done.stderr


@pytest.mark.parametrize("mebibytes", [130, 280])
@pytest.mark.parametrize(
    "words", ["compare {0} {0}", "export {0} -f parquet -o o.parquet", "report {0} --html o.html"]
)
def test_a_command_under_a_limit_of_memory_ends_well_or_in_one_sentence(
    session: Path, tmp_path: Path, words: str, mebibytes: int
) -> None:
    limits = [f"--as={mebibytes << 20}", "--core=0"]
    done = run_program(
        ["prlimit", *limits, *command(*words.format(session).split())],
        cwd=tmp_path,
        env=environment(),
        timeout=LIMIT_S,
    )
    assert done.returncode in {0, 3}, done.stderr
    assert ("Memory ran out" in done.stderr) is (done.returncode == 3)
    assert "Traceback" not in done.stderr


def test_a_lack_of_processes_is_told_with_its_limit() -> None:
    # No limit holds root, with whose rights the libraries may have to be read.
    other = ("setpriv", "--ruid", "65534", "--bounding-set=-sys_resource,-sys_admin", "--")
    as_other = other if os.geteuid() == 0 else ()
    done = run_program(
        [*as_other, "prlimit", "--nproc=1:1", sys.executable, "-c", MINE, "thread"],
        env=environment(),
        timeout=LIMIT_S,
    )
    assert done.returncode == 3, done.stderr
    assert "ulimit -u" in done.stderr
    assert "emory" not in done.stderr


def test_an_interrupt_while_modules_are_read_is_quiet(tmp_path: Path) -> None:
    """Also where a shell had the signal ignored, as it does for what it runs in the background."""
    (tmp_path / "typer.py").write_text("import os, signal; os.kill(os.getpid(), signal.SIGINT)")
    words = ["sh", "-c", 'trap "" INT; exec "$@"', "sh", *command("studies")]
    done = subprocess.run(
        words,
        env=environment({"PYTHONPATH": str(tmp_path)}),
        capture_output=True,
        timeout=LIMIT_S,
        check=False,
    )
    assert (done.returncode, done.stdout, done.stderr) == (-signal.SIGINT, b"", b"")


def test_an_interrupt_that_falls_into_a_finalizer_is_not_lost() -> None:
    """Python drops exceptions there, and with them Ctrl-C."""
    done = run_program([sys.executable, "-c", MINE, "finalize"], env=environment(), timeout=LIMIT_S)
    assert (done.returncode, done.stdout) == (130, "")
    assert "Traceback" not in done.stderr


def test_an_interrupt_ends_the_parsing_of_a_study(tmp_path: Path) -> None:
    """Where the shell had it ignored, too."""
    study = tmp_path / "study.toml"
    study.write_text("format = 1\n", encoding="utf-8")
    parses = MINE.replace(
        "main()",
        "import iolab.core.toml\nparse = iolab.core.toml.tomllib.loads\n"
        "def loads(*words, **more):\n"
        "    os.kill(os.getpid(), signal.SIGINT)\n"
        "    return parse(*words, **more)\n"
        "iolab.core.toml.tomllib.loads = loads\nmain()",
    )
    words = [sys.executable, "-c", parses, "check", str(study)]
    done = run_program(
        ["sh", "-c", 'trap "" INT; exec "$@"', "sh", *words], env=environment(), timeout=LIMIT_S
    )
    assert (done.returncode, done.stdout) == (130, "")
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize("arguments", [("--help",), ("studies", "--json")], ids=" ".join)
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
    assert b"No space left" in done.stderr
    assert b"Traceback" not in done.stderr
    assert b"bug" not in done.stderr


def test_memory_that_runs_out_while_an_error_is_told_is_told() -> None:
    """By a limit that leaves what is loaded, and nothing more."""
    limited = MINE.replace(
        "main()",
        "import resource\n"
        "def starve():\n"
        "    resource.setrlimit(resource.RLIMIT_AS, (1, resource.RLIM_INFINITY))\n"
        "    return [bytearray(1 << 20) for _ in range(1000)]\n"
        "add('starve')\nmain()",
    )
    done = run_program(
        [sys.executable, "-c", limited, "starve"], env=environment(), timeout=LIMIT_S
    )
    assert (done.returncode, done.stdout) == (3, "")
    assert "Memory ran out" in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize(
    ("name", "code", "message"), [("divide", 70, "ZeroDivisionError"), ("interrupt", 130, "")]
)
def test_a_bug_and_an_interrupt_have_their_exit_codes(name: str, code: int, message: str) -> None:
    done = run_program([sys.executable, "-c", MINE, name], env=environment(), timeout=LIMIT_S)
    assert (done.returncode, done.stdout) == (code, "")
    assert message in done.stderr
    assert "Traceback" not in done.stderr


def test_characters_that_stdout_cannot_show_end_nothing(session: Path) -> None:
    done = iolab("show", session, env={"PYTHONIOENCODING": "ascii"})
    assert done.returncode == 0
    assert " us" in done.stdout
    assert "\\" not in done.stdout


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
            command("show", session),
            stdin=end,
            stdout=end,
            stderr=end,
            env={**environment(env), "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"},
        )
        os.close(end)
        shown = b""
        while piece := _read(controller):
            shown += piece
        assert process.wait(LIMIT_S) == 0
    # A machine that is busy enough makes any command say that it is at work.
    return shown.decode().replace("Working: this takes a while.\r\n", "")


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


def test_off_a_terminal_nothing_is_coloured_or_wrapped(session: Path) -> None:
    assert "\x1b" not in call("show", session, "--details").stdout
    listed = call("studies").stdout.splitlines()
    assert max(len(line) for line in listed) > 100


def test_completion_is_shown_for_the_shell() -> None:
    # The shell is found among the parents of the process, so one stands there.
    script = " ".join([*command("--show-completion"), "; true"])
    done = run_program(["bash", "-c", script], env=environment(), timeout=LIMIT_S)
    assert done.returncode == 0
    assert "complete" in done.stdout


@pytest.mark.parametrize(
    ("words", "found"),
    [
        ("iolab s", ["studies", "show", "serve"]),
        ("iolab run clu", ["cluster-kpi"]),
        ("iolab export S --format par", ["parquet"]),
        ("iolab explain start-s", ["start-skew"]),
        ("iolab reference clu", ["cluster-kpi"]),
        ("iolab choose ssd", ["ssd-cluster"]),
        ("iolab run S --set method.warm", ["method.warmup="]),
        ("iolab run S --set workload.*.vms", ["workload.*.vms_per_node="]),
    ],
)
def test_completion_completes_commands_options_and_studies(words: str, found: list[str]) -> None:
    last = str(len(words.split()) - 1)
    env = {"_IOLAB_COMPLETE": "complete_bash", "COMP_WORDS": words, "COMP_CWORD": last}
    assert call(env=env).stdout.split() == found


def test_a_place_that_is_closed_is_told(session: Path, tmp_path: Path) -> None:
    closed = tmp_path / "closed"
    closed.mkdir(mode=0o555)
    done = unprivileged("export", session, "--format", "csv", "--out", closed / "results.csv")
    assert (done.returncode, done.stdout) == (6, "")
    assert "Permission denied" in done.stderr
    assert list(closed.iterdir()) == []


SLOW = """
import os, sys, time
from iolab.cli.app import notice_for_slow_command
with notice_for_slow_command(sys.argv[1:], silent_s=0.01):
    time.sleep(0.5)
"""
"""A command that shows nothing for longer than it may."""


@pytest.mark.parametrize(("command_name", "is_told"), [("plan", True), ("run", False)])
def test_a_command_that_is_silent_for_long_says_that_it_works(
    command_name: str, *, is_told: bool
) -> None:
    with terminal(80) as (controller, end):
        subprocess.run(
            [sys.executable, "-c", SLOW, command_name],
            env=environment(),
            stderr=end,
            timeout=LIMIT_S,
            check=True,
        )
        os.write(end, b"end")
        assert (b"Working" in os.read(controller, 4096)) is is_told
