"""Readers of power meters: what they make of answers, and what they say of others."""

from __future__ import annotations

import asyncio
import sys
import time
from collections.abc import Callable

import pytest

from iolab.core.power import ExternalMeterKind, MeterSpec
from iolab.hosts.meters import (
    MeterError,
    MeterReading,
    dcmi_watts,
    open_meter,
    redfish_watts_and_time,
)
from iolab.units import NS_PER_S

ACTIVE = " dc d4 00 b4 00 31 01 d6 00 9d 77 0a 6b e8 03\n 00 00 40\n"
"""What ipmitool printed of a simulated BMC that showed 212 W."""


def read(*command: str, count: int = 1) -> list[MeterReading | None]:
    """The first readings of a program that is a meter."""

    async def readings() -> list[MeterReading | None]:
        meter = open_meter(MeterSpec(name="m", kind=ExternalMeterKind.COMMAND, command=command))
        try:
            return [await meter.read() for _ in range(count)]
        finally:
            await meter.close()

    return asyncio.run(readings())


def printing(text: str) -> tuple[str, ...]:
    code = f"import sys, time; sys.stdout.write({text!r}); sys.stdout.flush(); time.sleep(60)"
    return sys.executable, "-c", code


def test_a_program_prints_seconds_and_watts() -> None:
    now = round(time.time())
    found = read(*printing(f"{now}.5 212.4\n{now + 1}.5 0\n"), count=2)
    assert found == [
        MeterReading(now * NS_PER_S + 500_000_000, 212.4),
        MeterReading((now + 1) * NS_PER_S + 500_000_000, 0.0),
    ]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("212.4\n", "it printed '212.4'"),
        ("now 212\n", "it printed 'now 212'"),
        ("NOW nan\n", "it showed nan W"),
        ("NOW -4\n", "it showed -4 W"),
        ("NOW 1e12\n", "it showed 1e+12 W"),
        ("1e400 4\n", "it printed '1e400 4'"),
        ("1764432000500 212\n", "it printed '1764432000500 212'"),  # milliseconds
        ("12.5 212\n", "it printed the time 12.5, "),  # since its own start
        ("LATER 212\n", "60 min after now"),  # of another time zone
        ("x" * 100_000, "printed no line in time"),
    ],
)
def test_a_line_that_is_none_is_told(text: str, message: str) -> None:
    with pytest.raises(MeterError) as caught:
        read(
            *printing(
                text.replace("NOW", f"{time.time()}").replace("LATER", f"{time.time() + 3600}")
            )
        )
    assert message in caught.value.message
    assert caught.value.hint


def test_a_program_that_ends_or_is_missing_is_told() -> None:
    with pytest.raises(MeterError, match="'true' ended"):
        read("true")
    with pytest.raises(MeterError, match="does not start \\(No such file"):
        read("/no/such/program")


def test_the_raw_answer_of_a_bmc() -> None:
    assert dcmi_watts(ACTIVE) == 212.0


@pytest.mark.parametrize(
    ("output", "message"),
    [
        (ACTIVE.replace("40", "00"), "deactivated"),
        (ACTIVE[:-4], "answered"),
        ("", "answered ''"),
        ("zz", "answered 'zz'"),
        (ACTIVE.replace("dc d4", "dd d4"), "answered"),
    ],
)
def test_an_answer_of_a_bmc_that_is_none(output: str, message: str) -> None:
    with pytest.raises(MeterError, match=message):
        dcmi_watts(output)


@pytest.mark.parametrize(
    ("document", "watts"),
    [
        ({"PowerWatts": {"Reading": 344.2}}, (344.2, None)),
        ({"Reading": 344.2, "ReadingUnits": "W", "ReadingTime": "T"}, (344.2, "T")),
        ({"PowerControl": [{"PowerConsumedWatts": 344}, {"PowerConsumedWatts": 9}]}, (344.0, None)),
    ],
)
def test_the_resources_of_redfish(document: dict[str, object], watts: tuple[float, object]) -> None:
    assert redfish_watts_and_time(document) == watts


@pytest.mark.parametrize(
    "document",
    [
        {},
        {"PowerWatts": 3},
        {"PowerWatts": {"Reading": None}},
        {"Reading": 3262.9, "ReadingUnits": "kW.h"},
        {"Reading": True, "ReadingUnits": "W"},
        {"PowerControl": []},
        {"PowerControl": ["x"]},
        {"PowerWatts": {"Reading": 10**400}},
    ],
)
def test_a_resource_without_watts_is_told(document: dict[str, object]) -> None:
    with pytest.raises(MeterError, match="tells no watts"):
        redfish_watts_and_time(document)


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        (b"no HTTP\r\n\r\n", "BadStatusLine"),
        (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n9\r\n{}", "IncompleteRead"),
        (b"HTTP/1.1 200 OK\r\n\r\n" + b"[" * 100_000, "RecursionError"),
        (b"HTTP/1.1 200 OK\r\n\r\n[]", "no JSON object"),
    ],
)
def test_a_bmc_that_answers_something_else_is_told(answer: bytes, reason: str) -> None:
    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(answer)
        await writer.drain()
        writer.close()

    async def read_once() -> None:
        server = await asyncio.start_server(talk, "127.0.0.1", 0)
        port = server.sockets[0].getsockname()[1]
        address = f"http://127.0.0.1:{port}/redfish/v1/Chassis/1/Power"
        meter = open_meter(MeterSpec(name="bmc", kind=ExternalMeterKind.REDFISH, address=address))
        try:
            await meter.read()
        finally:
            await meter.close()
            server.close()

    with pytest.raises(MeterError) as caught:
        asyncio.run(read_once())
    assert reason in caught.value.message
    assert caught.value.hint


def test_a_password_that_is_not_set_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("BMC_PASSWORD", raising=False)
    spec = MeterSpec(
        name="bmc",
        kind=ExternalMeterKind.DCMI,
        address="b",
        user="u",
        password_variable="BMC_PASSWORD",
    )
    with pytest.raises(MeterError, match="no variable 'BMC_PASSWORD'"):
        open_meter(spec)


def redfish_reading(*answers: Callable[[int], bytes], requests: list[bytes]) -> MeterReading | None:
    """What a meter shows whose server gives these answers in turn; it adds its requests."""
    left = list(answers)

    async def read_once() -> MeterReading | None:
        async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            requests.append(await reader.readuntil(b"\r\n\r\n"))
            writer.write(left.pop(0)(port))
            await writer.drain()
            writer.close()

        server = await asyncio.start_server(talk, "127.0.0.1", 0)
        port = server.sockets[0].getsockname()[1]
        spec = MeterSpec(
            name="bmc",
            kind=ExternalMeterKind.REDFISH,
            address=f"http://127.0.0.1:{port}/redfish/v1/Chassis/1/Power",
            user="bench",
            password_variable="BMC_PASSWORD",
        )
        meter = open_meter(spec)
        try:
            return await meter.read()
        finally:
            await meter.close()
            server.close()

    return asyncio.run(read_once())


def redirecting(target: str) -> Callable[[int], bytes]:
    def answer(port: int) -> bytes:
        return f"HTTP/1.1 308 R\r\nLocation: {target.format(port=port)}\r\n\r\n".encode()

    return answer


def show_watts(_: int) -> bytes:
    return b'HTTP/1.1 200 OK\r\n\r\n{"PowerWatts": {"Reading": 344.2}}'


def test_a_login_follows_a_redirect_on_its_server_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BMC_PASSWORD", "secret")
    requests: list[bytes] = []
    redirect = redirecting("/redfish/v1/Chassis/1/Power/")
    own = redfish_reading(redirect, show_watts, requests=requests)
    assert own is not None
    assert own.watts == 344.2
    assert len(requests) == 2
    assert b"GET /redfish/v1/Chassis/1/Power/ " in requests[1]
    # The same port by another name is another server.
    for other in ("http://localhost:{port}/a", "http://x@127.0.0.1:{port}/a"):
        asked: list[bytes] = []
        with pytest.raises(MeterError, match="another server"):
            redfish_reading(redirecting(other), show_watts, requests=asked)
        assert len(asked) == 1
