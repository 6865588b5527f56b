"""The cloud's metadata service is asked by `iolab doctor` where that is wanted, and only then."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any, Final

import pytest

from tests.e2e.sessions import IOLAB
from tests.needs import require

pytestmark = pytest.mark.e2e

SERVICE: Final = Path(__file__).with_name("cloud_service.py")
FIRMWARE: Final = """
set -e
ip link set lo up
ip address add 169.254.169.254/32 dev lo
mount -t tmpfs none /sys/class
mkdir -p /sys/class/dmi/id
echo 7783-7084-3265-9085-8269-3286-77 > /sys/class/dmi/id/chassis_asset_tag
exec "$@"
"""
"""A machine of Azure's as its firmware tells it, alone with its metadata service."""


@pytest.mark.long
def test_doctor_asks_the_cloud_only_where_that_is_wanted(tmp_path: Path) -> None:
    require("ip", "unshare")

    def doctor(*more: str) -> tuple[list[dict[str, Any]], list[str]]:
        log = tmp_path / "log"
        log.write_text("")
        apart = ("unshare", "--map-root-user", "--mount", "--net", "sh", "-c", FIRMWARE, "sh")
        command = (sys.executable, SERVICE, log, IOLAB, "doctor", "--path", tmp_path, "--json")
        done = subprocess.run([*apart, *command, *more], capture_output=True, check=False)
        assert done.stdout, done.stderr
        return json.loads(done.stdout)["findings"], log.read_text().splitlines()

    findings, requests = doctor()
    assert not requests
    assert "cloud" not in {one["what"] for one in findings}
    findings, requests = doctor("--cloud-metadata")
    assert len(requests) == 1
    (told,) = [one["message"] for one in findings if one["what"] == "cloud"]
    assert {"Standard_D8s_v5", "westeurope"} <= set(told.split(", "))
    assert "Premium_LRS 32 GiB" in told
