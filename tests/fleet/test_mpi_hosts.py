"""`--hosts mpi:FILE` over ssh: a host file's names are those of `~/.ssh/config`."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.fleet.bed import Bed, route_of
from tests.fleet.test_session import STUDY, iolab

pytestmark = [pytest.mark.e2e, pytest.mark.long]

HOST_FILE = """\
# written for two launchers
c01:4
root@c02 slots=2 max_slots=8
c03
c01 slots=4
"""


@pytest.fixture
def home(three: Bed, tmp_path: Path) -> Path:
    """A home whose ~/.ssh/config knows the fleet, as that of a user of MPI does."""
    folder = tmp_path / "home" / ".ssh"
    folder.mkdir(parents=True)
    parts = []
    for name, spec in three.specs.items():
        address = route_of(spec).address
        parts.append(f"Host {name}\n  HostName {address}\n  HostKeyAlias {name}\n")
    common = f"Host *\n  User root\n  IdentityFile {three.base}/id_ed25519\n"
    common += f"  UserKnownHostsFile {three.base}/known_hosts\n"
    (folder / "config").write_text("".join(parts) + common, encoding="utf-8")
    return tmp_path / "home"


def test_a_study_runs_on_the_hosts_of_a_host_file(fleet: Bed, home: Path, tmp_path: Path) -> None:
    study, hosts, session = tmp_path / "fleet.toml", tmp_path / "hostfile", tmp_path / "session"
    study.write_text(STUDY, encoding="utf-8")
    hosts.write_text(HOST_FILE, encoding="utf-8")
    target = fleet.base / "target"
    words = ("run", study, "--hosts", f"mpi:{hosts}", "--path", target, "--out", session)
    done = iolab(*words, home=home)
    assert done.returncode == 0, done.stderr
    manifest = next(session.glob("points/*/run-1/manifest.json")).read_text("utf-8")
    assert all(f'"{name}"' in manifest for name in fleet.specs)
    hosts.unlink()
    again = iolab("resume", session, home=home)
    assert again.returncode == 0, again.stderr


def test_faults_of_a_host_file_are_told_with_their_lines(tmp_path: Path) -> None:
    study, hosts = tmp_path / "fleet.toml", tmp_path / "hostfile"
    study.write_text(STUDY, encoding="utf-8")
    hosts.write_text("-oProxyCommand=x\nc01\nc02 slots=x\n", encoding="utf-8")
    done = iolab("check", study, "--hosts", f"mpi:{hosts}", home=tmp_path)
    assert done.returncode == 2
    assert "The MPI host file has 2 faults." in done.stderr
    assert f"{hosts}:1: The line begins with '-oProxyCommand=x'" in done.stderr
    assert f"{hosts}:3: The number behind 'slots' is 'x'." in done.stderr
    missing = iolab("check", study, "--hosts", f"mpi:{hosts}2", home=tmp_path)
    assert missing.returncode == 2
    assert "There is no file " in missing.stderr
