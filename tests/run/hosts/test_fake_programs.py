"""A fake host's programs: started, signalled, missing, and at work on its files."""

from __future__ import annotations

import asyncio

import pytest

from iolab.errors import EngineError
from iolab.run.hosts.fake import FakeHost
from iolab.run.hosts.fake_programs import FakeCall, FakeKill, coreutils
from iolab.run.hosts.fake_script import FakeScript
from iolab.run.key_value.copies import clone, commit_golden, files_in, golden, remove
from iolab.run.key_value.processes import told
from tests.run.virtual_time import run_virtually


async def echo(call: FakeCall) -> int:
    call.say(" ".join([*call.argv[1:], *call.env.values()]).encode())
    call.say(b"oh\n", "stderr")
    return int(call.flags.get("code", "0"))


async def hang(_: FakeCall) -> int:
    await asyncio.sleep(3600)
    return 0


async def die(_: FakeCall) -> int:
    raise FakeKill("KILL")


def host(*, reflinks: bool = True) -> FakeHost:
    programs = {**coreutils(reflinks=reflinks), "echo": echo, "hang": hang, "die": die}
    contents = {"/mnt/source/a": b"12", "/mnt/source/b/c": b"345"}
    return FakeHost("local", FakeScript(programs=programs, contents=contents))


def test_a_program_sees_its_words_and_its_environment_and_is_heard() -> None:
    async def body() -> None:
        fake = host()
        await fake.connect()
        assert await told(fake, ("/bin/echo", "x", "y"), env=(("A", "b"),)) == b"x y b"
        with pytest.raises(EngineError, match=r"ended with exit code 3 \(oh\)"):
            await told(fake, ("echo", "--code=3"))
        with pytest.raises(EngineError, match="There is no nothing to run"):
            await told(fake, ("nothing",))
        with pytest.raises(EngineError, match="was killed by signal 9"):
            await told(fake, ("die",))
        await fake.close()

    run_virtually(body())


def test_a_signal_ends_a_program() -> None:
    async def body() -> None:
        fake = host()
        await fake.connect()
        stream = fake.stream("run", argv=["hang"], env={}, cwd="/", start_at_real_ns=None)
        assert (await anext(stream)).is_ == "started"
        await fake.ask("signal", deadline_s=1, run=stream.id, signal="INT")
        assert (await anext(stream)).header["signal"] == 2
        await fake.close()

    run_virtually(body())


@pytest.mark.parametrize("how", ["reflink", "copy"])
def test_files_are_copied_removed_listed_and_marked(how: str) -> None:
    async def body() -> None:
        fake = host(reflinks=how == "reflink")
        await fake.connect()
        assert await clone(fake, "/mnt/source", "/mnt/to") == how
        assert await files_in(fake, "/mnt/to") == {"/mnt/to/a": 2, "/mnt/to/b/c": 3}
        assert await golden(fake, "/mnt/to") is None
        await commit_golden(fake, "/mnt/to", {"keys": 1})
        assert await golden(fake, "/mnt/to") == {"keys": 1}
        await remove(fake, "/mnt/to")
        assert await files_in(fake, "/mnt/to") == {}
        with pytest.raises(EngineError, match="cannot stat '/mnt/none'"):
            await clone(fake, "/mnt/none", "/mnt/to")
        await fake.close()

    run_virtually(body())
