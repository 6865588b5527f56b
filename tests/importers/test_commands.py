"""Options of command lines: what is a value of which, however they are written."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from iolab.importers.commands import CommandSyntax, command_settings
from iolab.importers.files import read_foreign_files
from iolab.importers.registry import IMPORTERS

STYLE = CommandSyntax(
    valueless_letters="wrF",
    value_letters="btop",
    valueless_words=frozenset({"nodelerr"}),
    path_options=frozenset({"csvfile", "-o"}),
)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("ior -w -r -F -b 4m", "ior -wrF -b4m"),
        ("ior -w -b 4m", "ior -wb4m"),
        ("ior -v -w", "ior -vvv -w"),
        ("ior -o /a -t 1m", "ior -o/a -t1m"),
    ],
)
def test_one_command_in_two_spellings_has_the_same_settings(one: str, other: str) -> None:
    assert sorted(command_settings(one, STYLE)) == sorted(command_settings(other, STYLE))


@pytest.mark.parametrize(
    ("command", "settings"),
    [
        ("tool --nodelerr /mnt/a", {"nodelerr": "yes", "arguments": "/mnt/a"}),
        ("tool --nodelerr a", {"nodelerr": "yes", "arguments": "a"}),
        ("tool --unheard /mnt/a", {"unheard": "yes", "arguments": "/mnt/a"}),
        ("tool --csvfile /tmp/a.csv", {"csvfile": "/tmp/a.csv"}),
        ("tool -p 5", {"-p": "5"}),
        ("tool -w a", {"-w": "yes", "arguments": "a"}),
        ("tool -O stripe=4", {"-O stripe": "4"}),
        ("tool -xyz", {"xyz": "yes"}),
    ],
)
def test_a_word_is_a_value_only_of_an_option_that_has_one(
    command: str, settings: dict[str, str]
) -> None:
    assert dict(command_settings(command, STYLE)) == settings


def test_the_command_of_an_old_document_of_elbencho_is_read_in_any_spelling(tmp_path: Path) -> None:
    command = '"elbencho" "-wb4k" "-t8" "--rwmixpct" "30" "--iodepth=4" "--nodelerr" "/mnt/a"'
    document = {
        "phase_type": "RWMIX30",
        "command": command,
        "last_done": {"elapsed_time_ms": "8000", "iops": "1000", "bytes": "32768000"},
    }
    (tmp_path / "a.json").write_text(json.dumps(document))
    ((_, run),) = read_foreign_files([tmp_path], IMPORTERS).runs
    names = ("block size", "threads", "IO depth", "rwmixpct")
    assert [run.load_settings[name] for name in names] == [4096, 8, 4, 30]
    assert run.in_flight == 32
