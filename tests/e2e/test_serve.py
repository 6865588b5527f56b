"""`iolab serve` as it is used: started, asked, watched in a browser, stopped."""

from __future__ import annotations

import os
import signal
import socket
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from bench.synthetic import make_facts, make_record, make_result
from playwright.sync_api import Browser, Page

from iolab.serve.limits import CONNECTIONS_MAX, UNAUTHENTICATED_CONNECTIONS_MAX
from iolab.serve.pages import REFRESH_S
from iolab.store.writer import SessionWriter
from tests.axe import faults
from tests.cli.command_line import PLAN, SHAPE, STUDY, iolab, make_session
from tests.cli.compared import Target, make_target
from tests.e2e.serving import Serving, serving
from tests.report.hostile import EVERY

pytestmark = pytest.mark.e2e

WIDTHS = (375, 768, 1280, 1920)


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("results")
    make_session(folder / "lab" / "whole")
    make_session(folder / "lab" / "stopped", 3)
    make_target(folder / "slow", Target(name="slow"))
    make_target(folder / "fast", Target(name="fast", factor=1.2, day=1))
    make_target(folder / EVERY.replace("/", "").replace("\x00", "")[:200], Target(name=EVERY))
    return folder


@pytest.fixture(scope="module")
def server(root: Path) -> Iterator[Serving]:
    with serving(root) as one:
        yield one


def opened(browser: Browser, **options: Any) -> tuple[Page, list[str]]:
    """A page, and all that it says or asks for elsewhere."""
    page = browser.new_context(**options).new_page()
    said: list[str] = []
    page.on("console", lambda message: said.append(f"console: {message.text}"))
    page.on("pageerror", lambda error: said.append(f"error: {error}"))
    page.on("request", lambda request: said.append(request.url))
    return page, said


def foreign(said: list[str], server: Serving) -> list[str]:
    return [line for line in said if not line.startswith((server.address, "data:,"))]


def session_of(page: Page, server: Serving, place: str) -> str:
    """The address of a session by its place in the list."""
    page.goto(server.address)
    link = page.locator(".session", has=page.locator(f"code:text-is('{place}')")).locator("h2 a")
    return server.address.rstrip("/") + str(link.get_attribute("href"))


def pages_of(page: Page, server: Serving) -> list[str]:
    """The address of one page of each kind."""
    slow, fast = (session_of(page, server, name) for name in ("slow", "fast"))
    ids = [one.rpartition("/")[2] for one in (slow, fast)]
    compare = f"{server.address}compare?baseline={ids[0]}&candidate={ids[1]}"
    return [server.address, slow, f"{slow}/live", compare]


def test_every_page_is_quiet_and_asks_nobody_else(browser: Browser, server: Serving) -> None:
    page, said = opened(browser)
    for address in pages_of(page, server):
        page.goto(address)
        page.locator("h1").first.wait_for()
    assert page.evaluate("window.hurt") is None
    assert foreign(said, server) == []
    page.context.close()


def test_no_page_is_wider_than_its_window(browser: Browser, server: Serving) -> None:
    page, _ = opened(browser)
    for address in pages_of(page, server):
        page.goto(address)
        for width in WIDTHS:
            page.set_viewport_size({"width": width, "height": 900})
            assert page.evaluate("document.documentElement.scrollWidth") <= width, address
    page.context.close()


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_finds_no_grave_fault(browser: Browser, server: Serving, scheme: str) -> None:
    page, _ = opened(browser, bypass_csp=True, color_scheme=scheme)
    for address in pages_of(page, server):
        page.goto(address)
        page.locator("h1").first.wait_for()
        assert faults(page) == [], address
    page.context.close()


def test_dark_and_light_differ(browser: Browser, server: Serving) -> None:
    seen = []
    for scheme in ("light", "dark"):
        page, _ = opened(browser, color_scheme=scheme)
        page.goto(server.address)
        seen.append(page.evaluate("getComputedStyle(document.body).backgroundColor"))
        page.context.close()
    assert seen == ["rgb(255, 255, 255)", "rgb(16, 20, 24)"]


def test_from_the_list_to_a_comparison_by_hand(browser: Browser, server: Serving) -> None:
    page, said = opened(browser)
    page.goto(server.address)
    for side, place in (("baseline", "slow"), ("candidate", "fast")):
        line = page.locator(".session", has=page.locator(f"code:text-is('{place}')"))
        line.get_by_text(side, exact=True).click()
    page.get_by_role("button", name="Compare").click()
    assert page.locator("h1").text_content() == "fast against slow"
    assert page.locator(".says-better").count() > 2
    page.get_by_role("link", name="All sessions").click()
    assert page.locator("h1").text_content() == "Sessions"
    assert foreign(said, server) == []
    page.context.close()


def test_the_report_is_the_one_of_the_command_line(
    browser: Browser, server: Serving, root: Path, tmp_path: Path
) -> None:
    page, said = opened(browser)
    page.goto(session_of(page, server, "slow"))
    link = page.get_by_role("link", name="Save this report")
    link.wait_for()
    with page.expect_download() as saved:
        link.click()
    assert iolab("report", root / "slow", "--html", tmp_path / "r.html").returncode == 0
    assert saved.value.path().read_bytes() == (tmp_path / "r.html").read_bytes()
    assert page.locator("svg.chart").count() > 0
    assert foreign(said, server) == []
    page.context.close()


def test_a_running_session_is_watched_live(browser: Browser, tmp_path: Path) -> None:
    with (
        serving(tmp_path) as server,
        SessionWriter.create(tmp_path / "now", STUDY, PLAN, "s", ("iolab",)) as writer,
    ):
        writer.record_host_facts_at_start(make_facts(SHAPE), "0.1.0")
        page, said = opened(browser)
        page.clock.install()
        page.goto(session_of(page, server, "now"))
        for number, run in enumerate(PLAN.runs[:2], start=1):
            record = make_record(run, SHAPE)
            writer.commit_run(record, make_result(record), analysis_version=1)
            page.clock.run_for(1000 * REFRESH_S)
            page.locator(f"progress[value='{number}']").wait_for()
            assert page.locator("tbody tr").count() == number
        page.get_by_role("button", name="Pause").click()
        record = make_record(PLAN.runs[2], SHAPE)
        writer.commit_run(record, make_result(record), analysis_version=1)
        asked = len(said)
        page.clock.run_for(2 * 1000 * REFRESH_S)
        page.wait_for_timeout(500)  # for what it asks to be heard of here
        assert said[asked:] == []
        assert page.locator("progress[value='2']").count() == 1
        page.get_by_role("button", name="Go on").click()
        page.locator("progress[value='3']").wait_for()
        assert foreign(said, server) == []
        server.stop()
        page.clock.run_for(1000 * REFRESH_S)
        page.get_by_text("No answer").wait_for()
        page.context.close()


@pytest.mark.long
def test_without_script_a_running_session_is_loaded_again(browser: Browser, tmp_path: Path) -> None:
    with (
        serving(tmp_path) as server,
        SessionWriter.create(tmp_path / "now", STUDY, PLAN, "s", ("iolab",)) as writer,
    ):
        writer.record_host_facts_at_start(make_facts(SHAPE), "0.1.0")
        page, _ = opened(browser, java_script_enabled=False)
        page.goto(session_of(page, server, "now"))
        record = make_record(PLAN.runs[0], SHAPE)
        writer.commit_run(record, make_result(record), analysis_version=1)
        page.locator("progress[value='1']").wait_for()
        page.context.close()


def test_when_the_writer_is_done_the_page_comes_to_rest(browser: Browser, tmp_path: Path) -> None:
    with serving(tmp_path) as server:
        writer = SessionWriter.create(tmp_path / "now", STUDY, PLAN, "s", ("iolab",))
        with writer:
            writer.record_host_facts_at_start(make_facts(SHAPE), "0.1.0")
            page, _ = opened(browser)
            page.goto(session_of(page, server, "now"))
            page.get_by_role("button", name="Pause").wait_for()
        page.locator(".status.interrupted").wait_for()
        assert page.get_by_role("button", name="Pause").count() == 0
        assert page.get_by_role("link", name="Report", exact=True).count() == 1
        page.context.close()


def test_elsewhere_than_on_this_machine_a_token_is_needed(root: Path) -> None:
    with serving(root, "--host", "0.0.0.0") as server:
        assert server.process.stderr is not None
        told = server.process.stderr.readline()
        token = told.split()[-1]
        assert len(token) >= 32
        assert server.ask("/")[0] == 401
        assert server.ask("/", {"Authorization": f"Bearer {token[:-1]}"})[0] == 401
        assert server.ask("/", {"Authorization": f"Bearer {token}"})[0] == 200
        assert server.ask("/", {"Authorization": f"Bearer {token}", "Host": "evil"})[0] == 421
        server.ask(f"/?token={token}")
        code, said = server.stop()
    assert code == 0
    assert token not in said


def test_a_browser_gives_the_token_of_a_file_as_password(
    browser: Browser, root: Path, tmp_path: Path
) -> None:
    (tmp_path / "token").write_text("a-token-of-our-own-1\n")
    with serving(root, "--token-file", tmp_path / "token") as server:
        assert server.ask("/")[0] == 401
        known = {"username": "me", "password": "a-token-of-our-own-1"}
        page, said = opened(browser, http_credentials=known)
        page.goto(server.address)
        page.get_by_text("slow").first.wait_for()
        assert foreign(said, server) == []
        page.context.close()


def test_a_stranger_gets_nothing_by_odd_requests(server: Serving) -> None:
    host = b"Host: localhost\r\nConnection: close\r\n\r\n"
    for sent, status in (
        (b"GET /../../etc/passwd HTTP/1.1\r\n" + host, b"404"),
        (b"GET /sessions/..%2f..%2fetc%2fpasswd HTTP/1.1\r\n" + host, b"404"),
        (b"POST / HTTP/1.1\r\nContent-Length: 2\r\n" + host + b"ab", b"405"),
        (b"GET / HTTP/1.1\r\nHost: evil.example\r\nConnection: close\r\n\r\n", b"421"),
        (b"GET / HTTP/1.1\r\nX: " + b"a" * 70_000 + b"\r\n" + host, b"431"),
        (b"GET / HTTP/1.1\r\n" + b"X: a\r\n" * 5000 + host, b"431"),
        (b"GET /" + b"a" * 20_000 + b" HTTP/1.1\r\n" + host, b"431"),
        (b"GARBAGE\r\n\r\n", b"400"),
        (b"GET http://evil.example/ HTTP/1.1\r\n" + host, b"404"),
    ):
        answer = server.raw(sent)
        assert answer.split(b" ", 2)[1] == status, sent[:60]
        assert b"root:" not in answer
    assert server.ask("/")[0] == 200


def test_who_has_the_token_gets_in_while_strangers_hold_connections(
    root: Path, tmp_path: Path
) -> None:
    (tmp_path / "token").write_text("a-token-of-our-own-1\n")
    known = {"Authorization": "Bearer a-token-of-our-own-1"}
    with serving(root, "--token-file", tmp_path / "token") as server, ExitStack() as held:
        for number in range(2 * (CONNECTIONS_MAX + UNAUTHENTICATED_CONNECTIONS_MAX)):
            address = ("127.0.0.1", server.port)
            stranger = held.enter_context(socket.create_connection(address, 10))
            # Some say nothing, some begin, some were refused.
            stranger.sendall((b"", b"GET / HT", b"GET / HTTP/1.1\r\n\r\n")[number % 3])
        assert server.ask("/", known)[0] == 200


@pytest.mark.long
def test_a_connection_that_says_nothing_is_closed(server: Serving) -> None:
    start = time.monotonic()
    with ThreadPoolExecutor(2) as strangers:
        assert [*strangers.map(server.raw, [b"GET / HT", b""])] == [b"", b""]
    assert time.monotonic() - start < 50


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_signal_ends_it_cleanly(root: Path, number: int) -> None:
    with serving(root) as server:
        held = socket.create_connection(("127.0.0.1", server.port))
        code, said = server.stop(number)
        held.close()
    assert code == 0
    assert said.splitlines()[1:] == []
    assert "Stop with Ctrl-C." in said


def test_a_report_that_is_being_made_does_not_hold_it_up(tmp_path: Path) -> None:
    make_session(tmp_path / "root" / "one")
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    with serving(tmp_path / "root", env={"TMPDIR": str(scratch)}) as server:
        session = server.ask("/")[1].split('href="/sessions/')[1].split('"')[0]
        asked = socket.create_connection(("127.0.0.1", server.port))
        asked.sendall(f"GET /sessions/{session} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode())
        made = _children(server.process.pid)
        assert len(made) == 1
        code, _ = server.stop()
        asked.close()
    assert code == 0
    assert not Path(f"/proc/{made[0]}").exists()
    assert list(scratch.iterdir()) == []


def _children(pid: int) -> list[str]:
    """The processes that a process started, once there is one."""
    tasks = Path(f"/proc/{pid}/task")
    for _ in range(2000):
        found = [
            child for task in tasks.iterdir() for child in (task / "children").read_text().split()
        ]
        if found:
            return found
        time.sleep(0.005)
    return []


def test_nothing_below_the_directory_is_written(root: Path) -> None:
    def all_of() -> list[tuple[str, int, int]]:
        return sorted(
            (str(one), one.lstat().st_mtime_ns, one.lstat().st_size) for one in root.rglob("*")
        )

    before = all_of()
    with serving(root) as server:
        listing = server.ask("/")[1]
        for part in listing.split('href="/sessions/')[1:3]:
            session = part.split('"')[0]
            assert server.ask(f"/sessions/{session}")[0] in {200, 202}
    assert all_of() == before


def test_faults_are_told_in_two_sentences(root: Path, tmp_path: Path) -> None:
    (tmp_path / "short").write_text("short")
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        for options, message in (
            ([tmp_path / "none"], "There is no directory"),
            ([root, "--port", port], f"Port {port} of '127.0.0.1' is in use."),
            ([root, "--host", "192.0.2.1"], "'192.0.2.1' is no address of this machine."),
            ([root, "--host", "no such host"], "There is no address for the host"),
            ([root, "--token-file", tmp_path / "short"], "holds no token"),
            ([root, "--token-file", tmp_path / "none"], "cannot be read"),
        ):
            outcome = iolab("serve", *options)
            assert outcome.returncode == 2
            assert message in outcome.stderr
            assert "Traceback" not in outcome.stderr


def test_a_directory_without_sessions_says_so(tmp_path: Path) -> None:
    with serving(tmp_path) as server:
        assert "There is no session here yet" in server.ask("/")[1]
        assert "No session yet" in server.stop()[1]


def test_environment_of_others_changes_nothing(root: Path) -> None:
    os.environ["WEB_CONCURRENCY"] = "4"
    try:
        with serving(root) as server:
            assert server.ask("/")[0] == 200
    finally:
        del os.environ["WEB_CONCURRENCY"]
