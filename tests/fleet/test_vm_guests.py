"""The same study over guests that exist already: ssh hosts of an inventory, each with its node."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from iolab.core.run import RunStatus
from iolab.guests.guest import guest_fleet_of_run
from tests.e2e.guest_sessions import Stored, iolab, study, workload
from tests.fleet.bed import Bed, bed, route_of

pytestmark = [pytest.mark.e2e, pytest.mark.long]


def inventory(made: Bed, path: Path) -> Path:
    """Two hosts as guests of the third one, whose disk they share."""
    device = str(json.loads((made.base / "fleet.json").read_text("utf-8"))["device"])
    text = made.inventory.read_text("utf-8").replace("c[01-03]", "c[01-02]")
    text = text.replace("[1-3]", "[1-2]") + 'node = "c03"\n'
    address = route_of(made.specs["c03"]).address
    node = f'\n[[host]]\nname = "c03"\nrole = "hypervisor"\naddress = "{address}"\n'
    path.write_text(text + node + f'devices = "{device}"\n', encoding="utf-8")
    return path


def test_guests_of_an_inventory_take_the_place_of_those_of_the_study(tmp_path: Path) -> None:
    with bed(3, "served") as made:
        file = study(
            tmp_path,
            'disk = "32m"',
            workload("mix", "randrw", vms=(1, 2), more="rwmixread = 50\nrate_iops = 100\n"),
        )
        text = file.read_text("utf-8")
        declared = 'id = "cluster"\nredundancy = { write_factor = 1 }'
        file.write_text(text.replace('id = "cluster"', declared), encoding="utf-8")
        hosts = inventory(made, tmp_path / "hosts.toml")
        iolab("run", file, "--hosts", hosts, "--out", tmp_path / "S", "--report")
        stored = Stored.at(tmp_path / "S")
        for run, record, result in stored.runs():
            assert result.status is RunStatus.DONE, result.failure
            fleet = guest_fleet_of_run(record)
            assert fleet is not None
            assert fleet.settings is None
            assert fleet.per_node == run.point.per_node == len(record.hosts)
            assert [(one.guest, one.node) for one in fleet.guests] == [
                (name, "c03") for name in ("c01", "c02")[: run.point.per_node]
            ]
            assert fleet.idle == ("c02",)[run.point.per_node - 1 :]
            assert all(one.accelerator is None and one.blocks == () for one in fleet.guests)
            assert [(node.name, node.guests) for node in result.nodes] == [
                ("c03", tuple(one.guest for one in fleet.guests))
            ]
            assert not stored.level_of(result, "guest-bytes").startswith("invalid")
            (watched,) = record.monitored_hosts
            assert (watched.host, watched.error) == ("c03", None)
        assert "c03" in (tmp_path / "S" / "report.html").read_text(encoding="utf-8")
        for name in made.specs:
            made.wait_until_alone(name)
