"""What an agent is asked and says is as `schema/wire.json` has it, and as the model expects."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import jsonschema
import msgspec
import pytest
from msgspec import convert

from iolab.core.host import HostFacts, TargetProbe
from tests.agent.speaker import PATIENCE_S, Agent, Said, SocketServer

SCHEMA: dict[str, Any] = json.loads(
    (Path(__file__).parents[2] / "schema" / "wire.json").read_text(encoding="utf-8")
)
VALIDATOR = jsonschema.Draft202012Validator(SCHEMA)
OF_DEVICES = {"device", "purged", "filesystem"}
"""They need a block device to spare: tests/e2e holds them against the schema."""
OF_THE_CLUSTER = "pod"
"""The one fact of a host that no agent tells: the controller asks the cluster."""


def validator(name: str) -> jsonschema.Draft202012Validator:
    """Of one definition beside the messages."""
    return jsonschema.Draft202012Validator({"$ref": f"#/$defs/{name}", "$defs": SCHEMA["$defs"]})


REQUEST = validator("request")
MESSAGES = {entry["$ref"].rsplit("/", 1)[1] for entry in SCHEMA["oneOf"]}


def connection(agent: Agent, folder: str) -> list[Said]:
    run = agent.begin("run", argv=["sleep", "600"])
    said = [agent.next(run), agent.ask("use", run=run)]
    with SocketServer(Path(folder) / "s") as server:
        connect = agent.begin("connect", dir=folder, name="s", wait_s=5)
        said.append(agent.next(connect))
        server.peer().sendall(b"word")
        said.append(agent.next(connect))
        said.append(agent.ask("disconnect", connection=connect))
    return [*said, *agent.rest(connect), agent.ask("signal", run=run, signal="KILL")]


class Asking(Agent):
    """An agent whose every request is as the schema has it."""

    def send(self, header: dict[str, Any], payload: bytes = b"") -> None:
        if header["do"] != "snapshot-of-what":
            REQUEST.validate(json.loads(json.dumps(header)))
        super().send(header, payload)


def some_of_every_message(agent: Agent, folder: Path) -> list[Said]:
    said = [
        agent.hello,
        agent.ask("clock"),
        agent.ask("snapshot-of-what"),
        agent.ask("sync"),
        agent.ask("leftovers", path="/tmp"),
    ]
    tools = {"fio": ["fio", "--version"], "gone": ["no-such-tool"]}
    said.append(agent.ask("facts", path=str(folder), tools=tools))
    said.append(agent.ask("facts", path=None))
    watch = agent.begin("watch", interval_ms=100)
    said.append(agent.next(watch))
    said.append(agent.ask("unwatch", watch=watch))
    said += agent.rest(watch)
    trace = agent.begin("trace", device="nowhere0", wall_limit_s=60)
    said += [agent.next(trace), agent.ask("unwatch", watch=trace)]
    said += agent.run("sh", "-c", "echo out; echo err >&2")
    said += agent.run("sleep", "600", wall_limit_s=0.1)
    file = str(folder / "file")
    said.append(agent.ask("put", b"content", path=file, mode=0o600))
    said += agent.rest(agent.begin("get", path=file, max_bytes=100))
    said.append(agent.ask("probe", path=str(folder)))
    opened = agent.ask("scratch_open", path=str(folder), name="iolab-scratch-x", owner="me")
    said.append(opened)
    ranks: dict[str, Any] = {"first_rank": 0, "ranks": 2, "total_ranks": 2, "files_per_rank": 10}
    for phase in ("tree-create", "file-create", "file-create"):
        said += agent.rest(agent.begin("metadata", dir=opened["dir"], phase=phase, **ranks))
    said += connection(agent, opened["dir"])
    said += [agent.ask("scratch_close", dir=opened["dir"], keep=False)]
    said.append(agent.ask("ledger_open", name="blocks"))
    said.append(agent.ask("ledger_close", name="blocks"))
    said.append(agent.ask("extents", paths=[file]))
    said.append(agent.ask("evict", paths=[file], system=False))
    said.append(agent.ask("drive_logs", devices=["nvme4095n1", "sda", "nvme4095n1p1"]))
    pid_file = folder / "pid"
    stop = {"action": "stop", "process": str(pid_file)}
    with subprocess.Popen(["sleep", "60"]) as sleeper:
        pid_file.write_text(str(sleeper.pid), encoding="utf-8")
        said.append(agent.ask("resolve", what=stop, targets=[], members=[], timeout_s=30))
        sleeper.kill()
    nothing = {"step": "command", "argv": ["/bin/true"], "timeout_s": 10}
    said.append(agent.ask("step", what=[nothing]))
    said.append(agent.ask("bye"))
    return said


def test_every_message_is_as_promised(program: Path, tmp_path: Path) -> None:
    with Asking(program) as agent:
        said = some_of_every_message(agent, tmp_path)
    for message in said:
        VALIDATOR.validate(message.header)
    assert {message.is_ for message in said} == MESSAGES - OF_DEVICES


def test_the_schema_has_the_verbs_that_an_agent_knows(agent: Agent) -> None:
    verbs = {one["properties"]["do"]["const"]: one for one in SCHEMA["$defs"]["request"]["oneOf"]}
    assert sorted(verbs) == sorted(agent.hello["capabilities"])
    for verb, one in verbs.items():
        known = set(one["properties"]) - {"id", "do"}
        # An agent that takes each of them by its name objects to the first value, if at all.
        for name in known:
            wrong: dict[str, Any] = {name: {"no": "such value"}}
            message = agent.ask(verb, **wrong).header.get("message", "")
            assert f"unknown field `{name}`" not in message, (verb, name)
        more: dict[str, Any] = {"no such argument": 1}
        refused = agent.ask(verb, **more) if verb != "bye" else None
        assert refused is None or refused["code"] == "bad-request"


@pytest.mark.parametrize(
    "job", [{}, {"rate": {"iops": 1000.0}}, {"rate": {"iops": 1000.0}, "arrivals": "poisson"}]
)
def test_the_engine_takes_and_prints_what_the_schema_says(
    program: Path, job: dict[str, Any]
) -> None:
    file = {"path": "/dev/null", "bytes": 1 << 20}
    load = {"files": [file], "rw": "randwrite", "blocks": [{"bytes": 4096}], "depth": 4, **job}
    spec = {"format": 1, "jobs": [load], "direct": False, "runtime_s": 0.3, "interval_ms": 100}
    validator("engineSpec").validate(spec)
    for asked, last in ((spec, "end"), ({**spec, "depht": 1}, "fault")):
        done = subprocess.run(
            [program, "engine"],
            input=json.dumps(asked).encode(),
            capture_output=True,
            check=last == "end",
            timeout=PATIENCE_S,
        )
        lines = [json.loads(line) for line in done.stdout.splitlines()]
        for line in lines:
            validator("engineLine").validate(line)
        assert last in lines[-1]


@pytest.mark.parametrize("is_", sorted(MESSAGES))
def test_the_schema_refuses_a_message_with_a_field_more(is_: str) -> None:
    assert SCHEMA["$defs"][is_]["additionalProperties"] is False
    with pytest.raises(jsonschema.ValidationError):
        VALIDATOR.validate({"id": 1, "is": is_, "more": 1})


def test_the_facts_become_the_model_whole(agent: Agent, tmp_path: Path) -> None:
    facts = agent.ask("facts", path=str(tmp_path), tools={"fio": ["fio", "--version"]})["facts"]
    host = convert(facts, HostFacts)
    known = json.loads(msgspec.json.encode(host))
    assert known.pop(OF_THE_CLUSTER) is None
    assert known == facts
    probed = dict(agent.ask("probe", path=str(tmp_path)).header)
    del probed["id"], probed["is"]
    probe = convert(probed, TargetProbe)
    assert json.loads(msgspec.json.encode(probe)) == probed


def shape(node: dict[str, Any], definitions: dict[str, Any]) -> Any:
    """What a JSON Schema allows, without words: names, types and nulls."""
    if "$ref" in node:
        return shape(definitions[node["$ref"].rsplit("/", 1)[1]], definitions)
    options = node.get("anyOf", node.get("oneOf"))
    if options:
        return frozenset(kind for option in options for kind in as_set(shape(option, definitions)))
    if node.get("type") == "object":
        fields = sorted(node["properties"].items())
        kinds = tuple((name, as_set(shape(part, definitions))) for name, part in fields)
        return frozenset([("object", tuple(sorted(node["required"])), kinds)])
    if node.get("type") == "array":
        return frozenset([("array", as_set(shape(node["items"], definitions)))])
    return as_set(node.get("type", "string"))  # an enum names its words alone


def as_set(kind: Any) -> frozenset[Any]:
    if isinstance(kind, frozenset):
        return kind
    return frozenset(kind if isinstance(kind, list) else [kind])


def test_the_schema_of_facts_is_that_of_the_model() -> None:
    (model,), definitions = msgspec.json.schema_components(
        [HostFacts], ref_template="#/$defs/{name}"
    )
    ours = SCHEMA["$defs"]
    facts = definitions["HostFacts"]
    del facts["properties"][OF_THE_CLUSTER]
    assert shape(ours["HostFacts"], ours) == shape(model, definitions)
