"""Two channels, results on standard output, talk on standard error, and the one door for errors.

Nothing else in the command line writes to either, so a pipe gets results alone, and a reader that
has seen enough (`iolab show S | head`) ends nothing but the output. Foreign text is made harmless.
An error is two sentences and all faults on standard error, and a code; so is damage that a session
is read without.
"""

from __future__ import annotations

import codecs
import errno
import json
import os
import resource
import shlex
import shutil
import subprocess
import sys
import textwrap
import traceback
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from io import StringIO
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Final, TextIO

import msgspec
import typer
from msgspec import to_builtins
from msgspec.structs import replace

from iolab.core.leftover_texts import collect_leftover_texts
from iolab.core.regular_file import file_type_name
from iolab.errors import ExitCode, HostError, IolabError, ReportError, StoreError, UsageError
from iolab.text import one_line, quote_value
from iolab.units import format_bytes
from iolab.version import __version__

if TYPE_CHECKING:
    from rich.console import Console, RenderableType

    from iolab.cli.options import OutputFormat
    from iolab.store.reader import SessionReader
    from iolab.store.verify import Damage


PIPE_WIDTH: Final = 1000
"""Off a terminal nothing is wrapped: a program, a pager or a file has its own idea of width."""


_PAGES: Final[list[list[str]]] = []
"""The results so far of a command whose output may go through a pager; empty where it may not."""

_TRANSIENT: Final[list[str]] = []
"""The message on the terminal's last line that the next output overwrites."""

PAGER: Final = ("less", "-FRX")
"""Shows what fits on the screen at once, keeps colours, and leaves the text where it was."""

_AS_JSON_ESCAPES: Final = "iolab.json"

_AS_PLAIN_CHARACTERS: Final = "iolab.plain"
_PLAIN_CHARACTERS: Final[Mapping[str, str]] = (
    dict.fromkeys("–—−▼─▂", "-")
    | dict.fromkeys("✗✕×", "x")
    | dict.fromkeys("•●◆▅", "*")
    | dict.fromkeys("✓▲▃", "+")
    | dict.fromkeys("━▄", "=")
    | dict.fromkeys("“”", '"')
    | dict.fromkeys("‘’", "'")
    | {"±": "+-", "µ": "u", "≈": "~", "≤": "<=", "≥": ">=", "…": "...", "·": "-", "→": "->"}
    | {"█": "@", "▇": "%", "▆": "#", "▁": "_"}
)
"""What our own texts have beyond ASCII, and what stands for it where an encoding lacks it."""

WRITABLE_PLACE_HINT: Final = "Give a place that may be written to and has room."

DAMAGED_SHOWN_MAX: Final = 50
"""Damaged runs that are named one by one: a lost disk may take all of a session's."""

_LEFT_OUT_SESSIONS: Final[list[Path]] = []
"""The session of each damage that this command line met."""

DEBUG: Final = "IOLAB_DEBUG"
"""Set to 1, a bug shows its traceback."""

_NO_MEMORY: Final = (
    os.strerror(errno.ENOMEM),
    "failed to map segment",
    "Out of Memory",
    "std::bad_alloc",
    "error return without exception set",
)

FAULTS_SHOWN: Final = 50
"""Faults of an error that are printed: a fleet that cannot run has one for each of its hosts."""

_NO_MEMORY_TO_TELL: Final = (
    b"iolab: Memory ran out on this machine. "
    b"Free some, or raise the limit: `ulimit -v unlimited`.\n"
)

_CLEAN_ENDS: Final = (ExitCode.OK, ExitCode.VERDICT)
"""What a command ends with that left nothing on hosts."""

_ENVIRONMENT: Final[dict[int, tuple[type[IolabError], str]]] = {
    errno.ENAMETOOLONG: (UsageError, "Give a shorter name."),
    errno.ELOOP: (UsageError, "Give a path without so many symbolic links."),
    errno.EMFILE: (HostError, "Allow more open files: `ulimit -n 4096`."),
    errno.ENFILE: (HostError, "End other programs, or raise fs.file-max."),
    errno.ENOSPC: (StoreError, "Free some space, then run the command again."),
    errno.EDQUOT: (StoreError, "Free some space, then run the command again."),
    errno.EFBIG: (StoreError, "Allow larger files: `ulimit -f unlimited`."),
    errno.EROFS: (StoreError, "Give a place that may be written to."),
    errno.EIO: (StoreError, "Look at the kernel's log: its device or file system fails."),
    errno.ESTALE: (StoreError, "Mount its file system again."),
}
"""Errors of the kernel that are never a bug of ours, wherever they come up, and the remedy."""

_NOEXEC: Final[int] = getattr(os, "ST_NOEXEC", 0)
"""Of Linux alone: macOS does not tell Python of such mounts."""

_NO_THREAD: Final = ("can't start new thread", "ThreadPoolBuildError")
"""As Python and a library of Rust say it, for a lack of memory as well as of processes."""


@contextmanager
def page_output(pager: str | None, *, is_wanted: bool) -> Iterator[None]:
    """Show the results printed within by a pager where they are longer than the terminal.

    `pager` is its command line in place of $PAGER and less; an empty one is none.
    """
    program = shlex.split(os.environ.get("PAGER", "") if pager is None else pager) or list(PAGER)
    on_terminal = sys.stdout.isatty() and sys.stdin.isatty()
    if not is_wanted or not on_terminal or pager == "" or shutil.which(program[0]) is None:
        yield
        return
    lines: list[str] = []
    _PAGES.append(lines)
    try:
        yield
    finally:
        _PAGES.remove(lines)
        text = "".join(lines)
        if text.count("\n") <= (result_lines_max() or 0):
            _write(sys.stdout, text)
        else:
            _show_paged(program, text)


def _show_paged(program: Sequence[str], text: str) -> None:
    """Give the text to a pager; what it cannot show is written as it is."""
    _erase_transient_message()
    try:
        with suppress(KeyboardInterrupt):
            subprocess.run(program, input=text, text=True, check=False, errors="replace")
    except OSError:
        _write(sys.stdout, text)


def _write_result_or_collect_for_pager(text: str) -> None:
    if _PAGES:
        _PAGES[-1].append(text)
    else:
        _write(sys.stdout, text)


def print_result(text: str) -> None:
    """Print a result; text of hosts and files in it must have been cleaned."""
    _write_result_or_collect_for_pager(text + "\n")


def print_json(document: object) -> None:
    """Print a document as JSON."""
    _write_result_or_collect_for_pager(json_text(document))


def json_text(document: object) -> str:
    """A document as JSON, in ASCII, so that no terminal is moved by what it holds."""
    try:
        text = msgspec.json.format(msgspec.json.encode(document)).decode()
    except UnicodeEncodeError:  # as of text that is not Unicode
        text = json.dumps(document, indent=2, allow_nan=False)
    text = text.encode("ascii", _AS_JSON_ESCAPES).decode("ascii")
    return text.replace("\x7f", "\\u007f") + "\n"


def _json_escape_handler(error: UnicodeError) -> tuple[str, int]:
    """What JSON has for text that is not ASCII, as an error handler of encodings.

    A pattern would take ten times as long to find it in megabytes of numbers.
    """
    if not isinstance(error, UnicodeEncodeError):
        raise error
    return json.dumps(error.object[error.start : error.end])[1:-1], error.end


codecs.register_error(_AS_JSON_ESCAPES, _json_escape_handler)


def _plain_character_handler(error: UnicodeError) -> tuple[str, int]:
    """What stands for a character that the encoding of a terminal or file lacks."""
    if not isinstance(error, UnicodeEncodeError):
        raise error
    characters = error.object[error.start : error.end]
    plain = (
        _PLAIN_CHARACTERS.get(character) or character.encode("ascii", "backslashreplace").decode()
        for character in characters
    )
    return "".join(plain), error.end


codecs.register_error(_AS_PLAIN_CHARACTERS, _plain_character_handler)


def print_raw(text: str) -> None:
    """Print a result exactly as it is: a file that goes through a pipe."""
    _write(sys.stdout, text)


def print_document(
    output_format: OutputFormat,
    document: Mapping[str, object],
    rows: Iterable[Mapping[str, object]],
) -> None:
    """Print a document as JSON, or its `rows` as CSV or Markdown, a column for each of their keys.

    What lies deeper in a row is named with dots.
    """
    from iolab.report.table import records_csv, records_markdown

    match output_format.value:
        case "csv":
            _write_result_or_collect_for_pager(records_csv(rows))
        case "markdown":
            _write_result_or_collect_for_pager(records_markdown(rows))
        case _:
            print_json(document)


def print_renderables(*parts: RenderableType) -> None:
    """Print tables and text as wide as the terminal, or unwrapped into a pipe."""
    print_lines(rendered_lines(*parts))


def rendered_lines(*parts: RenderableType) -> list[str]:
    """The lines of tables and text, with their colours on a terminal."""
    from rich.console import Group

    drawn = StringIO()
    screen = create_console(sys.stdout, drawn)
    for part in parts:
        screen.print(Group(part), crop=False)  # lone texts would be joined, and lose how they wrap
    return [line.rstrip() for line in drawn.getvalue().splitlines()]


def print_lines(lines: Iterable[str]) -> None:
    """Print lines that were drawn."""
    _write_result_or_collect_for_pager("".join(f"{line}\n" for line in lines))


def result_lines_max() -> int | None:
    """How many lines a result may have beside the next prompt; None off a terminal."""
    return shutil.get_terminal_size().lines - 1 if sys.stdout.isatty() else None


def ask_for_removal() -> bool:
    """Ask on a terminal whether what was listed is removed; no where nobody can answer."""
    if not (sys.stdin.isatty() and sys.stderr.isatty()):
        return False
    _write(sys.stderr, "Remove all of it? [y/N] ")
    try:
        answer = sys.stdin.readline()
    except KeyboardInterrupt:
        _write(sys.stderr, "\n")  # What is told of it has a line of its own.
        raise
    return answer.strip().lower() in ("y", "yes")


def print_message(text: str) -> None:
    """Tell the user something, on standard error."""
    _write(sys.stderr, text + "\n")


def print_transient_message(text: str) -> None:
    """Tell the user something on a terminal until the next output overwrites it."""
    _write(sys.stderr, f"{text}\r")
    _TRANSIENT.append(text)


def _erase_transient_message() -> None:
    if _TRANSIENT:
        blanks = " " * len(_TRANSIENT.pop())
        _write(sys.stderr, f"{blanks}\r")


def wrap_for_terminal(text: str, indent: str = "") -> str:
    """The text in lines that a terminal on standard error has room for, all but the first indented.

    Off a terminal it stays one line.
    """
    if not sys.stderr.isatty():
        return f"{indent}{text}"
    return textwrap.fill(
        text,
        create_console(sys.stderr).width,
        initial_indent=indent,
        subsequent_indent=f"{indent}  ",
        break_long_words=False,
        break_on_hyphens=False,
    )


def create_console(stream: TextIO, canvas: TextIO | None = None) -> Console:
    """A console that takes nothing in a text for markup, a link or a smiley.

    It draws for `stream`, and on `canvas` instead where one is given.
    """
    from rich.console import Console  # a report prints one line, without it

    on_terminal = stream.isatty()
    return Console(
        file=canvas or stream,
        force_terminal=on_terminal,
        markup=False,
        emoji=False,
        highlight=False,
        width=None if on_terminal or os.environ.get("COLUMNS") else PIPE_WIDTH,
    )


def output_width() -> int:
    """How many columns standard output has."""
    return create_console(sys.stdout).width


def harden_streams() -> None:
    """Let no stream that is closed, no width of nothing and no character end the program."""
    for number, name in enumerate(("stdin", "stdout", "stderr")):
        if getattr(sys, name) is None:
            setattr(sys, name, _open_null_stream_at(number))
    for name in ("COLUMNS", "LINES"):
        if os.environ.get(name, "").strip("0") == "":
            os.environ.pop(name, None)  # rich would draw nothing
    for stream in (sys.stdout, sys.stderr):
        reconfigure = getattr(stream, "reconfigure", None)
        if reconfigure is not None:
            reconfigure(errors=_AS_PLAIN_CHARACTERS)


def _write(stream: TextIO, text: str) -> None:
    """Write at once; when the reader has gone, the rest of the output goes nowhere.

    ReportError when results cannot be written for another reason; talk is then lost in silence,
    for there is no place left to complain.
    """
    _erase_transient_message()
    try:
        stream.write(text)
        stream.flush()
    except OSError as error:
        _redirect_to_null(stream)
        if stream is sys.stdout and not isinstance(error, BrokenPipeError):
            raise ReportError(
                f"Standard output cannot be written: {error.strerror}.",
                "Give it a place that has room.",
            ) from error


def require_flushed_output() -> None:
    """ReportError when standard output still holds what it could not get rid of."""
    _write(sys.stdout, "")


def _open_null_stream_at(descriptor: int) -> TextIO:
    """A stream in place of one that was closed, so that no file gets its number and our output."""
    nowhere = os.open(os.devnull, os.O_RDWR)
    os.dup2(nowhere, descriptor)
    if nowhere != descriptor:
        os.close(nowhere)
    return open(descriptor, "w" if descriptor else "r", encoding="utf-8", closefd=False)


def _redirect_to_null(stream: TextIO) -> None:
    """Let what is still in the stream's buffer, and all that comes, be dropped."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, stream.fileno())
    os.close(nowhere)


def require_valid_output_path(path: Path) -> None:
    """UsageError for an option, `-`, a session's own file, or a place in a scratch folder."""
    from iolab.core.host import SCRATCH_PREFIX
    from iolab.store.layout import session_directory_of_file

    if str(path).startswith("-"):  # standard output elsewhere, or the option that follows
        raise UsageError(
            f"{quote_value(str(path))} is not the name of a file.",
            "Give one after the option for it.",
        )
    real = Path(os.path.realpath(path))
    session = session_directory_of_file(real)
    if session is not None:
        raise UsageError(
            f"{quote_value(str(path))} is a file of the session '{session.name}'.",
            "Give another path: what a session measured is never written over.",
        )
    for folder in (real, path):
        inside = next((part for part in folder.parts if part.startswith(SCRATCH_PREFIX)), None)
        if inside is not None:
            raise UsageError(
                f"{quote_value(str(path))} lies in the scratch folder '{inside}' of a target.",
                "Give a path outside of it: sessions remove what is theirs there, and do not start "
                "where there is anything else.",
            )


def require_directory_or_nothing(path: Path) -> None:
    """UsageError where something else than a directory is there, before anything is done."""
    if path.exists() and not path.is_dir():
        raise UsageError(
            f"{quote_value(str(path))} is {file_type_name(path.stat().st_mode)}, and no directory.",
            "Give a directory that is new or empty.",
        )


def require_no_directory(path: Path) -> None:
    """ReportError where a file is to be written and a directory is there."""
    if path.is_dir():
        raise ReportError(f"{quote_value(str(path))} is a directory.", "Give the name of a file.")


def make_directory_if_missing(path: Path) -> None:
    """The directory, also where it is there; ReportError when it cannot be made."""
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise _unwritable_error(ReportError, path, error) from error


def write_new_file(path: Path, text: str) -> None:
    """Write a file that is not there yet; UsageError when it is, or cannot be written."""
    require_valid_output_path(path)
    is_new = False
    try:
        with path.open("x", encoding="utf-8") as file:
            is_new = True
            file.write(text)
    except FileExistsError as error:
        raise UsageError(
            f"{quote_value(str(path))} is already there.", "Give another name; nothing was changed."
        ) from error
    except OSError as error:
        if is_new:
            path.unlink(missing_ok=True)  # a file that holds a part of it is worse than none
        raise _unwritable_error(UsageError, path, error) from error


def replace_files_atomically(files: Mapping[Path, str | bytes]) -> None:
    """Put each content where its path names: all of them, or none; ReportError when that fails.

    A brief stands beside an appendix of the same sessions, also where the disk is full.
    """
    from iolab.store.durable import draft_then_replace, sync_to_disk

    path = Path()
    try:
        with ExitStack() as drafts:
            for path, content in files.items():
                draft = drafts.enter_context(draft_then_replace(path))
                draft.write_bytes(content.encode() if isinstance(content, str) else content)
                sync_to_disk(draft)  # a full disk may show here first, when nothing is replaced yet
    except OSError as error:
        raise _unwritable_error(ReportError, path, error) from error


def _unwritable_error(error_type: type[IolabError], path: Path, error: OSError) -> IolabError:

    return error_type(
        f"{quote_value(str(path))} cannot be written: {error.strerror}.",
        WRITABLE_PLACE_HINT,
    )


def open_session(directory: Path) -> SessionReader:
    """A reader of the session, which tells what it leaves out; StoreError if it is none."""
    import iolab.registry  # noqa: F401 - it may hold parts of every kind
    from iolab.store.reader import SessionReader

    def report_damage(damage: Damage) -> None:
        note_and_print_left_out_session(directory, damage, is_imported=_is_imported(reader))

    reader = SessionReader(directory, report_damage)
    reader.damage_of_documents_except_plan()
    return reader


def _is_imported(reader: SessionReader) -> bool:
    """Whether another tool measured the session, as far as its study can be read."""
    with suppress(IolabError):
        return not all(workload.job.is_measured_by_iolab for workload in reader.study.workloads)
    return False


def note_and_print_left_out_session(
    directory: Path, damage: Damage, *, is_imported: bool = False
) -> None:
    """Tell what is damaged, and what to do; what was `is_imported` cannot be measured again."""
    from iolab.cli.invocation import quoted_iolab_command
    from iolab.store.verify import RESTORE_HINT, RESTORE_IMPORT_HINT

    if damage.hint == RESTORE_HINT:
        again = quoted_iolab_command("resume", str(directory))
        hint = RESTORE_HINT.replace("iolab resume", again)
        damage = replace(damage, hint=RESTORE_IMPORT_HINT if is_imported else hint)
    _LEFT_OUT_SESSIONS.append(directory)
    if len(_LEFT_OUT_SESSIONS) <= DAMAGED_SHOWN_MAX:
        print_message(one_line(f"{directory}: damaged, left out: {damage}"))


def _forget_left_out_sessions() -> None:
    """Forget what an earlier command line of this process met."""
    _LEFT_OUT_SESSIONS.clear()


def _exit_code_with_left_out_sessions(code: int) -> int:
    """What to exit with in place of `code`: 5 where a good end left something out."""
    if not _LEFT_OUT_SESSIONS or code not in (ExitCode.OK, ExitCode.VERDICT):
        return code
    if len(_LEFT_OUT_SESSIONS) > DAMAGED_SHOWN_MAX:
        print_message(
            f"and {len(_LEFT_OUT_SESSIONS) - DAMAGED_SHOWN_MAX} more that are damaged, left out."
        )
    return ExitCode.STORE


def run_with_error_handling(command: Callable[[], object], argv: Sequence[str]) -> int:
    """What the command exits with, also where no memory is left to say why.

    A message is made of modules that may not be loaded yet.
    """
    try:
        return _run_and_report_errors_and_leftovers(command, argv)
    except Exception as error:
        if not _is_out_of_memory(error):
            raise
        with suppress(OSError):
            os.write(2, _NO_MEMORY_TO_TELL)
        return ExitCode.HOST


def _run_and_report_errors_and_leftovers(command: Callable[[], object], argv: Sequence[str]) -> int:
    """What the command exits with; every exception is told here and nowhere else.

    Where JSON is asked for, standard output gets the error as one JSON object too, so that a
    program always finds a document there.
    """
    harden_streams()
    _forget_left_out_sessions()
    with collect_leftover_texts() as leftovers:
        code = _run_command_and_get_exit_code(command, as_json=_wants_json(argv))
    for sentence in leftovers:
        print_message(wrap_for_terminal(f"Left behind: {sentence}"))
    return ExitCode.HOST if leftovers and code in _CLEAN_ENDS else code


def _wants_json(argv: Sequence[str]) -> bool:
    """Whether a command line asks for JSON, by its words: it may be what cannot be parsed."""
    pairs = {*pairwise(argv)}
    return bool(
        {"--json", "--format=json", "-fjson"} & {*argv}
        or {("--format", "json"), ("-f", "json")} & pairs
    )


def _run_command_and_get_exit_code(command: Callable[[], object], *, as_json: bool) -> int:
    """The same but for what stays on hosts."""
    try:
        outcome = command()
    except IolabError as error:
        return _print_error_and_get_exit_code(error, as_json=as_json)
    except typer.TyperException as error:
        if error.format_message().startswith("Usage:"):
            print_message(error.format_message())  # no command was given: the help is the answer
            return ExitCode.STUDY
        return _print_error_and_get_exit_code(_usage_error(error), as_json=as_json)
    except (KeyboardInterrupt, typer.Abort):
        print_message("Interrupted.")
        return ExitCode.INTERRUPTED
    except SystemExit as error:
        # typer and rich leave with 1 when the reader of their help has gone; that is no fault.
        return error.code if isinstance(error.code, int) and error.code != 1 else ExitCode.OK
    except Exception as error:
        return _print_foreign_error_and_get_exit_code(error, as_json=as_json)
    except BaseException as error:
        if not _is_rust_panic(error):
            raise
        return _print_foreign_error_and_get_exit_code(error, as_json=as_json)
    return _exit_code_with_left_out_sessions(outcome if isinstance(outcome, int) else ExitCode.OK)


def error_document(error: IolabError) -> dict[str, object]:
    """The error as `--json` prints it."""
    return {
        "format": 1,
        "error": {
            "exit_code": int(error.exit_code),
            "message": error.message,
            "hint": error.hint,
            "faults": [to_builtins(fault) for fault in error.faults],
        },
    }


def _print_error_and_get_exit_code(error: IolabError, *, as_json: bool) -> ExitCode:

    print_message(wrap_for_terminal(f"iolab: {one_line(str(error))}"))
    # A single fault may be the error itself.
    faults = [str(fault) for fault in error.faults if str(fault) != str(error)]
    for fault in faults[:FAULTS_SHOWN]:
        print_message(wrap_for_terminal(one_line(fault), "  "))
    if len(faults) > FAULTS_SHOWN:
        print_message(f"  and {len(faults) - FAULTS_SHOWN} more")
    if as_json:
        print_json(error_document(error))
    return error.exit_code


def _usage_error(error: typer.TyperException) -> IolabError:
    """A fault that typer found in a command line, as one of ours."""
    message = " ".join(error.format_message().split()).replace("Value error, ", "")
    context = getattr(error, "ctx", None)
    path = context.command_path if context is not None else "iolab"
    if not message.endswith((".", "?", "!")):
        message += "."
    return UsageError(message, f"See '{path} --help'.")


def _is_rust_panic(error: BaseException) -> bool:
    """Whether a library written in Rust gave up, as for want of memory or of threads.

    No module has the class, which is made by each such library for itself.
    """
    return type(error).__name__ == "PanicException"


def _print_foreign_error_and_get_exit_code(error: BaseException, *, as_json: bool) -> ExitCode:
    """Full disks, a lack of memory, libraries that may not be loaded; all else is a bug."""
    try:
        require_flushed_output()
    except IolabError as fault:
        return _print_error_and_get_exit_code(fault, as_json=False)
    if library := _path_of_library_on_noexec_mount(error):
        return _print_noexec_error(library, as_json=as_json)
    if _is_out_of_processes(error):
        return _print_error_and_get_exit_code(_process_limit_error(), as_json=as_json)
    if _is_out_of_memory(error):
        return _print_error_and_get_exit_code(out_of_memory_error(), as_json=as_json)
    if environment_error := _environment_error(error):
        return _print_error_and_get_exit_code(environment_error, as_json=as_json)
    return _report_bug_and_get_exit_code(error, as_json=as_json)


def _environment_error(error: BaseException) -> IolabError | None:
    """What the machine or the command line is at fault for, where no other place said so."""
    if not isinstance(error, OSError) or error.errno not in _ENVIRONMENT:
        return None
    kind, remedy = _ENVIRONMENT[error.errno]
    place = f"{quote_value(os.fsdecode(error.filename))}: " if error.filename else ""
    return kind(f"{place}{error.strerror}.", remedy)


def _error_chain(error: BaseException) -> Iterator[BaseException]:
    """The error, then what it was raised from or while handling, as a traceback shows it."""
    printed_ids: set[int] = set()
    step: BaseException | None = error
    while step is not None and id(step) not in printed_ids:
        printed_ids.add(id(step))
        yield step
        step = step.__cause__ or (None if step.__suppress_context__ else step.__context__)


def _path_of_library_on_noexec_mount(error: BaseException) -> str | None:
    """The file that Python could not load because it lies on a file system without programs."""
    for cause in _error_chain(error):
        path = cause.path if isinstance(cause, ImportError) else None
        if path and os.path.exists(path) and os.statvfs(path).f_flag & _NOEXEC:  # noqa: PTH110
            return path
    return None


def _print_noexec_error(library: str, *, as_json: bool) -> ExitCode:
    """As `_print_error_and_get_exit_code`, whose own imports load such libraries."""
    error = HostError(
        f"{library!r} may not be loaded: its file system is mounted noexec.",
        "Install iolab on another, or mount that one without noexec.",
    )
    print_message(wrap_for_terminal(f"iolab: {error}"))
    if as_json:
        print_result(json.dumps(error_document(error), indent=2))
    return error.exit_code


def _is_out_of_memory(error: BaseException) -> bool:
    """Whether memory ran out, as Python, the kernel, the loader or a library tells it."""
    return any(
        isinstance(cause, MemoryError)
        or getattr(cause, "errno", None) == errno.ENOMEM
        or any(words in str(cause) for words in (*_NO_MEMORY, *_NO_THREAD))
        for cause in _error_chain(error)
    )


def _is_out_of_processes(error: BaseException) -> bool:
    """Whether no further process or thread may be started, and it is not for a lack of memory."""
    if resource.getrlimit(resource.RLIMIT_AS)[0] != resource.RLIM_INFINITY:
        return False
    is_limited = resource.getrlimit(resource.RLIMIT_NPROC)[0] != resource.RLIM_INFINITY
    return any(
        any(words in str(cause) for words in _NO_THREAD)
        or (is_limited and getattr(cause, "errno", None) == errno.EAGAIN)
        for cause in _error_chain(error)
    )


def _process_limit_error() -> HostError:
    """With the limit, where one is set."""
    limit = resource.getrlimit(resource.RLIMIT_NPROC)[0]
    if limit == resource.RLIM_INFINITY:
        message = "This machine starts no further process or thread."
        return HostError(message, "End some, or raise pids.max of the control group.")
    message = f"No further process or thread may be started: this user may have {limit}."
    return HostError(message, "Raise the limit: `ulimit -u unlimited`.")


def out_of_memory_error() -> HostError:
    """With the limit, where one is set."""
    limit = resource.getrlimit(resource.RLIMIT_AS)[0]
    data = resource.getrlimit(resource.RLIMIT_DATA)[0]
    if limit == resource.RLIM_INFINITY and data != resource.RLIM_INFINITY:
        return HostError(
            f"Memory ran out within the limit of {format_bytes(data)} of data.",
            "Raise it: `ulimit -d unlimited`.",
        )
    if limit == resource.RLIM_INFINITY:
        return HostError("Memory ran out on this machine.", "Free some, or take a larger machine.")
    return HostError(
        f"Memory ran out within the limit of {format_bytes(limit)} of address space.",
        "Raise it: `ulimit -v unlimited`.",
    )


def _report_bug_and_get_exit_code(error: BaseException, *, as_json: bool) -> ExitCode:
    place = traceback.extract_tb(error.__traceback__)[-1]
    where = f"{os.path.basename(place.filename)}:{place.lineno}"  # noqa: PTH119 - text, no file
    message = f"This is a bug in iolab: {type(error).__name__} at {where}: {error}"
    hint = (
        f"Please report it to the maintainers with this line, the command and the version "
        f"({__version__}); with {DEBUG}=1 in the environment the traceback is shown too."
    )
    print_message(f"{wrap_for_terminal(one_line(message))}\n{wrap_for_terminal(hint)}")
    if os.environ.get(DEBUG) == "1":
        traceback.print_exception(error, file=sys.stderr)
    if as_json:
        print_json(error_document(IolabError(one_line(message), hint)))
    return ExitCode.BUG
