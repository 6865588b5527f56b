"""Signals become requests in the running loop, and the user is told once of each."""

from __future__ import annotations

import asyncio
import os
import signal

import pytest

from iolab.cli.session import STOPPING_AT_ONCE, STOPPING_TEXT, stop_on_signals


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_each_signal_is_a_request_and_told_once(number: signal.Signals) -> None:
    requests: list[int] = []
    told: list[str] = []

    async def session() -> None:
        heard = asyncio.Event()

        def request() -> str:
            requests.append(1)
            heard.set()
            return STOPPING_TEXT if len(requests) == 1 else STOPPING_AT_ONCE

        with stop_on_signals(request, told.append):
            for _ in range(3):
                heard.clear()
                os.kill(os.getpid(), number)
                await asyncio.wait_for(heard.wait(), 10)

    before = signal.getsignal(signal.SIGTERM)
    asyncio.run(session())
    assert len(requests) == 3
    assert told == [STOPPING_TEXT, STOPPING_AT_ONCE]
    assert signal.getsignal(signal.SIGTERM) == before


def test_an_ignored_signal_stays_ignored() -> None:
    """As under nohup, whose session outlives the terminal."""
    told: list[str] = []

    async def session() -> None:
        with stop_on_signals(lambda: STOPPING_TEXT, told.append):
            os.kill(os.getpid(), signal.SIGHUP)
            await asyncio.sleep(0)

    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        asyncio.run(session())
        assert signal.getsignal(signal.SIGHUP) is signal.SIG_IGN
    finally:
        signal.signal(signal.SIGHUP, before)
    assert told == []


def test_an_outer_context_gets_the_signals_again() -> None:
    """As while pods are removed after the session that ran in them."""
    outer: list[str] = []
    inner: list[str] = []

    async def session() -> None:
        with stop_on_signals(lambda: "outer", outer.append):
            with stop_on_signals(lambda: "inner", inner.append):
                await deliver()
            await deliver()

    async def deliver() -> None:
        os.kill(os.getpid(), signal.SIGTERM)
        for _ in range(3):
            await asyncio.sleep(0.01)

    asyncio.run(session())
    assert (inner, outer) == (["inner"], ["outer"])
