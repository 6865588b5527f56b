"""One door for errors: two sentences, every fault, the code; a bug asks to be reported."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

import pytest

from iolab.cli.output import FAULTS_SHOWN, run_with_error_handling
from iolab.errors import (
    EngineError,
    ExitCode,
    Fault,
    HostError,
    Interrupted,
    IolabError,
    ReportError,
    StoreError,
    StudyError,
    UsageError,
)
from tests.processes import run_program

DARWIN = Path(__file__).parents[1] / "fakes" / "darwin"
FAULTS = (Fault("One.", "Do it.", "study.toml", 3), Fault("Two \x1b[31m.", "Undo.", None, None))


def test_of_very_many_faults_some_are_printed_and_the_rest_counted(
    capsys: pytest.CaptureFixture[str],
) -> None:
    faults = [Fault(f"Host {number} is held.", "Wait.") for number in range(FAULTS_SHOWN + 7)]
    run_with_error_handling(
        lambda: raising(HostError("It cannot run.", "Correct this.", faults)), []
    )
    told = capsys.readouterr().err.splitlines()
    assert told[1 + FAULTS_SHOWN - 1].endswith(f"Host {FAULTS_SHOWN - 1} is held. Wait.")
    assert told[-1].startswith("  and 7 more")
    assert len(told) == 1 + FAULTS_SHOWN + 1


def raising(error: BaseException) -> object:
    raise error


@pytest.mark.parametrize(
    "error",
    [
        StudyError(FAULTS),
        *(
            kind("It happened.", "Do this.", FAULTS)
            for kind in (UsageError, HostError, EngineError, StoreError, ReportError, Interrupted)
        ),
    ],
    ids=lambda error: type(error).__name__,
)
def test_every_error_is_told_with_all_faults(
    error: IolabError, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run_with_error_handling(lambda: raising(error), ["show"]) == error.exit_code
    out, err = capsys.readouterr()
    assert out == ""
    assert err.splitlines() == [
        f"iolab: {error.message} {error.hint}",
        "  study.toml:3: One. Do it.",
        "  Two \\x1b[31m. Undo.",
    ]


def test_with_json_the_error_is_a_document_too(capsys: pytest.CaptureFixture[str]) -> None:
    assert (
        run_with_error_handling(lambda: raising(StudyError(FAULTS)), ["check", "x", "--json"])
        == ExitCode.STUDY
    )
    out, err = capsys.readouterr()
    assert json.loads(out) == {
        "format": 1,
        "error": {
            "exit_code": 2,
            "message": "The study has 2 faults.",
            "hint": "Correct it and run again.",
            "faults": [
                {"message": "One.", "hint": "Do it.", "file": "study.toml", "line": 3},
                {"message": "Two \x1b[31m.", "hint": "Undo.", "file": None, "line": None},
            ],
        },
    }
    assert "\x1b" not in out
    assert "One." in err


def test_a_bug_says_so_and_shows_its_traceback_only_when_asked(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert (
        run_with_error_handling(lambda: raising(ZeroDivisionError("of \x1bx")), []) == ExitCode.BUG
    )
    out, err = capsys.readouterr()
    assert out == ""
    assert "ZeroDivisionError at test_error_messages.py:" in err
    assert "of \\x1bx" in err
    assert "Traceback" not in err
    monkeypatch.setenv("IOLAB_DEBUG", "1")
    assert run_with_error_handling(lambda: raising(ZeroDivisionError("x")), []) == ExitCode.BUG
    assert "Traceback" in capsys.readouterr().err


def test_a_library_that_is_broken_on_a_mac_is_a_bug_as_any_other() -> None:
    script = (
        "import sys; from iolab.cli.output import run_with_error_handling\n"
        "def load(): raise ImportError('no suitable image', path=sys.executable)\n"
        "sys.exit(run_with_error_handling(load, []))"
    )
    done = run_program(
        [sys.executable, "-c", script], env={**os.environ, "PYTHONPATH": str(DARWIN)}
    )
    assert done.returncode == ExitCode.BUG
    assert "ImportError" in done.stderr
    assert "noexec" not in done.stderr


def hiding(error: BaseException, *, all_of_it: bool) -> object:
    """Another error while that one is handled, as libraries raise it; maybe `from None`."""
    try:
        return raising(error)
    except BaseException:
        if all_of_it:
            raise ZeroDivisionError from None
        raise ZeroDivisionError  # noqa: B904 - what is meant


def test_what_lies_below_another_error_is_told_unless_it_is_suppressed(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert (
        run_with_error_handling(lambda: hiding(MemoryError(), all_of_it=False), []) == ExitCode.HOST
    )
    assert "ZeroDivisionError" not in capsys.readouterr().err
    assert (
        run_with_error_handling(lambda: hiding(MemoryError(), all_of_it=True), []) == ExitCode.BUG
    )


def test_an_interrupt_is_quiet_and_has_its_code(capsys: pytest.CaptureFixture[str]) -> None:
    assert run_with_error_handling(lambda: raising(KeyboardInterrupt()), []) == ExitCode.INTERRUPTED
    assert capsys.readouterr() == ("", "Interrupted.\n")


def test_a_command_exits_with_what_it_says() -> None:
    assert run_with_error_handling(lambda: None, []) == ExitCode.OK
    assert run_with_error_handling(lambda: 4, []) == ExitCode.ENGINE
    assert run_with_error_handling(lambda: sys.exit(2), []) == ExitCode.STUDY
