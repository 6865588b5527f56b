"""Two clients and a storage node over ssh: what its disk moved, and files handed on."""

from __future__ import annotations

import json
import os
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.fleet.bed import Bed, bed
from tests.fleet.test_session import IOLAB, iolab

pytestmark = [pytest.mark.e2e, pytest.mark.long]

SECTOR = 512
STUDY = """\
format = 1
id = "beside"
[[configuration]]
id = "fleet"
redundancy = {{ write_factor = 1 }}
[[workload]]
id = "read"
rw = "randread"
bs = "64k"
iodepth = 4
filesize = "16m"
[[workload]]
id = "write"
rw = "randwrite"
bs = "64k"
iodepth = 4
filesize = "16m"
[target]
rotate = {rotate}
[method]
warmup = "0s"
runtime = "2s"
settle = "0s"
idle_watch = 0
generator_limit = false
"""


@pytest.fixture(scope="module")
def served() -> Iterator[Bed]:
    """Three hosts on one file system, whose loop device the third one serves."""
    with bed(3, "served") as made:
        yield made


def device_of(made: Bed) -> str:
    return str(json.loads((made.base / "fleet.json").read_text("utf-8"))["device"])


def inventory(made: Bed, path: Path) -> Path:
    """The fleet's own inventory with the last host as a storage node."""
    text = made.inventory.read_text("utf-8").replace("c[01-03]", "c[01-02]")
    assert "c[01-02]" in text
    route = next(spec.ssh for spec in made.specs.values() if spec.name == "c03")
    assert route is not None
    node = f'[[host]]\nname = "c03"\naddress = "{route.address}"\nrole = "storage"\n'
    node += f'devices = "/dev/{device_of(made)}"\n'
    # The fleet's hosts are written as one range of names and one of addresses.
    text = text.replace("[1-3]", "[1-2]")
    path.write_text(text + node, encoding="utf-8")
    return path


def counted(device: str) -> tuple[int, int]:
    """Bytes read and written by the device since it was made, from /proc/diskstats."""
    for line in Path("/proc/diskstats").read_text("utf-8").splitlines():
        words = line.split()
        if words[2] == device:
            return int(words[5]) * SECTOR, int(words[9]) * SECTOR
    raise AssertionError(f"no {device} in /proc/diskstats")


def manifests(session: Path) -> dict[str, Any]:
    found = {}
    for path in session.glob("points/*/run-1/manifest.json"):
        manifest = json.loads(path.read_text("utf-8"))
        found[manifest["run"]["point"]["workload"]] = manifest
    return found


def check_of(result: dict[str, Any], code: str) -> dict[str, Any]:
    (found,) = [check for check in result["verdict"]["checks"] if check["code"] == code]
    return dict(found)


def test_the_account_of_bytes_is_that_of_the_kernel(served: Bed, tmp_path: Path) -> None:
    study, session = tmp_path / "beside.toml", tmp_path / "session"
    study.write_text(STUDY.format(rotate=0), encoding="utf-8")
    device, hosts = device_of(served), inventory(served, tmp_path / "hosts.toml")
    before = counted(device)
    done = iolab("run", study, "--hosts", hosts, "--out", session, home=tmp_path)
    assert done.returncode == 0, done.stderr
    after = counted(device)
    records = manifests(session)
    moved = {name: records[name]["monitored_hosts"][0]["devices"][0] for name in ("read", "write")}
    assert all(delta["device"] == device for delta in moved.values())
    # Only runs read data; beside them stand the metadata that mounting and laying out read.
    reads = sum(delta["read_bytes"] for delta in moved.values())
    assert 0 <= after[0] - before[0] - reads < 16 << 20
    writes = sum(delta["write_bytes"] for delta in moved.values())
    laid_out = 2 * (16 << 20)
    assert laid_out <= after[1] - before[1] - writes < laid_out + (64 << 20)
    shown = json.loads(iolab("show", session, "--json", home=tmp_path).stdout)
    for result in shown["results"]:
        account = check_of(result, "storage-bytes")
        assert account["level"] == "valid", account
        way = result["workload"]
        key = {"read": "read", "write": "write"}[way]
        evidence = account["evidence"]
        claimed = evidence[f"claimed_{key}_bytes"]
        assert evidence[f"disks_{key}_bytes"] == moved[way][f"{key}_bytes"]
        assert claimed <= evidence[f"disks_{key}_bytes"] <= 1.1 * claimed + (8 << 20)
        assert result["spread"]["slowest"] in ("c01", "c02")
        assert check_of(result, "monitored-node-lost")["level"] == "valid"
    for record in records.values():
        assert [host["clock_offset_after_ns"] is not None for host in record["hosts"]] == [True] * 2
    assert iolab("report", session, home=tmp_path).returncode == 0
    assert "Account of bytes" in (session / "report.html").read_text("utf-8")


def test_each_client_reads_the_files_of_the_other(served: Bed, tmp_path: Path) -> None:
    study, session = tmp_path / "beside.toml", tmp_path / "session"
    study.write_text(STUDY.format(rotate=1), encoding="utf-8")
    hosts = inventory(served, tmp_path / "hosts.toml")
    words = [str(IOLAB), "run", str(study), "--hosts", str(hosts), "--out", str(session)]
    environment = {"HOME": str(tmp_path), "PATH": "/usr/bin:/bin:/usr/sbin:/sbin"}
    seen: set[tuple[str, str, str]] = set()
    with subprocess.Popen(words, env=environment, stderr=subprocess.PIPE, text=True) as running:
        while running.poll() is None:
            seen |= {(name, *used) for name in ("c01", "c02") for used in files_open(served, name)}
            time.sleep(0.05)
        assert running.stderr is not None
        assert running.returncode == 0, running.stderr.read()
    read = {(name, folder) for name, folder, mode in seen if mode == "r"}
    assert read == {("c01", "iolab-scratch-c02"), ("c02", "iolab-scratch-c01")}
    records = manifests(session)
    assert [host["read_from"] for host in records["read"]["hosts"]] == ["c02", "c01"]
    assert [host["read_from"] for host in records["write"]["hosts"]] == ["", ""]
    assert all(host["extents"]["written_bytes"] == 16 << 20 for host in records["read"]["hosts"])


def files_open(made: Bed, name: str) -> Iterator[tuple[str, str]]:
    """The scratch folders in which fio has files open on a host, and whether to read only."""
    for pid, comm in made.processes(name).items():
        if comm != "fio":
            continue
        try:
            for link in Path(f"/proc/{pid}/fd").iterdir():
                folder = link.readlink().parent.name
                if folder.startswith("iolab-scratch-"):
                    info = Path(f"/proc/{pid}/fdinfo/{link.name}").read_text("utf-8")
                    flags = int(info.split("flags:")[1].split()[0], 8)
                    yield folder, "r" if flags & os.O_ACCMODE == os.O_RDONLY else "w"
        except (FileNotFoundError, ProcessLookupError):
            continue


def test_hosts_that_share_nothing_are_refused(fleet: Bed, tmp_path: Path) -> None:
    study = tmp_path / "beside.toml"
    study.write_text(STUDY.format(rotate=1), encoding="utf-8")
    done = iolab("run", study, "--hosts", fleet.inventory, "--out", tmp_path / "s", home=tmp_path)
    assert done.returncode == 3, done.stderr
    assert "does not see the files of" in " ".join(done.stderr.split())
