"""What a run put is read back after it: what fails there costs no run, and a stop ends it."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from typing import Any, cast

import pytest
from msgspec.structs import replace

from iolab.core.host import HostSpec, HostTransport
from iolab.core.object_store import ObjectStore
from iolab.core.run import PlannedRun
from iolab.errors import EngineError, HostError, Interrupted
from iolab.hosts.answers import ExitedAnswer
from iolab.hosts.barrier import StopRequest
from iolab.hosts.connect import LocalHost
from iolab.hosts.engine import Command
from iolab.hosts.remote_process import ProcessEnding
from iolab.loads.objects import store_tasks
from iolab.loads.objects.credentials import Credentials
from iolab.loads.objects.data_set import required_data_set
from iolab.loads.objects.driver import GeneratorLimit, ObjectsDriver
from iolab.loads.objects.engine import Document, ObjectStoreAccess, engine_command
from iolab.loads.objects.study import ObjectsStudyKind
from iolab.loads.objects.workload import ObjectOperationCount, ObjectsHostDetails, ReadBackCounts
from iolab.session.context import SessionContext
from iolab.session.driver import HostRunInProgress
from iolab.study.parse import StudyOverrides
from iolab.targets.work_directory import WorkDirectory
from tests.loads.objects.records import RUN
from tests.plans import make_plan, parse_study

STUDY = """format = 1
id = "objects"
[target]
endpoint = "http://127.0.0.1:9"
bucket = "bucket"
[method]
runtime = "20s"
repeats = 2
[[workload]]
id = "mixed"
engine = "s3"
get = 1
put = 1
objects = 10
size = "4k"
concurrency = 1
timeout = "7s"
read_back = true
"""
PUTS = ObjectOperationCount("object_put", 9, 1, 10)
RUN_OF_PUTS = replace(RUN, counts=(PUTS,), put_objects=9)


def end_line(compared: int, **errors: int) -> bytes:
    table = {"operations": compared, "attempt_errors": errors}
    return json.dumps({"end": {"objects": {"kinds": {"object_get": table}}}}).encode() + b"\n"


class Session:
    """What the driver needs of one: a study, a host, and the user's wish to stop."""

    def __init__(self) -> None:
        self.study = parse_study(STUDY, "objects.toml", StudyOverrides())
        self.runs = make_plan(self.study).runs
        self.stop = StopRequest()
        self.session_id = "s-1"
        host = LocalHost(HostSpec("local", HostTransport.LOCAL))
        self.hosts = {"local": host}
        self.state = HostRunInProgress(WorkDirectory(host, "/tmp", None, ""), details=RUN_OF_PUTS)
        self.driver = ObjectsDriver()
        store = ObjectStore(("http://127.0.0.1:9",), "bucket")
        access = ObjectStoreAccess(store, None, Credentials("KEY", "SECRET"))
        self.driver._stores[self.run.point.configuration] = access
        self.state.command = engine_command(access, {}, "/", limit_s=1)

    @property
    def run(self) -> PlannedRun:
        return self.runs[0]

    def begin_session_phase(self, *_: object) -> None:
        """Nobody looks on."""

    async def read_back(self) -> ReadBackCounts | None:
        """What is known of the run's objects when all is done."""
        session = cast(SessionContext, self)
        await self.driver.do_steps_after_load(session, self.run, [self.state])
        return ObjectsHostDetails.require_type(self.state.details).read_back


class FakeAgent:
    """Answers tasks; one that `waits` ends when it is halted."""

    def __init__(self, answer: bytes | Exception, *, waits: bool = False) -> None:
        self.answer = answer
        self.waits = waits
        self.documents: list[Document] = []
        self.commands: list[Command] = []
        self.begun = asyncio.Event()

    async def run(
        self, _: object, command: Command, halt: asyncio.Event, feed: Callable[[bytes], object]
    ) -> ProcessEnding:
        document = json.loads(command.job_file)
        self.documents.append(document)
        self.commands.append(command)
        self.begun.set()
        if document["task"] == "delete":
            feed(b'{"delete": {"left": 0}}\n')
        elif isinstance(self.answer, Exception):
            raise self.answer
        else:
            if self.waits:
                await halt.wait()
            feed(self.answer)
        code = 2 if self.answer == FAULT else 0
        exited = ExitedAnswer(
            code=code, signal=None, user_s=0, system_s=0, max_rss_bytes=0, real_ns=0
        )
        return ProcessEnding(exited, "", halt.is_set())


FAULT = b'{"fault": ["http://127.0.0.1:9: connection refused (connect-refused)."]}\n'


def read_back_with(
    monkeypatch: pytest.MonkeyPatch, answer: bytes | Exception
) -> tuple[Session, FakeAgent, ReadBackCounts | None]:
    session, agent = Session(), FakeAgent(answer)
    monkeypatch.setattr(store_tasks, "run_process", agent.run)
    return session, agent, asyncio.run(session.read_back())


def test_all_that_was_begun_is_read_back_and_then_removed(monkeypatch: pytest.MonkeyPatch) -> None:
    session, agent, count = read_back_with(monkeypatch, end_line(9, NoSuchKey=1))
    assert count == ReadBackCounts(10, 9, 1, 0, 0)
    assert [document["task"] for document in agent.documents] == ["load", "delete"]
    reading, command = agent.documents[0], agent.commands[0]
    assert (reading["objects"]["count"], reading["timeout_s"]) == (10, 7)
    # It ends by itself, and has the time to tell what it read, in few lines.
    assert command.wall_limit_s > reading["runtime_s"] + reading["timeout_s"]
    assert reading["interval_ms"] >= reading["runtime_s"] * 1000
    assert session.state.error is None


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        (FAULT, "connection refused"),
        (end_line(11), "11 objects back, where 10"),
        (end_line(-1), "it told no operations"),
        (b'{"end": 5}\n', "no object"),
        (b"", "it told no end"),
        (HostError("Host 'local' is gone.", "See it."), "is gone"),
        (EngineError("s3 was killed.", "Run again."), "was killed"),
    ],
)
def test_reading_back_that_fails_costs_no_run(
    monkeypatch: pytest.MonkeyPatch, answer: bytes | Exception, reason: str
) -> None:
    session, agent, count = read_back_with(monkeypatch, answer)
    assert count is not None
    assert (count.objects, count.unread, count.compared) == (10, 10, 0)
    assert reason in count.fault
    assert session.state.error is None
    assert agent.documents[-1]["task"] == "delete"


def test_a_request_to_stop_ends_it(monkeypatch: pytest.MonkeyPatch) -> None:
    session, agent = Session(), FakeAgent(end_line(3), waits=True)
    monkeypatch.setattr(store_tasks, "run_process", agent.run)

    async def stop_meanwhile() -> ReadBackCounts | None:
        reading = asyncio.create_task(session.read_back())
        await agent.begun.wait()
        session.stop.request_stop()
        return await reading

    assert asyncio.run(stop_meanwhile()) is None
    assert [document["task"] for document in agent.documents] == ["load", "delete"]
    assert session.state.error is None


def test_a_request_to_stop_ends_a_layout(monkeypatch: pytest.MonkeyPatch) -> None:
    session, agent = Session(), FakeAgent(b'{"layout": {"objects": 3}}\n', waits=True)
    monkeypatch.setattr(store_tasks, "run_process", agent.run)
    data_set = required_data_set(session.study, session.run.point)
    assert data_set is not None
    access = session.driver._stores[session.run.point.configuration]

    async def stop_meanwhile() -> None:
        context = cast(SessionContext, session)
        laying = session.driver._lay_out_missing_objects(
            context, session.run, [session.state], access, data_set
        )
        task = asyncio.create_task(laying)
        await agent.begun.wait()
        session.stop.request_stop()
        await task

    asyncio.run(stop_meanwhile())
    assert session.driver._data_set_bytes == {}
    assert session.state.error is None


def test_a_stopped_task_is_no_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    session, agent = Session(), FakeAgent(b'{"layout": {}}\n', waits=True)
    monkeypatch.setattr(store_tasks, "run_process", agent.run)
    session.stop.request_stop()
    access = session.driver._stores[session.run.point.configuration]
    with pytest.raises(Interrupted):
        asyncio.run(
            store_tasks.run_object_store_task(
                session.hosts["local"], access, {"task": "layout"}, "layout", stop=session.stop
            )
        )


def test_a_run_that_failed_is_not_read_back(monkeypatch: pytest.MonkeyPatch) -> None:
    session, agent = Session(), FakeAgent(end_line(10))
    monkeypatch.setattr(store_tasks, "run_process", agent.run)
    session.state.error = "s3 on host 'local' was killed."
    assert asyncio.run(session.read_back()) is None
    assert [document["task"] for document in agent.documents] == ["delete"]


def test_encryption_takes_its_part_of_the_generator_limit() -> None:
    generator_limit = GeneratorLimit(ops_per_s=100_000.0, threads=2)
    done = RUN.done_count
    # 20 µs an operation on each of two threads, and 20 µs more of encryption.
    assert generator_limit.ops_per_s_with_tls(replace(RUN, tls_ns=20_000 * done)) == pytest.approx(
        50_000
    )
    assert generator_limit.ops_per_s_with_tls(RUN) == 100_000
    assert generator_limit.ops_per_s_with_tls(replace(RUN, tls_ns=5, counts=())) == 100_000
    assert GeneratorLimit(fault="none").ops_per_s_with_tls(replace(RUN, tls_ns=5)) is None


def test_a_plan_has_the_time_of_reading_back() -> None:
    session = Session()
    demand = ObjectsStudyKind().time_and_space_demand(
        session.study, session.runs, 1e9, cast(Any, None)
    )
    items = dict(demand.own_preparation_time_items)
    assert items["reading back what 2 runs put"] == 2 * session.study.method.load_seconds_range[1]
