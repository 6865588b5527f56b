"""For all tests: their order and seeds, and one browser."""

from __future__ import annotations

import gc
import shutil
import signal
from collections.abc import Iterator
from typing import Any, Final

import pytest
from hypothesis import HealthCheck, settings
from playwright.sync_api import Browser, sync_playwright
from xdist.scheduler import LoadFileScheduling

import iolab.registry  # noqa: F401 - stored sessions have parts of every kind
from iolab.cli.session import COLLECTION_THRESHOLD
from tests.accused import StoredRuns
from tests.lanes import lane_of, turn_of
from tests.needs import record_skips, require, require_of_file

# A property holds or does not, however long a machine takes.
UNTIMED: Final = settings(
    settings.get_profile("default"), deadline=None, suppress_health_check=[HealthCheck.too_slow]
)
# `make test` tries the same examples each time; `make test-all` draws new ones, and more of them
# where a test does not say itself how many it can afford.
settings.register_profile("repeatable", UNTIMED, derandomize=True, database=None)
settings.register_profile("free", UNTIMED, max_examples=500, print_blob=True)
settings.load_profile("repeatable")

CHROMIUM: Final = "chromium"
STORED_RUNS: Final = pytest.StashKey[StoredRuns]()
# Modules and tests live until the end: to look among them for garbage after each 700 containers
# took a fifth of the time in which they are collected, and a twentieth of that of the tests.
gc.set_threshold(COLLECTION_THRESHOLD)
# A shell starts what it runs in the background with SIGINT ignored, and so would be all that tests
# start, among which are commands that are to be ended by it.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_collection_finish() -> None:
    """Look no more for garbage among what is collected."""
    gc.freeze()


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


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    """Before any fixture is made: what all end-to-end tests of the file use is there."""
    if item.get_closest_marker("e2e"):
        require_of_file(item.nodeid)


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_teardown(item: pytest.Item) -> None:
    """After an end-to-end test: no run that it stored is accused of a library it does not have."""
    if item.get_closest_marker("e2e"):
        folders = item.config.stash.setdefault(
            STORED_RUNS,
            StoredRuns(item.config._tmp_path_factory.getbasetemp()),  # type: ignore[attr-defined]
        )
        accused = folders.new_accused_libraries()
        assert not accused, accused


def pytest_terminal_summary(terminalreporter: Any, config: pytest.Config) -> None:
    """Tell the order of the tests, so that it can be had again, and record which were skipped."""
    record_skips(report.longrepr[2] for report in terminalreporter.stats.get("skipped", ()))
    if seed := getattr(config.option, "randomly_seed", None):
        terminalreporter.write_line(f"order: pytest -p randomly --randomly-seed={seed}")


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """The distribution's Chromium; ended with the module, since its driver keeps a loop running."""
    require(CHROMIUM)
    program = shutil.which(CHROMIUM)
    with sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=program, args=["--no-sandbox"])
        yield browser
        browser.close()
