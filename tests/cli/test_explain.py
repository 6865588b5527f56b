"""`iolab explain`: every check has a page that an installed user can read."""

from __future__ import annotations

import json
import tomllib
from pathlib import Path

import pytest

from iolab.analysis import points, resume_checks, stored_results
from tests.cli.in_process import call
from tests.judging import EVERY_CHECK, IMPORTED_CHECKS

ROOT = Path(__file__).parents[2]
CODES = sorted(
    {made.code for made in (*EVERY_CHECK, *IMPORTED_CHECKS)}
    | {
        stored_results.REPEATS_CHECK_CODE,
        points.SENTINEL_CHECK_CODE,
        resume_checks.RESUME_CHECK_CODE,
    }
)


def test_all_codes_are_listed_with_a_line_each() -> None:
    listed = json.loads(call("explain", "--json").stdout)["checks"]
    assert [one["code"] for one in listed] == CODES
    assert all(one["title"] for one in listed)
    lines = call("explain").stdout.splitlines()
    assert [line.split()[0] for line in lines[1:]] == CODES


@pytest.mark.parametrize("code", CODES)
def test_a_page_is_plain_text_of_eighty_columns(code: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    text = call("explain", code).stdout
    assert code in text
    assert max(map(len, text.splitlines())) <= 80
    assert "](" not in text
    assert "\n#" not in text


def test_an_unknown_code_is_told_with_the_nearest_ones() -> None:
    done = call("explain", "device-bussy")
    assert done.returncode == 2
    assert "device-busy" in done.stderr


@pytest.mark.parametrize(
    ("word", "told"),
    [
        ("knee", "throughput"),
        ("KNEE", "throughput"),
        ("valid", "check passed"),
        ("indicative", "direction"),
        ("n", "runs"),
        ("p99", "1 of 100"),
        ("p95.5", "q per cent"),
        ("common-window", "hosts"),
        ("numjobs", "jobs"),
        ("percentiles", "latency"),
    ],
)
def test_words_of_results_are_explained(word: str, told: str) -> None:
    done = call("explain", word)
    assert done.returncode == 0
    assert told in " ".join(done.stdout.split())
    document = json.loads(call("explain", word, "--json").stdout)
    assert told in document["text"]


def test_every_entry_of_the_glossary_is_found_by_each_of_its_words() -> None:
    text = (ROOT / "docs" / "glossary.md").read_text(encoding="utf-8")
    headings = [line.split("**")[1] for line in text.splitlines() if line.startswith("- ")]
    assert headings
    for heading in headings:
        for word in heading.replace("`", "").replace("(", ",").replace(")", "").split(","):
            done = call("explain", word.strip())
            assert done.returncode == 0, word


def test_an_unknown_word_is_told_with_the_nearest_ones() -> None:
    done = call("explain", "kneee")
    assert done.returncode == 2
    assert "knee" in done.stderr


def test_who_gives_a_session_is_told_what_to_give(tmp_path: Path) -> None:
    done = call("explain", tmp_path)
    assert done.returncode == 2
    assert "iolab show" in done.stderr


def test_the_wheel_holds_the_pages() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    packed = project["tool"]["hatch"]["build"]["targets"]["wheel"]["force-include"]
    assert packed["docs/reference/checks"] == "iolab/_checks"
    assert packed["docs/glossary.md"] == "iolab/_glossary.md"
