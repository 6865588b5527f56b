"""`iolab predict` on sessions whose truth is known."""

from __future__ import annotations

import html
import json
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from msgspec.structs import replace

from iolab.core.metric import RunResult
from iolab.core.run import Plan
from iolab.errors import UsageError
from iolab.report.numbers import value_text
from tests.cli.compared import Target, make_target
from tests.cli.in_process import call
from tests.facts import tells

SCHEMA = json.loads(
    (Path(__file__).parents[2] / "schema" / "predict.json").read_text(encoding="utf-8")
)


def truth(depth: int) -> float:
    return 1000 * depth / (1 + 0.05 * (depth - 1))


def by_law(result: RunResult) -> RunResult:
    """The rates follow a law of the depth, and scatter as the target says."""
    depth = int(dict(result.axis_values)["iodepth"])
    scatter = {1: 1.004, 2: 0.997, 3: 0.999}[result.repeat]
    rate = replace(result.metrics["iops"], value=truth(depth) * scatter)
    return replace(result, metrics={**result.metrics, "iops": rate})


def only_4k(plan: Plan) -> Plan:
    kept = [run for run in plan.runs if dict(run.point.axis_values)["bs"] == "4k"]
    return replace(plan, runs=tuple(kept))


@pytest.fixture(scope="module")
def session(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Depths 1, 2, 4, 8 and 16."""
    folder = tmp_path_factory.mktemp("predict") / "S"
    return make_target(folder, Target(points=21, plan=only_4k, result=by_law))


def predicted(session: Path, *words: str) -> dict[str, Any]:
    done = call("predict", session, *words, "--json")
    assert done.returncode == 0, done.stderr
    document: dict[str, Any] = json.loads(done.stdout)
    jsonschema.validate(document, SCHEMA, jsonschema.Draft202012Validator)
    (only,) = document["predictions"]
    found: dict[str, Any] = only
    return found


def test_a_load_between_and_one_beyond_are_predicted(session: Path) -> None:
    for depth in (6, 32):
        found = predicted(session, "--depth", str(depth))
        told = found["predicted"]
        assert told["low"] < truth(depth) < told["high"]
        assert told["rate"] == pytest.approx(truth(depth), rel=0.05)
        assert [one["load"] for one in found["measured"]] == [1, 2, 4, 8, 16]
        assert (found["n"], found["runs"]) == (5, 3)
        assert found["reason"] == ""


def test_beyond_twice_the_largest_load_it_refuses_unless_asked(session: Path) -> None:
    refused = predicted(session, "--depth", "33")
    assert refused["predicted"] is None
    assert "33" in refused["reason"]
    assert "16" in refused["reason"]
    assert predicted(session, "--depth", "33", "--extrapolate")["predicted"] is not None


def test_what_was_measured_is_not_predicted(session: Path) -> None:
    assert predicted(session, "--depth", "8")["predicted"] is None
    told = call("predict", session, "--depth", "8").stdout
    assert "it was measured" in told.splitlines()[0]
    assert "–" not in told
    assert "rely on it" not in told
    assert "rely on it" in call("predict", session, "--depth", "32").stdout


def test_too_few_loads_say_so(tmp_path: Path) -> None:
    few = make_target(tmp_path / "S", Target(points=11, plan=only_4k, result=by_law))
    found = predicted(few, "--depth", "6")
    assert (found["predicted"], len(found["measured"])) == (None, 3)
    assert "3" in found["reason"]


@pytest.mark.parametrize("words", [(), ("--depth", "2", "--hosts", "3"), ("--hosts", "24")])
def test_one_axis_of_the_session_is_asked_for(session: Path, words: tuple[str, ...]) -> None:
    done = call("predict", session, *words)
    assert (done.returncode, done.stdout) == (UsageError.exit_code, "")


def test_the_screen_says_that_it_is_no_result(session: Path) -> None:
    text = call("predict", session, "--depth", "32").stdout
    assert "not measured" in text
    assert "1 to 16" in text


def test_a_report_shows_predictions_hatched_and_apart(session: Path, tmp_path: Path) -> None:
    files = {form: tmp_path / f"r.{form}" for form in ("html", "md", "pdf")}
    words = [word for form, file in files.items() for word in (f"--{form}", file)]
    asked = ("--predict", "depth=24", "--predict", "depth=100")
    done = call("report", session, *words, *asked)
    assert done.returncode == 0, done.stderr
    told = predicted(session, "--depth", "24")["predicted"]
    page, text = (files[form].read_text(encoding="utf-8") for form in ("html", "md"))
    part = page[page.index('<section id="predicted">') :].partition("</section>")[0]
    ends = [value_text(told[end], "1/s") for end in ("rate", "low", "high")]
    for place in (html.unescape(part), text):
        for fact in (*ends, "1.5 times", "1 to 16", told["law"]):
            assert tells(place, fact), fact
    assert "100 is more than 2 times" in text
    assert part.count("<figure") == 1
    assert "predicted, not measured" in part.lower()
    assert files["pdf"].stat().st_size > 0
    call("report", session, "--html", files["html"])
    assert 'id="predicted"' not in files["html"].read_text(encoding="utf-8")


@pytest.mark.parametrize("words", ["iodepth=4", "depth", "depth=0", "depth=4.5", "hosts=24"])
def test_a_report_refuses_what_cannot_be_predicted(session: Path, words: str) -> None:
    done = call("report", session, "--predict", words)
    assert done.returncode == UsageError.exit_code
    assert words.partition("=")[0] in done.stderr
