"""tools/fleet.py: what it makes, and that it takes all of it away again, also after a crash."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tools import fleet as tool

from iolab.hosts.host import Host
from tests.fleet.bed import Bed, bed, visit
from tests.fleet.test_connect import output
from tests.processes import run_program

pytestmark = pytest.mark.e2e

TOOL = Path(tool.__file__)


def listing(*argv: str) -> str:
    return run_program(argv, check=True, timeout=20).stdout


def traces(made: tool.Fleet) -> list[str]:
    """Whatever is on this machine of a fleet."""
    ports = [port.name for port in Path("/sys/class/net").iterdir() if made.tag in port.name]
    loops = [made.name] if str(made.base) in listing("losetup", "-lnO", "BACK-FILE") else []
    mounts = [made.name] if str(made.base) in Path("/proc/mounts").read_text("utf-8") else []
    folders = [str(made.base)] if made.base.exists() else []
    return made.namespaces() + ports + loops + mounts + folders


@pytest.mark.parametrize("storage", ["own", "shared", "served", "xfs"])
def test_targets_are_what_was_asked_for_and_all_goes(storage: str) -> None:
    with bed(2, storage) as made:

        async def write(*hosts: Host) -> list[tuple[str, bytes]]:
            first, second = hosts
            path = made.specs["c01"].path
            await output(first, ["touch", f"{path}/from-c01"])
            seen = await output(second, ["ls", str(path)])
            kind = await output(second, ["stat", "-f", "-c", "%T", str(path)])
            return [(kind.decode().strip(), seen)]

        ((kind, seen),) = visit(write, *made.specs.values())
        assert (seen == b"from-c01\n") is (storage in ("shared", "served"))
        assert (kind == "xfs") is (storage in ("served", "xfs"))
        assert traces(made.fleet)
    assert traces(made.fleet) == []


@pytest.mark.long
def test_what_a_crash_has_left_is_removed_and_made_anew() -> None:
    with bed(2, "xfs") as made:
        made.kill_sshd("c02")
        tool.end_all(made.fleet.namespace("c02"))
        listing("ip", "netns", "delete", made.fleet.namespace("c02"))
        (made.base / "fleet.json").unlink()
        listing(str(TOOL), "up", "--name", made.fleet.name, "--hosts", "1")
        assert len(made.fleet.namespaces()) == 1
        settings = json.loads((made.base / "fleet.json").read_text("utf-8"))
        assert settings["hosts"] == ["c01"]
        listing(str(TOOL), "down", "--name", made.fleet.name)
        assert traces(made.fleet) == []
    assert traces(made.fleet) == []


def test_two_fleets_stand_side_by_side(fleet: Bed) -> None:
    with bed(1) as other:
        assert other.gateway != fleet.gateway
        assert set(other.fleet.namespaces()).isdisjoint(fleet.fleet.namespaces())
        assert len(fleet.fleet.namespaces()) == 3
