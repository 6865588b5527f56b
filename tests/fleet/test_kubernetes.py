"""`--hosts k8s:…` with a stand-in for kubectl (`tests/fleet/kubectl.py`): no cluster is here."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.fleet import kubectl
from tests.fleet.test_session import STUDY
from tests.processes import run_program
from tests.study.pods import listing, pod

pytestmark = [pytest.mark.e2e, pytest.mark.long]

IOLAB = str(Path(sys.executable).with_name("iolab"))
PODS = "k8s:bench/app=load"


@dataclass(frozen=True)
class StandIn:
    """The stand-in's state, and a place for studies."""

    base: Path

    def pods(self, *pods: dict[str, object]) -> None:
        (self.base / "pods.json").write_text(json.dumps(listing(*pods)), encoding="utf-8")

    def calls(self) -> list[list[str]]:
        lines = (self.base / "calls").read_text("utf-8").splitlines()
        return [json.loads(line) for line in lines]

    def iolab(
        self, *words: str | Path, path: str | None = None
    ) -> subprocess.CompletedProcess[str]:
        """The command with the stand-in first in its PATH, or with another PATH."""
        path = path or f"{self.base}/bin:/usr/bin:/bin:/usr/sbin:/sbin"
        return run_program(
            [IOLAB, *(str(word) for word in words)],
            env={"HOME": str(self.base), "PATH": path, "KUBECTL_STATE": str(self.base)},
            timeout=120,
        )


@pytest.fixture
def cluster(tmp_path: Path) -> StandIn:
    """Two pods that are ready, in a context of an unusual name."""
    program = tmp_path / "bin" / "kubectl"
    program.parent.mkdir()
    body = Path(kubectl.__file__).read_text("utf-8")
    program.write_text(f"#!{sys.executable} -S\n{body}", encoding="utf-8")
    program.chmod(0o755)
    (tmp_path / "context").write_text("admin@lab:6443/one", encoding="utf-8")
    (tmp_path / "study.toml").write_text(STUDY, encoding="utf-8")
    made = StandIn(tmp_path)
    made.pods(pod("load-0"), pod("load-1"))
    return made


def targets(cluster: StandIn) -> list[str]:
    """A target directory for each pod: these two share one file system."""
    words = []
    for name in ("load-0", "load-1"):
        (cluster.base / name).mkdir()
        words += ["--set", f"host.{name}.path={cluster.base / name}"]
    return words


def entering(calls: list[list[str]]) -> list[list[str]]:
    """The calls that enter a pod; all others read what the cluster knows of it."""
    inside = [call for call in calls if call[1] == "exec"]
    assert {call[2] for call in calls if call not in inside} <= {"get"}
    return inside


def test_a_session_runs_in_two_pods_and_goes_on_without_a_second_look(cluster: StandIn) -> None:
    session = cluster.base / "session"
    study = cluster.base / "study.toml"
    done = cluster.iolab("run", study, "--hosts", PODS, *targets(cluster), "--out", session)
    assert done.returncode == 0, done.stderr
    manifest = next(session.glob("points/*/run-1/manifest.json")).read_text("utf-8")
    assert '"load-0"' in manifest
    assert '"load-1"' in manifest
    calls = cluster.calls()
    assert calls[0] == ["config", "current-context"]
    assert calls[1][:4] == ["get", "pods", "--namespace=bench", "--selector=app=load"]
    pinned = "--context=admin@lab:6443/one"
    for call in entering(calls[2:]):
        where = ["--stdin", "--namespace=bench", "--container=main"]
        assert call[:5] == [pinned, "exec", *where]
        assert call[5] in {"load-0", "load-1"}
        assert call[6] == "--"
    shutil.rmtree(next(session.glob("points/*")))  # as if it had stopped before
    cluster.pods(pod("load-0"), pod("load-1"), pod("load-2"))
    (cluster.base / "context").write_text("elsewhere", encoding="utf-8")
    again = cluster.iolab("resume", session)
    assert again.returncode == 0, again.stderr
    later = cluster.calls()[len(calls) :]
    assert {call[0] for call in (*calls[2:], *later)} == {pinned}
    assert {call[5] for call in entering(later)} == {"load-0", "load-1"}
    for name in ("load-0", "load-1"):
        assert list((cluster.base / name).iterdir()) == []
    # A pod that is gone is named.
    shutil.rmtree(next(session.glob("points/*")))
    cluster.pods(pod("load-0"))
    gone = cluster.iolab("resume", session)
    assert gone.returncode == 3
    assert (
        "host 'load-1' (exit code 1; Error from server (NotFound): pods \"load-1\"" in gone.stderr
    )


def test_doctor_asks_the_pods(cluster: StandIn) -> None:
    done = cluster.iolab("doctor", "--hosts", PODS, "--path", cluster.base, "--json")
    hosts = {host["name"]: host["reached"] for host in json.loads(done.stdout)["hosts"]}
    assert hosts == {"load-0": True, "load-1": True}


@pytest.mark.parametrize(
    ("verb", "message"),
    [
        (
            "get",
            "kubectl cannot list the pods (exit code 1; Error from server (Forbidden): pods is",
        ),
        ("exec", "'id' failed on host 'load-1' (exit code 1; Error from server (Forbidden): pods/"),
    ],
)
def test_what_the_cluster_does_not_allow_is_told_in_its_words(
    cluster: StandIn, verb: str, message: str
) -> None:
    (cluster.base / "forbidden").write_text(verb, encoding="utf-8")
    study = cluster.base / "study.toml"
    done = cluster.iolab("plan", study, "--hosts", PODS, "--path", cluster.base)
    assert done.returncode == 3
    assert message in done.stderr


def test_no_kubectl_is_told(cluster: StandIn) -> None:
    study = cluster.base / "study.toml"
    done = cluster.iolab("check", study, "--hosts", PODS, path=str(Path(sys.executable).parent))
    assert done.returncode == 3
    assert "There is no program 'kubectl' here." in done.stderr


def test_no_pods_are_told(cluster: StandIn) -> None:
    cluster.pods()
    done = cluster.iolab("check", cluster.base / "study.toml", "--hosts", PODS)
    assert done.returncode == 3
    assert "'k8s:bench/app=load' selects no running pod." in done.stderr
