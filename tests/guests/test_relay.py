"""A connection through a node's agent: bytes in order both ways, and nobody held up by anybody."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import pytest

from iolab.core.limits import UNREAD_BYTES_MAX
from iolab.errors import HostError
from iolab.guests.qemu import UNSENT_BYTES, SocketRelay
from iolab.hosts.host import Host
from tests.fakes.agent import FakeRefusal
from tests.fakes.guests import FakeNodeAgent, FakeSocket
from tests.fakes.host import FakeHost
from tests.fakes.script import FakeScript
from tests.fakes.virtual_time import run_virtually
from tests.guests.fleet import well

FOLDER = "/mnt/bench/iolab-scratch-node"


class Peer:
    """The other end of a socket that lies in the node's folder."""

    def __init__(self) -> None:
        self.heard = bytearray()
        self.gone = asyncio.Event()
        self.busy = 0
        self.socket = FakeSocket(self._hear, self.gone.set, lambda: None, asyncio.Event())

    def _hear(self, piece: bytes) -> None:
        if self.busy:
            self.busy -= 1
            raise FakeRefusal("busy", "the connection has 8388608 bytes unsent already")
        self.heard += piece


def play(
    act: Callable[[SocketRelay, Peer, Host], Awaitable[None]], script: FakeScript | None = None
) -> None:
    async def all_of_it() -> None:
        host = FakeHost("node", script or FakeScript(guests=well))
        await host.connect()
        await host.request(
            "scratch_open", deadline_s=1, path="/mnt/bench", name="iolab-scratch-node", owner="x"
        )
        peer, agent = Peer(), host.agent
        assert isinstance(agent, FakeNodeAgent)
        agent.sockets[f"{FOLDER}/a.agent"] = peer.socket
        relay = await SocketRelay.connect(host, FOLDER, "a.agent", 1.0)
        try:
            await act(relay, peer, host)
        finally:
            await relay.close_and_wait()
            await host.close()

    run_virtually(all_of_it())


def test_bytes_arrive_in_order_both_ways() -> None:
    async def act(relay: SocketRelay, peer: Peer, _: Host) -> None:
        said = b"".join(number.to_bytes(4, "big") for number in range(100_000))
        for start in range(0, len(said), 7_001):
            relay.write(said[start : start + 7_001])
            await relay.drain()
        peer.socket.tell(b"one")
        peer.socket.tell(b"two")
        assert await relay.reader.readexactly(6) == b"onetwo"
        assert relay.has_received.is_set()
        await relay.close_and_wait()
        assert bytes(peer.heard) == said

    play(act)


def test_what_a_busy_connection_refuses_is_sent_again_and_not_twice() -> None:
    async def act(relay: SocketRelay, peer: Peer, _: Host) -> None:
        peer.busy = 3
        relay.write(b"first")
        await asyncio.sleep(1)
        relay.write(b"second")
        await asyncio.sleep(1)
        assert bytes(peer.heard) == b"firstsecond"

    play(act)


def test_whoever_writes_waits_while_the_other_end_does_not_read() -> None:
    async def act(relay: SocketRelay, peer: Peer, _: Host) -> None:
        peer.busy = 1_000_000
        relay.write(bytes(UNSENT_BYTES + 1))
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(10):
                await relay.drain()

    play(act)


def test_its_close_calls_the_connection_off() -> None:
    async def act(relay: SocketRelay, peer: Peer, _: Host) -> None:
        relay.write(b"bye")
        relay.close()
        await peer.gone.wait()
        assert bytes(peer.heard) == b"bye"
        assert await relay.reader.read() == b""
        assert relay.ended.is_set()
        with pytest.raises(BrokenPipeError):
            relay.write(b"more")

    play(act)


def test_the_end_of_the_other_side_is_the_end_of_the_stream() -> None:
    async def act(relay: SocketRelay, peer: Peer, _: Host) -> None:
        peer.socket.tell(b"last")
        peer.socket.ended.set()
        assert await relay.reader.read() == b"last"
        with pytest.raises(BrokenPipeError):
            await relay.drain()

    play(act)


def test_a_reader_that_never_reads_is_cut_off_and_the_node_goes_on() -> None:
    async def act(relay: SocketRelay, peer: Peer, host: Host) -> None:
        piece = bytes(1 << 20)
        for _ in range((UNREAD_BYTES_MAX >> 20) + 8):
            peer.socket.tell(piece)
            await asyncio.sleep(0.1)
        await host.request("clock", deadline_s=1)
        assert host.lost_reason is None
        await peer.gone.wait()
        with pytest.raises(ConnectionResetError):
            await relay.reader.readexactly(1 << 30)

    play(act)


def test_a_reader_that_reads_may_be_given_any_amount() -> None:
    async def act(relay: SocketRelay, peer: Peer, _: Host) -> None:
        piece = bytes(1 << 20)
        for __ in range(2 * (UNREAD_BYTES_MAX >> 20)):
            peer.socket.tell(piece)
            assert await relay.reader.readexactly(len(piece)) == piece

    play(act)


def test_the_loss_of_the_node_ends_it() -> None:
    async def act(relay: SocketRelay, _: Peer, host: Host) -> None:
        host.end_as_lost("was cut off")
        await relay.ended.wait()
        assert await relay.reader.read() == b""

    play(act)


def test_a_socket_that_never_comes_is_told() -> None:
    async def act(_: SocketRelay, __: Peer, host: Host) -> None:
        with pytest.raises(HostError, match=r"there is no socket .*/b\.agent"):
            await SocketRelay.connect(host, FOLDER, "b.agent", 2.0)
        assert host.lost_reason is None

    play(act)


def test_a_node_that_never_answers_is_given_up() -> None:
    async def act(_: SocketRelay, __: Peer, host: Host) -> None:
        mute = FakeHost("mute", FakeScript(guests=well, silent=frozenset({"connect"})))
        await mute.connect()
        with pytest.raises(HostError, match="did not answer 'connect' within 1 s"):
            await SocketRelay.connect(mute, FOLDER, "a.agent", 1.0)
        await mute.close()
        assert host.lost_reason is None

    play(act)


def test_a_connection_that_nobody_waits_for_any_more_takes_no_socket() -> None:
    async def act(_: SocketRelay, __: Peer, host: Host) -> None:
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(5):
                await SocketRelay.connect(host, FOLDER, "late.agent", 60.0)
        assert isinstance(host, FakeHost)
        late, agent = Peer(), host.agent
        assert isinstance(agent, FakeNodeAgent)
        agent.sockets[f"{FOLDER}/late.agent"] = late.socket
        await asyncio.sleep(1)
        assert late.socket.say is None

    play(act)
