"""The one door that errors leave by: two sentences and all faults on standard error, a code."""

from __future__ import annotations

import errno
import os
import resource
import sys
import traceback
from collections.abc import Callable, Sequence
from typing import Final

import typer

from iolab.cli import open_session
from iolab.cli.output import check_output, result_json, say, settle_streams
from iolab.errors import ExitCode, Fault, HostError, IolabError, UsageError
from iolab.units import format_bytes

DEBUG: Final = "IOLAB_DEBUG"
"""Set to 1, a bug shows its traceback."""

_NO_MEMORY: Final = (
    os.strerror(errno.ENOMEM),
    "can't start new thread",
    "failed to map segment",
    "Out of Memory",
    "std::bad_alloc",
    "error return without exception set",
)

FAULTS_SHOWN: Final = 50
"""Faults of an error that are printed: a fleet that cannot run has one for each of its hosts."""


def guarded(command: Callable[[], object], argv: Sequence[str]) -> int:
    """What the command exits with; every exception is told here and nowhere else.

    With `--json` among the arguments standard output gets the error as one JSON object too, so
    that a program always finds a document there.
    """
    settle_streams()
    open_session.begin()
    as_json = "--json" in argv
    try:
        outcome = command()
    except IolabError as error:
        return _told(error, as_json=as_json)
    except typer.TyperException as error:
        if error.format_message().startswith("Usage:"):
            say(error.format_message())  # no command was given: the help is the answer
            return ExitCode.STUDY
        return _told(_usage(error), as_json=as_json)
    except (KeyboardInterrupt, typer.Abort):
        say("Interrupted.")
        return ExitCode.INTERRUPTED
    except SystemExit as error:
        # typer and rich leave with 1 when the reader of their help has gone; that is no fault.
        return error.code if isinstance(error.code, int) and error.code != 1 else ExitCode.OK
    except Exception as error:
        return _unexpected(error, as_json=as_json)
    return open_session.ended(outcome if isinstance(outcome, int) else ExitCode.OK)


def error_document(error: IolabError) -> dict[str, object]:
    """The error as `--json` prints it."""
    return {
        "format": 1,
        "error": {
            "exit_code": int(error.exit_code),
            "happened": error.happened,
            "do": error.do,
            "faults": [_fault_document(fault) for fault in error.faults],
        },
    }


def _fault_document(fault: Fault) -> dict[str, object]:
    return {
        "happened": fault.happened,
        "do": fault.do,
        "file": fault.file,
        "line": fault.line,
    }


def _told(error: IolabError, *, as_json: bool) -> int:
    from iolab.report.terminal import one_line

    say(f"iolab: {one_line(str(error))}")
    # A single fault may be the error itself.
    faults = [str(fault) for fault in error.faults if str(fault) != str(error)]
    for fault in faults[:FAULTS_SHOWN]:
        say(f"  {one_line(fault)}")
    if len(faults) > FAULTS_SHOWN:
        say(f"  and {len(faults) - FAULTS_SHOWN} more")
    if as_json:
        result_json(error_document(error))
    return error.exit_code


def _usage(error: typer.TyperException) -> IolabError:
    """A fault that typer found in a command line, as one of ours."""
    happened = " ".join(error.format_message().split()).replace("Value error, ", "")
    context = getattr(error, "ctx", None)
    path = context.command_path if context is not None else "iolab"
    if not happened.endswith((".", "?", "!")):
        happened += "."
    return UsageError(happened, f"See '{path} --help'.")


def _unexpected(error: Exception, *, as_json: bool) -> int:
    """Full disks under standard output and a lack of memory surface anywhere; all else is a bug."""
    try:
        check_output()
    except IolabError as fault:
        return _told(fault, as_json=False)
    if _lacks_memory(error):
        return _told(_memory_error(), as_json=as_json)
    return _bug(error, as_json=as_json)


def _lacks_memory(error: BaseException | None) -> bool:
    """Whether memory ran out, as Python, the kernel, the loader or a library tells it."""
    if error is None:
        return False
    if isinstance(error, MemoryError) or getattr(error, "errno", None) == errno.ENOMEM:
        return True
    return any(words in str(error) for words in _NO_MEMORY) or _lacks_memory(error.__cause__)


def _memory_error() -> HostError:
    """With the limit, where one is set."""
    limit = resource.getrlimit(resource.RLIMIT_AS)[0]
    if limit == resource.RLIM_INFINITY:
        return HostError("Memory ran out on this machine.", "Free some, or take a larger machine.")
    return HostError(
        f"Memory ran out within the limit of {format_bytes(limit)} of address space.",
        "Raise it: `ulimit -v unlimited`.",
    )


def _bug(error: Exception, *, as_json: bool) -> int:
    from iolab import __version__
    from iolab.report.terminal import one_line

    place = traceback.extract_tb(error.__traceback__)[-1]
    where = f"{os.path.basename(place.filename)}:{place.lineno}"  # noqa: PTH119 - text, no file
    happened = f"This is a bug in iolab: {type(error).__name__} at {where}: {error}"
    do = (
        f"Please report it to the maintainers with this line, the command and the version "
        f"({__version__}); with {DEBUG}=1 in the environment the traceback is shown too."
    )
    say(f"{one_line(happened)}\n{do}")
    if os.environ.get(DEBUG) == "1":
        traceback.print_exception(error, file=sys.stderr)
    if as_json:
        result_json(error_document(IolabError(one_line(happened), do)))
    return ExitCode.BUG
