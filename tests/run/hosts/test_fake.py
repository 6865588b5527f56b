"""The fake host says only what the wire's schema allows: a test on it means something."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

from jsonschema import Draft202012Validator

from iolab.run.hosts.answers import FilesystemAnswer, read_answer
from iolab.run.hosts.fake import FakeHost
from tests.run.session.stage import Stage

SCHEMA = Path(__file__).parents[3] / "schema" / "wire.json"


class Overheard:
    """Every header that fake agents said."""

    def __init__(self) -> None:
        self.kinds: set[str] = set()
        self.faults: list[str] = []
        self._validator = Draft202012Validator(json.loads(SCHEMA.read_text(encoding="utf-8")))

    def hear(self, header: dict[str, Any]) -> None:
        self.kinds.add(header["is"])
        for fault in self._validator.iter_errors(header):
            self.faults.append(f"{header['is']}: {fault.message[:200]}")


def test_all_that_a_fake_says_fits_the_schema() -> None:
    stage = Stage().play()
    overheard = Overheard()
    for header in stage.hosts["local"].agent.said:
        overheard.hear(json.loads(json.dumps(header)))
    assert overheard.faults == []
    assert overheard.kinds >= {
        "hello",
        "clock",
        "facts",
        "sample",
        "started",
        "output",
        "exited",
        "probed",
        "scratch",
        "extents",
        "evicted",
        "error",
        "done",
    }


def test_a_file_system_of_a_fake_lives_in_its_folder() -> None:
    async def play() -> FakeHost:
        host = FakeHost()
        await host.connect()
        name = "iolab-scratch-local"
        told = await host.ask("scratch_open", deadline_s=5, path="/t", name=name, owner="me")
        folder = told.header["dir"]
        told = await host.ask("filesystem_open", deadline_s=5, dir=folder, image_bytes=1 << 30)
        made = read_answer(host.name, FilesystemAnswer, told)
        assert made == FilesystemAnswer(dir=f"{folder}/fs", device="loop7", direct=True)
        facts = await host.ask("facts", deadline_s=5, path=made.dir, tools={})
        assert facts.header["facts"]["target"]["devices"] == ["loop7", "nvme0n1"]
        sample = await host.ask("snapshot", deadline_s=5)
        assert [row[0] for row in sample.header["disks"]] == ["nvme0n1", "loop7"]
        assert host.left_behind == [folder, made.dir, "an open link"]
        await host.ask("scratch_close", deadline_s=5, dir=folder, keep=False)
        assert host.left_behind == ["an open link"]
        await host.close()
        return host

    overheard = Overheard()
    for header in asyncio.run(play()).agent.said:
        overheard.hear(json.loads(json.dumps(header)))
    assert overheard.faults == []
    assert "filesystem" in overheard.kinds
