"""What power meters cost the load: `iolab run` with meters and without, in turn.

A BMC (ipmi_sim), a Redfish service, a PDU (snmpd) and a program on the loopback, all four read
every second, as a session does without being asked for more. The native engine reads 4 KiB from the
page cache at depth 32 meanwhile, on the machine of the controller, where a cost shows most: as fast
as it can, for the ratio of IOPS, and at a rate, for the processor time of iolab with all programs,
which a faster load would take more of. Then the processor time of one reading of each kind.

    python -m bench.meters [--seconds 10] [--pairs 5]
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import resource
import statistics
import subprocess
import sys
import tempfile
from contextlib import ExitStack
from pathlib import Path
from typing import Final, NamedTuple

from tests.e2e.power.meters import PASSWORD, SNMP_OBJECT, Bmc, RedfishService, snmp_agent

from iolab.core.power import ExternalMeterKind, MeterSpec
from iolab.hosts.meters import open_meter

IOLAB: Final = Path(sys.executable).with_name("iolab")
READINGS: Final = 20
VARIABLE: Final = "BENCH_METER_PASSWORD"
PROGRAM: Final = """
import time
while True:
    print(time.time(), 100, flush=True)
    time.sleep(1)
"""
PACED: Final = 'rate_iops = 2000\narrivals = "fixed"'
STUDY: Final = """
format = 1
id = "meters"

[[host]]
name = "node"
kind = "local"
meters = {meters}

[[workload]]
id = "reads"
engine = "native"
rw = "randread"
bs = "4k"
iodepth = 32
filesize = "64m"
direct = false
{pace}

[method]
warmup = 0
runtime = {seconds}
settle = 0
idle_watch = 0
generator_limit = false
drop_caches = false
"""


def processor_s() -> float:
    """Of this process and of all that it has waited for."""
    both = map(resource.getrusage, (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return sum(used.ru_utime + used.ru_stime for used in both)


class Found(NamedTuple):
    """IOPS, I/Os for a second of the engine's processor time, and what all of iolab took of it."""

    iops: float
    ios_per_processor_s: float
    used_s: float


def run(folder: Path, meters: list[MeterSpec], seconds: int, pace: str = "") -> Found:
    """What a session with that one run gives and takes."""
    rows = [
        {
            key: value
            for key, value in (
                ("name", spec.name),
                ("kind", spec.kind.value),
                ("command", list(spec.command)),
                ("address", spec.address),
                ("user", spec.user),
                ("password_variable", spec.password_variable),
                ("object_id", spec.object_id),
            )
            if value
        }
        | ({"cipher_suite": spec.cipher_suite} if spec.kind is ExternalMeterKind.DCMI else {})
        for spec in meters
    ]
    tables = ", ".join(
        f"{{ {', '.join(f'{key} = {json.dumps(value)}' for key, value in row.items())} }}"
        for row in rows
    )
    with tempfile.TemporaryDirectory(dir=folder) as own:
        study, session = Path(own) / "study.toml", Path(own) / "session"
        text = STUDY.format(meters=f"[{tables}]", seconds=seconds, pace=pace)
        study.write_text(text, encoding="utf-8")
        (Path(own) / "target").mkdir()
        words = (IOLAB, "run", study, "--path", Path(own) / "target", "--out", session, "--quiet")
        before = processor_s()
        subprocess.run(list(map(str, words)), check=True, stdout=subprocess.DEVNULL)
        used = processor_s() - before
        shown = subprocess.run(
            [str(IOLAB), "show", str(session), "--json"], check=True, capture_output=True
        )
        manifest = json.loads(next(session.glob("points/*/run-1/manifest.json")).read_bytes())
    (result,) = json.loads(shown.stdout)["results"]
    iops = float(result["metrics"]["iops"]["value"])
    engine = manifest["hosts"][0]["process"]
    return Found(iops, iops * seconds / (engine["user_s"] + engine["system_s"]), used)


async def reading_ms(spec: MeterSpec) -> float:
    """Processor time of one reading, with the programs that make it."""
    meter = open_meter(spec)
    try:
        await meter.read()
        before = processor_s()
        for _ in range(READINGS):
            await meter.read()
        return (processor_s() - before) / READINGS * 1000
    finally:
        await meter.close()


def spread(values: list[float], form: str = ".3f") -> str:
    """The median with the least and the largest."""
    middle, low, high = (f(values) for f in (statistics.median, min, max))
    return f"{middle:{form}} ({low:{form}} to {high:{form}})"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=int, default=10)
    parser.add_argument("--pairs", type=int, default=5)
    options = parser.parse_args()
    os.environ[VARIABLE] = PASSWORD[:16]
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(dir="/var/tmp")))
        places = [folder / name for name in ("bmc", "redfish", "pdu", "sessions")]
        for place in places:
            place.mkdir()
        bmc, service = Bmc(places[0]), RedfishService(places[1])
        stack.enter_context(bmc.running())
        stack.enter_context(service.running())
        port = stack.enter_context(snmp_agent(places[2], 34, PASSWORD[:16]))
        program = folder / "meter.py"
        program.write_text(PROGRAM, encoding="utf-8")
        command = (sys.executable, str(program))
        meters = [
            MeterSpec(name="program", kind=ExternalMeterKind.COMMAND, command=command),
            MeterSpec(
                name="bmc",
                kind=ExternalMeterKind.DCMI,
                address=f"127.0.0.1:{bmc.port}",
                user="bench",
                password_variable=VARIABLE,
                cipher_suite=3,
            ),
            MeterSpec(name="service", kind=ExternalMeterKind.REDFISH, address=service.url),
            MeterSpec(
                name="pdu",
                kind=ExternalMeterKind.SNMP,
                address=f"127.0.0.1:{port}",
                object_id=SNMP_OBJECT,
                password_variable=VARIABLE,
            ),
        ]
        rates, efficiencies, costs = [], [], []
        for pair in range(options.pairs):
            ways = ([], meters) if pair % 2 else (meters, [])
            fast = {bool(way): run(places[3], way, options.seconds) for way in ways}
            paced = {bool(way): run(places[3], way, options.seconds, PACED) for way in ways}
            rates.append(fast[True].iops / fast[False].iops)
            efficiencies.append(fast[True].ios_per_processor_s / fast[False].ios_per_processor_s)
            costs.append((paced[True].used_s - paced[False].used_s) / options.seconds * 1000)
        print(
            f"four meters, {options.pairs} pairs of {options.seconds} s, with / without: IOPS "
            f"{spread(rates)}, I/Os for the engine's processor time {spread(efficiencies)}; "
            f"processor {spread(costs, '+.0f')} ms a second"
        )
        for spec in meters[1:]:  # a program's own time is not ours
            print(f"{spec.kind.value}: {asyncio.run(reading_ms(spec)):.1f} ms a reading")


if __name__ == "__main__":
    main()
