"""A program that stands in for Java: it plays Cassandra's node and iolab's tools for it.

It keeps what a node has where the real one would, below the node's folder, so that a copy of that
folder has it too. `World` is how a test sees and steers it.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from iolab.hosts.host import Host
from iolab.loads.keyvalue.java import JavaKitName

PROGRAM = """#!{python} -IS
import json, os, signal, sys, time
from pathlib import Path

world = Path({world!r})
words = sys.argv[1:]


def steer(name):
    path = world / name
    return path.read_text() if path.exists() else None


def tell(document):
    print(json.dumps(document), flush=True)


def counters():
    return {{"real_ns": time.time_ns(), "counters": {{"sstables": 1, "client_reads": None}}}}


def note(text):
    with open(world / "asked", "a") as asked:
        asked.write(text + "\\n")


def end(*_):
    note("CassandraDaemon ended")
    sys.exit(143)


def node():
    config = next(w for w in words if w.startswith("-Dcassandra.config=file://"))
    options = json.loads(Path(config.partition("file://")[2]).read_text())
    if steer("dies"):
        print(steer("dies"), flush=True)
        sys.exit(3)
    data = Path(options["data_file_directories"][0])
    (data / "system").mkdir(parents=True, exist_ok=True)
    (world / "data").unlink(missing_ok=True)
    (world / "data").symlink_to(data)
    signal.signal(signal.SIGTERM, end)
    print("INFO  x Server - Starting listening for CQL clients on /127.0.0.1:9042", flush=True)
    while True:
        time.sleep(0.02)
        if steer("breaks"):
            print("ERROR x Storage - " + steer("breaks"), flush=True)
            os._exit(100)
        if steer("mutters"):
            print(steer("mutters"), flush=True)
            (world / "mutters").unlink()


def table(keyspace):
    return world / "data" / keyspace / "usertable.json"


def described(keyspace):
    found = table(keyspace)
    told = json.loads(found.read_text()) if found.exists() else None
    return {{
        "version": "4.0.17",
        "nodes": 1,
        "replication": {{"class": "SimpleStrategy", "replication_factor": told["replication"]}}
        if told
        else None,
        "tables": 1 if told else 0,
        "comment": told and told["comment"],
        "columns": told and told["columns"],
        "key": told and told["key"],
    }}


def schema(given):
    keyspace, do = given["keyspace"], given["do"]
    found = table(keyspace)
    if do == "create" and found.exists():
        tell({{"refused": "Cannot add already existing table"}})
        return
    if do == "create":
        found.parent.mkdir(parents=True, exist_ok=True)
        columns = {{"y_id": "text"}}
        columns |= {{"field%d" % n: "text" for n in range(int(given["fields"]))}}
        made = dict(columns=columns, key=["y_id"], rows=0)
        made |= dict(comment=given["comment"], replication=given["replication"])
        found.write_text(json.dumps(made))
    if do == "mark":
        marked = json.loads(found.read_text()) | {{"comment": given["comment"]}}
        found.write_text(json.dumps(marked))
    if do == "drop":
        found.unlink()
    tell(described(keyspace))


if "-version" in words:
    print(steer("version") or 'openjdk version "17.0.15" 2025-04-15', file=sys.stderr)
    sys.exit()
main = next(at for at, w in enumerate(words) if w.startswith(("iolab.", "org.")))
given = dict(w.split("=", 1) for w in words[main + 1 :])
tool = words[main].rpartition(".")[2]
note(tool + " " + given.get("do", ""))
if tool == "CassandraDaemon":
    node()
elif steer("silent"):
    tell({{"refused": steer("silent")}})
elif tool == "Preflight":
    kernel = {{"max_map_count": 65530, "swappiness": 60}}
    ports = {{"storage_port": 7000, "jmx_port": 7199}}
    tell({{"java": "17.0.15", "vendor": "x", "taken": steer("taken"), **ports, **kernel}})
elif tool == "Schema":
    schema(given)
elif tool == "Rows":
    rows = json.loads(table(given["keyspace"]).read_text())["rows"]
    tell({{"rows": rows, "ranges": int(given["ranges"]), "sample": int(given["sample"])}})
elif given["do"] == "watch":
    if steer("mute"):
        tell({{"refused": steer("mute")}})
    while not steer("mute"):
        tell(counters())
        time.sleep(0.05)
else:
    tell(counters())
"""


@dataclass(frozen=True)
class World:
    """The folder of a fake Java: `java` is its path, the rest steers and shows what it did."""

    folder: Path

    @property
    def java(self) -> str:
        return str(self.folder / "java")

    @property
    def asked(self) -> list[str]:
        """What was started, in order."""
        path = self.folder / "asked"
        return path.read_text(encoding="utf-8").splitlines() if path.exists() else []

    def steer(self, name: str, text: str | None) -> None:
        """Let it be so from now on; None takes it back."""
        path = self.folder / name
        if text is None:
            path.unlink(missing_ok=True)
        else:
            path.write_text(text, encoding="utf-8")

    def table(self) -> dict[str, Any] | None:
        """The table that the node has which was started last."""
        path = self._table
        return json.loads(path.read_bytes()) if path.exists() else None

    def change(self, **more: object) -> None:
        """The same with other contents, such as `rows`."""
        path = self._table
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps((self.table() or {}) | more), encoding="utf-8")

    def loads(self, rows: int) -> Callable[[], Any]:
        """A load that writes so many rows."""

        async def load() -> None:
            self.change(rows=rows)

        return load

    @property
    def _table(self) -> Path:
        return self.folder / "data" / "iolab" / "usertable.json"


def fake_java(folder: Path) -> World:
    """A new one, in a folder that is not there yet."""
    folder.mkdir()
    path = folder / "java"
    path.write_text(PROGRAM.format(python=sys.executable, world=str(folder)), encoding="utf-8")
    path.chmod(0o755)
    return World(folder)


async def no_kits(
    host: Host, name: JavaKitName, version: str, directory: str, say: Callable[[str], None]
) -> tuple[str, ...]:
    """Jars that nobody opens."""
    return (f"/nowhere/{name}-{version}.jar", "/nowhere/jamm-0.3.2.jar")


def kill(pid: int | None) -> None:
    """As the kernel does when memory is short."""
    assert pid is not None
    os.kill(pid, 9)
