"""Power of real runs by real meters on the loopback: a BMC, a Redfish service, a PDU, a program."""

from __future__ import annotations

import json
import os
import sys
import threading
import time
from pathlib import Path
from typing import Any

import pytest

from tests.cli.command_line import iolab
from tests.e2e.power.meters import PASSWORD, SNMP_OBJECT, Bmc, RedfishService, snmp_agent
from tests.needs import require

pytestmark = [pytest.mark.e2e, pytest.mark.long]

STUDY = """
format = 1
id = "power"

[[host]]
name = "node"
kind = "local"
meters = [
{meters}
]

[meters]
interval = "200ms"
idle = "4s"

[[workload]]
id = "reads"
engine = "native"
rw = "randread"
bs = "4k"
iodepth = 4
rate_iops = 500
arrivals = "fixed"
filesize = "8m"

[method]
warmup = 0
runtime = 6
settle = 0
idle_watch = 0
generator_limit = false
"""

PROGRAM = """
import pathlib, sys, time
def is_engine_of_session(process):
    if not (process / "cmdline").read_bytes().endswith(b"\\0engine\\0"):
        return False
    links = (str(link.readlink()) for link in (process / "fd").iterdir())
    return any(link.startswith(sys.argv[1]) for link in links)
def is_loaded():
    for process in pathlib.Path("/proc").glob("[0-9]*"):
        try:
            if is_engine_of_session(process):
                return True
        except OSError:
            pass
    return False
while True:
    print(time.time(), 150 if is_loaded() else 100, flush=True)
    time.sleep(0.1)
"""
"""A meter of the engine that has a file below its argument open, and of nobody else's on this
machine."""


def meter(**keys: object) -> str:
    return f"{{ {', '.join(f'{key} = {json.dumps(value)}' for key, value in keys.items())} }},"


def run_study(folder: Path, *meters: str, **variables: str) -> tuple[int, str, Path]:
    target, study, session = folder / "target", folder / "study.toml", folder / "S"
    target.mkdir()
    study.write_text(STUDY.replace("{meters}", "\n".join(meters)), encoding="utf-8")
    done = iolab(
        *("run", str(study), "--path", str(target), "--out", str(session)),
        env={**os.environ, **variables},
    )
    return done.returncode, done.stdout + done.stderr, session


def result_of(session: Path) -> dict[str, Any]:
    (result,) = json.loads(iolab("show", str(session), "--json").stdout)["results"]
    assert isinstance(result, dict)
    return result


def level(result: dict[str, Any], code: str) -> str:
    levels = {check["code"]: check["level"] for check in result["verdict"]["checks"]}
    return str(levels[code])


def test_a_program_sees_idle_and_load(tmp_path: Path) -> None:
    program = tmp_path / "meter.py"
    program.write_text(PROGRAM, encoding="utf-8")
    command = [sys.executable, str(program), str(tmp_path / "target")]
    code, said, session = run_study(tmp_path, meter(name="bench", kind="command", command=command))
    assert code in (0, 1), said
    result = result_of(session)
    (power,) = result["power"]
    assert power["watts"]["value"] == pytest.approx(150, abs=5)
    assert power["idle_w"]["value"] == pytest.approx(100, abs=2)
    assert (power["boundary"], power["reason"], power["idle_reason"]) == ("node", "", "")
    metrics = {key: metric["value"] for key, metric in result["metrics"].items()}
    bandwidth = metrics["bw_bytes_per_s"]
    assert metrics["node_j_per_gb"] == pytest.approx(metrics["node_power_w"] / bandwidth * 1e9)
    assert metrics["node_net_ops_per_j"] == pytest.approx(metrics["iops"] / 50, rel=0.15)
    codes = ("meter-reading", "meter-lag", "idle-power")
    assert [level(result, each) for each in codes] == ["valid"] * 3
    details = iolab("show", str(session), "--details").stdout
    assert "Power" in details
    assert "node bench" in details


def test_a_bmc_a_service_and_a_pdu_are_read_without_a_password_anywhere(tmp_path: Path) -> None:
    require("ipmi_sim", "ipmitool", "snmpget", "/usr/sbin/snmpd", "gcc")
    folders = [tmp_path / name for name in ("bmc", "redfish", "snmp", "run")]
    for folder in folders:
        folder.mkdir()
    bmc, service = Bmc(folders[0]), RedfishService(folders[1])
    with bmc.running(), service.running(), snmp_agent(folders[2], 34) as port:
        code, said, session = run_study(
            folders[3],
            meter(
                name="bmc",
                kind="dcmi",
                address=f"127.0.0.1:{bmc.port}",
                user="bench",
                password_variable="BMC_PASSWORD",
                cipher_suite=3,
            ),
            meter(name="service", kind="redfish", address=service.url, boundary="drive"),
            meter(
                name="pdu",
                kind="snmp",
                address=f"127.0.0.1:{port}",
                object_id=SNMP_OBJECT,
                scale=10,
                password_variable="PDU_COMMUNITY",
            ),
            BMC_PASSWORD=PASSWORD[:16],
            PDU_COMMUNITY=PASSWORD,
        )
        assert code in (0, 1), said
        result = result_of(session)
    assert {use["meter"] for use in result["power"]} == {"bmc", "service", "pdu"}
    # None of them moves with the load, which a live meter does.
    assert level(result, "meter-reading") == "indicative"
    assert all("throughout" in use["reason"] for use in result["power"])
    shown = sorted(float(use["reason"].split()[3]) for use in result["power"])
    assert shown == [212, 340, 344.2]
    for path in (path for path in session.rglob("*") if path.is_file()):
        assert PASSWORD[:16].encode() not in path.read_bytes(), path
    assert PASSWORD[:16] not in said


def test_a_bmc_that_is_deactivated_is_refused_before_anything_is_written(tmp_path: Path) -> None:
    require("ipmi_sim", "ipmitool", "gcc")
    folder, run = tmp_path / "bmc", tmp_path / "run"
    folder.mkdir()
    run.mkdir()
    bmc = Bmc(folder)
    bmc.show(212, is_active=False)
    keys = {"user": "bench", "password_variable": "BMC_PASSWORD", "cipher_suite": 3}
    with bmc.running():
        code, said, _ = run_study(
            run,
            meter(name="bmc", kind="dcmi", address=f"127.0.0.1:{bmc.port}", **keys),
            BMC_PASSWORD=PASSWORD[:16],
        )
    assert code == 3, said
    assert "The meter 'bmc' of host 'node' cannot be read: the BMC's power measurement is" in said
    assert not list((run / "target").iterdir())


def test_a_bmc_that_is_lost_in_a_run_is_told_and_the_run_goes_on(tmp_path: Path) -> None:
    require("ipmi_sim", "ipmitool", "gcc")
    folder, run = tmp_path / "bmc", tmp_path / "run"
    folder.mkdir()
    run.mkdir()
    bmc = Bmc(folder)
    keys = {"user": "bench", "password_variable": "BMC_PASSWORD", "cipher_suite": 3}

    def follow_the_load() -> None:
        session = run / "S"
        while not session.exists():
            time.sleep(0.1)
        time.sleep(6)
        bmc.show(None)

    watcher = threading.Thread(target=follow_the_load, daemon=True)
    with bmc.running():
        watcher.start()
        code, said, session = run_study(
            run,
            meter(name="bmc", kind="dcmi", address=f"127.0.0.1:{bmc.port}", **keys),
            BMC_PASSWORD=PASSWORD[:16],
        )
        watcher.join()
    assert code in (0, 1), said
    assert "The meter 'bmc' of host 'node' is not read: 'ipmitool': exit code 1" in said
    result = result_of(session)
    assert level(result, "meter-reading") == "indicative"
    assert result["metrics"]["iops"]["value"] > 0
