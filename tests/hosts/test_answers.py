"""What an agent says is untrusted: numbers and lengths that no host has are refused."""

from __future__ import annotations

from typing import Any

import pytest

from iolab.core.run import CORES_MAX, ExtentProof, ProcessorUse
from iolab.errors import HostError
from iolab.hosts.answers import read_answer, read_hello
from iolab.hosts.message import Message

GROUP = {
    "path": "/",
    "quota_cores": 1.5,
    "period_ns": 1,
    "periods": 0,
    "throttled": 0,
    "throttled_ns": 0,
}
USE: dict[str, Any] = {
    "watched_ns": 1,
    "threads": 1,
    "wall_ns": 1,
    "run_ns": 1,
    "wait_ns": 0,
    "cores": [0],
    "groups": [GROUP],
}
HELLO: dict[str, Any] = {"wire": 2, "version": "1", "pid": 1, "capabilities": ["x"]}
PROOF: dict[str, Any] = {"method": "seek", "file_count": 1} | dict.fromkeys(
    ("size_bytes", "written_bytes", "unwritten_bytes", "hole_bytes"), 1
)


def test_sound_answers_are_read() -> None:
    assert read_hello("h", Message("hello", HELLO)).pid == 1
    assert read_answer("h", ProcessorUse, Message("exited", USE)).groups[0].quota_cores == 1.5
    assert read_answer("h", ExtentProof, Message("extents", PROOF)).method == "seek"


@pytest.mark.parametrize(
    "wrong",
    [
        {"pid": -1},
        {"version": "1" * 101},
        {"capabilities": ["x"] * 101},
        {"runs_end_by": "x" * 41},
    ],
    ids=str,
)
def test_a_hello_beyond_its_bounds_is_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(HostError):
        read_hello("h", Message("hello", HELLO | wrong))


@pytest.mark.parametrize(
    "wrong",
    [
        {"cores": [0] * (CORES_MAX + 1)},
        {"groups": [GROUP] * 65},
        {"groups": [GROUP | {"quota_cores": -1.0}]},
        {"groups": [GROUP | {"path": "/" * 4097}]},
    ],
    ids=("cores", "groups", "quota", "path"),
)
def test_a_use_of_processors_beyond_its_bounds_is_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(HostError):
        read_answer("h", ProcessorUse, Message("exited", USE | wrong))


def test_a_method_of_proof_beyond_its_length_is_refused() -> None:
    with pytest.raises(HostError):
        read_answer("h", ExtentProof, Message("extents", PROOF | {"method": "x" * 41}))
