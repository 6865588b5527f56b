"""Who may ask for what: methods, hosts, origins, tokens."""

from __future__ import annotations

import asyncio
import base64
from pathlib import Path
from typing import Any

import pytest

from iolab.serve.server import NO_CONTENT_POLICY, AccessMiddleware, AccessPolicy, request_refusal
from tests.serve.asking import CLOSED, OPEN, TOKEN, Site, asked

HOST = {"host": ["localhost:1"]}


def basic(name: str, password: str) -> str:
    return "Basic " + base64.b64encode(f"{name}:{password}".encode()).decode()


def status(headers: dict[str, list[str]], terms: AccessPolicy = OPEN, method: str = "GET") -> int:
    refusal = request_refusal(method, headers, terms)
    return 200 if refusal is None else refusal.status


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "PATCH", "OPTIONS", "TRACE", "get"])
def test_nothing_but_reading_is_let_through(method: str) -> None:
    assert status(HOST, method=method) == 405
    assert status(HOST, method="GET") == status(HOST, method="HEAD") == 200


@pytest.mark.parametrize(
    "headers",
    [{"content-length": ["3"]}, {"content-length": ["0", "5"]}, {"transfer-encoding": ["chunked"]}],
)
def test_a_request_has_no_content(headers: dict[str, list[str]]) -> None:
    assert status({**HOST, **headers}) == 400
    assert status({**HOST, "content-length": ["0"]}) == 200


def test_a_head_has_an_end(tmp_path: Path) -> None:
    site = Site(tmp_path)
    assert site.get("/", {"x": "a" * 9000}).status == 200
    assert site.get("/", {"x": "a" * 9000, "y": "b" * 9000}).status == 431
    assert site.get("/", {"a" * 17_000: ""}).status == 431
    assert site.get("/?" + "a" * 17_000).status == 431


@pytest.mark.parametrize(
    "host",
    ["localhost", "LOCALHOST:80", "localhost.:80", "127.0.0.1:40217", "127.9.9.9", "[::1]:80"],
)
def test_this_machine_goes_by_its_own_names(host: str) -> None:
    assert status({"host": [host]}) == 200


@pytest.mark.parametrize(
    "host",
    [
        *("evil.example", "localhost.evil.example", "10.0.0.5", "127.0.0.1.evil.example", ""),
        *("localhost:80@evil", "[::1", "[::1]x", "a:b:c", "localhost:8x", "0.0.0.0", "[::]"),
    ],
)
def test_a_foreign_name_is_refused(host: str) -> None:
    assert status({"host": [host]}) == 421


def test_a_request_has_one_host() -> None:
    assert status({}) == 421
    assert status({"host": ["localhost", "localhost"]}) == 421


def test_on_the_network_addresses_are_names_too_and_foreign_names_are_not() -> None:
    known = {"authorization": [f"Bearer {TOKEN}"]}
    assert status({"host": ["10.0.0.5:80"], **known}, CLOSED) == 200
    assert status({"host": ["evil.example"], **known}, CLOSED) == 421


@pytest.mark.parametrize(
    "given",
    [f"Bearer {TOKEN}", f"bearer {TOKEN}", basic("", TOKEN), basic("anyone", TOKEN)],
)
def test_who_knows_the_token_gets_in(given: str) -> None:
    assert status({**HOST, "authorization": [given]}, CLOSED) == 200


@pytest.mark.parametrize(
    "given",
    [
        *([], [""], [TOKEN], ["Bearer "], [f"Bearer {TOKEN}x"], [f"Bearer {TOKEN[:-1]}"]),
        *([f"Digest {TOKEN}"], ["Basic !!"], [basic(TOKEN, "")], [basic("a", f"b:{TOKEN}")]),
        *([f"Bearer {TOKEN}", f"Bearer {TOKEN}"], ["Bearer \xff\u20ac"], ["Basic \xff"], ["Basic"]),
    ],
)
def test_who_does_not_is_asked_for_it(given: list[str]) -> None:
    refusal = request_refusal("GET", {**HOST, "authorization": given}, CLOSED)
    assert refusal is not None
    assert refusal.status == 401
    assert dict(refusal.headers)["www-authenticate"].startswith("Basic ")


@pytest.mark.parametrize("site", ["cross-site", "same-site"])
def test_a_page_elsewhere_may_lead_here_but_not_use_a_page_as_its_part(site: str) -> None:
    opened = {"sec-fetch-mode": ["navigate"], "sec-fetch-dest": ["document"]}
    framed = {"sec-fetch-mode": ["navigate"], "sec-fetch-dest": ["iframe"]}
    shown = {"sec-fetch-mode": ["no-cors"], "sec-fetch-dest": ["image"]}
    answers = [status({**HOST, "sec-fetch-site": [site], **one}) for one in (opened, framed, shown)]
    assert answers == [200, 403, 403]
    assert status({**HOST, "sec-fetch-site": ["same-origin"], **shown}) == 200


async def _breaks(scope: Any, receive: Any, send: Any) -> None:
    raise RuntimeError("the secret of the house")


async def _bare(scope: Any, receive: Any, send: Any) -> None:
    await send({"type": "http.response.start", "status": 200, "headers": []})
    await send({"type": "http.response.body", "body": b"x"})


def test_every_answer_carries_what_keeps_a_browser_in_bounds() -> None:
    gate = AccessMiddleware(_bare, OPEN, lambda refusal: (b"no", {}), print)
    answers = [asyncio.run(asked(gate, "/", {"host": host})) for host in ("localhost", "evil")]
    assert [one.status for one in answers] == [200, 421]
    for answer in answers:
        assert answer.headers["content-security-policy"] == NO_CONTENT_POLICY
        assert answer.headers["x-content-type-options"] == "nosniff"
        assert answer.headers["referrer-policy"] == "no-referrer"
        assert answer.headers["cache-control"] == "no-store"
        assert "set-cookie" not in answer.headers


def test_a_fault_of_ours_is_told_to_the_server_alone() -> None:
    told: list[str] = []
    gate = AccessMiddleware(
        _breaks, OPEN, lambda refusal: (refusal.title.encode(), {}), told.append
    )
    answer = asyncio.run(asked(gate, "/", {}))
    assert answer.status == 500
    assert "secret" not in answer.text
    assert "the secret of the house" in told[0]
