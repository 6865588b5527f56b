"""Every option and argument of every command, and values that nobody means by them."""

from __future__ import annotations

import json
import socket
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import combinations
from pathlib import Path
from typing import Any, Final

import typer

from iolab.cli.app import create_app
from iolab.errors import ExitCode
from tests.cli.command_line import make_session
from tests.cli.in_process import call
from tests.importers.importing import lay_down

PROMISED: Final = {int(code) for code in ExitCode} - {ExitCode.BUG}
NO_AGENT: Final = {"IOLAB_AGENT": "/nonexistent/agent"}
"""A command line that nothing is wrong with ends where it would begin to work on a host."""

TELLING_MOST: Final = 20_000
"""Bytes on standard error: a value of any length is told cut short."""

VALUES: Final = {
    "empty": "",
    "huge number": "9" * 400,
    "huge text": "x" * 5000,
    "negative": "-1",
}
MORE_VALUES: Final = VALUES | {
    "blank": " ",
    "deep path": "a/" * 2100,
    "large number": "999999999999",
    "most negative": "-" + "9" * 30,
    "nothing": "0",
    "part": "0.5",
    "not a number": "nan",
    "endless": "inf",
    "overflow": "1e400",
    "other digits": "١٢",
    "commas": "1,,2",
    "assignment": "=",
    "assignments": "a=b=c",
    "bracket": "[",
    "table": "{}",
    "no text": "\udcff",
    "escape": "\x1b[31m",
    "two lines": "a\nb",
    "above": "../..",
    "root": "/",
    "here": ".",
    "no end": "/dev/zero",
    "memory": "/proc/self/mem",
    "dash": "-",
    "dashes": "--",
    "colon": "a/b:c",
    "format": "%s%n",
}
STUDY: Final = """\
format = 1
id = "flags"
[[workload]]
id = "w"
rw = "randread"
bs = "4k"
iodepth = [1, 2]
numjobs = 1
filesize = "1m"
"""
SOUND: Final = {
    "--against": "ssd-cluster",
    "--budget": "400000 EUR",
    "--bs": "4k",
    "--depth": "64",
    "--device": "/dev/nonexistent",
    "--docx": "a.docx",
    "--engine": "native",
    "--fail-on": "invalid",
    "--figures": "figures",
    "--format": "json",
    "--hosts": "slurm",
    "--html": "a.html",
    "--md": "a.md",
    "--metric": "iops",
    "--method": "quick",
    "--need": "random-read >= 1M",
    "--out": "out",
    "--path": ".",
    "--pdf": "a.pdf",
    "--predict": "hosts=4",
    "--scale": "full",
    "--serial": "S1",
    "--server": "embedded",
    "--set": "workload.w.bs=8k",
    "--text": "a.txt",
    "--threads": "4",
    "--usable-tb": "100",
    "--vms": "8",
    "--workload": "w",
}
"""Values that mean something; other options take one of them, too."""


@dataclass(frozen=True)
class Place:
    """What command lines name: sessions, a study, a directory for load, a port that is taken."""

    folder: Path
    session: Path
    other: Path
    study: Path
    load: Path
    files: tuple[Path, ...]
    port: int

    def arguments(self, command: str) -> list[str]:
        """Those that the command cannot be without."""
        words: dict[str, Sequence[object]] = {
            "init": ["new.toml"],
            "check": [self.study],
            "plan": [self.study],
            "run": [self.study],
            "resume": [self.session],
            "import": self.files,
            "show": [self.session],
            "report": [self.session],
            "export": [self.session],
            "serve": [self.folder],
            "compare": [self.session, self.other],
            "history": [self.session],
            "predict": [self.session],
            "choose": ["ssd-cluster"],
        }
        return [str(word) for word in words.get(command, ())]

    def options(self, command: str) -> dict[str, str]:
        """Those that it cannot be without, or would serve or ask without end."""
        on_hosts = ("plan", "run", "demo", "doctor", "clean", "calibrate")
        return {
            **dict.fromkeys(["--path"] if command in on_hosts else [], str(self.load)),
            **({"--out": "out"} if command == "import" else {}),
            **({"--format": "csv"} if command == "export" else {}),
            # TEST-NET-3 is no machine's, and nobody serves at a port that is taken.
            **({"--host": "203.0.113.9", "--port": str(self.port)} if command == "serve" else {}),
        }


@contextmanager
def place_below(folder: Path) -> Iterator[Place]:
    """All of it, below an empty folder."""
    load = folder / "load"
    load.mkdir()
    study = folder / "study.toml"
    study.write_text(STUDY, encoding="utf-8")
    with socket.socket() as taken:
        taken.bind(("0.0.0.0", 0))
        taken.listen()
        yield Place(
            folder,
            make_session(folder / "S"),
            make_session(folder / "T"),
            study,
            load,
            tuple(lay_down(folder, "import/fio/plain-3.33.json")),
            taken.getsockname()[1],
        )


@dataclass(frozen=True)
class Parameter:
    """An option or an argument of a command, as its own parser knows it."""

    command: str
    name: str
    is_flag: bool
    is_argument: bool

    def __str__(self) -> str:
        return f"{self.command} {self.name}"


def parameters() -> list[Parameter]:
    """All of every command, in the order of the help."""
    app: Any = typer.main.get_command(create_app())
    return [
        Parameter(
            command,
            one.opts[0],
            is_flag=getattr(one, "is_flag", False),
            is_argument=not one.opts[0].startswith("-"),
        )
        for command, its in app.commands.items()
        for one in its.params
    ]


@dataclass
class Tries:
    """Command lines, and what is wrong with how they ended."""

    place: Place
    cwd: Path
    wrong: list[str] = field(default_factory=list)

    def with_value(self, parameter: Parameter, name: str, value: str) -> None:
        """The command with that value, all else being right."""
        command = parameter.command
        arguments, options = self.place.arguments(command), self.place.options(command)
        if parameter.is_argument:
            arguments[:1] = [value]
        else:
            options[parameter.name] = value
        self._call(f"{parameter} {name}", command, arguments, options)

    def twice(self, parameter: Parameter) -> None:
        """The option twice, and without the value that it takes or with one that it does not."""
        command, name = parameter.command, parameter.name
        value = [] if parameter.is_flag else [SOUND.get(name, "1")]
        right = (self.place.arguments(command), self.place.options(command))
        self._call(f"{parameter} twice", command, *right, name, *value, name, *value)
        last = f"{name}=x" if parameter.is_flag else name
        self._call(f"{parameter} last", command, *right, last)

    def together(self, *parameters: Parameter) -> None:
        """Options that may contradict each other, each with a value that is right by itself."""
        command = parameters[0].command
        options = self.place.options(command)
        flags = [one.name for one in parameters if one.is_flag]
        for one in parameters:
            if not one.is_flag:
                options.setdefault(one.name, SOUND.get(one.name, "1"))
        names = " ".join(one.name for one in parameters)
        what = f"{command} with {names}"
        self._call(what, command, self.place.arguments(command), options, *flags)

    def _call(
        self, what: str, command: str, arguments: list[str], options: dict[str, str], *more: str
    ) -> None:
        words = [command, *(word for pair in options.items() for word in pair), *more, *arguments]
        done = call(*words, cwd=self.cwd, env=NO_AGENT)
        told = done.stderr
        faults = {
            f"exit {done.returncode}": done.returncode not in PROMISED,
            "a traceback": "Traceback" in told + done.stdout,
            "a bug": "a bug in iolab" in told,
            "no word": done.returncode > ExitCode.VERDICT and not told.strip(),
            "a whole value": len(told.encode()) > TELLING_MOST,
            "an escape code": "\x1b" in told,
            "no document": "--json" in more and not _is_document(done.stdout),
        }
        if found := [fault for fault, is_so in faults.items() if is_so]:
            self.wrong.append(f"{what}: {', '.join(found)}: {told[:300]}")


def _is_document(text: str) -> bool:
    try:
        json.loads(text)
    except ValueError:
        return False
    return True


def pairs(command: str) -> Iterator[tuple[Parameter, Parameter]]:
    """Each two options of a command."""
    mine = [one for one in parameters() if one.command == command and not one.is_argument]
    return combinations(mine, 2)
