"""For all tests: a property holds or does not, however long a machine takes; lanes; the browser."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import HealthCheck, settings
from playwright.sync_api import Browser, sync_playwright
from xdist.scheduler import LoadFileScheduling

from tests.lanes import lane_of, turn_of

settings.register_profile("untimed", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("untimed")

CHROMIUM = "/usr/bin/chromium"

# A shell starts what it runs in the background with SIGINT ignored, and so would be all that tests
# start, among which are commands that are to be ended by it.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Put the longest lanes of end-to-end tests first."""
    turns = dict.fromkeys(items, -1)
    for item in items:
        if item.get_closest_marker("e2e"):
            turns[item] = turn_of(lane_of(item.nodeid))
    items.sort(key=turns.__getitem__)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """Where the tests of a file are to stay together, have those of a lane do so."""
    if config.getvalue("dist") != "loadfile":
        return None
    scheduler = LoadFileScheduling(config, log)
    scheduler._split_scope = lane_of
    return scheduler


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """The distribution's Chromium; ended with the module, since its driver keeps a loop running."""
    with sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield browser
        browser.close()
