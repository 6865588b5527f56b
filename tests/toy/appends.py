"""Appends blocks to a file in the folder where it is started, each durable before the next begins.

For each second it prints a line of JSON: its end (ns since the epoch), its length, and the latency
of every append in it, all in ns. The last line is of the whole run: appends, ns of all, the
shortest and the longest, and its seconds of processor time, its own and the kernel's. It needs
nothing but Python.
"""

import json
import os
import sys
import time
from pathlib import Path

NS_PER_S = 1_000_000_000
BLOCK_BYTES, SECONDS = int(sys.argv[1]), float(sys.argv[2])
FILE = Path("appended")

block = os.urandom(BLOCK_BYTES)
file = os.open(FILE, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_APPEND | os.O_DSYNC, 0o600)
begun = began = time.monotonic_ns()
count = total = longest = 0
shortest = sys.maxsize
latencies = []
while began - begun < SECONDS * NS_PER_S:
    before = time.monotonic_ns()
    os.write(file, block)
    now = time.monotonic_ns()
    latencies.append(now - before)
    if now - began >= NS_PER_S or now - begun >= SECONDS * NS_PER_S:
        print(json.dumps([time.time_ns(), now - began, latencies]), flush=True)
        count, total = count + len(latencies), total + sum(latencies)
        shortest, longest = min(shortest, *latencies), max(longest, *latencies)
        began, latencies = now, []
os.close(file)
FILE.unlink()
used = os.times()
print(json.dumps([count, total, shortest, longest, used.user, used.system]), flush=True)
