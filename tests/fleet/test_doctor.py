"""`iolab doctor --hosts` over ssh: all hosts at once, also with one that does not answer."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from iolab.errors import ExitCode
from tests.fleet.bed import Bed
from tests.fleet.test_session import iolab

pytestmark = pytest.mark.e2e


@pytest.mark.long
def test_a_host_without_sshd_is_one_row_and_the_others_are_still_checked(
    fleet: Bed, tmp_path: Path
) -> None:
    fleet.kill_sshd("c02")
    try:
        done = iolab("doctor", "--hosts", fleet.inventory, "--json", home=tmp_path)
        told = iolab("doctor", "--hosts", fleet.inventory, home=tmp_path)
    finally:
        fleet.start_sshd("c02")
    assert (done.returncode, told.returncode) == (ExitCode.HOST, ExitCode.HOST)
    made = json.loads(done.stdout)
    assert [(host["name"], host["reached"]) for host in made["hosts"]] == [
        ("c01", True),
        ("c02", False),
        ("c03", True),
    ]
    first = made["hosts"][0]
    assert first["fio"].startswith("fio-")
    assert abs(first["clock_offset_ns"]) <= first["clock_error_ns"] + 10**6
    assert (first["port"], first["mtu"]) == ("eth0", 1500)
    (fault,) = [item for item in made["findings"] if item["state"] == "fault"]
    assert (fault["what"], fault["hosts"]) == ("reach", ["c02"])
    assert "refuses connections" in fault["message"]
    assert "sshd" in fault["hint"]
    (kernel,) = [item for item in made["findings"] if item["what"] == "kernel"]
    assert (kernel["state"], kernel["hosts"]) == ("ok", ["c01", "c03"])
    rows = [line.split() for line in told.stdout.splitlines()]
    assert ["c02", "no", "answer"] in [row[:3] for row in rows]
    assert {"c01", "c03"} <= {row[0] for row in rows if row}
    assert "1 fault" in told.stderr


def test_a_fleet_that_answers_is_ready_and_nothing_stays_there(fleet: Bed, tmp_path: Path) -> None:
    done = iolab("doctor", "--hosts", fleet.inventory, home=tmp_path)
    # The machine that they share may be busy.
    assert done.returncode == 0, done.stdout
    assert "3 hosts are one machine" in done.stdout
    for name in fleet.specs:
        fleet.wait_until_alone(name)
        assert list((fleet.fleet.folder(name) / "target").iterdir()) == []


def test_faults_of_the_inventory_are_all_told(tmp_path: Path) -> None:
    inventory = tmp_path / "hosts.toml"
    inventory.write_text('format = 1\n[[host]]\nname = "-oProxyCommand=x"\n', encoding="utf-8")
    done = iolab("doctor", "--hosts", inventory, home=tmp_path)
    assert done.returncode == ExitCode.STUDY
    assert "The inventory has 1 fault." in done.stderr
    assert f"{inventory}:3: name of host" in done.stderr
