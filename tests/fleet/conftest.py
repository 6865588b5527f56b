"""One fleet of three hosts for all tests here."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.fleet.bed import Bed, bed


@pytest.fixture(scope="session")
def three() -> Iterator[Bed]:
    """Three hosts, c01 to c03, each with a target of its own."""
    with bed(3) as made:
        yield made


@pytest.fixture
def fleet(three: Bed) -> Iterator[Bed]:
    """The three hosts; a test must leave nothing running on any of them."""
    yield three
    for name in three.specs:
        three.wait_until_alone(name)
