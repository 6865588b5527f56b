"""How long twelve ssh hosts take from nothing to their agents' hello, with a push and without.

Hosts are those of tools/fleet.py: real sshd processes on this machine, so that key exchange,
logins and the agents' start of both sides share its cores.
"""

from __future__ import annotations

import asyncio
import statistics
import subprocess
import sys
import time
from pathlib import Path

from iolab.core.host import HostSpec
from iolab.hosts.connect import open_hosts
from iolab.hosts.ssh_host import SshConnections
from iolab.study.inventory import parse_inventory

FLEET = Path(__file__).parents[1] / "tools" / "fleet.py"
HOSTS = 12
REPEATS = 5
TARGET_S = 3.0


def fleet(what: str, *more: str) -> list[str]:
    words = [sys.executable, str(FLEET), what, "--name", "bench", *more]
    done = subprocess.run(words, check=True, capture_output=True, text=True, timeout=120)
    return done.stdout.split()


async def hello_s(specs: tuple[HostSpec, ...]) -> float:
    start = time.perf_counter()
    async with open_hosts(specs, ssh_connections=SshConnections(config=Path("/dev/null"))) as hosts:
        await asyncio.gather(*(host.connect() for host in hosts.values()))
        return time.perf_counter() - start


def main() -> None:
    try:
        inventory = Path(fleet("up", "--hosts", str(HOSTS))[0])
        specs = parse_inventory(inventory.read_text("utf-8"), str(inventory))
        first = asyncio.run(hello_s(specs))
        again = [asyncio.run(hello_s(specs)) for _ in range(REPEATS)]
    finally:
        fleet("down")
    verdict = "within" if first < TARGET_S else "OVER"
    print(f"{HOSTS} ssh hosts, connect + push + hello: {first:.2f} s ({verdict} {TARGET_S:g} s)")
    spread = f"{min(again):.2f} to {max(again):.2f}"
    print(f"  agent already there: median {statistics.median(again):.2f} s ({spread}, n={REPEATS})")


if __name__ == "__main__":
    main()
