"""The agent of a fake host: the wire's verbs answered from a script, in the running loop's time."""

from __future__ import annotations

import asyncio
import errno
import json
import os
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any, ClassVar

from msgspec import to_builtins

from iolab.hosts.channel import encode_frame
from tests.fakes.fio import FakeJob, FakeLoad, ios_until, read_job
from tests.fakes.machine import DEVICE, LOOP, DiskUse, device_facts, machine_facts, on_loop
from tests.fakes.metadata import FakePhase
from tests.fakes.process import Mortal, comes_within, exited
from tests.fakes.programs import FakeCall, FakeRun, moved, opened_ledger, remove_inside
from tests.fakes.script import FakeProcesses, FakeScript, loop_real_ns


class FakeRefusal(Exception):
    """A request that the script or the state of things refuses."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code = code
        self.message = message


@dataclass(frozen=True, slots=True)
class FakeRequest:
    """One request as the agent got it."""

    id: int
    verb: str
    arguments: dict[str, Any]
    content: bytes


class FakeAgent:
    """Answers frames by `say`; `break_off` ends the connection. `asked` is every request."""

    def __init__(
        self, script: FakeScript, say: Callable[[bytes], None], break_off: Callable[[], None]
    ) -> None:
        self.script = script
        self.asked: list[tuple[str, dict[str, Any]]] = []
        self.processes: dict[int, Mortal] = {}
        self.trees: set[str] = set()
        self.folders: set[str] = set()
        self.filesystems: dict[str, str] = {}
        self.files: dict[str, int] = {} if script.shared is None else script.shared
        self.contents: dict[str, bytes] = {**script.contents}
        self.undos: dict[str, list[dict[str, Any]]] = {}
        self.undone: dict[str, dict[str, Any]] = {}
        self.steps: list[dict[str, Any]] = []
        self.hole_bytes = script.hole_bytes
        self.said: list[dict[str, Any]] = []
        self.swept: list[str] = []
        self.disk = DiskUse()
        self._say = say
        self.break_off = break_off
        self.mute = False
        self._heard = bytearray()
        self._tasks: set[asyncio.Task[None]] = set()
        self._watches: dict[int, asyncio.Event] = {}
        self._samples = 0
        self._engine = FakeProcesses(script)

    def greet(self) -> None:
        """The hello."""
        if "hello" in self.script.dies:
            self.break_off()
            return
        verbs = ["facts", "sample", "run"]
        told = {"version": "0.0.0", "pid": 4242, "uid": 0, "runs_end_by": None}
        self.tell(0, {"is": "hello", "wire": 2, "capabilities": verbs, **told})

    def hear(self, piece: bytes) -> None:
        """Take bytes from the controller; each whole frame is served by a task of its own."""
        self._heard += piece
        while len(self._heard) >= 8:
            header = int.from_bytes(self._heard[:4], "little")
            payload = int.from_bytes(self._heard[4:8], "little")
            if len(self._heard) < 8 + header + payload:
                return
            said = json.loads(self._heard[8 : 8 + header])
            content = bytes(self._heard[8 + header : 8 + header + payload])
            del self._heard[: 8 + header + payload]
            request = FakeRequest(said.pop("id"), said.pop("do"), said, content)
            task = asyncio.get_running_loop().create_task(self._serve(request))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

    def lease_ends(self) -> None:
        """The controller is gone: nothing stays; `swept` keeps what had to be removed then."""
        self.mute = True
        self.swept += [*(f"run {run}" for run in self.processes), *self.folders]
        self.swept += self.filesystems
        for task in self._tasks:
            task.cancel()
        self.processes.clear()
        self.trees.clear()
        for folder in self.folders:
            remove_inside(self.contents, folder)
        self.folders.clear()
        self.filesystems.clear()
        self.files.clear()

    def tell(self, request_id: int, message: dict[str, Any], payload: bytes = b"") -> None:
        """Send a message, unless the host has fallen silent."""
        if not self.mute:
            self.said.append({"id": request_id, **message})
            self._say(encode_frame({"id": request_id, **message}, payload))

    async def _serve(self, request: FakeRequest) -> None:
        self.asked.append((request.verb, request.arguments))
        await asyncio.sleep(self.script.delay_s)
        if request.verb in self.script.silent:
            return
        if request.verb in self.script.dies:
            self.break_off()
            return
        if request.verb in self.script.garbage:
            self._say(b"\xff" * 64)
            return
        final = await self._answer(request)
        await asyncio.sleep(self.script.delay_s)
        self.tell(request.id, final)
        if request.verb == "bye":
            self.lease_ends()
            self.break_off()

    async def _answer(self, request: FakeRequest) -> dict[str, Any]:
        if request.verb in self.script.refuses:
            code, message = self.script.refuses[request.verb]
            return {"is": "error", "code": code, "message": message}
        try:
            return await self._verbs[request.verb](self, request)
        except FakeRefusal as fault:
            return {"is": "error", "code": fault.code, "message": fault.message}

    async def _clock(self, _: FakeRequest) -> dict[str, Any]:
        mono_ns, real_ns = self._mono_ns(), self.real_ns()
        return {"is": "clock", "mono_ns": mono_ns, "real_ns": real_ns, "tsc": mono_ns * 23 // 10}

    async def _facts(self, request: FakeRequest) -> dict[str, Any]:
        path = request.arguments["path"]
        facts = self.script.facts or machine_facts(path)
        if self.filesystems.get(path) == LOOP:
            facts = on_loop(facts)
        known = to_builtins(facts)
        del known["pod"]  # The cluster tells it, and no agent.
        return {"is": "facts", "facts": known}

    async def _probe(self, _: FakeRequest) -> dict[str, Any]:
        return {"is": "probed", **to_builtins(self.script.probe)}

    async def _snapshot(self, _: FakeRequest) -> dict[str, Any]:
        return {"is": "sample", **self._sample()}

    @property
    def open_watches(self) -> tuple[int, ...]:
        """The requests of watches that are not called off."""
        return tuple(self._watches)

    async def _watch(self, request: FakeRequest) -> dict[str, Any]:
        off = self._watches[request.id] = asyncio.Event()
        while not off.is_set():
            self.tell(request.id, {"is": "sample", **self._sample()})
            await comes_within(off, request.arguments["interval_ms"] / 1000)
        return {"is": "done"}

    async def _unwatch(self, request: FakeRequest) -> dict[str, Any]:
        off = self._watches.pop(request.arguments["watch"], None)
        if off is None:
            raise FakeRefusal(
                "bad-request", f"no watch with id {request.arguments['watch']} is under way"
            )
        off.set()
        return {"is": "done"}

    async def _trace(self, request: FakeRequest) -> dict[str, Any]:
        off = self._watches[request.id] = asyncio.Event()
        await off.wait()
        return {"is": "trace", "device": request.arguments["device"], "reason": "it has no kernel"}

    async def _signal(self, request: FakeRequest) -> dict[str, Any]:
        process = self.processes.get(request.arguments["run"])
        if process is None:
            raise FakeRefusal(
                "bad-request", f"no run with id {request.arguments['run']} is under way"
            )
        process.strike(request.arguments["signal"])
        return {"is": "done"}

    async def _bye(self, _: FakeRequest) -> dict[str, Any]:
        return {"is": "done", "left": list(self.script.leftovers_at_close)}

    async def _scratch_open(self, request: FakeRequest) -> dict[str, Any]:
        folder = f"{request.arguments['path']}/{request.arguments['name']}"
        if folder in self.folders:
            raise FakeRefusal("busy", f"{folder} is held by {request.arguments['owner']}")
        self.folders.add(folder)
        left_over = self.script.left_over_bytes
        return {"is": "scratch", "dir": folder, "left_over_bytes": left_over}

    async def _get(self, request: FakeRequest) -> dict[str, Any]:
        """A file of a program, or the mark in a scratch folder of this host or of one beside it."""
        content = self.contents.get(request.arguments["path"])
        if content is not None:
            self.tell(request.id, {"is": "chunk"}, content)
            return moved(content)
        folder, _, name = str(request.arguments["path"]).rpartition("/")
        if folder not in self.folders and self.script.shared is None:
            raise FakeRefusal("ENOENT", f"{folder}/{name}: {os.strerror(errno.ENOENT)}")
        return {"is": "done", "size": len(folder), "sha256": folder.rpartition("/")[2][-64:]}

    async def _put(self, request: FakeRequest) -> dict[str, Any]:
        self.contents[request.arguments["path"]] = request.content
        return moved(request.content)

    async def _scratch_close(self, request: FakeRequest) -> dict[str, Any]:
        folder = request.arguments["dir"]
        self.folders.remove(folder)
        self.filesystems.pop(f"{folder}/fs", None)
        if not request.arguments["keep"]:
            remove_inside(self.files, folder)
            remove_inside(self.contents, folder)
        return {"is": "done"}

    async def _device(self, request: FakeRequest) -> dict[str, Any]:
        """The machine's one disk, which is sound but for what the script objects to."""
        return device_facts(request.arguments["path"], self.script.objections)

    async def _device_open(self, request: FakeRequest) -> dict[str, Any]:
        facts = device_facts(request.arguments["path"], self.script.objections)
        if facts["objections"] or request.arguments["path"] in self.folders:
            raise FakeRefusal("refused", f"{facts['name']} is in use")
        self.folders.add(request.arguments["path"])
        return facts

    async def _device_close(self, request: FakeRequest) -> dict[str, Any]:
        self.folders.remove(request.arguments["path"])
        return {"is": "done"}

    async def _filesystem_open(self, request: FakeRequest) -> dict[str, Any]:
        """An XFS on the machine's one disk, or on a loop device there."""
        asked = request.arguments
        mount = f"{asked['dir']}/fs"
        if asked["dir"] not in self.folders:
            message = f"{asked['dir']} is not a scratch folder held here"
            raise FakeRefusal("bad-request", message)
        if mount in self.filesystems:
            raise FakeRefusal("busy", f"{mount} is mounted already")
        on_image = asked.get("image_bytes") is not None
        if not on_image and self.script.objections:
            raise FakeRefusal("refused", f"{DEVICE} is {self.script.objections[0]}")
        self.filesystems[mount] = device = LOOP if on_image else DEVICE
        kept = on_image and self.script.kept_image
        direct = not on_image or self.script.direct_image
        told = {"dir": mount, "device": device, "kept": kept, "direct": direct}
        return {"is": "filesystem", **told}

    async def _filesystem_close(self, request: FakeRequest) -> dict[str, Any]:
        mount = f"{request.arguments['dir']}/fs"
        if self.filesystems.pop(mount, None) is None:
            raise FakeRefusal("bad-request", f"no file system is held in {mount}")
        for path in [path for path in self.files if path.startswith(f"{mount}/")]:
            del self.files[path]
        return {"is": "done"}

    async def _drive_logs(self, _: FakeRequest) -> dict[str, Any]:
        return {"is": "drives", "drives": []}

    async def _purge(self, _: FakeRequest) -> dict[str, Any]:
        return {"is": "purged", "bytes": 1 << 40}

    async def _extents(self, request: FakeRequest) -> dict[str, Any]:
        sizes = [self._size_of(path) for path in request.arguments["paths"]]
        holes = self.hole_bytes
        return {
            "is": "extents",
            "method": self.script.extents_method,
            "file_count": len(sizes),
            "size_bytes": sum(sizes),
            "written_bytes": sum(sizes) - holes,
            "unwritten_bytes": 0,
            "hole_bytes": holes,
            "identity": None,
            "places": None,
        }

    async def _evict(self, _: FakeRequest) -> dict[str, Any]:
        return {
            "is": "evicted",
            "resident_bytes_before": self.script.resident_bytes,
            "resident_bytes_after": 0,
            "methods": ["fadvise"],
            "faults": [],
        }

    async def _done(self, _: FakeRequest) -> dict[str, Any]:
        return {"is": "done"}

    async def _run(self, request: FakeRequest) -> dict[str, Any]:
        name = request.arguments["argv"][0].rpartition("/")[2]
        if self.script.programs and name != "fio":
            return await self._run_program(request, name)
        job = read_job(request.content.decode())
        process = self.processes[request.id] = self._engine.start(self, request.id, job)
        try:
            start_ns = request.arguments["start_at_real_ns"] or 0
            code, signal = await process.live(start_ns)
        finally:
            self.processes.pop(request.id, None)
        if job.runtime_s is None and code == 0:
            self.files[f"{request.arguments['cwd']}/{job.data_set}"] = job.file_bytes
        io_limit = request.arguments.get("io_limit")
        limited = {} if io_limit is None else {"limited_disks": io_limit["devices"][-1:]}
        return exited(code, signal, self.real_ns(), self._memory(request.arguments)) | limited

    async def _resolve(self, request: FakeRequest) -> dict[str, Any]:
        signal = {"step": "signal", "pid": 4243, "start_ticks": 77}
        name = request.arguments["what"]["action"].upper()
        await asyncio.sleep(self.script.resolve_s)
        undo = [{**signal, "signal": "CONT"}] if name == "STOP" else []
        return {"is": "resolved", "steps": [{**signal, "signal": name}], "undo": undo}

    async def _io_limit(self, request: FakeRequest) -> dict[str, Any]:
        if request.arguments["run"] not in self.processes:
            raise FakeRefusal("ESRCH", "the run has no control group for its I/O")
        return {"is": "done"}

    async def _step(self, request: FakeRequest) -> dict[str, Any]:
        started_ns, undo = self.real_ns(), request.arguments["undo"]
        if undo is not None and undo not in self.undos:
            raise FakeRefusal("bad-request", f"no undo {undo} is kept")
        await asyncio.sleep(self.script.step_s)
        return self._perform(request.arguments["what"]) | {"started_real_ns": started_ns}

    async def _undo_add(self, request: FakeRequest) -> dict[str, Any]:
        name, what = request.arguments["name"], request.arguments["what"]
        await asyncio.sleep(self.script.undo_add_s)
        if name in self.undos or name in self.undone:
            raise FakeRefusal("bad-request", f"the name {name} is used already")
        held = [step.get("path") for steps in self.undos.values() for step in steps]
        for step in what:
            if step["step"] == "write" and step["path"] in held:
                raise FakeRefusal("busy", f"{step['path']} is held by an event")
        self.undos[name] = what
        return {"is": "done"}

    async def _leftovers(self, _: FakeRequest) -> dict[str, Any]:
        none: list[str] = []
        undos = [dict(undo) for undo in self.script.abandoned_undos]
        held_undos = [dict(undo) for undo in self.script.held_undos]
        names = (
            "processes",
            "groups",
            "folders",
            "elsewhere",
            "foreign_folders",
            "loops",
            "agents",
            "faults",
        )
        found = dict.fromkeys(names, none) | {"undos": undos, "held_undos": held_undos}
        return {"is": "leftovers", "more_folders": 0, "foreign_folder_count": 0, **found}

    async def _undo_remove(self, request: FakeRequest) -> dict[str, Any]:
        self.undos.pop(request.arguments["name"], None)
        return {"is": "done"}

    async def _undo(self, request: FakeRequest) -> dict[str, Any]:
        name = request.arguments["name"]
        await asyncio.sleep(self.script.undo_s)
        if name not in self.undone:
            steps = self.undos.get(name)
            if steps is None:
                raise FakeRefusal("bad-request", f"no undo {name} is kept here")
            self.undone[name] = self._perform(steps)
            del self.undos[name]
        return self.undone[name]

    def _perform(self, steps: list[dict[str, Any]]) -> dict[str, Any]:
        """A setting is written to the host's files; all else is done without a trace."""
        started_ns = self.real_ns()
        for step in steps:
            self.steps.append(step)
            if step["step"] == "write":
                self.contents[step["path"]] = step["text"].encode()
        times = {"started_real_ns": started_ns, "ended_real_ns": self.real_ns()}
        return {"is": "stepped", **times, "is_unmounted": False}

    async def _run_program(self, request: FakeRequest, name: str) -> dict[str, Any]:
        asked = request.arguments
        if name not in self.script.programs:
            raise FakeRefusal("ENOENT", f"cannot start {asked['argv'][0]}: no such program on PATH")
        words, told = tuple(asked["argv"]), request.content
        call = FakeCall(words, asked["env"], self.contents, self, request.id, told)
        run = self.processes[request.id] = FakeRun(call, self.script.programs[name])
        try:
            code, signal = await run.live(asked["start_at_real_ns"] or 0)
        finally:
            self.processes.pop(request.id, None)
        return exited(code, signal, self.real_ns(), self._memory(asked))

    def _memory(self, asked: dict[str, Any]) -> dict[str, int]:
        """What the final message of a run tells of its bounded memory."""
        limit = asked.get("memory_limit_bytes")
        if limit is None:
            return {}
        peak = self.script.memory_peak_bytes
        used = limit if peak is None else peak
        return {"memory_peak_bytes": used, "oom_kills": self.script.oom_kills}

    async def _metadata(self, request: FakeRequest) -> dict[str, Any]:
        asked, load = request.arguments, self.script.metadata
        phase = self.processes[request.id] = FakePhase(self, request.id, asked, load)
        tree = f"{asked['dir']}/metadata.{asked.get('iteration', 0)}"
        try:
            if asked["phase"] == "tree-create":
                self.trees.add(tree)
            told = await phase.live(lambda interval: self.tell(request.id, interval))
        finally:
            self.processes.pop(request.id, None)
        if asked["phase"] == "tree-remove" and not told["skipped"]:
            self.trees.discard(tree)
        return told

    def work(self, job: FakeJob, load: FakeLoad, from_s: float, until_s: float) -> None:
        """Count on the disk what the engine did in between."""
        if job.null:
            return
        before, after = ios_until(job, load, from_s), ios_until(job, load, until_s)
        reads, writes = after["read"] - before["read"], after["write"] - before["write"]
        self.disk.read_ios += reads
        self.disk.read_bytes += reads * job.block_bytes
        self.disk.write_ios += writes
        self.disk.write_bytes += writes * job.block_bytes

    def _size_of(self, path: str) -> int:
        folder, name = path.rsplit("/", 1)
        size = self.files.get(f"{folder}/{name.split('.')[0]}")
        if size is None:
            raise FakeRefusal("ENOENT", f"cannot open {path}: {os.strerror(errno.ENOENT)}")
        return size

    def _sample(self) -> dict[str, object]:
        self._samples += 1
        self.disk.read_bytes += self.script.idle_bytes_per_sample
        self.disk.read_ios += self.script.idle_bytes_per_sample // 4096
        mono_ns, real_ns = self._mono_ns(), self.real_ns()
        told = self.script.machine(self.disk, self._samples, mono_ns, real_ns)
        rows = told.get("disks")
        if LOOP in self.filesystems.values() and isinstance(rows, list):
            # What the file system asks of the loop device is what that asks of the disk.
            rows.append([LOOP, *rows[0][1:]])
        return told

    def _mono_ns(self) -> int:
        return round(asyncio.get_running_loop().time() * 1e9)

    def real_ns(self) -> int:
        """The host's CLOCK_REALTIME."""
        return loop_real_ns() + self.script.offset_ns

    _verbs: ClassVar[dict[str, Callable[..., Awaitable[dict[str, Any]]]]] = {
        "clock": _clock,
        "facts": _facts,
        "probe": _probe,
        "snapshot": _snapshot,
        "watch": _watch,
        "unwatch": _unwatch,
        "trace": _trace,
        "signal": _signal,
        "scratch_open": _scratch_open,
        "scratch_close": _scratch_close,
        "get": _get,
        "put": _put,
        "extents": _extents,
        "evict": _evict,
        "device": _device,
        "device_open": _device_open,
        "device_close": _device_close,
        "filesystem_open": _filesystem_open,
        "filesystem_close": _filesystem_close,
        "ledger_open": opened_ledger,
        "ledger_close": _done,
        "drive_logs": _drive_logs,
        "discard": _purge,
        "trim": _purge,
        "run": _run,
        "metadata": _metadata,
        "resolve": _resolve,
        "step": _step,
        "undo_add": _undo_add,
        "undo_remove": _undo_remove,
        "leftovers": _leftovers,
        "undo": _undo,
        "io_limit": _io_limit,
        "sync": _done,
        "bye": _bye,
    }
