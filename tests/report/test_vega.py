"""Charts drawn by several processes are those drawn by one, and none of the processes stays."""

from __future__ import annotations

import io
import json
import subprocess
import sys
from collections.abc import Mapping
from typing import Any

from iolab.report.render import MANY, serve, svg_of, svgs_of


def spec(number: int) -> str:
    point: Mapping[str, Any] = {
        "data": {"values": [{"x": number, "y": 1}]},
        "mark": "point",
        "encoding": {key: {"field": key, "type": "quantitative"} for key in ("x", "y")},
    }
    return json.dumps(point)


def test_many_are_drawn_as_one_is() -> None:
    specs = [spec(number) for number in range(2 * MANY)]
    drawn = svgs_of(specs, processes=2)
    assert list(drawn) != []
    assert drawn == {one: svg_of(one) for one in specs}


def test_few_or_a_single_core_are_left_to_the_caller() -> None:
    specs = [spec(number) for number in range(2 * MANY)]
    assert svgs_of(specs[: 2 * MANY - 1], processes=2) == {}
    assert svgs_of(specs, processes=1) == {}
    assert svgs_of([specs[0]] * 100, processes=2) == {}


def test_one_that_fails_is_left_out() -> None:
    specs = [spec(number) for number in range(2 * MANY)]
    drawn = svgs_of([*specs, '{"mark": "none of these"}'], processes=2)
    assert set(drawn) == set(specs)


def test_a_process_answers_line_by_line_and_ends_with_its_input() -> None:
    out = io.StringIO()
    serve(io.StringIO(f"{spec(1)}\nno spec\n"), out)
    first, second = out.getvalue().splitlines()
    assert json.loads(first).startswith("<svg")
    assert json.loads(second) is None
    ended = subprocess.run(
        [sys.executable, "-m", "iolab.report.render"], stdin=subprocess.DEVNULL, timeout=60
    )
    assert ended.returncode == 0
