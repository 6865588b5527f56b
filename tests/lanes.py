"""End-to-end tests run side by side: which of them share a worker, and which begin first.

A file stays on one worker, since its tests share what a fixture has made. Some files go together:
what they make would meet, or is too heavy to have twice. What no company may disturb is marked
`alone` where it stands, and runs by itself afterwards.
"""

from __future__ import annotations

from typing import Final

TOGETHER: Final = {
    # Ports and routes of the machine's own network, and one fleet for most of them.
    "tests/fleet/test_": "fleet",
    "tests/campaign/test_": "fleet",
    # Emulated processors: two guests take all that a small machine has.
    "tests/e2e/test_guest_": "guests",
    "tests/e2e/test_vm_": "guests",
    "tests/e2e/test_bundled": "guests",
    # Nodes of Cassandra look for free ports, and each takes half a gigabyte.
    "tests/e2e/test_cassandra": "java",
    "tests/e2e/test_ycsb": "java",
}
"""How a file's path begins, and the lane of all such files."""

FIRST: Final = (
    "fleet",
    "guests",
    "tests/e2e/test_run_session.py",
    "java",
    "tests/e2e/test_precondition.py",
    "tests/session/test_real.py",
)
"""The longest lanes: whichever began last would be waited for."""


def lane_of(test: str) -> str:
    """The lane of a test as pytest names it, by its file's path."""
    path = test.partition("::")[0]
    lanes = (lane for begin, lane in TOGETHER.items() if path.startswith(begin))
    return next(lanes, path)


def turn_of(lane: str) -> int:
    """When a lane begins: the lowest comes first, equals as they were collected."""
    return FIRST.index(lane) if lane in FIRST else len(FIRST)
