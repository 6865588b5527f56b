"""Sessions in pods of a real cluster: `make kubernetes`, then `make kubernetes-test`."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

pytestmark = [pytest.mark.e2e, pytest.mark.kubernetes, pytest.mark.timeout(600)]

TOOLS = Path(__file__).parents[2] / "tools" / "kubernetes"
CACHE = Path(os.environ.get("IOLAB_KUBERNETES", Path("~/.cache/iolab/kubernetes").expanduser()))
IOLAB = str(Path(sys.executable).with_name("iolab"))
ENVIRONMENT = {
    **os.environ,
    "KUBECONFIG": str(CACHE / "cluster" / "admin.conf"),
    "PATH": f"{CACHE / 'bin'}:{os.environ['PATH']}",
}
IMAGE = "--image=localhost/iolab:test"
SHORT = ["--repeats=1", "--runtime=3s"]
NAMESPACE = "iolab"

STUDY = """\
format = 1
id = "classes"

[method]
warmup = "1s"
runtime = "4s"
repeats = 3
settle = "0s"
generator_limit = false

[[workload]]
id = "rand-read"
rw = "randread"
bs = "4k"
iodepth = 8
filesize = "64m"
"""


def kubectl(*words: str) -> str:
    words = ("kubectl", f"--namespace={NAMESPACE}", *words)
    done = subprocess.run(words, env=ENVIRONMENT, capture_output=True, text=True, check=True)
    return done.stdout


def cluster(*words: str) -> None:
    subprocess.run([TOOLS / "cluster.sh", *words], env=ENVIRONMENT, check=True)


def objects() -> list[str]:
    """All that is in the namespace and could be of a session."""
    kinds = "leases,statefulsets,pods,persistentvolumeclaims"
    return kubectl("get", kinds, "--output=name").split()


@pytest.fixture
def study(tmp_path: Path) -> Iterator[Path]:
    """A study, with all volumes free; after the test nothing of it is in the cluster."""
    cluster("volumes")
    path = tmp_path / "study.toml"
    path.write_text(STUDY, encoding="utf-8")
    yield path
    left = objects()
    subprocess.run(
        [IOLAB, "clean", f"--hosts=k8s:{NAMESPACE}", "--yes"], env=ENVIRONMENT, check=True
    )
    assert left == []


def iolab(*words: str | Path, limit_s: float = 400) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [IOLAB, *(str(word) for word in words)],
        env=ENVIRONMENT,
        capture_output=True,
        text=True,
        timeout=limit_s,
        check=False,
    )


def begin(study: Path, out: Path, *words: str) -> subprocess.Popen[str]:
    """A session that measures for a minute in one pod of the class fast; returns when it does."""
    process = subprocess.Popen(
        [
            *(IOLAB, "run", str(study), "--storage-class=fast", "--volume=1Gi", IMAGE),
            *("--runtime=60s", "--repeats=1", f"--out={out}", *words),
        ],
        env=ENVIRONMENT,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    assert process.stdout is not None
    for line in process.stdout:
        if "IOPS" in line:
            return process
    pytest.fail(f"the session ended with {process.wait()}")


def pod_of(kind: str = "pods") -> str:
    (name,) = kubectl("get", kind, "--output=name").split()
    return name


def test_two_classes_are_compared_at_their_known_ratio(study: Path, tmp_path: Path) -> None:
    """The disks of fast and slow are held to 2,000 and 500 I/Os a second in each pod."""
    out = tmp_path / "session"
    words = ("--storage-class=fast,slow", "--pods=2", "--volume=1Gi", IMAGE)
    done = iolab("run", study, *words, "--out", out)
    assert done.returncode == 0, done.stderr
    shown = json.loads(iolab("show", out, "--json").stdout)
    rates = {
        point["configuration"]: point["metrics"]["read_iops"]["value"] for point in shown["points"]
    }
    assert 3 < rates["fast"] / rates["slow"] < 5
    facts = json.loads((out / "hosts.json").read_text("utf-8"))
    pods = re.findall(r'"node": ?"(node\d)"', json.dumps(facts))
    assert len(set(pods)) > 1
    assert '"volume_kind": "local"' in json.dumps(facts)


def test_a_block_volume_is_measured_as_a_device(study: Path, tmp_path: Path) -> None:
    words = ("--storage-class=block", "--volume-mode=block", "--volume=1Gi", IMAGE, *SHORT)
    done = iolab("run", study, *words, "--out", tmp_path / "session")
    assert done.returncode == 0, done.stderr


def test_a_shared_volume_is_one_for_all_pods(study: Path, tmp_path: Path) -> None:
    words = ("--storage-class=fast", "--access=RWX", "--volume=1Gi", IMAGE, *SHORT)
    many = ("--pods=2", "--set=kubernetes.one_per_node=false")
    done = iolab("run", study, *words, *many, "--out", tmp_path / "session")
    assert done.returncode == 0, done.stderr
    facts = json.loads((tmp_path / "session" / "hosts.json").read_text("utf-8"))
    assert len(set(re.findall(r'"volume": "(\w+-\d)"', json.dumps(facts)))) == 1


@pytest.mark.parametrize(
    ("words", "parts"),
    [
        (["--storage-class=none,fats", "--namespace=nowhere"], ["'none'", "'fats'", "'nowhere'"]),
        (["--storage-class=fast", "--image=localhost/none:1"], ["ImagePullBackOff"]),
        (["--storage-class=fast", "--pods=4"], ["anti-affinity", "one_per_node"]),
        (["--storage-class=fast", "--node-selector=disk=ssd"], ["node affinity/selector"]),
        (["--storage-class=fast", "--volume=100Gi"], ["persistent volumes"]),
        (["--storage-class=fast", "--set=kubernetes.cpu=64"], ["Insufficient cpu"]),
        (["--storage-class=fast", "--volume=50Mi"], ["64 MiB", "50 MiB"]),
    ],
)
def test_what_hangs_is_told_and_nothing_is_left(
    study: Path, words: list[str], parts: list[str]
) -> None:
    wait = "--set=kubernetes.wait=45s" if "image" in words[-1] else "--set=kubernetes.wait=8s"
    image = [] if any("--image" in word for word in words) else [IMAGE]
    volume = [] if any("--volume" in word for word in words) else ["--volume=1Gi"]
    done = iolab("run", study, wait, *image, *volume, *words)
    assert done.returncode in (2, 3)
    assert [part for part in parts if part not in done.stderr] == [], done.stderr


def test_a_quota_and_a_policy_refuse_before_anything_is_made(study: Path, tmp_path: Path) -> None:
    kubectl("create", "quota", "small", "--hard=pods=0")
    try:
        done = iolab("run", study, "--storage-class=fast", "--volume=1Gi", IMAGE)
    finally:
        kubectl("delete", "quota", "small")
    assert done.returncode == 3
    assert "exceeded quota: small" in done.stderr
    assert "Nothing was made" in done.stderr
    label = "pod-security.kubernetes.io/enforce"
    kubectl("label", "namespace", NAMESPACE, f"{label}=restricted")
    try:
        block = ("--storage-class=block", "--volume-mode=block", "--volume=1Gi", IMAGE)
        refused = iolab("run", study, *block)
        words = ("--storage-class=fast", "--volume=1Gi", IMAGE, *SHORT)
        taken = iolab("run", study, *words, "--out", tmp_path / "session")
    finally:
        kubectl("label", "namespace", NAMESPACE, f"{label}-")
    assert refused.returncode == 3
    assert "violates PodSecurity" in refused.stderr
    assert taken.returncode == 0, taken.stderr


def test_what_a_killed_session_left_is_cleaned(study: Path, tmp_path: Path) -> None:
    process = begin(study, tmp_path / "session")
    alive = iolab("clean", f"--hosts=k8s:{NAMESPACE}", "--yes")
    assert "alive: it stays" in alive.stderr
    assert len(objects()) == 4
    process.kill()
    process.wait()
    done = iolab("clean", f"--hosts=k8s:{NAMESPACE}", "--yes")
    assert done.returncode == 0, done.stderr
    assert "Removed." in done.stderr


def test_one_delete_of_the_lease_takes_all_of_it(study: Path, tmp_path: Path) -> None:
    process = begin(study, tmp_path / "session")
    process.kill()
    process.wait()
    kubectl("delete", "lease", "--all")
    for _ in range(60):
        if not objects():
            return
        time.sleep(1)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_stopped_session_removes_its_pods(study: Path, tmp_path: Path, number: int) -> None:
    process = begin(study, tmp_path / "session")
    process.send_signal(number)
    time.sleep(0.5)
    process.send_signal(number)
    process.communicate(timeout=120)
    assert process.returncode == 130


def test_kept_pods_are_taken_again_by_the_same_options_alone(study: Path, tmp_path: Path) -> None:
    words = ("--storage-class=fast", "--volume=1Gi", IMAGE, *SHORT)
    assert iolab("run", study, *words, "--keep", "--out", tmp_path / "one").returncode == 0
    name = pod_of("leases").partition("/")[2]
    before = kubectl("get", "pods", "--output=jsonpath={.items[*].metadata.uid}")
    other = iolab("run", study, *words, "--pods=2", f"--set=kubernetes.name={name}")
    assert other.returncode == 3
    assert "are not those of this study" in other.stderr
    assert kubectl("get", "pods", "--output=jsonpath={.items[*].metadata.uid}") == before
    again = (f"--set=kubernetes.name={name}", "--out", tmp_path / "two")
    done = iolab("run", study, *words, *again)
    assert done.returncode == 0, done.stderr
    assert "Measuring in the kept pods" in done.stderr


def run_statuses(session: Path) -> list[str]:
    shown = json.loads(iolab("show", session, "--json").stdout)
    return [run["status"] for run in shown["runs"]]


def test_a_deleted_pod_costs_one_run_and_the_session_goes_on(study: Path, tmp_path: Path) -> None:
    out = tmp_path / "session"
    process = begin(study, out, "--repeats=2", "--runtime=15s", "--set=method.on_failure=retry")
    kubectl("delete", pod_of(), "--force", "--grace-period=0")
    output, _ = process.communicate(timeout=300)
    assert process.returncode in (0, 4), output
    assert "fast-0" in output


def test_a_restarted_api_server_costs_one_run(study: Path, tmp_path: Path) -> None:
    out = tmp_path / "session"
    process = begin(study, out, "--repeats=2", "--runtime=15s", "--set=method.on_failure=retry")
    cluster("kill-api")
    cluster("start-api")
    output, _ = process.communicate(timeout=300)
    assert process.returncode in (0, 4), output
    assert "v2.go" not in output
