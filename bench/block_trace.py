"""What the sample of the block layer costs: with it over without, of pairs run in turn.

Usage: bench/block_trace.py DEVICE [PAIRS [SECONDS]]; the block device is only read. Prints for each
depth the median ratio of IOPS with the smallest and the largest, that of fio's processor time for
an I/O, and the processor time that the agent spent.
"""

from __future__ import annotations

import json
import statistics
import struct
import subprocess
import sys
from typing import Any, Final

from iolab.hosts.push import agent_binary

AGENT: Final = agent_binary()
DEPTHS: Final = (1, 32)
START_LIMIT_S: Final = 60.0
"""For fio to start and to end."""


class Agent:
    """An agent spoken to by its frames."""

    def __init__(self) -> None:
        self._process = subprocess.Popen([AGENT], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self._last = 0
        self.hear("hello")

    def say(self, verb: str, **arguments: object) -> int:
        """Ask; the request's id."""
        self._last += 1
        header = json.dumps({"id": self._last, "do": verb, **arguments}).encode()
        assert self._process.stdin is not None
        self._process.stdin.write(struct.pack("<II", len(header), 0) + header)
        self._process.stdin.flush()
        return self._last

    def hear(self, what: str) -> dict[str, Any]:
        """The next message of that kind; an error ends the measurement."""
        while True:
            message = self.hear_any()
            if message["is"] == "error":
                sys.exit(message["message"])
            if message["is"] == what:
                return message

    def output_of(self, argv: list[str]) -> bytes:
        """What a program prints, run by the agent as an engine is."""
        self.say("run", argv=argv)
        text = b""
        while True:
            message = self.hear_any()
            if message["is"] == "exited":
                return text
            if message.get("stream") == "stdout":
                text += message["payload"]

    def hear_any(self) -> dict[str, Any]:
        """The next message."""
        output = self._process.stdout
        assert output is not None
        header, payload = struct.unpack("<II", output.read(8))
        message: dict[str, Any] = json.loads(output.read(header))
        return {**message, "payload": output.read(payload)}

    def cpu_ns(self) -> int:
        """Processor time that the agent has spent."""
        self.say("snapshot")
        return int(self.hear("sample")["agent"]["cpu_ns"])


def random_reads(agent: Agent, device: str, depth: int, seconds: float) -> tuple[float, float]:
    """IOPS of random reads of 4 KiB by fio, and its processor time for one of them, in ns."""
    options = "--name=b --rw=randread --bs=4k --direct=1 --ioengine=libaio --time_based"
    argv = ["fio", *options.split(), f"--filename=/dev/{device}", f"--iodepth={depth}"]
    text = agent.output_of([*argv, f"--runtime={seconds:g}", "--output-format=json"])
    job = json.loads(text)["jobs"][0]
    cpu_share = (job["usr_cpu"] + job["sys_cpu"]) / 100
    return job["read"]["iops"], cpu_share * 1e9 / job["read"]["iops"]


def main() -> None:
    """Measure and print."""
    device = sys.argv[1].removeprefix("/dev/")
    pairs = int(sys.argv[2]) if len(sys.argv) > 2 else 10
    seconds = float(sys.argv[3]) if len(sys.argv) > 3 else 2.0
    limit_s = seconds + START_LIMIT_S
    agent = Agent()
    for depth in DEPTHS:
        ratios, cpu_ratios, rates, costs, shares = [], [], [], [], []
        for pair in range(pairs):
            iops, cpu_ns = {}, {}
            for traced in (True, False) if pair % 2 else (False, True):
                before = agent.cpu_ns()
                watch = agent.say("trace", device=device, wall_limit_s=limit_s) if traced else 0
                iops[traced], cpu_ns[traced] = random_reads(agent, device, depth, seconds)
                if traced:
                    agent.say("unwatch", watch=watch)
                    told = agent.hear("trace")
                    assert told["reason"] is None, told["reason"]
                    shares.append(told["read"]["bios"] / (iops[True] * seconds))
                    costs.append((agent.cpu_ns() - before) / 1e9 / seconds)
            ratios.append(iops[True] / iops[False])
            cpu_ratios.append(cpu_ns[True] / cpu_ns[False])
            rates.append(iops[False])
        print(
            f"{device} depth {depth}: {statistics.median(rates):,.0f} IOPS without, ratio "
            f"{statistics.median(ratios):.3f} ({min(ratios):.3f} to {max(ratios):.3f}) of {pairs} "
            f"pairs, of processor time for an I/O {statistics.median(cpu_ratios):.3f}; sampled "
            f"{statistics.median(shares):.1%}, agent "
            f"{statistics.median(costs):.1%} of a core"
        )


if __name__ == "__main__":
    main()
