"""Sessions in pods of a real cluster: `make kubernetes`, then `make kubernetes-test`."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.kubernetes.cluster import (
    ENVIRONMENT,
    IMAGE,
    IOLAB,
    NAMESPACE,
    RUN,
    STUDY,
    begin,
    cluster,
    iolab,
    kubectl,
    objects,
    shown_session,
    start_session,
    wait_until_measuring,
)
from tests.processes import run_program

pytestmark = [pytest.mark.e2e, pytest.mark.kubernetes, pytest.mark.timeout(600)]

SHORT = ["--repeats=1", "--runtime=3s"]
DEPLOY = Path(__file__).parents[2] / "deploy"


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


def pod_of(kind: str = "pods") -> str:
    (name,) = kubectl("get", kind, "--output=name").split()
    return name


def test_two_classes_are_compared_at_their_known_ratio(study: Path, tmp_path: Path) -> None:
    """The disks of fast and slow are held to 2,000 and 500 I/Os a second in each pod."""
    out = tmp_path / "session"
    words = (
        "--storage-class=fast,slow",
        "--pods=2",
        "--volume=1Gi",
        IMAGE,
        "--repeats=5",
        "--runtime=5s",
    )
    done = iolab("run", study, *words, "--price=fast=0.2EUR,slow=0.1EUR", "--out", out)
    assert done.returncode == 0, done.stderr
    told = re.search(r"fast gives \S+ \((\S+) to (\S+)\) times the IOPS of slow", done.stdout)
    assert told is not None, done.stdout
    assert float(told[1]) <= 4 <= float(told[2])
    assert "for the same money fast gives" in done.stdout
    assert re.search(r"Limit .*I/O limit of loop\d+ reads", done.stdout), done.stdout
    stored = (out / "hosts.json").read_text("utf-8")
    assert len(set(re.findall(r'"node": ?"(node\d)"', stored))) > 1
    assert re.search(r'"volume_kind": ?"local"', stored)
    # What holds the disks to their rates is a limit of the pods' control groups.
    assert re.search(r'"read_iops": ?2000', stored)
    report = iolab("report", out, "--md", tmp_path / "report.md")
    assert report.returncode == 0, report.stderr
    text = (tmp_path / "report.md").read_text("utf-8")
    for part in ("class fast, kubernetes.io/no-provisioner", "local ", "on node", "Burstable"):
        assert part in text


def test_pods_on_one_disk_are_told(study: Path, tmp_path: Path) -> None:
    """Three pods of one node, whose volumes are on one disk."""
    out = tmp_path / "session"
    words = ("--storage-class=fast", "--pods=3", "--volume=1Gi", IMAGE, *SHORT)
    place = ("--node-selector=kubernetes.io/hostname=node1", "--set=kubernetes.one_per_node=false")
    done = iolab("run", study, *words, *place, "--out", out)
    assert done.returncode == 0, done.stderr
    (result,) = shown_session(out)["results"]
    checks = {check["code"]: check for check in result["verdict"]["checks"]}
    assert checks["shared-target"]["level"] == "indicative"
    assert (
        "fast-0, fast-1 and fast-2 have volumes on one disk" in checks["shared-target"]["message"]
    )


def test_a_pod_with_too_little_processor_is_throttled(study: Path, tmp_path: Path) -> None:
    out = tmp_path / "session"
    words = ("--storage-class=fast", "--volume=1Gi", IMAGE, "--repeats=1", "--runtime=6s")
    limits = ("--set=kubernetes.cpu=50m", "--set=kubernetes.memory=512Mi")
    done = iolab("run", study, *words, *limits, "--out", out)
    assert done.returncode in (0, 4), done.stderr
    (result,) = shown_session(out)["results"]
    checks = {check["code"]: check for check in result["verdict"]["checks"]}
    assert checks["client-throttled"]["level"] in ("indicative", "invalid")
    assert checks["client-throttled"]["evidence"]["quota_cores"] == 0.05
    stored = (out / "hosts.json").read_text("utf-8")
    assert re.search(r'"qos": ?"Guaranteed"', stored)
    assert re.search(r'"limit_bytes": ?536870912', stored)


def test_python_makes_and_removes_pods(study: Path, tmp_path: Path) -> None:
    program = (
        "import iolab, sys\n"
        "pods = {'storage_class': ['fast'], 'volume': '1Gi', 'image': sys.argv[3]}\n"
        "settings = {f'kubernetes.{key}': value for key, value in pods.items()}\n"
        "settings |= {'method.repeats': 1, 'method.runtime': '3s'}\n"
        "session = iolab.run(sys.argv[1], out=sys.argv[2], settings=settings)\n"
        "print(session.status, session.points[0].metrics['iops'].value > 0)\n"
    )
    words = [sys.executable, "-c", program, str(study), str(tmp_path / "session")]
    done = run_program([*words, IMAGE.partition("=")[2]], env=ENVIRONMENT)
    assert done.stdout.split() == ["done", "True"], done.stderr


def test_a_block_volume_is_measured_as_a_device(study: Path, tmp_path: Path) -> None:
    words = ("--storage-class=block", "--volume-mode=block", "--volume=1Gi", IMAGE, *SHORT)
    done = iolab("run", study, *words, "--out", tmp_path / "session")
    assert done.returncode == 0, done.stderr


def test_a_volume_of_a_csi_driver_is_measured_and_named(study: Path, tmp_path: Path) -> None:
    """As a user that is not root: the volume is given to the group of the pod."""
    out = tmp_path / "session"
    words = ("--storage-class=csi", "--volume=1Gi", IMAGE, "--repeats=1", "--runtime=5s")
    done = iolab("run", study, *words, "--out", out)
    assert done.returncode == 0, done.stderr
    (start,) = json.loads((out / "hosts.json").read_text("utf-8"))["starts"]
    pod = start["facts"]["csi-0"]["pod"]
    assert (pod["provisioner"], pod["volume_kind"]) == ("csi.iolab.test", "csi.iolab.test")
    assert re.fullmatch(r"node\d/\d", pod["volume_id"])
    assert pod["parameters"] == [["medium", "loop"]]


def test_a_shared_volume_is_one_for_all_pods(study: Path, tmp_path: Path) -> None:
    words = ("--storage-class=fast", "--access=RWX", "--volume=1Gi", IMAGE, *SHORT)
    many = ("--pods=2", "--set=kubernetes.one_per_node=false")
    done = iolab("run", study, *words, *many, "--out", tmp_path / "session")
    assert done.returncode == 0, done.stderr
    stored = (tmp_path / "session" / "hosts.json").read_text("utf-8")
    assert len(set(re.findall(r'"volume": ?"(\w+-\d)"', stored))) == 1


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


def test_a_taint_is_told(study: Path) -> None:
    kubectl("taint", "nodes", "--all", "lab=busy:NoSchedule")
    try:
        words = ("--storage-class=fast", "--volume=1Gi", IMAGE, "--set=kubernetes.wait=8s")
        done = iolab("run", study, *words)
    finally:
        kubectl("taint", "nodes", "--all", "lab:NoSchedule-")
    assert done.returncode == 3
    assert "untolerated taint" in done.stderr
    assert "--node-selector" in done.stderr


@pytest.mark.parametrize("binding", ["Immediate", "WaitForFirstConsumer"])
def test_a_provisioner_that_is_not_there_is_told(study: Path, binding: str) -> None:
    storage_class = {
        "apiVersion": "storage.k8s.io/v1",
        "kind": "StorageClass",
        "metadata": {"name": "absent"},
        "provisioner": "absent.example.test",
        "volumeBindingMode": binding,
    }
    kubectl("create", "--filename=-", stdin=json.dumps(storage_class))
    try:
        words = ("--storage-class=absent", "--volume=1Gi", IMAGE, "--set=kubernetes.wait=20s")
        done = iolab("run", study, *words)
    finally:
        kubectl("delete", "storageclass", "absent")
    assert done.returncode == 3
    assert "absent.example.test" in done.stderr, done.stderr


def test_a_quota_that_ends_while_pods_are_made_is_told(study: Path) -> None:
    """Each object is tried alone, so that it is seen when the second pod is made."""
    kubectl("create", "quota", "one", "--hard=pods=1")
    try:
        words = ("--storage-class=fast", "--pods=2", "--volume=1Gi", IMAGE)
        done = iolab("run", study, *words)
    finally:
        kubectl("delete", "quota", "one")
    assert done.returncode == 3
    assert "exceeded quota: one" in done.stderr, done.stderr


def make_pod(**volume: object) -> None:
    """A pod of somebody else, `own` by name and label, with this volume at /data."""
    container = {
        "name": "load",
        "image": IMAGE.partition("=")[2],
        "imagePullPolicy": "Never",
        "command": ["sleep", "infinity"],
        "volumeMounts": [{"name": "data", "mountPath": "/data"}],
        "securityContext": {"runAsUser": 0},
    }
    pod = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "own", "labels": {"app": "own"}},
        "spec": {
            "terminationGracePeriodSeconds": 0,
            "volumes": [{"name": "data", **volume}],
            "containers": [container],
        },
    }
    kubectl("create", "--filename=-", stdin=json.dumps(pod))
    kubectl("wait", "--for=condition=Ready", "pod/own", "--timeout=120s")


@pytest.fixture
def own_pod() -> Iterator[Callable[..., None]]:
    """Makes such a pod; after the test there is none."""
    yield make_pod
    kubectl("delete", "pod", "own", "--ignore-not-found", "--wait")


IN_OWN_POD = (f"--hosts=k8s:{NAMESPACE}/app=own", "--path=/data")


def test_a_volume_in_memory_is_refused(
    study: Path, tmp_path: Path, own_pod: Callable[..., None]
) -> None:
    """Of another's pod: iolab makes none on memory."""
    own_pod(emptyDir={"medium": "Memory"})
    done = iolab("run", study, *IN_OWN_POD, *SHORT, "--out", tmp_path / "session")
    assert done.returncode == 3
    assert "tmpfs" in done.stderr


def test_a_directory_of_the_node_is_told(
    study: Path, tmp_path: Path, own_pod: Callable[..., None]
) -> None:
    folder = tmp_path / "of-the-node"
    folder.mkdir(mode=0o777)
    own_pod(hostPath={"path": str(folder)})
    done = iolab("doctor", *IN_OWN_POD)
    assert f"hostPath {folder} (a directory of the node)" in re.sub(r"\s+", " ", done.stdout)
    assert list(folder.iterdir()) == []


def test_a_session_in_own_pods_is_resumed_when_they_are_there_again(
    study: Path, tmp_path: Path, own_pod: Callable[..., None]
) -> None:
    own_pod(emptyDir={})
    out = tmp_path / "session"
    words = ("--runtime=15s", "--repeats=2", "--set=method.on_failure=stop", f"--out={out}")
    process = wait_until_measuring(start_session("run", str(study), *IN_OWN_POD, *words))
    kubectl("delete", "pod", "own", "--force", "--grace-period=0")
    output, _ = process.communicate(timeout=300)
    assert process.returncode == 3, output
    refused = iolab("resume", out)
    assert refused.returncode == 3
    assert 'pods "own" not found' in refused.stderr
    own_pod(emptyDir={})
    done = iolab("resume", out)
    assert done.returncode == 0, done.stderr
    assert lost_and_done(out) == (1, 2)


def test_exec_brings_back_every_byte(study: Path) -> None:
    """What a session's channel is made of: nothing is lost at the end of input."""
    process = begin(study, study.parent / "session")
    pod = pod_of().partition("/")[2]
    data = os.urandom(100 << 20)
    words = ("kubectl", f"--namespace={NAMESPACE}", "exec", "--stdin", pod, "--", "cat")
    began = time.monotonic()
    done = subprocess.run(words, env=ENVIRONMENT, input=data, capture_output=True, check=False)
    print(f"{100 / (time.monotonic() - began):.0f} MiB/s each way")
    process.send_signal(signal.SIGINT)
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=120)
    assert done.stdout == data


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


def test_a_namespace_that_is_not_there_has_no_leftovers_to_speak_of() -> None:
    done = iolab("clean", "--hosts=k8s:nowhere")
    assert done.returncode == 3
    assert "There is no namespace 'nowhere'" in done.stderr
    assert iolab("clean", f"--hosts=k8s:{NAMESPACE}").returncode == 0


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


def lost_and_done(session: Path) -> tuple[int, int]:
    """How many runs were tried in vain, and how many are whole."""
    statuses = [result["status"] for result in shown_session(session)["results"]]
    done = statuses.count("done")
    again = len(list(session.glob("points/*/run-*.attempt-*")))
    return again + len(statuses) - done, done


def test_a_deleted_pod_costs_one_run_and_the_session_goes_on(study: Path, tmp_path: Path) -> None:
    out = tmp_path / "session"
    process = begin(study, out, "--repeats=2", "--runtime=15s", "--set=method.on_failure=retry")
    kubectl("delete", pod_of(), "--force", "--grace-period=0")
    output, _ = process.communicate(timeout=300)
    assert process.returncode == 0, output
    assert "Host 'fast-0' broke off" in output
    assert lost_and_done(out) == (1, 2)


def test_a_session_that_a_pod_ended_is_resumed_on_new_volumes(study: Path, tmp_path: Path) -> None:
    out = tmp_path / "session"
    process = begin(study, out, "--repeats=2", "--runtime=15s", "--set=method.on_failure=stop")
    kubectl("delete", pod_of(), "--force", "--grace-period=0")
    output, _ = process.communicate(timeout=300)
    assert process.returncode != 0, output
    assert objects() == []
    done = iolab("resume", out)
    assert done.returncode == 0, done.stderr
    assert lost_and_done(out) == (1, 2)


def test_a_restarted_api_server_costs_one_run(study: Path, tmp_path: Path) -> None:
    out = tmp_path / "session"
    process = begin(study, out, "--repeats=2", "--runtime=15s", "--set=method.on_failure=retry")
    cluster("kill-api")
    cluster("start-api")
    output, _ = process.communicate(timeout=300)
    assert process.returncode == 0, output
    assert "v2.go" not in output
    assert lost_and_done(out) == (1, 2)


def overlay(*words: str) -> str:
    """What a user changes for a small cluster: the image's name, sizes, arguments of the Job."""
    arguments = (
        *("--image=localhost/iolab:test", "--repeats=1", "--runtime=3s"),
        *("--set=workload.*.filesize=8m", "--set=workload.metadata.files_per_rank=20"),
        *words,
    )
    place = "/spec/template/spec/containers/0/args"
    patch = [
        {"op": "replace", "path": f"{place}/5", "value": "--volume=1Gi"},
        *({"op": "add", "path": f"{place}/-", "value": word} for word in arguments),
    ]
    return json.dumps(
        {
            "apiVersion": "kustomize.config.k8s.io/v1beta1",
            "kind": "Kustomization",
            "resources": ["base"],
            "images": [{"name": "iolab", "newName": "localhost/iolab", "newTag": "test"}],
            "patches": [{"target": {"kind": "Job"}, "patch": json.dumps(patch)}],
        }
    )


def exit_code_of_job() -> int | None:
    """That of its only pod; None while it runs."""
    found = kubectl(
        *("get", "pods", "--selector=job-name=iolab"),
        "--output=jsonpath={.items[*].status.containerStatuses[0].state.terminated.exitCode}",
    )
    return int(found) if found else None


def run_job(folder: Path, *words: str) -> tuple[int, str]:
    """Exit code and log of the Job of `deploy/base` with an overlay."""
    (folder / "kustomization.yaml").write_text(overlay(*words), encoding="utf-8")
    shutil.copytree(DEPLOY / "base", folder / "base")
    kubectl("apply", f"--kustomize={folder}")
    for _ in range(400):
        if (code := exit_code_of_job()) is not None:
            return code, kubectl("logs", "job/iolab")
        time.sleep(1)
    raise AssertionError(kubectl("describe", "job/iolab", "pods"))


@pytest.fixture
def job_folder(tmp_path: Path) -> Iterator[Path]:
    """A folder for an overlay; after the test there is no Job, and the namespace is as before."""
    cluster("volumes")
    yield tmp_path
    kubectl("delete", "job/iolab", "pvc/sessions", "--ignore-not-found")
    kubectl("label", "namespace", NAMESPACE, "pod-security.kubernetes.io/enforce-")


def test_the_job_of_the_base_ends_with_a_report(job_folder: Path) -> None:
    requests_before = len(requests_of_job())
    fetch = (DEPLOY / "fetch.yaml").read_text("utf-8").replace("iolab:0.1.0", IMAGE[8:])
    code, log = run_job(job_folder)
    assert code == 0, log
    kept = ("pod/iolab-", "persistentvolumeclaim/sessions")
    assert [name for name in objects() if not name.startswith(kept)] == [], log
    try:
        kubectl("apply", "--filename=-", stdin=fetch)
        kubectl("wait", "--for=condition=Ready", "pod/sessions", "--timeout=120s")
        kubectl("cp", "sessions:/sessions", str(job_folder / "sessions"))
    finally:
        kubectl("delete", "--filename=-", "--ignore-not-found", stdin=fetch)
    session = job_folder / "sessions" / "cluster-kpi"
    assert {result["status"] for result in shown_session(session)["results"]} == {"done"}
    assert list(session.glob("*.html")), sorted(session.iterdir())
    stored = (session / "hosts.json").read_text("utf-8")
    assert re.search(r'"provisioner": ?"kubernetes.io/no-provisioner"', stored)
    used = set(requests_of_job()[requests_before:])
    assert granted_rights() - used <= SELDOM_USED


SELDOM_USED = {
    ("", "persistentvolumeclaims", "create"),
    ("", "pods/exec", "create"),
    ("storage.k8s.io", "storageclasses", "list"),
}
"""Rights for a shared volume, for other versions of kubectl, and for the names of other classes."""


def requests_of_job() -> list[tuple[str, str, str]]:
    """Group, resource and verb of each request of the Job's account that the cluster allowed."""
    requests = []
    log = RUN / "log" / "audit.log"
    for line in log.read_text("utf-8").splitlines() if log.exists() else ():
        event = json.loads(line)
        is_allowed = event["annotations"]["authorization.k8s.io/decision"] == "allow"
        if is_allowed and (item := event.get("objectRef")) and "resource" in item:
            resource = "/".join(filter(None, (item["resource"], item.get("subresource"))))
            requests.append((item.get("apiGroup", ""), resource, event["verb"]))
    return requests


def granted_rights() -> set[tuple[str, str, str]]:
    """The same of all that its account may do."""
    items = json.loads(kubectl("get", "role/iolab", "clusterrole/iolab", "--output=json"))["items"]
    return {
        (group, resource, verb)
        for item in items
        for rule in item["rules"]
        for group in rule["apiGroups"]
        for resource in rule["resources"]
        for verb in rule["verbs"]
    }


def test_the_job_fails_with_the_exit_code_of_iolab(job_folder: Path) -> None:
    code, log = run_job(job_folder, "--storage-class=fats")
    assert code == 3, log
    assert "no storage class 'fats'" in log
    kubectl("wait", "--for=condition=Failed", "job/iolab", "--timeout=60s")
